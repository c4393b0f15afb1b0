"""What other runs say of a spot: read from the study once somebody looks, one run at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QObject, Signal

from raterscope.algorithms.clicks.data import FloatArray
from raterscope.algorithms.clicks.results import Fusion
from raterscope.algorithms.progress import Watch
from raterscope.app import review
from raterscope.app.document import Document
from raterscope.app.session import LatestTask
from raterscope.app.study import RunEntry, Study
from raterscope.app.workspaces.clicks.scene import ClicksSession, Scene
from raterscope.app.workspaces.clicks.spots import Spot, spots_of
from raterscope.app.workspaces.lines import run_title
from raterscope.widgets.panels.evidence_lines import EvidenceLine

__all__ = ["OtherRuns"]

MOST = 20
"""Runs that are read, the latest."""


@dataclass(frozen=True, eq=False)
class _Said:
    """What a run says of an image, and where."""

    run: RunEntry
    spots: tuple[Spot, ...]
    mean: FloatArray
    covariance: FloatArray


class OtherRuns(QObject):
    """Keeps what the other runs say of the image on screen.

    Signals
    -------
    read
        More is known.
    """

    read = Signal()

    def __init__(self, document: Document, session: ClicksSession, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._document = document
        self._of: tuple[int, int | None] | None = None
        self._waiting: list[RunEntry] = []
        self._said: list[_Said] | None = None
        self._task = LatestTask()
        session.scene_changed.connect(self._on_scene)
        session.cleared.connect(self._clear)

    def _clear(self) -> None:
        self._of = self._said = None
        self._task.cancel()

    def _on_scene(self, scene: Scene) -> None:
        """Take another image, or the same with another run."""
        self._clear()
        self._of = scene.image.id, None if scene.run is None else scene.run.id

    @property
    def reading(self) -> bool:
        """Whether not all is known yet."""
        return self._said is None or bool(self._waiting)

    def look(self) -> None:
        """Read what is not known yet."""
        contents = self._document.contents
        if self._said is not None or self._of is None or contents is None:
            return
        image, shown = self._of
        runs = [run for run in contents.runs_of("clicks") if image in run.items and run.id != shown]
        self._said, self._waiting = [], runs[-MOST:]
        self._read_on()

    def lines(self, spot: Spot) -> list[EvidenceLine]:
        """Say a line a run, the latest first."""
        found = []
        for said in self._said or ():
            here = review.Spot(spot.x, spot.y, "skipped", 0, spot.x, spot.y)
            (cluster,) = review.match([here], said.mean, said.covariance)
            found.append(_line(said, None if cluster is None else said.spots[cluster]))
        return found

    def _read_on(self) -> None:
        if self._of is None or self._said is None or not self._waiting:
            self.read.emit()
            return
        # One at a time, so that a decision never waits behind all of them.
        run = self._waiting.pop()
        job = self._document.ask("Reading another run", partial(_read, run, self._of[0]))
        self._task.follow(job, partial(self._on_read, self._said, run))

    def _on_read(self, said: list[_Said], run: RunEntry, fusion: Fusion | None) -> None:
        if fusion is not None:
            spots = spots_of(fusion, len(fusion.marked), ())
            said.append(_Said(run, spots, fusion.clustering.mean, fusion.clustering.covariance))
        self._read_on()


def _read(run: RunEntry, image: int, study: Study, watch: Watch) -> Fusion | None:
    watch(0.0, "reading another run")
    fusion: Fusion | None = study.result(run.id, image)
    return fusion


def _line(said: _Said, spot: Spot | None) -> EvidenceLine:
    title = f"{run_title(said.run)}  {said.run.started.astimezone():%d %b %H:%M}"
    if spot is None:
        return EvidenceLine(said.run.id, title, "no spot here", "", "", f"{title}: no spot here")
    votes, figure = f"{spot.votes} of {spot.looked}", f"{spot.posterior:.2f}"
    tip = f"{title}: {votes} marked it, posterior probability {figure}, {spot.state}"
    return EvidenceLine(said.run.id, title, votes, figure, spot.state, tip)
