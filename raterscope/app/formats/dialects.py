"""Text that is a table: encoding, delimiter, rows of cells, and the first row, which names the columns."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import itertools
import re
import zlib
from collections.abc import Iterable, Iterator
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import Any, BinaryIO

from raterscope.app.errors import InputError
from raterscope.app.formats.records import refuse_special

__all__ = [
    "bytes_of", "decoded", "delimiter_of", "distinct", "encodings_of", "even", "header_of", "is_headed",
    "may_be_text", "no_text", "opened", "others", "refuse_uneven", "rows_of",
]  # fmt: skip

LONGEST_FILE, _LONGEST_UNPACKED = 2 << 30, 512 << 20
_ALWAYS_UNPACKED, _UNPACKED_A_BYTE = 32 << 20, 50
LONGEST_CELL = LONGEST_LINE = 16 << 20
_DELIMITERS = (",", ";", "\t", "|")
_BATCH = 10_000
_GZIP = b"\x1f\x8b"
_PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp")

csv.field_size_limit(LONGEST_CELL)


def bytes_of(path: Path, most: int = -1, file: BinaryIO | None = None) -> bytes:
    """Read a file that may be a table, or its first bytes; from `file` if it is open already.

    Raises
    ------
    InputError
        For a file that is missing, empty or too long, and for a folder.
    """
    refuse_special(path)
    try:
        size = path.stat().st_size
        if size > LONGEST_FILE:
            raise InputError(f"has {size / 2**30:.1f} GB; expected a table of at most 2 GB", file=path)
        with opened(path, file) as stream:
            data = stream.read(most)
    except FileNotFoundError:
        raise InputError("is not there", file=path) from None
    except IsADirectoryError:
        raise InputError("is a folder; expected a table", file=path) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from error
    if not data.strip():
        raise InputError("is empty; expected a table", file=path)
    return data


def opened(path: Path, file: BinaryIO | None = None) -> BinaryIO:
    """Open a file that may be a table; one that gzip has packed is unpacked as it is read.

    Parameters
    ----------
    path : Path
    file : BinaryIO, optional
        The file where it is open already; it is closed with what this returns.
    """
    stream = path.open("rb") if file is None else file
    packed = stream.read(len(_GZIP)) == _GZIP
    stream.seek(0)
    return BufferedReader(_Unpacked(path, stream)) if packed else stream


def may_be_text(start: bytes) -> bool:
    """Tell by its first bytes whether a file may be text, packed by gzip or not."""
    return start.startswith(_GZIP) or bool(encodings_of(start))


class _Unpacked(RawIOBase):
    """What gzip has packed, up to a length: a small file may unpack to more than fits the memory."""

    def __init__(self, path: Path, packed: BinaryIO) -> None:
        self._path, self._packed = path, packed
        self._stream, self._read = gzip.GzipFile(fileobj=packed), 0
        self._most = min(_LONGEST_UNPACKED, _ALWAYS_UNPACKED + _UNPACKED_A_BYTE * path.stat().st_size)

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; gives how many bytes there were."""
        try:
            data = self._stream.read(len(buffer))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError("is damaged: what gzip packed cannot be unpacked", file=self._path) from error
        self._read += len(data)
        if self._read > self._most:
            most = self._most >> 20
            raise InputError(f"unpacks to more than {most} MB; unpack it first", file=self._path)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close the file."""
        self._stream.close()
        self._packed.close()
        super().close()


def encodings_of(data: bytes) -> tuple[str, ...]:
    """Tell the encodings that a text may have, the likeliest first, by its first bytes."""
    if data.startswith((b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")):
        return ("utf-32",)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return ("utf-16",)
    if b"\x00" in data[:4096]:
        even, odd = data[0:4096:2].count(0), data[1:4096:2].count(0)
        return ("utf-16-le",) if odd > 4 * even else ("utf-16-be",) if even > 4 * odd else ()
    return ("utf-8-sig", "cp1252")


def decoded(data: bytes, path: Path, *, whole: bool = True) -> str:
    """Decode a text; of one that is not `whole`, the last letter may be cut.

    Raises
    ------
    InputError
        For what is no text.
    """
    for encoding in encodings_of(data):
        try:
            text = codecs.getincrementaldecoder(encoding)().decode(data, final=whole)
        except UnicodeDecodeError:
            continue
        head = text[:4096]
        if (
            "\x00" not in text
            and sum(letter < " " and letter not in "\t\r\n\f" for letter in head) <= len(head) // 100
        ):
            return text
    raise no_text(path)


def no_text(path: Path) -> InputError:
    """Say that a file is no text."""
    what = "is no text, nor an image of a kind that is read; expected a table (CSV), or PNG, JPEG or TIFF"
    return InputError(what, file=path)


def delimiter_of(text: str, path: Path) -> tuple[str, int]:
    """Find the delimiter, and how many lines to pass over before the header."""
    said = re.match(r"sep=(.)\r?\n", text, re.IGNORECASE)
    if said:
        return said.group(1), 1
    head = list(itertools.islice(io.StringIO(text[:200_000], newline=""), 50))
    if len(head) > 1 and not head[-1].endswith(("\n", "\r")):
        head.pop()
    best, score = ",", (0, 0)
    for delimiter in _DELIMITERS:
        try:
            widths = [len(row) for row in csv.reader(head, delimiter=delimiter) if row]
        except csv.Error:
            raise InputError("the line is too long for a table", file=path, line=1) from None
        even = sum(width == widths[0] for width in widths) if widths and widths[0] > 1 else 0
        if (even, widths[0] if widths else 0) > score:
            best, score = delimiter, (even, widths[0])
    return best, 0


def rows_of(
    stream: Iterable[str], delimiter: str, skip: int, path: Path
) -> Iterator[tuple[list[list[str]], list[int]]]:
    """Cut lines of text into rows of cells, a batch at a time: a list a row for the whole file is slow.

    Yields
    ------
    rows : list of rows that are not empty
    lines : list of int
        The line on which each begins.
    """
    reader = csv.reader(_within_bounds(stream), delimiter=delimiter)
    rows: list[list[str]] = []
    lines: list[int] = []
    begin = 1
    try:
        for row in reader:
            if row and begin > skip:
                rows.append(row)
                lines.append(begin)
                if len(rows) == _BATCH:
                    yield rows, lines
                    rows, lines = [], []
            begin = reader.line_num + 1
    except csv.Error:
        what = "the line is too long for a table, or a quote in it is never closed"
        raise InputError(what, file=path, line=begin) from None
    if rows:
        yield rows, lines


def _within_bounds(stream: Iterable[str]) -> Iterator[str]:
    """Refuse a line of millions of cells before room is made for each of them."""
    for line in stream:
        if len(line) > LONGEST_LINE:
            raise csv.Error
        yield line


def header_of(row: list[str], path: Path) -> list[str]:
    """Give the cells of the first row, without the empty ones at its end."""
    width = max((index + 1 for index, cell in enumerate(row) if cell.strip()), default=0)
    if width < 2:
        what = "has no columns; expected a table with a header, such as annotator,image,x,y"
        if path.suffix.casefold() in _PICTURES:
            what = "is damaged, or is no image; save it again as PNG or TIFF"
        raise InputError(what, file=path)
    return [cell.strip() for cell in row[:width]]


def even(
    rows: list[list[str]], lines: list[int], width: int, bad: list[tuple[int, int]]
) -> tuple[list[list[str]], list[int]]:
    """Bring rows to the header's width: cells beyond it must be empty, rows of empty cells go.

    Rows that cannot are added to `bad`, with their line and number of cells.
    """
    if all(len(row) == width and any(row) for row in rows):
        return rows, lines
    kept, where = [], []
    for row, line in zip(rows, lines, strict=True):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) < width or any(cell.strip() for cell in row[width:]):
            bad.append((line, len(row)))
        else:
            kept.append(row[:width])
            where.append(line)
    return kept, where


def refuse_uneven(bad: list[tuple[int, int]], width: int, path: Path) -> None:
    """Refuse a table with rows, given as (line, cells), that are not as wide as its header."""
    if bad:
        cells = f"{bad[0][1]} cell{'' if bad[0][1] == 1 else 's'}"
        what = f"has {cells}, where the header has {width}{others(len(bad) - 1)}; nothing was imported"
        raise InputError(what, file=path, line=bad[0][0])


def others(count: int) -> str:
    """Say how many more lines are bad than the one that is named."""
    return f" (and {count:,} more bad line{'' if count == 1 else 's'})" if count else ""


def is_headed(row: list[str]) -> bool:
    """Tell whether the first row names the columns: it does unless it holds a number."""
    return not any(_is_number(cell) for cell in row)


def distinct(header: list[str]) -> tuple[str, ...]:
    """Give every column a name of its own."""
    found: dict[str, None] = {}
    last: dict[str, int] = {}
    for index, name in enumerate(header, start=1):
        name = name or f"column {index}"
        told_apart = name
        while told_apart in found:
            last[name] = last.get(name, 1) + 1
            told_apart = f"{name} ({last[name]})"
        found[told_apart] = None
    return tuple(found)


def _is_number(cell: str) -> bool:
    return bool(re.fullmatch(r"\s*[-+]?\d+([.,]\d*)?(e[-+]?\d+)?\s*", cell, re.IGNORECASE | re.ASCII))
