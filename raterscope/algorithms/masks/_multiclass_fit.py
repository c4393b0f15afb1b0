"""Fit of log-ratios of several structures: variational updates on columns of distinct values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from raterscope.algorithms.masks._robust_fit import (
    Columns,
    Likelihood,
    SpatialPrior,
    has_converged,
    update_together,
)
from raterscope.algorithms.masks.data import Float32Array, FloatArray
from raterscope.algorithms.masks.double_pareto import lookup
from raterscope.algorithms.progress import Check, Watch, no_check

_CHUNK = 40_000
"""Columns times raters between two reports."""

_TINY = 1e-12
_LEAST_DOF, _MOST_DOF = 0.05, 1e4


@dataclass(eq=False)
class MulticlassFit:
    """State of the iteration, in log-ratios of d structures to the background."""

    data: Float32Array  # (P, C, d)
    weight: Float32Array  # (C,): voxels of each column; 0 where settled
    likelihood: Likelihood
    floor: float
    recentre: bool
    mean: Float32Array  # (C, d): of q(T)
    spread: Float32Array  # (C, d, d): covariance of q(T)
    bias: FloatArray  # (P, d)
    doubt: FloatArray  # (P, d, d): covariance of q(b)
    sigma: FloatArray  # (P, d, d)
    dof: FloatArray  # (P,)
    beta: float
    priors: Sequence[SpatialPrior] = ()  # one of each structure, or none
    objective: list[float] = field(default_factory=list)  # the lower bound after each iteration
    converged: bool = False

    @property
    def size(self) -> int:
        """d, the number of log-ratios."""
        return int(self.data.shape[2])

    @property
    def voxels(self) -> float:
        """N, all open voxels."""
        return float(self.weight.sum(dtype=np.float64))


def start(
    columns: Columns, size: int, likelihood: Likelihood, floor: float, recentre: bool, median: bool,
    check: Check = no_check,
) -> MulticlassFit:  # fmt: skip
    """Start from the raters' mean or median, and the covariances from it.

    The rows of `columns` are the raters' log-ratios, `size` for each rater; its state is 0 for open voxels.
    """
    count = columns.data.shape[1]
    data = np.ascontiguousarray(columns.data.reshape(-1, size, count).transpose(0, 2, 1))
    raters = len(data)
    weight = np.where(columns.state == 0, columns.weight, np.float32(0))
    mean = (np.median(data, axis=0) if median else data.mean(axis=0)).astype(np.float32)
    voxels = max(float(weight.sum(dtype=np.float64)), 1.0)
    sigma = np.empty((raters, size, size))
    for p in range(raters):
        check()
        rest = data[p] - mean
        sigma[p] = _floored(((rest * weight[:, None]).T @ rest).astype(np.float64) / voxels, floor)
    average = sigma.mean(axis=0)
    beta = size / float(np.trace(average))
    doubt = np.linalg.inv(beta * np.eye(size) + voxels * np.linalg.inv(sigma))
    spread = np.tile((average / raters).astype(np.float32), (count, 1, 1))
    dof = np.full(raters, likelihood.dof)
    return MulticlassFit(
        data, weight, likelihood, floor, recentre, mean, spread, np.zeros((raters, size)), doubt, sigma, dof,
        beta
    )  # fmt: skip


def resume(state: MulticlassFit, merged: Columns, columns: Columns, check: Check = no_check) -> MulticlassFit:
    """Continue a state on merged columns with a column for every voxel; settled voxels count as open."""
    size, count = state.size, columns.data.shape[1]
    data = np.ascontiguousarray(columns.data.reshape(-1, size, count).transpose(0, 2, 1))
    mean = merged.spread(state.mean.T, check).T
    spread = merged.spread(state.spread.reshape(-1, size * size).T, check).T
    return replace(
        state,
        data=data,
        weight=columns.weight,
        mean=np.ascontiguousarray(mean),
        spread=np.ascontiguousarray(spread).reshape(count, size, size),
        objective=[],
        converged=False,
    )


def fit(
    state: MulticlassFit, iterations: int, tolerance: float, watch: Watch, partial: Callable[[], object]
) -> None:
    """Iterate until the relative gain of the lower bound is below `tolerance`."""
    rest = 0.0
    for count in range(iterations):
        objective = state.objective[-1] if state.objective else None
        words = f"fusing, iteration {count + 1}"

        def report(
            share: float, count: int = count, words: str = words, objective: float | None = objective
        ) -> None:
            watch((count + share) / iterations, words, objective=objective, partial=partial)

        density, entropy, sums = _sweep(state, report)
        if count:
            state.objective.append(density + rest)
            state.converged = has_converged(state.objective, tolerance)
        rest = _update(state, entropy, sums, report)
        if state.converged:
            break
    density = 0.0
    for begin, end in _chunks(state):
        squares = _squares(state, begin, end)
        density += float(np.sum(_log_density(state, squares) * state.weight[begin:end]))
        watch(1.0, "measuring the lower bound")
    state.objective.append(density + rest)
    state.converged = state.converged or has_converged(state.objective, tolerance)


def _chunks(state: MulticlassFit) -> list[tuple[int, int]]:
    step = max(1, _CHUNK // len(state.data))
    count = len(state.weight)
    return [(begin, min(count, begin + step)) for begin in range(0, count, step)]


def _squares(state: MulticlassFit, begin: int, end: int) -> FloatArray:
    """Return E, the expected squared Mahalanobis distance (C.5), (P, n)."""
    inverse = np.linalg.inv(state.sigma)
    rest = state.data[:, begin:end] - state.mean[begin:end] - state.bias[:, None]
    spread = state.spread[begin:end].astype(np.float64)
    squares = np.einsum("pni,pij,pnj->pn", rest, inverse, rest, optimize=True)
    squares += np.einsum("pij,nij->pn", inverse, spread, optimize=True)
    squares += np.einsum("pij,pij->p", inverse, state.doubt)[:, None]
    return np.asarray(np.maximum(squares, 1e-300))


def _scales(state: MulticlassFit, squares: FloatArray) -> FloatArray:
    """Return E[tau] (Table 2); for the double Pareto with q(tau, z) taken jointly."""
    kind, size, nu = state.likelihood.kind, state.size, state.dof[:, None]
    if kind == 0:
        return np.ones_like(squares)
    if kind == 1:
        return np.asarray(0.5 / np.sqrt(squares))
    if kind == 2:
        return np.asarray((nu + size) / (nu + squares))
    if kind == 4:
        return lookup(squares, state.likelihood.table)[1]
    root = np.sqrt(squares)
    return np.asarray((nu + size) / (root * (nu + root)))


def _log_density(state: MulticlassFit, squares: FloatArray) -> FloatArray:
    """Return the log density with the scales integrated out, without terms common to all voxels."""
    kind, size, nu = state.likelihood.kind, state.size, state.dof[:, None]
    if kind == 0:
        return -squares / 2
    if kind == 1:
        return np.asarray(-np.sqrt(squares) / 2)
    if kind == 2:
        return np.asarray(-(nu + size) / 2 * np.log1p(squares / nu))
    if kind == 4:
        return lookup(squares, state.likelihood.table)[0]
    return np.asarray(-(nu + size) * np.log1p(np.sqrt(squares) / nu))


def _constants(kind: int, size: int, nu: FloatArray) -> FloatArray:
    """Return the constants of the log density beside `_log_density` and half the log determinant of Sigma."""
    from scipy.special import gammaln

    none = np.zeros_like(nu)
    surface = math.log(0.5) + math.lgamma(size / 2) - size / 2 * math.log(math.pi) - math.lgamma(size)
    if kind == 0:
        return none - size / 2 * math.log(2 * math.pi)
    if kind == 1:
        return none + surface - size * math.log(2)
    if kind == 2:
        return np.asarray(gammaln((nu + size) / 2) - gammaln(nu / 2) - size / 2 * np.log(nu * math.pi))
    if kind == 4:
        return none
    return np.asarray(surface + gammaln(nu + size) - gammaln(nu) - size * np.log(nu))


@dataclass(eq=False)
class _Sums:
    """Over the voxels, of E[tau] times 1, the residual, its outer product, and the covariance of q(T)."""

    zeroth: FloatArray
    first: FloatArray
    second: FloatArray
    doubt: FloatArray


def _sweep(state: MulticlassFit, report: Callable[[float], None]) -> tuple[float, float, _Sums]:
    """Update q(T) (eqs. 17, 18); return the log density before, the entropy after, and the raters' sums."""
    raters, size = len(state.data), state.size
    sums = _Sums(
        np.zeros(raters), np.zeros((raters, size)), np.zeros((raters, size, size)), np.zeros((raters, size,
        size))
    )  # fmt: skip
    inverse = np.linalg.inv(state.sigma)
    density = entropy = 0.0
    chunks = _chunks(state)
    for number, (begin, end) in enumerate(chunks):
        weight = state.weight[begin:end].astype(np.float64)
        squares = _squares(state, begin, end)
        density += float(np.sum(_log_density(state, squares) * weight))
        scales = _scales(state, squares)
        data = state.data[:, begin:end].astype(np.float64)
        precision = np.einsum("pn,pij->nij", scales, inverse, optimize=True)
        shown = np.einsum("pn,pij,pnj->ni", scales, inverse, data - state.bias[:, None], optimize=True)
        if state.priors:
            above = 1 / state.priors[0].variance
            precision += above * np.eye(size)
            shown += above * np.stack([prior.mean[begin:end] for prior in state.priors], axis=1)
        spread = np.linalg.inv(precision)
        mean = np.einsum("nij,nj->ni", spread, shown)
        entropy -= 0.5 * float(np.sum(weight * np.linalg.slogdet(precision)[1]))
        state.mean[begin:end], state.spread[begin:end] = mean, spread
        rest = data - mean
        scales *= weight
        sums.zeroth += scales.sum(axis=1)
        sums.first += np.einsum("pn,pni->pi", scales, rest, optimize=True)
        sums.second += np.einsum("pn,pni,pnj->pij", scales, rest, rest, optimize=True)
        sums.doubt += np.einsum("pn,nij->pij", scales, spread, optimize=True)
        report((number + 1) / len(chunks))
    return density, entropy, sums


