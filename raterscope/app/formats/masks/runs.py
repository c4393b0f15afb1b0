"""Run lengths as annotation programs pack masks, read as runs of marked pixels and not as pixels.

A few bytes can stand for a billion pixels: where the runs lie is known before room is made for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Runs", "compressed_counts", "counted_runs", "studio_runs"]

Runs = tuple[NDArray[np.int64], NDArray[np.int64]]
"""First pixel of each run, and the one after its last; in order, and without an empty run."""


def counted_runs(counts: Sequence[Any], size: int) -> Runs:
    """Read run lengths, background first.

    Raises
    ------
    ValueError
        When the lengths are no whole numbers, or do not fill a mask of `size` pixels.
    """
    if not all(type(count) is int and 0 <= count <= size for count in counts) or sum(counts) != size:
        raise ValueError("run lengths that do not fill the mask")
    ends = np.cumsum(np.array(counts, dtype=np.int64))
    starts = ends - np.array(counts, dtype=np.int64)
    return _without_empty(starts[1::2], ends[1::2])


def compressed_counts(text: str) -> list[int]:
    """Decode the run lengths that COCO packs into a string.

    Five bits a letter, from "0" upwards, the low ones first; a sixth says that more follow. From the fourth
    length on, the difference to the one before the last is stored.

    Raises
    ------
    ValueError
        For a letter that is none of the code, and a length that is cut short or below 0.
    """
    counts: list[int] = []
    value, shift = 0, 0
    for letter in text:
        code = ord(letter) - 48
        if not 0 <= code < 64 or shift > 40:
            raise ValueError("packed run lengths that are none")
        value |= (code & 31) << shift
        shift += 5
        if code & 32:
            continue
        if code & 16:
            value -= 1 << shift
        if len(counts) > 2:
            value += counts[-2]
        if value < 0:
            raise ValueError("packed run lengths that are none")
        counts.append(value)
        value = shift = 0
    if shift:
        raise ValueError("packed run lengths that are cut short")
    return counts


def studio_runs(packed: Sequence[Any], pixels: int) -> Runs:
    """Decode a Label Studio brush, which packs red, green, blue and opacity of every pixel.

    A head gives the number of values (32 bit), the bits of a value (5 bit, less one), and four sizes of
    counts (4 bit each, less one). Then, until all values are there: one bit that says whether one value is
    repeated, two that choose a size, the count less one in that many bits, and the value or the values.

    Parameters
    ----------
    packed : sequence of bytes, 0 to 255
    pixels : int
        What the image has; the number of values that the head claims must be four times that.

    Returns
    -------
    Runs
        Of the pixels that are not wholly transparent.

    Raises
    ------
    ValueError
        For bytes that are none, end early, or claim another number of values.
    """
    try:
        content = bytes(packed)
    except (TypeError, ValueError):
        raise ValueError("packed runs that are no bytes") from None
    bits = _Bits(content)
    count = bits.take(32)
    if count != 4 * pixels:
        raise ValueError(f"packed runs of {count:,} values for {pixels:,} pixels")
    word = bits.take(5) + 1
    if word != 8:
        raise ValueError(f"packed runs of {word} bits a value")
    sizes = [bits.take(4) + 1 for _ in range(4)]
    starts, ends = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    at = 0
    while at < count:
        repeated = bits.take(1)
        stop = at + 1 + bits.take(sizes[bits.take(2)])
        if stop > count:
            raise ValueError("packed runs beyond the image")
        if repeated:
            opaque = bits.take(8) > 0
            first, last = np.array([at // 4]), np.array([stop // 4])  # of those whose fourth value is here
            if opaque:
                starts.append(first)
                ends.append(last)
        else:
            marked = at // 4 + np.flatnonzero(bits.bytes(stop - at)[3 - at % 4 :: 4])
            starts.append(marked)
            ends.append(marked + 1)
        at = stop
    return _without_empty(np.concatenate(starts), np.concatenate(ends))


def _without_empty(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Runs:
    kept = ends > starts
    return starts[kept], ends[kept]


class _Bits:
    """Reads bits from bytes, the high ones first."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def take(self, bits: int) -> int:
        first, last = self._at >> 3, (self._at + bits + 7) >> 3
        if last > len(self._content):
            raise ValueError("packed runs that are cut short")
        word = int.from_bytes(self._content[first:last], "big") >> (8 * last - self._at - bits)
        self._at += bits
        return word & ((1 << bits) - 1)

    def bytes(self, count: int) -> NDArray[np.uint8]:
        first, shift = self._at >> 3, self._at & 7
        if self._at + 8 * count > 8 * len(self._content):
            raise ValueError("packed runs that are cut short")
        self._at += 8 * count
        part = np.frombuffer(self._content, dtype=np.uint8)[first : first + count + 1]
        if not shift:
            return part[:count]
        return np.asarray((part[:-1] << shift) | (part[1:] >> (8 - shift)), dtype=np.uint8)
