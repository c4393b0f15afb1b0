"""Table of a ranking: ranks and scores with intervals, wins, and shares of wins against other items."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QModelIndex, QObject, Qt, Signal
from PySide6.QtGui import QColor, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QTableView, QWidget

from raterscope.text import counted
from raterscope.widgets import theme
from raterscope.widgets.layouts import stacked, vertical
from raterscope.widgets.painting import PictureShelf
from raterscope.widgets.parts import Header, placeholder, plain_tip
from raterscope.widgets.tables.rows import Index, TableModel, set_up_view
from raterscope.widgets.theme import pixels

NOTHING = "Press Fuse (F5) to rank the items."
COLUMNS = {
    "rank": "Rank after the biases of flagged annotators are removed, and its 95 % interval. "
    "Items with overlapping intervals cannot be distinguished",
    "item": "The compared item",
    "score": "Score on the scale of the choices, and its 95 % interval",
    "won": "Comparisons in which the item was preferred",
    "lost": "Comparisons in which the other item was preferred",
    "tied": "Comparisons without a preference",
    "share": "Share of comparisons won, a tie counted as half, and Wilson's 95 % interval",
}
NUMBERS = len(COLUMNS)
SIDE, SHARE_WIDTH, WIDEST_SHARE = 24, 76, 160
ROOM = 12
LONGEST_MEASURED = 16
STRONGEST = 0.45
"""Strength of the colour of a share of 0 or 1."""


@dataclass(frozen=True, eq=False)
class RankingRows:
    """Items in the order of their ranks."""

    items: NDArray[np.integer]  # (n,): numbers used in signals
    names: Sequence[str]  # (n,)
    # sequence of n tuples of str: texts of the columns, without the item's name: rank, score, won, lost,
    # tied, share
    cells: Sequence[tuple[str, ...]]
    # (n, n) or None: share that the item of the row won against the one of the column; None for too many
    # items
    share: NDArray[np.floating] | None
    # ``against(row, column)`` describes the comparisons of two items in a sentence
    against: Callable[[int, int], str]
    pictures: bool = False

    def text(self, row: int, column: int) -> str:
        """Return the text of a cell of the first `NUMBERS` columns."""
        return self.names[row] if column == 1 else self.cells[row][column - (column > 1)]


class RankingTable(QWidget):
    """Items by rank. A click on a share chooses the pair of items."""

    pair_chosen = Signal(int, int)

    def __init__(self) -> None:
        super().__init__()
        theme.set_role(self, "panel")
        self.header = Header("Ranking and wins")
        self.pictures = PictureShelf(SIDE, self._in_sight, self)
        self.model = _Model(self.pictures, self)
        self.view = QTableView()
        set_up_view(self.view, self.model, "Ranking and wins")
        self.view.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectItems)
        self.view.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.view.horizontalHeader().setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self._pages = stacked(placeholder(NOTHING), self.view)
        vertical(self.header, (self._pages, 1), inside=self, margins=(12, 8, 12, 8), spacing=4)
        self.setFocusProxy(self.view)
        self.view.clicked.connect(self._on_cell)
        self.view.activated.connect(self._on_cell)
        self.view.verticalScrollBar().valueChanged.connect(self.pictures.rest)
        self.pictures.changed.connect(self.view.viewport().update)

    def show_ranking(self, rows: RankingRows | None) -> None:
        """Show items, or that there is no ranking yet."""
        self.model.set_rows(rows)
        self._pages.setCurrentIndex(int(rows is not None))
        self.header.set_aside("" if rows is None else counted(len(rows.names), "item"))
        if rows is not None:
            for column in range(NUMBERS):
                side = SIDE if rows.pictures and column == 1 else 0  # the pictures come later
                self.view.setColumnWidth(column, self._widest(rows, column) + pixels(ROOM + side))
            for column in range(NUMBERS, self.model.columnCount()):
                width = self.view.horizontalHeader().sectionSizeHint(column)  # shares are short
                self.view.setColumnWidth(column, min(max(width, pixels(SHARE_WIDTH)), pixels(WIDEST_SHARE)))
        self.pictures.ask_again()

    def _widest(self, rows: RankingRows, column: int) -> int:
        """Measure the widest cell, which is among those with the most letters, and the heading."""
        texts = [rows.text(row, column) for row in range(len(rows.names))]
        longest = heapq.nlargest(LONGEST_MEASURED, range(len(texts)), key=lambda row: len(texts[row]))
        widths = [self.view.sizeHintForIndex(self.model.index(row, column)).width() for row in longest]
        return max(self.view.horizontalHeader().sectionSizeHint(column), *widths)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Request the pictures that came into view."""
        super().resizeEvent(event)
        self.pictures.rest()

    def _in_sight(self) -> list[int]:
        rows = self.model.rows
        if rows is None or not rows.pictures or not self.view.isVisible():
            return []
        first, last = self.view.rowAt(0), self.view.rowAt(self.view.viewport().height() - 1)
        some = rows.items[max(first, 0) : (last if last >= 0 else len(rows.items)) + 1]
        return [int(item) for item in some]

    def _on_cell(self, index: QModelIndex) -> None:
        rows, column = self.model.rows, index.column() - NUMBERS
        if rows is not None and column >= 0 and column != index.row():
            self.pair_chosen.emit(int(rows.items[index.row()]), int(rows.items[column]))


class _Model(TableModel):
    def __init__(self, pictures: PictureShelf, parent: QObject) -> None:
        super().__init__(parent)
        self.rows: RankingRows | None = None
        self._pictures = pictures

    def set_rows(self, rows: RankingRows | None) -> None:
        self.beginResetModel()
        self.rows = rows
        self.endResetModel()

    @property
    def shape(self) -> tuple[int, int]:
        names = () if self.rows is None else self.rows.names
        with_shares = self.rows is not None and self.rows.share is not None
        return len(names), 0 if self.rows is None else NUMBERS + len(names) * with_shares

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        if orientation == Qt.Orientation.Vertical or self.rows is None:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return list(COLUMNS)[section] if section < NUMBERS else self.rows.names[section - NUMBERS]
        if role == Qt.ItemDataRole.ToolTipRole:
            if section < NUMBERS:
                return plain_tip(list(COLUMNS.values())[section])
            return plain_tip(f"Share of comparisons won against {self.rows.names[section - NUMBERS]}")
        if role == Qt.ItemDataRole.TextAlignmentRole and section == 1:
            return Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        rows = self.rows
        if rows is None:
            return None
        row, column = index.row(), index.column()
        if column == 1:
            return self._item(rows, row, role)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return Qt.AlignmentFlag.AlignCenter
        if column < NUMBERS:
            return rows.text(row, column) if role == Qt.ItemDataRole.DisplayRole else None
        assert rows.share is not None
        share = float(rows.share[row, column - NUMBERS])
        if not np.isfinite(share):
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return f"{100 * share:.0f} %"
        if role in (Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole):
            return plain_tip(rows.against(row, column - NUMBERS))
        if role == Qt.ItemDataRole.BackgroundRole:
            palette = theme.current()
            colour = QColor(palette.accent if share > 0.5 else palette.rejected)
            colour.setAlphaF(STRONGEST * abs(2 * share - 1))
            return colour
        return None

    def _item(self, rows: RankingRows, row: int, role: int) -> object:
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            name = rows.names[row]
            return name if role == Qt.ItemDataRole.DisplayRole else plain_tip(name)
        if rows.pictures and role == Qt.ItemDataRole.DecorationRole:
            return self._pictures.kept.get(int(rows.items[row]))
        return None
