"""Leave-one-out of raters: comparison of each outline with the spread of the others."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.data import BoolArray, Float32Array, FloatArray
from raterscope.algorithms.progress import Check, Watch, no_check, parts_of, run_parts

PRIOR = 17.8
"""Prior degrees of freedom nu0: maximum likelihood estimate from left-out raters on disputed voxels of the
development data.
"""

WIDTH = 1.5 / 8.0
"""Standard deviation of the weights across the outline, in maximum distances."""

LEAST = 1e-6
"""Minimum variance, mm²."""

FEW = np.float32(1e-3)
"""Weight of the case's mean spread, for voxels far from outlines."""

_TRUNCATED = 3.0
"""Radius of the neighbourhood, in standard deviations."""


class Smoother:
    """Weighted mean over the neighbourhood, by true slice positions."""

    def __init__(
        self, spacing: tuple[float, float, float], positions: FloatArray | None, reach: float
    ) -> None:
        self._spacing, self._positions, self._reach = spacing, positions, reach
        self._sigmas = (reach / spacing[0], reach / spacing[1], reach / spacing[2])
        self._across: NDArray[np.float32] | None = None
        if positions is not None and len(positions) > 1:
            # As in the filter of even slices: normalised, and truncated at the same number of nominal
            # distances.
            radius = int(_TRUNCATED * self._sigmas[0] + 0.5)
            apart = np.abs(positions[:, None] - positions[None])
            taps = np.exp(-0.5 * (np.arange(-radius, radius + 1) / self._sigmas[0]) ** 2)
            near = np.where(apart < (radius + 0.5) * spacing[0], np.exp(-0.5 * (apart / reach) ** 2), 0.0)
            self._across = (near / taps.sum()).astype(np.float32)

    def coarser(self, *, in_plane: bool = False) -> Smoother:
        """Return the smoother for sums over pairs of voxels along each axis, or along rows and columns."""
        a, b, c = self._spacing
        positions = self._positions
        if in_plane:
            return Smoother((a, 2 * b, 2 * c), positions, self._reach)
        if positions is not None:
            starts = np.arange(0, len(positions), 2)
            positions = np.add.reduceat(positions, starts) / np.add.reduceat(np.ones(len(positions)), starts)
        return Smoother((2 * a, 2 * b, 2 * c), positions, self._reach)

    def __call__(self, values: Float32Array, check: Check = no_check) -> Float32Array:
        """Smooth (Z, Y, X) values, and call `check` regularly."""
        out = values
        for axis in range(3):
            if axis == 0 and len(values) == 1:
                continue
            out = self._along(axis, out, check)
        return out

    def _along(self, axis: int, values: Float32Array, check: Check) -> Float32Array:
        """Smooth along an axis, for a part of the longest other axis at a time."""
        from scipy.ndimage import gaussian_filter1d

        out = np.empty(values.shape, dtype=np.float32)
        other = max(
            (candidate for candidate in range(3) if candidate != axis),
            key=lambda candidate: values.shape[candidate],
        )

        def fill(begin: int, end: int) -> None:
            block = tuple(slice(begin, end) if index == other else slice(None) for index in range(3))
            if axis == 0 and self._across is not None:
                out[block] = np.tensordot(self._across, values[block], axes=1)
            else:
                gaussian_filter1d(
                    values[block], self._sigmas[axis], axis=axis, mode="constant", truncate=_TRUNCATED,
                    output=out[block],
                )  # fmt: skip

        run_parts(fill, parts_of(values.shape[other], _AT_ONCE * values.shape[other] // values.size), check)
        return out


def spread(
    away: Float32Array, clip: float, smooth: Smoother, check: Check
) -> tuple[Float32Array, Float32Array]:
    """Return the mean of (P, Z, Y, X) distances, and the scale of another rater's distance.

    The variance is smoothed on pairs of rows and columns, and interpolated.
    """
    annotators, slices = len(away), len(away[0])
    mean, scale = np.empty((2, *away.shape[1:]), dtype=np.float32)
    paired = (slices, *(-(-size // 2) for size in mean.shape[1:]))
    weighted, weights = np.empty(paired, dtype=np.float32), np.empty(paired, dtype=np.float32)
    sums = np.zeros((slices, 2))

    def gather(begin: int, end: int) -> None:
        """Sum the variance near the outline over pairs, and store each voxel's variance in `scale`."""
        means, square = mean[begin:end], scale[begin:end]
        away[:, begin:end].mean(axis=0, dtype=np.float32, out=means)
        square[:] = 0
        for layer in away:
            square += (layer[begin:end] - means) ** 2
        square /= annotators - 1
        weight = np.exp(-0.5 * (means / np.float32(clip * WIDTH)) ** 2)
        weights[begin:end] = _paired(weight)
        weight_sum = weight.sum(axis=(1, 2), dtype=np.float64)
        weight *= square
        weighted[begin:end] = _paired(weight)
        sums[begin:end] = np.stack([weight.sum(axis=(1, 2), dtype=np.float64), weight_sum], axis=1)

    parts = parts_of(slices, _AT_ONCE // mean[0].size)
    run_parts(gather, parts, check)
    coarse = smooth.coarser(in_plane=True)
    local, total = coarse(weighted, check), coarse(weights, check)
    overall, weight_sum = sums.sum(axis=0).tolist()
    few = FEW * np.float32(np.prod([min(2, size) for size in mean.shape[1:]]))
    local += few * np.float32(overall / max(weight_sum, 1e-12))
    total += few
    local /= total
    check()

    def pool(begin: int, end: int) -> None:
        variance = _unpaired(_unpaired(local[begin:end], 2, mean.shape[2]), 1, mean.shape[1])
        variance *= PRIOR
        variance += (annotators - 1) * scale[begin:end]
        variance /= PRIOR + annotators - 1
        np.maximum(variance, LEAST, out=variance)
        variance *= np.float32(1 + 1 / annotators)
        np.sqrt(variance, out=scale[begin:end])

    run_parts(pool, parts, check)
    return mean, scale


def _paired(values: Float32Array) -> Float32Array:
    """Sum over pairs of rows and of columns."""
    out = values[:, ::2].copy()
    out[:, : values.shape[1] // 2] += values[:, 1::2]
    across = out[:, :, ::2].copy()
    across[:, :, : values.shape[2] // 2] += out[:, :, 1::2]
    return across


def _unpaired(values: Float32Array, axis: int, size: int) -> Float32Array:
    """Interpolate values of pairs along an axis with a number of rows or columns."""
    along = np.moveaxis(values, axis, 0)
    shape = (size, *along.shape[1:])
    out = np.empty(shape, dtype=np.float32)
    nearer, farther = np.float32(0.75), np.float32(0.25)
    first, second = out[::2], out[1::2]
    first[:] = nearer * along
    first[1:] += farther * along[:-1]
    first[0] += farther * along[0]
    second[:] = nearer * along[: len(second)]
    second[: len(along) - 1] += farther * along[1 : len(second) + 1]
    if len(second) == len(along):
        second[-1] += farther * along[-1]
    return np.ascontiguousarray(np.moveaxis(out, 0, axis))


Places = tuple[NDArray[np.intp], ...]


def neighbours(mask: NDArray[np.bool_]) -> Iterator[tuple[Places, Places]]:
    """Return the pairs of neighbouring voxels on both sides of a mask's boundary, axis by axis."""
    for axis in range(3):
        size = mask.shape[axis]
        along = np.moveaxis(mask, axis, 0)
        edge = np.moveaxis(along[: size - 1] != along[1:], 0, axis)
        voxel = np.unravel_index(np.flatnonzero(edge), edge.shape)
        if len(voxel[0]):
            yield voxel, tuple(at + (axis == number) for number, at in enumerate(voxel))


STEPS = np.linspace(0.0, 1.0, 201)
"""Probabilities of the stored quantiles of a case."""

MIDDLES = (np.arange(200) + 0.5) / 200
"""Probabilities at which these quantiles represent the case in pooling."""

_SAMPLE = 1000
"""Maximum number of compared disputed voxels of a case, for each left-out rater."""

_CROSSINGS = 1000
"""Maximum number of compared crossings of each rater's outline with the lines along one axis."""

_AT_ONCE = 500_000
"""Voxels between two calls of the check."""


def leave_one_out(
    values: BoolArray, away: Float32Array, mean: Float32Array, clip: float, smooth: Smoother, watch: Watch
) -> tuple[FloatArray | None, Float32Array, BoolArray]:
    """Leave each rater out in turn, and compare the rater with the mean m and the scale of the others.

    The variance is smoothed on pairs of voxels. `values`: (P, Z, Y, X), masks of three raters or more.
    `away`: (P, Z, Y, X), signed distances, mm. `mean`: (Z, Y, X), their mean. `clip`: maximum distance, mm.
    The results are quantiles of abs(m) over scale along the outlines of left-out raters, (201,), None without
    outlines; m over scale in a sample of the voxels that the others dispute, (N,); and whether the left-out
    rater includes these voxels, (N,).
    """
    annotators = len(away)
    check = partial(watch, 0.0, "leaving each rater out in turn")
    coarse = smooth.coarser()
    squares, sums, count = _halved(away, mean, check)
    total, middle = squares.sum(axis=0), sums.mean(axis=0)
    disputed, votes = _disputed(values, check)
    # Ratio of a rater's squared distance from the mean of the others to that from the mean of all.
    factor = np.float32(annotators / (annotators - 1))
    along, tried, marked = [], [], []
    for p in range(annotators):
        check = partial(watch, p / annotators, "leaving each rater out in turn")
        check()
        others = (annotators * middle - sums[p]) / ((annotators - 1) * count)
        weight = np.exp(-0.5 * (others / np.float32(clip * WIDTH)) ** 2)
        weighted = weight * np.maximum(total - factor * squares[p], 0) / count
        mean_spread = np.float32(weighted.sum(dtype=np.float64) / max(float(weight.sum()), LEAST))
        near = coarse(weighted, check) + FEW * mean_spread
        near /= (coarse(weight, check) + FEW) * np.float32(annotators - 2)

        def ratio(at: Places, p: int = p, near: Float32Array = near) -> Float32Array:
            """Return m over scale of the others at some voxels."""
            own, others = away[p][at], mean[at]
            square = -factor * (own - others) ** 2
            for layer in away:
                square += (layer[at] - others) ** 2
            local = near[at[0] // 2, at[1] // 2, at[2] // 2]
            variance = (PRIOR * local + np.maximum(square, 0)) / (PRIOR + annotators - 2)
            others_mean = (annotators * others - own) / (annotators - 1)
            return np.asarray(others_mean / np.sqrt(np.maximum(variance, LEAST) * (1 + 1 / (annotators - 1))))

        for voxel, other in neighbours(values[p]):
            check()
            step = -(-len(voxel[0]) // _CROSSINGS)
            voxel, other = (tuple(indices[::step] for indices in at) for at in (voxel, other))
            along.append(np.abs(ratio(voxel) + ratio(other)) / 2)
        own = values[p].ravel()[disputed]
        between = (votes > own) & (votes - own < annotators - 1)
        tried.append(ratio(np.unravel_index(disputed[between], mean.shape)))
        marked.append(own[between])
    every = np.sort(np.concatenate(along)).astype(np.float64) if along else np.empty(0)
    ratios = np.interp(STEPS * (len(every) - 1), np.arange(len(every)), every) if len(every) else None
    return ratios, np.concatenate(tried).astype(np.float32), np.concatenate(marked)


def _disputed(values: BoolArray, check: Check) -> tuple[np.ndarray, np.ndarray]:
    """Sample voxels that some but not all raters mark, with the number of raters."""
    votes = np.zeros(values.shape[1:], dtype=np.uint16)
    for layer in values:
        check()
        votes += layer
    flat = votes.ravel()
    voxels = np.flatnonzero((flat > 0) & (flat < len(values)))
    voxels = voxels[:: max(1, -(-len(voxels) // _SAMPLE))]
    return voxels, flat[voxels].astype(np.int64)


def _halved(
    away: Float32Array, mean: Float32Array, check: Check
) -> tuple[Float32Array, Float32Array, Float32Array]:
    """Sum over pairs of voxels along each axis: (away - mean)², `away`, and the number of voxels."""
    shape = tuple(-(-size // 2) for size in mean.shape)
    squares, sums = np.empty((2, len(away), *shape), dtype=np.float32)
    parts = parts_of(math.prod(shape[:2]), _AT_ONCE // (4 * mean.shape[2]))
    for layer, square, total in zip(away, squares, sums, strict=True):
        run_parts(partial(_halve, layer, mean, square, total), parts, check)
    sizes = [np.minimum(2, size - 2 * np.arange(-(-size // 2))) for size in mean.shape]
    count = np.einsum("i,j,k->ijk", *sizes).astype(np.float32)
    return squares, sums, count


def _halve(
    layer: Float32Array, mean: Float32Array, square: Float32Array, total: Float32Array, begin: int, end: int
) -> None:
    from raterscope.algorithms.masks import _voxel_kernels as kernels

    kernels.halve(layer, mean, begin, end, square, total)
