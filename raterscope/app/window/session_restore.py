"""Session restore: note what the window shows, and offer to reopen it after a crash."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QLockFile, QObject, Qt, QTimer
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from raterscope.algorithms.progress import Watch
from raterscope.app.document import Document
from raterscope.app.window.files import LOOK_MS, cancel_after
from raterscope.app.workspaces.catalogue import WORKSPACES
from raterscope.widgets import theme
from raterscope.widgets.parts import plain_label

if TYPE_CHECKING:
    from raterscope.app.window.main_window import MainWindow
__all__ = [
    "Position",
    "ReopenBar",
    "SessionNote",
    "SessionRestore",
    "crashed_session",
    "forget_crashed_sessions",
]


LONGEST = 65_536
"""Bytes of a note that are read: no honest one is longer."""

_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Position:
    """Where one is.

    Attributes
    ----------
    study : Path
    kind : str
        Of the workspace.
    item : int or None
        The study's number of what is on screen.
    within : mapping
        Where one is in it, as the workspace tells: what is selected, how it is looked at.
    """

    study: Path
    kind: str
    item: int | None = None
    within: Mapping[str, Any] = field(default_factory=dict)


class SessionNote:
    """One window's note of where one is, with a lock that dies with the program.

    Parameters
    ----------
    folder : Path
        Where all windows keep their notes.
    """

    def __init__(self, folder: Path) -> None:
        self._note = folder / f"{os.getpid()}-{next(_numbers)}.json"
        self._lock: QLockFile | None = None
        self._place: Position | None = None

    def note_position(self, place: Position) -> None:
        """Write down where one is now. Where that cannot be written, nobody is bothered."""
        if place == self._place:
            return
        self._place = place
        told = {"study": str(place.study), "kind": place.kind, "item": place.item, "within": place.within}
        try:
            if self._lock is None:
                self._note.parent.mkdir(parents=True, exist_ok=True)
                self._lock = _lock_of(self._note)
                self._lock.tryLock(0)
            beside = self._note.with_suffix(".new")
            beside.write_text(json.dumps(told), encoding="utf-8")
            beside.replace(self._note)
        except OSError:
            self._place = None

    def end(self) -> None:
        """Leave nothing behind: all ended as it should."""
        self._place = None
        _remove(self._note)
        if self._lock is not None:
            self._lock.unlock()
            self._lock = None


def crashed_session(folder: Path) -> Position | None:
    """Tell where a window was that did not end as it should; of several the last one."""
    for note in reversed(_crashed(folder)):
        place = _read(note)
        if place is not None and place.study.is_file():
            return place
    return None


def forget_crashed_sessions(folder: Path) -> None:
    """Remove what windows left that did not end as they should."""
    for note in _crashed(folder):
        _remove(note)


def _crashed(folder: Path) -> list[Path]:
    """List the notes whose program is gone, the oldest first."""
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
    lock.setStaleLockTime(0)  # it is left over once its program is gone, however long that runs
    return lock


def _read(note: Path) -> Position | None:
    try:
        with note.open(encoding="utf-8") as file:
            told = json.loads(file.read(LONGEST))
    except (OSError, ValueError):
        return None
    if not isinstance(told, dict):
        return None
    study, kind, item = (told.get(name) for name in ("study", "kind", "item"))
    if not isinstance(study, str) or not isinstance(kind, str) or not study:
        return None
    within = told.get("within")
    return Position(
        Path(study), kind, item if isinstance(item, int) else None, within if isinstance(within, dict) else {}
    )


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return


EVERY_MS, AGAIN_MS = 2000, 100
"""Between two looks where one is, and whether what was asked for is there."""


class ReopenBar(QWidget):
    """One sentence under the top bar, with a button that does what it offers and one that does not."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("noticeBar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.words = plain_label(wrap=True)
        self.accept, self.decline = QPushButton("Reopen"), QPushButton("Not now")
        for button in (self.accept, self.decline):
            button.setAutoDefault(True)  # Return presses it, as in a dialog
        theme.set_role(self.accept, "primary")
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 6, 12, 6)
        row.setSpacing(8)
        row.addWidget(self.words, 1)
        row.addWidget(self.accept)
        row.addWidget(self.decline)
        self.hide()

    def offer(self, sentence: str) -> None:
        """Say what is offered; Return accepts."""
        self.words.setText(sentence)
        self.accept.setAccessibleDescription(sentence)
        self.show()
        self.accept.setFocus()


