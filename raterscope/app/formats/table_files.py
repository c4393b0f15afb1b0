"""Files of tables (CSV, TSV, workbooks, JSON lines, Parquet): their first rows, and all columns as text.

References
----------
Apache Software Foundation, "Apache Parquet", https://parquet.apache.org/docs/file-format/.
"""

from __future__ import annotations

import io
import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.progress import Background, Watch, no_check, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.formats import dialects, json_lines
from raterscope.app.formats.tables import Coded, Table, coded, is_headed, repeated_header_notice
from raterscope.app.formats.untrusted import max_unpacked, open_file
from raterscope.app.formats.workbooks import WORKBOOKS

LONG = 1 << 20
"""Minimum size of a long table, bytes: loading Arrow takes as long as reading this size row by row."""

BLOCK = 4 << 20
"""Number of bytes that Arrow parses at once."""

_LARGE = 16 << 20
"""Minimum size of a file whose halves are parsed at the same time, bytes."""

_HEAD = 256 << 10
_ROWS = 500


@dataclass(frozen=True, eq=False)
class Head:
    """First rows of a table, and its dialect."""

    table: Table  # the first rows
    encodings: tuple[str, ...]  # possible encodings, the likeliest first
    delimiter: str
    skip: int  # lines above the header
    headed: bool  # whether the first row is a header
    plainly: bool  # whether the first row follows immediately, with as many cells as the header
    is_parquet: bool = False  # whether rows have numbers instead of lines
    is_complete: bool = False  # whether `table` holds all rows, as of JSON lines


def read_head(path: Path, file: BinaryIO | None = None, *, is_parquet: bool = False) -> Head:
    """Read the first rows of a table, from `file` if it is already open; it is then closed.

    Raises `InputError` for a file that is not a table.
    """
    if is_parquet:
        return _parquet_head(path, file)
    data = dialects.read_table_bytes(path, _HEAD, file)
    return records_head(path) if json_lines.is_json_lines(path, data) else _text_head(path, data)


def _text_head(path: Path, data: bytes) -> Head:
    """Parse the first bytes of a text table."""
    is_complete = len(data) < _HEAD
    text = dialects.decode_text(data, path, is_complete=is_complete)
    delimiter, skip = dialects.detect_delimiter(text, path)
    stream = io.StringIO(text, newline="")
    rows, lines = next(dialects.split_rows(stream, delimiter, skip, path), (list[list[str]](), list[int]()))
    if not is_complete and 1 < len(rows) < dialects.BATCH:
        rows, lines = rows[:-1], lines[:-1]
    names = dialects.header_cells(rows[0] if rows else [], path)
    headed = is_headed(names)
    above = itertools.islice(io.StringIO(text, newline=""), skip)
    plainly = lines[0] == skip + 1 and len(rows[0]) == len(names)
    plainly = plainly and all(line.strip() and '"' not in line for line in above)
    rows, lines = dialects.fit_width(rows[headed:_ROWS], lines[headed:_ROWS], len(names), [])
    header = dialects.unique_names(names if headed else [""] * len(names))
    columns = tuple(zip(*rows, strict=True)) if rows else tuple(() for _ in header)
    table = _without_repeated_header(Table(path, header, columns, lines), names if headed else [])
    return Head(table, dialects.possible_encodings(data), delimiter, skip, headed, plainly)


def records_head(path: Path) -> Head:
    """Read JSON lines, or a JSON list of records, as a table; raises `InputError` as `read_records`."""
    return Head(json_lines.read_records(path), (), "", 0, headed=True, plainly=False, is_complete=True)


def _parquet_head(path: Path, file: BinaryIO | None) -> Head:
    names = read_parquet_columns(path, file)
    first = next(read_parquet_batches(path, names, file, _ROWS), [])
    cells = tuple(tuple(coded([column])) for column in first) or tuple(() for _ in names)
    table = Table(path, tuple(names), cells, range(1, len(cells[0]) + 1))
    return Head(table, (), "", 0, headed=True, plainly=False, is_parquet=True)


