"""Robust fusion of several structures by log-ratios of each structure to the background (section 2).

The fit uses variational updates on columns of distinct values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks._robust_fit import (
    Columns,
    Likelihood,
    SpatialPrior,
    has_converged,
    merge_columns,
    single_columns,
    update_together,
)
from raterscope.algorithms.masks.data import (
    OPEN,
    BoolArray,
    Float32Array,
    FloatArray,
    MaskFusion,
    Masks,
    MaskTrace,
    make_fusion,
)
from raterscope.algorithms.masks.distance import signed_distance
from raterscope.algorithms.masks.robust import (
    MAX_TAU,
    ROUGHLY,
    SLACK,
    GDPSettings,
    RobustSettings,
    StudentSettings,
    bump_sizes,
    gdp_likelihood,
    lookup,
    side_length,
)
from raterscope.algorithms.progress import Check, Watch, part, repeating, silent

_AT_ONCE = 100_000
"""Number of columns between two calls of the check."""

_KINDS = {"gaussian": 0, "laplace": 1, "student": 2, "gdp": 3}

_CHUNK = 40_000
"""Number of columns times raters between two progress reports."""

_TINY = 1e-12
_MIN_DOF, _MAX_DOF = 0.05, 1e4


def multiclass(
    masks: Masks, settings: RobustSettings | None = None, likelihood: str = "laplace", watch: Watch = silent
) -> MaskFusion:
    """Fuse masks of several structures together (the robust fusion paper, section 2, for any K).

    The paper's values of K classes are redundant (in eq. 2, K - 1 of them give the same probabilities), and
    for two classes its Sigma_p does not have full rank. The model therefore uses the d = K - 1 log-ratios of
    the structures to the background, with d instead of K in the distributions of the scales: Sigma_p and the
    covariances of T and b are d x d, and the scales are integrated out. For one structure this is exactly the
    model of `laplace` and the other likelihoods.

    With the floor, no eigenvalue of Sigma_p falls below that of a boundary quantised to voxels, h²/12 over
    the likelihood's factor of Sigma_p (Laplace: 4 (d + 1)). Settled voxels are held fixed and excluded from
    the estimates. The spatial prior has weights W_k for each log-ratio and a common alpha and Sigma_T (eqs. 5
    to 7 and 22 to 25). The prior needs a map without holes: settled voxels therefore enter the estimates as
    the raters drew them, and are set to the settled class at the end. Raises `ValueError` for an unknown
    likelihood.

    `masks`: label maps or probabilities, on the domain of the fusion; see `distance.domain`.
    `settings`: `StudentSettings` or `GDPSettings` for these likelihoods, otherwise any.
    `likelihood`: "laplace", "gaussian", "student" or "gdp". A voxel belongs to the class with the largest
    log-ratio; that of the background is 0. A structure's `distance` is the difference (mm) between its
    log-ratio and that of the next best class, with its `deviation`. Its `probability` is the normalised
    product of the probabilities of exceeding each other class: exact for one structure, an approximation for
    several. `variance` is the diagonal of the covariance of the log-ratios in mm².
    """
    if likelihood not in _KINDS:
        raise ValueError(f"likelihood {likelihood!r}; expected one of {', '.join(_KINDS)}.")
    settings = RobustSettings() if settings is None else settings
    raters, size = len(masks.annotators), len(masks.structures)
    watch, check = repeating(watch)
    data = log_ratios(masks, settings.clip, settings.slope, part(watch, 0.0, 0.2))
    for index in np.ndindex(data.shape[:2]):
        check()
        data[index] *= np.float32(settings.slope)
    state = np.zeros(data.shape[2:], dtype=np.int8)
    if masks.known is not None:
        state[masks.known != OPEN] = 1
    data = data.reshape(raters * size, -1)
    smooth = settings.spatial_prior
    if smooth:
        state[:] = 0
    columns = merge_columns(data, state.ravel(), check)
    law = _law(likelihood, settings, size)
    floor = 0.0
    if settings.floor:
        factor = 4.0 * (size + 1) if law.kind == 1 else 1.0
        floor = (settings.slope * side_length(masks.spacing, masks.shape)) ** 2 / (12 * factor)
    median, tolerance = settings.start == "median", settings.tolerance
    fitted = _start(columns, size, law, floor, settings.floor, median, check)
    if smooth:
        if settings.floor:
            _fit(fitted, settings.max_iterations, ROUGHLY, part(watch, 0.3, 0.4), lambda: None)
        every = single_columns(data, state.ravel())
        fitted, columns = _resume(fitted, columns, every, check), every
        spacing, radius = bump_sizes(masks, settings)
        variance = float(np.trace(fitted.sigma, axis1=1, axis2=2).mean()) / size
        fitted.priors = [
            SpatialPrior(
                masks.shape, masks.spacing, spacing, radius, fitted.mean[:, k], variance, floor,
                masks.positions, check,
            )
            for k in range(size)
        ]  # fmt: skip
        tolerance *= SLACK
    else:
        del data

    def result() -> MaskFusion:
        return _result(likelihood, masks, columns, fitted, settings, check)

    _fit(fitted, settings.max_iterations, tolerance, part(watch, 0.4 if smooth else 0.3, 0.95), result)
    watch(0.95, "assembling the result")
    return result()


def _law(name: str, settings: RobustSettings, size: int) -> Likelihood:
    kind = _KINDS[name]
    if name == "student":
        dof = settings.dof if isinstance(settings, StudentSettings) else None
        return Likelihood(kind, 4.0 if dof is None else dof, dof is None)
    if name == "gdp":
        return gdp_likelihood(settings if isinstance(settings, GDPSettings) else GDPSettings(), size)
    return Likelihood(kind)


def log_ratios(masks: Masks, clip: float, slope: float, watch: Watch = silent) -> Float32Array:
    """Return each rater's log-ratios of structures to background, over the slope: (P, S, Z, Y, X), mm.

    For a label map the log-ratio of a structure is half its signed distance minus half that of the
    background, each clipped to `clip`. At every voxel the rater's label then has the largest log-ratio (0 for
    the background). The choice of the reference class does not matter: the difference of two structures is
    half that of their distances, and 0 midway between the two boundaries. For one structure, whose distance
    is the negative of the background's, it is the signed distance.

    For probabilities it is the log of the ratio. A class is at most exp(-slope clip) times less probable than
    the most probable one, so that clipping keeps the order of the classes.

    `clip`: in mm. `slope`: slope of the sigmoid, 1/mm.
    """
    raters, size = len(masks.annotators), len(masks.structures)
    out = np.empty((raters, size, *masks.shape), dtype=np.float32)
    for p in range(raters):
        if masks.values.dtype == np.float32:
            for z in range(masks.shape[0]):
                watch((p + z / masks.shape[0]) / raters, "taking the log-ratios")
                slices = masks.values[p, :, z] if masks.values.ndim == 5 else masks.values[p, None, z]
                out[p, :, z] = _log_ratios(slices.astype(np.float64), clip * slope) / slope
            continue
        values = masks.values[p]
        check = partial(watch, p / raters, "measuring distances")
        half_background = signed_distance(values == 0, masks.spacing, clip, check, masks.positions)
        half_background *= np.float32(0.5)
        for s in range(size):
            check = partial(watch, (p + s / size) / raters, "measuring distances")
            away = signed_distance(values == s + 1, masks.spacing, clip, check, masks.positions)
            check()
            np.subtract(np.float32(0.5) * away, half_background, out=out[p, s])
    return out


def _log_ratios(inside: FloatArray, limit: float) -> FloatArray:
    """Convert (S, ...) probabilities to log-ratios; sums above 1 are scaled."""
    total = np.maximum(inside.sum(axis=0), 1.0)
    every = np.concatenate([(1.0 - inside.sum(axis=0) / total)[None], inside / total]).clip(0.0)
    logs = np.log(np.maximum(every, every.max(axis=0) * np.exp(-limit)))
    return np.asarray(logs[1:] - logs[0])


def _result(
    name: str, masks: Masks, columns: Columns, fitted: _MulticlassFit, settings: RobustSettings, check: Check
) -> MaskFusion:
    size, slope = fitted.size, np.float32(settings.slope)
    inside, probability, distance, deviation = _decide(fitted, check)
    share, scales = _shares(fitted, check)
    weight = np.empty(share.shape, dtype=np.uint8)
    for begin in range(0, share.shape[1], _AT_ONCE):
        check()
        block = slice(begin, begin + _AT_ONCE)
        weight[:, block] = np.diff(np.rint(255 * np.cumsum(share[:, block], axis=0)), axis=0, prepend=0)

    def spread(values: NDArray[Any]) -> NDArray[Any]:
        return columns.spread(values, check).reshape(*values.shape[:-1], *masks.shape)

    mask, chance, margin = spread(inside), spread(probability), spread(distance / slope)
    if masks.known is not None:
        settled = masks.known != OPEN
        for s in range(size):
            own = masks.known[settled] == s + 1
            mask[s][settled], chance[s][settled] = own, own
            margin[s][settled] = np.where(own, settings.clip, -settings.clip)
    tau = None
    if fitted.likelihood.kind:  # the Gaussian has no scales
        several = (size, len(scales), *masks.shape)
        tau = np.broadcast_to(spread(np.minimum(scales, MAX_TAU).astype(np.float16)), several)
    notices = []
    if len(masks.annotators) == 2:
        notices.append("With two raters only the sum of the variances is certain, not which rater errs.")
    factor = _covariance_factor(fitted.likelihood.kind, size, fitted.dof)
    fusion = make_fusion(
        masks,
        name,
        (0, 0, 0),
        mask,
        chance,
        (MaskTrace(np.array(fitted.objective), fitted.converged),),
        notices,
        distance=margin,
        deviation=spread(deviation / slope),
        weight=np.broadcast_to(spread(weight), (size, len(weight), *masks.shape)),
        bias=fitted.bias.T / settings.slope,
        variance=np.diagonal(fitted.sigma, axis1=1, axis2=2).T * factor / settings.slope**2,
        tau=tau,
        sigma=np.diagonal(fitted.sigma, axis1=1, axis2=2).T / settings.slope**2,
    )
    return replace(fusion, dof=np.tile(fitted.dof, (size, 1)))


def _decide(
    fitted: _MulticlassFit, check: Check
) -> tuple[BoolArray, Float32Array, Float32Array, Float32Array]:
    """Return, (S, C) each: inside, probability, and difference to the next best class with its deviation."""
    from scipy.special import log_ndtr

    count, size = fitted.mean.shape
    mean = np.zeros((size + 1, count), dtype=np.float32)
    mean[1:] = fitted.mean.T
    log_chance = np.zeros((size + 1, count), dtype=np.float32)
    distance = np.full((size, count), np.inf, dtype=np.float32)
    deviation = np.empty((size, count), dtype=np.float32)
    for k in range(size + 1):
        for other in range(size + 1):
            if other == k:
                continue
            check()
            gap = mean[k] - mean[other]
            doubt = np.sqrt(_variance_of_gap(fitted.spread, k, other))
            log_chance[k] += log_ndtr(gap / doubt)
            if k:
                nearer = gap < distance[k - 1]
                distance[k - 1][nearer] = gap[nearer]
                deviation[k - 1][nearer] = doubt[nearer]
    chance = np.exp(log_chance - log_chance.max(axis=0))
    chance /= chance.sum(axis=0)
    return distance > 0, chance[1:], distance, deviation


def _variance_of_gap(spread: Float32Array, first: int, other: int) -> Float32Array:
    """Return the variance of the difference of two classes; class 0 is the reference without variance."""
    total = np.zeros(len(spread), dtype=np.float32)
    for k in (first, other):
        if k:
            total += spread[:, k - 1, k - 1]
    if first and other:
        total -= 2 * spread[:, first - 1, other - 1]
    return np.maximum(total, np.float32(1e-12))


@dataclass(eq=False)
class _MulticlassFit:
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
        """Number of log-ratios, d."""
        return int(self.data.shape[2])

    @property
    def voxels(self) -> float:
        """Number of voxels that are not settled, N."""
        return float(self.weight.sum(dtype=np.float64))


def _chunks(state: _MulticlassFit) -> list[tuple[int, int]]:
    step = max(1, _CHUNK // len(state.data))
    count = len(state.weight)
    return [(begin, min(count, begin + step)) for begin in range(0, count, step)]


def _squares(state: _MulticlassFit, begin: int, end: int) -> FloatArray:
    """Return E, the expected squared Mahalanobis distance (C.5), (P, n)."""
    inverse = np.linalg.inv(state.sigma)
    rest = state.data[:, begin:end] - state.mean[begin:end] - state.bias[:, None]
    spread = state.spread[begin:end].astype(np.float64)
    squares = np.einsum("pni,pij,pnj->pn", rest, inverse, rest, optimize=True)
    squares += np.einsum("pij,nij->pn", inverse, spread, optimize=True)
    squares += np.einsum("pij,pij->p", inverse, state.doubt)[:, None]
    return np.asarray(np.maximum(squares, 1e-300))


def _scales(state: _MulticlassFit, squares: FloatArray) -> FloatArray:
    """Return E[tau] (Table 2); for the double Pareto with a joint q(tau, z)."""
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


def _log_density(state: _MulticlassFit, squares: FloatArray) -> FloatArray:
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
    """Return the constants of the log density, without half the log determinant of Sigma."""
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
    """Sums over voxels of E[tau] times 1, the residual, its outer product, and q(T)'s covariance."""

    zeroth: FloatArray
    first: FloatArray
    second: FloatArray
    doubt: FloatArray


