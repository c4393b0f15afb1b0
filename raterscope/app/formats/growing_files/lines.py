"""Growing files: whether one changed, its encoding, and its complete lines."""

from __future__ import annotations

import hashlib
import io
import os
import re
import stat
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from raterscope.app.errors import InputError, system_reason
from raterscope.app.formats.dialects import decode_text, not_text_error, possible_encodings
from raterscope.app.formats.untrusted import refuse_special

_BLOCK = 4096
_PIECE = 1 << 20
_BLOCKS = 16
_SETTLED = 2.0

Stamp = tuple[int, int, int, int]
Hash = hashlib.blake2b


def stamp_of(status: os.stat_result) -> Stamp:
    """Return the size, times and inode of a file, which change when it is written to."""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def is_settled(stamp: Stamp) -> bool:
    """Return whether an equal stamp later means an unchanged file.

    File systems have coarse clocks: a file that was just written may change again within the same tick.
    """
    return time.time() - max(stamp[1:3]) / 1e9 > _SETTLED


def digest_of(stream: BinaryIO, offset: int) -> bytes:
    """Digest blocks spread evenly over the first `offset` bytes of a file, including the first and the last.

    The digest of a replaced file differs, unless the new content differs only between the blocks.
    """
    digest = hashlib.blake2b(digest_size=16)
    for start in sorted({max(offset - _BLOCK, 0) * step // _BLOCKS for step in range(_BLOCKS + 1)}):
        stream.seek(start)
        digest.update(stream.read(min(_BLOCK, offset - start)))
    return digest.digest()


def is_unchanged(stream: BinaryIO, start: int, stop: int, expected: Hash) -> bool:
    """Return whether a part of a file still has the digest that it had when it was read."""
    current = Hash()
    stream.seek(start)
    while stop > start and (data := stream.read(min(_PIECE, stop - start))):
        current.update(data)
        start += len(data)
    return start == stop and current.digest() == expected.digest()


def open_if_present(path: Path) -> BinaryIO | None:
    """Open a file for reading; None if it does not exist.

    Raises `InputError` for a study, a special file, or a file that cannot be read.
    """
    refuse_special(path)
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise InputError("is not a regular file", file=path)
        return path.open("rb", buffering=0)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"cannot be read: {system_reason(error)}", file=path) from None


LONGEST = 4 << 20
"""Maximum length of a line, bytes."""

_MARKS = {"utf-8": b"\xef\xbb\xbf", "utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff",
          "utf-32-le": b"\xff\xfe\x00\x00", "utf-32-be": b"\x00\x00\xfe\xff"}  # fmt: skip


@dataclass(frozen=True)
class Text:
    """Encoding of a file: its codec, and the byte at which the text begins."""

    codec: str
    start: int


def begin(data: bytes, path: Path, ended: bool) -> Text | None:
    """Detect a file's encoding from its first line; None while that line is not complete.

    Raises `InputError` for a file that is no text, or has a first line that is too long.
    """
    line = re.match(rb"[\r\n]*[^\r\n]+[\r\n]", data)
    if line is None and len(data) > LONGEST:
        raise InputError("the first line is too long for a table", file=path)
    if line is None and not (ended and data.strip()):
        return None
    first = data if line is None else line.group()
    names = possible_encodings(first)
    if not names:
        raise not_text_error(path)
    decode_text(first, path, is_complete=False)
    codec = names[0].removesuffix("-sig")
    if codec in ("utf-16", "utf-32"):
        codec += "-le" if data.startswith(b"\xff\xfe") else "-be"
    return Text(codec, len(_MARKS[codec]) if data.startswith(_MARKS[codec]) else 0)


def split_lines(data: bytes, codec: str, ended: bool) -> tuple[list[str], int]:
    """Split bytes into complete lines, with their ends; also return the number of remaining bytes.

    A carriage return at the very end does not complete a line yet. Bytes that are not UTF-8 become surrogates
    (surrogateescape), which `repair_cell` reads.
    """
    unit = 4 if "32" in codec else 2 if "16" in codec else 1
    data = data[: len(data) - len(data) % unit]
    text = data.decode(codec, _errors(codec))
    lines = list(io.StringIO(text, newline=""))
    rest = 0
    if lines and not ended and not lines[-1].endswith("\n"):
        rest = size_of([lines.pop()], codec)
    return lines, rest


def size_of(lines: Sequence[str], codec: str) -> int:
    """Count the bytes of some lines."""
    return len("".join(lines).encode(codec, _errors(codec)))


def repair_cell(cell: str) -> str:
    """Read a cell that is not UTF-8 as cp1252, which old spreadsheets write.

    Raises `ValueError` for a cell that is no text in either encoding.
    """
    if "\x00" in cell:
        raise ValueError("NUL")
    try:
        cell.encode("utf-8")
    except UnicodeEncodeError:
        return cell.encode("utf-8", "surrogateescape").decode("cp1252")
    return cell


def _errors(codec: str) -> str:
    return "surrogateescape" if codec == "utf-8" else "surrogatepass" if "16" in codec else "replace"
