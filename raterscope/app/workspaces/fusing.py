"""Fusing in the background: inputs from the study, work in a thread, the whole run back into it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from PySide6.QtCore import QObject, Signal

from raterscope.algorithms.progress import Watch
from raterscope.app.document import Document, Unsaved
from raterscope.app.errors import InputError, plain
from raterscope.app.jobs import Job, Jobs
from raterscope.app.outcome import Outcome
from raterscope.app.session import LatestTask
from raterscope.app.study import Study

__all__ = ["Fusing", "FusionWork"]


class Inputs(Protocol):
    """What a run is made from."""

    @property
    def items(self) -> Mapping[str, int]:
        """The items' names and numbers."""


class Answer(Protocol):
    """What a run came to."""

    @property
    def outcomes(self) -> Mapping[str, Outcome[Any]]:
        """What became of each item, by its name."""


class Draft(Protocol):
    """What the fusion of an item has come to, while it is at work."""

    @property
    def item(self) -> str:
        """The item's name."""


@dataclass(frozen=True)
class FusionWork:
    """The three steps of a run of one kind.

    Attributes
    ----------
    kind, noun : str
        What is fused, and what one item of it is called.
    gather : callable
        ``gather(items, study, watch)`` reads the input in the study's thread.
    fuse : callable
        ``fuse(inputs, watch)`` gives the answer, in a thread of its own.
    keep : callable
        ``keep(answer, study, watch)`` stores the run and gives its number.
    """

    kind: str
    noun: str
    gather: Callable[[Sequence[int], Study, Watch], Inputs]
    fuse: Callable[[Inputs, Watch], Answer]
    keep: Callable[[Any, Study, Watch], int]


class Fusing(QObject):
    """One fusion at a time; a new one takes the place of the one under way.

    Signals
    -------
    changed(Job or None)
        The fusion under way, or that there is none.
    partial(item, Draft)
        What the fusion of an item has come to.
    stored(int)
        The run that is now in the study.
    said(str), refused(str)
        How it ended, where it was not as wished.
    """

    changed = Signal(object)
    partial = Signal(int, object)
    stored = Signal(int)
    said = Signal(str)
    refused = Signal(str)

    def __init__(self, document: Document, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._document = document
        self._jobs = jobs
        self._job: Job | None = None
        self._reading, self._task = LatestTask(), LatestTask()

    @property
    def job(self) -> Job | None:
        """The fusion under way."""
        return self._job

    def start(self, work: FusionWork, items: Sequence[int]) -> None:
        """Fuse items, in this order."""
        self.forget()
        reading = self._document.ask(f"Reading the {work.kind}", partial(work.gather, tuple(items)))
        self._reading.follow(reading, partial(self._on_gathered, work))

    def cancel(self) -> None:
        """Stop the fusion under way; the study stays as it was."""
        self._reading.cancel()
        self._task.stop()

    def forget(self) -> None:
        """Stop the fusion under way without a word: its study is left, or another takes its place."""
        self._reading.cancel()
        self._task.cancel()
        if self._job is not None:
            self._end()

    def _on_gathered(self, work: FusionWork, inputs: Inputs) -> None:
        title = f"Fusing {_of(list(inputs.items), work.noun)}"
        job = self._jobs.start(title, partial(_fuse, work, inputs), costly=True)
        self._job = job
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
        assert contents is not None  # else it had been forgotten
        what = f"the finished fusion of {_of(list(answer.outcomes), work.noun)}"
        keep = partial(work.keep, answer)
        self._document.keep(Unsaved(contents.path, "Keeping the run", what, keep, self._on_stored))
        self._end()

    def _on_stored(self, run: int) -> None:
        self.stored.emit(run)

    def _end(self) -> None:
        self._job = None
        self.changed.emit(None)

    def _on_stopped(self, job: Job) -> None:
        self._end()
        if job.state == "failed":
            self.refused.emit(job.error)
        else:
            self.said.emit("The fusion was cancelled; the study is as it was.")


class _NothingFusedError(InputError):
    """No item could be fused; `details` is the program's own account of the first failure."""

    def __init__(self, failed: Sequence[Outcome[Any]]) -> None:
        super().__init__(_in_words(failed))
        self.details = failed[0].details


def _of(names: Sequence[str], noun: str) -> str:
    return plain(names[0]) if len(names) == 1 else f"{len(names):,} {noun}s"


def _failed(answer: Answer) -> list[Outcome[Any]]:
    return [outcome for outcome in answer.outcomes.values() if outcome.fusion is None]


def _in_words(failed: Sequence[Outcome[Any]]) -> str:
    others = f" {len(failed) - 1} more failed too." if len(failed) > 1 else ""
    return f"{failed[0].item} could not be fused: {failed[0].problem}{others}"


def _fuse(work: FusionWork, inputs: Inputs, watch: Watch) -> Answer:
    answer = work.fuse(inputs, watch)
    failed = _failed(answer)
    if len(failed) == len(answer.outcomes):
        raise _NothingFusedError(failed)
    return answer
