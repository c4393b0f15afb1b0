"""Files with a header and one array of voxels: common header record, and reading of the array.

The claimed size is compared with the size of the file before memory is allocated, and no more is decompressed
than the header claims, because a few kilobytes can claim a gigabyte.
"""

from __future__ import annotations

import bz2
import math
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.grid import Grid, describe_slices
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.records import Volume, VolumeFile
from raterscope.app.formats.untrusted import MAX_VOXELS, file_errors, max_unpacked
from raterscope.text import counted

_CHUNK = 4 << 20
_LONGEST_WORD = 40


@dataclass(frozen=True, eq=False)
class VoxelHead:
    """Header of a voxel file."""

    path: Path  # the requested file
    data: Path  # the file that holds the voxels; the same, unless the header is detached
    offset: int  # bytes before the voxels, or before their packed stream
    grid: Grid
    dtype: np.dtype[Any]  # dtype: as on disk, byte order included
    lengths: tuple[int, ...]  # all axes as on disk, the fastest first
    # (slice, row, column): indices of these axes among the axes on disk; None for a missing axis
    axes: tuple[int | None, int | None, int | None]
    packing: str = ""  # empty, gzip, zlib, bzip2 or text
    within: int = 0  # unpacked bytes before the first voxel
    # 3 or 4 if the axis other than slice, row and column has the components of a colour, otherwise 0
    colours: int = 0
    # slope, intercept: convert a stored value to a real value
    slope: float = 1.0
    intercept: float = 0.0
    # other fields of the header, for readers of a program's own fields
    fields: Mapping[str, Any] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    ending: bytes = b""  # last four bytes of the file, where it was open when the header was read

    @property
    def layers(self) -> int:
        """Number of volumes in the file: time points, layers of segments, or components of a colour."""
        return math.prod(self.lengths) // math.prod(self.grid.shape)

    @property
    def layers_last(self) -> bool:
        """Whether the layers are stored consecutively."""
        return not any(axis is not None and axis > 2 for axis in self.axes)


def check_complete(head: VoxelHead, watch: Watch = silent) -> None:
    """Check that no voxel is missing at the end of a file, if possible by its length.

    The last four bytes of a gzip file give its decompressed length modulo 2^32 (RFC 1952, section 2.3.1),
    unless it was compressed in several parts; only then it is decompressed. Raises `InputError` for a
    truncated file.
    """
    length = math.prod(head.lengths) * head.dtype.itemsize
    with file_errors(head.path):
        size = head.data.stat().st_size
        if not head.packing and head.offset + length > size:
            raise _cut_short(head.path, max(0, size - head.offset), length)
        if head.packing == "gzip":
            ending = head.ending or _read_ending(head.data)
            if int.from_bytes(ending, "little") != (head.within + length) % (1 << 32):
                _read_values(head, 0, math.prod(head.lengths), watch)


def with_ending(head: VoxelHead, file: BinaryIO) -> VoxelHead:
    """Add the last bytes of the open file, so that `check_complete` need not open it again."""
    if head.data != head.path:
        return head
    file.seek(max(0, file.seek(0, os.SEEK_END) - 4))
    return replace(head, ending=file.read(4))


def note_surplus(head: VoxelHead) -> VoxelHead:
    """Add a notice of slices beyond those that the header claims, where the file's length shows them."""
    with file_errors(head.path):
        if not head.packing:
            size = head.data.stat().st_size - head.offset
        elif head.packing == "gzip":
            size = int.from_bytes(head.ending or _read_ending(head.data), "little") - head.within
        else:
            return head
    plane = math.prod(head.grid.shape[1:]) * head.dtype.itemsize
    slices = (size - math.prod(head.lengths) * head.dtype.itemsize) // plane
    if slices < 1:
        return head
    notice = f"holds voxels of {counted(slices, 'slice')} more than its header claims, which are not read"
    return replace(head, notices=(*head.notices, notice))


def _read_ending(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 4))
        return file.read(4)


