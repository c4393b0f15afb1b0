"""How far to trust a result: a calibration plot, and what it comes to in a few sentences."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from raterscope.figures.evaluation import CalibrationLine
from raterscope.widgets import theme
from raterscope.widgets.figures.evaluation_plots import CalibrationPlot
from raterscope.widgets.parts import Header, plain_label

__all__ = ["TrustPanel"]


class TrustPanel(QWidget):
    """A plot beside the sentences, which scroll.

    Parameters
    ----------
    axes : tuple of str
        What the plot has across and up.
    nothing : str
        What belongs here.

    Signals
    -------
    seen
        The panel came in sight.
    """

    seen = Signal()

    def __init__(self, axes: tuple[str, str], nothing: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.set_role(self, "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.plot = CalibrationPlot(axes=axes, nothing=nothing)
        self._words = plain_label("", "second", wrap=True, selectable=True)
        self._words.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._words.setContentsMargins(0, 2, 10, 4)
        self._scroll = QScrollArea()
        self._scroll.setWidgetResizable(True)
        self._scroll.setFrameShape(QScrollArea.Shape.NoFrame)
        self._scroll.setAccessibleName("How far to trust this")
        self._scroll.setWidget(self._words)
        self._beside = QWidget()
        column = QVBoxLayout(self._beside)
        column.setContentsMargins(4, 8, 4, 4)
        column.setSpacing(2)
        column.addWidget(Header("How far to trust this"))
        column.addWidget(self._scroll, 1)
        self._beside.hide()
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.plot, 5)
        row.addWidget(self._beside, 4)

    @property
    def words(self) -> str:
        """The sentences shown."""
        return self._words.text()

    def show_trust(self, lines: Sequence[CalibrationLine], words: str) -> None:
        """Show calibrations and what they come to; without either, what belongs here."""
        self.plot.set_lines(lines)
        self.plot.setVisible(bool(lines) or not words)
        self._words.setText(words)
        self._beside.setVisible(bool(words))

    def showEvent(self, event: QShowEvent) -> None:
        """Say that the panel is in sight."""
        super().showEvent(event)
        self.seen.emit()
