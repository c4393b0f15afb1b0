"""The record of masks."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raterscope.app.command_line.arguments import (
    Parser,
    add_algorithm,
    add_masks,
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

__all__ = ["MASKS"]


def _add_fuse_options(parser: Parser) -> None:
    parser.add_argument("masks", nargs="+", type=Path, metavar="MASK",
                       help="masks, label maps or probabilities: NIfTI, NRRD, MetaImage, DICOM SEG, "
                            "RTSTRUCT, PNG, TIFF, LIDC or CVAT XML, COCO, Label Studio or labelme JSON, or "
                            "folders of them")  # fmt: skip
    parser.add_argument("--image", nargs="+", type=Path, default=[], metavar="VOLUME",
                       help="what the masks were drawn on; contours need it")  # fmt: skip
    parser.add_argument("--truth", nargs="+", type=Path, metavar="TRUTH",
                       help="true masks to compare with; writes evaluation.csv")  # fmt: skip
    add_masks(parser)
    parser.add_argument("--cluster-raters", action="store_true",
                       help="cluster raters over the images by overlap and by shared consensus, for which "
                            "the mixture of consensuses is fitted to each image; writes rater_distances.csv "
                            "and rater_tree.csv (always done with --algorithm mixture and several "
                            "images)")  # fmt: skip
    parser.add_argument("--together", action="store_true",
                       help="fuse several structures as classes of one model, not one by one")  # fmt: skip
    parser.add_argument("--compare", nargs="*", metavar="METHOD",
                       help="run several algorithms (by default all) on the same masks too and compare their "
                            "consensuses with the truth and with the raters, their lower bounds and times; "
                            "writes methods.csv and methods.svg")  # fmt: skip
    add_algorithm(parser, "--algorithm", "laplace", "how masks are fused")
    add_settings(parser)
    add_results(parser)


def _fuse_files(options: argparse.Namespace) -> int:
    from raterscope.app.kinds.masks.command import fuse_masks

    return fuse_masks(options)


def _catalogues() -> Sequence[Catalogue]:
    from raterscope.algorithms.masks.catalogue import FUSERS

    return (Catalogue("algorithms for masks (--algorithm, with run: ALGORITHM)", FUSERS),)


def _make_plan(options: argparse.Namespace) -> Plan:
    from raterscope.algorithms.masks.fusion import MaskPlan

    return MaskPlan.make(options.algorithm, dict(options.settings))


def _read_plan(values: Mapping[str, Any]) -> Plan:
    from raterscope.algorithms.masks.fusion import MaskPlan

    return MaskPlan.from_dict(values)


def _gather(items: Sequence[int], study: Study, _plan: Any, _hold_truth: bool, watch: Watch) -> Inputs[Any]:
    from raterscope.app.kinds.masks.running import gather

    return gather(items, study, watch)


def _fuse(inputs: Any, plan: Any, _jobs: int | None, watch: Watch) -> Answer[Any, Any, Any]:
    from raterscope.app.kinds.masks.running import fuse_inputs

    return fuse_inputs(inputs, plan, watch)


def _keep(answer: Any, study: Study, watch: Watch) -> int:
    from raterscope.app.kinds.masks.running import keep

    return keep(answer, study, watch)


def _summarise(
    answer: Any, _study: Study, _options: argparse.Namespace, seconds: float, _watch: Watch
) -> Summary:
    from raterscope.app.kinds.masks.command import summary_of

    return Summary((), summary_of(answer, seconds))


def _trust(study: Study, items: Sequence[int], watch: Watch) -> Trust | None:
    from raterscope.app.kinds.masks.trust import trust_in_masks

    return trust_in_masks(study, items, watch)


def _annotators_of(study: Study, item: int, run: RunEntry) -> Iterable[str | None]:
    from raterscope.app.study.masks import mask_entries

    return {one.annotator for one in mask_entries(study, item, run)}


def _add_report_options(parser: Parser) -> None:
    parser.add_argument("--compare-methods", nargs="*", metavar="METHOD",
                        help="run several algorithms for masks (by default all) on the same cases and "
                             "compare their consensuses, lower bounds and times; takes minutes. Without it "
                             "the report shows the last comparison that was made in the window")  # fmt: skip


def _read_report_options(options: argparse.Namespace) -> dict[str, Any]:
    return {"methods": options.compare_methods}


def _gather_report(request: ReportRequest, watch: Watch) -> ReportPart:
    from raterscope.app.kinds.masks.report.sections import gather_part

    return gather_part(request, watch)


def _compare_runs(item: ComparedItem, differences: Differences) -> None:
    from raterscope.app.kinds.masks.changes import compare_runs

    compare_runs(item, differences)


def _demonstrate(folder: Path, results: Path, tools: Tools, watch: Watch) -> Demonstrated:
    from raterscope.app.kinds.masks.sample import demonstrate

    return demonstrate(folder, results, tools, watch)


def _about(path: Path) -> str:
    from raterscope.app.kinds.masks.sample import about
    from raterscope.app.study import Study

    with Study.open(path) as study:
        return about(study)


def _write_maps(study: Study, request: Request, watch: Watch) -> list[Path]:
    from raterscope.app.kinds.masks.exporting import export_maps

    return export_maps(study, request, watch)


def _write_table(study: Study, request: Request, watch: Watch) -> list[Path]:
    from raterscope.app.kinds.masks.exporting import export_table

    return export_table(study, request, watch)


_KINDS = ("masks",)
_SHARES = ("nifti", "dicom-seg")
_OUTLINES = ("nifti", "seg.nrrd", "dicom-seg", "rtstruct")


def _map(what: str, title: str, formats: tuple[str, ...] = ("nifti",)) -> Export:
    return Export(what, _KINDS, title, formats, _write_maps, by_case=True, deidentifies=True)


_EXPORTS = (
    _map("consensus", "Consensus", _OUTLINES),
    _map("probability", "Probability", _SHARES),
    _map("another-rater", "Another rater", _SHARES),
    _map("true-outline", "True outline", _SHARES),
    _map("uncertainty", "Uncertainty"),
    _map("weights", "Raters' weights"),
    _map("tau", "Raters' tau"),
    _map("alternatives", "Alternatives", _OUTLINES),
    Export("annotators", _KINDS, "Annotators", ("csv",), _write_table, deidentifies=True),
    Export("agreement", _KINDS, "Agreement", ("csv",), _write_table, deidentifies=True),
    Export("disputes", _KINDS, "Disputed regions", ("csv",), _write_table, deidentifies=True),
)

MASKS = Kind(
    name="masks",
    title="Masks",
    item="case",
    by_question=False,
    file_kinds=("masks", "volume", "truth"),
    detail="region",
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
        "several raters' masks of an image or volume: a consensus and its uncertainty",
        "Fuses masks and writes consensus.nii.gz (the model's probability), consensus_mask.nii.gz,\n"
        "another_rater.nii.gz and true_outline.nii.gz (probabilities), uncertainty.nii.gz (half-width of\n"
        "the 95 % band of another rater's outline), weight_ANNOTATOR.nii.gz and tau_ANNOTATOR.nii.gz\n"
        "(local weight and scale) where the algorithm has them, annotators.csv, agreement.csv,\n"
        "disputes.csv and run.json; of several images, into a folder each.",
        (
            "fuse masks rater*.nii.gz -o results",
            "fuse masks rater*.nii.gz --image ct.nii.gz --truth true.nii.gz -o results",
            "fuse masks masks/ --naming {item}_{annotator} --algorithm staple -o results",
        ),
        _add_fuse_options,
        _fuse_files,
    ),
    trust=_trust,
    annotators_of=_annotators_of,
    compare_runs=_compare_runs,
    report=Report(_gather_report, _add_report_options, _read_report_options),
    exports=_EXPORTS,
    sample=Sample(_demonstrate, _about, "window-masks.png", 0.4),
)
