"""NIfTI-1 and NIfTI-2: .nii, .nii.gz, and pairs of .hdr and .img."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.grid import Grid
from raterscope.app.errors import InputError
from raterscope.app.formats.untrusted import check_shape, file_errors, open_file
from raterscope.app.formats.volumes.voxel_files import VoxelHead

RAS_TO_LPS = np.diag([-1.0, -1.0, 1.0, 1.0])
"""Signs that convert NIfTI's axes (right, anterior) to DICOM's (left, posterior)."""

_LONGEST_HEADER = 540
_GZIP = b"\x1f\x8b"
_MILLIMETRES = {0: 1.0, 1: 1000.0, 2: 1.0, 3: 0.001}
_CIFTI = range(3000, 3100)
_COLOURS = {128: 3, 2304: 4}
_VECTORS = ((1, 3), (1, 4))
"""Axes after the third of colours written by ITK, component by component."""

_APART = 0.1
"""Maximum distance of the corners of a file's two geometries that agree, as a share of a voxel."""


def read_head(path: Path, file: BinaryIO | None = None) -> VoxelHead:
    """Read the header of a NIfTI file, from `file` if it is already open.

    The geometry is the file's sform, otherwise its qform, otherwise the voxel sizes along the axes.
    Dimensions after the third count as layers, the first of these the fastest. Raises `InputError` for a file
    that is not NIfTI, holds no volume, or claims more than 2^30 voxels.
    """
    with file_errors(path):
        header_path, data_path = _pair(path)
        with open_file(header_path, file if header_path == path else None) as stream:
            header, is_packed = _parsed(path, stream)
        if data_path != header_path:
            with open_file(data_path, file if data_path == path else None) as stream:
                is_packed = stream.read(len(_GZIP)) == _GZIP
        return _head_of(path, data_path, header, is_packed)


def _pair(path: Path) -> tuple[Path, Path]:
    """Return the file of the header and the file of the voxels."""
    name = path.name
    for ours, theirs in ((".hdr", ".img"), (".img", ".hdr")):
        for ending in ("", ".gz"):
            if name.casefold().endswith(ours + ending):
                stem = name[: -len(ours + ending)]
                other = next((p for p in _spellings(path, stem, theirs) if p.is_file()), None)
                if other is None:
                    raise InputError(f"comes without its {theirs} file", file=path)
                return (path, other) if ours == ".hdr" else (other, path)
    return path, path


def _spellings(path: Path, stem: str, suffix: str) -> list[Path]:
    return [path.with_name(stem + s + z) for s in (suffix, suffix.upper()) for z in ("", ".gz")]


def _parsed(path: Path, file: BinaryIO) -> tuple[Any, bool]:
    """Parse the header; also return whether the file is compressed."""
    import nibabel

    is_packed = file.read(len(_GZIP)) == _GZIP
    file.seek(0)
    block = (gzip.GzipFile(fileobj=file) if is_packed else file).read(_LONGEST_HEADER)
    kinds = {348: nibabel.Nifti1Header, 540: nibabel.Nifti2Header}
    kind = next(
        (
            kinds[size]
            for size in kinds
            for order in ("little", "big")
            if block[:4] == size.to_bytes(4, order)
        ),
        None,
    )
    if kind is None:
        raise InputError("is not a NIfTI file", file=path)
    header = kind.from_fileobj(io.BytesIO(block), check=False)
    if bytes(header["magic"])[:3] not in (b"n+1", b"ni1", b"n+2", b"ni2"):
        raise InputError(
            "is an Analyze 7.5 file, which does not distinguish left and right; convert it to NIfTI",
            file=path,
        )
    return header, is_packed


def _head_of(path: Path, data_path: Path, header: Any, is_packed: bool) -> VoxelHead:
    rank = int(header["dim"][0])
    sizes = tuple(int(size) for size in header["dim"][1 : 1 + rank])
    if int(header["intent_code"]) in _CIFTI:
        raise InputError("is a CIFTI file of values on a surface; expected a volume", file=path)
    if not 2 <= rank <= 7:
        raise InputError(f"has {rank} dimensions; expected 2 to 7", file=path)
    if min(sizes) < 1:
        raise InputError("has no voxels", file=path)
    columns, rows, slices = (*sizes, 1)[:3]
    shape = (slices, rows, columns)
    check_shape(path, shape)
    code = int(header["datatype"])
    dtype, lengths, first = _values(path, code, header), sizes, 0
    colours = _COLOURS.get(code, 0)
    if colours:
        dtype, lengths, first = np.dtype(np.uint8), (colours, *sizes), 1
        if np.prod(sizes[3:]) > 1:
            raise InputError("holds several volumes in colour; expected one", file=path)
    elif sizes[3:] in _VECTORS and dtype == np.uint8:
        colours = sizes[4]
    axes = (first + 2 if rank > 2 else None, first + 1, first)
    grid, notices = _geometry(shape, header)
    offset = _offset(path, header, is_pair=data_path != path)
    slope, intercept = float(header["scl_slope"]), float(header["scl_inter"])
    if colours or slope == 0 or not np.isfinite(slope):
        slope, intercept = 1.0, 0.0
    return VoxelHead(
        path=path,
        data=data_path,
        offset=0 if is_packed else offset,
        grid=grid,
        dtype=dtype,
        lengths=lengths,
        axes=axes,
        packing="gzip" if is_packed else "",
        within=offset if is_packed else 0,
        colours=colours,
        slope=slope,
        intercept=intercept if np.isfinite(intercept) else 0.0,
        fields={"descrip": bytes(header["descrip"]), "intent_name": bytes(header["intent_name"])},
        notices=notices,
    )


