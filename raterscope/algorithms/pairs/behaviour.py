"""Who is good, ugly or bad, and who goes with the ranking (sections 1 and 3.3 of the position bias paper)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.pairs.data import BEHAVIOURS, BoolArray, FloatArray, Pairs

__all__ = ["BAD_SHARE", "LEAST", "behaviours", "crowd_match", "match", "one_sided", "side_share"]

BAD_SHARE = 0.95
"""The share of one side from which on those who were flagged are bad; below it they are ugly."""

LEAST = 5
"""Answers from which on it is told that all are of one side."""

_GOOD, _UGLY, _BAD, _UNDECIDABLE = range(len(BEHAVIOURS))


def side_share(pairs: Pairs) -> FloatArray:
    """Give the share of the side that each annotator chose more often, ties left out.

    Returns
    -------
    (p,) float64
        0.5 to 1; NaN without an answer of either side.
    """
    left, right, _ = pairs.counts()
    sided = left + right
    return np.where(sided > 0, np.maximum(left, right) / np.maximum(sided, 1), np.nan)


def behaviours(pairs: Pairs, flagged: BoolArray, decidable: BoolArray | None = None) -> NDArray[np.int8]:
    """Tell the bad from the ugly among the flagged (section 1); the others are good or undecidable.

    The bad do not look and click one side all the time; the ugly click it more often, above all when in
    doubt. The paper draws no line between the two. Here the bad chose one side in `BAD_SHARE` of their
    answers that are no ties, 19 of 20: all 18 that its table 8 has with no click on one side, and
    none of the 18 others, of whom the nearest chose one side 13 times in 15. Whoever clicks one side in 7 of
    10 cases without looking, as in the simulated study, chooses it in 85 % of answers and is ugly.

    Parameters
    ----------
    pairs : Pairs
    flagged : (p,) bool
    decidable : (p,) bool, optional
        Who is good if not flagged; by default everybody.

    Returns
    -------
    (p,) int8
        Numbers in `BEHAVIOURS`.
    """
    bad = np.nan_to_num(side_share(pairs)) >= BAD_SHARE
    rest = _GOOD if decidable is None else np.where(decidable, _GOOD, _UNDECIDABLE)
    return np.where(flagged, np.where(bad, _BAD, _UGLY), rest).astype(np.int8)


def one_sided(pairs: Pairs, least: int = LEAST) -> BoolArray:
    """Tell whose answers are all of one side, flagged or not.

    They are not accused by that: who saw the better item on the left five times is good. But where a crowd
    agrees so well that no noise is left, no test can tell a bias, and they are to be looked at.

    Returns
    -------
    (p,) bool
    """
    left, right, ties = pairs.counts()
    whole = (np.minimum(left, right) == 0) & (ties == 0)
    return np.asarray(whole & (np.maximum(left, right) >= least))


def match(pairs: Pairs, score: FloatArray) -> FloatArray:
    """Give the match ratio of each annotator: the share of answers that go with the ranking (section 3.3).

    Ties of the annotator are left out; two items of equal score go half with either answer.

    Parameters
    ----------
    pairs : Pairs
    score : (n,) float64

    Returns
    -------
    (p,) float64
        NaN without an answer that is no tie.
    """
    many = len(pairs.annotators)
    agreed, told = _agreement(pairs, score)
    whole = np.bincount(pairs.annotator, weights=told, minlength=many)
    right = np.bincount(pairs.annotator, weights=agreed, minlength=many)
    return np.where(whole > 0, right / np.maximum(whole, 1.0), np.nan)


def crowd_match(pairs: Pairs, score: FloatArray) -> float:
    """Give the match ratio of all answers together, with the n items' scores, (n,); NaN without any."""
    agreed, told = _agreement(pairs, score)
    return float(agreed.sum() / told.sum()) if told.any() else float("nan")


def _agreement(pairs: Pairs, score: FloatArray) -> tuple[FloatArray, FloatArray]:
    told = (pairs.choice != 0).astype(np.float64)
    with_ranking = np.sign(pairs.choice) * np.sign(score[pairs.left] - score[pairs.right])
    return told * (1 + with_ranking) / 2, told
