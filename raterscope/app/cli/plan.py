"""The command `raterscope plan`: cases for an interval's width, and plans of acceptance sampling."""

from __future__ import annotations

import argparse

from raterscope.algorithms.annotators.acceptance import (
    AcceptancePlan,
    SequentialSampling,
    SingleSampling,
    decide,
    sequential_sampling,
    single_sampling,
)
from raterscope.app.errors import InputError, counted
from raterscope.text import percent

_VERDICTS = {
    "accept": "accept",
    "reject": "reject",
    "continue": "go on checking",
}
_ROWS = 12


def plan(options: argparse.Namespace) -> int:
    """Print the number of cases, the plan, or its decision."""
    try:
        print(_cases(options) if options.plan == "cases" else _acceptance(options))
    except ValueError as problem:
        raise InputError(str(problem).rstrip(".")) from problem
    return 0


def _cases(options: argparse.Namespace) -> str:
    from raterscope.algorithms.annotators.sample_size import (
        cases_for_icc,
        cases_for_kappa,
        cases_for_limits,
        cases_for_proportion,
    )

    expected, width = options.expected, options.width
    if options.statistic == "limits":
        cases = cases_for_limits(width)
        return (
            f"{counted(cases, 'case')}: the 95 % interval of each limit of agreement is then at most "
            f"{width:g} standard deviations of the differences wide"
        )
    if expected is None:
        raise InputError(
            f"--expected is missing; the width of an interval of {options.statistic} depends on it"
        )
    if options.statistic == "icc":
        cases = cases_for_icc(expected, width, options.readers)
        words = f"of an ICC of {expected:g} with {options.readers} readers"
    elif options.statistic == "kappa":
        cases = cases_for_kappa(expected, width, options.rates)
        words = f"of a kappa of {expected:g}"
    else:
        cases = cases_for_proportion(expected, width)
        words = f"of a share of {expected:g}"
    return f"{counted(cases, 'case')}: the 95 % interval {words} is then at most {width:g} wide"


def _acceptance(options: argparse.Namespace) -> str:
    risks = {"producer_risk": options.producer_risk, "consumer_risk": options.consumer_risk}
    plan: AcceptancePlan
    if options.sequential:
        if options.lot is not None:
            raise InputError("--lot is for a single plan; a sequential plan supposes a large lot")
        sequential = sequential_sampling(options.acceptable, options.unacceptable, **risks)
        plan, words = sequential, _sequential_in_words(sequential)
    else:
        single = single_sampling(options.acceptable, options.unacceptable, lot=options.lot, **risks)
        plan, words = single, _single_in_words(single)
    if options.checked is None:
        return words
    checked, errors = options.checked
    verdict = decide(plan, checked, errors)
    return f"{counted(checked, 'item')} checked, {counted(errors, 'error')}: {_VERDICTS[verdict]}"


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
