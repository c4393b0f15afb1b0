"""Runs that hold the results of many cases: those of one kind, algorithm, settings and version."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from raterscope.app.study.arrays import write_object
from raterscope.app.study.records import RunEntry
from raterscope.app.study.rows import RUN, run_row
from raterscope.app.study.runs import Answers, Outline
from raterscope.app.study.study import Study

CASES = "cases"
"""Number of the cases of a run, in its log."""


@dataclass
class _Run:
    """A run that grows: its entry so far, and the answers of its images of clicks."""

    entry: RunEntry
    changed: bool = True
    grows: bool = True
    answers: dict[int, Answers] = field(default_factory=dict)


class MergedRuns:
    """Runs of a study that receive the results of cases.

    Cases share a run if they have the same kind, algorithm, settings, seed and versions. A run that depends
    on decisions, or on a part of the annotations only, stays a run of its own.

    `first`: number of the first run that may receive results; earlier runs are complete.
    """

    def __init__(self, study: Study, first: int = 1) -> None:
        self._study = study
        self._runs: dict[str, _Run] = {}
        self._case: dict[str, _Run | None] = {}
        """Runs that the present case changed, as they were before."""
        self._images: list[int] = []
        """Images of clicks of the present case."""
        for entry in study.runs.all():
            if entry.id >= first and entry.log.get(CASES):
                grows = not (entry.known or entry.excluded)
                self._runs[_key(entry) if grows else str(entry.id)] = _Run(entry, False, grows)

    def begin(self) -> None:
        """Begin a case; see `rollback`."""
        self._case, self._images = {}, []

    def rollback(self) -> None:
        """Forget what the present case added."""
        for key, before in self._case.items():
            if before is None:
                del self._runs[key]
            else:
                self._runs[key] = before
                for image in self._images:
                    before.answers.pop(image, None)

    def add(self, entry: RunEntry, *, complete: bool, imported: int, answers: Mapping[int, Answers]) -> int:
        """Add the run of a case, within the present change, and return the number of the merged run.

        `complete`: whether the run used all annotations of the case. `imported`: the last import of the case
        that the run used, as the study numbers it. `answers`: by image.
        """
        grows = complete and not (
            entry.known
            or entry.excluded
            or entry.weights
            or entry.aliases
            or entry.programs
            or {"last_view", "others"} & entry.log.keys()
        )
        key = _key(entry) if grows else f"{entry.digest} {len(self._runs)}"
        before = self._runs.get(key)
        log = entry.log | ({} if key in self._case else {CASES: 1})
        self._case.setdefault(key, before)
        self._images += answers
        if before is None:
            merged = replace(entry, id=0, items=(), imported=imported, log=log)
            with self._study.change() as connection:
                (number,) = connection.execute(
                    f"INSERT INTO runs({', '.join(RUN)}) VALUES ({', '.join('?' * len(RUN))}) RETURNING id",
                    run_row(replace(merged, log={CASES: 1})),
                ).fetchone()
            merged = replace(merged, id=number)
            self._runs[key] = _Run(merged, grows=grows, answers=dict(answers))
            return int(number)
        earlier = before.entry
        merged = replace(
            earlier,
            started=min(earlier.started, entry.started),
            seconds=earlier.seconds + entry.seconds,
            digest=_joined(earlier.digest, entry.digest),
            imported=imported,
            log=_merged(earlier.log, log),
        )
        before.answers.update(answers)
        self._runs[key] = _Run(merged, grows=grows, answers=before.answers)
        return merged.id

    def set_known(self, last: int) -> None:
        """Set the last decision that the runs of the present case used, if they used any."""
        for key in self._case:
            run = self._runs[key]
            if run.entry.known:
                run.entry = replace(run.entry, known=last)

    def flush(self, connection: sqlite3.Connection) -> None:
        """Store the runs that changed, within the present change."""
        for run in self._runs.values():
            if run.changed:
                values = dict(zip(RUN, run_row(run.entry), strict=True))
                connection.execute(
                    f"UPDATE runs SET {', '.join(f'{name} = ?' for name in values)} WHERE id = ?",
                    (*values.values(), run.entry.id),
                )
                run.changed = False

    def finish(self, connection: sqlite3.Connection) -> None:
        """Store runs and the outlines of clicks, within the present change."""
        self.flush(connection)
        study = self._study
        for run in self._runs.values():
            if run.entry.kind != "clicks":
                continue
            number, answers = run.entry.id, {}
            for (image,) in connection.execute(
                "SELECT item FROM results WHERE run = ? ORDER BY item", (number,)
            ).fetchall():
                answers[image] = run.answers.get(image) or Answers.of(study.runs.result(number, image))
            connection.execute("DELETE FROM outlines WHERE run = ?", (number,))
            outline = write_object(connection, Outline.of_answers(answers))
            connection.execute("INSERT INTO outlines VALUES (?, ?)", (number, outline))


def _key(run: RunEntry) -> str:
    plan = (run.kind, run.algorithm, run.settings, run.seed, run.versions, run.log.get("truth_held"))
    return json.dumps(plan, sort_keys=True)


def _joined(digest: str, other: str) -> str:
    return f"sha256:{hashlib.sha256(f'{digest} {other}'.encode()).hexdigest()}"


def _merged(log: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Merge two logs: lists are appended, counts added, and other values kept."""
    merged = dict(log)
    for name, value in other.items():
        present = merged.get(name)
        if isinstance(present, list) and isinstance(value, list):
            merged[name] = [*present, *value]
        elif isinstance(present, dict) and isinstance(value, dict):
            merged[name] = _merged(present, value)
        elif type(present) is int and type(value) is int:
            merged[name] = present + value
        elif present is None:
            merged[name] = value
    return merged
