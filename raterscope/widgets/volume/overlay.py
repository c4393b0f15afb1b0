"""Overlays painted over a slice in every frame: crosshair, letters, texts, brush, measurements."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPen

from raterscope.algorithms.masks.grid import Grid
from raterscope.text import with_minus
from raterscope.widgets import theme
from raterscope.widgets.canvas.viewport import Viewport
from raterscope.widgets.hints import paint_chip_ground
from raterscope.widgets.theme import enlarge, pixels, text_size
from raterscope.widgets.volume.plane import Box, Index, Plane

EDGE = 12
TITLE_ALPHA = 170
GAP = 9.0
"""Gap of the crosshair around the voxel, so that this stays visible, in pixels."""

BESIDE_BAR = 176.0
"""Offset of the letters at top and bottom of a narrow view, to avoid title and scale bar."""

LABEL_GAP = 8.0
LABEL_LINES = 19.0, 17.0

_CENTRE = Qt.AlignmentFlag.AlignCenter
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


@dataclass(frozen=True)
class RegionBox:
    """A disputed region."""

    number: int
    # origin, shape: (slice, row, column)
    origin: Index
    shape: Index
    # title, line: "region 1 of 3"; "rater 4 alone, 0.8 ml"
    title: str
    line: str = ""
    settled: bool = False  # whether it is settled, and therefore painted faintly


def paint_cross_hair(
    painter: QPainter, viewport: Viewport, position: tuple[float, float], *, faint: bool
) -> None:
    """Paint thin lines through a position of the plane, with a gap around it."""
    x, y = (round(value) + 0.5 for value in viewport.to_screen(*position))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    painter.setPen(QPen(theme.colour(theme.DARK.accent, 70 if faint else 190), 1))
    for near, far in (
        (QPointF(x - GAP, y), QPointF(0, y)),
        (QPointF(x + GAP, y), QPointF(viewport.width, y)),
        (QPointF(x, y - GAP), QPointF(x, 0)),
        (QPointF(x, y + GAP), QPointF(x, viewport.height)),
    ):
        painter.drawLine(near, far)


def paint_letters(painter: QPainter, viewport: Viewport, plane: Plane) -> None:
    """Paint the patient's sides at the middles of the edges."""
    painter.save()
    frame = enlarge(painter, QRectF(0, 0, viewport.width, viewport.height))
    painter.setFont(theme.font(bold=True))
    left, right, top, bottom = plane.letters
    wide, high = frame.width(), frame.height()
    middle = max(wide / 2, BESIDE_BAR)
    for letter, x, y in (
        (left, EDGE + 6, high / 2), (right, wide - EDGE - 6, high / 2),
        (top, middle, EDGE + 6), (bottom, middle, high - EDGE - 6),
    ):  # fmt: skip
        if letter:
            _shaded(painter, QRectF(x - 10, y - 10, 20, 20), _CENTRE, letter, theme.DARK.second)
    painter.restore()


_BREAKS = re.compile(r"(?<!\b[xyz])(?<!/) (?!/|mm\b)")


def paint_title(painter: QPainter, title: str, *lines: str, width: float = math.inf) -> QRectF:
    """Paint the name of the plane and the slice number, and lines below; return their rectangle.

    `width`: width of the view in screen pixels; longer lines are broken.
    """
    painter.save()
    enlarge(painter, QRectF())
    painter.setFont(theme.font(theme.CAPTION, bold=True))
    metrics = QFontMetrics(painter.font())
    whole = QRectF()
    rows = [row for line in (title, *lines) for row in _broken(line, metrics, width / text_size() - 2 * EDGE)]
    for row, words in enumerate(rows):
        room = QRectF(EDGE, EDGE - 4.0 + 18.0 * row, metrics.horizontalAdvance(words) + 4, 20)
        painter.fillRect(room.adjusted(-4, 1, 0, -1), theme.colour(theme.DARK.canvas, TITLE_ALPHA))
        painter.setPen(QColor(theme.DARK.text))
        painter.drawText(room, _LEFT, words)
        whole |= room
    painter.restore()
    return QRectF(whole.topLeft() * text_size(), whole.size() * text_size())


