"""Tables and charts of a question of pairs in a report: flagged annotators, biases, rankings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.statistics import wilson
from raterscope.algorithms.pairs import PairFusion, Pairs
from raterscope.algorithms.pairs.catalogue import PairPlan
from raterscope.algorithms.pairs.data import BEHAVIOUR_WORDS, BoolArray, FloatArray
from raterscope.algorithms.pairs.evidence import BAD_SHARE, match_ratio, match_ratios
from raterscope.algorithms.pairs.ranking import ranks, scores
from raterscope.algorithms.pairs.selection import draw_shares
from raterscope.algorithms.pairs.wins import count_totals, count_wins
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import plain
from raterscope.app.kinds.pairs.annotators import swapped_consistency
from raterscope.app.kinds.pairs.runs import (
    OtherResults,
    RankingAgreements,
    behaviours_after,
    compare_with_truth,
    plan_of,
    run_other_methods,
)
from raterscope.app.page.contents import NONE, Picture, Table, draw_paper, p_value, share, signed
from raterscope.app.review.tasks import Judged
from raterscope.app.study import RunEntry, Study
from raterscope.app.study.pairs import pairs_of, true_ranking_of
from raterscope.app.study.records import PairQuestion
from raterscope.figures.description import Axis, Chart, Line, Mark, Points, Segments
from raterscope.figures.drawing import PaperChart
from raterscope.resources.bibliography import cite
from raterscope.text import estimate, percent


@dataclass(frozen=True, eq=False)
class ComparedQuestion:
    """Results of a question in the report."""

    entry: PairQuestion
    run: RunEntry
    pairs: Pairs  # input of the fusion
    fusion: PairFusion
    plan: PairPlan
    beside: OtherResults  # results of other methods
    selected: FloatArray  # (p,): share of the draws that select each; NaN for the untested
    judged: Mapping[str, Judged]  # the expert's current decisions
    excluded: Mapping[str, str]  # current exclusions and their reasons
    flagged: BoolArray  # (p,): flagged by the run and not cleared by the expert, or flagged by the expert
    behaviour: NDArray[np.int8]  # (p,)
    # score, low, high: (n,): without the biases of flagged annotators
    score: FloatArray
    low: FloatArray
    high: FloatArray
    # before, after: (n,): ranks within components
    before: NDArray[np.int32]
    after: NDArray[np.int32]
    # rank_low, rank_high: (n,): intervals of `after`; 0 where unknown
    rank_low: NDArray[np.int32]
    rank_high: NDArray[np.int32]
    match: FloatArray  # (p,): share of the answers that agree with the ranking
    crowd_match: float  # the same share over all annotators
    # (p,): share of the answers that agree with the ranking of all answers, as in the paper
    match_original: FloatArray
    later: int  # number of comparisons imported after the run
    truth: RankingAgreements | None = None  # agreement with the ground-truth ranking, where one was imported


def read_compared(
    study: Study,
    entry: PairQuestion,
    judged: Mapping[str, Judged],
    excluded: Mapping[str, str],
    watch: Watch = silent,
) -> ComparedQuestion | None:
    """Read the fusion shown of a question and compute further values; None without a fusion."""
    watch(0.0, f"reading {plain(entry.name)}")
    result = study.shown.result(entry.id, "pairs")
    if result is None:
        return None
    run, fusion = result
    pairs, plan = pairs_of(study, entry.id, run), plan_of(run) or PairPlan()
    verbs = {name: judgement.verb for name, judgement in judged.items()}
    expert_verbs = [verbs.get(name, "") for name in pairs.annotators]
    by_expert, cleared = (
        np.array([expert_verb == verb for expert_verb in expert_verbs], dtype=bool)
        for verb in ("flag", "clear")
    )
    flagged = (fusion.flagged & ~cleared) | by_expert
    score, low, high = fusion.corrected, fusion.corrected_low, fusion.corrected_high
    nothing = np.zeros(len(score), dtype=np.int32)
    rank_low, rank_high = (nothing if end is None else end for end in (fusion.rank_low, fusion.rank_high))
    if (flagged != fusion.flagged).any():
        corrected = scores(pairs, flagged, part(watch, 0.1, 0.4))
        score, low, high = corrected.score, corrected.low, corrected.high
        rank_low, rank_high = corrected.rank_low, corrected.rank_high
    fused = len(study.comparison_set(entry.id, run.imported).choice)
    truth = true_ranking_of(study, entry.id, pairs.items)
    match, crowd_match = match_ratios(pairs, score)
    return ComparedQuestion(
        entry=entry,
        run=run,
        pairs=pairs,
        fusion=fusion,
        plan=plan,
        beside=run_other_methods(pairs, plan, fusion, part(watch, 0.4, 0.9)),
        selected=draw_shares(fusion, bool(plan.settings.as_dict()["plus"])),
        judged=judged,
        excluded=excluded,
        flagged=flagged,
        behaviour=behaviours_after(pairs, fusion, flagged),
        score=score,
        low=low,
        high=high,
        before=ranks(fusion.score, fusion.component),
        after=ranks(score, fusion.component),
        rank_low=rank_low,
        rank_high=rank_high,
        match=match,
        crowd_match=crowd_match,
        match_original=match_ratio(pairs, fusion.score),
        later=len(study.comparison_set(entry.id).choice) - fused,
        truth=None if truth is None else compare_with_truth(fusion.score, score, fusion.component, truth),
    )


COLOURS = ("#8a96a2", "#e69f00", "#b0124a")
"""Colours of annotators who are not flagged, leaning and one-sided."""

_AXES = {"iss": "time of the path", "lbi": "time of the path", "lasso": "lambda, falling"}
_MAX_POWERS = 4.0
"""Maximum powers of ten on the logarithmic axis of a path, because LASSO ends at 0."""

_MAX_LINES, _MAX_POINTS = 2000, 1000


def draw_sides(pairs: Pairs, behaviour: NDArray[np.int8]) -> Picture:
    """Draw how often each annotator chose left and right, on logarithmic axes from 0."""
    left, right, _ = pairs.counts()
    active = np.flatnonzero(left + right > 0)
    limit = 1.04 * float(max(int(left.max(initial=1)), int(right.max(initial=1)), 3))
    marks: list[Mark] = [
        Segments(x=np.array([[-np.inf, np.inf]]), y=np.array([[-np.inf, np.inf]]), ink="third", stretch=False)
    ]
    for kind, colour in enumerate(COLOURS):
        rows = active[behaviour[active] == kind]
        marks.append(Points(x=left[rows], y=right[rows], ink=colour, size=9.0, opacity=0.75))
    x, y = (Axis(side, 0.0, limit, scale="log1p", padding=0.0) for side in ("chose left", "chose right"))
    text = "one dot per annotator; those without a preferred side lie near the diagonal"
    return draw_paper(PaperChart(Chart("", x, y, tuple(marks))), "Choices of each side", text)


def draw_path(fusion: PairFusion, behaviour: NDArray[np.int8], algorithm: str) -> Picture:
    """Draw the bias of each annotator along the path."""
    rows = np.unique(np.linspace(0, len(fusion.path_at) - 1, min(len(fusion.path_at), _MAX_POINTS)).round())
    rows = rows.astype(np.int64)
    rows = rows[_drawn(fusion.path_at[rows])]
    at, path = fusion.path_at[rows], fusion.path[rows]
    logs = np.log10(at)
    place_of = (logs - logs[0]) / ((logs[-1] - logs[0]) or 1.0)
    ever = np.flatnonzero(np.abs(path).max(axis=0) > 0)
    strongest = ever[np.argsort(-np.abs(path[:, ever]).max(axis=0), kind="stable")[:_MAX_LINES]]
    high = float(np.abs(path).max()) * 1.05 or 1.0
    axes = (
        Axis(
            _AXES.get(algorithm, "position on the path"), 0.0, 1.0, padding=0.0, ticks=_powers(at, place_of)
        ),
        Axis("bias, left above 0", -high, high, padding=0.0),
    )
    lines = tuple(
        Line(
            x=place_of, y=path[:, k], ink=COLOURS[behaviour[k]], width=1.0, stepped=algorithm == "iss",
            opacity=0.4 if behaviour[k] == 0 else 1.0,
        )
        for k in strongest[np.argsort(behaviour[strongest], kind="stable")].tolist()
    )  # fmt: skip
    text = "one line per annotator, from where the bias enters the path; the earlier, the stronger"
    return draw_paper(PaperChart(Chart("", *axes, lines)), "Biases along the path", text)


def _drawn(at: FloatArray) -> NDArray[np.bool_]:
    """Return the positions of a path that a logarithmic axis can show."""
    above = at > 0
    logs = np.log10(at, where=above, out=np.full(len(at), np.inf))
    first = logs[np.argmax(above)]
    return np.asarray(above & (np.abs(logs - first) <= _MAX_POWERS))


def _powers(at: FloatArray, positions: FloatArray) -> list[tuple[float, str]]:
    """Return the powers of ten on a logarithmic axis, or its ends if there are fewer than two."""
    logs = np.log10(at)
    powers = list(range(math.ceil(logs.min()), math.floor(logs.max()) + 1))
    if len(powers) < 2:
        return [(float(positions[end]), f"{at[end]:.3g}") for end in (0, -1)]
    rising = np.argsort(logs, kind="stable")
    return [
        (float(np.interp(power, logs[rising], positions[rising])), f"{10.0**power:g}") for power in powers
    ]


_MOST = 60
"""Maximum number of annotators listed."""

_ENDS, _MOVED = 5, 10
"""Number of items listed from each end of the ranking, and of the items that moved most."""

_MAX_WINS = 60
"""Maximum number of items listed with their wins."""

_REASON = 48
"""Maximum characters of a reason; the list of decisions has all of it."""

_KNOCKOFF_NOTE = (
    "Bias: how far the answers are shifted, + to the left, in the units of the choices, by least squares "
    "with all biases, with its 95 % interval. Draws: the share of draws of knockoffs that select the "
    "annotator. p: of the t test of the bias, by itself. "
)

_VERBS = {"flag": "flagged", "clear": "cleared"}


def flagged_table(question: ComparedQuestion) -> Table:
    """List flagged annotators, by run or expert, and cleared and excluded ones."""
    pairs, fusion = question.pairs, question.fusion
    is_listed = question.flagged | fusion.flagged
    is_listed |= np.array([name in question.judged for name in pairs.annotators], dtype=bool)
    is_listed &= np.array([name not in question.run.excluded for name in pairs.annotators], dtype=bool)
    flips = fusion.rule == "flip"
    order = sorted(
        np.flatnonzero(is_listed).tolist(),
        key=lambda k: (
            -np.nan_to_num(question.selected[k], nan=-1.0),
            np.nan_to_num(fusion.p_value[k], nan=2.0) if flips else 0.0,
            -abs(np.nan_to_num(fusion.bias[k])),
            k,
        ),
    )
    counts = pairs.counts()
    ties = bool(counts[2].any())
    columns = ["Annotator", "Left", "Right", *(["Ties"] if ties else []), "Bias",
               *(["p", "q", "Detectable"] if flips else ["Draws", "p"]), "Behaviour",
               "Match", "Match, original", "The expert"]  # fmt: skip
    rows = []
    for k in order[:_MOST]:
        name = pairs.annotators[k]
        numbers = [f"{int(side_counts[k]):,}" for side_counts in counts[: 3 if ties else 2]]
        rows.append(
            [
                plain(name, 40),
                *numbers,
                _bias(question, k),
                *(
                    _flip_figures(question, k)
                    if flips
                    else (_draws(float(question.selected[k])), p_value(float(fusion.p_value[k])))
                ),
                _behaviour(question, k),
                share(float(question.match[k]), 2),
                share(float(question.match_original[k]), 2),
                _decision(question, name),
            ]
        )
    blank = [NONE] * (len(columns) - 1)
    if len(order) > _MOST:
        rows.append([f"… and {len(order) - _MOST:,} more", *[""] * len(blank)])
    for name in sorted(set(question.run.excluded) & set(pairs.annotators)):
        reason = plain(question.excluded.get(name, ""), _REASON) or "no reason given"
        rows.append([plain(name, 40), *blank[1:], f"excluded: {reason}"])
    if not rows:
        return Table("Flagged annotators", ("No annotator is flagged.",), [])
    if flips:
        note = (
            "Bias: the mean choice on a pair of equal items, + to the left, with its 95 % interval. p: of "
            "the flip test of a bias above the minimum. q: the least rate at which the annotator is flagged. "
            "Detectable: the smallest bias that would be flagged in 9 of 10 cases. "
        )
    else:
        note = _KNOCKOFF_NOTE
    note += (
        f"Behaviour: one-sided in {100 * BAD_SHARE:g} % of the answers or more (bad in the paper), else "
        "leaning (ugly). Match: the share of answers that go with the corrected ranking; "
        f"{share(question.crowd_match, 2)} of all answers do. Match, original: with the ranking of all "
        "answers ([@xu2016], section 3.3), which biased answers pull towards themselves."
    )
    note = cite(note)
    words = frozenset({len(columns) - 4, len(columns) - 1})
    if not any(row[-1].strip(NONE) for row in rows):
        columns.pop()
        rows = [row[:-1] for row in rows]
        words = frozenset({len(columns) - 3})
    return Table("Flagged annotators", columns, rows, note, words)


def truth_table(question: ComparedQuestion) -> Table | None:
    """Compare both rankings with the imported ground truth; None without one."""
    if question.truth is None:
        return None
    both = (("All answers", question.truth.original), ("Biases removed", question.truth.corrected))
    best = [k for k, _ in question.truth.original.best]
    columns = ("Ranking", "Kendall's tau", "Pairs in order", "Pairs reversed", *(f"Best {k}" for k in best))
    rows = [
        (
            name,
            NONE if np.isnan(agreement.tau) else f"{agreement.tau:.3f}",
            f"{agreement.agreeing:,}",
            f"{agreement.opposed:,}",
            *(share(part, 2) for _, part in agreement.best),
        )
        for name, agreement in both
    ]
    note = cite(
        f"{question.truth.original.items:,} items have a known rank. Tau-b ([@kendall1938]) and pairs are "
        "over the pairs of items that the ground truth orders and comparisons link. Best k: share of the k "
        "items that are best in truth among the k that rank best."
    )
    return Table("Agreement with the ground-truth ranking", columns, rows, note)


def ranking_table(question: ComparedQuestion) -> Table:
    """List the best, the worst and the most moved items, before and after."""
    pairs, fusion = question.pairs, question.fusion
    own = np.flatnonzero(fusion.component == 0)
    order = own[np.lexsort((own, question.after[own]))]
    moved = question.before - question.after
    is_shown = np.zeros(len(order), dtype=bool)
    is_shown[:_ENDS] = is_shown[-_ENDS:] = True
    far = np.argsort(-np.abs(moved[order]), kind="stable")[:_MOVED]
    is_shown[far[moved[order][far] != 0]] = True
    rows: list[tuple[str, ...]] = []
    gap = 0
    for is_listed, item in zip(is_shown.tolist(), order.tolist(), strict=True):
        if not is_listed:
            gap += 1
            continue
        if gap:
            rows.append((f"… {gap:,} between", *[""] * 5))
            gap = 0
        rows.append(
            (
                plain(pairs.items[item], 60),
                f"{int(question.before[item]):,}",
                f"{int(question.after[item]):,}",
                signed(float(moved[item]), digits=0),
                _score(fusion.score[item], fusion.score_low[item], fusion.score_high[item]),
                _score(question.score[item], question.low[item], question.high[item]),
            )
        )
    changed = int((question.before != question.after).sum())
    groups = int(fusion.component.max(initial=-1)) + 1
    note = (
        f"Before: all answers as given; after: without the biases of flagged annotators. {changed:,} of "
        f"{int((fusion.component >= 0).sum()):,} items changed rank; moved: + towards the top. Both ends and "
        "the items that moved most are listed. Scores have mean 0 and 95 % intervals, which include how much "
        "the tastes of annotators differ ([@henderson1953]); those after assume that the flags are right."
    )
    if groups > 1:
        note += f" This is the largest of {groups:,} groups of items, whose scores are not comparable."
    columns = ("Item", "Rank before", "Rank after", "Moved", "Score before", "Score after")
    return Table("The ranking before and after", columns, rows, cite(note))


_MAX_IN_MATRIX = 12


def wins_table(question: ComparedQuestion) -> Table:
    """List the items by rank with wins, losses, ties and shares; few items also against each other."""
    pairs = question.pairs
    won, lost, tied = count_totals(pairs)
    ranked = np.flatnonzero(question.after)
    order = ranked[np.lexsort((question.after[ranked], question.fusion.component[ranked]))]
    few = len(order) <= _MAX_IN_MATRIX
    order = order[:_MAX_WINS]
    wins = count_wins(pairs) if few else None
    columns = ["Item", "Rank", "Won", "Lost", "Tied", "Share"]
    if few:
        columns += [plain(pairs.items[item], 30) for item in order.tolist()]
    rows = []
    for item in order.tolist():
        number = int(won[item] + lost[item] + tied[item])
        hits = float(won[item] + tied[item] / 2)
        row = [
            plain(pairs.items[item], 60), _rank(question, item), f"{won[item]:,}", f"{lost[item]:,}",
            f"{tied[item]:,}", _score(hits / number, *wilson(hits, number)),
        ]  # fmt: skip
        if wins is not None:
            shares = wins.share()[item, order]
            row += [share(value, 2) if np.isfinite(value) else NONE for value in shares.tolist()]
        rows.append(row)
    note = (
        "Rank: after the biases of flagged annotators are removed, with its 95 % interval "
        "([@mogstad2024]). Won, lost and tied: all comparisons as given. Share: of comparisons won, a tie "
        "counted as half, with Wilson's 95 % interval"
        + ("; on the right, the share won against each item." if few else ".")
    )
    if len(ranked) > len(order):
        note += f" The first {len(order):,} of {len(ranked):,} items are listed; the export has all."
    return Table("Wins, losses and ties", columns, rows, cite(note))


def _rank(question: ComparedQuestion, item: int) -> str:
    low, high = int(question.rank_low[item]), int(question.rank_high[item])
    ends = f" ({low:,} to {high:,})" if low < high else ""
    return f"{int(question.after[item]):,}{ends}"


def swapped_table(question: ComparedQuestion) -> Table | None:
    """List the annotators who made comparisons in both orders, the least consistent first; None if none."""
    names = question.pairs.annotators
    swapped = sorted(swapped_consistency(question.pairs).items(), key=lambda entry: entry[1].value)
    if not swapped:
        return None
    rows = [
        (
            plain(names[k], 40),
            _score(each.value, each.low, each.high),
            _bias(question, k),
            _behaviour(question, k),
        )
        for k, each in swapped[:_MOST]
    ]
    note = (
        "Share of equal choices when the same two items were compared again, on the same task if tasks are "
        "known, with the sides swapped ([@zheng2023]), with Wilson's 95 % interval. Bias: as in the table of "
        "flagged annotators."
    )
    if len(swapped) > _MOST:
        note += f" The {_MOST} least consistent of {len(swapped):,} annotators are listed."
    heads = ("Annotator", "Consistency", "Bias", "Behaviour")
    return Table("Consistency when sides are swapped", heads, rows, cite(note))


def _bias(question: ComparedQuestion, k: int) -> str:
    fusion = question.fusion
    value = float(fusion.bias[k])
    if not np.isfinite(value):
        return NONE
    return _score(value, float(fusion.bias_low[k]), float(fusion.bias_high[k]))


def _score(value: float, low: float, high: float) -> str:
    if not np.isfinite(value):
        return NONE
    return estimate(float(value), float(low), float(high))


def _behaviour(question: ComparedQuestion, k: int) -> str:
    if not question.flagged[k]:
        return NONE
    left, right = int(question.fusion.left[k]), int(question.fusion.right[k])
    side = "" if left == right else ", left" if left > right else ", right"
    return BEHAVIOUR_WORDS[int(question.behaviour[k])] + side


def _flip_figures(question: ComparedQuestion, k: int) -> tuple[str, str, str]:
    """Return p, q and the detectable bias of the flip test."""
    fusion = question.fusion
    q = float("nan") if fusion.q_value is None else float(fusion.q_value[k])
    reached = float("nan") if fusion.detectable is None else float(fusion.detectable[k])
    return p_value(float(fusion.p_value[k])), p_value(q), share(reached, 2)


def _draws(selected: float) -> str:
    return percent(selected) if np.isfinite(selected) else NONE


def _decision(question: ComparedQuestion, name: str) -> str:
    judged = question.judged.get(name)
    words = []
    if judged is not None:
        reason = plain(judged.reason, _REASON)
        words.append(_VERBS[judged.verb] + (f": {reason}" if reason else ""))
    if name in question.excluded:
        words.append("excluded since")
    return "; ".join(words) or NONE
