"""3-D view of a structure: consensus coloured by a map, raters as wireframes, slices through it.

The camera is a parallel projection, rotated around the patient's long axis.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QHideEvent,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPen,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QWidget

from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.masks.surface import Surface, nearest_hit
from raterscope.widgets import theme
from raterscope.widgets.canvas.tiles import to_picture
from raterscope.widgets.figure_menu import FigureMenu, WholeView
from raterscope.widgets.hints import ChipRow, KeyHelp
from raterscope.widgets.theme import enlarge, text_size
from raterscope.widgets.volume import overlay
from raterscope.widgets.volume.scene import HeatMap, Scene
from raterscope.widgets.volume.surface_renderer import Mesh, SurfaceRenderer, corners_of

FloatArray = NDArray[np.float64]

_ZOOMS = 0.2, 40.0
_DEPTH = 8.0
"""Depth of the scene, in radii of the surface: slices and wireframes extend beyond it."""


@dataclass(frozen=True)
class Camera:
    """Direction and visible part of the scene; initially from the front, with the head up.

    `azimuth`, `elevation`: degrees to the patient's left and to the head. `centre`: (x, y, z) in millimetres,
    at the centre of the view. `radius`: millimetres from the centre to the edge of the view at zoom 1.
    """

    centre: tuple[float, float, float] = (0.0, 0.0, 0.0)
    radius: float = 1.0
    azimuth: float = 0.0
    elevation: float = 0.0
    zoom: float = 1.0

    @property
    def axes(self) -> FloatArray:
        """(3, 3): unit vectors to the right, up, and to the eye."""
        (sine, cosine), (up, level) = _wave(self.azimuth), _wave(self.elevation)
        right = np.array([cosine, sine, 0.0])
        eye = np.array([sine * level, -cosine * level, up])
        return np.stack([right, np.cross(eye, right), eye])

    def turned(self, azimuth: float, elevation: float) -> Camera:
        """Rotate by some degrees, at most to straight above or below."""
        return replace(
            self,
            azimuth=(self.azimuth + azimuth) % 360.0,
            elevation=min(max(self.elevation + elevation, -90.0), 90.0),
        )

    def zoomed(self, factor: float) -> Camera:
        """Zoom around the centre."""
        return replace(self, zoom=min(max(self.zoom * factor, _ZOOMS[0]), _ZOOMS[1]))

    def panned(self, right: float, down: float, size: tuple[int, int]) -> Camera:
        """Move the scene by some pixels."""
        across, up, _ = self.axes
        moved = np.array(self.centre) + (down * up - right * across) / self.scale(size)
        return replace(self, centre=(float(moved[0]), float(moved[1]), float(moved[2])))

    def scale(self, size: tuple[int, int]) -> float:
        """Return the pixels per millimetre, for (width, height) of a view."""
        return self.zoom * min(size) / (2.0 * self.radius)

    def project(self, positions: NDArray[np.floating], size: tuple[int, int]) -> FloatArray:
        """Convert (N, 3) millimetres to x and y in pixels and the depth, which grows towards the eye."""
        seen = (np.asarray(positions, dtype=float) - self.centre) @ self.axes.T
        scale = self.scale(size)
        return np.stack(
            [size[0] / 2 + seen[:, 0] * scale, size[1] / 2 - seen[:, 1] * scale, seen[:, 2]], axis=1
        )

    def unproject(self, x: float, y: float, depth: float, size: tuple[int, int]) -> FloatArray:
        """Convert pixels and a depth to millimetres: the inverse of `project`."""
        scale = self.scale(size)
        seen = np.array([(x - size[0] / 2) / scale, (size[1] / 2 - y) / scale, depth])
        return np.asarray(self.centre + seen @ self.axes)

    def matrix(self, size: tuple[int, int]) -> FloatArray:
        """(4, 4): millimetres to OpenGL's clip coordinates."""
        scale = self.scale(size)
        stretch = np.array([2 * scale / size[0], 2 * scale / size[1], -1 / (_DEPTH * self.radius)])
        turned = stretch[:, None] * self.axes
        matrix = np.eye(4)
        matrix[:3, :3], matrix[:3, 3] = turned, -turned @ np.array(self.centre)
        return matrix


def _wave(degrees: float) -> tuple[float, float]:
    angle = np.radians(degrees)
    return float(np.sin(angle)), float(np.cos(angle))


