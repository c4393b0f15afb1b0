"""Descriptions of figures: axes, marks, legend and the table of numbers, without anything that draws.

A description is made once, by functions that need neither Qt nor PIL. `raterscope.figures.drawing` draws it
on a canvas: that of the window, pixels for a report, or SVG.
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

Numbers = NDArray[np.number[Any]]
Scale = Literal["linear", "root", "log", "log1p"]


@dataclass(frozen=True, eq=False)
class Axis:
    """An axis of a chart.

    Attributes
    ----------
    label : str
        Quantity, with the unit.
    low, high : float, optional
        Ends; those that are not given follow from the marks.
    scale : {"linear", "root", "log", "log1p"}
        "root" is the square root with the sign of the value, "log1p" the logarithm of 1 + value, for counts
        that may be 0.
    padding : float
        Room beyond both ends, as a share of the range.
    integral : bool
        Whether there is nothing between 1 and 2, as with iterations.
    names : tuple of str
        Names at 0, 1, 2 ... instead of numbers.
    ticks : sequence of (float, str), optional
        Values and their texts; by default round numbers, as many as there is room for.
    falling : bool
        Whether values fall from left to right, or upwards.
    hidden : bool
        Whether neither its ticks nor its label are drawn.
    """

    label: str
    low: float | None = None
    high: float | None = None
    scale: Scale = "linear"
    padding: float = 0.03
    integral: bool = False
    names: tuple[str, ...] = ()
    ticks: Sequence[tuple[float, str]] | None = None
    falling: bool = False
    hidden: bool = False

    def forward(self, values: Numbers | Sequence[float] | float) -> NDArray[np.float64]:
        """Convert values to units of the scale; NaN where they have no logarithm."""
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
    """Something drawn from data.

    Attributes
    ----------
    title : str
        What it is the data of: "OEM". Read aloud, and part of a point's text.
    words : callable, optional
        ``words(index)`` describes a point; by default the title and both values.
    pointable : bool
        Whether its points can be pointed at and walked with the arrow keys.
    """

    title: str = ""
    words: Callable[[int], str] | None = None
    pointable: bool = True

    @property
    def across(self) -> Numbers:
        """Values on the horizontal axis of its points."""
        raise NotImplementedError

    @property
    def up(self) -> Numbers:
        """Values on the vertical axis of its points."""
        raise NotImplementedError

    def extent(self) -> tuple[Sequence[Numbers], Sequence[Numbers]]:
        """Return all values that the axes have to hold, across and up."""
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

    Attributes
    ----------
    x, y : (P,) float
        NaN interrupts the line.
    ink : str
        A token of the theme ("accent"), or a hexadecimal colour.
    width : float
        Pixels.
    dashes : tuple of float
        Lengths of strokes and gaps in widths of the line; empty for an unbroken line.
    dot : float or (P,) float
        Diameter of the symbols at its points, pixels; 0 for none.
    symbol : Symbol
        At its points.
    low, high : (P,) float, optional
        Ends of an interval about it.
    interval : {"band", "bars"}
        Style of the interval.
    stepped : bool
        Whether a value holds until the next point.
    """

    ink: str = "accent"
    width: float = 1.8
    dashes: tuple[float, ...] = ()
    dot: float | Numbers = 0.0
    symbol: Symbol = "disc"
    low: Numbers | None = None
    high: Numbers | None = None
    interval: Literal["band", "bars"] = "band"
    stepped: bool = False
    opacity: float = 1.0

    def extent(self) -> tuple[Sequence[Numbers], Sequence[Numbers]]:
        """Return all values, also of the interval."""
        return (self.x,), [self.y, *(end for end in (self.low, self.high) if end is not None)]


@dataclass(frozen=True, eq=False, kw_only=True)
class Points(_Placed):
    """Points of one shape and colour.

    Attributes
    ----------
    x, y : (P,) float
    size : float or (P,) float
        Diameter, pixels.
    width : float
        Of the lines of a hollow symbol, a cross or a tick.
    filled : bool
        Else the symbol is hollow.
    """

    ink: str = "accent"
    symbol: Symbol = "disc"
    size: float | Numbers = 7.0
    opacity: float = 1.0
    width: float = 1.6
    filled: bool = True


@dataclass(frozen=True, eq=False, kw_only=True)
class Segments(Mark):
    """Straight pieces of lines, such as whiskers, and rules across a plot. They are not pointed at.

    Attributes
    ----------
    x, y : (S, 2) float
        Both ends of each; an infinite one is at the edge of the plot.
    stretch : bool
        Whether the axes have to hold it.
    """

    x: Numbers
    y: Numbers
    ink: str = "line"
    width: float = 1.0
    dashes: tuple[float, ...] = ()
    stretch: bool = True
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
    """Rectangles with sides along the axes: bars, boxes, shares, cells.

    Attributes
    ----------
    left, right, bottom, top : (R,) float
        Edges.
    inks : sequence of str
        Of each one, or a single one for all.
    filled : bool
        Else they have an edge alone.
    width : float
        Of that edge, pixels.
    labels : sequence of str
        Texts in their middles, where they have room; shorter ones for less room in further lines.
    gap : float
        Between one and the next, pixels.
    """

    left: Numbers
    right: Numbers
    bottom: Numbers
    top: Numbers
    inks: Sequence[str] = ("accent",)
    filled: bool = True
    width: float = 1.4
    labels: Sequence[str] = ()
    opacity: float = 1.0
    gap: float = 0.0

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
    """A text in the plot.

    Attributes
    ----------
    x, y : float
        Values on both axes; an infinite one is at the edge of the plot.
    anchor : {"start", "middle", "end"}
    shift : (float, float)
        To the right and downwards from there, pixels.
    """

    x: float
    y: float
    words: str
    ink: str = "second"
    anchor: Literal["start", "middle", "end"] = "start"
    shift: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Key:
    """A row of a legend.

    Attributes
    ----------
    ink : str
        A token of the theme, or a hexadecimal colour.
    symbol : Symbol, optional
        Drawn on the line, or alone.
    line : bool
        Whether it has a line.
    short : str
        Words where there is less room.
    value : float, optional
        Of the vertical axis: where the row stands in a legend at the ends of lines.
    """

    words: str
    ink: str
    dashes: tuple[float, ...] = ()
    symbol: Symbol | None = None
    line: bool = True
    short: str = ""
    value: float | None = None


