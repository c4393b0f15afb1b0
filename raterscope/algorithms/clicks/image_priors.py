"""Priors of each image from the other images of a run, and from earlier images with the same annotators.

On an image with artefacts alone, nothing distinguishes them from structures that few annotators saw. Other
images distinguish them: there the same annotators mark structures more often, and artefacts as rarely. Each
image therefore has a prior from the others, by empirical Bayes without the image itself. The prior covers
each annotator's odds of a mark on a structure and on an artefact, and the variation of structures and
artefacts. Its weight is estimated from the differences between images: by overdispersion for the annotators,
by the variance of the images' difficulty for the crowd.

Counts of annotators on earlier images become priors of detection on the next image. The OEM-DEM paper
(section 4) instead starts the clustering of the next image with the reliabilities of eq. 12, see
`OEMSettings.carry_reliability` and `Experience.reliability`. The weight of experience is estimated from the
differences of annotators between images, as for images that are fused together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Event
from typing import Self

import numpy as np

from raterscope.algorithms.clicks._explanations import explain, vote_likelihood
from raterscope.algorithms.clicks._shared_priors import (
    SPREAD,
    Advice,
    CrossImagePriors,
    Run,
    Tally,
    apply_advice,
    estimate_cross_image_priors,
    mark_log_odds,
    pooled,
    prior_attraction,
    tally_of,
)
from raterscope.algorithms.clicks._structure_share import StructureShare, estimate_structure_share
from raterscope.algorithms.clicks._vote_model import (
    EDGE,
    ClusterPosteriors,
    EMResult,
    Prior,
    Problem,
    Stack,
    StackedEMResult,
    ascend,
    log_odds,
    log_votes,
    without_decisions,
)
from raterscope.algorithms.clicks.data import FloatArray, IntArray
from raterscope.algorithms.clicks.dem import (
    DEMSettings,
    judge,
    mix_looks,
    models_artefacts,
    problem_of,
    undecided_posterior,
)
from raterscope.algorithms.clicks.result import Detection, Fusion, Votes
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

JUDGED_AT_ONCE = 16
"""Number of images whose intervals a thread draws at a time."""

TOP = 0.25
"""Share of an image's clusters, those with most votes, that are structures at the strictest start."""

NODES = 13
"""Number of nodes of the ease of structures in the crowd's prior."""

_ROUNDS_BY_IMAGE = 5
"""Number of alternating estimates of an image's annotators and the ease of its structures."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """Result of EM on one image with the priors from all images."""

    problem: Problem
    ascent: EMResult
    structure_share: StructureShare
    undecided: FloatArray | None  # (M,): posteriors without any decisions; None in a run without decisions


def can_share(votes: Votes, settings: DEMSettings) -> bool:
    """Return whether an image can share with others: with the crowd's prior, and with clusters."""
    return settings.learn_across_images and models_artefacts(votes, settings) and votes.marked.shape[1] > 0


def weigh_together(
    votes: Sequence[Votes],
    annotators: Sequence[Sequence[str]],
    posteriors: Sequence[FloatArray],
    settings: DEMSettings,
    watch: Watch,
    problems: Sequence[Problem] | None = None,
) -> list[Evidence]:
    """Run EM on several images, each with priors from the others.

    The rounds have three starts: each image judged alone; the majority vote, which is better if most images
    hold only artefacts; and the clusters of each image with most votes, which is better if some annotators
    mark everything. With decisions, a fourth start is the result without them. Starts may lead to different
    explanations of the votes. Explanations are weighted by how well the images predict each other's votes;
    spots on which two good ones differ become disputed. One whose artefacts attract more of the crowd than
    structures has weight zero, because the two kinds are swapped. Decisions recorded by their outcome, for
    example rejections only, would bias EM for spots similar to the recorded ones, and few decisions may
    change the explanation of the whole crowd. The looks without decisions therefore have a weight
    (`decision_weight`), also if the decisions turned out as expected.

    The order of the images does not matter. Copies of an image, which have the same votes, count once.

    `votes`: votes on two or more images that `can_share`.
    `annotators`: for each image, the names of its annotators; the same name is the same annotator.
    `posteriors`: (M,) of each image judged alone, without scores, see `posterior_by_votes`.
    `problems`: problems of the images, as from `problem_of`.
    """
    contents = [_content(image, own) for image, own in zip(votes, annotators, strict=True)]
    order = sorted(range(len(votes)), key=lambda i: (contents[i], votes[i].verdict.tobytes()))
    number = Counter(contents)
    copies = [number[contents[i]] for i in order]
    names = {name: row for row, name in enumerate(sorted({name for image in annotators for name in image}))}
    rows = [np.array([names[name] for name in annotators[i]], dtype=np.int64) for i in order]
    problems = [problem_of(votes[i], settings) if problems is None else problems[i] for i in order]
    run = Run.of(problems, rows, len(names), copies)
    starts = [posteriors[i] for i in order]
    undecided: list[ClusterPosteriors] | None = None
    without: tuple[list[Problem], list[EMResult]] = ([], [])
    inner_watch = watch
    if any(problem.known.any() for problem in problems):
        bare = Run.of([without_decisions(problem) for problem in problems], rows, len(names), copies)
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
    problems, finals = _average_starts(run, sides, settings, part(inner_watch, 0.0, 0.99))
    loss = 0.0
    if undecided is not None:
        loss = _lost(without, problems, finals)
    structure_share = estimate_structure_share(
        list(zip(problems, finals, strict=True)),
        part(inner_watch, 0.99, 1.0),
        None if undecided is None else [look.present for look in undecided],
        loss,
    )
    evidence: dict[int, Evidence] = {}
    for done, i in enumerate(order):
        problem, final, alone = problems[done], finals[done], None
        if undecided is not None:
            doubted, others = structure_share[done].doubted, without[1][done].explanations
            mixed = [
                (share * weight, explained, result)
                for share, explanations in ((1 - doubted, final.explanations), (doubted, others))
                for weight, explained, result in explanations
            ]
            final = replace(mix_looks(problem, final, undecided[done], doubted), explanations=tuple(mixed))
            chance = structure_share[done].undecided(problem.count / (problem.crowd or 1.0))
            alone = undecided[done].present * chance
        evidence[i] = Evidence(problem, final, structure_share[done], alone)
    return [evidence[i] for i in range(len(votes))]


