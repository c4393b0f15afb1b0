"""DEM: EM detection of structures among clusters, with annotators' rates (OEM-DEM paper, section 5).

Also its recursive form, with one EM iteration for each annotator (thesis, Algorithm 5).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, islice

import numpy as np

from raterscope.algorithms.clicks._structure_share import StructureShare, estimate_structure_share
from raterscope.algorithms.clicks._vote_model import (
    BELIEVED,
    EDGE,
    ClusterPosteriors,
    EMResult,
    Prior,
    Problem,
    State,
    initial_posteriors,
    lost_log_probability,
    make_problem,
    run_em,
    run_em_of_starts,
    without_decisions,
)
from raterscope.algorithms.clicks.data import FloatArray, quantiles, within
from raterscope.algorithms.clicks.result import Detection, Votes, level_error
from raterscope.algorithms.progress import Watch, part, parts_of, silent, steps_of
from raterscope.algorithms.settings import Settings, choice, integer, number, switch

SPECIFICITY_STRENGTH = {"stray": 25.0, "usual": 5.0}
"""Strength of the prior of the specificity, in votes, if it follows from stray clicks and otherwise."""

OBJECTIVES = {"likelihood": "log likelihood with the prior", "expected": "Q_d (eq. 24), the paper's"}

DRAWN_AT_ONCE = 1_000_000
"""Number of drawn values between two calls of the watch, about 20 ms."""


@dataclass(frozen=True)
class DEMSettings(Settings):
    """Settings of `dem`. A prior's strength of 10 weighs as 10 clusters whose truth is known."""

    def departures(self) -> tuple[str, ...]:
        """List the differences from Algorithm 2 of the OEM-DEM paper, as clauses for the methods text."""
        departures = ["rates stay 1e-6 away from 0 and 1"]
        if self.prior != "none":
            departures.append("the M step counts the votes of priors")
        if self.prior == "crowd":
            departures.append("structures differ in how easily they are seen, and artefacts attract clicks")
        if self.start == "best":
            departures.append("the start of eq. 34 is tried as well")
        if self.objective == "likelihood":
            departures.append(
                "an ascent ends, and the best start is chosen, by the likelihood instead of Q_d"
            )
        return tuple(departures)

    prior: str = choice(
        "crowd", "Prior", "Prior of clusters and annotators.",
        {
            "crowd": "Beta priors, structures that differ in how easily they are seen, artefacts",
            "beta": "Beta priors",
            "none": "none, as published",
        },
    )  # fmt: skip
    sensitivity_mean: float = number(
        0.6, "Expected sensitivity", "Mean of the prior.", minimum=0.01, maximum=0.99, advanced=True
    )
    sensitivity_strength: float = number(
        5.0, "Strength of sensitivity", "Weight of the prior.", unit="votes", minimum=0.0, advanced=True
    )
    specificity_mean: float | None = number(
        None, "Expected specificity", "Mean of the prior. Empty: from the probability that each annotator's "
        "stray clicks hit a cluster; if unknown, the mean of the sensitivity.",
        minimum=0.01, maximum=0.9999, advanced=True, left_open="from stray clicks",
    )  # fmt: skip
    specificity_strength: float | None = number(
        None, "Strength of specificity", "Weight of the prior. Empty: 25 if the mean follows from stray "
        "clicks, otherwise 5.", unit="votes", minimum=0.0, advanced=True, left_open="usual",
    )  # fmt: skip
    expected_share: float | None = number(
        None, "Expected share of structures", "Share of all clusters that are structures, known from "
        "other runs or from the expert. Set it where every cluster may be an artefact: votes alone cannot "
        "show that. Empty: estimated from the votes and your decisions.",
        minimum=0.01, maximum=0.99, advanced=True,
    )  # fmt: skip
    expected_share_error: float | None = number(
        None, "Uncertainty of the expected share", "Half of its 95 % interval. Empty: the expected share "
        "counts as 20 clusters with known truth.", minimum=0.001, maximum=0.5, advanced=True,
        left_open="that of 20 clusters",
    )  # fmt: skip
    start: str = choice(
        "best", "Start", "Initial posteriors.",
        {
            "best": "the best of all three",
            "paper": "the better of share and majority, as in the paper",
            "share": "share of votes (eq. 32)",
            "majority": "majority vote (eq. 33)",
            "weight": "weight of the cluster (eq. 34)",
        },
        advanced=True,
    )  # fmt: skip
    objective: str = choice(
        "likelihood", "Objective", "Objective for convergence and for the best of several starts. Algorithm "
        "2 uses Q_d, which prefers certain posteriors.", OBJECTIVES, advanced=True,
    )  # fmt: skip
    detection_threshold: float = number(
        0.5, "Detection threshold", "A cluster is detected when its posterior reaches this. Where a miss is "
        "worse than a false detection, about 0.2 has the largest expected F2.",
        minimum=0.0, maximum=1.0,
    )  # fmt: skip
    detection_iterations: int = integer(
        500, "Detection iterations", "Maximum number of iterations from each start.", minimum=1, advanced=True
    )
    detection_tolerance: float = number(
        1e-6, "Detection tolerance", "Convergence: relative gain of an iteration.", minimum=0.0, maximum=0.1,
        advanced=True,
    )  # fmt: skip
    interval_draws: int = integer(
        200, "Draws", "Number of draws of annotators' rates for the interval of a posterior.",
        minimum=20, maximum=10_000, advanced=True,
    )  # fmt: skip
    detection_seed: int = integer(
        0,
        "Seed of draws",
        "Seed of the draws for the intervals.",
        minimum=0,
        maximum=2**31 - 1,
        advanced=True,
    )
    learn_across_images: bool = switch(
        True, "Learn across images", "Each image uses priors of the crowd and of each annotator from all "
        "images of the run; needs the crowd's prior and clustering with outliers.",
    )  # fmt: skip


