"""Export of the annotators of all kinds, of one study or of several, as one table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.progress import Watch, silent, steps_of
from raterscope.app.annotators.rules import RuleError, select_rows
from raterscope.app.annotators.table import AnnotatorTable, Column, read_annotators
from raterscope.app.errors import InputError, plain
from raterscope.app.exports import Export, Request
from raterscope.app.formats.output_files import format_number, write_table
from raterscope.app.kinds.registry import KINDS
from raterscope.app.program_files import STUDY_SUFFIX
from raterscope.app.study import Study


def _write(study: Study, request: Request, watch: Watch) -> list[Path]:
    return [write_annotators(request.path, [(study.path, read_annotators(study, watch))])]


ALL_ANNOTATORS = Export(
    "annotators", "Annotators of all kinds", of_run=False, kinds=tuple(KINDS), write=_write
)
"""Export of one study, as `export --what annotators --kind all`."""


def find_studies(paths: Sequence[Path]) -> list[Path]:
    """Return the studies among paths: files as they are, and all studies in folders and the folders in them.

    Raises `InputError` where there is none.
    """
    studies: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            studies |= dict.fromkeys(sorted(path.rglob(f"*{STUDY_SUFFIX}")))
        else:
            studies[path] = None
    if not studies:
        raise InputError(f"holds no study, no file that ends in {STUDY_SUFFIX}", file=paths[0])
    return list(studies)


def read_studies(
    paths: Sequence[Path], say: Callable[[str], object], watch: Watch = silent
) -> list[tuple[Path, AnnotatorTable]]:
    """Read the annotators of several studies. A study that cannot be read is named and skipped.

    Raises `InputError` where none can be read.
    """
    tables = []
    problems: list[InputError] = []
    for path, step in steps_of(watch, paths):
        try:
            with Study.open(path, to_read=True) as study:
                tables.append((path, read_annotators(study, step)))
        except InputError as error:
            problems.append(error)
            say(f"skipped: {error}")
    if not tables:
        raise problems[0]
    return tables


def write_annotators(path: Path, tables: Sequence[tuple[Path, AnnotatorTable]], where: str = "") -> Path:
    """Write one row per annotator and study, with all columns that any of the studies has.

    Raises `InputError` if it cannot be written, or the rule cannot be read.

    `where`: rule that selects rows; see `rules`. A column that a study lacks is unknown there.
    """
    named = len(tables) > 1
    columns = list(dict.fromkeys(name for _, table in tables for name in table.columns))
    last = ("accepted", "rejected", "excluded", "weight", "reason", "flagged", "flag_reason")
    columns = [name for name in columns if name not in last] + list(last)
    chosen = [_selected(table, where, tables) for _, table in tables]
    return write_table(path, [*(["study"] if named else []), *columns], _rows(tables, chosen, columns, named))


def _selected(
    table: AnnotatorTable, where: str, tables: Sequence[tuple[Path, AnnotatorTable]]
) -> NDArray[np.bool_]:
    columns = dict(table.columns)
    for _, other in tables:
        for name, column in other.columns.items():
            unknown = "" if column.dtype == object else np.nan
            columns.setdefault(name, np.full(len(table), unknown, dtype=column.dtype))
    try:
        return select_rows(where, columns, table.searched)
    except RuleError as error:
        raise InputError(f"the rule {plain(where)} cannot be read: {error}") from error


def _rows(
    tables: Sequence[tuple[Path, AnnotatorTable]],
    chosen: Sequence[NDArray[np.bool_]],
    columns: Sequence[str],
    named: bool,
) -> Iterator[Sequence[object]]:
    for (study, table), rows in zip(tables, chosen, strict=True):
        cells = [_texts(table.columns.get(name), rows) for name in columns]
        for row in zip(*cells, strict=True):
            yield (str(study), *row) if named else row


def _texts(column: Column | None, rows: NDArray[np.bool_]) -> list[str]:
    if column is None:
        return [""] * int(rows.sum())
    column = column[rows]
    if column.dtype == object:
        return [str(value) for value in column.tolist()]
    return [_text(value) for value in column.tolist()]


def _text(value: float) -> str:
    return f"{value:.0f}" if math.isfinite(value) and value == int(value) else format_number(value)
