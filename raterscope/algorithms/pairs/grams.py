"""The small matrices that all of a fusion follows from, with the items projected out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.pairs.data import BoolArray, FloatArray, IndexArray, Pairs, PairsError
from raterscope.algorithms.pairs.ranking import MOST_LINKED, components, groups_of, table
from raterscope.algorithms.progress import Watch, silent, wait_watching

__all__ = [
    "MOST_TESTED",
    "Biases",
    "Grams",
    "Scaled",
    "factors",
    "grams",
    "item_sums",
    "least_squares",
    "scaled",
]

MOST_TESTED = 5000
"""Annotators: several matrices have 8 bytes for each two of them."""

_SINGULAR = 1e-9
_REGULAR = 1e-7
_FITTED = 1e-10
_SMALL = 500


@dataclass(frozen=True, eq=False)
class Grams:
    """Gram matrices of E comparisons, with the scores of the items projected out.

    With H the projector onto the columns of delta0 (section 2.3), A'(I - H)A is G and A'(I - H)Y the pull.

    Attributes
    ----------
    people : (m,) int64
        Numbers of the annotators whose columns are in A; the others are taken for unbiased.
    count : (m,) int64
        Comparisons of each of them, N = A'A.
    gram : (m, m) float64
        G = N - M L+ M', where L = delta0'delta0 and M = A'delta0.
    pull : (m,) float64
        A'Y - M L+ delta0'Y.
    square : float
        Y'(I - H)Y.
    total : float
        Y'Y.
    rank : int
        Of delta0: the items that were compared less their components.
    comparisons : int
        E.
    """

    people: NDArray[np.int64]
    count: NDArray[np.int64]
    gram: FloatArray
    pull: FloatArray
    square: float
    total: float
    rank: int
    comparisons: int


def grams(
    pairs: Pairs,
    component: IndexArray | None = None,
    who: BoolArray | None = None,
    watch: Watch = silent,
) -> Grams:
    """Add up comparisons and project the items out, one connected component of them after the other.

    The pseudo-inverse of a component's Laplacian is never built: without its last item it is positive
    definite, and one triangular solution gives the part of M' that the items explain.

    Parameters
    ----------
    pairs : Pairs
    component : (n,) int32, optional
        As from `ranking.components`.
    who : (p,) bool, optional
        Whose biases are in the model; by default of all who compared anything.
    watch : Watch

    Raises
    ------
    PairsError
        For more than `ranking.MOST_LINKED` items in one component, or more than `MOST_TESTED` annotators.
    """
    from scipy.linalg import solve_triangular

    component = components(pairs) if component is None else component
    number, items = len(pairs.annotators), len(pairs.items)
    count = np.bincount(pairs.annotator, minlength=number).astype(np.int64)
    annotators = np.flatnonzero(count > 0 if who is None else who & (count > 0)).astype(np.int64)
    if len(annotators) > MOST_TESTED:
        raise PairsError(
            f"{len(annotators):,} annotators are to be tested; expected at most {MOST_TESTED:,}: "
            "raise the least comparisons that one is tested from."
        )
    watch(0.05, "adding up comparisons")
    mixed = table(pairs.annotator, pairs.left, (number, items))
    watch(0.15, "adding up comparisons")
    mixed = (mixed - table(pairs.annotator, pairs.right, (number, items)))[annotators].tocsc()
    watch(0.25, "adding up comparisons")
    score = item_sums(pairs, pairs.choice)
    count = count[annotators]
    gram = np.diag(count.astype(np.float64))
    pull = np.zeros(number)
    pull += np.bincount(pairs.annotator, weights=pairs.choice, minlength=number)
    pull = pull[annotators]
    total = square = float(pairs.choice @ pairs.choice)
    rank = done = 0
    for kept, lower in factors(pairs, component, watch):
        part = mixed[:, kept]
        some = np.unique(part.indices)
        right = np.column_stack((part[some].toarray().T, score[kept]))

        def explained(lower: FloatArray = lower, right: FloatArray = right) -> FloatArray:
            through = solve_triangular(lower, right, lower=True, overwrite_b=True, check_finite=False)
            return np.asarray(through.T @ through)

        small = len(kept) * len(some) <= _SMALL**2
        fraction = 0.4 + 0.6 * (done + 0.5 * len(kept)) / max(int((component >= 0).sum()), 1)
        done += len(kept) + 1
        shared = wait_watching(explained, watch, fraction, f"projecting out {len(kept):,} items", small=small)
        rank += len(kept)
        gram[np.ix_(some, some)] -= shared[:-1, :-1]
        pull[some] -= shared[:-1, -1]
        square -= shared[-1, -1]
    return Grams(annotators, count, gram, pull, max(square, 0.0), total, rank, len(pairs))


def factors(
    pairs: Pairs, component: IndexArray, watch: Watch = silent
) -> Iterator[tuple[NDArray[np.int64], FloatArray]]:
    """Factor the Laplacian of one component of items after the other.

    Yields
    ------
    items : (k,) int64
        Those of a component but one, whose score is then 0.
    lower : (k, k) float64
        Triangular: their part of L is this times its transpose.

    Raises
    ------
    PairsError
        With more linked items than fit.
    """
    from scipy.linalg import cholesky

    count = len(pairs.items)
    links = table(pairs.left, pairs.right, (count, count))
    laplacian = (links + links.T).tocsr()
    groups = groups_of(component)
    work, done = max(sum(len(group) for group in groups), 1), 0
    for group in groups:
        if len(group) > MOST_LINKED:
            raise PairsError(
                f"{len(group):,} items are linked by comparisons; expected at most {MOST_LINKED:,}."
            )
        fraction, words = 0.4 + 0.6 * done / work, f"projecting out {len(group):,} items"
        kept = group[:-1]
        block = -laplacian[kept][:, kept].toarray()
        block[np.diag_indices_from(block)] += np.asarray(laplacian[kept].sum(axis=1)).ravel()
        factored = partial(cholesky, block, lower=True, overwrite_a=True, check_finite=False)
        watch(fraction, words)
        lower = wait_watching(factored, watch, fraction, words, small=len(kept) <= _SMALL)
        done += len(group)
        yield kept, lower


def item_sums(pairs: Pairs, value: FloatArray) -> FloatArray:
    """Return delta0' times a value of each comparison, (n,)."""
    count = len(pairs.items)
    result = np.zeros(count)
    result += np.bincount(pairs.left, weights=value, minlength=count)
    result -= np.bincount(pairs.right, weights=value, minlength=count)
    return result


