"""Pairs in a study: questions, comparisons, pictures of the items, ground-truth rankings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.pairs.data import Pairs
from raterscope.algorithms.pairs.ranking_agreement import TrueRanking
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.pairs.table import RankingTable
from raterscope.app.formats.records import PairTable
from raterscope.app.review import current_names
from raterscope.app.study.arrays import write_object
from raterscope.app.study.imports import describe_spellings, number_annotators, number_import
from raterscope.app.study.labels import add_contents, link_pictures
from raterscope.app.study.records import RunEntry
from raterscope.app.study.study import Study
from raterscope.app.study.vote_sets import pack_names, pairs_record, positions_of, records_of, unpack_names
from raterscope.text import counted

UNNAMED = "pairs"
"""Name of a question without a name."""


def add_pairs(study: Study, table: PairTable, watch: Watch = silent, *, named_by_file: bool = False) -> str:
    """Import the comparisons of a file, completely or not at all, and summarise what was stored.

    A file without a question belongs to the only question of the study if they have common items, otherwise
    to a new question, with the file's name if `named_by_file`.
    """
    watch(0.0, "storing comparisons")
    number, name = _question_for(study, table, named_by_file=named_by_file)
    repeated = 0 if number is None else _count_repeated(study, number, table)
    study.forget_annotators()
    with study.change() as connection:
        spellings = describe_spellings(connection, table.annotators)
        known = number_annotators(connection, table.annotators)
        annotator_ids = np.array([known[name] for name in table.annotators], dtype=np.int32)
        if number is None:
            (number,) = connection.execute(
                "INSERT INTO questions(kind, name, scheme) VALUES ('pairs', ?, '') RETURNING id", (name,)
            ).fetchone()
        imported = number_import(connection, "pairs", table.path.name, table.notices)
        connection.execute(
            "INSERT INTO votes(question, import, truth, object) VALUES (?, ?, 0, ?)",
            (number, imported, write_object(connection, pairs_record(table, annotator_ids), watch)),
        )
    link_pictures(study, watch)
    if table.contents is not None:
        add_contents(study, table.contents, number)
    items = len(np.unique(np.concatenate([table.left, table.right])))
    text = (
        f"{counted(len(table), 'comparison')} of {counted(items, 'item')}"
        f" by {counted(len(np.unique(table.annotator)), 'annotator')}"
    )
    count_text = f"all {repeated:,}" if repeated == len(table) > 1 else f"{repeated:,}"
    remark = (
        f" ({count_text} of two items that the annotator also compares on these sides in an earlier file)"
        if repeated
        else ""
    )
    return " ".join([f"{text}{remark}.", *table.notices, *spellings])


def pairs_of(study: Study, question: int, run: RunEntry | None = None) -> Pairs:
    """Return the comparisons; with a run, the comparisons that it used."""
    comparisons = study.comparison_set(question, None if run is None else run.imported)
    pairs = comparisons.pairs(study.annotators())
    if run is None or not (run.excluded or run.aliases or run.weights):
        return pairs
    pairs = pairs.joined(current_names(pairs.annotators, run.aliases))
    return pairs.without(set(run.excluded)).with_weights(run.weights)


def item_pictures(study: Study, question: int) -> dict[int, int]:
    """Return the image of each item, by their numbers."""
    item_index = {name: index for index, name in enumerate(study.comparison_set(question).items)}
    with study.reading() as connection:
        rows = connection.execute("SELECT task, image FROM pictures WHERE question = ?", (question,))
        return {item_index[item]: image for item, image in rows if item in item_index}


def _count_repeated(study: Study, question: int, table: PairTable) -> int:
    """Count the comparisons that the study already has, by annotator, items and sides."""
    comparisons, names = study.comparison_set(question), study.annotators()
    annotators = [names[number] for number in comparisons.annotator_ids.tolist()]
    annotator = positions_of(table.annotators, annotators)[table.annotator]
    item = positions_of(table.items, comparisons.items)
    left, right = item[table.left], item[table.right]
    known = (annotator >= 0) & (left >= 0) & (right >= 0)
    if not known.any():
        return 0
    item_count = len(comparisons.items)
    present = comparisons.annotator.astype(np.int64) * item_count + comparisons.left
    present = present * item_count + comparisons.right
    codes = (annotator[known] * item_count + left[known]) * item_count + right[known]
    if comparisons.task is not None and table.task is not None:
        task = np.append(positions_of(table.tasks, comparisons.tasks), -1)[table.task]
        count = len(comparisons.tasks) + 1
        codes = codes * count + task[known] + 1
        present = present * count + comparisons.task + 1
    return int(np.isin(codes, present).sum())


def _question_for(study: Study, table: PairTable, *, named_by_file: bool) -> tuple[int | None, str]:
    """Find the number and name of the question that a file answers; a new question has no number."""
    questions = study.pair_questions()
    names_in_use = study.question_names()
    if table.question:
        named = next(
            (question for question in questions if question.name.casefold() == table.question.casefold()),
            None,
        )
        if named is not None:
            return named.id, named.name
        candidates = [table.question]
    else:
        items = set(table.items)
        alike = [question for question in questions if items & set(study.comparison_set(question.id).items)]
        if len(alike) == 1:
            return alike[0].id, alike[0].name
        candidates = [UNNAMED, plain(table.path.stem, 80)][named_by_file:]
    candidates += [f"{candidates[0]} {number}" for number in range(2, len(names_in_use) + 3)]
    return None, next(name for name in candidates if name.casefold() not in names_in_use)


@dataclass(frozen=True, eq=False)
class RankingRecord:
    """Ground-truth ranking of one import.

    Attributes
    ----------
    item_index : (n,) float64
    """

    items: NDArray[np.uint8]  # (B,): their names, see `pack_names`
    place: NDArray[np.float64]
    group: NDArray[np.int32]  # (n,)


def add_true_ranking(study: Study, table: RankingTable) -> str:
    """Store the ranking for the question that compares most of its items, and summarise what was stored.

    The last ranking counts. Raises `InputError` if no question compares two of its items.
    """
    known = set(table.items)
    shared = {
        entry: len(known & set(study.comparison_set(entry.id).items)) for entry in study.pair_questions()
    }
    question = max(shared, key=lambda number: shared[number], default=None)
    if question is None or shared[question] < 2:
        raise InputError(
            "ranks items without comparisons in the study; import the comparisons first", file=table.path
        )
    record = RankingRecord(pack_names(table.items), table.place, table.group)
    with study.change() as connection:
        imported = number_import(connection, "true ranking", table.path.name, ())
        connection.execute(
            "INSERT INTO votes(question, import, truth, object) VALUES (?, ?, 1, ?)",
            (question.id, imported, write_object(connection, record)),
        )
    return (
        f"ground-truth ranks of {counted(len(table.items), 'item')}, "
        f"{shared[question]:,} of them compared in {plain(question.name)}."
    )


def true_ranking_of(study: Study, question: int, items: tuple[str, ...]) -> TrueRanking | None:
    """Return the last imported ranking of a question, in the order of its items; None without a ranking."""
    with study.reading() as connection:
        records = records_of(connection, study.path, question, RankingRecord, only=True)
    if not records:
        return None
    _, record = records[-1]
    return placed(unpack_names(record.items), record.place, record.group, items)


def placed(
    names: tuple[str, ...] | list[str],
    rank: NDArray[np.float64],
    group: NDArray[np.int32],
    items: tuple[str, ...],
) -> TrueRanking:
    """Reorder a ranking for `items`; items without a rank get NaN."""
    index = positions_of(items, names)
    ranked = index >= 0
    return TrueRanking(
        np.where(ranked, rank[index], np.nan), np.where(ranked, group[index], -1).astype(np.int32)
    )
