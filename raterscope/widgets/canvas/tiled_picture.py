"""A large image drawn from the tiles that are there; coarser ones stand for those still being read."""

from __future__ import annotations

import math

from PySide6.QtCore import QObject, QRectF, Qt
from PySide6.QtGui import QImage, QPainter

from raterscope.widgets.canvas.pictures import draw_part, level_for
from raterscope.widgets.canvas.tile_store import Key, TileSource, TileStore
from raterscope.widgets.canvas.viewport import Rect

__all__ = ["TiledPicture"]


class TiledPicture:
    """A picture of which only the tiles about what is in sight are in memory.

    Parameters
    ----------
    source : TileSource
    extent : (left, top, right, bottom)
        What it covers, in the units in which all places here are.
    parent : QObject
        Of the store.

    Attributes
    ----------
    store : TileStore
        Tells by signals of tiles that came, and why one cannot be read.
    """

    def __init__(self, source: TileSource, extent: Rect, parent: QObject) -> None:
        self.store = TileStore(source, parent)
        self._extent = extent
        self._last = len(self.store.levels) - 1

    @property
    def width(self) -> int:
        """Pixels from left to right."""
        return self.store.levels[0][0]

    def close(self) -> None:
        """Read nothing more."""
        self.store.close()
        self.store.deleteLater()

    def thumbnail(self, width: int, height: int) -> QImage | None:
        """Give the whole image, small; None until it is there."""
        whole = self.store.get((self._last, 0, 0))
        if whole is None:
            return None
        smooth = Qt.TransformationMode.SmoothTransformation
        return whole.scaled(width, height, Qt.AspectRatioMode.IgnoreAspectRatio, smooth)

    def look(self, seen: Rect, enlarged: float) -> None:
        """Have read what is in sight and what lies about it.

        Parameters
        ----------
        seen : (left, top, right, bottom)
        enlarged : float
            Pixels of the screen a pixel of the image.
        """
        level = self._level(enlarged)
        keys = [(self._last, 0, 0)]
        if level + 2 < self._last:
            keys += self._covering(level + 2, seen, 1)  # soon there, and what is seen when one zooms out
        keys += self._covering(level, seen, 0)
        keys += self._covering(level, seen, 1)
        self.store.want(list(dict.fromkeys(keys)))

    def shown_by(self, key: Key, enlarged: float) -> QRectF | None:
        """Give what a tile shows at a scale; None where finer ones are drawn."""
        if key[0] < self._level(enlarged):
            return None
        left, top, right, bottom = self._box(key)
        return QRectF(left, top, right - left, bottom - top)

    def paint(self, painter: QPainter, scale: float, rect: QRectF, enlarged: float, *, smooth: bool) -> None:
        """Paint what lies in `rect`, `scale` units of the painter for one of the image's."""
        level = self._level(enlarged)
        seen = (rect.left(), rect.top(), rect.right(), rect.bottom())
        found: dict[Key, QRectF] = {}
        for key in self._covering(level, seen, 0):
            left, top, right, bottom = self._box(key)
            part = QRectF(left, top, right - left, bottom - top).intersected(rect)
            stands = self._standing_for(key)
            if stands is not None:
                found[stands] = found[stands].united(part) if stands in found else part
        for key in sorted(found, reverse=True):  # finer ones on top
            tile = self.store.get(key)
            if tile is not None:
                draw_part(painter, tile, self._box(key), scale, found[key], smooth=smooth)

    def _level(self, enlarged: float) -> int:
        return min(level_for(enlarged), self._last)

    def _standing_for(self, key: Key) -> Key | None:
        """Find the tile itself, or the finest one above it that is there."""
        level, row, column = key
        above = ((level + up, row >> up, column >> up) for up in range(self._last - level + 1))
        return next((one for one in above if self.store.get(one) is not None), None)

    def _units(self, level: int) -> tuple[float, float]:
        """Give the units from one pixel of a level to the next, across and down."""
        left, top, right, bottom = self._extent
        width, height = self.store.levels[level]
        return (right - left) / width, (bottom - top) / height

    def _box(self, key: Key) -> Rect:
        """Give what a tile covers."""
        level, row, column = key
        left, top, right, bottom = self._extent
        across, down = (self.store.side * unit for unit in self._units(level))
        return (
            left + column * across, top + row * down,
            min(left + (column + 1) * across, right), min(top + (row + 1) * down, bottom),
        )  # fmt: skip

    def _covering(self, level: int, seen: Rect, ring: int) -> list[Key]:
        """Find the tiles of a level in sight, and some rings about them, from the middle outwards."""
        left, top, _, _ = self._extent
        width, height = self.store.levels[level]
        columns, rows = math.ceil(width / self.store.side), math.ceil(height / self.store.side)
        across, down = (self.store.side * unit for unit in self._units(level))
        first_column, last_column = (seen[0] - left) / across, (seen[2] - left) / across
        first_row, last_row = (seen[1] - top) / down, (seen[3] - top) / down
        keys = [
            (level, row, column)
            for row in range(max(math.floor(first_row) - ring, 0), min(math.ceil(last_row) + ring, rows))
            for column in range(
                max(math.floor(first_column) - ring, 0), min(math.ceil(last_column) + ring, columns)
            )
        ]
        middle_row, middle_column = (first_row + last_row - 1) / 2, (first_column + last_column - 1) / 2
        return sorted(keys, key=lambda key: abs(key[1] - middle_row) + abs(key[2] - middle_column))
