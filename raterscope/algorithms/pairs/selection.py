"""Selection of biased annotators: tests of single annotators, false discovery rates and random sides.

If sides are redrawn at random, annotators prefer no side, whatever the noise. Flags in these comparisons are
then due to chance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.array_operations import one_thread
from raterscope.algorithms.pairs.data import (
    BoolArray,
    FloatArray,
    IndexArray,
    PairFusion,
    Pairs,
    PairSettings,
)
from raterscope.algorithms.pairs.flip_test import FlipTest, flip_test
from raterscope.algorithms.pairs.paths import Biases, ScaledGrams
from raterscope.algorithms.progress import Watch, silent, steps_of
from raterscope.text import percent

_LEVEL = 0.95
_CAUTION = 0.9
_LEAST = 1e-300
_WEIGHT_OF_FEW = 0.75
_TWO_GROUP_STEPS = 80
_PRIOR_CASES, _PRIOR_SHARE = 5.0, 0.1
_PRIOR_BIASED, _PRIOR_MEAN, _PRIOR_VARIANCE = 2.0, 3.0, 2.0
_FARTHEST = 30.0


def t_test(biases: Biases) -> FloatArray:
    """Test each bias by Student's t, with all others in the model; (m,) p values, NaN without noise."""
    from scipy.special import stdtr

    if not biases.residual > 0.0 or biases.freedom <= 0:
        return np.full(len(biases.scaled), np.nan)
    spread = np.sqrt(biases.variance * np.diagonal(biases.inverse))
    return np.asarray(2.0 * stdtr(biases.freedom, -np.abs(biases.scaled) / spread))


