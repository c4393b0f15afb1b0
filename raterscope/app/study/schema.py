"""The study file: one SQLite database, the contents of its tables, and the migration of older versions.

The header carries ``application_id`` 0x52536370 ("RScp") and ``user_version``, the version of this schema.
The file is in WAL mode while it is open, and a single plain file when it is closed.

``images``
    A row per image: unique name, file, width and height in pixels, pixel_size in micrometres if known. The
    path is relative, with forward slashes, if the file lies beside or below the study, otherwise absolute;
    NULL while only the size is known. The size of the file in bytes and its digest (`references`) identify
    it. The pixels stay in the file.
``annotators``
    A row per annotator. ``id`` counts from 0 in the order of first appearance. It never changes, because the
    annotator's colour depends on it.
``imports``
    A row per imported file, in the order of import: kind (clicks, truth, scores), name of the file, time, and
    the notices shown (JSON list of sentences). Imports are only ever added; an undone one has no annotations,
    and is followed by a row of the kind "undone".
``grids``
    A row per image with a geometry, mostly volumes: slices, affine (JSON, see `Grid.affine`; its rows and
    columns are the height and width), calibrated, modality, UID of the series. ``slice_offsets`` (JSON, see
    `Grid.slice_offsets`) is NULL for evenly spaced slices. The path of a DICOM series is its folder, without
    a size; its digest is that of the files in the order of the slices.
``questions``
    A row per question to annotators: ``kind``, labels or pairs; unique name; ``scheme`` (JSON). The scheme of
    labels has the outputs and classes in the curator's order, the class of each output, and the prior. Pairs
    have no scheme.
``votes``
    A row per import and question; ``object`` holds the votes (truth 0), the true classes (truth 1), the
    comparisons (truth 0) or the true ranking (truth 1) of that import, with the names of its tasks or items.
    Votes of a program may have the probability of each output.
``pictures``
    A row per task or item with an image of the study.
``contents``
    A row per task and field of its content as shown to annotators: a text, or the address of a sound, film or
    page. Question 0 represents all questions: a task of one name is the same in each, except in a gathered
    cohort.
``masks``
    A row per mask: image, structure, annotator, import. ``object`` holds the origin and the voxels; their
    number is `voxels`. The last import of a mask counts. Truth has annotator -1.
``structures``
    A row per structure that the files of masks describe beyond its name. ``coding`` (JSON, see
    `coding.Coding`): coded category and type, colour, and role in exports. Changes by the expert are in
    ``decisions``.
``keys``
    A row "export": 32 random bytes, the secret from which de-identified exports make identifiers. With it, an
    original identifier leads to the new one; no export contains it.
``marks``
    A row per import and image. ``object`` holds the marks of that import on that image: of clicks the
    annotators, x, y, time, class and views; of truth x and y; of scores of a program also the score.
``runs``
    A row per run of an algorithm: kind, algorithm, settings (JSON), seed, versions (JSON), digest of the
    input, start, duration in seconds, log (JSON). ``known`` is the last decision and ``import`` the last
    import that the run used, ``excluded`` (JSON list) its excluded annotators. The log of clicks has the
    ``weights`` of down-weighted annotators; any log has the ``aliases`` by which names were joined, and the
    ``programs`` among the annotators.
``results``
    A row per run and item, which is an image or a question; ``object`` holds the result.
``outlines``
    A row per run of clicks; ``object`` holds a summary by which the queue sorts the images. It is derived
    from the results and may be missing.
``streams``
    A row per watched source of clicks: path, as in `images`; ``settings`` (JSON) of fusion and stop rule;
    ``position`` (JSON), how far it was read, stored together with the clicks; start, and last arrival.
``watched``
    A row per stream and image; ``object`` holds the state of the stream on that image.
``shown``
    A row per kind of annotation for which a run was selected. By default the latest run is shown.
``settings``
    A row per setting of the study that differs from its default: ``matching_radius``, in pixels. Also
    ``displays`` (JSON), by name of a channel the values, gamma and colour with which it is shown;
    ``groups`` (JSON), the group of each image, such as a patient, before version 22;
    ``image_quality`` (JSON), the measured focus and saturation of images;
    ``crowd_sizes`` (JSON), the last measurement of methods for clicks against the number of annotators, and
    ``cohort`` (JSON), the cases of a gathered cohort with the reasons of those that failed, and
    ``reader_study`` (JSON), the reads of a collected reader study with their times;
    ``last_import`` (JSON), what the last import added, and ``imported_files`` (JSON),
    the import of each table by its name, size and time of change.
``objects``, ``chunks``
    An object is a record of arrays (see `arrays`), `size` bytes in chunks of one MiB. Each chunk is
    compressed by zlib, whose checksum reveals damage.
``decisions``
    The journal, append-only: triggers refuse UPDATE, DELETE and any id but the next. An undo is a row whose
    ``undoes`` names the undone decision; a redo is the undo of an undo. ``subject`` (JSON) is the subject on
    the ``item``, in the form of its ``kind``; ``voxels`` names the object with the settled voxels; ``about``
    is an earlier decision on the same subject; ``annotators`` (JSON list) are excluded, weighted, included,
    joined or separated annotators, and annotators marked as program or person. Marks of control images are
    decisions on a whole image. The subject of the verb group lists the images of each group.
``viewed``
    The spots of clicks that the expert viewed and left without a decision, append-only too. ``how``: selected
    on the image or listed in the grid, with the ``seconds``, the position, and the ``number`` in the ``run``
    on screen.

`bring_up_to_date` migrates older versions. Version 1 had no ``grids`` and ``masks``, and ``decisions`` had
the columns of a spot instead of the subject. Version 2 had only images as items, one annotator per decision,
and no ``questions``, ``votes`` and ``pictures``. Later versions added ``streams`` and ``watched`` (4),
``outlines`` (5), ``slice_offsets`` (6), ``structures`` and ``keys`` (7), ``shown`` (8), ``settings`` (9),
``viewed`` (10), control images (11), the verb reopen (12), the verbs join and separate (13),
``contents`` (14), classes of clicks in marks, results and decisions (15), the verbs sample, close, mark and
unmark (16), gold and ungold (17), tasks of pairs and intervals of ranks in objects (18), comments in the
journal (19), the verbs program and person with class probabilities in votes (20), new names of structures
and classes in the journal (21), groups of images and registrations in the journal (22), and bookmarks in
the journal (23).

Rows of a run and of an import appear in one transaction, whole or not at all.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Mapping

APPLICATION_ID = 0x52536370
VERSION = 23

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
    """CREATE TABLE contents (
        question INTEGER NOT NULL, task TEXT NOT NULL, field TEXT NOT NULL, position INTEGER NOT NULL,
        value TEXT NOT NULL, PRIMARY KEY (task, question, field)) WITHOUT ROWID, STRICT""",
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
    14: ("TABLE contents",),
}
"""Tables and triggers that a version added."""

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
"""Tables of earlier versions that have changed since."""

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
    """Return the statements that create a file of a version."""
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
    """Store a new random key for de-identified exports, within the current transaction."""
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
