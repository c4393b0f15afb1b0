"""A form of settings with a button, and beside it what was measured with them."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QScrollArea, QVBoxLayout, QWidget

from raterscope.algorithms.settings import Settings
from raterscope.text.numbers import percent
from raterscope.widgets import theme
from raterscope.widgets.panels.settings_form import SettingsForm
from raterscope.widgets.parts import plain_label
from raterscope.widgets.text_size import set_lengths

__all__ = ["FormBesidePlot", "scrolled"]

FORM_WIDTH = 272


class FormBesidePlot(QWidget):
    """A form, a button that measures, and a plot.

    Parameters
    ----------
    settings : type of Settings
    plot : QWidget
    tip : str
        What the button does.
    beside : QWidget, optional
        Stands beside the button.

    Signals
    -------
    measure_wanted
    cancelled
    """

    measure_wanted = Signal()
    cancelled = Signal()

    def __init__(
        self,
        settings: type[Settings],
        plot: QWidget,
        tip: str,
        beside: QWidget | None = None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        theme.set_role(self, "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.form = SettingsForm(settings)
        self.button, self.cancel = QPushButton("Measure"), QPushButton("Cancel")
        self.button.setToolTip(tip)
        self.cancel.hide()
        self.facts = plain_label("", "hint", wrap=True)
        self.facts.hide()
        top = QHBoxLayout()
        top.setSpacing(8)
        for widget in (self.button, self.cancel, beside):
            if widget is not None:
                top.addWidget(widget)
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
        whole.addWidget(plot, 1)
        self.setFocusProxy(self.button)
        self.button.clicked.connect(self.measure_wanted)
        self.cancel.clicked.connect(self.cancelled)
        self.form.changed.connect(self._on_changed)
        self._busy = False

    def set_busy(self, busy: bool, fraction: float = 0.0) -> None:
        """Tell whether something is being measured, and how far that is."""
        self._busy = busy
        self.cancel.setVisible(busy)
        self.button.setText(f"Measuring {percent(fraction)}" if busy else "Measure")
        self._on_changed()

    def set_facts(self, words: str) -> None:
        """Say when and how what is shown was measured."""
        self.facts.setText(words)
        self.facts.setVisible(bool(words))

    def _on_changed(self) -> None:
        self.button.setEnabled(not self._busy and not self.form.error())


def scrolled(panel: FormBesidePlot, name: str) -> QScrollArea:
    """Make a page of a panel, whose form and plot may be wider than what the other pages need."""
    page = QScrollArea()
    page.setWidgetResizable(True)
    page.setFrameShape(QScrollArea.Shape.NoFrame)
    page.setAccessibleName(name)
    page.setWidget(panel)
    return page
