"""Acceptance sampling of a study: the sample that an expert re-reads, and descriptions of plans."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raterscope.algorithms.annotators.acceptance import (
    AcceptanceSettings,
    SequentialSampling,
    SingleSampling,
    make_plan,
)
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError
from raterscope.app.kinds.registry import KINDS
from raterscope.app.review import Decision, SampledItem, SampleSubject
from raterscope.app.study import Study
from raterscope.text import counted, percent

_ROWS = 12


def list_undecided(kind: str, study: Study, watch: Watch = silent) -> Sequence[SampledItem]:
    """List the answers of the runs shown that the expert has not decided.

    Raises `InputError` where there are none.
    """
    listed = KINDS[kind].functions.undecided(study, study.review_state(), watch)
    if not listed:
        answers = f"{KINDS[kind].nouns.detail}s"
        raise InputError(
            f"has no undecided {answers} of a run to draw a sample from; fuse {kind} first", file=study.path
        )
    return listed


def draw_sample(kind: str, listed: Sequence[SampledItem], settings: AcceptanceSettings) -> Decision:
    """Draw a seeded sample of answers, and return the decision that records sample and plan.

    Raises `ValueError` if no plan for this number of answers keeps both risks.
    """
    plan = make_plan(settings, len(listed))
    order = np.random.default_rng(settings.seed).permutation(len(listed))[: plan.most]
    subject = SampleSubject(
        of=kind, items=tuple(listed[at] for at in order.tolist()), total=len(listed), seed=settings.seed,
        single=plan if isinstance(plan, SingleSampling) else None,
        sequential=plan if isinstance(plan, SequentialSampling) else None,
    )  # fmt: skip
    return Decision(verb="sample", subject=subject)


def plan_in_words(plan: SingleSampling | SequentialSampling) -> str:
    """Describe a plan and its risks, one per line."""
    return _single_in_words(plan) if isinstance(plan, SingleSampling) else _sequential_in_words(plan)


def _single_in_words(plan: SingleSampling) -> str:
    lot = "" if plan.lot is None else f" of {plan.lot:,}"
    return (
        f"Re-read {plan.size:,}{lot}, accept with at most {counted(plan.accept, 'error')}.\n"
        + _risks(plan, 1 - plan.accepted(plan.acceptable), plan.accepted(plan.unacceptable))
    )  # fmt: skip


def _sequential_in_words(plan: SequentialSampling) -> str:
    lines = [
        "Re-read one by one, and decide after each:",
        "items  accept with  reject with",
    ]
    shown = 0
    before = None
    for checked in range(1, plan.most + 1):
        accept, reject = plan.limits(checked)
        if (accept, reject) != before and (accept >= 0 or before is None) and shown < _ROWS:
            lines.append(f"{checked:5d}  {accept if accept >= 0 else '-':>11}  {reject:>11}")
            shown += 1
            before = accept, reject
    accept, reject = plan.limits(plan.most)
    lines.append(f"{plan.most:5d}  {accept:>11}  {reject:>11}  (the last)")
    items = (f"{plan.expected_items(share):.0f} at {percent(share, 1)}"
             for share in (plan.acceptable, plan.unacceptable))  # fmt: skip
    lines.append(f"Items until the decision, on average: {' and '.join(items)} of errors.")
    accepted = plan.accepted
    return "\n".join([*lines, _risks(plan, 1 - accepted(plan.acceptable), accepted(plan.unacceptable))])


def _risks(plan: SingleSampling | SequentialSampling, producer: float, consumer: float) -> str:
    return (
        f"At {percent(plan.acceptable, 1)} of errors it is rejected in {percent(producer, 1)} of cases, at "
        f"{percent(plan.unacceptable, 1)} of errors accepted in {percent(consumer, 1)}."
    )
