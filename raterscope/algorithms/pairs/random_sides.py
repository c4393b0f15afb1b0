"""Whether sides were drawn at random, and what the flip test flags once they are drawn again.

With sides drawn again at random, whoever made the comparisons prefers no side, whatever their noise. What the
test then finds in the user's own comparisons is found by chance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.pairs.data import FloatArray, Pairs
from raterscope.algorithms.pairs.flip_test import FlipTest, flip_test
from raterscope.algorithms.pairs.selection import flip_flags
from raterscope.algorithms.pairs.settings import PairSettings
from raterscope.algorithms.pairs.testing import crowd_probability, false_discovery_rates
from raterscope.algorithms.progress import Watch, part, silent

__all__ = ["LEVELS", "RedrawnSides", "check_redrawn_sides", "redraw_sides", "sides_in_words"]

LEVELS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)

_RELEVANT = 0.05
_SURE = 1e-4
_OFTEN = 3


@dataclass(frozen=True, eq=False)
class RedrawnSides:
    """The flip test of comparisons whose sides are drawn again, D times, of m tested annotators.

    Attributes
    ----------
    below : (D, L) float64
        Share of the p values of no bias at all that are below each of `LEVELS`.
    accused : (D,) int64
        Annotators that are flagged.
    tested : int
        m.
    """

    below: FloatArray
    accused: NDArray[np.int64]
    tested: int


def redraw_sides(pairs: Pairs, seed: int) -> Pairs:
    """Put each item of every comparison to the other side with a chance of one half."""
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
    """Test annotators for a bias where none can be.

    Parameters
    ----------
    pairs : Pairs
    settings : PairSettings
        Of the run whose rule is to be looked at.
    draws : int
        How often sides are drawn.
    watch : Watch
    """
    from threadpoolctl import threadpool_limits

    if not settings.graded:
        pairs = replace(pairs, choice=np.sign(pairs.choice))
    count = np.bincount(pairs.annotator, minlength=len(pairs.annotators))
    spared = count < settings.least
    below, accused = np.zeros((draws, len(LEVELS))), np.zeros(draws, dtype=np.int64)
    with threadpool_limits(1, "blas"):
        for draw in range(draws):
            step = part(watch, draw / draws, (draw + 1) / draws)
            found = flip_test(redraw_sides(pairs, draw), settings.effect, step)
            p, of_any = (np.where(spared, np.nan, one) for one in (found.probability, found.of_any))
            crowd_p = crowd_probability(of_any)
            flagged = flip_flags(false_discovery_rates(p), settings.rate, crowd_p, settings.gate)
            known = of_any[np.isfinite(of_any)]
            below[draw] = (known[:, None] < np.array(LEVELS)).mean(axis=0) if len(known) else np.nan
            accused[draw] = flagged.sum()
    return RedrawnSides(below, accused, int((~spared).sum()))


def sides_in_words(pairs: Pairs, test: FlipTest) -> str:
    """Say how sides were not drawn at random; empty where nothing contradicts it.

    Three departures are looked for: the better item, as the others' answers have it, lies on one side too
    often; each pair has the same item on the left for everybody; single items keep to a side.

    Parameters
    ----------
    pairs : Pairs
    test : FlipTest
        Of these comparisons.
    """
    from scipy.special import chdtrc, ndtr

    away = test.better_left - 0.5
    if abs(away) > _RELEVANT and 2 * ndtr(-abs(away) * 2 * np.sqrt(test.apart)) < _SURE:
        side = "left" if away > 0 else "right"
        return f"the better item was on the {side} in {0.5 + abs(away):.0%} of the comparisons"
    many = len(pairs.items)
    low, high = np.minimum(pairs.left, pairs.right), np.maximum(pairs.left, pairs.right)
    key, place, count = np.unique(low.astype(np.int64) * many + high, return_inverse=True, return_counts=True)
    on_left = np.bincount(place, pairs.left == low, minlength=len(key))
    often = count >= _OFTEN
    fixed = ((on_left == 0) | (on_left == count))[often]
    expected = 2.0 ** (1 - count[often])
    spread = float(np.sqrt((expected * (1 - expected)).sum()))
    if len(fixed) and float((fixed - expected).mean()) > 0.5 and (fixed - expected).sum() > 4 * spread:
        return "most pairs had the same item on the left whenever they were shown"
    left, right = np.bincount(pairs.left, minlength=many), np.bincount(pairs.right, minlength=many)
    seen = left + right > 0
    square = float(((left - right)[seen] ** 2 / (left + right)[seen]).sum())
    excess = (square - int(seen.sum())) / max(2 * len(pairs), 1)
    if excess > _RELEVANT and float(chdtrc(int(seen.sum()), square)) < _SURE:
        return "some items were mostly on the left, others mostly on the right"
    return ""
