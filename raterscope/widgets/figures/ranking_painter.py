"""Rows of a ranking before and after its correction: layout and painting."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPixmap

from raterscope.figures.description import Axis, check_lengths
from raterscope.figures.layout import ticks_of
from raterscope.text import with_minus
from raterscope.widgets import theme
from raterscope.widgets.painting import paint_text

BEFORE, AFTER = 0, 1
GUTTER, MARGIN, SPACE = 48.0, 6.0, 7.0
SMALLEST, LARGEST = 22.0, 60.0
WIDEST_NAME, PAD = 180.0, 6.0
TWO_LINES = 34.0
"""Minimum height of a card with the name below the rank."""
STRIP_SHARE, STRIP_LEAST, STRIP_MOST = 0.25, 24.0, 80.0
REACH = 6.0

GAP = 0.7
"""Gap between components, in cards."""


@dataclass(frozen=True, eq=False)
class RankingView:
    """Scores of n items before and after the biases of flagged annotators are removed.

    Ranks, swapped items and the length are computed from the scores.
    """

    names: Sequence[str]  # (n,)
    # before, after: (n,): scores, highest for the best item; NaN for an item that was never compared
    before: NDArray[np.floating]
    after: NDArray[np.floating]
    # before_interval, after_interval: (2, n): bounds of the 95 % interval
    before_interval: NDArray[np.floating]
    after_interval: NDArray[np.floating]
    # (n,): component; items of the same component are comparable; negative for an item never compared
    component: NDArray[np.integer]
    # rank_before, rank_after: (n,): rank within the component, from 1; equal scores share a rank; 0 without a
    # score
    rank_before: NDArray[np.integer]
    rank_after: NDArray[np.integer]
    pictures: bool = False  # whether the items have pictures
    # place_before, place_after: (n,): position in either row, in cards from the left; NaN without a rank
    place_before: NDArray[np.floating] = field(init=False)
    place_after: NDArray[np.floating] = field(init=False)
    swapped: NDArray[np.bool_] = field(init=False)  # (n,): whether an item's rank differs
    length: float = field(init=False)  # of the first row, in cards

    def __post_init__(self) -> None:
        number = len(self.names)
        ranks = (self.rank_before, self.rank_after)
        check_lengths(number, "items", self.before, self.after, self.component, *ranks)
        if {np.shape(self.before_interval), np.shape(self.after_interval)} != {(2, number)}:
            raise ValueError(f"intervals not of shape (2, {number})")
        object.__setattr__(self, "place_before", self._positions(self.rank_before))
        object.__setattr__(self, "place_after", self._positions(self.rank_after))
        object.__setattr__(self, "swapped", self.rank_before != self.rank_after)
        last = self.place_before[np.isfinite(self.place_before)]
        object.__setattr__(self, "length", float(last.max()) + 1 if len(last) else 0.0)

    def _positions(self, rank: NDArray[np.integer]) -> NDArray[np.floating]:
        positions, items = np.full(len(rank), np.nan), np.flatnonzero(rank)
        order = items[np.lexsort((rank[items], self.component[items]))]
        further = np.diff(self.component[order], prepend=self.component[order[:1]]) != 0
        positions[order] = np.arange(len(order)) + GAP * np.cumsum(further)
        return positions

    def in_order(self, *, after: bool = False) -> NDArray[np.int64]:
        """Return the ranked items from left to right."""
        positions = self.place_after if after else self.place_before
        return np.argsort(positions, kind="stable")[: int(np.isfinite(positions).sum())]

    def crosses(self, first: int, second: int) -> bool:
        """Check whether the lines of two items cross."""
        distance = self.place_before[first] - self.place_before[second]
        return bool(distance * (self.place_after[first] - self.place_after[second]) < 0)

    def text_of(self, item: int) -> str:
        """Describe an item and its ranks."""
        if not self.rank_before[item]:
            return f"{self.names[item]}, never compared"
        before, after = int(self.rank_before[item]), int(self.rank_after[item])
        ends = self.after_interval[:, item]
        numbers = [with_minus(f"{number:.2f}") for number in (self.after[item], *ends)]
        score = f"score {numbers[0]}"
        score += f" ({numbers[1]} to {numbers[2]})" if np.isfinite(ends).all() else ""
        moved = (
            f"rank {before} before, {after} after" if before != after else f"rank {before}, before and after"
        )
        return f"{self.names[item]}: {moved}; {score}"


@dataclass(frozen=True, eq=False)
class Rows:
    """Layout of the cards of a view on a part of the screen."""

    view: RankingView
    # width, height: size of that part, in pixels
    width: float
    height: float
    scrolled: float  # offset of the rows to the left
    intervals: bool  # whether a strip beside each row has the scores
    name_width: float = 0.0  # width of the longest name; longer ones than `WIDEST_NAME` are shortened

    @property
    def strip(self) -> float:
        """Height of the strip of scores beside a row."""
        high = min(max(STRIP_SHARE * self.height, STRIP_LEAST), STRIP_MOST)
        return high if self.intervals else 0.0

    @property
    def side(self) -> float:
        """Height of a card, and width of its picture."""
        return min(max(0.29 * (self.height - 2 * self.strip), SMALLEST), LARGEST)

    @property
    def card_width(self) -> float:
        """Width of a card: its picture, if any, and its name."""
        name = min(self.name_width, WIDEST_NAME) + 2 * PAD + (0 if self.side >= TWO_LINES else 24)
        return self.side + name if self.view.pictures else max(self.side, name)

    @property
    def pitch(self) -> float:
        """Distance from one card to the next."""
        return self.card_width + SPACE

    @property
    def total_width(self) -> float:
        """Width of all cards."""
        return GUTTER + self.view.length * self.pitch + MARGIN

    def top(self, row: int) -> float:
        """Return the top of the cards of a row."""
        return self.strip + 2 if row == BEFORE else self.height - self.strip - self.side - 4

    def x(self, positions: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the left edges of cards at given positions."""
        return np.asarray(GUTTER + positions * self.pitch - self.scrolled)

    def card(self, item: int, row: int) -> QRectF:
        """Return the rectangle of an item's card."""
        place_in_row = (self.view.place_before, self.view.place_after)[row][item]
        left = GUTTER + float(place_in_row) * self.pitch - self.scrolled
        return QRectF(left, self.top(row), self.card_width, self.side)

    def visible(self, row: int) -> NDArray[np.bool_]:
        """Return which cards of a row are visible."""
        left = self.x((self.view.place_before, self.view.place_after)[row])
        return np.asarray((left + self.card_width >= GUTTER) & (left <= self.width))

    def passing(self) -> NDArray[np.bool_]:
        """Return which lines may be visible although neither of their cards is."""
        before, after = self.x(self.view.place_before), self.x(self.view.place_after)
        return np.asarray(
            (np.fmax(before, after) + self.card_width >= GUTTER) & (np.fmin(before, after) <= self.width)
        )

    def parts_at(self, position: QPointF) -> tuple[int, ...]:
        """Return the item at a position; two where their lines cross, none on the background."""
        view = self.view
        if position.x() < GUTTER:
            return ()
        for row, positions in ((BEFORE, view.place_before), (AFTER, view.place_after)):
            if self.top(row) <= position.y() <= self.top(row) + self.side:
                left = self.x(positions)
                items = np.flatnonzero((left <= position.x()) & (position.x() <= left + self.card_width))
                return tuple(items[:1].tolist())
        begin, end = self.top(BEFORE) + self.side, self.top(AFTER)
        if not begin < position.y() < end:
            return ()
        share = (position.y() - begin) / (end - begin)
        middle = view.place_before + share * (view.place_after - view.place_before)
        away = np.abs(self.x(middle) + self.card_width / 2 - position.x())
        near = np.flatnonzero(away <= REACH)
        near = near[np.argsort(away[near], kind="stable")]
        if not len(near):
            return ()
        first = int(near[0])
        crossing = [neighbour for neighbour in near[1:].tolist() if view.crosses(first, neighbour)]
        return (first, *crossing[:1])


