"""State of a study other than its annotations: the shown run of each item, settings, and viewed spots.

The same rule decides for window, exports, reports and command line which run is shown. For each kind one run
may be chosen. Without a choice, and for items that the chosen run lacks, the latest run of the item is shown.
A run that used a decision that has been undone since is never shown, because its result contains the undone
decision. It is replaced by the latest run of the item without such a decision, if possible of the same
algorithm. The settings apply equally to window, exports, reports and command line. The view log is
append-only: it contains the spots that the expert viewed and left without a decision.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from raterscope.algorithms.evaluation import RADIUS
from raterscope.algorithms.image_display import ChannelDisplay, Displays
from raterscope.app.errors import StudyError, plain, plain_names
from raterscope.app.program_files import user_name
from raterscope.app.review import Names, ReviewState, View, differ
from raterscope.app.study.file import StudyFile
from raterscope.app.study.kinds import STORED
from raterscope.app.study.records import (
    CohortCase,
    ImageQuality,
    ImportedFile,
    LastImport,
    Read,
    ReaderStudy,
    RunEntry,
    SecondRead,
)
from raterscope.app.study.runs import Answers
from raterscope.text import counted

if TYPE_CHECKING:
    from raterscope.app.study.study import Study


class ShownRuns:
    """Shown runs of an open study."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._only: RunEntry | None = None  # the run that alone is shown of its kind

    def chosen(self) -> dict[str, int]:
        """Return the run chosen for each kind; kinds without a choice are omitted."""
        with self._study.reading() as connection:
            return dict(connection.execute("SELECT kind, run FROM shown ORDER BY kind"))

    def choose(self, kind: str, run: int | None) -> None:
        """Choose the run to show; None shows the latest of each item."""
        if run is not None and self._study.runs.get(run).kind != kind:
            raise StudyError(f"has no run number {run} of {kind}", file=self._study.path)
        with self._study.change() as connection:
            connection.execute("DELETE FROM shown WHERE kind = ?", (kind,))
            if run is not None:
                connection.execute("INSERT INTO shown(kind, run) VALUES (?, ?)", (kind, run))

    @contextmanager
    def only(self, run: int | None) -> Iterator[None]:
        """Show only the items of one run of its kind within this context.

        None changes nothing. Raises `StudyError` if there is no such run; the message lists the existing
        runs.
        """
        before, self._only = self._only, self._only if run is None else self._named(run)
        try:
            yield
        finally:
            self._only = before

    def run(self, item: int, kind: str, chosen: int | None = None) -> int | None:
        """Return the shown run of an item; None if no run is valid under the journal.

        `chosen`: the run chosen to be shown; by default that of the attribute `chosen`.
        """
        only = self._only if self._only is not None and self._only.kind == kind else None
        if only is not None and item not in only.items:
            return None
        with self._study.reading() as connection:
            rows = connection.execute(
                "SELECT run FROM results JOIN runs ON runs.id = run WHERE item = ? AND kind = ? "
                "ORDER BY run DESC",
                (item, kind),
            )
            numbers = [int(number) for (number,) in rows]
        if only is not None:
            chosen = only.id
        elif chosen is None:
            chosen = self.chosen().get(kind)
        if not numbers:
            return None
        first = chosen if chosen in numbers else numbers[0]
        if not self.undone_since(first, item):
            return first
        algorithm = self._study.runs.get(first).algorithm
        alternatives = sorted((run for run in numbers if run != first), reverse=True)
        alternatives.sort(key=lambda run_id: self._study.runs.get(run_id).algorithm != algorithm)
        return next((run for run in alternatives if not self.undone_since(run, item)), None)

    def result(self, item: int, kind: str) -> tuple[RunEntry, Any] | None:
        """Return the shown run of an item and its result; None without a run."""
        run, result = self.run_and_result(item, kind, None)
        return None if run is None else (run, result)

    def run_and_result(self, item: int, kind: str, run: int | None) -> tuple[RunEntry | None, Any]:
        """Return the shown run of an item, given the chosen run, and its result; otherwise two None."""
        number = self.run(item, kind, run)
        result = None if number is None else self._study.runs.result(number, item)
        return (None, None) if result is None or number is None else (self._study.runs.get(number), result)

    def names(self, kind: str, last: int | None = None) -> Names:
        """Return the current names of renamed structures or classes, or their names after a decision."""
        return self._study.review_state(last).names_of(kind) if self._study.has_new_names else {}

    def answers(self) -> dict[int, Answers | None]:
        """Return the answers of the shown run of clicks for each image; None without an outline."""
        with self._study.reading() as connection:
            rows = connection.execute(
                "SELECT item, max(run), max(run = ?) FROM results JOIN runs ON runs.id = run "
                "WHERE kind = 'clicks' GROUP BY item",
                (chosen := self.chosen().get("clicks"),),
            ).fetchall()
        shown_by_item: dict[int, int] = {}
        undone: dict[int, bool] = {}
        for item, latest, has_chosen in rows:
            run = chosen if chosen is not None and has_chosen else latest
            if run not in undone:
                undone[run] = self._undone_after(self._study.runs.get(run))
            standing = self.run(item, "clicks", chosen) if undone[run] else run
            if standing is not None:
                shown_by_item[item] = standing
        return self._study.runs.answers(shown_by_item)

    def undone_since(self, run: int, item: int) -> list[int]:
        """Return the decisions on an item that a run used and that were undone later."""
        entry = self._study.runs.get(run)
        if not self._undone_after(entry):
            return []
        previous = self._study.review_state(entry.known)
        return self._study.review_state().undone_since(previous, entry.kind, item)

    def outdated(self, run: RunEntry, items: Sequence[int]) -> list[str]:
        """Describe changes of journal and annotations since a run, in sentences.

        Later decisions do not count: they are applied to the results of the run.

        `items`: items for which the run is shown.
        """
        current, previous = self._study.review_state(), self._used(run)
        reasons = []
        newer = [item for item in items if self._annotated_since(run, item)]
        if newer:
            reasons.append(f"{self._count(run.kind, newer)} got annotations after it")
        left_out = set(previous.excluded) ^ set(current.excluded)
        weighed = {*previous.weights, *current.weights}
        left_out |= {name for name in weighed if previous.weights.get(name) != current.weights.get(name)}
        names = sorted(left_out)
        if names:
            few = plain_names(names, 3, 40)
            reasons.append(f"other annotators are excluded or down-weighted now ({few})")
        if previous.programs != current.programs:
            reasons.append("other annotators are marked as programs now")
        if previous.aliases != current.aliases:
            reasons.append("other names of annotators are joined now")
        if previous.mergers(run.kind) != current.mergers(run.kind):
            reasons.append("other structures or classes are merged now")
        return [f"Run {run.id} is outdated: {' and '.join(reasons)}. Fuse again."] if reasons else []

    def decided_since(self, run: RunEntry, items: Sequence[int]) -> bool:
        """Return whether a fusion now would use other decisions than a run did."""
        current, previous = self._study.review_state(), self._used(run)
        return (
            differ(previous, current, run.kind)
            if not items
            else any(differ(previous, current, run.kind, item) for item in items)
        )

    def replaced(self, kind: str, items: Sequence[int]) -> list[str]:
        """Describe items whose chosen or latest run is not shown because decisions were undone."""
        only = self._only if self._only is not None and self._only.kind == kind else None
        number = self.chosen().get(kind) if only is None else only.id
        chosen: Collection[int] = () if number is None else frozenset(self._study.runs.get(number).items)
        latest = {item: run.id for run in self._study.runs.all() if run.kind == kind for item in run.items}
        replaced: dict[tuple[int, int | None], list[int]] = {}
        for item in items:
            if item not in latest or (only is not None and item not in chosen):
                continue
            expected = number if number is not None and item in chosen else latest[item]
            actual = self.run(item, kind)
            if actual != expected:
                replaced.setdefault((expected, actual), []).append(item)
        sentences = []
        for (expected, actual), some in replaced.items():
            instead = "no run is shown" if actual is None else f"run {actual} is shown"
            sentences.append(
                f"Run {expected} used decisions that were undone since: {instead} for "
                f"{self._count(kind, some)}. Fuse again."
            )
        return sentences

    def _named(self, run: int) -> RunEntry:
        entry = next((entry for entry in self._study.runs.all() if entry.id == run), None)
        if entry is None:
            raise StudyError(
                f"has no run number {run}; it has {self._study.runs.in_words()}", file=self._study.path
            )
        return entry

    def _used(self, run: RunEntry) -> ReviewState:
        """Return the state of the journal that a run used."""
        return self._study.review_state(run.known).with_weights(run.weights)

    def _undone_after(self, run: RunEntry) -> bool:
        """Return whether a decision known to a run was undone or redone later."""
        with self._study.reading() as connection:
            row = connection.execute(
                "SELECT 1 FROM decisions WHERE id > ? AND verb = 'undo' AND undoes <= ? LIMIT 1",
                (run.known, run.known),
            ).fetchone()
        return row is not None

    def _annotated_since(self, run: RunEntry, item: int) -> bool:
        with self._study.reading() as connection:
            row = connection.execute(STORED[run.kind].newer, (item, run.imported)).fetchone()
        return row is not None

    def _count(self, kind: str, items: Sequence[int]) -> str:
        if len(items) == 1:
            return plain(self._study.name_of(kind, items[0]))
        return counted(len(items), "question" if STORED[kind].by_question else "image")


