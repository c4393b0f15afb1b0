"""The command `raterscope annotators`: one table of the annotators of several studies."""

from __future__ import annotations

import argparse
import sys

from raterscope.app.annotators.writing import find_studies, read_studies, write_annotators
from raterscope.app.command_line.output import ProgressLine, one_line
from raterscope.app.formats.output_files import check_writable


def annotators(options: argparse.Namespace) -> int:
    """Write the annotators of studies as one table."""
    check_writable(options.output)
    skipped: list[str] = []
    with ProgressLine(sys.stderr) as watch:
        tables = read_studies(find_studies(options.studies), skipped.append, watch)
    path = write_annotators(options.output, tables, options.where or "")
    for sentence in skipped:
        print(f"note: {one_line(sentence)}", file=sys.stderr)
    print(path)
    return 0
