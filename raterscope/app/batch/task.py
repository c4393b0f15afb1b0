"""The task of one case: import, fuse, export. Workers of every kind call the same function."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import socket
import sys
import threading
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Literal

from raterscope import __version__
from raterscope.algorithms.progress import RefusedError, silent
from raterscope.app import importing
from raterscope.app.batch.manifest import Case
from raterscope.app.command_line.output import one_line
from raterscope.app.compiled import choose_folder
from raterscope.app.errors import InputError, missing_package
from raterscope.app.exports import FORMATS, Request, usual_format, write_export
from raterscope.app.formats.output_files import file_name_part, flush_folder, flushed_later, write_table
from raterscope.app.formats.remote import fetch_all
from raterscope.app.formats.untrusted import json_content, read_bytes
from raterscope.app.import_preview import mark_programs, preview_readings
from raterscope.app.kinds.masks.attribution import MaskOptions
from raterscope.app.kinds.registry import KINDS, find_export
from raterscope.app.outcome import versions
from raterscope.app.study.new_study import new_study
from raterscope.app.study.references import digest_of_file

if TYPE_CHECKING:
    from raterscope.app.study import Study

Status = Literal["done", "bad input", "temporary fault", "internal error"]
CASES, RECORD, LOG, STUDY, RESULTS = "cases", "record.json", "log.txt", "study.rscope", "results"
DRAFTS = ".drafts"
"""Folder of unfinished cases; it is as deep as that of finished ones, so that relative paths hold."""
FILES = "files"
"""Name of the cohort's folder for downloaded files, to which the studies refer."""

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
    # seconds, memory_mb: elapsed time, and the peak memory of the worker
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
    plan = [case.kind, case.algorithm, sorted(case.settings), case.naming, case.structure, case.programs]
    return hashlib.sha256(json.dumps([__version__, plan, files]).encode()).hexdigest()


def write_record(folder: Path, record: CaseRecord) -> None:
    """Write a case's record into a folder, completely or not at all."""
    write_text(folder / RECORD, json.dumps(asdict(record), indent=1) + "\n")


def read_record(output: Path, name: str) -> CaseRecord | None:
    """Read a case's record; None if there is none or it is damaged."""
    path = folder_of(output, name) / RECORD
    try:
        content = json_content(path, read_bytes(path))
        return CaseRecord(**content)
    except Exception:  # an unreadable record is made again
        return None


def write_status(
    output: Path, cases: Sequence[Case], records: Mapping[str, CaseRecord] | None = None
) -> Path:
    """Write the table of all cases of the manifest, including those that are not processed yet.

    `records`: outcomes of this start by case. A fault may have left results of an earlier start in place.
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

    Yields False if the file system has no locks.

    Raises `OSError` if the folder cannot be written.
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


_MIB = 1 << 20
_EARLIER = ".earlier"


@dataclass(frozen=True)
class GroupRecord:
    """Records of a group of cases, and the seconds that the group took."""

    records: tuple[CaseRecord, ...]
    seconds: float


def run_group(cases: Sequence[tuple[Case, int]], output: Path) -> GroupRecord:
    """Run cases, with the number of the attempt of each, one after the other."""
    begun = time.perf_counter()
    records = tuple(run_case(case, output, attempt) for case, attempt in cases)
    return GroupRecord(records, time.perf_counter() - begun)


def run_case(case: Case, output: Path, attempt: int = 1) -> CaseRecord:
    """Fuse a case into its folder, unless its results are there already.

    The folder appears complete or not at all; a failure leaves a record and a log without results. Files of a
    killed worker are removed by the next one. A worker waits for another that processes the same case.

    `output`: folder of the cohort. `attempt`: stored in the record. Failures are recorded, not raised.
    """
    begun, log = time.perf_counter(), [f"{case.name}: {case.kind} by {case.algorithm}"]
    digest = ""
    choose_folder()  # a worker of a cluster did not start as this program
    _reset_peak_memory()

    def record(status: Status, reason: str) -> CaseRecord:
        return CaseRecord(
            case.name, case.kind, status, one_line(reason), digest, time.perf_counter() - begun,
            _peak_memory() / _MIB, attempt, socket.gethostname(), versions(),
        )  # fmt: skip

    try:
        case = _fetched(case, output)
        digest = digest_of_case(case)
    except Exception as error:  # results are kept, because it is unknown whether they are of these files
        return _keep(case, output, record(*_explain(error, log)), log, replaces=False)
    earlier = _finished(case, output, digest)
    if earlier is not None:
        return earlier
    try:
        with claim(output, folder_of(output, case.name).name) as alone:
            earlier = _finished(case, output, digest)
            if earlier is not None:
                return earlier
            if alone:
                _clear(output, folder_of(output, case.name))
            draft = _draft(output, case)
            try:
                draft.mkdir(parents=True)
                with flushed_later():
                    _fuse(case, draft, log)
            except Exception as error:
                status, reason = _explain(error, log)
                rmtree(draft, ignore_errors=True)
            else:
                status, reason = "done", ""
            return _publish(draft, folder_of(output, case.name), record(status, reason), log)
    except OSError as error:
        return record("temporary fault", f"its folder cannot be written: {error}")


def keep_failure(case: Case, output: Path, attempt: int, reason: str) -> CaseRecord:
    """Record that a case's worker died, unless the case is done."""
    digest = ""
    with suppress(Exception):
        case = _fetched(case, output)
        digest = digest_of_case(case)
    record = CaseRecord(
        case.name, case.kind, "temporary fault", one_line(reason), digest, 0.0, 0.0, attempt, "", versions()
    )
    earlier = _finished(case, output, digest)
    return earlier or _keep(case, output, record, [], replaces=bool(digest))


