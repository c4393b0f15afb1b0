"""Import of pairs: reads files of comparisons, joins them by question, and stores them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np

from raterscope.algorithms.pairs import Pairs
from raterscope.algorithms.progress import Watch, silent, steps_of
from raterscope.app.errors import InputError, SkippedFiles, plain
from raterscope.app.formats.pairs import read_pairs
from raterscope.app.formats.records import PairTable, group_by_name
from raterscope.app.formats.sources import Sources
from raterscope.app.study import Study
from raterscope.app.study.pairs import UNNAMED, add_pairs
from raterscope.app.study.vote_sets import join_comparisons, pairs_record


@dataclass(frozen=True)
class QuestionTables:
    """A question with its tables."""

    name: str
    tables: tuple[PairTable, ...]


def group_by_question(tables: Sequence[PairTable]) -> list[QuestionTables]:
    """Group files by their question, in the order of first appearance; see `group_by_name`."""
    return [
        QuestionTables(next((table.question for table in group if table.question), UNNAMED), tuple(group))
        for group in group_by_name(tables, UNNAMED, lambda table: table.items).values()
    ]


def join_tables(tables: Sequence[PairTable], excluded: Collection[str] = ()) -> tuple[Pairs, list[str]]:
    """Join the comparisons of one question, without excluded annotators; also return notices.

    Items without comparisons are kept. Raises `InputError` if no annotator is left.
    """
    number: dict[str, int] = {}
    records = []
    for table in tables:
        annotators = [number.setdefault(name, len(number)) for name in table.annotators]
        record = pairs_record(table, np.array(annotators, dtype=np.int32))
        kept = ~np.isin(record.annotator, [number[name] for name in excluded if name in number])
        columns = {name: getattr(record, name)[kept] for name in ("annotator", "left", "right", "choice")}
        time = None if record.time is None else record.time[kept]
        task = None if record.task is None else record.task[kept]
        records.append(replace(record, **columns, time=time, task=task))
    pairs = join_comparisons(records, len(number)).pairs(tuple(number))
    if not len(pairs):
        raise InputError("no comparisons are left without the annotators that --exclude names")
    return pairs, _of_grades(tables)


def _of_grades(tables: Sequence[PairTable]) -> list[str]:
    """Return notices about files with and without grades, because a large grade counts for many answers."""
    graded = {bool((np.abs(table.choice) > 1).any()): table for table in tables if len(table)}
    if len(graded) < 2:
        return []
    numbers, sides = (plain(graded[is_graded].path.name) for is_graded in (True, False))
    return [
        f"{numbers} has graded choices and {sides} none above 1. Choices count by size; --set graded=no "
        "counts sides alone."
    ]


_OF_PAIRS = {"left", "right", "choice", "left_picture", "right_picture"}


def names_pair_columns(mapping: Mapping[str, str] | None) -> bool:
    """Return whether a column mapping is that of a table of comparisons."""
    return not _OF_PAIRS.isdisjoint((mapping or {}).values())


def read_pair_files(
    paths: Sequence[Path],
    mappings: Mapping[Path, Mapping[str, str]] | None = None,
    sources: Sources | None = None,
    watch: Watch = silent,
    *,
    skipped: SkippedFiles | None = None,
) -> tuple[PairTable, ...]:
    """Read the comparisons of files, all or none without `skipped`; see `formats.pairs.read_pairs`.

    `mappings`: fields of columns by file, named by hand. `sources`: sources of files that may be open
    already.
    """
    tables: list[PairTable] = []
    sources = Sources() if sources is None else sources
    skipped = SkippedFiles(paths) if skipped is None else skipped
    for path, step in steps_of(watch, paths):
        with skipped.reading(path):
            tables += read_pairs(sources.open(path), (mappings or {}).get(path), step)
    return tuple(tables)


def names_of(tables: Sequence[PairTable]) -> list[str]:
    """List the names of items, and of the files that show them."""
    return [name for table in tables for name in (*table.items, *table.pictures.values())]


def items_of(study: Study) -> tuple[str, ...]:
    """List the names of the items of a study's pairs, and of the files that show them."""
    benches = [study.comparison_set(question.id) for question in study.pair_questions()]
    return tuple(name for bench in benches for name in chain(bench.items, bench.pictures.values()) if name)


def store_pairs(tables: Sequence[PairTable], study: Study, watch: Watch = silent) -> list[str]:
    """Store comparisons in a study; return one sentence per table."""
    sentences = []
    owners = Counter(item for table in tables for item in set(table.items))
    for table, step in steps_of(watch, tables):
        apart = len(tables) > 1 and all(owners[item] == 1 for item in table.items)
        text = add_pairs(study, table, step, named_by_file=apart)
        sentences.append(f"{plain(table.path.name)}: {text}")
    return sentences
