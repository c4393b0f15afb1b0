"""Scores of items from comparisons, with and without correction for the biases of some annotators.

Comparisons are counted in tables of items and annotators, and items that comparisons link form components.
Scores of different components cannot be compared.

References
----------
.. [davidson1970] R. R. Davidson, "On extending the Bradley-Terry model to accommodate ties in paired
   comparison experiments", Journal of the American Statistical Association 65 (1970) 317-328,
   doi:10.1080/01621459.1970.10481082.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.array_operations import invert_definite, one_thread
from raterscope.algorithms.pairs.data import BoolArray, FloatArray, IndexArray, Pairs, PairsError
from raterscope.algorithms.pairs.wins import DENSE, Preferences, estimate_preferences, rank_intervals
from raterscope.algorithms.progress import Watch, part, silent, wait_watching


def cross_table(
    row: NDArray[np.integer],
    column: NDArray[np.integer],
    shape: tuple[int, int],
    value: FloatArray | None = None,
) -> Any:
    """Sum values, or ones, by row and column into a sparse table of float64."""
    from scipy.sparse import csr_array

    return csr_array(_sum_cells(row, column, shape, value))


def _sum_cells(
    row: NDArray[np.integer], column: NDArray[np.integer], shape: tuple[int, int], value: FloatArray | None
) -> Any:
    """Sum values, or ones, by row and column into an array, or a sparse table if that would be large.

    An array takes a fifth of the time of sorting.
    """
    from scipy.sparse import coo_array

    if shape[0] * shape[1] <= DENSE:
        cell = np.asarray(row, dtype=np.int64) * shape[1] + column
        dense = np.bincount(cell, weights=value, minlength=shape[0] * shape[1])
        return dense.astype(np.float64, copy=False).reshape(shape)
    return coo_array((np.ones(len(row)) if value is None else value, (row, column)), shape=shape).tocsr()


def sum_by_owner(owner: NDArray[np.integer], value: NDArray[Any], many: int) -> FloatArray:
    """Sum the values of each of `many` owners; (many,)."""
    return np.asarray(np.bincount(owner, weights=value, minlength=many), dtype=np.float64)


def starts_of(owner: NDArray[np.integer], many: int) -> NDArray[np.int64]:
    """Return the start of each owner's values, (many + 1,), for values sorted by owner."""
    return np.searchsorted(owner, np.arange(many + 1)).astype(np.int64)


def sum_sorted(start: NDArray[np.int64], value: NDArray[Any]) -> FloatArray:
    """Sum values sorted by owner, with those of owner i at ``start[i]:start[i + 1]``; (many,).

    It takes a tenth of the time of `sum_by_owner`.
    """
    result = np.zeros(len(start) - 1)
    occupied = np.flatnonzero(np.diff(start))
    if len(occupied):
        result[occupied] = np.add.reduceat(value, start[occupied], dtype=np.float64)
    return result


def groups_of(component: IndexArray) -> list[NDArray[np.int64]]:
    """Return the items of each component; items with a number below 0 belong to none."""
    order = np.argsort(component, kind="stable")
    order = order[component[order] >= 0]
    return np.split(order, np.flatnonzero(np.diff(component[order])) + 1) if len(order) else []


MAX_LINKED = 6000
"""Maximum number of items in a component: their Gram matrix has 8 bytes for each pair."""

