"""Decisions on tasks, mask regions, annotators of pairs, structures and names; the last counts.

Stored annotations keep their original names. Annotations read from the study have the new names of structures
and classes; merged names are one structure or class. Joined names are one annotator in tables over several
items, and in later fusions: two names of one person are not two independent annotators.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.class_tree import SEPARATOR
from raterscope.algorithms.masks.data import OPEN, Settled, overlap
from raterscope.app.review.decision import Decision
from raterscope.app.review.samples import SampledItem
from raterscope.app.review.subjects import BiasSubject, GoldSubject, NameSubject, RegionSubject, TaskSubject
from raterscope.text import counted

SKIP = "skip"

Names = Mapping[str, str]
"""Name in the files of each renamed structure or class, to its current name."""


class ItemDecisions:
    """Decisions on the subjects of one item, in order.

    A subject of a decision is a spot, a region of a run, a task or an annotator.
    """

    def __init__(self) -> None:
        self._verbs: dict[Hashable, dict[int, str]] = {}
        self._subjects: Counter[int] = Counter()
        """By decision, number of subjects on which it is still in effect."""
        self._idle: set[int] = set()

    def add(self, subject: Hashable, decision: int, verb: str, over: Collection[str] | None = None) -> None:
        """Add the latest decision on a subject.

        Skipping a settled subject changes nothing.

        `over`: verbs of earlier decisions that it supersedes; None for all.
        """
        verbs = self._verbs.setdefault(subject, {})
        if verb == SKIP and any(earlier != SKIP for earlier in verbs.values()):
            self._idle.add(decision)
            return
        superseded = [earlier_id for earlier_id, earlier in verbs.items() if over is None or earlier in over]
        for earlier_id in superseded:
            del verbs[earlier_id]
            self._subjects[earlier_id] -= 1
        if decision not in verbs:
            self._subjects[decision] += 1
        verbs[decision] = verb

    def supersede(self, subjects: Collection[Hashable]) -> None:
        """Supersede all decisions on some subjects."""
        for subject in subjects:
            for decision in self._verbs.pop(subject, {}):
                self._subjects[decision] -= 1

    def subjects(self) -> list[Hashable]:
        """List the subjects."""
        return list(self._verbs)

    def settled(self) -> Iterator[Hashable]:
        """Return the subjects that are not merely skipped."""
        return (
            subject for subject, verbs in self._verbs.items() if any(verb != SKIP for verb in verbs.values())
        )

    def verbs(self, subject: Hashable) -> Collection[str]:
        """Return the verbs in effect on a subject."""
        return self._verbs.get(subject, {}).values()

    def status(self, decision: int) -> str:
        """Return whether a decision is in effect, superseded, or had no effect."""
        if self._subjects[decision] > 0:
            return "in effect"
        return "no effect" if decision in self._idle else "superseded"


@dataclass(frozen=True)
class DecidedTask:
    """Decided class of a task, and the decision."""

    label: str
    decision: int


class TasksOfQuestion:
    """Decided tasks of a question, collected while the journal is read; the last decision counts."""

    def __init__(self) -> None:
        self.tasks: dict[str, DecidedTask] = {}
        self.skipped: set[str] = set()
        self.contested: dict[str, str] = {}
        """Tasks with conflicting decisions of experts, and these decisions."""
        self.gold: dict[str, str] = {}
        """Classes of the gold tasks."""
        self.decisions = ItemDecisions()

    def apply(self, decision: Decision, _item: int) -> None:
        """Apply a decision in effect."""
        subject = decision.subject
        if isinstance(subject, GoldSubject):
            self.decisions.add((subject.form, subject.task), decision.id, decision.verb)
            self.gold.pop(subject.task, None)
            if decision.verb == "gold":
                self.gold[subject.task] = subject.label
            return
        if not isinstance(subject, TaskSubject):
            return
        self.decisions.add(subject.task, decision.id, decision.verb)
        if decision.verb == "skip":
            self.skipped.add(subject.task)
        elif decision.verb == "reopen":
            self.tasks.pop(subject.task, None)
            self.contested[subject.task] = decision.reason
        else:
            self.tasks[subject.task] = DecidedTask(subject.label, decision.id)
            self.skipped.discard(subject.task)
            self.contested.pop(subject.task, None)

    def fixed(self) -> object:
        """Return the decisions that a fusion holds fixed, for comparison."""
        return {task: decided.label for task, decided in self.tasks.items()}

    def settled_subjects(self) -> tuple[str, ...]:
        """Describe how many tasks are settled."""
        return (counted(len(self.tasks), "task"),) if self.tasks else ()

    def undone_since(self, current: TasksOfQuestion | None, _undone: Container[int]) -> list[int]:
        """Return the decisions on tasks that are undecided now."""
        settled = {} if current is None else current.tasks
        return [decided.decision for task, decided in self.tasks.items() if task not in settled]

    def verdict_on(self, sampled: SampledItem, since: int) -> tuple[int, bool] | None:
        """Return the decision on a task, and whether its class is the answer or a parent of the answer."""
        decided = self.tasks.get(sampled.name)
        if decided is None or decided.decision <= since:
            return None
        label, answer = (name.split(SEPARATOR) for name in (decided.label, sampled.answer))
        return decided.decision, answer[: len(label)] == label


@dataclass(frozen=True)
class Judged:
    """Decision on an annotator: verb (flag or clear), reason and number."""

    verb: str
    reason: str
    decision: int


class BiasesOfQuestion:
    """Decided annotators of a question, collected while the journal is read; the last decision counts."""

    def __init__(self) -> None:
        self.judged: dict[str, Judged] = {}
        self.contested: dict[str, str] = {}
        """Annotators with conflicting decisions of experts, and these decisions."""
        self.decisions = ItemDecisions()

    def apply(self, decision: Decision, _item: int) -> None:
        """Apply a decision in effect."""
        if not isinstance(decision.subject, BiasSubject):
            return
        self.decisions.add(decision.subject.annotator, decision.id, decision.verb)
        if decision.verb == "reopen":
            self.judged.pop(decision.subject.annotator, None)
            self.contested[decision.subject.annotator] = decision.reason
        elif decision.verb != "skip":
            judged = Judged(decision.verb, decision.reason, decision.id)
            self.judged[decision.subject.annotator] = judged
            self.contested.pop(decision.subject.annotator, None)

    def fixed(self) -> object:
        """Return None: a fusion of pairs holds nothing fixed."""
        return None

    def settled_subjects(self) -> tuple[str, ...]:
        """Return nothing: a fusion of pairs holds nothing fixed."""
        return ()

    def undone_since(self, _now: BiasesOfQuestion | None, _undone: Container[int]) -> list[int]:
        """Return nothing: a fusion of pairs holds nothing fixed."""
        return []

    def verdict_on(self, sampled: SampledItem, since: int) -> tuple[int, bool] | None:
        """Return the decision on an annotator, and whether it equals the answer, flag or clear."""
        judged = self.judged.get(sampled.name)
        if judged is None or judged.decision <= since:
            return None
        return judged.decision, judged.verb == sampled.answer


Box = tuple[int, int, int]

_DRAWN = "draw"
"""Key of painting that settles a whole region or structure, unlike a single stroke."""
_WHOLE_REGION = ("accept", "take", _DRAWN, "skip", "reopen")
_NOUNS = ("region", "edit", "whole structure")


@dataclass(frozen=True)
class Region:
    """A decision on a region, in effect."""

    decision: int
    verb: str  # accept, take, paint, skip or reopen
    subject: RegionSubject
    run: int | None  # the run that was on screen
    voxels: int | None  # number in the study of the voxels that it settles; None if skipped
    reason: str = ""  # conflicting decisions on a region: "anna: accept; ben: take rater 2"

    def renamed(self, names: Names) -> Region:
        """Return the decision with the current name of its structure."""
        new = names.get(self.subject.structure)
        return self if new is None else replace(self, subject=replace(self.subject, structure=new))


class RegionsOfImage:
    """Decisions on the regions of one image, collected while the journal is read."""

    def __init__(self) -> None:
        self.regions: list[Region] = []
        self.decisions = ItemDecisions()

    def apply(self, decision: Decision, _item: int) -> None:
        """Add a decision; its voxels override earlier ones."""
        if not isinstance(decision.subject, RegionSubject):  # the code of a structure settles no voxel
            return
        region = Region(
            decision.id, decision.verb, decision.subject, decision.run, decision.voxels, decision.reason
        )
        self.regions.append(region)
        self._add_decisions(region)

    def _add_decisions(self, region: Region) -> None:
        """Supersede replaced decisions; an edit replaces only its own voxels."""
        subject = region.subject
        decisions, key = self.decisions, _key(region)
        if subject.whole:
            decisions.supersede([key for key in decisions.subjects() if _structure(key) == subject.structure])
            decisions.add(key, region.decision, _DRAWN)
        elif region.verb != "paint":
            decisions.add(key, region.decision, region.verb, _WHOLE_REGION)
        elif subject.number is not None and subject.blind and not set(decisions.verbs(key)) - {"skip"}:
            decisions.add(key, region.decision, _DRAWN, _WHOLE_REGION)  # blind, a stroke has no number
        else:
            decisions.add(key, region.decision, "paint", ("skip", "reopen"))

    def fixed(self) -> list[int]:
        """Return the decisions that a fusion holds fixed, for comparison."""
        return [region.decision for region in self.regions if region.voxels is not None]

    def settled_subjects(self) -> tuple[str, ...]:
        """Describe how many regions, strokes and whole structures are settled."""
        of = [_noun(key) for key in self.decisions.settled() if set(self.decisions.verbs(key)) != {"reopen"}]
        return tuple(counted(of.count(noun), noun) for noun in _NOUNS if noun in of)

    def undone_since(self, current: RegionsOfImage | None, undone: Container[int]) -> list[int]:
        """Return the undone decisions with voxels that no other decision settles now."""
        decisions = ItemDecisions() if current is None else current.decisions
        return [
            region.decision
            for region in self.regions
            if region.voxels is not None and region.decision in undone and not _is_settled(region, decisions)
        ]

    def verdict_on(self, sampled: SampledItem, since: int) -> tuple[int, bool] | None:
        """Return the last decision on a region, and whether it confirms the consensus (accepted)."""
        last, changed = None, False
        for region in self.regions:
            subject = region.subject
            own = region.run == sampled.run and subject.number == sampled.number
            if region.decision <= since or subject.structure != sampled.name or not (own or subject.whole):
                continue
            if region.verb == "reopen":
                last, changed = None, False
            elif region.verb != "skip":
                last, changed = region.decision, changed or region.verb != "accept"
        return None if last is None else (last, not changed)


def _key(region: Region) -> Hashable:
    """Return a key of a decision's subject: a region of a run, a stroke, a whole structure."""
    subject = region.subject
    if subject.whole:
        return (subject.structure, "whole structure")
    if subject.number is None:
        return (subject.structure, "edit", region.decision)
    return (subject.structure, "region", region.run, subject.number)


