"""Tables as spreadsheets write them: encoding, delimiter, header, numbers, and which column is what."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from raterscope.algorithms.clicks.data import FloatArray
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.records import refuse_study

__all__ = ["FIELDS", "Faults", "Table", "UnknownColumns", "assign", "names", "numbers", "read_table"]

LONGEST_FILE = 2 << 30
LONGEST_CELL = 16 << 20
LONGEST_NAME = 500
FARTHEST = 1e7
_DELIMITERS = (",", ";", "\t", "|")
_BATCH = 10_000

csv.field_size_limit(LONGEST_CELL)

_ENDINGS = ("", "name", "id", "key", "number", "no")
FIELDS = {
    "annotator": "annotator worker rater user judge volunteer participant player observer reader labeler "
    "labeller contributor coder",
    "image": "image filename imagefile file picture photo subject slide img",
    "x": "x xpx xpixel xpixels xcoord xcoordinate xpos xposition posx centerx cx",
    "y": "y ypx ypixel ypixels ycoord ycoordinate ypos yposition posy centery cy",
    "time": "time times timestamp t ts tms timems seconds milliseconds createdat",
    "width": "width imagewidth naturalwidth",
    "height": "height imageheight naturalheight",
    "empty": "nemptyjobs emptyjobs nempty",
}
_NAMED = ("annotator", "image")


class UnknownColumns(InputError):  # noqa: N818 - a question to the person, rather than an error
    """A table whose columns must be named by hand.

    Attributes
    ----------
    header : tuple of str
        The columns' names; "column 1" and so on where the table has none.
    rows : tuple of tuple of str
        The first rows.
    guess : dict of column to field
        What was recognised.
    missing : tuple of str
        Fields that no column was recognised as.
    """

    def __init__(
        self, file: Path, header: Sequence[str], rows: Iterable[Sequence[str]], guess: Mapping[str, str],
        missing: Sequence[str],
    ) -> None:  # fmt: skip
        self.header = tuple(header)
        self.rows = tuple(tuple(row) for row in rows)
        self.guess = dict(guess)
        self.missing = tuple(missing)
        columns = ", ".join(plain(name, 30) for name in self.header[:12])
        super().__init__(
            f"no column is known as {' or '.join(missing)}; the columns are {columns}: tell which is which",
            file=file,
        )


@dataclass(frozen=True, eq=False)
class Table:
    """A table as text.

    Attributes
    ----------
    path : Path
    header : tuple of C names, each once
    columns : tuple of C columns, each a sequence of N cells
    lines : sequence of N int
        The line on which each row begins.
    """

    path: Path
    header: tuple[str, ...]
    columns: tuple[Sequence[str], ...]
    lines: Sequence[int]

    def __len__(self) -> int:
        return len(self.lines)

    def column(self, name: str) -> Sequence[str]:
        """Give a column by its name."""
        return self.columns[self.header.index(name)]

    def first_rows(self, count: int = 5) -> list[tuple[str, ...]]:
        """Give some rows to look at."""
        return [tuple(column[row] for column in self.columns) for row in range(min(count, len(self)))]


class Faults:
    """What is wrong in a table, line by line: the first is told, the others are counted."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._lines: set[int] = set()
        self._first: tuple[int, str, str] | None = None

    def add(self, rows: Iterable[int], field: str, what: str) -> None:
        """Note rows whose field is wrong; `what` may name the cell as {cell}."""
        for row in rows:
            self._lines.add(row)
            if self._first is None or row < self._first[0]:
                cell = plain(self._table.column(field)[row], 40) if field in self._table.header else ""
                self._first = (row, field, what.replace("{cell}", cell))

    def refuse(self) -> None:
        """Raise InputError where anything was noted."""
        if self._first is None:
            return
        row, field, what = self._first
        more = _others(len(self._lines) - 1)
        raise InputError(
            f"{what}{more}; nothing was imported",
            file=self._table.path,
            line=self._table.lines[row],
            field=field,
        )


