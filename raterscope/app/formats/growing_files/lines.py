"""The lines of a file that is still written: only those that are complete."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from raterscope.app.errors import InputError
from raterscope.app.formats.dialects import decoded, encodings_of, no_text

__all__ = ["LONGEST", "Text", "begin", "lines_in", "mended", "size_of"]

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
