"""The canvas in use: pan, zoom, choose, add and move by mouse or key."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPointF, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent, QPainter, QWheelEvent
from PySide6.QtWidgets import QWidget

from raterscope.widgets.canvas.canvas_view import CanvasView
from raterscope.widgets.canvas.viewport import Viewport
from raterscope.widgets.figure_menu import FigureMenu
from raterscope.widgets.hints import KeyHelp

PAN_STEP, FINE_STEP = 64, 8
ZOOM_STEP = 1.25
DRAG_FROM = 4.0
NOTCH = 120
"""Turn of a wheel by one notch, in Qt's units."""


class ImageCanvas(CanvasView):
    """Interactive canvas of one image with its clicks and spots.

    The wheel and + and - zoom, a drag and the arrows pan, 0 shows the whole; Space, held, shows the
    image alone.

    Signals
    -------
    spot_clicked : int
        Index of the spot in the `DetectionMarks` shown.
    place_double_clicked : (float, float)
        In mode "look", where no spot is.
    place_chosen : (float, float)
        In mode "add".
    spot_moved : (int, float, float)
        In mode "move": the selected spot and its new place.
    mode_changed : str
        "look", "add" or "move".
    plane_stepped, time_stepped : int
        Steps of the wheel with Alt, and with Shift.
    """

    spot_clicked = Signal(int)
    place_double_clicked = Signal(float, float)
    place_chosen = Signal(float, float)
    spot_moved = Signal(int, float, float)
    mode_changed = Signal(str)
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
        """Paint what is in sight, with its marks."""
        self._paint(painter)

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
            self._pressed = event.position()
            self._dragged_from = None

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Pan while a button is held; otherwise report what is under the mouse."""
        position = event.position()
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

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Choose a spot or a place, unless the image was dragged."""
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
        moves = {
            Qt.Key.Key_Left: (-1, 0),
            Qt.Key.Key_Right: (1, 0),
            Qt.Key.Key_Up: (0, -1),
            Qt.Key.Key_Down: (0, 1),
        }
        if key in moves:
            across, down = moves[Qt.Key(key)]
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
            self._show_bare(True)
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
                self._show_bare(False)
        else:
            super().keyReleaseEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Show the marks again where the key is released elsewhere."""
        self._show_bare(False)
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
