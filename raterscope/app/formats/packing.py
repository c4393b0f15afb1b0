"""Gzip files of large arrays: packed on all processors, and without work for long runs of zeros."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

from raterscope.algorithms.progress import THREADS, Look, no_look

__all__ = ["write_packed"]

_LEVEL = 1
_RAW = -15
"""Window bits of a deflate stream without header and checksum."""

_HEADER = bytes((0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF))
"""No name and no time: the same values give the same bytes."""

_ZEROS = 1 << 20
"""Zeros that are packed once and stored as often as needed."""

_Packed = tuple[bytes, int, int]
"""Packed bytes, their checksum before packing, their number before packing."""


def write_packed(path: Path, chunks: Iterable[bytes | memoryview | int], look: Look = no_look) -> None:
    """Write a gzip file of one member; a number among the chunks stands for so many zeros.

    Parameters
    ----------
    chunks : iterable of bytes or int
        Bytes of about a megabyte each, so that memory stays small.
    look : callable
        Called for each chunk; an exception ends the work.
    """
    from isal import isal_zlib

    checksum, size = 0, 0
    waiting: deque[Future[_Packed]] = deque()
    with path.open("wb") as file, ThreadPoolExecutor(THREADS) as pool:

        def add(packed: bytes, own_checksum: int, count: int, times: int = 1) -> None:
            nonlocal checksum, size
            for _ in range(times):
                file.write(packed)
                checksum = isal_zlib.crc32_combine(checksum, own_checksum, count)
            size += times * count

        def finish(most: int) -> None:
            while len(waiting) > most:
                add(*waiting.popleft().result())

        file.write(_HEADER)
        try:
            for chunk in chunks:
                look()
                if isinstance(chunk, int):
                    finish(0)
                    add(*_packed_zeros(_ZEROS), chunk // _ZEROS)
                    add(*_packed_zeros(chunk % _ZEROS))
                else:
                    waiting.append(pool.submit(_pack, chunk))
                    finish(2 * THREADS)
            finish(0)
        finally:
            pool.shutdown(cancel_futures=True)
        file.write(isal_zlib.compress(b"", wbits=_RAW))
        file.write(struct.pack("<II", checksum, size & 0xFFFFFFFF))


def _pack(data: bytes | memoryview) -> _Packed:
    from isal import isal_zlib

    stream = isal_zlib.compressobj(_LEVEL, wbits=_RAW)
    packed = stream.compress(data) + stream.flush(isal_zlib.Z_SYNC_FLUSH)
    return packed, isal_zlib.crc32(data), len(data)


@lru_cache(maxsize=16)
def _packed_zeros(count: int) -> _Packed:
    return _pack(bytes(count))
