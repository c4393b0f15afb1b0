"""Columns of long tables (ten million rows and more), and columns with the contents of tasks.

Arrow parses the text. Text that Arrow refuses, for example with rows of different widths, is read row by row
like any other table, which reports problems with their lines.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.names import read_name
from raterscope.algorithms.progress import Background, Check, Watch, part, steps_of
from raterscope.app.errors import InputError, plain
from raterscope.app.formats import dialects
from raterscope.app.formats.records import TaskContents
from raterscope.app.formats.table_files import (
    BLOCK,
    Head,
    parse_by_row,
    parse_with_arrow,
    read_parquet_batches,
    split_file,
)
from raterscope.app.formats.tables import (
    LONGEST_NAME,
    Coded,
    Table,
    UnknownColumns,
    assign_columns,
    in_seconds,
    is_missing,
    read_number,
    repeated_header_notice,
    scale_of,
    seconds_of,
    without_decimals,
)

_SLICE = 50_000


@dataclass(eq=False)
class Columns:
    """The requested columns of a table, by field."""

    head: Head
    coded: dict[str, Coded] = field(default_factory=dict)  # by field
    time: NDArray[np.float64] | None = None  # (N,) or None: seconds, NaN if a cell is empty
    # (row, cell) or None: the first cell that is not a time; then `time` is None
    no_time: tuple[int, str] | None = None
    repeated: list[int] = field(default_factory=list)  # rows that repeat the header
    even: bool = False  # whether the rows were cut to one width, and empty rows dropped
    # by name: the full texts of tasks with shortened names
    full_names: dict[str, str] = field(default_factory=dict)

    def skip_repeated_header(self, column: Mapping[str, str], rows: NDArray[np.bool_]) -> None:
        """Remove rows that repeat the header, as tables that were joined have them, from those of a mask."""
        cells = [(column[name], coded) for name, coded in self.coded.items() if name in column]
        if all(name in coded.names for name, coded in cells):
            masks = [coded.numbers == coded.names.index(name) for name, coded in cells]
            self.repeated = np.flatnonzero(np.logical_and.reduce(masks)).tolist()
            rows[self.repeated] = False

    def header_notices(self) -> tuple[str, ...]:
        """Return a notice on the rows that repeat the header."""
        return repeated_header_notice([self.line(row) for row in self.repeated])

    def line(self, row: int) -> int:
        """Return the line on which a row begins, by reading the file again."""
        if self.head.is_parquet:
            return row + 1
        if self.head.is_complete:
            return self.head.table.lines[row]
        index = row + self.head.headed
        for encoding in self.head.encodings:
            try:
                for rows, lines in split_file(self.head, encoding):
                    if self.even:
                        _, lines = dialects.fit_width(rows, lines, len(self.head.table.header), [])
                    if index < len(lines):
                        return lines[index]
                    index -= len(lines)
            except UnicodeDecodeError:
                index = row + self.head.headed
        return 1


def read_columns(head: Head, column: Mapping[str, str], watch: Watch) -> Columns:
    """Read the columns of a table.

    Raises `InputError` for a file that is not a table, and for the first row with more or fewer cells than
    the header.

    `column`: column of each field. All contain names, except the column of the field "time".
    """
    import pyarrow

    if head.is_parquet:
        batches = read_parquet_batches(head.table.path, list(column.values()))
        return _gather(head, column, batches, watch)
    if head.is_complete:
        cells = [pyarrow.array(head.table.column(name), pyarrow.string()) for name in column.values()]
        return _gather(head, column, iter([[some.dictionary_encode() for some in cells]]), watch)
    for encoding in head.encodings if head.plainly else ():
        try:
            return _gather(head, column, parse_with_arrow(head, encoding, list(column.values())), watch)
        except (pyarrow.ArrowInvalid, UnicodeError):
            continue
    refused: UnicodeError | None = None
    for encoding in head.encodings:
        try:
            columns = _gather(head, column, parse_by_row(head, encoding, list(column.values())), watch)
            columns.even = True
            return columns
        except UnicodeError as error:
            refused = error
    assert refused is not None
    raise dialects.not_text_error(head.table.path) from refused


def _gather(head: Head, column: Mapping[str, str], batches: Iterator[Any], watch: Watch) -> Columns:
    result = Columns(head)
    size = 1 if head.is_complete else head.table.path.stat().st_size
    pieces: dict[str, list[Any]] = {name: [] for name in column if name != "time"}
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
        read += BLOCK
    with Background() as beside:
        encoded = {name: beside.start(partial(_encode_names, arrays)) for name, arrays in pieces.items()}
        for name, step in steps_of(part(watch, 0.7, 1.0), list(encoded)):
            result.coded[name] = _number_names(pieces.pop(name), encoded.pop(name), name, beside, step)
    for name in ("annotator", "task"):
        if name in result.coded:
            coded = result.coded[name]
            result.coded[name] = coded.renamed(without_decimals(coded.names))
    if "time" in column:
        result.time, result.no_time = times.seconds(), times.no_time
    if "read" in result.coded:
        result.coded["annotator"] = _name_reads(result, column)
    return result


def _name_reads(columns: Columns, column: Mapping[str, str]) -> Coded:
    """Give every read of an annotator a separate name."""
    annotator, reads = columns.coded["annotator"], columns.coded.pop("read")
    numbers = [read_number(cell) for cell in reads.names]
    if None in numbers:
        at = numbers.index(None)
        raise InputError(
            f'"{plain(reads.names[at], 40)}" is not the number of a read; expected 1, 2 ...',
            file=columns.head.table.path, line=columns.line(int((reads.numbers == at).argmax())),
            field=column["read"],
        )  # fmt: skip
    pair = annotator.numbers.astype(np.int64) * len(numbers) + reads.numbers
    seen, first, index = np.unique(pair, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number: dict[str, int] = {}
    of_pair = np.empty(len(seen), dtype=np.int32)
    for at in order.tolist():
        row, read = divmod(int(seen[at]), len(numbers))
        name = annotator.names[row]
        if name:
            name = read_name(name, numbers[read] or 1)
        of_pair[at] = number.setdefault(name, len(number))
    return Coded(list(number), of_pair[index])


def _encode_names(arrays: Sequence[Any]) -> Any:
    """Return the dictionaries of Arrow arrays, one after the other, with one dictionary of all names.

    This takes two thirds of the time of `unify_dictionaries`, whose table of names grows in smaller steps.
    """
    import pyarrow

    return pyarrow.chunked_array([a.dictionary for a in arrays], pyarrow.string()).dictionary_encode()


def _number_names(
    arrays: Sequence[Any], encoded: Callable[[Check], Any], name: str, beside: Background, watch: Watch
) -> Coded:
    """Return the names of a column with their indices, which Arrow encodes in another thread."""
    text = f"numbering every {name}"
    chunks = encoded(partial(watch, 0.0, text))
    if not arrays:
        return Coded([], np.empty(0, dtype=np.int32))
    numbers = beside.start(partial(_join_numbers, arrays, chunks))
    names: list[str] = []
    dictionary = chunks.chunk(0).dictionary
    for start in range(0, len(dictionary), _SLICE):
        watch(0.5 + 0.5 * start / len(dictionary), text)
        names += dictionary.slice(start, _SLICE).to_pylist()
    index = numbers(partial(watch, 1.0, text))
    return Coded(names, index) if _has_bare_names(dictionary) else _strip(names, index, watch)


def _join_numbers(arrays: Sequence[Any], chunks: Any) -> NDArray[np.int32]:
    """Return the index of each row's name among all names; `chunks`: result of `_encode_names`."""
    # Arrow's own conversion to NumPy would import pandas if it is installed.
    number = np.concatenate([np.from_dlpack(chunk.indices) for chunk in chunks.chunks])
    index = np.empty(sum(map(len, arrays)), dtype=np.int32)
    row = first = 0
    for array in arrays:
        last = first + len(array.dictionary)
        index[row : row + len(array)] = number[first:last][np.from_dlpack(array.indices)]
        row, first = row + len(array), last
    return index


