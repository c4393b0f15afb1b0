"""Measured shapes: their geometry and painting, and drawing of new shapes by clicks, freehand or by key."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QObject, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QKeyEvent, QMouseEvent, QPainter, QPen, QPolygonF

from raterscope.algorithms.geometry import simplify
from raterscope.widgets import theme
from raterscope.widgets.canvas.image_canvas import DRAG_FROM, FINE_STEP, ImageCanvas
from raterscope.widgets.canvas.viewport import Rect, Viewport
from raterscope.widgets.hints import paint_chip_ground
from raterscope.widgets.theme import enlarge, pixels

Points = NDArray[np.float64]

GAP = 24.0
"""Minimum distance of two grips along a shape, in pixels of the screen."""


def grips_of(points: Points, *, closed: bool) -> list[int]:
    """Choose the points of a shape with a grip, in order: all points, or some if they are dense.

    `points`: (K, 2), on the screen. Both ends of a line have a grip.
    """
    if len(points) < 2:
        return list(range(len(points)))
    along = _along(points)
    chosen = [0]
    while (following := int(np.searchsorted(along, along[chosen[-1]] + GAP))) < len(points):
        chosen.append(following)
    last = len(points) - 1
    if closed:
        if len(chosen) > 2 and np.hypot(*(points[chosen[-1]] - points[0])) < GAP:
            chosen.pop()
    elif chosen[-1] != last:
        if len(chosen) > 1:
            chosen.pop()
        chosen.append(last)
    return chosen


def pulled(points: Points, grips: list[int], handle: int, offset: Points, *, closed: bool) -> Points:
    """Move one point of a shape; points without a grip follow in proportion to their distance along it.

    `points`: (K, 2).
    `grips`: as from `grips_of`.
    `handle`: the dragged point, one of the grips.
    `offset`: (2,).
    """
    count, position = len(points), grips.index(handle)
    along = _along(points)
    around = float(along[-1] + np.hypot(*(points[0] - points[-1])))
    share = np.zeros(count)
    share[handle] = 1.0
    for step in (-1, 1):
        if not closed and not 0 <= position + step < len(grips):
            continue
        stop = grips[(position + step) % len(grips)]
        between = np.arange(1, (stop - handle) * step % count)
        indices = (handle + step * between) % count
        length = (along[stop] - along[handle]) * step % around
        if len(indices) and length > 0:
            share[indices] = 1 - (along[indices] - along[handle]) * step % around / length
    return np.asarray(points + share[:, None] * offset)


def shifted(points: Points, offset: Points, extent: Rect) -> Points:
    """Move a whole shape, within the image."""
    lowest = np.minimum(np.array(extent[:2]) - points.min(axis=0), 0)
    highest = np.maximum(np.array(extent[2:]) - points.max(axis=0), 0)
    return np.asarray(points + np.clip(offset, lowest, highest))


def held_in(points: Points, extent: Rect) -> Points:
    """Move points outside the image to its edge."""
    return np.clip(points, extent[:2], extent[2:])


def away_from(points: Points, position: tuple[float, float], *, closed: bool) -> float:
    """Return the distance of a position from a line or an outline."""
    start = points if closed else points[:-1]
    along = (np.roll(points, -1, axis=0) if closed else points[1:]) - start
    to_place = np.array(position) - start
    long = np.maximum((along**2).sum(axis=1), 1e-12)
    share = np.clip((to_place * along).sum(axis=1) / long, 0, 1)
    return float(np.hypot(*(to_place - share[:, None] * along).T).min())


def _along(points: Points) -> Points:
    """Return the distance of each point along the line."""
    return np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))])


END = 5.0
GRIP = 9
FEW_POINTS = 100
"""Maximum number of points of a shape that are all painted."""

MAX_TAGS = 60
"""Maximum number of visible shapes with a label."""


@dataclass(frozen=True, eq=False)
class ShapeMark:
    """A line, or an outline that returns to its first point."""

    key: Hashable  # identifier
    points: NDArray[np.float64]  # (K, 2): in the image's units
    closed: bool
    text: str  # text of the measurement: "3  12.4 µm"
    fixed: bool = False  # cannot be changed

    @cached_property
    def box(self) -> Rect:
        """Left, top, right, bottom."""
        (left, top), (right, bottom) = self.points.min(axis=0).tolist(), self.points.max(axis=0).tolist()
        return left, top, right, bottom


def paint_shapes(painter: QPainter, scale: float, rect: QRectF, shapes: Sequence[ShapeMark]) -> None:
    """Paint the shapes that intersect `rect` (in the image's units).

    The painter's origin is that of the image, its unit the widget's pixel.
    """
    reach = 2 * END / scale
    rect = rect.adjusted(-reach, -reach, reach, reach)
    for shape in within(shapes, (rect.left(), rect.top(), rect.right(), rect.bottom())):
        paint_shape(painter, polygon_of(shape.points, scale), closed=shape.closed)


def paint_tags(painter: QPainter, viewport: Viewport, shapes: Sequence[ShapeMark]) -> None:
    """Paint the labels of the visible shapes, unless there are too many."""
    for shape, box in tag_boxes(viewport, shapes):
        paint_tag(painter, box, shape.text)


def polygon_of(
    points: NDArray[np.floating], scale: float, across: float = 0.0, down: float = 0.0
) -> QPolygonF:
    """Convert image points to pixels, without repeated pixels."""
    corners = points * scale + (across, down)
    if len(corners) > FEW_POINTS:
        apart = np.any(np.diff(np.round(corners * 2), axis=0, prepend=np.nan) != 0, axis=1)
        apart[-1] = True
        corners = corners[apart]
    return QPolygonF([QPointF(x, y) for x, y in corners.tolist()])


def paint_shape(painter: QPainter, polygon: QPolygonF, *, closed: bool, strong: bool = False) -> None:
    """Paint a line with ends, or an outline, visible on every background."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setBrush(theme.colour(theme.DARK.text, 28) if closed else Qt.BrushStyle.NoBrush)
    wide = 2.2 if strong else 1.4
    tone = QColor(theme.DARK.accent if strong else theme.DARK.text)
    for pen in (QPen(theme.colour(theme.DARK.canvas, 190), wide + 2.4), QPen(tone, wide)):
        pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
        painter.setPen(pen)
        if closed:
            painter.drawPolygon(polygon)
        else:
            painter.drawPolyline(polygon)
            for end, inner in ((0, 1), (-1, -2)):
                if polygon.size() > 1:
                    _paint_end(painter, polygon.at(end % polygon.size()), polygon.at(inner % polygon.size()))
        painter.setBrush(Qt.BrushStyle.NoBrush)


def paint_grips(
    painter: QPainter, corners: NDArray[np.float64], grips: Sequence[int], chosen: int | None
) -> None:
    """Paint squares on the grips of a shape, the selected one filled."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    for grip in grips:
        (x, y), half = corners[grip].tolist(), pixels(GRIP) / 2 + (1.5 if grip == chosen else 0)
        painter.setPen(QPen(theme.colour(theme.DARK.canvas, 230), 1.4))
        painter.setBrush(QColor(theme.DARK.accent if grip == chosen else theme.DARK.text))
        painter.drawRect(QRectF(x - half, y - half, 2 * half, 2 * half))


def tag_boxes(viewport: Viewport, shapes: Sequence[ShapeMark]) -> list[tuple[ShapeMark, QRectF]]:
    """Return the rectangles of the labels of visible shapes; none of too many shapes."""
    position = within(shapes, viewport.visible)
    if len(position) > MAX_TAGS:
        return []
    return [
        (shape, tag_box(viewport, QPointF(*viewport.to_screen(*_label_position(shape))), shape.text))
        for shape in position
    ]


def tag_box(viewport: Viewport, position: QPointF, text: str) -> QRectF:
    """Return the rectangle of a label beside a position."""
    width = pixels(QFontMetrics(theme.font(theme.CAPTION, bold=True)).horizontalAdvance(text) + 14)
    height = pixels(20)
    box = QRectF(position.x() + 8, position.y() - height - 6, width, height)
    box.moveLeft(min(max(box.left(), 4), viewport.width - width - 4))
    box.moveTop(min(max(box.top(), 4), viewport.height - height - 4))
    return box


def paint_tag(painter: QPainter, box: QRectF, text: str) -> None:
    """Paint a label in its rectangle."""
    painter.save()
    room = enlarge(painter, box)
    painter.setFont(theme.font(theme.CAPTION, bold=True))
    paint_chip_ground(painter, room)
    painter.setPen(QColor(theme.DARK.text))
    painter.drawText(room, Qt.AlignmentFlag.AlignCenter, text)
    painter.restore()


def within(shapes: Sequence[ShapeMark], rect: Rect) -> list[ShapeMark]:
    """List the shapes whose boxes intersect a rectangle of the image."""
    first_x, first_y, last_x, last_y = rect
    inside = []
    for shape in shapes:
        left, top, right, bottom = shape.box
        if right >= first_x and left <= last_x and bottom >= first_y and top <= last_y:
            inside.append(shape)
    return inside


def _label_position(shape: ShapeMark) -> tuple[float, float]:
    """Return the position of a label: at the middle of a line, at the top of an outline."""
    if shape.closed:
        x, y = shape.points[shape.points[:, 1].argmin()]
        return float(x), float(y)
    steps = np.hypot(*np.diff(shape.points, axis=0).T)
    along = np.concatenate([[0.0], np.cumsum(steps)])
    across, down = (float(np.interp(along[-1] / 2, along, column)) for column in shape.points.T)
    return across, down


def _paint_end(painter: QPainter, end: QPointF, inner: QPointF) -> None:
    """Paint a short stroke across the end of a line."""
    direction = end - inner
    long = (direction.x() ** 2 + direction.y() ** 2) ** 0.5
    if long > 0:
        across = QPointF(-direction.y(), direction.x()) * (END / long)
        painter.drawLine(end - across, end + across)


Vertices = NDArray[np.float64]

CLOSES = 9.0
"""Maximum distance from the first corner, in pixels, of a click that closes an outline."""

TOLERANCE = 0.5
"""Tolerance of the simplification of freehand lines, in pixels of the screen."""

LOWER_EDGE = 54
"""Height reserved for the scale bar, in pixels."""

WORDS = {
    "scale": "Drag along a known length, or click both ends",
    "length": "Drag, or click each point and double-click the last",
    "area": "Drag around the area, or click each corner and double-click the last",
}
_FEWEST = {"scale": 2, "length": 2, "area": 3}


class Drawing(QObject):
    """A line or outline being drawn on a canvas.

    Meanwhile it handles the canvas' mouse and keys; the wheel still zooms. Arrow keys move a crosshair.
    Return sets a point there, or ends the shape if one was just set; Backspace removes the last one.

    `measure`: returns the text shown beside the shape, for a mode and points.
    """

    drawn = Signal(str, object)  # (str, (K, 2)): the mode and the points, in the image's units
    mode_changed = Signal(str)  # "scale", "length", "area", or nothing

    def __init__(self, canvas: ImageCanvas, measure: Callable[[str, Vertices], str]) -> None:
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
        """Start drawing a "scale", a "length" or an "area"; an empty mode cancels the drawing."""
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
                return False  # a drag pans
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
        moves = {
            Qt.Key.Key_Left: (-step, 0),
            Qt.Key.Key_Right: (step, 0),
            Qt.Key.Key_Up: (0, -step),
            Qt.Key.Key_Down: (0, step),
        }
        view = self._canvas.viewport
        if key in moves:
            x, y = self._cursor or view.centre
            across, down = moves[Qt.Key(key)]
            self._cursor = self._clamped((x + across / view.scale, y + down / view.scale))
            self._scroll_to(*self._cursor)
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

    def _scroll_to(self, x: float, y: float) -> None:
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
            corners = np.array(points)
            closed = self.mode == "area" and len(points) > 2
            polygon = polygon_of(corners, viewport.scale, viewport.across, viewport.down)
            paint_shape(painter, polygon, closed=closed, strong=True)
            text = self._measure(self.mode, corners)
            paint_tag(painter, tag_box(viewport, QPointF(*viewport.to_screen(*points[-1])), text), text)
        _paint_hint(painter, viewport, f"{WORDS[self.mode]}; Esc to cancel")


def _paint_cross(painter: QPainter, position: QPointF) -> None:
    for pen in (QPen(theme.colour(theme.DARK.canvas, 190), 3.4), QPen(QColor(theme.DARK.accent), 1.4)):
        painter.setPen(pen)
        for across, down in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            near, far = QPointF(3 * across, 3 * down), QPointF(10 * across, 10 * down)
            painter.drawLine(position + near, position + far)


def _paint_hint(painter: QPainter, viewport: Viewport, text: str) -> None:
    """Paint the hint, above the marks at the lower edge."""
    painter.save()
    frame = enlarge(painter, QRectF(0, 0, viewport.width, viewport.height))
    painter.setFont(theme.font())
    room = QRectF(0, 0, max(frame.width() - 48, 40), 200)
    flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
    box = painter.boundingRect(room, int(flags), text).adjusted(-10, -5, 10, 5)
    box.moveCenter(QPointF(frame.width() / 2, 0))
    box.moveBottom(frame.height() - LOWER_EDGE)
    paint_chip_ground(painter, box)
    painter.setPen(QColor(theme.DARK.text))
    painter.drawText(box, int(flags), text)
    painter.restore()
