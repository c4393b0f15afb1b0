"""Dialogs of several experts: a copy for a second reader, and the preview of a merge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QDialog, QHeaderView, QStyledItemDelegate, QWidget

from raterscope.widgets.dialogs.parts import lay_out
from raterscope.widgets.parts import plain_label
from raterscope.widgets.tables.rows import TextRowsModel, row_view
from raterscope.widgets.theme import set_lengths

_ABOUT_COPY = (
    "Another expert reviews the copy on the same data. Then merge it with this study: what you decide "
    "differently is open again and heads the queue."
)
_BLIND = "Blind: leave out all decisions so far, and results that used them"

COLUMNS = {
    "Kind": "Kind of annotation; empty for an annotator of all kinds",
    "Item": "Image, case or question",
    "Subject": "What both decided differently",
    "First": "Decision of the first expert",
    "Second": "Decision of the second expert",
}


class SecondReaderDialog(QDialog):
    """Choose whether the copy is blind; open it with ``open()`` and read `blind` when accepted."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Copy for a second reader")
        set_lengths(self, minimumWidth=460)
        self.choice = QCheckBox(_BLIND)
        self.choice.setChecked(True)
        self.accepting = lay_out(
            self,
            plain_label("Copy for a second reader", "title"),
            plain_label(_ABOUT_COPY, "second", wrap=True),
            self.choice,
            8,
            accept="Choose file…",
        )

    @property
    def blind(self) -> bool:
        """True if the copy leaves out all decisions."""
        return self.choice.isChecked()


@dataclass(frozen=True)
class DifferingDecision:
    """A subject on which two experts decided differently."""

    kind: str
    item: str
    subject: str
    first: str
    second: str


class MergePreviewDialog(QDialog):
    """Show what a merge would do; open it with ``open()``, it is accepted to merge.

    Parameters
    ----------
    title : str
        Names of the two studies.
    summary : sequence of str
        Decisions of each expert, agreement, and what is missing, a line each.
    conflicts : sequence of DifferingDecision
        Decisions that differ; none are listed while a blind read is not complete.
    warning : str
        Why to wait; empty if there is no reason.
    """

    def __init__(
        self, title: str, summary: Sequence[str], conflicts: Sequence[DifferingDecision],
        warning: str = "", parent: QWidget | None = None,
    ) -> None:  # fmt: skip
        super().__init__(parent)
        self.setWindowTitle("Merge with another study")
        set_lengths(self, minimumWidth=680)
        self.summary = plain_label("\n".join(summary), wrap=True, selectable=True)
        self.warning = plain_label(warning, "disputed", wrap=True)
        self.warning.setVisible(bool(warning))
        model: TextRowsModel[DifferingDecision] = TextRowsModel(COLUMNS, "Kind", self, falling=False)
        model.set_rows(tuple(conflicts))
        self.table = row_view(model, QStyledItemDelegate(), "Decisions that differ")
        header = self.table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setStretchLastSection(True)
        header.setSortIndicatorShown(True)
        self.table.setVisible(bool(conflicts))
        set_lengths(self.table, minimumHeight=220)
        self.accepting = lay_out(
            self,
            plain_label(title, "title", wrap=True),
            self.summary,
            self.warning,
            (self.table, 1),
            8,
            accept="Merge anyway…" if warning else "Merge…",
        )
