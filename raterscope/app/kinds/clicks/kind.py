"""The record of clicks."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raterscope.app.command_line.arguments import (
    Parser,
    add_algorithm,
    add_by_crowd_size,
    add_extent,
    add_hold,
    add_jobs,
    add_mapping,
    add_plan,
    add_results,
    length,
    weight,
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
    from raterscope.algorithms.settings import Settings
    from raterscope.app.comparison import ComparedItem, Differences
    from raterscope.app.outcome import Answer, Inputs
    from raterscope.app.review import ReviewState
    from raterscope.app.sample_files import Demonstrated, Tools
    from raterscope.app.study import RunEntry, Study
    from raterscope.app.trust import Trust

__all__ = ["CLICKS"]


def _add_fuse_options(parser: Parser) -> None:
    parser.add_argument("clicks", nargs="+", type=Path, metavar="CLICKS",
                        help="tables with the columns annotator, image, x, y and perhaps time, Zooniverse "
                             "exports, or points of QuPath, COCO, CVAT, Label Studio, labelme or "
                             "napari")  # fmt: skip
    add_extent(parser, "width and height of every image, pixels")
    parser.add_argument("--images", nargs="+", type=Path, default=[], metavar="PATH",
                        help="sizes of the images: a table with the columns image, width, height, "
                             "or image files, or folders of them")  # fmt: skip
    parser.add_argument("--truth", type=Path, metavar="TRUTH",
                        help="true places (image, x, y) to compare with; writes evaluation.csv")  # fmt: skip
    parser.add_argument("--scores", type=Path, metavar="SCORES",
                        help="detections of a program on the same images: a table with the columns image, x, "
                             "y and score, or COCO with scores; higher means more probably a structure, and "
                             "only the order counts")  # fmt: skip
    parser.add_argument("--radius", type=length, metavar="PX",
                        help="matching radius: how far from the truth a detection may lie; by default "
                             "that of a new study")  # fmt: skip
    parser.add_argument("--weight", nargs="+", action="extend", default=[], type=weight,
                        metavar="NAME=WEIGHT", dest="weights",
                        help="weights below 1 for annotators, as in kim=0.5")  # fmt: skip
    for control, held in (("positive", "some structure"), ("negative", "no structure")):
        parser.add_argument(f"--{control}", nargs="+", action="extend", default=[], metavar="IMAGE",
                            help=f"control images: known to hold {held}; they separate artefacts from "
                                 "structures on the others")  # fmt: skip
    add_by_crowd_size(parser, "needs --truth, writes crowd_size.csv")
    add_hold(parser, "hold the ground truth fixed, so that it improves the rest")
    add_algorithm(parser, "--algorithm", "oem", "how clicks are clustered")
    add_plan(parser)
    add_mapping(parser)
    add_jobs(parser)
    add_results(parser)


def _fuse_files(options: argparse.Namespace) -> int:
    from raterscope.app.kinds.clicks.command import fuse_clicks

    return fuse_clicks(options)


def _catalogues() -> Sequence[Catalogue]:
    from raterscope.algorithms.clicks import CLUSTERERS, DETECTORS

    return (
        Catalogue("algorithms for clicks (--algorithm, with run: ALGORITHM)", CLUSTERERS),
        Catalogue("detectors for clicks (--detector)", DETECTORS, chosen_by_run=False),
    )


def _shared_settings() -> type[Settings]:
    from raterscope.algorithms.clicks.assignment import AssignmentSettings

    return AssignmentSettings


def _make_plan(options: argparse.Namespace) -> Plan:
    from raterscope.algorithms.clicks.fusion import FusionPlan

    return FusionPlan.make(options.algorithm, options.detector, dict(options.settings))


def _read_plan(values: Mapping[str, Any]) -> Plan:
    from raterscope.algorithms.clicks.fusion import FusionPlan
    from raterscope.algorithms.clicks.stream import StreamPlan

    return (StreamPlan if "stream" in values else FusionPlan).from_dict(values)


def _gather(items: Sequence[int], study: Study, plan: Any, hold_truth: bool, watch: Watch) -> Inputs[Any]:
    from raterscope.app.kinds.clicks.running import gather

    return gather(items, study, watch, hold_truth=hold_truth, plan=plan)


def _fuse(inputs: Any, plan: Any, jobs: int | None, watch: Watch) -> Answer[Any, Any, Any]:
    from raterscope.app.kinds.clicks.running import fuse_inputs

    return fuse_inputs(inputs, plan, jobs=jobs, watch=watch)


def _keep(answer: Any, study: Study, watch: Watch) -> int:
    from raterscope.app.kinds.clicks.running import keep

    return keep(answer, study, watch)


def _summarise(
    answer: Any, study: Study, _options: argparse.Namespace, seconds: float, _watch: Watch
) -> Summary:
    from raterscope.algorithms.clicks.fusion import isolation_notice
    from raterscope.algorithms.clicks.robustness import run_notices
    from raterscope.app.kinds.clicks.command import summary_of
    from raterscope.app.kinds.clicks.other_images import others_in_words

    inputs = answer.inputs
    used = len(inputs.items) + len(inputs.others.images)
    notices = [
        *run_notices([one.fusion for one in answer.outcomes.values() if one.fusion is not None]),
        isolation_notice(answer.plan, used, len(study.items()[CLICKS.name])) or "",
        others_in_words(inputs.others.as_log()),
    ]
    lines = summary_of(inputs.given, answer.outcomes, None, seconds)
    return Summary([one for one in notices if one], lines)


def _trust(study: Study, items: Sequence[int], watch: Watch) -> Trust | None:
    from raterscope.app.kinds.clicks.trust import trust_in_clicks

    return trust_in_clicks(study, items, watch)


def _annotators_of(study: Study, item: int, run: RunEntry) -> Iterable[str | None]:
    return study.clicks(item, run).annotators


def _add_report_options(parser: Parser) -> None:
    add_by_crowd_size(parser, "needs ground truth and takes minutes")


def _read_report_options(options: argparse.Namespace) -> dict[str, Any]:
    from raterscope.algorithms.clicks.crowd_size import CrowdSizeSettings

    if options.by_crowd_size is None:
        return {}
    return {"crowd_size": CrowdSizeSettings.from_text(dict(options.by_crowd_size))}


def _held_fixed(
    run: RunEntry, then: ReviewState, names: Mapping[tuple[str, int], str], fixed: bool
) -> tuple[str, str]:
    from raterscope.app.kinds.clicks.report.sections import held_fixed

    return held_fixed(run, then, names, fixed)


def _gather_report(request: ReportRequest, watch: Watch) -> ReportPart:
    from raterscope.app.kinds.clicks.report.sections import gather_part

    return gather_part(request, watch)


def _compare_runs(item: ComparedItem, differences: Differences) -> None:
    from raterscope.app.kinds.clicks.changes import compare_runs

    compare_runs(item, differences)


def _demonstrate(folder: Path, results: Path, tools: Tools, watch: Watch) -> Demonstrated:
    from raterscope.app.kinds.clicks.sample import demonstrate

    return demonstrate(folder, results, tools, watch)


def _about(_path: Path) -> str:
    from raterscope.app.kinds.clicks.sample import about

    return about()


def _write_detections(study: Study, request: Request, watch: Watch) -> list[Path]:
    from raterscope.app.kinds.clicks.exporting import export_detections

    return export_detections(study, request, watch)


def _write_table(study: Study, request: Request, watch: Watch) -> list[Path]:
    from raterscope.app.kinds.clicks.exporting import export_table

    return export_table(study, request, watch)


def _write_counts(study: Study, request: Request, watch: Watch) -> list[Path]:
    from raterscope.app.kinds.clicks.parasitaemia import export_counts

    return export_counts(study, request, watch)


def _write_measurements(study: Study, request: Request, watch: Watch) -> list[Path]:
    from raterscope.app.kinds.clicks.exporting import export_measurements

    return export_measurements(study, request, watch)


_KINDS = ("clicks",)
_EXPORTS = (
    Export("detections", _KINDS, "Detections", ("csv", "geojson", "coco", "napari"), _write_detections),
    Export("annotators", _KINDS, "Annotators", ("csv",), _write_table),
    Export("clicks", _KINDS, "Clicks", ("csv",), _write_table),
    Export("counts", _KINDS, "Counts", ("csv",), _write_counts),
    Export("measurements", _KINDS, "Measurements", ("csv",), _write_measurements, of_run=False),
)

CLICKS = Kind(
    name="clicks",
    title="Clicks",
    item="image",
    by_question=False,
    file_kinds=("clicks", "truth", "scores"),
    detail="detection",
    run=Run(
        catalogues=_catalogues,
        shared_settings=_shared_settings,
        make_plan=_make_plan,
        read_plan=_read_plan,
        gather=_gather,
        fuse=_fuse,
        keep=_keep,
        summarise=_summarise,
    ),
    fuse_command=FuseCommand(
        "clicks on images: cluster them, then separate structures from artefacts",
        "Fuses clicks and writes detections.csv, annotators.csv, clicks.csv and run.json.",
        (
            "fuse clicks clicks.csv --extent 1280 960 -o results",
            "fuse clicks clicks.csv --images smears/ --truth truth.csv --radius 4 -o results",
            "fuse clicks clicks.csv --extent 1280 960 --weight kim=0.5 --negative blank.png -o results",
            "fuse clicks clicks.csv --images smears/ --algorithm cem --set expected_share=0.02 -o results",
        ),
        _add_fuse_options,
        _fuse_files,
    ),
    trust=_trust,
    annotators_of=_annotators_of,
    compare_runs=_compare_runs,
    report=Report(_gather_report, _add_report_options, _read_report_options, _held_fixed),
    exports=_EXPORTS,
    sample=Sample(_demonstrate, _about, "window.png", 0.4),
)
