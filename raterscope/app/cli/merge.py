"""The commands `raterscope merge` and `raterscope decide`: decisions of other experts and programs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import astuple, fields

import numpy as np

from raterscope.algorithms.annotators.agreement import cohen_kappa, kappa_interval
from raterscope.app.command_line.output import ProgressLine, one_line
from raterscope.app.decision_tables import record_decisions
from raterscope.app.errors import InputError, counted
from raterscope.app.formats.output_files import check_writable, write_table
from raterscope.app.study import Study
from raterscope.app.study.merging import Conflict, merge_studies
from raterscope.text import percent

_LISTED = 20
"""Conflicts that are printed; all are in the table."""


def merge(options: argparse.Namespace) -> int:
    """Merge studies, and print conflicts and agreement."""
    if len(options.studies) < 2:
        raise InputError("is alone; expected two or more studies", file=options.studies[0])
    if options.conflicts is not None:
        check_writable(options.conflicts)
    with ProgressLine(sys.stderr) as watch:
        merged = merge_studies(options.studies, options.output, watch)
    conflicts = [conflict for study in merged for conflict in study.conflicts]
    for study in merged:
        print(f"{one_line(study.path.name)}: {counted(study.added, 'decision')} added, "
              f"{counted(len(study.conflicts), 'conflict')}")  # fmt: skip
        for kind, verdicts in study.both.items():
            if verdicts:
                print(f"  {kind}: {_agreement_in_words(verdicts)}")
    for conflict in conflicts[:_LISTED]:
        where = f"{conflict.item}, " if conflict.item else ""
        print(one_line(f"open again: {where}{conflict.subject} ({conflict.reason})"))
    if len(conflicts) > _LISTED:
        print(f"and {len(conflicts) - _LISTED:,} more; --conflicts writes all")
    if options.conflicts is not None:
        header = [field.name for field in fields(Conflict)]
        print(write_table(options.conflicts, header, map(astuple, conflicts)))
    print(options.output)
    return 0


def decide(options: argparse.Namespace) -> int:
    """Record the decisions of a table."""
    with Study.open(options.study) as study, ProgressLine(sys.stderr) as watch:
        recorded, known = record_decisions(study, options.decisions, watch)
    print(f"{counted(recorded, 'decision')} recorded" + (f", {known:,} known already" if known else ""))
    return 0


def _agreement_in_words(verdicts: Sequence[tuple[str, str]]) -> str:
    """Describe how often two experts agree: "40 decided by both, 95 % alike, kappa .81 (.62 to .95)"."""
    names, codes = np.unique(np.array(verdicts), return_inverse=True)
    first, second = codes.reshape(-1, 2).T
    words = f"{len(verdicts):,} decided by both, {percent(float((first == second).mean()))} alike"
    kappa, (low, high) = cohen_kappa(first, second), kappa_interval(first, second)
    if len(names) < 2 or np.isnan(kappa):
        return words
    return f"{words}, kappa {kappa:.2f} (95 % interval {low:.2f} to {high:.2f})"
