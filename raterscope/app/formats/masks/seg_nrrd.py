"""The .seg.nrrd of 3D Slicer: named segments, in one or several layers of labels."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.masks.collector import by_label, part_of
from raterscope.app.formats.masks.deidentify import Deidentifier
from raterscope.app.formats.masks.naming import NOTHING, Named
from raterscope.app.formats.masks.terminology import (
    Structure,
    refuse_maps,
    terminology_coding,
    terminology_tag,
)
from raterscope.app.formats.output_files import write_together
from raterscope.app.formats.records import MaskTable, RaterMask, VolumeFile
from raterscope.app.formats.untrusted import text_of
from raterscope.app.formats.volumes.voxel_files import VoxelHead, read_all

__all__ = [
    "has_segments",
    "read_seg_nrrd",
    "write_seg_nrrd",
]


_FIELD = re.compile(r"Segment(\d{1,6})_(Name|LabelValue|Layer|Color|Tags)")
_MOST_SEGMENTS = 10_000


def has_segments(head: VoxelHead) -> bool:
    """Tell by its header whether an NRRD file has segments."""
    return any(_FIELD.fullmatch(str(key)) for key in head.fields)


def read_seg_nrrd(head: VoxelHead, names: Named = NOTHING, watch: Watch = silent) -> MaskTable:
    """Read each segment as a structure.

    A segment without a label has its number plus one, as files had before segments could share a layer:
    there, layer and segment were one.

    Raises
    ------
    InputError
        For a file without segments, and for a segment in a layer that is not there.
    """
    path = head.path
    segments = _segments(path, head.fields)
    layers = read_all(head, part(watch, 0.0, 0.7))
    if layers.dtype.kind not in "iu":
        layers = np.rint(layers).astype(np.int64)
    placed: dict[int, dict[int, int]] = {}
    for number, segment in segments.items():
        alone = "LabelValue" not in segment and len(layers) > 1
        layer = _number(path, segment.get("Layer"), number if alone else 0)
        if not 0 <= layer < len(layers):
            raise InputError(
                f"has {len(layers)} layers; expected one for each segment", file=path,
                field=f"Segment{number}_Layer",
            )  # fmt: skip
        label = _number(path, segment.get("LabelValue"), 1 if len(layers) > 1 else number + 1)
        placed.setdefault(layer, {})[number] = label
    found: dict[int, RaterMask] = {}
    for order, (layer, labels) in enumerate(placed.items()):
        step = part(watch, 0.7 + 0.3 * order / len(placed), 0.7 + 0.3 * (order + 1) / len(placed))
        masks = by_label(layers[layer], list(labels.values()), step)
        for number, (_, origin, mask) in zip(labels, masks, strict=True):
            name = text_of(segments[number].get("Name", "")) or f"segment {number + 1}"
            coding = terminology_coding(segments[number].get("Tags", ""), segments[number].get("Color", ""))
            found[number] = part_of(names.annotator, names.item, name, head.grid, mask, origin, coding)
    notices = tuple(f"{plain(path.name)}: {one}." for one in head.notices)
    return MaskTable(path, tuple(found[number] for number in sorted(found)), notices)


def _segments(path: Path, header: Mapping[str, Any]) -> dict[int, dict[str, str]]:
    segments: dict[int, dict[str, str]] = {}
    for key, value in header.items():
        match = _FIELD.fullmatch(str(key))
        if match:
            segments.setdefault(int(match[1]), {})[match[2]] = str(value)
    if not segments or len(segments) > _MOST_SEGMENTS:
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


_MOST_LABELS = 255


def write_seg_nrrd(
    path: Path,
    structures: Sequence[Structure],
    grid: Grid,
    *,
    source: VolumeFile | None = None,  # noqa: ARG001 - as every writer of masks takes it
    deidentify: Deidentifier | None = None,  # noqa: ARG001 - there is nothing to take out
    description: str = "",
) -> list[Path]:
    """Write each mask as a segment; segments share a layer as long as they do not overlap.

    The file tells no more than names, colours, voxels and geometry, so that there is nothing to take out.
    Its header is ASCII: a name's accents are left out. See `export.write_masks`.
    """
    import nrrd

    refuse_maps(path, structures, "NIfTI or DICOM SEG")
    file = path if path.name.casefold().endswith(".nrrd") else path.with_name(path.name + ".seg.nrrd")
    layers, placed = _layers(structures, grid)
    voxels = layers[0].T if len(layers) == 1 else np.stack(layers).transpose(0, 3, 2, 1)
    with write_together([file]) as (draft,):
        nrrd.write(
            str(draft), np.asfortranarray(voxels),
            _header(structures, grid, placed, len(layers) > 1) | _described(description),
            index_order="F",
        )  # fmt: skip
    return [file]


def _layers(
    structures: Sequence[Structure], grid: Grid
) -> tuple[list[NDArray[np.uint8]], list[tuple[int, int]]]:
    """Put each mask into the first layer where nothing is in its way; gives its layer and label."""
    layers: list[NDArray[np.uint8]] = []
    used: list[int] = []
    placed = []
    for one in structures:
        mask = np.asarray(one.values, dtype=np.bool_)
        free = (at for at, layer in enumerate(layers) if used[at] < _MOST_LABELS and not layer[mask].any())
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
    for number, (one, (layer, label)) in enumerate(zip(structures, placed, strict=True)):
        prefix = f"Segment{number}_"
        header[prefix + "ID"] = f"Segment_{number + 1}"
        header[prefix + "Name"] = _ascii(one.title) or f"segment {number + 1}"
        header[prefix + "Color"] = " ".join(f"{value / 255:.6f}" for value in one.shade)
        header[prefix + "Extent"] = extent
        header[prefix + "Layer"] = str(layer)
        header[prefix + "LabelValue"] = str(label)
        header[prefix + "Tags"] = terminology_tag(one.coding)
    header["Segmentation_MasterRepresentation"] = "Binary labelmap"
    header["Segmentation_ContainedRepresentationNames"] = "Binary labelmap|"
    header["Segmentation_ReferenceImageExtentOffset"] = "0 0 0"
    return header


def _described(description: str) -> dict[str, Any]:
    return {"description": _ascii(description)} if description else {}


def _ascii(name: str) -> str:
    letters = normalize("NFKD", plain(name)).encode("ascii", "ignore").decode()
    return letters.replace("\\", "/").strip()
