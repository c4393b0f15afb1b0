"""Painting of the image, whole or in tiles, and of the overlays: scale bar, crosshair, frames, texts."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QImage, QPainter, QPen

from raterscope.algorithms.clicks.data import ellipses
from raterscope.widgets import theme
from raterscope.widgets.canvas.annotation_layers import state_style
from raterscope.widgets.canvas.tiles import Key, TileSource, TileStore, draw_part, level_for, to_picture
from raterscope.widgets.canvas.viewport import Rect, Viewport
from raterscope.widgets.colour_maps import VIRIDIS
from raterscope.widgets.hints import paint_chip_ground
from raterscope.widgets.theme import enlarge, text_size, usual

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
) -> QRectF:
    """Paint the bar with its length at the bottom left; return its rectangle.

    `corner`: lower left corner. `scale`: screen pixels per unit of the image. `pixel_size`: micrometres per
    unit of the image, if known. `room`: screen pixels from the corner to the right edge of the view, which
    limits the bar.
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
    for start, stop in (((0, 0), (width, 0)), ((0, -3), (0, 3)), ((width, -3), (width, 3))):
        painter.drawLine(
            QPointF(box.left() + 10 + start[0], line + start[1]),
            QPointF(box.left() + 10 + stop[0], line + stop[1]),
        )
    text = QRectF(box.left() + 10, line + 3, wide - 20, 18)
    painter.drawText(text, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, words)
    painter.restore()
    return QRectF(box.topLeft() * text_size(), box.size() * text_size())


MAX_PARTIAL = 2_000
EDGE, RING = 12, 8.0


def paint_frame(painter: QPainter, centre: QPointF, half: float) -> None:
    """Paint the square around the selected spot."""
    box = QRectF(centre.x() - half, centre.y() - half, 2 * half, 2 * half)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for pen in (QPen(theme.colour(theme.DARK.canvas, 170), 4), QPen(QColor(theme.DARK.accent), 1.8)):
        painter.setPen(pen)
        painter.drawRoundedRect(box, 3, 3)


def paint_chosen(
    painter: QPainter, viewport: Viewport, x: NDArray[np.floating], y: NDArray[np.floating]
) -> None:
    """Paint rings around the clicks of the selected annotator."""
    positions = [
        QPointF(*viewport.to_screen(*position)) for position in zip(x.tolist(), y.tolist(), strict=True)
    ]
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for pen in (QPen(theme.colour(theme.DARK.canvas, 170), 3.6), QPen(QColor(theme.DARK.text), 1.6)):
        painter.setPen(pen)
        for position in positions:
            painter.drawEllipse(position, RING, RING)


def paint_cross_hair(painter: QPainter, viewport: Viewport, position: tuple[float, float], mode: str) -> None:
    """Paint a crosshair at the position of a new or moved spot, and the keys to press."""
    x, y = viewport.to_screen(*position)
    for pen in (QPen(theme.colour(theme.DARK.canvas, 190), 4), QPen(QColor(theme.DARK.accent), 1.6)):
        painter.setPen(pen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawEllipse(QPointF(x, y), 11, 11)
        for across, down in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            near, far = QPointF(x + 4 * across, y + 4 * down), QPointF(x + 20 * across, y + 20 * down)
            painter.drawLine(near, far)
    verb = "add a spot" if mode == "add" else "move the spot"
    text = f"Click or press Enter to {verb} here; Esc to cancel"
    painter.save()
    room = enlarge(painter, QRectF(0, 0, viewport.width, viewport.height))
    painter.setFont(theme.font())
    width = QFontMetrics(painter.font()).horizontalAdvance(text) + 20
    box = QRectF((room.width() - width) / 2, room.height() - EDGE - 28, width, 28)
    paint_chip_ground(painter, box)
    painter.setPen(QColor(theme.DARK.text))
    painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)
    painter.restore()


def paint_waiting(painter: QPainter, viewport: Viewport, text: str) -> None:
    """Paint a message in the middle until the image appears."""
    _paint_label(painter, viewport, text, lambda room, box: box.moveCenter(room.center()))


def paint_plane(painter: QPainter, viewport: Viewport, text: str) -> None:
    """Paint the focal plane and time above the scale bar."""
    edge = EDGE / text_size()
    corner = QPointF(edge, -HEIGHT - 2 * edge)
    _paint_label(painter, viewport, text, lambda room, box: box.moveBottomLeft(room.bottomLeft() + corner))


