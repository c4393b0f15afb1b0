"""Votes and comparisons as a study stores them, joined over its imports.

Names are stored packed into bytes; each import numbers its names from 0.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.data import OPEN, ClassArray, Labels, LabelsError
from raterscope.algorithms.labels.ordinal import detect_order
from raterscope.algorithms.pairs.data import Pairs
from raterscope.app.errors import StudyError
from raterscope.app.formats.records import LabelTable, PairTable, TrueLabels
from raterscope.app.study.arrays import read_object
from raterscope.app.study.records import Scheme

Record = TypeVar("Record")

_LAST = 2**62
_PIECE = 1 << 16
"""Number of names or bytes that are processed at a time."""


def pack_names(names: Sequence[str]) -> NDArray[np.uint8]:
    """Pack names into bytes: UTF-8, a zero byte after each."""
    packed = "\0".join([*names, ""])
    if packed.count("\0") > len(names):
        packed = "".join(name.replace("\0", " ") + "\0" for name in names)
    return np.frombuffer(packed.encode(), dtype=np.uint8)


def unpack_names(data: NDArray[np.uint8] | tuple[str, ...]) -> list[str] | tuple[str, ...]:
    """Unpack names that `pack_names` packed; names that are not packed are returned unchanged.

    Raises `UnicodeDecodeError` for bytes that are not packed names.
    """
    if isinstance(data, tuple):
        return data
    packed, names, start = data.tobytes(), list[str](), 0
    while start < len(packed):  # in pieces: a million names at once stop the window's thread
        end = packed.find(b"\0", start + _PIECE) + 1 or len(packed)
        names += packed[start:end].decode().split("\0")[:-1]
        start = end
    return names


def hash_names(names: Sequence[str]) -> NDArray[np.int64]:
    """Hash names in pieces, so that other threads can work in between."""
    hashes = np.empty(len(names), dtype=np.int64)
    for start in range(0, len(names), _PIECE):
        piece = names[start : start + _PIECE]
        hashes[start : start + len(piece)] = np.fromiter(map(hash, piece), np.int64, len(piece))
    return hashes


def are_distinct(names: Sequence[str]) -> bool:
    """Return whether all names are distinct."""
    hashes = np.sort(hash_names(names))
    return not (hashes[1:] == hashes[:-1]).any() or len(set(names)) == len(names)


class NameIndex:
    """Index of distinct names, made in a quarter of the time of a dictionary for a million names."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        hashes = hash_names(names)
        self._order = np.argsort(hashes)
        self._hashes = hashes[self._order]

    def numbers(self, names: Collection[str]) -> dict[str, int]:
        """Return the numbers of the names that exist."""
        requested = list(names)
        hashes = hash_names(requested)
        first, last = (np.searchsorted(self._hashes, hashes, side).tolist() for side in ("left", "right"))
        return {
            name: number
            for name, *rows in zip(requested, first, last, strict=True)
            for number in self._order[slice(*rows)].tolist()
            if self._names[number] == name
        }

    def __contains__(self, name: str) -> bool:
        return bool(self.numbers([name]))

    def __getitem__(self, name: str) -> int:
        return self.numbers([name])[name]


def pack_pictures(names: Sequence[str], pictures: Mapping[int, str]) -> NDArray[np.uint8]:
    """Pack the picture files of tasks or items by index; empty if none is known."""
    return pack_names([pictures.get(index, "") for index in range(len(names))] if pictures else [])


def positions_of(names: Sequence[str], among: Iterable[str]) -> NDArray[np.int64]:
    """Return the position of each name among others; -1 for missing names."""
    index = {name: position for position, name in enumerate(among)}
    return np.array([index.get(name, -1) for name in names], dtype=np.int64)


def records_of(
    connection: sqlite3.Connection,
    path: Path,
    question: int,
    kind: type[Record],
    last: int | None = None,
    only: bool | None = None,
) -> list[tuple[bool, Record]]:
    """Read the records of a question up to import `last`, each with whether it is ground truth.

    `only`: read only ground truth (True), or only other records (False). Raises `StudyError` if a record is
    damaged.
    """
    rows = connection.execute(
        "SELECT truth, object FROM votes WHERE question = ? AND import <= ? ORDER BY import",
        (question, _LAST if last is None else last),
    ).fetchall()
    return [
        (bool(truth), read_object(connection, number, kind, path))
        for truth, number in rows
        if only is None or bool(truth) == only
    ]