def _update(state: MulticlassFit, entropy: float, sums: _Sums, report: Callable[[float], None]) -> float:
    """Update all parameters except maps, in the order b, beta, Sigma, nu; return the lower bound.

    The bound lacks the log density.
    """
    raters, size, voxels = len(state.data), state.size, state.voxels
    inverse = np.linalg.inv(state.sigma)
    state.doubt[:] = np.linalg.inv(state.beta * np.eye(size) + sums.zeroth[:, None, None] * inverse)
    state.bias = np.einsum("pij,pjk,pk->pi", state.doubt, inverse, sums.first)
    for p in range(raters):
        cross = np.outer(state.bias[p], sums.first[p])
        square = np.outer(state.bias[p], state.bias[p]) + state.doubt[p]
        scatter = sums.second[p] - cross - cross.T + sums.zeroth[p] * square + sums.doubt[p]
        state.sigma[p] = _floored(scatter / max(voxels, 1.0), state.floor)
    if state.recentre and not state.priors:
        # A shift of T against all biases changes no residual and only brings the biases' prior nearer.
        shift = state.bias.mean(axis=0)
        state.bias = state.bias - shift
        state.mean += shift.astype(np.float32)
    square = float(np.sum(state.bias**2) + np.trace(state.doubt, axis1=1, axis2=2).sum())
    state.beta = size * raters / square
    rest = entropy + 0.5 * voxels * size * (math.log(2 * math.pi) + 1)
    rest += 0.5 * raters * size * math.log(state.beta) + 0.5 * float(np.linalg.slogdet(state.doubt)[1].sum())
    if state.priors:
        maps = [state.mean[:, k] for k in range(size)]
        totals = [float(state.spread[:, k, k].sum(dtype=np.float64)) for k in range(size)]
        update_together(state.priors, maps, totals, lambda: report(1.0))
        rest += sum(prior.bound() for prior in state.priors)
    if state.likelihood.learn:
        _learn_dof(state, report)
    constants = float(_constants(state.likelihood.kind, size, state.dof).sum())
    return rest + voxels * (constants - 0.5 * float(np.linalg.slogdet(state.sigma)[1].sum()))


