"""Masks and structures in a study: annotations by image, and the input of a fusion."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.data import OPEN, Masks, Settled, box_around, overlap, slices_of
from raterscope.algorithms.masks.disputes import Dispute
from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.masks.packing import Voxels, voxels_of
from raterscope.algorithms.masks.voting import with_margin
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.coding import NOTHING_CODED, Coding, merged
from raterscope.app.errors import StudyError, plain
from raterscope.app.review import Region, current_names, described_structures, known_voxels
from raterscope.app.study.arrays import read_object, write_object
from raterscope.app.study.imports import describe_spellings, number_annotators, number_import
from raterscope.app.study.kinds import mismatch_of_mask
from raterscope.app.study.records import ImageEntry, MaskRecord, RunEntry
from raterscope.app.study.references import ImageNames, add_grid, read_image_entries
from raterscope.app.study.study import Study
from raterscope.text import counted


def imported_codings(study: Study) -> dict[str, Coding]:
    """Read the coding of each structure from the imported files, by current names."""
    codings: dict[str, Coding] = {}
    names = study.shown.names("masks")
    for name, coding in stored_codings(study).items():
        present = names.get(name, name)
        codings[present] = merged(codings.get(present, NOTHING_CODED), coding)
    return codings


def stored_codings(study: Study) -> dict[str, Coding]:
    """Read the coding of each structure by its name in the files."""
    with study.reading() as connection:
        rows = connection.execute("SELECT name, coding FROM structures ORDER BY name").fetchall()
    return {name: _coding_of(study, name, text) for name, text in rows}


def chosen_codings(study: Study) -> dict[str, Coding]:
    """Read the codings set by the expert's decisions in effect."""
    return described_structures(study.decisions(), study.review_state())


def store_codings(study: Study, connection: sqlite3.Connection, codings: Mapping[str, Coding]) -> None:
    """Store a file's codings of structures within the current transaction; see `coding.merged`."""
    before = stored_codings(study)
    for name, coding in codings.items():
        combined = merged(before.get(name, NOTHING_CODED), coding)
        if combined != before.get(name, NOTHING_CODED):
            connection.execute(
                "INSERT OR REPLACE INTO structures(name, coding) VALUES (?, ?)",
                (name, msgspec.json.encode(combined).decode()),
            )


def _coding_of(study: Study, name: str, text: str) -> Coding:
    try:
        return msgspec.json.decode(text, type=Coding)
    except (ValueError, msgspec.MsgspecError) as error:
        words = f"is damaged: the coding of the structure {plain(name)} cannot be read"
        raise StudyError(words, file=study.path) from error


TRUTH = -1
"""Annotator's number that represents the ground truth."""

Box = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class PlacedMask:
    """Mask with known image and annotator, ready to be stored."""

    image: int
    annotator: str | None  # none for the truth
    structure: str
    origin: Box  # (slice, row, column)
    voxels: Voxels  # the values, perhaps packed
    coding: Coding = NOTHING_CODED  # code of the structure in the file

    @property
    def values(self) -> NDArray[np.bool_] | NDArray[np.float32]:
        """Mask or probabilities, (Z, Y, X), cropped; without voxels if nothing was marked."""
        return voxels_of(self.voxels)


@dataclass(frozen=True)
class MaskEntry:
    """Mask in the study: `annotator` is None for ground truth, `voxels` is the number of voxels above 0.5."""

    image: int
    annotator: str | None
    structure: str
    voxels: int


def add_case(study: Study, name: str, grid: Grid, names: ImageNames | None = None) -> ImageEntry:
    """Add an image that is known only from its masks, unless it exists with this name and grid.

    `names`: lookup of the study's images, for a caller that adds many; the case is added to it.
    """
    with study.change() as connection:
        if names is None:
            names = ImageNames(read_image_entries(connection, study.path))
        existing = names.find(name)
        if existing is not None and existing.lattice.same_as(grid):
            return existing
        entry = add_grid(connection, study.path, _free(connection, name), grid)
    names.add(entry)
    return entry


