"""One decision of the expert: an entry of the journal.

Its subject belongs to an item: an image of clicks or masks, a question of labels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from raterscope.algorithms.masks.data import Settled
from raterscope.app.review.samples import SampleSubject
from raterscope.app.review.subjects import (
    SUBJECTS,
    BiasSubject,
    CommentSubject,
    GroupsSubject,
    NameSubject,
    SpotsSubject,
    SpotSubject,
    Subject,
    WeightSubject,
)

Find = Callable[[int], "Decision | None"]

_OF_NAMES = ("join", "separate")
_VERBS = {
    "include": "restore",
    "mark": "flag",
    "unmark": "remove the flag of",
    "program": "mark",
    "person": "mark",
}
"""Words on screen for stored verbs that differ from them."""

_ROLES = ("program", "person")

_NEEDED = {
    "exclude": "annotators",
    "include": "annotators",
    "join": "annotators",
    "separate": "annotators",
    "mark": "annotators",
    "unmark": "annotators",
    "program": "annotators",
    "person": "annotators",
    "undo": "undoes",
}
VERBS = frozenset({*_NEEDED, *(verb for subject in SUBJECTS.values() for verb in subject.verbs)})


@dataclass(frozen=True, kw_only=True)
class Decision:
    """One entry of the journal."""

    # one of the subject's verbs; or exclude or include annotators, mark or unmark them for attention, mark
    # them as program or person, join names of one annotator, separate names from the others, or undo a
    # decision
    verb: str
    subject: Subject | None = None  # decided part of the item
    id: int = 0  # counts from 1; 0 until the study has recorded it
    # datetime or None: time of the decision, with time zone; None until the study has recorded it
    at: datetime | None = None
    who: str = ""  # filled with the user's name by the study when it is empty
    item: int | None = None  # number of the item in the study; for several images, of the first
    reason: str = ""
    # annotators to exclude, weight or include; names to join, the main name first, or to separate
    annotators: tuple[str, ...] = ()
    run: int | None = None  # the run whose result was on screen
    about: int | None = None  # an earlier decision on the same subject
    undoes: int | None = None  # the decision that an undo reverts
    voxels: int | None = None  # number in the study of the voxels that it settles
    # those voxels, until the study has recorded them
    settled: Settled | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        needed = _NEEDED.get(self.verb)
        if needed is None:
            self._check_subject()
        elif not getattr(self, needed):
            raise ValueError(f"a decision to {self.verb} needs {needed}.")
        elif self.verb == "join" and len(set(self.annotators)) < 2:
            raise ValueError("a decision to join needs two names or more.")

    @property
    def items(self) -> tuple[int, ...]:
        """Numbers of all items that the decision concerns."""
        if isinstance(self.subject, SpotsSubject):
            return self.subject.images
        return () if self.item is None else (self.item,)

    def _check_subject(self) -> None:
        if self.subject is None:
            if self.verb in VERBS:
                raise ValueError(f"a decision to {self.verb} needs a subject.")
            known = ", ".join(sorted(VERBS))
            raise ValueError(f"{self.verb!r} is not a verb of a decision; expected one of {known}.")
        if self.verb not in self.subject.verbs:
            known = ", ".join(self.subject.verbs)
            raise ValueError(f"{self.verb!r} is not a verb for {self.subject.kind}; expected one of {known}.")
        missing = self._missing() or self.subject.refuse(self.verb)
        if missing:
            raise ValueError(f"a decision to {self.verb} needs {missing}.")

    def _missing(self) -> str:
        """Name the missing field that identifies the subject's owner, if any."""
        if isinstance(self.subject, WeightSubject):
            return "" if self.annotators else "annotators"
        if isinstance(self.subject, (SampleSubject, NameSubject, GroupsSubject)):
            return ""
        return "item" if self.item is None else ""


def in_words(decision: Decision, find: Find | None = None, *, hidden: bool = False) -> str:
    """Describe a decision: "reject spot 12", "undo reject spot 12", "redo reject spot 12".

    `find`: returns an earlier decision by its number, for undo and redo. `hidden`: omit the names of
    annotators.

    Examples
    --------
    >>> from raterscope.app.review.subjects import SpotSubject
    >>> in_words(Decision(verb="reject", subject=SpotSubject(x=4.0, y=5.0, number=12), item=1))
    'reject spot 12'
    """
    if decision.verb == "undo":
        target, times = (None, 0) if find is None else target_of(decision, find)
        if target is None:
            return f"undo decision {decision.undoes}"
        return f"{'undo' if times % 2 else 'redo'} {in_words(target, hidden=hidden)}"
    if hidden and isinstance(decision.subject, BiasSubject):
        return f"{decision.verb} an annotator"
    if decision.subject is not None and not isinstance(decision.subject, WeightSubject):
        return decision.subject.in_words(decision.verb)
    if decision.verb in _OF_NAMES and not hidden:
        *first, last = decision.annotators
        annotators = f"{', '.join(first)} and {last}" if first else last
    elif len(decision.annotators) > 1:
        annotators = f"{len(decision.annotators):,} annotators"
    else:
        annotators = "an annotator" if hidden else f"annotator {decision.annotators[0]}"
    change = "" if decision.subject is None else f" {decision.subject.in_words(decision.verb)}"
    because = f" ({decision.reason})" if decision.reason else ""
    verb, end = _VERBS.get(decision.verb, decision.verb), ""
    if decision.verb in _ROLES:
        end = f" as {decision.verb}s" if len(decision.annotators) > 1 else f" as a {decision.verb}"
    return f"{verb} {annotators}{end}{change}{because}"


