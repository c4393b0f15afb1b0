"""Commands `reader-study` and `plan`."""

from __future__ import annotations

import argparse
import sys

from raterscope.algorithms.annotators.acceptance import AcceptanceSettings, make_plan
from raterscope.algorithms.annotators.acceptance import decide as decide_lot
from raterscope.app.annotators.acceptance import draw_sample, list_undecided, plan_in_words
from raterscope.app.command_line.arguments import entered
from raterscope.app.command_line.output import ProgressLine, one_line
from raterscope.app.errors import InputError, plain
from raterscope.app.kinds.registry import KINDS
from raterscope.app.review import NO_SAMPLE, SampleSubject, read_last_samples
from raterscope.app.study import Study
from raterscope.text import counted


def reader_study(options: argparse.Namespace) -> int:
    """Set up or collect a reader study."""
    return _new(options) if options.step == "new" else _collect(options)


def _new(options: argparse.Namespace) -> int:
    from raterscope.app.reader_studies.protocol import read_protocol
    from raterscope.app.reader_studies.set_up import set_up

    protocol = read_protocol(options.protocol)
    with ProgressLine(sys.stderr) as watch:
        made = set_up(protocol, options.protocol, options.output, watch)
    print(f"{counted(made.cases, 'case')}, {counted(made.reads, 'read')} by each reader")
    for path in made.files:
        print(path)
    print(f"{made.coordinator} has the key of the pseudonyms; do not pass it on to readers")
    return 0


def _collect(options: argparse.Namespace) -> int:
    from raterscope.app.reader_studies.collecting import collect

    reason = options.unblind
    if reason is not None and not reason.strip():
        raise InputError("--unblind is empty; expected the reason, which is stored in the study.")
    with ProgressLine(sys.stderr) as watch:
        collected = collect(options.files, options.output, watch, unblind=(reason or "").strip())
    for reader, read, cases in collected.added:
        print(f"{plain(reader)}, read {read}: {counted(cases, 'case')} added")
    if not collected.added:
        print("nothing new")
    for progress in collected.state.unfinished:
        print(f"not finished: {one_line(progress.in_words())}")
    if collected.state.is_blinded:
        print("the study stays closed until every reader has finished (--unblind REASON opens it)")
    print(options.output)
    for problem in collected.problems:
        print(f"raterscope: {one_line(problem)}", file=sys.stderr)
    return 1 if collected.problems else 0


_VERDICTS = {
    "accept": "accept",
    "reject": "reject",
    "continue": "go on checking",
}


def plan(options: argparse.Namespace) -> int:
    """Print the number of cases, a plan or its decision; draw a sample, or print its progress."""
    try:
        print(_WORK[options.plan](options))
    except ValueError as problem:
        raise InputError(str(problem).rstrip(".")) from problem
    return 0


def _cases(options: argparse.Namespace) -> str:
    from raterscope.algorithms.annotators.reader_study import (
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
        text = f"of an ICC of {expected:g} with {options.readers} readers"
    elif options.statistic == "kappa":
        cases = cases_for_kappa(expected, width, options.rates)
        text = f"of a kappa of {expected:g}"
    else:
        cases = cases_for_proportion(expected, width)
        text = f"of a share of {expected:g}"
    return f"{counted(cases, 'case')}: the 95 % interval {text} is then at most {width:g} wide"


def _acceptance(options: argparse.Namespace) -> str:
    settings = entered(options, AcceptanceSettings)
    if settings.sequential and options.lot is not None:
        raise InputError("--lot is for a single plan; a sequential plan supposes a large lot")
    plan = make_plan(settings, options.lot)
    if options.checked is None:
        return plan_in_words(plan)
    checked, errors = options.checked
    verdict = decide_lot(plan, checked, errors)
    return f"{counted(checked, 'item')} checked, {counted(errors, 'error')}: {_VERDICTS[verdict]}"


def _sample(options: argparse.Namespace) -> str:
    with Study.open(options.study) as study:
        kinds = [kind.name for kind in KINDS.values() if kind.items(study)]
        kind = options.kind or (kinds[0] if len(kinds) == 1 else None)
        if kind is None:
            raise InputError(f"--kind is missing; the study contains {' and '.join(kinds) or 'nothing'}")
        settings = entered(options, AcceptanceSettings)
        decision = study.record(draw_sample(kind, list_undecided(kind, study), settings))
        subject = decision.subject
        assert isinstance(subject, SampleSubject)
        names = study.names()
        items = (f"{names[kind, item.item]}: {item.in_words()}" for item in subject.items)
        return "\n".join([f"{subject.in_words(decision.verb).capitalize()}.", *map(plain, items)])


def _progress(options: argparse.Namespace) -> str:
    with Study.open(options.study, to_read=True) as study:
        samples = read_last_samples(study.review_state())
    if not samples:
        raise InputError(NO_SAMPLE, file=options.study)
    return "\n".join(sample.in_words() for sample in samples)


_WORK = {"cases": _cases, "acceptance": _acceptance, "sample": _sample, "progress": _progress}
