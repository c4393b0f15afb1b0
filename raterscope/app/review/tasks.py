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
    """The decisions on the subjects of one item, in the order in which they were made.

    A subject is what a decision is about: a spot, a region of a run, a task, an annotator.
    """

    def __init__(self) -> None:
        self._said: dict[Hashable, dict[int, str]] = {}
        self._subjects: Counter[int] = Counter()
        """On how many subjects each decision is still in effect."""
        self._idle: set[int] = set()

    def add(self, subject: Hashable, decision: int, verb: str, over: Collection[str] | None = None) -> None:
        """Put a decision on top of those before it on the same subject.

        To skip a subject that is settled changes nothing.

        Parameters
        ----------
        subject : hashable
        decision : int
        verb : str
        over : collection of str, optional
            The verbs of earlier decisions that it supersedes; None for all.
        """
        said = self._said.setdefault(subject, {})
        if verb == SKIP and any(earlier != SKIP for earlier in said.values()):
            self._idle.add(decision)
            return
        superseded = [one for one, earlier in said.items() if over is None or earlier in over]
        for one in superseded:
            del said[one]
            self._subjects[one] -= 1
        if decision not in said:
            self._subjects[decision] += 1
        said[decision] = verb

    def supersede(self, subjects: Collection[Hashable]) -> None:
        """Let no decision on some subjects be in effect any longer."""
        for subject in subjects:
            for one in self._said.pop(subject, {}):
                self._subjects[one] -= 1

    def subjects(self) -> list[Hashable]:
        """List the subjects."""
        return list(self._said)

    def settled(self) -> Iterator[Hashable]:
        """Return the subjects on which more was decided than to skip them."""
        return (subject for subject, said in self._said.items() if any(one != SKIP for one in said.values()))

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
    """What stands of a task: its class, in words, and the decision that says so."""

    label: str
    decision: int


class TasksOfQuestion:
    """The tasks of a question that the expert has judged, while the journal is read; the last word counts."""

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
        """Return what a fusion is held to, to be compared."""
        return {task: decided.label for task, decided in self.tasks.items()}

    def settled_subjects(self) -> tuple[str, ...]:
        """Say how many tasks are settled."""
        return (counted(len(self.tasks), "task"),) if self.tasks else ()

    def undone_since(self, now: TasksOfQuestion | None, _dead: Container[int]) -> list[int]:
        """Name the decisions on tasks that nothing settles now."""
        there = {} if now is None else now.tasks
        return [one.decision for task, one in self.tasks.items() if task not in there]


@dataclass(frozen=True)
class Judged:
    """What stands of an annotator: flag or clear, why, and the decision that says so."""

    verb: str
    reason: str
    decision: int


class BiasesOfQuestion:
    """The annotators of a question that the expert has judged, while the journal is read; the last counts."""

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
        """Return what a fusion is held to: nothing, for the ranking beside it follows without one."""
        return None

    def settled_subjects(self) -> tuple[str, ...]:
        """Say on what a fusion is held fixed: on nothing."""
        return ()

    def undone_since(self, _now: BiasesOfQuestion | None, _dead: Container[int]) -> list[int]:
        """Name the decisions that a fusion was held to and that were undone: a fusion is held to none."""
        return []


def described_structures(decisions: Sequence[Decision], state: ReviewState) -> dict[str, Coding]:
    """Read off the journal what each structure was described as; the last decision in effect counts.

    Parameters
    ----------
    decisions : sequence of Decision
        All of them, in order.
    state : ReviewState
        What they amount to.
    """
    return {
        one.subject.structure: one.subject.coding
        for one in decisions
        if isinstance(one.subject, StructureSubject) and state.in_effect(one.id)
    }
