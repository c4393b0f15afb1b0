"""The command `raterscope reader-study`: set up a reader study, and collect its files."""

from __future__ import annotations

import argparse
import sys

from raterscope.app.command_line.output import ProgressLine, one_line
from raterscope.app.errors import InputError, counted, plain


def reader_study(options: argparse.Namespace) -> int:
    """Set up or collect a reader study."""
    return _new(options) if options.step == "new" else _collect(options)


def _new(options: argparse.Namespace) -> int:
    from raterscope.app.reader_studies.protocol import read_protocol
    from raterscope.app.reader_studies.set_up import set_up

    protocol = read_protocol(options.protocol)
    with ProgressLine(sys.stderr) as watch:
        made = set_up(protocol, options.protocol, options.output, watch)
    print(f"{counted(made.cases, 'case')}, {counted(made.reads, 'read')} by each reader")
    for path in made.files:
        print(path)
    print(f"{made.coordinator} has the key of the pseudonyms; do not pass it on to readers")
    return 0


def _collect(options: argparse.Namespace) -> int:
    from raterscope.app.reader_studies.collecting import collect

    reason = options.unblind
    if reason is not None and not reason.strip():
        raise InputError("--unblind is empty; expected the reason, which the study keeps.")
    with ProgressLine(sys.stderr) as watch:
        collected = collect(options.files, options.output, watch, unblind=(reason or "").strip())
    for reader, read, cases in collected.added:
        print(f"{plain(reader)}, read {read}: {counted(cases, 'case')} added")
    if not collected.added:
        print("nothing new")
    for progress in collected.state.unfinished:
        print(f"not finished: {one_line(progress.in_words())}")
    if collected.state.is_blinded:
        print("the study stays closed until every reader has finished (--unblind REASON opens it)")
    print(options.output)
    for problem in collected.problems:
        print(f"raterscope: {one_line(problem)}", file=sys.stderr)
    return 1 if collected.problems else 0
