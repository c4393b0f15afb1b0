"""Rows, columns and stacks of widgets, each made by one call, and contents made when they are shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QLayout, QStackedWidget, QVBoxLayout, QWidget


@dataclass(frozen=True)
class Stretch:
    """Empty space that grows by a factor."""

    factor: int = 1


STRETCH = Stretch()

Part = (
    QWidget | QLayout | int | Stretch | tuple[QWidget | QLayout, int] | tuple[QWidget, int, Qt.AlignmentFlag]
)
"""A widget or layout, alone or with stretch and alignment; pixels of empty space; or a stretch."""
Margins = tuple[int, int, int, int]
NONE: Margins = (0, 0, 0, 0)


def vertical(
    *parts: Part, inside: QWidget | None = None, margins: Margins | None = NONE, spacing: int | None = 0
) -> QVBoxLayout:
    """Put parts below each other, in a widget if there is one; None for margins or spacing: the style's."""
    layout = QVBoxLayout() if inside is None else QVBoxLayout(inside)
    _fill(layout, parts, margins, spacing)
    return layout


def horizontal(
    *parts: Part, inside: QWidget | None = None, margins: Margins | None = NONE, spacing: int | None = 0
) -> QHBoxLayout:
    """Put parts beside each other, in a widget if there is one; None for margins or spacing: the style's."""
    layout = QHBoxLayout() if inside is None else QHBoxLayout(inside)
    _fill(layout, parts, margins, spacing)
    return layout


def stacked(*pages: QWidget) -> QStackedWidget:
    """Put pages behind each other; the first is shown."""
    stack = QStackedWidget()
    for page in pages:
        stack.addWidget(page)
    return stack


def _fill(layout: QBoxLayout, parts: tuple[Part, ...], margins: Margins | None, spacing: int | None) -> None:
    if margins is not None:
        layout.setContentsMargins(*margins)
    if spacing is not None:
        layout.setSpacing(spacing)
    for part in parts:
        if isinstance(part, Stretch):
            layout.addStretch(part.factor)
        elif isinstance(part, int):
            layout.addSpacing(part)
        elif isinstance(part, QWidget):
            layout.addWidget(part)
        elif isinstance(part, QLayout):
            layout.addLayout(part)
        elif isinstance(part[0], QLayout):
            layout.addLayout(part[0], part[1])
        else:
            layout.addWidget(part[0], *part[1:])


class LateContent(QObject):
    """Fills a widget at once where it is visible, else when it is shown; only the last request counts.

    For contents that take long and change often, in a tab that is mostly hidden.
    """

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self._widget = widget
        self._fill: Callable[[], object] | None = None
        widget.installEventFilter(self)

    def request(self, fill: Callable[[], object]) -> None:
        """Call a function that fills the widget, in place of one that waits."""
        self._fill = fill
        if self._widget.isVisible():
            self._run()

    def cancel(self) -> None:
        """Forget the function that waits."""
        self._fill = None

    def eventFilter(self, _widget: QObject, event: QEvent) -> bool:
        """Fill the widget before its first picture."""
        if event.type() == QEvent.Type.Show:
            self._run()
        return False

    def _run(self) -> None:
        fill, self._fill = self._fill, None
        if fill is not None:
            fill()