def add_masks(
    study: Study, masks: Sequence[PlacedMask], file: str, notices: Sequence[str] = (), watch: Watch = silent
) -> str:
    """Import the masks of a file, completely or not at all, and summarise what was stored.

    They replace earlier masks. Raises `StudyError` for a mask on another grid than its image.
    """
    study.forget_annotators()
    renamed = study.shown.names("masks")
    with study.change() as connection:
        shapes = {
            entry.id: entry.lattice.shape
            for image in {mask.image for mask in masks}
            for entry in read_image_entries(connection, study.path, image)
        }
        number = number_import(connection, "masks", file, notices)
        raters = [mask.annotator for mask in masks if mask.annotator is not None]
        notices = [*notices, *describe_spellings(connection, raters)]
        annotator_ids = number_annotators(connection, raters)
        replaced = empty = 0
        for step, mask in enumerate(masks):
            watch(step / len(masks), f"storing mask {step + 1:,} of {len(masks):,}")
            full_shape = shapes[mask.image]
            record = record_of(mask)
            empty += not record.values.any()
            ends = [start + n for start, n in zip(mask.origin, record.values.shape, strict=True)]
            if min(mask.origin) < 0 or any(np.array(ends) > full_shape):
                raise StudyError(f"the mask of {plain(mask.structure)} does not lie on its image", file=file)
            annotator_id = TRUTH if mask.annotator is None else annotator_ids[mask.annotator]
            key = (mask.image, mask.structure, annotator_id)
            present = renamed.get(mask.structure, mask.structure)
            earlier = connection.execute(
                "SELECT DISTINCT structure FROM masks WHERE image = ? AND annotator = ? AND import < ?",
                (mask.image, annotator_id, number),
            ).fetchall()
            replaced += any(renamed.get(name, name) == present for (name,) in earlier)
            voxels = int(np.count_nonzero(record.values > 0.5))
            connection.execute(
                "INSERT OR REPLACE INTO masks(image, structure, annotator, import, voxels, object) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (*key, number, voxels, write_object(connection, record)),
            )
        store_codings(study, connection, _codings(masks))
    return _in_words(masks, empty, replaced, notices)


def _codings(masks: Sequence[PlacedMask]) -> dict[str, Coding]:
    codings: dict[str, Coding] = {}
    for mask in masks:
        if mask.coding != NOTHING_CODED:
            codings[mask.structure] = merged(codings.get(mask.structure, NOTHING_CODED), mask.coding)
    return codings


def mask_entries(study: Study, image: int | None = None, run: RunEntry | None = None) -> list[MaskEntry]:
    """List the masks, image by image, with structures and annotators in the order of import.

    `run`: list only masks that this run fused, without later imports, excluded annotators and programs.
    """
    names, renamed = study.annotators(), study.shown.names("masks")
    excluded = set() if run is None else {*run.excluded, *run.programs}
    with study.reading() as connection:
        rows = connection.execute(
            "SELECT masks.image, masks.annotator, masks.structure, voxels FROM masks JOIN ("
            "SELECT image, structure, annotator, max(import) AS last, min(import) AS first FROM masks "
            "WHERE (?1 IS NULL OR image = ?1) AND import <= ?2 GROUP BY image, structure, annotator) AS key "
            "ON masks.image = key.image AND masks.structure = key.structure "
            "AND masks.annotator = key.annotator AND masks.import = last "
            "ORDER BY masks.image, first, masks.structure, masks.annotator",
            (image, _last(run)),
        ).fetchall()
    return [
        MaskEntry(
            image_id,
            None if annotator_id == TRUTH else _name(study, names, annotator_id),
            renamed.get(structure, structure),
            voxels,
        )
        for image_id, annotator_id, structure, voxels in rows
        if annotator_id == TRUTH or _name(study, names, annotator_id) not in excluded
    ]