def read_all(head: VoxelHead, watch: Watch = silent) -> NDArray[Any]:
    """Read every layer of a file.

    Raises `InputError` for a file that is truncated or damaged, or contains more than 2^30 values.

    The values, (layers, slices, rows, columns), are as stored, in this computer's byte order; float64 if the
    file specifies a rescaling.
    """
    count = math.prod(head.lengths)
    if count > MAX_VOXELS:
        raise InputError(f"holds {count:,} values; expected {MAX_VOXELS:,} at most", file=head.path)
    flat = _read_values(head, 0, count, watch)
    array = flat.reshape(head.lengths[::-1])
    last = len(head.lengths) - 1
    spatial = [last - axis for axis in head.axes if axis is not None]
    others = [axis for axis in range(len(head.lengths)) if axis not in spatial]
    return _rescale(head, array.transpose(others + spatial).reshape(head.layers, *head.grid.shape))


def read_volume(head: VoxelHead, layer: int = 0, watch: Watch = silent) -> Volume:
    """Read one layer of a file for display, or all three if they are the components of a colour.

    Raises `InputError` as `read_all`, or if there is no such layer.
    """
    if head.colours:
        parts = read_all(head, watch)[:3]
        if parts.dtype != np.uint8:
            raise InputError(f"holds colours of {parts.dtype}; expected 8 bit", file=head.path)
        return Volume(np.ascontiguousarray(np.moveaxis(parts, 0, -1)), head.grid)
    if not 0 <= layer < head.layers:
        raise InputError(f"has {head.layers} layers; layer {layer + 1} was requested", file=head.path)
    if head.layers_last:
        count = math.prod(head.grid.shape)
        flat = _read_values(head, layer * count, count, watch)
        order = [axis for axis in head.axes if axis is not None]
        lengths = [head.lengths[axis] for axis in sorted(order)]
        order_on_disk = [len(order) - 1 - sorted(order).index(axis) for axis in order]
        values = _rescale(head, flat.reshape(lengths[::-1]).transpose(order_on_disk).reshape(head.grid.shape))
    else:
        values = read_all(head, watch)[layer]
    return Volume(convert_for_display(values), head.grid)


def describe_volume(head: VoxelHead) -> VolumeFile:
    """Describe a file's first layer as a volume, with notices of other layers and of tilted slices."""
    notices = [*head.notices, *(sentence.rstrip(".") for sentence in describe_slices(head.grid))]
    if head.layers > 1 and not head.colours:
        notices.append(f"holds {head.layers} volumes; the first is shown")
    messages = tuple(f"{plain(head.path.name, 200)}: {notice}." for notice in notices)
    return VolumeFile(
        name=head.path.name, path=head.path, grid=head.grid, files=(head.data,), notices=messages
    )


def convert_for_display(values: NDArray[Any]) -> NDArray[Any]:
    """Convert values to a type of `Volume`, exactly if one of these types can represent them.

    Integers become uint8, int16 or uint16 if they fit; all others float32.
    """
    kind = values.dtype
    if kind in (np.uint8, np.int16, np.uint16, np.float32):
        return np.ascontiguousarray(values)
    if kind.kind == "b":
        return np.ascontiguousarray(values, dtype=np.uint8)
    if kind == np.int8:
        return values.astype(np.int16)
    if kind.kind in "iu" or (kind.kind == "f" and bool((values == np.rint(values)).all())):
        low, high = values.min(), values.max()
        for narrow in (np.int16, np.uint16):
            if np.iinfo(narrow).min <= low and high <= np.iinfo(narrow).max:
                return values.astype(narrow)
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def find_data_file(path: Path, name: str) -> Path:
    """Find the data file that a detached header names, in the header's own folder or below.

    Raises `InputError` for a name outside the folder, because such a header could show any file of the
    computer.
    """
    parts = {*PurePosixPath(name).parts, *PureWindowsPath(name).parts}
    is_absolute = PurePosixPath(name).is_absolute() or PureWindowsPath(name).anchor
    data_path = path.parent / name if name and not is_absolute and ".." not in parts else None
    if data_path is None or not data_path.resolve().is_relative_to(path.parent.resolve()):
        raise InputError(
            f"names {plain(name)} as its data file; expected a file in the same folder", file=path
        )
    if data_path.resolve() == path.resolve():
        raise InputError("names itself as its data file; expected another file", file=path)
    if not data_path.is_file():
        raise InputError(f"names {plain(name)} as its data file, which does not exist", file=path)
    return data_path


