"""Scene of the masks workspace: one case as read from the study, and its volume from the files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.data import OPEN, BoolArray, Float32Array, MaskFusion, Settled
from raterscope.algorithms.masks.fusion import CaseResult, Report
from raterscope.algorithms.progress import Watch, part
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.records import Volume
from raterscope.app.formats.volumes import find_volumes, load_volume
from raterscope.app.review import Region, fold
from raterscope.app.session import Session
from raterscope.app.study import ImageEntry, RunEntry, Study, StudyError
from raterscope.app.study.masks import mask_entries, read_masks, settled_of
from raterscope.app.study.records import MaskRecord
from raterscope.app.study.references import uneven_slices_note
from raterscope.app.workspaces.navigation import missing_file_message

Box = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class Scene:
    """One case: its masks, the run shown, and the settled voxels."""

    image: ImageEntry
    path: Path | None
    missing: str  # why its file cannot be shown; empty otherwise
    # by structure: masks that the run includes; without a run, all
    masks: Mapping[str, Mapping[str, MaskRecord]]
    truth: Mapping[str, MaskRecord]  # by structure
    run: RunEntry | None
    result: CaseResult | None
    votes: Mapping[str, Votes] = field(default_factory=dict)  # by structure
    # by `Region.voxels`: settled voxels of the decisions in effect
    settled: Mapping[int, Settled] = field(default_factory=dict)
    # by structure: annotators of the case who drew nothing of the structure, in an empty mask or without a
    # mask
    nothing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def item(self) -> ImageEntry:
        """The image."""
        return self.image

    @property
    def structures(self) -> tuple[str, ...]:
        """Names of the structures, in the order of import."""
        return tuple(self.masks)

    def fusion(self, structure: str) -> MaskFusion | None:
        """Return the fusion of a structure."""
        index = self._index(structure)
        return None if self.result is None or index is None else self.result.fusions[index]

    def report(self, structure: str) -> Report | None:
        """Return the report of a structure."""
        index = self._index(structure)
        return None if self.result is None or index is None else self.result.reports[index]

    def _index(self, structure: str) -> int | None:
        names = () if self.result is None else self.result.structures()
        return names.index(structure) if structure in names else None


MasksSession = Session[Scene, None]
"""Session of the masks workspace; its part is the structure under review."""


@dataclass(frozen=True, eq=False)
class Votes:
    """Disagreement of the raters on a part of the image: 0 none, 1 half against half."""

    origin: Box
    disagreement: Float32Array


@dataclass(frozen=True, eq=False)
class Piece:
    """A part of a mask, with its origin in the image."""

    origin: Box
    values: BoolArray


@dataclass(frozen=True, eq=False)
class LoadedVolume:
    """A volume's voxels, in the study's own geometry."""

    volume: Volume

    @property
    def nbytes(self) -> int:
        """Their size in memory."""
        return self.volume.values.nbytes


def read_scene(image: int, run: int | None, study: Study, watch: Watch) -> Scene:
    """Read a scene from the study, with the result of a run or of the latest that has the case."""
    watch(0.0, "reading")
    entry = study.image(image)
    run_shown, result = study.shown.run_and_result(image, "masks", run)
    entries = mask_entries(study, image, run_shown)
    structures = dict.fromkeys(mask.structure for mask in entries if mask.annotator is not None)
    truths = dict.fromkeys(mask.structure for mask in entries if mask.annotator is None)
    masks = {name: read_masks(study, image, name, run_shown) for name in structures}
    return Scene(
        image=entry,
        path=study.locate(entry),
        missing=missing_file_message(entry, study),
        masks=masks,
        truth={name: read_masks(study, image, name, truth=True)["truth"] for name in truths},
        run=run_shown,
        result=result,
        votes={name: _votes(masks[name]) for name in structures},
        settled=settled_of(study, fold(study.decisions()).regions(image)),
        nothing={name: _nothing(name, masks) for name in structures},
    )


def _nothing(structure: str, masks: Mapping[str, Mapping[str, MaskRecord]]) -> tuple[str, ...]:
    """Name the annotators of a case who drew nothing of a structure."""
    drawn = masks[structure]
    drew = {name for name, mask in drawn.items() if mask.values.size and (mask.values > 0.5).any()}
    everybody = dict.fromkeys(name for each in masks.values() for name in each)
    return tuple(name for name in everybody if name not in drew)


def _votes(masks: Mapping[str, MaskRecord]) -> Votes:
    sized = [mask for mask in masks.values() if mask.values.size]
    if not sized:
        return Votes((0, 0, 0), np.zeros((1, 1, 1), dtype=np.float32))
    low = np.min([mask.origin for mask in sized], axis=0)
    high = np.max([np.add(mask.origin, mask.values.shape) for mask in sized], axis=0)
    share = np.zeros(tuple(high - low), dtype=np.float32)
    for mask in sized:
        corner = np.subtract(mask.origin, low)
        share[tuple(slice(at, at + n) for at, n in zip(corner, mask.values.shape, strict=True))] += (
            mask.values
        )
    share /= len(masks)
    origin = int(low[0]), int(low[1]), int(low[2])
    return Votes(origin, np.asarray(1 - np.abs(2 * share - 1), dtype=np.float32))


def read_settled(voxels: int, study: Study, watch: Watch) -> Settled:
    """Read the voxels that one decision settled."""
    watch(0.0, "reading")
    return study.settled(voxels)


def load_pixels(entry: ImageEntry, path: Path, watch: Watch) -> LoadedVolume:
    """Load a case's voxels, after a check of the geometry."""
    volumes = find_volumes(path, part(watch, 0.0, 0.2))
    if entry.identifier:
        volumes = tuple(volume for volume in volumes if volume.identifier == entry.identifier)
    matching = [volume for volume in volumes if volume.grid.same_as(entry.lattice)]
    if not matching:
        shapes = " or ".join(volume.grid.in_words() for volume in volumes[:2]) or "no volume"
        raise StudyError(
            f"{plain(entry.name)} is no longer the volume that was added: expected "
            f"{entry.lattice.in_words()}, found {shapes}{uneven_slices_note(entry, volumes)}",
            file=path,
        )
    try:
        return LoadedVolume(load_volume(matching[0], part(watch, 0.2, 1.0)))
    except MemoryError as error:
        raise InputError("is too large for this computer's memory", file=path) from error


