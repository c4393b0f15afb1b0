"""Tables of results as columns of NumPy, with the names and values of the program's CSV files."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

Frame = dict[str, NDArray[Any]]
"""Columns of a table, which `pandas.DataFrame`, `polars.DataFrame` and `pyarrow.table` take."""

_TEXTS = frozenset({
    "image", "annotator", "task", "label", "item", "structure", "question", "other", "behaviour", "rule",
    "beyond", "short", "farthest", "method", "true", "given", "name", "kind", "algorithm", "class",
    "most_central", "who", "verb", "reason", "reader", "case",
})  # fmt: skip
"""Columns of names, which stay text even where every name is a number."""

_SHOWN = 10
"""Rows of a table in a notebook."""

_WHOLE = re.compile(r"-?\d{1,15}", re.ASCII)


def make_frame(header: Sequence[str], columns: Iterable[Any]) -> Frame:
    """Make a table of columns: arrays, pairs of texts and indices, or cells as they are written to CSV.

    Empty cells of numbers are NaN.

    Examples
    --------
    >>> frame = make_frame(("item", "rank"), [["1", "2"], ["3", ""]])
    >>> frame["item"].tolist(), frame["rank"].tolist()
    (['1', '2'], [3.0, nan])
    """
    return {name: _column(name, column) for name, column in zip(header, columns, strict=True)}


def frame_of_rows(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Frame:
    """Make a table of rows, as they are written to CSV."""
    listed = list(rows)
    return make_frame(header, zip(*listed, strict=True) if listed else [[] for _ in header])


def read_frame(header: Sequence[str], rows: Iterable[Sequence[str]], texts: Collection[str] = ()) -> Frame:
    """Make a table of the rows of a CSV file; columns of whole numbers without a gap are integers.

    Parameters
    ----------
    texts : collection of str
        Columns that are text too.
    """
    frame: Frame = {}
    listed = list(rows)
    columns = zip(*listed, strict=True) if listed else [() for _ in header]
    for name, cells in zip(header, columns, strict=True):
        if name in texts:
            frame[name] = np.array(cells, dtype=np.str_)
        elif name not in _TEXTS and cells and all(map(_WHOLE.fullmatch, cells)):
            frame[name] = np.array([int(cell) for cell in cells])
        else:
            frame[name] = _column(name, list(cells))
    return frame


def _column(name: str, column: Any) -> NDArray[Any]:
    if isinstance(column, np.ndarray):
        return column
    if isinstance(column, tuple) and len(column) == 2 and isinstance(column[1], np.ndarray):
        texts, index = column
        return _column(name, [texts[at] for at in index.tolist()])
    cells = list(column)
    if name in _TEXTS:
        return np.array(cells, dtype=np.str_)
    if cells and all(isinstance(cell, bool | int | np.integer) for cell in cells):
        return np.array(cells)
    try:
        numbers = [np.nan if cell is None or cell == "" else float(cell) for cell in cells]
    except ValueError:
        return np.array(cells, dtype=np.str_)
    return np.array(numbers, dtype=np.float64)


def stack_frames(frames: Mapping[str, Frame], column: str) -> Frame:
    """Stack the tables of several items below each other, with a first column of the items' names.

    The table of a single item is returned as it is. Columns that a table lacks are NaN there.
    """
    if len(frames) == 1:
        return next(iter(frames.values()))
    names = dict.fromkeys(name for frame in frames.values() for name in frame)
    lengths = [len(next(iter(frame.values()))) for frame in frames.values()]
    stacked = {column: np.repeat(np.array(list(frames), dtype=np.str_), lengths)}
    for name in names:
        parts = [
            frame[name] if name in frame else np.full(length, np.nan)
            for frame, length in zip(frames.values(), lengths, strict=True)
        ]
        stacked[name] = np.concatenate(parts)
    return stacked


def frame_as_html(frame: Frame, title: str, lines: Iterable[str]) -> str:
    """Return the first rows of a table as HTML below some sentences; every text is escaped."""
    rows = len(next(iter(frame.values()))) if frame else 0
    head = "".join(f"<th>{escape(name)}</th>" for name in frame)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_shown(column[row]))}</td>" for column in frame.values()) + "</tr>"
        for row in range(min(rows, _SHOWN))
    )
    more = f"<p>{rows - _SHOWN:,} more rows</p>" if rows > _SHOWN else ""
    sentences = "".join(f"<p>{escape(line)}</p>" for line in lines)
    return (
        f"<div><p><b>{escape(title)}</b></p>{sentences}"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}</div>"
    )


def _shown(value: Any) -> str:
    if isinstance(value, np.floating | float):
        return "" if np.isnan(value) else f"{value:.4g}"
    text = str(value)
    return text if len(text) <= 80 else text[:79] + "…"