def dem(votes: Votes, settings: DEMSettings | None = None, watch: Watch = silent) -> Detection:
    """Decide by EM which clusters are structures (OEM-DEM paper, Algorithm 2).

    With priors the M step (eqs. 27-29) also counts the prior's votes; the published version does not. With
    the crowd's prior, structures differ in how easily they are seen, and other clusters may be artefacts that
    attract clicks. The crowd's prior needs `Votes.stray`; without it, the Beta prior is used. Known truths
    are held fixed and enter the annotators' rates. Annotators who marked nothing count: they marked no
    cluster. A rate without any data (0/0) is one half. With the crowd's prior, the votes of a crowd larger
    than 64 distinguish structures from artefacts as those of 64 annotators would, see `_vote_model`. An
    annotator of weight w counts as w annotators with the same votes.

    `votes`: votes of R annotators on M clusters. `objective` of the result is the log posterior of the best
    ascent (log likelihood without a prior), which never falls; or, by the settings, Q_d, which may fall.

    Notes
    -----
    Algorithm 2 of the paper is ``DEMSettings(prior="none", start="paper", objective="expected")``: no priors,
    the better start by Q_d of eqs. 32 and 33, and convergence by the gain of Q_d. Two things are added: rates
    stay 1e-6 away from 0 and 1, and a rate without data (0/0) is one half. `DEMSettings.departures` lists the
    differences of the settings.

    References
    ----------
    .. [dawid1979] A. P. Dawid and A. M. Skene, "Maximum likelihood estimation of observer error-rates using
       the EM algorithm", Journal of the Royal Statistical Society C 28 (1979) 20-28, doi:10.2307/2346806.

    Examples
    --------
    >>> from raterscope.algorithms.simulation.click_crowds import voting_crowd
    >>> crowd = voting_crowd(15, 40, seed=1)
    >>> detection = dem(crowd.votes)
    >>> int((detection.detected == crowd.present).sum())
    39
    """
    settings = DEMSettings() if settings is None else settings
    return detect_structures(problem_of(votes, settings), votes, settings, watch)


def detect_structures(
    problem: Problem, votes: Votes, settings: DEMSettings, watch: Watch, *, rated: bool = True
) -> Detection:
    """Detect structures as `dem` does, with the prior of the problem; `rated` as for `judge`."""
    starts = starting_posteriors(votes, settings.start)
    best, _ = highest_ascent(problem, starts, settings, part(watch, 0.0, 0.5))
    return judge_alone(problem, best, starts, settings, part(watch, 0.5, 1.0), rated=rated)


