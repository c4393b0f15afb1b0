"""Marks on an image (clicks, detections) and an index to find the nearest."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF

__all__ = [
    "LAYERS",
    "SPOT_STATES",
    "ClickMarks",
    "DetectionMarks",
    "GridIndex",
]


LAYERS = ("clicks", "ellipses", "detections", "truth", "density")

SPOT_STATES = ("detected", "rejected", "disputed", "accepted", "turned down", "added", "undecided")
"""The fusion's state (the first three), the expert's decision, or neither."""


@dataclass(frozen=True, eq=False)
class ClickMarks:
    """N clicks of some annotators.

    Attributes
    ----------
    x, y : (N,) float
        Place in the image's units.
    annotator : (N,) int
        Index that gives colour and symbol.
    inlier : (N,) float, optional
        Probability that the click is no outlier. Outliers are drawn as thin strokes.
    """

    x: NDArray[np.floating]
    y: NDArray[np.floating]
    annotator: NDArray[np.integer]
    inlier: NDArray[np.floating] | None = None

    @classmethod
    def none(cls) -> ClickMarks:
        """No click."""
        return cls(np.empty(0), np.empty(0), np.empty(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.x)


@dataclass(frozen=True, eq=False)
class DetectionMarks:
    """M spots.

    Attributes
    ----------
    x, y : (M,) float
    covariance : (M, 2, 2) float
        Square units of the image.
    posterior : (M,) float
        Probability of a structure; NaN where there is none.
    state : tuple of M of `SPOT_STATES`
    number : (M,) int
        The number by which people call the spot.
    votes : (M,) int, optional
        Annotators who clicked.
    annotators : int
        Annotators who looked.
    """

    x: NDArray[np.floating]
    y: NDArray[np.floating]
    covariance: NDArray[np.floating]
    posterior: NDArray[np.floating]
    state: tuple[str, ...]
    number: NDArray[np.integer]
    votes: NDArray[np.integer] | None = None
    annotators: int = 0
    _known: frozenset[str] = field(default=frozenset(SPOT_STATES), init=False, repr=False)

    def __post_init__(self) -> None:
        unknown = set(self.state) - self._known
        if unknown:
            raise ValueError(f"spot state {sorted(unknown)[0]!r}; expected one of {', '.join(SPOT_STATES)}")
        if not len(self.x) == len(self.y) == len(self.covariance) == len(self.state) == len(self.number):
            raise ValueError("positions, covariances, states and numbers of spots differ in length")

    @classmethod
    def none(cls) -> DetectionMarks:
        """No spot."""
        empty = np.empty(0)
        return cls(empty, empty, np.empty((0, 2, 2)), empty, (), np.empty(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.x)

    def words(self, index: int) -> tuple[str, str]:
        """Describe a spot in a title and a line: "spot 14  0.46", "22 of 51 clicked"."""
        title = f"spot {self.number[index]}"
        if self.state[index] != "added" and np.isfinite(self.posterior[index]):
            title += f"  {self.posterior[index]:.2f}"
        decided = {"accepted": "accepted", "turned down": "rejected by you", "added": "added by you"}
        word = decided.get(self.state[index], self.state[index])
        if self.votes is None or not self.annotators:
            return title, word
        return title, f"{self.votes[index]} of {self.annotators} clicked, {word}"


CELLS = 128


class GridIndex:
    """Points sorted into the cells of a grid.

    Parameters
    ----------
    x, y : (N,) float
    """

    def __init__(self, x: NDArray[np.floating], y: NDArray[np.floating]) -> None:
        self._x, self._y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        if not len(self._x):
            return
        self._left, self._top = float(self._x.min()), float(self._y.min())
        self._across = max(float(np.ptp(self._x)), 1e-9) / CELLS
        self._down = max(float(np.ptp(self._y)), 1e-9) / CELLS
        column = np.minimum((self._x - self._left) / self._across, CELLS - 1).astype(np.uint16)
        row = np.minimum((self._y - self._top) / self._down, CELLS - 1).astype(np.uint16)
        cell = row * CELLS + column  # two bytes, which numpy sorts by their digits
        self._order = np.argsort(cell, kind="stable")
        counts = np.bincount(cell, minlength=CELLS * CELLS)
        self._start = np.concatenate([[0], np.cumsum(counts)])
        self._before = np.zeros((CELLS + 1, CELLS + 1), dtype=np.int64)
        self._before[1:, 1:] = counts.reshape(CELLS, CELLS).cumsum(axis=0).cumsum(axis=1)

    def count(self, rect: QRectF) -> int:
        """Count the points in the cells that a rectangle touches: an upper bound of those in it."""
        if not len(self._x):
            return 0
        first_column, last_column, first_row, last_row = self._cells(rect)
        last_column, last_row, before = last_column + 1, last_row + 1, self._before
        outside = before[first_row, last_column] + before[last_row, first_column]
        return int(before[last_row, last_column] - outside + before[first_row, first_column])

    def within(self, rect: QRectF) -> NDArray[np.int64]:
        """Return the rows of the points in a rectangle, in their own order."""
        if not len(self._x):
            return np.empty(0, dtype=np.int64)
        first_column, last_column, first_row, last_row = self._cells(rect)
        spans = [
            self._order[self._start[row * CELLS + first_column] : self._start[row * CELLS + last_column + 1]]
            for row in range(first_row, last_row + 1)
        ]
        rows = np.concatenate(spans)
        x, y = self._x[rows], self._y[rows]
        inside = (x >= rect.left()) & (x <= rect.right()) & (y >= rect.top()) & (y <= rect.bottom())
        return np.sort(rows[inside])

    def _cells(self, rect: QRectF) -> tuple[int, int, int, int]:
        """Return the first and last column and row of cells that a rectangle touches."""
        return (
            self._clip((rect.left() - self._left) / self._across),
            self._clip((rect.right() - self._left) / self._across),
            self._clip((rect.top() - self._top) / self._down),
            self._clip((rect.bottom() - self._top) / self._down),
        )

    @staticmethod
    def _clip(cell: float) -> int:
        return int(min(max(cell, 0), CELLS - 1))
