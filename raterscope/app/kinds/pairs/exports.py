"""Exports of pairs: the files of a result folder, and the tables of a study with the decisions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raterscope.algorithms.pairs import PairFusion, Pairs
from raterscope.algorithms.pairs.catalogue import PairPlan
from raterscope.algorithms.pairs.evidence import match_ratio
from raterscope.algorithms.pairs.selection import draw_shares
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError
from raterscope.app.exports import Request, files_for
from raterscope.app.formats.output_files import remove_file, write_record, write_table
from raterscope.app.formats.pairs.writing import (
    write_annotators,
    write_pairs,
    write_path,
    write_ranking,
    write_wins,
)
from raterscope.app.kinds.pairs.runs import (
    Answer,
    Answered,
    OtherResults,
    apply_decisions,
    digest_of,
    is_t_test_defined,
    plan_of,
    question_record,
    read_answer,
    why_not_guaranteed,
)
from raterscope.app.outcome import record_of
from raterscope.app.review import current_names
from raterscope.app.study import Study
from raterscope.app.study.pairs import pairs_of
from raterscope.app.study.records import PairQuestion

MAX_ENTRIES = 10_000_000
"""Maximum number of entries of the path to write path.csv."""


@dataclass(frozen=True, eq=False)
class QuestionOutput:
    """Contents of the folder of one question."""

    pairs: Pairs  # input of the fusion
    plan: PairPlan
    fusion: PairFusion
    record: Mapping[str, Any]  # for run.json


def write_question(folder: Path, output: QuestionOutput, watch: Watch = silent) -> list[Path]:
    """Write tables and run.json into an existing folder; return the files.

    Each file replaces an existing one completely or not at all; an earlier run's path is removed if this one
    has none. run.json is removed first and written last: if it exists, all files that it describes exist.
    Raises `InputError` if something cannot be written.
    """
    pairs, fusion = output.pairs, output.fusion
    remove_file(folder / "run.json")
    share = draw_shares(fusion, output.plan.settings.as_dict()["plus"])
    files = [
        write_annotators(
            folder / "annotators.csv", pairs.annotators, fusion, share, match_ratio(pairs, fusion.score)
        ),
        write_ranking(folder / "ranking.csv", pairs.items, fusion),
    ]
    if has_path(fusion):
        files.append(write_path(folder / "path.csv", pairs.annotators, fusion, watch))
    else:
        remove_file(folder / "path.csv")
    return [*files, write_record(folder / "run.json", output.record)]


def has_path(fusion: PairFusion) -> bool:
    """Return whether path.csv has a practicable size."""
    return fusion.path.size <= MAX_ENTRIES


def run_record(
    answer: Answer, name: str, inputs: Sequence[Mapping[str, object]], other_result: OtherResults
) -> dict[str, Any]:
    """Return the contents of run.json: all that is needed to reproduce the results, and the fusion's log."""
    outcome, pairs = answer.outcomes[name], answer.inputs.given[name]
    fusion, settings = outcome.fusion, answer.plan.settings.as_dict()
    assert fusion is not None
    doubt = why_not_guaranteed(answer.plan, fusion)
    others = other_result.as_dict()
    if not is_t_test_defined(fusion):
        others["t_test"] = None
    record = record_of(
        answer.plan, seed=settings["seed"], digest=digest_of({name: pairs}), inputs=inputs,
        started=answer.started, seconds=outcome.seconds,
    )  # fmt: skip
    return record | {
        "excluded": list(answer.inputs.excluded),
        "weights": dict(answer.inputs.weights),
        "rate_promised": not doubt,
        "rate_not_promised_because": doubt or None,
        "questions": [question_record(outcome, pairs) | others],
    }


_Write = Callable[[Study, Answered, Path, Watch], Path]


def export_pairs(study: Study, request: Request, watch: Watch = silent) -> list[Path]:
    """Write an export of pairs, a file per question, in a folder if there are several.

    See `exports.Writer`. Raises `InputError` when there are no pairs, nothing was fused yet, or a file cannot
    be written.
    """
    requested = [entry for entry in study.pair_questions() if not request.items or entry.id in request.items]
    if not requested:
        raise InputError("contains no pairs; `raterscope import` reads them", file=study.path)
    ready = requested
    if request.what not in ("pairs", "variability"):
        ready = [entry for entry in requested if study.shown.result(entry.id, "pairs") is not None]
    if not ready or (request.items and len(ready) < len(requested)):
        raise InputError("contains no run of pairs yet; `raterscope run` makes one", file=study.path)
    return [
        _write_export(study, question, request.what, path, step)
        for question, path, step in files_for(request, [(entry, entry.name) for entry in ready], watch)
    ]


def _write_export(study: Study, question: PairQuestion, export: str, path: Path, watch: Watch) -> Path:
    if export == "pairs":
        tasks = study.comparison_set(question.id).tasks
        return write_pairs(path, pairs_of(study, question.id), watch, tasks)
    if export == "variability":
        from raterscope.app.kinds.pairs.annotators import measure_pairs, pair_statistics
        from raterscope.app.page.variability import COLUMNS, statistic_rows

        pairs, state = pairs_of(study, question.id), study.review_state()
        pairs = pairs.joined(current_names(pairs.annotators, state.aliases)).without(set(state.excluded))
        statistics = pair_statistics(measure_pairs(question.name, pairs, watch))
        return write_table(path, COLUMNS, statistic_rows(statistics))
    answered = read_answer(study, question)
    assert answered is not None
    return _WRITERS[export](study, answered, path, watch)


def _write_annotators(study: Study, answered: Answered, path: Path, watch: Watch) -> Path:
    fusion, plan = apply_decisions(study, answered, watch), plan_of(answered.run)
    share = None
    if plan is not None:
        share = draw_shares(fusion, plan.settings.as_dict()["plus"])
    pairs = answered.pairs
    return write_annotators(path, pairs.annotators, fusion, share, match_ratio(pairs, fusion.score))


def _write_ranking(study: Study, answered: Answered, path: Path, watch: Watch) -> Path:
    return write_ranking(path, answered.pairs.items, apply_decisions(study, answered, watch))


def _write_wins(_: Study, answered: Answered, path: Path, _watch: Watch) -> Path:
    return write_wins(path, answered.pairs)


def _write_path(_: Study, answered: Answered, path: Path, watch: Watch) -> Path:
    return write_path(path, answered.pairs.annotators, answered.fusion, watch)


_WRITERS: Mapping[str, _Write] = {
    "annotators": _write_annotators,
    "ranking": _write_ranking,
    "wins": _write_wins,
    "path": _write_path,
}
