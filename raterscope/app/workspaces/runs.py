"""Runs of a workspace: start, progress, list, repetition, restoring and deletion."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from PySide6.QtCore import QObject, Signal

from raterscope.algorithms.progress import Watch
from raterscope.algorithms.settings import SettingsError
from raterscope.app.document import Document, Unsaved
from raterscope.app.errors import InputError, plain
from raterscope.app.jobs import Job, Jobs
from raterscope.app.kinds.kind import Plan
from raterscope.app.kinds.registry import KINDS
from raterscope.app.outcome import Outcome
from raterscope.app.review import Decision
from raterscope.app.session import LatestTask, Session
from raterscope.app.study import RunEntry, Study
from raterscope.app.study.records import Item
from raterscope.app.workspaces import run_history
from raterscope.app.workspaces.run_history import RunChanges
from raterscope.widgets.panels.activity_panels import HistoryEntry
from raterscope.widgets.panels.fuse_panel import RunRequest
from raterscope.widgets.parts import Placeholder

if TYPE_CHECKING:
    from raterscope.app.workspaces.screen import WorkspaceScreen


class Inputs(Protocol):
    """Input of a run."""

    @property
    def items(self) -> Mapping[str, int]:
        """The items' names and numbers."""


class Answer(Protocol):
    """Outcome of a run."""

    @property
    def outcomes(self) -> Mapping[str, Outcome[Any]]:
        """Outcomes by name of the item."""


class Draft(Protocol):
    """Partial result of the fusion of an item."""

    @property
    def item(self) -> str:
        """The item's name."""


@dataclass(frozen=True)
class FusionWork:
    """The three steps of a run of one kind."""

    kind: str  # kind of annotation
    # ``gather(items, study, watch)`` reads the input in the study's thread
    gather: Callable[[Sequence[int], Study, Watch], Inputs]
    fuse: Callable[..., Answer]  # ``fuse(inputs, watch=watch)`` returns the answer, in another thread
    # ``keep(answer, study, watch)`` stores the run and returns its number
    keep: Callable[[Any, Study, Watch], int]

    @classmethod
    def of_plan(cls, kind: str, plan: Plan, *, hold_truth: bool) -> FusionWork:
        """Return the work of fusing items of a kind; its functions are loaded outside the GUI thread."""

        def gather(items: Sequence[int], study: Study, watch: Watch) -> Inputs:
            return KINDS[kind].functions.gather(items, study, plan, hold_truth, watch)

        def fuse(inputs: Inputs, watch: Watch) -> Answer:
            return KINDS[kind].functions.fuse(inputs, plan, None, watch)

        def keep(answer: Answer, study: Study, watch: Watch) -> int:
            return KINDS[kind].functions.keep(answer, study, watch)

        return cls(kind, gather, fuse, keep)


