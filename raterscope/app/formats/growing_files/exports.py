"""Zooniverse classification exports that grow, read one classification at a time.

A complete export is interpreted as a whole; a growing one by the lines so far. The first of a person's
classifications of a subject counts. A person who marked nothing counts as having looked once the workflow is
known to have a drawing task; until then the look waits. A subject's frames are those with a known size or
with marks. If two subjects have the same file name, the second gets its number appended.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from raterscope.app.formats.growing_files.records import Rows, repair_table
from raterscope.app.formats.growing_files.state import ExportState, Waiting, added, contains, identity_of
from raterscope.app.formats.tables import LONGEST_NAME, Faults, Table, seconds_or_nan
from raterscope.app.formats.zooniverse import name_subject, parse_classifications, read_frame_sizes

_Row = tuple[str, str, tuple[float, float, float, float, float], int]

_MOST_WAITING = 2000
_MOST_WORKFLOWS = 1000


@dataclass(frozen=True)
class Classification:
    """One person's classification of one subject."""

    line: int
    person: str
    subject: str
    workflow: str
    is_drawing: bool  # whether there are marks, which means that the workflow has a drawing task
    name: str  # the subject's name
    time: float  # seconds; NaN if unknown
    points: tuple[tuple[int, float, float], ...]  # tuple of (frame, x, y)
    sizes: Mapping[int, tuple[float, float]]  # by frame
    shapes: Mapping[str, int]  # number of marks that are not points, by shape

    @property
    def identity(self) -> int:
        """Identity of person and subject."""
        return identity_of("classification", self.person, self.subject)


def read_classifications(table: Table) -> tuple[list[Classification], Faults]:
    """Read the rows of an export, each independently of the others."""
    table, wrong = repair_table(table, table.header)
    refused = Faults(table, wrong)
    data, metadata = table.column("subject_data"), table.column("metadata")
    result = []
    for row, line in enumerate(table.lines):
        single = Table(
            table.path, table.header, tuple(column[row : row + 1] for column in table.columns), (line,)
        )
        faults, shapes = Faults(single), Counter[str]()
        looks, drawing, _ = parse_classifications(single, faults, shapes)
        if faults.rows:
            refused.add([row], *faults.describe(0))
        if row in refused.rows:
            continue
        look, sizes = looks[0], dict(read_frame_sizes(metadata[row]))
        name = name_subject(data[row], look.subject)
        if not _is_name(name) or not all(map(_is_name, (look.annotator, look.subject, look.workflow))):
            refused.add([row], "subject_data", f"has names longer than {LONGEST_NAME} letters")
            continue
        result.append(
            Classification(
                line, look.annotator, look.subject, look.workflow, bool(drawing), name,
                seconds_or_nan(look.time),
                tuple(look.points), sizes, shapes,
            )
        )  # fmt: skip
    return result, refused


def _is_name(text: str) -> bool:
    """Return whether a text is short enough, and has no lone surrogate, which JSON may contain."""
    return len(text) <= LONGEST_NAME and not any("\ud800" <= letter <= "\udfff" for letter in text)


class Exports:
    """Converter of classifications to rows, with the state that earlier lines of the exports left."""

    def __init__(self, state: ExportState) -> None:
        self.forgotten = 0  # waiting looks that were dropped because there were too many
        self._drawing = set(state.drawing)
        self._owned = state.owned
        self._waiting = list(state.waiting)

    def state(self) -> ExportState:
        """Return the state to store."""
        return ExportState(tuple(sorted(self._drawing)), self._owned, tuple(self._waiting))

    def rows_of(self, classifications: Sequence[Classification]) -> Rows:
        """Return the clicks, and the looks without a mark, in the order in which they become known."""
        rows: list[_Row] = []
        for item in classifications:
            is_new = item.is_drawing and item.workflow not in self._drawing
            if is_new and len(self._drawing) < _MOST_WORKFLOWS:
                self._drawing.add(item.workflow)
                rows += [_row_of(look, item.line) for look in self._waiting if look[0] == item.workflow]
                self._waiting = [look for look in self._waiting if look[0] != item.workflow]
            base = self._name(item.name, item.subject)
            marked = {frame for frame, _, _ in item.points}
            for frame in sorted({*item.sizes, *marked} or {0}):
                image = base + (f" frame {frame + 1}" if frame else "")
                width, height = item.sizes.get(frame, (math.nan, math.nan))
                if item.workflow not in self._drawing:
                    time, *size = (
                        None if math.isnan(value) else value for value in (item.time, width, height)
                    )
                    self._waiting.append((item.workflow, item.person, image, time, size[0], size[1]))
                    continue
                positions = [point[1:] for point in item.points if point[0] == frame] or [
                    (math.nan, math.nan)
                ]
                rows += [
                    (item.person, image, (x, y, item.time, width, height), item.line) for x, y in positions
                ]
        self.forgotten += max(len(self._waiting) - _MOST_WAITING, 0)
        self._waiting = self._waiting[-_MOST_WAITING:]
        numbers = np.array([row[2] for row in rows], dtype=np.float64).reshape(-1, 5)
        column = iter(numbers.T.copy())
        line = np.array([row[3] for row in rows], dtype=np.int64)
        return Rows(
            [row[0] for row in rows], [row[1] for row in rows], x=next(column), y=next(column),
            time=next(column), width=next(column), height=next(column), line=line,
        )  # fmt: skip

    def _name(self, name: str, subject: str) -> str:
        """Return the name for its first subject; for any other, the name with the subject's number."""
        plain, owner = identity_of("name", name), identity_of("owner", name, subject)
        if not contains(self._owned, plain):
            self._owned = added(self._owned, [plain, owner])
        return name if contains(self._owned, owner) else f"{name} (subject {subject})"


def _row_of(look: Waiting, line: int) -> _Row:
    _, person, image, *numbers = look
    time, width, height = (math.nan if value is None else value for value in numbers)
    return person, image, (math.nan, math.nan, time, width, height), line
