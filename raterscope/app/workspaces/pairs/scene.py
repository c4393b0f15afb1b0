"""Scene of the pairs workspace: comparisons, a run's result, and their analysis. Without Qt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.agreement_statistics import Coefficient
from raterscope.algorithms.array_operations import one_thread
from raterscope.algorithms.pairs import PairFusion, Pairs
from raterscope.algorithms.pairs.data import BoolArray, FloatArray
from raterscope.algorithms.pairs.evidence import (
    PairIndex,
    behaviours,
    index_pairs,
    match_ratio,
    match_ratios,
)
from raterscope.algorithms.pairs.flip_test import FlipTest, flip_test
from raterscope.algorithms.pairs.knockoffs import SortedDraws, select_annotators, sort_draws
from raterscope.algorithms.pairs.ranking import LinkedScores, Scores, begin_scores, link, ranks
from raterscope.algorithms.pairs.ranking_agreement import TrueRanking
from raterscope.algorithms.pairs.selection import (
    detectable_biases,
    flip_flags,
    t_test_flags,
    wrong_probabilities,
)
from raterscope.algorithms.pairs.wins import Totals, Wins, count_totals, count_wins
from raterscope.algorithms.progress import Watch
from raterscope.app.kinds.pairs.annotators import swapped_consistency
from raterscope.app.kinds.pairs.runs import (
    RankingAgreements,
    compare_with_truth,
    is_t_test_defined,
    plan_of,
    why_not_guaranteed,
)
from raterscope.app.session import Session
from raterscope.app.study import RunEntry, Study
from raterscope.app.study.pairs import item_pictures, pairs_of, true_ranking_of
from raterscope.app.study.records import ImageEntry, PairQuestion

OPEN, FLAGGED, CLEARED = 0, 1, 2
MAX_SHOWN = 60
"""Maximum number of items with a column in the table of wins."""


@dataclass(frozen=True, eq=False)
class Scene:
    """A question, the run shown, and its comparisons; without a run, all of them."""

    question: PairQuestion
    run: RunEntry | None
    fusion: PairFusion | None
    pairs: Pairs
    annotator_ids: NDArray[np.int32]  # (p,): the annotators' numbers in the study
    pictures: Mapping[int, ImageEntry]  # by item
    later: int = 0  # number of comparisons that were imported after the run
    truth: TrueRanking | None = None  # the imported ground-truth ranking
    tasks: tuple[str, ...] = ()  # names of the tasks of the comparisons, by their numbers in `pairs`
    blind: bool = False  # whether names are hidden, and the evidence on annotators until they are decided
    # (left, right, ties) of annotators that the run excludes, by their numbers
    excluded: Mapping[int, tuple[int, int, int]] = field(default_factory=dict)

    @property
    def item(self) -> PairQuestion:
        """The question."""
        return self.question

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the annotators, or numbers while names are hidden."""
        if not self.blind:
            return self.pairs.annotators
        return tuple(f"annotator {number + 1}" for number in self.annotator_ids.tolist())

    @property
    def plus(self) -> bool:
        """Whether cuts are those of knockoff+, which guarantees the rate."""
        return self.run is None or bool(self.run.settings.get("settings", {}).get("plus", True))

    @property
    def by_flips(self) -> bool:
        """Whether annotators are flagged by the flip test, not by knockoffs."""
        return self.fusion is not None and self.fusion.rule == "flip" and self.fusion.q_value is not None

    @property
    def gate_message(self) -> str:
        """Message that the test of the whole crowd prevents flags; empty if it does not."""
        if self.fusion is None or self.fusion.crowd_p <= self.fusion.gate:
            return ""
        return f"the crowd shows no clear bias (p = {self.fusion.crowd_p:.2g}): none is flagged"


def error_probabilities(question: int, study: Study) -> dict[str, float] | None:
    """Return, by name, the probability that each annotator of a question is flagged or not flagged wrongly.

    None without a result; 0 for untested annotators.
    """
    run, fusion = study.shown.run_and_result(question, "pairs", None)
    if run is None or fusion is None:
        return None
    pairs = pairs_of(study, question, run)
    wrong = wrong_probabilities(fusion)
    return {
        pairs.annotators[annotator]: float(wrong[annotator])
        for annotator in np.unique(pairs.annotator).tolist()
    }


