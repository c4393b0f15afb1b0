"""Detections and true points, one to one: as many pairs as there can be, the nearest or the surest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["RADIUS", "Matching", "match", "points_of", "true_detections"]

RADIUS = 10.0
"""Pixels within which a detection is a true position, where nobody says otherwise."""

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Matching:
    """Pairs of a detection and a true point, each used at most once.

    Attributes
    ----------
    found, truth : (K,) int64
        Rows of the K pairs, `found` rising.
    distance : (K,) float64
    """

    found: IntArray
    truth: IntArray
    distance: FloatArray

    def __len__(self) -> int:
        return len(self.found)


def match(found: FloatArray, truth: FloatArray, radius: float) -> Matching:
    """Match detections to true points one to one within a radius.

    As many pairs as there can be, and of those choices the one with the least sum of distances. Only pairs
    within the radius are looked at, so thousands of points are no burden.

    Parameters
    ----------
    found : (M, 2) float64
    truth : (T, 2) float64
    radius : float
        Largest distance of a pair, in the points' units.

    Returns
    -------
    Matching

    Raises
    ------
    ValueError
        When the radius is no positive finite number.

    Examples
    --------
    >>> import numpy as np
    >>> found = np.array([[0.0, 0.0], [3.0, 0.0]])
    >>> matching = match(found, np.array([[1.0, 0.0], [90.0, 0.0]]), radius=2)
    >>> matching.found, matching.truth, matching.distance
    (array([0]), array([0]), array([1.]))
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    left, right, distance = _pairs(found, truth, radius)
    if not len(left):
        return Matching(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    rows, left_index = np.unique(left, return_inverse=True)
    columns, right_index = np.unique(right, return_inverse=True)
    # Staying alone is a column of one's own; it costs more than all pairs' distances together, so that the
    # number of pairs comes first. Zero would be no edge to the solver: costs start at one.
    size = len(rows)
    alone = 3.0 + size
    cost = coo_array(
        (
            np.concatenate([1 + distance / radius, np.full(size, alone)]),
            (
                np.concatenate([left_index, np.arange(size)]),
                np.concatenate([right_index, len(columns) + np.arange(size)]),
            ),
        ),
        shape=(size, len(columns) + size),
    ).tocsr()
    row, column = min_weight_full_bipartite_matching(cost)
    taken = column < len(columns)
    left, right = rows[row[taken]], columns[column[taken]]
    order = np.argsort(left)
    left, right = left[order].astype(np.int64), right[order].astype(np.int64)
    offset = points_of(found)[left] - points_of(truth)[right]
    return Matching(left, right, np.hypot(offset[:, 0], offset[:, 1]))


def true_detections(found: FloatArray, posterior: FloatArray, truth: FloatArray, radius: float) -> BoolArray:
    """Say which detections are true, the surer ones first served.

    Whatever the threshold, the detections above it that are called true are as many as can be matched one to
    one, as `match` would: detections that can be matched together form a matroid, and taking the surest first
    is best for every threshold at once.

    Parameters
    ----------
    found : (M, 2) float64
    posterior : (M,) float64
    truth : (T, 2) float64
    radius : float
        In the places' own unit.

    Returns
    -------
    (M,) bool

    Raises
    ------
    ValueError
        For a radius that is not above 0.
    """
    left, right, distance = _pairs(found, truth, radius)
    reach: dict[int, list[int]] = {}
    for row in np.lexsort((distance, left)):
        reach.setdefault(int(left[row]), []).append(int(right[row]))
    holder: dict[int, int] = {}
    held: dict[int, int] = {}
    true = np.zeros(len(points_of(found)), dtype=bool)
    for start in np.argsort(-np.asarray(posterior, dtype=np.float64), kind="stable"):
        true[start] = _augment(int(start), reach, holder, held)
    return true


def points_of(places: FloatArray) -> FloatArray:
    """Give places as rows of x and y, (n, 2), where there are none too."""
    return np.asarray(places, dtype=np.float64).reshape(-1, 2)


def _pairs(found: FloatArray, truth: FloatArray, radius: float) -> tuple[IntArray, IntArray, FloatArray]:
    """Find all pairs within the radius: rows of `found`, rows of `truth`, distances."""
    from scipy.spatial import cKDTree

    if not (np.isfinite(radius) and radius > 0):
        raise ValueError(f"the matching radius is {radius}; expected a positive number.")
    found, truth = points_of(found), points_of(truth)
    if not len(found) or not len(truth):
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
    near = cKDTree(found).query_ball_point(truth, radius)
    left = np.concatenate([np.asarray(rows, dtype=np.int64) for rows in near])
    right = np.repeat(np.arange(len(truth)), [len(rows) for rows in near])
    offset = found[left] - truth[right]
    return left, right, np.hypot(offset[:, 0], offset[:, 1])


def _augment(
    start: int, reach: Mapping[int, Sequence[int]], holder: dict[int, int], held: dict[int, int]
) -> bool:
    """Give `start` a true point, moving earlier detections to others that they reach; breadth first.

    `holder` maps true points to detections and `held` the other way round.
    """
    came: dict[int, int] = {}
    front = [start]
    while front:
        following: list[int] = []
        for row in front:
            for point in reach.get(row, ()):
                if point in came:
                    continue
                came[point] = row
                if point in holder:
                    following.append(holder[point])
                    continue
                _pass_on(point, came, holder, held)
                return True
        front = following
    return False


def _pass_on(point: int, came: Mapping[int, int], holder: dict[int, int], held: dict[int, int]) -> None:
    while True:
        row = came[point]
        before = held.get(row)
        holder[point], held[row] = row, point
        if before is None:
            return
        point = before
