"""Layers of a volume view: outlines, bands, heat maps, boxes, and the scene that contains them."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, QPointF, QRectF, Qt, QThreadPool, Signal
from PySide6.QtGui import QColor, QFontMetrics, QImage, QPainter, QPainterPath, QPolygonF

from raterscope.text import with_minus
from raterscope.widgets import theme
from raterscope.widgets.colour_maps import CIVIDIS, INFERNO, PUOR, VIRIDIS
from raterscope.widgets.hints import paint_chip_ground
from raterscope.widgets.theme import enlarge, text_size
from raterscope.widgets.volume.overlay import Measurement, RegionBox
from raterscope.widgets.volume.plane import Box, Index, Levels, Plane, contours


@dataclass(frozen=True, eq=False)
class Outline:
    """The edge of one mask."""

    key: str  # key in the program: "rater 3"
    name: str  # name on screen
    colour: str  # hexadecimal
    # (z, y, x): the mask, or float32 values that cross 0.5 at its edge; a part of the volume
    values: NDArray[np.bool_] | NDArray[np.float32]
    origin: Index = (0, 0, 0)  # (slice, row, column): the first voxel of `values` in the volume
    width: float = 1.4  # of the line, in the widget's pixels
    dashed: bool = False

    @property
    def style(self) -> tuple[str, str, str, float, bool]:
        """Everything except the values."""
        return self.key, self.name, self.colour, self.width, self.dashed


@dataclass(frozen=True, eq=False)
class HeatMap:
    """Values of a part of the volume, shown as colours."""

    values: NDArray[np.float32] | NDArray[np.uint8]  # (z, y, x) or uint8
    origin: Index  # (slice, row, column)
    # low, high: values at the ends of the colour scale, in the unit of `label`
    low: float
    high: float
    colours: Literal["doubt", "weight", "probability", "difference"]
    label: str  # quantity with its unit: "doubt", "weight of rater 4", "deviation, mm"
    scale: float = 1.0  # factor from `values` to the unit of `label`: 1 / 255 for shares stored as bytes

    @property
    def ends(self) -> tuple[str, str]:
        """The two ends of the colour scale as text."""
        low, high = (
            with_minus(f"{end:,.0f}" if abs(end) >= 1000 else f"{end:.3g}") for end in (self.low, self.high)
        )
        return low, high

    @property
    def table(self) -> NDArray[np.uint8]:
        """(256, 3), colours from the low to the high end."""
        return np.ascontiguousarray(_TABLES[self.colours])


@dataclass(frozen=True, eq=False)
class Layers:
    """Outlines and map of one side of a divider, or of the whole view."""

    title: str = ""
    outlines: tuple[Outline, ...] = ()
    heat: HeatMap | None = None


@dataclass(frozen=True, eq=False)
class Band:
    """Area with a probability between two levels."""

    values: NDArray[np.float32]  # (z, y, x)
    origin: Index  # (slice, row, column)
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Stroke:
    """Area covered by one stroke of brush or eraser."""

    origin: Index  # (slice, row, column): the first voxel of `values` in the volume
    values: NDArray[np.int8]  # (z, y, x): 1 drawn, 0 erased, -1 unchanged
    plane: str  # "axial", "coronal" or "sagittal"
    slice: int  # index along the plane's normal


_TABLES = {"doubt": INFERNO, "weight": CIVIDIS, "probability": VIRIDIS, "difference": PUOR}
_RISE = 5.0
"""Rate at which a map becomes opaque from its low end (for a difference, from its middle)."""

BAR_HEIGHT = 52
MARGIN = 10


def heat_picture(heat: HeatMap, plane: Plane, index: int) -> tuple[QImage, Box] | None:
    """Make the picture of a heat map on one slice, with its position on the plane; None if not on it."""
    cut = plane.cut_crop(heat.values, heat.origin, index)
    if cut is None:
        return None
    levels = _levels(heat, plane.evenly(*cut))
    return _picture(np.take(_colours(heat.colours), levels)), plane.box_of(heat.origin, heat.values.shape)


def heat_colours(heat: HeatMap, values: NDArray[np.generic]) -> NDArray[np.float32]:
    """Return the colours of values of a heat map, (..., 3): red, green and blue from 0 to 1."""
    return np.asarray(heat.table[_levels(heat, values)] / 255.0, dtype=np.float32)


def _levels(heat: HeatMap, values: NDArray[np.generic]) -> NDArray[np.uint8]:
    span = (heat.high - heat.low) or 1.0
    share = values.astype(np.float32)
    share *= np.float32(heat.scale * 255.0 / span)
    share -= np.float32(heat.low * 255.0 / span)
    np.nan_to_num(share, copy=False, nan=0.0)
    return np.clip(share + 0.5, 0, 255, out=share).astype(np.uint8)


def mask_picture(mask: NDArray[np.bool_], colour: QColor) -> QImage:
    """Make a picture of a mask in one colour, transparent elsewhere."""
    table = np.array([0, _premultiplied(np.array([colour.getRgb()], dtype=float) / 255)[0]], dtype=np.uint32)
    return _picture(np.take(table, mask.astype(np.uint8)))


def paint_colour_bar(
    painter: QPainter, right: float, top: float, heat: HeatMap, room: float, words: QRectF
) -> QRectF:
    """Paint the colour bar of a heat map with the numbers at its ends; return the rectangle.

    `right`, `top`: upper right corner, which moves below `words` if the bar would cover them. `room`: maximum
    width in screen pixels.
    """
    painter.save()
    enlarge(painter, QRectF())
    size = text_size()
    painter.setFont(theme.font(theme.CAPTION))
    metrics = QFontMetrics(painter.font())
    # One more pixel, because the advance is rounded, and a label that lacks a fraction of a pixel is elided.
    width = min(max(150, metrics.horizontalAdvance(heat.label) + 1) + 2 * MARGIN, room / size)
    if right - width * size < words.right():
        top = max(top, words.bottom() + MARGIN / 2)
    box = QRectF(right / size - width, top / size, width, BAR_HEIGHT)
    ends = heat.ends
    paint_chip_ground(painter, box)
    line = QRectF(box.left() + MARGIN, box.top() + 4, width - 2 * MARGIN, 16)
    label = metrics.elidedText(heat.label, Qt.TextElideMode.ElideMiddle, math.ceil(line.width()))
    painter.setPen(QColor(theme.DARK.second))
    middle = Qt.AlignmentFlag.AlignVCenter
    painter.drawText(line, Qt.AlignmentFlag.AlignLeft | middle, label)
    colours = heat.table
    bar = QImage(colours.data, 256, 1, 768, QImage.Format.Format_RGB888)
    painter.drawImage(QRectF(line.left(), box.top() + 22, line.width(), 8), bar)
    painter.setPen(QColor(theme.DARK.text))
    under = line.translated(0, 28)
    painter.drawText(under, Qt.AlignmentFlag.AlignLeft | middle, ends[0])
    painter.drawText(under, Qt.AlignmentFlag.AlignRight | middle, ends[1])
    if heat.low < 0 < heat.high and abs(heat.low + heat.high) < 1e-6 * heat.high:
        painter.drawText(under, Qt.AlignmentFlag.AlignHCenter | middle, "0")
    painter.restore()
    return QRectF(box.topLeft() * size, box.size() * size)


@lru_cache(maxsize=8)
def _colours(name: str) -> NDArray[np.uint32]:
    share = np.linspace(0.0, 1.0, 256)
    if name == "weight":
        alpha = np.ones(256)
    else:
        from_nothing = np.abs(2.0 * share - 1.0) if name == "difference" else share
        alpha = np.minimum(1.0, _RISE * from_nothing)
    return _premultiplied(np.column_stack([_TABLES[name] / 255.0, alpha]))


def _premultiplied(colours: NDArray[np.float64]) -> NDArray[np.uint32]:
    alpha = colours[:, 3]
    red, green, blue = (np.round(255 * colours[:, channel] * alpha).astype(np.uint32) for channel in range(3))
    opacity = np.round(255 * alpha).astype(np.uint32)
    return np.asarray((opacity << 24) | (red << 16) | (green << 8) | blue, dtype=np.uint32)


def _picture(pixels: NDArray[np.uint32]) -> QImage:
    height, width = pixels.shape
    # Qt makes a copy, so that the array may be freed.
    return QImage(pixels.data, width, height, 4 * width, QImage.Format.Format_ARGB32_Premultiplied).copy()


BAND, EDIT = "\0band", "\0edit"
"""Reserved names among the shapes, distinct from those of outlines."""


@dataclass
class Scene:
    """One volume with its layers, shared by its views."""

    empty: bool = True  # whether there is no volume at all
    values: NDArray[np.generic] | None = None  # (Z, Y, X) or (Z, Y, X, 3); None without pixels
    levels: Levels = field(default_factory=lambda: Levels(0.0, 1.0))
    calibrated: bool = False  # whether lengths are in millimetres
    outlines: tuple[Outline, ...] = ()  # in the order in which they are painted
    hidden: frozenset[str] = frozenset()  # keys of hidden outlines
    bare: bool = False  # show the image without overlays
    solo: str | None = None
    beside: frozenset[str] = frozenset()  # keys of outlines that stay visible besides the solo one
    sides: tuple[Layers, Layers] | None = None  # layers left and right of the divider
    divider: float = 0.5  # share of the width left of the divider
    filled: bool = False  # whether masks are shown as areas
    opacity: float = 0.55  # of areas and heat maps, 0 to 1
    heat: HeatMap | None = None
    band: Band | None = None
    boxes: tuple[RegionBox, ...] = ()
    selected: int | None = None  # number of the selected box
    edit: tuple[NDArray[np.bool_], Index] | None = None  # (values, origin): the mask being edited
    index: Index = (0, 0, 0)  # (slice, row, column): voxel of the crosshair
    tool: str = "look"  # {"look", "brush", "eraser", "contour", "ruler", "roi"}
    radius: float = 3.0  # of the brush, in millimetres
    solid: bool = False  # whether brush and eraser also cover the neighbouring slices within the radius
    # whether brush and eraser cover only voxels that are neither black nor white in the window
    windowed: bool = False
    problem: str = ""  # why there are no values
    notice: str = ""  # text shown during a drag: the window that it sets
    cross_hair: bool = True  # whether the crosshair is painted
    line_width: float = 1.0  # factor of the width of all outlines
    slab: float = 0.0  # thickness in mm of a maximum intensity projection; 0 for a slice
    unit: str = ""  # of the values, if not HU
    readout: str = ""  # value and position under the pointer, or at the crosshair
    measurement: Measurement | None = None  # the measurement shown, with its result `measured`
    measured: str = ""

    def paintable(self, plane: Plane, index: int) -> NDArray[np.bool_] | None:
        """Return where a slice may be painted, in screen orientation; None for everywhere."""
        values = self.values
        if not self.windowed or values is None or values.ndim != 3:
            return None
        part = plane.cut(values, index)
        half = self.levels.width / 2
        return np.asarray((part > self.levels.centre - half) & (part < self.levels.centre + half))

    def visible_items(self) -> list[Outline]:
        """Return the visible outlines."""
        if self.solo is not None:
            visible = self.beside | {self.solo}
            return [outline for outline in self.outlines if outline.key in visible]
        return [outline for outline in self.outlines if outline.key not in self.hidden]

    def layers(self) -> tuple[Layers, ...]:
        """Return the layers of the whole view, or of each side of the divider."""
        return self.sides or (Layers("", tuple(self.visible_items()), self.heat),)

    def drawn(self) -> list[Outline]:
        """Return the outlines on all sides."""
        return [outline for layers in self.layers() for outline in layers.outlines]

    def solo_name(self) -> str:
        """Name of the only visible outline; empty if all are visible."""
        return next((outline.name for outline in self.outlines if outline.key == self.solo), "")

    def shapes(self) -> dict[str, Shape]:
        """Return all shapes to outline, by name."""
        all_outlines = (*self.outlines, *self.drawn())
        shapes = {outline.key: Shape(outline.values, outline.origin) for outline in all_outlines}
        if self.band is not None:
            shapes[BAND] = Shape(self.band.values, self.band.origin, (self.band.low, self.band.high))
        if self.edit is not None:
            shapes[EDIT] = Shape(*self.edit)
        return shapes

    def shape_keys(self) -> list[str]:
        """Return the keys of the painted shapes."""
        keys = [outline.key for outline in self.drawn()]
        if self.band is not None and self.sides is None:
            keys.append(BAND)
        if self.edit is not None:
            keys.append(EDIT)
        return keys


KEPT = 4_000
"""Maximum number of cached paths; the least recently used are dropped first."""

AHEAD = (0, 1, -1, 2, -2)
"""Offsets from the visible slice of the slices whose lines are computed, in this order."""

Place = tuple[str, int, str]


@dataclass(frozen=True, eq=False)
class Shape:
    """Values to outline: a part of the volume, and the levels of its contours."""

    values: NDArray[np.generic]
    origin: Index
    levels: tuple[float, ...] = (0.5,)

    def matches(self, other: Shape) -> bool:
        """Return whether another shape outlines the same array in the same way."""
        return self.values is other.values and (self.origin, self.levels) == (other.origin, other.levels)

    def matches_on(self, other: Shape, plane: Plane, index: int) -> bool:
        """Return whether another shape has the same values on a slice."""
        if (self.origin, self.levels) != (other.origin, other.levels):
            return False
        cuts = [plane.cut_crop(shape.values, shape.origin, index) for shape in (self, other)]
        if cuts[0] is None or cuts[1] is None:
            return cuts[0] is cuts[1]
        return np.array_equal(cuts[0][0], cuts[1][0]) and cuts[0][1] == cuts[1][1]


Line = tuple[Shape, QPainterPath]
"""A shape and its outline on a slice."""


def path_on(shape: Shape, plane: Plane, index: int) -> QPainterPath:
    """Return the outline of a shape on one slice, in the plane's units: the area between two levels."""
    path = QPainterPath()
    cut = plane.cut_crop(shape.values, shape.origin, index)
    if cut is None:
        return path
    part, (row, column) = plane.with_gaps(*cut)
    for level in shape.levels:
        for line in contours(part, level):
            x = plane.to_place(plane.across, line[:, 0] + (column + 0.5))
            y = plane.to_place(plane.down, line[:, 1] + (row + 0.5))
            points = [QPointF(*point) for point in zip(x.tolist(), y.tolist(), strict=True)]
            path.addPolygon(QPolygonF(points))
            path.closeSubpath()
    return path


