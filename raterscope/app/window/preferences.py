"""Preferences kept between sessions: recent studies, theme, text size, names, and values by key."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QByteArray, QObject, QSettings, QTimer
from PySide6.QtWidgets import QApplication

from raterscope.app.kinds.registry import KINDS
from raterscope.app.program_files import CACHE, EXPERT
from raterscope.widgets import theme

if TYPE_CHECKING:
    from raterscope.app.jobs import Job
    from raterscope.widgets.dialogs.settings_dialog import ProgramSettings

RECENT_STUDIES = 10
USUAL_PERCENT = 100
LONGEST_PERCENT = 3

DRIVE_TIMEOUT_MS = 2000
"""Longest wait for a drive. A drive that does not answer is not checked again until it does."""


def cancel_after_timeout(job: Job) -> None:
    """Cancel a job that waits for a drive, unless it ends in time."""
    timer = QTimer(job, singleShot=True)
    timer.timeout.connect(job.cancel)
    timer.start(DRIVE_TIMEOUT_MS)


def _settings() -> QSettings:
    return QSettings(QSettings.Format.IniFormat, QSettings.Scope.UserScope, "Raterscope", "Raterscope")


def folder() -> Path:
    """Return the folder of the settings file."""
    return Path(_settings().fileName()).parent


def remember(key: str, value: Any) -> None:
    """Store a value under a key."""
    remember_all({key: value})


def remember_all(values: Mapping[str, Any]) -> None:
    """Store values under their keys, and wait for the disk once."""
    settings = _settings()
    for key, value in values.items():
        settings.setValue(key, value)


def recall(key: str) -> QByteArray | None:
    """Read the stored state of a window or splitter, or None."""
    value = _settings().value(key)
    return value if isinstance(value, QByteArray) else None


def recall_text(key: str) -> str:
    """Read a stored text; empty without one."""
    return str(_settings().value(key) or "")


def is_enabled(key: str) -> bool:
    """Return whether the value stored under a key is True."""
    return str(_settings().value(key)).lower() == "true"


def recent_studies() -> tuple[Path, ...]:
    """List the recent studies, the latest first. Some may no longer exist."""
    value = _settings().value("recent")
    names = value if isinstance(value, list) else [value]
    return tuple(Path(name) for name in names if isinstance(name, str) and name)


def remember_recent(path: Path) -> None:
    """Add a study to the recent ones."""
    older = [str(recent) for recent in recent_studies() if recent != path]
    _settings().setValue("recent", [str(path), *older][:RECENT_STUDIES])


def work_left() -> dict[str, tuple[float | None, str, str]]:
    """Read what was left to do in studies: the share decided, in words, and the day, by the study's path."""
    try:
        stored = json.loads(str(_settings().value("work_left") or "{}"))
        return {
            path: (None if share is None else min(max(float(share), 0.0), 1.0), str(words), str(day))
            for path, (share, words, day) in stored.items()
        }
    except (ValueError, TypeError, AttributeError):
        return {}


def remember_work_left(path: Path, share: float | None, words: str) -> None:
    """Store what is left to do in a study; forget studies that are no longer recent."""
    recent = {str(study) for study in recent_studies()}
    noted = {name: work for name, work in work_left().items() if name in recent}
    noted[str(path)] = (share, words, datetime.now().astimezone().date().isoformat())
    remember("work_left", json.dumps(noted))


def chosen_theme() -> str:
    """Read the chosen theme: dark, light, or system."""
    value = _settings().value("look")
    return value if value in ("dark", "light") else "system"


def text_percent() -> int:
    """Read the chosen size of the interface's text, in percent."""
    value = str(_settings().value("text_percent"))
    return int(value) if value.isdecimal() and len(value) <= LONGEST_PERCENT else USUAL_PERCENT


NAMES = {EXPERT: "expert", CACHE: "cache"}
"""Keys of the settings that set a variable of the environment."""


def program_settings() -> ProgramSettings:
    """Read the settings that the dialog of settings changes."""
    from raterscope.widgets.dialogs.settings_dialog import ProgramSettings

    names = {key: recall_text(key) for kind in KINDS for key in algorithm_keys(kind)}
    return ProgramSettings(chosen_theme(), text_percent(), **_names(), algorithms=names)


def algorithm_keys(kind: str) -> tuple[str, str]:
    """Return the keys of a kind's algorithm and detector for new studies."""
    return f"{kind}/algorithm", f"{kind}/detector"


def _names() -> dict[str, str]:
    settings = _settings()
    return {key: str(settings.value(key) or "") for key in NAMES.values()}


def store_program_settings(chosen: ProgramSettings) -> None:
    """Store settings, and apply them. Names that the environment had at the start remain."""
    before, names = _names(), {key: getattr(chosen, key) for key in NAMES.values()}
    for variable, key in NAMES.items():
        if os.environ.get(variable) == before[key]:
            del os.environ[variable]
    remember_all({"look": chosen.theme, "text_percent": chosen.text_percent, **names, **chosen.algorithms})
    apply_names()
    apply_chosen_theme(chosen.theme)


def apply_names() -> None:
    """Set the expert's name and the cache folder, unless the environment has them."""
    chosen = _names()
    for variable, key in NAMES.items():
        if chosen[key]:
            os.environ.setdefault(variable, chosen[key])


STEP = 10
"""Difference between two text sizes, in percent of the normal one."""


def apply_chosen_theme(name: str) -> None:
    """Apply a theme (dark, light or system) and the stored text size."""
    application = QApplication.instance()
    if not isinstance(application, QApplication):
        raise RuntimeError("no QApplication exists")
    theme.set_text_size(text_percent() / 100)
    chosen = {"dark": theme.DARK, "light": theme.LIGHT}.get(name) or theme.system_theme(application)
    theme.apply_theme(application, chosen)


def change_text_size(steps: int) -> int:
    """Make text larger, with negative steps smaller, with 0 normal; store and return the size in percent."""
    percent = USUAL_PERCENT if not steps else text_percent() + steps * STEP
    percent = round(100 * min(max(percent / 100, theme.SMALLEST), theme.LARGEST))
    remember("text_percent", percent)
    apply_chosen_theme(chosen_theme())
    return percent


class SystemThemeFollower(QObject):
    """Link to the system's colour scheme, while the chosen theme is system."""

    def __init__(self, application: QApplication) -> None:
        super().__init__(application)
        application.styleHints().colorSchemeChanged.connect(self._on_changed)

    def _on_changed(self) -> None:
        if chosen_theme() == "system":
            apply_chosen_theme("system")
