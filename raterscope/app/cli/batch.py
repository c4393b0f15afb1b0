"""The command `raterscope batch`: a cohort of cases."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from raterscope.app.batch.executors import LostError, dask_executor, local_executor
from raterscope.app.batch.manifest import Case, ManifestError, read_manifest
from raterscope.app.batch.records import CaseRecord, versions, write_text
from raterscope.app.batch.running import run_cases, shard, to_do
from raterscope.app.batch.scripts import SCRIPTS
from raterscope.app.command_line.output import ProgressLine, make_folder, one_line
from raterscope.app.errors import counted
from raterscope.app.workers import processors

BAD_INPUT = os.EX_DATAERR if hasattr(os, "EX_DATAERR") else 65
TEMPORARY = os.EX_TEMPFAIL if hasattr(os, "EX_TEMPFAIL") else 75


def batch(options: argparse.Namespace) -> int:
    """Process the cases of a manifest; return the exit status."""
    try:
        cases = read_manifest(options.manifest)
    except ManifestError as error:
        for problem in error.problems[1:]:
            print(one_line(problem), file=sys.stderr)
        raise
    output: Path = options.output.absolute()  # of workers in other folders too
    make_folder(output)
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


def _write_provenance(output: Path, options: argparse.Namespace) -> None:
    """Note who processed what, with which versions; one line for each start."""
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
    words = ", ".join(f"{number:,} {status}" for status, number in counts.items()) or "nothing to do"
    print(f"{counted(len(cases), 'case')}: {words}; {output / 'status.csv'}")
    failed = [record for record in records.values() if record.status != "done"]
    for record in failed[:3]:
        print(f"{record.case}: {record.reason}", file=sys.stderr)
    if len(failed) > 3:
        print(f"and {len(failed) - 3:,} more; see status.csv", file=sys.stderr)
    if counts["temporary fault"]:
        return TEMPORARY
    return BAD_INPUT if failed else 0
