"""Raters of masks: from names given by hand, patterns, files and their names, or fields of DICOM files."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from raterscope.app.ambiguous_files import TRUTH_WORD, UnknownAnnotators, is_truth, names_by
from raterscope.app.errors import plain, plain_names
from raterscope.app.formats.masks.naming import (
    NameParts,
    parse_name,
    strip_suffixes,
    suggest_structure_naming,
)
from raterscope.app.formats.records import MaskTable, RaterMask

NAMELESS = "structure"
"""Name given to unnamed structures."""


@dataclass(frozen=True)
class MaskOptions:
    """Options of reading masks."""

    annotator: str | None = None  # rater of all files
    # pattern of the files' names, see `naming.parse_name`: "{item}_{annotator}"
    naming: str | None = None
    structure: str | None = None  # structure of files without one
    # pattern of structure names that contain the rater, as GTV_Adler; empty if they do not; None to infer it
    # if nothing else names the raters
    structure_naming: str | None = None
    by_hand: Mapping[Path, str] = field(default_factory=dict)  # raters by file, `TRUTH_WORD` for the truth


DEFAULT_MASK_OPTIONS = MaskOptions()
"""Options for files that name raters and structures."""


@dataclass(frozen=True, eq=False)
class AttributedMask:
    """A mask with its rater."""

    file: Path
    annotator: str | None  # None for the truth
    structure: str
    item: str | None  # the image, as the file names it
    hint: str | None  # the image, guessed from the names of all files
    mask: RaterMask
    origin: str = ""  # the field of the file that serves as the annotator's name; empty for all others


def assign_raters(
    tables: Sequence[MaskTable], images: Sequence[str], reading: MaskOptions, *, truth: bool = False
) -> list[AttributedMask]:
    """Determine the rater of every mask.

    Names given by hand come first, then those of a given pattern, those in a file, and those guessed from all
    file names. A DICOM file without any annotator gets the name of its structure set or series, which must
    differ between files. If several files of one program name the same annotator for the same structure, the
    file names come first. A file with the name truth, gt or gold holds the truth. Raises `UnknownAnnotators`
    for a mask without rater. Raises `InputError` if two files hold the same annotator's mask of the same
    structure on the same image.

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
        given = assigned.get(table.path)
        if table.run and not (truth or annotator or given):
            continue
        name = names.get(table.path, NameParts())
        pattern = reading.structure_naming
        if pattern is None and not (truth or annotator or given or name.annotator):
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
            rater = TRUTH_WORD if truth else given or in_order[0] or in_order[1]
            origin = ""
            by_hand_or_file = given or (stated.annotator and table.path not in by_name)
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
    """Return field and name, by file, for DICOM files without a rater in content or name.

    All use the same field: the first that every file has and that differs between files of one image;
    otherwise each file its most distinctive field. A letter or a number in the names of files is no rater.

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
    """Write a notice of the raters that were derived from fields of DICOM files."""
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
    """Find files with the same annotator, structure and image as another file."""
    files: dict[tuple[str, str | None, str | None], set[Path]] = {}
    for table in tables:
        for mask in table.masks:
            if mask.annotator is not None:
                files.setdefault((mask.annotator, mask.structure, mask.item), set()).add(table.path)
    return {path for paths in files.values() if len(paths) > 1 for path in paths}
