"""What can be read off a widget, for tests."""

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QLabel

__all__ = ["visible_words"]


def visible_words(widget) -> str:
    """Give the texts of all labels in sight, a line each."""
    QCoreApplication.sendPostedEvents()  # what was added to a layout is shown by an event
    return "\n".join(label.text() for label in widget.findChildren(QLabel) if label.isVisible())
