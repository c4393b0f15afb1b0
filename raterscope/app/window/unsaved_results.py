"""Results that a study could not take, a study file that was moved, and what must be saved before leaving."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QFileDialog, QMessageBox, QWidget

from raterscope.algorithms.progress import Watch
from raterscope.app.document import Document, Unsaved
from raterscope.app.jobs import Job, Jobs
from raterscope.app.study import Study
from raterscope.app.study.new_study import save_elsewhere
from raterscope.app.study.records import Standing, UnwrittenError
from raterscope.app.window.bars import ActionBar, ask
from raterscope.app.window.importing import STUDIES
from raterscope.text.numbers import time_left

__all__ = ["LeaveGuard", "MovedBar", "MovedStudy", "UnsavedBar", "UnsavedResults", "describe_saved"]


def describe_saved(standing: Standing) -> str:
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


class MovedStudy(QObject):
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
        job = self._document.ask(f"Saving {path.name}", partial(_save_copy, path), quiet=False)
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


def _save_copy(path: Path, study: Study, watch: Watch) -> Path:
    if path.resolve() == study.path and not study.checkpoint():
        raise UnwrittenError("has decisions that are not yet written into it; choose another name", file=path)
    save_elsewhere(study, path, watch=watch)
    return path.resolve()


class UnsavedBar(ActionBar):
    """Under the top bar: what is not saved and why, and what can be done. It stays until that is done."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Not saved", ("Try again", "Save elsewhere…", "Discard…"), parent)
        self.again, self.elsewhere, self.discard = self.buttons
        self.elsewhere.setToolTip("Save a complete copy of the study elsewhere and continue there")


class UnsavedResults(QObject):
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


HARDLY_BEGUN = 2.0
"""Seconds: what has not run for longer is stopped without a question."""


class LeaveGuard(QObject):
    """Lets the study be left and the window be closed, at once or when a question was answered so.

    Parameters
    ----------
    document : Document
    jobs : Jobs
    keeping : Keeping
    window : QWidget

    Signals
    -------
    message(str)
        What is waited for.
    """

    message = Signal(str)

    def __init__(
        self, document: Document, jobs: Jobs, unsaved_results: UnsavedResults, window: QWidget
    ) -> None:
        super().__init__(window)
        self._document, self._jobs, self._unsaved_results, self._window = (
            document,
            jobs,
            unsaved_results,
            window,
        )
        self._box: QMessageBox | None = None
        self._waits = False
        unsaved_results.changed.connect(self._on_changed)

    def leave_study(self, then: Callable[[], object]) -> None:
        """Do something that leaves the study; what is made of it then stops, unless it leaves a file."""
        stopped = [job for job in self._jobs.at_stake(HARDLY_BEGUN) if not job.binding]
        if self._document.contents is None or not stopped:
            then()
        elif self._box is None:
            self._ask_to_stop(stopped, "Leaving the study", "Leave", then)

    def may_close(self) -> bool:
        """Tell whether the window may be closed at once; if not, it is once that is agreed to."""
        if self._box is not None:
            return False
        stopped = self._jobs.at_stake(HARDLY_BEGUN)
        if stopped:
            self._ask_to_stop(stopped, "Closing the window", "Close", self._window.close)
        elif self._unsaved_results.writing:
            self._waits = True
            self.message.emit("The window closes when everything is saved.")
        elif self._unsaved_results.held:
            self._box = ask(
                self._window,
                "Not saved yet",
                f"Closing the window discards {self._keeping.held}.",
                "Cancel and choose Save elsewhere to keep it.",
                "Close and discard",
                "Cancel",
                self._lose,
                self._on_answered,
            )
        else:
            return True
        return False

    def _ask_to_stop(
        self, stopped: Sequence[Job], leaving: str, act: str, then: Callable[[], object]
    ) -> None:
        running = " and ".join(_in_words(job) for job in stopped)
        it = "it" if len(stopped) == 1 else "them"
        self._box = ask(
            self._window,
            leaving,
            f"{running}. {leaving} stops {it}.",
            "Stopped jobs must be started again.",
            f"Stop {it} and {act.casefold()}",
            "Cancel",
            partial(self._stop, stopped, then),
            self._on_answered,
        )
        for job in stopped:
            job.ended.connect(partial(self._on_ended, self._box, stopped))

    def _stop(self, stopped: Sequence[Job], then: Callable[[], object]) -> None:
        self._box = None
        for job in stopped:
            job.cancel()
        then()

    def _lose(self) -> None:
        self._box = None
        self._unsaved_results.discard()
        self._window.close()

    def _on_answered(self) -> None:
        self._box = None

    def _on_ended(self, box: QMessageBox, stopped: Sequence[Job]) -> None:
        """Go on as was wanted when there is nothing to be stopped any more."""
        if box is self._box and all(job.over for job in stopped):
            box.accept()

    def _on_changed(self) -> None:
        if self._waits and not self._unsaved_results.writing:
            self._waits = False
            self._window.close()


def _in_words(job: Job) -> str:
    left = time_left(job.seconds_left)
    return f"{job.title} is {job.fraction:.0%} done{f', {left}' if left else ''}"
