"""The commands `copy`, `merge` and `decide`: decisions of other experts and programs."""

from __future__ import annotations

import argparse
import sys
from dataclasses import astuple, fields

from raterscope.app.command_line.output import ProgressLine, one_line
from raterscope.app.decision_tables import record_decisions
from raterscope.app.errors import InputError, counted
from raterscope.app.formats.output_files import check_writable, write_table
from raterscope.app.study import Study
from raterscope.app.study.journal_comparison import Conflict
from raterscope.app.study.merging import merge_studies
from raterscope.app.study.second_reads import copy_for_reader

_LISTED = 20
"""Conflicts that are printed; all are in the table."""


def merge(options: argparse.Namespace) -> int:
    """Merge studies, and print conflicts and agreement."""
    if len(options.studies) < 2:
        raise InputError("is alone; expected two or more studies", file=options.studies[0])
    if options.conflicts is not None:
        check_writable(options.conflicts)
    with ProgressLine(sys.stderr) as watch:
        merged = merge_studies(options.studies, options.output, watch, incomplete=options.incomplete)
    conflicts = [conflict for study in merged for conflict in study.conflicts]
    for study in merged:
        added = (f"{counted(study.added, 'decision')} added, {counted(len(study.conflicts), 'conflict')}"
                 if study.added else "nothing to add; all its decisions are in the other study")  # fmt: skip
        print(f"{one_line(study.path.name)}: {added}")
        for kind, agreement in study.agreements().items():
            print(f"  {kind}: {agreement.in_words()}")
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


def copy(options: argparse.Namespace) -> int:
    """Copy a study for a second reader."""
    with Study.open(options.study, to_read=True) as study, ProgressLine(sys.stderr) as watch:
        copied = copy_for_reader(study, options.output, blind=options.blind, watch=watch)
    print(f"{options.output}: {copied.in_words()}")
    return 0


def decide(options: argparse.Namespace) -> int:
    """Record the decisions of a table."""
    with Study.open(options.study) as study, ProgressLine(sys.stderr) as watch:
        recorded, known = record_decisions(study, options.decisions, watch)
    print(f"{counted(recorded, 'decision')} recorded" + (f", {known:,} known already" if known else ""))
    return 0
