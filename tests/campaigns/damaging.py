"""Damage to a study's file: values, rows, arrays, schema and header as no program of ours writes them."""

from __future__ import annotations

import contextlib
import json
import math
import sqlite3
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

from raterscope.app.study.arrays import CHUNK
from tests.campaigns.mutations import VALUES, list_places

__all__ = ["DAMAGES", "damage"]

TEXTS = (
    "",
    " ",
    "\0",
    "x",
    "NULL",
    "nan",
    "[]",
    "{}",
    "null",
    "1",
    "../../x",
    "ü\u202e",
    "a\nb",
    "A" * 100_000,
)
INTEGERS = (0, -1, 1, 2, 3, 99, 2**31, 2**53, 2**62, -(2**63), 2**63 - 1)
REALS = (0.0, -1.0, 1e308, -1e308, 1e-320, math.inf, -math.inf, 0.5)
SIZES = (0, 1, 7, 8, 9, 2**20, 2**30, 2**30 + 1, 2**40, -1)
FLOATS = (math.nan, math.inf, -math.inf, -1.0, 2.0, 1e308)

Damage = Callable[[sqlite3.Connection, Random], str]


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a study's database without its triggers, which come back in the end."""
    connection = sqlite3.connect(path, isolation_level=None)
    triggers = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
    try:
        connection.execute("BEGIN")
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        yield connection
        connection.execute("PRAGMA writable_schema=ON")  # else a hostile trigger's name refuses these
        for _, sql in triggers:
            connection.execute(sql)
        connection.execute("COMMIT")
    finally:
        connection.close()


def damage(path: Path, random: Random, names: tuple[str, ...] = ()) -> str:
    """Damage a closed study in one to three ways, and describe the damage."""
    done = []
    with _opened(path) as connection:
        for _ in range(random.choice((1, 1, 2, 3))):
            name = random.choice(names or tuple(DAMAGES))
            with contextlib.suppress(sqlite3.Error, ValueError, IndexError, KeyError, zlib.error):
                done.append(f"{name}: {DAMAGES[name](connection, random)}")
    return "; ".join(done)


def _tables(connection: sqlite3.Connection) -> list[str]:
    names = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
    return [
        name
        for (name,) in connection.execute(names).fetchall()
        if connection.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchone()
    ]


def _row(connection: sqlite3.Connection, table: str, random: Random) -> tuple[str, dict[str, Any]]:
    """Choose a row: the condition that finds it, and its values by column."""
    columns = [row[1:6:4] for row in connection.execute(f"PRAGMA table_info({table})")]
    rows = connection.execute(f"SELECT * FROM {table} LIMIT 500").fetchall()
    row = dict(zip([name for name, _ in columns], random.choice(rows), strict=True))
    keys = [name for name, is_key in columns if is_key] or ["rowid"]
    if keys == ["rowid"]:
        numbers = connection.execute(f"SELECT rowid FROM {table} LIMIT 500").fetchall()
        (number,) = random.choice(numbers)
        return f"rowid = {number}", row
    return " AND ".join(f"{key} = {_literal(row[key])}" for key in keys), row


def _literal(value: Any) -> str:
    return str(value) if isinstance(value, (int, float)) else "'" + str(value).replace("'", "''") + "'"


def _value(connection: sqlite3.Connection, random: Random) -> str:
    """Set one value to an odd one of its type, or to NULL."""
    table = random.choice(_tables(connection))
    where, row = _row(connection, table, random)
    column = random.choice(list(row))
    old = row[column]
    if isinstance(old, str):
        new: Any = random.choice(TEXTS)
    elif isinstance(old, bytes):
        new = random.choice(
            (b"", old[: len(old) // 2], random.randbytes(50), zlib.compress(bytes(5_000_000)))
        )
    else:
        new = random.choice(REALS if isinstance(old, float) else (*INTEGERS, None))
    connection.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (new,))
    return f"{table}.{column} where {where} = {str(new)[:40]!r}"


def _json(connection: sqlite3.Connection, random: Random) -> str:
    """Change a value within a JSON text."""
    results = [
        (table, row[1])
        for table in _tables(connection)
        for row in connection.execute(f"PRAGMA table_info({table})")
        if (table, row[1]) in _JSON
    ]
    table, column = random.choice(results)
    where, row = _row(connection, table, random)
    if row.get(column) is None:
        return "nothing"
    document = json.loads(row[column])
    locations: list[tuple[Any, Any]] = []
    list_places(document, locations)
    if not locations or random.random() < 0.2:
        document = random.choice(VALUES)
    else:
        box, key = random.choice(locations)
        if random.random() < 0.3 and isinstance(box, dict):
            del box[key]
        else:
            box[key] = random.choice(VALUES)
    text = json.dumps(document)
    connection.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (text,))
    return f"{table}.{column} where {where} = {text[:80]}"


_JSON = {
    ("imports", "notices"), ("runs", "settings"), ("runs", "versions"), ("runs", "log"), ("runs", "excluded"),
    ("grids", "affine"), ("questions", "scheme"), ("decisions", "subject"), ("decisions", "annotators"),
}  # fmt: skip