def last_import_for(connection: sqlite3.Connection, question: int, last: int | None = None) -> int:
    """Return the last import, up to `last`, with data for a question; 0 if there is none."""
    (number,) = connection.execute(
        "SELECT ifnull(max(import), 0) FROM votes WHERE question = ? AND import <= ?",
        (question, _LAST if last is None else last),
    ).fetchone()
    return int(number)


def merge_names(
    packs: Sequence[tuple[NDArray[np.uint8] | tuple[str, ...], NDArray[np.uint8]]],
) -> tuple[tuple[str, ...], dict[int, str], list[NDArray[np.int32]]]:
    """Merge the names of several imports in order of appearance; return names, pictures and tables.

    `packs`: names, packed by `pack_names` or not, and packed pictures, empty if there are none. Pictures are
    returned by the numbers of the names that have one; the last picture counts. A table, (n,), maps an
    import's names to their numbers among all.
    """
    number: dict[str, int] = {}
    pictures: dict[int, str] = {}
    tables: list[NDArray[np.int32]] = []
    for names_packed, pictures_packed in packs:
        names, files = unpack_names(names_packed), unpack_names(pictures_packed)
        if files and len(files) != len(names):
            raise ValueError("pictures are not those of its names")
        # a file's names are distinct; no loop over the names, because there may be a million
        if len(packs) == 1 and (isinstance(names_packed, tuple) or are_distinct(names)):
            table = np.arange(len(names), dtype=np.int32)
            return tuple(names), {at: file for at, file in enumerate(files) if file}, [table]
        table = np.array([number.setdefault(name, len(number)) for name in names], dtype=np.int32)
        pictures |= {at: file for at, file in zip(table.tolist(), files, strict=False) if file}
        tables.append(table)
    return tuple(number), pictures, tables


