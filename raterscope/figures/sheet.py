"""Several charts on one sheet, with one legend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from PIL import Image

from raterscope.figures.canvas import Canvas, PixelCanvas, Shifted, VectorCanvas
from raterscope.figures.colours import LIGHT

__all__ = ["Chart", "Key", "image_of", "sheet"]

_TITLE, _ROW, _GAP, _SAMPLE = 34, 24, 12, 26
_LETTERS, _SMALL = 18, 15


@dataclass(frozen=True)
class Key:
    """A line of a legend.

    Attributes
    ----------
    words, colour : str
    dashes : tuple of float
    disc : bool
        Whether it stands for discs instead of lines.
    """

    words: str
    colour: str
    dashes: tuple[float, ...] = ()
    disc: bool = False


class Chart(Protocol):
    """What can be drawn on a canvas."""

    @property
    def width(self) -> int:
        """Pixels."""

    @property
    def height(self) -> int:
        """Pixels."""

    def draw(self, canvas: Canvas) -> None:
        """Draw it at the upper left."""


def image_of(chart: Chart) -> Image.Image:
    """Draw a chart in pixels."""
    canvas = PixelCanvas(chart.width, chart.height)
    chart.draw(canvas)
    return canvas.pixels()


def sheet(charts: Sequence[tuple[str, Chart]], legend: Sequence[Key] = (), columns: int = 2) -> bytes:
    """Draw charts as one SVG file.

    Parameters
    ----------
    charts : sequence of title and Chart
    legend : sequence of Key
        Beneath all of them.
    columns : int
        Charts side by side.
    """
    wide = max(chart.width for _, chart in charts) + _GAP
    columns = min(columns, len(charts))
    rows = [charts[first : first + columns] for first in range(0, len(charts), columns)]
    high = [max(chart.height for _, chart in row) + _TITLE for row in rows]
    canvas = VectorCanvas(wide * columns, sum(high) + _ROW * len(legend) + _GAP)
    top = 0.0
    for row, height in zip(rows, high, strict=True):
        for column, (title, chart) in enumerate(row):
            middle = column * wide + chart.width / 2
            canvas.text((middle, top + _TITLE / 2), title, LIGHT.text, _LETTERS)
            chart.draw(Shifted(canvas, column * wide, top + _TITLE))
        top += height
    for at, key in enumerate(legend):
        y = top + _ROW * (at + 0.5)
        if key.disc:
            canvas.disc((_GAP + _SAMPLE / 2, y), 6, key.colour)
        else:
            canvas.line([(_GAP, y), (_GAP + _SAMPLE, y)], key.colour, 3, key.dashes)
        canvas.text((_GAP + _SAMPLE + 8, y), key.words, LIGHT.text, _SMALL, "start")
    return canvas.svg()
