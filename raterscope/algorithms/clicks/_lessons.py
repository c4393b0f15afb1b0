"""What the images of a run teach each other of their crowd, see `learn`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from raterscope.algorithms.clicks._vote_model import EDGE, Looks, Prior, Problem, log_odds, odds_of_votes
from raterscope.algorithms.clicks.data import FloatArray, IntArray
from raterscope.algorithms.progress import Watch

__all__ = [
    "SPREAD",
    "Advice",
    "Image",
    "Tally",
    "advised",
    "allure_of",
    "lessons_of",
    "pooled",
    "tally_of",
    "taught",
    "usual_allure",
    "ways_of",
]

FEW = 2.0
"""Structures on an image, or seen by an annotator, from which on they say something of the differences."""

ENOUGH = 20.0
"""Structures on other images that are half of what is needed to trust the weight learnt from them."""

WEIGHT = (1.0, 60.0)
"""Least and most votes, or clusters, that the other images weigh, however few or many they hold."""

SPREAD = np.linspace(-4, 4, 17)
"""Nodes of the log odds by which artefacts differ."""

ARTEFACT = 0.25
"""Expected share of the annotators that an artefact draws: the mean of Beta(1, 3)."""

LURE = float(np.log(ARTEFACT / (1 - ARTEFACT)))
"""Its log odds."""

USUAL_ARTEFACTS = 20.0
"""Artefacts that what is usual of them weighs, for every annotator and for how they differ."""

USUAL_STRUCTURES = 5.0
"""Structures that what is usual of how they differ weighs."""


@dataclass(frozen=True, eq=False)
class Image:
    """Votes of an image with the prior it has by itself, and its annotators' rows among all of the run."""

    problem: Problem
    rows: IntArray  # (R,)


@dataclass(frozen=True, eq=False)
class Tally:
    """What is expected of R annotators: their marks on structures and artefacts, and how many of these.

    The numbers are by node of ease; of an image (K,) and (L,), of the run's annotators (R, K) and (R, L).
    """

    hits: FloatArray
    structures: FloatArray
    lured: FloatArray
    artefacts: FloatArray


@dataclass(frozen=True, eq=False)
class Allure:
    """How artefacts draw all R annotators of the run: log odds of a mark at node 0, share at each node."""

    lure: FloatArray  # (R,)
    spread: FloatArray  # (L,)


@dataclass(frozen=True, eq=False)
class Lesson:
    """What the other images say of an image's R annotators, and how it differs from them.

    Attributes
    ----------
    odds, lure : (R,) float64
        Log odds of a mark on a structure and on an artefact, at node 0.
    seen : (R,) float64
        Structures that each annotator saw on the other images.
    ease : float
        By how much the log odds on this image's structures lie above what the others let expect.
    expected, variance : (R,) float64
        Of the marks on this image's structures, at that ease.
    worth : (R,) float64
        How much each annotator counts.
    """

    odds: FloatArray
    lure: FloatArray
    seen: FloatArray
    ease: float
    expected: FloatArray
    variance: FloatArray
    worth: FloatArray


@dataclass(frozen=True, eq=False)
class Advice:
    """What other images say for one of R annotators, and how much that weighs.

    Attributes
    ----------
    odds, lure : (R,) float64
        As of a `Lesson`.
    seen : (R,) float64
        Structures that each annotator saw there.
    structures : (K,) float64
    artefacts : (L,) float64
        Of the other images by node of ease.
    votes, clusters : float
        Votes of an annotator, and clusters, that all this is worth at most.
    """

    odds: FloatArray
    lure: FloatArray
    seen: FloatArray
    structures: FloatArray
    artefacts: FloatArray
    votes: float
    clusters: float


def usual_allure(annotators: int) -> Allure:
    """Give what is held of artefacts before the votes are seen."""
    return Allure(np.full(annotators, LURE), _usual_spread())


def allure_of(tallies: Sequence[Tally], run: Tally) -> Allure:
    """Learn how artefacts draw annotators from the tallies of all images and their sum."""
    artefacts = _summed([tally.artefacts for tally in tallies])
    return Allure(_lure(run.lured, run.artefacts), _blended(artefacts, _usual_spread(), USUAL_ARTEFACTS))


