"""One plane of a volume, painted with its layers, and the brush strokes on it (no interaction)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPainterPath, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from raterscope.widgets import theme
from raterscope.widgets.canvas.image_painting import paint_focus, paint_scale_bar
from raterscope.widgets.canvas.tiles import draw_part, to_picture
from raterscope.widgets.canvas.viewport import Viewport
from raterscope.widgets.theme import pixels
from raterscope.widgets.volume import overlay
from raterscope.widgets.volume.plane import Box, Index, Levels, Plane
from raterscope.widgets.volume.scene import (
    BAND,
    EDIT,
    Outliner,
    RegionBox,
    Scene,
    Stroke,
    heat_picture,
    mask_picture,
    paint_colour_bar,
)

FIT_MARGIN = 22.0
LOOK_SHARE = 0.4
"""Of the view's smaller side, what `look_at` gives to what is looked at, at most."""

HALO_FROM = 1.8
"""Width of a line from which on it has a dark edge: the consensus is to be seen on bright tissue."""

BAND_ALPHA, STROKE_ALPHA = 80, 120
CHIPS_ROOM = 36


class SliceCanvas(QWidget):
    """One slice, painted once and kept until something of it changes; crosshair and words lie on top.

    Parameters
    ----------
    scene : Scene
    outliner : Outliner
    """

    def __init__(self, scene: Scene, outliner: Outliner, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self._scene, self._outliner = scene, outliner
        self._plane: Plane | None = None
        self._large = False
        self._viewport = Viewport(max(1, self.width()), max(1, self.height()))
        self._fitted = True
        self._ground: QImage | None = None
        self._marks: QImage | None = None
        self._picture: tuple[Levels, int, QImage] | None = None
        self._heat: tuple[object, int, tuple[QImage, Box] | None] | None = None
        self._stroke: BrushStroke | None = None
        self._pointer: tuple[float, float] | None = None

    # What is shown -----------------------------------------------------------------------------

    def set_plane(self, plane: Plane) -> None:
        """Show another volume's plane, whole."""
        self._plane = plane
        self._picture = self._heat = None
        self.setAccessibleName(plane.name.capitalize() + " view" if plane.letters[0] else "Image")
        self.fit()

    @property
    def plane(self) -> Plane | None:
        """Orientation of the slices."""
        return self._plane

    @property
    def viewport(self) -> Viewport:
        """Visible part, in the plane's units."""
        return self._viewport

    @property
    def index(self) -> int:
        """Index of the slice shown."""
        return self._scene.index[self._plane.normal] if self._plane is not None else 0

    def set_large(self, large: bool) -> None:
        """Set whether this view has the labels for all views."""
        self._large = large
        self.update()

    def changed(self, *, below: bool = False) -> None:
        """Repaint the cache, or only the layers below the outlines: grey values and heat map."""
        if not below:
            self._marks = None
        self._ground = None
        self.update()

    def title(self) -> str:
        """Return plane and slice: "AXIAL 81 / 160"."""
        plane = self._plane
        if plane is None:
            return ""
        if plane.slices == 1:
            return plane.name.upper() if plane.letters[0] else "IMAGE"
        return f"{plane.name.upper()} {self.index + 1} / {plane.slices}"

    # Where it is looked at ---------------------------------------------------------------------

    def fit(self) -> None:
        """Show the whole plane."""
        self._fitted = True
        if self._plane is not None:
            self._set_viewport(self._viewport.framing(self._plane.extent, FIT_MARGIN))

    def zoom(self, factor: float, about: QPointF | None = None) -> None:
        """Zoom about a position of the widget, or about the crosshair."""
        plane, view = self._plane, self._viewport
        if plane is None:
            return
        if about is None:
            x, y = view.to_screen(*plane.position_of(self._scene.index))
        else:
            x, y = about.x(), about.y()
        self._fitted = False
        self._set_viewport(view.zoomed(factor, x, y).held_to(plane.extent))

    def look_at(self, origin: Index, shape: Index) -> None:
        """Pan to a part of the volume; zoom in if it is too small to judge."""
        plane = self._plane
        if plane is None:
            return
        left, top, right, bottom = plane.box_of(origin, shape)
        view, fitted = self._viewport, self._viewport.framing(plane.extent, FIT_MARGIN)
        room = LOOK_SHARE * min(view.width, view.height)
        ideal = room / max(right - left, bottom - top, 1e-9)
        visible = view.visible
        inside = visible[0] <= left and visible[1] <= top and right <= visible[2] and bottom <= visible[3]
        if inside and ideal / 3 <= view.scale <= ideal:
            return
        self._fitted = False
        # No closer than that surroundings are seen: eight times the whole.
        scale = min(max(ideal, fitted.scale), 8 * fitted.scale)
        middle = view.centred((left + right) / 2, (top + bottom) / 2, scale)
        self._set_viewport(middle.kept_on(plane.extent, FIT_MARGIN))

    def keep_in_sight(self) -> None:
        """Move so that the crosshair is in sight."""
        plane, view = self._plane, self._viewport
        if plane is None or self._fitted:
            return
        position = plane.position_of(self._scene.index)
        x, y = view.to_screen(*position)
        if not (0 <= x < view.width and 0 <= y < view.height):
            self._set_viewport(view.centred(*position).kept_on(plane.extent, FIT_MARGIN))

    def _set_viewport(self, viewport: Viewport) -> None:
        if viewport != self._viewport:
            self._viewport = viewport
        self.changed()

    # Painting ----------------------------------------------------------------------------------

    def sizeHint(self) -> QSize:
        """Return the largest size."""
        return QSize(640, 520)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Copy what is kept, then paint what moves."""
        with QPainter(self) as painter:
            self._paint(painter)
            if self.hasFocus() and self._plane is not None:
                paint_focus(painter, self._viewport)
                if self._scene.notice:
                    overlay.paint_notice(painter, self._viewport, self._scene.notice)

    def _paint(self, painter: QPainter) -> None:
        plane, scene, view = self._plane, self._scene, self._viewport
        if plane is None or scene.empty:
            painter.fillRect(self.rect(), QColor(theme.DARK.canvas))
            return
        if self._ground is None:
            self._ground = self._painted(plane)
        painter.drawImage(QPointF(0, 0), self._ground)
        self._paint_stroke(painter)
        if not scene.bare and not (plane.slices == 1 and scene.tool == "look" and not scene.calibrated):
            overlay.paint_cross_hair(
                painter, view, plane.position_of(scene.index), faint=scene.tool != "look"
            )
        boxes = () if scene.bare else self._boxes(plane)
        labels = overlay.box_labels(view, boxes, scene.selected) if self._large else {}
        for region, box in sorted(boxes, key=lambda entry: entry[0].number == scene.selected):
            selected = region.number == scene.selected
            overlay.paint_box(
                painter, view, region, box,
                selected=selected, quiet=not selected and scene.selected is not None,
                label=labels.get(region.number),
            )  # fmt: skip
        lift = pixels(CHIPS_ROOM) if self._large else 0
        overlay.paint_letters(painter, view, plane, lift)
        alone = scene.solo_name() if self._large else ""
        overlay.paint_title(painter, self.title(), f"{alone} alone" if alone else "")
        size = 1000.0 if scene.calibrated else None
        corner = view.height - overlay.EDGE - lift
        paint_scale_bar(painter, QPointF(overlay.EDGE, corner), view.scale, size, view.width - overlay.EDGE)
        if self._large and scene.heat is not None and not scene.bare:
            paint_colour_bar(painter, view.width - overlay.EDGE, overlay.EDGE, scene.heat)

    def _painted(self, plane: Plane) -> QImage:
        """Paint all that keeps still; the outlines are kept for when only what lies below them changes."""
        ground = self._sheet(QImage.Format.Format_RGB32)
        ground.fill(QColor(theme.DARK.canvas))
        with QPainter(ground) as painter:
            painter.save()
            painter.translate(self._viewport.across, self._viewport.down)
            self._paint_pixels(painter, plane)
            painter.restore()
            if self._marks is None:
                self._marks = self._sheet(QImage.Format.Format_ARGB32_Premultiplied)
                self._marks.fill(Qt.GlobalColor.transparent)
                with QPainter(self._marks) as upper:
                    upper.translate(self._viewport.across, self._viewport.down)
                    upper.scale(self._viewport.scale, self._viewport.scale)
                    self._paint_shapes(upper, plane)
            if not self._scene.bare:
                painter.drawImage(QPointF(0, 0), self._marks)
        return ground

    def _sheet(self, kind: QImage.Format) -> QImage:
        ratio = self.devicePixelRatioF()
        sheet = QImage(round(self.width() * ratio), round(self.height() * ratio), kind)
        sheet.setDevicePixelRatio(ratio)
        return sheet

    def _paint_pixels(self, painter: QPainter, plane: Plane) -> None:
        scene, view, index = self._scene, self._viewport, self.index
        left, top, right, bottom = view.visible
        rect = QRectF(left, top, right - left, bottom - top)
        if scene.values is None:
            x, y, far_x, far_y = (edge * view.scale for edge in plane.extent)
            painter.fillRect(QRectF(x, y, far_x - x, far_y - y), QColor(theme.DARK.surface))
        else:
            if self._picture is None or self._picture[:2] != (scene.levels, index):
                cut = scene.levels.to_bytes(plane.cut(scene.values, index))
                picture = to_picture(plane.evenly(cut))
                self._picture = (scene.levels, index, picture)
            draw_part(painter, self._picture[2], plane.extent, view.scale, rect, smooth=True)
        if scene.heat is not None and not scene.bare:
            if self._heat is None or self._heat[0] is not scene.heat or self._heat[1] != index:
                self._heat = (scene.heat, index, heat_picture(scene.heat, plane, index))
            if self._heat[2] is not None:
                painter.setOpacity(scene.opacity)
                draw_part(painter, *self._heat[2], view.scale, rect, smooth=True)
                painter.setOpacity(1.0)

    def _paint_shapes(self, painter: QPainter, plane: Plane) -> None:
        scene = self._scene
        paths = self._outliner.paths(plane, self.index, scene.shape_keys())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if BAND in paths:
            painter.fillPath(paths[BAND], theme.colour(theme.DARK.disputed, BAND_ALPHA))
        seen = [(outline, paths[outline.key]) for outline in scene.in_sight() if outline.key in paths]
        areas = [(outline, path) for outline, path in seen if outline.width < HALO_FROM] or seen
        if scene.filled:
            # However many lie over each other, together they cover as much as was asked for.
            alpha = round(255 * (1.0 - (1.0 - 0.7 * scene.opacity) ** (1.0 / max(1, len(areas)))))
            for outline, path in areas:
                painter.fillPath(path, theme.colour(outline.colour, alpha))
        for outline, path in seen:
            self._stroke_path(painter, path, outline.colour, outline.width, dashed=outline.dashed)
        if EDIT in paths:
            painter.fillPath(paths[EDIT], theme.colour(theme.DARK.painted, 45))
            self._stroke_path(painter, paths[EDIT], theme.DARK.painted, 2.0, dashed=False)

    def _stroke_path(
        self, painter: QPainter, path: QPainterPath, colour: str, width: float, *, dashed: bool
    ) -> None:
        # A cosmetic pen is as wide on the device, which may have several pixels for one of the widget's.
        ratio = self.devicePixelRatioF()
        pen = QPen(QColor(colour), width * ratio)
        pen.setCosmetic(True)
        if dashed:
            pen.setDashPattern([4, 3])
        if width >= HALO_FROM:
            halo = QPen(theme.colour(theme.DARK.canvas, 150), (width + 2) * ratio)
            halo.setCosmetic(True)
            painter.strokePath(path, halo)
        painter.strokePath(path, pen)

    def _paint_stroke(self, painter: QPainter) -> None:
        scene, stroke, view = self._scene, self._stroke, self._viewport
        if stroke is not None:
            preview = stroke.preview()
            if preview is not None:
                hue = theme.DARK.painted if stroke.puts_in else theme.DARK.canvas
                picture = mask_picture(preview[0], theme.colour(hue, STROKE_ALPHA))
                painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
                painter.drawImage(overlay.on_screen(view, preview[1]), picture)
        if scene.tool != "look" and self._pointer is not None:
            puts_in = stroke.puts_in if stroke is not None else scene.tool == "brush"
            unit = "mm" if scene.calibrated else "px"
            overlay.paint_brush(painter, view, self._pointer, scene.radius, unit, puts_in=puts_in)

    def _boxes(self, plane: Plane) -> list[tuple[RegionBox, Box]]:
        normal, index = plane.normal, self.index
        return [
            (region, plane.box_of(region.origin, region.shape))
            for region in self._scene.boxes
            if region.origin[normal] <= index < region.origin[normal] + region.shape[normal]
        ]

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the whole in sight, or the middle in the middle."""
        size = event.size()
        self._viewport = self._viewport.resized(max(1, size.width()), max(1, size.height()))
        if self._fitted:
            self.fit()
        self.changed()


UNTOUCHED = -1


class BrushStroke:
    """A disc drawn over one slice.

    Parameters
    ----------
    plane : Plane
    present : (slice, row, column)
        Any voxel of the slice.
    radius : float
        Of the disc, in millimetres (pixels where the grid is not calibrated). The voxel below its middle is
        always covered.
    puts_in : bool
        False for the eraser.
    """

    def __init__(self, plane: Plane, present: Index, radius: float, *, puts_in: bool) -> None:
        self.plane = plane
        self.index = present[plane.normal]
        self.radius = radius
        self.puts_in = puts_in
        self._covered = np.zeros((plane.shape[plane.down], plane.shape[plane.across]), dtype=np.bool_)
        self._last: tuple[float, float] | None = None
        self._bounds: tuple[int, int, int, int] | None = None

    def to(self, x: float, y: float) -> None:
        """Draw the disc on to a place of the plane, in a straight line from the last."""
        begin = self._last if self._last is not None else (x, y)
        self._last = (x, y)
        plane = self.plane
        across, down = plane.centres(plane.across), plane.centres(plane.down)
        first_column, last_column = _reached(across, min(x, begin[0]), max(x, begin[0]), self.radius)
        first_row, last_row = _reached(down, min(y, begin[1]), max(y, begin[1]), self.radius)
        if last_column <= first_column or last_row <= first_row:
            return
        across, down = across[first_column:last_column], down[first_row:last_row, None]
        covered = _near(across, down, begin, (x, y), self.radius)
        left, top, right, bottom = plane.extent
        below = plane.first_cell(plane.index_at(x, y, (self.index,) * 3), (1, 1, 1))
        row, column = below[0] - first_row, below[1] - first_column
        inside = left <= x < right and top <= y < bottom
        if inside and 0 <= row < covered.shape[0] and 0 <= column < covered.shape[1]:
            covered[row, column] = True
        self._covered[first_row:last_row, first_column:last_column] |= covered
        box = first_row, first_column, last_row, last_column
        old = self._bounds or box
        self._bounds = (
            min(old[0], box[0]), min(old[1], box[1]), max(old[2], box[2]), max(old[3], box[3]),
        )  # fmt: skip

    def preview(self) -> tuple[NDArray[np.bool_], Box] | None:
        """Return the covered cells as on the screen, and their position on the plane."""
        if self._bounds is None:
            return None
        top, left, bottom, right = self._bounds
        plane, origin, size = self.plane, [0, 0, 0], [1, 1, 1]
        for axis, first, last in ((plane.down, top, bottom), (plane.across, left, right)):
            origin[axis] = plane.shape[axis] - last if plane.reversed[axis] else first
            size[axis] = last - first
        box = plane.box_of((origin[0], origin[1], origin[2]), tuple(size))
        return plane.evenly(self._covered[top:bottom, left:right], (top, left)), box

    def finished(self) -> Stroke | None:
        """Return the voxels; None where none was covered."""
        rows = np.flatnonzero(self._covered.any(axis=1))
        columns = np.flatnonzero(self._covered.any(axis=0))
        if not len(rows):
            return None
        top, bottom, left, right = int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1
        part = self._covered[top:bottom, left:right]
        values = np.where(part, np.int8(self.puts_in), np.int8(UNTOUCHED))
        plane, origin = self.plane, [0, 0, 0]
        origin[plane.normal] = self.index
        for axis, first, last in ((plane.down, top, bottom), (plane.across, left, right)):
            origin[axis] = plane.shape[axis] - last if plane.reversed[axis] else first
        crop = np.ascontiguousarray(plane.uncut(values), dtype=np.int8)
        return Stroke((origin[0], origin[1], origin[2]), crop, plane.name, self.index)


def _reached(centres: NDArray[np.float64], low: float, high: float, radius: float) -> tuple[int, int]:
    """Return the range of voxels that a stroke may touch, with one more on each side."""
    first = int(np.searchsorted(centres, low - radius)) - 1
    last = int(np.searchsorted(centres, high + radius)) + 1
    return max(0, first), min(len(centres), last)


def _near(
    across: NDArray[np.floating],
    down: NDArray[np.floating],
    begin: tuple[float, float],
    end: tuple[float, float],
    radius: float,
) -> NDArray[np.bool_]:
    """Return which positions are within a radius of a straight line."""
    way_x, way_y = end[0] - begin[0], end[1] - begin[1]
    length = way_x * way_x + way_y * way_y
    x, y = across - begin[0], down - begin[1]
    share = np.clip((x * way_x + y * way_y) / length, 0.0, 1.0) if length > 0 else 0.0
    return np.asarray((x - share * way_x) ** 2 + (y - share * way_y) ** 2 <= radius * radius)