def _sweep(state: _MulticlassFit, report: Callable[[float], None]) -> tuple[float, float, _Sums]:
    """Update q(T) (eqs. 17, 18); return the log density before, the entropy after, and the sums by rater."""
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


def _update(state: _MulticlassFit, entropy: float, sums: _Sums, report: Callable[[float], None]) -> float:
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
        # A shift of T against all biases changes no residual; it only increases the prior of the biases.
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


def _learn_dof(state: _MulticlassFit, report: Callable[[float], None]) -> None:
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
            loss, bounds=(math.log(_MIN_DOF), math.log(_MAX_DOF)), method="bounded", options={"xatol":
            1e-6}
        )  # fmt: skip
        if result.fun < loss(math.log(state.dof[p])):
            state.dof[p] = math.exp(result.x)


def _covariance_factor(kind: int, size: int, nu: FloatArray) -> FloatArray:
    """Return the factor from Sigma to the covariance; infinite if the tails are too heavy."""
    if kind == 0:
        return np.ones_like(nu)
    if kind == 1:
        return np.full_like(nu, 4.0 * (size + 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        many = nu / (nu - 2) if kind == 2 else (size + 1) * nu**2 / ((nu - 1) * (nu - 2))
    return np.asarray(np.where(nu > 2, many, np.inf))


def _fit(
    state: _MulticlassFit, iterations: int, tolerance: float, watch: Watch, partial: Callable[[], object]
) -> None:
    """Iterate until the relative gain of the lower bound is below `tolerance`."""
    rest = 0.0
    for count in range(iterations):
        objective = state.objective[-1] if state.objective else None
        text = f"fusing, iteration {count + 1}"

        def report(
            share: float, count: int = count, text: str = text, objective: float | None = objective
        ) -> None:
            watch((count + share) / iterations, text, objective=objective, partial=partial)

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


def _resume(state: _MulticlassFit, merged: Columns, columns: Columns, check: Check) -> _MulticlassFit:
    """Continue a state on merged columns with a column for every voxel; settled voxels count as unsettled."""
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


def _shares(state: _MulticlassFit, check: Check) -> tuple[Float32Array, Float32Array]:
    """Return the raters' shares and scales at each column, (P, C).

    A share is the trace of the rater's precision times the covariance. A scale is E[tau].
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


def _start(
    columns: Columns, size: int, likelihood: Likelihood, floor: float, recentre: bool, median: bool,
    check: Check,
) -> _MulticlassFit:  # fmt: skip
    """Start from the raters' mean or median, and the covariances from it.

    The rows of `columns` are the raters' log-ratios, `size` for each rater; the state is 0 for voxels that
    are not settled.
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
    return _MulticlassFit(
        data, weight, likelihood, floor, recentre, mean, spread, np.zeros((raters, size)), doubt, sigma, dof,
        beta
    )  # fmt: skip
