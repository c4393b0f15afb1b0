"""Communities of a question's annotators at several moments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.common_tasks import (
    CommonTaskSettings,
    CommunitiesOverTime,
    common_task_communities,
    follow,
)
from raterscope.algorithms.annotators.communities import Communities, CommunitySettings, communities
from raterscope.algorithms.labels import Confusion
from raterscope.algorithms.labels.data import FloatArray, LabelFusion, Labels
from raterscope.algorithms.labels.drift import confusion_at
from raterscope.algorithms.labels.rates import estimate_rates
from raterscope.algorithms.progress import Watch, part, silent, steps_of
from raterscope.app.kinds.labels.runs import Groups, names_of
from raterscope.text import percent

SHARES = (0.2, 0.4, 0.6, 0.8)
"""The moments before the last: shares of each annotator's history."""

PARTS = 3
"""So many moments of common tasks, each with as many votes more."""

DAY = 86400.0


@dataclass(frozen=True, eq=False)
class CommunityCourse:
    """Communities at several moments."""

    over: CommunitiesOverTime  # the communities of the last moment have the numbers that they have as groups
    titles: Sequence[str]  # (T,): when each moment is: "at 40 %"
    caption: str  # description of the moments: "of each one's votes"
    names: tuple[str, ...]  # by lasting number
    # T arrays, (C_t, J, L): means of the members' matrices at each moment, weighted by participation
    prototypes: tuple[FloatArray, ...]

    def participation(self, moment: int, annotator: int) -> FloatArray:
        """Return an annotator's share in each lasting community at a moment; zeros without one."""
        at_moment, identity = self.over.moments[moment], self.over.identity[moment]
        shares = np.zeros(self.over.count)
        row = np.flatnonzero(at_moment.members == annotator)
        if len(row):
            shares[identity] = at_moment.participation[row[0]]
        return shares


def why_not_over_time(labels: Labels, fusion: LabelFusion | None, basis: str) -> str:
    """Return why groups cannot be followed over time; empty if they can."""
    if basis == "behaviour":
        if fusion is None or fusion.drift is None:
            return (
                "Changes of behaviour need a dynamic answer: fuse with dynamic IBCC, or group annotators by "
                "common tasks."
            )
    elif labels.time is None:
        return "Common tasks can be followed over time only if votes have times: these have none."
    return ""


def communities_by_tasks(
    labels: Labels, mean: FloatArray, votes: NDArray[np.int64] | None, method: str, watch: Watch = silent
) -> Communities:
    """Group annotators by common tasks, with some of the votes or all."""
    task, annotator = labels.task, labels.annotator
    if votes is not None:
        task, annotator = task[votes], annotator[votes]
    settings = CommonTaskSettings(method=method)
    counts = len(labels.tasks), len(labels.annotators)
    return common_task_communities(task, annotator, *counts, settings, watch, mean)


def follow_communities(
    labels: Labels, fusion: LabelFusion, mean: FloatArray, groups: Groups, watch: Watch = silent
) -> CommunityCourse:
    """Find the communities at earlier moments and match them with the final ones.

    By behaviour, moments are shares of each annotator's own history; by common tasks they are times, and the
    communities those of all votes until then (the dynamic combination paper, sections 9 and 10).

    `mean`: (K, J, L), expected confusion matrices at the end. `groups`: those of the last moment.
    """
    last = groups.communities
    if groups.basis == "behaviour":
        moments, titles, caption = _moments_by_behaviour(labels, fusion, last, watch)
    else:
        moments, titles, caption = _moments_by_tasks(labels, fusion, mean, last, watch)
    # Behaviour says which community goes on where that is what they are of; else it is alike for all.
    matched = (
        moments
        if groups.basis == "behaviour"
        else [replace(moment, prototype=np.empty((moment.count, 0, 0))) for moment in moments]
    )
    over = _numbered_by_last(replace(follow(matched, len(labels.annotators)), moments=tuple(moments)))
    group_count = len(groups.names)
    names = groups.names + names_of(labels, over.latest()[group_count:], groups.basis, group_count)
    return CommunityCourse(over, titles, caption, names, tuple(moment.prototype for moment in moments))


