"""Painting over the canvas: scale bar, crosshair, frames, partial results and words."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetrics, QImage, QPainter, QPen

from raterscope.algorithms.clicks.data import ellipses
from raterscope.widgets import theme
from raterscope.widgets.canvas.annotation_layers import state_style
from raterscope.widgets.canvas.viewport import Viewport
from raterscope.widgets.notes import paint_chip_ground
from raterscope.widgets.painting import VIRIDIS
from raterscope.widgets.text_size import enlarge, text_size, usual

__all__ = [
    "nice_length",
    "paint_chosen",
    "paint_cross_hair",
    "paint_density_bar",
    "paint_focus",
    "paint_frame",
    "paint_partial",
    "paint_scale_bar",
    "paint_waiting",
    "paint_words",
]


LONGEST = 130.0
HEIGHT = 34
MARGINS = 32.0


def nice_length(longest: float) -> float:
    """Return the largest of 1, 2, 5, 10, 20, 50 ... that is not above `longest`."""
    if longest <= 0:
        raise ValueError(f"a length of {longest}; expected one above 0")
    power = 10.0 ** math.floor(math.log10(longest))
    return next(step * power for step in (5.0, 2.0, 1.0) if step * power <= longest * (1 + 1e-9))


def paint_scale_bar(
    painter: QPainter, corner: QPointF, scale: float, pixel_size: float | None, room: float = math.inf
) -> None:
    """Paint the bar with its length at the bottom left.

    Parameters
    ----------
    corner : QPointF
        Lower left corner.
    scale : float
        Screen pixels a unit of the image.
    pixel_size : float or None
        Micrometres a unit of the image, where that is known.
    room : float
        Screen pixels from the corner to the right edge of the view; a bar that is cut off misleads.
    """
    painter.save()
    enlarge(painter, QRectF())
    corner, scale, room = usual(corner), scale / text_size(), room / text_size()
    size = pixel_size or 1.0
    length = nice_length(min(LONGEST / text_size(), max(room - MARGINS, 10.0)) / scale * size)
    width = length / size * scale
    unit = "µm" if pixel_size else "px"
    if pixel_size and length >= 1000:
        length, unit = length / 1000, "mm"
    words = f"{length:g} {unit}"
    painter.setFont(theme.font(theme.CAPTION, bold=True))
    wide = max(width, QFontMetrics(painter.font()).horizontalAdvance(words)) + 20
    box = QRectF(corner.x(), corner.y() - HEIGHT, wide, HEIGHT)
    paint_chip_ground(painter, box)
    painter.setPen(QPen(QColor(theme.DARK.text), 2))
    line = box.top() + 10
    for start, stop in (
        ((0, 0), (width, 0)),
        ((0, -3), (0, 3)),
        ((width, -3), (width, 3)),
    ):
        painter.drawLine(
            QPointF(box.left() + 10 + start[0], line + start[1]),
            QPointF(box.left() + 10 + stop[0], line + stop[1]),
        )
    text = QRectF(box.left() + 10, line + 3, wide - 20, 18)
    painter.drawText(text, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, words)
    painter.restore()


MOST_PARTIAL = 2_000
EDGE, RING = 12, 8.0


def paint_frame(painter: QPainter, centre: QPointF, half: float) -> None:
    """Paint the square about the selected spot."""
    box = QRectF(centre.x() - half, centre.y() - half, 2 * half, 2 * half)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for pen in (QPen(theme.colour(theme.DARK.canvas, 170), 4), QPen(QColor(theme.DARK.accent), 1.8)):
        painter.setPen(pen)
        painter.drawRoundedRect(box, 3, 3)


def paint_chosen(
    painter: QPainter, viewport: Viewport, x: NDArray[np.floating], y: NDArray[np.floating]
) -> None:
    """Paint rings about the clicks of the annotator that is selected."""
    places = [
        QPointF(*viewport.to_screen(*position)) for position in zip(x.tolist(), y.tolist(), strict=True)
    ]
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for pen in (QPen(theme.colour(theme.DARK.canvas, 170), 3.6), QPen(QColor(theme.DARK.text), 1.6)):
        painter.setPen(pen)
        for position in places:
            painter.drawEllipse(position, RING, RING)


def paint_cross_hair(painter: QPainter, viewport: Viewport, position: tuple[float, float], mode: str) -> None:
    """Paint where a spot would be added or moved to, and what to press."""
    x, y = viewport.to_screen(*position)
    for pen in (QPen(theme.colour(theme.DARK.canvas, 190), 4), QPen(QColor(theme.DARK.accent), 1.6)):
        painter.setPen(pen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawEllipse(QPointF(x, y), 11, 11)
        for across, down in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            near, far = QPointF(x + 4 * across, y + 4 * down), QPointF(x + 20 * across, y + 20 * down)
            painter.drawLine(near, far)
    verb = "add a spot" if mode == "add" else "move the spot"
    words = f"Click or press Enter to {verb} here; Esc to cancel"
    painter.save()
    room = enlarge(painter, QRectF(0, 0, viewport.width, viewport.height))
    painter.setFont(theme.font())
    width = QFontMetrics(painter.font()).horizontalAdvance(words) + 20
    box = QRectF((room.width() - width) / 2, room.height() - EDGE - 28, width, 28)
    paint_chip_ground(painter, box)
    painter.setPen(QColor(theme.DARK.text))
    painter.drawText(box, Qt.AlignmentFlag.AlignCenter, words)
    painter.restore()


def paint_waiting(painter: QPainter, viewport: Viewport, words: str) -> None:
    """Paint in the middle what is being done before the image can be seen."""
    painter.save()
    room = enlarge(painter, QRectF(0, 0, viewport.width, viewport.height))
    painter.setFont(theme.font())
    width = QFontMetrics(painter.font()).horizontalAdvance(words) + 24
    box = QRectF((room.width() - width) / 2, (room.height() - 32) / 2, width, 32)
    paint_chip_ground(painter, box)
    painter.setPen(QColor(theme.DARK.text))
    painter.drawText(box, Qt.AlignmentFlag.AlignCenter, words)
    painter.restore()


def paint_words(
    painter: QPainter, viewport: Viewport, position: QPointF, away: float, title: str, line: str, state: str
) -> None:
    """Paint what a spot is beside it, on the side where there is room."""
    bold, plain = theme.font(bold=True), theme.font(theme.CAPTION)
    width = 20 + max(QFontMetrics(bold).horizontalAdvance(title), QFontMetrics(plain).horizontalAdvance(line))
    painter.save()
    room = enlarge(painter, QRectF(0, 0, viewport.width, viewport.height))
    position, away = usual(position), away / text_size()
    box = QRectF(position.x() + away, position.y() - 22, width, 44)
    if box.right() > room.width() - EDGE:
        box.moveRight(position.x() - away)
    box.moveTop(min(max(box.top(), EDGE), room.height() - EDGE - box.height()))
    paint_chip_ground(painter, box)
    left, middle = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignVCenter
    painter.setPen(QColor(state_style(state).colour))
    painter.setFont(bold)
    painter.drawText(QRectF(box.left() + 10, box.top() + 4, width, 19), left | middle, title)
    painter.setPen(QColor(theme.DARK.text))
    painter.setFont(plain)
    painter.drawText(QRectF(box.left() + 10, box.top() + 22, width, 18), left | middle, line)
    painter.restore()


def paint_partial(
    painter: QPainter,
    viewport: Viewport,
    mean: NDArray[np.floating],
    covariance: NDArray[np.floating],
    coverage: float,
) -> None:
    """Paint the components that a running job has so far, thin and without a verdict."""
    left, top, right, bottom = viewport.visible
    x, y = mean[:, 0], mean[:, 1]
    rows = np.flatnonzero((x >= left) & (x <= right) & (y >= top) & (y <= bottom))[:MOST_PARTIAL]
    shapes = ellipses(covariance[rows], coverage)
    radii, turn = shapes[:, :2], np.degrees(shapes[:, 2])
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(QColor(theme.DARK.text), 1))
    for row, (long, short), angle in zip(rows, radii * viewport.scale, turn, strict=True):
        painter.save()
        painter.translate(*viewport.to_screen(float(x[row]), float(y[row])))
        painter.rotate(float(angle))
        painter.drawEllipse(QPointF(), max(float(long), 3.0), max(float(short), 3.0))
        painter.restore()


def paint_density_bar(painter: QPainter, viewport: Viewport, highest: float, instead: bool) -> None:
    """Paint the colour bar of the density with its unit, and why it stands for the clicks."""
    words = "Too many clicks to draw one by one. Zoom in" if instead else ""
    painter.save()
    room = enlarge(painter, QRectF(0, 0, viewport.width, viewport.height))
    painter.setFont(theme.font(theme.CAPTION))
    metrics = QFontMetrics(painter.font())
    top_words = f"{highest:.2g} clicks / px²"
    width = max(150, metrics.horizontalAdvance(words), metrics.horizontalAdvance(top_words) + 30) + 20
    height = 52 if words else 36
    left = EDGE + 170
    box = QRectF(left, room.height() - EDGE - height, width, height)
    paint_chip_ground(painter, box)
    table = np.ascontiguousarray(VIRIDIS[(np.linspace(0, 1, 256) ** 0.5 * 255).astype(int)])
    bar = QImage(table.data, 256, 1, 768, QImage.Format.Format_RGB888)
    painter.drawImage(QRectF(box.left() + 10, box.top() + 7, width - 20, 7), bar)
    painter.setPen(QColor(theme.DARK.text))
    under = QRectF(box.left() + 10, box.top() + 16, width - 20, 16)
    painter.drawText(under, Qt.AlignmentFlag.AlignLeft, "0")
    painter.drawText(under, Qt.AlignmentFlag.AlignRight, top_words)
    if words:
        painter.drawText(under.translated(0, 16), Qt.AlignmentFlag.AlignLeft, words)
    painter.restore()


def paint_focus(painter: QPainter, viewport: Viewport) -> None:
    """Paint the line that says that keys go to the image."""
    painter.setPen(QPen(QColor(theme.DARK.accent), 1))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRect(QRectF(0.5, 0.5, viewport.width - 1, viewport.height - 1))