def _paint_label(
    painter: QPainter, viewport: Viewport, text: str, move: Callable[[QRectF, QRectF], None]
) -> None:
    painter.save()
    room = enlarge(painter, QRectF(0, 0, viewport.width, viewport.height))
    painter.setFont(theme.font())
    box = QRectF(0, 0, QFontMetrics(painter.font()).horizontalAdvance(text) + 24, 32)
    move(room, box)
    paint_chip_ground(painter, box)
    painter.setPen(QColor(theme.DARK.text))
    painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)
    painter.restore()


def paint_text(
    painter: QPainter, viewport: Viewport, position: QPointF, away: float, title: str, line: str, state: str
) -> None:
    """Paint the description of a spot beside it, on the side with enough room."""
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
    """Paint the components found so far by a running job, with thin lines and without states."""
    left, top, right, bottom = viewport.visible
    x, y = mean[:, 0], mean[:, 1]
    rows = np.flatnonzero((x >= left) & (x <= right) & (y >= top) & (y <= bottom))[:MAX_PARTIAL]
    shapes = ellipses(covariance[rows], coverage)
    radii, angles = shapes[:, :2], np.degrees(shapes[:, 2])
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(QColor(theme.DARK.text), 1))
    for row, (long, short), angle in zip(rows, radii * viewport.scale, angles, strict=True):
        painter.save()
        painter.translate(*viewport.to_screen(float(x[row]), float(y[row])))
        painter.rotate(float(angle))
        painter.drawEllipse(QPointF(), max(float(long), 3.0), max(float(short), 3.0))
        painter.restore()


def paint_density_bar(painter: QPainter, viewport: Viewport, highest: float, instead: bool) -> None:
    """Paint the colour bar of the density with its unit, and why it replaces the clicks."""
    text = "Too many clicks to draw one by one. Zoom in" if instead else ""
    painter.save()
    room = enlarge(painter, QRectF(0, 0, viewport.width, viewport.height))
    painter.setFont(theme.font(theme.CAPTION))
    metrics = QFontMetrics(painter.font())
    top_text = f"{highest:.2g} clicks / px²"
    width = max(150, metrics.horizontalAdvance(text), metrics.horizontalAdvance(top_text) + 30) + 20
    height = 52 if text else 36
    left = EDGE + 170
    box = QRectF(left, room.height() - EDGE - height, width, height)
    paint_chip_ground(painter, box)
    table = np.ascontiguousarray(VIRIDIS[(np.linspace(0, 1, 256) ** 0.5 * 255).astype(int)])
    bar = QImage(table.data, 256, 1, 768, QImage.Format.Format_RGB888)
    painter.drawImage(QRectF(box.left() + 10, box.top() + 7, width - 20, 7), bar)
    painter.setPen(QColor(theme.DARK.text))
    under = QRectF(box.left() + 10, box.top() + 16, width - 20, 16)
    painter.drawText(under, Qt.AlignmentFlag.AlignLeft, "0")
    painter.drawText(under, Qt.AlignmentFlag.AlignRight, top_text)
    if text:
        painter.drawText(under.translated(0, 16), Qt.AlignmentFlag.AlignLeft, text)
    painter.restore()


SMALLEST_LEVEL = 256


