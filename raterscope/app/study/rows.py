"""Conversion between rows of the study's tables and records; invalid rows raise StudyError."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from raterscope.algorithms.masks.grid import Grid, GridError
from raterscope.app.errors import StudyError, plain
from raterscope.app.formats.tables import FARTHEST
from raterscope.app.program_files import user_name
from raterscope.app.review import SUBJECTS, Decision
from raterscope.app.study.arrays import read_object, write_object
from raterscope.app.study.kinds import STORED
from raterscope.app.study.records import ImageEntry, MarksRecord, QuestionEntry, RunEntry, Scheme

IMAGE = ("id", "name", "path", "width", "height", "size", "digest", "pixel_size")
GRID = ("slices", "affine", "calibrated", "modality", "identifier", "slice_offsets")
RUN = (
    "kind", "algorithm", "settings", "seed", "versions", "digest", "started", "seconds", "log", "known",
    "import", "excluded",
)  # fmt: skip
DECISION = (
    "id", "at", "who", "verb", "item", "kind", "subject", "voxels", "reason", "annotators", "run", "about",
    "undoes",
)  # fmt: skip


def image_of(row: tuple[Any, ...], path: Path) -> ImageEntry:
    """Make an image's entry from the columns `IMAGE` and `GRID`."""
    entry = ImageEntry(*row[: len(IMAGE)])
    if not (0 < entry.width < math.inf and 0 < entry.height < math.inf):
        raise StudyError(f"is damaged: the size of {plain(entry.name)} is no size", file=path)
    slices, affine, calibrated, modality, identifier, stored = row[len(IMAGE) :]
    if slices is None:
        return entry
    try:
        numbers = msgspec.json.decode(affine, type=tuple[float, ...])
        offsets = None if stored is None else msgspec.json.decode(stored, type=tuple[float, ...])
        grid = Grid((slices, round(entry.height), round(entry.width)), numbers, bool(calibrated), offsets)
    except (GridError, msgspec.MsgspecError) as error:
        name = plain(entry.name)
        raise StudyError(f"is damaged: the geometry of {name} cannot be read", file=path) from error
    return replace(entry, grid=grid, modality=modality, identifier=identifier)


def grid_row(image: int, grid: Grid, modality: str, identifier: str) -> tuple[Any, ...]:
    """Write a geometry as an image's number and the columns `GRID`."""
    affine = msgspec.json.encode(grid.affine).decode()
    offsets = None if grid.slice_offsets is None else msgspec.json.encode(grid.slice_offsets).decode()
    return image, grid.shape[0], affine, int(grid.calibrated), modality, identifier, offsets


def question_of(row: tuple[Any, ...], path: Path) -> QuestionEntry:
    """Make a question's entry from its id, name and scheme."""
    number, name, scheme = row
    try:
        return QuestionEntry(number, name, msgspec.json.decode(scheme, type=Scheme))
    except (msgspec.MsgspecError, ValueError) as error:
        raise StudyError(f"is damaged: question {number} cannot be read", file=path) from error


def run_row(run: RunEntry) -> tuple[Any, ...]:
    """Write a run as the columns `RUN`."""
    kept = {"weights": run.weights, "aliases": run.aliases, "programs": run.programs}
    log = run.log | {name: value for name, value in kept.items() if value}
    return (
        run.kind, run.algorithm, json.dumps(run.settings), run.seed, json.dumps(run.versions),
        run.digest, run.started.isoformat(), run.seconds, json.dumps(log), run.known,
        run.imported, json.dumps(run.excluded),
    )  # fmt: skip


