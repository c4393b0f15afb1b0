"""Leaving an annotator of clicks out: what that would change is seen before a reason is asked for."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QVBoxLayout, QWidget

from raterscope.widgets.dialogs.reason import COMMON_REASONS
from raterscope.widgets.panels.exclusion_panel import ExclusionPanel

__all__ = ["ExclusionDialog"]


class ExclusionDialog(QDialog):
    """Holds the `panel` that shows and asks; open it with ``open()``; accepted once there is a reason.

    Parameters
    ----------
    annotator : str
        Name of who is to be left out.
    """

    def __init__(self, annotator: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Exclude an annotator")
        self.setMinimumSize(480, 460)
        self.reason = ""
        self.panel = ExclusionPanel(COMMON_REASONS, marks="clicks", answers="decisions")
        self.panel.exclude_key.hide()
        self.panel.set_who(annotator)
        column = QVBoxLayout(self)
        column.setContentsMargins(4, 8, 4, 8)
        column.addWidget(self.panel)
        self.panel.excluded.connect(self._on_excluded)
        self.panel.cancelled.connect(self._on_cancelled)

    def _on_excluded(self, reason: str) -> None:
        self.reason = reason
        self.accept()

    def _on_cancelled(self) -> None:
        if self.panel.state != "working":
            self.reject()
