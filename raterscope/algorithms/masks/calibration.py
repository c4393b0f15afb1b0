"""Calibrated statements about outlines: what another rater would include, and a band in mm.

Each rater's mask becomes a signed distance (above 0 inside). In every voxel the raters' distances have a
mean m and a variance S². That variance holds the raters' biases and their local scatter alike, and so does
the next rater's distance. S² of a few raters is uncertain; it is pooled with its mean L along the outline
nearby, as if L came from nu0 further raters (the conjugate prior of a normal variance):

    v = (nu0 L + (P - 1) S²) / (nu0 + P - 1).

The distance of another rater of this crowd then follows Student's t with nu0 + P - 1 degrees of freedom about
m with the scale sqrt(v (1 + 1/P)): 1 for the new rater, 1/P for the error of the mean. The probability that
the rater includes the voxel is that of a distance above 0.

The band of a probability c holds the voxels with |m| <= k_c sqrt(v (1 + 1/P)). It is pointwise: of a long
outline some part leaves it. The multipliers k_c are quantiles of |m| over scale along the outlines of raters
who were left out. The cases of the user give them without any truth, where three raters or more marked; they
are pooled with those of the development data.

The true outline's distance is taken to follow Student's t about m + delta with the scale
sqrt(v (rho + (1 - rho)/P)). Neither delta, the raters' common offset, nor rho, the correlation of their
errors, can be estimated from masks alone. Cases with a known true outline tell both; few tell little.

References
----------
.. [gelman2013] A. Gelman, J. B. Carlin, H. S. Stern, D. B. Dunson, A. Vehtari and D. B. Rubin, "Bayesian
   data analysis", 3rd edition, CRC Press (2013), doi:10.1201/b16018 (sections 2.6 and 3.2: pooled variance,
   predictive t distribution).
.. [maurer2003] C. R. Maurer, R. Qi and V. Raghavan, "A linear time algorithm for computing exact Euclidean
   distance transforms of binary images in arbitrary dimensions", IEEE Transactions on Pattern Analysis and
   Machine Intelligence 25 (2003) 265-270, doi:10.1109/TPAMI.2003.1177156 (distances).
.. [vovk2005] V. Vovk, A. Gammerman and G. Shafer, "Algorithmic learning in a random world", Springer
   (2005), doi:10.1007/b106715 (quantiles of left-out members as multipliers).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.data import OPEN, Box, Float32Array, FloatArray, Masks
from raterscope.algorithms.masks.distance import domain, signed_distance
from raterscope.algorithms.progress import Look, Watch, no_look, part, silent

__all__ = [
    "CORRELATION",
    "LEVELS",
    "Calibration",
    "calibrate",
    "crossings",
    "default_multipliers",
    "pooled",
    "with_gold",
]

LEVELS = (0.5, 0.8, 0.95)
"""Probabilities of the bands that multipliers are estimated for."""

_MULTIPLIERS = {2: (0.70, 1.8, 4.2), 3: (0.68, 1.47, 2.95), 4: (0.66, 1.38, 2.63)}
"""k at `LEVELS` by the number of raters: quantiles along left-out raters' outlines, development data.

Of two or three raters the spread itself is uncertain, and along an outline they may agree by chance.
"""

CORRELATION = 0.87
"""Assumed of the raters' errors against the truth where no gold case is known: near 1, for caution."""

_PRIOR = 17.8
"""nu0: maximum likelihood of left-out raters on disputed voxels of the development data."""

_CLIP, _LEAST_CLIP, _MOST_CLIP = 8.0, 8.0, 24.0
"""Largest distance: mm, and at least and at most as many sides of a pixel."""

_WIDTH = 1.5 / 8.0
"""Standard deviation of the weights across the outline, in largest distances."""

_SMOOTHED = 3.0
"""Standard deviation of the neighbourhood, in sides of a pixel."""

_MARGIN = 0.5
"""Room about all that is marked, in largest distances."""

_LEAST = 1e-6
"""Least variance, mm²."""

