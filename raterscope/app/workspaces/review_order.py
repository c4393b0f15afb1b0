"""Order of review: the lines of the queue, the next disputed item, and the number of remaining items."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal

from raterscope.algorithms.progress import Watch
from raterscope.app.assessment import MATTERS
from raterscope.app.document import Document
from raterscope.app.review import ReviewState
from raterscope.app.session import LatestTask
from raterscope.app.study import Study
from raterscope.app.workers import free_gradually
from raterscope.app.workspaces.runs import RunControl
from raterscope.widgets.panels.queue_items import QueuedItems, QueueItem
from raterscope.widgets.panels.queue_panel import QueueFrame

Elsewhere = Callable[[int, bool, bool], bool]
Key = TypeVar("Key", bound=Hashable)

BLOCK = 10_000
"""Number of rows to search at a time."""

ELSEWHERE = -1
"""Returned instead of an item if the review continues in another unit."""


@dataclass(frozen=True)
class Part:
    """A part of a case that is reviewed together: a structure; for other kinds, the whole item."""

    name: str  # name of the structure; empty if there is one part only
    total: int  # disputed and decided items
    # open, skipped: numbers of undecided items: not viewed yet, and skipped
    open: int
    skipped: int = 0
    matter: int | None = None  # number on which a decision matters; None if unknown

    @property
    def remaining(self) -> int:
        """Number of undecided items."""
        return self.open + self.skipped

    def waiting(self, *, skipped: bool) -> int:
        """Return the number of undecided items: the skipped ones, or the others."""
        return self.skipped if skipped else self.open


def describe_remaining(parts: Sequence[Part], item: str, contested: int = 0) -> tuple[str, ...]:
    """Describe the remaining items, one line each: "3 of 24 disputed spots matter".

    `parts`: parts of all units. `item`: name of an item, in the singular: "disputed spot". `contested`:
    number of items with conflicting decisions of experts, which come first: "7 contested".
    """
    remaining = sum(part.remaining for part in parts)
    matter = [part.matter for part in parts if part.matter is not None]
    text = f"{remaining:,} left in the study"
    if matter and remaining:
        several = "s" if remaining > 1 else ""
        matters = "matters" if 1 in (remaining, sum(matter)) else "matter"
        text = f"{sum(matter):,} of {remaining:,} {item}{several} {matters}"
    return (f"{contested:,} contested", text) if contested else (text,)


def next_item(
    waiting: Callable[[bool], Sequence[int]],
    rank: Callable[[int], Any],
    current: Any | None,
    step: int,
    elsewhere: Elsewhere,
    *,
    finish: bool,
) -> int | None:
    """Find the next item to decide in this unit, or continue in another (`ELSEWHERE`); None without any.

    Items that were not skipped come first: later items of this unit, then other units, then earlier items of
    this unit. After a decision, earlier items come before other units, to finish an image first. Skipped
    items come last, in the same order. Decided items never come. `waiting`: lists the skipped, or the other,
    undecided items of this unit, without the current one. `rank`: sort key of the items. `current`: rank of
    the current item; None without one. `step`: 1 for the next item, -1 for the previous. `elsewhere`: goes to
    the next unit with such items, and returns whether there is one. `finish`: whether the step follows a
    decision.
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


def candidate_rows(
    waits: Callable[[slice], NDArray[np.bool_]], count: int, current: int | None, step: int
) -> list[int]:
    """Return the rows among which `next_item` chooses: the next undecided row and the first of all.

    `waits`: returns which rows of a block are undecided; of millions of rows, few blocks are examined.
    """
    begin, end = (0, count) if current is None else (current + 1, count) if step > 0 else (0, current)
    ahead = _first_row(waits, begin, end, step)
    return sorted({row for row in (ahead, _first_row(waits, 0, count, step)) if row is not None})


def _first_row(waits: Callable[[slice], NDArray[np.bool_]], begin: int, end: int, step: int) -> int | None:
    """Return the first undecided row of a range; the last one for a step of -1."""
    starts = range(begin, end, BLOCK)
    for start in starts if step > 0 else reversed(starts):
        rows = np.flatnonzero(waits(slice(start, min(start + BLOCK, end))))
        if len(rows):
            return start + int(rows[0 if step > 0 else -1])
    return None


