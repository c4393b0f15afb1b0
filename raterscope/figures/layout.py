"""Layout of a chart: the box between the axes, round ticks and their texts, legend, conversion to pixels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from raterscope.figures.description import Axis, Chart, Key, Numbers
from raterscope.text import with_minus

Measure = Callable[[str, float], float]

TURN = -32.0
"""Rotation, in degrees, of names below an axis that do not fit side by side."""
MAX_NAME_SHARE = 0.42
"""Maximum share of a chart's height for rotated names."""
WIDE_NUMBERS = 0.2
"""Share of a chart's width above which the numbers at the left are written in thousands or millions."""
MAX_LEFT_SHARE = 0.45
"""Maximum share of a chart's width at the left for numbers and the name of the axis."""
LEGEND_SHARE = 0.42
SAMPLE, GAP = 22.0, 6.0
MIN_WORDS = 24.0
"""Minimum width, in pixels, for a text in a legend."""
DOTS = "\N{HORIZONTAL ELLIPSIS}"


@dataclass(frozen=True, slots=True)
class Style:
    """Sizes of a chart."""

    letters: float = 11.0  # font size, pixels
    grid: bool = False  # whether grid lines are drawn at the ticks
    edge: float = 8.0  # space at the upper and the right edge


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
        """Check whether a point is inside."""
        return self.left <= x <= self.right and self.top <= y <= self.bottom


@dataclass(frozen=True, slots=True)
class View:
    """The part of the axes that is shown, in units of their scales."""

    left: float
    right: float
    bottom: float
    top: float


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A row of a legend: its key with text that fits, its left end and its middle, in pixels."""

    key: Key
    left: float
    middle: float


@dataclass(frozen=True, eq=False)
class Layout:
    """Positions of everything in a chart."""

    chart: Chart
    style: Style
    room: Box  # whole chart
    box: Box  # plot between the axes
    view: View
    # across, up: pixels and texts of the ticks
    across: Sequence[Tick]
    up: Sequence[Tick]
    turned: bool  # whether the texts below the axis are turned
    legend: Sequence[KeyRow]

    def pixels(self, x: Numbers, y: Numbers) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Convert values to pixels; infinite ones are at the edges."""
        return self.x_pixels(x), self.y_pixels(y)

    def x_pixels(self, values: Numbers) -> NDArray[np.float64]:
        """Convert values of the horizontal axis to pixels."""
        box, view = self.box, self.view
        return _pixels(self.chart.x, values, view.left, view.right, box.left, box.right)

    def y_pixels(self, values: Numbers) -> NDArray[np.float64]:
        """Convert values of the vertical axis to pixels."""
        box, view = self.box, self.view
        return _pixels(self.chart.y, values, view.bottom, view.top, box.bottom, box.top)

    def units(self, x: float, y: float) -> tuple[float, float]:
        """Convert a position in pixels to units of the scales."""
        return (
            self.view.left + (x - self.box.left) / self.box.width * (self.view.right - self.view.left),
            self.view.bottom + (self.box.bottom - y) / self.box.height * (self.view.top - self.view.bottom),
        )


def full_view(chart: Chart) -> View:
    """Return the part of the axes that includes all marks."""
    extents = [mark.extent() for mark in chart.marks]
    left, right = _ends(chart.x, [part for across, _ in extents for part in across])
    bottom, top = _ends(chart.y, [part for _, up in extents for part in up])
    return View(left, right, bottom, top)


