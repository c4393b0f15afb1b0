"""Layout of a chart: the box between the axes, ticks, legend, and where values lie in pixels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.figures.description import Axis, Chart, Key, Numbers
from raterscope.figures.ticks import Tick, compact, ticks_of

__all__ = ["PAPER", "SCREEN", "Box", "Layout", "Style", "View", "elided", "full_view", "lay_out"]

Measure = Callable[[str, float], float]

TURN = -32.0
"""Degrees by which names below an axis are turned where they do not fit side by side."""
MOST_NAME = 0.42
"""Share of a chart's height that turned names may take."""
WIDE_NUMBERS = 0.2
"""Share of a chart's width from which the numbers at its left are written in thousands or millions."""
LEGEND_SHARE = 0.42
SAMPLE, GAP = 22.0, 6.0
DOTS = "\N{HORIZONTAL ELLIPSIS}"


@dataclass(frozen=True, slots=True)
class Style:
    """How large a chart is drawn.

    Attributes
    ----------
    letters : float
        Size of its letters, pixels.
    grid : bool
        Whether lines lead from the ticks across the plot.
    edge : float
        Room at the upper and the right edge.
    """

    letters: float = 11.0
    grid: bool = False
    edge: float = 8.0


SCREEN = Style()
PAPER = Style(letters=19.0, grid=True, edge=19.0)


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in pixels; y grows downwards."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        """Pixels."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """Pixels."""
        return self.bottom - self.top

    def contains(self, x: float, y: float) -> bool:
        """Tell whether a place is inside."""
        return self.left <= x <= self.right and self.top <= y <= self.bottom


@dataclass(frozen=True, slots=True)
class View:
    """The part of the axes that is shown, in units of their scales."""

    left: float
    right: float
    bottom: float
    top: float


@dataclass(frozen=True, eq=False)
class Layout:
    """Where everything of a chart lies.

    Attributes
    ----------
    chart : Chart
    style : Style
    box : Box
        Between the axes.
    view : View
    across, up : sequence of (float, str)
        Pixels and texts of the ticks.
    turned : bool
        Whether the texts below the axis are turned.
    legend : Box
        Empty where there is none.
    keys : sequence of Key
        Rows that have room, their words shortened.
    more : int
        Rows that have none.
    """

    chart: Chart
    style: Style
    box: Box
    view: View
    across: Sequence[Tick]
    up: Sequence[Tick]
    turned: bool
    legend: Box
    keys: Sequence[Key]
    more: int

    def places(self, x: Numbers, y: Numbers) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Give where values lie, in pixels; infinite ones at the edges."""
        return self.x_places(x), self.y_places(y)

    def x_places(self, values: Numbers) -> NDArray[np.float64]:
        """Give where values of the horizontal axis lie."""
        scale = self.box.width / (self.view.right - self.view.left)
        return _ended(
            self.box.left + (self.chart.x.forward(values) - self.view.left) * scale,
            values, self.box.left, self.box.right,
        )  # fmt: skip

    def y_places(self, values: Numbers) -> NDArray[np.float64]:
        """Give where values of the vertical axis lie."""
        scale = self.box.height / (self.view.top - self.view.bottom)
        return _ended(
            self.box.bottom - (self.chart.y.forward(values) - self.view.bottom) * scale,
            values, self.box.bottom, self.box.top,
        )  # fmt: skip

    def units(self, x: float, y: float) -> tuple[float, float]:
        """Give what a place stands for, in units of the scales."""
        return (
            self.view.left + (x - self.box.left) / self.box.width * (self.view.right - self.view.left),
            self.view.bottom + (self.box.bottom - y) / self.box.height * (self.view.top - self.view.bottom),
        )


def full_view(chart: Chart) -> View:
    """Give the part of the axes that holds everything drawn."""
    extents = [mark.extent() for mark in chart.marks]
    left, right = _ends(chart.x, [part for across, _ in extents for part in across])
    bottom, top = _ends(chart.y, [part for _, up in extents for part in up])
    return View(left, right, bottom, top)


