"""Union of the decisions of several experts who reviewed copies of one study.

The journals are append-only, so their union is one journal: the decisions of the first study, then those that
the others added to it. A subject on which two experts decided differently is open again. Of voxels that both
settled, those on which they agree stay settled.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import hypot
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.boxes import box_around, slices_of
from raterscope.algorithms.masks.data import OPEN, Settled
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import plain
from raterscope.app.review import (
    BiasSubject,
    CountingSubject,
    Decision,
    ImageSubject,
    Region,
    RegionSubject,
    ScaleSubject,
    ShapeSubject,
    Spot,
    SpotsSubject,
    SpotSubject,
    StructureSubject,
    TaskSubject,
    View,
    WeightSubject,
    fold,
    identities,
    known_voxels,
)
from raterscope.app.study.masks import settled_of
from raterscope.app.study.new_study import save_elsewhere
from raterscope.app.study.records import StudyError
from raterscope.app.study.study import Study

_NO_VERDICT = ("skip", "reopen")
_ANNOTATOR = "annotator "
_OF_NAMES = ("join", "separate")
_SAME_PLACE = 1.0
"""Pixels between two decisions on one spot of a run."""


@dataclass(frozen=True)
class Conflict:
    """A subject on which two experts decided differently.

    Attributes
    ----------
    kind : str
        clicks, masks, labels or pairs; empty for an annotator.
    item : str
        Name of the image or question; empty for an annotator of all.
    subject : str
        "spot 12 at 30, 40", "task t7", "liver".
    first, second : str
        What each expert decided: "anna: accept".
    x, y : float or None
        Position of a spot, pixels.
    """

    kind: str
    item: str
    subject: str
    first: str
    second: str
    x: float | None = None
    y: float | None = None

    @property
    def reason(self) -> str:
        """Reason of the decision that reopens the subject."""
        return f"{self.first}; {self.second}"


@dataclass(frozen=True)
class MergedStudy:
    """What one study added to another.

    Attributes
    ----------
    path : Path
        The study whose decisions were added.
    added : int
        Its decisions that the other lacked.
    both : dict of str to list of (str, str)
        By kind, the two verdicts on each subject that both experts decided.
    """

    path: Path
    added: int
    conflicts: tuple[Conflict, ...]
    both: dict[str, list[tuple[str, str]]]


def merge_studies(paths: Sequence[Path], target: Path, watch: Watch = silent) -> list[MergedStudy]:
    """Merge copies of one study into a new one, completely or not at all.

    Raises `StudyError` if a study is not a copy of the first one, or a file cannot be read or written.

    Parameters
    ----------
    paths : sequence of Path
        Two studies or more; annotations and runs are those of the first.
    target : Path
        Of a file that does not exist yet.

    Returns
    -------
    list of MergedStudy
        One for each study after the first.
    """
    first, *others = paths

    def add(path: Path) -> Callable[[Study, Watch], MergedStudy]:
        def work(merged: Study, watch: Watch) -> MergedStudy:
            with Study.open(path, to_read=True) as other:
                return add_decisions(merged, other, watch, name=first.name)

        return work

    with Study.open(first, to_read=True) as study:
        for path in others:
            with Study.open(path, to_read=True) as other:
                _refuse_other_data(study, other)
        return save_elsewhere(study, target, [add(path) for path in others], watch)


def _refuse_other_data(study: Study, other: Study) -> None:
    """Refuse a study with images, questions, annotators or imports that the first one lacks."""
    parts: dict[str, Callable[[Study], Iterable[Hashable]]] = {
        "image": lambda copy: ((entry.id, entry.name, entry.digest) for entry in copy.images()),
        "question": lambda copy: ((entry.id, entry.name) for entry in copy.questions()),
        "question of pairs": lambda copy: ((entry.id, entry.name) for entry in copy.pair_questions()),
        "annotator": lambda copy: enumerate(copy.annotators()),
        "import": _imports,
    }
    for noun, list_of in parts.items():
        known = set(list_of(study))
        for entry in list_of(other):
            if entry not in known:
                assert isinstance(entry, tuple)
                raise StudyError(
                    f"is no copy of {study.path.name}, which lacks its {noun} {plain(str(entry[1]), 60)}; "
                    "each expert reviews a copy of one study",
                    file=other.path,
                )


def _imports(study: Study) -> list[Hashable]:
    with study.reading() as connection:
        return [tuple(row) for row in connection.execute("SELECT id, file, kind, at FROM imports")]


def add_decisions(study: Study, other: Study, watch: Watch = silent, *, name: str = "") -> MergedStudy:
    """Append the decisions and views of a copy to a study's, and reopen what both decided differently.

    Decisions that the study has already are left out. A spot that both experts added is kept once.

    Parameters
    ----------
    study : Study
        It receives them.
    other : Study
        A copy of it, or of the same study.
    name : str
        File that tells the experts of the study from those of the other; by default its own.
    """
    journals = _Journals(study, other, name or study.path.name)
    spots, voxels, rest = _compare_spots(journals), _compare_voxels(journals), _compare_others(journals)
    with study.change():
        numbers = _append(journals, part(watch, 0.0, 0.9))
        undone: set[int] = set()
        differences = (*spots.differences, *rest.differences, *voxels)
        for difference in differences:
            own, theirs = difference.decisions
            for number in {*own, *(numbers[number] for number in theirs)} - undone:
                undone.add(number)
                study.record(Decision(verb="undo", undoes=number, reason=difference.conflict.reason))
            if difference.instead is not None:
                study.record(difference.instead)
        contradicted = {difference.annotator for difference in differences}
        for decision in study.decisions():
            several = len(decision.annotators) > 1 and decision.verb not in _OF_NAMES
            if decision.id in undone and several:
                left = tuple(name for name in decision.annotators if name not in contradicted)
                if left:
                    study.record(replace(decision, id=0, annotators=left))
        for number in spots.twice:
            study.record(Decision(verb="undo", undoes=numbers[number], reason="both experts added this spot"))
        _append_views(journals)
    return MergedStudy(
        other.path,
        len(journals.added),
        tuple(difference.conflict for difference in differences),
        {**spots.both, **rest.both},
    )


@dataclass(frozen=True)
class _Difference:
    """A conflict, and what resolves it.

    Attributes
    ----------
    conflict : Conflict
    decisions : (numbers, numbers)
        Decisions to undo, by their numbers in the journal of the study and of the other.
    instead : Decision, optional
        A decision that reopens the subject, or settles the voxels on which both agree.
    annotator : str, optional
        The annotator, if the conflict is about an exclusion or a weight.
    """

    conflict: Conflict
    decisions: tuple[Sequence[int], Sequence[int]] = ((), ())
    instead: Decision | None = None
    annotator: str | None = None


@dataclass
class _Comparison:
    """Verdicts of two experts on the same subjects, by kind; and additions of a spot that the other has."""

    differences: list[_Difference]
    both: dict[str, list[tuple[str, str]]]
    twice: list[int]


class _Journals:
    """Journals of a study and of another that is merged into it.

    Attributes
    ----------
    states : list of ReviewState
        Of the study and of the other.
    shared : dict of int to int
        Numbers of the other's decisions that the study has too, and their numbers there.
    added : list of Decision
        Decisions that only the other has.
    new : list of frozenset of int
        Decisions that only the study has, and those that only the other has.
    """

    def __init__(self, study: Study, other: Study, name: str) -> None:
        self.studies = study, other
        journals = [study.decisions(), other.decisions()]
        self.states = [fold(journal) for journal in journals]
        known = {key: number for number, key in identities(journals[0])}
        self.shared = {number: known[key] for number, key in identities(journals[1]) if key in known}
        self.added = [decision for decision in journals[1] if decision.id not in self.shared]
        own = {decision.id for decision in journals[0]} - set(self.shared.values())
        self.new = [frozenset(own), frozenset(decision.id for decision in self.added)]
        who = [
            {decision.who for decision in journal if decision.id in new}
            for journal, new in zip(journals, self.new, strict=True)
        ]
        self._files = (f" ({name})", f" ({other.path.name})") if who[0] & who[1] else ("", "")

    def in_words(self, side: int, number: int, verdict: str) -> str:
        """Describe a decision with the expert's name, and the file if both experts have the same name."""
        decision = self.states[side].decision(number)
        assert decision is not None
        return f"{decision.who}{self._files[side]}: {verdict}"

    def standing(self, side: int) -> Iterator[Decision]:
        """Yield the new decisions of a side that were not undone."""
        for number in sorted(self.new[side]):
            decision = self.states[side].decision(number)
            if decision is not None and self.states[side].stands(number):
                yield decision


