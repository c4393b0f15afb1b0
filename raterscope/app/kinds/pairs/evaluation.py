"""Evaluation of pairs: calibration of the flags, and changes between runs.

Decisions of the expert, which no run holds fixed, measure the rate of false discoveries among the flagged.
The flip test is also repeated on the same comparisons with sides drawn again at random. Then no annotator is
biased, and 5 % of the p values must be below 0.05.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from raterscope.algorithms.annotators.statistics import wilson
from raterscope.algorithms.evaluation import Calibration
from raterscope.algorithms.pairs import PairFusion, Pairs
from raterscope.algorithms.pairs.catalogue import PairPlan
from raterscope.algorithms.pairs.data import PairSettings
from raterscope.algorithms.pairs.ranking import ranks
from raterscope.algorithms.pairs.selection import LEVELS, RedrawnSides, check_redrawn_sides
from raterscope.algorithms.progress import Watch, silent, steps_of
from raterscope.app.assessment import (
    FEW,
    LEVEL,
    MIN_ERROR,
    ComparedItem,
    Differences,
    Trust,
    comparable_in_words,
)
from raterscope.app.errors import plain
from raterscope.app.kinds.pairs.runs import Answered, apply_decisions, plan_of, read_answer
from raterscope.app.review import ReviewState, SampledItem
from raterscope.app.review.tasks import Judged
from raterscope.app.study import RunEntry, Study
from raterscope.app.study.pairs import pairs_of
from raterscope.text import counted, percent

_DRAWS, _MIN_DRAWS = 20, 5
_MAX_COMPARISONS = 1_000_000
"""Maximum number of comparisons of all draws. If the minimum of draws exceeds it, sides are not redrawn."""

_LOOKED_AT = 0.05
"""Level below which the share of p values is reported and tested."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PairsTrust(Trust):
    """Flags compared with decisions, and the flip test on comparisons with redrawn sides."""

    independent: ClassVar[bool] = False

    rate: float  # the false discovery rate of the run
    # confirmed, cleared: number of flagged annotators that the expert confirmed, and cleared
    confirmed: int = 0
    cleared: int = 0
    # accused, draws: number of draws of the sides with a flagged annotator, and of all draws
    accused: int = 0
    draws: int = 0
    spread: float = 0.0  # standard error of the share of p values below 0.05 over the draws
    sides: str = ""  # evidence that sides were not drawn at random; empty without any

    @property
    def share_below(self) -> float:
        """Share of the p values below 0.05 with sides drawn again; NaN without draws."""
        return float(self.calibration.share[LEVELS.index(_LOOKED_AT)]) if self.draws else np.nan

    @property
    def too_many_cleared(self) -> bool:
        """Whether more of the flagged were cleared than the rate allows."""
        judged = self.confirmed + self.cleared
        if judged < FEW or self.cleared / judged <= self.rate + MIN_ERROR:
            return False
        from scipy.special import bdtrc

        return float(bdtrc(self.cleared - 1, judged, self.rate)) < LEVEL

    @property
    def too_many_below(self) -> bool:
        """Whether the p values on unbiased draws are too small."""
        beyond = self.share_below - _LOOKED_AT
        return bool(self.draws and beyond > _LOOKED_AT / 2 and beyond > 4 * self.spread)

    @property
    def contradicted(self) -> bool:
        """Whether decisions, redrawn sides, or sides that were not random contradict the stated rate."""
        return self.too_many_cleared or self.too_many_below or bool(self.sides)

    def in_words(self) -> str:
        """Describe the comparison in a few sentences."""
        sentences = []
        if self.sides:
            sentences.append(
                f"Sides were not drawn at random: {self.sides}. The rate of the flip test is not guaranteed."
            )
        judged = self.confirmed + self.cleared
        if judged:
            low, high = wilson(self.cleared, judged)
            text = (
                f"Of {counted(judged, 'flagged annotator')} that you decided, you cleared {self.cleared:,} "
                f"({percent(self.cleared / judged)}, 95 % interval {percent(low)} to {percent(high)}); the "
                f"rate allows {percent(self.rate)} on average."
            )
            sentences.append(text + ("" if judged >= FEW else " That is too few to judge."))
            if self.too_many_cleared:
                sentences.append("More flags are false than the rate allows.")
        if self.draws:
            sentences.append(
                f"With the sides of these comparisons drawn again {self.draws} times, so that none is "
                f"biased, {percent(self.share_below, 1)} of the p values were below {_LOOKED_AT:g}, and "
                f"annotators were flagged in {self.accused} of {self.draws} draws."
            )
            if self.too_many_below:
                sentences.append("The p values are too small: do not rely on them.")
        if not judged:
            sentences.append("You decided on no flagged annotator.")
        return " ".join([*sentences, *([self.comparable] if self.comparable and not judged else [])])

    def as_dict(self) -> dict[str, object]:
        """Return the figures, ready for JSON; None where nothing was measured."""
        drawn = self.draws > 0
        return {
            "contradicted": self.contradicted,
            "sides_not_random_because": self.sides or None,
            "flagged_then_confirmed": self.confirmed,
            "flagged_then_cleared": self.cleared,
            "redrawn_sides": {
                "draws": self.draws,
                "p_values_below": _LOOKED_AT,
                "share": self.share_below if drawn else None,
                "standard_error": self.spread if drawn else None,
                "draws_with_flags": self.accused if drawn else None,
            },
        }

    def doubt_in_words(self) -> str:
        """Describe the contradictions in a short sentence; empty without any."""
        if self.sides:
            return "The false discovery rate is not guaranteed: sides were not randomised."
        if self.too_many_cleared:
            return f"You cleared more of the flagged than the rate of {percent(self.rate)} allows."
        return "The p values are too small on these comparisons." if self.too_many_below else ""


