"""Dialogs of several experts: a copy for a second reader, the preview of a merge; and of names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QFormLayout,
    QHeaderView,
    QStyledItemDelegate,
    QWidget,
)

from raterscope.widgets.dialogs.parts import lay_out
from raterscope.widgets.parts import ChoiceBox, plain_label
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

    `title`: names of the two studies. `summary`: decisions of each expert, agreement, and what is missing, a
    line each. `conflicts`: decisions that differ; none are listed while a blind read is not complete.
    `warning`: why to wait; empty if there is no reason.
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


class NameDialog(QDialog):
    """Dialog for a new name; open it with ``open()`` and read `name` and `new` when accepted.

    `noun`: what has the names: structure or class. `names`: present names. `selected`: the name to change,
    unless another is chosen.
    """

    def __init__(self, noun: str, names: Sequence[str], selected: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(f"Rename or merge a {noun}")
        set_lengths(self, minimumWidth=420)
        self._noun, self._names = noun, tuple(names)
        self.present = ChoiceBox()
        self.present.addItems(list(names))
        self.present.setCurrentIndex(max(self.present.findText(selected), 0))
        self.present.setAccessibleName(f"Present name of the {noun}")
        self.editor = QComboBox()
        self.editor.setEditable(True)
        self.editor.setAccessibleName(f"New name of the {noun}")
        self._consequence = plain_label("", "second", wrap=True)
        form = QWidget()
        fields = QFormLayout(form)
        fields.setContentsMargins(0, 0, 0, 0)
        fields.addRow(noun.capitalize(), self.present)
        fields.addRow("New name", self.editor)
        self.accepting = lay_out(self, form, self._consequence, 8, accept="Rename")
        self.present.currentIndexChanged.connect(self._offer)
        self.editor.editTextChanged.connect(self._show)
        self._offer()
        self.editor.setFocus()

    @property
    def name(self) -> str:
        """The present name."""
        return self.present.currentText()

    @property
    def new(self) -> str:
        """The new name."""
        return self.editor.currentText().strip()

    def _offer(self) -> None:
        """Offer the other names, and start from the present one."""
        self.editor.clear()
        self.editor.addItems([name for name in self._names if name != self.name])
        self.editor.setEditText(self.name)
        line = self.editor.lineEdit()
        if line is not None:
            line.selectAll()
        self._show()

    def _show(self) -> None:
        merges = self.new in self._names and self.new != self.name
        self.accepting.setText("Merge" if merges else "Rename")
        self.accepting.setEnabled(bool(self.new) and self.new != self.name)
        self._consequence.setText(
            f"{self.name} and {self.new} become one {self._noun}. Fuse again afterwards."
            if merges
            else f"In all images, exports and reports. Choose another {self._noun} to merge both. "
            "The imported names are kept, and undo (Z) reverts it."
        )
