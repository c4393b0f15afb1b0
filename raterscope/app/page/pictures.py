"""Pictures of a report: lossless drawings, small photographs, scale bars, charts and tables of colours."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from raterscope.app.page.contents import Picture
from raterscope.figures.colours import DARK, LIGHT
from raterscope.figures.description import Line
from raterscope.figures.paper import HIGH, WIDE, PaperChart, image_of, line_chart

_QUALITY = 88


def drawing(image: Image.Image, title: str, words: str = "") -> Picture:
    """Make a picture of lines and letters, without loss."""
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return Picture(file.getvalue(), image.width, image.height, title, words)


def photograph(image: Image.Image, title: str, words: str = "") -> Picture:
    """Make a picture of a photograph or scan: much smaller, and outlines keep their colours."""
    file = io.BytesIO()
    image.save(file, "JPEG", quality=_QUALITY, subsampling=0, optimize=True)
    return Picture(file.getvalue(), image.width, image.height, title, words)


def scale_bar(image: Image.Image, scale: float, unit: str) -> str:
    """Draw a round length, at most a third of the width, at the lower left; returns its label: "10 µm".

    It is written beside it where the letters of pictures, which are plain ones, suffice.

    Parameters
    ----------
    image : Image
    scale : float
        Pixels of the image a unit.
    unit : str
    """
    longest = image.width / 3 / scale
    power = 10.0 ** math.floor(math.log10(longest))
    length = next(step * power for step in (5.0, 2.0, 1.0) if step * power <= longest * (1 + 1e-9))
    brush, font = ImageDraw.Draw(image), ImageFont.load_default(19)
    bar_left, bottom = 14, image.height - 14
    right = bar_left + round(length * scale)
    for colour, thick in (("#000000", 3), (DARK.text, 1)):
        brush.rectangle(
            (bar_left - thick + 1, bottom - thick, right + thick - 1, bottom + thick), fill=colour
        )
        for end in (bar_left, right):
            brush.rectangle((end - thick, bottom - 4 - thick, end + thick, bottom + 4 + thick), fill=colour)
    brush.rectangle((bar_left, bottom - 1, right, bottom + 1), fill=DARK.text)
    words = f"{length:g} {unit}"
    if words.isascii():
        brush.text(
            (bar_left, bottom - 10), words, fill=DARK.text, font=font, anchor="lb", stroke_width=2,
            stroke_fill="#000000",
        )  # fmt: skip
    return words


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
    limit: float = 1.0,
    diagonal: bool = False,
) -> Picture:
    """Draw lines over 0 to `limit` across and 0 to 1 up, perhaps with the diagonal.

    Parameters
    ----------
    lines : sequence of Line
    across, up : str
        Names of the axes.
    title, words : str
        Of the caption.
    limit : float
    diagonal : bool
    """
    return draw_paper(line_chart(lines, across, up, limit, diagonal=diagonal), title, words)


def draw_rates(rates: NDArray[np.float64], title: str, words: str = "") -> Picture:
    """Draw probabilities, (J, L), as a table of cells: darker for more, with the number where it has room."""
    rows, columns = rates.shape
    side = max(_LEAST_CELL, min(_CELL, HIGH // max(rows, 1), WIDE // max(columns, 1)))
    image = Image.new("RGB", (columns * side + 1, rows * side + 1), LIGHT.line)
    brush, font = ImageDraw.Draw(image), ImageFont.load_default(max(10, side // 3))
    for row in range(rows):
        for column in range(columns):
            ground, ink = tint(float(rates[row, column]))
            cell_left, top = column * side, row * side
            brush.rectangle((cell_left + 1, top + 1, cell_left + side - 1, top + side - 1), fill=ground)
            text = f"{rates[row, column]:.2f}".removeprefix("0")
            brush.text((cell_left + side / 2, top + side / 2), text, fill=ink, font=font, anchor="mm")
    return drawing(image, title, words)


def draw_paper(chart: PaperChart, title: str, words: str = "") -> Picture:
    """Draw a chart as the picture of a report, with its caption."""
    return drawing(image_of(chart), title, words)
