"""What `raterscope fuse` takes: its kinds, their options, and the help that they have."""

from __future__ import annotations

from pathlib import Path

from raterscope.app.cli.arguments import (
    Commands,
    Parser,
    add_algorithm,
    add_by_crowd_size,
    add_command,
    add_extent,
    add_hold,
    add_jobs,
    add_mapping,
    add_masks,
    add_names,
    add_plan,
    add_question,
    add_rates_over_time,
    add_results,
    add_roc_curves,
    add_settings,
    count,
    length,
    pair,
    steps,
    weight,
)

__all__ = ["describe_fuse"]


def describe_fuse(commands: Commands) -> None:
    """Add the command, with a command of its own for each kind."""
    fuse = add_command(commands, "fuse", "fuse annotations without a study", "Fuses files of annotations.")
    kinds = fuse.add_subparsers(dest="kind", required=True, metavar="KIND", parser_class=Parser)
    clicks = add_command(
        kinds,
        "clicks",
        "clicks on images: cluster them, then separate structures from artefacts",
        "Fuses clicks and writes detections.csv, annotators.csv, clicks.csv and run.json.",
        lists=True,
        kind="clicks",
    )
    clicks.add_argument("clicks", nargs="+", type=Path, metavar="CLICKS",
                        help="tables with the columns annotator, image, x, y and perhaps time, Zooniverse "
                             "exports, or points of QuPath, COCO, CVAT, Label Studio, labelme or "
                             "napari")  # fmt: skip
    add_extent(clicks, "width and height of every image, pixels")
    clicks.add_argument("--images", nargs="+", type=Path, default=[], metavar="PATH",
                        help="sizes of the images: a table with the columns image, width, height, "
                             "or image files, or folders of them")  # fmt: skip
    clicks.add_argument("--truth", type=Path, metavar="TRUTH",
                        help="true places (image, x, y) to compare with; writes evaluation.csv")  # fmt: skip
    clicks.add_argument("--scores", type=Path, metavar="SCORES",
                        help="detections of a program on the same images: a table with the columns image, x, "
                             "y and score, or COCO with scores; higher means more probably a structure, and "
                             "only the order counts")  # fmt: skip
    clicks.add_argument("--radius", type=length, metavar="PX",
                        help="matching radius: how far from the truth a detection may lie; by default "
                             "that of a new study")  # fmt: skip
    clicks.add_argument("--weight", nargs="+", action="extend", default=[], type=weight,
                        metavar="NAME=WEIGHT", dest="weights",
                        help="weights below 1 for annotators, as in kim=0.5")  # fmt: skip
    for control, held in (("positive", "some structure"), ("negative", "no structure")):
        clicks.add_argument(f"--{control}", nargs="+", action="extend", default=[], metavar="IMAGE",
                            help=f"control images: known to hold {held}; they separate artefacts from "
                                 "structures on the others")  # fmt: skip
    add_by_crowd_size(clicks, "needs --truth, writes crowd_size.csv")
    add_hold(clicks, "hold the ground truth fixed, so that it improves the rest")
    add_algorithm(clicks, "--algorithm", "oem", "how clicks are clustered")
    add_plan(clicks)
    add_mapping(clicks)
    add_jobs(clicks)
    add_results(clicks)
    _describe_masks(kinds)
    _describe_labels(kinds)
    _describe_pairs(kinds)


def _describe_masks(kinds: Commands) -> None:
    masks = add_command(
        kinds,
        "masks",
        "several raters' masks of an image or volume: a consensus and its uncertainty",
        "Fuses masks and writes consensus.nii.gz (the model's probability), consensus_mask.nii.gz,\n"
        "another_rater.nii.gz and true_outline.nii.gz (probabilities), uncertainty.nii.gz (half-width of\n"
        "the 95 % band of another rater's outline), weight_ANNOTATOR.nii.gz and tau_ANNOTATOR.nii.gz\n"
        "(local weight and scale) where the algorithm has them, annotators.csv, agreement.csv,\n"
        "disputes.csv and run.json; of several images, into a folder each.",
        lists=True,
        kind="masks",
    )
    masks.add_argument("masks", nargs="+", type=Path, metavar="MASK",
                       help="masks, label maps or probabilities: NIfTI, NRRD, MetaImage, DICOM SEG, "
                            "RTSTRUCT, PNG, TIFF, LIDC or CVAT XML, COCO, Label Studio or labelme JSON, or "
                            "folders of them")  # fmt: skip
    masks.add_argument("--image", nargs="+", type=Path, default=[], metavar="VOLUME",
                       help="what the masks were drawn on; contours need it")  # fmt: skip
    masks.add_argument("--truth", nargs="+", type=Path, metavar="TRUTH",
                       help="true masks to compare with; writes evaluation.csv")  # fmt: skip
    add_masks(masks)
    masks.add_argument("--cluster-raters", action="store_true",
                       help="cluster raters over the images by overlap and by shared consensus, for which "
                            "the mixture of consensuses is fitted to each image; writes rater_distances.csv "
                            "and rater_tree.csv (always done with --algorithm mixture and several "
                            "images)")  # fmt: skip
    masks.add_argument("--together", action="store_true",
                       help="fuse several structures as classes of one model, not one by one")  # fmt: skip
    masks.add_argument("--compare", nargs="*", metavar="METHOD",
                       help="run several algorithms (by default all) on the same masks too and compare their "
                            "consensuses with the truth and with the raters, their lower bounds and times; "
                            "writes methods.csv and methods.svg")  # fmt: skip
    add_algorithm(masks, "--algorithm", "laplace", "how masks are fused")
    add_settings(masks)
    add_results(masks)


