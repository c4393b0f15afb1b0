"""Comparison of the journals of two experts: conflicts, and common decisions.

A subject on which two experts decided differently must be decided again. Of voxels that both settled, those
on which they agree remain settled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import hypot
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from raterscope.algorithms.masks.data import OPEN, Box, Settled, box_around, overlap, slices_of
from raterscope.algorithms.masks.fusion import CaseResult
from raterscope.app.review import (
    BiasSubject,
    CountingSubject,
    Decision,
    GroupsSubject,
    ImageSubject,
    Region,
    RegionSubject,
    RegistrationSubject,
    ScaleSubject,
    Spot,
    SpotSubject,
    StructureSubject,
    TaskSubject,
    WeightSubject,
    fold,
    identities,
    known_voxels,
)
from raterscope.app.study.expert_agreement import AGREED, Overlap, overlap_of
from raterscope.app.study.masks import settled_of
from raterscope.app.study.study import Study

_NO_VERDICT, _OF_FLAGS = ("skip", "reopen"), ("mark", "unmark")
_OF_PROGRAMS = ("program", "person")
_ANNOTATOR = "annotator "
OF_NAMES = ("join", "separate")
"""Verbs of decisions on annotators' names."""

_SAME_PLACE = 1.0
"""Maximum distance between two decisions on the same spot of a run, pixels."""


@dataclass(frozen=True)
class Conflict:
    """Conflict: a subject on which two experts decided differently."""

    kind: str  # clicks, masks, labels or pairs; empty for an annotator
    item: str  # name of the image or question; empty for an annotator of all
    subject: str  # "spot 12 at 30, 40", "task t7", "liver"
    # first, second: decision of each expert: "anna: accept"
    first: str
    second: str
    # x, y: position of a spot, pixels
    x: float | None = None
    y: float | None = None

    @property
    def reason(self) -> str:
        """Reason of the decision that reopens the subject."""
        return f"{self.first}; {self.second}"


@dataclass(frozen=True)
class Difference:
    """Conflict, and the decisions that resolve it."""

    conflict: Conflict
    # (numbers, numbers): decisions to undo, by their numbers in the journals of the study and of the other
    # study
    decisions: tuple[Sequence[int], Sequence[int]] = ((), ())
    # decisions that reopen the subject, and that settle the voxels on which both agree
    instead: tuple[Decision, ...] = ()
    annotator: str | None = None  # the annotator, if the conflict is about an exclusion or a weight


@dataclass
class Comparison:
    """Verdicts of two experts on the same subjects, by kind, and spots that both added."""

    differences: list[Difference]
    both: dict[str, list[tuple[str, str]]]
    twice: list[int]


class Journals:
    """Journals of a study, and of another study that is merged into it."""

    def __init__(self, study: Study, other: Study, name: str) -> None:
        self.studies = study, other
        journals = [study.decisions(), other.decisions()]
        self.states = [fold(journal) for journal in journals]  # of the study and of the other
        known = {key: number for number, key in identities(journals[0])}
        # numbers of the other's decisions that the study also has, and their numbers in the study
        self.shared = {number: known[key] for number, key in identities(journals[1]) if key in known}
        # decisions that only the other has
        self.added = [decision for decision in journals[1] if decision.id not in self.shared]
        own = {decision.id for decision in journals[0]} - set(self.shared.values())
        # decisions only in the study, and decisions only in the other
        self.new = [frozenset(own), frozenset(decision.id for decision in self.added)]
        counts = [
            dict(Counter(decision.who for decision in journal if decision.id in new))
            for journal, new in zip(journals, self.new, strict=True)
        ]
        # (dict of str to int, dict of str to int): number of these decisions by expert
        self.experts = counts[0], counts[1]
        same = counts[0].keys() & counts[1].keys()
        self._files = (f" ({name})", f" ({other.path.name})") if same else ("", "")

    def in_words(self, side: int, number: int, verdict: str) -> str:
        """Describe a decision with the expert's name, and the file if both experts have the same name."""
        decision = self.states[side].decision(number)
        assert decision is not None
        return f"{decision.who}{self._files[side]}: {verdict}"

    def kept_decisions(self, side: int) -> Iterator[Decision]:
        """Yield the new decisions of a side that were not undone."""
        for number in sorted(self.new[side]):
            decision = self.states[side].decision(number)
            if decision is not None and self.states[side].stands(number):
                yield decision


def compare_spots(journals: Journals) -> Comparison:
    """Compare the verdicts on spots, and find spots that both experts added."""
    compared = Comparison([], {"clicks": []}, [])
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
            compared.differences.append(Difference(conflict, instead=(instead,)))
    return compared


