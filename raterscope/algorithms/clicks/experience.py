"""Experience with annotators on earlier images, as priors for new images.

Counts of annotators on earlier images become priors of detection on the next image. The OEM-DEM paper
(section 4) instead starts the clustering of the next image with the reliabilities of eq. 12, see
`OEMSettings.carry_reliability` and `Experience.reliability`. The weight of experience is estimated from the
differences of annotators between images, as in `raterscope.algorithms.clicks.learning` for images that are
fused together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from raterscope.algorithms.clicks._shared_priors import (
    SPREAD,
    Advice,
    CrossImagePriors,
    Run,
    Tally,
    apply_advice,
    lessons_of,
    mark_log_odds,
    pooled,
    prior_attraction,
    tally_of,
)
from raterscope.algorithms.clicks._vote_model import (
    ClusterPosteriors,
    Prior,
    Problem,
    Stack,
    log_odds,
    log_votes,
)
from raterscope.algorithms.clicks.data import FloatArray, IntArray
from raterscope.algorithms.clicks.dem import DEMSettings, problem_of
from raterscope.algorithms.clicks.result import Fusion, Votes
from raterscope.algorithms.progress import Watch, silent

NODES = 13
"""Number of nodes of the ease of structures in the crowd's prior."""

ROUNDS = 5
"""Rounds of alternating estimates of an image's annotators and the ease of its structures."""


@dataclass(frozen=True, eq=False)
class Experience:
    """Expected votes of A annotators on I images."""

    annotators: tuple[str, ...]  # (A,): rising
    images: int
    # hits, lured: (A,): marks on structures, and on other clusters
    hits: FloatArray
    lured: FloatArray
    structures: FloatArray  # (A, K): structures on the images that each annotator saw, by node of ease
    artefacts: FloatArray  # (A, L): artefacts, by node of allure
    # inliers, outliers: (A,): marks in clusters, and outside of clusters
    inliers: FloatArray
    outliers: FloatArray
    ease: FloatArray  # (K,): structures of all images by node
    allure: FloatArray  # (L,): artefacts of all images, by node
    # votes, clusters: upper bounds of the weight of an annotator's votes on other images, and of clusters,
    # from the differences between images
    votes: float
    clusters: float

    @classmethod
    def none(cls) -> Self:
        """Return the experience before the first image."""
        empty, lures = np.empty(0), len(SPREAD)
        return cls(
            (), 0, empty, empty, np.empty((0, NODES)), np.empty((0, lures)), empty, empty,
            np.zeros(NODES), np.zeros(lures), 1.0, 1.0,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.annotators)

    def rows(self, names: Sequence[str]) -> IntArray:
        """Return the row of each of n names, (n,); -1 for unknown annotators."""
        index = {name: row for row, name in enumerate(self.annotators)}
        return np.array([index.get(name, -1) for name in names], dtype=np.int64)

    def reliability(self, names: Sequence[str]) -> FloatArray:
        """Return the share of each of n annotators' marks in clusters (eq. 12 over the images).

        The result, (n,), is NaN for annotators without a mark on these images.
        """
        rows = self.rows(names)
        reliability = np.full(len(rows), np.nan)
        known = np.flatnonzero(rows >= 0)
        inliers, marks = self.inliers[rows[known]], (self.inliers + self.outliers)[rows[known]]
        reliability[known] = np.divide(inliers, marks, out=np.full(len(known), np.nan), where=marks > 0)
        return reliability


def experience_of(
    fusions: Sequence[Fusion],
    annotators: Sequence[Sequence[str]],
    watch: Watch = silent,
    *,
    weights: Sequence[FloatArray | None] | None = None,
) -> Experience:
    """Gather the experience with annotators on some images.

    `annotators`: for each fusion, the names of its annotators, in its order; the same name is the same
    annotator. `weights`: (R,) or None for each fusion, the weights of its annotators (`Clicks.weights`). They
    affect the counts of structures; an annotator's own counts use all marks. The order of the images does not
    matter.
    """
    gathered = _gather(fusions, annotators, weights)
    return Experience.none() if gathered is None else gathered.experience(watch)


def experiences_of(
    fusions: Sequence[Fusion],
    annotators: Sequence[Sequence[str]],
    watch: Watch = silent,
    *,
    weights: Sequence[FloatArray | None] | None = None,
) -> list[Experience]:
    """Gather, for every image, the experience on all others.

    Its weight is estimated once, from all images.

    `fusions`, `annotators`, `watch`, `weights`: as for `experience_of`.
    """
    gathered = _gather(fusions, annotators, weights)
    if gathered is None:
        return [Experience.none() for _ in fusions]
    everything, rows = gathered.experience(watch), {i: row for row, i in enumerate(gathered.known)}
    return [gathered.without(everything, rows[i]) if i in rows else everything for i in range(len(fusions))]