def judge_each(
    evidence: Sequence[Evidence], settings: DEMSettings, watch: Watch, *, rated: bool = True,
    at_once: int = JUDGED_AT_ONCE,
) -> list[Detection]:  # fmt: skip
    """Detect structures on each image; `rated` as for `judge`.

    `at_once`: number of images that a thread judges at a time.
    """
    stopped = Event()

    def conclude(begin: int, end: int) -> list[Detection]:
        detections = []
        for own in evidence[begin:end]:
            detection = judge(
                own.problem, own.ascent, settings, own.structure_share, watch_until(stopped), rated=rated
            )
            if own.undecided is not None:
                detection = replace(detection, undecided=own.undecided)
            detections.append(detection)
        return detections

    images, words = parts_of(len(evidence), at_once), "drawing annotators' rates"
    try:
        parts = wait_watching(partial(run_parts, conclude, images, no_check), watch, 0.0, words)
    finally:
        stopped.set()
    watch(1.0, words)
    return [detection for part in parts for detection in part]


def _average_starts(
    run: Run, starts: Sequence[Sequence[FloatArray]], settings: DEMSettings, watch: Watch
) -> tuple[list[Problem], list[EMResult]]:
    """Run the rounds from all starts and those from votes; return problems and averaged ascents.

    The problems have the priors of the best explanation. The ascents are results of EM with these priors, but
    their looks are means over the explanations.
    """
    own = run.stack.problems
    half = [problem.count >= problem.crowd / 2 - EDGE for problem in own]
    top = [problem.count >= np.quantile(problem.count, 1 - TOP) - EDGE for problem in own]
    sides = [np.concatenate(side).astype(np.float64) for side in (*starts, half, top)]
    likely, weights, resampled = explain(run, sides, settings, part(watch, 0.0, 0.8))
    ends = []
    for index, fit in enumerate(likely):
        step = part(watch, 0.8 + 0.2 * index / len(likely), 0.8 + 0.2 * (index + 1) / len(likely))
        ends.append(_finish(fit.ascent, settings, step))
    problems = [fit.ascent.stack.updated() for fit in likely]
    finals = [
        replace(
            rows[0],
            looks=_mean_looks([row.looks for row in rows], weights),
            explanations=tuple(zip(resampled, explained, rows, strict=True)),
        )
        for rows, explained in zip(zip(*ends, strict=True), zip(*problems, strict=True), strict=True)
    ]
    return problems[0], finals


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
    return tuple(names), votes.marked.tobytes(), stray, votes.places


def _lost(
    without: tuple[list[Problem], list[EMResult]], problems: Sequence[Problem], finals: Sequence[EMResult]
) -> float:
    """Return the loss in log likelihood of the votes by fitting the decisions."""
    values = list[float]()
    for own, ascents in (without, ([without_decisions(problem) for problem in problems], finals)):
        stack = Stack.of(own)
        state = stack.state_of([ascent.state for ascent in ascents])
        values.append(float(np.cumsum(vote_likelihood(stack, state.chance, state.kinds))[-1]))
    return values[0] - values[1]


