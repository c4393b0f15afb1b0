"""Masks and probability maps of programs, combined with the consensus of the raters of a crowd.

A program draws outlines as a rater does, but it may be biased, worthless, a copy of another program, or
trained on one of the raters. Only raters are therefore fused. Then the outline of the consensus is moved
towards that of the program. In a voxel, n raters have the mean distance m from their outlines (above 0
inside), and program i has the distance x_i. The log odds that the voxel is inside are

    c (n m + o + sum_i k_i x_i) / ((n + sum_i k_i) s),

the precision-weighted mean of independent measurements: program i counts as k_i raters. o corrects the
programs' common bias, c is the accuracy, and s the standard deviation of the case's raters. With all k_i = 0
the formula describes the raters alone. The difference of the two log odds is added to those of the consensus.
A classifier that corrects the prior of the true class in the same way is in [raykar2010]_.

c, o and k_i >= 0 have the highest posterior density given raters who are left out in turn, or given known
voxels: those of cases with a known true outline, and of regions that the expert decided. If enough voxels are
known, only these count. Each program has a k_i within the band in which raters differ, and a second
elsewhere. The sum of all k_i is shrunk to 0, so that two copies of a program together count as much as one. A
program that was trained on one rater predicts this rater too well. A rater that a program resembles twice as
much as any other is therefore not left out for a test, and a copy of a rater is not used.

The same mean of raters and programs becomes the centre of the probability of the true outline, see
`calibration`; another rater's outline and its band are based on the raters alone. The odds of the consensus
are those of the model; they are not calibrated, with or without programs.

Programs are used only if they predict held-out cases, or parts of few cases, better than the raters alone do,
by two standard errors. Otherwise the consensus does not change.

A program's distance in a voxel is that of its outline. For a probability map it is the mean of the distances
of the outlines at several probabilities (`OUTLINES`), so that a blurred outline has less effect.

References
----------
.. [raykar2010] V. C. Raykar, S. Yu, L. H. Zhao, G. H. Valadez, C. Florin, L. Bogoni and L. Moy, "Learning
   from crowds", Journal of Machine Learning Research 11 (2010) 1297-1322.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.calibration import Calibration, Distances, measure_distances
from raterscope.algorithms.masks.data import (
    OPEN,
    BoolArray,
    Float32Array,
    FloatArray,
    MaskFusion,
    Masks,
    overlap,
)
from raterscope.algorithms.masks.distance import signed_distance
from raterscope.algorithms.progress import Check, Watch, no_check, part, silent

OUTLINES = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Probabilities at which a probability map is outlined."""

_BAND = 2.5
"""Half-width of the band in which raters differ, in standard deviations of the raters."""

_SAMPLE = 1500
"""Maximum number of voxels of a case for comparing each left-out rater."""

_CASE_VOXELS = 20.0
"""Weight of a case in independent voxels; an outline varies over long distances."""

_PARTS = 10
"""Number of parts into which each of few cases is divided for cross-validation."""

_FOLDS = 5
_GAIN = 2.0
"""Minimum gain, in standard errors, of predicting held-out parts with programs instead of raters alone."""

_KNOWN_PARTS = 10
"""Minimum number of parts with known voxels for using only known voxels."""

_MAX_VOTES = 20.0
_VOTES_VARIANCE, _OFFSET_VARIANCE, _ACCURACY_VARIANCE = 1.0, 1.0, 1.0
"""Prior variances: of a program's weight in squared raters, of the offset in mm², and of the logarithm of c.
"""

_TYPICAL = 1.5
"""Assumed standard deviation of raters, in sides of a pixel, if no case has two raters."""

_IMITATION, _COPY = 0.5, 0.1
"""Distance of a program to the nearest rater, as a share of that to the second nearest. Below the first limit
this rater is not left out to test the program; below the second the program is a copy of the rater and is not
used in the case.
"""

_MIN_VOTES = 0.2
"""Minimum weight of all programs together, in raters; with less they are not used."""

_CERTAIN = 1e-6

_AT_ONCE = 500_000
"""Number of voxels that are combined at a time."""