def detect_each(votes: Sequence[Votes], settings: DEMSettings) -> list[Detection]:
    """Detect structures on several images separately, as `detect_structures` does without rating."""
    problems = [problem_of(own, settings) for own in votes]
    limits = settings.detection_iterations, settings.detection_tolerance
    starts = {
        index: list(starting_posteriors(votes[index], settings.start).values())
        for index, problem in enumerate(problems)
        if len(problem.prior.shift) > 1 and settings.objective != "expected" and not problem.known.any()
    }
    ascents: Iterator[EMResult] = iter(())
    if starts:
        own_problems = [problems[index] for index, own in starts.items() for _ in own]
        ascents = iter(run_em_of_starts(own_problems, list(chain(*starts.values())), *limits, silent))
    detections = []
    for index, (problem, own) in enumerate(zip(problems, votes, strict=True)):
        if index in starts:
            best = max(islice(ascents, len(starts[index])), key=lambda ended: float(ended.objective[-1]))
            detections.append(judge_alone(problem, best, {}, settings, silent, rated=False))
        else:
            detections.append(detect_structures(problem, own, settings, silent, rated=False))
    return detections


def judge_alone(
    problem: Problem,
    best: EMResult,
    starts: Mapping[str, FloatArray | State],
    settings: DEMSettings,
    watch: Watch,
    *,
    rated: bool = True,
) -> Detection:
    """Return the judgement of a single image by its own votes and decisions.

    See `highest_ascent` for the starts, and `judge` for `rated`.
    """
    if not problem.prior.places or not problem.known.any():
        return judge(
            problem, best, settings, estimate_structure_share([(problem, best)])[0], watch, rated=rated
        )
    bare, _ = highest_ascent(without_decisions(problem), starts, settings, part(watch, 0.0, 0.6))
    loss = lost_log_probability(problem, best, bare)
    (structure_share,) = estimate_structure_share(
        [(problem, best)], undecided=[bare.looks.present], loss=loss
    )
    best = mix_looks(problem, best, bare.looks, structure_share.doubted)
    detection = judge(problem, best, settings, structure_share, part(watch, 0.6, 1.0), rated=rated)
    chance = structure_share.undecided(problem.count / (problem.crowd or 1.0))
    return replace(detection, undecided=bare.looks.present * chance)


def mix_looks(problem: Problem, ascent: EMResult, undecided: ClusterPosteriors, doubted: float) -> EMResult:
    """Mix the looks of undecided clusters with their looks without any decisions.

    `ascent`: result of EM with the decisions.
    `undecided`: looks of the same clusters, without any decisions. `doubted`: weight of the latter.
    """
    weight = np.where(problem.known, 0.0, doubted)
    looks = ascent.looks
    return replace(
        ascent,
        looks=ClusterPosteriors(
            looks.structure + weight[:, None] * (undecided.structure - looks.structure),
            looks.artefact + weight * (undecided.artefact - looks.artefact),
            looks.chance + weight * (undecided.chance - looks.chance),
        ),
    )


def undecided_posterior(votes: Votes, settings: DEMSettings, watch: Watch) -> FloatArray:
    """Return the posteriors (M,) of an image by its votes alone, without decisions."""
    return posterior_by_votes(votes, settings, watch, decided=False)


def posterior_by_votes(
    votes: Votes, settings: DEMSettings, watch: Watch, *, decided: bool = True
) -> FloatArray:
    """Return the posteriors (M,) of an image by its votes and, if `decided`, decisions, without scores."""
    problem = problem_of(replace(votes, score=None), settings)
    if not decided:
        problem = without_decisions(problem)
    best, _ = highest_ascent(problem, starting_posteriors(votes, settings.start), settings, watch)
    structure_share = estimate_structure_share([(problem, best)])[0]
    look = best.looks.present * structure_share.mean(problem.count / (problem.crowd or 1.0))
    return np.where(problem.known, problem.truth, look)


def highest_ascent(
    problem: Problem, starts: Mapping[str, FloatArray | State], settings: DEMSettings, watch: Watch
) -> tuple[EMResult, str]:
    """Run EM from every start; return the ascent with the highest objective, and the name of its start.

    `starts`: initial posteriors, or the state of an earlier ascent, by name.
    """
    expected = settings.objective == "expected"
    limits = settings.detection_iterations, settings.detection_tolerance
    kinds = {type(start) for start in starts.values()}
    if len(problem.prior.shift) > 1 and not expected and len(kinds) == 1:
        ended = run_em_of_starts([problem] * len(starts), list(starts.values()), *limits, watch)
        ascents = dict(zip(starts, ended, strict=True))
    else:
        steps = steps_of(watch, starts.items())
        ascents = {
            name: run_em(problem, start, *limits, step, expected=expected) for (name, start), step in steps
        }
    best = max(ascents, key=lambda name: float(ascents[name].objective[-1]))
    return ascents[best], best


def models_artefacts(votes: Votes, settings: DEMSettings) -> bool:
    """Return whether the settings choose the crowd's prior, and the votes have the data that it needs."""
    return settings.prior == "crowd" and votes.stray is not None and votes.places > 0


