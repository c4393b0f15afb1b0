"""The image itself: in memory, by tiles, or the frame where it should be."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QImage, QPainter, QPen

from raterscope.widgets import theme
from raterscope.widgets.canvas.tile_store import TileSource
from raterscope.widgets.canvas.tiled_picture import TiledPicture
from raterscope.widgets.canvas.viewport import Rect, Viewport
from raterscope.widgets.canvas.whole_picture import WholePicture

__all__ = ["ImageLayer"]

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
        """Whether the image is read by tiles."""
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
        """Say what is in sight, so that it is read."""
        if isinstance(self._picture, TiledPicture):
            self._enlarged = self._enlargement(viewport.scale) * ratio
            self._picture.look(viewport.visible, self._enlarged)

    def thumbnail(self, width: int, height: int) -> QImage | None:
        """Give the whole image, small; None where there is none, or not yet."""
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
            shown = (self._picture.shown_by(key, self._enlarged) for key in keys)
            self.arrived.emit([part for part in shown if part is not None])
