"""Canvas of one image with its clicks and spots: pan, zoom, select, add and move by mouse or key."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from raterscope.widgets import theme
from raterscope.widgets.canvas import image_painting
from raterscope.widgets.canvas.annotation_layers import SMALLEST_RADIUS
from raterscope.widgets.canvas.image_painting import paint_scale_bar
from raterscope.widgets.canvas.layer_stack import LayerStack, Pixels
from raterscope.widgets.canvas.viewport import FIT_MARGIN, DetectionMarks, Minimap, Rect, Viewport
from raterscope.widgets.divider import STEP, Divider, Sides, paint_divider, paint_titles
from raterscope.widgets.figure_menu import FigureMenu, WholeView
from raterscope.widgets.hints import ChipRow, KeyHelp
from raterscope.widgets.painting import paint_focus_frame
from raterscope.widgets.parts import ARROWS, announce

EDGE = 12
FRAME_EDGE = 24.0
"""Margin inside a spot's frame for its mark and number, in pixels."""
PAN_STEP, FINE_STEP = 64, 8
ZOOM_STEP = 1.25
DRAG_FROM = 4.0
NOTCH = 120
"""Rotation of a wheel by one notch, in Qt's units."""

CHIPS = {
    "clicks": ("clicks", "Every annotator's clicks, in colour and shape; outliers as thin strokes"),
    "ellipses": ("ellipses", "95 % of the clicks on a spot fall inside its ellipse"),
    "detections": ("detections", "Detections, coloured by state, and spot numbers"),
    "truth": ("truth", "Ground truth, as white crosshairs"),
    "density": ("density", "Clicks per square pixel, as a heat map"),
}


