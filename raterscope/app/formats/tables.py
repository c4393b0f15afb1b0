"""Tables of text: fields of columns by usual names, and cells as names, numbers and times."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.names import read_name
from raterscope.algorithms.clicks.data import FloatArray
from raterscope.app.errors import InputError, plain, plain_names
from raterscope.app.formats.dialects import more_bad_lines

LONGEST_NAME = 500
FARTHEST = 1e7

_IMAGES = "image filename imagefile file picture photo subject slide img"
_ENDINGS = ("", "name", "id", "ids", "key", "number", "no")
_ITEMS = (
    "item object id name model generator system candidate player stimulus option image picture img photo "
    "sample task text sentence output response answer"
)
"""Column names of compared items, the most probable first, as in model_a or img_left."""

_NUMBERED_ITEMS = "item object id model generator stimulus option image picture img text output"
"""Column names of items distinguished by numbers, as in output_1; "answer 1" and "candidate 1" rather are
votes.
"""

_POSITIONS = "coord coordinate pos position center centre c click point loc location px pixel pixels"


def _sided(items: str, *sides: str) -> str:
    """List column names for one side of a pair."""
    return " ".join(name for item in items.split() for side in sides for name in (side + item, item + side))


def _positioned(axis: str) -> str:
    """List column names for a coordinate."""
    return " ".join([axis, *(name for word in _POSITIONS.split() for name in (axis + word, word + axis))])


COLUMN_NAMES = {
    "annotator": "annotator worker rater user judge volunteer participant player observer reader labeler "
    "labeller contributor coder crowdworker turker assessor respondent grader expert radiologist rad "
    "pathologist dermatologist physician doctor amtworker",
    "task": f"task item object unit document example hit {_IMAGES} case orig text sentence tweet passage "
    "audio audiofile clip video prompt url link question",
    "image": _IMAGES,
    "x": f"{_positioned('x')} px col column centroidx centroidxpx locationcenterx",
    "y": f"{_positioned('y')} py row centroidy centroidypx locationcentery",
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
_DATES = ("createdat", "date", "datetime", "submittedat")
CORNERS = ("xmin", "ymin", "xmax", "ymax")
"""Fields with the corners of a box."""

_NAMED = ("annotator", "image", "task")

_UNITS = {
    "nm": ("nm", 1e-3), "um": ("µm", 1.0), "mm": ("mm", 1e3), "%": ("%", math.nan),
    **dict.fromkeys(("μm", "micron", "microns", "micrometer", "micrometers", "micrometre", "micrometres"),
    ("µm", 1.0)), "percent": ("%", math.nan),
}  # fmt: skip
"""By word at the end of a column's name: the unit, and its micrometres."""

_WITH_UNIT = re.compile(rf"(.*[^\W_].*?)[\s_.,([{{-]+({'|'.join(map(re.escape, _UNITS))})[)\]}}]?\s*")


class UnknownColumns(InputError):  # noqa: N818 - a question to the user, rather than an error
    """Error: the user must name columns of a table."""

    is_question = True

    def __init__(
        self, file: Path, header: Sequence[str], rows: Iterable[Sequence[str]], guess: Mapping[str, str],
        missing: Sequence[str], problem: str = "",
    ) -> None:  # fmt: skip
        self.header = tuple(header)  # the columns' names; "column 1" and so on if the table has none
        self.rows = tuple(tuple(row) for row in rows)  # the first rows
        self.guess = dict(guess)  # by column: the recognised columns
        self.missing = tuple(missing)  # fields without a recognised column
        columns = plain_names(self.header, 12)
        self.problem = problem  # why columns that are recognised must be confirmed
        super().__init__(
            problem
            or f"no column is recognised as {' or '.join(missing)}; the columns are {columns}: "
            "name them by hand",
            file=file,
        )


class Coded(Sequence[str]):
    """Column of texts: distinct `names` in order of first appearance, and their indices by row, `numbers`."""

    __slots__ = ("names", "numbers")

    def __init__(self, names: list[str], numbers: NDArray[np.int32]) -> None:
        self.names, self.numbers = names, numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[str]:
        return map(self.names.__getitem__, self.numbers.tolist())

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        if isinstance(at, slice):
            return [self.names[number] for number in self.numbers[at].tolist()]
        return self.names[int(self.numbers[at])]

    def renamed(self, names: list[str]) -> Coded:
        """Replace each text; texts that become equal get the same index."""
        if names == self.names:
            return self
        number: dict[str, int] = {}
        renumbered = np.array([number.setdefault(text, len(number)) for text in names], dtype=np.int32)
        return Coded(list(number), renumbered[self.numbers])

    def rows_with(self, names: Sequence[bool]) -> list[int]:
        """Return the indices of rows whose text is marked."""
        marked = np.array(names, dtype=bool)
        rows: list[int] = np.flatnonzero(marked[self.numbers]).tolist() if marked.any() else []
        return rows


