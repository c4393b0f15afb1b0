"""Inner loops of the crowd model: clicks sorted into cells, one component at a time.

The model is eq. 1 of the OEM-DEM paper with three additions. Every annotator has an offset and a scatter of
their own. An annotator marks an object at most once: object m is marked with odds ``ability_r * weight_m``,
and at most one of the annotator's clicks near m is that mark. Every annotator has a rate of outliers of their
own. Belief propagation over clicks and objects gives the posterior of which click marks which object. It is
exact (eqs. 8 and 9) wherever an annotator has one click near an object.

A message is the odds, against being an outlier, that a click marks a component; `total` sums them over
components, so that the inlier probability of eq. 8 is total / (1 + total).

An annotator of weight w counts as w annotators with equal clicks. The messages stay the same; their share in
the components and in the log evidence is multiplied by w.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from raterscope.algorithms.clicks._kernels import (
    DENSITY,
    DROPPED,
    EVIDENCE,
    LEVELS,
    SCATTER,
    SEVERAL,
    SUPPORT,
    AnnotatorScatters,
    Counts,
    Frame,
    _count,
    _drop_isolated,
    _fix_rules,
    _learn,
    by_worth,
)
from raterscope.algorithms.compiling import Array, compiled, small_code

FEW = 2048
"""Maximum number of clicks visited in a row of cells; without it thousands on one object have quadratic cost.
"""

STRENGTH = 10.0
"""Pseudo-clicks of the common scatter in a component's covariance."""

GATE = 25.0
"""Squared Mahalanobis distance beyond which a component is negligible: exp(-12.5) of its height."""


class Marks(NamedTuple):
    """N clicks sorted by cell.

    x, y, annotator (N,), start (cells + 1,), grid (left, top, side, columns, rows).
    """

    x: Array
    y: Array
    annotator: Array
    start: Array
    grid: Array


@compiled(error_model="numpy")
def _span(grid: Array, x: float, y: float, reach: float) -> Array:
    small_code()
    columns, rows = int(grid[3]), int(grid[4])
    return (
        max(0, int(np.floor((x - reach - grid[0]) / grid[2]))),
        min(columns - 1, int(np.floor((x + reach - grid[0]) / grid[2]))),
        max(0, int(np.floor((y - reach - grid[1]) / grid[2]))),
        min(rows - 1, int(np.floor((y + reach - grid[1]) / grid[2]))),
        columns,
    )


@compiled(error_model="numpy")
def crowding(marks: Marks, worth: Array, reach: float, others: bool, rows: Array, count: Array) -> None:
    """Count the clicks around each of some clicks, near ones more; with `others` only other annotators'.

    A click counts by the weight of its annotator. With weights, the count is 0 where those of the near clicks
    and the click itself add up to less than `SEVERAL`. Of very many clicks only a sample is counted.
    """
    small_code()
    for i in rows:
        left, right, top, bottom, columns = _span(marks.grid, marks.x[i], marks.y[i], reach)
        nearby, weight_near = 0.0, by_worth(1.0, worth, marks.annotator[i])
        for row in range(top, bottom + 1):
            first, last = marks.start[row * columns + left], marks.start[row * columns + right + 1]
            step = 1 + (last - first) // FEW
            for n in range(first, last, step):
                away = ((marks.x[n] - marks.x[i]) ** 2 + (marks.y[n] - marks.y[i]) ** 2) / (reach * reach)
                if away < 1.0 and n != i and not (others and marks.annotator[n] == marks.annotator[i]):
                    nearby += by_worth(step * (1.0 - away), worth, marks.annotator[n])
                    if len(worth):
                        weight_near += step * worth[marks.annotator[n]]
        count[i] = 0.0 if len(worth) and weight_near < SEVERAL else nearby


@compiled(error_model="numpy")
def choose(marks: Marks, order: Array, spacing: float, most: int) -> Array:
    """Choose clicks in order, none within `spacing` of an earlier choice."""
    small_code()
    shaded = np.empty(len(marks.x), dtype=np.bool_)
    for n in range(len(shaded)):
        shaded[n] = False
    chosen = np.empty(min(most, len(order)), dtype=np.int64)
    count = 0
    for i in order:
        if shaded[i]:
            continue
        if count == len(chosen):
            break
        chosen[count] = i
        count += 1
        left, right, top, bottom, columns = _span(marks.grid, marks.x[i], marks.y[i], spacing)
        for row in range(top, bottom + 1):
            for n in range(marks.start[row * columns + left], marks.start[row * columns + right + 1]):
                if (marks.x[n] - marks.x[i]) ** 2 + (marks.y[n] - marks.y[i]) ** 2 < spacing * spacing:
                    shaded[n] = True
    return chosen[:count]


