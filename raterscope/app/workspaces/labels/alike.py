"""How alike annotators are, or what tasks they have in common, ordered by community. No Qt here."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.common_tasks import common_tasks
from raterscope.algorithms.annotators.similarity import fitting_scale, roots_of, similarity_of_roots
from raterscope.algorithms.progress import Watch
from raterscope.app.kinds.labels.answers import Groups
from raterscope.app.workspaces.labels.scene import Analysis, Scene

__all__ = ["Alike", "alike"]

MOST_ROWS = 500
"""More annotators than these are drawn several to a row."""

LINKS = 4
"""Of every mark in the graph, to those most like it."""

BRIGHTEST = 0.99
"""Few annotators have far more tasks in common than all others: this share of the links tells colours."""

CHUNK = 100


@dataclass(frozen=True, eq=False)
class Alike:
    """How alike annotators are, ordered by community, several to a row where there are many.

    Attributes
    ----------
    values : (m, m) float
        0 to 1; NaN for a single annotator's tasks in common with itself.
    edges : (C + 1,) int
        Where the communities begin and end among the rows.
    rows : tuple of m arrays of annotators
    places : (m, 2) float
        Of the rows as marks of a graph.
    links : (e, 2) int
        Between rows.
    weights : (e,) float
    label : str
        What the values are.
    high : float
        What is drawn the brightest.
    title : str
    """

    values: NDArray[np.floating]
    edges: NDArray[np.int64]
    rows: tuple[NDArray[np.int64], ...]
    places: NDArray[np.float64]
    links: NDArray[np.int64]
    weights: NDArray[np.float64]
    label: str
    high: float
    title: str


def alike(scene: Scene, analysis: Analysis, groups: Groups, watch: Watch) -> Alike:
    """Compare annotators, those of a community together and its most devoted members first."""
    watch(0.0, "comparing annotators")
    rows, edges = _rows(groups)
    if groups.basis == "tasks":
        values, label, title = _in_common(scene, rows, watch), "share of their tasks", "Tasks in common"
        high = max(float(np.nanquantile(values, BRIGHTEST)) if np.isfinite(values).any() else 0.0, 0.01)
    else:
        assert analysis.mean is not None
        values, label = _similarity(analysis.mean, rows, groups.found.scale), "similarity"
        title = "Similarity"
        high = 1.0
    return Alike(values, edges, rows, *_graph(values, edges), label, high, title)


def _rows(groups: Groups) -> tuple[tuple[NDArray[np.int64], ...], NDArray[np.int64]]:
    found = groups.found
    devotion = found.participation[np.arange(len(found.members)), found.community]
    order = np.lexsort((-devotion, found.community))
    share = max(1, -(-len(order) // MOST_ROWS))
    rows: list[NDArray[np.int64]] = []
    edges = [0]
    begin = 0
    for size in found.sizes().tolist():
        mine = order[begin : begin + size]
        begin += size
        rows += [found.members[mine[at : at + share]].astype(np.int64) for at in range(0, size, share)]
        edges.append(len(rows))
    return tuple(rows), np.array(edges)


def _similarity(
    mean: NDArray[np.float64], rows: tuple[NDArray[np.int64], ...], scale: float
) -> NDArray[np.floating]:
    roots = roots_of(np.array([mean[row].mean(axis=0) for row in rows]))
    classes = mean.shape[1]
    return similarity_of_roots(roots, roots, classes, scale or fitting_scale(roots, classes))


def _in_common(scene: Scene, rows: tuple[NDArray[np.int64], ...], watch: Watch) -> NDArray[np.floating]:
    """Give the links of annotators of two rows, equation 34 of the paper, on average."""
    labels = scene.labels
    every = common_tasks(labels.task, labels.annotator, len(labels.tasks), len(labels.annotators))
    those = every.of(np.concatenate(rows))
    size = np.array([len(row) for row in rows])
    begin = np.cumsum(size) - size
    to = np.empty((size.sum(), len(rows)), dtype=np.float32)
    for first in range(0, len(to), CHUNK):
        watch(first / len(to), "counting tasks in common")
        some = slice(first, min(first + CHUNK, len(to)))
        to[some] = np.add.reduceat(those.links(some), begin, axis=1)
    pairs = size[:, None] * size - np.diag(size)  # nobody is linked to itself
    total = np.add.reduceat(to, begin, axis=0).astype(np.float64)
    return np.where(pairs > 0, total / np.maximum(pairs, 1), np.nan)


def _graph(
    values: NDArray[np.floating], edges: NDArray[np.int64]
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
    weights = near[links[:, 0], links[:, 1]]
    joined = weights > 0
    return places, links[joined], weights[joined]
