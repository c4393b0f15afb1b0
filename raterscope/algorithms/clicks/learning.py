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
    posterior_by_votes,
    problem_of,
    undecided_posterior,
    unselected,
)
from raterscope.algorithms.clicks.results import Detection, Votes
from raterscope.algorithms.progress import Watch, part, silent

__all__ = ["can_learn", "learn"]

ROUNDS = 4
"""Of learning from all images and judging each again."""

NEGLIGIBLE = 7.0
"""Difference of log likelihood from the best side from which on a side weighs less than .001."""

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
    which does better where most images hold artefacts alone; after decisions also from what came out without
    them. Each side weighs by how well the images predict each other's votes there, so that where two do so
    about equally well, a spot on which they differ is disputed. A side weighs nothing where artefacts draw
    more of the crowd than structures do, for there the two have changed names.

    Decisions that were recorded by their outcome, as rejections only, would teach EM that what looks like the
    recorded spots is what they are. As far as that is probable, looks are those without decisions.

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
    starts = [
        posteriors[i] if votes[i].score is None else posterior_by_votes(votes[i], settings, silent)
        for i in order
    ]
    undecided: list[Looks] | None = None
    without: tuple[list[Problem], list[Ascent]] = ([], [])
    rest = watch
    if any(image.problem.known.any() for image in images):
        bare = [replace(image, problem=without_decisions(image.problem)) for image in images]
        free = [
            undecided_posterior(
                votes[i], settings, part(watch, 0.2 * turn / len(order), 0.2 * (turn + 1) / len(order))
            )
            if images[turn].problem.known.any()
            else starts[turn]
            for turn, i in enumerate(order)
        ]
        without = _averaged(bare, [free], len(names), settings, part(watch, 0.2, 0.42))
        undecided, rest = [ascent.looks for ascent in without[1]], part(watch, 0.42, 1.0)
    sides = [starts] if undecided is None else [starts, [one.present for one in undecided]]
    problems, finals = _averaged(images, sides, len(names), settings, part(rest, 0.0, 0.84))
    loss = 0.0
    if undecided is not None:
        loss = _vote_likelihood(*without) - _vote_likelihood(
            [without_decisions(problem) for problem in problems], finals
        )
    honesty = honesty_of(
        list(zip(problems, finals, strict=True)),
        part(rest, 0.84, 0.85),
        None if undecided is None else [one.present for one in undecided],
        loss,
    )
    detections = {}
    for done, (i, problem, final) in enumerate(zip(order, problems, finals, strict=True)):
        step = part(rest, 0.85 + 0.15 * done / len(order), 0.85 + 0.15 * (done + 1) / len(order))
        if undecided is not None:
            final = unselected(problem, final, undecided[done], honesty[done].selected)
        detections[i] = judge(problem, final, settings, honesty[done], step)
        if undecided is not None:
            chance = honesty[done].undecided(problem.count / (problem.crowd or 1.0))
            detections[i] = replace(detections[i], undecided=undecided[done].present * chance)
    return [detections[i] for i in range(len(votes))]


def _averaged(
    images: Sequence[Image],
    starts: Sequence[Sequence[FloatArray]],
    annotators: int,
    settings: DEMSettings,
    watch: Watch,
) -> tuple[list[Problem], list[Ascent]]:
    """Learn from all sides, the vote of the majority among them.

    Returns
    -------
    problems : list of Problem
        With the priors of the best side.
    ascents : list of Ascent
        Where EM comes to with them; the looks are means over the sides.
    """
    majority = [
        (2 * image.problem.count >= image.problem.crowd - EDGE).astype(np.float64) for image in images
    ]
    sides = [*starts, majority]
    each = 0.8 / len(sides)
    found = [
        _rounds(images, side, annotators, settings, part(watch, each * turn, each * (turn + 1)))
        for turn, side in enumerate(sides)
    ]
    found.sort(key=lambda one: -one.score)
    likely = [one for one in found if one is found[0] or found[0].score - one.score < NEGLIGIBLE]
    weights = np.exp([0.0, *(one.score - found[0].score for one in likely[1:])])
    ends = []
    for turn, one in enumerate(likely):
        step = part(watch, 0.8 + 0.2 * turn / len(likely), 0.8 + 0.2 * (turn + 1) / len(likely))
        ends.append(_finished(one, settings, step))
    finals = [
        replace(rows[0], looks=_mean_looks([row.looks for row in rows], weights / weights.sum()))
        for rows in zip(*ends, strict=True)
    ]
    return found[0].problems, finals


def _finished(side: Verdicts, settings: DEMSettings, watch: Watch) -> list[Ascent]:
    """Let EM go on to its end on every image."""
    finals = []
    for done, (problem, ascent) in enumerate(zip(side.problems, side.ascents, strict=True)):
        step = part(watch, done / len(side.problems), (done + 1) / len(side.problems))
        longest, tolerance = settings.detection_iterations, settings.detection_tolerance
        finals.append(climb(problem, ascent.looks.present, longest, tolerance, step))
    return finals


def _mean_looks(looks: Sequence[Looks], weights: FloatArray) -> Looks:
    return Looks(
        *(
            np.asarray(np.tensordot(weights, [getattr(one, name) for one in looks], 1))
            for name in ("structure", "artefact", "chance")
        )
    )


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
    """Give the log likelihood of all votes; minus infinity where artefacts draw more than structures."""
    drawn = np.zeros((2, 2))
    for problem, ascent in zip(problems, ascents, strict=True):
        seen = np.array([ascent.looks.present, ascent.looks.artefact])
        drawn += np.column_stack([seen @ problem.count, seen.sum(axis=1) * problem.crowd])
    mean = drawn[:, 0] / np.maximum(drawn[:, 1], EDGE)
    return _vote_likelihood(problems, ascents) if mean[0] >= mean[1] else -np.inf


def _vote_likelihood(problems: Sequence[Problem], ascents: Sequence[Ascent]) -> float:
    """Give the log likelihood of all votes and decisions, each image's predicted by the others."""
    score = 0.0
    for problem, ascent in zip(problems, ascents, strict=True):
        prior, none = problem.prior, np.zeros(len(problem.prior.hit))
        bare = replace(prior, hit=none, miss=none, quiet=none, false=none, kinds=np.zeros(3), strength=0.0)
        predicted = replace(ascent.state, odds=np.log(prior.hit / prior.miss), share=prior.share)
        score += looks(replace(problem, prior=bare), predicted)[1]
    return score
