"""Tests of one annotator at a time, beside the knockoffs: they need no chance, and are as strong."""

from __future__ import annotations

import numpy as np

from raterscope.algorithms.pairs.data import BoolArray, FloatArray, IndexArray
from raterscope.algorithms.pairs.grams import Biases, Scaled

__all__ = [
    "benjamini_hochberg", "bias_probabilities", "binomial_test", "crowd_probability",
    "false_discovery_rates", "intervals", "selection_limit", "simes", "t_test",
]  # fmt: skip

_LEVEL = 0.95
_CAUTION = 0.9
_LEAST = 1e-300
_WEIGHT_OF_FEW = 0.75
_TWO_GROUP_STEPS = 80
_PRIOR_CASES, _PRIOR_SHARE = 5.0, 0.1
_PRIOR_BIASED, _PRIOR_MEAN, _PRIOR_VARIANCE = 2.0, 3.0, 2.0
_FARTHEST = 30.0


def t_test(found: Biases) -> FloatArray:
    """Test each bias by Student's t, all others being in the model.

    Returns
    -------
    (m,) float64
        Two-sided probabilities; NaN where no noise is left to test against.
    """
    from scipy.special import stdtr

    if not found.residual > 0.0 or found.freedom <= 0:
        return np.full(len(found.scaled), np.nan)
    spread = np.sqrt(found.variance * np.diagonal(found.inverse))
    return np.asarray(2.0 * stdtr(found.freedom, -np.abs(found.scaled) / spread))


