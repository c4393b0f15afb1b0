"""The task of one case: import, fuse, export. Workers of every kind call the same function."""

from __future__ import annotations

import os
import resource
import socket
import sys
import time
import traceback
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING

from raterscope.algorithms.progress import RefusedError, silent
from raterscope.app import importing
from raterscope.app.batch.manifest import Case
from raterscope.app.batch.records import (
    LOG,
    RESULTS,
    STUDY,
    CaseRecord,
    Status,
    digest_of_case,
    folder_of,
    read_record,
    versions,
    write_record,
    write_text,
)
from raterscope.app.command_line.output import one_line
from raterscope.app.errors import InputError
from raterscope.app.exports import Request, usual_format, write_export
from raterscope.app.kinds.masks.imports import MaskOptions
from raterscope.app.kinds.registry import KINDS, find_export
from raterscope.app.study.new_study import new_study

if TYPE_CHECKING:
    from raterscope.app.study import Study

_MIB = 1 << 20


def run_case(case: Case, output: Path, attempt: int = 1) -> CaseRecord:
    """Fuse a case into its folder, unless its results are there already.

    The folder appears complete or not at all; a failure leaves a record and a log without results. What a
    killed worker leaves is removed by the next one.

    Parameters
    ----------
    case : Case
    output : Path
        Folder of the cohort.
    attempt : int
        Stored in the record.

    Returns
    -------
    CaseRecord
        Also of a failure: this function does not raise.
    """
    begun, log = time.perf_counter(), [f"{case.name}: {case.kind} by {case.algorithm}"]
    folder = folder_of(output, case.name)
    draft = folder.with_name(f".{folder.name}.{socket.gethostname()}.{os.getpid()}")
    digest = reason = ""
    status: Status = "done"
    _reset_peak_memory()
    try:
        for left in folder.parent.glob(f".{folder.name}.*"):  # by a worker that was killed
            rmtree(left, ignore_errors=True)
        digest = digest_of_case(case)
        earlier = read_record(output, case.name)
        if earlier is not None and earlier.status == "done" and earlier.digest == digest:
            return earlier
        draft.mkdir(parents=True)
        _fuse(case, draft, log)
    except (InputError, RefusedError) as error:
        status, reason = "bad input", str(error)
    except (OSError, MemoryError) as error:
        status, reason = "temporary fault", str(error) or "not enough memory"
    except Exception as error:
        status, reason = "internal error", f"{type(error).__name__}: {error}"
        log.append(traceback.format_exc())
    record = CaseRecord(
        case.name, case.kind, status, one_line(reason), digest, time.perf_counter() - begun,
        _peak_memory() / _MIB, attempt, socket.gethostname(), versions(),
    )  # fmt: skip
    with suppress(OSError):
        if status != "done":
            log.append(f"{status}: {reason}")
            rmtree(draft, ignore_errors=True)
            draft.mkdir(parents=True)
        write_text(draft / LOG, "\n".join(log) + "\n")
        write_record(draft, record)
        _replace(draft, folder)
        return record
    rmtree(draft, ignore_errors=True)
    return replace(record, status="temporary fault", reason="its folder cannot be written")


def _fuse(case: Case, folder: Path, log: list[str]) -> None:
    kind = KINDS[case.kind]
    steps = kind.functions
    plan = steps.make_plan(case.algorithm, dict(case.settings))
    reading = MaskOptions(naming=case.naming, structure=case.structure)
    readings = importing.read_files(list(case.files), reading=reading)
    with new_study(folder / STUDY) as study:
        log += importing.store(readings, study)
        items = [item.id for item in kind.items(study)]
        if not items:
            raise InputError(f"holds no {case.kind}", file=case.files[0])
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
    from raterscope.app.exports import FORMATS

    return what + FORMATS[form].suffix


def _replace(draft: Path, folder: Path) -> None:
    """Put a complete folder in the place of an earlier one."""
    earlier = draft.with_name(draft.name + ".earlier")
    if folder.exists():
        folder.rename(earlier)
    draft.rename(folder)
    rmtree(earlier, ignore_errors=True)


def _reset_peak_memory() -> None:
    """Let the peak begin at the present memory, so that it is of this case."""
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
