"""Scheduling of a cohort over an executor: local processes, or a dask cluster.

The task, `task.run_case`, is the same everywhere, so that results are the same bits.
"""

from __future__ import annotations

import multiprocessing
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path

from raterscope.algorithms.progress import Watch
from raterscope.app.batch.manifest import Case
from raterscope.app.batch.records import (
    CaseRecord,
    folder_of,
    read_record,
    versions,
    write_record,
    write_status,
)
from raterscope.app.batch.task import run_case
from raterscope.app.errors import InputError
from raterscope.text import time_left

POLL = 0.2
STATUS_SECONDS = 30.0
RETRIES = 2

MakeExecutor = Callable[[], Executor]


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
    workers: int,
    watch: Watch,
    *,
    retries: int = RETRIES,
    all_cases: Sequence[Case] | None = None,
) -> dict[str, CaseRecord]:
    """Process cases, each worker one at a time, and keep the status table up to date.

    A case whose worker died, or that had a temporary fault, is tried again; after the death of a worker, the
    cases that were at work are tried one by one, so that none is blamed for another.

    Parameters
    ----------
    cases : sequence of Case
    output : Path
    make_executor : callable
        Makes an executor; called again if one breaks.
    workers : int
        Cases at work at a time.
    watch : Watch
        What it raises ends the work.
    retries : int
        Further attempts after a temporary fault.
    all_cases : sequence of Case, optional
        Rows of the status table, where a shard is processed.
    """
    listed = cases if all_cases is None else all_cases
    records: dict[str, CaseRecord] = {}
    waiting = deque((case, 1) for case in cases)
    suspects: deque[tuple[Case, int]] = deque()
    begun = saved = time.monotonic()
    while waiting or suspects:
        alone = bool(suspects)
        with _closing(make_executor()) as executor:
            at_work: dict[Future[CaseRecord], tuple[Case, int]] = {}
            broken = False
            while not broken and (at_work or (suspects if alone else waiting)):
                queue, most = (suspects, 1) if alone else (waiting, workers)
                while queue and len(at_work) < most:
                    case, attempt = queue.popleft()
                    at_work[executor.submit(run_case, case, output, attempt)] = case, attempt
                done, _ = wait(at_work, timeout=POLL, return_when=FIRST_COMPLETED)
                for future in done:
                    case, attempt = at_work.pop(future)
                    record = _answer(future, case, output, attempt)
                    broken |= record is None
                    if record is None and not (alone and attempt > retries):
                        suspects.append((case, attempt + alone))
                    elif record is None:
                        records[case.name] = _died(case, output, attempt)
                    elif record.status == "temporary fault" and attempt <= retries:
                        waiting.append((case, attempt + 1))
                    else:
                        records[case.name] = record
                _report(watch, records, len(cases), begun)
                if time.monotonic() - saved > STATUS_SECONDS:
                    write_status(output, listed)
                    saved = time.monotonic()
    write_status(output, listed)
    return records


def _answer(future: Future[CaseRecord], case: Case, output: Path, attempt: int) -> CaseRecord | None:
    """Return a task's record; None if its worker died."""
    try:
        return future.result()
    except BrokenProcessPool:
        return None
    except Exception as error:  # of the cluster: the task itself does not raise
        return _failed(case, output, attempt, f"{type(error).__name__}: {error}")


def _died(case: Case, output: Path, attempt: int) -> CaseRecord:
    return _failed(case, output, attempt, "its process was killed, perhaps for want of memory")


def _failed(case: Case, output: Path, attempt: int, reason: str) -> CaseRecord:
    record = CaseRecord(
        case.name, case.kind, "temporary fault", reason, "", 0.0, 0.0, attempt, "", versions()
    )
    folder = folder_of(output, case.name)
    folder.mkdir(parents=True, exist_ok=True)
    write_record(folder, record)
    return record


def _report(watch: Watch, records: dict[str, CaseRecord], count: int, begun: float) -> None:
    done = len(records)
    failed = sum(record.status != "done" for record in records.values())
    words = f"{done:,} of {count:,} cases" + (f", {failed:,} failed" if failed else "")
    elapsed = time.monotonic() - begun
    remaining = time_left(elapsed * (count - done) / done) if done and done < count else ""
    watch(done / count if count else 1.0, f"{words}, {remaining}" if remaining else words)


@contextmanager
def _closing(executor: Executor) -> Iterator[Executor]:
    try:
        yield executor
    finally:
        executor.shutdown(wait=False)


def local_executor(jobs: int) -> MakeExecutor:
    """Return a function that makes a pool of local processes."""
    context = multiprocessing.get_context("spawn")
    return lambda: ProcessPoolExecutor(jobs, mp_context=context)


def dask_executor(address: str) -> tuple[MakeExecutor, int]:
    """Connect to a dask scheduler; return a function that makes executors, and the number of workers.

    Raises
    ------
    InputError
        If dask is not installed, or no scheduler answers.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise InputError("dask.distributed is not installed; `pip install raterscope[cluster]`") from error
    try:
        client = Client(address, timeout=10)
    except OSError as error:
        raise InputError(f"no scheduler answers at {address}: {error}") from error
    workers = sum(worker["nthreads"] for worker in client.scheduler_info(n_workers=-1)["workers"].values())
    return lambda: client.get_executor(pure=False), max(1, workers)
