"""What a study did not take, a fusion of hours: held, offered again, or saved with the study elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from raterscope.algorithms.progress import Watch
from raterscope.app.document import Document, Unsaved
from raterscope.app.jobs import Job, Jobs
from raterscope.app.study import Study
from raterscope.app.study.new_study import save_elsewhere
from raterscope.app.window.action_bar import ActionBar
from raterscope.app.window.asking import ask
from raterscope.app.window.importing import STUDIES

__all__ = ["Keeping", "UnsavedBar"]


class UnsavedBar(ActionBar):
    """Under the top bar: what is not saved and why, and what can be done. It stays until that is done."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Not saved", ("Try again", "Save elsewhere…", "Discard…"), parent)
        self.again, self.elsewhere, self.discard = self.buttons
        self.elsewhere.setToolTip("Save a complete copy of the study elsewhere and continue there")


class Keeping(QObject):
    """Holds what was not saved, whichever study it is of, until it is saved or discarded.

    Parameters
    ----------
    document : Document
    jobs : Jobs
    bar : UnsavedBar
    window : QWidget

    Signals
    -------
    message(str), refused(str)
        What became of it.
    changed
        Something is held, or no more, or nothing is being written any more.
    """

    message = Signal(str)
    refused = Signal(str)
    changed = Signal()

    def __init__(self, document: Document, jobs: Jobs, bar: UnsavedBar, window: QWidget) -> None:
        super().__init__(window)
        self._document, self._jobs, self._bar, self._window = document, jobs, bar, window
        self._held: list[Unsaved] = []
        self._writing = 0
        document.unsaved.connect(self._hold)
        document.kept.connect(self.changed)
        document.followed.connect(self._follow)
        bar.again.clicked.connect(self.try_again)
        bar.elsewhere.clicked.connect(self.choose_elsewhere)
        bar.discard.clicked.connect(self._ask_to_discard)

    @property
    def held(self) -> str:
        """What is held, in words; empty where nothing is."""
        return _listed(self._held)

    @property
    def writing(self) -> bool:
        """Whether something is being written that would have to be held, should that fail."""
        return self._writing > 0 or self._document.keeping

    def try_again(self) -> None:
        """Write what is held, each into its study, be that open or not."""
        held, self._held = self._held, []
        self._show()
        contents = self._document.contents
        for one in held:
            if contents is not None and contents.path == one.study:
                job = self._document.keep(one)
            else:
                job = self._start(one.title, partial(_store_in_file, one))
                job.failed.connect(partial(self._on_failed, one))
            job.finished.connect(partial(self._on_written, one))

    def choose_elsewhere(self) -> None:
        """Ask where a copy of the study is to be that has what is held."""
        if self._held:
            proposed = Path.home() / self._held[0].study.name
            name, _ = QFileDialog.getSaveFileName(
                self._window, "Save the study elsewhere", str(proposed), STUDIES
            )
            if name:
                path = Path(name)
                self.save_elsewhere(path if path.suffix else path.with_suffix(".rscope"))

    def save_elsewhere(self, path: Path) -> None:
        """Save a copy of a study with what is held of it, and go on there where the study is open."""
        study = self._held[0].study
        mine = [one for one in self._held if one.study == study]
        self._held = [one for one in self._held if one.study != study]
        self._show()
        contents, title = self._document.contents, f"Saving {path.name}"
        is_open = contents is not None and contents.path == study
        if is_open:
            self._writing += 1
            job = self._document.ask(title, partial(_save, path, mine), quiet=False)
        else:
            job = self._start(title, partial(_save_file, path, mine))
            job.failed.connect(self.refused)
        job.finished.connect(partial(self._on_saved, mine, is_open))
        job.ended.connect(partial(self._on_saving_ended, job, mine, is_open))

    def discard(self) -> None:
        """Let go what is held."""
        self._held.clear()
        self._show()

    def _follow(self, before: Path, now: Path) -> None:
        """Hold what was of a study that was moved for the study where it is now."""
        self._held = [replace(one, study=now) if one.study == before else one for one in self._held]

    def _start(self, title: str, work: Callable[[Watch], object]) -> Job:
        """Do something with a study that is not open."""
        self._writing += 1
        job = self._jobs.start(title, work)
        job.ended.connect(self._on_ended)
        return job

    def _hold(self, one: Unsaved) -> None:
        self._held.append(one)
        self._show()

    def _show(self) -> None:
        held = self._held
        self._bar.setVisible(bool(held))
        if held:
            words = f"{held[0].what[:1].upper()}{self.held[1:]}"
            verb = "is" if len(held) == 1 else "are"
            self._bar.words.setText(f"{words} {verb} not saved yet. Keep this window open. {held[-1].why}")
            self._bar.again.setAccessibleDescription(self._bar.words.text())
        self.changed.emit()

    def _on_written(self, one: Unsaved, _answer: object) -> None:
        self.message.emit(f"{one.what[:1].upper()}{one.what[1:]} is saved in {one.study.name}.")

    def _on_failed(self, one: Unsaved, sentence: str) -> None:
        self._hold(replace(one, why=sentence))

    def _on_ended(self) -> None:
        self._writing -= 1
        self.changed.emit()

    def _on_saved(self, mine: Sequence[Unsaved], is_open: bool, path: Path) -> None:
        contents = self._document.contents
        goes_on = is_open and contents is not None and contents.path == mine[0].study
        where = f"{path}, which is now open" if goes_on else str(path)
        self.message.emit(f"{mine[0].study.name} and {_listed(mine)} are saved as {where}.")
        if goes_on:
            self._document.open(path)

    def _on_saving_ended(self, job: Job, mine: Sequence[Unsaved], counted: bool) -> None:
        if job.state != "done":
            self._held = [*mine, *self._held]
            self._show()
        if counted:
            self._on_ended()

    def _ask_to_discard(self) -> None:
        ask(
            self._window,
            "Discard unsaved results",
            f"Discard {self.held}?",
            "This cannot be undone.",
            "Discard",
            "Cancel",
            self.discard,
        )


def _listed(held: Sequence[Unsaved]) -> str:
    return " and ".join(one.what for one in held)


def _store_in_file(one: Unsaved, watch: Watch) -> object:
    with Study.open(one.study) as study:
        return one.store(study, watch)


def _save(path: Path, held: Sequence[Unsaved], study: Study, watch: Watch) -> Path:
    save_elsewhere(study, path, [one.store for one in held], watch)
    return path.resolve()


def _save_file(path: Path, held: Sequence[Unsaved], watch: Watch) -> Path:
    with Study.open(held[0].study, to_read=True) as study:
        return _save(path, held, study, watch)
