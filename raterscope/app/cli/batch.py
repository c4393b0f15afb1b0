"""The commands `batch` and `gather`: a cohort of cases, fused one by one and joined in a study."""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from raterscope.app.batch.cohort import gather_cohort, run_cases, shard, to_do
from raterscope.app.batch.executors import SCRIPTS, LostError, dask_executor, local_executor
from raterscope.app.batch.manifest import COLUMNS, Case, FoundCases, find_cases, is_pattern, read_manifest
from raterscope.app.batch.task import CaseRecord, write_text
from raterscope.app.command_line.arguments import UsageError
from raterscope.app.command_line.output import ProgressLine, make_folder, one_line
from raterscope.app.errors import plain_names
from raterscope.app.formats.output_files import write_table
from raterscope.app.outcome import versions
from raterscope.app.workers import processors
from raterscope.text import counted

MANIFEST = "cases.csv"
"""Table of the cases that were found, in the folder of results."""
BAD_INPUT = os.EX_DATAERR if hasattr(os, "EX_DATAERR") else 65
TEMPORARY = os.EX_TEMPFAIL if hasattr(os, "EX_TEMPFAIL") else 75


def batch(options: argparse.Namespace) -> int:
    """Process the cases of a manifest; return the exit status."""
    listed = _find(options)
    if listed is None and (options.naming or options.programs):
        raise UsageError("--naming and --program are for a folder or pattern; a table has columns for them")
    if options.list:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(
            listed.rows(options.naming, options.programs)
            if listed
            else _rows(read_manifest(options.manifest))
        )
        return 0
    if options.output is None:
        raise UsageError("the following arguments are required: -o/--output")
    output: Path = options.output.absolute()  # of workers in other folders too
    if listed is None:
        cases = read_manifest(options.manifest)
        make_folder(output)
    else:
        make_folder(output)
        table = write_table(output / MANIFEST, COLUMNS, listed.rows(options.naming, options.programs))
        options.manifest, cases = table, read_manifest(table)
    if options.script is not None:
        name, text = SCRIPTS[options.script](options.manifest.resolve(), output.resolve(), options.shards)
        write_text(output / name, text)
        print(output / name)
        return 0
    chosen = shard(cases, *options.shard) if options.shard else cases
    chosen = to_do(chosen, output, only_failed=options.only_failed)
    _write_provenance(output, options)
    if options.dask is not None:
        make_executor = dask_executor(options.dask, output)
    else:
        make_executor = local_executor(options.jobs or processors())
    sharded = cases if options.shard else None
    try:
        with ProgressLine(sys.stderr) as watch:
            records = run_cases(
                chosen, output, make_executor, watch, retries=options.retries, all_cases=sharded
            )
    except LostError as error:
        print(f"raterscope: {one_line(str(error))}; start the command again to continue", file=sys.stderr)
        return TEMPORARY
    return _summarise(chosen, records, output)


def _find(options: argparse.Namespace) -> FoundCases | None:
    """Find the cases in a folder or by a pattern; None for a table of cases."""
    location: Path = options.manifest
    if not location.is_dir() and (location.exists() or not is_pattern(str(location))):
        return None
    anywhere = location if options.list else location.absolute()  # the table is stored in another folder
    with ProgressLine(sys.stderr) as watch:
        cases = find_cases(str(anywhere), options.naming, watch)
    for notice in cases.notices:
        print(f"note: {one_line(notice)}", file=sys.stderr)
    return cases


def _rows(cases: Sequence[Case]) -> list[tuple[str, ...]]:
    """Return the rows of a manifest with the files that its patterns find."""
    return [
        (
            case.name, case.kind, ";".join(map(str, (*case.files, *case.addresses))), case.algorithm,
            ";".join(f"{name}={value}" for name, value in case.settings), case.naming or "",
            case.structure or "", ";".join(case.programs),
        )
        for case in cases
    ]  # fmt: skip


def _write_provenance(output: Path, options: argparse.Namespace) -> None:
    """Add one line per start: user, input and versions."""
    content = {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": ["raterscope", *sys.argv[1:]],
        "manifest": str(options.manifest),
        "host": platform.node(),
        "versions": versions(),
    }
    with (output / "starts.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(content) + "\n")


def _summarise(cases: list[Case], records: dict[str, CaseRecord], output: Path) -> int:
    counts = Counter(record.status for record in records.values())
    text = ", ".join(f"{number:,} {status}" for status, number in counts.items()) or "nothing to do"
    print(f"{counted(len(cases), 'case')}: {text}; {output / 'status.csv'}")
    failed = [record for record in records.values() if record.status != "done"]
    for record in failed[:3]:
        print(f"{record.case}: {record.reason}", file=sys.stderr)
    if len(failed) > 3:
        print(f"and {len(failed) - 3:,} more; see status.csv", file=sys.stderr)
    if counts["temporary fault"]:
        return TEMPORARY
    return BAD_INPUT if failed else 0


_MOST = 3


def gather(options: argparse.Namespace) -> int:
    """Gather the cases of a cohort in one study."""
    with ProgressLine(sys.stderr) as watch:
        gathered = gather_cohort(options.folder, options.output, watch)
    done = len(gathered.cases) - len(gathered.failed)
    new = "" if gathered.added == done else f", {gathered.added:,} of them new"
    print(f"{done:,} of {counted(len(gathered.cases), 'case')} are in {options.output}{new}")
    if gathered.changed:
        names = plain_names(gathered.changed, _MOST, 40)
        print(
            f"note: {names} changed after being gathered; the study keeps the earlier results. "
            "Gather into a new study to use the new ones.",
            file=sys.stderr,
        )
    for case in gathered.failed[:_MOST]:
        print(one_line(f"{case.case}: {case.status}: {case.reason}"), file=sys.stderr)
    if len(gathered.failed) > _MOST:
        print(f"and {len(gathered.failed) - _MOST:,} more; the report lists them", file=sys.stderr)
    return 0
