"""What the person should know of a fusion of pairs, a sentence each."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.pairs.behaviour import one_sided
from raterscope.algorithms.pairs.data import BoolArray, FloatArray, IndexArray, Pairs
from raterscope.algorithms.pairs.knockoffs import UNTESTED
from raterscope.algorithms.pairs.settings import PairSettings
from raterscope.algorithms.pairs.testing import binomial_test

__all__ = ["of_biases", "of_data", "of_flips", "of_noise", "of_selection", "of_sides"]

_NAMED = 5
_REPEATED = 0.01
_LEANING = 0.75
_SURE = 1e-4


def of_data(pairs: Pairs, component: IndexArray, untested: NDArray[np.int8], least: int) -> list[str]:
    """Tell of items that nothing links, of repeats, and of those who were not tested."""
    found = []
    groups = int(component.max(initial=-1)) + 1
    if groups > 1:
        found.append(
            f"Comparisons link the items in {groups:,} groups that nothing ties together; each group is "
            "ranked by itself, and scores of different groups cannot be compared."
        )
    never = int((component < 0).sum())
    if never:
        found.append(f"{_many(never, 'item')} {_was(never)} never compared and {_has(never)} no score.")
    repeats = _repeats(pairs)
    if repeats > _REPEATED * len(pairs):
        found.append(
            f"{_many(repeats, 'comparison')} of {len(pairs):,} repeat a pair, side and answer of the same "
            "annotator; each counts as one more, which makes biases look surer than they are if they are "
            "copies."
        )
    for reason, words in UNTESTED.items():
        who = np.flatnonzero(untested == reason)
        if len(who):
            detail = f" (fewer than {least})" if reason == 2 else ""
            found.append(f"{_names(pairs.annotators, who)} {words}{detail}.")
    return found


def of_noise(pairs: Pairs, residual: float, freedom: int, tested: int) -> list[str]:
    """Tell where there is too little noise to test against, or too few comparisons."""
    found = []
    if tested and residual == 0.0:
        found.append(
            "Scores and biases fit every choice without any noise, so that no bias can be tested: nobody is "
            "flagged."
        )
        who = np.flatnonzero(one_sided(pairs))
        if len(who):
            found.append(f"{_names(pairs.annotators, who)} chose one side alone.")
    elif freedom < tested:
        found.append(
            f"There are {freedom:,} degrees of freedom for {tested:,} annotators: noise of the size that was "
            "estimated is added to make knockoffs, and the rate holds only as far as that size is right."
        )
    return found


def of_biases(pairs: Pairs, bias: FloatArray) -> list[str]:
    """Warn where most annotators lean to one side, so that a bias is no exception."""
    seen = bias[np.isfinite(bias) & (bias != 0.0)]
    leftwards = int((seen > 0.0).sum())
    most = max(leftwards, len(seen) - leftwards)
    chance = float(binomial_test(np.array([leftwards]), np.array([len(seen) - leftwards]))[0])
    left, right, _ = (int(counts.sum()) for counts in pairs.counts())
    if not len(seen) or most < _LEANING * len(seen) or chance > _SURE:
        return []
    side = "left" if leftwards == most else "right"
    return [
        f"{most:,} of {len(seen):,} annotators lean to the {side}, and {left / max(left + right, 1):.0%} of "
        "all choices are of the left side: that few are biased, which all this rests on, does not hold, and "
        "the flagged are but the strongest."
    ]


def of_selection(settings: PairSettings, tested: int, flagged: BoolArray, by_t_test: int) -> list[str]:
    """Tell that knockoff+ cannot select a few, where that may be why it selects nobody."""
    fewest = math.ceil(1.0 / settings.rate - 1e-9)
    if not settings.plus or not tested or flagged.any():
        return []
    words = f"Knockoff+ at a rate of {settings.rate:g} selects {fewest:,} annotators or more, or nobody"
    if tested < fewest:
        return [f"{words}, and {tested:,} were tested: it can flag nobody; look at the t test."]
    if by_t_test:
        return [f"{words}; the t test with Benjamini-Hochberg at that rate finds {by_t_test:,}."]
    return []


def of_flips(q_value: FloatArray, crowd_p: float, settings: PairSettings) -> list[str]:
    """Say where the test of the whole crowd keeps annotators from being flagged."""
    held = int((np.nan_to_num(q_value, nan=1.0) <= settings.rate).sum())
    if crowd_p <= settings.gate or not held:
        return []
    return [
        f"{_many(held, 'annotator')} would be flagged at a rate of {settings.rate:g}, but the crowd shows "
        f"no clear bias (p = {crowd_p:.2g}, limit {settings.gate:g}): nobody is flagged. Set the "
        "crowd test to 1 to flag them."
    ]


def of_sides(words: str) -> list[str]:
    """Say that sides were not drawn at random, on which the rate of the flip test rests."""
    if not words:
        return []
    return [
        f"Sides were not drawn at random: {words}. The flip test then rests on its model of the choices, and "
        "its rate is not promised; see what knockoffs flag."
    ]


def _repeats(pairs: Pairs) -> int:
    """Count comparisons that are the same as another in all but their place."""
    items = len(pairs.items)
    key = (pairs.annotator.astype(np.int64) * items + pairs.left) * items + pairs.right
    ordered = np.sort(key)
    again = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    if not len(again):
        return 0
    place = np.minimum(np.searchsorted(again, key), len(again) - 1)
    some = np.flatnonzero(again[place] == key)
    columns = [pairs.choice[some], key[some]]
    if pairs.time is not None:
        columns.insert(0, pairs.time[some])
    some = some[np.lexsort(columns)]
    alike = key[some[1:]] == key[some[:-1]]
    alike &= pairs.choice[some[1:]] == pairs.choice[some[:-1]]
    if pairs.time is not None:
        alike &= pairs.time[some[1:]] == pairs.time[some[:-1]]
    return int(alike.sum())


def _names(names: Sequence[str], who: NDArray[np.int64]) -> str:
    if len(who) == 1:
        return f"Annotator {names[who[0]]}"
    shown = ", ".join(names[k] for k in who[:_NAMED])
    more = f" and {len(who) - _NAMED:,} more" if len(who) > _NAMED else ""
    return f"{len(who):,} annotators ({shown}{more})"


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _was(count: int) -> str:
    return "was" if count == 1 else "were"


def _has(count: int) -> str:
    return "has" if count == 1 else "have"
