"""`raterscope papers`: the papers' figures beside ours, on one page."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from raterscope.app.cli.terminal import ProgressLine, one_line
from raterscope.app.errors import InputError
from raterscope.app.papers.catalogue import PAPERS
from raterscope.app.papers.measuring import check_folder, measure
from raterscope.app.papers.page import write_page

__all__ = ["papers"]


def papers(options: argparse.Namespace) -> int:
    """Measure what is missing and write the page; when interrupted, the page has what was measured."""
    folder: Path = options.output
    data: Path | None = options.data
    if data is not None and not data.is_dir():
        raise InputError("is no folder; expected the folder of open data", file=data)
    check_folder(folder)
    try:
        if not options.page:
            with ProgressLine(sys.stderr) as watch:
                measure(
                    [PAPERS[name] for name in dict.fromkeys(options.only)], folder, watch,
                    full=options.full, data=data,
                )  # fmt: skip
    finally:
        path = write_page(list(PAPERS.values()), folder, data=data)
    print(one_line(str(path)))
    return 0