@compiled(error_model="numpy")
def gather(
    begin: int, end: int, count: int, marks: Marks, mean: Array, alive: Array, reach: float, first: Array,
    last: Array, click: Array,
) -> int:  # fmt: skip
    """Append the clicks near components to a list; return their number, even if the list is too short."""
    small_code()
    for m in range(begin, end):
        first[m] = count
        if alive[m]:
            x, y = mean[m, 0], mean[m, 1]
            left, right, top, bottom, columns = _span(marks.grid, x, y, reach)
            for row in range(top, bottom + 1):
                for n in range(marks.start[row * columns + left], marks.start[row * columns + right + 1]):
                    if (marks.x[n] - x) ** 2 + (marks.y[n] - y) ** 2 <= reach * reach:
                        if count < len(click):
                            click[count] = n
                        count += 1
        last[m] = count
    return count


class Parts(NamedTuple):
    """M components: mean (M, 2), covariance (M, 3) as xx, xy, yy, weight, support, alive (M,)."""

    mean: Array
    covariance: Array
    weight: Array
    support: Array
    alive: Array


class Pairs(NamedTuple):
    """Clicks near components: first and last (M,) into click and message (pairs,); total (N,)."""

    first: Array
    last: Array
    click: Array
    message: Array
    total: Array


class Rules(NamedTuple):
    """Values that are fixed while components move.

    Whether objects are marked once, the squared scatter, the minimum eigenvalue of a covariance, the
    logarithm of the objects' density, the mean support of a component, the number of distinct abilities.
    """

    once: bool
    variance: float
    floor: float
    density: float
    support: float
    levels: int


@compiled(error_model="numpy")
def _rules(frame: Frame, values: Array) -> Rules:
    small_code()
    variance = values[SCATTER] * values[SCATTER]
    return Rules(
        frame.once, variance, frame.floor * variance, values[DENSITY], values[SUPPORT], int(values[LEVELS])
    )


@compiled(error_model="numpy")
def _expect(
    m: int, marks: Marks, parts: Parts, pairs: Pairs, scatters: AnnotatorScatters, rules: Rules
) -> None:
    """Update the messages of one component, and the totals of its clicks."""
    small_code()
    first, last, click = pairs.first[m], pairs.last[m], pairs.click
    message, sums, annotator = pairs.message, pairs.total, marks.annotator
    xx, xy, yy = parts.covariance[m, 0], parts.covariance[m, 1], parts.covariance[m, 2]
    determinant = xx * yy - xy * xy
    height = np.log(parts.weight[m]) - 0.5 * np.log(determinant)
    for p in range(first, last):
        n = click[p]
        r = annotator[n]
        dx = marks.x[n] - scatters.offset[r, 0] - parts.mean[m, 0]
        dy = marks.y[n] - scatters.offset[r, 1] - parts.mean[m, 1]
        away = (yy * dx * dx - 2.0 * xy * dx * dy + xx * dy * dy) / determinant * scatters.precision[r]
        rest = max(0.0, sums[n] - message[p])
        odds = np.exp(height + scatters.rate[r] - 0.5 * away) if away < GATE else 0.0
        message[p] = odds
        if rules.once:
            sums[n] = rest
            scatters.sum[r] += odds / (1.0 + rest)
        else:
            sums[n] = rest + odds
    if not rules.once:
        return
    for p in range(first, last):
        odds = message[p]
        if odds > 0.0:
            n = click[p]
            others = scatters.sum[annotator[n]] - odds / (1.0 + sums[n])
            message[p] = odds / (1.0 + max(0.0, others))
    for p in range(first, last):
        n = click[p]
        scatters.sum[annotator[n]] = 0.0
        sums[n] += message[p]


