"""Dialog that renames a structure or class, or merges it with another."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import QComboBox, QDialog, QFormLayout, QWidget

from raterscope.widgets.dialogs.parts import lay_out
from raterscope.widgets.parts import ChoiceBox, plain_label
from raterscope.widgets.theme import set_lengths


class NameDialog(QDialog):
    """Dialog for a new name; open it with ``open()`` and read `name` and `new` when accepted.

    Parameters
    ----------
    noun : str
        What has the names: structure or class.
    names : sequence of str
        Present names.
    selected : str
        The name to change, unless another is chosen.
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
