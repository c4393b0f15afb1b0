"""Runs of a study in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from raterscope.algorithms.settings import SettingsError
from raterscope.app.errors import plain
from raterscope.app.report.units import significant
from raterscope.app.study import RunEntry

__all__ = ["flat", "plan_in_words", "run_in_words"]


def run_in_words(run: RunEntry) -> str:
    """Name a run: number, algorithm, when, how long."""
    when = run.started.strftime("%Y-%m-%d %H:%M %Z").strip()
    return f"run {run.id}, {plain(run.algorithm)}, {when}, {significant(run.seconds, 2)} s"


def plan_in_words(run: RunEntry) -> str:
    """Say the algorithms and settings; those of another version as they are stored."""
    try:
        if run.kind == "clicks":
            from raterscope.algorithms.clicks.fusion import FusionPlan
            from raterscope.algorithms.clicks.stream import StreamPlan

            if "stream" in run.settings:
                return StreamPlan.from_dict(run.settings).in_words()
            return FusionPlan.from_dict(run.settings).in_words()
        if run.kind == "labels":
            from raterscope.algorithms.labels.fusion import LabelPlan

            return LabelPlan.from_dict(run.settings).in_words()
        if run.kind == "pairs":
            from raterscope.algorithms.pairs.fusion import PairPlan

            return PairPlan.from_dict(run.settings).in_words()
        from raterscope.algorithms.masks.fusion import MaskPlan

        return MaskPlan.from_dict(run.settings).in_words()
    except SettingsError:
        stored = ", ".join(f"{name} {value}" for name, value in flat(run.settings))
        return f"{plain(run.algorithm)}, by another version of Raterscope, with {plain(stored, 2000)}."


def flat(settings: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """List settings by name, those of a part beside those of the whole."""
    found: list[tuple[str, Any]] = []
    for name, value in settings.items():
        found += flat(value) if isinstance(value, dict) else [(str(name), value)]
    return found
