"""The record of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from raterscope.app.command_line.arguments import (
    Parser,
    add_algorithm,
    add_mapping,
    add_question,
    add_results,
    add_settings,
    add_weights,
)
from raterscope.app.exports import Export
from raterscope.app.kinds.kind import Catalogue, Functions, FuseCommand, Kind, Report, Sample
from raterscope.app.nouns import NOUNS

if TYPE_CHECKING:
    from raterscope.app.annotator_evidence import AnnotatorFunctions


def _add_fuse_options(parser: Parser) -> None:
    parser.add_argument("pairs", nargs="+", type=Path, metavar="PAIRS",
                        help="tables with the columns annotator, left, right, choice and optionally time; "
                             "a choice is left, right, tie, an item, or a number (above 0 for "
                             "left)")  # fmt: skip
    add_algorithm(parser, "--path", "iss", "that finds biased annotators", dest="algorithm")
    parser.add_argument("--fdr", metavar="RATE",
                       help="share of false flags that is allowed, as --set rate=RATE "
                            "(default: 0.1)")  # fmt: skip
    add_settings(parser)
    add_question(parser)
    parser.add_argument("--exclude", nargs="+", action="extend", default=[], metavar="NAME",
                       help="annotators to exclude")  # fmt: skip
    add_weights(parser)
    parser.add_argument("--truth", type=Path, metavar="RANKING",
                       help="a ground-truth ranking to compare with: a table with the columns item, rank and "
                            "perhaps group, the best item with the lowest rank")  # fmt: skip
    add_mapping(parser, "annotator, left, right, choice, time, question, left_picture, right_picture")
    add_results(parser)


def _catalogues() -> Sequence[Catalogue]:
    from raterscope.algorithms.pairs.catalogue import PATHS

    return (Catalogue("paths for pairs (--path, with run: ALGORITHM)", PATHS),)


def _functions() -> Functions:
    from raterscope.algorithms.pairs.catalogue import PairPlan
    from raterscope.app.kinds.pairs.command import fuse_pairs, summarise
    from raterscope.app.kinds.pairs.evaluation import compare_runs, trust_in_pairs, undecided_annotators
    from raterscope.app.kinds.pairs.exports import export_pairs
    from raterscope.app.kinds.pairs.runs import fuse_inputs, gather, keep
    from raterscope.app.study.pairs import pairs_of

    return Functions(
        make_plan=PairPlan.make,
        read_plan=PairPlan.from_dict,
        gather=lambda items, study, _plan, _hold_truth, watch: gather(items, study, watch),
        fuse=lambda inputs, plan, _jobs, watch: fuse_inputs(inputs, plan, watch),
        keep=keep,
        summarise=summarise,
        fuse_files=fuse_pairs,
        annotators_of=lambda study, item, run: pairs_of(study, item, run).annotators,
        compare_runs=compare_runs,
        trust=lambda study, items, watch: trust_in_pairs(study, items[0], watch),
        undecided=undecided_annotators,
        writers={export.what: export_pairs for export in _EXPORTS},
    )


def _annotators() -> AnnotatorFunctions:
    from raterscope.app.kinds.pairs.annotators import ANNOTATORS

    return ANNOTATORS


def _report() -> Report:
    from raterscope.app.kinds.pairs.report.sections import REPORT

    return REPORT


def _sample() -> Sample:
    from raterscope.app.kinds.pairs.sample import SAMPLE

    return SAMPLE


_table = partial(Export, by_question=True)
_EXPORTS = (
    _table("annotators", "Annotators"),
    _table("ranking", "Ranking"),
    _table("wins", "Wins"),
    _table("path", "Path"),
    _table("pairs", "Comparisons", of_run=False),
    _table("variability", "Observer variability", of_run=False),
)

PAIRS: Kind = Kind(
    name="pairs",
    title="Pairs",
    nouns=NOUNS["pairs"],
    file_kinds=("pairs", "true-ranking"),
    doubt="flagged",
    holds_decisions=False,
    uses_programs=False,
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
    ),
    load_catalogues=_catalogues,
    load_functions=_functions,
    load_report=_report,
    load_annotators=_annotators,
    exports=_EXPORTS,
    load_sample=_sample,
)