def _structure(key: Hashable) -> str:
    assert isinstance(key, tuple)
    return str(key[0])


def _noun(key: Hashable) -> str:
    assert isinstance(key, tuple)
    return str(key[1])


def _is_settled(region: Region, decisions: ItemDecisions) -> bool:
    """Return whether other decisions settle all voxels of a decision."""
    if decisions.verbs((region.subject.structure, "whole structure")):
        return True
    numbered = region.subject.number is not None and region.verb != "paint"
    return numbered and bool(set(decisions.verbs(_key(region))) & {"accept", "take", _DRAWN})


def known_voxels(
    regions: Iterable[Region], settled: Mapping[int, Settled], structure: str, origin: Box, shape: Box
) -> NDArray[np.int8] | None:
    """Combine the settled voxels of a structure within a box; later decisions override earlier ones.

    `regions`: as in `ReviewState.regions`.
    `settled`: voxels by `Region.voxels`.
    `origin`, `shape`: (slice, row, column) of the box.
    The result, (Z, Y, X), is 1 inside, 0 outside, `OPEN` elsewhere. It is None if nothing is settled.
    """
    known: NDArray[np.int8] | None = None
    for region in regions:
        if region.subject.structure != structure or region.voxels is None:
            continue
        piece = settled[region.voxels]
        target, source = overlap(origin, shape, piece.origin, piece.value.shape)
        value = piece.value[source]
        if not value.size:
            continue
        if known is None:
            known = np.full(shape, OPEN, dtype=np.int8)
        known[target] = np.where(value == OPEN, known[target], value)
    return known


