"""The command `raterscope plan`: cases for an interval's width, plans and samples of acceptance sampling."""

from __future__ import annotations

import argparse

from raterscope.algorithms.annotators.acceptance import AcceptanceSettings, decide, make_plan
from raterscope.algorithms.settings import SettingsError
from raterscope.app.annotators.acceptance import draw_sample, list_undecided, plan_in_words
from raterscope.app.errors import InputError, plain
from raterscope.app.kinds.registry import KINDS
from raterscope.app.review import NO_SAMPLE, SampleSubject, fold, read_last_samples
from raterscope.app.study import Study
from raterscope.text import counted

_VERDICTS = {
    "accept": "accept",
    "reject": "reject",
    "continue": "go on checking",
}


def plan(options: argparse.Namespace) -> int:
    """Print the number of cases, the plan or its decision; draw a sample, or print how far it was re-read."""
    try:
        print(_WORK[options.plan](options))
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
    if options.sequential and options.lot is not None:
        raise InputError("--lot is for a single plan; a sequential plan supposes a large lot")
    plan = make_plan(_settings(options), options.lot)
    if options.checked is None:
        return plan_in_words(plan)
    checked, errors = options.checked
    verdict = decide(plan, checked, errors)
    return f"{counted(checked, 'item')} checked, {counted(errors, 'error')}: {_VERDICTS[verdict]}"


def _settings(options: argparse.Namespace) -> AcceptanceSettings:
    names = (spec.name for spec in AcceptanceSettings.specs())
    try:
        return AcceptanceSettings(
            **{name: getattr(options, name) for name in names if hasattr(options, name)}
        )
    except SettingsError as error:
        option = f"--{error.name.replace('_', '-')}"
        raise InputError(error.about(option).rstrip(".")) from error


def _sample(options: argparse.Namespace) -> str:
    with Study.open(options.study) as study:
        kinds = [kind.name for kind in KINDS.values() if kind.items(study)]
        kind = options.kind or (kinds[0] if len(kinds) == 1 else None)
        if kind is None:
            raise InputError(f"--kind is missing; the study holds {' and '.join(kinds) or 'nothing'}")
        decision = study.record(draw_sample(kind, list_undecided(kind, study), _settings(options)))
        subject = decision.subject
        assert isinstance(subject, SampleSubject)
        names = study.names()
        items = (f"{names[kind, item.item]}: {item.in_words()}" for item in subject.items)
        return "\n".join([f"{subject.in_words(decision.verb).capitalize()}.", *map(plain, items)])


def _progress(options: argparse.Namespace) -> str:
    with Study.open(options.study, to_read=True) as study:
        samples = read_last_samples(fold(study.decisions()))
    if not samples:
        raise InputError(NO_SAMPLE, file=options.study)
    return "\n".join(sample.in_words() for sample in samples)


_WORK = {"cases": _cases, "acceptance": _acceptance, "sample": _sample, "progress": _progress}
