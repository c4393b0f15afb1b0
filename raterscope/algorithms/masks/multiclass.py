"""Robust fusion of several structures at once: log-ratios of each structure to the background (section 2)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks._multiclass_fit import (
    MulticlassFit,
    covariance_factor,
    fit,
    resume,
    shares,
    start,
)
from raterscope.algorithms.masks._robust_fit import (
    Columns,
    Likelihood,
    SpatialPrior,
    merge_columns,
    single_columns,
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
    MOST_TAU,
    ROUGHLY,
    SLACK,
    GDPSettings,
    RobustSettings,
    StudentSettings,
    bump_sizes,
    gdp_likelihood,
    side_length,
)
from raterscope.algorithms.progress import Check, Watch, part, repeating, silent

_AT_ONCE = 100_000
"""Columns between two calls of the check."""

_KINDS = {"gaussian": 0, "laplace": 1, "student": 2, "gdp": 3}


def multiclass(
    masks: Masks, settings: RobustSettings | None = None, likelihood: str = "laplace", watch: Watch = silent
) -> MaskFusion:
    """Fuse masks of several structures together (the robust fusion paper, section 2, for any K).

    The K classes' values of the paper are redundant (eq. 2 takes K - 1 of them to the same probabilities),
    and for two classes its Sigma_p has no full rank. The model is therefore worked out for the d = K - 1 log-
    ratios of the structures to the background, with d for K in the scales' laws: Sigma_p and the covariances
    of T and b are d x d, the scales integrated out. For one structure it is exactly the model of `laplace`
    and the other likelihoods.

    With the floor, no eigenvalue of Sigma_p falls below that of a boundary quantised to voxels, h²/12 over
    the likelihood's factor of Sigma_p (Laplace: 4 (d + 1)). Settled voxels are held fixed and excluded from
    the estimates. The spatial prior has weights W_k for each log-ratio and a common alpha and Sigma_T (eqs. 5
    to 7 and 22 to 25). It needs a map without holes: with it, settled voxels enter the estimates as the
    raters drew them, and are returned as settled. Raises `ValueError` for an unknown likelihood.

    `masks`: label maps or probabilities, on the domain of the fusion; see `distance.domain`.
    `settings`: `StudentSettings` or `GDPSettings` for those likelihoods, else any.
    `likelihood`: "laplace", "gaussian", "student" or "gdp".
    A voxel belongs to the class with the largest log-ratio, that of the background being 0. A structure's
        `distance` is the difference of its log-ratio to the next best class, in mm, with its `deviation`. Its
        `probability` is the normalised product of the probabilities to exceed each other class: exact for one
        structure, an approximation for more. `variance` is the diagonal of the covariance of the log-ratios
        in mm².
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
    fitted = start(columns, size, law, floor, settings.floor, median, check)
    if smooth:
        if settings.floor:
            fit(fitted, settings.max_iterations, ROUGHLY, part(watch, 0.3, 0.4), lambda: None)
        every = single_columns(data, state.ravel())
        fitted, columns = resume(fitted, columns, every, check), every
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

    fit(fitted, settings.max_iterations, tolerance, part(watch, 0.4 if smooth else 0.3, 0.95), result)
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

    For a label map the log-ratio of a structure is half its signed distance less half the background's, each
    clipped to `clip`. At every voxel the rater's label then has the largest log-ratio (0 for the background).
    The choice of the reference class does not matter: the difference of two structures is half that of their
    distances. It is 0 half way between the two boundaries. For one structure, whose distance is the negative
    of the background's, it is the signed distance.

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
    """Convert (S, ...) probabilities to log-ratios; those that add up to more than 1 are scaled."""
    total = np.maximum(inside.sum(axis=0), 1.0)
    every = np.concatenate([(1.0 - inside.sum(axis=0) / total)[None], inside / total]).clip(0.0)
    logs = np.log(np.maximum(every, every.max(axis=0) * np.exp(-limit)))
    return np.asarray(logs[1:] - logs[0])


def _result(
    name: str, masks: Masks, columns: Columns, fitted: MulticlassFit, settings: RobustSettings, check: Check
) -> MaskFusion:
    size, slope = fitted.size, np.float32(settings.slope)
    inside, probability, distance, deviation = _decide(fitted, check)
    share, scales = shares(fitted, check)
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
        tau = np.broadcast_to(spread(np.minimum(scales, MOST_TAU).astype(np.float16)), several)
    notices = []
    if len(masks.annotators) == 2:
        notices.append("With two raters only the sum of the variances is certain, not which of them errs.")
    factor = covariance_factor(fitted.likelihood.kind, size, fitted.dof)
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
    fitted: MulticlassFit, check: Check
) -> tuple[BoolArray, Float32Array, Float32Array, Float32Array]:
    """Return (S, C): inside, probability, and the difference to the next best class with its deviation."""
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
    """Return the variance of the difference of two classes; class 0 is the reference and has none."""
    total = np.zeros(len(spread), dtype=np.float32)
    for k in (first, other):
        if k:
            total += spread[:, k - 1, k - 1]
    if first and other:
        total -= 2 * spread[:, first - 1, other - 1]
    return np.maximum(total, np.float32(1e-12))