def _compare_spots(journals: _Journals) -> _Comparison:
    compared = _Comparison([], {"clicks": []}, [])
    study = journals.studies[0]
    for image in journals.states[1].items("clicks"):
        own, theirs = (
            [spot for spot in state.spots(image) if spot.verdict != "skipped" and spot.decision in new]
            for state, new in zip(journals.states, journals.new, strict=True)
        )
        for spot in theirs:
            same = _nearest(spot, own, _SAME_PLACE)
            if same is None:
                added = [other for other in own if other.verdict == spot.verdict == "added"]
                if _nearest(spot, added, study.settings.matching_radius()) is not None:
                    compared.twice.append(spot.decision)
                continue
            verdicts = _verdict_on(same), _verdict_on(spot)
            compared.both["clicks"].append(verdicts)
            if verdicts[0] == verdicts[1]:
                continue
            number = f" {spot.number}" if spot.number is not None else ""
            conflict = Conflict(
                "clicks", study.image(image).name, f"spot{number} at {spot.x:.0f}, {spot.y:.0f}",
                journals.in_words(0, same.decision, verdicts[0]),
                journals.in_words(1, spot.decision, verdicts[1]), spot.x, spot.y,
            )  # fmt: skip
            reopened = SpotSubject(x=spot.anchor_x, y=spot.anchor_y, number=spot.number)
            instead = Decision(verb="reopen", item=image, subject=reopened, reason=conflict.reason)
            compared.differences.append(_Difference(conflict, instead=instead))
    return compared


