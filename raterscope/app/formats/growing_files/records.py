"""Complete lines of tables and of JSON, converted to clicks."""

from __future__ import annotations

import csv
import itertools
import math
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from raterscope.algorithms.clicks.data import FloatArray, IntArray
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.dialects import (
    count_comments,
    detect_delimiter,
    fit_width,
    header_cells,
    not_text_error,
    split_rows,
    unique_names,
)
from raterscope.app.formats.growing_files.lines import LONGEST, repair_cell, size_of
from raterscope.app.formats.points.tables import NEEDED, WANTED
from raterscope.app.formats.records import ClickTable, first_seen
from raterscope.app.formats.tables import (
    Faults,
    Table,
    UnknownColumns,
    assign_columns,
    in_seconds,
    is_headed,
    read_names,
    read_numbers,
    refuse_missing,
    scale_of,
    seconds_of,
)
from raterscope.app.formats.untrusted import decode_json, is_number
from raterscope.text import counted

_MAX_LINES = 100
_MAX_COLUMNS = 1000
_LONGEST_HEADER = 100_000
_END = "\x1e\x1e"
_BREAK = re.compile(r"\r\n|\r|\n")
_STRAY = f"has a quote that is never closed, or is longer than {LONGEST >> 20} MB"


@dataclass
class Records:
    """Rows of cells parsed from lines, and the lines that were refused."""

    rows: list[list[str]] = field(default_factory=list)
    at: list[int] = field(default_factory=list)  # the line on which each row begins, counted from 0
    refused: list[tuple[int, str]] = field(default_factory=list)  # list of (line, problem)
    line_count: int = 0  # lines consumed; a row that continues after the last line is not among them

    def first(self, most: int) -> Records:
        """Return at most `most` rows, and the lines refused before the next row."""
        if len(self.rows) <= most:
            return self
        end = self.at[most]
        refused = [(line, problem) for line, problem in self.refused if line < end]
        return Records(self.rows[:most], self.at[:most], refused, end)


@dataclass(frozen=True)
class Header:
    """Header of a table: delimiter, columns, and the number of lines up to its end."""

    delimiter: str
    columns: tuple[str, ...]
    line_count: int


def read_header(lines: Sequence[str], path: Path, codec: str, ended: bool) -> Header | None:
    """Read the header; None while it is not complete. The first line alone determines the delimiter.

    Raises `InputError` for a file without columns.
    """
    first = next((index for index, line in enumerate(lines) if line.strip("\r\n")), None)
    if first is None:
        return None
    first += count_comments(lines[first:])
    if first == len(lines):
        return None
    delimiter, skip = detect_delimiter(lines[first], path)
    begin = first + skip
    some = lines[begin : begin + _MAX_LINES + 1]
    ended = ended and begin + len(some) == len(lines)
    records = split_records(some, delimiter, None, path, codec, 0, ended)
    if records.refused and (not records.rows or records.refused[0][0] < records.at[0]):
        raise InputError(records.refused[0][1], file=path, line=begin + 1)
    if not records.rows:
        return None
    try:
        row = header_cells([repair_cell(cell) for cell in records.rows[0]], path)
    except ValueError:
        raise not_text_error(path) from None
    if len(row) > _MAX_COLUMNS or sum(map(len, row)) > _LONGEST_HEADER:
        raise InputError(f"has a header of {counted(len(row), 'column')}, which is too long", file=path)
    if not is_headed(row):
        return Header(delimiter, unique_names([""] * len(row)), begin)
    end = begin + records.at[0] + 1 + _breaks_in(records.rows[0])
    return Header(delimiter, unique_names(row), end)


