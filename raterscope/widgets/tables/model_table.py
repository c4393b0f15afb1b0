"""Table of a mask model's estimates for each rater: bias, Sigma, degrees of freedom, local scale tau."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QModelIndex, QObject, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import (
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from raterscope.text import small_figure
from raterscope.widgets import theme
from raterscope.widgets.layouts import stacked, vertical
from raterscope.widgets.painting import paint_rater, paint_words
from raterscope.widgets.parts import Header, placeholder, plain_tip
from raterscope.widgets.tables.rows import ROW, Index, RowsModel, row_named, row_view, select_row
from raterscope.widgets.theme import enlarge, pixels, set_lengths

NOTHING = "Press Fuse (F5) to see the model's estimates for each rater."
COLUMNS = {
    "rater": "The colour is the same in all views",
    "model bias mm": "Bias b of the model: mean of the rater's signed distances less the consensus's, over "
    "all voxels, in mm. Most voxels lie where all raters agree, so that it is far smaller than the bias "
    "along the outline",
    "√Σ mm": "Square root of the model's Sigma of the rater, in mm. Not comparable between algorithms",
    "SD mm": "Standard deviation of the rater's distances about the consensus by the model, in mm: "
    "comparable between algorithms",
    "dof": "Degrees of freedom of the rater's errors: the fewer, the more of them are gross",
    "τ": "Local scale: median over the voxels where raters differ. Sigma is divided by it, so that it is low "
    "where the rater is far from the consensus",
    "τ here": "Local scale at the crosshair",
}
FIELDS = {
    "model bias mm": "bias_mm", "√Σ mm": "sigma_mm", "SD mm": "deviation_mm", "dof": "dof", "τ": "tau",
    "τ here": "tau_here",
}  # fmt: skip
WIDTH = 74
SIGNED = "model bias mm"


@dataclass(frozen=True, slots=True)
class ModelRow:
    """Model estimates for one rater; NaN where the model has none."""

    number: int  # index that determines the colour
    name: str
    # bias_mm, sigma_mm, deviation_mm: bias, square root of Sigma, square root of the covariance
    bias_mm: float = math.nan
    sigma_mm: float = math.nan
    deviation_mm: float = math.nan
    dof: float = math.nan
    # tau, tau_here: where raters differ, and at the crosshair
    tau: float = math.nan
    tau_here: float = math.nan


class ModelTable(QWidget):
    """Raters as rows; columns without values are hidden."""

    rater_chosen = Signal(str)  # name of the selected rater

    def __init__(self) -> None:
        super().__init__()
        theme.set_role(self, "panel")
        self.header = Header("Model estimates")
        self._nothing = placeholder(NOTHING)
        self.model = _Model(self)
        self.view = row_view(self.model, _Delegate(), "Model estimates for each rater")
        head = self.view.horizontalHeader()
        head.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        set_lengths(head, minimumSectionSize=40)
        self._pages = stacked(self._nothing, self.view)
        self.setFocusProxy(self.view)
        vertical(self.header, (self._pages, 1), inside=self, margins=(12, 8, 12, 4), spacing=4)
        self._quiet = False
        self.view.selectionModel().currentRowChanged.connect(self._on_current)
        theme.notifier().changed.connect(self._settle)

    def set_rows(self, rows: Sequence[ModelRow], unit: str = "mm", aside: str = "") -> None:
        """Replace the raters, with lengths in a unit; order and selection stay."""
        index = self.view.currentIndex()
        current = self.model.at(index.row()).name if index.isValid() else None
        self.model.unit = unit
        self._quiet = True
        self.model.set_rows(tuple(rows))
        self._quiet = False
        self.header.set_aside(aside if rows else "")
        self.select(current)
        self._settle()

    def set_nothing(self, reason: str = "") -> None:
        """Show why the table is empty; by default what belongs here."""
        self._nothing.setText(reason or NOTHING)

    def select(self, name: str | None) -> None:
        """Select a rater, without a signal; None clears the selection."""
        self._quiet = True
        select_row(self.view, row_named(self.model, name))
        self._quiet = False

    def _on_current(self, index: QModelIndex) -> None:
        if not self._quiet and index.isValid():
            self.rater_chosen.emit(self.model.at(index.row()).name)

    def _settle(self) -> None:
        self._pages.setCurrentIndex(int(bool(self.model.rows)))
        for column, name in enumerate(self.model.columns):
            if name in FIELDS:
                self.view.setColumnWidth(column, pixels(WIDTH + 28 * (name == SIGNED)))
                self.view.setColumnHidden(column, not self.model.known(name))


class _Model(RowsModel[ModelRow]):
    def __init__(self, parent: QObject) -> None:
        super().__init__(COLUMNS, "rater", parent, falling=False)
        self.unit = "mm"

    def sort_key(self, row: ModelRow, column: str) -> float | str:
        return float(row.number) if column == "rater" else float(getattr(row, FIELDS[column]))

    def known(self, column: str) -> bool:
        return not all(math.isnan(getattr(row, FIELDS[column])) for row in self.rows)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        if role == Qt.ItemDataRole.TextAlignmentRole and orientation == Qt.Orientation.Horizontal:
            side = Qt.AlignmentFlag.AlignRight if section else Qt.AlignmentFlag.AlignLeft
            return side | Qt.AlignmentFlag.AlignVCenter
        words = super().headerData(section, orientation, role)
        if not isinstance(words, str):
            return words
        words = words.replace("mm", self.unit)
        return plain_tip(words) if role == Qt.ItemDataRole.ToolTipRole else words

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        row, column = self.at(index.row()), self.columns[index.column()]
        if role == ROW:
            return row
        if role == Qt.ItemDataRole.DisplayRole:
            return row.name if column == "rater" else _words(getattr(row, FIELDS[column]), column)
        if role == Qt.ItemDataRole.AccessibleTextRole and column != "rater":
            return f"{column.replace('mm', self.unit)} {_words(getattr(row, FIELDS[column]), column)}"
        return None


class _Delegate(QStyledItemDelegate):
    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row: ModelRow = index.data(ROW)
        palette = theme.current()
        painter.save()
        box = enlarge(painter, option.rect)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if option.state & QStyle.StateFlag.State_Selected:
            painter.fillRect(box, QColor(palette.raised))
        painter.setFont(theme.font())
        if index.column() == 0:
            paint_rater(painter, QRectF(box.left(), box.top(), 18, box.height()), row.number)
            name = box.adjusted(26, 0, -4, 0)
            paint_words(painter, name, row.name, palette.text, elide=Qt.TextElideMode.ElideMiddle)
        else:
            side = Qt.AlignmentFlag.AlignRight
            paint_words(painter, box.adjusted(2, 0, -6, 0), str(index.data()), palette.text, side=side)
        painter.restore()


def _words(value: float, column: str) -> str:
    if math.isnan(value):
        return "–"
    if column == "dof":
        return f"{value:.1f}" if value < 100 else "> 100"
    return small_figure(value, "+" if column == SIGNED else "")