def intervals(biases: Biases, problem: ScaledGrams) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the biases in the unit of the choices, with the ends of their 95 % intervals; (m,) each."""
    from scipy.special import stdtrit

    bias = biases.scaled / problem.length
    far = np.full(len(bias), np.nan)
    if biases.freedom > 0:
        spread = np.sqrt(biases.variance * np.diagonal(biases.inverse)) / problem.length
        far = stdtrit(biases.freedom, 0.5 + _LEVEL / 2) * spread
    return bias, bias - far, bias + far


def binomial_test(left: IndexArray, right: IndexArray) -> FloatArray:
    """Test whether left and right were chosen equally often, without regard to the items.

    `left`, `right`: (p,), counts without ties. The result, (p,), holds two-sided probabilities; 1 without a
    choice.
    """
    from scipy.special import bdtr

    both = left + right
    tail = bdtr(np.minimum(left, right).astype(np.float64), both.astype(np.int64), 0.5)
    return np.asarray(np.where(both > 0, np.minimum(2.0 * tail, 1.0), 1.0))


def benjamini_hochberg(probability: FloatArray, rate: float) -> BoolArray:
    """Select annotators, (p,), at a false discovery rate ([benjamini1995]_).

    `probability`: (p,), NaN for annotators who were not tested; they do not count.

    References
    ----------
    .. [benjamini1995] Y. Benjamini and Y. Hochberg, "Controlling the false discovery rate: a practical and
       powerful approach to multiple testing", Journal of the Royal Statistical Society B 57 (1995) 289-300,
       doi:10.1111/j.2517-6161.1995.tb02031.x.
    """
    tested = np.flatnonzero(np.isfinite(probability))
    order = tested[np.argsort(probability[tested], kind="stable")]
    good = probability[order] <= rate * np.arange(1, len(order) + 1) / max(len(order), 1)
    result = np.zeros(len(probability), dtype=bool)
    if good.any():
        result[order[: np.flatnonzero(good)[-1] + 1]] = True
    return result


def simes(probability: FloatArray) -> float:
    """Test the hypothesis that no annotator is biased: the smallest m p / rank ([simes1986]_).

    `probability`: (p,), NaN for annotators who were not tested. The result is 1 if no annotator was tested.

    References
    ----------
    .. [simes1986] R. J. Simes, "An improved Bonferroni procedure for multiple tests of significance",
       Biometrika 73 (1986) 751-754, doi:10.1093/biomet/73.3.751.
    """
    known = np.sort(probability[np.isfinite(probability)])
    return float((len(known) * known / np.arange(1, len(known) + 1)).min(initial=1.0))


def false_discovery_rates(probability: FloatArray) -> FloatArray:
    """Return the q value of each annotator: the smallest rate with a selection.

    The method is that of Benjamini and Hochberg [benjamini1995]_. It adapts to many biased annotators: the
    number of unbiased annotators is estimated from p > 1/2 [storey2002]_, and 0.9 of the rate is used.

    `probability`: (p,), NaN for annotators who were not tested. The result, (p,), is at most 1; NaN for
    annotators who were not tested.

    References
    ----------
    .. [benjamini1995] Y. Benjamini and Y. Hochberg, "Controlling the false discovery rate: a practical and
       powerful approach to multiple testing", Journal of the Royal Statistical Society B 57 (1995) 289-300,
       doi:10.1111/j.2517-6161.1995.tb02031.x.
    .. [storey2002] J. D. Storey, "A direct approach to false discovery rates", Journal of the Royal
       Statistical Society B 64 (2002) 479-498, doi:10.1111/1467-9868.00346.
    """
    tested = np.flatnonzero(np.isfinite(probability))
    count = len(tested)
    result = np.full(len(probability), np.nan)
    if not count:
        return result
    unbiased = _unbiased(probability[tested])
    order = tested[np.argsort(probability[tested], kind="stable")]
    rate = unbiased * count * probability[order] / np.arange(1, count + 1)
    result[order] = np.minimum(np.minimum.accumulate(rate[::-1])[::-1], 1.0)
    return result


def selection_limit(probability: FloatArray, rate: float, selected: int) -> float:
    """Return the largest p value at which one more annotator would be selected by `false_discovery_rates`."""
    tested = probability[np.isfinite(probability)]
    return min(rate * (selected + 1) / max(len(tested), 1) / _unbiased(tested), 1.0)


def crowd_probability(probability: FloatArray) -> float:
    """Test for bias in the crowd: a few large biases, or many small ones.

    The p values of Simes' test, which finds few large biases, and of Fisher's test ([fisher1932]_), which
    finds many small biases, are combined by Bonferroni's inequality, the first with a weight of 3/4.

    `probability`: (p,), NaN for annotators who were not tested. The result is 1 if no annotator was tested.

    References
    ----------
    .. [fisher1932] R. A. Fisher, "Statistical methods for research workers", Oliver and Boyd (1932) (fourth
       edition, section 21.1).
    """
    from scipy.special import chdtrc

    tested = probability[np.isfinite(probability)]
    if not len(tested):
        return 1.0
    count = float(chdtrc(2 * len(tested), -2 * np.log(np.maximum(tested, _LEAST)).sum()))
    return min(1.0, simes(tested) / _WEIGHT_OF_FEW, count / (1 - _WEIGHT_OF_FEW))


def bias_probabilities(probability: FloatArray) -> FloatArray:
    """Estimate the probability that each annotator is biased, from the p values of all.

    The p values are those of absolute standard normal deviates z. For unbiased annotators these have a
    half-normal distribution, for biased annotators a folded normal distribution; its mean, variance and share
    are fitted by EM with a weak prior ([efron2008]_). The share of biased annotators is limited by the p
    values above one half.

    `probability`: (p,), two-sided; NaN for annotators who were not tested. The result, (p,), is NaN for
    annotators who were not tested. In simulated crowds the mean agrees with the share of wrong flags and
    misses within 0.03, except with 20 comparisons for each annotator, where more annotators are biased than
    estimated.

    References
    ----------
    .. [efron2008] B. Efron, "Microarrays, empirical Bayes and the two-groups model", Statistical Science 23
       (2008) 1-22, doi:10.1214/07-STS236.
    """
    from scipy.special import ndtri

    tested = np.isfinite(probability)
    result = np.full(len(probability), np.nan)
    if not tested.any():
        return result
    p = probability[tested]
    z = np.minimum(-ndtri(np.clip(p, 1e-300, 1.0) / 2), _FARTHEST)
    most = max(1.0 - min(1.0, (1 + int((p > 0.5).sum())) / (len(p) / 2)), 0.5 / len(p))
    share, mean, variance = min(_PRIOR_SHARE, most), _PRIOR_MEAN, _PRIOR_VARIANCE
    biased = np.zeros(len(z))
    for _ in range(_TWO_GROUP_STEPS):
        near, far = -((z - mean) ** 2) / (2 * variance), -((z + mean) ** 2) / (2 * variance)
        log_odds = (
            np.log(share / (1 - share) / 2) + np.logaddexp(near, far) - np.log(variance) / 2 + z * z / 2
        )
        biased = 1 / (1 + np.exp(-np.clip(log_odds, -700, 700)))
        count = float(biased.sum())
        share = min((count + _PRIOR_SHARE * _PRIOR_CASES) / (len(z) + _PRIOR_CASES), most)
        mean = (float(biased @ z) + _PRIOR_BIASED * _PRIOR_MEAN) / (count + _PRIOR_BIASED)
        spread = float(biased @ (z - mean) ** 2) + _PRIOR_BIASED * _PRIOR_VARIANCE
        variance = max(spread / (count + _PRIOR_BIASED), 1.0)
    result[tested] = biased
    return result


def _unbiased(probability: FloatArray) -> float:
    """Estimate the share of unbiased annotators, divided by the safety factor of the rate."""
    count = max(len(probability), 1)
    return min(1.0, (1 + int((probability > 0.5).sum())) / (count / 2) / _CAUTION)


def flip_flags(q_value: FloatArray, rate: float, crowd_p: float, gate: float) -> BoolArray:
    """Flag annotators by their q values; none if the crowd shows no bias.

    `q_value`: (p,), NaN for annotators who were not tested. `crowd_p`, `gate`: p value of the crowd
    (`crowd_probability`), and its maximum for flags.
    """
    if crowd_p > gate:
        return np.zeros(len(q_value), dtype=bool)
    return np.nan_to_num(q_value, nan=np.inf) <= rate * (1 + 1e-12)


def decidable(detectable: FloatArray, q_value: FloatArray, relevant: float, rate: float) -> BoolArray:
    """Return whether each annotator is unbiased if not flagged: a relevant bias would be found, and none is.

    `detectable`, `q_value`: (p,). `relevant`: the relevant bias, in the units of `detectable`. `rate`: an
    annotator with a smaller q value does not count as unbiased, even if another rule flags none.
    """
    reached = np.nan_to_num(detectable, nan=np.inf) <= relevant
    return np.asarray(reached & (np.nan_to_num(q_value, nan=0.0) > rate))


def detectable_biases(
    test: FlipTest, q_value: FloatArray, crowd_p: float, rate: float, gate: float, relevant: float
) -> tuple[FloatArray, BoolArray]:
    """Return each annotator's smallest bias that would be flagged at a rate, and whether it is decidable.

    `test`: NaN for annotators who were not tested.
    `q_value`: (p,).
    `rate`, `gate`, `relevant`: see `PairSettings`.
    For the results, each (p,), see `FlipTest.detectable` and `decidable`.
    """
    tested = np.isfinite(test.probability)
    flagged = flip_flags(q_value, rate, crowd_p, gate)
    limit = selection_limit(test.probability, rate, int(flagged.sum()))
    if not flagged.any():
        limit = min(limit, gate / max(int(tested.sum()), 1))
    result = np.where(tested, test.detectable(limit), np.nan)
    return result, decidable(result, q_value, relevant * test.reach.scale, rate)


def draw_shares(fusion: PairFusion, plus: bool) -> FloatArray:
    """Return the share of knockoff draws that select each annotator; NaN for all under another rule."""
    from raterscope.algorithms.pairs.knockoffs import selection_shares

    if fusion.rule != "knockoffs":
        return np.full(len(fusion.flagged), np.nan)
    return selection_shares(fusion.statistic, fusion.rate, plus)


def wrong_probabilities(fusion: PairFusion) -> FloatArray:
    """Estimate the probability that each annotator is wrongly flagged or not flagged; 0 if untested."""
    biased = bias_probabilities(np.where(fusion.untested == 0, fusion.p_value, np.nan))
    return np.nan_to_num(np.where(fusion.flagged, 1 - biased, biased))


def t_test_flags(fusion: PairFusion) -> BoolArray:
    """Flag annotators by the t test of each bias with Benjamini-Hochberg, at the rate of the fusion."""
    return benjamini_hochberg(fusion.p_value if fusion.t_test is None else fusion.t_test, fusion.rate)


LEVELS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)

_RELEVANT = 0.05
_SURE = 1e-4
_OFTEN = 3


@dataclass(frozen=True, eq=False)
class RedrawnSides:
    """Results of the flip test for m annotators on comparisons with redrawn sides, D times."""

    below: FloatArray  # (D, L): share of the p values (of no bias at all) below each of `LEVELS`
    accused: NDArray[np.int64]  # (D,): number of flagged annotators
    tested: int  # m


def redraw_sides(pairs: Pairs, seed: int) -> Pairs:
    """Swap the sides of every comparison with probability one half."""
    turned = np.random.default_rng([0x51DE, seed]).random(len(pairs)) < 0.5
    return replace(
        pairs,
        left=np.where(turned, pairs.right, pairs.left),
        right=np.where(turned, pairs.left, pairs.right),
        choice=np.where(turned, -pairs.choice, pairs.choice),
    )


def check_redrawn_sides(
    pairs: Pairs, settings: PairSettings, draws: int, watch: Watch = silent
) -> RedrawnSides:
    """Test annotators on comparisons with redrawn sides, where no bias can exist.

    `settings`: settings of the run whose rule is checked. `draws`: number of draws.
    """
    if not settings.graded:
        pairs = replace(pairs, choice=np.sign(pairs.choice))
    count = np.bincount(pairs.annotator, minlength=len(pairs.annotators))
    spared = count < settings.min_comparisons
    below, accused = np.zeros((draws, len(LEVELS))), np.zeros(draws, dtype=np.int64)
    with one_thread():
        for draw, step in steps_of(watch, range(draws)):
            result = flip_test(redraw_sides(pairs, draw), settings.effect, step)
            p, of_any = (np.where(spared, np.nan, array) for array in (result.probability, result.of_any))
            crowd_p = crowd_probability(of_any)
            flagged = flip_flags(false_discovery_rates(p), settings.rate, crowd_p, settings.gate)
            known = of_any[np.isfinite(of_any)]
            below[draw] = (known[:, None] < np.array(LEVELS)).mean(axis=0) if len(known) else np.nan
            accused[draw] = flagged.sum()
    return RedrawnSides(below, accused, int((~spared).sum()))


_CELLS = 1 << 20
"""Maximum number of pairs of items for counting in a table of all pairs."""


def sides_in_words(pairs: Pairs, test: FlipTest) -> str:
    """Describe evidence that sides were not drawn at random; empty without evidence.

    Three patterns are tested: the better item, by the others' answers, is too often on one side; each pair
    has the same item on the left for all annotators; single items stay on one side.

    `test`: test of these comparisons.
    """
    from scipy.special import chdtrc, ndtr

    away = test.better_left - 0.5
    if abs(away) > _RELEVANT and 2 * ndtr(-abs(away) * 2 * np.sqrt(test.apart)) < _SURE:
        side = "left" if away > 0 else "right"
        return f"the better item was on the {side} in {percent(0.5 + abs(away))} of the comparisons"
    total = len(pairs.items)
    low, high = np.minimum(pairs.left, pairs.right), np.maximum(pairs.left, pairs.right)
    pair = low.astype(np.int64) * total + high
    if total * total > _CELLS:
        _, pair = np.unique(pair, return_inverse=True)
    count, on_left = np.bincount(pair), np.bincount(pair, pairs.left == low)
    on_left, count = on_left[count > 0], count[count > 0]
    often = count >= _OFTEN
    fixed = ((on_left == 0) | (on_left == count))[often]
    expected = 2.0 ** (1 - count[often])
    spread = float(np.sqrt((expected * (1 - expected)).sum()))
    if len(fixed) and float((fixed - expected).mean()) > 0.5 and (fixed - expected).sum() > 4 * spread:
        return "most pairs had the same item on the left whenever they were shown"
    left, right = np.bincount(pairs.left, minlength=total), np.bincount(pairs.right, minlength=total)
    seen = left + right > 0
    square = float(((left - right)[seen] ** 2 / (left + right)[seen]).sum())
    excess = (square - int(seen.sum())) / max(2 * len(pairs), 1)
    if excess > _RELEVANT and float(chdtrc(int(seen.sum()), square)) < _SURE:
        return "some items were mostly on the left, others mostly on the right"
    return ""