_LEVEL = 0.95
_SINGULAR = 1e-9
_ROUNDING = 1e-15
"""Share of the choices' sum of squares below which that of the residuals is only rounding errors."""
_TIED = 1e-9
_PRIOR_VARIANCE = 100.0
_NEWTON_STEPS, _LONGEST_STEP, _CONVERGED = 200, 2.0, 1e-7
_SMALL, _FEW = 400, 20_000


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of items by least squares, optionally with biases of annotators (eq. 11)."""

    # score, low, high: (n,): mean 0 in each component, with 95 % intervals that are also valid for other
    # annotators of the same kind. NaN for items that were never compared; the interval is also NaN if a bias
    # cannot be separated from the score, or without degrees of freedom for the noise
    score: FloatArray
    low: FloatArray
    high: FloatArray
    # (p,): biases of the annotators whose bias is estimated; NaN for others, and if a bias cannot be
    # separated from the scores, as for the only annotator of an item
    bias: FloatArray
    variance: float  # of the noise: the residual sum of squares over the degrees of freedom; NaN without any
    freedom: int  # comparisons less the rank of the design; not above 0 where there are too few comparisons
    # rank_low, rank_high: (n,): 95 % intervals of the ranks within components, see `wins.rank_intervals`; 0
    # if unknown: for items that were never compared, without degrees of freedom, and in components of too
    # many items
    rank_low: IndexArray
    rank_high: IndexArray


@dataclass(frozen=True, eq=False)
class LinkedScores:
    """Terms of the scores that do not depend on the biased annotators, which are most of the work."""

    component: IndexArray  # (n,): from `components`
    items: tuple[NDArray[np.int64], ...]  # tuple of (m,): of each component
    inverse: tuple[FloatArray, ...]  # tuple of (m, m): the pseudo-inverse of each component's Laplacian
    pull: FloatArray  # (n,): sum of the choices for each item: delta0'y
    # count, answers: (p,): number or weight of each annotator's comparisons, and sum of the choices: A'y
    count: FloatArray
    answers: FloatArray
    mixed: Any  # (p, n): M, an array or a sparse table
    total: float  # sum of squares of the choices
    comparisons: int  # their number, or rounded weight
    preferences: Preferences  # of the annotators, whose choices on the same items are alike


def components(pairs: Pairs) -> IndexArray:
    """Return each item's component of linked items, (n,), 0 for the largest; -1 for items never compared."""
    from scipy.sparse.csgraph import connected_components

    count = len(pairs.items)
    result = np.full(count, -1, dtype=np.int32)
    if not len(pairs):
        return result
    _, label = connected_components(cross_table(pairs.left, pairs.right, (count, count)), directed=False)
    compared = np.zeros(count, dtype=bool)
    compared[pairs.left] = compared[pairs.right] = True
    names, first, inverse, size = np.unique(
        label[compared], return_index=True, return_inverse=True, return_counts=True
    )
    index = np.empty(len(names), dtype=np.int32)
    index[np.lexsort((first, -size))] = np.arange(len(names), dtype=np.int32)
    result[compared] = index[inverse]
    return result


def scores(pairs: Pairs, biased: BoolArray | None = None, watch: Watch = silent) -> Scores:
    """Estimate scores by least squares, together with the biases of some annotators (eq. 11).

    A tie is the choice 0, half a vote for each item, as in the sufficient statistics of Davidson's model of
    ties [davidson1970]_.

    With L the Laplacian of the comparisons and M = A' delta0, both small, the biases solve (N - M L+ M') bias
    = A'y - M L+ delta0'y; the scores are L+ (delta0'y - M' bias). Each component of items is a block of L.

    `biased`: (p,), annotators whose biases are estimated; none by default. Annotators without comparisons are
    skipped. With weights the squares are weighted, and their sum counts as the number of comparisons. Raises
    `PairsError` for more than `MAX_LINKED` items in one component.
    """
    return scores_of(link(pairs, part(watch, 0.0, 0.8)), biased, part(watch, 0.8, 1.0))