def _moments_by_behaviour(
    labels: Labels, fusion: LabelFusion, last: Communities, watch: Watch
) -> tuple[list[Communities], list[str], str]:
    settings = CommunitySettings(method=last.method)
    moments: list[Communities] = []
    for share, step in steps_of(watch, SHARES):
        moment_watch = part(step, 0.0, 1.0, f"{percent(share)} of the votes: ")
        mean, votes = _rates_until(labels, fusion, share, moment_watch)
        moments.append(communities(mean, votes, settings, moment_watch))
    titles = [f"{percent(share)} of votes" for share in (*SHARES, 1.0)]
    return [*moments, last], titles, "of each one's votes"


def _rates_until(
    labels: Labels, fusion: LabelFusion, share: float, watch: Watch
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Estimate matrices after a share of each annotator's votes, as `rates_of` does after all of them."""
    drift = fusion.drift
    assert drift is not None
    vote_counts = np.diff(drift.start)
    count = np.where(vote_counts > 0, np.rint(share * np.maximum(vote_counts - 1, 0)).astype(np.int64) + 1, 0)
    step = np.arange(len(drift.vote)) - np.repeat(drift.start[:-1], vote_counts)
    is_given = np.zeros(len(labels), dtype=bool)
    is_given[drift.vote[step < np.repeat(count, vote_counts)]] = True
    labels_then = replace(labels.subset(is_given), known=fusion.known)
    last = confusion_at(fusion, share=share).counts()
    return estimate_rates(labels_then, fusion.posterior, last=last, watch=watch).mean, count


def _moments_by_tasks(
    labels: Labels, fusion: LabelFusion, mean: FloatArray, last: Communities, watch: Watch
) -> tuple[list[Communities], list[str], str]:
    times = labels.time
    assert times is not None
    has_time = np.isfinite(times)
    ends = np.quantile(times[has_time], [step / PARTS for step in range(1, PARTS + 1)])
    moments: list[Communities] = []
    for step, end in enumerate(ends[:-1].tolist()):
        step_watch = part(
            watch, step / (PARTS - 1), (step + 1) / (PARTS - 1), f"votes {step + 1} of {PARTS}: "
        )
        is_before = has_time & (times <= end)
        mean_then = mean if fusion.drift is None else _mean_then(fusion, is_before)
        moments.append(
            communities_by_tasks(labels, mean_then, np.flatnonzero(is_before), last.method, step_watch)
        )
    write = _date if ends[-1] - ends[0] > DAY else _hour
    titles = [f"until {write(end)}" for end in ends[:-1].tolist()]
    return [*moments, last], [*titles, "after all votes"], "by all votes until then"


def _mean_then(fusion: LabelFusion, is_before: NDArray[np.bool_]) -> FloatArray:
    """Return every annotator's expected confusion matrix after the votes until then."""
    drift, prior = fusion.drift, fusion.confusion.prior
    assert drift is not None
    annotator = np.repeat(np.arange(len(drift.start) - 1), np.diff(drift.start))
    steps = np.flatnonzero(is_before[drift.vote])
    last = np.full(len(drift.start) - 1, -1, dtype=np.int64)
    np.maximum.at(last, annotator[steps], steps)
    alpha = np.broadcast_to(prior, (len(last), *prior.shape)).copy()
    alpha[last >= 0] = drift.alpha[last[last >= 0]]
    return Confusion(alpha, prior).mean()


def _date(seconds: float) -> str:
    return _format_time(seconds, "%Y-%m-%d")


def _hour(seconds: float) -> str:
    return _format_time(seconds, "%H:%M:%S")


def _format_time(seconds: float, form: str) -> str:
    try:
        return datetime.fromtimestamp(seconds).astimezone().strftime(form)
    except (ValueError, OverflowError, OSError):  # seconds from another origin than 1970
        return f"{seconds:g} s"


def _numbered_by_last(over: CommunitiesOverTime) -> CommunitiesOverTime:
    """Renumber communities as at the last moment, with dissolved ones after them."""
    final = over.identity[-1]
    dissolved = np.setdiff1d(np.arange(over.count), final)
    number = np.full(max(over.count, 1), -1, dtype=np.int16)
    number[final] = np.arange(len(final))
    number[dissolved] = len(final) + np.arange(len(dissolved))
    events = over.events.copy()
    for column in (2, 3):
        named = events[:, column] >= 0
        events[named, column] = number[events[named, column]]
    return replace(over, identity=tuple(number[identity] for identity in over.identity), events=events)