@dataclass(frozen=True, eq=False)
class Scaled:
    """The regression of the choices on the annotators, with columns of length 1 and items projected out.

    The constraint 0 <= s <= 1 of the knockoffs supposes columns of (I - H)A of length 1, which they are not
    as printed: R = D^-1/2 G D^-1/2 with D the diagonal of G.

    Attributes
    ----------
    tested : (m,) int64
        The annotators' numbers.
    length : (m,) float64
        D^1/2: lengths of the columns, so that a bias is a scaled one by it.
    gram : (m, m) float64
        R.
    pull : (m,) float64
        D^-1/2 A'(I - H)Y.
    """

    tested: NDArray[np.int64]
    length: FloatArray
    gram: FloatArray
    pull: FloatArray


def scaled(small: Grams) -> tuple[Scaled, BoolArray]:
    """Scale the Gram matrix, leaving out the annotators whose bias the data cannot tell.

    It cannot where a mixture of biases with theirs in it equals some scores of the items: an annotator alone
    on an item, or all of them where an item always stands on the same side.

    Returns
    -------
    Scaled
        Of the annotators that are left; its Gram matrix is positive definite.
    told : (m,) bool
        Which of `small.people` they are.
    """
    from scipy.linalg import eigh

    known = np.asarray(np.diagonal(small.gram) > _SINGULAR * small.count)
    annotators = np.flatnonzero(known).astype(np.int64)
    result = _scaled(small, annotators)
    if not _regular(result.gram):
        value, vector = eigh(result.gram, check_finite=False)
        mixed = (vector[:, value < _SINGULAR] ** 2).sum(axis=1) > _SINGULAR
        known[annotators[mixed]] = False
        result = _scaled(small, annotators[~mixed])
    return result, known


def _regular(gram: FloatArray) -> bool:
    """Return whether no column is next to a mixture of those before it."""
    from scipy.linalg import LinAlgError, cholesky

    try:
        factor = cholesky(gram, check_finite=False)
    except LinAlgError:
        return False
    return bool((np.diagonal(factor) ** 2 > _REGULAR).all())


def _scaled(small: Grams, who: NDArray[np.int64]) -> Scaled:
    length = np.sqrt(np.diagonal(small.gram)[who])
    gram = small.gram[np.ix_(who, who)] / np.outer(length, length)
    gram = 0.5 * (gram + gram.T)
    np.fill_diagonal(gram, 1.0)
    return Scaled(small.people[who], length, gram, small.pull[who] / length)


@dataclass(frozen=True, eq=False)
class Biases:
    """Biases of all tested annotators by least squares.

    Attributes
    ----------
    scaled : (m,) float64
        R^-1 times the pull: biases times the lengths of their columns.
    inverse : (m, m) float64
        Of R.
    residual : float
        Sum of squares of what neither scores nor biases explain; 0 where it is round-off.
    freedom : int
        E less the rank of delta0 and A together.
    variance : float
        Of the noise; NaN without freedom.
    """

    scaled: FloatArray
    inverse: FloatArray
    residual: float
    freedom: int
    variance: float


def least_squares(small: Grams, problem: Scaled) -> Biases:
    """Estimate all biases at once, with the noise that is left."""
    from scipy.linalg import cho_factor, cho_solve

    count = len(problem.tested)
    inverse = np.zeros((0, 0))
    if count:
        inverse = cho_solve(cho_factor(problem.gram, check_finite=False), np.eye(count), check_finite=False)
    bias = inverse @ problem.pull
    residual = small.square - float(bias @ problem.pull)
    if residual <= _FITTED * small.total:
        residual = 0.0
    freedom = small.comparisons - small.rank - count
    return Biases(bias, inverse, residual, freedom, residual / freedom if freedom > 0 else float("nan"))
