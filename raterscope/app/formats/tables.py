"""Tables (CSV, TSV, Parquet): columns as text, their assignment to fields, names, numbers and times.

References
----------
Apache Software Foundation, "Apache Parquet", https://parquet.apache.org/docs/file-format/.
"""

from __future__ import annotations

import io
import itertools
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from raterscope.algorithms.annotators.names import read_name
from raterscope.algorithms.clicks.data import FloatArray
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.dialects import (
    decode_text,
    detect_delimiter,
    fit_width,
    header_cells,
    is_headed,
    more_bad_lines,
    read_table_bytes,
    refuse_uneven,
    split_rows,
    unique_names,
)
from raterscope.app.formats.long_tables import LONG, Coded, coded, read_long_table
from raterscope.app.formats.untrusted import most_unpacked, open_file

LONGEST_NAME = 500
FARTHEST = 1e7

_IMAGES = "image filename imagefile file picture photo subject slide img"
_ENDINGS = ("", "name", "id", "ids", "key", "number", "no")
_ITEMS = (
    "item object id name model generator system candidate player stimulus option image picture img photo "
    "sample task text sentence output response answer"
)
"""Things that are compared, the likeliest names of columns first, as in model_a or img_left."""

_NUMBERED_ITEMS = "item object id model generator stimulus option image picture img text output"
"""Those that numbers distinguish, as in output_1; "answer 1" and "candidate 1" are rather votes."""

_POSITIONS = "coord coordinate pos position center centre c click point loc location px pixel pixels"


def _sided(items: str, *sides: str) -> str:
    """List the names of columns for one side of a pair."""
    return " ".join(name for item in items.split() for side in sides for name in (side + item, item + side))


def _positioned(axis: str) -> str:
    """List the names of columns for a coordinate."""
    return " ".join([axis, *(name for word in _POSITIONS.split() for name in (axis + word, word + axis))])


COLUMN_NAMES = {
    "annotator": "annotator worker rater user judge volunteer participant player observer reader labeler "
    "labeller contributor coder crowdworker turker assessor respondent grader expert radiologist rad "
    "pathologist dermatologist physician doctor amtworker",
    "task": f"task item object unit document example hit {_IMAGES} case orig text sentence tweet passage "
    "audio audiofile clip video prompt url link question",
    "image": _IMAGES,
    "x": f"{_positioned('x')} px col column",
    "y": f"{_positioned('y')} py row",
    "xmin": "xmin x1 xtl minx bboxxmin",
    "ymin": "ymin y1 ytl miny bboxymin",
    "xmax": "xmax x2 xbr maxx bboxxmax",
    "ymax": "ymax y2 ybr maxy bboxymax",
    "time": "time times timestamp tstamp t ts tms timems seconds milliseconds createdat date datetime "
    "submittedat",
    "label": "label answer response class category rating judgment judgement annotation vote choice decision "
    "value grade labels score tags tag topics categories chosenlabel chosencategory",
    "truth": "truth gold goldlabel labelgold goldenlabel truelabel groundtruth gt correct correctlabel "
    "correctanswer reference golden expert expertlabel truecategory trueclass adjudicated",
    "score": "score scores confidence conf probability prob likelihood",
    "class": "class classname classlabel category categoryname label labelname tool toollabel toolname stage "
    "species type celltype objecttype",
    "group": "group patient slide specimen site centre center hospital cohort",
    "question": "question field attribute",
    "picture": "imageurl imagepath picture pictureurl filename filepath path url image imagefile img photo "
    "file",
    "width": "width imagewidth naturalwidth",
    "height": "height imageheight naturalheight",
    "left": f"left a {_sided(_ITEMS, 'left', 'a')} {_sided(_NUMBERED_ITEMS, '1')} first firstitem itemi",
    "right": f"right b {_sided(_ITEMS, 'right', 'b')} {_sided(_NUMBERED_ITEMS, '2')} second seconditem itemj",
    "choice": "choice winner preferred preference chosen selected label answer response vote decision "
    "judgment judgement verdict result outcome value score rating y",
    "winner": "winner won better preferreditem chosen",
    "loser": "loser lost worse otheritem rejected",
    "left_picture": "leftpicture leftpictureurl leftimageurl leftimagepath leftimage leftimg leftphoto "
    "leftfile leftfilename leftpath lefturl imageleft pictureleft imagea imageurla picturea urla filea "
    "image1 url1 file1",
    "right_picture": "rightpicture rightpictureurl rightimageurl rightimagepath rightimage rightimg "
    "rightphoto rightfile rightfilename rightpath righturl imageright pictureright imageb imageurlb "
    "pictureb urlb fileb image2 url2 file2",
    "empty": "nemptyjobs emptyjobs nempty",
    "read": "read readno readnumber",
    "status": "assignmentstatus answerstatus",
}
CORNERS = ("xmin", "ymin", "xmax", "ymax")
"""Fields of a box."""

