"""The record of labels."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from raterscope.app.command_line.arguments import (
    Parser,
    add_algorithm,
    add_mapping,
    add_names,
    add_question,
    add_rates_over_time,
    add_results,
    add_roc_curves,
    add_settings,
    add_truth_option,
    add_weights,
    count,
    pair,
    steps,
)
from raterscope.app.exports import Export, Request
from raterscope.app.kinds.kind import Catalogue, Functions, FuseCommand, Kind, Report, Sample
from raterscope.app.nouns import NOUNS

if TYPE_CHECKING:
    from raterscope.algorithms.progress import Watch
    from raterscope.algorithms.settings import Settings
    from raterscope.app.annotator_evidence import AnnotatorFunctions
    from raterscope.app.study import Study


def _add_fuse_options(parser: Parser) -> None:
    parser.add_argument("labels", nargs="+", type=Path, metavar="LABELS",
                        help="tables with the columns annotator, task, label and optionally time; Zooniverse "
                             "exports; Label Studio, CVAT or COCO files; or a study with its decisions and "
                             "exclusions")  # fmt: skip
    parser.add_argument("--run", type=count, metavar="N",
                        help="of a study: write the results of run N, without fusing again")  # fmt: skip
    parser.add_argument("--truth", type=Path, metavar="TRUTH",
                        help="true classes (task, label) to compare with; writes evaluation.csv")  # fmt: skip
    parser.add_argument("--program", nargs="+", action="extend", default=[], type=Path, metavar="TABLE",
                        dest="programs",
                        help="class probabilities of a program: a table with the columns task and one for "
                             "each class, or task, label and score; weighted by how well they predict the "
                             "votes, and left out if they do not")  # fmt: skip
    add_truth_option(parser, "hold the truths fixed, to improve the other results")
    parser.add_argument("--folds", action="store_true",
                        help="hold the truths fixed except a fifth that is measured, in turn")  # fmt: skip
    parser.add_argument("--compare", action="store_true",
                        help="measure all algorithms against the truths, in evaluation.csv")  # fmt: skip
    parser.add_argument("--charts", action="store_true",
                        help="draw communities in triangles as communities.svg, and where they can be "
                             "followed over time communities_over_time and participation as .csv and .svg; "
                             "with dynibcc traces.csv and traces.svg too (dynamic combination paper, Figs. "
                             "4, 7, 8, 10 to 13)")  # fmt: skip
    add_roc_curves(parser, "needs --truth; writes roc_areas.csv, roc_curves.csv and roc_curves.svg")
    add_rates_over_time(parser, "writes rates_over_time.csv, decisions_over_time.csv and rates_over_time.svg")
    parser.add_argument("--subsample", nargs=2, type=count, metavar=("VOTES", "ANNOTATORS"),
                        help="fuse only the tasks with votes of at least ANNOTATORS annotators who have "
                             "VOTES votes on tasks of each true class (dynamic combination paper, section "
                             "4: 50 10); needs --truth")  # fmt: skip
    add_algorithm(parser, "--algorithm", "pooled", "how labels are fused")
    add_settings(parser)
    add_weights(parser)
    add_names(parser, "--outputs", "A,B,...", "possible labels, in order (default: those given)")
    add_names(
        parser,
        "--classes",
        "X,Y,...",
        "possible true classes, in order (default: the outputs, or those of TRUTH)",
    )
    parser.add_argument("--stands", nargs="+", action="extend", default=[], type=pair,
                        metavar="output=class",
                        help="the class that an output stands for; nothing after = for none")  # fmt: skip
    parser.add_argument("--prior", metavar="PRIOR",
                        help="pseudo-counts of each annotator's confusion matrix, a row per class, as in "
                             "'2 1; 1 2', or a CSV file of them")  # fmt: skip
    parser.add_argument("--ordered", action=argparse.BooleanOptionalAction, default=None,
                        help="the classes are grades, from the lowest to the highest, such as 1 to 5 "
                             "(default: detected from the votes)")  # fmt: skip
    add_names(
        parser,
        "--grades",
        "1,2,...",
        "all grades, from the lowest to the highest; in place of --outputs, --classes and --ordered",
    )
    parser.add_argument("--steps", type=steps, default=1, metavar="STEPS",
                        help="how many of an annotator's matrices over time to write: last, all, or a "
                             "number (default: last)")  # fmt: skip
    add_question(parser)
    parser.add_argument("--annotator", metavar="NAME",
                        help="annotator of the files that do not name theirs")  # fmt: skip
    add_mapping(parser, "annotator, task, label, tags (several of a vote), time, truth, question, picture")
    add_results(parser)


def _add_report_options(parser: Parser) -> None:
    add_roc_curves(parser, "needs known truths and takes minutes")
    parser.add_argument("--cost", action="store_true",
                        help="of labels: accuracy against votes per task, the gain of more votes, and the "
                             "votes saved by stopping early; fuses each question some hundred "
                             "times")  # fmt: skip
    add_rates_over_time(parser, "of questions of labels")


def _catalogues() -> Sequence[Catalogue]:
    from raterscope.algorithms.labels.catalogue import LABELLERS

    return (Catalogue("algorithms for labels (--algorithm, with run: ALGORITHM)", LABELLERS),)


def _further_settings() -> Mapping[str, type[Settings]]:
    from raterscope.algorithms.labels.fusion import QuestionSettings
    from raterscope.algorithms.labels.roc_curves import FoldedSettings
    from raterscope.algorithms.labels.vote_budget import BudgetSettings

    return {
        "with all of them": QuestionSettings,
        "with --roc-curves": FoldedSettings,
        "with `export --what assignments`": BudgetSettings,
    }


def _functions() -> Functions:
    from raterscope.algorithms.labels.fusion import LabelPlan
    from raterscope.app.kinds.labels.command import fuse_labels, plan_texts, summarise
    from raterscope.app.kinds.labels.evaluation import compare_runs, trust_in_labels, undecided_labels
    from raterscope.app.kinds.labels.runs import fuse_inputs, gather, keep
    from raterscope.app.study.labels import labels_of

    return Functions(
        make_plan=LabelPlan.make,
        read_plan=LabelPlan.from_dict,
        plan_texts=plan_texts,
        gather=lambda items, study, plan, _hold_truth, watch: gather(
            items, study, watch, algorithm=plan.algorithm
        ),
        fuse=lambda inputs, plan, _jobs, watch: fuse_inputs(inputs, plan, watch),
        keep=keep,
        summarise=summarise,
        fuse_files=fuse_labels,
        annotators_of=lambda study, item, run: labels_of(study, item, run).annotators,
        compare_runs=compare_runs,
        trust=lambda study, items, watch: trust_in_labels(study, items[0], watch),
        undecided=undecided_labels,
        writers={export.what: _export for export in _EXPORTS},
    )


def _export(study: Study, request: Request, watch: Watch) -> list[Path]:
    from raterscope.app.kinds.labels.exports import export_labels  # imports modules that no fusion needs

    return export_labels(study, request, watch)


def _annotators() -> AnnotatorFunctions:
    from raterscope.app.kinds.labels.annotators import ANNOTATORS

    return ANNOTATORS


def _report() -> Report:
    from raterscope.app.kinds.labels.report.sections import REPORT

    return REPORT


def _sample() -> Sample:
    from raterscope.app.kinds.labels.sample import SAMPLE

    return SAMPLE


_DRAWN = ("csv", "svg")


_table = partial(Export, by_question=True)
_EXPORTS = (
    _table("labels", "Labels", ("csv", "label-studio", "cvat", "panoptes", "crowd-kit")),
    _table("training", "Training set", grouped=True),
    _table("probability", "Probabilities", ("crowd-kit",)),
    _table("annotators", "Annotators"),
    _table("confusion", "Confusion matrices", ("csv", "crowd-kit")),
    _table("communities", "Communities", _DRAWN),
    _table("communities-over-time", "Communities over time", _DRAWN),
    _table("participation", "Participation over time", _DRAWN),
    _table("traces", "Confusion matrices over time", _DRAWN),
    _table("roc-curves", "ROC curves by cross-validation", _DRAWN),
    _table("rates-over-time", "Rates over time", _DRAWN, of_run=False),
    _table("votes", "Votes", ("csv", "crowd-kit"), of_run=False),
    _table("agreement", "Agreement", of_run=False),
    Export("tags", "Tags of each task"),
    _table("variability", "Observer variability", of_run=False),
    _table("next-votes", "Votes to ask for"),
    _table("assignments", "Assignments", budgeted=True),
    _table("retirement", "Retirement list"),
    _table("cost", "Accuracy against votes"),
    _table("decided", "Decided tasks", ("csv", "crowd-kit"), of_run=False),
)

LABELS: Kind = Kind(
    name="labels",
    title="Labels",
    nouns=NOUNS["labels"],
    file_kinds=("labels", "true-labels"),
    fuse_command=FuseCommand(
        "a crowd's labels: true classes, and each annotator's confusion matrix",
        "Fuses labels and writes labels.csv, annotators.csv, confusion.csv, next_votes.csv and\n"
        "run.json, communities.csv where they are found, evaluation.csv where truths are known; of several\n"
        "questions, into a folder each.",
        (
            "fuse labels votes.csv -o results",
            "fuse labels votes.csv --truth truth.csv --compare -o results",
            "fuse labels votes.csv --program network.csv -o results",
            "fuse labels study.rscope --run 3 -o results",
            "fuse labels scores.csv --outputs -1,1,3 --classes no,yes --stands -1=no 1=yes 3=yes -o results",
        ),
        _add_fuse_options,
    ),
    load_catalogues=_catalogues,
    load_further_settings=_further_settings,
    run_options=("hold_truth",),
    load_functions=_functions,
    load_report=_report,
    load_annotators=_annotators,
    exports=_EXPORTS,
    load_sample=_sample,
    add_report_options=_add_report_options,
)
