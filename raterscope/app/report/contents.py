"""What a report is made of, whatever it is written as: sections of facts, tables, pictures and sentences.

All text is plain; whoever writes it to a file escapes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

__all__ = [
    "Block", "Cell", "Contents", "Facts", "Gallery", "Notices", "Picture", "Prose",
    "Section", "Swatch", "Table",
]  # fmt: skip


_LINE, _SHORT = 118.0, 24.0
"""Letters that a row of a table on paper has room for, and of a text that stays on one line."""

_BOLD, _PADDING = 1.35, 2.0
"""Width of a letter of a heading, and of the room about a text, in letters."""


@dataclass(frozen=True, slots=True)
class Swatch:
    """A colour and what it stands for."""

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
    """Rows of cells beneath headings.

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
        """Give the rows with every cell a Cell."""
        return [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in self.rows]

    def widths(self) -> list[float]:
        """Share 100 % of a width among the columns, so that the longest texts take as few lines as they can.

        A short text has the room that it needs; the others share the rest by their lengths.
        """
        rows = [[cell.text for cell in row] for row in self.cells()]
        needs = []
        for at, name in enumerate(self.columns):
            heading = _BOLD * max((len(word) for word in name.split()), default=0)
            needs.append(max([heading, *(float(len(row[at])) for row in rows)]))
        least = [min(need, _SHORT) for need in needs]
        room = _LINE - _PADDING * len(needs)
        taken, squeezed = needs, [need > _SHORT for need in needs]
        while sum(taken) > room and any(squeezed):
            rest = room - sum(one for one, long in zip(least, squeezed, strict=True) if not long)
            scale = rest / sum(need for need, long in zip(needs, squeezed, strict=True) if long)
            taken = [
                need * scale if long else one for need, one, long in zip(needs, least, squeezed, strict=True)
            ]
            again = [long and one > _SHORT for one, long in zip(taken, squeezed, strict=True)]
            if again == squeezed:
                break
            squeezed, taken = again, [max(one, few) for one, few in zip(taken, least, strict=True)]
        wide = [one + _PADDING for one in taken]
        return [round(100 * one / sum(wide), 1) for one in wide]

    def left(self, column: int) -> bool:
        """Whether a column starts at the left."""
        return column == 0 or column in self.words


@dataclass(frozen=True)
class Facts:
    """Names and what there is to say of each."""

    kind: ClassVar[str] = "facts"

    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Notices:
    """Sentences that must not be overlooked."""

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

    def pictures(self) -> list[Picture]:
        """List all pictures, in order."""
        return [picture for section in self.sections for picture in _pictures(section)]


def _pictures(section: Section) -> list[Picture]:
    found = [picture for block in section.blocks if isinstance(block, Gallery) for picture in block.pictures]
    return found + [picture for inner in section.sections for picture in _pictures(inner)]