def _has_bare_names(dictionary: Any) -> bool:
    """Return whether an Arrow column contains only ASCII letters, digits and signs without quotes."""
    _, ends, text = dictionary.buffers()
    if text is None:
        return False
    begin = dictionary.offset
    first, last = np.frombuffer(ends, dtype=np.int32)[[begin, begin + len(dictionary)]]
    letters = np.frombuffer(text, dtype=np.int8)[first:last]
    return bool(letters.min(initial=127) > ord(" ")) and not (letters == ord("'")).any()


def _strip(names: list[str], index: NDArray[np.int32], watch: Watch) -> Coded:
    """Strip blanks around names; names that become equal get the same index."""
    number: dict[str, int] = {}
    marked = "'" in "".join(names) and any(map(_is_marked, names))
    if not marked and list(map(str.strip, names)) == names:
        return Coded(names, index)  # the names of a dictionary are different
    number_of_name = np.empty(len(names), dtype=np.int32)
    for start in range(0, len(names), _SLICE):
        watch(1.0, "looking at names")
        some = names[start : start + _SLICE]
        number_of_name[start : start + len(some)] = [
            number.setdefault(clean_name(name), len(number)) for name in some
        ]
    return Coded(list(number), index if len(number) == len(names) else number_of_name[index])


_is_marked = operator.methodcaller("startswith", "'")


