"""`raterscope run`: fusing in a study, without the window."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from raterscope.algorithms.progress import Watch, part
from raterscope.app.command_line.output import ProgressLine, Rescued, failures, rescued, tell
from raterscope.app.command_line.selection import chosen
from raterscope.app.errors import InputError, plain
from raterscope.app.kinds.kind import Kind
from raterscope.app.kinds.registry import KINDS
from raterscope.app.outcome import Answer
from raterscope.app.study import Study
from raterscope.app.study.new_study import save_elsewhere


def run(options: argparse.Namespace) -> int:
    """Fuse a study's annotations and store the run in it; the algorithm determines the kind."""
    kind = _kind_of(options)
    steps = kind.functions
    plan = steps.make_plan(options.algorithm, steps.plan_texts(options))
    clock = time.perf_counter()
    with Study.open(options.study) as study, ProgressLine(sys.stderr) as watch:
        items = [entry.id for entry in chosen(study, options.item, kind.name, by_question=kind.by_question)]
        inputs = steps.gather(items, study, plan, options.hold_truth, part(watch, 0.0, 0.05))
        answer = steps.fuse(inputs, plan, options.jobs, part(watch, 0.05, 0.85))
        saved = _kept(steps.keep, answer, study, part(watch, 0.85, 0.9))
        seconds = time.perf_counter() - clock
        summary = steps.summarise(answer, study, options, seconds, part(watch, 0.9, 1.0))
        notices, lines = list(summary.notices), list(summary.lines)
    return _told(options.study, saved, answer, lines, notices)


def _kind_of(options: argparse.Namespace) -> Kind:
    """Return the kind of annotation of an algorithm; of several kinds, the one in the study."""
    algorithms = {name: _algorithms(kind, chosen_by_run=True) for name, kind in KINDS.items()}
    named = [kind for kind, names in algorithms.items() if options.algorithm in names]
    if not named:
        known = "; ".join(f"{', '.join(names)} for {kind}" for kind, names in algorithms.items())
        raise InputError(f"'{plain(options.algorithm)}' is no algorithm; expected one of {known}")
    if options.kind is not None:
        if options.kind not in named:
            raise InputError(f"{options.algorithm} is for {' and '.join(named)}, not for {options.kind}")
        return KINDS[options.kind]
    if len(named) == 1:
        return KINDS[named[0]]
    with Study.open(options.study) as study:
        present = [kind for kind in named if KINDS[kind].items(study)]
    if len(present) > 1:
        kinds = " and ".join(present)
        message = f"holds {kinds}, and {options.algorithm} is for {kinds}; choose one with --kind"
        raise InputError(message, file=options.study)
    if not present:
        message = f"holds neither {' nor '.join(named)}, which {options.algorithm} is for"
        detects = [
            name
            for name, kind in KINDS.items()
            if options.algorithm in _algorithms(kind, chosen_by_run=False)
        ]
        raise InputError(
            message
            + "".join(f"; for {kind} it is a detector: --detector {options.algorithm}" for kind in detects),
            file=options.study,
        )
    return KINDS[present[0]]


def _algorithms(kind: Kind, *, chosen_by_run: bool) -> list[str]:
    """Name the algorithms of a kind: those that `run` is given, or those that an option of it is given."""
    return [
        name
        for catalogue in kind.catalogues
        if catalogue.chosen_by_run == chosen_by_run
        for name in catalogue.algorithms
    ]


def _kept(keep: Callable[..., int], answer: Any, study: Study, watch: Watch) -> Rescued[int] | None:
    """Store a run in its study, or in a copy elsewhere; nothing if all items failed."""

    def store(target: Study, watch: Watch) -> int:
        return keep(answer, target, watch)

    if not answer.kept:
        return None
    return rescued(
        lambda _: store(study, watch),
        study.path,
        lambda path: int(save_elsewhere(study, path, [store], watch)[0]),
    )


def _told(
    study: Path,
    saved: Rescued[int] | None,
    answer: Answer[Any, Any, Any],
    lines: Iterable[str],
    notices: Iterable[str] = (),
) -> int:
    """Print the outcome of a run and its location, and return the exit status."""
    tell(notices, lines)
    if saved is not None:
        print(f"run {saved.answer} is in {saved.place if saved.why else study}")
        saved.tell("The run is in a copy of the study,")
    failures(answer.outcomes)
    return 0
