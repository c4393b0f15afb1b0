"""Command `import`."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from raterscope.algorithms.progress import Watch, part
from raterscope.app import importing
from raterscope.app.command_line.output import ProgressLine, one_line
from raterscope.app.command_line.selection import answered_by_options
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.points import has_points
from raterscope.app.formats.remote import fetch, is_address, is_zarr
from raterscope.app.formats.sources import Source, Sources
from raterscope.app.formats.tables import unit_of
from raterscope.app.import_preview import (
    ImportPreview,
    NameChanges,
    change_names,
    describe,
    mark_programs,
    parse_changes,
    preview_readings,
    refuse_unknown,
)
from raterscope.app.kinds.labels.imports import tasks_of
from raterscope.app.kinds.masks.attribution import MaskOptions
from raterscope.app.kinds.masks.imports import NOTHING, StudyImages, images_without_file
from raterscope.app.kinds.pairs.imports import items_of
from raterscope.app.readings import Readings, is_table
from raterscope.app.review import read_measures
from raterscope.app.study import Study
from raterscope.app.study.image_groups import store_groups
from raterscope.app.study.import_undo import undo_import
from raterscope.app.study.new_study import new_study
from raterscope.app.study.records import ImageEntry


def import_files(options: argparse.Namespace) -> int:
    """Read files into a study, which is made where it does not exist."""
    path: Path = options.study
    if options.undo:
        return _undo_import(options)
    if not options.files:
        return _group(options)
    mapping, sources = dict(options.mapping), Sources()
    changes = parse_changes(options.rename)
    with ProgressLine(sys.stderr) as watch:
        new = not os.path.lexists(path)
        files = _local_files(options.files, path, watch)
        mappings = dict.fromkeys(files, mapping) if mapping else None
        with answered_by_options():
            readings = importing.read_files(
                files,
                kind=options.kind,
                mappings=mappings,
                reading=MaskOptions(_annotator(options, files), options.naming, options.structure),
                label_annotator=options.annotator or _only_program(options),
                at_hand=NOTHING if new else _at_hand(path, files, sources),
                skip_unreadable=True,
                sources=sources,
                watch=part(watch, 0.0, 0.5),
            )
            preview, readings = _previewed(readings, None if new else path, changes, options)
        if options.preview:
            for line in describe(preview):
                print(one_line(line))
            return 0
        with new_study(path) if new else Study.open(path) as study, answered_by_options():
            extent = tuple(options.extent) if options.extent else None
            sentences = importing.store(
                readings,
                study,
                part(watch, 0.5, 1.0),
                extent=extent,
                may_resample=options.resample,
                class_order=options.grades,
            )
            if options.radius is not None:
                study.settings.set_matching_radius(options.radius)
            if options.groups is not None:
                sentences += store_groups(study, options.groups)
    for old, name in preview.suggested.structure.items():
        rename = shlex.join(["raterscope", "rename", str(path), f"structure:{old}={name}"])
        sentences.append(f"{plain(old)} is probably {plain(name)}: {rename} joins them")
    for sentence in sentences:
        print(one_line(sentence))
    unread = [error for error in readings.skipped if error.file in files]
    if unread:
        raise InputError(
            f"{len(unread):,} of {len(files):,} files could not be read, the others were imported:"
            f" {unread[0]}"
        )
    return 0


def _undo_import(options: argparse.Namespace) -> int:
    """Undo the last import of a study."""
    if options.files:
        raise InputError("--undo undoes the last import; give it without files")
    with Study.open(options.study) as study:
        print(one_line(undo_import(study)))
    return 0


def _group(options: argparse.Namespace) -> int:
    """Store the groups of a study's images, without an import."""
    if options.groups is None:
        raise InputError("expected a file to import, or --groups TABLE")
    with Study.open(options.study) as study:
        for sentence in store_groups(study, options.groups):
            print(one_line(sentence))
    return 0


def _previewed(
    readings: Readings, study: Path | None, changes: NameChanges, options: argparse.Namespace
) -> tuple[ImportPreview, Readings]:
    """Describe the import, and rename annotators, structures and classes."""
    entries: Sequence[ImageEntry] = ()
    renamed: Mapping[str, str] = {}
    if study is not None and options.preview:
        with Study.open(study, to_read=True) as opened:
            entries, renamed = opened.images(), opened.shown.names("masks")
    preview = preview_readings(readings, entries, may_resample=options.resample, renamed=renamed)
    refuse_unknown(changes, preview.names)
    readings = mark_programs(readings, options.programs, preview.names["annotator"])
    if options.join_spellings:
        changes = preview.suggested.updated(changes)
    if changes == NameChanges():
        return replace(preview, programs=readings.programs), readings
    readings = change_names(readings, changes)
    preview = preview_readings(readings, entries, may_resample=options.resample, renamed=renamed)
    return preview, readings


def _annotator(options: argparse.Namespace, files: Sequence[Path]) -> str | None:
    """Return the annotator of all files: the given one, or else the only program of the only file."""
    alone = len(files) == 1 and not files[0].is_dir()
    return options.annotator or (_only_program(options) if alone else None)


def _only_program(options: argparse.Namespace) -> str | None:
    return options.programs[0] if len(options.programs) == 1 else None


def _local_files(words: Sequence[str], study: Path, watch: Watch) -> list[Path]:
    """Download files of addresses into a folder beside the study, which refers to them."""
    files: list[Path] = []
    for word in words:
        if is_address(word) or is_zarr(Path(word)):
            files += fetch(word, study.with_name(f"{study.stem}-files"), watch)
        else:
            files.append(Path(word))
    return files


def _at_hand(path: Path, files: Sequence[Path], sources: Sources) -> StudyImages:
    tables = all(is_table(file) for file in files)
    if tables and not any(_needs_images(sources.open(file)) for file in files):
        return NOTHING  # opening a study may change its file
    with Study.open(path) as study:
        tasks = (*tasks_of(study), *items_of(study))
        measures = read_measures(study.decisions(), study.review_state())
        images = tuple(
            replace(image, pixel_size=measures.pixel_size(image.id, image.pixel_size))
            for image in study.images()
        )
        return StudyImages(images, study.path, tasks, images_without_file(study.items()))


def _needs_images(source: Source) -> bool:
    """Return whether the annotations of a table depend on its images: on their names or pixel sizes."""
    try:
        return has_points(source) is not None or any(map(unit_of, source.head().table.header))
    except InputError:
        return False
