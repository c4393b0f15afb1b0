"""Paths on which biases enter, the strongest first, and their Gram matrices.

The paths are those of inverse scale space, LASSO and linearised Bregman iteration (LBI). All use the scaled
Gram matrix with the scores of the items projected out, which does not change the paths (the paper's remark
1). theta is then optimal at every point of the path, also for LBI, where algorithm 1 uses gradient steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from queue import Queue
from threading import Event
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.array_operations import cholesky, invert_definite, solve_lower
from raterscope.algorithms.pairs.data import BoolArray, FloatArray, IndexArray, Pairs, PairsError
from raterscope.algorithms.pairs.ranking import MAX_LINKED, components, cross_table, groups_of
from raterscope.algorithms.progress import THREADS, Watch, silent, wait_watching

_PLACES = 600
_EVENTS_AT_ONCE = 32
_FRESH = 0.05
_NONE = np.zeros(0)


@dataclass(frozen=True, eq=False)
class Path:
    """Coefficients of m columns at T points."""

    # (T,): increasing times for ISS, whose coefficients are constant until the next point, and for LBI;
    # decreasing lambda for LASSO, whose coefficients are linear between points
    at: FloatArray
    value: FloatArray  # (T, m)
    # (m,): Z, the 1 / time or lambda at which a coefficient first leaves 0 (section 2.3, step 2); 0 if it
    # never does
    entry: FloatArray


class PathMethod(Protocol):
    """Method that computes a path without knockoffs, or the entries with knockoffs."""

    def follow(self, gram: FloatArray, pull: FloatArray, watch: Watch = silent) -> Path:
        """Compute the whole path of m columns of length 1 without knockoffs.

        `gram`: (m, m). `pull`: (m,), the columns times the response.
        """

    def entries(
        self,
        gram: FloatArray,
        gap: FloatArray,
        pulls: FloatArray,
        stop: float = np.inf,
        watch: Watch = silent,
    ) -> FloatArray:
        """Find the entries Z of m columns and their knockoffs, for each of D draws.

        `gram`: (m, m).
        `gap`: (m,), s (eq. 7).
        `pulls`: (D, 2 m).
        `stop`: a path ends when the ratio of knockoffs that entered before their annotators to the other
            annotators reaches `stop`. No smaller cut can then have a false discovery rate of `stop` or less:
            every such knockoff counts at any smaller cut, and only the other annotators can be selected. The
            result, (D, 2 m), has the columns first, then their knockoffs; it is 0 for columns that have not
            entered when the path ends.
        """


@dataclass(frozen=True)
class Exact:
    """Exact path, computed event by event by a kernel."""

    events: Callable[..., int]
    moving: bool

    def follow(self, gram: FloatArray, pull: FloatArray, watch: Watch = silent) -> Path:
        """Compute the whole path; see `PathMethod.follow`."""
        from raterscope.algorithms.pairs._kernels import start

        state = start(len(pull))
        gram, pull = np.ascontiguousarray(gram), np.ascontiguousarray(pull)
        stride = 1 + len(pull) // _PLACES
        at: list[float] = []
        values: list[FloatArray] = []
        done = stride
        while done == stride and len(pull):
            watch(min(len(at) * stride / len(pull), 1.0), "following the path")
            done = self.events(gram, _NONE, pull, state, stride, np.inf)
            if done:
                at.append(float(state.at[0]))
                values.append((state.value if self.moving else state.slope).copy())
        return Path(np.array(at), np.array(values).reshape(len(at), len(pull)), state.entry)

    def entries(
        self,
        gram: FloatArray,
        gap: FloatArray,
        pulls: FloatArray,
        stop: float = np.inf,
        watch: Watch = silent,
    ) -> FloatArray:
        """Find the entries of columns and knockoffs; see `PathMethod.entries`."""
        from raterscope.algorithms.pairs._kernels import start

        result = np.zeros(pulls.shape)
        gram, gap = np.ascontiguousarray(gram), np.ascontiguousarray(gap)
        memory: Queue[FloatArray] = Queue()
        for _ in range(min(THREADS, len(pulls))):
            memory.put(np.empty((pulls.shape[1], pulls.shape[1])))
        ended = Event()

        def draw(k: int) -> None:
            factor = memory.get()
            pull = np.ascontiguousarray(pulls[k])
            state = start(len(pull), factor)
            done = _EVENTS_AT_ONCE
            while done == _EVENTS_AT_ONCE and not ended.is_set():
                done = self.events(gram, gap, pull, state, _EVENTS_AT_ONCE, stop)
            result[k] = state.entry
            memory.put(factor)

        with ThreadPoolExecutor(THREADS) as pool:
            try:
                waiting = {pool.submit(draw, k) for k in range(len(pulls))}
                while waiting:
                    watch(1.0 - len(waiting) / len(pulls), f"{len(waiting):,} of {len(pulls):,} draws to go")
                    done, waiting = wait(waiting, _FRESH, FIRST_COMPLETED)
                    for future in done:
                        future.result()
            finally:
                ended.set()
        return result


def iss() -> Exact:
    """Return the exact inverse scale space (eq. 4; [osher2016]_): unbiased once a column has entered.

    References
    ----------
    .. [osher2016] S. Osher, F. Ruan, J. Xiong, Y. Yao and W. Yin, "Sparse recovery via differential
       inclusions", Applied and Computational Harmonic Analysis 41 (2016) 436-469,
       doi:10.1016/j.acha.2016.01.002.
    """
    from raterscope.algorithms.pairs._kernels import iss_events

    return Exact(iss_events, moving=False)


def lasso() -> Exact:
    """Return the exact LASSO by its homotopy (eq. 5): biases are shrunk by lambda."""
    from raterscope.algorithms.pairs._kernels import lasso_events

    return Exact(lasso_events, moving=True)


@dataclass(frozen=True)
class Iterated:
    """Linearised Bregman iteration (algorithm 1), all draws at once.

    The step is 1 / (kappa lambda_max), half of the maximum. Within a step w moves linearly, so that entries
    are resolved within steps; otherwise most columns would be tied.
    """

    kappa: float = 100.0
    steps: int = 20_000

    def follow(self, gram: FloatArray, pull: FloatArray, watch: Watch = silent) -> Path:
        """Compute the path until twice the time of the last entry; see `PathMethod.follow`."""
        at: list[float] = []
        values: list[FloatArray] = []

        def note(step: int, time: float, coefficient: FloatArray) -> None:
            if step >= len(at) ** 2 * self.steps / _PLACES**2:
                at.append(time)
                values.append(coefficient[0].copy())

        entry = self._run(gram, _NONE, pull[None], np.inf, note, watch)[0]
        return Path(np.array(at), np.array(values).reshape(len(at), len(pull)), entry)

    def entries(
        self,
        gram: FloatArray,
        gap: FloatArray,
        pulls: FloatArray,
        stop: float = np.inf,
        watch: Watch = silent,
    ) -> FloatArray:
        """Find the entries of columns and knockoffs; see `PathMethod.entries`."""
        return self._run(gram, gap, pulls, stop, None, watch)

    def _run(
        self, gram: FloatArray, gap: FloatArray, pulls: FloatArray, stop: float, note: Any, watch: Watch
    ) -> FloatArray:
        draws, columns = pulls.shape
        count = len(gram)
        entry = np.zeros((draws, columns))
        if not count:
            return entry
        largest = float(np.linalg.eigvalsh(2.0 * gram - np.diag(gap) if len(gap) else gram)[-1])
        step = 1.0 / (self.kappa * max(largest, float(gap.max(initial=0.0))))
        w = np.zeros((draws, columns))
        coefficient = np.zeros((draws, columns))
        going, last = np.arange(draws), 0
        for k in range(self.steps):
            watch(k / self.steps, f"step {k + 1:,}, {len(going)} draws going on")
            speed = pulls[going] - _times(gram, gap, coefficient)
            after = w + step * speed
            new = (np.abs(after) > 1.0) & (entry[going] == 0.0)
            if new.any():
                row, column = np.nonzero(new)
                part = (np.sign(after[new]) - w[new]) / (after[new] - w[new])
                entry[going[row], column] = 1.0 / (step * (k + part))
            w = after
            coefficient = self.kappa * np.sign(w) * np.maximum(np.abs(w) - 1.0, 0.0)
            if note is not None:
                note(k, step * (k + 1), coefficient)
                last = k if new.any() else last
                if entry.all() and k > 2 * last:
                    break
            elif new.any():
                ended = (entry[going] > 0.0).all(axis=1)
                if len(gap):
                    behind = (entry[going, count:] > entry[going, :count]).sum(axis=1)
                    ended |= behind > stop * (count - behind)
                going, w, coefficient = going[~ended], w[~ended], coefficient[~ended]
                if not len(going):
                    break
        return entry


def lbi(kappa: float = 100.0, steps: int = 20_000) -> Iterated:
    """Return the linearised Bregman iteration, which approaches the inverse scale space for large kappa."""
    return Iterated(kappa, steps)


def _times(gram: FloatArray, gap: FloatArray, coefficient: FloatArray) -> FloatArray:
    """Multiply coefficients with the Gram matrix of columns and knockoffs, [[R, R - S], [R - S, R]]."""
    if not len(gap):
        return np.asarray(coefficient @ gram)
    own, knockoff = coefficient[:, : len(gram)], coefficient[:, len(gram) :]
    both = (own + knockoff) @ gram
    return np.hstack((both - gap * knockoff, both - gap * own))


MAX_TESTED = 5000
"""Maximum number of annotators: several matrices have 8 bytes for each pair."""

_SINGULAR = 1e-9
_REGULAR = 1e-7
_FITTED = 1e-10
_SMALL = 500


@dataclass(frozen=True, eq=False)
class Grams:
    """Gram matrices of E comparisons, with the scores of the items projected out.

    With H the projector onto the columns of delta0 (section 2.3), A'(I - H)A is G and A'(I - H)Y the pull.
    """

    # (m,): indices of the annotators whose columns are in A; the others are assumed unbiased
    annotators: NDArray[np.int64]
    count: NDArray[np.int64]  # (m,): comparisons of each of them, N = A'A
    gram: FloatArray  # (m, m): G = N - M L+ M', where L = delta0'delta0 and M = A'delta0
    pull: FloatArray  # (m,): A'Y - M L+ delta0'Y
    square: float  # Y'(I - H)Y
    total: float  # Y'Y
    rank: int  # of delta0: the number of compared items less that of components
    comparisons: int  # E


def gram_matrices(
    pairs: Pairs, component: IndexArray | None = None, among: BoolArray | None = None, watch: Watch = silent
) -> Grams:
    """Sum comparisons and project the items out, by connected component.

    The pseudo-inverse of a component's Laplacian is not needed: without its last item the Laplacian is
    positive definite, and solving one triangular system gives the part of M' that the items explain. Raises
    `PairsError` for more than `ranking.MAX_LINKED` items in one component, or more than `MAX_TESTED`
    annotators.

    `component`: (n,), as from `ranking.components`. `among`: (p,), True for annotators with a bias in the
    model; by default all with comparisons.
    """
    component = components(pairs) if component is None else component
    number, items = len(pairs.annotators), len(pairs.items)
    count = np.bincount(pairs.annotator, minlength=number).astype(np.int64)
    annotators = np.flatnonzero(count > 0 if among is None else among & (count > 0)).astype(np.int64)
    if len(annotators) > MAX_TESTED:
        raise PairsError(
            f"{len(annotators):,} annotators are to be tested; expected at most {MAX_TESTED:,}: raise the "
            f"minimum number of comparisons for a test."
        )
    watch(0.05, "adding up comparisons")
    mixed = cross_table(pairs.annotator, pairs.left, (number, items))
    watch(0.15, "adding up comparisons")
    mixed = (mixed - cross_table(pairs.annotator, pairs.right, (number, items)))[annotators].tocsc()
    watch(0.25, "adding up comparisons")
    score = item_sums(pairs, pairs.choice)
    count = count[annotators]
    gram = np.diag(count.astype(np.float64))
    pull = np.zeros(number)
    pull += np.bincount(pairs.annotator, weights=pairs.choice, minlength=number)
    pull = pull[annotators]
    total = square = float(pairs.choice @ pairs.choice)
    rank = done = 0
    for kept, lower in factor_laplacian(pairs, component, watch):
        part = mixed[:, kept]
        present = np.unique(part.indices)
        right = np.column_stack((part[present].toarray().T, score[kept]))

        def explained(lower: FloatArray = lower, right: FloatArray = right) -> FloatArray:
            through = solve_lower(lower, right)
            return np.asarray(through.T @ through)

        small = len(kept) * len(present) <= _SMALL**2
        fraction = 0.4 + 0.6 * (done + 0.5 * len(kept)) / max(int((component >= 0).sum()), 1)
        done += len(kept) + 1
        shared = wait_watching(explained, watch, fraction, f"projecting out {len(kept):,} items", small=small)
        rank += len(kept)
        gram[np.ix_(present, present)] -= shared[:-1, :-1]
        pull[present] -= shared[:-1, -1]
        square -= shared[-1, -1]
    return Grams(annotators, count, gram, pull, max(square, 0.0), total, rank, len(pairs))


def factor_laplacian(
    pairs: Pairs, component: IndexArray, watch: Watch = silent
) -> Iterator[tuple[NDArray[np.int64], FloatArray]]:
    """Factor the Laplacian L of each component of items; yield items and the triangular factor.

    The items, (k,), are those of a component except one, whose score is then 0. Their part of L is the
    factor, (k, k), times its transpose. Raises `PairsError` with too many linked items.
    """
    count = len(pairs.items)
    links = cross_table(pairs.left, pairs.right, (count, count))
    laplacian = (links + links.T).tocsr()
    groups = groups_of(component)
    work, done = max(sum(len(group) for group in groups), 1), 0
    for group in groups:
        if len(group) > MAX_LINKED:
            raise PairsError(
                f"{len(group):,} items are linked by comparisons; expected at most {MAX_LINKED:,}."
            )
        fraction, words = 0.4 + 0.6 * done / work, f"projecting out {len(group):,} items"
        kept = group[:-1]
        block = -laplacian[kept][:, kept].toarray()
        block[np.diag_indices_from(block)] += np.asarray(laplacian[kept].sum(axis=1)).ravel()
        factored = partial(cholesky, block)
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
class ScaledGrams:
    """Regression of the choices on the annotators, with columns of length 1 and items projected out.

    Unlike in the published version, the constraint 0 <= s <= 1 of the knockoffs needs columns of (I - H)A of
    length 1: R = D^-1/2 G D^-1/2 with D the diagonal of G.
    """

    tested: NDArray[np.int64]  # (m,): the annotators' numbers
    length: FloatArray  # (m,): d^1/2: lengths of the columns, by which biases are scaled
    gram: FloatArray  # (m, m): R
    pull: FloatArray  # (m,): d^-1/2 A'(I - H)Y


def scale_grams(small: Grams) -> tuple[ScaledGrams, BoolArray]:
    """Scale the Gram matrix of annotators whose bias is identified; return it, and a mask of them, (m,).

    A bias is not identified if a linear combination of biases equals some scores of the items: for a single
    annotator of an item, or for all if an item is always on the same side.

    The scaled Gram matrix is positive definite. The second result is True for the annotators of
    `small.annotators` that remain.
    """
    known = np.asarray(np.diagonal(small.gram) > _SINGULAR * small.count)
    annotators = np.flatnonzero(known).astype(np.int64)
    result = _scaled(small, annotators)
    if not _regular(result.gram):
        value, vector = np.linalg.eigh(result.gram)
        mixed = (vector[:, value < _SINGULAR] ** 2).sum(axis=1) > _SINGULAR
        known[annotators[mixed]] = False
        result = _scaled(small, annotators[~mixed])
    return result, known


def _regular(gram: FloatArray) -> bool:
    """Return whether no column is nearly a linear combination of the columns before it."""
    try:
        lower = cholesky(gram)
    except np.linalg.LinAlgError:
        return False
    return bool((np.diagonal(lower) ** 2 > _REGULAR).all())


def _scaled(small: Grams, annotators: NDArray[np.int64]) -> ScaledGrams:
    length = np.sqrt(np.diagonal(small.gram)[annotators])
    gram = small.gram[np.ix_(annotators, annotators)] / np.outer(length, length)
    gram = 0.5 * (gram + gram.T)
    np.fill_diagonal(gram, 1.0)
    return ScaledGrams(small.annotators[annotators], length, gram, small.pull[annotators] / length)


@dataclass(frozen=True, eq=False)
class Biases:
    """Biases of all tested annotators by least squares."""

    scaled: FloatArray  # (m,): r^-1 times the pull: biases times the lengths of their columns
    inverse: FloatArray  # (m, m): of R
    residual: float  # sum of squares that neither scores nor biases explain; 0 if it is round-off
    freedom: int  # E less the rank of delta0 and A together
    variance: float  # of the noise; NaN without freedom


def least_squares(small: Grams, problem: ScaledGrams) -> Biases:
    """Estimate all biases together, with the residual noise."""
    count = len(problem.tested)
    inverse = invert_definite(problem.gram) if count else np.zeros((0, 0))
    bias = inverse @ problem.pull
    residual = small.square - float(bias @ problem.pull)
    if residual <= _FITTED * small.total:
        residual = 0.0
    freedom = small.comparisons - small.rank - count
    return Biases(bias, inverse, residual, freedom, residual / freedom if freedom > 0 else float("nan"))
