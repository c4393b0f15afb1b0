"""Scales of the generalised double Pareto with q(tau) q(z), as the paper factorises them (eq. 21).

At one voxel and rater the two posteriors then depend only on E, the expected squared Mahalanobis
distance. q(tau) is an inverse Gaussian with mean sqrt(m / E) for m = E[z^2], and q(z) has the moments of
eqs. A.13 and A.14 for T = E[1 / tau] = sqrt(E / m) + 1 / m. Their fixed point is tabulated over the logarithm
of E, so that no scale is stored and an iteration costs hardly more than with the joint form.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from raterscope.algorithms.masks.data import FloatArray

EDGES = (math.log(1e-12), math.log(1e10))
"""Logarithms of the smallest and largest E of a table."""

_SIZE = 4096
_NEAREST = 0.25
"""Smaller arguments need too many steps of the continued fraction (21,600 at 0.1): an integral is used."""

_STEPS = 20_000
_NODES = 401


def ratio(order: float, x: FloatArray) -> FloatArray:
    """Return D_(-order-2)(x) / D_(-order-1)(x) of parabolic cylinder functions by Lentz's algorithm.

    The three-term recurrence D_(p+1) - x D_p + p D_(p-1) = 0 makes it the continued fraction
    1 / (x + (order + 2) / (x + (order + 3) / (x + ...))).

    `order`: above -1. `x`: (n,), above 0; the number of steps grows as 1 / x squared.

    References
    ----------
    .. [lentz1976] W. J. Lentz, "Generating Bessel functions in Mie scattering calculations using continued
       fractions", Applied Optics 15 (1976) 668-671, doi:10.1364/AO.15.000668.
    """
    tiny = 1e-300
    value, c, d = np.full(len(x), tiny), np.full(len(x), tiny), np.zeros(len(x))
    numerator, active = 1.0, np.arange(len(x))
    for step in range(_STEPS):
        values = x[active]
        d[active] = 1 / (values + numerator * d[active])
        c[active] = values + numerator / c[active]
        change = c[active] * d[active]
        value[active] *= change
        active = active[np.abs(change - 1) > 1e-14]
        if not len(active):
            break
        numerator = order + 2 + step
    return value


def moments(power: float, nu: float, precision: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Integrate z^power exp(-nu z - precision z^2 / 2) over z > 0, the density of eq. 21 up to a constant.

    `power`: K + nu. `precision`: (n,), E[1 / tau]. The results, each (n,), are the logarithm of the integral,
    and E[z^2].
    """
    rising = power + 1
    middle = (np.sqrt(nu**2 + 4 * precision * rising) - nu) / (2 * precision)
    width = 1 / np.sqrt(nu * middle + 2 * precision * middle**2)
    node = np.linspace(-12, 12, _NODES)
    log_z = np.log(middle)[:, None] + width[:, None] * node
    z = np.exp(log_z)
    height = rising * log_z - nu * z - precision[:, None] * z**2 / 2
    top = height.max(axis=1, keepdims=True)
    density = np.exp(height - top)
    mass = density.sum(axis=1)
    log_mass = top[:, 0] + np.log(mass * width * (node[1] - node[0]))
    return log_mass, np.asarray((density * z**2).sum(axis=1) / mass)


def _second(power: float, nu: float, x: FloatArray) -> FloatArray:
    """Return E[z^2] times the precision, for x = nu / sqrt(precision) (A.14)."""
    near = x < _NEAREST
    second = np.empty(len(x))
    upper = ratio(power + 1, x[~near])
    second[~near] = (power + 1) * (power + 2) * upper / (x[~near] + (power + 2) * upper)
    precision = (nu / x[near]) ** 2
    second[near] = moments(power, nu, precision)[1] * precision
    return second


@lru_cache(maxsize=16)
def table(size: int, nu: float) -> FloatArray:
    """Tabulate the log density's bound by E, for `size` log-ratios and shape nu.

    The result, (2, n), is the bound without the logarithm of Sigma, and its derivative by the logarithm of E
    times a step, at even logarithms of E between `EDGES`. The derivative by E is -E[tau] / 2.
    """
    power = size + nu
    low, high = 1e-9, 2 * (power + 2)
    for _ in range(200):  # where E is 0: precision times E[z^2] is 1
        middle = (low + high) / 2
        low, high = (middle, high) if _second(power, nu, np.array([middle]))[0] > 1 else (low, middle)
    most = low
    x = most * np.concatenate([1 - np.geomspace(1e-9, 0.5, 1500), np.geomspace(0.5, 1e-7, 1500)[1:]])
    excess = np.maximum(_second(power, nu, x) - 1, 1e-15)
    second = (excess + 1) * (x / nu) ** 2
    log_e = 2 * np.log(excess) - np.log(second)
    from scipy.interpolate import PchipInterpolator

    order = np.argsort(log_e)
    rising = np.concatenate([[True], np.diff(log_e[order]) > 1e-9])
    smooth = PchipInterpolator(log_e[order][rising], np.log(second[order])[rising])
    grid = np.linspace(*EDGES, _SIZE)
    m = np.exp(smooth(np.maximum(grid, log_e.min())))
    e = np.exp(grid)
    log_mass = moments(power, nu, np.sqrt(e / m) + 1 / m)[0]
    bound = (
        0.5
        - size / 2 * math.log(2 * math.pi)
        - np.sqrt(m * e) / 2
        - (size + 1) / 2 * math.log(2)
        - math.lgamma((size + 1) / 2)
        + nu * math.log(nu)
        - math.lgamma(nu)
        - np.log(m / (2 * math.pi)) / 2
        + log_mass
    )
    return np.stack([bound, -np.sqrt(m * e) / 2 * (grid[1] - grid[0])])


def lookup(e: FloatArray, tabulated: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Interpolate a table by cubics.

    `e`: (...), expected squared Mahalanobis distances. `tabulated`: (2, n), as from `table`. The results, of
    the shape of `e`, are the log density's bound without the logarithm of Sigma, and E[tau].
    """
    last = tabulated.shape[1] - 1
    step = (EDGES[1] - EDGES[0]) / last
    square = np.maximum(e, math.exp(EDGES[0]))
    point = np.minimum((np.log(square) - EDGES[0]) / step, last - 1e-6)
    i = point.astype(np.int64)
    f, g = point - i, 1 - (point - i)
    (low, left), (high, right) = tabulated[:, i], tabulated[:, i + 1]
    bound = g**2 * ((1 + 2 * f) * low + f * left) + f**2 * ((1 + 2 * g) * high - g * right)
    change = 6 * f * g * (high - low) + g * (1 - 3 * f) * left + f * (1 - 3 * g) * right
    return np.asarray(bound), np.asarray(-2 * change / step / square)
