"""Communities of annotators: their cards, who takes part in which, and how alike everybody is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal

from raterscope.algorithms.annotators.similarity import fitting_scale, roots_of, similarity_of_roots
from raterscope.algorithms.progress import Watch
from raterscope.app.jobs import Jobs
from raterscope.app.workspaces.labels import view
from raterscope.app.workspaces.labels.scene import Analysis, Groups, Scene
from raterscope.app.workspaces.labels.screen import LabelsScreen
from raterscope.widgets.panels.community_cards import CommunitiesView, CommunityCards
from raterscope.widgets.plots.participation_bars import ParticipationBars

__all__ = ["Alike", "Similar", "alike", "show_cards", "show_participation"]

MOST_ROWS = 500
"""More annotators than these are drawn several to a row."""

LINKS = 4
"""Of every mark in the graph, to those most like it."""

METHODS = {"nmf": "by behaviour, non-negative factorisation", "louvain": "by behaviour, Louvain"}


def show_cards(cards: CommunityCards, scene: Scene | None, analysis: Analysis | None) -> None:
    """Show a card a community; nothing where none was looked for."""
    groups = None if analysis is None else analysis.groups
    if scene is None or groups is None:
        cards.show_communities(None)
        return
    found = groups.found
    cards.show_communities(
        CommunitiesView(
            names=groups.names,
            members=found.sizes(),
            share=groups.votes,
            accuracy=groups.accuracy,
            prototype=found.prototype,
            classes=scene.classes,
            outputs=scene.labels.outputs,
            words=f"{METHODS.get(found.method, found.method)} | modularity {found.modularity:.2f}",
        )
    )


def show_participation(
    bars: ParticipationBars,
    scene: Scene | None,
    analysis: Analysis | None,
    chosen: tuple[int, ...],
    *,
    blind: bool,
) -> None:
    """Show how much those chosen, or all, take part in each community."""
    groups = None if analysis is None else analysis.groups
    if scene is None or groups is None:
        bars.show_participation(np.zeros((0, 0)), (), ())
        return
    found = groups.found
    rows = np.flatnonzero(np.isin(found.members, chosen)) if chosen else np.arange(len(found.members))
    names = tuple(view.name_of(scene, int(who), blind=blind) for who in found.members[rows].tolist())
    bars.show_participation(found.participation[rows], names, groups.names)


@dataclass(frozen=True, eq=False)
class Alike:
    """How alike annotators are, ordered by community, several to a row where there are many.

    Attributes
    ----------
    values : (m, m) float32
    edges : (C + 1,) int
        Where the communities begin and end among the rows.
    rows : tuple of m arrays of annotators
    names : tuple of m words
    places : (m, 2) float
        Of the rows as marks of a graph.
    links : (e, 2) int
        Between rows.
    weights : (e,) float
    """

    values: NDArray[np.float32]
    edges: NDArray[np.int64]
    rows: tuple[NDArray[np.int64], ...]
    names: tuple[str, ...]
    places: NDArray[np.float64]
    links: NDArray[np.int64]
    weights: NDArray[np.float64]


class Similar(QObject):
    """Draws who is like whom, once that is looked at.

    Signals
    -------
    chosen(tuple of int)
        The annotators of a row.
    """

    chosen = Signal(object)

    def __init__(self, jobs: Jobs, screen: LabelsScreen, parent: QObject) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self._screen = screen
        self._scene: Scene | None = None
        self._groups: Groups | None = None
        self._mean: NDArray[np.float64] | None = None
        self._asked = 0
        self._drawn: Alike | None = None
        screen.middle_tabs.currentChanged.connect(self._draw)
        screen.similarity.rows_chosen.connect(self._on_rows)

    def show(self, scene: Scene | None, analysis: Analysis | None) -> None:
        """Take another question or answer."""
        self._asked += 1
        self._scene = scene
        self._groups = None if analysis is None else analysis.groups
        self._mean = None if analysis is None else analysis.mean
        self._drawn = None
        self._screen.similarity.clear()
        self._draw()

    def _draw(self) -> None:
        seen = self._screen.middle_tabs.currentWidget()
        if (
            self._scene is None or self._groups is None or self._mean is None or self._drawn is not None
            or seen is None or not seen.isAncestorOf(self._screen.similarity)
        ):  # fmt: skip
            return
        work = partial(_alike, self._scene, self._groups, self._mean)
        job = self._jobs.start("Comparing annotators", work, quiet=True)
        job.finished.connect(partial(self._on_alike, self._asked))

    def _on_alike(self, asked: int, drawn: Alike) -> None:
        if asked != self._asked:
            return
        self._drawn = drawn
        community = np.repeat(np.arange(len(drawn.edges) - 1), np.diff(drawn.edges))
        picture = self._screen.similarity
        picture.show_similarity(drawn.values, drawn.edges, drawn.names)
        picture.show_graph(drawn.places, drawn.links, drawn.weights, drawn.names, community)

    def _on_rows(self, row: int, column: int) -> None:
        if self._drawn is not None:
            both = np.unique(np.concatenate([self._drawn.rows[row], self._drawn.rows[column]]))
            self.chosen.emit(tuple(both.tolist()))


def _alike(scene: Scene, groups: Groups, mean: NDArray[np.float64], watch: Watch) -> Alike:
    watch(0.0, "comparing annotators")
    return alike(scene, groups, mean)


def alike(scene: Scene, groups: Groups, mean: NDArray[np.float64]) -> Alike:
    """Compare annotators, those of a community together and its most devoted members first."""
    found = groups.found
    devotion = found.participation[np.arange(len(found.members)), found.community]
    order = np.lexsort((-devotion, found.community))
    sizes = found.sizes()
    share = max(1, -(-len(order) // MOST_ROWS))
    rows: list[NDArray[np.int64]] = []
    edges = [0]
    begin = 0
    for size in sizes.tolist():
        mine = order[begin : begin + size]
        begin += size
        rows += [found.members[mine[at : at + share]].astype(np.int64) for at in range(0, size, share)]
        edges.append(len(rows))
    middle = np.array([mean[row].mean(axis=0) for row in rows])
    roots = roots_of(middle)
    scale = fitting_scale(roots, mean.shape[1])
    values = similarity_of_roots(roots, roots, mean.shape[1], scale)
    names = tuple(
        scene.labels.annotators[int(row[0])] if len(row) == 1 else f"{len(row)} annotators" for row in rows
    )
    return Alike(values, np.array(edges), tuple(rows), names, *_graph(values, np.array(edges)))


def _graph(
    values: NDArray[np.float32], edges: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    """Lay marks out, a disc a community round a circle, and link each to those most like it."""
    count = len(edges) - 1
    places = np.zeros((len(values), 2))
    for at in range(count):
        step = np.arange(edges[at + 1] - edges[at])
        radius = 0.6 * np.sqrt((step + 0.5) / max(len(values), 1)) * min(1.5, count**0.5)
        turn, middle = step * np.pi * (3 - 5**0.5), 2 * np.pi * at / max(count, 1)
        centre = np.array([np.cos(middle), np.sin(middle)]) * (count > 1)
        places[edges[at] : edges[at + 1]] = centre + radius[:, None] * np.column_stack(
            [np.cos(turn), np.sin(turn)]
        )
    near = values.astype(float)
    np.fill_diagonal(near, -1.0)
    nearest = np.argsort(-near, axis=1, kind="stable")[:, : min(LINKS, max(len(values) - 1, 0))]
    pairs = np.column_stack([np.repeat(np.arange(len(values)), nearest.shape[1]), nearest.ravel()])
    links = np.unique(np.sort(pairs, axis=1), axis=0)
    return places, links, near[links[:, 0], links[:, 1]]
