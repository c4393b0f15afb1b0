"""Posterior predictive draws of the decisions on an image after further annotators.

The detector will estimate its parameters again when further annotators have voted. With few annotators, EM's
estimates are far too certain: where nearly all clusters look like structures, it explains all of them as
structures. Each draw therefore has parameters of its own:

- the share of structures among the clusters, from its posterior given the likelihoods of the votes on a
  structure and on an artefact, instead of EM's estimate, the mode;
- the level of the image, as `StructureShare` has it: all clusters share it;
- newcomers with the abilities of annotators of the crowd, drawn at random.

Given these, each cluster is a structure or not, and the newcomers vote. EM then continues with their votes.
The decisions differ from the present ones in ways that all clusters of an image share, so that the number of
changes varies more than a sum of independent ones.

The clusters themselves are assumed to be known. Newcomers' clicks may also divide, join or move clusters: on
few images, but there many of them (see `MOVED`).

References
----------
.. [gelman2013] A. Gelman, J. B. Carlin, H. S. Stern, D. B. Dunson, A. Vehtari and D. B. Rubin, "Bayesian data
   analysis", 3rd edition, CRC Press (2013), doi:10.1201/b16018 (chapters 1 and 6).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from raterscope.algorithms.clicks._prospects import (
    Changes,
    FindingChances,
    ImageModel,
    count_chances,
    mark_rates,
)
from raterscope.algorithms.clicks._structure_share import times
from raterscope.algorithms.clicks._vote_model import EDGE, Problem, run_em, run_em_of_starts
from raterscope.algorithms.clicks.data import BoolArray, FloatArray, IntArray
from raterscope.algorithms.clicks.result import Fusion, Marks
from raterscope.algorithms.progress import silent

DRAWS = 32
"""Number of draws of the parameters and of the newcomers' votes."""

MIN_DRAWS = 8
"""Minimum number of draws, for an image with very many votes."""

VOTES = 1_000_000
"""Number of votes in all draws together above which fewer draws are made, about 100 ms of work."""

ROUNDS = 8
"""Number of iterations of EM with the newcomers' votes."""

REPEATS = 40
"""Number of draws of the number of changes for each draw of the parameters."""

SHARES = (np.arange(60) + 0.5) / 60
"""Nodes of the share of structures among the clusters."""

MOVED = 0.003
"""Expected changes by another clustering, for each detection and newcomer: the changes that the prediction
without this term misses in twelve kinds of simulated crowds.
"""

USUAL = 16.0
"""Number of annotators with the most changes by another clustering: with fewer, the prediction without them
is high enough, and clusters of many annotators hardly move.
"""

MOVED_SHAPE = 0.3
"""Shape of the Gamma distribution of the rate of these changes on an image."""

TINY = 1e-12


@dataclass(frozen=True, eq=False)
class PredictedChanges:
    """Predicted changes on an image of M clusters, for each of D draws."""

    chance: FloatArray  # (D, M): that each cluster's decision changes
    structures: FloatArray  # (D,): expected new detections of structures that have no cluster
    meetings: float  # expected new detections of artefacts and of clicks that meet by chance
    # shape of the Gamma distribution of the rate of these: clusters that depend on a single mark, plus one
    shape: float
    moved: float = 0.0  # expected changes by another clustering

    @property
    def appearing(self) -> float:
        """Expected detections where there is no cluster."""
        return float(self.structures.mean()) + self.meetings

    @property
    def fresh(self) -> float:
        """Probability that any such detection appears."""
        return float(1 - self._none_appear().mean())

    @property
    def any(self) -> float:
        """Probability that any decision changes."""
        kept = np.exp(np.log1p(-np.minimum(self.chance, 1 - TINY)).sum(axis=1))
        return float(1 - (kept * self._none_appear()).mean() * self._none_move())

    def interval(self, additional: float = 0.0) -> FloatArray:
        """Return the central 95 % interval (2,) of the number of changes, with some more on average."""
        generator = np.random.default_rng(0)
        number = np.empty((len(self.chance), REPEATS))
        for row, chance in enumerate(self.chance):
            sure = chance[(chance > 0) & (chance < 1)]
            changed = (generator.random((REPEATS, len(sure))) < sure).sum(axis=1)
            number[row] = changed + np.count_nonzero(chance == 1)
        missed = generator.gamma(self.shape, 1 / self.shape, number.shape)
        number += generator.poisson(self.structures[:, None] * missed + self.meetings + additional)
        number += generator.poisson(self.moved * generator.gamma(MOVED_SHAPE, 1 / MOVED_SHAPE, number.shape))
        low, high = np.quantile(number, [0.025, 0.975])
        return np.array([np.floor(low), np.ceil(high)])

    def _none_appear(self) -> FloatArray:
        none: FloatArray = (1 + self.structures / self.shape) ** -self.shape
        return np.asarray(none * np.exp(-self.meetings))

    def _none_move(self) -> float:
        return float((1 + self.moved / MOVED_SHAPE) ** -MOVED_SHAPE)


