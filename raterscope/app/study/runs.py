"""Runs of a study: records, results by item, outlines, and current names of structures and classes.

A result contains the names at its time, which are replaced by the current names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.click_classes import sort_classes
from raterscope.algorithms.clicks.data import FloatArray
from raterscope.algorithms.clicks.result import Fusion, SpotClasses
from raterscope.algorithms.masks.fusion import CaseResult
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import StudyError, plain
from raterscope.app.review import NAMED, Decision, Names, NameSubject
from raterscope.app.study.arrays import read_object, remove_object, write_object
from raterscope.app.study.kinds import STORED, mismatch_of
from raterscope.app.study.records import RunEntry
from raterscope.app.study.rows import RUN, read_marks, run_of, run_row

if TYPE_CHECKING:
    from raterscope.app.study.records import MarksRecord
    from raterscope.app.study.study import Study


def original_names(study: Study, kind: str) -> tuple[str, ...]:
    """List the names of structures or classes in the files, in the order of import."""
    if kind == "masks":
        with study.reading() as connection:
            rows = connection.execute(
                "SELECT structure FROM masks GROUP BY structure ORDER BY min(import), structure"
            )
            return tuple(name for (name,) in rows)
    classes: dict[str, None] = {}
    with study.reading() as connection:
        for entry in study.images():
            classes |= dict.fromkeys(read_marks(connection, study.path, entry.id, "clicks").classes)
    return tuple(classes)


def present_names(study: Study, kind: str) -> tuple[str, ...]:
    """List the current names of structures or classes."""
    names = study.shown.names(kind)
    return tuple(dict.fromkeys(names.get(name, name) for name in original_names(study, kind)))


def make_renaming(study: Study, kind: str, name: str, new: str) -> Decision:
    """Make the decision that renames a structure or class, or merges it with another of the new name.

    Raises `ValueError` if that is not possible.
    """
    known, names, noun = present_names(study, kind), study.shown.names(kind), NAMED[kind]
    new = new.strip()
    if name not in known:
        among = ", ".join(plain(each, 30) for each in known[:8]) or "none"
        raise ValueError(f"There is no {noun} {plain(name)}; expected one of {among}.")
    if not new or new == name:
        raise ValueError(f"The new name of {noun} {plain(name)} is missing.")
    if new not in known and names.get(new, name) != name:
        raise ValueError(
            f"{plain(new)} was the name of another {noun}, which is {plain(names[new])} now. "
            "Give another name."
        )
    if new in known and kind == "masks":
        _refuse_merger(study, names, name, new)
    verb = "merge" if new in known else "rename"
    return Decision(verb=verb, subject=NameSubject(of=kind, name=name, new=new))


def _refuse_merger(study: Study, names: Names, name: str, new: str) -> None:
    """Refuse to merge structures that a rater marked on the same image."""
    with study.reading() as connection:
        rows = connection.execute("SELECT DISTINCT image, annotator, structure FROM masks").fetchall()
    drawn: dict[tuple[int, int], str] = {}
    for image, annotator, structure in rows:
        present = names.get(structure, structure)
        if present in (name, new) and drawn.setdefault((image, annotator), present) != present:
            rater = "The truth" if annotator < 0 else plain(study.annotators()[annotator], 60)
            where = plain(study.image(image).name, 60)
            raise ValueError(
                f"{rater} has a mask of {plain(name, 60)} and one of {plain(new, 60)} on {where}: "
                "they cannot be one structure."
            )


def renamed_marks(marks: MarksRecord, names: Names) -> MarksRecord:
    """Return marks with the current names of their classes; classes with equal names become one."""
    if not marks.classes or names.keys().isdisjoint(marks.classes):
        return marks
    present = [names.get(name, name) for name in marks.classes]
    classes = tuple(dict.fromkeys(present))
    label = marks.label
    if label is not None:  # the last entry is for -1, a click without a class
        label = np.array([*map(classes.index, present), -1], dtype=label.dtype)[label]
    return replace(marks, classes=classes, label=label)


def with_present_names(study: Study, run: RunEntry, item: int, result: Any) -> Any:
    """Return a result with the current names; None if no structure remains.

    A structure that was merged or separated since then is omitted until it is fused again.
    """
    now = study.shown.names(run.kind)
    if isinstance(result, Fusion):
        classes = result.classes
        return result if classes is None or not now else replace(result, classes=_renamed(classes, now))
    if not isinstance(result, CaseResult) or study.shown.names(run.kind, run.known) == now:
        return result
    kept = []
    for fusion, report in zip(result.fusions, result.reports, strict=True):
        if new := present_structure(study, run, item, fusion.structures[0]):
            kept.append((replace(fusion, structures=(new,)), report))
    if not kept:
        return None
    return CaseResult(tuple(fusion for fusion, _ in kept), tuple(report for _, report in kept))


def present_structure(study: Study, run: RunEntry, item: int, structure: str) -> str:
    """Return the current name of a structure in the log of a run; empty if it was merged or separated."""
    then, now = study.shown.names("masks", run.known), study.shown.names("masks")
    if then == now:
        return structure
    originals = _structures(study, item)
    own = {name for name in originals if then.get(name, name) == structure}
    new = {now.get(name, name) for name in own}
    whole = len(new) == 1 and own == {name for name in originals if now.get(name, name) in new}
    return next(iter(new)) if whole else ""


def _structures(study: Study, image: int) -> Sequence[str]:
    with study.reading() as connection:
        rows = connection.execute(
            "SELECT DISTINCT structure FROM masks WHERE image = ? AND annotator >= 0", (image,)
        )
        return [name for (name,) in rows]


def _renamed(classes: SpotClasses, names: Names) -> SpotClasses:
    """Return classes with current names; the probabilities and votes of merged classes are added."""
    present = [names.get(name, name) for name in classes.names]
    unique = sort_classes(present)
    index = np.array([*map(unique.index, present), -1])
    joined = np.zeros((len(present), len(unique)), dtype=np.int64)
    joined[np.arange(len(present)), index[:-1]] = 1
    return replace(
        classes, names=unique, posterior=classes.posterior @ joined, votes=classes.votes @ joined,
        known=index[classes.known],
    )  # fmt: skip


class RunStore:
    """Runs of an open study."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._entries: dict[int, RunEntry] = {}
        """Cache of entries; runs never change."""

    def add(self, record: RunEntry, results: Mapping[int, Any], watch: Watch = silent) -> int:
        """Store a run with all its results by item, completely or not at all; show it, and return its number.

        Raises `StudyError` if a result does not fit the annotations that the record names.
        """
        study = self._study
        imported = study.last_import() if record.imported is None else record.imported
        entry = replace(record, imported=imported)
        for step, (item, result) in enumerate(results.items()):
            watch(0.5 * step / len(results), "checking the results")
            mismatch = mismatch_of(study, entry, item, result)
            if mismatch is not None:
                name = plain(study.name_of(entry.kind, item))
                raise StudyError(
                    f"the result for {name} does not fit its {entry.kind} ({mismatch}); fuse again"
                )
        with study.change() as connection:
            (number,) = connection.execute(
                f"INSERT INTO runs({', '.join(RUN)}) VALUES ({', '.join('?' * len(RUN))}) RETURNING id",
                run_row(entry),
            ).fetchone()
            connection.execute("DELETE FROM shown WHERE kind = ?", (entry.kind,))
            for step, (item, result) in enumerate(results.items()):
                watch(0.5 + 0.5 * step / len(results), "storing the results")
                connection.execute(
                    "INSERT INTO results(item, run, object) VALUES (?, ?, ?)",
                    (item, number, write_object(connection, result)),
                )
            fusions = {item: result for item, result in results.items() if isinstance(result, Fusion)}
            if fusions:
                outline = write_object(connection, Outline.of(fusions))
                connection.execute("INSERT INTO outlines VALUES (?, ?)", (number, outline))
        return int(number)

    def all(self) -> list[RunEntry]:
        """List the runs, oldest first."""
        with self._study.reading() as connection:
            items: dict[int, list[int]] = {}
            for run, item in connection.execute("SELECT run, item FROM results ORDER BY run, item"):
                items.setdefault(run, []).append(item)
            rows = connection.execute(f"SELECT id, {', '.join(RUN)} FROM runs ORDER BY id").fetchall()
            self._entries = {row[0]: self._entry(row, tuple(items.get(row[0], ()))) for row in rows}
        return list(self._entries.values())

    def get(self, run_id: int) -> RunEntry:
        """Return one run."""
        if run_id in self._entries:
            return self._entries[run_id]
        with self._study.reading() as connection:
            row = connection.execute(
                f"SELECT id, {', '.join(RUN)} FROM runs WHERE id = ?", (run_id,)
            ).fetchone()
            if row is None:
                raise StudyError(f"has no run number {run_id}", file=self._study.path)
            items = connection.execute("SELECT item FROM results WHERE run = ? ORDER BY item", (run_id,))
            self._entries[run_id] = self._entry(row, tuple(item for (item,) in items))
        return self._entries[run_id]

    def _entry(self, row: tuple[Any, ...], items: tuple[int, ...]) -> RunEntry:
        """Return the entry of a row, from the cache if it has the same items."""
        known = self._entries.get(row[0])
        return known if known is not None and known.items == items else run_of(row, items, self._study.path)

    def result(self, run_id: int, item: int) -> Any:
        """Return a run's result for an item, of the class that its kind stores; None if there is none."""
        path = self._study.path
        with self._study.reading() as connection:
            row = connection.execute(
                "SELECT object FROM results WHERE item = ? AND run = ?", (item, run_id)
            ).fetchone()
            if row is None:
                return None
            entry = self.get(run_id)
            if entry.kind not in STORED:
                raise StudyError(f"holds a run of an unknown kind, {plain(entry.kind)}", file=path)
            result = read_object(connection, row[0], STORED[entry.kind].result, path)
            try:
                mismatch = mismatch_of(self._study, entry, item, result)
            except (TypeError, ValueError, IndexError, OverflowError) as error:  # as of no axis
                mismatch = f"its arrays do not fit together ({error})"
            if mismatch is not None:
                raise StudyError(f"is damaged: in run {run_id}, {mismatch}", file=path)
            return with_present_names(self._study, entry, item, result)

    def answers(self, runs: Mapping[int, int]) -> dict[int, Answers | None]:
        """Return the answers of runs of clicks by image; None for runs without an outline."""
        path = self._study.path
        with self._study.reading() as connection:
            outlines = dict(connection.execute("SELECT run, object FROM outlines"))
            of_runs: dict[int, dict[int, Answers]] = {}
            for run in {run for run in runs.values() if run in outlines}:
                outline = read_object(connection, outlines[run], Outline, path)
                try:
                    of_runs[run] = outline.answers()
                except ValueError as error:
                    raise StudyError(f"is damaged ({error}); open a backup of it", file=path) from error
        return {item: of_runs[run].get(item) if run in of_runs else None for item, run in runs.items()}

    def delete(self, run_id: int) -> None:
        """Remove a run with its results. Decisions made on it are kept."""
        self._entries.pop(run_id, None)
        with self._study.change() as connection:
            connection.execute("DELETE FROM shown WHERE run = ?", (run_id,))
            objects = []
            for table in ("results", "outlines"):
                objects += connection.execute(
                    f"SELECT object FROM {table} WHERE run = ?", (run_id,)
                ).fetchall()
                connection.execute(f"DELETE FROM {table} WHERE run = ?", (run_id,))
            for (number,) in objects:
                remove_object(connection, number)
            connection.execute("DELETE FROM runs WHERE id = ?", (run_id,))

    def in_words(self, kinds: Sequence[str] = ()) -> str:
        """Describe the runs, or those of some kinds, by number."""
        runs = [run for run in self.all() if not kinds or run.kind in kinds]
        return "; ".join(f"{run_name(run)} of {run.kind}" for run in runs) or "no run"


