"""`raterscope fuse labels`: files of votes in, a folder of results out, without a study."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from raterscope.algorithms.labels.assessment import Assessment
from raterscope.algorithms.labels.data import OPEN
from raterscope.algorithms.labels.fusion import LabelPlan
from raterscope.algorithms.labels.result import LabelResult
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.cli_questions import by_option
from raterscope.app.cli_results import failures, make_folder
from raterscope.app.errors import InputError, counted, plain
from raterscope.app.formats.export import distinct, safe
from raterscope.app.formats.label_records import LabelTable, TrueLabels
from raterscope.app.formats.labels import read_labels
from raterscope.app.formats.tables import UnknownColumns
from raterscope.app.labels.answers import groups_of
from raterscope.app.labels.comparing import advice_on, judgements
from raterscope.app.labels.joining import Asked, Understanding, by_question, question_of, read_prior
from raterscope.app.labels.results import (
    QuestionOutput,
    accuracies,
    has_confusion,
    run_record,
    write_question,
)
from raterscope.app.labels.running import Answer, Inputs, Question, fuse_questions
from raterscope.app.study.places import digest_of_file
from raterscope.app.terminal import ProgressLine, one_line

__all__ = ["fuse_labels", "judged_of", "notices_of", "summary_of"]

_LISTED = 12  # questions; of more, the number is said
_TRUE_FIELDS = {"task", "label", "truth", "question"}
_DOUBTFUL = 0.9
"""A task whose most probable class is less so is in doubt."""

Judged = dict[str, dict[str, Assessment]]


def fuse_labels(options: argparse.Namespace) -> int:
    """Fuse files of votes and write the results; the options are the command line's."""
    texts = _settings(options)
    plan = LabelPlan.make(options.algorithm, texts)
    clock = time.perf_counter()
    with ProgressLine(sys.stderr) as watch:
        with by_option():
            tables = _read(options, part(watch, 0.0, 0.2))
        asked, notices = _asked(tables, options.question)
        questions, said = _questions(asked, _understanding(options))
        if plan.about.truths != "measure" and not any((q.truth != OPEN).any() for q in questions.values()):
            raise InputError("there are no truths to hold fixed; --truth TRUTH names them")
        make_folder(options.output)
        inputs = Inputs(dict.fromkeys(questions, 0), questions)
        answer = fuse_questions(inputs, plan, part(watch, 0.2, 0.6 if options.compare else 0.8))
        rest = part(watch, 0.6 if options.compare else 0.8, 0.9)
        judged, failed = judged_of(answer, texts, every=options.compare, watch=rest)
        written, large = _write(options, answer, judged, tables, part(watch, 0.9, 1.0))
    notices += [f"{plain(table.path.name)}: {notice}" for table in tables for notice in table.notices]
    for notice in dict.fromkeys([*notices, *said, *failed, *large, *notices_of(answer, judged)]):
        print(f"note: {one_line(notice)}", file=sys.stderr)
    for line in summary_of(answer, time.perf_counter() - clock, judged):
        print(one_line(line))
    folders = {path.parent for path in written}
    if len(folders) > 1:
        print(f"{counted(len(written), 'file')} in {counted(len(folders), 'folder')} of {options.output}")
    elif written:
        print(f"{', '.join(path.name for path in written)} in {written[0].parent}")
    failures(answer.outcomes)
    return 0


def summary_of(
    answer: Answer, seconds: float, judged: Mapping[str, Mapping[str, Assessment]]
) -> Iterator[str]:
    """Say in a few lines what came out; with a judgement by method and question where there are truths."""
    questions = answer.inputs.given
    people = {name for one in questions.values() for name in one.labels.annotators}
    tasks = sum(len(one.labels.tasks) for one in questions.values())
    about = "" if len(questions) == 1 else f" of {len(questions):,} questions"
    yield (
        f"{counted(sum(len(one.labels) for one in questions.values()), 'vote')} by "
        f"{counted(len(people), 'annotator')} on {counted(tasks, 'task')}{about}, "
        f"fused by {answer.plan.algorithm} in {seconds:.1f} s"
    )
    results = [one for one in answer.outcomes.values() if one.fusion is not None]
    for outcome in results[:_LISTED]:
        assert outcome.fusion is not None
        prefix = f"{plain(outcome.item)}: " if len(questions) > 1 else ""
        for line in _of_question(questions[outcome.item], outcome.fusion, judged.get(outcome.item, {})):
            yield prefix + line
    if len(results) > _LISTED:
        yield f"and {len(results) - _LISTED:,} more questions"