def lay_out(
    chart: Chart,
    room: Box,
    measure: Measure,
    style: Style = SCREEN,
    view: View | None = None,
    *,
    titled: bool = False,
    min_left: float = 0.0,
) -> Layout:
    """Lay a chart out.

    `room`: available box, in pixels. `measure`: returns the width of a text of some size. `view`: by default
    everything.
    `titled`: whether the title is drawn above the plot. `min_left`: minimum space for numbers at the left,
    to align the axes of several charts.
    """
    view, letters, row = view or full_view(chart), style.letters, 1.55 * style.letters

    def width_of(text: str) -> float:
        return measure(text, letters)

    keys = chart.legend if len(chart.legend) > 1 or chart.legend_at != "right" else ()
    above = titled or (bool(keys) and chart.legend_at == "above")
    beside = keys if chart.legend_at != "above" else ()
    side = max((width_of(key.text) + 1 + _sample(key) + 3 * GAP for key in beside), default=0.0)
    side = min(side, LEGEND_SHARE * room.width)
    right = max(room.right - side - (style.edge if side else 1.6 * style.edge), room.left + 24.0)
    top = room.top + max(style.edge, 0.6 * letters) + (row if above else 0.0)

    def upwards(length: float) -> tuple[list[Tick], float]:
        """Return the ticks of the vertical axis, and the width of their texts."""
        ticks = ticks_of(chart.y, view.bottom, view.top, length, letters)
        if max((width_of(text) for _, text in ticks), default=0.0) > WIDE_NUMBERS * room.width:
            ticks = compact(ticks)
        return ticks, max((width_of(text) for _, text in ticks), default=0.0)

    numbers = upwards(max(room.bottom - top - 2.6 * letters, 12.0))[1]
    bare, most = numbers + 0.7 * letters + 4.0, MAX_LEFT_SHARE * room.width
    left = numbers + 2.45 * letters if chart.y.label and not chart.y.hidden else bare
    if left - 0.7 * letters > most:  # the label would cover the numbers
        chart, left = replace(chart, y=replace(chart.y, label="")), bare
    natural = left
    left = room.left + min(max(natural, min_left), most)
    across = ticks_of(chart.x, view.left, view.right, right - left, letters, width_of)
    turned, below = False, 1.45 * letters if across else 0.0
    if chart.x.names and across:
        step = (right - left) / max(view.right - view.left, 1e-9)
        widest = max(width_of(text) for _, text in across)
        turned = widest + 0.8 * letters > step and MAX_NAME_SHARE * room.height > 4 * letters
        if turned:
            below = widest * math.sin(math.radians(-TURN)) + 1.5 * letters
            below = min(below, max(MAX_NAME_SHARE * room.height, 1.45 * letters))
        else:
            across = [(unit, elided(text, step - 0.6 * letters, width_of)) for unit, text in across]
    if chart.x.label and not chart.x.hidden:
        below += 1.45 * letters
    box = Box(left, top, max(right, left + 8), max(room.bottom - below - 5, top + 8))
    up, widest_number = upwards(box.height)
    wanted = min(natural + widest_number - numbers, most)
    if wanted > left - room.left + 1e-6:  # a taller box has more ticks; a sum may be rounded
        return lay_out(chart, room, measure, style, view, titled=titled, min_left=wanted)
    scale_x = box.width / (view.right - view.left)
    scale_y = box.height / (view.top - view.bottom)
    if not keys:
        legend: Sequence[KeyRow] = ()
    elif chart.legend_at == "above":
        left = room.left + (width_of(chart.title) + 3 * GAP if titled else 0.0)
        legend = _row_above(keys, left, right, room.top + 0.75 * row, width_of)
    else:
        legend = _column_beside(chart, keys, box, room, row, view, width_of, style)
    return Layout(
        chart, style, room, box, view,
        [(box.left + (unit - view.left) * scale_x, text) for unit, text in across],
        [(box.bottom - (unit - view.bottom) * scale_y, text) for unit, text in up],
        turned, legend,
    )  # fmt: skip


def _sample(key: Key) -> float:
    return SAMPLE if key.line else SAMPLE / 2


def _row_above(
    keys: Sequence[Key], left: float, right: float, middle: float, width_of: Callable[[str], float]
) -> list[KeyRow]:
    """Place the rows of a legend side by side, with short texts and less space between if necessary."""
    texts, gap = [key.text for key in keys], 3 * GAP
    if sum(width_of(key.text) + _sample(key) + 3 * GAP for key in keys) - 2 * GAP > right - left:
        texts, gap = [key.short or key.text for key in keys], 2.5 * GAP
    rows: list[KeyRow] = []
    for key, text in zip(keys, texts, strict=True):
        room = right - left - _sample(key) - GAP
        if rows and (room < MIN_WORDS or (key.short and width_of(text) > room)):
            break
        rows.append(KeyRow(replace(key, text=elided(text, room, width_of)), left, middle))
        left += _sample(key) + width_of(text) + gap
    return rows