@dataclass(frozen=True, eq=False)
class Program:
    """Mask or probability map of a program on the grid of the raters' masks."""

    name: str
    values: NDArray[np.bool_] | NDArray[np.float32]  # (Z, Y, X)


@dataclass(frozen=True, eq=False)
class ProgramWeights:
    """Weights of programs in the consensuses of a crowd."""

    names: tuple[str, ...]  # (F,)
    # near, elsewhere: (F,): weight of each program in raters, within the band in which raters differ, and
    # elsewhere; 0 if programs are not used
    near: FloatArray
    elsewhere: FloatArray
    offset: float  # mm, multiplied by the weights: correction of the programs' common bias
    accuracy: float  # c of the raters with the programs
    # c and o of the raters alone
    alone: tuple[float, float]
    typical: float  # mm: standard deviation of raters, for cases with a single rater
    # gain in the mean log likelihood of held-out raters or known voxels over that of the raters alone, nats
    # per voxel
    gain: float
    error: float  # its standard error
    known: int  # parts with known voxels that it rests on; 0 if it rests on left-out raters

    @property
    def used(self) -> bool:
        """Return whether the programs change consensuses."""
        return bool((self.near > 0).any() or (self.elsewhere > 0).any())

    def of(self, names: Sequence[str]) -> ProgramWeights:
        """Return the weights of some programs, for example those that processed a case."""
        rows = [self.names.index(name) for name in names]
        return replace(self, names=tuple(names), near=self.near[rows], elsewhere=self.elsewhere[rows])

    def in_words(self) -> str:
        """Describe in a sentence or two whether and with which weights the programs are used."""
        programs = "the program" if len(self.names) == 1 else "the programs"
        tested = "known voxels" if self.known else "left-out raters"
        if self.used:
            weights = ", ".join(
                f"{name} counts as {near:.1f} near the outline and {elsewhere:.1f} elsewhere"
                for name, near, elsewhere in zip(self.names, self.near, self.elsewhere, strict=True)
            )
            return (
                f"The raters were fused alone, and the consensus was combined with {programs}; in raters, "
                f"{weights}. They improve the prediction of {tested} by {self.gain:.3f} ± {self.error:.3f} "
                "nats a voxel."
            )
        names = ", ".join(self.names)
        if not math.isfinite(self.gain):
            return (
                f"The consensus does not include {programs} {names}: this needs two raters on several cases, "
                "known true outlines, or decided regions."
            )
        return (
            f"The consensus does not include {programs} {names}: the prediction of {tested} does not improve "
            f"clearly ({self.gain:.3f} ± {self.error:.3f} nats a voxel)."
        )


@dataclass(frozen=True, eq=False)
class Evidence:
    """N sampled voxels of a case, each with the answer of a left-out rater or a known value."""

    mean: FloatArray  # (N,): mean distance of the raters, mm
    away: FloatArray  # (N, F): distance of each program, mm; NaN for programs that did not see the case
    raters: FloatArray  # (N,): number of raters in the mean
    inside: BoolArray  # (N,): in the left-out rater's mask, or known to be inside
    target: tuple[str, ...]  # names of the left-out raters
    of: NDArray[np.int64]  # (N,): index in `target`; -1 for known voxels
    block: NDArray[np.int64]  # (N,): part of the case
    spread: float  # mm: standard deviation of the raters; NaN for a single rater
    side: float  # mm: of a pixel
    imitated: tuple[str, ...]  # raters that a program resembles too much


