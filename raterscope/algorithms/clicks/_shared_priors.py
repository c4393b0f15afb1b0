"""Priors of images from the other images of a run.

Arrays hold all images of a run, concatenated, see `Stack`: A annotators of the run, R annotators of the
images (an annotator counts once for each image), M clusters, K nodes of the ease of structures, L nodes of
the attraction of artefacts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from raterscope.algorithms.clicks._vote_model import (
    EDGE,
    ClusterPosteriors,
    Problem,
    Stack,
    log_odds,
    log_votes,
)
from raterscope.algorithms.clicks.data import FloatArray, IntArray
from raterscope.algorithms.progress import Watch

FEW = 2.0
"""Minimum structures, on an image or seen by an annotator, for information on differences."""

ENOUGH = 20.0
"""Number of structures on other images at which the weight estimated from them counts half."""

WEIGHT = (1.0, 60.0)
"""Limits of the weight of the other images, in votes or clusters."""

SPREAD = np.linspace(-4, 4, 17)
"""Nodes of the log odds by which artefacts differ in attraction."""

ARTEFACT = 0.25
"""Expected share of annotators that an artefact attracts: the mean of Beta(1, 3)."""

ARTEFACT_LOG_ODDS = float(np.log(ARTEFACT / (1 - ARTEFACT)))
"""Log odds of `ARTEFACT`."""

USUAL_ARTEFACTS = 20.0
"""Number of artefacts that the prior of artefacts counts as, for every annotator and for their variation."""

USUAL_STRUCTURES = 5.0
"""Number of structures that the prior of their variation counts as."""

VALUES_AT_ONCE = 500_000
"""Number of values (annotators by nodes) between two calls of the watch, about 50 ms."""


@dataclass(frozen=True, eq=False)
class Run:
    """Votes of the images of a run, each with its own prior, and the rows of their annotators in the run."""

    stack: Stack
    rows: IntArray  # (R,)
    annotators: int
    copies: IntArray  # (I,): number of images with the same votes, itself included; together they count once

    @classmethod
    def of(
        cls,
        problems: Sequence[Problem],
        rows: Sequence[IntArray],
        annotators: int,
        copies: Sequence[int] | IntArray | None = None,
    ) -> Run:
        """Combine the votes on each image, and the row of each of its annotators."""
        number = np.ones(len(problems), dtype=np.int64) if copies is None else np.array(copies)
        return cls(Stack.of(problems), np.concatenate(rows), annotators, number)

    def only(self, images: IntArray) -> Run:
        """Return the run with some images alone."""
        rows = np.split(self.rows, self.stack.votes.annotators[1:-1])
        problems = [self.stack.problems[image] for image in images]
        return Run.of(problems, [rows[image] for image in images], self.annotators, self.copies[images])

    def sum(self, counts: FloatArray) -> FloatArray:
        """Sum counts, (I, K), over the images."""
        return np.asarray((counts / self.copies[:, None]).sum(axis=0))


@dataclass(frozen=True, eq=False)
class Tally:
    """Expected marks of annotators on structures and artefacts, and expected numbers of both, by node.

    Shapes by image: (R,), (I, K), (R,), (I, L); by annotator of the run: (A,), (A, K), (A,), (A, L).
    """

    hits: FloatArray
    structures: FloatArray
    lured: FloatArray
    artefacts: FloatArray


@dataclass(frozen=True, eq=False)
class ArtefactAttraction:
    """Attraction of artefacts for all A annotators: log odds of a mark at node 0, share at each node."""

    lure: FloatArray  # (A,)
    spread: FloatArray  # (L,)


@dataclass(frozen=True, eq=False)
class CrossImagePriors:
    """Prior of each image's annotators from the other images, and the image's difference from them."""

    # odds, lure: (R,): log odds of a mark on a structure and on an artefact, at node 0
    odds: FloatArray
    lure: FloatArray
    seen: FloatArray  # (R,): structures that each annotator saw on the other images
    # votes, clusters: upper bounds of the weight of the other images, in votes of an annotator and in
    # clusters
    votes: float
    clusters: float


@dataclass(frozen=True, eq=False)
class Advice:
    """Prior of each image's annotators from other images, and its weight."""

    cross_image: CrossImagePriors
    structures: FloatArray  # (I, K)
    artefacts: FloatArray  # (I, L): of the other images by node of ease


