"""Calibrated outlines: the probability that another rater includes a voxel, and bands in mm.

Each rater's mask becomes a signed distance (above 0 inside). In every voxel the raters' distances have a mean
m and a variance S², which includes the raters' biases and their local scatter, as the next rater's distance
will. S² of few raters is uncertain; it is pooled with its mean L along the outline nearby, which counts as
nu0 further raters (the conjugate prior of a normal variance):

    v = (nu0 L + (P - 1) S²) / (nu0 + P - 1).

The distance of another rater of this crowd then follows Student's t with nu0 + P - 1 degrees of freedom
about m with the scale sqrt(v (1 + 1/P)): 1 for the new rater, 1/P for the error of the mean. The
probability that the rater includes the voxel is that of a distance above 0. Raters who drew nothing have no
outline; the probability is multiplied by that of drawing the structure at all, (P + 1/2) / (P + E + 1) with E
such raters beside P who drew it (Jeffreys' prior).

The band of a probability c contains the voxels with |m| <= k_c sqrt(v (1 + 1/P)). It is pointwise: some part
of a long outline lies outside. The multipliers k_c are quantiles of |m| over scale along the outlines of
left-out raters. They are estimated from the user's cases with three raters or more, without any truth, and
pooled with those of the development data.

The true outline's distance is assumed to follow Student's t around m + delta with the scale sqrt(v (rho + (1
- rho)/P)). Programs move m towards their outlines, see `programs`. Masks alone do not identify delta, the
raters' common offset, or rho, the correlation of their errors. Both are estimated from cases with a known
true outline (gold cases), see `gold_cases`.

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
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.data import OPEN, BoolArray, Box, Float32Array, FloatArray, Masks, marked
from raterscope.algorithms.masks.distance import domain, signed_distance
from raterscope.algorithms.masks.leave_one_out import (
    LEAST,
    MIDDLES,
    PRIOR,
    STEPS,
    Smoother,
    leave_one_out,
    neighbours,
    spread,
)
from raterscope.algorithms.progress import Watch, no_check, part, parts_of, run_parts, silent

LEVELS = (0.5, 0.8, 0.95)
"""Probabilities of the bands with estimated multipliers."""

_MULTIPLIERS = {
    2: (0.72, 1.67, 3.9), 3: (0.71, 1.5, 3.0), 4: (0.70, 1.42, 2.65), 5: (0.69, 1.39, 2.42),
    6: (0.67, 1.36, 2.3),
}  # fmt: skip
"""k at `LEVELS` by the number of raters: quantiles along left-out raters' outlines, means over data sets.

With two or three raters the spread itself is uncertain, and they may agree by chance along an outline.
"""

_CURVE = {2: (-0.07, 1.32), 3: (-0.04, 1.13), 4: (-0.04, 1.12), 5: (-0.03, 1.09)}
"""Shift and slope of the ratio by the number of raters, before conversion to a probability.

They are maximum likelihood estimates from left-out raters on disputed voxels, means over data sets. Where few
raters disagree, their spread is larger than elsewhere.
"""

TWO_RATERS = (
    "On four crowds of two raters, the bands of 50, 80 and 95 % held 42 to 56 %, 69 to 85 % and 87 to 98 % "
    "of a third rater's outlines."
)
"""Measured coverage of the bands of two raters."""

CORRELATION = 0.87
"""Assumed correlation of the raters' errors without gold cases: near 1, for caution."""

_CLIP, _MIN_CLIP, _MAX_CLIP = 8.0, 8.0, 24.0
"""Maximum distance of raters who hardly differ: mm, and its limits in sides of a pixel."""

_TYPICAL, _LARGEST_CLIP = 0.25, 64.0
"""Maximum distance of a typical rater from the majority, in maximum distances; the latter are doubled until
then, up to a number of sides of a pixel.
"""

_DISTANT = 0.8
"""Quantile along the outline that is the distance of a rater from the majority."""

_SMOOTHED = 3.0
"""Standard deviation of the neighbourhood's weights, in sides of a pixel."""