class ImageCanvas(WholeView):
    """Interactive canvas of one image with its clicks and spots.

    The wheel and + and - zoom, a drag and the arrow keys pan, 0 shows the whole image. Holding Space shows
    the image alone.
    """

    layer_toggled = Signal(str, bool)
    spot_clicked = Signal(int)  # index of the spot in the `DetectionMarks` shown
    place_double_clicked = Signal(float, float)  # in mode "look", at a position without a spot
    place_chosen = Signal(float, float)  # in mode "add"
    spot_moved = Signal(int, float, float)  # in mode "move": the selected spot and its new position
    mode_changed = Signal(str)  # "look", "add" or "move"
    # plane_stepped, time_stepped: steps of the wheel with Alt, and with Shift
    plane_stepped = Signal(int)
    time_stepped = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumSize(240, 180)
        self.setAccessibleName("Image")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.viewport = Viewport(max(1, self.width()), max(1, self.height()))
        """Visible part of the image."""
        self.fitted = True
        """True while the view is fitted to the whole image."""
        self.layers = LayerStack(self.viewport, self)
        self.layers.changed.connect(self.update)
        self.layers.part_changed.connect(self._update_part)
        self.layers.arrived.connect(self._on_arrived)
        self.divider = Divider(self)
        self.divider.moved.connect(self.update)
        self._pixel_size: float | None = None
        self._partial: tuple[NDArray[np.floating], NDArray[np.floating]] | None = None
        self._selected: int | None = None
        self._hovered: int | None = None
        self._annotator: int | None = None
        self.cross_hair: tuple[tuple[float, float], str] | None = None
        self.over_marks: list[Callable[[QPainter, Viewport], None]] = []
        """Painters above the marks, called in every frame, in the widget's pixels."""
        self._empty = True
        self._waiting = self._plane = ""
        self._chips = ChipRow(CHIPS, self)
        self._chips.toggled.connect(self._on_chip)
        for name, on in self.layers.visible.items():
            self._chips.set_on(name, on)
        self._minimap = Minimap(self)
        self._minimap.place_chosen.connect(self.centre_on)
        self._minimap.hide()
        self.mode = "look"
        """Mode of a click: "look", "add" or "move"."""
        self._cursor = (0.0, 0.0)
        self._turned = 0
        self._pressed: QPointF | None = None
        self._dragged_from: Viewport | None = None
        self._divides = False
        self.menu = FigureMenu(self, self, with_svg=False)

    # What is shown -----------------------------------------------------------------------------

    def clear_image(self) -> None:
        """Show nothing, until the next image."""
        self.set_image(None, (0, 0, 1, 1))
        self._empty = True

    def set_image(self, image: Pixels | None, extent: Rect, *, pixel_size: float | None = None) -> None:
        """Show an image under the unchanged clicks and spots; with another extent, show all of it.

        `image`: (H, W) or (H, W, 3), or a source of its tiles. None if the pixels are missing; then a frame
        shows the extent. `extent`: (left, top, right, bottom) of the image, in the units of the clicks.
        `pixel_size`: micrometres per unit.
        """
        left, top, right, bottom = (float(edge) for edge in extent)
        if right <= left or bottom <= top:
            raise ValueError(f"the image's extent is {extent}; expected a width and height above 0")
        elsewhere, self._empty = (left, top, right, bottom) != self.extent, False
        self.layers.set_image(image, (left, top, right, bottom))
        self._waiting = ""
        self._pixel_size = pixel_size
        self._show_overview()
        if elsewhere:
            self.fit()
        else:
            self._show_viewport()

    def set_plane(self, text: str) -> None:
        """Show the focal plane and time of a stack on screen; empty for an image with one plane."""
        if text != self._plane:
            self._plane = text
            self.select(self._selected)
            self.update()

    def set_waiting(self, text: str) -> None:
        """Show why the image is not loaded yet."""
        self._waiting = text
        self.update()

    @property
    def extent(self) -> Rect:
        """Left, top, right, bottom of the image."""
        return self.layers.extent

    def set_pixel_size(self, micrometres: float | None) -> None:
        """Set the number of micrometres per unit of the image."""
        self._pixel_size = micrometres
        self.update()

    def choose_annotator(self, annotator: int | None) -> None:
        """Ring the clicks of one annotator."""
        self._annotator = annotator
        self.update()

    def set_detections(self, spots: DetectionMarks) -> None:
        """Show spots; the selection is kept if only states changed."""
        if self._partial is not None or self._hovered is not None:  # its text may change
            self._partial = None
            self.update()
        if self.layers.set_detections(spots):
            self._selected = self._hovered = None

    def set_compared(self, spots: DetectionMarks | None, sides: Sides | None) -> None:
        """Show other spots right of the divider; None shows the same spots everywhere again."""
        self.divider.set_sides(sides)
        self.layers.set_compared(spots)

    def set_compared_images(self, images: tuple[Pixels, Pixels] | None, sides: Sides | None) -> None:
        """Show two images, left and right of the divider; None shows the image of `set_image` again."""
        self.divider.set_sides(sides)
        self.layers.set_compared_images(images)

    def set_partial(self, mean: NDArray[np.floating] | None, covariance: NDArray[np.floating] | None) -> None:
        """Show the partial result of a running job instead of the spots; None shows the spots again."""
        self._partial = None if mean is None or covariance is None else (mean, covariance)
        self.update()

    def set_layer_visible(self, name: str, visible: bool) -> None:
        """Show or hide clicks, ellipses, detections, truth or density."""
        if self.layers.visible[name] != visible:
            self._chips.set_on(name, visible)
            self.layers.set_visible(name, visible)

    def select(self, index: int | None) -> None:
        """Select and frame one spot, without moving it."""
        for framed in (self._selected, index):
            if framed is not None and framed < len(self.layers.spots.spots):
                position, long = self._on_screen(framed)
                half = FRAME_EDGE + long + 3
                self.update(
                    QRectF(position.x() - half, position.y() - half, 2 * half, 2 * half).toAlignedRect()
                )
        self._selected = index
        words = self.layers.spots.spots.text_of(index) if index is not None else ("no spot selected", "")
        description = ", ".join(part for part in (*words, self._plane) if part)
        if description != self.accessibleDescription():
            self.setAccessibleDescription(description)
            announce(self, description)
        if self.mode == "move":
            self.set_mode("look")

    def set_mode(self, mode: str) -> None:
        """Set the effect of a click: select a spot ("look"), add one, or move the selected one."""
        if mode not in {"look", "add", "move"}:
            raise ValueError(f"mode {mode!r}; expected look, add or move")
        if mode == "move" and self._selected is None:
            mode = "look"
        if mode == "add":
            self._cursor = self.viewport.centre
        elif mode == "move" and self._selected is not None:
            spots = self.layers.spots.spots
            self._cursor = (float(spots.x[self._selected]), float(spots.y[self._selected]))
        cursor = Qt.CursorShape.ArrowCursor if mode == "look" else Qt.CursorShape.CrossCursor
        self.setCursor(cursor)
        changed, self.mode = mode != self.mode, mode
        self._show_cross_hair()
        if changed:
            self.mode_changed.emit(mode)

    # Visible part ------------------------------------------------------------------------------

    def fit(self) -> None:
        """Show the whole image."""
        self.fitted = True
        top = 0 if self._chips.isHidden() else self._chips.geometry().bottom()
        self._set_viewport(self.viewport.framing(self.extent, FIT_MARGIN, top=top))

    def look_at(self, x: float, y: float, radius: float) -> None:
        """Pan to a spot and its surroundings.

        The scale stays if the spot is easily seen at it; nothing moves if the spot is also well inside the
        view.
        """
        view = self.viewport.looking_at(
            x, y, radius, self.extent, frame=FRAME_EDGE, top=self._chips.geometry().bottom()
        )
        if view != self.viewport:
            self.fitted = False
            self._hover(None)  # the spot is no longer under the mouse
            self._set_viewport(view)

    def look_from(self, x: float, y: float, scale: float) -> None:
        """Centre a position at a scale: widget pixels for one unit of the image."""
        self.fitted = False
        self._set_viewport(self.viewport.centred(x, y, scale).held_to(self.extent))

    def centre_on(self, x: float, y: float) -> None:
        """Centre a position."""
        self.fitted = False
        self._set_viewport(self.viewport.centred(x, y))

    def zoom(self, factor: float, about: QPointF | None = None) -> None:
        """Zoom around a position of the widget, or around its centre."""
        view = self.viewport
        position = about if about is not None else QPointF(view.width / 2, view.height / 2)
        self.fitted = False
        self._set_viewport(view.zoomed(factor, position.x(), position.y()).held_to(self.extent))

    def pan(self, across: float, down: float) -> None:
        """Pan by some pixels."""
        self._drag_to(self.viewport.panned(across, down))

    def _drag_to(self, viewport: Viewport) -> None:
        self.fitted = False
        self._set_viewport(viewport.held_to(self.extent))

    def _set_viewport(self, viewport: Viewport) -> None:
        self.viewport = viewport
        self._show_viewport()

    def _show_viewport(self) -> None:
        self._minimap.follow(self.viewport)
        self.layers.show_viewport(self.viewport, self.devicePixelRatioF())

    # Painting ----------------------------------------------------------------------------------

    def sizeHint(self) -> QSize:
        """Return the preferred size."""
        return QSize(900, 640)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Copy the tiles, then paint everything that follows mouse and keys."""
        with QPainter(self) as painter:
            if self._empty:  # before the first image, there is neither frame nor scale bar
                painter.fillRect(self.rect(), QColor(theme.DARK.canvas))
            else:
                self._paint(painter)
            if self._hovered is not None and self._partial is None and not self.layers.bare:
                position, long = self._on_screen(self._hovered)
                title, line = self.layers.spots.spots.text_of(self._hovered)
                state = self.layers.spots.spots.state[self._hovered]
                image_painting.paint_text(painter, self.viewport, position, long + 10, title, line, state)
            if self.hasFocus() and not self.layers.bare:
                paint_focus_frame(painter, QRectF(0, 0, self.viewport.width, self.viewport.height))

    def _paint(self, painter: QPainter) -> None:
        view = self.viewport
        divider = self.divider.across(view.width)
        self.layers.paint(painter, self.devicePixelRatioF(), divider, spots=self._partial is None)
        if self.layers.bare:
            paint_scale_bar(painter, QPointF(EDGE, view.height - EDGE), view.scale, self._pixel_size)
            return
        if divider is not None:
            paint_divider(painter, divider, view.height)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self._annotator is not None and self.layers.visible["clicks"]:
            image_painting.paint_chosen(painter, view, *self.layers.crowd.of(self._annotator, view))
        if self._partial is not None:
            image_painting.paint_partial(painter, view, *self._partial, self.layers.spots.coverage)
        elif self._selected is not None:
            position, long = self._on_screen(self._selected)
            image_painting.paint_frame(painter, position, FRAME_EDGE + long)
        for paint in self.over_marks:
            paint(painter, view)
        if self.cross_hair is not None:
            image_painting.paint_cross_hair(painter, view, *self.cross_hair)
        paint_scale_bar(painter, QPointF(EDGE, view.height - EDGE), view.scale, self._pixel_size)
        if self.layers.crowd.as_density or self.layers.visible["density"]:
            instead = self.layers.crowd.as_density and not self.layers.visible["density"]
            image_painting.paint_density_bar(painter, view, self.layers.crowd.highest, instead)
        if self._plane:
            image_painting.paint_plane(painter, view, self._plane)
        if self._waiting:
            image_painting.paint_waiting(painter, view, self._waiting)

    def _on_screen(self, index: int) -> tuple[QPointF, float]:
        """Return a spot's position and radius in the widget."""
        spots, view = self.layers.spots.spots, self.viewport
        position = QPointF(*view.to_screen(float(spots.x[index]), float(spots.y[index])))
        return position, max(self.layers.spots.radius(index) * view.scale, SMALLEST_RADIUS)

    def paint_picture(self, painter: QPainter) -> None:
        """Paint the visible part, with its marks."""
        self._paint(painter)
        across, sides = self.divider.across(self.width()), self.divider.sides
        if across is not None and sides is not None:
            titles = [side.title for side in sides]
            paint_titles(painter, across, titles, self._chips.geometry().bottom())

    # What changes ------------------------------------------------------------------------------

    def _update_part(self, part: QRectF) -> None:
        """Repaint a rectangle of the image."""
        corners = (
            QPointF(*self.viewport.to_screen(point.x(), point.y()))
            for point in (part.topLeft(), part.bottomRight())
        )
        self.update(QRectF(*corners).toAlignedRect())

    def _show_overview(self) -> None:
        width, height = self._minimap.room(self.extent)
        self._minimap.set_picture(self.layers.image.thumbnail(width, height), self.extent)

    def _on_arrived(self) -> None:
        if not self._minimap.has_picture:
            self._show_overview()
            self._minimap.follow(self.viewport)
        self.update()

    def _on_chip(self, name: str, on: bool) -> None:
        self.set_layer_visible(name, on)
        self.layer_toggled.emit(name, on)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Place the chips, and keep the same part visible."""
        self._chips.fit(self.width() - 2 * EDGE)
        self._chips.move(EDGE, EDGE)
        self.divider.place(self.rect(), self._chips.geometry().bottom())
        size, was_inside = event.size(), self._cut_off() is None
        self.viewport = self.viewport.resized(max(1, size.width()), max(1, size.height()))
        if self.fitted:
            self.fit()
        else:
            self._set_viewport(self.viewport)
            position = self._cut_off()
            if was_inside and position is not None:
                self.centre_on(*self.viewport.to_image(position.x(), position.y()))

    def _cut_off(self) -> QPointF | None:
        """Return the selected spot's position in the widget if its frame is not inside; else None."""
        if self._selected is None or self._selected >= len(self.layers.spots.spots):
            return None
        position, long = self._on_screen(self._selected)
        half, view = FRAME_EDGE + long, self.viewport
        inside = QRectF(0, 0, view.width, view.height).adjusted(half, half, -half, -half)
        return None if inside.contains(position) else position

    def spot_at(self, x: float, y: float) -> int | None:
        """Return the spot at a position of the image; None if none is visible."""
        layers, view = self.layers, self.viewport
        divider = self.divider.across(view.width)
        if layers.compared is not None and divider is not None and view.to_screen(x, y)[0] > divider:
            return None
        return layers.spots.at(x, y, view.scale) if layers.any_spots and self._partial is None else None

    # Mouse and keys ----------------------------------------------------------------------------

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom around the mouse; with Alt or Shift, step through focal planes or times."""
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
        """Pan while a button is held; otherwise report the object under the mouse."""
        position = event.position()
        if self._divides:
            self._hover(None)
            self.setCursor(Qt.CursorShape.SplitHCursor)
            self.divider.move(position.x() / self.width())
            return
        if self._pressed is not None:
            offset = position - self._pressed
            if self._dragged_from is None and offset.manhattanLength() >= DRAG_FROM:
                self._dragged_from = self.viewport
            if self._dragged_from is not None:
                self._drag_to(self._dragged_from.panned(offset.x(), offset.y()))
            return
        x, y = self.viewport.to_image(position.x(), position.y())
        if self.mode != "look":
            self._cursor = (x, y)
            self._show_cross_hair()
            return
        self._hover(self.spot_at(x, y))
        if self.divider.is_at(position.x(), self.width()):
            self.setCursor(Qt.CursorShape.SplitHCursor)
        elif self._hovered is None:
            self.setCursor(Qt.CursorShape.ArrowCursor)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Select a spot or a position, unless the image was dragged."""
        self._divides = False
        dragged, self._dragged_from = self._dragged_from is not None, None
        pressed, self._pressed = self._pressed is not None, None
        if dragged or not pressed or event.button() != Qt.MouseButton.LeftButton:
            return
        x, y = self.viewport.to_image(event.position().x(), event.position().y())
        if self.mode != "look":
            self._cursor = (x, y)
            self._choose_place()
            return
        index = self.spot_at(x, y)
        if index is not None:
            self.spot_clicked.emit(index)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Select a position without a spot."""
        x, y = self.viewport.to_image(event.position().x(), event.position().y())
        if self.mode == "look" and self.spot_at(x, y) is None and self.is_inside(x, y):
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
        """Pan, zoom and fit; in other modes move the crosshair and select."""
        key, fine = event.key(), bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        control = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        if control and key in ARROWS and self.divider.sides is not None:
            self.divider.move(self.divider.share + STEP * ARROWS[Qt.Key(key)][0])
        elif key in ARROWS:
            across, down = ARROWS[Qt.Key(key)]
            if self.mode == "look":
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
            self.layers.set_bare(True)
        elif self.mode != "look" and key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._choose_place()
        elif self.mode != "look" and key == Qt.Key.Key_Escape:
            self.set_mode("look")
        else:
            super().keyPressEvent(event)

    def keyReleaseEvent(self, event: QKeyEvent) -> None:
        """Show the marks again."""
        if event.key() == Qt.Key.Key_Space:
            if not event.isAutoRepeat():
                self.layers.set_bare(False)
        else:
            super().keyReleaseEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Show the marks again, because the key may be released elsewhere."""
        self.layers.set_bare(False)
        super().focusOutEvent(event)

    def _nudge(self, across: int, down: int, step: int) -> None:
        scale = self.viewport.scale
        self._cursor = (self._cursor[0] + across * step / scale, self._cursor[1] + down * step / scale)
        position = self.viewport.to_screen(*self._cursor)
        if not (0 <= position[0] < self.viewport.width and 0 <= position[1] < self.viewport.height):
            self.centre_on(*self._cursor)
        self._show_cross_hair()

    def _show_cross_hair(self) -> None:
        self.cross_hair = None if self.mode == "look" else (self._cursor, self.mode)
        self.update()

    def _choose_place(self) -> None:
        x, y = self._cursor
        if not self.is_inside(x, y):
            return
        if self.mode == "add":
            self.place_chosen.emit(x, y)
        elif self.mode == "move" and self._selected is not None:
            index = self._selected
            self.set_mode("look")
            self.spot_moved.emit(index, x, y)

    def is_inside(self, x: float, y: float) -> bool:
        """Return whether a position is on the image."""
        left, top, right, bottom = self.extent
        return left <= x <= right and top <= y <= bottom

    def _hover(self, index: int | None) -> None:
        if index != self._hovered:
            self._hovered = index
            shape = Qt.CursorShape.ArrowCursor if index is None else Qt.CursorShape.PointingHandCursor
            if self.mode == "look":
                self.setCursor(shape)
            self.update()
