"""Why something is done: a few common reasons by key, or one's own words."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLineEdit, QPushButton, QVBoxLayout, QWidget

from raterscope.widgets.parts import plain_label

__all__ = ["COMMON_REASONS", "ReasonField"]

COMMON_REASONS = ("clicks everywhere", "marks very little", "misunderstood the task", "a test account")


class ReasonField(QWidget):
    """A few common reasons, each on a key, and a line for one's own words.

    Parameters
    ----------
    reasons : sequence of str
        Offered on the keys Alt+1, Alt+2 ...

    Signals
    -------
    changed : bool
        Whether there is a reason now.
    """

    changed = Signal(bool)

    def __init__(self, reasons: Sequence[str] = COMMON_REASONS, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addWidget(plain_label("REASON", "caption"))
        self.buttons: list[QPushButton] = []
        for place, reason in enumerate(reasons, start=1):
            button = QPushButton(f"Alt+{place}   {reason}")
            button.setShortcut(f"Alt+{place}")
            button.setAccessibleName(reason)
            button.setAutoDefault(False)
            button.setProperty("reason", reason)
            button.setStyleSheet("text-align: left;")
            button.clicked.connect(self._on_common)
            self.buttons.append(button)
            column.addWidget(button)
        self.words = QLineEdit()
        self.words.setPlaceholderText("or enter another reason")
        self.words.setMaxLength(200)
        self.words.setAccessibleName("Reason")
        self.words.textChanged.connect(self._on_words)
        column.addWidget(self.words)
        self.setFocusProxy(self.words)

    @property
    def reason(self) -> str:
        """The reason given."""
        return self.words.text().strip()

    def _on_common(self) -> None:
        self.words.setText(str(self.sender().property("reason")))
        self.words.setFocus()

    def _on_words(self, text: str) -> None:
        self.changed.emit(bool(text.strip()))