def _broken(text: str, metrics: QFontMetrics, room: float) -> list[str]:
    """Break a line between words into rows that fit into a width; "x -21.0" and "25 / 48" stay together."""
    if not text or metrics.horizontalAdvance(text) <= room:
        return [text] if text else []
    rows: list[str] = []
    for word in _BREAKS.split(text):
        longer = f"{rows[-1]} {word}" if rows else word
        if rows and metrics.horizontalAdvance(longer) <= room:
            rows[-1] = longer
        else:
            rows.append(word)
    return rows


def paint_notice(painter: QPainter, viewport: Viewport, text: str) -> None:
    """Paint at the top the values that a drag changes."""
    painter.save()
    frame = enlarge(painter, QRectF(0, 0, viewport.width, viewport.height))
    painter.setFont(theme.font(bold=True))
    width = QFontMetrics(painter.font()).horizontalAdvance(text) + 24
    box = QRectF((frame.width() - width) / 2, EDGE + 20, width, 28)
    paint_chip_ground(painter, box)
    painter.setPen(QColor(theme.DARK.text))
    painter.drawText(box, _CENTRE, text)
    painter.restore()


def paint_brush(
    painter: QPainter,
    viewport: Viewport,
    position: tuple[float, float],
    radius: float,
    unit: str,
    *,
    puts_in: bool,
) -> None:
    """Paint the disc of the brush, with a plus or minus and its radius beside it."""
    x, y = viewport.to_screen(*position)
    reach = radius * viewport.scale
    hue = theme.DARK.painted
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    line = Qt.PenStyle.SolidLine if puts_in else Qt.PenStyle.DashLine
    for pen in (QPen(theme.colour(theme.DARK.canvas, 170), 3), QPen(QColor(hue), 1.4, line)):
        painter.setPen(pen)
        painter.drawEllipse(QPointF(x, y), reach, reach)
    across, down = x + 0.71 * reach + 9, y - 0.71 * reach - 9
    for pen in (QPen(theme.colour(theme.DARK.canvas, 170), 4), QPen(QColor(hue), 2)):
        painter.setPen(pen)
        painter.drawLine(QPointF(across - 4, down), QPointF(across + 4, down))
        if puts_in:
            painter.drawLine(QPointF(across, down - 4), QPointF(across, down + 4))
    painter.setFont(theme.widget_font(theme.CAPTION))
    room = QRectF(across + 9, down - pixels(10), pixels(90), pixels(20))
    _shaded(painter, room, _LEFT, f"{radius:.2g} {unit}", theme.DARK.text)


def on_screen(viewport: Viewport, box: Box) -> QRectF:
    """Convert a box of the plane to a rectangle in the widget."""
    left, top = viewport.to_screen(box[0], box[1])
    right, bottom = viewport.to_screen(box[2], box[3])
    return QRectF(left, top, right - left, bottom - top)


def _box_label(viewport: Viewport, region: RegionBox, box: Box, *, selected: bool) -> QRectF:
    """Return the rectangle of a region's label beside its box; without the second line if both do not fit."""
    frame, first, second = on_screen(viewport, box), *map(pixels, LABEL_LINES)
    title = QFontMetrics(theme.widget_font(bold=True)).horizontalAdvance(region.title) + 4.0
    line = QFontMetrics(theme.widget_font(theme.CAPTION)).horizontalAdvance(region.line) + 4.0
    sizes = [(max(title, line), first + second)] if selected and region.line else []
    for width, height in (*sizes, (title, first)):
        for left in (frame.right() + LABEL_GAP, frame.left() - LABEL_GAP - width):
            if EDGE <= left <= viewport.width - EDGE - width:
                return QRectF(left, frame.top(), width, height)
    return QRectF(max(EDGE, frame.left()), frame.bottom() + LABEL_GAP / 2, title, first)


def box_labels(
    viewport: Viewport, boxes: Sequence[tuple[RegionBox, Box]], selected: int | None, bar: QRectF
) -> dict[int, QRectF]:
    """Return the rectangles of the labels of regions by their numbers; none overlaps another.

    The label of the selected region keeps its place, above the scale bar `bar`; others move down, below the
    labels in their way. Regions out of view have none.
    """
    rooms: dict[int, QRectF] = {}
    whole = QRectF(0, 0, viewport.width, viewport.height)
    visible = (entry for entry in boxes if on_screen(viewport, entry[1]).intersects(whole))
    for region, box in sorted(visible, key=lambda entry: entry[0].number != selected):
        room = _box_label(viewport, region, box, selected=region.number == selected)
        room.moveBottom(min(room.bottom(), bar.bottom()))
        if room.intersects(bar):
            room.moveBottom(bar.top() - 1.0)
        for _ in range(len(rooms)):
            in_the_way = [other for other in rooms.values() if other.intersects(room)]
            if not in_the_way:
                break
            room.moveTop(max(other.bottom() for other in in_the_way) + 1.0)
        rooms[region.number] = room
    return rooms