@compiled(error_model="numpy")
def _maximise(
    m: int, marks: Marks, parts: Parts, pairs: Pairs, scatters: AnnotatorScatters, rules: Rules
) -> None:
    """Update one component: its weight, and eqs. 13 and 14 with the annotators' offsets and scatters."""
    small_code()
    first, last, click = pairs.first[m], pairs.last[m], pairs.click
    message, sums, annotator = pairs.message, pairs.total, marks.annotator
    support, total, sum_x, sum_y, sum_xx, sum_xy, sum_yy = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for p in range(first, last):
        if message[p] <= 0.0:
            continue
        n = click[p]
        r = annotator[n]
        share = by_worth(message[p] / (1.0 + sums[n]), scatters.worth, r)
        weight = share * scatters.precision[r]
        dx = marks.x[n] - scatters.offset[r, 0] - parts.mean[m, 0]
        dy = marks.y[n] - scatters.offset[r, 1] - parts.mean[m, 1]
        support += share
        total += weight
        sum_x += weight * dx
        sum_y += weight * dy
        sum_xx += weight * dx * dx
        sum_xy += weight * dx * dy
        sum_yy += weight * dy * dy
    parts.support[m] = support
    if total <= 1e-9:
        parts.weight[m] = max(0.1 * parts.weight[m], 1e-12)
        return
    shift_x, shift_y = sum_x / total, sum_y / total
    parts.mean[m, 0] += shift_x
    parts.mean[m, 1] += shift_y
    count = STRENGTH + support
    xx = (STRENGTH * rules.variance + sum_xx - total * shift_x * shift_x) / count
    xy = (sum_xy - total * shift_x * shift_y) / count
    yy = (STRENGTH * rules.variance + sum_yy - total * shift_y * shift_y) / count
    lift = max(0.0, rules.floor - 0.5 * (xx + yy) + np.sqrt((0.5 * (xx - yy)) ** 2 + xy * xy))
    parts.covariance[m, 0], parts.covariance[m, 1], parts.covariance[m, 2] = xx + lift, xy, yy + lift
    weight = parts.weight[m]
    for _ in range(3 if rules.once else 1):
        able = 0.0
        for b in range(rules.levels):
            ability = scatters.levels[b, 0]
            able += scatters.levels[b, 1] * ability / (1.0 + (ability * weight if rules.once else 0.0))
        weight = min(max(support / able, 1e-12), 1e6)
    parts.weight[m] = weight


@compiled(error_model="numpy")
def _value(
    m: int, marks: Marks, parts: Parts, pairs: Pairs, scatters: AnnotatorScatters, rules: Rules
) -> float:
    """Return the contribution of one component to the log evidence."""
    small_code()
    first, last, click = pairs.first[m], pairs.last[m], pairs.click
    message, sums, annotator = pairs.message, pairs.total, marks.annotator
    value, total, support = 0.0, 0.0, 0.0
    for b in range(rules.levels):
        odds = scatters.levels[b, 0] * parts.weight[m]
        value -= scatters.levels[b, 1] * (np.log(1.0 + odds) if rules.once else odds)
    for p in range(first, last):
        if message[p] <= 0.0:
            continue
        n = click[p]
        r = annotator[n]
        share = by_worth(message[p] / (1.0 + sums[n]), scatters.worth, r)
        support += share
        total += share * scatters.precision[r]
        if rules.once:
            odds = message[p] / (1.0 + max(0.0, sums[n] - message[p]))
            value -= by_worth(np.log(1.0 + odds), scatters.worth, r)
            scatters.sum[r] += odds / (1.0 + odds)
    if rules.once:
        for p in range(first, last):
            r = annotator[click[p]]
            if scatters.sum[r] > 0.0:
                value -= by_worth(np.log(max(1.0 - scatters.sum[r], 1e-12)), scatters.worth, r)
                scatters.sum[r] = 0.0
    xx, xy, yy = parts.covariance[m, 0], parts.covariance[m, 1], parts.covariance[m, 2]
    determinant = xx * yy - xy * xy
    value += rules.density + np.log(2.0 * np.pi) + 0.5 * np.log(determinant) - np.log(1.0 + total)
    relative = max(support, 0.1) / rules.support
    value += np.log(relative) - relative + 0.5 * np.log(2.0 * np.pi / (1.0 + max(support, 0.1)))
    trace = rules.variance * (xx + yy) / determinant
    value -= 0.5 * STRENGTH * (np.log(determinant / rules.variance**2) + trace - 2.0)
    return float(value - 1.5 * np.log(1.0 + support / STRENGTH))