@dataclass(frozen=True, eq=False)
class _Gathered:
    """Images with clusters: expected counts of their annotators, and marks in clusters."""

    known: list[int]
    names: tuple[str, ...]
    run: Run
    tally: Tally
    marks: list[FloatArray]  # (2, R) each: part of a cluster, and not

    def experience(self, watch: Watch) -> Experience:
        total = pooled(self.run, self.tally)
        lessons = lessons_of(self.run, self.tally, total, watch)
        marks = np.zeros((2, len(self.names)))
        for own, annotators in zip(self.marks, self.run.stack.annotators(), strict=True):
            marks[:, self.run.rows[annotators]] += own
        return Experience(
            annotators=self.names,
            images=len(self.known),
            hits=total.hits,
            lured=total.lured,
            structures=total.structures,
            artefacts=total.artefacts,
            inliers=marks[0],
            outliers=marks[1],
            ease=self.tally.structures.sum(axis=0),
            allure=self.tally.artefacts.sum(axis=0),
            votes=lessons.votes,
            clusters=lessons.clusters,
        )

    def without(self, everything: Experience, row: int) -> Experience:
        """Return the experience without an image."""
        if len(self.known) == 1:
            return Experience.none()
        first = self.run.stack.votes.annotators
        own, tally, marks = slice(first[row], first[row + 1]), self.tally, self.marks[row]
        others = {
            "hits": tally.hits[own], "lured": tally.lured[own], "structures": tally.structures[row],
            "artefacts": tally.artefacts[row], "inliers": marks[0], "outliers": marks[1],
        }  # fmt: skip
        remaining, rows = {}, self.run.rows[own]
        for name, counts in others.items():
            remaining[name] = getattr(everything, name).copy()
            remaining[name][rows] = np.maximum(remaining[name][rows] - counts, 0)
        return replace(
            everything,
            images=everything.images - 1,
            ease=np.maximum(everything.ease - tally.structures[row], 0),
            allure=np.maximum(everything.allure - tally.artefacts[row], 0),
            **remaining,
        )


def _gather(
    fusions: Sequence[Fusion],
    annotators: Sequence[Sequence[str]],
    weights: Sequence[FloatArray | None] | None,
) -> _Gathered | None:
    known = [i for i, fusion in enumerate(fusions) if len(fusion.clustering)]
    if not known:
        return None
    names = tuple(sorted({name for i in known for name in annotators[i]}))
    index = {name: row for row, name in enumerate(names)}
    allure = prior_attraction(len(names))
    images = []
    for i in known:
        rows = np.array([index[name] for name in annotators[i]], dtype=np.int64)
        problem = _problem(fusions[i], None if weights is None else weights[i])
        run = Run.of([problem], [rows], len(names))
        tally = tally_of(run, _looks(run.stack, fusions[i]), allure)
        clicks = fusions[i].rates.clicks
        inliers = np.nan_to_num(fusions[i].clustering.reliability) * clicks
        images.append((i, problem, rows, tally, np.array([inliers, clicks - inliers])))
    images.sort(key=lambda image: (annotators[image[0]], image[3].hits.tobytes()))
    order, problems, rows_of, tallies, marks = (list(column) for column in zip(*images, strict=True))
    tally = Tally(
        *(
            np.concatenate([getattr(own, name) for own in tallies])
            for name in ("hits", "structures", "lured", "artefacts")
        )
    )
    return _Gathered(order, names, Run.of(problems, rows_of, len(names)), tally, marks)


def apply_experience(problem: Problem, annotators: Sequence[str], experience: Experience) -> Problem:
    """Return the problem of an image with the prior from experience instead of the crowd's prior.

    A problem with another prior is returned unchanged. `annotators`: names of the image's annotators.
    """
    if not experience.images or not problem.prior.places:
        return problem
    advice = advice_for(problem.prior, annotators, experience)
    return apply_advice(Stack.of([problem]), advice).updated()[0]


def advice_for(prior: Prior, annotators: Sequence[str], experience: Experience) -> Advice:
    """Convert experience to the advice that a prior is made of.

    `prior`: prior of the image alone. `annotators`: unknown annotators are treated as average.
    """
    rows = experience.rows(annotators)
    tally = Tally(
        *(
            np.where(rows.reshape(-1, *[1] * (counts.ndim - 1)) >= 0, counts[rows], 0.0)
            if len(counts)
            else np.zeros((len(rows), *counts.shape[1:]))
            for counts in (experience.hits, experience.structures, experience.lured, experience.artefacts)
        )
    )
    votes = [
        np.full(len(rows), float(prior_votes.mean()) if len(prior_votes) else 1.0)
        for prior_votes in (prior.hit, prior.miss)
    ]
    odds, lure = mark_log_odds(prior.shift, (votes[0], votes[1]), tally)
    lessons = CrossImagePriors(
        odds, lure, tally.structures.sum(axis=1), experience.votes, experience.clusters
    )
    return Advice(lessons, experience.ease[None], experience.allure[None])


def _problem(fusion: Fusion, worth: FloatArray | None) -> Problem:
    """Prepare votes with the crowd's prior, without chance meetings."""
    zeros = np.zeros(len(fusion.marked))
    votes = Votes(fusion.marked, fusion.clustering.weight, fusion.verdict, zeros, 1.0, worth)
    return problem_of(votes, DEMSettings())


def _looks(stack: Stack, fusion: Fusion) -> ClusterPosteriors:
    """Estimate the ease of structures on an image, given which clusters are structures."""
    (problem,), present = stack.problems, fusion.detection.posterior
    prior = problem.prior
    odds, share = np.zeros(problem.marks.annotators), prior.share
    hits = problem.marks.sums(present)
    for _ in range(ROUNDS):
        joint = prior.trust * log_votes(stack, odds, prior.shift) + np.log(share)
        structure = np.exp(joint - np.logaddexp.reduce(joint, axis=1)[:, None]) * present[:, None]
        nodes = structure.sum(axis=0)
        seen = np.broadcast_to(nodes, (len(odds), len(nodes)))
        odds = log_odds(hits, seen, prior.shift, (prior.hit, prior.miss), odds)
        share = (nodes + prior.strength * prior.share) / (nodes.sum() + prior.strength)
    return ClusterPosteriors(structure, 1 - present, np.zeros(len(present)))