def _floored(matrix: FloatArray, floor: float) -> FloatArray:
    """Raise eigenvalues to the floor: the maximum of the bound among the covariances above it."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, max(floor, _TINY))) @ vectors.T)


def _learn_dof(state: MulticlassFit, report: Callable[[float], None]) -> None:
    """Maximise the lower bound over each rater's degrees of freedom with the scales integrated out."""
    from scipy.optimize import minimize_scalar

    kind, size, voxels = state.likelihood.kind, state.size, state.voxels
    parts = []
    for begin, end in _chunks(state):
        parts.append(_squares(state, begin, end).astype(np.float32))
        report(1.0)
    squares = np.concatenate(parts, axis=1)
    factor = 0.5 if kind == 2 else 1.0
    for p, values in enumerate(squares):
        value = values if kind == 2 else np.sqrt(values)

        def loss(log_nu: float, value: Float32Array = value) -> float:
            nu = math.exp(log_nu)
            report(1.0)
            tail = float(np.sum(np.log1p(value / np.float32(nu)) * state.weight, dtype=np.float64))
            constant = float(_constants(kind, size, np.array([nu]))[0])
            return factor * (nu + size) * tail - voxels * constant

        result = minimize_scalar(
            loss, bounds=(math.log(_LEAST_DOF), math.log(_MOST_DOF)), method="bounded", options={"xatol":
            1e-6}
        )  # fmt: skip
        if result.fun < loss(math.log(state.dof[p])):
            state.dof[p] = math.exp(result.x)


def shares(state: MulticlassFit, check: Check) -> tuple[Float32Array, Float32Array]:
    """Return the raters' shares and scales at each column, (P, C).

    A share is the trace of the rater's precision times the covariance; a scale is E[tau].
    """
    shared = np.empty(state.data.shape[:2], dtype=np.float32)
    tau = np.empty_like(shared)
    inverse = np.linalg.inv(state.sigma)
    for begin, end in _chunks(state):
        check()
        scales = _scales(state, _squares(state, begin, end))
        tau[:, begin:end] = scales
        scaled = scales * np.einsum("pij,nij->pn", inverse, state.spread[begin:end], optimize=True)
        shared[:, begin:end] = scaled / scaled.sum(axis=0)
    return shared, tau


def covariance_factor(kind: int, size: int, nu: FloatArray) -> FloatArray:
    """Return the factor from Sigma to the covariance; infinite if the tails are too heavy."""
    if kind == 0:
        return np.ones_like(nu)
    if kind == 1:
        return np.full_like(nu, 4.0 * (size + 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        many = nu / (nu - 2) if kind == 2 else (size + 1) * nu**2 / ((nu - 1) * (nu - 2))
    return np.asarray(np.where(nu > 2, many, np.inf))
