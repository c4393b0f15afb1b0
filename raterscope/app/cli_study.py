"""`raterscope import`, `run` and `export`: what the window does with a study, without the window."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from raterscope.algorithms.clicks import CLUSTERERS
from raterscope.algorithms.clicks.fusion import FusionPlan
from raterscope.algorithms.labels.catalogue import LABELLERS
from raterscope.algorithms.labels.fusion import LabelPlan
from raterscope.algorithms.masks.catalogue import FUSERS
from raterscope.algorithms.masks.fusion import MaskPlan
from raterscope.algorithms.pairs.catalogue import PATHS
from raterscope.algorithms.pairs.fusion import PairPlan
from raterscope.algorithms.progress import part
from raterscope.app import importing
from raterscope.app.cli_questions import by_option
from raterscope.app.cli_results import failures, tell
from raterscope.app.clicks.cli_fuse import summary_of
from raterscope.app.clicks.running import fuse_inputs, gather, keep
from raterscope.app.errors import InputError, plain
from raterscope.app.exports import Export, Request, find_export, format_of, write_export
from raterscope.app.formats.points import tells as tells_points
from raterscope.app.labels import running as labels_running
from raterscope.app.labels.cli_fuse import judged_of, notices_of
from raterscope.app.labels.cli_fuse import summary_of as summary_of_labels
from raterscope.app.labels.reading import tasks_of
from raterscope.app.masks import running as masks_running
from raterscope.app.masks.cli_fuse import summary_of as summary_of_masks
from raterscope.app.masks.reading import NOTHING, AtHand, MaskReading, clicked_without_file
from raterscope.app.outcome import Answer
from raterscope.app.pairs import running as pairs_running
from raterscope.app.pairs.cli_fuse import beside_each
from raterscope.app.pairs.cli_fuse import notices_of as notices_of_pairs
from raterscope.app.pairs.cli_fuse import summary_of as summary_of_pairs
from raterscope.app.pairs.reading import items_of
from raterscope.app.study import ImageEntry, Study
from raterscope.app.study.places import Names
from raterscope.app.study.records import Item
from raterscope.app.terminal import ProgressLine, one_line

__all__ = ["export", "import_files", "run"]


def import_files(options: argparse.Namespace) -> int:
    """Read files into a study, which is made where it does not exist."""
    path: Path = options.study
    mapping = dict(options.mapping)
    with ProgressLine(sys.stderr) as watch:
        new = not os.path.lexists(path)
        mappings = dict.fromkeys(options.files, mapping) if mapping else None
        with by_option():
            readings = importing.read_files(
                options.files,
                kind=options.kind,
                mappings=mappings,
                reading=MaskReading(options.annotator, options.naming, options.structure),
                at_hand=NOTHING if new else _at_hand(path, options.files),
                watch=part(watch, 0.0, 0.5),
            )
        try:
            with Study.create(path) if new else Study.open(path) as study, by_option():
                extent = tuple(options.extent) if options.extent else None
                sentences = importing.store(
                    readings, study, part(watch, 0.5, 1.0), extent=extent, may_resample=options.resample
                )
        except BaseException:
            if new:  # nothing came of it
                with contextlib.suppress(OSError):
                    path.unlink()
            raise
    for sentence in sentences:
        print(one_line(sentence))
    return 0


def _at_hand(path: Path, files: Sequence[Path]) -> AtHand:
    if all(file.suffix.casefold() in importing.TABLES and not tells_points(file) for file in files):
        return NOTHING  # a study that is opened is not quite the same file afterwards
    with Study.open(path) as study:
        tasks = (*tasks_of(study), *items_of(study))
        return AtHand(tuple(study.images()), study.path, tasks, clicked_without_file(study.items()))


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
    return (there or named)[0]


def _run_clicks(options: argparse.Namespace) -> int:
    plan = FusionPlan.make(options.algorithm, options.detector, dict(options.settings))
    clock = time.perf_counter()
    with Study.open(options.study) as study, ProgressLine(sys.stderr) as watch:
        images = _chosen(study, options.item, "clicks")
        inputs = gather(
            [entry.id for entry in images], study, part(watch, 0.0, 0.05), hold_truth=options.hold_truth
        )
        answer = fuse_inputs(inputs, plan, jobs=options.jobs, watch=part(watch, 0.05, 0.95))
        number = keep(answer, study, part(watch, 0.95, 1.0)) if answer.kept else None
    lines = summary_of(inputs.given, answer.outcomes, None, time.perf_counter() - clock)
    return _told(options.study, answer, number, lines)


def _run_masks(options: argparse.Namespace) -> int:
    plan = MaskPlan.make(options.algorithm, dict(options.settings))
    clock = time.perf_counter()
    with Study.open(options.study) as study, ProgressLine(sys.stderr) as watch:
        images = [entry.id for entry in _chosen(study, options.item, "masks")]
        inputs = masks_running.gather(images, study, part(watch, 0.0, 0.05))
        answer = masks_running.fuse_cases(inputs, plan, part(watch, 0.05, 0.95))
        number = masks_running.keep(answer, study, part(watch, 0.95, 1.0)) if answer.kept else None
    return _told(options.study, answer, number, summary_of_masks(answer, time.perf_counter() - clock))


def _run_labels(options: argparse.Namespace) -> int:
    texts = dict(options.settings) | ({"truths": "hold"} if options.hold_truth else {})
    plan = LabelPlan.make(options.algorithm, texts)
    clock = time.perf_counter()
    with Study.open(options.study) as study, ProgressLine(sys.stderr) as watch:
        questions = [entry.id for entry in _chosen(study, options.item, "labels")]
        inputs = labels_running.gather(questions, study, part(watch, 0.0, 0.1))
        answer = labels_running.fuse_questions(inputs, plan, part(watch, 0.1, 0.8))
        number = labels_running.keep(answer, study, part(watch, 0.8, 0.9)) if answer.kept else None
        judged, _ = judged_of(answer, texts, watch=part(watch, 0.9, 1.0))
    lines = summary_of_labels(answer, time.perf_counter() - clock, judged)
    return _told(options.study, answer, number, lines, notices_of(answer, judged))


def _run_pairs(options: argparse.Namespace) -> int:
    plan = PairPlan.make(options.algorithm, dict(options.settings))
    clock = time.perf_counter()
    with Study.open(options.study) as study, ProgressLine(sys.stderr) as watch:
        questions = [entry.id for entry in _chosen(study, options.item, "pairs")]
        inputs = pairs_running.gather(questions, study, part(watch, 0.0, 0.1))
        answer = pairs_running.fuse_questions(inputs, plan, part(watch, 0.1, 0.8))
        number = pairs_running.keep(answer, study, part(watch, 0.8, 0.9)) if answer.kept else None
        others = beside_each(answer, part(watch, 0.9, 1.0))
    lines = summary_of_pairs(answer, time.perf_counter() - clock, others) if answer.kept else ()
    return _told(options.study, answer, number, lines, notices_of_pairs(answer))


def _told(
    study: Path,
    answer: Answer[Any, Any, Any],
    number: int | None,
    lines: Iterable[str],
    notices: Iterable[str] = (),
) -> int:
    """Say what came of a run and where it is kept; gives the exit status."""
    tell(notices, lines)
    if number is not None:
        print(f"run {number} is in {study}")
    failures(answer.outcomes)
    return 0


_RUNS = {"clicks": _run_clicks, "masks": _run_masks, "labels": _run_labels, "pairs": _run_pairs}
_ALGORITHMS: Mapping[str, Collection[str]] = {
    "clicks": CLUSTERERS, "masks": FUSERS, "labels": LABELLERS, "pairs": PATHS,
}  # fmt: skip
_ASKED = ("labels", "pairs")
"""Kinds that are about questions, not about images."""


def export(options: argparse.Namespace) -> int:
    """Write what a study holds as a table, masks or maps."""
    with Study.open(options.study, to_read=True) as study, ProgressLine(sys.stderr) as watch:
        found = find_export(options.what, _kinds(study) if options.kind is None else [options.kind])
        request = Request(
            what=options.what,
            format=format_of(found, options.output, options.format),
            path=options.output,
            items=tuple(one.id for one in _named(study, options, found)) if options.item else (),
            deidentify=options.deidentify,
        )
        written = write_export(found, study, request, watch)
    for path in written:
        print(path)
    return 0


def _named(study: Study, options: argparse.Namespace, found: Export) -> Sequence[Item]:
    """Find the questions that are named, for an export of labels or pairs alone, else the images."""
    (first, *others) = found.kinds
    return _chosen(study, options.item, first if first in _ASKED and not others else None)


def _kinds(study: Study) -> list[str]:
    """List the kinds of annotation, those of the latest runs first, then those that the study has."""
    fused = [run.kind for run in reversed(study.runs())]
    marked = [kind for kind, items in study.items().items() if items]
    return list(dict.fromkeys([*fused, *marked, *_ALGORITHMS]))


def _chosen(study: Study, items: Sequence[str], kind: str | None = None) -> Sequence[Item]:
    """Find the images or questions that are named; without a name, all that the kind has."""
    if kind in _ASKED:
        return _questions(study, items, kind)
    entries = study.images()
    if not entries:
        raise InputError("holds no images yet; `raterscope import` reads them", file=study.path)
    if not items:
        numbers = {entry.id for entry in entries} if kind is None else {one.id for one in study.items()[kind]}
        if not numbers:
            raise InputError(f"holds no {kind}; `raterscope import` reads them", file=study.path)
        return [entry for entry in entries if entry.id in numbers]
    names = Names(entries)
    chosen: dict[int, ImageEntry] = {}
    for item in items:
        entry = names.find(item)
        if entry is None:
            raise _unknown(study, "image", item, entries)
        chosen[entry.id] = entry
    return list(chosen.values())


def _questions(study: Study, items: Sequence[str], kind: str) -> Sequence[Item]:
    entries = study.items()[kind]
    if not entries:
        raise InputError(f"holds no {kind}; `raterscope import` reads them", file=study.path)
    by_name = {entry.name.casefold(): entry for entry in entries}
    for item in items:
        if item.casefold() not in by_name:
            raise _unknown(study, "question", item, entries)
    wanted = {item.casefold() for item in items} or set(by_name)
    return [entry for name, entry in by_name.items() if name in wanted]


def _unknown(study: Study, what: str, item: str, entries: Sequence[Item]) -> InputError:
    known = ", ".join(plain(one.name, 40) for one in entries[:5])
    more = f" and {len(entries) - 5:,} more" if len(entries) > 5 else ""
    return InputError(f"holds no {what} {plain(item)}; it holds {known}{more}", file=study.path)
