"""The open reading file of the window: its state in memory, and one thread that owns the file."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal

from raterscope.algorithms.progress import Watch, part, steps_of
from raterscope.app.errors import InputError
from raterscope.app.formats.images import load_image
from raterscope.app.formats.pyramids import is_large, open_pyramid
from raterscope.app.formats.records import Volume, VolumeFile
from raterscope.app.formats.volumes import load_volume
from raterscope.app.jobs import Job, Jobs, Lane
from raterscope.app.reader_studies.collecting import read_source
from raterscope.app.reader_studies.protocol import Assignment, Picture, ReadingCase, locate_picture
from raterscope.app.reader_studies.reading_file import CaseMarks, Operation, ReadingFile, SessionState, fold
from raterscope.app.session import LatestTask
from raterscope.app.study.references import digest_of_files, has_digest
from raterscope.text import percent

Pixels = Any
"""An image as an array or a `PyramidReader`; a `Volume` for masks."""

_KEPT = 3
"""Number of cases with pixels in memory: the previous one, the one on screen, and the next."""


class Reader(QObject):
    """An open reading file.

    Marks are on disk as soon as they are shown.
    """

    opened = Signal()  # the file is open; `assignment` and `sessions` are set
    refused = Signal(str)  # why a request failed
    not_opened = Signal(str)  # why the file could not be opened
    case_shown = Signal()  # another case is shown; its pixels follow
    pixels_ready = Signal(object)  # pixels of the pictures of the case on screen
    pixels_refused = Signal(str)
    loading = Signal(str)  # progress of a slow load
    marks_changed = Signal()  # marks or progress changed
    session_finished = Signal(int)

    def __init__(self, path: Path, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.path = path
        self._jobs = jobs
        self._lane = Lane(f"reading {path.name}")
        self._file: ReadingFile | None = None
        self._journal: tuple[int, list[Operation]] = (-1, [])
        """The position marked last and its operations; used only in the lane's thread."""
        self._closed = False
        self.assignment: Assignment | None = None
        self.sessions: list[SessionState] = []
        self.position: int | None = None
        """Position of the case on screen."""
        self.marks = CaseMarks()
        self._loading = LatestTask()
        self._pixels: OrderedDict[str, list[Pixels]] = OrderedDict()
        job = self._ask("Opening", lambda _watch: self._open())
        job.finished.connect(self._on_opened)
        job.failed.connect(self.not_opened)

    # The file

    def _open(self) -> tuple[Assignment, list[SessionState]]:
        self._file = ReadingFile.open(self.path)
        return self._file.assignment, self._file.sessions()

    def _ask(self, title: str, work: Callable[[Watch], Any]) -> Job:
        return self._jobs.start(title, work, lane=self._lane, quiet=True)

    def _on_opened(self, state: tuple[Assignment, list[SessionState]]) -> None:
        self.assignment, self.sessions = state
        self.opened.emit()

    def close(self) -> None:
        """Close the file after everything is written."""
        if self._closed:
            return
        self._closed = True
        self._loading.cancel()
        self._jobs.start("Closing", lambda _watch: self._shut(), lane=self._lane, quiet=True)
        self._lane.close()

    def _shut(self) -> None:
        if self._file is not None:
            self._file.close()

    # Sessions and cases

    @property
    def session(self) -> SessionState | None:
        """Session to read: the first unfinished one; None once all are finished."""
        return next((state for state in self.sessions if state.finished is None), None)

    @property
    def case(self) -> ReadingCase | None:
        """The case on screen."""
        if self.position is None or self.assignment is None:
            return None
        return self.assignment.case(self.assignment.places[self.position].case)

    @property
    def swapped(self) -> bool:
        """Whether the pictures of the pair on screen change sides."""
        return (
            self.position is not None
            and self.assignment is not None
            and (self.assignment.places[self.position].swapped)
        )

    def is_open(self) -> bool:
        """Return whether the session to read may begin now."""
        return self.session is not None and self.session.is_open(datetime.now(UTC))

    def first_unread(self) -> int | None:
        """Return the first unread position of the session."""
        session = self.session
        if session is None:
            return None
        return next((position for position in session.places if position not in session.done), None)

    def go_to(self, position: int) -> None:
        """Show another case of the session."""
        session = self.session
        if session is None or position not in session.places or self._file is None:
            return
        job = self._ask("Reading marks", lambda _watch: self._marks_on(position))
        job.finished.connect(partial(self._show_position, position))
        job.failed.connect(self.refused)

    def _the_file(self) -> ReadingFile:
        if self._file is None:
            raise InputError("is not open", file=self.path)
        return self._file

    def _show_position(self, position: int, marks: CaseMarks) -> None:
        self.position, self.marks = position, marks
        self.case_shown.emit()
        self._load()

    def leave_case(self) -> None:
        """Show no case."""
        self.position, self.marks = None, CaseMarks()
        self._loading.cancel()

    # Pixels

    def _load(self) -> None:
        case = self.case
        if case is None or self.assignment is None:
            return
        self._loading.cancel()
        if case.key in self._pixels:
            self._pixels.move_to_end(case.key)
            self.pixels_ready.emit(self._pixels[case.key])
            self._load_next()
            return
        job = self._jobs.start("Loading a case", self._load_work(case), quiet=True)
        self._loading.follow(
            job, partial(self._on_pixels, case.key), failed=self.pixels_refused.emit,
            progressed=self._on_progress,
        )  # fmt: skip

    def _on_progress(self, job: Job) -> None:
        self.loading.emit(f"{job.text}: {percent(job.fraction)}")

    def _load_work(self, case: ReadingCase) -> Callable[[Watch], list[Pixels]]:
        assert self.assignment is not None
        return partial(_load_case, case, self.path, self.assignment.kind == "masks")

    def _on_pixels(self, key: str, pixels: list[Pixels]) -> None:
        self._keep(key, pixels)
        if self.case is not None and self.case.key == key:
            self.pixels_ready.emit(pixels)
            self._load_next()

    def _load_next(self) -> None:
        """Load the next case in advance."""
        session = self.session
        if self.position is None or session is None or self.position + 1 not in session.places:
            return
        assert self.assignment is not None
        case = self.assignment.case(self.assignment.places[self.position + 1].case)
        if case.key not in self._pixels:
            job = self._jobs.start("Loading the next case", self._load_work(case), quiet=True)
            self._loading.follow(job, partial(self._keep, case.key))

    def _keep(self, key: str, pixels: list[Pixels]) -> None:
        self._pixels[key] = pixels
        self._pixels.move_to_end(key)
        while len(self._pixels) > _KEPT:
            self._pixels.popitem(last=False)

    # Marks

    def record(self, verb: str, detail: dict[str, Any]) -> None:
        """Write a mark on the case on screen, and show it once it is on disk."""
        self._write(lambda file, position: file.record(position, verb, detail))

    def undo(self) -> None:
        """Undo the last mark on the case on screen."""
        self._write(lambda file, position: _undo_mark(file, position, self._marks_on(position).undoable))

    def redo(self) -> None:
        """Repeat the mark that was undone last."""
        self._write(lambda file, position: _undo_mark(file, position, self._marks_on(position).redoable))

    def _marks_on(self, position: int) -> CaseMarks:
        """Return the marks on a position, in the lane: strokes are read from the file once."""
        if self._journal[0] != position:
            self._journal = position, self._the_file().operations(position)
        return fold(self._journal[1])

    def _write(self, change: Callable[[ReadingFile, int], Operation | None]) -> None:
        position = self.position
        if position is None:
            return

        def work(_watch: Watch) -> tuple[CaseMarks, bool]:
            file = self._the_file()
            self._marks_on(position)
            operation = change(file, position)
            if operation is not None:
                self._journal[1].append(operation)
            marks = self._marks_on(position)
            return marks, file.completes(marks)

        job = self._ask("Saving a mark", work)
        job.finished.connect(partial(self._on_written, position))
        job.failed.connect(self.refused)

    def _on_written(self, position: int, answer: tuple[CaseMarks, bool]) -> None:
        marks, done = answer
        self.sessions = [
            replace(state, done=state.done | {position} if done else state.done - {position})
            if position in state.places else state
            for state in self.sessions
        ]  # fmt: skip
        if position == self.position:
            self.marks = marks
        self.marks_changed.emit()

    def add_time(self, position: int, seconds: float) -> None:
        """Add to the time of a case."""
        if not self._closed:
            self._ask("Saving the time", lambda _watch: self._the_file().add_time(position, seconds))

    def finish(self) -> None:
        """Lock the session."""
        session = self.session
        if session is None:
            return

        def work(_watch: Watch) -> list[SessionState]:
            self._the_file().finish(session.session)
            return self._the_file().sessions()

        job = self._ask("Finishing the session", work)
        job.finished.connect(partial(self._on_finished, session.session))
        job.failed.connect(self.refused)

    def _on_finished(self, session: int, sessions: list[SessionState]) -> None:
        self.sessions = sessions
        self.leave_case()
        self.session_finished.emit(session)


