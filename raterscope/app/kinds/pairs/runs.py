"""Fusion runs over questions of pairs, and their answers.

An answer contains the run shown, the decisions, and for comparison other methods and the ground truth.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.pairs import PairFusion, Pairs
from raterscope.algorithms.pairs.catalogue import PairPlan, fuse
from raterscope.algorithms.pairs.data import BEHAVIOURS, BoolArray, FloatArray, IndexArray, PairsError
from raterscope.algorithms.pairs.evidence import behaviours, match_ratio
from raterscope.algorithms.pairs.ranking import bradley_terry, scores
from raterscope.algorithms.pairs.ranking_agreement import (
    Consistency,
    RankingAgreement,
    TrueRanking,
    compare_rankings,
    consistency,
)
from raterscope.algorithms.pairs.selection import t_test_flags
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app import outcome
from raterscope.app.outcome import Outcome, finite_or_none
from raterscope.app.review import ReviewState, current_names
from raterscope.app.study import RunEntry, Study
from raterscope.app.study.arrays import Fingerprint
from raterscope.app.study.pairs import pairs_of
from raterscope.app.study.records import PairQuestion

Inputs = outcome.Inputs[Pairs]
Answer = outcome.Answer[PairPlan, Inputs, PairFusion]


def gather(questions: Sequence[int], study: Study, watch: Watch = silent) -> Inputs:
    """Read the comparisons for questions of a study, in the given order; empty questions are skipped."""
    annotators = study.annotators()

    def read(number: int, state: ReviewState) -> Pairs | None:
        pairs = study.comparison_set(number).pairs(annotators)
        pairs = pairs.joined(current_names(pairs.annotators, state.aliases))
        pairs = pairs.without(state.excluded).with_weights(state.weights)
        return pairs if len(pairs) else None

    all_names = {question.id: question.name for question in study.pair_questions()}
    names = {number: all_names[number] for number in questions}
    inputs = outcome.gather(names, study, read, watch, text="reading the comparisons of")
    if not inputs.given:
        raise PairsError("There are no comparisons to fuse here.")
    return inputs


def fuse_inputs(inputs: Inputs, plan: PairPlan, watch: Watch = silent) -> Answer:
    """Fuse the questions one after the other; if one fails, the others are kept."""
    return outcome.one_by_one(inputs, plan, fuse, watch)


def keep(answer: Answer, study: Study, watch: Watch = silent) -> int:
    """Store a run without the questions that failed; return its number."""
    digest = digest_of(answer.inputs.given)
    return outcome.keep_questions(answer, study, watch, kind="pairs", digest=digest, record=question_record)


def question_record(ended: Outcome[PairFusion], pairs: Pairs) -> dict[str, Any]:
    """Describe the fusion of a question, ready for JSON."""
    record: dict[str, Any] = {"question": ended.item, "seconds": round(ended.seconds, 4)}
    if ended.fusion is None:
        return record | {"problem": ended.problem}
    fusion = ended.fusion
    left, right = int(fusion.left.sum()), int(fusion.right.sum())
    behaviour = np.bincount(fusion.behaviour[fusion.flagged], minlength=len(BEHAVIOURS))
    return record | {
        "comparisons": len(pairs),
        "annotators": len(np.unique(pairs.annotator)),
        "items": int((fusion.component >= 0).sum()),
        "components": int(fusion.component.max(initial=-1)) + 1,
        "tested": int((fusion.untested == 0).sum()),
        "flagged": int(fusion.flagged.sum()),
        "rule": fusion.rule,
        "crowd_p_value": finite_or_none(fusion.crowd_p) if fusion.rule == "flip" else None,
        "not_decidable": None if fusion.decidable is None else _undecidable(fusion),
        "behaviours": {
            name: int(behaviour[at]) for at, name in enumerate(BEHAVIOURS) if name in ("ugly", "bad")
        },
        "iterations": len(fusion.path_at),
        "objective": finite_or_none(fusion.variance * fusion.freedom),
        "objective_is": "sum of squares that scores and biases leave",
        "noise_variance": finite_or_none(fusion.variance),
        "degrees_of_freedom": fusion.freedom,
        "share_of_left": left / (left + right) if left + right else None,
        "inconsistency": finite_or_none(fusion.inconsistency),
        "notices": list(fusion.notices),
    }


def _undecidable(fusion: PairFusion) -> int:
    """Count the tested annotators who are neither flagged nor shown to be unbiased."""
    assert fusion.decidable is not None
    return int(((fusion.untested == 0) & ~fusion.flagged & ~fusion.decidable).sum())


def digest_of(questions: Mapping[str, Pairs]) -> str:
    """Compute the SHA-256 of the comparisons of questions."""
    fingerprint = Fingerprint()
    for name, pairs in sorted(questions.items()):
        fingerprint.texts(name, *pairs.annotators, "", *pairs.items)
        fingerprint.arrays(pairs.annotator, pairs.left, pairs.right, pairs.choice, pairs.time)
        if pairs.weights is not None:
            fingerprint.arrays(pairs.weights)
    return str(fingerprint)


@dataclass(frozen=True, eq=False)
class Answered:
    """A question with the answer shown."""

    question: PairQuestion
    run: RunEntry
    fusion: PairFusion  # unchanged result of the run
    pairs: Pairs  # input of the run, with the choices as given


def read_answer(study: Study, question: PairQuestion) -> Answered | None:
    """Read the answer shown to a question; None without one."""
    result = study.shown.result(question.id, "pairs")
    if result is None:
        return None
    run, fusion = result
    return Answered(question, run, fusion, pairs_of(study, question.id, run))


plan_of = partial(outcome.read_plan, PairPlan.from_dict)


def apply_decisions(study: Study, answered: Answered, watch: Watch = silent) -> PairFusion:
    """Apply the expert's decisions to the flags, and rank the items again.

    Biases, statistics and the path remain those of the run.
    """
    fusion, pairs = answered.fusion, answered.pairs
    verbs = {
        name: judgement.verb for name, judgement in study.review_state().judged(answered.question.id).items()
    }
    flagged = _flagged(pairs, fusion, verbs)
    if np.array_equal(flagged, fusion.flagged):
        return fusion
    plan = plan_of(answered.run)
    if plan is not None and not plan.settings.as_dict()["graded"]:
        pairs = replace(pairs, choice=np.sign(pairs.choice))
    corrected = scores(pairs, flagged, watch)
    return replace(
        fusion,
        flagged=flagged,
        behaviour=behaviours_after(pairs, fusion, flagged),
        match=match_ratio(pairs, corrected.score),
        corrected=corrected.score,
        corrected_low=corrected.low,
        corrected_high=corrected.high,
        rank_low=corrected.rank_low,
        rank_high=corrected.rank_high,
    )


def behaviours_after(pairs: Pairs, fusion: PairFusion, flagged: BoolArray) -> NDArray[np.int8]:
    """Classify annotators after decisions, (p,): flagged ones that the expert cleared are unbiased."""
    unbiased = None if fusion.decidable is None else fusion.decidable | fusion.flagged
    return behaviours(pairs, flagged, unbiased)


def _flagged(pairs: Pairs, fusion: PairFusion, verbs: Mapping[str, str]) -> BoolArray:
    flagged = fusion.flagged.copy()
    took_part = np.bincount(pairs.annotator, minlength=len(flagged)) > 0  # the others are ignored
    for at, name in enumerate(pairs.annotators if verbs else ()):
        if name in verbs:
            flagged[at] = verbs[name] == "flag" and took_part[at]
    return flagged


_CHEAP = 200_000
"""Maximum number of comparisons to fit the Bradley-Terry model too, the slowest method."""

_HALF = 0.5


@dataclass(frozen=True, eq=False)
class OtherResults:
    """Results of other methods, for comparison with a fusion."""

    by_t_test: BoolArray  # (p,): annotators that the t test flags by Benjamini-Hochberg at the same rate
    consistency: Consistency  # share of the choices that a ranking explains
    # correlation of the scores, before biases are removed, with the log odds of the Bradley-Terry model; NaN
    # if the model was not fitted
    bradley_terry: float

    def as_dict(self) -> dict[str, Any]:
        """Return the figures, ready for JSON."""
        consistency = self.consistency
        figures = {
            "explained_by_ranking": consistency.ranking, "disagreement": consistency.disagreement,
            "cyclic": consistency.cyclic, "curl": consistency.curl, "harmonic": consistency.harmonic,
            "bradley_terry_correlation": self.bradley_terry,
        }  # fmt: skip
        finite_figures = {name: value if math.isfinite(value) else None for name, value in figures.items()}
        return {"t_test": int(self.by_t_test.sum()), **finite_figures}


def run_other_methods(
    pairs: Pairs, plan: PairPlan, fusion: PairFusion, watch: Watch = silent
) -> OtherResults:
    """Run the other methods on the comparisons that were fused."""
    if not getattr(plan.settings, "graded", True):
        pairs = replace(pairs, choice=np.sign(pairs.choice))
    split = consistency(pairs, fusion.component, fusion.score, part(watch, 0.0, 0.5))
    like = float("nan")
    if len(pairs) <= _CHEAP:
        odds = bradley_terry(pairs, part(watch, 0.5, 1.0))
        # the model ignores grades
        sided = fusion.score
        if (np.abs(pairs.choice) > 1).any():
            sided = scores(replace(pairs, choice=np.sign(pairs.choice))).score
        is_defined = np.isfinite(odds) & np.isfinite(sided)
        size = math.sqrt(
            float(odds[is_defined] @ odds[is_defined]) * float(sided[is_defined] @ sided[is_defined])
        )
        like = float(odds[is_defined] @ sided[is_defined]) / size if size else like
    return OtherResults(t_test_flags(fusion), split, like)


def is_t_test_defined(fusion: PairFusion) -> bool:
    """Return whether the choices contain noise that scores and biases do not explain."""
    return fusion.t_test is None or bool(np.isfinite(fusion.t_test).any())


def t_test_in_words(fusion: PairFusion, by_t_test: BoolArray) -> str:
    """Describe the annotators flagged by the t test, for comparison with the run's rule."""
    text = f"the t test with Benjamini-Hochberg at {100 * fusion.rate:g} %"
    if not is_t_test_defined(fusion):
        return f"{text} is not defined: scores and biases explain every choice"
    found, both = int(by_t_test.sum()), int((by_t_test & fusion.flagged).sum())
    return f"{text} finds {found or 'none'}" + (f", {both or 'none'} of them flagged too" if found else "")


