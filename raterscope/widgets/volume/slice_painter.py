"""Painter of one slice, or of a slab's projection, with its layers, and the strokes on it.

Strokes of brush, eraser and contour are stored as the voxels that they cover.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, QPointF, QRectF, Qt, QThreadPool, Signal
from PySide6.QtGui import QColor, QImage, QPainter, QPainterPath, QPen

from raterscope.widgets import theme
from raterscope.widgets.canvas.image_painting import paint_scale_bar
from raterscope.widgets.canvas.tiles import draw_part, to_picture
from raterscope.widgets.canvas.viewport import Viewport
from raterscope.widgets.divider import EDGE, NARROWEST, paint_divider
from raterscope.widgets.hints import HEIGHT
from raterscope.widgets.theme import pixels
from raterscope.widgets.volume import overlay
from raterscope.widgets.volume.overlay import RegionBox, paint_measurement
from raterscope.widgets.volume.plane import Box, Index, Levels, Plane
from raterscope.widgets.volume.scene import (
    BAND,
    EDIT,
    HeatMap,
    Layers,
    Outliner,
    Scene,
    Stroke,
    heat_picture,
    mask_picture,
    paint_colour_bar,
)

UNTOUCHED = -1


class BrushStroke:
    """Stroke of a disc on one slice, or of a ball on several.

    `present`: (slice, row, column) of any voxel of the slice. `radius`: radius in millimetres (pixels if
    voxel sizes are unknown). The voxel below the centre is always covered. `puts_in`: False for the eraser.
    `solid`: whether neighbouring slices within the radius are covered too. `paintable`: returns where a slice
    may be painted, in screen orientation; None for everywhere.
    """

    def __init__(
        self,
        plane: Plane,
        present: Index,
        radius: float,
        *,
        puts_in: bool,
        solid: bool = False,
        paintable: Callable[[int], NDArray[np.bool_] | None] = lambda _index: None,
    ) -> None:
        self.plane = plane
        self._present, self._solid, self._paintable = present, solid, paintable
        self._allowed = paintable(present[plane.normal])
        self._points: list[tuple[float, float]] = []
        self.index = present[plane.normal]
        self.radius = radius
        self.puts_in = puts_in
        self._covered = np.zeros((plane.shape[plane.down], plane.shape[plane.across]), dtype=np.bool_)
        self._last: tuple[float, float] | None = None
        self._bounds: tuple[int, int, int, int] | None = None

    def to(self, x: float, y: float) -> None:
        """Extend the stroke in a straight line to a point of the plane."""
        begin = self._last if self._last is not None else (x, y)
        self._points.append((x, y))
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
        """Return the covered cells in screen orientation, and their position on the plane."""
        if self._bounds is None:
            return None
        top, left, bottom, right = self._bounds
        plane, origin, size = self.plane, [0, 0, 0], [1, 1, 1]
        for axis, first, last in ((plane.down, top, bottom), (plane.across, left, right)):
            origin[axis] = plane.shape[axis] - last if plane.reversed[axis] else first
            size[axis] = last - first
        box = plane.box_of((origin[0], origin[1], origin[2]), tuple(size))
        return plane.evenly(self.covered[top:bottom, left:right], (top, left)), box

    @property
    def covered(self) -> NDArray[np.bool_]:
        """The covered voxels of the slice, in screen orientation."""
        return self._covered if self._allowed is None else self._covered & self._allowed

    def finished(self) -> Stroke | None:
        """Return the covered voxels; None without any."""
        plane, parts = self.plane, {self.index: self.covered, **self._neighbours()}
        indices = sorted(index for index, part in parts.items() if part.any())
        if not indices:
            return None
        union = np.any([parts[index] for index in indices], axis=0)
        rows, columns = np.flatnonzero(union.any(axis=1)), np.flatnonzero(union.any(axis=0))
        top, bottom, left, right = int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1
        origin = [0, 0, 0]
        origin[plane.normal] = indices[0]
        for axis, first, last in ((plane.down, top, bottom), (plane.across, left, right)):
            origin[axis] = plane.shape[axis] - last if plane.reversed[axis] else first
        nothing = np.zeros_like(union)
        slices = [
            plane.uncut(parts.get(index, nothing)[top:bottom, left:right])
            for index in range(indices[0], indices[-1] + 1)
        ]
        covered = np.concatenate(slices, axis=plane.normal)
        values = np.where(covered, np.int8(self.puts_in), np.int8(UNTOUCHED))
        crop = np.ascontiguousarray(values, dtype=np.int8)
        return Stroke((origin[0], origin[1], origin[2]), crop, plane.name, self.index)

    def _neighbours(self) -> dict[int, NDArray[np.bool_]]:
        """Return the voxels of a ball on the other slices: discs, smaller with distance."""
        if not self._solid:
            return {}
        plane = self.plane
        positions = plane.centres(plane.normal)
        if plane.reversed[plane.normal]:
            positions = positions[::-1]
        parts = {}
        for index, away in enumerate(np.abs(positions - positions[self.index]).tolist()):
            if index == self.index or away >= self.radius:
                continue
            present = list(self._present)
            present[plane.normal] = index
            disc = BrushStroke(
                plane, (present[0], present[1], present[2]), float(np.sqrt(self.radius**2 - away**2)),
                puts_in=self.puts_in, paintable=self._paintable,
            )  # fmt: skip
            for point in self._points:
                disc.to(*point)
            parts[index] = disc.covered
        return parts


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


class ContourStroke(BrushStroke):
    """Stroke around an area: the voxels with their centres inside the closed line.

    If the line crosses itself, areas that it encloses twice are outside.
    """

    def __init__(self, plane: Plane, present: Index, radius: float, *, puts_in: bool, **_others: Any) -> None:
        super().__init__(plane, present, radius, puts_in=puts_in)
        self._line: list[tuple[float, float]] = []

    def to(self, x: float, y: float) -> None:
        """Extend the line to a point of the plane."""
        if self._line and self._line[-1] == (x, y):
            return
        self._line.append((x, y))
        across, down = self.plane.centres(self.plane.across), self.plane.centres(self.plane.down)
        self._covered = fill_polygon(np.array(self._line), across, down)
        rows = np.flatnonzero(self._covered.any(axis=1))
        columns = np.flatnonzero(self._covered.any(axis=0))
        self._bounds = None
        if len(rows):
            self._bounds = int(rows[0]), int(columns[0]), int(rows[-1]) + 1, int(columns[-1]) + 1


def fill_polygon(
    line: NDArray[np.float64], across: NDArray[np.float64], down: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return which points of a raster are inside a closed line, by the even-odd rule, (rows, columns).

    `line`: (N, 2), corners, x and y. `across`, `down`: (columns,) and (rows,), ascending coordinates of the
    raster.
    """
    x, y = line.T
    next_x, next_y = np.roll(x, -1), np.roll(y, -1)
    low = np.searchsorted(down, np.minimum(y, next_y))
    count = np.searchsorted(down, np.maximum(y, next_y)) - low
    edge = np.repeat(np.arange(len(line)), count)
    row = np.arange(len(edge)) - np.repeat(np.cumsum(count) - count, count) + low[edge]
    share = (down[row] - y[edge]) / (next_y[edge] - y[edge])
    column = np.searchsorted(across, x[edge] + share * (next_x[edge] - x[edge]))
    crossings = np.zeros((len(down), len(across) + 1), dtype=np.int64)
    np.add.at(crossings, (row, column), 1)
    return np.asarray(np.cumsum(crossings, axis=1)[:, :-1] % 2 == 1)


