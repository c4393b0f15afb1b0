"""Contents of a report, independent of its format: sections of facts, tables, pictures and sentences.

All text is plain; the writer of a file escapes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from raterscope.app.page.columns import column_widths


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
    note : str
        Notes on the figures.
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
        """Share 100 % of the paper's width among the columns."""
        return column_widths(self.columns, [[cell.text for cell in row] for row in self.cells()])

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
