"""Journal of the expert's decisions, and the state that follows from it.

A decision is never changed. Undo is a decision that reverts another, and redo is the undo of an undo. `fold`
derives the state from the journal: decisions on spots, settled voxels, excluded and weighed annotators,
scales, shapes, and what can be undone.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Protocol, TypeVar, get_args

from raterscope.app.review.decision import (
    Decision,
    in_words,
    last_comments,
    target_of,
    touched_items,
    undo_and_redo,
    undone_decisions,
)
from raterscope.app.review.samples import SampledItem, SampleSubject
from raterscope.app.review.spots import Control, Flag, Spot, SpotsOfImage
from raterscope.app.review.subjects import (
    SUBJECTS,
    BiasSubject,
    CommentSubject,
    CountingSubject,
    GoldSubject,
    GroupsSubject,
    NameSubject,
    OfClicks,
    RegionSubject,
    RegistrationSubject,
    ScaleSubject,
    ShapeSubject,
    StructureSubject,
    TaskSubject,
    WeightSubject,
)
from raterscope.app.review.tasks import (
    BiasesOfQuestion,
    DecidedTask,
    ItemDecisions,
    Judged,
    Names,
    Region,
    RegionsOfImage,
    TasksOfQuestion,
    all_names,
    read_aliases,
    read_names,
)

DecisionStatus = Literal["in effect", "superseded", "no effect", "undone"]
"""Current status of a decision.