@dataclass(frozen=True, eq=False)
class Experience:
    """Expected votes of A annotators on I images."""

    annotators: tuple[str, ...]  # (A,): rising
    images: int
    # hits, lured: (A,): marks on structures, and on other clusters
    hits: FloatArray
    lured: FloatArray
    structures: FloatArray  # (A, K): structures on the images that each annotator saw, by node of ease
    artefacts: FloatArray  # (A, L): artefacts, by node of allure
    # inliers, outliers: (A,): marks in clusters, and outside of clusters
    inliers: FloatArray
    outliers: FloatArray
    ease: FloatArray  # (K,): structures of all images by node
    allure: FloatArray  # (L,): artefacts of all images, by node
    # votes, clusters: upper bounds of the weight of an annotator's votes on other images, and of clusters,
    # from the differences between images
    votes: float
    clusters: float

    @classmethod
    def none(cls) -> Self:
        """Return the experience before the first image."""
        empty, lures = np.empty(0), len(SPREAD)
        return cls(
            (), 0, empty, empty, np.empty((0, NODES)), np.empty((0, lures)), empty, empty,
            np.zeros(NODES), np.zeros(lures), 1.0, 1.0,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.annotators)

    def rows(self, names: Sequence[str]) -> IntArray:
        """Return the row of each of n names, (n,); -1 for unknown annotators."""
        index = {name: row for row, name in enumerate(self.annotators)}
        return np.array([index.get(name, -1) for name in names], dtype=np.int64)

    def reliability(self, names: Sequence[str]) -> FloatArray:
        """Return the share of each of n annotators' marks in clusters (eq. 12 over the images).

        The result, (n,), is NaN for annotators without a mark on these images.
        """
        rows = self.rows(names)
        reliability = np.full(len(rows), np.nan)
        known = np.flatnonzero(rows >= 0)
        inliers, marks = self.inliers[rows[known]], (self.inliers + self.outliers)[rows[known]]
        reliability[known] = np.divide(inliers, marks, out=np.full(len(known), np.nan), where=marks > 0)
        return reliability


def experience_of(
    fusions: Sequence[Fusion],
    annotators: Sequence[Sequence[str]],
    watch: Watch = silent,
    *,
    weights: Sequence[FloatArray | None] | None = None,
) -> Experience:
    """Gather the experience with annotators on some images.

    `annotators`: for each fusion, the names of its annotators, in its order; the same name is the same
    annotator. `weights`: (R,) or None for each fusion, the weights of its annotators (`Clicks.weights`). They
    affect the counts of structures; an annotator's own counts use all marks. The order of the images does not
    matter.
    """
    gathered = _gather(fusions, annotators, weights)
    return Experience.none() if gathered is None else gathered.experience(watch)


def experiences_of(
    fusions: Sequence[Fusion],
    annotators: Sequence[Sequence[str]],
    watch: Watch = silent,
    *,
    weights: Sequence[FloatArray | None] | None = None,
) -> list[Experience]:
    """Gather, for every image, the experience on all others.

    Its weight is estimated once, from all images.

    `fusions`, `annotators`, `watch`, `weights`: as for `experience_of`.
    """
    gathered = _gather(fusions, annotators, weights)
    if gathered is None:
        return [Experience.none() for _ in fusions]
    everything, rows = gathered.experience(watch), {i: row for row, i in enumerate(gathered.known)}
    return [gathered.without(everything, rows[i]) if i in rows else everything for i in range(len(fusions))]


@dataclass(frozen=True, eq=False)
class _Gathered:
    """Images with clusters: expected counts of their annotators, and marks in clusters."""

    known: list[int]
    names: tuple[str, ...]
    run: Run
    tally: Tally
    marks: list[FloatArray]  # (2, R) each: part of a cluster, and not

    def experience(self, watch: Watch) -> Experience:
        total = pooled(self.run, self.tally)
        cross_image = estimate_cross_image_priors(self.run, self.tally, total, watch)
        marks = np.zeros((2, len(self.names)))
        for own, annotators in zip(self.marks, self.run.stack.annotators(), strict=True):
            marks[:, self.run.rows[annotators]] += own
        return Experience(
            annotators=self.names,
            images=len(self.known),
            hits=total.hits,
            lured=total.lured,
            structures=total.structures,
            artefacts=total.artefacts,
            inliers=marks[0],
            outliers=marks[1],
            ease=self.tally.structures.sum(axis=0),
            allure=self.tally.artefacts.sum(axis=0),
            votes=cross_image.votes,
            clusters=cross_image.clusters,
        )

    def without(self, everything: Experience, row: int) -> Experience:
        """Return the experience without an image."""
        if len(self.known) == 1:
            return Experience.none()
        first = self.run.stack.votes.annotators
        own, tally, marks = slice(first[row], first[row + 1]), self.tally, self.marks[row]
        others = {
            "hits": tally.hits[own], "lured": tally.lured[own], "structures": tally.structures[row],
            "artefacts": tally.artefacts[row], "inliers": marks[0], "outliers": marks[1],
        }  # fmt: skip
        remaining, rows = {}, self.run.rows[own]
        for name, counts in others.items():
            remaining[name] = getattr(everything, name).copy()
            remaining[name][rows] = np.maximum(remaining[name][rows] - counts, 0)
        return replace(
            everything,
            images=everything.images - 1,
            ease=np.maximum(everything.ease - tally.structures[row], 0),
            allure=np.maximum(everything.allure - tally.artefacts[row], 0),
            **remaining,
        )