def run_title(run: RunEntry) -> str:
    """Return the title of a run's algorithm."""
    return plain(STORED[run.kind].title(run.algorithm), 60)


def run_name(run: RunEntry) -> str:
    """Return a run's name with its local time: "run 3 (Laplace, 2026-01-02 14:02)"."""
    return f"run {run.id} ({run_title(run)}, {run.started.astimezone():%Y-%m-%d %H:%M})"


@dataclass(frozen=True, eq=False)
class Answers:
    """Posteriors and positions of the M spots of one image."""

    looked: int  # annotators who viewed it
    posterior: FloatArray  # (M,)
    detected: NDArray[np.bool_]  # (M,)
    mean: FloatArray  # (M, 2): pixels
    covariance: FloatArray  # (M, 2, 2): square pixels

    @classmethod
    def of(cls, fusion: Fusion) -> Answers:
        """Extract the answers from a result."""
        detection, clustering = fusion.detection, fusion.clustering
        viewers = len(fusion.rates.clicks)
        return cls(viewers, detection.posterior, detection.detected, clustering.mean, clustering.covariance)


@dataclass(frozen=True, eq=False)
class Outline:
    """Answers of a run for all its K images, concatenated."""

    items: NDArray[np.int64]  # (K,): the images' numbers in the study
    ends: NDArray[np.int64]  # (K,): up to which spot the answers to each image go
    looked: NDArray[np.int64]  # (K,)
    # posterior, detected: as in `Answers`, for all spots
    posterior: FloatArray
    detected: NDArray[np.bool_]
    # mean, covariance: float32, which is precise enough for matching decisions to spots
    mean: NDArray[np.float32]
    covariance: NDArray[np.float32]

    @classmethod
    def of(cls, results: Mapping[int, Fusion]) -> Outline:
        """Make an outline from results by image."""
        return cls.of_answers({image: Answers.of(fusion) for image, fusion in results.items()})

    @classmethod
    def of_answers(cls, answers_by_image: Mapping[int, Answers]) -> Outline:
        """Make an outline from answers by image."""
        answers = list(answers_by_image.values())
        return cls(
            np.array(list(answers_by_image), dtype=np.int64),
            np.cumsum([len(image_answers.posterior) for image_answers in answers], dtype=np.int64),
            np.array([image_answers.looked for image_answers in answers], dtype=np.int64),
            np.concatenate([np.empty(0), *(image_answers.posterior for image_answers in answers)]),
            np.concatenate([np.empty(0, dtype=bool), *(image_answers.detected for image_answers in answers)]),
            np.concatenate([np.empty((0, 2)), *(image_answers.mean for image_answers in answers)]).astype(
                np.float32
            ),
            np.concatenate(
                [np.empty((0, 2, 2)), *(image_answers.covariance for image_answers in answers)]
            ).astype(np.float32),
        )

    def answers(self) -> dict[int, Answers]:
        """Return the answers by image.

        Raises `ValueError` if the arrays do not fit together, as may be the case in an untrusted file.
        """
        images, (spots,) = len(self.items), self.posterior.shape
        shapes = tuple(
            array.shape for array in (self.ends, self.looked, self.detected, self.mean, self.covariance)
        )
        bounds = np.concatenate([[0], self.ends])
        expected = (images,), (images,), (spots,), (spots, 2), (spots, 2, 2)
        if shapes != expected or self.detected.dtype != bool:
            raise ValueError("an outline's arrays have different lengths")
        if self.ends.dtype.kind != "i" or bounds[-1] != spots or (np.diff(bounds) < 0).any():
            raise ValueError("an outline's images are not in order")
        mean, covariance = self.mean.astype(float), self.covariance.astype(float)
        spot_ranges = [slice(*ends) for ends in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)]
        return {
            image: Answers(
                viewers,
                self.posterior[spot_range],
                self.detected[spot_range],
                mean[spot_range],
                covariance[spot_range],
            )
            for image, viewers, spot_range in zip(
                self.items.tolist(), self.looked.tolist(), spot_ranges, strict=True
            )
        }