superseded: a later decision on the same subject replaced it; no effect: it skipped a decided subject.
"""


class DecidedItem(Protocol):
    """Decisions on one item, collected while the journal is read."""

    decisions: ItemDecisions

    def apply(self, decision: Decision, item: int) -> None:
        """Apply a decision in effect to the item."""

    def fixed(self) -> object:
        """Return the decisions that a fusion holds fixed, for comparison."""

    def settled_subjects(self) -> tuple[str, ...]:
        """Describe how many subjects a fusion holds fixed."""

    def undone_since(self, now: Any, undone: Container[int]) -> list[int]:
        """Return the decisions that a fusion used and that nothing replaces now."""

    def verdict_on(self, sampled: SampledItem, since: int) -> tuple[int, bool] | None:
        """Return the decision on an answer after an earlier decision, and whether it confirms the answer."""


DecidedT = TypeVar("DecidedT", bound=DecidedItem)


@dataclass(frozen=True)
class ReviewedKind:
    """Functions of a kind of annotation for the journal of decisions."""

    name: str
    read: Callable[[], DecidedItem]  # makes the record of one item, which reads the decisions on it
    subjects: tuple[type[Any], ...]  # tuple of types: subjects of decisions; see `subjects`


REVIEWED: dict[str, ReviewedKind] = {
    kind.name: kind
    for kind in (
        ReviewedKind("clicks", SpotsOfImage, get_args(OfClicks)),
        ReviewedKind("masks", RegionsOfImage, (RegionSubject, StructureSubject, RegistrationSubject)),
        ReviewedKind("labels", TasksOfQuestion, (TaskSubject, GoldSubject)),
        ReviewedKind("pairs", BiasesOfQuestion, (BiasSubject,)),
    )
}
"""The kinds whose decisions can be read; `SUBJECTS` lists their subjects."""


@contextmanager
def reviewed(kind: ReviewedKind) -> Iterator[None]:
    """Read the decisions on another kind within a `with` block."""
    forms = {subject.form: subject for subject in kind.subjects}
    REVIEWED[kind.name] = kind
    SUBJECTS.update(forms)
    try:
        yield
    finally:
        del REVIEWED[kind.name]
        for form in forms:
            del SUBJECTS[form]


_OF_ANNOTATORS = ("exclude", "weigh", "include")
_OF_FLAGS = ("mark", "unmark")
_OF_PROGRAMS = ("program", "person")
_ON_EACH = (*_OF_ANNOTATORS, *_OF_FLAGS, *_OF_PROGRAMS)
_OF_NAMES = ("join", "separate")
_SINGLE = (
    ScaleSubject, ShapeSubject, CountingSubject, StructureSubject, RegistrationSubject, SampleSubject,
    GroupsSubject,
)  # fmt: skip
"""Subjects that `DecidedItem` does not read: the last decision on each is in effect."""


@dataclass(frozen=True)
class Weighed:
    """Weight of a down-weighted annotator, and the reason."""

    weight: float
    reason: str


@dataclass(frozen=True)
class ReviewState:
    """State that follows from the journal."""

    excluded: dict[str, str] = field(default_factory=dict)
    # down-weighted annotators, without excluded ones
    weighed: dict[str, Weighed] = field(default_factory=dict)
    # annotators who are marked for attention; fusions ignore the mark
    flagged: dict[str, str] = field(default_factory=dict)
    # annotators that are programs: fusions calibrate them, and do not count them as votes
    programs: frozenset[str] = frozenset()
    # joined name to main name; see `aliases`. A decision on one name of an annotator applies to all.
    aliases: dict[str, str] = field(default_factory=dict)
    # by kind: new names of structures (masks) and of classes (clicks)
    names: dict[str, dict[str, str]] = field(default_factory=dict)
    merged: frozenset[int] = frozenset()  # decisions in effect that merged two structures or classes
    # the group of each image by the last decision; None without a decision on groups
    groups: Mapping[int, str] | None = None
    undoable: Decision | None = None  # decision that Undo reverts next
    redoable: Decision | None = None  # decision that Redo restores next
    # by kind and item
    _decided: dict[tuple[str, int], DecidedItem] = field(default_factory=dict, repr=False)
    _fixed: dict[tuple[str, int], object] = field(default_factory=dict, repr=False)
    """Decisions that a fusion of each item holds fixed."""
    _on: dict[tuple[str, int], tuple[Decision, ...]] = field(default_factory=dict, repr=False)
    """All decisions on each item, including undone ones."""
    _notes: dict[tuple[str, int], tuple[Decision, ...]] = field(default_factory=dict, repr=False)
    """The comments and bookmarks among them, because each decision on screen looks for them several times."""
    _undone: frozenset[int] = field(default=frozenset(), repr=False)
    _by_id: dict[int, Decision] = field(default_factory=dict, repr=False)
    _undo_of_redoable: int | None = None
    _samples: dict[str, int] = field(default_factory=dict, repr=False)  # by kind: the last decision on one

    @property
    def apart(self) -> set[str]:
        """Names of annotators that do not count as votes: excluded ones and programs."""
        return {*self.excluded, *self.programs}

    @property
    def weights(self) -> dict[str, float]:
        """Weights of the down-weighted annotators by name."""
        return {name: weighed.weight for name, weighed in sorted(self.weighed.items())}

    def with_weights(self, weights: Mapping[str, float]) -> ReviewState:
        """Return the state with the weights that a run used, because early versions weighted only clicks."""
        return replace(self, weighed={name: Weighed(weight, "") for name, weight in weights.items()})

    @property
    def counted(self) -> dict[str, Weighed]:
        """Down-weighted annotators by name; excluded ones have the weight 0."""
        return {**self.weighed, **{name: Weighed(0.0, reason) for name, reason in self.excluded.items()}}

    def names_of(self, kind: str) -> Names:
        """Return the current names of the renamed structures or classes of a kind."""
        return self.names.get(kind, {})

    def mergers(self, kind: str) -> set[int]:
        """Return the decisions in effect that merged structures or classes of a kind."""
        subjects = {number: self._by_id[number].subject for number in self.merged}
        return {number for number, subject in subjects.items() if subject and subject.kind == kind}

    def _decisions_on(self, item: int, kind: str, form: type[DecidedT]) -> DecidedT:
        """Return the decisions on an item."""
        decided = self._decided.get((kind, item))
        return decided if isinstance(decided, form) else form()

    def spots(self, image: int) -> list[Spot]:
        """List the spots of an image that the expert has decided, by the first decision on each."""
        spots, names = self._decisions_on(image, "clicks", SpotsOfImage).spots, self.names_of("clicks")
        return [replace(spot, label=names.get(spot.label, spot.label)) if names else spot for spot in spots]

    def flag(self, image: int) -> Flag | None:
        """Return the flag that the expert put on an image of clicks."""
        return self._decisions_on(image, "clicks", SpotsOfImage).flag

    def control_mark(self, image: int) -> Control | None:
        """Return the control mark that the expert put on an image of clicks."""
        return self._decisions_on(image, "clicks", SpotsOfImage).control

    def control(self, image: int) -> Control | None:
        """Return the effective control mark: an image with an accepted spot is not a negative control."""
        mark = self.control_mark(image)
        if mark is None or mark.holds:
            return mark
        accepted = any(spot.verdict in ("accepted", "added") for spot in self.spots(image))
        return None if accepted else mark

    def regions(self, image: int) -> list[Region]:
        """List the decisions in effect on an image's masks, oldest first."""
        regions = list(self._decisions_on(image, "masks", RegionsOfImage).regions)
        names = self.names_of("masks")
        return [region.renamed(names) for region in regions] if names else regions

    def tasks(self, question: int) -> dict[str, DecidedTask]:
        """Return the tasks of a question that the expert has decided, by name."""
        return dict(self._decisions_on(question, "labels", TasksOfQuestion).tasks)

    def gold_tasks(self, question: int) -> dict[str, str]:
        """Return the class of each task of a question that the expert marked as gold, by name."""
        return dict(self._decisions_on(question, "labels", TasksOfQuestion).gold)

    def judged(self, question: int) -> dict[str, Judged]:
        """Return the annotators of a question of pairs that the expert has decided on, by name."""
        return dict(self._decisions_on(question, "pairs", BiasesOfQuestion).judged)

    def skipped_tasks(self, question: int) -> frozenset[str]:
        """Return the skipped tasks of a question."""
        return frozenset(self._decisions_on(question, "labels", TasksOfQuestion).skipped)

    def contested_tasks(self, question: int) -> dict[str, str]:
        """Return a question's tasks with conflicting decisions: "anna: cat; ben: dog"."""
        return dict(self._decisions_on(question, "labels", TasksOfQuestion).contested)

    def contested_annotators(self, question: int) -> dict[str, str]:
        """Return a question's annotators with conflicting decisions: "anna: flag; ben: clear"."""
        return dict(self._decisions_on(question, "pairs", BiasesOfQuestion).contested)

    def sample(self, kind: str) -> Decision | None:
        """Return the decision that drew the open sample of a kind; None without one."""
        drawn = self._by_id.get(self._samples.get(kind, 0))
        return drawn if drawn is not None and drawn.verb == "sample" else None

    def at_last_sample(self, kind: str) -> ReviewState:
        """Return the state in which the last sample of a kind was open, before its plan ended."""
        last = self._by_id.get(self._samples.get(kind, 0))
        if last is None or last.verb == "sample":
            return self
        return fold([decision for decision in self._by_id.values() if decision.id < last.id])

    def comments(self, kind: str, item: int) -> list[Decision]:
        """Return the comments on an item and its parts, the oldest first."""
        return [decision for decision in self._last_comments(kind, item) if decision.verb == "comment"]

    def bookmarks(self, kind: str, item: int) -> list[Decision]:
        """Return the bookmarks on an item and its parts, the oldest first."""
        return [decision for decision in self._last_comments(kind, item) if decision.verb == "bookmark"]

    def _last_comments(self, kind: str, item: int) -> list[Decision]:
        notes = self._notes.get((kind, item), ())
        return last_comments(note for note in notes if note.id not in self._undone)

    def decided(self, kind: str, item: int) -> DecidedItem | None:
        """Return the decisions on an item of a kind; None without any."""
        return self._decided.get((kind, item))

    def items(self, kind: str) -> list[int]:
        """List the items of a kind with decisions."""
        return [item for of, item in self._decided if of == kind]

    def fixed(self, kind: str, item: int) -> object:
        """Return the decisions that a fusion of an item holds fixed, for comparison; None without any."""
        return self._fixed.get((kind, item)) or None

    def settled(self, kind: str, item: int) -> str:
        """Describe how many subjects of an item a fusion holds fixed: "2 regions and 1 edit"."""
        decided = self._decided.get((kind, item))
        return " and ".join(() if decided is None else decided.settled_subjects())

    def undone_since(self, previous: ReviewState, kind: str, item: int) -> list[int]:
        """Name the decisions that a fusion from an earlier state held fixed and that were undone since.

        Decisions on subjects that another decision settles now are omitted.
        """
        decided = previous._decided.get((kind, item))
        return [] if decided is None else decided.undone_since(self._decided.get((kind, item)), self._undone)

    def stands(self, decision: int) -> bool:
        """Return whether a decision exists and was not undone."""
        return decision in self._by_id and decision not in self._undone

    def in_effect(self, decision: int) -> bool:
        """Return whether a decision counts: it was neither undone nor superseded."""
        return self.stands(decision) and self.status(decision) == "in effect"

    def status(self, decision: int) -> DecisionStatus:
        """Return the status of a decision; if it has several subjects, it is in effect while it is on any."""
        if not self.stands(decision):
            return "undone"
        recorded = self._by_id[decision]
        if recorded.verb == "undo":
            return "in effect"
        if recorded.verb in _OF_NAMES:
            return self._status_of_names(recorded)
        if recorded.annotators:
            return "in effect" if decision in self._last_on_annotators else "superseded"
        if isinstance(recorded.subject, NameSubject):
            return "in effect"
        if isinstance(recorded.subject, CommentSubject):
            last = self._last_comments(recorded.subject.of, recorded.item or 0)
            return "in effect" if recorded in last else "superseded"
        if isinstance(recorded.subject, _SINGLE):
            return "in effect" if decision in self._last_on_single else "superseded"
        kind = "" if recorded.subject is None else recorded.subject.kind
        decided = [
            self._decided[kind, item].decisions for item in recorded.items if (kind, item) in self._decided
        ]
        statuses = [item.status(decision) for item in decided]
        for status in ("in effect", "superseded"):
            if status in statuses:
                return status
        return "no effect"

    def _status_of_names(self, recorded: Decision) -> DecisionStatus:
        """Return whether names are still joined, or separate, as a decision states."""
        mains = {self.aliases.get(name, name) for name in recorded.annotators}
        joined = not mains.isdisjoint(self.aliases.values())
        as_decided = len(mains) == 1 if recorded.verb == "join" else not joined
        return "in effect" if as_decided else "superseded"

    @cached_property
    def _last_on_annotators(self) -> frozenset[int]:
        """The last decision on each annotator's exclusion, mark for attention, and mark as program."""
        last: dict[tuple[int, str], int] = {}
        for decision in self._by_id.values():
            for group, verbs in enumerate((_OF_ANNOTATORS, _OF_FLAGS, _OF_PROGRAMS)):
                if decision.verb in verbs and decision.id not in self._undone:
                    last.update({(group, name): decision.id for name in decision.annotators})
        return frozenset(last.values())

    @cached_property
    def _last_on_single(self) -> frozenset[int]:
        """The last decision on each scale, shape, count, structure, series and sample, and on groups."""
        last: dict[tuple[object, ...], int] = {}
        for decision in self._by_id.values():
            subject = decision.subject
            if not isinstance(subject, _SINGLE) or decision.id in self._undone:
                continue
            if isinstance(subject, ShapeSubject):
                last["shape", decision.item, subject.number] = decision.id
            elif isinstance(subject, StructureSubject):
                last[subject.form, subject.structure] = decision.id
            elif isinstance(subject, RegistrationSubject):
                last[subject.form, decision.item, subject.series] = decision.id
            elif isinstance(subject, SampleSubject):
                last[subject.form, subject.of] = decision.id
            else:
                if isinstance(subject, ScaleSubject) and subject.everywhere:
                    last = {key: number for key, number in last.items() if key[0] != subject.form}
                last[subject.form, None if subject.everywhere else decision.item] = decision.id
        return frozenset(last.values())

    def decision(self, number: int) -> Decision | None:
        """Find a decision by its number."""
        return self._by_id.get(number)

    def in_words(self, decision: Decision, *, hidden: bool = False) -> str:
        """Describe a decision with what it undoes or redoes; see `in_words`."""
        return in_words(decision, self._by_id.get, hidden=hidden)


