"""Algorithm 1 from the components before and one at every new click (OEM-DEM paper, section 6.2)."""

from __future__ import annotations

import numpy as np

from raterscope.algorithms.clicks._grid import sort_into_cells
from raterscope.algorithms.clicks._path import State, walk_from
from raterscope.algorithms.clicks.data import Clicks, FloatArray, IntArray
from raterscope.algorithms.clicks.oem import OEMSettings, begin_reliability, path_of
from raterscope.algorithms.clicks.results import Clustering
from raterscope.algorithms.progress import Watch

__all__ = ["go_on"]

FRACTION = 1 / 8
"""Weight of a new component, of the smallest weight before."""


def go_on(
    marks: Clicks,
    before: Clustering,
    components: int,
    settings: OEMSettings,
    watch: Watch,
    known: FloatArray | None = None,
) -> tuple[Clustering, IntArray]:
    """Cluster all clicks from eqs. 35 to 37 on.

    Parameters
    ----------
    marks : Clicks
        First those that were clustered before.
    before : Clustering
    components : int
        Its first components are taken up.
    settings : OEMSettings
    watch : Watch
    known : (R,) float64, optional
        The p0 of annotators who are new, see `oem`; that of the settings where it is NaN.

    Returns
    -------
    clustering : Clustering
    origin : (M,) int64
        Where each component stood before; -1 for one that began at a new click.
    """
    new, scatter = marks.points[len(before.inlier) :], before.scatter
    cells = sort_into_cells(marks, 3 * scatter)
    old = before.covariance[:components]
    covariance = np.concatenate(
        [
            np.column_stack([old[:, 0, 0], old[:, 0, 1], old[:, 1, 1]]),
            np.tile([scatter**2, 0.0, scatter**2], (len(new), 1)),
        ]
    )
    weight = before.weight[:components]
    least = FRACTION * float(weight.min()) if components else 1.0
    weight = np.concatenate([weight, np.full(len(new), least)])
    reliability = np.empty(len(marks.annotators))
    reliability[cells.rank] = begin_reliability(known, settings, len(marks.annotators))
    judged = np.flatnonzero(np.isfinite(before.reliability))
    reliability[cells.rank[judged]] = before.reliability[judged]
    state = State(
        np.concatenate([before.mean[:components], new]) - cells.centre,
        covariance,
        weight / max(float(weight.sum()), 1e-300),
        reliability,
        np.concatenate([np.arange(components), np.full(len(new), -1)]),
    )
    path = path_of(settings, scatter)
    clustering, best = walk_from(cells, 1 / marks.area, state, path, scatter, watch)
    return clustering, best.origin