_FEW = np.float32(1e-3)
"""Weight of the case's mean spread, which counts where no outline is near."""

_TRUNCATED = 3.0
"""Standard deviations that the neighbourhood reaches."""

_AT_ONCE = 500_000
"""Voxels between two looks whether the work is still wanted."""

_STEPS = np.linspace(0.0, 1.0, 201)
"""Probabilities of the quantiles that are kept of a case."""

_MIDDLES = (np.arange(200) + 0.5) / 200
"""Probabilities at which they stand for the case when several are pooled."""

_ADJUSTED = 0.5
"""Share of the development data's change from P - 1 to P raters that is made to a case's own multipliers."""

_FARTHEST = 2.0
"""Factor that a case's own multipliers differ by at most: one rater's gross slip is no spread of a crowd."""

_SHRINK = 2.0
"""Cases that the development data's multipliers count as."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """What the spread of P raters says about outlines of one structure, on a part of the grid.

    Attributes
    ----------
    origin : (slice, row, column)
        The first voxel of the maps in the whole image; beyond the maps all is background.
    ratio : (Z, Y, X) float32
        Mean of the raters' signed distances, above 0 inside, over `scale`. The band of a level is where it is
        between minus and plus the level's multiplier.
    scale : (Z, Y, X) float32
        mm: scale of another rater's distance about that mean.
    dof : float
        Degrees of freedom of that distance.
    raters : int
        P.
    multipliers : tuple of float
        Of `scale`, the half-width of the bands at `LEVELS`.
    cases : int
        Cases that the multipliers were estimated from; 0 where they are those of the development data.
    ratios : (201,) float64, optional
        Quantiles of |m| over scale along the outlines of left-out raters of this case.
    settled : (Z, Y, X) int8, optional
        What the expert settled, 1 inside, 0 outside, `OPEN` elsewhere.
    correlation : float
        Of the raters' errors against the true outline: 0 where they err each by themselves, 1 where all err
        alike.
    offset : float
        mm: how far the true outline lies beyond the mean of the raters.
    gold : int
        Cases with a known true outline that both were estimated from; 0 where they are assumed.
    """

    origin: Box
    ratio: Float32Array
    scale: Float32Array
    dof: float
    raters: int
    multipliers: tuple[float, float, float]
    cases: int = 0
    ratios: FloatArray | None = None
    settled: NDArray[np.int8] | None = None
    correlation: float = CORRELATION
    offset: float = 0.0
    gold: int = 0

    def another_rater(self) -> Float32Array:
        """Give the probability that another rater of this crowd includes the voxel, (Z, Y, X)."""
        return _student(self.ratio, self.dof)

    def true_outline(self) -> Float32Array:
        """Give the probability that the true outline includes the voxel, (Z, Y, X).

        Masks alone identify neither the raters' common offset nor the correlation of their errors. Without
        gold cases it is assumed that there is no common offset, and that the truth is hardly nearer to the
        raters' mean than another rater. What the expert settled is held fixed.
        """
        share = self.error_share(self.correlation)
        shifted = self.ratio if not self.offset else self.ratio + np.float32(self.offset) / self.scale
        found = _student(shifted / np.float32(math.sqrt(share)), self.dof)
        if self.settled is not None:
            np.copyto(found, self.settled, where=self.settled != OPEN)
        return found

    def error_share(self, correlation: float) -> float:
        """Give the variance of the mean's error against the truth over the squared `scale`."""
        return (correlation + (1 - correlation) / self.raters) / (1 + 1 / self.raters)

    def half_width(self, level: float = 0.95) -> Float32Array:
        """Give the half-width, mm, of the band that holds another rater's outline, (Z, Y, X)."""
        return np.asarray(self.scale * np.float32(self.multiplier(level)), dtype=np.float32)

    def notices(self) -> tuple[str, ...]:
        """Say what the numbers rest on, a sentence each."""
        said = ["The band holds at each place by itself; of a long outline some part leaves it."]
        if self.raters == 2:
            said.append(
                "Two raters say little about their spread: the bands take multipliers measured on other "
                "crowds, and no rater can be left out here to check them."
            )
        elif not self.cases:
            said.append("The multipliers of the bands were measured on other crowds.")
        if not self.gold:
            said.append(
                "The probability of the true outline rests on an assumption that masks cannot confirm: the "
                f"raters have no common offset, and their errors correlate by {self.correlation:g}."
            )
        else:
            said.append(
                f"The probability of the true outline takes an offset of {self.offset:+.2g} and a "
                f"correlation of {self.correlation:.2g}, estimated from gold cases ({self.gold})."
            )
        return tuple(said)

    def multiplier(self, level: float) -> float:
        """Give the multiplier of the scale for one of `LEVELS`."""
        return self.multipliers[LEVELS.index(level)]


