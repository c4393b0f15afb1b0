"""The review queue: items with the most disputed first."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from PySide6.QtCore import QObject, QTimer, Signal

from raterscope.algorithms.progress import Watch
from raterscope.app.document import Document
from raterscope.app.review import ReviewState
from raterscope.app.session import LatestTask
from raterscope.app.study import Study
from raterscope.app.workers import free_gradually
from raterscope.app.workspaces.review_order import QueueLines, Summary, Unit, describe_remaining
from raterscope.text import counted
from raterscope.widgets.panels.queue_panel import QueuePanel

AT_ONCE = 8
MAX_BATCH, READ_SECONDS = 256, 0.01
"""Maximum number of results, and seconds, per read; a decision may have to wait for one read."""
LASTING = 500
"""Number of new results after which these are exempted from garbage collection."""

Read = Callable[[Sequence[int], Study, Watch], Mapping[int, Any]]
Summarize = Callable[[int, Any, ReviewState], Summary]


class ReviewQueue(QObject):
    """Lines of the queue, kept up to date with runs and decisions.

    Results are read a few images at a time, so that a decision never waits for all of them. If outlines of
    all can be read at once, the lines are sorted earlier.

    `kind`: kind of annotation. `read`: reads the results of images, in the study's thread. `summarize`:
    returns the summary of an image's line; with None as result, that of an image without a result. `outline`:
    quickly reads outlines of images' results; it is `read` if all results can be read at once. `nouns`: nouns
    of an item and of its details: "image" and "spot". `tip`: definition of the decisions that matter.
    """

    ordered = Signal()  # all lines are known and in order
    all_read = Signal()  # the results of all lines have been read

    def __init__(
        self,
        document: Document,
        panel: QueuePanel,
        kind: str,
        read: Read,
        summarize: Summarize,
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
        """Outlines of results, until these are read."""
        self._outlining, self._reading = LatestTask(), LatestTask()
        self._names: dict[int, str] = {}
        self._unknown = summarize(0, None, ReviewState())
        """Summary of an image without result or outline."""
        self._lines = self._no_lines()
        self._changed: dict[int, None] = {}
        """Images whose lines must be updated."""
        self._late: set[int] = set()
        """Images whose summaries changed while lines are being made in the study's thread."""
        self._waiting: list[int] = []
        self._lasting = 0
        self.current: int | None = None
        self._part = ""
        self._covered = False

    @property
    def results(self) -> Mapping[int, Any]:
        """Results by image, read so far."""
        return dict(self._results)

    @property
    def disputed(self) -> int:
        """Number of remaining disputed items on all images."""
        return self._lines.totals.disputed

    def reset(self) -> None:
        """Drop everything, because another study is open. `reread` lists its images."""
        self._outlining.cancel()  # images of another study have the same numbers
        self._reading.cancel()
        free_gradually(self._results, self._outlines)
        self._results, self._outlines = {}, {}
        self._changed.clear()
        self._late.clear()
        self._lines.release()
        self._lines = self._no_lines()
        self.current = None
        self._waiting = []
        self._lasting = 0

    def reread(self, images: Sequence[int]) -> None:
        """Read the latest results of images again, and missing results."""
        contents = self._document.contents
        self._names = {entry.id: entry.name for entry in self._document.items(self._kind)}
        groups = {} if contents is None else contents.groups
        self.panel.set_groups({image: groups[image] for image in self._names if image in groups})
        for image in images:
            self._results.pop(image, None)
            self._outlines.pop(image, None)
        self._waiting = [image for image in self._names if image not in self._results]
        if contents is None or self._outline is None or not self._waiting:
            self._outlining.cancel()
            self._arrange()
            self._read_on()
            return
        if not self._lines.names:
            self.panel.set_items(self._lines.queued)
            self.panel.show_empty("")
        self._late.clear()
        work = partial(
            _outline_and_arrange, self._outline, self._summarized, tuple(self._waiting), contents.review
        )
        arrange = partial(QueueLines, dict(self._names), self._unknown, short=self._lines.queued.short)
        job = self._document.ask(
            "Reading answers", partial(work, arrange, dict(self._lines.summaries), len(contents.decisions))
        )
        self._outlining.follow(job, self._on_outlines, stopped=self._on_no_outlines)

    def reread_unfused(self) -> None:
        """Read the images without results again, because their annotations may have changed."""
        self.reread([image for image in self._names if not self._lines.of(image).fused])

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
            if self._update([image]) and image in self._lines.names:
                self.panel.update_item(self._lines.line(image))
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

    def set_covered(self, covered: bool) -> None:
        """Hide results and the numbers of disputed items, or show them."""
        self._covered = covered
        self.panel.set_covered(covered)
        self._show_progress()

    def select_part(self, name: str) -> None:
        """Set the part of the image on screen under review: its structure."""
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
        """Return the first image of the queue with remaining disputed items."""
        return self._lines.most_disputed()

    def units(self) -> Sequence[Unit]:
        """Return the parts by image and name, in the order of the queue."""
        return self._lines.units()

    def nothing_left(self) -> str:
        """Return the message that no undecided item is left, or why that is not known yet."""
        (image, item), totals = self._nouns, self._lines.totals
        unfused = len(self._lines.order) - totals.fused
        if self._reading.busy or self._waiting:
            return "Results are still being read. Try again in a moment."
        if totals.disputed:
            return f"No other disputed {item} is left in this study."
        if not totals.fused:
            return f"Press Fuse (F5) to find disputed {item}s."
        if unfused:
            are = "is" if unfused == 1 else "are"
            return f"No result is disputed. {counted(unfused, image)} {are} not fused yet: press Fuse (F5)."
        return "Nothing disputed is left in this study."

    def _read_on(self) -> None:
        contents = self._document.contents
        if self._reading.busy or not self._waiting or contents is None:
            return
        batch, self._waiting = self._waiting[:MAX_BATCH], self._waiting[MAX_BATCH:]
        work = partial(_read_and_summarize, self._read, self._summarized, batch, contents.review)
        job = self._document.ask("Reading results", partial(work, len(contents.decisions)))
        self._reading.follow(job, self._on_results, stopped=partial(self._on_not_read, batch[AT_ONCE:]))

    def take(self, results: Mapping[int, Any]) -> None:
        """Show results that are not in the study, until results are read again."""
        self._take(results, {})

    def _take(self, results: Mapping[int, Any], summaries: Mapping[int, Summary]) -> None:
        self._results.update(results)
        for image in results:
            self._outlines.pop(image, None)
        if self._update(results, summaries):
            self._lines.sort(self._lines.queued.short)
            self._show_lines()

    def _on_outlines(self, outlined: _Outlined) -> None:
        if self._document.contents is None:
            return
        lines, late = outlined.lines, self._late | self._decided_since(outlined.decided)
        if self._outline is self._read:
            self._results.update(outlined.outlines)
            self._waiting = [image for image in self._waiting if image not in outlined.outlines]
        self._outlines = {
            image: outline for image, outline in outlined.outlines.items() if image not in self._results
        }
        if len(self._outlines) >= LASTING:
            _keep_present_objects()
        self._lines = lines
        if self._update(late):
            lines.sort(lines.queued.short)
        self._show_lines()
        self._on_outlined()

    def _on_no_outlines(self) -> None:
        self._arrange()
        self._on_outlined()

    def _on_outlined(self) -> None:
        if self._document.contents is not None:
            if set(self._waiting) <= self._outlines.keys():
                self.ordered.emit()
            self._read_on()
            if not (self._waiting or self._reading.busy):
                self.all_read.emit()

    def _on_results(self, read: _Results) -> None:
        late = self._decided_since(read.decided)
        self._take(read.results, {image: line for image, line in read.summaries.items() if image not in late})
        if len(self._results) >= self._lasting + LASTING:
            self._lasting = len(self._results)
            _keep_present_objects()
        self._on_not_read(read.unread)

    def _on_not_read(self, images: Sequence[int]) -> None:
        self._waiting[:0] = images
        self._on_read()

    def _on_read(self) -> None:
        if self._document.contents is not None:
            self._read_on()
            if not self._reading.busy:
                self.ordered.emit()
                self.all_read.emit()

    def _decided_since(self, decided: int) -> set[int]:
        """Return the images of all decisions after the first `decided` decisions."""
        contents = self._document.contents
        if contents is None:
            return set()
        return {
            image
            for decision in contents.decisions[decided:]
            for image in contents.items_of(decision, self._kind)
        }

    def _update(self, images: Collection[int], summaries: Mapping[int, Summary] = {}) -> list[int]:
        """Set or compute the summaries of images; return the images whose summaries changed."""
        self._late.update(images)
        review, updated = self._document.review, dict(summaries)
        for image in images:
            result = self._results.get(image, self._outlines.get(image))
            if image not in updated and result is not None:
                updated[image] = self._summarized(image, result, review)
        return self._lines.update(updated)

    def _no_lines(self) -> QueueLines:
        return QueueLines({}, self._unknown, {}, {})

    def _arrange(self) -> None:
        """Sort the lines by dispute, the most disputed first. A decision alone moves no line."""
        short = self._lines.queued.short
        if self._names == self._lines.names:
            self._lines.sort(short)
        else:
            self._lines = QueueLines(dict(self._names), self._unknown, self._lines.summaries, short)
        self._show_lines()

    def _show_lines(self) -> None:
        self.panel.set_items(self._lines.queued)
        self.panel.set_current(self.current)
        self._show_progress()

    def _show_progress(self) -> None:
        """Show the progress of the review: on the image on screen, in the study, and decided items."""
        count, totals = len(self._lines.order), self._lines.totals
        if not count:
            self.panel.set_progress(0.0)
            return
        (image, item), unfused, position = self._nouns, count - totals.fused, self._position_text()
        words = [position] if position else []
        if self._covered:  # how much is disputed reveals whether annotators agree
            self.panel.set_progress(0.0, *words)
            return
        if totals.disputed:
            words += describe_remaining([totals.part()], f"disputed {item}", totals.contested)
        elif not unfused:
            words.append(f"no disputed {item} left")
        elif totals.fused:
            words.append(f"{unfused:,} not fused yet")
        elif not position:
            words.append("not fused yet")
        words.append(f"{totals.done:,} of {counted(count, image)} settled")
        skipped = totals.part().skipped
        self.panel.set_progress(totals.done / count, *words, skipped=skipped, tip=self._tip)

    def _position_text(self) -> str:
        """Return the progress on the image on screen: "Case 2 of 8 - GTV: 3 of 5 decided"."""
        position = self._lines.position(self.current)
        if self.current is None or position is None:
            return ""
        parts = self._lines.parts(self.current)
        part = next((part for part in parts if part.name in (self._part, "")), None)
        title = f"{self._nouns[0].capitalize()} {position + 1:,} of {len(self._lines.order):,}"
        title += f" - {part.name}" if part is not None and part.name and len(parts) > 1 else ""
        unfused = bool(self._part and parts) and part is None
        if unfused or not self._lines.of(self.current).fused:
            return f"{title}: not fused yet"
        if self._covered:
            return f"{title}: {0 if part is None else part.total - part.remaining:,} decided"
        if part is None or not part.total:
            return f"{title}: nothing disputed"
        return f"{title}: {part.total - part.remaining:,} of {part.total:,} decided"


