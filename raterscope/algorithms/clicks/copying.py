"""Detection of annotators whose clicks are copies of another's.

Independent annotators click near a structure, each with an error of their own. The clicks of a copy have the
same errors: one person with two names, a table imported under a second name, or suggestions of a program that
several annotators accepted. Such annotators count as independent, and a few of them change the results of the
whole crowd.

Two annotators a and b have clicks at x_a and x_b on the same cluster, and c is the mean of the others' clicks
there. Were the two independent, the squared distance of x_a and x_b would have the expectation v_a + v_b of
their own variances. These are estimated by the distances from c, less the variance of c. Copies are much
closer than that. Two precise annotators are close, too, but then also close to c.

Many exact copies make the scatter of clicks seem so small that the others' clicks are clusters of their own.
Therefore annotators who often click at exactly the same position are found without clusters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from raterscope.algorithms.clicks.data import Clicks, FloatArray, IntArray
from raterscope.algorithms.clicks.result import Fusion

MIN_COMMON = 8
"""Minimum number of clusters with clicks of both annotators and of two others."""

SUSPECT = 0.25
"""Maximum squared distance of suspects' clicks, relative to the sum of their squared errors."""

CLOSE = 0.25
"""Maximum squared distance of copies, relative to that of independent clicks."""

ENOUGH = 300_000
"""Number of clicks from which on only some of the images are compared."""

MOST_PAIRS, MOST_CLUSTERS = 500, 50
"""Number of pairs of suspects, and of their common clusters, that are compared."""

CERTAIN = 4.0
"""Minimum of the estimated variances, in standard errors."""

SAME = 0.5
"""Minimum share of one's clicks that are at exactly the other's positions."""

CHANCE = 5.0
"""Minimum of this share as a multiple of that of most pairs: positions may be coarse, or offered to all."""

SAMPLE = 200
"""Number of annotators whose pairs show the share of most pairs."""


@dataclass(frozen=True)
class Copies:
    """Annotators whose clicks coincide."""

    annotators: tuple[str, ...]
    # root mean square distance of two clicks of theirs on a cluster, pixels; 0 at exactly the same positions
    distance: float
    expected: float  # the same of independent annotators with their errors; 0 if it is not known


@dataclass(frozen=True, eq=False)
class _Marks:
    """Clicks in clusters with clicks of three annotators or more, one for each annotator and cluster."""

    annotator: IntArray  # (N,)
    cluster: IntArray  # (N,): of all images in turn, rising
    position: FloatArray  # (N, 2)


