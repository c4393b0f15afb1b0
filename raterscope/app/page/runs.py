"""Runs of a study in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from raterscope.app.errors import plain
from raterscope.app.page.units import significant
from raterscope.app.study import RunEntry

__all__ = ["flat", "run_in_words"]


def run_in_words(run: RunEntry) -> str:
    """Name a run: number, algorithm, when, how long."""
    when = run.started.strftime("%Y-%m-%d %H:%M %Z").strip()
    return f"run {run.id}, {plain(run.algorithm)}, {when}, {significant(run.seconds, 2)} s"


def flat(settings: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """List settings by name, those of a part beside those of the whole."""
    found: list[tuple[str, Any]] = []
    for name, value in settings.items():
        found += flat(value) if isinstance(value, dict) else [(str(name), value)]
    return found
