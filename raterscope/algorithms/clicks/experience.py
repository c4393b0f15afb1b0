"""What earlier images say of annotators, for images whose first clicks are still to come.

Reliabilities learnt on one image start the next (OEM-DEM paper, section 4). How much they are worth there is
learnt as well, from how much annotators differ from image to image, see
`raterscope.algorithms.clicks.learning`, which does the same for images that are fused together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from raterscope.algorithms.clicks._lessons import (
    SPREAD,
    Advice,
    Image,
    Tally,
    advised,
    lessons_of,
    pooled,
    tally_of,
    usual_allure,
    ways_of,
)
from raterscope.algorithms.clicks._vote_model import Looks, Prior, Problem, log_odds, odds_of_votes
from raterscope.algorithms.clicks.data import FloatArray, IntArray
from raterscope.algorithms.clicks.dem import DEMSettings, problem_of
from raterscope.algorithms.clicks.results import Fusion, Votes
from raterscope.algorithms.progress import Watch, silent

__all__ = ["Experience", "advice_for", "experience_of", "informed"]

NODES = 13
"""Of the ease by which structures differ, in the crowd's prior."""

ROUNDS = 5
"""In which an image's annotators and the ease of its structures are found from each other."""


@dataclass(frozen=True, eq=False)
class Experience:
    """What I images say of A annotators, as expected votes.

    Attributes
    ----------
    annotators : tuple of A names
        Rising.
    images : int
    hits, lured : (A,) float64
        Marks on structures, and on what is none.
    structures : (A, K) float64
        Structures on the images that each annotator saw, by node of ease.
    artefacts : (A, L) float64
        What is none, by node of allure.
    inliers, outliers : (A,) float64
        Marks that are part of a cluster, and that are not.
    ease : (K,) float64
        Structures of all images by node.
    allure : (L,) float64
        What is none, of all images.
    votes, clusters : float
        How many votes of an annotator elsewhere are worth at most, and how many clusters: as many as the
        differences between images let them be.
    """

    annotators: tuple[str, ...]
    images: int
    hits: FloatArray
    lured: FloatArray
    structures: FloatArray
    artefacts: FloatArray
    inliers: FloatArray
    outliers: FloatArray
    ease: FloatArray
    allure: FloatArray
    votes: float
    clusters: float

    @classmethod
    def none(cls) -> Self:
        """Give what is held before the first image."""
        nobody, lures = np.empty(0), len(SPREAD)
        return cls(
            (), 0, nobody, nobody, np.empty((0, NODES)), np.empty((0, lures)), nobody, nobody,
            np.zeros(NODES), np.zeros(lures), 1.0, 1.0,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.annotators)

    def rows(self, names: Sequence[str]) -> IntArray:
        """Give the row of each of n names, (n,); -1 for who is not known."""
        index = {name: row for row, name in enumerate(self.annotators)}
        return np.array([index.get(name, -1) for name in names], dtype=np.int64)