def _verdict_on(spot: Spot) -> str:
    return "reject" if spot.verdict == "rejected" else "accept"


def _nearest(spot: Spot, others: Sequence[Spot], most: float) -> Spot | None:
    """Return the nearest of other spots, by the clusters that were judged or by their places."""

    def distance(other: Spot) -> float:
        return min(
            hypot(spot.anchor_x - other.anchor_x, spot.anchor_y - other.anchor_y),
            hypot(spot.x - other.x, spot.y - other.y),
        )

    nearest = min(others, key=distance, default=None)
    return nearest if nearest is not None and distance(nearest) <= most else None


def _compare_others(journals: _Journals) -> _Comparison:
    """Compare the last decisions on tasks, annotators, whole images, structures, scales and counts."""
    compared = _Comparison([], {"labels": [], "pairs": []}, [])
    sides: list[dict[tuple[Any, ...], list[tuple[int, str]]]] = [{}, {}]
    for side, on in enumerate(sides):
        for decision in journals.standing(side):
            replaced = not journals.states[side].in_effect(decision.id)
            if replaced and isinstance(decision.subject, (TaskSubject, BiasSubject)):
                continue
            for key, verdict in _verdicts(decision):
                on.setdefault(key, []).append((decision.id, verdict))
    names = journals.studies[0].names()
    for key, theirs in sides[1].items():
        own = sides[0].get(key)
        if own is None:
            continue
        kind, item, subject = key
        if kind in compared.both:
            compared.both[kind].append((own[-1][1], theirs[-1][1]))
        if own[-1][1] == theirs[-1][1]:
            continue
        conflict = Conflict(
            kind, "" if item is None else names.get((kind, item), ""), subject,
            journals.in_words(0, *own[-1]), journals.in_words(1, *theirs[-1]),
        )  # fmt: skip
        decided = journals.states[1].decision(theirs[-1][0])
        if decided is not None and isinstance(decided.subject, (TaskSubject, BiasSubject)):
            instead = Decision(
                verb="reopen", item=item, reason=conflict.reason,
                subject=TaskSubject(task=decided.subject.task)
                if isinstance(decided.subject, TaskSubject) else decided.subject,
            )  # fmt: skip
            compared.differences.append(_Difference(conflict, instead=instead))
            continue
        decisions = ([number for number, _ in own], [number for number, _ in theirs])
        annotator = None if kind else subject.removeprefix(_ANNOTATOR)
        compared.differences.append(_Difference(conflict, decisions, annotator=annotator))
    return compared


