"""Image with the reader's own marks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPen
from PySide6.QtWidgets import QWidget

from raterscope.widgets import theme
from raterscope.widgets.canvas.image_canvas import ImageCanvas
from raterscope.widgets.canvas.viewport import Viewport
from raterscope.widgets.hints import KeyHelp

RADIUS = 7.0
"""Radius of a mark, in the widget's pixels."""
REACH = 12.0
"""Maximum distance of a mark to remove, in pixels."""
VIEW_KEYS = ("+", "zoom in"), ("-", "zoom out"), ("0", "show whole image"), ("Drag", "pan")


class MarkingCanvas(ImageCanvas):
    """Image with the reader's own marks.

    A click or Return marks a point; with Shift, or with Backspace, the nearest mark is removed. Holding Space
    shows the image alone.

    `marks`: False to show the image only.
    """

    marked = Signal(float, float)  # image coordinates
    unmarked = Signal(int)  # index of the mark

    def __init__(self, parent: QWidget | None = None, *, marks: bool = True) -> None:
        super().__init__(parent)
        self._chips.hide()
        self._marks_on = marks
        self._points: NDArray[np.float64] = np.empty((0, 2))
        self._by_key = False
        self._removing = False
        self.over_marks.append(self._paint_marks)
        if marks:
            self.set_mode("add")
            self.mode_changed.connect(self._stay)
            self.place_chosen.connect(self._on_place)
        else:
            self.KEY_HELP = KeyHelp("On the image", (("Arrows", "pan; with Shift: small steps"), *VIEW_KEYS))

    def set_points(self, points: Sequence[tuple[float, float]]) -> None:
        """Show the reader's marks, in image coordinates."""
        self._points = np.array(points, dtype=np.float64).reshape(-1, 2)
        self.update()

    def nearest(self, x: float, y: float) -> int | None:
        """Return the mark nearest to an image position; None if none is within reach."""
        if not len(self._points):
            return None
        distance = np.hypot(*(self._points - (x, y)).T) * self.viewport.scale
        index = int(distance.argmin())
        return index if distance[index] <= REACH else None

    KEY_HELP = KeyHelp(
        "On the image",
        (
            ("Click", "mark a point; with Shift: remove the nearest mark"),
            ("Arrows", "move the crosshair; with Shift: small steps"),
            ("Return", "mark the position"),
            ("Backspace", "remove the mark at the crosshair"),
            ("Space", "hide marks while held"),
            *VIEW_KEYS,
        ),
    )

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Remove a mark with Backspace; other keys act as on any image."""
        if self._marks_on and event.key() in (Qt.Key.Key_Backspace, Qt.Key.Key_Delete):
            self._remove_at(*self._cursor)
            return
        self._by_key = True
        super().keyPressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Hide the crosshair of the keyboard."""
        self._by_key = False
        super().mouseMoveEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Mark the position, or with Shift remove the nearest mark."""
        self._removing = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        try:
            super().mouseReleaseEvent(event)
        finally:
            self._removing = False

    def _on_place(self, x: float, y: float) -> None:
        if self._removing:
            self._remove_at(x, y)
        else:
            self.marked.emit(x, y)

    def _remove_at(self, x: float, y: float) -> None:
        index = self.nearest(x, y)
        if index is not None:
            self.unmarked.emit(index)

    def _stay(self, mode: str) -> None:
        if mode == "look":  # Esc
            self.set_mode("add")

    def _show_cross_hair(self) -> None:
        self.update()  # painted with the marks

    def _paint_marks(self, painter: QPainter, view: Viewport) -> None:
        if self.layers.bare:
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        pens = QPen(theme.colour(theme.DARK.canvas, 200), 4), QPen(QColor(theme.DARK.accent), 2)
        for x, y in self._points:
            centre = QPointF(*view.to_screen(float(x), float(y)))
            for pen in pens:
                painter.setPen(pen)
                painter.drawEllipse(centre, RADIUS, RADIUS)
        if self._marks_on and self._by_key:
            x, y = view.to_screen(*self._cursor)
            for pen in pens:
                painter.setPen(pen)
                for across, down in ((1, 0), (-1, 0), (0, 1), (0, -1)):
                    near, far = QPointF(x + 4 * across, y + 4 * down), QPointF(x + 18 * across, y + 18 * down)
                    painter.drawLine(near, far)
