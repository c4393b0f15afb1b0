"""Inner loop of the interpolation of Beta quantiles."""

from __future__ import annotations

import math

from raterscope.algorithms.compiling import Array, compiled


@compiled(error_model="numpy")
def interpolate(
    first: Array,
    second: Array,
    table: Array,
    least: float,
    most: float,
    step: float,
    weights: Array,
    end: Array,
) -> None:
    """Interpolate the logit of a quantile between six by six nodes (Lagrange's polynomials).

    `first`, `second`: (M,) float64, parameters of Beta distributions.
    `table`: (T, T) float64, logits of the quantile at exp(log(least) + i * step).
    `least`, `most`: range of the parameters; the quantile is NaN for distributions outside.
    `weights`: (2, 6) float64, overwritten.
    `end`: (M,) float64, overwritten with the quantiles.
    """
    origin = math.log(least)
    for m in range(len(first)):
        if not (least <= first[m] <= most and least <= second[m] <= most):
            end[m] = math.nan
            continue
        row = _weigh((math.log(first[m]) - origin) / step, len(table), weights[0])
        column = _weigh((math.log(second[m]) - origin) / step, len(table), weights[1])
        logit = 0.0
        for i in range(6):
            part = 0.0
            for j in range(6):
                part += weights[1, j] * table[row + i, column + j]
            logit += weights[0, i] * part
        end[m] = 1.0 / (1.0 + math.exp(-logit))


@compiled(error_model="numpy")
def _weigh(at: float, nodes: int, weights: Array) -> int:
    """Compute the weights of six nodes around a position; return the first node."""
    first = min(max(int(at) - 2, 0), nodes - 6)
    t = at - first
    a, b, c, d, e, f = t, t - 1.0, t - 2.0, t - 3.0, t - 4.0, t - 5.0
    weights[0] = b * c * d * e * f / -120.0
    weights[1] = a * c * d * e * f / 24.0
    weights[2] = a * b * d * e * f / -12.0
    weights[3] = a * b * c * e * f / 12.0
    weights[4] = a * b * c * d * f / -24.0
    weights[5] = a * b * c * d * e / 120.0
    return first