def link(pairs: Pairs, watch: Watch = silent) -> LinkedScores:
    """Compute the input of `scores_of` that does not depend on the biased annotators.

    Raises `PairsError` as `scores`.
    """
    watch(0.0, "linking items")
    component = components(pairs)
    watch(0.1, "linking items")
    laplacian, pull = _normal(pairs)
    groups = tuple(groups_of(component))
    inverses = []
    with one_thread():
        for at, items in enumerate(groups):
            fraction = 0.2 + 0.7 * at / len(groups)
            watch(fraction, f"scoring {len(items):,} items")
            inverses.append(_pseudo_inverse(laplacian, items, watch, fraction))
        degree = float(laplacian.sum())
        preferences = wait_watching(
            lambda: estimate_preferences(pairs, groups, inverses, degree), watch, 0.95,
            "comparing annotators' preferences", small=len(pairs) <= _FEW,
        )  # fmt: skip
    many, weight, choice = len(pairs.annotators), pairs.each_weight(), pairs.choice
    weighed = choice if weight is None else weight * choice
    count = np.bincount(pairs.annotator, weights=weight, minlength=many).astype(np.float64)
    shape = (many, len(pairs.items))
    mixed = _sum_cells(pairs.annotator, pairs.left, shape, weight)
    mixed = mixed - _sum_cells(pairs.annotator, pairs.right, shape, weight)
    answers = sum_by_owner(pairs.annotator, weighed, many)
    return LinkedScores(
        component, groups, tuple(inverses), pull, count, answers, mixed, float(weighed @ choice),
        round(float(count.sum())), preferences,
    )  # fmt: skip


def scores_of(linked: LinkedScores, biased: BoolArray | None = None, watch: Watch = silent) -> Scores:
    """Estimate scores together with the biases of some annotators, (p,) bool; see `scores`."""
    return begin_scores(linked, biased, watch)[1]()


def begin_scores(
    linked: LinkedScores, biased: BoolArray | None, watch: Watch
) -> tuple[Scores, Callable[[], Scores]]:
    """Estimate scores as `scores_of`, but without intervals of ranks; return a function that adds these."""
    with one_thread():
        return _scores(linked, biased, watch)


def _scores(
    linked: LinkedScores, biased: BoolArray | None, watch: Watch
) -> tuple[Scores, Callable[[], Scores]]:
    pull, count, many = linked.pull, len(linked.component), len(linked.count)
    watch(0.0, "counting comparisons of biased annotators")
    members = np.flatnonzero((linked.count > 0) & (False if biased is None else np.asarray(biased, bool)))
    gram, right, mixed = np.diag(linked.count[members]), linked.answers[members], linked.mixed[members]
    score, spread = np.full(count, np.nan), np.full(count, np.nan)
    through: list[FloatArray] = []
    for items, inverse in zip(linked.items, linked.inverse, strict=True):
        watch(0.2, f"scoring {len(items):,} items")
        score[items] = inverse @ pull[items]
        spread[items] = np.diagonal(inverse)
        here = mixed[:, items]
        here = np.asfortranarray(here) if isinstance(here, np.ndarray) else here.toarray()
        through.append(here @ inverse)
        gram -= through[-1] @ here.T
        right = right - through[-1] @ pull[items]
    watch(0.5, "estimating biases")
    value, rank = np.zeros(len(members)), int((linked.component >= 0).sum()) - len(linked.items)
    bias, added = np.full(many, np.nan), [through_items[:0] for through_items in through]
    if len(members):
        inverse, null = _symmetric_inverse(gram, float(linked.count[members].max()), watch)
        value = inverse @ right
        rank += len(value) - null.shape[1]
        known = (null**2).sum(axis=1) < _SINGULAR
        bias[members[known]] = value[known]
        added = [inverse @ through_items for through_items in through]
        for items, through_items, by_bias in zip(linked.items, through, added, strict=True):
            score[items] -= value @ through_items
            spread[items] += (by_bias * through_items).sum(axis=0)
            unknown = np.abs(null.T @ through_items).max(axis=0, initial=0.0) > np.sqrt(_SINGULAR)
            spread[items[unknown]] = np.nan
    watch(0.95, "estimating biases")
    explained = float(np.nan_to_num(score) @ pull + value @ linked.answers[members])
    residual, freedom = max(linked.total - explained, _ROUNDING * linked.total), linked.comparisons - rank
    variance = residual / freedom if freedom > 0 else float("nan")
    preferences = linked.preferences
    noise, preference = preferences.variances(residual, freedom, np.nan_to_num(score), members, value)
    uncertain = np.maximum(noise * spread + preference * preferences.spread, 0.0)
    wide = _quantile(freedom) * np.sqrt(uncertain)
    unknown_rank = np.zeros(count, dtype=np.int32)
    result = Scores(score, score - wide, score + wide, bias, variance, freedom, unknown_rank, unknown_rank)

    def with_ranks() -> Scores:
        rank_low, rank_high = unknown_rank.copy(), unknown_rank.copy()
        blocks = zip(linked.items, added, through, linked.inverse, preferences.covariance, strict=True)
        for items, by_bias, through_items, inverse, by_preference in blocks:
            if (
                by_preference is None
                or len(items) < 2
                or freedom <= 0
                or not np.isfinite(spread[items]).all()
            ):
                continue
            covariance = partial(
                _covariance, by_bias, through_items, noise, inverse, preference, by_preference
            )
            with one_thread():
                rank_low[items], rank_high[items] = rank_intervals(
                    score[items], uncertain[items], covariance, freedom
                )
        return replace(result, rank_low=rank_low, rank_high=rank_high)

    return result, with_ranks


