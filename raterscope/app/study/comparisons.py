"""Comparisons of pairs as a study stores them, and what several imports of them come to together."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.pairs.data import Pairs
from raterscope.app.formats.pairs.records import PairTable
from raterscope.app.study.packing import compact, packed, packed_pictures, records_of, tabled, times_of
from raterscope.app.study.records import StudyError

__all__ = ["Bench", "PairsRecord", "read_bench", "record_of_pairs"]


@dataclass(frozen=True, eq=False)
class PairsRecord:
    """What one import brought for one question: E comparisons.

    Attributes
    ----------
    items, pictures : (B,) uint8
        The names of its items and of the files that show them, see `packing.packed`.
    annotator : (E,) int32
        The annotator's number in the study.
    left, right : (E,) int32
    choice : (E,) float64
        Above 0 for left.
    time : (E,) float64, optional
    """

    items: NDArray[np.uint8]
    pictures: NDArray[np.uint8]
    annotator: NDArray[np.int32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    choice: NDArray[np.float64]
    time: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class Bench:
    """All comparisons for a question, up to some import.

    Attributes
    ----------
    items : tuple of n names
        In the order of first appearance.
    pictures : tuple of n names
        The file that shows each; empty where none is named.
    people : (p,) int32
        The numbers in the study of those who compared.
    annotator, left, right : (E,) int32
    choice : (E,) float64
    time : (E,) float64, optional
    """

    items: tuple[str, ...]
    pictures: tuple[str, ...]
    people: NDArray[np.int32]
    annotator: NDArray[np.int32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    choice: NDArray[np.float64]
    time: NDArray[np.float64] | None

    def pairs(self, annotators: Sequence[str]) -> Pairs:
        """Give the comparisons as a fusion takes them; `annotators` are all of the study's, by number."""
        names = tuple(annotators[number] for number in self.people.tolist())
        return Pairs(self.annotator, self.left, self.right, self.choice, names, self.items, self.time)


def record_of_pairs(table: PairTable, people: NDArray[np.int32]) -> PairsRecord:
    """Make the record of a file's comparisons; `people` are the numbers of its annotators."""
    return PairsRecord(
        items=packed(table.items),
        pictures=packed_pictures(table.items, table.pictures),
        annotator=people[table.annotator],
        left=table.left,
        right=table.right,
        choice=table.choice,
        time=table.time,
    )


def read_bench(
    connection: sqlite3.Connection, path: Path, question: int, annotators: int, last: int | None = None
) -> Bench:
    """Join what the imports brought for a question, up to the last one named.

    Raises
    ------
    StudyError
        When what is stored cannot be comparisons.
    """
    records = [one for _, one in records_of(connection, path, question, PairsRecord, last, only=False)]
    try:
        return _joined(records, annotators)
    except (IndexError, ValueError) as error:
        raise StudyError(f"is damaged: comparisons cannot be read ({error})", file=path) from error


def _joined(records: Sequence[PairsRecord], annotators: int) -> Bench:
    items, pictures, tables = tabled([(one.items, one.pictures) for one in records])
    for one in records:
        if not len(one.annotator) == len(one.left) == len(one.right) == len(one.choice):
            raise ValueError("their columns differ in length")
        if len(one.left) and min(one.left.min(), one.right.min()) < 0:
            raise ValueError("a comparison is of no item")
        if len(one.annotator) and not 0 <= one.annotator.min() <= one.annotator.max() < annotators:
            raise ValueError("a comparison is by nobody")
        if not np.isfinite(one.choice).all() or (one.left == one.right).any():
            raise ValueError("a choice is no choice")
        if one.time is not None and one.time.shape != one.choice.shape:
            raise ValueError("their columns differ in length")
    empty = np.empty(0, dtype=np.int32)
    person = np.concatenate([empty, *(one.annotator for one in records)])
    people, annotator = compact(person, annotators)
    both = list(zip(tables, records, strict=True))
    return Bench(
        items=items,
        pictures=pictures,
        people=people,
        annotator=annotator,
        left=np.concatenate([empty, *(table[one.left] for table, one in both)]),
        right=np.concatenate([empty, *(table[one.right] for table, one in both)]),
        choice=np.concatenate([np.empty(0), *(one.choice for one in records)]),
        time=times_of([one.time for one in records], [len(one.choice) for one in records]),
    )