def prior_attraction(annotators: int) -> ArtefactAttraction:
    """Return the prior attraction of artefacts."""
    return ArtefactAttraction(np.full(annotators, ARTEFACT_LOG_ODDS), _usual_spread())


def estimate_attraction(run: Run, tally: Tally, total: Tally) -> ArtefactAttraction:
    """Estimate how artefacts attract annotators, from the tally of all images and its sum by annotator."""
    artefacts = run.sum(tally.artefacts)
    return ArtefactAttraction(
        _lure(total.lured, total.artefacts), _blend(artefacts, _usual_spread(), USUAL_ARTEFACTS)
    )


def tally_of(run: Run, now: ClusterPosteriors, allure: ArtefactAttraction) -> Tally:
    """Compute the expected counts of each image's annotators."""
    stack, votes = run.stack, run.stack.votes
    share = _artefact_votes(stack, allure.lure[run.rows], np.log(allure.spread))
    _log_sum(share)
    share *= (now.artefact / share.sum(axis=1))[:, None]
    structures = np.add.reduceat(now.structure, votes.clusters[:-1])  # every image has clusters
    artefacts = np.add.reduceat(share, votes.clusters[:-1])
    cluster = np.repeat(np.arange(len(votes.count)), np.diff(votes.first))
    annotator = votes.annotator + votes.annotators[stack.image_of_cluster[cluster]]

    def marks(values: FloatArray) -> FloatArray:
        return np.bincount(annotator, values[cluster], minlength=len(run.rows)).astype(np.float64)

    return Tally(marks(now.present), structures, marks(now.artefact), artefacts)


def _artefact_votes(stack: Stack, lure: FloatArray, log_spread: FloatArray) -> FloatArray:
    """Return the log probability of each cluster's votes on an artefact, by node: (M, L).

    Votes are tempered. `log_spread` is (L,), or (M, L).
    """
    trust = stack.votes.trust[stack.image_of_cluster]
    joint = log_votes(stack, lure, SPREAD)
    joint *= trust[:, None]
    joint += log_spread
    return joint


def _log_sum(logs: FloatArray) -> FloatArray:
    """Return the log of the sums over rows, (M,); write the terms, up to a factor of the row, into `logs`."""
    largest = logs.max(axis=1)
    logs -= largest[:, None]
    np.exp(logs, out=logs)
    return np.asarray(largest + np.log(logs.sum(axis=1)))


def pooled(run: Run, tally: Tally) -> Tally:
    """Sum over images for every annotator of the run."""
    image = run.stack.image_of_annotator
    copies = run.copies[image]

    def summed(values: FloatArray) -> FloatArray:
        return np.bincount(run.rows, values / copies, minlength=run.annotators).astype(np.float64)

    return Tally(
        summed(tally.hits),
        np.column_stack([summed(column[image]) for column in tally.structures.T]),
        summed(tally.lured),
        np.column_stack([summed(column[image]) for column in tally.artefacts.T]),
    )


def add_shared_priors(run: Run, tally: Tally, total: Tally, watch: Watch) -> Stack:
    """Return the images with the priors from the others."""
    cross_image = estimate_cross_image_priors(run, tally, total, watch)
    advice = Advice(
        cross_image,
        run.sum(tally.structures) - tally.structures,
        run.sum(tally.artefacts) - tally.artefacts,
    )
    return apply_advice(run.stack, advice)


