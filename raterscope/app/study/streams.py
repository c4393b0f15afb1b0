"""Watched sources of clicks: position up to which each was read, and state on each image.

Clicks and position are written in one transaction, so that a killed watch loses nothing and repeats nothing.
The states on images may lag behind; they are updated from the marks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import StudyError
from raterscope.app.formats.records import ClickTable
from raterscope.app.study.arrays import read_object, remove_object, write_object
from raterscope.app.study.records import ImportSummary, MarksRecord
from raterscope.app.study.references import stored_path
from raterscope.app.study.rows import read_imports
from raterscope.app.study.study import Study

Record = TypeVar("Record")


@dataclass(frozen=True)
class StreamEntry:
    """Watched source."""

    id: int
    source: Path
    settings: dict[str, Any]  # ready for JSON: how its clicks are fused, and when to stop
    position: dict[str, Any]  # ready for JSON: position up to which it was read
    # started, seen: begin of the watch, and time of the last new data
    started: datetime
    seen: datetime

    @property
    def ended(self) -> str:
        """Reason why watching ended, in a sentence; empty if unknown, as after a crash."""
        text = self.settings.get("ended")
        return text if isinstance(text, str) else ""


def streams(study: Study) -> list[StreamEntry]:
    """List the watched sources, in the order of their start."""
    with study.reading() as connection:
        rows = connection.execute(
            "SELECT id, source, settings, position, started, seen FROM streams ORDER BY id"
        ).fetchall()
    entries = []
    for number, source, settings, position, started, last_seen in rows:
        try:
            values = json.loads(settings), json.loads(position)
            if not all(isinstance(value, dict) for value in values):
                raise TypeError("no object")
            times = datetime.fromisoformat(started), datetime.fromisoformat(last_seen)
        except (ValueError, TypeError, RecursionError) as error:
            raise StudyError(f"is damaged: stream {number} cannot be read", file=study.path) from error
        entries.append(StreamEntry(number, study.path.parent / source, *values, *times))
    return entries


def begin(study: Study, source: Path, settings: Mapping[str, Any]) -> StreamEntry:
    """Start watching a source; an existing source keeps its position and gets the settings."""
    path, started = stored_path(source, study.path), datetime.now(UTC).isoformat()
    with study.change() as connection:
        connection.execute(
            "INSERT INTO streams(source, settings, position, started, seen) VALUES (?1, ?2, '{}', ?3, ?3) "
            "ON CONFLICT (source) DO UPDATE SET settings = ?2",
            (path, json.dumps(settings), started),
        )
        (number,) = connection.execute("SELECT id FROM streams WHERE source = ?", (path,)).fetchone()
    return next(entry for entry in streams(study) if entry.id == number)


def take_in(
    study: Study,
    stream: int,
    table: ClickTable | None,
    position: Mapping[str, Any],
    watch: Watch = silent,
    *,
    extent: tuple[float, float] | None = None,
) -> ImportSummary | None:
    """Store new clicks and the position in the source, both or neither.

    Raises `StudyError` for an image of unknown size that is not in the study; the position in the source then
    does not change.
    """
    summary = None
    with study.change() as connection:
        if table is not None:
            summary = study.add_clicks(table, watch, extent=extent)
        connection.execute(
            "UPDATE streams SET position = ?, seen = CASE WHEN ? THEN ? ELSE seen END WHERE id = ?",
            (json.dumps(position), table is not None, datetime.now(UTC).isoformat(), stream),
        )
    return summary


def arrivals(study: Study, image: int, since: int = 0) -> list[tuple[int, MarksRecord]]:
    """Return the clicks on an image by import, after an import."""
    with study.reading() as connection:
        return read_imports(connection, study.path, image, "clicks", since)


def keep(study: Study, stream: int, records: Mapping[int, object]) -> None:
    """Store the states of a stream on images, replacing earlier states."""
    with study.change() as connection:
        for image, record in records.items():
            before = connection.execute(
                "DELETE FROM watched WHERE image = ? AND stream = ? RETURNING object", (image, stream)
            ).fetchone()
            if before is not None:
                remove_object(connection, before[0])
            connection.execute(
                "INSERT INTO watched(image, stream, object) VALUES (?, ?, ?)",
                (image, stream, write_object(connection, record)),
            )


def kept(study: Study, stream: int, kind: type[Record]) -> dict[int, Record]:
    """Return the states of a stream by image."""
    with study.reading() as connection:
        rows = connection.execute(
            "SELECT image, object FROM watched WHERE stream = ? ORDER BY image", (stream,)
        ).fetchall()
        return {image: read_object(connection, number, kind, study.path) for image, number in rows}


def end(study: Study, stream: int, reason: str) -> None:
    """Record why watching a source ended; starting again clears it."""
    with study.change() as connection:
        connection.execute(
            "UPDATE streams SET settings = json_set(settings, '$.ended', ?) WHERE id = ?", (reason, stream)
        )


def forget(study: Study, stream: int) -> None:
    """Delete a stream. Its clicks are kept."""
    with study.change() as connection:
        objects = connection.execute("SELECT object FROM watched WHERE stream = ?", (stream,)).fetchall()
        connection.execute("DELETE FROM streams WHERE id = ?", (stream,))
        for (number,) in objects:
            remove_object(connection, number)
