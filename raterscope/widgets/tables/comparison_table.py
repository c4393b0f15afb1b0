"""Several runs side by side, measured against known truth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt, Signal
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QVBoxLayout, QWidget

from raterscope.widgets import theme
from raterscope.widgets.figures import UNKNOWN, estimate
from raterscope.widgets.parts import Header, plain_label, plain_tip

__all__ = ["ComparisonRow", "ComparisonTable"]

Index = QModelIndex | QPersistentModelIndex
Figures = tuple[float, float, float]
NOT_KNOWN: Figures = (math.nan, math.nan, math.nan)
COLUMNS = ("run", "detections", "sensitivity", "precision", "F0.5", "F1", "F2", "ROC area")
HELP = {
    "run": "Algorithm, detector and what was set",
    "detections": "Spots that the run takes for real",
    "sensitivity": "Share of the known structures that were found",
    "precision": "Share of the detections that are known structures",
    "F0.5": "Sensitivity and precision in one, precision weighing double",
    "F1": "Sensitivity and precision in one",
    "F2": "Sensitivity and precision in one, sensitivity weighing double",
    "ROC area": "Probability that a structure ranks above an artefact",
}
MEASURES = COLUMNS[2:]


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """One run against the truth. Figures are (value, low, high); NaN where not known.

    Attributes
    ----------
    key : object
    title, words : str
        "OEM + DEM", "12:01, click scatter 8 px".
    detections : int
    sensitivity, precision, f_half, f_one, f_two, area : (float, float, float)
    """

    key: object
    title: str
    words: str
    detections: int
    sensitivity: Figures = NOT_KNOWN
    precision: Figures = NOT_KNOWN
    f_half: Figures = NOT_KNOWN
    f_one: Figures = NOT_KNOWN
    f_two: Figures = NOT_KNOWN
    area: Figures = NOT_KNOWN

    def figures(self, column: str) -> Figures:
        """Give an estimate by the name of its column."""
        measures = (self.sensitivity, self.precision, self.f_half, self.f_one, self.f_two, self.area)
        return measures[MEASURES.index(column)]


class ComparisonTable(QWidget):
    """Runs as rows; the best figure of each column is bold.

    Signals
    -------
    run_chosen : object
        Key of the run gone to.
    """

    run_chosen = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.set_role(self, "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._header = Header("Runs compared")
        self._nothing = plain_label(
            "Tick two or more runs under Fuse and press Compare; import known places to measure them by.",
            "second", wrap=True,
        )  # fmt: skip
        self._model = _ComparisonModel(self)
        self.view = QTableView()
        self.view.setModel(self._model)
        self.view.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.view.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.view.setShowGrid(False)
        self.view.setTabKeyNavigation(False)
        self.view.setWordWrap(False)
        self.view.setAccessibleName("Runs compared")
        self.view.verticalHeader().hide()
        self.view.verticalHeader().setDefaultSectionSize(28)
        header = self.view.horizontalHeader()
        header.setHighlightSections(False)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 12, 4)
        column.setSpacing(4)
        column.addWidget(self._header)
        column.addWidget(self._nothing)
        column.addWidget(self.view, 1)
        self.view.selectionModel().currentRowChanged.connect(self._on_current)
        self.set_rows(())

    def set_rows(self, rows: Sequence[ComparisonRow], aside: str = "") -> None:
        """Show runs; `aside` says what they are measured against: "84 known places, within 10 px"."""
        self._model.set_rows(tuple(rows))
        self._header.set_aside(aside)
        self._nothing.setVisible(not rows)
        self.view.setVisible(bool(rows))

    def _on_current(self, index: QModelIndex) -> None:
        if index.isValid():
            self.run_chosen.emit(self._model.rows[index.row()].key)


class _ComparisonModel(QAbstractTableModel):
    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.rows: tuple[ComparisonRow, ...] = ()
        self._best: dict[str, float] = {}

    def set_rows(self, rows: tuple[ComparisonRow, ...]) -> None:
        self.beginResetModel()
        self.rows = rows
        self._best = {}
        for column in MEASURES:
            known = [row.figures(column)[0] for row in rows if math.isfinite(row.figures(column)[0])]
            if len(known) > 1:
                self._best[column] = max(known)
        self.endResetModel()

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(COLUMNS)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return COLUMNS[section]
        return HELP[COLUMNS[section]] if role == Qt.ItemDataRole.ToolTipRole else None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        row, column = self.rows[index.row()], COLUMNS[index.column()]
        if role == Qt.ItemDataRole.DisplayRole:
            return self._words(row, column)
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tip(f"{row.title}, {row.words}")
        best = column in self._best and row.figures(column)[0] == self._best[column]
        if role == Qt.ItemDataRole.FontRole:
            font = QFont(theme.font())
            font.setBold(best)
            return font
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{column} {self._words(row, column)}" + (", the best" if best else "")
        return None

    def _words(self, row: ComparisonRow, column: str) -> str:
        if column == "run":
            return f"{row.title}  {row.words}"
        if column == "detections":
            return f"{row.detections:,}"
        words = estimate(*row.figures(column))
        return "–" if words == UNKNOWN else words
