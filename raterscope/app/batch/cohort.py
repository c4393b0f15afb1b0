"""Cohorts: scheduling of cases over processes or a dask cluster, and gathering of their studies in one.

All executors call the same function, `task.run_group`: their results differ only in times.

Cases are copied one after the other, each completely or not at all; memory does not grow with the cohort. The
study appears under its name when it is complete. An interrupted gathering is continued, and later cases can
be added to a gathered study.
"""

from __future__ import annotations

import math
import os
import sqlite3
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from raterscope.algorithms.progress import Watch, part
from raterscope.app.batch.executors import CaseExecutor, LostError, MakeExecutor, WorkerDiedError
from raterscope.app.batch.manifest import Case
from raterscope.app.batch.task import (
    STATUS_FILE,
    STUDY,
    CaseRecord,
    GroupRecord,
    folder_of,
    keep_failure,
    read_record,
    run_group,
    write_status,
)
from raterscope.app.errors import InputError, StudyError
from raterscope.app.formats.table_files import read_table
from raterscope.app.study import Study, labels, pairs
from raterscope.app.study.case_copy import copy_case, names_in
from raterscope.app.study.merging import MergedRuns
from raterscope.app.study.opening import give_name
from raterscope.app.study.records import CohortCase
from raterscope.text import time_left

POLL = 0.2
STATUS_SECONDS = 30.0
STATUS_SHARE = 0.02
"""Maximum share of the time for writing the table of all cases, which grows with the cohort."""
RETRIES = 2
RECONNECTIONS = 20
"""Maximum number of lost connections to a scheduler without a finished case between them."""


def to_do(cases: Sequence[Case], output: Path, *, only_failed: bool) -> list[Case]:
    """List the cases to process: all, or those whose last attempt failed.

    Cases that are done return at once, after their input's digest was compared.
    """
    if not only_failed:
        return list(cases)
    records = {case.name: read_record(output, case.name) for case in cases}
    return [case for case in cases if (record := records[case.name]) is not None and record.status != "done"]


def shard(cases: Sequence[Case], index: int, count: int) -> list[Case]:
    """Return every `count`-th case from the `index`-th (from 1), so that shards cover all cases once."""
    return list(cases[index - 1 :: count])


def run_cases(
    cases: Sequence[Case],
    output: Path,
    make_executor: MakeExecutor,
    watch: Watch,
    *,
    retries: int = RETRIES,
    all_cases: Sequence[Case] | None = None,
) -> dict[str, CaseRecord]:
    """Process cases and keep the status table up to date.

    A case whose worker died, or that had a temporary fault, is tried again. Cases whose connection to the
    scheduler broke are submitted again, and those of a group whose worker died are submitted one by one; that
    counts as no attempt.

    `make_executor`: makes an executor; called again if the connection to its workers breaks.
    `watch`: its exceptions end the work.
    `retries`: further attempts after a temporary fault.
    `all_cases`: rows of the status table, if a shard is processed.
    Raises `LostError` if the scheduler does not come back.
    """
    listed = cases if all_cases is None else all_cases
    records: dict[str, CaseRecord] = {}
    queue = CaseQueue(cases)
    progress = _Progress(watch, len(cases))
    losses, next_status = 0, time.monotonic() + STATUS_SECONDS
    while queue:
        with _shut_down(make_executor()) as executor:
            connected = True
            at_work: dict[Future[GroupRecord], list[Attempt]] = {}
            while at_work or (queue and connected):
                try:
                    slots = executor.slots
                except LostError:
                    connected = False
                while connected and queue and len(at_work) < slots:
                    group = queue.take(slots, executor.task_seconds)
                    tasks = tuple((entry.case, entry.number) for entry in group)
                    at_work[executor.submit(run_group, tasks, output)] = group
                done, _ = wait(at_work, timeout=POLL, return_when=FIRST_COMPLETED)
                for future in done:
                    group = at_work.pop(future)
                    try:
                        finished = _answer(future, group, output)
                    except LostError:
                        connected = False
                        queue.put_back(group)
                        continue
                    if finished is None:
                        queue.put_back(group, alone=True)
                        continue
                    queue.update_seconds(finished)
                    for entry, record in zip(group, finished.records, strict=True):
                        if record.status == "temporary fault" and entry.number <= retries:
                            queue.put_back([replace(entry, number=entry.number + 1)], alone=entry.alone)
                        else:
                            records[record.case] = record
                            progress.count(record)
                            losses = 0
                progress.report()
                if all_cases is None and time.monotonic() > next_status:
                    begun = time.monotonic()
                    write_status(output, listed, records)
                    ended = time.monotonic()
                    next_status = ended + max(STATUS_SECONDS, (ended - begun) / STATUS_SHARE)
        losses += not connected
        if losses > RECONNECTIONS:
            raise LostError("the connection to the scheduler breaks again and again")
    write_status(output, listed, records)
    return records


