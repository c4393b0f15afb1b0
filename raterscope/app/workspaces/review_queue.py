"""The review queue: items with the most disputed first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

from PySide6.QtCore import QObject, QTimer, Signal

from raterscope.algorithms.progress import Watch
from raterscope.app.document import Document
from raterscope.app.errors import counted
from raterscope.app.review import ReviewState
from raterscope.app.session import LatestTask
from raterscope.app.study import Study
from raterscope.app.workspaces.review_order import Part, describe_remaining
from raterscope.widgets.panels.queue_items import QueueItem
from raterscope.widgets.panels.queue_panel import QueuePanel

AT_ONCE = 8

Read = Callable[[Sequence[int], Study, Watch], Mapping[int, Any]]


class Summary(Protocol):
    """Summary of an image for its line in the queue."""

    @property
    def fused(self) -> bool:
        """Whether the image is fused."""

    @property
    def disputed(self) -> int:
        """Number of disputed items that are left."""

    @property
    def parts(self) -> Sequence[Part]:
        """Parts that are reviewed in one go each; none if it is not fused."""

    @property
    def doubt(self) -> float:
        """Sort key of the lines."""

    @property
    def done(self) -> bool:
        """Whether nothing is left to settle."""

    @property
    def flag(self) -> str | None:
        """Why it was flagged; None if it is not."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Numbers by which the queue can be filtered."""

    def in_words(self) -> str:
        """Describe the image in a line."""


