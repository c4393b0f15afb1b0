"""Marks of one read in the collected study, by kind."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import numpy as np

from raterscope.algorithms.progress import Watch
from raterscope.app.formats.masks.collector import crop
from raterscope.app.formats.records import ClickTable, LabelTable, PairTable
from raterscope.app.reader_studies.assignment import Coordinator, ScheduledCase
from raterscope.app.reader_studies.collected_images import CollectedImages
from raterscope.app.reader_studies.mask_strokes import draw_strokes
from raterscope.app.reader_studies.reading_file import CaseMarks
from raterscope.app.study import Study
from raterscope.app.study.labels import add_votes
from raterscope.app.study.masks import PlacedMask, add_masks
from raterscope.app.study.pairs import add_pairs

Read = Mapping[int, tuple[ScheduledCase, CaseMarks]]

_CHOICES = {"left": 1.0, "right": -1.0, "tie": 0.0}


def store_marks(
    study: Study,
    coordinator: Coordinator,
    images: CollectedImages,
    annotator: str,
    file: Path,
    read: Read,
    watch: Watch,
) -> None:
    """Store the marks of one read under an annotator's name.

    Parameters
    ----------
    file : Path
        The reading file, which the import names.
    read : mapping of position to its case and marks
    """
    if not read:
        return
    if coordinator.kind == "clicks":
        study.add_clicks(_clicks(coordinator, annotator, file, read), watch)
    elif coordinator.kind == "masks":
        add_masks(study, _masks(coordinator, images, annotator, read), file.name, (), watch)
    elif coordinator.kind == "labels":
        for table in _votes(coordinator, annotator, file, read):
            add_votes(study, table, watch)
    else:
        for comparisons in _comparisons(coordinator, annotator, file, read):
            add_pairs(study, comparisons, watch)


def _clicks(coordinator: Coordinator, annotator: str, file: Path, read: Read) -> ClickTable:
    names = tuple(coordinator.names[scheduled.case][0] for scheduled, _ in read.values())
    rows = [(image, *click) for image, (_, marks) in enumerate(read.values()) for click in marks.clicks]
    times = np.array([datetime.fromisoformat(row[3]).timestamp() for row in rows], dtype=np.float64)
    pictures = [coordinator.case(scheduled.case).pictures[0] for scheduled, _ in read.values()]
    return ClickTable(
        file, (annotator,), names,
        annotator=np.zeros(len(rows), dtype=np.int64),
        image=np.array([row[0] for row in rows], dtype=np.int64),
        x=np.array([row[1] for row in rows], dtype=np.float64),
        y=np.array([row[2] for row in rows], dtype=np.float64),
        time=times - (times.min() if len(times) else 0.0),
        looked=frozenset((0, image) for image in range(len(names))),
        extents={at: (float(each.width), float(each.height)) for at, each in enumerate(pictures)},
    )  # fmt: skip


def _masks(coordinator: Coordinator, images: CollectedImages, annotator: str, read: Read) -> list[PlacedMask]:
    placed = []
    for scheduled, marks in read.values():
        entry = images.entry(coordinator.names[scheduled.case][0])
        shape = entry.lattice.shape
        masks = draw_strokes(marks.strokes, shape)
        for structure in coordinator.structures:
            mask = masks.get(structure)
            origin, values = crop(np.zeros(shape, dtype=np.bool_) if mask is None else mask)
            placed.append(PlacedMask(entry.id, annotator, structure, origin, values))
    return placed


def _votes(coordinator: Coordinator, annotator: str, file: Path, read: Read) -> list[LabelTable]:
    tables = []
    for question in coordinator.questions:
        rows = [
            (coordinator.names[scheduled.case][0], question.classes.index(marks.answers[question.name]))
            for scheduled, marks in read.values()
            if marks.answers.get(question.name) in question.classes
        ]
        tables.append(
            LabelTable(
                file, question.name, (annotator,), tuple(name for name, _ in rows), question.classes,
                annotator=np.zeros(len(rows), dtype=np.int32),
                task=np.arange(len(rows), dtype=np.int32),
                label=np.array([label for _, label in rows], dtype=np.int16),
            )
        )  # fmt: skip
    return [table for table in tables if len(table)]


def _comparisons(coordinator: Coordinator, annotator: str, file: Path, read: Read) -> list[PairTable]:
    items = tuple(dict.fromkeys(name for names in coordinator.names.values() for name in names))
    number = {name: index for index, name in enumerate(items)}
    tables = []
    for question in coordinator.questions:
        rows = []
        for scheduled, marks in read.values():
            answer = marks.answers.get(question.name)
            if answer in _CHOICES:
                sides = coordinator.names[scheduled.case]
                left, right = reversed(sides) if scheduled.swapped else sides
                rows.append((number[left], number[right], _CHOICES[answer]))
        table = np.array(rows, dtype=np.float64).reshape(-1, 3)
        tables.append(
            PairTable(
                file, question.name, (annotator,), items,
                annotator=np.zeros(len(rows), dtype=np.int32),
                left=table[:, 0].astype(np.int32),
                right=table[:, 1].astype(np.int32),
                choice=table[:, 2],
            )
        )  # fmt: skip
    return [table for table in tables if len(table)]