def experience_of(
    fusions: Sequence[Fusion],
    annotators: Sequence[Sequence[str]],
    watch: Watch = silent,
    *,
    weights: Sequence[FloatArray | None] | None = None,
) -> Experience:
    """Gather what images say of their annotators.

    Parameters
    ----------
    fusions : sequence of Fusion
    annotators : sequence of names
        For each fusion, the names of its annotators, in its order; who has the same name is the same.
    watch : Watch
    weights : sequence of (R,) float64 or None, optional
        For each fusion, how much of an annotator each counts as (`Clicks.weights`). It bears on what is said
        of structures; of each annotator all of his own marks tell.

    Returns
    -------
    Experience
        The same for any order of the images.
    """
    known = [i for i, fusion in enumerate(fusions) if len(fusion.clustering)]
    if not known:
        return Experience.none()
    names = tuple(sorted({name for i in known for name in annotators[i]}))
    index = {name: row for row, name in enumerate(names)}
    images, tallies = [], []
    marks = np.zeros((2, len(names)))
    for i in known:
        rows = np.array([index[name] for name in annotators[i]], dtype=np.int64)
        image = Image(_problem(fusions[i], None if weights is None else weights[i]), rows)
        images.append(image)
        tallies.append(tally_of(image, _looks(image.problem, fusions[i]), usual_allure(len(names))))
        clicks = fusions[i].rates.clicks
        inliers = np.nan_to_num(fusions[i].clustering.reliability) * clicks
        marks[:, rows] += inliers, clicks - inliers
    order = sorted(range(len(images)), key=lambda i: (annotators[known[i]], tallies[i].hits.tobytes()))
    images, tallies = [images[i] for i in order], [tallies[i] for i in order]
    run = pooled(images, tallies, len(names))
    _, votes, clusters = lessons_of(images, tallies, run, watch)
    return Experience(
        annotators=names,
        images=len(images),
        hits=run.hits,
        lured=run.lured,
        structures=run.structures,
        artefacts=run.artefacts,
        inliers=marks[0],
        outliers=marks[1],
        ease=np.sum([tally.structures for tally in tallies], axis=0),
        allure=np.sum([tally.artefacts for tally in tallies], axis=0),
        votes=votes,
        clusters=clusters,
    )


def informed(problem: Problem, annotators: Sequence[str], experience: Experience) -> Problem:
    """Give an image the prior that experience makes.

    Parameters
    ----------
    problem : Problem
        With the crowd's prior; any other stays as it is.
    annotators : sequence of names
        Of the image.
    experience : Experience
    """
    if not experience.images or not problem.prior.places:
        return problem
    return advised(problem, advice_for(problem.prior, annotators, experience))


def advice_for(prior: Prior, annotators: Sequence[str], experience: Experience) -> Advice:
    """Put what experience says of annotators into the form that a prior is made of.

    Parameters
    ----------
    prior : Prior
        Of an image, before anything is known from others.
    annotators : sequence of names
        Who is not known is held for usual.
    experience : Experience
    """
    rows = experience.rows(annotators)
    tally = Tally(
        *(
            np.where(rows.reshape(-1, *[1] * (one.ndim - 1)) >= 0, one[rows], 0.0)
            if len(one)
            else np.zeros((len(rows), *one.shape[1:]))
            for one in (experience.hits, experience.structures, experience.lured, experience.artefacts)
        )
    )
    votes = [np.full(len(rows), float(one.mean()) if len(one) else 1.0) for one in (prior.hit, prior.miss)]
    odds, lure = ways_of(replace(prior, hit=votes[0], miss=votes[1]), tally)
    return Advice(
        odds, lure, tally.structures.sum(axis=1), experience.ease, experience.allure, experience.votes,
        experience.clusters,
    )  # fmt: skip


def _problem(fusion: Fusion, worth: FloatArray | None) -> Problem:
    """Put votes into the form of the crowd's prior; where clicks may meet by chance is left out."""
    nobody = np.zeros(len(fusion.marked))
    votes = Votes(fusion.marked, fusion.clustering.weight, fusion.verdict, nobody, 1.0, worth)
    return problem_of(votes, DEMSettings())


def _looks(problem: Problem, fusion: Fusion) -> Looks:
    """Find how easily the structures were seen, given which clusters are structures."""
    prior, present = problem.prior, fusion.detection.posterior
    odds, share = np.zeros(problem.marks.shape[0]), prior.share
    none = np.full(len(odds), 0.5)
    hits = problem.marks @ present
    for _ in range(ROUNDS):
        votes, _ = odds_of_votes(problem, odds, none, prior.shift)
        joint = prior.trust * votes + np.log(share)
        structure = np.exp(joint - np.logaddexp.reduce(joint, axis=1)[:, None]) * present[:, None]
        nodes = structure.sum(axis=0)
        seen = np.broadcast_to(nodes, (len(odds), len(nodes)))
        odds = log_odds(hits, seen, prior.shift, (prior.hit, prior.miss), odds)
        share = (nodes + prior.strength * prior.share) / (nodes.sum() + prior.strength)
    return Looks(structure, 1 - present, np.zeros(len(present)))
