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
from functools import partial
from threading import Event

import numpy as np

from raterscope.algorithms.clicks._shared_priors import (
    Run,
    add_shared_priors,
    estimate_attraction,
    pooled,
    prior_attraction,
    tally_of,
)
from raterscope.algorithms.clicks._structure_share import estimate_structure_share
from raterscope.algorithms.clicks._vote_model import (
    EDGE,
    ClusterPosteriors,
    EMResult,
    Problem,
    Stack,
    StackedEMResult,
    ascend,
    without_decisions,
)
from raterscope.algorithms.clicks.data import FloatArray
from raterscope.algorithms.clicks.dem import (
    DEMSettings,
    judge,
    mix_looks,
    models_artefacts,
    problem_of,
    undecided_posterior,
)
from raterscope.algorithms.clicks.result import Detection, Votes
from raterscope.algorithms.progress import (
    Watch,
    no_check,
    part,
    parts_of,
    run_parts,
    silent,
    wait_watching,
    watch_until,
)

ROUNDS = 4
"""Rounds of priors from all images and detection on each."""

NEGLIGIBLE = 7.0
"""Difference of log likelihood from the best side at which a side has a weight below .001."""

JUDGED_AT_ONCE = 16
"""Images whose intervals a thread draws before it takes the next ones."""

STEPS = 8
"""Iterations of EM on an image in a round; the last round runs to convergence."""


@dataclass(frozen=True, eq=False)
class Verdicts:
    """Result of the rounds from one start."""

    score: float
    ascent: StackedEMResult


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
    problems: Sequence[Problem] | None = None,
) -> list[Detection]:
    """Detect structures on several images together.

    The rounds start from two sides: each image judged alone, and the majority vote, which is better where
    most images hold artefacts alone. With decisions, a third side is the result without them. Sides are
    weighted by how well the images predict each other's votes. If two do so about equally well, a spot on
    which they differ is disputed. A side where artefacts attract more of the crowd than structures has weight
    zero: the two kinds are swapped.

    Decisions recorded by their outcome, for example rejections only, would bias EM for spots similar to the
    recorded ones, and few decisions may change the explanation of the whole crowd. To that degree, or if the
    decisions turned out as expected, looks without decisions are used (`decision_weight`).

    The order of the images does not matter.

    `votes`: votes on two or more images that `can_share`.
    `annotators`: for each image, the names of its annotators; the same name is the same annotator.
    `posteriors`: (M,) of each image judged alone, without scores, see `posterior_by_votes`.
    `rated`: as for `judge`.
    `problems`: problems of the images, as from `problem_of`.
    """
    order = sorted(range(len(votes)), key=lambda i: _content(votes[i], annotators[i]))
    names = {name: row for row, name in enumerate(sorted({name for image in annotators for name in image}))}
    rows = [np.array([names[name] for name in annotators[i]], dtype=np.int64) for i in order]
    problems = [problem_of(votes[i], settings) if problems is None else problems[i] for i in order]
    run = Run.of(problems, rows, len(names))
    starts = [posteriors[i] for i in order]
    undecided: list[ClusterPosteriors] | None = None
    without: tuple[list[Problem], list[EMResult]] = ([], [])
    inner_watch = watch
    if any(problem.known.any() for problem in problems):
        bare = Run.of([without_decisions(problem) for problem in problems], rows, len(names))
        free = [
            undecided_posterior(
                votes[i], settings, part(watch, 0.2 * index / len(order), 0.2 * (index + 1) / len(order))
            )
            if problems[index].known.any()
            else starts[index]
            for index, i in enumerate(order)
        ]
        without = _average_starts(bare, [free], settings, part(watch, 0.2, 0.42))
        undecided, inner_watch = [ascent.looks for ascent in without[1]], part(watch, 0.42, 1.0)
    sides = [starts] if undecided is None else [starts, [look.present for look in undecided]]
    problems, finals = _average_starts(run, sides, settings, part(inner_watch, 0.0, 0.84))
    loss = 0.0
    if undecided is not None:
        loss = _lost(without, problems, finals)
    honesty = estimate_structure_share(
        list(zip(problems, finals, strict=True)),
        part(inner_watch, 0.84, 0.85),
        None if undecided is None else [look.present for look in undecided],
        loss,
    )
    detections: dict[int, Detection] = {}
    stopped = Event()

    def conclude(begin: int, end: int) -> None:
        for done in range(begin, end):
            i, problem, final = order[done], problems[done], finals[done]
            if undecided is not None:
                final = mix_looks(problem, final, undecided[done], honesty[done].doubted)
            detection = judge(problem, final, settings, honesty[done], watch_until(stopped), rated=rated)
            if undecided is not None:
                chance = honesty[done].undecided(problem.count / (problem.crowd or 1.0))
                detection = replace(detection, undecided=undecided[done].present * chance)
            detections[i] = detection

    step, words = part(inner_watch, 0.85, 1.0), "drawing annotators' rates"
    images = parts_of(len(order), JUDGED_AT_ONCE if rated else len(order))
    try:
        wait_watching(partial(run_parts, conclude, images, no_check), step, 0.0, words)
    finally:
        stopped.set()
    step(1.0, words)
    return [detections[i] for i in range(len(votes))]


