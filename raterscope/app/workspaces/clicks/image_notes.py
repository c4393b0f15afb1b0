"""Notes above the image, marks of images (flags, controls), and the order of the images."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from functools import partial

from PySide6.QtCore import QPoint, Qt, Signal

from raterscope.algorithms.clicks.fusion import isolation_notice
from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.clicks.robustness import (
    absence_notice,
    decision_notice,
    empty_notice,
    grouping_notice,
    rejection_notice,
    score_notice,
)
from raterscope.algorithms.progress import Watch
from raterscope.app.kinds.clicks.image_tables import (
    UNREADABLE,
    Located,
    find_unmeasured,
    measure_images,
    store_quality,
)
from raterscope.app.kinds.clicks.runs import copies_in_words, others_in_words, plan_of
from raterscope.app.review import Decision, ImageSubject
from raterscope.app.session import LatestTask
from raterscope.app.study import ImageEntry
from raterscope.app.study.records import ImageQuality
from raterscope.app.workspaces.clicks.scene import Scene
from raterscope.app.workspaces.clicks.screen import IN_FOCUS, ORDERS, ClicksCore, ClicksPart
from raterscope.app.workspaces.review_queue import ReviewQueue
from raterscope.text import counted, percent, small_figure
from raterscope.widgets.dialogs.review_dialogs import ReasonDialog
from raterscope.widgets.parts import Menu, without_checked

EMPTY = "No spots"
NOTE = "Perhaps artefacts only"
REJECTED = "Rejections only"
DECIDED = "Decisions contradict votes"
SCORED = "Scores contradict votes"
GROUPED = "Depends on grouping"
ISOLATED = "Some images only"
OTHERS = "Other images used"
COPIES = "Copied clicks"


class RunNotices(ClicksPart):
    """Notes on undecidable results of a run, and on the images that were fused with the image on screen.

    See `empty_notice`, `absence_notice`, `rejection_notice`, `decision_notice`, `score_notice`,
    `grouping_notice`, `isolation_notice`, `others_in_words` and `copies_in_words`.
    """

    def __init__(self, core: ClicksCore, review_queue: ReviewQueue) -> None:
        super().__init__(core)
        self._notes, self._review_queue = core.screen.notes, review_queue
        self._task = LatestTask()
        review_queue.all_read.connect(self._update)
        core.document.replaced.connect(self._forget)
        core.session.scene_changed.connect(self._on_scene)
        core.session.blind_changed.connect(self._show_copies)
        core.session.cleared.connect(self._clear)

    def _clear(self) -> None:
        for tag in (ISOLATED, OTHERS, COPIES):
            self._notes.set_note(tag, "")

    def _on_scene(self, scene: Scene) -> None:
        """Note which other images informed the run on screen, and which did not."""
        run, contents = scene.run, self._document.contents
        text = None
        plan = None if run is None else plan_of(run)
        if run is not None and plan is not None and contents is not None:
            entries = [entry for entry in contents.runs_of("clicks") if entry.id == run.id]
            fused, others = len(entries[0].items) if entries else 0, run.log.get("others")
            if fused:
                fused += others if isinstance(others, int) else 0
                text = isolation_notice(plan, fused, len(contents.of("clicks")))
        self._notes.set_note(ISOLATED, text or "")
        self._notes.set_note(OTHERS, "" if run is None else others_in_words(run.log))
        self._show_copies()

    def _show_copies(self) -> None:
        """Name annotators whose clicks are copies, except in blind mode."""
        session = self._core.session
        run = session.scene.run if session.shown and not session.blind else None
        self._notes.set_note(COPIES, "" if run is None else copies_in_words(run.log.get("copies", ())))

    def _forget(self) -> None:
        self._task.cancel()
        for tag in (EMPTY, NOTE, REJECTED, DECIDED, SCORED, GROUPED):
            self._notes.set_note(tag, "")

    def _update(self) -> None:
        fusions = [
            result.fusion for result in self._review_queue.results.values() if result.fusion is not None
        ]
        job = self._jobs.start("Looking for signs of structures", partial(_find_notices, fusions), quiet=True)
        self._task.follow(job, self._on_looked)

    def _on_looked(self, notices: Mapping[str, str | None]) -> None:
        for tag, notice in notices.items():
            self._notes.set_note(tag, notice or "")


def _find_notices(fusions: Sequence[Fusion], watch: Watch) -> dict[str, str | None]:
    watch(0.0, "comparing the votes with those on artefacts")
    return {
        EMPTY: empty_notice(fusions),
        NOTE: absence_notice(fusions),
        REJECTED: rejection_notice(fusions),
        DECIDED: decision_notice(fusions),
        SCORED: score_notice(fusions),
        GROUPED: grouping_notice(fusions),
    }


REASONS = ("out of focus", "badly stained", "dirt or scratches", "to be discussed")
HINT = "It stays in every count. Use the queue's filter to list flagged images."


class ImageFlags(ClicksPart):
    """Flags an image, or removes its flag; both are decisions."""

    def toggle(self, image: ImageEntry | None) -> None:
        """Ask for a reason and flag an image, or remove its flag."""
        if image is None:
            return
        if self._document.review.flag(image.id) is not None:
            self._record("unflag", image, "")
            return
        dialog = ReasonDialog(image.name, REASONS, self._screen, act="Flag", hint=HINT, subject="an image")
        dialog.accepted.connect(partial(self._on_reason, image, dialog))
        dialog.open()

    def _on_reason(self, image: ImageEntry, dialog: ReasonDialog) -> None:
        self._record("flag", image, dialog.reason)

    def _record(self, verb: str, image: ImageEntry, reason: str) -> None:
        subject = ImageSubject(name=image.name)
        self._document.record(Decision(verb=verb, item=image.id, subject=subject, reason=reason))


WORDS = {
    "positive": "Positive control: contains structures",
    "negative": "Negative control: contains no structure",
    "uncontrol": "No control",
}


class ControlMarks(ClicksPart):
    """Marks of images as controls, by key or context menu of the queue; each mark is a decision."""

    message = Signal(str)
    flag_requested = Signal(int)  # flag an image of the list, or remove its flag

    def __init__(self, core: ClicksCore) -> None:
        super().__init__(core)
        view = core.screen.queue.view
        view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        view.customContextMenuRequested.connect(self._on_menu)
        core.document.decided.connect(self._on_decided)

    def toggle(self, verb: str, image: int | None) -> None:
        """Mark an image as a positive or negative control, or remove the same mark."""
        if image is None:
            self.message.emit("Select an image first.")
            return
        mark = self._document.review.control_mark(image)
        marked = mark is not None and mark.holds == (verb == "positive")
        self.mark("uncontrol" if marked else verb, image)

    def mark(self, verb: str, image: int) -> None:
        """Record a mark, or its removal; a negative control with accepted spots is refused."""
        contents = self._document.contents
        entry = None if contents is None else contents.image(image)
        if contents is None or entry is None:
            return
        spots = contents.review.spots(image)
        accepted = sum(spot.verdict in ("accepted", "added") for spot in spots)
        if verb == "negative" and accepted:
            number = "a spot" if accepted == 1 else f"{accepted:,} spots"
            self.message.emit(f"You accepted {number} on {entry.name}: it contains structures.")
            return
        self._document.record(Decision(verb=verb, item=image, subject=ImageSubject(name=entry.name)))

    def _on_decided(self, decision: Decision) -> None:
        """Show the role of an image in the next fusion, after the decision has cleared earlier messages."""
        if isinstance(decision.subject, ImageSubject) and decision.verb in WORDS:
            role = "no control" if decision.verb == "uncontrol" else f"a {decision.verb} control"
            self.message.emit(f"{decision.subject.name} is {role} from the next fusion on (F5).")

    def _on_menu(self, position: QPoint) -> None:
        view, review = self._screen.queue.view, self._document.review
        index = view.indexAt(position) if view.indexAt(position).isValid() else view.currentIndex()
        if not index.isValid():
            return
        line = view.lines[index.row()]
        image = line.key
        if not isinstance(image, int):
            return
        mark, flagged = review.control_mark(image), review.flag(image) is not None
        current = "uncontrol" if mark is None else "positive" if mark.holds else "negative"
        menu = Menu(self._screen)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(line.title.replace("&", "&&")).setEnabled(False)
        menu.addSeparator()
        for verb, words in WORDS.items():
            action = menu.addAction(words)
            action.setCheckable(True)
            action.setChecked(verb == current)
            action.triggered.connect(without_checked(partial(self._choose, verb, current, image)))
        menu.addSeparator()
        flag = menu.addAction("Remove the flag" if flagged else "Flag the image\N{HORIZONTAL ELLIPSIS}")
        flag.triggered.connect(without_checked(partial(self.flag_requested.emit, image)))
        menu.popup(view.viewport().mapToGlobal(position))

    def _choose(self, verb: str, current: str, image: int) -> None:
        if verb != current:
            self.mark(verb, image)


SORT_SECONDS = 2.0
"""Minimum seconds between two sorts while images are being measured."""


class ImageOrder(ClicksPart):
    """Order of the queue, chosen above it; images are measured when their quality is first needed."""

    def __init__(self, core: ClicksCore) -> None:
        super().__init__(core)
        self._panel = core.screen.queue
        self._known: dict[int, ImageQuality] = {}
        self._reading, self._measuring = LatestTask(), LatestTask()
        self._sorted = 0.0
        self._panel.order.currentIndexChanged.connect(self._on_order)
        core.document.replaced.connect(self._forget)
        core.document.changed.connect(self._read)

    def step(self) -> None:
        """Choose the next order."""
        box = self._panel.order
        box.setCurrentIndex((box.currentIndex() + 1) % box.count())
        self._screen.message.emit(f"Images sorted: {box.currentText()}.")

    def _forget(self) -> None:
        self._reading.cancel()
        self._measuring.cancel()
        self._known = {}
        self._panel.order.setCurrentIndex(0)

    def _on_order(self) -> None:
        self._sort()
        self._read()

    def _read(self) -> None:
        """Read the stored quality, and measure images without one."""
        if self._panel.order.currentIndex() and self._document.contents and not self._measuring.busy:
            job = self._document.ask("Reading the quality of the images", find_unmeasured)
            self._reading.follow(job, self._on_read)

    def _on_read(self, answer: tuple[dict[int, ImageQuality], Located]) -> None:
        known, unmeasured = answer
        self._known |= known
        located = [pair for pair in unmeasured if pair[0].id not in self._known]
        self._sort()
        if located:
            work = partial(measure_images, located)
            job = self._jobs.start("Measuring focus and saturation", work, background=True)
            job.partial.connect(self._on_some)
            self._measuring.follow(job, self._on_measured, stopped=self._store)

    def _on_some(self, measured: Mapping[int, ImageQuality]) -> None:
        if self._measuring.busy:
            self._known |= measured
            if time.monotonic() > self._sorted + SORT_SECONDS:
                self._sort()

    def _on_measured(self, measured: Mapping[int, ImageQuality]) -> None:
        self._known |= measured
        self._sort()
        self._store()
        unreadable = list(measured.values()).count(UNREADABLE)
        if unreadable:
            self._screen.message.emit(f"{counted(unreadable, 'image')} could not be read and come last.")

    def _store(self) -> None:
        if self._document.contents is not None and self._known:
            work = partial(store_quality, dict(self._known))
            self._document.ask("Storing the quality of the images", work)

    def _sort(self) -> None:
        self._sorted = time.monotonic()
        order = self._panel.order.currentIndex()
        if not order:
            self._panel.set_order(None, {})
            return
        rank: dict[Hashable, float] = {}
        measures: dict[Hashable, str] = {}
        for image, quality in self._known.items():
            if ORDERS[order] == IN_FOCUS and quality.focus is not None:
                rank[image], measures[image] = quality.focus, f"focus {_figure(quality.focus)}"
            elif ORDERS[order] != IN_FOCUS and quality.saturation is not None:
                rank[image] = -quality.saturation
                measures[image] = f"{_percent(quality.saturation)} saturated"
        self._panel.set_order(rank, measures)


def _percent(share: float) -> str:
    return "< 0.01 %" if 0 < share < 0.00005 else percent(share, 2)


def _figure(value: float) -> str:
    return counted(round(value)) if value >= 10 else small_figure(value)
