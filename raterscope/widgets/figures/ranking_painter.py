"""How the two rows of a ranking look: cards, lines between them, scores with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPixmap

from raterscope.widgets import theme
from raterscope.widgets.figures.ranking_layout import AFTER, BEFORE, GUTTER, Rows
from raterscope.widgets.painting import paint_words

__all__ = ["paint_rows"]

FAINT_FROM, FAINTEST = 60, 70
"""Of more lines in sight, each is fainter."""

MOST_PASSING = 250
"""Of more lines, those that only pass by are left out."""


def paint_rows(
    painter: QPainter,
    rows: Rows,
    chosen: tuple[int, ...],
    pointed: tuple[int, ...],
    pictures: Mapping[int, QPixmap | None],
    row_at_keys: int | None,
) -> None:
    """Paint what is in sight.

    Parameters
    ----------
    painter : QPainter
    rows : Rows
    chosen, pointed : tuple of int
        Items.
    pictures : mapping of int to QPixmap or None
        By item, as far as they are here.
    row_at_keys : int, optional
        The row that the keys walk along.
    """
    look = theme.current()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
    painter.setClipRect(QRectF(GUTTER - 4, 0, rows.width - GUTTER + 4, rows.height))
    _paint_lines(painter, rows, {*chosen, *pointed})
    painter.setFont(theme.font(theme.CAPTION))
    for row in (BEFORE, AFTER):
        for item in np.flatnonzero(rows.shown(row)).tolist():
            picture = pictures.get(item) if rows.view.pictures else None
            width = 2.0 if item in chosen else 1.4
            ink = look.text if item in chosen or item in pointed else look.accent
            framed = item in chosen or item in pointed or bool(rows.view.swapped[item])
            _paint_card(painter, rows.card(item, row), int(rows.view.rank_before[item]), picture)
            if framed:
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.setPen(QPen(QColor(ink), width))
                painter.drawRoundedRect(rows.card(item, row), 4, 4)
    painter.setClipping(False)
    if rows.intervals:
        _paint_scores(painter, rows)
    for row, word in ((BEFORE, "before"), (AFTER, "after")):
        room = QRectF(0, rows.top(row), GUTTER - 8, rows.side)
        paint_words(painter, room, word, look.accent if row == row_at_keys else look.third)


def _paint_lines(painter: QPainter, rows: Rows, lit: set[int]) -> None:
    view, look, half = rows.view, theme.current(), rows.side / 2
    begin, end = rows.top(BEFORE) + rows.side + 3, rows.top(AFTER) - 3
    here, there = rows.x(view.place_before) + half, rows.x(view.place_after) + half
    seen = rows.passing()
    if int(seen.sum()) > MOST_PASSING:
        seen = rows.shown(BEFORE) | rows.shown(AFTER)
    many = int((seen & view.swapped).sum())
    alpha = 255 if many <= FAINT_FROM else max(round(255 * FAINT_FROM / many), FAINTEST)
    still, moved = QPen(QColor(look.line), 1.4), QPen(theme.colour(look.accent, alpha), 1.5)
    bright = QPen(QColor(look.text), 2.2)
    ranked = np.array([item for item in lit if view.rank_before[item]], dtype=np.int64)
    for pen, items in (
        (still, np.flatnonzero(seen & ~view.swapped)),
        (moved, np.flatnonzero(seen & view.swapped)),
        (bright, ranked),
    ):
        painter.setPen(pen)
        for top, bottom in zip(here[items].tolist(), there[items].tolist(), strict=True):
            painter.drawLine(QPointF(top, begin), QPointF(bottom, end))


def _paint_card(painter: QPainter, box: QRectF, rank: int, picture: QPixmap | None) -> None:
    """Paint an item with its rank before, on either row: it tells which is which."""
    look, middle = theme.current(), Qt.AlignmentFlag.AlignHCenter
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(look.raised))
    painter.drawRoundedRect(box, 4, 4)
    if picture is None:
        paint_words(painter, box, f"{rank:,}", look.text, side=middle)
        return
    fitting = picture.size().toSizeF().scaled(box.size(), Qt.AspectRatioMode.KeepAspectRatio)
    target = QRectF(QPointF(), fitting)
    target.moveCenter(box.center())
    painter.drawPixmap(target, picture, QRectF(picture.rect()))
    width = painter.fontMetrics().horizontalAdvance(f"{rank:,}") + 6.0
    room = QRectF(box.left() + 2, box.bottom() - 16, width, 14)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.colour(theme.DARK.canvas, 200))
    painter.drawRoundedRect(room, 3, 3)
    paint_words(painter, room, f"{rank:,}", theme.DARK.text, side=middle)


def _paint_scores(painter: QPainter, rows: Rows) -> None:
    """Paint scores and intervals beside both rows, on a scale for those in sight."""
    view, look = rows.view, theme.current()
    shown = [np.flatnonzero(rows.shown(row)) for row in (BEFORE, AFTER)]
    scores = (view.before, view.after)
    ends = (view.before_interval, view.after_interval)
    seen = [score[items] for score, items in zip(scores, shown, strict=True)]
    seen += [end[:, items].ravel() for end, items in zip(ends, shown, strict=True)]
    least, most = _span(seen)
    room = rows.strip - 8
    scale = room / ((most - least) or 1.0)
    for row, top in ((BEFORE, 3.0), (AFTER, rows.height - rows.strip + 4)):
        for value, y in ((most, top), (least, top + room)):
            box = QRectF(0, min(max(y - 7, 0), rows.height - 14), GUTTER - 8, 14)
            paint_words(painter, box, f"{value:.2g}", look.third, side=Qt.AlignmentFlag.AlignRight)
        for item in shown[row].tolist():
            x = rows.card(item, row).center().x()
            if x < GUTTER:
                continue
            painter.setPen(QPen(QColor(look.accent if view.swapped[item] else look.second), 1.6))
            low, high = (top + (most - end) * scale for end in ends[row][:, item].tolist())
            if math.isfinite(low) and math.isfinite(high):
                painter.drawLine(QPointF(x, low), QPointF(x, high))
            painter.setBrush(QColor(look.surface))
            y = top + (most - float(scores[row][item])) * scale
            painter.drawEllipse(QPointF(x, y), 2.2, 2.2)


def _span(parts: list[NDArray[np.floating]]) -> tuple[float, float]:
    values = np.concatenate(parts)
    values = values[np.isfinite(values)]
    return (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
