"""Dialects of text tables: encoding, delimiter, rows of cells, and header."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import itertools
import lzma
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import Any, BinaryIO

from raterscope.app.errors import InputError, system_reason
from raterscope.app.formats.signatures import IMAGES_IN_WORDS
from raterscope.app.formats.untrusted import refuse_special
from raterscope.app.formats.workbooks import WORKBOOKS, read_sheet

LONGEST_FILE, _LONGEST_UNPACKED = 2 << 30, 512 << 20
_ALWAYS_UNPACKED, _UNPACKED_A_BYTE = 32 << 20, 50
LONGEST_CELL = LONGEST_LINE = 16 << 20
_DELIMITERS = (",", ";", "\t", "|")
_NUMBER_CELL = re.compile(r"(^|[,;\t|])\s*[-+]?\d+([.,]\d*)?\s*([,;\t|\r\n]|$)")
_SAMPLED = 50
"""Number of lines by which the delimiter is detected."""
BATCH = 10_000
_PACKERS: dict[bytes, tuple[str, Callable[[BinaryIO], Any]]] = {
    b"\x1f\x8b": ("gzip", gzip.open), b"BZh": ("bzip2", bz2.open), b"\xfd7zXZ\0": ("xz", lzma.open),
}  # fmt: skip
"""By the first bytes of a compressed file: the program, and the function that reads it."""

_ARCHIVES = (".zip", ".tar", ".tar.gz", ".tar.bz2", ".tar.xz", ".tgz", ".7z", ".rar")
_PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".gif", ".webp")

csv.field_size_limit(LONGEST_CELL)


def read_table_bytes(path: Path, most: int = -1, file: BinaryIO | None = None) -> bytes:
    """Read a file that may be a table, or its first bytes; from `file` if it is already open.

    Raises `InputError` for a file that is missing, empty or too large, and for a folder.
    """
    refuse_special(path)
    try:
        size = path.stat().st_size
        if size > LONGEST_FILE:
            raise InputError(f"has {size / 2**30:.1f} GB; expected a table of at most 2 GB", file=path)
        with open_table(path, file) as stream:
            data = stream.read(most)
    except FileNotFoundError:
        raise InputError("does not exist", file=path) from None
    except IsADirectoryError:
        raise InputError("is a folder; expected a table", file=path) from None
    except OSError as error:
        raise InputError(f"cannot be read: {system_reason(error)}", file=path) from error
    if not data.strip():
        raise InputError("is empty; expected a table", file=path)
    return data


def open_table(path: Path, file: BinaryIO | None = None) -> BinaryIO:
    """Open a file that may be a table; it is decompressed while reading, a spreadsheet becomes CSV.

    `file`: the file, if already open; closing the result closes it.
    """
    if path.suffix.casefold() in WORKBOOKS:
        if file is not None:
            file.close()
        return read_sheet(path)
    stream = path.open("rb") if file is None else file
    return BufferedReader(_Unpacked(path, stream)) if is_packed(stream) else stream


def is_packed(stream: BinaryIO) -> bool:
    """Return whether a file is compressed by gzip, bzip2 or xz."""
    start = stream.read(8)
    stream.seek(0)
    return start.startswith(tuple(_PACKERS))


def may_be_text(start: bytes) -> bool:
    """Return whether a file with these first bytes may be text, also compressed."""
    return start.startswith(tuple(_PACKERS)) or bool(possible_encodings(start))


class _Unpacked(RawIOBase):
    """Decompressed file with a size limit, because a small file may decompress to gigabytes."""

    def __init__(self, path: Path, packed: BinaryIO) -> None:
        self._path, self._packed = path, packed
        start = packed.read(8)
        packed.seek(0)
        self._program, unpack = next(some for begin, some in _PACKERS.items() if start.startswith(begin))
        self._stream, self._read = unpack(packed), 0
        self._most = min(_LONGEST_UNPACKED, _ALWAYS_UNPACKED + _UNPACKED_A_BYTE * path.stat().st_size)

    def readable(self) -> bool:
        """Return True: the stream can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; return the number of bytes."""
        try:
            data = self._stream.read(len(buffer))
        except (EOFError, zlib.error, lzma.LZMAError, MemoryError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            problem = f"is damaged: it cannot be unpacked by {self._program}"
            raise InputError(problem, file=self._path) from error
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


def possible_encodings(data: bytes) -> tuple[str, ...]:
    """List the possible encodings of a text by its first bytes, the most probable first."""
    if data.startswith((b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")):
        return ("utf-32",)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return ("utf-16",)
    if b"\x00" in data[:4096]:
        zeros, odd_zeros = data[0:4096:2].count(0), data[1:4096:2].count(0)
        return ("utf-16-le",) if odd_zeros > 4 * zeros else ("utf-16-be",) if zeros > 4 * odd_zeros else ()
    return ("utf-8-sig", "cp1252")


def decode_text(data: bytes, path: Path, *, is_complete: bool = True) -> str:
    """Decode a text; unless `is_complete`, the last character may be incomplete.

    Raises `InputError` for a file that is not text.
    """
    for encoding in possible_encodings(data):
        try:
            text = codecs.getincrementaldecoder(encoding)().decode(data, final=is_complete)
        except UnicodeDecodeError:
            continue
        head = text[:4096]
        if (
            "\x00" not in text
            and sum(letter < " " and letter not in "\t\r\n\f" for letter in head) <= len(head) // 100
        ):
            return text
    raise not_text_error(path)


def not_text_error(path: Path) -> InputError:
    """Return the error for a file that is not text."""
    if path.name.casefold().endswith(_ARCHIVES):
        return InputError("is an archive; unpack it and import the folder", file=path)
    problem = f"is neither text nor an image of a known format; expected a table (CSV), or {IMAGES_IN_WORDS}"
    return InputError(problem, file=path)


def detect_delimiter(text: str, path: Path) -> tuple[str, int]:
    """Detect the delimiter, and the number of lines to skip before the header."""
    declared = re.match(r"sep=(.)\r?\n", text, re.IGNORECASE)
    if declared:
        return declared.group(1), 1
    lines = list(itertools.islice(io.StringIO(text[:200_000], newline=""), 20 * _SAMPLED))
    skip = count_comments(lines)
    if skip == len(lines) > 0:
        raise InputError("has comments but no header; expected a header and rows", file=path)
    head = lines[skip : skip + _SAMPLED]
    if len(head) > 1 and not head[-1].endswith(("\n", "\r")):
        head.pop()
    best, score = ",", (0, 0)
    for delimiter in _DELIMITERS:
        try:
            widths = [len(row) for row in csv.reader(head, delimiter=delimiter) if row]
        except csv.Error:
            raise InputError("the line is too long for a table", file=path, line=1) from None
        same = sum(width == widths[0] for width in widths) if widths and widths[0] > 1 else 0
        if (same, widths[0] if widths else 0) > score:
            best, score = delimiter, (same, widths[0])
    return best, skip


def count_comments(lines: Sequence[str]) -> int:
    """Count the lines above the header that begin with "#" or are blank below such a line.

    A last line such as "#x,y" is the header; so is "# x,y" above numbers, as NumPy writes it.
    """
    if not lines or not lines[0].startswith("#"):
        return 0
    first = next((at for at, line in enumerate(lines) if line.strip() and line[0] != "#"), len(lines))
    last = next(at for at in range(first - 1, -1, -1) if lines[at].startswith("#"))
    if first < len(lines):
        is_close = lines[last][1:2].strip() != "" or re.search(_NUMBER_CELL, lines[first]) is not None
        widths = [(lines[last].count(mark), lines[first].count(mark)) for mark in _DELIMITERS]
        if is_close and any(width == other > 0 for width, other in widths):
            return last
    return first


def split_rows(
    stream: Iterable[str], delimiter: str, skip: int, path: Path
) -> Iterator[tuple[list[list[str]], list[int]]]:
    """Split lines of text into rows of cells; yield batches of rows and the line where each begins.

    Empty rows are skipped. Batches are faster than all rows of a file at once.
    """
    reader = csv.reader(_within_bounds(itertools.islice(stream, skip, None)), delimiter=delimiter)
    rows: list[list[str]] = []
    lines: list[int] = []
    begin = skip + 1
    try:
        for row in reader:
            if row:
                rows.append(row)
                lines.append(begin)
                if len(rows) == BATCH:
                    yield rows, lines
                    rows, lines = [], []
            begin = skip + reader.line_num + 1
    except csv.Error:
        problem = "the line is too long for a table, or a quote in it is never closed"
        raise InputError(problem, file=path, line=begin) from None
    if rows:
        yield rows, lines


def _within_bounds(stream: Iterable[str]) -> Iterator[str]:
    """Refuse a line that is too long before memory is allocated for its cells."""
    for line in stream:
        if len(line) > LONGEST_LINE:
            raise csv.Error
        yield line


def header_cells(row: list[str], path: Path) -> list[str]:
    """Return the cells of the first row, without empty cells at its end."""
    width = max((index + 1 for index, cell in enumerate(row) if cell.strip()), default=0)
    if width < 2:
        problem = "has no columns in its first row; expected a header there, such as annotator,image,x,y"
        if path.suffix.casefold() in _PICTURES:
            problem = "is damaged, or is not an image; save it again as PNG or TIFF"
        raise InputError(problem, file=path)
    return [cell.strip() for cell in row[:width]]


def fit_width(
    rows: list[list[str]], lines: list[int], width: int, bad: list[tuple[int, int]]
) -> tuple[list[list[str]], list[int]]:
    """Truncate rows to the header's width, if the extra cells are empty, and drop empty rows.

    Other rows are added to `bad`, with their line and number of cells.
    """
    if all(len(row) == width and any(row) for row in rows):
        return rows, lines
    kept, kept_lines = [], []
    for row, line in zip(rows, lines, strict=True):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) < width or any(cell.strip() for cell in row[width:]):
            bad.append((line, len(row)))
        else:
            kept.append(row[:width])
            kept_lines.append(line)
    return kept, kept_lines


def refuse_uneven(bad: list[tuple[int, int]], width: int, path: Path) -> None:
    """Refuse a table with rows of another width than its header; `bad` lists (line, cells)."""
    if bad:
        cells = f"{bad[0][1]} cell{'' if bad[0][1] == 1 else 's'}"
        problem = (
            f"has {cells}, where the header has {width}{more_bad_lines(len(bad) - 1)}; nothing was imported"
        )
        raise InputError(problem, file=path, line=bad[0][0])


def more_bad_lines(count: int) -> str:
    """Describe the number of further bad lines."""
    return f" (and {count:,} more bad line{'' if count == 1 else 's'})" if count else ""


def unique_names(header: list[str]) -> tuple[str, ...]:
    """Make the names of columns unique."""
    names: dict[str, None] = {}
    last: dict[str, int] = {}
    for index, name in enumerate(header, start=1):
        name = name or f"column {index}"
        unique = name
        while unique in names:
            last[name] = last.get(name, 1) + 1
            unique = f"{name} ({last[name]})"
        names[unique] = None
    return tuple(names)
