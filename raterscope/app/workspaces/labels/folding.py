"""ROC curves of all methods by cross-validation on the labels screen."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from PySide6.QtCore import QObject, Signal

from raterscope.algorithms.labels.catalogue import labeller_title
from raterscope.algorithms.labels.roc_curves import FoldedCurves, FoldedMethod, FoldedSettings, mean_area
from raterscope.app.document import Document
from raterscope.app.errors import counted
from raterscope.app.jobs import Job, Jobs
from raterscope.app.kinds.labels.answers import plan_of
from raterscope.app.kinds.labels.folded import KeptFolds, fold_question, keep_folds, kept_folds
from raterscope.app.kinds.labels.running import Question
from raterscope.app.session import LatestTask
from raterscope.app.workspaces.labels.comparing import curves_of
from raterscope.app.workspaces.labels.excluding import with_known
from raterscope.app.workspaces.labels.scene import LabelsSession, Scene
from raterscope.figures.evaluation import Curve
from raterscope.widgets.panels.folds_panel import FoldsPanel
from raterscope.widgets.tables.comparison_table import NOT_KNOWN, ComparisonRow

__all__ = ["Folding", "question_of_scene"]


class Folding(QObject):
    """Measures all methods on the question on screen when it is asked for.

    Signals
    -------
    refused : str
    """

    refused = Signal(str)

    def __init__(
        self, document: Document, jobs: Jobs, panel: FoldsPanel, session: LabelsSession, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._document, self._jobs, self._panel = document, jobs, panel
        self._session = session
        self._task, self._reading = LatestTask(), LatestTask()
        panel.measure_wanted.connect(self._on_wanted)
        panel.cancelled.connect(self._task.stop)
        session.scene_changed.connect(self._on_scene)
        session.cleared.connect(self._clear)

    def _clear(self) -> None:
        self._task.stop()
        self._reading.cancel()
        self._panel.show_curves((), ())
        self._panel.set_facts("")

    def _on_scene(self, scene: Scene) -> None:
        """Take another question or answer; what was measured of the same votes stays."""
        before = self._session.before
        if before is None or _rests_on(before) != _rests_on(scene):
            self._clear()
            job = self._document.ask("Reading what was measured", partial(kept_folds, scene.question.id))
            self._reading.follow(job, self._on_kept)

    def _on_wanted(self) -> None:
        settings = self._panel.form.settings()
        if self._session.shown and isinstance(settings, FoldedSettings):
            self._measure(self._session.scene, settings)
        else:
            self.refused.emit("Open a study of labels first.")

    def _measure(self, scene: Scene, settings: FoldedSettings) -> None:
        plan = None if scene.run is None else plan_of(scene.run)
        work = partial(fold_question, question_of_scene(scene), settings, plan)
        job = self._jobs.start("Cross-validating all methods", work, costly=True)
        self._task.follow(
            job, partial(self._on_measured, scene.question.id), progressed=self._on_progress,
            failed=self.refused.emit, stopped=partial(self._panel.set_busy, False),
        )  # fmt: skip
        self._panel.set_busy(True)

    def _on_progress(self, job: Job) -> None:
        self._panel.set_busy(True, job.fraction)

    def _on_measured(self, question: int, found: FoldedCurves) -> None:
        self._panel.set_busy(False)
        self._draw(found)
        keeping = self._document.ask("Keeping what was measured", partial(keep_folds, question, found))
        self._reading.follow(keeping, self._on_kept, must_finish=True)
        if found.failed:
            self.refused.emit(" ".join(found.failed))

    def _on_kept(self, kept: KeptFolds | None) -> None:
        if kept is not None:
            self._draw(kept.curves)
            self._panel.set_facts(kept.facts)

    def _draw(self, found: FoldedCurves) -> None:
        of_what = counted(found.truths, "known task")
        if found.settings.subsample:
            of_what += f" of the subsample: {counted(found.votes, 'vote')}, {found.annotators:,} annotators"
        self._panel.show_curves(_curves(found), [_row(one) for one in found.ranked()], of_what)


def question_of_scene(scene: Scene) -> Question:
    """Give the votes and truths of a question, what the run held fixed known."""
    labels = scene.labels if scene.fusion is None else with_known(scene.labels, scene.fusion)
    return Question(labels, scene.truth, scene.excluded)


def _rests_on(scene: Scene) -> tuple[int, int | None, int]:
    return scene.question.id, None if scene.run is None else scene.run.id, len(scene.labels)


def _curves(found: FoldedCurves) -> Sequence[Curve]:
    return [curve for one in found.ranked() for curve in curves_of(labeller_title(one.name), one.pooled)]


def _row(one: FoldedMethod) -> ComparisonRow:
    folds = one.areas()
    known = folds[np.isfinite(folds)]
    ends = (float(known.mean()), float(known.min()), float(known.max())) if len(known) else NOT_KNOWN
    each = ", ".join(f"{value:.3f}" for value in folds.tolist())
    title = labeller_title(one.name)
    tip = f"{title}; AUC of each fold: {each}; {one.seconds:.1f} s"
    return ComparisonRow(one.name, title, "", (one.area(), mean_area(folds), ends), tip)
