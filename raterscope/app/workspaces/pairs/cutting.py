"""The cut at a false discovery rate, and the ranking that follows; nothing is fitted anew."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject, Signal

from raterscope.algorithms.pairs.data import BoolArray
from raterscope.algorithms.progress import Watch
from raterscope.app.jobs import Jobs
from raterscope.app.workspaces.pairs.scene import Cut, Ranking, Scene, cut_at, rank

__all__ = ["Cutting"]


class Cutting(QObject):
    """Works out cuts and rankings in threads of their own; late answers are dropped.

    Signals
    -------
    moved(bool)
        Another cut is there; whether it is the first of this answer.
    ranked
        The items are ranked anew.
    refused(str)
    """

    moved = Signal(bool)
    ranked = Signal()
    refused = Signal(str)

    def __init__(self, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self._scene: Scene | None = None
        self.cut: Cut | None = None
        self.ranking: Ranking | None = None
        self._cuts = self._ranks = 0

    @property
    def plus(self) -> bool:
        """Whether the cut is that of knockoff+, which promises its rate."""
        run = None if self._scene is None else self._scene.run
        return True if run is None else bool(run.settings.get("settings", {}).get("plus", True))

    def show(self, scene: Scene | None) -> None:
        """Take another question or answer, cut at the rate that it was fused at."""
        self._scene = scene
        self.cut = self.ranking = None
        self._cuts += 1
        self._ranks += 1
        if scene is not None and scene.fusion is not None:
            self.move(scene.fusion.rate)

    def move(self, rate: float) -> None:
        """Move the cut."""
        scene = self._scene
        if scene is None or scene.fusion is None:
            return
        self._cuts += 1
        job = self._jobs.start("Moving the cut", partial(_cut, scene, rate, self.plus), quiet=True)
        job.finished.connect(partial(self._on_cut, self._cuts))
        job.failed.connect(self.refused)

    def rank(self, flagged: BoolArray) -> None:
        """Rank the items with the biases of the flagged beside their scores."""
        if self._scene is None:
            return
        self._ranks += 1
        job = self._jobs.start("Ranking the items", partial(_rank, self._scene, flagged), quiet=True)
        job.finished.connect(partial(self._on_ranked, self._ranks))
        job.failed.connect(self.refused)

    def _on_cut(self, number: int, cut: Cut) -> None:
        if number == self._cuts:
            first = self.cut is None
            self.cut = cut
            self.moved.emit(first)

    def _on_ranked(self, number: int, ranking: Ranking) -> None:
        if number == self._ranks:
            self.ranking = ranking
            self.ranked.emit()


def _cut(scene: Scene, rate: float, plus: bool, watch: Watch) -> Cut:
    watch(0.0, "moving the cut")
    assert scene.fusion is not None
    return cut_at(scene.fusion, rate, plus)


def _rank(scene: Scene, flagged: BoolArray, watch: Watch) -> Ranking:
    return rank(scene, flagged, watch)
