"""Files of labels read together, and brought into a study in an order that works: votes, then truths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import plain
from raterscope.app.formats.labels import FIELDS, read_labels
from raterscope.app.formats.labels.records import LabelTable, TrueLabels
from raterscope.app.formats.pairs import read_pairs
from raterscope.app.formats.sources import Sources
from raterscope.app.formats.tables import UnknownColumns
from raterscope.app.study import Study
from raterscope.app.study.labels import add_true_labels, add_votes

__all__ = [
    "are_of_labels",
    "likelier",
    "names_of",
    "read_label_files",
    "store_labels",
    "tasks_of",
]

Tables = tuple[LabelTable | TrueLabels, ...]

_OF_LABELS = {name for name, _, _ in FIELDS} - {"annotator", "time"}
_PAIR = {"left", "right"}


def are_of_labels(mapping: Mapping[str, str] | None) -> bool:
    """Tell whether columns were named by hand as a table of labels has them."""
    return not _OF_LABELS.isdisjoint((mapping or {}).values())


def likelier(unknown: UnknownColumns) -> UnknownColumns:
    """Ask for the columns of labels or pairs, where an unknown header is not likely to be one of clicks."""
    assert unknown.file is not None
    places = [
        name
        for at, name in enumerate(unknown.header)
        if name not in unknown.guess and all(_is_number(row[at]) for row in unknown.rows)
    ]
    if not {"x", "y"} <= set(unknown.missing) or len(places) > 1:
        return unknown
    try:
        if {name.casefold().strip() for name in unknown.header} >= _PAIR:
            read_pairs(unknown.file)
        else:
            read_labels(unknown.file)
    except UnknownColumns as other:
        return other
    return unknown


def read_label_files(
    paths: Sequence[Path],
    *,
    truth: bool = False,
    mappings: Mapping[Path, Mapping[str, str]] | None = None,
    annotator: str | None = None,
    sources: Sources | None = None,
    watch: Watch = silent,
) -> Tables:
    """Read the labels of some files, all or none; see `formats.labels.read_labels`.

    Parameters
    ----------
    paths : sequence of Path
    truth : bool
        All of them are true labels.
    mappings : mapping of file to {column: field}, optional
    annotator : str, optional
        Who gave the labels of files that do not tell.
    sources : Sources, optional
        Where the files are open already.
    watch : Watch
    """
    found: list[LabelTable | TrueLabels] = []
    sources = Sources() if sources is None else sources
    for done, path in enumerate(paths):
        step = part(watch, done / len(paths), (done + 1) / len(paths))
        step(0.0, f"reading {plain(path.name)}")
        mapping = (mappings or {}).get(path)
        found += read_labels(sources.open(path), mapping, step, truth=truth, annotator=annotator)
    return tuple(found)


def names_of(tables: Sequence[LabelTable | TrueLabels]) -> list[str]:
    """List the names of tasks, and of the files that are said to show them."""
    names: list[str] = []
    for table in tables:
        names += table.tasks
        names += table.pictures.values() if isinstance(table, LabelTable) else ()
    return names


def tasks_of(study: Study) -> tuple[str, ...]:
    """List the names of a study's tasks, and of the files that are said to show them."""
    crowds = [study.crowd(question.id) for question in study.questions()]
    return tuple(
        name for crowd in crowds for names in (crowd.tasks, crowd.pictures) for name in names if name
    )


def store_labels(tables: Sequence[LabelTable | TrueLabels], study: Study, watch: Watch = silent) -> list[str]:
    """Bring labels into a study, the votes first.

    Returns
    -------
    list of str
        What came in, a sentence or more each.
    """
    sentences = []
    in_order = sorted(tables, key=lambda table: isinstance(table, TrueLabels))
    for done, table in enumerate(in_order):
        step = part(watch, done / len(in_order), (done + 1) / len(in_order))
        if isinstance(table, LabelTable):
            said = add_votes(study, table, step)
        else:
            said = add_true_labels(study, table, step)
        sentences.append(f"{plain(table.path.name)}: {said}")
    return sentences


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return False
    return True
