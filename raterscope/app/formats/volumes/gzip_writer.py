"""Gzip files of arrays, packed in blocks on all processors.

A block is flushed in full, so that it does not depend on what comes before it, and a block of zeros, of which
maps of a structure mostly consist, is packed once. Together they are one member, which every program reads.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.progress import THREADS, Look, no_look

__all__ = ["write_gzip"]

_BLOCK = 1 << 18
_LEVEL = 1
_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"
_LAST_BLOCK = b"\x03\x00"
_ONES = 0xFFFFFFFF


def write_gzip(path: Path, head: bytes, values: NDArray[Any], look: Look = no_look) -> None:
    """Write some bytes and the values of an array after them, in the order of its axes.

    The same values give the same file. `look` is called after each block, and may raise what ends the work.

    Parameters
    ----------
    path : Path
    head : bytes
    values : array
    look : Look
    """
    content = memoryview(np.ascontiguousarray(values).reshape(-1).view(np.uint8))
    blocks = (content[begin : begin + _BLOCK] for begin in range(0, len(content), _BLOCK))
    checksum = zlib.crc32(head)
    with path.open("wb") as file, ThreadPoolExecutor(THREADS) as pool:
        file.write(_HEAD + _packed(head))
        for block, packed in _in_order(blocks, pool):
            if packed is None:
                file.write(_packed_zeros())
                checksum = _checksum_after_zeros(checksum)
            else:
                checksum = zlib.crc32(block, checksum)
                file.write(packed.result())
            look()
        file.write(_LAST_BLOCK + struct.pack("<II", checksum, (len(head) + len(content)) & _ONES))


def _in_order(
    blocks: Iterator[memoryview], pool: ThreadPoolExecutor
) -> Iterator[tuple[memoryview, Future[bytes] | None]]:
    """Pack a few blocks ahead; gives each with what it is packed into, None for a block of zeros."""

    def begun() -> Iterator[tuple[memoryview, Future[bytes] | None]]:
        for block in blocks:
            zeros = len(block) == _BLOCK and not np.frombuffer(block, dtype=np.uint64).any()
            yield block, None if zeros else pool.submit(_packed, block)

    coming = begun()
    waiting = list(islice(coming, 4 * THREADS))
    while waiting:
        yield waiting.pop(0)
        waiting += islice(coming, 1)


def _packed(block: bytes | memoryview) -> bytes:
    machine = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    return machine.compress(block) + machine.flush(zlib.Z_FULL_FLUSH)


@cache
def _packed_zeros() -> bytes:
    return _packed(bytes(_BLOCK))


def _checksum_after_zeros(checksum: int) -> int:
    """Return the CRC-32 of what has this one and a block of zeros after it; it is linear in its bits."""
    state, out = checksum ^ _ONES, 0
    for bit, column in enumerate(_columns_of_zeros()):
        if state >> bit & 1:
            out ^= column
    return out ^ _ONES


@cache
def _columns_of_zeros() -> list[int]:
    zeros = bytes(_BLOCK)
    return [zlib.crc32(zeros, 1 << bit ^ _ONES) ^ _ONES for bit in range(32)]
