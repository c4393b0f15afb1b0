"""Columns of a long table, ten million rows and more, with every name kept once.

Arrow parses the text; what it does not take, such as rows of other widths, goes the way of every other table,
row by row, which tells what is wrong and where.
"""

from __future__ import annotations

import io
import math
import operator
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.progress import Watch, part
from raterscope.app.errors import plain
from raterscope.app.formats import dialects, tables
from raterscope.app.formats.tables import Table, seconds_of

__all__ = ["Coded", "Columns", "Head", "head_of", "read_columns"]

_HEAD = 256 << 10
_ROWS = 500
_BATCH = 10_000
_BLOCK = 4 << 20
_SLICE = 50_000
_FRESH = 0.05


@dataclass(frozen=True, eq=False)
class Head:
    """The first rows of a table, and how its text is written.

    Attributes
    ----------
    table : Table
        The first rows.
    encodings : tuple of str
        The likeliest first.
    delimiter : str
    skip : int
        Lines above the header.
    headed : bool
        Whether the first row names the columns.
    plainly : bool
        Whether nothing stands above the first row that the delimiter does not explain.
    is_parquet : bool
        Then the rows have numbers instead of lines.
    """

    table: Table
    encodings: tuple[str, ...]
    delimiter: str
    skip: int
    headed: bool
    plainly: bool
    is_parquet: bool = False


@dataclass(frozen=True, eq=False)
class Coded:
    """A column of names: each once, in the order of first appearance; and which of them each row has."""

    names: list[str]
    index: NDArray[np.int32]


@dataclass(eq=False)
class Columns:
    """The columns that were asked for, by what they hold.

    Attributes
    ----------
    head : Head
    coded : dict of field to Coded
    time : (N,) float64 or None
        Seconds, NaN where a cell is empty.
    no_time : (row, cell) or None
        The first cell that is no time; then there are no times.
    even : bool
        Whether the rows were brought to one width, and those of empty cells alone left out.
    """

    head: Head
    coded: dict[str, Coded] = field(default_factory=dict)
    time: NDArray[np.float64] | None = None
    no_time: tuple[int, str] | None = None
    even: bool = False

    def line(self, row: int) -> int:
        """Tell on which line a row begins, by going through the file again."""
        if self.head.is_parquet:
            return row + 1
        wanted = row + self.head.headed
        for encoding in self.head.encodings:
            try:
                for rows, lines in _rows(self.head, encoding):
                    if self.even:
                        _, lines = dialects.fit_width(rows, lines, len(self.head.table.header), [])
                    if wanted < len(lines):
                        return lines[wanted]
                    wanted -= len(lines)
            except UnicodeDecodeError:
                wanted = row + self.head.headed
        return 1


def head_of(path: Path, file: BinaryIO | None = None, *, is_parquet: bool = False) -> Head:
    """Read the first rows of a table, from `file` if it is open already; it is closed then.

    Raises
    ------
    InputError
        For a file that is no table.
    """
    if is_parquet:
        return _parquet_head(path, file)
    data = dialects.read_table_bytes(path, _HEAD, file)
    whole = len(data) < _HEAD
    text = dialects.decode_text(data, path, whole=whole)
    delimiter, skip = dialects.detect_delimiter(text, path)
    stream = io.StringIO(text, newline="")
    rows, where = next(dialects.split_rows(stream, delimiter, skip, path), (list[list[str]](), list[int]()))
    if not whole and 1 < len(rows) < _BATCH:
        rows, where = rows[:-1], where[:-1]
    names = dialects.header_cells(rows[0] if rows else [], path)
    headed = dialects.is_headed(names)
    plainly = where[0] == skip + 1 and len(rows[0]) == len(names)
    rows, where = dialects.fit_width(rows[headed:_ROWS], where[headed:_ROWS], len(names), [])
    header = dialects.unique_names(names if headed else [""] * len(names))
    columns = tuple(zip(*rows, strict=True)) if rows else tuple(() for _ in header)
    table = Table(path, header, columns, where)
    return Head(table, dialects.possible_encodings(data), delimiter, skip, headed, plainly)


def _parquet_head(path: Path, file: BinaryIO | None) -> Head:
    names = tables.read_parquet_columns(path, file)
    first = next(tables.read_parquet_batches(path, names, file, _ROWS), [])
    cells = tuple(tuple(column.to_pylist()) for column in first) or tuple(() for _ in names)
    table = Table(path, tuple(names), cells, range(1, len(cells[0]) + 1))
    return Head(table, (), "", 0, headed=True, plainly=False, is_parquet=True)


