"""How far to trust a result: a calibration plot, and what it comes to in a few sentences."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QScrollArea, QWidget

from raterscope.widgets import theme
from raterscope.widgets.parts import plain_label
from raterscope.widgets.plots.calibration_plot import CalibrationLine, CalibrationPlot

__all__ = ["TrustPanel"]


class TrustPanel(QWidget):
    """A plot beside the sentences, which scroll.

    Parameters
    ----------
    axes : tuple of str
        What the plot has across and up.
    nothing : str
        What belongs here.
    """

    def __init__(self, axes: tuple[str, str], nothing: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.set_role(self, "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.plot = CalibrationPlot(axes=axes, nothing=nothing)
        self.plot.header.set_title("How far to trust this")
        self._words = plain_label("", "second", wrap=True, selectable=True)
        self._words.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._words.setContentsMargins(4, 10, 12, 8)
        self._scroll = QScrollArea()
        self._scroll.setWidgetResizable(True)
        self._scroll.setFrameShape(QScrollArea.Shape.NoFrame)
        self._scroll.setAccessibleName("How far to trust this")
        self._scroll.setWidget(self._words)
        self._scroll.hide()
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.plot, 1)
        row.addWidget(self._scroll, 1)

    @property
    def words(self) -> str:
        """The sentences shown."""
        return self._words.text()

    def show_trust(self, line: CalibrationLine | None, words: str) -> None:
        """Show a calibration and what it comes to; without either, what belongs here."""
        self.plot.set_lines(() if line is None else (line,))
        self._words.setText(words)
        self._scroll.setVisible(bool(words))