def _covariance(
    by_bias: FloatArray, through: FloatArray, noise: float, inverse: FloatArray, preference: float,
    by_preference: FloatArray, rows: slice,
) -> FloatArray:  # fmt: skip
    """Return rows of the covariance of the scores of a component."""
    result = by_bias[:, rows].T @ through
    result += inverse[rows]
    result *= noise
    result += preference * by_preference[rows]
    return np.asarray(result)


def _normal(pairs: Pairs) -> tuple[Any, FloatArray]:
    """Return the Laplacian without its diagonal, as counts of comparisons, and delta0'y."""
    count, weight = len(pairs.items), pairs.each_weight()
    links = cross_table(pairs.left, pairs.right, (count, count), weight)
    choice = pairs.choice if weight is None else weight * pairs.choice
    pull = np.bincount(pairs.left, weights=choice, minlength=count).astype(np.float64)
    pull -= np.bincount(pairs.right, weights=choice, minlength=count)
    return (links + links.T).tocsr(), pull


def _pseudo_inverse(links: Any, items: NDArray[np.int64], watch: Watch, fraction: float) -> FloatArray:
    """Invert the Laplacian of one component on the vectors of mean 0."""
    count = len(items)
    if count > MAX_LINKED:
        raise PairsError(f"{count:,} items are linked by comparisons; expected at most {MAX_LINKED:,}.")
    block = np.asarray(links[items][:, items].toarray())
    degree = block.sum(axis=1)
    np.negative(block, out=block)
    # The mean, which comparisons do not determine, gets a weight like that of the items, for good
    # conditioning.
    weight = degree.mean() / count
    block += weight
    block[np.diag_indices(count)] += degree

    def inverted() -> FloatArray:
        try:
            inverse = invert_definite(block)
        except np.linalg.LinAlgError as error:
            text = "the comparisons of these items cannot be distinguished from rounding errors."
            raise PairsError(text) from error
        inverse -= 1.0 / (weight * count * count)
        return np.asarray(inverse)

    inverse = wait_watching(inverted, watch, fraction, f"scoring {count:,} items", small=count <= _SMALL)
    return np.asarray(inverse)


def _symmetric_inverse(gram: FloatArray, scale: float, watch: Watch) -> tuple[FloatArray, FloatArray]:
    """Return the pseudo-inverse, and the null vectors."""
    gram = (gram + gram.T) / 2
    value, vector = wait_watching(
        lambda: np.linalg.eigh(gram), watch, 0.85, "estimating biases", small=len(gram) <= _SMALL
    )
    good = value > _SINGULAR * scale
    kept = vector[:, good]
    return (kept / value[good]) @ kept.T, vector[:, ~good]