FAINT_FROM, FAINTEST = 60, 70
"""Number of visible lines above which lines are fainter, and minimum opacity, of 255."""

MAX_PASSING = 250
"""Maximum number of lines to also paint those without a visible card."""


def paint_rows(
    painter: QPainter,
    rows: Rows,
    chosen: tuple[int, ...],
    pointed: tuple[int, ...],
    pictures: Mapping[int, QPixmap | None],
    row_at_keys: int | None,
) -> None:
    """Paint the visible rows.

    `chosen`, `pointed`: selected items, and items under the pointer. `pictures`: loaded pictures by item.
    `row_at_keys`: the row in which the arrow keys move.
    """
    palette = theme.current()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
    painter.setClipRect(QRectF(GUTTER - 4, 0, rows.width - GUTTER + 4, rows.height))
    _paint_lines(painter, rows, {*chosen, *pointed})
    painter.setFont(theme.font(theme.CAPTION))
    for row in (BEFORE, AFTER):
        for item in np.flatnonzero(rows.visible(row)).tolist():
            picture = pictures.get(item) if rows.view.pictures else None
            width = 2.0 if item in chosen else 1.4
            ink = palette.text if item in chosen or item in pointed else palette.accent
            framed = item in chosen or item in pointed or bool(rows.view.swapped[item])
            rank, name = int(rows.view.rank_before[item]), rows.view.names[item]
            _paint_card(painter, rows.card(item, row), f"{rank:,}", name, picture, rows.view.pictures)
            if framed:
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.setPen(QPen(QColor(ink), width))
                painter.drawRoundedRect(rows.card(item, row), 4, 4)
    painter.setClipping(False)
    if rows.intervals:
        _paint_scores(painter, rows)
    for row, word in ((BEFORE, "before"), (AFTER, "after")):
        room = QRectF(0, rows.top(row), GUTTER - 8, rows.side)
        paint_text(painter, room, word, palette.accent if row == row_at_keys else palette.third)