class Outliner(QObject):
    """Cache of the outlines of shapes by plane and slice, which computes missing ones.

    One slice of each plane is computed at a time. A new request cancels the previous one; its late results
    are dropped if the shape has changed.
    """

    ready = Signal(str)  # newly computed outlines of the requested slice of this plane
    _computed = Signal(str, int, object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pool = QThreadPool(self, maxThreadCount=1)
        self._shapes: dict[str, Shape] = {}
        self._paths: OrderedDict[Place, Line] = OrderedDict()
        self._pending: dict[str, tuple[int, frozenset[str]]] = {}
        self._orders: dict[str, int] = {}
        self._expected: dict[str, int] = {}
        """By plane: the slice that is likely to be in sight next."""
        self._computed.connect(self._on_computed)

    def set_shapes(self, shapes: Mapping[str, Shape]) -> None:
        """Set the shapes to outline. The lines of a changed shape are kept until new ones are computed."""
        removed = self._shapes.keys() - shapes.keys()
        if removed:
            for index in [index for index in self._paths if index[2] in removed]:
                del self._paths[index]
        known = self._shapes
        self._shapes = {
            key: known[key] if key in known and known[key].matches(shape) else shape
            for key, shape in shapes.items()
        }
        self._pending.clear()

    def forget(self) -> None:
        """Drop all lines, because the planes have changed."""
        self._paths.clear()
        self._expected.clear()
        self.stop()

    def expect(self, plane: Plane, index: int, following: int, keys: Iterable[str]) -> None:
        """Find also the lines of a slice that is likely to follow the one in sight, at ``index``."""
        self._expected[plane.name] = following
        self._pending.pop(plane.name, None)
        self._seek(plane, index, frozenset(keys))

    def paths(self, plane: Plane, index: int, keys: Iterable[str]) -> dict[str, QPainterPath]:
        """Return the computed lines of a slice; start to compute the others, then emit `ready`."""
        cached, missing = {}, []
        for key in keys:
            shape = self._shapes.get(key)
            if shape is None:
                continue
            kept = self._paths.get((plane.name, index, key))
            if kept is not None:
                self._paths.move_to_end((plane.name, index, key))
                cached[key] = kept[1]
            if kept is None or kept[0] is not shape:
                missing.append(key)
        if missing:
            self._seek(plane, index, frozenset(keys))
        return cached

    def stop(self) -> None:
        """Cancel running work and wait for it: a few milliseconds."""
        for name in self._orders:
            self._orders[name] += 1
        self._pending.clear()
        self._pool.clear()
        self._pool.waitForDone()

    def _seek(self, plane: Plane, index: int, keys: frozenset[str]) -> None:
        if self._pending.get(plane.name) == (index, keys):
            return
        self._pending[plane.name] = (index, keys)
        self._orders[plane.name] = order = self._orders.get(plane.name, 0) + 1
        shapes = {key: self._shapes[key] for key in keys if key in self._shapes}
        work: list[tuple[int, dict[str, tuple[Shape, Line | None]]]] = []
        for at in (*(index + step for step in AHEAD), self._expected.get(plane.name, index)):
            if 0 <= at < plane.slices:
                missing = {
                    key: (shape, self._paths.get((plane.name, at, key)))
                    for key, shape in shapes.items()
                    if not self._has(plane, at, key)
                }
                if missing:
                    work.append((at, missing))
        self._pool.start(partial(self._find, plane, work, order))

    def _has(self, plane: Plane, index: int, key: str) -> bool:
        cached = self._paths.get((plane.name, index, key))
        return cached is not None and cached[0] is self._shapes[key]

    def _find(
        self, plane: Plane, work: list[tuple[int, dict[str, tuple[Shape, Line | None]]]], order: int
    ) -> None:
        """Find lines, slice by slice; in the pool's thread."""
        for index, shapes in work:
            paths = []
            for key, (shape, earlier) in shapes.items():
                if self._orders[plane.name] != order:
                    return
                stays = earlier is not None and earlier[0].matches_on(shape, plane, index)
                line = earlier[1] if stays and earlier is not None else path_on(shape, plane, index)
                paths.append((key, shape, line))
            self._computed.emit(plane.name, index, paths)

    def _on_computed(self, name: str, index: int, paths: list[tuple[str, Shape, QPainterPath]]) -> None:
        valid = [(key, shape, path) for key, shape, path in paths if self._shapes.get(key) is shape]
        changed = False
        for key, shape, path in valid:
            earlier = self._paths.get((name, index, key))
            changed |= earlier is None or earlier[1] is not path
            self._paths[name, index, key] = (shape, path)
        while len(self._paths) > KEPT:
            self._paths.popitem(last=False)
        pending = self._pending.get(name)
        if changed and pending is not None and pending[0] == index:
            self.ready.emit(name)
