"""Triangles whose points are three shares, for the window and for paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.figures.canvas import Canvas, Pen
from raterscope.figures.colours import LIGHT, Theme, colour_of
from raterscope.figures.layout import Box, elided
from raterscope.figures.symbols import Symbol

__all__ = ["TernaryChart", "TernaryPath", "TernaryPoint", "corners_in", "draw_triangle", "pixels_of"]

HEIGHT = math.sqrt(3) / 2
"""Of a triangle whose sides are 1."""
SIDE, TOP, BOTTOM = 380.0, 34.0, 36.0
"""Of a triangle on paper."""
LETTERS, SMALL = 17.0, 13.0
NAME = 180.0
NEXT = ((0, 1, 2), (1, 2, 0), (2, 0, 1))


@dataclass(frozen=True, eq=False)
class TernaryPoint:
    """A symbol in a triangle.

    Attributes
    ----------
    shares : (3,) float64
        Adding up to 1.
    ink : str
    radius : float
        Pixels.
    words : str
        Beside it.
    symbol : Symbol
    opacity : float
    """

    shares: NDArray[np.float64]
    ink: str
    radius: float = 5.0
    words: str = ""
    symbol: Symbol = "disc"
    opacity: float = 0.85


@dataclass(frozen=True, eq=False)
class TernaryPath:
    """A path in a triangle.

    Attributes
    ----------
    shares : (S, 3) float64
    ink : str
    width : float
    """

    shares: NDArray[np.float64]
    ink: str
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
    width, height : int
        On paper, pixels.
    """

    corners: tuple[str, str, str]
    points: Sequence[TernaryPoint] = ()
    paths: Sequence[TernaryPath] = ()
    width: int = round(SIDE + NAME)
    height: int = round(SIDE * HEIGHT + TOP + BOTTOM)

    def draw(self, canvas: Canvas) -> None:
        """Draw it on paper, at the upper left."""
        left = (self.width - SIDE) / 2
        box = Box(left, TOP, left + SIDE, TOP + SIDE * HEIGHT)
        self.draw_in(canvas, box, LIGHT, LETTERS, SMALL)

    def draw_in(self, canvas: Canvas, box: Box, look: Theme, letters: float, small: float) -> None:
        """Draw it as large as a box allows; the corners' names are beyond it."""
        corners = corners_in(box)
        draw_triangle(canvas, corners, self.corners, look, letters)
        for path in self.paths:
            if len(path.shares) > 1:
                canvas.line(pixels_of(corners, path.shares), Pen(colour_of(path.ink, look), path.width))
        for point in sorted(self.points, key=lambda point: -point.radius):
            edge = Pen(look.surface, 1.0, (), point.opacity)
            centre, size = pixels_of(corners, point.shares)[None], np.array([2 * point.radius])
            canvas.symbols(centre, point.symbol, size, edge, colour_of(point.ink, look))
        for point in self.points:
            x, y = pixels_of(corners, point.shares).tolist()
            canvas.text((x + point.radius + 4, y), point.words, look.second, small, "start")


def corners_in(box: Box) -> NDArray[np.float64]:
    """Return the largest triangle in a box: lower left, top and lower right, (3, 2) pixels."""
    side = max(min(box.width, box.height / HEIGHT), 1.0)
    left = box.left + (box.width - side) / 2
    low = box.top + (box.height + side * HEIGHT) / 2
    return np.array([(left, low), (left + side / 2, low - side * HEIGHT), (left + side, low)])


def pixels_of(corners: NDArray[np.float64], shares: NDArray[np.floating]) -> NDArray[np.float64]:
    """Convert shares, (..., 3), to pixels in a triangle, (..., 2)."""
    values = np.asarray(shares, dtype=np.float64)
    return np.asarray((values / values.sum(axis=-1, keepdims=True)) @ corners)


def draw_triangle(
    canvas: Canvas, corners: NDArray[np.float64], names: Sequence[str], look: Theme, letters: float
) -> None:
    """Draw the frame, a grid of quarters, and the names of the corners."""
    grid = Pen(look.line, 1.0, (), 0.6)
    for share in (0.25, 0.5, 0.75):
        for first, second, third in NEXT:
            ends = corners[[first, third]] + (corners[second] - corners[[first, third]]) * share
            canvas.line(ends, grid)
    canvas.line(corners[[0, 1, 2, 0]], Pen(look.third, 1.2))
    room = max(min(NAME, float(corners[2, 0] - corners[0, 0]) / 2), 12.0)
    for (x, y), name, above in zip(corners.tolist(), names, (False, True, False), strict=True):
        short = elided(name, room, lambda text: canvas.width_of(text, letters))
        x = max(x, canvas.width_of(short, letters) / 2)
        canvas.text((x, y + (-1.0 if above else 1.05) * letters), short, look.second, letters)
