"""Complete lines into rows of cells: one bad line is refused, the others go on."""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from raterscope.app.errors import InputError, counted
from raterscope.app.formats.dialects import (
    delimiter_of,
    distinct,
    even,
    header_of,
    is_headed,
    no_text,
    rows_of,
)
from raterscope.app.formats.growing.lines import LONGEST, mended, size_of

__all__ = ["Header", "Records", "cut_records", "header_in"]

_MOST_LINES = 100
_MOST_COLUMNS = 1000
_LONGEST_HEADER = 100_000
_END = "\x1e\x1e"
_BREAK = re.compile(r"\r\n|\r|\n")
_STRAY = f"has a quote that is never closed, or is longer than {LONGEST >> 20} MB"


@dataclass
class Records:
    """Rows of cells, where each begins, what was refused, and how many lines that took.

    Attributes
    ----------
    rows : list of lists of str
    at : list of int
        The line on which each row begins, counted from 0 among those given.
    refused : list of (line, what is wrong)
    taken : int
        Lines that are done with; a row that goes on beyond the last line is left.
    """

    rows: list[list[str]] = field(default_factory=list)
    at: list[int] = field(default_factory=list)
    refused: list[tuple[int, str]] = field(default_factory=list)
    taken: int = 0

    def first(self, most: int) -> Records:
        """Give no more than some rows, and what was refused before them."""
        if len(self.rows) <= most:
            return self
        taken = self.at[most]
        refused = [(line, what) for line, what in self.refused if line < taken]
        return Records(self.rows[:most], self.at[:most], refused, taken)


@dataclass(frozen=True)
class Header:
    """A table's delimiter and columns, and how many lines that took."""

    delimiter: str
    columns: tuple[str, ...]
    taken: int


def header_in(lines: Sequence[str], path: Path, codec: str, ended: bool) -> Header | None:
    """Read the header; None while it is not complete. The first line alone tells the delimiter.

    Raises
    ------
    InputError
        For what has no columns.
    """
    first = next((index for index, line in enumerate(lines) if line.strip("\r\n")), None)
    if first is None:
        return None
    delimiter, skip = delimiter_of(lines[first], path)
    begin = first + skip
    some = lines[begin : begin + _MOST_LINES + 1]
    ended = ended and begin + len(some) == len(lines)
    records = cut_records(some, delimiter, None, path, codec, 0, ended)
    if records.refused and (not records.rows or records.refused[0][0] < records.at[0]):
        raise InputError(records.refused[0][1], file=path, line=begin + 1)
    if not records.rows:
        return None
    try:
        row = header_of([mended(cell) for cell in records.rows[0]], path)
    except ValueError:
        raise no_text(path) from None
    if len(row) > _MOST_COLUMNS or sum(map(len, row)) > _LONGEST_HEADER:
        raise InputError(f"has a header of {counted(len(row), 'column')}, which is too long", file=path)
    if not is_headed(row):
        return Header(delimiter, distinct([""] * len(row)), begin)
    after = begin + records.at[0] + 1 + _breaks_in(records.rows[0])
    return Header(delimiter, distinct(row), after)


def cut_records(
    lines: Sequence[str], delimiter: str, width: int | None, path: Path, codec: str, rest: int, ended: bool
) -> Records:
    """Cut complete lines into rows of cells.

    A quote that is never closed would swallow every line after it. So a row of several lines that does not
    fit the header, or that is too long, is refused at its first line, and reading goes on with the second.

    Parameters
    ----------
    lines : sequence of str
    delimiter : str
    width : int or None
        Of the header; None for any.
    path : Path
    codec : str
    rest : int
        Bytes that follow, of a line that is not complete.
    ended : bool
        Whether nothing will follow.
    """
    found = Records()
    window = len(lines)
    while found.taken < len(lines):
        stop = min(found.taken + window, len(lines))
        rows, at, is_open = _parsed(lines[found.taken : stop], delimiter, path, found.taken)
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
            left = size_of(lines[at[-2] : stop], codec) + (rest if last else 0)
            if stop - at[-2] >= _MOST_LINES or left > LONGEST or (last and ended):
                stray = len(rows) - 1
        if stray is not None:
            _keep(found, rows[:stray], at, width)
            found.refused.append((at[stray], _STRAY))
            found.taken = at[stray] + 1
            window = _MOST_LINES
        elif is_open:
            _keep(found, rows[:-1], at, width)
            found.taken = at[-2]
            if stop == len(lines):
                break
            window += _MOST_LINES
        else:
            _keep(found, rows, at, width)
            found.taken = stop
            window *= 4
    return found


def _parsed(
    lines: Sequence[str], delimiter: str, path: Path, before: int
) -> tuple[list[list[str]], list[int], bool]:
    """Parse lines into rows; tell where each begins, where the last ends, and whether a quote is open there.

    A last line of our own tells: it is a row of its own, or part of the row before.
    """
    rows: list[list[str]] = []
    at: list[int] = []
    for some, begins in rows_of(itertools.chain(lines, [_END]), delimiter, 0, path):
        rows += some
        at += [before + line - 1 for line in begins]
    if rows[-1] == [_END]:
        return rows[:-1], at, False
    return rows, [*at, before + len(lines)], True


def _is_stray(
    lines: Sequence[str], row: list[str], begin: int, delimiter: str, width: int | None, codec: str
) -> bool:
    """Tell whether a row is held together by a quote that does not belong there, or is too long."""
    breaks = _breaks_in(row)
    some = lines[begin : begin + breaks + 1]
    if breaks >= _MOST_LINES or size_of(some, codec) > LONGEST:
        return True
    if not breaks:
        return False
    bad: list[tuple[int, int]] = []
    try:
        list(csv.reader(some, delimiter=delimiter, strict=True))
    except csv.Error:
        return True
    if width is not None:
        even([row], [begin], width, bad)
    return bool(bad)


def _breaks_in(row: list[str]) -> int:
    return sum(len(_BREAK.findall(cell)) for cell in row)


def _keep(found: Records, rows: list[list[str]], at: list[int], width: int | None) -> None:
    """Take rows that fit the header; refuse the others."""
    if width is None:
        found.rows += rows
        found.at += at[: len(rows)]
        return
    bad: list[tuple[int, int]] = []
    kept, where = even(rows, at[: len(rows)], width, bad)
    found.rows += kept
    found.at += where
    found.refused += [
        (line, f"has {counted(cells, 'cell')}, where the header has {width}") for line, cells in bad
    ]