def _rescale(head: VoxelHead, values: NDArray[Any]) -> NDArray[Any]:
    if (head.slope, head.intercept) == (1.0, 0.0):
        return values
    return np.asarray(values * np.float64(head.slope) + head.intercept)


def _read_values(head: VoxelHead, start: int, count: int, watch: Watch) -> NDArray[Any]:
    """Read `count` values from index `start` as a flat array."""
    with file_errors(head.path):
        if head.packing == "text":
            return _read_text(head, start, count)
        size = head.dtype.itemsize
        before, length = head.within + start * size, count * size
        available = head.data.stat().st_size - head.offset
        most = available if not head.packing else max_unpacked(available)
        if before + length > most:
            content = f"holds {max(0, available):,} bytes of {'packed ' if head.packing else ''}voxels"
            advice = f"; expected {most:,} at most, store it unpacked" if head.packing else ""
            raise InputError(f"{content}, and its header claims {before + length:,}{advice}", file=head.path)
        data = np.empty(length, dtype=np.uint8)
        with head.data.open("rb") as file:
            file.seek(head.offset)
            stream = _unpack(file, head.packing)
            _skip(stream, before, file if not head.packing else None)
            _fill(stream, data.data, watch, head.path)
            if head.packing:
                stream.read(1)  # at the end of the stream its checksum is verified
        values = data.view(head.dtype)
        return values if head.dtype.isnative else values.astype(head.dtype.newbyteorder("="))


class _Stream(Protocol):
    def read(self, size: int) -> bytes: ...


def _unpack(file: IO[bytes], packing: str) -> _Stream:
    if packing == "gzip":
        from isal import igzip

        stream: _Stream = igzip.IGzipFile(fileobj=file)
        return stream
    if packing == "bzip2":
        return bz2.BZ2File(file)
    return _Zlib(file) if packing == "zlib" else file


class _Zlib:
    """Zlib stream that is decompressed only as far as needed."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._state, self._rest = file, zlib.decompressobj(), b""

    def read(self, size: int) -> bytes:
        while not self._state.eof:
            packed = self._rest or self._file.read(1 << 16)
            if not packed:
                raise EOFError
            data = self._state.decompress(packed, size)
            self._rest = self._state.unconsumed_tail
            if data:
                return data
        return b""


def _skip(stream: _Stream, count: int, plain_file: IO[bytes] | None) -> None:
    if plain_file is not None:
        plain_file.seek(count, 1)
        return
    while count > 0:
        passed = len(stream.read(min(count, _CHUNK)))
        if not passed:
            return
        count -= passed


def _fill(stream: _Stream, room: memoryview, watch: Watch, path: Path) -> None:
    done = 0
    while done < len(room):
        watch(done / len(room), f"reading {plain(path.name)}")
        data = stream.read(min(_CHUNK, len(room) - done))
        if not data:
            raise _cut_short(path, done, len(room))
        room[done : done + len(data)] = data
        done += len(data)


def _cut_short(path: Path, present: int, expected: int) -> InputError:
    return InputError(f"is cut short: {present} of {expected} bytes of voxels are there", file=path)


def _read_text(head: VoxelHead, start: int, count: int) -> NDArray[Any]:
    longest = _LONGEST_WORD * (start + count)  # no number has more characters
    with head.data.open("rb") as file:
        file.seek(head.offset)
        words = file.read(longest).split(maxsplit=start + count)[start : start + count]
    if any(len(word) > _LONGEST_WORD for word in words):
        raise InputError(
            f"has a word of more than {_LONGEST_WORD} characters; expected numbers", file=head.path
        )
    if len(words) < count:
        raise InputError(f"is cut short: {len(words)} of {count} voxels are there", file=head.path)
    return np.array(words).astype(np.float64).astype(head.dtype.newbyteorder("="))
