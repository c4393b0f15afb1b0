"""Time from the start of the program's process to the first picture of its window.

The window opens on the display that DISPLAY names, otherwise offscreen. "Own" is the processor time of the
whole process.

Usage: python -m tests.benchmarks.start_speed
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = 15
GOAL = 500.0
"""Milliseconds."""

_PROGRAM = """
import sys, time
from raterscope.app.cli.program import main
from raterscope.app.window import startup

def report(*_):
    print(time.monotonic(), time.process_time(), flush=True)
    startup.QApplication.quit()

startup._go_on = report
sys.argv = ["raterscope"]
main()
"""
"""The program, which reports and ends instead of loading what a study needs."""


def _start() -> tuple[float, float]:
    """Return the milliseconds until the window is painted, and those of the processor."""
    environment = dict(os.environ)
    if "DISPLAY" not in environment:
        environment["QT_QPA_PLATFORM"] = "offscreen"
    with tempfile.TemporaryDirectory() as settings:
        environment["XDG_CONFIG_HOME"] = settings
        start = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM], env=environment, capture_output=True, text=True, check=True
        )
    painted, worked = map(float, done.stdout.split())
    return 1000 * (painted - start), 1000 * worked


def main() -> None:
    """Print a line of the table."""
    from .window_driving import heading, print_line

    _start()  # writes compiled modules
    times, worked = zip(*(_start() for _ in range(ROUNDS)), strict=True)
    heading()
    name = "from the start to the first picture"
    print_line(name, statistics.median(times), max(times), GOAL, 0.0, max(worked))


if __name__ == "__main__":
    main()
