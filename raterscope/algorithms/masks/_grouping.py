"""Groups of raters who follow the same outline in one image: evidence for groupings.

Rater p's signed distances are the outline of the rater's group plus the rater's own error. Under one common
outline the errors of any two raters are independent, so that the squared difference of two raters is the sum
of two variances. Raters who follow another outline share an error, and differ less. The model is the Gaussian
one of the robust fusion paper's section 3 with the consensuses integrated out: the raters' values at one
voxel have the covariance ``diag(s) + sum_g delta_g 1_g 1_g'`` around a common, unknown value.

There are two differences from the paper. Errors of neighbouring voxels are correlated; an image therefore
counts as its effective number of independent positions, because with the number of voxels any difference
would be certain. Raters' variances have a common log-normal prior; without it, a single rater with any other
outline could be explained by a large variance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.data import BoolArray, Float32Array, FloatArray
from raterscope.algorithms.progress import Watch

_SPREAD = 0.6
"""Prior standard deviation of the log of a rater's variance: raters of a crowd differ by about a factor of
two.
"""

_WITHIN = 0.05
"""Correlation below which errors count as independent."""

_SIDE = 64
"""Maximum number of voxels along an axis for the correlation of errors, which are smooth."""

_AT_ONCE = 500_000
"""Number of voxels between two calls of the check."""

_MAX_CANDIDATES = 48
"""Maximum number of splits into two groups that are fitted, those with the largest differences."""

_MAX_ENUMERATED = 12
"""Maximum number of raters for which every split into two is tried: 2047 splits."""

_LOG_RANGE = (-12.0, 6.0)

Labels = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class RaterErrors:
    """Errors of the raters of an image, for the search for groups."""

    # (P, P): sums over the voxels of the products of two raters' errors from their mean, mm², without the
    # raters' biases
    products: FloatArray
    places: float  # effective number of independent positions
    voxels: int


@dataclass(frozen=True, eq=False)
class Grouping:
    """Fit of one grouping of the raters."""

    groups: Labels  # (P,) intp: numbered from 0 in the order of their first rater
    score: float  # log evidence, nats
    variance: FloatArray  # (P,): mm² for each voxel
    # mean square difference of the two nearest groups' means, relative to that of two raters of one group
    apart: float


def rater_errors(
    distances: Float32Array, spacing: tuple[float, float, float], clip: float, use: BoolArray, watch: Watch
) -> RaterErrors:
    """Measure the raters' errors on one structure.

    A rater's bias, a constant shift of the contour, is removed by least squares: a slightly larger contour
    does not count as another outline.

    `distances`: (P, Z, Y, X) float32, signed distances, mm, within `clip`. `spacing`: (slice, row, column),
    mm. `use`: (Z, Y, X) bool, True for voxels that count.
    """
    raters = len(distances)
    mean = np.zeros(distances.shape[1:], dtype=np.float32)
    for p, values in enumerate(distances):
        watch(0.2 * p / raters, "comparing the raters")
        mean += values
    mean /= raters
    check = partial(watch, 0.2, "comparing the raters")
    moves = np.empty(mean.shape, dtype=np.float32)
    flat, middle, shift, counts = distances.reshape(raters, -1), mean.ravel(), moves.ravel(), use.ravel()
    parts = [slice(begin, begin + _AT_ONCE) for begin in range(0, mean.size, _AT_ONCE)]
    for voxels in parts:
        check()
        shift[voxels] = np.clip(clip - np.abs(middle[voxels]), 0.0, 1.0) * counts[voxels]
    weight = float(np.vdot(moves, moves)) or 1.0
    bias = np.empty(raters)
    for p, values in enumerate(distances):
        check()
        bias[p] = float(np.vdot(values - mean, moves)) / weight
    products = np.zeros((raters, raters))
    for number, voxels in enumerate(parts):
        watch(0.2 + 0.4 * number / len(parts), "comparing the raters")
        errors = (flat[:, voxels] - middle[voxels]) * counts[voxels]
        errors -= bias[:, None].astype(np.float32) * shift[voxels]
        products += (errors @ errors.T).astype(np.float64)
    effective = _effective_places(distances, mean, moves, bias, use, spacing, watch)
    return RaterErrors(products, effective, int(use.sum()))


def _effective_places(
    distances: Float32Array,
    mean: Float32Array,
    moves: Float32Array,
    bias: FloatArray,
    use: BoolArray,
    spacing: tuple[float, float, float],
    watch: Watch,
) -> float:
    """Return the number of independent positions: squared sum of variances over summed squared covariances.

    The covariance of two voxels is the product of their standard deviations, over all raters, and a
    correlation by distance, up to its first zero.
    """
    from scipy import fft

    steps = [math.ceil(size / _SIDE) for size in mean.shape]
    check = partial(watch, 0.6, "measuring how far errors reach")
    thinned = []
    for values, shift in zip(distances, bias, strict=True):
        check()
        rest = values - mean
        rest *= use
        check()
        rest -= np.float32(shift) * moves
        thinned.append(_thin(rest, steps))
    coarse = np.stack(thinned)
    sides = [step * side for step, side in zip(steps, spacing, strict=True)]
    variance = np.asarray(np.mean(coarse**2, axis=0, dtype=np.float64))
    varies = variance > 1e-9 * max(float(variance.max()), 1e-30)
    if not varies.any():
        return 1.0
    scaled = np.where(varies, coarse / np.sqrt(np.where(varies, variance, 1.0)), 0.0)
    frame = [2 * size for size in variance.shape]
    power = np.zeros((*frame[:2], frame[2] // 2 + 1))
    for p, error in enumerate(scaled):
        watch(0.6 + 0.3 * p / len(scaled), "measuring how far errors reach")
        power += np.abs(fft.rfftn(error, frame)) ** 2
    near = [
        np.minimum(np.arange(size), size - np.arange(size)) * side
        for size, side in zip(frame, sides, strict=True)
    ]
    apart = np.sqrt(near[0][:, None, None] ** 2 + near[1][:, None] ** 2 + near[2] ** 2)
    ring = np.rint(apart / min(sides)).astype(np.intp).ravel()
    pairs = np.bincount(ring, _autocorrelation(varies.astype(float), frame).ravel())
    common = np.bincount(ring, fft.irfftn(power, frame).ravel() / len(scaled))
    correlation = common / np.maximum(pairs, 0.5)
    correlation /= correlation[0]
    gone = np.flatnonzero(correlation < _WITHIN)
    if len(gone):
        correlation[gone[0] :] = 0.0
    shared = np.bincount(ring, _autocorrelation(variance, frame).ravel())
    watch(0.95, "measuring how far errors reach")
    return float(max(1.0, shared.sum() / np.sum(shared * correlation**2)))


def _autocorrelation(values: FloatArray, frame: list[int]) -> FloatArray:
    from scipy import fft

    spectrum = np.abs(fft.rfftn(values, frame)) ** 2
    return np.asarray(fft.irfftn(spectrum, frame))


def _thin(values: Float32Array, steps: list[int]) -> Float32Array:
    """Average blocks of voxels."""
    if max(steps) == 1:
        return values
    padded = np.pad(values, [(0, -size % step) for size, step in zip(values.shape, steps, strict=True)])
    z, y, x = (size // step for size, step in zip(padded.shape, steps, strict=True))
    blocks = padded.reshape(z, steps[0], y, steps[1], x, steps[2])
    return np.asarray(blocks.mean(axis=(1, 3, 5)), dtype=np.float32)


def group_raters(errors: RaterErrors, most: int, watch: Watch) -> list[Grouping]:
    """Split off one group of raters at a time while the evidence grows; return all groupings, the best last.

    The means of groups must differ by more than two raters of one group, because with many raters of a large
    image there is evidence even for differences smaller than a rater's own repeatability.
    """
    raters = len(errors.products)
    best = evidence(errors, np.zeros(raters, dtype=np.intp))
    path = [best]
    while best.groups.max() + 1 < most and raters > 2 and errors.products.trace() > 0:
        groups = int(best.groups.max()) + 1
        fitted = []
        for group in range(groups):
            members = np.flatnonzero(best.groups == group)
            for split in _splits(errors.products, members):
                watch((len(path) - 1) / most, f"searching for consensus {groups + 1}")
                labels = best.groups.copy()
                labels[members[split]] = groups
                fitted.append(evidence(errors, labels))
        far = [fit for fit in fitted if fit.apart >= 1.0]
        best_apart = max(far, key=lambda fit: fit.score, default=best)
        if best_apart.score <= best.score:
            break
        best = best_apart
        path.append(best)
    return path


def _splits(products: FloatArray, members: Labels) -> Iterator[BoolArray]:
    """Return the splits of some raters into two with the largest differences."""
    size = len(members)
    if size < 2:
        return
    inner = products[np.ix_(members, members)]
    candidates = np.array(list(_two_groups(inner)))
    sides = candidates.sum(axis=1)
    contrast = candidates / sides[:, None] - ~candidates / (size - sides)[:, None]
    between = np.einsum("ci,ij,cj->c", contrast, inner, contrast) * sides * (size - sides) / size
    yield from candidates[np.argsort(-between, kind="stable")[:_MAX_CANDIDATES]]


def _two_groups(inner: FloatArray) -> Iterator[BoolArray]:
    size = len(inner)
    if size <= _MAX_ENUMERATED:
        for number in range(1, 2 ** (size - 1)):
            yield np.array([False] + [bool(number >> p & 1) for p in range(size - 1)])
        return
    from scipy.cluster.hierarchy import linkage, to_tree
    from scipy.spatial.distance import squareform

    square = np.maximum(np.add.outer(np.diag(inner), np.diag(inner)) - 2 * inner, 0.0)
    for method in ("complete", "average", "ward"):
        _, nodes = to_tree(linkage(squareform(np.sqrt(square), checks=False), method), rd=True)
        for node in nodes[:-1]:
            yield np.isin(np.arange(size), node.pre_order())


def evidence(errors: RaterErrors, groups: Labels) -> Grouping:
    """Fit one grouping.

    The differences between raters, free of the common value, are Gaussian at every position; the variances
    maximise their likelihood times the raters' prior. A group's outline costs half the log of the number of
    positions, as in Schwarz' criterion, and the log of the number of ways to split off a group.
    """
    from scipy.optimize import minimize

    raters = len(groups)
    groups = (
        np.unique(groups, return_inverse=True)[1] if len(np.unique(groups)) > 1 else np.zeros_like(groups)
    )
    order = np.argsort([int(np.flatnonzero(groups == g)[0]) for g in range(groups.max() + 1)])
    groups = np.argsort(order)[groups]
    contrasts = _contrasts(raters)
    observed = contrasts @ errors.products @ contrasts.T
    unit = observed.trace() / max(raters - 1, 1)
    if unit <= 0:
        return Grouping(groups, 0.0, np.zeros(raters), 0.0)
    observed /= unit
    count = int(groups.max()) + 1
    free = {1: 0, 2: 1}.get(count, count)
    shared = contrasts @ np.eye(count)[:, groups].T[:, :free]
    effective = errors.places

    def loss(values: FloatArray) -> tuple[float, FloatArray]:
        centre, logs, excess = values[0], values[1 : 1 + raters], np.exp(values[1 + raters :])
        variance = np.exp(logs)
        covariance = (contrasts * variance) @ contrasts.T + (shared * excess) @ shared.T
        covariance[np.diag_indices(raters - 1)] += 1e-9
        inverse = np.linalg.inv(covariance)
        away = logs - centre
        fit = effective / 2 * (np.linalg.slogdet(covariance)[1] + np.sum(inverse * observed))
        pull = effective / 2 * (inverse - inverse @ observed @ inverse)
        slope = np.concatenate(
            [
                [-away.sum() / _SPREAD**2],
                np.einsum("ip,ij,jp->p", contrasts, pull, contrasts) * variance + away / _SPREAD**2,
                np.einsum("ig,ij,jg->g", shared, pull, shared) * excess,
            ]
        )
        return float(fit + np.sum(away**2) / (2 * _SPREAD**2)), slope

    start = np.zeros(1 + raters + free)
    if free:
        start[: 1 + raters] = -0.7
    result = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[_LOG_RANGE] * len(start))
    log_partitions = math.log(2 ** (raters - 1) - 1) if raters > 1 else 0.0
    cost = free * math.log(max(effective, 2.0)) / 2 + (count - 1) * log_partitions
    variance = np.exp(result.x[1 : 1 + raters]) * unit
    voxels = max(errors.voxels, 1)
    apart = _least_apart(errors.products, groups) / (2 * float(np.median(variance)))
    return Grouping(groups, -float(result.fun) - cost, variance / voxels, apart)


def _least_apart(products: FloatArray, groups: Labels) -> float:
    """Return the smallest squared difference between two groups' means; infinite for one group."""
    share = np.eye(groups.max() + 1)[groups]
    means = (share / share.sum(axis=0)).T
    between = means @ products @ means.T
    square = np.add.outer(np.diag(between), np.diag(between)) - 2 * between
    return float(square[np.triu_indices(len(square), 1)].min(initial=math.inf))


def _contrasts(raters: int) -> FloatArray:
    """Return orthonormal contrasts, (P - 1, P), each of sum zero."""
    rows = np.zeros((raters - 1, raters))
    for i in range(1, raters):
        rows[i - 1, :i] = 1 / math.sqrt(i * (i + 1))
        rows[i - 1, i] = -i / math.sqrt(i * (i + 1))
    return rows
