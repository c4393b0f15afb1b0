"""Copies of a study for a second reader, blind if asked.

A blind copy contains no decision of the first reader and nothing that follows from one: no viewed spots, no
runs that held decisions fixed, no comparisons of methods with decisions, and no state of a stream. What is
not in the file cannot be seen in the window, in exports, in reports or by SQL. `merging.merge_studies`
reveals both reads.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import counted
from raterscope.app.study.new_study import save_elsewhere
from raterscope.app.study.records import SecondRead, user_name
from raterscope.app.study.study import Study

_GUARDS = ("decisions_stay", "decisions_remain", "decisions_follow",
           "viewed_stay", "viewed_remain", "viewed_follow")  # fmt: skip
_MEASURED = ("crowd_sizes", "compared_methods", "reads", "second_read")
"""Settings that hold what was measured with decisions, or tell of them; besides those of `_FOLDS`."""

_FOLDS = "label_folds%"
_KEPT = """SELECT object FROM marks UNION SELECT object FROM masks UNION SELECT object FROM votes
    UNION SELECT object FROM results UNION SELECT object FROM outlines"""


@dataclass(frozen=True)
class CopiedStudy:
    """What a copy for a second reader lacks.

    Attributes
    ----------
    decisions : int
        Decisions that were left out.
    runs : int
        Runs that were left out because they used decisions.
    kept_runs : int
        Other runs.
    """

    blind: bool
    decisions: int
    runs: int
    kept_runs: int

    def in_words(self) -> str:
        """Describe it in a line."""
        if not self.blind:
            return "a copy with all decisions"
        if not self.decisions and not self.runs:
            return "a blind copy; there was no decision to leave out"
        words = f"a blind copy without {counted(self.decisions, 'decision')}"
        if self.runs:
            words += f" and without {counted(self.runs, 'run')} that used decisions"
        return words if self.kept_runs or not self.runs else f"{words}; press Fuse (F5) in the copy"


def copy_for_reader(study: Study, target: Path, *, blind: bool, watch: Watch = silent) -> CopiedStudy:
    """Copy a study for a second reader, completely or not at all.

    Raises `StudyError` if there is a file of that name, the folder cannot be written, or the study not read.

    Parameters
    ----------
    target : Path
        Of a file that does not exist yet.
    blind : bool
        Whether the copy leaves out all decisions and what follows from them.
    """
    decisions, runs = study.decisions(), study.runs.all()
    if not blind:
        save_elsewhere(study, target, watch=watch)
        return CopiedStudy(False, len(decisions), 0, len(runs))
    read = SecondRead(user_name(), datetime.now(UTC), study.path.name)

    def mark(copy: Study, _watch: Watch) -> None:
        copy.settings.set_second_read(read)

    save_elsewhere(study, target, [mark], watch, prepare=_remove_decisions)
    used = sum(run.known > 0 for run in runs)
    return CopiedStudy(True, len(decisions), used, len(runs) - used)


def _remove_decisions(copy: sqlite3.Connection) -> None:
    """Remove the decisions from a copy that nobody has opened yet, and all that follows from them."""
    guards = dict(
        copy.execute(
            f"SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND name IN ({_marks(_GUARDS)})",
            _GUARDS,
        )
    )
    for name in guards:
        copy.execute(f"DROP TRIGGER {name}")
    for table in ("results", "outlines", "shown"):
        copy.execute(f"DELETE FROM {table} WHERE run IN (SELECT id FROM runs WHERE known > 0)")
    copy.execute("DELETE FROM runs WHERE known > 0")
    for table in ("decisions", "viewed", "watched", "streams"):
        copy.execute(f"DELETE FROM {table}")
    copy.execute(
        f"DELETE FROM settings WHERE name IN ({_marks(_MEASURED)}) OR name LIKE ?", (*_MEASURED, _FOLDS)
    )
    copy.execute(f"DELETE FROM chunks WHERE object NOT IN ({_KEPT})")
    copy.execute(f"DELETE FROM objects WHERE id NOT IN ({_KEPT})")
    for statement in guards.values():
        copy.execute(statement)


def _marks(values: tuple[str, ...]) -> str:
    return ", ".join("?" * len(values))
