"""Expected number of wrong labels among tasks of unknown class, with an interval that holds between crowds.

The probabilities of a consensus add up to an expected number of wrong labels. Were the probabilities right,
it would be wrong by sampling alone; but in each crowd they are too high or too low together. As in
[cox1958]_, the logit of the probability that a label is right is a function of the logit l that
the consensus states, with three coefficients of the crowd:

    a + exp(s) min(l, h) + exp(s + c) max(l - h, 0)

Each is normally distributed between crowds. Decided tasks, or those of known truth, update the three: every
one counts by its own stated probability, so that it does not matter which tasks were chosen for it. The
coefficient c keeps decisions on doubtful tasks from settling what clear tasks are worth.

References
----------
.. [cox1958] D. R. Cox, "Two further applications of a model for binary regression", Biometrika 45
   (1958) 562-565, doi:10.1093/biomet/45.3-4.562.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from raterscope.algorithms.array_operations import max_rows
from raterscope.algorithms.labels.data import OPEN, ClassArray, FloatArray, LabelFusion

_POOLED = ((0.0, 0.0, 0.0), (0.42, 0.46, 0.64))
_MODELS = ((-0.2, -1.1, 0.25), (0.46, 0.73, 0.77))
_SHARES = ((0.0, 0.0, 0.0), (0.6, 1.0, 0.8))
"""Mean and standard deviation of a, s and c between crowds: of the pooled consensus, models, shares of votes.

They were estimated from ten real crowds, whole and with fewer votes, and from simulated crowds of nine kinds,
those of models by IBCC. The pooled consensus and shares of votes are taken as right on average.
"""

_BY_METHOD = {
    "pooled": _POOLED, "majority": _SHARES, "weighted-majority": _SHARES, "weighted-sum": _SHARES,
    "mean-score": _SHARES,
}  # fmt: skip

_OVERLAP, _UNKNOWN = 20, 1.0
"""Tasks with two votes, below which votes do not show how often they are right, and the standard deviation
of a then: where the same is stated of ten real crowds with one vote a task, a tenth to a half is wrong."""

_KNOT = 1.5
_EDGES = np.linspace(-8.0, 8.0, 129)
_MISTAKES = 0.02
"""Share of decisions and truths that are wrong. One slip on a clear task must not decide."""

_NODES = np.linspace(-3.5, 3.5, 11)
"""Standard deviations from the mode. With 31 nodes between -4 and 4 no end moves by more than 0.5 % of the
tasks."""

_TURNS = 40
_CHANGE = 1e-6
_LARGEST_STEP = 0.5


@dataclass(frozen=True)
class ExpectedErrors:
    """Expected number of wrong labels."""

    tasks: int  # tasks that count: with votes, of unknown class
    stated: float  # number by the probabilities alone
    expected: float  # number after the update by known tasks; without any, of the pooled consensus, `stated`
    # low, high: ends of the 95 % interval
    low: int
    high: int
    known: int  # tasks whose class was compared


@dataclass(frozen=True, eq=False)
class Checked:
    """Tasks whose class is known, with what the consensus stated before it was known."""

    probability: FloatArray  # (M,): of the label
    right: FloatArray  # (M,): 1 where it was the true class, else 0
    weight: FloatArray  # (M,): what each counts

    @classmethod
    def by_truth(cls, fusion: LabelFusion, truth: ClassArray) -> Checked:
        """Compare the labels of a fusion with truths that it did not use, (N,), `OPEN` elsewhere."""
        known = np.flatnonzero((truth != OPEN) & (fusion.known == OPEN) & (fusion.votes > 0))
        right = fusion.posterior[known].argmax(axis=1) == truth[known]
        return cls.of(fusion.posterior[known].max(axis=1, initial=0.0), right)

    @classmethod
    def of(cls, probability: ArrayLike, right: ArrayLike) -> Checked:
        """Count every task in full."""
        stated, outcome = (np.asarray(values, dtype=np.float64) for values in (probability, right))
        return cls(stated, outcome, np.ones(len(outcome)))

    def held(self) -> Checked:
        """Count tasks half whose classes the fusion held fixed: it has absorbed part of what they tell."""
        return Checked(self.probability, (self.right + self.probability) / 2, self.weight / 2)

    def joined(self, other: Checked) -> Checked:
        """Join two sets of tasks."""
        pairs = zip(*((each.probability, each.right, each.weight) for each in (self, other)), strict=True)
        return Checked(*map(np.concatenate, pairs))


NOTHING = Checked.of((), ())


def expected_errors(
    fusion: LabelFusion, truth: ClassArray, checked: Checked = NOTHING, decided: Sequence[int] = ()
) -> ExpectedErrors:
    """Return how many labels of tasks with votes and of unknown class are expected to be wrong.

    `truth`: (N,), classes that are known, `OPEN` elsewhere; the fusion is compared with them. `checked`:
    further tasks with which it is compared. `decided`: tasks that do not count, as their class was decided.
    """
    counts = (fusion.votes > 0) & (fusion.known == OPEN) & (truth == OPEN)
    counts[list(decided)] = False
    checked = Checked.by_truth(fusion, truth).joined(checked)
    return count_errors(fusion.algorithm, max_rows(fusion.posterior)[counts], checked, fusion.votes)


def count_errors(
    algorithm: str, probability: FloatArray, checked: Checked = NOTHING, votes: ArrayLike | None = None
) -> ExpectedErrors:
    """Return how many labels of these probabilities, (n,), are expected to be wrong.

    `votes`: (N,), votes of all tasks, by default two or more.
    """
    logit, number = _binned(probability)
    middle, width = _BY_METHOD.get(algorithm, _MODELS)
    if votes is not None and np.count_nonzero(np.asarray(votes) > 1) < min(_OVERLAP, len(probability)):
        width = (max(_UNKNOWN, width[0]), *width[1:])
    node, weight = _coefficients((middle, width), checked)
    updated, as_stated = _wrong(np.stack([weight @ node, np.zeros(3)]), logit)
    stated = float((1 - probability).sum())
    expected = max(stated + float((updated - as_stated) @ number), 0.0)  # bins are a little off
    wrong = _wrong(node, logit)
    spread = np.sqrt((wrong * (1 - wrong)) @ number)
    low, high = _interval(wrong @ number, spread, weight, len(probability))
    return ExpectedErrors(
        len(probability), stated, expected, min(low, math.floor(expected)), max(high, math.ceil(expected)),
        len(checked.right),
    )  # fmt: skip


def _binned(probability: FloatArray, *weights: FloatArray) -> tuple[FloatArray, ...]:
    """Return mean logits of probabilities in bins, and the sums of weights, by default their number."""
    most = np.clip(probability, 1e-9, 1 - 1e-9)
    logit = np.clip(np.log(most / (1 - most)), _EDGES[0], _EDGES[-1])
    at = np.ceil((logit - _EDGES[0]) / (_EDGES[1] - _EDGES[0])).astype(np.int64)  # the edges are even
    columns = np.zeros((2 + len(weights), len(_EDGES)))
    for row, values in enumerate((np.ones(len(at)), logit, *weights)):
        columns[row] = np.bincount(at, values, len(_EDGES))
    number, total, *sums = columns[:, columns[0] > 0]
    return total / number, *(sums or [number])


def _logits(coefficients: FloatArray, logit: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the logits of being right for stated logits, (C, B), and their part above the knot."""
    shift, slope, clear = (column[:, None] for column in coefficients.T)
    above = np.exp(slope + clear) * np.maximum(logit - _KNOT, 0.0)
    return shift + np.exp(slope) * np.minimum(logit, _KNOT) + above, above