def gather_evidence(
    masks: Masks,
    programs: Sequence[Program | None],
    truth: BoolArray | None = None,
    watch: Watch = silent,
) -> Evidence | None:
    """Sample the voxels of a case for estimating the weights of programs; None if nothing is marked.

    `masks`: masks of one structure by raters alone; settled voxels are known. `programs`: all programs of the
    crowd in one order, None for programs that did not process the case. `truth`: (Z, Y, X), on the grid of
    `masks`.
    """
    distances = measure_distances(masks, part(watch, 0.0, 0.5))
    if not (distances.away > 0).any():
        return None
    check = partial(watch, 0.5, "comparing programs with the raters")
    raters, clip = len(masks.annotators), distances.clip
    away, cut = distances.away.reshape(raters, -1), distances.masks
    box = _box_within(masks, cut)
    x = np.full((len(programs), away.shape[1]), np.nan, dtype=np.float32)
    for row, program in enumerate(programs):
        if program is not None:
            x[row] = program_distance(_embed(program.values, box, cut.shape), distances, check).ravel()
    resemblance = [_resemblance(row, away) for row in x]
    x[[_is_copy(each) for each in resemblance]] = np.nan
    mean = away.mean(axis=0, dtype=np.float32)
    spread = _spread(away, mean, clip)
    reach = _BAND * (spread if math.isfinite(spread) else _side(masks)) + _side(masks)
    near = np.abs(mean) < reach
    for distance in x:
        with np.errstate(invalid="ignore"):
            near |= (np.abs(distance) < reach) | (np.sign(distance) == -np.sign(mean))
    known = np.full(cut.shape, OPEN, dtype=np.int8) if cut.known is None else cut.known.copy()
    if truth is not None:
        np.copyto(known, _embed(truth, box, cut.shape), where=known == OPEN)
    state = known.ravel()
    settled = _sample(np.flatnonzero(near & (state != OPEN)))
    open_voxels = _sample(np.flatnonzero(near)) if raters > 1 else np.empty(0, dtype=np.int64)
    voxels = [settled, *[open_voxels] * (raters if raters > 1 else 0)]
    means, inside = [mean[settled]], [state[settled] == 1]
    for p in range(raters if raters > 1 else 0):
        means.append((raters * mean[open_voxels] - away[p, open_voxels]) / (raters - 1))
        inside.append(away[p, open_voxels] > 0)
    sizes = [len(each) for each in voxels]
    every = np.concatenate(voxels)
    return Evidence(
        mean=np.concatenate(means).astype(float),
        away=x[:, every].T.astype(float),
        raters=np.repeat([raters, *[raters - 1] * (len(sizes) - 1)], sizes).astype(float),
        inside=np.concatenate(inside),
        target=masks.annotators,
        of=np.repeat(np.arange(len(sizes)) - 1, sizes),
        block=_blocks(every, cut.shape),
        spread=spread,
        side=_side(masks),
        imitated=tuple(masks.annotators[closest] for closest, share in resemblance if share < _IMITATION),
    )


def program_distance(values: NDArray[Any], distances: Distances, check: Check = no_check) -> Float32Array:
    """Return the distance of a program's outline in each voxel, mm, above 0 inside; see the module."""
    cut = distances.masks
    levels = (0.5,) if values.dtype == np.bool_ else OUTLINES
    total = np.zeros(cut.shape, dtype=np.float32)
    for level in levels:
        total += signed_distance(values > level if len(levels) > 1 else values, cut.spacing, distances.clip,
                                 check, cut.positions)  # fmt: skip
    return np.asarray(total / np.float32(len(levels)))


def weigh(names: Sequence[str], cases: Sequence[Evidence], watch: Watch = silent) -> ProgramWeights:
    """Estimate the weight of each program in raters, and whether programs are used at all."""
    zeros = np.zeros(len(names))
    side = float(np.mean([case.side for case in cases])) if cases else 1.0
    spreads = [case.spread for case in cases if math.isfinite(case.spread)]
    typical = float(np.exp(np.mean(np.log(spreads)))) if spreads else _TYPICAL * side
    nothing = ProgramWeights(
        tuple(names), zeros, zeros, 0.0, 1.0, (1.0, 0.0), typical, float("nan"), float("nan"), 0
    )
    rows, parts, known = _rows(cases, typical) if cases else (None, np.empty(0), 0)
    count = int(parts.max()) + 1 if len(parts) else 0
    if rows is None or count < 2 * _FOLDS:
        return nothing
    gain = np.empty(count)
    fold = np.random.default_rng(0).permutation(count) % _FOLDS
    for number in range(_FOLDS):
        watch(number / (_FOLDS + 1), "comparing programs with the raters")
        held = fold[parts] == number
        training, held_out = rows.part(~held), rows.part(held)
        difference = held_out.alone().losses(_fit(training.alone())) - held_out.losses(_fit(training))
        sums = np.bincount(parts[held], held_out.weight * difference, count)
        weights = np.bincount(parts[held], held_out.weight, count)
        gain[fold == number] = (sums / np.maximum(weights, 1e-300))[fold == number]
    mean, error = float(gain.mean()), float(gain.std(ddof=1) / math.sqrt(count))
    measured = replace(nothing, gain=mean, error=error, known=known)
    if mean <= _GAIN * error:
        return measured
    watch(_FOLDS / (_FOLDS + 1), "weighting programs")
    best, alone = _fit(rows), _fit(rows.alone())
    if best[2:].sum() < _MIN_VOTES:
        return measured
    near, elsewhere = np.split(best[2:], 2)
    return replace(
        measured, near=near, elsewhere=elsewhere, offset=float(best[1]), accuracy=float(np.exp(best[0])),
        alone=(float(np.exp(alone[0])), float(alone[1])),
    )  # fmt: skip