def _verdict_on(spot: Spot) -> str:
    return "reject" if spot.verdict == "rejected" else "accept"


def _nearest(spot: Spot, others: Sequence[Spot], most: float) -> Spot | None:
    """Return the nearest of other spots, by the judged clusters or by position."""

    def distance(other: Spot) -> float:
        return min(
            hypot(spot.anchor_x - other.anchor_x, spot.anchor_y - other.anchor_y),
            hypot(spot.x - other.x, spot.y - other.y),
        )

    nearest = min(others, key=distance, default=None)
    return nearest if nearest is not None and distance(nearest) <= most else None


def compare_others(journals: Journals) -> Comparison:
    """Compare the last decisions on tasks, annotators, whole images, structures, scales and counts."""
    compared = Comparison([], {"labels": [], "pairs": []}, [])
    sides: list[dict[tuple[Any, ...], list[tuple[int, str]]]] = [{}, {}]
    for side, on in enumerate(sides):
        for decision in journals.kept_decisions(side):
            replaced = not journals.states[side].in_effect(decision.id)
            if replaced and isinstance(decision.subject, (TaskSubject, BiasSubject)):
                continue
            for key, verdict in _verdicts(decision):
                on.setdefault(key, []).append((decision.id, verdict))
    names = journals.studies[0].names()
    for key, other in sides[1].items():
        own = sides[0].get(key)
        if own is None:
            continue
        kind, item, subject = key
        if kind in compared.both:
            compared.both[kind].append((own[-1][1], other[-1][1]))
        if own[-1][1] == other[-1][1]:
            continue
        conflict = Conflict(
            kind, "" if item is None else names.get((kind, item), ""), subject,
            journals.in_words(0, *own[-1]), journals.in_words(1, *other[-1]),
        )  # fmt: skip
        decided = journals.states[1].decision(other[-1][0])
        if decided is not None and isinstance(decided.subject, (TaskSubject, BiasSubject)):
            instead = Decision(
                verb="reopen", item=item, reason=conflict.reason,
                subject=TaskSubject(task=decided.subject.task)
                if isinstance(decided.subject, TaskSubject) else decided.subject,
            )  # fmt: skip
            compared.differences.append(Difference(conflict, instead=(instead,)))
            continue
        decisions = ([number for number, _ in own], [number for number, _ in other])
        annotator = None if kind else subject.removeprefix(_ANNOTATOR)
        compared.differences.append(Difference(conflict, decisions, annotator=annotator))
    return compared


def _verdicts(decision: Decision) -> Iterator[tuple[tuple[str, int | None, str], str]]:
    """Yield the subjects of a decision as (kind, item, words), and the verdict on each."""
    subject, verb = decision.subject, decision.verb
    if decision.verb in OF_NAMES:
        first = 1 if decision.verb == "join" else 0
        with_main = f" {decision.annotators[0]}" if first else ""
        for name in decision.annotators[first:]:
            yield ("", None, f"name {name}"), f"{decision.verb}{with_main}"
    elif verb in _OF_FLAGS:
        return  # flags of two experts do not contradict each other
    elif verb in _OF_PROGRAMS:
        for name in decision.annotators:
            yield ("", None, f"kind of {name}"), verb
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
    elif isinstance(subject, RegistrationSubject):
        yield ("masks", decision.item, f"registration of {subject.name}"), subject.in_words(verb)
    elif isinstance(subject, GroupsSubject):
        yield ("", None, "groups of images"), f"{subject.in_words(verb)}: {', '.join(subject.groups)}"
    elif isinstance(subject, (ScaleSubject, CountingSubject)):
        item = None if subject.everywhere else decision.item
        yield ("clicks", item, subject.form), subject.in_words(verb)


def compare_voxels(journals: Journals) -> tuple[list[Difference], list[Overlap]]:
    """Compare the settled voxels of masks, by case and structure."""
    differences: list[Difference] = []
    overlaps: list[Overlap] = []
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
                more, overlap = _compare_structure(journals, image, structure, of, settled)
                differences += more
                overlaps += [overlap] if overlap is not None else []
    return differences, overlaps