def problem_of(votes: Votes, settings: DEMSettings) -> Problem:
    """Prepare votes for EM, with the prior of the settings."""
    return make_problem(votes, _prior(votes, settings, models_artefacts(votes, settings)))


def judge(
    problem: Problem,
    ascent: EMResult,
    settings: DEMSettings,
    structure_share: StructureShare,
    watch: Watch,
    *,
    rated: bool = True,
) -> Detection:
    """Return posteriors and annotators' rates with intervals.

    `structure_share`: as from `estimate_structure_share`.

    Without `rated`, the arrays of intervals and of annotators' rates and votes are empty.
    """
    prior, crowd = problem.prior, problem.prior.places > 0
    present = ascent.looks.present
    look = structure_share.scored(present * structure_share.mean(problem.count / (problem.crowd or 1.0)))
    posterior = np.where(problem.known, problem.truth, look)
    prevalence = float(look.sum() / max(len(look), 1) if crowd else ascent.state.kinds[0])
    detected = posterior >= settings.detection_threshold
    if not rated:
        none = np.empty(0)
        return Detection(
            posterior, none, none, detected, prevalence, none, none, none, none, none, none,
            ascent.objective, ascent.converged, level_error=level_error(structure_share.decisions),
        )  # fmt: skip
    explanations = [
        (round(weight * settings.interval_draws), explained, result)
        for weight, explained, result in ascent.explanations or ((1.0, problem, ascent),)
    ]
    drawn = [
        _draw(explained, result, structure_share, settings, draws, step)
        for (draws, explained, result), step in steps_of(watch, explanations)
        if draws
    ]
    low, high = quantiles(np.concatenate(drawn), (0.025, 0.975))
    low = np.where(problem.known, problem.truth, np.minimum(low, posterior))
    high = np.where(problem.known, problem.truth, np.maximum(high, posterior))
    hit, false = problem.marks.sums(posterior), problem.marks.sums(1 - posterior)
    miss = np.maximum(posterior.sum() - hit, 0)
    quiet = np.maximum(len(posterior) - posterior.sum() - false, 0)
    return Detection(
        posterior=posterior,
        posterior_low=low,
        posterior_high=high,
        detected=detected,
        prevalence=prevalence,
        sensitivity=_rate(hit + prior.hit, miss + prior.miss),
        specificity=_rate(quiet + prior.quiet, false + prior.false),
        true_positive=hit,
        false_negative=miss,
        true_negative=quiet,
        false_positive=false,
        objective=ascent.objective,
        converged=ascent.converged,
        level_error=level_error(structure_share.decisions),
    )


def _prior(votes: Votes, settings: DEMSettings, crowd: bool) -> Prior:
    annotators = votes.marked.shape[0]
    used = settings.prior != "none"
    strength_of_hits = used * settings.sensitivity_strength
    hit = np.full(annotators, strength_of_hits * settings.sensitivity_mean)
    specificity = np.full(annotators, settings.specificity_mean or settings.sensitivity_mean)
    strength = used * SPECIFICITY_STRENGTH["usual"]
    if settings.specificity_mean is None and votes.stray is not None:
        specificity = 1 - within(votes.stray, EDGE, 0.5)
        strength = used * SPECIFICITY_STRENGTH["stray"]
    if settings.specificity_strength is not None:
        strength = used * settings.specificity_strength
    shift, share = _nodes(crowd)
    return Prior(
        hit=hit,
        miss=strength_of_hits - hit,
        quiet=strength * specificity,
        false=strength * (1 - specificity),
        kinds=np.array([2.0, 1.0, 1.0]) if crowd else used * np.array([1.0, 0.0, 1.0]),
        places=votes.places if crowd else 0.0,
        artefact=(1.0, 3.0),
        shift=shift,
        share=share,
        strength=5.0 if crowd else 0.0,
        trust=min(BELIEVED / (votes.crowd or 1.0), 1.0) if crowd else 1.0,
        expected=settings.expected_share,
        expected_error=settings.expected_share_error,
    )


@lru_cache(maxsize=2)
def _nodes(crowd: bool) -> tuple[FloatArray, FloatArray]:
    """Return the nodes (K,) of the log odds by which structures differ, and the share at each."""
    shift = np.linspace(-3, 3, 13) if crowd else np.zeros(1)
    share = np.exp(-0.5 * (shift / 0.6) ** 2) + 1e-3
    return shift, share / share.sum()


