"""Preferences kept between sessions (recent studies, theme, text size, names), and the last position."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QByteArray, QLockFile, QObject, QSettings, QTimer
from PySide6.QtWidgets import QApplication, QWidget

from raterscope.algorithms.progress import Watch
from raterscope.app.document import Document
from raterscope.app.kinds.registry import KINDS
from raterscope.app.program_files import CACHE, EXPERT
from raterscope.app.window.bars import ActionBar
from raterscope.app.workspaces.catalogue import WORKSPACES
from raterscope.widgets import theme

if TYPE_CHECKING:
    from raterscope.app.jobs import Job
    from raterscope.app.window.main_window import MainWindow
    from raterscope.widgets.dialogs.settings_dialog import ProgramSettings


RECENT_STUDIES = 10
USUAL_PERCENT = 100
LONGEST_PERCENT = 3

DRIVE_TIMEOUT_MS = 2000
"""Timeout for a drive. A drive that does not answer is not checked again until it does."""


def cancel_after_timeout(job: Job) -> None:
    """Cancel a job that waits for a drive, unless it ends within the timeout."""
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
    """Read the progress of studies: by path, the share decided, in words, and the day."""
    try:
        stored = json.loads(str(_settings().value("work_left") or "{}"))
        return {
            path: (None if share is None else min(max(float(share), 0.0), 1.0), str(words), str(day))
            for path, (share, words, day) in stored.items()
        }
    except (ValueError, TypeError, AttributeError):
        return {}


def remember_work_left(path: Path, share: float | None, text: str) -> None:
    """Store the progress of a study; forget studies that are no longer recent."""
    recent = {str(study) for study in recent_studies()}
    noted = {name: work for name, work in work_left().items() if name in recent}
    noted[str(path)] = (share, text, datetime.now().astimezone().date().isoformat())
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
"""Keys of the settings that set an environment variable."""


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
    """Store settings, and apply them. Names that the environment set at the start have priority."""
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
"""Step between two text sizes, in percent of the normal size."""


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
    """Follower of the system's colour scheme, while the chosen theme is "system"."""

    def __init__(self, application: QApplication) -> None:
        super().__init__(application)
        application.styleHints().colorSchemeChanged.connect(self._on_changed)

    def _on_changed(self) -> None:
        if chosen_theme() == "system":
            apply_chosen_theme("system")


LONGEST = 65_536
"""Maximum size of a note in bytes."""

_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Position:
    """Position of a window: study, workspace, item, and view."""

    study: Path
    kind: str  # kind of the workspace
    item: int | None = None  # number of the item on screen in the study
    # selection and view of the item, as the workspace describes them
    within: Mapping[str, Any] = field(default_factory=dict)


class SessionNote:
    """Note of one window's position, with a lock that is released when the program ends.

    `folder`: folder of the notes of all windows.
    """

    def __init__(self, folder: Path) -> None:
        self._note = folder / f"{os.getpid()}-{next(_numbers)}.json"
        self._lock: QLockFile | None = None
        self._position: Position | None = None

    def note_position(self, position: Position) -> None:
        """Write the current position. Errors are ignored."""
        if position == self._position:
            return
        self._position = position
        fields = {
            "study": str(position.study),
            "kind": position.kind,
            "item": position.item,
            "within": position.within,
        }
        try:
            if self._lock is None:
                self._note.parent.mkdir(parents=True, exist_ok=True)
                self._lock = _lock_of(self._note)
                self._lock.tryLock(0)
            temporary = self._note.with_suffix(".new")
            temporary.write_text(json.dumps(fields), encoding="utf-8")
            temporary.replace(self._note)
        except OSError:
            self._position = None

    def end(self) -> None:
        """Remove the note: the window was closed properly."""
        self._position = None
        _remove(self._note)
        if self._lock is not None:
            self._lock.unlock()
            self._lock = None


def crashed_session(folder: Path) -> Position | None:
    """Return the position of the latest window that was not closed properly."""
    for note in reversed(_crashed(folder)):
        position = _read(note)
        if position is not None and position.study.is_file():
            return position
    return None


def forget_crashed_sessions(folder: Path) -> None:
    """Remove the notes of windows that were not closed properly."""
    for note in _crashed(folder):
        _remove(note)


def _crashed(folder: Path) -> list[Path]:
    """List the notes of processes that no longer run, the oldest first."""
    dead = []
    for note in folder.glob("*.json"):
        lock = _lock_of(note)
        if lock.tryLock(0):
            lock.unlock()
            dead.append(note)
    return sorted(dead, key=_age)


def _age(note: Path) -> float:
    try:
        return note.stat().st_mtime
    except OSError:
        return 0.0


def _lock_of(note: Path) -> QLockFile:
    lock = QLockFile(str(note.with_suffix(".lock")))
    lock.setStaleLockTime(0)  # a lock is stale only when its program has ended
    return lock