_MARGIN = 0.5
"""Margin around all marked voxels, in maximum distances."""

_FARTHEST = 2.0
"""Maximum factor of a case's own multipliers, against gross errors of single raters."""

_AT_ONCE = 500_000
"""Number of voxels that a thread processes at a time."""

_POINTS = 1000
"""Maximum number of compared points of an outline in a slice, along each axis."""

_SHRINK = 2.0
"""Weight of the development data's multipliers, in cases."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """Calibrated outlines of one structure from the spread of P raters, on a part of the grid."""

    # (slice, row, column): the first voxel of the maps in the image; everything outside the maps is
    # background
    origin: Box
    # (Z, Y, X): mean of the raters' signed distances, above 0 inside, over `scale`. In the band of a level it
    # is between minus and plus the level's multiplier
    ratio: Float32Array
    scale: Float32Array  # (Z, Y, X): mm: scale of another rater's distance from that mean
    dof: float  # degrees of freedom of that distance
    raters: int  # P
    multipliers: tuple[float, float, float]  # of `scale`, the half-width of the bands at `LEVELS`
    # number of cases used for estimating the multipliers; 0 for those of the development data
    cases: int = 0
    # (201,): quantiles of |m| over scale along the outlines of left-out raters of this case
    ratios: FloatArray | None = None
    # (N,): for each left-out rater: mean over scale of the other raters, in a sample of the voxels that these
    # dispute
    tried: Float32Array | None = None
    marked: BoolArray | None = None  # (N,): whether the left-out rater includes these voxels
    # (shift, slope): of the ratio, before conversion to the probability of another rater
    curve: tuple[float, float] = (0.0, 1.0)
    # (3,): share of the outlines of left-out raters within the bands of `LEVELS`; see `check_leave_one_out`
    covered: FloatArray | None = None
    # (B, 3): counts of `tried` in bins of the probability: sum of the probabilities, voxels that the left-out
    # rater includes, and all voxels
    bins: FloatArray | None = None
    # (Z, Y, X): voxels that the expert settled, 1 inside, 0 outside, `OPEN` elsewhere
    settled: NDArray[np.int8] | None = None
    # correlation of the raters' errors from the true outline: 0 for independent errors, 1 for equal errors
    correlation: float = CORRELATION
    offset: float = 0.0  # mm: distance of the true outline beyond the mean of the raters
    gold: int = 0  # number of gold cases that both were estimated from; 0 if they are assumed
    # (Z, Y, X): the mean of raters and programs over `scale`, for the true outline; None without programs
    moved: Float32Array | None = None
    # ratio of the true outline's variance about `moved` to that about the raters' mean; 1 without gold cases
    narrowing: float = 1.0
    silent: int = 0  # number of further raters, who drew nothing; bands describe outlines of the others

    @property
    def centre(self) -> Float32Array:
        """Return the expected distance of the true outline over `scale`, (Z, Y, X)."""
        return self.ratio if self.moved is None else self.moved

    @property
    def drawn(self) -> float:
        """Probability that another rater draws the structure at all."""
        return (self.raters + 0.5) / (self.raters + self.silent + 1) if self.silent else 1.0

    @property
    def assumed(self) -> bool:
        """True if offset and correlation are assumed, not estimated."""
        return self.correlation == CORRELATION and not self.offset

    def another_rater(self) -> Float32Array:
        """Return the probability that another rater of this crowd includes the voxel, (Z, Y, X)."""
        probability = student(self.ratio, self.dof, self.curve)
        probability *= np.float32(self.drawn)
        return probability

    def true_outline(self) -> Float32Array:
        """Return the probability that the true outline includes the voxel, (Z, Y, X).

        Masks alone identify neither the raters' common offset nor the correlation of their errors. Without
        gold cases, the assumption is that there is no common offset, and that the truth is hardly nearer to
        the raters' mean than another rater. Settled voxels are held fixed.
        """
        share = self.error_share(self.correlation)
        shifted = self.centre if not self.offset else self.centre + np.float32(self.offset) / self.scale
        probability = student(shifted / np.float32(math.sqrt(share)), self.dof)
        if self.moved is None and (self.settled is None or not (self.settled == 1).any()):
            probability *= np.float32(self.drawn)  # neither a program nor the expert shows a structure
        if self.settled is not None:
            np.copyto(probability, self.settled, where=self.settled != OPEN)
        return probability

    def part(self, box: tuple[slice, ...]) -> Calibration:
        """Return the calibration on a part of the maps."""
        first, rows, columns = (at + (span.start or 0) for at, span in zip(self.origin, box, strict=True))
        settled = None if self.settled is None else self.settled[box]
        moved = None if self.moved is None else self.moved[box]
        origin = first, rows, columns
        return replace(
            self, origin=origin, ratio=self.ratio[box], scale=self.scale[box], settled=settled, moved=moved
        )

    def unsettled(self) -> Calibration:
        """Return the calibration without settled voxels."""
        return replace(self, settled=None)

    def error_share(self, correlation: float) -> float:
        """Return the variance of the centre's error against the truth over the squared `scale`."""
        of_raters = (correlation + (1 - correlation) / self.raters) / (1 + 1 / self.raters)
        return of_raters * self.narrowing

    def half_width(self, level: float = 0.95) -> Float32Array:
        """Return the half-width, mm, of the band for another rater's outline, (Z, Y, X)."""
        return np.asarray(self.scale * np.float32(self.multiplier(level)), dtype=np.float32)

    def notices(self) -> tuple[str, ...]:
        """Return notices on the basis of the numbers, a sentence each."""
        sentences = [
            "The band is valid at each position separately; some part of a long outline lies outside."
        ]
        if self.silent:
            sentences.append(
                f"{self.silent} of {self.raters + self.silent} raters drew nothing: the bands describe the "
                "outlines of the others, and the probabilities include that a rater draws nothing."
            )
        if self.raters == 2:
            sentences.append(
                "Two raters show little of their spread: the bands use multipliers measured on other "
                f"crowds, and leave-one-out cannot check them. {TWO_RATERS}"
            )
        elif not self.cases:
            sentences.append("The multipliers of the bands were measured on other crowds.")
        if self.assumed:
            gold = f" Cases with a known true outline ({self.gold}) do not change it." if self.gold else ""
            sentence = (
                "The probability of the true outline rests on an assumption that masks cannot confirm: the "
                f"raters have no common offset, and their errors correlate by {self.correlation:g}.{gold}"
            )
        else:
            sentence = (
                f"The probability of the true outline uses an offset of {self.offset:+.2g} and a "
                f"correlation of {self.correlation:.2g}, estimated from gold cases ({self.gold})."
            )
        return (*sentences, sentence + self._describe_programs())

    def _describe_programs(self) -> str:
        """Describe the effect of programs on the probability of the true outline; empty without programs."""
        if self.moved is None:
            return ""
        nearer = 1 / math.sqrt(self.narrowing)
        if nearer > 1:
            return f" Programs move it; in gold cases the truth is {nearer:.1f} times nearer with them."
        return (
            " Programs move it. Without gold cases it assumes that the truth is no nearer with them, and is "
            "too cautious if they are better than the raters."
        )

    def multiplier(self, level: float) -> float:
        """Return the multiplier of the scale for one of `LEVELS`."""
        return self.multipliers[LEVELS.index(level)]


