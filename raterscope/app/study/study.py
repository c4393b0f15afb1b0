"""Study: one file with all data except the pixels."""

from __future__ import annotations

import sqlite3
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np

from raterscope.algorithms.clicks.data import Clicks, ClicksError, FloatArray, IntArray
from raterscope.algorithms.masks.data import Settled
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError, StudyError, plain
from raterscope.app.formats.records import ClickTable, ImageFile, PointTable, VolumeFile
from raterscope.app.program_files import FileState
from raterscope.app.review import Decision, ReviewState, current_names, fold
from raterscope.app.study.arrays import read_object
from raterscope.app.study.file import StudyFile
from raterscope.app.study.imports import assign_images, kind_of, write_marks
from raterscope.app.study.kinds import STORED, mismatch_of_settled
from raterscope.app.study.records import (
    ImageEntry,
    ImportSummary,
    Item,
    MarksRecord,
    PairQuestion,
    QuestionEntry,
    RunEntry,
    TruePoints,
)
from raterscope.app.study.references import (
    ImageNames,
    add_file,
    add_size,
    add_volume,
    check_moved_file,
    digest_of_images,
    locate,
    read_image_entries,
    set_image_file,
    size_of,
)
from raterscope.app.study.rows import append_decision, question_of, read_decisions, read_imports, read_marks
from raterscope.app.study.runs import RunStore, renamed_marks
from raterscope.app.study.state import ShownRuns, StudySettings, ViewLog
from raterscope.app.study.vote_sets import (
    ComparisonSet,
    VoteSet,
    last_import_for,
    read_comparison_set,
    read_vote_set,
)

Value = TypeVar("Value")

_STATES = 16
"""Maximum number of states of the journal that are kept in memory."""

_LISTED = 6
"""Maximum number of unfinished reader sessions listed in a message."""


