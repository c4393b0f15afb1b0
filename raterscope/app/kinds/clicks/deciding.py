"""The clusters of a fusion with the expert's word in place of the model's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raterscope.algorithms.clicks.data import FloatArray
from raterscope.algorithms.clicks.result import Fusion
from raterscope.app.review import Spot, match


@dataclass(frozen=True, eq=False)
class Decided:
    """The M spots of an image: its clusters, then the spots that stand for none of them.

    Attributes
    ----------
    x, y : (M,) float64
        Pixels; where the expert moved a spot, the new place.
    present : (M,) bool
        Whether it counts as a structure.
    posterior, low, high : (M,) float64
        0 or 1 where the expert decided; low and high are the ends of the 95 % interval.
    decided : (M,) bool
    """

    x: FloatArray
    y: FloatArray
    present: np.ndarray
    posterior: FloatArray
    low: FloatArray
    high: FloatArray
    decided: np.ndarray


def decided_on(fusion: Fusion | None, spots: Sequence[Spot]) -> Decided:
    """Lay the expert's decisions on an image over its fusion; what was passed over stays as it is."""
    table = np.empty((0, 7))
    found: list[int | None] = [None] * len(spots)
    if fusion is not None:
        clusters, detection = fusion.clustering, fusion.detection
        found = match(spots, clusters.mean, clusters.covariance)
        ends = (detection.posterior, detection.posterior_low, detection.posterior_high)
        table = np.column_stack([clusters.mean, detection.detected, *ends, np.zeros(len(clusters))])
    added = []
    for spot, cluster in zip(spots, found, strict=True):
        if spot.verdict == "skipped":
            continue
        yes = float(spot.verdict != "rejected")
        row = (spot.x, spot.y, yes, yes, yes, yes, 1.0)
        if cluster is None:
            added.append(row)
        else:
            table[cluster] = row
    columns = np.concatenate([table, np.array(added).reshape(-1, 7)]).T.copy()
    x, y, present, posterior, low, high, decided = columns
    return Decided(x, y, present > 0, posterior, low, high, decided > 0)
