"""Ground-truth rankings of items in a study."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.pairs.ranking_agreement import TrueRanking
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError, counted, plain
from raterscope.app.formats.pairs.true_rankings import RankingTable
from raterscope.app.study.arrivals import number_import
from raterscope.app.study.objects import write_object
from raterscope.app.study.packing import names_of, packed, records_of
from raterscope.app.study.study import Study

__all__ = ["add_true_ranking", "placed", "true_ranking_of"]


@dataclass(frozen=True, eq=False)
class RankingRecord:
    """What one import knows of the order of items.

    Attributes
    ----------
    items : (B,) uint8
        Their names, see `packing.packed`.
    place : (n,) float64
    group : (n,) int32
    """

    items: NDArray[np.uint8]
    place: NDArray[np.float64]
    group: NDArray[np.int32]


def add_true_ranking(study: Study, table: RankingTable, watch: Watch = silent) -> str:
    """Store the ranking of the question that compares most of its items; the last one stored counts.

    Returns
    -------
    str
        What came in, in a sentence.

    Raises
    ------
    InputError
        When no question compares two of its items.
    """
    known = set(table.items)
    met = {one: len(known & set(study.bench(one.id).items)) for one in study.pair_questions()}
    question = max(met, key=lambda one: met[one], default=None)
    if question is None or met[question] < 2:
        raise InputError(
            "ranks items that nobody compared in the study; import the comparisons first", file=table.path
        )
    record = RankingRecord(packed(table.items), table.place, table.group)
    with study.change() as connection:
        imported = number_import(connection, "true ranking", table.path.name, ())
        connection.execute(
            "INSERT INTO votes(question, import, truth, object) VALUES (?, ?, 1, ?)",
            (question.id, imported, write_object(connection, record, watch)),
        )
    return (
        f"ground-truth ranks of {counted(len(table.items), 'item')}, "
        f"{met[question]:,} of them compared in {plain(question.name)}."
    )


def true_ranking_of(study: Study, question: int, items: tuple[str, ...]) -> TrueRanking | None:
    """Give the last imported ranking of a question, for its items in their order; None without any."""
    with study.sound() as connection:
        records = records_of(connection, study.path, question, RankingRecord, only=True)
    if not records:
        return None
    _, record = records[-1]
    return placed(names_of(record.items), record.place, record.group, items)


def placed(
    names: tuple[str, ...] | list[str],
    place: NDArray[np.float64],
    group: NDArray[np.int32],
    items: tuple[str, ...],
) -> TrueRanking:
    """Put a ranking into the order of `items`; those that it does not know have no place."""
    at = {name: number for number, name in enumerate(names)}
    index = np.array([at.get(name, -1) for name in items], dtype=np.int64)
    there = index >= 0
    return TrueRanking(
        np.where(there, place[index], np.nan), np.where(there, group[index], -1).astype(np.int32)
    )