def read_scene(question: int, run: int | None, study: Study, watch: Watch) -> Scene:
    """Read a question with the result of a run, by default the latest, in the study's thread."""
    watch(0.0, "reading comparisons")
    entry = next(entry for entry in study.pair_questions() if entry.id == question)
    run_shown, fusion = study.shown.run_and_result(question, "pairs", run)
    comparisons = study.comparison_set(question, None if run_shown is None else run_shown.imported)
    entries = {picture.id: picture for picture in study.images()}
    pictures = {item: entries[image] for item, image in item_pictures(study, question).items()}
    later = 0 if run_shown is None else len(study.comparison_set(question).choice) - len(comparisons.choice)
    truth = true_ranking_of(study, question, comparisons.items)
    pairs = pairs_of(study, question, run_shown)
    ids, tasks = comparisons.annotator_ids, comparisons.tasks
    excluded = {}
    if run_shown is not None and run_shown.excluded:
        left, right, ties = pairs_of(study, question, replace(run_shown, excluded=())).counts()
        excluded = {
            number: (int(left[number]), int(right[number]), int(ties[number]))
            for number, name in enumerate(pairs.annotators)
            if name in run_shown.excluded
        }
    return Scene(entry, run_shown, fusion, pairs, ids, pictures, later, truth, tasks, excluded=excluded)


@dataclass(frozen=True, eq=False)
class Cut:
    """Annotators flagged at a false discovery rate by the run's rule, without decisions."""

    rate: float
    # (p,): share of draws that select each annotator, or 1 - q value for the flip test; NaN if not tested
    share: FloatArray
    at: FloatArray  # (D,): smallest flagged statistic; infinite if none is flagged
    flagged: BoolArray  # (p,)
    # (p,): sort key of the queue: the statistic; for knockoffs the share, then the mean; NaN like `share`
    evidence: FloatArray
    # detectable, decidable: (p,) and (p,), or None: as in `PairFusion`, at this rate; at the previous rate
    # until they are computed
    detectable: FloatArray | None
    decidable: BoolArray | None


def cut_at(scene: Scene, draws: SortedDraws, rate: float, previous: Cut | None = None) -> Cut:
    """Return the cut at another rate, without a new fit."""
    fusion = scene.fusion
    assert fusion is not None
    reached = fusion.detectable, fusion.decidable
    if previous is not None and rate != fusion.rate:
        reached = previous.detectable, previous.decidable
    mean = fusion.statistic.mean(axis=0, dtype=np.float64) if len(fusion.statistic) else np.zeros(0)
    if fusion.rule == "knockoffs" or fusion.q_value is None:
        at = draws.cuts(rate, scene.plus)
        share = draws.shares(at)
        largest = float(np.nanmax(np.abs(mean), initial=0.0)) or 1.0
        # sorted by the share, then by the mean statistic
        evidence = share + 0.5 / max(len(fusion.statistic), 1) * mean / largest
        return Cut(rate, share, at, select_annotators(share, fusion.share), evidence, *reached)
    flagged = flip_flags(fusion.q_value, rate, fusion.crowd_p, fusion.gate)
    smallest = np.array([mean[flagged].min(initial=np.inf)])
    return Cut(rate, 1.0 - fusion.q_value, smallest, flagged, mean, *reached)


@dataclass(frozen=True, eq=False)
class Ranking:
    """Ranking corrected for the biases of flagged annotators."""

    corrected: Scores
    # before, after: (n,): ranks within components; 0 for items never compared
    before: NDArray[np.int32]
    after: NDArray[np.int32]


def link_items(scene: Scene, watch: Watch) -> LinkedScores:
    """Compute the common input of all rankings of the items."""
    return link(_as_fused(scene), watch)


def rank(
    scene: Scene, linked: LinkedScores, flagged: BoolArray, watch: Watch
) -> tuple[Ranking, Callable[[], Scores]]:
    """Rank the items again with the biases of some annotators (eq. 11).

    Also return a function that adds the intervals of ranks to the scores, which takes as long.
    """
    fusion = scene.fusion
    assert fusion is not None
    corrected, with_ranks = begin_scores(linked, flagged, watch)
    before = ranks(fusion.score, fusion.component)
    return Ranking(corrected, before, ranks(corrected.score, fusion.component)), with_ranks


@dataclass(frozen=True, eq=False)
class Match:
    """Agreement of the answers with a ranking."""

    each: FloatArray  # (p,): share of each annotator's answers that agree with the ranking
    crowd: float  # share of all answers


