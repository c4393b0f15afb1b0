"""The record of clicks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raterscope.app.command_line.arguments import (
    Parser,
    add_algorithm,
    add_by_crowd_size,
    add_extent,
    add_jobs,
    add_mapping,
    add_plan,
    add_results,
    add_truth_option,
    add_weights,
    length,
)
from raterscope.app.exports import Export
from raterscope.app.kinds.kind import (
    Catalogue,
    Functions,
    FuseCommand,
    Kind,
    Plan,
    Report,
    Sample,
)
from raterscope.app.nouns import NOUNS

if TYPE_CHECKING:
    from raterscope.algorithms.settings import Settings
    from raterscope.app.annotator_evidence import AnnotatorFunctions


def _add_fuse_options(parser: Parser) -> None:
    parser.add_argument("clicks", nargs="+", type=Path, metavar="CLICKS",
                        help="tables with the columns annotator, image, x, y and optionally time, Zooniverse "
                             "exports, or points of QuPath, COCO, CVAT, Label Studio, labelme or "
                             "napari")  # fmt: skip
    add_extent(parser, "width and height of every image, pixels")
    parser.add_argument("--images", nargs="+", type=Path, default=[], metavar="PATH",
                        help="sizes of the images: a table with the columns image, width, height, "
                             "or image files, or folders of them")  # fmt: skip
    parser.add_argument("--truth", type=Path, metavar="TRUTH",
                        help="true positions (image, x, y) to compare with; writes evaluation.csv",
                        )  # fmt: skip
    parser.add_argument("--scores", type=Path, metavar="SCORES",
                        help="detections of a program on the same images: a table with the columns image, x, "
                             "y and score, or COCO with scores; only the order of scores counts: higher "
                             "scores must mean more probably a structure")  # fmt: skip
    parser.add_argument("--radius", type=length, metavar="PX",
                        help="matching radius: largest distance of a detection from a true position "
                             "(default: that of a new study)")  # fmt: skip
    add_weights(parser)
    for control, content in (("positive", "some structure"), ("negative", "no structure")):
        parser.add_argument(f"--{control}", nargs="+", action="extend", default=[], metavar="IMAGE",
                            help=f"control images, known to contain {content}; they separate artefacts from "
                                 "structures on the others")  # fmt: skip
    add_by_crowd_size(parser, "needs --truth, writes crowd_size.csv")
    add_truth_option(parser, "hold the ground truth fixed, to improve the other results")
    add_algorithm(parser, "--algorithm", "oem", "how clicks are clustered")
    add_plan(parser)
    add_mapping(parser)
    add_jobs(parser)
    add_results(parser)


def _add_report_options(parser: Parser) -> None:
    add_by_crowd_size(parser, "needs ground truth and takes minutes")


def _catalogues() -> Sequence[Catalogue]:
    from raterscope.algorithms.clicks import CLUSTERERS, DETECTORS

    return (
        Catalogue("algorithms for clicks (--algorithm, with run: ALGORITHM)", CLUSTERERS),
        Catalogue("detectors for clicks (--detector)", DETECTORS, chosen_by_run=False),
    )


def _further_settings() -> Mapping[str, type[Settings]]:
    from raterscope.algorithms.clicks.crowd_size import CrowdSizeSettings
    from raterscope.algorithms.clicks.voting import AssignmentSettings

    return {"with all of them": AssignmentSettings, "with --by-crowd-size": CrowdSizeSettings}


def _functions() -> Functions:
    from raterscope.algorithms.clicks.fusion import FusionPlan
    from raterscope.algorithms.clicks.stream import StreamPlan
    from raterscope.app.kinds.clicks.command import fuse_clicks, plan_texts, summarise
    from raterscope.app.kinds.clicks.evaluation import compare_runs, trust_in_clicks, undecided_detections
    from raterscope.app.kinds.clicks.exports import export_detections, export_measurements, export_table
    from raterscope.app.kinds.clicks.image_fusion import start_processes
    from raterscope.app.kinds.clicks.image_tables import export_quality, export_retirement
    from raterscope.app.kinds.clicks.parasitaemia import export_counts
    from raterscope.app.kinds.clicks.runs import fuse_inputs, gather, keep
    from raterscope.app.kinds.clicks.training import export_training
    from raterscope.app.kinds.clicks.variability import export_variability

    def read_plan(values: Mapping[str, Any]) -> Plan:
        return (StreamPlan if "stream" in values else FusionPlan).from_dict(values)

    return Functions(
        make_plan=FusionPlan.make,
        read_plan=read_plan,
        plan_texts=plan_texts,
        gather=lambda items, study, plan, hold_truth, watch: gather(
            items, study, watch, hold_truth=hold_truth, plan=plan
        ),
        fuse=lambda inputs, plan, jobs, watch: fuse_inputs(inputs, plan, jobs=jobs, watch=watch),
        keep=keep,
        summarise=summarise,
        fuse_files=fuse_clicks,
        annotators_of=lambda study, item, run: study.clicks(item, run).annotators,
        compare_runs=compare_runs,
        trust=trust_in_clicks,
        undecided=undecided_detections,
        start_processes=start_processes,
        writers={
            "detections": export_detections,
            "annotators": export_table,
            "clicks": export_table,
            "counts": export_counts,
            "training": export_training,
            "retirement": export_retirement,
            "measurements": export_measurements,
            "quality": export_quality,
            "variability": export_variability,
        },
    )


def _annotators() -> AnnotatorFunctions:
    from raterscope.app.kinds.clicks.annotators import ANNOTATORS

    return ANNOTATORS


def _report() -> Report:
    from raterscope.app.kinds.clicks.report.sections import REPORT

    return REPORT


def _sample() -> Sample:
    from raterscope.app.kinds.clicks.sample import SAMPLE

    return SAMPLE


_EXPORTS = (
    Export("detections", "Detections", ("csv", "geojson", "coco", "cvat", "napari", "panoptes")),
    Export("annotators", "Annotators", ("csv",)),
    Export("clicks", "Clicks", ("csv",)),
    Export("counts", "Counts", ("csv",), grouped=True),
    Export("training", "Training set", ("yolo", "coco-boxes", "crops"), grouped=True),
    Export("retirement", "Retirement list", ("csv",)),
    Export("measurements", "Measurements", ("csv",), of_run=False),
    Export("quality", "Image quality", ("csv",), of_run=False),
    Export("variability", "Observer variability", ("csv",), of_run=False),
)

CLICKS: Kind = Kind(
    name="clicks",
    title="Clicks",
    nouns=NOUNS["clicks"],
    file_kinds=("clicks", "truth", "scores"),
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
    ),
    load_catalogues=_catalogues,
    load_further_settings=_further_settings,
    run_options=("detector", "hold_truth"),
    load_functions=_functions,
    load_report=_report,
    load_annotators=_annotators,
    exports=_EXPORTS,
    load_sample=_sample,
    add_report_options=_add_report_options,
)