def next_unit(
    units: Sequence[tuple[Key, Part]], current: Hashable, step: int, *, skipped: bool
) -> Key | None:
    """Find the next unit with undecided items after the current one, cyclically; None without any.

    `units`: keys and parts of the units, in the order of the queue.
    `current`: key of the unit on screen.
    `skipped`: whether to look for skipped items, or for the others.
    """
    at = next((row for row, (key, _) in enumerate(units) if key == current), -1)
    before, after = range(max(at, 0)), range(at + 1, len(units))
    rows = chain(after, before) if step > 0 else chain(reversed(before), reversed(after))
    return next((units[row][0] for row in rows if units[row][1].waiting(skipped=skipped)), None)


@dataclass(frozen=True)
class Disputed:
    """The disputed items of a question."""

    items: Collection[str]  # a mapping contains the probability of an error on each
    matter: int | None  # those on which a decision matters; None if unknown

    def count_relevant(self, names: Iterable[str]) -> int:
        """Count the items on which a decision matters."""
        items = self.items
        if not isinstance(items, Mapping):
            return 0
        return sum(items.get(name, 0.0) >= MATTERS for name in names)


Read = Callable[[int, Study], Collection[str] | None]
Settled = Callable[[ReviewState, int], tuple[Collection[str], Collection[str]]]
Contested = Callable[[ReviewState, int], Mapping[str, str]]


class RemainingQuestions(QObject):
    """Number of undecided disputed items of each question, shown above the queue.

    `kind`: kind of annotation. `read`: returns the disputed items of a question; None if it is not fused. A
    mapping contains the expected number of errors that a decision on each corrects. `settled`: returns the
    decided and the skipped items. `contested`: returns the items with conflicting decisions of experts, and
    these decisions.
    `noun`: name of an item. `waits`: word for items that wait for a decision. `tip`: definition of the
    decisions that matter.
    """

    changed = Signal()  # the counts may have changed
    read = Signal()  # the disputed items were read

    def __init__(
        self, document: Document, runs: RunControl, queue: QueueFrame, kind: str, read: Read,
        settled: Settled, contested: Contested, *, noun: str, waits: str = "", tip: str = "",
    ) -> None:  # fmt: skip
        super().__init__(runs)
        self._document, self._queue, self._kind = document, queue, kind
        self._read_one, self._settled, self._contested = read, settled, contested
        self._noun, self._waits, self._tip = f"{waits} {noun}".strip(), f"{waits} left".strip(), tip
        self._disputed: Mapping[int, Disputed | None] = {}
        self._task = LatestTask()
        self._current: int | None = None
        runs.session.run_chosen.connect(self.reread)

    def reread(self) -> None:
        """Read the results again after a change of runs."""
        self._task.cancel()
        if self._document.contents is None:
            self._disputed = {}
            self.recount()
            return
        numbers = tuple(self.names)
        job = self._document.ask("Counting undecided items", partial(_read_all, self._read_one, numbers))
        self._task.follow(job, self._on_read)

    @property
    def disputed(self) -> dict[int, Mapping[str, float]]:
        """Probability of an error on each disputed item, by question and name."""
        return {
            question: disputed.items
            for question, disputed in self._disputed.items()
            if disputed is not None and isinstance(disputed.items, Mapping)
        }

    @property
    def names(self) -> dict[int, str]:
        """Names of the questions."""
        return {question.id: question.name for question in self._document.items(self._kind)}

    @property
    def settled(self) -> dict[int, tuple[Collection[str], Collection[str]]]:
        """The decided and the skipped items of each question."""
        review = self._document.review
        return {question: self._settled(review, question) for question in self._disputed}

    def select(self, question: int | None) -> None:
        """Set the question on screen."""
        self._current = question
        self.recount()

    def units(self) -> list[tuple[int, Part]]:
        """List the fused questions, in order, with the remaining items of each."""
        review = self._document.review
        return [
            (question.id, self._part(review, question.id, disputed))
            for question in self._document.items(self._kind)
            if (disputed := self._disputed.get(question.id)) is not None
        ]

    def recount(self) -> None:
        """Show the progress of the review above the queue."""
        units, questions = dict(self.units()), [*self.names]
        words = []
        if self._current in questions:
            part, position = units.get(self._current), questions.index(self._current) + 1
            progress = (
                "not fused yet"
                if part is None
                else f"{part.total - part.remaining:,} decided, {part.remaining:,} {self._waits}"
            )
            words.append(
                f"Question {position:,} of {len(questions):,}: {progress}" if len(questions) > 1 else progress
            )
        total = sum(part.total for part in units.values())
        remaining = sum(part.remaining for part in units.values())
        if units:
            words += describe_remaining(tuple(units.values()), self._noun, self._count_contested(units))
        skipped = sum(part.skipped for part in units.values())
        share = (total - remaining) / total if total else 0.0
        self._queue.set_progress(share, *words, skipped=skipped, tip=self._tip)
        self.changed.emit()

    def _count_contested(self, questions: Collection[int]) -> int:
        review = self._document.review
        return sum(len(self._contested(review, question)) for question in questions)

    def nothing_left(self) -> str:
        """Return the message that no undecided item is left, or why."""
        units = self.units()
        remaining = sum(part.remaining for _, part in units)
        if remaining > 1:
            return f"No other item of the list is undecided. Clear the filter to see all {remaining:,}."
        if remaining:
            return "No other item of this study is undecided."
        if self._document.contents is None or len(units) < len(self.names):
            return "No fused item is undecided. Press Fuse (F5) to fuse the rest."
        return "Nothing disputed is left in this study."

    def _part(self, review: ReviewState, question: int, disputed: Disputed) -> Part:
        """Return the part of a question, counted from the decisions: few of a million items are decided."""
        decided, skips = self._settled(review, question)
        contested = self._contested(review, question).keys() - decided
        others = sum(name not in disputed.items for name in (*decided, *contested))
        skipped = sum(name in disputed.items or name in contested for name in {*skips}.difference(decided))
        matter = disputed.matter
        if matter is not None:
            matter -= disputed.count_relevant(decided)
            matter += len(contested) - disputed.count_relevant(contested)
        total = len(disputed.items) + others
        return Part("", total, total - len(decided) - skipped, skipped, matter)

    def _on_read(self, disputed: Mapping[int, Disputed | None]) -> None:
        self._disputed = disputed
        self.recount()
        self.read.emit()


