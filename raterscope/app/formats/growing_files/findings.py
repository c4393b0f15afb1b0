"""Findings of one look at one file, and their messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from raterscope.app.errors import InputError, counted, plain
from raterscope.app.formats.growing_files.blocks import Stamp
from raterscope.app.formats.growing_files.exports import Classification
from raterscope.app.formats.growing_files.records import Rows
from raterscope.app.formats.growing_files.state import FilePosition

__all__ = ["Findings", "refused"]

_MOST_SAID = 10


@dataclass
class Findings:
    """What came of one file."""

    path: Path
    position: FilePosition
    rows: list[Rows] = field(default_factory=list)
    marks: list[Classification] = field(default_factory=list)
    shapes: Counter[str] = field(default_factory=Counter)
    said: list[str] = field(default_factory=list)
    lines_read: int = 0
    refused: int = 0
    repeated: int = 0
    untimed: int = 0

    def refuse(self, line: int, what: str, field: str | None = None) -> None:
        """Take note of a line that is left out; the first ones are told in full."""
        self.refused += 1
        if self.refused <= _MOST_SAID:
            self.said.append(str(InputError(what, file=self.path, line=line, field=field)))

    def leave_untimed(self, cells: Sequence[tuple[int, str]]) -> None:
        """Take note of times that are none, given as (line, cell)."""
        if cells and not self.untimed:
            line, cell = cells[0]
            what = f'"{plain(cell, 40)}" is no time; the row came without one'
            self.said.append(str(InputError(what, file=self.path, line=line)))
        self.untimed += len(cells)

    def look_at_times(self) -> None:
        """Say, once a file, that times go back."""
        for rows in self.rows:
            timed = np.flatnonzero(np.isfinite(rows.time))
            if not len(timed):
                continue
            times, latest = rows.time[timed], self.position.latest
            before = np.maximum.accumulate(np.concatenate([[-np.inf if latest is None else latest], times]))
            back = np.flatnonzero(times < before[:-1])
            if len(back) and not self.position.disordered:
                line = int(rows.line[timed[back[0]]])
                what = "this time is earlier than the previous one; rows are used in the order of the file"
                self.said.append(str(InputError(what, file=self.path, line=line)))
            disordered = self.position.disordered or bool(len(back))
            self.position = replace(self.position, latest=float(before[-1]), disordered=disordered)

    def notices(self) -> tuple[str, ...]:
        """Give the sentences for people."""
        name, said = plain(self.path.name, 200), list(self.said)
        if self.refused > _MOST_SAID:
            said.append(f"{name}: {counted(self.refused - _MOST_SAID, 'more bad line')} left out.")
        if self.untimed > 1:
            said.append(f"{name}: {counted(self.untimed - 1, 'more row')} without a time that can be read.")
        if self.repeated:
            said.append(f"{name}: {counted(self.repeated, 'row')} left out, having come before.")
        if self.shapes:
            kinds = ", ".join(f"{plain(kind, 20)} {count:,}" for kind, count in self.shapes.most_common(6))
            said.append(f"{name}: marks that are no points were left out ({kinds}).")
        return tuple(said)


def refused(path: Path, before: FilePosition | None, stamp: Stamp, error: InputError) -> Findings:
    """Leave a file out until it changes, which is said once."""
    position = replace(before or FilePosition(), refused=True, stamp=stamp)
    said = [] if before is not None and before.refused else [str(error)]
    return Findings(path, position, said=said)
