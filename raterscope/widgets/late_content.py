"""Contents of a hidden widget that are made when it is shown."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QWidget


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