NO_OPENGL = (
    "The 3-D view needs OpenGL, which this session does not provide. Install a graphics driver, or Mesa for "
    "rendering without a graphics card. Everything else works as before."
)
EMPTY = "Nothing to show: the consensus is empty. Press Fuse (F5), or draw it with the brush (B)."

TURN = 15.0
"""Rotation by an arrow key, in degrees."""

DRAG_TURN = 0.5
"""Rotation per pixel of a drag, in degrees."""

ZOOM_STEP = 1.25
DRAG_FROM = 4.0
REST = 200
"""Milliseconds after the last rotation until edges are smoothed."""

SAMPLES = 4
ROOM = 1.15
"""Radius of the view, in radii of the surface."""

MARGIN = 0.3
"""Margin of the slices around the surface, as a share of its size."""

MAX_PIXELS = 256
_OPACITY = 0.75
_WIRE_ALPHA = 0.55
_LETTER_ROOM = 10.0
_TOWARDS_EYE = 0.85
_BAR_WIDTH, _BAR_LENGTH, _BAR_WORDS = 8.0, 110.0, 66.0
_LOWEST_WITH_BAR = 110.0
"""Minimum height of a view, in unscaled pixels, to show caption and colour bar besides the switches."""

_ARROWS = {
    Qt.Key.Key_Left: (TURN, 0.0),
    Qt.Key.Key_Right: (-TURN, 0.0),
    Qt.Key.Key_Up: (0.0, -TURN),
    Qt.Key.Key_Down: (0.0, TURN),
}
_LETTERS = (("L", (1, 0, 0)), ("R", (-1, 0, 0)), ("P", (0, 1, 0)), ("A", (0, -1, 0)), ("S", (0, 0, 1)),
            ("I", (0, 0, -1)))  # fmt: skip


@dataclass(frozen=True, eq=False)
class Wireframe:
    """The surface of one rater's mask, by its edges.

    `key`: key of the rater's outline.
    `colour`: hexadecimal.
    `corners`: (N, 3) float32, millimetres.
    `edges`: (K, 2) uint32.
    """

    key: str
    colour: str
    corners: NDArray[np.float32]
    edges: NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class SurfaceModel:
    """Contents of the view.

    `colours`: (N, 3) float32, red, green and blue of the corners of the surface, 0 to 1.
    `heat`: the map that the colours show.
    """

    title: str
    surface: Surface
    colours: NDArray[np.float32]
    heat: HeatMap | None
    wireframes: tuple[Wireframe, ...]


