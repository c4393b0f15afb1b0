"""Curves and tables of colours as pictures for a page of paper; all that is written on them is numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from raterscope.app.page.contents import Picture
from raterscope.app.page.pictures import drawing
from raterscope.figures.canvas import FINE, PixelCanvas
from raterscope.figures.colours import LIGHT
from raterscope.figures.lines import (
    HIGH,
    LINES,
    WIDE,
    Line,
    LineChart,
    draw_grid,
    place_in_axes,
    rounded,
)
from raterscope.figures.sheet import image_of

__all__ = ["FINE", "LINES", "Frame", "Line", "draw_lines", "draw_rates", "framed", "rounded", "tint"]

_CELL, _LEAST_CELL = 88, 26
_DARKEST = (22, 104, 199)


@dataclass(frozen=True, eq=False)
class Frame:
    """A chart being drawn, `FINE` times as large as it comes to be."""

    canvas: PixelCanvas

    @property
    def brush(self) -> ImageDraw.ImageDraw:
        """What draws on its pixels."""
        return self.canvas.brush

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Give where a place within the axes is, 0 to 1 each."""
        across, down = place_in_axes(x, y)
        return across * FINE, down * FINE

    def picture(self, title: str, words: str) -> Picture:
        """Make it the picture of a report."""
        return drawing(self.canvas.pixels(), title, words)


def tint(weight: float) -> tuple[str, str]:
    """Give ground and ink of a cell, white at 0 and darkest at 1."""
    weight = min(max(weight, 0.0), 1.0)
    ground = [round(255 + weight * (part - 255)) for part in _DARKEST]
    ink = LIGHT.surface if weight > 0.75 else LIGHT.text
    return "#" + "".join(f"{part:02x}" for part in ground), ink


def draw_lines(
    lines: Sequence[Line],
    across: str,
    up: str,
    title: str,
    words: str = "",
    *,
    most: float = 1.0,
    diagonal: bool = False,
) -> Picture:
    """Draw lines over 0 to `most` across and 0 to 1 up, perhaps with the diagonal.

    Parameters
    ----------
    lines : sequence of Line
    across, up : str
        What the axes measure.
    title, words : str
        Of the caption.
    most : float
    diagonal : bool
    """
    return drawing(image_of(LineChart(lines, across, up, most, diagonal)), title, words)


def draw_rates(rates: NDArray[np.float64], title: str, words: str = "") -> Picture:
    """Draw probabilities, (J, L), as a table of cells: darker for more, with the number where it has room."""
    rows, columns = rates.shape
    side = max(_LEAST_CELL, min(_CELL, HIGH // max(rows, 1), WIDE // max(columns, 1)))
    image = Image.new("RGB", (columns * side + 1, rows * side + 1), LIGHT.line)
    brush, font = ImageDraw.Draw(image), ImageFont.load_default(max(10, side // 3))
    for row in range(rows):
        for column in range(columns):
            ground, ink = tint(float(rates[row, column]))
            left, top = column * side, row * side
            brush.rectangle((left + 1, top + 1, left + side - 1, top + side - 1), fill=ground)
            text = f"{rates[row, column]:.2f}".removeprefix("0")
            brush.text((left + side / 2, top + side / 2), text, fill=ink, font=font, anchor="mm")
    return drawing(image, title, words)


def framed(
    across: Sequence[tuple[float, str]], up: Sequence[tuple[float, str]], below: str, beside: str
) -> Frame:
    """Draw a grid to draw on.

    Parameters
    ----------
    across, up : sequence of place and text
        Where the lines of the grid are, 0 to 1, and what is written at each.
    below, beside : str
        What the axes measure.
    """
    canvas = PixelCanvas(WIDE, HIGH)
    draw_grid(canvas, across, up, below, beside)
    return Frame(canvas)
