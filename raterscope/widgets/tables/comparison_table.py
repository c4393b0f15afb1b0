"""Table that compares runs or methods, with the best values marked."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QModelIndex, QObject, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFocusEvent, QFont, QFontMetrics, QPainter
from PySide6.QtWidgets import (
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from raterscope.text import UNKNOWN, estimate
from raterscope.widgets import theme
from raterscope.widgets.layouts import vertical
from raterscope.widgets.parts import Header, placeholder, plain_tip
from raterscope.widgets.tables.rows import Index, TableModel, set_up_view
from raterscope.widgets.theme import set_lengths

_SIDE, _ABOVE = 8, 3
"""Margin beside the text of cells and headers."""


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
_LEAST_HEIGHT = 28


@dataclass(frozen=True, slots=True)
class Measure:
    """Column of the table: a measure of the runs."""

    name: str  # title of the column: "precision"
    help: str  # explanation in one sentence
    # value in bold: the highest, the lowest, the one nearest to 0, or none
    best: Literal["highest", "lowest", "nearest 0", "none"] = "highest"
    write: Write = estimate  # ``write(value, low, high)`` formats a value in one or two lines

    def worth(self, value: float) -> float:
        """Return a key that is greater for a better value; NaN if no value is better."""
        if self.best == "none":
            return math.nan
        return {"highest": value, "lowest": -value, "nearest 0": -abs(value)}[self.best]


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """Row of the table: a run with one (value, low, high) per measure; NaN where unknown."""

    key: object
    # title, words: "OEM + DEM", "12:01, click scatter 8 px"; text after a line break goes below the title
    title: str
    words: str
    figures: tuple[Figures, ...]
    tip: str = ""  # tooltip; by default title and text


class ComparisonTable(QWidget):
    """Runs as rows; the best value of each column is bold.

    `nothing`: message if there are no runs. `subject`: noun for a row.
    """

    run_chosen = Signal(object)  # key of the selected run

    def __init__(
        self,
        measures: Sequence[Measure],
        nothing: str,
        *,
        subject: str = "run",
    ) -> None:
        super().__init__()
        theme.set_role(self, "panel")
        self.header = Header("Runs compared")  # header of the table, to add widgets to
        self._nothing = placeholder(nothing)
        self._model = _ComparisonModel(tuple(measures), self, subject)
        self.view = _Table()
        set_up_view(self.view, self._model, "Runs compared", ComparisonDelegate())
        set_lengths(self.view.verticalHeader(), minimumSectionSize=_LEAST_HEIGHT)
        self.view.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header = self.view.horizontalHeader()
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        rows = (self._nothing, 1), (self.view, 1)
        vertical(self.header, *rows, inside=self, margins=(12, 8, 12, 4), spacing=4)
        self.view.selectionModel().currentRowChanged.connect(self._on_current)
        self.set_rows(())

    def set_nothing(self, words: str) -> None:
        """Set the message for an empty table."""
        self._nothing.setText(words)

    def set_rows(
        self, rows: Sequence[ComparisonRow], aside: str = "", measures: Sequence[Measure] | None = None
    ) -> None:
        """Replace the runs.

        `aside`: reference of the measures: "84 true positions, within 10 px". `measures`: by default the
        previous measures.
        """
        self._model.set_rows(tuple(rows), self._model.measures if measures is None else tuple(measures))
        self.header.set_aside(aside)
        self._nothing.setVisible(not rows)
        self.view.setVisible(bool(rows))

    def _on_current(self, index: QModelIndex) -> None:
        if index.isValid():
            self.run_chosen.emit(self._model.rows[index.row()].key)


class _Table(QTableView):
    def focusInEvent(self, event: QFocusEvent) -> None:
        """Take the focus without selecting the first run, as item views do."""
        QWidget.focusInEvent(self, event)
        self.viewport().update()


class _ComparisonModel(TableModel):
    """Model: the first column names the run, then one column a measure."""

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
            return self._words(row, measure)
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tip(row.tip or f"{row.title}, {row.words}")
        best = measure >= 0 and self.measures[measure].worth(row.figures[measure][0]) == self._best[measure]
        if role == Qt.ItemDataRole.FontRole:
            return theme.widget_font(bold=best)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            name = self.measures[measure].name if measure >= 0 else self._subject
            words = self._words(row, measure).replace("\n", ", ")
            return f"{name} {words}" + (", the best" if best else "")
        return None

    def _words(self, row: ComparisonRow, index: int) -> str:
        if index < 0:
            return f"{row.title}{'' if row.words.startswith(chr(10)) else '  '}{row.words}"
        words = self.measures[index].write(*row.figures[index])
        return "–" if words == UNKNOWN else words