def combine(
    fusion: MaskFusion,
    masks: Masks,
    programs: Sequence[Program],
    weights: ProgramWeights,
    watch: Watch = silent,
) -> MaskFusion:
    """Move the consensus of one structure towards the outlines of programs; see `combine_calibrated`."""
    return combine_calibrated(fusion, None, masks, programs, weights, watch)[0]


def combine_calibrated(
    fusion: MaskFusion,
    calibration: Calibration | None,
    masks: Masks,
    programs: Sequence[Program],
    weights: ProgramWeights,
    watch: Watch = silent,
) -> tuple[MaskFusion, Calibration | None]:
    """Move the consensus of one structure, and the probability of its true outline, towards programs.

    `fusion`, `calibration`: those of `masks`, which contain only raters; settled voxels do not change. Both
    are returned unchanged if the programs are not used.
    """
    rows = [weights.names.index(program.name) for program in programs]
    if not rows or not (weights.near[rows].any() or weights.elsewhere[rows].any()):
        return fusion, calibration
    distances = measure_distances(masks, part(watch, 0.0, 0.5))
    check = partial(watch, 0.5, "combining programs with the raters")
    cut, box = distances.masks, _box_within(masks, distances.masks)
    raters = len(masks.annotators)
    mean = distances.away.mean(axis=0, dtype=np.float32).ravel()
    spread = _spread(distances.away.reshape(raters, -1), mean, distances.clip)
    away = np.full((len(mean), len(weights.names)), np.nan, dtype=np.float32)
    for row, program in zip(rows, programs, strict=True):
        x = program_distance(_embed(program.values, box, cut.shape), distances, check).ravel()
        if not _is_copy(_resemblance(x, distances.away.reshape(raters, -1))):
            away[:, row] = x
    scale = float(_another_spread(spread, np.array(float(raters)), weights.typical))
    after = np.array([math.log(weights.accuracy), weights.offset, *weights.near, *weights.elsewhere])
    before = np.array([math.log(weights.alone[0]), weights.alone[1]])
    change, odds_after = np.empty((2, len(mean)))
    for begin in range(0, len(mean), _AT_ONCE):
        check()
        block = slice(begin, begin + _AT_ONCE)
        voxels = _Rows.alike(mean[block], away[block], raters, scale)
        odds_after[block] = voxels.log_odds(after)
        change[block] = odds_after[block] - voxels.alone().log_odds(before)
    seen: BoolArray = np.isfinite(away).any(axis=1).reshape(cut.shape)
    free = seen if cut.known is None else seen & (cut.known == OPEN)
    to, take = overlap(fusion.origin, fusion.shape, cut.origin, cut.shape)
    chance = fusion.probability[0].copy()
    odds = _log_odds(chance)
    combined = odds.copy()
    if raters == 1:  # a single rater's mask is certain, whatever the rater's accuracy
        combined[to] = np.where(free[take], odds_after.reshape(cut.shape)[take], combined[to])
    else:
        combined[to] += np.where(free[take], change.reshape(cut.shape)[take], 0.0)
    moved = combined != odds
    chance[moved] = 1 / (1 + np.exp(np.clip(-combined[moved], -50, 50)))
    # Where the sign of the odds does not change, the method's own rule for the mask applies, also to ties.
    mask = np.where(np.sign(odds) != np.sign(combined), combined > 0, fusion.mask[0])
    if calibration is not None and seen.any():
        centre = (odds_after * (scale / weights.accuracy)).astype(np.float32).reshape(cut.shape)
        calibration = replace(
            calibration,
            moved=np.where(seen, centre / calibration.scale, calibration.ratio),
        )
    return replace(fusion, mask=mask[None], probability=chance[None]), calibration


