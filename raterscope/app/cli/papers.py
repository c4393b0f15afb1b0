"""The commands `papers` and `references`: figures of the papers measured again, and works that are cited."""

from __future__ import annotations

import argparse
import sys

from raterscope.app.command_line.output import ProgressLine, one_line
from raterscope.app.errors import InputError, plain
from raterscope.resources.bibliography import bibliography, references_text


def papers(options: argparse.Namespace) -> int:
    """Measure the papers' figures that are not stored yet, and write the page."""
    from raterscope.app.papers.page import make_page

    with ProgressLine(sys.stderr) as watch:
        page = make_page(
            options.output, watch, names=options.only, full=options.full, data=options.data,
            measuring=not options.page,
        )  # fmt: skip
    print(one_line(str(page)))
    return 0


def references(options: argparse.Namespace) -> int:
    """List all works, or those of the keys that are named, as text or as BibTeX."""
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
