"""The command line: `raterscope` opens the window, `raterscope COMMAND` does one thing and ends.

Exit status 0, or 1 with one line on stderr that says what was wrong and where; 130 when interrupted. Heavy
libraries are imported by the commands that need them, so that help appears at once.
"""

from __future__ import annotations

import argparse
import gc
import io
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from raterscope.algorithms.plugins import problems
from raterscope.algorithms.progress import RefusedError
from raterscope.algorithms.settings import SettingsError, UnknownSettingError
from raterscope.app.command_line.arguments import UsageError
from raterscope.app.errors import InputError, TableProblems, missing_package, plain, system_reason
from raterscope.app.kinds.registry import KINDS

INTERRUPTED = 130

COMMANDS = (
    "demo", "import", "run", "export", "report", "structures", "references", "watch", "simulate", "papers",
    "rename", "fuse", "prepare", "batch", "gather", "copy", "merge", "annotators", "decide", "reader-study",
    "plan", "desktop", "pacs",
)  # fmt: skip


def _execute(options: argparse.Namespace) -> int:
    """Import the module of a command and call it."""
    match options.command:
        case "demo":
            from raterscope.app.cli.demo import demo as command
        case "import":
            from raterscope.app.cli.imports import import_files as command
        case "run":
            return _run(options)
        case "export":
            from raterscope.app.cli.study import export as command
        case "report":
            from raterscope.app.cli.study import report as command
        case "structures":
            from raterscope.app.cli.structures import structures as command
        case "rename":
            from raterscope.app.cli.structures import rename as command
        case "references":
            return _references(options)
        case "watch":
            from raterscope.app.cli.watch import watch as command
        case "simulate":
            from raterscope.app.cli.demo import simulate_files as command
        case "papers":
            return _papers(options)
        case "prepare":
            return _prepare(options)
        case "batch":
            from raterscope.app.cli.batch import batch as command
        case "gather":
            from raterscope.app.cli.batch import gather as command
        case "reader-study":
            from raterscope.app.cli.planning import reader_study as command
        case "decide":
            from raterscope.app.cli.study import decide as command
        case "annotators":
            from raterscope.app.cli.study import annotators as command
        case "copy":
            from raterscope.app.cli.study import copy as command
        case "plan":
            from raterscope.app.cli.planning import plan as command
        case "desktop":
            from raterscope.app.cli.desktop import desktop as command
        case "pacs":
            from raterscope.app.cli.pacs import pacs as command
        case "merge":
            from raterscope.app.cli.study import merge as command
        case _:
            return _fuse(options)
    return command(options)


def _fuse(options: argparse.Namespace) -> int:
    from raterscope.app.compiled import compiling_beside
    from raterscope.app.workers import collect_garbage_rarely, keep_freed_memory

    collect_garbage_rarely()
    keep_freed_memory()
    with compiling_beside(options.kind, getattr(options, "algorithm", "")):
        return KINDS[options.kind].functions.fuse_files(options)


def _run(options: argparse.Namespace) -> int:
    from raterscope.app.compiled import compiling_beside, kinds_of
    from raterscope.app.workers import collect_garbage_rarely, keep_freed_memory

    collect_garbage_rarely()
    keep_freed_memory()
    kinds = kinds_of(options.algorithm)
    with compiling_beside(options.kind or (kinds[0] if len(kinds) == 1 else ""), options.algorithm):
        from raterscope.app.cli.study import run

        return run(options)


def _versions() -> int:
    """Print the versions and paths that a bug report should contain."""
    import platform

    from raterscope.app.outcome import versions

    names = (
        "numpy",
        "scipy",
        "numba",
        "pyarrow",
        "scikit-learn",
        "imagecodecs",
        "pydicom",
        "highdicom",
        "nibabel",
        "pynrrd",
        "PySide6-Essentials",
        "openslide-python",
        "distributed",
        "fsspec",
    )
    for name, version in versions(names).items():
        print(f"{name} {version}")
    print(f"system {platform.platform()}")
    print(f"compiled algorithms in {os.environ.get('NUMBA_CACHE_DIR', 'the folder of the package')}")
    return 0


def _prepare(options: argparse.Namespace) -> int:
    from raterscope.app.command_line.output import ProgressLine
    from raterscope.app.compiled import prepare

    with ProgressLine(sys.stderr) as watch:
        done, total = prepare(watch, options.jobs)
    print(f"{done} of {total} parts of the algorithms are compiled")
    if done < total:
        print("The others are compiled at their first use.")
    return 0


