"""One decision of the expert, a line of the journal, and what each kind of annotation decides on.

What is decided belongs to an item: an image of clicks or masks, a question of labels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar

from raterscope.algorithms.masks.data import Settled

__all__ = [
    "SUBJECTS",
    "BiasSubject",
    "Decision",
    "RegionSubject",
    "SpotSubject",
    "Subject",
    "TaskSubject",
    "in_words",
    "target_of",
]

Find = Callable[[int], "Decision | None"]
Box = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True)
class SpotSubject:
    """A spot on an image of clicks: accept, reject, skip, add or move it.

    Attributes
    ----------
    x, y : float
        Where the spot is, pixels; for a move, where to.
    number : int or None
        The number that it had on screen.
    from_x, from_y : float or None
        For a move, where it was.
    """

    kind: ClassVar[str] = "clicks"
    verbs: ClassVar[tuple[str, ...]] = ("accept", "reject", "skip", "add", "move")

    x: float
    y: float
    number: int | None = None
    from_x: float | None = None
    from_y: float | None = None

    def __post_init__(self) -> None:
        for name in ("x", "y", "from_x", "from_y"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise ValueError(f"{name} of a decision is {value}; expected a finite number.")

    def refuse(self, verb: str) -> str | None:
        """Say what is missing for a verb; None where nothing is."""
        if verb == "move" and (self.from_x is None or self.from_y is None):
            return "from_x and from_y"
        return None

    def in_words(self, verb: str) -> str:
        """Say what is done to it: "reject spot 12"."""
        what = f"spot {self.number}" if self.number is not None else "a spot"
        if verb == "add" or self.number is None:
            return f"{verb} {what} at {self.x:.0f}, {self.y:.0f}"
        return f"{verb} {what}"


@dataclass(frozen=True, kw_only=True)
class RegionSubject:
    """A region of a structure whose voxels are settled, or passed over.

    accept: as the consensus has them; take: as one rater has them; paint: as the expert drew them; skip.

    Attributes
    ----------
    structure : str
    origin, shape : (slice, row, column)
        Its box in the whole image.
    number : int or None
        The number that the disputed region had on screen; None for voxels painted elsewhere.
    rater : str
        Whose version is taken.
    """

    kind: ClassVar[str] = "masks"
    verbs: ClassVar[tuple[str, ...]] = ("accept", "take", "paint", "skip")

    structure: str
    origin: Box
    shape: Box
    number: int | None = None
    rater: str = ""

    def __post_init__(self) -> None:
        if len(self.origin) != 3 or len(self.shape) != 3 or min(self.origin) < 0 or min(self.shape) < 1:
            raise ValueError(f"a region of {self.shape} at {self.origin}; expected a box of voxels.")

    def refuse(self, verb: str) -> str | None:
        """Say what is missing for a verb; None where nothing is."""
        return "rater" if verb == "take" and not self.rater else None

    def in_words(self, verb: str) -> str:
        """Say what is done to it: "take rater 2 in region 3", "paint slices 77-84"."""
        where = f"region {self.number}" if self.number is not None else _slices(self.origin, self.shape)
        if verb == "take":
            return f"take {self.rater} in {where}"
        if verb == "paint" and self.number is not None:
            return f"paint in {where}"
        return f"{verb} {where}"


def _slices(origin: Box, shape: Box) -> str:
    first, last = origin[0] + 1, origin[0] + shape[0]
    return f"slice {first}" if first == last else f"slices {first}-{last}"


@dataclass(frozen=True, kw_only=True)
class TaskSubject:
    """A task of a question: say which class is true of it, or pass it over.

    Attributes
    ----------
    task : str
    label : str
        The class's name; empty for a task that is passed over.
    """

    kind: ClassVar[str] = "labels"
    verbs: ClassVar[tuple[str, ...]] = ("label", "skip")

    task: str
    label: str = ""

    def refuse(self, verb: str) -> str | None:
        """Say what is missing for a verb; None where nothing is."""
        return "label" if verb == "label" and not self.label else None

    def in_words(self, verb: str) -> str:
        """Say what is done to it: "label task 0417 supernova"."""
        return f"label {self.task} {self.label}" if verb == "label" else f"{verb} {self.task}"


@dataclass(frozen=True, kw_only=True)
class BiasSubject:
    """An annotator of pairs: say that the position of items biases the answers, or that it does not.

    Attributes
    ----------
    annotator : str
    """

    kind: ClassVar[str] = "pairs"
    verbs: ClassVar[tuple[str, ...]] = ("flag", "clear", "skip")

    annotator: str

    def refuse(self, _verb: str) -> str | None:
        """Say what is missing for a verb; None where nothing is."""
        return None

    def in_words(self, verb: str) -> str:
        """Say what is done: "flag annotator 70"."""
        return f"{verb} annotator {self.annotator}"


Subject = SpotSubject | RegionSubject | TaskSubject | BiasSubject
SUBJECTS: dict[str, type[SpotSubject] | type[RegionSubject] | type[TaskSubject] | type[BiasSubject]] = {
    subject.kind: subject for subject in (SpotSubject, RegionSubject, TaskSubject, BiasSubject)
}
"""What is decided on, by the kind of annotation."""

_NEEDED = {"exclude": "annotators", "include": "annotators", "undo": "undoes"}


@dataclass(frozen=True, kw_only=True)
class Decision:
    """One line of the journal.

    Attributes
    ----------
    verb : str
        One of the subject's verbs; or exclude or include annotators, or undo a decision.
    subject : Subject, optional
        What of the item it is about.
    id : int
        Counts from 1; 0 until the study has recorded it.
    at : datetime or None
        When, with its time zone; None until the study has recorded it.
    who : str
        Filled with the user's name by the study when it is empty.
    item : int or None
        The item's number in the study.
    reason : str
    annotators : tuple of str
        Who is excluded or included.
    run : int or None
        The run whose result was on screen.
    about : int or None
        An earlier decision on the same subject.
    undoes : int or None
        The decision that an undo takes back.
    voxels : int or None
        The study's number for the voxels that it settles.
    settled : Settled, optional
        Those voxels, until the study has recorded them.
    """

    verb: str
    subject: Subject | None = None
    id: int = 0
    at: datetime | None = None
    who: str = ""
    item: int | None = None
    reason: str = ""
    annotators: tuple[str, ...] = ()
    run: int | None = None
    about: int | None = None
    undoes: int | None = None
    voxels: int | None = None
    settled: Settled | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        needed = _NEEDED.get(self.verb)
        if needed is None:
            self._check_subject()
        elif not getattr(self, needed):
            raise ValueError(f"a decision to {self.verb} needs {needed}.")

    def _check_subject(self) -> None:
        if self.subject is None:
            verbs = {verb for subject in SUBJECTS.values() for verb in subject.verbs}
            if self.verb in verbs:
                raise ValueError(f"a decision to {self.verb} needs a subject.")
            known = ", ".join(sorted({*verbs, *_NEEDED}))
            raise ValueError(f"{self.verb!r} is no verb of a decision; expected one of {known}.")
        if self.verb not in self.subject.verbs:
            known = ", ".join(self.subject.verbs)
            raise ValueError(f"{self.verb!r} is no verb for {self.subject.kind}; expected one of {known}.")
        missing = "item" if self.item is None else self.subject.refuse(self.verb)
        if missing:
            raise ValueError(f"a decision to {self.verb} needs {missing}.")


def in_words(decision: Decision, find: Find | None = None, *, hidden: bool = False) -> str:
    """Say a decision in a few words: "reject spot 12", "undo reject spot 12", "redo reject spot 12".

    Parameters
    ----------
    decision : Decision
    find : callable, optional
        Gives an earlier decision by its number, for undo and redo.
    hidden : bool
        Leave out the names of annotators.
    """
    if decision.verb == "undo":
        target, times = (None, 0) if find is None else target_of(decision, find)
        if target is None:
            return f"undo decision {decision.undoes}"
        return f"{'undo' if times % 2 else 'redo'} {in_words(target, hidden=hidden)}"
    if decision.subject is not None:
        return decision.subject.in_words(decision.verb)
    because = f" ({decision.reason})" if decision.reason else ""
    if len(decision.annotators) > 1:
        return f"{decision.verb} {len(decision.annotators):,} annotators{because}"
    who = "an annotator" if hidden else f"annotator {decision.annotators[0]}"
    return f"{decision.verb} {who}{because}"


def target_of(decision: Decision, find: Find) -> tuple[Decision | None, int]:
    """Follow an undo to the decision that it is about in the end, through how many undos."""
    target, times = decision, 0
    while target.verb == "undo":
        earlier = find(target.undoes) if target.undoes is not None else None
        if earlier is None or earlier.id >= target.id:
            return None, times
        target, times = earlier, times + 1
    return target, times
