"""NRRD: .nrrd with attached voxels, .nhdr with voxels in another file."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.grid import Grid
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.untrusted import check_shape, file_errors, open_file
from raterscope.app.formats.volumes.voxel_files import VoxelHead, find_data_file

_LONGEST_HEADER = 1 << 20
TO_LPS = {
    "left-posterior-superior": (1.0, 1.0, 1.0),
    "lps": (1.0, 1.0, 1.0),
    "right-anterior-superior": (-1.0, -1.0, 1.0),
    "ras": (-1.0, -1.0, 1.0),
    "left-anterior-superior": (1.0, -1.0, 1.0),
    "las": (1.0, -1.0, 1.0),
}
"""Signs that convert the format's spaces to DICOM's."""

_MILLIMETRES = {"mm": 1.0, "cm": 10.0, "m": 1000.0, "um": 0.001, "µm": 0.001, "nm": 1e-6}
_TYPES = {
    "int8": "signed char,int8,int8_t",
    "uint8": "uchar,unsigned char,uint8,uint8_t",
    "int16": "short,short int,signed short,signed short int,int16,int16_t",
    "uint16": "ushort,unsigned short,unsigned short int,uint16,uint16_t",
    "int32": "int,signed int,int32,int32_t",
    "uint32": "uint,unsigned int,uint32,uint32_t",
    "int64": "longlong,long long,long long int,signed long long,signed long long int,int64,int64_t",
    "uint64": "ulonglong,unsigned long long,unsigned long long int,uint64,uint64_t",
    "float32": "float",
    "float64": "double",
}
_TYPE = {word: np.dtype(name) for name, words in _TYPES.items() for word in words.split(",")}
_PACKING = {
    "raw": "",
    "gzip": "gzip",
    "gz": "gzip",
    "bzip2": "bzip2",
    "bz2": "bzip2",
    "ascii": "text",
    "text": "text",
    "txt": "text",
}
_SPATIAL = ("domain", "space")
_COLOURS = {"rgb-color": 3, "3-color": 3, "rgba-color": 4, "4-color": 4, "vector": 3, "3-vector": 3}


def read_head(path: Path, file: BinaryIO | None = None) -> VoxelHead:
    """Read the header of an NRRD file, from `file` if it is already open.

    Axes with a direction in space are slice, row and column; the fastest is the column. Any other axis counts
    as layers or as colour. `fields` is the complete header, as read by pynrrd. Raises `InputError` for a file
    that is not NRRD, names a data file elsewhere, or claims more than 2^30 voxels.
    """
    with file_errors(path):
        header, end = _parsed(path, file)
        sizes = tuple(int(size) for size in header["sizes"])
        if not sizes or min(sizes) < 1:
            raise InputError("has no voxels", file=path)
        spatial = _spatial(path, header, sizes)
        other = [axis for axis in range(len(sizes)) if axis not in spatial]
        columns, rows, slices = (*(sizes[axis] for axis in spatial), 1)[:3]
        shape = (slices, rows, columns)
        check_shape(path, shape)
        grid, notices = _geometry(path, header, spatial, shape)
        kinds = [str(kind).casefold() for kind in header.get("kinds", ())]
        colours = _COLOURS.get(kinds[other[0]], 0) if other and len(kinds) == len(sizes) else 0
        data, offset = _locate_voxels(path, header, end, sizes)
        axes = (spatial[2] if len(spatial) == 3 else None, spatial[1], spatial[0])
        return VoxelHead(
            path=path,
            data=data,
            offset=offset,
            grid=grid,
            dtype=_dtype(path, header),
            lengths=sizes,
            axes=axes,
            packing=_packing(path, header),
            within=_within(header),
            colours=colours if other and sizes[other[0]] == colours else 0,
            fields=header,
            notices=notices,
        )


def _parsed(path: Path, file: BinaryIO | None) -> tuple[dict[str, Any], int]:
    """Read the header's fields; also return its end."""
    import nrrd

    with open_file(path, file) as stream:
        start = stream.read(_LONGEST_HEADER)
    if not start.startswith(b"NRRD000"):
        raise InputError("is not an NRRD file", file=path)
    blank = re.search(rb"\r?\n\r?\n", start)
    end = blank.end() if blank else len(start)
    if blank is None and len(start) == _LONGEST_HEADER:
        raise InputError("has a header that does not end; expected an empty line after it", file=path)
    header = dict(nrrd.read_header(io.BytesIO(start[:end])))
    missing = [name for name in ("type", "sizes", "encoding") if name not in header]
    if missing:
        raise InputError(f"does not contain {missing[0]}", file=path)
    return header, end


