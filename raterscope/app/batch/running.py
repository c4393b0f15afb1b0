"""Scheduling of a cohort over an executor: local processes, or a dask cluster.

The task, `task.run_group`, is the same everywhere, so that results differ in nothing but times.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from raterscope.algorithms.progress import Watch
from raterscope.app.batch.executors import CaseExecutor, LostError, MakeExecutor, WorkerDiedError
from raterscope.app.batch.manifest import Case
from raterscope.app.batch.task import (
    CaseRecord,
    GroupRecord,
    keep_failure,
    read_record,
    run_group,
    write_status,
)
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
        """Report the cases so far and the time left."""
        done, cases = self._done, self._cases
        words = f"{done:,} of {cases:,} cases" + (f", {self._failed:,} failed" if self._failed else "")
        elapsed = time.monotonic() - self._begun
        remaining = time_left(elapsed * (cases - done) / done) if done and done < cases else ""
        self._watch(done / cases if cases else 1.0, f"{words}, {remaining}" if remaining else words)


@contextmanager
def _shut_down(executor: CaseExecutor) -> Iterator[CaseExecutor]:
    try:
        yield executor
    finally:
        executor.shutdown()


_NEWEST = 0.3
"""Weight of a group's seconds for each case against those of earlier groups."""


@dataclass(frozen=True)
class Attempt:
    """A case to process."""

    case: Case
    number: int = 1  # from 1
    alone: bool = False  # in no group, because its worker may die of it


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