class Fusing(QObject):
    """Fusions, one at a time; a new one replaces the current one."""

    changed = Signal(object)  # the current fusion; None at its end
    partial = Signal(int, object)  # item, Draft: partial result of an item
    stored = Signal(int)  # number of the run that was stored
    # message, refused: why the fusion ended without a run
    message = Signal(str)
    refused = Signal(str)

    def __init__(self, document: Document, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._document = document
        self._jobs = jobs
        self.job: Job | None = None
        """The current fusion."""
        self._reading, self._task = LatestTask(), LatestTask()

    def start(self, work: FusionWork, items: Sequence[int]) -> None:
        """Fuse items in the given order."""
        self.forget()
        reading = self._document.ask(f"Reading the {work.kind}", partial(work.gather, tuple(items)))
        self._reading.follow(reading, partial(self._on_gathered, work))

    def cancel(self) -> None:
        """Cancel the current fusion; the study stays unchanged."""
        self._reading.cancel()
        self._task.stop()

    def forget(self) -> None:
        """Cancel the current fusion without a message."""
        self._reading.cancel()
        self._task.cancel()
        if self.job is not None:
            self._end()

    def _on_gathered(self, work: FusionWork, inputs: Inputs) -> None:
        title = f"Fusing {_of(list(inputs.items), work.kind)}"
        job = self._jobs.start(title, partial(_fuse, work, inputs), costly=True)
        self.job = job
        job.partial.connect(partial(self._on_partial, inputs))
        self._task.follow(
            job,
            partial(self._on_fused, work),
            progressed=self.changed.emit,
            stopped=partial(self._on_stopped, job),
        )
        self.changed.emit(job)

    def _on_partial(self, inputs: Inputs, draft: Draft) -> None:
        self.partial.emit(inputs.items[draft.item], draft)

    def _on_fused(self, work: FusionWork, answer: Answer) -> None:
        failed = _failed(answer)
        if failed:
            self.refused.emit(_in_words(failed))
        contents = self._document.contents
        assert contents is not None  # closing the study cancels the fusion
        title = f"the finished fusion of {_of(list(answer.outcomes), work.kind)}"
        keep = partial(work.keep, answer)
        self._document.keep(Unsaved(contents.path, "Keeping the run", title, keep, self.stored.emit))
        self._end()

    def _end(self) -> None:
        self.job = None
        self.changed.emit(None)

    def _on_stopped(self, job: Job) -> None:
        self._end()
        if job.state == "failed":
            self.refused.emit(job.error)
        else:
            self.message.emit("The fusion was cancelled. The study is unchanged.")


class _NothingFusedError(InputError):
    """No item could be fused; `details`: traceback of the first failure."""

    def __init__(self, failed: Sequence[Outcome[Any]]) -> None:
        super().__init__(_in_words(failed))
        self.details = failed[0].details


def _of(names: Sequence[str], kind: str) -> str:
    return plain(names[0]) if len(names) == 1 else f"{len(names):,} {KINDS[kind].nouns.item}s"


def _failed(answer: Answer) -> list[Outcome[Any]]:
    return [outcome for outcome in answer.outcomes.values() if outcome.fusion is None]


def _in_words(failed: Sequence[Outcome[Any]]) -> str:
    more = f" {len(failed) - 1} more failed too." if len(failed) > 1 else ""
    return f"{failed[0].item} could not be fused: {failed[0].problem}{more}"


def _fuse(work: FusionWork, inputs: Inputs, watch: Watch) -> Answer:
    answer = work.fuse(inputs, watch=watch)
    failed = _failed(answer)
    if len(failed) == len(answer.outcomes):
        raise _NothingFusedError(failed)
    return answer


def run_to_repeat(runs: Sequence[RunEntry], chosen: int | None) -> RunEntry | None:
    """Return the run that the next fusion repeats: the chosen one, else the latest with the most items.

    `runs`: runs of one kind, the oldest first. `chosen`: the chosen run.
    """
    chosen_run = next((run for run in runs if run.id == chosen), None)
    return chosen_run or max(runs, key=lambda run: (len(run.items), run.id), default=None)


class RunControl(QObject):
    """Connection of the Fuse panel, the history and the job list of a screen with the document.

    `session`: its `chosen_run` and `run` are set by this class. `kind`: kind of annotation.
    """

    changed = Signal()  # results were added or deleted
    ended = Signal()  # the current fusion ended

    def __init__(
        self, document: Document, jobs: Jobs, screen: WorkspaceScreen, session: Session[Any, Any], kind: str
    ) -> None:
        super().__init__(screen)
        self._document, self._screen, self.session, self.kind = document, screen, session, kind
        self._history_lines: dict[int, HistoryEntry] = {}
        self._history_source: tuple[object, ...] = ()
        self.fusing = Fusing(document, jobs, self)
        self.replaced: int | None = None
        """Run that is not on screen only because a decision that it used was undone."""
        self.changes = RunChanges(document, screen, self)
        self._chosen_before: int | None = None
        """The chosen run when the current fusion started."""
        self._repeated: int | None = None
        """The run whose settings the Fuse panel shows."""
        self.not_included = ""
        """States that the chosen run does not include the item on screen, if it does not."""
        jobs.updated.connect(self._on_job)
        document.names_changed.connect(self.show_history)
        document.changed.connect(self._on_changed)
        document.run_chosen.connect(self._on_run_chosen)
        document.decided.connect(self._on_decided)
        screen.history.undo.clicked.connect(document.undo)
        screen.history.redo.clicked.connect(document.redo)
        screen.job_list.cancel_requested.connect(jobs.cancel)
        screen.fuse_panel.cancel_requested.connect(self.fusing.cancel)
        screen.fuse_panel.runs.chosen.connect(self.choose)
        screen.fuse_panel.runs.delete_requested.connect(self._on_delete_requested)
        self.fusing.changed.connect(self._on_fusing)
        self.fusing.stored.connect(self._on_fused)
        self.fusing.message.connect(screen.message)
        self.fusing.refused.connect(screen.refused)

    def start(self, request: RunRequest, plan: Plan, current: int | None) -> None:
        """Fuse the requested items, the one on screen first, and show the result."""
        entries = self._document.items(self.kind)
        items = [item.id for item in entries if request.all_items or item.id == current]
        if items:
            self._chosen_before = self.session.chosen_run
            self._set_chosen(None)
            self._screen.close_fuse_panel()
            self._screen.message.emit("")  # earlier messages are outdated
            work = FusionWork.of_plan(self.kind, plan, hold_truth=request.hold_truth)
            self.fusing.start(work, sorted(items, key=lambda item: item != current))

    def choose(self, run: int) -> None:
        """Show a run, also in exports and reports, and when the study is opened again."""
        self._set_chosen(run)
        self.session.choose_run(run)

    def run_of(self, item: int) -> int | None:
        """Return the chosen run if it includes an item, else None for the latest."""
        self.not_included = ""
        contents = self._document.contents
        entry = contents.item(self.kind, item) if contents is not None else None
        runs = self._document.runs_of(self.kind)
        run = next((run for run in runs if run.id == self.session.chosen_run), None)
        if run is None or entry is None:
            return None
        if item not in run.items:
            self.not_included = (
                f"The selected run does not include {plain(entry.name)}: its latest run is shown."
            )
            self._screen.message.emit(self.not_included)
            return None
        return run.id

    def show_state(self, state: str, hint: str = "") -> None:
        """Show a state instead of the item and run on screen, and in empty views with a hint.

        An empty state restores the texts of empty views.
        """
        for empty in self._screen.findChildren(Placeholder):
            empty.show_state(f"{state} {hint}".strip())
        if state:
            self._screen.status_changed.emit(state)

    def forget(self) -> None:
        """Start over with another study."""
        self.session.run = None
        self._repeated = None
        self._screen.fuse_panel.set_request(self._screen.fuse_panel.defaults)
        self.fusing.forget()
        self._on_changed()

    def list_runs(self, item: Item, entry: RunEntry | None) -> None:
        """List the runs, mark the run shown, and offer to fuse only the item on screen."""
        contents, self.session.run = self._document.contents, entry
        self._show_replaced(item, entry)
        if contents is not None:
            self._repeat_settings()
            run = None if entry is None else entry.id
            self._screen.fuse_panel.runs.set_runs(run_history.run_lines(contents, self.kind, run))
            self._screen.fuse_panel.set_scope(item.name, len(contents.of(self.kind)))

    def _repeat_settings(self) -> None:
        """Set the Fuse panel to the settings of the run shown, unless the user has changed them."""
        panel, runs = self._screen.fuse_panel, self._document.runs_of(self.kind)
        run = run_to_repeat(runs, self.session.chosen_run)
        if run is None or run.id == self._repeated or panel.edited:
            return
        self._repeated = run.id
        with suppress(SettingsError):  # settings of a stream, or of another version
            panel.set_request(self._screen.request_of(run))

    def show_history(self) -> bool:
        """Show the history; return whether a decision can be undone."""
        contents = self._document.contents
        source = (contents.path, contents.items, contents.hidden) if contents else ()
        if source != self._history_source:
            self._history_lines, self._history_source = {}, source
        self._screen.history.set_entries(
            run_history.history(contents, self._history_lines) if contents else ()
        )
        undo, redo = self._document.undo_text
        self._screen.history.set_undoable(undo, redo)
        return bool(undo)

    def show_outdated(self) -> None:
        """Show whether and why to fuse again."""
        contents = self._document.contents
        text = run_history.outdated_text(contents, self.kind) if contents else ""
        self._screen.fuse_panel.set_changes(text)
        self._screen.stale_changed.emit(text)

    def _set_chosen(self, run: int | None) -> None:
        if run != self.session.chosen_run:
            self.session.chosen_run = run
            self._document.choose_run(self.kind, run)

    def _on_changed(self) -> None:
        contents = self._document.contents
        self.session.chosen_run = None if contents is None else contents.chosen.get(self.kind)

    def _on_run_chosen(self) -> None:
        previous = self.session.chosen_run
        self._on_changed()
        if self.session.chosen_run != previous:  # the study was read meanwhile
            self.session.choose_run(self.session.chosen_run)
        self.show_outdated()

    def _on_decided(self, decision: Decision) -> None:
        """Read the results again after the undo or redo of a decision that a run holds fixed."""
        contents = self._document.contents
        target = None if contents is None else contents.target(decision)
        if contents is None or target is None or target is decision or target.subject is None:
            return
        runs = contents.runs_of(self.kind)
        if target.subject.kind == self.kind and any(run.known >= target.id for run in runs):
            self.session.choose_run(self.session.chosen_run)

    def _show_replaced(self, item: Item, actual: RunEntry | None) -> None:
        """Show a message if another run is shown, because the expected run holds an undone decision fixed."""
        runs = [run.id for run in self._document.runs_of(self.kind) if item.id in run.items]
        self.replaced = None
        if runs and self.fusing.job is None:
            expected = self.session.chosen_run if self.session.chosen_run in runs else runs[-1]
            self.replaced = expected if actual is None or actual.id != expected else None
        self.changes.show_back()
        if self.replaced is not None:
            replacement = "no run" if actual is None else f"run {actual.id}"
            self._screen.message.emit(
                f"Run {self.replaced} used decisions that you have undone: {replacement} is shown instead. "
                "Press Fuse (F5) to fuse again."
            )

    def _on_job(self, job: Job) -> None:
        self._screen.job_list.set_job(run_history.job_line(job))

    def _on_delete_requested(self, run: int) -> None:
        job = self._document.ask("Deleting a run", partial(_delete_run, run), changes=True)
        job.finished.connect(self.changed)

    def _on_fused(self, run: int) -> None:
        self.changes.find(run, self._chosen_before)
        self.changed.emit()

    def _on_fusing(self, job: Job | None) -> None:
        if job is None:
            self._screen.fuse_panel.set_progress(None)
            self.ended.emit()
        else:
            self._screen.fuse_panel.set_progress(job.text, job.fraction, job.seconds_left)
        self._screen.fusing_changed.emit(job)


def _delete_run(run: int, study: Study, watch: Watch) -> None:
    watch(0.0, "deleting a run")
    study.runs.delete(run)
