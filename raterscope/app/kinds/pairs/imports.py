"""Import of pairs: reads files of comparisons, joins them by question, and stores them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from raterscope.algorithms.pairs import Pairs
from raterscope.algorithms.progress import Watch, silent, steps_of
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.pairs import read_pairs
from raterscope.app.formats.records import PairTable
from raterscope.app.formats.sources import Sources
from raterscope.app.study import Study
from raterscope.app.study.pairs import add_pairs

UNNAMED = "pairs"
"""Name of unnamed questions."""


@dataclass(frozen=True)
class QuestionTables:
    """A question with its tables."""

    name: str
    tables: tuple[PairTable, ...]


def group_by_question(tables: Sequence[PairTable]) -> list[QuestionTables]:
    """Group files by their question, in the order of first appearance.

    A file that does not name its question answers the only one that is, if they have an item in common.
    """
    named = dict.fromkeys(table.question.casefold() for table in tables if table.question)
    tables_of: dict[str, list[PairTable]] = {}
    for table in tables:
        key = (table.question or UNNAMED).casefold()
        if not table.question and len(named) == 1:
            (only,) = named
            items_of_named = {
                item
                for table_of_name in tables
                if table_of_name.question.casefold() == only
                for item in table_of_name.items
            }
            key = only if items_of_named.intersection(table.items) else key
        tables_of.setdefault(key, []).append(table)
    return [
        QuestionTables(
            next((table.question for table in question_tables if table.question), UNNAMED),
            tuple(question_tables),
        )
        for question_tables in tables_of.values()
    ]


def join_tables(tables: Sequence[PairTable], excluded: Collection[str] = ()) -> tuple[Pairs, list[str]]:
    """Join the comparisons of one question, without excluded annotators; also return notices.

    All items stay. Raises `InputError` if no annotator is left.
    """
    people: dict[str, int] = {}
    items: dict[str, int] = {}
    annotator, left, right, choice, time = [], [], [], [], []
    timed = any(table.time is not None for table in tables)
    for table in tables:
        annotator_index = np.array(
            [-1 if name in excluded else people.setdefault(name, len(people)) for name in table.annotators],
            dtype=np.int32,
        )[table.annotator]
        item = np.array([items.setdefault(name, len(items)) for name in table.items], dtype=np.int32)
        is_kept = annotator_index >= 0 if excluded else slice(None)
        annotator.append(annotator_index[is_kept])
        left.append(item[table.left[is_kept]])
        right.append(item[table.right[is_kept]])
        choice.append(table.choice[is_kept])
        if timed:
            time.append((np.full(len(table), np.nan) if table.time is None else table.time)[is_kept])
    if not any(len(part) for part in choice):
        raise InputError("no comparisons are left without the annotators that --exclude names")
    pairs = Pairs(
        np.concatenate(annotator), np.concatenate(left), np.concatenate(right), np.concatenate(choice),
        tuple(people), tuple(items), np.concatenate(time) if timed else None,
    )  # fmt: skip
    return pairs, _of_grades(tables)


def _of_grades(tables: Sequence[PairTable]) -> list[str]:
    """Return notices where graded answers meet bare sides, as a large grade counts for many answers."""
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
    """Return whether a mapping names the columns of a table of comparisons."""
    return not _OF_PAIRS.isdisjoint((mapping or {}).values())


def read_pair_files(
    paths: Sequence[Path],
    mappings: Mapping[Path, Mapping[str, str]] | None = None,
    sources: Sources | None = None,
    watch: Watch = silent,
) -> tuple[PairTable, ...]:
    """Read the comparisons of files, all or none; see `formats.pairs.read_pairs`.

    Parameters
    ----------
    mappings : mapping of file to {column: field}, optional
    sources : Sources, optional
        Where the files are open already.
    """
    tables: list[PairTable] = []
    sources = Sources() if sources is None else sources
    for path, step in steps_of(watch, paths):
        tables += read_pairs(sources.open(path), (mappings or {}).get(path), step)
    return tuple(tables)


def names_of(tables: Sequence[PairTable]) -> list[str]:
    """List the names of items, and of the files that show them."""
    return [name for table in tables for name in (*table.items, *table.pictures.values())]


def items_of(study: Study) -> tuple[str, ...]:
    """List the names of the items of a study's pairs, and of the files that show them."""
    benches = [study.comparison_set(question.id) for question in study.pair_questions()]
    return tuple(
        name for bench in benches for names in (bench.items, bench.pictures) for name in names if name
    )


def store_pairs(tables: Sequence[PairTable], study: Study, watch: Watch = silent) -> list[str]:
    """Store comparisons in a study. Returns a sentence for each table."""
    sentences = []
    for table, step in steps_of(watch, tables):
        sentences.append(f"{plain(table.path.name)}: {add_pairs(study, table, step)}")
    return sentences
