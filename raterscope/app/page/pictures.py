"""Pictures as a report holds them: drawings without loss, photographs small; the scale bar on both."""

from __future__ import annotations

import io
import math

from PIL import Image, ImageDraw, ImageFont

from raterscope.app.page.contents import Picture
from raterscope.figures.colours import DARK

_QUALITY = 88


def drawing(image: Image.Image, title: str, words: str = "") -> Picture:
    """Make a picture of lines and letters, without loss."""
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return Picture(file.getvalue(), image.width, image.height, title, words)


def photograph(image: Image.Image, title: str, words: str = "") -> Picture:
    """Make a picture of what a camera or a scanner took: much smaller, and outlines keep their colours."""
    file = io.BytesIO()
    image.save(file, "JPEG", quality=_QUALITY, subsampling=0, optimize=True)
    return Picture(file.getvalue(), image.width, image.height, title, words)


def scale_bar(image: Image.Image, scale: float, unit: str) -> str:
    """Draw a round length, at most a third of the width, at the lower left; returns what it is: "10 µm".

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
    left, bottom = 14, image.height - 14
    right = left + round(length * scale)
    for colour, thick in (("#000000", 3), (DARK.text, 1)):
        brush.rectangle((left - thick + 1, bottom - thick, right + thick - 1, bottom + thick), fill=colour)
        for end in (left, right):
            brush.rectangle((end - thick, bottom - 4 - thick, end + thick, bottom + 4 + thick), fill=colour)
    brush.rectangle((left, bottom - 1, right, bottom + 1), fill=DARK.text)
    words = f"{length:g} {unit}"
    if words.isascii():
        brush.text(
            (left, bottom - 10), words, fill=DARK.text, font=font, anchor="lb", stroke_width=2,
            stroke_fill="#000000",
        )  # fmt: skip
    return words
