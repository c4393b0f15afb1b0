"""Curves and tables of colours as pictures for a page of paper; all that is written on them is numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from raterscope.app.page.contents import Picture
from raterscope.app.page.pictures import drawing
from raterscope.figures.colours import LIGHT
from raterscope.figures.description import Line
from raterscope.figures.paper import HIGH, LINES, WIDE, PaperChart, line_chart, paper_line
from raterscope.figures.sheet import image_of

__all__ = ["LINES", "draw_lines", "draw_paper", "draw_rates", "paper_line", "tint"]

_CELL, _LEAST_CELL = 88, 26
_DARKEST = (22, 104, 199)


def tint(weight: float) -> tuple[str, str]:
    """Return ground and ink of a cell, white at 0 and darkest at 1."""
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
    return draw_paper(line_chart(lines, across, up, most, diagonal=diagonal), title, words)


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


def draw_paper(chart: PaperChart, title: str, words: str = "") -> Picture:
    """Draw a chart as the picture of a report, with its caption."""
    return drawing(image_of(chart), title, words)