def occurring_annotators(
    annotator_id: NDArray[np.int32], annotators: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the ids of the annotators that occur, and the index of each occurrence among them."""
    occurs = np.zeros(annotators, dtype=bool)
    occurs[annotator_id] = True
    ids = np.flatnonzero(occurs).astype(np.int32)
    if len(ids) == annotators:
        return ids, annotator_id
    index = np.zeros(annotators, dtype=np.int32)
    index[ids] = np.arange(len(ids), dtype=np.int32)
    return ids, index[annotator_id]


def join_times(
    times: Sequence[NDArray[np.float64] | None], lengths: Sequence[int]
) -> NDArray[np.float64] | None:
    """Join the times of several imports, NaN where missing; None if all are missing."""
    if all(column is None for column in times):
        return None
    return np.concatenate(
        [
            np.full(length, np.nan) if column is None else column
            for column, length in zip(times, lengths, strict=True)
        ]
    )


@dataclass(frozen=True, eq=False)
class VotesRecord:
    """Stored record of one import for one question: V votes, or the true classes of V tasks."""

    # the names of its tasks: (B,), see `pack_names`; not packed if the record is not stored
    tasks: NDArray[np.uint8] | tuple[str, ...]
    # (B,): the picture file of each task, empty names if unknown; no bytes if no file is known
    pictures: NDArray[np.uint8]
    outputs: tuple[str, ...]  # names that `label` indexes
    task: NDArray[np.int32]  # (V,)
    annotator: NDArray[np.int32]  # (V,): the annotator's number in the study; empty for truth
    label: NDArray[np.int16]  # (V,)
    time: NDArray[np.float64] | None = None  # (V,): seconds
    probability: NDArray[np.float32] | None = None  # (V, L): of a program, the probability of each output


@dataclass(frozen=True, eq=False)
class VoteSet:
    """All votes on a question, up to some import, with ground truth."""

    scheme: Scheme  # as it is now
    tasks: tuple[str, ...]  # (N,): of the tasks with votes, in the order of first appearance
    pictures: Mapping[int, str]  # the file that shows a task, where one is named
    annotator_ids: NDArray[np.int32]  # (K,): the numbers in the study of those who voted
    # task, annotator: (V,)
    task: NDArray[np.int32]
    annotator: NDArray[np.int32]
    label: NDArray[np.int16]  # (V,)
    time: NDArray[np.float64] | None  # (V,)
    truth: ClassArray  # (N,): known classes, `OPEN` elsewhere
    # (P,): votes of programs with probabilities, and `probability`, (P, L), those of each output
    scored: NDArray[np.int64]
    probability: NDArray[np.float32]

    @cached_property
    def task_index(self) -> dict[str, int]:
        """Index of each task, by its name."""
        return {name: number for number, name in enumerate(self.tasks)}

    @cached_property
    def ordered(self) -> bool:
        """Whether the classes are grades: as set by the curator, or as the votes suggest."""
        if self.scheme.ordered is not None:
            return self.scheme.ordered
        outputs = self.scheme.outputs, self.scheme.classes, np.array(self.scheme.meaning)
        return detect_order(self.task, self.label, *outputs)

    def labels(self, annotators: Sequence[str], known: ClassArray | None = None) -> Labels:
        """Return the votes as input of a fusion.

        `annotators`: all annotators of the study, by number. `known`: (N,), known truths, which are held
        fixed.
        """
        scheme = self.scheme
        return Labels(
            task=self.task,
            annotator=self.annotator,
            label=self.label,
            tasks=self.tasks,
            annotators=tuple(annotators[number] for number in self.annotator_ids.tolist()),
            outputs=scheme.outputs,
            classes=scheme.classes,
            meaning=np.array(scheme.meaning, dtype=np.int16),
            time=self.time,
            known=known,
            prior=None if scheme.prior is None else np.array(scheme.prior),
            ordered=self.ordered,
        )


def class_indices(values: ClassArray, names: Sequence[str], classes: Sequence[str]) -> ClassArray:
    """Convert class indices to another list of class names; unknown classes become `OPEN`."""
    index = {name: number for number, name in enumerate(classes)}
    table = np.array([*(index.get(name, OPEN) for name in names), OPEN], dtype=np.int16)
    return table[values]


def votes_record(table: LabelTable, annotator_ids: NDArray[np.int32], *, stored: bool = True) -> VotesRecord:
    """Make the record of a file's votes.

    `annotator_ids`: (K,), number of each of its annotators. `stored`: whether the record will be stored.
    """
    return VotesRecord(
        tasks=pack_names(table.tasks) if stored else table.tasks,
        pictures=pack_pictures(table.tasks, table.pictures),
        outputs=table.outputs,
        task=table.task,
        annotator=annotator_ids[table.annotator],
        label=table.label,
        time=table.time,
        probability=table.probability,
    )


def truth_record(table: TrueLabels) -> VotesRecord:
    """Convert a file's true classes into a record."""
    return VotesRecord(
        pack_names(table.tasks), pack_names([]), table.classes, np.arange(len(table), dtype=np.int32),
        np.empty(0, dtype=np.int32), table.label,
    )  # fmt: skip


def read_vote_set(
    connection: sqlite3.Connection,
    path: Path,
    question: int,
    scheme: Scheme,
    annotators: int,
    last: int | None = None,
) -> VoteSet:
    """Join all votes on a question, up to import `last`; later ground truth replaces earlier.

    Raises `StudyError` if the stored data are not valid votes.
    """
    records = records_of(connection, path, question, VotesRecord, last)
    try:
        crowd = join_votes([record for truth, record in records if not truth], scheme, annotators)
        for truth, record in records:
            if truth:
                apply_truth(crowd, record)
    except (LabelsError, IndexError, ValueError) as error:
        raise StudyError(f"is damaged: votes on a question cannot be read ({error})", file=path) from error
    return crowd


def join_votes(records: Sequence[VotesRecord], scheme: Scheme, annotators: int) -> VoteSet:
    """Join the votes of several imports or files.

    Raises `ValueError` or `IndexError` if votes do not fit the number of annotators.

    `records`: records in the order of import. `scheme`: contains all of their outputs. `annotators`: number
    of annotators.
    """
    tasks, pictures, tables = merge_names([(record.tasks, record.pictures) for record in records])
    output_index = {name: position for position, name in enumerate(scheme.outputs)}
    columns: list[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int16]]] = []
    for table, record in zip(tables, records, strict=True):
        if not len(record.task) == len(record.annotator) == len(record.label):
            raise ValueError("its columns differ in length")
        if len(record.annotator) and not 0 <= record.annotator.min() <= record.annotator.max() < annotators:
            raise ValueError("a vote has no annotator")
        if len(record.task) and min(record.task.min(), record.label.min()) < 0:
            raise ValueError("a vote has no task")
        if not set(record.outputs) <= output_index.keys():
            raise ValueError("a vote is for a class that the question does not have")
        output = np.array([output_index[name] for name in record.outputs], dtype=np.int16)
        of_file = len(records) == 1 and isinstance(record.tasks, tuple)
        task = record.task if of_file else table[record.task]
        columns.append((task, record.annotator, output[record.label]))
    task, annotator_id, label = (
        columns[0]
        if len(columns) == 1
        else (
            np.concatenate([np.empty(0, dtype=kind), *(column[position] for column in columns)])
            for position, kind in enumerate((np.int32, np.int32, np.int16))
        )
    )
    annotator_ids, annotator = occurring_annotators(annotator_id, annotators)
    times = join_times([record.time for record in records], [len(record.task) for record in records])
    truth = np.full(len(tasks), OPEN, dtype=np.int16)
    scored = _join_probabilities(records, output_index)
    return VoteSet(scheme, tasks, pictures, annotator_ids, task, annotator, label, times, truth, *scored)


