"""Conversion of a question's scene and analysis to the values that widgets draw."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.statistics import wilson
from raterscope.algorithms.pairs.catalogue import PATHS
from raterscope.algorithms.pairs.data import BEHAVIOURS, BoolArray
from raterscope.algorithms.pairs.evidence import BiasEvidence, Evidence, OverTime, Side
from raterscope.algorithms.pairs.knockoffs import UNTESTED
from raterscope.app.workspaces.pairs.scene import OPEN, Analysis, Cut, Match, Ranking, Scene
from raterscope.text import counted, percent, with_minus
from raterscope.widgets.figures.bias_path import PathView
from raterscope.widgets.figures.position_bias import OverTimeView, RateCut, SidesView, StatisticsView
from raterscope.widgets.figures.ranking_painter import RankingView
from raterscope.widgets.panels.annotator_card import BiasView
from raterscope.widgets.panels.pair_browser import AnnotatorsView, PairsView
from raterscope.widgets.panels.queue_items import NOTES
from raterscope.widgets.tables.comparison_tables import RankingRows

AXES = {"iss": "time of the path", "lbi": "time of the path", "lasso": "lambda"}
GOOD, UNDECIDABLE = BEHAVIOURS.index("good"), BEHAVIOURS.index("not decidable")
MAX_LISTED = 500
UNFUSED = "Press Fuse (F5), then select an annotator to plot their bias over time."
NO_PATH = "No annotator could be tested for a bias: see why beside each annotator."
COVERED_RANKING = "In blind mode, the ranking is shown once every annotator is decided."
COVERED = "Answers of others and results of the model are shown once you have decided."


def covers(scene: Scene, decided: int) -> bool:
    """Return whether the evidence on an annotator is hidden: in blind mode, until the expert decides."""
    return scene.blind and decided == OPEN


def uncovered(scene: Scene, decided: NDArray[np.int8]) -> NDArray[np.int64]:
    """Return the annotators whose evidence is shown."""
    return np.flatnonzero(decided != OPEN) if scene.blind else np.arange(len(decided))


def behaviour_shown(
    scene: Scene, analysis: Analysis, cut: Cut | None, flagged: BoolArray
) -> NDArray[np.int8]:
    """Return the behaviour of each annotator, -1 for untested ones."""
    if scene.fusion is None:
        return np.full(len(scene.pairs.annotators), -1, dtype=np.int8)
    decidable = scene.fusion.decidable if cut is None else cut.decidable
    cleared = (scene.fusion.flagged if cut is None else cut.flagged) & ~flagged
    default = GOOD if decidable is None else np.where(decidable | cleared, GOOD, UNDECIDABLE)
    behaviour = np.where(flagged, analysis.if_flagged, default)
    return np.where(scene.fusion.untested == 0, behaviour, -1).astype(np.int8)


def listed(
    scene: Scene,
    analysis: Analysis,
    cut: Cut | None,
    decided: NDArray[np.int8],
    flagged: BoolArray,
    text: str,
    key: str,
    contested: frozenset[int] = frozenset(),
    notes: Mapping[int, Mapping[str, int]] | None = None,
) -> NDArray[np.int64]:
    """Return the annotators that pass a filter: conflicting decisions first, then by strength of evidence.

    All annotators include those that the run excludes, at the end. In blind mode the order is that of the
    import, and filters by results list decided annotators only. `text`: text that the name must contain.
    `key`: key of `ANNOTATOR_FILTERS`.
    """
    names = scene.names
    keep = analysis.took_part.copy()
    behaviour = behaviour_shown(scene, analysis, cut, flagged)
    if key == "all":
        keep[list(scene.excluded)] = True
    elif key == "undecided":
        keep &= decided == OPEN
    elif key == "flagged":
        keep &= flagged
    elif key == "decided":
        keep &= decided != OPEN
    elif key == "untested":
        keep &= behaviour < 0
    elif key in BEHAVIOURS:
        keep &= behaviour == BEHAVIOURS.index(key)
    elif key in NOTES:
        noted = [annotator for annotator, counts in (notes or {}).items() if NOTES[key] in counts]
        keep &= np.isin(np.arange(len(names)), noted)
    if scene.blind and key in ("flagged", "untested", *BEHAVIOURS):
        keep &= decided != OPEN
    if text:
        part = text.casefold()
        keep &= np.fromiter((part in name.casefold() for name in names), bool, len(names))
    evidence = np.zeros(len(names))
    if cut is not None and not scene.blind:
        evidence = np.nan_to_num(cut.evidence, nan=-1e9)
    annotators = np.flatnonzero(keep)
    first = np.isin(annotators, list(contested))
    return annotators[np.lexsort((-evidence[annotators], ~analysis.took_part[annotators], ~first))]


def annotators_view(
    scene: Scene,
    analysis: Analysis,
    cut: Cut | None,
    decided: NDArray[np.int8],
    flagged: BoolArray,
    order: NDArray[np.int64],
    contested: frozenset[int] = frozenset(),
    notes: Mapping[int, Mapping[str, int]] | None = None,
) -> AnnotatorsView:
    """Return the queue of annotators in an order; results are hidden together with names."""
    behaviour = behaviour_shown(scene, analysis, cut, flagged)
    return AnnotatorsView(
        names=scene.names,
        total=int(analysis.took_part.sum()),
        order=order,
        left=analysis.left,
        right=analysis.right,
        behaviour=np.full_like(behaviour, -1) if scene.blind else behaviour,
        decided=decided,
        doubt=None if cut is None or scene.blind else cut.share,
        by_flips=scene.by_flips,
        contested=contested,
        notes=notes or {},
        excluded=scene.excluded,
    )


def path_cut(scene: Scene, cut: Cut | None) -> float:
    """Return the position of the cut on the path's axis, for the median draw."""
    if cut is None or scene.run is None or not len(cut.at) or scene.by_flips:
        return float("nan")
    middle = float(np.median(cut.at))
    if not np.isfinite(middle) or middle <= 0:
        return float("nan")
    return middle if scene.run.algorithm == "lasso" else 1.0 / middle


