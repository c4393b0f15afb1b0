"""Knockoffs of annotators: flags at a chosen false discovery rate (section 2.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.array_operations import cholesky, invert_factored, solve_factored, solve_lower
from raterscope.algorithms.pairs.data import HIGHEST_RATE, BoolArray, FloatArray, IndexArray, Pairs
from raterscope.algorithms.pairs.paths import Biases, ScaledGrams, factor_laplacian, item_sums
from raterscope.algorithms.progress import Watch, part, silent, steps_of, wait_watching

UNTESTED = {
    1: "took no part",
    2: "made too few comparisons to be tested",
    3: "cannot be tested: no comparisons by others rank the compared items",
    4: "cannot be tested: the bias cannot be separated from the scores of the items or the biases of others",
}
"""Reasons for not testing an annotator, as the rest of a sentence after the name."""

_FAR_APART = 0.5
_NEWTON_STEPS = 100
_MANY = 500
_BARRIER = 1e-8
_ROUGH, _FINE = 1e-5, 1e-13


def choose_gaps(gram: FloatArray, construction: str = "entropy", watch: Watch = silent) -> FloatArray:
    """Choose s, the distance of each knockoff from its annotator: 0 <= s <= 1, diag(s) <= 2 R (after eq. 7).

    If the smallest eigenvalue of R is at least 1/2, s = 1 is allowed and optimal. Otherwise "sdp" maximises
    their sum, as in the paper, which often leaves some at 0, so that a bias of these annotators cannot be
    found; "entropy" maximises det S det(2R - S), by Newton's method, and "equal" uses 2 lambda_min for all.

    `gram`: (m, m), R, for columns of length 1. `construction`: a key of `CONSTRUCTIONS`.
    """
    count = len(gram)
    if not count:
        return np.zeros(0)
    values = partial(np.linalg.eigvalsh, gram)  # those of SciPy stop all threads
    smallest = float(wait_watching(values, watch, 0.0, "making knockoffs", small=count <= _MANY)[0])
    if smallest >= _FAR_APART:
        return np.ones(count)
    if construction == "equal":
        return np.full(count, min(1.0, 2.0 * smallest))
    s = np.full(count, smallest)
    if construction == "entropy":
        return _climb(gram, s, 0.0, 1.0, watch)
    weights = 0.1 ** np.arange(np.ceil(np.log10(count / _BARRIER)) + 1)
    for weight, step in steps_of(watch, weights):
        s = _climb(gram, s, 1.0, float(weight), step)
    return s


def _climb(gram: FloatArray, s: FloatArray, slope: float, weight: float, watch: Watch) -> FloatArray:
    """Maximise slope sum s + weight (log det(2R - S) + sum log s), with log(1 - s) if there is a slope.

    Without a slope s stays below 1, because the diagonal of (2R - S)^-1 is at least 1 / (2 - s).
    """
    bounded, nothing = slope > 0.0, np.empty((0, 0))

    def height(s: FloatArray) -> tuple[float, FloatArray]:
        if s.min() <= 0.0 or (bounded and s.max() >= 1.0):
            return -np.inf, nothing
        try:
            factor = cholesky(2.0 * gram - np.diag(s))
        except np.linalg.LinAlgError:
            return -np.inf, nothing
        logs = 2.0 * np.log(np.diagonal(factor)).sum() + np.log(s).sum()
        if bounded:
            logs += np.log1p(-s).sum()
        return float(slope * s.sum() + weight * logs), factor

    def newton(s: FloatArray, factor: FloatArray) -> tuple[FloatArray, FloatArray]:
        inverse = invert_factored(factor)
        down = 1.0 / (1.0 - s) if bounded else np.zeros(len(s))
        rise = slope + weight * (1.0 / s - np.diagonal(inverse) - down)
        bend = weight * (inverse**2 + np.diag(1.0 / s**2 + down**2))
        return rise, solve_factored(cholesky(bend), rise)

    now, factor = height(s)
    for k in range(_NEWTON_STEPS):
        watch(k / _NEWTON_STEPS, "making knockoffs")
        rise, move = wait_watching(
            partial(newton, s, factor), watch, k / _NEWTON_STEPS, "making knockoffs", small=len(s) <= _MANY
        )
        gain = float(rise @ move)
        if gain <= (_ROUGH if bounded else _FINE) * weight * len(s):
            break
        length = 1.0
        while length > 1e-12:
            then, factor = height(s + length * move)
            if then >= now + 0.1 * length * gain or (gain < 1e-9 * weight and then > -np.inf):
                s, now = s + length * move, then
                break
            length *= 0.5
        else:
            break
    return s


@dataclass(frozen=True, eq=False)
class Knockoffs:
    """Terms common to all draws of knockoffs; no column is ever built."""

    base: FloatArray  # (m,): the knockoffs' pull without the random part, X'y - S R^-1 X'y
    factor: FloatArray  # (m, m): C' with C'C = 2S - S R^-1 S; the pull is the base plus C' Q'y

    def pulls(self, pull: FloatArray, random: FloatArray) -> FloatArray:
        """Concatenate the pulls of the annotators and of their knockoffs, (D, 2 m).

        `pull`: (m,). `random`: (D, m), Q'y of each draw, as from `project_at_random`.
        """
        own = np.broadcast_to(pull, random.shape)
        return np.hstack((own, self.base + random @ self.factor.T))


def make_knockoffs(
    pull: FloatArray, inverse: FloatArray, gap: FloatArray, symmetric: bool = False
) -> Knockoffs:
    """Compute the terms common to all draws (the lines after eq. 7).

    `pull`: (m,).
    `inverse`: (m, m), inverse of R.
    `gap`: (m,), s, for which 2R - S may be singular.
    `symmetric`: use the symmetric C, with which a knockoff depends mostly on its own column of Q.
    """
    square = 2.0 * np.diag(gap) - inverse * np.outer(gap, gap)
    try:
        factor = None if symmetric else cholesky(square)
    except np.linalg.LinAlgError:
        factor = None
    if factor is None:
        value, vector = np.linalg.eigh(square)
        factor = (vector * np.sqrt(np.maximum(value, 0.0))) @ vector.T
    return Knockoffs(pull - gap * (inverse @ pull), factor)


def project_at_random(
    columns: int, residual: float, freedom: int, seeds: Sequence[Sequence[int]]
) -> FloatArray:
    """Draw Q'y, (D, columns), for random orthonormal Q, orthogonal to items and annotators.

    Such a Q'y is the length of the residual times coordinates of a uniform point on the sphere, in as many
    dimensions as there are degrees of freedom. If there are fewer degrees of freedom than columns, the data
    are padded with rows of normal noise of the estimated size, as in [barber2015]_; the guarantee then
    depends on this size.

    `residual`: sum of squares.
    `freedom`: above 0.
    `seeds`: seed of each draw.

    References
    ----------
    .. [barber2015] R. F. Barber and E. J. Candès, "Controlling the false discovery rate via knockoffs",
       Annals of Statistics 43 (2015) 2055-2085, doi:10.1214/15-AOS1337.
    """
    result = np.empty((len(seeds), columns))
    for k, seed in enumerate(seeds):
        generator = np.random.default_rng(seed)
        point = generator.standard_normal(columns)
        square = residual
        rest = 0.0
        if freedom >= columns:
            rest = generator.chisquare(freedom - columns) if freedom > columns else 0.0
        else:
            square += residual / freedom * generator.chisquare(columns - freedom)
        result[k] = point * np.sqrt(square / (point @ point + rest))
    return result


def statistic(entries: FloatArray) -> FloatArray:
    """Compare the entries of annotators and their knockoffs: W of eq. 8, (D, m), 0 for a tie.

    `entries`: (D, 2 m).
    """
    own, knockoff = np.split(entries, 2, axis=1)
    return np.asarray(np.maximum(own, knockoff) * np.sign(own - knockoff))


@dataclass(frozen=True, eq=False)
class SortedDraws:
    """W of D draws, sorted by size, for fast cuts at any rate."""

    statistic: NDArray[np.floating[Any]]  # (D, p): as in `PairFusion`
    size: FloatArray  # (D, p): |W|, the largest first
    # against, chosen: (D, p): number of values below and above 0 among the first values up to each
    against: NDArray[np.int32]
    chosen: NDArray[np.int32]
    last: BoolArray  # (D, p): the last one of its size, which is not 0
    untested: BoolArray  # (p,)

    def cuts(self, rate: float, plus: bool = True) -> FloatArray:
        """Find the cut T of each draw (section 2.3, step 3), over t > 0 and with a denominator of at least 1.

        Raises `ValueError` for a rate above `HIGHEST_RATE`.

        `rate`: q, at most `HIGHEST_RATE`.
        `plus`: use knockoff+, T1, which controls the rate; otherwise the plain knockoff, T0, which nearly
        does. The result, (D,), is infinite without a valid cut.
        """
        if not 0.0 < rate <= HIGHEST_RATE:
            raise ValueError(f"the rate is {rate:g}; expected more than 0, at most {HIGHEST_RATE:g}")
        result = np.full(len(self.size), np.inf)
        if not self.size.shape[1]:
            return result
        # a product instead of a quotient, so that rounding errors do not exclude 1 / 10 at a rate of 0.1
        most = rate * np.maximum(self.chosen, 1) * (1.0 + 1e-12)
        good = self.last & (self.against + int(plus) <= most)
        at = self.size.shape[1] - 1 - np.argmax(good[:, ::-1], axis=1)
        any_good = good.any(axis=1)
        result[any_good] = self.size[any_good, at[any_good]]
        return result

    def shares(self, cut: FloatArray) -> FloatArray:
        """Return the share of the draws that select each annotator at their cuts; see `selection_shares`."""
        chosen = self.statistic >= cut[:, None].astype(self.statistic.dtype)
        result = np.asarray(chosen.mean(axis=0), dtype=np.float64)
        result[self.untested] = np.nan
        return result


def sort_draws(statistic: NDArray[np.floating[Any]]) -> SortedDraws:
    """Sort W of every draw once for all rates.

    `statistic`: (D, p), W; NaN for annotators who were not tested.
    """
    w = np.nan_to_num(np.asarray(statistic, dtype=np.float64), nan=0.0)
    w = np.take_along_axis(w, np.argsort(-np.abs(w), axis=1), axis=1)
    size = np.abs(w)
    last = size > 0.0
    last[:, :-1] &= size[:, :-1] > size[:, 1:]
    return SortedDraws(
        statistic=statistic,
        size=size,
        against=np.cumsum(w < 0.0, axis=1, dtype=np.int32),
        chosen=np.cumsum(w > 0.0, axis=1, dtype=np.int32),
        last=last,
        untested=np.isnan(statistic).any(axis=0),
    )


def selection_shares(statistic: NDArray[np.floating[Any]], rate: float, plus: bool = True) -> FloatArray:
    """Return the share of the draws that select each annotator at a rate, from W without refitting.

    `statistic`: (D, p), as in `PairFusion`. `rate`, `plus`: as in `SortedDraws.cuts`. The result, (p,), is
    NaN for annotators who were not tested.
    """
    draws = sort_draws(statistic)
    return draws.shares(draws.cuts(rate, plus))


def select_annotators(shares: FloatArray, share: float) -> BoolArray:
    """Flag annotators, (p,) bool: those whose `shares`, (p,), reach `share`."""
    return np.asarray(shares >= share - 1e-9)


_LOST = 1e-6
_FADING, _ROUNDING = 0.5, 2.0**-54
_TOGETHER = 128


def own_noise(
    pairs: Pairs,
    component: IndexArray,
    problem: ScaledGrams,
    biases: Biases,
    seeds: Sequence[Sequence[int]],
    watch: Watch = silent,
) -> FloatArray:
    """Draw Q'y, (D, m), with column j of Q near a random vector on the comparisons of annotator j.

    Let Z have a normal vector for each annotator that is 0 on all others' comparisons, and P be the projector
    orthogonal to items and annotators. Q = PZ (Z'PZ)^-1/2 is the orthonormal matrix nearest to PZ, and
    independent of the choices, as theorem 1 requires. Knockoffs then have the noise of their annotators,
    while a common Q gives all of them the mean noise. If too little of Z remains for an annotator, the rest
    comes from the sphere.

    `component`: (n,). `seeds`: seed of each draw.
    """
    count, items = len(problem.tested), len(pairs.items)
    number = np.full(len(pairs.annotators), count, dtype=np.int32)
    number[problem.tested] = np.arange(count)
    person = number[pairs.annotator]
    bias = np.append(biases.scaled / problem.length, 0.0)
    score = item_sums(pairs, pairs.choice - bias[person])
    factors = list(factor_laplacian(pairs, component, part(watch, 0.0, 0.1)))
    theta = np.zeros(items)
    sides = np.stack((pairs.left, pairs.right))
    mixed, _ = _sums(person, sides, np.ones(len(pairs)), np.ones(len(pairs)), (count, items))
    blocks = []
    for kept, lower in _joined(factors):
        theta[kept] = solve_factored(lower, score[kept])
        blocks.append((kept, lower, solve_lower(lower, mixed[:, kept].T)))
    residual = pairs.choice - theta[pairs.left] + theta[pairs.right] - bias[person]
    drawn = np.empty((len(seeds), count))
    probe = np.random.default_rng(0).standard_normal(count)  # its series is slow too if a direction is lost
    for k, seed in enumerate(seeds):
        watch(0.1 + 0.9 * k / len(seeds), f"noise of each annotator, draw {k + 1} of {len(seeds)}")
        generator = np.random.default_rng(seed)
        z = generator.standard_normal(len(pairs))
        table, sums = _sums(person, sides, z, residual, (count, items))
        length = np.sqrt(sums[0])
        table /= length[:, None]
        total, seen = sums[1:] / length
        own = [(table[:, kept], lower, through) for kept, lower, through in blocks]
        lost = partial(_lost, own, total, problem.length, biases.inverse)
        near = None if _inverse_root(lost, probe) is None else _inverse_root(lost, seen)
        if near is not None:
            drawn[k] = near
            continue
        square = np.eye(count)
        cross: FloatArray = np.diag(total)
        for weighted, lower, through in own:
            explained = solve_lower(lower, weighted.T)
            square -= explained.T @ explained
            cross -= explained.T @ through
        cross /= problem.length
        value, vector = np.linalg.eigh(square - cross @ biases.inverse @ cross.T)
        good = value > _LOST
        seen = vector.T @ seen
        seen[good] = seen[good] / np.sqrt(value[good])
        if not good.all():
            remaining = max(biases.residual - float(seen[good] @ seen[good]), 0.0)
            free = biases.freedom - int(good.sum())
            seen[~good] = (
                project_at_random(int((~good).sum()), remaining, free, [[int(generator.integers(2**63))]])[0]
                if free > 0 else generator.standard_normal(int((~good).sum())) * np.sqrt(biases.variance)
            )  # fmt: skip
        drawn[k] = vector @ seen
    return drawn


def _joined(
    factors: Sequence[tuple[NDArray[np.int64], FloatArray]],
) -> Iterator[tuple[NDArray[np.int64], FloatArray]]:
    """Join the factors of small components, because many small solutions take longer than one."""
    from scipy.linalg import block_diag

    number = np.cumsum([len(kept) for kept, _ in factors]) // _TOGETHER
    for _, group in groupby(range(len(factors)), number.__getitem__):
        kept, lower = zip(*(factors[k] for k in group), strict=True)
        yield np.concatenate(kept), block_diag(*lower)


def _lost(
    blocks: Sequence[tuple[FloatArray, FloatArray, FloatArray]],
    total: FloatArray,
    length: FloatArray,
    inverse: FloatArray,
    x: FloatArray,
) -> FloatArray:
    """Multiply a vector by 1 - Z'PZ, the part of Z that items and annotators explain.

    `blocks`: for each block of items Z'delta0, (m, k); the factor of their Laplacian, (k, k); and delta0'A
    divided by it, (k, m).
    `total`: (m,), sums of the columns of Z.
    `inverse`: (m, m), of R.
    """
    explained = [solve_lower(lower, x @ table) for table, lower, _ in blocks]
    bias = total * x
    for (_, _, through), score in zip(blocks, explained, strict=True):
        bias -= score @ through
    bias = inverse @ (bias / length) / length
    result = total * bias
    for (table, lower, through), score in zip(blocks, explained, strict=True):
        result += table @ solve_lower(lower, score - through @ bias, transposed=True)
    return result


def _inverse_root(lost: Callable[[FloatArray], FloatArray], x: FloatArray) -> FloatArray | None:
    """Return (1 - E)^-1/2 x, given x -> E x, by its power series; None if the powers of E fade slowly."""
    result, coefficient = x.copy(), 1.0
    first = size = np.linalg.norm(x)
    k = 0
    while size > _ROUNDING * first:
        k += 1
        before, x = size, lost(x)
        size = np.linalg.norm(x)
        if not size <= _FADING * before:
            return None
        coefficient *= 1.0 - 0.5 / k
        result += coefficient * x
    return result


def _sums(
    person: IndexArray, sides: IndexArray, weight: FloatArray, value: FloatArray, shape: tuple[int, int]
) -> tuple[FloatArray, FloatArray]:
    """Return sums of comparisons by annotator, (m, n) and (3, m); see `_kernels.add_comparisons`."""
    from raterscope.algorithms.pairs._kernels import add_comparisons

    count, items = shape
    table, sums = np.zeros((count + 1, items)), np.zeros((3, count + 1))
    add_comparisons(person, sides, weight, value, table, sums)
    return table[:count], sums[:, :count]
