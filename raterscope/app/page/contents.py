"""Contents of a report (sections of facts, tables, pictures and sentences), numbers with units, and the HTML.

All text is plain; the writer of a file escapes it. The HTML is one file without scripts, and fetches nothing.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, ClassVar
from unicodedata import bidirectional

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray
from PIL import Image

from raterscope.algorithms.masks.grid import Grid
from raterscope.app.errors import plain
from raterscope.app.study import RunEntry
from raterscope.app.study.runs import run_title
from raterscope.figures.canvas import Pen, PixelCanvas
from raterscope.figures.colours import DARK
from raterscope.figures.description import Line
from raterscope.figures.drawing import PaperChart, RateTable, image_of, line_chart
from raterscope.text import MINUS, unbroken, with_minus

if TYPE_CHECKING:
    from jinja2 import Environment


@dataclass(frozen=True, slots=True)
class Swatch:
    """A colour and its meaning."""

    colour: str
    text: str


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table."""

    text: str
    # ground, ink: background and text colour, hexadecimal; empty for the page's own
    ground: str = ""
    ink: str = ""
    swatch: str = ""  # a colour shown before the text; empty for none

    def printed(self) -> str:
        """Return the text; a square before it stands for a swatch."""
        return f"■\N{NO-BREAK SPACE}{self.text}" if self.swatch else self.text


@dataclass(frozen=True)
class Table:
    """Rows of cells below headings."""

    kind: ClassVar[str] = "table"

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell | str]]
    note: str = ""  # notes on the figures
    text_columns: frozenset[int] = frozenset()  # text columns, aligned left; the first column always is

    def cells(self) -> list[list[Cell]]:
        """Return the rows with every cell a Cell."""
        return [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in self.rows]

    def widths(self) -> list[float]:
        """Divide 100 % of the paper's width among the columns."""
        return column_widths(self.columns, [[cell.printed() for cell in row] for row in self.cells()])

    def left(self, column: int) -> bool:
        """Return whether a column is aligned left."""
        return column == 0 or column in self.text_columns


MAX_ROWS = 400
"""Maximum number of rows of a table with one row per image."""


