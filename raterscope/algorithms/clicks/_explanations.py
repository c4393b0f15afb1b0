"""Explanations of the votes on several images, from several starts.

Rounds alternate between priors of each image from all images and detection with them. They have several
local optima, which are different explanations of the same votes. Other images may favour another explanation
than the best: for intervals, weights are means over Bayesian bootstraps of the images ([yao2018]_).

References
----------
.. [yao2018] Y. Yao, A. Vehtari, D. Simpson and A. Gelman, "Using stacking to average Bayesian predictive
   distributions", Bayesian Analysis 13 (2018) 917-1007, doi:10.1214/17-BA1091.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from raterscope.algorithms.clicks._shared_priors import (
    ArtefactAttraction,
    Run,
    add_shared_priors,
    estimate_attraction,
    pooled,
    prior_attraction,
    tally_of,
)
from raterscope.algorithms.clicks._vote_model import EDGE, ClusterPosteriors, Stack, StackedEMResult, ascend
from raterscope.algorithms.clicks.data import FloatArray
from raterscope.algorithms.clicks.dem import DEMSettings
from raterscope.algorithms.progress import Watch, part, silent, steps_of

ROUNDS = 4
"""Number of rounds of priors from all images and detection on each."""

RARE = 0.001
"""Weight below which an explanation is left out."""

ALIKE = 0.05
"""Largest difference of a cluster's posterior in two explanations that are the same."""

SAMPLE = 100
"""Number of images by which the likely starts of a run of four times as many images or more are selected."""

BOOTSTRAPS = 500
"""Number of bootstraps of the images."""

STEPS = 8
"""Number of iterations of EM on an image in a round; the last round runs to convergence."""


@dataclass(frozen=True, eq=False)
class Explanation:
    """Explanation of the votes on all images: result of a round."""

    start: int  # index of the start that led to it
    score: FloatArray  # (I,)
    ascent: StackedEMResult
    attraction: ArtefactAttraction

    @property
    def total(self) -> float:
        """Score of all images."""
        return float(np.cumsum(self.score)[-1])


def explain(
    run: Run, starts: Sequence[FloatArray], settings: DEMSettings, watch: Watch
) -> tuple[list[Explanation], FloatArray, FloatArray]:
    """Run the rounds from all starts; return the explanations of the votes as `likely` does.

    An explanation counts once, however many starts lead to it: of those that are alike after a round, only
    the best continues. From the second round on, unlikely ones do not continue either. On many images, a
    sample of them selects the starts.

    `starts`: (M,) each, initial posteriors of all clusters, image after image.
    """
    if len(run.stack) >= 4 * SAMPLE:
        starts, watch = _likely_starts(run, starts, settings, part(watch, 0.0, 0.1)), part(watch, 0.1, 1.0)
    attraction = prior_attraction(run.annotators)
    found = [
        _round(run, index, _initial_looks(run, present), attraction, settings, step)
        for (index, present), step in steps_of(part(watch, 0.0, 1 / ROUNDS), list(enumerate(starts)))
    ]
    found, weights, resampled = _distinct(found), np.ones(1), np.ones(1)
    for number in range(1, ROUNDS):
        steps = steps_of(part(watch, number / ROUNDS, (number + 1) / ROUNDS), found)
        found = [
            _round(run, own.start, own.ascent.looks, own.attraction, settings, step) for own, step in steps
        ]
        found, weights, resampled = likely(_distinct(found))
    return found, weights, resampled


