"""Inner loops of the crowd model: parameters of the annotators, and values that are fixed during rounds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from raterscope.algorithms.compiling import Array, compiled, small_code

SEVERAL = 1.5 - 1e-9
"""Sum of weights that counts as two annotators."""

DISTINCT = 64
"""Annotators of a crowd in which each keeps its own ability."""

SCATTER, EVIDENCE, DENSITY, SUPPORT, LEVELS, DROPPED = range(6)
"""Values of `advance` that change: the scatter, the log evidence, the logarithm of the objects' density, the
mean support of a component, the number of different abilities, and the components that were dropped."""


class Hands(NamedTuple):
    """R annotators and a workspace of zeros, `sum` (R,).

    The offset (R, 2), the precision relative to the common scatter (R,), the logarithm of the rate of marks
    over outliers (R,), the different abilities with the number of annotators of each, in the first rows of
    (R, 2), and the weights (R,), empty where all count fully.
    """

    offset: Array
    precision: Array
    rate: Array
    levels: Array
    worth: Array
    sum: Array


class Counts(NamedTuple):
    """Counts and rates of R annotators.

    Clicks, expected outliers and inliers, the ability, its row among the different ones, all (R,), and the
    sums of `_survey` (R, 3).
    """

    clicks: Array
    outliers: Array
    inliers: Array
    ability: Array
    level: Array
    seen: Array


class Frame(NamedTuple):
    """Values of the model that stay fixed.

    Whether objects are marked once, whether each annotator has an own offset and scatter, whether the scatter
    is learned, its lower bound, the floor of a covariance as a share of the squared scatter, the density of
    outliers, the sum of the weights of annotators with clicks.
    """

    once: bool
    own_hands: bool
    learn_scatter: bool
    resolution: float
    floor: float
    uniform: float
    active: float


@compiled(error_model="numpy")
def by_worth(value: float, worth: Array, annotator: int) -> float:
    """Multiply by the weight of an annotator, (R,); empty where all count fully."""
    return value * worth[annotator] if len(worth) else value


@compiled(error_model="numpy")
def _count(annotator: Array, total: Array, worth: Array, counts: Counts, uniform: float) -> float:
    """Count each annotator's inliers; return the part of clicks and outliers in the log evidence."""
    small_code()
    value, inliers = 0.0, counts.inliers
    for r in range(len(inliers)):
        inliers[r] = 0.0
        outliers = counts.outliers[r]
        value += by_worth(counts.clicks[r] * np.log(outliers * uniform) - outliers, worth, r)
    for n in range(len(annotator)):
        value += by_worth(np.log(1.0 + total[n]), worth, annotator[n])
        inliers[annotator[n]] += total[n] / (1.0 + total[n])
    return float(value)


@compiled(error_model="numpy")
def _learn(weight: Array, alive: Array, hands: Hands, counts: Counts, frame: Frame, values: Array) -> None:
    """Update the annotators' parameters and the scatter."""
    small_code()
    stray, marked, living = 0.0, 0.0, 0
    for r in range(len(counts.clicks)):
        stray += by_worth(counts.clicks[r] - counts.inliers[r], hands.worth, r)
        marked += by_worth(counts.inliers[r], hands.worth, r)
    usual = max(stray / frame.active, 0.2)
    chances = np.empty(len(counts.clicks))
    for b in range(int(values[LEVELS])):
        chances[b], living = 0.0, 0
        for m in range(len(weight)):
            if alive[m]:
                chances[b] += weight[m] / (1.0 + (hands.levels[b, 0] * weight[m] if frame.once else 0.0))
                living += 1
    for r in range(len(counts.clicks)):
        counts.outliers[r] = (counts.clicks[r] - counts.inliers[r] + 1.0) / (1.0 + 1.0 / usual)
        counts.ability[r] = (counts.inliers[r] + 1.0) / (chances[counts.level[r]] + 1.0)
    if frame.own_hands and marked > 1.0:
        _learn_hands(hands, counts, values[SCATTER] * values[SCATTER])
    if frame.learn_scatter and marked > living + 1:
        spread = 0.0
        for r in range(len(counts.clicks)):
            spread += by_worth(counts.seen[r, 2] * hands.precision[r], hands.worth, r)
        spread /= 2.0 * (marked - living)
        values[SCATTER] = max(values[SCATTER] * np.sqrt(min(max(spread, 0.5), 2.0)), frame.resolution)


