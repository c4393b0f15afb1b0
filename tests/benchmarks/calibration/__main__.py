"""Print one table of all kinds: what is claimed, and what was measured."""

from __future__ import annotations

import argparse
import csv
import math
import os
import pkgutil
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from raterscope import resources
from tests.benchmarks import calibration
from tests.benchmarks.calibration import Row

COMPARABLE = "comparable"


def main() -> None:
    kinds = [
        item.name for item in pkgutil.iter_modules(calibration.__path__) if not item.name.startswith("_")
    ]
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.calibration",
        description=calibration.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--kind", choices=kinds, help="print the rows of one kind; all by default")
    parser.add_argument("--full", action="store_true", help="pairs: draw 200 crowds a row instead of 30")
    parser.add_argument("--write", action="store_true", help="replace the table of comparable crowds")
    chosen = parser.parse_args()
    if "RATERSCOPE_DATA" not in os.environ:
        print("RATERSCOPE_DATA is not set: simulations alone", file=sys.stderr)
    print(f"{'kind':14s}{'number':68s}{'data':44s}{'nominal':>9s}{'measured':>10s}{'s.e.':>8s}{'count':>9s}")
    for kind in kinds if chosen.kind is None else [chosen.kind]:
        begin = time.process_time()
        rows = import_module(f"{calibration.__name__}.{kind}").rows()
        print(f"{kind}: {time.process_time() - begin:.0f} s of processor time", file=sys.stderr)
        for row in rows:
            nominal, error = (
                "" if math.isnan(value) else f"{value:.3f}" for value in (row.nominal, row.error)
            )
            print(
                f"{row.kind:14s}{row.number:68s}{row.data:44s}{nominal:>9s}{row.measured:10.3f}"
                f"{error:>8s}{row.count or '':>9}",
                flush=True,
            )
        if kind == COMPARABLE and chosen.write:
            write(rows)


def write(rows: Sequence[Row]) -> None:
    """Replace the table of comparable crowds in the resources."""
    from raterscope.app.assessment import FILE  # the tables themselves need the algorithms alone

    path = Path(resources.__path__[0]) / FILE
    with path.open("w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream, lineterminator="\n")
        table.writerow(
            ("kind", "data", "per_item", "classes", "in_sample", "number", "claimed", "measured", "count")
        )
        for row in rows:
            table.writerow(
                (
                    row.kind, row.data, f"{row.per_item:.3g}", row.classes, int(row.in_sample), row.number,
                    f"{row.nominal:.3f}", f"{row.measured:.3f}", row.count,
                )
            )  # fmt: skip


if __name__ == "__main__":
    main()
