"""Methods measured against known truths: all runs of a question, and cross-validation of all methods."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Signal

from raterscope.algorithms.clicks.data import ClicksError
from raterscope.algorithms.clicks.decision_course import METHODS, OPENING, CourseAccuracy, DecisionCourse
from raterscope.algorithms.labels import OPEN, Labels
from raterscope.algorithms.labels.assessment import assess
from raterscope.algorithms.labels.catalogue import labeller_title
from raterscope.algorithms.labels.data import ClassArray
from raterscope.algorithms.labels.roc_curves import FoldedCurves, FoldedMethod, FoldedSettings, mean_area
from raterscope.algorithms.labels.voting import majority
from raterscope.algorithms.progress import Watch
from raterscope.app.kinds.labels.evaluation import StoredFolds, cross_validate, load_folds, store_folds
from raterscope.app.kinds.labels.fusion_tables import ERRORS, ROWS, follow_class_decisions, series_of
from raterscope.app.kinds.labels.runs import Question, plan_of, read_truths, unseen_truths
from raterscope.app.session import LatestTask, while_shown
from raterscope.app.study import Study
from raterscope.app.study.labels import known_truth, labels_of
from raterscope.app.study.records import Scheme
from raterscope.app.workspaces.labels.scene import Analysis, Scene
from raterscope.app.workspaces.labels.screen import LabelsCore, LabelsPart, MeasuredMethod, curves_of
from raterscope.app.workspaces.labels.view import name_of
from raterscope.app.workspaces.run_history import Calibration
from raterscope.figures.courses import CourseLine
from raterscope.figures.evaluation import CalibrationLine, Curve
from raterscope.text import counted
from raterscope.widgets.figures.evaluation_plots import DecisionKind, DecisionView
from raterscope.widgets.tables.comparison_tables import NOT_KNOWN, ComparisonRow

MAX_RUNS = 12

Known = dict[int | None, tuple[object, MeasuredMethod | None]]
"""Run to measurement, with the key of its input; None stands for the majority vote."""


class MethodComparison(LabelsPart):
    """Curves of the run shown, and the table of methods."""

    def __init__(self, core: LabelsCore) -> None:
        super().__init__(core)
        self.calibration = Calibration(core.document, core.screen.trust, core.screen.queue, "labels")
        self._task = LatestTask()
        self._measurements: Known = {}
        core.session.scene_changed.connect(self._task.cancel)
        core.session.scene_settled.connect(self._on_scene)
        core.session.cleared.connect(self._clear)

    def _clear(self) -> None:
        self._task.cancel()
        self._screen.curves.set_curves(())
        self.calibration.show_beside(())
        self.calibration.show(None, ())
        self._measurements.clear()
        self._screen.method_table.show_runs(())

    def _on_scene(self, scene: Scene) -> None:
        self._draw(scene, self._session.analysis)
        run = scene.run
        title = "" if run is None else labeller_title(run.algorithm)
        self.calibration.show(run, (scene.question.id,), title)
        runs = [run.id for run in self._document.runs_of("labels") if scene.question.id in run.items]
        request = scene.question.id, None if run is None else run.id, (*runs[-MAX_RUNS:], None)
        job = self._document.ask("Measuring runs", partial(_known, *request, dict(self._measurements)))
        self._task.follow(job, partial(self._on_known, request))

    def _draw(self, scene: Scene, analysis: Analysis) -> None:
        screen = self._screen
        if analysis.model is None or scene.run is None:
            screen.curves.set_curves(())
            self.calibration.show_beside(())
            return
        assessments = [(labeller_title(scene.run.algorithm), analysis.model)]
        if analysis.crowd_vote is not None:
            assessments.append(("the vote", analysis.crowd_vote))
        screen.curves.set_curves(
            [curve for name, assessment in assessments for curve in curves_of(name, assessment)]
        )
        self.calibration.show_beside(
            [
                CalibrationLine(
                    name, assessment.calibration.posterior, assessment.calibration.share,
                    assessment.calibration.count, assessment.calibration.error,
                )
                for name, assessment in assessments[1:]
            ]
        )  # fmt: skip

    def _on_known(
        self, request: tuple[int, int | None, tuple[int | None, ...]], measured: list[MeasuredMethod] | None
    ) -> None:
        if measured is not None:
            self._screen.method_table.show_runs(measured)
            return
        work = partial(_measured, *request, dict(self._measurements))
        job = self._document.read_beside("Measuring runs", work, quiet=True)
        self._task.follow(job, self._on_measured)

    def _on_measured(self, measurements: Known) -> None:
        self._measurements = measurements
        self._screen.method_table.show_runs([row for _, row in measurements.values() if row is not None])


def _rests_on(question: int, shown: int | None, run: int | None, study: Study) -> object:
    """Return the key of a measurement's input; the measurement is valid while the key is the same."""
    when = tuple(None if number is None else study.runs.get(number).started for number in (shown, run))
    state = study.review_state()
    gold = tuple(sorted(state.gold_tasks(question).items()))
    return question, study.last_import(), study.question(question).scheme, when, gold, state.programs