def starting_posteriors(votes: Votes, start: str) -> dict[str, FloatArray]:
    """Return the initial posteriors, (M,), of a setting of `start`, by name (eqs. 32-34)."""
    starts: dict[str, FloatArray] = {}
    if start in {"best", "paper", "share"}:
        starts["share"] = votes.share
    if start in {"best", "paper", "majority"}:
        starts["majority"] = (votes.share >= 0.5 - EDGE).astype(np.float64)
    if start in {"best", "weight"}:
        largest = float(votes.weight.max(initial=0.0))
        starts["weight"] = votes.weight / largest if largest > 0 else np.full(len(votes.weight), 0.5)
    return starts


def _rate(right: FloatArray, wrong: FloatArray) -> FloatArray:
    total = right + wrong
    return np.where(total > 0, right / np.where(total > 0, total, 1), 0.5)


def _draw(
    problem: Problem,
    ascent: EMResult,
    structure_share: StructureShare,
    settings: DEMSettings,
    draws: int,
    watch: Watch,
) -> FloatArray:
    """Draw all parameters from their posteriors; return the clusters' posteriors (draws, M) with them.

    Without a prior, Jeffreys' prior is used.
    """
    from raterscope.algorithms.clicks._vote_kernels import draw

    generator = np.random.default_rng(settings.detection_seed)
    prior, seen = problem.prior, ascent.looks
    hit, structures = problem.marks.sums(seen.present), float(seen.present.sum())
    absent = 0.0 if prior.places else float(seen.chance.sum())
    false = np.zeros(len(hit)) if prior.places else problem.marks.sums(seen.chance)
    right = hit + np.maximum(prior.hit, 0.5)
    wrong = np.maximum(structures - hit, 0) + np.maximum(prior.miss, 0.5)
    alphas = np.stack([
        right,
        wrong,
        false + np.maximum(prior.false, EDGE if prior.false.any() else 0.5),
        np.maximum(absent - false, 0) + np.maximum(prior.quiet, 0.5),
    ])  # fmt: skip
    order = np.lexsort(np.round(alphas[::-1], 6))  # the draws do not depend on the order of the annotators
    shapes = gamma_shapes(*alphas[:, order])
    counts = np.array([structures, seen.artefact.sum(), absent]) + np.maximum(prior.kinds, [0.5, 0, 0.5])
    kinds = generator.gamma(counts, size=(draws, 3))
    if prior.places:
        kinds[:, 2] = prior.places
    base, slope = structure_share.draw(generator, draws) if prior.places else (np.empty(0), np.empty(0))
    log_odds = structure_share.log_odds(problem.count / (problem.crowd or 1.0))
    with np.errstate(divide="ignore"):
        kinds = np.log(kinds)
    share, votes = np.log(ascent.state.share), problem.marks
    annotator, worth = np.argsort(order).astype(np.int32)[votes.annotator], problem.weights
    counts, level = np.unique(problem.count, return_inverse=True)
    drawn = np.empty((draws, len(problem.count)))
    block = DRAWN_AT_ONCE // (len(votes.annotator) + len(share) * (len(hit) + len(counts)) + 1)
    for begin, end in parts_of(draws, block):
        draw(
            begin, end, votes.first, annotator, level, worth[order] if len(worth) else worth,
            problem.artefact, problem.rest, prior.trust, shapes,
            (np.exp(ascent.state.odds) * wrong / right)[order],
            proposals(settings.detection_seed, begin, (end - begin) * len(shapes)), kinds, prior.shift,
            share, np.exp(prior.trust * counts[:, None] * prior.shift), drawn,
        )  # fmt: skip
        if prior.places:
            drawn[begin:end] /= 1 + np.exp(-(base[begin:end, None] + slope[begin:end, None] * log_odds))
            drawn[begin:end] = structure_share.scored_draws(generator, drawn[begin:end])
        watch(end / draws, "drawing annotators' rates")
    return drawn


def gamma_shapes(*shapes: FloatArray) -> FloatArray:
    """Return the constants for drawing from Gamma distributions, a row for each shape."""
    shape = np.concatenate(shapes)
    small = shape < 1  # then drawn with a shape that is larger by 1, and multiplied
    third = shape + small - 1 / 3
    return np.column_stack([third, 1 / np.sqrt(9 * third), np.where(small, 1 / shape, 0.0)])


