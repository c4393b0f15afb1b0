"""Records of arrays as columns, which processes exchange in a fraction of the time.

Each array of a record costs microseconds to pickle and to unpickle. Records of one class are therefore sent
as one array for each field. A record's arrays are views of these afterwards.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

Record = TypeVar("Record")


@dataclass(frozen=True, eq=False)
class _Arrays:
    """Arrays of one type and number of axes: their values one behind the other, and their shapes."""

    values: np.ndarray
    shapes: np.ndarray  # (arrays, axes)

    def split(self) -> Iterator[np.ndarray]:
        shapes = self.shapes.tolist()
        ends = np.cumsum(self.shapes.prod(axis=1)).tolist()
        begin = 0
        for shape, end in zip(shapes, ends, strict=True):
            array = self.values[begin:end]
            yield array if len(shape) == 1 else array.reshape(shape)
            begin = end


@dataclass(frozen=True, eq=False)
class RecordBatch(Generic[Record]):
    """Frozen dataclasses of one class, as columns."""

    kind: type[Record]
    count: int
    columns: dict[str, Any]  # by field: arrays, a batch of the records in the field, or a list of values

    @classmethod
    def of(cls, records: Sequence[Record]) -> RecordBatch[Record]:
        """Make a batch of one or more records.

        Examples
        --------
        >>> from raterscope.algorithms.simulation.click_crowds import separated_crowd
        >>> clicks = [separated_crowd(20, seed=seed).clicks for seed in (3, 4)]
        >>> [len(each) for each in RecordBatch.of(clicks).records()] == [len(each) for each in clicks]
        True
        """
        kind: Any = type(records[0])
        names = [field.name for field in dataclasses.fields(kind)]
        columns = {name: to_column([getattr(record, name) for record in records]) for name in names}
        return cls(kind, len(records), columns)

    def records(self) -> list[Record]:
        """Return the records, as they were."""
        names = tuple(self.columns)
        columns = [_values(column) for column in self.columns.values()]
        records = []
        for values in zip(*columns, strict=True):
            record = object.__new__(self.kind)  # as unpickling does: it was checked when it was made
            record.__dict__.update(zip(names, values, strict=True))
            records.append(record)
        return records


def to_column(values: list[Any]) -> Any:
    """Return records or arrays of one kind as a batch, and other values as they are."""
    if not values:
        return values
    first = values[0]
    if any(type(value) is not type(first) for value in values):
        return values
    if isinstance(first, np.ndarray):
        same = all(
            array.dtype == first.dtype and array.ndim == first.ndim and array.flags.c_contiguous
            for array in values
        )
        if not same or not first.ndim:
            return values
        shapes = np.array([array.shape for array in values], dtype=np.int64)
        return _Arrays(np.concatenate([array.reshape(-1) for array in values]), shapes)
    if dataclasses.is_dataclass(first) and hasattr(first, "__dict__") and not isinstance(first, type):
        return RecordBatch.of(values)
    return values


def _values(column: Any) -> Sequence[Any] | Iterator[Any]:
    if isinstance(column, _Arrays):
        return column.split()
    return column.records() if isinstance(column, RecordBatch) else column


def from_column(column: Any) -> list[Any]:
    """Return the values that `to_column` was given."""
    return list(_values(column))