def intervals(found: Biases, problem: Scaled) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Give the biases in the units of the choices, with the ends of their 95 % intervals; (m,) each."""
    from scipy.special import stdtrit

    bias = found.scaled / problem.length
    far = np.full(len(bias), np.nan)
    if found.freedom > 0:
        spread = np.sqrt(found.variance * np.diagonal(found.inverse)) / problem.length
        far = stdtrit(found.freedom, 0.5 + _LEVEL / 2) * spread
    return bias, bias - far, bias + far


def binomial_test(left: IndexArray, right: IndexArray) -> FloatArray:
    """Test whether left and right were chosen equally often, blind to what was compared.

    Parameters
    ----------
    left, right : (p,) int
        Counts; ties take no part.

    Returns
    -------
    (p,) float64
        Two-sided probabilities; 1 without a choice.

    Examples
    --------
    >>> import numpy as np
    >>> binomial_test(np.array([9, 5]), np.array([1, 5])).round(3)
    array([0.021, 1.   ])
    """
    from scipy.special import bdtr

    both = left + right
    tail = bdtr(np.minimum(left, right).astype(np.float64), both.astype(np.int64), 0.5)
    return np.asarray(np.where(both > 0, np.minimum(2.0 * tail, 1.0), 1.0))


def benjamini_hochberg(probability: FloatArray, rate: float) -> BoolArray:
    """Select at a false discovery rate ([benjamini1995]_).

    Parameters
    ----------
    probability : (p,) float64
        NaN for who was not tested, who counts for nothing.
    rate : float

    Returns
    -------
    (p,) bool

    References
    ----------
    .. [benjamini1995] Y. Benjamini and Y. Hochberg, "Controlling the false discovery rate: a practical and
       powerful approach to multiple testing", Journal of the Royal Statistical Society B 57 (1995) 289-300,
       doi:10.1111/j.2517-6161.1995.tb02031.x.

    Examples
    --------
    >>> import numpy as np
    >>> benjamini_hochberg(np.array([0.001, 0.02, 0.4, 0.8]), rate=0.1)
    array([ True,  True, False, False])
    """
    tested = np.flatnonzero(np.isfinite(probability))
    order = tested[np.argsort(probability[tested], kind="stable")]
    good = probability[order] <= rate * np.arange(1, len(order) + 1) / max(len(order), 1)
    found = np.zeros(len(probability), dtype=bool)
    if good.any():
        found[order[: np.flatnonzero(good)[-1] + 1]] = True
    return found


def simes(probability: FloatArray) -> float:
    """Test whether nobody is biased: the smallest m p / rank ([simes1986]_).

    Parameters
    ----------
    probability : (p,) float64
        NaN for who was not tested.

    Returns
    -------
    float
        1 if nobody was tested.

    References
    ----------
    .. [simes1986] R. J. Simes, "An improved Bonferroni procedure for multiple tests of significance",
       Biometrika 73 (1986) 751-754, doi:10.1093/biomet/73.3.751.

    Examples
    --------
    >>> import numpy as np
    >>> simes(np.array([0.001, 0.5, 0.9]))
    0.003
    """
    known = np.sort(probability[np.isfinite(probability)])
    return float((len(known) * known / np.arange(1, len(known) + 1)).min(initial=1.0))


def false_discovery_rates(probability: FloatArray) -> FloatArray:
    """Give for each annotator the least rate at which they are selected (q value).

    By Benjamini and Hochberg; where many are biased, adaptively: the number of those who are not is
    estimated by those with p > 1/2 (Storey), and the rate taken at 0.9 of its value.

    Parameters
    ----------
    probability : (p,) float64
        NaN for who was not tested.

    Returns
    -------
    (p,) float64
        At most 1; NaN for who was not tested.

    References
    ----------
    .. [benjamini1995] Y. Benjamini and Y. Hochberg, "Controlling the false discovery rate: a practical and
       powerful approach to multiple testing", Journal of the Royal Statistical Society B 57 (1995) 289-300,
       doi:10.1111/j.2517-6161.1995.tb02031.x.
    .. [storey2002] J. D. Storey, "A direct approach to false discovery rates", Journal of the Royal
       Statistical Society B 64 (2002) 479-498, doi:10.1111/1467-9868.00346.

    Examples
    --------
    >>> import numpy as np
    >>> false_discovery_rates(np.array([0.001, 0.02, 0.4, 0.8])).round(3)
    array([0.004, 0.04 , 0.533, 0.8  ])
    """
    tested = np.flatnonzero(np.isfinite(probability))
    many = len(tested)
    found = np.full(len(probability), np.nan)
    if not many:
        return found
    unbiased = _unbiased(probability[tested])
    order = tested[np.argsort(probability[tested], kind="stable")]
    rate = unbiased * many * probability[order] / np.arange(1, many + 1)
    found[order] = np.minimum(np.minimum.accumulate(rate[::-1])[::-1], 1.0)
    return found


def selection_limit(probability: FloatArray, rate: float, selected: int) -> float:
    """Give the largest p value at which one more annotator would be selected by `false_discovery_rates`."""
    tested = probability[np.isfinite(probability)]
    return min(rate * (selected + 1) / max(len(tested), 1) / _unbiased(tested), 1.0)


def crowd_probability(probability: FloatArray) -> float:
    """Test whether nobody is biased, against a few large biases and against many small ones.

    The p values of Simes' test, which finds few, and of Fisher's ([fisher1932]_), which finds many, are
    combined by Bonferroni's inequality, the first with a weight of 3/4.

    Parameters
    ----------
    probability : (p,) float64
        NaN for who was not tested.

    Returns
    -------
    float
        1 if nobody was tested.

    References
    ----------
    .. [fisher1932] R. A. Fisher, "Statistical methods for research workers", Oliver and Boyd (1932) (fourth
       edition, section 21.1).
    """
    from scipy.special import chdtrc

    tested = probability[np.isfinite(probability)]
    if not len(tested):
        return 1.0
    many = float(chdtrc(2 * len(tested), -2 * np.log(np.maximum(tested, _LEAST)).sum()))
    return min(1.0, simes(tested) / _WEIGHT_OF_FEW, many / (1 - _WEIGHT_OF_FEW))


def bias_probabilities(probability: FloatArray) -> FloatArray:
    """Estimate the probability that each annotator is biased, from the p values of all.

    The p values are those of absolute standard normal deviates z. Of unbiased annotators these have a
    half-normal distribution, of biased ones a folded normal distribution; its mean, variance and share are
    fitted by EM with a weak prior ([efron2008]_). The share of the biased is not above that which the p
    values above one half leave.

    Parameters
    ----------
    probability : (p,) float64
        Two-sided; NaN for who was not tested.

    Returns
    -------
    (p,) float64
        NaN for who was not tested. In simulated crowds the mean agrees with the share of wrong flags and
        misses within 0.03, but not with 20 comparisons an annotator, where more are biased than it says.

    References
    ----------
    .. [efron2008] B. Efron, "Microarrays, empirical Bayes and the two-groups model", Statistical Science 23
       (2008) 1-22, doi:10.1214/07-STS236.
    """
    from scipy.special import ndtri

    tested = np.isfinite(probability)
    found = np.full(len(probability), np.nan)
    if not tested.any():
        return found
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
        many = float(biased.sum())
        share = min((many + _PRIOR_SHARE * _PRIOR_CASES) / (len(z) + _PRIOR_CASES), most)
        mean = (float(biased @ z) + _PRIOR_BIASED * _PRIOR_MEAN) / (many + _PRIOR_BIASED)
        spread = float(biased @ (z - mean) ** 2) + _PRIOR_BIASED * _PRIOR_VARIANCE
        variance = max(spread / (many + _PRIOR_BIASED), 1.0)
    found[tested] = biased
    return found


def _unbiased(probability: FloatArray) -> float:
    """Estimate the share of the tested who are not biased, over the caution at which the rate is taken."""
    many = max(len(probability), 1)
    return min(1.0, (1 + int((probability > 0.5).sum())) / (many / 2) / _CAUTION)
