"""A menu that keeps the keys while it is open, and what its actions call."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QMenu

__all__ = ["Menu", "without_checked"]


class Menu(QMenu):
    """A letter or digit chooses in it, and is no shortcut of what lies beneath.

    The keyboard stays with what had it when a menu opens, so that its shortcuts would answer first: A would
    accept what is on screen, and no entry could be chosen by its digit.
    """

    def branch(self, title: str) -> Menu:
        """Add a menu that opens from an entry of this one."""
        menu = Menu(title, self)
        self.addMenu(menu)
        return menu

    def event(self, event: QEvent) -> bool:
        """Take every key as one of the menu's."""
        if event.type() == QEvent.Type.ShortcutOverride:
            event.accept()
            return True
        return super().event(event)


def without_checked(slot: Callable[[], object]) -> Callable[[bool], object]:
    """Let an action call a slot that does not ask whether it is checked."""

    def call(_checked: bool) -> object:
        return slot()

    return call