def trust_in_pairs(study: Study, question: int, watch: Watch = silent) -> PairsTrust | None:
    """Compare the flags of the run shown with later decisions and redrawn sides; None without a run."""
    entry = next((entry for entry in study.pair_questions() if entry.id == question), None)
    answered = None if entry is None else read_answer(study, entry)
    if answered is None:
        return None
    fusion, pairs = answered.fusion, answered.pairs
    watch(0.0, "comparing with your decisions")
    flagged = dict(zip(pairs.annotators, fusion.flagged.tolist(), strict=True))
    judged = study.review_state().judged(question)
    verbs = [task.verb for name, task in judged.items() if flagged.get(name, False)]
    return trust_in_fusion(pairs, fusion, plan_of(answered.run), verbs, watch)


def trust_in_fusion(
    pairs: Pairs, fusion: PairFusion, plan: PairPlan | None, verbs: Sequence[str] = (), watch: Watch = silent
) -> PairsTrust:
    """Compare the flags of a fusion with decisions and redrawn sides.

    `pairs`: input of the fusion. `plan`: plan of the fusion; without it, sides are not drawn again. `verbs`:
    decisions on flagged annotators: "flag" or "clear".
    """
    settings = None if plan is None else plan.settings
    draws = min(_DRAWS, _MAX_COMPARISONS // max(len(pairs), 1))
    redrawn = None
    if fusion.rule == "flip" and isinstance(settings, PairSettings) and draws >= _MIN_DRAWS:
        redrawn = check_redrawn_sides(pairs, settings, draws, watch)
        redrawn = redrawn if redrawn.tested else None
    took_part = np.unique(pairs.annotator)
    return PairsTrust(
        noun="annotator",
        by_truth=False,
        calibration=_calibration(redrawn),
        comparable=comparable_in_words(
            "pairs", len(pairs) / max(len(took_part), 1), ("comparison", "annotator")
        ),
        axes=("p value", "share of annotators below"),
        rate=fusion.rate,
        confirmed=list(verbs).count("flag"),
        cleared=list(verbs).count("clear"),
        accused=0 if redrawn is None else int((redrawn.accused > 0).sum()),
        draws=0 if redrawn is None else len(redrawn.accused),
        spread=0.0 if redrawn is None else _spread(redrawn),
        sides=fusion.sides if fusion.rule == "flip" else "",
    )


def _calibration(redrawn: RedrawnSides | None) -> Calibration:
    if redrawn is None:
        nothing = np.empty(0)
        return Calibration(nothing, nothing, np.empty(0, dtype=np.int64), float("nan"))
    levels, share = np.array(LEVELS), redrawn.below.mean(axis=0)
    count = np.full(len(levels), redrawn.tested * len(redrawn.accused), dtype=np.int64)
    return Calibration(levels, share, count, float(np.abs(share - levels).mean()))


def _spread(redrawn: RedrawnSides) -> float:
    below = redrawn.below[:, LEVELS.index(_LOOKED_AT)]
    return float(np.std(below, ddof=1) / np.sqrt(len(below)))


def compare_runs(at: ComparedItem, differences: Differences) -> None:
    """Compare an item's results in two runs and fill in the differences."""
    names = at.study.annotators()
    old = _flags(at.then, at.study.comparison_set(at.item, at.earlier.imported).annotator_ids)
    new = _flags(at.now, at.study.comparison_set(at.item, at.later.imported).annotator_ids)
    old_state = at.study.review_state(at.earlier.known)
    judged, earlier = at.state.judged(at.item), old_state.judged(at.item)
    differences.disputed_before += _count_flagged(old, names, earlier)
    differences.decided += sum(
        name not in earlier or earlier[name].verb != task.verb for name, task in judged.items()
    )
    differences.disputed_after += _count_flagged(new, names, judged)
    for annotator, (flag, bias) in new.items():
        if annotator in old and old[annotator][0] != flag and names[annotator] not in judged:
            if names[annotator] in at.later.excluded:
                text = f"excluded, was flagged: {plain(names[annotator])} (bias {old[annotator][1]:+.2f})"
                differences.changes.append(at.change(text, abs(old[annotator][1]), name=names[annotator]))
                continue
            state = "flagged now" if flag else "not flagged any more"
            biases = f"{old[annotator][1]:+.2f} \N{RIGHTWARDS ARROW} {bias:+.2f}"
            text = f"{state}: {plain(names[annotator])} (bias {biases})"
            differences.changes.append(at.change(text, abs(np.nan_to_num(bias)), name=names[annotator]))
    before, after = _decided(at, at.earlier, at.then), _decided(at, at.later, at.now)
    if len(before.corrected) == len(after.corrected):
        moved = ranks(before.corrected, before.component) != ranks(after.corrected, after.component)
        differences.ranks += int((moved & (before.component >= 0)).sum())


def _decided(at: ComparedItem, run: RunEntry, fusion: PairFusion) -> PairFusion:
    """Apply the expert's decisions to a run's result, as the workspace does."""
    if not at.state.judged(at.item):
        return fusion
    question = next(entry for entry in at.study.pair_questions() if entry.id == at.item)
    return apply_decisions(at.study, Answered(question, run, fusion, pairs_of(at.study, at.item, run)))


def _flags(fusion: Any, annotators: np.ndarray) -> dict[int, tuple[bool, float]]:
    flags = zip(annotators.tolist(), fusion.flagged.tolist(), fusion.bias.tolist(), strict=False)
    return {annotator: (flag, bias) for annotator, flag, bias in flags}


def _count_flagged(
    flags: Mapping[int, tuple[bool, float]], names: Sequence[str], judged: Mapping[str, Judged]
) -> int:
    """Count the flagged annotators with the expert's decisions applied."""
    return sum(
        judged[names[annotator]].verb == "flag" if names[annotator] in judged else flag
        for annotator, (flag, _) in flags.items()
    )


def undecided_annotators(study: Study, state: ReviewState, watch: Watch = silent) -> list[SampledItem]:
    """List the tested annotators of the runs shown that the expert neither flagged nor cleared."""
    listed = []
    for question, step in steps_of(watch, study.pair_questions()):
        step(0.0, "listing annotators")
        answered = read_answer(study, question)
        if answered is None:
            continue
        names, judged = answered.pairs.annotators, state.judged(question.id)
        tested = np.isfinite(answered.fusion.p_value)
        tested |= not tested.any()  # without a flip test
        listed += [
            SampledItem(
                item=question.id, name=names[at], run=answered.run.id,
                answer="flag" if answered.fusion.flagged[at] else "clear",
            )
            for at in np.unique(answered.pairs.annotator).tolist()
            if tested[at] and names[at] not in judged
        ]  # fmt: skip
    return listed
