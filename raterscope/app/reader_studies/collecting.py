"""Collection of a reader study: the readers' files in one study, with one annotator for each read.

A session is collected once it is finished. Everything that does not fit is reported and skipped. Earlier
collected reads stay, and a later collection adds new ones.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.names import read_name
from raterscope.algorithms.progress import Watch, part, silent, steps_of
from raterscope.app.errors import InputError, StudyError, plain
from raterscope.app.formats.image_heads import read_image
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
from raterscope.app.program_files import READING_SUFFIX
from raterscope.app.reader_studies.protocol import (
    COORDINATOR,
    Coordinator,
    Picture,
    ReaderEntry,
    ReadingCase,
    ScheduledCase,
    locate_picture,
    read_coordinator,
)
from raterscope.app.reader_studies.reading_file import CaseMarks, Operation, ReadingFile, SessionState
from raterscope.app.study import ImageEntry, Study
from raterscope.app.study.labels import add_contents, add_votes, read_contents
from raterscope.app.study.masks import PlacedMask, add_masks
from raterscope.app.study.new_study import new_study
from raterscope.app.study.pairs import add_pairs
from raterscope.app.study.records import CollectedRead, ReadCase, ReaderStudy, ReadProgress
from raterscope.app.study.references import digest_of_files, digest_of_images
from raterscope.text import counted

Index = tuple[int, int, int]

UNTOUCHED = -1


def pack_stroke(structure: str, origin: Index, values: NDArray[np.int8]) -> dict[str, Any]:
    """Return a stroke as the detail of an operation: 1 for drawn, 0 for erased, -1 for unchanged voxels."""
    packed = zlib.compress(np.ascontiguousarray(values, dtype=np.int8).tobytes(), 1)
    return {"structure": structure, "origin": list(origin), "shape": list(values.shape), "values": packed}


def draw_strokes(
    strokes: Sequence[Operation], shape: Index, masks: dict[str, NDArray[np.bool_]] | None = None
) -> dict[str, NDArray[np.bool_]]:
    """Draw the mask of each structure, (Z, Y, X).

    Raises `InputError` for a stroke outside the image.

    `masks`: masks of earlier strokes, to which these are added.
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

    `file`: the reading file, recorded in the import. `read`: marks of the read, by position.
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
    """Return the texts of the cases in a read, by field and task."""
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
    """The images of a reader study; readable ones are added to the collected study."""

    def __init__(self, study: Study, coordinator: Coordinator, file: Path, watch: Watch) -> None:
        # sentences about changed images, missing images (for masks), and tasks whose texts differ in the
        # study
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
        added = study.add_images(named) if named else []
        self._entries = present | dict(zip(sources, added, strict=True))

    def _check_texts(self, study: Study, task: str, texts: Mapping[str, str], case: ReadingCase) -> None:
        """Compare the texts from an earlier collection with those of the case."""
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
        """Return whether the images or texts of a case are unchanged since its read."""
        return case not in self._unusable

    def entry(self, name: str) -> ImageEntry:
        """Return an image of the study. Raises `StudyError` if the study lacks it."""
        if name not in self._entries:
            raise StudyError(f"{plain(name)} was not found")
        return self._entries[name]


def _check(
    name: str, picture: Picture, file: Path, watch: Watch, *, drawn: bool
) -> tuple[str, ImageFile | VolumeFile | None]:
    """Compare an image on disk with the image of the read; a missing image matters only for masks."""
    watch(0.0, f"checking {plain(name)}")
    path = locate_picture(picture, file)
    if path is None:
        text = f"{plain(name)}: was not found; its masks are not collected"
        return (text if drawn else ""), None
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
    same = [
        volume
        for volume in find_volumes(path)
        if picture.identifier in ("", volume.identifier) and volume.grid.shape == picture.shape
    ]
    if len(same) > 1:  # such as repeats of a scan
        same = [volume for volume in same if digest_of_files(volume.files) == picture.digest] or same
    return same[0] if same else None


_NAMED = 4
"""Maximum number of cases that a message names."""


@dataclass
class Collected:
    """Outcome of a collection."""

    state: ReaderStudy  # state of the study afterwards
    # list of (reader, read, cases): newly added reads, with their numbers of cases
    added: list[tuple[str, int, int]] = field(default_factory=list)
    # sentences on what was skipped and why, with the file
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Session:
    """One reader's session in a reading file."""

    file: Path
    entry: ReaderEntry
    state: SessionState
    digest: str
    marks: dict[int, CaseMarks]  # by position: of the completed cases
    seconds: dict[int, float]
    changed: frozenset[str] = frozenset()  # keys of the cases whose texts differ from the coordinator's

    @property
    def key(self) -> tuple[str, int]:
        """Reader and number of the read."""
        return self.entry.reader, self.state.session


