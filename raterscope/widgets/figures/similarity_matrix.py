"""Similarity of annotators: a matrix ordered by community, or a graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QImage, QPainter, QPen

from raterscope.figures.description import PlotTable
from raterscope.text import counted, with_minus
from raterscope.widgets import theme
from raterscope.widgets.colour_maps import VIRIDIS
from raterscope.widgets.figures.cells import (
    BAR_HEIGHT,
    cell_at,
    cell_beside,
    community_text_colour,
    community_word,
    mixed,
    paint_colour_bar,
    paint_community,
)
from raterscope.widgets.figures.figure_panel import Figure, FigurePanel, ModeSwitch

NOTHING = "Find communities to see which annotators behave alike."
MODES = {
    "matrix": ("matrix", "A row and a column for every annotator; communities are adjacent"),
    "graph": ("graph", "A mark for every annotator; lines join similar annotators"),
}
STRIP = 18.0
NEAR = 12.0
FEW_LINES, FEW_MARKS = 400, 60
STRENGTHS = (0.15, 0.35, 0.7)
"""Colours of the weakest, middle and strongest third of links, from the background (0) to the text (1)."""
MAX_LINES = 4000


@dataclass(frozen=True, eq=False)
class _Table:
    values: NDArray[np.floating]
    edges: NDArray[np.integer]
    names: Sequence[str]
    label: str
    high: float


@dataclass(frozen=True, eq=False)
class _Network:
    positions: NDArray[np.floating]
    edges: NDArray[np.integer]
    weights: NDArray[np.floating]
    names: Sequence[str]
    communities: NDArray[np.integer]


class SimilarityMatrix(FigurePanel):
    """Similarity; a click on a cell selects the annotators of its row and column, on a node its own."""

    def __init__(self) -> None:
        self.figure = _Similarity("Similarity")
        super().__init__("Similarity", self.figure, NOTHING)
        self.modes = ModeSwitch(MODES)
        self.header.row.addWidget(self.modes)
        self.modes.chosen.connect(self.figure.set_mode)
        self.clear()

    def show_similarity(
        self,
        values: NDArray[np.floating],
        edges: NDArray[np.integer],
        names: Sequence[str],
        label: str = "similarity",
        high: float = 1.0,
    ) -> None:
        """Show the similarity of the annotators of each pair of rows.

        `values`: (m, m), 0 to 1, NaN if unknown; rows and columns ordered by community. There are at most
        some thousand rows; with more annotators, values are means over neighbours. `edges`: (C + 1,), first
        row of each community; the last is m. `names`: (m,), title of a row: a name, or "12 annotators".
        `label`: name of the values. `high`: value of the brightest colour, also for values above it.
        """
        number, blocks = len(names), len(edges) - 1
        if values.shape != (number, number):
            raise ValueError(f"values of shape {values.shape} for {number} rows")
        if blocks < 0 or (number and (edges[0] != 0 or edges[-1] != number or np.any(np.diff(edges) < 0))):
            raise ValueError(f"communities begin at {list(edges)}; expected 0 to {number}, rising")
        self.figure.show_table(_Table(values, np.asarray(edges), names, label, high))
        self._settle("matrix", number > 1)

    def show_graph(
        self,
        positions: NDArray[np.floating],
        edges: NDArray[np.integer],
        weights: NDArray[np.floating],
        names: Sequence[str],
        communities: NDArray[np.integer],
    ) -> None:
        """Show the similarity as a graph.

        `positions`: (m, 2), positions of the nodes in any unit, to the right and down. `edges`: (e, 2), the
        two nodes of each link. `weights`: (e,), strength of each link; of more than 4,000 the strongest are
        drawn. `names`: (m,). `communities`: (m,), -1 for none.
        """
        number = len(names)
        if positions.shape != (number, 2) or len(communities) != number:
            raise ValueError(f"positions of shape {positions.shape} for {number} names")
        if edges.shape != (len(weights), 2) or (edges.size and not 0 <= edges.min() <= edges.max() < number):
            raise ValueError(f"lines of shape {edges.shape} for {len(weights)} weights and {number} marks")
        self.figure.show_network(_Network(positions, edges, weights, names, np.asarray(communities)))
        self._settle("graph", number > 0)

    def clear(self) -> None:
        """Show nothing."""
        self.figure.clear()
        self.modes.hide()
        self.header.set_subtitle("")
        self.set_filled(False)

    def _settle(self, mode: str, filled: bool) -> None:
        table, graph = self.figure.has("matrix"), self.figure.has("graph")
        self.modes.setVisible(table and graph)
        if not (table and graph):
            self.modes.set_mode(mode)
        self.header.set_subtitle(counted(self.figure.rows, "row") if self.figure.rows else "")
        self.set_filled(filled)


class _Similarity(Figure[tuple[int, int]]):
    chosen = Signal(int, int)  # row and column; twice the same number for a node of the graph

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._table: _Table | None = None
        self._network: _Network | None = None
        self._mode = "matrix"
        self._picture = QImage()

    def has(self, mode: str) -> bool:
        return (self._table if mode == "matrix" else self._network) is not None

    @property
    def rows(self) -> int:
        content = self._table if self._mode == "matrix" else self._network
        return len(content.names) if content is not None else 0

    def clear(self) -> None:
        self._table = self._network = None
        self._reset()

    def show_table(self, table: _Table) -> None:
        shades = np.asarray(table.values, dtype=np.float32) * np.float32(255 / table.high)
        shades = np.clip(np.nan_to_num(shades, copy=False), 0, 255, out=shades)
        pixels = np.ascontiguousarray(shades.astype(np.uint8))
        number = len(pixels)
        self._picture = QImage(pixels.data, number, number, number, QImage.Format.Format_Indexed8).copy()
        self._picture.setColorTable([QColor(*map(int, colour)).rgb() for colour in VIRIDIS])
        self._table = table
        self._reset()

    def show_network(self, network: _Network) -> None:
        self._network = network
        self._reset()

    def set_mode(self, mode: str) -> None:
        self._mode = mode
        self._reset()

    def _reset(self) -> None:
        self.point(None)
        self.redraw()

    def text_of(self, part: tuple[int, int]) -> str:
        row, column = part
        if self._mode == "graph":
            assert self._network is not None
            joined = int((self._network.edges == row).any(axis=1).sum())
            community = community_word(int(self._network.communities[row]))
            return f"{self._network.names[row]}: {community}, similar to {joined:,}"
        table = self._table
        assert table is not None
        value = table.values[row, column]
        digits = 2 if table.high > 0.5 else 4
        text = f"{table.label} {with_minus(f'{value:.{digits}f}')}" if np.isfinite(value) else "not known"
        first, second = (f"{table.names[index]} ({community_word(self._community(index))})" for index in part)
        return f"{first} with itself" if row == column else f"{first} and {second}: {text}"

    def _community(self, row: int) -> int:
        assert self._table is not None
        return int(np.searchsorted(self._table.edges, row, side="right")) - 1

    def table(self) -> PlotTable:
        if self._mode == "graph":
            network = self._network
            assert network is not None
            first, second = ([network.names[index] for index in ends] for ends in network.edges.T.tolist())
            return PlotTable.of({"annotator": first, "other annotator": second, "weight": network.weights})
        table = self._table
        assert table is not None
        return PlotTable.of_cells(
            {"annotator": table.names, "other annotator": table.names}, {table.label: table.values}
        )

    def choose(self, part: tuple[int, int]) -> None:
        self.chosen.emit(*part)

    def part_at(self, position: QPointF) -> tuple[int, int] | None:
        if self._mode == "graph":
            return self._mark_at(position)
        number = 0 if self._table is None else len(self._table.names)
        return cell_at(position, self._square(), number, number)

    def step(self, part: tuple[int, int] | None, across: int, down: int) -> tuple[int, int] | None:
        if not self.rows:
            return None
        if part is None:
            return 0, 0
        if self._mode == "graph":
            return self._towards(part[0], across, down)
        return cell_beside(part, across, down, self.rows, self.rows)

    def _mark_at(self, position: QPointF) -> tuple[int, int] | None:
        points = self._positions()
        if not len(points):
            return None
        distance = np.hypot(points[:, 0] - position.x(), points[:, 1] - position.y())
        nearest = int(distance.argmin())
        return (nearest, nearest) if distance[nearest] <= NEAR else None

    def _towards(self, mark: int, across: int, down: int) -> tuple[int, int]:
        """Return the nearest node in a direction, with sideways distances doubled; or the same node."""
        away = self._positions() - self._positions()[mark]
        ahead = away @ np.array([across, down], dtype=float)
        lateral = np.abs(away @ np.array([down, across], dtype=float))
        cost = np.where(ahead > 0, ahead + 2 * lateral, np.inf)
        best = int(cost.argmin())
        return (best, best) if np.isfinite(cost[best]) else (mark, mark)

    def _square(self) -> QRectF:
        side = max(min(self.room.width() - STRIP - 4, self.room.height() - STRIP - BAR_HEIGHT - 10), 1.0)
        return QRectF(STRIP, STRIP, side, side)

    def _positions(self) -> NDArray[np.float64]:
        """Return the positions of the nodes, (m, 2) pixels."""
        if self._network is None or not len(self._network.names):
            return np.empty((0, 2))
        positions = np.asarray(self._network.positions, dtype=float)
        low, high = positions.min(axis=0), positions.max(axis=0)
        share = (positions - low) / np.where(high > low, high - low, 1.0)
        share[:, high <= low] = 0.5
        return np.asarray(12 + share * (np.array([self.room.width(), self.room.height()]) - 24.0))

    def draw(self, painter: QPainter) -> None:
        self.paint_still(painter, self._draw_graph if self._mode == "graph" else self._draw_matrix)
        if self.pointed is not None:
            self._draw_pointed(painter, self.pointed)

    def _draw_pointed(self, painter: QPainter, part: tuple[int, int]) -> None:
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if self._mode == "graph":
            painter.setPen(QPen(QColor(theme.current().text), 2))
            painter.drawEllipse(QPointF(*self._positions()[part[0]]), 9, 9)
            return
        square, number = self._square(), self.rows
        side = square.width() / number
        row, column = square.top() + part[0] * side, square.left() + part[1] * side
        for pen in (QPen(QColor("#0d0f11"), 3), QPen(QColor("#ffffff"), 1)):
            painter.setPen(pen)
            painter.drawRect(QRectF(column, row, max(side, 5), max(side, 5)))
        painter.setPen(QPen(QColor(theme.current().accent), 2))
        painter.drawLine(QPointF(square.left() - 3, row), QPointF(square.left() - 3, row + max(side, 3)))
        painter.drawLine(QPointF(column, square.top() - 3), QPointF(column + max(side, 3), square.top() - 3))

    def _draw_matrix(self, painter: QPainter) -> None:
        table, square = self._table, self._square()
        if table is None:
            return
        size = len(table.names)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, size > square.width())
        painter.drawImage(square, self._picture)
        side = square.width() / max(size, 1)
        painter.setFont(theme.font(theme.CAPTION))
        for number, (begin, end) in enumerate(pairwise(table.edges)):
            if begin == end:
                continue
            start, length = float(begin) * side, float(end - begin) * side
            ink = community_text_colour(number)
            painter.fillRect(QRectF(square.left() - 5, square.top() + start, 4, length), ink)
            painter.fillRect(QRectF(square.left() + start, square.top() - 5, length, 4), ink)
            if length >= 12 and number >= 0:
                painter.setPen(ink)
                middle, word = Qt.AlignmentFlag.AlignCenter, str(number + 1)
                painter.drawText(QRectF(0, square.top() + start, STRIP - 6, length), middle, word)
                painter.drawText(QRectF(square.left() + start, 0, length, STRIP - 6), middle, word)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            block = QRectF(square.left() + start, square.top() + start, length, length)
            if number == self._selected:
                painter.setPen(QPen(QColor("#ffffff"), 2))
                painter.drawRect(block)
            elif begin > 0:
                painter.setPen(QPen(QColor(255, 255, 255, 150), 1))
                painter.drawLine(
                    QLineF(square.left() + start, square.top(), square.left() + start, square.bottom())
                )
                painter.drawLine(
                    QLineF(square.left(), square.top() + start, square.right(), square.top() + start)
                )
        bar = QRectF(square.left(), square.bottom() + 6, max(square.width(), 110.0), BAR_HEIGHT)
        paint_colour_bar(painter, bar, VIRIDIS, 0.0, table.high, table.label)

    def _draw_graph(self, painter: QPainter) -> None:
        network, points = self._network, self._positions()
        if network is None:
            return
        order = np.argsort(network.weights, kind="stable")[-MAX_LINES:]
        lines = np.hstack([points[network.edges[order, 0]], points[network.edges[order, 1]]])
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, len(lines) <= FEW_LINES)
        ground, words = QColor(theme.current().surface), QColor(theme.current().third)
        for strength, third in zip(STRENGTHS, np.array_split(lines, len(STRENGTHS)), strict=True):
            # Mixed colours, because transparency would take ten times as long.
            painter.setPen(QPen(mixed(ground, words, strength), 1))
            painter.drawLines([QLineF(*line) for line in third.tolist()])
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        radius = 5.0 if len(points) <= 200 else 3.5
        for number, (x, y) in zip(network.communities.tolist(), points.tolist(), strict=True):
            dimmed = self._selected is not None and number != self._selected
            painter.setOpacity(0.25 if dimmed else 1.0)
            paint_community(painter, QPointF(x, y), number, radius)
        painter.setOpacity(1.0)
        painter.setFont(theme.font(theme.CAPTION, bold=True))
        for number in sorted(set(network.communities.tolist()) - {-1}):
            middle = np.median(points[network.communities == number], axis=0)
            lift = 0 if len(points) > FEW_MARKS else 20  # to cover no node
            box = QRectF(middle[0] - 11, max(middle[1] - 8 - lift, 1.0), 22, 16)
            painter.setPen(QPen(community_text_colour(number), 1))
            painter.setBrush(QColor(theme.current().raised))
            painter.drawRoundedRect(box, 4, 4)
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, str(number + 1))
