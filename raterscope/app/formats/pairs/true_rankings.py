"""Tables of a ground-truth ranking of items: item, rank and perhaps group."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError
from raterscope.app.formats.sources import File, open_source
from raterscope.app.formats.tables import Faults, Table, names

__all__ = ["RankingTable", "holds_ranking", "read_ranking"]

_ITEM = ("item", "object", "image", "option", "model", "name", "id")
_RANK = ("rank", "truerank", "true_rank", "groundtruthrank", "ground_truth_rank")
_GROUP = ("group",)
_OTHERS = {
    "annotator", "worker", "rater", "user", "judge", "left", "right", "label", "choice", "x", "y",
    "rank_corrected",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class RankingTable:
    """A ground-truth ranking from one file.

    Attributes
    ----------
    path : Path
    items : tuple of n names
    place : (n,) float64
        Ranks, the best first.
    group : (n,) int32
        Items of different groups are not ordered; all 0 without such a column.
    """

    path: Path
    items: tuple[str, ...]
    place: NDArray[np.float64]
    group: NDArray[np.int32]


def holds_ranking(file: File) -> bool:
    """Find out by its header whether a table holds a ranking: items and ranks, and no annotator.

    Parameters
    ----------
    file : Path or Source
    """
    try:
        table = open_source(file).head().table
    except InputError:
        return False
    columns = _columns(table)
    return {"item", "rank"} <= columns.keys() and _OTHERS.isdisjoint(one.casefold() for one in table.header)


def read_ranking(file: File, watch: Watch = silent) -> RankingTable:
    """Read a ranking.

    Raises
    ------
    InputError
        Where a column is missing, a rank is no number, or an item stands twice.
    """
    table = open_source(file).table(watch)
    path = table.path
    columns = _columns(table)
    for needed in ("item", "rank"):
        if needed not in columns:
            raise InputError(
                f"has no column {needed}; expected item, rank and perhaps group, the best item with the "
                "lowest rank", file=path,
            )  # fmt: skip
    faults = Faults(table)
    items = names(table, columns["item"], faults)
    place = [_rank(cell) for cell in table.column(columns["rank"])]
    faults.add(
        (row for row, rank in enumerate(place) if not math.isfinite(rank)), columns["rank"],
        '"{cell}" is no rank; expected a number, the best item with the lowest',
    )  # fmt: skip
    faults.add(
        _repeated(items), columns["item"],
        "{cell} is ranked twice; expected each item once",
    )  # fmt: skip
    group = names(table, columns["group"], faults) if "group" in columns else [""] * len(items)
    faults.refuse()
    number = {name: at for at, name in enumerate(dict.fromkeys(group))}
    return RankingTable(
        path, tuple(items), np.asarray(place, dtype=np.float64),
        np.array([number[name] for name in group], dtype=np.int32),
    )  # fmt: skip


def _repeated(items: list[str]) -> list[int]:
    first: dict[str, int] = {}
    return [row for row, name in enumerate(items) if first.setdefault(name, row) != row]


def _rank(cell: str) -> float:
    try:
        return float(cell.strip().replace(",", "."))
    except ValueError:
        return math.nan


def _columns(table: Table) -> Mapping[str, str]:
    found = {}
    for field, words in (("item", _ITEM), ("rank", _RANK), ("group", _GROUP)):
        there = [one for one in table.header if one.casefold().replace(" ", "_") in words]
        if there:
            found[field] = there[0]
    return found
