"""The reading file: one reader's cases, marks and times in NAME.rsread, an SQLite file.

``about``
    One row with the `Assignment` as JSON.
``operations``
    The journal of the reader's marks, append-only: click, unclick, stroke, answer and done, each at a
    position in the order. An undo is a row whose ``undoes`` names the undone operation; a redo undoes an
    undo.
``times``
    Seconds that each position was on screen while the window was active.
``sessions``
    When each session began and was finished. Triggers refuse operations and times in a finished session.

Every change is on disk when the method returns, in the file itself: there is no log file beside it that could
be lost when the file is sent.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import msgspec

from raterscope.app.errors import StudyError
from raterscope.app.formats.output_files import draft_for
from raterscope.app.program_files import READING_SUFFIX
from raterscope.app.reader_studies.protocol import VERSION, Assignment
from raterscope.app.study.opening import give_name, translated_errors
from raterscope.text import counted

APPLICATION_ID = 0x52537264
_LONGEST_VALUE = 64 << 20

_SCHEMA = (
    "CREATE TABLE about (id INTEGER PRIMARY KEY CHECK (id = 1), assignment TEXT NOT NULL) STRICT",
    """CREATE TABLE operations (
        id INTEGER PRIMARY KEY, at TEXT NOT NULL, place INTEGER NOT NULL, verb TEXT NOT NULL,
        detail BLOB NOT NULL, undoes INTEGER) STRICT""",
    "CREATE INDEX operations_by_place ON operations(place)",
    "CREATE TABLE times (place INTEGER PRIMARY KEY, seconds REAL NOT NULL) STRICT",
    """CREATE TABLE sessions (
        session INTEGER PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL, begun TEXT,
        finished TEXT) STRICT""",
    """CREATE TRIGGER operations_stay BEFORE UPDATE ON operations
        BEGIN SELECT RAISE(ABORT, 'operations are never changed'); END""",
    """CREATE TRIGGER operations_remain BEFORE DELETE ON operations
        BEGIN SELECT RAISE(ABORT, 'operations are never removed'); END""",
    """CREATE TRIGGER operations_locked BEFORE INSERT ON operations
        WHEN EXISTS (SELECT 1 FROM sessions
            WHERE finished IS NOT NULL AND NEW.place BETWEEN first AND last)
        BEGIN SELECT RAISE(ABORT, 'the session is finished'); END""",
    """CREATE TRIGGER sessions_stay BEFORE UPDATE ON sessions WHEN OLD.finished IS NOT NULL
        BEGIN SELECT RAISE(ABORT, 'the session is finished'); END""",
)


class Operation(msgspec.Struct, frozen=True):
    """One entry of the journal."""

    id: int
    at: str  # UTC time, ISO 8601
    position: int  # index in `Assignment.places`
    verb: str  # click, unclick, stroke, answer, done or undo
    # click, unclick: x and y in pixels; stroke: structure, origin, shape and values (packed int8); answer:
    # question and answer
    detail: dict[str, Any]
    undoes: int | None = None


@dataclass(frozen=True)
class SessionState:
    """State of a session."""

    session: int
    places: range
    # begun, finished: datetime or None
    begun: datetime | None
    finished: datetime | None
    # datetime or None: when it may begin; None until the previous session is finished
    opens: datetime | None
    done: frozenset[int] = frozenset()  # completed positions

    def is_open(self, now: datetime) -> bool:
        """Return whether the reader may mark."""
        return self.finished is None and self.opens is not None and now >= self.opens


@dataclass(frozen=True)
class CaseMarks:
    """Current marks of the reader on one case, by the journal."""

    # (x, y, time) of each click: pixels, and time in ISO 8601
    clicks: tuple[tuple[float, float, str], ...] = ()
    strokes: tuple[Operation, ...] = ()  # in the order in which they are drawn
    answers: dict[str, str] = field(default_factory=dict)  # by question
    done: bool = False  # whether the reader completed the case
    # undoable, redoable: numbers of the operations that undo reverts, and that redo repeats
    undoable: int | None = None
    redoable: int | None = None


_FIELDS: Mapping[str, Mapping[str, type]] = {
    "click": {"x": float, "y": float},
    "unclick": {"x": float, "y": float},
    "stroke": {"structure": str, "origin": list, "shape": list, "values": bytes},
    "answer": {"question": str, "answer": str},
    "done": {},
    "undo": {},
}
"""Details of an operation, by its verb."""


def _operation(row: tuple[int, str, int, str, bytes, int | None]) -> Operation:
    """Read an operation of an untrusted file; raises `ValueError` and similar errors."""
    number, at, position, verb, packed, undoes = row
    detail = msgspec.msgpack.decode(packed, type=dict[str, Any])
    datetime.fromisoformat(at)
    for name, kind in _FIELDS[verb].items():
        value = detail[name]
        if not isinstance(value, kind) or (isinstance(value, float) and not math.isfinite(value)):
            raise ValueError(f"{name} of {verb}")
    return Operation(number, at, position, verb, detail, undoes)


def fold(operations: Sequence[Operation]) -> CaseMarks:
    """Return the effect of all operations on one position."""
    undone = _undone(operations)
    clicks: list[tuple[float, float, str]] = []
    strokes, answers, done = [], {}, False
    for operation in operations:
        if operation.undoes is not None or operation.id in undone:
            continue
        detail = operation.detail
        if operation.verb == "click":
            clicks.append((detail["x"], detail["y"], operation.at))
        elif operation.verb == "unclick":
            clicks = [click for click in clicks if click[:2] != (detail["x"], detail["y"])]
        elif operation.verb == "stroke":
            strokes.append(operation)
        elif operation.verb == "answer":
            answers[detail["question"]] = detail["answer"]
        elif operation.verb == "done":
            done = True
    undoable, redoable = _ends(operations, undone)
    return CaseMarks(tuple(clicks), tuple(strokes), answers, done, undoable, redoable)


def _undone(operations: Sequence[Operation]) -> set[int]:
    """Return the undone operations."""
    undone: set[int] = set()
    for operation in reversed(operations):
        if operation.undoes is not None and operation.id not in undone:
            undone.add(operation.undoes)
    return undone


def _ends(operations: Sequence[Operation], undone: set[int]) -> tuple[int | None, int | None]:
    """Find the operation that undo reverts, and the undo that redo reverts."""
    by_id = {operation.id: operation for operation in operations}
    standing = [each for each in operations if each.undoes is None and each.id not in undone]
    # A case stops being done only when no mark is left.
    standing.sort(key=lambda each: (each.verb != "done", each.id))
    redoable = None
    for operation in reversed(operations):
        if operation.undoes is None:  # a new mark ends the chain of redos
            break
        target = by_id.get(operation.undoes)
        if target is not None and target.undoes is None and operation.id not in undone:
            redoable = operation.id
            break
    return (standing[-1].id if standing else None), redoable


class ReadingFile:
    """An open reading file. Used by one thread at a time.

    Every method raises `StudyError` if the file cannot be read or written.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, assignment: Assignment) -> None:
        self.path, self.assignment = path, assignment
        self._connection = connection

    @classmethod
    def create(cls, path: Path, assignment: Assignment) -> None:
        """Make a reading file, completely or not at all; an existing file is never replaced."""
        draft = draft_for(path)
        try:
            with translated_errors(path, "created"):
                connection = sqlite3.connect(draft, isolation_level=None)
                try:
                    connection.execute("PRAGMA synchronous=FULL")
                    connection.execute("BEGIN")
                    for statement in _SCHEMA:
                        connection.execute(statement)
                    text = msgspec.json.encode(assignment).decode()
                    connection.execute("INSERT INTO about(id, assignment) VALUES (1, ?)", (text,))
                    for session in range(1, assignment.sessions + 1):
                        places = assignment.positions(session)
                        connection.execute(
                            "INSERT INTO sessions(session, first, last) VALUES (?, ?, ?)",
                            (session, places[0], places[-1]),
                        )
                    connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
                    connection.execute(f"PRAGMA user_version={assignment.version}")
                    connection.execute("COMMIT")
                finally:
                    connection.close()
                give_name(draft, path)
        finally:
            with suppress(OSError):
                draft.unlink(missing_ok=True)

    @classmethod
    def open(cls, path: Path, *, to_read: bool = False) -> Self:
        """Open a reading file; locked for this process unless it is only read."""
        if not path.is_file():
            raise StudyError("does not exist", file=path)
        mode = "ro" if to_read else "rw"
        with translated_errors(path, "opened"):
            connection = sqlite3.connect(
                f"{path.resolve().as_uri()}?mode={mode}", uri=True, isolation_level=None,
                check_same_thread=False, timeout=1.0,
            )  # fmt: skip
            try:
                return cls(path, connection, _checked(path, connection, to_read))
            except BaseException:
                connection.close()
                raise

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Reading

    def operations(self, position: int | None = None) -> list[Operation]:
        """List the operations on a position, or all, oldest first."""
        with translated_errors(self.path, "read"):
            rows = self._connection.execute(
                "SELECT id, at, place, verb, detail, undoes FROM operations "
                "WHERE ?1 IS NULL OR place = ?1 ORDER BY id",
                (position,),
            ).fetchall()
        try:
            return [_operation(row) for row in rows]
        except (KeyError, TypeError, ValueError, OverflowError, msgspec.MsgspecError) as error:
            raise StudyError("is damaged: a mark cannot be read", file=self.path) from error

    def marks(self, position: int) -> CaseMarks:
        """Return the marks on a position."""
        return fold(self.operations(position))

    def times(self) -> dict[int, float]:
        """Return the seconds that each position was on screen."""
        with translated_errors(self.path, "read"):
            return dict(self._connection.execute("SELECT place, seconds FROM times"))

    def sessions(self) -> list[SessionState]:
        """Return the state of each session."""
        with translated_errors(self.path, "read"):
            return self._states(self._done())

    def _states(self, done: Collection[int] = ()) -> list[SessionState]:
        with translated_errors(self.path, "read"):
            rows = self._connection.execute(
                "SELECT session, begun, finished FROM sessions ORDER BY session"
            ).fetchall()
        states: list[SessionState] = []
        washout = timedelta(days=self.assignment.washout_days)
        for session, begun, finished in rows:
            opens: datetime | None = datetime.min.replace(tzinfo=UTC)
            if states:
                before = states[-1].finished
                opens = None if before is None else before + washout
            places = self.assignment.positions(session)
            states.append(
                SessionState(
                    session, places, self._moment(begun), self._moment(finished), opens,
                    frozenset(position for position in places if position in done),
                )
            )  # fmt: skip
        return states

    def _done(self) -> set[int]:
        """Find the completed positions, without reading strokes."""
        if self.assignment.questions:
            rows = self._connection.execute("SELECT DISTINCT place FROM operations").fetchall()
            return {position for (position,) in rows if self.completes(self.marks(position))}
        light = self._connection.execute("SELECT id, at, place, verb, undoes FROM operations ORDER BY id")
        operations = [
            Operation(number, at, position, verb, {}, undoes) for number, at, position, verb, undoes in light
        ]
        undone = _undone(operations)
        return {each.position for each in operations if each.verb == "done" and each.id not in undone}

    def completes(self, marks: CaseMarks) -> bool:
        """Return whether marks complete a case: it is marked as done, or every question is answered."""
        questions = {question.name for question in self.assignment.questions}
        return questions <= marks.answers.keys() if questions else marks.done

    def _moment(self, text: str | None) -> datetime | None:
        if text is None:
            return None
        try:
            return datetime.fromisoformat(text).astimezone(UTC)
        except ValueError as error:
            raise StudyError("is damaged: the time of a session cannot be read", file=self.path) from error

    # Writing

    def record(
        self, position: int, verb: str, detail: dict[str, Any], undoes: int | None = None
    ) -> Operation:
        """Append an operation; a session begins with its first operation."""
        now = datetime.now(UTC)
        session = self._open_session(position, now)
        at = now.isoformat(timespec="milliseconds")
        with self._change() as connection:
            if session.begun is None:
                connection.execute("UPDATE sessions SET begun = ? WHERE session = ?", (at, session.session))
            (number,) = connection.execute(
                "INSERT INTO operations(at, place, verb, detail, undoes) VALUES (?, ?, ?, ?, ?) RETURNING id",
                (at, position, verb, msgspec.msgpack.encode(detail), undoes),
            ).fetchone()
        return Operation(number, at, position, verb, detail, undoes)

    def undo(self, position: int) -> bool:
        """Undo the last mark on a position; return whether there was one."""
        return self._undo_mark(position, self.marks(position).undoable)

    def redo(self, position: int) -> bool:
        """Repeat the mark that was undone last."""
        return self._undo_mark(position, self.marks(position).redoable)

    def _undo_mark(self, position: int, target: int | None) -> bool:
        if target is not None:
            self.record(position, "undo", {}, target)
        return target is not None

    def add_time(self, position: int, seconds: float) -> None:
        """Add to the seconds that a position was on screen, unless its session is finished."""
        state = self._session_of(position)
        if state.finished is not None or seconds <= 0:
            return
        with self._change() as connection:
            connection.execute(
                "INSERT INTO times(place, seconds) VALUES (?, ?) "
                "ON CONFLICT(place) DO UPDATE SET seconds = seconds + excluded.seconds",
                (position, float(seconds)),
            )

    def finish(self, session: int) -> None:
        """Lock a session: its marks cannot be changed any more."""
        now = datetime.now(UTC)
        self._open_session(self.assignment.positions(session)[0], now)
        at = now.isoformat(timespec="milliseconds")
        with self._change() as connection:
            connection.execute(
                "UPDATE sessions SET begun = ifnull(begun, ?1), finished = ?1 WHERE session = ?2",
                (at, session),
            )

    def _session_of(self, position: int) -> SessionState:
        """Return the session of a position, without its progress."""
        if not 0 <= position < len(self.assignment.places):
            raise StudyError(f"has no case number {position + 1}", file=self.path)
        return self._states()[self.assignment.places[position].session - 1]

    def _open_session(self, position: int, now: datetime) -> SessionState:
        """Return the session of a position; refuse a session that is finished or may not begin yet."""
        state = self._session_of(position)
        if state.finished is not None:
            raise StudyError(f"session {state.session} is finished and cannot be changed", file=self.path)
        if state.opens is None:
            raise StudyError(f"finish session {state.session - 1} first", file=self.path)
        if now < state.opens:
            raise StudyError(
                f"session {state.session} opens on {when(state.opens)}, after a washout of "
                f"{counted_days(self.assignment.washout_days)}",
                file=self.path,
            )
        return state

    @contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        with translated_errors(self.path, "written"):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise


def when(moment: datetime) -> str:
    """Return a time in the local time zone: "2026-12-24 14:05"."""
    return f"{moment.astimezone():%Y-%m-%d %H:%M}"


def counted_days(days: float) -> str:
    """Return a number of days with its noun."""
    return counted(int(days), "day") if days == int(days) else f"{days:g} days"


def _checked(path: Path, connection: sqlite3.Connection, to_read: bool) -> Assignment:
    """Check an untrusted file, lock it, and return its assignment."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.execute("PRAGMA cell_size_check=ON")
    try:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        statements = {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_schema")}
    except sqlite3.DatabaseError as error:
        if (getattr(error, "sqlite_errorname", "") or "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise StudyError("is open in another window; close it there first", file=path) from error
        raise StudyError(f"is not a reading file, NAME{READING_SUFFIX}, or is damaged", file=path) from error
    if application != APPLICATION_ID:
        raise StudyError(f"is not a reading file, NAME{READING_SUFFIX}", file=path)
    if version > VERSION:
        raise StudyError("is from a newer version of Raterscope", file=path)
    if statements != set(_SCHEMA):
        raise StudyError("is damaged: it has other tables than a reading file", file=path)
    if not to_read:
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        connection.execute("PRAGMA journal_mode=DELETE")
        connection.execute("PRAGMA synchronous=FULL")
        try:
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("COMMIT")
        except sqlite3.OperationalError as error:
            if (getattr(error, "sqlite_errorname", "") or "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
                raise StudyError("is open in another window; close it there first", file=path) from error
            raise
    (text,) = connection.execute("SELECT assignment FROM about").fetchone() or ("",)
    try:
        assignment = msgspec.json.decode(text, type=Assignment)
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise StudyError("is damaged: its assignment cannot be read", file=path) from error
    keys = {case.key for case in assignment.cases}
    if not assignment.places or any(scheduled.case not in keys for scheduled in assignment.places):
        raise StudyError("is damaged: its order names a case that it lacks", file=path)
    return assignment