def _read_all(
    read: Read, questions: tuple[int, ...], study: Study, watch: Watch
) -> dict[int, Disputed | None]:
    disputed: dict[int, Disputed | None] = {}
    for done, question in enumerate(questions):
        watch(done / len(questions), "counting")
        items = read(question, study)
        chances = items.values() if isinstance(items, Mapping) else None
        matter = None if chances is None else sum(chance >= MATTERS for chance in chances)
        disputed[question] = None if items is None else Disputed(items, matter)
    return disputed


Unit = tuple[tuple[int, str], Part]
"""A part that is reviewed together, with its image and name."""


class Summary(Protocol):
    """Summary of an image for its line in the queue."""

    @property
    def fused(self) -> bool:
        """Whether the image is fused."""

    @property
    def disputed(self) -> int:
        """Number of remaining disputed items."""

    @property
    def parts(self) -> Sequence[Part]:
        """Parts that are each reviewed together; none if the image is not fused."""

    @property
    def doubt(self) -> float:
        """Sort key of the lines."""

    @property
    def amount(self) -> str:
        """The doubt with its unit, which is the same in all lines."""

    @property
    def contested(self) -> int:
        """Number of items with conflicting decisions of experts."""

    @property
    def done(self) -> bool:
        """Whether no disputed item remains."""

    @property
    def flag(self) -> str | None:
        """Reason of the flag; None without a flag."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Numbers for the filters of the queue."""

    def in_words(self) -> str:
        """Describe the image in one line."""


@dataclass
class Totals:
    """Sums over the images of a queue; after a decision, only one image is counted again."""

    fused: int = 0
    done: int = 0
    disputed: int = 0
    parts: int = 0
    open: int = 0
    skipped: int = 0
    matter: int = 0
    with_matter: int = 0
    contested: int = 0

    def add(self, summary: Summary, parts: Sequence[Part], sign: int = 1) -> None:
        """Add the numbers of an image; a sign of -1 subtracts them."""
        self.fused += sign * summary.fused
        self.done += sign * summary.done
        self.disputed += sign * summary.disputed
        self.contested += sign * summary.contested
        for part in parts:
            self.parts += sign * part.total
            self.open += sign * part.open
            self.skipped += sign * part.skipped
            self.matter += sign * (part.matter or 0)
            self.with_matter += sign * (part.matter is not None)

    def part(self) -> Part:
        """Return the sum of all parts as one part."""
        matter = self.matter if self.with_matter else None
        return Part("", self.parts, self.open, self.skipped, matter)