def _offset(path: Path, header: Any, *, is_pair: bool) -> int:
    """Return the number of bytes before the voxels; a value of 0 in the file means the header's size."""
    offset, least = int(header["vox_offset"]), 0 if is_pair else int(header.single_vox_offset)
    if offset and offset < least:
        raise InputError(f"claims voxels from byte {offset}; expected {least} or more", file=path)
    return offset or least


def _values(path: Path, code: int, header: Any) -> np.dtype[Any]:
    try:
        dtype: np.dtype[Any] = np.dtype(header.get_data_dtype())
    except Exception as error:  # an exception of nibabel, which is not imported here
        raise InputError(f"has voxels of the unknown type {code}", file=path) from error
    if code not in _COLOURS and dtype.kind not in "iuf":
        raise InputError(f"has voxels of type {dtype}; expected integers or real numbers", file=path)
    return dtype


def _geometry(shape: tuple[int, int, int], header: Any) -> tuple[Grid, tuple[str, ...]]:
    unit = _MILLIMETRES.get(int(header["xyzt_units"]) & 7, 1.0)
    to_mm = np.diag([unit, unit, unit, 1.0]) @ RAS_TO_LPS
    matrices = []
    if int(header["sform_code"]) > 0 and _spans(header.get_sform()):
        matrices.append(to_mm @ header.get_sform())
    if int(header["qform_code"]) > 0:
        try:
            matrices.append(to_mm @ header.get_qform())
        except Exception:  # an invalid quaternion: the other geometry remains
            matrices += []
    if matrices:
        grid = Grid.from_matrix(shape, matrices[0])
        if len(matrices) == 2 and _corners_apart(grid, matrices[1]) > _APART * min(grid.spacing):
            return grid, ("has two geometries that disagree (sform and qform); the sform is used",)
        return grid, ()
    steps = [abs(float(step)) * unit for step in header["pixdim"][1:4]]
    across, along, down = (step if np.isfinite(step) and step > 0 else 1.0 for step in steps)
    notices = [
        "does not contain the patient's orientation; axes are assumed to point left, posterior, superior"
    ]
    if [across, along, down] != steps:
        notices.append("does not contain the size of a voxel; one millimetre is assumed")
    return Grid.plain(shape, (down, along, across), calibrated=True), tuple(notices)


def _spans(matrix: NDArray[np.floating]) -> bool:
    return bool(np.isfinite(matrix).all() and abs(np.linalg.det(matrix[:3, :3])) > 0)


def _corners_apart(grid: Grid, other: NDArray[np.floating]) -> float:
    ends = np.array(grid.shape[::-1]) - 1.0
    corners = np.array([[i, j, k] for i in (0, ends[0]) for j in (0, ends[1]) for k in (0, ends[2])])
    turned = corners @ (grid.matrix[:3, :3] - other[:3, :3]).T + grid.matrix[:3, 3] - other[:3, 3]
    return float(np.abs(turned).max())


Box = tuple[int, int, int]

_BLOCK = 1 << 20


def split_blocks(values: NDArray[Any], origin: Box, shape: Box) -> Iterator[NDArray[Any] | int]:
    """Split a volume of `shape` into blocks; `values` (Z, Y, X) begin at `origin`, everything else is 0.

    Yields parts of about a megabyte, and the number of zero bytes between them.
    """
    _, rows, columns = shape
    height, width = values.shape[1:]
    _, top, left = origin
    row = columns * values.itemsize
    step = max(1, _BLOCK // (rows * row))
    before, after = (0, 0) if step > 1 else (top, rows - top - height)
    zeros = row * (origin[0] * rows + before)
    for begin in range(0, len(values), step):
        slices = values[begin : begin + step]
        part = np.zeros((len(slices), rows - before - after, columns), dtype=values.dtype)
        part[:, top - before : top - before + height, left : left + width] = slices
        if zeros:
            yield zeros
        yield part
        zeros = row * (before + after)
    zeros = row * (after + rows * (shape[0] - origin[0] - len(values)))
    if zeros:
        yield zeros
