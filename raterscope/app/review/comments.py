"""Comments and bookmarks on spots, regions, tasks, annotators of pairs, and whole images or questions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from raterscope.app.review.decision import Decision

Box = tuple[int, int, int]

_NEAR = 3.0
"""Pixels within which a spot of another run has the comment or bookmark of a spot."""
_NOUNS = {"clicks": "image", "masks": "case", "labels": "question", "pairs": "question"}
_NAMED = {"labels": "task", "pairs": "annotator"}
_WORDS = {
    "comment": "comment on",
    "uncomment": "remove the comment on",
    "bookmark": "bookmark",
    "unbookmark": "remove the bookmark of",
}


@dataclass(frozen=True, kw_only=True)
class CommentSubject:
    """What a comment or a bookmark is on; the text of a comment is the reason of the decision."""

    form: ClassVar[str] = "comment"
    verbs: ClassVar[tuple[str, ...]] = tuple(_WORDS)

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
        """Describe the decision: "comment on spot 12", "remove the bookmark of the image"."""
        return f"{_WORDS[verb]} {self.noun()}"

    @property
    def box(self) -> tuple[Box, Box] | None:
        """Origin and shape of a region; None for other subjects."""
        if len(self.origin) != 3 or len(self.shape) != 3:
            return None
        (slice_, row, column), (slices, rows, columns) = self.origin, self.shape
        return (slice_, row, column), (slices, rows, columns)

    def noun(self) -> str:
        """Name the subject: "spot 12", "liver, region 3", "task t7", "the image"."""
        if self.x is not None:
            return "a spot" if self.number is None else f"spot {self.number}"
        if self.of == "masks" and self.name:
            return self.name if self.number is None else f"{self.name}, region {self.number}"
        return f"{_NAMED[self.of]} {self.name}" if self.name else f"the {_NOUNS[self.of]}"

    def matches(self, other: CommentSubject) -> bool:
        """Return whether another subject of the same item is the same spot, region, task or item.

        Boxes of one region share half of what they cover together, or more.
        """
        if self.name != other.name or (self.x is None) != (other.x is None):
            return False
        if self.x is not None and self.y is not None and other.x is not None and other.y is not None:
            return math.hypot(self.x - other.x, self.y - other.y) <= _NEAR
        if len(self.origin) != len(other.origin):
            return False
        sides = zip(self.origin, self.shape, other.origin, other.shape, strict=True)
        shared = math.prod(max(0, min(a + size, b + length) - max(a, b)) for a, size, b, length in sides)
        return 2 * shared >= math.prod(self.shape) + math.prod(other.shape) - shared


def last_comments(decisions: Iterable[Decision]) -> list[Decision]:
    """Return the last comment and the last bookmark of each subject of an item, the oldest first."""
    last: list[Decision] = []
    for decision in decisions:
        subject = decision.subject
        if isinstance(subject, CommentSubject):
            last = [other for other in last if not (_is_on(other, subject) and _alike(other, decision))]
            last.append(decision)
    return last


def find_comment(comments: Sequence[Decision], subject: CommentSubject) -> str:
    """Return the text of the comment on a subject; empty without one."""
    return next((each.reason for each in reversed(comments) if _is_on(each, subject)), "")


def is_bookmarked(bookmarks: Sequence[Decision], subject: CommentSubject) -> bool:
    """Return whether one of the bookmarks is on a subject."""
    return any(_is_on(bookmark, subject) for bookmark in bookmarks)


def counts_by_name(comments: Sequence[Decision], bookmarks: Sequence[Decision]) -> dict[str, dict[str, int]]:
    """Return the number of comments and of bookmarks on each named subject of a question."""
    counts: dict[str, dict[str, int]] = {}
    for key, notes in (("comments", comments), ("bookmarks", bookmarks)):
        for note in notes:
            if isinstance(note.subject, CommentSubject) and note.subject.name:
                counts.setdefault(note.subject.name, {})[key] = 1
    return counts


def _alike(decision: Decision, other: Decision) -> bool:
    """Return whether two decisions are both about a comment, or both about a bookmark."""
    return decision.verb.removeprefix("un") == other.verb.removeprefix("un")


def _is_on(decision: Decision, subject: CommentSubject) -> bool:
    return isinstance(decision.subject, CommentSubject) and decision.subject.matches(subject)
