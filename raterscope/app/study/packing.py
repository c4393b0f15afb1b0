"""What several imports brought for one question: read from the file, and numbered together.

Names are stored packed into bytes; each import counts its own from 0.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from raterscope.app.study.objects import read_object

__all__ = [
    "compact",
    "last_import_for",
    "names_of",
    "packed",
    "packed_pictures",
    "records_of",
    "tabled",
    "times_of",
]

Record = TypeVar("Record")

_LAST = 2**62


def packed(names: Sequence[str]) -> NDArray[np.uint8]:
    """Pack names into bytes: UTF-8, a zero byte after each."""
    return np.frombuffer("".join(name.replace("\0", " ") + "\0" for name in names).encode(), dtype=np.uint8)


def names_of(data: NDArray[np.uint8]) -> list[str]:
    """Give names that `packed` has packed.

    Raises
    ------
    UnicodeDecodeError
        Where it never packed these.
    """
    return data.tobytes().decode().split("\0")[:-1]


def packed_pictures(names: Sequence[str], pictures: Mapping[int, str]) -> NDArray[np.uint8]:
    """Pack the files that show what is named, by place; no bytes where none is known at all."""
    return packed([pictures.get(at, "") for at in range(len(names))] if pictures else [])


def records_of(
    connection: sqlite3.Connection,
    path: Path,
    question: int,
    kind: type[Record],
    last: int | None = None,
    only: bool | None = None,
) -> list[tuple[bool, Record]]:
    """Read what the imports brought for a question, up to the last one named, and whether it is truth.

    With `only`, what is truth alone or what is none.

    Raises
    ------
    StudyError
        When a record is damaged.
    """
    rows = connection.execute(
        "SELECT truth, object FROM votes WHERE question = ? AND import <= ? ORDER BY import",
        (question, _LAST if last is None else last),
    ).fetchall()
    return [
        (bool(truth), read_object(connection, number, kind, path))
        for truth, number in rows
        if only is None or bool(truth) == only
    ]


def last_import_for(connection: sqlite3.Connection, question: int, last: int | None = None) -> int:
    """Give the last import, up to the one named, that brought something for a question; 0 where none did."""
    (number,) = connection.execute(
        "SELECT ifnull(max(import), 0) FROM votes WHERE question = ? AND import <= ?",
        (question, _LAST if last is None else last),
    ).fetchone()
    return int(number)


def tabled(
    packs: Sequence[tuple[NDArray[np.uint8], NDArray[np.uint8]]],
) -> tuple[tuple[str, ...], tuple[str, ...], list[NDArray[np.int32]]]:
    """Give the names of several imports their numbers together, in the order of first appearance.

    Parameters
    ----------
    packs : sequence of (names, pictures)
        As `packed` packs them; no bytes where no picture is named at all.

    Returns
    -------
    names, pictures : tuple of str
        Of all; the last picture that is named counts.
    tables : list of (n,) int32
        For each import, its names' numbers among all.
    """
    number: dict[str, int] = {}
    pictures: list[str] = []
    tables = []
    for names_packed, pictures_packed in packs:
        names = names_of(names_packed)
        shown = names_of(pictures_packed) if pictures_packed.size else [""] * len(names)
        if len(shown) != len(names):
            raise ValueError("pictures are not those of its names")
        table = np.empty(len(names), dtype=np.int32)
        for at, (name, picture) in enumerate(zip(names, shown, strict=True)):
            table[at] = number.setdefault(name, len(number))
            if table[at] == len(pictures):
                pictures.append(picture)
            elif picture:
                pictures[table[at]] = picture
        tables.append(table)
    return tuple(number), tuple(pictures), tables


def compact(person: NDArray[np.int32], annotators: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Give those who appear, by number, and each appearance as a place among them."""
    there = np.zeros(annotators, dtype=bool)
    there[person] = True
    people = np.flatnonzero(there).astype(np.int32)
    place = np.zeros(annotators, dtype=np.int32)
    place[people] = np.arange(len(people), dtype=np.int32)
    return people, place[person]


def times_of(
    times: Sequence[NDArray[np.float64] | None], lengths: Sequence[int]
) -> NDArray[np.float64] | None:
    """Join the times of several imports, NaN where one has none; None where none has any."""
    if all(one is None for one in times):
        return None
    return np.concatenate(
        [np.full(length, np.nan) if one is None else one for one, length in zip(times, lengths, strict=True)]
    )