def read_table(
    path: Path, watch: Watch = silent, *, may_be_empty: bool = False, is_parquet: bool = False
) -> Table:
    """Read a table of text, in any encoding and with any delimiter of spreadsheets, or Parquet.

    The first row is the header unless it holds a number. Empty rows are skipped. Raises `InputError` for a
    file that is missing, empty, not text, without columns, or with rows of different widths.

    `may_be_empty`: whether a table without rows is accepted.
    """
    watch(0.0, f"reading {plain(path.name)}")
    if is_parquet:
        return _read_parquet(path, watch)
    data = dialects.read_table_bytes(path)
    table = read_long_table(path, data, watch) if len(data) >= LONG else None
    if table is not None:
        watch(0.8, f"{len(table):,} rows read")
        return table
    text = dialects.decode_text(data, path)
    if not text.strip():  # a byte order mark alone
        raise InputError("is empty; expected a table", file=path)
    delimiter, skip = dialects.detect_delimiter(text, path)
    header: list[str] = []
    columns: list[list[str]] = []
    lines: list[int] = []
    bad: list[tuple[int, int]] = []
    for some, starts in dialects.split_rows(io.StringIO(text, newline=""), delimiter, skip, path):
        watch(0.5, f"reading {plain(path.name)}, line {starts[0]:,}")
        if not header:
            header = dialects.header_cells(some[0], path)
            columns = [[] for _ in header]
        rows, kept = dialects.fit_width(some, starts, len(header), bad)
        for column, more in zip(columns, zip(*rows, strict=True), strict=False):
            column.extend(more)
        lines.extend(kept)
    dialects.refuse_uneven(bad, len(header), path)
    headed = is_headed(header)
    if headed:
        lines = lines[1:]
        columns = [column[1:] for column in columns]
    if not lines and not may_be_empty:
        raise InputError("has a header but no rows", file=path)
    watch(0.8, f"{len(lines):,} rows read")
    names = dialects.unique_names(header if headed else [""] * len(header))
    return _without_repeated_header(Table(path, names, tuple(columns), lines), header if headed else [])


def _without_repeated_header(table: Table, header: Sequence[str]) -> Table:
    """Skip rows that repeat the header, as tables that were joined have them; `header` may be empty."""
    rows = [row for row, cell in enumerate(table.columns[0]) if header and cell.strip() == header[0]]
    for column, name in zip(table.columns, header, strict=False):
        rows = [row for row in rows if column[row].strip() == name]
    if not rows:
        return table
    kept = np.delete(np.arange(len(table)), rows).tolist()
    columns = tuple([column[row] for row in kept] for column in table.columns)
    notice = repeated_header_notice([table.lines[row] for row in rows])
    return Table(table.path, table.header, columns, [table.lines[row] for row in kept], notice)


def _read_parquet(path: Path, watch: Watch) -> Table:
    with path.open("rb") as file:
        names = read_parquet_columns(path, file)
        pieces: list[list[Any]] = [[] for _ in names]
        rows = 0
        for batch in read_parquet_batches(path, names, file):
            watch(0.5, f"reading {plain(path.name)}, row {rows:,}")
            rows += len(batch[0])
            for column, cells in zip(pieces, batch, strict=True):
                column.append(cells)
    return Table(path, tuple(names), tuple(map(coded, pieces)), range(1, rows + 1))


def read_long_table(path: Path, data: bytes, watch: Watch) -> Table | None:
    """Parse a long text table by Arrow into columns that store each text once; None to read it by row.

    It is read by row if Arrow and the reader by row might interpret it differently: with a line break within
    quotes, empty rows, or rows of different widths.
    """
    import pyarrow

    lines = _count_lines(data)
    try:
        head = _text_head(path, data[:_HEAD])
    except InputError:
        return None
    if not head.plainly or lines is None or not head.encodings[0].startswith("utf-8"):
        return None
    pieces: list[list[Any]] = [[] for _ in head.table.header]
    rows = 0
    try:
        data.decode()
        for arrays in parse_with_arrow(head, head.encodings[0], list(head.table.header), io.BytesIO(data)):
            watch(0.6 * rows / lines, f"reading {plain(path.name)}, line {rows + head.headed + 1:,}")
            rows += len(arrays[0])
            for column, array in zip(pieces, arrays, strict=True):
                column.append(array)
    except (pyarrow.ArrowInvalid, UnicodeError):
        return None
    if not rows or rows + head.headed + head.skip != lines:
        return None
    columns = []
    for at, column in enumerate(pieces):
        watch(0.6 + 0.2 * at / len(pieces), f"reading {plain(path.name)}")
        columns.append(coded(column))
        pieces[at] = []
    empty = np.logical_and.reduce([_are_blank(column) for column in columns])
    if empty.any():
        return None
    named = zip(head.table.header, columns, strict=True)
    if head.headed and all(name in column.names for name, column in named):
        return None
    first = 1 + head.headed + head.skip
    return Table(path, head.table.header, tuple(columns), range(first, first + rows))