def _read(note: Path) -> Position | None:
    try:
        with note.open(encoding="utf-8") as file:
            fields = json.loads(file.read(LONGEST))
    except (OSError, ValueError):
        return None
    if not isinstance(fields, dict):
        return None
    study, kind, item = (fields.get(name) for name in ("study", "kind", "item"))
    if not isinstance(study, str) or not isinstance(kind, str) or not study:
        return None
    within = fields.get("within")
    return Position(
        Path(study), kind, item if isinstance(item, int) else None, within if isinstance(within, dict) else {}
    )


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return


EVERY_MS, AGAIN_MS = 2000, 100
"""Milliseconds between two notes, and between two checks whether the item is loaded."""


class ReopenBar(ActionBar):
    """Offer under the top bar to reopen the last session, with buttons to accept and decline."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", ("Reopen", "Not now"), parent)
        self.accept, self.decline = self.buttons

    def offer(self, sentence: str) -> None:
        """Show an offer; Return accepts."""
        self.label.setText(sentence)
        self.accept.setAccessibleDescription(sentence)
        self.show()
        self.accept.setFocus()


class SessionRestore(QObject):
    """Note of the window's position, and the offer to restore it after a crash.

    `folder`: folder of the notes; None to write none.
    """

    def __init__(self, document: Document, bar: ReopenBar, folder: Path | None, window: MainWindow) -> None:
        super().__init__(window)
        self._document, self._bar, self._folder, self._window = document, bar, folder, window
        self._session_note = None if folder is None else SessionNote(folder)
        self._position: Position | None = None
        self._returning: Position | None = None
        """Position to restore once the item is loaded."""
        self._noted: Position | None = None
        looking = QTimer(self)
        looking.timeout.connect(window.note_position)  # selection and view emit no signal
        if folder is not None:
            looking.start(EVERY_MS)
        bar.accept.clicked.connect(self._on_accepted)
        bar.decline.clicked.connect(self._on_declined)
        document.replaced.connect(self._on_replaced)
        document.followed.connect(self._on_followed)

    def offer(self) -> None:
        """Offer to reopen the last session if it was not closed properly.

        A thread checks whether the study exists: its drive may not answer.
        """
        if self._folder is not None:
            work = partial(_find_crashed, self._folder)
            job = self._window.jobs.start("Looking for the last session", work, quiet=True)
            job.finished.connect(self._on_found)
            cancel_after_timeout(job)

    def _on_found(self, position: Position | None) -> None:
        self._position = position if self._document.contents is None else None
        if self._position is not None:
            workspace = WORKSPACES.get(self._position.kind)
            where = f", workspace {workspace.title}" if workspace else ""
            self._bar.offer(
                "Raterscope was not closed properly last time. Your decisions are saved. "
                f"Reopen {self._position.study.name}{where}?"
            )

    def note_position(self, kind: str, item: int | None) -> None:
        """Note the item on screen."""
        contents = self._document.contents
        if self._session_note is not None and contents is not None and kind and self._returning is None:
            workspace = self._window.workspace
            within = {} if workspace is None else workspace.view_state()
            self._noted = Position(contents.path, kind, item, within)
            self._session_note.note_position(self._noted)

    def end(self) -> None:
        """Remove the note: the window was closed properly."""
        if self._session_note is not None:
            self._session_note.end()

    def _forget(self) -> None:
        self._bar.hide()
        if self._folder is not None:
            forget_crashed_sessions(self._folder)

    def _on_accepted(self) -> None:
        self._forget()
        if self._position is not None:
            self._window.files.open_study(self._position.study)

    def _on_declined(self) -> None:
        self._position = self._returning = None
        self._forget()

    def _on_followed(self, before: Path, path: Path) -> None:
        """Return to the position in a moved study once it is open at the other location."""
        if self._noted is not None and self._noted.study == before:
            self._position = replace(self._noted, study=path)

    def _on_replaced(self) -> None:
        """Go to the position once its study is open; forget it if another study is opened."""
        contents, position, self._position = self._document.contents, self._position, None
        self._returning = None
        if contents is None:
            self.end()
            return
        self._bar.hide()
        if position is None or contents.path != position.study or position.kind not in WORKSPACES:
            return
        if WORKSPACES[position.kind].holds(contents):
            self._returning = position
            QTimer.singleShot(0, self, self._go_back)  # after the workspace has begun with its first item

    def _go_back(self) -> None:
        contents, position = self._document.contents, self._returning
        if contents is None or position is None:
            return
        self._window.show_workspace(position.kind)
        if position.item is not None and position.item in [item.id for item in contents.of(position.kind)]:
            self._window.workspace.go_to(position.item)
            self._return()
        else:
            self._returning = None

    def _return(self) -> None:
        """Restore selection and view once the item is loaded."""
        position, workspace = self._returning, self._window.workspace
        if position is None:
            return
        if self._window.jobs.busy:
            QTimer.singleShot(AGAIN_MS, self, self._return)
            return
        self._returning = None
        if workspace is not None and workspace.current_item() == position.item:
            workspace.restore_view(position.within)


def _find_crashed(folder: Path, watch: Watch) -> Position | None:
    watch(0.0, "looking")
    return crashed_session(folder)
