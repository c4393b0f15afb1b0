"""Options of the commands that read or change a study and of `pacs`; algorithms and settings as text."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path

from raterscope.algorithms.settings import Algorithm, Settings
from raterscope.app.command_line.arguments import (
    Commands,
    Parser,
    add_command,
    add_extent,
    add_items,
    add_jobs,
    add_mapping,
    add_masks,
    add_names,
    add_output,
    add_plan,
    add_run,
    add_study,
    add_truth_option,
    length,
    pair,
)
from raterscope.app.kinds.kind import Kind
from raterscope.app.kinds.registry import KINDS, exports

_WIDTH = 100


def algorithm_listing(kinds: Iterable[Kind]) -> Callable[[bool], str]:
    """Return a function that lists the algorithms of some kinds, with settings if its argument is true."""

    def listing(with_settings: bool) -> str:
        return _settings_in_words(kinds) if with_settings else _algorithms_in_words(kinds)

    return listing


def describe_study_commands(commands: Commands) -> None:
    """Add `import`, `run` and the other commands that change a study."""
    reading = add_command(
        commands,
        "import",
        "read images, volumes, clicks, masks, labels, pairs and truths into a study",
        "Reads files into a study, which is made if it does not exist; of a folder, the images, volumes, "
        "masks and annotations in it. It lists tables whose header leaves a doubt. Images named like tasks "
        "of labels or items of pairs become their pictures.",
    )
    add_study(reading)
    reading.add_argument("files", nargs="*", metavar="FILE",
                         help="a file, folder, OME-Zarr image or address such as https://host/mask.nii.gz; "
                              "files of addresses are kept beside the study")  # fmt: skip
    file_kinds = dict.fromkeys(name for kind in KINDS.values() for name in kind.file_kinds)
    reading.add_argument("--kind", choices=("image", *file_kinds),
                         help="content of the files, if it is ambiguous")  # fmt: skip
    reading.add_argument("--radius", type=length, metavar="PX",
                         help="set the study's matching radius: largest distance of a "
                              "detection from a true position")  # fmt: skip
    add_extent(reading, "width and height of images of unknown size, pixels")
    add_mapping(reading, "annotator, image, x, y (x_percent, y_percent), time, score; of labels annotator, "
                "task, label, time, truth, question, picture, content, tags (several of a vote), votes (a "
                "column per annotator); of pairs annotator, left, right, choice, time, question, "
                "left_picture, right_picture")  # fmt: skip
    add_masks(reading, "annotator of all masks, points or labels")
    reading.add_argument("--rename", nargs="+", action="extend", default=[], metavar="KIND:NAME=NEW",
                         help="other names for annotators, structures and classes, as in structure:gtv=GTV; "
                              "several names with one new name become one")  # fmt: skip
    reading.add_argument("--program", nargs="+", action="extend", default=[], dest="programs",
                         metavar="NAME",
                         help="annotators that are programs: a fusion calibrates them by the "
                              "annotations of the others; class probabilities without an annotator, and a "
                              "file imported alone, get the name")  # fmt: skip
    add_names(
        reading,
        "--grades",
        "1,2,...",
        "grades of labels, from the lowest to the highest, for the questions that have no other classes",
    )
    reading.add_argument("--groups", type=Path, metavar="TABLE",
                         help="groups of the images, by which the window filters its queue: a table with the "
                              "columns image and patient, slide or site, or the word folders")  # fmt: skip
    reading.add_argument("--join-spellings", action="store_true",
                         help="join the spellings of structures and classes that --preview lists: letter "
                              "case, synonyms, TG-263 names")  # fmt: skip
    reading.add_argument("--preview", action="store_true",
                         help="print how the files are read, and import nothing")  # fmt: skip
    reading.add_argument("--undo", action="store_true",
                         help="undo the last import, unless decisions or runs followed")  # fmt: skip

    running = add_command(
        commands,
        "run",
        "fuse a study's clicks, masks, labels or pairs",
        "Fuses a study's clicks, masks, labels or pairs, whichever the algorithm is for, and\n"
        "keeps the result in it. Decisions of the expert are held fixed. Excluded annotators do not count, "
        "and\ndown-weighted annotators count with their weights.",
        listing=algorithm_listing(KINDS.values()),
    )
    add_study(running)
    running.add_argument("algorithm", metavar="ALGORITHM",
                         help="how clicks are clustered, or masks, labels or pairs fused")  # fmt: skip
    running.add_argument("--kind", choices=tuple(KINDS),
                         help="kind to fuse, if the algorithm is for several")  # fmt: skip
    add_plan(running)
    add_truth_option(running, "hold ground truth fixed, to improve the other results")
    add_items(running)
    add_jobs(running)

    leaving = add_command(
        commands,
        "export",
        "write a study's results as tables, masks or maps",
        "Writes the results of a study: for each image or question the run that the window shows, "
        "or that of --run, with the expert's decisions applied. NAME.run.json beside it "
        "describes the run.",
    )
    add_study(leaving)
    names = tuple(dict.fromkeys(export.what for export in exports()))
    leaving.add_argument("--what", required=True, choices=names, metavar="WHAT",
                         help=f"one of {', '.join(names)}")  # fmt: skip
    leaving.add_argument("--kind", choices=(*KINDS, "all"),
                         help="kind of annotation, if several have this export; all: one row per "
                              "annotator of all kinds, with --what annotators")  # fmt: skip
    leaving.add_argument("--format", metavar="FORMAT",
                         help="csv for tables; geojson (QuPath), coco, cvat, napari or panoptes (Zooniverse) "
                              "for detections; nifti, seg.nrrd, dicom-seg, rtstruct or cvat for masks; csv, "
                              "label-studio, cvat, panoptes or crowd-kit for labels (default: by the name of "
                              "OUT, else dicom-seg for cases of DICOM series)")  # fmt: skip
    add_run(leaving)
    add_items(leaving)
    leaving.add_argument("--groups", type=Path, metavar="TABLE",
                         help="by groups of images, such as patients, slides or sites: a table with the "
                              "columns image and patient, or the word folders for the images' folders, or "
                              "study for the groups stored in the study; "
                              "counts get rows for each group, training sets keep groups together, "
                              "other exports write a file for each into the folder OUT")  # fmt: skip
    leaving.add_argument("--group-by", metavar="COLUMN", help="column of the groups in TABLE")
    leaving.add_argument("--deidentify", action="store_true",
                         help="remove what could identify the patient: names and dates in DICOM files, "
                              "names of images and raters in files and their names")  # fmt: skip
    leaving.add_argument("--with-images", action="store_true",
                         help="with --deidentify: write the images into the folder OUT too, so that "
                              "another program shows the masks on them")  # fmt: skip
    leaving.add_argument("--resample", action="store_true",
                         help="write uneven or tilted slices on a regular grid, in formats "
                              "that need one (nifti, seg.nrrd)")  # fmt: skip
    leaving.add_argument("--set", nargs="+", action="extend", default=[], type=pair, metavar="field=value",
                         dest="settings",
                         help="budget of assignments (default: as in the window); `raterscope fuse labels "
                              "--list-settings` lists the fields")  # fmt: skip
    leaving.add_argument("--costs", type=Path, metavar="CSV",
                         help="of assignments: a table with the columns annotator, cost (of a vote) and "
                              "most (maximum votes of the annotator)")  # fmt: skip
    add_output(leaving, "OUT", "a file; masks of several images, or tables of several questions, go into a "
               "folder of this name")  # fmt: skip


def describe_report(commands: Commands) -> None:
    """Add `report`."""
    report = add_command(
        commands,
        "report",
        "write a study's results as HTML or PDF",
        "Writes one file: the disputed slices or tasks, tables of annotators and of "
        "their agreement, the expert's decisions, the methods with every setting.",
    )
    add_study(report)
    report.add_argument("--item", metavar="ITEM", help="only this image or question (default: all)")
    report.add_argument("--annotator", metavar="NAME",
                        help="write the feedback page of this annotator instead: values with intervals, "
                             "strengths and clearest mistakes, without the names of others")  # fmt: skip
    add_run(report)
    for kind in KINDS.values():
        kind.add_report_options(report)
    report.add_argument("--variability", nargs="?", type=Path, const=Path(), metavar="PROTOCOL",
                        help="add inter- and intra-observer variability: differences, Bland-Altman and "
                             "forest plots, ICC or kappa, tests; with a protocol, a TOML file of limits, "
                             "also pass or fail")  # fmt: skip
    add_output(report, "REPORT", "a name that ends in .html or .pdf")


def describe_structures(commands: Commands) -> None:
    """Add `structures`."""
    command = add_command(
        commands,
        "structures",
        "show or set the coding of structures: codes, colours, roles",
        "Lists the structures of a study's masks and the code of each in DICOM SEG, RTSTRUCT and .seg.nrrd.\n"
        "Codes come from the imported files, from usual names (TG-263), or from this command, which "
        "overrides\nthe others and can be undone in the window.",
    )
    add_study(command)
    command.add_argument(
        "structure", nargs="?", metavar="STRUCTURE", help="only this structure; needed to set its coding"
    )
    command.add_argument("--type", metavar="CODE",
                         help="its code, as SCT:80891009, as words that name a code (Heart), or as "
                              "SCHEME:VALUE=MEANING for a code of another dictionary")  # fmt: skip
    command.add_argument("--category", metavar="CODE",
                         help="category of the code (default: the usual one)")  # fmt: skip
    command.add_argument("--side", choices=("left", "right", "both", "none"), help="side of the body")
    command.add_argument("--region", metavar="CODE", help="anatomical region")
    command.add_argument("--colour", metavar="#RRGGBB", help="colour in other programs")
    command.add_argument("--role", metavar="ROLE",
                         help="RT ROI interpreted type: GTV, CTV, PTV, ORGAN, AVOIDANCE, EXTERNAL ..., or "
                              "none")  # fmt: skip
    command.add_argument("--label", metavar="NAME", help="name in exports, as a TG-263 name")
    command.add_argument("--find", metavar="TEXT", help="list the codes whose meaning contains these words")


def describe_copy(commands: Commands) -> None:
    """Add `copy`."""
    parser = add_command(
        commands,
        "copy",
        "copy a study for a second reader, blind with --blind",
        "Writes a copy that another expert reviews, to be merged by `raterscope merge`. A blind copy does\n"
        "not contain the decisions so far, nor results that used them.",
    )
    add_study(parser)
    parser.add_argument("--blind", action="store_true", help="copy without the decisions so far")
    add_output(parser, "COPY", "the copy, a new file NAME.rscope")


def describe_merge(commands: Commands) -> None:
    """Add `merge`."""
    parser = add_command(
        commands,
        "merge",
        "merge the decisions of several experts, each on a copy of one study",
        "Writes a new study with the annotations and runs of the first one and the decisions of all. Where\n"
        "two experts decided differently, the subject is open again; voxels on which both agree stay\n"
        "settled. Prints the conflicts, and the agreement on what both decided.",
    )
    parser.add_argument("studies", type=Path, nargs="+", metavar="STUDY", help="two or more copies")
    parser.add_argument("--incomplete", action="store_true",
                        help="merge a blind second read before both experts decided on the same "
                             "subjects")  # fmt: skip
    parser.add_argument("--conflicts", type=Path, metavar="CSV", help="write the conflicts as a table")
    add_output(parser, "OUT", "the merged study, a new file NAME.rscope")


def describe_annotators(commands: Commands) -> None:
    """Add `annotators`."""
    parser = add_command(
        commands,
        "annotators",
        "one table of the annotators of a study or of several, of all kinds",
        "Writes one row per annotator and study: number of marks; of clicks sensitivity, precision, offset\n"
        "and scatter; of masks bias, Dice, HD95 and weight; of labels accuracy, agreement, gold tasks,\n"
        "worst class, drift, time per vote, community, copy group and change; of pairs bias and flag; with\n"
        "95 % intervals, the expert's verdicts, and exclusions. Names that were joined are one annotator. A\n"
        "study that cannot be read is named and skipped.",
    )
    parser.add_argument(
        "studies", type=Path, nargs="+", metavar="STUDY", help="studies, or folders of studies"
    )
    parser.add_argument("--where", metavar="RULE",
                        help="only annotators that a rule selects, as in 'accuracy < .6 and votes >= 50'; "
                             "the columns are those of the table")  # fmt: skip
    add_output(parser, "OUT", "a table, NAME.csv")


def describe_decide(commands: Commands) -> None:
    """Add `decide`."""
    parser = add_command(
        commands,
        "decide",
        "record decisions from a table, as `export --what decisions` writes it",
        "Reads a table with the columns verb, kind and item and those that the verb needs (x and y;\n"
        "structure, region and rater; task and label; annotators), and optionally who, at and reason.\n"
        "Decisions that the study already has are skipped. With a problem in any line, nothing is\n"
        "recorded, and every problem is listed.",
    )
    add_study(parser)
    parser.add_argument("decisions", type=Path, metavar="DECISIONS", help="a table, CSV or Parquet")


def describe_reader_study(commands: Commands) -> None:
    """Add `reader-study`."""
    study = add_command(
        commands,
        "reader-study",
        "set up a reader study, and collect the readers' annotations",
        "Several readers mark the same cases, blinded, once or repeatedly.",
    )
    parsers = study.add_subparsers(dest="step", required=True, metavar="STEP", parser_class=Parser)
    new = add_command(
        parsers,
        "new",
        "make one file for each reader, from a protocol",
        "Reads a protocol in TOML (readers, cases, structures or questions, reads, washout_days, seed) and\n"
        "writes readers/NAME.rsread for each reader, to be opened in the window, and coordinator.json with\n"
        "the key of the pseudonyms and the expected reads: do not send it to readers. With a problem in any\n"
        "field, nothing is written, and every problem is listed.",
    )
    new.add_argument("protocol", type=Path, metavar="PROTOCOL", help="the protocol, a TOML file")
    add_output(new, "FOLDER", "a new or empty folder")
    collect = add_command(
        parsers,
        "collect",
        "merge the readers' files into one study",
        "Adds every finished session to the study, with each read as an annotator of its own: R01,\n"
        "R01 (read 2). Names what does not fit: a file of another study, a second read, a missing case, a\n"
        "changed image. Collected again, it adds what is new. The study cannot be opened until every reader\n"
        "has finished.",
    )
    collect.add_argument(
        "files", type=Path, nargs="+", metavar="FILE",
        help="the folder of `reader-study new`, or reading files and coordinator.json",
    )  # fmt: skip
    add_output(collect, "STUDY", "a study, NAME.rscope; a collected study takes new reads")
    collect.add_argument(
        "--unblind", metavar="REASON", help="let the study be opened now; the reason is stored"
    )


def describe_pacs(parser: Parser) -> None:
    """Add the options of `pacs`: find, get and store."""
    acts = parser.add_subparsers(dest="act", required=True, metavar="ACT")
    for name, text in (
        ("find", "list series"),
        ("get", "fetch series into a folder"),
        ("store", "store files"),
    ):
        act = acts.add_parser(name, help=text, description=text.capitalize() + ".")
        act.add_argument(
            "address",
            metavar="ADDRESS",
            help="of the PACS: https://host/dicom-web (DICOMweb) or dicom://AET@host:port (DIMSE)",
        )
        if name == "store":
            act.add_argument(
                "files", nargs="+", type=Path, metavar="FILE", help="DICOM files, and folders of them"
            )
        else:
            act.add_argument("--patient", metavar="ID", help="patient's ID; * matches anything")
            act.add_argument("--modality", help="CT, MR, SEG, RTSTRUCT ...")
            act.add_argument(
                "--date", metavar="YYYYMMDD", help="day of the study, or a range: 20260101-20260131"
            )
            act.add_argument("--study", metavar="UID", help="one study")
            act.add_argument("--series", metavar="UID", help="one series")
        if name == "get":
            act.add_argument(
                "-o", "--output", required=True, type=Path, metavar="FOLDER", help="for the files"
            )
        act.add_argument("--certificates", type=Path, metavar="FILE", help="authorities to trust, as PEM")


def watch_settings_in_words() -> str:
    """List the settings that only `watch` has; it takes those of oem and dem too."""
    from raterscope.algorithms.clicks.stopping import StoppingSettings
    from raterscope.algorithms.clicks.stream import StreamSettings
    from raterscope.app.kinds.clicks.live_watching import StepSettings

    lines = ["how clicks are watched (the settings of oem and dem are accepted too):", ""]
    for settings in (StreamSettings, StoppingSettings, StepSettings):
        lines += _settings(settings)
    return "\n".join(lines) + "\n"


def _lines_of_kind(kind: Kind) -> list[str]:
    lines: list[str] = []
    for heading, algorithms, _ in kind.catalogues:
        lines += [f"{heading}:", ""]
        for algorithm in algorithms.values():
            lines += [*_head(algorithm), *_settings(algorithm.settings), ""]
    for use, settings in kind.load_further_settings().items():
        lines += [f"{use}:", "", *_settings(settings), ""]
    return lines[:-1]


def _head(algorithm: Algorithm) -> list[str]:
    return [f"  {algorithm.name}: {algorithm.title}", *_wrapped(algorithm.summary, 6)]


def _settings(settings: type[Settings]) -> list[str]:
    lines = []
    for spec in settings.specs():
        lines.append(f"      {spec.name}={spec.as_text(spec.default)}")
        lines += _wrapped(f"{spec.label}; {spec.values_in_words()}. {spec.help}", 10)
    return lines


def _wrapped(text: str, indent: int) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=" " * indent, subsequent_indent=" " * indent)


def _algorithms_in_words(kinds: Iterable[Kind]) -> str:
    """List the algorithms of some kinds."""
    lines: list[str] = []
    for catalogue in (algorithm for kind in kinds for algorithm in kind.catalogues):
        lines += [f"{catalogue.heading}:", ""]
        for algorithm in catalogue.algorithms.values():
            lines += _head(algorithm)
        lines.append("")
    return "".join(f"{line}\n" for line in lines)


def _settings_in_words(kinds: Iterable[Kind]) -> str:
    """List the algorithms of some kinds with their settings, as --set takes them."""
    return "\n".join("\n".join(_lines_of_kind(kind)) + "\n" for kind in kinds)
