"""Runs of a study in words."""

from __future__ import annotations

from raterscope.app.errors import plain
from raterscope.app.report.units import significant
from raterscope.app.study import RunEntry

__all__ = ["run_in_words"]


def run_in_words(run: RunEntry) -> str:
    """Name a run: number, algorithm, when, how long."""
    when = run.started.strftime("%Y-%m-%d %H:%M %Z").strip()
    return f"run {run.id}, {plain(run.algorithm)}, {when}, {significant(run.seconds, 2)} s"