_NAMED = ("annotator", "image", "task")


class UnknownColumns(InputError):  # noqa: N818 - a question to the user, rather than an error
    """A table whose columns must be named by hand."""

    def __init__(
        self, file: Path, header: Sequence[str], rows: Iterable[Sequence[str]], guess: Mapping[str, str],
        missing: Sequence[str],
    ) -> None:  # fmt: skip
        self.header = tuple(header)  # the columns' names; "column 1" and so on if the table has none
        self.rows = tuple(tuple(row) for row in rows)  # the first rows
        self.guess = dict(guess)  # by column: the recognised columns
        self.missing = tuple(missing)  # fields without a recognised column
        columns = ", ".join(plain(name, 30) for name in self.header[:12])
        super().__init__(
            f"no column is known as {' or '.join(missing)}; the columns are {columns}: name them by hand",
            file=file,
        )


@dataclass(frozen=True, eq=False)
class Table:
    """A table as text."""

    path: Path
    header: tuple[str, ...]  # tuple of C names, each once
    columns: tuple[Sequence[str], ...]  # tuple of C columns, each a sequence of N cells
    lines: Sequence[int]  # (N,): the line on which each row begins

    def __len__(self) -> int:
        return len(self.lines)

    def column(self, name: str) -> Sequence[str]:
        """Return a column by its name."""
        return self.columns[self.header.index(name)]

    def first_rows(self) -> list[tuple[str, ...]]:
        """Return the first rows for a preview."""
        return [tuple(column[row] for column in self.columns) for row in range(min(5, len(self)))]


class Faults:
    """First problem of each bad row of a table."""

    def __init__(self, table: Table, known: Mapping[int, tuple[str, str]] | None = None) -> None:
        self._table = table
        self._first = dict(known or {})

    def add(self, rows: Iterable[int], field: str, problem: str) -> None:
        """Note a problem of a field in some rows; `problem` may contain {cell}."""
        fault = field, problem
        for row in rows:
            self._first.setdefault(row, fault)

    @property
    def rows(self) -> Collection[int]:
        """The bad rows."""
        return self._first.keys()

    def describe(self, row: int) -> tuple[str, str]:
        """Return the field and the problem of a bad row."""
        field, problem = self._first[row]
        cell = self._table.column(field)[row] if field in self._table.header else ""
        return field, problem.replace("{cell}", plain(cell, 40))

    def refuse(self) -> None:
        """Raise InputError if any problem was noted: the first row's, with the number of other bad rows."""
        if not self._first:
            return
        row = min(self._first)
        field, problem = self.describe(row)
        more = more_bad_lines(len(self._first) - 1)
        raise InputError(
            f"{problem}{more}; nothing was imported",
            file=self._table.path,
            line=self._table.lines[row],
            field=field,
        )


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
    data = read_table_bytes(path)
    table = read_long_table(path, data, watch) if len(data) >= LONG else None
    if table is not None:
        watch(0.8, f"{len(table):,} rows read")
        return table
    text = decode_text(data, path)
    delimiter, skip = detect_delimiter(text, path)
    header: list[str] = []
    columns: list[list[str]] = []
    lines: list[int] = []
    bad: list[tuple[int, int]] = []
    for some, starts in split_rows(io.StringIO(text, newline=""), delimiter, skip, path):
        watch(0.5, f"reading {plain(path.name)}, line {starts[0]:,}")
        if not header:
            header = header_cells(some[0], path)
            columns = [[] for _ in header]
        rows, kept = fit_width(some, starts, len(header), bad)
        for column, more in zip(columns, zip(*rows, strict=True), strict=False):
            column.extend(more)
        lines.extend(kept)
    refuse_uneven(bad, len(header), path)
    if not is_headed(header):
        header = [""] * len(header)
    else:
        lines = lines[1:]
        columns = [column[1:] for column in columns]
    if not lines and not may_be_empty:
        raise InputError("has a header but no rows", file=path)
    watch(0.8, f"{len(lines):,} rows read")
    return Table(path, unique_names(header), tuple(columns), lines)


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


