"""The runs of a study: settings and results, whole or not at all."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from raterscope.algorithms.clicks.results import Fusion
from raterscope.algorithms.labels.result import LabelResult
from raterscope.algorithms.masks.report import CaseResult
from raterscope.algorithms.pairs.data import PairFusion
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import plain
from raterscope.app.study.file import StudyFile
from raterscope.app.study.objects import RESULTS, read_object, remove_object, write_object
from raterscope.app.study.opening import Hold
from raterscope.app.study.outlines import Answers, Outline
from raterscope.app.study.records import RunEntry, RunRecord, StudyError
from raterscope.app.study.rows import RUN, run_of, run_row

__all__ = ["Result", "StudyRuns"]

Result = Fusion | CaseResult | LabelResult | PairFusion


class StudyRuns(StudyFile):
    """What the algorithms came to. Whether a result fits what it was made from, the whole study knows."""

    def __init__(self, path: Path, connection: sqlite3.Connection, hold: Hold | None) -> None:
        super().__init__(path, connection, hold)
        self._runs: dict[int, RunEntry] = {}  # no run ever changes

    def misfit(self, run: RunEntry, item: int, result: object) -> str | None:
        """Say why a result cannot be one of an item as it was when the run began; None where it can."""
        raise NotImplementedError

    def name_of(self, kind: str, item: int) -> str:
        """Give the name of an item."""
        raise NotImplementedError

    def last_import(self) -> int:
        """Give the number of the last import, for a run that starts now; 0 before the first."""
        with self.sound():
            return int(self._connection.execute("SELECT ifnull(max(id), 0) FROM imports").fetchone()[0])

    def add_run(self, record: RunRecord, results: Mapping[int, Result], watch: Watch = silent) -> int:
        """Store a run with all its results by item, whole or not at all; it is shown from now on.

        Returns
        -------
        int
            The run's number.

        Raises
        ------
        StudyError
            When a result is not one of the annotations that the record says it was made from.
        """
        imported = self.last_import() if record.imported is None else record.imported
        entry = _as_entry(record, imported)
        for step, (item, result) in enumerate(results.items()):
            watch(0.5 * step / len(results), "checking the results")
            wrong = self.misfit(entry, item, result)
            if wrong is not None:
                name = plain(self.name_of(entry.kind, item))
                raise StudyError(f"the result for {name} does not fit its {entry.kind} ({wrong}); fuse again")
        with self.change():
            (number,) = self._connection.execute(
                f"INSERT INTO runs({', '.join(RUN)}) VALUES ({', '.join('?' * len(RUN))}) RETURNING id",
                run_row(record, imported),
            ).fetchone()
            self._connection.execute("DELETE FROM shown WHERE kind = ?", (entry.kind,))
            for step, (item, result) in enumerate(results.items()):
                watch(0.5 + 0.5 * step / len(results), "storing the results")
                self._connection.execute(
                    "INSERT INTO results(item, run, object) VALUES (?, ?, ?)",
                    (item, number, write_object(self._connection, result)),
                )
            fusions = {item: result for item, result in results.items() if isinstance(result, Fusion)}
            if fusions:
                outline = write_object(self._connection, Outline.of(fusions))
                self._connection.execute("INSERT INTO outlines VALUES (?, ?)", (number, outline))
        return int(number)

    def runs(self) -> list[RunEntry]:
        """List the runs, oldest first."""
        with self.sound():
            items: dict[int, list[int]] = {}
            for run, item in self._connection.execute("SELECT run, item FROM results ORDER BY run, item"):
                items.setdefault(run, []).append(item)
            rows = self._connection.execute(f"SELECT id, {', '.join(RUN)} FROM runs ORDER BY id").fetchall()
            return [run_of(row, tuple(items.get(row[0], ())), self.path) for row in rows]

    def run(self, run_id: int) -> RunEntry:
        """Give one run."""
        if run_id in self._runs:
            return self._runs[run_id]
        with self.sound():
            row = self._connection.execute(
                f"SELECT id, {', '.join(RUN)} FROM runs WHERE id = ?", (run_id,)
            ).fetchone()
            if row is None:
                raise StudyError(f"has no run number {run_id}", file=self.path)
            items = self._connection.execute(
                "SELECT item FROM results WHERE run = ? ORDER BY item", (run_id,)
            )
            self._runs[run_id] = run_of(row, tuple(item for (item,) in items), self.path)
        return self._runs[run_id]

    def result(self, run_id: int, item: int) -> Any:
        """Give what a run says of an item, of the run's kind in `RESULTS`; None where it says nothing."""
        with self.sound():
            row = self._connection.execute(
                "SELECT object FROM results WHERE item = ? AND run = ?", (item, run_id)
            ).fetchone()
            if row is None:
                return None
            entry = self.run(run_id)
            if entry.kind not in RESULTS:
                raise StudyError(f"holds a run of an unknown kind, {plain(entry.kind)}", file=self.path)
            result = read_object(self._connection, row[0], RESULTS[entry.kind], self.path)
            try:
                wrong = self.misfit(entry, item, result)
            except (TypeError, ValueError, IndexError, OverflowError) as error:  # as of no axis
                wrong = f"its arrays do not belong together ({error})"
            if wrong is not None:
                raise StudyError(f"is damaged: in run {run_id}, {wrong}", file=self.path)
            return result

    def answers_of(self, runs: Mapping[int, int]) -> dict[int, Answers | None]:
        """Give what runs of clicks say of images, by image; None where a run keeps no outline.

        Parameters
        ----------
        runs : mapping of image to run
        """
        with self.sound():
            kept = dict(self._connection.execute("SELECT run, object FROM outlines"))
            of_runs: dict[int, dict[int, Answers]] = {}
            for run in {run for run in runs.values() if run in kept}:
                outline = read_object(self._connection, kept[run], Outline, self.path)
                try:
                    of_runs[run] = outline.answers()
                except ValueError as error:
                    raise StudyError(f"is damaged ({error}); open a backup of it", file=self.path) from error
        return {item: of_runs[run].get(item) if run in of_runs else None for item, run in runs.items()}

    def delete_run(self, run_id: int) -> None:
        """Remove a run with its results. Decisions that were made on it stay."""
        self._runs.pop(run_id, None)
        with self.change():
            objects = []
            self._connection.execute("DELETE FROM shown WHERE run = ?", (run_id,))
            for table in ("results", "outlines"):
                of_run = self._connection.execute(f"SELECT object FROM {table} WHERE run = ?", (run_id,))
                objects += of_run.fetchall()
                self._connection.execute(f"DELETE FROM {table} WHERE run = ?", (run_id,))
            for (number,) in objects:
                remove_object(self._connection, number)
            self._connection.execute("DELETE FROM runs WHERE id = ?", (run_id,))


def _as_entry(record: RunRecord, imported: int) -> RunEntry:
    values = {name: getattr(record, name) for name in RunRecord.__dataclass_fields__}
    return RunEntry(**{**values, "imported": imported}, id=0)
