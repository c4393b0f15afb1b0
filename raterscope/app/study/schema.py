"""The study file: one SQLite database, the contents of its tables, and the migration of older versions.

The header carries ``application_id`` 0x52536370 ("RScp") and ``user_version``, the version of this schema.
The file is in WAL mode while it is open and a single plain file when it is closed.

``images``
    One row an image: its name, unique; the file's path, relative with forward slashes when it lies beside or
    below the study, absolute otherwise, NULL while only the size is known; width and height in pixels; the
    file's size in bytes and its SHA-256 digest; pixel_size in micrometres where it is known. The pixels stay
    in their file.
``annotators``
    One row an annotator. ``id`` counts from 0 in the order of first appearance and never changes: it is the
    annotator's colour for good.
``imports``
    One row a file that was read, in the order of reading: kind (clicks, truth, scores), the file's name,
    when, and what was said of it, a JSON list of sentences. Imports are only ever added.
``grids``
    One row an image that has a geometry, a volume above all: slices, affine (JSON, see `Grid.affine`; rows
    and columns are the image's height and width), calibrated, modality, the series' UID, and for slices at
    uneven distances ``slice_offsets`` (JSON, see `Grid.slice_offsets`), else NULL. The path of a DICOM series
    is its folder, which has no size; its digest is that of the files in the slices' order.
``questions``
    One row a question that annotators answered: its ``kind``, labels or pairs; its name, unique; ``scheme``
    (JSON), for labels the outputs and classes in the curator's order, which output means which class, and the
    prior, for pairs nothing.
``votes``
    One row an import and question; ``object`` holds the votes (truth 0), the true classes (truth 1), the
    comparisons (truth 0) or the true ranking (truth 1) of that import, with the names of its tasks or items.
``pictures``
    One row a task or item that an image of the study shows.
``masks``
    One row a mask: image, structure, annotator, import; ``object`` holds where it begins and its voxels,
    which `voxels` counts. Of several imports of the same mask the last counts; truth is by annotator -1.
``structures``
    One row a structure of which the files of masks tell more than its name; ``coding`` (JSON, see
    `coding.Coding`): coded category and type, colour, role, in which exports state it. What the expert says
    instead is in ``decisions``.
``keys``
    One row, "export": 32 random bytes, the secret from which de-identified exports make identifiers. Whoever
    has it and an original identifier finds the new one; it leaves in no export.
``marks``
    One row an import and image. ``object`` holds the marks of that import on that image: for clicks
    annotators, x, y, time and who looked; for truth x and y; for scores of a program also the score.
``runs``
    One row a run of an algorithm: kind, algorithm, settings (JSON), seed, versions (JSON), digest of the
    input, when it started, seconds it took, log (JSON). ``known`` is the last decision, ``import`` the last
    import that it took into account, ``excluded`` (JSON list) the annotators it left out; of clicks, the log
    has the ``weights`` of those who counted as a part of an annotator.
``results``
    One row a run and item, an image or a question as the run's kind has it; ``object`` holds the result.
``outlines``
    One row a run of clicks; ``object`` holds what a queue needs of its results to order them. It follows from
    them and may be missing.
``streams``
    One row a source of clicks that is watched: where it is, as `images` writes paths; ``settings`` (JSON),
    how its clicks are fused and when to stop; ``position`` (JSON), how far it was read, written together with
    what was read; when it began, and when something came last.
``watched``
    One row a stream and image; ``object`` holds what the stream has come to on that image.
``shown``
    One row a kind of annotation of which a run was chosen to be shown. Without one, the latest is.
``settings``
    One row a setting of the study that is not at its default: ``matching_radius``, in pixels. Besides
    ``crowd_sizes`` (JSON), what was measured last of methods for clicks against the number of annotators.
``objects``, ``chunks``
    An object is a record of arrays (see `arrays`), `size` bytes in chunks of one MiB, each compressed by
    zlib, which also tells when one is damaged.
``decisions``
    The journal, append-only: triggers refuse UPDATE, DELETE and any id but the next. An undo is a row too,
    whose ``undoes`` names the decision that it takes back; a redo is the undo of an undo. ``subject`` (JSON)
    says what of the ``item`` it is about, in the form that ``kind`` names; ``voxels`` names the object with
    the voxels that it settles; ``about`` an earlier decision on the same subject; ``annotators`` (JSON list)
    who is excluded, weighed or included. Among the decisions on a whole image are the marks of control
    images.
``viewed``
    The spots of clicks that the expert looked at and left without a decision, append-only as the journal is:
    ``how`` each was in sight, selected on its image or listed in the grid, for how many ``seconds``, its
    place and ``number`` in the ``run`` on screen.

Version 1 had neither ``grids`` nor ``masks``, and in ``decisions`` the columns of a spot in place of the
subject. Version 2 knew images alone as items, one annotator a decision, and no ``questions``, ``votes`` and
``pictures``. Version 3 knew no ``streams`` and ``watched``, version 4 no ``outlines``, version 5 no
``slice_offsets``, version 6 no ``structures`` and ``keys``, version 7 no ``shown``, version 8 no
``settings``, version 9 no ``viewed``, version 10 no control images. `bring_up_to_date` changes
such files to the present version.

Rows of a run and of an import appear in one transaction, whole or not at all.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Mapping

APPLICATION_ID = 0x52536370
VERSION = 11

SCHEMA = (
    """CREATE TABLE images (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, path TEXT, width REAL NOT NULL,
        height REAL NOT NULL, size INTEGER, digest TEXT, pixel_size REAL) STRICT""",
    "CREATE TABLE annotators (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT",
    """CREATE TABLE imports (
        id INTEGER PRIMARY KEY, kind TEXT NOT NULL, file TEXT NOT NULL, at TEXT NOT NULL,
        notices TEXT NOT NULL) STRICT""",
    "CREATE TABLE objects (id INTEGER PRIMARY KEY, size INTEGER NOT NULL) STRICT",
    """CREATE TABLE chunks (
        object INTEGER NOT NULL REFERENCES objects(id) ON DELETE CASCADE, part INTEGER NOT NULL,
        data BLOB NOT NULL, UNIQUE (object, part)) STRICT""",
    """CREATE TABLE marks (
        image INTEGER NOT NULL REFERENCES images(id), import INTEGER NOT NULL REFERENCES imports(id),
        kind TEXT NOT NULL, object INTEGER NOT NULL REFERENCES objects(id), PRIMARY KEY (image, import)
        ) WITHOUT ROWID, STRICT""",
    """CREATE TABLE grids (
        image INTEGER PRIMARY KEY REFERENCES images(id), slices INTEGER NOT NULL, affine TEXT NOT NULL,
        calibrated INTEGER NOT NULL, modality TEXT NOT NULL, identifier TEXT NOT NULL,
        slice_offsets TEXT) STRICT""",
    """CREATE TABLE masks (
        image INTEGER NOT NULL REFERENCES images(id), annotator INTEGER NOT NULL,
        structure TEXT NOT NULL, import INTEGER NOT NULL REFERENCES imports(id), voxels INTEGER NOT NULL,
        object INTEGER NOT NULL REFERENCES objects(id),
        PRIMARY KEY (image, structure, annotator, import)) WITHOUT ROWID, STRICT""",
    "CREATE INDEX masks_by_object ON masks(object)",
    "CREATE TABLE structures (name TEXT PRIMARY KEY, coding TEXT NOT NULL) WITHOUT ROWID, STRICT",
    "CREATE TABLE keys (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID, STRICT",
    """CREATE TABLE runs (
        id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, algorithm TEXT NOT NULL,
        settings TEXT NOT NULL, seed INTEGER, versions TEXT NOT NULL, digest TEXT NOT NULL,
        started TEXT NOT NULL, seconds REAL NOT NULL, log TEXT NOT NULL, known INTEGER NOT NULL,
        import INTEGER NOT NULL, excluded TEXT NOT NULL) STRICT""",
    """CREATE TABLE questions (
        id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL UNIQUE,
        scheme TEXT NOT NULL) STRICT""",
    """CREATE TABLE votes (
        question INTEGER NOT NULL REFERENCES questions(id), import INTEGER NOT NULL REFERENCES imports(id),
        truth INTEGER NOT NULL, object INTEGER NOT NULL REFERENCES objects(id),
        PRIMARY KEY (question, import, truth)) WITHOUT ROWID, STRICT""",
    """CREATE TABLE pictures (
        question INTEGER NOT NULL REFERENCES questions(id), task TEXT NOT NULL,
        image INTEGER NOT NULL REFERENCES images(id), PRIMARY KEY (question, task)) WITHOUT ROWID, STRICT""",
    """CREATE TABLE results (
        item INTEGER NOT NULL, run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        object INTEGER NOT NULL REFERENCES objects(id), PRIMARY KEY (item, run)) WITHOUT ROWID, STRICT""",
    """CREATE TABLE outlines (
        run INTEGER PRIMARY KEY REFERENCES runs(id) ON DELETE CASCADE,
        object INTEGER NOT NULL REFERENCES objects(id)) STRICT""",
    """CREATE TABLE shown (
        kind TEXT PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE
        ) WITHOUT ROWID, STRICT""",
    "CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID, STRICT",
    "CREATE INDEX outlines_by_object ON outlines(object)",
    """CREATE TABLE streams (
        id INTEGER PRIMARY KEY, source TEXT NOT NULL UNIQUE, settings TEXT NOT NULL, position TEXT NOT NULL,
        started TEXT NOT NULL, seen TEXT NOT NULL) STRICT""",
    """CREATE TABLE watched (
        image INTEGER NOT NULL REFERENCES images(id),
        stream INTEGER NOT NULL REFERENCES streams(id) ON DELETE CASCADE,
        object INTEGER NOT NULL REFERENCES objects(id), PRIMARY KEY (image, stream)) WITHOUT ROWID, STRICT""",
    "CREATE INDEX watched_by_stream ON watched(stream)",
    "CREATE INDEX watched_by_object ON watched(object)",
    "CREATE INDEX results_by_run ON results(run)",
    "CREATE INDEX results_by_object ON results(object)",
    "CREATE INDEX marks_by_object ON marks(object)",
    "CREATE INDEX votes_by_object ON votes(object)",
    """CREATE TABLE decisions (
        id INTEGER PRIMARY KEY, at TEXT NOT NULL, who TEXT NOT NULL, verb TEXT NOT NULL, item INTEGER,
        kind TEXT, subject TEXT, voxels INTEGER REFERENCES objects(id), reason TEXT NOT NULL,
        annotators TEXT NOT NULL, run INTEGER, about INTEGER, undoes INTEGER) STRICT""",
    """CREATE TRIGGER decisions_stay BEFORE UPDATE ON decisions
        BEGIN SELECT RAISE(ABORT, 'decisions are never changed'); END""",
    """CREATE TRIGGER decisions_remain BEFORE DELETE ON decisions
        BEGIN SELECT RAISE(ABORT, 'decisions are never removed'); END""",
    """CREATE TRIGGER decisions_follow BEFORE INSERT ON decisions
        WHEN NEW.id IS NOT (SELECT ifnull(max(id), 0) + 1 FROM decisions)
        BEGIN SELECT RAISE(ABORT, 'decisions are only added'); END""",
    """CREATE TABLE viewed (
        id INTEGER PRIMARY KEY, at TEXT NOT NULL, who TEXT NOT NULL,
        image INTEGER NOT NULL REFERENCES images(id), run INTEGER, number INTEGER, x REAL NOT NULL,
        y REAL NOT NULL, how TEXT NOT NULL, seconds REAL NOT NULL) STRICT""",
    """CREATE TRIGGER viewed_stay BEFORE UPDATE ON viewed
        BEGIN SELECT RAISE(ABORT, 'views are never changed'); END""",
    """CREATE TRIGGER viewed_remain BEFORE DELETE ON viewed
        BEGIN SELECT RAISE(ABORT, 'views are never removed'); END""",
    """CREATE TRIGGER viewed_follow BEFORE INSERT ON viewed
        WHEN NEW.id IS NOT (SELECT ifnull(max(id), 0) + 1 FROM viewed)
        BEGIN SELECT RAISE(ABORT, 'views are only added'); END""",
)

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
    """Return the statements that made a file of a version."""
    later = tuple(f"CREATE {name}" for since, names in _SINCE.items() if since > version for name in names)
    were = {f"CREATE TABLE {name} ": sql for name, sql in _WERE.get(version, {}).items()}
    return tuple(
        next((old for start, old in were.items() if sql.startswith(start)), sql)
        for sql in SCHEMA
        if not (later and sql.startswith(later))
    )


def bring_up_to_date(connection: sqlite3.Connection, version: int, *, lasting: bool = True) -> None:
    """Migrate a checked file of an older version, completely or not at all.

    A temporary copy gets no key: its pseudonyms could not be reproduced.
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
    existing = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    for statement in SCHEMA:
        if statement.startswith("CREATE TRIGGER") == triggers and statement.split()[2] not in existing:
            connection.execute(statement)


def _triggers() -> list[tuple[str, str]]:
    names = ("decisions_stay", "decisions_remain", "decisions_follow")
    return [("TRIGGER", name) for name in names]
