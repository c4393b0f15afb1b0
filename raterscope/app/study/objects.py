"""Records of arrays in a study's file."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, TypeVar

from raterscope.algorithms.clicks.results import Fusion
from raterscope.algorithms.labels.result import LabelResult
from raterscope.algorithms.masks.report import CaseResult
from raterscope.algorithms.pairs.data import PairFusion
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.study.arrays import CHUNK, DamagedError, pack, unpack
from raterscope.app.study.records import StudyError

__all__ = ["RESULTS", "read_object", "remove_object", "write_object"]

RESULTS: dict[str, type[Fusion] | type[CaseResult] | type[LabelResult] | type[PairFusion]] = {
    "clicks": Fusion,
    "masks": CaseResult,
    "labels": LabelResult,
    "pairs": PairFusion,
}
"""What a run comes to, by its kind."""

Record = TypeVar("Record")


def write_object(connection: sqlite3.Connection, record: Any, watch: Watch = silent) -> int:
    """Store a record within the present transaction and give its number."""
    size, chunks = pack(record)
    number = connection.execute("INSERT INTO objects(size) VALUES (?)", (size,)).lastrowid
    for part, data in enumerate(chunks):
        connection.execute("INSERT INTO chunks VALUES (?, ?, ?)", (number, part, data))
        watch(min((part + 1) * CHUNK / size, 1.0), "storing")
    assert number is not None
    return number


def read_object(connection: sqlite3.Connection, number: int, kind: type[Record], path: Path) -> Record:
    """Read a record.

    Raises
    ------
    StudyError
        When it is damaged.
    """
    row = connection.execute("SELECT size FROM objects WHERE id = ?", (number,)).fetchone()
    chunks = connection.execute("SELECT data FROM chunks WHERE object = ? ORDER BY part", (number,))
    try:
        if row is None:
            raise DamagedError("a record is missing")
        return unpack(kind, row[0], (data for (data,) in chunks))
    except DamagedError as error:
        raise StudyError(
            f"is damaged (objects, row {number}: {error}); open a backup of it", file=path
        ) from error


def remove_object(connection: sqlite3.Connection, number: int) -> None:
    """Remove a record within the present transaction."""
    connection.execute("DELETE FROM objects WHERE id = ?", (number,))
