"""`raterscope papers`: the papers' figures beside ours, on one page."""

from __future__ import annotations

import argparse
import sys

from raterscope.app.command_line.output import ProgressLine, one_line
from raterscope.app.papers.page import make_page

__all__ = ["papers"]


def papers(options: argparse.Namespace) -> int:
    """Measure what is missing and write the page."""
    with ProgressLine(sys.stderr) as watch:
        page = make_page(
            options.output, watch, names=options.only, full=options.full, data=options.data,
            measuring=not options.page,
        )  # fmt: skip
    print(one_line(str(page)))
    return 0
