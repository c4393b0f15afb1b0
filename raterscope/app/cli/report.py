"""`raterscope report`: what a study has come to, for people."""

from __future__ import annotations

import argparse
import sys

from raterscope.algorithms.clicks.crowd_size import CrowdSizeSettings
from raterscope.algorithms.labels.roc_curves import FoldedSettings
from raterscope.app.command_line.results import tell
from raterscope.app.command_line.terminal import ProgressLine, one_line
from raterscope.app.errors import InputError, plain
from raterscope.app.provenance import provenance_of_report
from raterscope.app.report import write_report
from raterscope.app.study import Study
from raterscope.app.study.places import Names

__all__ = ["report"]


def report(options: argparse.Namespace) -> int:
    """Write the report of a study, or of one image or question of it."""
    crowd_size = None
    if options.by_crowd_size is not None:
        crowd_size = CrowdSizeSettings.from_text(dict(options.by_crowd_size))
    folds = None if options.roc_curves is None else FoldedSettings.from_text(dict(options.roc_curves))
    with Study.open(options.study, to_read=True) as study, ProgressLine(sys.stderr) as watch:
        item = question = None
        if options.item is not None:
            entry = Names(study.images()).find(options.item)
            items = study.items()
            asked = {one.name.casefold(): one.id for kind in ("labels", "pairs") for one in items[kind]}
            item, question = (entry.id, None) if entry else (None, asked.get(options.item.casefold()))
            if item is None and question is None:
                raise InputError(f"holds no image or question {plain(options.item)}", file=study.path)
        with study.shown.only(options.run):
            made = provenance_of_report(study, item, question)
            tell(made.outdated, ())
            path = write_report(
                study,
                options.output,
                watch,
                item=item,
                question=question,
                crowd_size=crowd_size,
                folds=folds,
                over_time=options.rates_over_time,
                methods=options.compare_methods,
            )
    print(f"Report of {made.in_words()} saved to {one_line(str(path))}", file=sys.stderr)
    print(path)
    return 0
