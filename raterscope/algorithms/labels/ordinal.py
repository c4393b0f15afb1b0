"""Ordinal model of votes on ordered classes, such as grades from 1 to 5.

A cumulative link model [mccullagh1980]_ in which every annotator has a bias, a noise and a use of the scale
[lakshminarayanan2013]_. A task of grade j is perceived by annotator k at position

    z = m + a_k (x_j - m) + b_k + s_k e,    e ~ Normal(0, 1),

where x_j is the position of the grade (0, 1, 2 ...), m the middle of the scale, b_k the annotator's bias, s_k
the noise, and a_k the part of the scale that the annotator uses: below 1 the ends are avoided. The vote is
the grade whose interval contains z. With probability `_LAPSE` it is any grade:

    P(l | j, k) = (1 - _LAPSE) [Phi((t_(l+1) - m_kj) / s_k) - Phi((t_l - m_kj) / s_k)] + _LAPSE / L,

with m_kj = m + a_k (x_j - m) + b_k, thresholds t_l halfway between neighbouring grades, t_0 = -inf and t_L =
inf. The parameters (b, s, a) have a discrete distribution on a grid, whose weights are estimated from the
crowd [laird1978]_. Each annotator's expected rates are the prior mean of the rows of their confusion matrix
in the hierarchical model (`hierarchical`), in place of a skill and the crowd's confusions. Its strength,
which is also estimated, determines how closely annotators follow the ordinal model.

References
----------
.. [mccullagh1980] P. McCullagh, "Regression models for ordinal data", Journal of the Royal Statistical
   Society B 42 (1980) 109-142, doi:10.1111/j.2517-6161.1980.tb01109.x.
.. [lakshminarayanan2013] B. Lakshminarayanan and Y. W. Teh, "Inferring ground truth from multi-annotator
   ordinal data: a probabilistic approach", arXiv:1305.0015 (2013), doi:10.48550/arXiv.1305.0015.
.. [laird1978] N. Laird, "Nonparametric maximum likelihood estimation of a mixing distribution", Journal of
   the American Statistical Association 73 (1978) 805-811, doi:10.1080/01621459.1978.10480103.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.data import OPEN, FloatArray, Labels

MAX_GRADES = 101
"""Maximum number of grades: 0 to 100."""

_LAPSE = 0.03
"""Share of votes that do not depend on the task."""

_BIAS = np.linspace(-1.5, 1.5, 9)
_NOISES = 8
_MIN_NOISE, _MAX_NOISE = 0.2, 3.0
_STRETCH = (0.4, 0.6, 0.8, 1.0, 1.25)
_PRIOR = (0.6, 0.7, 0.8, 0.3)
"""Standard deviation of the bias, median of the noise and deviation of its logarithm, and deviation of the
logarithm of the stretch, in the prior distribution of the annotators' parameters."""

_PRIOR_WEIGHT = 50.0
"""Weight of the prior distribution, in annotators.

Few annotators do not reveal whether they all avoid the ends of the scale or extreme grades are rare."""

FREE_ROUNDS = 5
"""Number of first rounds in which the strength is not estimated.

It would be too high: with the majority vote as consensus, annotators seem to follow the model closely."""

_FINE = 9
"""Maximum number of grades for which bias and noise are in grades; with more, they are shares of the scale.
"""


@dataclass(frozen=True, eq=False)
class OrdinalTypes:
    """Grid of annotators' parameters."""

    rates: FloatArray  # (G, J, L): probability of each vote for each class
    prior: FloatArray  # (G,)