def _log_odds(chance: Float32Array) -> FloatArray:
    clipped = np.clip(chance.astype(float), _CERTAIN, 1 - _CERTAIN)
    return np.asarray(np.log(clipped / (1 - clipped)))


@dataclass(frozen=True, eq=False)
class _Rows:
    """N voxels of the regression."""

    mean: FloatArray  # (N,): mm
    away: FloatArray  # (N, F): mm, NaN without a program
    raters: FloatArray  # (N,)
    inside: BoolArray  # (N,)
    weight: FloatArray  # (N,)
    spread: FloatArray  # (N,): mm

    @classmethod
    def alike(cls, mean: Float32Array, away: Float32Array, raters: int, spread: float) -> _Rows:
        """Make rows of one case."""
        one = np.ones(len(mean))
        return cls(mean.astype(float), away.astype(float), raters * one, one > 0, one, spread * one)

    def part(self, rows: BoolArray) -> _Rows:
        return _Rows(*(values[rows] for values in vars(self).values()))

    def alone(self) -> _Rows:
        return replace(self, away=self.away[:, :0])

    def features(self) -> tuple[FloatArray, FloatArray]:
        """Return distances and presence of the programs near the outline and elsewhere, (N, 2 F)."""
        seen = np.isfinite(self.away)
        near = (np.abs(self.mean) <= _BAND * self.spread)[:, None]
        presence = np.hstack([seen & near, seen & ~near]).astype(float)
        return np.hstack([np.nan_to_num(self.away)] * 2) * presence, presence

    def log_odds(self, parameters: FloatArray) -> FloatArray:
        x, presence = self.features()
        votes = parameters[2:]
        sums = self.raters * self.mean + parameters[1] + x @ votes
        return np.asarray(math.exp(parameters[0]) * sums / ((self.raters + presence @ votes) * self.spread))

    def losses(self, parameters: FloatArray) -> FloatArray:
        """Return the negative log likelihood of each voxel."""
        odds = self.log_odds(parameters)
        return np.asarray(np.logaddexp(0.0, np.where(self.inside, -odds, odds)))