LARGEST_RADIUS = 10_000.0
_RADIUS, _FOLDS = "matching_radius", "label_folds"
Record = dict[str, Any]

Value = TypeVar("Value")


class Setting(Generic[Value]):
    """Value of `StudySettings` that is stored under its name.

    `shape`: type that is decoded. `default`: value if it was never stored. `renewable`: whether an unreadable
    value counts as never stored, because it can be measured or set again.
    """

    def __init__(self, shape: Any, default: Value, *, renewable: bool = False) -> None:
        self._shape, self._default, self._renewable = shape, default, renewable

    def __set_name__(self, _owner: type, name: str) -> None:
        self._name = name

    def __get__(self, settings: StudySettings, _owner: type) -> Value:
        try:
            value: Value | None = settings.decoded(self._name, self._shape)
        except StudyError:
            if not self._renewable:
                raise
            value = None
        return self._default if value is None else value

    def __set__(self, settings: StudySettings, value: Value) -> None:
        settings.store(self._name, msgspec.json.encode(value).decode())


class StudySettings:
    """Settings of an open study; a setting that was never set has its default."""

    crowd_sizes = Setting[Record | None](Record, None, renewable=True)
    """Last measurement against the number of annotators."""
    compared_methods = Setting[Record | None](Record, None, renewable=True)
    """Last comparison of methods for masks."""
    vote_budget = Setting[Record | None](Record, None, renewable=True)
    """Budget of votes to request."""
    cohort = Setting[tuple[CohortCase, ...]](tuple[CohortCase, ...], ())
    """Cases of the cohort that were gathered into the study; empty for any other study."""
    reader_study = Setting[ReaderStudy | None](ReaderStudy, None)
    """State of the reader study that was collected in the study; None for any other study."""
    second_read = Setting[SecondRead | None](SecondRead, None)
    """Origin of this blind copy for a second reader; None for any other study."""
    reads = Setting[Sequence[Read]](tuple[Read, ...], ())
    """Reads of other experts that were merged into the study."""
    displays = Setting[Displays](dict[str, ChannelDisplay], {}, renewable=True)
    """Displays of image channels that were changed, by name."""
    groups = Setting[Mapping[int, str]](dict[int, str], {})
    """Group of each image in a study before version 22; see `groups.present_groups`."""
    image_quality = Setting[Mapping[int, ImageQuality]](dict[int, ImageQuality], {}, renewable=True)
    """Measured quality of images."""
    subjects = Setting[Mapping[str, str]](dict[str, str], {})
    """Subjects of Zooniverse by the name of the image or task; empty for other imports."""
    coco_images = Setting[Mapping[str, str]](dict[str, str], {})
    """Names of images by their ids in imported COCO files; empty if files disagree."""
    last_import = Setting[LastImport | None](LastImport | None, None, renewable=True)
    """What the last import added; None if it was undone."""
    imported_files = Setting[Mapping[str, ImportedFile]](dict[str, ImportedFile], {}, renewable=True)
    """Imported tables, by name, size and time of change."""

    def __init__(self, file: StudyFile) -> None:
        self._file = file

    def matching_radius(self) -> float:
        """Return the radius, in pixels, within which a detection matches a true point."""
        text = self._setting(_RADIUS)
        if text is None:
            return RADIUS
        radius = _number(text)
        if not 0 < radius <= LARGEST_RADIUS:
            raise StudyError(
                f"is damaged: settings, {_RADIUS}: expected a number above 0, at most {LARGEST_RADIUS:g}",
                file=self._file.path,
            )
        return radius

    def set_matching_radius(self, radius: float) -> None:
        """Set the radius, in pixels, within which detections match true points."""
        if not 0 < radius <= LARGEST_RADIUS:
            raise StudyError(
                f"cannot match within {radius:g} px; expected above 0, at most {LARGEST_RADIUS:g}",
                file=self._file.path,
            )
        self.store(_RADIUS, repr(float(radius)))

    def folds(self, question: int) -> Record | None:
        """Return the last cross-validation of methods for labels; None if unreadable."""
        try:
            record: Record | None = self.decoded(f"{_FOLDS}_{question}", Record)
        except StudyError:
            return None
        return record

    def keep_folds(self, question: int, record: Record) -> None:
        """Store the last cross-validation of methods for labels on a question."""
        self.store(f"{_FOLDS}_{question}", msgspec.json.encode(record).decode())

    def decoded(self, name: str, shape: Any) -> Any:
        """Decode a stored value; None if there is none."""
        text = self._setting(name)
        try:
            return None if text is None else msgspec.json.decode(text, type=shape)
        except (ValueError, RecursionError, msgspec.MsgspecError) as error:
            raise StudyError(f"is damaged: settings, {name} cannot be read", file=self._file.path) from error

    def store(self, name: str, value: str) -> None:
        """Store a value as text."""
        with self._file.change() as connection:
            connection.execute(
                "INSERT INTO settings(name, value) VALUES (?, ?) "
                "ON CONFLICT(name) DO UPDATE SET value = excluded.value",
                (name, value),
            )

    def _setting(self, name: str) -> str | None:
        with self._file.reading() as connection:
            row = connection.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


