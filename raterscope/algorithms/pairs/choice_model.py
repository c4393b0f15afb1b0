"""Model of choices with a slope and a bias for every annotator, and scores without own choices.

The mean choice is tanh(e / 2), e = slope x (score of the left item - score of the right one) + bias. This is
logistic regression if choices are -1 and 1 (a tie counts as half an answer for each side). Graded choices
have the mean e and a noise variance for each annotator. A noisy annotator gets a small slope and little
weight. Every bias is in the model, so that no annotator has to be removed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.array_operations import cholesky, invert_factored, solve_factored
from raterscope.algorithms.pairs.data import FloatArray, Pairs
from raterscope.algorithms.pairs.ranking import starts_of, sum_by_owner, sum_sorted
from raterscope.algorithms.progress import Watch, part, parts_of, silent, steps_of, wait_watching

_ROUNDS = 8
_RIDGE = 0.05
_SLOPE_PRIOR, _SLOPE_CASES = 4.0, 10.0
"""Precision of the normal prior of slopes about 1, and its weight, in annotators, when the prior is estimated
from the crowd.
"""
_BIAS_PRIOR = 1.0
_PRIOR_VOTES = 3.0
"""Weight of the crowd's variance, in votes, in an annotator's variance of graded choices."""
_LONGEST_STEP = 2.0
_DENSE = 2500
"""Maximum number of items for inverting the information of the scores; with more, equations are solved
iteratively.
"""
_SMALL = 400
_TABLE = 4_000_000
_SHORT = 2**16
"""Maximum number of annotators for sorting them as short integers, in a fifth of the time."""
_TOLERANCE = 1e-5
_ITERATIONS = 200


@dataclass(eq=False)
class ChoiceModel:
    """E choices of p annotators on n items, sorted by annotator, and the parameters that fit them."""

    # annotator, left, right: (E,) intp
    annotator: NDArray[np.intp]
    left: NDArray[np.intp]
    right: NDArray[np.intp]
    choice: FloatArray  # (E,): divided by `scale`
    start: NDArray[np.int64]  # (p + 1,): the choices of annotator u are ``start[u]:start[u + 1]``
    items: int
    graded: bool  # True if choices have more values than -1, 0 and 1; the mean choice is then linear
    scale: float  # root mean square of graded choices, else 1
    score: FloatArray  # (n,)
    # slope, bias, precision: (p,): precision is the inverse noise variance of graded choices; 1/2 for other
    # choices, which converts a residual to the gradient of the log likelihood
    slope: FloatArray
    bias: FloatArray
    precision: FloatArray
    # mean and precision of the normal prior of the slopes
    slope_prior: tuple[float, float] = (1.0, _SLOPE_PRIOR)

    @property
    def annotators(self) -> int:
        """Number of annotators, p."""
        return len(self.slope)

    def mean(self, e: FloatArray) -> FloatArray:
        """Return the mean choice at linear predictors."""
        return e if self.graded else np.tanh(0.5 * e)

    def change(self, mean: FloatArray) -> FloatArray:
        """Return the derivative of the mean choice by the linear predictor, given the mean."""
        return np.ones_like(mean) if self.graded else 0.5 * (1.0 - mean * mean)

    def total(self, value: FloatArray) -> FloatArray:
        """Sum a value of each choice by annotator; (p,)."""
        return sum_sorted(self.start, value)

    def each(self, value: FloatArray) -> FloatArray:
        """Return the annotator's value for every choice; (E,)."""
        return np.repeat(value, np.diff(self.start))

    def spread(self, difference: FloatArray, slope: FloatArray, bias: FloatArray | None = None) -> FloatArray:
        """Return the linear predictor of every choice, given the differences of scores."""
        e = self.each(slope)
        e *= difference
        if bias is not None:
            e += self.each(bias)
        return e

    def difference(self) -> FloatArray:
        """Return the difference of the scores for every choice."""
        return np.asarray(self.score[self.left] - self.score[self.right])


def fit_choices(pairs: Pairs, watch: Watch = silent) -> ChoiceModel:
    """Fit scores, slopes and biases in turn, by Newton's method with the priors of `ChoiceModel`."""
    total = len(pairs.annotators)
    short = pairs.annotator.astype(np.uint16) if total < _SHORT else pairs.annotator
    order = np.argsort(short, kind="stable")
    annotator, choice = pairs.annotator[order].astype(np.intp), pairs.choice[order]
    graded = not bool(np.isin(choice, (-1.0, 0.0, 1.0)).all())
    scale = float(np.sqrt(np.mean(choice**2))) if graded else 1.0
    scale = scale if scale > 0 else 1.0
    model = ChoiceModel(
        annotator=annotator,
        left=pairs.left[order].astype(np.intp),
        right=pairs.right[order].astype(np.intp),
        choice=choice / scale,
        start=starts_of(annotator, total),
        items=len(pairs.items),
        graded=graded,
        scale=scale,
        score=np.zeros(len(pairs.items)),
        slope=np.ones(total),
        bias=np.zeros(total),
        precision=np.ones(total) if graded else np.full(total, 0.5),
    )
    for _, step in steps_of(watch, range(_ROUNDS)):
        step(0.0, "fitting scores and biases")
        _improve_scores(model, step)
        step(0.7, "fitting scores and biases")
        difference = model.difference()
        model.slope, model.bias = improve_annotators(model, difference, model.slope, model.bias)
        model.slope_prior = 1.0, estimate_slope_prior(model, difference, model.slope, model.bias)[1]
        if graded:
            residual = model.choice - model.spread(difference, model.slope, model.bias)
            count = np.diff(model.start)
            pooled = max(float(residual @ residual) / len(residual), 1e-12)
            variance = (model.total(residual * residual) + _PRIOR_VOTES * pooled) / (count + _PRIOR_VOTES)
            model.precision = 1.0 / np.maximum(variance, 1e-12)
    return model


