"""Triangles whose points are three shares, and bars of shares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.figures.canvas import Canvas, Pen, Point
from raterscope.figures.colours import LIGHT

__all__ = ["ShareBars", "TernaryChart", "TernaryPath", "TernaryPoint"]

_SIDE, _MARGIN, _TOP, _BOTTOM = 380.0, 90.0, 34.0, 36.0
_LETTERS, _SMALL = 17, 13
_LONGEST = 22


@dataclass(frozen=True, eq=False)
class TernaryPoint:
    """A disc in a triangle.

    Attributes
    ----------
    shares : (3,) float64
        Adding up to 1.
    colour : str
    radius : float
        Pixels.
    words : str
        Beside it.
    """

    shares: NDArray[np.float64]
    colour: str
    radius: float = 5.0
    words: str = ""


@dataclass(frozen=True, eq=False)
class TernaryPath:
    """A path in a triangle.

    Attributes
    ----------
    shares : (S, 3) float64
    colour : str
    width : float
    """

    shares: NDArray[np.float64]
    colour: str
    width: float = 1.6


@dataclass(frozen=True, eq=False)
class TernaryChart:
    """A triangle: near a corner its share is large.

    Attributes
    ----------
    corners : tuple of three names
        Lower left, top, lower right.
    points : sequence of TernaryPoint
    paths : sequence of TernaryPath
        Beneath the points.
    """

    corners: tuple[str, str, str]
    points: Sequence[TernaryPoint] = ()
    paths: Sequence[TernaryPath] = ()

    @property
    def width(self) -> int:
        """Pixels."""
        return round(_SIDE + 2 * _MARGIN)

    @property
    def height(self) -> int:
        """Pixels."""
        return round(_SIDE * math.sqrt(3) / 2 + _TOP + _BOTTOM)

    def draw(self, canvas: Canvas) -> None:
        """Draw it at the upper left."""
        ends = np.eye(3)
        for share in (0.25, 0.5, 0.75):
            for first, second, third in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
                start = ends[first] * (1 - share) + ends[second] * share
                end = ends[third] * (1 - share) + ends[second] * share
                canvas.line([self._place(start), self._place(end)], Pen(LIGHT.line))
        canvas.line([self._place(ends[at]) for at in (0, 1, 2, 0)], Pen(LIGHT.second, 1.4))
        for at, name in enumerate(self.corners):
            x, y = self._place(ends[at])
            short = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}..."
            canvas.text((x, y - 17 if at == 1 else y + 18), short, LIGHT.text, _LETTERS)
        for path in self.paths:
            if len(path.shares) > 1:
                canvas.line([self._place(row) for row in path.shares], Pen(path.colour, path.width))
        for point in sorted(self.points, key=lambda one: -one.radius):
            canvas.disc(self._place(point.shares), point.radius, point.colour, Pen(LIGHT.surface), 0.85)
        for point in self.points:
            x, y = self._place(point.shares)
            canvas.text((x + point.radius + 4, y), point.words, LIGHT.second, _SMALL, "start")

    def _place(self, shares: NDArray[np.float64]) -> Point:
        low = _TOP + _SIDE * math.sqrt(3) / 2
        x = shares[1] * 0.5 + shares[2]
        return _MARGIN + _SIDE * float(x), low - _SIDE * math.sqrt(3) / 2 * float(shares[1])


@dataclass(frozen=True, eq=False)
class ShareBars:
    """Stacked bars, one for each moment.

    Attributes
    ----------
    moments : sequence of T str
    shares : (T, C) float64
        Rows adding up to 1, or 0 throughout where nothing is known.
    colours : sequence of C str
    """

    moments: Sequence[str]
    shares: NDArray[np.float64]
    colours: Sequence[str]

    @property
    def width(self) -> int:
        """Pixels."""
        return 420

    @property
    def height(self) -> int:
        """Pixels."""
        return 34 * len(self.moments) + 10

    def draw(self, canvas: Canvas) -> None:
        """Draw it at the upper left."""
        left, wide = 130.0, self.width - 140.0
        for row, (moment, shares) in enumerate(zip(self.moments, self.shares, strict=True)):
            top, x = 34.0 * row + 4, left
            canvas.text((left - 8, top + 13), moment, LIGHT.second, _SMALL, "end")
            for colour, share in zip(self.colours, shares.tolist(), strict=True):
                end = x + wide * share
                if share > 0:
                    canvas.polygon([(x, top), (end, top), (end, top + 26), (x, top + 26)], colour)
                if share >= 0.1:
                    canvas.text(((x + end) / 2, top + 13), f"{share:.2f}", "#000000", _SMALL)
                x = end
            if not shares.any():
                canvas.text((left, top + 13), "in no community", LIGHT.second, _SMALL, "start")