_COLUMNS = ("id", "at", "who", "image", "run", "number", "x", "y", "how", "seconds")


class ViewLog:
    """Views of spots in an open study."""

    def __init__(self, file: StudyFile) -> None:
        self._file = file

    def record(self, views: Sequence[View]) -> list[View]:
        """Append views to the log, on disk; return them with numbers and times.

        An empty `who` becomes the user's name.
        """
        time, user = datetime.now(UTC), user_name()
        with self._file.change() as connection:
            last = self.last()
            written = [
                replace(view, id=number, at=view.at or time, who=view.who or user)
                for number, view in enumerate(views, start=last + 1)
            ]
            connection.executemany(
                f"INSERT INTO viewed({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})",
                [_row(view) for view in written],
            )
        return written

    def by_image(self, last: int | None = None) -> dict[int, list[View]]:
        """Return the views of spots by image, oldest first, up to a view's number."""
        views: dict[int, list[View]] = {}
        with self._file.reading() as connection:
            rows = connection.execute(
                f"SELECT {', '.join(_COLUMNS)} FROM viewed WHERE id <= ? ORDER BY id",
                (2**62 if last is None else last,),
            ).fetchall()
        for row in rows:
            view = self._view(row)
            views.setdefault(view.image, []).append(view)
        return views

    def last(self) -> int:
        """Return the number of the last view; 0 before the first."""
        with self._file.reading() as connection:
            return int(connection.execute("SELECT ifnull(max(id), 0) FROM viewed").fetchone()[0])

    def _view(self, row: tuple[Any, ...]) -> View:
        values = dict(zip(_COLUMNS, row, strict=True))
        try:
            values["at"] = datetime.fromisoformat(values["at"])
            return View(**values)
        except ValueError as error:
            raise StudyError(f"is damaged: viewed, row {row[0]}: {error}", file=self._file.path) from error


def _row(view: View) -> tuple[Any, ...]:
    assert view.at is not None
    values = {name: getattr(view, name) for name in _COLUMNS}
    values["at"] = view.at.isoformat(timespec="milliseconds")
    return tuple(values.values())
