"""The annotators as rows that sort and filter quickly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from raterscope.widgets.figures import UNKNOWN, estimate
from raterscope.widgets.parts import plain_tip

__all__ = ["COLUMNS", "ROW", "AnnotatorModel", "AnnotatorRow"]

Index = QModelIndex | QPersistentModelIndex
Figures = tuple[float, float, float]
ROW = Qt.ItemDataRole.UserRole
COLUMNS = ("annotator", "clicks", "reliability", "sensitivity", "specificity", "excluded")
HELP = {
    "annotator": "Colour and shape are the same everywhere",
    "clicks": "Clicks on the images shown",
    "reliability": "Share of the clicks that are no outliers, with its 95 % interval",
    "sensitivity": "Share of the structures that the annotator marks, with its 95 % interval",
    "specificity": "Share of the artefacts that the annotator leaves alone, with its 95 % interval",
    "excluded": "Why the annotator is left out of fusions",
}


@dataclass(frozen=True, slots=True)
class AnnotatorRow:
    """One annotator.

    Attributes
    ----------
    index : int
        Gives colour and symbol.
    name : str
    clicks : int
    reliability, sensitivity, specificity : (value, low, high)
        NaN where not known.
    excluded : str or None
        The reason, where excluded.
    """

    index: int
    name: str
    clicks: int
    reliability: Figures
    sensitivity: Figures
    specificity: Figures
    excluded: str | None = None

    def figures(self, column: str) -> Figures:
        """Give an estimate by the name of its column."""
        return {
            "reliability": self.reliability,
            "sensitivity": self.sensitivity,
            "specificity": self.specificity,
        }[column]


class AnnotatorModel(QAbstractTableModel):
    """Rows in the order asked for, those that pass the filter."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.rows: tuple[AnnotatorRow, ...] = ()
        self.hidden: frozenset[int] = frozenset()
        self.solo: int | None = None
        self._text = ""
        self._column, self._falling = COLUMNS.index("clicks"), True
        self._order: list[int] = []

    def set_rows(self, rows: tuple[AnnotatorRow, ...]) -> None:
        """Show other rows."""
        self.beginResetModel()
        self.rows = rows
        self._arrange()
        self.endResetModel()

    def choose(self, text: str) -> None:
        """Keep the rows whose name or reason has all words."""
        self.beginResetModel()
        self._text = text
        self._arrange()
        self.endResetModel()

    def set_shown(self, hidden: frozenset[int], solo: int | None) -> None:
        """Say who is hidden or alone."""
        self.hidden, self.solo = hidden, solo
        if self._order:
            self.dataChanged.emit(self.index(0, 0), self.index(len(self._order) - 1, len(COLUMNS) - 1))

    def shown(self, annotator: int) -> bool:
        """Whether an annotator's clicks are drawn."""
        return annotator == self.solo if self.solo is not None else annotator not in self.hidden

    def at(self, row: int) -> AnnotatorRow:
        """Give the annotator of a row."""
        return self.rows[self._order[row]]

    def row_of(self, annotator: int) -> int:
        """Give the row of an annotator, -1 where filtered away."""
        return next((row for row, place in enumerate(self._order) if self.rows[place].index == annotator), -1)

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by a column; what is not known comes last either way."""
        self.layoutAboutToBeChanged.emit()
        before = self.persistentIndexList()
        kept = [self._order[index.row()] for index in before]
        self._column, self._falling = column, order == Qt.SortOrder.DescendingOrder
        self._arrange()
        rank = {place: row for row, place in enumerate(self._order)}
        after = [self.index(rank[place], index.column()) for place, index in zip(kept, before, strict=True)]
        self.changePersistentIndexList(before, after)
        self.layoutChanged.emit()

    def rowCount(self, parent: Index | None = None) -> int:
        """Count the rows that pass."""
        return 0 if parent is not None and parent.isValid() else len(self._order)

    def columnCount(self, parent: Index | None = None) -> int:
        """Count the columns."""
        return 0 if parent is not None and parent.isValid() else len(COLUMNS)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        """Name the columns."""
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return COLUMNS[section]
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.ToolTipRole:
            return HELP[COLUMNS[section]]
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Give a cell in words, or its row."""
        row, column = self.at(index.row()), COLUMNS[index.column()]
        if role == ROW:
            return row
        if role == Qt.ItemDataRole.DisplayRole:
            return _words(row, column)
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tip(f"{row.name}: {_words(row, column)}" if column != "annotator" else row.name)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{column} {_words(row, column) or 'no'}"
        return None

    def _arrange(self) -> None:
        words = self._text.casefold().split()
        places = [
            place
            for place, row in enumerate(self.rows)
            if all(word in f"{row.name} {row.excluded or ''}".casefold() for word in words)
        ]
        column = COLUMNS[self._column]
        if column in ("annotator", "excluded"):
            places.sort(key=lambda place: self._text_key(place, column), reverse=self._falling)
            if column == "excluded":
                places.sort(key=lambda place: not self.rows[place].excluded)
            self._order = places
            return
        values = np.array([self._number(self.rows[place], column) for place in places], dtype=float)
        order = np.argsort(-values if self._falling else values, kind="stable")
        self._order = [places[i] for i in order]

    def _text_key(self, place: int, column: str) -> str:
        row = self.rows[place]
        return (row.name if column == "annotator" else row.excluded or "").casefold()

    @staticmethod
    def _number(row: AnnotatorRow, column: str) -> float:
        return float(row.clicks) if column == "clicks" else row.figures(column)[0]


def _words(row: AnnotatorRow, column: str) -> str:
    if column == "annotator":
        return row.name
    if column == "clicks":
        return f"{row.clicks:,}"
    if column == "excluded":
        return row.excluded or ""
    words = estimate(*row.figures(column))
    return "–" if words == UNKNOWN else words
