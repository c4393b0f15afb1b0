"""Contents of an open study, read in its own thread."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

from raterscope.algorithms.evaluation import RADIUS
from raterscope.algorithms.image_display import Displays
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
from raterscope.app.study.image_groups import present_groups
from raterscope.app.study.import_undo import import_dates, undoable_import
from raterscope.app.study.records import CohortCase, Item, LastImport

Found = TypeVar("Found", bound=Item)


@dataclass(frozen=True)
class Contents:
    """Contents of the open study, for display."""

    path: Path
    images: tuple[ImageEntry, ...]
    items: Mapping[str, tuple[Item, ...]]
    """Images or questions of each kind of annotation."""
    annotators: tuple[str, ...]
    runs: tuple[RunEntry, ...]
    decisions: tuple[Decision, ...]
    review: ReviewState
    stale: frozenset[str]
    """The kinds whose shown run used other decisions than those in effect."""
    chosen: Mapping[str, int] = field(default_factory=dict)
    """The run chosen to be shown of each kind; without one, the latest of each item."""
    matching_radius: float = RADIUS
    """Pixels within which a detection matches a true position."""
    displays: Displays = field(default_factory=dict)
    """Displays of image channels that differ from the default."""
    groups: Mapping[int, str] = field(default_factory=dict)
    """The group of each image that has one, such as a patient."""
    cohort: tuple[CohortCase, ...] = ()
    """The cases of a gathered cohort; empty for any other study."""
    has_readers: bool = False
    """Whether it is a collected reader study."""
    last_import: LastImport | None = None
    """The last import, if it can be undone."""
    import_dates: Mapping[str, str] = field(default_factory=dict)  # of tables
    """Imported tables, by name, size and time of change."""
    hidden: bool = False
    """Whether the names of annotators are hidden."""

    @cached_property
    def measures(self) -> Measures:
        """Measures on images of clicks."""
        return read_measures(self.decisions, self.review)

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """Number of each annotator in the study, which fixes the colour."""
        return {name: number for number, name in enumerate(self.annotators)}

    def pixel_size(self, image: ImageEntry) -> float | None:
        """Return the size of an image's pixel in micrometres, as set or as in the file; None if unknown."""
        return self.measures.pixel_size(image.id, image.pixel_size)

    def text_of(self, decision: Decision) -> str:
        """Describe a decision, as in "reject spot 12"."""
        return self.review.in_words(decision, hidden=self.hidden)

    def of(self, kind: str) -> tuple[Item, ...]:
        """List the items of a kind; empty if the study has none."""
        return self.items.get(kind, ())

    def runs_of(self, kind: str) -> tuple[RunEntry, ...]:
        """List the runs of a kind, the oldest first."""
        return tuple(run for run in self.runs if run.kind == kind)

    @property
    def next_undo(self) -> Decision | LastImport | None:
        """What Undo takes back next: the last decision, or an import after it."""
        decision, last = self.review.undoable, self.last_import
        if last is None or (decision is not None and decision.id > last.decisions[1]):
            return decision
        return last

    def target(self, decision: Decision) -> Decision | None:
        """Return the target of a chain of undos; any other decision itself."""
        return target_of(decision, self.review.decision)[0]

    def brought_back(self, decision: Decision) -> Subject | None:
        """Return the subject of an undo's or redo's target; None for any other decision."""
        target = self.target(decision)
        return None if target is None or target is decision else target.subject

    def items_of(self, decision: Decision, kind: str) -> tuple[int, ...]:
        """Return all items of a decision of a kind, or of the decision that it undoes."""
        target = self.target(decision)
        if target is None or target.subject is None or target.subject.kind != kind:
            return ()
        return target.items

    def item_of(self, decision: Decision, kind: str) -> int | None:
        """Return the item of a decision of a kind, or of the decision that it undoes; None for any other."""
        return next(iter(self.items_of(decision, kind)), None)

    def image(self, key: int) -> ImageEntry | None:
        """Find an image by its number in the study."""
        return _find(self.images, key)

    def item(self, kind: str, key: int) -> Item | None:
        """Find an item of a kind by its number."""
        return _find(self.of(kind), key)


def _find(items: Sequence[Found], key: int) -> Found | None:
    """Find an item by its number; items are in ascending order."""
    at = bisect_left(items, key, key=attrgetter("id"))
    return items[at] if at < len(items) and items[at].id == key else None


