"""What the expert said that structures of masks stand for."""

from __future__ import annotations

from collections.abc import Sequence

from raterscope.app.coding import Coding
from raterscope.app.review.decision import Decision
from raterscope.app.review.journal import ReviewState
from raterscope.app.review.subjects import StructureSubject

__all__ = ["described_structures"]


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
