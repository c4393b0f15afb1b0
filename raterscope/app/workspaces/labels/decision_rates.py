"""Decision rates over time by recursive EM, incremental Newton, batch EM and MAP."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from PySide6.QtCore import QObject

from raterscope.algorithms.clicks.data import ClicksError
from raterscope.algorithms.clicks.decision_course import METHODS, OPENING, CourseAccuracy, DecisionCourse
from raterscope.algorithms.labels import Labels
from raterscope.algorithms.progress import Watch
from raterscope.app.document import Document
from raterscope.app.kinds.labels.decision_rates import ERRORS, ROWS, follow_class_decisions, series_of
from raterscope.app.session import LatestTask, while_shown
from raterscope.app.study import Study
from raterscope.app.workspaces.labels.scene import LabelsSession, Scene
from raterscope.app.workspaces.labels.view import name_of
from raterscope.figures.courses import CourseLine
from raterscope.widgets.figures.evaluation_plots import DecisionKind, DecisionPlot, DecisionView

__all__ = ["DecisionRates", "compute_rates", "decision_view"]

Found = tuple[DecisionCourse, CourseAccuracy | None] | str

TOO_FEW = (
    f"Rates over time need more than {OPENING} annotators, or several votes of each annotator on a task."
)


class DecisionRates(QObject):
    """Computes the decision rates of the question on screen while their page is visible."""

    def __init__(
        self, document: Document, plot: DecisionPlot, session: LabelsSession, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._document = document
        self._plot = plot
        self._session = session
        self._question: int | None = None
        self._due = False
        self._chosen = -1
        self._task = LatestTask()
        plot.came_in_sight.connect(self.compute)
        plot.class_chosen.connect(self._on_class)
        session.scene_settled.connect(self._on_scene)
        session.cleared.connect(self._clear)
        session.blind_changed.connect(self._on_blind)

    def _clear(self) -> None:
        self._task.cancel()
        self._question, self._chosen, self._due = None, -1, False
        self._plot.set_view(None)

    def _on_scene(self, scene: Scene) -> None:
        if scene.question.id != self._question:
            self._chosen = -1
        self._question, self._due = scene.question.id, True
        self._task.cancel()
        self._plot.set_view(None)
        self.compute()

    @while_shown
    def _on_blind(self) -> None:
        self._on_scene(self._session.scene)

    @while_shown
    def compute(self) -> None:
        """Compute the rates once, if the page is visible."""
        scene = self._session.scene
        if not self._due or not self._plot.isVisible():
            return
        self._due = False
        if self._chosen < 0:
            self._chosen = len(scene.labels.classes) - 1
        work = partial(_read, scene.labels, scene.question.id, self._chosen)
        job = self._document.read_beside("Following decisions", work, quiet=True)
        self._task.follow(job, partial(self._on_found, scene))

    def _on_found(self, scene: Scene, answer: Found) -> None:
        if isinstance(answer, str):
            self._plot.set_view(None, answer)
            return
        names = tuple(
            name_of(scene, annotator, blind=self._session.blind)
            for annotator in range(len(scene.labels.annotators))
        )
        self._plot.set_view(decision_view(*answer, scene.labels.classes, self._chosen, names))

    def _on_class(self, index: int) -> None:
        if index != self._chosen:
            self._task.cancel()
            self._chosen, self._due = index, True
            self.compute()


def _read(labels: Labels, question: int, chosen: int, study: Study, watch: Watch) -> Found:
    return compute_rates(labels, chosen, study.vote_set(question).truth, watch)


def compute_rates(labels: Labels, chosen: int, truth: np.ndarray, watch: Watch) -> Found:
    """Compute the rates of decisions on whether tasks are of a class; a sentence if that is not possible."""
    try:
        course, measured = follow_class_decisions(labels, chosen, truth, watch)
    except ClicksError as error:
        return str(error).replace("clusters", "tasks")
    return TOO_FEW if len(course.at) < 2 else (course, measured)


def decision_view(
    course: DecisionCourse,
    measured: CourseAccuracy | None,
    classes: tuple[str, ...],
    chosen: int,
    annotators: tuple[str, ...],
) -> DecisionView:
    """Convert the rates to the values that the plot draws."""
    step = "decisions of each annotator" if course.repeated else "annotators"
    kinds = [
        DecisionKind("sensitivity", "Sensitivity", step, "sensitivity", each=True, unit=False),
        DecisionKind("specificity", "Specificity", step, "specificity", each=True, unit=False),
        DecisionKind("prevalence", "Prevalence", step, "prevalence", unit=False),
    ]
    if measured is not None:
        kinds += [
            DecisionKind("wrong", "Wrong decisions", step, "share wrong", unit=False),
            DecisionKind("found", "Sensitivity of decisions", step, "sensitivity", unit=False),
            DecisionKind("precision", "Precision of decisions", step, "precision", unit=False),
            *(
                DecisionKind(f"error {at}", f"Error of {name}", step, "error, dB", unit=False)
                for at, name in enumerate(ERRORS)
            ),
            DecisionKind("roc", "ROC at the end", "false positive rate", "sensitivity"),
        ]
    words = (
        f"{len(course.at):,} decisions of each annotator"
        if course.repeated
        else f"{int(course.at[0]):,} to {int(course.at[-1]):,} annotators"
    )
    return DecisionView(classes, chosen, tuple(kinds), annotators, partial(_lines, course, measured), words)


def _lines(
    course: DecisionCourse, measured: CourseAccuracy | None, key: str, annotator: int
) -> Sequence[CourseLine]:
    return [
        CourseLine(
            METHODS[series.method], ROWS[series.method], series.across, series.down, series.low, series.high
        )
        for series in series_of(course, measured, key, annotator)
    ]
