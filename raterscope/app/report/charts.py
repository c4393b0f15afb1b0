"""Curves and tables of colours as pictures for a page of paper; all that is written on them is numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from raterscope.app.report.contents import Picture
from raterscope.app.report.pictures import drawing
from raterscope.widgets.tokens import ANNOTATOR_COLOURS, LIGHT

__all__ = ["FINE", "LINES", "Frame", "Line", "draw_lines", "draw_rates", "framed", "rounded", "tint"]

LINES = tuple(colour for colour in ANNOTATOR_COLOURS if colour not in ("#f0e442", "#bbbbbb"))
"""Colours of lines that are seen on white."""

FINE = 2
"""Curves are drawn so much larger and made smaller, to be smooth."""

_WIDE, _HIGH = 560, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 18, 14, 64
_LETTERS = 19
_TICKS = 5
_CELL, _LEAST_CELL = 88, 26
_DARKEST = (22, 104, 199)

_Place = Callable[[float, float], tuple[float, float]]


@dataclass(frozen=True, eq=False)
class Line:
    """A line of a chart.

    Attributes
    ----------
    x, y : (P,) float64
        Not a number where it is interrupted.
    colour : str
    dots : bool
        Whether its points are marked.
    low, high : (P,) float64, optional
        Ends of an interval that is shaded about it.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    colour: str
    dots: bool = False
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class Frame:
    """A chart being drawn, `FINE` times as large as it comes to be."""

    image: Image.Image
    brush: ImageDraw.ImageDraw

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Give where a place within the axes is, 0 to 1 each."""
        right, bottom = _WIDE - _RIGHT, _HIGH - _BOTTOM
        return (_LEFT + (right - _LEFT) * x) * FINE, (bottom - (bottom - _TOP) * y) * FINE

    def picture(self, title: str, words: str) -> Picture:
        """Make it the picture of a report."""
        return drawing(self.image.resize((_WIDE, _HIGH), Image.Resampling.BOX), title, words)


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
    step = rounded(most / _TICKS)
    at = [(x / most, f"{x:,.10g}") for x in np.arange(0, most * (1 + 1e-9), step).tolist()]
    frame = framed(at, [(y, f"{y:.1f}") for y in np.linspace(0, 1, _TICKS + 1).tolist()], across, up)

    def place(x: float, y: float) -> tuple[float, float]:
        return frame.place(x / most, y)

    if diagonal:
        frame.brush.line([place(0, 0), place(most, 1)], fill=LIGHT.third, width=FINE)
    for line in lines:
        _band(frame.brush, place, line)
    for line in lines:
        _draw(frame.brush, place, line)
    return frame.picture(title, words)


def draw_rates(rates: NDArray[np.float64], title: str, words: str = "") -> Picture:
    """Draw probabilities, (J, L), as a table of cells: darker for more, with the number where it has room."""
    rows, columns = rates.shape
    side = max(_LEAST_CELL, min(_CELL, _HIGH // max(rows, 1), _WIDE // max(columns, 1)))
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
    image = Image.new("RGB", (_WIDE * FINE, _HIGH * FINE), LIGHT.surface)
    frame = Frame(image, ImageDraw.Draw(image, "RGBA"))
    brush, place, font = frame.brush, frame.place, ImageFont.load_default(_LETTERS * FINE)
    for at, text in across:
        brush.line((place(at, 0), place(at, 1)), fill=LIGHT.line, width=FINE)
        x, y = place(at, 0)
        brush.text((x, y + 6 * FINE), text, fill=LIGHT.second, font=font, anchor="ma")
    for at, text in up:
        brush.line((place(0, at), place(1, at)), fill=LIGHT.line, width=FINE)
        x, y = place(0, at)
        brush.text((x - 7 * FINE, y), text, fill=LIGHT.second, font=font, anchor="rm")
    x, y = place(0.5, 0)
    brush.text((x, y + 33 * FINE), below, fill=LIGHT.text, font=font, anchor="ma")
    sideways = Image.new("L", (_HIGH * FINE, 26 * FINE), 0)
    ImageDraw.Draw(sideways).text((_HIGH * FINE / 2, 0), beside, fill=255, font=font, anchor="ma")
    x, y = place(0, 0.5)
    where = (2 * FINE, round(y - _HIGH * FINE / 2))
    brush.bitmap(where, sideways.rotate(90, expand=True), fill=LIGHT.text)
    return frame


def rounded(step: float) -> float:
    """Give the round number nearest above a step: 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(times * power for times in (1.0, 2.0, 5.0, 10.0) if times * power >= step * (1 - 1e-9))


def _band(brush: ImageDraw.ImageDraw, place: _Place, line: Line) -> None:
    if line.low is None or line.high is None or len(line.x) < 2:
        return
    there = [place(x, y) for x, y in zip(line.x.tolist(), line.low.tolist(), strict=True)]
    back = [place(x, y) for x, y in zip(line.x.tolist(), line.high.tolist(), strict=True)]
    brush.polygon([*there, *back[::-1]], fill=line.colour + "30")


def _draw(brush: ImageDraw.ImageDraw, place: _Place, line: Line) -> None:
    known = np.isfinite(line.x) & np.isfinite(line.y)
    points = [place(x, y) for x, y in zip(line.x[known].tolist(), line.y[known].tolist(), strict=True)]
    if len(points) > 1:
        brush.line(points, fill=line.colour, width=round(2.2 * FINE), joint="curve")
    size = 4 * FINE
    for x, y in points if line.dots or len(points) == 1 else ():
        brush.ellipse((x - size, y - size, x + size, y + size), fill=line.colour)