def assign_columns(
    table: Table, needed: Sequence[str], wanted: Sequence[str], mapping: Mapping[str, str] | None
) -> dict[str, str]:
    """Assign a column to each field, by hand first, then by the usual names.

    Raises `UnknownColumns` if a needed field has no column. Raises `InputError` if the mapping names an
    unknown column or field.
    """
    assigned_columns: dict[str, str] = {}
    by_hand = dict(mapping or {})
    for column, field in by_hand.items():
        if column not in table.header:
            known = ", ".join(plain(name, 30) for name in table.header[:20])
            raise InputError(f"there is no column {plain(column)}; the columns are {known}", file=table.path)
        if field not in (*needed, *wanted, "ignore"):
            raise InputError(
                f"{plain(field)} is not a field; expected one of {', '.join((*needed, *wanted, 'ignore'))}",
                file=table.path, field=column,
            )  # fmt: skip
        if field in assigned_columns:
            raise InputError(
                f"two columns are named {field}: {assigned_columns[field]} and {column}", file=table.path
            )
        if field != "ignore":
            assigned_columns[field] = column
    free = {_key(name): name for name in reversed(table.header) if name not in by_hand}
    for field in (*needed, *wanted):
        if field not in assigned_columns:
            column_or_none = next((free[key] for key in _keys(field) if key in free), None)
            if column_or_none is not None:
                assigned_columns[field] = column_or_none
                free = {key: name for key, name in free.items() if name != column_or_none}
    missing = [field for field in needed if field not in assigned_columns]
    if missing:
        guess = fields_of(assigned_columns)
        raise UnknownColumns(table.path, table.header, table.first_rows(), guess, missing)
    return assigned_columns


def fields_of(assigned: Mapping[str, str]) -> dict[str, str]:
    """Return the field of each column that `assign_columns` assigned."""
    return {column: field for field, column in assigned.items()}


def is_usual(name: str) -> bool:
    """Return whether a column's name is a usual one of a field, except classes of marks and groups."""
    return any(_key(name) in _keys(field) for field in COLUMN_NAMES if field not in ("class", "group"))


def find_columns(table: Table, needed: Sequence[str]) -> dict[str, str] | None:
    """Assign columns to fields by the usual names; None if one is missing."""
    try:
        return assign_columns(table, needed, (), None)
    except UnknownColumns:
        return None


def read_numbers(
    table: Table, column: str, faults: Faults, *, empty: bool = False, comma: bool | None = None
) -> FloatArray:
    """Read a column of coordinates or sizes in pixels, (N,).

    `faults`: collects the cells that are not numbers.
    `empty`: whether an empty cell is accepted as NaN.
    `comma`: whether a comma is a decimal mark; by default the column decides.
    """
    cells = table.column(column)
    index = cells.numbers if isinstance(cells, Coded) else None
    if isinstance(cells, Coded):
        cells = cells.names
    try:
        values = np.array(cells, dtype=np.float64) if "_" not in "".join(cells) else None
    except ValueError:
        values = None
    blank = np.zeros(len(cells), dtype=bool)
    if values is None:
        blank = np.array([not cell.strip() for cell in cells])
        if comma is None:
            comma = not any("." in cell for cell in cells)
        values = np.array([number_or_nan(cell, comma=comma) for cell in cells])
    if index is not None:
        values, blank = values[index], blank[index]
    bad = ~(np.abs(values) <= FARTHEST) & ~(blank & empty)
    outside = bad & np.isfinite(values)
    faults.add(
        np.flatnonzero(bad & ~outside).tolist(),
        column,
        '"{cell}" is not a number; expected a position in pixels',
    )
    faults.add(np.flatnonzero(outside).tolist(), column, "{cell} is outside any possible image")
    return values


def read_names(table: Table, column: str, faults: Faults) -> Sequence[str]:
    """Read a column of names; an empty or too long one is a fault.

    An apostrophe that `output_files.escape_formula` put before a name is removed.
    """
    cells = table.column(column)
    coded = cells if isinstance(cells, Coded) else None
    names = [cell.strip() for cell in (cells if coded is None else coded.names)]
    if any(name.startswith("'") for name in names):
        names = [re.sub(r"^'(?='*[=+\-@])", "", name) for name in names]
    if coded is not None:
        coded = coded.renamed(names)
        names = coded.names
    too_long = f"is longer than {LONGEST_NAME} letters; expected a name"
    for bad, problem in (
        ([not name for name in names], "is empty; expected a name"),
        ([len(name) > LONGEST_NAME for name in names], too_long),
    ):
        rows = itertools.compress(itertools.count(), bad) if coded is None else coded.rows_with(bad)
        faults.add(rows, column, problem)
    return names if coded is None else coded


