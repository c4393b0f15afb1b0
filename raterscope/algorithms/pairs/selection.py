"""Annotators that a fusion flags at any false discovery rate, by either rule; nothing is fitted again."""

from __future__ import annotations

import numpy as np

from raterscope.algorithms.pairs.data import BoolArray, FloatArray, PairFusion
from raterscope.algorithms.pairs.flip_test import FlipTest
from raterscope.algorithms.pairs.testing import benjamini_hochberg, bias_probabilities, selection_limit

__all__ = [
    "decidable",
    "detectable_biases",
    "draw_shares",
    "flip_flags",
    "t_test_flags",
    "wrong_probabilities",
]


def flip_flags(q_value: FloatArray, rate: float, crowd_p: float, gate: float) -> BoolArray:
    """Flag annotators by their q values; nobody where the crowd as a whole shows no bias.

    Parameters
    ----------
    q_value : (p,) float64
        NaN for who was not tested.
    rate : float
    crowd_p, gate : float
        The p value of the crowd (`crowd_probability`), and the largest at which anybody is flagged.
    """
    if crowd_p > gate:
        return np.zeros(len(q_value), dtype=bool)
    return np.nan_to_num(q_value, nan=np.inf) <= rate * (1 + 1e-12)


def decidable(detectable: FloatArray, q_value: FloatArray, relevant: float, rate: float) -> BoolArray:
    """Tell who can be called unbiased if not flagged: a bias that matters would be seen, and none is.

    Parameters
    ----------
    detectable, q_value : (p,) float64
    relevant : float
        The bias that matters, in the units of `detectable`.
    rate : float
        An annotator whose q value is below is not unbiased, even if another rule flags nobody.
    """
    reached = np.nan_to_num(detectable, nan=np.inf) <= relevant
    return np.asarray(reached & (np.nan_to_num(q_value, nan=0.0) > rate))


def detectable_biases(
    test: FlipTest, q_value: FloatArray, crowd_p: float, rate: float, gate: float, relevant: float
) -> tuple[FloatArray, BoolArray]:
    """Give the smallest bias of each annotator that would be flagged at a rate, and who is decidable by it.

    Parameters
    ----------
    test : FlipTest
        With NaN for who was not tested.
    q_value : (p,) float64
    crowd_p : float
    rate, gate, relevant : float
        See `PairSettings`.

    Returns
    -------
    (p,) float64, (p,) bool
        See `FlipTest.detectable` and `decidable`.
    """
    tested = np.isfinite(test.probability)
    flagged = flip_flags(q_value, rate, crowd_p, gate)
    limit = selection_limit(test.probability, rate, int(flagged.sum()))
    if not flagged.any():
        limit = min(limit, gate / max(int(tested.sum()), 1))
    found = np.where(tested, test.detectable(limit), np.nan)
    return found, decidable(found, q_value, relevant * test.reach.scale, rate)


def draw_shares(fusion: PairFusion, plus: bool) -> FloatArray:
    """Give the share of knockoff draws that select each annotator; NaN for all under another rule."""
    from raterscope.algorithms.pairs.knockoffs import shares

    if fusion.rule != "knockoffs":
        return np.full(len(fusion.flagged), np.nan)
    return shares(fusion.statistic, fusion.rate, plus)


def wrong_probabilities(fusion: PairFusion) -> FloatArray:
    """Estimate the probability that each annotator is flagged, or not flagged, wrongly.

    Returns
    -------
    (p,) float64
        By the p values of all; 0 for annotators who were not tested.
    """
    biased = bias_probabilities(np.where(fusion.untested == 0, fusion.p_value, np.nan))
    return np.nan_to_num(np.where(fusion.flagged, 1 - biased, biased))


def t_test_flags(fusion: PairFusion) -> BoolArray:
    """Flag annotators by the t test of each bias with Benjamini-Hochberg, at the rate of the fusion."""
    return benjamini_hochberg(fusion.p_value if fusion.t_test is None else fusion.t_test, fusion.rate)
