"""Inner loops of clustering: the mixture of eq. 4 (OEM-DEM paper), parameters of annotators, fixed values.

Clicks are sorted into the cells of a grid. A component visits only the cells that its gate touches: outside
this ellipse its density is negligible. The pairs of a component and a click are listed component by
component.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from raterscope.algorithms.compiling import Array, compiled, small_code

SEVERAL = 1.5 - 1e-9
"""Minimum sum of weights that counts as two annotators."""

DISTINCT = 64
"""Maximum number of annotators for which abilities are not rounded."""

SCATTER, EVIDENCE, DENSITY, SUPPORT, LEVELS, DROPPED = range(6)
"""Values of `advance` that change: the scatter, the log evidence, the logarithm of the objects' density, the
mean support of a component, the number of different abilities, and the components that were dropped."""


class AnnotatorScatters(NamedTuple):
    """Parameters of R annotators, and a workspace of zeros, `sum` (R,).

    The offset (R, 2), the precision relative to the common scatter (R,), the logarithm of the rate of marks
    over outliers (R,), the distinct abilities with the number of annotators of each, in the first rows of (R,
    2), and the weights (R,), empty where all count fully.
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

    Whether objects are marked once, whether each annotator has an offset and a scatter of their own, whether
    the scatter is estimated, its lower bound, the minimum eigenvalue of a covariance as a share of the
    squared scatter, the density of outliers, the sum of the weights of annotators with clicks.
    """

    once: bool
    per_annotator_scatter: bool
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
    """Count each annotator's inliers; return the contribution of clicks and outliers to the log evidence."""
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
def _learn(
    weight: Array, alive: Array, scatters: AnnotatorScatters, counts: Counts, frame: Frame, values: Array
) -> None:
    """Update the annotators' parameters and the scatter."""
    small_code()
    stray, marked, living = 0.0, 0.0, 0
    for r in range(len(counts.clicks)):
        stray += by_worth(counts.clicks[r] - counts.inliers[r], scatters.worth, r)
        marked += by_worth(counts.inliers[r], scatters.worth, r)
    usual = max(stray / frame.active, 0.2)
    chances = np.empty(len(counts.clicks))
    for b in range(int(values[LEVELS])):
        chances[b], living = 0.0, 0
        for m in range(len(weight)):
            if alive[m]:
                chances[b] += weight[m] / (1.0 + (scatters.levels[b, 0] * weight[m] if frame.once else 0.0))
                living += 1
    for r in range(len(counts.clicks)):
        counts.outliers[r] = (counts.clicks[r] - counts.inliers[r] + 1.0) / (1.0 + 1.0 / usual)
        counts.ability[r] = (counts.inliers[r] + 1.0) / (chances[counts.level[r]] + 1.0)
    if frame.per_annotator_scatter and marked > 1.0:
        _estimate_scatters(scatters, counts, values[SCATTER] * values[SCATTER])
    if frame.learn_scatter and marked > living + 1:
        spread = 0.0
        for r in range(len(counts.clicks)):
            spread += by_worth(counts.seen[r, 2] * scatters.precision[r], scatters.worth, r)
        spread /= 2.0 * (marked - living)
        values[SCATTER] = max(values[SCATTER] * np.sqrt(min(max(spread, 0.5), 2.0)), frame.resolution)