def _verdicts(decision: Decision) -> Iterator[tuple[tuple[str, int | None, str], str]]:
    """Yield the subjects of a decision as (kind, item, words), and the verdict on each."""
    subject, verb = decision.subject, decision.verb
    if decision.verb in _OF_NAMES:
        first = 1 if decision.verb == "join" else 0
        with_main = f" {decision.annotators[0]}" if first else ""
        for name in decision.annotators[first:]:
            yield ("", None, f"name {name}"), f"{decision.verb}{with_main}"
    elif decision.annotators:
        weight = f" {subject.weight:g}" if isinstance(subject, WeightSubject) else ""
        for name in decision.annotators:
            yield ("", None, f"{_ANNOTATOR}{name}"), f"{verb}{weight}"
    elif isinstance(subject, TaskSubject) and verb not in _NO_VERDICT:
        yield ("labels", decision.item, f"task {subject.task}"), subject.label
    elif isinstance(subject, BiasSubject) and verb not in _NO_VERDICT:
        yield ("pairs", decision.item, f"{_ANNOTATOR}{subject.annotator}"), verb
    elif isinstance(subject, ImageSubject):
        yield ("clicks", decision.item, "flag" if "flag" in verb else "control mark"), verb
    elif isinstance(subject, StructureSubject):
        yield ("masks", None, f"coding of {subject.structure}"), subject.in_words(verb)
    elif isinstance(subject, (ScaleSubject, CountingSubject)):
        item = None if subject.everywhere else decision.item
        yield ("clicks", item, subject.form), subject.in_words(verb)


def _compare_voxels(journals: _Journals) -> list[_Difference]:
    differences = []
    for image in journals.states[1].items("masks"):
        sides = [
            [
                region
                for region in state.regions(image)
                if region.voxels is not None and region.decision in new
            ]
            for state, new in zip(journals.states, journals.new, strict=True)
        ]
        structures = [{region.subject.structure for region in side} for side in sides]
        if structures[0] & structures[1]:
            settled = [settled_of(study, side) for study, side in zip(journals.studies, sides, strict=True)]
            for structure in sorted(structures[0] & structures[1]):
                of = [[region for region in side if region.subject.structure == structure] for side in sides]
                differences += _compare_structure(journals, image, structure, of, settled)
    return differences


