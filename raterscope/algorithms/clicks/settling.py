"""Streams of several images brought to where one fusion of all their clicks is.

A stream follows each image from step to step, with what other images said of the annotators at an earlier
time. What it came to therefore depends on the order in which clicks came. To settle, each image is fused from
its clicks alone and all images learn from each other, as in `raterscope.algorithms.clicks.fusion`: the answer
is that of a fusion, whatever the order was, and the streams go on from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from raterscope.algorithms.clicks._vote_model import climb
from raterscope.algorithms.clicks.data import Clicks
from raterscope.algorithms.clicks.dem import problem_of
from raterscope.algorithms.clicks.fusion import learn_from_each_other
from raterscope.algorithms.clicks.results import Fusion
from raterscope.algorithms.clicks.stopping import votes_on
from raterscope.algorithms.clicks.stream import StreamPlan, StreamState, begin
from raterscope.algorithms.progress import Watch, part, silent

__all__ = ["afresh", "can_settle", "settle"]


def can_settle(plan: StreamPlan) -> bool:
    """Tell whether streams of this plan are settled: not Algorithm 3 as published, nor carried reliabilities.

    Both make an image's answer depend on what came before.
    """
    return plan.stream.update != "printed" and not plan.clustering.carry_reliability


def afresh(
    clicks: Clicks, plan: StreamPlan, before: StreamState | None = None, watch: Watch = silent
) -> StreamState:
    """Fuse all clicks of an image by themselves, as `fuse` does; the step is that of the state before."""
    state = begin(clicks, plan, watch)
    return state if before is None else replace(state, step=before.step)


def settle(
    clicks: Sequence[Clicks],
    alone: Sequence[StreamState],
    plan: StreamPlan,
    watch: Watch = silent,
    *,
    others: Sequence[tuple[Clicks, Fusion]] = (),
) -> list[StreamState]:
    """Let images that were fused by themselves learn from each other, and be streams again.

    Parameters
    ----------
    clicks : sequence of Clicks
    alone : sequence of StreamState
        Of each image, as `afresh` gives it.
    plan : StreamPlan
    watch : Watch
    others : sequence of (Clicks, Fusion), optional
        Images that are not followed, and what was made of them by the same plan: they teach too.

    Returns
    -------
    list of StreamState
        Their decisions are those of a fusion of all the images.
    """
    fusions = learn_from_each_other(
        [*clicks, *(one for one, _ in others)],
        [*(state.fusion for state in alone), *(one for _, one in others)],
        plan.fusion,
        part(watch, 0.0, 0.9),
    )
    settled = []
    for done, (own, state, fusion) in enumerate(zip(clicks, alone, fusions, strict=False)):
        part(watch, 0.9, 1.0)(done / len(alone), "settling")
        problem = problem_of(votes_on(own, fusion), plan.detection)
        start = np.clip(fusion.detection.posterior, 0, 1)
        votes = climb(problem, start, 1, 0.0, silent).state if fusion is not state.fusion else None
        memory = state.memory if votes is None else replace(state.memory, votes=votes)
        settled.append(replace(state, fusion=fusion, memory=memory))
    return settled
