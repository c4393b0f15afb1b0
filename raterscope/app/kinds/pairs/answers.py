"""What the run shown says of a question of pairs, and what the expert made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from raterscope.algorithms.pairs import PairFusion, Pairs
from raterscope.algorithms.pairs.data import BoolArray
from raterscope.algorithms.pairs.evidence import behaviours, match
from raterscope.algorithms.pairs.fusion import PairPlan
from raterscope.algorithms.pairs.ranking import scores
from raterscope.algorithms.progress import Watch, silent
from raterscope.algorithms.settings import SettingsError
from raterscope.app.review import fold
from raterscope.app.study import RunEntry, Study
from raterscope.app.study.pairs import pairs_of
from raterscope.app.study.records import PairQuestion

__all__ = ["Answered", "decided", "plan_of", "read_answer"]


@dataclass(frozen=True, eq=False)
class Answered:
    """A question with the answer shown.

    Attributes
    ----------
    question : PairQuestion
    run : RunEntry
    fusion : PairFusion
        As the run left it.
    pairs : Pairs
        What went into the run, of choices as they were given.
    """

    question: PairQuestion
    run: RunEntry
    fusion: PairFusion
    pairs: Pairs


def read_answer(study: Study, question: PairQuestion) -> Answered | None:
    """Read the answer shown to a question; None before there is one."""
    shown = study.shown.result(question.id, "pairs")
    if shown is None:
        return None
    run, fusion = shown
    return Answered(question, run, fusion, pairs_of(study, question.id, run))


def plan_of(run: RunEntry) -> PairPlan | None:
    """Give the plan of a run; None for one of another version that cannot be understood."""
    try:
        return PairPlan.from_dict(run.settings)
    except SettingsError:
        return None


def decided(study: Study, answered: Answered, watch: Watch = silent) -> PairFusion:
    """Let the expert's decisions have the last word on who is flagged, and rank the items anew by that.

    Biases, statistics and the path stay as the run left them.
    """
    fusion, pairs = answered.fusion, answered.pairs
    verbs = {name: one.verb for name, one in fold(study.decisions()).judged(answered.question.id).items()}
    flagged = _flagged(pairs, fusion, verbs)
    if np.array_equal(flagged, fusion.flagged):
        return fusion
    plan = plan_of(answered.run)
    if plan is not None and not plan.settings.as_dict()["graded"]:
        pairs = replace(pairs, choice=np.sign(pairs.choice))
    after = scores(pairs, flagged, watch)
    return replace(
        fusion,
        flagged=flagged,
        behaviour=behaviours(pairs, flagged, fusion.decidable),
        match=match(pairs, after.score),
        corrected=after.score,
        corrected_low=after.low,
        corrected_high=after.high,
    )


def _flagged(pairs: Pairs, fusion: PairFusion, verbs: Mapping[str, str]) -> BoolArray:
    flagged = fusion.flagged.copy()
    took_part = np.bincount(pairs.annotator, minlength=len(flagged)) > 0  # the others are set aside
    for at, name in enumerate(pairs.annotators if verbs else ()):
        if name in verbs:
            flagged[at] = verbs[name] == "flag" and took_part[at]
    return flagged
