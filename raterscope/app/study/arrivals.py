"""What every import writes of itself, whatever it brings: its own row, and the annotators who are new."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from raterscope.app.errors import plain

__all__ = ["number_annotators", "number_import"]


def number_import(connection: sqlite3.Connection, kind: str, file: str, notices: Sequence[str]) -> int:
    """Note that a file came, within the present transaction; gives the import's number."""
    (number,) = connection.execute(
        "INSERT INTO imports(kind, file, at, notices) VALUES (?, ?, ?, ?) RETURNING id",
        (kind, plain(file, 200), datetime.now(UTC).isoformat(), json.dumps(list(notices))),
    ).fetchone()
    return int(number)


def number_annotators(connection: sqlite3.Connection, names: Iterable[str]) -> dict[str, int]:
    """Give the number of every annotator, of those too who come now, in the order in which they are named."""
    known: dict[str, int] = dict(connection.execute("SELECT name, id FROM annotators"))
    new = [name for name in dict.fromkeys(names) if name not in known]
    numbers = {name: number for number, name in enumerate(new, start=len(known))}
    connection.executemany(
        "INSERT INTO annotators(id, name) VALUES (?, ?)", [(n, name) for name, n in numbers.items()]
    )
    return known | numbers