class Study:
    """Open study. It is used by one thread at a time; every change is on disk when the method returns.

    Every method raises StudyError if the file cannot be read or written.

    Attributes
    ----------
    runs : RunStore
    settings : StudySettings
    shown : ShownRuns
    views : ViewLog
    """

    def __init__(self, file: StudyFile) -> None:
        self._file = file
        self._connection = file.connection
        self.settings = StudySettings(file)
        self.views = ViewLog(file)
        self.runs = RunStore(self)
        self.shown = ShownRuns(self)
        # No other process changes the file while it is open, and no annotator or run ever changes.
        self._names: list[str] | None = None
        self._states: dict[int, ReviewState] = {}
        self._vote_sets: dict[tuple[int, int], VoteSet] = {}
        # by image and last import: numbers of clicks and annotators; imports do not change
        self._click_counts: dict[tuple[int, int], tuple[int, int]] = {}
        self._comparison_sets: dict[tuple[int, int], ComparisonSet] = {}
        self._derived: dict[tuple[str, int], tuple[str, Any]] = {}  # see `derived`; common to all copies

    # The file

    @classmethod
    def create(cls, path: Path | str) -> Self:
        """Create an empty study and open it; see `StudyFile.create`."""
        return cls(StudyFile.create(path))

    @classmethod
    def open(
        cls, path: Path | str, *, to_read: bool = False, lock: bool = True, blinded: bool = False
    ) -> Self:
        """Open a study for this process alone; see `StudyFile.open`.

        Parameters
        ----------
        blinded : bool
            Open a reader study even if readers have not finished. Otherwise `StudyError` names these readers,
            because anyone who has seen the marks may influence them.
        """
        study = cls(StudyFile.open(path, to_read=to_read, lock=lock))
        if not blinded:
            try:
                study.refuse_blinded()
            except BaseException:
                study.close()
                raise
        return study

    def refuse_blinded(self) -> None:
        """Raise `StudyError` for a reader study that must not be shown yet."""
        readers = self.settings.reader_study
        if readers is None or not readers.is_blinded:
            return
        waiting = readers.unfinished
        few = "; ".join(plain(progress.in_words()) for progress in waiting[:_LISTED])
        more = f"; and {len(waiting) - _LISTED:,} more" if len(waiting) > _LISTED else ""
        raise StudyError(
            f"is blinded until every reader has finished ({few}{more}). Collect the missing files, or open "
            'it now with `raterscope reader-study collect ... --unblind "REASON"`',
            file=self.path,
        )

    @property
    def path(self) -> Path:
        """The file."""
        return self._file.path

    def copy(self, watch: Watch = silent) -> Self:
        """Return a snapshot for another thread; see `StudyFile.copy`."""
        copy = type(self)(self._file.copy(watch))
        copy._derived = self._derived
        return copy

    def derived(self, name: str, question: int, digest: str, compute: Callable[[], Value]) -> Value:
        """Return a value that follows from a run's input alone, computed once for the study and its copies.

        `name`: name of the value; for each question that of the last `digest` of the input is kept.
        """
        if self._derived.get((name, question), ("",))[0] != digest:
            self._derived[name, question] = digest, compute()
        value: Value = self._derived[name, question][1]
        return value

    def checkpoint(self) -> bool:
        """Complete the main file; see `StudyFile.checkpoint`."""
        return self._file.checkpoint()

    def rest(self) -> FileState:
        """Complete the main file while idle; see `StudyFile.rest`."""
        return self._file.rest()

    def close(self) -> None:
        """Close the file; see `StudyFile.close`."""
        self._file.close()

    def discard(self, identity: tuple[int, int] | None = None) -> None:
        """Close the study, and remove its file if it was created here; see `StudyFile.discard`."""
        self._file.discard(identity)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while error is not None:  # an interrupted reading is in its frames, and keeps the file open
            traceback.clear_frames(error.__traceback__)
            error = error.__cause__
        self.close()

    def reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """Read within this context, with database errors as StudyError; for the modules of this package."""
        return self._file.reading()

    @contextmanager
    def change(self) -> Iterator[sqlite3.Connection]:
        """Change the file completely or not at all; see `StudyFile.change`."""
        try:
            with self._file.change() as connection:
                yield connection
        except BaseException:
            self.forget()
            raise

    def forget(self) -> None:
        """Drop cached contents, which may differ from the file after a failed change."""
        self._names = None
        self._states.clear()
        self._vote_sets.clear()
        self._click_counts.clear()
        self._comparison_sets.clear()

    # Images

    def images(self) -> list[ImageEntry]:
        """List the images in the order of import."""
        with self.reading():
            return read_image_entries(self._connection, self.path)

    def names(self) -> dict[tuple[str, int], str]:
        """Return the names of all items by kind and number."""
        return {(kind, entry.id): entry.name for kind, entries in self.items().items() for entry in entries}

    def image(self, image_id: int) -> ImageEntry:
        """Return one image."""
        with self.reading():
            entries = read_image_entries(self._connection, self.path, image_id)
        if not entries:
            raise StudyError(f"has no image number {image_id}", file=self.path)
        return entries[0]

    def items(self, images: Sequence[ImageEntry] | None = None) -> dict[str, tuple[Item, ...]]:
        """List the items of each kind of annotation; `images`: the study's images, if already read.

        An image without annotations belongs to masks if it has a geometry, otherwise to clicks; an image that
        shows a task belongs to neither.
        """
        with self.reading():
            annotated = {
                kind.name: {image for (image,) in self._connection.execute(kind.annotated)}
                for kind in STORED.values()
                if not kind.by_question
            }
            rows = self._connection.execute("SELECT DISTINCT image FROM pictures").fetchall()
            entries = read_image_entries(self._connection, self.path) if images is None else images
        elsewhere = {image for (image,) in rows}.union(*annotated.values())
        return {
            kind.name: tuple(
                entry
                for entry in entries
                if entry.id in annotated[kind.name] or (entry.id not in elsewhere and kind.takes(entry))
            )
            if kind.questions is None
            else kind.questions(self)
            for kind in STORED.values()
        }

    def add_images(self, files: Sequence[ImageFile | VolumeFile], watch: Watch = silent) -> list[ImageEntry]:
        """Add references to images (path, size, digest) and volumes; existing ones are not added again.

        An image of which only the size was known, from a table of clicks, gets its file.

        Raises
        ------
        StudyError
            If a file cannot be read, or has another size than in the table of clicks.
        """
        digests = digest_of_images(files, watch)
        added = []
        with self.change():
            names = ImageNames(self.images(), self.path.parent)
            for file, digest in zip(files, digests, strict=True):
                add: Callable[..., ImageEntry] = add_volume if isinstance(file, VolumeFile) else add_file
                entry = add(self._connection, self.path, file, digest, names)
                names.add(entry)
                added.append(entry)
        return added

    def locate(self, entry: ImageEntry) -> Path | None:
        """Find an image's file at its stored path or beside the study; None if it is missing."""
        return locate(entry, self.path)

    def relocate_all(self, folder: Path | str) -> list[ImageEntry]:
        """Search a folder for missing images, by name and content, and set their paths."""
        relocated = []
        for entry in self.images():
            if entry.path is None or self.locate(entry) is not None:
                continue
            file = Path(folder) / Path(entry.path).name
            try:
                if not file.exists() or size_of(file) != entry.size:
                    continue
                file, digest = check_moved_file(entry, file)
            except (InputError, OSError):  # it is called as the image was, and is another
                continue
            with self.change():
                relocated.append(set_image_file(self._connection, self.path, entry.id, file, digest))
        return relocated

    # Annotators and what they marked

    def add_clicks(
        self,
        table: ClickTable | PointTable,
        watch: Watch = silent,
        *,
        extent: tuple[float, float] | None = None,
        skip_unknown: bool = False,
    ) -> ImportSummary:
        """Import clicks, true points or a program's detections, completely or not at all.

        Parameters
        ----------
        table : ClickTable or PointTable
        watch : Watch
        extent : (width, height), optional
            Size in pixels of images whose size neither the study nor the table contains.
        skip_unknown : bool
            Skip clicks on images of unknown size that are not in the study, if other clicks of the table are
            on images of the study.

        Raises
        ------
        StudyError
            For an image of unknown size that is not in the study.
        """
        kind = kind_of(table)
        with self.change() as connection:
            self.forget_annotators()
            names = ImageNames(self.images(), self.path.parent)
            add = partial(add_size, connection, self.path)
            entries, notices = assign_images(table, names, add, extent, skip_unknown)
            present = partial(read_marks, connection, self.path, kind=kind)
            return write_marks(connection, table, entries, present, notices, watch)

    def clicks(
        self, image_id: int, run: RunEntry | None = None, *, entry: ImageEntry | None = None
    ) -> Clicks:
        """Return all clicks on an image, without known spots.

        Parameters
        ----------
        image_id : int
        run : RunEntry, optional
            Return the clicks that this run used: without later imports and excluded annotators, with joined
            names as one annotator, and with the weights at that time. Rows and annotators of its results
            refer to these.
        entry : ImageEntry, optional
            The image, if already read.
        """
        entry = self.image(image_id) if entry is None else entry
        last = None if run is None else run.imported
        marks, viewers = self._read_clicks(image_id, last)
        scores, names = self.scores(image_id, last), self.annotators()
        try:
            clicks = Clicks(
                x=marks.x,
                y=marks.y,
                annotator=np.searchsorted(viewers, marks.annotator),
                annotators=tuple(names[number] for number in viewers.tolist()),
                extent=entry.extent,
                time=marks.time,
                scores=scores,
                classes=marks.classes,
                label=marks.label,
            )
        except ClicksError as error:
            raise StudyError(f"is damaged: {error}", file=self.path) from error
        if run is None or not (run.excluded or run.weights or run.aliases or run.programs):
            return clicks
        joined = clicks.joined(current_names(clicks.annotators, run.aliases))
        programs = set(run.programs).difference(run.excluded)
        radius = run.log.get("matching_radius")
        if not isinstance(radius, (int, float)):  # runs of earlier versions do not name it
            radius = self.settings.matching_radius()
        joined = joined.with_programs(programs, radius)
        return joined.without(set(run.excluded)).with_weights(run.weights)

    def count_clicks(self, image_id: int, run: RunEntry) -> tuple[int, int]:
        """Return the numbers of clicks on an image, and of its annotators, that a run used."""
        if run.excluded or run.aliases or run.programs:
            clicks = self.clicks(image_id, run)
            return len(clicks), len(clicks.annotators)
        last = self.last_import() if run.imported is None else run.imported
        if (image_id, last) not in self._click_counts:
            self._read_clicks(image_id, last)
        return self._click_counts[image_id, last]

    def _read_clicks(self, image_id: int, last: int | None) -> tuple[MarksRecord, IntArray]:
        """Read all clicks on an image, up to an import, and the ascending numbers of its annotators."""
        last = self.last_import() if last is None else last
        with self.reading():
            marks = read_marks(self._connection, self.path, image_id, "clicks", last)
        marks = renamed_marks(marks, self.shown.names("clicks"))
        occurring, annotators = np.concatenate([marks.looked, marks.annotator]), len(self.annotators())
        if len(occurring) and not 0 <= occurring.min() <= occurring.max() < annotators:
            raise StudyError("is damaged: a mark has no annotator", file=self.path)
        occurs = np.zeros(annotators, dtype=np.bool_)
        occurs[occurring] = True
        viewers = np.flatnonzero(occurs)
        self._click_counts[image_id, last] = len(marks.x), len(viewers)
        return marks, viewers

    def scores(self, image_id: int, last: int | None = None) -> FloatArray | None:
        """Return a program's detections on an image: x, y and score, (K, 3).

        Of several imports the last counts, or the last up to a number. None if no program searched the image.
        """
        with self.reading():
            imports = read_imports(self._connection, self.path, image_id, "scores", last=last)
        if not imports:
            return None
        _, detections = imports[-1]
        assert detections.score is not None
        return np.column_stack([detections.x, detections.y, detections.score])

    def truth(self, image_id: int) -> TruePoints:
        """Return the imported true points of an image."""
        with self.reading():
            imports = read_imports(self._connection, self.path, image_id, "truth")
        points = np.concatenate(
            [np.empty((0, 2)), *(np.column_stack([record.x, record.y]) for _, record in imports)]
        )
        _, first = np.unique(points, axis=0, return_index=True)
        points = points[np.sort(first)]
        return TruePoints(points[:, 0].copy(), points[:, 1].copy(), known=bool(imports))

    def has_truth(self) -> bool:
        """Return whether any image has imported true points."""
        with self.reading() as connection:
            row = connection.execute("SELECT 1 FROM marks WHERE kind = 'truth' LIMIT 1").fetchone()
        return row is not None

    # Annotators and questions

    def annotators(self) -> list[str]:
        """List the annotators in the order of first appearance, which fixes their colours."""
        if self._names is None:
            with self.reading():
                rows = self._connection.execute("SELECT id, name FROM annotators ORDER BY id").fetchall()
            for expected_id, (number, name) in enumerate(rows):
                if number != expected_id or not name.strip():
                    expected = f"number {expected_id}" if number != expected_id else "a name"
                    raise StudyError(
                        f"is damaged: annotators, row {expected_id + 1}: expected {expected}, found "
                        f"{number if number != expected_id else 'an empty one'}",
                        file=self.path,
                    )
            self._names = [name for _, name in rows]
        return list(self._names)

    def forget_annotators(self) -> None:
        """Drop the cached annotators before some are added."""
        self._names = None

    def questions(self) -> tuple[QuestionEntry, ...]:
        """List the questions of labels, in the order of import."""
        with self.reading():
            rows = self._connection.execute(
                "SELECT id, name, scheme FROM questions WHERE kind = 'labels' ORDER BY id"
            )
            return tuple(question_of(row, self.path) for row in rows)

    def question(self, number: int) -> QuestionEntry:
        """Return one question."""
        entry = next((entry for entry in self.questions() if entry.id == number), None)
        if entry is None:
            raise StudyError(f"has no question number {number}", file=self.path)
        return entry

    def vote_set(self, question: int, last: int | None = None) -> VoteSet:
        """Return all votes on a question, up to an import; the last two sets are cached."""
        key = question, self._last_answer(question, last)
        if key not in self._vote_sets:
            scheme, annotator_count = self.question(question).scheme, len(self.annotators())
            with self.reading():
                crowd = read_vote_set(self._connection, self.path, question, scheme, annotator_count, key[1])
            self._vote_sets = dict(list(self._vote_sets.items())[-1:])
            self._vote_sets[key] = crowd
        return self._vote_sets[key]

    def forget_vote_sets(self) -> None:
        """Drop the cached votes before a question changes."""
        self._vote_sets.clear()

    def pair_questions(self) -> tuple[PairQuestion, ...]:
        """List the questions of pairs, in the order of import."""
        with self.reading():
            rows = self._connection.execute(
                "SELECT id, name FROM questions WHERE kind = 'pairs' ORDER BY id"
            ).fetchall()
        return tuple(PairQuestion(number, name) for number, name in rows)

    def question_names(self) -> frozenset[str]:
        """Return the names of all questions of labels and pairs, case-folded."""
        with self.reading():
            rows = self._connection.execute("SELECT name FROM questions").fetchall()
        return frozenset(name.casefold() for (name,) in rows)

    def comparison_set(self, question: int, last: int | None = None) -> ComparisonSet:
        """Return all comparisons for a question, up to an import; see `vote_set`."""
        key = question, self._last_answer(question, last)
        if key not in self._comparison_sets:
            annotator_count = len(self.annotators())
            with self.reading():
                comparisons = read_comparison_set(
                    self._connection, self.path, question, annotator_count, key[1]
                )
            self._comparison_sets = {
                latest: self._comparison_sets[latest] for latest in list(self._comparison_sets)[-1:]
            }
            self._comparison_sets[key] = comparisons
        return self._comparison_sets[key]

    def _last_answer(self, question: int, last: int | None) -> int:
        """Return the last import with data for a question, up to an import."""
        with self.reading():
            return last_import_for(self._connection, question, last)

    def last_import(self) -> int:
        """Return the number of the last import, for a run that starts now; 0 before the first."""
        with self.reading():
            return int(self._connection.execute("SELECT ifnull(max(id), 0) FROM imports").fetchone()[0])

    # Decisions

    def record(self, decision: Decision) -> Decision:
        """Append a decision to the journal; it is on disk when this returns.

        Returns
        -------
        Decision
            With its number, the current time and the user's name if `at` and `who` were empty, and
            `voxels` in place of `settled`.
        """
        with self.change():
            return append_decision(self._connection, self.path, decision)

    def decisions(self) -> list[Decision]:
        """List all decisions, oldest first."""
        with self.reading():
            return read_decisions(self._connection, self.path)

    def review_state(self, last: int | None = None) -> ReviewState:
        """Return the effect of all decisions, or of those up to a decision; a few states are cached."""
        end = self.last_decision()
        last = end if last is None else min(last, end)
        if last not in self._states:
            while len(self._states) >= _STATES:
                del self._states[next(iter(self._states))]
            self._states[last] = fold([decision for decision in self.decisions() if decision.id <= last])
        return self._states[last]

    @property
    def has_new_names(self) -> bool:
        """Whether a structure or class was ever renamed."""
        with self.reading():
            row = self._connection.execute("SELECT 1 FROM decisions WHERE kind = 'name' LIMIT 1").fetchone()
        return row is not None

    def last_decision(self) -> int:
        """Return the number of the last decision; 0 before the first."""
        with self.reading():
            return int(self._connection.execute("SELECT ifnull(max(id), 0) FROM decisions").fetchone()[0])

    def settled(self, voxels: int) -> Settled:
        """Return the voxels that a decision settled, by `Decision.voxels`."""
        with self.reading():
            settled = read_object(self._connection, voxels, Settled, self.path)
            by = self._connection.execute("SELECT item FROM decisions WHERE voxels = ?", (voxels,)).fetchone()
        frame = None if by is None or by[0] is None else self.image(by[0]).lattice.shape
        wrong = mismatch_of_settled(settled, frame)
        if wrong is not None:
            raise StudyError(f"is damaged: objects, row {voxels}: {wrong}", file=self.path)
        return settled

    def name_of(self, kind: str, item: int) -> str:
        """Return the name of an item."""
        if STORED[kind].by_question:
            return self.names()[kind, item]
        return self.image(item).name