def _count_lines(data: bytes) -> int | None:
    """Count the lines of a text; None if its line breaks are mixed or it contains a NUL."""
    if b"\x00" in data:
        return None
    feeds = data.count(b"\n")
    returns = data.count(b"\r")
    if returns and not (returns == feeds == data.count(b"\r\n")):
        return None
    return feeds + (not data.endswith(b"\n"))


def _are_blank(column: Coded) -> NDArray[np.bool_]:
    blank = np.array([not text.strip() for text in column.names], dtype=bool)
    return np.asarray(blank[column.numbers])


def parse_with_arrow(
    head: Head, encoding: str, columns: list[str], file: BinaryIO | None = None
) -> Iterator[Any]:
    """Parse the file with Arrow, in blocks, or its decompressed content if already read.

    The two halves of a large file are parsed at the same time.
    """
    import pyarrow
    from pyarrow import csv

    name = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    reading = csv.ReadOptions(
        block_size=BLOCK, column_names=list(head.table.header), skip_rows=head.skip,
        skip_rows_after_names=int(head.headed),
        encoding="utf8" if encoding.startswith("utf-8") else encoding,
    )  # fmt: skip
    parsing = csv.ParseOptions(delimiter=head.delimiter, newlines_in_values=True)
    converting = csv.ConvertOptions(
        column_types=dict.fromkeys(columns, name), include_columns=columns, strings_can_be_null=False,
        null_values=[],
    )  # fmt: skip

    def parse(stream: BinaryIO | io.RawIOBase, reading: Any) -> Iterator[Any]:
        with stream, csv.open_csv(stream, reading, parsing, converting) as reader:
            for batch in reader:
                yield batch.columns

    middle = 0 if file is not None or reading.encoding != "utf8" else _middle(head.table.path)
    if not middle:
        yield from parse(file or dialects.open_table(head.table.path), reading)
        return

    def parse_rest(watch: Watch) -> list[Any]:
        following = csv.ReadOptions(block_size=BLOCK, column_names=list(head.table.header))
        batches = []
        for columns in parse(_Span(head.table.path, middle, None), following):
            watch(0.0, "")
            batches.append(columns)
        return batches

    with Background() as beside:
        rest = beside.start(partial(parse_rest, beside.watch))
        yield from parse(_Span(head.table.path, 0, middle), reading)
        yield from rest(no_check)


class _Span(io.RawIOBase):
    """Part of an uncompressed file."""

    def __init__(self, path: Path, first: int, last: int | None) -> None:
        self._file = path.open("rb", buffering=0)
        self._file.seek(first)
        self._left = (os.fstat(self._file.fileno()).st_size if last is None else last) - first

    def readable(self) -> bool:
        """Return True: the part can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; return the number of bytes."""
        count = self._file.readinto(memoryview(buffer)[: max(self._left, 0)])
        self._left -= count
        return count

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


def _middle(path: Path) -> int:
    """Return the begin of a row near the middle of a large uncompressed file; 0 if uncertain.

    Without a quotation mark before it, a line break ends a row.
    """
    if path.suffix.casefold() in WORKBOOKS or path.stat().st_size < _LARGE:
        return 0
    with path.open("rb") as file:
        packed, half = dialects.is_packed(file), path.stat().st_size // 2
        while not packed and (block := file.read(BLOCK)):
            if file.tell() >= half:
                end = block.find(b"\n", max(half - file.tell() + len(block), 0)) + 1
                return 0 if not end or b'"' in block[:end] else file.tell() - len(block) + end
            if b'"' in block:
                break
    return 0


def split_file(head: Head, encoding: str) -> Iterator[tuple[list[list[str]], list[int]]]:
    """Split the file into rows of cells, in batches, with the line where each begins."""
    with io.TextIOWrapper(dialects.open_table(head.table.path), encoding, newline="") as stream:
        yield from dialects.split_rows(stream, head.delimiter, head.skip, head.table.path)


def parse_by_row(head: Head, encoding: str, columns: list[str]) -> Iterator[Any]:
    """Parse the file by row; rows of different widths are counted and refused at the end."""
    import pyarrow

    header = head.table.header
    indices = [header.index(name) for name in columns]
    bad: list[tuple[int, int]] = []
    first = head.headed
    for rows, lines in split_file(head, encoding):
        kept, _ = dialects.fit_width(rows[first:], lines[first:], len(header), bad)
        first = False
        if kept:
            cells = list(zip(*kept, strict=True))
            yield [pyarrow.array(cells[at], pyarrow.string()).dictionary_encode() for at in indices]
    dialects.refuse_uneven(bad, len(header), head.table.path)


