"""Drawing surfaces of charts: pixels for a report, SVG for a separate file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from raterscope.figures.colours import LIGHT, OUTLINES, Symbol

FINE = 2
"""Factor by which charts are drawn larger and then reduced, for smooth curves."""

Point = tuple[float, float]
Points = Sequence[Point] | NDArray[np.floating]
Anchor = Literal["start", "middle", "end"]

_BASELINE = 0.35
"""Distance from the middle of a line of text to its baseline, as a share of the font size."""
_EM = 0.56
"""Mean width of a letter, as a share of its height, used if there is no font to measure with."""
_HALO = 2
"""Width of the outline of text, in pixels."""
_ANCHORS = {"start": "l", "middle": "m", "end": "r"}


@dataclass(frozen=True, slots=True)
class Pen:
    """A stroke."""

    colour: str  # hexadecimal
    width: float = 1.0  # pixels
    dashes: Sequence[float] = ()  # alternating lengths of strokes and gaps, pixels; empty for a solid line
    opacity: float = 1.0


class Canvas:
    """Drawing surface with a width and height in pixels; x grows to the right and y downwards."""

    def line(self, points: Points, pen: Pen) -> None:
        """Draw a line through points."""
        raise NotImplementedError

    def polygon(self, points: Points, fill: str, opacity: float = 1.0) -> None:
        """Fill a polygon."""
        raise NotImplementedError

    def disc(
        self, centre: Point, radius: float, fill: str, edge: Pen | None = None, opacity: float = 1.0
    ) -> None:
        """Draw a disc, optionally with an edge; without a fill it is a ring."""
        raise NotImplementedError

    def text(
        self, position: Point, text: str, colour: str, size: float, anchor: Anchor = "middle",
        *, turn: float = 0.0,
    ) -> None:  # fmt: skip
        """Write a line of text, vertically centred on the position; `turn` is clockwise, degrees."""
        raise NotImplementedError

    def width_of(self, text: str, size: float) -> float:
        """Return the width of a text."""
        return _EM * size * len(text)

    def clipped(self, upper_left: Point, lower_right: Point) -> AbstractContextManager[None]:
        """Draw nothing outside a rectangle within the context."""
        raise NotImplementedError

    def moved(self, right: float, down: float) -> AbstractContextManager[None]:
        """Move the origin within the context."""
        raise NotImplementedError

    def segments(self, ends: NDArray[np.floating], pen: Pen) -> None:
        """Draw straight lines, (S, 2, 2): both ends of each, x and y."""
        for start, end in np.asarray(ends, dtype=np.float64).tolist():
            self.line([tuple(start), tuple(end)], pen)

    def area(self, points: Points, fill: str, opacity: float = 1.0) -> None:
        """Fill a large polygon; its edges may lack antialiasing."""
        self.polygon(points, fill, opacity)

    def rectangles(self, boxes: NDArray[np.floating], fill: str, opacity: float = 1.0) -> None:
        """Fill rectangles, (R, 4): left, top, right and bottom of each."""
        for left, top, right, bottom in np.asarray(boxes, dtype=np.float64).tolist():
            self.polygon([(left, top), (right, top), (right, bottom), (left, bottom)], fill, opacity)

    def symbols(
        self, centres: NDArray[np.floating], symbol: Symbol, sizes: NDArray[np.floating], pen: Pen, fill: str
    ) -> None:
        """Draw one symbol at (P, 2) centres with (P,) diameters.

        A cross and a tick are drawn as lines with the pen. Other symbols have a fill and an edge, unless its
        colour is empty.
        """
        edge = pen if pen.colour else None
        for (x, y), size in zip(centres.tolist(), sizes.tolist(), strict=True):
            half = size / 2
            if symbol == "disc":
                self.disc((x, y), half, fill, edge, pen.opacity)
            elif symbol == "tick":
                self.line([(x, y - half), (x, y + half)], pen)
            elif symbol == "cross":
                half *= 0.8
                self.line([(x - half, y - half), (x + half, y + half)], pen)
                self.line([(x - half, y + half), (x + half, y - half)], pen)
            else:
                corners = np.array(OUTLINES[symbol]) * half + (x, y)
                if fill:
                    self.polygon(corners, fill, pen.opacity)
                if edge:
                    self.line(np.concatenate([corners, corners[:1]]), edge)


class PixelCanvas(Canvas):
    """A canvas of pixels.

    `ground`: photograph to draw on, enlarged `FINE` times; drawing changes it.
    """

    def __init__(self, width: int, height: int, ground: Image.Image | None = None) -> None:
        self._size = width, height
        # `FINE` times as large
        self.image = ground or Image.new("RGB", (width * FINE, height * FINE), LIGHT.surface)
        self._brush = ImageDraw.Draw(self.image, "RGBA")
        self._clip: tuple[Point, Point] | None = None
        self._origin = (0.0, 0.0)

    @classmethod
    def over(cls, image: Image.Image) -> PixelCanvas:
        """Create a canvas over a photograph, whose pixels stay unchanged."""
        fine = (image.width * FINE, image.height * FINE)
        return cls(*image.size, image.resize(fine, Image.Resampling.NEAREST))

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        return self._size

    def line(self, points: Points, pen: Pen) -> None:
        """Draw a line through points."""
        fill, thick = _tinted(pen.colour, pen.opacity), _thick(pen)
        for stroke in _strokes(_listed(points), pen.dashes):
            self._brush.line(self._fine(stroke), fill=fill, width=thick, joint="curve")

    def polygon(self, points: Points, fill: str, opacity: float = 1.0) -> None:
        """Fill a polygon."""
        self._brush.polygon(self._fine(_listed(points)), fill=_tinted(fill, opacity))

    def disc(
        self, centre: Point, radius: float, fill: str, edge: Pen | None = None, opacity: float = 1.0
    ) -> None:
        """Draw a disc."""
        x, y = self._placed(centre)
        radius *= FINE
        self._brush.ellipse(
            (x - radius, y - radius, x + radius, y + radius),
            fill=_tinted(fill, opacity) or None,
            outline=edge.colour if edge else None,
            width=_thick(edge) if edge else 1,
        )

    def text(
        self, position: Point, text: str, colour: str, size: float, anchor: Anchor = "middle",
        *, turn: float = 0.0, halo: str = "",
    ) -> None:  # fmt: skip
        """Write a line of text; a text that is not turned may have a halo, to be readable on a photograph."""
        text, font = _ascii(text), _font(size * FINE)
        x, y = self._placed(position)
        if not turn:
            self._brush.text(
                (x, y), text, fill=colour, font=font, anchor=f"{_ANCHORS[anchor]}m",
                stroke_width=_HALO * FINE if halo else 0, stroke_fill=halo or None,
            )  # fmt: skip
            return
        length, height = round(font.getlength(text)) + 2, round(1.4 * size * FINE)
        mask = Image.new("L", (length, height), 0)
        ImageDraw.Draw(mask).text((length / 2, height / 2), text, fill=255, font=font, anchor="mm")
        mask = mask.rotate(-turn, Image.Resampling.BICUBIC, expand=True)
        shift = {"start": length / 2, "middle": 0.0, "end": -length / 2}[anchor]
        x += shift * math.cos(math.radians(turn))
        y += shift * math.sin(math.radians(turn))
        self._brush.bitmap((round(x - mask.width / 2), round(y - mask.height / 2)), mask, fill=colour)

    def width_of(self, text: str, size: float) -> float:
        """Return the width of a text."""
        return float(_font(size * FINE).getlength(_ascii(text))) / FINE

    @contextmanager
    def clipped(self, upper_left: Point, lower_right: Point) -> Iterator[None]:
        """Draw marks outside a rectangle at its edge, within the context."""
        before, self._clip = self._clip, (upper_left, lower_right)
        try:
            yield
        finally:
            self._clip = before

    @contextmanager
    def moved(self, right: float, down: float) -> Iterator[None]:
        """Move the origin within the context."""
        before = self._origin
        self._origin = before[0] + right, before[1] + down
        try:
            yield
        finally:
            self._origin = before

    def _placed(self, point: Point) -> Point:
        return (point[0] + self._origin[0]) * FINE, (point[1] + self._origin[1]) * FINE

    def _fine(self, points: Sequence[Point]) -> list[Point]:
        if self._clip is not None:
            (left, top), (right, bottom) = self._clip
            points = [(min(max(x, left), right), min(max(y, top), bottom)) for x, y in points]
        return [self._placed(point) for point in points]

    def pixels(self) -> Image.Image:
        """Return the drawing at its nominal size."""
        return self.image.resize(self._size, Image.Resampling.BOX)


class VectorCanvas(Canvas):
    """A canvas that is written as SVG."""

    def __init__(self, width: int, height: int) -> None:
        self._size = width, height
        self._parts: list[str] = []
        self._clips = 0

    def line(self, points: Points, pen: Pen) -> None:
        """Draw a line through points."""
        dashes = " ".join(f"{length:g}" for length in pen.dashes)
        self._parts.append(
            f'<polyline points="{_written(points)}" fill="none"{_stroke(pen)} stroke-linejoin="round"'
            + (f' stroke-dasharray="{dashes}"' if dashes else "")
            + (f' stroke-opacity="{pen.opacity:g}"/>' if pen.opacity < 1 else "/>")
        )

    def polygon(self, points: Points, fill: str, opacity: float = 1.0) -> None:
        """Fill a polygon."""
        self._parts.append(f'<polygon points="{_written(points)}" fill="{fill}" fill-opacity="{opacity:g}"/>')

    def disc(
        self, centre: Point, radius: float, fill: str, edge: Pen | None = None, opacity: float = 1.0
    ) -> None:
        """Draw a disc."""
        self._parts.append(
            f'<circle cx="{centre[0]:.2f}" cy="{centre[1]:.2f}" r="{radius:.2f}" fill="{fill or "none"}" '
            f'fill-opacity="{opacity:g}"{_stroke(edge) if edge else ""}/>'
        )

    def text(
        self, position: Point, text: str, colour: str, size: float, anchor: Anchor = "middle",
        *, turn: float = 0.0,
    ) -> None:  # fmt: skip
        """Write a line of text, without control characters, which XML forbids."""
        x, y = position
        turned = f' transform="rotate({turn:g} {x:.2f} {y:.2f})"' if turn else ""
        printable = "".join(letter for letter in text if letter.isprintable())
        self._parts.append(
            f'<text x="{x:.2f}" y="{y + _BASELINE * size:.2f}" fill="{colour}" font-size="{size:g}" '
            f'text-anchor="{anchor}"{turned}>{escape(printable, quote=False)}</text>'
        )

    @contextmanager
    def clipped(self, upper_left: Point, lower_right: Point) -> Iterator[None]:
        """Draw nothing outside a rectangle within the context."""
        (left, top), (right, bottom) = upper_left, lower_right
        self._clips += 1
        self._parts.append(
            f'<clipPath id="plot{self._clips}"><rect x="{left:.2f}" y="{top:.2f}" width="{right - left:.2f}" '
            f'height="{bottom - top:.2f}"/></clipPath><g clip-path="url(#plot{self._clips})">'
        )
        yield
        self._parts.append("</g>")

    @contextmanager
    def moved(self, right: float, down: float) -> Iterator[None]:
        """Move the origin within the context."""
        self._parts.append(f'<g transform="translate({right:.2f} {down:.2f})">')
        yield
        self._parts.append("</g>")

    def svg(self) -> bytes:
        """Return the contents of the file."""
        width, height = self._size
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="sans-serif">\n'
            f'<rect width="{width}" height="{height}" fill="{LIGHT.surface}"/>'
        )
        return "\n".join([head, *self._parts, "</svg>\n"]).encode()


@lru_cache(maxsize=16)
def _font(size: float) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def _ascii(text: str) -> str:
    """Replace characters that the font lacks."""
    text = text.replace("\N{MINUS SIGN}", "-").replace("\N{HORIZONTAL ELLIPSIS}", "...")
    return text.encode("ascii", "replace").decode()


def _strokes(points: Sequence[Point], dashes: Sequence[float]) -> Iterator[Sequence[Point]]:
    """Divide a dashed line into its strokes."""
    if not dashes:
        yield points
        return
    stroke, index, remaining = [points[0]], 0, dashes[0]
    for (x, y), end in pairwise(points):
        length, drawn_length = math.dist((x, y), end), 0.0
        while length - drawn_length > remaining:
            drawn_length += remaining
            corner = x + (end[0] - x) * drawn_length / length, y + (end[1] - y) * drawn_length / length
            if index % 2 == 0:
                yield [*stroke, corner]
            stroke, index = [corner], index + 1
            remaining = dashes[index % len(dashes)]
        remaining -= length - drawn_length
        stroke.append(end)
    if index % 2 == 0 and len(stroke) > 1:
        yield stroke


def _listed(points: Points) -> list[Point]:
    return [(float(x), float(y)) for x, y in (points.tolist() if isinstance(points, np.ndarray) else points)]


def _written(points: Points) -> str:
    return " ".join(f"{x:.2f},{y:.2f}" for x, y in _listed(points))


def _stroke(pen: Pen) -> str:
    return f' stroke="{pen.colour}" stroke-width="{pen.width:g}"'


def _thick(pen: Pen) -> int:
    return max(round(pen.width * FINE), 1)


def _tinted(colour: str, opacity: float) -> str:
    return colour if opacity >= 1 or not colour else f"{colour}{round(255 * opacity):02x}"