def _known(
    question: int, shown: int | None, runs: Sequence[int | None], known: Known, study: Study, watch: Watch
) -> list[MeasuredMethod] | None:
    """Return the known measurements of runs, none without truths; None if a run must be measured first."""
    watch(0.0, "reading measurements")
    if not (known_truth(study, question) != OPEN).any():
        return []
    stored = [
        known[run] for run in runs if run in known and known[run][0] == _rests_on(question, shown, run, study)
    ]
    return [measured for _, measured in stored if measured is not None] if len(stored) == len(runs) else None


def _measured(
    question: int, shown: int | None, runs: Sequence[int | None], known: Known, study: Study, watch: Watch
) -> Known:
    """Measure runs (None: the majority vote) on truths that neither they nor the run shown used.

    Reports measure on the same tasks. Valid measurements are kept.
    """
    measured_now: Known = {}
    scheme = study.question(question).scheme
    result = None if shown is None else study.runs.result(shown, question)
    held = np.empty(0, dtype=bool) if result is None else result.fusion.known != OPEN
    for done, run in enumerate(runs):
        watch(done / len(runs), "measuring a run")
        rests_on = _rests_on(question, shown, run, study)
        is_valid = run in known and known[run][0] == rests_on
        measured_now[run] = (
            known[run] if is_valid else (rests_on, _measure(question, run, held, scheme, study))
        )
    return measured_now


def _measure(
    question: int, run: int | None, held: NDArray[np.bool_], scheme: Scheme, study: Study
) -> MeasuredMethod | None:
    if run is None:
        truth = _without(known_truth(study, question), held)
        labels = labels_of(study, question).without(study.review_state().programs)
        vote = assess(majority(labels).posterior, truth, scheme.classes)
        return None if vote is None else MeasuredMethod(None, vote)
    result = study.runs.result(run, question)
    if result is None:
        return None
    fusion = result.fusion
    own = _without(read_truths(study, study.question(question), fusion), held)
    assessment = assess(fusion.posterior, unseen_truths(result, own), fusion.classes)
    return None if assessment is None else MeasuredMethod(study.runs.get(run), assessment, fusion.power)


def _without(truth: ClassArray, held: NDArray[np.bool_]) -> ClassArray:
    """Return the truths of tasks whose labels are not held fixed."""
    remaining, common = truth.copy(), min(len(truth), len(held))
    remaining[:common][held[:common]] = OPEN
    return remaining