def _of_question(question: Question, result: LabelResult, judged: Mapping[str, Assessment]) -> Iterator[str]:
    fusion = result.fusion
    shares = [
        f"{plain(name, 30)} {share:.1%}" for name, share in zip(fusion.classes, fusion.shares, strict=True)
    ]
    doubtful = int((fusion.posterior.max(axis=1) < _DOUBTFUL).sum())
    held = int((fusion.known != OPEN).sum())
    words = [
        f"expected shares: {_few(shares)}",
        f"{counted(doubtful, 'task')} in doubt (< {_DOUBTFUL:.0%})",
    ]
    yield "; ".join(words + ([f"{counted(held, 'truth')} held fixed"] if held else []))
    groups = groups_of(question.labels, result, accuracies(question.labels, fusion)[0])
    if groups is not None:
        sizes = groups.found.sizes().tolist()
        parts = [f"{plain(name)} ({size:,})" for name, size in zip(groups.names, sizes, strict=True)]
        many = "1 community" if len(parts) == 1 else f"{len(parts)} communities"
        yield f"{many} of annotators: {_few(parts)}"
    for method, one in judged.items():
        area = f"AUC {one.area:.3f}, " if math.isfinite(one.area) else ""
        yield (
            f"{method} against the truth of {counted(one.judged, 'task')}: accuracy {one.accuracy:.3f} "
            f"({one.accuracy_low:.3f} to {one.accuracy_high:.3f}), {area}"
            f"log loss {one.log_loss:.3f}, calibration error {one.calibration.error:.3f}"
        )


def _few(parts: list[str]) -> str:
    return ", ".join(parts[:8]) + (f" and {len(parts) - 8:,} more" if len(parts) > 8 else "")


def _settings(options: argparse.Namespace) -> dict[str, str]:
    texts = dict(options.settings)
    if options.hold_truth and options.folds:
        raise InputError("--hold-truth and --folds exclude each other; expected one of them")
    if options.hold_truth or options.folds:
        texts["truths"] = "hold" if options.hold_truth else "folds"
    return texts


def _understanding(options: argparse.Namespace) -> Understanding:
    return Understanding(
        outputs=tuple(options.outputs),
        classes=tuple(options.classes),
        stands=tuple(options.stands),
        prior=None if options.prior is None else read_prior(options.prior),
    )


def _read(options: argparse.Namespace, watch: Watch) -> list[LabelTable | TrueLabels]:
    """Read votes and truths, columns named as for the votes understood in the truths too."""
    mapping = dict(options.mapping)
    paths = list(dict.fromkeys(options.labels))  # a file that is named twice holds its votes once
    count = len(paths) + (options.truth is not None)
    tables: list[LabelTable | TrueLabels] = []
    for done, path in enumerate(paths):
        step = part(watch, done / count, (done + 1) / count)
        tables += read_labels(path, mapping or None, step, annotator=options.annotator)
    if not any(isinstance(table, LabelTable) and len(table) for table in tables):
        raise InputError(
            "holds no votes; expected the columns annotator, task and label", file=options.labels[0]
        )
    if options.truth is not None:
        # What is named as the truth has the last word over truths among the votes.
        tables += _truths_of(options.truth, mapping, part(watch, 1 - 1 / count, 1.0))
    return tables


def _truths_of(path: Path, mapping: Mapping[str, str], watch: Watch) -> list[TrueLabels]:
    try:
        found = read_labels(path, None, watch, truth=True)
    except UnknownColumns as unknown:
        known = {c: f for c, f in mapping.items() if f in _TRUE_FIELDS and c in unknown.header}
        found = read_labels(path, known, watch, truth=True)
    truths = [table for table in found if isinstance(table, TrueLabels) and len(table)]
    if not truths:
        raise InputError("holds no true classes; expected the columns task and label", file=path)
    return truths