class QueueLines:
    """Summaries of the images of a queue, their order, and the sums over all.

    For 10,000 images this takes longer than a frame: create it in another thread.

    `names`: names of the images. `unknown`: summary of an image without a result. `summaries`: summaries of
    the other images; there may be more than names. `short`: short names, as in earlier lines.
    """

    def __init__(
        self,
        names: Mapping[int, str],
        unknown: Summary,
        summaries: Mapping[int, Summary],
        short: Mapping[str, str],
    ) -> None:
        self.names = names
        self._unknown = unknown
        self.summaries = dict(summaries)
        self.totals = Totals()
        self._parts: dict[int, tuple[Part, ...]] = {}
        self._items: dict[int, QueueItem] = {}
        for image in names:
            summary = self.of(image)
            self._parts[image] = tuple(summary.parts)
            self.totals.add(summary, self._parts[image])
            self._items[image] = self._line(image)
        self.sort(short)
        self.units()

    def release(self) -> None:
        """Release the data of the images, when the lines are no longer used."""
        free_gradually(self.summaries, self._parts, self._items)

    def sort(self, short: Mapping[str, str]) -> None:
        """Sort by dispute, after images with conflicting decisions of experts; equal ones as imported."""
        self.order = tuple(sorted(self.names, key=self._rank))
        self._position = {image: position for position, image in enumerate(self.order)}
        self.queued = QueuedItems([self._items[image] for image in self.order], short)
        self._units: list[Unit] | None = None
        self._first_unit: dict[int, int] = {}

    def _rank(self, image: int) -> tuple[bool, float, int]:
        summary = self.of(image)
        return not summary.contested, -summary.doubt, image

    def of(self, image: int) -> Summary:
        """Return the summary of an image."""
        return self.summaries.get(image, self._unknown)

    def line(self, image: int) -> QueueItem:
        """Return the line of an image."""
        return self._items[image]

    def parts(self, image: int) -> tuple[Part, ...]:
        """Return the parts of an image."""
        return self._parts[image]

    def position(self, image: int | None) -> int | None:
        """Return the position of an image; None if it is not in the queue."""
        return None if image is None else self._position.get(image)

    def update(self, summaries: Mapping[int, Summary]) -> list[int]:
        """Replace summaries without sorting, and return the images whose summaries changed."""
        changed = [image for image, summary in summaries.items() if summary != self.summaries.get(image)]
        for image in changed:
            before, summary = self.of(image), summaries[image]
            self.summaries[image] = summary
            if image in self._parts:
                parts = self._parts[image]
                self.totals.add(before, parts, -1)
                self._parts[image] = tuple(summary.parts)
                self.totals.add(summary, self._parts[image])
                self._items[image] = self._line(image)
                self._replace_units(image, len(parts))
        return changed

    def units(self) -> Sequence[Unit]:
        """Return the parts by image and name, in the order of the queue."""
        if self._units is None:
            self._units = []
            for image in self.order:
                self._first_unit[image] = len(self._units)
                self._units += self._units_of(image)
        return self._units

    def most_disputed(self) -> int | None:
        """Return the first image with remaining disputed items."""
        return next((image for image in self.order if self.of(image).disputed), None)

    def _replace_units(self, image: int, before: int) -> None:
        units, first = self._units_of(image), self._first_unit.get(image)
        if self._units is None or first is None or len(units) != before:
            self._units = None
        else:
            self._units[first : first + before] = units

    def _units_of(self, image: int) -> list[Unit]:
        return [((image, part.name), part) for part in self._parts[image]]

    def _line(self, image: int) -> QueueItem:
        summary = self.of(image)
        return QueueItem(
            key=image,
            title=self.names[image],
            detail=summary.in_words(),
            score=summary.doubt if summary.fused else None,
            done=summary.done,
            flag=summary.flag,
            counts=summary.counts,
            amount=summary.amount if summary.fused and not summary.done else "",
        )
