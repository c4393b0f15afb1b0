"""Leaving an annotator of clicks out, or counting less: what would change is seen before it is decided."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QVBoxLayout, QWidget

from raterscope.widgets.panels.exclusion_panel import ExclusionPanel
from raterscope.widgets.panels.reason_field import COMMON_REASONS
from raterscope.widgets.text_size import set_lengths

__all__ = ["HALF", "WEIGHTS", "ExclusionDialog"]

HALF = 0.5
WEIGHTS = (0.75, HALF, 0.25, 0.1)
"""As how much of one an annotator can be made to count."""


class ExclusionDialog(QDialog):
    """Holds the `panel` that shows and asks; open it with ``open()``; accepted once there is a reason.

    Parameters
    ----------
    annotator : str
        Name of who is to be left out, or to count less.
    weight : float or None
        What is thought of first; None for leaving out.
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