class SessionRestore(QObject):
    """Writes down where one is, and after a crash offers to go there.

    Parameters
    ----------
    document : Document
    bar : OfferBar
    folder : Path or None
        Where that is written; None where nothing is to be remembered.
    window : MainWindow
    """

    def __init__(self, document: Document, bar: ReopenBar, folder: Path | None, window: MainWindow) -> None:
        super().__init__(window)
        self._document, self._bar, self._folder, self._window = document, bar, folder, window
        self._whereabouts = None if folder is None else SessionNote(folder)
        self._place: Position | None = None
        self._returning: Position | None = None
        """Where in what is on screen one was, until that is there."""
        looking = QTimer(self)
        looking.timeout.connect(self._look)
        if folder is not None:
            looking.start(EVERY_MS)
        bar.accept.clicked.connect(self._on_accepted)
        bar.decline.clicked.connect(self._on_declined)
        document.replaced.connect(self._on_replaced)

    def offer(self) -> None:
        """Offer to go back to where one was, if the last time did not end as it should.

        A thread looks where that was: the study may be on a drive that does not answer.
        """
        if self._folder is not None:
            looking = partial(_look, self._folder)
            job = self._window.jobs.start("Looking for the last session", looking, quiet=True)
            job.finished.connect(self._on_found)
            cancel_after(job, LOOK_MS)

    def _on_found(self, place: Position | None) -> None:
        self._place = place if self._document.contents is None else None
        if self._place is not None:
            workspace = WORKSPACES.get(self._place.kind)
            where = f", workspace {workspace.title}" if workspace else ""
            self._bar.offer(
                "Raterscope was not closed properly last time. Your decisions are saved. "
                f"Reopen {self._place.study.name}{where}?"
            )

    def note_position(self, kind: str, item: int | None) -> None:
        """Write down where one is now."""
        contents = self._document.contents
        if self._whereabouts is not None and contents is not None and kind and self._returning is None:
            workspace = self._window.workspace
            within = {} if workspace is None else workspace.view_state()
            self._whereabouts.note_position(Position(contents.path, kind, item, within))

    def _look(self) -> None:
        """Write down too where one is within what is on screen: of that nobody tells."""
        self._window.note_position()

    def end(self) -> None:
        """Leave nothing behind: all ended as it should."""
        if self._whereabouts is not None:
            self._whereabouts.end()

    def _forget(self) -> None:
        self._bar.hide()
        if self._folder is not None:
            forget_crashed_sessions(self._folder)

    def _on_accepted(self) -> None:
        self._forget()
        if self._place is not None:
            self._window.files.open_study(self._place.study)

    def _on_declined(self) -> None:
        self._place = self._returning = None
        self._forget()

    def _on_replaced(self) -> None:
        """Go to where one was, once the study is open; whoever opens another has no use for that."""
        contents, place, self._place = self._document.contents, self._place, None
        self._returning = None
        if contents is None:
            self.end()
            return
        self._bar.hide()
        if place is None or contents.path != place.study or place.kind not in WORKSPACES:
            return
        if WORKSPACES[place.kind].holds(contents):
            self._window.show_workspace(place.kind)
            if place.item in [one.id for one in contents.of(place.kind)] and place.item is not None:
                self._window.workspace.go_to(place.item)
                self._returning = place
                self._return()

    def _return(self) -> None:
        """Go where one was within what is on screen, once it is there."""
        place, workspace = self._returning, self._window.workspace
        if place is None:
            return
        if self._window.jobs.busy:
            QTimer.singleShot(AGAIN_MS, self, self._return)
            return
        self._returning = None
        if workspace is not None and workspace.current_item() == place.item:
            workspace.restore_view(place.within)


def _look(folder: Path, watch: Watch) -> Position | None:
    watch(0.0, "looking")
    return crashed_session(folder)
