"""The lines of a file that is still written: only those that are complete."""

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

from raterscope.app.errors import InputError
from raterscope.app.formats.dialects import decoded, encodings_of, no_text
from raterscope.app.formats.records import refuse_special

__all__ = [
    "LONGEST",
    "Hash",
    "Stamp",
    "Text",
    "begin",
    "digest_of",
    "is_settled",
    "is_still",
    "lines_in",
    "mended",
    "opened",
    "size_of",
    "stamp_of",
]


_BLOCK = 4096
_PIECE = 1 << 20
_BLOCKS = 16
_SETTLED = 2.0

Stamp = tuple[int, int, int, int]
Hash = hashlib.blake2b


def stamp_of(status: os.stat_result) -> Stamp:
    """Give what tells that a file was written to: size, times and inode."""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def is_settled(stamp: Stamp) -> bool:
    """Tell whether a file with this stamp can be taken for unchanged as long as the stamp is the same.

    Clocks of file systems tick slowly: a file that was written to just now may be so again within the tick.
    """
    return time.time() - max(stamp[1:3]) / 1e9 > _SETTLED


def digest_of(stream: BinaryIO, offset: int) -> bytes:
    """Digest blocks spread evenly over the first bytes of a file, the first and the last among them.

    A file that was replaced differs in one of them, unless what came instead has the same length up to there
    and differs between the blocks alone.
    """
    digest = hashlib.blake2b(digest_size=16)
    for start in sorted({max(offset - _BLOCK, 0) * step // _BLOCKS for step in range(_BLOCKS + 1)}):
        stream.seek(start)
        digest.update(stream.read(min(_BLOCK, offset - start)))
    return digest.digest()


def is_still(stream: BinaryIO, start: int, stop: int, taken: Hash) -> bool:
    """Tell whether a part of a file is what was read of it: it may have been rewritten in between."""
    again = Hash()
    stream.seek(start)
    while stop > start and (data := stream.read(min(_PIECE, stop - start))):
        again.update(data)
        start += len(data)
    return start == stop and again.digest() == taken.digest()


def opened(path: Path) -> BinaryIO | None:
    """Open a file to read it; None where there is none.

    Raises
    ------
    InputError
        For what is a study, is no ordinary file, or cannot be read.
    """
    refuse_special(path)
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise InputError("is no file with rows", file=path)
        return path.open("rb", buffering=0)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from None


LONGEST = 4 << 20
"""Bytes of a line."""

_MARKS = {"utf-8": b"\xef\xbb\xbf", "utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff",
          "utf-32-le": b"\xff\xfe\x00\x00", "utf-32-be": b"\x00\x00\xfe\xff"}  # fmt: skip


@dataclass(frozen=True)
class Text:
    """How a file's bytes are to be read: its codec, and the byte on which its text begins."""

    codec: str
    start: int


def begin(data: bytes, path: Path, ended: bool) -> Text | None:
    """Tell a file's encoding by its first line; None while that is not complete.

    Raises
    ------
    InputError
        For what is no text, or whose first line is too long.
    """
    line = re.match(rb"[\r\n]*[^\r\n]+[\r\n]", data)
    if line is None and len(data) > LONGEST:
        raise InputError("the first line is too long for a table", file=path)
    if line is None and not (ended and data.strip()):
        return None
    first = data if line is None else line.group()
    names = encodings_of(first)
    if not names:
        raise no_text(path)
    decoded(first, path, whole=False)
    codec = names[0].removesuffix("-sig")
    if codec in ("utf-16", "utf-32"):
        codec += "-le" if data.startswith(b"\xff\xfe") else "-be"
    return Text(codec, len(_MARKS[codec]) if data.startswith(_MARKS[codec]) else 0)


def lines_in(data: bytes, codec: str, ended: bool) -> tuple[list[str], int]:
    """Cut bytes into the lines that are complete; a line end that may be half of one completes none.

    Bytes that are no UTF-8 are kept as Python keeps them (surrogateescape), for `mended` to read.

    Returns
    -------
    lines : list of str
        With their ends.
    rest : int
        Bytes of the line that is not complete.
    """
    unit = _unit(codec)
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


def mended(cell: str) -> str:
    """Read a cell that is no UTF-8 as what old spreadsheets write (cp1252).

    Raises
    ------
    ValueError
        For what is no text in either.
    """
    if "\x00" in cell:
        raise ValueError("NUL")
    try:
        cell.encode("utf-8")
    except UnicodeEncodeError:
        return cell.encode("utf-8", "surrogateescape").decode("cp1252")
    return cell


def _unit(codec: str) -> int:
    return 4 if "32" in codec else 2 if "16" in codec else 1


def _errors(codec: str) -> str:
    return "surrogateescape" if codec == "utf-8" else "surrogatepass" if "16" in codec else "replace"
