"""Annotators grouped by behaviour or by common tasks, and followed over time. No Qt here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.communities import CommunitySettings, communities
from raterscope.algorithms.annotators.community_changes import EVENTS, CommunitiesOverTime
from raterscope.algorithms.labels.data import FloatArray, Labels
from raterscope.algorithms.progress import Watch
from raterscope.app.kinds.labels.answers import Groups, described
from raterscope.app.kinds.labels.community_charts import corners_of
from raterscope.app.kinds.labels.community_course import (
    CommunityCourse,
    communities_by_tasks,
    follow_communities,
)
from raterscope.app.kinds.labels.community_course import obstacle as reason
from raterscope.app.workspaces.labels.scene import Analysis, Scene
from raterscope.widgets.figures.community_flow import FlowEvent, FlowView
from raterscope.widgets.figures.community_triangles import TrianglesView

__all__ = [
    "BASES", "METHODS", "Course", "Way", "find_groups", "follow_groups", "obstacle", "triangles_now",
    "way_of",
]  # fmt: skip

MOST_CLASSES = 4
"""Of the triangles."""

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
        found = communities_by_tasks(scene.labels, analysis.mean, None, method, watch)
    return described(scene.labels, found, analysis.accuracy[0])


@dataclass(frozen=True, eq=False)
class Course:
    """Communities at several moments.

    Attributes
    ----------
    over : CommunitiesOverTime
        The communities of the last moment have the numbers that they have as groups.
    view : FlowView
    triangles : TrianglesView
    """

    over: CommunitiesOverTime
    view: FlowView
    triangles: TrianglesView

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
    return reason(scene.labels, scene.fusion, groups.basis)


def follow_groups(scene: Scene, analysis: Analysis, groups: Groups, watch: Watch) -> Course:
    """Follow communities, see `follow_communities`, and lay them out as they are drawn.

    The triangles are of the first moment, one in the middle and the last, as in Figs. 11 to 13 of the paper.
    """
    assert scene.fusion is not None
    assert analysis.mean is not None
    found = follow_communities(scene.labels, scene.fusion, analysis.mean, groups, watch)
    kept = sorted({0, len(found.titles) // 2, len(found.titles) - 1})
    over = found.over
    moments = _Moments(
        tuple(found.titles[at] for at in kept), tuple(found.prototypes[at] for at in kept),
        tuple(over.moments[at].sizes() for at in kept), tuple(over.identity[at] for at in kept), found.names,
    )  # fmt: skip
    return Course(found.over, _view(scene, found), _triangles(scene.labels, moments))


def triangles_now(scene: Scene, groups: Groups) -> TrianglesView:
    """Lay the communities shown out in triangles."""
    found = groups.found
    numbers = np.arange(found.count)
    return _triangles(
        scene.labels, _Moments(("",), (found.prototype,), (found.sizes(),), (numbers,), groups.names)
    )


@dataclass(frozen=True, eq=False)
class _Moments:
    titles: tuple[str, ...]
    prototypes: tuple[FloatArray, ...]
    sizes: tuple[NDArray[np.int64], ...]
    numbers: tuple[NDArray[np.integer], ...]
    names: tuple[str, ...]


def _triangles(labels: Labels, found: _Moments) -> TrianglesView:
    assert labels.meaning is not None
    mean = np.concatenate(found.prototypes).mean(axis=0)
    shown = [at for at in range(len(labels.classes)) if (labels.meaning == at).any()][:MOST_CLASSES]
    corners, shares = [], []
    for true in shown:
        names, share = corners_of(labels.outputs, labels.meaning, true, mean[true])
        corners.append(names)
        shares.append([prototype[:, true] @ share for prototype in found.prototypes])
    by_moment = [np.stack([one[at] for one in shares], axis=1) for at in range(len(found.titles))]
    return TrianglesView(
        found.titles, tuple(labels.classes[at] for at in shown), tuple(corners), tuple(by_moment),
        found.sizes, found.numbers, found.names,
    )  # fmt: skip


def _view(scene: Scene, found: CommunityCourse) -> FlowView:
    over = found.over
    ever = np.unique(np.concatenate([one.members for one in over.moments]))
    flows = []
    for flow in over.flows:
        drawn = flow.copy()
        drawn[-1, -1] -= over.annotators - len(ever)
        flows.append(drawn)
    return FlowView(
        moments=tuple(found.titles),
        caption=found.caption,
        numbers=over.identity,
        flows=tuple(flows),
        names=found.names,
        events=tuple(_events(over, found.names, found.titles)),
        prototypes=found.prototypes,
        classes=scene.classes,
        outputs=scene.labels.outputs,
    )


def _events(over: CommunitiesOverTime, names: tuple[str, ...], titles: Sequence[str]) -> list[FlowEvent]:
    called = [
        name if name.startswith("community ") else f"{number} {name}" for number, name in enumerate(names, 1)
    ]
    return [
        FlowEvent(moment, number, words, EVENTS[kind] in ("ends", "joins"))
        for (moment, kind, number, _), words in zip(
            over.events.tolist(), over.told(called, [f"{title}:" for title in titles]), strict=True
        )
    ]
