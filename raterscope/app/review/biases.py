"""What was decided on the annotators of a question of pairs."""

from __future__ import annotations

from dataclasses import dataclass

from raterscope.app.review.decision import Decision
from raterscope.app.review.subjects import BiasSubject

__all__ = ["BiasesOfQuestion", "Judged"]


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

    def take(self, decision: Decision, _item: int) -> None:
        """Let a decision in effect change what is decided."""
        if isinstance(decision.subject, BiasSubject) and decision.verb != "skip":
            judged = Judged(decision.verb, decision.reason, decision.id)
            self.judged[decision.subject.annotator] = judged

    def fixed(self) -> object:
        """Give what a fusion is held to: nothing, for the ranking beside it follows without one."""
        return None
