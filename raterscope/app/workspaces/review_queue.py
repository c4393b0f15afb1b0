"""The review queue: items with the most disputed first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from PySide6.QtCore import QObject, QTimer, Signal

from raterscope.algorithms.progress import Watch
from raterscope.app.document import Document
from raterscope.app.errors import counted
from raterscope.app.review import ReviewState
from raterscope.app.session import LatestTask
from raterscope.app.study import Study
from raterscope.app.workspaces.review_order import Part, left_in_words
from raterscope.widgets.panels.queue_panel import QueueItem, QueuePanel

__all__ = ["ReviewQueue", "Summary"]

AT_ONCE = 8

Read = Callable[[Sequence[int], Study, Watch], Mapping[int, Any]]


class Summary(Protocol):
    """What a line of the queue says of an image."""

    @property
    def fused(self) -> bool:
        """Whether a run says something of it."""

    @property
    def disputed(self) -> int:
        """How much is left to be looked at."""

    @property
    def parts(self) -> Sequence[Part]:
        """What is reviewed in one go each; of what is not fused, nothing."""

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


class ReviewQueue(QObject):
    """Keeps what each image's line says in step with runs and decisions.

    Results are read a few images at a time, so that a decision never waits behind all of them. Where outlines
    of all of them can be read at once, the lines are in order before.

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
    outline : callable, optional
        ``outline(images, study, watch)`` reads quickly what lines can be made from meanwhile, of those images
        of which it can be had.
    nouns : (str, str)
        What an image and what is settled on it are called: "image" and "spot".
    tip : str
        Definition of the decisions that matter.

    Signals
    -------
    ordered
        Every line says what it has to say.
    all_read
        The results of all lines can be had.
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
        """What lines are made from until results are read."""
        self._outlining, self._reading = LatestTask(), LatestTask()
        self._summaries: dict[int, Summary] = {}
        self._lines: dict[int, QueueItem] = {}
        self._changed: dict[int, None] = {}
        """Images that wait to be counted anew."""
        self._order: tuple[int, ...] = ()
        self._waiting: list[int] = []
        self.current: int | None = None
        self._part = ""

    @property
    def results(self) -> Mapping[int, Any]:
        """What the lines are made from, as far as it is read."""
        return dict(self._results)

    def reset(self) -> None:
        """Begin anew: another study."""
        self._outlining.cancel()  # images of another study bear the same numbers
        self._reading.cancel()
        self._results.clear()
        self._outlines.clear()
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
            self.panel.set_items(())
            return
        stale = set(images)
        for image in stale:
            self._results.pop(image, None)
            self._outlines.pop(image, None)
        self._waiting = [entry.id for entry in contents.of(self._kind) if entry.id not in self._results]
        self._sort()
        if self._outline is None or not self._waiting:
            self._read_on()
            return
        job = self._document.ask("Reading answers", partial(self._outline, tuple(self._waiting)))
        self._outlining.follow(job, self._on_outlines, stopped=self._on_outlined)

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
        self.panel.set_current(image)
        self._show_progress()

    def select_part(self, name: str) -> None:
        """Name the part of the image on screen that is reviewed: its structure."""
        if name != self._part:
            self._part = name
            self._show_progress()

    def step(self, by: int) -> None:
        """Go to the next or previous image of the queue."""
        order = [item.key for item in self.panel.shown()]
        if not order:
            return
        here = order.index(self.current) if self.current in order else -1
        there = min(max(here + by, 0), len(order) - 1)
        if there != here:
            self.panel.item_chosen.emit(order[there])

    def after(self, image: int | None) -> int | None:
        """Give the image that is likely to be wanted next."""
        order = [item.key for item in self.panel.shown()]
        place = order.index(image) + 1 if image in order else 0
        following = order[place] if place < len(order) else None
        return following if isinstance(following, int) else None

    def most_disputed(self) -> int | None:
        """Give the image at the head of the queue that still has something disputed."""
        return next((image for image in self._order if self._summary(image).disputed), None)

    def units(self) -> list[tuple[tuple[int, str], Part]]:
        """List what is reviewed in one go, by image and name of the part, in the order of the queue."""
        return [((image, part.name), part) for image in self._order for part in self._summary(image).parts]

    def nothing_left(self) -> str:
        """Say that nothing is left to go to, or why that is not known yet."""
        known = [self._summary(image) for image in self._order]
        image, item = self._nouns
        unfused = sum(not one.fused for one in known)
        if self._reading.busy or self._waiting:
            return "Results are still being read; try again in a moment."
        if any(one.disputed for one in known):
            return f"No other disputed {item} is left in this study."
        if unfused == len(known):
            return f"Press Fuse (F5) to find disputed {item}s."
        if unfused:
            are = "is" if unfused == 1 else "are"
            return f"Nothing fused is disputed; {counted(unfused, image)} {are} not fused yet: press F5."
        return "Nothing disputed is left in this study."

    def _read_on(self) -> None:
        if self._reading.busy or not self._waiting:
            return
        batch, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
        job = self._document.ask("Reading results", partial(self._read, batch))
        self._reading.follow(job, self._on_results, stopped=self._on_read)

    def take(self, results: Mapping[int, Any]) -> None:
        """Let lines say what images have come to beside the study, until they are read again."""
        self._take_results(results)

    def _on_outlines(self, outlines: Mapping[int, Any]) -> None:
        self._outlines = {image: one for image, one in outlines.items() if image not in self._results}
        self._take_up(self._outlines)
        self._on_outlined()

    def _on_outlined(self) -> None:
        if self._document.contents is not None:
            if set(self._waiting) <= self._outlines.keys():
                self.ordered.emit()
            self._read_on()

    def _on_results(self, results: Mapping[int, Any]) -> None:
        self._take_results(results)
        self._on_read()

    def _take_results(self, results: Mapping[int, Any]) -> None:
        self._results.update(results)
        for image in results:
            self._outlines.pop(image, None)
        self._take_up(results)

    def _on_read(self) -> None:
        if self._document.contents is not None:
            self._read_on()
            if not self._reading.busy:
                self.ordered.emit()
                self.all_read.emit()

    def _take_up(self, images: Iterable[int]) -> None:
        """Count anew, and put in order where that changes something."""
        before = {image: self._summaries.get(image) for image in images}
        for image in before:
            self._summarize(image)
        if any(self._summaries.get(image) != summary for image, summary in before.items()):
            self._sort()

    def _summary(self, image: int) -> Summary:
        known = self._summaries.get(image)
        return self._summarized(image, None, ReviewState()) if known is None else known

    def _summarize(self, image: int) -> None:
        contents, known = self._document.contents, self._results.get(image, self._outlines.get(image))
        if contents is None or known is None:
            return
        self._summaries[image] = self._summarized(image, known, contents.review)
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
                    score=summary.doubt if summary.fused else None,
                    done=summary.done,
                    flag=summary.flag,
                    counts=summary.counts,
                )
        self.panel.set_items([self._lines[image] for image in self._order if image in names])
        self.panel.set_current(self.current)
        self._show_progress()

    def _show_progress(self) -> None:
        """Say how far the review has come: here, in the study, and how many images are done."""
        known = [self._summary(image) for image in self._order]
        if not known:
            self.panel.set_progress(0.0)
            return
        image, item = self._nouns
        settled, left = sum(one.done for one in known), sum(one.disputed for one in known)
        unfused = sum(not one.fused for one in known)
        here = self._here()
        words = [here] if here else []
        if left:
            words += left_in_words([part for one in known for part in one.parts], f"disputed {item}")
        elif not unfused:
            words.append(f"no disputed {item} left")
        elif unfused < len(known):
            words.append(f"{unfused:,} not fused yet")
        elif not here:
            words.append("not fused yet")
        words.append(f"{settled:,} of {counted(len(known), image)} settled")
        self.panel.set_progress(settled / len(known), *words, tip=self._tip)

    def _here(self) -> str:
        """Say how far the image on screen has come: "Case 2 of 8 - GTV: 3 of 5 decided"."""
        if self.current not in self._order:
            return ""
        summary = self._summary(self.current)
        part = next((one for one in summary.parts if one.name in (self._part, "")), None)
        place = (
            f"{self._nouns[0].capitalize()} {self._order.index(self.current) + 1:,} of {len(self._order):,}"
        )
        place += f" - {part.name}" if part is not None and part.name else ""
        if not summary.fused:
            return f"{place}: not fused yet"
        if part is None or not part.total:
            return f"{place}: nothing disputed"
        return f"{place}: {part.total - part.left:,} of {part.total:,} decided"
