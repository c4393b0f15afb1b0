"""The command `raterscope gather`: the cases of a cohort in one study."""

from __future__ import annotations

import argparse
import sys

from raterscope.app.batch.gathering import gather_cohort
from raterscope.app.command_line.output import ProgressLine, one_line
from raterscope.app.errors import counted, plain

_MOST = 3


def gather(options: argparse.Namespace) -> int:
    """Gather the cases of a cohort in one study."""
    with ProgressLine(sys.stderr) as watch:
        gathered = gather_cohort(options.folder, options.output, watch)
    done = len(gathered.cases) - len(gathered.failed)
    new = "" if gathered.added == done else f", {gathered.added:,} of them new"
    print(f"{done:,} of {counted(len(gathered.cases), 'case')} are in {options.output}{new}")
    if gathered.changed:
        few = ", ".join(plain(name, 40) for name in gathered.changed[:_MOST])
        more = f" and {len(gathered.changed) - _MOST:,} more" if len(gathered.changed) > _MOST else ""
        print(
            f"note: {few}{more} changed after being gathered; the study keeps the earlier results. "
            "Gather into a new study to take the new ones.",
            file=sys.stderr,
        )
    for case in gathered.failed[:_MOST]:
        print(one_line(f"{case.case}: {case.status}: {case.reason}"), file=sys.stderr)
    if len(gathered.failed) > _MOST:
        print(f"and {len(gathered.failed) - _MOST:,} more; the report lists them", file=sys.stderr)
    return 0
