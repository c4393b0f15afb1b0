"""Readers of pairs, one module a format. `read_pairs` tells what a file is and reads it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError
from raterscope.app.formats.pairs.records import PairTable
from raterscope.app.formats.pairs.table import FIELDS

__all__ = ["FIELDS", "read_pairs", "taken_for", "tells"]


def tells(path: Path | str) -> bool:
    """Tell by a file's header, and by its first rows where that is not plain, whether it holds comparisons.

    Returns
    -------
    bool
        False also for what cannot be read.
    """
    from raterscope.app.formats.labels.columns import head_of
    from raterscope.app.formats.pairs.telling import tells_table

    try:
        return tells_table(head_of(Path(path)).table)
    except InputError:
        return False


def taken_for(path: Path | str) -> str:
    """Say what a table was taken for whose header is of comparisons and of labels, and how to say otherwise.

    Returns
    -------
    str
        A sentence; empty where the header tells it, and for what cannot be read.
    """
    from raterscope.app.errors import plain
    from raterscope.app.formats.labels.columns import head_of
    from raterscope.app.formats.pairs.telling import either, tells_table

    try:
        table = head_of(Path(path)).table
    except InputError:
        return ""
    column = either(table)
    if column is None:
        return ""
    left, right, choice = (plain(column[field], 30) for field in ("left", "right", "choice"))
    taken, how, other = ("labels", "does not choose", "pairs")
    if tells_table(table):
        taken, how, other = ("pairs", "chooses", "labels")
    return (
        f"{plain(Path(path).name)} was taken for {taken}, because {choice} {how} between {left} and {right}: "
        f"if it holds {other}, rename these columns, or import it with --kind {other}."
    )


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