def clean_name(name: str) -> str:
    """Strip blanks, and the apostrophe that table writers put before text that looks like a formula."""
    name = name.strip()
    return name[1:] if name.startswith("'") and name.lstrip("'")[:1] in ("=", "+", "-", "@") else name


class _Times:
    """Reader of times: numbers if the first known time is a number, otherwise dates."""

    def __init__(self, column: str) -> None:
        self._column = column
        self._scale = scale_of(column)
        self._parts: list[NDArray[np.float64]] = []
        self._numbers: bool | None = None
        self.no_time: tuple[int, str] | None = None

    def add(self, array: Any, before: int) -> None:
        """Read a block of cells, which begins at row `before`."""
        if self.no_time is not None:
            return
        cells = array.dictionary.to_pylist()
        if self._numbers is None:
            self._numbers = next((_is_number(cell) for cell in cells if not is_missing(cell)), None)
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
        """Read a block with Arrow if every cell has the same form, otherwise return None."""
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
        """Read a cell: NaN if it is empty, infinite if it is not a time."""
        if is_missing(cell) or cell.strip() == self._column:
            return math.nan
        try:
            value = float(cell) if self._numbers else seconds_of(cell)
        except (ValueError, OverflowError):
            return math.inf
        return value if math.isfinite(value) else math.inf

    def seconds(self) -> NDArray[np.float64] | None:
        """Return all times; None if a cell was not a time or all were empty."""
        if self.no_time is not None or self._numbers is None:
            return None
        seconds = np.concatenate(self._parts)
        seconds *= self._scale
        return in_seconds(seconds, self._column)


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


_CONFIDENCE = re.compile(
    r"confidence|certainty|conf|sureness|confidence[ _-]?(score|level|rating)", re.IGNORECASE
)


def explain_confidence(table: Table, used: Collection[str]) -> list[str]:
    """Return a notice if annotators gave a confidence beside each label, in a column that is not used."""
    names = [name for name in table.header if name not in used and _CONFIDENCE.fullmatch(name.strip())]
    return [
        f"{plain(name, 40)} is not used: every label counts alike, however certain." for name in names[:1]
    ]


LONGEST_TEXT = 100_000
"""Maximum number of letters of a content that are kept."""

CONTENT = "content"
"""Field of a column with contents of tasks."""

MAX_FIELDS = 20
_SHORT = 120
_WORDS = (
    "text|sentence|tweet|passage|paragraph|document|context|prompt|instruction|query|response|reply|completion|"
    "output|answer|summary|title|headline|description|caption|abstract|comment|html|markdown|audio|sound|video|"
    "url|link|address"
)
_FIELDS = re.compile(
    rf"(input[.:_ ])?({_WORDS})([ _.-]?(url|file|path|text|[a-z]|\d{{1,2}}))?", re.IGNORECASE
)


