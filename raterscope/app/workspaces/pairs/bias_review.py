"""Review of biased annotators: decisions with a reason, and the cut at a false discovery rate."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication

from raterscope.algorithms.pairs.data import BoolArray, FloatArray
from raterscope.algorithms.pairs.flip_test import FlipTest
from raterscope.algorithms.pairs.knockoffs import SortedDraws
from raterscope.algorithms.pairs.ranking import LinkedScores, Scores
from raterscope.algorithms.progress import Watch, part
from raterscope.app.review import BiasSubject, Decision
from raterscope.app.session import LatestTask, while_shown
from raterscope.app.workspaces.annotator_decisions import AnnotatorDecisions
from raterscope.app.workspaces.pairs.scene import (
    CLEARED,
    FLAGGED,
    OPEN,
    Cut,
    Match,
    Ranking,
    Scene,
    cut_at,
    detect_at,
    link_items,
    measure_match,
    rank,
    test_again,
)
from raterscope.app.workspaces.pairs.screen import PairsCore, PairsPart
from raterscope.app.workspaces.review_order import Elsewhere
from raterscope.widgets.dialogs.review_dialogs import ReasonDialog
from raterscope.widgets.parts import Menu, without_checked

REASONS = {
    "flag": ("always chooses one side", "chooses one side when unsure", "answers without looking"),
    "clear": ("agrees with the crowd", "the sides of the items explain it", "too few comparisons to say"),
}
HINTS = {
    "flag": "The corrected ranking removes this annotator's bias.",
    "clear": "The corrected ranking uses this annotator's answers unchanged.",
}
WHY_EXCLUDED = ("biased to a side", *REASONS["flag"])
STATES = {"flag": FLAGGED, "clear": CLEARED}


class BiasReview(PairsPart):
    """Controller of the queue of annotators, which records decisions."""

    message = Signal(str)
    exhausted = Signal()  # no other undecided annotator is left

    def __init__(self, core: PairsCore, elsewhere: Elsewhere, study: Callable[[int], bool | None]) -> None:
        super().__init__(core)
        self._elsewhere, self._in_study = elsewhere, study
        self._by_hand = False
        """Whether the expert selected the annotator manually; only then may a decision be changed."""
        self.decided: NDArray[np.int8] = np.empty(0, dtype=np.int8)
        """Decision on each annotator: OPEN, FLAGGED or CLEARED."""
        for widget in (core.screen.queue, core.screen.path, core.screen.sides, core.screen.bars):
            widget.chosen.connect(self._on_chosen)
        self.exclusions = AnnotatorDecisions(
            core.document, self._selected, self._shown_name, core.screen, WHY_EXCLUDED
        )
        self.exclusions.message.connect(self.message)
        core.screen.evidence.flag_requested.connect(partial(self.judge, "flag"))
        core.screen.evidence.clear_requested.connect(partial(self.judge, "clear"))
        core.screen.evidence.skip_requested.connect(partial(self.judge, "skip"))
        core.screen.queue.view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        core.screen.queue.view.customContextMenuRequested.connect(self._on_menu)
        core.session.scene_changed.connect(self.refresh)
        core.session.cleared.connect(self._clear)

    def _clear(self) -> None:
        self.decided = np.empty(0, dtype=np.int8)

    @property
    def contested(self) -> dict[int, str]:
        """Annotators with conflicting decisions of experts, and these decisions."""
        scene = self._session.scene
        reasons = self._document.review.contested_annotators(scene.question.id)
        if not reasons:
            return {}
        return {at: reasons[name] for at, name in enumerate(scene.pairs.annotators) if name in reasons}

    @while_shown
    def refresh(self) -> None:
        """Read the decisions again."""
        scene = self._session.scene
        self.decided = np.zeros(len(scene.pairs.annotators), dtype=np.int8)
        judged = self._document.review.judged(scene.question.id)
        for at, name in enumerate(scene.pairs.annotators if judged else ()):
            if name in judged:
                self.decided[at] = STATES[judged[name].verb]

    def go(self, step: int) -> bool:
        """Go to the next undecided annotator of any question; return whether there is one."""
        moved_in_study = self._in_study(step)
        if moved_in_study is not None:
            self._by_hand = False
            if not moved_in_study:
                self.exhausted.emit()
            return moved_in_study
        queue = self._screen.queue
        current = queue.current
        queue.go(step)
        moved = queue.current != current or self._elsewhere(step, False, False)
        if not moved:
            queue.begin(step)
            moved = queue.current != current
        self._by_hand = False
        if not moved:
            self.exhausted.emit()
        return moved

    def _on_chosen(self, annotator: int | None) -> None:
        self._by_hand = annotator is not None

    def set_by_hand(self, by_hand: bool) -> None:
        """Set whether the expert selected the annotator manually."""
        self._by_hand = by_hand

    def judge(self, verb: str) -> None:
        """Flag, clear or skip the selected annotator; flagging and clearing ask for a reason."""
        annotator = self._screen.queue.current
        if annotator is None:
            self.go(1)
            return
        scene = self._session.scene
        name = scene.pairs.annotators[annotator]
        if self.decided[annotator] != OPEN and (verb == "skip" or not self._by_hand):
            verdict = "flagged" if self.decided[annotator] == FLAGGED else "cleared"
            self.message.emit(
                f"{scene.names[annotator]} is {verdict} by you already. Undo, or select them in the list, "
                "to change that; press Tab for the next one."
            )
            return
        if verb == "skip":
            self.record(verb, name)
            return
        dialog = ReasonDialog(
            scene.names[annotator], REASONS[verb], self._screen, act=verb.capitalize(), hint=HINTS[verb]
        )
        dialog.accepted.connect(partial(self._on_reason, verb, name, dialog))
        dialog.open()

    @while_shown
    def record(self, verb: str, name: str, reason: str = "") -> None:
        """Record the decision on an annotator, and go to the next."""
        scene = self._session.scene
        # Find the next annotator first, because the decided one may leave the list.
        moved = self.go(1)
        job = self._document.record(
            Decision(
                verb=verb, item=scene.question.id, subject=BiasSubject(annotator=name), reason=reason,
                run=None if scene.run is None else scene.run.id,
            )
        )  # fmt: skip
        if not moved:
            job.finished.connect(self._on_last)

    def _on_last(self, _written: object) -> None:
        self.exhausted.emit()  # again, as the decision cleared the message

    @while_shown
    def exclude_flagged(self, flagged: BoolArray) -> None:
        """Preview the exclusion of the flagged annotators from the fusions of every kind in this study."""
        excluded, pairs = self._document.review.excluded, self._session.scene.pairs
        names = tuple(name for name, flag in zip(pairs.annotators, flagged.tolist(), strict=True) if flag)
        if not names:
            self.message.emit("No annotator is flagged. Select one and press Shift+X to exclude.")
        elif set(names) <= excluded.keys():
            self.message.emit(
                "All flagged annotators are already excluded. Fuse again (F5) to see the effect."
            )
        else:
            self.exclusions.exclude_names(names)

    def _selected(self) -> tuple[str, ...]:
        annotator = self._screen.queue.current
        if annotator is None or not self._session.shown:
            return ()
        return (self._session.scene.pairs.annotators[annotator],)

    def _shown_name(self, name: str) -> str:
        scene = self._session.scene
        return scene.names[scene.pairs.annotators.index(name)]

    def _on_menu(self, position: QPoint) -> None:
        """Open the context menu of the annotator under the mouse, which is already selected."""
        annotator, view = self._screen.queue.current, self._screen.queue.view
        if annotator is None:
            return
        name = self._session.scene.names[annotator]
        menu = Menu(self._screen)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(f"Annotator {name}".replace("&", "&&")).setEnabled(False)
        menu.addSeparator()
        for verb in ("flag", "clear", "skip"):
            menu.addAction(verb.capitalize()).triggered.connect(without_checked(partial(self.judge, verb)))
        menu.addAction("Exclude or restore…").triggered.connect(without_checked(self.exclusions.exclude))
        menu.addAction("Copy the name").triggered.connect(
            without_checked(partial(QGuiApplication.clipboard().setText, name))
        )
        menu.popup(view.viewport().mapToGlobal(position))

    def _on_reason(self, verb: str, name: str, dialog: ReasonDialog) -> None:
        self.record(verb, name, dialog.reason)


REST = 40
"""Milliseconds without a change of the flags before the items are ranked, during repeated changes."""

REPEATED = 0.1
"""Maximum seconds between two changes that count as repeated, as when the slider is dragged."""

MAX_KEPT = 64 * 1024**2
"""Maximum size, in bytes, of the cached input of rankings; a larger input is computed each time."""


class RateCut(PairsPart):
    """Cut at a false discovery rate; it moves immediately, and the items are ranked in the background."""

    moved = Signal()  # the cut changed
    cut_settled = Signal()  # the cut has not moved for a while
    ranked = Signal()  # the items are ranked again
    matched = Signal()  # agreement of the answers, and intervals of the ranks, are known
    detected = Signal()  # the detectable biases at the rate are known
    refused = Signal(str)

    def __init__(self, core: PairsCore) -> None:
        super().__init__(core)
        self.cut: Cut | None = None
        self.ranking: Ranking | None = None
        self.match: Match | None = None
        """Agreement of the answers with the ranking; with the previous ranking until it is counted."""
        self._draws: SortedDraws | None = None
        self._linked: LinkedScores | None = None
        self._flagged: BoolArray | None = None
        self._due = False
        self._changed = 0.0
        """Time of the last change of the flags."""
        self._ranking_task, self._detecting = LatestTask(), LatestTask()
        self._test: FlipTest | None = None
        self._detected_at = float("nan")
        """Rate for which the detectable biases of the cut were computed."""
        self._rest = QTimer(self, singleShot=True, interval=REST)
        self._rest.timeout.connect(self._on_rest)
        core.session.scene_changed.connect(self._on_scene)
        core.session.cleared.connect(self._clear)

    def _clear(self) -> None:
        self._stop()
        self._draws = self.cut = None
        self.ranking = self.match = self._flagged = self._linked = self._test = None
        self._detected_at = float("nan")

    def _on_scene(self) -> None:
        """Show another question or run, with the cut at its rate."""
        self._clear()
        analysis = self._session.analysis
        self._draws, self.cut = analysis.draws, analysis.cut
        if self.cut is not None:
            self._detected_at = self.cut.rate

    @while_shown
    def move(self, rate: float) -> None:
        """Move the cut."""
        if self._draws is not None:
            scene = self._session.scene
            self.cut = cut_at(scene, self._draws, rate, self.cut)
            fusion = scene.fusion
            if fusion is not None and rate == fusion.rate:
                self._detected_at = rate
            self.moved.emit()

    def rank(self, flagged: BoolArray) -> None:
        """Rank the items with the biases of flagged annotators; after repeated changes, once these stop."""
        if self.cut is None:
            return
        if self._flagged is None or not np.array_equal(flagged, self._flagged):
            self._stop()
            self._flagged, self._due = flagged, True
        now, before = time.monotonic(), self._changed
        self._changed = now
        repeated = now - before < REPEATED
        if self._due and not repeated:  # at once, because the thread works while the window paints
            self._start_ranking(flagged)
        self._rest.start(REST if repeated else 0)

    def _stop(self) -> None:
        self._rest.stop()
        self._due = False
        self._ranking_task.cancel()
        self._detecting.cancel()

    @while_shown
    def _on_rest(self) -> None:
        self.cut_settled.emit()
        if self._due and self._flagged is not None:
            self._start_ranking(self._flagged)
        elif not self._ranking_task.busy:
            self._detect()

    def _start_ranking(self, flagged: BoolArray) -> None:
        self._due = False
        work = partial(_rank, self._session.scene, self._linked, flagged)
        job = self._jobs.start("Ranking the items", work, quiet=True)
        self._ranking_task.follow(job, self._on_ranked, failed=self.refused.emit, stopped=self._detect)

    def _detect(self) -> None:
        """Find the detectable biases at a rate other than the run's."""
        scene, cut = self._session.scene, self.cut
        if cut is None or cut.detectable is None or cut.rate == self._detected_at:
            return
        job = self._jobs.start(
            "Finding detectable biases", partial(_detect, scene, self._test, cut.rate), quiet=True
        )
        self._detecting.follow(job, partial(self._on_detected, cut.rate), failed=self.refused.emit)

    def _on_detected(self, rate: float, result: Detected) -> None:
        self._test = result.test
        if self.cut is None or self.cut.rate != rate:
            return
        self._detected_at = rate
        if result.test is not None:
            self.cut = replace(self.cut, detectable=result.detectable, decidable=result.decidable)
            self.detected.emit()

    def _on_ranked(self, result: tuple[LinkedScores, Ranking, Callable[[], Scores]]) -> None:
        linked, self.ranking, with_ranks = result
        self._linked = linked if sum(inverse.nbytes for inverse in linked.inverse) <= MAX_KEPT else None
        self.ranked.emit()
        work = partial(_complete, self._session.scene, self.ranking, with_ranks)
        job = self._jobs.start("Comparing answers with the ranking", work, quiet=True)
        self._ranking_task.follow(job, self._on_matched, stopped=self._detect)

    def _on_matched(self, result: tuple[Match, Ranking]) -> None:
        self.match, self.ranking = result
        self.matched.emit()
        self._detect()


@dataclass(frozen=True, eq=False)
class Detected:
    """Flip test of a question, and the biases that it detects at a rate; None without the test."""

    test: FlipTest | None
    detectable: FloatArray | None = None
    decidable: BoolArray | None = None


def _detect(scene: Scene, test: FlipTest | None, rate: float, watch: Watch) -> Detected:
    test = test or test_again(scene, part(watch, 0.0, 0.9))
    return Detected(None) if test is None else Detected(test, *detect_at(scene, test, rate))


def _rank(
    scene: Scene, linked: LinkedScores | None, flagged: BoolArray, watch: Watch
) -> tuple[LinkedScores, Ranking, Callable[[], Scores]]:
    linked = linked or link_items(scene, part(watch, 0.0, 0.8))
    return linked, *rank(scene, linked, flagged, part(watch, 0.8, 1.0))


def _complete(
    scene: Scene, ranking: Ranking, with_ranks: Callable[[], Scores], watch: Watch
) -> tuple[Match, Ranking]:
    match = measure_match(scene, ranking, watch)
    return match, replace(ranking, corrected=with_ranks())
