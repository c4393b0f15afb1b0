"""OME-Zarr images (versions 0.4 and 0.5): a level of a volume, read chunk by chunk into a NIfTI file.

References
----------
Moore J. et al. OME-Zarr: a cloud-optimized bioimaging file format with international community support.
Histochemistry and Cell Biology 160, 223-251 (2023). doi:10.1007/s00418-023-02209-1
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from raterscope.algorithms.progress import Watch
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.output_files import draft_for

MAX_VOXELS = 1 << 28
"""Maximum number of voxels of a level; of a larger image, a lower resolution is read."""

_MAX_CHUNK = 1 << 30
_SPACE = ("z", "y", "x")
_MILLIMETRES = {
    "angstrom": 1e-7, "nanometer": 1e-6, "micrometer": 1e-3, "millimeter": 1.0, "centimeter": 10.0,
    "meter": 1e3,
}  # fmt: skip
_CODECS = ("blosc", "zlib", "gzip", "zstd", "lz4", "bz2", "lzma", "bytes", "transpose", "crc32c", "sharding")


def convert(address: str, target: Path, watch: Watch) -> None:
    """Read an image and write it as NIfTI, completely or not at all.

    Of several times or channels the first is read. The axes x, y and z are read as left, posterior and
    superior, as in DICOM, because the format has no anatomical directions.

    Raises `InputError` if the image is not an OME-Zarr volume, or is too large in every level.
    """
    try:
        import zarr
    except ImportError as error:
        raise InputError("reading OME-Zarr needs zarr; `pip install raterscope[remote]`") from error
    import nibabel

    try:
        group = zarr.open_group(address, mode="r")
        attributes = dict(group.attrs)
    except FileNotFoundError as error:
        raise InputError("there is no OME-Zarr image", file=address) from error
    described = attributes.get("ome", attributes)
    try:
        scales = described["multiscales"][0]
        axes = [str(axis["name"]).casefold() for axis in scales["axes"]]
        units = [str(axis.get("unit", "millimeter")) for axis in scales["axes"]]
        array, level = _choose(group, scales["datasets"])
        scale, origin = _placement(scales, level, len(axes))
    except (LookupError, TypeError, AttributeError) as error:
        raise InputError(
            "is not an OME-Zarr image: multiscales are missing or damaged", file=address
        ) from error
    if array.ndim != len(axes) or not set(_SPACE) <= set(axes):
        raise InputError(f"has the axes {plain(', '.join(axes))}; expected z, y, x", file=address)
    _check(array, address)
    axis_of = {axis: axes.index(axis) for axis in _SPACE}
    voxels = np.empty([array.shape[axis_of[axis]] for axis in _SPACE], array.dtype.newbyteorder("="))
    order = np.argsort(np.argsort([axis_of[axis] for axis in _SPACE]))
    step = max(1, array.chunks[axis_of["z"]])
    for start in range(0, len(voxels), step):
        where: list[Any] = [0] * array.ndim
        where[axis_of["z"]] = slice(start, start + step)
        where[axis_of["y"]] = where[axis_of["x"]] = slice(None)
        block = np.asarray(array[tuple(where)])
        voxels[start : start + step] = block.transpose(order)
        watch(start / len(voxels), f"Reading {target.name}")
    millimetres = [_MILLIMETRES.get(units[axis_of[axis]], 1.0) for axis in _SPACE]
    affine = np.eye(4)
    for row, axis, sign in ((0, "x", -1), (1, "y", -1), (2, "z", 1)):
        unit = millimetres[_SPACE.index(axis)]
        affine[row, row] = sign * scale[axis_of[axis]] * unit
        affine[row, 3] = sign * origin[axis_of[axis]] * unit
    if voxels.dtype == bool:
        voxels = voxels.astype(np.uint8)
    draft = draft_for(target)
    image = nibabel.Nifti1Image(voxels.T, affine, dtype=voxels.dtype)
    try:
        nibabel.save(image, draft)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _choose(group: Any, levels: Sequence[dict[str, Any]]) -> tuple[Any, dict[str, Any]]:
    """Return the largest level that can be read, and its description."""
    for level in levels:
        array = group[str(level["path"])]
        if math.prod(array.shape[-3:]) <= MAX_VOXELS:
            return array, level
    raise InputError(f"has more than {MAX_VOXELS:,} voxels in every level")


def _placement(scales: dict[str, Any], level: dict[str, Any], count: int) -> tuple[list[float], list[float]]:
    """Return the spacing and the position of the first voxel along each axis."""
    scale, origin = np.ones(count), np.zeros(count)
    for step in (*level["coordinateTransformations"], *scales.get("coordinateTransformations", ())):
        if step["type"] == "scale":
            factor = np.asarray(step["scale"], float)
            scale, origin = scale * factor, origin * factor
        elif step["type"] == "translation":
            origin = origin + np.asarray(step["translation"], float)
    if (
        scale.shape != (count,)
        or not np.all(np.isfinite(scale) & (scale > 0))
        or not np.all(np.isfinite(origin))
    ):
        raise LookupError
    return scale.tolist(), origin.tolist()


def _check(array: Any, address: str) -> None:
    """Refuse codecs that run code, types other than numbers, and chunks that would fill the memory."""
    metadata = array.metadata
    codecs = [*(getattr(metadata, "filters", None) or ()), *getattr(metadata, "codecs", ())]
    codecs += [codec for codec in (getattr(metadata, "compressor", None),) if codec is not None]
    for codec in codecs:
        name = type(codec).__name__.casefold()
        if not name.startswith(_CODECS):
            raise InputError(f"is compressed by {plain(name)}, which is not read", file=address)
    if array.dtype.kind not in "buif":
        raise InputError(f"holds {plain(array.dtype)}; expected numbers", file=address)
    if math.prod(array.chunks) * array.dtype.itemsize > _MAX_CHUNK:
        raise InputError("has chunks of more than 1 GB", file=address)
