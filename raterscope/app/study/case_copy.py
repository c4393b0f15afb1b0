"""Copies of whole studies within another study: images, annotations, results and decisions of a case.

Annotators are joined by name. A result lists its annotators in the order of their numbers in the study; if
this order differs between the two studies, the result is reordered. All other bytes are unchanged.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.app.errors import StudyError
from raterscope.app.review import Decision, NameSubject
from raterscope.app.review.subjects import SpotsSubject
from raterscope.app.study.arrays import copy_object, read_object, write_object
from raterscope.app.study.imports import number_annotators
from raterscope.app.study.kinds import STORED
from raterscope.app.study.labels import copy_contents
from raterscope.app.study.masks import store_codings, stored_codings
from raterscope.app.study.merging import MergedRuns
from raterscope.app.study.records import RunEntry
from raterscope.app.study.references import stored_path
from raterscope.app.study.rows import GRID, IMAGE, write_decision
from raterscope.app.study.study import Study

Rename = Callable[[str, str], str]
"""``rename(table, name)`` returns the name of an image or question in the other study."""


@dataclass
class _Numbers:
    """Numbers in the other study by numbers in the case: images, questions, annotators, imports, runs."""

    images: dict[int, int]
    questions: dict[int, int]
    annotators: NDArray[np.int64]
    imports: dict[int, int]
    runs: dict[int, int]

    def item(self, kind: str, number: int) -> int:
        """Return the number of an item."""
        return (self.questions if STORED[kind].by_question else self.images)[number]

    @property
    def same_annotators(self) -> bool:
        """Whether all annotators have the same numbers in both studies."""
        return bool((self.annotators == np.arange(len(self.annotators))).all())

    @property
    def same_order(self) -> bool:
        """Whether the annotators have the same order in both studies."""
        return bool((np.diff(self.annotators) > 0).all())


def copy_case(source: Study, target: Study, rename: Rename, runs: MergedRuns) -> dict[tuple[str, int], int]:
    """Copy a study into another within the current change; return the items with results.

    The source does not change. The shown result of each item is copied. Decisions on items are copied.
    Decisions that exclude, include or down-weight annotators concern the whole study, and are not copied.

    `rename`: returns names that the other study does not have. `runs`: runs of the other study that receive
    the results. The items in the target are by kind and item of the source.
    """
    with source.reading() as old, target.change() as new:
        target.forget_annotators()
        names = source.annotators()
        known = number_annotators(new, names)
        numbers = _Numbers({}, {}, np.array([known[name] for name in names], dtype=np.int64), {}, {})
        for number, *row in old.execute("SELECT id, kind, file, at, notices FROM imports ORDER BY id"):
            numbers.imports[number] = _insert(new, "imports", ("kind", "file", "at", "notices"), row)
        renamed = _copy_images(source, target, new, rename, numbers)
        renamed |= _copy_questions(old, new, rename, numbers)
        _copy_annotations(source, old, new, numbers)
        store_codings(target, new, stored_codings(source))
        copied = _copy_results(source, old, new, renamed, numbers, runs)
        last = _copy_decisions(source, target, new, numbers)
        runs.set_known(last)
    return copied


def _insert(connection: sqlite3.Connection, table: str, columns: tuple[str, ...], row: Any) -> int:
    marks = ", ".join("?" * len(columns))
    (number,) = connection.execute(
        f"INSERT INTO {table}({', '.join(columns)}) VALUES ({marks}) RETURNING id", tuple(row)
    ).fetchone()
    return int(number)


def _copy_images(
    source: Study, target: Study, new: sqlite3.Connection, rename: Rename, numbers: _Numbers
) -> dict[tuple[str, str], str]:
    renamed = {}
    for entry in source.images():
        name = renamed["images", entry.name] = rename("images", entry.name)
        path = None if entry.path is None else stored_path(source.path.parent / entry.path, target.path)
        row = (name, path, entry.width, entry.height, entry.size, entry.digest, entry.pixel_size)
        numbers.images[entry.id] = _insert(new, "images", IMAGE[1:], row)
    with source.reading() as old:
        for image, *row in old.execute(f"SELECT image, {', '.join(GRID)} FROM grids").fetchall():
            marks = ", ".join("?" * (1 + len(GRID)))
            new.execute(
                f"INSERT INTO grids(image, {', '.join(GRID)}) VALUES ({marks})", (numbers.images[image], *row)
            )
    return renamed


def _copy_questions(
    old: sqlite3.Connection, new: sqlite3.Connection, rename: Rename, numbers: _Numbers
) -> dict[tuple[str, str], str]:
    renamed = {}
    rows = old.execute("SELECT id, kind, name, scheme FROM questions ORDER BY id").fetchall()
    for number, kind, name, scheme in rows:
        renamed["questions", name] = rename("questions", name)
        row = (kind, renamed["questions", name], scheme)
        numbers.questions[number] = _insert(new, "questions", ("kind", "name", "scheme"), row)
    new.executemany(
        "INSERT INTO pictures(question, task, image) VALUES (?, ?, ?)",
        [
            (numbers.questions[question], task, numbers.images[image])
            for question, task, image in old.execute("SELECT question, task, image FROM pictures")
        ],
    )
    copy_contents(old, new, numbers.questions)
    return renamed


def _copy_annotations(
    source: Study, old: sqlite3.Connection, new: sqlite3.Connection, numbers: _Numbers
) -> None:
    """Copy clicks, masks, votes and comparisons with the annotators' new numbers."""
    same = numbers.same_annotators

    def copy(number: int, record_type: type[Any] | None) -> int:
        if record_type is None or same:
            return copy_object(old, new, number)
        record = read_object(old, number, record_type, source.path)
        changed = {
            name: _renumber(source, getattr(record, name), numbers.annotators)
            for name in ("annotator", "looked")
            if hasattr(record, name)
        }
        if "looked" in changed:
            changed["looked"] = np.sort(changed["looked"])
        return write_object(new, replace(record, **changed))

    for image, imported, kind, number in old.execute(
        "SELECT image, import, kind, object FROM marks"
    ).fetchall():
        copied = copy(number, STORED[kind].annotations if kind in STORED else None)
        row = (numbers.images[image], numbers.imports[imported], kind, copied)
        new.execute("INSERT INTO marks(image, import, kind, object) VALUES (?, ?, ?, ?)", row)
    columns = "image, annotator, structure, import, voxels, object"
    for image, annotator, structure, imported, voxels, number in old.execute(
        f"SELECT {columns} FROM masks"
    ).fetchall():
        renamed = annotator
        if annotator >= 0:
            (renamed,) = _renumber(source, np.array([annotator]), numbers.annotators).tolist()
        key = (numbers.images[image], renamed, structure, numbers.imports[imported])
        new.execute(
            f"INSERT INTO masks({columns}) VALUES (?, ?, ?, ?, ?, ?)",
            (*key, voxels, copy_object(old, new, number)),
        )
    for question, kind, imported, truth, number in old.execute(
        "SELECT question, kind, import, truth, object FROM votes JOIN questions ON questions.id = question"
    ).fetchall():
        copied = copy(number, None if truth else STORED[kind].annotations)
        new.execute(
            "INSERT INTO votes(question, import, truth, object) VALUES (?, ?, ?, ?)",
            (numbers.questions[question], numbers.imports[imported], truth, copied),
        )


