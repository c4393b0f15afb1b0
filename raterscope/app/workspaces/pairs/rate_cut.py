"""The cut at a false discovery rate, and the ranking that follows. Nothing is fitted again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from PySide6.QtCore import QObject, QTimer, Signal

from raterscope.algorithms.pairs.data import BoolArray, FloatArray
from raterscope.algorithms.pairs.flip_test import FlipTest
from raterscope.algorithms.pairs.knockoffs import SortedDraws
from raterscope.algorithms.pairs.ranking import Linked
from raterscope.algorithms.progress import Watch, part
from raterscope.app.jobs import Jobs
from raterscope.app.session import LatestTask, while_shown
from raterscope.app.workspaces.pairs.scene import (
    Cut,
    PairsSession,
    Ranking,
    Scene,
    cut_at,
    detect_at,
    link_items,
    rank,
    test_again,
)

__all__ = ["RateCut"]

REST = 40
"""Milliseconds for which nobody else is flagged before the items are ranked: a slider goes on at once."""

MOST_KEPT = 64 * 1024**2
"""Bytes of what all rankings of a question rest on; where it is more, each finds it anew."""


class RateCut(QObject):
    """Moves the cut at once, and ranks in a thread of its own; late answers are dropped.

    Signals
    -------
    moved
        Another cut is there.
    rested
        It was not moved for a while.
    ranked
        The items are ranked anew.
    detected
        The cut has the detectable biases of its rate.
    refused(str)
    """

    moved = Signal()
    rested = Signal()
    ranked = Signal()
    detected = Signal()
    refused = Signal(str)

    def __init__(self, jobs: Jobs, session: PairsSession, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self._session = session
        self.cut: Cut | None = None
        self.ranking: Ranking | None = None
        self._draws: SortedDraws | None = None
        self._linked: Linked | None = None
        self._flagged: BoolArray | None = None
        self._due = False
        self._ranking_task, self._detecting = LatestTask(), LatestTask()
        self._test: FlipTest | None = None
        self._detected_at = float("nan")
        """The rate that the detectable biases of the cut belong to."""
        self._rest = QTimer(self)
        self._rest.setSingleShot(True)
        self._rest.setInterval(REST)
        self._rest.timeout.connect(self._on_rest)
        session.scene_changed.connect(self._on_scene)
        session.cleared.connect(self._clear)

    def _clear(self) -> None:
        self._stop()
        self._draws = self.cut = None
        self.ranking = self._flagged = self._linked = self._test = None
        self._detected_at = float("nan")

    def _on_scene(self) -> None:
        """Take another question or answer, with the cut at the rate that it was fused at."""
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
        """Rank the items with the biases of the flagged beside their scores, once that rests."""
        if self.cut is None:
            return
        if self._flagged is None or not np.array_equal(flagged, self._flagged):
            self._stop()
            self._flagged, self._due = flagged, True
        self._rest.start()

    def _stop(self) -> None:
        self._rest.stop()
        self._due = False
        self._ranking_task.cancel()
        self._detecting.cancel()

    @while_shown
    def _on_rest(self) -> None:
        self.rested.emit()
        self._detect()
        if self._flagged is None or not self._due:
            return
        self._due = False
        work = partial(_rank, self._session.scene, self._linked, self._flagged)
        job = self._jobs.start("Ranking the items", work, quiet=True)
        self._ranking_task.follow(job, self._on_ranked, failed=self.refused.emit)

    def _detect(self) -> None:
        """Find what is detectable at a rate other than the run's."""
        scene, cut = self._session.scene, self.cut
        if cut is None or cut.detectable is None or cut.rate == self._detected_at:
            return
        job = self._jobs.start(
            "Finding detectable biases", partial(_detect, scene, self._test, cut.rate), quiet=True
        )
        self._detecting.follow(job, partial(self._on_detected, cut.rate), failed=self.refused.emit)

    def _on_detected(self, rate: float, found: Detected) -> None:
        self._test = found.test
        if self.cut is None or self.cut.rate != rate:
            return
        self._detected_at = rate
        if found.test is not None:
            self.cut = replace(self.cut, detectable=found.detectable, decidable=found.decidable)
            self.detected.emit()

    def _on_ranked(self, found: tuple[Linked, Ranking]) -> None:
        linked, self.ranking = found
        self._linked = linked if sum(one.nbytes for one in linked.inverse) <= MOST_KEPT else None
        self.ranked.emit()


@dataclass(frozen=True, eq=False)
class Detected:
    """The flip test of a question, and what it detects at a rate; None for a run without the test."""

    test: FlipTest | None
    detectable: FloatArray | None = None
    decidable: BoolArray | None = None


def _detect(scene: Scene, test: FlipTest | None, rate: float, watch: Watch) -> Detected:
    test = test or test_again(scene, part(watch, 0.0, 0.9))
    return Detected(None) if test is None else Detected(test, *detect_at(scene, test, rate))


def _rank(scene: Scene, linked: Linked | None, flagged: BoolArray, watch: Watch) -> tuple[Linked, Ranking]:
    linked = linked or link_items(scene, part(watch, 0.0, 0.8))
    return linked, rank(scene, linked, flagged, part(watch, 0.8, 1.0))
