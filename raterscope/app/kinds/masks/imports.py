"""Import of masks: reads files, assigns raters and structures; `placement` finds the image of each mask."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from raterscope.algorithms.progress import Watch, silent, steps_of
from raterscope.app.ambiguous_files import TRUTH_WORD, UnknownAnnotators, is_truth, names_by
from raterscope.app.errors import InputError, plain, plain_names
from raterscope.app.formats.masks import read_masks
from raterscope.app.formats.masks.label_maps import is_plain_image, is_voxel_file
from raterscope.app.formats.masks.naming import (
    NameParts,
    parse_name,
    strip_suffixes,
    suggest_structure_naming,
)
from raterscope.app.formats.records import MaskTable, VolumeFile
from raterscope.app.formats.sources import Sources
from raterscope.app.formats.volumes import find_volumes
from raterscope.app.kinds.masks.placement import NAMELESS, AttributedMask
from raterscope.app.study import ImageEntry
from raterscope.app.study.records import Item
from raterscope.app.study.references import locate


def assign_raters(
    tables: Sequence[MaskTable], images: Sequence[str], reading: MaskOptions, *, truth: bool = False
) -> list[AttributedMask]:
    """Determine the rater of every mask.

    Names given by hand come first, then those of a given pattern, those in a file, and those guessed from all
    file names. A DICOM file without any gets the name of its structure set or series, which must differ
    between files. If several files name the same annotator for the same structure, as files of one program
    do, the file names come first. A file with the name truth, gt or gold holds the truth. Raises
    `UnknownAnnotators` for a mask without rater. Raises `InputError` if two files hold the same annotator's
    mask of the same structure on the same image.

    `images`: names of the known images, with which names of masks may begin.
    `reading`: options with which the tables were read.
    `truth`: whether all masks are the truth.
    """
    annotator, naming, assigned = reading.annotator, reading.naming, reading.by_hand
    names = names_by([table.path for table in tables], images, naming)
    by_name: set[Path] = set()
    if annotator is None:
        by_name = {table.path for table in tables} if naming else _signed_alike(tables)
    attributed: list[AttributedMask] = []
    derived = _derive_raters(tables, names, by_name)
    unnamed: dict[Path, str] = {}
    for table in tables:
        if table.run and not (truth or annotator or assigned.get(table.path)):
            continue
        name = names.get(table.path, NameParts())
        pattern = reading.structure_naming
        if pattern is None and not (truth or annotator or assigned.get(table.path) or name.annotator):
            pattern = suggest_structure_naming(
                mask.structure for mask in table.masks if mask.annotator is None
            )
        for mask in table.masks:
            stated = NameParts(None, mask.annotator, mask.structure)
            if pattern:
                stated = parse_name(mask.structure, pattern) or stated
            in_order = [stated.annotator, name.annotator]
            if table.path in by_name:
                in_order.reverse()
            rater = TRUTH_WORD if truth else assigned.get(table.path) or in_order[0] or in_order[1]
            origin = ""
            by_hand_or_file = assigned.get(table.path) or (stated.annotator and table.path not in by_name)
            if table.path in derived and not (truth or naming or by_hand_or_file):
                origin, rater = derived[table.path]
            if rater is None:
                unnamed.setdefault(table.path, strip_suffixes(table.path))
            structure = stated.structure or name.structure or NAMELESS
            owner = None if rater is None or is_truth(rater) else rater
            attributed.append(
                AttributedMask(table.path, owner, structure, mask.item, name.item, mask, origin)
            )
    if unnamed:
        raise UnknownAnnotators(tuple(unnamed), unnamed)
    return attributed


def _derive_raters(
    tables: Sequence[MaskTable], names: Mapping[Path, NameParts], alike: Collection[Path]
) -> dict[Path, tuple[str, str]]:
    """Return field and name, by file, for DICOM files of which neither content nor name gives a rater.

    All take the same field: the first that every file has, and that differs between files of one image; or
    else each its most distinctive field. A letter or a number in the names of files is no rater.

    `alike`: files of one program, which name the same annotator.
    """
    unnamed = [
        table
        for table in tables
        if table.origins
        and not table.run
        and (table.path in alike or any(mask.annotator is None for mask in table.masks))
        and len(re.findall(r"[^\W\d_]", names.get(table.path, NameParts()).annotator or "")) < 2
    ]
    if not unnamed:
        return {}
    images = [next((mask.item for mask in table.masks), None) for table in unnamed]
    fields = [field_ for field_, _ in unnamed[0].origins]
    choices: list[Sequence[tuple[str, str | None]]] = [
        [(field_, dict(table.origins).get(field_)) for table in unnamed] for field_ in fields
    ]
    choices.append([table.origins[0] for table in unnamed])
    for choice in choices:
        distinct = {(image, name) for image, (_, name) in zip(images, choice, strict=True) if name}
        if len(distinct) == len(unnamed):
            return {
                table.path: (field_, name)
                for table, (field_, name) in zip(unnamed, choice, strict=True)
                if name
            }
    return {}


def explain_derived(masks: Sequence[AttributedMask]) -> list[str]:
    """Name the raters that were derived from fields of DICOM files, for a notice."""
    fields: dict[str, dict[Path, str]] = {}
    for mask in masks:
        if mask.origin and mask.annotator is not None:
            fields.setdefault(mask.origin, {})[mask.file] = mask.annotator
    sentences = []
    for field_, raters in fields.items():
        subject = (
            f"{plain(next(iter(raters)).name)} names" if len(raters) == 1 else f"{len(raters):,} files name"
        )
        names = plain_names(dict.fromkeys(raters.values()), 4, 40)
        sentences.append(
            f"{subject} no annotator; the {field_} is taken as the name: {names}. "
            "Give another in the preview, or by --annotator or --naming."
        )
    return sentences


def _signed_alike(tables: Sequence[MaskTable]) -> set[Path]:
    """Find files that name the same annotator of the same structure of the same image as another file."""
    files: dict[tuple[str, str | None, str | None], set[Path]] = {}
    for table in tables:
        for mask in table.masks:
            if mask.annotator is not None:
                files.setdefault((mask.annotator, mask.structure, mask.item), set()).add(table.path)
    return {path for paths in files.values() if len(paths) > 1 for path in paths}


@dataclass(frozen=True)
class MaskOptions:
    """Options of reading masks."""

    annotator: str | None = None  # rater of all files
    # pattern of the files' names, see `naming.parse_name`: "{item}_{annotator}"
    naming: str | None = None
    structure: str | None = None  # structure of files that name none
    # pattern of structure names that contain the rater, as GTV_Adler; empty if they do not; None for one that
    # their names suggest, if nothing else names the raters
    structure_naming: str | None = None
    by_hand: Mapping[Path, str] = field(default_factory=dict)  # raters by file, `TRUTH_WORD` for the truth


@dataclass(frozen=True)
class StudyImages:
    """Images of the study that new files may belong to."""

    entries: tuple[ImageEntry, ...] = ()  # images that masks may lie on
    study: Path = Path()
    # tuple of names: tasks and items that annotators judged, and the picture files named for them
    tasks: tuple[str, ...] = ()
    # tuple of names: of images that annotators clicked on and that are not there yet
    clicked: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)  # names of structures by those in files

    def shapes(self) -> tuple[tuple[int, int, int], ...]:
        """Return the images' shapes."""
        return tuple(entry.lattice.shape for entry in self.entries)

    def series(self, watch: Watch = silent) -> list[VolumeFile]:
        """Find the DICOM series of the study again, which contours need; missing ones are skipped."""
        volumes_found: list[VolumeFile] = []
        for entry in self.entries:
            path = locate(entry, self.study) if entry.identifier else None
            if path is not None:
                try:
                    volumes = find_volumes(path, watch)
                except InputError:
                    continue
                volumes_found += [volume for volume in volumes if volume.identifier == entry.identifier]
        return volumes_found


