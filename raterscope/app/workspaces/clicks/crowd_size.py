"""Accuracy of the methods by number of annotators, measured on images with ground truth."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Signal

from raterscope.algorithms.clicks.crowd_size import CrowdSizeCurve, CrowdSizeSettings
from raterscope.algorithms.clicks.fusion import FusionPlan
from raterscope.algorithms.evaluation import RADIUS
from raterscope.algorithms.settings import SettingsError
from raterscope.app.jobs import Job
from raterscope.app.kinds.clicks.crowd_size import (
    Crowds,
    CrowdSizes,
    keep_crowd_sizes,
    kept_crowd_sizes,
    measure_images,
    read_crowds,
)
from raterscope.app.session import LatestTask
from raterscope.app.workspaces.clicks.screen import ClicksCore, ClicksPart

__all__ = ["CrowdSizeMeasuring"]


class CrowdSizeMeasuring(ClicksPart):
    """Measures on request, with the plan of the run on screen as the chosen method; the study keeps curves.

    Signals
    -------
    refused : str
    """

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
            job = self._document.ask("Reading what was measured", kept_crowd_sizes)
            self._task.follow(job, self._on_kept)

    def _on_kept(self, kept: CrowdSizes | None) -> None:
        if kept is not None:
            self._panel.set_curves(kept.curves, kept.facts)

    def _on_requested(self, settings: CrowdSizeSettings, scope: str) -> None:
        contents = self._document.contents
        if contents is None or not self._session.shown:
            self.refused.emit("Open a study of clicks first.")
            return
        here = self._session.scene.image.id
        images = [here] if scope == "one" else [item.id for item in contents.of("clicks")]
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
        except SettingsError:  # of an older version
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
        self,
        images: int,
        radius: float,
        settings: CrowdSizeSettings,
        curves: tuple[CrowdSizeCurve, ...],
    ) -> None:
        self._measuring = False
        self._panel.set_busy(False)
        self._panel.set_curves(curves)
        keep = partial(keep_crowd_sizes, curves, images, radius, settings)
        job = self._document.ask("Keeping what was measured", keep)
        self._task.follow(job, self._on_kept, must_finish=True)