class CrossValidation(LabelsPart):
    """Cross-validation of all methods on the question on screen, on request."""

    refused = Signal(str)

    def __init__(self, core: LabelsCore) -> None:
        super().__init__(core)
        self._panel = core.screen.folds
        self._task, self._reading = LatestTask(), LatestTask()
        self._panel.button.clicked.connect(self._on_requested)
        self._panel.cancel.clicked.connect(self._task.stop)
        core.session.scene_changed.connect(self._on_scene)
        core.session.cleared.connect(self._clear)

    def _clear(self) -> None:
        self._task.stop()
        self._reading.cancel()
        self._panel.show_curves((), ())
        self._panel.set_facts("")

    def _on_scene(self, scene: Scene) -> None:
        """Show another question or run; curves of the same votes are kept."""
        previous = self._session.previous
        if previous is None or _folds_rest_on(previous) != _folds_rest_on(scene):
            self._clear()
            job = self._document.ask("Reading the measurements", partial(load_folds, scene.question.id))
            self._reading.follow(job, self._on_kept)

    def _on_requested(self) -> None:
        settings = self._panel.form.settings()
        if self._session.shown and isinstance(settings, FoldedSettings):
            self._measure(self._session.scene, settings)
        else:
            self.refused.emit("Open a study of labels first.")

    def _measure(self, scene: Scene, settings: FoldedSettings) -> None:
        plan = None if scene.run is None else plan_of(scene.run)
        work = partial(cross_validate, question_of(scene), settings, plan)
        job = self._jobs.start("Cross-validating all methods", work, costly=True)
        measured = partial(self._on_measured, scene.question.id)
        self._task.measure(job, self._panel, measured, self.refused.emit)

    def _on_measured(self, question: int, curves: FoldedCurves) -> None:
        self._draw(curves)
        keeping = self._document.ask("Saving the measurements", partial(store_folds, question, curves))
        self._reading.follow(keeping, self._on_kept, must_finish=True)
        if curves.failed:
            self.refused.emit(" ".join(curves.failed))

    def _on_kept(self, stored: StoredFolds | None) -> None:
        if stored is not None:
            self._draw(stored.curves)
            self._panel.set_facts(stored.facts)

    def _draw(self, curves: FoldedCurves) -> None:
        text = counted(curves.truths, "known task")
        if curves.settings.subsample:
            text += f" of the subsample: {counted(curves.votes, 'vote')}, {curves.annotators:,} annotators"
        self._panel.show_curves(_curves(curves), [_row(assessment) for assessment in curves.ranked()], text)


def question_of(scene: Scene) -> Question:
    """Return the votes and truths of a question, with the decisions that the run holds fixed."""
    return Question(scene.fixed, scene.truth, scene.excluded, scene.programs)


def _folds_rest_on(scene: Scene) -> tuple[int, int | None, int]:
    return scene.question.id, None if scene.run is None else scene.run.id, len(scene.labels)


def _curves(folded: FoldedCurves) -> Sequence[Curve]:
    return [
        curve for method in folded.ranked() for curve in curves_of(labeller_title(method.name), method.pooled)
    ]


def _row(method: FoldedMethod) -> ComparisonRow:
    folds = method.areas()
    finite = folds[np.isfinite(folds)]
    ends = (float(finite.mean()), float(finite.min()), float(finite.max())) if len(finite) else NOT_KNOWN
    each = ", ".join(f"{value:.3f}" for value in folds.tolist())
    title = labeller_title(method.name)
    tip = f"{title}; AUC of each fold: {each}; {method.seconds:.1f} s"
    return ComparisonRow(method.name, title, "", (method.area(), mean_area(folds), ends), tip)


RatesOrProblem = tuple[DecisionCourse, CourseAccuracy | None] | str

TOO_FEW = (
    f"Rates over time need more than {OPENING} annotators, or several votes of each annotator on a task."
)


class DecisionRates(LabelsPart):
    """Decision rates of the question on screen, computed while their page is visible."""

    def __init__(self, core: LabelsCore) -> None:
        super().__init__(core)
        self._plot = core.screen.decisions
        self._question: int | None = None
        self._due = False
        self._chosen = -1
        self._task = LatestTask()
        self._plot.became_visible.connect(self.compute)
        self._plot.class_chosen.connect(self._on_class)
        core.session.scene_settled.connect(self._on_scene)
        core.session.cleared.connect(self._clear)
        core.session.blind_changed.connect(self._on_blind)

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
        self._task.follow(job, partial(self._on_rates, scene))

    def _on_rates(self, scene: Scene, answer: RatesOrProblem) -> None:
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


def _read(labels: Labels, question: int, chosen: int, study: Study, watch: Watch) -> RatesOrProblem:
    return compute_rates(labels, chosen, known_truth(study, question), watch)


def compute_rates(labels: Labels, chosen: int, truth: np.ndarray, watch: Watch) -> RatesOrProblem:
    """Compute rates over time for decisions on a class; return a sentence if that is not possible."""
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
    text = (
        f"{len(course.at):,} decisions of each annotator"
        if course.repeated
        else f"{int(course.at[0]):,} to {int(course.at[-1]):,} annotators"
    )
    return DecisionView(classes, chosen, tuple(kinds), annotators, partial(_lines, course, measured), text)


def _lines(
    course: DecisionCourse, measured: CourseAccuracy | None, key: str, annotator: int
) -> Sequence[CourseLine]:
    return [
        CourseLine(
            METHODS[series.method], ROWS[series.method], series.across, series.down, series.low, series.high
        )
        for series in series_of(course, measured, key, annotator)
    ]
