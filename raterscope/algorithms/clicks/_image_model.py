"""Vote model of one image, fitted to its fusion: the basis of `_prospects`.

Clustering finds the structures that are easily seen. Without the others the crowd would look more able, and
structures more alike, than they are. EM therefore continues with the structures that were not found added to
the M step by expectation: each structure found at a node represents (1 - pi) / pi that were not.

A run reports a mixture of the answers with and without decisions (`decision_weight`), and knows more than the
votes of one image. The model follows both. Its looks and its parameters are mixed with the same weight: EM
continues from either answer by itself, as an E step would undo a mixture. And the odds of each cluster are
multiplied by the ratio between the posterior that the run reported and the model's own, which further votes
do not change.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from raterscope.algorithms.clicks._structure_share import StructureShare, estimate_structure_share, times
from raterscope.algorithms.clicks._vote_model import (
    EDGE,
    ClusterPosteriors,
    EMResult,
    Problem,
    State,
    log_odds,
    looks,
    lost_log_probability,
    run_em,
    without_decisions,
)
from raterscope.algorithms.clicks.data import FloatArray, IntArray
from raterscope.algorithms.clicks.dem import mix_looks
from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.progress import silent

JOINS = 0.83
"""Chance that a further click on a lonely structure joins the others. Measured, as are the next two, on how
often subsets of 3 to 22 annotators of 24 crowded images find what all of them find; the same for any number
of annotators, and on four of the five kinds of image as on all (0.83 to 0.84, 0.38 to 0.52, 2.5 to 3.1)."""

CROWDED = 0.45
"""Share by which it falls if another structure is at the same position."""

CROWDING = 3.0
"""Range of this effect in scatters, as a Gaussian."""


def joining_chance(mean: FloatArray, scatter: float) -> FloatArray:
    """Return the chance, (M,), that a further click on a structure joins the others there."""
    from scipy.spatial import cKDTree

    if len(mean) < 2 or not scatter > 0:
        return np.full(len(mean), JOINS)
    distance = cKDTree(mean).query(mean, k=2)[0][:, 1] / (CROWDING * scatter)
    chance: FloatArray = JOINS * (1 - CROWDED * np.exp(-0.5 * distance**2))
    return chance


def unseen_chance(rate: FloatArray, joins: FloatArray, worth: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the chance that a structure is not found, and the chance that an annotator marked it then.

    With the chance of joining q and s = 1 - q, a structure with v marks is not found with probability s^(v -
    1), and with certainty if it has none. Sums over v are therefore values of the marks' generating function.
    The mark of an annotator of weight w exists with chance w.

    `rate`: (R, K) float64, chance that each annotator marks a structure at each node.
    `joins`: (Q,) float64.
    `worth`: (R,) float64, weight of each annotator.
    The results have shapes (Q, K) and (Q, R, K).
    """
    stray, weight = 1 - joins[:, None], worth[:, None]
    counted = weight * rate
    factor = 1 - counted + counted * stray[:, :, None]
    every = factor.prod(axis=1)
    none = (1 - counted).prod(axis=0)
    marked = rate * every[:, None] / factor
    if (worth < 1).any():
        unmarked = none / (1 - counted)
        alone = unmarked + (every[:, None] / factor - unmarked) / stray[:, :, None]
        marked = weight * marked + (1 - weight) * rate * alone
    return none + (every - none) / stray, marked


DIFFER = 1.2
"""Standard deviation of the ease of structures, in log odds, including structures not found. The vote model
expects half of that among found ones."""

ROUNDS = 5
"""Iterations of EM that restore the vote model of the detections."""

HIDDEN = 60
"""Maximum iterations of EM with structures that were not found."""

SETTLED = 0.005
"""Convergence of these iterations: changed structures as a share of all."""


@dataclass(frozen=True, eq=False)
class ImageModel:
    """Vote model of an image, fitted to its fusion."""

    problem: Problem
    state: State
    looks: ClusterPosteriors  # of the M clusters
    honesty: StructureShare  # share of clusters that are structures among those that look like one
    ratio: FloatArray  # (M,): ratio between the odds that the run reported and those of the model

    @property
    def rate(self) -> FloatArray:
        """(R, K) chance that each annotator marks a structure at each node."""
        return mark_rates(self.state.odds, self.problem.prior.shift)

    @property
    def honest(self) -> FloatArray:
        """(M,) chance that each cluster is a structure if it looks like one."""
        return self.honesty.mean(self.share)

    @property
    def posterior(self) -> FloatArray:
        """(M,) probability that each cluster is a structure, as the run reported; decided ones by votes."""
        return times(self.honesty.scored(self.honest * self.looks.present), self.ratio)

    @property
    def share(self) -> FloatArray:
        """(M,) share of the annotators who marked each cluster."""
        share: FloatArray = self.problem.count / (self.problem.crowd or 1.0)
        return share