@dataclass(frozen=True, eq=False)
class Distances:
    """Distance of each voxel from each rater's outline."""

    masks: Masks  # the part of the image that was measured: all marked voxels, with a margin
    away: Float32Array  # (P, Z, Y, X): signed distances, mm, above 0 inside
    clip: float  # largest distance, mm

    def part_of(self, masks: Masks) -> tuple[slice, slice, slice] | None:
        """Return the part of `away` that covers the masks; None if they extend beyond it."""
        begin = [at - first for at, first in zip(masks.origin, self.masks.origin, strict=True)]
        end = [at + size for at, size in zip(begin, masks.shape, strict=True)]
        if min(begin) < 0 or any(a > b for a, b in zip(end, self.masks.shape, strict=True)):
            return None
        z, y, x = (slice(a, b) for a, b in zip(begin, end, strict=True))
        return z, y, x


def measure_distances(masks: Masks, watch: Watch = silent) -> Distances:
    """Measure signed distances to the raters' outlines, for `calibrate`.

    The maximum distance grows with the differences between raters, so that a larger picture of the same
    masks has the same bands.
    """
    side = _side(masks.spacing)
    clip, reached = min(max(_CLIP, _MIN_CLIP * side), _MAX_CLIP * side), 0.0
    while True:
        step = part(watch, reached, reached := (1 + reached) / 2)
        cut = domain(masks, clip * _MARGIN, partial(step, 0.0, "finding marked voxels"), copy=False)
        away = np.empty(cut.values.shape, dtype=np.float32)
        for p, layer in enumerate(cut.values):
            check = partial(step, p / len(away), f"measuring the outline of {masks.annotators[p]}")
            check()
            signed_distance(marked(layer), masks.spacing, clip, check, cut.positions, away[p])
        if clip >= _LARGEST_CLIP * side or _typical_distance(cut, away) <= _TYPICAL * clip:
            return Distances(cut, away, clip)
        clip = min(2 * clip, _LARGEST_CLIP * side)


