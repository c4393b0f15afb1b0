"""The numbers behind a figure, in columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import partial
from itertools import chain, product
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

__all__ = ["Column", "PlotTable", "check_lengths"]

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
            What each axis is called, and its places.
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
