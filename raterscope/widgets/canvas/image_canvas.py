"""The canvas in use: pan, zoom, choose, add and move by mouse or key; a canvas without anything else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFocusEvent, QKeyEvent, QMouseEvent, QPainter, QPen, QWheelEvent
from PySide6.QtWidgets import QWidget

from raterscope.widgets import theme
from raterscope.widgets.canvas.canvas_view import CanvasView
from raterscope.widgets.canvas.viewport import Viewport
from raterscope.widgets.divider import STEP, paint_titles
from raterscope.widgets.figure_menu import FigureMenu
from raterscope.widgets.hints import KeyHelp
from raterscope.widgets.parts import ARROWS

PAN_STEP, FINE_STEP = 64, 8
ZOOM_STEP = 1.25
DRAG_FROM = 4.0
NOTCH = 120
"""Turn of a wheel by one notch, in Qt's units."""


class ImageCanvas(CanvasView):
    """Interactive canvas of one image with its clicks and spots.

    The wheel and + and - zoom, a drag and the arrow keys pan, 0 shows the whole image. Holding Space shows
    the image alone.
    """

    spot_clicked = Signal(int)  # index of the spot in the `DetectionMarks` shown
    place_double_clicked = Signal(float, float)  # in mode "look", where no spot is
    place_chosen = Signal(float, float)  # in mode "add"
    spot_moved = Signal(int, float, float)  # in mode "move": the selected spot and its new place
    mode_changed = Signal(str)  # "look", "add" or "move"
    # plane_stepped, time_stepped: steps of the wheel with Alt, and with Shift
    plane_stepped = Signal(int)
    time_stepped = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self._mode = "look"
        self._cursor = (0.0, 0.0)
        self._turned = 0
        self._pressed: QPointF | None = None
        self._dragged_from: Viewport | None = None
        self._divides = False
        self.menu = FigureMenu(self, self, with_svg=False)

    def select(self, index: int | None) -> None:
        """Frame one spot; a spot being moved stays where it was."""
        super().select(index)
        if self._mode == "move":
            self.set_mode("look")

    @property
    def mode(self) -> str:
        """Mode of a click: "look", "add" or "move"."""
        return self._mode

    def set_mode(self, mode: str) -> None:
        """Choose what a click does: choose a spot ("look"), add one, move the selected."""
        if mode not in {"look", "add", "move"}:
            raise ValueError(f"mode {mode!r}; expected look, add or move")
        if mode == "move" and self._selected is None:
            mode = "look"
        if mode == "add":
            self._cursor = self._viewport.centre
        elif mode == "move" and self._selected is not None:
            spots = self._spots.spots
            self._cursor = (float(spots.x[self._selected]), float(spots.y[self._selected]))
        cursor = Qt.CursorShape.ArrowCursor if mode == "look" else Qt.CursorShape.CrossCursor
        self.setCursor(cursor)
        changed, self._mode = mode != self._mode, mode
        self._show_cross_hair()
        if changed:
            self.mode_changed.emit(mode)

    # As a picture -----------------------------------------------------------------------------

    def heading(self) -> tuple[str, str]:
        """Return no title: it is an image already."""
        return "", ""

    def picture_size(self) -> QSize:
        """Return the visible size."""
        return self.size()

    def paint_picture(self, painter: QPainter) -> None:
        """Paint the visible part, with its marks."""
        self._paint(painter)
        across, sides = self.divider.across(self.width()), self.divider.sides
        if across is not None and sides is not None:
            titles = [side.title for side in sides]
            paint_titles(painter, across, titles, self._chips.geometry().bottom())

    # Mouse and keys ----------------------------------------------------------------------------

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom about the mouse; with Alt or Shift, step through focal planes or times."""
        event.accept()
        delta = event.angleDelta().y() or event.angleDelta().x()  # Alt turns the wheel sideways
        held = event.modifiers()
        for modifier, stepped in (
            (Qt.KeyboardModifier.AltModifier, self.plane_stepped),
            (Qt.KeyboardModifier.ShiftModifier, self.time_stepped),
        ):
            if held & modifier:
                self._turned += delta
                steps = int(self._turned / NOTCH)
                self._turned -= steps * NOTCH
                if steps:
                    stepped.emit(steps)
                return
        self._turned = 0
        self.zoom(1.0015**delta, event.position())

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Begin a drag or a click."""
        if event.button() in (Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton):
            self._divides = self.divider.is_at(event.position().x(), self.width())
            self._pressed = None if self._divides else event.position()
            self._dragged_from = None

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Pan while a button is held; otherwise report what is under the mouse."""
        position = event.position()
        if self._divides:
            self._hover(None)
            self.setCursor(Qt.CursorShape.SplitHCursor)
            self.divider.move(position.x() / self.width())
            return
        if self._pressed is not None:
            offset = position - self._pressed
            if self._dragged_from is None and offset.manhattanLength() >= DRAG_FROM:
                self._dragged_from = self._viewport
            if self._dragged_from is not None:
                self._drag_to(self._dragged_from.panned(offset.x(), offset.y()))
            return
        x, y = self._viewport.to_image(position.x(), position.y())
        if self._mode != "look":
            self._cursor = (x, y)
            self._show_cross_hair()
            return
        self._hover(self.spot_at(x, y))
        if self.divider.is_at(position.x(), self.width()):
            self.setCursor(Qt.CursorShape.SplitHCursor)
        elif self._hovered is None:
            self.setCursor(Qt.CursorShape.ArrowCursor)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Choose a spot or a place, unless the image was dragged."""
        self._divides = False
        dragged, self._dragged_from = self._dragged_from is not None, None
        pressed, self._pressed = self._pressed is not None, None
        if dragged or not pressed or event.button() != Qt.MouseButton.LeftButton:
            return
        x, y = self._viewport.to_image(event.position().x(), event.position().y())
        if self._mode != "look":
            self._cursor = (x, y)
            self._choose_place()
            return
        index = self.spot_at(x, y)
        if index is not None:
            self.spot_clicked.emit(index)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Choose a place where no spot is."""
        x, y = self._viewport.to_image(event.position().x(), event.position().y())
        if self._mode == "look" and self.spot_at(x, y) is None and self._inside(x, y):
            self.place_double_clicked.emit(x, y)

    def leaveEvent(self, _event: QEvent) -> None:
        """Hide the hover."""
        self._hover(None)

    KEY_HELP = KeyHelp(
        "On the image",
        (
            ("Arrows", "pan; with Shift: small steps"),
            ("Ctrl+Left, Right", "move the divider between two sides"),
            ("+", "zoom in"),
            ("-", "zoom out"),
            ("0", "show whole image"),
            ("Space", "hide marks while held"),
            ("Return", "select the position"),
            ("Wheel", "zoom; with Alt: focal planes; with Shift: times"),
        ),
    )

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Pan, zoom and fit; in the other modes move the crosshair and choose."""
        key, fine = event.key(), bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        control = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        if control and key in ARROWS and self.divider.sides is not None:
            self.divider.move(self.divider.share + STEP * ARROWS[Qt.Key(key)][0])
        elif key in ARROWS:
            across, down = ARROWS[Qt.Key(key)]
            if self._mode == "look":
                step = FINE_STEP if fine else PAN_STEP
                self.pan(-across * step, -down * step)
            else:
                self._nudge(across, down, 1 if fine else FINE_STEP)
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self.zoom(ZOOM_STEP)
        elif key in (Qt.Key.Key_Minus, Qt.Key.Key_Underscore):
            self.zoom(1 / ZOOM_STEP)
        elif key == Qt.Key.Key_0:
            self.fit()
        elif key == Qt.Key.Key_Space:
            self._hide_overlays(True)
        elif self._mode != "look" and key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._choose_place()
        elif self._mode != "look" and key == Qt.Key.Key_Escape:
            self.set_mode("look")
        else:
            super().keyPressEvent(event)

    def keyReleaseEvent(self, event: QKeyEvent) -> None:
        """Show the marks again."""
        if event.key() == Qt.Key.Key_Space:
            if not event.isAutoRepeat():
                self._hide_overlays(False)
        else:
            super().keyReleaseEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Show the marks again where the key is released elsewhere."""
        self._hide_overlays(False)
        super().focusOutEvent(event)

    def _nudge(self, across: int, down: int, step: int) -> None:
        scale = self._viewport.scale
        self._cursor = (self._cursor[0] + across * step / scale, self._cursor[1] + down * step / scale)
        position = self._viewport.to_screen(*self._cursor)
        if not (0 <= position[0] < self._viewport.width and 0 <= position[1] < self._viewport.height):
            self.centre_on(*self._cursor)
        self._show_cross_hair()

    def _show_cross_hair(self) -> None:
        self.cross_hair = None if self._mode == "look" else (self._cursor, self._mode)
        self.update()

    def _choose_place(self) -> None:
        x, y = self._cursor
        if not self._inside(x, y):
            return
        if self._mode == "add":
            self.place_chosen.emit(x, y)
        elif self._mode == "move" and self._selected is not None:
            index = self._selected
            self.set_mode("look")
            self.spot_moved.emit(index, x, y)

    def _inside(self, x: float, y: float) -> bool:
        left, top, right, bottom = self.extent
        return left <= x <= right and top <= y <= bottom

    def _hover(self, index: int | None) -> None:
        if index != self._hovered:
            self._hovered = index
            shape = Qt.CursorShape.ArrowCursor if index is None else Qt.CursorShape.PointingHandCursor
            if self._mode == "look":
                self.setCursor(shape)
            self.update()


RADIUS = 7.0
"""Radius of a mark, in the widget's pixels."""
REACH = 12.0
"""Pixels within which a mark is taken away."""


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

    def set_points(self, points: Sequence[tuple[float, float]]) -> None:
        """Show the reader's marks, in image coordinates."""
        self._points = np.array(points, dtype=np.float64).reshape(-1, 2)
        self.update()

    def nearest(self, x: float, y: float) -> int | None:
        """Return the mark nearest to an image position; None if none is within reach."""
        if not len(self._points):
            return None
        distance = np.hypot(*(self._points - (x, y)).T) * self._viewport.scale
        index = int(distance.argmin())
        return index if distance[index] <= REACH else None

    KEY_HELP = KeyHelp(
        "On the image",
        (
            ("Click", "mark a point; with Shift: remove the nearest mark"),
            ("Arrows", "move the crosshair; with Shift: small steps"),
            ("Return", "mark the position"),
            ("Backspace", "remove the mark at the crosshair"),
            ("+", "zoom in"),
            ("-", "zoom out"),
            ("0", "show whole image"),
            ("Space", "hide marks while held"),
            ("Drag", "pan"),
        ),
    )

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Take a mark away with Backspace; otherwise as on any image."""
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
        """Mark the place, or with Shift take the nearest mark away."""
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
        if self._bare:
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