def read_columns(head: Head, column: Mapping[str, str], watch: Watch) -> Columns:
    """Read the columns of a table.

    Parameters
    ----------
    head : Head
    column : mapping of field to column
        All are names, but the field "time".
    watch : Watch

    Raises
    ------
    InputError
        For what is no table, and for the first row that has more or fewer cells than the header.
    """
    import pyarrow

    if head.is_parquet:
        arrays = (
            [column.dictionary_encode() for column in some]
            for some in tables.read_parquet_batches(head.table.path, list(column.values()))
        )
        return _gathered(head, column, arrays, watch)
    for encoding in head.encodings if head.plainly else ():
        try:
            return _gathered(head, column, _parsed(head, encoding, list(column.values())), watch)
        except (pyarrow.ArrowInvalid, UnicodeError):
            continue
    refused: UnicodeError | None = None
    for encoding in head.encodings:
        try:
            found = _gathered(head, column, _cut(head, encoding, list(column.values())), watch)
            found.even = True
            return found
        except UnicodeError as error:
            refused = error
    assert refused is not None
    raise dialects.not_text_error(head.table.path) from refused


def _parsed(head: Head, encoding: str, columns: list[str]) -> Iterator[Any]:
    """Let Arrow parse the file, block by block."""
    import pyarrow
    from pyarrow import csv

    name = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    reading = csv.ReadOptions(
        block_size=_BLOCK, column_names=list(head.table.header), skip_rows=head.skip,
        skip_rows_after_names=int(head.headed),
        encoding="utf8" if encoding.startswith("utf-8") else encoding,
    )  # fmt: skip
    parsing = csv.ParseOptions(delimiter=head.delimiter, newlines_in_values=True)
    converting = csv.ConvertOptions(
        column_types=dict.fromkeys(columns, name), include_columns=columns, strings_can_be_null=False,
        null_values=[],
    )  # fmt: skip
    with (
        dialects.open_table(head.table.path) as stream,
        csv.open_csv(stream, reading, parsing, converting) as reader,
    ):
        for batch in reader:
            yield batch.columns


def _rows(head: Head, encoding: str) -> Iterator[tuple[list[list[str]], list[int]]]:
    with io.TextIOWrapper(dialects.open_table(head.table.path), encoding, newline="") as stream:
        yield from dialects.split_rows(stream, head.delimiter, head.skip, head.table.path)


def _cut(head: Head, encoding: str, columns: list[str]) -> Iterator[Any]:
    """Cut the file row by row; rows of other widths are refused at its end, all being counted."""
    import pyarrow

    header = head.table.header
    wanted = [header.index(name) for name in columns]
    bad: list[tuple[int, int]] = []
    first = head.headed
    for rows, lines in _rows(head, encoding):
        kept, _ = dialects.fit_width(rows[first:], lines[first:], len(header), bad)
        first = False
        if kept:
            cells = list(zip(*kept, strict=True))
            yield [pyarrow.array(cells[at], pyarrow.string()).dictionary_encode() for at in wanted]
    dialects.refuse_uneven(bad, len(header), head.table.path)


def _gathered(head: Head, column: Mapping[str, str], batches: Iterator[Any], watch: Watch) -> Columns:
    import pyarrow

    found = Columns(head)
    size = head.table.path.stat().st_size
    pieces: dict[str, list[Any]] = {name: [] for name in column}
    times = _Times(column.get("time", ""))
    rows, read = 0, 0
    for arrays in batches:
        watch(min(0.7, 0.7 * read / size), f"reading {plain(head.table.path.name)}, {rows:,} rows")
        for name, array in zip(column, arrays, strict=True):
            if name == "time":
                times.add(array, rows)
            else:
                pieces[name].append(array)
        rows += len(arrays[0])
        read += _BLOCK
    coded = [name for name in column if name != "time"]
    for at, name in enumerate(coded):
        step = part(watch, 0.7 + 0.3 * at / len(coded), 0.7 + 0.3 * (at + 1) / len(coded))
        kind = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
        found.coded[name] = _united(pyarrow.chunked_array(pieces.pop(name), type=kind), name, step)
    if "time" in column:
        found.time, found.no_time = times.seconds(), times.no_time
    return found


