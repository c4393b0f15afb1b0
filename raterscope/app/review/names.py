"""Names, comments and bookmarks of the expert, and names of one annotator that they joined.

Stored annotations keep their original names. Annotations that are read from the study have the new names, and
names that became one name are one structure or class. Joined names are one annotator in tables over several
items, and in fusions from then on: two names of one person are not two independent annotators.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from raterscope.app.review.decision import Decision

NOUNS = {"masks": "structure", "clicks": "class"}
Names = Mapping[str, str]
"""The present name of each renamed structure or class, by its name in the files."""


@dataclass(frozen=True, kw_only=True)
class NameSubject:
    """Name of a structure or of a class of clicks in all images: change it, or merge it with another."""

    form: ClassVar[str] = "name"
    verbs: ClassVar[tuple[str, ...]] = ("rename", "merge")

    of: str  # kind of annotation: masks or clicks
    name: str  # present name
    new: str  # new name; the name of another structure or class if both are merged

    def __post_init__(self) -> None:
        if self.of not in NOUNS:
            raise ValueError(f"a name of {self.of!r}; expected one of {', '.join(NOUNS)}.")

    @property
    def kind(self) -> str:
        """Kind of annotation."""
        return self.of

    def refuse(self, _verb: str) -> str | None:
        """Name the missing field for a verb; None if complete."""
        return None if self.name and self.new and self.name != self.new else "another name"

    def in_words(self, verb: str) -> str:
        """Describe the decision: "rename structure gtv to GTV"."""
        return f"{verb} {NOUNS[self.of]} {self.name} {'to' if verb == 'rename' else 'with'} {self.new}"


def read_names(
    decisions: Iterable[Decision], dead: Collection[int] = ()
) -> tuple[dict[str, dict[str, str]], frozenset[int]]:
    """Return the present name of each renamed structure and class by kind, and the mergers in effect.

    `dead`: decisions that were undone.

    Examples
    --------
    >>> from raterscope.app.review.decision import Decision
    >>> first = NameSubject(of="masks", name="GTVp", new="GTV")
    >>> second = NameSubject(of="masks", name="GTV", new="tumour")
    >>> journal = [Decision(verb="merge", id=1, subject=first), Decision(verb="rename", id=2, subject=second)]
    >>> read_names(journal)
    ({'masks': {'GTVp': 'tumour', 'GTV': 'tumour'}}, frozenset({1}))
    """
    names: dict[str, dict[str, str]] = {}
    merged = set()
    for decision in decisions:
        subject = decision.subject
        if not isinstance(subject, NameSubject) or decision.id in dead:
            continue
        of_kind = names.setdefault(subject.of, {})
        of_kind.setdefault(subject.name, subject.name)
        names[subject.of] = {
            original: subject.new if name == subject.name else name for original, name in of_kind.items()
        }
        if decision.verb == "merge":
            merged.add(decision.id)
    renamed = {of: {name: new for name, new in each.items() if name != new} for of, each in names.items()}
    return {of: each for of, each in renamed.items() if each}, frozenset(merged)


Aliases = Mapping[str, str]
"""The main name of each other name of an annotator."""


def read_aliases(decisions: Sequence[Decision], dead: Collection[int] = ()) -> dict[str, str]:
    """Return the main name of each joined name, in the order in which they were joined.

    `dead`: decisions that were undone.

    Examples
    --------
    >>> from raterscope.app.review.decision import Decision
    >>> join = Decision(verb="join", id=1, annotators=("Anna K.", "anna", "u42"))
    >>> read_aliases([join])
    {'anna': 'Anna K.', 'u42': 'Anna K.'}
    >>> read_aliases([join, Decision(verb="separate", id=2, annotators=("u42",))])
    {'anna': 'Anna K.'}
    """
    groups: list[list[str]] = []
    for decision in decisions:
        if decision.verb not in ("join", "separate") or decision.id in dead:
            continue
        names = list(dict.fromkeys(decision.annotators))
        touched = [group for group in groups if not set(names).isdisjoint(group)]
        groups = [group for group in groups if group not in touched]
        if decision.verb == "join":
            groups.append(list(dict.fromkeys([*names, *(name for group in touched for name in group)])))
        else:
            left = [[name for name in group if name not in names] for group in touched]
            groups += [group for group in left if len(group) > 1]
    return {name: group[0] for group in groups for name in group[1:]}


def group_of(name: str, aliases: Aliases) -> tuple[str, ...]:
    """Return all names of an annotator, the main name first.

    Examples
    --------
    >>> group_of("u42", {"anna": "Anna K.", "u42": "Anna K."})
    ('Anna K.', 'anna', 'u42')
    """
    main = aliases.get(name, name)
    return (main, *(alias for alias, of in aliases.items() if of == main))


def groups(aliases: Aliases) -> dict[str, tuple[str, ...]]:
    """Return all names of each joined annotator, by the main name."""
    names_of: dict[str, list[str]] = {}
    for alias, main in aliases.items():
        names_of.setdefault(main, [main]).append(alias)
    return {main: tuple(names) for main, names in names_of.items()}


def all_names(names: Iterable[str], aliases: Aliases) -> tuple[str, ...]:
    """Return names with all other names of the same annotators."""
    if not aliases:
        return tuple(dict.fromkeys(names))
    by_main = groups(aliases)
    mains = (aliases.get(name, name) for name in names)
    return tuple(dict.fromkeys(name for main in mains for name in by_main.get(main, (main,))))


def standing_names(present: Iterable[str], aliases: Aliases) -> dict[str, str]:
    """Return which name stands for each other name of an annotator on an item.

    It is the first of the joined names that marked the item; the main name comes first.

    `present`: the names that marked the item.

    Examples
    --------
    >>> standing_names(["kim", "u42", "anna"], {"anna": "Anna K.", "u42": "Anna K."})
    {'u42': 'anna'}
    """
    if not aliases:
        return {}
    known = set(present)
    standing = {}
    for names in groups(aliases).values():
        marked = [name for name in names if name in known]
        standing.update(dict.fromkeys(marked[1:], marked[0] if marked else ""))
    return standing


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