def _fetched(case: Case, output: Path) -> Case:
    """Return the case with its remote files downloaded into the cohort's folder."""
    if not case.addresses:
        return case
    with claim(output, f"{FILES}-{folder_of(output, case.name).name}"):
        files = fetch_all(case.addresses, output / FILES)
    return replace(case, files=(*case.files, *files), addresses=())


def _explain(error: Exception, log: list[str]) -> tuple[Status, str]:
    """Return the status of an error ("bad input", "temporary fault", ...), and a sentence."""
    status: Status
    if (missing := missing_package(error)) is not None:
        status, reason = "internal error", missing
    elif isinstance(error, (InputError, RefusedError)):
        status, reason = "bad input", str(error)
    elif isinstance(error, (OSError, MemoryError)):
        status, reason = "temporary fault", str(error) or "not enough memory"
    else:
        status, reason = "internal error", f"{type(error).__name__}: {error}"
        log.append("".join(traceback.format_exception(error)))
    log.append(f"{status}: {reason}")
    return status, reason


def _finished(case: Case, output: Path, digest: str) -> CaseRecord | None:
    """Return the record of earlier results, if they are of the same input."""
    record = read_record(output, case.name)
    return record if record is not None and (record.status, record.digest) == ("done", digest) else None


def _keep(case: Case, output: Path, record: CaseRecord, log: list[str], *, replaces: bool) -> CaseRecord:
    """Write a failure into a case's folder; it replaces results only if `replaces` is set."""
    folder = folder_of(output, case.name)
    with suppress(OSError), claim(output, folder.name):
        earlier = read_record(output, case.name)
        if replaces or earlier is None or earlier.status != "done":
            _publish(_draft(output, case), folder, record, log)
    return record


def _draft(output: Path, case: Case) -> Path:
    folder = folder_of(output, case.name)
    name = f"{folder.name}.{socket.gethostname()}.{os.getpid()}.{threading.get_ident()}"
    return output / DRAFTS / name


def _publish(draft: Path, folder: Path, record: CaseRecord, log: list[str]) -> CaseRecord:
    """Complete a folder and replace the earlier one with it."""
    draft.mkdir(parents=True, exist_ok=True)
    write_text(draft / LOG, "\n".join(log) + "\n")
    write_record(draft, record)
    flush_folder(draft)
    earlier = draft.with_name(draft.name + _EARLIER)
    folder.parent.mkdir(exist_ok=True)
    if folder.exists():
        folder.rename(earlier)
    draft.rename(folder)
    rmtree(earlier, ignore_errors=True)
    return record


def _clear(output: Path, folder: Path) -> None:
    """Remove the drafts that killed workers left of a case; restore results that a killed worker moved."""
    folder.parent.mkdir(exist_ok=True)
    for left in (output / DRAFTS).glob(f"{folder.name}.*"):
        if left.name.endswith(_EARLIER) and not folder.exists():
            left.rename(folder)
        else:
            rmtree(left, ignore_errors=True)


def _fuse(case: Case, folder: Path, log: list[str]) -> None:
    kind = KINDS[case.kind]
    steps = kind.functions
    plan = steps.make_plan(case.algorithm, dict(case.settings))
    reading = MaskOptions(naming=case.naming, structure=case.structure)
    only = case.programs[0] if len(case.programs) == 1 else None
    readings = importing.read_files(list(case.files), reading=reading, label_annotator=only)
    if case.programs:
        readings = mark_programs(readings, case.programs, preview_readings(readings).names["annotator"])
    with new_study(folder / STUDY) as study:
        log += importing.store(readings, study)
        items = [item.id for item in kind.items(study)]
        if not items:
            raise InputError(f"contains no {case.kind}", file=case.files[0])
        inputs = steps.gather(items, study, plan, False, silent)
        answer = steps.fuse(inputs, plan, 1, silent)
        failed = [outcome for outcome in answer.outcomes.values() if outcome.fusion is None]
        if failed:
            log += [outcome.details for outcome in failed if outcome.details]
            raise InputError(failed[0].problem, file=failed[0].item)
        steps.keep(answer, study, silent)
        _export(kind.name, study, folder / RESULTS, log)


def _export(kind: str, study: Study, folder: Path, log: list[str]) -> None:
    """Write every table of results that the run has, and the consensus of masks."""
    folder.mkdir()
    images = study.images()
    for listed in KINDS[kind].exports:
        if not listed.of_run or (listed.by_case and listed.what != "consensus"):
            continue
        export = find_export(listed.what, [kind])
        name = usual_format(export, images)
        path = folder / (export.what if export.by_case and len(images) > 1 else _named(export.what, name))
        try:
            written = write_export(export, study, Request(export.what, name, path))
            log.append(f"{export.what}: {', '.join(file.name for file in written.files)}")
        except InputError as error:  # not every algorithm gives every table
            log.append(f"{export.what}: not written: {error}")


def _named(what: str, form: str) -> str:
    return what + FORMATS[form].suffix


def _reset_peak_memory() -> None:
    """Reset the peak memory to the current use, so that it measures this case alone."""
    if sys.platform == "linux":
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")


def _peak_memory() -> float:
    """Return the largest resident memory in bytes."""
    with suppress(OSError, StopIteration, ValueError):
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024.0 * float(next(line for line in lines if line.startswith("VmHWM")).split()[1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak if sys.platform == "darwin" else 1024 * peak)