def why_not_guaranteed(plan: PairPlan, fusion: PairFusion) -> str:
    """Return why a fusion's rate of false discoveries is not guaranteed; empty if it is.

    It is proved for knockoff+ in a single draw. Simulated crowds confirm the rate if half of the draws or
    more must select an annotator, and for the flip test if sides are drawn at random.
    """
    if fusion.rule != "knockoffs":
        return f"sides were not drawn at random, {fusion.sides}" if fusion.sides else ""
    settings = plan.settings.as_dict()
    tested = int((fusion.untested == 0).sum())
    if not settings["plus"]:
        return "the plain knockoff keeps the rate only approximately"
    if not settings["local"]:
        return (
            "knockoffs assume equally noisy annotators; otherwise more flags are false: 13 % at a "
            "rate of 10 % in the simulated study where good annotators err in 40 % of answers"
        )
    if settings["draws"] > 1 and settings["share"] < _HALF:
        return (
            f"annotators need to be selected by only {100 * fusion.share:g} % of the draws, not by half "
            "of them"
        )
    if fusion.freedom < tested:
        return f"there are only {fusion.freedom:,} degrees of freedom for {tested:,} annotators"
    return ""


@dataclass(frozen=True)
class RankingAgreements:
    """Agreement of the original and the corrected ranking with the ground truth."""

    original: RankingAgreement
    corrected: RankingAgreement

    def as_dict(self) -> dict[str, Any]:
        """Return the figures, ready for JSON."""
        return {
            name: {
                "items": ranking.items, "agreeing": ranking.agreeing, "opposed": ranking.opposed,
                "kendall_tau": ranking.tau if math.isfinite(ranking.tau) else None,
                "best_found": {str(k): share for k, share in ranking.best},
            }
            for name, ranking in (("original", self.original), ("corrected", self.corrected))
        }  # fmt: skip

    def in_words(self) -> str:
        """Return both values of Kendall's tau as a sentence without its full stop."""
        if not math.isfinite(self.original.tau):
            return "the ground-truth ranking orders no two items that comparisons link"
        return (
            f"Kendall's tau with the ground-truth ranking is {self.corrected.tau:.3f}, "
            f"{self.original.tau:.3f} before biases are removed ({self.corrected.items:,} items)"
        )


def compare_with_truth(
    original: FloatArray, corrected: FloatArray, component: IndexArray, truth: TrueRanking
) -> RankingAgreements:
    """Compare both rankings of n items with the ground truth."""
    original_agreement, corrected_agreement = (
        compare_rankings(score, component, truth) for score in (original, corrected)
    )
    return RankingAgreements(original_agreement, corrected_agreement)
