"""Zooniverse classification exports that are replaced by longer ones, a classification at a time.

A whole export tells what its lines mean together; one that grows must tell from the lines so far. Of a
person's repeated classifications of a subject the first counts. Who marked nothing counts as having looked
once it is known that the workflow has a drawing task: those before are kept until then. A subject's frames
are those whose size the export tells, and those with marks. Of two subjects whose file has the same name the
second is told apart by its number.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from raterscope.app.formats.growing_files.records import Refusals, Rows, mended_table
from raterscope.app.formats.growing_files.state import ExportState, Waiting, added, contains, identity_of
from raterscope.app.formats.tables import LONGEST_NAME, Table, seconds_or_nan
from raterscope.app.formats.zooniverse import classifications_of, sizes_in, subject_name

__all__ = ["Classification", "Exports", "classifications"]

_Row = tuple[str, str, tuple[float, float, float, float, float], int]

_MOST_WAITING = 2000
_MOST_WORKFLOWS = 1000


@dataclass(frozen=True)
class Classification:
    """What one person did with one subject.

    Attributes
    ----------
    line : int
    person, subject, workflow : str
    is_drawing : bool
        Whether there are marks, so that the workflow has a drawing task.
    name : str
        Of the subject.
    time : float
        Seconds; NaN where it is not known.
    points : tuple of (frame, x, y)
    sizes : mapping of frame to (width, height)
    shapes : mapping of str to int
        How many marks are no points, by their shape.
    """

    line: int
    person: str
    subject: str
    workflow: str
    is_drawing: bool
    name: str
    time: float
    points: tuple[tuple[int, float, float], ...]
    sizes: Mapping[int, tuple[float, float]]
    shapes: Mapping[str, int]

    @property
    def identity(self) -> int:
        """Tell it from others by person and subject."""
        return identity_of("classification", self.person, self.subject)


def classifications(table: Table) -> tuple[list[Classification], Refusals]:
    """Read the rows of an export, each for itself."""
    table, wrong = mended_table(table, table.header)
    refused = Refusals(table, wrong)
    data, metadata = table.column("subject_data"), table.column("metadata")
    found = []
    for row, line in enumerate(table.lines):
        one = Table(
            table.path, table.header, tuple(column[row : row + 1] for column in table.columns), (line,)
        )
        faults, shapes = Refusals(one), Counter[str]()
        read, drawing, _ = classifications_of(one, faults, shapes)
        for field, what in faults.found.values():
            refused.add([row], field, what)
        if row in refused.found:
            continue
        look, sizes = read[0], dict(sizes_in(metadata[row]))
        name = subject_name(data[row], look.subject)
        if not _is_name(name) or not all(map(_is_name, (look.annotator, look.subject, look.workflow))):
            refused.add([row], "subject_data", f"has no names of at most {LONGEST_NAME} letters")
            continue
        found.append(
            Classification(
                line, look.annotator, look.subject, look.workflow, bool(drawing), name,
                seconds_or_nan(look.time),
                tuple(look.points), sizes, shapes,
            )
        )  # fmt: skip
    return found, refused


def _is_name(text: str) -> bool:
    """Tell whether a text is short, and has no half of a letter, which JSON may spell."""
    return len(text) <= LONGEST_NAME and not any("\ud800" <= letter <= "\udfff" for letter in text)


class Exports:
    """What the exports of a source told so far, and the rows that come of what they tell next.

    Attributes
    ----------
    forgotten : int
        Looks that waited for a drawing in their workflow until there were too many.
    """

    def __init__(self, state: ExportState) -> None:
        self.forgotten = 0
        self._drawing = set(state.drawing)
        self._owned = state.owned
        self._waiting = list(state.waiting)

    def state(self) -> ExportState:
        """Give what is to be kept."""
        return ExportState(tuple(sorted(self._drawing)), self._owned, tuple(self._waiting))

    def rows_of(self, found: Sequence[Classification]) -> Rows:
        """Give the clicks, and who looked and marked nothing, in the order in which it becomes known."""
        rows: list[_Row] = []
        for one in found:
            if one.is_drawing and one.workflow not in self._drawing and len(self._drawing) < _MOST_WORKFLOWS:
                self._drawing.add(one.workflow)
                rows += [_row_of(look, one.line) for look in self._waiting if look[0] == one.workflow]
                self._waiting = [look for look in self._waiting if look[0] != one.workflow]
            base = self._name(one.name, one.subject)
            marked = {frame for frame, _, _ in one.points}
            for frame in sorted({*one.sizes, *marked} or {0}):
                image = base + (f" frame {frame + 1}" if frame else "")
                width, height = one.sizes.get(frame, (math.nan, math.nan))
                if one.workflow not in self._drawing:
                    time, *size = (
                        None if math.isnan(value) else value for value in (one.time, width, height)
                    )
                    self._waiting.append((one.workflow, one.person, image, time, size[0], size[1]))
                    continue
                places = [(x, y) for where, x, y in one.points if where == frame] or [(math.nan, math.nan)]
                rows += [(one.person, image, (x, y, one.time, width, height), one.line) for x, y in places]
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
        """Give the name to the subject that has it first; another's bears its number."""
        plain, owner = identity_of("name", name), identity_of("owner", name, subject)
        if not contains(self._owned, plain):
            self._owned = added(self._owned, [plain, owner])
        return name if contains(self._owned, owner) else f"{name} (subject {subject})"


def _row_of(look: Waiting, line: int) -> _Row:
    _, person, image, *numbers = look
    time, width, height = (math.nan if value is None else value for value in numbers)
    return person, image, (math.nan, math.nan, time, width, height), line
