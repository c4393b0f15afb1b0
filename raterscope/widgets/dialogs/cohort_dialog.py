"""Dialog that lists the cases of a cohort that have no results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QHeaderView, QStyledItemDelegate, QWidget

from raterscope.widgets.layouts import vertical
from raterscope.widgets.parts import plain_label
from raterscope.widgets.tables.rows import TextRowsModel, row_view
from raterscope.widgets.theme import set_lengths

COLUMNS = {
    "Case": "Name of the case",
    "Kind": "Kind of annotation",
    "Status": "Bad input, temporary fault, internal error, not run or not readable",
    "Reason": "Why the case has no results",
}


@dataclass(frozen=True)
class FailedCase:
    """A case without results."""

    case: str
    kind: str
    status: str
    reason: str


class FailedCasesDialog(QDialog):
    """Table of the cases without results; open it with ``open()``.

    Parameters
    ----------
    summary : str
        What to do about them, shown above the table.
    cases : sequence of FailedCase
    """

    def __init__(self, summary: str, cases: Sequence[FailedCase], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Cases without results")
        set_lengths(self, minimumWidth=720, minimumHeight=420)
        model: TextRowsModel[FailedCase] = TextRowsModel(COLUMNS, "Case", self, falling=False)
        model.set_rows(tuple(cases))
        self.table = row_view(model, QStyledItemDelegate(), "Cases without results")
        header = self.table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setStretchLastSection(True)
        header.setSortIndicatorShown(True)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.reject)
        vertical(
            plain_label(summary, wrap=True),
            (self.table, 1),
            buttons,
            inside=self,
            margins=(16, 12, 16, 12),
            spacing=8,
        )
