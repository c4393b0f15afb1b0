"""Readers of pairs, one module a format. `read_pairs` tells what a file is and reads it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError
from raterscope.app.formats.pair_records import PairTable
from raterscope.app.formats.pairs.table import FIELDS

__all__ = ["FIELDS", "read_pairs", "tells"]


def tells(path: Path | str) -> bool:
    """Tell by a file's header whether it holds comparisons of pairs.

    Returns
    -------
    bool
        False also for what cannot be read.
    """
    from raterscope.app.formats.labels.columns import head_of
    from raterscope.app.formats.pairs.table import tells_table

    try:
        return tells_table(head_of(Path(path)).table)
    except InputError:
        return False


def read_pairs(
    path: Path | str, mapping: Mapping[str, str] | None = None, watch: Watch = silent
) -> tuple[PairTable, ...]:
    """Read the comparisons of a file.

    Parameters
    ----------
    path : Path
    mapping : mapping of column to field, optional
        Names columns of a table by hand: see `FIELDS`; and ignore.
    watch : Watch

    Returns
    -------
    tuple of PairTable
        One for each question that the file asks.

    Raises
    ------
    UnknownColumns
        When a table's columns must be named by hand.
    InputError
        When the file cannot be read, in a sentence that says where and why.
    """
    from raterscope.app.errors import plain
    from raterscope.app.formats.labels.columns import head_of
    from raterscope.app.formats.pairs.table import pairs_of

    path = Path(path)
    watch(0.0, f"reading {plain(path.name)}")
    return pairs_of(head_of(path), mapping, watch)
