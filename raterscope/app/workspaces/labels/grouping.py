"""Annotators grouped by behaviour or by common tasks, and followed over time. No Qt here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.common_tasks import CommonTaskSettings, common_task_communities
from raterscope.algorithms.annotators.communities import Communities, CommunitySettings, communities
from raterscope.algorithms.annotators.over_time import EVENTS, CommunitiesOverTime, follow
from raterscope.algorithms.labels import Confusion
from raterscope.algorithms.labels.data import FloatArray, LabelFusion
from raterscope.algorithms.labels.drift import at
from raterscope.algorithms.progress import Watch, part
from raterscope.app.labels.answers import Groups, described, names_of
from raterscope.app.workspaces.labels.scene import Analysis, Scene
from raterscope.widgets.figures import percent
from raterscope.widgets.plots.community_flow import FlowEvent, FlowView

__all__ = ["BASES", "METHODS", "Course", "Way", "find_groups", "follow_groups", "obstacle", "way_of"]

Way = tuple[str, str]
"""What annotators have in common, a key of `BASES`, and how the network is taken apart, of `METHODS`."""

BASES = {
    "behaviour": ("behaviour", "Annotators whose confusion matrices are alike"),
    "tasks": ("common tasks", "Annotators who worked on the same tasks"),
}
METHODS = {
    "nmf": (
        "factorisation",
        "Bayesian non-negative matrix factorisation: finds their number, annotators take part in several",
    ),
    "louvain": ("Louvain", "Louvain: each annotator belongs to one"),
}

SHARES = (0.2, 0.4, 0.6, 0.8)
"""The moments before the last: shares of each annotator's history."""

PARTS = 3
"""So many moments of common tasks, each with as many votes more."""

DAY = 86400.0


def way_of(groups: Groups) -> Way:
    """Say in which way groups were found."""
    return groups.basis, groups.found.method


def find_groups(scene: Scene, analysis: Analysis, way: Way, watch: Watch) -> Groups:
    """Group the annotators of a question that has an answer."""
    assert analysis.mean is not None
    assert analysis.accuracy is not None
    basis, method = way
    if basis == "behaviour":
        found = communities(analysis.mean, analysis.votes_of, CommunitySettings(method=method), watch)
    else:
        found = _by_tasks(scene, analysis.mean, None, method, watch)
    return described(scene.labels, found, analysis.accuracy[0])


def _by_tasks(
    scene: Scene, mean: FloatArray, some: NDArray[np.int64] | None, method: str, watch: Watch
) -> Communities:
    """Group by common tasks, by some of the votes or by all."""
    labels = scene.labels
    task, annotator = labels.task, labels.annotator
    if some is not None:
        task, annotator = task[some], annotator[some]
    settings = CommonTaskSettings(method=method)
    many = len(labels.tasks), len(labels.annotators)
    return common_task_communities(task, annotator, *many, settings, watch, mean)


@dataclass(frozen=True, eq=False)
class Course:
    """Communities at several moments.

    Attributes
    ----------
    over : CommunitiesOverTime
        The communities of the last moment have the numbers that they have as groups.
    view : FlowView
    """

    over: CommunitiesOverTime
    view: FlowView

    def block(self, moment: int, community: int) -> tuple[int, ...]:
        """Give the annotators of a community at a moment; for those in none, who is in one at another."""
        return tuple(np.flatnonzero(self._in(moment, community)).tolist())

    def band(self, moment: int, community: int, goal: int) -> tuple[int, ...]:
        """Give the annotators who go from a community to one of the next moment."""
        both = self._in(moment, community) & self._in(moment + 1, goal)
        return tuple(np.flatnonzero(both).tolist())

    def _in(self, moment: int, community: int) -> NDArray[np.bool_]:
        now = self.over.moments[moment]
        if community < now.count:
            return np.asarray(now.of(self.over.annotators) == community)
        return np.asarray((now.of(self.over.annotators) < 0) & self._ever)

    @property
    def _ever(self) -> NDArray[np.bool_]:
        """Who is in a community at any moment."""
        ever = np.zeros(self.over.annotators, dtype=bool)
        for one in self.over.moments:
            ever[one.members] = True
        return ever


def obstacle(scene: Scene, groups: Groups) -> str:
    """Say why groups cannot be followed over time; nothing where they can."""
    if groups.basis == "behaviour":
        if scene.fusion is None or scene.fusion.drift is None:
            return (
                "How behaviour changes over time is what a dynamic answer says: fuse with dynamic IBCC, or "
                "group the annotators by common tasks."
            )
    elif scene.labels.time is None:
        return "Common tasks can be followed over time where votes come with their times: these have none."
    return ""


def follow_groups(scene: Scene, analysis: Analysis, groups: Groups, watch: Watch) -> Course:
    """Find the communities of earlier moments and join them up to those that there are in the end.

    By behaviour, moments are shares of each annotator's own history; by common tasks they are times, and the
    communities those of all votes until then (the dynamic combination paper, sections 9 and 10).
    """
    last = groups.found
    if groups.basis == "behaviour":
        moments, titles, caption = _behaviour_until(scene, last, watch)
    else:
        moments, titles, caption = _tasks_until(scene, analysis, last, watch)
    # Behaviour says which community goes on where that is what they are of; else it is alike for all.
    matched = moments if groups.basis == "behaviour" else [_without_prototype(one) for one in moments]
    over = _numbered_by_last(replace(follow(matched, len(scene.labels.annotators)), moments=tuple(moments)))
    return Course(over, _view(scene, groups, over, titles, caption))


