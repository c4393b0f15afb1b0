"""Imports of a study: rows of imports and annotators, and tables of clicks and points."""

from __future__ import annotations

import json
import re
import sqlite3
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from raterscope.algorithms.clicks.data import FloatArray, IntArray
from raterscope.algorithms.progress import Watch
from raterscope.app.errors import StudyError, plain, plain_names
from raterscope.app.formats.records import ClickTable, PointTable
from raterscope.app.study.arrays import read_object, write_object
from raterscope.app.study.records import ImageEntry, ImportSummary, MarksRecord
from raterscope.app.study.references import ImageNames
from raterscope.text import counted

if TYPE_CHECKING:
    from raterscope.app.study.study import Study

Record = TypeVar("Record")


def number_import(connection: sqlite3.Connection, kind: str, file: str, notices: Sequence[str]) -> int:
    """Record an imported file within the current transaction, and return the import's number."""
    (number,) = connection.execute(
        "INSERT INTO imports(kind, file, at, notices) VALUES (?, ?, ?, ?) RETURNING id",
        (kind, plain(file, 200), datetime.now(UTC).isoformat(), json.dumps(list(notices))),
    ).fetchone()
    return int(number)


def number_annotators(connection: sqlite3.Connection, names: Iterable[str]) -> dict[str, int]:
    """Return the numbers of annotators by name, and add new annotators."""
    known: dict[str, int] = dict(connection.execute("SELECT name, id FROM annotators"))
    new = [name for name in dict.fromkeys(names) if name not in known]
    numbers = {name: number for number, name in enumerate(new, start=len(known))}
    connection.executemany(
        "INSERT INTO annotators(id, name) VALUES (?, ?)", [(n, name) for name, n in numbers.items()]
    )
    return known | numbers


def describe_spellings(connection: sqlite3.Connection, names: Sequence[str]) -> list[str]:
    """Return a notice if new annotators have names like others, such as 7 and 007."""
    known = [name for (name,) in connection.execute("SELECT name FROM annotators ORDER BY id")]
    new = dict.fromkeys(names).keys() - {*known}
    spellings: dict[str, list[str]] = {}
    for name in dict.fromkeys([*known, *names]) if new else ():
        folded = unicodedata.normalize("NFKC", name).casefold()
        number = re.fullmatch(r"0*(\d+?)(\.0+)?", folded, re.ASCII)
        spellings.setdefault(number[1] if number else folded, []).append(name)
    alike = [group for group in spellings.values() if len(group) > 1 and not new.isdisjoint(group)]
    if not alike:
        return []
    more = f", and {counted(len(alike) - 1, 'more name')}" if len(alike) > 1 else ""
    return [
        f"{plain_names(alike[0], 4)}{more}: spellings of one name count as different annotators; join them "
        "in the window (workspace Annotators, J) if they are one."
    ]


def assign_images(
    table: ClickTable | PointTable,
    names: ImageNames,
    add: Callable[[str, float, float], ImageEntry],
    extent: tuple[float, float] | None,
    skip_unknown: bool,
) -> tuple[list[ImageEntry | None], list[str]]:
    """Find, or create if the size is known, the study's image for each image of a table; also return notices.

    `Study.add_clicks` describes the images that are skipped; their entries are None. Raises `StudyError` for
    images of unknown size that are not in the study, unless they are skipped.
    """
    entries: list[ImageEntry | None] = []
    unknown: list[int] = []
    resized: list[str] = []
    added = ImageNames(())
    for index, (name, known) in enumerate(zip(table.images, names.find_each(table.images), strict=True)):
        entry, size = known or added.find(name), table.extents.get(index)
        if entry is None:
            known_size = size or extent
            if known_size is None:
                unknown.append(index)
            else:
                entry = add(name, *known_size)
                added.add(entry)
        elif size is not None and size != (entry.width, entry.height):
            resized.append(name)
        entries.append(entry)
    if unknown and not (skip_unknown and any(entries)):
        name = table.images[unknown[0]]
        more = f" (and {counted(len(unknown) - 1, 'more image')})" if len(unknown) > 1 else ""
        if several := names.all_meant(name):
            reason = f"may be any of {plain_names(several, 4)}; expected the folder too"
        else:
            reason = (
                "is not among the study's images, and its size is unknown; expected the image too, or a "
                "table with the columns image, width and height"
            )
            if isinstance(table, PointTable) and table.is_numbered:
                reason = "is the id of an image; import the COCO file that lists the images, too or before"
        raise StudyError(
            f'"{plain(name)}"{more} {reason}',
            file=table.path,
            line=table.lines[unknown[0]] if table.lines else None,
            field="image",
        )
    notices = []
    if resized:
        notices.append(
            f'The file gives "{plain(resized[0])}"'
            + (f" and {counted(len(resized) - 1, 'more image')}" if len(resized) > 1 else "")
            + " another size than the image has: positions may not fit."
        )
    return entries, notices


def kind_of(table: ClickTable | PointTable) -> str:
    """Return the kind of a table's marks: clicks, truth, or scores of a program."""
    if isinstance(table, ClickTable):
        return "clicks"
    return "truth" if table.score is None else "scores"


