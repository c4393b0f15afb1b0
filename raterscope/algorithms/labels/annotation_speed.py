"""Time that annotators take for a vote, from the times of their votes."""

from __future__ import annotations

import numpy as np

from raterscope.algorithms.labels.data import FloatArray, Labels

PAUSE = 1800.0
"""Seconds between two votes from which an annotator had a pause."""
_FEWEST = 6
"""Values from which their median has a 95 % interval between two of them."""


def seconds_per_vote(labels: Labels) -> FloatArray:
    """Return the median time between each annotator's consecutive votes, (K, 3), with its 95 % interval.

    The interval lies between two order statistics, by the normal approximation of the binomial distribution.
    Gaps of half an hour or more are pauses. NaN where no times are known.

    Examples
    --------
    >>> import numpy as np
    >>> labels = Labels(
    ...     np.arange(9), np.zeros(9, int), np.zeros(9, int), tuple("abcdefghi"), ("kim",), ("no",), ("no",),
    ...     time=np.array([0, 10, 20, 32, 40, 5000, 5010, 5030, 5038.0]),
    ... )
    >>> seconds_per_vote(labels).tolist()
    [[10.0, 8.0, 20.0]]
    """
    median = np.full((len(labels.annotators), 3), np.nan)
    if labels.time is None:
        return median
    order = np.lexsort((labels.time, labels.annotator))
    gap = np.diff(labels.time[order])
    annotator = labels.annotator[order]
    same = (annotator[1:] == annotator[:-1]) & np.isfinite(gap) & (gap < PAUSE)
    gap, annotator = gap[same], annotator[1:][same]
    order = np.lexsort((gap, annotator))
    gap, number = gap[order], np.bincount(annotator, minlength=len(median))
    start = np.cumsum(number) - number
    some, several = number > 0, number >= _FEWEST
    middle = (gap[start[some] + (number[some] - 1) // 2] + gap[start[some] + number[some] // 2]) / 2
    median[some, 0] = middle
    half = 0.98 * np.sqrt(number)
    low = np.maximum(np.floor(number / 2 - half), 0).astype(np.int64)
    median[several, 1] = gap[(start + low)[several]]
    median[several, 2] = gap[(start + number - 1 - low)[several]]
    return median
