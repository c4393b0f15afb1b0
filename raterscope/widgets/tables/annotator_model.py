"""The annotators as rows that sort and filter quickly."""

from __future__ import annotations

import math
from dataclasses import dataclass

from PySide6.QtCore import QObject, Qt

from raterscope.text.numbers import UNKNOWN, estimate, part_of_one
from raterscope.widgets.parts import plain_tip
from raterscope.widgets.tables.course import Course
from raterscope.widgets.tables.rows import ROW, Index, RowsModel

__all__ = ["COLUMNS", "AnnotatorModel", "AnnotatorRow"]

Figures = tuple[float, float, float]
HELP = {
    "annotator": "Colour and shape are the same in all views",
    "clicks": "Clicks on the images shown",
    "reliability": "Share of clicks that are not outliers, with 95 % interval",
    "sensitivity": "Share of structures that the annotator marked, with 95 % interval",
    "precision": "Share of the annotator's marks that are on structures, with 95 % interval",
    "weight": "Excluded or down-weighted annotators, and the reason",
    "by image": "Reliability on each image in study order, from 0 (bottom) to 1 (top). Sorts by the lowest",
}
COLUMNS = tuple(HELP)


@dataclass(frozen=True, slots=True)
class AnnotatorRow:
    """One annotator.

    Attributes
    ----------
    index : int
        Gives colour and symbol.
    name : str
    clicks : int
    reliability, sensitivity, precision : (value, low, high)
        NaN where not known.
    weight : float
        As how much of an annotator one counts; 0 for who is excluded.
    why : str
        The reason, where that is less than 1.
    course : Course, optional
        The same by image, where several are fused.
    """

    index: int
    name: str
    clicks: int
    reliability: Figures
    sensitivity: Figures
    precision: Figures
    weight: float = 1.0
    why: str = ""
    course: Course | None = None

    @property
    def excluded(self) -> bool:
        """Whether the annotator is left out."""
        return self.weight == 0

    @property
    def part(self) -> str:
        """How much one counts, where that is less than all others do: "out", "× ½"."""
        if self.excluded:
            return "out"
        return "" if self.weight == 1 else f"× {part_of_one(self.weight)}"

    def figures(self, column: str) -> Figures:
        """Give an estimate by the name of its column."""
        return {
            "reliability": self.reliability,
            "sensitivity": self.sensitivity,
            "precision": self.precision,
        }[column]


class AnnotatorModel(RowsModel[AnnotatorRow]):
    """Annotators, with who is hidden or alone."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(HELP, "clicks", parent, falling=True)
        self.hidden: frozenset[int] = frozenset()
        self.solo: int | None = None
        self._filter: list[str] = []

    def choose(self, text: str) -> None:
        """Keep the rows whose name or reason has all words."""
        self._filter = text.casefold().split()
        self.arrange()

    def passes(self, row: AnnotatorRow) -> bool:
        """Whether name or reason has all words."""
        return all(word in f"{row.name} {row.why}".casefold() for word in self._filter)

    def sort_key(self, row: AnnotatorRow, column: str) -> float | str:
        """Sort by the estimate, not by its interval."""
        if column == "annotator":
            return row.name.casefold()
        if column == "weight":
            return row.weight
        if column == "by image":
            return math.nan if row.course is None else row.course.lowest
        return float(row.clicks) if column == "clicks" else row.figures(column)[0]

    def set_shown(self, hidden: frozenset[int], solo: int | None) -> None:
        """Say who is hidden or alone."""
        self.hidden, self.solo = hidden, solo
        if self.rowCount():
            self.dataChanged.emit(self.index(0, 0), self.index(self.rowCount() - 1, len(COLUMNS) - 1))

    def shown(self, annotator: int) -> bool:
        """Whether an annotator's clicks are drawn."""
        return annotator == self.solo if self.solo is not None else annotator not in self.hidden

    def row_of(self, annotator: int) -> int:
        """Give the row of an annotator, -1 where filtered away."""
        return next((row for row in range(self.rowCount()) if self.at(row).index == annotator), -1)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        """Name the columns above their figures, with an arrow the one that is sorted by."""
        if role == Qt.ItemDataRole.TextAlignmentRole and self.columns[section] == "clicks":
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        words = super().headerData(section, orientation, role)
        if role == Qt.ItemDataRole.DisplayRole and self.columns[section] == self._column:
            return f"{words} {'▾' if self._falling else '▴'}"
        return words

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by a column, and say by which."""
        super().sort(column, order)
        self.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, len(self.columns) - 1)

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
            return f"{column} {_words(row, column) or ('1' if column == 'weight' else 'no')}"
        return None


def _words(row: AnnotatorRow, column: str) -> str:
    if column == "annotator":
        return row.name
    if column == "clicks":
        return f"{row.clicks:,}"
    if column == "weight":
        how = (
            "excluded" if row.excluded else "" if row.weight == 1 else f"counts as {part_of_one(row.weight)}"
        )
        return f"{how}: {row.why}" if row.why else how
    if column == "by image":
        return "" if row.course is None else row.course.summary()
    words = estimate(*row.figures(column))
    return "–" if words == UNKNOWN else words
