"""`raterscope fuse pairs`: fuse files of comparisons into a folder of results, without a study."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from raterscope.algorithms.pairs import PairFusion, Pairs
from raterscope.algorithms.pairs.catalogue import PairPlan, path_title
from raterscope.algorithms.pairs.data import BEHAVIOUR_WORDS
from raterscope.algorithms.pairs.ranking import ranks
from raterscope.algorithms.progress import Watch, part, steps_of
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
from raterscope.app.command_line.selection import answered_by_options, select_question
from raterscope.app.errors import InputError, plain, refuse_unknown
from raterscope.app.formats.pairs import read_pairs
from raterscope.app.formats.pairs.table import RankingTable, read_ranking
from raterscope.app.formats.records import PairTable
from raterscope.app.kinds.kind import Summary
from raterscope.app.kinds.pairs.evaluation import trust_in_fusion
from raterscope.app.kinds.pairs.exports import QuestionOutput, has_path, run_record, write_question
from raterscope.app.kinds.pairs.imports import QuestionTables, group_by_question, join_tables
from raterscope.app.kinds.pairs.runs import (
    Answer,
    Inputs,
    OtherResults,
    RankingAgreements,
    compare_with_truth,
    fuse_inputs,
    run_other_methods,
    t_test_in_words,
    why_not_guaranteed,
)
from raterscope.app.study import Study
from raterscope.app.study.pairs import placed
from raterscope.text import counted, percent


def fuse_pairs(options: argparse.Namespace) -> int:
    """Fuse files of comparisons and write the results, as the options of the command line state."""
    plan = PairPlan.make(options.algorithm, _settings(options))
    with ProgressLine(sys.stderr) as watch:
        with answered_by_options():
            tables = _read(options, part(watch, 0.0, 0.2))
        question_files = select_question(group_by_question(tables), options.question)
        inputs, input_notices = _inputs(question_files, options.exclude, dict(options.weights))
        make_folder(options.output)
        answer = fuse_inputs(inputs, plan, part(watch, 0.2, 0.8))
        other_results = other_results_of(answer, part(watch, 0.8, 0.9))
        truths = {} if options.truth is None else _agreements(answer, read_ranking(options.truth))
        watch_rest = part(watch, 0.9, 1.0)
        saved = write_in_folder(
            lambda folder: _write(folder, answer, other_results, truths, tables, watch_rest), options.output
        )
    files, large = saved.answer
    notices = [f"{plain(table.path.name)}: {notice}" for table in tables for notice in table.notices]
    lines = [*summary_of(answer, other_results)] if other_results else []
    lines += [f"{where(answer, name)}{agreement.in_words()}" for name, agreement in truths.items()]
    print_results(dict.fromkeys([*notices, *input_notices, *large, *notices_of(answer)]), lines)
    print_files(files, saved.path)
    saved.check_path("All results are in")
    paths = {table.path for table in tables}
    (first, *others) = answer.outcomes.values()
    if not others and len(paths) == 1 and first.problem and not first.details:
        raise InputError(first.problem, file=paths.pop())
    raise_failures(answer.outcomes)
    return 0


def summarise(answer: Answer, _study: Study, _options: argparse.Namespace, watch: Watch) -> Summary:
    """Describe a run over a study; see `Functions.summarise`."""
    other_results = other_results_of(answer, watch)
    return Summary(notices_of(answer), summary_of(answer, other_results) if answer.kept else ())


def summary_of(answer: Answer, other_results: Mapping[str, OtherResults]) -> Iterator[str]:
    """Summarise the results in a few lines, with the results of other methods."""
    questions = answer.inputs.given
    annotators = {
        question.annotators[index]
        for question in questions.values()
        for index in np.unique(question.annotator).tolist()
    }
    items = sum(len(question.items) for question in questions.values())
    about = "" if len(questions) == 1 else f" of {len(questions):,} questions"
    yield (
        f"{counted(sum(map(len, questions.values())), 'comparison')} by "
        f"{counted(len(annotators), 'annotator')} of {counted(items, 'item')}{about}, fused by "
        f"{path_title(answer.plan.algorithm)} in {answer.seconds:.1f} s"
    )

    def of_question(name: str, fusion: PairFusion) -> Iterator[str]:
        yield from _of_annotators(answer.plan, fusion, other_results[name])
        yield from _of_ranking(fusion, other_results[name])

    yield from by_item(answer, of_question, LISTED)


def _of_annotators(plan: PairPlan, fusion: PairFusion, other_result: OtherResults) -> Iterator[str]:
    tested_count = int((fusion.untested == 0).sum())
    if not tested_count:
        yield "no annotator could be tested: none is flagged, and the ranking treats all as unbiased"
        return
    yield _flagged(plan, fusion, counted(tested_count, "tested annotator"))
    yield t_test_in_words(fusion, other_result.by_t_test)


def _flagged(plan: PairPlan, fusion: PairFusion, tested: str) -> str:
    flagged_count = int(fusion.flagged.sum())
    undecidable = 0 if fusion.decidable is None else int((~fusion.decidable & ~fusion.flagged).sum())
    undecidable -= int((fusion.untested != 0).sum()) if undecidable else 0
    about = "" if not undecidable else f"; {undecidable:,} undecidable: too few or ambiguous choices"
    if not flagged_count:
        return f"none of {tested} is flagged{about}"
    counts = np.bincount(fusion.behaviour[fusion.flagged], minlength=len(BEHAVIOUR_WORDS)).tolist()
    kinds = [f"{counts[at]:,} {name}" for at, name in enumerate(BEHAVIOUR_WORDS) if counts[at]]
    text = (
        f"{flagged_count:,} of {tested} {'is' if flagged_count == 1 else 'are'} flagged ({', '.join(kinds)})"
    )
    wrongly, doubt = f"{100 * fusion.rate:g} %", why_not_guaranteed(plan, fusion)
    if doubt:
        return f"{text}; a rate of at most {wrongly} false flags is not guaranteed: {doubt}"
    return f"{text}, on average at most {wrongly} of them falsely{about}"


def _of_ranking(fusion: PairFusion, other_result: OtherResults) -> Iterator[str]:
    split = other_result.consistency
    groups = int(fusion.component.max(initial=-1)) + 1
    across = "" if groups == 1 else f" in {groups:,} groups"
    if fusion.left.any() or fusion.right.any():
        yield (
            f"the ranking{across} explains {percent(split.ranking)} of the choices; "
            f"{percent(split.disagreement)} is disagreement on the same pairs, "
            f"{percent(split.cyclic)} is cyclic"
        )
    else:
        yield "all choices are ties: there is nothing to rank by"
    has_flagged = bool(fusion.flagged.any())
    if has_flagged:
        old_ranks, new_ranks = (ranks(score, fusion.component) for score in (fusion.score, fusion.corrected))
        moved = int((old_ranks != new_ranks).sum())
        yield f"{counted(moved, 'item') if moved else 'no item'} changed rank after biases were removed"
    if math.isfinite(other_result.bradley_terry):
        when = " before that" if has_flagged else ""
        yield (
            f"scores{when} correlate with those of the Bradley-Terry model by "
            f"{other_result.bradley_terry:.3f}"
        )


def notices_of(answer: Answer) -> Iterator[str]:
    """Return the notices of the algorithms."""
    return by_item(answer, lambda _, fusion: fusion.notices)


def _settings(options: argparse.Namespace) -> dict[str, str]:
    texts = dict(options.settings)
    if options.fdr is None:
        return texts
    if "rate" in texts:
        raise InputError("--fdr and --set rate=RATE exclude each other; expected one of them")
    return texts | {"rate": options.fdr}


def _read(options: argparse.Namespace, watch: Watch) -> list[PairTable]:
    mapping = dict(options.mapping)
    paths = list(dict.fromkeys(options.pairs))  # a file named twice counts once
    tables: list[PairTable] = []
    for path, step in steps_of(watch, paths):
        tables += read_pairs(path, mapping or None, step)
    return tables


def _inputs(
    question_files: list[QuestionTables], excluded: list[str], weights: dict[str, float]
) -> tuple[Inputs, list[str]]:
    annotators = [name for files in question_files for table in files.tables for name in table.annotators]
    refuse_unknown(excluded, annotators, "exclude")
    refuse_unknown(weights, annotators, "weigh")
    questions: dict[str, Pairs] = {}
    sentences: list[str] = []
    for files in question_files:
        try:
            pairs, notices = join_tables(files.tables, set(excluded))
            questions[files.name] = pairs.with_weights(weights)
        except InputError as error:
            raise InputError(error.what, field=files.name if len(question_files) > 1 else None) from error
        sentences += [
            f"{plain(files.name)}: {notice}" if len(question_files) > 1 else notice for notice in notices
        ]
    out = tuple(sorted(set(excluded)))
    return Inputs(dict.fromkeys(questions, 0), questions, excluded=out, weights=weights), sentences


def other_results_of(answer: Answer, watch: Watch) -> dict[str, OtherResults]:
    """Run the other methods on the comparisons of each question that was fused."""
    results = {}
    for (name, fusion), step in steps_of(watch, answer.fusions.items()):
        results[name] = run_other_methods(answer.inputs.given[name], answer.plan, fusion, step)
    return results


def _agreements(answer: Answer, table: RankingTable) -> dict[str, RankingAgreements]:
    """Compare the rankings of each question with the ground truth.

    Raises `InputError` if the ranking contains fewer than two items of every question.
    """
    by_question = {}
    for name, fusion in answer.fusions.items():
        items = answer.inputs.given[name].items
        if len(set(items) & set(table.items)) > 1:
            truth = placed(table.items, table.place, table.group, items)
            by_question[name] = compare_with_truth(fusion.score, fusion.corrected, fusion.component, truth)
    if not by_question:
        raise InputError("ranks no two items that were compared", file=table.path)
    return by_question


def _write(
    folder: Path,
    answer: Answer,
    other_results: Mapping[str, OtherResults],
    truths: Mapping[str, RankingAgreements],
    tables: list[PairTable],
    watch: Watch,
) -> tuple[list[Path], list[str]]:
    """Write the results of each question; return the files, and notices about omitted files."""
    inputs = files_and_digests(dict.fromkeys(table.path for table in tables))
    files: list[Path] = []
    omissions: list[str] = []
    for name, fusion, subfolder, step in folders_of(answer, folder, watch):
        pairs = answer.inputs.given[name]
        trust = trust_in_fusion(pairs, fusion, answer.plan, watch=part(step, 0.0, 0.5))
        record = run_record(answer, name, inputs, other_results[name]) | {"trust": trust.as_dict()}
        if name in truths:
            record["ground_truth_ranking"] = truths[name].as_dict()
        output = QuestionOutput(pairs, answer.plan, fusion, record)
        files += write_question(subfolder, output, part(step, 0.5, 1.0))
        if not has_path(fusion):
            rows = fusion.path.size
            omissions.append(f"{where(answer, name)}path.csv is left out: it would have {rows:,} entries")
    return files, omissions