def _asked(tables: list[LabelTable | TrueLabels], chosen: str | None) -> tuple[list[Asked], list[str]]:
    asked, notices = by_question(tables)
    if chosen is not None:
        found = [one for one in asked if one.name.casefold() == chosen.casefold()]
        if not found:
            known = ", ".join(plain(one.name, 40) for one in asked[:8])
            raise InputError(f"there is no question {plain(chosen)}; expected one of {known}")
        asked = found
    for truth in (table for table in tables if isinstance(table, TrueLabels)):
        if chosen is None and not any(truth in one.truths for one in asked):
            raise InputError("tells the truth of none of the tasks that were voted on", file=truth.path)
    return asked, notices


def _questions(asked: list[Asked], told: Understanding) -> tuple[dict[str, Question], list[str]]:
    questions, said = {}, []
    for one in asked:
        try:
            questions[one.name], notices = question_of(one, told)
        except InputError as error:
            if len(asked) == 1:
                raise
            what = f"{error.what.rstrip('.')}; --question NAME takes one question alone"
            raise InputError(what, field=one.name) from error
        said += [f"{plain(one.name)}: {notice}" if len(asked) > 1 else notice for notice in notices]
    return questions, said


def judged_of(
    answer: Answer, texts: Mapping[str, str], *, every: bool = False, watch: Watch = silent
) -> tuple[Judged, list[str]]:
    """Judge the answer to every question by its truths; see `judgements`."""
    judged: Judged = {}
    failed: list[str] = []
    questions = answer.inputs.given
    for done, (name, question) in enumerate(questions.items()):
        result = answer.outcomes[name].fusion
        if result is None:
            continue
        step = part(watch, done / len(questions), (done + 1) / len(questions))
        judged[name], said = judgements(question, answer.plan, result, texts=texts, every=every, watch=step)
        failed += said
        known = bool((question.truth != OPEN).any())
        if not judged[name] and (every or known):
            where = f"{plain(name)}: " if len(questions) > 1 else ""
            why = (
                "all are held fixed, where --folds measures and holds them by turns"
                if known
                else "none is known"
            )
            failed.append(f"{where}There is no truth to measure by: {why}.")
    return judged, failed


def _write(
    options: argparse.Namespace,
    answer: Answer,
    judged: Judged,
    tables: list[LabelTable | TrueLabels],
    watch: Watch,
) -> tuple[list[Path], list[str]]:
    """Write the folder of each question, below the given one where there are several.

    Gives the files, and what is left out of them.
    """
    paths = dict.fromkeys(table.path for table in tables)
    inputs = [{"file": path.name, "digest": digest_of_file(path)} for path in paths]
    written: list[Path] = []
    said: list[str] = []
    taken: set[str] = set()
    for done, (name, outcome) in enumerate(answer.outcomes.items()):
        if outcome.fusion is None:
            continue
        here = options.output
        if len(answer.outcomes) > 1:
            here = options.output / distinct(safe(name), taken)
            make_folder(here)
        output = QuestionOutput(
            answer.inputs.given[name].labels, answer.plan, outcome.fusion,
            run_record(answer, name, inputs), judged.get(name, {}), options.steps,
        )  # fmt: skip
        share = part(watch, done / len(answer.outcomes), (done + 1) / len(answer.outcomes))
        written += write_question(here, output, share)
        if not has_confusion(output):
            where = f"{plain(name)}: " if len(answer.outcomes) > 1 else ""
            rows = outcome.fusion.fusion.confusion.alpha.size
            said.append(f"{where}confusion.csv is left out: it would have {rows:,} rows")
    return written, said


def notices_of(answer: Answer, judged: Judged) -> Iterator[str]:
    """Give what the algorithms had to say, and what speaks against trusting them."""
    for name, outcome in answer.outcomes.items():
        if outcome.fusion is None:
            continue
        result, question = outcome.fusion, answer.inputs.given[name]
        groups = result.communities
        where = f"{plain(name)}: " if len(answer.outcomes) > 1 else ""
        said = [*result.fusion.notices, *(groups.notices if groups is not None else ())]
        said += advice_on(question, result, judged.get(name, {}), answer.plan.algorithm)
        yield from (where + notice for notice in said)