def _fit(rows: _Rows) -> FloatArray:
    """Return log c, o and the weights of programs in raters with the highest posterior density."""
    from scipy.optimize import minimize

    x, presence = rows.features()
    sign = np.where(rows.inside, 1.0, -1.0)
    total = rows.weight.sum()

    def loss(parameters: FloatArray) -> tuple[float, FloatArray]:
        log_c, offset, votes = parameters[0], parameters[1], parameters[2:]
        count = rows.raters + presence @ votes
        sums = (rows.raters * rows.mean + offset + x @ votes) / count
        factor = math.exp(log_c) / rows.spread
        odds = factor * sums
        value = rows.weight @ np.logaddexp(0.0, -sign * odds)
        slope = -rows.weight * sign / (1 + np.exp(np.clip(sign * odds, -50, 50)))
        inner = slope * factor / count
        gradient = np.concatenate([[slope @ odds, inner.sum()], inner @ x - (inner * sums) @ presence])
        value += log_c**2 / _ACCURACY_VARIANCE / 2 + offset**2 / _OFFSET_VARIANCE / 2
        gradient[0] += log_c / _ACCURACY_VARIANCE
        gradient[1] += offset / _OFFSET_VARIANCE
        for half in np.split(np.arange(len(votes)), 2):
            value += votes[half].sum() ** 2 / _VOTES_VARIANCE / 2
            gradient[2 + half] += votes[half].sum() / _VOTES_VARIANCE
        return float(value / total), gradient / total

    count = x.shape[1]
    start = np.concatenate([[0.5, 0.0], np.full(count, 0.5 / max(1, count // 2))])
    bounds = [(-3.0, 3.0), (-10.0, 10.0)] + [(0.0, _MAX_VOTES)] * count
    return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x)


def _rows(cases: Sequence[Evidence], typical: float) -> tuple[_Rows, NDArray[np.int64], int]:
    """Join the voxels of cases; also return the part of each, and the number of parts with known voxels.

    This number is 0 if too little is known; then left-out raters also count.
    """
    each = -(-_PARTS // len(cases))
    parts = [case.block * each // _PARTS + number * each for number, case in enumerate(cases)]
    known = len({at for case, own in zip(cases, parts, strict=True) for at in own[case.of < 0].tolist()})
    known = known if known >= _KNOWN_PARTS else 0
    columns: list[list[NDArray[Any]]] = []
    for case, own in zip(cases, parts, strict=True):
        usable = np.array([not known and name not in case.imitated for name in case.target] + [True])[case.of]
        weight = np.full(len(usable), _CASE_VOXELS / max(1, int(np.count_nonzero(usable))))
        scale = _another_spread(case.spread, case.raters, typical)
        values = (case.mean, case.away, case.raters, case.inside, weight, scale, own)
        columns.append([array[usable] for array in values])
    joined = [np.concatenate(arrays) for arrays in zip(*columns, strict=True)]
    _, part_of = np.unique(joined[6], return_inverse=True)
    return _Rows(*joined[:6]), part_of, known


def _resemblance(x: Float32Array, away: Float32Array) -> tuple[int, float]:
    """Return the rater nearest to a program, and the distance as a share of that to the second nearest."""
    near = np.abs(x) < np.abs(away).max() / 2
    if len(away) < 2 or not near.any():
        return 0, 1.0
    apart = np.array([float(np.abs(x[near] - own[near]).mean()) for own in away])
    closest, second = np.argsort(apart, kind="stable")[:2].tolist()
    return closest, float(apart[closest] / max(float(apart[second]), 1e-6))


def _is_copy(resemblance: tuple[int, float]) -> bool:
    return resemblance[1] < _COPY


def _spread(away: Float32Array, mean: Float32Array, clip: float) -> float:
    """Return the standard deviation of raters near their outline, mm; NaN for a single rater."""
    raters = len(away)
    if raters < 2:
        return float("nan")
    near = np.abs(mean) < clip / 4
    if not near.any():
        return float("nan")
    square = sum(float(np.square(own[near] - mean[near], dtype=float).mean()) for own in away)
    return math.sqrt(max(square / (raters - 1), 1e-2))


def _another_spread(spread: float, raters: FloatArray, typical: float) -> FloatArray:
    """Return the standard deviation, mm, of another rater about the mean of a number of raters."""
    return np.asarray((spread if math.isfinite(spread) else typical) * np.sqrt(1 + 1 / raters))


def _side(masks: Masks) -> float:
    return math.sqrt(masks.spacing[1] * masks.spacing[2])


def _sample(voxels: NDArray[np.int64]) -> NDArray[np.int64]:
    return voxels[:: max(1, -(-len(voxels) // _SAMPLE))]


def _blocks(voxels: NDArray[np.int64], shape: tuple[int, int, int]) -> NDArray[np.int64]:
    """Divide the voxels of a case into `_PARTS` equal parts along the longest axis."""
    at = np.unravel_index(voxels, shape)[int(np.argmax(shape))]
    if not len(at):
        return np.empty(0, dtype=np.int64)
    edges = np.quantile(at, np.arange(1, _PARTS) / _PARTS)
    return np.searchsorted(edges, at, side="right").astype(np.int64)


def _box_within(masks: Masks, cut: Masks) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """Return the overlap of two boxes, as slices of `masks` and of `cut`."""
    return overlap(masks.origin, masks.shape, cut.origin, cut.shape)


def _embed(
    values: NDArray[Any], box: tuple[tuple[slice, ...], tuple[slice, ...]], shape: tuple[int, int, int]
) -> NDArray[Any]:
    out = np.zeros(shape, dtype=values.dtype)
    out[box[1]] = values[box[0]]
    return out
