"""Collection of a reader study: the readers' files in one study, with one annotator for each read.

A session is collected once it is finished. Everything that does not fit is named and left out: what was
collected before stays, and a later collection adds what is new.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from raterscope.algorithms.annotators.names import read_name
from raterscope.algorithms.progress import Watch, part, silent, steps_of
from raterscope.app.errors import InputError, StudyError, plain
from raterscope.app.program_files import READING_SUFFIX
from raterscope.app.reader_studies.collected_marks import CollectedImages, store_marks
from raterscope.app.reader_studies.protocol import COORDINATOR, Coordinator, ReaderEntry, read_coordinator
from raterscope.app.reader_studies.reading_file import CaseMarks, ReadingFile, SessionState
from raterscope.app.study import Study
from raterscope.app.study.new_study import new_study
from raterscope.app.study.records import CollectedRead, ReadCase, ReaderStudy, ReadProgress
from raterscope.text import counted

_NAMED = 4
"""Cases that a message lists by name."""


@dataclass
class Collected:
    """Outcome of a collection."""

    state: ReaderStudy  # the study's state after it
    # list of (reader, read, cases): reads that were added now, with the number of their cases
    added: list[tuple[str, int, int]] = field(default_factory=list)
    # what was left out and why, a sentence each, with the file
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Session:
    """One reader's session as its file has it."""

    file: Path
    entry: ReaderEntry
    state: SessionState
    digest: str
    marks: dict[int, CaseMarks]  # by position: of the completed cases
    seconds: dict[int, float]
    changed: frozenset[str] = frozenset()  # keys of the cases whose texts are others than the coordinator's

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
    """Find the reading files, and the coordinator's file in or above their folder."""
    files: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            present = sorted(each for each in path.rglob(f"*{READING_SUFFIX}") if each.is_file())
            if not present:
                raise InputError(f"holds no reading file, NAME{READING_SUFFIX}", file=path)
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
    """Read the sessions of all files; a file that does not fit is named."""
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
            words = "has another order of cases than the coordinator's file"
            if lacking:
                session, key = min(lacking)
                words = f"lacks case {key} of read {session}"
                words += f" and {len(lacking) - 1:,} more" if len(lacking) > 1 else ""
            raise InputError(words, file=path)
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
            words = str(error) if error.file is not None else f"{session.file.name}: {error}"
            raise StudyError(words) from error
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
    """Return the progress of every reader in every session, the most that is known."""
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