def fold(decisions: Sequence[Decision], before: ReviewState | None = None) -> ReviewState:
    """Compute the current state from the journal.

    `decisions`: all decisions of the study, in order. `before`: state without the last decision; parts that
    it does not affect are not computed again.

    Examples
    --------
    >>> from raterscope.app.review.decision import Decision
    >>> journal = [Decision(verb="exclude", id=1, annotators=("kim",), reason="test account")]
    >>> fold(journal).excluded
    {'kim': 'test account'}
    >>> fold([*journal, Decision(verb="undo", id=2, undoes=1)]).excluded
    {}
    """
    new = decisions if before is None else decisions[-1:]
    before = before or ReviewState()
    verbs = {decision.verb for decision in new}
    by_id = {**before._by_id, **{decision.id: decision for decision in new}}
    on = _by_item(new, before._on)
    notes = [decision for decision in new if isinstance(decision.subject, CommentSubject)]
    touched = {key for decision in new for key in touched_items(decision, by_id)}
    decided = {key: by_item for key, by_item in before._decided.items() if key not in touched}
    fixed = {key: by_item for key, by_item in before._fixed.items() if key not in touched}
    undone, excluded, weighed, aliases = before._undone, before.excluded, before.weighed, before.aliases
    flagged, names, merged = before.flagged, before.names, before.merged
    groups, programs = before.groups, before.programs
    undoable, redone = (new[-1].id if new else None), None
    if "undo" in verbs:
        undone = undone_decisions(decisions)
        undoable, redone = undo_and_redo(decisions, by_id)
    if not verbs.isdisjoint(("undo", *_OF_NAMES)):
        aliases = read_aliases(decisions, undone)
    if not verbs.isdisjoint(("undo", *_OF_NAMES, *_ON_EACH)):
        excluded, weighed, flagged, programs = _on_annotators(decisions, undone, aliases)
    if not verbs.isdisjoint(("undo", *NameSubject.verbs)):
        names, merged = read_names(decisions, undone)
    if not verbs.isdisjoint(("undo", *GroupsSubject.verbs)):
        groups = _groups(decisions, undone)
    for key in touched:
        kept = [decision for decision in on.get(key, ()) if decision.id not in undone]
        if not kept:
            continue
        decided[key] = REVIEWED[key[0]].read()
        for decision in kept:
            decided[key].apply(decision, key[1])
        fixed[key] = decided[key].fixed()
    samples = _samples(decisions, undone, {}) if "undo" in verbs else _samples(new, undone, before._samples)
    redoable = None if redone is None else target_of(by_id[redone], by_id.get)[0]
    return ReviewState(
        excluded=excluded,
        weighed=weighed,
        flagged=flagged,
        programs=programs,
        aliases=aliases,
        names=names,
        merged=merged,
        groups=groups,
        undoable=by_id[undoable] if undoable is not None else None,
        redoable=redoable,
        _decided=decided,
        _fixed=fixed,
        _on=on,
        _notes=_by_item(notes, before._notes),
        _undone=undone,
        _by_id=by_id,
        _undo_of_redoable=redone,
        _samples=samples,
    )