def _average_starts(
    run: Run, starts: Sequence[Sequence[FloatArray]], settings: DEMSettings, watch: Watch
) -> tuple[list[Problem], list[EMResult]]:
    """Run the rounds from all sides, including the majority vote; return problems and averaged ascents.

    The problems have the priors of the best side. The ascents are results of EM with them, but their looks
    are means over the sides.
    """
    majority = [
        (2 * problem.count >= problem.crowd - EDGE).astype(np.float64) for problem in run.stack.problems
    ]
    sides = [*starts, majority]
    step_width = 0.8 / len(sides)
    fits = [
        _rounds(
            run, np.concatenate(side), settings, part(watch, step_width * index, step_width * (index + 1))
        )
        for index, side in enumerate(sides)
    ]
    fits.sort(key=lambda fit: -fit.score)
    likely = [fit for fit in fits if fit is fits[0] or fits[0].score - fit.score < NEGLIGIBLE]
    weights = np.exp([0.0, *(fit.score - fits[0].score for fit in likely[1:])])
    ends = []
    for index, fit in enumerate(likely):
        step = part(watch, 0.8 + 0.2 * index / len(likely), 0.8 + 0.2 * (index + 1) / len(likely))
        ends.append(_finish(fit.ascent, settings, step))
    finals = [
        replace(rows[0], looks=_mean_looks([row.looks for row in rows], weights / weights.sum()))
        for rows in zip(*ends, strict=True)
    ]
    return fits[0].ascent.stack.updated(), finals


def _finish(ascent: StackedEMResult, settings: DEMSettings, watch: Watch) -> list[EMResult]:
    """Run EM to convergence on every image."""
    longest, tolerance = settings.detection_iterations, settings.detection_tolerance
    final = ascend(ascent.stack, ascent.looks.present, longest, tolerance, watch)
    return [final.image(index) for index in range(len(final.stack))]


def _mean_looks(looks: Sequence[ClusterPosteriors], weights: FloatArray) -> ClusterPosteriors:
    if len(looks) == 1:
        return looks[0]
    return ClusterPosteriors(
        *(
            np.asarray(np.tensordot(weights, [getattr(look, name) for look in looks], 1))
            for name in ("structure", "artefact", "chance")
        )
    )


def _content(votes: Votes, names: Sequence[str]) -> tuple[object, ...]:
    stray = b"" if votes.stray is None else votes.stray.tobytes()
    return tuple(names), votes.marked.tobytes(), votes.verdict.tobytes(), stray, votes.places


def _rounds(run: Run, present: FloatArray, settings: DEMSettings, watch: Watch) -> Verdicts:
    """Alternate between priors from all images and detection on each, a few times.

    `present` has the initial posteriors of all clusters, one image behind the other.
    """
    share = run.stack.prior.share[run.stack.image_of_cluster]
    now = ClusterPosteriors(present[:, None] * share, (1 - present) / 2, (1 - present) / 2)
    allure = prior_attraction(run.annotators)
    for iteration in range(ROUNDS):
        step = part(watch, iteration / ROUNDS, (iteration + 1) / ROUNDS)
        tally = tally_of(run, now, allure)
        total = pooled(run, tally)
        stack = add_shared_priors(run, tally, total, part(step, 0.0, 0.3))
        ascent = ascend(stack, now.present, STEPS, settings.detection_tolerance, part(step, 0.3, 1.0))
        now, allure = ascent.looks, estimate_attraction(tally, total)
    return Verdicts(_score(ascent), ascent)


def _score(ascent: StackedEMResult) -> float:
    """Return the log likelihood of all votes; minus infinity where artefacts attract more than structures."""
    stack = ascent.stack
    crowd = np.array([problem.crowd for problem in stack.problems])[stack.image_of_cluster]
    drawn = np.array([ascent.looks.present, ascent.looks.artefact]) @ np.column_stack(
        [stack.votes.count, crowd]
    )
    mean = drawn[:, 0] / np.maximum(drawn[:, 1], EDGE)
    if mean[0] < mean[1]:
        return -np.inf
    return _vote_likelihood(stack, ascent.state.chance, ascent.state.kinds)


def _vote_likelihood(stack: Stack, chance: FloatArray, kinds: FloatArray) -> float:
    """Return the log likelihood of all votes and decisions, each image's predicted by the others.

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
    return float(np.cumsum(np.concatenate(ascent.objective))[-1])


def _lost(
    without: tuple[list[Problem], list[EMResult]], problems: Sequence[Problem], finals: Sequence[EMResult]
) -> float:
    """Return the log likelihood of the votes that the fit loses by the decisions."""
    values = []
    for own, ascents in (without, ([without_decisions(problem) for problem in problems], finals)):
        stack = Stack.of(own)
        state = stack.state_of([ascent.state for ascent in ascents])
        values.append(_vote_likelihood(stack, state.chance, state.kinds))
    return values[0] - values[1]
