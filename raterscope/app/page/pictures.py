"""Pictures of a report: lossless drawings, small photographs, scale bars, charts and tables of colours."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from raterscope.app.page.contents import Picture
from raterscope.figures.canvas import Pen, PixelCanvas
from raterscope.figures.colours import DARK
from raterscope.figures.description import Line
from raterscope.figures.drawing import PaperChart, RateTable, image_of, line_chart

_QUALITY = 88
_BAR_LETTERS = 19.0


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


def scale_bar(canvas: PixelCanvas, scale: float, unit: str) -> str:
    """Draw a round length, at most a third of the width, at the lower left; return its label: "10 µm".

    The label is written above the bar if the plain letters of pictures suffice.

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
    words = f"{length:g} {unit}"
    if words.isascii():
        canvas.text((left, bottom - 19), words, DARK.text, _BAR_LETTERS, "start", halo="#000000")
    return words


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
    """Draw lines over 0 to `limit` across and 0 to 1 up, optionally with the diagonal.

    `across`, `up`: names of the axes. `title`, `words`: title and text of the caption.
    """
    return draw_paper(line_chart(lines, across, up, limit, diagonal=diagonal), title, words)


def draw_rates(rates: NDArray[np.float64], title: str, words: str = "") -> Picture:
    """Draw probabilities, (J, L), as a table of cells, with its caption."""
    return drawing(image_of(RateTable(rates)), title, words)


def draw_paper(chart: PaperChart, title: str, words: str = "") -> Picture:
    """Draw a chart as the picture of a report, with its caption."""
    return drawing(image_of(chart), title, words)