def write_marks(
    connection: sqlite3.Connection,
    table: ClickTable | PointTable,
    entries: list[ImageEntry | None],
    present: Callable[[int], MarksRecord],
    notices: list[str],
    watch: Watch,
) -> ImportSummary:
    """Store a table's marks within the current transaction, one record for each image.

    `entries`: the study's image for each image of the table. `present`: returns the study's marks of this
    kind on an image. `notices`: sentences to add to the table's notices.
    """
    kind, annotator_ids = kind_of(table), np.empty(0, dtype=np.int64)
    if isinstance(table, ClickTable):
        notices = [*notices, *describe_spellings(connection, table.annotators)]
        known = number_annotators(connection, table.annotators)
        annotator_ids = np.array([known[name] for name in table.annotators], dtype=np.int64)
    file, all_notices = plain(table.path.name, 200), (*table.notices, *notices)
    number = number_import(connection, kind, file, all_notices)
    target = np.array([-1 if entry is None else entry.id for entry in entries] or [-1], dtype=np.int64)
    sizes = {entry.id: (entry.width, entry.height) for entry in entries if entry is not None}
    rows_of = _rows_by_image(target[table.image])
    looks = _looks_by_image(table, target, annotator_ids)
    searched = set() if isinstance(table, ClickTable) else {int(target[at]) for at in table.searched}
    marked = {image for (image,) in connection.execute("SELECT image FROM marks WHERE kind = ?", (kind,))}
    marks = outside = exchanged = duplicates = empty = 0
    visited: set[int] = set()
    images = sorted({*rows_of, *looks, *searched} - {-1})
    for step, image in enumerate(images):
        watch(step / len(images), f"storing marks of image {step + 1:,} of {len(images):,}")
        rows = rows_of.get(image, np.empty(0, dtype=np.int64))
        x, y = table.x[rows], table.y[rows]
        if isinstance(table, ClickTable):
            annotator = annotator_ids[table.annotator[rows]]
            markers = np.unique(annotator)
            viewers = np.union1d(markers, looks[image]) if image in looks else markers
            time = None if table.time is None else table.time[rows]
            label = None if table.label is None else table.label[rows]
            record = MarksRecord(
                x, y, annotator, viewers.astype(np.int64), time, classes=table.classes, label=label
            )
            visited.update(viewers.tolist())
            empty += len(viewers) - len(markers)
        else:
            record = MarksRecord(x, y, score=None if table.score is None else table.score[rows])
            empty += not len(rows)
        duplicates += _duplicates(present(image) if image in marked else None, record)
        width, height = sizes[image]
        outside += int(((x < 0) | (x > width) | (y < 0) | (y > height)).sum())
        exchanged += int(((y < 0) | (y > width) | (x < 0) | (x > height)).sum())
        marks += len(rows)
        connection.execute(
            "INSERT INTO marks(image, import, kind, object) VALUES (?, ?, ?, ?)",
            (image, number, kind, write_object(connection, record)),
        )
    watch(1.0, "stored")
    return ImportSummary(
        kind=kind, file=file, marks=marks, images=len(images), annotators=len(visited), empty=empty,
        duplicates=duplicates, outside=outside, exchanged=exchanged,
        left_out=len(rows_of.get(-1, ())), notices=all_notices,
    )  # fmt: skip


def _rows_by_image(image: IntArray) -> Mapping[int, IntArray]:
    order = np.argsort(image, kind="stable")
    numbers, starts = np.unique(image[order], return_index=True)
    return dict(zip(numbers.tolist(), np.split(order, starts[1:]), strict=True)) if len(order) else {}


def _looks_by_image(
    table: ClickTable | PointTable, target: IntArray, annotator_ids: IntArray
) -> dict[int, IntArray]:
    """Return the annotators who looked at each image, by image."""
    if not isinstance(table, ClickTable) or not table.looked:
        return {}
    pairs = np.array(sorted(table.looked), dtype=np.int64)
    image, annotator = target[pairs[:, 1]], annotator_ids[pairs[:, 0]]
    return {number: np.unique(annotator[rows]) for number, rows in _rows_by_image(image).items()}


def _duplicates(before: MarksRecord | None, new: MarksRecord) -> int:
    """Count the new marks at exactly the position of another by the same annotator."""
    if before is None:
        return len(new.x) - _distinct(new)
    old = _distinct(before)
    together = MarksRecord(
        np.concatenate([before.x, new.x]),
        np.concatenate([before.y, new.y]),
        np.concatenate([before.annotator, new.annotator]),
    )
    return len(new.x) - (_distinct(together) - old)


def _distinct(record: MarksRecord) -> int:
    keys: list[FloatArray | IntArray] = [record.x, record.y]
    if len(record.annotator):
        keys.append(record.annotator)
    if not len(record.x):
        return 0
    order = np.lexsort(keys)
    differs = np.zeros(len(order) - 1, dtype=bool)
    for key in keys:
        differs |= key[order][1:] != key[order][:-1]
    return 1 + int(differs.sum())


def add_records(
    study: Study, kind: str, file: str, records: Mapping[int, object], notices: Sequence[str] = ()
) -> int:
    """Store an import of a kind without own tables, a dataclass of arrays by image; return its number."""
    with study.change() as connection:
        number = number_import(connection, kind, file, notices)
        connection.executemany(
            "INSERT INTO marks(image, import, kind, object) VALUES (?, ?, ?, ?)",
            [(image, number, kind, write_object(connection, record)) for image, record in records.items()],
        )
    return number


def records_of(
    study: Study, kind: str, image: int, record: type[Record], last: int | None = None
) -> list[Record]:
    """Read the records of `add_records` for an image, import by import, up to a given import."""
    with study.reading() as connection:
        rows = connection.execute(
            "SELECT object FROM marks WHERE image = ? AND kind = ? AND import <= ? ORDER BY import",
            (image, kind, 2**62 if last is None else last),
        ).fetchall()
        return [read_object(connection, number, record, study.path) for (number,) in rows]