def _answer(future: Future[GroupRecord], group: Sequence[Attempt], output: Path) -> GroupRecord | None:
    """Return a task's records; None if its worker died of one of several cases.

    Raises `LostError` if nothing is known of the task.
    """
    try:
        return future.result()
    except CancelledError:
        raise LostError from None
    except LostError:
        raise
    except WorkerDiedError:
        reason = "its process was killed, perhaps because memory ran out"
    except Exception as error:  # of the cluster: the task itself does not raise
        reason = f"{type(error).__name__}: {error}"
    if len(group) > 1:
        return None
    case, number = group[0].case, group[0].number
    return GroupRecord((keep_failure(case, output, number, reason),), 0.0)


class _Progress:
    def __init__(self, watch: Watch, cases: int) -> None:
        self._watch, self._cases = watch, cases
        self._done = self._failed = 0
        self._begun = time.monotonic()

    def count(self, record: CaseRecord) -> None:
        """Count a case that is not tried again."""
        self._done += 1
        self._failed += record.status != "done"

    def report(self) -> None:
        """Report the number of finished cases and the time left."""
        done, cases = self._done, self._cases
        text = f"{done:,} of {cases:,} cases" + (f", {self._failed:,} failed" if self._failed else "")
        elapsed = time.monotonic() - self._begun
        remaining = time_left(elapsed * (cases - done) / done) if done and done < cases else ""
        self._watch(done / cases if cases else 1.0, f"{text}, {remaining}" if remaining else text)


@contextmanager
def _shut_down(executor: CaseExecutor) -> Iterator[CaseExecutor]:
    try:
        yield executor
    finally:
        executor.shutdown()


_NEWEST = 0.3
"""Weight of the newest group in the moving average of seconds per case."""


@dataclass(frozen=True)
class Attempt:
    """A case to process."""

    case: Case
    number: int = 1  # from 1
    alone: bool = False  # runs alone, because it may kill its worker


class CaseQueue:
    """Cases that wait, first in, first out."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self._waiting = deque(Attempt(case) for case in cases)
        self._seconds: float | None = None

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def take(self, slots: int, seconds: float) -> list[Attempt]:
        """Take the next group. Groups shrink towards the end, so that no worker waits long for another.

        `slots`: number of groups processed at a time. `seconds`: duration of a group, by the time of earlier
        cases; 0 for a single case.
        """
        group = [self._waiting.popleft()]
        size = 1
        if self._seconds is not None and seconds > 0:
            share = math.ceil(len(self._waiting) / (2 * slots))
            size = min(share, int(seconds / max(self._seconds, 1e-6)))
        while len(group) < size and self._waiting and not (group[0].alone or self._waiting[0].alone):
            group.append(self._waiting.popleft())
        return group

    def put_back(self, group: Iterable[Attempt], *, alone: bool = False) -> None:
        """Return cases to the end of the queue."""
        self._waiting.extend(replace(entry, alone=entry.alone or alone) for entry in group)

    def update_seconds(self, group: GroupRecord) -> None:
        """Update the mean seconds of a case."""
        newest = group.seconds / len(group.records)
        if self._seconds is not None:
            newest = self._seconds + _NEWEST * (newest - self._seconds)
        self._seconds = newest


_SECONDS = 2.0
"""Seconds between two commits."""
_OF_TARGET = ("SQLITE_FULL", "SQLITE_READONLY", "SQLITE_IOERR")
"""Errors of the gathered study's disk, which end the gathering; other errors concern one case."""
NOT_RUN = "not run"
_UNNAMED = {("questions", labels.UNNAMED), ("questions", pairs.UNNAMED)}
"""Names that stand for questions without a name in their file."""


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
    this cohort, and new cases are added. Raises `InputError` if the folder contains no cohort, no case is
    done, or the study cannot be written.
    """
    cases = list_cases(output)
    if not any(case.is_done for case in cases):
        raise InputError("no case is done yet; `raterscope batch` fuses them", file=output)
    path = path.resolve()
    with _target(path) as (study, first_run):
        return _Gathering(study, output, first_run).run(cases, watch)


def list_cases(output: Path) -> list[CohortCase]:
    """List the cases of a cohort in the order of its status table, with their current state."""
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
    """Yield the gathered study, or a draft that is renamed at the end, and the number of the next run."""
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
        """Find the names that several cases share. Cases that cannot be read are reported later."""
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
