"""Visible and accessible texts of widgets, for tests."""

from xml.etree import ElementTree

from PySide6.QtCore import QBuffer, QCoreApplication, Qt
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QLabel

__all__ = ["accessible_text", "accessible_texts", "painted_texts", "visible_words"]


def visible_words(widget) -> str:
    """Return the texts of all labels in sight, a line each."""
    QCoreApplication.sendPostedEvents()  # what was added to a layout is shown by an event
    return "\n".join(label.text() for label in widget.findChildren(QLabel) if label.isVisible())


def accessible_text(view, row: int) -> str:
    """Return what a screen reader says of a row of a list."""
    return view.model().index(row, 0).data(Qt.ItemDataRole.AccessibleTextRole)


def accessible_texts(view) -> list[str]:
    """Return what a screen reader says of every row of a list."""
    return [accessible_text(view, row) for row in range(view.model().rowCount())]


def painted_texts(view) -> set[str]:
    """Return the texts that a list paints in its visible lines, as elided."""
    buffer = QBuffer()
    generator = QSvgGenerator()
    generator.setOutputDevice(buffer)
    view.viewport().render(generator)
    elements = ElementTree.fromstring(buffer.data().data()).iter("{http://www.w3.org/2000/svg}text")
    return {(element.text or "").strip() for element in elements}
