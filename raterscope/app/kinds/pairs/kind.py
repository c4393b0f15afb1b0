"""The record of pairs."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raterscope.app.command_line.arguments import (
    Parser,
    add_algorithm,
    add_mapping,
    add_question,
    add_results,
    add_settings,
)
from raterscope.app.exports import Export, Request
from raterscope.app.kinds.kind import (
    Catalogue,
    FuseCommand,
    Kind,
    Plan,
    Report,
    ReportPart,
    ReportRequest,
    Run,
    Sample,
    Summary,
)

if TYPE_CHECKING:
    from raterscope.algorithms.progress import Watch
    from raterscope.app.comparison import ComparedItem, Differences
    from raterscope.app.outcome import Answer, Inputs
    from raterscope.app.sample_files import Demonstrated, Tools
    from raterscope.app.study import RunEntry, Study
    from raterscope.app.trust import Trust

__all__ = ["PAIRS"]


def _add_fuse_options(parser: Parser) -> None:
    parser.add_argument("pairs", nargs="+", type=Path, metavar="PAIRS",
                       help="tables with the columns annotator, left, right, choice and perhaps time; a "
                            "choice is left, right, tie, an item, or a number above 0 for left")  # fmt: skip
    add_algorithm(parser, "--path", "iss", "along which the biased are found")
    parser.add_argument("--fdr", metavar="RATE",
                       help="share of the flagged that may be flagged wrongly, as --set rate=RATE "
                            "(default: 0.1)")  # fmt: skip
    add_settings(parser)
    add_question(parser)
    parser.add_argument("--exclude", nargs="+", action="extend", default=[], metavar="NAME",
                       help="annotators to leave out")  # fmt: skip
    parser.add_argument("--truth", type=Path, metavar="RANKING",
                       help="a ground-truth ranking to compare with: a table with the columns item, rank and "
                            "perhaps group, the best item with the lowest rank")  # fmt: skip
    add_mapping(parser, "annotator, left, right, choice, time, question, left_picture, right_picture")
    add_results(parser)


def _fuse_files(options: argparse.Namespace) -> int:
    from raterscope.app.kinds.pairs.command import fuse_pairs

    return fuse_pairs(options)


def _catalogues() -> Sequence[Catalogue]:
    from raterscope.algorithms.pairs.catalogue import PATHS

    return (Catalogue("paths for pairs (--path, with run: ALGORITHM)", PATHS),)


def _make_plan(options: argparse.Namespace) -> Plan:
    from raterscope.algorithms.pairs.fusion import PairPlan

    return PairPlan.make(options.algorithm, dict(options.settings))


def _read_plan(values: Mapping[str, Any]) -> Plan:
    from raterscope.algorithms.pairs.fusion import PairPlan

    return PairPlan.from_dict(values)


def _gather(items: Sequence[int], study: Study, _plan: Any, _hold_truth: bool, watch: Watch) -> Inputs[Any]:
    from raterscope.app.kinds.pairs.running import gather

    return gather(items, study, watch)


def _fuse(inputs: Any, plan: Any, _jobs: int | None, watch: Watch) -> Answer[Any, Any, Any]:
    from raterscope.app.kinds.pairs.running import fuse_inputs

    return fuse_inputs(inputs, plan, watch)


def _keep(answer: Any, study: Study, watch: Watch) -> int:
    from raterscope.app.kinds.pairs.running import keep

    return keep(answer, study, watch)


def _summarise(
    answer: Any, _study: Study, _options: argparse.Namespace, seconds: float, watch: Watch
) -> Summary:
    from raterscope.app.kinds.pairs.command import beside_each, notices_of, summary_of

    others = beside_each(answer, watch)
    return Summary(notices_of(answer), summary_of(answer, seconds, others) if answer.kept else ())


def _trust(study: Study, items: Sequence[int], watch: Watch) -> Trust | None:
    from raterscope.app.kinds.pairs.trust import trust_in_pairs

    return trust_in_pairs(study, items[0], watch)


def _annotators_of(study: Study, item: int, run: RunEntry) -> Iterable[str | None]:
    from raterscope.app.study.pairs import pairs_of

    return pairs_of(study, item, run).annotators


def _gather_report(request: ReportRequest, watch: Watch) -> ReportPart:
    from raterscope.app.kinds.pairs.report.sections import gather_part

    return gather_part(request, watch)


def _compare_runs(item: ComparedItem, differences: Differences) -> None:
    from raterscope.app.kinds.pairs.changes import compare_runs

    compare_runs(item, differences)


def _demonstrate(folder: Path, results: Path, tools: Tools, watch: Watch) -> Demonstrated:
    from raterscope.app.kinds.pairs.sample import demonstrate

    return demonstrate(folder, results, tools, watch)


def _about(_path: Path) -> str:
    from raterscope.app.kinds.pairs.sample import about

    return about()


def _write(study: Study, request: Request, watch: Watch) -> list[Path]:
    from raterscope.app.kinds.pairs.exporting import export_pairs

    return export_pairs(study, request, watch)


_KINDS = ("pairs",)


def _table(what: str, title: str, formats: tuple[str, ...] = ("csv",), *, of_run: bool = True) -> Export:
    return Export(what, _KINDS, title, formats, _write, of_run=of_run, by_question=True)


_EXPORTS = (
    _table("annotators", "Annotators"),
    _table("ranking", "Ranking"),
    _table("path", "Path"),
    _table("pairs", "Comparisons", of_run=False),
)

PAIRS = Kind(
    name="pairs",
    title="Pairs",
    item="question",
    by_question=True,
    file_kinds=("pairs", "true-ranking"),
    detail="annotator",
    doubt="flagged",
    run=Run(
        catalogues=_catalogues,
        make_plan=_make_plan,
        read_plan=_read_plan,
        gather=_gather,
        fuse=_fuse,
        keep=_keep,
        summarise=_summarise,
    ),
    fuse_command=FuseCommand(
        "a crowd's comparisons of pairs: annotators biased to a side, and the ranking without bias",
        "Finds annotators who are biased to a side at a controlled rate of false discoveries,\n"
        "and ranks the items without their biases. Writes annotators.csv, ranking.csv, path.csv and\n"
        "run.json; of several questions, into a folder each.",
        (
            "fuse pairs comparisons.csv -o results",
            "fuse pairs monday.csv tuesday.csv --path lasso --fdr 0.2 --exclude test-account -o results",
            "fuse pairs comparisons.csv --truth ranking.csv -o results",
        ),
        _add_fuse_options,
        _fuse_files,
    ),
    trust=_trust,
    annotators_of=_annotators_of,
    compare_runs=_compare_runs,
    report=Report(_gather_report),
    exports=_EXPORTS,
    sample=Sample(_demonstrate, _about, "window-pairs.png", 0.1),
)