def _by_item(
    decisions: Sequence[Decision], before: Mapping[tuple[str, int], tuple[Decision, ...]]
) -> dict[tuple[str, int], tuple[Decision, ...]]:
    """Append decisions to the earlier ones on the same items."""
    more: dict[tuple[str, int], list[Decision]] = {}
    for decision in decisions:
        if decision.subject is not None:
            for item in decision.items:
                more.setdefault((decision.subject.kind, item), []).append(decision)
    return {**before, **{key: (*before.get(key, ()), *by_item) for key, by_item in more.items()}}


def _on_annotators(
    decisions: Sequence[Decision], undone: frozenset[int], aliases: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, Weighed], dict[str, str], frozenset[str]]:
    """Return excluded, down-weighted and marked annotators, and programs, by the last decision on each."""
    excluded: dict[str, str] = {}
    weighed: dict[str, Weighed] = {}
    flagged: dict[str, str] = {}
    programs: set[str] = set()
    for decision in decisions:
        verb = decision.verb
        if verb not in _ON_EACH or decision.id in undone:
            continue
        names = all_names(decision.annotators, aliases)
        if verb in _OF_PROGRAMS:
            programs = programs.union(names) if verb == "program" else programs.difference(names)
            continue
        for reasons in (flagged,) if verb in _OF_FLAGS else (excluded, weighed):
            for name in names:
                reasons.pop(name, None)
        if verb in ("exclude", "mark"):
            (excluded if verb == "exclude" else flagged).update(dict.fromkeys(names, decision.reason))
        elif isinstance(decision.subject, WeightSubject):
            weighed.update(dict.fromkeys(names, Weighed(decision.subject.weight, decision.reason)))
    return excluded, weighed, flagged, frozenset(programs)


