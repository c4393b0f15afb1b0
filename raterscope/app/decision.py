"""One decision of the expert, a line of the journal that `review` reads."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

__all__ = ["VERBS", "Decision", "Verb", "in_words", "target_of"]

Verb = Literal["accept", "reject", "skip", "add", "move", "exclude", "include", "undo"]
VERBS: tuple[Verb, ...] = get_args(Verb)

Find = Callable[[int], "Decision | None"]


@dataclass(frozen=True, kw_only=True)
class Decision:
    """One line of the journal.

    Attributes
    ----------
    verb : str
        accept, reject, skip, add or move a spot; exclude or include an annotator; undo a decision.
    id : int
        Counts from 1; 0 until the study has recorded it.
    at : datetime or None
        When, with its time zone; None until the study has recorded it.
    who : str
        Filled with the user's name by the study when it is empty.
    image : int or None
        The image's number in the study.
    spot : int or None
        The number that the spot had on screen.
    x, y : float or None
        Where the spot is, pixels; for a move, where to.
    from_x, from_y : float or None
        For a move, where it was.
    reason : str
    annotator : str or None
        Who is excluded or included.
    run : int or None
        The run whose result was on screen.
    about : int or None
        An earlier decision on the same spot.
    undoes : int or None
        The decision that an undo takes back.
    """

    verb: Verb
    id: int = 0
    at: datetime | None = None
    who: str = ""
    image: int | None = None
    spot: int | None = None
    x: float | None = None
    y: float | None = None
    from_x: float | None = None
    from_y: float | None = None
    reason: str = ""
    annotator: str | None = None
    run: int | None = None
    about: int | None = None
    undoes: int | None = None

    def __post_init__(self) -> None:
        if self.verb not in VERBS:
            raise ValueError(f"{self.verb!r} is no verb of a decision; expected one of {', '.join(VERBS)}.")
        for name in _NEEDED[self.verb]:
            if getattr(self, name) is None:
                raise ValueError(f"a decision to {self.verb} needs {name}.")
        for name in ("x", "y", "from_x", "from_y"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise ValueError(f"{name} of a decision is {value}; expected a finite number.")


_PLACE = ("image", "x", "y")
_NEEDED: dict[str, tuple[str, ...]] = {
    "accept": _PLACE,
    "reject": _PLACE,
    "skip": _PLACE,
    "add": _PLACE,
    "move": (*_PLACE, "from_x", "from_y"),
    "exclude": ("annotator",),
    "include": ("annotator",),
    "undo": ("undoes",),
}


def in_words(decision: Decision, find: Find | None = None) -> str:
    """Say a decision in a few words: "reject spot 12", "undo reject spot 12", "redo reject spot 12".

    Parameters
    ----------
    decision : Decision
    find : callable, optional
        Gives an earlier decision by its number, for undo and redo.
    """
    if decision.verb == "undo":
        target, times = (None, 0) if find is None else target_of(decision, find)
        if target is None:
            return f"undo decision {decision.undoes}"
        return f"{'undo' if times % 2 else 'redo'} {in_words(target)}"
    if decision.annotator is not None:
        because = f" ({decision.reason})" if decision.reason else ""
        return f"{decision.verb} annotator {decision.annotator}{because}"
    what = f"spot {decision.spot}" if decision.spot is not None else "a spot"
    if decision.verb == "add" or decision.spot is None:
        return f"{decision.verb} {what} at {decision.x:.0f}, {decision.y:.0f}"
    return f"{decision.verb} {what}"


def target_of(decision: Decision, find: Find) -> tuple[Decision | None, int]:
    """Follow an undo to the decision that it is about in the end, through how many undos."""
    target, times = decision, 0
    while target.verb == "undo":
        earlier = find(target.undoes) if target.undoes is not None else None
        if earlier is None or earlier.id >= target.id:
            return None, times
        target, times = earlier, times + 1
    return target, times