def collect(paths: Sequence[Path], target: Path, watch: Watch = silent, *, unblind: str = "") -> Collected:
    """Collect reading files in one study, which is created if it does not exist.

    `paths`: reading files, or folders with them and the coordinator's file.
    `target`: study; if it exists, it must be of this reader study.
    `unblind`: reason to open the study before every reader has finished; empty to keep it closed.
    Raises `InputError` if there is no coordinator's file or no reading file, or the study cannot be written.
    """
    files, coordinator_file = find_files(paths)
    coordinator = read_coordinator(coordinator_file)
    with _target(target, coordinator) as study:
        state = study.settings.reader_study or _new_state(coordinator)
        collected = Collected(state)
        sessions = _read_all(files, coordinator, collected, part(watch, 0.0, 0.3))
        images = CollectedImages(study, coordinator, coordinator_file, part(watch, 0.3, 0.5))
        collected.problems += images.problems
        for session, step in steps_of(part(watch, 0.5, 1.0), _chosen(sessions, collected)):
            _add(study, coordinator, images, session, collected, step)
        progress = _progress(coordinator, sessions, collected.state)
        collected.state = msgspec.structs.replace(
            collected.state, progress=progress, unblinded=collected.state.unblinded or unblind
        )
        study.settings.reader_study = collected.state
    return collected


def find_files(paths: Sequence[Path]) -> tuple[list[Path], Path]:
    """Find the reading files, and the coordinator's file in their folder or one above."""
    files: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            present = sorted(each for each in path.rglob(f"*{READING_SUFFIX}") if each.is_file())
            if not present:
                raise InputError(f"contains no reading file, NAME{READING_SUFFIX}", file=path)
            files.update(dict.fromkeys(present))
        elif path.name != COORDINATOR:
            files[path] = None
    folders = [path if path.is_dir() else path.absolute().parent for path in paths]
    for folder in folders:
        for parent in (folder, folder.absolute().parent):
            if (parent / COORDINATOR).is_file():
                return list(files), parent / COORDINATOR
    raise InputError(
        f"there is no {COORDINATOR} beside the reading files or one folder above; give its path too",
        file=paths[0],
    )


@contextmanager
def _target(path: Path, coordinator: Coordinator) -> Iterator[Study]:
    if not os.path.lexists(path):
        with new_study(path) as study:
            yield study
        return
    with Study.open(path, blinded=True) as study:
        state = study.settings.reader_study
        if state is None:
            raise StudyError("is not a collected reader study; choose another name", file=path)
        if state.study != coordinator.study:
            raise StudyError(
                f"is of another reader study, {plain(state.name)}; choose another name", file=path
            )
        yield study


def _new_state(coordinator: Coordinator) -> ReaderStudy:
    return ReaderStudy(coordinator.study, coordinator.name, coordinator.kind, coordinator.blinding)


def _read_all(
    files: Sequence[Path], coordinator: Coordinator, collected: Collected, watch: Watch
) -> list[Session]:
    """Read the sessions of all files; report files that do not fit."""
    sessions = []
    for path, step in steps_of(watch, files):
        step(0.0, f"reading {plain(path.name)}")
        try:
            read = _read(path, coordinator)
        except InputError as error:
            collected.problems.append(str(error))
            continue
        sessions += read
        for key in sorted(read[0].changed):
            collected.problems.append(
                f"{plain(path.name, 200)}: the text of {plain(coordinator.title(key))} is not that of "
                f"{COORDINATOR}; its reads are not collected"
            )
    return sessions


def _read(path: Path, coordinator: Coordinator) -> list[Session]:
    with ReadingFile.open(path, to_read=True) as file:
        assignment = file.assignment
        if assignment.study != coordinator.study:
            same = ", set up separately" if assignment.name == coordinator.name else ""
            raise InputError(
                f"belongs to another reader study, {plain(assignment.name)}{same}; expected "
                f"{plain(coordinator.name)}",
                file=path,
            )
        entry = next((each for each in coordinator.readers if each.reader == assignment.reader), None)
        if entry is None:
            raise InputError(f"is of {plain(assignment.reader)}, who is no reader of the study", file=path)
        if assignment.places != entry.places:
            lacking = {(scheduled.session, scheduled.case) for scheduled in entry.places} - {
                (scheduled.session, scheduled.case) for scheduled in assignment.places
            }
            text = "has another order of cases than the coordinator's file"
            if lacking:
                session, key = min(lacking)
                text = f"lacks case {key} of read {session}"
                text += f" and {len(lacking) - 1:,} more" if len(lacking) > 1 else ""
            raise InputError(text, file=path)
        own = {case.key: case for case in coordinator.cases}
        changed = set()
        for case in assignment.cases:
            expected = own.get(case.key)
            pictures = () if expected is None else expected.pictures
            if [each.digest for each in case.pictures] != [each.digest for each in pictures]:
                raise InputError(f"was made with another image of case {case.key}", file=path)
            if expected is None or case.all_texts != expected.all_texts:
                changed.add(case.key)
        times = file.times()
        sessions = []
        for state in file.sessions():
            rows = [row for row in file.operations() if row.position in state.places]
            digest = hashlib.sha256(msgspec.msgpack.encode(rows)).hexdigest()
            marks = {position: file.marks(position) for position in sorted(state.done)}
            sessions.append(Session(path, entry, state, digest, marks, times, frozenset(changed)))
        return sessions


