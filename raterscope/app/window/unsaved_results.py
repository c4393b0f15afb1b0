"""Unsaved results, moved study files, and confirmation before leaving a study or closing the window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QFileDialog, QMessageBox, QWidget

from raterscope.algorithms.progress import Watch
from raterscope.app.document import Document, Unsaved
from raterscope.app.errors import UnwrittenError
from raterscope.app.jobs import Job, Jobs
from raterscope.app.program_files import FileState
from raterscope.app.window.bars import STUDIES, ActionBar, ask
from raterscope.text import percent

if TYPE_CHECKING:
    from raterscope.app.study import Study


def describe_saved(file_state: FileState) -> str:
    """Describe for the status line whether and where everything is saved."""
    if file_state.log is not None:
        return f"last decisions saved only in {file_state.log.name}"
    if not file_state.moved:
        return "every decision saved"
    if file_state.path is not None:
        return f"not saving: the study was moved to {file_state.path.name}"
    return "not saving: the study file is missing"


class MovedBar(ActionBar):
    """Bar shown while the study's file is not where it was opened."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Moved", ("Open at new location", "Save a copy…"), parent)
        self.there, self.copy = self.buttons


class MovedStudy(QObject):
    """Continuation with a study whose file was moved, renamed, deleted or replaced: there or in a copy."""

    message = Signal(str)  # the outcome

    def __init__(self, document: Document, bar: MovedBar, window: QWidget) -> None:
        super().__init__(window)
        self._document, self._bar, self._window = document, bar, window
        document.file_state_changed.connect(self._show)
        bar.there.clicked.connect(self.continue_there)
        bar.copy.clicked.connect(self.choose_copy)

    def continue_there(self) -> None:
        """Open the study at the new location of its file."""
        path = self._document.file_state.path
        if path is not None:
            self._document.follow(path)

    def choose_copy(self) -> None:
        """Ask for the file of a copy of the study, and continue with it."""
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
        """Save a copy of the study, and continue with it."""
        job = self._document.ask(f"Saving {path.name}", partial(_save_copy, path), quiet=False)
        job.finished.connect(self._on_saved)

    def _on_saved(self, path: Path) -> None:
        if self._document.file_state.moved:
            self._document.follow(path)
            self.message.emit(f"Saved the study as {path}, which is now open.")

    def _show(self, file_state: FileState) -> None:
        contents = self._document.contents
        self._bar.setVisible(file_state.moved and contents is not None)
        if not file_state.moved or contents is None:
            return
        self._bar.there.setVisible(file_state.path is not None)
        self._bar.label.setText(_sentences(contents.path, file_state))
        self._bar.there.setAccessibleDescription(self._bar.label.text())
        self._bar.copy.setAccessibleDescription(self._bar.label.text())


def _sentences(path: Path, file_state: FileState) -> str:
    if file_state.path is None:
        return (
            f"{path.name} was deleted, replaced or moved to another disk while open. "
            "New decisions cannot be saved. Put it back, or save a copy of everything on screen."
        )
    advice = "All decisions up to now are saved. Open it there to save new ones."
    if file_state.log is not None:
        advice = f"Your last decisions are only in {file_state.log}, at its former location."
        advice = f"{advice} {file_state.why}".strip()
    return f"{path.name} was moved or renamed while open. It is now {file_state.path}. {advice}"


def _save_copy(path: Path, study: Study, watch: Watch) -> Path:
    from raterscope.app.study.new_study import save_elsewhere

    if path.resolve() == study.path and not study.checkpoint():
        raise UnwrittenError("has decisions that are not yet written into it; choose another name", file=path)
    save_elsewhere(study, path, watch=watch)
    return path.resolve()


