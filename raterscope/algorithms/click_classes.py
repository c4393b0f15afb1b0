"""Classes of clicks: position and class fused together.

Annotators may give each click a class, such as ring, trophozoite or gametocyte. Fusion of the positions gives
clusters, as for clicks without classes. Each cluster is then a task, and the classes of its clicks are the
votes on this task. A hierarchical Dawid-Skene model [dawid1979]_, [paun2018]_ of all images of a run
estimates every annotator's confusion matrix and the class of every cluster. An annotator without a click in
the cluster has voted on the structure, not on its class, and does not vote here. Both models together are the
factorisation P(structure) P(class | structure), with the annotators' detection and naming independent given
the cluster.

References
----------
.. [dawid1979] A. P. Dawid and A. M. Skene, "Maximum likelihood estimation of observer error-rates using the
   EM algorithm", Journal of the Royal Statistical Society C 28 (1979) 20-28, doi:10.2307/2346806.
.. [paun2018] S. Paun, B. Carpenter, J. Chamberlain, D. Hovy, U. Kruschwitz and M. Poesio, "Comparing
   Bayesian models of annotation", Transactions of the Association for Computational Linguistics 6 (2018)
   571-585, doi:10.1162/tacl_a_00040.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from raterscope.algorithms.clicks.data import Clicks, FloatArray, IntArray
from raterscope.algorithms.clicks.result import Fusion, SpotClasses
from raterscope.algorithms.clicks.voting import clusters_of_spots
from raterscope.algorithms.progress import Watch, silent

UNKNOWN = -1


@dataclass(frozen=True, eq=False)
class _ImageVotes:
    """Votes of one image on the classes of its clusters, and the known classes, as indices into all names."""

    cluster: IntArray
    annotator: IntArray
    label: IntArray
    known: IntArray


def add_classes(
    clicks: Sequence[Clicks],
    fusions: Sequence[Fusion],
    others: Sequence[tuple[Clicks, Fusion]] = (),
    watch: Watch = silent,
) -> list[Fusion]:
    """Estimate the class of every cluster from the classes of its clicks.

    The same name is the same annotator on all images. Weights of annotators apply to positions only.

    `fusions`: fusion of each image. `others`: images fused earlier, which also inform the annotators'
    confusion matrices. The fusions are returned in their order; unchanged if the clicks name fewer than two
    classes.

    Examples
    --------
    >>> from raterscope.algorithms.clicks.fusion import fuse
    >>> from raterscope.algorithms.simulation.click_crowds import separated_crowd
    >>> clicks = separated_crowd(20, seed=3).clicks
    >>> named = replace(clicks, classes=("ring", "schizont"), label=(clicks.x > 500).astype(np.int64))
    >>> (fusion,) = add_classes([named], [fuse(named)])
    >>> [fusion.classes.names[label] for label in fusion.classes.label()[:3]]
    ['ring', 'schizont', 'ring']
    """
    pairs = [*zip(clicks, fusions, strict=True), *others]
    names = class_names([image_clicks for image_clicks, _ in pairs])
    if len(names) < 2:
        return list(fusions)
    index = {name: number for number, name in enumerate(names)}
    annotators = {name: 0 for image_clicks, _ in pairs for name in image_clicks.annotators}
    annotators = {name: number for number, name in enumerate(annotators)}
    votes = [_votes_of(image_clicks, fusion, index, annotators) for image_clicks, fusion in pairs]
    posterior, accuracy = _estimate(votes, names, tuple(annotators), watch)
    classified, first = [], 0
    for image_clicks, fusion, image in zip(clicks, fusions, votes, strict=False):
        count = np.zeros((len(image.known), len(names)), dtype=np.int64)
        np.add.at(count, (image.cluster, image.label), 1)
        rows = slice(first, first + len(image.known))
        own = np.array([accuracy[annotators[name]] for name in image_clicks.annotators], dtype=np.float64)
        classified.append(
            replace(fusion, classes=SpotClasses(names, posterior[rows].copy(), count, image.known, own))
        )
        first = rows.stop
    return classified


def class_names(clicks: Sequence[Clicks]) -> tuple[str, ...]:
    """Return the classes that clicks or decided spots have, in alphabetical order."""
    used: set[str] = set()
    for image_clicks in clicks:
        used.update(image_clicks.known.classes)
        if image_clicks.label is not None:
            used.update(image_clicks.classes[label] for label in np.unique(image_clicks.label) if label >= 0)
    return sort_classes(used)


def sort_classes(names: Collection[str]) -> tuple[str, ...]:
    """Return the distinct names of classes, except the empty one, in alphabetical order."""
    return tuple(sorted({*names} - {""}, key=lambda name: (name.casefold(), name)))


def _votes_of(
    clicks: Clicks, fusion: Fusion, index: dict[str, int], annotators: dict[str, int]
) -> _ImageVotes:
    known = np.full(len(fusion.clustering), UNKNOWN, dtype=np.int64)
    if any(clicks.known.classes):
        cluster = clusters_of_spots(clicks.merged()[0], fusion.clustering, clicks.known)
        for spot in np.flatnonzero((cluster >= 0) & clicks.known.present):
            known[cluster[spot]] = index.get(clicks.known.classes[spot], UNKNOWN)
    none = np.empty(0, dtype=np.int64)
    if clicks.label is None or not len(fusion.clustering):
        return _ImageVotes(none, none, none, known)
    cluster = fusion.clustering.nearest[fusion.mark]
    counts = (clicks.label >= 0) & (cluster >= 0) & fusion.marked[clicks.annotator, cluster]
    # An annotator's last click in a cluster counts: it corrects the earlier ones.
    key = clicks.annotator[counts] * len(fusion.clustering) + cluster[counts]
    _, last = np.unique(key[::-1], return_index=True)
    rows = np.flatnonzero(counts)[len(key) - 1 - last]
    translate = np.array([index.get(name, UNKNOWN) for name in clicks.classes], dtype=np.int64)
    numbers = np.array([annotators[name] for name in clicks.annotators], dtype=np.int64)
    return _ImageVotes(cluster[rows], numbers[clicks.annotator[rows]], translate[clicks.label[rows]], known)


def _estimate(
    images: Sequence[_ImageVotes], names: tuple[str, ...], annotators: tuple[str, ...], watch: Watch
) -> tuple[FloatArray, FloatArray]:
    """Fuse the votes of all images; return posteriors (tasks, C) and each annotator's accuracy."""
    from raterscope.algorithms.labels.data import Labels
    from raterscope.algorithms.labels.fusion import LabelPlan, run

    begin = np.cumsum([0, *(len(image.known) for image in images)])
    task = np.concatenate([first + image.cluster for first, image in zip(begin, images, strict=False)])
    labels = Labels(
        task=task.astype(np.int32),
        annotator=np.concatenate([image.annotator for image in images]).astype(np.int32),
        label=np.concatenate([image.label for image in images]).astype(np.int16),
        tasks=tuple(map(str, range(int(begin[-1])))),
        annotators=annotators,
        outputs=names,
        classes=names,
        known=np.concatenate([image.known for image in images]).astype(np.int16),
    )

    def report(fraction: float, text: str, **_: Any) -> None:
        watch(fraction, f"classes: {text}")

    fusion = run(labels, LabelPlan(), report)
    right = np.einsum("kjj,j->k", fusion.confusion.mean(), fusion.shares)
    voted = labels.votes_of_annotators() > 0
    return fusion.posterior, np.where(voted, right, np.nan)
