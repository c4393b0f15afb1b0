"""The order of review, from one disputed item to the next, and what remains to be decided."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal

from raterscope.algorithms.progress import Watch
from raterscope.app.contents import Contents
from raterscope.app.disputes import MATTERS
from raterscope.app.document import Document
from raterscope.app.review import ReviewState
from raterscope.app.session import LatestTask
from raterscope.app.study import Study
from raterscope.app.workspaces.runs import RunControl
from raterscope.widgets.panels.queue_panel import QueueFrame

__all__ = [
    "ELSEWHERE",
    "Elsewhere",
    "Part",
    "RemainingQuestions",
    "ends",
    "left_in_words",
    "next_item",
    "next_unit",
]


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
    remaining, skipped = sum(part.left for part in parts), sum(part.skipped for part in parts)
    matter = [part.matter for part in parts if part.matter is not None]
    words = f"{remaining:,} left in the study"
    if matter and remaining:
        several, matters = (
            ("s" if remaining > 1 else ""),
            ("matters" if 1 in (remaining, sum(matter)) else "matter"),
        )
        words = f"{sum(matter):,} of {remaining:,} {item}{several} {matters}"
    return (words, f"{skipped:,} skipped") if skipped else (words,)


def next_item(
    waiting: Callable[[bool], Sequence[int]],
    rank: Callable[[int], Any],
    current: Any | None,
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
        ahead = [item for item in order if current is None or (rank(item) > current) == (step > 0)]
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
    end = 0 if step > 0 else -1
    return sorted({int(some[end]) for some in (ahead, rows) if len(some)})


def next_unit(
    units: Sequence[tuple[Key, Part]], current: Hashable, step: int, *, skipped: bool
) -> Key | None:
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
    at = keys.index(current) if current in keys else -1
    after = units[at + 1 :] if step > 0 else units[: max(at, 0)][::-1]
    before = units[: max(at, 0)] if step > 0 else units[at + 1 :][::-1]
    keys_left = (key for key, part in (*after, *before) if part.waiting(skipped=skipped))
    return next(keys_left, None)


Read = Callable[[int, Study], Collection[str] | None]
Settled = Callable[[ReviewState, int], tuple[Collection[str], Collection[str]]]


class RemainingQuestions(QObject):
    """Counts what is disputed in each question and still to be decided, and says so above the queue.

    Parameters
    ----------
    document : Document
    runs : RunControl
    queue : QueueFrame
    kind : str
        Of annotation.
    read : callable
        ``read(question, study)`` names the disputed items of a question; None where it is not fused. A
        mapping says how many wrong answers a decision on each is expected to set right.
    settled : callable
        ``settled(review, question)`` names the items that are decided, and those that were skipped.
    noun : str
        What an item is called.
    tip : str
        Definition of the decisions that matter.

    Signals
    -------
    changed
    """

    changed = Signal()

    def __init__(
        self, document: Document, runs: RunControl, queue: QueueFrame, kind: str, read: Read,
        settled: Settled, *, noun: str, tip: str = "",
    ) -> None:  # fmt: skip
        super().__init__(runs)
        self._document, self._queue, self._kind = document, queue, kind
        self._read, self._settled = read, settled
        self._noun, self._tip = noun, tip
        self._disputed: Mapping[int, Collection[str] | None] = {}
        self._task = LatestTask()
        self._current: int | None = None
        runs.changed.connect(self.reread)
        runs.session.run_chosen.connect(self.reread)

    def reread(self) -> None:
        """Read the results again: others came, went or are shown."""
        self._task.cancel()
        contents = self._document.contents
        if contents is None:
            self._disputed = {}
            self.recount()
            return
        numbers = tuple(question.id for question in contents.of(self._kind))
        job = self._document.ask("Counting undecided items", partial(_read_all, self._read, numbers))
        self._task.follow(job, self._on_read)

    def select(self, question: int | None) -> None:
        """Name the question on screen."""
        self._current = question
        self.recount()

    def units(self) -> list[tuple[int, Part]]:
        """List the questions with what is left in each, in their order; those not fused are left out."""
        contents = self._document.contents
        if contents is None:
            return []
        return [
            (question.id, self._part(contents, question.id, disputed))
            for question in contents.of(self._kind)
            if (disputed := self._disputed.get(question.id)) is not None
        ]

    def recount(self) -> None:
        """Say above the queue how far the review has come."""
        contents, units = self._document.contents, dict(self.units())
        questions = [question.id for question in contents.of(self._kind)] if contents else []
        words = []
        if units and self._current in questions:
            part, position = units.get(self._current), questions.index(self._current) + 1
            progress = (
                "not fused yet" if part is None else f"{part.total - part.left:,} of {part.total:,} decided"
            )
            words.append(
                f"Question {position:,} of {len(questions):,}: {progress}" if len(questions) > 1 else progress
            )
        total, remaining = (
            sum(part.total for part in units.values()),
            sum(part.left for part in units.values()),
        )
        if units:
            words += left_in_words(tuple(units.values()), self._noun)
        self._queue.set_progress((total - remaining) / total if total else 0.0, *words, tip=self._tip)
        self.changed.emit()

    def nothing_left(self) -> str:
        """Say that nothing is left to go to, or why."""
        contents, units = self._document.contents, self.units()
        if any(part.left for _, part in units):
            return "Nothing else waits for a decision in this study."
        if contents is None or len(units) < len(contents.of(self._kind)):
            return "Nothing fused waits for a decision; press Fuse (F5) for the rest."
        return "Nothing disputed is left in this study."

    def _part(self, contents: Contents, question: int, disputed: Collection[str]) -> Part:
        decided, passed = self._settled(contents.review, question)
        done = sum(name in disputed for name in decided)
        skipped = sum(name in disputed and name not in decided for name in passed)
        matter = None
        if isinstance(disputed, Mapping):
            matter = sum(value >= MATTERS and name not in decided for name, value in disputed.items())
        return Part("", len(disputed), len(disputed) - done - skipped, skipped, matter)

    def _on_read(self, disputed: Mapping[int, Collection[str] | None]) -> None:
        self._disputed = disputed
        self.recount()


def _read_all(
    read: Read, questions: tuple[int, ...], study: Study, watch: Watch
) -> dict[int, Collection[str] | None]:
    disputed = {}
    for done, question in enumerate(questions):
        watch(done / len(questions), "counting")
        disputed[question] = read(question, study)
    return disputed