def path_view(
    scene: Scene, cut: Cut | None, behaviour: NDArray[np.int8], annotators: NDArray[np.int64]
) -> PathView | None:
    """Return the regularisation path of some annotators; None without a path or a result."""
    fusion = scene.fusion
    if fusion is None or scene.run is None or not len(fusion.path_at) or not len(annotators):
        return None
    return PathView(
        at=fusion.path_at, bias=_columns(fusion.path, annotators), behaviour=behaviour[annotators],
        names=_named(scene, annotators), numbers=annotators, cut=path_cut(scene, cut),
        axis=AXES.get(scene.run.algorithm, ""), stepped=scene.run.algorithm == "iss",
    )  # fmt: skip


def why_no_path(scene: Scene, annotators: NDArray[np.int64]) -> str:
    """Return why a fusion has no path to draw; empty without a fusion."""
    if scene.fusion is None:
        return ""
    return NO_PATH if len(annotators) else COVERED


def sides_view(
    scene: Scene, analysis: Analysis, flagged: BoolArray, behaviour: NDArray[np.int8]
) -> SidesView | None:
    """Return the counts of left and right choices of the annotators with comparisons."""
    if not len(scene.pairs):
        return None
    annotators = np.flatnonzero(analysis.took_part)
    return SidesView(
        left=analysis.left[annotators], right=analysis.right[annotators],
        behaviour=behaviour[annotators], flagged=flagged[annotators],
        names=_named(scene, annotators), numbers=annotators,
    )  # fmt: skip


def rate_cut(
    scene: Scene, analysis: Analysis, cut: Cut, flagged: BoolArray, annotators: NDArray[np.int64]
) -> RateCut:
    """Return the cut for the bars of some annotators, with a description of its guarantee."""
    text = f"at most {percent(cut.rate)} of them wrongly"
    if analysis.not_promised:
        text = f"the rate is not guaranteed: {analysis.not_promised.partition(',')[0]}"
    elif scene.by_flips:
        text += f", {scene.gate_message}" if scene.gate_message else ""
    elif not cut.flagged.any():
        # With at least this number of flags, one wrong flag does not exceed the rate.
        fewest = math.ceil(1 / cut.rate - 1e-9)
        text = (
            f"at this rate fewer than {counted(fewest, 'annotator')} cannot be flagged" if scene.plus else ""
        )
    if scene.fusion is not None and cut.rate != scene.fusion.rate:
        elsewhere = f"files and report are at {scene.fusion.rate:.2f}"
        text = f"{text}; {elsewhere}" if text else elsewhere
    others = 0 if scene.blind else int(flagged.sum() - flagged[annotators].sum())
    by_test = None if scene.blind or np.array_equal(flagged, cut.flagged) else int(cut.flagged.sum())
    return RateCut(cut.rate, cut.share[annotators], cut.at, flagged[annotators], text, others, by_test)