def _undo_mark(file: ReadingFile, position: int, target: int | None) -> Operation | None:
    return None if target is None else file.record(position, "undo", {}, target)


def _load_case(case: ReadingCase, file: Path, drawn: bool, watch: Watch) -> list[Pixels]:
    return [_load_picture(picture, file, drawn, step) for picture, step in steps_of(watch, case.pictures)]


def _load_picture(picture: Picture, file: Path, drawn: bool, watch: Watch) -> Pixels:
    """Load an image after a check that it is unchanged since the set-up of the study."""
    path = locate_picture(picture, file)
    if path is None:
        raise InputError(
            "an image of this case was not found; ask the coordinator for it, and put it beside the file",
            file=file,
        )
    watch(0.0, "loading")
    if drawn:
        return _load_drawn(picture, path, watch)
    if not has_digest(path, picture.digest, part(watch, 0.0, 0.2), "loading"):
        raise InputError("an image of this case has changed since the study was set up", file=file)
    if is_large(picture.width, picture.height):
        return open_pyramid(path, None, part(watch, 0.2, 1.0))
    return load_image(path)


def _load_drawn(picture: Picture, path: Path, watch: Watch) -> Volume:
    source = read_source(picture, path, drawn=True)
    same = isinstance(source, VolumeFile) and (
        digest_of_files(source.files, part(watch, 0.0, 0.3)) == picture.digest
    )
    if not isinstance(source, VolumeFile) or not same:
        raise InputError("an image of this case has changed since the study was set up")
    return load_volume(source, part(watch, 0.3, 1.0))
