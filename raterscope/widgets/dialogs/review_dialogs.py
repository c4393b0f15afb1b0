"""Dialogs of a review: exclusion, reason, and scale of an image."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QDoubleSpinBox,
    QHBoxLayout,
    QVBoxLayout,
    QWidget,
)

from raterscope.widgets.dialogs.parts import add_buttons
from raterscope.widgets.panels.exclusion_panel import COMMON_REASONS, ExclusionPanel, ReasonField
from raterscope.widgets.parts import plain_label
from raterscope.widgets.text_size import set_lengths

__all__ = [
    "HALF",
    "UNITS",
    "WEIGHTS",
    "ExclusionDialog",
    "ReasonDialog",
    "ScaleDialog",
]


HALF = 0.5
WEIGHTS = (0.75, HALF, 0.25, 0.1)
"""Weights offered for down-weighting."""


class ExclusionDialog(QDialog):
    """Dialog around the exclusion `panel`; open it with ``open()``; accepted once there is a reason.

    Parameters
    ----------
    annotator : str
        Name of the annotator to exclude or down-weight.
    weight : float or None
        Initial weight; None for exclusion.
    """

    def __init__(self, annotator: str, weight: float | None = None, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Exclude or down-weight an annotator")
        set_lengths(self, minimumWidth=480, minimumHeight=460)
        self.reason = ""
        self.panel = ExclusionPanel(COMMON_REASONS, marks="clicks", answers="decisions", weights=WEIGHTS)
        self.panel.set_weight(weight)
        self.panel.exclude_key.hide()
        self.panel.set_who(annotator)
        column = QVBoxLayout(self)
        column.setContentsMargins(4, 8, 4, 8)
        column.addWidget(self.panel)
        self.panel.decided.connect(self._on_decided)
        self.panel.cancelled.connect(self._on_cancelled)

    def _on_decided(self, reason: str) -> None:
        self.reason = reason
        self.accept()

    def _on_cancelled(self) -> None:
        if self.panel.state != "working":
            self.reject()


class ReasonDialog(QDialog):
    """Dialog that asks for the reason of a decision; open it with ``open()`` and read `reason` when accepted.

    Parameters
    ----------
    annotator : str
        Name of the subject.
    reasons : sequence of str
        Offered on the keys Alt+1, Alt+2 ...
    act, what : str
        Action and its object: "Exclude" and "an annotator".
    hint : str
        Consequence in one sentence.
    """

    def __init__(
        self,
        annotator: str,
        reasons: Sequence[str] = COMMON_REASONS,
        parent: QWidget | None = None,
        *,
        act: str = "Exclude",
        hint: str = "The marks stay in the study but do not count in fusions.",
        what: str = "an annotator",
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(f"{act} {what}")
        set_lengths(self, minimumWidth=380)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 16, 16, 16)
        column.setSpacing(8)
        column.addWidget(plain_label(f"{act} {annotator}", "title", wrap=True))
        column.addWidget(plain_label(hint, "second", wrap=True))
        column.addSpacing(4)
        self._field = ReasonField(reasons)
        self.buttons, self.words = self._field.buttons, self._field.words
        column.addWidget(self._field)
        column.addSpacing(8)
        self.exclude = add_buttons(self, column, act)
        self.exclude.setEnabled(False)
        self._field.changed.connect(self.exclude.setEnabled)
        self.words.setFocus()

    @property
    def reason(self) -> str:
        """The reason given."""
        return self._field.reason


UNITS = {"nm": 1e-3, "µm": 1.0, "mm": 1e3}
"""Micrometres per unit."""


class ScaleDialog(QDialog):
    """Dialog for a length; open it with ``open()`` and read `length` and `everywhere` when accepted.

    Parameters
    ----------
    pixels : float
        Length of the line.
    images : int
        Number of images in the study.
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
        """The length in micrometres."""
        return self.number.value() * UNITS[self.unit.currentText()]

    @property
    def everywhere(self) -> bool:
        """True if the scale applies to all images."""
        return self.all_images.isChecked()

    def _tell(self) -> None:
        known = self.length > 0
        self.accepting.setEnabled(known)
        self._said.setText(f"A pixel is {self.length / self._pixels:.4g} µm." if known else " ")
