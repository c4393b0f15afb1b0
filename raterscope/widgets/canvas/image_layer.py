"""The image under all layers, painted whole or in tiles."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QImage, QPainter, QPen

from raterscope.widgets import theme
from raterscope.widgets.canvas.tiles import Key, TileSource, TileStore, draw_part, level_for, to_picture
from raterscope.widgets.canvas.viewport import Rect, Viewport

__all__ = [
    "ImageLayer",
    "TiledPicture",
    "WholePicture",
]


SMALLEST_LEVEL = 256


class WholePicture:
    """A picture all of which is there.

    Parameters
    ----------
    array : (H, W) or (H, W, 3) uint8
    extent : (left, top, right, bottom)
        What it covers, in the units in which all places here are.
    """

    def __init__(self, array: NDArray[np.uint8], extent: Rect) -> None:
        self._levels = [to_picture(array)]
        self._extent = extent

    @property
    def width(self) -> int:
        """Pixels from left to right."""
        return self._levels[0].width()

    def thumbnail(self, width: int, height: int) -> QImage:
        """Return the whole image, reduced."""
        smooth = Qt.TransformationMode.SmoothTransformation
        level = self._level(min(width / self.width, 1.0))
        return self._levels[level].scaled(width, height, Qt.AspectRatioMode.IgnoreAspectRatio, smooth)

    def paint(self, painter: QPainter, scale: float, rect: QRectF, enlarged: float, *, smooth: bool) -> None:
        """Paint what lies in `rect`, `scale` units of the painter for one of the image's."""
        draw_part(painter, self._levels[self._level(enlarged)], self._extent, scale, rect, smooth=smooth)

    def _level(self, enlarged: float) -> int:
        level = level_for(enlarged)
        while len(self._levels) <= level and min(self._levels[-1].width(), self._levels[-1].height()) > (
            SMALLEST_LEVEL
        ):
            last = self._levels[-1]
            self._levels.append(
                last.scaled(
                    max(1, last.width() // 2),
                    max(1, last.height() // 2),
                    Qt.AspectRatioMode.IgnoreAspectRatio,
                    Qt.TransformationMode.SmoothTransformation,
                )
            )
        return min(level, len(self._levels) - 1)


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
        """Return the whole image, reduced; None until it is loaded."""
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
        """Return the picture of a tile at a scale; None where finer ones are drawn."""
        if key[0] < self._level(enlarged):
            return None
        left, top, right, bottom = self._box(key)
        return QRectF(left, top, right - left, bottom - top)

    def paint(self, painter: QPainter, scale: float, rect: QRectF, enlarged: float, *, smooth: bool) -> None:
        """Paint what lies in `rect`, `scale` units of the painter for one of the image's."""
        level = self._level(enlarged)
        seen = (rect.left(), rect.top(), rect.right(), rect.bottom())
        parts: dict[Key, QRectF] = {}
        for key in self._covering(level, seen, 0):
            left, top, right, bottom = self._box(key)
            part = QRectF(left, top, right - left, bottom - top).intersected(rect)
            stands = self._standing_for(key)
            if stands is not None:
                parts[stands] = parts[stands].united(part) if stands in parts else part
        for key in sorted(parts, reverse=True):  # finer ones on top
            tile = self.store.get(key)
            if tile is not None:
                draw_part(painter, tile, self._box(key), scale, parts[key], smooth=smooth)

    def _level(self, enlarged: float) -> int:
        return min(level_for(enlarged), self._last)

    def _standing_for(self, key: Key) -> Key | None:
        """Find the tile itself, or the finest one above it that is there."""
        level, row, column = key
        above = ((level + up, row >> up, column >> up) for up in range(self._last - level + 1))
        return next((coarser for coarser in above if self.store.get(coarser) is not None), None)

    def _units(self, level: int) -> tuple[float, float]:
        """Return the units from one pixel of a level to the next, across and down."""
        left, top, right, bottom = self._extent
        width, height = self.store.levels[level]
        return (right - left) / width, (bottom - top) / height

    def _box(self, key: Key) -> Rect:
        """Return the rectangle of a tile."""
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


SQUARE_PIXELS_FROM = 8.0
"""Above this enlargement a pixel is shown as the square it is."""

EMPTY = "#16191d"


class ImageLayer(QObject):
    """One image on its extent, or the frame of the extent where there is no image.

    Signals
    -------
    arrived(list of QRectF)
        Parts of an image by tiles, in its units, that are shown better from now on.
    refused(str)
        Why a tile cannot be read.
    """

    arrived = Signal(list)
    refused = Signal(str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._picture: WholePicture | TiledPicture | None = None
        self._enlarged = 1.0
        self.extent: Rect = (0.0, 0.0, 1.0, 1.0)

    @property
    def by_tiles(self) -> bool:
        """True if the image is read by tiles."""
        return isinstance(self._picture, TiledPicture)

    def set_image(self, image: NDArray[np.uint8] | TileSource | None, extent: Rect) -> None:
        """Show another image."""
        if isinstance(self._picture, TiledPicture):
            self._picture.close()
        self.extent = extent
        if image is None:
            self._picture = None
        elif isinstance(image, np.ndarray):
            self._picture = WholePicture(image, extent)
        else:
            self._picture = TiledPicture(image, extent, self)
            self._picture.store.arrived.connect(self._on_arrived)
            self._picture.store.refused.connect(self.refused)

    def look(self, viewport: Viewport, ratio: float) -> None:
        """Set the visible part, so that it is read."""
        if isinstance(self._picture, TiledPicture):
            self._enlarged = self._enlargement(viewport.scale) * ratio
            self._picture.look(viewport.visible, self._enlarged)

    def thumbnail(self, width: int, height: int) -> QImage | None:
        """Return the whole image, reduced; None where it is not loaded."""
        return None if self._picture is None else self._picture.thumbnail(width, height)

    def paint(self, painter: QPainter, scale: float, rect: QRectF, *, quickly: bool = False) -> None:
        """Paint what lies in `rect`; quickly, pixels are not smoothed."""
        left, top, right, bottom = self.extent
        whole = QRectF(left * scale, top * scale, (right - left) * scale, (bottom - top) * scale)
        if self._picture is None or self.by_tiles:
            seen = (rect.left() * scale, rect.top() * scale, rect.width() * scale, rect.height() * scale)
            painter.fillRect(whole.intersected(QRectF(*seen)), QColor(EMPTY))
        if self._picture is None:
            painter.setPen(QPen(QColor(theme.DARK.line), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(whole)
            return
        enlarged = self._enlargement(scale)
        smooth = enlarged < SQUARE_PIXELS_FROM and not quickly
        ratio = painter.transform().m11() * painter.device().devicePixelRatioF()
        self._picture.paint(painter, scale, rect, enlarged * ratio, smooth=smooth)

    def _enlargement(self, scale: float) -> float:
        width = self._picture.width if self._picture is not None else 1
        return (self.extent[2] - self.extent[0]) * scale / width

    def _on_arrived(self, keys: list[tuple[int, int, int]]) -> None:
        if isinstance(self._picture, TiledPicture) and self.sender() is self._picture.store:
            visible = (self._picture.shown_by(key, self._enlarged) for key in keys)
            self.arrived.emit([part for part in visible if part is not None])
