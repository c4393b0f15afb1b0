"""Gathering of a cohort: the studies of all cases in one study, with one queue and one report.

Cases are copied one after the other, each completely or not at all, so that memory does not grow with the
cohort. The study appears under its name when it is complete. An interrupted gathering is continued, and a
gathered study takes cases that were done later.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from raterscope.algorithms.progress import Watch, part
from raterscope.app.batch.task import STATUS_FILE, STUDY, folder_of, read_record
from raterscope.app.errors import InputError, StudyError
from raterscope.app.formats.tables import read_table
from raterscope.app.study import Study, labels, pairs
from raterscope.app.study.case_copy import copy_case, names_in
from raterscope.app.study.merging import MergedRuns
from raterscope.app.study.opening import give_name
from raterscope.app.study.records import CohortCase

_SECONDS = 2.0
"""Time between two commits."""
_OF_TARGET = ("SQLITE_FULL", "SQLITE_READONLY", "SQLITE_IOERR")
"""Errors of writing, which end the gathering; others are of the case."""
NOT_RUN = "not run"
_UNNAMED = {("questions", labels.UNNAMED), ("questions", pairs.UNNAMED)}
"""Names of questions whose files do not name them."""


@dataclass(frozen=True)
class Gathered:
    """Outcome of a gathering."""

    cases: tuple[CohortCase, ...]  # all cases of the cohort, in the order of its table
    added: int  # cases that were copied now
    # cases that were processed again after they had been gathered; the study keeps their earlier results
    changed: tuple[str, ...]

    @property
    def failed(self) -> list[CohortCase]:
        """Cases without results in the study."""
        return [case for case in self.cases if not case.is_done]


def gather_cohort(output: Path, path: Path, watch: Watch) -> Gathered:
    """Gather the cases of a cohort in one study.

    `output`: folder that `raterscope batch` wrote. `path`: file of the study. If it exists, it must be of
    this cohort, and new cases are added. Raises `InputError` if the folder holds no cohort, no case is done,
    or the study cannot be written.
    """
    cases = list_cases(output)
    if not any(case.is_done for case in cases):
        raise InputError("no case is done yet; `raterscope batch` fuses them", file=output)
    path = path.resolve()
    with _target(path) as (study, first_run):
        return _Gathering(study, output, first_run).run(cases, watch)


def list_cases(output: Path) -> list[CohortCase]:
    """List the cases of a cohort in the order of its status table, with their present state."""
    table = output / STATUS_FILE
    if not table.is_file():
        raise InputError(f"has no {STATUS_FILE}; expected a folder of `raterscope batch -o`", file=output)
    content = read_table(table)
    columns = dict(zip(content.header, content.columns, strict=True))
    if not {"case", "kind"} <= columns.keys():
        raise InputError("expected the columns case and kind", file=table)
    cases = []
    for name, kind in zip(columns["case"], columns["kind"], strict=True):
        record = read_record(output, name)
        if record is None:
            cases.append(CohortCase(name, kind, NOT_RUN, "it was not processed yet"))
        else:
            cases.append(CohortCase(name, kind, record.status, record.reason, record.digest))
    return cases


@contextmanager
def _target(path: Path) -> Iterator[tuple[Study, int]]:
    """Open the gathered study, or a draft of it that gets its name at the end; also the first run to fill."""
    if os.path.lexists(path):
        with Study.open(path) as study:
            if not study.settings.cohort:
                raise StudyError("is not a gathered study; choose another name", file=path)
            yield study, max((run.id for run in study.runs.all()), default=0) + 1
        return
    draft = path.with_name(f".{path.stem}.gathering{path.suffix}")
    with Study.open(draft) if draft.exists() else Study.create(draft) as study:
        yield study, 1
    give_name(draft, path)
    draft.unlink(missing_ok=True)


class _Gathering:
    def __init__(self, study: Study, output: Path, first_run: int) -> None:
        self._study, self._output = study, output
        self._runs = MergedRuns(study, first_run)
        self._cases = {case.case: case for case in study.settings.cohort}
        self._taken = {(table, name.casefold()) for table, name in names_in(study)}
        self._repeated: set[tuple[str, str]] = set()

    def run(self, cases: Sequence[CohortCase], watch: Watch) -> Gathered:
        """Copy the cases that are not in the study yet."""
        new, changed = [], []
        for case in cases:
            present = self._cases.get(case.case)
            if present is None or not present.is_done:
                self._cases[case.case] = case if not case.is_done else present or case
                new += [case] if case.is_done else []
            elif case.is_done and present.digest != case.digest:
                changed.append(case.case)
        self._find_repeated(new, part(watch, 0.0, 0.1))
        self._copy(new, part(watch, 0.1, 1.0))
        order = {case.case: at for at, case in enumerate(cases)}
        listed = sorted(self._cases.values(), key=lambda case: order.get(case.case, -1))
        with self._study.change() as connection:
            self._runs.finish(connection)
            self._study.settings.cohort = tuple(listed)
        added = sum(self._cases[case.case].is_done for case in new)
        return Gathered(tuple(listed), added, tuple(changed))

    def _find_repeated(self, cases: Sequence[CohortCase], watch: Watch) -> None:
        """Find the names that several cases have; cases that cannot be read are met again later."""
        count: Counter[tuple[str, str]] = Counter()
        for done, case in enumerate(cases):
            watch(done / len(cases), "reading the names of images and questions")
            try:
                with self._open(case) as source:
                    count.update({(table, name.casefold()) for table, name in names_in(source)})
            except InputError:
                continue
        self._repeated = {key for key, number in count.items() if number > 1}

    def _copy(self, cases: Sequence[CohortCase], watch: Watch) -> None:
        for case in cases:
            self._cases[case.case] = CohortCase(case.case, case.kind, NOT_RUN, "it was not gathered yet")
        done = 0
        while done < len(cases):
            begun = time.monotonic()
            with self._study.change() as connection:
                while done < len(cases) and time.monotonic() - begun < _SECONDS:
                    watch(done / len(cases), f"gathering case {done + 1:,} of {len(cases):,}")
                    self._copy_one(cases[done], connection)
                    done += 1
                self._runs.flush(connection)
                self._study.settings.cohort = tuple(self._cases.values())

    def _copy_one(self, case: CohortCase, connection: sqlite3.Connection) -> None:
        """Copy a case; if it cannot be read, note why."""
        taken = set(self._taken)
        self._runs.begin()
        connection.execute("SAVEPOINT one_case")
        opened = False
        try:
            with self._open(case) as source:
                opened = True
                names = Counter(table for table, _ in names_in(source))

                def rename(table: str, name: str) -> str:
                    key = table, name.casefold()
                    if key in self._taken or key in self._repeated or key in _UNNAMED:
                        name = case.case if names[table] == 1 else f"{case.case}/{name}"
                    while (table, name.casefold()) in self._taken:
                        name += "'"
                    self._taken.add((table, name.casefold()))
                    return name

                copy_case(source, self._study, rename, self._runs)
            self._cases[case.case] = case
        except InputError as error:
            if opened and (getattr(error.__cause__, "sqlite_errorname", "") or "").startswith(_OF_TARGET):
                raise
            connection.execute("ROLLBACK TO one_case")
            self._runs.rollback()
            self._study.forget()
            self._taken = taken
            self._cases[case.case] = CohortCase(case.case, case.kind, "not readable", str(error))
        connection.execute("RELEASE one_case")

    def _open(self, case: CohortCase) -> Study:
        return Study.open(folder_of(self._output, case.case) / STUDY, to_read=True, lock=False)