@compiled(error_model="numpy")
def prune(
    order: Array, begin: int, budget: int, near: float, rounds: int, bound: int, dirty: Array, stamp: Array,
    marks: Marks, parts: Parts, pairs: Pairs, scatters: AnnotatorScatters, frame: Frame, values: Array,
) -> Array:  # fmt: skip
    """Remove each component whose removal raises the evidence.

    Components within `near` adapt by at most `rounds` rounds of EM; nothing else moves. A component is tried
    again only after another one within reach was removed.

    The result holds the position in `order` that is reached after about `budget` pairs, the number of
    components removed, and the evidence gained.
    """
    small_code()
    rules = _rules(frame, values)
    first, last, click, message, total = pairs.first, pairs.last, pairs.click, pairs.message, pairs.total
    mean, covariance, weight, support, alive = (
        parts.mean, parts.covariance, parts.weight, parts.support, parts.alive
    )  # fmt: skip
    components = len(weight)
    active = np.empty(components, dtype=np.int64)
    touched = np.empty(len(marks.x), dtype=np.int64)
    living = 0
    for m in range(components):
        living += alive[m]
    removed, gain, visited, position = 0, 0.0, 0, begin
    while position < len(order) and visited < budget:
        m = order[position]
        position += 1
        if not alive[m] or not dirty[m] or living <= bound:
            continue
        dirty[m] = False
        visited += components // 16
        # The neighbours of the component, which itself is the last of `active`.
        count = 0
        for k in range(components):
            if k != m and alive[k]:
                dx, dy = mean[k, 0] - mean[m, 0], mean[k, 1] - mean[m, 1]
                if dx * dx + dy * dy < near * near:
                    active[count] = k
                    count += 1
        active[count] = m
        # Their evidence, and that of their clicks, each of which counts once.
        stamp[0] += 1
        clicks, listed = 0, 0
        before = 0.0
        for k in range(count + 1):
            before += _value(active[k], marks, parts, pairs, scatters, rules)
            listed += last[active[k]] - first[active[k]]
            for p in range(first[active[k]], last[active[k]]):
                n = click[p]
                if stamp[n + 1] != stamp[0]:
                    stamp[n + 1] = stamp[0]
                    touched[clicks] = n
                    clicks += 1
                    before += by_worth(np.log(1.0 + total[n]), scatters.worth, marks.annotator[n])
        # A copy of what the trial changes.
        kept_message, kept_total, kept = np.empty(listed), np.empty(clicks), np.empty((count + 1, 7))
        q = 0
        for k in range(count + 1):
            a = active[k]
            kept[k, 0], kept[k, 1] = mean[a, 0], mean[a, 1]
            for i in range(3):
                kept[k, 2 + i] = covariance[a, i]
            kept[k, 5], kept[k, 6] = weight[a], support[a]
            for p in range(first[a], last[a]):
                kept_message[q] = message[p]
                q += 1
        for k in range(clicks):
            kept_total[k] = total[touched[k]]
        # The trial: without the component, its neighbours adapt.
        for p in range(first[m], last[m]):
            n = click[p]
            total[n] = max(0.0, total[n] - message[p])
            message[p] = 0.0
        for step in range(rounds + 2 if count > 0 else 1):
            for k in range(count):
                if 0 < step <= rounds:
                    _maximise(active[k], marks, parts, pairs, scatters, rules)
                _expect(active[k], marks, parts, pairs, scatters, rules)
            if step <= rounds:
                visited += listed
        after = 0.0
        for k in range(count):
            after += _value(active[k], marks, parts, pairs, scatters, rules)
        for k in range(clicks):
            n = touched[k]
            after += by_worth(np.log(1.0 + total[n]), scatters.worth, marks.annotator[n])
        if after > before:
            alive[m] = False
            living -= 1
            removed += 1
            gain += after - before
            for k in range(count):
                dirty[active[k]] = True
            continue
        # It stays: the copy is restored.
        q = 0
        for k in range(count + 1):
            a = active[k]
            mean[a, 0], mean[a, 1] = kept[k, 0], kept[k, 1]
            for i in range(3):
                covariance[a, i] = kept[k, 2 + i]
            weight[a], support[a] = kept[k, 5], kept[k, 6]
            for p in range(first[a], last[a]):
                message[p] = kept_message[q]
                q += 1
        for k in range(clicks):
            total[touched[k]] = kept_total[k]
    return position, removed, gain


