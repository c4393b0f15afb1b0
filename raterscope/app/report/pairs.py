"""The questions of pairs in a report: who is biased to a side, and the ranking without the biases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.pairs import PairFusion, Pairs
from raterscope.algorithms.pairs.behaviour import behaviours, crowd_match, match
from raterscope.algorithms.pairs.data import BoolArray, FloatArray
from raterscope.algorithms.pairs.fusion import PairPlan
from raterscope.algorithms.pairs.knockoffs import shares
from raterscope.algorithms.pairs.ranking import ranks, scores
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.algorithms.settings import SettingsError
from raterscope.app.errors import counted, plain
from raterscope.app.pairs.comparing import Beside, beside, not_promised
from raterscope.app.report.contents import Block, Facts, Gallery, Notices, Section, Swatch
from raterscope.app.report.masks import run_in_words
from raterscope.app.report.pair_charts import COLOURS, draw_path, draw_sides
from raterscope.app.report.pair_tables import flagged_table, ranking_table
from raterscope.app.report.units import share
from raterscope.app.review.biases import Judged
from raterscope.app.study import RunEntry, Study
from raterscope.app.study.pairs import pairs_of
from raterscope.app.study.records import PairQuestion
from raterscope.widgets.figures import percent

__all__ = ["ComparedQuestion", "compared_section", "read_compared"]


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
    later : int
        Comparisons that came after the run.
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
    later: int


def read_compared(
    study: Study,
    entry: PairQuestion,
    judged: Mapping[str, Judged],
    excluded: Mapping[str, str],
    watch: Watch = silent,
) -> ComparedQuestion | None:
    """Read the latest fusion of a question and measure what it does not say; None before there is one."""
    watch(0.0, f"reading {plain(entry.name)}")
    latest = study.latest_result(entry.id, "pairs")
    if latest is None:
        return None
    run, fusion = latest
    pairs, plan = pairs_of(study, entry.id, run), _plan_of(run)
    verbs = {name: one.verb for name, one in judged.items()}
    said = [verbs.get(name, "") for name in pairs.annotators]
    by_expert, cleared = (np.array([one == verb for one in said], dtype=bool) for verb in ("flag", "clear"))
    flagged = (fusion.flagged & ~cleared) | by_expert
    score, low, high = fusion.corrected, fusion.corrected_low, fusion.corrected_high
    if (flagged != fusion.flagged).any():
        anew = scores(pairs, flagged, part(watch, 0.1, 0.4))
        score, low, high = anew.score, anew.low, anew.high
    fused = len(study.bench(entry.id, run.imported).choice)
    return ComparedQuestion(
        entry=entry,
        run=run,
        pairs=pairs,
        fusion=fusion,
        plan=plan,
        beside=beside(pairs, plan, fusion, part(watch, 0.4, 0.9)),
        selected=shares(fusion.statistic, fusion.rate, bool(plan.settings.as_dict()["plus"])),
        judged=judged,
        excluded=excluded,
        flagged=flagged,
        behaviour=behaviours(pairs, flagged),
        score=score,
        low=low,
        high=high,
        before=ranks(fusion.score, fusion.component),
        after=ranks(score, fusion.component),
        match=match(pairs, score),
        crowd_match=crowd_match(pairs, score),
        later=len(study.bench(entry.id).choice) - fused,
    )


def compared_section(found: ComparedQuestion, watch: Watch = silent) -> Section:
    """Tell of one question."""
    watch(0.0, "drawing")
    blocks: list[Block] = [_facts(found)]
    if found.later:
        blocks.append(
            Notices(
                [
                    f"{counted(found.later, 'comparison')} came after run {found.run.id}: its figures do not "
                    "rest on them. Fuse again to have them told."
                ]
            )
        )
    blocks += [_charts(found), flagged_table(found), ranking_table(found)]
    return Section(plain(found.entry.name), blocks, breaks=True)


def _plan_of(run: RunEntry) -> PairPlan:
    try:
        return PairPlan.from_dict(run.settings)
    except SettingsError:  # of another version
        return PairPlan()


def _facts(found: ComparedQuestion) -> Facts:
    pairs, fusion = found.pairs, found.fusion
    left, right, ties = (int(one.sum()) for one in pairs.counts())
    many = np.bincount(pairs.annotator, minlength=len(pairs.annotators))
    many = many[many > 0]
    spread = f"; {many.min():,} to {many.max():,} each, median {np.median(many):g}" if len(many) > 1 else ""
    sides = f"{left:,} left and {right:,} right"
    if left + right:
        sides += f": {100 * left / (left + right):.1f} % left"
    facts = [
        (
            "Comparisons",
            f"{counted(len(pairs), 'comparison')} by {counted(len(many), 'annotator')}{spread}",
        ),
        ("Items", _items(fusion)),
        ("Choices", sides + (f"; {counted(ties, 'tie')}" if ties else "")),
        ("Flagged", _flagged(found)),
        ("Promise", _promise(found)),
        ("Other test", _other_test(found)),
        ("What a ranking explains", _explained(found)),
        ("Run", run_in_words(found.run)),
    ]
    return Facts([*facts, *(("Note", plain(sentence, 400)) for sentence in fusion.notices)])


def _items(fusion: PairFusion) -> str:
    compared = int((fusion.component >= 0).sum())
    groups = int(fusion.component.max(initial=-1)) + 1
    words = f"{compared:,}"
    if groups > 1:
        words += f" in {groups:,} groups that no comparison links, each ranked by itself"
    never = len(fusion.component) - compared
    return words + (f"; {never:,} never compared" if never else "")


def _flagged(found: ComparedQuestion) -> str:
    fusion = found.fusion
    tested = int((fusion.untested == 0).sum())
    words = f"{int(fusion.flagged.sum()):,} of {counted(tested, 'tested annotator')}"
    draws = len(fusion.statistic)
    if draws > 1:
        words += f", each selected by {100 * fusion.share:g} % of {draws:,} draws of knockoffs or more"
    untested = int((fusion.untested > 1).sum())  # those without comparisons are nobody's business
    if untested:
        words += f"; {untested:,} could not be tested"
    more = int((found.flagged & ~fusion.flagged).sum())
    fewer = int((fusion.flagged & ~found.flagged).sum())
    expert = [f"{many:,} {what}" for many, what in ((more, "more flagged"), (fewer, "cleared")) if many]
    return words + (f". By the expert {' and '.join(expert)}" if expert else "")


def _promise(found: ComparedQuestion) -> str:
    fusion, doubt = found.fusion, not_promised(found.plan, found.fusion)
    wrongly = f"{100 * fusion.rate:g} %"
    if doubt:
        return f"That at most {wrongly} of the flagged are flagged wrongly is not promised: {doubt}"
    words = f"Of those the draws flag, on average at most {wrongly} are flagged wrongly"
    if len(fusion.statistic) > 1:
        words += "; it is proved of a single draw, and simulated crowds show it of many"
    return f"{words}. It is a mean over crowds, and nothing is promised of any one annotator"


def _other_test(found: ComparedQuestion) -> str:
    by_test = found.beside.by_t_test
    both = int((by_test & found.fusion.flagged).sum())
    words = (
        f"the t test with Benjamini-Hochberg at {100 * found.fusion.rate:g} % finds {int(by_test.sum()):,}"
    )
    return words + (f", {both:,} of them flagged too" if by_test.any() else "")


def _explained(found: ComparedQuestion) -> str:
    split = found.beside.consistency
    if not (found.fusion.left.any() or found.fusion.right.any()):
        return "all choices are ties: there is nothing to rank by"
    words = (
        f"{percent(split.ranking)} of the choices; {percent(split.disagreement)} is disagreement about the "
        f"same two items, {percent(split.cyclic)} goes round in circles. Inconsistency "
        f"{share(found.fusion.inconsistency, 2)}"
    )
    if np.isfinite(found.crowd_match):
        words += f". {percent(found.crowd_match)} of all answers agree with the corrected ranking"
    return words


def _charts(found: ComparedQuestion) -> Gallery:
    shown = np.where(found.flagged, found.behaviour, 0).astype(np.int8)
    pictures = [draw_sides(found.pairs, shown)]
    fusion = found.fusion
    if (fusion.path_at > 0).any() and fusion.path.size:
        pictures.append(draw_path(fusion, shown, found.run.algorithm))
    words = ("not flagged", "flagged: one side more often (ugly)", "flagged: one side nearly always (bad)")
    return Gallery(
        "Annotators",
        pictures,
        [Swatch(colour, name) for colour, name in zip(COLOURS, words, strict=True)],
    )