class WholePicture:
    """Picture that is completely in memory.

    `array`: (H, W) or (H, W, 3). `extent`: (left, top, right, bottom), in the units of all positions.
    """

    def __init__(self, array: NDArray[np.uint8], extent: Rect) -> None:
        self._levels = [to_picture(array)]
        self._extent = extent

    @property
    def width(self) -> int:
        """Pixels from left to right."""
        return self._levels[0].width()

    def thumbnail(self, width: int, height: int) -> QImage:
        """Return the whole image, reduced."""
        smooth = Qt.TransformationMode.SmoothTransformation
        level = self._level(min(width / self.width, 1.0))
        return self._levels[level].scaled(width, height, Qt.AspectRatioMode.IgnoreAspectRatio, smooth)

    def paint(self, painter: QPainter, scale: float, rect: QRectF, enlarged: float, *, smooth: bool) -> None:
        """Paint the part in `rect`, `scale` units of the painter for one of the image's."""
        draw_part(painter, self._levels[self._level(enlarged)], self._extent, scale, rect, smooth=smooth)

    def _level(self, enlarged: float) -> int:
        level = level_for(enlarged)
        while len(self._levels) <= level and min(self._levels[-1].width(), self._levels[-1].height()) > (
            SMALLEST_LEVEL
        ):
            last = self._levels[-1]
            self._levels.append(
                last.scaled(
                    max(1, last.width() // 2),
                    max(1, last.height() // 2),
                    Qt.AspectRatioMode.IgnoreAspectRatio,
                    Qt.TransformationMode.SmoothTransformation,
                )
            )
        return min(level, len(self._levels) - 1)


class TiledPicture:
    """Picture with only the tiles around the visible part in memory.

    `extent`: (left, top, right, bottom), in the units of all positions. `parent`: parent of the store.
    """

    def __init__(self, source: TileSource, extent: Rect, parent: QObject) -> None:
        # source of tiles; signals report loaded tiles and unreadable ones
        self.store = TileStore(source, parent)
        self._extent = extent
        self._last = len(self.store.levels) - 1

    @property
    def width(self) -> int:
        """Pixels from left to right."""
        return self.store.levels[0][0]

    def close(self) -> None:
        """Stop reading."""
        self.store.close()
        self.store.deleteLater()

    def thumbnail(self, width: int, height: int) -> QImage | None:
        """Return the whole image, reduced; None until it is loaded."""
        picture = self.store.get((self._last, 0, 0))
        if picture is None:
            return None
        smooth = Qt.TransformationMode.SmoothTransformation
        return picture.scaled(width, height, Qt.AspectRatioMode.IgnoreAspectRatio, smooth)

    def show_viewport(self, visible: Rect, enlarged: float) -> None:
        """Request the visible tiles and those around.

        `visible`: (left, top, right, bottom). `enlarged`: screen pixels per pixel of the image.
        """
        level = self._level(enlarged)
        keys = [(self._last, 0, 0)]
        if level + 2 < self._last:
            keys += self._covering(level + 2, visible, 1)  # loads fast, and is visible when zooming out
        keys += self._covering(level, visible, 0)
        keys += self._covering(level, visible, 1)
        self.store.want(list(dict.fromkeys(keys)))

    def shown_by(self, key: Key, enlarged: float) -> QRectF | None:
        """Return the picture of a tile at a scale; None if finer tiles are drawn."""
        if key[0] < self._level(enlarged):
            return None
        left, top, right, bottom = self._box(key)
        return QRectF(left, top, right - left, bottom - top)

    def paint(self, painter: QPainter, scale: float, rect: QRectF, enlarged: float, *, smooth: bool) -> None:
        """Paint the part in `rect`, `scale` units of the painter for one of the image's."""
        level = self._level(enlarged)
        visible = (rect.left(), rect.top(), rect.right(), rect.bottom())
        parts: dict[Key, QRectF] = {}
        for key in self._covering(level, visible, 0):
            left, top, right, bottom = self._box(key)
            part = QRectF(left, top, right - left, bottom - top).intersected(rect)
            stands = self._standing_for(key)
            if stands is not None:
                parts[stands] = parts[stands].united(part) if stands in parts else part
        for key in sorted(parts, reverse=True):  # finer ones on top
            tile = self.store.get(key)
            if tile is not None:
                draw_part(painter, tile, self._box(key), scale, parts[key], smooth=smooth)

    def _level(self, enlarged: float) -> int:
        return min(level_for(enlarged), self._last)

    def _standing_for(self, key: Key) -> Key | None:
        """Find a tile, or the finest loaded tile of a coarser level that covers it."""
        level, row, column = key
        above = ((level + up, row >> up, column >> up) for up in range(self._last - level + 1))
        return next((coarser for coarser in above if self.store.get(coarser) is not None), None)

    def _units(self, level: int) -> tuple[float, float]:
        """Return the units from one pixel of a level to the next, across and down."""
        left, top, right, bottom = self._extent
        width, height = self.store.levels[level]
        return (right - left) / width, (bottom - top) / height

    def _box(self, key: Key) -> Rect:
        """Return the rectangle of a tile."""
        level, row, column = key
        left, top, right, bottom = self._extent
        across, down = (self.store.side * unit for unit in self._units(level))
        return (
            left + column * across, top + row * down,
            min(left + (column + 1) * across, right), min(top + (row + 1) * down, bottom),
        )  # fmt: skip

    def _covering(self, level: int, visible: Rect, ring: int) -> list[Key]:
        """Find the visible tiles of a level, and some rings around them, from the middle outwards."""
        left, top, _, _ = self._extent
        width, height = self.store.levels[level]
        columns, rows = math.ceil(width / self.store.side), math.ceil(height / self.store.side)
        across, down = (self.store.side * unit for unit in self._units(level))
        first_column, last_column = (visible[0] - left) / across, (visible[2] - left) / across
        first_row, last_row = (visible[1] - top) / down, (visible[3] - top) / down
        keys = [
            (level, row, column)
            for row in range(max(math.floor(first_row) - ring, 0), min(math.ceil(last_row) + ring, rows))
            for column in range(
                max(math.floor(first_column) - ring, 0), min(math.ceil(last_column) + ring, columns)
            )
        ]
        middle_row, middle_column = (first_row + last_row - 1) / 2, (first_column + last_column - 1) / 2
        return sorted(keys, key=lambda key: abs(key[1] - middle_row) + abs(key[2] - middle_column))


SQUARE_PIXELS_FROM = 8.0
"""Enlargement above which pixels are shown as squares, without smoothing."""

EMPTY = "#16191d"


class ImageLayer(QObject):
    """One image on its extent, or the frame of the extent without an image."""

    arrived = Signal(list)  # parts of a tiled image, in its units, with finer tiles
    refused = Signal(str)  # why a tile cannot be read

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._picture: WholePicture | TiledPicture | None = None
        self._enlarged = 1.0
        self.extent: Rect = (0.0, 0.0, 1.0, 1.0)

    @property
    def by_tiles(self) -> bool:
        """True if the image is read by tiles."""
        return isinstance(self._picture, TiledPicture)

    def set_image(self, image: NDArray[np.uint8] | TileSource | None, extent: Rect) -> None:
        """Show another image."""
        if isinstance(self._picture, TiledPicture):
            self._picture.close()
        self.extent = extent
        if image is None:
            self._picture = None
        elif isinstance(image, np.ndarray):
            self._picture = WholePicture(image, extent)
        else:
            self._picture = TiledPicture(image, extent, self)
            self._picture.store.arrived.connect(self._on_arrived)
            self._picture.store.refused.connect(self.refused)

    def show_viewport(self, viewport: Viewport, ratio: float) -> None:
        """Set the visible part, and read it."""
        if isinstance(self._picture, TiledPicture):
            self._enlarged = self._enlargement(viewport.scale) * ratio
            self._picture.show_viewport(viewport.visible, self._enlarged)

    def thumbnail(self, width: int, height: int) -> QImage | None:
        """Return the whole image, reduced; None if it is not loaded."""
        return None if self._picture is None else self._picture.thumbnail(width, height)

    def paint(self, painter: QPainter, scale: float, rect: QRectF, *, quickly: bool = False) -> None:
        """Paint the part in `rect`; `quickly`: without smoothing."""
        left, top, right, bottom = self.extent
        area = QRectF(left * scale, top * scale, (right - left) * scale, (bottom - top) * scale)
        if self._picture is None or self.by_tiles:
            visible = (rect.left() * scale, rect.top() * scale, rect.width() * scale, rect.height() * scale)
            painter.fillRect(area.intersected(QRectF(*visible)), QColor(EMPTY))
        if self._picture is None:
            painter.setPen(QPen(QColor(theme.DARK.line), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(area)
            return
        enlarged = self._enlargement(scale)
        smooth = enlarged < SQUARE_PIXELS_FROM and not quickly
        ratio = painter.transform().m11() * painter.device().devicePixelRatioF()
        self._picture.paint(painter, scale, rect, enlarged * ratio, smooth=smooth)

    def _enlargement(self, scale: float) -> float:
        width = self._picture.width if self._picture is not None else 1
        return (self.extent[2] - self.extent[0]) * scale / width

    def _on_arrived(self, keys: list[tuple[int, int, int]]) -> None:
        if isinstance(self._picture, TiledPicture) and self.sender() is self._picture.store:
            visible = (self._picture.shown_by(key, self._enlarged) for key in keys)
            self.arrived.emit([part for part in visible if part is not None])