@dataclass(frozen=True, eq=False)
class Chart:
    """A figure between two axes.

    Attributes
    ----------
    marks : tuple of Mark
        Drawn one above the other in this order.
    legend : tuple of Key
        With one row or none there is nothing to distinguish, and no space is used.
    aside : str
        A few words beside the title: "15 components, converged".
    table : PlotTable, optional
        The numbers that are drawn; by default a row for each point.
    legend_at : {"right", "above", "ends"}
        "ends" is at the right, each row as high as its value.
    """

    title: str
    x: Axis
    y: Axis
    marks: tuple[Mark, ...] = ()
    legend: tuple[Key, ...] = ()
    notes: tuple[Note, ...] = ()
    aside: str = ""
    table: PlotTable | None = None
    legend_at: Literal["right", "above", "ends"] = "right"

    @cached_property
    def walked(self) -> tuple[int, ...]:
        """Numbers of the marks that can be pointed at."""
        return tuple(number for number, mark in enumerate(self.marks) if mark.pointable and len(mark.across))

    def data(self) -> PlotTable:
        """Return the numbers that are drawn."""
        if self.table is not None:
            return self.table
        marks = [self.marks[number] for number in self.walked]
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
        if series.words is not None:
            return series.words(index)
        x, y = _value(self.x, float(series.across[index])), _value(self.y, float(series.up[index]))
        words = ", ".join(filter(None, (x, y)))
        if isinstance(series, Line) and series.low is not None and series.high is not None:
            low, high = float(series.low[index]), float(series.high[index])
            if np.isfinite(low) and np.isfinite(high):
                words += f" ({_number(low)} to {_number(high)})"
        return f"{series.title}: {words}" if series.title else words


def _value(axis: Axis, value: float) -> str:
    if axis.names:
        index = round(value)
        return axis.names[index] if 0 <= index < len(axis.names) else ""
    return f"{axis.label} {_number(value)}".strip()


def _number(value: float) -> str:
    if not np.isfinite(value):
        return "not known"
    text = f"{value:,.0f}" if abs(value) >= 1000 or value == round(value) else f"{value:.3g}"
    return text.replace("-", "\N{MINUS SIGN}")


Column = Sequence[Any] | NDArray[Any]


@dataclass(frozen=True, eq=False)
class PlotTable:
    """The numbers behind a figure, a row for each of its marks.

    Attributes
    ----------
    columns : tuple of str
        Names, with the unit where there is one.
    source : callable
        Gives the rows, in Python's own numbers; NaN where something is not known.
    """

    columns: tuple[str, ...]
    source: Callable[[], Iterable[tuple[Any, ...]]]

    @classmethod
    def of(cls, columns: Mapping[str, Column]) -> Self:
        """Make a table of columns, all equally long."""
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"columns of different lengths: {lengths}")
        return cls(tuple(columns), partial(_rows, tuple(columns.values())))

    @classmethod
    def of_cells(cls, axes: Mapping[str, Column], values: Mapping[str, NDArray[Any] | None]) -> Self:
        """Make a row of every cell of matrices that share their axes.

        Parameters
        ----------
        axes : mapping of str to sequence
            Name and positions of each axis.
        values : mapping of str to array or None
            Of the axes' shape, or to be broadcast to it; None leaves a column out.
        """
        shape = tuple(map(len, axes.values()))
        known = {name: np.broadcast_to(part, shape) for name, part in values.items() if part is not None}
        return cls((*axes, *known), partial(_cells, tuple(axes.values()), tuple(known.values())))

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Return the rows."""
        return iter(self.source())


def check_lengths(number: int, noun: str, *columns: Sized) -> None:
    """Raise an error unless every column has a value for each of a number of things: "annotators"."""
    if any(len(column) != number for column in columns):
        raise ValueError(f"arrays of other lengths than the number of {noun}: {number}")


def _plain(column: Column) -> Sequence[Any]:
    return column.tolist() if isinstance(column, np.ndarray) else column


def _rows(columns: Sequence[Column]) -> Iterator[tuple[Any, ...]]:
    return zip(*map(_plain, columns), strict=True)


def _cells(axes: Sequence[Column], values: Sequence[NDArray[Any]]) -> Iterator[tuple[Any, ...]]:
    # One slab after the other: there may be more cells than should be Python's at once.
    flat = [chain.from_iterable(slab.ravel().tolist() for slab in part) for part in values]
    for position, *cell in zip(product(*map(_plain, axes)), *flat, strict=True):
        yield (*position, *cell)
