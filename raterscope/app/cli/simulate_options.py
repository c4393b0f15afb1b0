"""Options of `raterscope simulate`: a command for each set-up, with an option for each of its parameters."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from raterscope.algorithms.settings import SettingsError, Spec
from raterscope.app.command_line.arguments import Commands, Parser, add_command, add_output
from raterscope.app.simulation.setups import SETUPS

__all__ = ["describe_simulate"]


def describe_simulate(commands: Commands) -> None:
    """Add the command, with a command of its own for each set-up."""
    simulate = add_command(
        commands,
        "simulate",
        "draw the papers' set-ups, with the truth beside the data",
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
        add_output(parser, "DIR", "a new or empty folder; nothing is overwritten")


def _value(spec: Spec) -> Callable[[str], Any]:
    def value(text: str) -> Any:
        try:
            return spec.check(spec.parse(text))
        except SettingsError as error:
            raise argparse.ArgumentTypeError(str(error).rstrip(".")) from error

    return value


def _help(spec: Spec) -> str:
    """Give the sentence of help, with the default as it is typed; argparse formats with %."""
    given = "" if spec.default is None else f" (default: {spec.default})"
    unit = f" In {spec.unit}." if spec.unit else ""
    return f"{spec.label}. {spec.help}{unit}{given}".replace("%", "%%")
