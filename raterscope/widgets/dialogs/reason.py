"""Why an annotator is excluded: a few common reasons by key, or one's own words."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QLineEdit, QPushButton, QVBoxLayout, QWidget

from raterscope.widgets import theme
from raterscope.widgets.parts import plain_label
from raterscope.widgets.text_size import set_lengths

__all__ = ["COMMON_REASONS", "ReasonDialog", "ReasonField"]

COMMON_REASONS = ("clicks everywhere", "hardly marks anything", "misunderstood the task", "a test account")


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
        self.words.setPlaceholderText("or in your own words")
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


class ReasonDialog(QDialog):
    """Ask for the reason of an act; open it with ``open()`` and read `reason` when accepted.

    Parameters
    ----------
    annotator : str
        Name of who, or of what, it is done to.
    reasons : sequence of str
        Offered on the keys Alt+1, Alt+2 ...
    act, what : str
        What is done, and to what: "Exclude" and "an annotator".
    hint : str
        What comes of it, in a sentence.
    """

    def __init__(
        self,
        annotator: str,
        reasons: Sequence[str] = COMMON_REASONS,
        parent: QWidget | None = None,
        *,
        act: str = "Exclude",
        hint: str = "The marks stay in the study; the next fusion leaves them out.",
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
        box = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        self.exclude = box.addButton(act, QDialogButtonBox.ButtonRole.AcceptRole)
        theme.set_role(self.exclude, "primary")
        box.accepted.connect(self.accept)
        box.rejected.connect(self.reject)
        column.addSpacing(8)
        column.addWidget(box)
        # Only now, in their place, do they heed which of them Return presses.
        box.button(QDialogButtonBox.StandardButton.Cancel).setAutoDefault(False)
        self.exclude.setDefault(True)
        self.exclude.setEnabled(False)
        self._field.changed.connect(self.exclude.setEnabled)
        self.words.setFocus()

    @property
    def reason(self) -> str:
        """The reason given."""
        return self._field.reason