class UnsavedBar(ActionBar):
    """Bar with the unsaved results and the reason, until they are saved or discarded."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Not saved", ("Try again", "Save elsewhere…", "Discard…"), parent)
        self.again, self.elsewhere, self.discard = self.buttons
        self.elsewhere.setToolTip("Save a complete copy of the study elsewhere and continue there")


class UnsavedResults(QObject):
    """Results that could not be saved, of any study, until they are saved or discarded."""

    # message, refused: the outcome
    message = Signal(str)
    refused = Signal(str)
    changed = Signal()  # `summary` or `writing` changed

    def __init__(self, document: Document, jobs: Jobs, bar: UnsavedBar, window: QWidget) -> None:
        super().__init__(window)
        self._document, self._jobs, self._bar, self._window = document, jobs, bar, window
        self._unsaved: list[Unsaved] = []
        self._writing = 0
        document.unsaved.connect(self._hold)
        document.kept.connect(self.changed)
        document.followed.connect(self._follow_move)
        bar.again.clicked.connect(self.try_again)
        bar.elsewhere.clicked.connect(self.choose_elsewhere)
        bar.discard.clicked.connect(self._ask_to_discard)

    @property
    def summary(self) -> str:
        """Unsaved results in words; empty without any."""
        return _listed(self._unsaved)

    @property
    def writing(self) -> bool:
        """Whether a result is being written that would have to be kept if writing failed."""
        return self._writing > 0 or self._document.keeping

    def try_again(self) -> None:
        """Write every unsaved result into its study, whether open or not."""
        results, self._unsaved = self._unsaved, []
        self._show()
        contents = self._document.contents
        for result in results:
            if contents is not None and contents.path == result.study:
                job = self._document.keep(result)
            else:
                job = self._start(result.title, partial(_store_in_file, result))
                job.failed.connect(partial(self._on_failed, result))
            job.finished.connect(partial(self._on_written, result))

    def choose_elsewhere(self) -> None:
        """Ask for the file of a copy of the study that includes the unsaved results."""
        if self._unsaved:
            proposed = Path.home() / self._unsaved[0].study.name
            name, _ = QFileDialog.getSaveFileName(
                self._window, "Save the study elsewhere", str(proposed), STUDIES
            )
            if name:
                path = Path(name)
                self.save_elsewhere(path if path.suffix else path.with_suffix(".rscope"))

    def save_elsewhere(self, path: Path) -> None:
        """Save a copy of a study with its unsaved results, and open it if the study is open."""
        study = self._unsaved[0].study
        results = [result for result in self._unsaved if result.study == study]
        self._unsaved = [result for result in self._unsaved if result.study != study]
        self._show()
        contents, title = self._document.contents, f"Saving {path.name}"
        is_open = contents is not None and contents.path == study
        if is_open:
            self._writing += 1
            job = self._document.ask(title, partial(_save, path, results), quiet=False)
        else:
            job = self._start(title, partial(_save_file, path, results))
            job.failed.connect(self.refused)
        job.finished.connect(partial(self._on_saved, results, is_open))
        job.ended.connect(partial(self._on_saving_ended, job, results, is_open))

    def discard(self) -> None:
        """Discard the unsaved results."""
        self._unsaved.clear()
        self._show()

    def _follow_move(self, old: Path, new: Path) -> None:
        """Assign unsaved results to the new location of a moved study."""
        self._unsaved = [
            replace(result, study=new) if result.study == old else result for result in self._unsaved
        ]

    def _start(self, title: str, work: Callable[[Watch], object]) -> Job:
        """Start a job on a study that is not open."""
        self._writing += 1
        job = self._jobs.start(title, work)
        job.ended.connect(self._on_ended)
        return job

    def _hold(self, result: Unsaved) -> None:
        self._unsaved.append(result)
        self._show()

    def _show(self) -> None:
        results = self._unsaved
        self._bar.setVisible(bool(results))
        if results:
            text = f"{results[0].what[:1].upper()}{self.summary[1:]}"
            verb = "is" if len(results) == 1 else "are"
            self._bar.label.setText(f"{text} {verb} not saved yet. Keep this window open. {results[-1].why}")
            self._bar.again.setAccessibleDescription(self._bar.label.text())
        self.changed.emit()

    def _on_written(self, result: Unsaved, _answer: object) -> None:
        self.message.emit(f"{result.what[:1].upper()}{result.what[1:]} is saved in {result.study.name}.")

    def _on_failed(self, result: Unsaved, sentence: str) -> None:
        self._hold(replace(result, why=sentence))

    def _on_ended(self) -> None:
        self._writing -= 1
        self.changed.emit()

    def _on_saved(self, results: Sequence[Unsaved], is_open: bool, path: Path) -> None:
        contents = self._document.contents
        goes_on = is_open and contents is not None and contents.path == results[0].study
        where = f"{path}, which is now open" if goes_on else str(path)
        self.message.emit(f"{results[0].study.name} and {_listed(results)} are saved as {where}.")
        if goes_on:
            self._document.open(path)

    def _on_saving_ended(self, job: Job, results: Sequence[Unsaved], counted: bool) -> None:
        if job.state != "done":
            self._unsaved = [*results, *self._unsaved]
            self._show()
        if counted:
            self._on_ended()

    def _ask_to_discard(self) -> None:
        ask(
            self._window,
            "Discard unsaved results",
            f"Discard {self.summary}?",
            "This cannot be undone.",
            "Discard",
            "Cancel",
            self.discard,
        )


def _listed(results: Sequence[Unsaved]) -> str:
    return " and ".join(result.what for result in results)


def _store_in_file(result: Unsaved, watch: Watch) -> object:
    from raterscope.app.study import Study

    with Study.open(result.study) as study:
        return result.store(study, watch)


def _save(path: Path, results: Sequence[Unsaved], study: Study, watch: Watch) -> Path:
    from raterscope.app.study.new_study import save_elsewhere

    save_elsewhere(study, path, [result.store for result in results], watch)
    return path.resolve()


def _save_file(path: Path, results: Sequence[Unsaved], watch: Watch) -> Path:
    from raterscope.app.study import Study

    with Study.open(results[0].study, to_read=True) as study:
        return _save(path, results, study, watch)


HARDLY_BEGUN = 2.0
"""Maximum running time, in seconds, of jobs that are stopped without confirmation."""


class LeaveGuard(QObject):
    """Confirmation before leaving a study or closing the window stops jobs or loses results."""

    message = Signal(str)  # sentence about the job that the window waits for

    def __init__(
        self, document: Document, jobs: Jobs, unsaved_results: UnsavedResults, window: QWidget
    ) -> None:
        super().__init__(window)
        self._document = document
        self._jobs = jobs
        self._unsaved_results = unsaved_results
        self._window = window
        self._box: QMessageBox | None = None
        self._closes_when_saved = False
        unsaved_results.changed.connect(self._on_changed)

    def leave_study(self, on_done: Callable[[], object]) -> None:
        """Call a function that leaves the study. Ask first if that stops jobs that write no file."""
        stopped = [job for job in self._jobs.costly_running(HARDLY_BEGUN) if not job.binding]
        if self._document.contents is None or not stopped:
            on_done()
        elif self._box is None:
            self._ask_to_stop(stopped, "Leaving the study", "Leave", on_done)

    def may_close(self) -> bool:
        """Return whether the window may close at once; if not, it closes after confirmation."""
        if self._box is not None:
            return False
        stopped = self._jobs.costly_running(HARDLY_BEGUN)
        if stopped:
            self._ask_to_stop(stopped, "Closing the window", "Close", self._window.close)
        elif self._unsaved_results.writing:
            self._closes_when_saved = True
            self.message.emit("The window closes when everything is saved.")
        elif self._unsaved_results.summary:
            self._box = ask(
                self._window,
                "Not saved yet",
                f"Closing the window discards {self._unsaved_results.summary}.",
                "Cancel and choose Save elsewhere to keep it.",
                "Close and discard",
                "Cancel",
                self._discard_and_close,
                self._on_answered,
            )
        else:
            return True
        return False

    def _ask_to_stop(
        self, stopped: Sequence[Job], leaving: str, act: str, on_done: Callable[[], object]
    ) -> None:
        it = "it" if len(stopped) == 1 else "them"
        self._box = ask(
            self._window,
            leaving,
            _in_words(stopped, leaving),
            "Stopped jobs must be started again.",
            f"Stop {it} and {act.casefold()}",
            "Cancel",
            partial(self._stop, stopped, on_done),
            self._on_answered,
        )
        for job in stopped:
            for signal in (job.progressed, job.ended):
                signal.connect(partial(self._follow, self._box, stopped, leaving))

    def _stop(self, stopped: Sequence[Job], on_done: Callable[[], object]) -> None:
        self._box = None
        for job in stopped:
            job.cancel()
        on_done()

    def _discard_and_close(self) -> None:
        self._box = None
        self._unsaved_results.discard()
        self._window.close()

    def _on_answered(self) -> None:
        self._box = None

    def _follow(self, box: QMessageBox, stopped: Sequence[Job], leaving: str) -> None:
        """Update the dialog; close it as accepted when all listed jobs have ended."""
        if box is not self._box:
            return
        if all(job.over for job in stopped):
            box.accept()
        else:
            box.setText(_in_words(stopped, leaving))

    def _on_changed(self) -> None:
        if self._closes_when_saved and not self._unsaved_results.writing:
            self._closes_when_saved = False
            self._window.close()


def _in_words(stopped: Sequence[Job], leaving: str) -> str:
    """State how far the running jobs are, and that leaving stops them."""
    running = [job for job in stopped if not job.over]
    done = " and ".join(f"{job.title} is {percent(job.fraction)} done" for job in running)
    return f"{done}. {leaving} stops {'it' if len(running) == 1 else 'them'}."
