"""`raterscope report`: the results of a study as HTML or PDF."""

from __future__ import annotations

import argparse
import sys

from raterscope.app.command_line.output import ProgressLine, one_line, tell
from raterscope.app.errors import InputError, plain
from raterscope.app.kinds.registry import KINDS
from raterscope.app.provenance import provenance_of_report
from raterscope.app.report import write_report
from raterscope.app.study import Study
from raterscope.app.study.references import ImageNames


def report(options: argparse.Namespace) -> int:
    """Write the report of a study, or of one image or question of it."""
    measured = {
        name: one for kind in KINDS.values() for name, one in kind.report.read_options(options).items()
    }
    with Study.open(options.study, to_read=True) as study, ProgressLine(sys.stderr) as watch:
        item = question = None
        if options.item is not None:
            entry = ImageNames(study.images()).find(options.item)
            questions = {
                one.name.casefold(): one.id
                for kind in KINDS.values()
                if kind.by_question
                for one in kind.items(study)
            }
            item, question = (entry.id, None) if entry else (None, questions.get(options.item.casefold()))
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
                options=measured,
            )
    print(f"Report of {made.in_words()} saved to {one_line(str(path))}", file=sys.stderr)
    print(path)
    return 0