def image_model(problem: Problem, fusion: Fusion, *, reported: bool = True) -> ImageModel:
    """Fit the vote model to an image's fusion, including the structures that have no cluster.

    `problem`: the votes of the fusion with a prior. `reported`: whether the fusion's posteriors are those of
    a vote model, which this one then agrees with.
    """
    levels, level = joining_levels(fusion)
    donors = donors_of(problem, level, len(levels))
    ascent = run_em(problem, np.clip(fusion.detection.posterior, 0, 1), ROUNDS, 1e-6, silent)
    if problem.known.any():
        free, start = without_decisions(problem), fusion.detection.undecided
        start = np.clip(start, 0, 1) if start.size else ascent.looks.present
        bare = run_em(free, start, ROUNDS, 1e-6, silent)
        loss = lost_log_probability(problem, ascent, bare)
        (honesty,) = estimate_structure_share([(problem, ascent)], undecided=[bare.looks.present], loss=loss)
        bare = _with_unseen(free, bare, levels, donors)
        ascent = mix_looks(
            problem, _with_unseen(problem, ascent, levels, donors), bare.looks, honesty.doubted
        )
        ascent = replace(ascent, state=_mix_states(ascent.state, bare.state, honesty.doubted))
    else:
        (honesty,) = estimate_structure_share([(problem, ascent)])
        ascent = _with_unseen(problem, ascent, levels, donors)
    crowd = ImageModel(problem, ascent.state, ascent.looks, honesty, np.ones(len(problem.known)))
    if not reported:
        return crowd
    own, run = (np.clip(values, EDGE, 1 - EDGE) for values in (crowd.posterior, fusion.detection.posterior))
    ratio = run * (1 - own) / (own * (1 - run))
    return replace(crowd, ratio=np.where(problem.known, 1.0, ratio))


def _with_unseen(problem: Problem, ascent: EMResult, levels: FloatArray, donors: FloatArray) -> EMResult:
    """Continue EM with the structures that were not found."""
    prior, state, now = problem.prior, ascent.state, ascent.looks
    usual = np.exp(-0.5 * (prior.shift / DIFFER) ** 2)
    usual *= max(prior.strength, EDGE) / usual.sum()
    for _ in range(HIDDEN):
        rate = mark_rates(state.odds, prior.shift)
        lost, marked = unseen_chance(rate, levels, problem.worth)
        total = donors @ now.structure / np.maximum(1 - lost, EDGE)
        counts = (total * lost).sum(axis=0) + now.structure.sum(axis=0)
        hits = problem.marks.sums(now.present) + np.einsum("qrk,qk->r", marked, total)
        before = np.broadcast_to(counts, rate.shape)
        odds = log_odds(hits, before, prior.shift, (prior.hit, prior.miss), state.odds)
        share = counts + usual
        kinds = state.kinds.copy()
        if prior.places:
            kinds[0] = counts.sum() + prior.kinds[0]
        share /= share.sum()
        settled = np.abs(share - state.share).sum() < SETTLED
        state = State(odds, state.chance, kinds, share)
        now, _ = looks(problem, state)
        if settled:
            break
    return replace(ascent, looks=now, state=state)


def _mix_states(state: State, undecided: State, doubted: float) -> State:
    """Mix parameters with those that were estimated without decisions, as `mix_looks` does with looks."""
    return State(
        *(
            getattr(state, item.name) + doubted * (getattr(undecided, item.name) - getattr(state, item.name))
            for item in fields(state)
        )
    )


def mark_rates(odds: FloatArray, shift: FloatArray) -> FloatArray:
    """Return the chance (R, K) of a mark by annotators with some log odds on structures at nodes of ease."""
    rate: FloatArray = 1 / (1 + np.exp(-(odds[:, None] + shift)))
    return rate


def joining_levels(fusion: Fusion) -> tuple[FloatArray, IntArray]:
    """Round the chances of joining to (Q,) levels, an isolated one last; return (M,) rows of them too."""
    joins = np.append(joining_chance(fusion.clustering.mean, fusion.clustering.scatter), JOINS)
    levels, level = np.unique(np.rint(joins * 40) / 40, return_inverse=True)
    return levels, level[:-1].astype(np.int64)


def donors_of(problem: Problem, level: IntArray, levels: int) -> FloatArray:
    """Return which clusters represent structures that were not found, by chance of joining: (Q, M), 0 or 1.

    Clusters that the expert added are excluded: the crowd did not find them.
    """
    marked = np.diff(problem.marks.first)
    added = problem.known & (problem.truth == 1) & (marked < 2)
    chosen: FloatArray = ((level == np.arange(levels)[:, None]) & ~added).astype(np.float64)
    return chosen