def statistics_view(
    scene: Scene, analysis: Analysis, cut: Cut | None, flagged: BoolArray, annotators: NDArray[np.int64]
) -> StatisticsView | None:
    """Return the statistics of some annotators in every draw; None without a result or annotators."""
    fusion = scene.fusion
    if fusion is None or cut is None or not len(fusion.statistic) or not len(annotators):
        return None
    return StatisticsView(
        statistic=_columns(fusion.statistic, annotators), names=_named(scene, annotators), numbers=annotators,
        min_share=fusion.share, cut=rate_cut(scene, analysis, cut, flagged, annotators),
        p_values=scene.by_flips,
    )  # fmt: skip


def _columns(value: NDArray[np.floating], annotators: NDArray[np.int64]) -> NDArray[np.floating]:
    return value if len(annotators) == value.shape[1] else value[:, annotators]  # no copy of all columns


def _named(scene: Scene, annotators: NDArray[np.int64]) -> tuple[str, ...]:
    names = scene.names
    return names if len(annotators) == len(names) else tuple(names[number] for number in annotators.tolist())


def covers_ranking(scene: Scene, analysis: Analysis, decided: NDArray[np.int8]) -> bool:
    """Return whether the ranking is hidden: in blind mode, until every annotator is decided."""
    return scene.blind and bool((analysis.took_part & (decided == OPEN)).any())


def ranking_view(scene: Scene, ranking: Ranking | None) -> RankingView | None:
    """Return the ranking before and after the correction; None without a result."""
    fusion = scene.fusion
    if fusion is None or ranking is None:
        return None
    corrected = ranking.corrected
    return RankingView(
        names=scene.pairs.items, before=fusion.score, after=corrected.score,
        before_interval=np.array([fusion.score_low, fusion.score_high]),
        after_interval=np.array([corrected.low, corrected.high]),
        component=fusion.component, rank_before=ranking.before, rank_after=ranking.after,
        pictures=bool(scene.pictures),
    )  # fmt: skip


def ranking_rows(scene: Scene, analysis: Analysis, ranking: Ranking | None) -> RankingRows | None:
    """Return the items by corrected rank with their wins; None without a result."""
    if scene.fusion is None or ranking is None or analysis.totals is None:
        return None
    after, corrected = ranking.after, ranking.corrected
    ranked = np.flatnonzero(after)
    order = ranked[np.lexsort((after[ranked], scene.fusion.component[ranked]))]
    names = [scene.pairs.items[item] for item in order.tolist()]
    columns = (*analysis.totals, after, corrected.score, corrected.low, corrected.high,
               corrected.rank_low, corrected.rank_high)  # fmt: skip
    cells = []
    for won, lost, tied, rank, score, low, high, rank_low, rank_high in zip(
        *(column[order].tolist() for column in columns), strict=True
    ):
        compared, hits = won + lost + tied, won + tied / 2
        cells.append(
            (
                f"{rank:,}" + (f" ({rank_low:,} to {rank_high:,})" if rank_low < rank_high else ""),
                interval_text(score, low, high), f"{won:,}", f"{lost:,}", f"{tied:,}",
                share_text(hits / compared, *wilson(hits, compared)),
            )
        )  # fmt: skip
    wins = analysis.wins
    share = None if wins is None else wins.share()[np.ix_(order, order)]

    def against(row: int, column: int) -> str:
        assert wins is not None
        first, second = int(order[row]), int(order[column])
        compared, beaten = int(wins.compared()[first, second]), int(wins.won[first, second])
        return (
            f"{names[row]} against {names[column]}: {beaten:,} won, {int(wins.won[second, first]):,} lost, "
            f"{int(wins.ties[first, second]):,} tied, "
            f"{share_text((beaten + wins.ties[first, second] / 2) / compared, *wins.interval(first, second))}"
        )

    return RankingRows(order, names, cells, share, against, bool(scene.pictures))


