"""Notes that stay in sight above a workspace as long as they hold, each with a tag."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from raterscope.widgets.parts import plain_label

__all__ = ["StandingNotes"]


class StandingNotes(QWidget):
    """A line a note: a tag in a word or two, and a sentence. Nobody dismisses them."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("standingNotes")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(12, 4, 12, 4)
        self._column.setSpacing(4)
        self._lines: dict[str, tuple[QWidget, QLabel]] = {}
        self.hide()

    def set_note(self, tag: str, words: str) -> None:
        """Show what is to be said under a tag, or with no words nothing."""
        if tag not in self._lines:
            if not words:
                return
            self._lines[tag] = self._line(tag)
        line, label = self._lines[tag]
        label.setText(words)
        line.setVisible(bool(words))
        line.setAccessibleName(f"{tag}: {words}" if words else "")
        self.setVisible(bool(self.notes()))

    def notes(self) -> dict[str, str]:
        """Give what is said, by tag."""
        return {tag: label.text() for tag, (_, label) in self._lines.items() if label.text()}

    def _line(self, tag: str) -> tuple[QWidget, QLabel]:
        line = QWidget()
        row = QHBoxLayout(line)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        name, words = plain_label(tag), plain_label("", wrap=True, selectable=True)
        name.setObjectName("standingTag")
        row.addWidget(name, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(words, 1)
        self._column.addWidget(line)
        return line, words