def draw_changes(
    crowd: ImageModel, fusion: Fusion, chances: FindingChances, expected: Changes, threshold: float
) -> PredictedChanges:
    """Draw parameters and votes of newcomers; return the changes that they make.

    `chances`: chances on the image, for that number of newcomers.
    `expected`: expected changes with EM's estimates.
    `threshold`: lowest posterior of a detection.
    """
    annotators, clusters = len(crowd.rate), len(crowd.looks.chance)
    if not annotators or not clusters:
        return PredictedChanges(
            expected.chance[None], np.array([expected.structures]), expected.meetings, chances.marginal
        )
    draws = int(np.clip(VOTES // (clusters * (annotators + chances.more)), MIN_DRAWS, DRAWS))
    generator = np.random.default_rng(0)
    structure = _draw_structures(crowd, generator, draws)
    arrivals = np.full(draws, expected.blurred)
    detected, start = fusion.detection.detected, np.clip(fusion.detection.posterior, 0, 1)
    later = chances.chance_of_both[chances.level] / chances.chance[chances.level, : -chances.more, None]
    votes = np.rint(crowd.problem.count).astype(np.int64)
    later = later[np.arange(clusters), votes]
    own = _estimate(crowd, [crowd.problem], start)[0]
    order, ranked = _order(fusion), np.lexsort((crowd.state.chance, crowd.state.odds))
    chance = np.zeros((draws, clusters))
    drawn = [_draw_votes(crowd, item, chances.more, order, ranked, generator) for item in structure]
    estimated = _estimate(crowd, [_with_newcomers(crowd.problem, *coming) for coming in drawn], start)
    for row, (coming, after) in enumerate(zip(drawn, estimated, strict=True)):
        # The run uses more than this image's votes: the ratio of its odds to EM's is kept.
        posterior = times(crowd.posterior, after * (1 - own) / (own * (1 - after)))
        stays = (posterior >= threshold) * later[np.arange(clusters), coming[0].sum(axis=0)]
        chance[row] = np.where(detected, 1 - stays, stays)
        marks = count_chances(mark_rates(crowd.state.odds[coming[1]], crowd.problem.prior.shift))
        scale = structure[row].sum() / max(float(crowd.looks.present.sum()), EDGE)
        arrivals[row] += scale * float((expected.arrivals * marks).sum())
    chance[:, crowd.problem.known] = 0.0
    moved = MOVED * chances.more * float(detected.sum()) * min(annotators / USUAL, USUAL / annotators)
    return PredictedChanges(np.clip(chance, 0.0, 1.0), arrivals, expected.meetings, chances.marginal, moved)


def _draw_structures(crowd: ImageModel, generator: np.random.Generator, draws: int) -> FloatArray:
    """Draw the share of structures and the level; return the chance (D, M) that each cluster is one."""
    looks, prior, kinds = crowd.looks, crowd.problem.prior, crowd.state.kinds
    look = np.tile(looks.present, (draws, 1))
    if prior.places and prior.kinds[1]:
        odds = np.log(np.maximum(looks.present, TINY)) - np.log(np.maximum(looks.artefact, TINY))
        odds -= np.log(max(kinds[0], EDGE) / max(kinds[1], EDGE))
        other, nodes = 1 - looks.chance, np.log(SHARES / (1 - SHARES))
        log = (prior.kinds[0] - 1) * np.log(SHARES) + (prior.kinds[1] - 1) * np.log1p(-SHARES)
        log += other @ (np.logaddexp(0.0, odds[:, None] + nodes) + np.log1p(-SHARES))
        weight = np.exp(log - log.max())
        share = generator.choice(nodes, draws, p=weight / weight.sum())
        look = times(other / (1 + np.exp(-(odds + share[:, None]))), crowd.ratio)
    if not crowd.structure_share.weight.size:
        return look
    level, slope = crowd.structure_share.draw(generator, draws)
    true_share = 1 / (
        1 + np.exp(-(level[:, None] + slope[:, None] * crowd.structure_share.log_odds(crowd.share)))
    )
    return np.asarray(look * true_share)


def _order(fusion: Fusion) -> IntArray:
    """Return an order of the clusters that does not depend on their numbers."""
    return np.lexsort(np.round(fusion.clustering.mean, 3).T)


def _draw_votes(
    crowd: ImageModel,
    structure: FloatArray,
    more: int,
    order: IntArray,
    ranked: IntArray,
    generator: np.random.Generator,
) -> tuple[BoolArray, IntArray]:
    """Draw newcomers and their marks; return the marks, (k, M), and the rows of the annotators they resemble.

    A cluster that only looks like a structure attracts newcomers as an artefact with the same votes does.
    """
    problem, state, nodes = crowd.problem, crowd.state, len(crowd.state.share)
    share = crowd.looks.structure / np.maximum(crowd.looks.present, TINY)[:, None]
    other = np.maximum(1 - crowd.looks.chance - structure, 0.0)
    kinds = np.cumsum(np.column_stack([share * structure[:, None], other, crowd.looks.chance]), axis=1)
    drawn = generator.random(len(order))
    kind = np.empty(len(order), dtype=np.int64)
    kind[order] = np.minimum((drawn[:, None] * kinds[order, -1:] > kinds[order]).sum(axis=1), nodes + 1)
    chosen = ranked[generator.choice(len(ranked), more, p=problem.worth[ranked] / problem.worth.sum())]
    first, second = problem.prior.artefact
    lure = np.empty(len(order))
    quiet = np.maximum(problem.crowd - problem.count, 0)
    lure[order] = generator.beta(first + problem.count[order], second + quiet[order])
    rates = mark_rates(state.odds[chosen], problem.prior.shift)
    chance = rates[:, np.minimum(kind, nodes - 1)]
    chance = np.where(kind == nodes, lure, chance)
    chance = np.where(kind == nodes + 1, state.chance[chosen][:, None], chance)
    marks = np.empty((more, len(order)), dtype=np.bool_)
    marks[:, order] = generator.random((more, len(order))) < chance[:, order]
    return marks, chosen


def _with_newcomers(problem: Problem, marks: BoolArray, chosen: IntArray) -> Problem:
    """Add newcomers, with their marks (k, M) and the priors of average annotators, to an image's votes."""
    from scipy.special import betaln, xlogy

    prior, more = problem.prior, len(marks)
    cluster, annotator = np.nonzero(marks.T)
    old = problem.marks
    owner = np.concatenate([np.repeat(np.arange(marks.shape[1]), np.diff(old.first)), cluster])
    row = np.concatenate([old.annotator, annotator + old.annotators])
    sort = np.lexsort((row, owner))
    first = np.zeros(marks.shape[1] + 1, dtype=np.int32)
    np.cumsum(np.bincount(owner, minlength=marks.shape[1]), out=first[1:])
    count, crowd = problem.count + marks.sum(axis=0), problem.crowd + more
    quiet = np.maximum(crowd - count, 0)
    before = problem.count, np.maximum(problem.crowd - problem.count, 0)
    (marked, other), trust = prior.artefact, prior.trust
    artefact = betaln(trust * count + marked, trust * quiet + other)
    artefact -= betaln(trust * before[0] + marked, trust * before[1] + other)
    return replace(
        problem,
        marks=Marks(first, row[sort].astype(np.int32), old.annotators + more),
        count=count,
        crowd=crowd,
        weights=np.append(problem.weights, np.ones(more)) if len(problem.weights) else problem.weights,
        artefact=problem.artefact + artefact,
        rest=(1 - trust) * (xlogy(count, count / crowd) + xlogy(quiet, quiet / crowd)),
        prior=replace(
            prior,
            hit=np.append(prior.hit, np.full(more, prior.hit.mean())),
            miss=np.append(prior.miss, np.full(more, prior.miss.mean())),
            quiet=np.append(prior.quiet, prior.quiet[chosen]),
            false=np.append(prior.false, prior.false[chosen]),
        ),
    )


def _estimate(crowd: ImageModel, problems: Sequence[Problem], start: FloatArray) -> list[FloatArray]:
    """Return the posteriors (M,) of an image with each of several votes, by EM from the present ones."""
    if len(crowd.problem.prior.shift) > 1:
        ascents = run_em_of_starts(problems, [start] * len(problems), ROUNDS, EDGE, silent)
    else:
        ascents = [run_em(problem, start, ROUNDS, EDGE, silent) for problem in problems]
    shares = [crowd.structure_share.mean(problem.count / (problem.crowd or 1.0)) for problem in problems]
    return [
        np.clip(ascent.looks.present * share, EDGE, 1 - EDGE)
        for ascent, share in zip(ascents, shares, strict=True)
    ]
