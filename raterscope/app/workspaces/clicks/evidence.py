"""Evidence for the selected spot: its votes, its crop, and the results of other runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from PySide6.QtCore import Signal

from raterscope.algorithms.clicks.data import FloatArray
from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.progress import Watch
from raterscope.app import review
from raterscope.app.review import Decision, SpotSubject
from raterscope.app.session import LatestTask
from raterscope.app.study import RunEntry, Study
from raterscope.app.study.runs import run_title
from raterscope.app.workspaces.clicks import view
from raterscope.app.workspaces.clicks.batch_review import CropCache, ListedSpot
from raterscope.app.workspaces.clicks.scene import Crops, Scene
from raterscope.app.workspaces.clicks.screen import ClicksCore, ClicksPart
from raterscope.app.workspaces.clicks.spot_review import SpotReview
from raterscope.app.workspaces.clicks.spots import ImageResult, Spot, spots_of
from raterscope.widgets.panels.evidence_panel import CHOOSE, EvidenceLine

MOST = 20
"""Maximum number of runs read, the latest first."""


@dataclass(frozen=True, eq=False)
class _RunSpots:
    """Spots of an image in a run."""

    run: RunEntry
    spots: tuple[Spot, ...]
    mean: FloatArray
    covariance: FloatArray


class OtherRuns(ClicksPart):
    """Results of other runs for the image on screen."""

    read = Signal()  # another run was read

    def __init__(self, core: ClicksCore) -> None:
        super().__init__(core)
        self._image_and_run: tuple[int, int | None] | None = None
        self._waiting: list[RunEntry] = []
        self._results: list[_RunSpots] | None = None
        self._task = LatestTask()
        core.session.scene_changed.connect(self._on_scene)
        core.session.cleared.connect(self._clear)

    def _clear(self) -> None:
        self._image_and_run = self._results = None
        self._task.cancel()

    def _on_scene(self, scene: Scene) -> None:
        """Drop the results of another image or run."""
        self._clear()
        self._image_and_run = scene.image.id, None if scene.run is None else scene.run.id

    @property
    def reading(self) -> bool:
        """Whether runs are still to be read."""
        return self._results is None or bool(self._waiting)

    def read_all(self) -> None:
        """Start to read the other runs."""
        if self._results is not None or self._image_and_run is None:
            return
        image, run_shown = self._image_and_run
        runs = [run for run in self._document.runs_of("clicks") if image in run.items and run.id != run_shown]
        self._results, self._waiting = [], runs[-MOST:]
        self._read_on()

    def lines(self, spot: Spot) -> list[EvidenceLine]:
        """List the results of the other runs for a spot, the latest first."""
        evidence_lines = []
        for run_spots in self._results or ():
            position = review.Spot(spot.x, spot.y, "skipped", 0, spot.x, spot.y)
            (cluster,) = review.match([position], run_spots.mean, run_spots.covariance)
            evidence_lines.append(_line(run_spots, None if cluster is None else run_spots.spots[cluster]))
        return evidence_lines

    def _read_on(self) -> None:
        if self._image_and_run is None or self._results is None or not self._waiting:
            self.read.emit()
            return
        # One run at a time, so that a decision never waits for all of them.
        run = self._waiting.pop()
        job = self._document.ask("Reading another run", partial(_read, run, self._image_and_run[0]))
        self._task.follow(job, partial(self._on_read, self._results, run))

    def _on_read(self, results: list[_RunSpots], run: RunEntry, fusion: Fusion | None) -> None:
        if fusion is not None:
            spots = spots_of(fusion, len(fusion.marked), ())
            results.append(_RunSpots(run, spots, fusion.clustering.mean, fusion.clustering.covariance))
        self._read_on()


def _read(run: RunEntry, image: int, study: Study, watch: Watch) -> Fusion | None:
    watch(0.0, "reading another run")
    fusion: Fusion | None = study.runs.result(run.id, image)
    return fusion


def _line(run_spots: _RunSpots, spot: Spot | None) -> EvidenceLine:
    title = f"{run_title(run_spots.run)}  {run_spots.run.started.astimezone():%d %b %H:%M}"
    if spot is None:
        return EvidenceLine(run_spots.run.id, title, "no spot here", "", "", f"{title}: no spot here")
    votes, figure = f"{spot.votes} of {spot.looked}", f"{spot.posterior:.2f}"
    tip = f"{title}: {votes} marked it, posterior probability {figure}, {spot.state}"
    return EvidenceLine(run_spots.run.id, title, votes, figure, spot.state, tip)


DECIDED = {"accept": "accepted", "reject": "rejected", "move": "moved"}
FUSE_FIRST = "Press Fuse (F5) to see what was found, and why."
NO_SPOTS = "No spots were found on this image. Press N to add one."
ELSEWHERE = "Press Return to show the spot on its image, with the results of other runs."
NO_OTHER = "No other run includes this image."


class Evidence(ClicksPart):
    """Contents of the evidence panel for the selected spot."""

    def __init__(self, core: ClicksCore, crops: Crops, reviewing: SpotReview, coverage: float) -> None:
        super().__init__(core)
        self._panel, self._reviewing, self._crops = core.screen.evidence, reviewing, crops
        self._coverage = coverage
        self._last_decision = ""
        self.other_runs = OtherRuns(core)
        crops.arrived.connect(self._on_crop)
        reviewing.selected.connect(self.show)
        self.other_runs.read.connect(self._show_runs)
        self._panel.runs_requested.connect(self._on_runs_requested)
        self._panel.about.near.chosen.connect(reviewing.select)

    def set_coverage(self, coverage: float) -> None:
        """Draw the ellipse that contains this share of the clicks."""
        self._coverage = coverage
        self.show()

    def remember(self, decision: Decision) -> None:
        """Keep votes and posterior of the spot just decided, to show them beside the next spot."""
        spot, verb = self._reviewing.spot, DECIDED.get(decision.verb)
        self._last_decision = ""
        is_single = isinstance(decision.subject, SpotSubject)
        if is_single and spot is not None and spot.cluster is not None and verb is not None:
            self._last_decision = (
                f"Spot {spot.number}: you {verb} it; {spot.votes} of {spot.looked} marked it, "
                f"the model says {spot.posterior:.2f}."
            )

    def show(self) -> None:
        """Show the selected spot, or an empty panel."""
        reviewing, session, spot = self._reviewing, self._reviewing.session, self._reviewing.spot
        if spot is None or reviewing.current is None:
            unfused = session.shown and session.scene.fusion is None
            without = CHOOSE if reviewing.spots or not session.shown else NO_SPOTS
            self._panel.show_spot(None, FUSE_FIRST if unfused else without)
            return
        scene, radius = session.scene, view.radius_of(spot)
        crop = self._crops.of(spot.x, spot.y, radius)
        if reviewing.covers(spot):
            self._panel.show_spot(view.covered(spot, crop, radius, self._coverage, self._last_decision))
            return
        size = scene.image.pixel_size
        near = view.neighbours(reviewing.spots, reviewing.current, size, blind=reviewing.blind)
        clicks, numbers = scene.clicks, self._document.numbers
        result = ImageResult(scene.fusion, clicks.annotators, weights=clicks.weights)
        self._panel.show_spot(
            view.evidence(spot, result, numbers, crop, radius, self._coverage, near, clicks.programs)
        )

    def show_elsewhere(self, listed: ListedSpot, result: ImageResult, cache: CropCache) -> None:
        """Show the evidence for a spot on another image."""
        spot, crop, half = listed.spot, cache.get(listed.number), cache.half
        if self._reviewing.covers(spot):
            self._panel.show_spot(view.covered(spot, crop, half, self._coverage, self._last_decision))
            return
        shown = view.evidence(spot, result, self._document.numbers, crop, half, self._coverage)
        self._panel.show_spot(replace(shown, where=self._name(listed.image)))

    def _on_crop(self) -> None:
        if self._reviewing.spot is not None:  # otherwise a spot of another image may be shown
            self.show()

    def _on_runs_requested(self) -> None:
        self.other_runs.read_all()
        self._show_runs()

    def _name(self, image: int) -> str:
        contents = self._document.contents
        entry = contents.image(image) if contents else None
        return entry.name if entry else ""

    def _show_runs(self) -> None:
        spot = self._reviewing.spot
        if spot is None:
            self._panel.about.show_runs((), ELSEWHERE)
            return
        lines = self.other_runs.lines(spot)
        self._panel.about.show_runs(None if not lines and self.other_runs.reading else lines, NO_OTHER)
