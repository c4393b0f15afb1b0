"""Surfaces that a chart is drawn on: pixels for a report, SVG for a file of its own."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from itertools import pairwise
from typing import Literal
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from raterscope.figures.colours import LIGHT
from raterscope.figures.description import Symbol

__all__ = ["FINE", "Anchor", "Canvas", "PixelCanvas", "Point", "Points", "Shifted", "VectorCanvas"]

FINE = 2
"""Charts are drawn so many times larger and made smaller, so that curves are smooth."""

_MIDDLE = 0.35
"""From the middle of a line of letters to its base, as a share of their size."""

Point = tuple[float, float]
Points = Sequence[Point] | NDArray[np.floating]
Anchor = Literal["start", "middle", "end"]

_EM = 0.56
"""Mean width of a letter, as a share of its height, where there is no font to ask."""

_ANCHORS = {"start": "l", "middle": "m", "end": "r"}


class Canvas:
    """A surface of some width and height, pixels; x grows to the right and y downwards."""

    def line(
        self,
        points: Points,
        colour: str,
        width: float = 1.0,
        dashes: Sequence[float] = (),
        opacity: float = 1.0,
    ) -> None:
        """Draw a line through points; dashes are the lengths of strokes and gaps, in turn."""
        raise NotImplementedError

    def polygon(self, points: Points, fill: str, opacity: float = 1.0) -> None:
        """Fill a polygon."""
        raise NotImplementedError

    def disc(
        self, at: Point, radius: float, fill: str, edge: str = "", opacity: float = 1.0, width: float = 1.0
    ) -> None:
        """Draw a disc, perhaps with an edge of another colour; without a fill it is a ring."""
        raise NotImplementedError

    def text(
        self,
        at: Point,
        words: str,
        colour: str,
        size: float,
        anchor: Anchor = "middle",
        *,
        turn: float = 0.0,
    ) -> None:
        """Write a line, its middle at the height of the place; `turn` is clockwise, degrees."""
        raise NotImplementedError

    def width_of(self, words: str, size: float) -> float:
        """Give the width of a text."""
        return _EM * size * len(words)

    def clipped(self, upper_left: Point, lower_right: Point) -> AbstractContextManager[None]:
        """Draw nothing outside of a box meanwhile."""
        raise NotImplementedError

    def segments(
        self, ends: NDArray[np.floating], colour: str, width: float = 1.0, dashes: Sequence[float] = ()
    ) -> None:
        """Draw straight lines, (S, 2, 2): both ends of each, x and y."""
        for start, end in np.asarray(ends, dtype=np.float64).tolist():
            self.line([tuple(start), tuple(end)], colour, width, dashes)

    def symbols(
        self,
        places: NDArray[np.floating],
        symbol: Symbol,
        sizes: NDArray[np.floating],
        colour: str,
        width: float = 1.0,
        opacity: float = 1.0,
    ) -> None:
        """Draw one symbol at many places, (P, 2), with a diameter each, (P,)."""
        for (x, y), size in zip(places.tolist(), sizes.tolist(), strict=True):
            half = size / 2
            if symbol == "disc":
                self.disc((x, y), half, colour, opacity=opacity)
            elif symbol == "ring":
                self.disc((x, y), half, "", colour, width=width)
            elif symbol == "tick":
                self.line([(x, y - half), (x, y + half)], colour, width, (), opacity)
            else:
                half *= 0.8
                self.line([(x - half, y - half), (x + half, y + half)], colour, width, (), opacity)
                self.line([(x - half, y + half), (x + half, y - half)], colour, width, (), opacity)


class PixelCanvas(Canvas):
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
        self._clip: tuple[Point, Point] | None = None

    def line(
        self,
        points: Points,
        colour: str,
        width: float = 1.0,
        dashes: Sequence[float] = (),
        opacity: float = 1.0,
    ) -> None:
        """Draw a line through points; dashes are the lengths of strokes and gaps, in turn."""
        fill, thick = _tinted(colour, opacity), max(round(width * FINE), 1)
        for stroke in _strokes(_listed(points), dashes):
            self.brush.line(self._fine(stroke), fill=fill, width=thick, joint="curve")

    def polygon(self, points: Points, fill: str, opacity: float = 1.0) -> None:
        """Fill a polygon."""
        self.brush.polygon(self._fine(_listed(points)), fill=_tinted(fill, opacity))

    def disc(
        self, at: Point, radius: float, fill: str, edge: str = "", opacity: float = 1.0, width: float = 1.0
    ) -> None:
        """Draw a disc."""
        (x, y), radius = (at[0] * FINE, at[1] * FINE), radius * FINE
        box = (x - radius, y - radius, x + radius, y + radius)
        thick = max(round(width * FINE), 1)
        self.brush.ellipse(box, fill=_tinted(fill, opacity) or None, outline=edge or None, width=thick)

    def text(
        self,
        at: Point,
        words: str,
        colour: str,
        size: float,
        anchor: Anchor = "middle",
        *,
        turn: float = 0.0,
    ) -> None:
        """Write a line."""
        words, font = _plain(words), _font(size * FINE)
        x, y = at[0] * FINE, at[1] * FINE
        if not turn:
            self.brush.text((x, y), words, fill=colour, font=font, anchor=f"{_ANCHORS[anchor]}m")
            return
        length, height = round(font.getlength(words)) + 2, round(1.4 * size * FINE)
        mask = Image.new("L", (length, height), 0)
        ImageDraw.Draw(mask).text((length / 2, height / 2), words, fill=255, font=font, anchor="mm")
        mask = mask.rotate(-turn, Image.Resampling.BICUBIC, expand=True)
        away = {"start": length / 2, "middle": 0.0, "end": -length / 2}[anchor]
        x += away * math.cos(math.radians(turn))
        y += away * math.sin(math.radians(turn))
        self.brush.bitmap((round(x - mask.width / 2), round(y - mask.height / 2)), mask, fill=colour)

    def width_of(self, words: str, size: float) -> float:
        """Give the width of a text."""
        return float(_font(size * FINE).getlength(_plain(words))) / FINE

    @contextmanager
    def clipped(self, upper_left: Point, lower_right: Point) -> Iterator[None]:
        """Lead what lies outside of a box along its edge meanwhile."""
        before, self._clip = self._clip, (upper_left, lower_right)
        try:
            yield
        finally:
            self._clip = before

    def _fine(self, points: Sequence[Point]) -> list[Point]:
        if self._clip is None:
            return [(x * FINE, y * FINE) for x, y in points]
        (left, top), (right, bottom) = self._clip
        return [(min(max(x, left), right) * FINE, min(max(y, top), bottom) * FINE) for x, y in points]

    def pixels(self) -> Image.Image:
        """Give the drawing in its own size."""
        return self.image.resize(self._size, Image.Resampling.BOX)


class VectorCanvas(Canvas):
    """A canvas that is written as SVG.

    Parameters
    ----------
    width, height : int
    """

    def __init__(self, width: int, height: int) -> None:
        self._size = width, height
        self._parts: list[str] = []
        self._clips = 0

    def line(
        self,
        points: Points,
        colour: str,
        width: float = 1.0,
        dashes: Sequence[float] = (),
        opacity: float = 1.0,
    ) -> None:
        """Draw a line through points; dashes are the lengths of strokes and gaps, in turn."""
        dashed = f' stroke-dasharray="{" ".join(f"{one:g}" for one in dashes)}"' if dashes else ""
        faint = f' stroke-opacity="{opacity:g}"' if opacity < 1 else ""
        self._parts.append(
            f'<polyline points="{_written(points)}" fill="none" stroke="{colour}" stroke-width="{width:g}" '
            f'stroke-linejoin="round"{dashed}{faint}/>'
        )

    def polygon(self, points: Points, fill: str, opacity: float = 1.0) -> None:
        """Fill a polygon."""
        self._parts.append(f'<polygon points="{_written(points)}" fill="{fill}" fill-opacity="{opacity:g}"/>')

    def disc(
        self, at: Point, radius: float, fill: str, edge: str = "", opacity: float = 1.0, width: float = 1.0
    ) -> None:
        """Draw a disc."""
        stroke = f' stroke="{edge}" stroke-width="{width:g}"' if edge else ""
        self._parts.append(
            f'<circle cx="{at[0]:.2f}" cy="{at[1]:.2f}" r="{radius:.2f}" fill="{fill or "none"}" '
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
        turn: float = 0.0,
    ) -> None:
        """Write a line."""
        turned = f' transform="rotate({turn:g} {at[0]:.2f} {at[1]:.2f})"' if turn else ""
        self._parts.append(
            f'<text x="{at[0]:.2f}" y="{at[1] + _MIDDLE * size:.2f}" fill="{colour}" font-size="{size:g}" '
            f'text-anchor="{anchor}"{turned}>{escape(_printable(words))}</text>'
        )

    @contextmanager
    def clipped(self, upper_left: Point, lower_right: Point) -> Iterator[None]:
        """Draw nothing outside of a box meanwhile."""
        (left, top), (right, bottom) = upper_left, lower_right
        self._clips += 1
        self._parts.append(
            f'<clipPath id="plot{self._clips}"><rect x="{left:.2f}" y="{top:.2f}" width="{right - left:.2f}" '
            f'height="{bottom - top:.2f}"/></clipPath><g clip-path="url(#plot{self._clips})">'
        )
        yield
        self._parts.append("</g>")

    def svg(self) -> bytes:
        """Give the file."""
        width, height = self._size
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="sans-serif">\n'
            f'<rect width="{width}" height="{height}" fill="{LIGHT.surface}"/>'
        )
        return "\n".join([head, *self._parts, "</svg>\n"]).encode()


class Shifted(Canvas):
    """A part of another canvas, which begins at a place of it."""

    def __init__(self, canvas: Canvas, left: float, top: float) -> None:
        self._canvas, self._left, self._top = canvas, left, top

    def line(
        self,
        points: Points,
        colour: str,
        width: float = 1.0,
        dashes: Sequence[float] = (),
        opacity: float = 1.0,
    ) -> None:
        """Draw a line through points."""
        self._canvas.line(self._moved(points), colour, width, dashes, opacity)

    def polygon(self, points: Points, fill: str, opacity: float = 1.0) -> None:
        """Fill a polygon."""
        self._canvas.polygon(self._moved(points), fill, opacity)

    def disc(
        self, at: Point, radius: float, fill: str, edge: str = "", opacity: float = 1.0, width: float = 1.0
    ) -> None:
        """Draw a disc."""
        self._canvas.disc(self._at(at), radius, fill, edge, opacity, width)

    def text(
        self,
        at: Point,
        words: str,
        colour: str,
        size: float,
        anchor: Anchor = "middle",
        *,
        turn: float = 0.0,
    ) -> None:
        """Write a line."""
        self._canvas.text(self._at(at), words, colour, size, anchor, turn=turn)

    def width_of(self, words: str, size: float) -> float:
        """Give the width of a text."""
        return self._canvas.width_of(words, size)

    @contextmanager
    def clipped(self, upper_left: Point, lower_right: Point) -> Iterator[None]:
        """Draw nothing outside of a box meanwhile."""
        with self._canvas.clipped(self._at(upper_left), self._at(lower_right)):
            yield

    def _at(self, point: Point) -> Point:
        return point[0] + self._left, point[1] + self._top

    def _moved(self, points: Points) -> list[Point]:
        return [self._at(point) for point in _listed(points)]


@lru_cache(maxsize=16)
def _font(size: float) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def _plain(words: str) -> str:
    """Give a text in the letters that the font has."""
    words = words.replace("\N{MINUS SIGN}", "-").replace("\N{HORIZONTAL ELLIPSIS}", "...")
    return words.encode("ascii", "replace").decode()


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


def _listed(points: Points) -> list[Point]:
    return [(float(x), float(y)) for x, y in (points.tolist() if isinstance(points, np.ndarray) else points)]


def _written(points: Points) -> str:
    return " ".join(f"{x:.2f},{y:.2f}" for x, y in _listed(points))


def _tinted(colour: str, opacity: float) -> str:
    return colour if opacity >= 1 or not colour else f"{colour}{round(255 * opacity):02x}"


def _printable(words: str) -> str:
    """Leave out control characters, which XML does not allow."""
    return "".join(one for one in words if one.isprintable())
