"""Where one is, written down while the window is open: after a crash it tells where one was."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from PySide6.QtCore import QLockFile

__all__ = ["Place", "Whereabouts", "forget_crashed", "left_by_crash"]

LONGEST = 65_536
"""Bytes of a note that are read: no honest one is longer."""

_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Place:
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


class Whereabouts:
    """One window's note of where one is, with a lock that dies with the program.

    Parameters
    ----------
    folder : Path
        Where all windows keep their notes.
    """

    def __init__(self, folder: Path) -> None:
        self._note = folder / f"{os.getpid()}-{next(_numbers)}.json"
        self._lock: QLockFile | None = None
        self._place: Place | None = None

    def be_at(self, place: Place) -> None:
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


def left_by_crash(folder: Path) -> Place | None:
    """Tell where a window was that did not end as it should; of several the last one."""
    for note in reversed(_crashed(folder)):
        place = _read(note)
        if place is not None and place.study.is_file():
            return place
    return None


def forget_crashed(folder: Path) -> None:
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


def _read(note: Path) -> Place | None:
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
    return Place(
        Path(study), kind, item if isinstance(item, int) else None, within if isinstance(within, dict) else {}
    )


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return
