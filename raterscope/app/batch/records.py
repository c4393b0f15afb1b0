"""Records of the cases of a cohort: outcome, time, memory and provenance, and the table of all of them."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from raterscope import __version__
from raterscope.app.batch.manifest import Case
from raterscope.app.formats.output_files import file_name_part, write_table
from raterscope.app.formats.untrusted import json_content, read_bytes
from raterscope.app.study.file_digests import digest_of_file

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