@compiled(error_model="numpy")
def _learn_hands(hands: Hands, counts: Counts, variance: float) -> None:
    """Shrink offsets and scatters towards the crowd's, as far as chance explains the differences."""
    small_code()
    inliers, seen, precision, offset = counts.inliers, counts.seen, hands.precision, hands.offset
    annotators, total, known, heard = len(inliers), 0.0, 0.0, 0.0
    for r in range(annotators):
        total += by_worth(inliers[r], hands.worth, r)
        if inliers[r] > 2.0:
            known += by_worth(inliers[r], hands.worth, r)
            heard += by_worth(1.0, hands.worth, r)
    if heard < 4.0:
        return
    scale, middle, offsets, scales = np.empty(annotators), 0.0, 0.0, 0.0
    for r in range(annotators):
        if inliers[r] > 2.0:
            share = by_worth(inliers[r], hands.worth, r) / known
            scale[r] = np.log(max(seen[r, 2], 1e-9) / (2.0 * inliers[r]))
            middle += share * scale[r]
            away = (seen[r, 0] * seen[r, 0] + seen[r, 1] * seen[r, 1]) / (2.0 * inliers[r] * inliers[r])
            offsets += share * (away - variance / (precision[r] * inliers[r]))
    for r in range(annotators):
        if inliers[r] > 2.0:
            share = by_worth(inliers[r], hands.worth, r) / known
            scales += share * ((scale[r] - middle) * (scale[r] - middle) - 1.0 / inliers[r])
    pull = variance / max(offsets, 1e-6 * variance)
    prior = min(max(2.0 / max(scales, 1e-3), 4.0), 1000.0)
    x, y, middle = 0.0, 0.0, 0.0
    for r in range(annotators):
        share = by_worth(inliers[r], hands.worth, r) / total
        shrunk = precision[r] / (inliers[r] * precision[r] + pull)
        offset[r, 0], offset[r, 1] = seen[r, 0] * shrunk, seen[r, 1] * shrunk
        x += share * offset[r, 0]
        y += share * offset[r, 1]
        scale[r] = (prior + seen[r, 2]) / (prior + 2.0 * inliers[r])
        middle += share * np.log(scale[r])
    for r in range(annotators):
        offset[r, 0] -= x
        offset[r, 1] -= y
        precision[r] = 1.0 / min(max(scale[r] / np.exp(middle), 0.1), 10.0)


@compiled(error_model="numpy")
def _drop_isolated(
    annotator: Array, first: Array, last: Array, click: Array, total: Array, nearest: Array, worth: Array,
    heard: Array, alive: Array,
) -> int:  # fmt: skip
    """Remove the components whose annotators, by weight, count less than `SEVERAL`; return their number.

    `heard`: a workspace of zeros, (R,).
    """
    small_code()
    dropped = 0
    for m in range(len(alive)):
        if alive[m]:
            marked = 0.0
            for p in range(first[m], last[m]):
                n = click[p]
                r = annotator[n]
                if nearest[n] == m and total[n] > 1.0 and heard[r] == 0.0:
                    heard[r] = 1.0
                    marked += by_worth(1.0, worth, r)
            for p in range(first[m], last[m]):
                heard[annotator[click[p]]] = 0.0
            if marked < SEVERAL:
                alive[m] = False
                dropped += 1
    return dropped


@compiled(error_model="numpy")
def _fix_rules(
    part_support: Array, alive: Array, hands: Hands, counts: Counts, uniform: float, values: Array
) -> None:
    """Compute the values that are fixed while components move.

    The abilities of a large crowd are rounded to few values, since the cost of sums grows with their number.
    """
    small_code()
    support, living, levels, annotators = 0.0, 0, 0, len(counts.ability)
    for m in range(len(alive)):
        if alive[m]:
            support += part_support[m]
            living += 1
    for r in range(annotators):
        ability = counts.ability[r]
        hands.rate[r] = np.log(ability * hands.precision[r] / (counts.outliers[r] * uniform * 2.0 * np.pi))
        b = levels
        if annotators > DISTINCT:
            ability, b = np.exp(np.rint(8.0 * np.log(ability)) / 8.0), 0
            while b < levels and hands.levels[b, 0] != ability:
                b += 1
        if b == levels:
            hands.levels[b, 0], hands.levels[b, 1] = ability, 0.0
            levels += 1
        hands.levels[b, 1] += by_worth(1.0, hands.worth, r)
        counts.level[r] = b
    values[DENSITY] = np.log(max(living, 1) * uniform)
    values[SUPPORT] = max(support / max(living, 1), 1.0)
    values[LEVELS] = levels