def _groups(decisions: Sequence[Decision], undone: frozenset[int]) -> dict[int, str] | None:
    """Return the group of each image by the last decision on groups; None without any."""
    for decision in reversed(decisions):
        if isinstance(decision.subject, GroupsSubject) and decision.id not in undone:
            return {image: name for name, images in decision.subject.groups.items() for image in images}
    return None


def _samples(
    decisions: Sequence[Decision], undone: frozenset[int], before: Mapping[str, int]
) -> dict[str, int]:
    """Return the last standing decision on a sample of each kind."""
    last = dict(before)
    for decision in decisions:
        if isinstance(decision.subject, SampleSubject) and decision.id not in undone:
            last[decision.subject.of] = decision.id
    return last


def undo(state: ReviewState, decision: int | None = None) -> Decision | None:
    """Make the decision that undoes the last decision or a given one; None if there is none.

    Examples
    --------
    >>> from raterscope.app.review.decision import Decision
    >>> state = fold([Decision(verb="exclude", id=1, annotators=("kim",))])
    >>> undo(state).undoes
    1
    >>> undo(ReviewState()) is None
    True
    """
    if decision is None:
        return None if state.undoable is None else Decision(verb="undo", undoes=state.undoable.id)
    return Decision(verb="undo", undoes=decision) if state.stands(decision) else None