def run_of(row: tuple[Any, ...], items: tuple[int, ...], path: Path) -> RunEntry:
    """Make a run's entry from its id and the columns `RUN`."""
    number, *others = row
    values = dict(zip(RUN, others, strict=True))
    values["imported"] = values.pop("import")
    try:
        for name in ("settings", "versions", "log"):
            values[name] = _decode(values[name])
            if not isinstance(values[name], dict):
                raise TypeError(f"{name} is no object")
        values["excluded"] = msgspec.json.decode(values["excluded"], type=tuple[str, ...])
        kind = STORED.get(values["kind"])
        if kind is not None and kind.log is not None:
            msgspec.convert(values["log"], kind.log)
        values["started"] = datetime.fromisoformat(values["started"])
        values["weights"] = msgspec.convert(values["log"].pop("weights", {}), dict[str, float])
        values["aliases"] = msgspec.convert(values["log"].pop("aliases", {}), dict[str, str])
        values["programs"] = msgspec.convert(values["log"].pop("programs", ()), tuple[str, ...])
        if not all(0 < weight <= 1 for weight in values["weights"].values()):
            raise ValueError("a weight is none")
    except (ValueError, TypeError, RecursionError) as error:
        raise StudyError(f"is damaged: run {number} cannot be read", file=path) from error
    return RunEntry(id=number, items=items, **values)


def _decode(text: str) -> Any:
    """Decode JSON without stopping other threads; the JSON of 10,000 images is long."""
    try:
        return msgspec.json.decode(text)
    except msgspec.MsgspecError:  # as for NaN, which Python writes
        value = json.loads(text)
        json.dumps(value, ensure_ascii=False).encode()  # refuses halves of characters
        return value


def decision_row(decision: Decision) -> tuple[Any, ...]:
    """Write a decision as the columns `DECISION`."""
    assert decision.at is not None
    values = {name: getattr(decision, name, None) for name in DECISION}
    values["at"] = decision.at.isoformat(timespec="milliseconds")
    values["annotators"] = msgspec.json.encode(decision.annotators).decode()
    if decision.subject is not None:
        values["kind"] = decision.subject.form
        values["subject"] = msgspec.json.encode(decision.subject).decode()
    return tuple(values.values())


def decision_of(row: tuple[Any, ...], path: Path) -> Decision:
    """Make a decision from the columns `DECISION`."""
    values = dict(zip(DECISION, row, strict=True))
    try:
        values["at"] = datetime.fromisoformat(values["at"])
        values["annotators"] = msgspec.json.decode(values["annotators"], type=tuple[str, ...])
        kind, subject = values.pop("kind"), values.pop("subject")
        values["subject"] = None if kind is None else msgspec.json.decode(subject, type=SUBJECTS[kind])
        decision = Decision(**values)
        if decision.undoes is not None and decision.undoes >= decision.id:
            raise ValueError("an undo points forward")
    except (ValueError, TypeError, KeyError, msgspec.MsgspecError) as error:
        raise StudyError(f"is damaged: decision {row[0]} cannot be read", file=path) from error
    return decision


def read_decisions(connection: sqlite3.Connection, path: Path) -> list[Decision]:
    """Read all decisions, oldest first."""
    rows = connection.execute(f"SELECT {', '.join(DECISION)} FROM decisions ORDER BY id")
    return [decision_of(row, path) for row in rows]


def append_decision(connection: sqlite3.Connection, path: Path, decision: Decision) -> Decision:
    """Append a decision to the journal; see `Study.record`."""
    (number,) = connection.execute("SELECT ifnull(max(id), 0) + 1 FROM decisions").fetchone()
    if decision.undoes is not None:
        _check_undo(connection, path, decision.undoes, number)
    settled = decision.settled
    written = replace(
        decision, id=number, at=decision.at or datetime.now(UTC), settled=None,
        who=decision.who or user_name(),
        voxels=None if settled is None else write_object(connection, settled),
    )  # fmt: skip
    write_decision(connection, written)
    return written


def write_decision(connection: sqlite3.Connection, decision: Decision) -> None:
    """Insert the row of a decision."""
    connection.execute(
        f"INSERT INTO decisions({', '.join(DECISION)}) VALUES ({', '.join('?' * len(DECISION))})",
        decision_row(decision),
    )