def _spatial(path: Path, header: dict[str, Any], sizes: tuple[int, ...]) -> list[int]:
    """Return the axes with a direction in space, the fastest first."""
    directions = _directions(header)
    kinds = [str(kind).casefold() for kind in header.get("kinds", ())]
    axes = list(range(len(sizes)))
    if directions is not None and len(directions) == len(sizes):
        axes = [axis for axis in axes if np.isfinite(directions[axis]).all()]
        for axis in set(range(len(sizes))) - set(axes):
            is_none = np.isnan(directions[axis]).all()
            if not is_none or (len(kinds) == len(sizes) and kinds[axis] in _SPATIAL):
                text = f"has no direction of axis {axis + 1}; expected finite numbers"
                raise InputError(text, file=path, field="space directions")
    elif len(kinds) == len(sizes) and any(kind in _SPATIAL for kind in kinds):
        axes = [axis for axis in axes if kinds[axis] in _SPATIAL]
    elif len(sizes) == 4:
        axes = axes[1:] if sizes[0] <= 4 else axes[:3]
    if len(axes) not in (2, 3) or len(sizes) - len(axes) > 1:
        raise InputError(
            f"has {len(sizes)} axes, {len(axes)} of them in space; expected 2 or 3 and one more at most",
            file=path,
        )
    return axes


def _directions(header: dict[str, Any]) -> list[NDArray[np.float64]] | None:
    """Return one vector per axis, NaN for an axis without a direction in space."""
    directions = header.get("space directions")
    if directions is None:
        return None
    return [np.full(3, np.nan) if row is None else np.asarray(row, dtype=float).ravel() for row in directions]


def _geometry(
    path: Path, header: dict[str, Any], spatial: list[int], shape: tuple[int, int, int]
) -> tuple[Grid, tuple[str, ...]]:
    directions = _directions(header)
    if directions is None:
        steps = [float(step) for step in np.ravel(header.get("spacings", []))]
        sizes = [steps[axis] if axis < len(steps) else np.nan for axis in spatial]
        across, along, down = ([abs(s) if np.isfinite(s) and s else 1.0 for s in sizes] + [1.0])[:3]
        text = "does not contain the patient's orientation: orientation letters are not shown"
        return Grid.plain(shape, (down, along, across)), (text,)
    space = str(header.get("space", "")).casefold()
    vectors = [directions[axis] for axis in spatial]
    if any(len(vector) != 3 for vector in vectors):
        if all(len(vector) == 2 for vector in vectors):
            lengths = [float(np.linalg.norm(vector)) for vector in vectors]
            return Grid.plain(shape, (1.0, lengths[1], lengths[0])), ()
        raise InputError("has directions that are not in space of three dimensions", file=path)
    if len(vectors) == 2:
        normal = np.cross(vectors[0], vectors[1])
        vectors.append(normal / (np.linalg.norm(normal) or 1.0))
    origin = np.ravel(header.get("space origin", [np.nan] * 3)).astype(float)
    notices: list[str] = []
    if len(origin) != 3 or not np.isfinite(origin).all():
        origin = np.zeros(3)
        notices.append("does not contain its position in the patient; the first voxel is assumed to be at 0")
    units = [_MILLIMETRES.get(str(unit), 1.0) for unit in header.get("space units", ())]
    signs = np.array(TO_LPS.get(space, (1.0, 1.0, 1.0))) * (units if len(units) == 3 else 1.0)
    if space not in TO_LPS:
        text = f"has the space {plain(space)}" if space else "does not name its space"
        notices.append(f"{text}: orientation letters are not shown")
    matrix = np.column_stack([*vectors, origin]) * signs[:, None]
    return Grid.from_matrix(shape, matrix, calibrated=space in TO_LPS), tuple(notices)


def _dtype(path: Path, header: dict[str, Any]) -> np.dtype[Any]:
    name = str(header["type"]).strip()
    dtype = _TYPE.get(name)
    if dtype is None:
        raise InputError(f"has voxels of type {plain(name)}; expected integers or real numbers", file=path)
    endian = str(header.get("endian", "little"))
    return dtype.newbyteorder(">" if endian == "big" else "<")


def _packing(path: Path, header: dict[str, Any]) -> str:
    name = str(header["encoding"]).casefold()
    if name not in _PACKING:
        raise InputError(f"is packed as {plain(name)}; expected raw, gzip, bzip2 or ascii", file=path)
    return _PACKING[name]


def _locate_voxels(path: Path, header: dict[str, Any], end: int, sizes: tuple[int, ...]) -> tuple[Path, int]:
    """Find the file that contains the voxels, and the number of bytes before them."""
    name = header.get("data file", header.get("datafile"))
    data, offset = path, end
    if name is not None:
        if not isinstance(name, str) or name.split()[:1] == ["LIST"] or "%" in name:
            raise InputError("has its slices in several data files; expected one", file=path)
        data, offset = find_data_file(path, name), 0
    lines = int(header.get("line skip", header.get("lineskip", 0)))
    skipped = int(header.get("byte skip", header.get("byteskip", 0)))
    if lines > 0:
        with data.open("rb") as file:
            file.seek(offset)
            for _ in range(min(lines, 10_000)):
                file.readline(1 << 16)
            offset = file.tell()
    if _packing(path, header) == "":
        length = int(np.prod(sizes, dtype=object)) * _dtype(path, header).itemsize
        offset = data.stat().st_size - length if skipped == -1 else offset + skipped
    if offset < 0 or skipped < -1:
        raise InputError("does not hold as many voxels as its header claims", file=path)
    return data, offset


def _within(header: dict[str, Any]) -> int:
    if str(header["encoding"]).casefold() in ("gzip", "gz", "bzip2", "bz2"):
        return max(0, int(header.get("byte skip", header.get("byteskip", 0))))
    return 0
