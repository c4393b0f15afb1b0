"""What is left to be decided in the questions of a study, read apart from the one on screen."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial

from PySide6.QtCore import QObject, Signal

from raterscope.algorithms.progress import Watch
from raterscope.app.contents import Contents
from raterscope.app.disputes import MATTERS
from raterscope.app.document import Document
from raterscope.app.review import ReviewState
from raterscope.app.session import LatestTask
from raterscope.app.study import Study
from raterscope.app.workspaces.order import Part, left_in_words
from raterscope.app.workspaces.runs import Runs
from raterscope.widgets.panels.queue_panel import QueueFrame

__all__ = ["QuestionsLeft"]

Read = Callable[[int, Study], Collection[str] | None]
Settled = Callable[[ReviewState, int], tuple[Collection[str], Collection[str]]]


class QuestionsLeft(QObject):
    """Counts what is disputed in each question and still to be decided, and says so above the queue.

    Parameters
    ----------
    document : Document
    runs : Runs
    queue : QueueFrame
    kind : str
        Of annotation.
    read : callable
        ``read(question, study)`` names the disputed items of a question; None where it is not fused. A
        mapping says how many wrong answers a decision on each is expected to set right.
    settled : callable
        ``settled(review, question)`` names the items that are decided, and those that were skipped.
    noun : str
        What an item is called.
    tip : str
        Definition of the decisions that matter.

    Signals
    -------
    changed
    """

    changed = Signal()

    def __init__(
        self, document: Document, runs: Runs, queue: QueueFrame, kind: str, read: Read, settled: Settled,
        *, noun: str, tip: str = "",
    ) -> None:  # fmt: skip
        super().__init__(runs)
        self._document, self._queue, self._kind = document, queue, kind
        self._read, self._settled = read, settled
        self._noun, self._tip = noun, tip
        self._disputed: Mapping[int, Collection[str] | None] = {}
        self._task = LatestTask()
        self._current: int | None = None
        runs.changed.connect(self.reread)
        runs.chosen.connect(self.reread)

    def reread(self) -> None:
        """Read the results again: others came, went or are shown."""
        self._task.cancel()
        contents = self._document.contents
        if contents is None:
            self._disputed = {}
            self.recount()
            return
        numbers = tuple(one.id for one in contents.of(self._kind))
        job = self._document.ask("Counting what is left", partial(_read_all, self._read, numbers))
        self._task.follow(job, self._on_read)

    def select(self, question: int | None) -> None:
        """Name the question on screen."""
        self._current = question
        self.recount()

    def units(self) -> list[tuple[int, Part]]:
        """List the questions with what is left in each, in their order; those not fused are left out."""
        contents = self._document.contents
        if contents is None:
            return []
        return [
            (one.id, self._part(contents, one.id, disputed))
            for one in contents.of(self._kind)
            if (disputed := self._disputed.get(one.id)) is not None
        ]

    def recount(self) -> None:
        """Say above the queue how far the review has come."""
        contents, units = self._document.contents, dict(self.units())
        of = [one.id for one in contents.of(self._kind)] if contents else []
        words = []
        if units and self._current in of:
            part, place = units.get(self._current), of.index(self._current) + 1
            told = (
                "not fused yet" if part is None else f"{part.total - part.left:,} of {part.total:,} decided"
            )
            words.append(f"Question {place:,} of {len(of):,}: {told}" if len(of) > 1 else told)
        total, left = sum(part.total for part in units.values()), sum(part.left for part in units.values())
        if units:
            words += left_in_words(tuple(units.values()), self._noun)
        self._queue.set_progress((total - left) / total if total else 0.0, *words, tip=self._tip)
        self.changed.emit()

    def nothing_left(self) -> str:
        """Say that nothing is left to go to, or why."""
        contents, units = self._document.contents, self.units()
        if any(part.left for _, part in units):
            return "Nothing else waits for a decision in this study."
        if contents is None or len(units) < len(contents.of(self._kind)):
            return "Nothing fused waits for a decision; press Fuse (F5) for the rest."
        return "Nothing disputed is left in this study."

    def _part(self, contents: Contents, question: int, disputed: Collection[str]) -> Part:
        decided, passed = self._settled(contents.review, question)
        done = sum(name in disputed for name in decided)
        skipped = sum(name in disputed and name not in decided for name in passed)
        matter = None
        if isinstance(disputed, Mapping):
            matter = sum(value >= MATTERS and name not in decided for name, value in disputed.items())
        return Part("", len(disputed), len(disputed) - done - skipped, skipped, matter)

    def _on_read(self, disputed: Mapping[int, Collection[str] | None]) -> None:
        self._disputed = disputed
        self.recount()


def _read_all(
    read: Read, questions: tuple[int, ...], study: Study, watch: Watch
) -> dict[int, Collection[str] | None]:
    found = {}
    for done, question in enumerate(questions):
        watch(done / len(questions), "counting")
        found[question] = read(question, study)
    return found
