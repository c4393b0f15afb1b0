"""`raterscope import` and `export`: files into and out of a study."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from raterscope.algorithms.progress import part
from raterscope.app import importing
from raterscope.app.command_line.output import ProgressLine, one_line, tell
from raterscope.app.command_line.selection import by_option, chosen
from raterscope.app.exports import (
    Export,
    Request,
    format_of,
    provenance,
    usual_format,
    write_export,
)
from raterscope.app.formats.points import has_points
from raterscope.app.formats.sources import Sources
from raterscope.app.kinds.labels.reading import tasks_of
from raterscope.app.kinds.masks.reading import NOTHING, AtHand, MaskReading, clicked_without_file
from raterscope.app.kinds.pairs.reading import items_of
from raterscope.app.kinds.registry import KINDS, find_export
from raterscope.app.study import Study
from raterscope.app.study.new_study import new_study
from raterscope.app.study.records import Item


def import_files(options: argparse.Namespace) -> int:
    """Read files into a study, which is made where it does not exist."""
    path: Path = options.study
    mapping, sources = dict(options.mapping), Sources()
    with ProgressLine(sys.stderr) as watch:
        new = not os.path.lexists(path)
        mappings = dict.fromkeys(options.files, mapping) if mapping else None
        with by_option():
            readings = importing.read_files(
                options.files,
                kind=options.kind,
                mappings=mappings,
                reading=MaskReading(options.annotator, options.naming, options.structure),
                at_hand=NOTHING if new else _at_hand(path, options.files, sources),
                sources=sources,
                watch=part(watch, 0.0, 0.5),
            )
        with new_study(path) if new else Study.open(path) as study, by_option():
            extent = tuple(options.extent) if options.extent else None
            sentences = importing.store(
                readings, study, part(watch, 0.5, 1.0), extent=extent, may_resample=options.resample
            )
            if options.radius is not None:
                study.settings.set_matching_radius(options.radius)
    for sentence in sentences:
        print(one_line(sentence))
    return 0


def _at_hand(path: Path, files: Sequence[Path], sources: Sources) -> AtHand:
    tables = all(file.suffix.casefold() in importing.TABLES for file in files)
    if tables and not any(has_points(sources.open(file)) for file in files):
        return NOTHING  # a study that is opened is not quite the same file afterwards
    with Study.open(path) as study:
        tasks = (*tasks_of(study), *items_of(study))
        return AtHand(tuple(study.images()), study.path, tasks, clicked_without_file(study.items()))


def export(options: argparse.Namespace) -> int:
    """Export a study's results as tables, masks or maps."""
    notices: list[str] = []
    with Study.open(options.study, to_read=True) as study, ProgressLine(sys.stderr) as watch:
        with study.shown.only(options.run):  # there is one of that number
            kinds = _kinds(study, options.run) if options.kind is None else [options.kind]
        found = find_export(options.what, kinds)
        items = tuple(one.id for one in _named(study, options, found)) if options.item else ()
        request = Request(
            what=options.what,
            format=format_of(found, options.output, options.format, _usual(study, found, items)),
            path=options.output,
            items=items,
            deidentify=options.deidentify,
            resample=options.resample,
            with_images=options.with_images,
            say=notices.append,
            run=options.run,
        )
        tell(provenance(found, study, request).outdated, ())
        written = write_export(found, study, request, watch)
    for notice in notices:
        print(f"note: {one_line(notice)}", file=sys.stderr)
    print(one_line(written.in_words(found.title)), file=sys.stderr)
    for path in written.files:
        print(path)
    return 0


def _usual(study: Study, found: Export, items: Sequence[int]) -> str:
    """Choose a format for images if neither option nor file name does."""
    of_kind = {item.id for kind in found.kinds for item in study.items()[kind]}
    return usual_format(found, [item for item in study.images() if item.id in (items or of_kind)])


def _named(study: Study, options: argparse.Namespace, items: Export) -> Sequence[Item]:
    """Find the named questions, for an export of labels or pairs, otherwise the images."""
    (first, *others) = items.kinds
    if others or not KINDS[first].by_question:
        return chosen(study, options.item)
    return chosen(study, options.item, first, by_question=True)


def _kinds(study: Study, run: int | None) -> list[str]:
    """List the kinds: that of the chosen run, those of the latest runs, then those of the study."""
    fused, items = [one.kind for one in reversed(study.runs.all())], study.items()
    if run is not None:
        return [study.runs.get(run).kind]
    marked = [kind for kind, of in items.items() if of]
    return list(dict.fromkeys([*fused, *marked, *items]))
