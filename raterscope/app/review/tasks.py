"""What was decided on the tasks of a question."""

from __future__ import annotations

from dataclasses import dataclass

from raterscope.app.review.decision import Decision
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

    def take(self, decision: Decision, _item: int) -> None:
        """Let a decision in effect change what is decided."""
        subject = decision.subject
        if not isinstance(subject, TaskSubject):
            return
        if decision.verb == "skip":
            self.skipped.add(subject.task)
        else:
            self.tasks[subject.task] = DecidedTask(subject.label, decision.id)
            self.skipped.discard(subject.task)

    def fixed(self) -> object:
        """Give what a fusion is held to, to be compared."""
        return {task: decided.label for task, decided in self.tasks.items()}
