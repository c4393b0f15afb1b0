"""The look of everything: dark, light, or as the system is, its text as large as is asked for."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication

from raterscope.app.window import memory
from raterscope.widgets import text_size, theme

__all__ = ["FollowSystem", "apply_look", "change_text_size"]

STEP = 10
"""Between two sizes of the text, in percent of the usual one."""


def apply_look(name: str) -> None:
    """Draw everything dark, light, or as the system is, its text as large as was chosen last."""
    application = QApplication.instance()
    if not isinstance(application, QApplication):
        raise RuntimeError("there is no application to draw")
    text_size.set_text_size(memory.text_percent() / 100)
    chosen = {"dark": theme.DARK, "light": theme.LIGHT}.get(name) or theme.system_theme(application)
    theme.apply_theme(application, chosen)


def change_text_size(steps: int) -> int:
    """Make the interface's text larger, by negative steps smaller, by 0 of the usual size, and remember it.

    Returns
    -------
    percent : int
        How large it is now.
    """
    percent = memory.USUAL_PERCENT if not steps else memory.text_percent() + steps * STEP
    percent = round(100 * min(max(percent / 100, text_size.SMALLEST), text_size.LARGEST))
    memory.remember("text_percent", percent)
    apply_look(memory.look())
    return percent


class FollowSystem(QObject):
    """Change with the system's colour scheme while the look is the system's."""

    def __init__(self, application: QApplication) -> None:
        super().__init__(application)
        application.styleHints().colorSchemeChanged.connect(self._on_changed)

    def _on_changed(self) -> None:
        if memory.look() == "system":
            apply_look("system")
