"""What the report says of one question of pairs, in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.pairs import PairFusion, Pairs
from raterscope.algorithms.pairs.data import BoolArray, FloatArray
from raterscope.algorithms.pairs.evidence import behaviours, crowd_match, match
from raterscope.algorithms.pairs.fusion import PairPlan
from raterscope.algorithms.pairs.ranking import ranks, scores
from raterscope.algorithms.pairs.selection import draw_shares
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.algorithms.settings import SettingsError
from raterscope.app.errors import plain
from raterscope.app.kinds.pairs.answers import Agreements, Beside, agreements, beside
from raterscope.app.review.tasks import Judged
from raterscope.app.study import RunEntry, Study
from raterscope.app.study.pairs import pairs_of, true_ranking_of
from raterscope.app.study.records import PairQuestion


@dataclass(frozen=True, eq=False)
class ComparedQuestion:
    """What the report says of a question, in numbers.

    Attributes
    ----------
    entry : PairQuestion
    run : RunEntry
    pairs : Pairs
        Those that were fused.
    fusion : PairFusion
    plan : PairPlan
    beside : Beside
        What other methods say.
    selected : (p,) float64
        Share of the draws that select each; NaN for the untested.
    judged : mapping of annotator to Judged
        What the expert says now.
    excluded : mapping of annotator to reason
        As the expert has it now.
    flagged : (p,) bool
        By the draws and not cleared by the expert, or by the expert.
    behaviour : (p,) int8
    score, low, high : (n,) float64
        With the biases of the flagged taken out.
    before, after : (n,) int32
        Ranks within components.
    match : (p,) float64
        Share of the answers that go with the ranking.
    crowd_match : float
        The same of everybody's.
    match_original : (p,) float64
        Share of the answers that go with the ranking of all answers, as the paper has it.
    later : int
        Comparisons that came after the run.
    truth : Agreements, optional
        Agreement with the ground-truth ranking, where one was imported.
    """

    entry: PairQuestion
    run: RunEntry
    pairs: Pairs
    fusion: PairFusion
    plan: PairPlan
    beside: Beside
    selected: FloatArray
    judged: Mapping[str, Judged]
    excluded: Mapping[str, str]
    flagged: BoolArray
    behaviour: NDArray[np.int8]
    score: FloatArray
    low: FloatArray
    high: FloatArray
    before: NDArray[np.int32]
    after: NDArray[np.int32]
    match: FloatArray
    crowd_match: float
    match_original: FloatArray
    later: int
    truth: Agreements | None = None


def read_compared(
    study: Study,
    entry: PairQuestion,
    judged: Mapping[str, Judged],
    excluded: Mapping[str, str],
    watch: Watch = silent,
) -> ComparedQuestion | None:
    """Read the fusion shown of a question and measure what it does not say; None before there is one."""
    watch(0.0, f"reading {plain(entry.name)}")
    shown = study.shown.result(entry.id, "pairs")
    if shown is None:
        return None
    run, fusion = shown
    pairs, plan = pairs_of(study, entry.id, run), _plan_of(run)
    verbs = {name: one.verb for name, one in judged.items()}
    said = [verbs.get(name, "") for name in pairs.annotators]
    by_expert, cleared = (np.array([one == verb for one in said], dtype=bool) for verb in ("flag", "clear"))
    flagged = (fusion.flagged & ~cleared) | by_expert
    score, low, high = fusion.corrected, fusion.corrected_low, fusion.corrected_high
    if (flagged != fusion.flagged).any():
        anew = scores(pairs, flagged, part(watch, 0.1, 0.4))
        score, low, high = anew.score, anew.low, anew.high
    fused = len(study.comparison_set(entry.id, run.imported).choice)
    truth = true_ranking_of(study, entry.id, pairs.items)
    return ComparedQuestion(
        entry=entry,
        run=run,
        pairs=pairs,
        fusion=fusion,
        plan=plan,
        beside=beside(pairs, plan, fusion, part(watch, 0.4, 0.9)),
        selected=draw_shares(fusion, bool(plan.settings.as_dict()["plus"])),
        judged=judged,
        excluded=excluded,
        flagged=flagged,
        behaviour=behaviours(pairs, flagged, fusion.decidable),
        score=score,
        low=low,
        high=high,
        before=ranks(fusion.score, fusion.component),
        after=ranks(score, fusion.component),
        match=match(pairs, score),
        crowd_match=crowd_match(pairs, score),
        match_original=match(pairs, fusion.score),
        later=len(study.comparison_set(entry.id).choice) - fused,
        truth=None if truth is None else agreements(fusion.score, score, fusion.component, truth),
    )


def _plan_of(run: RunEntry) -> PairPlan:
    try:
        return PairPlan.from_dict(run.settings)
    except SettingsError:  # of another version
        return PairPlan()
