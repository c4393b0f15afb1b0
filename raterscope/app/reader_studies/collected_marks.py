"""Images and marks of one read in the collected study, by kind."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.progress import Watch, part, steps_of
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.images import read_image
from raterscope.app.formats.masks.collector import crop
from raterscope.app.formats.records import (
    ClickTable,
    ImageFile,
    LabelTable,
    PairTable,
    TaskContents,
    VolumeFile,
)
from raterscope.app.formats.volumes import find_volumes
from raterscope.app.reader_studies.protocol import (
    COORDINATOR,
    Coordinator,
    Picture,
    ReadingCase,
    ScheduledCase,
    locate_picture,
)
from raterscope.app.reader_studies.reading_file import CaseMarks, Operation
from raterscope.app.study import ImageEntry, Study, StudyError
from raterscope.app.study.labels import add_contents, add_votes, read_contents
from raterscope.app.study.masks import PlacedMask, add_masks
from raterscope.app.study.pairs import add_pairs
from raterscope.app.study.references import digest_of_images

Index = tuple[int, int, int]

UNTOUCHED = -1


def pack_stroke(structure: str, origin: Index, values: NDArray[np.int8]) -> dict[str, Any]:
    """Return a stroke as the detail of an operation: 1 put in, 0 taken out, -1 untouched."""
    packed = zlib.compress(np.ascontiguousarray(values, dtype=np.int8).tobytes(), 1)
    return {"structure": structure, "origin": list(origin), "shape": list(values.shape), "values": packed}


def draw_strokes(
    strokes: Sequence[Operation], shape: Index, masks: dict[str, NDArray[np.bool_]] | None = None
) -> dict[str, NDArray[np.bool_]]:
    """Draw the mask of each structure, (Z, Y, X).

    Raises `InputError` for a stroke that does not lie on the image.

    `masks`: masks of earlier strokes, to be continued.
    """
    masks = {} if masks is None else masks
    for stroke in strokes:
        structure, box, values = _unpack(stroke.detail, shape)
        if structure not in masks:
            masks[structure] = np.zeros(shape, dtype=np.bool_)
        np.copyto(masks[structure][box], values == 1, where=values != UNTOUCHED)
    return masks


def _unpack(detail: dict[str, Any], shape: Index) -> tuple[str, tuple[slice, ...], NDArray[np.int8]]:
    try:
        origin, size = [int(at) for at in detail["origin"]], [int(n) for n in detail["shape"]]
        fits = len(origin) == len(size) == 3 and all(
            at >= 0 and n > 0 and at + n <= whole for at, n, whole in zip(origin, size, shape, strict=True)
        )
        if not fits:
            raise ValueError
        count = size[0] * size[1] * size[2]
        data = zlib.decompressobj().decompress(detail["values"], count + 1)
        values = np.frombuffer(data, dtype=np.int8).reshape(size)
        box = tuple(slice(at, at + n) for at, n in zip(origin, size, strict=True))
        return str(detail["structure"]), box, values
    except (KeyError, TypeError, ValueError, zlib.error) as error:
        raise InputError("has a stroke that does not lie on its image") from error


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

    `file`: the reading file, which the import names. `read`: marks of the read, by position.
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
    add_contents(study, TaskContents(file, _contents(coordinator, read)))


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


def _contents(coordinator: Coordinator, read: Read) -> dict[str, dict[str, str]]:
    """Return the texts of the cases that were read, by field and task."""
    fields: dict[str, dict[str, str]] = {}
    keys = {scheduled.case for scheduled, _ in read.values()}
    for case in coordinator.cases:
        for task, texts in coordinator.texts_by_task(case).items():
            for name, text in texts.items():
                by_task = fields.setdefault(name, {})
                if case.key in keys:
                    by_task[task] = text
    return fields


def _comparisons(coordinator: Coordinator, annotator: str, file: Path, read: Read) -> list[PairTable]:
    items = tuple(dict.fromkeys(name for names in coordinator.names.values() for name in names))
    number = {name: index for index, name in enumerate(items)}
    tasks = tuple(dict.fromkeys(coordinator.tasks.values()))
    task_number = {name: index for index, name in enumerate(tasks)}
    tables = []
    for question in coordinator.questions:
        rows = []
        for scheduled, marks in read.values():
            answer = marks.answers.get(question.name)
            if answer in _CHOICES:
                sides = coordinator.names[scheduled.case]
                left, right = reversed(sides) if scheduled.swapped else sides
                task = coordinator.tasks.get(scheduled.case)
                at = -1 if task is None else task_number[task]
                rows.append((number[left], number[right], _CHOICES[answer], at))
        table = np.array(rows, dtype=np.float64).reshape(-1, 4)
        tables.append(
            PairTable(
                file, question.name, (annotator,), items,
                annotator=np.zeros(len(rows), dtype=np.int32),
                left=table[:, 0].astype(np.int32),
                right=table[:, 1].astype(np.int32),
                choice=table[:, 2],
                tasks=tasks,
                task=table[:, 3].astype(np.int32) if tasks else None,
            )
        )  # fmt: skip
    return [table for table in tables if len(table)]


class CollectedImages:
    """The images of a reader study, added to the collected study where they can be read."""

    def __init__(self, study: Study, coordinator: Coordinator, file: Path, watch: Watch) -> None:
        # images that were changed or, of masks, are missing, and tasks of the study with other texts, a
        # sentence each
        self.problems: list[str] = []
        self._entries: dict[str, ImageEntry] = {}
        self._unusable: set[str] = set()
        pictures: dict[str, Picture] = {}
        cases: dict[str, list[str]] = {}
        for case in coordinator.cases:
            for task, texts in coordinator.texts_by_task(case).items():
                self._check_texts(study, task, texts, case)
            for name, picture in coordinator.pictured(case):
                pictures[name] = picture
                cases.setdefault(name, []).append(case.key)
        present = {entry.name: entry for entry in study.images()}
        sources: dict[str, ImageFile | VolumeFile] = {}
        for (name, picture), step in steps_of(part(watch, 0.0, 0.9), list(pictures.items())):
            problem, source = _check(name, picture, file, step, drawn=coordinator.kind == "masks")
            if problem:
                self.problems.append(problem)
                self._unusable.update(cases[name])
            elif source is not None and (name not in present or present[name].path is None):
                sources[name] = source
        named = [replace(source, name=name) for name, source in sources.items()]
        images = [source for source in named if isinstance(source, ImageFile)]
        volumes = [source for source in named if isinstance(source, VolumeFile)]
        added = study.add_images(images) if images else []
        added += study.add_volumes(volumes) if volumes else []
        names = [*(source.name for source in images), *(source.name for source in volumes)]
        by_name = dict(zip(names, added, strict=True))
        self._entries = present | by_name

    def _check_texts(self, study: Study, task: str, texts: Mapping[str, str], case: ReadingCase) -> None:
        """Compare texts that an earlier collection stored with those of the case."""
        stored = read_contents(study, 0, task)
        if any(stored.get(name, text) != text for name, text in texts.items()):
            problem = (
                f"{plain(task)}: its text in the study is not that of {COORDINATOR}; its reads are not "
                "collected"
            )
            if problem not in self.problems:
                self.problems.append(problem)
            self._unusable.add(case.key)

    def usable(self, case: str) -> bool:
        """Return whether the images or texts of a case are those with which it was read."""
        return case not in self._unusable

    def entry(self, name: str) -> ImageEntry:
        """Return an image of the study. Raises `StudyError` if the study lacks it."""
        if name not in self._entries:
            raise StudyError(f"{plain(name)} was not found")
        return self._entries[name]


def _check(
    name: str, picture: Picture, file: Path, watch: Watch, *, drawn: bool
) -> tuple[str, ImageFile | VolumeFile | None]:
    """Compare an image on disk with the image that was read; a missing one matters only for masks."""
    watch(0.0, f"checking {plain(name)}")
    path = locate_picture(picture, file)
    if path is None:
        words = f"{plain(name)}: was not found; its masks are not collected"
        return (words if drawn else ""), None
    try:
        source = read_source(picture, path, drawn=drawn)
        if source is not None and digest_of_images([source], watch) == [picture.digest]:
            return "", source
    except InputError:
        pass
    return f"{plain(name)}: has changed since the study was set up; its reads are not collected", None


def read_source(picture: Picture, path: Path, *, drawn: bool) -> ImageFile | VolumeFile | None:
    """Read the header of an image; None for a folder without the volume."""
    if not drawn:
        return read_image(path)
    for volume in find_volumes(path):
        if picture.identifier in ("", volume.identifier) and volume.grid.shape == picture.shape:
            return volume
    return None