KEPT = 24
SLABS = (0.0, 10.0, math.inf)
"""Thicknesses of slabs in mm: one slice, a thin slab, the whole volume."""

Key = tuple[str, int, int]


def slab_text(thickness: float) -> str:
    """Describe a slab: "MIP 10 mm"; empty for one slice."""
    if not thickness:
        return ""
    return "MIP" if math.isinf(thickness) else f"MIP {thickness:g} mm"


def slab_of(plane: Plane, index: int, thickness: float) -> tuple[int, int]:
    """Return the first slice of a slab around a slice, and the one after its last."""
    centres = plane.centres(plane.normal)
    if plane.reversed[plane.normal] and plane.normal == 0:
        centres = centres[-1] - centres[::-1]
    inside = np.flatnonzero(np.abs(centres - centres[index]) <= thickness / 2 + 1e-6)
    return int(inside[0]), int(inside[-1]) + 1


class Projector(QObject):
    """Cache of projections; one is computed at a time, the latest request first."""

    ready = Signal()  # a requested projection is computed
    _computed = Signal(int, object, object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pool = QThreadPool(self, maxThreadCount=1)
        self._kept: OrderedDict[Key, NDArray[np.generic]] = OrderedDict()
        self._pending: Key | None = None
        self._order = 0
        self._computed.connect(self._on_computed)

    def forget(self) -> None:
        """Drop all projections, because another volume is shown."""
        self._order += 1
        self._kept.clear()
        self._pending = None
        self._pool.clear()

    def stop(self) -> None:
        """Wait for running work."""
        self.forget()
        self._pool.waitForDone()

    def get(
        self, plane: Plane, values: NDArray[np.generic], index: int, thickness: float
    ) -> NDArray[np.generic] | None:
        """Return a projection as a cut of the plane; None while it is computed, then `ready` is emitted."""
        first, last = slab_of(plane, index, thickness)
        key = (plane.name, first, last)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        if key != self._pending:
            self._pending = key
            self._pool.clear()
            self._pool.start(partial(self._project, self._order, plane, values, key))
        return None

    def _project(self, order: int, plane: Plane, values: NDArray[np.generic], key: Key) -> None:
        slab = values[(slice(None),) * plane.normal + (slice(key[1], key[2]),)]
        highest = slab.max(axis=plane.normal, keepdims=True)
        if order == self._order:
            self._computed.emit(order, key, np.ascontiguousarray(plane.cut(highest, 0)))

    def _on_computed(self, order: int, key: Key, cut: NDArray[np.generic]) -> None:
        if order != self._order:
            return
        self._pending = None if key == self._pending else self._pending
        self._kept[key] = cut
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        self.ready.emit()


HALO_FROM = 1.8
"""Minimum width of a line with a dark edge, which makes the consensus visible on bright tissue."""

BELOW_TITLE = 76
"""Height of the title's lines; the names of the sides of a divider are below."""

BAND_ALPHA, STROKE_ALPHA = 80, 120
CHIP_GAP = 8


class SlicePainter:
    """Painter of one slice; static contents are painted once and cached until they change."""

    def __init__(self, scene: Scene, outliner: Outliner, projector: Projector) -> None:
        self._scene, self._outliner, self._projector = scene, outliner, projector
        self._grounds: list[QImage] = []
        """Pictures of the slice on each side of the divider, or a single one; empty if outdated."""
        self._marks: list[QImage] = []
        self._picture: tuple[Levels, int, float, QImage] | None = None
        self.labels: dict[int, QRectF] = {}
        """Rectangles of the last painted labels of regions, by their numbers."""
        self._heats: dict[int, tuple[object, int, tuple[QImage, Box] | None]] = {}
        """By side: map, slice and picture."""

    def changed(self, *, below: bool = False) -> None:
        """Invalidate all layers, or only those below the outlines: grey values and heat map."""
        if not below:
            self._marks = []
        self._grounds = []

    def forget_pixels(self) -> None:
        """Drop the pictures of the values of another volume."""
        self._picture = None
        self._heats.clear()

    def paint(
        self,
        painter: QPainter,
        plane: Plane,
        view: Viewport,
        ratio: float,
        *,
        title: str,
        remark: str,
        large: bool,
        stroke: BrushStroke | None,
        pointer: tuple[float, float] | None,
    ) -> None:
        """Paint the slice under the crosshair.

        `title`, `remark`: plane and slice, and a remark on special display. `ratio`: device pixels per pixel
        of the widget. `large`: whether the view has the labels for all views. `stroke`: the current stroke.
        `pointer`: position of the brush on the plane.
        """
        scene = self._scene
        divider = None if scene.sides is None else scene.divider * view.width
        if not self._grounds:
            self._grounds = self._painted(plane, view, ratio)
        for side, ground in enumerate(self._grounds):
            if side and divider is not None:
                painter.setClipRect(QRectF(divider, 0, view.width - divider, view.height))
            painter.drawImage(QPointF(0, 0), ground)
        painter.setClipping(False)
        if divider is not None:
            paint_divider(painter, divider, view.height)
        self._paint_stroke(painter, view, stroke, pointer)
        if (
            scene.cross_hair
            and not scene.bare
            and not (plane.slices == 1 and scene.tool == "look" and not scene.calibrated)
        ):
            overlay.paint_cross_hair(
                painter, view, plane.position_of(scene.index), faint=scene.tool != "look"
            )
        size = 1000.0 if scene.calibrated else None
        corner = QPointF(overlay.EDGE, view.height - overlay.EDGE)
        bar = paint_scale_bar(painter, corner, view.scale, size, view.width - overlay.EDGE)
        boxes = [] if scene.bare else boxes_on(scene, plane)
        self.labels = overlay.box_labels(view, boxes, scene.selected, bar) if large else {}
        for region, box in sorted(boxes, key=lambda entry: entry[0].number == scene.selected):
            selected = region.number == scene.selected
            overlay.paint_box(
                painter, view, region, box,
                selected=selected, quiet=not selected and scene.selected is not None,
                label=self.labels.get(region.number),
            )  # fmt: skip
        measurement = scene.measurement
        shown = (plane.name, scene.index[plane.normal])
        if measurement is not None and not scene.bare and (measurement.plane, measurement.slice) == shown:
            paint_measurement(painter, view, measurement, scene.measured)
        overlay.paint_letters(painter, view, plane)
        alone = scene.solo_name()
        lines = (f"{alone} alone" if alone else "", scene.readout, scene.problem) if large else ()
        text = overlay.paint_title(painter, title, remark, *lines, width=view.width)
        if large and not scene.bare:
            self._paint_colour_bars(painter, view, divider, text)

    def _paint_colour_bars(
        self, painter: QPainter, view: Viewport, divider: float | None, words: QRectF
    ) -> None:
        """Paint the colour bar of each map at the upper right corner, or beside the divider below its chips.

        `words`: rectangle of the title, which the bars do not cover.
        """
        edges, top = [0.0, float(view.width)], float(overlay.EDGE)
        if divider is not None:
            edges.insert(1, divider)
            top = float(pixels(BELOW_TITLE + EDGE + HEIGHT + CHIP_GAP))
        for left, right, layers in zip(edges, edges[1:], self._scene.layers(), strict=False):
            room = right - left - 2 * overlay.EDGE
            if layers.heat is not None and room >= pixels(NARROWEST):
                covered = words if left == 0 else QRectF()
                paint_colour_bar(painter, right - overlay.EDGE, top, layers.heat, room, covered)

    def _painted(self, plane: Plane, view: Viewport, ratio: float) -> list[QImage]:
        """Paint the static contents; the outlines are cached for changes of only the layers below them."""
        grounds = []
        all_layers = self._scene.layers()
        if not self._marks:
            self._marks = [self._painted_shapes(plane, view, ratio, layers) for layers in all_layers]
        for side, layers in enumerate(all_layers):
            ground = _sheet(view, ratio, QImage.Format.Format_RGB32)
            ground.fill(QColor(theme.DARK.canvas))
            with QPainter(ground) as painter:
                painter.save()
                painter.translate(view.across, view.down)
                self._paint_pixels(painter, plane, view, side, layers.heat)
                painter.restore()
                if not self._scene.bare:
                    painter.drawImage(QPointF(0, 0), self._marks[side])
            grounds.append(ground)
        return grounds

    def _painted_shapes(self, plane: Plane, view: Viewport, ratio: float, layers: Layers) -> QImage:
        marks = _sheet(view, ratio, QImage.Format.Format_ARGB32_Premultiplied)
        marks.fill(Qt.GlobalColor.transparent)
        with QPainter(marks) as painter:
            painter.translate(view.across, view.down)
            painter.scale(view.scale, view.scale)
            self._paint_shapes(painter, plane, ratio, layers)
        return marks

    def _paint_pixels(
        self, painter: QPainter, plane: Plane, view: Viewport, side: int, heat: HeatMap | None
    ) -> None:
        scene, index = self._scene, self._scene.index[plane.normal]
        left, top, right, bottom = view.visible
        rect = QRectF(left, top, right - left, bottom - top)
        if scene.values is None:
            x, y, far_x, far_y = (edge * view.scale for edge in plane.extent)
            painter.fillRect(QRectF(x, y, far_x - x, far_y - y), QColor(theme.DARK.surface))
        else:
            if self._picture is None or self._picture[:3] != (scene.levels, index, scene.slab):
                self._picture = (scene.levels, index, scene.slab, self._slice_picture(plane, index))
            draw_part(painter, self._picture[3], plane.extent, view.scale, rect, smooth=True)
        if heat is not None and not scene.bare:
            kept = self._heats.get(side)
            if kept is None or kept[0] is not heat or kept[1] != index:
                kept = self._heats[side] = (heat, index, heat_picture(heat, plane, index))
            if kept[2] is not None:
                painter.setOpacity(scene.opacity)
                draw_part(painter, *kept[2], view.scale, rect, smooth=True)
                painter.setOpacity(1.0)

    def _slice_picture(self, plane: Plane, index: int) -> QImage:
        scene, cut = self._scene, None
        assert scene.values is not None
        if scene.slab and plane.slices > 1 and scene.values.ndim == 3:
            cut = self._projector.get(plane, scene.values, index, scene.slab)
        if cut is None:
            cut = plane.cut(scene.values, index)
        return to_picture(plane.evenly(scene.levels.to_bytes(cut)))

    def _paint_shapes(self, painter: QPainter, plane: Plane, ratio: float, layers: Layers) -> None:
        scene = self._scene
        paths = self._outliner.paths(plane, scene.index[plane.normal], scene.shape_keys())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if BAND in paths:
            painter.fillPath(paths[BAND], theme.colour(theme.DARK.disputed, BAND_ALPHA))
        seen = [(outline, paths[outline.key]) for outline in layers.outlines if outline.key in paths]
        areas = [(outline, path) for outline, path in seen if outline.width < HALO_FROM] or seen
        if scene.filled:
            # Overlapping areas together have the chosen opacity.
            alpha = round(255 * (1.0 - (1.0 - 0.7 * scene.opacity) ** (1.0 / max(1, len(areas)))))
            for outline, path in areas:
                painter.fillPath(path, theme.colour(outline.colour, alpha))
        for outline, path in seen:
            width = outline.width * scene.line_width
            _stroke_path(painter, path, outline.colour, width, ratio, dashed=outline.dashed)
        if EDIT in paths:
            painter.fillPath(paths[EDIT], theme.colour(theme.DARK.painted, 45))
            _stroke_path(painter, paths[EDIT], theme.DARK.painted, 2.0, ratio, dashed=False)

    def _paint_stroke(
        self,
        painter: QPainter,
        view: Viewport,
        stroke: BrushStroke | None,
        pointer: tuple[float, float] | None,
    ) -> None:
        scene = self._scene
        if stroke is not None:
            preview = stroke.preview()
            if preview is not None:
                hue = theme.DARK.painted if stroke.puts_in else theme.DARK.canvas
                picture = mask_picture(preview[0], theme.colour(hue, STROKE_ALPHA))
                painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
                painter.drawImage(overlay.on_screen(view, preview[1]), picture)
        if scene.tool in ("brush", "eraser") and pointer is not None:
            puts_in = stroke.puts_in if stroke is not None else scene.tool == "brush"
            unit = "mm" if scene.calibrated else "px"
            overlay.paint_brush(painter, view, pointer, scene.radius, unit, puts_in=puts_in)


def boxes_on(scene: Scene, plane: Plane) -> list[tuple[RegionBox, Box]]:
    """Return the regions on the slice under the crosshair, with their boxes."""
    normal, index = plane.normal, scene.index[plane.normal]
    return [
        (region, plane.box_of(region.origin, region.shape))
        for region in scene.boxes
        if region.origin[normal] <= index < region.origin[normal] + region.shape[normal]
    ]


def _sheet(view: Viewport, ratio: float, kind: QImage.Format) -> QImage:
    sheet = QImage(round(view.width * ratio), round(view.height * ratio), kind)
    sheet.setDevicePixelRatio(ratio)
    return sheet


def _stroke_path(
    painter: QPainter, path: QPainterPath, colour: str, width: float, ratio: float, *, dashed: bool
) -> None:
    # A cosmetic pen has its width in device pixels, several of which may form one pixel of the widget.
    pen = QPen(QColor(colour), width * ratio)
    pen.setCosmetic(True)
    if dashed:
        pen.setDashPattern([4, 3])
    if width >= HALO_FROM:
        halo = QPen(theme.colour(theme.DARK.canvas, 150), (width + 2) * ratio)
        halo.setCosmetic(True)
        painter.strokePath(path, halo)
    painter.strokePath(path, pen)
