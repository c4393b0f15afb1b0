"""What is known of an open study, read and kept in its own thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from raterscope.algorithms.evaluation import RADIUS
from raterscope.algorithms.progress import Watch
from raterscope.app.review import (
    Decision,
    Measures,
    ReviewState,
    Subject,
    differ,
    fold,
    read_measures,
    target_of,
)
from raterscope.app.study import ImageEntry, RunEntry, Study
from raterscope.app.study.records import Item


@dataclass(frozen=True)
class Contents:
    """What is known of the open study, for drawing."""

    path: Path
    images: tuple[ImageEntry, ...]
    items: Mapping[str, tuple[Item, ...]]
    """What there is of each kind of annotation, or is to be: images, questions."""
    annotators: tuple[str, ...]
    runs: tuple[RunEntry, ...]
    decisions: tuple[Decision, ...]
    review: ReviewState
    stale: frozenset[str]
    """The kinds whose shown run no longer rests on what the expert says now."""
    chosen: Mapping[str, int] = field(default_factory=dict)
    """The run that was chosen to be shown of each kind; without one, the latest of each item."""
    matching_radius: float = RADIUS
    """Pixels within which a detection matches a true place."""
    hidden: bool = False
    """The names of annotators are not to be seen."""

    @cached_property
    def measures(self) -> Measures:
        """What is measured on images of clicks."""
        return read_measures(self.decisions, self.review)

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """Every annotator's number in the study, which is a colour for good."""
        return {name: number for number, name in enumerate(self.annotators)}

    def pixel_size(self, image: ImageEntry) -> float | None:
        """Return the micrometres of an image's pixel, as set or else as its file says; None where unknown."""
        return self.measures.pixel_size(image.id, image.pixel_size)

    def words(self, decision: Decision) -> str:
        """Say a decision: "reject spot 12"."""
        return self.review.in_words(decision, hidden=self.hidden)

    def of(self, kind: str) -> tuple[Item, ...]:
        """List the items of a kind."""
        return self.items[kind]

    def runs_of(self, kind: str) -> tuple[RunEntry, ...]:
        """List the runs of a kind, the oldest first."""
        return tuple(run for run in self.runs if run.kind == kind)

    def target(self, decision: Decision) -> Decision | None:
        """Return what an undo is about in the end; any other decision itself."""
        return target_of(decision, self.review.decision)[0]

    def brought_back(self, decision: Decision) -> Subject | None:
        """Return what an undo or redo is about in the end; None for any other decision."""
        target = self.target(decision)
        return None if target is None or target is decision else target.subject

    def items_of(self, decision: Decision, kind: str) -> tuple[int, ...]:
        """Return all items that a decision of a kind, or what it undoes, is about."""
        target = self.target(decision)
        if target is None or target.subject is None or target.subject.kind != kind:
            return ()
        return target.items

    def item_of(self, decision: Decision, kind: str) -> int | None:
        """Return the item that a decision of a kind, or what it undoes, is about; None for any other."""
        return next(iter(self.items_of(decision, kind)), None)

    def image(self, key: int) -> ImageEntry | None:
        """Find an image by its number in the study."""
        return next((entry for entry in self.images if entry.id == key), None)


@dataclass(frozen=True)
class Written:
    """A decision that is on disk, and what the journal amounts to with it."""

    decision: Decision
    decisions: tuple[Decision, ...]
    state: ReviewState
    stale: frozenset[str]


@dataclass(frozen=True)
class Chosen:
    """The runs that are chosen to be shown, and the kinds whose shown run is stale."""

    chosen: Mapping[str, int]
    stale: frozenset[str]


class Journal:
    """The journal as the study's thread holds it, which alone writes it: it need not be read each time."""

    def __init__(self, decisions: Sequence[Decision]) -> None:
        self.decisions = tuple(decisions)
        self.state = fold(decisions)
        self._then: dict[str, ReviewState] = {}

    def append(self, decision: Decision) -> None:
        """Import a decision that is on disk."""
        self.decisions = (*self.decisions, decision)
        self.state = fold(self.decisions, self.state)

    def rest_on(self, runs: Sequence[RunEntry], chosen: Mapping[str, int]) -> None:
        """Remember what the run shown of each kind was held to: that chosen, else the latest."""
        shown = {run.kind: run for run in runs}
        shown |= {run.kind: run for run in runs if chosen.get(run.kind) == run.id}
        known = {run.kind: run.known for run in shown.values()}
        self._then = {
            kind: fold([one for one in self.decisions if one.id <= last]) for kind, last in known.items()
        }

    @property
    def stale(self) -> frozenset[str]:
        """The kinds whose shown run was held to other decisions than stand now."""
        return frozenset(kind for kind, then in self._then.items() if differ(then, self.state, kind))


def open_study(path: Path, create: bool, watch: Watch) -> tuple[Study, Journal, Contents]:
    """Open or create a study, and read what is to be known of it; it is closed where that fails."""
    with ExitStack() as closing:
        study = closing.enter_context(Study.create(path) if create else Study.open(path))
        journal = Journal(study.decisions())
        contents = read_contents(journal, study, watch)
        closing.pop_all()
    return study, journal, contents


def read_contents(journal: Journal, study: Study, watch: Watch) -> Contents:
    """Read what is to be known of a study, with the journal as it is in memory."""
    watch(0.0, "reading the study")
    runs = tuple(study.runs.all())
    chosen = study.shown.chosen()
    journal.rest_on(runs, chosen)
    return Contents(
        path=study.path,
        images=tuple(study.images()),
        items=study.items(),
        annotators=tuple(study.annotators()),
        runs=runs,
        decisions=journal.decisions,
        review=journal.state,
        stale=journal.stale,
        chosen=chosen,
        matching_radius=study.settings.matching_radius(),
    )


def set_matching_radius(radius: float, study: Study, watch: Watch) -> float:
    """Set the radius within which detections match true points."""
    watch(0.0, "setting the matching radius")
    study.settings.set_matching_radius(radius)
    return radius


def choose_run(
    journal: Journal, kind: str, run: int | None, runs: Sequence[RunEntry], study: Study, watch: Watch
) -> Chosen:
    """Show a run of a kind from now on; see `ShownRuns.choose`."""
    watch(0.0, "choosing a run")
    study.shown.choose(kind, run)
    chosen = study.shown.chosen()
    journal.rest_on(runs, chosen)
    return Chosen(chosen, journal.stale)


def write_decision(
    journal: Journal, make: Callable[[ReviewState], Decision | None], study: Study, watch: Watch
) -> Written | None:
    """Make a decision from the journal as it stands on disk, so that two quick undos are two."""
    watch(0.0, "writing")
    decision = make(journal.state)
    if decision is None:
        return None
    written = study.record(decision)
    journal.append(written)
    return Written(written, journal.decisions, journal.state, journal.stale)