def _quantile(freedom: int) -> float:
    """Return the half width of the interval in standard errors, of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.5 + _LEVEL / 2)) if freedom > 0 else float("nan")


def ranks(score: FloatArray, component: IndexArray) -> IndexArray:
    """Rank items within their components from 1, the highest score first; equal scores have equal ranks.

    The result, (n,), is 0 for items without a score.
    """
    result = np.zeros(len(score), dtype=np.int32)
    for items in groups_of(np.where(np.isfinite(score), component, -1).astype(np.int32)):
        order = items[np.argsort(-score[items], kind="stable")]
        value = score[order]
        new = np.empty(len(order), dtype=bool)
        new[0] = True
        new[1:] = -np.diff(value) > _TIED * (1 + np.abs(value[1:]))
        first = np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))
        result[order] = first + 1
    return result


def inconsistency(pairs: Pairs, component: IndexArray, score: FloatArray | None = None) -> float:
    """Return the share of choices that no ranking explains; see `ranking_agreement.consistency`.

    Raises `PairsError` if two items of different components are compared.

    `component`: (n,), from `components`; items of no component must not have been compared. `score`: (n,),
    least squares scores, if already known. The share is 0 to 1; it is 0 without choices.
    """
    if bool((component[pairs.left] != component[pairs.right]).any()):
        raise PairsError("two items of different components are compared.")
    known = scores(pairs).score if score is None else score
    residual, weight = pairs.choice - known[pairs.left] + known[pairs.right], pairs.each_weight()
    if weight is None:
        total, unexplained = float(pairs.choice @ pairs.choice), float(residual @ residual)
    else:
        total, unexplained = float(weight @ pairs.choice**2), float(weight @ residual**2)
    return unexplained / total if total > 0 else 0.0


def bradley_terry(pairs: Pairs, watch: Watch = silent) -> FloatArray:
    """Fit the Bradley-Terry model by Newton's method, for comparison.

    The log odds that the left item is preferred are the difference of two scores; a tie counts as half an
    answer for each. Only the sign of answers counts. A normal prior of standard deviation 10 keeps scores
    finite if an item always wins.

    The scores, (n,), are log odds with mean 0 in each component; NaN for items that were never compared.
    """
    from scipy.sparse import csr_array, diags_array
    from scipy.sparse.linalg import cg
    from scipy.special import expit

    watch(0.0, "counting answers")
    count, component = len(pairs.items), components(pairs)
    result = np.full(count, np.nan)
    if not len(pairs):
        return result
    share, weight = (1 + np.sign(pairs.choice)) / 2, pairs.each_weight()
    left, right, lost = pairs.left, pairs.right, 1 - share
    if weight is not None:
        share, lost = share * weight, lost * weight
    wins = cross_table(left, right, (count, count), share) + cross_table(right, left, (count, count), lost)
    pull = np.asarray(wins.sum(axis=1)).ravel()
    both = (wins + wins.T).tocoo()
    row, column, weight = both.row, both.col, both.data

    def report(_: object = None) -> None:
        watch(0.5, "fitting the Bradley-Terry model")

    score = np.zeros(count)
    for _ in range(_NEWTON_STEPS):
        report()
        chance = expit(score[row] - score[column])
        down = pull - sum_by_owner(row, weight * chance, count) - score / _PRIOR_VARIANCE
        links = csr_array((weight * chance * (1 - chance), (row, column)), shape=(count, count))
        diagonal = np.asarray(links.sum(axis=1)).ravel() + 1 / _PRIOR_VARIANCE
        with one_thread():
            step, _ = cg(
                diags_array(diagonal) - links, down, rtol=1e-9, M=diags_array(1 / diagonal), callback=report
            )
        longest = float(np.abs(step).max())
        score += step * min(1.0, _LONGEST_STEP / max(longest, 1e-12))
        if longest < _CONVERGED:
            break
    for items in groups_of(component):
        result[items] = score[items] - score[items].mean()
    return result
