"""Effects of decisions in force: measures of images, codings of structures, registrations, samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from raterscope.algorithms.clicks.data import FloatArray
from raterscope.algorithms.geometry import area_of, length_of
from raterscope.app.coding import Coding
from raterscope.app.review.decision import Decision
from raterscope.app.review.journal import REVIEWED, ReviewState
from raterscope.app.review.samples import SampleProgress, SampleSubject
from raterscope.app.review.subjects import (
    COUNTED,
    CountingSubject,
    RegistrationSubject,
    ScaleSubject,
    ShapeSubject,
    StructureSubject,
)

_SUBJECTS = (ScaleSubject, ShapeSubject, CountingSubject)


@dataclass(frozen=True, eq=False)
class Shape:
    """A line or an outline on an image."""

    subject: ShapeSubject
    made: Decision  # last decision that changed it
    points: FloatArray  # (K, 2): pixels
    length: float  # of the line or the outline, pixels
    area: float | None  # area of an outline, square pixels; None for a line


@dataclass(frozen=True, eq=False)
class Measures:
    """Measures in effect."""

    # number of an image to the decision on its scale; None to that on all other images
    scales: Mapping[int | None, Decision] = field(default_factory=dict)
    # number of an image to its shapes, the oldest first
    shapes: Mapping[int, tuple[Shape, ...]] = field(default_factory=dict)
    # number of an image to its counts; None to those of all images together
    counting: Mapping[int | None, CountingSubject] = field(default_factory=dict)

    def scale_of(self, image: int) -> Decision | None:
        """Return the decision on an image's scale; None if the file's scale applies."""
        decision = self.scales.get(image, self.scales.get(None))
        return None if decision is None or decision.verb == "unscale" else decision

    def pixel_size(self, image: int, of_file: float | None) -> float | None:
        """Return the size of an image's pixel in micrometres, as set or as in the file; None if unknown."""
        decision = self.scale_of(image)
        if decision is None:
            return of_file
        assert isinstance(decision.subject, ScaleSubject)
        return decision.subject.pixel_size

    @property
    def noun(self) -> str:
        """Plural name of the counted structures, as set; empty without one."""
        together = self.counting.get(None)
        return together.noun if together is not None else ""

    @property
    def of_blood(self) -> bool:
        """Whether blood cells were counted, or the film was measured."""
        return any(getattr(each, name) is not None for each in self.counting.values() for name in COUNTED)

    def next_number(self, image: int, decisions: Sequence[Decision]) -> int:
        """Return an unused number for the next shape on an image."""
        numbers = [
            decision.subject.number
            for decision in decisions
            if isinstance(decision.subject, ShapeSubject) and decision.item == image
        ]
        return max(numbers, default=0) + 1


def is_measure(decision: Decision | None) -> bool:
    """Return whether a decision, or the target of an undo, is a measure."""
    return decision is not None and isinstance(decision.subject, _SUBJECTS)


def read_measures(decisions: Sequence[Decision], state: ReviewState) -> Measures:
    """Read the measures in effect from the journal.

    `decisions`: all decisions, in order. `state`: effect of the decisions.
    """
    scales: dict[int | None, Decision] = {}
    shapes: dict[int, dict[int, Shape]] = {}
    counting: dict[int | None, CountingSubject] = {}
    for decision in decisions:
        subject, image = decision.subject, decision.item
        if not isinstance(subject, _SUBJECTS) or image is None or not state.stands(decision.id):
            continue
        if isinstance(subject, ScaleSubject):
            if subject.everywhere:
                scales.clear()
            scales[None if subject.everywhere else image] = decision
        elif isinstance(subject, CountingSubject):
            counting[None if subject.everywhere else image] = subject
        elif decision.verb == "delete":
            shapes.get(image, {}).pop(subject.number, None)
        elif decision.verb == "measure" or subject.number in shapes.get(image, {}):
            shapes.setdefault(image, {})[subject.number] = _shape(subject, decision)
    return Measures(
        scales, {image: tuple(image_shapes.values()) for image, image_shapes in shapes.items()}, counting
    )


def _shape(subject: ShapeSubject, decision: Decision) -> Shape:
    points = np.array(subject.points, dtype=float)
    closed = subject.shape == "area"
    return Shape(
        subject, decision, points, length_of(points, closed=closed), area_of(points) if closed else None
    )


def described_structures(decisions: Sequence[Decision], state: ReviewState) -> dict[str, Coding]:
    """Read the codings of structures from the journal; the last decision in effect counts.

    `decisions`: all decisions, in order. `state`: effect of the decisions.
    """
    names = state.names_of("masks")
    return {
        names.get(decision.subject.structure, decision.subject.structure): decision.subject.coding
        for decision in decisions
        if isinstance(decision.subject, StructureSubject) and state.in_effect(decision.id)
    }


def registered_series(
    decisions: Sequence[Decision], state: ReviewState, case: int
) -> dict[int, RegistrationSubject]:
    """Return the registrations in effect of a case's other series, by the number of the series."""
    return {
        decision.subject.series: decision.subject
        for decision in decisions
        if isinstance(decision.subject, RegistrationSubject)
        and decision.item == case
        and decision.verb == "register"
        and state.in_effect(decision.id)
    }


def read_sample(state: ReviewState, kind: str) -> SampleProgress | None:
    """Return the open sample of a kind with the items re-read since it was drawn; None without one."""
    drawn = state.sample(kind)
    if drawn is None or not isinstance(drawn.subject, SampleSubject):
        return None
    right = {}
    for position, sampled in enumerate(drawn.subject.items):
        decided = state.decided(kind, sampled.item)
        verdict = None if decided is None else decided.verdict_on(sampled, drawn.id)
        if verdict is not None:
            right[position] = verdict
    return SampleProgress(drawn.id, drawn.subject, right)


def read_last_samples(state: ReviewState) -> list[SampleProgress]:
    """Return the last sample of each kind, open, or in its state at the end of its plan."""
    samples = (read_sample(state.at_last_sample(kind), kind) for kind in REVIEWED)
    return [sample for sample in samples if sample is not None]
