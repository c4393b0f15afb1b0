"""The part of labels in a report: a section for each question, and definitions of measures."""

from __future__ import annotations

from raterscope.algorithms.labels.data import OPEN
from raterscope.algorithms.progress import Watch, part
from raterscope.app.errors import plain
from raterscope.app.kinds.kind import ReportPart, ReportRequest
from raterscope.app.kinds.labels.answers import plan_of
from raterscope.app.kinds.labels.decision_rates import follow_question
from raterscope.app.kinds.labels.folded import fold_question, kept_folds
from raterscope.app.kinds.labels.report.answered_question import read_question
from raterscope.app.kinds.labels.report.section import question_section
from raterscope.app.page.contents import Section
from raterscope.app.study import RunEntry
from raterscope.app.study.records import QuestionEntry

__all__ = ["gather_part"]

_MEASURES = (
    (
        "Confusion matrix",
        "For each true class the probability of each label that an annotator may give: a Dirichlet "
        "distribution a row, of prior pseudo-counts and the votes weighed by the tasks' probabilities. "
        "Intervals, 2.5 to 97.5 %, are those of a Beta distribution; their variance includes sampling and "
        "the doubt about the tasks' classes, in part shared by all votes.",
    ),
    (
        "Doubt of a task",
        "The entropy of its probabilities over that of equal ones: 0 certain, 1 all classes alike.",
    ),
    (
        "Communities",
        "Annotators' confusion matrices compared by the Hellinger distance of their rows, and the network of "
        "their similarities taken apart ([@simpson2013], section 5; [@psorakis2011], [@blondel2008]). By "
        "default the distance of equation 32 is multiplied by a scale, and the factors are updated by the "
        "minimum of a bound on the objective, tempered by the number of annotators. The printed version, "
        "with a scale of 1 and updates that may raise the objective, is a setting.",
    ),
    (
        "ROC curves by cross-validation",
        "The known tasks are divided into folds, every class evenly; each fold is predicted by a run that "
        "was given the truths of the others ([@simpson2013], section 4). Intervals of areas are those of "
        "[@delong1988].",
    ),
    (
        "Rates over time",
        "Sensitivity and specificity for one class as votes come, by recursive EM, an incremental Newton "
        "step, EM on all votes so far, and decisions by the rates that are known ([@diazvilor2017], "
        "chapters 3 and 5). Unlike printed, each step also looks at the votes afresh, and rates have a Beta "
        "prior.",
    ),
)


def gather_part(request: ReportRequest, watch: Watch) -> ReportPart:
    """Describe each question; with `folds` ROC curves are measured, with `over_time` rates are followed."""
    sections: list[Section] = []
    runs: dict[int, RunEntry] = {}
    for done, entry in enumerate(request.items):
        many = len(request.items)
        step = part(watch, done / many, (done + 1) / many, f"{plain(entry.name)}: ")
        told = _question(request, request.study.question(entry.id), step)
        if told is not None:
            run, section = told
            runs[run.id] = run
            sections.append(section)
    return ReportPart(sections, runs, _MEASURES if runs else ())


def _question(request: ReportRequest, entry: QuestionEntry, watch: Watch) -> tuple[RunEntry, Section] | None:
    folds, over_time = request.options.get("folds"), request.options.get("over_time")
    measured = 0.7 if folds is None else 0.3
    found = read_question(request.study, entry, request.state.excluded, part(watch, 0.0, measured))
    if found is None:
        return None
    answered = found.answered
    kept = kept_folds(entry.id, request.study)
    curves = None if kept is None else kept.curves
    if folds is not None and (answered.question.truth != OPEN).any():
        step = part(watch, measured, 0.9)
        curves = fold_question(answered.question, folds, plan_of(answered.run), step)
    followed = None
    if over_time is not None:
        followed = follow_question(answered.question, over_time or None, part(watch, 0.9, 0.95))
    return answered.run, question_section(found, part(watch, 0.95, 1.0), curves, followed)
