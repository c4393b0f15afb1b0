"""Records of arrays in a study's file, and whether a result fits what it was made from."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from raterscope.algorithms.clicks.data import Clicks, Fusion
from raterscope.app.study.arrays import DamagedError, pack, unpack
from raterscope.app.study.records import StudyError

__all__ = ["RESULTS", "misfit", "read_object", "remove_object", "write_object"]

RESULTS: dict[str, type[Fusion]] = {"clicks": Fusion}

Record = TypeVar("Record")


def write_object(connection: sqlite3.Connection, record: Any) -> int:
    """Store a record within the present transaction and give its number."""
    size, chunks = pack(record)
    number = connection.execute("INSERT INTO objects(size) VALUES (?)", (size,)).lastrowid
    connection.executemany(
        "INSERT INTO chunks VALUES (?, ?, ?)", ((number, part, data) for part, data in enumerate(chunks))
    )
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
        raise StudyError(f"is damaged ({error}); open a backup of it", file=path) from error


def remove_object(connection: sqlite3.Connection, number: int) -> None:
    """Remove a record within the present transaction."""
    connection.execute("DELETE FROM objects WHERE id = ?", (number,))


def misfit(fusion: Fusion, clicks: Clicks) -> str | None:
    """Say why a fusion cannot be that of these clicks; None where it can.

    A result that comes with a stranger's file, or one that was made while other clicks arrived, would
    otherwise show itself as an index out of range somewhere on the screen.
    """
    n, r = len(clicks), len(clicks.annotators)
    clustering, detection, rates, trace = (
        fusion.clustering, fusion.detection, fusion.rates, fusion.clustering.trace
    )  # fmt: skip
    m, k, t = len(clustering.mean), len(clustering.inlier), len(trace.objective)
    shapes: list[tuple[str, np.ndarray, tuple[int, ...]]] = [
        ("mark", fusion.mark, (n,)),
        ("marked", fusion.marked, (r, m)),
        ("verdict", fusion.verdict, (m,)),
        ("mean", clustering.mean, (m, 2)),
        ("covariance", clustering.covariance, (m, 2, 2)),
        ("weight", clustering.weight, (m,)),
        ("nearest", clustering.nearest, (k,)),
        ("reliability", clustering.reliability, (r,)),
        ("components", trace.components, (t,)),
        ("removed", trace.removed, (t,)),
        ("clicks", rates.clicks, (r,)),
    ]
    shapes += [(f"rates {name}", getattr(rates, name), (r, 3)) for name in _PER_ANNOTATOR[:2]]
    shapes += [("reliability rate", rates.reliability, (r, 3))]
    shapes += [(name, getattr(detection, name), (m,)) for name in _PER_CLUSTER]
    shapes += [(name, getattr(detection, name), (r,)) for name in _PER_ANNOTATOR]
    for name, array, shape in shapes:
        if array.shape != shape:
            return f"{name} has the shape {array.shape}, not {shape}"
    if n and not 0 <= fusion.mark.min() <= fusion.mark.max() < k:
        return "mark points at a mark that is not there"
    if k and not -1 <= clustering.nearest.min() <= clustering.nearest.max() < m:
        return "nearest points at a cluster that is not there"
    if not np.isfinite(clustering.mean).all() or not np.isfinite(clustering.covariance).all():
        return "a cluster's place is no number"
    return None


_PER_CLUSTER = ("posterior", "posterior_low", "posterior_high", "detected")
_PER_ANNOTATOR = (
    "sensitivity", "specificity", "true_positive", "false_negative", "true_negative", "false_positive"
)  # fmt: skip