class ReviewQueue(QObject):
    """Keeps the lines of the queue up to date with runs and decisions.

    Results are read a few images at a time, so that a decision never waits for all of them. If outlines of
    all can be read at once, the lines are in order before.

    Parameters
    ----------
    document : Document
    panel : QueuePanel
    kind : str
        Kind of annotation.
    read : callable
        ``read(images, study, watch)`` reads the results of images, in the study's thread.
    summarize : callable
        ``summarize(image, result, review)`` returns a line's Summary; with None as result, that of an image
        without any.
    outline : callable, optional
        ``outline(images, study, watch)`` quickly reads outlines of results, of the images that have one.
    nouns : (str, str)
        Names of an item and of what is settled on it: "image" and "spot".
    tip : str
        Definition of the decisions that matter.

    Signals
    -------
    ordered
        All lines are known and in order.
    all_read
        The results of all lines have been read.
    """

    ordered = Signal()
    all_read = Signal()

    def __init__(
        self,
        document: Document,
        panel: QueuePanel,
        kind: str,
        read: Read,
        summarize: Callable[[int, Any, ReviewState], Summary],
        parent: QObject | None = None,
        *,
        outline: Read | None = None,
        nouns: tuple[str, str],
        tip: str = "",
    ) -> None:
        super().__init__(parent)
        self._document = document
        self.panel = panel
        self._kind = kind
        self._read = read
        self._summarized = summarize
        self._outline = outline
        self._nouns = nouns
        self._tip = tip
        self._results: dict[int, Any] = {}
        self._outlines: dict[int, Any] = {}
        """Outlines, until results are read."""
        self._outlining, self._reading = LatestTask(), LatestTask()
        self._names: dict[int, str] = {}
        self._summaries: dict[int, Summary] = {}
        """Summaries of images with results or outlines."""
        self._unknown = summarize(0, None, ReviewState())
        """Summary of every other image."""
        self._lines: dict[int, QueueItem] = {}
        self._parts: dict[int, tuple[Part, ...]] = {}
        self._totals = _Totals()
        self._changed: dict[int, None] = {}
        """Images whose lines must be updated."""
        self._order: tuple[int, ...] = ()
        self._position: dict[int, int] = {}
        self._waiting: list[int] = []
        self.current: int | None = None
        self._part = ""

    @property
    def results(self) -> Mapping[int, Any]:
        """Results by image, as far as they are read."""
        return dict(self._results)

    def reset(self) -> None:
        """Drop everything: another study is open. `reread` lists its images."""
        self._outlining.cancel()  # images of another study have the same numbers
        self._reading.cancel()
        for cache in (self._results, self._outlines, self._summaries, self._changed):
            cache.clear()
        self.current = None
        self._waiting = []

    def reread(self, images: Sequence[int]) -> None:
        """Read the latest results of images again, and missing results."""
        contents = self._document.contents
        entries = () if contents is None else contents.of(self._kind)
        self._names = {entry.id: entry.name for entry in entries}
        for image in images:
            self._results.pop(image, None)
            self._outlines.pop(image, None)
        self._waiting = [image for image in self._names if image not in self._results]
        self._sort()
        if contents is None or self._outline is None or not self._waiting:
            self._read_on()
            return
        work = partial(_outline_and_summarize, self._outline, self._summarized, tuple(self._waiting))
        job = self._document.ask("Reading answers", partial(work, contents.review))
        self._outlining.follow(job, self._on_outlines, stopped=self._on_outlined)

    def decided(self, *images: int) -> None:
        """Update the lines of images after a decision, a few at a time, with events in between."""
        self._changed.update(dict.fromkeys(images))
        self._update_some()

    def _update_some(self) -> None:
        images = list(self._changed)[:AT_ONCE]
        if not images:
            return
        for image in images:
            del self._changed[image]
            if self._summarize(image) and image in self._lines:
                self._lines[image] = self._line(image)
                self.panel.update_item(self._lines[image])
        if self._changed:
            QTimer.singleShot(0, self, self._update_some)
        else:
            self.panel.set_current(self.current)
            self._show_progress()

    def select(self, image: int | None) -> None:
        """Mark the image that is on screen."""
        self.current = image
        self.panel.set_current(image)
        self._show_progress()

    def select_part(self, name: str) -> None:
        """Set the part of the image on screen that is reviewed: its structure."""
        if name != self._part:
            self._part = name
            self._show_progress()

    def step(self, by: int) -> None:
        """Go to the next or previous image of the queue."""
        items = self.panel.shown()
        row = self.panel.row_of(self.current)
        following = min(max((-1 if row is None else row) + by, 0), len(items) - 1)
        if items and following != row:
            self.panel.item_chosen.emit(items[following].key)

    def after(self, image: int | None) -> int | None:
        """Return the image that is likely to be shown next."""
        items, row = self.panel.shown(), self.panel.row_of(image)
        following = 0 if row is None else row + 1
        key = items[following].key if following < len(items) else None
        return key if isinstance(key, int) else None

    def most_disputed(self) -> int | None:
        """Return the first image of the queue that still has something disputed."""
        return next((image for image in self._order if self._summary(image).disputed), None)

    def units(self) -> list[tuple[tuple[int, str], Part]]:
        """Return the parts by image and name, in the order of the queue."""
        parts = self._parts
        return [((image, part.name), part) for image in self._order for part in parts.get(image, ())]

    def nothing_left(self) -> str:
        """Return the message that nothing is left to go to, or why that is not known yet."""
        (image, item), totals = self._nouns, self._totals
        unfused = len(self._order) - totals.fused
        if self._reading.busy or self._waiting:
            return "Results are still being read. Try again in a moment."
        if totals.disputed:
            return f"No other disputed {item} is left in this study."
        if not totals.fused:
            return f"Press Fuse (F5) to find disputed {item}s."
        if unfused:
            are = "is" if unfused == 1 else "are"
            return (
                f"Nothing fused is disputed. {counted(unfused, image)} {are} not fused yet: press Fuse (F5)."
            )
        return "Nothing disputed is left in this study."

    def _read_on(self) -> None:
        if self._reading.busy or not self._waiting:
            return
        batch, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
        job = self._document.ask("Reading results", partial(self._read, batch))
        self._reading.follow(job, self._on_results, stopped=self._on_read)

    def take(self, results: Mapping[int, Any]) -> None:
        """Show results that are not in the study, until results are read again."""
        self._results.update(results)
        for image in results:
            self._outlines.pop(image, None)
        self._take_up(results)

    def _on_outlines(self, outlined: _Outlined) -> None:
        outlines, summaries, review = outlined
        contents = self._document.contents
        if contents is None or contents.review is not review:  # a decision was made meanwhile
            summaries = {}
        self._outlines = {image: outline for image, outline in outlines.items() if image not in self._results}
        self._take_up(self._outlines, summaries)
        self._on_outlined()

    def _on_outlined(self) -> None:
        if self._document.contents is not None:
            if set(self._waiting) <= self._outlines.keys():
                self.ordered.emit()
            self._read_on()

    def _on_results(self, results: Mapping[int, Any]) -> None:
        self.take(results)
        self._on_read()

    def _on_read(self) -> None:
        if self._document.contents is not None:
            self._read_on()
            if not self._reading.busy:
                self.ordered.emit()
                self.all_read.emit()

    def _take_up(self, images: Iterable[int], summaries: Mapping[int, Summary] = {}) -> None:
        """Summarize images again, those without a summary, and sort the queue if a summary changed."""
        changed = [image for image in images if self._summarize(image, summaries.get(image))]
        if changed:
            self._sort()

    def _summary(self, image: int) -> Summary:
        return self._summaries.get(image, self._unknown)

    def _summarize(self, image: int, summary: Summary | None = None) -> bool:
        """Take the summary of an image, or summarize it again; returns whether it changed."""
        contents, result = self._document.contents, self._results.get(image, self._outlines.get(image))
        if contents is None or result is None:
            return False
        previous = self._summaries.get(image)
        if summary is None:
            summary = self._summarized(image, result, contents.review)
        if summary == previous:
            return False
        self._summaries[image] = summary
        if image in self._lines:
            self._totals.subtract(previous or self._unknown, self._parts[image])
            self._parts[image] = tuple(summary.parts)
            self._totals.add(summary, self._parts[image])
        return True

    def _line(self, image: int) -> QueueItem:
        summary = self._summary(image)
        return QueueItem(
            key=image,
            title=self._names[image],
            detail=summary.in_words(),
            score=summary.doubt if summary.fused else None,
            done=summary.done,
            flag=summary.flag,
            counts=summary.counts,
        )

    def _sort(self) -> None:
        """Sort by dispute, the most disputed first. A decision moves no line."""
        self._totals = _Totals()
        doubts = {}
        for image in self._names:
            summary = self._summary(image)
            doubts[image] = -summary.doubt
            self._parts[image] = tuple(summary.parts)
            self._totals.add(summary, self._parts[image])
        self._order = tuple(sorted(self._names, key=lambda image: (doubts[image], self._names[image])))
        self._position = {image: position for position, image in enumerate(self._order)}
        self._lines = {image: self._line(image) for image in self._order}
        self.panel.set_items(list(self._lines.values()))
        self.panel.set_current(self.current)
        self._show_progress()

    def _show_progress(self) -> None:
        """Show the progress of the review: of the image on screen, of the study, and the number settled."""
        count, totals = len(self._order), self._totals
        if not count:
            self.panel.set_progress(0.0)
            return
        (image, item), unfused, position = self._nouns, count - totals.fused, self._position_words()
        words = [position] if position else []
        if totals.disputed:
            words += describe_remaining([totals.part()], f"disputed {item}")
        elif not unfused:
            words.append(f"no disputed {item} left")
        elif totals.fused:
            words.append(f"{unfused:,} not fused yet")
        elif not position:
            words.append("not fused yet")
        words.append(f"{totals.done:,} of {counted(count, image)} settled")
        self.panel.set_progress(totals.done / count, *words, tip=self._tip)

    def _position_words(self) -> str:
        """Return the progress on the image on screen: "Case 2 of 8 - GTV: 3 of 5 decided"."""
        if self.current not in self._position:
            return ""
        parts = self._parts[self.current]
        part = next((part for part in parts if part.name in (self._part, "")), None)
        title = f"{self._nouns[0].capitalize()} {self._position[self.current] + 1:,} of {len(self._order):,}"
        title += f" - {part.name}" if part is not None and part.name and len(parts) > 1 else ""
        if not self._summary(self.current).fused:
            return f"{title}: not fused yet"
        if part is None or not part.total:
            return f"{title}: nothing disputed"
        return f"{title}: {part.total - part.remaining:,} of {part.total:,} decided"


