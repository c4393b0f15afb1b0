"""Decisions on tasks, annotators of pairs and structures, and the last decision on each subject."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from raterscope.app.coding import Coding
from raterscope.app.errors import counted
from raterscope.app.review.decision import Decision
from raterscope.app.review.subjects import BiasSubject, StructureSubject, TaskSubject

if TYPE_CHECKING:
    from raterscope.app.review.journal import ReviewState

SKIP = "skip"


class LastWords:
    """Decisions on the subjects of one item, in their order.

    A subject is what a decision is about: a spot, a region of a run, a task, an annotator.
    """

    def __init__(self) -> None:
        self._said: dict[Hashable, dict[int, str]] = {}
        self._subjects: Counter[int] = Counter()
        """On how many subjects each decision is still in effect."""
        self._idle: set[int] = set()

    def add(self, subject: Hashable, decision: int, verb: str, over: Collection[str] | None = None) -> None:
        """Add the latest decision on a subject.

        To skip a subject that is settled changes nothing.

        Parameters
        ----------
        subject : hashable
        decision : int
        verb : str
        over : collection of str, optional
            The verbs of earlier decisions that it supersedes; None for all.
        """
        verbs = self._said.setdefault(subject, {})
        if verb == SKIP and any(earlier != SKIP for earlier in verbs.values()):
            self._idle.add(decision)
            return
        superseded = [earlier_id for earlier_id, earlier in verbs.items() if over is None or earlier in over]
        for earlier_id in superseded:
            del verbs[earlier_id]
            self._subjects[earlier_id] -= 1
        if decision not in verbs:
            self._subjects[decision] += 1
        verbs[decision] = verb

    def supersede(self, subjects: Collection[Hashable]) -> None:
        """Supersede all decisions on some subjects."""
        for subject in subjects:
            for decision in self._said.pop(subject, {}):
                self._subjects[decision] -= 1

    def subjects(self) -> list[Hashable]:
        """List the subjects."""
        return list(self._said)

    def settled(self) -> Iterator[Hashable]:
        """Return the subjects that are not merely skipped."""
        return (
            subject for subject, verbs in self._said.items() if any(verb != SKIP for verb in verbs.values())
        )

    def verbs(self, subject: Hashable) -> Collection[str]:
        """Return the verbs in effect on a subject."""
        return self._said.get(subject, {}).values()

    def standing(self, decision: int) -> str:
        """Return whether a decision is in effect, superseded, or had no effect."""
        if self._subjects[decision] > 0:
            return "in effect"
        return "no effect" if decision in self._idle else "superseded"


@dataclass(frozen=True)
class DecidedTask:
    """Decided class of a task, and the decision."""

    label: str
    decision: int


class TasksOfQuestion:
    """Judged tasks of a question, collected while the journal is read; the last decision counts."""

    def __init__(self) -> None:
        self.tasks: dict[str, DecidedTask] = {}
        self.skipped: set[str] = set()
        self.words = LastWords()

    def take(self, decision: Decision, _item: int) -> None:
        """Let a decision in effect change what is decided."""
        subject = decision.subject
        if not isinstance(subject, TaskSubject):
            return
        self.words.add(subject.task, decision.id, decision.verb)
        if decision.verb == "skip":
            self.skipped.add(subject.task)
        else:
            self.tasks[subject.task] = DecidedTask(subject.label, decision.id)
            self.skipped.discard(subject.task)

    def fixed(self) -> object:
        """Return the decisions that a fusion holds fixed, for comparison."""
        return {task: decided.label for task, decided in self.tasks.items()}

    def settled_subjects(self) -> tuple[str, ...]:
        """Say how many tasks are settled."""
        return (counted(len(self.tasks), "task"),) if self.tasks else ()

    def undone_since(self, current: TasksOfQuestion | None, _dead: Container[int]) -> list[int]:
        """Name the decisions on tasks that nothing settles now."""
        settled = {} if current is None else current.tasks
        return [decided.decision for task, decided in self.tasks.items() if task not in settled]


@dataclass(frozen=True)
class Judged:
    """Judgement of an annotator (flag or clear), its reason and decision."""

    verb: str
    reason: str
    decision: int


class BiasesOfQuestion:
    """Judged annotators of a question, collected while the journal is read; the last decision counts."""

    def __init__(self) -> None:
        self.judged: dict[str, Judged] = {}
        self.words = LastWords()

    def take(self, decision: Decision, _item: int) -> None:
        """Let a decision in effect change what is decided."""
        if not isinstance(decision.subject, BiasSubject):
            return
        self.words.add(decision.subject.annotator, decision.id, decision.verb)
        if decision.verb != "skip":
            judged = Judged(decision.verb, decision.reason, decision.id)
            self.judged[decision.subject.annotator] = judged

    def fixed(self) -> object:
        """Return None: a fusion of pairs holds nothing fixed."""
        return None

    def settled_subjects(self) -> tuple[str, ...]:
        """Return nothing: a fusion of pairs holds nothing fixed."""
        return ()

    def undone_since(self, _now: BiasesOfQuestion | None, _dead: Container[int]) -> list[int]:
        """Return nothing: a fusion of pairs holds nothing fixed."""
        return []


def described_structures(decisions: Sequence[Decision], state: ReviewState) -> dict[str, Coding]:
    """Read the codings of structures from the journal; the last decision in effect counts.

    Parameters
    ----------
    decisions : sequence of Decision
        All of them, in order.
    state : ReviewState
        What they amount to.
    """
    return {
        decision.subject.structure: decision.subject.coding
        for decision in decisions
        if isinstance(decision.subject, StructureSubject) and state.in_effect(decision.id)
    }
