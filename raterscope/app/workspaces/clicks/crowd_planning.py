"""Annotators to ask next about an image, and the accuracy of methods by number of annotators."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Signal

from raterscope.algorithms.clicks.crowd_size import CrowdSizeCurve, CrowdSizeSettings
from raterscope.algorithms.clicks.experience import experience_of
from raterscope.algorithms.clicks.fusion import FusionPlan
from raterscope.algorithms.clicks.stopping import RankedAnnotators, rank_annotators
from raterscope.algorithms.evaluation import RADIUS
from raterscope.algorithms.progress import Watch
from raterscope.algorithms.settings import SettingsError
from raterscope.app.jobs import Job
from raterscope.app.kinds.clicks.evaluation import (
    Crowds,
    CrowdSizes,
    load_crowd_sizes,
    measure_images,
    read_crowds,
    store_crowd_sizes,
)
from raterscope.app.session import LatestTask
from raterscope.app.workspaces.clicks.annotators import pseudonym
from raterscope.app.workspaces.clicks.scene import Scene
from raterscope.app.workspaces.clicks.screen import ClicksCore, ClicksPart
from raterscope.app.workspaces.clicks.spots import ImageResult
from raterscope.app.workspaces.review_queue import ReviewQueue
from raterscope.text import percent
from raterscope.widgets.panels.lists import AskLine

MOST = 200

LOOKING = "Computing which annotator would correct the most errors."
NOT_FUSED = "Press Fuse (F5) or watch a source to see which annotator to ask next."
NOBODY = "Every annotator has seen this image. Ask a new annotator."


class ActiveLearning(ClicksPart):
    """Fills the list of annotators to ask next, by the errors each is expected to correct, while visible."""

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

    def _on_scene(self) -> None:
        """Show another image, run or step, or none."""
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
            AskLine(
                key=name,
                name=pseudonym(numbers[name]) if contents.hidden else name,
                why=f"finds {percent(float(next_annotators.sensitivity[row]))}",
                gain=float(next_annotators.gain[row]),
                more=next_annotators.why(row),
            )
            for row, name in enumerate(next_annotators.annotators[:MOST])
            if name in numbers
        ]
        self._screen.ask.show_lines(lines, NOBODY)


def _ask(scene: Scene, results: Sequence[ImageResult], watch: Watch) -> RankedAnnotators:
    assert scene.fusion is not None
    fused = [result for result in results if result.fusion is not None]
    experience = experience_of(
        [result.fusion for result in fused if result.fusion is not None],
        [result.annotators for result in fused], watch,
        weights=[result.weights for result in fused],
    )  # fmt: skip
    plan = FusionPlan() if scene.run is None else FusionPlan.from_dict(scene.run.settings)
    return rank_annotators(scene.clicks, scene.fusion, plan, experience, watch=watch)


class CrowdSizeCurves(ClicksPart):
    """Measures accuracy by number of annotators, on images with ground truth; the study keeps the curves."""

    refused = Signal(str)

    def __init__(self, core: ClicksCore) -> None:
        super().__init__(core)
        self._panel = core.screen.crowd_size
        self._measuring = False
        self._task = LatestTask()
        self._panel.requested.connect(self._on_requested)
        self._panel.cancelled.connect(self._on_cancelled)
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
        contents = self._document.contents
        if contents is None or not self._session.shown:
            self.refused.emit("Open a study of clicks first.")
            return
        on_screen = self._session.scene.image.id
        images = [on_screen] if scope == "one" else [item.id for item in contents.of("clicks")]
        self._panel.set_busy(True)
        job = self._document.ask("Reading clicks and ground truth", partial(read_crowds, images))
        self._measuring = False
        self._task.follow(
            job, partial(self._on_read, settings, self._plan()), stopped=partial(self._panel.set_busy, False)
        )

    def _plan(self) -> FusionPlan:
        run = self._session.scene.run
        try:
            return FusionPlan() if run is None else FusionPlan.from_dict(run.settings)
        except SettingsError:  # settings of an older version
            return FusionPlan()

    def _on_read(self, settings: CrowdSizeSettings, plan: FusionPlan, crowds: Crowds) -> None:
        contents = self._document.contents
        radius = RADIUS if contents is None else contents.matching_radius
        work = partial(measure_images, *crowds, radius, plan, settings)
        job = self._jobs.start("Measuring crowds of several sizes", work, costly=True)
        self._measuring = True
        self._task.follow(
            job, partial(self._on_measured, len(crowds[1]), radius, settings), progressed=self._on_progress,
            failed=self.refused.emit, stopped=partial(self._panel.set_busy, False),
        )  # fmt: skip

    def _on_cancelled(self) -> None:
        if self._measuring:
            self._task.stop()

    def _on_progress(self, job: Job) -> None:
        self._panel.set_busy(True, job.fraction)

    def _on_measured(
        self, images: int, radius: float, settings: CrowdSizeSettings, curves: tuple[CrowdSizeCurve, ...]
    ) -> None:
        self._measuring = False
        self._panel.set_busy(False)
        self._panel.set_curves(curves)
        keep = partial(store_crowd_sizes, curves, images, radius, settings)
        job = self._document.ask("Saving the measurements", keep)
        self._task.follow(job, self._on_kept, must_finish=True)