def content_columns(
    table: Table, assigned: Mapping[str, str], mapping: Mapping[str, str] | None = None
) -> list[str]:
    """List the columns with contents of tasks.

    `assigned`: columns with another meaning, by field. `mapping`: meanings of columns, named by hand:
    "content" or another.
    """
    by_hand = mapping or {}
    free = [name for name in table.header if name not in assigned.values() and name not in by_hand]
    usual = {name for name in free if _FIELDS.fullmatch(name.strip())}
    return [name for name in table.header if name in usual or by_hand.get(name) == CONTENT][:MAX_FIELDS]


def without_contents(mapping: Mapping[str, str] | None) -> dict[str, str]:
    """Return a mapping in which columns with contents have no other meaning."""
    return {name: "ignore" if field == CONTENT else field for name, field in (mapping or {}).items()}


def find_contents(table: Table) -> dict[str, str] | None:
    """Return the task's column in a table of only tasks and their contents, otherwise None."""
    try:
        column = assign_columns(table, ("task",), ("picture",), None)
    except UnknownColumns:
        return None
    return {"task": column["task"]} if content_columns(table, {"task": column["task"]}) else None


def read_contents(head: Head, mapping: Mapping[str, str] | None, watch: Watch) -> tuple[TaskContents, ...]:
    """Read a table of tasks and their contents; `mapping` is as in `content_columns`."""
    column = assign_columns(head.table, ("task",), (), without_contents(mapping))
    names = content_columns(head.table, column, mapping)
    columns = read_columns(head, column | {name: name for name in names}, watch)
    shorten_tasks(columns, column["task"])
    contents = contents_of(columns, names)
    if contents is None:
        raise InputError("names no task with a content", file=head.table.path, field=column["task"])
    return (replace(contents, columns={column["task"]: "task", **contents.columns}),)


def contents_of(columns: Columns, names: Sequence[str]) -> TaskContents | None:
    """Return the first contents of each task; None if there are none."""
    task = columns.coded["task"]
    fields: dict[str, Mapping[str, str]] = {}
    for name in names:
        fields[name] = _first_texts(task, columns.coded[name])
    full = columns.full_names
    if full:
        fields = {_unused("text", fields): full} | fields
    filled = {name: texts for name, texts in fields.items() if texts}
    fields_read = dict.fromkeys(names, CONTENT)
    return TaskContents(columns.head.table.path, filled, columns=fields_read) if filled else None


def shorten_tasks(columns: Columns, header: str) -> None:
    """Shorten names that are whole texts, if the column contains contents, and keep the texts."""
    task = columns.coded["task"]
    if not _FIELDS.fullmatch(header.strip()) or max(map(len, task.names), default=0) <= LONGEST_NAME:
        return
    used = {name for name in task.names if len(name) <= LONGEST_NAME}
    names: list[str] = []
    for name in task.names:
        if len(name) > LONGEST_NAME:
            short = _unused(f"{' '.join(name[: 2 * _SHORT].split())[:_SHORT]}…", used)
            columns.full_names[short] = name[:LONGEST_TEXT]
            used.add(short)
            name = short
        names.append(name)
    columns.coded["task"] = Coded(names, task.numbers)


def _first_texts(task: Coded, text: Coded) -> dict[str, str]:
    """Return the first text that is not empty of each task."""
    filled = np.array([bool(name) for name in text.names], dtype=bool)
    rows = np.flatnonzero(filled[text.numbers]) if len(filled) else np.empty(0, dtype=np.int64)
    tasks, first = np.unique(task.numbers[rows], return_index=True)
    numbers = text.numbers[rows[first]]
    return {
        task.names[at]: text.names[number][:LONGEST_TEXT]
        for at, number in zip(tasks.tolist(), numbers.tolist(), strict=True)
        if task.names[at] and text.names[number] != task.names[at]
    }


def _unused(name: str, used: Mapping[str, object] | set[str]) -> str:
    number, free = 1, name
    while free in used:
        number += 1
        free = f"{name} ({number})"
    return free