def split_records(
    lines: Sequence[str], delimiter: str, width: int | None, path: Path, codec: str, rest: int, ended: bool
) -> Records:
    """Split complete lines into rows of cells.

    An unclosed quote would include every line after it. A row of several lines that does not fit the header,
    or is too long, is therefore refused at its first line, and reading continues at the second.

    `width`: number of cells of the header; None accepts any number. `rest`: bytes of the incomplete line that
    follows.
    `ended`: whether the file is complete.
    """
    records = Records()
    window = len(lines)
    while records.line_count < len(lines):
        stop = min(records.line_count + window, len(lines))
        rows, at, is_open = _parse(lines[records.line_count : stop], delimiter, path, records.line_count)
        stray = next(
            (
                index
                for index, (begin, end) in enumerate(itertools.pairwise(at[:-1] if is_open else at))
                if end - begin > 1 or len(lines[begin]) > LONGEST // 4
                if _is_stray(lines, rows[index], begin, delimiter, width, codec)
            ),
            None,
        )
        if stray is None and is_open:
            last = stop == len(lines)
            open_bytes = size_of(lines[at[-2] : stop], codec) + (rest if last else 0)
            if stop - at[-2] >= _MAX_LINES or open_bytes > LONGEST or (last and ended):
                stray = len(rows) - 1
        if stray is not None:
            _add_rows(records, rows[:stray], at, width)
            records.refused.append((at[stray], _STRAY))
            records.line_count = at[stray] + 1
            window = _MAX_LINES
        elif is_open:
            _add_rows(records, rows[:-1], at, width)
            records.line_count = at[-2]
            if stop == len(lines):
                break
            window += _MAX_LINES
        else:
            _add_rows(records, rows, at, width)
            records.line_count = stop
            window *= 4
    return records


def _parse(
    lines: Sequence[str], delimiter: str, path: Path, before: int
) -> tuple[list[list[str]], list[int], bool]:
    """Parse lines into rows; also return where each begins, where the last ends, and whether a quote is open.

    A marker line is appended: it becomes a separate row, or part of the previous row if a quote is open.
    """
    rows: list[list[str]] = []
    at: list[int] = []
    for some, begins in split_rows(itertools.chain(lines, [_END]), delimiter, 0, path):
        rows += some
        at += [before + line - 1 for line in begins]
    if rows[-1] == [_END]:
        return rows[:-1], at, False
    return rows, [*at, before + len(lines)], True


def _is_stray(
    lines: Sequence[str], row: list[str], begin: int, delimiter: str, width: int | None, codec: str
) -> bool:
    """Return whether a row is joined by a stray quote, or is too long."""
    breaks = _breaks_in(row)
    some = lines[begin : begin + breaks + 1]
    if breaks >= _MAX_LINES or size_of(some, codec) > LONGEST:
        return True
    if not breaks:
        return False
    bad: list[tuple[int, int]] = []
    try:
        list(csv.reader(some, delimiter=delimiter, strict=True))
    except csv.Error:
        return True
    if width is not None:
        fit_width([row], [begin], width, bad)
    return bool(bad)


def _breaks_in(row: list[str]) -> int:
    return sum(len(_BREAK.findall(cell)) for cell in row)


def _add_rows(records: Records, rows: list[list[str]], at: list[int], width: int | None) -> None:
    """Add the rows that fit the header; refuse the others."""
    if width is None:
        records.rows += rows
        records.at += at[: len(rows)]
        return
    bad: list[tuple[int, int]] = []
    kept, kept_lines = fit_width(rows, at[: len(rows)], width, bad)
    records.rows += kept
    records.at += kept_lines
    records.refused += [
        (line, f"has {counted(cells, 'cell')}, where the header has {width}") for line, cells in bad
    ]


@dataclass(frozen=True, eq=False)
class Rows:
    """N clicks; a view without marks has NaN as x and y."""

    # annotators, images: (N,)
    annotators: Sequence[str]
    images: Sequence[str]
    # x, y: (N,): pixels
    x: FloatArray
    y: FloatArray
    time: FloatArray  # (N,): seconds; NaN if unknown
    # width, height: (N,): size of the image, pixels; NaN if unknown
    width: FloatArray
    height: FloatArray
    line: IntArray  # (N,)

    def __len__(self) -> int:
        return len(self.x)

    def select(self, mask: np.ndarray) -> Rows:
        """Return the rows where `mask` is true."""
        if mask.all():
            return self
        chosen = np.flatnonzero(mask)
        annotators, images = (
            [column[row] for row in chosen.tolist()] for column in (self.annotators, self.images)
        )
        numbers = (getattr(self, column.name)[chosen] for column in fields(self)[2:])
        return Rows(annotators, images, *numbers)