def estimate_cross_image_priors(run: Run, tally: Tally, total: Tally, watch: Watch) -> CrossImagePriors:
    """Estimate the prior of each image from the others, and the upper bounds of its weight."""
    prior = run.stack.problems[0].prior
    share = _blend(run.sum(tally.structures), prior.share, USUAL_STRUCTURES)
    odds, lure, seen = (np.empty(len(run.rows)) for _ in range(3))
    ease, more, most = (np.zeros(len(run.stack)) for _ in range(3))
    number = tally.structures.sum(axis=1)
    for begin, end in _parts(run.stack.votes.annotators):
        own = slice(run.stack.votes.annotators[begin], run.stack.votes.annotators[end])
        others = _other_images(run, tally, total, own)
        hit, miss = run.stack.prior.hit[own], run.stack.prior.miss[own]
        odds[own], lure[own] = mark_log_odds(prior.shift, (hit, miss), others)
        seen[own] = others.structures.sum(axis=1)
        for images, rows in _of_one_size(run.stack.votes.annotators, begin, end):
            worth, hits = run.stack.votes.weights[rows], tally.hits[rows]
            ease[images], expected, variance = _ease(
                odds[rows], hits, worth, number[images], prior.shift, share
            )
            more[images], most[images] = _dispersion(
                hits - expected, variance, seen[rows], worth, number[images]
            )
        watch(end / len(run.stack), "learning from the other images")
    votes = _weight_of_votes(more[number > FEW], most[number > FEW])
    return CrossImagePriors(odds, lure, seen, votes, _weight_of_clusters(number, ease, share, prior.shift))