def _gather(
    fusions: Sequence[Fusion],
    annotators: Sequence[Sequence[str]],
    weights: Sequence[FloatArray | None] | None,
) -> _Gathered | None:
    known = [i for i, fusion in enumerate(fusions) if len(fusion.clustering)]
    if not known:
        return None
    names = tuple(sorted({name for i in known for name in annotators[i]}))
    index = {name: row for row, name in enumerate(names)}
    allure = prior_attraction(len(names))
    images = []
    for i in known:
        rows = np.array([index[name] for name in annotators[i]], dtype=np.int64)
        problem = _problem(fusions[i], None if weights is None else weights[i])
        run = Run.of([problem], [rows], len(names))
        tally = tally_of(run, _looks(run.stack, fusions[i]), allure)
        clicks = fusions[i].rates.clicks
        inliers = np.nan_to_num(fusions[i].clustering.reliability) * clicks
        images.append((i, problem, rows, tally, np.array([inliers, clicks - inliers])))
    images.sort(key=lambda image: (annotators[image[0]], image[3].hits.tobytes()))
    order, problems, rows_of, tallies, marks = (list(column) for column in zip(*images, strict=True))
    tally = Tally(
        *(
            np.concatenate([getattr(own, name) for own in tallies])
            for name in ("hits", "structures", "lured", "artefacts")
        )
    )
    return _Gathered(order, names, Run.of(problems, rows_of, len(names)), tally, marks)


def apply_experience(problem: Problem, annotators: Sequence[str], experience: Experience) -> Problem:
    """Return the problem of an image with the prior from experience instead of the crowd's prior.

    A problem with another prior is returned unchanged. `annotators`: names of the image's annotators.
    """
    if not experience.images or not problem.prior.places:
        return problem
    advice = advice_for(problem.prior, annotators, experience)
    return apply_advice(Stack.of([problem]), advice).updated()[0]


def advice_for(prior: Prior, annotators: Sequence[str], experience: Experience) -> Advice:
    """Convert experience to the advice that a prior is made of.

    `prior`: prior of the image alone. `annotators`: unknown annotators are treated as average.
    """
    rows = experience.rows(annotators)
    tally = Tally(
        *(
            np.where(rows.reshape(-1, *[1] * (counts.ndim - 1)) >= 0, counts[rows], 0.0)
            if len(counts)
            else np.zeros((len(rows), *counts.shape[1:]))
            for counts in (experience.hits, experience.structures, experience.lured, experience.artefacts)
        )
    )
    votes = [
        np.full(len(rows), float(prior_votes.mean()) if len(prior_votes) else 1.0)
        for prior_votes in (prior.hit, prior.miss)
    ]
    odds, lure = mark_log_odds(prior.shift, (votes[0], votes[1]), tally)
    cross_image = CrossImagePriors(
        odds, lure, tally.structures.sum(axis=1), experience.votes, experience.clusters
    )
    return Advice(cross_image, experience.ease[None], experience.allure[None])


def _problem(fusion: Fusion, worth: FloatArray | None) -> Problem:
    """Prepare votes with the crowd's prior, without chance meetings."""
    zeros = np.zeros(len(fusion.marked))
    votes = Votes(fusion.marked, fusion.clustering.weight, fusion.verdict, zeros, 1.0, worth)
    return problem_of(votes, DEMSettings())


def _looks(stack: Stack, fusion: Fusion) -> ClusterPosteriors:
    """Estimate the ease of structures on an image, given which clusters are structures."""
    (problem,), present = stack.problems, fusion.detection.posterior
    prior = problem.prior
    odds, share = np.zeros(problem.marks.annotators), prior.share
    hits = problem.marks.sums(present)
    for _ in range(_ROUNDS_BY_IMAGE):
        joint = prior.trust * log_votes(stack, odds, prior.shift) + np.log(share)
        structure = np.exp(joint - np.logaddexp.reduce(joint, axis=1)[:, None]) * present[:, None]
        nodes = structure.sum(axis=0)
        seen = np.broadcast_to(nodes, (len(odds), len(nodes)))
        odds = log_odds(hits, seen, prior.shift, (prior.hit, prior.miss), odds)
        share = (nodes + prior.strength * prior.share) / (nodes.sum() + prior.strength)
    return ClusterPosteriors(structure, 1 - present, np.zeros(len(present)))