def _keep_present_objects() -> None:
    """Exempt all objects from garbage collection: with a million objects, it stops all threads for 0.2 s.

    Objects without reference cycles, such as results, are still freed with their last reference.
    """
    gc.collect(1)
    gc.freeze()


class _Outlined(NamedTuple):
    """Outlines of images, the lines of the queue, and the number of decisions that they are based on."""

    outlines: Mapping[int, Any]
    lines: QueueLines
    decided: int


class _Results(NamedTuple):
    """Results of images, their summaries, and the number of decisions that they are based on.

    `unread`: images for which the time was too short.
    """

    results: Mapping[int, Any]
    summaries: Mapping[int, Summary]
    decided: int
    unread: Sequence[int]


def _outline_and_arrange(
    read: Read,
    summarize: Summarize,
    images: Sequence[int],
    review: ReviewState,
    arrange: Callable[[Mapping[int, Summary]], QueueLines],
    known: Mapping[int, Summary],
    decided: int,
    study: Study,
    watch: Watch,
) -> _Outlined:
    """Read outlines and make the lines of the queue, in the study's thread."""
    outlines = read(images, study, watch)
    summaries = {image: summarize(image, outline, review) for image, outline in outlines.items()}
    return _Outlined(outlines, arrange({**known, **summaries}), decided)


def _read_and_summarize(
    read: Read,
    summarize: Summarize,
    images: Sequence[int],
    review: ReviewState,
    decided: int,
    study: Study,
    watch: Watch,
) -> _Results:
    """Read results and summarize them, in the study's thread."""
    results, end = dict(read(images[:AT_ONCE], study, watch)), time.monotonic() + READ_SECONDS
    done = AT_ONCE
    with suppress(Exception):  # raised again when these images are read first
        while done < len(images) and time.monotonic() < end:
            results |= read(images[done : done + AT_ONCE], study, watch)
            done += AT_ONCE
    summaries = {image: summarize(image, result, review) for image, result in results.items()}
    return _Results(results, summaries, decided, images[done:])