def unite(*columns: Coded) -> tuple[list[str], list[NDArray[np.int32]]]:
    """Merge the texts of several columns; return them, and the index of each row's text, by column."""
    names = dict.fromkeys(itertools.chain(*(column.names for column in columns)))
    number = {name: at for at, name in enumerate(names)}
    rows = (np.array([number[name] for name in column.names], dtype=np.int32) for column in columns)
    return list(number), [own[column.numbers] for own, column in zip(rows, columns, strict=True)]


def coded(column: list[Any]) -> Coded:
    """Join Arrow dictionaries of texts to a column."""
    import pyarrow

    if not column:
        return Coded([], np.empty(0, dtype=np.int32))
    chunks = pyarrow.chunked_array(column).unify_dictionaries().chunks
    index = np.concatenate([np.from_dlpack(chunk.indices) for chunk in chunks])
    return Coded(chunks[0].dictionary.to_pylist(), index)


@dataclass(frozen=True, eq=False)
class Table:
    """Table of text."""

    path: Path
    header: tuple[str, ...]  # tuple of C names, each once
    columns: tuple[Sequence[str], ...]  # tuple of C columns, each a sequence of N cells
    lines: Sequence[int]  # (N,): the line on which each row begins
    notices: tuple[str, ...] = ()  # on rows that were skipped

    def __len__(self) -> int:
        return len(self.lines)

    def column(self, name: str) -> Sequence[str]:
        """Return a column by its name."""
        return self.columns[self.header.index(name)]

    def first_rows(self) -> list[tuple[str, ...]]:
        """Return the first rows for a preview."""
        return [tuple(column[row] for column in self.columns) for row in range(min(5, len(self)))]


def repeated_header_notice(lines: Sequence[int]) -> tuple[str, ...]:
    """Return a notice on lines that repeat the header, as in tables that were joined; () without any."""
    if not lines:
        return ()
    if len(lines) == 1:
        return (f"Line {lines[0]:,} skipped: it repeats the header.",)
    return (f"{len(lines):,} lines skipped: they repeat the header (first: line {lines[0]:,}).",)


class Faults:
    """Problems of a table: the first problem of each bad row."""

    def __init__(self, table: Table, known: Mapping[int, tuple[str, str]] | None = None) -> None:
        self._table = table
        self._first = dict(known or {})

    def add(self, rows: Iterable[int], field: str, problem: str) -> None:
        """Record a problem of a field in some rows; `problem` may contain {cell}."""
        fault = field, problem
        for row in rows:
            self._first.setdefault(row, fault)

    @property
    def rows(self) -> Collection[int]:
        """Indices of the bad rows."""
        return self._first.keys()

    def describe(self, row: int) -> tuple[str, str]:
        """Return the field and the problem of a bad row."""
        field, problem = self._first[row]
        cell = self._table.column(field)[row] if field in self._table.header else ""
        return field, problem.replace("{cell}", plain(cell, 40))

    def refuse(self) -> None:
        """Raise InputError if there are problems: the first row's, with the number of other bad rows."""
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


def assign_columns(
    table: Table, needed: Sequence[str], wanted: Sequence[str], mapping: Mapping[str, str] | None
) -> dict[str, str]:
    """Assign a column to each field, first as the user named them, then by the usual names.

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
            if column_or_none is None and field in ("x", "y"):
                stems = {_key(stem): name for name in free.values() if (stem := _split_unit(name)[0])}
                column_or_none = next((stems[key] for key in _keys(field) if key in stems), None)
            if column_or_none is not None:
                assigned_columns[field] = column_or_none
                free = {key: name for key, name in free.items() if name != column_or_none}
    missing = [field for field in needed if field not in assigned_columns]
    if missing:
        guess = fields_of(assigned_columns)
        raise UnknownColumns(table.path, table.header, table.first_rows(), guess, missing)
    return assigned_columns


def unit_of(column: str) -> tuple[str, float] | None:
    """Return the unit at the end of a column's name and its micrometres, NaN for percent; or None."""
    return _UNITS.get(_split_unit(column)[1])


def _split_unit(column: str) -> tuple[str, str]:
    match = _WITH_UNIT.fullmatch(column.casefold())
    return ("", "") if match is None else (match[1], match[2])


def fields_of(assigned: Mapping[str, str]) -> dict[str, str]:
    """Return the field of each column that `assign_columns` assigned."""
    return {column: field for field, column in assigned.items()}


def is_usual(name: str) -> bool:
    """Return whether a column's name is a usual name of a field, except classes of marks and groups."""
    return any(_key(name) in _keys(field) for field in COLUMN_NAMES if field not in ("class", "group"))


