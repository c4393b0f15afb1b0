"""Learning across the images of a run: priors of each image from the others.

On an image with artefacts alone, nothing distinguishes them from structures that few annotators saw. Other
images do: the same annotators mark structures more often there, and artefacts as rarely. Each image therefore
has a prior from the others, by empirical Bayes without the image itself. The prior covers each annotator's
odds of a mark on a structure and on an artefact, and the variation of structures and artefacts. Its weight is
estimated from the differences between images: by overdispersion for the annotators, by the variance of the
images' difficulty for the crowd.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from raterscope.algorithms.clicks._structure_share import honesty_of
from raterscope.algorithms.clicks._vote_model import (
    EDGE,
    Ascent,
    Looks,
    Prior,
    Problem,
    log_odds,
    looks,
    odds_of_votes,
    run_em,
    without_decisions,
)
from raterscope.algorithms.clicks.data import FloatArray, IntArray
from raterscope.algorithms.clicks.dem import (
    DEMSettings,
    judge,
    mix_looks,
    models_artefacts,
    posterior_by_votes,
    problem_of,
    undecided_posterior,
)
from raterscope.algorithms.clicks.result import Detection, Votes
from raterscope.algorithms.progress import Watch, part, silent

FEW = 2.0
"""Minimum structures, on an image or seen by an annotator, for information on differences."""

ENOUGH = 20.0
"""Structures on other images at which the weight estimated from them counts half."""

WEIGHT = (1.0, 60.0)
"""Limits of the weight of the other images, in votes or clusters."""

SPREAD = np.linspace(-4, 4, 17)
"""Nodes of the log odds by which artefacts differ."""

ARTEFACT = 0.25
"""Expected share of the annotators that an artefact attracts: the mean of Beta(1, 3)."""

LURE = float(np.log(ARTEFACT / (1 - ARTEFACT)))
"""Its log odds."""

USUAL_ARTEFACTS = 20.0
"""Number of artefacts that the prior of artefacts counts as, for every annotator and for their variation."""

USUAL_STRUCTURES = 5.0
"""Number of structures that the prior of their variation counts as."""


@dataclass(frozen=True, eq=False)
class Image:
    """Votes of an image with its own prior, and the rows of its annotators among all of the run."""

    problem: Problem
    rows: IntArray  # (R,)


@dataclass(frozen=True, eq=False)
class Tally:
    """Expected marks of R annotators on structures and artefacts, and the numbers of these.

    The numbers are by node of ease; of an image (K,) and (L,), of the run's annotators (R, K) and (R, L).
    """

    hits: FloatArray
    structures: FloatArray
    lured: FloatArray
    artefacts: FloatArray


@dataclass(frozen=True, eq=False)
class Allure:
    """Attraction of artefacts for all R annotators: log odds of a mark at node 0, share at each node."""

    lure: FloatArray  # (R,)
    spread: FloatArray  # (L,)


@dataclass(frozen=True, eq=False)
class Lesson:
    """Prior of an image's R annotators from the other images, and the image's difference from them.

    Attributes
    ----------
    odds, lure : (R,) float64
        Log odds of a mark on a structure and on an artefact, at node 0.
    seen : (R,) float64
        Structures that each annotator saw on the other images.
    ease : float
        Log odds on this image's structures less those predicted from the others.
    expected, variance : (R,) float64
        Mean and variance of the marks on this image's structures, at that ease.
    worth : (R,) float64
        Weight of each annotator.
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
    """Prior of one of R annotators from other images, and its weight.

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
        Upper bounds of the weight, in votes of an annotator and in clusters.
    """

    odds: FloatArray
    lure: FloatArray
    seen: FloatArray
    structures: FloatArray
    artefacts: FloatArray
    votes: float
    clusters: float


def usual_allure(annotators: int) -> Allure:
    """Return the prior attraction of artefacts."""
    return Allure(np.full(annotators, LURE), _usual_spread())


def allure_of(tallies: Sequence[Tally], run: Tally) -> Allure:
    """Estimate how artefacts attract annotators, from the tallies of all images and their sum."""
    artefacts = _summed([tally.artefacts for tally in tallies])
    return Allure(_lure(run.lured, run.artefacts), _blend(artefacts, _usual_spread(), USUAL_ARTEFACTS))


def tally_of(image: Image, now: Looks, allure: Allure) -> Tally:
    """Compute the expected counts of an image's annotators."""
    marks = image.problem.marks
    drawn = _artefact_votes(image.problem, allure.lure[image.rows], allure.spread)
    share = np.exp(drawn - np.logaddexp.reduce(drawn, axis=1)[:, None])
    return Tally(marks @ now.present, now.structure.sum(axis=0), marks @ now.artefact, now.artefact @ share)


