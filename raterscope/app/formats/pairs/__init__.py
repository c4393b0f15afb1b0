"""Readers of pairs. `read_pairs` reads a file."""

from __future__ import annotations

from collections.abc import Mapping

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.pairs.table import FIELDS, find_ambiguous_columns, holds_pairs, read_pair_table
from raterscope.app.formats.records import PairTable
from raterscope.app.formats.sources import File, Source, open_source

__all__ = ["FIELDS", "explain_assumed_kind", "has_pairs", "read_pairs"]


def has_pairs(file: File) -> bool:
    r"""Detect whether a table contains comparisons, by its header, or if that is ambiguous by its rows.

    The result is False for a file that cannot be read.
    """
    from raterscope.app.formats.label_studio import LabelStudioDocument

    try:
        source = open_source(file)
        if _is_json(source):
            document = source.document()
            if isinstance(document, LabelStudioDocument):
                return document.holds_comparisons()
            return document is None and holds_pairs(source.records().table)
        return holds_pairs(source.head().table)
    except InputError:
        return False


def explain_assumed_kind(file: File) -> str:
    """Explain the assumed kind of a table whose header fits comparisons and labels.

    The text is empty if the header is unambiguous, and for a file that cannot be read.
    """
    source = open_source(file)
    try:
        table = source.head().table
    except InputError:
        return ""
    column = find_ambiguous_columns(table)
    if column is None:
        return ""
    left, right, choice = (plain(column[field], 30) for field in ("left", "right", "choice"))
    kind, verb, other = ("labels", "does not choose", "pairs")
    if holds_pairs(table):
        kind, verb, other = ("pairs", "chooses", "labels")
    name = plain(source.path.name)
    return (
        f"{name} was read as {kind}, because {choice} {verb} between {left} and {right}: "
        f"if it holds {other}, rename these columns, or import it with --kind {other}."
    )


def read_pairs(
    file: File, mapping: Mapping[str, str] | None = None, watch: Watch = silent
) -> tuple[PairTable, ...]:
    r"""Read the comparisons of a file, one table for each question.

    `mapping`: fields of a table's columns, named by hand: see `FIELDS`; and ignore.
    Raises `UnknownColumns` if a table's columns must be named by hand.
    Raises `InputError` if the file cannot be read; the message contains file, line and field.
    """
    source = open_source(file)
    watch(0.0, f"reading {plain(source.path.name)}")
    return read_pair_table(source.records() if _is_json(source) else source.head(), mapping, watch)


def _is_json(source: Source) -> bool:
    return source.path.suffix.casefold() == ".json"