def interval_text(value: float, low: float, high: float) -> str:
    """Return a score with its interval."""
    known = math.isfinite(low) and math.isfinite(high)
    score, lowest, highest = (with_minus(f"{number:.2f}") for number in (value, low, high))
    return score + (f" ({lowest} to {highest})" if known else "")


def share_text(value: float, low: float, high: float) -> str:
    """Return a share in percent with its interval."""
    return f"{100 * value:.0f} % ({100 * low:.0f} to {100 * high:.0f})"


def bias_view(
    scene: Scene,
    analysis: Analysis,
    annotator: int,
    cut: Cut | None,
    flagged: bool,
    decided: int,
    behaviour: int,
    evidence: Evidence | None,
    match: Match | None,
    contested: str = "",
) -> BiasView:
    """Return the evidence on one annotator; in blind mode, counts only until the annotator is decided."""
    fusion = scene.fusion
    used = int(analysis.left[annotator]), int(analysis.right[annotator]), int(analysis.ties[annotator])
    left, right, ties = scene.excluded.get(annotator, used)
    excluded = "Excluded: these choices do not count in this run." if annotator in scene.excluded else ""
    counted = BiasView(
        name=scene.names[annotator], left=left, right=right, ties=ties, decided=decided,
        sentence=COVERED if covers(scene, decided) else f"Experts differ: {contested}." if contested
        else excluded,
    )  # fmt: skip
    if covers(scene, decided) or fusion is None or cut is None or excluded:
        return counted
    share, draws = float(cut.share[annotator]), len(fusion.statistic)
    reason = UNTESTED.get(int(fusion.untested[annotator]), "")
    return replace(
        counted, behaviour=behaviour, flagged=flagged, bias=float(fusion.bias[annotator]),
        low=float(fusion.bias_low[annotator]), high=float(fusion.bias_high[annotator]),
        match=_value_of(None if match is None else match.each, annotator),
        crowd_match=float("nan") if match is None else match.crowd,
        match_original=_value_of(analysis.match_original, annotator),
        selected=round(share * draws) if np.isfinite(share) else 0,
        draws=0 if scene.by_flips else draws,
        q_value=_value_of(fusion.q_value, annotator), detectable=_value_of(cut.detectable, annotator),
        has_detectable=cut.detectable is not None, by_flips=scene.by_flips,
        test_flags=None if analysis.test is None or reason else bool(analysis.test[annotator]),
        p_value=float(fusion.p_value[annotator]),
        doubtful_left=_left_share(evidence.doubtful) if evidence else float("nan"),
        clear_left=_left_share(evidence.clear) if evidence else float("nan"),
        gathering=evidence is None, untested=reason,
        swapped=_swapped(analysis, annotator),
    )  # fmt: skip


def _swapped(analysis: Analysis, annotator: int) -> str:
    share = analysis.swapped.get(annotator)
    return "" if share is None else f"same in {share_text(share.value, share.low, share.high)}"


def _value_of(values: NDArray[np.float64] | None, annotator: int) -> float:
    return float("nan") if values is None else float(values[annotator])


def _left_share(side: Side) -> float:
    return float(side.share)


def course_view(course: OverTime, behaviour: int) -> OverTimeView | None:
    """Return the bias over time; None with too few comparisons for two windows."""
    if len(course.at) < 2:
        return None
    return OverTimeView(
        at=course.at, bias=course.bias, low=course.low, high=course.high,
        when=tuple(_when(at, timed=course.timed) for at in course.at.tolist()),
        answers=int(course.count.sum()), behaviour=max(behaviour, 0),
    )  # fmt: skip


def _when(at: float, *, timed: bool) -> str:
    if not timed:
        return f"comparison {at:,.0f}"
    try:
        return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):  # seconds from another origin than 1970
        return f"{at:g} s"