def _join_probabilities(
    records: Sequence[VotesRecord], output_index: Mapping[str, int]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the votes with probabilities, and those of the question's outputs."""
    first, votes, rows = 0, [np.empty(0, np.int64)], [np.empty((0, len(output_index)), np.float32)]
    for record in records:
        count = len(record.task)
        if record.probability is not None:
            if record.probability.shape != (count, len(record.outputs)):
                raise ValueError("its probabilities do not fit its votes")
            values = np.zeros((count, len(output_index)), dtype=np.float32)
            values[:, [output_index[name] for name in record.outputs]] = record.probability
            votes.append(np.arange(first, first + count))
            rows.append(values)
        first += count
    return np.concatenate(votes), np.concatenate(rows)


def apply_truth(crowd: VoteSet, record: VotesRecord) -> None:
    """Set the true classes of known tasks in a vote set."""
    label = class_indices(record.label, record.outputs, crowd.scheme.classes)
    names = unpack_names(record.tasks)
    for task, true in zip(record.task.tolist(), label.tolist(), strict=True):
        task_index = crowd.task_index.get(names[task])
        if task_index is not None and true != OPEN:
            crowd.truth[task_index] = true


@dataclass(frozen=True, eq=False)
class PairsRecord:
    """Stored record of one import for one question: E comparisons."""

    # items, pictures: (B,): the names of its items and of their picture files, see `pack_names`
    items: NDArray[np.uint8]
    pictures: NDArray[np.uint8]
    annotator: NDArray[np.int32]  # (E,): the annotator's number in the study
    # left, right: (E,)
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    choice: NDArray[np.float64]  # (E,): above 0 for left
    time: NDArray[np.float64] | None = None  # (E,)
    # (B,): the names of the subjects of the comparisons, see `pack_names`
    tasks: NDArray[np.uint8] | None = None
    task: NDArray[np.int32] | None = None  # (E,): -1 for none


@dataclass(frozen=True, eq=False)
class ComparisonSet:
    """All comparisons for a question, up to some import."""

    items: tuple[str, ...]  # (n,): in the order of first appearance
    pictures: Mapping[int, str]  # the file that shows an item, where one is named
    annotator_ids: NDArray[np.int32]  # (p,): the numbers in the study of those who compared
    # annotator, left, right: (E,)
    annotator: NDArray[np.int32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    choice: NDArray[np.float64]  # (E,)
    time: NDArray[np.float64] | None  # (E,)
    tasks: tuple[str, ...] = ()  # tuple of names
    task: NDArray[np.int32] | None = None  # (E,)

    def pairs(self, annotators: Sequence[str]) -> Pairs:
        """Return the comparisons as input of a fusion; `annotators`: all annotators of the study."""
        names = tuple(annotators[number] for number in self.annotator_ids.tolist())
        return Pairs(
            self.annotator, self.left, self.right, self.choice, names, self.items, self.time, self.task
        )


def pairs_record(table: PairTable, annotator_ids: NDArray[np.int32]) -> PairsRecord:
    """Convert a file's comparisons into a record; `annotator_ids` has the ids of its annotators."""
    return PairsRecord(
        items=pack_names(table.items),
        pictures=pack_pictures(table.items, table.pictures),
        annotator=annotator_ids[table.annotator],
        left=table.left,
        right=table.right,
        choice=table.choice,
        time=table.time,
        tasks=None if table.task is None else pack_names(table.tasks),
        task=table.task,
    )


def read_comparison_set(
    connection: sqlite3.Connection, path: Path, question: int, annotators: int, last: int | None = None
) -> ComparisonSet:
    """Join all comparisons for a question, up to import `last`.

    Raises `StudyError` if the stored data are not valid comparisons.
    """
    records = [record for _, record in records_of(connection, path, question, PairsRecord, last, only=False)]
    try:
        return join_comparisons(records, annotators)
    except (IndexError, ValueError) as error:
        raise StudyError(f"is damaged: comparisons cannot be read ({error})", file=path) from error


def join_comparisons(records: Sequence[PairsRecord], annotators: int) -> ComparisonSet:
    """Join the comparisons of several imports or files; see `join_votes`."""
    items, pictures, tables = merge_names([(record.items, record.pictures) for record in records])
    for record in records:
        if not len(record.annotator) == len(record.left) == len(record.right) == len(record.choice):
            raise ValueError("their columns differ in length")
        if len(record.left) and min(record.left.min(), record.right.min()) < 0:
            raise ValueError("a comparison refers to no item")
        if len(record.annotator) and not 0 <= record.annotator.min() <= record.annotator.max() < annotators:
            raise ValueError("a comparison has no annotator")
        if not np.isfinite(record.choice).all() or (record.left == record.right).any():
            raise ValueError("a choice is invalid")
        if record.time is not None and record.time.shape != record.choice.shape:
            raise ValueError("their columns differ in length")
        if record.task is not None and record.task.shape != record.choice.shape:
            raise ValueError("their columns differ in length")
    empty = np.empty(0, dtype=np.int32)
    annotator_id = np.concatenate([empty, *(record.annotator for record in records)])
    annotator_ids, annotator = occurring_annotators(annotator_id, annotators)
    columns = list(zip(tables, records, strict=True))
    names, task = _join_tasks(records)
    return ComparisonSet(
        items=items,
        pictures=pictures,
        annotator_ids=annotator_ids,
        annotator=annotator,
        left=np.concatenate([empty, *(table[record.left] for table, record in columns)]),
        right=np.concatenate([empty, *(table[record.right] for table, record in columns)]),
        choice=np.concatenate([np.empty(0), *(record.choice for record in records)]),
        time=join_times([record.time for record in records], [len(record.choice) for record in records]),
        tasks=names,
        task=task,
    )


def _join_tasks(records: Sequence[PairsRecord]) -> tuple[tuple[str, ...], NDArray[np.int32] | None]:
    """Index the tasks of several records together; None if there are none."""
    if all(record.task is None for record in records):
        return (), None
    number: dict[str, int] = {}
    parts = []
    for record in records:
        if record.task is None or record.tasks is None:
            parts.append(np.full(len(record.choice), -1, dtype=np.int32))
            continue
        names = unpack_names(record.tasks)
        common = np.array([number.setdefault(name, len(number)) for name in names] + [-1], dtype=np.int32)
        parts.append(common[record.task])
    return tuple(number), np.concatenate(parts)