def _united(chunks: Any, name: str, watch: Watch) -> Coded:
    """Give equal names of all blocks one number. Arrow does so without a word, so another thread waits."""
    words = f"numbering every {name}"
    pool = ThreadPoolExecutor(1)
    try:
        waiting = pool.submit(chunks.unify_dictionaries)
        while True:
            watch(0.0, words)
            try:
                chunks = waiting.result(timeout=_FRESH)
                break
            except TimeoutError:
                continue
    finally:
        pool.shutdown(wait=False)
    if not chunks.num_chunks:
        return Coded([], np.empty(0, dtype=np.int32))
    names: list[str] = []
    dictionary = chunks.chunk(0).dictionary
    for start in range(0, len(dictionary), _SLICE):
        watch(0.5 + 0.5 * start / len(dictionary), words)
        names += dictionary.slice(start, _SLICE).to_pylist()
    # Arrow's own way to NumPy imports pandas first, wherever it is installed.
    index = np.concatenate([np.from_dlpack(chunk.indices) for chunk in chunks.chunks])
    return _stripped(names, index.astype(np.int32, copy=False), watch)


def _stripped(names: list[str], index: NDArray[np.int32], watch: Watch) -> Coded:
    """Take the blanks around names away; names that are one then get one number."""
    number: dict[str, int] = {}
    if not any(map(_is_marked, names)) and list(map(str.strip, names)) == names:
        return Coded(names, index)  # names of one dictionary differ
    place = np.empty(len(names), dtype=np.int32)
    for start in range(0, len(names), _SLICE):
        watch(1.0, "looking at names")
        some = names[start : start + _SLICE]
        place[start : start + len(some)] = [number.setdefault(clean(name), len(number)) for name in some]
    return Coded(list(number), index if len(number) == len(names) else place[index])


_is_marked = operator.methodcaller("startswith", "'")


def clean(name: str) -> str:
    """Take blanks away, and the apostrophe that a table's writer puts before what looks like a formula."""
    name = name.strip()
    return name[1:] if name.startswith("'") and name.lstrip("'")[:1] in ("=", "+", "-", "@") else name


_NO_TIME = {"", "nan", "nat", "na", "n/a", "null", "none"}
"""What programs write where a time is not known, in small letters."""


class _Times:
    """Times while they are read: numbers, if any of the first is one, else dates."""

    def __init__(self, column: str) -> None:
        self._scale = 0.001 if column.casefold().endswith(("ms", "milliseconds")) else 1.0
        self._parts: list[NDArray[np.float64]] = []
        self._numbers: bool | None = None
        self.no_time: tuple[int, str] | None = None

    def add(self, array: Any, before: int) -> None:
        """Read a block of cells, with so many rows before it."""
        if self.no_time is not None:
            return
        cells = array.dictionary.to_pylist()
        told = [cell for cell in cells[:100] if not _is_empty(cell)]
        if self._numbers is None and told:
            self._numbers = any(_is_number(cell) for cell in told)
        values = self._fast(array.dictionary)
        if values is None:
            values = np.array([self._value(cell) for cell in cells], dtype=np.float64)
        index = array.indices.to_numpy(zero_copy_only=False)
        wrong = np.isinf(values)
        if wrong.any():
            row = int(np.flatnonzero(wrong[index])[0])
            self.no_time = before + row, cells[index[row]]
        self._parts.append(values[index])

    def _fast(self, cells: Any) -> NDArray[np.float64] | None:
        """Let Arrow read a block in which every cell is of one form; None for any other."""
        import pyarrow
        from pyarrow import compute

        try:
            if self._numbers:
                values = np.asarray(cells.cast(pyarrow.float64()).to_numpy())
                return values if np.isfinite(values).all() else None
            bare = compute.replace_substring_regex(cells, r"( UTC|Z|[+]00:?00)$", "")
            since = bare.cast(pyarrow.timestamp("us")).cast(pyarrow.int64()).to_numpy()
            return np.asarray(since / 1e6)
        except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError):
            return None

    def _value(self, cell: str) -> float:
        """Read a cell: NaN where it is empty, infinite where it is no time."""
        if _is_empty(cell):
            return math.nan
        try:
            value = float(cell) if self._numbers else seconds_of(cell)
        except (ValueError, OverflowError):
            return math.inf
        return value if math.isfinite(value) else math.inf

    def seconds(self) -> NDArray[np.float64] | None:
        """Give all times, None where a cell was none or all were empty."""
        if self.no_time is not None or self._numbers is None:
            return None
        whole = np.concatenate(self._parts)
        whole *= self._scale
        return whole


def _is_empty(cell: str) -> bool:
    return cell.strip().casefold() in _NO_TIME


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False