def proposals(seed: int, begin: int, count: int) -> FloatArray:
    """Return random numbers for at least `count` draws from Gamma distributions, see `_vote_kernels.draw`.

    All images use the same numbers. `begin`: index of the first draw.
    """
    return _random_numbers(seed, begin, 1 << (count + count // 8).bit_length())


@lru_cache(maxsize=4)
def _random_numbers(seed: int, begin: int, count: int) -> FloatArray:
    generator = np.random.default_rng([seed, begin])
    return np.column_stack(
        [generator.standard_normal(count), generator.random(count), generator.standard_exponential(count)]
    )


@dataclass(frozen=True)
class RecursiveSettings(Settings):
    """Settings of `recursive`."""

    recursion: str = choice(
        "renewed", "Recursion", "At each annotator EM continues from the last posteriors, or from the share "
        "of votes if that explains the votes better, with DEM's priors; as published, from the last "
        "posteriors alone and without priors.",
        {"renewed": "with priors, likelier start", "printed": "as published"},
    )  # fmt: skip
    first_annotators: int = integer(
        10, "First annotators", "Number of annotators fused together before the others join one by one.",
        minimum=1, advanced=True,
    )  # fmt: skip
    detection_threshold: float = number(
        0.5, "Detection threshold", "A cluster is detected when its posterior reaches this.",
        minimum=0.0, maximum=1.0,
    )  # fmt: skip


def recursive(votes: Votes, settings: RecursiveSettings | None = None, watch: Watch = silent) -> Detection:
    """Detect structures in one pass over the annotators, in their order.

    `votes`: votes of R annotators on M clusters. `objective` of the result is the log posterior after each
    annotator.

    Examples
    --------
    >>> from raterscope.algorithms.simulation.click_crowds import voting_crowd
    >>> crowd = voting_crowd(15, 40, seed=1)
    >>> detection = recursive(crowd.votes)
    >>> int((detection.detected == crowd.present).sum())
    39
    """
    settings = RecursiveSettings() if settings is None else settings
    annotators = len(votes.marked)
    first = min(settings.first_annotators, annotators)
    looks, objective = None, []
    for iteration in range(first, annotators + 1):
        problem, ascent = _step(_first_votes(votes, iteration), looks, settings)
        looks = ascent.looks
        objective.append(ascent.objective[-1])
        done = (iteration - first + 1) / (annotators - first + 1)
        watch(0.8 * done, "weighing the votes", objective=ascent.objective[-1])
    ascent = replace(ascent, objective=np.array(objective))
    return _detection(problem, ascent, settings, part(watch, 0.8, 1.0))


def _first_votes(votes: Votes, count: int) -> Votes:
    """Return the votes of the first annotators."""
    stray, worth = (None if values is None else values[:count] for values in (votes.stray, votes.worth))
    return replace(votes, marked=votes.marked[:count], stray=stray, worth=worth)


def _step(
    votes: Votes, previous: ClusterPosteriors | None, settings: RecursiveSettings
) -> tuple[Problem, EMResult]:
    """Run one EM iteration; unless as published, from the state that explains the votes better."""
    problem = problem_of(votes, _as_dem(settings))
    share = votes.share
    if previous is None:
        return problem, run_em(problem, share, 1, 0.0, silent)
    ascent = run_em(problem, _renew(problem, previous, initial_posteriors(problem, share)), 1, 0.0, silent)
    if settings.recursion == "renewed":
        restarted = run_em(problem, share, 2, 0.0, silent)
        ascent = max(ascent, restarted, key=lambda candidate: candidate.objective[-1])
    return problem, ascent


def _renew(problem: Problem, previous: ClusterPosteriors, share: ClusterPosteriors) -> ClusterPosteriors:
    """Replace missing looks by the share of votes, and set known truths."""
    same = previous.structure.shape == share.structure.shape
    kept = previous if same else initial_posteriors(problem, previous.present)  # another prior then
    other = problem.known | np.isnan(previous.chance)
    return ClusterPosteriors(
        np.where(other[:, None], share.structure, kept.structure),
        np.where(other, share.artefact, kept.artefact),
        np.where(other, share.chance, kept.chance),
    )


def _detection(problem: Problem, ascent: EMResult, settings: RecursiveSettings, watch: Watch) -> Detection:
    detection = judge_alone(problem, ascent, {"kept": ascent.state}, _as_dem(settings), watch)
    return replace(detection, converged=True)  # one iteration is all there is


def _as_dem(settings: RecursiveSettings) -> DEMSettings:
    return DEMSettings(
        prior="none" if settings.recursion == "printed" else "crowd",
        detection_threshold=settings.detection_threshold,
    )
