"""Reliability of annotators across kinds: a hierarchical normal model with a correlation between kinds.

Each kind estimates a reliability of an annotator with a standard error, on a scale without bounds, such as
the log odds of accuracy. The true reliabilities of an annotator are drawn from a normal distribution whose
mean and covariance across kinds are estimated from the crowd by the restricted likelihood [harville1977]_.
The correlation of two kinds is zero unless a likelihood-ratio test rejects this; as it cannot be negative,
the test is on the boundary [self1987]_. If it is rejected, the posterior mean is used, with half of the prior
at 0 and half flat from 0 to 1, because the maximum is overconfident in small crowds. Predictions are the best
linear unbiased ones, with the uncertainty of the means. The uncertainty of the covariance is not included.

References
----------
.. [harville1977] D. A. Harville, "Maximum likelihood approaches to variance component estimation and to
   related problems", Journal of the American Statistical Association 72 (1977) 320-338,
   doi:10.1080/01621459.1977.10480998.
.. [self1987] S. G. Self and K.-Y. Liang, "Asymptotic properties of maximum likelihood estimators and
   likelihood ratio tests under nonstandard conditions", Journal of the American Statistical Association 82
   (1987) 605-610, doi:10.1080/01621459.1987.10478472.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raterscope.algorithms.progress import Watch, silent

FloatArray = NDArray[np.float64]

Z = 1.959964
FEWEST = 5
"""Minimum number of annotators with both kinds for estimating a correlation."""

LEVEL = 0.05
"""Significance level of the likelihood-ratio test of a correlation."""

_GRID = np.round(np.linspace(-0.96, 0.96, 17), 2)
_DROP = 1.92
"""Half the 95 % quantile of the chi-squared distribution with one degree of freedom."""

_MIN_ODDS = 1e-4


@dataclass(frozen=True, eq=False)
class AnnotatorReliability:
    """Reliability of P annotators in K kinds."""

    kinds: tuple[str, ...]  # (K,)
    # mean, spread: (K,): mean and standard deviation of the crowd on each kind's scale; a spread of 0 with
    # fewer than 3 annotators
    mean: FloatArray
    spread: FloatArray
    # (K, K): correlation used in the model: 0 off the diagonal if the data do not support one
    correlation: FloatArray
    # raw_correlation, low, high: (K, K): estimated correlation with its 95 % interval; NaN if too few
    # annotators have both kinds
    raw_correlation: FloatArray
    low: FloatArray
    high: FloatArray
    p_value: FloatArray  # (K, K): of the test that the correlation is 0, against a positive one
    common: NDArray[np.int64]  # (K, K): annotators with estimates of both kinds
    # value, value_low, value_high: (P, K): reliability with its 95 % interval, predicted where an annotator
    # has no estimate
    value: FloatArray
    value_low: FloatArray
    value_high: FloatArray
    # score, score_low, score_high: (P,): combined reliability with its 95 % interval, in standard deviations
    # of the crowd: the mean over the kinds that an annotator has; NaN without any
    score: FloatArray
    score_low: FloatArray
    score_high: FloatArray

    def sentence(self) -> str:
        """Describe how far each kind informs the others."""
        pairs = list(combinations(range(len(self.kinds)), 2))
        known = [pair for pair in pairs if np.isfinite(self.raw_correlation[pair])]
        unknown = [pair for pair in pairs if pair not in known]
        sentences = [self._of_pair(*pair) for pair in (*known, *(unknown if len(unknown) == 1 else ()))]
        if len(unknown) > 1:
            subject = "The other pairs of kinds" if known else "The kinds"
            sentences.append(f"{subject} are not related: too few annotators marked two of them.")
        return " ".join(sentences)

    def _of_pair(self, first: int, second: int) -> str:
        kinds = f"{self.kinds[first]} and {self.kinds[second]}"
        count = int(self.common[first, second])
        raw = self.raw_correlation[first, second]
        if not np.isfinite(raw):
            counted = f"only {count} annotator{'s' * (count != 1)}" if count else "no annotator"
            return f"{kinds.capitalize()} are not related: {counted} marked both."
        low, high = self.low[first, second], self.high[first, second]
        figures = f"{raw:.2f}, 95 % interval {low:.2f} to {high:.2f}; {count:,} annotators in both"
        used = self.correlation[first, second]
        if used > 0:
            return f"Reliability in {kinds} is correlated ({figures}): each informs the other by {used:.2f}."
        return f"No correlation of reliability in {kinds} is established ({figures}): each kind counts alone."


def from_interval(low: ArrayLike, high: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Convert 95 % intervals of probabilities to log odds and their standard errors."""
    ends = np.clip(np.array([low, high], dtype=np.float64), _MIN_ODDS, 1.0 - _MIN_ODDS)
    odds = np.log(ends) - np.log1p(-ends)
    error = np.maximum((odds[1] - odds[0]) / (2.0 * Z), 1e-6)
    return odds.mean(axis=0), error