def read_rows(
    table: Table, column: Mapping[str, str], pointed: bool
) -> tuple[Rows, Faults, list[tuple[int, str]], bool]:
    """Read the rows of a table.

    `column`: column of each field. `pointed`: whether a number in the file had a decimal point; then a comma
    is not a decimal mark. The results are the readable rows, the errors of the others, the unreadable times
    by line (their rows are kept without a time), and `pointed` after these rows.
    """
    table, wrong = repair_table(table, set(column.values()))
    table, pointed = _with_points(table, (column["x"], column["y"]), pointed)
    refused = Faults(table, wrong)
    annotators = read_names(table, column["annotator"], refused)
    images = read_names(table, column["image"], refused)
    x, y = (read_numbers(table, column[name], refused, empty=True, comma=False) for name in ("x", "y"))
    for these, those, name in ((x, y, "x"), (y, x, "y")):
        alone = np.flatnonzero(np.isnan(these) & ~np.isnan(those)).tolist()
        refuse_missing(table, column[name], alone, refused)
    width, height = (_sizes(table, column.get(field), refused) for field in ("width", "height"))
    time, untimed = _times(table, column.get("time"))
    good = np.ones(len(table), dtype=bool)
    good[list(refused.rows)] = False
    line = np.array(table.lines, dtype=np.int64)
    rows = Rows(annotators, images, x, y, time, width, height, line).select(good)
    return rows, refused, untimed, pointed


def join_rows(parts: Sequence[Rows]) -> Rows:
    """Concatenate rows."""
    if len(parts) == 1:
        return parts[0]
    annotators = [name for part in parts for name in part.annotators]
    images = [name for part in parts for name in part.images]
    numbers = (np.concatenate([getattr(part, column.name) for part in parts]) for column in fields(Rows)[2:])
    return Rows(annotators, images, *numbers)


def table_of(rows: Rows, path: Path, *, has_lines: bool) -> ClickTable:
    """Convert rows to a table of clicks."""
    annotators, annotator = first_seen(list(rows.annotators))
    images, image = first_seen(list(rows.images))
    empty = np.isnan(rows.x)
    kept = ~empty
    sized = np.flatnonzero(~np.isnan(rows.width) & ~np.isnan(rows.height))
    extents: dict[int, tuple[float, float]] = {}
    for number, width, height in zip(
        image[sized].tolist(), rows.width[sized].tolist(), rows.height[sized].tolist(), strict=True
    ):
        extents.setdefault(number, (width, height))
    _, first = np.unique(image, return_index=True)
    return ClickTable(
        path=path, annotators=annotators, images=images, annotator=annotator[kept], image=image[kept],
        x=rows.x[kept], y=rows.y[kept],
        time=rows.time[kept] if np.isfinite(rows.time).any() else None,
        looked=frozenset(zip(annotator[empty].tolist(), image[empty].tolist(), strict=True)),
        extents=extents, lines=tuple(rows.line[first].tolist()) if has_lines else (),
    )  # fmt: skip


def repair_table(table: Table, used: Container[str]) -> tuple[Table, dict[int, tuple[str, str]]]:
    """Repair cells that are not UTF-8; also return the problems of rows that are not text."""
    columns: list[Sequence[str]] = []
    wrong: dict[int, tuple[str, str]] = {}
    for name, cells in zip(table.header, table.columns, strict=True):
        if name in used and not (all(map(str.isascii, cells)) and "\x00" not in "".join(cells)):
            good = list(cells)
            for row, cell in enumerate(cells):
                try:
                    good[row] = repair_cell(cell)
                except ValueError:
                    good[row] = ""
                    wrong.setdefault(row, (name, "is no text"))
            cells = good
        columns.append(cells)
    return Table(table.path, table.header, tuple(columns), table.lines), wrong


def _with_points(table: Table, names: Sequence[str], pointed: bool) -> tuple[Table, bool]:
    """Replace decimal commas by points, in the rows before the file's first number with a point.

    In a complete table all numbers decide whether a comma is a decimal mark or groups thousands. In a growing
    table the numbers read so far decide.
    """
    columns = [table.column(name) for name in names]
    if not pointed:
        pairs = list(zip(*columns, strict=True))
        first = next((row for row, cells in enumerate(pairs) if any("." in cell for cell in cells)), None)
        pointed, until = first is not None, len(pairs) if first is None else first
        if any("," in cell for cells in pairs[:until] for cell in cells):
            columns = [
                [
                    cell.replace(",", ".") if row < until and cell.count(",") == 1 else cell
                    for row, cell in enumerate(column)
                ]
                for column in columns
            ]
    replaced = dict(zip(names, columns, strict=True))
    every = tuple(replaced.get(name, cells) for name, cells in zip(table.header, table.columns, strict=True))
    return Table(table.path, table.header, every, table.lines), pointed