def measure_match(scene: Scene, ranking: Ranking, watch: Watch) -> Match:
    """Count the answers that agree with a ranking."""
    watch(0.0, "comparing answers with the ranking")
    return Match(*match_ratios(scene.pairs, ranking.corrected.score))


def test_again(scene: Scene, watch: Watch) -> FlipTest | None:
    """Repeat the flip test, which gives detectable biases at any rate; None for a run without the test."""
    fusion = scene.fusion
    plan = None if scene.run is None else plan_of(scene.run)
    if plan is None or fusion is None or fusion.q_value is None:
        return None
    with one_thread():
        test = flip_test(_as_fused(scene), plan.settings.as_dict()["effect"], watch)
    return replace(test, probability=np.where(fusion.untested != 0, np.nan, test.probability))


def detect_at(scene: Scene, test: FlipTest, rate: float) -> tuple[FloatArray, BoolArray]:
    """Return detectable biases at a rate, and whether annotators are decidable; see `PairFusion`."""
    fusion = scene.fusion
    plan = None if scene.run is None else plan_of(scene.run)
    assert fusion is not None
    assert fusion.q_value is not None
    assert plan is not None
    settings = plan.settings.as_dict()
    return detectable_biases(
        test, fusion.q_value, fusion.crowd_p, rate, settings["gate"], settings["relevant"]
    )


def _as_fused(scene: Scene) -> Pairs:
    """Return the comparisons in the form that the run used: with grades, or only the side."""
    plan = None if scene.run is None else plan_of(scene.run)
    if plan is None or plan.settings.as_dict()["graded"]:
        return scene.pairs
    return replace(scene.pairs, choice=np.sign(scene.pairs.choice))


@dataclass(frozen=True, eq=False)
class Analysis:
    """Analysis of comparisons and result."""

    # left, right, ties: (p,)
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    ties: NDArray[np.int64]
    # (p,): behaviour of each annotator if flagged (leaning or one-sided), as an index into `BEHAVIOURS`
    if_flagged: NDArray[np.int8]
    draws: SortedDraws | None = None  # None without a result, like the following fields
    cut: Cut | None = None  # cut at the run's rate
    index: PairIndex | None = None
    # (p,) or None: share of each annotator's answers that agree with the ranking of all answers
    match_original: NDArray[np.float64] | None = None
    not_promised: str = ""  # why the false discovery rate is not guaranteed; empty if it is
    # (p,) or None: annotators flagged by the t test with Benjamini-Hochberg at the run's rate
    test: BoolArray | None = None
    # agreement of the rankings with the ground truth; None without one
    agreement: RankingAgreements | None = None
    totals: Totals | None = None  # tuple of (n,): each item's wins, losses and ties
    wins: Wins | None = None  # by pair of items; None with too many items
    # consistency of annotators who made a comparison in both orders of its items
    swapped: Mapping[int, Coefficient] = field(default_factory=dict)

    @property
    def took_part(self) -> BoolArray:
        """Annotators with comparisons; excluded ones have none."""
        return self.left + self.right + self.ties > 0


def _agreement(scene: Scene, fusion: PairFusion) -> RankingAgreements | None:
    if scene.truth is None:
        return None
    return compare_with_truth(fusion.score, fusion.corrected, fusion.component, scene.truth)


PairsSession = Session[Scene, Analysis]
"""Session of the pairs workspace."""


def analyse(scene: Scene, watch: Watch) -> Analysis:
    """Compute the analysis of a scene, in a background thread."""
    left, right, ties = scene.pairs.counts()
    if_flagged = behaviours(scene.pairs, np.ones(len(left), dtype=bool))
    fusion = scene.fusion
    if fusion is None:
        return Analysis(left, right, ties, if_flagged)
    draws = sort_draws(fusion.statistic)
    plan = None if scene.run is None else plan_of(scene.run)
    return Analysis(
        left,
        right,
        ties,
        if_flagged,
        draws,
        cut_at(scene, draws, fusion.rate),
        index_pairs(scene.pairs, fusion.corrected, watch),
        match_ratio(scene.pairs, fusion.score),
        "" if plan is None else why_not_guaranteed(plan, fusion),
        t_test_flags(fusion) if is_t_test_defined(fusion) else None,
        _agreement(scene, fusion),
        count_totals(scene.pairs),
        count_wins(scene.pairs) if len(scene.pairs.items) <= MAX_SHOWN else None,
        swapped_consistency(scene.pairs),
    )