def redo(state: ReviewState) -> Decision | None:
    """Make the decision that redoes the last undo; None if there is none.

    Examples
    --------
    >>> from raterscope.app.review.decision import Decision
    >>> journal = [Decision(verb="exclude", id=1, annotators=("kim",)), Decision(verb="undo", id=2, undoes=1)]
    >>> redo(fold(journal)).undoes
    2
    """
    return None if state._undo_of_redoable is None else Decision(verb="undo", undoes=state._undo_of_redoable)


def differ(previous: ReviewState, current: ReviewState, kind: str, item: int | None = None) -> bool:
    """Return whether fusions from two states would use different decisions.

    A decision that was made and undone between them makes no difference, nor do skipped items.

    `item`: None for any item of the kind.

    Examples
    --------
    >>> from raterscope.app.review.decision import Decision
    >>> now = fold([Decision(verb="exclude", id=1, annotators=("kim",))])
    >>> differ(ReviewState(), now, "clicks"), differ(now, now, "clicks")
    (True, False)
    """
    if set(previous.excluded) != set(current.excluded) or previous.aliases != current.aliases:
        return True
    if previous.mergers(kind) != current.mergers(kind) or previous.programs != current.programs:
        return True
    if previous.weights != current.weights:
        return True
    items = {*previous.items(kind), *current.items(kind)} if item is None else {item}
    return any(previous.fixed(kind, item_id) != current.fixed(kind, item_id) for item_id in items)
