"""The file in which a pyramid is kept: tiles without loss, each with a checksum, and an index at the end."""

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

from raterscope.app.errors import InputError
from raterscope.app.formats.pyramids.pyramid import Pixels, Pyramid, halve

__all__ = ["DamagedError", "Kept", "PyramidCache", "write_pyramid"]

_MAGIC = b"RSPYRAM1"
_TAIL = struct.Struct("<QIIIBHI8s")
"""Where the index is, its number of tiles; width, height, colour, side; the index's checksum; magic."""
_ENTRY = np.dtype([("offset", "<u8"), ("size", "<u4"), ("sum", "<u4")])
_THREADS = 2


class DamagedError(InputError):
    """The file is not as it was written."""

    def __init__(self) -> None:
        super().__init__("The copy of this image in the cache was damaged; it is made anew")


class Kept:
    """A pyramid as it was kept. A file of which a tile turns out damaged is removed.

    Raises
    ------
    DamagedError
        When the file is cut short, of another make, or does not agree with its checksums.
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
        return _unpacked(data, (height, width, *colours))


def write_pyramid(
    file: IO[bytes], pyramid: Pyramid, band: Callable[[int, int], Pixels], told: Callable[[float], None]
) -> None:
    """Write an image and its smaller copies, in one pass over its rows.

    Parameters
    ----------
    file : binary file
        Empty.
    pyramid : Pyramid
    band : callable
        ``band(top, bottom)`` gives these rows of the image.
    told : callable
        Takes the share that is done, after each row of tiles; what it raises ends the writing.
    """
    file.write(_MAGIC)
    entries = [np.zeros(rows * columns, _ENTRY) for rows, columns in map(pyramid.grid, _all_levels(pyramid))]
    with ThreadPoolExecutor(_THREADS) as pool:
        for level, row, pixels in _rows_of_tiles(pyramid, band, pool, told):
            columns = pyramid.grid(level)[1]
            tiles = [pixels[:, n * pyramid.side : (n + 1) * pyramid.side] for n in range(columns)]
            for column, data in enumerate(pool.map(_packed, tiles)):
                entries[level][row * columns + column] = (file.tell(), len(data), zlib.crc32(data))
                file.write(data)
    index, where = np.concatenate(entries), file.tell()
    file.write(index.tobytes())
    size = (pyramid.width, pyramid.height, pyramid.colour, pyramid.side)
    file.write(_TAIL.pack(where, len(index), *size, zlib.crc32(index.tobytes()), _MAGIC))


def _all_levels(pyramid: Pyramid) -> range:
    return range(len(pyramid.levels))


def _rows_of_tiles(
    pyramid: Pyramid,
    band: Callable[[int, int], Pixels],
    pool: ThreadPoolExecutor,
    told: Callable[[float], None],
) -> Iterator[tuple[int, int, Pixels]]:
    """Give each row of tiles, of all levels, as soon as the rows below it in the pyramid are there."""
    waiting: list[list[Pixels]] = [[] for _ in _all_levels(pyramid)]
    done = [0] * len(waiting)
    for top in range(0, pyramid.height, pyramid.side):
        pixels = band(top, min(top + pyramid.side, pyramid.height))
        for level, (_, height) in enumerate(pyramid.levels):
            waiting[level].append(pixels)
            have = sum(len(piece) for piece in waiting[level])
            last = done[level] * pyramid.side + have == height
            if have < pyramid.side and not last:
                break
            pixels = np.concatenate(waiting[level]) if len(waiting[level]) > 1 else waiting[level][0]
            yield level, done[level], pixels
            waiting[level] = []
            done[level] += 1
            if level + 1 < len(waiting):
                cuts = range(0, pixels.shape[1], 2 * pyramid.side)
                pieces = [pixels[:, cut : cut + 2 * pyramid.side] for cut in cuts]
                pixels = np.concatenate(list(pool.map(halve, pieces)), axis=1)
        told(min(top + pyramid.side, pyramid.height) / pyramid.height)


def _packed(tile: Pixels) -> bytes:
    """Pack the differences between neighbours, which need a third less room than the values."""
    import imagecodecs

    differences = imagecodecs.delta_encode(np.ascontiguousarray(tile), axis=1)
    return bytes(imagecodecs.zstd_encode(differences.tobytes(), 1))


def _unpacked(data: bytes, shape: tuple[int, ...]) -> Pixels:
    import imagecodecs

    size = int(np.prod(shape))
    values = np.frombuffer(imagecodecs.zstd_decode(data, out=size), dtype=np.uint8)
    return np.asarray(imagecodecs.delta_decode(values.reshape(shape), axis=1))


def _read_index(file: BinaryIO) -> tuple[Pyramid, NDArray[np.void]]:
    size = file.seek(0, os.SEEK_END)
    if size < _TAIL.size:
        raise DamagedError
    file.seek(size - _TAIL.size)
    where, count, width, height, colour, side, checksum, magic = _TAIL.unpack(file.read(_TAIL.size))
    if magic != _MAGIC or where + count * _ENTRY.itemsize + _TAIL.size != size:
        raise DamagedError
    if not (width and height and 16 <= side <= 4096):
        raise DamagedError
    pyramid = Pyramid(width, height, bool(colour), side)
    grids = [pyramid.grid(level) for level in _all_levels(pyramid)]
    file.seek(where)
    data = file.read(count * _ENTRY.itemsize)
    if zlib.crc32(data) != checksum or count != sum(rows * columns for rows, columns in grids):
        raise DamagedError
    return pyramid, np.frombuffer(data, _ENTRY)


MOST_BYTES = 20_000_000_000
_SUFFIX, _UNFINISHED = ".pyramid", ".part"
_ABANDONED = 3600.0
"""Seconds after which what nobody writes any more was left by a crash."""


@dataclass(frozen=True)
class PyramidCache:
    """Pyramids by what they were made from.

    Attributes
    ----------
    folder : Path
    most_bytes : int
        What all of them may take together; the one made last stays in any case.
    """

    folder: Path
    most_bytes: int = MOST_BYTES

    @classmethod
    def of_user(cls) -> PyramidCache:
        """Give the cache where the system keeps the user's caches."""
        from platformdirs import user_cache_path

        return cls(user_cache_path("raterscope", appauthor=False) / "pyramids")

    def find(self, path: Path, digest: str | None) -> Kept | None:
        """Find what was made of a file; what is damaged is removed and not found.

        Parameters
        ----------
        path : Path
        digest : str or None
            Of the file's content, where it is known; else its place, size and time stand for it.
        """
        place = self._place(path, digest)
        try:
            found = Kept(place)
        except FileNotFoundError:
            return None
        except (DamagedError, OSError):
            self.forget(path, digest)
            return None
        with contextlib.suppress(OSError):
            os.utime(place)  # the time of a file here is when it was last looked at
        return found

    def make(self, path: Path, digest: str | None, write: Callable[[IO[bytes]], None]) -> Kept:
        """Keep what `write` writes for a file; on an error, or when it is cancelled, nothing is left.

        Raises
        ------
        InputError
            When the folder cannot be written to.
        """
        place = self._place(path, digest)
        with (
            self._told(),
            tempfile.NamedTemporaryFile(dir=self.room(), suffix=_UNFINISHED, delete=False) as file,
        ):
            unfinished = Path(file.name)
            try:
                write(file)
                file.close()
                unfinished.replace(place)
            except BaseException:
                file.close()
                unfinished.unlink(missing_ok=True)
                raise
        self._prune(place)
        return Kept(place)

    def room(self) -> Path:
        """Give the folder, made where it is not there."""
        with self._told():
            self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder

    def forget(self, path: Path, digest: str | None) -> None:
        """Remove what was made of a file."""
        with contextlib.suppress(OSError):
            self._place(path, digest).unlink()

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise InputError(f"cannot be written to: {error.strerror or error}", file=self.folder) from error

    def _place(self, path: Path, digest: str | None) -> Path:
        status = path.stat()
        where = digest or f"{path.resolve()}\n{status.st_mtime_ns}"
        name = hashlib.sha256(f"{where}\n{status.st_size}".encode()).hexdigest()[:40]
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
        room = self.most_bytes - newest.stat().st_size
        for _, size, file in sorted(others, reverse=True):
            room -= size
            if room < 0:
                with contextlib.suppress(OSError):
                    file.unlink()
