"""The sheet of keys that F1 shows."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QHBoxLayout, QVBoxLayout, QWidget

from raterscope.widgets.key_cap import KeyButton
from raterscope.widgets.parts import plain_label

__all__ = ["KEYS", "KeySheet"]

KEYS = (
    (
        "Review",
        (
            ("Tab", "next disputed spot"),
            ("Shift+Tab", "previous disputed spot"),
            ("A", "accept"),
            ("R", "reject"),
            ("S", "skip"),
            ("N", "add a spot that all missed"),
            ("M", "move the spot"),
            ("Ctrl+Z", "undo"),
            ("Ctrl+Shift+Z", "redo"),
        ),
    ),
    (
        "Look",
        (
            ("PgDown", "next image"),
            ("PgUp", "previous image"),
            ("Arrows", "pan"),
            ("+", "zoom in"),
            ("-", "zoom out"),
            ("0", "whole image"),
            ("Space", "no marks while held"),
            ("1 ... 9", "one annotator alone"),
            ("F6", "next region of the window"),
            ("F11", "full screen"),
        ),
    ),
    (
        "In the annotator table",
        (
            ("Return", "alone, and all again"),
            ("Space", "hide, show"),
            ("Delete", "exclude, include"),
        ),
    ),
    (
        "Study",
        (
            ("F5", "fuse"),
            ("Ctrl+N", "new study"),
            ("Ctrl+O", "open a study"),
            ("Ctrl+I", "import files"),
            ("Ctrl+W", "close the study"),
            ("F1", "these keys"),
            ("Ctrl+Q", "quit"),
        ),
    ),
)


class KeySheet(QDialog):
    """Every key and what it does, in columns."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("The keys")
        row = QHBoxLayout(self)
        row.setContentsMargins(24, 20, 24, 20)
        row.setSpacing(32)
        for title, keys in KEYS:
            column = QVBoxLayout()
            column.setSpacing(8)
            column.addWidget(plain_label(title.upper(), "caption"))
            for key, words in keys:
                button = KeyButton(key, words)
                button.setFocusPolicy(Qt.FocusPolicy.NoFocus)
                button.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
                column.addWidget(button)
            column.addStretch(1)
            row.addLayout(column)
