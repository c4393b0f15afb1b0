"""Longest time between progress reports, and memory, for the benchmarks of algorithms."""

from __future__ import annotations

import time
from pathlib import Path

__all__ = ["Watcher", "most_memory"]


class Watcher:
    """Measures the longest silence of an algorithm."""

    def __init__(self) -> None:
        self.last, self.longest = time.perf_counter(), 0.0

    def __call__(self, *_: object, **__: object) -> None:
        now = time.perf_counter()
        self.longest, self.last = max(self.longest, now - self.last), now


def most_memory() -> float:
    """Return the most memory that this process has held, in MB."""
    status = Path("/proc/self/status").read_text()  # what getrusage tells begins with the parent's
    return int(status.split("VmHWM:")[1].split()[0]) / 2**10
