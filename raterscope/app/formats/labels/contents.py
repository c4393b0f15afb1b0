"""Columns that hold what annotators saw of a task: texts, sounds, films, pages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from raterscope.algorithms.progress import Watch
from raterscope.app.errors import InputError
from raterscope.app.formats.labels.columns import Columns, Head, read_columns
from raterscope.app.formats.long_tables import Coded
from raterscope.app.formats.records import TaskContents
from raterscope.app.formats.tables import LONGEST_NAME, Table, UnknownColumns, assign_columns

LONGEST_TEXT = 100_000
"""Letters of a content that are kept."""

CONTENT = "content"
"""Field of a column with contents of tasks."""

MOST_FIELDS = 20
_SHORT = 120
_WORDS = (
    "text|sentence|tweet|passage|paragraph|document|context|prompt|instruction|query|response|reply|completion|"
    "output|answer|summary|title|headline|description|caption|abstract|comment|html|markdown|audio|sound|video|"
    "url|link|address"
)
_FIELDS = re.compile(
    rf"(input[.:_ ])?({_WORDS})([ _.-]?(url|file|path|text|[a-z]|\d{{1,2}}))?", re.IGNORECASE
)


def content_columns(
    table: Table, assigned: Mapping[str, str], mapping: Mapping[str, str] | None = None
) -> list[str]:
    """List the columns with contents of tasks.

    `assigned`: columns with another meaning, by field. `mapping`: meanings of columns, named by hand:
    "content" or another.
    """
    by_hand = mapping or {}
    free = [name for name in table.header if name not in assigned.values() and name not in by_hand]
    usual = {name for name in free if _FIELDS.fullmatch(name.strip())}
    return [name for name in table.header if name in usual or by_hand.get(name) == CONTENT][:MOST_FIELDS]


def without_contents(mapping: Mapping[str, str] | None) -> dict[str, str]:
    """Return a mapping in which columns with contents have no other meaning."""
    return {name: "ignore" if field == CONTENT else field for name, field in (mapping or {}).items()}


def find_contents(table: Table) -> dict[str, str] | None:
    """Return the column of the task in a table with nothing but tasks and their contents; else None."""
    try:
        column = assign_columns(table, ("task",), ("picture",), None)
    except UnknownColumns:
        return None
    return {"task": column["task"]} if content_columns(table, {"task": column["task"]}) else None


def read_contents(head: Head, mapping: Mapping[str, str] | None, watch: Watch) -> tuple[TaskContents, ...]:
    """Read a table of tasks and their contents; `mapping` is as in `content_columns`."""
    column = assign_columns(head.table, ("task",), (), without_contents(mapping))
    names = content_columns(head.table, column, mapping)
    columns = read_columns(head, column | {name: name for name in names}, watch)
    shorten_tasks(columns, column["task"])
    contents = contents_of(columns, names)
    if contents is None:
        raise InputError("names no task with a content", file=head.table.path, field=column["task"])
    return (replace(contents, columns={column["task"]: "task", **contents.columns}),)


def contents_of(columns: Columns, names: Sequence[str]) -> TaskContents | None:
    """Return the contents of each task, the first ones of a task; None if there are none."""
    task = columns.coded["task"]
    fields: dict[str, Mapping[str, str]] = {}
    for name in names:
        fields[name] = _first_texts(task, columns.coded[name])
    full = columns.full_names
    if full:
        fields = {_unused("text", fields): full} | fields
    filled = {name: texts for name, texts in fields.items() if texts}
    fields_read = dict.fromkeys(names, CONTENT)
    return TaskContents(columns.head.table.path, filled, columns=fields_read) if filled else None


def shorten_tasks(columns: Columns, header: str) -> None:
    """Shorten names that are whole texts, if the column is one of contents, and keep the texts."""
    task = columns.coded["task"]
    if not _FIELDS.fullmatch(header.strip()) or max(map(len, task.names), default=0) <= LONGEST_NAME:
        return
    used = {name for name in task.names if len(name) <= LONGEST_NAME}
    names: list[str] = []
    for name in task.names:
        if len(name) > LONGEST_NAME:
            short = _unused(f"{' '.join(name[: 2 * _SHORT].split())[:_SHORT]}…", used)
            columns.full_names[short] = name[:LONGEST_TEXT]
            used.add(short)
            name = short
        names.append(name)
    columns.coded["task"] = Coded(names, task.numbers)


def _first_texts(task: Coded, text: Coded) -> dict[str, str]:
    """Return the first text that is not empty of each task."""
    filled = np.array([bool(name) for name in text.names], dtype=bool)
    rows = np.flatnonzero(filled[text.numbers]) if len(filled) else np.empty(0, dtype=np.int64)
    tasks, first = np.unique(task.numbers[rows], return_index=True)
    numbers = text.numbers[rows[first]]
    return {
        task.names[at]: text.names[number][:LONGEST_TEXT]
        for at, number in zip(tasks.tolist(), numbers.tolist(), strict=True)
        if task.names[at] and text.names[number] != task.names[at]
    }


def _unused(name: str, used: Mapping[str, object] | set[str]) -> str:
    number, free = 1, name
    while free in used:
        number += 1
        free = f"{name} ({number})"
    return free