def _behaviour_until(
    scene: Scene, last: Communities, watch: Watch
) -> tuple[list[Communities], list[str], str]:
    assert scene.fusion is not None
    assert scene.fusion.drift is not None
    many = np.diff(scene.fusion.drift.start)
    settings = CommunitySettings(method=last.method)
    moments: list[Communities] = []
    for step, share in enumerate(SHARES):
        here = part(watch, step / len(SHARES), (step + 1) / len(SHARES), f"{percent(share)} of the votes: ")
        votes = np.where(many > 0, np.rint(share * (many - 1)) + 1, 0)
        moments.append(communities(at(scene.fusion, share=share).mean(), votes, settings, here))
    titles = [f"at {percent(share)}" for share in (*SHARES, 1.0)]
    return [*moments, last], titles, "of each one's votes"


def _tasks_until(
    scene: Scene, analysis: Analysis, last: Communities, watch: Watch
) -> tuple[list[Communities], list[str], str]:
    times, fusion = scene.labels.time, scene.fusion
    assert times is not None
    assert fusion is not None
    assert analysis.mean is not None
    known = np.isfinite(times)
    ends = np.quantile(times[known], [step / PARTS for step in range(1, PARTS + 1)])
    moments: list[Communities] = []
    for step, end in enumerate(ends[:-1].tolist()):
        here = part(watch, step / (PARTS - 1), (step + 1) / (PARTS - 1), f"votes {step + 1} of {PARTS}: ")
        then = known & (times <= end)
        mean = analysis.mean if fusion.drift is None else _mean_then(fusion, then)
        moments.append(_by_tasks(scene, mean, np.flatnonzero(then), last.method, here))
    write = _date if ends[-1] - ends[0] > DAY else _hour
    titles = [f"until {write(end)}" for end in ends[:-1].tolist()]
    return [*moments, last], [*titles, "after all votes"], "by all votes until then"


def _mean_then(fusion: LabelFusion, then: NDArray[np.bool_]) -> FloatArray:
    """Give every annotator's expected confusion matrix after the votes that had come."""
    drift, prior = fusion.drift, fusion.confusion.prior
    assert drift is not None
    who = np.repeat(np.arange(len(drift.start) - 1), np.diff(drift.start))
    came = np.flatnonzero(then[drift.vote])
    last = np.full(len(drift.start) - 1, -1, dtype=np.int64)
    np.maximum.at(last, who[came], came)
    alpha = np.broadcast_to(prior, (len(last), *prior.shape)).copy()
    alpha[last >= 0] = drift.alpha[last[last >= 0]]
    return Confusion(alpha, prior).mean()


def _date(seconds: float) -> str:
    return _written(seconds, "%Y-%m-%d")


def _hour(seconds: float) -> str:
    return _written(seconds, "%H:%M:%S")


def _written(seconds: float, form: str) -> str:
    try:
        return datetime.fromtimestamp(seconds).astimezone().strftime(form)
    except (ValueError, OverflowError, OSError):  # seconds from another origin than 1970
        return f"{seconds:g} s"


def _without_prototype(found: Communities) -> Communities:
    return replace(found, prototype=np.empty((found.count, 0, 0)))


def _numbered_by_last(over: CommunitiesOverTime) -> CommunitiesOverTime:
    """Give the communities of the last moment their numbers in it, and those gone by then the next."""
    final = over.identity[-1]
    gone = np.setdiff1d(np.arange(over.count), final)
    number = np.full(max(over.count, 1), -1, dtype=np.int16)
    number[final] = np.arange(len(final))
    number[gone] = len(final) + np.arange(len(gone))
    events = over.events.copy()
    for column in (2, 3):
        named = events[:, column] >= 0
        events[named, column] = number[events[named, column]]
    return replace(over, identity=tuple(number[each] for each in over.identity), events=events)


def _view(
    scene: Scene, groups: Groups, over: CommunitiesOverTime, titles: list[str], caption: str
) -> FlowView:
    many = len(groups.names)
    names = groups.names + names_of(scene.labels, over.latest()[many:], groups.basis, many)
    ever = np.unique(np.concatenate([one.members for one in over.moments]))
    flows = []
    for flow in over.flows:
        drawn = flow.copy()
        drawn[-1, -1] -= over.annotators - len(ever)
        flows.append(drawn)
    return FlowView(
        moments=tuple(titles),
        caption=caption,
        numbers=over.identity,
        flows=tuple(flows),
        names=names,
        events=tuple(_events(over, names, titles)),
        prototypes=tuple(one.prototype for one in over.moments),
        classes=scene.classes,
        outputs=scene.labels.outputs,
    )


def _events(over: CommunitiesOverTime, names: tuple[str, ...], titles: list[str]) -> list[FlowEvent]:
    called = [
        name if name.startswith("community ") else f"{number} {name}" for number, name in enumerate(names, 1)
    ]
    return [
        FlowEvent(moment, number, words, EVENTS[kind] in ("ends", "joins"))
        for (moment, kind, number, _), words in zip(
            over.events.tolist(), over.told(called, [f"{title}:" for title in titles]), strict=True
        )
    ]
