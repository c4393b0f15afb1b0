"""What a report is made of, whatever it is written as: sections of facts, tables, pictures and sentences.

All text is plain; the writer of a file escapes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

_LINE, _SHORT = 118.0, 24
"""Letters that a row of a table on paper has room for, and of a text that stays on one line if it can."""

_BOLD, _PADDING = 1.35, 2.0
"""Width of a letter of a heading, and of the room about a text, in letters."""


@dataclass(frozen=True, slots=True)
class Swatch:
    """A colour and its meaning."""

    colour: str
    words: str


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table.

    Attributes
    ----------
    text : str
    ground, ink : str
        Hexadecimal colours; empty for the page's own.
    swatch : str
        A colour shown before the text; empty for none.
    """

    text: str
    ground: str = ""
    ink: str = ""
    swatch: str = ""


@dataclass(frozen=True)
class Table:
    """Rows of cells below headings.

    Attributes
    ----------
    title : str
    columns : sequence of str
    rows : sequence of rows of Cell or str
    note : str
        What the reader should know of the figures.
    words : set of int
        Columns of words, which start at the left; the first always is one.
    """

    kind: ClassVar[str] = "table"

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell | str]]
    note: str = ""
    words: frozenset[int] = frozenset()

    def cells(self) -> list[list[Cell]]:
        """Return the rows with every cell a Cell."""
        return [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in self.rows]

    def widths(self) -> list[float]:
        """Share 100 % of a width among the columns.

        No word of a heading is broken; then short texts stay on one line, and long ones share the rest, so
        that none takes many more lines than another.
        """
        rows = [[cell.text for cell in row] for row in self.cells()]
        heads = [_BOLD * max((len(word) for word in name.split()), default=0) for name in self.columns]
        needs = [max([head, *(float(len(row[column])) for row in rows)]) for column, head in enumerate(heads)]
        room, least = _LINE - _PADDING * len(needs), heads
        for short in range(_SHORT, 0, -1):
            least = [max(head, min(need, short)) for head, need in zip(heads, needs, strict=True)]
            if sum(least) <= room:
                break
        more = sum(needs) - sum(least)
        scale = min(1.0, max(0.0, room - sum(least)) / more) if more else 0.0
        wide = [width + scale * (need - width) + _PADDING for width, need in zip(least, needs, strict=True)]
        return [round(100 * width / sum(wide), 1) for width in wide]

    def left(self, column: int) -> bool:
        """Return whether a column is aligned left."""
        return column == 0 or column in self.words


_MOST_ROWS = 400
"""Rows of a table with one for each image: more are no reading."""


def shortened(rows: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """Return the first `_MOST_ROWS` rows, and a row that says how many more there are."""
    more = len(rows) - _MOST_ROWS
    if more <= 0:
        return list(rows)
    return [*rows[:_MOST_ROWS], (f"… and {more:,} more", *[""] * (len(rows[0]) - 1))]


@dataclass(frozen=True)
class Facts:
    """Pairs of name and text."""

    kind: ClassVar[str] = "facts"

    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Notices:
    """Prominent sentences."""

    kind: ClassVar[str] = "notices"

    sentences: Sequence[str]


@dataclass(frozen=True)
class Prose:
    """Paragraphs, each perhaps with a name before it."""

    kind: ClassVar[str] = "prose"

    paragraphs: Sequence[tuple[str, str]]


@dataclass(frozen=True, eq=False)
class Picture:
    """A picture with its caption.

    Attributes
    ----------
    data : bytes
        PNG or JPEG.
    width, height : int
        Pixels; two of them are as wide as one of the page's.
    title, words : str
        Caption: what it shows, and what is to be known of it.
    """

    data: bytes
    width: int
    height: int
    title: str
    words: str = ""


@dataclass(frozen=True)
class Gallery:
    """Pictures with one legend."""

    kind: ClassVar[str] = "gallery"

    title: str
    pictures: Sequence[Picture]
    legend: Sequence[Swatch] = ()
    note: str = ""


Block = Facts | Table | Gallery | Notices | Prose


@dataclass(frozen=True)
class Section:
    """A part of the report with a heading.

    Attributes
    ----------
    title : str
    blocks : sequence of Block
    sections : sequence of Section
        Within it.
    breaks : bool
        Whether it starts a page when printed.
    """

    title: str
    blocks: Sequence[Block] = ()
    sections: Sequence[Section] = ()
    breaks: bool = False


@dataclass(frozen=True)
class Contents:
    """A whole report."""

    title: str
    facts: Sequence[tuple[str, str]]
    sections: Sequence[Section] = field(default_factory=tuple)