def read_table(path: Path, watch: Watch = silent) -> Table:
    """Read a table of text: any encoding and delimiter that a spreadsheet writes.

    The first row is the header unless it holds a number. Empty rows are passed over.

    Raises
    ------
    InputError
        For a file that is missing, empty, no text, without columns, or whose rows differ in their number of
        cells.
    """
    watch(0.0, f"reading {plain(path.name)}")
    text = _decoded(_bytes_of(path), path)
    header: list[str] = []
    columns: list[list[str]] = []
    lines: list[int] = []
    bad: list[tuple[int, int]] = []
    for some, where in _rows(text, path):
        watch(0.5, f"reading {plain(path.name)}, line {where[0]:,}")
        if not header:
            header = _header(some[0], path)
            columns = [[] for _ in header]
        rows, kept = _even(some, where, len(header), bad)
        for column, more in zip(columns, zip(*rows, strict=True), strict=False):
            column.extend(more)
        lines.extend(kept)
    if bad:
        cells = f"{bad[0][1]} cell{'' if bad[0][1] == 1 else 's'}"
        what = f"has {cells}, where the header has {len(header)}{_others(len(bad) - 1)}; nothing was imported"
        raise InputError(what, file=path, line=bad[0][0])
    if any(_is_number(cell) for cell in header):
        header = [f"column {number}" for number in range(1, len(header) + 1)]
    else:
        lines = lines[1:]
        columns = [column[1:] for column in columns]
    if not lines:
        raise InputError("has a header but no rows", file=path)
    watch(0.8, f"{len(lines):,} rows read")
    return Table(path, _distinct(header), tuple(columns), lines)


def assign(
    table: Table, needed: Sequence[str], wanted: Sequence[str], mapping: Mapping[str, str] | None
) -> dict[str, str]:
    """Tell which column holds which field, by hand first, then by the usual names.

    Returns
    -------
    dict of field to column

    Raises
    ------
    UnknownColumns
        When a needed field has no column.
    InputError
        When the mapping names a column or a field that is not there.
    """
    found: dict[str, str] = {}
    by_hand = dict(mapping or {})
    for column, field in by_hand.items():
        if column not in table.header:
            known = ", ".join(plain(name, 30) for name in table.header[:20])
            raise InputError(f"there is no column {plain(column)}; the columns are {known}", file=table.path)
        if field not in (*needed, *wanted, "ignore"):
            raise InputError(
                f"{plain(field)} is no field; expected one of {', '.join((*needed, *wanted, 'ignore'))}",
                file=table.path, field=column,
            )  # fmt: skip
        if field in found:
            raise InputError(f"two columns are named {field}: {found[field]} and {column}", file=table.path)
        if field != "ignore":
            found[field] = column
    free = {_key(name): name for name in reversed(table.header) if name not in by_hand}
    for field in (*needed, *wanted):
        if field not in found:
            column_or_none = next((free[key] for key in _keys(field) if key in free), None)
            if column_or_none is not None:
                found[field] = column_or_none
    missing = [field for field in needed if field not in found]
    if missing:
        guess = {column: field for field, column in found.items()}
        raise UnknownColumns(table.path, table.header, table.first_rows(), guess, missing)
    return found


def numbers(table: Table, column: str, faults: Faults, *, empty: bool = False) -> FloatArray:
    """Read a column of places in pixels.

    Parameters
    ----------
    table : Table
    column : str
    faults : Faults
        Where cells that are no numbers are noted.
    empty : bool
        Whether an empty cell is no fault but NaN.

    Returns
    -------
    (N,) float64
    """
    cells = table.column(column)
    try:
        values = np.array(cells, dtype=np.float64) if "_" not in "".join(cells) else None
    except ValueError:
        values = None
    blank = np.zeros(len(cells), dtype=bool)
    if values is None:
        blank = np.array([not cell.strip() for cell in cells])
        comma = not any("." in cell for cell in cells)
        values = np.array([_number(cell, comma) for cell in cells])
    bad = ~(np.abs(values) <= FARTHEST) & ~(blank & empty)
    far = bad & np.isfinite(values)
    faults.add(
        np.flatnonzero(bad & ~far).tolist(), column, '"{cell}" is not a number; expected a place in pixels'
    )
    faults.add(np.flatnonzero(far).tolist(), column, "{cell} is farther out than any image reaches")
    return values


