"""Algorithms alone, from arrays to arrays, beside a peer and the time in which memory copies the input.

Usage: python -m tests.benchmarks.speed_alone NAME

Prints one JSON object: seconds of the algorithm, of the peer where it is installed, and of the copy.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable

import numpy as np

from raterscope.algorithms.clicks.oem import oem
from raterscope.algorithms.labels.ibcc import ibcc
from raterscope.algorithms.masks.fusion import fuse

from . import clicks_speed, labels_speed, masks_speed

ORGAN_RADIUS = 60.5
"""Radius (mm) with which the ellipsoid takes up 11.5 % of the large volume."""


def _copy(*arrays: np.ndarray) -> float:
    return masks_speed.timed(lambda: [array.copy() for array in arrays])


def laplace(radius: float) -> dict[str, float]:
    """Time Laplace on the large volume beside SimpleITK's STAPLE."""
    masks = masks_speed.crowd(*masks_speed.LARGE, radius)
    fuse(masks_speed.crowd(*masks_speed.SMALL))
    return {
        "seconds": masks_speed.timed(lambda: fuse(masks)),
        "peer_seconds": masks_speed.peer(masks),
        "floor_seconds": _copy(masks.values),
    }


def independent_classifiers() -> dict[str, float]:
    """Time IBCC on a million votes of 20,000 annotators beside crowd-kit, each with its own stopping rule."""
    few, _ = labels_speed.crowd(labels_speed.FEW, 5)
    labels, _ = labels_speed.crowd(1_000_000, 5, annotators=20_000)
    ibcc(few)
    measured = {
        "seconds": masks_speed.timed(lambda: ibcc(labels)),
        "floor_seconds": _copy(labels.task, labels.annotator, labels.label),
    }
    if importlib.util.find_spec("crowdkit") is not None:
        measured["peer_seconds"] = min(float(labels_speed.peer(labels, "")["seconds"]) for _ in range(3))
    return measured


def clustering() -> dict[str, float]:
    """Time OEM on 1,000 clicks beside scikit-learn's HDBSCAN."""
    from sklearn.cluster import HDBSCAN

    clicks = clicks_speed.marked_once(*clicks_speed.CASES[0][1:5])
    oem(clicks)
    points = clicks.points
    return {
        "seconds": masks_speed.timed(lambda: oem(clicks), 9),
        "peer_seconds": masks_speed.timed(
            lambda: HDBSCAN(min_cluster_size=5, min_samples=3, copy=True).fit(points), 9
        ),
        "floor_seconds": _copy(points, clicks.annotator),
    }


ALGORITHMS: dict[str, Callable[[], dict[str, float]]] = {
    "organ": lambda: laplace(ORGAN_RADIUS),
    "object": lambda: laplace(0.0),
    "ibcc": independent_classifiers,
    "oem": clustering,
}

if __name__ == "__main__":
    print(json.dumps(ALGORITHMS[sys.argv[1]]()))
