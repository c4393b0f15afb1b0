"""How far annotators belong to each community: a bar each, or of many one area."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPen, QPolygonF, QResizeEvent
from PySide6.QtWidgets import QWidget

from raterscope.figures.table import PlotTable
from raterscope.text.numbers import count, percent
from raterscope.widgets import theme
from raterscope.widgets.figures.cells import community_ink, ink_on, paint_community
from raterscope.widgets.figures.figure_panel import Figure, FigurePanel
from raterscope.widgets.painting import paint_words

__all__ = ["ParticipationBars"]

NOTHING = "Select annotators to see how far they belong to each community."
MOST_BARS = 12
LINE, BAR = 24.0, 14.0
LEGEND = 20.0
DIMMED = 70


class ParticipationBars(FigurePanel):
    """A click on a part chooses its community.

    Signals
    -------
    community_chosen : int
    """

    community_chosen = Signal(int)

    def __init__(self, title: str = "Participation", parent: QWidget | None = None) -> None:
        self.figure = _Bars(title)
        super().__init__(title, self.figure, NOTHING, parent)
        self.figure.chosen.connect(self.community_chosen)
        self.set_filled(False)

    def show_participation(
        self, shares: NDArray[np.floating], names: Sequence[str], communities: Sequence[str]
    ) -> None:
        """Show how far annotators belong to communities.

        Parameters
        ----------
        shares : (m, C) float
            Rows that add up to 1, or of NaN for an annotator of whom nothing is known.
        names : sequence of m str
            The annotators.
        communities : sequence of C str
        """
        shares = np.asarray(shares, dtype=float)
        if shares.shape != (len(names), len(communities)):
            raise ValueError(
                f"shares of shape {shares.shape} for {len(names)} annotators, {len(communities)} communities"
            )
        known = np.isfinite(shares).all(axis=1)
        kept = [name for name, is_known in zip(names, known, strict=True) if is_known]
        self.figure.show_shares(shares[known], kept, tuple(communities))
        self.header.set_aside(f"share, {count(len(kept), 'annotator')}" if kept else "")
        self.set_filled(bool(kept) and bool(communities))

    def select_community(self, number: int | None) -> None:
        """Set off a community, without a signal."""
        self.figure.select(number)


@dataclass(frozen=True, eq=False)
class _Row:
    """One bar, or one column of the area: an annotator, or neighbours and their mean."""

    name: str
    shares: NDArray[np.floating]


class _Bars(Figure[tuple[int, int]]):
    """A part is a row and a community."""

    chosen = Signal(int)

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._shares: NDArray[np.floating] = np.empty((0, 0))
        self._names: list[str] = []
        self._communities: tuple[str, ...] = ()
        self._rows: list[_Row] = []
        self._selected: int | None = None

    def show_shares(
        self, shares: NDArray[np.floating], names: list[str], communities: tuple[str, ...]
    ) -> None:
        if len(names) > MOST_BARS:
            # Those of one community side by side, who belongs to it most first.
            main = shares.argmax(axis=1) if shares.size else np.zeros(0, int)
            order = np.lexsort((-shares.max(axis=1, initial=0.0), main))
            shares, names = shares[order], [names[place] for place in order]
        self._shares, self._names, self._communities = shares, names, communities
        self._bin()
        self.point(None)
        self.update()

    def select(self, community: int | None) -> None:
        self._selected = community
        self.update()

    @property
    def _dense(self) -> bool:
        return len(self._names) > MOST_BARS

    def _bin(self) -> None:
        """Take neighbours together where there are more annotators than pixels across."""
        many = len(self._names)
        if not self._dense or many <= self._room().width():
            self._rows = [_Row(*pair) for pair in zip(self._names, self._shares, strict=True)]
            return
        starts = np.linspace(0, many, max(1, int(self._room().width() // 2)), endpoint=False).astype(int)
        sums = np.add.reduceat(self._shares, starts, axis=0)
        sizes = np.diff(np.append(starts, many))
        self._rows = [
            _Row(
                self._names[start]
                if size == 1
                else f"{count(int(size), 'annotator')} from {self._names[start]}",
                total / size,
            )
            for start, size, total in zip(starts.tolist(), sizes.tolist(), sums, strict=True)
        ]

    def resizeEvent(self, _event: QResizeEvent) -> None:
        self._bin()
        self.point(None)

    def words(self, part: tuple[int, int]) -> str:
        row, community = self._rows[part[0]], part[1]
        return f"{row.name}: {percent(float(row.shares[community]))} {self._called(community)}"

    def _called(self, community: int) -> str:
        name = self._communities[community]
        return name if name == f"community {community + 1}" else f"{name} (community {community + 1})"

    def choose(self, part: tuple[int, int]) -> None:
        self.chosen.emit(part[1])

    def step(self, part: tuple[int, int] | None, across: int, down: int) -> tuple[int, int] | None:
        if not self._rows or not self._communities:
            return None
        if part is None:
            return 0, int(self._rows[0].shares.argmax())
        row, community = (across, down) if self._dense else (down, across)
        last = len(self._rows) - 1, len(self._communities) - 1
        return min(max(part[0] + row, 0), last[0]), min(max(part[1] + community, 0), last[1])

    def table(self) -> PlotTable:
        axes = {"annotator": self._names, "community": list(map(self._called, range(len(self._communities))))}
        return PlotTable.of_cells(axes, {"share": self._shares})

    def _edge(self) -> float:
        """Give the room for names at the left, at most a third of the width."""
        if self._dense:
            return 0.0
        metrics = QFontMetrics(theme.font(theme.CAPTION))
        return min(max(map(metrics.horizontalAdvance, self._names), default=0) + 10.0, self.room.width() / 3)

    def _room(self) -> QRectF:
        edge = self._edge()
        return QRectF(
            edge, LEGEND, max(self.room.width() - edge - 2, 1), max(self.room.height() - LEGEND - 4, 1)
        )

    def _line(self) -> float:
        return min(LINE, self._room().height() / max(len(self._rows), 1))

    def _box(self, part: tuple[int, int]) -> QRectF:
        room, (place, community) = self._room(), part
        shares = self._rows[place].shares
        begin, share = float(shares[:community].sum()), float(shares[community])
        if self._dense:
            step = room.width() / len(self._rows)
            top = room.top() + begin * room.height()
            return QRectF(room.left() + place * step, top, step, share * room.height())
        thick = min(BAR, self._line() - 2)
        top = room.top() + place * self._line() + (self._line() - thick) / 2
        return QRectF(room.left() + begin * room.width(), top, share * room.width(), thick)

    def part_at(self, place: QPointF) -> tuple[int, int] | None:
        listed = self._listed_at(place)
        if listed is not None:
            return 0, listed
        room = self._room()
        if not self._rows or not room.contains(place):
            return None
        along = (place.x() - room.left()) / room.width()
        if self._dense:
            row, share = int(along * len(self._rows)), (place.y() - room.top()) / room.height()
        else:
            row, share = int((place.y() - room.top()) / self._line()), along
        if not 0 <= row < len(self._rows):
            return None
        community = int(np.searchsorted(np.cumsum(self._rows[row].shares), share, side="right"))
        return row, min(community, len(self._communities) - 1)

    def _legend(self) -> list[tuple[QRectF, int]]:
        """Give where each community's mark and name stand above the bars; those that there is room for."""
        metrics = QFontMetrics(theme.font(theme.CAPTION))
        words = [f"{place + 1} {name}" for place, name in enumerate(self._communities)]
        if sum(metrics.horizontalAdvance(word) + 24 for word in words) > self.room.width():
            words = [str(place + 1) for place in range(len(words))]
        boxes, left = [], 0.0
        for place, word in enumerate(words):
            width = metrics.horizontalAdvance(word) + 16.0
            if left + width > self.room.width():
                break
            boxes.append((QRectF(left, 0, width, LEGEND - 4), place))
            left += width + 8
        return boxes

    def _listed_at(self, place: QPointF) -> int | None:
        if not self._rows:
            return None
        return next((community for box, community in self._legend() if box.contains(place)), None)

    def _fill(self, community: int) -> QColor:
        ink = community_ink(community)
        if self._selected is not None and community != self._selected:
            ink.setAlpha(DIMMED)
        return ink

    def draw(self, painter: QPainter) -> None:
        look = theme.current()
        painter.setFont(theme.font(theme.CAPTION))
        whole = QFontMetrics(painter.font()).horizontalAdvance(max(self._communities, key=len, default=""))
        for box, community in self._legend():
            paint_community(painter, QPointF(box.left() + 5, box.center().y()), community, 4.5)
            word = str(community + 1)
            if box.width() > 40 or whole < 12:
                word += f" {self._communities[community]}"
            tone = look.text if community == self._selected else look.second
            paint_words(painter, box.adjusted(13, 0, 3, 0), word, tone)
        (self._draw_area if self._dense else self._draw_bars)(painter)
        if self.pointed is not None:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(look.text), 2))
            painter.drawRect(self._box(self.pointed))

    def _draw_bars(self, painter: QPainter) -> None:
        metrics = QFontMetrics(painter.font())
        for place, row in enumerate(self._rows):
            for community in range(len(self._communities)):
                box = self._box((place, community))
                if box.width() <= 0:
                    continue
                fill = self._fill(community)
                painter.fillRect(box.adjusted(0, 0, -min(1.0, box.width() / 2), 0), fill)
                word = f"{community + 1}: {percent(float(row.shares[community]))}"
                if metrics.horizontalAdvance(word) + 8 > box.width():
                    word = str(community + 1)
                if metrics.horizontalAdvance(word) + 4 <= box.width() and box.height() >= 11:
                    painter.setPen(ink_on(fill) if fill.alpha() == 255 else QColor(theme.current().second))
                    painter.drawText(box, Qt.AlignmentFlag.AlignCenter, word)
            if self._line() >= 10:
                top = self._room().top() + place * self._line()
                name = QRectF(0, top, self._edge() - 8, self._line())
                middle = Qt.TextElideMode.ElideMiddle
                paint_words(painter, name, row.name, theme.current().second, elide=middle)

    def _draw_area(self, painter: QPainter) -> None:
        room, many = self._room(), len(self._rows)
        shares = np.array([row.shares for row in self._rows])
        bounds = np.hstack([np.zeros((many, 1)), np.cumsum(shares, axis=1)]) * room.height() + room.top()
        # Every column is as wide as the others: its bounds are drawn at its left and at its right.
        across = np.repeat(np.arange(many + 1), 2)[1:-1] * (room.width() / many) + room.left()
        heights = np.repeat(bounds, 2, axis=0)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        painter.setPen(Qt.PenStyle.NoPen)
        for community in range(len(self._communities)):
            upper = list(map(QPointF, across.tolist(), heights[:, community].tolist()))
            lower = list(map(QPointF, across.tolist(), heights[:, community + 1].tolist()))
            painter.setBrush(self._fill(community))
            painter.drawPolygon(QPolygonF(upper + lower[::-1]))
        self._number_area(painter, shares, bounds)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)

    def _number_area(
        self, painter: QPainter, shares: NDArray[np.floating], bounds: NDArray[np.floating]
    ) -> None:
        """Write each community's number where most belong to it most."""
        room, main = self._room(), shares.argmax(axis=1)
        step = room.width() / len(shares)
        for community in range(len(self._communities)):
            own = np.flatnonzero(main == community)
            if len(own) * step < 16:
                continue
            middle = own[len(own) // 2]
            y = bounds[middle, community : community + 2].mean()
            fill = self._fill(community)
            painter.setPen(ink_on(fill) if fill.alpha() == 255 else QColor(theme.current().second))
            x = room.left() + (middle + 0.5) * step
            painter.drawText(QRectF(x - 12, y - 8, 24, 16), Qt.AlignmentFlag.AlignCenter, str(community + 1))
