"""The record of masks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from raterscope.app.command_line.arguments import (
    Parser,
    add_algorithm,
    add_masks,
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
    parser.add_argument("masks", nargs="+", type=Path, metavar="MASK",
                       help="masks, label maps or probabilities: NIfTI, NRRD, MetaImage, DICOM SEG, "
                            "RTSTRUCT, PNG, TIFF, LIDC or CVAT XML, COCO, Label Studio or labelme JSON, or "
                            "folders of them")  # fmt: skip
    parser.add_argument("--image", nargs="+", type=Path, default=[], metavar="VOLUME",
                       help="the image that the masks were drawn on; contours need it")  # fmt: skip
    parser.add_argument("--truth", nargs="+", type=Path, metavar="TRUTH",
                       help="true masks to compare with; writes evaluation.csv")  # fmt: skip
    add_masks(parser)
    parser.add_argument("--program", nargs="+", action="extend", default=[], dest="programs",
                       metavar="NAME",
                       help="raters that are programs: the others are fused alone, and their consensus is "
                            "combined with the programs as far as these predict the others or the "
                            "truth")  # fmt: skip
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
    add_weights(parser)
    add_results(parser)


def _add_report_options(parser: Parser) -> None:
    parser.add_argument("--compare-methods", nargs="*", metavar="METHOD",
                        help="run several algorithms for masks (by default all) on the same cases and "
                             "compare their consensuses, lower bounds and times; takes minutes. Without it "
                             "the report shows the last comparison that was made in the window")  # fmt: skip


def _catalogues() -> Sequence[Catalogue]:
    from raterscope.algorithms.masks.catalogue import FUSERS

    return (Catalogue("algorithms for masks (--algorithm, with run: ALGORITHM)", FUSERS),)


def _functions() -> Functions:
    from raterscope.algorithms.masks.fusion import MaskPlan
    from raterscope.app.kinds.masks.command import fuse_masks, summarise
    from raterscope.app.kinds.masks.evaluation import compare_runs, trust_in_masks, undecided_regions
    from raterscope.app.kinds.masks.exports import export_maps, export_table, export_variability
    from raterscope.app.kinds.masks.runs import fuse_inputs, gather, keep
    from raterscope.app.kinds.masks.training import export_training
    from raterscope.app.study.masks import mask_entries

    return Functions(
        make_plan=MaskPlan.make,
        read_plan=MaskPlan.from_dict,
        gather=lambda items, study, _plan, _hold_truth, watch: gather(items, study, watch),
        fuse=lambda inputs, plan, _jobs, watch: fuse_inputs(inputs, plan, watch),
        keep=keep,
        summarise=summarise,
        fuse_files=fuse_masks,
        annotators_of=lambda study, item, run: {mask.annotator for mask in mask_entries(study, item, run)},
        compare_runs=compare_runs,
        trust=trust_in_masks,
        undecided=undecided_regions,
        writers={
            **{export.what: export_maps if export.by_case else export_table for export in _EXPORTS},
            "training": export_training,
            "variability": export_variability,
        },
    )


def _annotators() -> AnnotatorFunctions:
    from raterscope.app.kinds.masks.annotators import ANNOTATORS

    return ANNOTATORS


def _report() -> Report:
    from raterscope.app.kinds.masks.report.sections import REPORT

    return REPORT


def _sample() -> Sample:
    from raterscope.app.kinds.masks.sample import SAMPLE

    return SAMPLE


_SHARES = ("nifti", "dicom-seg")
_OUTLINES = ("nifti", "seg.nrrd", "dicom-seg", "rtstruct")


def _map(name: str, title: str, formats: tuple[str, ...] = ("nifti",)) -> Export:
    return Export(name, title, formats, by_case=True, deidentifies=True)


_EXPORTS = (
    _map("consensus", "Consensus", (*_OUTLINES, "dicom-sr", "cvat")),
    _map("probability", "Probability", _SHARES),
    _map("another-rater", "Another rater", _SHARES),
    _map("true-outline", "True outline", _SHARES),
    _map("uncertainty", "Uncertainty"),
    _map("weights", "Raters' weights"),
    _map("tau", "Raters' tau"),
    _map("alternatives", "Alternatives", _OUTLINES),
    Export("annotators", "Annotators", ("csv",), deidentifies=True),
    Export("agreement", "Agreement", ("csv",), deidentifies=True),
    Export("disputes", "Disputed regions", ("csv",), deidentifies=True),
    Export("training", "Training set", ("nnunet",), deidentifies=True, grouped=True),
    Export("variability", "Observer variability", ("csv",), deidentifies=True, of_run=False),
)

MASKS: Kind = Kind(
    name="masks",
    title="Masks",
    nouns=NOUNS["masks"],
    file_kinds=("masks", "volume", "truth"),
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
            "fuse masks masks/ --program unet -o results",
        ),
        _add_fuse_options,
    ),
    load_catalogues=_catalogues,
    load_functions=_functions,
    load_report=_report,
    load_annotators=_annotators,
    exports=_EXPORTS,
    load_sample=_sample,
    add_report_options=_add_report_options,
)