def _papers(options: argparse.Namespace) -> int:
    """Measure the papers' figures that are not stored yet, and write the page."""
    from raterscope.app.command_line.output import ProgressLine, one_line
    from raterscope.app.papers.page import make_page

    with ProgressLine(sys.stderr) as watch:
        page = make_page(
            options.output, watch, names=options.only, full=options.full, data=options.data,
            measuring=not options.page,
        )  # fmt: skip
    print(one_line(str(page)))
    return 0


def _references(options: argparse.Namespace) -> int:
    """List all works, or those of the keys that are named, as text or as BibTeX."""
    from raterscope.resources.bibliography import bibliography, references_text

    works = bibliography()
    missing = [key for key in options.keys if key not in works]
    if missing:
        raise InputError(f"there is no reference {plain(missing[0], 40)}; `raterscope references` lists all")
    keys = options.keys or list(works)
    if options.bibtex:
        print("\n\n".join(works[key].source for key in keys))
    else:
        for key, line in zip(keys, references_text(keys), strict=True):
            print(f"{key}\t{line}")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; return the exit status.

    `argv`: the arguments after the program's name; by default those of the process.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if isinstance(sys.stdout, io.TextIOWrapper):  # characters that the terminal lacks must not raise an error
        sys.stdout.reconfigure(errors="replace")
    try:
        try:
            status = _act(arguments)
        except SystemExit as stop:  # argparse ends so after help and version
            status = int(stop.code or 0)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of our output closed the pipe
        # The last flush goes to the null device, so that it does not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        if argv is None:  # a second interrupt, while Python waits for the threads, ends the process silently
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        return INTERRUPTED
    except Exception as problem:
        if os.environ.get("RATERSCOPE_DEBUG"):
            raise
        print(f"raterscope: {_sentence(problem)}", *_other_problems(problem), sep="\n", file=sys.stderr)
        return 1
    if argv is None and "PySide6" not in sys.modules:
        gc.freeze()  # before the process ends, Python would search all objects for cycles, for 0.3 s
    return status


def _act(arguments: list[str]) -> int:
    from raterscope.app.compiled import choose_folder
    from raterscope.app.workers import THREADS

    # Before numpy is loaded. The arrays are small, and threads would only wait for each other.
    for name in THREADS:
        os.environ.setdefault(name, "1")
    choose_folder()
    if sorted(arguments) == ["--verbose", "--version"]:
        return _versions()
    if not arguments or (arguments[0] not in COMMANDS and not arguments[0].startswith("-")):
        return _window(arguments)
    from raterscope.app.cli.options import options_of

    options = options_of(arguments)
    try:
        return _execute(options)
    finally:
        for sentence in problems():
            print(f"note: {sentence}", file=sys.stderr)


def _window(names: list[str]) -> int:
    """Open the window with files; it needs a display and Qt's libraries."""
    from raterscope.app.command_line.output import has_display

    paths = [Path(name) for name in names]
    for path in paths:
        if not path.exists():
            message = "there is no such file"
            if len(path.parts) == 1:
                message += ", nor is it a command"
            raise InputError(message, file=path)
    on_screen = os.environ.get("QT_QPA_PLATFORM", "") in ("", "xcb", "wayland")
    if on_screen and not has_display():
        raise InputError(
            "there is no display to open the window on; `raterscope --help` lists what works without one"
        )
    try:
        from raterscope.app.window.startup import main as open_window
    except ImportError as error:  # a machine without Qt, or without the libraries that Qt needs
        reason = missing_package(error) or f"its libraries cannot be loaded: {error}"
        raise InputError(f"the window cannot be opened: {reason}") from error
    return open_window(paths)


def _other_problems(problem: Exception) -> list[str]:
    """List the problems of a table after the first, a line each."""
    from raterscope.app.command_line.output import one_line

    return list(map(one_line, problem.problems[1:])) if isinstance(problem, TableProblems) else []


def _sentence(problem: Exception) -> str:
    """Describe a failure in one printable line."""
    from raterscope.app.command_line.output import one_line

    if isinstance(problem, SettingsError):
        text = problem.about(f"--set {problem.name}")
        if isinstance(problem, UnknownSettingError) and not problem.names_all:
            text += " --list-settings lists all."
    elif isinstance(problem, (InputError, RefusedError, UsageError)):
        text = str(problem)
    elif isinstance(problem, OSError) and problem.strerror:
        reason = system_reason(problem)
        text = f"{problem.filename}: {reason}" if problem.filename else reason
    elif isinstance(problem, MemoryError):
        text = "there is not enough memory for this"
    elif (missing := missing_package(problem)) is not None:
        text = missing
    else:
        text = f"internal error ({type(problem).__name__}: {problem}); RATERSCOPE_DEBUG=1 shows the traceback"
    return one_line(text)