def calibrate(masks: Masks, watch: Watch = silent) -> Calibration | None:
    """Work out the spread of the raters about their mean outline.

    Parameters
    ----------
    masks : Masks
        Of one structure; probabilities count as marked above one half.
    watch : Watch

    Returns
    -------
    Calibration or None
        None where fewer than two raters leave nothing to estimate the spread from, or nobody marked anything.
    """
    people = len(masks.annotators)
    if people < 2 or not _marks_anything(masks):
        return None
    spacing = masks.spacing
    clip = _clip(spacing)
    here = domain(masks, clip * _MARGIN)
    values = _marked(here.values)
    away = np.empty(values.shape, dtype=np.float32)
    for p, layer in enumerate(values):
        look = partial(watch, 0.5 * p / people, f"measuring the outline of {masks.annotators[p]}")
        look()
        away[p] = signed_distance(layer, spacing, clip, look, here.positions)
    smooth = _Smoother(spacing, here.positions, _SMOOTHED * _side(spacing))
    mean, scale = _spread(away, clip, smooth, partial(watch, 0.5, "pooling the raters' spread"))
    ratios = None
    if people > 2:
        ratios = _left_out(values, away, clip, smooth, part(watch, 0.6, 1.0))
    settled = here.known if here.known is not None and bool((here.known != OPEN).any()) else None
    return Calibration(
        origin=here.origin,
        ratio=mean / scale,
        scale=scale,
        dof=_PRIOR + people - 1,
        raters=people,
        multipliers=default_multipliers(people),
        ratios=ratios,
        settled=settled,
    )


