"""Descriptions of figures: axes, marks, legend and the table of numbers, without drawing.

A description is made once, by functions that need neither Qt nor PIL. `raterscope.figures.drawing` draws it
on a canvas: in the window, as pixels for a report, or as SVG.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, product
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from raterscope.figures.colours import Symbol
from raterscope.text import with_minus

Numbers = NDArray[np.number[Any]]
Scale = Literal["linear", "root", "log", "log1p"]


@dataclass(frozen=True, eq=False)
class Axis:
    """An axis of a chart."""

    label: str  # quantity, with the unit
    # low, high: ends of the axis; by default from the marks
    low: float | None = None
    high: float | None = None
    # {"linear", "root", "log", "log1p"}: "root" is the square root with the sign of the value, "log1p" the
    # logarithm of 1 + value, for counts that may be 0
    scale: Scale = "linear"
    padding: float = 0.03  # space beyond both ends, as a share of the range
    integral: bool = False  # whether values are integers, as with iterations
    names: tuple[str, ...] = ()  # names at 0, 1, 2 ... instead of numbers
    # values and their texts; by default round numbers, as many as fit
    ticks: Sequence[tuple[float, str]] | None = None
    falling: bool = False  # whether values decrease from left to right, or upwards
    hidden: bool = False  # whether neither its ticks nor its label are drawn

    def forward(self, values: Numbers | Sequence[float] | float) -> NDArray[np.float64]:
        """Convert values to units of the scale; NaN if the logarithm is undefined."""
        array = np.asarray(values, dtype=np.float64)
        if self.scale == "root":
            array = np.copysign(np.sqrt(np.abs(array)), array)
        elif self.scale != "linear":
            with np.errstate(divide="ignore", invalid="ignore"):
                units = np.log10(array) if self.scale == "log" else np.log10(1 + array)
            array = np.where(np.isfinite(units), units, np.nan)
        return -array if self.falling else array

    def backward(self, unit: float) -> float:
        """Convert a position in units of the scale to a value."""
        unit = -unit if self.falling else unit
        if self.scale == "linear":
            return unit
        if self.scale == "root":
            return unit * abs(unit)
        return float(10.0**unit - (self.scale == "log1p"))


@dataclass(frozen=True, eq=False, kw_only=True)
class Mark:
    """Graphical mark drawn from data."""

    title: str = ""  # name of the series: "OEM"; part of a point's text, also for screen readers
    # ``words(index)`` describes a point; by default the title and both values
    text_of: Callable[[int], str] | None = None
    pointable: bool = True  # whether its points respond to pointing and arrow keys

    @property
    def across(self) -> Numbers:
        """Values of the points on the horizontal axis."""
        raise NotImplementedError

    @property
    def up(self) -> Numbers:
        """Values of the points on the vertical axis."""
        raise NotImplementedError

    def extent(self) -> tuple[Sequence[Numbers], Sequence[Numbers]]:
        """Return all values that the axes must include, horizontal and vertical."""
        return (self.across,), (self.up,)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Placed(Mark):
    x: Numbers
    y: Numbers

    @property
    def across(self) -> Numbers:
        return self.x

    @property
    def up(self) -> Numbers:
        return self.y


@dataclass(frozen=True, eq=False, kw_only=True)
class Line(_Placed):
    """A line through points.

    `x`, `y`: (P,) float; NaN interrupts the line.
    """

    ink: str = "accent"  # a token of the theme ("accent"), or a hexadecimal colour
    width: float = 1.8  # pixels
    # lengths of strokes and gaps in widths of the line; empty for an unbroken line
    dashes: tuple[float, ...] = ()
    dot: float | Numbers = 0.0  # float or (P,): diameter of the symbols at its points, pixels; 0 for none
    symbol: Symbol = "disc"  # at its points
    # low, high: (P,): bounds of an interval around the line
    low: Numbers | None = None
    high: Numbers | None = None
    interval: Literal["band", "bars"] = "band"  # style of the interval
    stepped: bool = False  # whether a value holds until the next point
    opacity: float = 1.0

    def extent(self) -> tuple[Sequence[Numbers], Sequence[Numbers]]:
        """Return all values, including the interval."""
        return (self.x,), [self.y, *(end for end in (self.low, self.high) if end is not None)]


@dataclass(frozen=True, eq=False, kw_only=True)
class Points(_Placed):
    """Points of one shape and colour.

    `x`, `y`: (P,) float.
    """

    ink: str = "accent"
    symbol: Symbol = "disc"
    size: float | Numbers = 7.0  # float or (P,): diameter, pixels
    opacity: float = 1.0
    width: float = 1.6  # of the lines of a hollow symbol, a cross or a tick
    filled: bool = True  # else the symbol is hollow


@dataclass(frozen=True, eq=False, kw_only=True)
class Segments(Mark):
    """Straight line segments, such as whiskers, and lines across a plot. They do not respond to pointing."""

    # x, y: (S, 2): both ends of each segment; an infinite end is at the edge of the plot
    x: Numbers
    y: Numbers
    ink: str = "line"
    width: float = 1.0
    dashes: tuple[float, ...] = ()
    stretch: bool = True  # whether the axes must include it
    pointable: bool = False

    @property
    def across(self) -> Numbers:
        """Middles."""
        return np.asarray(np.mean(self.x, axis=1))

    @property
    def up(self) -> Numbers:
        """Middles."""
        return np.asarray(np.mean(self.y, axis=1))

    def extent(self) -> tuple[Sequence[Numbers], Sequence[Numbers]]:
        """Return all ends."""
        return ((np.ravel(self.x),), (np.ravel(self.y),)) if self.stretch else ((), ())


@dataclass(frozen=True, eq=False, kw_only=True)
class Rectangles(Mark):
    """Rectangles with sides along the axes: bars, boxes, shares, cells."""

    # left, right, bottom, top: (R,): edges
    left: Numbers
    right: Numbers
    bottom: Numbers
    top: Numbers
    inks: Sequence[str] = ("accent",)  # one per rectangle, or one for all
    filled: bool = True  # otherwise only edges are drawn
    width: float = 1.4  # of that edge, pixels
    # texts in the middles, if they fit; further lines hold shorter texts for less space
    labels: Sequence[str] = ()
    opacity: float = 1.0
    gap: float = 0.0  # gap between rectangles, pixels

    @property
    def across(self) -> Numbers:
        """Middles."""
        return (np.asarray(self.left) + np.asarray(self.right)) / 2

    @property
    def up(self) -> Numbers:
        """Upper edges."""
        return np.asarray(self.top)

    def extent(self) -> tuple[Sequence[Numbers], Sequence[Numbers]]:
        """Return all edges."""
        return (self.left, self.right), (self.bottom, self.top)


@dataclass(frozen=True, slots=True)
class Note:
    """A text in the plot."""

    # x, y: position on both axes; an infinite value is at the edge of the plot
    x: float
    y: float
    text: str
    ink: str = "second"
    anchor: Literal["start", "middle", "end"] = "start"
    shift: tuple[float, float] = (0.0, 0.0)  # offset to the right and downwards, pixels


@dataclass(frozen=True, slots=True)
class Key:
    """A row of a legend."""

    text: str
    ink: str  # a token of the theme, or a hexadecimal colour
    dashes: tuple[float, ...] = ()
    symbol: Symbol | None = None  # drawn on the line, or alone
    line: bool = True  # whether it has a line
    short: str = ""  # shorter text for less space
    value: float | None = None  # vertical position in a legend at the ends of lines


@dataclass(frozen=True, eq=False)
class Chart:
    """A figure between two axes."""

    title: str
    x: Axis
    y: Axis
    marks: tuple[Mark, ...] = ()  # drawn one above the other in this order
    legend: tuple[Key, ...] = ()  # not drawn with fewer than two rows
    notes: tuple[Note, ...] = ()
    subtitle: str = ""  # a few words beside the title: "15 components, converged"
    table: PlotTable | None = None  # the drawn numbers; by default a row for each point
    # "ends": at the right, each row at the height of its line's end
    legend_at: Literal["right", "above", "ends"] = "right"

    @cached_property
    def navigable(self) -> tuple[int, ...]:
        """Indices of the marks that respond to pointing."""
        return tuple(number for number, mark in enumerate(self.marks) if mark.pointable and len(mark.across))

    def data(self) -> PlotTable:
        """Return the drawn numbers as a table."""
        if self.table is not None:
            return self.table
        marks = [self.marks[number] for number in self.navigable]
        x, y = self.x.label or "x", self.y.label or "y"
        return PlotTable.of(
            {
                "series": [mark.title for mark in marks for _ in mark.across],
                x: np.concatenate([mark.across for mark in marks]) if marks else [],
                y if y != x else f"{y}, up": np.concatenate([mark.up for mark in marks]) if marks else [],
            }
        )

    def describe(self, mark: int, index: int) -> str:
        """Describe a point: its series, and its values with the names of the axes."""
        series = self.marks[mark]
        if series.text_of is not None:
            return series.text_of(index)
        x, y = _value(self.x, float(series.across[index])), _value(self.y, float(series.up[index]))
        text = ", ".join(filter(None, (x, y)))
        if isinstance(series, Line) and series.low is not None and series.high is not None:
            low, high = float(series.low[index]), float(series.high[index])
            if np.isfinite(low) and np.isfinite(high):
                text += f" ({_number(low)} to {_number(high)})"
        return f"{series.title}: {text}" if series.title else text


def _value(axis: Axis, value: float) -> str:
    if axis.names:
        index = round(value)
        return axis.names[index] if 0 <= index < len(axis.names) else ""
    return f"{axis.label} {_number(value)}".strip()


def _number(value: float) -> str:
    if not np.isfinite(value):
        return "not known"
    text = f"{value:,.0f}" if abs(value) >= 1000 or value == round(value) else f"{value:.3g}"
    return with_minus(text)


Column = Sequence[Any] | NDArray[Any]


@dataclass(frozen=True, eq=False)
class PlotTable:
    """The numbers of a figure, one row per mark."""

    columns: tuple[str, ...]  # names, with the unit where there is one
    # returns the rows as Python numbers; NaN for unknown values
    source: Callable[[], Iterable[tuple[Any, ...]]]

    @classmethod
    def of(cls, columns: Mapping[str, Column]) -> Self:
        """Make a table from columns of equal length."""
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"columns of different lengths: {lengths}")
        return cls(tuple(columns), partial(_rows, tuple(columns.values())))

    @classmethod
    def of_cells(cls, axes: Mapping[str, Column], values: Mapping[str, NDArray[Any] | None]) -> Self:
        """Make a table with one row per cell of matrices that share their axes.

        `axes`: name and positions of each axis. `values`: columns of the axes' shape, or broadcast to it;
        None omits a column.
        """
        shape = tuple(map(len, axes.values()))
        known = {name: np.broadcast_to(part, shape) for name, part in values.items() if part is not None}
        return cls((*axes, *known), partial(_cells, tuple(axes.values()), tuple(known.values())))

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Return the rows."""
        return iter(self.source())


def check_lengths(number: int, noun: str, *columns: Sized) -> None:
    """Raise an error unless every column has `number` values; `noun`: noun of the rows, "annotators"."""
    if any(len(column) != number for column in columns):
        raise ValueError(f"arrays of other lengths than the number of {noun}: {number}")


def _plain(column: Column) -> Sequence[Any]:
    return column.tolist() if isinstance(column, np.ndarray) else column


def _rows(columns: Sequence[Column]) -> Iterator[tuple[Any, ...]]:
    return zip(*map(_plain, columns), strict=True)


def _cells(axes: Sequence[Column], values: Sequence[NDArray[Any]]) -> Iterator[tuple[Any, ...]]:
    # In slabs, to limit the number of Python objects in memory.
    flat = [chain.from_iterable(slab.ravel().tolist() for slab in part) for part in values]
    for position, *cell in zip(product(*map(_plain, axes)), *flat, strict=True):
        yield (*position, *cell)