def _artefact_votes(problem: Problem, lure: FloatArray, spread: FloatArray) -> FloatArray:
    """Return the log probability of each cluster's votes on an artefact, by node: (M, L).

    Votes are tempered.
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


def teach_images(
    images: Sequence[Image], tallies: Sequence[Tally], run: Tally, watch: Watch
) -> list[Problem]:
    """Return every image with the prior from the others."""
    structures = _summed([tally.structures for tally in tallies])
    artefacts = _summed([tally.artefacts for tally in tallies])
    lessons, votes, clusters = lessons_of(images, tallies, run, watch)
    return [
        apply_advice(
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
    """Compute the lesson of each image from the others, and the upper bounds of its weight."""
    prior = images[0].problem.prior
    structures = _summed([tally.structures for tally in tallies])
    share = _blend(structures, prior.share, USUAL_STRUCTURES)
    lessons = []
    for done, (image, tally) in enumerate(zip(images, tallies, strict=True)):
        lessons.append(_lesson(image, tally, run, share))
        watch((done + 1) / len(images), "learning from the other images")
    votes = _weight_of_votes(tallies, lessons)
    return lessons, votes, _weight_of_clusters(tallies, lessons, share, prior.shift)


def apply_advice(problem: Problem, advice: Advice) -> Problem:
    """Return the problem of an image with the prior from other images."""
    own, seen = problem.prior, advice.seen
    chance = 1 / (1 + np.exp(-advice.odds))
    weight = np.maximum(own.hit + own.miss + advice.votes * seen / (advice.votes + seen), EDGE)
    structures = float(advice.structures.sum())
    prior = replace(
        own,
        hit=weight * chance,
        miss=weight * (1 - chance),
        share=_blend(advice.structures, own.share, USUAL_STRUCTURES),
        strength=own.strength + (advice.clusters - own.strength) * structures / (structures + ENOUGH),
    )
    spread = _blend(advice.artefacts, _usual_spread(), USUAL_ARTEFACTS)
    artefact = np.logaddexp.reduce(_artefact_votes(problem, advice.lure, spread), axis=1)
    return replace(problem, prior=prior, artefact=artefact)


def _lesson(image: Image, tally: Tally, run: Tally, share: FloatArray) -> Lesson:
    prior, rows = image.problem.prior, image.rows
    others = Tally(
        np.maximum(run.hits[rows] - tally.hits, 0),
        np.maximum(run.structures[rows] - tally.structures, 0),
        np.maximum(run.lured[rows] - tally.lured, 0),
        np.maximum(run.artefacts[rows] - tally.artefacts, 0),
    )
    odds, lure = mark_log_odds(prior, others)
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


def mark_log_odds(prior: Prior, tally: Tally) -> tuple[FloatArray, FloatArray]:
    """Return the log odds, at node 0, of each annotator's mark on a structure and on an artefact."""
    empty = np.zeros(len(tally.hits))
    odds = log_odds(tally.hits, tally.structures, prior.shift, (prior.hit, prior.miss), empty)
    return odds, _lure(tally.lured, tally.artefacts)


def _lure(lured: FloatArray, artefacts: FloatArray) -> FloatArray:
    usual = np.full(len(lured), USUAL_ARTEFACTS)
    return log_odds(
        lured, artefacts, SPREAD, (usual * ARTEFACT, usual * (1 - ARTEFACT)), np.full(len(lured), LURE)
    )


def _weight_of_votes(tallies: Sequence[Tally], lessons: Sequence[Lesson]) -> float:
    """Estimate the largest weight of an annotator's votes on other images, from overdispersion.

    If the chance of a mark is drawn for every image from a Beta distribution of that weight, marks vary by a
    factor 1 + (n - 1) / (weight + 1) more than binomial ones. The uncertainty of the chance itself is added.
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
    """Estimate the largest weight of the other images' structures, in clusters, from the images' ease.

    If the shares of the nodes are drawn for every image from a Dirichlet distribution of weight w, the mean
    ease has 1 / (w + 1) of the variance among structures.
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


def _blend(nodes: FloatArray, usual: FloatArray, weight: float) -> FloatArray:
    """Return the share at each node, with the usual shares added as a number of clusters."""
    counts = np.maximum(nodes, 0) + weight * usual
    shares: FloatArray = counts / counts.sum()
    return shares


def _usual_spread() -> FloatArray:
    """Return the shares of artefacts at the nodes for which the share of annotators is Beta(1, 3)."""
    share = 1 / (1 + np.exp(-(LURE + SPREAD)))
    density = share * (1 - share) ** 3
    return np.asarray(density / density.sum(), dtype=np.float64)


