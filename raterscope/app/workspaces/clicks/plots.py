"""Plots linked with canvas, evidence and queue; annotators to ask next; accuracy by number of annotators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from PySide6.QtCore import Signal

from raterscope.algorithms.clicks.counting import expected_count
from raterscope.algorithms.clicks.crowd_size import CrowdSizeCurve, CrowdSizeSettings
from raterscope.algorithms.clicks.fusion import FusionPlan
from raterscope.algorithms.clicks.image_priors import experience_of
from raterscope.algorithms.clicks.result import LEVEL_ERROR, Clustering, Trace
from raterscope.algorithms.clicks.stopping import RankedAnnotators, rank_annotators
from raterscope.algorithms.evaluation import RADIUS
from raterscope.algorithms.progress import Watch
from raterscope.app.kinds.clicks.evaluation import (
    Crowds,
    CrowdSizes,
    load_crowd_sizes,
    measure_images,
    read_crowds,
    store_crowd_sizes,
)
from raterscope.app.kinds.clicks.runs import plan_of
from raterscope.app.review import ReviewState, Spot
from raterscope.app.session import LatestTask
from raterscope.app.study import Study
from raterscope.app.workspaces.clicks.annotators import Annotators, pseudonym
from raterscope.app.workspaces.clicks.run_comparison import RunComparison
from raterscope.app.workspaces.clicks.scene import Scene
from raterscope.app.workspaces.clicks.screen import ClicksCore, ClicksPart
from raterscope.app.workspaces.clicks.spot_review import SpotReview
from raterscope.app.workspaces.clicks.spots import ImageResult, spots_of
from raterscope.app.workspaces.review_queue import ReviewQueue
from raterscope.text import percent
from raterscope.widgets.figures.count_plots import CountsView
from raterscope.widgets.figures.evaluation_plots import NO_TRACE
from raterscope.widgets.panels.lists import Suggestion

Count = tuple[float, float, float]
MadeFrom = tuple[ImageResult, tuple[Spot, ...]]
UNKNOWN = (float("nan"),) * 3
NO_ITERATIONS = "There are no iterations to plot."


class LinkedPlots(ClicksPart):
    """Counts by image, convergence of the run, and marks of the spot on screen in the plots of ground truth.

    Counts are computed while visible, and only for changed images.
    """

    def __init__(
        self,
        core: ClicksCore,
        review_queue: ReviewQueue,
        reviewing: SpotReview,
        comparing: RunComparison,
        annotators: Annotators,
    ) -> None:
        super().__init__(core)
        self._review_queue, self._reviewing, self._comparing = review_queue, reviewing, comparing
        self._counts: dict[int, Count] = {}
        self._made_from: dict[int, MadeFrom] = {}
        self._truth: dict[int, int] = {}
        self._truth_stale = True
        self._under_way = False
        core.document.replaced.connect(self._on_replaced)
        core.document.changed.connect(self._on_changed)
        lines = core.screen.queue.view.model()
        lines.modelReset.connect(self.refresh)
        lines.dataChanged.connect(self.refresh)
        lines.rowsInserted.connect(self.refresh)
        review_queue.all_read.connect(self.refresh)
        core.screen.middle_tabs.currentChanged.connect(self.refresh)
        core.screen.counts.figure.chosen.connect(core.screen.queue.item_chosen.emit)
        reviewing.selected.connect(self._on_selected)
        reviewing.session.scene_changed.connect(self._on_scene)
        reviewing.session.blind_changed.connect(self.refresh)
        reviewing.session.cleared.connect(self._clear)
        comparing.plot.threshold_chosen.connect(self._on_threshold)
        core.screen.trust.plot.bin_chosen.connect(self._on_bin)
        annotators.chosen.connect(core.screen.canvas.choose_annotator)
        annotators.chosen.connect(core.screen.evidence.about.choose_voter)
        self._on_replaced()

    def _clear(self) -> None:
        self._screen.counts.select(None)
        self.show_trace(None)

    def _on_scene(self, scene: Scene) -> None:
        """Mark the image on screen, and plot the convergence of its run."""
        self._screen.counts.select(scene.image.id)
        self.show_trace(None if scene.fusion is None else scene.fusion.clustering)

    def show_trace(self, clustering: Clustering | None) -> None:
        """Plot the convergence of a result or a partial result."""
        trace = Trace.none() if clustering is None else clustering.trace
        self._screen.objective.set_nothing(NO_TRACE if clustering is None else NO_ITERATIONS)
        self._screen.objective.set_trace(
            trace.objective, trace.components, trace.removed, trace.best, trace.converged
        )

    # Counts by image

    def refresh(self) -> None:
        """Update the counts, if they are visible."""
        review = self._document.review
        if self._screen.middle_tabs.currentWidget() is not self._screen.counts:
            return
        if self._truth_stale:
            self._truth_stale = False
            self._document.ask("Reading ground truth", _read_truth).finished.connect(self._on_truth)
        made_from = {
            image: (result, tuple(review.spots(image)))
            for image, result in self._review_queue.results.items()
            if result.fusion is not None
        }
        for image in self._counts.keys() - made_from.keys():
            del self._counts[image]
        stale = {image: made[0] for image, made in made_from.items() if self._made_from.get(image) != made}
        self._show()
        if stale and not self._under_way:
            self._under_way = True
            self._made_from |= {image: made_from[image] for image in stale}
            job = self._jobs.start("Counting", partial(_count, stale, review), quiet=True)
            job.finished.connect(self._on_counted)
            job.ended.connect(self._on_ended)

    def _on_counted(self, counts: Mapping[int, Count]) -> None:
        self._counts.update(counts)

    def _on_ended(self) -> None:
        self._under_way = False
        self.refresh()

    def _show(self) -> None:
        titles = {item.key: item.title for item in self._screen.queue.shown() if isinstance(item.key, int)}
        blind = self._session.blind
        self._screen.counts.set_nothing("Counts are hidden in blind mode." if blind else "")
        if not titles or blind:
            self._screen.counts.show_counts(None)
            return
        numbers, names = list(titles), list(titles.values())
        expected, low, high = np.array([self._counts.get(number, UNKNOWN) for number in numbers]).T
        truth = np.array([self._truth.get(number, np.nan) for number in numbers], dtype=float)
        self._screen.counts.show_counts(CountsView(np.array(numbers), names, expected, low, high, truth))
        self._screen.counts.select(self._review_queue.current)

    def _on_replaced(self) -> None:
        self._counts.clear()
        self._made_from.clear()
        self._truth.clear()
        self._screen.counts.show_counts(None)
        self._screen.canvas.choose_annotator(None)
        self._screen.evidence.about.choose_voter(None)
        self._on_changed()

    def _on_changed(self) -> None:
        self._truth_stale = True
        self.refresh()

    def _on_truth(self, truth: dict[int, int]) -> None:
        self._truth = truth
        self.refresh()

    # The spot on screen

    def _on_selected(self, _index: int | None) -> None:
        spot = self._reviewing.spot
        posterior = None if spot is None or not np.isfinite(spot.posterior) else spot.posterior
        self._comparing.plot.mark(posterior)
        self._screen.trust.plot.mark(posterior)

    def _on_threshold(self, threshold: float) -> None:
        """Select the spot whose posterior is nearest to a threshold."""
        distances = [abs(spot.posterior - threshold) for spot in self._reviewing.spots]
        finite = [index for index, distance in enumerate(distances) if np.isfinite(distance)]
        if finite:
            self._reviewing.select(min(finite, key=distances.__getitem__))

    def _on_bin(self, low: float, high: float) -> None:
        """Select the next spot of the image with a posterior in a bin, cyclically."""
        inside = [
            index
            for index, spot in enumerate(self._reviewing.spots)
            if low <= spot.posterior < high or spot.posterior == high == 1.0
        ]
        current = -1 if self._reviewing.current is None else self._reviewing.current
        if inside:
            self._reviewing.select(next((index for index in inside if index > current), inside[0]))


def _count(images: Mapping[int, ImageResult], state: ReviewState, watch: Watch) -> dict[int, Count]:
    counts = {}
    for done, (image, result) in enumerate(images.items()):
        watch(done / len(images), "counting")
        spots = spots_of(result.fusion, len(result.annotators), state.spots(image))
        certain = {"accepted": 1.0, "added": 1.0, "turned down": 0.0}
        ends = np.array(
            [
                [certain.get(spot.state, end) for end in (spot.posterior, spot.low, spot.high)]
                for spot in spots
            ]
        ).reshape(-1, 3)
        posterior, low, high = ends.T
        error = LEVEL_ERROR if result.fusion is None else result.fusion.detection.level_error
        counts[image] = expected_count(posterior, low, high, error)
    return counts


def _read_truth(study: Study, watch: Watch) -> dict[int, int]:
    watch(0.0, "reading ground truth")
    truths = {entry.id: study.truth(entry.id) for entry in study.images()}
    return {image: len(points) for image, points in truths.items() if points.known}


MOST = 200

LOOKING = "Computing which annotator would correct the most errors."
NOT_FUSED = "Press Fuse (F5) or watch a source to see which annotator to ask next."
NONE_LEFT = "Every annotator has seen this image. Ask a new annotator."


class ActiveLearning(ClicksPart):
    """List of annotators to ask next, by the expected number of corrected errors; filled while visible."""

    def __init__(self, core: ClicksCore, review_queue: ReviewQueue) -> None:
        super().__init__(core)
        self._review_queue = review_queue
        self._task = LatestTask()
        self._done = False
        self._next_annotators: RankedAnnotators | None = None
        core.document.names_changed.connect(self._show)
        core.screen.right_tabs.currentChanged.connect(self._update)
        core.session.scene_changed.connect(self._on_scene)
        core.session.cleared.connect(self._on_scene)
        review_queue.all_read.connect(self._on_scene)

    def _on_scene(self) -> None:
        """Show another scene or none, or the same scene after the other images were read."""
        self._task.cancel()
        self._done = False
        self._next_annotators = None
        self._update()

    def _update(self) -> None:
        if self._done or self._screen.right_tabs.currentWidget() is not self._screen.ask:
            return
        self._done = True
        if self._session.shown and self._may_ask(self._session.scene):
            self._compute_gain(self._session.scene)
        else:
            self._screen.ask.show_lines((), NOT_FUSED)

    def _may_ask(self, scene: Scene) -> bool:
        return scene.fusion is not None and len(scene.clicks.annotators) > 1

    def _compute_gain(self, scene: Scene) -> None:
        results = [result for image, result in self._review_queue.results.items() if image != scene.image.id]
        if not self._screen.ask.list.lines:
            self._screen.ask.show_lines((), LOOKING)
        job = self._jobs.start(
            "Computing the gain of further annotators", partial(_ask, scene, results), quiet=True
        )
        self._task.follow(job, self._on_found)

    def _on_found(self, next_annotators: RankedAnnotators) -> None:
        self._next_annotators = next_annotators
        self._show()

    def _show(self) -> None:
        next_annotators, contents = self._next_annotators, self._document.contents
        if next_annotators is None or contents is None:
            return
        numbers = {name: number for number, name in enumerate(contents.annotators)}
        lines = [
            Suggestion(
                key=name,
                name=pseudonym(numbers[name]) if contents.hidden else name,
                why=f"finds {percent(float(next_annotators.sensitivity[row]))}",
                gain=float(next_annotators.gain[row]),
                more=next_annotators.why(row),
            )
            for row, name in enumerate(next_annotators.annotators[:MOST])
            if name in numbers
        ]
        self._screen.ask.show_lines(lines, NONE_LEFT)


def _ask(scene: Scene, results: Sequence[ImageResult], watch: Watch) -> RankedAnnotators:
    assert scene.fusion is not None
    fused = [result for result in results if result.fusion is not None]
    experience = experience_of(
        [result.fusion for result in fused if result.fusion is not None],
        [result.annotators for result in fused], watch,
        weights=[result.weights for result in fused],
    )  # fmt: skip
    return rank_annotators(scene.clicks, scene.fusion, _plan_of(scene), experience, watch=watch)


def _plan_of(scene: Scene) -> FusionPlan:
    """Return the plan of the run on screen; the default without a run or for one of another version."""
    return (None if scene.run is None else plan_of(scene.run)) or FusionPlan()


class CrowdSizeCurves(ClicksPart):
    """Accuracy by number of annotators, on images with ground truth; the study stores the curves."""

    refused = Signal(str)

    def __init__(self, core: ClicksCore) -> None:
        super().__init__(core)
        self._panel = core.screen.crowd_size
        self._measuring = False
        self._task = LatestTask()
        self._panel.requested.connect(self._on_requested)
        self._panel.cancel.clicked.connect(self._on_cancelled)
        core.document.replaced.connect(self._on_replaced)

    def _on_replaced(self) -> None:
        self._task.cancel()
        self._panel.set_busy(False)
        self._panel.set_curves(())
        if self._document.contents is not None:
            job = self._document.ask("Reading the measurements", load_crowd_sizes)
            self._task.follow(job, self._on_kept)

    def _on_kept(self, stored: CrowdSizes | None) -> None:
        if stored is not None:
            self._panel.set_curves(stored.curves, stored.facts)

    def _on_requested(self, settings: CrowdSizeSettings, scope: str) -> None:
        if not self._session.shown:
            self.refused.emit("Open a study of clicks first.")
            return
        on_screen = self._session.scene.image.id
        images = [on_screen] if scope == "one" else [item.id for item in self._document.items("clicks")]
        self._panel.set_busy(True)
        job = self._document.ask("Reading clicks and ground truth", partial(read_crowds, images))
        self._measuring = False
        measure = partial(self._on_read, settings, _plan_of(self._session.scene))
        self._task.follow(job, measure, stopped=partial(self._panel.set_busy, False))

    def _on_read(self, settings: CrowdSizeSettings, plan: FusionPlan, crowds: Crowds) -> None:
        contents = self._document.contents
        radius = RADIUS if contents is None else contents.matching_radius
        work = partial(measure_images, *crowds, radius, plan, settings)
        job = self._jobs.start("Measuring crowds of several sizes", work, costly=True)
        self._measuring = True
        measured = partial(self._on_measured, len(crowds[1]), radius, settings)
        self._task.measure(job, self._panel, measured, self.refused.emit)

    def _on_cancelled(self) -> None:
        if self._measuring:
            self._task.stop()

    def _on_measured(
        self, images: int, radius: float, settings: CrowdSizeSettings, curves: tuple[CrowdSizeCurve, ...]
    ) -> None:
        self._measuring = False
        self._panel.set_curves(curves)
        keep = partial(store_crowd_sizes, curves, images, radius, settings)
        job = self._document.ask("Saving the measurements", keep)
        self._task.follow(job, self._on_kept, must_finish=True)
