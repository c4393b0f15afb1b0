"""Options of the command line that several commands share, and parsers of their values."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, TypeVar

from raterscope.algorithms.settings import Settings, SettingsError, Spec

SettingsT = TypeVar("SettingsT", bound=Settings)


class UsageError(Exception):
    """A command line that cannot be understood."""


class Parser(argparse.ArgumentParser):
    """Argument parser with one-line errors and lazily listed algorithms."""

    listing: Callable[[bool], str] | None = None
    """Returns the algorithms as text, with their settings if the argument is true."""
    examples: Sequence[str] = ()
    """Arguments after `raterscope`, one example per line."""

    def error(self, message: str) -> NoReturn:
        """Report what is wrong, and how to get help."""
        raise UsageError(f"{message}; see {self.prog} --help.")

    def format_help(self) -> str:
        """Return the help, with examples and the algorithms at its end."""
        text = super().format_help()
        if self.examples:
            text += f"\nexamples:\n{''.join(f'  raterscope {example}{chr(10)}' for example in self.examples)}"
        if self.listing is not None:
            text += f"\n{self.listing(False)}`{self.prog} --list-settings` lists the settings.\n"
        return text


class _ListSettings(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        if isinstance(parser, Parser) and parser.listing is not None:
            sys.stdout.write(parser.listing(True))
        parser.exit()


Commands: TypeAlias = "argparse._SubParsersAction[Parser]"


def add_command(
    commands: Commands,
    name: str,
    text: str,
    description: str,
    *,
    listing: Callable[[bool], str] | None = None,
    examples: Sequence[str] = (),
) -> Parser:
    """Add a command, which may list algorithms and their settings; see `Parser`.

    A description with ends of lines keeps them.
    """
    raw = listing is not None or "\n" in description
    parser = commands.add_parser(
        name,
        help=text,
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter if raw else argparse.HelpFormatter,
    )
    parser.listing, parser.examples = listing, examples
    if listing is not None:
        parser.add_argument("--list-settings", action=_ListSettings, nargs=0,
                            help="list the algorithms and their settings, and end")  # fmt: skip
    return parser


def add_study(parser: Parser) -> None:
    """Add the study that a command works on."""
    parser.add_argument("study", type=Path, metavar="STUDY", help="the study, a file NAME.rscope")


def add_run(parser: Parser) -> None:
    """Add the run whose results are written."""
    parser.add_argument("--run", type=count, metavar="N",
                        help="number of the run, whose images or questions are written (default: the run "
                             "that the window shows, else the latest of each)")  # fmt: skip


def add_items(parser: Parser) -> None:
    """Add the images or questions that a command is limited to."""
    parser.add_argument("--item", action="append", default=[], metavar="ITEM",
                        help="only this image or question; may be repeated")  # fmt: skip


def add_question(parser: Parser) -> None:
    """Add the question to fuse."""
    parser.add_argument("--question", metavar="NAME", help="only this question")


def add_output(parser: Parser, metavar: str, text: str, *, required: bool = True) -> None:
    """Add the output path."""
    parser.add_argument("-o", "--output", required=required, type=Path, metavar=metavar, help=text)


def add_results(parser: Parser) -> None:
    """Add the folder of results."""
    add_output(parser, "DIR", "folder for the results")


def add_algorithm(parser: Parser, option: str, default: str, text: str, *, dest: str | None = None) -> None:
    """Add the choice of an algorithm by its name; `dest`: attribute of the parsed options."""
    parser.add_argument(
        option, default=default, metavar="NAME", dest=dest, help=f"{text} (default: %(default)s)"
    )


def add_names(parser: Parser, option: str, metavar: str, text: str) -> None:
    """Add comma-separated names."""
    parser.add_argument(option, type=names, default=[], metavar=metavar, help=text)


def add_truth_option(parser: Parser, text: str) -> None:
    """Add whether ground truth is held fixed."""
    parser.add_argument("--hold-truth", action="store_true", help=text)


def add_weights(parser: Parser) -> None:
    """Add the weights of annotators."""
    parser.add_argument("--weight", nargs="+", action="extend", default=[], type=weight,
                        metavar="NAME=WEIGHT", dest="weights",
                        help="weights below 1 for annotators, as in kim=0.5")  # fmt: skip


def add_plan(parser: Parser) -> None:
    """Add the detector that follows the clustering of clicks, and the settings."""
    add_algorithm(parser, "--detector", "dem", "how structures are separated from artefacts")
    add_settings(parser)


def add_settings(parser: Parser) -> None:
    """Add the settings of any algorithm."""
    parser.add_argument("--set", nargs="+", action="extend", default=[], type=pair, metavar="field=value",
                        dest="settings", help="settings, see --list-settings")  # fmt: skip


def add_fields(parser: Parser, settings: type[Settings], omitted: Sequence[str] = ()) -> None:
    """Add an option for each setting; options that are not given are missing in the parsed ones."""
    for spec in settings.specs():
        names = dict.fromkeys((f"--{spec.name.replace('_', '-')}", f"--{spec.name}"))
        if spec.name in omitted:
            continue
        if spec.kind == "switch":
            parser.add_argument(*names, action="store_true", default=argparse.SUPPRESS, help=_help(spec))
        else:
            metavar = "N" if spec.kind == "integer" else spec.kind.upper()
            parser.add_argument(
                *names, type=_value(spec), default=argparse.SUPPRESS, metavar=metavar, help=_help(spec)
            )


def entered(options: argparse.Namespace, settings: type[SettingsT]) -> SettingsT:
    """Return the settings of the options of `add_fields`; others keep their defaults."""
    return settings(**{name: vars(options)[name] for name in settings.names() if name in options})


def _value(spec: Spec) -> Callable[[str], Any]:
    def value(text: str) -> Any:
        try:
            return spec.check(spec.parse(text))
        except SettingsError as error:
            problem = error.problem.removeprefix("is ").rstrip(".")
            raise argparse.ArgumentTypeError(problem) from error

    return value


def _help(spec: Spec) -> str:
    """Return the help of a setting with its default, escaped for argparse, which formats with %."""
    default = f"(default: {spec.as_text(spec.default)})"
    return f"{spec.label}; {spec.values_in_words()}. {spec.help} {default}".replace("%", "%%")


def add_extent(parser: Parser, text: str) -> None:
    """Add the size of images."""
    parser.add_argument("--extent", nargs=2, type=length, metavar=("W", "H"), help=text)


def add_mapping(parser: Parser, fields: str = "annotator, image, x, y, time") -> None:
    """Add the meaning of unknown columns."""
    parser.add_argument("--map", nargs="+", action="extend", default=[], type=pair, metavar="column=field",
                        dest="mapping", help="meaning of the columns of a table with an unknown header:"
                        f" {fields}")  # fmt: skip


def add_masks(parser: Parser, help_text: str = "rater of all masks") -> None:
    """Add the options for files of masks: rater, naming, structure."""
    parser.add_argument("--annotator", metavar="NAME", help=help_text)
    parser.add_argument("--naming", metavar="PATTERN",
                        help="what the files' names contain, as in {item}_{annotator}_{structure} or "
                             "{annotator}/{item}")  # fmt: skip
    parser.add_argument("--structure", metavar="NAME", help="structure of the masks, if no file names it")
    parser.add_argument("--resample", action="store_true",
                        help="resample masks drawn on another grid to their image's; fuse: write "
                             "uneven or tilted slices on a regular grid")  # fmt: skip


def add_by_crowd_size(parser: Parser, note: str) -> None:
    """Add the comparison of methods by number of annotators; `note` ends the help."""
    parser.add_argument("--by-crowd-size", nargs="*", type=pair, metavar="FIELD=VALUE",
                        help="also measure sensitivity and precision of clicks against the number of "
                             "annotators, drawn at random, for the chosen method and those of the OEM-DEM "
                             f"paper, after clustering and after detection; {note}. `raterscope fuse clicks "
                             "--list-settings` lists the fields")  # fmt: skip


def add_roc_curves(parser: Parser, note: str) -> None:
    """Add the comparison of methods by cross-validated ROC curves; `note` ends the help."""
    parser.add_argument("--roc-curves", nargs="*", type=pair, metavar="FIELD=VALUE",
                        help="ROC curves of all methods for labels by five-fold cross-validation: each fold "
                             "is predicted by a run with the truths of the others (dynamic "
                             f"combination paper, Fig. 2); {note}. `raterscope fuse labels "
                             "--list-settings` lists the fields")  # fmt: skip


def add_rates_over_time(parser: Parser, note: str) -> None:
    """Add the rates of annotators over time; `note` ends the help."""
    parser.add_argument("--rates-over-time", nargs="?", const="", metavar="CLASS",
                        help="sensitivity and specificity of the annotators over time, with labels as "
                             "decisions on CLASS (default: the last class), by recursive EM, incremental "
                             "Newton, batch EM and MAP (thesis, chapters 3 and 5); "
                             f"{note}")  # fmt: skip


def add_jobs(parser: Parser) -> None:
    """Add the number of processes."""
    parser.add_argument("--jobs", type=count, metavar="N",
                        help="number of processes for large inputs")  # fmt: skip


def pair(text: str) -> tuple[str, str]:
    """Split a name and a value."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is no pair like name=value")
    return name.strip(), value.strip()


def weight(text: str) -> tuple[str, float]:
    """Split an annotator's name and weight."""
    name, _, value = text.rpartition("=")
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if not name.strip() or not 0 < number <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no weight like NAME=0.5, above 0 and at most 1")
    return name.strip(), number


def names(text: str) -> list[str]:
    """Split names at commas; a name with a comma is in double quotes."""
    names = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    if not all(names) or not names:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of names with commas between them")
    return names


def steps(text: str) -> int | None:
    """Parse a number of steps; None for all."""
    if text in ("all", "last"):
        return None if text == "all" else 1
    try:
        return count(text)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither last, nor all, nor a number") from None


def length(text: str) -> float:
    """Parse a length in pixels."""
    return _positive(text, "length above 0 in pixels")


def seconds(text: str) -> float:
    """Parse a time in seconds."""
    return _positive(text, "time above 0 in seconds")


def _positive(text: str, noun: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no {noun}")
    return value


def count(text: str) -> int:
    """Parse a whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least 1")
    return int(text)
