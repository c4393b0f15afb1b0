"""Scheduling of a cohort over an executor: local processes, or a dask cluster.

The task, `task.run_case`, is the same everywhere, so that results differ in nothing but times.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import contextmanager
from pathlib import Path

from raterscope.algorithms.progress import Watch
from raterscope.app.batch.executors import CaseExecutor, LostError, MakeExecutor, WorkerDiedError
from raterscope.app.batch.manifest import Case
from raterscope.app.batch.records import CaseRecord, read_record, write_status
from raterscope.app.batch.task import keep_failure, run_case
from raterscope.text import time_left

POLL = 0.2
STATUS_SECONDS = 30.0
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
    scheduler broke are submitted again; that counts as no attempt.

    Parameters
    ----------
    cases : sequence of Case
    output : Path
    make_executor : callable
        Makes an executor; called again if the connection to its workers breaks.
    watch : Watch
        What it raises ends the work.
    retries : int
        Further attempts after a temporary fault.
    all_cases : sequence of Case, optional
        Rows of the status table, where a shard is processed.

    Raises
    ------
    LostError
        If the scheduler does not come back.
    """
    listed = cases if all_cases is None else all_cases
    records: dict[str, CaseRecord] = {}
    waiting = deque((case, 1) for case in cases)
    begun = saved = time.monotonic()
    losses = 0
    while waiting:
        with _shut_down(make_executor()) as executor:
            connected = True
            at_work: dict[Future[CaseRecord], tuple[Case, int]] = {}
            while at_work or (waiting and connected):
                try:
                    while connected and waiting and len(at_work) < executor.slots:
                        case, attempt = waiting.popleft()
                        at_work[executor.submit(run_case, case, output, attempt)] = case, attempt
                except LostError:
                    connected = False
                done, _ = wait(at_work, timeout=POLL, return_when=FIRST_COMPLETED)
                for future in done:
                    case, attempt = at_work.pop(future)
                    record = _answer(future, case, output, attempt)
                    if record is None:
                        connected = False
                        waiting.append((case, attempt))
                    elif record.status == "temporary fault" and attempt <= retries:
                        waiting.append((case, attempt + 1))
                    else:
                        records[case.name] = record
                        losses = 0
                _report(watch, records, len(cases), begun)
                if all_cases is None and time.monotonic() - saved > STATUS_SECONDS:
                    write_status(output, listed)
                    saved = time.monotonic()
        losses += not connected
        if losses > RECONNECTIONS:
            raise LostError("the connection to the scheduler breaks again and again")
    write_status(output, listed, records)
    return records


def _answer(future: Future[CaseRecord], case: Case, output: Path, attempt: int) -> CaseRecord | None:
    """Return a task's record; None if nothing is known of the task."""
    try:
        return future.result()
    except (LostError, CancelledError):
        return None
    except WorkerDiedError:
        reason = "its process was killed, perhaps because memory ran out"
    except Exception as error:  # of the cluster: the task itself does not raise
        reason = f"{type(error).__name__}: {error}"
    return keep_failure(case, output, attempt, reason)


def _report(watch: Watch, records: dict[str, CaseRecord], count: int, begun: float) -> None:
    done = len(records)
    failed = sum(record.status != "done" for record in records.values())
    words = f"{done:,} of {count:,} cases" + (f", {failed:,} failed" if failed else "")
    elapsed = time.monotonic() - begun
    remaining = time_left(elapsed * (count - done) / done) if done and done < count else ""
    watch(done / count if count else 1.0, f"{words}, {remaining}" if remaining else words)


@contextmanager
def _shut_down(executor: CaseExecutor) -> Iterator[CaseExecutor]:
    try:
        yield executor
    finally:
        executor.shutdown()