def _likely_starts(
    run: Run, starts: Sequence[FloatArray], settings: DEMSettings, watch: Watch
) -> list[FloatArray]:
    """Return the starts of the likely explanations of a sample of the images."""
    images = np.arange(0, len(run.stack), len(run.stack) // SAMPLE)
    clusters = np.isin(run.stack.image_of_cluster, images)
    found, _, _ = explain(run.only(images), [start[clusters] for start in starts], settings, watch)
    return [starts[own.start] for own in found]


def _initial_looks(run: Run, present: FloatArray) -> ClusterPosteriors:
    share = run.stack.prior.share[run.stack.image_of_cluster]
    return ClusterPosteriors(present[:, None] * share, (1 - present) / 2, (1 - present) / 2)


def _round(
    run: Run,
    start: int,
    looks: ClusterPosteriors,
    attraction: ArtefactAttraction,
    settings: DEMSettings,
    watch: Watch,
) -> Explanation:
    """Estimate the priors of each image from all images, and detect structures with them."""
    tally = tally_of(run, looks, attraction)
    total = pooled(run, tally)
    stack = add_shared_priors(run, tally, total, part(watch, 0.0, 0.3))
    ascent = ascend(stack, looks.present, STEPS, settings.detection_tolerance, part(watch, 0.3, 1.0))
    return Explanation(start, _score(ascent) / run.copies, ascent, estimate_attraction(run, tally, total))


def _distinct(found: Sequence[Explanation]) -> list[Explanation]:
    """Return the best of each group of explanations with nearly the same posteriors, the best group first."""
    distinct: list[Explanation] = []
    for own in sorted(found, key=lambda own: -own.total):
        present = own.ascent.looks.present
        if all(np.abs(present - other.ascent.looks.present).max() > ALIKE for other in distinct):
            distinct.append(own)
    return distinct


def likely(fits: Sequence[Explanation]) -> tuple[list[Explanation], FloatArray, FloatArray]:
    """Return the likely ones of some fits, the best first, their weights, and those for intervals."""
    fits = [fit for fit in fits if fit is fits[0] or np.isfinite(fit.total)]
    weights, resampled = np.ones(1), np.ones(1)
    if len(fits) > 1:
        score = np.array([fit.score - fits[0].score for fit in fits])
        images = score.shape[1]
        shares = np.random.default_rng(0).dirichlet(np.ones(images), BOOTSTRAPS)
        weights, resampled = _softmax(score.sum(axis=1)), _softmax(images * shares @ score.T).mean(axis=0)
    kept = np.flatnonzero((weights > RARE * weights[0]) | (resampled > RARE))
    weights, resampled = weights[kept], resampled[kept]
    return [fits[index] for index in kept.tolist()], weights / weights.sum(), resampled / resampled.sum()


def _softmax(score: FloatArray) -> FloatArray:
    weight = np.exp(score - score.max(axis=-1, keepdims=True))
    return np.asarray(weight / weight.sum(axis=-1, keepdims=True))


def _score(ascent: StackedEMResult) -> FloatArray:
    """Return the log likelihood of each image's votes; minus infinity if artefacts attract more votes."""
    stack = ascent.stack
    crowd = np.array([problem.crowd for problem in stack.problems])[stack.image_of_cluster]
    drawn = np.array([ascent.looks.present, ascent.looks.artefact]) @ np.column_stack(
        [stack.votes.count, crowd]
    )
    mean = drawn[:, 0] / np.maximum(drawn[:, 1], EDGE)
    if mean[0] < mean[1]:
        return np.full(len(stack), -np.inf)
    return vote_likelihood(stack, ascent.state.chance, ascent.state.kinds)


def vote_likelihood(stack: Stack, chance: FloatArray, kinds: FloatArray) -> FloatArray:
    """Return the log likelihood of each image's votes and decisions, predicted by the others: (I,).

    `stack`: the images, each with the prior from the others. `chance`: (R,), rates of chance meetings of all
    annotators, image after image. `kinds`: (I, 3).
    """
    from raterscope.algorithms.clicks._vote_kernels import StackedState

    prior, none = stack.prior, np.zeros(len(chance))
    bare = prior._replace(
        hit=none, miss=none, quiet=none, false=none, kinds=np.zeros(kinds.shape),
        strength=np.zeros(len(kinds)),
    )  # fmt: skip
    predicted = StackedState(np.log(prior.hit / prior.miss), chance, kinds, prior.share)
    ascent = ascend(replace(stack, prior=bare), predicted, 1, 0.0, silent)
    return np.concatenate(ascent.objective)
