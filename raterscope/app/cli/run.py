"""`raterscope run`: fusing in a study, without the window."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from raterscope.algorithms.clicks import CLUSTERERS, DETECTORS
from raterscope.algorithms.clicks.fusion import FusionPlan, isolation_notice
from raterscope.algorithms.clicks.grouping import run_notices
from raterscope.algorithms.labels.catalogue import LABELLERS
from raterscope.algorithms.labels.fusion import LabelPlan
from raterscope.algorithms.masks.catalogue import FUSERS
from raterscope.algorithms.masks.fusion import MaskPlan
from raterscope.algorithms.pairs.catalogue import PATHS
from raterscope.algorithms.pairs.fusion import PairPlan
from raterscope.algorithms.progress import Watch, part
from raterscope.app.cli.fuse.clicks import summary_of
from raterscope.app.cli.fuse.labels import judged_of, notices_of
from raterscope.app.cli.fuse.labels import summary_of as summary_of_labels
from raterscope.app.cli.fuse.masks import summary_of as summary_of_masks
from raterscope.app.cli.fuse.pairs import beside_each
from raterscope.app.cli.fuse.pairs import notices_of as notices_of_pairs
from raterscope.app.cli.fuse.pairs import summary_of as summary_of_pairs
from raterscope.app.cli.items import chosen
from raterscope.app.cli.rescuing import Rescued, rescued
from raterscope.app.cli.results import failures, tell
from raterscope.app.cli.terminal import ProgressLine
from raterscope.app.clicks.other_images import others_in_words
from raterscope.app.clicks.running import fuse_inputs, gather, keep
from raterscope.app.errors import InputError, plain
from raterscope.app.labels import running as labels_running
from raterscope.app.masks import running as masks_running
from raterscope.app.outcome import Answer
from raterscope.app.pairs import running as pairs_running
from raterscope.app.study import Study
from raterscope.app.study.elsewhere import save_elsewhere

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Fuse what annotators marked in a study and keep the run in it; the algorithm's name tells the kind."""
    return _RUNS[_kind_of(options)](options)


def _kind_of(options: argparse.Namespace) -> str:
    """Tell the kind of annotation: what the algorithm is for; of several, what the study has."""
    named = [kind for kind, names in _ALGORITHMS.items() if options.algorithm in names]
    if not named:
        known = "; ".join(f"{', '.join(names)} for {kind}" for kind, names in _ALGORITHMS.items())
        raise InputError(f"'{plain(options.algorithm)}' is no algorithm; expected one of {known}")
    if options.kind is not None:
        if options.kind not in named:
            raise InputError(f"{options.algorithm} is for {' and '.join(named)}, not for {options.kind}")
        return str(options.kind)
    if len(named) == 1:
        return named[0]
    with Study.open(options.study) as study:
        there = [kind for kind in named if study.items()[kind]]
    if len(there) > 1:
        both = " and ".join(there)
        what = f"holds {both}, and {options.algorithm} is for {both}; --kind tells which are meant"
        raise InputError(what, file=options.study)
    if not there:
        what = f"holds neither {' nor '.join(named)}, which {options.algorithm} is for"
        of_clicks = f"; for clicks it is a detector: --detector {options.algorithm}"
        raise InputError(what + of_clicks * (options.algorithm in DETECTORS), file=options.study)
    return there[0]


def _run_clicks(options: argparse.Namespace) -> int:
    plan = FusionPlan.make(options.algorithm, options.detector, dict(options.settings))
    clock = time.perf_counter()
    with Study.open(options.study) as study, ProgressLine(sys.stderr) as watch:
        images, there = chosen(study, options.item, "clicks"), len(study.items()["clicks"])
        inputs = gather(
            [entry.id for entry in images], study, part(watch, 0.0, 0.05), hold_truth=options.hold_truth,
            plan=plan,
        )  # fmt: skip
        answer = fuse_inputs(inputs, plan, jobs=options.jobs, watch=part(watch, 0.05, 0.95))
        kept = _kept(keep, answer, study, part(watch, 0.95, 1.0))
    lines = summary_of(inputs.given, answer.outcomes, None, time.perf_counter() - clock)
    notices = run_notices([one.fusion for one in answer.outcomes.values() if one.fusion is not None])
    notices += [
        isolation_notice(plan, len(images) + len(inputs.others.images), there) or "",
        others_in_words(inputs.others.as_log()),
    ]
    return _told(options.study, kept, answer, lines, [one for one in notices if one])