def _parts(first: IntArray) -> Iterator[tuple[int, int]]:
    """Divide images into ranges of about `VALUES_AT_ONCE` values; `first` is each image's first annotator."""
    begin, most = 0, max(VALUES_AT_ONCE // len(SPREAD), 1)
    while begin < len(first) - 1:
        end = int(np.searchsorted(first, first[begin] + most, side="right")) - 1
        end = min(max(end, begin + 1), len(first) - 1)
        yield begin, end
        begin = end


def _of_one_size(first: IntArray, begin: int, end: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Group a range of images by number of annotators: (n,) images, (n, number) rows."""
    size = np.diff(first[begin : end + 1])
    for number in np.unique(size).tolist():
        images = begin + np.flatnonzero(size == number)
        yield images, first[images][:, None] + np.arange(number)


def _other_images(run: Run, tally: Tally, total: Tally, own: slice) -> Tally:
    """Return the tally of the other images for some rows of annotators."""
    rows, image = run.rows[own], run.stack.image_of_annotator[own]
    pairs = (
        (total.hits[rows], tally.hits[own]),
        (total.structures[rows], tally.structures[image]),
        (total.lured[rows], tally.lured[own]),
        (total.artefacts[rows], tally.artefacts[image]),
    )
    return Tally(*(np.maximum(np.subtract(every, one, out=every), 0, out=every) for every, one in pairs))


def _ease(
    odds: FloatArray, hits: FloatArray, worth: FloatArray, number: FloatArray, shift: FloatArray,
    share: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:  # fmt: skip
    """Estimate the ease of n images with R annotators each; return it, and mean and variance of the marks.

    `odds`, `hits`, `worth`: (n, R) float64, log odds of a mark, marks, and weight of each annotator.
    `number`: (n,) float64, structures of each image.
    `shift`, `share`: (K,) float64.
    The ease, (n,), is the log odds on the image's structures less those predicted from the others. Mean and
        variance of the marks, (n, R), are those at that ease.
    """
    ease = np.zeros(len(number))
    expected, variance = np.zeros(odds.shape), np.zeros(odds.shape)
    active = np.arange(len(number))
    against = np.exp(-(odds[:, :, None] + shift))
    for _ in range(20):
        chance = against[active] * np.exp(-ease[active])[:, None, None]
        chance += 1
        np.reciprocal(chance, out=chance)
        structures, usual = number[active][:, None], chance @ share
        mean = structures * usual
        spread = structures * (usual - np.square(chance, out=chance) @ share)
        expected[active], variance[active] = mean, spread
        slope = (worth[active] * (hits[active] - mean)).sum(axis=1)
        slope /= np.maximum((worth[active] * spread).sum(axis=1), EDGE)
        ease[active] = np.clip(ease[active] + np.clip(slope, -1.0, 1.0), -4.0, 4.0)
        active = active[np.abs(slope) >= 1e-6]
        if not len(active):
            break
    return ease, expected, variance


def _dispersion(
    difference: FloatArray, variance: FloatArray, seen: FloatArray, worth: FloatArray, number: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the dispersion of marks on each of n images relative to binomial ones, and its upper limit.

    Annotators who saw few structures on other images do not count. All but `number`, (n,), are (n, R).
    """
    structures = number[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = worth * (difference**2 - variance - variance * structures / seen)
    most, known = worth * variance, seen > FEW
    more, total = excess.sum(axis=1), most.sum(axis=1)
    for image in np.flatnonzero(~known.all(axis=1)):
        more[image], total[image] = excess[image][known[image]].sum(), most[image][known[image]].sum()
    return more, total * (number - 1)


def apply_advice(stack: Stack, advice: Advice) -> Stack:
    """Return the images with the prior from other images."""
    own, cross_image, seen = stack.prior, advice.cross_image, advice.cross_image.seen
    chance = 1 / (1 + np.exp(-cross_image.odds))
    weight = np.maximum(own.hit + own.miss + cross_image.votes * seen / (cross_image.votes + seen), EDGE)
    structures = advice.structures.sum(axis=1)
    prior = own._replace(
        hit=weight * chance,
        miss=weight * (1 - chance),
        share=_blend(advice.structures, own.share, USUAL_STRUCTURES),
        strength=own.strength + (cross_image.clusters - own.strength) * structures / (structures + ENOUGH),
    )
    spread = np.log(_blend(advice.artefacts, _usual_spread(), USUAL_ARTEFACTS))
    drawn = _artefact_votes(stack, cross_image.lure, spread[stack.image_of_cluster])
    votes = stack.votes._replace(drawn=_log_sum(drawn))
    return replace(stack, votes=votes, prior=prior)


def mark_log_odds(
    shift: FloatArray, prior: tuple[FloatArray, FloatArray], tally: Tally
) -> tuple[FloatArray, FloatArray]:
    """Return the log odds, at node 0, of each annotator's mark on a structure and on an artefact.

    `prior` is marks and omissions to add; the tally has a row of nodes for each annotator.
    """
    odds = log_odds(tally.hits, tally.structures, shift, prior, np.zeros(len(tally.hits)))
    return odds, _lure(tally.lured, tally.artefacts)


def _lure(lured: FloatArray, artefacts: FloatArray) -> FloatArray:
    usual = np.full(len(lured), USUAL_ARTEFACTS)
    return log_odds(
        lured,
        artefacts,
        SPREAD,
        (usual * ARTEFACT, usual * (1 - ARTEFACT)),
        np.full(len(lured), ARTEFACT_LOG_ODDS),
    )


def _weight_of_votes(more: FloatArray, most: FloatArray) -> float:
    """Estimate the largest weight of an annotator's votes on other images, from overdispersion.

    If the chance of a mark is drawn for every image from a Beta distribution of that weight, marks vary by a
    factor 1 + (n - 1) / (weight + 1) more than binomial ones. The uncertainty of this chance is added.
    """
    excess, total = (float(np.cumsum(values)[-1]) if len(values) else 0.0 for values in (more, most))
    share = excess / total if total > 0 else 1.0
    return float(np.clip(1 / max(share, EDGE) - 1, *WEIGHT))


def _weight_of_clusters(number: FloatArray, ease: FloatArray, share: FloatArray, shift: FloatArray) -> float:
    """Estimate the largest weight of the other images' structures, in clusters, from the images' ease.

    If the shares of the nodes are drawn for every image from a Dirichlet distribution of weight w, the mean
    ease has 1 / (w + 1) of the variance among structures.
    """
    number, ease = number[number > FEW], ease[number > FEW]
    among = float(share @ shift**2 - (share @ shift) ** 2)
    if len(number) < 2:
        return WEIGHT[0]
    trust = number / (number + 5)
    between = np.average((ease - np.median(ease)) ** 2 - among / number, weights=trust)
    return float(np.clip(among / max(float(between), EDGE) - 1, *WEIGHT))


def _blend(nodes: FloatArray, usual: FloatArray, weight: float) -> FloatArray:
    """Return the share at each node, shrunk towards the usual shares, which count as a number of clusters."""
    counts = np.maximum(nodes, 0) + weight * usual
    shares: FloatArray = counts / counts.sum(axis=-1, keepdims=True)
    return shares


def _usual_spread() -> FloatArray:
    """Return the shares of artefacts at the nodes that correspond to a Beta(1, 3) share of annotators."""
    share = 1 / (1 + np.exp(-(ARTEFACT_LOG_ODDS + SPREAD)))
    density = share * (1 - share) ** 3
    return np.asarray(density / density.sum(), dtype=np.float64)
