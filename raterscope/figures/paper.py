"""Charts on paper, alone or several on one sheet: with a grid and large letters, in the light theme."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from raterscope.figures.canvas import Canvas, PixelCanvas, VectorCanvas
from raterscope.figures.colours import ANNOTATOR_COLOURS, LIGHT, tint
from raterscope.figures.description import Axis, Chart, Key, Line, Mark
from raterscope.figures.drawing import draw_chart, draw_key
from raterscope.figures.evaluation import DIAGONAL
from raterscope.figures.layout import PAPER, Box, Style, lay_out

LINES = tuple(colour for colour in ANNOTATOR_COLOURS if colour not in ("#f0e442", "#bbbbbb"))
"""Colours of lines that are seen on white."""

DASHES: tuple[tuple[float, ...], ...] = ((), (4, 2), (1.5, 2))
"""Of the first lines, of those that have the same colours again, and of the third round."""

WIDE, HIGH = 560, 420


_CELL, _LEAST_CELL = 88, 26


@dataclass(frozen=True, eq=False)
class RateTable:
    """Table of probabilities on a page: cells that are darker for more, with the number in each."""

    rates: NDArray[np.float64]  # (J, L)

    @property
    def side(self) -> int:
        """Width and height of a cell."""
        rows, columns = len(self.rates), len(self.rates.T)
        return max(_LEAST_CELL, min(_CELL, HIGH // max(rows, 1), WIDE // max(columns, 1)))

    @property
    def width(self) -> int:
        """Pixels."""
        return len(self.rates.T) * self.side + 1

    @property
    def height(self) -> int:
        """Pixels."""
        return len(self.rates) * self.side + 1

    def draw(self, canvas: Canvas) -> None:
        """Draw it at the upper left."""
        side = self.side
        canvas.rectangles(np.array([[0.0, 0.0, self.width, self.height]]), LIGHT.line)
        for (row, column), rate in np.ndenumerate(self.rates):
            ground, ink = tint(float(rate))
            left, top = column * side, row * side
            canvas.rectangles(np.array([[left + 1, top + 1, left + side - 0.5, top + side - 0.5]]), ground)
            middle = left + (side + 1) / 2, top + (side + 1) / 2
            canvas.text(middle, f"{rate:.2f}".removeprefix("0"), ink, max(10, side // 3))


@dataclass(frozen=True, eq=False)
class PaperChart:
    """A chart in the size and the letters of a page."""

    chart: Chart
    # width, height: pixels
    width: int = WIDE
    height: int = HIGH
    style: Style = PAPER

    def draw(self, canvas: Canvas) -> None:
        """Draw it at the upper left."""
        room = Box(0.0, 0.0, self.width, self.height)
        draw_chart(canvas, lay_out(self.chart, room, canvas.width_of, self.style), LIGHT)


def paper_line(
    x: NDArray[np.floating],
    y: NDArray[np.floating],
    colour: str,
    dots: bool = False,
    low: NDArray[np.floating] | None = None,
    high: NDArray[np.floating] | None = None,
    dashes: Sequence[float] = (),
) -> Line:
    """Describe a line of a chart on paper; points that are not known are passed over.

    `x`, `y`: (P,). `colour`: hexadecimal. `dots`: whether its points are marked. `low`, `high`: (P,), ends of
    an interval that is shaded about it. `dashes`: in widths of the line; empty for an unbroken line.
    """
    known = np.isfinite(x) & np.isfinite(y)
    ends = [None if end is None else end[known] for end in (low, high)]
    return Line(
        x=x[known], y=y[known], ink=colour, width=2.2, dot=8.0 if dots else 0.0, low=ends[0], high=ends[1],
        dashes=tuple(dashes),
    )  # fmt: skip


def line_chart(
    lines: Sequence[Line],
    across: str,
    up: str,
    most: float = 1.0,
    *,
    diagonal: bool = False,
    low: float = 0.0,
    high: float = 1.0,
) -> PaperChart:
    """Describe lines over 0 to `most` across and 0 to 1 up, or `low` to `high`.

    `across`, `up`: names of the axes. `diagonal`: whether it is drawn from (0, 0) to (1, 1). `low`, `high`:
    ends of the vertical axis.
    """
    marks: list[Mark] = [DIAGONAL] if diagonal else []
    x, y = Axis(across, 0.0, most, padding=0.0), Axis(up, low, high, padding=0.0)
    return PaperChart(Chart("", x, y, (*marks, *lines)))


_TITLE, _ROW, _GAP = 34, 24, 12
_LETTERS, _SMALL = 18, 15


class Drawable(Protocol):
    """A chart of a known size that draws itself on a canvas."""

    @property
    def width(self) -> int:
        """Pixels."""

    @property
    def height(self) -> int:
        """Pixels."""

    def draw(self, canvas: Canvas) -> None:
        """Draw it at the upper left."""


def image_of(chart: Drawable) -> Image.Image:
    """Draw a chart in pixels."""
    canvas = PixelCanvas(chart.width, chart.height)
    chart.draw(canvas)
    return canvas.pixels()


def sheet(
    charts: Sequence[tuple[str, Drawable]], legend: Sequence[Key] = (), columns: int = 2, note: str = ""
) -> bytes:
    """Draw charts as one SVG file.

    `legend`: below all charts. `columns`: charts side by side. `note`: a line below everything.
    """
    wide = max(chart.width for _, chart in charts) + _GAP
    columns = min(columns, len(charts))
    rows = [charts[first : first + columns] for first in range(0, len(charts), columns)]
    high = [max(chart.height for _, chart in row) + _TITLE for row in rows]
    canvas = VectorCanvas(wide * columns, sum(high) + _ROW * (len(legend) + bool(note)) + _GAP)
    top = 0.0
    for row, height in zip(rows, high, strict=True):
        for column, (title, chart) in enumerate(row):
            middle = column * wide + chart.width / 2
            canvas.text((middle, top + _TITLE / 2), title, LIGHT.text, _LETTERS)
            with canvas.moved(column * wide, top + _TITLE):
                chart.draw(canvas)
        top += height
    for index, key in enumerate(legend):
        draw_key(canvas, key, _GAP, top + _ROW * (index + 0.5), _SMALL, LIGHT)
    if note:
        canvas.text((_GAP, top + _ROW * (len(legend) + 0.5)), note, LIGHT.second, _SMALL, "start")
    return canvas.svg()
