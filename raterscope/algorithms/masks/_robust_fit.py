"""Iterations of the robust fusion: merged columns of logits, spatial prior, and updates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.data import Box, Float32Array, FloatArray
from raterscope.algorithms.progress import Check, Watch, no_check, parts_of, repeating, run_parts


@dataclass(frozen=True, eq=False)
class Columns:
    """C distinct columns of P distances."""

    data: Float32Array  # (P, C)
    weight: Float32Array  # (C,): voxels of each
    state: NDArray[np.int8]  # (C,): 1 where settled as inside, -1 as outside, 0 otherwise
    row: NDArray[np.int32] | None  # (N,): each voxel's column; None where voxels and columns are the same

    def spread(self, values: NDArray[Any], check: Check = no_check) -> NDArray[Any]:
        """Expand (..., C) values of columns to the (..., N) voxels."""
        if self.row is None:
            return values
        out = np.empty((*values.shape[:-1], len(self.row)), dtype=values.dtype)
        row, layers = self.row, list(np.ndindex(values.shape[:-1]))

        def fill(begin: int, end: int) -> None:
            part = row[begin:end].astype(np.intp)  # each `take` would convert it
            for layer in layers:
                np.take(values[layer], part, out=out[layer][begin:end], mode="clip")

        run_parts(fill, parts_of(len(row), _CHUNK // max(1, len(layers))), check)
        return out


def single_columns(data: Float32Array, state: NDArray[np.int8]) -> Columns:
    """Make one column for every voxel of (P, N) `data`."""
    return Columns(data, np.ones(data.shape[1], dtype=np.float32), state, None)


def merge_columns(layers: Iterable[Float32Array], state: NDArray[np.int8], check: Check) -> Columns:
    """Merge the voxels with equal values of all raters and equal `state`, (N,).

    Only one rater's `layers`, (N,), are in memory at a time: each voxel's column follows from its column for
    the earlier raters, and the value of the next rater.
    """
    from raterscope.algorithms.masks import _robust_kernels as kernels

    states = np.array([-1, 0, 1], dtype=np.int8)
    row = state.astype(np.int32) + 1
    pairs: list[tuple[NDArray[np.int32], NDArray[np.uint32]]] = []
    room = 1 << 12
    for layer in layers:
        bits, used = layer.view(np.uint32), 0
        parents, values = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.uint32)
        table = np.full(2 * room, -1, dtype=np.int32)
        done = 0
        while done < len(row):
            if used == room:
                room *= 4
                parents, values = np.resize(parents, room), np.resize(values, room)
                table = np.full(2 * room, -1, dtype=np.int32)
                kernels.fill_table(used, table, parents, values)
            limit = min(len(row), done + _CHUNK)
            used, done = kernels.merge(bits, row, done, limit, table, parents, values, used)
            check()
        pairs.append((parents[:used].copy(), values[:used].copy()))
    data = np.empty((len(pairs), len(pairs[-1][0])), dtype=np.float32)
    number: NDArray[Any] = np.arange(data.shape[1])
    weight = np.zeros(data.shape[1], dtype=np.int64)
    for begin, end in parts_of(len(row), _CHUNK):
        check()
        weight += np.bincount(row[begin:end], minlength=len(weight))
    for p in range(len(pairs) - 1, -1, -1):
        data[p] = pairs[p][1][number].view(np.float32)
        number = pairs[p][0][number]
    return Columns(data, weight.astype(np.float32), states[number], row)


_CHUNK_OF_BUMPS = 500_000


def bumps(
    size: int, step: float, spacing: float, radius: float, positions: FloatArray | None = None
) -> FloatArray:
    """Return Gaussian bumps along an axis, (size, bumps), unnormalised, the first at voxel 0.

    `size`: number of voxels. `step`, `spacing`, `radius`: distance of voxels, distance of bumps, and standard
    deviation, mm. `positions`: (size,) mm, positions of unevenly spaced voxels.
    """
    position = np.arange(size) * step if positions is None else positions - positions[0]
    length = size * step if positions is None else float(position[-1]) + step
    centre = np.arange(max(1, math.ceil(length / spacing))) * spacing
    return np.asarray(np.exp(-((position[:, None] - centre) ** 2) / (2 * radius**2)))


@dataclass(frozen=True)
class _Axis:
    """Orthonormal (size, bumps) `basis` of the bumps along an axis, and the squared singular values."""

    basis: FloatArray
    power: FloatArray


class SpatialPrior:
    """The spatial prior on T (eqs. 5 to 7) with its posterior q(W) and hyper-parameters.

    The bumps are products of bumps along the axes, so that the matrix of eq. 22 is a Kronecker product: it
    is diagonal in the product of the axes' singular vectors, and the exact update of eqs. 22 and 23 becomes
    three small products of matrices.
    """

    def __init__(
        self, shape: Box, steps: tuple[float, float, float], spacing: float, radius: float,
        t: Float32Array | FloatArray, variance: float, floor: float, positions: FloatArray | None = None,
        check: Check = no_check,
    ) -> None:  # fmt: skip
        self.shape, self._floor = shape, floor
        along = (positions, None, None)
        self._axes = [
            _axis(bumps(size, step, spacing, radius, at))
            for size, step, at in zip(shape, steps, along, strict=True)
        ]
        z, y, x = (axis.power for axis in self._axes)
        self._power = z[:, None, None] * y[:, None] * x
        self.variance = max(variance, floor)  # Sigma_T
        self._alpha = 1.0 / max(float(np.var(t, dtype=np.float64)), 1e-12)
        self._spread = 0.0
        self.mean = np.empty(t.size, dtype=np.float32)  # (N,): prior mean of T at every voxel
        self._bound = 0.0
        self._set_weights(t, check)

    def _set_weights(self, t: Float32Array | FloatArray, check: Check) -> None:
        seen = self._project(t, check)
        total = self._power + self._alpha * self.variance
        self._lift(seen * (self._power / total), check)
        self._square = float((seen**2 * self._power / total**2).sum())
        self._trace = float((self.variance / total).sum())
        self._spread = float((self._power * self.variance / total).sum())
        self._entropy = 0.5 * float(np.log(self.variance / total).sum()) + 0.5 * total.size

    def update(self, t: Float32Array | FloatArray, total: float, check: Check = no_check) -> None:
        """Update W, alpha and Sigma_T (eqs. 22 to 25); `total` is the sum of the variances of q(T)."""
        update_together([self], [t], [total], check)

    def _misfit(self, t: Float32Array | FloatArray, check: Check) -> float:
        """Return the sum of squared differences of a map from the prior's mean."""
        rest = 0.0
        for begin in range(0, t.size, _CHUNK_OF_BUMPS):
            check()
            part = slice(begin, begin + _CHUNK_OF_BUMPS)
            rest += float(((t[part].astype(np.float64) - self.mean[part]) ** 2).sum())
        return rest

    def _set_scales(self, alpha: float, wanted: float, own: float) -> None:
        """Set alpha and Sigma_T, and compute the bound; `own` is the Sigma_T from this map alone."""
        self._alpha, self.variance = alpha, max(wanted, self._floor)
        self._bound = (
            -0.5 * self.mean.size * (math.log(2 * math.pi * self.variance) + own / self.variance)
            + 0.5 * self._power.size * math.log(alpha)
            - 0.5 * alpha * (self._square + self._trace)
            + self._entropy
        )

    def bound(self) -> float:
        """Return the part of the lower bound due to the prior and q(W), after `update` (B.11, B.13, B.16)."""
        return self._bound

    def _project(self, t: Float32Array | FloatArray, check: Check) -> FloatArray:
        """Project a map onto the bumps' singular vectors."""
        z, y, x = (axis.basis for axis in self._axes)
        slices, rows, columns = self.shape
        volume = t.reshape(slices, rows, columns)
        flat = np.empty((slices, y.shape[1], x.shape[1]))
        step = max(1, _CHUNK_OF_BUMPS // (rows * columns))
        for begin in range(0, slices, step):
            check()
            part = volume[begin : begin + step].astype(np.float64) @ x
            flat[begin : begin + step] = y.T @ part
        return np.asarray(np.tensordot(z, flat, axes=(0, 0)))

    def _lift(self, weights: FloatArray, check: Check) -> None:
        """Write the map with these coefficients into `mean`."""
        z, y, x = (axis.basis for axis in self._axes)
        slices, rows, columns = self.shape
        flat = np.tensordot(z, weights, axes=(1, 0))
        out = self.mean.reshape(slices, rows, columns)
        step = max(1, _CHUNK_OF_BUMPS // (rows * columns))
        for begin in range(0, slices, step):
            check()
            out[begin : begin + step] = (y @ flat[begin : begin + step]) @ x.T


def update_together(
    priors: Sequence[SpatialPrior],
    maps: Sequence[Float32Array | FloatArray],
    totals: Sequence[float],
    check: Check = no_check,
) -> None:
    """Update the priors of K maps, which share alpha and Sigma_T (eqs. 22 to 25).

    `maps`: (N,) each, means of q(T). `totals`: sum of the variances of each map over the voxels.
    """
    own = []
    for prior, t, total in zip(priors, maps, totals, strict=True):
        prior._set_weights(t, check)
        own.append((prior._misfit(t, check) + total + prior._spread) / t.size)
    weights = sum(prior._power.size for prior in priors)
    alpha = weights / sum(prior._square + prior._trace for prior in priors)
    for prior, value in zip(priors, own, strict=True):
        prior._set_scales(alpha, sum(own) / len(own), value)


def _axis(basis: FloatArray) -> _Axis:
    rotation, values, _ = np.linalg.svd(basis, full_matrices=False)
    power = np.zeros(basis.shape[1])
    power[: len(values)] = values**2
    vectors = np.zeros(basis.shape)
    vectors[:, : rotation.shape[1]] = rotation
    return _Axis(vectors, power)


_CHUNK = 2_000_000
"""Number of columns times raters between two progress reports."""

_SWEPT = 250_000
"""Number of columns times raters that a thread updates at a time, a millisecond of work."""

_MIN_DOF, _MAX_DOF = 0.05, 1e4
_TINY = 1e-12


@dataclass(frozen=True)
class Likelihood:
    """Likelihood of the raters' distances, one of four."""

    kind: int  # as the kernels count them
    dof: float = math.nan  # initial degrees of freedom or shape; NaN if there are none
    learn: bool = False  # whether to estimate them
    # (2, n): table of `robust.table`, for the double Pareto with q(tau) q(z); else empty
    table: FloatArray = field(default_factory=lambda: np.empty((2, 0)), compare=False)


@dataclass(eq=False)
class Fit:
    """State of the iteration, in logits."""

    columns: Columns
    likelihood: Likelihood
    floor: float
    recentre: bool
    # t, s: (C,) or float64: mean and variance of q(T)
    t: Float32Array | FloatArray
    s: Float32Array | FloatArray
    rater: FloatArray  # (4, P): bias, its variance, Sigma, degrees of freedom
    beta: float  # precision of the biases' prior
    prior: SpatialPrior | None = None
    objective: list[float] = field(default_factory=list)  # the lower bound after each iteration
    converged: bool = False
    weights: FloatArray | None = None  # (P,): as `Masks.weights`

    def weighed(self, values: FloatArray) -> FloatArray:
        """Multiply values of the raters, (P,), by their weights."""
        return values if self.weights is None else values * self.weights

    @property
    def voxels(self) -> float:
        """Number of voxels, N: the sum of the columns' weights."""
        return float(self.columns.weight.sum(dtype=np.float64))


def start(
    columns: Columns, likelihood: Likelihood, floor: float, recentre: bool, median: bool,
    check: Check = no_check, weights: FloatArray | None = None,
) -> Fit:  # fmt: skip
    """Start from the raters' mean or median, and the variances from it."""
    data, weight = columns.data, columns.weight
    raters = len(data)
    # A merged column represents thousands of voxels, so that its rounding error would not average out.
    kind: type[np.floating[Any]] = np.float32 if columns.row is None else np.float64
    t: Any = np.empty(data.shape[1], dtype=kind)
    for begin, end in chunks(columns):
        check()
        block = data[:, begin:end]
        if median:
            t[begin:end] = np.median(block, axis=0)
        elif weights is None:
            t[begin:end] = block.mean(axis=0, dtype=np.float64)
        else:
            t[begin:end] = np.average(block, axis=0, weights=weights)
    t[columns.state > 0] = np.maximum(t[columns.state > 0], 0)
    t[columns.state < 0] = np.minimum(t[columns.state < 0], 0)
    voxels = float(weight.sum(dtype=np.float64))
    spread = []
    for values in data:
        check()
        spread.append(float((weight * (values - t) ** 2).sum(dtype=np.float64)) / voxels)
    sigma = np.maximum(np.array(spread), max(floor, _TINY))
    mean = float(sigma.mean())
    beta = 1 / mean
    rater = np.stack([np.zeros(raters), 1 / (beta + voxels / sigma), sigma, np.full(raters, likelihood.dof)])
    s: Any = np.full(t.shape, mean / raters, dtype=kind)
    return Fit(columns, likelihood, floor, recentre, t, s, rater, beta, weights=weights)


def resume(state: Fit, columns: Columns, check: Check = no_check) -> Fit:
    """Continue a state on merged columns with a column for every voxel."""
    merged = state.columns
    return Fit(
        columns, state.likelihood, state.floor, state.recentre,
        merged.spread(state.t, check).astype(np.float32), merged.spread(state.s, check).astype(np.float32),
        state.rater.copy(), state.beta, weights=state.weights,
    )  # fmt: skip


def fit(state: Fit, iterations: int, tolerance: float, watch: Watch, partial: Callable[[], object]) -> None:
    """Iterate until the relative gain of the lower bound is below `tolerance`."""
    rest = 0.0
    watch, check = repeating(watch)
    for count in range(iterations):
        sums, totals = _sweep(state, count / iterations, 1 / iterations, watch, partial)
        if count:
            state.objective.append(float(state.weighed(sums[3]).sum()) + rest)
            state.converged = has_converged(state.objective, tolerance)
        rest = _update(state, sums, totals, check)
        if state.converged:
            break
    sums, _ = _sweep(replace(state, t=state.t.copy(), s=state.s.copy()), 1.0, 0.0, watch, partial)
    state.objective.append(float(state.weighed(sums[3]).sum()) + rest)
    state.converged = state.converged or has_converged(state.objective, tolerance)


def has_converged(objective: list[float], tolerance: float) -> bool:
    """Return whether the last step changed the bound by no more than a share of its value."""
    return len(objective) > 1 and abs(objective[-1] - objective[-2]) <= tolerance * abs(objective[-1])


def chunks(columns: Columns) -> list[tuple[int, int]]:
    """Divide the columns into small parts."""
    return parts_of(columns.data.shape[1], _CHUNK // len(columns.data))


def _sweep(
    state: Fit, done: float, share: float, watch: Watch, partial: Callable[[], object]
) -> tuple[FloatArray, FloatArray]:
    from raterscope.algorithms.masks import _robust_kernels as kernels

    columns = state.columns
    prior = np.empty(0, dtype=np.float32) if state.prior is None else state.prior.mean
    precision = 0.0 if state.prior is None else 1 / state.prior.variance
    parts = parts_of(columns.data.shape[1], _SWEPT // len(columns.data))
    sums, totals = np.zeros((len(parts), 4, len(columns.data))), np.zeros((len(parts), 1))
    objective = state.objective[-1] if state.objective else None
    text = f"fusing, iteration {len(state.objective) + 1}"
    finished = 0

    def run(begin: int, end: int) -> None:
        number = begin // parts[0][1]
        kernels.sweep(
            state.likelihood.kind, columns.data, columns.weight, columns.state, state.rater, prior, precision,
            state.t, state.s, begin, end, sums[number], totals[number],
            state.likelihood.table, state.weights,
        )  # fmt: skip

    def check() -> None:
        nonlocal finished
        finished += 1
        watch(done + share * finished / len(parts), text, objective=objective, partial=partial)

    run_parts(run, parts, check)
    return sums.sum(axis=0), totals.sum(axis=0)


def _update(state: Fit, sums: FloatArray, totals: FloatArray, check: Check) -> float:
    """Update all parameters except maps, in the order b, W, alpha, Sigma_T, beta, Sigma, nu.

    The result is the lower bound without the log density of the maps (from `sweep`).
    """
    bias, doubt, sigma = state.rater[:3]
    raters, voxels = len(bias), state.voxels
    doubt[:] = 1 / (state.beta + state.weighed(sums[0]))
    bias[:] = doubt * state.weighed(sums[1])
    recentre, settled = state.recentre and state.prior is None, bool(state.columns.state.any())
    if recentre and settled:  # settled voxels of T cannot be shifted, and the others alone drift for long
        bias -= doubt * (bias.sum() / doubt.sum())  # the optimum among biases with mean 0
    sigma[:] = sigma * (sums[2] - 2 * bias * sums[1] + (bias**2 + doubt) * sums[0]) / voxels
    np.maximum(sigma, max(state.floor, _TINY), out=sigma)
    if recentre and not settled:
        # A shift of T against all biases changes no residual; it only increases the prior of the biases.
        shift = float(bias.mean())
        bias -= shift
        state.t += shift
    rest = float(totals[0]) + 0.5 * voxels * (math.log(2 * math.pi) + 1)
    if state.prior is not None:
        state.prior.update(state.t, float(state.s.sum(dtype=np.float64)), check)
        rest += state.prior.bound()
    square = float((bias**2 + doubt).sum())
    state.beta = raters / square
    rest += 0.5 * raters * math.log(state.beta) - 0.5 * raters + 0.5 * float(np.log(doubt).sum() + raters)
    if state.likelihood.learn:
        _learn_dof(state, check)
    return rest + voxels * float(state.weighed(_constants(state.likelihood.kind, state.rater)).sum())


def _constants(kind: int, rater: FloatArray) -> FloatArray:
    """Return the constants of the log density with integrated scales."""
    from scipy.special import gammaln

    nu = rater[3]
    scale = -0.5 * np.log(rater[2])
    if kind == 0:
        return np.asarray(scale - 0.5 * math.log(2 * math.pi))
    if kind == 1:
        return np.asarray(scale - math.log(4))
    if kind == 2:
        return np.asarray(scale + gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(nu * math.pi))
    if kind == 4:
        return np.asarray(scale)
    return np.asarray(scale - math.log(2))


def _learn_dof(state: Fit, check: Check) -> None:
    """Maximise the lower bound over each rater's degrees of freedom with the scales integrated out.

    That is eq. 28 with E[tau] as a function of nu, instead of a fixed value: the step is larger, and the
    bound cannot fall. It uses a fine histogram of E.
    """
    from scipy.optimize import minimize_scalar

    from raterscope.algorithms.masks import _robust_kernels as kernels

    columns, kind = state.columns, state.likelihood.kind
    raters = len(columns.data)
    count, total = np.zeros((raters, kernels.BINS)), np.zeros((raters, kernels.BINS))
    for begin, end in chunks(columns):
        check()
        kernels.spectrum(
            kind, columns.data, columns.weight, state.rater, state.t, state.s, begin, end, count, total
        )
    voxels = state.voxels
    for p in range(raters):
        present = count[p] > 0
        number, value = count[p, present], total[p, present] / count[p, present]
        factor = 0.5 if kind == 2 else 1.0

        def loss(log_nu: float, p: int = p, number: FloatArray = number, value: FloatArray = value,
                 factor: float = factor) -> float:  # fmt: skip
            nu = math.exp(log_nu)
            trial = state.rater[:, p : p + 1].copy()
            trial[3] = nu
            tail = float(number @ np.log1p(value / nu))
            return factor * (nu + 1) * tail - voxels * float(_constants(kind, trial)[0])

        result = minimize_scalar(
            loss, bounds=(math.log(_MIN_DOF), math.log(_MAX_DOF)), method="bounded",
            options={"xatol": 1e-7},
        )  # fmt: skip
        if result.fun < loss(math.log(state.rater[3, p])):
            state.rater[3, p] = math.exp(result.x)


def covariance(kind: int, sigma: FloatArray, nu: FloatArray, most: float) -> FloatArray:
    """Return the covariance for a Sigma, in the same unit, comparable between likelihoods.

    It is Sigma for the Gaussian, 8 Sigma for Laplace, nu / (nu - 2) Sigma for Student's t, and 2 nu² /
    ((nu - 1) (nu - 2)) Sigma for the double Pareto. The last two have none with two degrees of freedom or
    fewer; the covariance within `most` is used, which no deviation of clipped distances exceeds.
    """
    if kind == 0:
        return sigma.copy()
    if kind == 1:
        return 8 * sigma
    values = np.empty(len(sigma))
    for p, (scale, dof) in enumerate(zip(np.sqrt(sigma), nu, strict=True)):
        u = np.concatenate([[0.0], np.geomspace(1e-4, most / scale, 4000)])
        tail = -(dof + 1) / 2 * np.log1p(u**2 / dof) if kind == 2 else -(dof + 1) * np.log1p(u / dof)
        density = np.exp(tail)
        values[p] = sigma[p] * np.trapezoid(u**2 * density, u) / np.trapezoid(density, u)
    return values