def annotator_reliability(
    estimate: ArrayLike,
    error: ArrayLike,
    kinds: Sequence[str],
    watch: Watch = silent,
) -> AnnotatorReliability:
    """Estimate the reliability of annotators from all kinds together.

    `estimate`: (P, K), on a scale without bounds, larger for better: the log odds of accuracy, or minus the
        log of a scatter. NaN where an annotator has none.
    `error`: (P, K), standard errors, above 0.
    `kinds`: names of the K kinds.
    """
    value = np.asarray(estimate, dtype=np.float64)
    variance = np.square(np.asarray(error, dtype=np.float64))
    count = len(kinds)
    if value.shape != variance.shape or value.ndim != 2 or value.shape[1] != count:
        raise ValueError(f"estimates and errors must have the shape (annotators, {count}).")
    known = np.isfinite(value) & np.isfinite(variance) & (variance > 0)
    spread = np.array([_spread(value[of, kind], variance[of, kind]) for kind, of in enumerate(known.T)])
    used, raw, low, high, p_value = np.eye(count), *(np.full((count, count), np.nan) for _ in range(4))
    common = (known.T.astype(np.int64) @ known).astype(np.int64)
    pairs = [(a, b) for a in range(count) for b in range(a + 1, count)]
    for done, (a, b) in enumerate(pairs):
        watch(done / len(pairs), "relating kinds")
        if common[a, b] < FEWEST or not (spread[a] and spread[b]):
            continue
        of = known[:, a] | known[:, b]
        pair = _correlate(value[of][:, [a, b]], variance[of][:, [a, b]], known[of][:, [a, b]], spread[[a, b]])
        for at in ((a, b), (b, a)):
            raw[at], low[at], high[at], p_value[at], _ = pair
            used[at] = pair.expected if pair.p_value < LEVEL else 0.0
    used = _positive_definite(used)
    mean, *predicted = _predict(value, variance, known, spread, used)
    return AnnotatorReliability(tuple(kinds), mean, spread, used, raw, low, high, p_value, common, *predicted)


class _Pair(NamedTuple):
    """Correlation of two kinds; `expected` is the posterior mean, with half of the prior at 0."""

    correlation: float
    low: float
    high: float
    p_value: float
    expected: float


def _spread(value: FloatArray, variance: FloatArray) -> float:
    """Return the posterior mean of the standard deviation beyond the errors, under a flat prior.

    The maximum of the restricted likelihood is often 0 in a small crowd, which would be overconfident.
    """
    if len(value) < 3:
        return 0.0
    most = 3.0 * float(value.std()) + 1e-9
    spreads = np.linspace(0.0, most, 121)
    weight = 1.0 / (variance + spreads[:, None] ** 2)
    total = weight.sum(axis=1)
    mean = (weight * value).sum(axis=1) / total
    loss = np.log(total) - np.log(weight).sum(axis=1) + (weight * (value - mean[:, None]) ** 2).sum(axis=1)
    posterior = np.exp(-0.5 * (loss - loss.min()))
    return float((posterior * spreads).sum() / posterior.sum())


