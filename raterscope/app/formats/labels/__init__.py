"""Readers of labels, one module a format. `read_labels` tells what a file is and reads it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError
from raterscope.app.formats.labels.records import LabelTable, TrueLabels
from raterscope.app.formats.labels.table import FIELDS
from raterscope.app.formats.tables import Table, UnknownColumns, assign

__all__ = ["FIELDS", "read_labels", "tells"]

_MARKS = (".json", ".xml")


def tells(path: Path | str, *, alone: bool = True) -> Literal["labels", "truth"] | None:
    """Tell by a file's first rows, or by all of a JSON or XML file, whether it holds labels or true labels.

    Parameters
    ----------
    path : Path
    alone : bool
        Whether a file with marks of another kind beside the labels is none of labels.

    Returns
    -------
    "labels", "truth" or None
        None also for what cannot be read.
    """
    path = Path(path)
    try:
        if path.suffix.casefold() in _MARKS:
            return "labels" if _is_of_labels(path, alone) else None
        from raterscope.app.formats.labels.columns import head_of
        from raterscope.app.formats.labels.table import tells_table
        from raterscope.app.formats.labels.wide import annotators_of
        from raterscope.app.formats.labels.zooniverse import asks
        from raterscope.app.formats.zooniverse import is_export

        table = head_of(path).table
        if is_export(table):
            return "labels" if asks(table, alone=alone) else None
        return "labels" if annotators_of(table) else tells_table(table)
    except InputError:
        return None


def read_labels(
    path: Path | str,
    mapping: Mapping[str, str] | None = None,
    watch: Watch = silent,
    *,
    truth: bool = False,
    annotator: str | None = None,
) -> tuple[LabelTable | TrueLabels, ...]:
    """Read the labels of a file, having looked what it is.

    Parameters
    ----------
    path : Path
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
    """
    path = Path(path)
    if path.suffix.casefold() in _MARKS:
        return _read_marks(path, annotator or path.stem, watch)
    from raterscope.app.formats.labels.columns import head_of
    from raterscope.app.formats.labels.table import labels_of, tells_table, truth_of
    from raterscope.app.formats.labels.wide import annotators_of, votes_of
    from raterscope.app.formats.tables import read_table
    from raterscope.app.formats.zooniverse import is_export

    watch(0.0, f"reading {path.name}")
    head = head_of(path)
    if is_export(head.table) and not mapping:
        from raterscope.app.formats.labels.zooniverse import answers_of

        return answers_of(read_table(path, watch), watch)
    if annotators_of(head.table, mapping) and not truth:
        return votes_of(read_table(path, watch), mapping, watch)
    told = {field for field in (mapping or {}).values() if field != "ignore"}
    if truth or (told and told <= {"task", "label", "truth"} and not _is_by_many(head.table, mapping)):
        return truth_of(head, mapping, watch)
    if not mapping and tells_table(head.table) == "truth":
        return truth_of(head, None, watch)
    return labels_of(head, mapping, watch)


def _is_by_many(table: Table, mapping: Mapping[str, str] | None) -> bool:
    """Tell whether a column that was not named by hand is known as the annotator."""
    try:
        assign(table, ("annotator",), (), dict.fromkeys(mapping or (), "ignore"))
    except UnknownColumns:
        return False
    return True


def _opened(path: Path) -> tuple[str, Any]:
    """Tell the format of a JSON or XML file; with what is in it."""
    from raterscope.app.formats.masks import coco, label_studio
    from raterscope.app.formats.strangers import read_json, read_xml

    if path.suffix.casefold() == ".xml":
        root = read_xml(path)
        return "cvat" if root.tag == "annotations" else "", root
    content = read_json(path)
    if label_studio.is_label_studio(content):
        return "label studio", content
    return "coco" if coco.is_coco(content) else "", content


def _is_of_labels(path: Path, alone: bool) -> bool:
    from raterscope.app.formats.labels import coco, cvat, label_studio

    kind, content = _opened(path)
    tests = {"cvat": cvat.has_tags, "label studio": label_studio.has_choices, "coco": coco.has_categories}
    return kind in tests and tests[kind](content, alone=alone)


def _read_marks(path: Path, annotator: str, watch: Watch) -> tuple[LabelTable | TrueLabels, ...]:
    from raterscope.app.formats.labels.coco import read_coco_labels
    from raterscope.app.formats.labels.cvat import read_cvat_tags
    from raterscope.app.formats.labels.label_studio import read_choices

    kind, content = _opened(path)
    readers = {"cvat": read_cvat_tags, "label studio": read_choices, "coco": read_coco_labels}
    if kind in readers:
        return readers[kind](path, content, annotator, watch)
    raise InputError(
        "holds no labels that Raterscope reads; expected a table, or a file of Label Studio, CVAT or COCO",
        file=path,
    )
