"""Sections on labels in a report: answers against truths, annotators, disputed tasks, definitions."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from raterscope.algorithms.labels.assessment import Assessment, assess
from raterscope.algorithms.labels.catalogue import labeller_title
from raterscope.algorithms.labels.constancy import Constancy, constancy, main_change
from raterscope.algorithms.labels.data import OPEN, FloatArray
from raterscope.algorithms.labels.drift import accuracy_trend, change_points, row_movement, row_over_time
from raterscope.algorithms.labels.fusion import LabelPlan
from raterscope.algorithms.labels.rates import Rates
from raterscope.algorithms.labels.roc_curves import FoldedCurves, FoldedSettings
from raterscope.algorithms.progress import Watch, part, silent, steps_of
from raterscope.app.errors import InputError, plain
from raterscope.app.kinds.kind import Report, ReportPart, ReportRequest
from raterscope.app.kinds.labels.community_charts import GroupedAnswer
from raterscope.app.kinds.labels.evaluation import cross_validate, load_folds
from raterscope.app.kinds.labels.exports import DecidedAnswer, apply_decisions
from raterscope.app.kinds.labels.fusion_tables import (
    DecisionRates,
    accuracies,
    follow_question,
    rates_charts,
    rates_keys,
)
from raterscope.app.kinds.labels.report.tables import (
    annotators_table,
    communities_table,
    cost_tables,
    crowd_table,
    disputed_table,
    folded_blocks,
    methods_table,
    moved_table,
    share_of,
)
from raterscope.app.kinds.labels.runs import (
    VOTE,
    Answered,
    Groups,
    advice_on,
    explain_not_converged,
    groups_of,
    judge,
    plan_of,
    read_answer,
    unseen_truths,
)
from raterscope.app.kinds.labels.variability import (
    agreement_table,
    find_tag_sets,
    tag_agreement_table,
    variability_section,
)
from raterscope.app.kinds.labels.vote_budget import measure_cost
from raterscope.app.page.contents import (
    Block,
    Facts,
    Gallery,
    Notices,
    Picture,
    Section,
    Swatch,
    draw_lines,
    draw_rates,
    drawing,
    named,
    photograph,
    run_in_words,
    significant,
)
from raterscope.app.page.variability import ANSWERS
from raterscope.app.study import RunEntry, Study
from raterscope.app.study.labels import labels_of_voters, pictures_of
from raterscope.app.study.records import QuestionEntry
from raterscope.figures.drawing import LINES, image_of, paper_line
from raterscope.text import counted, listed

_SIDE = 260  # pixels of a thumbnail's longer side
_LARGEST = 1 << 26
"""Maximum size of a picture file for a thumbnail, in bytes."""

_MAX_DISPUTED, _MIN_DOUBT = 20, 0.01
_MAX_THUMBNAILS, _MAX_CLASSES = 12, 12


@dataclass(frozen=True, eq=False)
class AnsweredQuestion:
    """Results of a question in the report."""

    answered: Answered
    decided_answer: DecidedAnswer
    excluded: Mapping[str, str]  # current exclusions and their reasons
    # by method: that of the answer first, the majority vote second, then earlier runs; empty without truths
    judged: Mapping[str, Assessment]
    advice: tuple[str, ...]
    rates: Rates
    groups: Groups | None
    # moved, trend: (K,); None unless the model is dynamic
    moved: FloatArray | None
    trend: FloatArray | None
    constancy: Constancy | None  # test for changes; only for a dynamic model
    pictures: Mapping[int, Picture]  # by task: of tasks in dispute
    disputed: Sequence[int]  # the most disputed tasks without a decision


def read_question(
    study: Study, entry: QuestionEntry, excluded: Mapping[str, str], watch: Watch = silent
) -> AnsweredQuestion | None:
    """Read the answer shown to a question and compute further values; None without an answer."""
    watch(0.0, f"reading {plain(entry.name)}")
    answered = read_answer(study, entry)
    if answered is None:
        return None
    question, result = answered.question, answered.result
    labels, fusion = question.labels, result.fusion
    plan = plan_of(answered.run) or LabelPlan()
    judged = judge(question, plan, result, part(watch, 0.1, 0.4))
    advised = advice_on(question, result, judged, plan.algorithm)
    if judged:
        judged |= _earlier(study, answered, part(watch, 0.4, 0.6))
    watch(0.6, "measuring annotators")
    rates = answered.rates
    accuracy, _, _ = accuracies(rates)
    drift = fusion.drift
    answer = apply_decisions(study, answered)
    disputed = _disputed(answer, fusion.votes)
    return AnsweredQuestion(
        answered=answered,
        decided_answer=answer,
        excluded=excluded,
        judged=judged,
        advice=advised,
        rates=rates,
        groups=groups_of(labels, result, accuracy),
        moved=None if drift is None else row_movement(drift, labels, fusion),
        trend=None if drift is None else accuracy_trend(drift, labels, fusion),
        constancy=None if drift is None else constancy(labels, fusion),
        pictures=thumbnails(study, entry, disputed[:_MAX_THUMBNAILS], part(watch, 0.7, 1.0)),
        disputed=disputed,
    )


def _earlier(study: Study, answered: Answered, watch: Watch) -> dict[str, Assessment]:
    """Assess the latest run of every other algorithm by the same truths, unless it used some of them."""
    truth = unseen_truths(answered.result, answered.question.truth)
    assessments: dict[str, Assessment] = {}
    entry = answered.entry
    latest: dict[str, RunEntry] = {}
    for run in study.runs.all():
        if run.kind == "labels" and entry.id in run.items and run.id != answered.run.id:
            latest[run.algorithm] = run
    for name in (answered.run.algorithm, VOTE):
        latest.pop(name, None)
    for done, (name, run) in enumerate(latest.items()):
        watch(done / len(latest), f"measuring {plain(name)}")
        result = study.runs.result(run.id, entry.id)
        if result is None or result.fusion.classes != answered.result.fusion.classes:
            continue
        if len(result.fusion.posterior) != len(truth):  # made before another import
            continue
        is_judged = (result.fusion.known != OPEN) & (truth != OPEN)
        judged = None if is_judged.any() else assess(result.fusion.posterior, truth, result.fusion.classes)
        if judged is not None:
            assessments[f"{labeller_title(name)} (run {run.id})"] = judged
    return assessments


def _disputed(answer: DecidedAnswer, votes: NDArray[np.integer]) -> list[int]:
    """List the most disputed tasks."""
    doubt = answer.doubt
    order = np.argsort(-doubt, kind="stable")
    doubtful = [int(at) for at in order[: 10 * _MAX_DISPUTED] if doubt[at] > _MIN_DOUBT and votes[at]]
    return doubtful[:_MAX_DISPUTED]


def thumbnails(study: Study, entry: QuestionEntry, tasks: Sequence[int], watch: Watch) -> dict[int, Picture]:
    """Return thumbnails of tasks; tasks without a readable file are omitted."""
    from raterscope.app.formats.images import load_image

    image_ids = pictures_of(study, entry.id)
    names = study.vote_set(entry.id).tasks
    pictures = {}
    for done, task in enumerate(tasks):
        watch(done / len(tasks), "reading pictures of tasks")
        path = study.locate(study.image(image_ids[task])) if task in image_ids else None
        try:
            if path is None or not path.is_file() or path.stat().st_size > _LARGEST:
                continue
            image = Image.fromarray(load_image(path)).convert("RGB")
        except (InputError, OSError, MemoryError):
            continue
        image.thumbnail((_SIDE, _SIDE), Image.Resampling.BOX)
        pictures[task] = photograph(image, plain(names[task], 60))
    return pictures


_MAX_TRIANGLES = 16
_NEAR = (
    "Points near a corner: that answer is frequent. With more or fewer than three answers, the corners "
    "stand for the correct answer, the most frequent wrong one, and all others."
)
_GROUPED = {
    "communities": (
        "Communities in triangles",
        f"Means of the members' matrices, one triangle per true class; larger discs: more members. {_NEAR}",
    ),
    "communities-over-time": ("Communities at several moments", _NEAR),
    "participation": (
        "Participation over time",
        "How far an annotator belongs to each community at each moment: annotators who changed most, or who "
        "have the most votes.",
    ),
    "traces": (
        "Confusion matrices over time",
        "The expected row of each true class from the annotator's first vote to the last, which has a large "
        f"disc. Markers join the rows of one moment; the number is of the votes of all until then. {_NEAR}",
    ),
}

_MAX_MOVED = 10
_DRAWN = 3
_MAX_LINES = 6
"""Maximum number of classes or methods with lines."""

_POINTS = 400
_MAX_PROTOTYPES = 12
_LARGEST_PROTOTYPE = 16


def question_section(
    question: AnsweredQuestion,
    watch: Watch = silent,
    curves: FoldedCurves | None = None,
    over_time: DecisionRates | None = None,
) -> Section:
    """Report on one question, with ROC curves by cross-validation and rates over time if available."""
    watch(0.0, "drawing")
    blocks: list[Block] = [_facts(question)]
    unsettled = explain_not_converged(question.answered.result.fusion, question.answered.run.settings)
    notices = [plain(sentence, 1000) for sentence in (unsettled, *question.advice) if sentence]
    if notices:
        blocks.append(Notices(notices))
    if question.judged:
        blocks += [methods_table(question.answered, question.judged), _curves(question)]
    if curves is not None:
        blocks += folded_blocks(curves)
    blocks += [
        crowd_table(question.answered, question.rates), agreement_table(question.answered.question.labels)
    ]  # fmt: skip
    if question.groups is not None:
        blocks.append(communities_table(question.groups, question.answered.question.labels.annotators))
        blocks += _prototypes(question.answered, question.groups)
    blocks += _triangles(question, watch)
    blocks.append(annotators_table(question.answered, question.rates, question.groups, question.excluded))
    blocks += _movers(question)
    if over_time is not None:
        blocks.append(_rates_over_time(over_time))
    if question.disputed:
        blocks.append(disputed_table(question.answered, question.decided_answer, question.disputed))
        if question.pictures:
            blocks.append(Gallery("Tasks in dispute", list(question.pictures.values())))
    return Section(plain(question.answered.entry.name), blocks, breaks=True)


def _facts(answered_question: AnsweredQuestion) -> Facts:
    answered, fusion = answered_question.answered, answered_question.answered.result.fusion
    labels, question = answered.question.labels, answered.question
    assert labels.meaning is not None
    annotators = int((labels.votes_of_annotators() > 0).sum())
    votes = labels.votes_of_tasks()
    smallest, largest = int(votes.min()), int(votes.max())
    spread = (
        f"{smallest:,} to {largest:,} a task, median {np.median(votes):g}"
        if smallest < largest
        else f"{largest:,} a task"
    )
    given = [
        _describe_output(output, labels.classes[at] if at >= 0 else "none")
        for output, at in zip(labels.outputs, labels.meaning.tolist(), strict=True)
    ]
    shares = [
        f"{named(name)}: {share_of(share)}"
        for name, share in zip(fusion.classes, fusion.shares.tolist(), strict=True)
    ]
    decided = len(answered_question.decided_answer.decided)
    facts = [
        ("Votes", f"{counted(len(labels), 'vote')} by {counted(annotators, 'annotator')}; {spread}"),
        ("Tasks", f"{len(labels.tasks):,}, {decided or 'none'} of them decided"),
        ("Labels given", listed(given, _MAX_CLASSES)),
        ("Expected shares of the classes", listed(shares, _MAX_CLASSES)),
    ]
    held_count = int((fusion.known != OPEN).sum())
    truth_count = int((question.truth != OPEN).sum())
    if held_count or truth_count:
        fixed = f"{held_count:,} held fixed" if held_count else "none was held fixed"
        facts.append(("Known truths", f"{truth_count:,} imported; {fixed}"))
    facts.append(("Run", run_in_words(answered.run)))
    trace = fusion.trace
    if len(trace.change):
        end = "converged" if trace.converged else "did not converge"
        value = f", {trace.name} {significant(float(trace.objective[-1]), 6)}" if len(trace.objective) else ""
        facts.append(("Fit", f"{counted(len(trace.change), 'iteration')}{value}, {end}"))
    if fusion.power != 1.0:
        facts.append(("Weight of a vote", f"{fusion.power:.2g}"))
    groups = answered.result.communities
    notices = [*fusion.notices, *(groups.notices if groups is not None else ())]
    return Facts([*facts, *(("Note", plain(sentence, 1000)) for sentence in notices)])


def _describe_output(output: str, true: str) -> str:
    return named(output) if output == true else f"{named(output)} (for {named(true)})"


def _curves(question: AnsweredQuestion) -> Gallery:
    """Draw the ROC curve and the calibration of each method."""
    judged_methods = list(question.judged.items())[:_MAX_LINES]
    first = judged_methods[0][1]
    class_index = max(range(len(first.curves)), key=lambda j: first.curves[j].count)
    text = "the class with the most truths"
    if len(first.curves) == 2:
        class_index, text = 1, "that of the other class is its mirror image"
    roc, sure = [], []
    for colour, (_, assessment) in zip(LINES, judged_methods, strict=False):
        curve = assessment.curves[class_index]
        roc.append(paper_line(*_thinned(curve.false_positive_rate, curve.sensitivity), colour))
        has_items = assessment.calibration.count > 0
        sure.append(
            paper_line(
                assessment.calibration.posterior[has_items],
                assessment.calibration.share[has_items],
                colour,
                dots=True,
            )
        )
    of = first.curves[class_index]
    pictures = [
        draw_lines(roc, "false positive rate", "sensitivity",
                   f"ROC of {plain(of.name, 40)}", text, diagonal=True),
        draw_lines(sure, "probability of the label", "share that is right", "Calibration",
                   "calibrated on the diagonal; overconfident below it", diagonal=True),
    ]  # fmt: skip
    legend = [
        Swatch(colour, plain(labeller_title(name), 60))
        for colour, (name, _) in zip(LINES, judged_methods, strict=False)
    ]
    return Gallery("Against the truth", pictures, legend)


def _prototypes(answered: Answered, groups: Groups) -> list[Block]:
    fusion = answered.result.fusion
    if max(len(fusion.classes), len(fusion.outputs)) > _LARGEST_PROTOTYPE:
        return []
    pictures = []
    for at, name in enumerate(groups.names[:_MAX_PROTOTYPES]):
        members = counted(int(groups.communities.sizes()[at]), "annotator")
        title = f"Community {at + 1}: {plain(name, 60)}"
        pictures.append(draw_rates(groups.communities.prototype[at], title, members))
    note = (
        f"Rows, from the top: true class ({listed(list(map(named, fusion.classes)), _MAX_CLASSES)}). "
        f"Columns, from the left: answer ({listed(list(map(named, fusion.outputs)), _MAX_CLASSES)})."
    )
    return [Gallery("Prototypes of the communities", pictures, (), note)]


def _rates_over_time(rates: DecisionRates) -> Gallery:
    """Draw the rates over time by the methods of the thesis."""
    pictures = [drawing(image_of(chart), title) for title, chart in rates_charts(rates)]
    legend = [Swatch(key.ink, key.text) for key in rates_keys(rates)]
    step = "one more decision of each annotator" if rates.course.repeated else "further annotators who join"
    note = (
        f"Votes as decisions whether a task is {plain(rates.name, 40)}; a step is {step}. Rates are means "
        "over annotators, shaded with the 95 % interval of recursive EM. Errors are mean squared errors "
        "against the rates of each annotator's own votes on known tasks."
    )
    return Gallery("Rates over time", pictures, legend, note)


def _triangles(question: AnsweredQuestion, watch: Watch) -> list[Block]:
    """Draw communities and traces in triangles, and participation over time, if available."""
    answered = question.answered
    grouped = GroupedAnswer(
        answered.question.labels,
        answered.result.fusion,
        question.rates,
        question.groups,
        part(watch, 0.1, 0.9),
    )
    blocks: list[Block] = []
    for chart_name, (title, note) in _GROUPED.items():
        if grouped.obstacle(chart_name):
            continue
        charts, keys = grouped.charts(chart_name)
        pictures = [drawing(image_of(chart), name) for name, chart in charts[:_MAX_TRIANGLES]]
        legend = [Swatch(key.ink, key.text) for key in keys]
        blocks.append(Gallery(title, pictures, legend, note))
    return blocks


def _movers(question: AnsweredQuestion) -> list[Block]:
    """List the annotators who changed most, and draw the rates of the first few."""
    fusion, labels = question.answered.result.fusion, question.answered.question.labels
    drift = fusion.drift
    if drift is None or question.moved is None or question.trend is None:
        return []
    test = question.constancy
    order = [] if test is None else test.changed()[:_MAX_MOVED].tolist()
    if test is None or not order:
        return []
    points = {
        k: change_points(drift, labels, fusion, k) or (main_change(test, labels, fusion, k),) for k in order
    }
    table = moved_table(question.answered, order, question.moved, question.trend, points)
    assert labels.meaning is not None
    named = [j for j in range(len(fusion.classes)) if (labels.meaning == j).any()][:_MAX_LINES]
    pictures = []
    for k in order[:_DRAWN]:
        rows = row_over_time(drift, labels, fusion, k)
        step = np.unique(np.linspace(0, len(rows.mean) - 1, min(len(rows.mean), _POINTS)).astype(np.int64))
        lines = []
        for colour, j in zip(LINES, named, strict=False):
            of_class = labels.meaning == j
            outputs = np.flatnonzero(of_class)
            single = len(outputs) == 1
            lines.append(
                paper_line(
                    (step + 1).astype(np.float64), rows.mean[step][:, j, of_class].sum(axis=1), colour,
                    low=rows.low[step, j, outputs[0]] if single else None,
                    high=rows.high[step, j, outputs[0]] if single else None,
                )
            )  # fmt: skip
        title = plain(labels.annotators[k], 40)
        text = f"moved by {question.moved[k]:.2f}; shaded: 95 %"
        end = float(len(rows.mean))
        pictures.append(
            draw_lines(lines, "votes so far", "probability of a correct label", title, text, limit=end)
        )
    true = [f"true: {plain(fusion.classes[j], 30)}" for j in named]
    legend = [Swatch(colour, name) for colour, name in zip(LINES, true, strict=False)]
    return [table, Gallery("Annotators who changed", pictures, legend)]


def _thinned(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    if len(x) <= _POINTS:
        return x, y
    points = np.unique(np.linspace(0, len(x) - 1, _POINTS).astype(np.int64))
    return x[points], y[points]


_VARIABILITY = ("Observer variability of labels", ANSWERS)

_MEASURES = (
    (
        "Confusion matrix",
        "For each true class the probability of each label that an annotator may give: one Dirichlet "
        "distribution per row, of prior pseudo-counts and the votes weighed by the tasks' probabilities. "
        "Intervals, 2.5 to 97.5 %, are those of a Beta distribution; their variance includes sampling and "
        "the doubt about the tasks' classes, in part shared by all votes.",
    ),
    (
        "Doubt of a task",
        "The probability that its answer is wrong: 1 minus the largest of its probabilities.",
    ),
    (
        "Labels expected to be wrong",
        "The sum of the tasks' doubts. Its interval allows for sampling, and for probabilities that are too "
        "high or too low in a crowd as a whole: the logit of being right is piecewise linear in the stated "
        "logit ([@cox1958]), and its coefficients vary between crowds as in real and simulated ones. Truths "
        "that the run did not use, and decisions made since, update them by Bayes' rule.",
    ),
    (
        "Communities",
        "Annotators' confusion matrices compared by the Hellinger distance of their rows, and the network of "
        "their similarities divided into communities ([@simpson2013], section 5; [@psorakis2011], "
        "[@blondel2008]). By default the distance of equation 32 is multiplied by a scale, and the factors "
        "are updated by the minimum of a bound on the objective, tempered by the number of annotators. The "
        "published version, with a scale of 1 and updates that may raise the objective, is a setting.",
    ),
    (
        "ROC curves by cross-validation",
        "The known tasks are divided into folds, every class evenly; each fold is predicted by a run that "
        "was given the truths of the others ([@simpson2013], section 4). Intervals of areas are those of "
        "[@delong1988].",
    ),
    (
        "Cost",
        "Random votes of each task are fused, and the votes are replayed in their order until each task has "
        "three and a posterior above a limit. Errors are measured on gold tasks with Wilson's interval "
        "([@wilson1927]). The gain of more votes is extrapolated from what half of each task's votes lose "
        "against all, judged by the posteriors of all: at most as much per vote, and at least nothing.",
    ),
    (
        "Rates over time",
        "Sensitivity and specificity for one class as votes arrive, by recursive EM, an incremental Newton "
        "step, EM on all votes so far, and decisions by the rates that are known ([@diazvilor2017], "
        "chapters 3 and 5). Unlike the published version, each step also revisits the votes, and rates have "
        "a Beta prior.",
    ),
)


def gather_part(request: ReportRequest, watch: Watch) -> ReportPart:
    """Report on each question; `folds` measures ROC curves, `over_time` estimates rates over time."""
    sections: list[Section] = []
    runs: dict[int, RunEntry] = {}
    for entry, step in steps_of(watch, request.items):
        named_step = part(step, 0.0, 1.0, f"{plain(entry.name)}: ")
        section_runs = _question(request, request.study.question(entry.id), named_step)
        if section_runs is not None:
            run, section = section_runs
            runs[run.id] = run
            sections.append(section)
            protocol = request.options.get("variability")
            if protocol is not None:
                labels = labels_of_voters(request.study, entry.id, request.state)
                sections.append(variability_section(entry.name, labels, protocol, named_step))
    measures = _MEASURES if request.options.get("variability") is None else (*_MEASURES, _VARIABILITY)
    if sections:
        sections = [*_tag_sections(request), *sections]
    return ReportPart(sections, runs, measures if runs else ())


def _tag_sections(request: ReportRequest) -> Iterator[Section]:
    """Report the agreement of annotators on each set of tags."""
    for tags in find_tag_sets([request.study.question(entry.id) for entry in request.items]):
        votes = [labels_of_voters(request.study, entry.id, request.state) for entry in tags.questions]
        yield Section(plain(tags.name), [tag_agreement_table(tags.name, votes)])


def _question(request: ReportRequest, entry: QuestionEntry, watch: Watch) -> tuple[RunEntry, Section] | None:
    folds, over_time = request.options.get("folds"), request.options.get("over_time")
    measured = 0.7 if folds is None else 0.3
    question = read_question(request.study, entry, request.state.excluded, part(watch, 0.0, measured))
    if question is None:
        return None
    answered = question.answered
    stored_folds = load_folds(entry.id, request.study)
    curves = None if stored_folds is None else stored_folds.curves
    if folds is not None and (answered.question.truth != OPEN).any():
        step = part(watch, measured, 0.9)
        curves = cross_validate(answered.question, folds, plan_of(answered.run), step)
    followed = None
    if over_time is not None:
        followed = follow_question(answered.question, over_time or None, part(watch, 0.9, 0.95))
    section = question_section(question, part(watch, 0.95, 1.0), curves, followed)
    if request.options.get("cost"):
        step = part(watch, 0.95, 1.0, "cost: ")
        cost = measure_cost(answered.question, plan_of(answered.run), watch=step)
        section = replace(section, blocks=[*section.blocks, *cost_tables(cost)])
    return answered.run, section


def _read_options(options: argparse.Namespace) -> dict[str, Any]:
    folds = None if options.roc_curves is None else FoldedSettings.from_text(dict(options.roc_curves))
    return {"folds": folds, "over_time": options.rates_over_time, "cost": options.cost}


REPORT = Report(gather_part, _read_options)