def _run_masks(options: argparse.Namespace) -> int:
    plan = MaskPlan.make(options.algorithm, dict(options.settings))
    clock = time.perf_counter()
    with Study.open(options.study) as study, ProgressLine(sys.stderr) as watch:
        images = [entry.id for entry in chosen(study, options.item, "masks")]
        inputs = masks_running.gather(images, study, part(watch, 0.0, 0.05))
        answer = masks_running.fuse_cases(inputs, plan, part(watch, 0.05, 0.95))
        kept = _kept(masks_running.keep, answer, study, part(watch, 0.95, 1.0))
    return _told(options.study, kept, answer, summary_of_masks(answer, time.perf_counter() - clock))


def _run_labels(options: argparse.Namespace) -> int:
    texts = dict(options.settings) | ({"truths": "hold"} if options.hold_truth else {})
    plan = LabelPlan.make(options.algorithm, texts)
    clock = time.perf_counter()
    with Study.open(options.study) as study, ProgressLine(sys.stderr) as watch:
        questions = [entry.id for entry in chosen(study, options.item, "labels")]
        inputs = labels_running.gather(questions, study, part(watch, 0.0, 0.1))
        answer = labels_running.fuse_questions(inputs, plan, part(watch, 0.1, 0.8))
        kept = _kept(labels_running.keep, answer, study, part(watch, 0.8, 0.9))
        judged, _ = judged_of(answer, texts, watch=part(watch, 0.9, 1.0))
    lines = summary_of_labels(answer, time.perf_counter() - clock, judged)
    return _told(options.study, kept, answer, lines, notices_of(answer, judged))


def _run_pairs(options: argparse.Namespace) -> int:
    plan = PairPlan.make(options.algorithm, dict(options.settings))
    clock = time.perf_counter()
    with Study.open(options.study) as study, ProgressLine(sys.stderr) as watch:
        questions = [entry.id for entry in chosen(study, options.item, "pairs")]
        inputs = pairs_running.gather(questions, study, part(watch, 0.0, 0.1))
        answer = pairs_running.fuse_questions(inputs, plan, part(watch, 0.1, 0.8))
        kept = _kept(pairs_running.keep, answer, study, part(watch, 0.8, 0.9))
        others = beside_each(answer, part(watch, 0.9, 1.0))
    lines = summary_of_pairs(answer, time.perf_counter() - clock, others) if answer.kept else ()
    return _told(options.study, kept, answer, lines, notices_of_pairs(answer))


def _kept(keep: Callable[..., int], answer: Any, study: Study, watch: Watch) -> Rescued[int] | None:
    """Keep a run in its study, or in a copy of it elsewhere; nothing of one in which all has failed."""

    def store(place: Study, watch: Watch) -> int:
        return keep(answer, place, watch)

    if not answer.kept:
        return None
    return rescued(
        lambda _: store(study, watch),
        study.path,
        lambda place: int(save_elsewhere(study, place, [store], watch)[0]),
    )


def _told(
    study: Path,
    kept: Rescued[int] | None,
    answer: Answer[Any, Any, Any],
    lines: Iterable[str],
    notices: Iterable[str] = (),
) -> int:
    """Say what came of a run and where it is kept; gives the exit status."""
    tell(notices, lines)
    if kept is not None:
        print(f"run {kept.answer} is in {kept.place if kept.why else study}")
        kept.tell("The run is in a copy of the study,")
    failures(answer.outcomes)
    return 0


_RUNS = {"clicks": _run_clicks, "masks": _run_masks, "labels": _run_labels, "pairs": _run_pairs}
_ALGORITHMS: Mapping[str, Collection[str]] = {
    "clicks": CLUSTERERS, "masks": FUSERS, "labels": LABELLERS, "pairs": PATHS,
}  # fmt: skip
