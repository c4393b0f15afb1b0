"""Votes and true classes as a study stores them, and what several imports of them come to together."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.data import OPEN, ClassArray, Labels, LabelsError
from raterscope.app.formats.labels.records import LabelTable, TrueLabels
from raterscope.app.study.packing import (
    compact,
    names_of,
    packed,
    packed_pictures,
    records_of,
    tabled,
    times_of,
)
from raterscope.app.study.records import Scheme, StudyError

__all__ = [
    "Crowd",
    "VotesRecord",
    "joined",
    "read_crowd",
    "record_of_truth",
    "record_of_votes",
    "renumbered",
    "take_truth",
]


@dataclass(frozen=True, eq=False)
class VotesRecord:
    """What one import brought for one question: V votes, or the true classes of V tasks.

    Attributes
    ----------
    tasks : (B,) uint8
        The names of its tasks, see `packing.packed`.
    pictures : (B,) uint8
        The files that show them, empty names where none is named; no bytes where none is at all.
    outputs : tuple of str
        What `label` counts.
    task : (V,) int32
    annotator : (V,) int32
        The annotator's number in the study; empty for truth.
    label : (V,) int16
    time : (V,) float64, optional
        Seconds.
    """

    tasks: NDArray[np.uint8]
    pictures: NDArray[np.uint8]
    outputs: tuple[str, ...]
    task: NDArray[np.int32]
    annotator: NDArray[np.int32]
    label: NDArray[np.int16]
    time: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class Crowd:
    """All votes on a question, up to some import, with what is known to be true.

    Attributes
    ----------
    scheme : Scheme
        As it is now.
    tasks : tuple of N names
        Of the tasks with votes, in the order of first appearance.
    pictures : tuple of N names
        The file that shows each task; empty where none is named.
    people : (K,) int32
        The numbers in the study of those who voted.
    task, annotator : (V,) int32
    label : (V,) int16
    time : (V,) float64, optional
    truth : (N,) int16
        Known classes, `OPEN` elsewhere.
    """

    scheme: Scheme
    tasks: tuple[str, ...]
    pictures: tuple[str, ...]
    people: NDArray[np.int32]
    task: NDArray[np.int32]
    annotator: NDArray[np.int32]
    label: NDArray[np.int16]
    time: NDArray[np.float64] | None
    truth: ClassArray

    @cached_property
    def number_of(self) -> dict[str, int]:
        """The number of each task, by its name."""
        return {name: number for number, name in enumerate(self.tasks)}

    def labels(self, annotators: Sequence[str], known: ClassArray | None = None) -> Labels:
        """Give the votes as a fusion takes them.

        Parameters
        ----------
        annotators : sequence of str
            All of the study's, by number.
        known : (N,) int16, optional
            What is held fixed.
        """
        scheme = self.scheme
        return Labels(
            task=self.task,
            annotator=self.annotator,
            label=self.label,
            tasks=self.tasks,
            annotators=tuple(annotators[number] for number in self.people.tolist()),
            outputs=scheme.outputs,
            classes=scheme.classes,
            meaning=np.array(scheme.meaning, dtype=np.int16),
            time=self.time,
            known=known,
            prior=None if scheme.prior is None else np.array(scheme.prior),
        )


def renumbered(values: ClassArray, names: Sequence[str], others: Sequence[str]) -> ClassArray:
    """Count classes by another list of names; one that is not in it is `OPEN`."""
    place = {name: number for number, name in enumerate(others)}
    table = np.array([*(place.get(name, OPEN) for name in names), OPEN], dtype=np.int16)
    return table[values]


def record_of_votes(table: LabelTable, people: NDArray[np.int32]) -> VotesRecord:
    """Make the record of a file's votes.

    Parameters
    ----------
    table : LabelTable
    people : (K,) int32
        The number of each of its annotators.
    """
    return VotesRecord(
        tasks=packed(table.tasks),
        pictures=packed_pictures(table.tasks, table.pictures),
        outputs=table.outputs,
        task=table.task,
        annotator=people[table.annotator],
        label=table.label,
        time=table.time,
    )


def record_of_truth(table: TrueLabels) -> VotesRecord:
    """Make the record of a file's true classes."""
    return VotesRecord(
        packed(table.tasks), packed([]), table.classes, np.arange(len(table), dtype=np.int32),
        np.empty(0, dtype=np.int32), table.label,
    )  # fmt: skip


def read_crowd(
    connection: sqlite3.Connection,
    path: Path,
    question: int,
    scheme: Scheme,
    annotators: int,
    last: int | None = None,
) -> Crowd:
    """Join what the imports brought on a question, up to the last one named; later truths replace earlier.

    Raises
    ------
    StudyError
        When what is stored cannot be votes.
    """
    records = records_of(connection, path, question, VotesRecord, last)
    try:
        crowd = joined([one for truth, one in records if not truth], scheme, annotators)
        for truth, record in records:
            if truth:
                take_truth(crowd, record)
    except (LabelsError, IndexError, ValueError) as error:
        raise StudyError(f"is damaged: votes on a question cannot be read ({error})", file=path) from error
    return crowd


def joined(records: Sequence[VotesRecord], scheme: Scheme, annotators: int) -> Crowd:
    """Join the votes of several imports or files.

    Parameters
    ----------
    records : sequence of VotesRecord
        In the order in which they came.
    scheme : Scheme
        Knows all of their outputs.
    annotators : int
        How many there are; the records number them.

    Raises
    ------
    ValueError, IndexError
        Where these are no votes of so many annotators.
    """
    tasks, pictures, tables = tabled([(one.tasks, one.pictures) for one in records])
    place = {name: at for at, name in enumerate(scheme.outputs)}
    columns: list[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int16]]] = []
    for table, record in zip(tables, records, strict=True):
        if not len(record.task) == len(record.annotator) == len(record.label):
            raise ValueError("its columns differ in length")
        if len(record.annotator) and not 0 <= record.annotator.min() <= record.annotator.max() < annotators:
            raise ValueError("a vote is by nobody")
        if len(record.task) and min(record.task.min(), record.label.min()) < 0:
            raise ValueError("a vote is on no task")
        if not set(record.outputs) <= place.keys():
            raise ValueError("a vote is for a class that the question does not have")
        output = np.array([place[name] for name in record.outputs], dtype=np.int16)
        columns.append((table[record.task], record.annotator, output[record.label]))
    task, person, label = (
        np.concatenate([np.empty(0, dtype=kind), *(column[at] for column in columns)])
        for at, kind in enumerate((np.int32, np.int32, np.int16))
    )
    people, annotator = compact(person, annotators)
    times = times_of([one.time for one in records], [len(one.task) for one in records])
    truth = np.full(len(tasks), OPEN, dtype=np.int16)
    return Crowd(scheme, tasks, pictures, people, task, annotator, label, times, truth)


def take_truth(crowd: Crowd, record: VotesRecord) -> None:
    """Note true classes in a crowd, on those of its tasks and classes that it has."""
    label = renumbered(record.label, record.outputs, crowd.scheme.classes)
    names = names_of(record.tasks)
    for task, true in zip(record.task.tolist(), label.tolist(), strict=True):
        at = crowd.number_of.get(names[task])
        if at is not None and true != OPEN:
            crowd.truth[at] = true