def _compare_structure(
    journals: Journals, image: int, structure: str, sides: list[list[Region]],
    settled: list[dict[int, Settled]],
) -> tuple[list[Difference], Overlap | None]:  # fmt: skip
    pieces = [
        [values[region.voxels or 0] for region in side] for side, values in zip(sides, settled, strict=True)
    ]
    everything = [piece for side in pieces for piece in side]
    origin, shape = box_around((piece.origin, piece.value.shape) for piece in everything)

    def combined(of: list[list[Region]]) -> list[NDArray[np.int8]]:
        known = [known_voxels(*pair, structure, origin, shape) for pair in zip(of, settled, strict=True)]
        return [np.full(shape, OPEN, dtype=np.int8) if values is None else values for values in known]

    own, other = combined(sides)
    settled_by_both = overlap_of(own, other)
    differs = (own != OPEN) & (other != OPEN) & (own != other)
    if not differs.any():
        return [], settled_by_both
    touching = [
        [
            region
            for region, piece in zip(side, of, strict=True)
            if (piece.value[differs[slices_of(piece.origin, piece.value.shape, origin)]] != OPEN).any()
        ]
        for side, of in zip(sides, pieces, strict=True)
    ]
    own, other = combined(touching)
    agreed = np.where(own == OPEN, other, np.where((other == OPEN) | (other == own), own, OPEN))
    count = int(differs.sum())
    words = [
        journals.in_words(side, of[-1].decision, f"{int((values[differs] == 1).sum()):,} of them inside")
        for side, (of, values) in enumerate(zip(touching, (own, other), strict=True))
    ]
    name = journals.studies[0].image(image).name
    conflict = Conflict("masks", name, f"{structure}, {count:,} voxels", words[0], words[1])
    instead = []
    if (agreed != OPEN).any():
        instead.append(Decision(
            verb="paint", item=image, settled=Settled(origin, agreed.astype(np.int8)),
            subject=RegionSubject(structure=structure, origin=origin, shape=shape),
            reason=f"{AGREED}; {conflict.reason}",
        ))  # fmt: skip
    instead += _reopen_regions(journals, image, structure, touching, differs, origin)
    numbers = [[region.decision for region in side] for side in touching]
    return [Difference(conflict, (numbers[0], numbers[1]), tuple(instead))], settled_by_both


def _reopen_regions(
    journals: Journals, image: int, structure: str, sides: list[list[Region]], differs: NDArray[np.bool_],
    origin: tuple[int, int, int],
) -> Iterator[Decision]:  # fmt: skip
    """Reopen the disputed regions of the shown run in which voxels were settled differently."""
    study = journals.studies[0]
    run = study.shown.run(image, "masks")
    result = None if run is None else study.runs.result(run, image)
    if not isinstance(result, CaseResult) or structure not in result.structures():
        return
    disputes = result.reports[result.structures().index(structure)].disputes

    def reopen(number: int, origin: Box, shape: Box) -> Decision:
        words = []
        for side, regions in enumerate(sides):
            last = _last_in(regions, origin, shape, run, number)
            words.append(journals.in_words(side, last.decision, _verb_in_words(last)))
        subject = RegionSubject(structure=structure, origin=origin, shape=shape, number=number)
        return Decision(verb="reopen", item=image, run=run, subject=subject, reason="; ".join(words))

    outside = differs.copy()
    for number, dispute in enumerate(disputes, start=1):
        in_region, in_part = overlap(dispute.origin, dispute.shape, origin, differs.shape)
        voxels = dispute.voxels()[in_region]
        if (voxels & differs[in_part]).any():
            yield reopen(number, dispute.origin, dispute.shape)
        outside[in_part] &= ~voxels
    for at, (corner, shape) in enumerate(_parts(outside), start=1):
        z, y, x = np.add(origin, corner).tolist()
        yield reopen(len(disputes) + at, (z, y, x), shape)


_MAX_PARTS = 50
"""Maximum number of parts outside disputed regions that are reopened separately; a last part contains all
smaller parts.
"""


def _parts(voxels: NDArray[np.bool_]) -> list[tuple[Box, Box]]:
    """Return corner and shape of the boxes around connected voxels, the largest first."""
    labels, count = ndimage.label(voxels, np.ones((3, 3, 3)))
    order = 1 + np.argsort(-np.bincount(labels.ravel(), minlength=count + 1)[1:], kind="stable")
    labels = np.concatenate([[0], np.minimum(np.argsort(order), _MAX_PARTS - 1) + 1])[labels]
    return [
        (
            (box[0].start, box[1].start, box[2].start),
            (box[0].stop - box[0].start, box[1].stop - box[1].start, box[2].stop - box[2].start),
        )
        for box in ndimage.find_objects(labels)
    ]


def _last_in(regions: Sequence[Region], origin: Box, shape: Box, run: int | None, number: int) -> Region:
    """Return the last decision on a region, or else the last that overlaps its box."""
    for region in reversed(regions):
        if region.run == run and region.subject.number == number:
            return region
    for region in reversed(regions):
        box, _ = overlap(origin, shape, region.subject.origin, region.subject.shape)
        if all(side.stop > side.start for side in box):
            return region
    return regions[-1]


def _verb_in_words(region: Region) -> str:
    return f"take {region.subject.rater}" if region.verb == "take" else region.verb