def improve_annotators(
    model: ChoiceModel, difference: FloatArray, slope: FloatArray, bias: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Take one Newton step of every annotator's slope and bias, given the differences of scores."""
    mean = model.mean(model.spread(difference, slope, bias))
    weight = model.each(model.precision) if model.graded else 0.5
    residual, flat = weight * (model.choice - mean), weight * model.change(mean)
    down_slope = model.total(residual * difference) - model.slope_prior[1] * (slope - model.slope_prior[0])
    down_bias = model.total(residual) - _BIAS_PRIOR * bias
    weighted = flat * difference
    aa = model.total(weighted * difference) + model.slope_prior[1]
    ac, cc = model.total(weighted), model.total(flat) + _BIAS_PRIOR
    size = aa * cc - ac * ac
    longest = _LONGEST_STEP
    step_slope = np.clip((cc * down_slope - ac * down_bias) / size, -longest, longest)
    step_bias = np.clip((aa * down_bias - ac * down_slope) / size, -longest, longest)
    return slope + step_slope, bias + step_bias


def improve_slopes(model: ChoiceModel, difference: FloatArray, slope: FloatArray) -> FloatArray:
    """Take one Newton step of every annotator's slope without a bias, given the differences of scores."""
    mean = model.mean(model.spread(difference, slope))
    weight = model.each(model.precision) if model.graded else 0.5
    down = model.total(weight * (model.choice - mean) * difference) - model.slope_prior[1] * (
        slope - model.slope_prior[0]
    )
    steep = model.total(weight * model.change(mean) * difference * difference) + model.slope_prior[1]
    return np.asarray(slope + np.clip(down / steep, -_LONGEST_STEP, _LONGEST_STEP))


def estimate_slope_prior(
    model: ChoiceModel, difference: FloatArray, slope: FloatArray, bias: FloatArray
) -> tuple[float, float]:
    """Estimate mean and precision of the slopes' prior by an EM step."""
    mean = model.mean(model.spread(difference, slope, bias))
    flat = (model.each(model.precision) if model.graded else 0.5) * model.change(mean)
    weighted = flat * difference
    information = model.total(weighted * difference) + model.slope_prior[1]
    information -= np.square(model.total(weighted)) / (model.total(flat) + _BIAS_PRIOR)
    chosen = np.diff(model.start) > 0
    cases = chosen.sum() + _SLOPE_CASES
    centre = float((slope[chosen].sum() + _SLOPE_CASES) / cases)
    spread = (np.square(slope - centre) + 1.0 / information)[chosen].sum()
    return centre, float(cases / (spread + _SLOPE_CASES / _SLOPE_PRIOR))


def _information(model: ChoiceModel) -> tuple[FloatArray, FloatArray]:
    """Return the weight of every choice in the information of the scores, and its gradient."""
    mean = model.mean(model.spread(model.difference(), model.slope, model.bias))
    pull = model.each(model.precision * model.slope)
    weight = model.each(model.precision * model.slope * model.slope)
    weight *= model.change(mean)
    pull *= model.choice - mean
    return weight, pull


def _improve_scores(model: ChoiceModel, watch: Watch) -> None:
    """Take a Newton step of the scores."""
    weight, pull = _information(model)
    down = sum_by_owner(model.left, pull, model.items)
    down -= sum_by_owner(model.right, pull, model.items)
    down -= _RIDGE * model.score
    solver = _solver(model, weight, watch, once=True)
    step = solver(down[:, None])[:, 0]
    model.score = model.score + step * min(1.0, _LONGEST_STEP / max(float(np.abs(step).max()), 1e-12))


def _laplacian(model: ChoiceModel, weight: FloatArray) -> FloatArray:
    """Return the information of the scores as a matrix, with the ridge."""
    n = model.items
    links = sum_by_owner(model.left * n + model.right, weight, n * n)
    links = links.reshape(n, n)
    links = links + links.T
    result = -links
    result[np.diag_indices(n)] += links.sum(axis=1) + _RIDGE
    return np.asarray(result)


def _solver(
    model: ChoiceModel, weight: FloatArray, watch: Watch, *, once: bool = False
) -> Callable[[FloatArray], FloatArray]:
    """Return a function that solves information x = right-hand side for several columns."""
    if model.items > _DENSE:
        matrix, diagonal = _sparse_laplacian(model, weight)
        return lambda right: _conjugate_gradients(
            lambda x: np.asarray(matrix @ x), right, lambda r: r / diagonal[:, None], watch
        )
    small = model.items <= _SMALL
    matrix = _laplacian(model, weight)
    lower = wait_watching(
        lambda: cholesky(matrix), watch, 0.2,
        "fitting scores and biases", small=small,
    )  # fmt: skip
    if once:
        return lambda right: solve_factored(lower, right)
    inverse = wait_watching(
        lambda: invert_factored(lower), watch, 0.3,
        "fitting scores and biases", small=small,
    )  # fmt: skip
    return lambda right: np.asarray(inverse @ right)


def _sparse_laplacian(model: ChoiceModel, weight: FloatArray) -> tuple[Any, FloatArray]:
    from scipy.sparse import coo_array, dia_array

    n = model.items
    links = coo_array((weight, (model.left, model.right)), shape=(n, n)).tocsr()
    links = links + links.T
    diagonal = np.asarray(links.sum(axis=1)).ravel() + _RIDGE
    return (dia_array((diagonal[None], [0]), shape=(n, n)) - links).tocsr(), diagonal


def _conjugate_gradients(
    times: Callable[[FloatArray], FloatArray],
    right: FloatArray,
    precondition: Callable[[FloatArray], FloatArray],
    watch: Watch,
) -> FloatArray:
    """Solve for every column by preconditioned conjugate gradients."""
    result = np.zeros_like(right)
    residual = right.copy()
    ahead = precondition(residual)
    direction = ahead.copy()
    power = (residual * ahead).sum(axis=0)
    enough = _TOLERANCE**2 * np.maximum(power, 1e-300)
    for _ in range(_ITERATIONS):
        watch(0.5, "fitting scores and biases")
        through = times(direction)
        size = (direction * through).sum(axis=0)
        step = np.where(power > enough, power / np.where(size > 0, size, 1.0), 0.0)
        result += step * direction
        residual -= step * through
        ahead = precondition(residual)
        after = (residual * ahead).sum(axis=0)
        if not (after > enough).any():
            break
        direction = ahead + np.where(power > 0, after / np.where(power > 0, power, 1.0), 0.0) * direction
        power = after
    return result


@dataclass(frozen=True, eq=False)
class Scoring:
    """Scores of the items without each annotator's own choices."""

    # (E,): difference of the scores for every choice of the model, without the annotator's own choices
    difference: FloatArray
    solve: Callable[[FloatArray], FloatArray]  # returns covariance x columns, (n, c) to (n, c)


def scoring(model: ChoiceModel, watch: Watch = silent) -> Scoring:
    """Remove each annotator's own choices from the scores by one Newton step.

    Without the choices of annotator u, with information H_u and gradient g_u, the scores are s - (H - H_u)^-1
    g_u. All annotators are solved together, by conjugate gradients with the inverse of H as preconditioner: H
    - H_u differs from H in few directions, so that a few steps suffice.
    """
    weight, pull = _information(model)
    solve = _solver(model, weight, part(watch, 0.0, 0.2))
    sparse = model.items > _DENSE
    matrix, diagonal = (
        _sparse_laplacian(model, weight) if sparse else (_laplacian(model, weight), np.empty(0))
    )
    difference = model.difference()
    for first, last in parts_of(model.annotators, _TABLE // max(model.items, 1)):
        step = part(watch, 0.2 + 0.8 * first / model.annotators, 0.2 + 0.8 * last / model.annotators)
        own_rows = slice(int(model.start[first]), int(model.start[last]))
        columns = last - first
        column = model.annotator[own_rows] - first
        left = model.left[own_rows] * columns + column
        right = model.right[own_rows] * columns + column
        size = model.items * columns
        own = weight[own_rows]

        def gathered(
            value: FloatArray, left: NDArray[np.int64] = left, right: NDArray[np.int64] = right,
            size: int = size, columns: int = columns,
        ) -> FloatArray:  # fmt: skip
            result = sum_by_owner(left, value, size)
            result -= sum_by_owner(right, value, size)
            return result.reshape(-1, columns)

        def times(
            x: FloatArray, own: FloatArray = own, left: NDArray[np.int64] = left,
            right: NDArray[np.int64] = right, gathered: Callable[[FloatArray], FloatArray] = gathered,
        ) -> FloatArray:  # fmt: skip
            flat = x.ravel()
            return np.asarray(matrix @ x - gathered(own * (flat[left] - flat[right])))

        precondition = (lambda r: r / diagonal[:, None]) if sparse else solve
        moved = _conjugate_gradients(times, gathered(pull[own_rows]), precondition, step).ravel()
        difference[own_rows] -= moved[left] - moved[right]
    return Scoring(difference, solve)
