"""Charts of lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.figures.canvas import Canvas, Point
from raterscope.figures.colours import ANNOTATOR_COLOURS, LIGHT

__all__ = [
    "DASHES", "HIGH", "LINES", "WIDE", "Line", "LineChart", "draw_grid",
    "place_in_axes", "rounded",
]  # fmt: skip

LINES = tuple(colour for colour in ANNOTATOR_COLOURS if colour not in ("#f0e442", "#bbbbbb"))
"""Colours of lines that are seen on white."""

DASHES: tuple[tuple[float, ...], ...] = ((), (9, 4), (3, 4))
"""Of the first lines, of those that have the same colours again, and of the third round."""

WIDE, HIGH = 560, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 18, 14, 64
_LETTERS = 19
_TICKS = 5

_Placing = Callable[[float, float], Point]


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
    dashes : sequence of float
        Lengths of strokes and gaps; empty for an unbroken line.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    colour: str
    dots: bool = False
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None
    dashes: Sequence[float] = ()


@dataclass(frozen=True, eq=False)
class LineChart:
    """Lines over 0 to `most` across and 0 to 1 up, or `low` to `high`.

    Attributes
    ----------
    lines : sequence of Line
    across, up : str
        What the axes measure.
    most : float
    diagonal : bool
        Whether it is drawn from the lower left to the upper right.
    low, high : float
        Ends of the vertical axis.
    """

    lines: Sequence[Line]
    across: str
    up: str
    most: float = 1.0
    diagonal: bool = False
    low: float = 0.0
    high: float = 1.0

    @property
    def width(self) -> int:
        """Pixels."""
        return WIDE

    @property
    def height(self) -> int:
        """Pixels."""
        return HIGH

    def draw(self, canvas: Canvas) -> None:
        """Draw it at the upper left."""
        step, rise = rounded(self.most / _TICKS), rounded((self.high - self.low) / _TICKS)
        at = [(x / self.most, f"{x:,.10g}") for x in np.arange(0, self.most * (1 + 1e-9), step).tolist()]
        first = math.ceil(self.low / rise - 1e-9) * rise
        digits = max(0, -math.floor(math.log10(rise) + 1e-9))
        up = [
            (self._height(y), f"{y:.{digits}f}")
            for y in np.arange(first, self.high + rise * 1e-6, rise).tolist()
        ]
        draw_grid(canvas, at, up, self.across, self.up)

        def place(x: float, y: float) -> Point:
            return place_in_axes(x / self.most, min(max(self._height(y), 0.0), 1.0))

        if self.diagonal:
            canvas.line([place(0, self.low), place(self.most, self.high)], LIGHT.third)
        for line in self.lines:
            _band(canvas, place, line)
        for line in self.lines:
            _draw(canvas, place, line)

    def _height(self, y: float) -> float:
        return (y - self.low) / (self.high - self.low)


def rounded(step: float) -> float:
    """Give the round number nearest above a step: 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(times * power for times in (1.0, 2.0, 5.0, 10.0) if times * power >= step * (1 - 1e-9))


def place_in_axes(x: float, y: float) -> Point:
    """Give where a place within the axes is on the canvas, 0 to 1 each."""
    right, bottom = WIDE - _RIGHT, HIGH - _BOTTOM
    return _LEFT + (right - _LEFT) * x, bottom - (bottom - _TOP) * y


def draw_grid(
    canvas: Canvas,
    across: Sequence[tuple[float, str]],
    up: Sequence[tuple[float, str]],
    below: str,
    beside: str,
) -> None:
    """Draw the lines of a grid with their numbers, and what the axes measure."""
    for at, text in across:
        canvas.line([place_in_axes(at, 0), place_in_axes(at, 1)], LIGHT.line)
        x, y = place_in_axes(at, 0)
        canvas.text((x, y + 15), text, LIGHT.second, _LETTERS)
    for at, text in up:
        canvas.line([place_in_axes(0, at), place_in_axes(1, at)], LIGHT.line)
        x, y = place_in_axes(0, at)
        canvas.text((x - 7, y), text, LIGHT.second, _LETTERS, "end")
    x, y = place_in_axes(0.5, 0)
    canvas.text((x, y + 43), below, LIGHT.text, _LETTERS)
    x, y = place_in_axes(0, 0.5)
    canvas.text((15, y), beside, LIGHT.text, _LETTERS, turn=-90.0)


def _band(canvas: Canvas, place: _Placing, line: Line) -> None:
    if line.low is None or line.high is None or len(line.x) < 2:
        return
    known = np.isfinite(line.low) & np.isfinite(line.high)
    x, low, high = line.x[known].tolist(), line.low[known].tolist(), line.high[known].tolist()
    if len(x) < 2:
        return
    there = [place(*one) for one in zip(x, low, strict=True)]
    back = [place(*one) for one in zip(x, high, strict=True)]
    canvas.polygon([*there, *back[::-1]], line.colour, 0.19)


def _draw(canvas: Canvas, place: _Placing, line: Line) -> None:
    known = np.isfinite(line.x) & np.isfinite(line.y)
    points = [place(x, y) for x, y in zip(line.x[known].tolist(), line.y[known].tolist(), strict=True)]
    if len(points) > 1:
        canvas.line(points, line.colour, 2.2, line.dashes)
    for point in points if line.dots or len(points) == 1 else ():
        canvas.disc(point, 4, line.colour)