def tally_of(image: Image, now: Looks, allure: Allure) -> Tally:
    """Count what is expected of an image's annotators."""
    marks = image.problem.marks
    drawn = _drawn(image.problem, allure.lure[image.rows], allure.spread)
    share = np.exp(drawn - np.logaddexp.reduce(drawn, axis=1)[:, None])
    return Tally(marks @ now.present, now.structure.sum(axis=0), marks @ now.artefact, now.artefact @ share)


def _drawn(problem: Problem, lure: FloatArray, spread: FloatArray) -> FloatArray:
    """Give the log probability of each cluster's votes and each node, were it an artefact: (M, L).

    As far as the votes are believed.
    """
    votes, _ = odds_of_votes(problem, lure, np.full(len(lure), 0.5), SPREAD)
    joint: FloatArray = problem.prior.trust * votes + np.log(spread)
    return joint


def pooled(images: Sequence[Image], tallies: Sequence[Tally], annotators: int) -> Tally:
    """Sum over images, for every annotator of the run."""
    nodes, lures = len(tallies[0].structures), len(SPREAD)
    run = Tally(
        np.zeros(annotators), np.zeros((annotators, nodes)),
        np.zeros(annotators), np.zeros((annotators, lures)),
    )  # fmt: skip
    for image, tally in zip(images, tallies, strict=True):
        for name in ("hits", "structures", "lured", "artefacts"):
            getattr(run, name)[image.rows] += getattr(tally, name)
    return run


def taught(images: Sequence[Image], tallies: Sequence[Tally], run: Tally, watch: Watch) -> list[Problem]:
    """Give every image the prior that the others make."""
    structures = _summed([tally.structures for tally in tallies])
    artefacts = _summed([tally.artefacts for tally in tallies])
    lessons, votes, clusters = lessons_of(images, tallies, run, watch)
    return [
        advised(
            image.problem,
            Advice(
                lesson.odds, lesson.lure, lesson.seen, structures - tally.structures,
                artefacts - tally.artefacts, votes, clusters,
            ),
        )
        for image, tally, lesson in zip(images, tallies, lessons, strict=True)
    ]  # fmt: skip


def lessons_of(
    images: Sequence[Image], tallies: Sequence[Tally], run: Tally, watch: Watch
) -> tuple[list[Lesson], float, float]:
    """Learn what the others say of each image, and how many votes and clusters that is worth at most."""
    prior = images[0].problem.prior
    structures = _summed([tally.structures for tally in tallies])
    share = _blended(structures, prior.share, USUAL_STRUCTURES)
    lessons = []
    for done, (image, tally) in enumerate(zip(images, tallies, strict=True)):
        lessons.append(_lesson(image, tally, run, share))
        watch((done + 1) / len(images), "learning from the other images")
    votes = _weight_of_votes(tallies, lessons)
    return lessons, votes, _weight_of_clusters(tallies, lessons, share, prior.shift)


def advised(problem: Problem, advice: Advice) -> Problem:
    """Give an image the prior that others make."""
    own, seen = problem.prior, advice.seen
    chance = 1 / (1 + np.exp(-advice.odds))
    weight = np.maximum(own.hit + own.miss + advice.votes * seen / (advice.votes + seen), EDGE)
    found = float(advice.structures.sum())
    prior = replace(
        own,
        hit=weight * chance,
        miss=weight * (1 - chance),
        share=_blended(advice.structures, own.share, USUAL_STRUCTURES),
        strength=own.strength + (advice.clusters - own.strength) * found / (found + ENOUGH),
    )
    spread = _blended(advice.artefacts, _usual_spread(), USUAL_ARTEFACTS)
    artefact = np.logaddexp.reduce(_drawn(problem, advice.lure, spread), axis=1)
    return replace(problem, prior=prior, artefact=artefact)