@compiled(error_model="numpy")
def _estimate_scatters(scatters: AnnotatorScatters, counts: Counts, variance: float) -> None:
    """Shrink offsets and scatters towards the crowd's as far as chance explains the differences."""
    small_code()
    inliers, seen, precision, offset = counts.inliers, counts.seen, scatters.precision, scatters.offset
    annotators, total, known, heard = len(inliers), 0.0, 0.0, 0.0
    for r in range(annotators):
        total += by_worth(inliers[r], scatters.worth, r)
        if inliers[r] > 2.0:
            known += by_worth(inliers[r], scatters.worth, r)
            heard += by_worth(1.0, scatters.worth, r)
    if heard < 4.0:
        return
    scale, middle, offsets, scales = np.empty(annotators), 0.0, 0.0, 0.0
    for r in range(annotators):
        if inliers[r] > 2.0:
            share = by_worth(inliers[r], scatters.worth, r) / known
            scale[r] = np.log(max(seen[r, 2], 1e-9) / (2.0 * inliers[r]))
            middle += share * scale[r]
            away = (seen[r, 0] * seen[r, 0] + seen[r, 1] * seen[r, 1]) / (2.0 * inliers[r] * inliers[r])
            offsets += share * (away - variance / (precision[r] * inliers[r]))
    for r in range(annotators):
        if inliers[r] > 2.0:
            share = by_worth(inliers[r], scatters.worth, r) / known
            scales += share * ((scale[r] - middle) * (scale[r] - middle) - 1.0 / inliers[r])
    pull = variance / max(offsets, 1e-6 * variance)
    prior = min(max(2.0 / max(scales, 1e-3), 4.0), 1000.0)
    x, y, middle = 0.0, 0.0, 0.0
    for r in range(annotators):
        share = by_worth(inliers[r], scatters.worth, r) / total
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
    """Remove the components whose annotators' weights add up to less than `SEVERAL`; return their number.

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
    part_support: Array,
    alive: Array,
    scatters: AnnotatorScatters,
    counts: Counts,
    uniform: float,
    values: Array,
) -> None:
    """Compute the values that are fixed while components move.

    The abilities of a large crowd are rounded to few values, because the cost of sums grows with the number
    of values.
    """
    small_code()
    support, living, levels, annotators = 0.0, 0, 0, len(counts.ability)
    for m in range(len(alive)):
        if alive[m]:
            support += part_support[m]
            living += 1
    for r in range(annotators):
        ability = counts.ability[r]
        scatters.rate[r] = np.log(
            ability * scatters.precision[r] / (counts.outliers[r] * uniform * 2.0 * np.pi)
        )
        b = levels
        if annotators > DISTINCT:
            ability, b = np.exp(np.rint(8.0 * np.log(ability)) / 8.0), 0
            while b < levels and scatters.levels[b, 0] != ability:
                b += 1
        if b == levels:
            scatters.levels[b, 0], scatters.levels[b, 1] = ability, 0.0
            levels += 1
        scatters.levels[b, 1] += by_worth(1.0, scatters.worth, r)
        counts.level[r] = b
    values[DENSITY] = np.log(max(living, 1) * uniform)
    values[SUPPORT] = max(support / max(living, 1), 1.0)
    values[LEVELS] = levels


@compiled(error_model="numpy")
def density_pairs(
    x: Array,
    y: Array,
    cell_start: Array,
    grid: Array,
    mean: Array,
    covariance: Array,
    weight: Array,
    gate: float,
    start: Array,
    click: Array,
    value: Array,
    total: Array,
) -> int:
    """List pi_m N(x; mu_m, Sigma_m) of components and clicks within their gates; return the number of pairs.

    `x`, `y`: (N,) float64, clicks sorted by cell.
    `cell_start`: (cells + 1,) int64.
    `grid`: (5,) float64, left, top, side of a cell, columns, rows.
    `mean`, `covariance`, `weight`: (M, 2), (M, 3), (M,) float64, the covariance as xx, xy, yy. Components of
        weight 0 are skipped.
    `gate`: largest squared Mahalanobis distance that is listed.
    `start`: (M + 1,) int64, filled with where each component's pairs begin.
    `click`, `value`: (capacity,) int32 and float64, filled with the pairs that fit.
    `total`: (N,) float64, filled with the sums over components.
    """
    left, top, side = grid[0], grid[1], grid[2]
    columns, rows = int(grid[3]), int(grid[4])
    total[:] = 0.0
    count = 0
    for m in range(len(weight)):
        start[m] = count
        if weight[m] <= 0.0:
            continue
        xx, xy, yy = covariance[m, 0], covariance[m, 1], covariance[m, 2]
        determinant = xx * yy - xy * xy
        height = weight[m] / (2.0 * np.pi * np.sqrt(determinant))
        reach_x, reach_y = np.sqrt(gate * xx), np.sqrt(gate * yy)
        first_column = max(0, int(np.floor((mean[m, 0] - reach_x - left) / side)))
        last_column = min(columns - 1, int(np.floor((mean[m, 0] + reach_x - left) / side)))
        first_row = max(0, int(np.floor((mean[m, 1] - reach_y - top) / side)))
        last_row = min(rows - 1, int(np.floor((mean[m, 1] + reach_y - top) / side)))
        for row in range(first_row, last_row + 1):
            base = row * columns
            for n in range(cell_start[base + first_column], cell_start[base + last_column + 1]):
                dx, dy = x[n] - mean[m, 0], y[n] - mean[m, 1]
                distance = (yy * dx * dx - 2.0 * xy * dx * dy + xx * dy * dy) / determinant
                if distance > gate:
                    continue
                if count < len(click):
                    density = height * np.exp(-0.5 * distance)
                    click[count] = n
                    value[count] = density
                    total[n] += density
                count += 1
    start[len(weight)] = count
    return count


@compiled(error_model="numpy")
def mix(
    total: Array,
    annotator: Array,
    worth: Array,
    reliability: Array,
    uniform: float,
    inlier: Array,
    count: Array,
) -> float:
    """Compute inlier probabilities and expected counts (eqs. 8, 12); return the log likelihood (eq. 4).

    `total`: (N,) float64, density of the mixture at each click.
    `annotator`: (N,) int64.
    `worth`: (R,) float64, weight of each annotator; empty if all are 1.
    `reliability`: (R,) float64.
    `uniform`: density of outliers; 0 for a mixture without them.
    `inlier`: (N,) float64, filled with the probability of being no outlier.
    `count`: (R,) float64, filled with each annotator's expected number of inliers, without weights.
    The log likelihood counts annotators by weight.
    """
    likelihood = 0.0
    count[:] = 0.0
    for n in range(len(total)):
        r = annotator[n]
        inside = reliability[r] * total[n]
        density = inside + (1.0 - reliability[r]) * uniform
        inlier[n] = inside / density if density > 0.0 else 0.0
        likelihood += by_worth(np.log(max(density, 1e-300)), worth, r)
        count[r] += inlier[n]
    return likelihood


@compiled(error_model="numpy")
def maximise(
    x: Array,
    y: Array,
    start: Array,
    click: Array,
    value: Array,
    total: Array,
    annotator: Array,
    worth: Array,
    reliability: Array,
    uniform: float,
    least: float,
    floor: float,
    ceiling: float,
    mean: Array,
    covariance: Array,
    support: Array,
    spread: Array,
) -> None:
    """Compute the mean and covariance of each component from its share of the clicks (eqs. 13 and 14).

    Components are updated one after the other: the clicks of a component annihilated by eq. 15 are free for
    the next.

    `x`, `y`, `start`, `click`, `value`, `total`: as written by `density_pairs`; without the annihilated
    components afterwards.
    `annotator`, `worth`, `reliability`, `uniform`: as `mix` takes them.
    `least`: a component with no more support than this is annihilated. Below 0, none is.
    `floor`, `ceiling`: smallest and largest eigenvalue that a covariance may have.
    `mean`, `covariance`: (M, 2), (M, 3) float64, replaced. Components with no support keep theirs.
    `support`: (M,) float64, filled with the expected number of clicks of each component, weighted by
        annotator.
    `spread`: (M, 3) float64, filled with the sums of squares about the new mean: xx, xy, yy.
    """
    for m in range(len(support)):
        count, sum_x, sum_y, sum_xx, sum_xy, sum_yy = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        old_x, old_y = mean[m, 0], mean[m, 1]
        for pair in range(start[m], start[m + 1]):
            n = click[pair]
            r = annotator[n]
            density = reliability[r] * total[n] + (1.0 - reliability[r]) * uniform
            share = by_worth(reliability[r] * value[pair] / density, worth, r) if density > 0.0 else 0.0
            dx, dy = x[n] - old_x, y[n] - old_y
            count += share
            sum_x += share * dx
            sum_y += share * dy
            sum_xx += share * dx * dx
            sum_xy += share * dx * dy
            sum_yy += share * dy * dy
        support[m] = count
        spread[m, :] = 0.0
        if count <= least:
            for pair in range(start[m], start[m + 1]):
                total[click[pair]] = max(0.0, total[click[pair]] - value[pair])
        if count <= 1e-12:
            continue
        shift_x, shift_y = sum_x / count, sum_y / count
        spread[m, 0] = sum_xx - count * shift_x * shift_x
        spread[m, 1] = sum_xy - count * shift_x * shift_y
        spread[m, 2] = sum_yy - count * shift_y * shift_y
        mean[m, 0], mean[m, 1] = old_x + shift_x, old_y + shift_y
        xx, xy, yy = spread[m, 0] / count, spread[m, 1] / count, spread[m, 2] / count
        middle, half = 0.5 * (xx + yy), np.sqrt((0.5 * (xx - yy)) ** 2 + xy * xy)
        small, large = min(max(middle - half, floor), ceiling), min(max(middle + half, floor), ceiling)
        if half > 1e-12 * middle:
            cosine, sine = (xx - yy) / (2.0 * half), xy / half
        else:
            cosine, sine = 1.0, 0.0
        covariance[m, 0] = 0.5 * ((large + small) + (large - small) * cosine)
        covariance[m, 1] = 0.5 * (large - small) * sine
        covariance[m, 2] = 0.5 * ((large + small) - (large - small) * cosine)


IGNORED = 44
"""Number of lower bits of a float that cells in `count_pairs` ignore: 256 cells for each power of two."""


@compiled(error_model="numpy")
def count_pairs(
    x: Array,
    y: Array,
    annotator: Array,
    worth: Array,
    edges: Array,
    first: Array,
    lowest: int,
    squares: Array,
    bits: Array,
    same: Array,
    other: Array,
) -> None:
    """Count pairs of clicks by distance, within and between annotators, weighted by the annotators' weights.

    `x`, `y`, `annotator`: (N,) float64, float64, int64.
    `worth`: (R,) float64 or None, weight of each annotator.
    `edges`: (bins + 1,) float64, squared distances that bound the bins. Nearer pairs go to the first bin,
    farther ones to none.
    `first`: (cells,) int64, the first bin of each cell of squared distances, from the cell `lowest`.
    `squares`, `bits`: (N,) float64, a workspace, and the same memory as int64.
    `same`, `other`: (bins,) int64, float64 with `worth`; added to.
    """
    small_code()
    bins = len(same)
    farthest = edges[bins]
    for i in range(len(x)):
        for j in range(i):
            squares[j] = (x[i] - x[j]) ** 2 + (y[i] - y[j]) ** 2
        own = annotator[i]
        for j in range(i):
            square = squares[j]
            if square >= farthest:
                continue
            k = first[max((bits[j] >> IGNORED) - lowest, 0)]
            while square >= edges[k + 1]:
                k += 1
            if worth is None:
                if own == annotator[j]:
                    same[k] += 1
                else:
                    other[k] += 1
            elif annotator[i] == annotator[j]:
                same[k] += worth[annotator[i]] ** 2
            else:
                other[k] += worth[annotator[i]] * worth[annotator[j]]


@compiled(error_model="numpy")
def count_own(x: Array, y: Array, annotator: Array, radius: float, count: Array) -> None:
    """Add to `count` (R,) each annotator's pairs of clicks within a radius; clicks sorted by annotator."""
    small_code()
    for i in range(len(x)):
        j = i - 1
        while j >= 0 and annotator[j] == annotator[i]:
            if (x[i] - x[j]) ** 2 + (y[i] - y[j]) ** 2 <= radius * radius:
                count[annotator[i]] += 1.0
            j -= 1
