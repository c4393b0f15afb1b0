"""What was decided on the tasks of a question."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from raterscope.app.errors import counted
from raterscope.app.review.decision import Decision
from raterscope.app.review.last_words import LastWords
from raterscope.app.review.subjects import TaskSubject

__all__ = ["DecidedTask", "TasksOfQuestion"]


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
        """Give what a fusion is held to, to be compared."""
        return {task: decided.label for task, decided in self.tasks.items()}

    def settled_subjects(self) -> tuple[str, ...]:
        """Say how many tasks are settled."""
        return (counted(len(self.tasks), "task"),) if self.tasks else ()

    def undone_since(self, now: TasksOfQuestion | None, _dead: Container[int]) -> list[int]:
        """Name the decisions on tasks that nothing settles now."""
        there = {} if now is None else now.tasks
        return [one.decision for task, one in self.tasks.items() if task not in there]
