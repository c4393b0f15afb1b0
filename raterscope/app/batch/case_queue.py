"""Queue of a cohort's cases, taken in groups of as much work as a task should have."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from raterscope.app.batch.manifest import Case
from raterscope.app.batch.task import GroupRecord

_NEWEST = 0.3
"""Weight of a group's seconds for each case against those of earlier groups."""


@dataclass(frozen=True)
class Attempt:
    """A case to process.

    Attributes
    ----------
    case : Case
    number : int
        From 1.
    alone : bool
        In no group, because its worker may die of it.
    """

    case: Case
    number: int = 1
    alone: bool = False


class CaseQueue:
    """Cases that wait, first in, first out.

    Parameters
    ----------
    cases : sequence of Case
    """

    def __init__(self, cases: Sequence[Case]) -> None:
        self._waiting = deque(Attempt(case) for case in cases)
        self._seconds: float | None = None

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def take(self, slots: int, seconds: float) -> list[Attempt]:
        """Take the next group. Groups shrink towards the end, so that no worker waits long for another.

        Parameters
        ----------
        slots : int
            Groups at work at a time.
        seconds : float
            Of a group, by the time of earlier cases; 0 for a single case.
        """
        group = [self._waiting.popleft()]
        size = 1
        if self._seconds is not None and seconds > 0:
            share = math.ceil(len(self._waiting) / (2 * slots))
            size = min(share, int(seconds / max(self._seconds, 1e-6)))
        while len(group) < size and self._waiting and not (group[0].alone or self._waiting[0].alone):
            group.append(self._waiting.popleft())
        return group

    def put_back(self, group: Iterable[Attempt], *, alone: bool = False) -> None:
        """Let cases wait again, behind the others."""
        self._waiting.extend(replace(entry, alone=entry.alone or alone) for entry in group)

    def note(self, group: GroupRecord) -> None:
        """Learn the seconds for each case."""
        newest = group.seconds / len(group.records)
        if self._seconds is not None:
            newest = self._seconds + _NEWEST * (newest - self._seconds)
        self._seconds = newest
