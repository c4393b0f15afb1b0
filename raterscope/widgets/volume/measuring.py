"""Length, angle and values of an area measured on a slice (not stored), and the value of a voxel in words."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPen

from raterscope.algorithms.masks.grid import Grid
from raterscope.widgets import theme
from raterscope.widgets.canvas.viewport import Viewport
from raterscope.widgets.hints import paint_chip_ground
from raterscope.widgets.volume.plane import Index, Plane


def describe_voxel(values: NDArray[np.generic] | None, grid: Grid, index: Index, unit: str) -> str:
    """Describe a voxel: "-23 HU, x 12.3, y -45.1, z 88.0 mm"; without a known position, its row and column.

    Positions are those of DICOM: x to the patient's left, y to the back, z to the head.
    """
    words = []
    if values is not None:
        value = values[index]
        if np.ndim(value):
            words.append("RGB " + " ".join(str(part) for part in np.asarray(value).tolist()))
        else:
            number = float(np.asarray(value))
            words.append((f"{number:.0f}" if number == round(number) else f"{number:.4g}") + _after(unit))
    if grid.calibrated:
        position = np.round(grid.to_patient(np.array(index, dtype=float)), 1) + 0.0  # no -0.0
        x, y, z = position.tolist()
        words.append(f"x {x:.1f}, y {y:.1f}, z {z:.1f} mm")
    elif values is not None:
        words.append(f"row {index[1] + 1}, column {index[2] + 1}")
    return ", ".join(words)


def _after(unit: str) -> str:
    return f" {unit}" if unit else ""


RULER, ROI = "ruler", "roi"
"""Tools: corners of a line, one by one, and an ellipse by dragging."""
LONGEST = 3
"""Points of a ruler: a length, and with a third one the angle at the second."""

Point = tuple[float, float]


@dataclass(frozen=True)
class Measurement:
    """Points on a slice, in the plane's units; of an ellipse two corners of its box."""

    plane: str
    slice: int  # index along the plane's normal
    kind: str  # {"ruler", "roi"}
    points: tuple[Point, ...]

    def with_point(self, point: Point) -> Measurement:
        """Return a ruler with one more corner."""
        return Measurement(self.plane, self.slice, self.kind, (*self.points, point))

    def dragged(self, point: Point) -> Measurement:
        """Return the measurement with its last point elsewhere."""
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
    """Write a measurement: "23.4 mm", "23.4 and 12.0 mm, 87.3°", or area and statistics of an ellipse."""
    unit, points = "mm" if calibrated else "px", measurement.points
    if measurement.kind == ROI:
        return _describe_roi(points, plane, measurement.slice, values, unit, _after(value_unit))
    lengths = [math.dist(first, second) for first, second in itertools.pairwise(points)]
    if not lengths:
        return ""
    words = " and ".join(f"{length:.1f}" for length in lengths) + f" {unit}"
    return f"{words}, {angle(*points):.1f}°" if len(points) == LONGEST and min(lengths) > 0 else words


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
    words = f"{area:.1f} {length_unit}²"
    if values is None or values.ndim != 3:
        return words
    inside = values_in_ellipse(points, plane, plane.cut(values, index))
    if not len(inside):
        return words
    mean, deviation = float(inside.mean()), float(inside.std(ddof=1)) if len(inside) > 1 else 0.0
    ends = f"{inside.min():.6g} to {inside.max():.6g}{unit}"
    return f"{words}, mean {mean:.1f}{unit}, SD {deviation:.1f}, {ends}, {len(inside):,} voxels"


def values_in_ellipse(
    points: tuple[Point, ...], plane: Plane, cut: NDArray[np.generic]
) -> NDArray[np.float64]:
    """Return the values of a cut whose voxels have their centre in the ellipse."""
    (left, top), (right, bottom) = points
    wide, high = abs(right - left) / 2, abs(bottom - top) / 2
    if not (wide and high):
        return np.empty(0)
    across = (plane.centres(plane.across) - (left + right) / 2) / wide
    down = (plane.centres(plane.down) - (top + bottom) / 2) / high
    return np.asarray(cut[down[:, None] ** 2 + across[None, :] ** 2 <= 1], dtype=np.float64)


def paint_measurement(painter: QPainter, view: Viewport, measurement: Measurement, words: str) -> None:
    """Paint lines and ends, or the ellipse, with the words beside the last point."""
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
    if words:
        painter.setFont(theme.widget_font(theme.CAPTION))
        metrics = QFontMetrics(painter.font())
        width, height = metrics.horizontalAdvance(words) + 16, metrics.height() + 8
        end = points[-1]
        left = min(max(end.x() + 10, 4.0), view.width - width - 4.0)
        top = min(max(end.y() + 10, 4.0), view.height - height - 4.0)
        box = QRectF(left, top, width, height)
        paint_chip_ground(painter, box)
        painter.setPen(QColor(theme.DARK.text))
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, words)