def read_names(
    decisions: Iterable[Decision], undone: Collection[int] = ()
) -> tuple[dict[str, dict[str, str]], frozenset[int]]:
    """Return the current name of each renamed structure and class by kind, and the mergers in effect.

    `undone`: decisions that were undone.

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
        if not isinstance(subject, NameSubject) or decision.id in undone:
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
"""Other names of annotators, to their main names."""


def read_aliases(decisions: Sequence[Decision], undone: Collection[int] = ()) -> dict[str, str]:
    """Return the main name of each joined name, in order of joining.

    `undone`: decisions that were undone.

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
        if decision.verb not in ("join", "separate") or decision.id in undone:
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


def current_names(present: Iterable[str], aliases: Aliases) -> dict[str, str]:
    """Return the name that replaces each other name of an annotator on an item.

    It is the first of the joined names with marks on the item; the main name comes first.

    `present`: the names with marks on the item.

    Examples
    --------
    >>> current_names(["kim", "u42", "anna"], {"anna": "Anna K.", "u42": "Anna K."})
    {'u42': 'anna'}
    """
    if not aliases:
        return {}
    known = set(present)
    current = {}
    for names in groups(aliases).values():
        marked = [name for name in names if name in known]
        current.update(dict.fromkeys(marked[1:], marked[0] if marked else ""))
    return current
