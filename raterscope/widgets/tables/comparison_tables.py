"""Comparison tables: runs or methods with the best values marked, and the items of a ranking."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QModelIndex, QObject, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFocusEvent, QFont, QFontMetrics, QPainter, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from raterscope.text import UNKNOWN, counted, estimate
from raterscope.widgets import theme
from raterscope.widgets.hints import TitledPage
from raterscope.widgets.painting import ThumbnailCache
from raterscope.widgets.parts import Header, plain_tip
from raterscope.widgets.tables.rows import Index, TableModel, set_up_view
from raterscope.widgets.theme import pixels, set_lengths

_SIDE, _ABOVE = 8, 3
"""Margins beside and above the text of cells and headers."""


class ComparisonDelegate(QStyledItemDelegate):
    """Delegate that paints the second line of a cell smaller and fainter."""

    def sizeHint(self, _option: QStyleOptionViewItem, index: Index) -> QSize:
        """Return the size of the cell's content."""
        lines = list(zip(_lines(index), map(QFontMetrics, _fonts(index)), strict=True))
        width = max(metrics.horizontalAdvance(words) for words, metrics in lines)
        height = sum(metrics.height() for words, metrics in lines if words)
        return QSize(width + 2 * _SIDE, height + 2 * _ABOVE)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Paint a cell."""
        first, second = _lines(index)
        palette = theme.current()
        chosen = bool(option.state & QStyle.StateFlag.State_Selected)
        upper, lower = _fonts(index)
        painter.save()
        if chosen:
            painter.fillRect(option.rect, option.palette.highlight())
        inner = option.rect.adjusted(_SIDE, _ABOVE, -_SIDE, -_ABOVE)
        left, top, middle = (
            Qt.AlignmentFlag.AlignLeft,
            Qt.AlignmentFlag.AlignTop,
            Qt.AlignmentFlag.AlignVCenter,
        )
        painter.setFont(upper)
        painter.setPen(option.palette.highlightedText().color() if chosen else QColor(palette.text))
        painter.drawText(inner, left | (top if second else middle), first)
        painter.setFont(lower)
        if not chosen:
            painter.setPen(QColor(palette.second))
        painter.drawText(inner, left | Qt.AlignmentFlag.AlignBottom, second)
        painter.restore()


def _lines(index: Index) -> tuple[str, str]:
    first, _, second = str(index.data()).partition("\n")
    return first, second


def _fonts(index: Index) -> tuple[QFont, QFont]:
    return QFont(index.data(Qt.ItemDataRole.FontRole)), theme.widget_font(theme.CAPTION)


Figures = tuple[float, float, float]
Write = Callable[[float, float, float], str]

NOT_KNOWN: Figures = (math.nan, math.nan, math.nan)
_MIN_HEIGHT = 28


@dataclass(frozen=True, slots=True)
class Measure:
    """Column of the table: a measure of the runs."""

    name: str  # title of the column: "precision"
    help: str  # explanation in one sentence
    # bold value: the highest, the lowest, the nearest to 0, or none
    best: Literal["highest", "lowest", "nearest 0", "none"] = "highest"
    write: Write = estimate  # ``write(value, low, high)`` formats a value in one or two lines

    def worth(self, value: float) -> float:
        """Return a key that is larger for a better value; NaN if no value is better."""
        if self.best == "none":
            return math.nan
        return {"highest": value, "lowest": -value, "nearest 0": -abs(value)}[self.best]


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """Row of the table: a run with one (value, low, high) per measure; NaN where unknown."""

    key: object  # key of the run; None for a row without a run
    # title, words: "OEM + DEM", "12:01, click scatter 8 px"; text after a line break is below the title
    title: str
    text: str
    figures: tuple[Figures, ...]
    tip: str = ""  # tooltip; by default title and text


class ComparisonTable(TitledPage):
    """Table of runs; the best value of each column is bold.

    `nothing`: message if there are no runs. `subject`: noun of a row.
    """

    run_chosen = Signal(object)  # key of the selected run

    def __init__(
        self,
        measures: Sequence[Measure],
        nothing: str,
        *,
        subject: str = "run",
    ) -> None:
        self.view = _Table()
        super().__init__(Header("Runs compared"), self.view, nothing, margins=(12, 8, 12, 4))
        self._model = _ComparisonModel(tuple(measures), self, subject)
        set_up_view(self.view, self._model, "Runs compared", ComparisonDelegate())
        set_lengths(self.view.verticalHeader(), minimumSectionSize=_MIN_HEIGHT)
        self.view.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header = self.view.horizontalHeader()
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self.view.selectionModel().currentRowChanged.connect(self._on_current)
        self.set_rows(())

    def set_rows(
        self, rows: Sequence[ComparisonRow], subtitle: str = "", measures: Sequence[Measure] | None = None
    ) -> None:
        """Replace the runs.

        `subtitle`: reference of the measures: "84 true positions, within 10 px". `measures`: by default the
        previous measures.
        """
        self._model.set_rows(tuple(rows), self._model.measures if measures is None else tuple(measures))
        self.header.set_subtitle(subtitle)
        self.set_filled(bool(rows))

    def _on_current(self, index: QModelIndex) -> None:
        key = self._model.rows[index.row()].key if index.isValid() else None
        if key is not None:
            self.run_chosen.emit(key)


class _Table(QTableView):
    def focusInEvent(self, event: QFocusEvent) -> None:
        """Accept the focus without selecting the first run, unlike other item views."""
        QWidget.focusInEvent(self, event)
        self.viewport().update()


class _ComparisonModel(TableModel):
    """Model: the first column is the run, the others are measures."""

    def __init__(self, measures: tuple[Measure, ...], parent: QObject, subject: str) -> None:
        super().__init__(parent)
        self._subject = subject
        self.measures = measures
        self.rows: tuple[ComparisonRow, ...] = ()
        self._best: list[float] = []

    def set_rows(self, rows: tuple[ComparisonRow, ...], measures: tuple[Measure, ...]) -> None:
        self.beginResetModel()
        self.measures, self.rows, self._best = measures, rows, []
        for index, measure in enumerate(self.measures):
            known = [measure.worth(row.figures[index][0]) for row in rows]
            known = [worth for worth in known if math.isfinite(worth)]
            self._best.append(max(known) if len(known) > 1 else math.nan)
        self.endResetModel()

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.rows), 1 + len(self.measures)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return self.measures[section - 1].name if section else self._subject
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tip(self.measures[section - 1].help if section else "Algorithm and when it ran")
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        row, measure = self.rows[index.row()], index.column() - 1
        if role == Qt.ItemDataRole.DisplayRole:
            return self._text(row, measure)
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tip(row.tip or f"{row.title}, {row.text}")
        best = measure >= 0 and self.measures[measure].worth(row.figures[measure][0]) == self._best[measure]
        if role == Qt.ItemDataRole.FontRole:
            return theme.widget_font(bold=best)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            name = self.measures[measure].name if measure >= 0 else self._subject
            text = self._text(row, measure).replace("\n", ", ")
            return f"{name} {text}" + (", the best" if best else "")
        return None

    def _text(self, row: ComparisonRow, index: int) -> str:
        if index < 0:
            return f"{row.title}{'' if row.text.startswith(chr(10)) else '  '}{row.text}".rstrip()
        text = self.measures[index].write(*row.figures[index])
        return "–" if text == UNKNOWN else text


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
"""Opacity of the colour for a share of 0 or 1."""


@dataclass(frozen=True, eq=False)
class RankingRows:
    """Items in the order of their ranks."""

    items: NDArray[np.integer]  # (n,): numbers used in signals
    names: Sequence[str]  # (n,)
    # n tuples of texts of the columns, without the item's name: rank, score, won, lost, tied, share
    cells: Sequence[tuple[str, ...]]
    # (n, n) or None: share won by the item of the row against that of the column; None with too many items
    share: NDArray[np.floating] | None
    # ``against(row, column)`` describes the comparisons of two items in a sentence
    against: Callable[[int, int], str]
    pictures: bool = False

    def text(self, row: int, column: int) -> str:
        """Return the text of a cell of the first `NUMBERS` columns."""
        return self.names[row] if column == 1 else self.cells[row][column - (column > 1)]


class RankingTable(TitledPage):
    """Table of items by rank. A click on a share selects the pair of items."""

    pair_chosen = Signal(int, int)

    def __init__(self) -> None:
        self.view = QTableView()
        super().__init__(Header("Ranking and wins"), self.view, NOTHING)
        self.pictures = ThumbnailCache(SIDE, self._visible_items, self)
        self.model = _RankingModel(self.pictures, self)
        set_up_view(self.view, self.model, "Ranking and wins")
        self.view.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectItems)
        self.view.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.view.horizontalHeader().setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.setFocusProxy(self.view)
        self.view.clicked.connect(self._on_cell)
        self.view.activated.connect(self._on_cell)
        self.view.verticalScrollBar().valueChanged.connect(self.pictures.rest)
        self.pictures.changed.connect(self.view.viewport().update)

    def show_ranking(self, rows: RankingRows | None) -> None:
        """Show items, or that there is no ranking yet."""
        self.model.set_rows(rows)
        self.set_filled(rows is not None)
        self.header.set_subtitle("" if rows is None else counted(len(rows.names), "item"))
        if rows is not None:
            for column in range(NUMBERS):
                side = SIDE if rows.pictures and column == 1 else 0  # the pictures come later
                self.view.setColumnWidth(column, self._widest(rows, column) + pixels(ROOM + side))
            for column in range(NUMBERS, self.model.columnCount()):
                width = self.view.horizontalHeader().sectionSizeHint(column)  # shares are short texts
                self.view.setColumnWidth(column, min(max(width, pixels(SHARE_WIDTH)), pixels(WIDEST_SHARE)))
        self.pictures.ask_again()

    def _widest(self, rows: RankingRows, column: int) -> int:
        """Measure the widest cell, among those with the most letters, and the heading."""
        texts = [rows.text(row, column) for row in range(len(rows.names))]
        longest = heapq.nlargest(LONGEST_MEASURED, range(len(texts)), key=lambda row: len(texts[row]))
        widths = [self.view.sizeHintForIndex(self.model.index(row, column)).width() for row in longest]
        return max(self.view.horizontalHeader().sectionSizeHint(column), *widths)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Request the pictures that came into view."""
        super().resizeEvent(event)
        self.pictures.rest()

    def _visible_items(self) -> list[int]:
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


class _RankingModel(TableModel):
    def __init__(self, pictures: ThumbnailCache, parent: QObject) -> None:
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