@compiled(error_model="numpy")
def _survey(
    begin: int, end: int, marks: Marks, parts: Parts, pairs: Pairs, scatters: AnnotatorScatters, rules: Rules,
    seen: Array, nearest: Array, strongest: Array,
) -> float:  # fmt: skip
    """Sum over components by annotator, find each click's nearest component; return the log evidence.

    The sums are over each annotator's clicks, without weights.

    `seen`: (R, 3) float64, added to: expected sums of distances from components along x and y, and of squared
    Mahalanobis distances less the annotator's offset. `nearest`, `strongest`: (N,) int64 and float64,
    component with the largest message so far, and that message.
    """
    small_code()
    value = 0.0
    for m in range(begin, end):
        if not parts.alive[m]:
            continue
        value += _value(m, marks, parts, pairs, scatters, rules)
        xx, xy, yy = parts.covariance[m, 0], parts.covariance[m, 1], parts.covariance[m, 2]
        determinant = xx * yy - xy * xy
        for p in range(pairs.first[m], pairs.last[m]):
            message = pairs.message[p]
            if message <= 0.0:
                continue
            n = pairs.click[p]
            r = marks.annotator[n]
            if message > strongest[n]:
                strongest[n], nearest[n] = message, m
            share = message / (1.0 + pairs.total[n])
            dx, dy = marks.x[n] - parts.mean[m, 0], marks.y[n] - parts.mean[m, 1]
            seen[r, 0] += share * dx
            seen[r, 1] += share * dy
            dx, dy = dx - scatters.offset[r, 0], dy - scatters.offset[r, 1]
            seen[r, 2] += share * (yy * dx * dx - 2.0 * xy * dx * dy + xx * dy * dy) / determinant
    return value


@compiled(error_model="numpy")
def advance(
    begin: int, end: int, fixed: int, moving: int, surveys: bool, ends: bool, learns: bool, drops: bool,
    marks: Marks, parts: Parts, pairs: Pairs, scatters: AnnotatorScatters, counts: Counts, frame: Frame,
    values: Array, nearest: Array, strongest: Array,
) -> None:  # fmt: skip
    """Run steps of the fit.

    `begin`, `end`: range of components that are swept and surveyed.
    `fixed`, `moving`: rounds over one component after the other, of E steps, then of M and E steps.
    `surveys`: sum over the components by annotator, find each click's nearest component.
    `ends`: compute evidence, inliers and the rules of the next rounds; after the survey of all components.
    `learns`, `drops`: before that, update the annotators' parameters, and remove isolated components.
    `values`: (6,) float64, updated; see `SCATTER` of `_kernels`.
    `nearest`, `strongest`: as for `_survey`.
    """
    small_code()
    rules = _rules(frame, values)
    for iteration in range(fixed + moving):
        for m in range(begin, end):
            if parts.alive[m]:
                if iteration >= fixed:
                    _maximise(m, marks, parts, pairs, scatters, rules)
                _expect(m, marks, parts, pairs, scatters, rules)
    if surveys:
        if begin == 0:
            values[EVIDENCE] = 0.0
            for n in range(len(nearest)):
                nearest[n], strongest[n] = -1, 0.0
            for r in range(len(counts.seen)):
                counts.seen[r, 0], counts.seen[r, 1], counts.seen[r, 2] = 0.0, 0.0, 0.0
        values[EVIDENCE] += _survey(
            begin, end, marks, parts, pairs, scatters, rules, counts.seen, nearest, strongest
        )
        if ends:
            values[EVIDENCE] += _count(marks.annotator, pairs.total, scatters.worth, counts, frame.uniform)
    if learns:
        _learn(parts.weight, parts.alive, scatters, counts, frame, values)
    if drops:
        values[DROPPED] = _drop_isolated(
            marks.annotator, pairs.first, pairs.last, pairs.click, pairs.total, nearest, scatters.worth,
            scatters.sum, parts.alive,
        )  # fmt: skip
    if ends:
        _fix_rules(parts.support, parts.alive, scatters, counts, frame.uniform, values)