def _renumber(source: Study, annotator: NDArray[Any], table: NDArray[np.int64]) -> NDArray[Any]:
    if len(annotator) and not 0 <= annotator.min() <= annotator.max() < len(table):
        raise StudyError("is damaged: an annotation has no annotator", file=source.path)
    renumbered: NDArray[Any] = table[annotator].astype(annotator.dtype)
    return renumbered


def _copy_results(
    source: Study,
    old: sqlite3.Connection,
    new: sqlite3.Connection,
    renamed: Mapping[tuple[str, str], str],
    numbers: _Numbers,
    runs: MergedRuns,
) -> dict[tuple[str, int], int]:
    copied: dict[tuple[str, int], int] = {}
    shown: dict[int, list[int]] = {}
    for kind, items in source.items().items():
        for item in items:
            run = source.shown.run(item.id, kind)
            if run is not None:
                shown.setdefault(run, []).append(item.id)
    last = source.last_import()
    for run, run_items in shown.items():
        entry = source.runs.get(run)
        answers = source.runs.answers(dict.fromkeys(run_items, run)) if entry.kind == "clicks" else {}
        used = [after for before, after in numbers.imports.items() if before <= (entry.imported or 0)]
        numbers.runs[run] = runs.add(
            _with_names(entry, renamed),
            complete=entry.imported == last,
            imported=max(used, default=0),
            answers={
                numbers.images[image]: answer for image, answer in answers.items() if answer is not None
            },
        )
        for case_item in run_items:
            (number,) = old.execute(
                "SELECT object FROM results WHERE item = ? AND run = ?", (case_item, run)
            ).fetchone()
            copied[entry.kind, case_item] = numbers.item(entry.kind, case_item)
            row = (copied[entry.kind, case_item], numbers.runs[run])
            new.execute(
                "INSERT INTO results(item, run, object) VALUES (?, ?, ?)",
                (*row, _copy_result(source, old, new, entry, case_item, number, numbers)),
            )
    return copied