def _marked(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype == np.bool_:
        return values
    return np.asarray(values > (0.5 if values.dtype.kind == "f" else 0))


def _marks_anything(masks: Masks) -> bool:
    return any(bool(_marked(layer).any()) for layer in masks.values)


def pooled(found: Sequence[Calibration]) -> list[Calibration]:
    """Estimate the bands' multipliers from cases with three raters or more, each counting the same.

    The multipliers of the development data count as `_SHRINK` cases more. A case of two raters keeps them:
    its own band rests on a spread that is too uncertain for multipliers of other cases.
    """
    ratios = [one.ratios for one in found if one.ratios is not None]
    if not ratios:
        return list(found)
    share = len(ratios) / (len(ratios) + _SHRINK)
    every = np.concatenate([np.interp(_MIDDLES, _STEPS, one) for one in ratios])
    own = np.log(np.maximum(np.quantile(every, LEVELS), _LEAST))
    fewer = np.mean([_log_default(one.raters - 1) for one in found if one.ratios is not None], axis=0)
    out = []
    for one in found:
        # The ratios rest on a rater less than the case has, which makes them larger.
        here = share if one.raters > 2 else 0.0
        default = _log_default(one.raters)
        adjusted = own + _ADJUSTED * (default - fewer)
        adjusted = np.clip(adjusted, default - math.log(_FARTHEST), default + math.log(_FARTHEST))
        multipliers = np.exp(here * adjusted + (1 - here) * default)
        a, b, c = multipliers.tolist()
        out.append(replace(one, multipliers=(a, b, c), cases=len(ratios) if here else 0))
    return out


def with_gold(found: Sequence[Calibration], truths: Sequence[NDArray[np.bool_] | None]) -> list[Calibration]:
    """Estimate the raters' common offset and correlation from cases whose true outline is known.

    Both maximise the likelihood of the truth's voxels near the raters' mean outline times a prior: offset 0
    and `CORRELATION`. The voxels of one outline depend on each other, so that a case counts as `_GOLD_VOXELS`
    of them: a few gold cases move the estimate little.

    Parameters
    ----------
    found : sequence of Calibration
        Of one crowd.
    truths : sequence of (Z, Y, X) bool or None
        On the part of each of `found`.
    """
    near = [_near_outline(one, truth) for one, truth in zip(found, truths, strict=True) if truth is not None]
    near = [one for one in near if len(one[0])]
    if not near:
        return list(found)
    typical = float(np.median([np.median(scale) for _, scale, _, _ in near]))
    best, least = (CORRELATION, 0.0), math.inf
    for shift in _SHIFTS:
        for correlation in _CORRELATIONS:
            loss = 0.5 * (shift / _SHIFT_PRIOR) ** 2 + 0.5 * ((correlation - CORRELATION) / _RHO_PRIOR) ** 2
            for ratio, scale, right, one in near:
                share = one.error_share(correlation)
                chance = _student((ratio + shift * typical / scale) / math.sqrt(share), one.dof)
                chance = np.clip(chance, 1e-3, 1 - 1e-3)
                loss -= _GOLD_VOXELS * float(np.mean(np.where(right, np.log(chance), np.log1p(-chance))))
            if loss < least:
                best, least = (float(correlation), float(shift * typical)), loss
    return [replace(one, correlation=best[0], offset=best[1], gold=len(near)) for one in found]


_GOLD_VOXELS = 3.0
"""Independent voxels that the outline of a gold case counts as."""

_SHIFTS, _SHIFT_PRIOR = np.linspace(-2.0, 2.0, 33), 0.3
"""Offsets tried, and the standard deviation of their prior, in median scales near the outline."""

_CORRELATIONS, _RHO_PRIOR = np.linspace(0.0, 1.0, 11), 0.15
"""Correlations tried, and the standard deviation of their prior."""

_NEAR, _SAMPLE = 2.5, 1000
"""Ratio up to which a voxel is near the outline, and how many of them are taken of a case."""


def _near_outline(
    found: Calibration, truth: NDArray[np.bool_]
) -> tuple[Float32Array, Float32Array, NDArray[np.bool_], Calibration]:
    at = np.flatnonzero(np.abs(found.ratio) < _NEAR)
    at = at[:: max(1, len(at) // _SAMPLE)]
    return found.ratio.ravel()[at], found.scale.ravel()[at], truth.ravel()[at], found


def _log_default(raters: int) -> FloatArray:
    return np.log(default_multipliers(raters))


def default_multipliers(raters: int) -> tuple[float, float, float]:
    """Give the multipliers of the development data for a number of raters."""
    return _MULTIPLIERS[min(max(raters, 2), 4)]


class _Smoother:
    """Weighted mean over the neighbourhood, by true slice positions."""

    def __init__(
        self, spacing: tuple[float, float, float], positions: FloatArray | None, reach: float
    ) -> None:
        self._spacing, self._positions, self._reach = spacing, positions, reach
        self._sigmas = (reach / spacing[0], reach / spacing[1], reach / spacing[2])
        self._across: NDArray[np.float32] | None = None
        if positions is not None and len(positions) > 1:
            # As the filter of even slices: normalised there, and cut at as many nominal distances.
            radius = int(_TRUNCATED * self._sigmas[0] + 0.5)
            apart = np.abs(positions[:, None] - positions[None])
            taps = np.exp(-0.5 * (np.arange(-radius, radius + 1) / self._sigmas[0]) ** 2)
            near = np.where(apart < (radius + 0.5) * spacing[0], np.exp(-0.5 * (apart / reach) ** 2), 0.0)
            self._across = (near / taps.sum()).astype(np.float32)

    def coarser(self) -> _Smoother:
        """Give the same of `halved` values."""
        a, b, c = self._spacing
        positions = self._positions
        if positions is not None:
            starts = np.arange(0, len(positions), 2)
            positions = np.add.reduceat(positions, starts) / np.add.reduceat(np.ones(len(positions)), starts)
        return _Smoother((2 * a, 2 * b, 2 * c), positions, self._reach)

    def __call__(self, values: Float32Array, look: Look = no_look) -> Float32Array:
        """Smooth (Z, Y, X) values, and look now and then whether that is still wanted."""
        from scipy.ndimage import gaussian_filter1d

        out = values
        for axis in range(3):
            if axis == 0 and len(values) == 1:
                continue
            filtered = np.empty(values.shape, dtype=np.float32)
            for here in _bands(values.shape, axis):
                look()
                if axis == 0 and self._across is not None:
                    filtered[here] = np.tensordot(self._across, out[here], axes=1)
                else:
                    gaussian_filter1d(
                        out[here], self._sigmas[axis], axis=axis, mode="constant", truncate=_TRUNCATED,
                        output=filtered[here],
                    )  # fmt: skip
            out = filtered
        return out


def _bands(shape: tuple[int, ...], axis: int) -> Iterator[tuple[slice, ...]]:
    """Part a volume across the longest axis but one, so that each part is little work."""
    other = max((each for each in range(3) if each != axis), key=lambda each: shape[each])
    step = max(1, _AT_ONCE * shape[other] // math.prod(shape))
    for begin in range(0, shape[other], step):
        yield tuple(slice(begin, begin + step) if each == other else slice(None) for each in range(3))


def _spread(
    away: Float32Array,
    clip: float,
    smooth: Callable[[Float32Array, Look], Float32Array],
    look: Look,
) -> tuple[Float32Array, Float32Array]:
    """Give the mean of (P, Z, Y, X) distances, and the scale of another one's."""
    people = len(away)
    mean = away.mean(axis=0, dtype=np.float32)
    square = np.zeros_like(mean)
    for layer in away:
        look()
        square += (layer - mean) ** 2
    square /= people - 1
    weight = np.exp(-0.5 * (mean / np.float32(clip * _WIDTH)) ** 2)
    look()
    near = smooth(weight * square, look)
    look()
    total = smooth(weight, look)
    whole = float((weight * square).sum(dtype=np.float64) / max(float(weight.sum(dtype=np.float64)), 1e-12))
    scale = np.empty_like(mean)
    flat = [values.ravel() for values in (near, total, square, scale)]
    for begin in range(0, mean.size, _AT_ONCE):
        look()
        close, summed, own, out = (values[begin : begin + _AT_ONCE] for values in flat)
        local = (close + _FEW * np.float32(whole)) / (summed + _FEW)
        variance = (_PRIOR * local + (people - 1) * own) / (_PRIOR + people - 1)
        out[:] = np.sqrt(np.maximum(variance, _LEAST) * np.float32(1 + 1 / people))
    return mean, scale


def _left_out(
    values: NDArray[np.bool_], away: Float32Array, clip: float, smooth: _Smoother, watch: Watch
) -> FloatArray | None:
    """Give the quantiles of |m| over scale along the outline of each rater, of the others' m and scale.

    The weights of the neighbourhood are those of all raters, and it is smoothed on pairs of voxels.
    """
    people = len(away)
    look = partial(watch, 0.0, "leaving each rater out in turn")
    mean = away.mean(axis=0, dtype=np.float32)
    look()
    weight = np.exp(-0.5 * (mean / np.float32(clip * _WIDTH)) ** 2)
    coarse = smooth.coarser()
    few = _FEW * np.float32(np.prod([min(2, size) for size in mean.shape]))
    look()
    everywhere = max(float(weight.sum(dtype=np.float64)), _LEAST)
    look()
    total = coarse(halved(weight), look)
    own = np.stack([_halved_squares(layer, mean, weight, look) for layer in away])
    whole = own.sum(axis=0)
    # A rater's square about the mean of all is, about the mean of the others, so much larger.
    factor = np.float32(people / (people - 1))
    found = []
    for p in range(people):
        look = partial(watch, p / people, "leaving each rater out in turn")
        rest = whole - factor * own[p]
        mean_spread = np.float32(rest.sum(dtype=np.float64) / everywhere)
        near = (coarse(rest, look) + few * mean_spread) / (total + few) / (people - 2)
        for one, other in _neighbours(values[p]):
            look()
            sides = []
            for at in (one, other):
                middle, away_own = mean[at], away[p][at]
                squares = np.zeros_like(middle)
                for layer in away:
                    squares += (layer[at] - middle) ** 2
                square = np.maximum(squares - factor * (away_own - middle) ** 2, 0) / (people - 2)
                local = near[at[0] // 2, at[1] // 2, at[2] // 2]
                variance = (_PRIOR * local + (people - 2) * square) / (_PRIOR + people - 2)
                others = (people * middle - away_own) / (people - 1)
                sides.append(others / np.sqrt(np.maximum(variance, _LEAST) * (1 + 1 / (people - 1))))
            found.append(np.abs(sides[0] + sides[1]) / 2)
    every = np.concatenate(found) if found else np.empty(0)
    return np.quantile(every.astype(np.float64), _STEPS) if len(every) else None


def _halved_squares(
    layer: Float32Array, mean: Float32Array, weight: Float32Array, look: Look
) -> Float32Array:
    """Give `halved` of weight times (layer - mean)²."""
    from raterscope.algorithms.masks import _calibration_kernels as kernels

    shape = tuple(-(-size // 2) for size in layer.shape)
    out = np.empty(shape, dtype=np.float32)
    lines, step = math.prod(shape[:2]), max(1, _AT_ONCE // (4 * layer.shape[2]))
    for begin in range(0, lines, step):
        look()
        kernels.halved_squares(layer, mean, weight, begin, min(begin + step, lines), out)
    return out


def halved(values: Float32Array) -> Float32Array:
    """Give the sums of pairs of voxels along each axis."""
    out = values
    for axis in range(3):
        out = np.add.reduceat(out, np.arange(0, out.shape[axis], 2), axis=axis)
    return out


def crossings(mask: NDArray[np.bool_], ratio: NDArray[Any]) -> FloatArray:
    """Give |ratio| where the boundary of a mask crosses the lines between neighbouring voxels."""
    found = [np.abs(ratio[one] + ratio[other]) / 2 for one, other in _neighbours(mask)]
    return np.concatenate(found).astype(np.float64) if found else np.empty(0)


Places = tuple[NDArray[np.intp], ...]


def _neighbours(mask: NDArray[np.bool_]) -> Iterator[tuple[Places, Places]]:
    """Give the pairs of neighbouring voxels between which the boundary of a mask runs, axis by axis."""
    for axis in range(3):
        size = mask.shape[axis]
        along = np.moveaxis(mask, axis, 0)
        edge = np.moveaxis(along[: size - 1] != along[1:], 0, axis)
        one = np.unravel_index(np.flatnonzero(edge), edge.shape)
        if len(one[0]):
            yield one, tuple(at + (axis == number) for number, at in enumerate(one))


def _student(ratio: NDArray[Any], dof: float) -> Float32Array:
    return np.asarray(np.interp(ratio, *_student_table(dof)), dtype=np.float32)


@cache
def _student_table(dof: float) -> tuple[FloatArray, FloatArray]:
    """Tabulate Student's distribution function."""
    from scipy.special import stdtr

    steps = np.linspace(-40.0, 40.0, 16001)
    return steps, stdtr(dof, steps)


def _side(spacing: tuple[float, float, float]) -> float:
    return math.sqrt(spacing[1] * spacing[2])


def _clip(spacing: tuple[float, float, float]) -> float:
    side = _side(spacing)
    return min(max(_CLIP, _LEAST_CLIP * side), _MOST_CLIP * side)
