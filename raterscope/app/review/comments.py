"""Comments of the expert on spots, regions, tasks, annotators of pairs, and whole images or questions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from raterscope.app.review.decision import Decision

_NEAR = 3.0
"""Pixels within which a spot of another run has the comment of a spot."""
_NOUNS = {"clicks": "image", "masks": "case", "labels": "question", "pairs": "question"}
_NAMED = {"labels": "task", "pairs": "annotator"}


@dataclass(frozen=True, kw_only=True)
class CommentSubject:
    """What a comment is on; its text is the reason of the decision."""

    form: ClassVar[str] = "comment"
    verbs: ClassVar[tuple[str, ...]] = ("comment", "uncomment")

    of: str  # kind of annotation
    name: str = ""  # name of the structure, task or annotator; empty for a spot, an image or a question
    number: int | None = None  # number of a spot or region on screen
    # x, y: position of a spot, pixels
    x: float | None = None
    y: float | None = None
    # origin, shape: box of a region, voxels; empty for other subjects
    origin: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.of not in _NOUNS:
            raise ValueError(f"a comment on {self.of!r}; expected one of {', '.join(_NOUNS)}.")

    @property
    def kind(self) -> str:
        """Kind of annotation."""
        return self.of

    def refuse(self, _verb: str) -> str | None:
        """Name the missing field for a verb; None if complete."""
        return None

    def in_words(self, verb: str) -> str:
        """Describe the decision: "comment on spot 12", "remove the comment on the image"."""
        words = "comment on" if verb == "comment" else "remove the comment on"
        return f"{words} {self.noun()}"

    def noun(self) -> str:
        """Name the subject: "spot 12", "liver, region 3", "task t7", "the image"."""
        if self.x is not None:
            return "a spot" if self.number is None else f"spot {self.number}"
        if self.of == "masks" and self.name:
            return self.name if self.number is None else f"{self.name}, region {self.number}"
        return f"{_NAMED[self.of]} {self.name}" if self.name else f"the {_NOUNS[self.of]}"

    def matches(self, other: CommentSubject) -> bool:
        """Return whether another subject of the same item is the same spot, region, task or item."""
        if self.name != other.name or (self.x is None) != (other.x is None):
            return False
        if self.x is not None and self.y is not None and other.x is not None and other.y is not None:
            return math.hypot(self.x - other.x, self.y - other.y) <= _NEAR
        if len(self.origin) != len(other.origin):
            return False
        sides = zip(self.origin, self.shape, other.origin, other.shape, strict=True)
        return all(a < b + length and b < a + size for a, size, b, length in sides)


def last_comments(decisions: Iterable[Decision]) -> list[Decision]:
    """Return the last decision on each commented subject of an item, the oldest first."""
    last: list[Decision] = []
    for decision in decisions:
        subject = decision.subject
        if isinstance(subject, CommentSubject):
            last = [other for other in last if not _is_on(other, subject)] + [decision]
    return last


def find_comment(comments: Sequence[Decision], subject: CommentSubject) -> str:
    """Return the text of the comment on a subject; empty without one."""
    return next((each.reason for each in reversed(comments) if _is_on(each, subject)), "")


def _is_on(decision: Decision, subject: CommentSubject) -> bool:
    return isinstance(decision.subject, CommentSubject) and decision.subject.matches(subject)