def shortened(rows: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """Return the first `MAX_ROWS` rows, and a row with the number of further rows."""
    more = len(rows) - MAX_ROWS
    if more <= 0:
        return list(rows)
    return [*rows[:MAX_ROWS], (f"… and {more:,} more", *[""] * (len(rows[0]) - 1))]


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
    """Paragraphs, some with a name before the text."""

    kind: ClassVar[str] = "prose"

    paragraphs: Sequence[tuple[str, str]]


@dataclass(frozen=True, eq=False)
class Picture:
    """A picture with its caption."""

    data: bytes  # PNG or JPEG
    # width, height: pixels; two of them equal one pixel of the page
    width: int
    height: int
    # title, words: caption: title and explanation
    title: str
    text: str = ""


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
    """A part of the report with a heading."""

    title: str
    blocks: Sequence[Block] = ()
    sections: Sequence[Section] = ()  # subsections
    breaks: bool = False  # whether it starts a page when printed


@dataclass(frozen=True)
class Contents:
    """A whole report."""

    title: str
    facts: Sequence[tuple[str, str]]
    sections: Sequence[Section] = field(default_factory=tuple)


_LINE = 68.0
"""Width of the paper, in em of a table's font."""

_PADDING = 1.1
"""Padding left and right of a text together, in em."""

_LONGEST = (25.0, 20.0, 15.0, 10.0, 6.0, 3.0)
"""Widths in em above which a word may be broken, tried in this order until the table fits."""

_MAX_LINES = 12
_TOLERANCE = 0.1
_BOLD = 1.13

_LETTERS = {
    letter: width
    for width, letters in (
        (0.33, "ijlIJ',./:;\\| \N{NO-BREAK SPACE}"),
        (0.4, "frt!()-[]³²"),
        (0.54, 'csz"*?_`–'),
        (0.72, "ABCKNRUVXZ"),
        (0.83, "wDGHOQ#&+<=>^~−"),
        (0.97, "mMW%@…■"),
    )
    for letter in letters
}
_USUAL = 0.64
"""Widths of letters in DejaVu Sans, the font of reports on paper, in em."""


def column_widths(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[float]:
    """Divide 100 % of the paper's width among columns.

    No word is broken. No row takes more lines than necessary, and short texts stay on one line.
    """
    columns = [_Column(name, [row[index] for row in rows]) for index, name in enumerate(names)]
    room = _LINE - _PADDING * len(columns)
    for longest in _LONGEST:
        for column in columns:
            column.least = max(column.heading, min(column.longest, longest))
        if sum(column.least for column in columns) <= room:
            break
    widths = [column.least for column in columns]
    for lines in range(1, _MAX_LINES + 1):
        needs = [column.width_for(lines) for column in columns]
        if sum(needs) <= room:
            widths = needs
            break
    spare = room - sum(widths)
    for index in sorted(range(len(columns)), key=lambda index: columns[index].full - widths[index]):
        more = columns[index].full - widths[index]
        if more > spare:
            missing = sum(max(0.0, each.full - width) for each, width in zip(columns, widths, strict=True))
            scale = max(0.0, spare) / missing if missing else 0.0
            widths = [w + scale * max(0.0, each.full - w) for each, w in zip(columns, widths, strict=True)]
            break
        widths[index] += more
        spare -= more
    wide = [width + _PADDING for width in widths]
    return [round(100 * width / sum(wide), 1) for width in wide]


class _Column:
    """The texts of a column, with the widths that they need.

    `heading`, `longest`: widths in em of the longest word of the heading and of the texts.
    """

    def __init__(self, name: str, texts: Sequence[str]) -> None:
        self.heading = max((_BOLD * _width(word) for word in name.split(" ")), default=0.0)
        self._texts = [[_width(word) for word in unbroken(text).split(" ")] for text in dict.fromkeys(texts)]
        self.longest = max((max(words) for words in self._texts), default=0.0)
        self.least = max(self.heading, self.longest)  # smallest width that the column may have
        gap = _width(" ")
        texts_full = (sum(words) + gap * (len(words) - 1) for words in self._texts)
        # width at which every text and the heading fit on one line
        self.full = max([self.least, _BOLD * _width(name), *texts_full])

    def width_for(self, lines: int) -> float:
        """Return the smallest width at which no text takes more lines."""
        low, high = self.least, self.full
        if self._fits(low, lines):
            return low
        while high - low > _TOLERANCE:
            middle = (low + high) / 2
            low, high = (low, middle) if self._fits(middle, lines) else (middle, high)
        return high

    def _fits(self, width: float, lines: int) -> bool:
        return all(_count_lines(words, width) <= lines for words in self._texts)


def _width(text: str) -> float:
    return sum(_LETTERS.get(letter, _USUAL) for letter in text)


def _count_lines(words: Sequence[float], width: float) -> int:
    lines, at, gap = 1, 0.0, _width(" ")
    for word in words:
        if at and at + gap + word > width:
            lines, at = lines + 1, word
        else:
            at += gap + word if at else word
    return lines


def as_html(contents: Contents, style: str = "page", source: Callable[[Picture], str] | None = None) -> str:
    """Write a report as HTML; all its text is escaped.

    `style`: name of the style sheet: "page" for browsers, "paper" for Qt's rich text. `source`: returns the
    address of a picture; by default a data: address with its bytes.
    """
    template = _environment().get_template("report.html.j2")
    return template.render(
        contents=contents, style=style, css=_read(f"{style}.css"), source=_data if source is None else source
    )


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # commands without a report start sooner

    return Environment(
        loader=FunctionLoader(_read), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, finalize=_held,
    )  # fmt: skip


def _held(value: object) -> object:
    """Keep related parts of a text on one line."""
    return unbroken(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _read(name: str) -> str:
    return (resources.files("raterscope.resources") / "report" / name).read_text(encoding="utf-8")


def _data(picture: Picture) -> str:
    kind = "png" if picture.data.startswith(b"\x89PNG") else "jpeg"
    return f"data:image/{kind};base64," + base64.b64encode(picture.data).decode("ascii")


_QUALITY = 88
_BAR_LETTERS = 19.0


def drawing(image: Image.Image, title: str, text: str = "") -> Picture:
    """Make a picture of a drawing, with lossless compression."""
    file = io.BytesIO()
    image.save(file, "PNG")
    return Picture(file.getvalue(), image.width, image.height, title, text)


def photograph(image: Image.Image, title: str, text: str = "") -> Picture:
    """Make a picture of a photograph or scan, with lossy compression; outlines keep their colours."""
    file = io.BytesIO()
    image.save(file, "JPEG", quality=_QUALITY, subsampling=0, optimize=True)
    return Picture(file.getvalue(), image.width, image.height, title, text)


def scale_bar(canvas: PixelCanvas, scale: float, unit: str) -> str:
    """Draw a scale bar of a round length at the lower left; return its label: "10 µm".

    It takes at most a third of the width.

    The label is written above the bar if the pictures' ASCII font suffices.

    `scale`: pixels of the canvas per unit.
    """
    width, height = canvas.size
    longest = width / 3 / scale
    power = 10.0 ** math.floor(math.log10(longest))
    length = next(step * power for step in (5.0, 2.0, 1.0) if step * power <= longest * (1 + 1e-9))
    left, bottom = 14.0, height - 14.0
    right = left + round(length * scale)
    for pen in (Pen("#000000", 7.0), Pen(DARK.text, 3.0)):
        more = (pen.width - 1) / 2
        canvas.line([(left - more, bottom), (right + more, bottom)], pen)
        for end in (left, right):
            canvas.line([(end, bottom - 4 - more), (end, bottom + 4 + more)], pen)
    text = f"{length:g} {unit}"
    if text.isascii():
        canvas.text((left, bottom - 19), text, DARK.text, _BAR_LETTERS, "start", halo="#000000")
    return text


def draw_lines(
    lines: Sequence[Line],
    across: str,
    up: str,
    title: str,
    text: str = "",
    *,
    limit: float = 1.0,
    diagonal: bool = False,
) -> Picture:
    """Draw lines with x from 0 to `limit` and y from 0 to 1, optionally with the diagonal.

    `across`, `up`: labels of the axes. `title`, `text`: title and text of the caption.
    """
    return draw_paper(line_chart(lines, across, up, limit, diagonal=diagonal), title, text)


def draw_rates(rates: NDArray[np.float64], title: str, text: str = "") -> Picture:
    """Draw probabilities, (J, L), as a table of cells, with its caption."""
    return drawing(image_of(RateTable(rates)), title, text)


def draw_paper(chart: PaperChart, title: str, text: str = "") -> Picture:
    """Draw a chart as a picture of a report, with its caption."""
    return drawing(image_of(chart), title, text)


NONE = "\N{EN DASH}"
"""Text of a missing figure."""
_SMALL = 0.1
"""Volume in ml below which volumes are stated in mm³."""


@dataclass(frozen=True)
class Units:
    """Formatting of lengths and sizes on one grid."""

    length: str  # "mm"; "px" if the pixel size is unknown
    size: str  # "ml", on an image "mm²"; "voxels" or "px" if their size is unknown
    per_ml: float  # units of `size` per ml
    extent: str = "Volume"  # "Volume", on an image "Area"

    def mm(self, value: float) -> str:
        """Format a length without its unit."""
        if math.isnan(value):
            return NONE
        return f"{value:.{1 if value >= 0.95 else 2}f}" if math.isfinite(value) else "nothing marked"

    def amount(self, ml: float, largest: float | None = None) -> str:
        """Format a size; small volumes in mm³, in a column in the unit of its largest size."""
        value, unit = self._scaled(ml, abs(ml) if largest is None else largest)
        return f"{self._figure(value)} {unit}"

    def difference(self, ml: float, of: float) -> str:
        """Format a difference of sizes with its sign and its percentage."""
        value, unit = self._scaled(ml, abs(of))
        total, _ = self._scaled(of, abs(of))
        digits = max(0, _places(total)) if self.size in ("ml", "mm²") else 0
        text = f"{signed(value, lambda x: f'{x:,.{digits}f}')} {unit}"
        return f"{text} ({signed(100 * ml / of, lambda x: f'{x:.0f}')} %)" if of > 0 else text

    def _scaled(self, ml: float, largest: float) -> tuple[float, str]:
        if self.size == "ml" and largest < _SMALL:
            return 1000.0 * ml, "mm³"
        return ml * self.per_ml, self.size

    def _figure(self, value: float) -> str:
        least = 0 if self.size in ("voxels", "px") else max(0, _places(value))
        return f"{value:,.{least}f}" if math.isfinite(value) else NONE

    def amounts(self, ml: Sequence[float]) -> list[str]:
        """Format a column of sizes."""
        largest = max(ml, default=0.0)
        return [self.amount(size, largest) for size in ml]


def units_of(grid: Grid) -> Units:
    """Return the units of a grid."""
    extent = "Area" if grid.flat else "Volume"
    if not grid.calibrated:
        per_ml = 1000.0 / grid.voxel_volume
    else:
        per_ml = 1000.0 / grid.spacing[0] if grid.flat else 1.0
    return Units(grid.length_unit, grid.size_unit, per_ml, extent)


def significant(value: float, digits: int = 3) -> str:
    """Format a number with some significant digits: "0.0123", "4.56", "1,230"."""
    if not math.isfinite(value):
        return NONE
    if value == 0:
        return "0"
    return with_minus(f"{round(value, _places(value, digits)):,.{max(0, _places(value, digits))}f}")


def named(text: object, longest: int = 30) -> str:
    """Make an untrusted name safe within a sentence, including right-to-left text."""
    name = plain(text, longest)
    if any(bidirectional(letter) in ("R", "AL") for letter in name):
        return f"\N{FIRST STRONG ISOLATE}{name}\N{POP DIRECTIONAL ISOLATE}"
    return name


def share(value: float, digits: int = 3) -> str:
    """Format a share from 0 to 1, or a coefficient bounded by 1."""
    return with_minus(f"{value:.{digits}f}") if math.isfinite(value) else NONE


def p_value(value: float) -> str:
    """Format a p-value with two significant digits."""
    if math.isnan(value):
        return NONE
    return "< 0.001" if value < 0.001 else significant(value, 2)


def signed(value: float, write: Callable[[float], str] | None = None, digits: int = 1) -> str:
    """Format a number with + or -, without a sign if it rounds to zero."""
    if not math.isfinite(value):
        return NONE
    text = f"{abs(value):.{digits}f}" if write is None else write(abs(value))
    if not text.strip("0.,"):
        return text
    return f"{'+' if value > 0 else MINUS}{text}"


def _places(value: float, digits: int = 3) -> int:
    """Count the decimals of a formatted number; below 0 for tens and hundreds."""
    return min(digits - 1 - math.floor(math.log10(abs(value))), 6) if value else 0


def run_in_words(run: RunEntry) -> str:
    """Name a run: number, algorithm, time and duration."""
    when = run.started.strftime("%Y-%m-%d %H:%M %Z").strip()
    return f"run {run.id}, {run_title(run)}, {when}, {significant(run.seconds, 2)} s"


def flat(settings: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """List settings by name, with those of nested groups."""
    pairs: list[tuple[str, Any]] = []
    for name, value in settings.items():
        pairs += flat(value) if isinstance(value, dict) else [(str(name), value)]
    return pairs
