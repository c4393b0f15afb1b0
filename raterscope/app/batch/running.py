"""Scheduling of a cohort over an executor: local processes, or a dask cluster.

The task, `task.run_group`, is the same everywhere, so that results differ in nothing but times.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from raterscope import __version__
from raterscope.algorithms.progress import Watch
from raterscope.app.batch.executors import CaseExecutor, LostError, MakeExecutor, WorkerDiedError
from raterscope.app.batch.manifest import Case
from raterscope.app.batch.task import GroupRecord, keep_failure, run_group
from raterscope.app.formats.output_files import file_name_part, write_table
from raterscope.app.formats.untrusted import json_content, read_bytes
from raterscope.app.study.file_digests import digest_of_file
from raterscope.text import time_left

Status = Literal["done", "bad input", "temporary fault", "internal error"]
CASES, RECORD, LOG, STUDY, RESULTS = "cases", "record.json", "log.txt", "study.rscope", "results"
DRAFTS = ".drafts"
"""Folder of the cohort with the folders of cases at work; it is as deep as that of the cases."""
FILES = "files"
"""Folder of the cohort with the files of addresses, which studies refer to."""

STATUS_FILE = "status.csv"
STATUS_COLUMNS = ("case", "kind", "status", "reason", "seconds", "memory_mb", "attempts", "host", "folder")


@dataclass(frozen=True)
class CaseRecord:
    """Outcome of a case."""

    case: str
    kind: str
    # "done", or whose fault it is: "bad input", "temporary fault" (of disk, memory or process), "internal
    # error" of the program
    status: Status
    reason: str  # why it failed, in a sentence
    digest: str  # of the input's files, algorithm, settings and version; see `digest_of_case`
    # seconds, memory_mb: elapsed time, and the largest memory of the worker meanwhile
    seconds: float
    memory_mb: float
    attempts: int
    host: str
    versions: dict[str, str]


def folder_of(output: Path, name: str) -> Path:
    """Return the folder of a case's results."""
    return output / CASES / file_name_part(name)


def digest_of_case(case: Case) -> str:
    """Compute the SHA-256 digest of what determines a case's results: files, plan and version."""
    files: list[tuple[str, str]] = []
    for path in case.files:
        members = (
            sorted(member for member in path.rglob("*") if member.is_file()) if path.is_dir() else [path]
        )
        files += [(str(member.relative_to(path.parent)), digest_of_file(member)) for member in members]
    content = [__version__, case.kind, case.algorithm, sorted(case.settings), case.naming, case.structure]
    return hashlib.sha256(json.dumps([content, files]).encode()).hexdigest()


def write_record(folder: Path, record: CaseRecord) -> None:
    """Write a case's record into a folder, completely or not at all."""
    write_text(folder / RECORD, json.dumps(asdict(record), indent=1) + "\n")


def read_record(output: Path, name: str) -> CaseRecord | None:
    """Read a case's record; None if there is none or it is damaged."""
    path = folder_of(output, name) / RECORD
    try:
        content = json_content(path, read_bytes(path))
        return CaseRecord(**content)
    except Exception:  # a record that cannot be read is made again
        return None


def write_status(
    output: Path, cases: Sequence[Case], records: Mapping[str, CaseRecord] | None = None
) -> Path:
    """Write the table of all cases of the manifest, also of those that are still to do.

    `records`: by case, outcomes of this start. A fault may have left results of an earlier one in place.
    """
    latest = {} if records is None else records

    def rows() -> Iterable[Sequence[object]]:
        for case in cases:
            record = latest.get(case.name) or read_record(output, case.name)
            folder = f"{CASES}/{file_name_part(case.name)}"
            if record is None:
                yield (case.name, case.kind, "to do", "", "", "", 0, "", folder)
            else:
                yield (
                    case.name, case.kind, record.status, record.reason, round(record.seconds, 2),
                    round(record.memory_mb), record.attempts, record.host, folder,
                )  # fmt: skip

    path = output / STATUS_FILE
    with claim(output, path.name):  # shards that end together: the last one lists them all
        write_table(path, STATUS_COLUMNS, rows())
    return path


def write_text(path: Path, text: str) -> None:
    """Replace a file, completely or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


if sys.platform != "win32":
    import fcntl

LOCKS = ".locks"


@contextmanager
def claim(output: Path, name: str) -> Iterator[bool]:
    """Hold the lock of a name in a cohort's folder; wait until it is free.

    Returns False where the file system has no locks.

    Raises `OSError`: if the folder cannot be written.
    """
    folder = output / LOCKS
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    handle = _lock(path)
    try:
        yield handle is not None
    finally:
        if handle is not None:
            with suppress(OSError):
                path.unlink()
            os.close(handle)


def _lock(path: Path) -> int | None:
    if sys.platform == "win32":
        return None
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            if os.path.samestat(path.stat(), os.fstat(handle)):
                return handle
        except FileNotFoundError:  # its owner has removed it meanwhile
            pass
        except OSError:
            os.close(handle)
            return None
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


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
    `watch`: what it raises ends the work.
    `retries`: further attempts after a temporary fault.
    `all_cases`: rows of the status table, where a shard is processed.
    Raises `LostError`: if the scheduler does not come back.
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
                    queue.note(finished)
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

        `slots`: groups at work at a time. `seconds`: of a group, by the time of earlier cases; 0 for a single
        case.
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
        """Let cases wait again, behind the others."""
        self._waiting.extend(replace(entry, alone=entry.alone or alone) for entry in group)

    def note(self, group: GroupRecord) -> None:
        """Learn the seconds for each case."""
        newest = group.seconds / len(group.records)
        if self._seconds is not None:
            newest = self._seconds + _NEWEST * (newest - self._seconds)
        self._seconds = newest
