"""Surfaces that a chart is drawn on: pixels for a report, SVG for a file of its own."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal, Protocol
from xml.sax.saxutils import escape

from PIL import Image, ImageDraw, ImageFont

from raterscope.figures.colours import LIGHT

__all__ = ["FINE", "Anchor", "Canvas", "PixelCanvas", "Point", "Shifted", "VectorCanvas"]

FINE = 2
"""Charts are drawn so many times larger and made smaller, so that curves are smooth."""

_MIDDLE = 0.35
"""From the middle of a line of letters to its base, as a share of their size."""

Point = tuple[float, float]
Anchor = Literal["start", "middle", "end"]

_ANCHORS = {"start": "l", "middle": "m", "end": "r"}


class Canvas(Protocol):
    """A surface of some width and height, pixels; x grows to the right and y downwards."""

    def line(
        self, points: Sequence[Point], colour: str, width: float = 1.0, dashes: Sequence[float] = ()
    ) -> None:
        """Draw a line through points; dashes are the lengths of strokes and gaps, in turn."""

    def polygon(self, points: Sequence[Point], fill: str, opacity: float = 1.0) -> None:
        """Fill a polygon."""

    def disc(self, at: Point, radius: float, fill: str, edge: str = "", opacity: float = 1.0) -> None:
        """Draw a disc, perhaps with an edge of another colour."""

    def text(
        self,
        at: Point,
        words: str,
        colour: str,
        size: float,
        anchor: Anchor = "middle",
        *,
        upwards: bool = False,
    ) -> None:
        """Write a line, its middle at the height of the place; `upwards` turns it a quarter to the left."""


class PixelCanvas:
    """A canvas of pixels.

    Parameters
    ----------
    width, height : int

    Attributes
    ----------
    image : Image
        `FINE` times as large.
    brush : ImageDraw
        Of that image.
    """

    def __init__(self, width: int, height: int) -> None:
        self._size = width, height
        self.image = Image.new("RGB", (width * FINE, height * FINE), LIGHT.surface)
        self.brush = ImageDraw.Draw(self.image, "RGBA")

    def line(
        self, points: Sequence[Point], colour: str, width: float = 1.0, dashes: Sequence[float] = ()
    ) -> None:
        """Draw a line through points; dashes are the lengths of strokes and gaps, in turn."""
        for stroke in _strokes(points, dashes):
            self.brush.line(_fine(stroke), fill=colour, width=max(round(width * FINE), 1), joint="curve")

    def polygon(self, points: Sequence[Point], fill: str, opacity: float = 1.0) -> None:
        """Fill a polygon."""
        self.brush.polygon(_fine(points), fill=_tinted(fill, opacity))

    def disc(self, at: Point, radius: float, fill: str, edge: str = "", opacity: float = 1.0) -> None:
        """Draw a disc."""
        (x, y), radius = (at[0] * FINE, at[1] * FINE), radius * FINE
        box = (x - radius, y - radius, x + radius, y + radius)
        self.brush.ellipse(box, fill=_tinted(fill, opacity), outline=edge or None, width=FINE)

    def text(
        self,
        at: Point,
        words: str,
        colour: str,
        size: float,
        anchor: Anchor = "middle",
        *,
        upwards: bool = False,
    ) -> None:
        """Write a line."""
        words = words.encode("ascii", "replace").decode()  # the letters of the font are plain ones
        font = ImageFont.load_default(size * FINE)
        x, y = at[0] * FINE, at[1] * FINE
        if not upwards:
            self.brush.text((x, y), words, fill=colour, font=font, anchor=f"{_ANCHORS[anchor]}m")
            return
        length, height = round(self.brush.textlength(words, font=font)) + 2, round(1.4 * size * FINE)
        mask = Image.new("L", (length, height), 0)
        ImageDraw.Draw(mask).text((length / 2, height / 2), words, fill=255, font=font, anchor="mm")
        place = round(x - height / 2), round(y - length / 2)
        self.brush.bitmap(place, mask.rotate(90, expand=True), fill=colour)

    def pixels(self) -> Image.Image:
        """Give the drawing in its own size."""
        return self.image.resize(self._size, Image.Resampling.BOX)


class VectorCanvas:
    """A canvas that is written as SVG.

    Parameters
    ----------
    width, height : int
    """

    def __init__(self, width: int, height: int) -> None:
        self._size = width, height
        self._parts: list[str] = []

    def line(
        self, points: Sequence[Point], colour: str, width: float = 1.0, dashes: Sequence[float] = ()
    ) -> None:
        """Draw a line through points; dashes are the lengths of strokes and gaps, in turn."""
        dashed = f' stroke-dasharray="{" ".join(f"{one:g}" for one in dashes)}"' if dashes else ""
        self._parts.append(
            f'<polyline points="{_listed(points)}" fill="none" stroke="{colour}" stroke-width="{width:g}" '
            f'stroke-linejoin="round"{dashed}/>'
        )

    def polygon(self, points: Sequence[Point], fill: str, opacity: float = 1.0) -> None:
        """Fill a polygon."""
        self._parts.append(f'<polygon points="{_listed(points)}" fill="{fill}" fill-opacity="{opacity:g}"/>')

    def disc(self, at: Point, radius: float, fill: str, edge: str = "", opacity: float = 1.0) -> None:
        """Draw a disc."""
        stroke = f' stroke="{edge}"' if edge else ""
        self._parts.append(
            f'<circle cx="{at[0]:.2f}" cy="{at[1]:.2f}" r="{radius:.2f}" fill="{fill}" '
            f'fill-opacity="{opacity:g}"{stroke}/>'
        )

    def text(
        self,
        at: Point,
        words: str,
        colour: str,
        size: float,
        anchor: Anchor = "middle",
        *,
        upwards: bool = False,
    ) -> None:
        """Write a line."""
        turned = f' transform="rotate(-90 {at[0]:.2f} {at[1]:.2f})"' if upwards else ""
        self._parts.append(
            f'<text x="{at[0]:.2f}" y="{at[1] + _MIDDLE * size:.2f}" fill="{colour}" font-size="{size:g}" '
            f'text-anchor="{anchor}"{turned}>{escape(_printable(words))}</text>'
        )

    def svg(self) -> bytes:
        """Give the file."""
        width, height = self._size
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="sans-serif">\n'
            f'<rect width="{width}" height="{height}" fill="{LIGHT.surface}"/>'
        )
        return "\n".join([head, *self._parts, "</svg>\n"]).encode()


class Shifted:
    """A part of another canvas, which begins at a place of it."""

    def __init__(self, canvas: Canvas, left: float, top: float) -> None:
        self._canvas, self._left, self._top = canvas, left, top

    def line(
        self, points: Sequence[Point], colour: str, width: float = 1.0, dashes: Sequence[float] = ()
    ) -> None:
        """Draw a line through points."""
        self._canvas.line([self._at(point) for point in points], colour, width, dashes)

    def polygon(self, points: Sequence[Point], fill: str, opacity: float = 1.0) -> None:
        """Fill a polygon."""
        self._canvas.polygon([self._at(point) for point in points], fill, opacity)

    def disc(self, at: Point, radius: float, fill: str, edge: str = "", opacity: float = 1.0) -> None:
        """Draw a disc."""
        self._canvas.disc(self._at(at), radius, fill, edge, opacity)

    def text(
        self,
        at: Point,
        words: str,
        colour: str,
        size: float,
        anchor: Anchor = "middle",
        *,
        upwards: bool = False,
    ) -> None:
        """Write a line."""
        self._canvas.text(self._at(at), words, colour, size, anchor, upwards=upwards)

    def _at(self, point: Point) -> Point:
        return point[0] + self._left, point[1] + self._top


def _fine(points: Sequence[Point]) -> list[Point]:
    return [(x * FINE, y * FINE) for x, y in points]


def _strokes(points: Sequence[Point], dashes: Sequence[float]) -> Iterator[Sequence[Point]]:
    """Divide a line into its strokes."""
    if not dashes:
        yield points
        return
    stroke, at, left = [points[0]], 0, dashes[0]
    for (x, y), end in pairwise(points):
        length, gone = math.dist((x, y), end), 0.0
        while length - gone > left:
            gone += left
            corner = x + (end[0] - x) * gone / length, y + (end[1] - y) * gone / length
            if at % 2 == 0:
                yield [*stroke, corner]
            stroke, at = [corner], at + 1
            left = dashes[at % len(dashes)]
        left -= length - gone
        stroke.append(end)
    if at % 2 == 0 and len(stroke) > 1:
        yield stroke


def _listed(points: Sequence[Point]) -> str:
    return " ".join(f"{x:.2f},{y:.2f}" for x, y in points)


def _tinted(colour: str, opacity: float) -> str:
    return colour if opacity >= 1 or not colour else f"{colour}{round(255 * opacity):02x}"


def _printable(words: str) -> str:
    """Leave out control characters, which XML does not allow."""
    return "".join(one for one in words if one.isprintable())
