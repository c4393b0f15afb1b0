"""Interactive view of one plane of a volume: slices, crosshair, zoom, window, brush, by mouse or key."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPainterPathStroker,
    QPaintEvent,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from raterscope.widgets import theme
from raterscope.widgets.canvas.viewport import Viewport
from raterscope.widgets.divider import GRIP, STEP, paint_titles
from raterscope.widgets.figure_menu import FigureMenu, WholeView
from raterscope.widgets.hints import KeyHelp
from raterscope.widgets.painting import paint_focus_frame
from raterscope.widgets.parts import ARROWS, plain_tip
from raterscope.widgets.theme import pixels
from raterscope.widgets.volume import overlay
from raterscope.widgets.volume.overlay import LONGEST, ROI, RULER, Measurement
from raterscope.widgets.volume.plane import Index, Plane
from raterscope.widgets.volume.scene import Outline, Outliner, Scene
from raterscope.widgets.volume.slice_painter import (
    BELOW_TITLE,
    BrushStroke,
    ContourStroke,
    Projector,
    SlicePainter,
    boxes_on,
    slab_text,
)

FIT_MARGIN = 22.0
LOOK_SHARE = 0.4
"""Maximum share of the view's smaller side for the target of `look_at`."""

ZOOM_STEP = 1.25
DRAG_FROM = 4.0
NEAR = 4.0
"""Maximum distance of a click on a line, in pixels."""

OBLIQUE_FROM = 3.0
"""Minimum angle, in degrees, between slices and the patient's plane for a remark."""

NOTCH = 120
"""Rotation of a wheel by one notch, in eighths of a degree."""


