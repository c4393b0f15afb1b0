"""The look of everything: dark, light, or as the system is."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication

from raterscope.app import memory
from raterscope.widgets import theme

__all__ = ["FollowSystem", "apply_look"]


def apply_look(name: str) -> None:
    """Draw everything dark, light, or as the system is."""
    application = QApplication.instance()
    if not isinstance(application, QApplication):
        raise RuntimeError("there is no application to draw")
    chosen = {"dark": theme.DARK, "light": theme.LIGHT}.get(name) or theme.system_theme(application)
    theme.apply_theme(application, chosen)


class FollowSystem(QObject):
    """Change with the system's colour scheme while the look is the system's."""

    def __init__(self, application: QApplication) -> None:
        super().__init__(application)
        application.styleHints().colorSchemeChanged.connect(self._on_changed)

    def _on_changed(self) -> None:
        if memory.look() == "system":
            apply_look("system")
