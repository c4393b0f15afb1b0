"""`raterscope report`: what a study has come to, for people."""

from __future__ import annotations

import argparse
import sys

from raterscope.app.cli.terminal import ProgressLine
from raterscope.app.errors import InputError, plain
from raterscope.app.report import write_report
from raterscope.app.study import Study
from raterscope.app.study.places import Names

__all__ = ["report"]


def report(options: argparse.Namespace) -> int:
    """Write the report of a study, or of one image or question of it."""
    with Study.open(options.study, to_read=True) as study, ProgressLine(sys.stderr) as watch:
        item = question = None
        if options.item is not None:
            entry = Names(study.images()).find(options.item)
            items = study.items()
            asked = {one.name.casefold(): one.id for kind in ("labels", "pairs") for one in items[kind]}
            item, question = (entry.id, None) if entry else (None, asked.get(options.item.casefold()))
            if item is None and question is None:
                raise InputError(f"holds no image or question {plain(options.item)}", file=study.path)
        path = write_report(study, options.output, watch, item=item, question=question)
    print(path)
    return 0