def _missing(connection: sqlite3.Connection, random: Random) -> str:
    """Remove a row, or all rows of a table."""
    table = random.choice(_tables(connection))
    where = "1" if random.random() < 0.2 else _row(connection, table, random)[0]
    connection.execute(f"DELETE FROM {table} WHERE {where}")
    return f"from {table} where {where}"


def _twice(connection: sqlite3.Connection, random: Random) -> str:
    """Repeat a row under another key."""
    table = random.choice(_tables(connection))
    where, row = _row(connection, table, random)
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    values = [row[name] for name in columns]
    first = values[0]
    values[0] = first + random.choice((1, 7, 2**40)) if isinstance(first, int) else f"{first}2"
    connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)
    return f"{table} where {where}"


def _exchange(connection: sqlite3.Connection, random: Random) -> str:
    """Let a row refer to another record than its own."""
    tables = [
        name for name in ("marks", "masks", "votes", "results", "outlines") if name in _tables(connection)
    ]
    table = random.choice(tables)
    where, _ = _row(connection, table, random)
    objects = [number for (number,) in connection.execute("SELECT id FROM objects")]
    number = random.choice(objects)
    connection.execute(f"UPDATE {table} SET object = ? WHERE {where}", (number,))
    return f"{table} where {where} refers to record {number}"


def _record(connection: sqlite3.Connection, random: Random) -> str:
    """Change the header or the arrays of a record, compressed as they should be."""
    objects = connection.execute("SELECT id, size FROM objects").fetchall()
    number, size = random.choice(objects)
    rows = connection.execute("SELECT data FROM chunks WHERE object = ? ORDER BY part", (number,)).fetchall()
    raw = b"".join(zlib.decompress(data) for (data,) in rows)
    length = int.from_bytes(raw[:8], "little")
    head, arrays = json.loads(raw[8 : 8 + length]), bytearray(raw[8 + length :])
    choice = random.randrange(4)
    if choice == 0 and len(arrays) >= 8:
        at = 8 * random.randrange(len(arrays) // 8)
        arrays[at : at + 8] = struct.pack("<d", random.choice(FLOATS))
        words = f"byte {at} of its arrays is a float"
    elif choice == 1 and arrays:
        at = random.randrange(len(arrays))
        arrays[at : at + 4] = struct.pack("<i", random.choice((-1, 0, 2**31 - 1, 1000)))
        words = f"byte {at} of its arrays is an integer"
    elif choice == 2:
        cut = random.randrange(len(arrays) + 1)
        arrays = arrays[:cut]
        words = f"its arrays end at byte {cut}"
    else:
        locations: list[tuple[Any, Any]] = []
        list_places(head, locations)
        box, key = random.choice(locations)
        box[key] = random.choice((*VALUES, "<f8", "|b1", "<i8", "|O", [2, 3], [-1], {"float": "nan"}))
        words = f"its header has {str(box[key])[:40]!r} at {key}"
    header = json.dumps(head).encode()
    raw = len(header).to_bytes(8, "little") + header + bytes(arrays)
    size = random.choice(SIZES) if random.random() < 0.1 else len(raw)
    connection.execute("DELETE FROM chunks WHERE object = ?", (number,))
    for part, start in enumerate(range(0, len(raw), CHUNK)):
        data = zlib.compress(raw[start : start + CHUNK], 1)
        connection.execute("INSERT INTO chunks VALUES (?, ?, ?)", (number, part, data))
    connection.execute("UPDATE objects SET size = ? WHERE id = ?", (size, number))
    return f"record {number} of {size} bytes: {words}"


def _schema(connection: sqlite3.Connection, random: Random) -> str:
    """Add a trigger, view, index or table that is not ours, or hide one behind an internal name."""
    statement = random.choice((
        "CREATE TRIGGER evil AFTER INSERT ON decisions BEGIN DELETE FROM marks; END",
        "CREATE TRIGGER sqliteevil AFTER INSERT ON decisions BEGIN DELETE FROM chunks; END",
        "CREATE VIEW evil AS SELECT * FROM decisions",
        "CREATE TABLE evil (x)",
        "CREATE INDEX evil ON decisions(at)",
        "CREATE VIRTUAL TABLE evil USING fts5(x)",
        "ALTER TABLE decisions ADD COLUMN evil TEXT",
    ))  # fmt: skip
    connection.execute(statement)
    if "TRIGGER" in statement and random.random() < 0.5:
        connection.execute("PRAGMA writable_schema=ON")
        connection.execute(
            "UPDATE sqlite_schema SET name = 'sqlite_evil', sql = replace(sql, ' evil', ' sqlite_evil')"
            " WHERE name LIKE '%evil'"
        )
        connection.execute("PRAGMA writable_schema=OFF")
    return statement


def _header(connection: sqlite3.Connection, random: Random) -> str:
    """Claim another version or application."""
    name = random.choice(("user_version", "user_version", "application_id"))
    value = random.choice((0, 1, 2, 3, 4, 6, -1, 2**31 - 1))
    connection.execute(f"PRAGMA {name}={value}")
    return f"{name} = {value}"


DAMAGES: dict[str, Damage] = {
    "value": _value, "json": _json, "missing": _missing, "twice": _twice, "exchanged": _exchange,
    "record": _record, "schema": _schema, "header": _header,
}  # fmt: skip
