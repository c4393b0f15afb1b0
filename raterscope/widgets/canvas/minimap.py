"""The whole image, small, with a frame about what is in sight."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QImage, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from raterscope.widgets import theme
from raterscope.widgets.canvas.viewport import Rect, Viewport
from raterscope.widgets.chips import paint_chip_ground

__all__ = ["Minimap"]

LONGEST = 128
EDGE = 8
FROM_CORNER = 12
"""Pixels to the corner of the widget that it lies in."""


class Minimap(QWidget):
    """Press or drag to look elsewhere.

    Signals
    -------
    place_chosen : (float, float)
        The place that is to come to the middle.
    """

    place_chosen = Signal(float, float)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._picture: QImage | None = None
        self._extent: Rect = (0.0, 0.0, 1.0, 1.0)
        self._seen: Rect = self._extent
        self.setAccessibleName("Overview of the image")
        self.setToolTip("Visible part of the image. Click or drag to move it")
        self.setCursor(Qt.CursorShape.ArrowCursor)

    def room(self, extent: Rect) -> tuple[int, int]:
        """Give the size of the picture for an extent, without the edge."""
        width, height = extent[2] - extent[0], extent[3] - extent[1]
        factor = LONGEST / max(width, height)
        return max(8, round(width * factor)), max(8, round(height * factor))

    @property
    def has_picture(self) -> bool:
        """Whether the image is there."""
        return self._picture is not None

    def set_picture(self, picture: QImage | None, extent: Rect) -> None:
        """Show another image."""
        self._picture, self._extent = picture, extent
        width, height = self.room(extent)
        self.setFixedSize(width + 2 * EDGE, height + 2 * EDGE)
        self.update()

    def follow(self, viewport: Viewport) -> None:
        """Say what is in sight; where all is, the frame would tell nothing, and the overview is hidden."""
        seen = viewport.visible
        left, top, right, bottom = self._extent
        self.setVisible(not (seen[0] <= left and seen[1] <= top and seen[2] >= right and seen[3] >= bottom))
        self.move(viewport.width - self.width() - FROM_CORNER, viewport.height - self.height() - FROM_CORNER)
        if seen != self._seen:
            self._seen = seen
            self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint image and frame."""
        with QPainter(self) as painter:
            self._paint(painter)

    def _paint(self, painter: QPainter) -> None:
        paint_chip_ground(painter, QRectF(self.rect()))
        box = self._box()
        if self._picture is None:
            painter.fillRect(box, QColor(theme.DARK.canvas))
        else:
            painter.drawImage(box, self._picture)
        left, top, right, bottom = self._extent
        across, down = box.width() / (right - left), box.height() / (bottom - top)
        frame = QRectF(
            box.left() + (self._seen[0] - left) * across,
            box.top() + (self._seen[1] - top) * down,
            max(4.0, (self._seen[2] - self._seen[0]) * across),
            max(4.0, (self._seen[3] - self._seen[1]) * down),
        ).intersected(box)
        for hue, width in ((theme.DARK.canvas, 3.5), (theme.DARK.accent, 1.6)):
            painter.setPen(QPen(QColor(hue), width))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(frame)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Look where the mouse is pressed."""
        self._choose(event.position())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Follow a drag."""
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._choose(event.position())

    def _box(self) -> QRectF:
        return QRectF(self.rect()).adjusted(EDGE, EDGE, -EDGE, -EDGE)

    def _choose(self, place: QPointF) -> None:
        box = self._box()
        left, top, right, bottom = self._extent
        x = left + (place.x() - box.left()) / box.width() * (right - left)
        y = top + (place.y() - box.top()) / box.height() * (bottom - top)
        self.place_chosen.emit(min(max(x, left), right), min(max(y, top), bottom))
