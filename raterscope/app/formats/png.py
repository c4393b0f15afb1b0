"""Chunks of a PNG: EXIF after the pixels, and a digest by the checksums that the file contains.

Each chunk ends with the CRC-32 of its type and data, so the lengths, types and checksums of all chunks stand
for every byte of the file. A changed image has the same ones with a probability of 2^-32.

References
----------
W3C, "Portable Network Graphics (PNG) Specification (Third Edition)", 2025, https://www.w3.org/TR/png-3/.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from raterscope.algorithms.progress import Watch, silent

SIGNATURE = b"\x89PNG\r\n\x1a\n"
BY_CHECKSUMS = "png:"
"""Prefix of a digest of checksums."""

_LONGEST_EXIF = 1 << 16
_SMALLEST = 512
"""Bytes of a chunk on average; in a file with smaller ones the chunks are not listed."""
_ALWAYS_LISTED = 1000
_BLOCK = 4 << 20


@dataclass(frozen=True)
class Chunks:
    """Chunks of a PNG."""

    table: bytes  # of each chunk the length, type and checksum, 4 bytes each
    complete: bool  # whether the table lists the whole file
    exif: bytes  # empty if there is none

    @property
    def digest(self) -> str | None:
        """SHA-256 of the table, "png:" and hexadecimal digits; None if it is not complete."""
        return f"{BY_CHECKSUMS}{hashlib.sha256(self.table).hexdigest()}" if self.complete else None


def read_chunks(file: IO[bytes]) -> Chunks:
    """List the chunks of an open PNG; the position in the file stays."""
    file = getattr(file, "raw", file)  # a buffer would be filled for every chunk
    before = file.tell()
    size = file.seek(0, os.SEEK_END)
    entries: list[bytes] = []
    exif = b""
    try:
        file.seek(len(SIGNATURE))
        start, head = len(SIGNATURE), file.read(8)
        while len(head) == 8 and len(entries) < _ALWAYS_LISTED + size // _SMALLEST:
            length = int.from_bytes(head[:4], "big")
            if head[4:] == b"eXIf" and not exif:
                exif = file.read(min(length, _LONGEST_EXIF))
            start += length + 12
            file.seek(start - 4)
            end = file.read(12)
            if len(end) < 4:
                break
            entries.append(head + end[:4])
            head = end[4:]
        return Chunks(b"".join(entries), start == size and not head, exif)
    finally:
        file.seek(before)


def has_right_checksums(path: Path, watch: Watch = silent, words: str = "reading") -> bool:
    """Compare the checksum of every chunk with its content; false for a damaged file."""
    from isal import isal_zlib

    size = path.stat().st_size
    with path.open("rb") as file:
        left = size - len(file.read(len(SIGNATURE)))
        while left:
            length = int.from_bytes(file.read(4), "big")
            checksum, unread = 0, length + 4
            if unread > left - 8:
                return False
            while unread:
                block = file.read(min(unread, _BLOCK))
                if not block:
                    return False
                checksum = isal_zlib.crc32(block, checksum)
                unread -= len(block)
            if file.read(4) != checksum.to_bytes(4, "big"):
                return False
            left -= length + 12
            watch(1 - left / size, words)
    return True
