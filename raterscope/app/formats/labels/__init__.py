"""Readers of labels, one module a format. `read_labels` detects the format and reads the file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError
from raterscope.app.formats.annotations import Content
from raterscope.app.formats.labels.collector import take_labels
from raterscope.app.formats.labels.table import FIELDS
from raterscope.app.formats.records import LabelTable, TrueLabels
from raterscope.app.formats.sources import File, open_source
from raterscope.app.formats.tables import Table, UnknownColumns, assign

__all__ = ["FIELDS", "find_labels", "read_labels"]

_DOCUMENTS = (".json", ".xml")
_MARKED: frozenset[Content] = frozenset({"points", "areas", "marks"})


def find_labels(file: File, *, alone: bool = True) -> Literal["labels", "truth"] | None:
    r"""Find out by a table's first rows, or by all of a JSON or XML file, whether it holds labels.

    Parameters
    ----------
    file : Path or Source
    alone : bool
        Whether a file with marks on images beside the labels is none of labels.

    Returns
    -------
    "labels", "truth" or None
        None also for what cannot be read.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "votes.csv"
    ...     _ = file.write_text("annotator,task,label\nkim,cell 1,infected\n", encoding="utf-8")
    ...     find_labels(file)
    'labels'
    """
    source = open_source(file)
    path = source.path
    try:
        if path.suffix.casefold() in _DOCUMENTS:
            return _labels_beside(source.contents("labels") or frozenset(), alone)
        from raterscope.app.formats.labels.table import annotators_of, tells_table
        from raterscope.app.formats.zooniverse import ZooniverseDocument, is_export

        table = source.head().table
        if is_export(table):
            return _labels_beside(ZooniverseDocument(table).contents(), alone)
        return "labels" if annotators_of(table) else tells_table(table)
    except InputError:
        return None


def read_labels(
    file: File,
    mapping: Mapping[str, str] | None = None,
    watch: Watch = silent,
    *,
    truth: bool = False,
    annotator: str | None = None,
) -> tuple[LabelTable | TrueLabels, ...]:
    r"""Read the labels of a file, whose format is detected from its content.

    Parameters
    ----------
    file : Path or Source
    mapping : mapping of column to field, optional
        Names columns of a table by hand: see `FIELDS`. In a table with a column an annotator, each of these
        is "votes".
    watch : Watch
    truth : bool
        Take a table's labels for the true ones, whoever gave them.
    annotator : str, optional
        Who gave the labels of a JSON or XML file that does not tell; by default the file's name.

    Returns
    -------
    tuple of LabelTable and TrueLabels
        One of a kind for each question that the file asks.

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
    ...     file = Path(folder) / "votes.csv"
    ...     _ = file.write_text("annotator,task,label\nkim,cell 1,infected\n", encoding="utf-8")
    ...     (table,) = read_labels(file)
    >>> table.annotators, table.tasks
    (('kim',), ('cell 1',))
    """
    source = open_source(file)
    path = source.path
    if path.suffix.casefold() in _DOCUMENTS:
        document = source.document()
        if document is None or "labels" not in document.expected:
            raise InputError(
                "holds no labels that Raterscope reads; expected a table, or a file of Label Studio, CVAT or"
                " COCO",
                file=path,
            )
        return take_labels(path, document, annotator or path.stem, watch)
    from raterscope.app.formats.labels.table import annotators_of, labels_of, tells_table, truth_of, votes_of
    from raterscope.app.formats.zooniverse import ZooniverseDocument, is_export

    watch(0.0, f"reading {path.name}")
    head = source.head()
    if is_export(head.table) and not mapping:
        return take_labels(path, ZooniverseDocument(source.table(watch)), path.stem, watch)
    if annotators_of(head.table, mapping) and not truth:
        return votes_of(source.table(watch), mapping, watch)
    told = {field for field in (mapping or {}).values() if field != "ignore"}
    if truth or (told and told <= {"task", "label", "truth"} and not _is_by_many(head.table, mapping)):
        return truth_of(head, mapping, watch)
    if not mapping and tells_table(head.table) == "truth":
        return truth_of(head, None, watch)
    return labels_of(head, mapping, watch)


def _labels_beside(contents: frozenset[Content], alone: bool) -> Literal["labels"] | None:
    """Tell whether there are labels, and where they must be alone, no marks on images."""
    return "labels" if "labels" in contents and not (alone and contents & _MARKED) else None


def _is_by_many(table: Table, mapping: Mapping[str, str] | None) -> bool:
    """Tell whether a column that was not named by hand is known as the annotator."""
    try:
        assign(table, ("annotator",), (), dict.fromkeys(mapping or (), "ignore"))
    except UnknownColumns:
        return False
    return True