def paint_box(
    painter: QPainter,
    viewport: Viewport,
    region: RegionBox,
    box: Box,
    *,
    selected: bool,
    quiet: bool,
    label: QRectF | None,
) -> None:
    """Paint a disputed region's box and, if it fits, its label.

    A quiet box is faint, so that tissue and outlines of the selected region stay visible. So is a settled
    box, in another colour.
    """
    quiet = quiet or (region.settled and not selected)
    colour = theme.DARK.accent if region.settled else theme.DARK.disputed
    frame = on_screen(viewport, box).adjusted(-3, -3, 3, 3)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    hue = theme.colour(colour, 150) if quiet else QColor(colour)
    dashes = QPen(hue, 1.8 if selected else 1.2)
    dashes.setDashPattern([3, 4] if quiet else [5, 3])
    for pen in (dashes,) if quiet else (QPen(theme.colour(theme.DARK.canvas, 150), 4), dashes):
        painter.setPen(pen)
        painter.drawRoundedRect(frame, 4, 4)
    if label is None:
        return
    room = label
    painter.setFont(theme.widget_font(bold=selected))
    first, second = map(pixels, LABEL_LINES)
    title = QRectF(room.left(), room.top(), room.width() + 20, first)
    _shaded(painter, title, _LEFT, region.title, colour)
    if room.height() > first:
        painter.setFont(theme.widget_font(theme.CAPTION))
        line = QRectF(title.left(), title.bottom(), title.width(), second)
        _shaded(painter, line, _LEFT, region.line, theme.DARK.text)


def _shaded(painter: QPainter, room: QRectF, where: Qt.AlignmentFlag, text: str, hue: str) -> None:
    """Paint text with a dark edge, to be readable on bright tissue."""
    painter.setPen(theme.colour(theme.DARK.canvas, 200))
    for across, down in ((-1, 0), (1, 0), (0, -1), (0, 1), (1, 1)):
        painter.drawText(room.translated(across, down), where, text)
    painter.setPen(QColor(hue))
    painter.drawText(room, where, text)


def describe_voxel(values: NDArray[np.generic] | None, grid: Grid, index: Index, unit: str) -> str:
    """Describe a voxel: "-23 HU, x 12.3, y -45.1, z 88.0 mm"; with an unknown position, its row and column.

    Positions are those of DICOM: x to the patient's left, y to the back, z to the head.
    """
    words = []
    if values is not None:
        value = values[index]
        if np.ndim(value):
            words.append("RGB " + " ".join(str(part) for part in np.asarray(value).tolist()))
        else:
            number = float(np.asarray(value))
            text = f"{number:.0f}" if number == round(number) else f"{number:.4g}"
            words.append(with_minus(text) + _after(unit))
    if grid.calibrated:
        position = grid.to_patient(np.array(index, dtype=float)).tolist()
        x, y, z = (with_minus(f"{coordinate:.1f}") for coordinate in position)
        words.append(f"x {x}, y {y}, z {z} mm")
    elif values is not None:
        words.append(f"row {index[1] + 1}, column {index[2] + 1}")
    return ", ".join(words)


def _after(unit: str) -> str:
    return f" {unit}" if unit else ""


RULER, ROI = "ruler", "roi"
"""Measuring tools: a line by its corners, and an ellipse by dragging."""
LONGEST = 3
"""Maximum number of points of a ruler: two give a length, three also the angle at the second."""

Point = tuple[float, float]


@dataclass(frozen=True)
class Measurement:
    """Measurement on a slice: points in the plane's units; for an ellipse, two corners of its box."""

    plane: str
    slice: int  # index along the plane's normal
    kind: str  # {"ruler", "roi"}
    points: tuple[Point, ...]

    def with_point(self, point: Point) -> Measurement:
        """Return a ruler with one more point."""
        return Measurement(self.plane, self.slice, self.kind, (*self.points, point))

    def dragged(self, point: Point) -> Measurement:
        """Return the measurement with its last point moved."""
        first = self.points[:1] if len(self.points) == 1 else self.points[:-1]
        return Measurement(self.plane, self.slice, self.kind, (*first, point))