def _correlate(
    value: FloatArray, variance: FloatArray, known: NDArray[np.bool_], spread: FloatArray
) -> _Pair:
    """Profile the restricted likelihood of the correlation of two kinds."""
    from scipy.interpolate import PchipInterpolator
    from scipy.optimize import minimize
    from scipy.stats import chi2

    both, alone = known.all(axis=1), [known[:, kind] & ~known[:, 1 - kind] for kind in (0, 1)]
    paired, paired_variance = value[both], variance[both]
    single = [(value[of, kind], variance[of, kind]) for kind, of in enumerate(alone)]

    def loss(logs: FloatArray, correlation: float) -> float:
        first, second = np.exp(logs)
        a, b = paired_variance[:, 0] + first**2, paired_variance[:, 1] + second**2
        c = correlation * first * second
        determinant = a * b - c * c
        aa, bb, ab = b / determinant, a / determinant, -c / determinant
        information = np.array([[aa.sum(), ab.sum()], [ab.sum(), bb.sum()]])
        weighted = np.array([(aa * paired[:, 0] + ab * paired[:, 1]).sum(),
                             (ab * paired[:, 0] + bb * paired[:, 1]).sum()])  # fmt: skip
        total = np.log(determinant).sum()
        weights = []
        for kind, (of, error) in enumerate(single):
            weight = 1.0 / (error + (first, second)[kind] ** 2)
            information[kind, kind] += weight.sum()
            weighted[kind] += (weight * of).sum()
            total -= np.log(weight).sum()
            weights.append(weight)
        mean = np.linalg.solve(information, weighted)
        x, y = paired[:, 0] - mean[0], paired[:, 1] - mean[1]
        total += (aa * x * x + bb * y * y + 2 * ab * x * y).sum() + np.linalg.slogdet(information)[1]
        for kind, (of, _) in enumerate(single):
            total += (weights[kind] * (of - mean[kind]) ** 2).sum()
        return 0.5 * float(total)

    start = np.log(spread)
    bounds = [(at - 3.0, at + 2.0) for at in start]
    losses = np.empty(len(_GRID))
    middle = int(np.abs(_GRID).argmin())
    for order in (range(middle, len(_GRID)), range(middle - 1, -1, -1)):
        logs = start
        for at in order:
            best = minimize(loss, logs, args=(_GRID[at],), method="L-BFGS-B", bounds=bounds,
                            options={"ftol": 1e-8})  # fmt: skip
            logs, losses[at] = best.x, best.fun
    fine = np.linspace(_GRID[0], _GRID[-1], 385)
    profile = np.asarray(PchipInterpolator(_GRID, losses)(fine))
    at = int(profile.argmin())
    ratio = 2.0 * max(profile[np.abs(fine).argmin()] - profile[at], 0.0)
    supported = fine[profile <= profile[at] + _DROP]
    p_value = 0.5 * float(chi2.sf(ratio, 1)) if fine[at] > 0 else 1.0
    low, high = float(supported[0]), float(supported[-1])
    weight = np.exp(profile.min() - profile[fine >= 0])
    evidence = float(weight.mean() / weight[0])
    expected = float((weight * fine[fine >= 0]).sum() / weight.sum()) * evidence / (1.0 + evidence)
    return _Pair(
        float(fine[at]), -1.0 if low <= _GRID[0] else low, 1.0 if high >= _GRID[-1] else high,
        p_value, expected,
    )  # fmt: skip


def _positive_definite(correlation: FloatArray) -> FloatArray:
    """Shrink all correlations until their matrix is positive definite."""
    identity = np.eye(len(correlation))
    shrunk = correlation
    while len(shrunk) and np.linalg.eigvalsh(shrunk)[0] < 0.02:
        shrunk = identity + 0.95 * (shrunk - identity)
    return shrunk


def _predict(
    value: FloatArray, variance: FloatArray, known: NDArray[np.bool_], spread: FloatArray,
    correlation: FloatArray,
) -> tuple[FloatArray, ...]:  # fmt: skip
    """Return the mean of the crowd, and values and scores of the annotators with their intervals."""
    count = value.shape[1]
    covariance = spread[:, None] * correlation * spread
    mask = known.astype(np.float64)
    # Kinds without an estimate become separate coordinates without influence.
    total = mask[:, :, None] * (covariance + np.eye(count) * np.where(known, variance, 0.0)[:, None, :])
    total = total * mask[:, None, :] + np.eye(count) * (1.0 - mask)[:, None, :]
    precision = np.linalg.inv(total) * mask[:, :, None] * mask[:, None, :]
    filled = np.where(known, value, 0.0)
    information = precision.sum(axis=0)
    seen = known.any(axis=0)
    of_mean = np.zeros((count, count))
    of_mean[np.ix_(seen, seen)] = np.linalg.inv(information[np.ix_(seen, seen)])
    mean = of_mean @ np.einsum("pij,pj->i", precision, filled)
    gain = covariance @ precision
    predicted = mean + np.einsum("pij,pj->pi", gain, np.where(known, value - mean, 0.0))
    rest = np.eye(count) - gain
    spread_of = covariance - gain @ covariance + rest @ of_mean @ rest.transpose(0, 2, 1)
    margin = Z * np.sqrt(np.maximum(np.diagonal(spread_of, axis1=1, axis2=2), 0.0))
    values = [np.where(seen, part, np.nan) for part in (predicted, predicted - margin, predicted + margin)]
    counts = known & (spread > 0)
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1) / np.where(spread > 0, spread, 1.0)
    score = ((predicted - mean) * share).sum(axis=1)
    # Scores compare annotators of one crowd: the uncertainty of its mean does not count.
    within = covariance - gain @ covariance
    width = Z * np.sqrt(np.maximum(np.einsum("pi,pij,pj->p", share, within, share), 0.0))
    scores = [np.where(counts.any(axis=1), part, np.nan) for part in (score, score - width, score + width)]
    return np.where(seen, mean, np.nan), *values, *scores
