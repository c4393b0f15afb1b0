"""Test of every annotator against constancy: the share of right votes over their votes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.data import FloatArray, LabelFusion, Labels
from raterscope.algorithms.labels.drift import RIGHT, ChangePoint, change_points
from raterscope.algorithms.labels.rates import estimate_rates
from raterscope.algorithms.progress import Watch, silent

__all__ = ["FALSE_ALARMS", "LEAST_VOTES", "Constancy", "changes_in_words", "constancy", "main_change"]

FALSE_ALARMS = 0.05
"""Share of annotators who do not change that are named all the same."""

LEAST_VOTES = 20
"""Annotators with fewer votes are not tested."""

_SPLITS = np.arange(0.1, 0.901, 0.02)
"""Shares of the votes that lie before a possible change."""

_WEIGHTS = np.power(_SPLITS * (1 - _SPLITS), 4) / np.power(_SPLITS * (1 - _SPLITS), 4).sum()
"""Of the splits: what holds for a few votes only is an episode."""

_FALLS = 0.65
"""Prior probability that a change is a fall: annotators tire more often than they learn."""

_TOLD = 10
"""The most annotators that one sentence names."""

_SAMPLES = 20_000
"""Of the statistic where nothing changes."""


@dataclass(frozen=True, eq=False)
class Constancy:
    """The test of K annotators.

    Attributes
    ----------
    p : (K,) float64
        Probability of as much change by chance; NaN for those who are not tested.
    step : (K,) int64
        The first of the annotator's votes, from 0, after the most probable change.
    before, after : (K,) float64
        Share of right votes before and after it, as the answer has it.
    """

    p: FloatArray
    step: NDArray[np.int64]
    before: FloatArray
    after: FloatArray

    def changed(self) -> NDArray[np.int64]:
        """Give those who changed at the level `FALSE_ALARMS`, those who changed most first."""
        named = np.flatnonzero(self.p < FALSE_ALARMS)  # NaN is not
        size = np.abs(self.after - self.before)[named]
        return np.asarray(named[np.lexsort((self.p[named], -size))])


def constancy(labels: Labels, fusion: LabelFusion, watch: Watch = silent) -> Constancy:
    """Test for each annotator whether votes are right as often throughout.

    A vote's residual is the probability that it is right less what the annotator's rate for that class
    predicts, so that a change of the tasks' classes is no change of the annotator. Every split of the votes
    in time gives a standardised difference z of the means; the statistic is a weighted mean of exp(z^2 / 2)
    over splits ([andrews1994]_), compared with its distribution for a Brownian
    bridge. Falls weigh nearly twice as much as rises, so that they are found more often.

    Parameters
    ----------
    labels : Labels
        What was fused.
    fusion : LabelFusion
    watch : Watch

    References
    ----------
    .. [andrews1994] D. W. K. Andrews and W. Ploberger, "Optimal tests when a nuisance parameter is present
       only under the alternative", Econometrica 62 (1994) 1383-1414, doi:10.2307/2951753.
    """
    assert labels.meaning is not None
    rates = estimate_rates(replace(labels, known=fusion.known), fusion.posterior)  # of all votes
    stands = labels.meaning[None, :] == np.arange(len(labels.classes))[:, None]
    expected = (rates.mean * stands).sum(axis=2)
    order = labels.in_time()
    who, task = labels.annotator[order], labels.task[order]
    meant = labels.meaning[labels.label[order]]
    right = np.where(meant >= 0, fusion.posterior[task, meant], 0.0)
    residual = right - (fusion.posterior[task] * expected[who]).sum(axis=1)
    many = labels.votes_of_annotators()
    start = np.concatenate([[0], np.cumsum(many)])
    people = len(many)
    p, step = np.full(people, np.nan), np.zeros(people, dtype=np.int64)
    before, after = np.full(people, np.nan), np.full(people, np.nan)
    null = _null()
    for at, annotator in enumerate(np.flatnonzero(many >= LEAST_VOTES).tolist()):
        if at % 256 == 0:
            watch(annotator / people, "looking for who changed")
        mine = slice(start[annotator], start[annotator + 1])
        statistic, place = _tested(residual[mine])
        above = len(null) - int(np.searchsorted(null, statistic, side="left"))
        p[annotator], step[annotator] = (above + 1) / (len(null) + 1), place
        own = right[mine]
        before[annotator], after[annotator] = own[:place].mean(), own[place:].mean()
    return Constancy(p, step, before, after)


def _tested(values: FloatArray) -> tuple[float, int]:
    """Give the statistic of a series, and the split at which the means differ most."""
    many = len(values)
    places = np.clip(np.rint(_SPLITS * many), 1, many - 1).astype(np.int64)
    deviation = float(values.std())
    if deviation < 1e-9:
        return 0.0, int(places[len(places) // 2])
    sums = (values - values.mean()).cumsum()[places - 1]
    z = sums / (deviation * np.sqrt(places * (many - places) / many))
    return float(_statistic(np.atleast_2d(z))[0]), int(places[np.abs(z).argmax()])


def _statistic(z: FloatArray) -> FloatArray:
    """Give the logarithm of the weighted mean of exp(z^2 / 2) over splits, (n, splits); z > 0 is a fall."""
    half = np.square(z) / 2
    most = half.max(axis=1, keepdims=True)
    weight = np.where(z > 0, _FALLS, 1 - _FALLS) * _WEIGHTS
    return np.asarray(most[:, 0] + np.log((weight * np.exp(half - most)).sum(axis=1)))


def main_change(found: Constancy, labels: Labels, fusion: LabelFusion, annotator: int) -> ChangePoint:
    """Describe how an annotator changed: a row by decisive evidence, else the share of right votes."""
    right = np.array([found.before[annotator], 1 - found.before[annotator]])
    after = np.array([found.after[annotator], 1 - found.after[annotator]])
    whole = ChangePoint(
        int(found.step[annotator]), RIGHT, float(np.abs(after - right).sum() / 2), 0.0, right, after
    )
    if fusion.drift is None:
        return whole
    rows = change_points(fusion.drift, labels, fusion, annotator)
    return max((whole, *rows), key=lambda one: (one.size, one.true))


def changes_in_words(found: Constancy, labels: Labels) -> tuple[str, ...]:
    """Name the annotators who changed, in a sentence; nothing where there are none."""
    named = found.changed()
    if not len(named):
        return ()
    tested = int(np.isfinite(found.p).sum())
    listed = [
        f"{labels.annotators[k]} (vote {found.step[k] + 1:,}: right {found.before[k]:.2f} before,"
        f" {found.after[k]:.2f} after)"
        for k in named[:_TOLD].tolist()
    ]
    more = f" and {len(named) - _TOLD:,} more" if len(named) > _TOLD else ""
    return (
        f"{len(named):,} of {tested:,} annotators changed over their votes (p < {FALSE_ALARMS:g} each, so"
        f" that {FALSE_ALARMS:.0%} of those who did not are named too): {', '.join(listed)}{more}.",
    )


@cache
def _null() -> FloatArray:
    """Give the sorted statistics of Brownian bridges."""
    rng = np.random.default_rng(0)
    gaps = np.diff(np.concatenate([[0.0], _SPLITS, [1.0]]))
    walk = (rng.standard_normal((_SAMPLES, len(gaps))) * np.sqrt(gaps)).cumsum(axis=1)
    bridge = walk[:, :-1] - walk[:, -1:] * _SPLITS
    return np.sort(_statistic(bridge / np.sqrt(_SPLITS * (1 - _SPLITS))))
