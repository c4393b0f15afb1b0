"""Cache of pyramids. A file holds lossless tiles, each with a checksum, and an index at its end.

The cache's folder has a size limit; the least recently used pyramids are removed first.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO

import numpy as np
from numpy.typing import NDArray

from raterscope.app.errors import InputError, system_reason
from raterscope.app.formats.pyramids.pyramid import Pixels, Pyramid, halve
from raterscope.app.program_files import CACHE

_MAGIC = b"RSPYRAM1"
_TAIL = struct.Struct("<QIIIBHI8s")
"""Offset of the index, number of tiles; width, height, colour, side; checksum of the index; magic."""
_ENTRY = np.dtype([("offset", "<u8"), ("size", "<u4"), ("sum", "<u4")])
_THREADS = 2


class DamagedError(InputError):
    """Error: the cached file was changed or damaged."""

    def __init__(self) -> None:
        super().__init__("The cached copy of this image was damaged; it is built again")


class CachedPyramid:
    """Pyramid in the cache; its file is removed if a tile is damaged.

    Raises `DamagedError` if the file is truncated, has another format, or does not match its checksums.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with path.open("rb") as file:
            self.pyramid, self._index = _read_index(file)
        self.levels = range(len(self.pyramid.levels))
        grids = [self.pyramid.grid(level) for level in self.levels]
        self._first = np.cumsum([0, *(rows * columns for rows, columns in grids)])

    def read(self, level: int, left: int, top: int, width: int, height: int) -> Pixels:
        """Read a part of a level."""
        side = self.pyramid.side
        if left % side == 0 and top % side == 0 and self._size(level, left, top) == (width, height):
            return self._tile(level, top // side, left // side)
        colours = (3,) if self.pyramid.colour else ()
        part = np.empty((height, width, *colours), dtype=np.uint8)
        for row in range(top // side, -(-(top + height) // side)):
            for column in range(left // side, -(-(left + width) // side)):
                tile = self._tile(level, row, column)
                x, y = column * side, row * side
                x0, y0 = max(x, left), max(y, top)
                x1 = min(x + tile.shape[1], left + width)
                y1 = min(y + tile.shape[0], top + height)
                part[y0 - top : y1 - top, x0 - left : x1 - left] = tile[y0 - y : y1 - y, x0 - x : x1 - x]
        return part

    def _size(self, level: int, left: int, top: int) -> tuple[int, int]:
        width, height = self.pyramid.levels[level]
        return min(self.pyramid.side, width - left), min(self.pyramid.side, height - top)

    def _tile(self, level: int, row: int, column: int) -> Pixels:
        entry = self._index[self._first[level] + row * self.pyramid.grid(level)[1] + column]
        try:
            with self._path.open("rb") as file:
                file.seek(int(entry["offset"]))
                data = file.read(int(entry["size"]))
        except OSError as error:
            raise DamagedError from error
        if zlib.crc32(data) != entry["sum"]:
            with suppress(OSError):
                self._path.unlink()
            raise DamagedError
        width, height = self._size(level, column * self.pyramid.side, row * self.pyramid.side)
        colours = (3,) if self.pyramid.colour else ()
        return _unpack(data, (height, width, *colours))


def write_pyramid(
    file: IO[bytes], pyramid: Pyramid, band: Callable[[int, int], Pixels], report: Callable[[float], None]
) -> None:
    """Write an image and its smaller copies, in one pass over its rows.

    `file`: binary file, empty. `band`: returns the rows of the image from top to bottom. `report`: called
    with the share done after each row of tiles; an exception ends the writing.
    """
    file.write(_MAGIC)
    entries = [np.zeros(rows * columns, _ENTRY) for rows, columns in map(pyramid.grid, _all_levels(pyramid))]
    with ThreadPoolExecutor(_THREADS) as pool:
        for level, row, pixels in _rows_of_tiles(pyramid, band, pool, report):
            columns = pyramid.grid(level)[1]
            tiles = [pixels[:, n * pyramid.side : (n + 1) * pyramid.side] for n in range(columns)]
            for column, data in enumerate(pool.map(_pack, tiles)):
                entries[level][row * columns + column] = (file.tell(), len(data), zlib.crc32(data))
                file.write(data)
    index, offset = np.concatenate(entries), file.tell()
    file.write(index.tobytes())
    size = (pyramid.width, pyramid.height, pyramid.colour, pyramid.side)
    file.write(_TAIL.pack(offset, len(index), *size, zlib.crc32(index.tobytes()), _MAGIC))


def _all_levels(pyramid: Pyramid) -> range:
    return range(len(pyramid.levels))


def _rows_of_tiles(
    pyramid: Pyramid,
    band: Callable[[int, int], Pixels],
    pool: ThreadPoolExecutor,
    report: Callable[[float], None],
) -> Iterator[tuple[int, int, Pixels]]:
    """Yield each row of tiles of all levels, as soon as the finer rows are available."""
    pending: list[list[Pixels]] = [[] for _ in _all_levels(pyramid)]
    done = [0] * len(pending)
    for top in range(0, pyramid.height, pyramid.side):
        pixels = band(top, min(top + pyramid.side, pyramid.height))
        for level, (_, height) in enumerate(pyramid.levels):
            pending[level].append(pixels)
            count = sum(len(piece) for piece in pending[level])
            last = done[level] * pyramid.side + count == height
            if count < pyramid.side and not last:
                break
            pixels = np.concatenate(pending[level]) if len(pending[level]) > 1 else pending[level][0]
            yield level, done[level], pixels
            pending[level] = []
            done[level] += 1
            if level + 1 < len(pending):
                cuts = range(0, pixels.shape[1], 2 * pyramid.side)
                pieces = [pixels[:, cut : cut + 2 * pyramid.side] for cut in cuts]
                pixels = np.concatenate(list(pool.map(halve, pieces)), axis=1)
        report(min(top + pyramid.side, pyramid.height) / pyramid.height)


def _pack(tile: Pixels) -> bytes:
    """Compress the differences between neighbours, which need a third less space than the values."""
    import imagecodecs

    differences = imagecodecs.delta_encode(np.ascontiguousarray(tile), axis=1)
    return bytes(imagecodecs.zstd_encode(differences.tobytes(), 1))


def _unpack(data: bytes, shape: tuple[int, ...]) -> Pixels:
    import imagecodecs

    size = int(np.prod(shape))
    values = np.frombuffer(imagecodecs.zstd_decode(data, out=size), dtype=np.uint8)
    return np.asarray(imagecodecs.delta_decode(values.reshape(shape), axis=1))


def _read_index(file: BinaryIO) -> tuple[Pyramid, NDArray[np.void]]:
    size = file.seek(0, os.SEEK_END)
    if size < _TAIL.size:
        raise DamagedError
    file.seek(size - _TAIL.size)
    offset, count, width, height, colour, side, checksum, magic = _TAIL.unpack(file.read(_TAIL.size))
    if magic != _MAGIC or offset + count * _ENTRY.itemsize + _TAIL.size != size:
        raise DamagedError
    if not (width and height and 16 <= side <= 4096):
        raise DamagedError
    pyramid = Pyramid(width, height, bool(colour), side)
    grids = [pyramid.grid(level) for level in _all_levels(pyramid)]
    file.seek(offset)
    data = file.read(count * _ENTRY.itemsize)
    if zlib.crc32(data) != checksum or count != sum(rows * columns for rows, columns in grids):
        raise DamagedError
    return pyramid, np.frombuffer(data, _ENTRY)


MAX_BYTES = 20_000_000_000
_SUFFIX, _UNFINISHED = ".pyramid", ".part"
_ABANDONED = 3600.0
"""Time without a change after which an unfinished file counts as left by a crash and is removed, seconds."""


def cache_folder() -> Path:
    """Return the folder that the environment variable `CACHE` names, by default the system's."""
    from platformdirs import user_cache_path

    chosen = os.environ.get(CACHE, "").strip()
    return Path(chosen) if chosen else user_cache_path("raterscope", appauthor=False)


@dataclass(frozen=True)
class PyramidCache:
    """Cache of pyramids by their source files."""

    folder: Path
    max_bytes: int = MAX_BYTES  # limit for all of them together; the newest stays in any case

    @classmethod
    def of_user(cls) -> PyramidCache:
        """Return the cache in the user's folder for caches, see `cache_folder`."""
        return cls(cache_folder() / "pyramids")

    def find(self, path: Path, digest: str | None) -> CachedPyramid | None:
        """Find the pyramid of a file; a damaged pyramid is removed and not returned.

        `digest`: digest of the file's content, if known; otherwise its path, size and time identify it.
        """
        entry = self._entry(path, digest)
        try:
            kept = CachedPyramid(entry)
        except FileNotFoundError:
            return None
        except (DamagedError, OSError):
            self.forget(path, digest)
            return None
        with contextlib.suppress(OSError):
            os.utime(entry)  # the time of a file in the cache is that of its last use
        return kept

    def make(self, path: Path, digest: str | None, write: Callable[[IO[bytes]], None]) -> CachedPyramid:
        """Store the pyramid that `write` writes; after an error or cancellation no file remains.

        Raises `InputError` if the folder cannot be written to.
        """
        entry = self._entry(path, digest)
        with (
            self._write_errors(),
            tempfile.NamedTemporaryFile(dir=self.room(), suffix=_UNFINISHED, delete=False) as file,
        ):
            unfinished = Path(file.name)
            try:
                write(file)
                file.close()
                unfinished.replace(entry)
            except BaseException:
                file.close()
                unfinished.unlink(missing_ok=True)
                raise
        self._prune(entry)
        return CachedPyramid(entry)

    def room(self) -> Path:
        """Return the folder, after creating it if necessary."""
        with self._write_errors():
            self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder

    def forget(self, path: Path, digest: str | None) -> None:
        """Remove the pyramid of a file."""
        with contextlib.suppress(OSError):
            self._entry(path, digest).unlink()

    @contextlib.contextmanager
    def _write_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise InputError(f"cannot be written to: {system_reason(error)}", file=self.folder) from error

    def _entry(self, path: Path, digest: str | None) -> Path:
        status = path.stat()
        identity = digest or f"{path.resolve()}\n{status.st_mtime_ns}"
        name = hashlib.sha256(f"{identity}\n{status.st_size}".encode()).hexdigest()[:40]
        return self.folder / f"{name}{_SUFFIX}"

    def _prune(self, newest: Path) -> None:
        others = []
        for file in self.folder.iterdir():
            with contextlib.suppress(OSError):  # another window may remove it first
                status = file.stat()
                if file.suffix == _UNFINISHED and time.time() - status.st_mtime > _ABANDONED:
                    file.unlink()
                elif file.suffix == _SUFFIX and file != newest:
                    others.append((status.st_mtime, status.st_size, file))
        room = self.max_bytes - newest.stat().st_size
        for _, size, file in sorted(others, reverse=True):
            room -= size
            if room < 0:
                with contextlib.suppress(OSError):
                    file.unlink()
