"""Readers of pairs, one module a format. `read_pairs` detects the format and reads the file."""

from __future__ import annotations

from collections.abc import Mapping

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError
from raterscope.app.formats.pairs.table import FIELDS
from raterscope.app.formats.records import PairTable
from raterscope.app.formats.sources import File, open_source

__all__ = ["FIELDS", "has_pairs", "read_pairs", "taken_for"]


def has_pairs(file: File) -> bool:
    r"""Find out by a table's header, or where that is ambiguous by its first rows, if it holds comparisons.

    Parameters
    ----------
    file : Path or Source

    Returns
    -------
    bool
        False also for what cannot be read.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "pairs.csv"
    ...     _ = file.write_text("annotator,left,right,choice\nkim,a,b,left\n", encoding="utf-8")
    ...     has_pairs(file)
    True
    """
    from raterscope.app.formats.pairs.table import tells_table

    try:
        return tells_table(open_source(file).head().table)
    except InputError:
        return False


def taken_for(file: File) -> str:
    """Say what a table was taken for whose header is of comparisons and of labels, and how to say otherwise.

    Returns
    -------
    str
        A sentence; empty where the header tells it, and for what cannot be read.
    """
    from raterscope.app.errors import plain
    from raterscope.app.formats.pairs.table import either, tells_table

    source = open_source(file)
    try:
        table = source.head().table
    except InputError:
        return ""
    column = either(table)
    if column is None:
        return ""
    left, right, choice = (plain(column[field], 30) for field in ("left", "right", "choice"))
    taken, how, other = ("labels", "does not choose", "pairs")
    if tells_table(table):
        taken, how, other = ("pairs", "chooses", "labels")
    name = plain(source.path.name)
    return (
        f"{name} was taken for {taken}, because {choice} {how} between {left} and {right}: "
        f"if it holds {other}, rename these columns, or import it with --kind {other}."
    )


def read_pairs(
    file: File, mapping: Mapping[str, str] | None = None, watch: Watch = silent
) -> tuple[PairTable, ...]:
    r"""Read the comparisons of a file.

    Parameters
    ----------
    file : Path or Source
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

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "pairs.csv"
    ...     _ = file.write_text("annotator,left,right,choice\nkim,a,b,left\n", encoding="utf-8")
    ...     (table,) = read_pairs(file)
    >>> table.items
    ('a', 'b')
    """
    from raterscope.app.errors import plain
    from raterscope.app.formats.pairs.table import pairs_of

    source = open_source(file)
    watch(0.0, f"reading {plain(source.path.name)}")
    return pairs_of(source.head(), mapping, watch)
