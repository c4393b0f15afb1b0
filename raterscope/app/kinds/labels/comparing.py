"""Several methods on one question, side by side against its truths, and what is to be made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from raterscope.algorithms.labels.assessment import Assessment, advice, assess
from raterscope.algorithms.labels.catalogue import LABELLERS
from raterscope.algorithms.labels.fusion import LabelPlan, fuse
from raterscope.algorithms.labels.result import LabelResult
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.kinds.labels.running import Question, measured, tempering_for
from raterscope.app.outcome import attempt

__all__ = ["VOTE", "advice_on", "assessed", "judgements"]

VOTE = "majority"
"""What models are held against."""


def judgements(
    question: Question,
    plan: LabelPlan,
    result: LabelResult,
    *,
    texts: Mapping[str, str] | None = None,
    every: bool = False,
    watch: Watch = silent,
) -> tuple[dict[str, Assessment], list[str]]:
    """Judge a result by the truths that were kept from it, the vote beside it.

    Parameters
    ----------
    question : Question
    plan : LabelPlan
        The result's.
    result : LabelResult
    texts : mapping of setting to text, optional
        What was set; the other methods take of it what they have too.
    every : bool
        Judge all methods.
    watch : Watch

    Returns
    -------
    dict of method to Assessment
        The result's first, the vote second; empty where there is nothing to judge by.
    list of str
        Which methods failed and why.
    """
    own = assessed(result, question)
    if own is None:
        return {}, []
    found, said = {plan.algorithm: own}, []
    others = [VOTE, *(LABELLERS if every else ())]
    others = [name for name in dict.fromkeys(others) if name != plan.algorithm]
    for done, name in enumerate(others):
        known = {spec.name for spec in LABELLERS[name].settings.specs()}
        shared = {field: text for field, text in (texts or {}).items() if field in known}
        other = replace(LabelPlan.make(name, shared), about=replace(plan.about, communities="no"))
        step = part(watch, done / len(others), (done + 1) / len(others), f"{name}: ")
        judged, problem, _ = attempt(partial(_judge, question, other, step))
        if judged is not None:
            found[name] = judged
        elif problem:
            said.append(f"{name} could not be compared: {problem}")
    return found, said


def assessed(result: LabelResult, question: Question) -> Assessment | None:
    """Judge a result by the truths that were kept from it; None where there are none."""
    return assess(result.fusion.posterior, measured(result, question.truth), result.fusion.classes)


def advice_on(
    question: Question, result: LabelResult, judged: Mapping[str, Assessment], method: str
) -> tuple[str, ...]:
    """Say what speaks against trusting a result; see `advice`."""
    labels, fusion = question.labels, result.fusion
    return advice(labels, fusion, judged.get(method), judged.get(VOTE), tempering_for(labels, fusion))


def _judge(question: Question, plan: LabelPlan, watch: Watch) -> Assessment | None:
    return assessed(fuse(question.labels, plan, question.truth, watch), question)
