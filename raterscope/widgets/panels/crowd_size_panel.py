"""Methods against the number of annotators: which crowds are drawn, and the plot."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QScrollArea, QVBoxLayout, QWidget

from raterscope.algorithms.clicks.crowd_size import CrowdSizeCurve, CrowdSizeSettings
from raterscope.widgets import theme
from raterscope.widgets.panels.settings_form import SettingsForm
from raterscope.widgets.plots.crowd_size_plot import CrowdSizePlot
from raterscope.widgets.plots.mode_switch import ModeSwitch
from raterscope.widgets.text_size import set_lengths

__all__ = ["CrowdSizePanel"]

SCOPES = {
    "one": ("this image", "The image on screen alone"),
    "all": ("all images", "All images with ground truth"),
}
FORM_WIDTH = 272


class CrowdSizePanel(QWidget):
    """A form of the crowds with a button, and beside it what was measured.

    Signals
    -------
    requested : CrowdSizeSettings, str
        Settings, and "one" for the image on screen or "all".
    """

    requested = Signal(object, str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.set_role(self, "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.form = SettingsForm(CrowdSizeSettings)
        self.scope = ModeSwitch(SCOPES)
        self.button = QPushButton("Measure")
        self.button.setToolTip("Draw crowds at random and measure methods against the ground truth")
        self.plot = CrowdSizePlot()
        self.facts = QLabel()
        self.facts.setWordWrap(True)
        self.facts.setTextFormat(Qt.TextFormat.PlainText)
        theme.set_role(self.facts, "hint")
        self.facts.hide()
        top = QHBoxLayout()
        top.setSpacing(8)
        top.addWidget(self.button)
        top.addWidget(self.scope)
        top.addStretch(1)
        inner = QWidget()
        theme.set_role(inner, "panel")
        inner.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        column = QVBoxLayout(inner)
        column.setContentsMargins(12, 8, 8, 8)
        column.setSpacing(8)
        column.addLayout(top)
        column.addWidget(self.form)
        column.addWidget(self.facts)
        column.addStretch(1)
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setFrameShape(QScrollArea.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setWidget(inner)
        set_lengths(area, width=FORM_WIDTH)
        whole = QHBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(0)
        whole.addWidget(area)
        whole.addWidget(self.plot, 1)
        self.setFocusProxy(self.button)
        self.button.clicked.connect(self._on_clicked)
        self.form.changed.connect(self._on_changed)
        self._busy = False

    def set_busy(self, busy: bool) -> None:
        """Tell whether crowds are being measured."""
        self._busy = busy
        self.button.setText("Measuring..." if busy else "Measure")
        self._on_changed()

    def set_curves(self, curves: Sequence[CrowdSizeCurve], facts: str = "") -> None:
        """Show what was measured, and when and how in a sentence."""
        self.plot.set_curves(curves)
        self.facts.setText(facts)
        self.facts.setVisible(bool(facts))

    def _on_changed(self) -> None:
        self.button.setEnabled(not self._busy and not self.form.error())

    def _on_clicked(self) -> None:
        self.requested.emit(self.form.settings(), self.scope.mode)