def lay_out(
    chart: Chart,
    width: float,
    height: float,
    measure: Measure,
    style: Style = SCREEN,
    view: View | None = None,
) -> Layout:
    """Lay a chart out.

    Parameters
    ----------
    chart : Chart
    width, height : float
        Pixels.
    measure : callable
        ``measure(words, size)`` gives the width of a text.
    style : Style
    view : View, optional
        By default everything.
    """
    view, letters = view or full_view(chart), style.letters
    keys = chart.legend if len(chart.legend) > 1 else ()
    side = _legend_width(keys, width, letters, measure)
    right = max(width - side - (style.edge if side else 1.6 * style.edge), 24.0)

    def written(words: str) -> float:
        return measure(words, letters)

    def upwards(length: float) -> tuple[list[Tick], float]:
        """Give the ticks of the vertical axis, and the width of their texts."""
        ticks = ticks_of(chart.y, view.bottom, view.top, length, letters)
        if max((written(words) for _, words in ticks), default=0.0) > WIDE_NUMBERS * width:
            ticks = compact(ticks)
        return ticks, max((written(words) for _, words in ticks), default=0.0)

    numbers = upwards(max(height - 3.2 * letters, 12.0))[1]
    left = numbers + 0.7 * letters + (1.75 * letters if chart.y.label else 4.0)
    left = min(left, 0.45 * width)
    across = ticks_of(chart.x, view.left, view.right, right - left, letters, written)
    turned, below = False, 1.45 * letters
    if chart.x.names and across:
        step = (right - left) / max(view.right - view.left, 1e-9)
        widest = max(written(words) for _, words in across)
        turned = widest + 0.8 * letters > step and MOST_NAME * height > 4 * letters
        if not turned:
            across = [(place, elided(words, step - 0.6 * letters, written)) for place, words in across]
        if turned:
            below = widest * math.sin(math.radians(-TURN)) + 1.5 * letters
            below = min(below, max(MOST_NAME * height, 1.45 * letters))
    if chart.x.label:
        below += 1.45 * letters
    top = max(style.edge, 0.6 * letters)
    bottom = max(height - below - 5, top + 8)
    box = Box(left, top, max(right, left + 8), bottom)
    up, _ = upwards(box.height)
    legend = Box(box.right + style.edge, top, width, height)
    row = 1.55 * letters
    fit = max(int(legend.height // row), 1)
    shown = keys if len(keys) <= fit else keys[: fit - 1]
    room = legend.width - SAMPLE - 2 * GAP
    layout = Layout(
        chart, style, box, view, (), (), turned, legend if keys else Box(width, top, width, height),
        [Key(elided(key.words, room, written), key.ink, key.dashes, key.disc, key.dotted) for key in shown],
        len(keys) - len(shown),
    )  # fmt: skip
    scale_x = box.width / (view.right - view.left)
    scale_y = box.height / (view.top - view.bottom)
    object.__setattr__(layout, "across", [(box.left + (x - view.left) * scale_x, text) for x, text in across])
    object.__setattr__(layout, "up", [(box.bottom - (y - view.bottom) * scale_y, text) for y, text in up])
    return layout


def elided(words: str, room: float, measure: Callable[[str], float]) -> str:
    """Shorten a text in its middle, so that it fits: names differ from others at the start and at the end."""
    if measure(words) <= room:
        return words
    low, high = 0, len(words)
    while low < high:
        kept = (low + high + 1) // 2
        if measure(_short(words, kept)) <= room:
            low = kept
        else:
            high = kept - 1
    return _short(words, low)


def _short(words: str, kept: int) -> str:
    start = (kept + 1) // 2
    return words[:start] + DOTS + (words[len(words) - (kept - start) :] if kept > start else "")


def _legend_width(keys: Sequence[Key], width: float, letters: float, measure: Measure) -> float:
    if not keys:
        return 0.0
    widest = max(measure(key.words, letters) for key in keys) + 1
    return min(widest + SAMPLE + 3 * GAP, LEGEND_SHARE * width)


def _ends(axis: Axis, parts: Sequence[Numbers]) -> tuple[float, float]:
    """Give the ends of an axis in units of its scale."""
    low = None if axis.low is None else float(axis.forward(axis.low))
    high = None if axis.high is None else float(axis.forward(axis.high))
    if axis.names:
        return -0.6, len(axis.names) - 0.4
    if low is None or high is None:
        known = [found for part in parts if len(found := _known(axis, part))]
        low = min((float(part.min()) for part in known), default=0.0) if low is None else low
        high = max((float(part.max()) for part in known), default=1.0) if high is None else high
    if axis.whole and high - low < 1:
        high = low + 1
    if high <= low:
        low, high = low - (abs(low) or 1.0) * 0.05, low + (abs(low) or 1.0) * 0.05
    room = axis.padding * (high - low)
    return low - room, high + room


def _known(axis: Axis, part: Numbers) -> NDArray[np.float64]:
    values = axis.forward(part)
    return values[np.isfinite(values)]


def _ended(places: NDArray[np.float64], values: Numbers, low: float, high: float) -> NDArray[np.float64]:
    array = np.asarray(values)
    if np.isinf(array).any():
        places = np.where(array == np.inf, high, np.where(array == -np.inf, low, places))
    return places