class SurfaceView(WholeView):
    """Surface of a structure with the slices through the crosshair.

    A drag or the arrow keys rotate it, the wheel or + and - zoom, a drag with the middle button pans, 0
    resets. A click on the surface moves the crosshair there. Space shows or hides the raters. A double click
    or Return enlarges the view.

    `pointed`: (slice, row, column) of the clicked voxel.
    """

    pointed = Signal(object)
    enlarged = Signal()

    KEY_HELP = KeyHelp(
        "In the 3-D view",
        (
            ("Arrows, Drag", "turn"),
            ("+, -, Wheel", "zoom"),
            ("0", "view from the front, whole"),
            ("Click", "move crosshair to the surface"),
            ("Space", "show or hide raters"),
            ("Return", "this view alone"),
        ),
    )

    def __init__(self, scene: Scene, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("3-D view")
        self.menu = FigureMenu(self, self, with_svg=False)
        self._scene, self.grid = scene, Grid.plain((1, 1, 1))
        self.model: SurfaceModel | None = None
        """Model on screen."""
        self._text = ""
        self._renderer = SurfaceRenderer(self)
        self._meshes: dict[str, Mesh] = {}
        self.camera = self._home = Camera()
        self._pressed: QPointF | None = None
        self._last = QPointF()
        self._dragged = self._moving = False
        self._slices_changed = True
        self._drawn: tuple[object, QImage | None] | None = None
        self._rest = QTimer(self, singleShot=True, interval=REST)
        self._rest.timeout.connect(self._on_rest)
        self._chips = ChipRow(
            {
                "raters": ("raters", "Raters' masks as wireframes (Space)"),
                "slices": ("slices", "The slices of the other views"),
            },
            self,
        )
        self.shown = {"raters": True, "slices": True}
        for name in self.shown:
            self._chips.set_on(name, True)
        self._chips.toggled.connect(self._on_chip)

    # Content -----------------------------------------------------------------------------------

    def set_model(self, model: SurfaceModel | None, grid: Grid, text: str = "") -> None:
        """Show a model, or a sentence; the camera is kept for the same structure."""
        shown = self.model
        same = model is not None and shown is not None and (grid, model.title) == (self.grid, shown.title)
        self.model, self.grid, self._text = model, grid, text
        self._meshes = {}
        if model is not None:
            corners, surface = model.surface.corners, model.surface
            opaque = np.column_stack([model.colours, np.ones(len(corners), dtype=np.float32)])
            joined = corners_of(corners, opaque, surface.normals)
            self._meshes["surface"] = Mesh(joined, surface.triangles, "lit")
            middle = (corners.min(axis=0) + corners.max(axis=0)) / 2
            radius = float(np.linalg.norm(corners - middle, axis=1).max()) * ROOM
            self._home = Camera(tuple(middle.tolist()), max(radius, 1e-3))
            if not same:
                self.camera = self._home
        self._chips.setVisible(model is not None)
        self.changed()

    @property
    def text(self) -> str:
        """Sentence shown instead of a model."""
        return self._text if self.model is None else ""

    def set_camera(self, camera: Camera) -> None:
        """Rotate, zoom or pan; edges are smoothed after a pause."""
        self.camera = camera
        self._moving = True
        self._rest.start()
        self.update()

    def reset(self) -> None:
        """Show the whole surface from the front."""
        self.set_camera(self._home)

    def changed(self) -> None:
        """Draw the slices, and the wireframes of the visible outlines, again."""
        self._slices_changed = True
        self.update()

    def _on_rest(self) -> None:
        self._moving = False
        self.update()

    def _on_chip(self, name: str, on: bool) -> None:
        self.shown[name] = on
        self._chips.set_on(name, on)
        self.changed()

    # Drawing -----------------------------------------------------------------------------------

    def _current_meshes(self) -> dict[str, Mesh]:
        model = self.model
        if model is None:
            return {}
        if self._slices_changed:
            self._slices_changed = False
            kept = {name: mesh for name, mesh in self._meshes.items() if not name.startswith("slice")}
            if self.shown["raters"]:
                for wireframe in model.wireframes:
                    if wireframe.key not in kept:
                        kept[wireframe.key] = _wire_mesh(wireframe)
            if self.shown["slices"]:
                kept.update(_slice_meshes(self._scene, self.grid, model.surface))
            self._meshes = kept
        visible_items = (
            {outline.key for outline in self._scene.visible_items()} if self.shown["raters"] else set()
        )
        wires = {wireframe.key for wireframe in model.wireframes}
        return {name: mesh for name, mesh in self._meshes.items() if name not in wires - visible_items}

    def _draw(self) -> QImage | None:
        ratio, camera = self.devicePixelRatioF(), self.camera
        meshes = self._current_meshes()
        samples = 0 if self._moving else SAMPLES
        key = (camera, self.width(), self.height(), ratio, samples, tuple(meshes.items()))
        if self._drawn is None or self._drawn[0] != key:
            picture = self._renderer.draw(
                meshes, QSize(round(self.width() * ratio), round(self.height() * ratio)),
                camera.matrix((self.width(), self.height())), camera.axes[2],
                ground=QColor(theme.DARK.canvas), opacity=_OPACITY, samples=samples,
            )  # fmt: skip
            if picture is not None:
                picture.setDevicePixelRatio(ratio)
            self._drawn = key, picture
        return self._drawn[1]

    def paint_picture(self, painter: QPainter) -> None:
        """Paint the view without focus marks."""
        painter.fillRect(self.rect(), QColor(theme.DARK.canvas))
        model = self.model
        picture = None if model is None else self._draw()
        if model is None or picture is None:
            self._paint_text(painter, self._text if model is None else NO_OPENGL)
            return
        painter.drawImage(QPointF(0, 0), picture)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self._scene.cross_hair:
            self._paint_crosshair(painter)
        if self._scene.calibrated:
            self._paint_letters(painter)
        room = self.height() / text_size() >= _LOWEST_WITH_BAR
        label = "" if model.heat is None or not room else model.heat.label
        text = overlay.paint_title(painter, f"3-D {model.title}", label, width=self.width())
        if model.heat is not None and room:
            self._paint_bar(painter, model.heat, text)

    def _paint_text(self, painter: QPainter, text: str) -> None:
        self.setAccessibleDescription(text)
        painter.save()
        box = enlarge(painter, QRectF(self.rect())).adjusted(16, 16, -16, -16)
        painter.setFont(theme.font())
        painter.setPen(QColor(theme.DARK.second))
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, text)
        painter.restore()

    def _paint_crosshair(self, painter: QPainter) -> None:
        x, y, _ = self.camera.project(
            self.grid.to_patient(np.array([self._scene.index], dtype=float)), self._pixels
        )[0]
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for pen in (QPen(theme.colour(theme.DARK.canvas, 170), 4), QPen(QColor(theme.DARK.accent), 1.6)):
            painter.setPen(pen)
            painter.drawEllipse(QPointF(x, y), 5, 5)

    def _paint_letters(self, painter: QPainter) -> None:
        """Paint the patient's sides around the view, fainter for those away from the eye."""
        width, height = self._pixels
        painter.save()
        painter.setFont(theme.font(bold=True))
        reach = min(width, height) / 2 - _LETTER_ROOM
        for letter, direction in _LETTERS:
            across, up, near = self.camera.axes @ np.array(direction, dtype=float)
            if abs(near) > _TOWARDS_EYE:
                continue
            length = float(np.hypot(across, up))
            x, y = width / 2 + across / length * reach, height / 2 - up / length * reach
            painter.setPen(theme.colour(theme.DARK.second, 255 if near >= -0.1 else 110))
            painter.drawText(QRectF(x - 10, y - 10, 20, 20), Qt.AlignmentFlag.AlignCenter, letter)
        painter.restore()

    def _paint_bar(self, painter: QPainter, heat: HeatMap, title: QRectF) -> None:
        """Paint the colour bar upright at the right edge, where it hides little of a small view.

        `title`: rectangle of the title; the bar begins below it if they would overlap.
        """
        painter.save()
        frame = enlarge(painter, QRectF(self.rect()))
        length = min(_BAR_LENGTH, frame.height() / 3)
        left, top = frame.right() - overlay.EDGE - _BAR_WIDTH, float(overlay.EDGE)
        if title.right() > (left - _BAR_WORDS) * text_size():
            top = title.bottom() / text_size() + 8
        bar = QRectF(left, top, _BAR_WIDTH, length)
        table = np.ascontiguousarray(heat.table[::-1])
        painter.drawImage(bar, QImage(table.data, 1, 256, 3, QImage.Format.Format_RGB888))
        painter.setFont(theme.font(theme.CAPTION))
        painter.setPen(QColor(theme.DARK.text))
        beside = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        for words, y in zip(heat.ends, (bar.bottom() - 6, bar.top() + 6), strict=True):
            painter.drawText(QRectF(bar.left() - _BAR_WORDS, y - 10, _BAR_WORDS - 6, 20), beside, words)
        painter.restore()

    @property
    def _pixels(self) -> tuple[int, int]:
        return max(self.width(), 1), max(self.height(), 1)

    # Events ------------------------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Place the switches."""
        self._chips.fit(max(self.width() - 2 * overlay.EDGE, 1))
        self._chips.move(overlay.EDGE, self.height() - overlay.EDGE - self._chips.height())
        super().resizeEvent(event)

    def hideEvent(self, event: QHideEvent) -> None:
        """Free the memory of the graphics card."""
        self._rest.stop()
        self._moving, self._drawn = False, None
        self._renderer.release()
        super().hideEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Begin a click or a drag."""
        if event.button() in (Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton):
            self._pressed = self._last = event.position()
            self._dragged = False

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Rotate, or pan with the middle button."""
        if self._pressed is None:
            return
        position = event.position()
        if (position - self._pressed).manhattanLength() >= DRAG_FROM:
            self._dragged = True
        if not self._dragged:
            return
        offset, self._last = position - self._last, position
        if event.buttons() & Qt.MouseButton.MiddleButton:
            self.set_camera(self.camera.panned(offset.x(), offset.y(), self._pixels))
        else:
            self.set_camera(self.camera.turned(-offset.x() * DRAG_TURN, offset.y() * DRAG_TURN))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Move the crosshair to the clicked point of the surface."""
        pressed, self._pressed = self._pressed, None
        if pressed is not None and not self._dragged and event.button() == Qt.MouseButton.LeftButton:
            self._point_at(event.position())

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Show this view alone, or the others again."""
        if event.button() == Qt.MouseButton.LeftButton:
            self.enlarged.emit()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom."""
        self.set_camera(self.camera.zoomed(1.0015 ** event.angleDelta().y()))
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Rotate, zoom, reset."""
        key = Qt.Key(event.key())
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            super().keyPressEvent(event)
        elif key in _ARROWS:
            self.set_camera(self.camera.turned(*_ARROWS[key]))
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self.set_camera(self.camera.zoomed(ZOOM_STEP))
        elif key in (Qt.Key.Key_Minus, Qt.Key.Key_Underscore):
            self.set_camera(self.camera.zoomed(1 / ZOOM_STEP))
        elif key == Qt.Key.Key_0:
            self.reset()
        elif key == Qt.Key.Key_Space:
            self._on_chip("raters", not self.shown["raters"])
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.enlarged.emit()
        else:
            super().keyPressEvent(event)

    def _point_at(self, position: QPointF) -> None:
        if self.model is None:
            return
        surface, x, y = self.model.surface, position.x(), position.y()
        depth = nearest_hit(self.camera.project(surface.corners, self._pixels), surface.triangles, x, y)
        if depth is None:
            return
        index = np.rint(self.grid.to_index(self.camera.unproject(x, y, depth, self._pixels)))
        held = np.clip(index, 0, np.array(self.grid.shape) - 1).astype(int).tolist()
        self.pointed.emit((held[0], held[1], held[2]))