def _paint_lines(painter: QPainter, rows: Rows, lit: set[int]) -> None:
    view, palette, half = rows.view, theme.current(), rows.card_width / 2
    begin, end = rows.top(BEFORE) + rows.side + 3, rows.top(AFTER) - 3
    starts, ends = rows.x(view.place_before) + half, rows.x(view.place_after) + half
    visible = rows.passing()
    if int(visible.sum()) > MAX_PASSING:
        visible = rows.visible(BEFORE) | rows.visible(AFTER)
    number = int((visible & view.swapped).sum())
    alpha = 255 if number <= FAINT_FROM else max(round(255 * FAINT_FROM / number), FAINTEST)
    still, moved = QPen(QColor(palette.line), 1.4), QPen(theme.colour(palette.accent, alpha), 1.5)
    bright = QPen(QColor(palette.text), 2.2)
    ranked = np.array([item for item in lit if view.rank_before[item]], dtype=np.int64)
    for pen, items in (
        (still, np.flatnonzero(visible & ~view.swapped)),
        (moved, np.flatnonzero(visible & view.swapped)),
        (bright, ranked),
    ):
        painter.setPen(pen)
        for top, bottom in zip(starts[items].tolist(), ends[items].tolist(), strict=True):
            painter.drawLine(QPointF(top, begin), QPointF(bottom, end))


def _paint_card(
    painter: QPainter, box: QRectF, rank: str, name: str, picture: QPixmap | None, has_picture: bool
) -> None:
    """Paint an item: picture, name, and its rank before the correction, which identifies it in both rows."""
    palette = theme.current()
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(palette.raised))
    painter.drawRoundedRect(box, 4, 4)
    room = box.adjusted(PAD + (box.height() if has_picture else 0), 0, -PAD, 0)
    if picture is not None:
        square = QRectF(box.left(), box.top(), box.height(), box.height())
        fitting = picture.size().toSizeF().scaled(square.size(), Qt.AspectRatioMode.KeepAspectRatio)
        target = QRectF(QPointF(), fitting)
        target.moveCenter(square.center())
        painter.drawPixmap(target, picture, QRectF(picture.rect()))
    if box.height() >= TWO_LINES:
        line = QRectF(room.left(), room.center().y() - 16, room.width(), 16)
        paint_text(painter, line, rank, palette.second)
        room = line.translated(0, 16)
    else:
        paint_text(painter, QRectF(room.left(), room.top(), 22, room.height()), rank, palette.second)
        room = room.adjusted(24, 0, 0, 0)
    paint_text(painter, room, name, palette.text, elide=Qt.TextElideMode.ElideMiddle)


def _paint_scores(painter: QPainter, rows: Rows) -> None:
    """Paint scores and intervals beside both rows, on a scale for the visible items."""
    view, palette = rows.view, theme.current()
    visible = [np.flatnonzero(rows.visible(row)) for row in (BEFORE, AFTER)]
    scores = (view.before, view.after)
    ends = (view.before_interval, view.after_interval)
    visible_part = [score[items] for score, items in zip(scores, visible, strict=True)]
    visible_part += [end[:, items].ravel() for end, items in zip(ends, visible, strict=True)]
    least, most = _span(visible_part)
    room = rows.strip - 8
    scale = room / ((most - least) or 1.0)
    for row, top in ((BEFORE, 3.0), (AFTER, rows.height - rows.strip + 4)):
        for value, text in ticks_of(Axis(""), least, most, room, theme.CAPTION):
            y = top + (most - value) * scale
            box = QRectF(0, min(max(y - 7, 0), rows.height - 14), GUTTER - 8, 14)
            paint_text(painter, box, text, palette.third, side=Qt.AlignmentFlag.AlignRight)
        for item in visible[row].tolist():
            x = rows.card(item, row).center().x()
            if x < GUTTER:
                continue
            painter.setPen(QPen(QColor(palette.accent if view.swapped[item] else palette.second), 1.6))
            low, high = (top + (most - end) * scale for end in ends[row][:, item].tolist())
            if math.isfinite(low) and math.isfinite(high):
                painter.drawLine(QPointF(x, low), QPointF(x, high))
            painter.setBrush(QColor(palette.surface))
            y = top + (most - float(scores[row][item])) * scale
            painter.drawEllipse(QPointF(x, y), 2.2, 2.2)


def _span(parts: list[NDArray[np.floating]]) -> tuple[float, float]:
    values = np.concatenate(parts)
    values = values[np.isfinite(values)]
    return (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
