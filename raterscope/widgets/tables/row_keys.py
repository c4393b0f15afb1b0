"""What the keys do in a table of people whose marks are drawn: alone, hidden, left out."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QAction, QKeyEvent
from PySide6.QtWidgets import QAbstractItemView

from raterscope.widgets.own_keys import OwnKeys

__all__ = ["RowKeys", "keys_in"]


def keys_in(where: str) -> OwnKeys:
    """Tell the keys of such a table."""
    alone, hide, leave_out = "show alone, show all", "hide, show", "exclude, restore"
    return OwnKeys(where, (("Return", alone), ("Space", hide), ("Delete", leave_out)))


class RowKeys(QObject):
    """Takes Return, Space and Delete in a table before the window does, while a row is chosen in it.

    Parameters
    ----------
    view : QAbstractItemView
    alone, hide, exclude : QAction
        What they do to the row.
    chosen : callable
        Whether there is one.
    """

    def __init__(
        self,
        view: QAbstractItemView,
        alone: QAction,
        hide: QAction,
        exclude: QAction,
        chosen: Callable[[], bool],
    ) -> None:
        super().__init__(view)
        self._chosen = chosen
        self._actions = {
            Qt.Key.Key_Return: alone,
            Qt.Key.Key_Enter: alone,
            Qt.Key.Key_Space: hide,
            Qt.Key.Key_Delete: exclude,
        }
        alone.setShortcut(Qt.Key.Key_Return)
        hide.setShortcut(Qt.Key.Key_Space)
        exclude.setShortcut(Qt.Key.Key_Delete)
        view.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Take the keys of the table before the window's."""
        if event.type() in (QEvent.Type.ShortcutOverride, QEvent.Type.KeyPress):
            assert isinstance(event, QKeyEvent)
            action = self._actions.get(Qt.Key(event.key()))
            plain = not event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
            if action is not None and plain and self._chosen():
                if event.type() == QEvent.Type.KeyPress:
                    action.trigger()
                event.accept()
                return True
        return super().eventFilter(watched, event)