def read_masks(
    study: Study, image: int, structure: str, run: RunEntry | None = None, *, truth: bool = False
) -> dict[str, MaskRecord]:
    """Read every annotator's latest mask of a structure, in the annotators' order.

    `run`: see `mask_entries`; of joined names, the mask of the first counts. `truth`: return the truth
    instead, under the name "truth"; empty if there is none.
    """
    names, frame = study.annotators(), study.image(image).lattice.shape
    excluded = set() if run is None else {*run.excluded, *run.programs}
    renamed = study.shown.names("masks")
    originals = [name for name, new in renamed.items() if new == structure]
    if structure not in renamed:
        originals.append(structure)
    with study.reading() as connection:
        rows = connection.execute(
            "SELECT annotator, object, max(import) FROM masks WHERE image = ? "
            f"AND structure IN ({', '.join('?' * len(originals))}) "
            "AND import <= ? AND (annotator = ?) = ? GROUP BY annotator ORDER BY annotator",
            (image, *originals, _last(run), TRUTH, truth),
        ).fetchall()
        records = {
            "truth" if truth else _name(study, names, annotator_id): read_object(
                connection, number, MaskRecord, study.path
            )
            for annotator_id, number, _ in rows
        }
    for name, record in records.items():
        wrong = mismatch_of_mask(record, frame)
        if wrong is not None:
            raise StudyError(
                f"is damaged: masks, {plain(structure)} by {plain(name)} on image {image}: {wrong}",
                file=study.path,
            )
    excluded |= set() if run is None else current_names(records, run.aliases).keys()
    return {name: record for name, record in records.items() if name not in excluded}


def read_program_masks(study: Study, image: int, structure: str, run: RunEntry) -> dict[str, MaskRecord]:
    """Read the masks of a run's programs, without excluded programs; see `read_masks`."""
    if not run.programs:
        return {}
    masks = read_masks(study, image, structure, replace(run, excluded=(), programs=()))
    used = set(run.programs).difference(run.excluded)
    return {name: mask for name, mask in masks.items() if name in used}


def refuse_join(study: Study, names: Sequence[str]) -> str:
    """Explain why names cannot be one annotator (two drew the same structure); empty if they can.

    Other annotations under two names count as repeated annotations of one annotator.
    """
    known = {name: number for number, name in enumerate(study.annotators())}
    numbers = [known[name] for name in dict.fromkeys(names) if name in known]
    with study.reading() as connection:
        rows = connection.execute(
            "SELECT DISTINCT image, structure, annotator FROM masks "
            f"WHERE annotator IN ({', '.join('?' * len(numbers))})",
            numbers,
        ).fetchall()
    renamed, drawn = study.shown.names("masks"), dict[tuple[int, str], int]()
    for image, structure, annotator in rows:
        key = image, renamed.get(structure, structure)
        if drawn.setdefault(key, annotator) != annotator:
            break
    else:
        return ""
    where = f"{plain(key[1], 60)} on {plain(study.image(key[0]).name, 60)}"
    return f"Two of these names have a mask of {where}: one annotator cannot have two masks of a structure."


def settle_by(dispute: Dispute, origin: Sequence[int], values: NDArray[Any]) -> Settled:
    """Settle the voxels of a disputed region by a mask, whose first voxel is `origin` in the image."""
    inside = np.zeros(dispute.shape, dtype=bool)
    in_region, in_mask = overlap(dispute.origin, dispute.shape, origin, values.shape)
    inside[in_region] = values[in_mask] > 0.5
    return Settled(dispute.origin, np.where(dispute.voxels(), inside, OPEN).astype(np.int8))


def settled_of(study: Study, regions: Sequence[Region]) -> dict[int, Settled]:
    """Read the voxels settled by decisions, by `Region.voxels`."""
    return {region.voxels: study.settled(region.voxels) for region in regions if region.voxels is not None}


