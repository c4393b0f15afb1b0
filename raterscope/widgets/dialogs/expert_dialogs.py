"""Dialogs for several experts (copy for a second reader, merge), and for names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtWidgets import QCheckBox, QComboBox, QWidget

from raterscope.widgets.forms import FormDialog
from raterscope.widgets.parts import ChoiceBox, plain_label
from raterscope.widgets.tables.rows import TextTable
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


class SecondReaderDialog(FormDialog):
    """Dialog whether the copy is blind; open it with ``open()`` and read `blind` when accepted."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Copy for a second reader", parent, width=460)
        self.choice = QCheckBox(_BLIND)
        self.choice.setChecked(True)
        self.lay_out("Copy for a second reader", _ABOUT_COPY, self.choice, 8, accept="Choose file…")

    @property
    def blind(self) -> bool:
        """True if the copy omits all decisions."""
        return self.choice.isChecked()


@dataclass(frozen=True)
class DifferingDecision:
    """A subject on which two experts decided differently."""

    kind: str
    item: str
    subject: str
    first: str
    second: str


class MergePreviewDialog(FormDialog):
    """Preview of a merge; open it with ``open()``; accepting it merges.

    `title`: names of the two studies. `summary`: decisions of each expert, agreement, and missing contents,
    one line each. `conflicts`: decisions that differ; none are listed while a blind read is not complete.
    `warning`: reason to wait; empty if there is none.
    """

    def __init__(
        self, title: str, summary: Sequence[str], conflicts: Sequence[DifferingDecision],
        warning: str = "", parent: QWidget | None = None,
    ) -> None:  # fmt: skip
        super().__init__("Merge with another study", parent, width=680)
        self.summary = plain_label("\n".join(summary), wrap=True, selectable=True)
        self.warning = plain_label(warning, "disputed", wrap=True)
        self.warning.setVisible(bool(warning))
        self.table = TextTable(COLUMNS, "Decisions that differ", conflicts)
        self.table.setVisible(bool(conflicts))
        set_lengths(self.table, minimumHeight=220)
        accept = "Merge anyway…" if warning else "Merge…"
        self.lay_out(title, "", self.summary, self.warning, (self.table, 1), 8, accept=accept)


class NameDialog(FormDialog):
    """Dialog for a new name; open it with ``open()`` and read `name` and `new` when accepted.

    `noun`: noun of the names: structure or class. `names`: current names. `selected`: the name to
    change, unless another is chosen.
    """

    def __init__(self, noun: str, names: Sequence[str], selected: str, parent: QWidget | None = None) -> None:
        super().__init__(f"Rename or merge a {noun}", parent, width=420)
        self._noun, self._names = noun, tuple(names)
        self.present = ChoiceBox(f"Present name of the {noun}", names)
        self.present.choose(selected)
        self.editor = QComboBox(editable=True)
        self.editor.setAccessibleName(f"New name of the {noun}")
        self._consequence = plain_label("", "second", wrap=True)
        fields = {noun.capitalize(): self.present, "New name": self.editor}
        self.lay_out("", "", fields, self._consequence, 8, accept="Rename")
        self.present.currentIndexChanged.connect(self._offer)
        self.editor.editTextChanged.connect(self._show)
        self._offer()
        self.editor.setFocus()

    @property
    def name(self) -> str:
        """Current name."""
        return self.present.currentText()

    @property
    def new(self) -> str:
        """The new name."""
        return self.editor.currentText().strip()

    def _offer(self) -> None:
        """Offer the other names, starting from the current one."""
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
