"""Non-convergence in words: which iteration did not converge, and which setting to change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from raterscope.algorithms.clicks.catalogue import CLUSTERERS, DETECTORS
from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.labels.catalogue import LABELLERS
from raterscope.algorithms.labels.data import LabelFusion
from raterscope.algorithms.masks.catalogue import FUSERS
from raterscope.algorithms.masks.data import MaskFusion
from raterscope.algorithms.settings import Algorithm
from raterscope.app.errors import counted

_LIMITS = ("iterations", "max_iterations", "detection_iterations", "samples")
"""Settings that limit an iteration."""

_TOLERANCES = ("tolerance", "detection_tolerance")


def of_masks(fusion: MaskFusion, plan: Mapping[str, Any]) -> str:
    """Report that a fusion of masks did not converge, with advice; empty if it did.

    `plan`: algorithm and settings, as stored with the run.
    """
    counts = [len(trace.objective) for trace in fusion.traces if not trace.converged]
    return _words(FUSERS.get(str(plan.get("algorithm"))), _group(plan, "settings"), counts)


def of_labels(fusion: LabelFusion, plan: Mapping[str, Any]) -> str:
    """Report that a fusion of labels did not converge, with advice; empty if it did."""
    counts = [] if fusion.trace.converged else [len(fusion.trace.change)]
    return _words(LABELLERS.get(str(plan.get("algorithm"))), _group(plan, "settings"), counts)


def of_clicks(fusion: Fusion, plan: Mapping[str, Any]) -> str:
    """Report that the clustering or the detection of clicks did not converge; empty if both did."""
    clustering, detection = fusion.clustering.trace, fusion.detection
    first = [] if clustering.converged else [len(clustering.objective)]
    second = [] if detection.converged else [len(detection.objective)]
    words = (
        _words(CLUSTERERS.get(str(plan.get("algorithm"))), _group(plan, "clustering"), first),
        _words(DETECTORS.get(str(plan.get("detector"))), _group(plan, "detection"), second),
    )
    return " ".join(sentence for sentence in words if sentence)


def _words(algorithm: Algorithm | None, values: Mapping[str, Any], counts: Iterable[int]) -> str:
    most = max(counts, default=0)
    if algorithm is None or not most or any(values.get(name) == 0 for name in _TOLERANCES):
        return ""  # without a tolerance, this number of iterations was requested
    words = (
        f"{algorithm.title} did not converge in {counted(most, 'iteration')}: the result may still change."
    )
    limit = next((spec for spec in algorithm.settings.specs() if spec.name in _LIMITS), None)
    now = None if limit is None else values.get(limit.name)
    if limit is None or (isinstance(now, int) and most < now):  # it ended for another reason than this limit
        return words
    where = f"“{limit.label}”" + (" under “more settings”" if limit.advanced else "")
    return f"{words} Raise {where}{f' (now {now:,})' if isinstance(now, int) else ''} and fuse again."


def _group(plan: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    group = plan.get(name)
    return group if isinstance(group, Mapping) else {}
