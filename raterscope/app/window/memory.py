"""What the window remembers from day to day: places, sizes, recent studies. Never the work itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PySide6.QtCore import QByteArray, QSettings

__all__ = [
    "USUAL_PERCENT",
    "folder",
    "is_on",
    "look",
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


def look() -> str:
    """Give the look that was chosen: dark, light, or system."""
    value = _settings().value("look")
    return value if value in ("dark", "light") else "system"


def text_percent() -> int:
    """Give how large the interface's text was chosen, in percent of the usual size."""
    value = str(_settings().value("text_percent"))
    return int(value) if value.isdecimal() and len(value) <= LONGEST_PERCENT else USUAL_PERCENT
