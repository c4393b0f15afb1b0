"""The queue of what is to be looked at, the most disputed first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from PySide6.QtCore import QObject, QTimer, Signal

from raterscope.algorithms.progress import Watch
from raterscope.app.document import Document
from raterscope.app.errors import counted
from raterscope.app.review import ReviewState
from raterscope.app.study import Study
from raterscope.widgets.panels.queue_panel import QueueItem, QueuePanel

__all__ = ["Queueing", "Summary"]

AT_ONCE = 8

Read = Callable[[Sequence[int], Study, Watch], Mapping[int, Any]]


class Summary(Protocol):
    """What a line of the queue says of an image."""

    @property
    def disputed(self) -> int:
        """How much is left to be looked at."""

    @property
    def doubt(self) -> float:
        """By which the lines are sorted."""

    @property
    def done(self) -> bool:
        """Whether nothing is left to be looked at."""

    @property
    def flag(self) -> str | None:
        """Why it was flagged; None where it is not."""

    @property
    def counts(self) -> Mapping[str, int]:
        """What the queue can be narrowed by."""

    def in_words(self) -> str:
        """Say it in a line."""


class Queueing(QObject):
    """Keeps what each image's line says in step with runs and decisions.

    Results are read a few images at a time, so that a decision never waits behind all of them.

    Parameters
    ----------
    document : Document
    panel : QueuePanel
    kind : str
        Whose images are listed.
    read : callable
        ``read(images, study, watch)`` reads what the lines are made from, in the study's thread.
    summarize : callable
        ``summarize(image, what was read, review)`` makes a line's Summary; with None for what was read, that
        of an image of which nothing is known.

    Signals
    -------
    all_read
        Every line says what it has to say.
    """

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
        nouns: tuple[str, str],
    ) -> None:
        super().__init__(parent)
        self._document = document
        self._panel = panel
        self._kind = kind
        self._read = read
        self._summarized = summarize
        self._nouns = nouns
        self._results: dict[int, Any] = {}
        self._summaries: dict[int, Summary] = {}
        self._lines: dict[int, QueueItem] = {}
        self._changed: dict[int, None] = {}
        """Images that wait to be counted anew."""
        self._order: tuple[int, ...] = ()
        self._waiting: list[int] = []
        self._reading = False
        self.current: int | None = None

    @property
    def results(self) -> Mapping[int, Any]:
        """What the lines are made from, as far as it is read."""
        return dict(self._results)

    def reset(self) -> None:
        """Begin anew: another study."""
        self._results.clear()
        self._summaries.clear()
        self._lines.clear()
        self._changed.clear()
        self.current = None
        self.reread(())

    def reread(self, images: Sequence[int]) -> None:
        """Read the latest results of images again; of all that are not known yet too."""
        contents = self._document.contents
        if contents is None:
            self._waiting = []
            self._order = ()
            self._panel.set_items(())
            return
        stale = set(images)
        for image in stale:
            self._results.pop(image, None)
        self._waiting = [entry.id for entry in contents.of(self._kind) if entry.id not in self._results]
        self._sort()
        self._read_on()

    def decided(self, *images: int) -> None:
        """Count anew after a decision on images: of many, some at a time, so that events come between."""
        self._changed.update(dict.fromkeys(images))
        self._count_on()

    def _count_on(self) -> None:
        if not self._changed:
            return
        for image in list(self._changed)[:AT_ONCE]:
            self._summarize(image)
            del self._changed[image]
        if self._changed:
            QTimer.singleShot(0, self, self._count_on)
        else:
            self._show()

    def select(self, image: int | None) -> None:
        """Mark the image that is on screen."""
        self.current = image
        self._panel.set_current(image)

    def step(self, by: int) -> None:
        """Go to the next or previous image of the queue."""
        order = [item.key for item in self._panel.shown()]
        if not order:
            return
        here = order.index(self.current) if self.current in order else -1
        there = min(max(here + by, 0), len(order) - 1)
        if there != here:
            self._panel.item_chosen.emit(order[there])

    def after(self, image: int | None) -> int | None:
        """Give the image that is likely to be wanted next."""
        order = [item.key for item in self._panel.shown()]
        place = order.index(image) + 1 if image in order else 0
        following = order[place] if place < len(order) else None
        return following if isinstance(following, int) else None

    def most_disputed(self) -> int | None:
        """Give the image at the head of the queue that still has something disputed."""
        return next((image for image in self._order if self._summary(image).disputed), None)

    def _read_on(self) -> None:
        if self._reading or not self._waiting:
            return
        self._reading = True
        batch, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
        job = self._document.ask("Reading results", partial(self._read, batch))
        job.finished.connect(self._on_results)
        job.ended.connect(self._on_read)

    def take(self, results: Mapping[int, Any]) -> None:
        """Let lines say what images have come to beside the study, until they are read again."""
        self._on_results(results)

    def _on_results(self, results: Mapping[int, Any]) -> None:
        self._results.update(results)
        for image in results:
            self._summarize(image)
        self._sort()

    def _on_read(self) -> None:
        self._reading = False
        if self._document.contents is not None:
            self._read_on()
            if not self._reading:
                self.all_read.emit()

    def _summary(self, image: int) -> Summary:
        known = self._summaries.get(image)
        return self._summarized(image, None, ReviewState()) if known is None else known

    def _summarize(self, image: int) -> None:
        contents = self._document.contents
        if contents is None or image not in self._results:
            return
        self._summaries[image] = self._summarized(image, self._results[image], contents.review)
        self._lines.pop(image, None)

    def _sort(self) -> None:
        """Put the most disputed first and what is done last. Deciding does not move lines: nothing jumps."""
        contents = self._document.contents
        if contents is None:
            return
        names = {entry.id: entry.name for entry in contents.of(self._kind)}
        self._order = tuple(sorted(names, key=lambda image: (-self._summary(image).doubt, names[image])))
        self._show()

    def _show(self) -> None:
        contents = self._document.contents
        if contents is None:
            return
        names = {entry.id: entry.name for entry in contents.of(self._kind)}
        for image in self._order:
            if image in names and image not in self._lines:
                summary = self._summary(image)
                self._lines[image] = QueueItem(
                    key=image,
                    title=names[image],
                    detail=summary.in_words(),
                    score=summary.doubt,
                    done=summary.done,
                    flag=summary.flag,
                    counts=summary.counts,
                )
        self._panel.set_items([self._lines[image] for image in self._order if image in names])
        self._panel.set_current(self.current)
        self._show_progress([self._summary(image) for image in names])

    def _show_progress(self, known: Sequence[Summary]) -> None:
        if not known:
            self._panel.set_progress(0.0)
            return
        image, spot = self._nouns
        settled, left = sum(one.done for one in known), sum(one.disputed for one in known)
        self._panel.set_progress(
            settled / len(known),
            f"{settled:,} of {counted(len(known), image)} settled",
            f"{counted(left, f'disputed {spot}')} left" if left else f"no disputed {spot} left",
        )