def is_headed(row: list[str]) -> bool:
    """Return whether the first row is a header: without numbers, or only usual names and numbers.

    Tables of class probabilities may have columns with numbers as names, as in "task, 0, 1". The column of
    row names may have none.
    """
    names = [cell for cell in row if not _is_numeral(cell)]
    if len(names) == len(row):
        return True
    named = all(is_usual(name) or (name == row[0] and _key(name) in ("", "id", "index")) for name in names)
    return bool(names) and len(set(row)) == len(row) and named


def _is_numeral(cell: str) -> bool:
    return bool(re.fullmatch(r"\s*[-+]?\d+([.,]\d*)?(e[-+]?\d+)?\s*", cell, re.IGNORECASE | re.ASCII))


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

    `faults`: collects problems of cells that are not numbers. `empty`: whether an empty cell is accepted as
    NaN.
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
    if values is None or np.isnan(values).any():
        blank = np.array([is_missing(cell) for cell in cells])
    if values is None:
        if comma is None:
            forms = set(cells)  # a long table has each cell once
            dotted = sum("." in cell for cell in forms)
            comma = sum("," in cell and "." not in cell for cell in forms) > dotted
        values = np.array(
            [math.nan if comma and "." in cell else number_or_nan(cell, comma=comma) for cell in cells]
        )
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


def refuse_missing(table: Table, column: str, rows: Iterable[int], faults: Faults) -> None:
    """Record rows in which only one coordinate is missing."""
    cells = table.column(column)
    for row in rows:
        words = '"{cell}" is not a number' if cells[row].strip() else "is empty"
        faults.add([row], column, f"{words}; expected a position in pixels")


NO_NAMES = ("nan", "NaN", "<NA>", "NaT")
"""Texts that pandas writes for a missing value, which are neither names nor labels."""

_WHOLE = re.compile(r"-?\d+\.0", re.ASCII)


def without_decimals(names: list[str]) -> list[str]:
    """Return 12 for 12.0 if all names are so, as pandas writes whole numbers beside a missing one."""
    if all(_WHOLE.fullmatch(name) for name in names if name):
        return [name.removesuffix(".0") for name in names]
    return names


def read_names(table: Table, column: str, faults: Faults) -> Sequence[str]:
    """Read a column of names; an empty or too long name is a problem.

    An apostrophe that `output_files.escape_formula` put before a name is removed, and the decimals of whole
    numbers.
    """
    cells = table.column(column)
    coded = cells if isinstance(cells, Coded) else None
    names = [cell.strip() for cell in (cells if coded is None else coded.names)]
    if any(name.startswith("'") for name in names):
        names = [re.sub(r"^'(?='*[=+\-@])", "", name) for name in names]
    names = without_decimals(names)
    if coded is not None:
        coded = coded.renamed(names)
        names = coded.names
    too_long = f"is longer than {LONGEST_NAME} letters; expected a name"
    for bad, problem in (
        ([not name for name in names], "is empty; expected a name"),
        ([name in NO_NAMES for name in names], '"{cell}" is no name, but a missing value'),
        ([len(name) > LONGEST_NAME for name in names], too_long),
    ):
        rows = itertools.compress(itertools.count(), bad) if coded is None else coded.rows_with(bad)
        faults.add(rows, column, problem)
    return names if coded is None else coded


def read_annotators(table: Table, column: Mapping[str, str], faults: Faults) -> Sequence[str]:
    """Read the names of annotators; with a column "read", every read has a separate name."""
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
    """List the usual names of a field's column: first the word itself, then with "name", then with "id"."""
    words = COLUMN_NAMES[field].split()
    if field not in _NAMED:
        return words
    return [word + ending for word in words for ending in _ENDINGS]


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.casefold())


_MISSING = {"", "nan", "nat", "na", "n/a", "null", "none"}
"""Words that programs write for a missing value, in lower case."""


def is_missing(cell: str) -> bool:
    """Return whether a cell is empty, or holds a word for a missing value such as NA."""
    return cell.strip().casefold() in _MISSING


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


def scale_of(column: str) -> float:
    """Return the unit of a column of times in seconds, by the column's name."""
    return 0.001 if column.casefold().endswith(("ms", "milliseconds")) else 1.0


_SERIAL = (20_000, 80_000)
"""Days since 1900, from 1954 to 2119, by which spreadsheets store dates."""

_EPOCH = 25_569
"""1 January 1970 in these days."""


def in_seconds(times: FloatArray, column: str) -> FloatArray:
    """Convert times since 1970 in milliseconds, microseconds or nanoseconds, which their size shows.

    In a column of dates, numbers are converted from the days of a spreadsheet.
    """
    size = np.abs(times)
    if _key(column) in _DATES:
        is_serial = (times > _SERIAL[0]) & (times < _SERIAL[1])
        times = np.where(is_serial, (times - _EPOCH) * 86_400, times)
    return np.asarray(times / np.select([size > 1e17, size > 1e14, size > 1e11], [1e9, 1e6, 1e3], 1.0))


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
