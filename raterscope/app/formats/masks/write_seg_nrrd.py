"""The .seg.nrrd of 3D Slicer, with overlapping segments in layers of their own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.grid import Grid
from raterscope.app.errors import plain
from raterscope.app.formats.masks.coded import terminology_tag
from raterscope.app.formats.masks.deidentify import Deidentifier
from raterscope.app.formats.masks.structures import Structure, refuse_maps
from raterscope.app.formats.volumes.records import VolumeFile
from raterscope.app.formats.whole import drafting

__all__ = ["write_seg_nrrd"]

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
    with drafting([file]) as (draft,):
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
