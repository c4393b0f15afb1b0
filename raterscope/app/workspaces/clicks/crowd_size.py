"""Methods against the number of annotators, measured on the study's clicks where places are known."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject, Signal

from raterscope.algorithms.clicks.crowd_size import CrowdSizeCurve, CrowdSizeSettings
from raterscope.algorithms.clicks.fusion import FusionPlan
from raterscope.algorithms.matching import RADIUS
from raterscope.algorithms.settings import SettingsError
from raterscope.app.clicks.crowd_size import (
    Crowds,
    CrowdSizes,
    keep_crowd_sizes,
    kept_crowd_sizes,
    measure_images,
    read_crowds,
)
from raterscope.app.document import Document
from raterscope.app.jobs import Job, Jobs
from raterscope.app.workspaces.clicks.scene import Scene
from raterscope.app.workspaces.clicks.screen import ClicksScreen

__all__ = ["CrowdSizeMeasuring"]


class CrowdSizeMeasuring(QObject):
    """Measures on request, with the plan of the run on screen as the chosen method; the study keeps curves.

    Signals
    -------
    refused : str
    """

    refused = Signal(str)

    def __init__(self, document: Document, jobs: Jobs, screen: ClicksScreen) -> None:
        super().__init__(screen)
        self._document, self._jobs, self._panel = document, jobs, screen.crowd_size
        self._scene: Scene | None = None
        self._asked = 0
        self._panel.requested.connect(self._on_requested)
        document.replaced.connect(self._on_replaced)

    def show_scene(self, scene: Scene | None) -> None:
        """Take another image or run."""
        self._scene = scene

    def _on_replaced(self) -> None:
        self._asked += 1
        self._panel.set_busy(False)
        self._panel.set_curves(())
        if self._document.contents is not None:
            job = self._document.ask("Reading what was measured", kept_crowd_sizes)
            job.finished.connect(partial(self._on_kept, self._asked))

    def _on_kept(self, asked: int, kept: CrowdSizes | None) -> None:
        if asked == self._asked and kept is not None:
            self._panel.set_curves(kept.curves, kept.facts)

    def _on_requested(self, settings: CrowdSizeSettings, scope: str) -> None:
        contents = self._document.contents
        if contents is None or self._scene is None:
            self.refused.emit("Open a study of clicks first.")
            return
        images = [self._scene.image.id] if scope == "one" else [item.id for item in contents.of("clicks")]
        self._asked += 1
        self._panel.set_busy(True)
        job = self._document.ask("Reading clicks and ground truth", partial(read_crowds, images))
        job.finished.connect(partial(self._on_read, self._asked, settings, self._plan()))
        job.failed.connect(partial(self._on_failed, self._asked))

    def _plan(self) -> FusionPlan:
        run = None if self._scene is None else self._scene.run
        try:
            return FusionPlan() if run is None else FusionPlan.from_dict(run.settings)
        except SettingsError:  # of an older version
            return FusionPlan()

    def _on_read(self, asked: int, settings: CrowdSizeSettings, plan: FusionPlan, crowds: Crowds) -> None:
        if asked != self._asked:
            return
        contents = self._document.contents
        radius = RADIUS if contents is None else contents.matching_radius
        work = partial(measure_images, *crowds, radius, plan, settings)
        job = self._jobs.start("Measuring crowds of several sizes", work, costly=True)
        job.progressed.connect(partial(self._on_progress, asked, job))
        self._panel.cancelled.connect(job.cancel)
        job.finished.connect(partial(self._on_measured, asked, len(crowds[1]), radius, settings))
        job.failed.connect(self.refused)
        job.ended.connect(partial(self._on_ended, asked))

    def _on_progress(self, asked: int, job: Job) -> None:
        if asked == self._asked:
            self._panel.set_busy(True, job.fraction)

    def _on_measured(
        self,
        asked: int,
        images: int,
        radius: float,
        settings: CrowdSizeSettings,
        curves: tuple[CrowdSizeCurve, ...],
    ) -> None:
        if asked == self._asked:
            self._panel.set_curves(curves)
            keep = partial(keep_crowd_sizes, curves, images, radius, settings)
            job = self._document.ask("Keeping what was measured", keep)
            job.finished.connect(partial(self._on_kept, asked))

    def _on_failed(self, asked: int, _words: str) -> None:
        self._on_ended(asked)

    def _on_ended(self, asked: int) -> None:
        if asked == self._asked:
            self._panel.set_busy(False)
