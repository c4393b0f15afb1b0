"""MetaImage: .mha with attached voxels, .mhd with voxels in another file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from raterscope.algorithms.masks.grid import Grid
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.untrusted import check_shape, file_errors, open_file
from raterscope.app.formats.volumes.voxel_files import VoxelHead, find_data_file

_LONGEST_HEADER = 1 << 16  # bytes
_DATA_FILE = "ElementDataFile"
_TYPES = {
    "MET_CHAR": "i1",
    "MET_UCHAR": "u1",
    "MET_SHORT": "i2",
    "MET_USHORT": "u2",
    "MET_INT": "i4",
    "MET_UINT": "u4",
    "MET_LONG": "i4",
    "MET_ULONG": "u4",
    "MET_LONG_LONG": "i8",
    "MET_ULONG_LONG": "u8",
    "MET_FLOAT": "f4",
    "MET_DOUBLE": "f8",
}


def read_head(path: Path, file: BinaryIO | None = None) -> VoxelHead:
    """Read the header of a MetaImage, from `file` if it is already open.

    Positions are in DICOM's patient coordinate system, as written by ITK. A fourth dimension and the channels
    of a voxel count as layers. Raises `InputError` for a file that is not a MetaImage, names a data file
    elsewhere, or claims more than 2^30 voxels.
    """
    with file_errors(path):
        fields, end = _fields(path, file)
        sizes = tuple(int(word) for word in _words(fields, "DimSize"))
        if not 2 <= len(sizes) <= 4:
            raise InputError(f"has {len(sizes)} dimensions; expected 2 to 4", file=path, field="DimSize")
        if min(sizes) < 1:
            raise InputError("has no voxels", file=path)
        columns, rows, slices = (*sizes, 1)[:3]
        shape = (slices, rows, columns)
        check_shape(path, shape)
        channels = int((_words(fields, "ElementNumberOfChannels") or ["1"])[0])
        if channels < 1 or (channels > 1 and len(sizes) == 4):
            raise InputError(f"has {channels} channels; expected one", file=path)
        dtype = _dtype(path, fields)
        lengths, first = ((channels, *sizes), 1) if channels > 1 else (sizes, 0)
        packed = _is_true(fields, "CompressedData")
        data, offset = _locate_voxels(path, fields, end, math.prod(lengths) * dtype.itemsize, packed)
        grid, notices = _geometry(shape, len(sizes), fields)
        text = "BinaryData" in fields and not _is_true(fields, "BinaryData")
        return VoxelHead(
            path=path,
            data=data,
            offset=offset,
            grid=grid,
            dtype=dtype,
            lengths=lengths,
            axes=(first + 2 if len(sizes) > 2 else None, first + 1, first),
            packing="text" if text else "zlib" if packed else "",
            colours=channels if channels in (3, 4) and dtype == np.uint8 else 0,
            fields=fields,
            notices=notices,
        )


def _fields(path: Path, file: BinaryIO | None) -> tuple[dict[str, str], int]:
    """Read the lines up to the line that locates the voxels; also return its end."""
    with open_file(path, file) as stream:
        header = stream.read(_LONGEST_HEADER)
    fields: dict[str, str] = {}
    at = 0
    while _DATA_FILE not in fields:
        stop = header.find(b"\n", at)
        line = header[at:] if stop < 0 else header[at:stop]
        name, equals, value = line.decode("utf-8", errors="replace").partition("=")
        if not equals or not name.strip() or not name.isprintable():
            raise InputError("is not a MetaImage; expected lines of NAME = VALUE", file=path)
        fields[name.strip()] = value.strip()
        if stop < 0:
            break
        at = stop + 1
    missing = [name for name in ("DimSize", "ElementType", _DATA_FILE) if name not in fields]
    if missing:
        raise InputError(f"does not contain {missing[0]}", file=path)
    return fields, at


def _words(fields: dict[str, str], *names: str) -> list[str]:
    """Return the words of the first of these fields that is present."""
    return next((fields[name].split() for name in names if name in fields), [])


def _is_true(fields: dict[str, str], *names: str) -> bool:
    return [word.casefold() for word in _words(fields, *names)][:1] in (["true"], ["1"], ["t"])


def _dtype(path: Path, fields: dict[str, str]) -> np.dtype[Any]:
    name = fields["ElementType"]
    if name not in _TYPES:
        text = f"has voxels of type {plain(name)}; expected integers or real numbers"
        raise InputError(text, file=path, field="ElementType")
    high_first = _is_true(fields, "BinaryDataByteOrderMSB", "ElementByteOrderMSB")
    return np.dtype(_TYPES[name]).newbyteorder(">" if high_first else "<")


def _locate_voxels(
    path: Path, fields: dict[str, str], end: int, length: int, packed: bool
) -> tuple[Path, int]:
    """Find the file that contains the voxels, and the number of bytes before them."""
    name = fields[_DATA_FILE]
    skipped = int((_words(fields, "HeaderSize") or ["0"])[0])
    if name.upper() == "LOCAL":
        return path, end
    if name.upper().split()[:1] == ["LIST"] or "%" in name:
        raise InputError("has its slices in several data files; expected one", file=path, field=_DATA_FILE)
    data = find_data_file(path, name)
    offset = data.stat().st_size - length if skipped == -1 and not packed else skipped
    if offset < 0:
        raise InputError("does not hold as many voxels as its header claims", file=path)
    return data, offset


def _numbers(fields: dict[str, str], count: int, *names: str) -> list[float] | None:
    """Return the numbers of a field; None if there are not `count` finite ones."""
    numbers = [float(word) for word in _words(fields, *names)]
    return numbers if len(numbers) == count and all(map(math.isfinite, numbers)) else None


def _geometry(shape: tuple[int, int, int], rank: int, fields: dict[str, str]) -> tuple[Grid, tuple[str, ...]]:
    """Return the grid, and notices on what the file does not say of it; `rank`: dimensions of the file."""
    names = ("ElementSpacing", "ElementSize")
    steps = _numbers(fields, rank, *names) or [0.0 if _words(fields, *names) else 1.0] * rank
    notices = () if all(steps) else ("does not contain the size of a voxel; one millimetre is assumed",)
    steps = [abs(step) or 1.0 for step in steps]
    across, along, down = (*steps, 1.0)[:3]
    directions = _numbers(fields, rank * rank, "TransformMatrix", "Orientation", "Rotation")
    if rank == 2:
        return Grid.plain(shape, (1.0, along, across)), notices
    if directions is None:
        text = "does not contain the patient's orientation: orientation letters are not shown"
        return Grid.plain(shape, (down, along, across)), (*notices, text)
    origin = _numbers(fields, rank, "Offset", "Position", "Origin") or [0.0] * rank
    # A row of the file's matrix is the direction of an axis, which is a column of the grid's matrix.
    turned = np.array(directions).reshape(rank, rank)[:3, :3].T
    matrix = np.column_stack([turned * [across, along, down], origin[:3]])
    return Grid.from_matrix(shape, matrix), notices