def read_annotators(table: Table, column: Mapping[str, str], faults: Faults) -> Sequence[str]:
    """Read the names of annotators; with a column "read", every read has a name of its own."""
    names = read_names(table, column["annotator"], faults)
    if "read" not in column:
        return names
    reads = [read_number(cell) for cell in table.column(column["read"])]
    wrong = [row for row, read in enumerate(reads) if read is None]
    faults.add(wrong, column["read"], '"{cell}" is not the number of a read; expected 1, 2 ...')
    return [read_name(name, read or 1) if name else name for name, read in zip(names, reads, strict=True)]


def read_number(cell: str) -> int | None:
    """Read the number of an annotator's read: 1 if the cell is empty, None if it is not a whole number."""
    text = cell.strip().removesuffix(".0")
    return 1 if not text else int(text) if re.fullmatch(r"[1-9]\d{0,5}", text, re.ASCII) else None


def _keys(field: str) -> list[str]:
    """List the usual names of a field's column: first the plain word, then with "name", then with "id"."""
    words = COLUMN_NAMES[field].split()
    if field not in _NAMED:
        return words
    return [word + ending for word in words for ending in _ENDINGS]


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.casefold())


def holds_number(cell: str) -> bool:
    """Return whether a cell holds a number, with a decimal point."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def number_or_nan(cell: str, *, comma: bool = False) -> float:
    """Convert a cell to a number, perhaps with a decimal comma; NaN for any other text."""
    if comma and cell.count(",") == 1:
        cell = cell.replace(",", ".")
    return float(cell) if "_" not in cell and holds_number(cell) else math.nan


_MOST_CELLS = 2_000_000_000
_DICTIONARIES = {"PLAIN", "PLAIN_DICTIONARY", "RLE", "RLE_DICTIONARY", "BIT_PACKED"}
"""Encodings of Parquet that Arrow reads as a dictionary."""

_BATCH = 1 << 17
_TEXTS_AT_ONCE = 1 << 30
"""Bytes that the texts of a batch may take where they share their beginnings in the file."""


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
    path: Path, columns: Sequence[str], file: BinaryIO | None = None, rows: int = _BATCH
) -> Iterator[list[Any]]:
    """Read columns of a Parquet file as Arrow dictionaries of text, in batches; a missing value is empty.

    A text that a dictionary of the file holds once is not repeated, which could take any amount of memory;
    nor can texts that share their beginnings.
    Raises `InputError` as `read_parquet_columns`, and for a column of lists or records.
    """
    import pyarrow

    most, size = most_unpacked(path.stat().st_size), 0
    with _open_parquet(path, file) as parquet:
        rows = min(rows, max(1, _TEXTS_AT_ONCE // _longest_text(parquet.metadata)))
        for batch in parquet.iter_batches(rows, columns=list(columns)):
            size += sum(column.nbytes for column in batch.columns if pyarrow.types.is_string(column.type))
            if size > most:
                raise InputError("unpacks to more than its size allows; expected a smaller table", file=path)
            texts = []
            for name in columns:
                try:
                    texts.append(_as_text(batch.column(name)))
                except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError):
                    raise InputError("holds no text, numbers or times", file=path, field=name) from None
            yield texts


def _longest_text(metadata: Any) -> int:
    """Return the most bytes of a text among columns in which texts share their beginnings, at least 1."""
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
            if size > most_unpacked(path.stat().st_size) or cells > _MOST_CELLS:
                raise InputError("unpacks to more than its size allows; expected a smaller table", file=path)
            stored_once = [
                metadata.schema.column(at).path
                for at in range(metadata.num_columns)
                if all(_DICTIONARIES.issuperset(group.column(at).encodings) for group in groups)
            ]
            yield ParquetFile(stream, metadata=metadata, read_dictionary=stored_once)
        except (pyarrow.ArrowException, OSError) as error:
            raise InputError("is damaged or cut short; expected a Parquet table", file=path) from error


def scale_of(column: str) -> float:
    """Return the unit of a column of times in seconds, by the column's name."""
    return 0.001 if column.casefold().endswith(("ms", "milliseconds")) else 1.0


def seconds_of(text: str) -> float:
    """Convert a date and time, "2024-01-02 03:04:05 UTC", to seconds since 1970.

    Raises `ValueError` for any other text.
    """
    moment = datetime.fromisoformat(text.strip().removesuffix(" UTC"))
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def seconds_or_nan(text: str) -> float:
    """Convert a date and time to seconds since 1970; NaN for any other text."""
    try:
        return seconds_of(text)
    except ValueError:
        return math.nan