def find_copies(clicks: Sequence[Clicks], fusions: Sequence[Fusion]) -> list[Copies]:
    """Find groups of annotators whose clicks are copies of each other, the largest group first.

    `clicks`, `fusions`: clicks of each image, and their fusion.
    """
    step = max(1, sum(map(len, clicks)) // ENOUGH)
    clicks, fusions = clicks[::step], fusions[::step]
    names = sorted({name for image in clicks for name in image.annotators})
    if not names:
        return []
    rows = {name: row for row, name in enumerate(names)}
    exact = _groups(_exact_copies(clicks, rows), len(names))
    groups = [Copies(tuple(names[row] for row in members), 0.0, 0.0) for members in exact]
    marks = _marks(clicks, fusions, rows)
    pairs = _suspects(marks, len(names))
    for suspects in _groups(pairs, len(names)):
        found: list[tuple[float, float]] = []
        copies: set[int] = set()
        for pair in pairs[:MOST_PAIRS]:
            if pair[0] not in suspects:
                continue
            distance, expected = _compare(marks, *pair, suspects)
            if distance < CLOSE * expected:
                found.append((distance, expected))
                copies.update(pair)
        if found and not any(copies <= {*members} for members in exact):
            of = tuple(names[row] for row in sorted(copies))
            groups.append(Copies(of, *np.sqrt(np.mean(found, axis=0)).tolist()))
    return sorted(groups, key=lambda group: -len(group.annotators))


def _groups(pairs: Sequence[tuple[int, int]], annotators: int) -> list[list[int]]:
    """Return annotators connected by pairs, in groups."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    if not pairs:
        return []
    graph = csr_array((np.ones(len(pairs)), np.transpose(pairs)), shape=(annotators, annotators))
    group = connected_components(graph, directed=False)[1]
    return [np.flatnonzero(group == own).tolist() for own in np.flatnonzero(np.bincount(group) > 1)]


def _exact_copies(clicks: Sequence[Clicks], rows: Mapping[str, int]) -> list[tuple[int, int]]:
    """Return pairs of annotators with most clicks of one at exactly the positions of the other."""
    from scipy.sparse import csr_array, triu

    own = [np.array([rows[name] for name in image.annotators], dtype=np.int64) for image in clicks]
    row = np.concatenate([own[at][image.annotator] for at, image in enumerate(clicks)])
    points = np.concatenate([image.points for image in clicks])
    image = np.repeat(np.arange(len(clicks)), [len(image) for image in clicks])
    order = np.lexsort((*points.T, image))
    new = (np.diff(points[order], axis=0, prepend=np.nan) != 0).any(axis=1)
    new |= np.diff(image[order], prepend=-1) != 0
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.cumsum(new) - 1
    at_place = csr_array((np.ones(len(row)), (row, place)), shape=(len(rows), len(row)))
    at_place.data[:] = 1  # of several clicks of an annotator at a position
    number = csr_array((np.ones(len(row)), (row, image)), shape=(len(rows), len(clicks)))
    looked = number.sign()
    most = np.argsort(-number.sum(axis=1), kind="stable")[:SAMPLE]
    common = (number[most] @ looked[most].T).toarray()
    upper = np.triu_indices(len(most), 1)
    least = np.minimum(common, common.T)[upper]
    share = (at_place[most] @ at_place[most].T).toarray()[upper] / np.maximum(least, 1)
    share = share[least >= MIN_COMMON]
    limit = max(SAME, CHANCE * float(np.quantile(share, 0.25))) if len(share) else np.inf
    if limit > 1:
        return []
    same = triu(at_place @ at_place.T, 1).tocoo()
    often = same.data >= MIN_COMMON
    a, b = same.row[often], same.col[often]
    least = np.minimum(*((number[one] * looked[other]).sum(axis=1) for one, other in ((a, b), (b, a))))
    copied = same.data[often] >= limit * least
    return list(zip(a[copied].tolist(), b[copied].tolist(), strict=True))


def _suspects(marks: _Marks, annotators: int) -> list[tuple[int, int]]:
    """Return pairs of annotators whose clicks are close."""
    from scipy.sparse import csr_array, csr_matrix, triu

    number = np.bincount(marks.cluster)
    mean = np.column_stack([np.bincount(marks.cluster, axis) for axis in marks.position.T])
    error = marks.position - (mean / np.maximum(number, 1)[:, None])[marks.cluster]
    shape, at = (annotators, len(number)), (marks.annotator, marks.cluster)
    x, y, there, square = (
        csr_array((value, at), shape=shape)
        for value in (*error.T, np.ones(len(error)), (error**2).sum(axis=1))
    )
    common = triu(there @ there.T, 1)
    often = common.data >= MIN_COMMON
    rows, columns = common.row[often], common.col[often]
    total = square @ there.T
    total = csr_matrix(total + total.T)
    distance = total - 2 * csr_matrix(x @ x.T + y @ y.T)
    close = np.array([], dtype=np.bool_)
    if len(rows):
        close = np.ravel(distance[rows, columns]) < SUSPECT * np.ravel(total[rows, columns])
    return list(zip(rows[close].tolist(), columns[close].tolist(), strict=True))


def _marks(clicks: Sequence[Clicks], fusions: Sequence[Fusion], rows: Mapping[str, int]) -> _Marks:
    parts, clusters = [], 0
    for image, fusion in zip(clicks, fusions, strict=True):
        cluster = fusion.clustering.nearest[fusion.mark]
        inside = (cluster >= 0) & (fusion.clustering.inlier[fusion.mark] >= 0.5)
        annotators = np.array([rows[name] for name in image.annotators], dtype=np.int64)
        parts.append(
            np.column_stack(
                [cluster[inside] + clusters, annotators[image.annotator[inside]], image.points[inside]]
            )
        )
        clusters += len(fusion.clustering)
    every = np.concatenate([np.empty((0, 4)), *parts])
    _, first = np.unique(every[:, 0] * len(rows) + every[:, 1], return_index=True)
    every = every[first]
    cluster = every[:, 0].astype(np.int64)
    every = every[np.bincount(cluster)[cluster] > 2] if len(every) else every
    return _Marks(every[:, 1].astype(np.int64), every[:, 0].astype(np.int64), every[:, 2:])


def _compare(marks: _Marks, a: int, b: int, suspects: Sequence[int]) -> tuple[float, float]:
    """Return the mean squared distance of two annotators' clicks, and that of independent ones.

    The second is 0 where it is not certain that they have errors of their own. `suspects`: annotators whose
    clicks do not count for the mean of the others.
    """
    of_a, of_b = (np.flatnonzero(marks.annotator == row) for row in (a, b))
    _, in_a, in_b = np.intersect1d(marks.cluster[of_a], marks.cluster[of_b], return_indices=True)
    squared, own = [], []
    for at, other in zip(
        of_a[in_a[:MOST_CLUSTERS]].tolist(), of_b[in_b[:MOST_CLUSTERS]].tolist(), strict=True
    ):
        begin, end = np.searchsorted(marks.cluster, marks.cluster[at] + np.arange(2))
        others = marks.position[begin:end][~np.isin(marks.annotator[begin:end], suspects)]
        if len(others) > 1:
            both = marks.position[[at, other]]
            squared.append(((both[0] - both[1]) ** 2).sum())
            doubt = others.var(axis=0, ddof=1).sum() / len(others)
            own.append(((both - others.mean(axis=0)) ** 2).sum() - 2 * doubt)
    if len(own) < MIN_COMMON:
        return 0.0, 0.0
    expected = float(np.mean(own))
    certain = expected > CERTAIN * np.std(own, ddof=1) / np.sqrt(len(own))
    return float(np.mean(squared)), expected if certain else 0.0