def _typical_distance(masks: Masks, away: Float32Array) -> float:
    """Return the median over raters of their distance from the majority's outline, mm; 0 without a majority.

    `away`: (P, Z, Y, X), signed distances; some slices represent the others.
    """
    distances = []
    for z in range(0, masks.shape[0], -(-masks.values[0].size // _AT_ONCE)):
        layers = away[:, z]
        votes = np.sum([marked(layer[z : z + 1]) for layer in masks.values], axis=0)
        for (_, *first), (_, *second) in neighbours(2 * votes > len(away)):
            step = -(-len(first[0]) // _POINTS)
            (row, column), (other_row, other_column) = (
                [at[::step] for at in pixel] for pixel in (first, second)
            )
            distances.append(np.abs(layers[:, row, column] + layers[:, other_row, other_column]) / 2)
    if not distances:
        return 0.0
    return float(np.median(np.quantile(np.concatenate(distances, axis=1), _DISTANT, axis=1)))


def calibrate(masks: Masks, watch: Watch = silent, distances: Distances | None = None) -> Calibration | None:
    """Estimate the spread of the raters around their mean outline; None with fewer than two raters.

    The result is also None without any marked voxel. `masks`: masks of one structure; probabilities count as
    marked above one half. `distances`: distances of these masks, if measured already.
    """
    total = len(masks.annotators)
    drawing = [p for p, layer in enumerate(masks.values) if marked(layer).any()]
    if total < 2 or not drawing:
        return None
    measured = distances or measure_distances(masks, part(watch, 0.0, 0.5))
    spacing, cut, away = masks.spacing, measured.masks, measured.away
    clip, values, annotators = measured.clip, marked(cut.values), total
    if 2 <= len(drawing) < total:  # a single outline shows no spread
        away, values, annotators = away[drawing], values[drawing], len(drawing)
    smooth = Smoother(spacing, cut.positions, _SMOOTHED * _side(spacing))
    mean, scale = spread(away, clip, smooth, partial(watch, 0.5, "pooling the raters' spread"))
    ratios = tried = included = None
    if annotators > 2:
        ratios, tried, included = leave_one_out(values, away, mean, clip, smooth, part(watch, 0.6, 1.0))
    settled = cut.known if cut.known is not None and bool((cut.known != OPEN).any()) else None
    return Calibration(
        origin=cut.origin,
        ratio=np.divide(mean, scale, out=mean),
        scale=scale,
        dof=PRIOR + annotators - 1,
        raters=annotators,
        multipliers=default_multipliers(annotators),
        ratios=ratios,
        tried=tried,
        marked=included,
        curve=default_curve(annotators),
        settled=settled,
        silent=total - annotators,
    )


def pool_calibrations(calibrations: Sequence[Calibration]) -> list[Calibration]:
    """Estimate multipliers and curves from cases with three raters or more, with equal weights.

    The multipliers of the development data count as `_SHRINK` further cases. A case of two raters keeps the
    multipliers of the development data: its spread is too uncertain for multipliers of other cases.
    """
    ratios = [calibration.ratios for calibration in calibrations if calibration.ratios is not None]
    if not ratios:
        return list(calibrations)
    share = len(ratios) / (len(ratios) + _SHRINK)
    every = np.concatenate([np.interp(MIDDLES, STEPS, values) for values in ratios])
    own = np.log(np.maximum(np.quantile(every, LEVELS), LEAST))
    fewer = np.mean(
        [
            _log_default(calibration.raters - 1)
            for calibration in calibrations
            if calibration.ratios is not None
        ],
        axis=0,
    )
    moved = _curve_moved(calibrations)
    out = []
    for calibration in calibrations:
        # The ratios are based on one rater fewer than the case has, which makes them larger.
        own_share = share if calibration.raters > 2 else 0.0
        default = _log_default(calibration.raters)
        adjusted = own + default - fewer
        adjusted = np.clip(adjusted, default - math.log(_FARTHEST), default + math.log(_FARTHEST))
        if not own_share:
            out.append(replace(calibration, multipliers=default_multipliers(calibration.raters), cases=0))
            continue
        a, b, c = np.exp(own_share * adjusted + (1 - own_share) * default).tolist()
        shift, slope = default_curve(calibration.raters)
        curve = shift + moved[0], slope * moved[1]
        out.append(replace(calibration, multipliers=(a, b, c), curve=curve, cases=len(ratios)))
    return out


_SHIFTS, _SHIFT_PRIOR = np.linspace(-0.3, 0.3, 13), 0.1
_SLOPES, _SLOPE_PRIOR = np.exp(np.linspace(-0.45, 0.45, 13)), 0.15
"""Grid of changes of the curve, and the standard deviation of their prior; logarithms of slopes."""

_CASE_VOXELS, _MAX_VOXELS = 5.0, 500
"""Weight of a case in independent voxels, and maximum number of voxels used."""


def _curve_moved(calibrations: Sequence[Calibration]) -> tuple[float, float]:
    """Return the change of the curve from the default: the shift's difference, the slope's factor."""
    parts: dict[int, list[tuple[Float32Array, BoolArray]]] = {}
    for calibration in calibrations:
        if calibration.tried is not None and calibration.marked is not None and len(calibration.tried):
            step = -(-len(calibration.tried) // _MAX_VOXELS)
            parts.setdefault(calibration.raters - 1, []).append(
                (calibration.tried[::step], calibration.marked[::step])
            )
    loss = 0.5 * (_SHIFTS[:, None] / _SHIFT_PRIOR) ** 2 + 0.5 * (np.log(_SLOPES) / _SLOPE_PRIOR) ** 2
    for raters, cases in parts.items():
        tried, marked = (np.concatenate(every) for every in zip(*cases, strict=True))
        weight = np.concatenate([np.full(len(values), _CASE_VOXELS / len(values)) for values, _ in cases])
        shift, slope = default_curve(raters)
        for row, change in enumerate(_SHIFTS):
            for column, factor in enumerate(_SLOPES):
                chance = student(tried, PRIOR + raters - 1, (shift + change, slope * factor))
                loss[row, column] += log_loss(chance, marked, weight)
    best = divmod(int(loss.argmin()), len(_SLOPES))
    return float(_SHIFTS[best[0]]), float(_SLOPES[best[1]])


def log_loss(chance: NDArray[Any], right: BoolArray, weight: FloatArray | float = 1.0) -> float:
    """Return the negative log likelihood; probabilities are clipped to 0.001 and 0.999."""
    chance = np.clip(chance, 1e-3, 1 - 1e-3)
    return -float(np.sum(weight * np.log(np.where(right, chance, 1 - chance))))


def _log_default(raters: int) -> FloatArray:
    return np.log(default_multipliers(raters))


def default_multipliers(raters: int) -> tuple[float, float, float]:
    """Return the multipliers of the development data for a number of raters."""
    return _MULTIPLIERS[min(max(raters, 2), max(_MULTIPLIERS))]


def default_curve(raters: int) -> tuple[float, float]:
    """Return the shift and slope of the development data for a number of raters; see `Calibration.curve`."""
    return _CURVE[min(max(raters, 2), max(_CURVE))]


def student(ratio: NDArray[Any], dof: float, curve: tuple[float, float] = (0.0, 1.0)) -> Float32Array:
    """Return Student's distribution function at shift + slope * ratio."""
    steps, chance = _student_table(dof)
    shift, slope = curve
    moved, every = (steps - shift) / slope, np.ravel(ratio)
    if every.size < _AT_ONCE:  # not worth loading the compiler
        return np.asarray(np.interp(every, moved, chance).reshape(np.shape(ratio)), dtype=np.float32)
    from raterscope.algorithms.masks import _voxel_kernels as kernels

    out = np.empty(every.shape, dtype=np.float32)
    slopes = np.diff(chance) / np.diff(moved)
    run_parts(
        lambda begin, end: kernels.look_up(every, moved, chance, slopes, begin, end, out),
        parts_of(out.size, _AT_ONCE), no_check,
    )  # fmt: skip
    return out.reshape(np.shape(ratio))


@cache
def _student_table(dof: float) -> tuple[FloatArray, FloatArray]:
    """Tabulate Student's distribution function."""
    from scipy.special import stdtr

    steps = np.linspace(-40.0, 40.0, 16001)
    return steps, stdtr(dof, steps)


def _side(spacing: tuple[float, float, float]) -> float:
    return math.sqrt(spacing[1] * spacing[2])


BINS = 15
"""Number of bins of equal width for counting probabilities."""

_FOLDS = 5


def check_leave_one_out(calibrations: Sequence[Calibration]) -> list[Calibration]:
    """Measure the calibration of probabilities and bands on left-out raters.

    Multipliers and curve are estimated from the cases of the other folds, so that no case is tested with its
    own estimates. A crowd of one case is tested with the multipliers and the curve of the development data.

    `calibrations`: calibrations of one crowd; those of two raters are unchanged. The others are returned with
    `Calibration.covered` and `Calibration.bins`.
    """
    out = list(calibrations)
    usable = [
        index
        for index, calibration in enumerate(calibrations)
        if calibration.ratios is not None and calibration.tried is not None
    ]
    folds = min(_FOLDS, len(usable))
    for fold in range(folds):
        left_out = usable[fold::folds]
        others = [calibrations[index] for index in usable if index not in set(left_out)]
        for raters in {calibrations[index].raters - 1 for index in left_out}:
            blank = replace(calibrations[left_out[0]], raters=raters, ratios=None, tried=None, marked=None)
            pooled = pool_calibrations([blank, *others])[0]
            for index in left_out:
                if calibrations[index].raters - 1 == raters:
                    out[index] = _checked(calibrations[index], pooled)
    return out


def _checked(calibration: Calibration, pooled: Calibration) -> Calibration:
    assert calibration.ratios is not None
    assert calibration.tried is not None
    assert calibration.marked is not None
    away = np.interp(MIDDLES, STEPS, calibration.ratios)
    covered = (away[:, None] <= np.array(pooled.multipliers)).mean(axis=0)
    chance = student(calibration.tried, PRIOR + pooled.raters - 1, pooled.curve).astype(float)
    return replace(calibration, covered=covered, bins=count_in_bins(chance, calibration.marked))


def count_in_bins(chance: FloatArray, right: BoolArray) -> FloatArray:
    """Count probabilities in bins, (`BINS`, 3); see `Calibration.bins`."""
    at = np.minimum((chance * BINS).astype(int), BINS - 1)
    sums = [np.bincount(at, weight, BINS).astype(float) for weight in (chance, right, None)]
    return np.stack(sums, axis=1)
