"""Dialogs of mask editing: a margin in millimetres, and a combination with another mask."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtWidgets import QDialog, QDoubleSpinBox, QFormLayout, QWidget

from raterscope.widgets.dialogs.parts import lay_out
from raterscope.widgets.parts import ChoiceBox, plain_label
from raterscope.widgets.theme import set_lengths

LARGEST_MARGIN = 100.0


class MarginDialog(QDialog):
    """Dialog for a margin; open it with ``open()`` and read `margin` when accepted.

    `unit`: mm, or px without calibration. `margin`: initial margin.
    """

    def __init__(self, structure: str, unit: str, margin: float, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Add a margin")
        set_lengths(self, minimumWidth=360)
        self.editor = QDoubleSpinBox()
        self.editor.setRange(-LARGEST_MARGIN, LARGEST_MARGIN)
        self.editor.setDecimals(1)
        self.editor.setValue(margin)
        self.editor.setSuffix(f" {unit}")
        self.editor.setAccessibleName("Margin; negative to shrink")
        form = QWidget()
        fields = QFormLayout(form)
        fields.setContentsMargins(0, 0, 0, 0)
        fields.addRow("Margin", self.editor)
        words = "Grows the structure in all directions; a negative margin shrinks it."
        title = plain_label(structure, "title", wrap=True)
        self.accepting = lay_out(
            self, title, plain_label(words, "second", wrap=True), form, 8, accept="Apply"
        )
        self.editor.valueChanged.connect(lambda value: self.accepting.setEnabled(value != 0))
        self.editor.selectAll()
        self.editor.setFocus()

    @property
    def margin(self) -> float:
        """The margin; below 0 to shrink."""
        return self.editor.value()


class CombineDialog(QDialog):
    """Dialog for a combination; open it with ``open()`` and read `how` and `other` when accepted.

    `structure`: structure that changes. `combinations`: by name. `masks`: by key, other masks.
    """

    def __init__(
        self,
        structure: str,
        combinations: Mapping[str, str],
        masks: Mapping[str, str],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle("Combine with another mask")
        set_lengths(self, minimumWidth=420)
        self.how_box, self.other_box = ChoiceBox(), ChoiceBox()
        form = QWidget()
        fields = QFormLayout(form)
        fields.setContentsMargins(0, 0, 0, 0)
        for words, box, entries in (
            ("Change", self.how_box, combinations),
            ("Other mask", self.other_box, masks),
        ):
            box.setAccessibleName(words)
            for key, text in entries.items():
                box.addItem(text, key)
            fields.addRow(words, box)
        lay_out(self, plain_label(structure, "title", wrap=True), form, 8, accept="Apply")
        self.other_box.setFocus()

    @property
    def how(self) -> str:
        """Name of the combination."""
        return str(self.how_box.currentData())

    @property
    def other(self) -> str:
        """Key of the other mask."""
        return str(self.other_box.currentData())
