"""The clicks on one image in the order in which they came, cut into steps of so many annotators."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from raterscope.algorithms.clicks.data import Clicks, FloatArray, IntArray
from raterscope.app.study.records import MarksRecord

MOST_STEPS = 4
"""Steps an annotator, on average, above which an import was not sorted by annotator and is one step."""


@dataclass(frozen=True, eq=False)
class Arrivals:
    """What has come on one image: N clicks of R annotators in S steps.

    Attributes
    ----------
    extent : (left, top, right, bottom)
    imported : int
        The last import that is in it.
    x, y : (N,) float64
    time : (N,) float64
        Seconds, NaN where it is not told.
    annotator : (N,) int64
        Index into `order`.
    order : (R,) int64
        Numbers of the annotators in the study, in the order in which they came.
    rows, people : (S,) int64
        Clicks and annotators that have come after each step.
    """

    extent: tuple[float, float, float, float]
    imported: int = 0
    x: FloatArray = field(default_factory=lambda: np.empty(0))
    y: FloatArray = field(default_factory=lambda: np.empty(0))
    time: FloatArray = field(default_factory=lambda: np.empty(0))
    annotator: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    order: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    rows: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    people: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.rows)

    def step_of(self, rows: int, people: int) -> int | None:
        """Give the number of steps after which so many clicks of so many annotators had come.

        None where no step ended there.
        """
        if rows == people == 0:
            return 0
        found = np.flatnonzero((self.rows == rows) & (self.people == people))
        return int(found[0]) + 1 if len(found) else None

    def clicks(self, step: int, names: Sequence[str]) -> Clicks:
        """Give all that has come after so many steps."""
        rows, people = (int(self.rows[step - 1]), int(self.people[step - 1])) if step else (0, 0)
        time = self.time[:rows]
        return Clicks(
            x=self.x[:rows],
            y=self.y[:rows],
            annotator=self.annotator[:rows],
            annotators=tuple(names[number] for number in self.order[:people].tolist()),
            extent=self.extent,
            time=None if np.isnan(time).all() else time,
        )


def in_steps(
    before: Arrivals,
    records: Iterable[tuple[int, MarksRecord]],
    per_step: int,
    since: int = 0,
    excluded: frozenset[int] = frozenset(),
) -> Arrivals:
    """Add what came, in steps of so many annotators; no step spans two imports but the first.

    Parameters
    ----------
    before : Arrivals
    records : iterable of (import, MarksRecord)
        In the order of import.
    per_step : int
        Annotators whose clicks are taken up together.
    since : int
        The import up to which all is one step.
    excluded : frozenset of int
        Annotators whose clicks are left out.
    """
    parts: list[tuple[FloatArray, FloatArray, FloatArray, IntArray]] = []
    index = {number: place for place, number in enumerate(before.order.tolist())}
    rows, people, imported = before.rows.tolist(), before.people.tolist(), before.imported
    total = len(before.x)
    for number, record in records:
        imported = number
        kept = ~np.isin(record.annotator, sorted(excluded))
        annotator = record.annotator[kept]
        time = np.full(len(record.x), np.nan) if record.time is None else record.time
        steps = _steps(annotator, record.looked, excluded, set(index), per_step)
        if number <= since:
            steps = [(len(annotator), [one for _, newcomers in steps for one in newcomers])]
            rows, people = [], []
        for end, newcomers in steps:
            for one in newcomers:
                index[one] = len(index)
            rows.append(total + end)
            people.append(len(index))
        places = np.array([index[one] for one in annotator.tolist()], dtype=np.int64)
        parts.append((record.x[kept], record.y[kept], time[kept], places))
        total += len(annotator)
    x, y, time, annotator = (
        np.concatenate([old, *(part[column] for part in parts)])
        for column, old in enumerate((before.x, before.y, before.time, before.annotator))
    )
    return Arrivals(
        extent=before.extent,
        imported=imported,
        x=x,
        y=y,
        time=time,
        annotator=annotator.astype(np.int64),
        order=np.array(list(index), dtype=np.int64),
        rows=np.array(rows, dtype=np.int64),
        people=np.array(people, dtype=np.int64),
    )


def _steps(
    annotator: IntArray, looked: IntArray, excluded: frozenset[int], known: set[int], per_step: int
) -> list[tuple[int, list[int]]]:
    """Cut an import into steps: for each the row at which it ends and who is new in it."""
    change = np.flatnonzero(np.diff(annotator)) + 1
    ends = [*change.tolist(), len(annotator)] if len(annotator) else []
    who = annotator[np.array(ends, dtype=np.int64) - 1].tolist()
    if len(who) > MOST_STEPS * len(set(who)):
        ends, who = [len(annotator)], [None]
    marked = set(annotator.tolist())
    idle = [one for one in looked.tolist() if one not in marked and one not in excluded and one not in known]
    stretches = list(zip(ends, who, strict=True))
    steps: list[tuple[int, list[int]]] = []
    begin = 0
    for first in range(0, len(stretches), per_step):
        end = stretches[min(first + per_step, len(stretches)) - 1][0]
        fresh = dict.fromkeys(one for one in annotator[begin:end].tolist() if one not in known)
        known.update(fresh)
        steps.append((end, list(fresh)))
        begin = end
    for first in range(0, len(idle), per_step):
        steps.append((len(annotator), idle[first : first + per_step]))
    return steps
