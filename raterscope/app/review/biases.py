"""What was decided on the annotators of a question of pairs."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from raterscope.app.review.decision import Decision
from raterscope.app.review.last_words import LastWords
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
        """Give what a fusion is held to: nothing, for the ranking beside it follows without one."""
        return None

    def settled_subjects(self) -> tuple[str, ...]:
        """Say on what a fusion is held fixed: on nothing."""
        return ()

    def undone_since(self, _now: BiasesOfQuestion | None, _dead: Container[int]) -> list[int]:
        """Name the decisions that a fusion was held to and that were undone: a fusion is held to none."""
        return []
