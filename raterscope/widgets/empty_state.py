"""What an empty place says: what belongs here, and the action that fills it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from raterscope.widgets import theme
from raterscope.widgets.parts import plain_label
from raterscope.widgets.text_size import set_lengths

__all__ = ["EmptyState"]

WIDTH = 460


class EmptyState(QWidget):
    """A title, a sentence, and buttons; the first button is the one to press.

    Parameters
    ----------
    title, sentence : str
    actions : sequence of (str, callable)
        Words of a button and what it does.
    """

    def __init__(
        self,
        title: str,
        sentence: str,
        actions: Sequence[tuple[str, Callable[[], object]]] = (),
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setAccessibleName(title)
        heading = plain_label(title, "title")
        words = plain_label(sentence, "second", wrap=True)
        for label in (heading, words):
            label.setAlignment(Qt.AlignmentFlag.AlignCenter)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.addStretch(1)
        self.buttons: list[QPushButton] = []
        for word, action in actions:
            button = QPushButton(word)
            button.setAutoDefault(True)  # Return presses it, as in a dialog
            button.clicked.connect(action)
            if not self.buttons:
                theme.set_role(button, "primary")
            self.buttons.append(button)
            buttons.addWidget(button)
        if self.buttons:
            self.setFocusProxy(self.buttons[0])
        buttons.addStretch(1)
        block = QWidget()
        set_lengths(block, maximumWidth=WIDTH)
        column = QVBoxLayout(block)
        column.setSpacing(12)
        column.addStretch(2)
        for part in (heading, words):
            column.addWidget(part)
        column.addSpacing(4)
        column.addLayout(buttons)
        column.addStretch(3)
        row = QHBoxLayout(self)
        row.addStretch(1)
        row.addWidget(block, 100)
        row.addStretch(1)
