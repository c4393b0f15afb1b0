"""One question in a box over the window, whose safe answer is what Esc and Return give."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox, QWidget

__all__ = ["ask"]


def ask(
    window: QWidget,
    title: str,
    question: str,
    more: str,
    act: str,
    stay: str,
    then: Callable[[], object],
    otherwise: Callable[[], object] | None = None,
) -> QMessageBox:
    """Ask something, while all behind goes on.

    Parameters
    ----------
    window : QWidget
    title, question, more : str
        The question, and what there is to know for the answer.
    act, stay : str
        The buttons; the second is the safe answer.
    then, otherwise : callable
        Called when the first was pressed, and when not.
    """
    box = QMessageBox(window)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setWindowTitle(title)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setText(question)
    box.setInformativeText(more)
    box.addButton(act, QMessageBox.ButtonRole.AcceptRole)
    safe = box.addButton(stay, QMessageBox.ButtonRole.RejectRole)
    box.setDefaultButton(safe)
    box.setEscapeButton(safe)
    box.accepted.connect(then)
    if otherwise is not None:
        box.rejected.connect(otherwise)
    box.open()
    return box