def _sizes(table: Table, column: str | None, refused: Faults) -> FloatArray:
    """Read the widths or the heights of images; NaN if there is none."""
    if column is None:
        return np.full(len(table), math.nan)
    sizes = read_numbers(table, column, refused, empty=True, comma=False)
    wrong = np.flatnonzero(sizes <= 0).tolist()
    refused.add(wrong, column, "{cell} is not a size; expected pixels above 0")
    return sizes


def _times(table: Table, column: str | None) -> tuple[FloatArray, list[tuple[int, str]]]:
    """Read numbers or dates as seconds, row by row."""
    seconds = np.full(len(table), math.nan)
    wrong: list[tuple[int, str]] = []
    if column is None:
        return seconds, wrong
    cells, scale = table.column(column), scale_of(column)
    try:
        values = np.array(cells, dtype=np.float64)
        if np.isfinite(values).all():
            return in_seconds(values * scale, column), wrong
    except ValueError:
        pass
    for row, cell in enumerate(cells):
        try:
            if cell.strip():
                seconds[row] = _moment(cell, scale)
        except (ValueError, OverflowError):
            wrong.append((table.lines[row], cell))
    return in_seconds(seconds, column), wrong


def _moment(cell: str, scale: float) -> float:
    try:
        value = float(cell) * scale
    except ValueError:
        return seconds_of(cell)
    if not math.isfinite(value):
        raise ValueError(cell)
    return value


HEADER = (*NEEDED, *WANTED)
_MAX_KEYS = 200


def is_json(lines: Iterable[str]) -> bool:
    """Return whether lines are JSON lines, by the first line that is not empty."""
    return next((line for line in lines if line.strip()), "").lstrip().startswith("{")


def parse_objects(lines: Sequence[str], path: Path, mapping: Mapping[str, str] | None) -> Records:
    """Parse JSON objects, one per line, into rows of cells under `HEADER`.

    An object without x and y, or with null for both, means that the annotator marked nothing. Such an object
    must not have unknown keys, which might hold the position.
    """
    records = Records(line_count=len(lines))
    known: dict[tuple[str, ...], dict[str, str]] = {}
    for index, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            records.rows.append(_cells(line, path, mapping, known))
            records.at.append(index)
        except ValueError as error:
            records.refused.append((index, str(error)))
    return records


def _cells(
    line: str, path: Path, mapping: Mapping[str, str] | None, known: dict[tuple[str, ...], dict[str, str]]
) -> list[str]:
    if len(line) > LONGEST // 4:
        raise ValueError(f"is longer than {LONGEST >> 22} MB; expected an object with one click")
    try:
        values = decode_json(line)
    except ValueError as error:
        raise ValueError(f"{str(error).removeprefix('it ')}; expected an object with one click") from None
    if not isinstance(values, dict) or len(values) > _MAX_KEYS:
        raise ValueError("is not an object with one click")
    keys = tuple(values)
    if keys not in known:
        if len(known) > _MAX_KEYS:
            known.clear()
        known[keys] = _assigned(keys, path, mapping)
    return [_cell(values, known[keys].get(field), field) for field in HEADER]


def _assigned(keys: tuple[str, ...], path: Path, mapping: Mapping[str, str] | None) -> dict[str, str]:
    """Map fields to the keys that hold them."""
    table = Table(path, keys, tuple(() for _ in keys), ())
    by_hand = {key: field for key, field in (mapping or {}).items() if key in keys}
    try:
        key = assign_columns(table, NEEDED[:2], HEADER[2:], by_hand)
    except UnknownColumns as unknown:
        raise ValueError(f"has no {' and no '.join(unknown.missing)}") from None
    if "x" not in key and "y" not in key:
        unassigned = [name for name in keys if name not in key.values() and by_hand.get(name) != "ignore"]
        if unassigned:
            raise ValueError(f"has no x and no y, but the unknown keys {plain(', '.join(unassigned))}")
    return key


def _cell(values: Mapping[str, Any], key: str | None, field: str) -> str:
    value = None if key is None else values[key]
    if value is None:
        return ""
    if type(value) is str:
        return value
    if type(value) not in (int, float):
        raise ValueError(f"{plain(key)} is neither text nor a number")
    if type(value) is int and not is_number(value):
        raise ValueError(f"{plain(key)} is a number with too many digits")
    return repr(value * scale_of(key) if field == "time" and key is not None else value)
