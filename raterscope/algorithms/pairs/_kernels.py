"""Inner loops of the exact paths, event by event, with an active set that may shrink.

Column i of the regression is annotator i for i < p, and the knockoff of annotator i - p otherwise. With R the
annotators' scaled Gram matrix and s the gaps of the knockoffs, the Gram matrix of all is [[R, R - S], [R - S,
R]]. A product with it needs only one product with R, of half the size: R (x + x~) minus s x~ or s x.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from raterscope.algorithms.compiling import Array, compiled, small_code

INSIDE, BOUNDARY, FREE = 0, 1, 2
"""States of a column: dual between -1 and 1; dual at -1 or 1 and coefficient 0; coefficient that moves."""

_TIE = 1e-12
_DEPENDENT = 1e-11
_STILL = 1e-11


class State(NamedTuple):
    """State of a path of m columns."""

    at: Array  # (3,): time of ISS or lambda of LASSO; the largest pull; free columns
    dual: Array  # (m,): p of ISS; for LASSO the correlations with the residual
    sign: Array  # (m,): of the side of the boundary
    kind: Array  # (m,): `INSIDE`, `BOUNDARY`, `FREE`
    value: Array  # (m,): coefficients
    slope: Array  # (m,): the last solution: coefficients of ISS, growth rates of LASSO
    product: Array  # (m,): the Gram matrix times the slope
    entry: Array  # (m,): 1 / time or lambda where the coefficient first leaves 0; 0 until it does
    order: Array  # (m,): the free columns, in order of entry
    factor: Array  # (c, c): lower triangular: of the Gram matrix of the free columns
    half: Array  # (c,): the right side, solved forward


def start(columns: int, factor: Array | None = None) -> State:
    """Begin a path at 0. The next path may reuse the memory of a factor."""
    zeros = [np.zeros(columns) for _ in range(7)]
    if factor is None:
        factor = np.empty((columns, columns))
    return State(
        np.zeros(3), zeros[0], zeros[1], np.zeros(columns, dtype=np.int8), zeros[2], zeros[3], zeros[4],
        zeros[5], np.zeros(columns, dtype=np.int64), factor, zeros[6],
    )  # fmt: skip


@compiled(fastmath={"reassoc", "contract"})
def _add(gram: Array, gap: Array, state: State, column: int, right: float) -> bool:
    """Make a column free; return False if it depends linearly on the free columns."""
    annotators = len(gram)
    count = int(state.at[2])
    row = state.factor[count]
    own = column % annotators
    for k in range(count):
        other = state.order[k]
        total = gram[own, other % annotators]
        if other % annotators == own:
            total -= gap[own]
        before = state.factor[k]
        for j in range(k):
            total -= before[j] * row[j]
        row[k] = total / before[k]
    rest = 1.0
    for k in range(count):
        rest -= row[k] * row[k]
        right -= row[k] * state.half[k]
    if rest < _DEPENDENT:
        return False
    row[count] = np.sqrt(rest)
    state.half[count] = right / row[count]
    state.order[count] = column
    state.kind[column] = FREE
    state.at[2] = count + 1
    return True


@compiled()
def _drop(state: State, position: int) -> None:
    """Remove a free column: delete its row of the factor, and restore the triangular form by rotations."""
    small_code()
    count = int(state.at[2])
    factor, half = state.factor, state.half
    state.kind[state.order[position]] = BOUNDARY
    for k in range(position, count - 1):
        state.order[k] = state.order[k + 1]
        factor[k, : k + 2] = factor[k + 1, : k + 2]
    for k in range(position, count - 1):
        value, two = factor[k, k], factor[k, k + 1]
        far = np.hypot(value, two)
        cosine, sine = value / far, two / far
        for j in range(k, count - 1):
            value, two = factor[j, k], factor[j, k + 1]
            factor[j, k] = cosine * value + sine * two
            factor[j, k + 1] = cosine * two - sine * value
        value, two = half[k], half[k + 1]
        half[k] = cosine * value + sine * two
        half[k + 1] = cosine * two - sine * value
    state.at[2] = count - 1


@compiled()
def _solve(state: State, solution: Array) -> None:
    """Solve for the free columns; `solution` has their order."""
    count = int(state.at[2])
    for k in range(count):
        solution[k] = state.half[k]
    for k in range(count - 1, -1, -1):
        row = state.factor[k]
        solution[k] /= row[k]
        for j in range(k):
            solution[j] -= row[j] * solution[k]


@compiled()
def _multiply(gram: Array, gap: Array, state: State, together: Array, rows: Array) -> None:
    """Write the Gram matrix times the slope."""
    annotators, columns = len(gram), len(state.slope)
    product, slope = state.product, state.slope
    both = columns > annotators
    for i in range(annotators):
        together[i] = slope[i] + (slope[annotators + i] if both else 0.0)
        product[i] = 0.0
    # four rows at a time, so that the sums are read and written a quarter as often
    count = 0
    for k in range(annotators):
        if together[k] != 0.0:
            together[count], rows[count] = together[k], k
            count += 1
    for k in range(0, count - 3, 4):
        value, two = gram[rows[k]], gram[rows[k + 1]]
        three, four = gram[rows[k + 2]], gram[rows[k + 3]]
        a, b, c, d = together[k], together[k + 1], together[k + 2], together[k + 3]
        for i in range(annotators):
            product[i] += (a * value[i] + b * two[i]) + (c * three[i] + d * four[i])
    for k in range(count - count % 4, count):
        value, a = gram[rows[k]], together[k]
        for i in range(annotators):
            product[i] += a * value[i]
    if both:
        for i in range(annotators):
            product[annotators + i] = product[i] - gap[i] * slope[i]
            product[i] -= gap[i] * slope[annotators + i]


@compiled()
def _settle(
    gram: Array,
    gap: Array,
    right: Array,
    state: State,
    still: float,
    settled: bool,
    solution: Array,
    together: Array,
    rows: Array,
) -> None:
    """Minimise x'Gx/2 - right'x over the boundary, with signs as the side (Lawson and Hanson).

    Columns with a value may move in both directions. It starts from the previous slope; `settled` is True if
    this is still optimal for the free columns.
    """
    small_code()
    slope, sign, kind, order = state.slope, state.sign, state.kind, state.order
    columns = len(slope)
    refused = np.zeros(columns, dtype=np.bool_)
    none: Array = np.int64(-1)  # a literal would be a type of its own, and compiled again
    while True:
        best = none
        if settled:
            most = still
            for i in range(columns):
                if kind[i] == BOUNDARY and not refused[i]:
                    gain = sign[i] * (right[i] - state.product[i])
                    if gain > most:
                        best, most = i, gain
            if best < 0:
                return
            if not _add(gram, gap, state, best, right[best]):
                refused[best] = True
                continue
        settled = True
        while True:
            _solve(state, solution)
            count = int(state.at[2])
            part, blocking = 1.0, none
            for k in range(count):
                i = order[k]
                if sign[i] * solution[k] < 0.0 and state.value[i] * sign[i] <= 0.0:
                    old = max(sign[i] * slope[i], 0.0)
                    share = old / (old - sign[i] * solution[k])
                    if share < part or blocking < 0:
                        part, blocking = share, k
            for k in range(count):
                i = order[k]
                slope[i] += part * (solution[k] - slope[i])
            if blocking < 0:
                break
            gone = order[blocking]
            slope[gone] = 0.0
            _drop(state, blocking)
            refused[gone] = refused[gone] or gone == best
        _multiply(gram, gap, state, together, rows)


@compiled()
def _entered(state: State, position: float, people: int, stop: float) -> bool:
    """Record the entry of new columns; return whether enough knockoffs precede their annotators."""
    small_code()
    entry = state.entry
    for k in range(int(state.at[2])):
        i = state.order[k]
        if entry[i] == 0.0:
            entry[i] = position
    if len(entry) == people:
        return False
    behind = 0
    for i in range(people):
        behind += entry[people + i] > entry[i]
    return bool(behind > stop * (people - behind))


@compiled()
def iss_events(gram: Array, gap: Array, pull: Array, state: State, most: int, stop: float) -> int:
    """Compute the inverse scale space of eq. 4 exactly, theta projected out; return the number of events.

    The method is that of [osher2016]_. Between events the coefficients are constant, and p changes with the
    unexplained part. When an entry of p reaches -1 or 1, the coefficients become the least squares estimates
    of the columns at the boundary, with the sign of their side.

    `gram`: (p, p) float64.
    `gap`: (p,) float64, s; empty without knockoffs.
    `pull`: (m,) float64, m is p, or 2 p with knockoffs.
    `state`: overwritten.
    `most`: maximum number of events. `stop`: ratio, at which to stop, of knockoffs that entered before their
    annotators to the other annotators. At the end of the path there are fewer than `most` events.

    References
    ----------
    .. [osher2016] S. Osher, F. Ruan, J. Xiong, Y. Yao and W. Yin, "Sparse recovery via differential
       inclusions", Applied and Computational Harmonic Analysis 41 (2016) 436-469,
       doi:10.1016/j.acha.2016.01.002.
    """
    small_code()
    annotators, columns = len(gram), len(pull)
    result, together = np.empty(columns), np.empty(annotators)
    rows = np.empty(annotators, dtype=np.int64)
    dual, sign, kind, product = state.dual, state.sign, state.kind, state.product
    scale = 0.0
    for i in range(columns):
        scale = max(scale, abs(pull[i]))
    for event in range(most):
        step = np.inf
        for i in range(columns):
            if kind[i] == FREE:
                continue
            speed = pull[i] - product[i]
            if abs(speed) <= _STILL * scale:
                continue
            room = 1.0 - dual[i] if speed > 0.0 else 1.0 + dual[i]
            if room < step * abs(speed) and not (kind[i] == BOUNDARY and speed * sign[i] > 0.0):
                step = room / abs(speed)
        if step == np.inf:
            return event
        state.at[0] += step
        for i in range(columns):
            if kind[i] == FREE:
                continue
            speed = pull[i] - product[i]
            if abs(speed) <= _STILL * scale or (kind[i] == BOUNDARY and speed * sign[i] > 0.0):
                continue
            dual[i] += step * speed
            kind[i] = INSIDE
            if dual[i] * (1.0 if speed > 0.0 else -1.0) >= 1.0 - _TIE:
                kind[i] = BOUNDARY
                sign[i] = 1.0 if speed > 0.0 else -1.0
                dual[i] = sign[i]
        _settle(gram, gap, pull, state, _STILL * scale, True, result, together, rows)
        if _entered(state, 1.0 / state.at[0], annotators, stop):
            return event
    return most


@compiled()
def lasso_events(gram: Array, gap: Array, pull: Array, state: State, most: int, stop: float) -> int:
    """Compute the LASSO of eq. 5 exactly, theta projected out, from the largest lambda to 0.

    Between events the coefficients move linearly. If several columns enter or leave at once, their directions
    solve the sign-constrained regression that keeps all conditions.

    Parameters and result are as in `iss_events`.
    """
    small_code()
    annotators, columns = len(gram), len(pull)
    result, together = np.empty(columns), np.empty(annotators)
    rows = np.empty(annotators, dtype=np.int64)
    dual, sign, kind, value = state.dual, state.sign, state.kind, state.value
    slope, product = state.slope, state.product
    for event in range(most):
        if state.at[1] == 0.0:
            for i in range(columns):
                dual[i] = pull[i]
                state.at[1] = max(state.at[1], abs(pull[i]))
            step = 0.0
            state.at[0] = state.at[1]
        else:
            step = state.at[0]
            for i in range(columns):
                if kind[i] == FREE:
                    if value[i] * slope[i] < 0.0:
                        step = min(step, -value[i] / slope[i])
                    continue
                speed = 1.0 - product[i]
                room = state.at[0] - dual[i]
                if speed > _STILL and room < step * speed and not (kind[i] == BOUNDARY and sign[i] > 0.0):
                    step = room / speed
                speed = 1.0 + product[i]
                room = state.at[0] + dual[i]
                if speed > _STILL and room < step * speed and not (kind[i] == BOUNDARY and sign[i] < 0.0):
                    step = room / speed
        if state.at[0] - step <= _TIE * state.at[1]:
            if state.at[0] > 0.0:
                for i in range(columns):
                    value[i] += state.at[0] * slope[i]
                    dual[i] -= state.at[0] * product[i]
                state.at[0] = 0.0
                return event + 1
            return event
        step = max(step, 0.0)
        state.at[0] -= step
        limit = state.at[0]
        settled = True
        for i in range(columns):
            if kind[i] == BOUNDARY and abs(1.0 - sign[i] * product[i]) > _STILL and step > 0.0:
                kind[i] = INSIDE
            dual[i] -= step * product[i]
            if kind[i] == INSIDE:
                if abs(dual[i]) >= limit - _TIE * state.at[1]:
                    kind[i] = BOUNDARY
                    sign[i] = 1.0 if dual[i] > 0.0 else -1.0
            else:
                dual[i] = sign[i] * limit
        position = 0
        while position < int(state.at[2]):
            i = state.order[position]
            before = value[i]
            value[i] += step * slope[i]
            gone = before * sign[i] > 0.0 and value[i] * sign[i] <= _TIE * state.at[1]
            if gone and slope[i] * sign[i] < 0.0:
                value[i] = slope[i] = 0.0
                _drop(state, position)
                settled = False
                continue
            position += 1
        _settle(gram, gap, sign, state, _STILL, settled, result, together, rows)
        if _entered(state, limit, annotators, stop):
            return event
    return most


@compiled()
def add_comparisons(
    person: Array, sides: Array, weight: Array, value: Array, table: Array, sums: Array
) -> None:
    """Add weighted comparisons to sums by annotator.

    `person`: (E,) int32. `sides`: (2, E) int32, the items on the left and right. `weight`, `value`: (E,)
    float64.
    `table`: (m, n) float64, gains the weights with an item on the left, less those with it on the right.
    `sums`: (3, m) float64, gains squared weights, weights, and weights times values.
    """
    small_code()
    for k in range(len(person)):
        i, w = person[k], weight[k]
        table[i, sides[0, k]] += w
        table[i, sides[1, k]] -= w
        sums[0, i] += w * w
        sums[1, i] += w
        sums[2, i] += w * value[k]
