"""What left-out raters say of the probabilities and bands of a crowd: each case judged by the other cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from raterscope.algorithms.masks._left_out import MIDDLES, STEPS
from raterscope.algorithms.masks._spread import PRIOR
from raterscope.algorithms.masks.calibration import Calibration, pooled, student

__all__ = ["BINS", "check_left_out"]

BINS = 15
"""Bins of equal width that probabilities are counted in."""

_FOLDS = 5


def check_left_out(found: Sequence[Calibration]) -> list[Calibration]:
    """Count how often the probabilities and bands of left-out raters were right.

    Multipliers and curve come from the cases of the other folds: what is estimated from a case does not
    judge it. A crowd of one case is judged by the multipliers and the curve of the development data.

    Parameters
    ----------
    found : sequence of Calibration
        Of one crowd; those of two raters stay as they are.

    Returns
    -------
    list of Calibration
        With `Calibration.covered` and `Calibration.bins`.
    """
    out = list(found)
    usable = [place for place, one in enumerate(found) if one.ratios is not None and one.tried is not None]
    folds = min(_FOLDS, len(usable))
    for fold in range(folds):
        here = usable[fold::folds]
        others = [found[place] for place in usable if place not in set(here)]
        for raters in {found[place].raters - 1 for place in here}:
            blank = replace(found[here[0]], raters=raters, ratios=None, tried=None, marked=None)
            learnt = pooled([blank, *others])[0]
            for place in here:
                if found[place].raters - 1 == raters:
                    out[place] = _checked(found[place], learnt)
    return out


def _checked(one: Calibration, learnt: Calibration) -> Calibration:
    assert one.ratios is not None
    assert one.tried is not None
    assert one.marked is not None
    away = np.interp(MIDDLES, STEPS, one.ratios)
    covered = (away[:, None] <= np.array(learnt.multipliers)).mean(axis=0)
    chance = student(one.tried, PRIOR + learnt.raters - 1, learnt.curve).astype(float)
    at = np.minimum((chance * BINS).astype(int), BINS - 1)
    sums = [np.bincount(at, weight, BINS).astype(float) for weight in (chance, one.marked, None)]
    return replace(one, covered=covered, bins=np.stack(sums, axis=1))
