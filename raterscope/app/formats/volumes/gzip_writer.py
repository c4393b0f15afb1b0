"""Gzip files of volumes, packed in blocks on all processors.

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

__all__ = ["blocks_of", "write_gzip"]

Box = tuple[int, int, int]

_BLOCK = 1 << 18
_LEVEL = 1
_START = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"
_LAST_BLOCK = b"\x03\x00"
_ONES = 0xFFFFFFFF


def blocks_of(values: NDArray[Any], origin: Box, shape: Box) -> Iterator[NDArray[Any] | int]:
    """Cut a volume of `shape`, slice by slice, of which (Z, Y, X) values begin at `origin`; all else is 0.

    Gives a part of about a quarter of a megabyte, or the number of bytes of zeros.
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


def write_gzip(path: Path, head: bytes, blocks: Iterator[NDArray[Any] | int], look: Look = no_look) -> None:
    """Write some bytes and blocks of values after them; see `blocks_of`.

    The same values give the same file. `look` is called after each block, and may raise what ends the work.
    """
    checksum, size = zlib.crc32(head), len(head)
    with path.open("wb") as file, ThreadPoolExecutor(THREADS) as pool:
        file.write(_START + _packed(head))
        for block, packed in _in_order(blocks, pool):
            if packed is None:
                size += block
                for _ in range(block // _BLOCK):
                    file.write(_packed_zeros())
                    checksum = _checksum_after_zeros(checksum)
                rest = bytes(block % _BLOCK)
                file.write(_packed(rest))
                checksum = zlib.crc32(rest, checksum)
            else:
                size += block.nbytes
                checksum = zlib.crc32(block, checksum)
                file.write(packed.result())
            look()
        file.write(_LAST_BLOCK + struct.pack("<II", checksum, size & _ONES))


def _in_order(
    blocks: Iterator[NDArray[Any] | int], pool: ThreadPoolExecutor
) -> Iterator[tuple[Any, Future[bytes] | None]]:
    """Pack a few blocks ahead; gives each with what it is packed into, None for zeros."""

    def begun() -> Iterator[tuple[Any, Future[bytes] | None]]:
        for block in blocks:
            yield block, None if isinstance(block, int) else pool.submit(_packed, block.data)

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