_MAX_CELLS = 2_000_000_000
_DICTIONARIES = {"PLAIN", "PLAIN_DICTIONARY", "RLE", "RLE_DICTIONARY", "BIT_PACKED"}
"""Encodings of Parquet that Arrow reads as a dictionary."""
_PARQUET_ROWS = 1 << 17
_TEXTS_AT_ONCE = 1 << 30
"""Maximum size of the texts of a batch that share their beginnings in the file, bytes."""


def read_parquet_columns(path: Path, file: BinaryIO | None = None) -> list[str]:
    """Read the names of the columns of a Parquet file, from `file` if it is open already.

    Raises `InputError` for a file that is damaged, or claims more content than its size allows.
    """
    with _open_parquet(path, file) as parquet:
        names = list(parquet.schema_arrow.names)
    if len(names) < 2 or len(set(names)) < len(names):
        raise InputError("has one column, or two of one name; expected a table", file=path)
    return names


def read_parquet_batches(
    path: Path, columns: Sequence[str], file: BinaryIO | None = None, rows: int = _PARQUET_ROWS
) -> Iterator[list[Any]]:
    """Read columns of a Parquet file as Arrow dictionaries of text, in batches; a missing value is empty.

    A text that the file's dictionary stores once is not repeated, because this could take any amount of
    memory; the same applies to texts that share their beginnings. Raises `InputError` as
    `read_parquet_columns`, and for a column of bytes. A list is a cell as of JSON lines.
    """
    import pyarrow

    most, size = max_unpacked(path.stat().st_size), 0
    with _open_parquet(path, file) as parquet:
        rows = min(rows, max(1, _TEXTS_AT_ONCE // _longest_text(parquet.metadata)))
        for batch in parquet.iter_batches(rows, columns=list(columns)):
            kinds = pyarrow.types
            size += sum(
                column.nbytes
                for column in batch.columns
                if kinds.is_string(column.type) or kinds.is_nested(column.type)
            )
            if size > most:
                raise InputError("unpacks to more than its size allows; expected a smaller table", file=path)
            texts = []
            for name in columns:
                try:
                    texts.append(_as_text(batch.column(name)))
                except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError):
                    raise InputError("contains no text, numbers or times", file=path, field=name) from None
                try:
                    texts[-1].dictionary.validate(full=True)
                except pyarrow.ArrowInvalid:
                    raise InputError(
                        "contains text that is not UTF-8; expected UTF-8", file=path, field=name
                    ) from None
            yield texts


def _longest_text(metadata: Any) -> int:
    """Return the maximum length, bytes, of a text in columns whose texts share their beginnings."""
    chunks = [
        metadata.row_group(group).column(at)
        for group in range(metadata.num_row_groups)
        for at in range(metadata.num_columns)
    ]
    shared = (chunk.total_uncompressed_size for chunk in chunks if "DELTA_BYTE_ARRAY" in chunk.encodings)
    return max(shared, default=1)


def _as_text(column: Any) -> Any:
    """Return a column as a dictionary of texts in the order of first appearance; a missing value is empty."""
    import pyarrow
    from pyarrow import compute

    if pyarrow.types.is_nested(column.type):
        cells = map(json_lines.text_of_value, column.to_pylist())
        return pyarrow.array(cells, pyarrow.string()).dictionary_encode()
    if not pyarrow.types.is_dictionary(column.type):
        return compute.fill_null(compute.cast(column, pyarrow.string()), "").dictionary_encode()
    used = column.indices.dictionary_encode("encode")  # the file's dictionary may hold other texts too
    names = compute.cast(column.dictionary.take(used.dictionary), pyarrow.string())
    names = compute.fill_null(names, "").dictionary_encode()
    return pyarrow.DictionaryArray.from_arrays(names.indices.take(used.indices), names.dictionary)


@contextmanager
def _open_parquet(path: Path, file: BinaryIO | None) -> Iterator[Any]:
    import pyarrow
    from pyarrow.parquet import ParquetFile

    with open_file(path, file) as stream:
        try:
            metadata = ParquetFile(stream).metadata
            groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
            size = sum(group.total_byte_size for group in groups)
            cells = metadata.num_rows * metadata.num_columns
            if size > max_unpacked(path.stat().st_size) or cells > _MAX_CELLS:
                raise InputError("unpacks to more than its size allows; expected a smaller table", file=path)
            stored_once = [
                metadata.schema.column(at).path
                for at in range(metadata.num_columns)
                if all(_DICTIONARIES.issuperset(group.column(at).encodings) for group in groups)
            ]
            yield ParquetFile(stream, metadata=metadata, read_dictionary=stored_once)
        except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
            raise InputError("is damaged or cut short; expected a Parquet table", file=path) from error