def _column_beside(
    chart: Chart, keys: Sequence[Key], box: Box, room: Box, row: float, view: View,
    width_of: Callable[[str], float], style: Style,
) -> list[KeyRow]:  # fmt: skip
    """Place the rows of a legend one below the other, or at the ends of the lines, without overlap."""
    left = box.right + style.edge + GAP
    most = max(int((room.bottom - box.top) // row), 1)
    if chart.legend_at == "ends":
        keys = sorted(keys, key=lambda key: -(key.value or 0.0))[: max(int(box.height // row), 1)]
        ends = _pixels(
            chart.y, np.array([key.value or 0.0 for key in keys]), view.bottom, view.top, box.bottom, box.top
        )
        middles: NDArray[np.float64] = np.empty(len(keys))
        for index, end in enumerate(ends):
            middles[index] = max(end, middles[index - 1] + row if index else box.top)
        lowest = box.bottom
        for index in reversed(range(len(middles))):
            middles[index] = lowest = min(middles[index], lowest)
            lowest -= row
    else:
        if len(keys) > most:
            more_text = f"and {len(keys) - most + 1} more"
            keys = [*keys[: most - 1], Key(more_text, "second", line=False)]
        middles = np.asarray(box.top + row * (0.5 + np.arange(len(keys))))
    space = [room.right - left - _sample(key) - GAP for key in keys]
    return [
        KeyRow(replace(key, text=elided(key.text, width, width_of)), left, middle)
        for key, width, middle in zip(keys, space, middles.tolist(), strict=True)
    ]


def elided(text: str, room: float, measure: Callable[[str], float]) -> str:
    """Shorten a text in its middle until it fits, because names differ at their start and end."""
    if measure(text) <= room:
        return text
    low, high = 0, len(text)
    while low < high:
        length = (low + high + 1) // 2
        if measure(_shortened(text, length)) <= room:
            low = length
        else:
            high = length - 1
    return _shortened(text, low)


def _shortened(words: str, length: int) -> str:
    start = (length + 1) // 2
    return words[:start] + DOTS + (words[len(words) - (length - start) :] if length > start else "")


def _ends(axis: Axis, parts: Sequence[Numbers]) -> tuple[float, float]:
    """Return the ends of an axis in units of its scale."""
    if axis.names:
        return (0.4 - len(axis.names), 0.6) if axis.falling else (-0.6, len(axis.names) - 0.4)
    ends = [float(axis.forward(end)) for end in (axis.low, axis.high) if end is not None]
    low, high = (min(ends), max(ends)) if len(ends) == 2 else _range(axis, parts)
    if len(ends) == 1:
        is_low = (axis.low is None) == axis.falling
        low, high = (ends[0], high) if is_low else (low, ends[0])
    if axis.integral and high - low < 1:
        high = low + 1
    if high <= low:
        low, high = low - (abs(low) or 1.0) * 0.05, low + (abs(low) or 1.0) * 0.05
    room = axis.padding * (high - low)
    return low - room, high + room


def _range(axis: Axis, parts: Sequence[Numbers]) -> tuple[float, float]:
    known = [units[np.isfinite(units)] for units in map(axis.forward, parts)]
    known = [units for units in known if len(units)]
    low = min((float(units.min()) for units in known), default=0.0)
    return low, max((float(units.max()) for units in known), default=1.0)


def _pixels(
    axis: Axis, values: Numbers, low: float, high: float, first: float, last: float
) -> NDArray[np.float64]:
    """Convert values of an axis from `low` to `high` to pixels between two positions."""
    array = np.asarray(values)
    pixels = first + (axis.forward(array) - low) * ((last - first) / (high - low))
    if np.isinf(array).any():
        pixels = np.where(array == np.inf, last, np.where(array == -np.inf, first, pixels))
    return pixels


Tick = tuple[float, str]
MeasureText = Callable[[str], float]

RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
PLAIN_POWERS = range(-4, 7)
COMPACT_FROM = 10_000
UNITS = ((9, "G"), (6, "M"), (3, "k"))
APART = 2.4
"""Minimum distance of two numbers one above the other, in font heights."""


def rounded(step: float) -> float:
    """Round a step up to 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(times * power for times in (1.0, 2.0, 5.0, 10.0) if times * power >= step * (1 - 1e-9))


def number_text(value: float, step: float) -> str:
    """Format a number with the decimals of a step, separators of thousands and a typographic minus."""
    digits = max(-math.floor(math.log10(step) + 1e-9), 0)
    return with_minus(f"{value:,.{digits}f}")


def compact(ticks: Sequence[Tick]) -> list[Tick]:
    """Format numbers from ten thousand in thousands, millions or billions: −1.15M for −1,150,000.

    Ticks of smaller numbers, names or nonlinear scales stay unchanged.
    """
    values = [value for value, _ in ticks]
    most = max(map(abs, values), default=0.0)
    linear = all(words == number_text(value, 1.0) for value, words in ticks)
    if most < COMPACT_FROM or not linear or len(set(values)) < len(values):
        return list(ticks)
    power, unit = next((power, unit) for power, unit in UNITS if most >= 10.0**power)
    whole = f"{most:.0f}"
    alone = 10.0 ** (len(whole) - len(whole.rstrip("0")))  # no decimals are lost
    step = min((after - before for before, after in pairwise(values)), default=alone) / 10.0**power
    return [(value, f"{number_text(value / 10.0**power, step)}{unit if value else ''}") for value in values]


def ticks_of(
    axis: Axis, low: float, high: float, length: float, letters: float, measure: MeasureText | None = None
) -> list[Tick]:
    """Choose the ticks of an axis; none if it is hidden.

    `low`, `high`: visible ends, in units of the scale. `length`: in pixels. `letters`: font height.
    `measure`: returns the width of a text, if texts are side by side; otherwise they are one above the other.
    """
    if axis.hidden:
        return []
    if axis.falling:
        rising = replace(axis, falling=False)
        return [(-unit, text) for unit, text in ticks_of(rising, -high, -low, length, letters, measure)]
    if axis.ticks is not None:
        ticks = [(float(axis.forward(value)), text) for value, text in axis.ticks]
        return [tick for tick in ticks if low <= tick[0] <= high]
    if axis.names:
        first, last = max(math.ceil(low - 1e-9), 0), min(math.floor(high + 1e-9), len(axis.names) - 1)
        return [(float(index), axis.names[index]) for index in range(first, last + 1)]
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low or length <= 0:
        return []
    if axis.scale == "linear":
        return _linear(low, high, length, letters, measure, integral=axis.integral)
    if axis.scale == "root":
        return _rooted(axis, low, high, length, letters)
    return _logarithmic(axis, low, high, length, letters, measure)


def _linear(
    low: float, high: float, length: float, letters: float, measure: MeasureText | None, *, integral: bool
) -> list[Tick]:
    room = APART * letters
    # Widths depend on the step, and the step on the widths: two rounds are enough.
    for _ in range(3 if measure else 1):
        step = rounded((high - low) * min(room / length, 1.0))
        if integral:
            step = max(step, 1.0)
        ticks = _steps(low, high, step)
        if measure is None or not ticks:
            break
        needed = max(measure(words) for _, words in ticks) + 1.6 * letters
        if needed <= step / (high - low) * length:
            break
        room = needed
    if len(ticks) < 2 and not integral:
        ticks = _steps(low, high, rounded(0.4 * (high - low)))
        return [ticks[0], ticks[-1]] if len(ticks) > 1 else ticks
    return ticks


def _steps(low: float, high: float, step: float) -> list[Tick]:
    first, last = math.ceil(low / step - 1e-6), math.floor(high / step + 1e-6)
    return [(index * step, number_text(index * step, step)) for index in range(first, last + 1)]


def _rooted(axis: Axis, low: float, high: float, length: float, letters: float) -> list[Tick]:
    """Choose the ticks of an axis of square roots: 0, and round values with enough space for texts."""
    scale, step = length / (high - low), 10.0 ** math.floor(math.log10(max(low * low, high * high)) - 2)
    sizes = [part * step * 10**power for power in range(4) for part in (1, 2, 5)]
    ticks = [(0.0, "0")]
    for sign in (1, -1):
        before = 0.0
        units = axis.forward([sign * size for size in sizes]).tolist()
        for unit, size in zip(units, sizes, strict=True):
            if low <= unit <= high and abs(unit - before) * scale >= APART * letters:
                ticks.append((unit, number_text(sign * size, size)))
                before = unit
    return sorted(tick for tick in ticks if low <= tick[0] <= high)


def _logarithmic(
    axis: Axis, low: float, high: float, length: float, letters: float, measure: MeasureText | None
) -> list[Tick]:
    first, last = math.floor(low - 1e-9), math.ceil(high + 1e-9)
    best: list[Tick] = []
    for parts in ((1, 2, 5), (1, 3), (1,)):
        values = [part * 10.0**power for power in range(first, last + 1) for part in parts]
        if axis.scale == "log1p":
            values = [0.0, *(value for value in values if value >= 1)]
        places = zip(axis.forward(values).tolist(), values, strict=True)
        best = [(unit, _power_text(value)) for unit, value in places if low - 1e-9 <= unit <= high + 1e-9]
        if _fit(best, length / (high - low), letters, measure):
            return best if len(best) > 1 else _between(axis, low, high, length, letters, measure)
    chosen: list[Tick] = []
    for tick in best:
        if not chosen or _fit([chosen[-1], tick], length / (high - low), letters, measure):
            chosen.append(tick)
    return chosen


def _between(
    axis: Axis, low: float, high: float, length: float, letters: float, measure: MeasureText | None
) -> list[Tick]:
    """Choose the ticks of a logarithmic axis that shows less than a power of ten."""
    ends = axis.backward(low), axis.backward(high)
    ticks = _linear(*ends, length, letters, measure, integral=axis.integral)
    return [(float(axis.forward(value)), words) for value, words in ticks]


def _fit(ticks: Sequence[Tick], scale: float, letters: float, measure: MeasureText | None) -> bool:
    for (unit, text), (next_unit, next_text) in pairwise(ticks):
        needed = APART * letters if measure is None else (measure(text) + measure(next_text)) / 2 + letters
        if (next_unit - unit) * scale < needed:
            return False
    return True


def _power_text(value: float) -> str:
    power = round(math.log10(value)) if value > 0 else 0
    if power in PLAIN_POWERS or value == 0:
        return f"{value:,.0f}" if value >= 1 or value == 0 else f"{value:.6g}"
    first = value / 10.0 ** math.floor(math.log10(value) + 1e-9)
    raised = str(math.floor(math.log10(value) + 1e-9)).translate(RAISED)
    return f"10{raised}" if round(first) == 1 else f"{first:.0f}×10{raised}"
