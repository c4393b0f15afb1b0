"""Fit of biases and rankings to comparisons, along any of the paths."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.array_operations import one_thread
from raterscope.algorithms.pairs.data import (
    HIGHEST_RATE,
    BoolArray,
    FloatArray,
    IndexArray,
    PairFusion,
    Pairs,
    PairsError,
    PairSettings,
)
from raterscope.algorithms.pairs.evidence import behaviours, match_ratio, one_sided
from raterscope.algorithms.pairs.flip_test import FlipTest, flip_test
from raterscope.algorithms.pairs.knockoffs import (
    UNTESTED,
    choose_gaps,
    make_knockoffs,
    own_noise,
    project_at_random,
    select_annotators,
    selection_shares,
    statistic,
)
from raterscope.algorithms.pairs.paths import (
    Biases,
    Grams,
    Path,
    PathMethod,
    ScaledGrams,
    gram_matrices,
    least_squares,
    scale_grams,
)
from raterscope.algorithms.pairs.ranking import begin_scores, components, inconsistency, link, scores_of
from raterscope.algorithms.pairs.selection import (
    benjamini_hochberg,
    binomial_test,
    crowd_probability,
    detectable_biases,
    false_discovery_rates,
    flip_flags,
    intervals,
    sides_in_words,
    t_test,
)
from raterscope.algorithms.progress import Background, Check, Watch, part, silent, wait_watching
from raterscope.text import counted, listed, percent

_NAMED = 5
_REPEATED = 0.01
_LEANING = 0.75
_SURE = 1e-4
_REVERSED = 0.01
"""Probability of naming any annotator who guesses as one who contradicts the ranking (Bonferroni)."""

_COPIED = 0.01
"""Probability of naming any two independent annotators as copies (Bonferroni)."""

_LISTED = 3
"""Maximum number of groups of copies that are listed."""


def data_notices(pairs: Pairs, component: IndexArray, untested: NDArray[np.int8], least: int) -> list[str]:
    """Return notices on unlinked items, repeats, and annotators who were not tested."""
    result = []
    groups = int(component.max(initial=-1)) + 1
    if groups > 1:
        result.append(
            f"Comparisons link the items in {groups:,} groups without comparisons between them; each group "
            f"is ranked by itself, and scores of different groups cannot be compared."
        )
    never = int((component < 0).sum())
    if never:
        result.append(f"{counted(never, 'item')} {_was(never)} never compared and {_has(never)} no score.")
    repeats = _repeats(pairs)
    if repeats > _REPEATED * len(pairs):
        result.append(
            f"{counted(repeats, 'comparison')} of {len(pairs):,} repeat a pair, side and answer of the "
            f"same annotator; each counts as one more. If these are copies, biases seem more certain than "
            f"they are."
        )
    for reason, text in UNTESTED.items():
        annotators = np.flatnonzero(untested == reason)
        if len(annotators):
            detail = f" (fewer than {least})" if reason == 2 else ""
            result.append(f"{_names(pairs.annotators, annotators)} {text}{detail}.")
    return result


def noise_notices(pairs: Pairs, residual: float, freedom: int, tested: int) -> list[str]:
    """Return notices on too little noise, or too few comparisons, for tests."""
    result = []
    if tested and residual == 0.0:
        result.append(
            "Scores and biases fit every choice without noise: no bias can be tested, and none is flagged."
        )
        annotators = np.flatnonzero(one_sided(pairs))
        if len(annotators):
            result.append(f"{_names(pairs.annotators, annotators)} chose one side alone.")
    elif freedom < tested:
        result.append(
            f"There are {freedom:,} degrees of freedom for {tested:,} annotators: noise of the estimated "
            f"size is added to make knockoffs, and the rate is valid only if this size is right."
        )
    return result


def bias_notices(pairs: Pairs, bias: FloatArray) -> list[str]:
    """Warn if most annotators lean to one side, so that a bias is no exception."""
    known_bias = bias[np.isfinite(bias) & (bias != 0.0)]
    leftwards = int((known_bias > 0.0).sum())
    most = max(leftwards, len(known_bias) - leftwards)
    chance = float(binomial_test(np.array([leftwards]), np.array([len(known_bias) - leftwards]))[0])
    left, right, _ = (int(counts.sum()) for counts in pairs.counts())
    if not len(known_bias) or most < _LEANING * len(known_bias) or chance > _SURE:
        return []
    side = "left" if leftwards == most else "right"
    return [
        f"{most:,} of {len(known_bias):,} annotators lean to the {side}, and "
        f"{percent(left / max(left + right, 1))} of all choices are of the left side: the assumption that "
        "few are biased does not hold. Only the strongest biases are flagged."
    ]


def reversed_notices(pairs: Pairs, match: FloatArray) -> list[str]:
    """Name annotators whose answers contradict the ranking more often than guesses would.

    `match`: (p,) share of each annotator's answers that agree with the ranking.
    """
    from scipy.special import bdtr

    left, right, _ = pairs.counts()
    answers = (left + right).astype(np.float64)
    known = np.isfinite(match)
    agreed = np.ceil(np.where(known, match, 1.0) * answers - 1e-6)
    chance = np.where(known, bdtr(agreed, answers.astype(np.int64), 0.5), 1.0)
    found = np.flatnonzero(chance * len(chance) < _REVERSED)
    if not len(found):
        return []
    share = float(agreed[found].sum() / answers[found].sum())
    return [
        f"{_names(pairs.annotators, found)} contradict{'s' if len(found) == 1 else ''} the ranking: "
        f"{percent(share)} of {int(answers[found].sum()):,} answers agree with it. Check for exchanged items "
        "or answers, or exclude them. Their answers count in full until then."
    ]


def copied_notices(pairs: Pairs, match: FloatArray) -> list[str]:
    """Name annotators whose comparisons are all the same as another's, if that is no chance.

    An independent annotator repeats an answer against the ranking in at most half of the cases.

    `match`: (p,) share of each annotator's answers that agree with the ranking.
    """
    chosen = np.isin(pairs.annotator, _alike(pairs))
    if not chosen.any():
        return []
    task = np.zeros(len(pairs)) if pairs.task is None else pairs.task
    comparison = np.column_stack([pairs.annotator, task, pairs.left, pairs.right, pairs.choice])[chosen]
    comparison = comparison[np.lexsort(comparison.T[::-1])]
    alike: dict[bytes, list[int]] = {}
    for own in np.split(comparison, np.flatnonzero(np.diff(comparison[:, 0])) + 1):
        alike.setdefault(own[:, 1:].tobytes(), []).append(int(own[0, 0]))
    left, right, _ = pairs.counts()
    against = np.round((1 - np.nan_to_num(match, nan=1.0)) * (left + right))
    chance = np.exp2(-against) * len(pairs.annotators) ** 2 / 2
    groups = [rows for rows in alike.values() if len(rows) > 1 and chance[rows[0]] < _COPIED]
    if not groups:
        return []
    names = "; ".join(_names(pairs.annotators, np.array(rows)) for rows in groups[:_LISTED])
    more = f" and {counted(len(groups) - _LISTED, 'further group')}" if len(groups) > _LISTED else ""
    return [
        f"These annotators gave the same answers to the same comparisons: {names}{more}. They are copies or "
        "follow one rule, but count as independent. Exclude all but one of each group."
    ]


def _alike(pairs: Pairs) -> NDArray[np.int64]:
    """Return annotators whose comparisons have the same checksum as another's, in any order."""
    bits = (pairs.choice + 0.0).view(np.uint64)
    for column in (pairs.left, pairs.right, *(() if pairs.task is None else (pairs.task,))):
        bits = (bits ^ column.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        bits ^= bits >> np.uint64(32)
    sums = [
        np.bincount(pairs.annotator, bits >> np.uint64(shift) & np.uint64(0xFFFFF), len(pairs.annotators))
        for shift in (0, 20, 40)
    ]
    _, same, number = np.unique(sums, axis=1, return_inverse=True, return_counts=True)
    return np.flatnonzero((number[same.ravel()] > 1) & (sums[0] + sums[1] + sums[2] > 0))


def selection_notices(settings: PairSettings, tested: int, flagged: BoolArray, by_t_test: int) -> list[str]:
    """Return a notice that knockoff+ cannot select few annotators, if this may be why it selects none."""
    fewest = math.ceil(1.0 / settings.rate - 1e-9)
    if not settings.plus or not tested or flagged.any():
        return []
    text = f"At a rate of {settings.rate:g}, knockoff+ cannot flag fewer than {fewest:,} annotators"
    if tested < fewest:
        return [f"{text}, and only {tested:,} were tested: none can be flagged. See the t test."]
    if by_t_test:
        return [f"{text}; the t test with Benjamini-Hochberg at that rate finds {by_t_test:,}."]
    return []


def flip_notices(q_value: FloatArray, crowd_p: float, settings: PairSettings) -> list[str]:
    """Return a notice if the test of the crowd prevents flags."""
    flagged_count = int((np.nan_to_num(q_value, nan=1.0) <= settings.rate).sum())
    if crowd_p <= settings.gate or not flagged_count:
        return []
    return [
        f"{counted(flagged_count, 'annotator')} would be flagged at a rate of {settings.rate:g}, but the "
        f"crowd shows no clear bias (p = {crowd_p:.2g}, limit {settings.gate:g}): none is flagged. Set the "
        "crowd test to 1 to flag them."
    ]


def side_notices(text: str) -> list[str]:
    """Return a notice if sides were not drawn at random, which the rate of the flip test assumes."""
    if not text:
        return []
    return [
        f"Sides were not drawn at random: {text}. The flip test then depends on its model of the choices, "
        f"and its rate is not guaranteed. Compare with the flags by knockoffs."
    ]


def _repeats(pairs: Pairs) -> int:
    """Count comparisons that repeat another comparison on the same task."""
    items = len(pairs.items)
    key = (pairs.annotator.astype(np.int64) * items + pairs.left) * items + pairs.right
    if pairs.task is not None:
        key = key * (int(pairs.task.max(initial=0)) + 2) + pairs.task + 1
    order = np.argsort(key)
    same = key[order[1:]] == key[order[:-1]]
    again = np.zeros(len(key), dtype=np.bool_)
    again[order[1:][same]] = again[order[:-1][same]] = True
    repeated = np.flatnonzero(again)
    columns = [pairs.choice[repeated], key[repeated]]
    if pairs.time is not None:
        columns.insert(0, pairs.time[repeated])
    repeated = repeated[np.lexsort(columns)]
    alike = key[repeated[1:]] == key[repeated[:-1]]
    alike &= pairs.choice[repeated[1:]] == pairs.choice[repeated[:-1]]
    if pairs.time is not None:
        alike &= pairs.time[repeated[1:]] == pairs.time[repeated[:-1]]
    return int(alike.sum())


def _names(names: Sequence[str], annotators: NDArray[np.int64]) -> str:
    if len(annotators) == 1:
        return f"Annotator {names[annotators[0]]}"
    return f"{len(annotators):,} annotators ({listed([names[k] for k in annotators], _NAMED)})"


def _was(count: int) -> str:
    return "was" if count == 1 else "were"


def _has(count: int) -> str:
    return "has" if count == 1 else "have"


_NO_COMPARISONS, _TOO_FEW, _ALONE, _MIXED = 1, 2, 3, 4
_NOTHING = 1e-9
_MANY = 500


def fit_path(
    pairs: Pairs, name: str, path: PathMethod, settings: PairSettings | None = None, watch: Watch = silent
) -> PairFusion:
    """Find biased annotators along a path, and rank the items with and without correction for their biases.

    Annotators who are not tested are assumed unbiased; their comparisons still count for the ranking.

    `name`: name of the path. Raises `PairsError` without comparisons, with too few to estimate the noise, or
    with too many linked items.
    """
    if not len(pairs):
        raise PairsError("there are no comparisons; expected at least one.")
    settings = PairSettings() if settings is None else settings
    if not settings.graded:
        pairs = replace(pairs, choice=np.sign(pairs.choice))
    # With two threads, the many small products of a path wait for each other and take ten times as long.
    with one_thread(), Background() as beside:
        testing = beside.start(partial(flip_test, pairs, settings.effect, beside.watch))
        return _fit(pairs, name, path, settings, testing, watch)


def _fit(
    pairs: Pairs,
    name: str,
    method: PathMethod,
    settings: PairSettings,
    testing: Callable[[Check], FlipTest],
    watch: Watch,
) -> PairFusion:
    watch(0.0, "linking items")
    component = components(pairs)
    count = np.bincount(pairs.annotator, minlength=len(pairs.annotators))
    small = gram_matrices(pairs, component, count >= settings.min_comparisons, part(watch, 0.0, 0.15))
    heavy = len(small.annotators) > _MANY
    text = "checking who can be tested"
    problem, known = wait_watching(lambda: scale_grams(small), watch, 0.16, text, small=not heavy)
    untested = _untested(small, known, count)
    text = "estimating biases"
    result = wait_watching(lambda: least_squares(small, problem), watch, 0.18, text, small=not heavy)
    tested = problem.tested
    if result.freedom <= 0:
        few = "1 comparison is" if len(pairs) == 1 else f"{len(pairs):,} comparisons are"
        raise PairsError(
            f"{few} too few to estimate the noise: scores and biases use "
            f"{len(pairs) - result.freedom:,}; expected a larger number of comparisons."
        )
    path = method.follow(problem.gram, problem.pull, part(watch, 0.2, 0.4))
    total = len(pairs.annotators)
    by_t_test = _spread(t_test(result), tested, total)
    linked = link(pairs, part(watch, 0.4, 0.45))
    flips = _flips(testing(partial(watch, 0.45, "testing residuals")), untested, settings)
    if settings.rule == "knockoffs":
        w = np.full((settings.draws, total), np.nan, dtype=np.float32)
        w[:, tested] = _statistics(pairs, component, problem, result, method, settings, part(watch, 0.5, 0.8))
        flagged = select_annotators(selection_shares(w, settings.rate, settings.plus), settings.share)
        probability = by_t_test
        bias, low, high = (_spread(array, tested, total) for array in intervals(result, problem))
    else:
        w, flagged, probability = flips.evidence, flips.flagged, flips.test.probability
        bias, low, high = flips.test.bias, flips.test.low, flips.test.high
    before, with_ranks = begin_scores(linked, None, part(watch, 0.8, 0.9))
    after = scores_of(linked, flagged, part(watch, 0.9, 0.98)) if flagged.any() else with_ranks()
    left, right, ties = (counts.astype(np.int32) for counts in pairs.counts())
    watch(0.98, "classifying annotators")
    behaviour, matches = behaviours(pairs, flagged, flips.decidable), match_ratio(pairs, after.score)
    unexplained = inconsistency(pairs, component, before.score)
    watch(0.99, "collecting notices")
    notices = [
        *reversed_notices(pairs, matches),
        *copied_notices(pairs, matches),
        *data_notices(pairs, component, untested, settings.min_comparisons),
        *bias_notices(pairs, bias),
    ]
    if settings.rule == "knockoffs":
        notices += noise_notices(pairs, result.residual, result.freedom, len(tested))
        notices += selection_notices(
            settings, len(tested), flagged, int(benjamini_hochberg(probability, settings.rate).sum())
        )
    else:
        notices += flip_notices(flips.q_value, flips.crowd_p, settings)
    sides = sides_in_words(pairs, flips.test)
    notices += side_notices(sides) if settings.rule == "flip" else ()
    watch(1.0, "done")
    return PairFusion(
        algorithm=name,
        left=left,
        right=right,
        ties=ties,
        untested=untested,
        entry=_spread(path.entry, tested, total),
        path_at=path.at,
        path=_rescale_path(path, problem, total),
        statistic=w,
        bias=bias,
        bias_low=low,
        bias_high=high,
        p_value=probability,
        rate=settings.rate,
        share=settings.share,
        flagged=flagged,
        behaviour=behaviour,
        match=matches,
        component=component,
        score=before.score,
        score_low=before.low,
        score_high=before.high,
        corrected=after.score,
        corrected_low=after.low,
        corrected_high=after.high,
        variance=result.variance,
        freedom=result.freedom,
        inconsistency=unexplained,
        notices=tuple(notices),
        rule=settings.rule,
        q_value=flips.q_value,
        detectable=flips.detectable,
        decidable=flips.decidable,
        t_test=by_t_test,
        crowd_p=flips.crowd_p,
        gate=settings.gate,
        sides=sides,
        rank_low=after.rank_low,
        rank_high=after.rank_high,
    )


@dataclass(frozen=True, eq=False)
class _Flips:
    """Results of the flip test; NaN for annotators who were not tested."""

    test: FlipTest
    q_value: FloatArray
    crowd_p: float
    flagged: BoolArray
    detectable: FloatArray
    decidable: BoolArray
    evidence: NDArray[np.float32]


def _flips(tested: FlipTest, untested: NDArray[np.int8], settings: PairSettings) -> _Flips:
    """Select annotators at the rate, by the flip test."""
    spared = untested != 0
    probability, of_any, z = (
        np.where(spared, np.nan, array) for array in (tested.probability, tested.of_any, tested.z)
    )
    test = replace(tested, probability=probability, of_any=of_any, z=z)
    q_value, crowd_p = false_discovery_rates(probability), crowd_probability(of_any)
    flagged = flip_flags(q_value, settings.rate, crowd_p, settings.gate)
    detectable, known = detectable_biases(
        test, q_value, crowd_p, settings.rate, settings.gate, settings.relevant
    )
    return _Flips(
        test=test,
        q_value=q_value,
        crowd_p=crowd_p,
        flagged=flagged,
        detectable=detectable,
        decidable=known,
        evidence=-np.log10(probability)[None].astype(np.float32),
    )


def _untested(small: Grams, tested: BoolArray, count: NDArray[np.int64]) -> NDArray[np.int8]:
    """Return the reason for each annotator who is not tested; (p,)."""
    untested = np.full(len(count), _TOO_FEW, dtype=np.int8)
    untested[count == 0] = _NO_COMPARISONS
    alone = np.diagonal(small.gram) <= _NOTHING * small.count
    untested[small.annotators] = np.where(tested, 0, np.where(alone, _ALONE, _MIXED))
    return untested


def _statistics(
    pairs: Pairs,
    component: IndexArray,
    problem: ScaledGrams,
    biases: Biases,
    path: PathMethod,
    settings: PairSettings,
    watch: Watch,
) -> FloatArray:
    """Return W of every draw, (D, m); 0 without noise, because rounding errors would select all."""
    if not len(problem.tested) or biases.residual == 0.0:
        return np.zeros((settings.draws, len(problem.tested)))
    gap = choose_gaps(problem.gram, settings.knockoffs, part(watch, 0.0, 0.1))
    knockoffs = wait_watching(
        lambda: make_knockoffs(problem.pull, biases.inverse, gap, symmetric=settings.local),
        watch, 0.1, "making knockoffs", small=len(gap) <= _MANY,
    )  # fmt: skip
    seeds = [(settings.seed, draw) for draw in range(settings.draws)]
    if settings.local:
        chance = own_noise(pairs, component, problem, biases, seeds, part(watch, 0.1, 0.3))
    else:
        chance = project_at_random(len(problem.tested), biases.residual, biases.freedom, seeds)
    pulls = knockoffs.pulls(problem.pull, chance)
    return statistic(path.entries(problem.gram, gap, pulls, HIGHEST_RATE, part(watch, 0.3, 1.0)))


def _spread(value: FloatArray, tested: NDArray[np.int64], many: int) -> FloatArray:
    """Expand values of tested annotators to all annotators, with NaN for the others."""
    result = np.full(many, np.nan)
    result[tested] = value
    return result


def _rescale_path(path: Path, problem: ScaledGrams, many: int) -> NDArray[np.float32]:
    """Return the path in the unit of the choices."""
    result = np.zeros((len(path.at), many), dtype=np.float32)
    result[:, problem.tested] = path.value / problem.length
    return result
