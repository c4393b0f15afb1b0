"""How long a line is that was drawn along something of known length."""

from __future__ import annotations

from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QDoubleSpinBox,
    QHBoxLayout,
    QVBoxLayout,
    QWidget,
)

from raterscope.widgets.dialogs.buttons import add_buttons
from raterscope.widgets.parts import plain_label
from raterscope.widgets.text_size import set_lengths

__all__ = ["UNITS", "ScaleDialog"]

UNITS = {"nm": 1e-3, "µm": 1.0, "mm": 1e3}
"""Micrometres in each."""


class ScaleDialog(QDialog):
    """Ask for a length; open it with ``open()`` and read `length` and `everywhere` when accepted.

    Parameters
    ----------
    pixels : float
        How long the line is.
    images : int
        How many the study has.
    """

    def __init__(self, pixels: float, images: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Set the scale")
        set_lengths(self, minimumWidth=360)
        self._pixels = pixels
        self.number = QDoubleSpinBox()
        self.number.setRange(0.0, 1e6)
        self.number.setDecimals(3)
        self.number.setSpecialValueText(" ")
        self.number.setButtonSymbols(QDoubleSpinBox.ButtonSymbols.NoButtons)
        self.number.setAccessibleName("Length of the line")
        self.unit = QComboBox()
        self.unit.addItems(list(UNITS))
        self.unit.setCurrentText("µm")
        self.unit.setAccessibleName("Unit")
        self.all_images = QCheckBox(f"Use for all {images:,} images")
        self.all_images.setChecked(True)
        self.all_images.setVisible(images > 1)
        self._said = plain_label("", "second")
        row = QHBoxLayout()
        row.addWidget(self.number, 1)
        row.addWidget(self.unit)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 16, 16, 16)
        column.setSpacing(8)
        column.addWidget(plain_label("How long is this line?", "title"))
        column.addWidget(plain_label(f"It is {pixels:,.1f} pixels long.", "second"))
        column.addLayout(row)
        column.addWidget(self._said)
        column.addWidget(self.all_images)
        column.addSpacing(8)
        self.accepting = add_buttons(self, column, "Set the scale")
        self.number.valueChanged.connect(self._tell)
        self.unit.currentTextChanged.connect(self._tell)
        self._tell()
        self.number.setFocus()
        self.number.selectAll()

    @property
    def length(self) -> float:
        """The length, micrometres."""
        return self.number.value() * UNITS[self.unit.currentText()]

    @property
    def everywhere(self) -> bool:
        """Whether it is to hold for all images."""
        return self.all_images.isChecked()

    def _tell(self) -> None:
        known = self.length > 0
        self.accepting.setEnabled(known)
        self._said.setText(f"A pixel is {self.length / self._pixels:.4g} µm." if known else " ")
