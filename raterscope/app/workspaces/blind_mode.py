"""Blind mode: names and votes are hidden until the expert decides, by one key in every workspace."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal

from raterscope.app.document import Document
from raterscope.app.workspaces.screen import WorkspaceScreen

__all__ = ["BlindMode"]

KEY = "H"


class BlindMode(QObject):
    """The blind mode of a workspace. A change is reported, and the document hides names too.

    Parameters
    ----------
    document : Document
    kind : str
        The workspace's.
    screen : WorkspaceScreen
    words : str
        What the menu calls it: "Hide names and votes until you decide".
    hidden, shown : str
        What is said when it is switched on, and off.

    Signals
    -------
    changed(bool)
    """

    changed = Signal(bool)

    def __init__(
        self, document: Document, kind: str, screen: WorkspaceScreen, words: str, hidden: str, shown: str
    ) -> None:
        super().__init__(screen)
        self._document, self._kind, self._screen = document, kind, screen
        self._words, self._told = words, (shown, hidden)
        self.on = False
        document.replaced.connect(self._tell_document)  # what it holds of a study knows of no hiding

    @property
    def action(self) -> tuple[str, str, Callable[[], object]]:
        """What the Review menu offers."""
        return self._words, KEY, self.toggle

    @property
    def note(self) -> str:
        """What is said as long as it hides."""
        return f"{self._told[True]} {KEY} shows it."

    def toggle(self) -> None:
        """Hide, or show again, and say so."""
        self.set(not self.on)
        self._screen.said.emit(self._told[self.on])

    def set(self, on: bool) -> None:
        """Hide or show, as it was the last time."""
        if on != self.on:
            self.on = on
            self._tell_document()
            self.changed.emit(on)

    def _tell_document(self) -> None:
        self._document.hide_names(self.on, self._kind)
