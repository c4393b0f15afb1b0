"""A study whose file was moved, renamed, deleted or replaced while it is open: said, and what can be done."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from raterscope.algorithms.progress import Watch
from raterscope.app.document import Document
from raterscope.app.study import Study
from raterscope.app.study.new_study import save_elsewhere
from raterscope.app.study.records import Standing, UnwrittenError
from raterscope.app.window.action_bar import ActionBar
from raterscope.app.window.importing import STUDIES

__all__ = ["MovedBar", "Moving", "saved_in_words"]


def saved_in_words(standing: Standing) -> str:
    """Say in the status line what is saved, and where."""
    if standing.log is not None:
        return f"last decisions saved only in {standing.log.name}"
    if not standing.moved:
        return "every decision saved"
    if standing.place is not None:
        return f"not saving: the study was moved to {standing.place.name}"
    return "not saving: the study file is missing"


class MovedBar(ActionBar):
    """Under the top bar, as long as the study's file is not where it was opened."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Moved", ("Open at new location", "Save a copy…"), parent)
        self.there, self.copy = self.buttons


class Moving(QObject):
    """Lets you go on with a study whose file has gone, where it is now or in a copy of it.

    Parameters
    ----------
    document : Document
    bar : MovedBar
    window : QWidget

    Signals
    -------
    message(str)
        What became of it.
    """

    message = Signal(str)

    def __init__(self, document: Document, bar: MovedBar, window: QWidget) -> None:
        super().__init__(window)
        self._document, self._bar, self._window = document, bar, window
        document.rested.connect(self._show)
        bar.there.clicked.connect(self.continue_there)
        bar.copy.clicked.connect(self.choose_copy)

    def continue_there(self) -> None:
        """Open the study where its file is now."""
        place = self._document.standing.place
        if place is not None:
            self._document.follow(place)

    def choose_copy(self) -> None:
        """Ask where a copy of the study is to be, and go on there."""
        contents = self._document.contents
        if contents is None:
            return
        name, _ = QFileDialog.getSaveFileName(
            self._window, "Save a copy of the study", str(contents.path), STUDIES
        )
        if name:
            path = Path(name)
            self.save_copy(path if path.suffix else path.with_suffix(".rscope"))

    def save_copy(self, path: Path) -> None:
        """Save a copy of the study, and go on with it."""
        job = self._document.ask(f"Saving {path.name}", partial(_save, path), quiet=False)
        job.finished.connect(self._on_saved)

    def _on_saved(self, path: Path) -> None:
        if self._document.standing.moved:
            self._document.follow(path)
            self.message.emit(f"Saved the study as {path}, which is now open.")

    def _show(self, standing: Standing) -> None:
        contents = self._document.contents
        self._bar.setVisible(standing.moved and contents is not None)
        if not standing.moved or contents is None:
            return
        self._bar.there.setVisible(standing.place is not None)
        self._bar.words.setText(_sentences(contents.path, standing))
        self._bar.there.setAccessibleDescription(self._bar.words.text())
        self._bar.copy.setAccessibleDescription(self._bar.words.text())


def _sentences(path: Path, standing: Standing) -> str:
    if standing.place is None:
        return (
            f"{path.name} was deleted, replaced or moved to another disk while open. "
            "New decisions cannot be saved. Put it back, or save a copy of everything on screen."
        )
    whole = "All decisions up to now are saved. Open it there to save new ones."
    if standing.log is not None:
        whole = (
            f"Your last decisions are only in {standing.log}, at its former location. {standing.why}".strip()
        )
    return f"{path.name} was moved or renamed while open. It is now {standing.place}. {whole}"


def _save(path: Path, study: Study, watch: Watch) -> Path:
    if path.resolve() == study.path and not study.checkpoint():
        raise UnwrittenError("has decisions that are not yet written into it; choose another name", file=path)
    save_elsewhere(study, path, watch=watch)
    return path.resolve()