class SliceView(WholeView):
    """Interactive view of one plane.

    The wheel, Up and Down scroll through slices. A click, a drag, Left, Right and Shift with any arrow move
    the crosshair. Ctrl with the wheel, + and - zoom; 0 fits the slice. A drag with the middle button, or with
    Space, pans; Space also hides the marks. A drag with the right button changes the window; a right click
    opens the menu. A double click or Return enlarges the view, or restores it. With the brush, a drag draws
    (with Shift, it erases), Return draws a disc at the crosshair, [ and ] change the size, Esc cancels a
    stroke. The eraser does the opposite. A drag around an area with the contour tool fills the area.
    """

    pointed = Signal(object)  # (slice, row, column): requested position of the crosshair
    enlarged = Signal()
    window_dragged = Signal(float, float)  # pixels to the right and up since the drag began
    window_settled = Signal()  # end of the drag
    painted = Signal(object)  # a `Stroke`
    radius_stepped = Signal(int)  # 1 wider, -1 narrower
    box_clicked = Signal(int)
    outline_clicked = Signal(str)
    bared = Signal(bool)  # whether to show the image without overlays
    hovered = Signal(object)  # (slice, row, column) under the mouse; None outside the slice
    measured = Signal(object)  # a `Measurement` in progress
    divider_moved = Signal(float)  # share of the width left of the divider

    def __init__(
        self, scene: Scene, outliner: Outliner, projector: Projector, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setMinimumSize(80, 80)
        self.menu = FigureMenu(self, self, with_svg=False, by_click=False)
        self._drag = ""
        self._pressed = QPointF()
        self._dragged_from: Viewport | None = None
        self._turned = 0
        self._space = False
        self._scene, self._outliner = scene, outliner
        self._painter = SlicePainter(scene, outliner, projector)
        self.plane: Plane | None = None
        """Orientation of the slices."""
        self._large = False
        self.viewport = Viewport(max(1, self.width()), max(1, self.height()))
        """Visible part, in the plane's units."""
        self._fitted = True
        self._stroke: BrushStroke | None = None
        self._pointer: tuple[float, float] | None = None

    # What is shown -----------------------------------------------------------------------------

    def set_plane(self, plane: Plane) -> None:
        """Show the whole plane of another volume."""
        self.plane = plane
        self._painter.forget_pixels()
        self.setAccessibleName(plane.name.capitalize() + " view" if plane.letters[0] else "Image")
        self.fit()

    @property
    def index(self) -> int:
        """Index of the slice shown."""
        return self._scene.index[self.plane.normal] if self.plane is not None else 0

    def set_large(self, large: bool) -> None:
        """Set whether this view has the labels for all views."""
        self._large = large
        self.update()

    def changed(self, *, below: bool = False) -> None:
        """Repaint the cache, or only the layers below the outlines: grey values and heat map."""
        self._painter.changed(below=below)
        self.update()

    def projected(self) -> None:
        """Show a newly computed projection."""
        self._painter.forget_pixels()
        self.changed(below=True)

    def find_outlines(self) -> None:
        """Find the changed outlines of the slice; repaint the view if there are any."""
        if self.plane is not None:
            self._outliner.paths(self.plane, self.index, self._scene.shape_keys())

    def title(self) -> str:
        """Return plane and slice: "AXIAL 81 / 160"."""
        plane = self.plane
        if plane is None:
            return ""
        name = plane.name.upper()
        if plane.slices == 1:
            return name if plane.letters[0] else "IMAGE"
        return f"{name} {self.index + 1} / {plane.slices}"

    def remark(self) -> str:
        """Describe special properties of the slice: "oblique 8°, MIP 10 mm"."""
        plane, words = self.plane, []
        if plane is not None and plane.oblique >= OBLIQUE_FROM:
            words.append(f"oblique {plane.oblique:.0f}°")
        if plane is not None and plane.slices > 1 and self._scene.slab:
            words.append(slab_text(self._scene.slab))
        return ", ".join(words)

    # Where it is looked at ---------------------------------------------------------------------

    def fit(self) -> None:
        """Show the whole plane."""
        self._fitted = True
        if self.plane is not None:
            self._set_viewport(self.viewport.framing(self.plane.extent, FIT_MARGIN))

    def zoom(self, factor: float, about: QPointF | None = None) -> None:
        """Zoom around a position of the widget, or around the crosshair."""
        plane, view = self.plane, self.viewport
        if plane is None:
            return
        if about is None:
            x, y = view.to_screen(*plane.position_of(self._scene.index))
        else:
            x, y = about.x(), about.y()
        self._fitted = False
        self._set_viewport(view.zoomed(factor, x, y).held_to(plane.extent))

    def look_at(self, origin: Index, shape: Index) -> None:
        """Pan to a part of the volume; zoom in if it is too small to be seen well."""
        plane = self.plane
        if plane is None:
            return
        left, top, right, bottom = plane.box_of(origin, shape)
        view, fitted = self.viewport, self.viewport.framing(plane.extent, FIT_MARGIN)
        room = LOOK_SHARE * min(view.width, view.height)
        ideal = room / max(right - left, bottom - top, 1e-9)
        visible = view.visible
        inside = visible[0] <= left and visible[1] <= top and right <= visible[2] and bottom <= visible[3]
        if inside and ideal / 3 <= view.scale <= ideal:
            return
        self._fitted = False
        # At most eight times the whole plane, so that surroundings stay visible.
        scale = min(max(ideal, fitted.scale), 8 * fitted.scale)
        middle = view.centred((left + right) / 2, (top + bottom) / 2, scale)
        self._set_viewport(middle.kept_on(plane.extent, FIT_MARGIN))

    def keep_visible(self) -> None:
        """Pan until the crosshair is visible."""
        plane, view = self.plane, self.viewport
        if plane is None or self._fitted:
            return
        position = plane.position_of(self._scene.index)
        x, y = view.to_screen(*position)
        if not (0 <= x < view.width and 0 <= y < view.height):
            self._set_viewport(view.centred(*position).kept_on(plane.extent, FIT_MARGIN))

    def _set_viewport(self, viewport: Viewport) -> None:
        if viewport != self.viewport:
            self.viewport = viewport
        self.changed()

    def sizeHint(self) -> QSize:
        """Return the preferred size."""
        return QSize(640, 520)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the whole plane visible, or the centre in the centre."""
        size = event.size()
        self.viewport = self.viewport.resized(max(1, size.width()), max(1, size.height()))
        if self._fitted:
            self.fit()
        self.changed()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Copy the cached picture, then paint moving contents."""
        with QPainter(self) as painter:
            self._paint(painter)
            if self.hasFocus() and self.plane is not None:
                paint_focus_frame(painter, QRectF(0, 0, self.viewport.width, self.viewport.height))
                if self._scene.notice:
                    overlay.paint_notice(painter, self.viewport, self._scene.notice)

    # Mouse -------------------------------------------------------------------------------------

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scroll through slices; with Ctrl, zoom around the mouse."""
        delta = event.angleDelta().y()
        event.accept()
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.zoom(1.0015**delta, event.position())
            return
        self._turned += delta
        notches = int(self._turned / NOTCH)
        if notches:
            self._turned -= notches * NOTCH
            self.step(notches)
            self._hover(event.position())

    def step(self, slices: int) -> None:
        """Move some slices up: to the head, the front or the right."""
        plane = self.plane
        if plane is not None and plane.slices > 1 and self._stroke is None:
            index = list(self._scene.index)
            index[plane.normal] = min(max(self.index + slices * plane.next_up, 0), plane.slices - 1)
            self.pointed.emit((index[0], index[1], index[2]))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Begin a drag or a click."""
        plane, button = self.plane, event.button()
        if plane is None or self._drag:
            return
        self._pressed, self._dragged_from = event.position(), None
        if button == Qt.MouseButton.LeftButton and self._on_divider(event.position()):
            self._drag = "divider"
        elif button == Qt.MouseButton.MiddleButton or (button == Qt.MouseButton.LeftButton and self._space):
            self._drag, self._dragged_from = "pan", self.viewport
            self.setCursor(Qt.CursorShape.ClosedHandCursor)
        elif button == Qt.MouseButton.RightButton:
            self._drag = "window"
        elif button == Qt.MouseButton.LeftButton and self._scene.tool in (RULER, ROI):
            self._drag = "measure"
            self._begin_measuring(plane, event.position())
        elif button == Qt.MouseButton.LeftButton and self._scene.tool != "look":
            self._drag = "brush"
            other_way = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
            self._begin_stroke(plane, puts_in=(self._scene.tool != "eraser") != other_way)
            self._draw_to(event.position())
        elif button == Qt.MouseButton.LeftButton:
            self._drag = "point"
            self._point_at(plane, event.position())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Continue a drag; show the brush under the mouse."""
        plane, position = self.plane, event.position()
        if plane is None:
            return
        self._hover(position)
        offset = position - self._pressed
        if self._drag == "pan" and self._dragged_from is not None:
            self._fitted = False
            self._set_viewport(self._dragged_from.panned(offset.x(), offset.y()).held_to(plane.extent))
        elif self._drag == "window":
            self.window_dragged.emit(offset.x(), -offset.y())
        elif self._drag == "point" and offset.manhattanLength() >= DRAG_FROM:
            self._dragged_from = self.viewport
            self._point_at(plane, position)
        elif self._drag == "divider":
            self.divider_moved.emit(position.x() / self.width())
        elif self._drag == "measure":
            self._measure_to(position)
        elif self._drag == "brush":
            self._draw_to(position)
        elif self._scene.tool != "look":
            self._pointer = self.viewport.to_image(position.x(), position.y())
            self.update()
        if not self._drag and self._scene.sides is not None:
            self.show_cursor(over_divider=self._on_divider(position))

    def _on_divider(self, position: QPointF) -> bool:
        across = self._scene.divider * self.width()
        return self._scene.sides is not None and abs(position.x() - across) <= GRIP

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """End a drag; a click also selects the object under it."""
        drag, self._drag = self._drag, ""
        if drag == "pan":
            self.show_cursor()
        elif drag == "window":
            self.window_settled.emit()
            if (event.position() - self._pressed).manhattanLength() < DRAG_FROM:
                self.menu.menu.popup(event.globalPosition().toPoint())
        elif drag == "brush":
            self._end_stroke()
        elif drag == "point" and self._dragged_from is None:
            self._choose(event.position())

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Enlarge this view, or show all three again."""
        if event.button() == Qt.MouseButton.LeftButton and self._scene.tool == "look":
            self.enlarged.emit()
        else:
            self.mousePressEvent(event)

    def event(self, event: QEvent) -> bool:
        """Show the names of the outlines under the resting mouse in a tooltip."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            near = self._outlines_at(self.plane, QPointF(event.pos())) if self.plane is not None else []
            text = ", ".join(outline.name for outline in near)
            QToolTip.showText(event.globalPos(), plain_tip(text), self)
            return True
        return super().event(event)

    def leaveEvent(self, _event: QEvent) -> None:
        """Hide the brush."""
        self._pointer = None
        self.hovered.emit(None)
        self.update()

    def _hover(self, position: QPointF) -> None:
        plane = self.plane
        if plane is None:
            return
        x, y = self.viewport.to_image(position.x(), position.y())
        left, top, right, bottom = plane.extent
        inside = left <= x < right and top <= y < bottom
        self.hovered.emit(plane.index_at(x, y, self._scene.index) if inside else None)

    # As a picture -----------------------------------------------------------------------------

    def paint_picture(self, painter: QPainter) -> None:
        """Paint the visible part, with outlines and crosshair."""
        self._paint(painter)
        if self._scene.sides is not None and self._large:
            titles = [layers.title for layers in self._scene.sides]
            paint_titles(painter, self._scene.divider * self.width(), titles, pixels(BELOW_TITLE))

    def _paint(self, painter: QPainter) -> None:
        if self.plane is None or self._scene.empty:
            painter.fillRect(self.rect(), QColor(theme.DARK.canvas))
            return
        self._painter.paint(
            painter, self.plane, self.viewport, self.devicePixelRatioF(),
            title=self.title(), remark=self.remark(),
            large=self._large, stroke=self._stroke, pointer=self._pointer,
        )  # fmt: skip

    # Keys --------------------------------------------------------------------------------------

    KEY_HELP = KeyHelp(
        "In the views of a volume",
        (
            ("Wheel", "scroll through slices"),
            ("Ctrl+Wheel", "zoom"),
            ("Up, Down", "scroll through slices"),
            ("Left, Right", "move crosshair by one voxel"),
            ("Shift+Up, Down", "move crosshair by one voxel"),
            ("Ctrl+Left, Right", "move the divider between two sides"),
            ("+", "zoom in"),
            ("-", "zoom out"),
            ("0", "show whole slice"),
            ("[ ]", "smaller, larger brush"),
            ("Space", "hide marks while held"),
            ("Return", "this view alone; with a brush, paint"),
            ("Drag", "crosshair; right button: window, middle: pan"),
        ),
    )

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move, zoom, draw."""
        key, plane = Qt.Key(event.key()), self.plane
        shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        control = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        if control and self._scene.sides is not None and key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            self.divider_moved.emit(self._scene.divider + STEP * ARROWS[key][0])
        elif plane is None or control:
            super().keyPressEvent(event)
        elif key in ARROWS:
            across, down = ARROWS[key]
            if down and not shift and plane.slices > 1:
                self.step(-down)
            else:
                self._nudge(plane, across, down)
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self.zoom(ZOOM_STEP)
        elif key in (Qt.Key.Key_Minus, Qt.Key.Key_Underscore):
            self.zoom(1 / ZOOM_STEP)
        elif key == Qt.Key.Key_0:
            self.fit()
        elif key in (Qt.Key.Key_BracketLeft, Qt.Key.Key_BracketRight):
            self.radius_stepped.emit(1 if key == Qt.Key.Key_BracketRight else -1)
        elif key == Qt.Key.Key_Space:
            if not self._space:
                self._space = True
                self.show_cursor()
                self.bared.emit(True)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._on_return(plane)
        elif key == Qt.Key.Key_Escape and self._stroke is not None:
            self.give_up_stroke()
        else:
            super().keyPressEvent(event)

    def keyReleaseEvent(self, event: QKeyEvent) -> None:
        """Stop panning with Space."""
        if event.key() == Qt.Key.Key_Space:
            if not event.isAutoRepeat():
                self._leave_space()
        else:
            super().keyReleaseEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Reset pressed keys, because they may be released elsewhere."""
        self._leave_space()
        super().focusOutEvent(event)

    def _leave_space(self) -> None:
        if not self._space:
            return
        self._space = False
        self.bared.emit(False)
        if self._drag != "pan":
            self.show_cursor()

    def show_cursor(self, *, over_divider: bool = False) -> None:
        """Set the cursor for the effect of a press."""
        shapes = Qt.CursorShape
        if over_divider:
            self.setCursor(shapes.SplitHCursor)
            return
        tool = shapes.ArrowCursor if self._scene.tool == "look" else shapes.CrossCursor
        self.setCursor(shapes.OpenHandCursor if self._space else tool)

    def _nudge(self, plane: Plane, across: int, down: int) -> None:
        if self._stroke is not None:
            return
        index = list(self._scene.index)
        for axis, offset in ((plane.across, across), (plane.down, down)):
            target = index[axis] + (-offset if plane.reversed[axis] else offset)
            index[axis] = min(max(target, 0), plane.shape[axis] - 1)
        self.pointed.emit((index[0], index[1], index[2]))

    def _on_return(self, plane: Plane) -> None:
        if self._scene.tool not in ("brush", "eraser"):
            self.enlarged.emit()
            return
        self._begin_stroke(plane, puts_in=self._scene.tool != "eraser")
        if self._stroke is not None:
            self._stroke.to(*plane.position_of(self._scene.index))
        self._end_stroke()

    # Measuring ---------------------------------------------------------------------------------

    def _begin_measuring(self, plane: Plane, position: QPointF) -> None:
        point = self.viewport.to_image(position.x(), position.y())
        earlier, kind = self._scene.measurement, self._scene.tool
        slice_shown = (plane.name, self.index, kind)
        if (
            kind == RULER
            and earlier is not None
            and (earlier.plane, earlier.slice, earlier.kind) == slice_shown
            and len(earlier.points) < LONGEST
        ):
            self.measured.emit(earlier.with_point(point))
        else:
            self.measured.emit(Measurement(*slice_shown, (point,)))

    def _measure_to(self, position: QPointF) -> None:
        current = self._scene.measurement
        point = self.viewport.to_image(position.x(), position.y())
        if current is not None:
            alone = len(current.points) == 1
            self.measured.emit(current.with_point(point) if alone else current.dragged(point))

    # Effects -----------------------------------------------------------------------------------

    def _point_at(self, plane: Plane, position: QPointF) -> None:
        x, y = self.viewport.to_image(position.x(), position.y())
        index: Index = plane.index_at(x, y, self._scene.index)
        if index != self._scene.index:
            self.pointed.emit(index)

    def _choose(self, position: QPointF) -> None:
        plane, view = self.plane, self.viewport
        if plane is None:
            return
        boxes = boxes_on(self._scene, plane)
        for region, box in reversed(boxes):
            frame = overlay.on_screen(view, box)
            label = self._painter.labels.get(region.number)
            on_edge = frame.adjusted(-7, -7, 7, 7).contains(position)
            on_edge = on_edge and not frame.adjusted(4, 4, -4, -4).contains(position)
            if on_edge or (label is not None and label.contains(position)):
                self.box_clicked.emit(region.number)
                return
        outlines = self._outlines_at(plane, position)
        if outlines:
            self.outline_clicked.emit(outlines[0].key)

    def _outlines_at(self, plane: Plane, position: QPointF) -> list[Outline]:
        """Return the outlines near a position, the uppermost first."""
        x, y = self.viewport.to_image(position.x(), position.y())
        disc = QPainterPathStroker()
        disc.setWidth(2 * NEAR / self.viewport.scale)
        paths = self._outliner.paths(plane, self.index, self._scene.shape_keys())
        return [
            outline
            for outline in reversed(self._outlines_on_side(position))
            if outline.key in paths and disc.createStroke(paths[outline.key]).contains(QPointF(x, y))
        ]

    def _outlines_on_side(self, position: QPointF) -> tuple[Outline, ...]:
        layers = self._scene.layers()
        return layers[-1 if position.x() > self._scene.divider * self.width() else 0].outlines

    def _begin_stroke(self, plane: Plane, *, puts_in: bool) -> None:
        stroke = ContourStroke if self._scene.tool == "contour" else BrushStroke
        scene = self._scene
        self._stroke = stroke(
            plane, scene.index, scene.radius, puts_in=puts_in, solid=scene.solid,
            paintable=partial(scene.paintable, plane),
        )  # fmt: skip

    def give_up_stroke(self) -> None:
        """Cancel the stroke; releasing the mouse then paints nothing."""
        if self._stroke is not None:
            self._stroke, self._drag = None, ""
            self.update()

    def _draw_to(self, position: QPointF) -> None:
        self._pointer = self.viewport.to_image(position.x(), position.y())
        if self._stroke is not None:
            self._stroke.to(*self._pointer)
        self.update()

    def _end_stroke(self) -> None:
        stroke, self._stroke = self._stroke, None
        done = stroke.finished() if stroke is not None else None
        self.update()
        if done is not None:
            self.painted.emit(done)
