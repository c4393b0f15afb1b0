"""The annotators' clicks, one by one."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPixmap

from raterscope.figures.colours import ANNOTATOR_COLOURS, ANNOTATOR_SYMBOLS
from raterscope.widgets import theme
from raterscope.widgets.canvas.grid_index import GridIndex
from raterscope.widgets.canvas.marks import ClickMarks
from raterscope.widgets.canvas.viewport import Viewport
from raterscope.widgets.glyphs import symbol_path

__all__ = ["ClickLayer"]

MOST_DRAWN = 6_000
"""Clicks in sight above which the density stands for them: one by one they would take longer than a frame."""

MOST_STYLES = len(ANNOTATOR_COLOURS) * len(ANNOTATOR_SYMBOLS)


class ClickLayer:
    """Clicks by annotator; outliers as thin strokes."""

    def __init__(self) -> None:
        self.set_clicks(ClickMarks.none())
        self._hidden: frozenset[int] = frozenset()
        self._solo: int | None = None

    def set_clicks(self, clicks: ClickMarks, same: ClickLayer | None = None) -> None:
        """Show other clicks; `same` has sorted them already."""
        self.clicks = clicks
        self._annotator = np.asarray(clicks.annotator, dtype=np.int64)
        self._index: GridIndex = GridIndex(clicks.x, clicks.y) if same is None else same._index
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
                kept = np.ones(int(self._annotator.max(initial=0)) + 1, dtype=bool)
                kept[[one for one in self._hidden if 0 <= one < len(kept)]] = False
                self._shown_rows = kept[self._annotator]
        return self._shown_rows

    def too_many(self, viewport: Viewport) -> bool:
        """Whether so many clicks are in sight that their density is drawn instead."""
        if not len(self.clicks):
            return False
        left, top, right, bottom = viewport.visible
        in_sight = self._index.count(QRectF(left, top, right - left, bottom - top))
        share = int(np.count_nonzero(self.shown)) / len(self.clicks)
        return in_sight * share > MOST_DRAWN

    def of(self, annotator: int, rect: QRectF) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        """Give x and y of an annotator's clicks in a rectangle, as far as they are shown."""
        rows = self._index.within(rect)
        rows = rows[(self._annotator[rows] == annotator) & self.shown[rows]]
        return self.clicks.x[rows], self.clicks.y[rows]

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
