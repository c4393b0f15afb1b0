"""Bar under the top bar: what is wrong with the study, and buttons for what can be done about it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from raterscope.widgets import theme
from raterscope.widgets.parts import plain_label

__all__ = ["ActionBar"]


class ActionBar(QWidget):
    """Hidden until there is something to say; the first button is the recommended one.

    Parameters
    ----------
    title : str
    actions : sequence of str
        The buttons' words.
    parent : QWidget, optional
    """

    def __init__(self, title: str, actions: Sequence[str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("noticeBar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        tone = plain_label(title)
        tone.setObjectName("noticeTone")
        tone.setProperty("tone", "error")
        self.words = plain_label(wrap=True, selectable=True)
        self.buttons = [QPushButton(words) for words in actions]
        theme.set_role(self.buttons[0], "primary")
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 6, 12, 6)
        row.setSpacing(8)
        row.addWidget(tone)
        row.addWidget(self.words, 1)
        for button in self.buttons:
            button.setAutoDefault(True)  # Return presses it, as in a dialog
            row.addWidget(button)
        self.hide()
