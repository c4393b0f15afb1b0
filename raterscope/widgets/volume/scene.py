"""Layers of a volume view: outlines, bands, heat maps, boxes, and the scene that holds them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFontMetrics, QImage, QPainter

from raterscope.widgets import theme
from raterscope.widgets.notes import paint_chip_ground
from raterscope.widgets.painting import CIVIDIS, INFERNO, PUOR, VIRIDIS
from raterscope.widgets.text_size import enlarge, text_size
from raterscope.widgets.volume.levels import Levels
from raterscope.widgets.volume.outlines import Shape
from raterscope.widgets.volume.plane import Box, Index, Plane

__all__ = [
    "BAND",
    "BAR_HEIGHT",
    "EDIT",
    "Band",
    "HeatMap",
    "Outline",
    "RegionBox",
    "Scene",
    "Stroke",
    "heat_picture",
    "mask_picture",
    "paint_colour_bar",
]


@dataclass(frozen=True, eq=False)
class Outline:
    """The edge of one mask.

    Attributes
    ----------
    key : str
        What names it to the program; "rater 3".
    name : str
        What names it to people.
    colour : str
        Hexadecimal.
    values : (z, y, x) bool or float32
        The mask, or what crosses 0.5 at its edge; a part of the volume.
    origin : (slice, row, column)
        The first voxel of `values` in the volume.
    width : float
        Of the line, in the widget's pixels.
    dashed : bool
    """

    key: str
    name: str
    colour: str
    values: NDArray[np.bool_] | NDArray[np.float32]
    origin: Index = (0, 0, 0)
    width: float = 1.4
    dashed: bool = False


@dataclass(frozen=True, eq=False)
class HeatMap:
    """Numbers of a part of the volume, as colours.

    Attributes
    ----------
    values : (z, y, x) float32 or uint8
    origin : (slice, row, column)
    low, high : float
        What the two ends of the colours stand for, in the unit of `label`.
    colours : {"doubt", "weight", "probability", "difference"}
    label : str
        What it is, with its unit: "doubt", "weight of rater 4", "deviation, mm".
    scale : float
        `values` times this are in the unit of `label`: 1 / 255 for shares kept as bytes.
    """

    values: NDArray[np.float32] | NDArray[np.uint8]
    origin: Index
    low: float
    high: float
    colours: Literal["doubt", "weight", "probability", "difference"]
    label: str
    scale: float = 1.0


@dataclass(frozen=True, eq=False)
class Band:
    """Area in which a probability lies between two levels.

    Attributes
    ----------
    values : (z, y, x) float32
    origin : (slice, row, column)
    low, high : float
    """

    values: NDArray[np.float32]
    origin: Index
    low: float
    high: float


@dataclass(frozen=True)
class RegionBox:
    """A disputed region.

    Attributes
    ----------
    number : int
    origin, shape : (slice, row, column)
    title, line : str
        "region 1 of 3"; "rater 4 alone, 0.8 ml".
    settled : bool
        Nothing is left to decide: it stands back.
    """

    number: int
    origin: Index
    shape: Index
    title: str
    line: str = ""
    settled: bool = False


@dataclass(frozen=True, eq=False)
class Stroke:
    """Area covered by one stroke of brush or eraser.

    Attributes
    ----------
    origin : (slice, row, column)
        The first voxel of `values` in the volume.
    values : (z, y, x) int8
        1 put in, 0 taken out, -1 untouched.
    plane : str
        "axial", "coronal" or "sagittal".
    slice : int
        Index along the plane's normal.
    """

    origin: Index
    values: NDArray[np.int8]
    plane: str
    slice: int


_TABLES = {"doubt": INFERNO, "weight": CIVIDIS, "probability": VIRIDIS, "difference": PUOR}
_RISE = 5.0
"""Rate at which a map becomes opaque from its low end (a difference: from its middle)."""

BAR_HEIGHT = 52
MARGIN = 10


def heat_picture(heat: HeatMap, plane: Plane, index: int) -> tuple[QImage, Box] | None:
    """Make the picture of a heat map on one slice, and its place on the plane; None where it has no part."""
    cut = plane.cut_crop(heat.values, heat.origin, index)
    if cut is None:
        return None
    visible = plane.evenly(*cut)
    span = (heat.high - heat.low) or 1.0
    share = visible.astype(np.float32)
    share *= np.float32(heat.scale * 255.0 / span)
    share -= np.float32(heat.low * 255.0 / span)
    np.nan_to_num(share, copy=False, nan=0.0)
    places = np.clip(share + 0.5, 0, 255, out=share).astype(np.uint8)
    return _picture(np.take(_colours(heat.colours), places)), plane.box_of(heat.origin, heat.values.shape)


def mask_picture(mask: NDArray[np.bool_], colour: QColor) -> QImage:
    """Make a picture of one colour, see-through where the mask is not."""
    table = np.array([0, _premultiplied(np.array([colour.getRgb()], dtype=float) / 255)[0]], dtype=np.uint32)
    return _picture(np.take(table, mask.astype(np.uint8)))


def paint_colour_bar(painter: QPainter, right: float, top: float, heat: HeatMap) -> None:
    """Paint the colours of a heat map with the numbers at their ends, its upper right corner at a place."""
    painter.save()
    enlarge(painter, QRectF())
    right, top = right / text_size(), top / text_size()
    painter.setFont(theme.font(theme.CAPTION))
    metrics = QFontMetrics(painter.font())
    ends = f"{heat.low:.3g}", f"{heat.high:.3g}"
    width = max(150, metrics.horizontalAdvance(heat.label)) + 2 * MARGIN
    box = QRectF(right - width, top, width, BAR_HEIGHT)
    paint_chip_ground(painter, box)
    line = QRectF(box.left() + MARGIN, box.top() + 4, width - 2 * MARGIN, 16)
    painter.setPen(QColor(theme.DARK.second))
    middle = Qt.AlignmentFlag.AlignVCenter
    painter.drawText(line, Qt.AlignmentFlag.AlignLeft | middle, heat.label)
    colours = np.ascontiguousarray(_TABLES[heat.colours])
    bar = QImage(colours.data, 256, 1, 768, QImage.Format.Format_RGB888)
    painter.drawImage(QRectF(line.left(), box.top() + 22, line.width(), 8), bar)
    painter.setPen(QColor(theme.DARK.text))
    under = line.translated(0, 28)
    painter.drawText(under, Qt.AlignmentFlag.AlignLeft | middle, ends[0])
    painter.drawText(under, Qt.AlignmentFlag.AlignRight | middle, ends[1])
    if heat.low < 0 < heat.high and abs(heat.low + heat.high) < 1e-6 * heat.high:
        painter.drawText(under, Qt.AlignmentFlag.AlignHCenter | middle, "0")
    painter.restore()


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
    whole = np.round(255 * alpha).astype(np.uint32)
    return np.asarray((whole << 24) | (red << 16) | (green << 8) | blue, dtype=np.uint32)


def _picture(pixels: NDArray[np.uint32]) -> QImage:
    height, width = pixels.shape
    # The copy is Qt's own, so that the array may go.
    return QImage(pixels.data, width, height, 4 * width, QImage.Format.Format_ARGB32_Premultiplied).copy()


BAND, EDIT = "\0band", "\0edit"
"""Names among the shapes that no outline has."""


@dataclass
class Scene:
    """One volume and what lies over it, shared by its views.

    Attributes
    ----------
    empty : bool
        Whether there is no volume, not even one without pixels.
    values : (Z, Y, X) or (Z, Y, X, 3), or None where there are no pixels
    levels : Levels
    calibrated : bool
        Whether lengths are in millimetres.
    outlines : tuple of Outline
        In the order in which they are painted.
    hidden : set of keys
        Outlines that are not painted.
    bare : bool
        The image alone, while somebody looks beneath what lies over it.
    solo : key, or None
    beside : set of keys
        Outlines that stay in sight beside the solo.
    filled : bool
        Masks as areas, not as lines.
    opacity : float
        Of areas and heat maps, 0 to 1.
    heat, band : optional
    boxes : tuple of RegionBox
    selected : int, optional
        Number of the box that is being looked at.
    edit : (values, origin), optional
        The mask that is being mended.
    index : (slice, row, column)
        Where the crosshair is.
    tool : {"look", "brush", "eraser"}
    radius : float
        Of the brush, in millimetres.
    notice : str
        What a drag is changing, while it does.
    """

    empty: bool = True
    values: NDArray[np.generic] | None = None
    levels: Levels = field(default_factory=lambda: Levels(0.0, 1.0))
    calibrated: bool = False
    outlines: tuple[Outline, ...] = ()
    hidden: frozenset[str] = frozenset()
    bare: bool = False
    solo: str | None = None
    beside: frozenset[str] = frozenset()
    filled: bool = False
    opacity: float = 0.55
    heat: HeatMap | None = None
    band: Band | None = None
    boxes: tuple[RegionBox, ...] = ()
    selected: int | None = None
    edit: tuple[NDArray[np.bool_], Index] | None = None
    index: Index = (0, 0, 0)
    tool: str = "look"
    radius: float = 3.0
    notice: str = ""

    def in_sight(self) -> list[Outline]:
        """Return the outlines that are painted."""
        if self.solo is not None:
            visible = self.beside | {self.solo}
            return [outline for outline in self.outlines if outline.key in visible]
        return [outline for outline in self.outlines if outline.key not in self.hidden]

    def solo_name(self) -> str:
        """Name whose outline is seen alone; empty where all are."""
        return next((outline.name for outline in self.outlines if outline.key == self.solo), "")

    def shapes(self) -> dict[str, Shape]:
        """Return all shapes to outline, by name."""
        shapes = {outline.key: Shape(outline.values, outline.origin) for outline in self.outlines}
        if self.band is not None:
            shapes[BAND] = Shape(self.band.values, self.band.origin, (self.band.low, self.band.high))
        if self.edit is not None:
            shapes[EDIT] = Shape(*self.edit)
        return shapes

    def shape_keys(self) -> list[str]:
        """Name the shapes that are painted."""
        keys = [outline.key for outline in self.in_sight()]
        if self.band is not None:
            keys.append(BAND)
        if self.edit is not None:
            keys.append(EDIT)
        return keys
