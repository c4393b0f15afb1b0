"""Evaluation of detections: sensitivity, precision, F-beta, curves, calibration, comparison of runs.

Sensitivity is TP / (TP + FN) and precision TP / (TP + FP) (OEM-DEM paper, eq. 19; the thesis's P = TP / M is
the same after clustering only). F-beta is the OEM-DEM paper's eq. 40.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.array_operations import running_count

RADIUS = 10.0
"""Default radius of the matching, pixels."""

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


def match(detections: FloatArray, truth: FloatArray, radius: float) -> Matching:
    """Match detections to true points one to one within a radius.

    The matching has the largest number of pairs, and among those the smallest sum of distances. Only pairs
    within the radius are visited, so that thousands of points are fast.

    Parameters
    ----------
    detections : (M, 2) float64
    truth : (T, 2) float64
    radius : float
        Largest distance of a pair, in the points' units.

    Returns
    -------
    Matching

    Raises
    ------
    ValueError
        If the radius is not a positive finite number.

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

    left, right, distance = _pairs(detections, truth, radius)
    if not len(left):
        return Matching(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    rows, left_index = np.unique(left, return_inverse=True)
    columns, right_index = np.unique(right, return_inverse=True)
    # Each row has a column for "unmatched", whose cost exceeds the sum of all distances: the number of pairs
    # is maximised first. The solver treats a cost of 0 as a missing edge, so costs start at 1.
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
    matched = column < len(columns)
    left, right = rows[row[matched]], columns[column[matched]]
    order = np.argsort(left)
    left, right = left[order].astype(np.int64), right[order].astype(np.int64)
    offset = points_of(detections)[left] - points_of(truth)[right]
    return Matching(left, right, np.hypot(offset[:, 0], offset[:, 1]))


def true_detections(
    detections: FloatArray, posterior: FloatArray, truth: FloatArray, radius: float
) -> BoolArray:
    """Return whether each detection is true, in the order of the detections.

    For every threshold, the number of true detections above it is the largest that can be matched one to one,
    as in `match`: detections that can be matched together form a matroid, so that the greedy choice is
    optimal for every threshold.

    Parameters
    ----------
    detections : (M, 2) float64
    posterior : (M,) float64
    truth : (T, 2) float64
    radius : float
        In the unit of the positions.

    Returns
    -------
    (M,) bool

    Raises
    ------
    ValueError
        For a radius of 0 or less.
    """
    rows, right, distance = _pairs(detections, truth, radius)
    reach: dict[int, list[int]] = {}
    for row in np.lexsort((distance, rows)):
        reach.setdefault(int(rows[row]), []).append(int(right[row]))
    holder: dict[int, int] = {}
    matched: dict[int, int] = {}
    true = np.zeros(len(points_of(detections)), dtype=bool)
    for start in np.argsort(-np.asarray(posterior, dtype=np.float64), kind="stable"):
        true[start] = _augment(int(start), reach, holder, matched)
    return true


def points_of(positions: FloatArray) -> FloatArray:
    """Return positions as rows of x and y, (n, 2), also for n = 0."""
    return np.asarray(positions, dtype=np.float64).reshape(-1, 2)


def _pairs(detections: FloatArray, truth: FloatArray, radius: float) -> tuple[IntArray, IntArray, FloatArray]:
    """Find all pairs within the radius: rows of `detections`, rows of `truth`, distances."""
    from scipy.spatial import cKDTree

    if not (np.isfinite(radius) and radius > 0):
        raise ValueError(f"the matching radius is {radius}; expected a positive number.")
    detections, truth = points_of(detections), points_of(truth)
    if not len(detections) or not len(truth):
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
    near = cKDTree(detections).query_ball_point(truth, radius)
    row = np.concatenate([np.asarray(rows, dtype=np.int64) for rows in near])
    right = np.repeat(np.arange(len(truth)), [len(rows) for rows in near])
    offset = detections[row] - truth[right]
    return row, right, np.hypot(offset[:, 0], offset[:, 1])


def _augment(
    start: int, reach: Mapping[int, Sequence[int]], holder: dict[int, int], matched: dict[int, int]
) -> bool:
    """Match `start` to a true point, moving earlier detections to others in reach (breadth first).

    `holder` maps true points to detections, and `matched` detections to true points.
    """
    reached_from: dict[int, int] = {}
    front = [start]
    while front:
        following: list[int] = []
        for row in front:
            for point in reach.get(row, ()):
                if point in reached_from:
                    continue
                reached_from[point] = row
                if point in holder:
                    following.append(holder[point])
                    continue
                _pass_on(point, reached_from, holder, matched)
                return True
        front = following
    return False


def _pass_on(
    point: int, reached_from: Mapping[int, int], holder: dict[int, int], matched: dict[int, int]
) -> None:
    while True:
        row = reached_from[point]
        before = matched.get(row)
        holder[point], matched[row] = row, point
        if before is None:
            return
        point = before


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Detections of one image against its truth.

    Attributes
    ----------
    matching : Matching
    true_positive, false_positive, false_negative : int
    sensitivity, precision : float
        NaN without a true point, without a detection.
    f_half, f_one, f_two : float
        F-beta for beta 0.5, 1 and 2; NaN with neither detections nor true points.
    """

    matching: Matching
    true_positive: int
    false_positive: int
    false_negative: int
    sensitivity: float
    precision: float
    f_half: float
    f_one: float
    f_two: float


@dataclass(frozen=True, eq=False)
class Curves:
    """ROC and precision-recall over all thresholds of the posterior, strictest first.

    True points that no detection reaches at any threshold count as missed: sensitivity may end below one.

    Attributes
    ----------
    threshold : (K,) float64
        Detections with at least this posterior are kept; the first is infinite and keeps none.
    true_positive, false_positive : (K,) int64
    sensitivity : (K,) float64
    false_positive_rate : (K,) float64
        Share of all false detections that are kept.
    precision : (K,) float64
        1 where no detection is kept.
    roc_area : float
        Area under the ROC curve; NaN without true points or without false detections.
    average_precision : float
        Precision averaged over the steps of sensitivity; NaN without true points.
    """

    threshold: FloatArray
    true_positive: IntArray
    false_positive: IntArray
    sensitivity: FloatArray
    false_positive_rate: FloatArray
    precision: FloatArray
    roc_area: float
    average_precision: float


@dataclass(frozen=True, eq=False)
class Calibration:
    """Calibration of posteriors: the share of true cases in bins of equal width.

    Attributes
    ----------
    posterior : (B,) float64
        Mean posterior of each bin, NaN where it is empty.
    share : (B,) float64
        Share of each bin that is true, NaN where it is empty.
    count : (B,) int64
    error : float
        Expected calibration error: mean of abs(posterior - share) weighted by count; NaN without cases.
    """

    posterior: FloatArray
    share: FloatArray
    count: IntArray
    error: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """One row of the table that compares runs: means over images, counts summed.

    Images where a value is undefined (no truth, no detection) do not count in its mean.
    """

    name: str
    images: int
    true_positive: int
    false_positive: int
    false_negative: int
    sensitivity: float
    precision: float
    f_half: float
    f_one: float
    f_two: float


def evaluate(detections: FloatArray, truth: FloatArray, radius: float) -> Evaluation:
    """Count hits, false detections and misses of one image.

    Parameters
    ----------
    detections : (M, 2) float64
    truth : (T, 2) float64
    radius : float
        Largest distance at which a detection hits a true point.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> import numpy as np
    >>> found = np.array([[10.0, 10.0], [50.0, 50.0]])
    >>> result = evaluate(found, truth=np.array([[12.0, 10.0], [90.0, 20.0]]), radius=5)
    >>> result.true_positive, result.false_positive, result.false_negative
    (1, 1, 1)
    >>> result.sensitivity, result.precision
    (0.5, 0.5)
    """
    matching = match(detections, truth, radius)
    hits = len(matching)
    false, missed = len(points_of(detections)) - hits, len(points_of(truth)) - hits
    sensitivity = _ratio(hits, hits + missed)
    precision = _ratio(hits, hits + false)
    half, f_one, two = (_f_of_counts(hits, false, missed, beta) for beta in (0.5, 1.0, 2.0))
    return Evaluation(matching, hits, false, missed, sensitivity, precision, half, f_one, two)


def curves(detections: FloatArray, posterior: FloatArray, truth: FloatArray, radius: float) -> Curves:
    """Make the ROC and precision-recall curves of one image's detections.

    Parameters
    ----------
    detections : (M, 2) float64
        All clusters, whether detected or not.
    posterior : (M,) float64
    truth : (T, 2) float64
    radius : float

    Returns
    -------
    Curves

    Examples
    --------
    >>> import numpy as np
    >>> truth = np.array([[10.0, 10.0], [40.0, 40.0]])
    >>> found = np.array([[11.0, 10.0], [80.0, 80.0]])
    >>> curves(found, np.array([0.9, 0.2]), truth, radius=4).roc_area
    0.5
    """
    return curves_of(posterior, true_detections(detections, posterior, truth, radius), len(points_of(truth)))


def curves_of(posterior: FloatArray, true: BoolArray, present: int) -> Curves:
    """Make the curves of detections with known truth, for example of several images.

    Parameters
    ----------
    posterior : (M,) float64
    true : (M,) bool
        See `true_detections`.
    present : int
        Number of true points, including those that no detection reaches.

    Returns
    -------
    Curves

    Examples
    --------
    >>> import numpy as np
    >>> curves_of(np.array([0.9, 0.8, 0.3]), np.array([True, False, True]), present=3).roc_area
    0.3333333333333333
    """
    posterior = np.asarray(posterior, dtype=np.float64)
    order = np.argsort(-posterior, kind="stable")
    ranked = posterior[order]
    last = np.flatnonzero(np.diff(ranked, append=-np.inf))  # equal posteriors are kept together
    hits = np.concatenate([[0], running_count(true[order])[last]])
    false = np.concatenate([[0], running_count(~true[order])[last]])
    threshold = np.concatenate([[np.inf], ranked[last]])
    absent = int(np.count_nonzero(~true))
    sensitivity = hits / present if present else np.full(len(hits), np.nan)
    rate = false / absent if absent else np.full(len(hits), np.nan)
    precision = np.ones(len(hits))
    precision[1:] = hits[1:] / (hits[1:] + false[1:])
    return Curves(
        threshold=threshold,
        true_positive=hits,
        false_positive=false,
        sensitivity=sensitivity,
        false_positive_rate=rate,
        precision=precision,
        roc_area=float(np.trapezoid(sensitivity, rate)),
        average_precision=float(np.sum(np.diff(sensitivity) * precision[1:])) if present else np.nan,
    )


def calibration(posterior: FloatArray, true: BoolArray | FloatArray, bins: int = 10) -> Calibration:
    """Compare posteriors with the truth.

    Parameters
    ----------
    posterior : (M,) float64
        0 to 1.
    true : (M,) bool or float64
        The truth, or its probability, 0 to 1.
    bins : int

    Returns
    -------
    Calibration

    Examples
    --------
    >>> import numpy as np
    >>> posterior = np.full(10, 0.8)
    >>> true = np.arange(10) < 6
    >>> round(calibration(posterior, true).error, 3)
    0.2
    """
    posterior = np.asarray(posterior, dtype=np.float64)
    index = np.minimum((posterior * bins).astype(np.int64), bins - 1)
    count = np.bincount(index, minlength=bins)
    filled = np.where(count > 0, count, np.nan)
    mean = np.bincount(index, weights=posterior, minlength=bins) / filled
    share = np.bincount(index, weights=np.asarray(true, dtype=np.float64), minlength=bins) / filled
    error = float(np.nansum(np.abs(mean - share) * count) / len(posterior)) if len(posterior) else np.nan
    return Calibration(mean, share, count.astype(np.int64), error)


def compare(runs: Mapping[str, Sequence[Evaluation]]) -> tuple[Comparison, ...]:
    """Compare runs.

    Parameters
    ----------
    runs : mapping of name to evaluations
        One evaluation for each image.

    Returns
    -------
    tuple of Comparison
        One row for each run, in the order of the input.

    Examples
    --------
    >>> import numpy as np
    >>> truth = np.array([[10.0, 10.0], [40.0, 40.0]])
    >>> one = evaluate(truth[:1], truth, radius=4)
    >>> [(row.name, row.sensitivity, row.precision) for row in compare({"run 1": [one]})]
    [('run 1', 0.5, 1.0)]
    """
    return tuple(_row(name, evaluations) for name, evaluations in runs.items())


def _row(name: str, evaluations: Sequence[Evaluation]) -> Comparison:
    return Comparison(
        name=name,
        images=len(evaluations),
        true_positive=sum(evaluation.true_positive for evaluation in evaluations),
        false_positive=sum(evaluation.false_positive for evaluation in evaluations),
        false_negative=sum(evaluation.false_negative for evaluation in evaluations),
        sensitivity=_mean([evaluation.sensitivity for evaluation in evaluations]),
        precision=_mean([evaluation.precision for evaluation in evaluations]),
        f_half=_mean([evaluation.f_half for evaluation in evaluations]),
        f_one=_mean([evaluation.f_one for evaluation in evaluations]),
        f_two=_mean([evaluation.f_two for evaluation in evaluations]),
    )


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else np.nan


def _ratio(part: int, total: int) -> float:
    return part / total if total else np.nan


def _f_of_counts(hits: int, false: int, missed: int, beta: float) -> float:
    total = (1 + beta**2) * hits + beta**2 * missed + false
    return (1 + beta**2) * hits / total if total else np.nan