def names(table: Table, column: str, faults: Faults) -> list[str]:
    """Read a column of names; an empty or endless one is a fault.

    An apostrophe that `export.harmless` put before a name is taken away.
    """
    cells = [cell.strip() for cell in table.column(column)]
    if any(cell.startswith("'") for cell in cells):
        cells = [re.sub(r"^'(?='*[=+\-@])", "", cell) for cell in cells]
    faults.add((row for row, cell in enumerate(cells) if not cell), column, "is empty; expected a name")
    faults.add(
        (row for row, cell in enumerate(cells) if len(cell) > LONGEST_NAME),
        column, f"is longer than {LONGEST_NAME} letters; expected a name",
    )  # fmt: skip
    return cells


def _bytes_of(path: Path) -> bytes:
    refuse_study(path)
    try:
        size = path.stat().st_size
        if size > LONGEST_FILE:
            raise InputError(f"has {size / 2**30:.1f} GB; expected a table of at most 2 GB", file=path)
        data = path.read_bytes()
    except FileNotFoundError:
        raise InputError("is not there", file=path) from None
    except IsADirectoryError:
        raise InputError("is a folder; expected a table", file=path) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from error
    if not data.strip():
        raise InputError("is empty; expected a table", file=path)
    return data


def _decoded(data: bytes, path: Path) -> str:
    if data.startswith((b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")):
        encodings = ["utf-32"]
    elif data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encodings = ["utf-16"]
    elif b"\x00" in data[:4096]:
        even, odd = data[0:4096:2].count(0), data[1:4096:2].count(0)
        encodings = ["utf-16-le"] if odd > 4 * even else ["utf-16-be"] if even > 4 * odd else []
    else:
        encodings = ["utf-8-sig", "cp1252"]
    for encoding in encodings:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        head = text[:4096]
        if (
            "\x00" not in text
            and sum(letter < " " and letter not in "\t\r\n\f" for letter in head) <= len(head) // 100
        ):
            return text
    raise InputError("is no text; expected a table (CSV) or an image", file=path)


def _delimiter(text: str, path: Path) -> tuple[str, int]:
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


def _rows(text: str, path: Path) -> Iterator[tuple[list[list[str]], list[int]]]:
    """Cut text into rows of cells, a batch at a time: a list a row for the whole file is slow to keep."""
    delimiter, skip = _delimiter(text, path)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
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


def _header(row: list[str], path: Path) -> list[str]:
    width = max((index + 1 for index, cell in enumerate(row) if cell.strip()), default=0)
    if width < 2:
        what = "has no columns; expected a table with a header, such as annotator,image,x,y"
        raise InputError(what, file=path)
    return [cell.strip() for cell in row[:width]]


def _even(
    rows: list[list[str]], lines: list[int], width: int, bad: list[tuple[int, int]]
) -> tuple[list[list[str]], list[int]]:
    """Bring rows to the header's width: cells beyond it must be empty, rows of empty cells go.

    Rows that cannot are added to `bad`, with their line and number of cells.
    """
    if all(len(row) == width and any(row) for row in rows):
        return rows, lines
    even, where = [], []
    for row, line in zip(rows, lines, strict=True):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) < width or any(cell.strip() for cell in row[width:]):
            bad.append((line, len(row)))
        else:
            even.append(row[:width])
            where.append(line)
    return even, where


def _others(count: int) -> str:
    return f" (and {count:,} more bad line{'' if count == 1 else 's'})" if count else ""


def _distinct(header: list[str]) -> tuple[str, ...]:
    found: list[str] = []
    for index, name in enumerate(header, start=1):
        name = name or f"column {index}"
        count, told_apart = 2, name
        while told_apart in found:
            told_apart, count = f"{name} ({count})", count + 1
        found.append(told_apart)
    return tuple(found)


def _keys(field: str) -> list[str]:
    """List the usual names of a field's column: the plain word before a name, a name before an id."""
    words = FIELDS[field].split()
    if field not in _NAMED:
        return words
    return [word + ending for word in words for ending in _ENDINGS]


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.casefold())


def _is_number(cell: str) -> bool:
    return bool(re.fullmatch(r"\s*[-+]?\d+([.,]\d*)?(e[-+]?\d+)?\s*", cell, re.IGNORECASE | re.ASCII))


def _number(cell: str, comma: bool) -> float:
    """Read a number, with a decimal comma where the column has no point; NaN where it is none."""
    if comma and cell.count(",") == 1:
        cell = cell.replace(",", ".")
    if "_" in cell:
        return float("nan")
    try:
        return float(cell)
    except ValueError:
        return float("nan")
