"""Studies as files, closed, edited and refused."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from raterscope.algorithms.masks.grid import Grid
from raterscope.app.study import Study, StudyError
from raterscope.app.study.masks import add_case
from raterscope.app.study.schema import schema_of


def refusal(path: Path) -> str:
    with pytest.raises(StudyError) as caught:
        Study.open(path)
    sentence = str(caught.value)
    assert path.name in sentence
    assert sentence.endswith(".")
    return sentence


@contextlib.contextmanager
def edited(path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(path)
    with contextlib.closing(connection), connection:
        yield connection


COLUMNS_BEFORE = {
    1: "id, at, who, verb, item, subject ->> 'number', subject ->> 'x', subject ->> 'y', "
    "subject ->> 'from_x', subject ->> 'from_y', reason, annotators ->> 0, run, about, undoes",
    2: "id, at, who, verb, item, kind, subject, voxels, reason, annotators ->> 0, run, about, undoes",
}


TABLES_SINCE = {
    1: ("grids", "masks", "questions", "votes", "pictures", "watched", "streams", "outlines",
        "structures", "keys", "shown", "settings", "viewed", "contents"),
    2: ("questions", "votes", "pictures", "watched", "streams", "outlines", "structures", "keys", "shown",
        "settings", "viewed", "contents"),
    3: ("watched", "streams", "outlines", "structures", "keys", "shown", "settings", "viewed", "contents"),
    4: ("outlines", "structures", "keys", "shown", "settings", "viewed", "contents"),
    5: ("structures", "keys", "shown", "settings", "viewed", "contents"),
    6: ("structures", "keys", "shown", "settings", "viewed", "contents"),
    7: ("shown", "settings", "viewed", "contents"),
    8: ("settings", "viewed", "contents"),
    9: ("viewed", "contents"),
    10: ("contents",),
    11: ("contents",),
    12: ("contents",),
    13: ("contents",),
    14: (),
    15: (),
    16: (),
    17: (),
    18: (),
    19: (),
    20: (),
    21: (),
    22: (),
}  # fmt: skip


def as_an_older_format(path: Path, version: int) -> None:
    """Write a study as an older format had it.

    The first had a spot's columns, the second one annotator a decision, the third watched nothing, the fourth
    kept no outlines, the fifth no slice positions, the sixth no codes of structures and no key of exports,
    the seventh no run shown, the eighth no settings, the ninth no views of spots, the tenth no
    control images, the eleventh nothing reopened, the thirteenth no contents of tasks, the fourteenth no
    classes of clicks, the sixteenth no gold tasks.
    """
    with edited(path) as connection:
        for table in TABLES_SINCE[version]:
            connection.execute(f"DROP TABLE {table}")
        if version in COLUMNS_BEFORE:
            with_tables_before(connection, version)
        if 1 < version < 6:
            columns = "image, slices, affine, calibrated, modality, identifier"
            grids = connection.execute(f"SELECT {columns} FROM grids").fetchall()
            connection.execute("DROP TABLE grids")
            connection.execute(
                next(statement for statement in schema_of(version) if "TABLE grids" in statement)
            )
            connection.executemany("INSERT INTO grids VALUES (?, ?, ?, ?, ?, ?)", grids)
        connection.execute(f"PRAGMA user_version={version}")


def with_tables_before(connection: sqlite3.Connection, version: int) -> None:
    for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    decisions = connection.execute(f"SELECT {COLUMNS_BEFORE[version]} FROM decisions").fetchall()
    results = connection.execute("SELECT item, run, object FROM results").fetchall()
    for table in ("decisions", "results"):
        connection.execute(f"DROP TABLE {table}")
    for statement in schema_of(version):
        if "decisions" in statement or "results" in statement:
            connection.execute(statement)
    connection.executemany(
        f"INSERT INTO decisions VALUES ({', '.join('?' * (15 if version == 1 else 13))})", decisions
    )
    connection.executemany("INSERT INTO results VALUES (?, ?, ?)", results)


def with_a_case(path: Path, offsets: tuple[float, ...] | None) -> Grid:
    """Add a volume that only its masks tell of."""
    grid = Grid((4, 6, 7), Grid.plain((4, 6, 7), (2.5, 1, 1)).affine, True, offsets)
    with Study.open(path) as study:
        add_case(study, "chest", grid)
    return grid


def grid_in(path: Path) -> Grid | None:
    with Study.open(path) as study:
        return next(entry.grid for entry in study.images() if entry.name == "chest")