def target_of(decision: Decision, find: Find) -> tuple[Decision | None, int]:
    """Follow a chain of undos to its target; return the target and the number of undos.

    Examples
    --------
    >>> journal = {
    ...     1: Decision(verb="exclude", id=1, annotators=("kim",)), 2: Decision(verb="undo", id=2, undoes=1)
    ... }
    >>> target, undos = target_of(journal[2], journal.get)
    >>> target.verb, undos
    ('exclude', 1)
    """
    target, times = decision, 0
    while target.verb == "undo":
        earlier = find(target.undoes) if target.undoes is not None else None
        if earlier is None or earlier.id >= target.id:
            return None, times
        target, times = earlier, times + 1
    return target, times


def undone_decisions(decisions: Sequence[Decision]) -> frozenset[int]:
    """Return the numbers of the decisions that were undone."""
    undone: set[int] = set()
    for decision in reversed(decisions):
        if decision.verb == "undo" and decision.id not in undone and decision.undoes is not None:
            undone.add(decision.undoes)
    return frozenset(undone)


def undo_and_redo(
    journal: Sequence[Decision], by_id: Mapping[int, Decision]
) -> tuple[int | None, int | None]:
    """Return the decision that Undo reverts and the undo that Redo reverts; None if there is none."""
    in_effect: dict[int, None] = {}
    undone: dict[int, int] = {}
    for decision in journal:
        if decision.verb != "undo":
            in_effect[decision.id] = None
            undone.clear()
            continue
        target, times = target_of(decision, by_id.get)
        if target is None:
            continue
        in_effect.pop(target.id, None)
        undone.pop(target.id, None)
        if times % 2:
            undone[target.id] = decision.id
        else:
            in_effect[target.id] = None
    return next(reversed(in_effect), None), next(reversed(undone.values()), None)


def touched_items(decision: Decision, by_id: Mapping[int, Decision]) -> set[tuple[str, int]]:
    """Return the items that a decision affects."""
    target, _ = target_of(decision, by_id.get)
    if target is None or target.subject is None:
        return set()
    return {(target.subject.kind, item) for item in target.items}


def one_by_one(decision: Decision) -> tuple[Decision, ...]:
    """Split a decision on several spots into one for each, with the same number."""
    several = decision.subject
    if not isinstance(several, SpotsSubject):
        return (decision,)
    return tuple(
        replace(
            decision,
            item=spot.image,
            subject=SpotSubject(
                x=spot.x, y=spot.y, number=spot.number, blind=several.blind, label=several.label
            ),
            run=spot.run,
            about=spot.about,
        )
        for spot in several.spots
    )


def identities(journal: Sequence[Decision]) -> Iterator[tuple[int, Hashable]]:
    """Yield the numbers of decisions with a key that is the same in every copy of the study.

    The key consists of expert, time, decision and item. Decisions of a program may have the same time: their
    order distinguishes them.
    """
    times = {decision.id: decision.at for decision in journal}
    seen: Counter[Hashable] = Counter()
    for decision in journal:
        undone = None if decision.undoes is None else times[decision.undoes]
        key = decision.at, decision.who, decision.verb, decision.item, decision.annotators, undone
        seen[key] += 1
        yield decision.id, (key, seen[key])


def last_comments(decisions: Iterable[Decision]) -> list[Decision]:
    """Return the last comment and the last bookmark of each subject of an item, the oldest first."""
    last: list[Decision] = []
    for decision in decisions:
        subject = decision.subject
        if isinstance(subject, CommentSubject):
            last = [
                other
                for other in last
                if not (_is_on(other, subject, decision.run) and _alike(other, decision))
            ]
            last.append(decision)
    return last


def find_comment(comments: Sequence[Decision], subject: CommentSubject, run: int | None = None) -> str:
    """Return the text of the comment on a subject of a run; empty without one."""
    return next((each.reason for each in reversed(comments) if _is_on(each, subject, run)), "")


def is_bookmarked(bookmarks: Sequence[Decision], subject: CommentSubject, run: int | None = None) -> bool:
    """Return whether one of the bookmarks is on a subject of a run."""
    return any(_is_on(bookmark, subject, run) for bookmark in bookmarks)


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


def _is_on(decision: Decision, subject: CommentSubject, run: int | None) -> bool:
    """Return whether a decision is on a subject of a run; two regions of one run are never the same."""
    noted = decision.subject
    if not isinstance(noted, CommentSubject) or not noted.matches(subject):
        return False
    return not noted.origin or noted.number == subject.number or run is None or run != decision.run