def _summed(parts: Sequence[FloatArray]) -> FloatArray:
    return np.asarray(np.sum(parts, axis=0), dtype=np.float64)


ROUNDS = 4
"""Rounds of priors from all images and detection on each."""

NEGLIGIBLE = 7.0
"""Difference of log likelihood from the best side at which a side has a weight below .001."""

STEPS = 8
"""Iterations of EM on an image in a round; the last round runs to convergence."""


@dataclass(frozen=True, eq=False)
class Verdicts:
    """Result of the rounds from one start."""

    score: float
    problems: list[Problem]
    ascents: list[Ascent]


def can_share(votes: Votes, settings: DEMSettings) -> bool:
    """Return whether an image can share with others: with the crowd's prior, and with clusters."""
    return settings.learn_across_images and models_artefacts(votes, settings) and votes.marked.shape[1] > 0


def learn(
    votes: Sequence[Votes],
    annotators: Sequence[Sequence[str]],
    posteriors: Sequence[FloatArray],
    settings: DEMSettings,
    watch: Watch,
    *,
    rated: bool = True,
) -> list[Detection]:
    """Detect structures on several images together.

    The rounds start from two sides: each image judged alone, and the majority vote, which is better where
    most images hold artefacts alone. With decisions, a third side is the result without them. Sides are
    weighted by how well the images predict each other's votes. If two do so about equally well, a spot on
    which they differ is disputed. A side where artefacts attract more of the crowd than structures has weight
    zero: the two kinds are swapped.

    Decisions recorded by their outcome, for example rejections only, would bias EM for spots similar to the
    recorded ones, and few decisions may change the explanation of the whole crowd. To that degree, looks
    without decisions are used (`decision_weight`).

    Parameters
    ----------
    votes : sequence of Votes
        Of two or more images that `can_share`.
    annotators : sequence of names
        For each image, the names of its annotators; the same name is the same annotator.
    posteriors : sequence of (M,) float64
        Of each image judged alone.
    settings : DEMSettings
    watch : Watch
    rated : bool
        As for `judge`.

    Returns
    -------
    list of Detection
        The same for any order of the images.
    """
    order = sorted(range(len(votes)), key=lambda i: _content(votes[i], annotators[i]))
    names = {name: row for row, name in enumerate(sorted({name for image in annotators for name in image}))}
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
    inner_watch = watch
    if any(image.problem.known.any() for image in images):
        bare = [replace(image, problem=without_decisions(image.problem)) for image in images]
        free = [
            undecided_posterior(
                votes[i], settings, part(watch, 0.2 * index / len(order), 0.2 * (index + 1) / len(order))
            )
            if images[index].problem.known.any()
            else starts[index]
            for index, i in enumerate(order)
        ]
        without = _average_starts(bare, [free], len(names), settings, part(watch, 0.2, 0.42))
        undecided, inner_watch = [ascent.looks for ascent in without[1]], part(watch, 0.42, 1.0)
    sides = [starts] if undecided is None else [starts, [look.present for look in undecided]]
    problems, finals = _average_starts(images, sides, len(names), settings, part(inner_watch, 0.0, 0.84))
    loss = 0.0
    if undecided is not None:
        loss = _vote_likelihood(*without) - _vote_likelihood(
            [without_decisions(problem) for problem in problems], finals
        )
    honesty = honesty_of(
        list(zip(problems, finals, strict=True)),
        part(inner_watch, 0.84, 0.85),
        None if undecided is None else [look.present for look in undecided],
        loss,
    )
    detections = {}
    for done, (i, problem, final) in enumerate(zip(order, problems, finals, strict=True)):
        step = part(inner_watch, 0.85 + 0.15 * done / len(order), 0.85 + 0.15 * (done + 1) / len(order))
        if undecided is not None:
            final = mix_looks(problem, final, undecided[done], honesty[done].doubted)
        detections[i] = judge(problem, final, settings, honesty[done], step, rated=rated)
        if undecided is not None:
            chance = honesty[done].undecided(problem.count / (problem.crowd or 1.0))
            detections[i] = replace(detections[i], undecided=undecided[done].present * chance)
    return [detections[i] for i in range(len(votes))]