class _Outlined(NamedTuple):
    """Outlines of images, their summaries, and the decisions that the summaries are based on."""

    outlines: Mapping[int, Any]
    summaries: Mapping[int, Summary]
    review: ReviewState


def _outline_and_summarize(
    read: Read,
    summarize: Callable[[int, Any, ReviewState], Summary],
    images: Sequence[int],
    review: ReviewState,
    study: Study,
    watch: Watch,
) -> _Outlined:
    """Read outlines and summarize them, in the study's thread: 10,000 images take a quarter of a second."""
    outlines = read(images, study, watch)
    return _Outlined(
        outlines, {image: summarize(image, outline, review) for image, outline in outlines.items()}, review
    )


@dataclass
class _Totals:
    """Sums over the images of a queue, kept up to date so that a decision changes one image only."""

    fused: int = 0
    done: int = 0
    disputed: int = 0
    parts: int = 0
    open: int = 0
    skipped: int = 0
    matter: int = 0
    with_matter: int = 0

    def add(self, summary: Summary, parts: Sequence[Part], sign: int = 1) -> None:
        """Add the numbers of an image."""
        self.fused += sign * summary.fused
        self.done += sign * summary.done
        self.disputed += sign * summary.disputed
        for part in parts:
            self.parts += sign * part.total
            self.open += sign * part.open
            self.skipped += sign * part.skipped
            self.matter += sign * (part.matter or 0)
            self.with_matter += sign * (part.matter is not None)

    def subtract(self, summary: Summary, parts: Sequence[Part]) -> None:
        """Subtract the numbers of an image."""
        self.add(summary, parts, -1)

    def part(self) -> Part:
        """Return the sum of all parts as one part."""
        matter = self.matter if self.with_matter else None
        return Part("", self.parts, self.open, self.skipped, matter)
