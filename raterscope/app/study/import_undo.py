"""Undo of the last import: what it added is removed, as long as nothing was built on it.

The settings record the state before the last import, and by which import each table came, known by its name,
size and time of change.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import StudyError, plain
from raterscope.app.formats.volumes import walk_files
from raterscope.app.review import Decision
from raterscope.app.study.imports import number_import
from raterscope.app.study.labels import link_pictures
from raterscope.app.study.records import ImportedFile, LastImport, RunEntry
from raterscope.app.study.study import Study
from raterscope.text import counted


@dataclass(frozen=True)
class BeforeImport:
    """State of a study before an import."""

    imports: int  # number of the last import
    images: int  # number of the last image
    annotators: int  # how many there are
    decisions: int  # number of the last decision
    schemes: Mapping[int, str]  # by question
    structures: frozenset[str]


def state_before(study: Study) -> BeforeImport:
    """Return the state of a study before an import."""
    with study.reading() as connection:
        (images,) = connection.execute("SELECT ifnull(max(id), 0) FROM images").fetchone()
        (annotators,) = connection.execute("SELECT count(*) FROM annotators").fetchone()
        schemes = dict(connection.execute("SELECT id, scheme FROM questions"))
        structures = frozenset(name for (name,) in connection.execute("SELECT name FROM structures"))
    return BeforeImport(
        study.last_import(), images, annotators, study.last_decision(), schemes, structures
    )  # fmt: skip


def record_import(study: Study, before: BeforeImport, files: Sequence[Path], tables: Sequence[Path]) -> None:
    """Record what the last import added, within its transaction.

    `files`: all imported files. `tables`: those that would count twice if they were imported again.
    """
    now = state_before(study)
    with study.reading() as connection:
        (run,) = connection.execute("SELECT ifnull(max(id), 0) FROM runs").fetchone()
    names = tuple(dict.fromkeys(plain(path.name, 200) for path in files))
    if not names:
        study.settings.last_import = None
        return
    study.settings.last_import = LastImport(
        files=names,
        imports=(before.imports, now.imports),
        images=before.images,
        annotators=before.annotators,
        decisions=(before.decisions, now.decisions),
        run=run,
        questions=tuple(before.schemes),
        schemes={
            question: (scheme, now.schemes[question])
            for question, scheme in before.schemes.items()
            if scheme != now.schemes[question]
        },
        structures=tuple(sorted(now.structures - before.structures)),
    )
    known = {_identity(path): ImportedFile(now.imports) for path in dict.fromkeys(tables) if path.is_file()}
    if known:
        study.settings.imported_files = {**known, **study.settings.imported_files}


def _identity(path: Path) -> str:
    """Return name, size and time of change of a file, by which it is known without being read again."""
    status = path.stat()
    return f"{path.name}:{status.st_size}:{status.st_mtime_ns}"


def import_dates(study: Study) -> dict[str, str]:
    """Return the dates of imported tables, by name, size and time of change."""
    files = study.settings.imported_files
    if not files:
        return {}
    with study.reading() as connection:
        dates = dict(connection.execute("SELECT id, substr(at, 1, 10) FROM imports"))
    return {identity: dates[file.number] for identity, file in files.items() if file.number in dates}


def repeated_files(known: Mapping[str, str], paths: Sequence[Path]) -> dict[Path, str]:
    """Return the files that are in the study already, of folders too, with the date of each import.

    `known`: see `import_dates`.
    """
    names = {identity.rsplit(":", 2)[0] for identity in known}
    files = (file for path in paths for file in (walk_files(path) if path.is_dir() else [path]))
    present = (file for file in files if file.name in names and file.is_file())
    return {path: known[identity] for path in present if (identity := _identity(path)) in known}


def undoable_import(study: Study, runs: Sequence[RunEntry] = ()) -> LastImport | None:
    """Return the last import if it can be undone, now or once later decisions are; otherwise None.

    `runs`: the study's runs; an import before any of them cannot be undone.
    """
    last = study.settings.last_import
    if last is None or last.imports[1] != study.last_import() or any(run.id > last.run for run in runs):
        return None
    return last


def undo_import(study: Study, _watch: Watch = silent) -> str:
    """Remove what the last import added, and describe it in a sentence.

    Raises `StudyError` if there is no import to undo, or if decisions or runs were made since.
    """
    last = undoable_import(study)
    if last is None:
        raise StudyError("has no import that can be undone: only the last one can", file=study.path)
    _refuse_later(study, last)
    state = study.review_state()
    with study.change() as connection:
        for decision in study.decisions():
            if last.decisions[0] < decision.id <= last.decisions[1] and state.stands(decision.id):
                study.record(Decision(verb="undo", undoes=decision.id, reason="the import was undone"))
        _remove(connection, last)
        if last.imports[0] < last.imports[1]:
            # Numbers of imports are never used again, because runs refer to them.
            number_import(connection, "undone", ", ".join(last.files), ())
        files = study.settings.imported_files.items()
        study.settings.imported_files = {key: file for key, file in files if file.number <= last.imports[0]}
        study.settings.last_import = None
        study.forget()
        if study.questions() or study.pair_questions():
            link_pictures(study)
    return f"The {last.in_words()} was undone."


def _refuse_later(study: Study, last: LastImport) -> None:
    """Raise `StudyError` for decisions or runs since the import."""
    state = study.review_state()
    later = sum(
        decision.id > last.decisions[1] and decision.verb != "undo" and state.stands(decision.id)
        for decision in study.decisions()
    )
    what = f"the {last.in_words()} cannot be undone"
    if later:
        raise StudyError(
            f"{what}, because {counted(later, 'decision')} followed; undo {'it' if later == 1 else 'them'} "
            "first",
            file=study.path,
        )
    runs = [run.id for run in study.runs.all() if run.id > last.run]
    if runs:
        listed = ", ".join(map(str, runs))
        raise StudyError(
            f"{what}, because {'run' if len(runs) == 1 else 'runs'} {listed} followed; delete "
            f"{'it' if len(runs) == 1 else 'them'} in the window first",
            file=study.path,
        )


def _remove(connection: sqlite3.Connection, last: LastImport) -> None:
    for table in ("marks", "masks", "votes"):
        objects = connection.execute(
            f"DELETE FROM {table} WHERE import > ? RETURNING object", last.imports[:1]
        ).fetchall()
        connection.executemany("DELETE FROM objects WHERE id = ?", objects)
    connection.execute("DELETE FROM annotators WHERE id >= ?", (last.annotators,))
    connection.executemany(
        "UPDATE questions SET scheme = ? WHERE id = ? AND scheme = ?",
        [(before, question, after) for question, (before, after) in last.schemes.items()],
    )
    connection.executemany("DELETE FROM structures WHERE name = ?", [(name,) for name in last.structures])
    new = [
        question
        for (question,) in connection.execute("SELECT id FROM questions").fetchall()
        if question not in last.questions
    ]
    for question in new:
        for table in ("pictures", "contents"):
            connection.execute(f"DELETE FROM {table} WHERE question = ?", (question,))
        connection.execute("DELETE FROM questions WHERE id = ?", (question,))
    connection.execute("DELETE FROM pictures WHERE image > ?", (last.images,))
    in_use = "SELECT item FROM decisions WHERE item IS NOT NULL AND id > :last"
    for table in ("marks", "masks", "watched", "viewed"):
        in_use += f" UNION SELECT image FROM {table}"
    for table, column in (("grids", "image"), ("images", "id")):
        connection.execute(
            f"DELETE FROM {table} WHERE {column} > :images AND {column} NOT IN ({in_use})",
            {"images": last.images, "last": last.decisions[1]},
        )
