"""Bringing the file of an older Raterscope up to date."""

from __future__ import annotations

import sqlite3

from raterscope.app.study.schema import SCHEMA, VERSION

__all__ = ["OLDEST", "bring_up_to_date", "schema_of"]

OLDEST = 1

_NEW_IN_2 = ("TABLE grids", "TABLE masks", "INDEX masks_by_object")
_DECISIONS_1 = """CREATE TABLE decisions (
        id INTEGER PRIMARY KEY, at TEXT NOT NULL, who TEXT NOT NULL, verb TEXT NOT NULL, image INTEGER,
        spot INTEGER, x REAL, y REAL, from_x REAL, from_y REAL, reason TEXT NOT NULL, annotator TEXT,
        run INTEGER, about INTEGER, undoes INTEGER) STRICT"""

_SPOT = "json_object('x', x, 'y', y, 'number', spot, 'from_x', from_x, 'from_y', from_y)"
_TAKE_OVER = f"""INSERT INTO decisions
    SELECT id, at, who, verb, image, CASE WHEN x IS NULL THEN NULL ELSE 'clicks' END,
        CASE WHEN x IS NULL THEN NULL ELSE {_SPOT} END, NULL, reason, annotator, run, about, undoes
    FROM decisions_1 ORDER BY id"""


def schema_of(version: int) -> tuple[str, ...]:
    """Give the statements that made a file of a version."""
    if version == VERSION:
        return SCHEMA
    kept = (sql for sql in SCHEMA if not sql.startswith(tuple(f"CREATE {new}" for new in _NEW_IN_2)))
    return tuple(_DECISIONS_1 if sql.startswith("CREATE TABLE decisions") else sql for sql in kept)


def bring_up_to_date(connection: sqlite3.Connection, version: int) -> None:
    """Change a sound file of an older version to the present one, whole or not at all."""
    if version == VERSION:
        return
    connection.execute("BEGIN EXCLUSIVE")
    try:
        for name in ("decisions_stay", "decisions_remain", "decisions_follow"):
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("ALTER TABLE decisions RENAME TO decisions_1")
        present = set(schema_of(version))
        for statement in SCHEMA:
            if statement not in present:
                connection.execute(statement)
        connection.execute(_TAKE_OVER)
        connection.execute("DROP TABLE decisions_1")
        for statement in SCHEMA:
            if statement.startswith("CREATE TRIGGER"):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version={VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
