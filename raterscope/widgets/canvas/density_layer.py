"""How close to each other clicks lie, where they are too many to be told apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter

from raterscope.widgets.canvas.marks import ClickMarks
from raterscope.widgets.canvas.pictures import draw_part
from raterscope.widgets.canvas.viewport import Rect
from raterscope.widgets.colour_maps import VIRIDIS

__all__ = ["BINS", "FINE_BINS", "DensityLayer"]

BINS = 256
"""Along the longer side of the image."""

FINE_BINS = (256, 1024)

LARGEST_BIN = 6.0
"""Pixels of the screen above which finer bins are drawn, where there are any."""

SMOOTHED = 1.2
"""Standard deviation of the smoothing, bins."""


@dataclass(frozen=True, eq=False)
class _Level:
    side: float
    picture: QImage
    box: Rect
    highest: float


class DensityLayer:
    """How many clicks there are a unit of area, smoothed, in viridis; nothing where there are none."""

    def __init__(self) -> None:
        self._levels: list[_Level] = []

    def set_clicks(
        self, clicks: ClickMarks, shown: NDArray[np.bool_], extent: Rect, bins: Sequence[int] = (BINS,)
    ) -> None:
        """Count the clicks that are shown, in several finenesses, the coarsest first."""
        self._levels = []
        x, y = np.asarray(clicks.x)[shown], np.asarray(clicks.y)[shown]
        for many in bins:
            level = _counted(x, y, extent, many)
            if level is None:
                return
            self._levels.append(level)

    def highest_at(self, scale: float) -> float:
        """Give the highest density as it is drawn at a scale; 0 without clicks."""
        return self._at(scale).highest if self._levels else 0.0

    def paint(self, painter: QPainter, scale: float, rect: QRectF) -> None:
        """Paint what lies in `rect`."""
        if self._levels:
            level = self._at(scale)
            draw_part(painter, level.picture, level.box, scale, rect, smooth=True)

    def _at(self, scale: float) -> _Level:
        fine = (level for level in self._levels if level.side * scale <= LARGEST_BIN)
        return next(fine, self._levels[-1])


def _counted(x: NDArray[np.floating], y: NDArray[np.floating], extent: Rect, bins: int) -> _Level | None:
    left, top, right, bottom = extent
    side = max(right - left, bottom - top) / bins
    columns = max(1, int(np.ceil((right - left) / side)))
    rows = max(1, int(np.ceil((bottom - top) / side)))
    inside = (x >= left) & (x < left + columns * side) & (y >= top) & (y < top + rows * side)
    if not inside.any():
        return None
    from scipy.ndimage import gaussian_filter

    column, row = ((x[inside] - left) / side).astype(np.int32), ((y[inside] - top) / side).astype(np.int32)
    counts = np.bincount(np.minimum(row, rows - 1) * columns + np.minimum(column, columns - 1))
    counts = np.pad(counts, (0, rows * columns - len(counts))).reshape(rows, columns).astype(np.float32)
    density = gaussian_filter(counts, SMOOTHED)
    highest = float(density.max())
    picture = _table()[np.sqrt(np.maximum(density, 0) * (255**2 / highest)).astype(np.uint8)]
    kind = QImage.Format.Format_ARGB32_Premultiplied
    image = QImage(picture.data, columns, rows, 4 * columns, kind).copy()
    return _Level(side, image, (left, top, left + columns * side, top + rows * side), highest / side**2)


@cache
def _table() -> NDArray[np.uint32]:
    """Give premultiplied colours by the root of the share of the highest density; they fade to nothing."""
    root = np.linspace(0, 1, 256)[:, None]
    alpha = np.clip(6 * root**2, 0, 0.86)
    colours = np.empty((256, 4), dtype=np.uint8)
    colours[:, :3] = VIRIDIS[:, ::-1] * alpha
    colours[:, 3:] = 255 * alpha
    return colours.view(np.uint32)[:, 0]