@lru_cache(maxsize=4)
def ordinal_types(positions: tuple[float, ...], outputs: int) -> OrdinalTypes:
    """Compute the rates of the grid for classes at positions on the scale of the outputs.

    Examples
    --------
    >>> types = ordinal_types((0.0, 1.0, 2.0), 3)
    >>> bool(np.allclose(types.rates.sum(axis=2), 1))
    True
    """
    from scipy.special import ndtr

    at, unit = np.array(positions), max(1.0, (outputs - 1) / (_FINE - 1))
    middle = (outputs - 1) / 2
    noise = np.geomspace(_MIN_NOISE, _MAX_NOISE * unit, _NOISES)
    grid = np.stack(np.meshgrid(_BIAS * unit, noise, _STRETCH, indexing="ij"), axis=-1).reshape(-1, 3)
    bias, noise, stretch = grid.T
    perceived = middle + stretch[:, None] * (at - middle) + bias[:, None]
    edges = np.concatenate([[-np.inf], np.arange(outputs - 1) + 0.5, [np.inf]])
    below = ndtr((edges - perceived[:, :, None]) / noise[:, None, None])
    rates = (1 - _LAPSE) * np.diff(below, axis=2) + _LAPSE / outputs
    spread, median, noise_spread, stretch_spread = _PRIOR
    logs = np.square(bias / unit / spread) + np.square(np.log(noise / median / unit) / noise_spread)
    logs += np.square(np.log(stretch) / stretch_spread)
    prior = np.exp(-logs / 2)
    return OrdinalTypes(rates, prior / prior.sum())


def class_positions(meaning: NDArray[np.integer], classes: int) -> tuple[float, ...] | None:
    """Place the classes on the scale of the outputs; None if the outputs do not represent them in order.

    A class without outputs lies between its neighbours.

    Examples
    --------
    >>> class_positions(np.array([0, 1, 3]), 4)
    (0.0, 1.0, 1.5, 2.0)
    """
    outputs = len(meaning)
    if not 2 < outputs <= MAX_GRADES or not 2 < classes <= MAX_GRADES:
        return None
    if (meaning == OPEN).any() or (np.diff(meaning) < 0).any():
        return None
    used, first = np.unique(meaning, return_index=True)
    middle = first + (np.bincount(meaning)[used] - 1) / 2
    return tuple(np.interp(np.arange(classes), used, middle).tolist())


def is_ordinal(labels: Labels) -> bool:
    """Return whether the ordinal model applies: to ordered classes whose outputs are in the same order."""
    assert labels.meaning is not None
    return (
        labels.ordered
        and labels.prior is None
        and class_positions(labels.meaning, len(labels.classes)) is not None
    )


def order_notices(labels: Labels, weight: float = 1.0) -> list[str]:
    """State that classes are fused as grades, with the weight of the ordinal model, or why they are not."""
    if not labels.ordered:
        return []
    if not is_ordinal(labels):
        return [
            "The order of the classes is not used: it needs three classes or more, answers in the same order,"
            " and no prior set for the question."
        ]
    if weight <= 0:
        return [
            "The order of the classes is not used: models without it predict votes better from the other "
            "votes on their task."
        ]
    part = "" if weight >= 1 else f" with weight {weight:.2f}, otherwise as classes without an order"
    return [
        f"Fused as grades from {labels.classes[0]} to {labels.classes[-1]}{part}; if the classes have no"
        " order, say so in Answers… or with --no-ordered."
    ]


_DETECTED = 4
"""Minimum number of classes for detecting an order: three classes have only three orders."""

_SURPRISE = 0.05
"""Maximum share of other orders that fit the votes better than the order of the numbers."""

_MIN_PAIRS = 20.0
_ALL_ORDERS = 7
_ORDERS = 2000
_COMPARED_TASKS = 20_000