def _check_undo(connection: sqlite3.Connection, path: Path, target: int, number: int) -> None:
    """Refuse to undo a decision that does not exist or is already undone."""
    if not 0 < target < number:
        raise StudyError(f"has no decision number {target} to undo", file=path)
    dead: set[int] = set()
    for undo, undoes in connection.execute(
        "SELECT id, undoes FROM decisions WHERE undoes IS NOT NULL ORDER BY id DESC"
    ):
        if undo not in dead:
            dead.add(undoes)
    if target in dead:
        raise StudyError(f"has decision number {target} undone already", file=path)


def read_imports(
    connection: sqlite3.Connection,
    path: Path,
    image_id: int,
    kind: str,
    since: int = 0,
    last: int | None = None,
) -> list[tuple[int, MarksRecord]]:
    """Return the marks of each import on an image, within a range of imports."""
    numbers = connection.execute(
        "SELECT import, object FROM marks WHERE image = ? AND kind = ? AND import > ? AND import <= ? "
        "ORDER BY import",
        (image_id, kind, since, 2**62 if last is None else last),
    ).fetchall()
    records = [
        (import_id, read_object(connection, number, MarksRecord, path)) for import_id, number in numbers
    ]
    for _, record in records:
        columns: list[np.ndarray] = [record.y, record.annotator] if kind == "clicks" else [record.y]
        if kind == "scores":
            columns.append(np.empty(0) if record.score is None else record.score)
        columns += [column for column in (record.time, record.label) if column is not None]
        if (
            record.looked.ndim != 1
            or record.x.ndim != 1
            or any(column.shape != (len(record.x),) for column in columns)
        ):
            raise StudyError("is damaged: the columns of its marks differ in length", file=path)
        label = record.label
        if label is not None and not ((label >= -1) & (label < len(record.classes))).all():
            raise StudyError(f"is damaged: a class on image {image_id} does not exist", file=path)
        if record.score is not None and not np.isfinite(record.score).all():
            raise StudyError(f"is damaged: a score on image {image_id} is no number", file=path)
        if not ((np.abs(record.x) <= FARTHEST).all() and (np.abs(record.y) <= FARTHEST).all()):
            text = f"is damaged: marks on image {image_id}: expected coordinates of at most {FARTHEST:,.0f}"
            raise StudyError(text, file=path)
    return records


def read_marks(
    connection: sqlite3.Connection, path: Path, image_id: int, kind: str, last: int | None = None
) -> MarksRecord:
    """Join the marks of all imports on an image, up to `last`."""
    records = [record for _, record in read_imports(connection, path, image_id, kind, last=last)]
    if len(records) == 1:
        return records[0]
    timed = any(record.time is not None for record in records)
    classes = tuple(dict.fromkeys(name for record in records for name in record.classes))
    return MarksRecord(
        x=_joined(records, lambda record: record.x),
        y=_joined(records, lambda record: record.y),
        annotator=_joined(records, lambda record: record.annotator).astype(np.int64),
        looked=np.unique(_joined(records, lambda record: record.looked)).astype(np.int64),
        time=_joined(records, _time) if timed else None,
        classes=classes,
        label=_joined(records, partial(_label, classes)).astype(np.int64) if classes else None,
    )


def _joined(records: list[MarksRecord], column: Callable[[MarksRecord], np.ndarray]) -> np.ndarray:
    return np.concatenate([np.empty(0), *(column(record) for record in records)])


def _label(classes: tuple[str, ...], record: MarksRecord) -> np.ndarray:
    if record.label is None:
        return np.full(len(record.x), -1)
    return np.array([*(classes.index(name) for name in record.classes), -1])[record.label]


def _time(record: MarksRecord) -> np.ndarray:
    return np.full(len(record.x), np.nan) if record.time is None else record.time