def _lesson(image: Image, tally: Tally, run: Tally, share: FloatArray) -> Lesson:
    prior, rows = image.problem.prior, image.rows
    others = Tally(
        np.maximum(run.hits[rows] - tally.hits, 0),
        np.maximum(run.structures[rows] - tally.structures, 0),
        np.maximum(run.lured[rows] - tally.lured, 0),
        np.maximum(run.artefacts[rows] - tally.artefacts, 0),
    )
    odds, lure = ways_of(prior, others)
    worth = image.problem.worth
    number, ease = float(tally.structures.sum()), 0.0
    expected = variance = np.zeros(len(rows))
    for _ in range(20):
        chance = 1 / (1 + np.exp(-(odds[:, None] + prior.shift + ease)))
        expected, variance = number * (chance @ share), number * ((chance * (1 - chance)) @ share)
        slope = float((worth * (tally.hits - expected)).sum()) / max(float((worth * variance).sum()), EDGE)
        ease = min(max(ease + min(max(slope, -1.0), 1.0), -4.0), 4.0)
        if abs(slope) < 1e-6:
            break
    return Lesson(odds, lure, others.structures.sum(axis=1), ease, expected, variance, worth)


def ways_of(prior: Prior, tally: Tally) -> tuple[FloatArray, FloatArray]:
    """Give the log odds, at node 0, of each annotator's mark on a structure and on an artefact."""
    nobody = np.zeros(len(tally.hits))
    odds = log_odds(tally.hits, tally.structures, prior.shift, (prior.hit, prior.miss), nobody)
    return odds, _lure(tally.lured, tally.artefacts)


def _lure(lured: FloatArray, artefacts: FloatArray) -> FloatArray:
    usual = np.full(len(lured), USUAL_ARTEFACTS)
    return log_odds(
        lured, artefacts, SPREAD, (usual * ARTEFACT, usual * (1 - ARTEFACT)), np.full(len(lured), LURE)
    )


def _weight_of_votes(tallies: Sequence[Tally], lessons: Sequence[Lesson]) -> float:
    """Learn how many votes of an annotator elsewhere are worth, at most, from overdispersion.

    Marks vary by a factor 1 + (n - 1) / (weight + 1) more than those of a coin, were the chance of a mark
    drawn anew for every image from a Beta distribution of that weight; what is not known of the chance itself
    comes on top.
    """
    more = most = 0.0
    for tally, lesson in zip(tallies, lessons, strict=True):
        number, known = float(tally.structures.sum()), lesson.seen > FEW
        if number > FEW:
            square = (tally.hits - lesson.expected)[known] ** 2
            variance, seen, worth = lesson.variance[known], lesson.seen[known], lesson.worth[known]
            more += float((worth * (square - variance - variance * number / seen)).sum())
            most += float((worth * variance).sum()) * (number - 1)
    share = more / most if most > 0 else 1.0
    return float(np.clip(1 / max(share, EDGE) - 1, *WEIGHT))


def _weight_of_clusters(
    tallies: Sequence[Tally], lessons: Sequence[Lesson], share: FloatArray, shift: FloatArray
) -> float:
    """Learn how many clusters the other images' structures are worth, at most, from the images' ease.

    Were the shares of the nodes drawn anew for every image from a Dirichlet distribution of weight w, the
    mean ease would have 1 / (w + 1) of the variance among structures.
    """
    number = np.array([float(tally.structures.sum()) for tally in tallies])
    ease = np.array([lesson.ease for lesson in lessons])[number > FEW]
    number = number[number > FEW]
    among = float(share @ shift**2 - (share @ shift) ** 2)
    if len(number) < 2:
        return WEIGHT[0]
    trust = number / (number + 5)
    between = np.average((ease - np.median(ease)) ** 2 - among / number, weights=trust)
    return float(np.clip(among / max(float(between), EDGE) - 1, *WEIGHT))


def _blended(nodes: FloatArray, usual: FloatArray, weight: float) -> FloatArray:
    """Give the share at each node, with what is usual counted as so many clusters."""
    counts = np.maximum(nodes, 0) + weight * usual
    shares: FloatArray = counts / counts.sum()
    return shares


def _usual_spread() -> FloatArray:
    """Give the shares of artefacts at the nodes that make the share of annotators a Beta(1, 3)."""
    share = 1 / (1 + np.exp(-(LURE + SPREAD)))
    density = share * (1 - share) ** 3
    return np.asarray(density / density.sum(), dtype=np.float64)


def _summed(parts: Sequence[FloatArray]) -> FloatArray:
    return np.asarray(np.sum(parts, axis=0), dtype=np.float64)