def _average_starts(
    images: Sequence[Image],
    starts: Sequence[Sequence[FloatArray]],
    annotators: int,
    settings: DEMSettings,
    watch: Watch,
) -> tuple[list[Problem], list[Ascent]]:
    """Run the rounds from all sides, including the majority vote, and average.

    Returns
    -------
    problems : list of Problem
        With the priors of the best side.
    ascents : list of Ascent
        Results of EM with them; the looks are means over the sides.
    """
    majority = [
        (2 * image.problem.count >= image.problem.crowd - EDGE).astype(np.float64) for image in images
    ]
    sides = [*starts, majority]
    step_width = 0.8 / len(sides)
    fits = [
        _rounds(images, side, annotators, settings, part(watch, step_width * index, step_width * (index + 1)))
        for index, side in enumerate(sides)
    ]
    fits.sort(key=lambda fit: -fit.score)
    likely = [fit for fit in fits if fit is fits[0] or fits[0].score - fit.score < NEGLIGIBLE]
    weights = np.exp([0.0, *(fit.score - fits[0].score for fit in likely[1:])])
    ends = []
    for index, fit in enumerate(likely):
        step = part(watch, 0.8 + 0.2 * index / len(likely), 0.8 + 0.2 * (index + 1) / len(likely))
        ends.append(_finish(fit, settings, step))
    finals = [
        replace(rows[0], looks=_mean_looks([row.looks for row in rows], weights / weights.sum()))
        for rows in zip(*ends, strict=True)
    ]
    return fits[0].problems, finals


def _finish(side: Verdicts, settings: DEMSettings, watch: Watch) -> list[Ascent]:
    """Run EM to convergence on every image."""
    finals = []
    for done, (problem, ascent) in enumerate(zip(side.problems, side.ascents, strict=True)):
        step = part(watch, done / len(side.problems), (done + 1) / len(side.problems))
        longest, tolerance = settings.detection_iterations, settings.detection_tolerance
        finals.append(run_em(problem, ascent.looks.present, longest, tolerance, step))
    return finals


def _mean_looks(looks: Sequence[Looks], weights: FloatArray) -> Looks:
    return Looks(
        *(
            np.asarray(np.tensordot(weights, [getattr(look, name) for look in looks], 1))
            for name in ("structure", "artefact", "chance")
        )
    )


def _content(votes: Votes, names: Sequence[str]) -> tuple[object, ...]:
    stray = b"" if votes.stray is None else votes.stray.tobytes()
    return tuple(names), votes.marked.tobytes(), votes.verdict.tobytes(), stray, votes.places


def _rounds(
    images: Sequence[Image], side: Sequence[FloatArray], annotators: int, settings: DEMSettings, watch: Watch
) -> Verdicts:
    """Alternate between priors from all images and detection on each, a few times."""
    now = [
        Looks(present[:, None] * image.problem.prior.share, (1 - present) / 2, (1 - present) / 2)
        for image, present in zip(images, side, strict=True)
    ]
    allure = usual_allure(annotators)
    problems: list[Problem] = []
    ascents: list[Ascent] = []
    for iteration in range(ROUNDS):
        step = part(watch, iteration / ROUNDS, (iteration + 1) / ROUNDS)
        tallies = [tally_of(image, look, allure) for image, look in zip(images, now, strict=True)]
        run = pooled(images, tallies, annotators)
        problems, ascents = teach_images(images, tallies, run, part(step, 0.0, 0.3)), []
        for done, (problem, look) in enumerate(zip(problems, now, strict=True)):
            step_watch = part(step, 0.3 + 0.7 * done / len(now), 0.3 + 0.7 * (done + 1) / len(now))
            ascents.append(run_em(problem, look.present, STEPS, settings.detection_tolerance, step_watch))
        now = [ascent.looks for ascent in ascents]
        allure = allure_of(tallies, run)
    return Verdicts(_score(problems, ascents), problems, ascents)


def _score(problems: Sequence[Problem], ascents: Sequence[Ascent]) -> float:
    """Return the log likelihood of all votes; minus infinity where artefacts attract more than structures."""
    drawn = np.zeros((2, 2))
    for problem, ascent in zip(problems, ascents, strict=True):
        values = np.array([ascent.looks.present, ascent.looks.artefact])
        drawn += np.column_stack([values @ problem.count, values.sum(axis=1) * problem.crowd])
    mean = drawn[:, 0] / np.maximum(drawn[:, 1], EDGE)
    return _vote_likelihood(problems, ascents) if mean[0] >= mean[1] else -np.inf


def _vote_likelihood(problems: Sequence[Problem], ascents: Sequence[Ascent]) -> float:
    """Return the log likelihood of all votes and decisions, each image's predicted by the others."""
    score = 0.0
    for problem, ascent in zip(problems, ascents, strict=True):
        prior, none = problem.prior, np.zeros(len(problem.prior.hit))
        bare = replace(prior, hit=none, miss=none, quiet=none, false=none, kinds=np.zeros(3), strength=0.0)
        predicted = replace(ascent.state, odds=np.log(prior.hit / prior.miss), share=prior.share)
        score += looks(replace(problem, prior=bare), predicted)[1]
    return score