def _copy_result(
    source: Study,
    old: sqlite3.Connection,
    new: sqlite3.Connection,
    run: RunEntry,
    item: int,
    number: int,
    numbers: _Numbers,
) -> int:
    """Copy a result; reorder its annotators if the other study has another order."""
    annotators = STORED[run.kind].annotators
    if annotators is None or numbers.same_order:
        return copy_object(old, new, number)
    position = {name: at for at, name in enumerate(source.annotators())}
    order = np.argsort(numbers.annotators[[position[name] for name in annotators(source, run, item)]])
    result = source.runs.result(run.id, item)
    return write_object(new, result.reordered(order))


def _with_names(run: RunEntry, renamed: Mapping[tuple[str, str], str]) -> RunEntry:
    """Replace the names of items in a run's log by those of the other study."""
    log = dict(run.log)
    for table, entry, name in (("images", "images", "image"), ("questions", "questions", "question")):
        if isinstance(log.get(entry), list):
            log[entry] = [
                {**record, name: renamed.get((table, record.get(name, "")), record.get(name))}
                if isinstance(record, dict)
                else record
                for record in log[entry]
            ]
    return replace(run, log=log)


def _copy_decisions(source: Study, target: Study, new: sqlite3.Connection, numbers: _Numbers) -> int:
    """Copy the decisions on items and their undos; return the number of the last decision of the target."""
    last = target.last_decision()
    number: dict[int, int] = {}
    for decision in source.decisions():
        if decision.undoes is not None:
            if decision.undoes not in number:
                continue
            copy = replace(decision, undoes=number[decision.undoes])
        elif isinstance(decision.subject, NameSubject):
            copy = decision
        elif decision.item is None or decision.subject is None:
            continue
        else:
            copy = _with_numbers(decision, number, numbers)
        if decision.voxels is not None:
            with source.reading() as old:
                copy = replace(copy, voxels=copy_object(old, new, decision.voxels))
        last += 1
        number[decision.id] = last
        copy = replace(copy, id=last, run=numbers.runs.get(decision.run or 0))
        write_decision(new, copy)
    return last


def _with_numbers(decision: Decision, number: Mapping[int, int], numbers: _Numbers) -> Decision:
    subject = decision.subject
    assert subject is not None
    assert decision.item is not None
    item = numbers.item(subject.kind, decision.item)
    if isinstance(subject, SpotsSubject):
        spots = tuple(
            replace(
                spot,
                image=numbers.images[spot.image],
                run=numbers.runs.get(spot.run or 0),
                about=number.get(spot.about or 0),
            )
            for spot in subject.spots
        )
        subject = replace(subject, spots=spots)
    return replace(decision, subject=subject, item=item, about=number.get(decision.about or 0))


def names_in(study: Study) -> list[tuple[str, str]]:
    """List the names of a study's images and questions, with the table of each."""
    with study.reading() as connection:
        return [
            (table, name)
            for table in ("images", "questions")
            for (name,) in connection.execute(f"SELECT name FROM {table} ORDER BY id")
        ]
