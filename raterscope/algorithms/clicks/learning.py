"""Detection that learns across the images of a run: what they all say of the crowd helps to judge each.

On an image that holds artefacts alone, nothing tells them from structures that few have seen. The other
images do: the same annotators mark structures more often there, and artefacts as rarely. So each image is
judged with a prior that the others make, empirical Bayes without the image itself: of each annotator's odds
of a mark on a structure and on an artefact, and of how structures and artefacts differ in how easily they
draw marks. How much such a prior weighs is learnt too, from how much the images differ: by overdispersion for
the annotators, by the variance of the images' difficulty for the crowd.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from raterscope.algorithms.clicks._honesty import honesty_of
from raterscope.algorithms.clicks._lessons import (
    Image,
    allure_of,
    pooled,
    tally_of,
    taught,
    usual_allure,
)
from raterscope.algorithms.clicks._vote_model import (
    EDGE,
    Ascent,
    Looks,
    Problem,
    climb,
    looks,
    without_decisions,
)
from raterscope.algorithms.clicks.data import FloatArray
from raterscope.algorithms.clicks.dem import (
    DEMSettings,
    judge,
    knows_artefacts,
    problem_of,
    undecided_posterior,
)
from raterscope.algorithms.clicks.results import Detection, Votes
from raterscope.algorithms.progress import Watch, part

__all__ = ["can_learn", "learn"]

ROUNDS = 4
"""Of learning from all images and judging each again."""

STEPS = 8
"""Iterations of EM on an image in a round; the last goes on to the end."""


@dataclass(frozen=True, eq=False)
class Verdicts:
    """Where the rounds came to from one start."""

    score: float
    problems: list[Problem]
    ascents: list[Ascent]


def can_learn(votes: Votes, settings: DEMSettings) -> bool:
    """Tell whether an image can teach others and be taught: with the crowd's prior, and with clusters."""
    return settings.learn_across_images and knows_artefacts(votes, settings) and votes.marked.shape[1] > 0


def learn(
    votes: Sequence[Votes],
    annotators: Sequence[Sequence[str]],
    posteriors: Sequence[FloatArray],
    settings: DEMSettings,
    watch: Watch,
) -> list[Detection]:
    """Judge the clusters of several images together.

    The rounds start from two sides: from each image judged by itself, and from the vote of the majority,
    which does better where most images hold artefacts alone. The side is kept from which the images foretell
    each other better; not one where artefacts draw more of the crowd than structures do, for there the two
    have changed names.

    Parameters
    ----------
    votes : sequence of Votes
        Of two images or more, all of which `can_learn`.
    annotators : sequence of names
        For each image, the names of its annotators; who has the same name is the same.
    posteriors : sequence of (M,) float64
        Of each image judged by itself.
    settings : DEMSettings
    watch : Watch

    Returns
    -------
    list of Detection
        The same for any order of the images.
    """
    order = sorted(range(len(votes)), key=lambda i: _content(votes[i], annotators[i]))
    names = {name: row for row, name in enumerate(sorted({one for image in annotators for one in image}))}
    images = [
        Image(
            problem_of(votes[i], settings),
            np.array([names[name] for name in annotators[i]], dtype=np.int64),
        )
        for i in order
    ]
    starts = [posteriors[i] for i in order]
    undecided, rest = None, watch
    if any(image.problem.known.any() for image in images):
        bare = [replace(image, problem=without_decisions(image.problem)) for image in images]
        free = [
            undecided_posterior(
                votes[i], settings, part(watch, 0.2 * turn / len(order), 0.2 * (turn + 1) / len(order))
            )
            if images[turn].problem.known.any()
            else posteriors[i]
            for turn, i in enumerate(order)
        ]
        _, ascents = _best(bare, free, len(names), settings, part(watch, 0.2, 0.42))
        undecided, rest = [ascent.looks.present for ascent in ascents], part(watch, 0.42, 1.0)
    problems, finals = _best(images, starts, len(names), settings, part(rest, 0.0, 0.84))
    honesty = honesty_of(list(zip(problems, finals, strict=True)), part(rest, 0.84, 0.85), undecided)
    detections = {}
    for done, (i, problem, final) in enumerate(zip(order, problems, finals, strict=True)):
        step = part(rest, 0.85 + 0.15 * done / len(order), 0.85 + 0.15 * (done + 1) / len(order))
        detections[i] = judge(problem, final, settings, honesty[done], step)
    return [detections[i] for i in range(len(votes))]


