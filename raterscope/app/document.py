"""The open study of the window: its contents in memory, and one thread that owns the file.

Nothing here waits for the disk. Requests run in the thread of the study. When the result is on disk, a signal
reports it and the contents in memory are updated. The window shows as done only what is on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Qt, Signal

from raterscope.algorithms.progress import Watch, part
from raterscope.app.errors import InputError, UnwrittenError
from raterscope.app.jobs import Job, Jobs, Lane
from raterscope.app.program_files import FileState

if TYPE_CHECKING:
    from raterscope.algorithms.image_display import Displays
    from raterscope.app.contents import Chosen, Contents, Journal, Written
    from raterscope.app.review import Decision, ReviewState
    from raterscope.app.study import RunEntry, Study
    from raterscope.app.study.records import Item


@dataclass(frozen=True, eq=False)
class Unsaved:
    """A result in memory that could not be stored in its study."""

    study: Path
    title: str  # title of the job that stores it
    what: str  # noun phrase of the result
    store: Callable[[Study, Watch], Any]  # ``store(study, watch)`` writes it, in the study's thread
    done: Callable[[Any], object]  # called with the result
    why: str = ""  # why it was not stored, in a sentence


class Document(QObject):
    """The open study, or none."""

    replaced = Signal()  # another study is open, or none: redraw everything
    changed = Signal()  # images, annotations or runs were added or removed
    writing_changed = Signal()  # a decision is being written, or was
    decided = Signal(object)  # a decision is on disk
    names_changed = Signal()  # the names of annotators are hidden, or shown again
    refused = Signal(str)  # why a request failed, in a sentence
    # a result that the study could not store, even if the study was closed since; keep the result until it is
    # saved
    unsaved = Signal(object)
    run_chosen = Signal()  # another run was selected, and the choice is on disk
    radius_changed = Signal()  # the matching radius was changed, and is on disk
    kept = Signal(bool)  # whether `keep` could store a result
    file_state_changed = Signal(object)  # the state of the file or its location has changed; see `file_state`
    followed = Signal(object, object)  # the study was reopened at another location
    import_undo_requested = Signal()  # the user must confirm that the last import is undone

    _file_state_read = Signal(object, object)

    def __init__(self, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.contents: Contents | None = None
        self.prepare: Callable[[Contents, Callable[[], object]], object] = lambda _contents, show: show()
        """``prepare(contents, show)`` calls ``show()`` once the screen is ready for an opened study."""
        self._jobs = jobs
        self._lane: Lane | None = None
        self._finishing: list[tuple[Path, Lane]] = []
        """Studies that were closed in the window while work on them continues."""
        self._beside: list[Lane] = []
        """Threads that read copies of studies."""
        self._keeping = 0
        self.writing = 0
        """Number of decisions that are being written."""
        self._study: Study | None = None
        self._journal: Journal | None = None
        self.opening = False
        """True while a study is being opened or created."""
        self.file_state = FileState()
        self._file_state_read.connect(self._on_file_state_read, Qt.ConnectionType.QueuedConnection)
        self._hiding: frozenset[str] = frozenset()
        """Workspaces that currently hide the names of annotators."""

    @property
    def numbers(self) -> Mapping[str, int]:
        """Number of each annotator in the study; empty if no study is open."""
        return {} if self.contents is None else self.contents.numbers

    @property
    def review(self) -> ReviewState:
        """State that follows from the decisions; nothing is decided if no study is open."""
        from raterscope.app.review import ReviewState

        return ReviewState() if self.contents is None else self.contents.review

    @property
    def undo_text(self) -> tuple[str, str]:
        """Describe what Undo and Redo change next; empty for nothing."""
        contents = self.contents
        if contents is None:
            return "", ""
        from raterscope.app.review import Decision

        undo, redo = contents.next_undo, contents.review.redoable
        text = contents.text_of(undo) if isinstance(undo, Decision) else undo.in_words() if undo else ""
        return text, contents.text_of(redo) if redo else ""

    def items(self, kind: str) -> tuple[Item, ...]:
        """List the images or questions of a kind; none if no study is open."""
        return () if self.contents is None else self.contents.of(kind)

    def runs_of(self, kind: str) -> tuple[RunEntry, ...]:
        """List the runs of a kind, the oldest first; none if no study is open."""
        return () if self.contents is None else self.contents.runs_of(kind)

    def open(self, path: Path, *, create: bool = False) -> None:
        """Open or create a study and replace the present one, which stays open on failure."""
        closing = [lane for left, lane in self._finishing if left.resolve() == path.resolve()]
        self._open(path, create, closing)

    def follow(self, path: Path) -> None:
        """Reopen the study at another path after it was moved."""
        if self.contents is not None:
            before = self.contents.path
            self.leave()
            self._open(path, False, [finishing for _, finishing in self._finishing])
            self.followed.emit(before, path)

    def _open(self, path: Path, create: bool, before: Sequence[Lane]) -> None:
        self.opening = True
        lane = Lane(f"study {path.name}")
        work = partial(_open, path, create, before, lane, self._emit_file_state)
        job = self._jobs.start(f"Opening {path.name}", work, lane=lane, quiet=True)
        job.finished.connect(partial(self._on_opened, lane))
        job.failed.connect(partial(self._on_not_opened, lane))

    @property
    def keeping(self) -> bool:
        """True while a result is being written, which must be kept in memory if writing fails."""
        return self._keeping > 0

    def leave(self) -> None:
        """Close the study without waiting for pending work, which is done first."""
        self._shut()
        if self.contents is not None:
            self.contents = None
            self.replaced.emit()

    def close(self) -> None:
        """Close all studies and wait for pending work."""
        self._shut()
        for lane in (*self._beside, *(lane for _, lane in self._finishing)):
            lane.wait()
        self._finishing.clear()
        self._beside.clear()
        self.leave()

    def ask(
        self,
        title: str,
        work: Callable[[Study, Watch], Any],
        *,
        quiet: bool = True,
        changes: bool = False,
        costly: bool = False,
    ) -> Job:
        """Run work on the study in its thread; with `changes`, reload the contents afterwards."""
        job = self._ask(title, work, quiet=quiet, changes=changes, costly=costly)
        job.failed.connect(self.refused)
        return job

    def keep(self, unsaved: Unsaved, *, quiet: bool = True, costly: bool = False) -> Job:
        """Store a result in the study; if that fails, the signal `unsaved` returns it."""
        job = self._ask(unsaved.title, unsaved.store, quiet=quiet, changes=True, costly=costly)
        self._keeping += 1
        job.finished.connect(unsaved.done)
        job.failed.connect(partial(self._on_not_kept, job, unsaved))
        job.ended.connect(partial(self._on_kept, job))
        return job

    def _ask(
        self, title: str, work: Callable[[Study, Watch], Any], *, quiet: bool, changes: bool, costly: bool
    ) -> Job:
        study, lane = self._study, self._lane
        if study is None or lane is None:
            raise RuntimeError("no study is open")
        job = self._jobs.start(title, partial(work, study), lane=lane, quiet=quiet, costly=costly)
        if changes:
            job.finished.connect(self._read_again)
        return job

    def read_beside(
        self, title: str, work: Callable[[Study, Watch], Any], *, quiet: bool = False, lasting: bool = False
    ) -> Job:
        """Read a copy of the study in a separate thread, as a job that can be cancelled.

        This is for long work; meanwhile the study's thread shows images and writes decisions.

        `work`: called with the copy.
        `lasting`: whether it writes a file; stopping the job then needs a confirmation.
        """
        if self._study is None:
            raise RuntimeError("no study is open")
        lane = Lane(title) if lasting else None
        reading = partial(_read_copy, self._study, work)
        job = self._jobs.start(title, reading, lane=lane, quiet=quiet, costly=lasting)
        job.failed.connect(self.refused)
        if lane is not None:
            lane.finish()
            self._beside = [*(earlier for earlier in self._beside if not earlier.over), lane]
        return job

    def record(self, decision: Decision) -> Job:
        """Write a decision. The signal `decided` reports when it is on disk."""
        return self._write(lambda _state: decision)

    def choose_run(self, kind: str, run: int | None) -> None:
        """Show a run of a kind, or the latest of each item; exports and reports follow."""
        from raterscope.app.contents import choose_run

        journal, contents = self._journal, self.contents
        if journal is None or contents is None:
            raise RuntimeError("no study is open")
        work = partial(choose_run, journal, kind, run, contents.runs)
        job = self.ask("Choosing a run", work)
        job.finished.connect(partial(self._on_chosen, journal))

    def set_matching_radius(self, radius: float) -> None:
        """Set the radius, in pixels, within which detections match true points; reports use it too."""
        from raterscope.app.contents import set_matching_radius

        job = self.ask("Setting the matching radius", partial(set_matching_radius, radius))
        job.finished.connect(partial(self._on_radius, self._journal))

    @property
    def displays(self) -> Displays:
        """Displays of image channels that differ from the default; none without a study."""
        return {} if self.contents is None else self.contents.displays

    @displays.setter
    def displays(self, displays: Displays) -> None:
        if self.contents is not None:
            self.contents = replace(self.contents, displays=displays)

    def store_displays(self) -> None:
        """Store the displays of image channels; reports use them too."""
        from raterscope.app.contents import set_displays

        self.ask("Storing the contrast", partial(set_displays, self.displays))

    def hide_names(self, hidden: bool, by: str) -> None:
        """Hide or show the names of annotators in descriptions of decisions.

        `by`: the workspace that hides or shows them; they are hidden as long as any workspace hides them.
        """
        self._hiding = self._hiding | {by} if hidden else self._hiding - {by}
        hidden = bool(self._hiding)
        if self.contents is not None and hidden != self.contents.hidden:
            self.contents = replace(self.contents, hidden=hidden)
            self.names_changed.emit()

    def undo(self) -> None:
        """Undo the last decision in effect, by a decision too; or request to undo an import after it."""
        from raterscope.app import review

        last = None if self.contents is None else self.contents.last_import
        first = 0 if last is None else last.decisions[1]

        def undo(state: ReviewState) -> Decision | None:
            # The second of two quick undos may otherwise pass the import.
            is_later = state.undoable is not None and state.undoable.id > first
            return review.undo(state) if is_later else None

        if last is not None and self.contents is not None and self.contents.next_undo is last:
            self.import_undo_requested.emit()
        elif self._study is not None:
            self._write(undo)

    def redo(self) -> None:
        """Redo the last undone decision."""
        from raterscope.app import review

        if self._study is not None:
            self._write(review.redo)

    def _on_not_kept(self, job: Job, unsaved: Unsaved, sentence: str) -> None:
        raised = job.raised or Exception
        if issubclass(raised, InputError) and not issubclass(raised, UnwrittenError):
            self.refused.emit(sentence)  # it can never be stored
        else:
            self.unsaved.emit(replace(unsaved, why=sentence))

    def _on_kept(self, job: Job) -> None:
        self._keeping -= 1
        self.kept.emit(job.state == "done")

    def _write(self, make: Callable[[ReviewState], Decision | None]) -> Job:
        from raterscope.app.contents import write_decision

        journal = self._journal
        if journal is None:
            raise RuntimeError("no study is open")
        job = self.ask("Writing a decision", partial(write_decision, journal, make))
        job.finished.connect(partial(self._on_written, journal))
        job.ended.connect(partial(self._count_writing, -1))
        self._count_writing(1)
        return job

    def _count_writing(self, change: int) -> None:
        self.writing += change
        self.writing_changed.emit()

    def _shut(self) -> None:
        """Request the study's thread to finish its work, close the file and end, without waiting."""
        study, lane = self._study, self._lane
        self._study = self._lane = self._journal = None
        if self.file_state != FileState():
            self.file_state = FileState()
            self.file_state_changed.emit(self.file_state)
        self._finishing = [(path, earlier) for path, earlier in self._finishing if not earlier.over]
        if study is not None and lane is not None:
            job = self._jobs.start("Closing the study", partial(_close, study, lane), lane=lane, quiet=True)
            job.failed.connect(self.refused)
            lane.finish()
            self._finishing.append((study.path, lane))

    def _on_opened(self, lane: Lane, answer: tuple[Study, Journal, Contents]) -> None:
        self.prepare(answer[2], partial(self._replace, lane, answer))

    def _replace(self, lane: Lane, answer: tuple[Study, Journal, Contents]) -> None:
        self.opening = False
        self._shut()
        self._lane = lane
        self._study, self._journal, self.contents = answer
        self.replaced.emit()

    def _on_not_opened(self, lane: Lane, sentence: str) -> None:
        self.opening = False
        lane.close()
        self.refused.emit(sentence)

    def _emit_file_state(self, lane: Lane, file_state: FileState) -> None:
        """Emit a change of the file's state from the study's thread."""
        with suppress(RuntimeError):  # the program is at its end, and this object with it
            self._file_state_read.emit(lane, file_state)

    def _on_file_state_read(self, lane: Lane, file_state: FileState) -> None:
        if lane is self._lane:
            self.file_state = file_state
            self.file_state_changed.emit(file_state)

    def _read_again(self) -> None:
        from raterscope.app.contents import read_contents

        if self._journal is not None:
            job = self.ask("Reading the study", partial(read_contents, self._journal))
            job.finished.connect(self._on_read)

    def _on_read(self, contents: Contents) -> None:
        if self.contents is not None and contents.path == self.contents.path:
            kept = self.contents
            self.contents = replace(contents, hidden=kept.hidden, displays=kept.displays)
            self.changed.emit()

    def _on_chosen(self, journal: Journal, choice: Chosen) -> None:
        if self.contents is not None and journal is self._journal:
            self.contents = replace(self.contents, chosen=choice.chosen, stale=choice.stale)
            self.run_chosen.emit()

    def _on_radius(self, journal: Journal | None, radius: float) -> None:
        if self.contents is not None and journal is self._journal:
            self.contents = replace(self.contents, matching_radius=radius)
            self.radius_changed.emit()

    def _on_written(self, journal: Journal, written: Written | None) -> None:
        from raterscope.app.review import GroupsSubject

        if self.contents is None or written is None or journal is not self._journal:
            return
        self.contents = replace(
            self.contents, decisions=written.decisions, review=written.state, stale=written.stale
        )
        target = self.contents.target(written.decision)
        if target is not None and isinstance(target.subject, GroupsSubject):
            self._read_again()
        self.decided.emit(written.decision)


def _open(
    path: Path,
    create: bool,
    before: Sequence[Lane],
    lane: Lane,
    report: Callable[[Lane, FileState], object],
    watch: Watch,
) -> tuple[Study, Journal, Contents]:
    from raterscope.app.contents import open_study

    for earlier in before:  # it is being closed; only one process can have it open
        earlier.wait()
    opened = open_study(path, create, watch)
    lane.rest = _idle_work(opened[0], partial(report, lane))
    return opened


def _idle_work(study: Study, report: Callable[[FileState], object]) -> Callable[[], None]:
    """Return the idle work of the study's thread; ``tell(file_state)`` reports changes of the state."""
    reported = FileState()

    def rest() -> None:
        nonlocal reported
        file_state = study.rest()
        if file_state != reported:
            reported = file_state
            report(file_state)

    return rest


def _read_copy(study: Study, work: Callable[[Study, Watch], Any], watch: Watch) -> Any:
    with study.copy(part(watch, 0.0, 0.0)) as copy:
        return work(copy, watch)


def _close(study: Study, lane: Lane, _watch: Watch) -> None:
    lane.rest = None
    study.close()
