"""What a crowd's habits are: how far its clicks scatter, and whether an annotator marks an object once."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from raterscope.algorithms.clicks.data import Clicks, FloatArray, IntArray

__all__ = ["Habits", "learn_habits"]

WINDOW = 8000
"""Clicks about the middle of the image that are looked at; of them at most `MOST` are paired."""

MOST = 2000

ANNOTATORS = 250
"""Of a larger crowd so many are looked at, or more where these have made fewer than `MOST` clicks."""

BUSY = 3
"""An annotator counts with at most so many times the median number of clicks: nobody speaks for the crowd."""

BINS = 256

MEDIAN_OF_RAYLEIGH = math.sqrt(2 * math.log(2))


@dataclass(frozen=True)
class Habits:
    """How a crowd clicks.

    Attributes
    ----------
    scatter : float
        Standard deviation of a click about its object along an axis, pixels.
    repeats : float
        How often an annotator clicks again near his own click, as a share of how often another annotator
        does: near 0 when objects are marked once, 1 when clicks are independent of each other.
    resolution : float
        Standard deviation that rounding leaves; a scatter is never less.
    """

    scatter: float
    repeats: float
    resolution: float


def learn_habits(clicks: Clicks) -> Habits:
    """Learn scatter and repeats from the distances between clicks.

    Clicks of different annotators are near each other because they mark one object or because objects are
    near each other; clicks of one annotator only for the latter reason, unless he marks objects twice. So
    the excess of the former over the latter holds the pairs on one object, whose distance has a Rayleigh
    distribution of scale sqrt(2) times the scatter: half of the excess lies within its median. It is sought
    where most of the clicks of others are in excess; farther out, annotators who leave parts of an image
    aside matter. Where annotators do repeat themselves, the excess over clicks thrown at random takes its
    place. A pair counts as the product of its annotators' weights.
    """
    resolution = _resolution(clicks)
    rows = _sample(clicks)
    x, y = clicks.x[rows] - np.median(clicks.x), clicks.y[rows] - np.median(clicks.y)
    span = max(float(np.ptp(x)), float(np.ptp(y)), resolution)
    area = clicks.area if len(rows) == len(clicks) else span**2
    habits = _judge(
        x, y, clicks.annotator[rows], clicks.weights, len(clicks.annotators), resolution, span, area
    )
    return habits or Habits(max(math.sqrt(clicks.area) / 100, resolution), 0.0, resolution)


def _judge(
    x: FloatArray,
    y: FloatArray,
    annotator: IntArray,
    weights: FloatArray | None,
    annotators: int,
    resolution: float,
    span: float,
    area: float,
) -> Habits | None:
    """Judge a sample of clicks, without the annotator who does most where he alone makes the crowd repeat."""
    from raterscope.algorithms.clicks._kernels import count_own, count_pairs

    worth = np.ones(annotators) if weights is None else weights
    counts = np.bincount(annotator, minlength=annotators).astype(np.float64)
    pairs = worth**2 * counts * (counts - 1) / 2
    pairs_same, clicks = float(pairs.sum()), float((worth * counts).sum())
    pairs_other = (clicks**2 - float((worth**2 * counts**2).sum())) / 2
    if pairs_other < 1:
        return None
    edges = np.array([2 * math.log(resolution / 2), 2 * math.log(2 * span)])
    same, other = np.zeros((2, BINS), dtype=np.int64 if weights is None else np.float64)
    count_pairs(x, y, annotator, weights, edges, same, other)
    radius = np.exp(np.linspace(edges[0], edges[1], BINS + 1)[1:] / 2)
    near: FloatArray = np.cumsum(other).astype(np.float64) / pairs_other
    repeats, half = 0.0, 0.0
    if pairs_same >= 1:
        own = np.cumsum(same) / pairs_same
        neighbours = min(4.0, (float(worth[counts > 0].sum()) - 1) / 2)
        close = min(int(np.searchsorted(near * clicks, neighbours)), BINS - 1)
        repeats = float(own[close] / near[close])
        repeated = np.zeros(len(counts))
        count_own(x, y, annotator, radius[close], repeated)
        repeated *= worth**2
        rest = np.maximum(pairs_same - pairs, 1)
        without_one = (repeated.sum() - repeated) / rest / near[close]
        most = int(np.argmin(without_one))
        if without_one[most] <= 0.5 < repeats:
            keep = annotator != most
            return _judge(x[keep], y[keep], annotator[keep], weights, annotators, resolution, span, area)
        half = _half_of_excess(radius, np.where(own <= near / 2, near - own, 0.0))
    if pairs_same < 1 or repeats > 0.5:
        half = _half_of_excess(radius, near - np.minimum(math.pi * radius**2 / area, 1.0))
    return Habits(max(half / (MEDIAN_OF_RAYLEIGH * math.sqrt(2)), resolution), repeats, resolution)


def _half_of_excess(radius: FloatArray, excess: FloatArray) -> float:
    """Find the radius within which half of the largest excess lies."""
    return float(radius[int(np.argmax(excess >= excess.max() / 2))])


def _resolution(clicks: Clicks) -> float:
    """Find the standard deviation that rounding leaves in the coordinates."""
    farthest = max(float(np.abs(clicks.x).max()), float(np.abs(clicks.y).max()))
    whole = bool((clicks.x == np.rint(clicks.x)).all() and (clicks.y == np.rint(clicks.y)).all())
    return max(1 / math.sqrt(12) if whole else 0.0, 1e-6 * math.sqrt(clicks.area), 1e-12 * farthest)


def _sample(clicks: Clicks) -> IntArray:
    """Choose clicks by place alone: neither their order nor the annotators' matters.

    Of each annotator clicks anywhere: were it those at the edges, the own clicks of one who gives few would
    never be near each other, and those of all others be so by their place. Of a large crowd rather few
    annotators with many clicks than one click of each: that would have none of its own to be near.
    """
    x, y = clicks.x - np.median(clicks.x), clicks.y - np.median(clicks.y)
    rows = _of_some(clicks, _shuffled(x, y))
    if len(rows) > WINDOW:
        away = np.maximum(np.abs(x[rows]), np.abs(y[rows]))
        rows = rows[away <= np.partition(away, WINDOW)[WINDOW]]
    rows = rows[np.lexsort((y[rows], x[rows], _shuffled(x[rows], y[rows])))]
    counts, worth = np.bincount(clicks.annotator[rows], minlength=len(clicks.annotators)), clicks.worth
    most = int(BUSY * max(_median(counts[counts > 0], worth[counts > 0]), 1))
    share = min(1.0, MOST / float((worth * np.minimum(counts, most)).sum()))
    kept = []
    for r in np.flatnonzero(counts):
        own = rows[clicks.annotator[rows] == r] if counts[r] else rows[:0]
        wanted = min(len(own), max(1, round(share * min(len(own), most))))
        kept.append(own[:wanted])
    return np.concatenate(kept).astype(np.int64)


def _median(values: IntArray, worth: FloatArray) -> float:
    """Give the median of values that count by how much they are worth."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(worth[order]) - worth[order] / 2
    return float(np.interp(worth.sum() / 2, below, values[order]))


def _of_some(clicks: Clicks, shuffled: FloatArray) -> IntArray:
    """Give the clicks of some annotators of a large crowd, chosen as if at random by where they clicked."""
    counts = clicks.counts()
    lot = np.bincount(clicks.annotator, shuffled, minlength=len(counts)) % 1
    order = np.lexsort((counts, lot, counts == 0))
    enough = int(np.searchsorted(np.cumsum(counts[order]), MOST)) + 1
    chosen = np.zeros(len(counts), dtype=bool)
    chosen[order[: max(ANNOTATORS, enough)]] = True
    return np.flatnonzero(chosen[clicks.annotator])


def _shuffled(x: FloatArray, y: FloatArray) -> FloatArray:
    """Give every place a number as if at random, which neighbours do not share."""
    turned = np.sin(x * 12.9898 + y * 78.233) * 43758.5453
    return np.asarray(turned - np.floor(turned), dtype=np.float64)
