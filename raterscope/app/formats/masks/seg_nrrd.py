"""3D Slicer's .seg.nrrd: named segments in one or several layers of labels."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.progress import Watch, part, silent, steps_of
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.masks.collector import describe_unknown, make_mask, split_labels
from raterscope.app.formats.masks.deidentify import Deidentifier
from raterscope.app.formats.masks.naming import NO_NAMES, NameParts
from raterscope.app.formats.masks.terminology import (
    Structure,
    require_masks,
    terminology_coding,
    terminology_tag,
)
from raterscope.app.formats.output_files import write_together
from raterscope.app.formats.records import MaskTable, RaterMask, VolumeFile
from raterscope.app.formats.untrusted import text_of
from raterscope.app.formats.volumes.voxel_files import VoxelHead, read_all

_FIELD = re.compile(r"Segment(\d{1,6})_(Name|LabelValue|Layer|Color|Tags)")
_MAX_SEGMENTS = 10_000


def has_segments(head: VoxelHead) -> bool:
    """Return whether an NRRD file has segments, by its header."""
    return any(_FIELD.fullmatch(str(key)) for key in head.fields)


def read_seg_nrrd(head: VoxelHead, names: NameParts = NO_NAMES, watch: Watch = silent) -> MaskTable:
    """Read each segment as a structure.

    The label of a segment without one is its number plus one. In older files, in which segments could not
    share a layer, each segment is a layer. Raises `InputError` for a file without segments, and for a segment
    in a missing layer.
    """
    path = head.path
    segments = _segments(path, head.fields)
    layers = read_all(head, part(watch, 0.0, 0.7))
    if layers.dtype.kind not in "iu":
        layers = np.rint(layers).astype(np.int64)
    placed: dict[int, dict[int, int]] = {}
    for number, segment in segments.items():
        is_layer = "LabelValue" not in segment and len(layers) > 1
        layer = _number(path, segment.get("Layer"), number if is_layer else 0)
        if not 0 <= layer < len(layers):
            raise InputError(
                f"has {len(layers)} layers; expected one for each segment", file=path,
                field=f"Segment{number}_Layer",
            )  # fmt: skip
        label = _number(path, segment.get("LabelValue"), 1 if len(layers) > 1 else number + 1)
        placed.setdefault(layer, {})[number] = label
    masks_by_number: dict[int, RaterMask] = {}
    unknown: set[int] = set()
    for (layer, labels), step in steps_of(part(watch, 0.7, 1.0), placed.items()):
        masks = split_labels(layers[layer], list(labels.values()), step)
        marked: dict[int, int] = {}
        for number, (label, origin, mask) in zip(labels, masks, strict=True):
            name = text_of(segments[number].get("Name", "")) or f"segment {number + 1}"
            coding = terminology_coding(segments[number].get("Tags", ""), segments[number].get("Color", ""))
            masks_by_number[number] = make_mask(
                names.annotator, names.item, name, head.grid, mask, origin, coding
            )
            marked[label] = int(np.count_nonzero(mask)) if label else 0
        if sum(marked.values()) < np.count_nonzero(layers[layer]):
            unknown |= set(np.unique(layers[layer]).tolist()) - {0, *marked}
    notices = [f"The file {notice}." for notice in head.notices]
    if unknown:
        notices.append(describe_unknown("label", unknown))
    masks_read = tuple(masks_by_number[number] for number in sorted(masks_by_number))
    return MaskTable(path, masks_read, tuple(notices))


def _segments(path: Path, header: Mapping[str, Any]) -> dict[int, dict[str, str]]:
    segments: dict[int, dict[str, str]] = {}
    for key, value in header.items():
        match = _FIELD.fullmatch(str(key))
        if match:
            segments.setdefault(int(match[1]), {})[match[2]] = str(value)
    if not segments or len(segments) > _MAX_SEGMENTS:
        raise InputError(f"has {len(segments):,} segments; expected some", file=path)
    return segments


def _number(path: Path, text: str | None, default: int) -> int:
    if text is None:
        return default
    try:
        return int(text)
    except ValueError:
        words = f'has "{plain(text, 20)}"; expected a number of a layer or label'
        raise InputError(words, file=path) from None


_MAX_LABELS = 255


def write_seg_nrrd(
    path: Path,
    structures: Sequence[Structure],
    grid: Grid,
    *,
    source: VolumeFile | None = None,  # noqa: ARG001 - common to all writers of masks
    deidentify: Deidentifier | None = None,  # noqa: ARG001 - there is nothing to remove
    description: str = "",
) -> list[Path]:
    """Write each mask as a segment; segments share a layer as long as they do not overlap.

    The file holds only names, colours, voxels and geometry; there is nothing to de-identify. Its header is
    ASCII: accents of names are dropped. See `export.write_masks`.
    """
    import nrrd

    require_masks(path, structures, "NIfTI or DICOM SEG")
    file = path if path.name.casefold().endswith(".nrrd") else path.with_name(path.name + ".seg.nrrd")
    layers, placed = _layers(structures, grid)
    voxels = layers[0].T if len(layers) == 1 else np.stack(layers).transpose(0, 3, 2, 1)
    header = _header(structures, grid, placed, len(layers) > 1)
    if description:
        header["description"] = _ascii(description)
    with write_together([file]) as (draft,):
        nrrd.write(str(draft), np.asfortranarray(voxels), header, index_order="F")
    return [file]


def _layers(
    structures: Sequence[Structure], grid: Grid
) -> tuple[list[NDArray[np.uint8]], list[tuple[int, int]]]:
    """Put each mask into the first layer without overlap; return its layer and label."""
    layers: list[NDArray[np.uint8]] = []
    used: list[int] = []
    placed = []
    for structure in structures:
        mask = np.asarray(structure.values, dtype=np.bool_)
        free = (at for at, layer in enumerate(layers) if used[at] < _MAX_LABELS and not layer[mask].any())
        layer = next(free, len(layers))
        if layer == len(layers):
            layers.append(np.zeros(grid.shape, dtype=np.uint8))
            used.append(0)
        used[layer] += 1
        layers[layer][mask] = used[layer]
        placed.append((layer, used[layer]))
    return layers, placed


def _header(
    structures: Sequence[Structure], grid: Grid, placed: Sequence[tuple[int, int]], layered: bool
) -> dict[str, Any]:
    directions = grid.matrix[:3, :3].T
    if layered:
        directions = np.vstack([np.full(3, np.nan), directions])
    header: dict[str, Any] = {
        "space": "left-posterior-superior",
        "kinds": (["list"] if layered else []) + ["domain"] * 3,
        "space directions": directions,
        "space origin": grid.matrix[:3, 3],
        "encoding": "gzip",
    }
    if not grid.calibrated:
        del header["space"], header["space origin"], header["space directions"]
        header["spacings"] = ([np.nan] if layered else []) + [1.0, 1.0, 1.0]
    slices, rows, columns = grid.shape
    extent = f"0 {columns - 1} 0 {rows - 1} 0 {slices - 1}"
    for number, (structure, (layer, label)) in enumerate(zip(structures, placed, strict=True)):
        prefix = f"Segment{number}_"
        header[prefix + "ID"] = f"Segment_{number + 1}"
        header[prefix + "Name"] = _ascii(structure.title) or f"segment {number + 1}"
        header[prefix + "Color"] = " ".join(f"{value / 255:.6f}" for value in structure.shade)
        header[prefix + "Extent"] = extent
        header[prefix + "Layer"] = str(layer)
        header[prefix + "LabelValue"] = str(label)
        header[prefix + "Tags"] = terminology_tag(structure.coding)
    header["Segmentation_MasterRepresentation"] = "Binary labelmap"
    header["Segmentation_ContainedRepresentationNames"] = "Binary labelmap|"
    header["Segmentation_ReferenceImageExtentOffset"] = "0 0 0"
    return header


def _ascii(name: str) -> str:
    letters = normalize("NFKD", plain(name)).encode("ascii", "ignore").decode()
    return letters.replace("\\", "/").strip()