@dataclass(frozen=True)
class Written:
    """A stored decision, and the state of the journal after it."""

    decision: Decision
    decisions: tuple[Decision, ...]
    state: ReviewState
    stale: frozenset[str]


@dataclass(frozen=True)
class Chosen:
    """The chosen runs, and the kinds whose shown run is stale."""

    chosen: Mapping[str, int]
    stale: frozenset[str]


class Journal:
    """The journal in memory, owned by the study's thread, which alone writes it."""

    def __init__(self, decisions: Sequence[Decision]) -> None:
        self.decisions = tuple(decisions)
        self.state = fold(decisions)
        self._then: dict[str, ReviewState] = {}

    def append(self, decision: Decision) -> None:
        """Add a stored decision."""
        self.decisions = (*self.decisions, decision)
        self.state = fold(self.decisions, self.state)

    def catch_up(self, study: Study) -> None:
        """Add the decisions that an import stored."""
        if study.last_decision() > (self.decisions[-1].id if self.decisions else 0):
            for decision in study.decisions()[len(self.decisions) :]:
                self.append(decision)

    def rest_on(self, runs: Sequence[RunEntry], chosen: Mapping[str, int]) -> None:
        """Record which decisions the shown run of each kind used."""
        shown_runs = {run.kind: run for run in runs}
        shown_runs |= {run.kind: run for run in runs if chosen.get(run.kind) == run.id}
        self._then = {
            kind: fold([decision for decision in self.decisions if decision.id <= run.known]).with_weights(
                run.weights
            )
            for kind, run in shown_runs.items()
        }

    @property
    def stale(self) -> frozenset[str]:
        """Kinds whose shown run used other decisions than those in effect."""
        return frozenset(kind for kind, previous in self._then.items() if differ(previous, self.state, kind))


def open_study(path: Path, create: bool, watch: Watch) -> tuple[Study, Journal, Contents]:
    """Open or create a study and read its contents; it is closed on failure."""
    with ExitStack() as closing:
        study = closing.enter_context(Study.create(path) if create else Study.open(path))
        journal = Journal(study.decisions())
        contents = read_contents(journal, study, watch)
        closing.pop_all()
    return study, journal, contents


def read_contents(journal: Journal, study: Study, watch: Watch) -> Contents:
    """Read the contents of a study, with the journal in memory."""
    watch(0.0, "reading the study")
    runs = tuple(study.runs.all())
    chosen = study.shown.chosen()
    journal.catch_up(study)
    journal.rest_on(runs, chosen)
    images = tuple(study.images())
    return Contents(
        path=study.path,
        images=images,
        items=study.items(images),
        annotators=tuple(study.annotators()),
        runs=runs,
        decisions=journal.decisions,
        review=journal.state,
        stale=journal.stale,
        chosen=chosen,
        matching_radius=study.settings.matching_radius(),
        displays=study.settings.displays,
        groups=present_groups(study, journal.state),
        cohort=study.settings.cohort,
        has_readers=study.settings.reader_study is not None,
        last_import=undoable_import(study, runs),
        import_dates=import_dates(study),
    )


def set_displays(displays: Displays, study: Study, watch: Watch) -> None:
    """Store the displays of image channels."""
    watch(0.0, "writing")
    study.settings.displays = displays


def set_matching_radius(radius: float, study: Study, watch: Watch) -> float:
    """Set the radius within which detections match true points."""
    watch(0.0, "setting the matching radius")
    study.settings.set_matching_radius(radius)
    return radius


def choose_run(
    journal: Journal, kind: str, run: int | None, runs: Sequence[RunEntry], study: Study, watch: Watch
) -> Chosen:
    """Show a run of a kind; see `ShownRuns.choose`."""
    watch(0.0, "choosing a run")
    study.shown.choose(kind, run)
    chosen = study.shown.chosen()
    journal.rest_on(runs, chosen)
    return Chosen(chosen, journal.stale)


def write_decision(
    journal: Journal, make: Callable[[ReviewState], Decision | None], study: Study, watch: Watch
) -> Written | None:
    """Make a decision from the stored journal, so that two quick undos undo two decisions."""
    watch(0.0, "writing")
    journal.catch_up(study)
    decision = make(journal.state)
    if decision is None:
        return None
    written = study.record(decision)
    journal.append(written)
    return Written(written, journal.decisions, journal.state, journal.stale)
