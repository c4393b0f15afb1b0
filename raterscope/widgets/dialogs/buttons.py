"""Buttons at the bottom of a dialog: one that accepts, and Cancel."""

from __future__ import annotations

from PySide6.QtWidgets import QBoxLayout, QDialog, QDialogButtonBox, QPushButton

from raterscope.widgets import theme

__all__ = ["add_buttons"]


def add_buttons(dialog: QDialog, column: QBoxLayout, words: str) -> QPushButton:
    """Add the two buttons below a dialog's content.

    Parameters
    ----------
    dialog : QDialog
    column : QBoxLayout
        The dialog's layout.
    words : str
        Of the button that accepts.

    Returns
    -------
    QPushButton
        The button that accepts; Return presses it.
    """
    box = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
    accepting = box.addButton(words, QDialogButtonBox.ButtonRole.AcceptRole)
    theme.set_role(accepting, "primary")
    box.accepted.connect(dialog.accept)
    box.rejected.connect(dialog.reject)
    column.addWidget(box)
    # Which of them Return presses takes effect only for buttons that are in the dialog.
    box.button(QDialogButtonBox.StandardButton.Cancel).setAutoDefault(False)
    accepting.setDefault(True)
    return accepting
