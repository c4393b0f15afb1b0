"""Several charts on one sheet, with one legend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from PIL import Image

from raterscope.figures.canvas import Canvas, PixelCanvas, VectorCanvas
from raterscope.figures.colours import LIGHT
from raterscope.figures.description import Key
from raterscope.figures.drawing import draw_key

__all__ = ["Drawable", "image_of", "sheet"]

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

    Parameters
    ----------
    charts : sequence of title and Drawable
    legend : sequence of Key
        Beneath all of them.
    columns : int
        Charts side by side.
    note : str
        A line beneath everything.
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
