"""Long text tables, parsed by Arrow into columns that hold each text once.

A table that Arrow and the reader row by row might understand differently is left to the latter: one with a
line break within quotes, with empty rows, or with rows of different widths.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.progress import Watch
from raterscope.app.errors import InputError, plain

if TYPE_CHECKING:
    from raterscope.app.formats.tables import Table

LONG = 1 << 20
"""Bytes from which a table is long: to load Arrow takes as long as to read them row by row."""


class Coded(Sequence[str]):
    """A column of texts: `names`, each once in the order of first appearance, and their `numbers` by row."""

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
        """Replace each text; those that become equal get one number."""
        if names == self.names:
            return self
        number: dict[str, int] = {}
        renumbered = np.array([number.setdefault(text, len(number)) for text in names], dtype=np.int32)
        return Coded(list(number), renumbered[self.numbers])

    def rows_with(self, names: Sequence[bool]) -> list[int]:
        """List the rows whose text is marked."""
        marked = np.array(names, dtype=bool)
        rows: list[int] = np.flatnonzero(marked[self.numbers]).tolist() if marked.any() else []
        return rows


def unite(*columns: Coded) -> tuple[list[str], list[NDArray[np.int32]]]:
    """Unite the texts of several columns; return them, and the number of each row's text, by column."""
    number = {name: at for at, name in enumerate(dict.fromkeys(chain(*(column.names for column in columns))))}
    rows = (np.array([number[name] for name in column.names], dtype=np.int32) for column in columns)
    return list(number), [own[column.numbers] for own, column in zip(rows, columns, strict=True)]


def read_long_table(path: Path, data: bytes, watch: Watch) -> Table | None:
    """Read a table from its bytes; None for one to be read row by row."""
    import pyarrow

    from raterscope.app.formats.labels.columns import parse_with_arrow, read_head
    from raterscope.app.formats.tables import Table

    lines = _count_lines(data)
    try:
        head = read_head(path)
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
    first = 1 + head.headed + head.skip
    return Table(path, head.table.header, tuple(columns), range(first, first + rows))


def _count_lines(data: bytes) -> int | None:
    """Count the lines of a text with one sort of line breaks, which do not end in empty ones."""
    if b"\x00" in data:
        return None
    feeds = data.count(b"\n")
    returns = data.count(b"\r")
    if returns and not (returns == feeds == data.count(b"\r\n")):
        return None
    return feeds + (not data.endswith(b"\n"))


def coded(column: list[Any]) -> Coded:
    """Join Arrow dictionaries of texts to a column."""
    import pyarrow

    if not column:
        return Coded([], np.empty(0, dtype=np.int32))
    chunks = pyarrow.chunked_array(column).unify_dictionaries().chunks
    index = np.concatenate([np.from_dlpack(chunk.indices) for chunk in chunks])
    return Coded(chunks[0].dictionary.to_pylist(), index)


def _are_blank(column: Coded) -> NDArray[np.bool_]:
    blank = np.array([not text.strip() for text in column.names], dtype=bool)
    return np.asarray(blank[column.numbers])
