"""Layers of clicks, crowds of clicks, click density, ground truth and detections on the canvas."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QImage, QPainter, QPainterPath, QPen, QPixmap

from raterscope.algorithms.clicks.data import ellipses
from raterscope.figures.colours import ANNOTATOR_COLOURS, ANNOTATOR_SYMBOLS
from raterscope.widgets import theme
from raterscope.widgets.canvas.tiles import draw_part
from raterscope.widgets.canvas.viewport import ClickMarks, DetectionMarks, GridIndex, Rect, Viewport
from raterscope.widgets.colour_maps import VIRIDIS
from raterscope.widgets.painting import BOOKMARK, symbol_path
from raterscope.widgets.theme import pixels

MAX_DRAWN = 6_000
"""Number of visible clicks above which the density replaces them, to paint within a frame."""

MAX_STYLES = len(ANNOTATOR_COLOURS) * len(ANNOTATOR_SYMBOLS)


class ClickLayer:
    """Clicks by annotator; outliers as thin strokes."""

    def __init__(self) -> None:
        self.set_clicks(ClickMarks.none())
        self._hidden: frozenset[int] = frozenset()
        self._solo: int | None = None

    def set_clicks(self, clicks: ClickMarks, unchanged: ClickLayer | None = None) -> None:
        """Show other clicks; `unchanged`: a layer that has sorted them already."""
        self.clicks = clicks
        self._annotator = np.asarray(clicks.annotator, dtype=np.int64)
        self._index: GridIndex = GridIndex(clicks.x, clicks.y) if unchanged is None else unchanged._index
        self._outlier = np.zeros(len(clicks), dtype=bool) if clicks.outlier is None else clicks.outlier
        self._shown_rows: NDArray[np.bool_] | None = None

    def set_annotators_shown(self, hidden: set[int], solo: int | None) -> None:
        """Hide some annotators, or all except one."""
        self._hidden, self._solo = frozenset(hidden), solo
        self._shown_rows = None

    @property
    def shown(self) -> NDArray[np.bool_]:
        """(N,) True for clicks of annotators that are shown."""
        if self._shown_rows is None:
            if self._solo is not None:
                self._shown_rows = self._annotator == self._solo
            else:
                is_visible = np.ones(int(self._annotator.max(initial=0)) + 1, dtype=bool)
                is_visible[[annotator for annotator in self._hidden if 0 <= annotator < len(is_visible)]] = (
                    False
                )
                self._shown_rows = is_visible[self._annotator]
        return self._shown_rows

    def too_many(self, viewport: Viewport) -> bool:
        """Return whether density must replace the clicks, because too many are visible."""
        if not len(self.clicks):
            return False
        left, top, right, bottom = viewport.visible
        visible_items = self._index.count(QRectF(left, top, right - left, bottom - top))
        share = int(np.count_nonzero(self.shown)) / len(self.clicks)
        return visible_items * share > MAX_DRAWN

    def of(self, annotator: int, rect: QRectF) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        """Return x and y of an annotator's visible clicks in a rectangle."""
        rows = self._index.within(rect)
        rows = rows[(self._annotator[rows] == annotator) & self.shown[rows]]
        return self.clicks.x[rows], self.clicks.y[rows]

    def paint(self, painter: QPainter, scale: float, rect: QRectF) -> None:
        """Paint the clicks whose symbols intersect `rect`."""
        ratio = painter.transform().m11()
        radius = float(np.clip(2.2 + 0.55 * np.log2(max(scale, 0.1)), 2.0, 4.5))
        reach = 2 * radius / scale
        rows = self._index.within(rect.adjusted(-reach, -reach, reach, reach))
        rows = rows[self.shown[rows]]
        if not len(rows):
            return
        # Outliers first, so that inliers are on top.
        rows = rows[np.argsort(~self._outlier[rows], kind="stable")]
        # Annotators beyond all combinations of colour and symbol share one sprite.
        style = 2 * np.minimum(self._annotator[rows], MAX_STYLES) + self._outlier[rows]
        kinds, indices = np.unique(style, return_inverse=True)
        sprites = [_sprite(int(kind) // 2, bool(kind % 2), radius, ratio) for kind in kinds]
        half = sprites[0].deviceIndependentSize().width() / 2
        across = (self.clicks.x[rows] * scale - half).tolist()
        down = (self.clicks.y[rows] * scale - half).tolist()
        draw = painter.drawPixmap
        for x, y, kind in zip(across, down, indices.tolist(), strict=True):
            draw(QPointF(x, y), sprites[kind])


@lru_cache(maxsize=512)
def _sprite(index: int, outlier: bool, radius: float, ratio: float) -> QPixmap:
    hue, symbol = theme.annotator_style(index)
    side = 2 * int(np.ceil(1.5 * radius + 2))
    pixmap = QPixmap(round(side * ratio), round(side * ratio))
    pixmap.setDevicePixelRatio(ratio)
    pixmap.fill(Qt.GlobalColor.transparent)
    with QPainter(pixmap) as painter:
        _paint_sprite(painter, side, QColor(hue), symbol if not outlier else "", radius)
    return pixmap


def _paint_sprite(painter: QPainter, side: int, hue: QColor, symbol: str, radius: float) -> None:
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.translate(side / 2, side / 2)
    dark = theme.colour(theme.DARK.canvas, 170)
    if not symbol:
        stroke = 0.9 * radius
        for pen in (QPen(dark, 2.8), QPen(hue, 1.3)):
            painter.setPen(pen)
            painter.drawLine(QPointF(-stroke, -stroke), QPointF(stroke, stroke))
    else:
        painter.setPen(QPen(dark, 1))
        painter.setBrush(hue)
        painter.drawPath(symbol_path(symbol, radius))


BINS = 256
"""Number of bins along the longer side of the image."""

FINE_BINS = (256, 1024)

LARGEST_BIN = 6.0
"""Size of a bin, in pixels of the screen, above which finer bins are drawn, if there are any."""

SMOOTHED = 1.2
"""Standard deviation of the smoothing, in bins."""


@dataclass(frozen=True, eq=False)
class _Level:
    side: float
    picture: QImage
    box: Rect
    highest: float


class DensityLayer:
    """Smoothed click density per unit of area in viridis; transparent where it is zero."""

    def __init__(self) -> None:
        self._levels: list[_Level] = []

    def set_clicks(
        self, clicks: ClickMarks, visible: NDArray[np.bool_], extent: Rect, bins: Sequence[int] = (BINS,)
    ) -> None:
        """Count the shown clicks at several resolutions, the coarsest first."""
        self._levels = []
        x, y = np.asarray(clicks.x)[visible], np.asarray(clicks.y)[visible]
        for number in bins:
            level = _counted(x, y, extent, number)
            if level is None:
                return
            self._levels.append(level)

    def highest_at(self, scale: float) -> float:
        """Return the highest density drawn at a scale; 0 without clicks."""
        return self._at(scale).highest if self._levels else 0.0

    def paint(self, painter: QPainter, scale: float, rect: QRectF) -> None:
        """Paint the part in `rect`."""
        if self._levels:
            level = self._at(scale)
            draw_part(painter, level.picture, level.box, scale, rect, smooth=True)

    def _at(self, scale: float) -> _Level:
        fine = (level for level in self._levels if level.side * scale <= LARGEST_BIN)
        return next(fine, self._levels[-1])


def _counted(x: NDArray[np.floating], y: NDArray[np.floating], extent: Rect, bins: int) -> _Level | None:
    left, top, right, bottom = extent
    side = max(right - left, bottom - top) / bins
    columns = max(1, int(np.ceil((right - left) / side)))
    rows = max(1, int(np.ceil((bottom - top) / side)))
    inside = (x >= left) & (x < left + columns * side) & (y >= top) & (y < top + rows * side)
    if not inside.any():
        return None
    from scipy.ndimage import gaussian_filter

    column, row = ((x[inside] - left) / side).astype(np.int32), ((y[inside] - top) / side).astype(np.int32)
    counts = np.bincount(np.minimum(row, rows - 1) * columns + np.minimum(column, columns - 1))
    counts = np.pad(counts, (0, rows * columns - len(counts))).reshape(rows, columns).astype(np.float32)
    density = gaussian_filter(counts, SMOOTHED)
    highest = float(density.max())
    picture = _table()[np.sqrt(np.maximum(density, 0) * (255**2 / highest)).astype(np.uint8)]
    kind = QImage.Format.Format_ARGB32_Premultiplied
    image = QImage(picture.data, columns, rows, 4 * columns, kind).copy()
    return _Level(side, image, (left, top, left + columns * side, top + rows * side), highest / side**2)


@cache
def _table() -> NDArray[np.uint32]:
    """Return premultiplied colours by the square root of the relative density; they fade to transparent."""
    root = np.linspace(0, 1, 256)[:, None]
    alpha = np.clip(6 * root**2, 0, 0.86)
    colours = np.empty((256, 4), dtype=np.uint8)
    colours[:, :3] = VIRIDIS[:, ::-1] * alpha
    colours[:, 3:] = 255 * alpha
    return colours.view(np.uint32)[:, 0]


AT_ONCE = 20_000
"""Maximum number of clicks that are sorted and counted at once; more are prepared in a thread."""


@dataclass(frozen=True, eq=False)
class _DisplayRequest:
    """Clicks and styles requested for display."""

    clicks: ClickMarks
    hidden: frozenset[int] = frozenset()
    solo: int | None = None
    extent: Rect = (0.0, 0.0, 1.0, 1.0)

    @property
    def many(self) -> bool:
        return len(self.clicks) > AT_ONCE


class CrowdLayer(QObject):
    """The annotators' clicks."""

    prepared = Signal()  # clicks prepared in a thread are shown now
    _made = Signal(object, object, object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._request = _DisplayRequest(ClickMarks.none())
        self._clicks, self._density = ClickLayer(), DensityLayer()
        self._counted = True
        self._scale = 1.0
        self.as_density = False
        self._made.connect(self._on_made, Qt.ConnectionType.QueuedConnection)

    @property
    def many(self) -> bool:
        """True if painting the clicks is slow."""
        return self._request.many

    @property
    def highest(self) -> float:
        """The highest density drawn at the current scale, in clicks per square unit."""
        return self._density.highest_at(self._scale)

    def show(
        self,
        *,
        clicks: ClickMarks | None = None,
        visible: tuple[frozenset[int], int | None] | None = None,
        extent: Rect | None = None,
    ) -> None:
        """Show other clicks, other annotators (`hidden` ones, or only `solo`), or another extent."""
        before = self._request
        hidden, solo = (before.hidden, before.solo) if visible is None else visible
        self._request = _DisplayRequest(
            before.clicks if clicks is None else clicks,
            hidden,
            solo,
            before.extent if extent is None else extent,
        )
        sorted_before = self._clicks if self._request.clicks is self._clicks.clicks else None
        if self._request.many:
            if clicks is not None:  # clicks of another image must not be visible on this one
                self._clicks, self._density = ClickLayer(), DensityLayer()
            work = (self._request, sorted_before, self._made)
            threading.Thread(target=_prepare, args=work, name="clicks", daemon=True).start()
        else:
            self._clicks, self._counted = _sorted(self._request, sorted_before), False

    def show_viewport(self, viewport: Viewport, wants_density: bool) -> bool:
        """Choose what to draw at a scale; return whether that changed."""
        self._scale = viewport.scale
        too_many = self._clicks.too_many(viewport)
        changed, self.as_density = too_many != self.as_density, too_many
        if not self._counted and (too_many or wants_density):
            self._density = _crowd_density(self._request, self._clicks)
            self._counted = changed = True
        return changed

    def of(self, annotator: int, viewport: Viewport) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        """Return x and y of an annotator's visible clicks; none if the density replaces them."""
        if self.as_density:
            return np.empty(0), np.empty(0)
        left, top, right, bottom = viewport.visible
        return self._clicks.of(annotator, QRectF(left, top, right - left, bottom - top))

    def paint(self, painter: QPainter, scale: float, rect: QRectF, *, clicks: bool, density: bool) -> None:
        """Paint the clicks in `rect`, if requested, and their density, if requested or needed."""
        if density or (clicks and self.as_density):
            self._density.paint(painter, scale, rect)
        if clicks and not self.as_density:
            self._clicks.paint(painter, scale, rect)

    def _on_made(self, request: _DisplayRequest, clicks: ClickLayer, density: DensityLayer) -> None:
        if request is self._request:
            self._clicks, self._density, self._counted = clicks, density, True
            self.prepared.emit()


def _sorted(request: _DisplayRequest, before: ClickLayer | None) -> ClickLayer:
    layer = ClickLayer()
    layer.set_clicks(request.clicks, before)
    layer.set_annotators_shown(set(request.hidden), request.solo)
    return layer


def _crowd_density(request: _DisplayRequest, clicks: ClickLayer) -> DensityLayer:
    layer = DensityLayer()
    layer.set_clicks(request.clicks, clicks.shown, request.extent, FINE_BINS if request.many else (BINS,))
    return layer


def _prepare(request: _DisplayRequest, before: ClickLayer | None, made: Any) -> None:
    clicks = _sorted(request, before)
    density = _crowd_density(request, clicks)
    try:
        made.emit(request, clicks, density)
    except RuntimeError:  # the window is gone, and the layer with it
        return


RADIUS = 6.0


class TruthLayer:
    """Imported ground truth."""

    def __init__(self) -> None:
        self.set_points(np.empty(0), np.empty(0))

    def set_points(self, x: NDArray[np.floating], y: NDArray[np.floating]) -> None:
        """Show other positions."""
        self.x, self.y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        self._index = GridIndex(self.x, self.y)

    def paint(self, painter: QPainter, scale: float, rect: QRectF) -> None:
        """Paint the positions whose symbols intersect `rect`."""
        reach = 2 * RADIUS / scale
        painter.setBrush(Qt.BrushStyle.NoBrush)
        dark, white = QPen(theme.colour(theme.DARK.canvas, 190), 3), QPen(QColor("#ffffff"), 1.2)
        for row in self._index.within(rect.adjusted(-reach, -reach, reach, reach)).tolist():
            # In the middle of a pixel, to keep thin lines sharp.
            centre = QPointF(math.floor(self.x[row] * scale) + 0.5, math.floor(self.y[row] * scale) + 0.5)
            for pen in (dark, white):
                painter.setPen(pen)
                for across, down in ((1, 0), (-1, 0), (0, 1), (0, -1)):
                    outer = centre + QPointF(across * RADIUS, down * RADIUS)
                    painter.drawLine(centre + QPointF(across * 2.5, down * 2.5), outer)


SMALLEST_RADIUS = 5.0
"""Minimum radius of an ellipse in pixels of the screen, so that a spot stays visible."""

MARK_SIDE = 16

LABELS_UP_TO = 40
"""Maximum number of visible spots with their numbers beside them."""


@dataclass(frozen=True, slots=True)
class StateStyle:
    """Colour, dash and symbol of a state of spots; never colour alone."""

    colour: str
    width: float
    dashes: tuple[float, ...]
    mark: str


@lru_cache(maxsize=16)
def state_style(state: str) -> StateStyle:
    """Return the style of a state; the canvas uses the dark colours in both themes."""
    palette = theme.DARK
    return {
        "detected": StateStyle(palette.accent, 1.6, (), "o"),
        "accepted": StateStyle(palette.accent, 2.6, (), "v"),
        "added": StateStyle(palette.accent, 2.6, (), "+"),
        "rejected": StateStyle(palette.rejected, 1.6, (3.0, 2.0), "x"),
        "turned down": StateStyle(palette.rejected, 2.6, (3.0, 1.6), "X"),
        "undecided": StateStyle(palette.text, 1.6, (2.0, 1.6), "?"),
        "disputed": StateStyle(palette.disputed, 2.0, (2.0, 1.6), "?"),
    }[state]


class SpotLayer:
    """Layer of M spots; the canvas paints the selection."""

    def __init__(self) -> None:
        self.coverage = 0.95
        self.set_spots(DetectionMarks.none())

    def set_spots(self, spots: DetectionMarks) -> None:
        """Show other spots."""
        self.spots = spots
        shapes = ellipses(spots.covariance, self.coverage)
        self._radii, self._turn = shapes[:, :2], np.degrees(shapes[:, 2])
        self._index = GridIndex(spots.x, spots.y)

    def reach(self, scale: float) -> float:
        """Return the maximum radius of an ellipse, in the image's units."""
        largest = float(self._radii.max()) if len(self._radii) else 0.0
        return max(largest, SMALLEST_RADIUS / scale) + 6 / scale

    def radius(self, index: int) -> float:
        """Return the long half axis of a spot, in the image's units."""
        return float(self._radii[index, 0])

    def at(self, x: float, y: float, scale: float) -> int | None:
        """Return the nearest spot whose ellipse, slightly enlarged, contains a position."""
        if not len(self.spots):
            return None
        reach = self.reach(scale)
        rows = self._index.within(QRectF(x - reach, y - reach, 2 * reach, 2 * reach))
        if not len(rows):
            return None
        dx, dy = self.spots.x[rows] - x, self.spots.y[rows] - y
        angle = np.radians(self._turn[rows])
        along = dx * np.cos(angle) + dy * np.sin(angle)
        lateral = dy * np.cos(angle) - dx * np.sin(angle)
        radii = np.maximum(self._radii[rows], SMALLEST_RADIUS / scale) + 3 / scale
        inside = np.hypot(along / radii[:, 0], lateral / radii[:, 1]) <= 1
        if not inside.any():
            return None
        distance = np.where(inside, np.hypot(dx, dy), np.inf)
        return int(rows[int(np.argmin(distance))])

    def paint_ellipses(self, painter: QPainter, scale: float, rect: QRectF) -> None:
        """Paint the ellipses that intersect `rect`, each on a dark line to be visible on any image."""
        reach = self.reach(scale)
        rows = self._index.within(rect.adjusted(-reach, -reach, reach, reach))
        positions = np.column_stack([self.spots.x[rows], self.spots.y[rows]]) * scale
        radii = np.maximum(self._radii[rows] * scale, SMALLEST_RADIUS)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        before, centre = painter.transform(), QPointF()
        for row, (x, y), (long, short), angle in zip(
            rows.tolist(), positions.tolist(), radii.tolist(), self._turn[rows].tolist(), strict=True
        ):
            ground, line = _pens(self.spots.state[row])
            painter.translate(x, y)
            painter.rotate(angle)
            painter.setPen(ground)
            painter.drawEllipse(centre, long, short)
            painter.setPen(line)
            painter.drawEllipse(centre, long, short)
            painter.setTransform(before)

    def paint_marks(
        self, painter: QPainter, scale: float, rect: QRectF, *, labels: bool, all_marks: bool
    ) -> None:
        """Paint beside each ellipse the mark of its state, the spot's number if there is room, and a star.

        Detected spots have a mark only on demand, because their plain ellipse suffices if visible. Stars are
        bookmarks.
        """
        reach = self.reach(scale) + 40 / scale
        for index in self._index.within(rect.adjusted(-reach, -reach, reach, reach)).tolist():
            style = state_style(self.spots.state[index])
            long = max(self.radius(index) * scale, SMALLEST_RADIUS)
            corner = QPointF(
                self.spots.x[index] * scale + 0.71 * long + 6, self.spots.y[index] * scale - 0.71 * long - 6
            )
            marked = all_marks or style.mark != "o"
            if marked:
                sprite = _mark(style, painter.transform().m11())
                painter.drawPixmap(corner - QPointF(MARK_SIDE / 2, MARK_SIDE / 2), sprite)
            number = int(self.spots.number[index])
            starred = number in self.spots.bookmarked
            text = (str(number) if labels else "") + (BOOKMARK if starred else "")
            if text:
                hue = theme.DARK.text if starred else style.colour
                _paint_number(painter, corner + QPointF(8 if marked else -3, 4), text, hue)


@lru_cache(maxsize=16)
def _pens(state: str) -> tuple[QPen, QPen]:
    style = state_style(state)
    line = QPen(QColor(style.colour), style.width)
    line.setCapStyle(Qt.PenCapStyle.FlatCap)
    if style.dashes:
        line.setDashPattern(style.dashes)
    return QPen(theme.colour(theme.DARK.canvas, 150), style.width + 2.2), line


@lru_cache(maxsize=32)
def _mark(style: StateStyle, ratio: float) -> QPixmap:
    """Draw a state's mark on a dark disc, and cache it, because hundreds may be visible."""
    pixmap = _blank(MARK_SIDE, MARK_SIDE, ratio)
    with QPainter(pixmap) as painter:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.translate(MARK_SIDE / 2, MARK_SIDE / 2)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.colour(theme.DARK.canvas, 190))
        painter.drawEllipse(QPointF(), 6.5, 6.5)
        painter.setPen(QPen(QColor(style.colour), 1.8))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if style.mark == "o":
            painter.setBrush(QColor(style.colour))
            painter.drawEllipse(QPointF(), 2.4, 2.4)
        elif style.mark == "v":
            painter.drawPolyline([QPointF(-3.4, 0), QPointF(-0.8, 2.8), QPointF(3.6, -3)])
        elif style.mark in "xX":
            painter.setPen(QPen(QColor(style.colour), 1.5 if style.mark == "x" else 2.4))
            painter.drawPath(symbol_path("cross", 3.6))
        elif style.mark == "+":
            painter.drawLine(QPointF(-3.4, 0), QPointF(3.4, 0))
            painter.drawLine(QPointF(0, -3.4), QPointF(0, 3.4))
        else:
            painter.setFont(theme.font(theme.CAPTION, bold=True))
            painter.drawText(QRectF(-7, -7, 14, 14), Qt.AlignmentFlag.AlignCenter, "?")
    return pixmap


def _paint_number(painter: QPainter, left: QPointF, text: str, hue: str) -> None:
    sprite = _number(text, hue, pixels(theme.CAPTION), painter.transform().m11())
    painter.drawPixmap(left - QPointF(3, sprite.deviceIndependentSize().height() - 6), sprite)


@lru_cache(maxsize=2048)
def _number(text: str, hue: str, size: int, ratio: float) -> QPixmap:
    """Draw a number with a dark edge, and cache it, because the edge takes time."""
    path = QPainterPath()
    path.addText(3, size + 1, theme.font(size, bold=True), text)
    width, height = math.ceil(path.boundingRect().right()) + 4, size + 7
    pixmap = _blank(width, height, ratio)
    ground = QPen(theme.colour(theme.DARK.canvas, 200), 3)
    ground.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
    with QPainter(pixmap) as painter:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.strokePath(path, ground)
        painter.fillPath(path, QColor(hue))
    return pixmap


def _blank(width: int, height: int, ratio: float) -> QPixmap:
    pixmap = QPixmap(math.ceil(width * ratio), math.ceil(height * ratio))
    pixmap.setDevicePixelRatio(ratio)
    pixmap.fill(Qt.GlobalColor.transparent)
    return pixmap