def _wrong(coefficients: FloatArray, logit: FloatArray) -> FloatArray:
    """Return the probabilities that labels of stated logits are wrong, (C, B)."""
    from scipy.special import expit

    return np.asarray(expit(-_logits(coefficients, logit)[0]))


def _coefficients(
    spread: tuple[tuple[float, ...], tuple[float, ...]], checked: Checked
) -> tuple[FloatArray, FloatArray]:
    """Return coefficients of crowds, (C, 3), and their probabilities, (C,).

    They are a grid around the mode, along the axes of the information there.
    """
    middle, width = (np.array(values) for values in spread)
    logit, number, right = _binned(checked.probability, checked.weight, checked.weight * checked.right)

    def log_density(coefficients: FloatArray) -> FloatArray:
        chance = _MISTAKES + (1 - 2 * _MISTAKES) * (1 - _wrong(coefficients, logit))
        prior = np.square((coefficients - middle) / width).sum(axis=1) / 2
        return np.asarray(np.log(chance) @ right + np.log1p(-chance) @ (number - right) - prior)

    mode = middle[None].copy()
    for _ in range(_TURNS):
        (total,), (above,) = _logits(mode, logit)
        share = 1 - _wrong(mode, logit)[0]
        chance = _MISTAKES + (1 - 2 * _MISTAKES) * share
        slope = (1 - 2 * _MISTAKES) * share * (1 - share)
        design = np.stack([np.ones(len(logit)), total - mode[0, 0], above])
        gradient = design @ (slope * (right - number * chance) / (chance * (1 - chance)))
        gradient -= (mode[0] - middle) / width**2
        information = (design * number * slope**2 / (chance * (1 - chance))) @ design.T + np.diag(width**-2)
        step = np.clip(np.linalg.solve(information, gradient), -_LARGEST_STEP, _LARGEST_STEP)
        while log_density(mode + step)[0] < log_density(mode)[0] and np.abs(step).max() > _CHANGE:
            step /= 2
        mode = mode + step
        if np.abs(step).max() <= _CHANGE:
            break
    axes = np.linalg.cholesky(np.linalg.inv(information))
    node = mode + np.stack(np.meshgrid(*[_NODES] * 3, indexing="ij"), axis=-1).reshape(-1, 3) @ axes.T
    density = log_density(node)
    weight = np.exp(density - density.max())
    return node, weight / weight.sum()


def _interval(mean: FloatArray, spread: FloatArray, weight: FloatArray, most: int) -> tuple[int, int]:
    """Return the 95 % interval of a count from a mixture of normal distributions."""
    from scipy.special import ndtr

    ends = []
    for share in (0.025, 0.975):
        low, high = -1.0, most + 1.0
        while high - low > 1e-3:
            middle = (low + high) / 2
            below = float(ndtr((middle - mean) / np.maximum(spread, 1e-9)) @ weight)
            low, high = (middle, high) if below < share else (low, middle)
        ends.append(low)
    return max(0, math.ceil(ends[0] - 0.5)), min(most, math.floor(ends[1] + 0.5))
