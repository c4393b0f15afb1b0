"""`raterscope fuse labels`: fuse files of votes, or a study, into a folder of results."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from raterscope.algorithms.array_operations import max_rows
from raterscope.algorithms.labels.assessment import Assessment
from raterscope.algorithms.labels.catalogue import labeller_title
from raterscope.algorithms.labels.data import OPEN
from raterscope.algorithms.labels.fusion import LabelPlan
from raterscope.algorithms.labels.result import LabelResult
from raterscope.algorithms.labels.roc_curves import FoldedCurves, FoldedSettings, subsample
from raterscope.algorithms.progress import Background, Watch, no_check, part, silent, steps_of
from raterscope.app.command_line.output import (
    LISTED,
    ProgressLine,
    by_item,
    files_and_digests,
    folders_of,
    make_folder,
    print_files,
    print_results,
    raise_failures,
    where,
    write_in_folder,
)
from raterscope.app.command_line.selection import answered_by_options, select_items, select_question
from raterscope.app.errors import InputError, plain, refuse_unknown
from raterscope.app.formats.labels import read_labels, split_tags
from raterscope.app.formats.labels.programs import read_program
from raterscope.app.formats.records import LabelFile, LabelTable, TrueLabels
from raterscope.app.formats.tables import UnknownColumns
from raterscope.app.kinds.kind import Summary
from raterscope.app.kinds.labels.evaluation import cross_validate, curves_in_words
from raterscope.app.kinds.labels.fusion_tables import (
    DecisionRates,
    QuestionOutput,
    accuracies,
    follow_question,
    has_confusion,
    run_record,
    write_question,
)
from raterscope.app.kinds.labels.imports import (
    LabelInterpretation,
    QuestionTables,
    group_by_question,
    join_question,
    read_prior,
)
from raterscope.app.kinds.labels.runs import (
    Answer,
    Inputs,
    Question,
    advice_on,
    checked_before,
    digest_once,
    errors_in_words,
    errors_of,
    fuse_inputs,
    gather,
    groups_of,
    judge_methods,
    plan_of,
    rates_for,
    read_answer,
)
from raterscope.app.outcome import Outcome
from raterscope.app.program_files import STUDY_SUFFIX
from raterscope.app.study import Study
from raterscope.app.workers import release_freed_memory
from raterscope.text import counted, listed, percent

_OF_FILES = {
    "truth": "--truth",
    "outputs": "--outputs",
    "classes": "--classes",
    "stands": "--stands",
    "prior": "--prior",
    "ordered": "--ordered",
    "grades": "--grades",
    "annotator": "--annotator",
    "subsample": "--subsample",
    "mapping": "--map",
    "programs": "--program",
    "weights": "--weight",
}
"""Options for files of votes, whose values a study already contains."""


def is_study(paths: Sequence[Path]) -> bool:
    """Return whether a path has the suffix of a study."""
    return any(path.suffix.casefold() == STUDY_SUFFIX for path in paths)


def fuse_study(
    options: argparse.Namespace, plan: LabelPlan, watch: Watch
) -> tuple[Answer, list[dict[str, object]]]:
    """Fuse the questions of a study as the window does, or read a run; return also sources for run.json.

    Decisions are held fixed, and excluded annotators are omitted. The study is not changed. Raises
    `InputError` for other files besides the study, for options of files, and for unknown runs or questions.

    `options`: options of the command line.
    `plan`: not used if `options.run` names a run.
    """
    path: Path = options.labels[0]
    if len(options.labels) > 1:
        raise InputError("is a study; expected no other file with it", file=path)
    misplaced = next(
        (option for name, option in _OF_FILES.items() if getattr(options, name) not in (None, [], ())), None
    )
    if misplaced is not None:
        raise InputError(
            f"is a study, which contains what {misplaced} gives; expected no {misplaced}", file=path
        )
    if options.run is not None and (options.settings or options.hold_truth or options.folds):
        raise InputError("--run writes a stored run; expected no --set, --hold-truth or --folds with it")
    names = [] if options.question is None else [options.question]
    with Study.open(path, to_read=True) as study, study.shown.only(options.run):
        questions = [entry.id for entry in select_items(study, names, "labels", by_question=True)]
        make_folder(options.output)
        if options.run is not None:
            answer = _run_shown(study, options.run, questions)
        else:
            inputs = gather(questions, study, part(watch, 0.0, 0.2), algorithm=plan.algorithm)
            answer = fuse_inputs(inputs, plan, part(watch, 0.2, 1.0))
    inputs = answer.inputs
    source = {"file": path.name, "last_decision": inputs.decision, "excluded": list(inputs.excluded)}
    return answer, [source | ({} if options.run is None else {"run": options.run})]


def _run_shown(study: Study, number: int, questions: Sequence[int]) -> Answer:
    """Read the results of a run, with its votes."""
    run = study.runs.get(number)
    plan = plan_of(run) if run.kind == "labels" else None
    if plan is None:
        subject = (
            f"run {number} is of {run.kind}"
            if run.kind != "labels"
            else f"run {number} is of another version"
        )
        raise InputError(f"{subject}; expected a run of labels", file=study.path)
    items, questions_read, outcomes = {}, {}, {}
    for question in questions:
        answered = read_answer(study, study.question(question))
        if answered is not None:
            name = answered.entry.name
            items[name] = question
            checked = checked_before(study, question, plan.algorithm, run)
            questions_read[name] = replace(answered.question, checked=checked)
            outcomes[name] = Outcome(name, answered.result, "", "", run.seconds)
    if not outcomes:
        raise InputError(f"run {number} has no result for this question", file=study.path)
    inputs = Inputs(items, questions_read, run.known, run.imported or 0, run.excluded, weights=run.weights)
    return Answer(plan, inputs, outcomes, run.started, run.seconds)


_TRUE_FIELDS = {"task", "label", "truth", "question"}
_DOUBTFUL = 0.9
"""Probability of the most probable class below which a task is disputed."""

Judged = dict[str, dict[str, Assessment]]


def fuse_labels(options: argparse.Namespace) -> int:
    """Fuse files of votes, or a study, and write the results, as the options of the command line state."""
    texts = plan_texts(options)
    plan = LabelPlan.make(options.algorithm, texts)
    settings = None if options.roc_curves is None else FoldedSettings.from_text(dict(options.roc_curves))
    with ProgressLine(sys.stderr) as watch:
        fused = part(watch, 0.0, 0.6 if options.compare else 0.8)
        if is_study(options.labels):
            answer, sources = fuse_study(options, plan, fused)
            notices: list[str] = []
        elif options.run is not None:
            raise InputError("--run names a run of a study; expected a study", file=options.labels[0])
        else:
            answer, sources, notices = _fuse_files(options, plan, fused)
        watch_rest = part(watch, 0.6 if options.compare else 0.8, 0.9 if settings is None else 0.85)
        judged, failed = judge_answers(answer, texts, all_methods=options.compare, watch=watch_rest)
        curves = {} if settings is None else _curves(answer, settings, part(watch, 0.85, 0.95))
        over_time = _over_time(answer, options.rates_over_time, part(watch, 0.95, 0.97))
        watch_rest = part(watch, 0.97, 1.0)
        saved = write_in_folder(
            lambda folder: _write(folder, options, answer, judged, curves, over_time, sources, watch_rest),
            options.output,
        )
    files, large = saved.answer
    notices += [*failed, *large, *notices_of(answer, judged)]
    lines = [*summary_of(answer, judged)]
    for name, folded in curves.items():
        notices += [f"{where(answer, name)}{sentence}" for sentence in folded.failed]
        lines += [f"{where(answer, name)}{line}" for line in curves_in_words(folded)]
    print_results(dict.fromkeys(notices), lines)
    print_files(files, saved.path)
    saved.check_path("All results are in")
    raise_failures(answer.outcomes)
    return 0


def _fuse_files(
    options: argparse.Namespace, plan: LabelPlan, watch: Watch
) -> tuple[Answer, list[dict[str, object]], list[str]]:
    """Read and fuse files of votes. Also returns their entries in run.json, and notices."""
    with answered_by_options():
        tables = _read(options, part(watch, 0.0, 0.25))
    question_files, notices = _question_tables(tables, options.question)
    questions, understood = _questions(question_files, _interpretation(options))
    if options.subsample is not None:
        questions, about = _subsampled(questions, *options.subsample)
        understood += about
    if plan.about.truths != "measure" and not any((q.truth != OPEN).any() for q in questions.values()):
        raise InputError("there are no truths to hold fixed; --truth TRUTH names them")
    questions, about_programs = _with_programs(questions, options.programs)
    understood += about_programs
    weights = dict(options.weights)
    annotators = (name for question in questions.values() for name in question.labels.annotators)
    refuse_unknown(weights, annotators, "weigh")
    questions = {
        name: replace(question, labels=question.labels.with_weights(weights))
        for name, question in questions.items()
    }
    make_folder(options.output)
    inputs = Inputs(dict.fromkeys(questions, 0), questions, weights=weights)
    notices += [f"{plain(table.path.name)}: {notice}" for table in tables for notice in table.notices]
    paths = dict.fromkeys(table.path for table in tables)
    del tables, question_files  # frees memory: they may be as large as the votes
    release_freed_memory()
    with Background() as beside:
        sources = beside.start(partial(files_and_digests, [*paths, *options.programs]))
        for name, question in questions.items():  # for run.json
            beside.start(partial(digest_once, name, question))
        answer = fuse_inputs(inputs, plan, part(watch, 0.25, 1.0))
        return answer, sources(no_check), notices + understood


def _with_programs(
    questions: Mapping[str, Question], paths: Sequence[Path]
) -> tuple[dict[str, Question], list[str]]:
    """Add the class probabilities of programs to the question. Also returns notices."""
    if not paths:
        return dict(questions), []
    if len(questions) > 1:
        raise InputError(
            f"there are {len(questions)} questions; --question NAME takes that of --program", file=paths[0]
        )
    ((name, question),) = questions.items()
    read = [read_program(path, question.labels.tasks, question.labels.classes) for path in paths]
    notices = [f"{program.name}: {notice}" for program, notices in read for notice in notices]
    return {name: replace(question, programs=tuple(program for program, _ in read))}, notices


def summary_of(answer: Answer, judged: Mapping[str, Mapping[str, Assessment]]) -> Iterator[str]:
    """Summarise the results in a few lines, with an assessment by method if there are truths."""
    questions = answer.inputs.given
    annotators = {
        question.labels.annotators[row]
        for question in questions.values()
        for row in np.flatnonzero(question.labels.votes_of_annotators()).tolist()
    }
    tasks = sum(len(question.labels.tasks) for question in questions.values())
    about = "" if len(questions) == 1 else f" of {len(questions):,} questions"
    yield (
        f"{counted(sum(len(question.labels) for question in questions.values()), 'vote')} by "
        f"{counted(len(annotators), 'annotator')} on {counted(tasks, 'task')}{about}, "
        f"fused by {labeller_title(answer.plan.algorithm)} in {answer.seconds:.1f} s"
    )

    def of_question(name: str, result: LabelResult) -> Iterator[str]:
        return _of_question(questions[name], result, judged.get(name, {}))

    yield from by_item(answer, of_question, LISTED)


def _of_question(question: Question, result: LabelResult, judged: Mapping[str, Assessment]) -> Iterator[str]:
    fusion = result.fusion
    shares = [
        f"{plain(name, 30)} {percent(share, 1)}"
        for name, share in zip(fusion.classes, fusion.shares, strict=True)
    ]
    doubtful = int((max_rows(fusion.posterior) < _DOUBTFUL).sum())
    held_count = int((fusion.known != OPEN).sum())
    words = [
        f"expected shares: {listed(shares, 8)}",
        f"{counted(doubtful, 'task')} disputed (< {percent(_DOUBTFUL)})",
    ]
    yield "; ".join(words + ([f"{counted(held_count, 'truth')} held fixed"] if held_count else []))
    yield from filter(None, [errors_in_words(errors_of(question, fusion))])
    if fusion.power < 1.0:
        yield f"each vote is weighted {fusion.power:g}, which predicts held-out votes best"
    accuracy, _, _ = accuracies(rates_for(question, result))
    groups = groups_of(question.labels, result, accuracy)
    if groups is not None:
        sizes = groups.communities.sizes().tolist()
        parts = [f"{plain(name)} ({size:,})" for name, size in zip(groups.names, sizes, strict=True)]
        community_count = "1 community" if len(parts) == 1 else f"{len(parts)} communities"
        yield f"{community_count} of annotators: {listed(parts, 8)}"
    for method, assessment in judged.items():
        area = f"AUC {assessment.area:.3f}, " if math.isfinite(assessment.area) else ""
        yield (
            f"{labeller_title(method)} against the truth of {counted(assessment.judged, 'task')}: accuracy "
            f"{assessment.accuracy:.3f} ({assessment.accuracy_low:.3f} to {assessment.accuracy_high:.3f}), "
            f"{area}log loss {assessment.log_loss:.3f}, calibration error {assessment.calibration.error:.3f}"
        )


def plan_texts(options: argparse.Namespace) -> dict[str, str]:
    """Return the settings that the options name, with the use of truths."""
    texts = dict(options.settings)
    folds = getattr(options, "folds", False)
    if options.hold_truth and folds:
        raise InputError("--hold-truth and --folds exclude each other; expected one of them")
    if options.hold_truth or folds:
        texts["truths"] = "hold" if options.hold_truth else "folds"
    return texts


def summarise(answer: Answer, _study: Study, options: argparse.Namespace, watch: Watch) -> Summary:
    """Describe a run over a study; see `Functions.summarise`."""
    judged, _ = judge_answers(answer, plan_texts(options), watch=watch)
    return Summary(notices_of(answer, judged), summary_of(answer, judged))


def _interpretation(options: argparse.Namespace) -> LabelInterpretation:
    if options.grades and (options.outputs or options.classes or options.ordered is not None):
        raise InputError(
            "--grades lists outputs and classes in order; expected no --outputs, --classes or --ordered"
        )
    return LabelInterpretation(
        outputs=tuple(options.outputs),
        classes=tuple(options.classes),
        stands=tuple(options.stands),
        prior=None if options.prior is None else read_prior(options.prior),
        ordered=options.ordered,
        grades=tuple(options.grades),
    )


def _read(options: argparse.Namespace, watch: Watch) -> list[LabelFile]:
    """Read votes and truths. The column mapping of the votes applies to the truths too."""
    mapping = dict(options.mapping)
    paths = list(dict.fromkeys(options.labels))  # a file named twice counts once
    count = len(paths) + (options.truth is not None)
    tables: list[LabelFile] = []
    for path, step in steps_of(part(watch, 0.0, len(paths) / count), paths):
        tables += read_labels(path, mapping or None, step, annotator=options.annotator)
    if not any(isinstance(table, LabelTable) and len(table) for table in tables):
        raise InputError(
            "contains no votes; expected the columns annotator, task and label", file=options.labels[0]
        )
    if options.truth is not None:
        # The file of truths takes precedence over truths among the votes.
        tables += _truths_of(options.truth, mapping, part(watch, 1 - 1 / count, 1.0))
    return list(split_tags(tables))


def _truths_of(path: Path, mapping: Mapping[str, str], watch: Watch) -> list[TrueLabels]:
    try:
        labels_read = read_labels(path, None, watch, truth=True)
    except UnknownColumns as unknown:
        named_columns = {c: f for c, f in mapping.items() if f in _TRUE_FIELDS and c in unknown.header}
        labels_read = read_labels(path, named_columns, watch, truth=True)
    truths = [table for table in labels_read if isinstance(table, TrueLabels) and len(table)]
    if not truths:
        raise InputError("contains no true classes; expected the columns task and label", file=path)
    return truths


def _question_tables(tables: list[LabelFile], chosen: str | None) -> tuple[list[QuestionTables], list[str]]:
    question_files, notices = group_by_question(tables)
    question_files = select_question(question_files, chosen)
    for truth in (table for table in tables if isinstance(table, TrueLabels)):
        if chosen is None and not any(truth in files.truths for files in question_files):
            raise InputError("has the truth of no task with votes", file=truth.path)
    return question_files, notices


def _questions(
    question_files: list[QuestionTables], understanding: LabelInterpretation
) -> tuple[dict[str, Question], list[str]]:
    questions, notices_of_all = {}, []
    for files in question_files:
        try:
            questions[files.name], notices = join_question(files, understanding)
        except InputError as error:
            if len(question_files) == 1:
                raise
            message = f"{error.what.rstrip('.')}; --question NAME takes one question alone"
            raise InputError(message, field=files.name) from error
        notices_of_all += [
            f"{plain(files.name)}: {notice}" if len(question_files) > 1 else notice for notice in notices
        ]
    return questions, notices_of_all


def judge_answers(
    answer: Answer, texts: Mapping[str, str], *, all_methods: bool = False, watch: Watch = silent
) -> tuple[Judged, list[str]]:
    """Assess the answer to every question by its truths; see `judge_methods`."""
    judged: Judged = {}
    failed: list[str] = []
    questions = answer.inputs.given
    for (name, question), step in steps_of(watch, questions.items()):
        result = answer.outcomes[name].fusion
        if result is None:
            continue
        judged[name], problems = judge_methods(
            question, answer.plan, result, texts=texts, all_methods=all_methods, watch=step
        )
        failed += problems
        has_truth = bool((question.truth != OPEN).any())
        if not judged[name] and (all_methods or has_truth):
            reason = (
                "all are held fixed; --folds measures and holds them in turn"
                if has_truth
                else "none is known"
            )
            failed.append(f"{where(answer, name)}There is no truth to measure by: {reason}.")
    return judged, failed


def _curves(answer: Answer, settings: FoldedSettings, watch: Watch) -> dict[str, FoldedCurves]:
    """Measure all methods on every question by cross-validation."""
    return {
        name: cross_validate(question, settings, answer.plan, step)
        for (name, question), step in steps_of(watch, answer.inputs.given.items())
    }


def _over_time(answer: Answer, chosen: str | None, watch: Watch) -> dict[str, DecisionRates]:
    """Estimate the rates over time on every question, for decisions on a class; "" is the last class."""
    if chosen is None:
        return {}
    return {
        name: follow_question(question, chosen or None, step)
        for (name, question), step in steps_of(watch, answer.inputs.given.items())
    }


def _subsampled(
    questions: Mapping[str, Question], class_votes: int, least: int
) -> tuple[dict[str, Question], list[str]]:
    """Keep the tasks of each question with votes of experienced annotators."""
    subsampled, sentences = {}, []
    for name, question in questions.items():
        sample = subsample(question.labels, question.truth, class_votes, least)
        subsampled[name] = Question(sample.labels, sample.truth)
        head = f"{plain(name)}: " if len(questions) > 1 else ""
        sentences.append(
            f"{head}Subsample: {len(sample.tasks):,} of {counted(len(question.labels.tasks), 'task')}, with "
            f"{counted(len(sample.labels), 'vote')} by {counted(len(sample.annotators), 'annotator')}; "
            f"{sample.experienced:,} of all annotators have {class_votes} votes on tasks of each class."
        )
    return subsampled, sentences


def _record(
    answer: Answer,
    name: str,
    sources: list[dict[str, object]],
    options: argparse.Namespace,
    curves: Mapping[str, FoldedCurves],
) -> dict[str, Any]:
    """Make the contents of run.json."""
    record = run_record(answer, name, sources)
    if options.subsample is not None:
        record["subsample"] = dict(zip(("class_votes", "experienced"), options.subsample, strict=True))
    if name in curves:
        record["roc_curves"] = curves[name].settings.as_dict()
    return record


def _write(
    folder: Path,
    options: argparse.Namespace,
    answer: Answer,
    judged: Judged,
    curves: Mapping[str, FoldedCurves],
    over_time: Mapping[str, DecisionRates],
    sources: list[dict[str, object]],
    watch: Watch,
) -> tuple[list[Path], list[str]]:
    """Write the results of each question; return the files, and notices about omitted files."""
    files: list[Path] = []
    omissions: list[str] = []
    for name, result, subfolder, step in folders_of(answer, folder, watch):
        output = QuestionOutput(
            answer.inputs.given[name], answer.plan, result,
            partial(_record, answer, name, sources, options, curves), judged.get(name, {}), options.steps,
            curves.get(name), over_time.get(name), options.charts,
        )  # fmt: skip
        files += write_question(subfolder, output, step)
        if not has_confusion(output):
            rows = result.fusion.confusion.alpha.size
            omissions.append(
                f"{where(answer, name)}confusion.csv is not written: it would have {rows:,} rows"
            )
    return files, omissions


def notices_of(answer: Answer, judged: Judged) -> Iterator[str]:
    """Return the notices of the algorithms, and reasons not to trust a result."""

    def of_question(name: str, result: LabelResult) -> Iterator[str]:
        groups, question = result.communities, answer.inputs.given[name]
        yield from result.fusion.notices
        yield from groups.notices if groups is not None else ()
        yield from advice_on(question, result, judged.get(name, {}), answer.plan.algorithm)

    return by_item(answer, of_question)
