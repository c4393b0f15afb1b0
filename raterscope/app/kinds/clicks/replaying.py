"""A finished set of clicks as if it came once more: its annotators one after the other, in an order."""

from __future__ import annotations

from typing import Literal

import numpy as np

from raterscope.algorithms.clicks.data import Clicks, IntArray
from raterscope.algorithms.settings import SettingsError
from raterscope.app.kinds.clicks.arriving import Arrivals
from raterscope.app.kinds.clicks.held_fixed import HeldFixed
from raterscope.app.kinds.clicks.watching import Waiting

Order = Literal["time", "random"]


def replayed(clicks: Clicks, order: Order, per_step: int, seed: int = 0) -> Waiting:
    """Let the clicks on an image come again.

    Parameters
    ----------
    clicks : Clicks
        Their `known` spots are held fixed from the first step on.
    order : str
        Annotators by the time of their first click, those without a time last, or at random.
    per_step : int
        Annotators whose clicks come together.
    seed : int
        Of the order at random.
    """
    if per_step < 1:
        raise SettingsError(f"{per_step} annotators a step; expected 1 or more.")
    people = len(clicks.annotators)
    turn = np.random.default_rng(seed).permutation(people) if order == "random" else _by_time(clicks)
    rank = np.argsort(turn)
    rows = np.argsort(rank[clicks.annotator], kind="stable")
    counts = clicks.counts()[turn]
    heard = np.minimum(np.arange(per_step, people + per_step, per_step), people)
    arrivals = Arrivals(
        extent=clicks.extent,
        x=clicks.x[rows],
        y=clicks.y[rows],
        time=np.full(len(rows), np.nan) if clicks.time is None else clicks.time[rows],
        annotator=rank[clicks.annotator[rows]],
        order=turn.astype(np.int64),
        rows=np.concatenate([[0], np.cumsum(counts)])[heard],
        people=heard.astype(np.int64),
    )
    weights = (
        {} if clicks.weights is None else dict(zip(clicks.annotators, clicks.weights.tolist(), strict=True))
    )
    held = HeldFixed(clicks.known, clicks.viewed, clicks.control)
    return Waiting(arrivals, clicks.annotators, held, (), weights, clicks.scores)


def _by_time(clicks: Clicks) -> IntArray:
    people = len(clicks.annotators)
    first = np.full(people, np.inf)
    if clicks.time is not None:
        known = np.isfinite(clicks.time)
        np.minimum.at(first, clicks.annotator[known], clicks.time[known])
    return np.argsort(first, kind="stable").astype(np.int64)
