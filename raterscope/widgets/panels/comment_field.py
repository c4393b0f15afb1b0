"""A line below the evidence with the comment on what is selected."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent
from PySide6.QtWidgets import QLineEdit

from raterscope.widgets.parts import keeps_key

LONGEST = 1000


class CommentField(QLineEdit):
    """Shows a comment, and edits it; hidden while there is none.

    Return and leaving the field store the text, Esc restores the comment.
    """

    stored = Signal(str)  # the changed text; empty to remove the comment
    left = Signal()  # the field was left by key

    def __init__(self) -> None:
        super().__init__()
        self.setMaxLength(LONGEST)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setPlaceholderText("Comment (Return saves, Esc cancels)")
        self.setAccessibleName("Comment")
        self._comment = ""
        self.hide()

    def set_comment(self, text: str) -> None:
        """Show a comment; without one, hide the field."""
        self._comment = text
        self.setText(text)
        self.setCursorPosition(0)
        self.setToolTip(text)
        self.setVisible(bool(text))

    def begin(self) -> None:
        """Edit the comment."""
        self.show()
        self.setFocus()
        self.selectAll()

    def event(self, event: QEvent) -> bool:
        """Keep Esc from the workspace."""
        return keeps_key(event, Qt.Key.Key_Escape) or super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Store the text or restore the comment."""
        if event.key() == Qt.Key.Key_Escape:
            self.setText(self._comment)
        elif event.key() not in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            super().keyPressEvent(event)
            return
        self.left.emit()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Store a changed text."""
        super().focusOutEvent(event)
        text = self.text().strip()
        if text != self._comment:
            self._comment = text
            self.stored.emit(text)
        self.setVisible(bool(text))