def describe(
    measurement: Measurement,
    plane: Plane,
    values: NDArray[np.generic] | None,
    *,
    calibrated: bool,
    value_unit: str,
) -> str:
    """Describe a measurement: "23.4 mm", "23.4 and 12.0 mm, 87.3°", or area and statistics of an ellipse."""
    unit, points = "mm" if calibrated else "px", measurement.points
    if measurement.kind == ROI:
        return _describe_roi(points, plane, measurement.slice, values, unit, _after(value_unit))
    lengths = [math.dist(first, second) for first, second in itertools.pairwise(points)]
    if not lengths:
        return ""
    text = " and ".join(f"{length:.1f}" for length in lengths) + f" {unit}"
    return f"{text}, {angle(*points):.1f}°" if len(points) == LONGEST and min(lengths) > 0 else text


def angle(first: Point, corner: Point, last: Point) -> float:
    """Return the angle at a corner, 0 to 180 degrees."""
    arm, other = np.subtract(first, corner), np.subtract(last, corner)
    cosine = float(arm @ other) / (math.hypot(*arm) * math.hypot(*other))
    return math.degrees(math.acos(min(max(cosine, -1.0), 1.0)))


def _describe_roi(
    points: tuple[Point, ...],
    plane: Plane,
    index: int,
    values: NDArray[np.generic] | None,
    length_unit: str,
    unit: str,
) -> str:
    if len(points) < 2:
        return ""
    (left, top), (right, bottom) = points
    area = math.pi / 4 * abs((right - left) * (bottom - top))
    text = f"{area:.1f} {length_unit}²"
    if values is None or values.ndim != 3:
        return text
    inside = values_in_ellipse(points, plane, plane.cut(values, index))
    if not len(inside):
        return text
    mean, deviation = float(inside.mean()), float(inside.std(ddof=1)) if len(inside) > 1 else 0.0
    ends = f"{inside.min():.6g} to {inside.max():.6g}{unit}"
    of_values = with_minus(f"mean {mean:.1f}{unit}, SD {deviation:.1f}, {ends}")
    return f"{text}, {of_values}, {len(inside):,} voxels"


def values_in_ellipse(
    points: tuple[Point, ...], plane: Plane, cut: NDArray[np.generic]
) -> NDArray[np.float64]:
    """Return the values of the voxels of a cut whose centres are in the ellipse."""
    (left, top), (right, bottom) = points
    wide, high = abs(right - left) / 2, abs(bottom - top) / 2
    if not (wide and high):
        return np.empty(0)
    across = (plane.centres(plane.across) - (left + right) / 2) / wide
    down = (plane.centres(plane.down) - (top + bottom) / 2) / high
    return np.asarray(cut[down[:, None] ** 2 + across[None, :] ** 2 <= 1], dtype=np.float64)


def paint_measurement(painter: QPainter, view: Viewport, measurement: Measurement, text: str) -> None:
    """Paint lines and ends, or the ellipse, with the text beside the last point."""
    points = [QPointF(*view.to_screen(*point)) for point in measurement.points]
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for pen in (QPen(theme.colour(theme.DARK.canvas, 170), 3.5), QPen(QColor(theme.DARK.painted), 1.6)):
        painter.setPen(pen)
        if measurement.kind == ROI and len(points) == 2:
            painter.drawEllipse(QRectF(points[0], points[1]).normalized())
        elif measurement.kind == RULER:
            painter.drawPolyline(points)
            for point in points:
                painter.drawEllipse(point, 2.5, 2.5)
    if text:
        painter.setFont(theme.widget_font(theme.CAPTION))
        metrics = QFontMetrics(painter.font())
        width, height = metrics.horizontalAdvance(text) + 16, metrics.height() + 8
        end = points[-1]
        left = min(max(end.x() + 10, 4.0), view.width - width - 4.0)
        top = min(max(end.y() + 10, 4.0), view.height - height - 4.0)
        box = QRectF(left, top, width, height)
        paint_chip_ground(painter, box)
        painter.setPen(QColor(theme.DARK.text))
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)