def assemble(
    records: Mapping[str, MaskRecord],
    grid: Grid,
    structure: str,
    *,
    margin: float,
    regions: Sequence[Region] = (),
    settled: Mapping[int, Settled] | None = None,
    check: Callable[[], object] = lambda: None,
) -> Masks:
    """Combine the masks of one structure on their common bounding box.

    `records`: at least one.
    `grid`: grid of the whole image.
    `margin`: space around the masks, mm.
    `regions`, `settled`: decisions of the expert, see `known_voxels`; the box contains them too.
    `check`: called before each mask; it may raise an exception to stop.
    """
    pieces = [(record.origin, record.values.shape) for record in records.values() if record.values.size]
    pieces += [
        (settled[record.voxels].origin, settled[record.voxels].value.shape)
        for record in regions
        if settled is not None and record.voxels is not None and record.subject.structure == structure
    ]
    low, high = _box(pieces, grid, margin)
    shape = high[0] - low[0], high[1] - low[1], high[2] - low[2]
    soft = any(record.probability is not None for record in records.values())
    full_shape = (len(records), *shape)
    values: Any = np.zeros(full_shape, dtype=np.float32) if soft else np.zeros(full_shape, dtype=np.bool_)
    for layer, record in zip(values, records.values(), strict=True):
        check()
        if record.values.size:
            layer[slices_of(record.origin, record.values.shape, low)] = record.values
    known = known_voxels(regions, settled or {}, structure, low, shape)
    return Masks(
        values=values,
        annotators=tuple(records),
        spacing=grid.spacing,
        slice_positions=grid.uneven_positions,
        structures=(structure,),
        origin=low,
        frame=grid.shape,
        known=known,
    )


def _box(pieces: Sequence[tuple[Box, tuple[int, ...]]], grid: Grid, margin: float) -> tuple[Box, Box]:
    """Return the bounding box with a margin; without boxes, the central voxel."""
    first, shape = box_around(pieces or [([n // 2 for n in grid.shape], (1, 1, 1))])
    past = [at + n for at, n in zip(first, shape, strict=True)]
    begin, end = with_margin(first, past, grid.spacing, margin, grid.shape, grid.uneven_positions)
    low, high = np.maximum(np.array(begin) - 1, 0), np.minimum(np.array(end) + 1, grid.shape)
    return (int(low[0]), int(low[1]), int(low[2])), (int(high[0]), int(high[1]), int(high[2]))


def record_of(mask: PlacedMask) -> MaskRecord:
    """Return a mask in its stored form."""
    values = mask.values
    if values.dtype == np.bool_:
        return MaskRecord(mask.origin, values.astype(np.bool_, copy=False), None)
    return MaskRecord(mask.origin, None, values.astype(np.float32, copy=False))


def _free(connection: sqlite3.Connection, name: str) -> str:
    while connection.execute("SELECT 1 FROM images WHERE name = ?", (name,)).fetchone():
        name += "'"
    return name


def _name(study: Study, names: Sequence[str], number: int) -> str:
    if not 0 <= number < len(names):
        raise StudyError("is damaged: a mask has no annotator", file=study.path)
    return names[number]


def _last(run: RunEntry | None) -> int:
    return 2**62 if run is None or run.imported is None else run.imported


def _in_words(masks: Sequence[PlacedMask], empty: int, replaced: int, notices: Sequence[str]) -> str:
    truths = sum(mask.annotator is None for mask in masks)
    raters = len({mask.annotator for mask in masks if mask.annotator is not None})
    text = counted(len(masks), "true mask" if truths == len(masks) and truths else "mask")
    text += f" on {counted(len({mask.image for mask in masks}), 'image')}"
    text += f" by {counted(raters, 'annotator')}" if raters else ""
    remarks = [f"{empty:,} of them empty"] if empty else []
    remarks += [f"{replaced:,} replacing an earlier mask"] if replaced else []
    return " ".join([text + (f" ({'; '.join(remarks)})" if remarks else "") + ".", *notices])