def images_without_file(items: Mapping[str, Sequence[Item]]) -> tuple[str, ...]:
    """Name the clicked images of a study whose files are still missing."""
    return tuple(item.name for item in items["clicks"] if isinstance(item, ImageEntry) and item.path is None)


DEFAULT_MASK_OPTIONS = MaskOptions()
"""Options for files that name everything."""

NOTHING = StudyImages()
"""No study is open."""


def read_mask_files(
    paths: Sequence[Path],
    volumes: Sequence[VolumeFile],
    reading: MaskOptions = DEFAULT_MASK_OPTIONS,
    at_hand: StudyImages = NOTHING,
    optional: frozenset[Path] = frozenset(),
    sources: Sources | None = None,
    watch: Watch = silent,
) -> tuple[tuple[MaskTable, ...], list[InputError]]:
    """Read the masks of files; return the tables, and the errors of optional files that were left out.

    Raises `InputError` for the first file that cannot be read and is not optional.

    `volumes`: volumes that come with the masks.
    `optional`: files that are left out if they cannot be read.
    `sources`: sources of files that may be open already; each is released when it is read.
    """
    known_volumes: list[VolumeFile] | None = None
    sources = Sources() if sources is None else sources
    tables, refused = [], []
    for path, step in steps_of(watch, paths):
        step(0.0, f"reading {plain(path.name)}")
        all_volumes = list(volumes)
        if not (is_voxel_file(path) or is_plain_image(path)):  # contours, drawn on a series
            known_volumes = at_hand.series(step) if known_volumes is None else known_volumes
            mine = {volume.identifier for volume in volumes if volume.identifier}
            all_volumes += [volume for volume in known_volumes if volume.identifier not in mine]
        try:
            tables.append(
                read_masks(
                    sources.open(path), all_volumes, naming=reading.naming, annotator=reading.annotator,
                    structure=reading.structure, watch=step,
                )
            )  # fmt: skip
        except InputError as error:
            if path not in optional:
                raise
            refused.append(error)
        sources.release(path)
    return tuple(tables), refused