def _describe_labels(kinds: Commands) -> None:
    labels = add_command(
        kinds,
        "labels",
        "a crowd's labels: true classes, and each annotator's confusion matrix",
        "Fuses labels and writes labels.csv, annotators.csv, confusion.csv, next_votes.csv and\n"
        "run.json, communities.csv where they are found, evaluation.csv where truths are known; of several\n"
        "questions, into a folder each.",
        lists=True,
        kind="labels",
    )
    labels.add_argument("labels", nargs="+", type=Path, metavar="LABELS",
                        help="tables with the columns annotator, task, label and perhaps time; Zooniverse "
                             "exports; Label Studio, CVAT or COCO files; or a study with its decisions and "
                             "exclusions")  # fmt: skip
    labels.add_argument("--run", type=count, metavar="N",
                        help="of a study: write the results of run N, without fusing again")  # fmt: skip
    labels.add_argument("--truth", type=Path, metavar="TRUTH",
                        help="true classes (task, label) to compare with; writes evaluation.csv")  # fmt: skip
    add_hold(labels, "hold the truths fixed, so that they sharpen the rest")
    labels.add_argument("--folds", action="store_true",
                        help="hold the truths fixed but for a fifth that is measured, by turns")  # fmt: skip
    labels.add_argument("--compare", action="store_true",
                        help="measure all algorithms against the truths, in evaluation.csv")  # fmt: skip
    labels.add_argument("--charts", action="store_true",
                        help="draw communities in triangles as communities.svg, and where they can be "
                             "followed over time communities_over_time and participation as .csv and .svg; "
                             "with dynibcc traces.csv and traces.svg too (dynamic combination paper, Figs. "
                             "4, 7, 8, 10 to 13)")  # fmt: skip
    add_roc_curves(labels, "needs --truth; writes roc_areas.csv, roc_curves.csv and roc_curves.svg")
    add_rates_over_time(labels, "writes rates_over_time.csv, decisions_over_time.csv and rates_over_time.svg")
    labels.add_argument("--subsample", nargs=2, type=count, metavar=("VOTES", "ANNOTATORS"),
                        help="fuse only the tasks with votes of at least ANNOTATORS annotators who have "
                             "VOTES votes on tasks of each true class (dynamic combination paper, section "
                             "4: 50 10); needs --truth")  # fmt: skip
    add_algorithm(labels, "--algorithm", "pooled", "how labels are fused")
    add_settings(labels)
    add_names(labels, "--outputs", "A,B,...", "what annotators may say, in order (default: what they did)")
    add_names(
        labels, "--classes", "X,Y,...", "what may be true, in order (default: the outputs, or as TRUTH)"
    )
    labels.add_argument("--stands", nargs="+", action="extend", default=[], type=pair,
                        metavar="output=class",
                        help="the class that an output stands for; nothing after = for none")  # fmt: skip
    labels.add_argument("--prior", metavar="PRIOR",
                        help="pseudo-counts of everybody's confusion matrix, a row a class, as in "
                             "'2 1; 1 2', or a CSV file of them")  # fmt: skip
    labels.add_argument("--steps", type=steps, default=1, metavar="STEPS",
                        help="how many of an annotator's matrices over time to write: last, all, or a "
                             "number (default: last)")  # fmt: skip
    add_question(labels)
    labels.add_argument("--annotator", metavar="NAME",
                        help="who gave the labels of a file that does not say so")  # fmt: skip
    add_mapping(labels, "annotator, task, label, time, truth, question, picture")
    add_results(labels)


def _describe_pairs(kinds: Commands) -> None:
    pairs = add_command(
        kinds,
        "pairs",
        "a crowd's comparisons of pairs: annotators biased to a side, and the ranking without bias",
        "Finds annotators who are biased to a side at a controlled rate of false discoveries,\n"
        "and ranks the items without their biases. Writes annotators.csv, ranking.csv, path.csv and\n"
        "run.json; of several questions, into a folder each.",
        lists=True,
        kind="pairs",
    )
    pairs.add_argument("pairs", nargs="+", type=Path, metavar="PAIRS",
                       help="tables with the columns annotator, left, right, choice and perhaps time; a "
                            "choice is left, right, tie, an item, or a number above 0 for left")  # fmt: skip
    add_algorithm(pairs, "--path", "iss", "along which the biased are found")
    pairs.add_argument("--fdr", metavar="RATE",
                       help="share of the flagged that may be flagged wrongly, as --set rate=RATE "
                            "(default: 0.1)")  # fmt: skip
    add_settings(pairs)
    add_question(pairs)
    pairs.add_argument("--exclude", nargs="+", action="extend", default=[], metavar="NAME",
                       help="annotators to leave out")  # fmt: skip
    pairs.add_argument("--truth", type=Path, metavar="RANKING",
                       help="a ground-truth ranking to compare with: a table with the columns item, rank and "
                            "perhaps group, the best item with the lowest rank")  # fmt: skip
    add_mapping(pairs, "annotator, left, right, choice, time, question, left_picture, right_picture")
    add_results(pairs)
