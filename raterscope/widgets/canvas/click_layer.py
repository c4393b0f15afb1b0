"""The annotators' clicks, one by one or, where they are too many to tell apart, as a density."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPen, QPixmap

from raterscope.widgets import theme
from raterscope.widgets.canvas.colour_maps import VIRIDIS
from raterscope.widgets.canvas.grid_index import GridIndex
from raterscope.widgets.canvas.marks import ClickMarks
from raterscope.widgets.canvas.pictures import draw_part
from raterscope.widgets.canvas.viewport import Rect, Viewport
from raterscope.widgets.glyphs import symbol_path
from raterscope.widgets.tokens import ANNOTATOR_COLOURS, ANNOTATOR_SYMBOLS

__all__ = ["ClickLayer", "DensityLayer"]

MOST_DRAWN = 6_000
"""Clicks in sight above which the density stands for them: one by one they would take longer than a frame."""

BINS = 256

MOST_STYLES = len(ANNOTATOR_COLOURS) * len(ANNOTATOR_SYMBOLS)


class ClickLayer:
    """Clicks by annotator; outliers as thin strokes."""

    def __init__(self) -> None:
        self.set_clicks(ClickMarks.none())
        self._hidden: frozenset[int] = frozenset()
        self._solo: int | None = None

    def set_clicks(self, clicks: ClickMarks) -> None:
        """Show other clicks."""
        self.clicks = clicks
        self._annotator = np.asarray(clicks.annotator, dtype=np.int64)
        self._index = GridIndex(clicks.x, clicks.y)
        self._outlier = np.zeros(len(clicks), dtype=bool) if clicks.inlier is None else clicks.inlier < 0.5
        self._shown_rows: NDArray[np.bool_] | None = None

    def set_annotators_shown(self, hidden: set[int], solo: int | None) -> None:
        """Hide some annotators, or all but one."""
        self._hidden, self._solo = frozenset(hidden), solo
        self._shown_rows = None

    @property
    def shown(self) -> NDArray[np.bool_]:
        """(N,) True for clicks of annotators that are shown."""
        if self._shown_rows is None:
            if self._solo is not None:
                self._shown_rows = self._annotator == self._solo
            else:
                self._shown_rows = ~np.isin(self._annotator, list(self._hidden))
        return self._shown_rows

    def too_many(self, viewport: Viewport, extent: Rect) -> bool:
        """Whether so many clicks are in sight that their density is drawn instead."""
        total = int(np.count_nonzero(self.shown))
        area = (extent[2] - extent[0]) * (extent[3] - extent[1])
        in_sight = viewport.width * viewport.height / viewport.scale**2
        return total * min(1.0, in_sight / area) > MOST_DRAWN

    def paint(self, painter: QPainter, scale: float, rect: QRectF) -> None:
        """Paint the clicks in `rect` and those that reach into it."""
        ratio = painter.transform().m11()
        radius = float(np.clip(2.2 + 0.55 * np.log2(max(scale, 0.1)), 2.0, 4.5))
        reach = 2 * radius / scale
        rows = self._index.within(rect.adjusted(-reach, -reach, reach, reach))
        rows = rows[self.shown[rows]]
        if not len(rows):
            return
        # Outliers first: what matters lies on top.
        rows = rows[np.argsort(~self._outlier[rows], kind="stable")]
        # Beyond all combinations everyone looks alike, and needs no sprite of their own.
        style = 2 * np.minimum(self._annotator[rows], MOST_STYLES) + self._outlier[rows]
        kinds, which = np.unique(style, return_inverse=True)
        sprites = [_sprite(int(kind) // 2, bool(kind % 2), radius, ratio) for kind in kinds]
        half = sprites[0].deviceIndependentSize().width() / 2
        across = (self.clicks.x[rows] * scale - half).tolist()
        down = (self.clicks.y[rows] * scale - half).tolist()
        draw = painter.drawPixmap
        for x, y, kind in zip(across, down, which.tolist(), strict=True):
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


class DensityLayer:
    """How many clicks there are a unit of area, smoothed, in viridis; nothing where there are none."""

    def __init__(self) -> None:
        self._picture: QImage | None = None
        self._box: Rect = (0.0, 0.0, 1.0, 1.0)
        self.highest = 0.0

    def set_clicks(self, clicks: ClickMarks, shown: NDArray[np.bool_], extent: Rect) -> None:
        """Count the clicks that are shown."""
        self._picture, self.highest = None, 0.0
        x, y = np.asarray(clicks.x)[shown], np.asarray(clicks.y)[shown]
        left, top, right, bottom = extent
        bin_side = max(right - left, bottom - top) / BINS
        columns = max(1, int(np.ceil((right - left) / bin_side)))
        rows = max(1, int(np.ceil((bottom - top) / bin_side)))
        column, row = (x - left) // bin_side, (y - top) // bin_side
        inside = (column >= 0) & (column < columns) & (row >= 0) & (row < rows)
        if not inside.any():
            return
        from scipy.ndimage import gaussian_filter

        cell = (row * columns + column)[inside].astype(np.int64)
        counts = np.bincount(cell, minlength=rows * columns).reshape(rows, columns).astype(np.float32)
        density = gaussian_filter(counts, 1.2) / bin_side**2
        self.highest = float(density.max())
        share = density / self.highest
        picture = np.empty((rows, columns, 4), dtype=np.uint8)
        alpha = np.clip(share * 6, 0, 0.86)[..., None]
        table = VIRIDIS[np.clip(share**0.5 * 255, 0, 255).astype(np.uint8)]
        picture[..., :3] = table[..., ::-1] * alpha
        picture[..., 3:] = 255 * alpha
        kind = QImage.Format.Format_ARGB32_Premultiplied
        self._picture = QImage(picture.data, columns, rows, 4 * columns, kind).copy()
        self._box = (left, top, left + columns * bin_side, top + rows * bin_side)

    def paint(self, painter: QPainter, scale: float, rect: QRectF) -> None:
        """Paint what lies in `rect`."""
        if self._picture is not None:
            draw_part(painter, self._picture, self._box, scale, rect, smooth=True)