def consensus_of(scene: Scene, structure: str, regions: list[Region]) -> Piece | None:
    """Return the consensus with the expert's decisions applied; None without either."""
    fusion = scene.fusion(structure)
    numbers = [region.voxels for region in regions if region.subject.structure == structure]
    settled = [scene.settled[voxels] for voxels in numbers if voxels is not None and voxels in scene.settled]
    pieces: list[tuple[Box, tuple[int, ...]]] = [(piece.origin, piece.value.shape) for piece in settled]
    if fusion is not None:
        pieces.append((fusion.origin, fusion.shape))
    if not pieces:
        return None
    low = np.min([origin for origin, _ in pieces], axis=0)
    high = np.max([np.add(origin, shape) for origin, shape in pieces], axis=0)
    origin = int(low[0]), int(low[1]), int(low[2])
    values: NDArray[np.bool_] = np.zeros(tuple(high - low), dtype=np.bool_)
    if fusion is not None:
        corner = np.subtract(fusion.origin, origin)
        box = tuple(slice(at, at + n) for at, n in zip(corner, fusion.shape, strict=True))
        values[box] = fusion.mask[0]
    for piece in settled:  # the latest one decides
        corner = np.subtract(piece.origin, origin)
        box = tuple(slice(at, at + n) for at, n in zip(corner, piece.value.shape, strict=True))
        np.copyto(values[box], piece.value == 1, where=piece.value != OPEN)
    return Piece(origin, values)
