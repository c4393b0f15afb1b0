"""Readers of labels. `read_labels` detects the format and reads the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import numpy as np

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError
from raterscope.app.formats.annotations import Content
from raterscope.app.formats.labels.columns import read_contents
from raterscope.app.formats.labels.programs import holds_probabilities, read_probabilities
from raterscope.app.formats.labels.table import (
    FIELDS,
    VOTES,
    detect_labels,
    explain_few_rows,
    find_annotator_columns,
    read_label_table,
    read_true_labels,
    read_wide_table,
)
from raterscope.app.formats.labels.tags import TAGS, columns_as_tags, split_tags
from raterscope.app.formats.labels.votes import collect_labels, no_label_notice
from raterscope.app.formats.records import LabelFile, LabelTable, TrueLabels
from raterscope.app.formats.sources import File, Source, may_hold_annotations, open_source
from raterscope.app.formats.table_files import Head
from raterscope.app.formats.tables import Table, UnknownColumns, assign_columns, find_columns

__all__ = ["FIELDS", "TAGS", "VOTES", "find_labels", "read_labels", "split_tags"]

_MARKED: frozenset[Content] = frozenset({"points", "areas", "marks"})


def find_labels(file: File, *, alone: bool = True) -> Literal["labels", "truth", "contents"] | None:
    r"""Detect whether a file contains labels, true labels or contents of tasks (shown to annotators).

    A table is judged by its first rows, a JSON or XML file completely. `alone`: whether to reject a file that
    also holds marks on images. The result is None for any other file, and for one that cannot be read.
    """
    source = open_source(file)
    path = source.path
    try:
        if may_hold_annotations(path):
            if source.document() is None and path.suffix.casefold() == ".json":
                return detect_labels(source.records().table)
            return _labels_among(source.contents("labels") or frozenset(), alone)
        from raterscope.app.formats.zooniverse import ZooniverseDocument, is_export

        table = source.head().table
        if is_export(table):
            return _labels_among(ZooniverseDocument(table).contents(), alone)
        if holds_probabilities(table) or find_annotator_columns(table):
            return "labels"
        return detect_labels(table)
    except InputError:
        return None


def read_labels(
    file: File,
    mapping: Mapping[str, str] | None = None,
    watch: Watch = silent,
    *,
    truth: bool = False,
    annotator: str | None = None,
) -> tuple[LabelFile, ...]:
    r"""Read the labels of a file, whose format is detected from its content.

    `mapping`: fields of a table's columns, named by hand: see `FIELDS`. In a table with one column per
    annotator, each of these columns is "votes"; a column of several tags is "tags".
    `truth`: whether to read a table's labels as true labels, even if they name annotators.
    `annotator`: annotator of a JSON or XML file, or of class probabilities, if the file names none; by
        default the file's name.
    There is at most one table of labels and one of true labels for each question of the file. `split_tags`
        makes a question of each tag.
    Raises `UnknownColumns` if a table's columns must be named by hand.
    Raises `InputError` if the file cannot be read; the message contains file, line and field.
    """
    by_tags = [name for name, field in (mapping or {}).items() if field == TAGS]
    named = bool({TAGS, "label", VOTES} & set((mapping or {}).values()))
    if by_tags:
        mapping = {**(mapping or {}), **dict.fromkeys(by_tags, "label")}
    tables = _read(open_source(file), mapping, watch, truth=truth, annotator=annotator)
    if len(by_tags) > 1:
        return columns_as_tags(tables)
    if not named:
        return tables
    return tuple(
        replace(table, tags=bool(by_tags)) if isinstance(table, LabelTable) else table for table in tables
    )


def _read(
    source: Source, mapping: Mapping[str, str] | None, watch: Watch, *, truth: bool, annotator: str | None
) -> tuple[LabelFile, ...]:
    """Read the labels of a file as `read_labels`, several tags of a vote as one label."""
    path = source.path
    if may_hold_annotations(path):
        document = source.document()
        if document is None and find_labels(source) is not None:
            return _read_rows(source.records(), mapping, watch, truth=truth, annotator=annotator)
        if document is None or "labels" not in document.expected:
            raise InputError(
                "contains no readable labels; expected a table, or a file of Label Studio, CVAT or COCO",
                file=path,
            )
        return collect_labels(path, document, annotator or path.stem, watch)
    from raterscope.app.formats.zooniverse import ZooniverseDocument, is_export

    watch(0.0, f"reading {path.name}")
    head = source.head()
    if is_export(head.table) and not mapping:
        return collect_labels(path, ZooniverseDocument(source.table(watch)), path.stem, watch)
    if not mapping and not truth and holds_probabilities(head.table):
        return (read_probabilities(source.table(watch), annotator or path.stem),)
    if find_annotator_columns(head.table, mapping) and not truth:
        return read_wide_table(source.table(watch), mapping, watch)
    try:
        return _read_rows(head, mapping, watch, truth=truth, annotator=annotator)
    except UnknownColumns as unknown:
        raise (None if mapping else explain_few_rows(head.table)) or unknown from None


def _read_rows(
    head: Head, mapping: Mapping[str, str] | None, watch: Watch, *, truth: bool, annotator: str | None
) -> tuple[LabelFile, ...]:
    """Read a table with one label, or one true label, per row."""
    from raterscope.app.formats import is_named_truth

    fields = {field for field in (mapping or {}).values() if field != "ignore"}
    if truth or (
        fields and fields <= {"task", "label", "truth"} and not _has_annotators(head.table, mapping)
    ):
        return read_true_labels(head, mapping, watch)
    if "content" in fields and fields <= {"task", "content"}:
        return read_contents(head, mapping, watch)
    detected = None if mapping else detect_labels(head.table)
    if detected == "truth":
        labels = read_true_labels(head, None, watch)
        is_true = is_named_truth(head.table.path) or find_columns(head.table, ("task", "truth")) is not None
        if annotator is None or is_true:
            return labels
        return tuple(_votes_of(annotator, table) for table in labels)
    if detected == "contents":
        return read_contents(head, None, watch)
    return read_label_table(head, mapping, watch)


def _votes_of(annotator: str, table: TrueLabels) -> LabelTable:
    """Return labels without annotators as the votes of a given one."""
    tasks = (*table.tasks, *table.unlabelled)
    known, unlabelled = len(table.tasks), len(table.unlabelled)
    missing = np.column_stack([np.zeros(unlabelled), np.arange(known, len(tasks))]).astype(np.int32)
    return LabelTable(
        path=table.path, question=table.question, annotators=(annotator,), tasks=tasks, outputs=table.classes,
        annotator=np.zeros(known, dtype=np.int32), task=np.arange(known, dtype=np.int32), label=table.label,
        notices=(*table.notices, *([no_label_notice(unlabelled)] if unlabelled else [])),
        columns=table.columns, missing=unlabelled, unlabelled=missing,
    )  # fmt: skip


def _labels_among(contents: frozenset[Content], alone: bool) -> Literal["labels"] | None:
    """Return "labels" if there are labels, and no marks on images if they must be alone."""
    return "labels" if "labels" in contents and not (alone and contents & _MARKED) else None


def _has_annotators(table: Table, mapping: Mapping[str, str] | None) -> bool:
    """Return whether a column that was not named by hand is recognised as the annotator."""
    try:
        assign_columns(table, ("annotator",), (), dict.fromkeys(mapping or (), "ignore"))
    except UnknownColumns:
        return False
    return True