def _chosen(sessions: Sequence[Session], collected: Collected) -> list[Session]:
    """Choose the finished sessions, each once."""
    chosen: dict[tuple[str, int], Session] = {}
    before = {(read.reader, read.read): read for read in collected.state.reads}
    for session in sessions:
        if session.state.finished is None:
            continue
        reader, read = session.key
        earlier = chosen.get(session.key)
        known = before.get(session.key)
        if known is not None and known.digest != session.digest:
            collected.problems.append(
                f"{plain(session.file.name, 200)}: read {read} of {plain(reader)} was collected before with "
                "other marks, which stay"
            )
        elif earlier is None:
            chosen[session.key] = session
        elif earlier.digest != session.digest:
            collected.problems.append(
                f"{plain(session.file.name, 200)}: is a second read {read} of {plain(reader)}; that of "
                f"{plain(earlier.file.name, 200)} was taken"
            )
    return list(chosen.values())


def _add(
    study: Study,
    coordinator: Coordinator,
    images: CollectedImages,
    session: Session,
    collected: Collected,
    watch: Watch,
) -> None:
    """Add the cases of a session that the study lacks, all or none."""
    reader, read = session.key
    known = next((each for each in collected.state.reads if (each.reader, each.read) == session.key), None)
    present = set() if known is None else {case.key for case in known.cases}
    places = session.entry.places
    missing = [places[position].case for position in session.state.places if position not in session.marks]
    if missing and known is None:
        few = ", ".join(missing[:_NAMED]) + (" and others" if len(missing) > _NAMED else "")
        collected.problems.append(
            f"{plain(session.file.name, 200)}: read {read} was finished without "
            f"{counted(len(missing), 'case')} ({few})"
        )
    new = {
        position: marks
        for position, marks in session.marks.items()
        if places[position].case not in present | session.changed and images.usable(places[position].case)
    }
    if not new and known is not None:
        return
    first = session.state.places[0]
    cases = tuple(
        ReadCase(
            coordinator.title(places[position].case), position - first + 1,
            round(session.seconds.get(position, 0.0), 2), _count(marks), places[position].case,
        )
        for position, marks in new.items()
    )  # fmt: skip
    state, finished = session.state, session.state.finished
    assert finished is not None
    record = CollectedRead(
        reader, read, session.digest, (state.begun or finished).isoformat(), finished.isoformat(),
        (*(() if known is None else known.cases), *cases),
    )  # fmt: skip
    reads = [each for each in collected.state.reads if (each.reader, each.read) != session.key]
    with study.change():
        try:
            store_marks(
                study, coordinator, images, read_name(reader, read), session.file,
                {position: (places[position], marks) for position, marks in new.items()}, watch,
            )  # fmt: skip
        except InputError as error:
            text = str(error) if error.file is not None else f"{session.file.name}: {error}"
            raise StudyError(text) from error
        state_now = msgspec.structs.replace(
            collected.state, reads=tuple(sorted([*reads, record], key=lambda each: (each.reader, each.read)))
        )
        study.settings.reader_study = state_now
    collected.state = state_now
    collected.added.append((reader, read, len(cases)))


def _count(marks: CaseMarks) -> int:
    """Count clicks, structures or answers."""
    structures = {stroke.detail.get("structure") for stroke in marks.strokes}
    return len(marks.clicks) or len(structures) or len(marks.answers)


def _progress(
    coordinator: Coordinator, sessions: Sequence[Session], state: ReaderStudy
) -> tuple[ReadProgress, ...]:
    """Return the progress of every reader in every session, the furthest of all files."""
    known = {(each.reader, each.read): each for each in state.progress}
    done: dict[tuple[str, int], int] = {}
    for session in sessions:
        done[session.key] = max(done.get(session.key, 0), len(session.state.done))
    collected = {(each.reader, each.read) for each in state.reads}
    progress = []
    for entry in coordinator.readers:
        for read in sorted({scheduled.session for scheduled in entry.places}):
            key = (entry.reader, read)
            before = known.get(key)
            count = max(done.get(key, 0), 0 if before is None else before.done)
            expected = sum(scheduled.session == read for scheduled in entry.places)
            progress.append(ReadProgress(entry.reader, read, count, expected, key in collected))
    return tuple(progress)
