"""Painter of one slice, or of a slab's projection, with its layers and the stroke under way."""

from __future__ import annotations

import math
from collections import OrderedDict
from functools import partial

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
from raterscope.widgets.volume.measuring import paint_measurement
from raterscope.widgets.volume.plane import Box, Levels, Plane
from raterscope.widgets.volume.scene import (
    BAND,
    EDIT,
    HeatMap,
    Layers,
    Outliner,
    RegionBox,
    Scene,
    heat_picture,
    mask_picture,
    paint_colour_bar,
)
from raterscope.widgets.volume.strokes import BrushStroke

KEPT = 24
SLABS = (0.0, 10.0, math.inf)
"""Thickness of the slab, mm: one slice, thin, the whole volume."""

Key = tuple[str, int, int]


def slab_words(thickness: float) -> str:
    """Name a slab: "MIP 10 mm"; empty for one slice."""
    if not thickness:
        return ""
    return "MIP" if math.isinf(thickness) else f"MIP {thickness:g} mm"


def slab_of(plane: Plane, index: int, thickness: float) -> tuple[int, int]:
    """Return the first slice of a slab about a slice, and the one after its last."""
    centres = plane.centres(plane.normal)
    if plane.reversed[plane.normal] and plane.normal == 0:
        centres = centres[-1] - centres[::-1]
    inside = np.flatnonzero(np.abs(centres - centres[index]) <= thickness / 2 + 1e-6)
    return int(inside[0]), int(inside[-1]) + 1


class Projector(QObject):
    """Cache of projections; one is computed at a time, the latest request first."""

    ready = Signal()  # a projection that was requested is there
    _computed = Signal(int, object, object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pool = QThreadPool(self, maxThreadCount=1)
        self._kept: OrderedDict[Key, NDArray[np.generic]] = OrderedDict()
        self._pending: Key | None = None
        self._order = 0
        self._computed.connect(self._on_computed)

    def forget(self) -> None:
        """Drop all: another volume is shown."""
        self._order += 1
        self._kept.clear()
        self._pending = None
        self._pool.clear()

    def stop(self) -> None:
        """Wait for work under way."""
        self.forget()
        self._pool.waitForDone()

    def get(
        self, plane: Plane, values: NDArray[np.generic], index: int, thickness: float
    ) -> NDArray[np.generic] | None:
        """Return a projection as a cut of the plane; None while it is computed, `ready` follows."""
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
"""Width of a line from which on it has a dark edge: the consensus is to be seen on bright tissue."""

BELOW_TITLE = 76
"""Height of the lines of the title, below which the sides of a divider are named."""

BAND_ALPHA, STROKE_ALPHA = 80, 120
CHIP_GAP = 8


class SlicePainter:
    """Painter of one slice; what keeps still is painted once and kept until it changes."""

    def __init__(self, scene: Scene, outliner: Outliner, projector: Projector) -> None:
        self._scene, self._outliner, self._projector = scene, outliner, projector
        self._grounds: list[QImage] = []
        """The slice as it is on each side of the divider, or one without a divider; empty if outdated."""
        self._marks: list[QImage] = []
        self._picture: tuple[Levels, int, float, QImage] | None = None
        self.labels: dict[int, QRectF] = {}
        """Rectangles of the labels of regions as painted last, by their numbers."""
        self._heats: dict[int, tuple[object, int, tuple[QImage, Box] | None]] = {}
        """By side: map, slice and picture."""

    def changed(self, *, below: bool = False) -> None:
        """Paint all again, or only the layers below the outlines: grey values and heat map."""
        if not below:
            self._marks = []
        self._grounds = []

    def forget_pixels(self) -> None:
        """Drop the pictures of another volume's values."""
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
        of the widget. `large`: whether the view has the labels for all views. `stroke`: the present stroke.
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
        alone = scene.solo_name() if large else ""
        lines = (remark, f"{alone} alone" if alone else "", scene.readout if large else "")
        words = overlay.paint_title(painter, title, *lines, width=view.width)
        if large and not scene.bare:
            self._paint_colour_bars(painter, view, divider, words)

    def _paint_colour_bars(
        self, painter: QPainter, view: Viewport, divider: float | None, words: QRectF
    ) -> None:
        """Paint the bar of each map at the upper right corner, or beside the divider below its chips.

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
        """Paint all that keeps still; the outlines are kept for when only what lies below them changes."""
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
    # A cosmetic pen is as wide on the device, which may have several pixels for one of the widget's.
    pen = QPen(QColor(colour), width * ratio)
    pen.setCosmetic(True)
    if dashed:
        pen.setDashPattern([4, 3])
    if width >= HALO_FROM:
        halo = QPen(theme.colour(theme.DARK.canvas, 150), (width + 2) * ratio)
        halo.setCosmetic(True)
        painter.strokePath(path, halo)
    painter.strokePath(path, pen)