def _compare_structure(
    journals: _Journals, image: int, structure: str, sides: list[list[Region]],
    settled: list[dict[int, Settled]],
) -> list[_Difference]:  # fmt: skip
    pieces = [
        [values[region.voxels or 0] for region in side] for side, values in zip(sides, settled, strict=True)
    ]
    everything = [piece for side in pieces for piece in side]
    origin, shape = box_around((piece.origin, piece.value.shape) for piece in everything)

    def combined(of: list[list[Region]]) -> list[NDArray[np.int8]]:
        known = [known_voxels(*pair, structure, origin, shape) for pair in zip(of, settled, strict=True)]
        return [np.full(shape, OPEN, dtype=np.int8) if values is None else values for values in known]

    own, theirs = combined(sides)
    differs = (own != OPEN) & (theirs != OPEN) & (own != theirs)
    if not differs.any():
        return []
    touching = [
        [
            region
            for region, piece in zip(side, of, strict=True)
            if (piece.value[differs[slices_of(piece.origin, piece.value.shape, origin)]] != OPEN).any()
        ]
        for side, of in zip(sides, pieces, strict=True)
    ]
    own, theirs = combined(touching)
    agreed = np.where(own == OPEN, theirs, np.where((theirs == OPEN) | (theirs == own), own, OPEN))
    count = int(differs.sum())
    words = [
        journals.in_words(side, of[-1].decision, f"{int((values[differs] == 1).sum()):,} of them inside")
        for side, (of, values) in enumerate(zip(touching, (own, theirs), strict=True))
    ]
    name = journals.studies[0].image(image).name
    conflict = Conflict("masks", name, f"{structure}, {count:,} voxels", words[0], words[1])
    decision = None
    if (agreed != OPEN).any():
        decision = Decision(
            verb="paint", item=image, settled=Settled(origin, agreed.astype(np.int8)),
            subject=RegionSubject(structure=structure, origin=origin, shape=shape),
            reason=f"agreed by both; {conflict.reason}",
        )  # fmt: skip
    numbers = [[region.decision for region in side] for side in touching]
    return [_Difference(conflict, (numbers[0], numbers[1]), decision)]


def _append(journals: _Journals, watch: Watch) -> dict[int, int]:
    """Append the other's decisions; return the number of each of its decisions in the study.

    A run of which the study lacks a copy is left out: what was decided on it holds by its position.
    """
    study, other = journals.studies
    numbers, runs = dict(journals.shared), _same_runs(study, other)
    shapes: dict[tuple[int | None, int], int] = {}
    journal = study.decisions()
    for done, decision in enumerate(journals.added):
        watch(done / len(journals.added), "merging decisions")
        target = None if decision.undoes is None else numbers.get(decision.undoes)
        if decision.undoes is not None and not _can_undo(journals, decision.undoes, target):
            continue
        subject = decision.subject
        if isinstance(subject, SpotsSubject):
            spots = (
                replace(spot, run=runs.get(spot.run), about=numbers.get(spot.about or 0))
                for spot in subject.spots
            )
            subject = replace(subject, spots=tuple(spots))
        elif isinstance(subject, RegionSubject) and decision.run not in runs:
            subject = replace(subject, number=None)
        elif isinstance(subject, ShapeSubject):
            key = decision.item, subject.number
            if decision.verb == "measure":
                used = [
                    earlier.subject.number
                    for earlier in journal
                    if isinstance(earlier.subject, ShapeSubject) and earlier.item == decision.item
                ]
                shapes[key] = max(used, default=0) + 1
            subject = replace(subject, number=shapes.get(key, subject.number))
        recorded = study.record(
            replace(
                decision,
                id=0,
                subject=subject,
                run=runs.get(decision.run),
                undoes=target,
                voxels=None,
                about=numbers.get(decision.about or 0),
                settled=None if decision.voxels is None else other.settled(decision.voxels),
            )
        )
        numbers[decision.id] = recorded.id
        journal.append(recorded)
    return numbers


def _can_undo(journals: _Journals, undoes: int, target: int | None) -> bool:
    """Return whether a decision is not undone yet: both experts may have undone a shared one."""
    return target is not None and (undoes not in journals.shared or journals.states[0].stands(target))


def _same_runs(study: Study, other: Study) -> dict[int | None, int]:
    known = {(run.id, run.started, run.digest) for run in study.runs.all()}
    return {run.id: run.id for run in other.runs.all() if (run.id, run.started, run.digest) in known}


def _append_views(journals: _Journals) -> None:
    study, other = journals.studies
    runs = _same_runs(study, other)

    def views_of(opened: Study) -> Iterator[View]:
        return (view for views in opened.views.by_image().values() for view in views)

    def key(view: View) -> Hashable:
        return view.at, view.who, view.image, view.x, view.y

    known = {key(view) for view in views_of(study)}
    new = [replace(view, id=0, run=runs.get(view.run)) for view in views_of(other) if key(view) not in known]
    study.views.record(sorted(new, key=lambda view: str(view.at)))