def _best(
    images: Sequence[Image],
    starts: Sequence[FloatArray],
    annotators: int,
    settings: DEMSettings,
    watch: Watch,
) -> tuple[list[Problem], list[Ascent]]:
    """Learn from both sides; give the priors of the better one, and where EM comes to with them."""
    sides = (
        starts,
        [(2 * image.problem.count >= image.problem.crowd - EDGE).astype(np.float64) for image in images],
    )
    found = [
        _rounds(images, side, annotators, settings, part(watch, 0.41 * turn, 0.41 * (turn + 1)))
        for turn, side in enumerate(sides)
    ]
    best = max(found, key=lambda one: one.score)
    finals = []
    for done, (problem, ascent) in enumerate(zip(best.problems, best.ascents, strict=True)):
        step = part(watch, 0.82 + 0.18 * done / len(images), 0.82 + 0.18 * (done + 1) / len(images))
        longest, tolerance = settings.detection_iterations, settings.detection_tolerance
        finals.append(climb(problem, ascent.looks.present, longest, tolerance, step))
    return best.problems, finals


def _content(votes: Votes, names: Sequence[str]) -> tuple[object, ...]:
    stray = b"" if votes.stray is None else votes.stray.tobytes()
    return tuple(names), votes.marked.tobytes(), votes.verdict.tobytes(), stray, votes.places


def _rounds(
    images: Sequence[Image], side: Sequence[FloatArray], annotators: int, settings: DEMSettings, watch: Watch
) -> Verdicts:
    """Learn from all images and judge each again, a few times."""
    now = [
        Looks(present[:, None] * image.problem.prior.share, (1 - present) / 2, (1 - present) / 2)
        for image, present in zip(images, side, strict=True)
    ]
    allure = usual_allure(annotators)
    problems: list[Problem] = []
    ascents: list[Ascent] = []
    for turn in range(ROUNDS):
        step = part(watch, turn / ROUNDS, (turn + 1) / ROUNDS)
        tallies = [tally_of(image, one, allure) for image, one in zip(images, now, strict=True)]
        run = pooled(images, tallies, annotators)
        problems, ascents = taught(images, tallies, run, part(step, 0.0, 0.3)), []
        for done, (problem, one) in enumerate(zip(problems, now, strict=True)):
            each = part(step, 0.3 + 0.7 * done / len(now), 0.3 + 0.7 * (done + 1) / len(now))
            ascents.append(climb(problem, one.present, STEPS, settings.detection_tolerance, each))
        now = [ascent.looks for ascent in ascents]
        allure = allure_of(tallies, run)
    return Verdicts(_score(problems, ascents), problems, ascents)


def _score(problems: Sequence[Problem], ascents: Sequence[Ascent]) -> float:
    """Give the log likelihood of all votes, each image's foretold by the others; see `learn`."""
    score = 0.0
    drawn = np.zeros((2, 2))
    for problem, ascent in zip(problems, ascents, strict=True):
        prior, none = problem.prior, np.zeros(len(problem.prior.hit))
        bare = replace(prior, hit=none, miss=none, quiet=none, false=none, kinds=np.zeros(3), strength=0.0)
        foretold = replace(ascent.state, odds=np.log(prior.hit / prior.miss), share=prior.share)
        score += looks(replace(problem, prior=bare), foretold)[1]
        seen = np.array([ascent.looks.present, ascent.looks.artefact])
        drawn += np.column_stack([seen @ problem.count, seen.sum(axis=1) * problem.crowd])
    mean = drawn[:, 0] / np.maximum(drawn[:, 1], EDGE)
    return score if mean[0] >= mean[1] else -np.inf
