"""The command line: `raterscope` opens the window, `raterscope COMMAND` does one thing and ends.

Exit status 0, or 1 with one line on stderr that says what was wrong and where; 130 when interrupted. The
heavy libraries are imported by the commands that need them, so that help comes at once.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from raterscope.app.cli.options import options_of
from raterscope.app.command_line.arguments import Misused
from raterscope.app.kinds.registry import KINDS

__all__ = ["main"]

INTERRUPTED = 130


def _demo(options: argparse.Namespace) -> int:
    from raterscope.app.cli.demo import demo

    return demo(options)


def _import(options: argparse.Namespace) -> int:
    from raterscope.app.cli.study import import_files

    return import_files(options)


def _run(options: argparse.Namespace) -> int:
    from raterscope.app.cli.run import run

    return run(options)


def _export(options: argparse.Namespace) -> int:
    from raterscope.app.cli.study import export

    return export(options)


def _report(options: argparse.Namespace) -> int:
    from raterscope.app.cli.report import report

    return report(options)


def _structures(options: argparse.Namespace) -> int:
    from raterscope.app.cli.structures import structures

    return structures(options)


def _references(options: argparse.Namespace) -> int:
    from raterscope.app.cli.references import references

    return references(options)


def _watch(options: argparse.Namespace) -> int:
    from raterscope.app.cli.watch import watch

    return watch(options)


def _simulate(options: argparse.Namespace) -> int:
    from raterscope.app.cli.simulate import simulate_files

    return simulate_files(options)


def _papers(options: argparse.Namespace) -> int:
    from raterscope.app.cli.papers import papers

    return papers(options)


def _fuse(options: argparse.Namespace) -> int:
    return KINDS[options.kind].fuse_command.fuse_files(options)


COMMANDS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "demo": _demo,
    "import": _import,
    "run": _run,
    "export": _export,
    "report": _report,
    "structures": _structures,
    "references": _references,
    "watch": _watch,
    "simulate": _simulate,
    "papers": _papers,
    "fuse": _fuse,
}
"""What carries out each command; its module is imported when it is called."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program.

    Parameters
    ----------
    argv : sequence of str, optional
        What stands after the program's name; by default what it was started with.

    Returns
    -------
    int
        The exit status.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal that lacks a letter is no reason to fail
        sys.stdout.reconfigure(errors="replace")
    try:
        try:
            status = _act(arguments)
        except SystemExit as stop:  # argparse ends so after help and version
            status = int(stop.code or 0)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read our output has had enough
        _silence(sys.stdout)
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as problem:
        if os.environ.get("RATERSCOPE_DEBUG"):
            raise
        print(f"raterscope: {_sentence(problem)}", file=sys.stderr)
        return 1
    return status


def _act(arguments: list[str]) -> int:
    from raterscope.app.compiled import choose_folder
    from raterscope.app.workers import THREADS

    # Before numpy is loaded. The arrays are small, and threads would only wait for each other.
    for name in THREADS:
        os.environ.setdefault(name, "1")
    choose_folder()
    if not arguments or (arguments[0] not in COMMANDS and not arguments[0].startswith("-")):
        return _window(arguments)
    options = options_of(arguments)
    return COMMANDS[options.command](options)


def _window(names: list[str]) -> int:
    """Open the window with files; it needs a display and Qt's libraries."""
    from raterscope.app.command_line.output import has_display
    from raterscope.app.errors import InputError

    paths = [Path(name) for name in names]
    for path in paths:
        if not path.exists():
            what = "there is no such file"
            if len(path.parts) == 1:
                what += ", nor is it a command"
            raise InputError(what, file=path)
    on_screen = os.environ.get("QT_QPA_PLATFORM", "") in ("", "xcb", "wayland")
    if on_screen and not has_display():
        raise InputError(
            "there is no display to open the window on; `raterscope --help` lists what works without one"
        )
    try:
        from raterscope.app.window.starting import main as open_window
    except ImportError as error:  # a machine without Qt, or without the libraries that Qt needs
        raise InputError(f"the window's libraries cannot be loaded: {error}") from error
    return open_window(paths)


def _sentence(problem: Exception) -> str:
    """Say in one line what was wrong; strangers' text shall not steer the terminal."""
    from raterscope.algorithms.errors import RefusedError
    from raterscope.app.command_line.output import one_line
    from raterscope.app.errors import InputError

    if isinstance(problem, (InputError, RefusedError, Misused)):
        text = str(problem)
    elif isinstance(problem, OSError) and problem.strerror:
        text = f"{problem.filename}: {problem.strerror}" if problem.filename else problem.strerror
    elif isinstance(problem, MemoryError):
        text = "there is not enough memory for this"
    else:
        text = f"internal error ({type(problem).__name__}: {problem}); RATERSCOPE_DEBUG=1 tells more"
    return one_line(text)


def _silence(stream: IO[str]) -> None:
    """Let the interpreter's last flush go nowhere rather than complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
