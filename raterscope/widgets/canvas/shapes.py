"""Shapes drawn on a canvas: display, selection, and changes by mouse or key."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QObject, QPointF, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter

from raterscope.widgets.canvas.image_canvas import DRAG_FROM, ImageCanvas
from raterscope.widgets.canvas.layer_stack import SETTLED
from raterscope.widgets.canvas.shape_marks import (
    ShapeMark,
    away_from,
    grips_of,
    held_in,
    paint_grips,
    paint_shape,
    paint_shapes,
    paint_tags,
    polygon_of,
    pulled,
    shifted,
    tag_boxes,
    within,
)
from raterscope.widgets.canvas.tiles import TileCache
from raterscope.widgets.canvas.viewport import Viewport
from raterscope.widgets.parts import ARROWS

Points = NDArray[np.float64]

REACH = 10.0
"""Maximum distance from a grip at which a press grabs it, in pixels of the screen."""

NEAR = 6.0
"""Maximum distance from a line at which a press hits it, in pixels of the screen."""

FAR_STEP = 10
"""Step of an arrow key with Shift, in pixels of the image; without Shift, one."""

_STEPS = {Qt.Key.Key_Period: 1, Qt.Key.Key_Comma: -1}


@dataclass(frozen=True)
class _Grab:
    """Shape being dragged: its original form, and the grabbed point (None for the whole shape)."""

    mark: ShapeMark
    point: int | None


class Shapes(QObject):
    """Editable shapes drawn on a canvas.

    A click on a line, an outline or its label selects the shape; then its points show grips. Dragging a grip
    moves that point, dragging a line moves the whole shape, arrow keys move it by a pixel of the image. A
    change is reported at the end of a drag, and shown until the shapes are set again. `words`: returns the
    measurements of a shape with changed points.
    """

    chosen = Signal(object)  # the key of the shape that the user chose on the canvas; None for none
    # (object, str, (K, 2)): key of a shape, "move" or "reshape", and its points in the image's units
    changed = Signal(object, str, object)
    delete_requested = Signal(object)

    def __init__(self, canvas: ImageCanvas, words: Callable[[ShapeMark, Points], str]) -> None:
        super().__init__(canvas)
        self._canvas = canvas
        self._text = words
        self._shapes: tuple[ShapeMark, ...] = ()
        self.selected: Hashable = None
        """Key of the selected shape, or None."""
        self._point: int | None = None
        self._draft: Points | None = None
        self._pressed: QPointF | None = None
        self._grab: _Grab | None = None
        self._dragged = self._nudged = False
        self._over = False
        self.still = False
        """Whether another tool handles the canvas' mouse and keys."""
        self._tiles, self._quick = TileCache(self._paint_tile), True
        self._settling = QTimer(self, singleShot=True, interval=SETTLED)
        self._settling.timeout.connect(self._on_settled)
        canvas.over_marks.append(self._paint)
        canvas.installEventFilter(self)

    def set_shapes(self, shapes: Sequence[ShapeMark]) -> None:
        """Show the finished shapes; a change in progress continues."""
        self._shapes = tuple(shapes)
        mark = self._mark
        if mark is None:
            self._forget()
            self.selected = self._point = None
        elif self._draft is not None and not self._changing:
            unchanged = bool(np.allclose(mark.points, self._draft, atol=1e-3))
            self._draft = None if unchanged else self._draft
        self._tiles.clear()
        self._canvas.update()

    def select(self, key: Hashable) -> None:
        """Select a shape, which then shows its grips; None selects none."""
        if key != self.selected:
            self._finish()
            self._forget()
            self.selected, self._point = key, None
            self._tiles.clear()
            self._canvas.update()

    def show(self, key: Hashable) -> None:
        """Pan to a shape."""
        mark = next((mark for mark in self._shapes if mark.key == key), None)
        if mark is not None:
            low, high = mark.points.min(axis=0), mark.points.max(axis=0)
            x, y = ((low + high) / 2).tolist()
            self._canvas.look_at(x, y, float(np.hypot(*(high - low))) / 2)

    def restore(self) -> None:
        """Cancel the change in progress, or an emitted change that was not accepted."""
        self._forget()
        self._canvas.update()

    def leave(self) -> None:
        """Cancel the change in progress; without one, deselect."""
        if self._changing:
            self.restore()
        elif self.selected is not None:
            self._choose(None)

    def at(self, position: QPointF) -> Hashable:
        """Return the key of the shape at a position of the widget; None without one."""
        grab = None if self.still else self._grab_at(position)
        return None if grab is None else grab.mark.key

    # What stands

    @property
    def _changing(self) -> bool:
        """True while a drag or a key moves a shape."""
        return self._dragged or self._nudged

    @property
    def _mark(self) -> ShapeMark | None:
        """Selected shape as stored."""
        return next((mark for mark in self._shapes if mark.key == self.selected), None)

    @property
    def _seen(self) -> ShapeMark | None:
        """Selected shape as displayed."""
        mark, draft = self._mark, self._draft
        if mark is None or draft is None:
            return mark
        return replace(mark, points=draft, text=self._text(mark, draft))

    def _others(self) -> list[ShapeMark]:
        return [mark for mark in self._shapes if mark.key != self.selected]

    def _choose(self, key: Hashable) -> None:
        self.select(key)
        self.chosen.emit(key)

    def _forget(self) -> None:
        self._draft = self._pressed = self._grab = None
        self._dragged = self._nudged = False

    def _finish(self) -> None:
        """Emit the changed shape."""
        mark, draft, changing = self._mark, self._draft, self._changing
        self._dragged = self._nudged = False
        if changing and mark is not None and draft is not None:
            self.changed.emit(mark.key, "move" if self._point is None else "reshape", draft)

    def _on_screen(self, points: Points) -> Points:
        view = self._canvas.viewport
        return np.asarray(points * view.scale + (view.across, view.down))

    def _grips(self, mark: ShapeMark) -> list[int]:
        handles = grips_of(self._on_screen(mark.points), closed=mark.closed)
        return handles if self._point is None else sorted({*handles, self._point})

    def _grab_at(self, position: QPointF) -> _Grab | None:
        """Find the part that the mouse grabs; a spot has priority over a line, not over a grip or label."""
        chosen, view, index = self._seen, self._canvas.viewport, (position.x(), position.y())
        if chosen is not None and not chosen.fixed:
            grips = self._grips(chosen)
            away = np.hypot(*(self._on_screen(chosen.points)[grips] - index).T)
            if away.min() <= REACH:
                return _Grab(chosen, grips[int(away.argmin())])
        marks = [mark for mark in (chosen, *self._others()) if mark is not None and not mark.fixed]
        for mark, box in tag_boxes(view, marks):
            if box.contains(position):
                return _Grab(mark, None)
        x, y = view.to_image(*index)
        if self._canvas.spot_at(x, y) is not None:
            return None
        reach = NEAR / view.scale
        near = [
            (away_from(self._on_screen(mark.points), index, closed=mark.closed), order)
            for order, mark in enumerate(marks)
            if within([mark], (x - reach, y - reach, x + reach, y + reach))
        ]
        distance, nearest = min(near, default=(np.inf, -1))
        return _Grab(marks[nearest], None) if distance <= NEAR else None

    # Mouse and keys

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Handle the mouse on a shape, and the keys while one is selected."""
        if watched is not self._canvas or self.still or self._canvas.mode != "look" or not self._shapes:
            return False
        if isinstance(event, QMouseEvent):
            return self._on_mouse(event)
        kind = event.type()
        if kind == QEvent.Type.FocusOut and self._nudged:
            self._finish()
        if isinstance(event, QKeyEvent) and kind == QEvent.Type.KeyPress:
            return self._on_key(event)
        if isinstance(event, QKeyEvent) and kind == QEvent.Type.KeyRelease and self._nudged:
            if event.key() in ARROWS and not event.isAutoRepeat():
                self._finish()
            return True
        return False

    def _on_mouse(self, event: QMouseEvent) -> bool:
        kind, position = event.type(), event.position()
        if kind == QEvent.Type.MouseMove:
            if self._grab is not None:
                self._drag(self._grab, position)
                return True
            if event.buttons() == Qt.MouseButton.NoButton:
                self._hover(position)
        elif event.button() != Qt.MouseButton.LeftButton:
            return False
        elif kind == QEvent.Type.MouseButtonPress:
            return self._on_press(position)
        elif kind == QEvent.Type.MouseButtonRelease:
            return self._on_release(position)
        elif kind == QEvent.Type.MouseButtonDblClick:
            return self._grab_at(position) is not None
        return False

    def _on_press(self, position: QPointF) -> bool:
        self._finish()
        grab = self._grab_at(position)
        if grab is not None:
            if grab.mark.key != self.selected:
                self._choose(grab.mark.key)
            self._point = grab.point
            self._canvas.setFocus(Qt.FocusReason.MouseFocusReason)
            self._canvas.update()
        self._grab, self._pressed = grab, position
        return grab is not None

    def _on_release(self, position: QPointF) -> bool:
        grab, pressed, self._grab, self._pressed = self._grab, self._pressed, None, None
        if grab is not None:
            self._finish()
        elif pressed is not None and (position - pressed).manhattanLength() < DRAG_FROM and self._mark:
            self._choose(None)
        return grab is not None

    def _drag(self, grab: _Grab, position: QPointF) -> None:
        pressed = self._pressed
        if pressed is None:
            return
        self._dragged = self._dragged or (position - pressed).manhattanLength() >= DRAG_FROM
        if not self._dragged:
            return
        offset = (
            np.array([position.x() - pressed.x(), position.y() - pressed.y()]) / self._canvas.viewport.scale
        )
        self._draft = self._moved(grab.mark, offset)
        self._canvas.update()

    def _moved(self, mark: ShapeMark, offset: Points) -> Points:
        if self._point is None:
            return shifted(mark.points, offset, self._canvas.extent)
        points = pulled(mark.points, self._grips(mark), self._point, offset, closed=mark.closed)
        return held_in(points, self._canvas.extent)

    def _hover(self, position: QPointF) -> None:
        grab = self._grab_at(position)
        if grab is not None:
            own = grab.mark.key == self.selected
            self._canvas.setCursor(Qt.CursorShape.SizeAllCursor if own else Qt.CursorShape.PointingHandCursor)
        elif self._over:
            self._canvas.setCursor(Qt.CursorShape.ArrowCursor)
        self._over = grab is not None

    def _on_key(self, event: QKeyEvent) -> bool:
        key, mark = event.key(), self._seen
        if mark is None or mark.fixed:
            return False
        if key == Qt.Key.Key_Escape:
            self.leave()
            return True
        if self._pressed is not None or not within([mark], self._canvas.viewport.visible):
            return False
        if key in ARROWS:
            step = FAR_STEP if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1
            self._draft = self._moved(mark, np.array(ARROWS[Qt.Key(key)], dtype=float) * step)
            self._nudged = True
        elif key in _STEPS:
            stops = [None, *self._grips(mark)]
            self._point = stops[(stops.index(self._point) + _STEPS[Qt.Key(key)]) % len(stops)]
        elif key == Qt.Key.Key_Delete:
            self.delete_requested.emit(mark.key)
        else:
            return False
        self._canvas.update()
        return True

    # Painting

    def _paint_tile(self, painter: QPainter, scale: float, rect: QRectF) -> None:
        paint_shapes(painter, scale, rect, self._others())

    def _on_settled(self) -> None:
        self._quick = False
        self._canvas.update()

    def _paint(self, painter: QPainter, viewport: Viewport) -> None:
        if not self._shapes:
            return
        ratio = self._canvas.devicePixelRatioF()
        if not self._tiles.show(painter, viewport, ratio, quick=self._quick):
            self._settling.start()
        self._quick = True
        paint_tags(painter, viewport, self._others())
        chosen = self._seen
        if chosen is None:
            return
        polygon = polygon_of(chosen.points, viewport.scale, viewport.across, viewport.down)
        paint_shape(painter, polygon, closed=chosen.closed, strong=True)
        paint_tags(painter, viewport, [chosen])
        if not chosen.fixed and not self.still:
            paint_grips(painter, self._on_screen(chosen.points), self._grips(chosen), self._point)
