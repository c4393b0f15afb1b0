"""Drawing on a canvas: a known length, a line, an outline; by clicks, freehand or by key."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QObject, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPen

from raterscope.algorithms.geometry import simplify
from raterscope.widgets import theme
from raterscope.widgets.canvas.image_canvas import DRAG_FROM, FINE_STEP, ImageCanvas
from raterscope.widgets.canvas.shape_marks import paint_shape, paint_tag, polygon_of, tag_box
from raterscope.widgets.canvas.viewport import Viewport
from raterscope.widgets.notes import paint_chip_ground
from raterscope.widgets.text_size import enlarge

__all__ = ["Drawing"]

Points = NDArray[np.float64]

CLOSES = 9.0
"""Pixels from the first corner within which a click closes an outline."""

TOLERANCE = 0.5
"""Pixels of the screen by which a line drawn freehand may be straightened."""

LOWER_EDGE = 54
"""Pixels that the scale bar takes."""

WORDS = {
    "scale": "Drag along a known length, or click both ends",
    "length": "Drag, or click each point and double-click the last",
    "area": "Drag around the area, or click each corner and double-click the last",
}
_FEWEST = {"scale": 2, "length": 2, "area": 3}


class Drawing(QObject):
    """A line or outline that is being drawn on a canvas.

    While something is drawn the canvas' mouse and keys belong to it; the wheel zooms as ever. Arrows move a
    crosshair, Return sets a point there, or ends where one was just set; Backspace takes the last one back.

    Parameters
    ----------
    canvas : ImageCanvas
    measure : callable
        ``measure(mode, points)`` gives the words shown beside what is being drawn.

    Signals
    -------
    drawn : (str, (K, 2) float64)
        The mode and the points, in the image's units.
    mode_changed : str
        "scale", "length", "area", or nothing.
    """

    drawn = Signal(str, object)
    mode_changed = Signal(str)

    def __init__(self, canvas: ImageCanvas, measure: Callable[[str, Points], str]) -> None:
        super().__init__(canvas)
        self._canvas = canvas
        self._measure = measure
        self.mode = ""
        self._points: list[tuple[float, float]] = []
        self._cursor: tuple[float, float] | None = None
        self._pressed: QPointF | None = None
        self._freehand = False
        canvas.over_marks.append(self._paint)
        canvas.mode_changed.connect(self._on_canvas_mode)
        canvas.installEventFilter(self)

    def set_mode(self, mode: str) -> None:
        """Begin to draw a "scale", a "length" or an "area"; nothing leaves what was begun."""
        if mode and mode not in WORDS:
            raise ValueError(f"mode {mode!r}; expected one of {', '.join(WORDS)}, or none")
        if mode:
            self._canvas.set_mode("look")
        self._points, self._cursor, self._pressed, self._freehand = [], None, None, False
        changed, self.mode = mode != self.mode, mode
        self._canvas.setCursor(Qt.CursorShape.CrossCursor if mode else Qt.CursorShape.ArrowCursor)
        self._canvas.update()
        if changed:
            self.mode_changed.emit(mode)

    # Mouse and keys

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Handle the canvas' mouse and keys during a drawing."""
        if not self.mode or watched is not self._canvas:
            return False
        kind = event.type()
        if isinstance(event, QMouseEvent):
            if event.button() == Qt.MouseButton.MiddleButton or event.buttons() & Qt.MouseButton.MiddleButton:
                return False  # which pans
            position = self._to_image(event.position())
            if kind == QEvent.Type.MouseButtonPress and event.button() == Qt.MouseButton.LeftButton:
                self._pressed, self._freehand = event.position(), False
            elif kind == QEvent.Type.MouseMove:
                self._on_move(event.position(), position)
            elif kind == QEvent.Type.MouseButtonRelease and self._pressed is not None:
                self._on_release(position)
            elif kind == QEvent.Type.MouseButtonDblClick:
                self._end()
            return True
        return kind == QEvent.Type.KeyPress and isinstance(event, QKeyEvent) and self._on_key(event)

    def _on_move(self, global_position: QPointF, position: tuple[float, float]) -> None:
        self._cursor = position
        if self._pressed is not None:
            if not self._freehand and (global_position - self._pressed).manhattanLength() >= DRAG_FROM:
                self._freehand = True
                if not self._points:
                    self._points.append(self._to_image(self._pressed))
            if self._freehand and self.mode != "scale":
                self._points.append(position)
        self._canvas.update()

    def _on_release(self, position: tuple[float, float]) -> None:
        freehand, self._pressed, self._freehand = self._freehand, None, False
        if freehand:
            if self.mode == "scale":
                self._points.append(position)
            self._end()
        elif self._closes(position):
            self._end()
        else:
            self._set_point(position)

    def _on_key(self, event: QKeyEvent) -> bool:
        key = event.key()
        step = 1 if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else FINE_STEP
        ways = {
            Qt.Key.Key_Left: (-step, 0),
            Qt.Key.Key_Right: (step, 0),
            Qt.Key.Key_Up: (0, -step),
            Qt.Key.Key_Down: (0, step),
        }
        view = self._canvas.viewport
        if key in ways:
            x, y = self._cursor or view.centre
            across, down = ways[Qt.Key(key)]
            self._cursor = self._clamped((x + across / view.scale, y + down / view.scale))
            self._bring_into_sight(*self._cursor)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._cursor = self._cursor or view.centre
            if self._points and self._cursor == self._points[-1]:
                self._end()
            else:
                self._set_point(self._cursor)
        elif key == Qt.Key.Key_Backspace:
            del self._points[-1:]
        elif key == Qt.Key.Key_Escape:
            self.set_mode("")
        else:
            return False
        self._canvas.update()
        return True

    def _set_point(self, position: tuple[float, float]) -> None:
        self._cursor = position
        self._points.append(position)
        if self.mode == "scale" and len(self._points) == 2:
            self._end()
        self._canvas.update()

    def _closes(self, position: tuple[float, float]) -> bool:
        if self.mode != "area" or len(self._points) < 3:
            return False
        first = self._points[0]
        away = np.hypot(position[0] - first[0], position[1] - first[1])
        return bool(away * self._canvas.viewport.scale <= CLOSES)

    def _end(self) -> None:
        """Emit a complete drawing; continue an incomplete one."""
        if len(self._points) < _FEWEST[self.mode]:
            return
        points = simplify(np.array(self._points).reshape(-1, 2), TOLERANCE / self._canvas.viewport.scale)
        points = points[np.any(np.diff(points, axis=0, prepend=np.nan) != 0, axis=1)]  # each once
        if len(points) < _FEWEST[self.mode]:
            return
        mode = self.mode
        self.set_mode("")
        self.drawn.emit(mode, points)

    def _on_canvas_mode(self, mode: str) -> None:
        if mode != "look" and self.mode:
            self.set_mode("")
            self._canvas.setCursor(Qt.CursorShape.CrossCursor)

    def _to_image(self, position: QPointF) -> tuple[float, float]:
        return self._clamped(self._canvas.viewport.to_image(position.x(), position.y()))

    def _clamped(self, position: tuple[float, float]) -> tuple[float, float]:
        left, top, right, bottom = self._canvas.extent
        return min(max(position[0], left), right), min(max(position[1], top), bottom)

    def _bring_into_sight(self, x: float, y: float) -> None:
        view = self._canvas.viewport
        across, down = view.to_screen(x, y)
        if not (0 <= across < view.width and 0 <= down < view.height):
            self._canvas.pan(view.width / 2 - across, view.height / 2 - down)

    # Painting

    def _paint(self, painter: QPainter, viewport: Viewport) -> None:
        if not self.mode:
            return
        points = [*self._points]
        if self._cursor is not None and (not self._freehand or self.mode == "scale"):
            points.append(self._cursor)
        if self._cursor is not None:
            _paint_cross(painter, QPointF(*viewport.to_screen(*self._cursor)))
        if self._points and len(points) > 1:
            places = np.array(points)
            closed = self.mode == "area" and len(points) > 2
            polygon = polygon_of(places, viewport.scale, viewport.across, viewport.down)
            paint_shape(painter, polygon, closed=closed, strong=True)
            words = self._measure(self.mode, places)
            paint_tag(painter, tag_box(viewport, QPointF(*viewport.to_screen(*points[-1])), words), words)
        _paint_hint(painter, viewport, f"{WORDS[self.mode]}; Esc to cancel")


def _paint_cross(painter: QPainter, position: QPointF) -> None:
    for pen in (QPen(theme.colour(theme.DARK.canvas, 190), 3.4), QPen(QColor(theme.DARK.accent), 1.4)):
        painter.setPen(pen)
        for across, down in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            near, far = QPointF(3 * across, 3 * down), QPointF(10 * across, 10 * down)
            painter.drawLine(position + near, position + far)


def _paint_hint(painter: QPainter, viewport: Viewport, words: str) -> None:
    """Paint what to do, above what stands on the lower edge."""
    painter.save()
    whole = enlarge(painter, QRectF(0, 0, viewport.width, viewport.height))
    painter.setFont(theme.font())
    room = QRectF(0, 0, max(whole.width() - 48, 40), 200)
    flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
    box = painter.boundingRect(room, int(flags), words).adjusted(-10, -5, 10, 5)
    box.moveCenter(QPointF(whole.width() / 2, 0))
    box.moveBottom(whole.height() - LOWER_EDGE)
    paint_chip_ground(painter, box)
    painter.setPen(QColor(theme.DARK.text))
    painter.drawText(box, int(flags), words)
    painter.restore()