def _wire_mesh(wireframe: Wireframe) -> Mesh:
    colour = QColor(wireframe.colour)
    shade = (colour.redF(), colour.greenF(), colour.blueF(), _WIRE_ALPHA)
    return Mesh(corners_of(wireframe.corners, shade), wireframe.edges, "flat")


def _slice_meshes(scene: Scene, grid: Grid, surface: Surface) -> Iterator[tuple[str, Mesh]]:
    """Make a picture and a frame of each slice through the crosshair, around the surface."""
    low, high = surface.indices.min(axis=0), surface.indices.max(axis=0)
    margin = MARGIN * grid_extent(grid, low, high) / np.array(grid.spacing)
    first = np.maximum(np.floor(low - margin), 0).astype(int)
    last = np.minimum(np.ceil(high + margin), np.array(grid.shape) - 1).astype(int)
    accent = QColor(theme.DARK.accent)
    shade = (accent.redF(), accent.greenF(), accent.blueF(), 1.0)
    for normal in range(3):
        rows, columns = (axis for axis in range(3) if axis != normal)
        at = scene.index[normal]
        levels = _row_levels(grid, rows, first, last)
        corners = np.empty((len(levels), 2, 3))
        corners[..., normal] = at
        corners[..., rows] = levels[:, None]
        corners[..., columns] = (first[columns] - 0.5, last[columns] + 0.5)
        positions = grid.to_patient(corners).reshape(-1, 3)
        ends = 2 * (len(levels) - 1)
        around = np.array([[0, 1], [1, ends + 1], [ends + 1, ends], [ends, 0]], dtype=np.uint32)
        yield f"slice frame {normal}", Mesh(corners_of(positions, shade), around, "flat")
        if scene.values is None:
            continue
        cells: list[int | slice] = [slice(first[axis], last[axis] + 1) for axis in range(3)]
        cells[normal] = at
        part = scene.values[tuple(cells)]
        step = max(1, -(-max(part.shape[:2]) // MAX_PIXELS))
        shares = np.zeros((len(levels), 2, 4))
        shares[..., 0] = (0.0, 1.0)
        shares[..., 1] = ((levels - levels[0]) / (levels[-1] - levels[0]))[:, None]
        upper = np.arange(0, ends, 2, dtype=np.uint32)[:, None]
        faces = (upper + np.array([0, 1, 2, 1, 3, 2], dtype=np.uint32)).reshape(-1, 3)
        picture = to_picture(scene.levels.to_bytes(np.ascontiguousarray(part[::step, ::step])))
        yield f"slice {normal}", Mesh(corners_of(positions, shares.reshape(-1, 4)), faces, "picture", picture)


def grid_extent(grid: Grid, low: NDArray[np.floating], high: NDArray[np.floating]) -> float:
    """Return the diagonal of a box of voxels, in mm."""
    return float(np.linalg.norm((high - low) * np.array(grid.spacing)))


def _row_levels(grid: Grid, axis: int, first: Sequence[int], last: Sequence[int]) -> NDArray[np.float64]:
    """Return the edges of a picture along an axis, in voxels; for uneven slices, those of all slices."""
    ends = np.array([first[axis] - 0.5, last[axis] + 0.5])
    if axis == 0 and grid.uneven:
        return np.concatenate([ends[:1], np.arange(first[0], last[0] + 1), ends[1:]])
    return ends
