"""Replay a day of review in one window: decisions by key, undo, redo, fusions; memory and log size.

Usage: python -m tests.campaigns.day [--decisions N] [--images N] [--seed N] [--seconds N]

The window is driven as in `tests.benchmarks.afternoon`: images are looked through one by one, disputed spots
are settled, some decisions undone and redone; every 250 decisions everything is fused again. Where nothing
is disputed any more, as many images again are imported and fused. At the end the study is closed and read:
every decision that the window showed is there, in one plain file.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any

import numpy as np

from tests.campaigns.harness import Outcome, Summary, error_outcome, parser

__all__ = ["main"]

STEP = 50
"""Decisions between two looks at memory and files."""

FUSED_EVERY = 250
MAX_GROWTH = 400
"""Megabytes by which the process may grow after the first quarter of the day."""

LONGEST_LOG = 64
"""Megabytes of the write-ahead log."""


def replay(folder: Path, options: Any, summary: Summary) -> None:
    """Replay the day and add what it came to."""
    from tests.benchmarks.afternoon import Afternoon, make_files
    from tests.benchmarks.window_driving import Driven, dark_application, memory

    problems: list[str] = []

    def note(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        problems.append(error_outcome("day", error).defect)
        sys.__excepthook__(kind, error, trace)

    sys.excepthook = note  # of errors in what answers signals
    application = dark_application()
    files = make_files(folder, options.images)
    driven = Driven(application)
    day = Afternoon(driven)
    day._rng = np.random.default_rng(options.seed)
    day.bring_in(files)
    images = options.images
    log = day.path.with_name(f"{day.path.name}-wal")
    end, until, longest, grown_from = time.monotonic() + options.seconds, 0, 0.0, None
    while until < options.decisions and time.monotonic() < end:
        until = min(until + STEP, options.decisions)
        day.walk(until)
        while driven.decisions < until:
            day.add(make_files(folder, options.images, first=images))
            images += options.images
            day.walk(until)
        if until % FUSED_EVERY == 0:
            driven.fuse()
        longest = max(longest, log.stat().st_size / 1e6 if log.exists() else 0.0)
        if grown_from is None and until >= options.decisions / 4:
            grown_from = memory()
        if until % (10 * STEP) == 0:
            words = f"{until:,} decisions: memory {memory():.0f} MB, log {longest:.1f} MB at most"
            print(f"{words}, study {day.path.stat().st_size / 1e6:.1f} MB", flush=True)
    shown, runs = driven.decisions, driven.runs
    growth = memory() - (grown_from or memory())
    driven.close()
    results = list(problems)
    if growth > MAX_GROWTH:
        results.append(f"memory grew by {growth:.0f} MB after the first quarter")
    if longest > LONGEST_LOG:
        results.append(f"the log grew to {longest:.0f} MB")
    for words in [*results, *_compared(day.path, shown, runs)]:
        summary.add(0, Outcome("day", "problems", words))
    summary.counts["day"].update({"decisions": shown, "runs": runs, "grown MB": round(growth)})
    summary.notes.append(f"{images} images")
    summary.notes.append(f"largest log {longest:.1f} MB, study {day.path.stat().st_size / 1e6:.1f} MB")


def _compared(path: Path, shown: int, runs: int) -> list[str]:
    """Compare the closed study with what the window showed."""
    wrong = []
    with closing(sqlite3.connect(path)) as connection:
        (decisions,) = connection.execute("SELECT count(*) FROM decisions").fetchone()
        (kept,) = connection.execute("SELECT count(*) FROM runs").fetchone()
        (answer,) = connection.execute("PRAGMA integrity_check").fetchone()
    if (decisions, kept) != (shown, runs):
        wrong.append(f"{shown} decisions and {runs} runs were shown, {decisions} and {kept} are in the file")
    if answer != "ok":
        wrong.append(f"integrity_check: {answer}")
    left = [
        file_path.name
        for file_path in path.parent.iterdir()
        if file_path.name.startswith((f"{path.name}-", f".{path.name}"))
    ]
    if left:
        wrong.append(f"left {', '.join(left)}")
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign, and return the exit status."""
    options_parser = parser("day", __doc__, seconds=8 * 3600.0)
    options_parser.add_argument(
        "--decisions", type=int, default=5_000, help="how many (default: %(default)s)"
    )
    options_parser.add_argument(
        "--images", type=int, default=60, help="smears to review (default: %(default)s)"
    )
    options = options_parser.parse_args(arguments)
    summary = Summary("A day of review", options.seed)
    with TemporaryDirectory() as name:
        os.environ["XDG_CONFIG_HOME"] = name  # its settings are nobody's
        folder = Path(name) / "day"
        folder.mkdir()
        replay(folder, options, summary)
    return summary.end()


if __name__ == "__main__":
    sys.exit(main())