def detect_order(
    task: NDArray[np.integer],
    label: NDArray[np.integer],
    outputs: Sequence[str],
    classes: Sequence[str],
    meaning: NDArray[np.integer],
) -> bool:
    """Return whether votes suggest that classes named by numbers are grades, not codes.

    Votes that disagree on a task are closer to each other on a scale than in other orders of the classes. The
    sum of their distances is compared with that in all other orders, or in 2,000 random orders (a permutation
    test).

    `task`, `label`: (V,). `meaning`: (L,), the class that each output represents.
    """
    many = len(classes)
    if not _DETECTED <= many <= MAX_GRADES or tuple(outputs) != tuple(classes):
        return False
    try:
        values = [float(name) for name in classes]
    except ValueError:
        return False
    if (meaning != np.arange(many)).any() or not np.isfinite(values).all() or values != sorted(values):
        return False
    few = task < _COMPARED_TASKS
    shape = int(task[few].max(initial=-1)) + 1, many
    cells = task[few].astype(np.int64) * many + label[few]
    counts = np.bincount(cells, minlength=shape[0] * many).reshape(shape).astype(np.float64)
    pairs = counts.T @ counts
    np.fill_diagonal(pairs, 0.0)
    if pairs.sum() / 2 < _MIN_PAIRS:
        return False
    if many <= _ALL_ORDERS:
        orders = np.array(list(permutations(range(many))))
        orders = orders[orders[:, 0] < orders[:, -1]]
    else:
        generator = np.random.default_rng(0)
        orders = np.stack([generator.permutation(many) for _ in range(_ORDERS)])

    def distance(order: NDArray[np.integer]) -> float:
        return float((pairs * np.abs(order[:, None] - order)).sum())

    given = distance(np.arange(many)) * (1 - 1e-9)
    better = sum(distance(order) < given for order in orders)
    return better <= _SURPRISE * (len(orders) - 1)


@dataclass(eq=False)
class OrdinalAnnotators:
    """Distribution of annotators' parameters."""

    types: OrdinalTypes
    mixture: FloatArray  # (G,): of the crowd
    weights: NDArray[np.float32]  # (K, G): of each annotator

    @classmethod
    def begin(cls, types: OrdinalTypes, annotators: int) -> OrdinalAnnotators:
        """Assign the prior distribution to all annotators."""
        weights = np.repeat(types.prior[None].astype(np.float32), annotators, axis=0)
        return cls(types, types.prior, weights)

    def estimate(
        self, owner: NDArray[np.integer], output: NDArray[np.integer], counts: FloatArray, votes: FloatArray
    ) -> None:
        """Estimate the distributions (an EM step).

        `owner`, `output`: (P,), annotator and output of each pair. `counts`: (P, J), expected votes of each
        pair, by class. `votes`: (K,).
        """
        scores = np.tile(np.log(self.mixture).astype(np.float32), (len(votes), 1))
        logs = np.log(self.types.rates).astype(np.float32)
        counts = counts.astype(np.float32)
        for number in range(logs.shape[2]):
            rows = np.flatnonzero(output == number)
            scores[owner[rows]] += counts[rows] @ logs[:, :, number].T
        scores -= scores.max(axis=1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=1, keepdims=True)
        self.weights = scores
        total = scores[votes > 0].sum(axis=0, dtype=np.float64) + _PRIOR_WEIGHT * self.types.prior
        self.mixture = total / total.sum()

    def fill(
        self, owner: NDArray[np.integer], output: NDArray[np.integer], base: NDArray[np.float32]
    ) -> None:
        """Write the expected rates of each pair, (P, J)."""
        rates = self.types.rates.astype(np.float32)
        for number in range(rates.shape[2]):
            rows = np.flatnonzero(output == number)
            base[rows] = self.weights[owner[rows]] @ rates[:, :, number]

    def rates(self) -> FloatArray:
        """Return the expected rates of all outputs, (K, L, J)."""
        return np.asarray(np.einsum("kg,gjl->klj", self.weights, self.types.rates, optimize=True))


def grade_summary(posterior: FloatArray) -> tuple[NDArray[np.int64], ...]:
    """Summarise posteriors of ordered classes: median and 95 % interval, three (N,).

    The median minimises the expected absolute error. The interval has equal tails of at most 2.5 %.

    Examples
    --------
    >>> [int(value[0]) for value in grade_summary(np.array([[0.01, 0.3, 0.5, 0.18, 0.01]]))]
    [2, 1, 3]
    """
    below = posterior.cumsum(axis=1)
    tail = 0.025
    ends = (np.minimum((below < share - 1e-9).sum(axis=1), below.shape[1] - 1) for share in (0.5, 1 - tail))
    median, high = ends
    low = np.minimum((below <= tail + 1e-9).sum(axis=1), median)
    return median, low, high