def evidence_pairs_view(scene: Scene, evidence: Evidence, decided: int) -> PairsView:
    """Return the comparisons for and against a bias of an annotator, and the answers of others.

    In blind mode, neither is shown until the annotator is decided.
    """
    rows: list[int] = []
    same: list[int] = []
    otherwise: list[int] = []
    gap: list[float] = []
    against: list[bool] = []
    for of_bias, group in (
        (True, evidence.evidence_for), (False, evidence.evidence_against), (False, evidence.against_ranking),
    ):  # fmt: skip
        _take(group, rows, same, otherwise, gap)
        against += [of_bias] * min(len(group), MAX_LISTED)
    at = np.array(rows, dtype=np.int64)
    pairs = scene.pairs
    left_wins = pairs.choice[at] > 0
    likewise, other = np.array(same, dtype=np.int64), np.array(otherwise, dtype=np.int64)
    sign = np.where(left_wins, -1.0, 1.0)
    return PairsView(
        name=scene.names[evidence.annotator], comparison=at, left=pairs.left[at], right=pairs.right[at],
        choice=pairs.choice[at], others_left=np.where(left_wins, likewise, other), others=likewise + other,
        ranking=sign * np.array(gap), names=pairs.items, pictures=bool(scene.pictures),
        against=np.array(against, dtype=bool), covered=covers(scene, decided),
    )  # fmt: skip


def _take(
    group: BiasEvidence, rows: list[int], same: list[int], otherwise: list[int], gap: list[float]
) -> None:
    rows += group.comparison[:MAX_LISTED].tolist()
    same += group.same[:MAX_LISTED].tolist()
    otherwise += group.otherwise[:MAX_LISTED].tolist()
    gap += group.gap[:MAX_LISTED].tolist()


def between_view(scene: Scene, analysis: Analysis, first_item: int, second_item: int) -> PairsView | None:
    """Return the comparisons of two items by all annotators."""
    if analysis.index is None or scene.fusion is None:
        return None
    pairs, score = scene.pairs, scene.fusion.corrected
    at = analysis.index.between(first_item, second_item)[:MAX_LISTED]
    first = np.where(pairs.left[at] == first_item, pairs.choice[at], -pairs.choice[at])
    wins = int((first > 0).sum()), int((first < 0).sum())
    left_is_first = pairs.left[at] == first_item
    own_left = pairs.choice[at] > 0
    others_left = np.where(left_is_first, wins[0], wins[1]) - own_left
    decided = pairs.choice[at] != 0
    names = scene.names
    return PairsView(
        name=f"{pairs.items[first_item]} and {pairs.items[second_item]}", comparison=at, left=pairs.left[at],
        right=pairs.right[at], choice=pairs.choice[at], others_left=others_left,
        others=np.full(len(at), sum(wins)) - decided, ranking=score[pairs.left[at]] - score[pairs.right[at]],
        names=pairs.items, pictures=bool(scene.pictures),
        annotators=tuple(names[annotator] for annotator in pairs.annotator[at].tolist()),
    )  # fmt: skip


def status(scene: Scene, analysis: Analysis, cut: Cut | None, flagged: BoolArray) -> str:
    """Describe question and run on screen for the status line."""
    pairs = scene.pairs
    annotator_count = int(analysis.took_part.sum())
    words = [
        counted(len(pairs.items), "item"),
        f"{counted(len(pairs), 'comparison')} by {counted(annotator_count, 'annotator')}",
    ]
    if scene.run is None or scene.fusion is None or cut is None:
        return "  |  ".join([*words, "not fused yet"])
    fusion = scene.fusion
    path = PATHS[scene.run.algorithm].title if scene.run.algorithm in PATHS else scene.run.algorithm
    rule = "flip test" if scene.by_flips else counted(len(fusion.statistic), "draw")
    words.append(f"run {scene.run.id}: {path}, {rule}")
    if not scene.blind:
        words.append(f"{int(flagged.sum()):,} flagged at a rate of {cut.rate:.2f}")
    if np.isfinite(fusion.inconsistency):
        words.append(f"the ranking explains {percent(1 - fusion.inconsistency)} of the choices")
    if analysis.agreement is not None and np.isfinite(analysis.agreement.original.tau):
        corrected, original = analysis.agreement.corrected.tau, analysis.agreement.original.tau
        words.append(f"Kendall's tau with the truth {corrected:.3f}, before {original:.3f}")
    if scene.later:
        words.append(f"{counted(scene.later, 'comparison')} imported since: fuse again (F5)")
    return "  |  ".join(words)
