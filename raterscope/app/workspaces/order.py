"""The order of review: from one disputed item to the next, across structures, cases, images and questions."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["ELSEWHERE", "Elsewhere", "Part", "ends", "left_in_words", "next_item", "next_unit"]

Elsewhere = Callable[[int, bool, bool], bool]
Key = TypeVar("Key", bound=Hashable)

ELSEWHERE = -1
"""What stands for an item when the review went on in another unit."""


@dataclass(frozen=True)
class Part:
    """A part of a case that is reviewed in one go: a structure; of other kinds, all that an image has.

    Attributes
    ----------
    name : str
        Of the structure; empty where there is but one part.
    total : int
        Disputed items, those settled included.
    open, skipped : int
        Items that are still to be settled: not looked at yet, and skipped.
    matter : int or None
        Those of them on which a decision matters; None where that is not told.
    """

    name: str
    total: int
    open: int
    skipped: int = 0
    matter: int | None = None

    @property
    def left(self) -> int:
        """How many items are still to be settled."""
        return self.open + self.skipped

    def waiting(self, *, skipped: bool) -> int:
        """Count what is still to be settled, of what was skipped or of what was not."""
        return self.skipped if skipped else self.open


def left_in_words(parts: Sequence[Part], item: str) -> tuple[str, ...]:
    """Say what is left to be settled in a study, a line each: "3 of 24 disputed spots matter", "2 skipped".

    Parameters
    ----------
    parts : sequence of Part
        Of all units.
    item : str
        What is settled, for one: "disputed spot".
    """
    left, skipped = sum(part.left for part in parts), sum(part.skipped for part in parts)
    matter = [part.matter for part in parts if part.matter is not None]
    words = f"{left:,} left in the study"
    if matter and left:
        several, matters = ("s" if left > 1 else ""), ("matters" if 1 in (left, sum(matter)) else "matter")
        words = f"{sum(matter):,} of {left:,} {item}{several} {matters}"
    return (words, f"{skipped:,} skipped") if skipped else (words,)


def next_item(
    waiting: Callable[[bool], Sequence[int]],
    rank: Callable[[int], Any],
    here: Any | None,
    step: int,
    elsewhere: Elsewhere,
    *,
    finish: bool,
) -> int | None:
    """Find the next item to be settled here, or go on elsewhere.

    First comes what was not skipped: what is ahead here, then all that is elsewhere, then what is behind.
    After a decision, what is behind here comes before what is elsewhere, so that an image is finished first.
    What was skipped comes when nothing else is left, in the same order. What is settled never comes.

    Parameters
    ----------
    waiting : callable
        ``waiting(skipped)`` lists the items here that are still to be settled, without the current one.
    rank : callable
        By which items are walked.
    here : optional
        Rank of the current item; None where none is.
    step : int
        1 for the next, -1 for the one before.
    elsewhere : callable
        ``elsewhere(step, skipped, finish)`` goes to the next unit with such items, and tells whether there
        is one.
    finish : bool
        Whether the step follows a decision.

    Returns
    -------
    int or None
        The item to go to; `ELSEWHERE` where the next one is elsewhere, None where none is left anywhere.
    """
    for skipped in (False, True):
        order = sorted(waiting(skipped), key=rank, reverse=step < 0)
        ahead = [item for item in order if here is None or (rank(item) > here) == (step > 0)]
        if ahead or (finish and order):
            return (ahead or order)[0]
        if elsewhere(step, skipped, finish):
            return ELSEWHERE
        if order:
            return order[0]
    return None


def ends(rows: NDArray[np.integer], here: int | None, step: int) -> list[int]:
    """Give those of many rows among which `next_item` chooses: the next one ahead and the first of all."""
    if not len(rows):
        return []
    ahead = rows if here is None else rows[rows > here] if step > 0 else rows[rows < here]
    place = 0 if step > 0 else -1
    return sorted({int(one[place]) for one in (ahead, rows) if len(one)})


def next_unit(units: Sequence[tuple[Key, Part]], here: Hashable, step: int, *, skipped: bool) -> Key | None:
    """Find the next unit with something to be settled after the one on screen, round the end; None without.

    Parameters
    ----------
    units : sequence of (key, Part)
        In the order of the queue.
    here : hashable
        Key of the unit on screen.
    step : int
    skipped : bool
        Whether what was skipped is looked for, or what was not.
    """
    keys = [key for key, _ in units]
    at = keys.index(here) if here in keys else -1
    after = units[at + 1 :] if step > 0 else units[: max(at, 0)][::-1]
    before = units[: max(at, 0)] if step > 0 else units[at + 1 :][::-1]
    found = (key for key, part in (*after, *before) if part.waiting(skipped=skipped))
    return next(found, None)
