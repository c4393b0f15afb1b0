"""A run over the questions of a study: votes read, fused, annotators grouped, and all kept whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from raterscope.algorithms.labels.assessment import advice, assess
from raterscope.algorithms.labels.data import OPEN, ClassArray, LabelFusion, Labels, LabelsError
from raterscope.algorithms.labels.fusion import LabelPlan, fuse
from raterscope.algorithms.labels.rates import Rates, rates_of
from raterscope.algorithms.labels.result import LabelResult
from raterscope.algorithms.labels.tempering import Tempering, choose_tempering, is_modelled
from raterscope.algorithms.labels.voting import majority
from raterscope.algorithms.progress import Watch, silent
from raterscope.app import outcome, running
from raterscope.app.outcome import Outcome, finite_or_none
from raterscope.app.review import ReviewState
from raterscope.app.study import Study
from raterscope.app.study.digests import Fingerprint
from raterscope.app.study.labels import decided_classes, excluded_votes


@dataclass(frozen=True, eq=False)
class Question:
    """What is fused: votes and imported truths.

    Attributes
    ----------
    labels : Labels
        The expert's decisions held fixed.
    truth : (N,) int16
    excluded : Labels or None
        Votes of excluded annotators, which are not fused; tasks and annotators numbered as in `labels`.
    """

    labels: Labels
    truth: ClassArray
    excluded: Labels | None = None


Inputs = outcome.Inputs[Question]
Draft = outcome.Draft[LabelFusion]
Answer = outcome.Answer[LabelPlan, Inputs, LabelResult]


def gather(questions: Sequence[int], study: Study, watch: Watch = silent) -> Inputs:
    """Read the votes on questions of a study, in this order; those without any are left out."""
    people = study.annotators()

    def read(number: int, state: ReviewState) -> Question | None:
        crowd = study.vote_set(number)
        labels = crowd.labels(people, decided_classes(crowd, state, number)).without(state.excluded)
        left_out = excluded_votes(study, number, tuple(state.excluded))
        return Question(labels, crowd.truth, left_out) if len(labels) else None

    names = {number: study.question(number).name for number in questions}
    inputs = running.gather(names, study, read, watch, words="reading the votes on")
    if not inputs.given:
        raise LabelsError("There are no votes to fuse here.")
    return inputs


def fuse_inputs(inputs: Inputs, plan: LabelPlan, watch: Watch = silent) -> Answer:
    """Fuse one question after the other; none is lost because another fails."""
    return outcome.one_by_one(inputs, plan, _fuse, watch)


def _fuse(question: Question, plan: LabelPlan, watch: Watch) -> LabelResult:
    return fuse(question.labels, plan, question.truth, watch)


def keep(answer: Answer, study: Study, watch: Watch = silent) -> int:
    """Store a run whole, without the questions that failed; gives its number."""
    plan, given = answer.plan, answer.inputs.given
    return running.keep(
        answer,
        study,
        watch,
        kind="labels",
        algorithm=plan.algorithm,
        seed=plan.settings.as_dict().get("seed"),
        digest=digest_of(given),
        log={"questions": [question_record(one, given[name]) for name, one in answer.outcomes.items()]},
    )


def question_record(ended: Outcome[LabelResult], question: Question) -> dict[str, Any]:
    """Say how the fusion of a question went, ready for JSON."""
    record: dict[str, Any] = {"question": ended.item, "seconds": round(ended.seconds, 4)}
    if ended.fusion is None:
        return record | {"problem": ended.problem}
    fusion, labels = ended.fusion.fusion, question.labels
    trace = fusion.trace
    groups = ended.fusion.communities
    record |= {
        "tasks": len(labels.tasks),
        "annotators": int((labels.votes_of_annotators() > 0).sum()),
        "votes": int(fusion.votes.sum()),
        "held_fixed": int((fusion.known != OPEN).sum()),
        "iterations": len(trace.change),
        "converged": trace.converged,
        "last_change": finite_or_none(trace.change[-1]) if len(trace.change) else None,
        "objective": finite_or_none(trace.objective[-1]) if len(trace.objective) else None,
        "objective_is": trace.name,
        "each_vote_counts": fusion.power,
        "truths": ended.fusion.truths,
        "communities": None if groups is None else groups.count,
    }
    truths = measured(ended.fusion, question.truth)
    judged = assess(fusion.posterior, truths, fusion.classes)
    vote = None
    if judged is not None:
        vote = assess(majority(replace(labels, known=None)).posterior, truths, fusion.classes)
    rates = None if question.excluded is not None else rates_for(question, ended.fusion)
    advised = advice(labels, fusion, judged, vote, tempering_for(labels, fusion), rates)
    said = (*fusion.notices, *(() if groups is None else groups.notices), *advised)
    record["notices"] = list(dict.fromkeys(said))
    if judged is not None:
        record |= {
            "accuracy": judged.accuracy, "auc": finite_or_none(judged.area), "log_loss": judged.log_loss,
            "calibration_error": finite_or_none(judged.calibration.error), "judged": judged.judged,
        }  # fmt: skip
    return record


_TEMPERINGS: WeakKeyDictionary[LabelFusion, Tempering] = WeakKeyDictionary()
_RATES: WeakKeyDictionary[LabelFusion, Rates] = WeakKeyDictionary()
"""Kept as long as the fusion is: the files, the summary and the notices need both."""


def tempering_for(labels: Labels, fusion: LabelFusion) -> Tempering | None:
    """Choose the weight of a vote for a model in which each counts in full; None for other methods."""
    if fusion.power < 1.0 or not is_modelled(fusion):
        return None
    if fusion not in _TEMPERINGS:
        _TEMPERINGS[fusion] = choose_tempering(labels, fusion)
    return _TEMPERINGS[fusion]


def rates_for(question: Question, result: LabelResult) -> Rates:
    """Return the annotators' rates, those of excluded ones by the others' answer."""
    if question.excluded is not None:
        return rates_of(question.labels, result.fusion, question.excluded)
    if result.fusion not in _RATES:
        _RATES[result.fusion] = rates_of(question.labels, result.fusion)
    return _RATES[result.fusion]


def measured(result: LabelResult, truth: ClassArray) -> ClassArray:
    """Give the truths that a result may be measured against: those that it was not told."""
    return np.where(result.fusion.known == OPEN, truth, OPEN).astype(np.int16)


def digest_of(questions: Mapping[str, Question]) -> str:
    """Compute the SHA-256 of the votes on some questions, with what was held fixed and known."""
    found = Fingerprint()
    for name, question in sorted(questions.items()):
        labels = question.labels
        found.texts(name, *labels.outputs, *labels.classes, *labels.tasks, *labels.annotators)
        found.arrays(
            labels.task, labels.annotator, labels.label, labels.meaning, labels.time, labels.known,
            labels.prior, question.truth,
        )  # fmt: skip
    return str(found)
