"""Bringing the file of an older Raterscope up to date."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Mapping

from raterscope.app.study.schema import SCHEMA, VERSION

__all__ = ["EXPORT_KEY", "KEY_BYTES", "OLDEST", "add_key", "bring_up_to_date", "schema_of"]

OLDEST = 1
EXPORT_KEY = "export"
KEY_BYTES = 32

_SINCE = {
    2: ("TABLE grids", "TABLE masks", "INDEX masks_by_object"),
    3: ("TABLE questions", "TABLE votes", "TABLE pictures", "INDEX votes_by_object"),
    4: ("TABLE streams", "TABLE watched", "INDEX watched_by_stream", "INDEX watched_by_object"),
    5: ("TABLE outlines", "INDEX outlines_by_object"),
    7: ("TABLE structures", "TABLE keys"),
    8: ("TABLE shown",),
    9: ("TABLE settings",),
    10: ("TABLE viewed", "TRIGGER viewed_stay", "TRIGGER viewed_remain", "TRIGGER viewed_follow"),
}
"""What came with a version and was nowhere before."""

_KEYS_SINCE = 7

_RESULTS_2 = """CREATE TABLE results (
        image INTEGER NOT NULL REFERENCES images(id),
        run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        object INTEGER NOT NULL REFERENCES objects(id), PRIMARY KEY (image, run)) WITHOUT ROWID, STRICT"""
_DECISIONS_2 = """CREATE TABLE decisions (
        id INTEGER PRIMARY KEY, at TEXT NOT NULL, who TEXT NOT NULL, verb TEXT NOT NULL, image INTEGER,
        kind TEXT, subject TEXT, voxels INTEGER REFERENCES objects(id), reason TEXT NOT NULL, annotator TEXT,
        run INTEGER, about INTEGER, undoes INTEGER) STRICT"""
_DECISIONS_1 = """CREATE TABLE decisions (
        id INTEGER PRIMARY KEY, at TEXT NOT NULL, who TEXT NOT NULL, verb TEXT NOT NULL, image INTEGER,
        spot INTEGER, x REAL, y REAL, from_x REAL, from_y REAL, reason TEXT NOT NULL, annotator TEXT,
        run INTEGER, about INTEGER, undoes INTEGER) STRICT"""
_GRIDS_5 = """CREATE TABLE grids (
        image INTEGER PRIMARY KEY REFERENCES images(id), slices INTEGER NOT NULL, affine TEXT NOT NULL,
        calibrated INTEGER NOT NULL, modality TEXT NOT NULL, identifier TEXT NOT NULL) STRICT"""
_WERE: Mapping[int, Mapping[str, str]] = {
    1: {"results": _RESULTS_2, "decisions": _DECISIONS_1},
    2: {"results": _RESULTS_2, "decisions": _DECISIONS_2, "grids": _GRIDS_5},
    3: {"grids": _GRIDS_5},
    4: {"grids": _GRIDS_5},
    5: {"grids": _GRIDS_5},
}
"""The tables of a version that are other ones now."""

_NAMES = "CASE WHEN annotator IS NULL THEN '[]' ELSE json_array(annotator) END"
_SPOT = "json_object('x', x, 'y', y, 'number', spot, 'from_x', from_x, 'from_y', from_y)"
_RESULTS_OVER = "INSERT INTO results SELECT image, run, object FROM results_before"
_GRIDS_OVER = """INSERT INTO grids
        SELECT image, slices, affine, calibrated, modality, identifier, NULL FROM grids_before"""
_DECISIONS_OVER = {
    1: f"""INSERT INTO decisions
        SELECT id, at, who, verb, image, CASE WHEN x IS NULL THEN NULL ELSE 'clicks' END,
            CASE WHEN x IS NULL THEN NULL ELSE {_SPOT} END, NULL, reason, {_NAMES}, run, about, undoes
        FROM decisions_before ORDER BY id""",
    2: f"""INSERT INTO decisions
        SELECT id, at, who, verb, image, kind, subject, voxels, reason, {_NAMES}, run, about, undoes
        FROM decisions_before ORDER BY id""",
}


def schema_of(version: int) -> tuple[str, ...]:
    """Give the statements that made a file of a version."""
    later = tuple(f"CREATE {name}" for since, names in _SINCE.items() if since > version for name in names)
    were = {f"CREATE TABLE {name} ": sql for name, sql in _WERE.get(version, {}).items()}
    return tuple(
        next((old for start, old in were.items() if sql.startswith(start)), sql)
        for sql in SCHEMA
        if not (later and sql.startswith(later))
    )


def bring_up_to_date(connection: sqlite3.Connection, version: int, *, lasting: bool = True) -> None:
    """Change a sound file of an older version to the present one, whole or not at all.

    A copy that does not last gets no key: what is exported with it could not be told again.
    """
    if version == VERSION:
        return
    connection.execute("BEGIN EXCLUSIVE")
    try:
        were = _WERE.get(version, {})
        if "decisions" in were:
            for kind, name in (*_triggers(), ("INDEX", "results_by_run"), ("INDEX", "results_by_object")):
                connection.execute(f"DROP {kind} {name}")
        for table in were:
            connection.execute(f"ALTER TABLE {table} RENAME TO {table}_before")
        _make_missing(connection, triggers=False)
        copies = {"results": _RESULTS_OVER, "decisions": _DECISIONS_OVER.get(version), "grids": _GRIDS_OVER}
        for table in were:
            connection.execute(str(copies[table]))
        for table in were:
            connection.execute(f"DROP TABLE {table}_before")
        _make_missing(connection, triggers=True)
        if version < _KEYS_SINCE and lasting:
            add_key(connection)
        connection.execute(f"PRAGMA user_version={VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def add_key(connection: sqlite3.Connection) -> None:
    """Store a new random key for de-identified exports, within the present transaction."""
    value = secrets.token_bytes(KEY_BYTES)
    connection.execute("INSERT INTO keys(name, value) VALUES (?, ?)", (EXPORT_KEY, value))


def _make_missing(connection: sqlite3.Connection, *, triggers: bool) -> None:
    there = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    for statement in SCHEMA:
        if statement.startswith("CREATE TRIGGER") == triggers and statement.split()[2] not in there:
            connection.execute(statement)


def _triggers() -> list[tuple[str, str]]:
    names = ("decisions_stay", "decisions_remain", "decisions_follow")
    return [("TRIGGER", name) for name in names]
