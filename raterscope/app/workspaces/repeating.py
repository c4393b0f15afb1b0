"""Requests that repeat a run: its algorithms and settings, as the Fuse panel shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from raterscope.algorithms.clicks.fusion import FusionPlan
from raterscope.algorithms.labels.fusion import LabelPlan
from raterscope.algorithms.masks.fusion import MaskPlan
from raterscope.algorithms.pairs.fusion import PairPlan
from raterscope.algorithms.settings import SettingsError
from raterscope.app.study import RunEntry
from raterscope.widgets.panels.fuse_panel import RunRequest

__all__ = ["request_of", "run_to_repeat"]


def run_to_repeat(runs: Sequence[RunEntry], chosen: int | None) -> RunEntry | None:
    """Give the run that the next fusion repeats: the chosen one, else the latest of those with most items.

    Parameters
    ----------
    runs : sequence of RunEntry
        Of one kind, the oldest first.
    chosen : int or None
        The run chosen to be shown.
    """
    shown = next((run for run in runs if run.id == chosen), None)
    return shown or max(runs, key=lambda run: (len(run.items), run.id), default=None)


def request_of(run: RunEntry) -> RunRequest | None:
    """Give the request that repeats a run; None where this version cannot make it from the Fuse panel."""
    try:
        return _REQUESTS[run.kind](run)
    except SettingsError:  # of a stream, or of another version
        return None


def _clicks(run: RunEntry) -> RunRequest:
    plan = FusionPlan.from_dict(run.settings)
    return RunRequest(
        algorithm=plan.algorithm,
        settings=plan.clustering,
        detector=plan.detector,
        detection=plan.detection,
        assignment=plan.assignment,
        hold_truth=bool(run.log.get("truth_held")),
    )


def _masks(run: RunEntry) -> RunRequest:
    plan = MaskPlan.from_dict(run.settings)
    return RunRequest(plan.algorithm, plan.settings)


def _labels(run: RunEntry) -> RunRequest:
    plan = LabelPlan.from_dict(run.settings)
    return RunRequest(plan.algorithm, plan.settings, assignment=plan.about)


def _pairs(run: RunEntry) -> RunRequest:
    plan = PairPlan.from_dict(run.settings)
    return RunRequest(plan.algorithm, plan.settings)


_REQUESTS: Mapping[str, Callable[[RunEntry], RunRequest]] = {
    "clicks": _clicks,
    "masks": _masks,
    "labels": _labels,
    "pairs": _pairs,
}
