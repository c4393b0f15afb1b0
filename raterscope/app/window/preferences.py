"""Preferences kept between sessions: layout, recent studies, theme, text size. Never the work itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PySide6.QtCore import QByteArray, QObject, QSettings
from PySide6.QtWidgets import QApplication

from raterscope.widgets import text_size, theme

__all__ = [
    "USUAL_PERCENT",
    "SystemThemeFollower",
    "apply_chosen_theme",
    "change_text_size",
    "chosen_theme",
    "folder",
    "is_on",
    "recall",
    "recent_studies",
    "remember",
    "remember_recent",
    "text_percent",
]


RECENT_STUDIES = 10
USUAL_PERCENT = 100
LONGEST_PERCENT = 3


def _settings() -> QSettings:
    return QSettings(QSettings.Format.IniFormat, QSettings.Scope.UserScope, "Raterscope", "Raterscope")


def folder() -> Path:
    """Give the folder in which it is remembered."""
    return Path(_settings().fileName()).parent


def remember(key: str, value: Any) -> None:
    """Keep a value under a key."""
    _settings().setValue(key, value)


def recall(key: str) -> QByteArray | None:
    """Give back a window's or splitter's state, or None."""
    value = _settings().value(key)
    return value if isinstance(value, QByteArray) else None


def is_on(key: str) -> bool:
    """Tell whether what was kept under a key is True."""
    return str(_settings().value(key)).lower() == "true"


def recent_studies() -> tuple[Path, ...]:
    """Give the studies that were opened lately, be they still there or not, the last one first."""
    value = _settings().value("recent")
    names = value if isinstance(value, list) else [value]
    return tuple(Path(name) for name in names if isinstance(name, str) and name)


def remember_recent(path: Path) -> None:
    """Put a study at the head of the recent ones."""
    others = [str(other) for other in recent_studies() if other != path]
    _settings().setValue("recent", [str(path), *others][:RECENT_STUDIES])


def chosen_theme() -> str:
    """Give the look that was chosen: dark, light, or system."""
    value = _settings().value("look")
    return value if value in ("dark", "light") else "system"


def text_percent() -> int:
    """Give how large the interface's text was chosen, in percent of the usual size."""
    value = str(_settings().value("text_percent"))
    return int(value) if value.isdecimal() and len(value) <= LONGEST_PERCENT else USUAL_PERCENT


STEP = 10
"""Between two sizes of the text, in percent of the usual one."""


def apply_chosen_theme(name: str) -> None:
    """Draw everything dark, light, or as the system is, its text as large as was chosen last."""
    application = QApplication.instance()
    if not isinstance(application, QApplication):
        raise RuntimeError("there is no application to draw")
    text_size.set_text_size(text_percent() / 100)
    chosen = {"dark": theme.DARK, "light": theme.LIGHT}.get(name) or theme.system_theme(application)
    theme.apply_theme(application, chosen)


def change_text_size(steps: int) -> int:
    """Make the interface's text larger, by negative steps smaller, by 0 of the usual size, and remember it.

    Returns
    -------
    percent : int
        How large it is now.
    """
    percent = USUAL_PERCENT if not steps else text_percent() + steps * STEP
    percent = round(100 * min(max(percent / 100, text_size.SMALLEST), text_size.LARGEST))
    remember("text_percent", percent)
    apply_chosen_theme(chosen_theme())
    return percent


class SystemThemeFollower(QObject):
    """Change with the system's colour scheme while the look is the system's."""

    def __init__(self, application: QApplication) -> None:
        super().__init__(application)
        application.styleHints().colorSchemeChanged.connect(self._on_changed)

    def _on_changed(self) -> None:
        if chosen_theme() == "system":
            apply_chosen_theme("system")
