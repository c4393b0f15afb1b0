"""Tables and masks in memory, converted to the readers' input, and tables of results as columns.

A table is any object with Arrow's `__arrow_c_stream__` (pandas, polars, pyarrow, DuckDB), with
`__dataframe__` of the interchange protocol, or a mapping of column to values. Of these libraries, only
pyarrow is imported here. An image of SimpleITK or nibabel is recognised by its methods.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.progress import RefusedError
from raterscope.app.errors import InputError, missing_package, plain, plain_names
from raterscope.app.formats.tables import Table, UnknownColumns
from raterscope.app.formats.volumes.nifti import RAS_TO_LPS
from raterscope.text import counted

if TYPE_CHECKING:
    from raterscope.app.formats.table_files import Head


class ArrowTable(Protocol):
    """A table that exports itself as an Arrow stream."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the stream in a capsule."""


class InterchangeTable(Protocol):
    """A table of the DataFrame interchange protocol."""

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> Any:
        """Return the interchange object."""


TableLike = ArrowTable | InterchangeTable | Mapping[str, Sequence[Any] | NDArray[Any]]
"""Table of annotations: pandas, polars, pyarrow or a mapping of column to values."""


class DataError(ValueError):
    """Input that cannot be used.

    The message is one sentence that names the column, the row (counted from 1) or the mask.
    """


@contextmanager
def plain_errors() -> Iterator[None]:
    """Convert errors of readers and algorithms to `DataError`."""
    try:
        yield
    except UnknownColumns as error:
        names = plain_names(error.header, 12)
        missing = error.missing[0]
        raise DataError(
            f"no column is recognised as {' or '.join(error.missing)}; the columns are {names}: "
            f'columns={{"NAME": "{missing}"}} names one.'
        ) from error
    except InputError as error:
        raise DataError(_sentence(error)) from error
    except RefusedError as error:
        raise DataError(str(error)) from error
    except ModuleNotFoundError as error:
        if (package := missing_package(error)) is None:
            raise
        raise ModuleNotFoundError(f"{package}.", name=error.name) from error


def _sentence(error: InputError) -> str:
    where = [] if error.file is None or error.file == _NOWHERE else [plain(error.file, 200)]
    where += [] if error.line is None else [f"row {error.line}"]
    where += [] if error.field is None else [f"column {plain(error.field)}"]
    what = error.what.replace("; nothing was imported", "").replace("more bad line", "more bad row")
    what = what.rstrip(".") + "."
    return f"{', '.join(where)}: {what}" if where else what


_NOWHERE = Path("table")
"""Placeholder path of a table in memory; messages do not show it."""


def read_input(table: TableLike, name: str = _NOWHERE.name) -> Table:
    """Read a table as text, like a CSV file with the same contents.

    Raises `InputError` for an object that is not a table, and for columns that hold neither text nor numbers.

    Parameters
    ----------
    name : str
        Name of the table in messages; by default they do not name it.

    Examples
    --------
    >>> read_input({"task": [1.0, None], "label": ["a", "b"]}).columns
    (['1', ''], ['a', 'b'])
    """
    columns = _of_mapping(table) if isinstance(table, Mapping) else _of_arrow(_to_arrow(table))
    lengths = {name: len(cells) for name, cells in columns.items()}
    longest = max(lengths.values(), default=0)
    if not longest:
        raise InputError("the table has no rows")
    for name, length in lengths.items():
        if length != longest:
            values = counted(length, "value")
            raise InputError(f"has {values}, where another column has {longest:,}", field=name)
    return Table(Path(name), tuple(columns), tuple(columns.values()), range(1, longest + 1))


def head_of(table: TableLike, name: str = _NOWHERE.name) -> Head:
    """Read a table for the readers of labels and pairs; see `read_input`."""
    from raterscope.app.formats.table_files import Head

    return Head(read_input(table, name), (), "", 0, headed=True, plainly=False, is_complete=True)


def _of_mapping(table: Mapping[str, Any]) -> dict[str, list[str]]:
    columns = {}
    for name, values in table.items():
        if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
            raise InputError("is not a sequence of values", field=str(name))
        if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "iuU":
            columns[str(name)] = values.astype(np.str_).tolist()
        else:
            columns[str(name)] = [cell_text(cell, str(name)) for cell in values]
    return columns


def _to_arrow(table: Any) -> Any:
    if hasattr(table, "__arrow_c_stream__"):
        import pyarrow

        return pyarrow.table(table)
    if hasattr(table, "__dataframe__"):
        from pyarrow.interchange import from_dataframe

        return from_dataframe(table)
    raise InputError(
        "a table is expected (pandas, polars, Arrow, or a mapping of column to values), "
        f"not {type(table).__name__}"
    )


def _of_arrow(table: Any) -> dict[str, list[str]]:
    columns: dict[str, list[str]] = {}
    for name in table.column_names:
        if name in columns:
            raise InputError("names two columns; expected each name once", field=name)
        if not name.startswith("__index_level_"):  # the index of pandas
            columns[name] = _texts(table.column(table.column_names.index(name)), name)
    return columns


def _texts(column: Any, name: str) -> list[str]:
    """Return the cells of an Arrow column as text; empty where there is no value."""
    import pyarrow
    from pyarrow import types

    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if types.is_null(kind):
        return [""] * len(column)
    if types.is_boolean(kind) or types.is_floating(kind):
        return [cell_text(cell, name) for cell in column.to_pylist()]
    try:
        cells: list[str] = column.cast(pyarrow.string()).fill_null("").to_pylist()
    except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError):
        raise InputError(f"contains {kind}; expected text, numbers or times", field=name) from None
    except UnicodeDecodeError:
        raise InputError("contains text that is not UTF-8; expected UTF-8", field=name) from None
    return cells


_UNKNOWN = {"NoneType", "NAType", "NaTType"}
"""Types of missing values; those of pandas are not imported."""


def cell_text(cell: object, name: str) -> str:
    """Return a cell as text; whole numbers without a decimal point, as a gap turns integers into floats."""
    if type(cell).__name__ in _UNKNOWN:
        return ""
    if isinstance(cell, float | np.floating):
        number = float(cell)
        if math.isnan(number):
            return ""
        return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)
    if isinstance(cell, bytes | list | tuple | dict | set | np.ndarray):
        raise InputError(f"contains {type(cell).__name__}; expected text, numbers or times", field=name)
    return str(cell)


class ImageLayout(NamedTuple):
    """Order of the axes of an input: maps are returned in the same order.

    Attributes
    ----------
    axes : tuple of int
        Axes of the input in the order slice, row, column.
    flat : bool
        Whether the input had only rows and columns.
    """

    axes: tuple[int, int, int] = (0, 1, 2)
    flat: bool = False

    def restore(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return a map, (slice, row, column), in the order of the input."""
        if self.flat:
            return np.asarray(values[0])
        return np.ascontiguousarray(values.transpose(np.argsort(self.axes)))


def read_voxels(
    image: Any, name: str, spacing: Sequence[float] | None
) -> tuple[NDArray[Any], Grid, ImageLayout]:
    """Read a mask: voxels (slice, row, column), their grid, and the order of the input's axes.

    Raises `InputError` unless it is a mask with two or three axes, or if a spacing is given for an image.
    """
    if hasattr(image, "GetSpacing") and hasattr(image, "GetDirection"):
        _refuse_spacing(spacing, name)
        return _of_simpleitk(image, name)
    if hasattr(image, "affine") and hasattr(image, "dataobj"):
        _refuse_spacing(spacing, name)
        return _of_nibabel(image, name)
    values = np.asarray(image)
    flat = values.ndim == 2
    values = _checked(values[None] if flat else values, name)
    steps = _steps(spacing, 2 if flat else 3)
    shape = (values.shape[0], values.shape[1], values.shape[2])
    grid = Grid.plain(shape) if steps is None else Grid.plain(shape, steps, calibrated=True)
    return values, grid, ImageLayout(flat=flat)


def _refuse_spacing(spacing: Sequence[float] | None, name: str) -> None:
    if spacing is not None:
        raise InputError("has a spacing of its own; expected no other spacing", file=name)


def _steps(spacing: Sequence[float] | None, axes: int) -> tuple[float, float, float] | None:
    if spacing is None:
        return None
    try:
        steps = tuple(float(step) for step in spacing)
    except (TypeError, ValueError):
        steps = ()
    if len(steps) != axes or not all(math.isfinite(step) and step > 0 for step in steps):
        order = "row, column" if axes == 2 else "slice, row, column"
        raise InputError(f"the spacing is {plain(spacing)}; expected {axes} millimetres above 0: {order}")
    return (1.0, steps[0], steps[1]) if axes == 2 else (steps[0], steps[1], steps[2])


def _checked(values: NDArray[Any], name: str) -> NDArray[Any]:
    if values.ndim != 3 or not values.size:
        raise InputError(f"has the shape {values.shape}; expected rows and columns, or slices too", file=name)
    if values.dtype.kind not in "buif":
        raise InputError(f"has values of type {values.dtype}; expected a mask or probabilities", file=name)
    return values.view(np.uint8) if values.dtype == np.bool_ else values


def _of_simpleitk(image: Any, name: str) -> tuple[NDArray[Any], Grid, ImageLayout]:
    import SimpleITK

    values = np.asarray(SimpleITK.GetArrayFromImage(image))
    axes = len(image.GetSpacing())
    if axes not in (2, 3) or values.ndim != axes:
        raise InputError(f"has the shape {values.shape}; expected rows and columns, or slices too", file=name)
    flat = axes == 2
    values = _checked(values[None] if flat else values, name)
    matrix = np.eye(4)
    direction = np.asarray(image.GetDirection(), dtype=float).reshape(axes, axes)
    matrix[:axes, :axes] = direction * np.asarray(image.GetSpacing(), dtype=float)
    matrix[:axes, 3] = image.GetOrigin()
    shape = (values.shape[0], values.shape[1], values.shape[2])
    return values, Grid.from_matrix(shape, matrix), ImageLayout(flat=flat)


_MILLIMETRES = {"meter": 1000.0, "micron": 0.001}


def _of_nibabel(image: Any, name: str) -> tuple[NDArray[Any], Grid, ImageLayout]:
    values = np.asarray(image.dataobj)
    while values.ndim > 3 and values.shape[-1] == 1:
        values = values[..., 0]
    values = _checked(values, name).transpose(2, 1, 0)
    unit, _ = image.header.get_xyzt_units() if hasattr(image.header, "get_xyzt_units") else ("mm", "")
    scale = _MILLIMETRES.get(unit, 1.0)
    matrix = np.diag([scale, scale, scale, 1.0]) @ RAS_TO_LPS @ np.asarray(image.affine, dtype=float)
    shape = (values.shape[0], values.shape[1], values.shape[2])
    return np.ascontiguousarray(values), Grid.from_matrix(shape, matrix), ImageLayout((2, 1, 0))


Frame = dict[str, NDArray[Any]]
"""Columns of a table, as accepted by `pandas.DataFrame`, `polars.DataFrame` and `pyarrow.table`."""

_TEXTS = frozenset({
    "image", "annotator", "task", "label", "item", "structure", "question", "other", "behaviour", "rule",
    "beyond", "short", "farthest", "method", "true", "given", "name", "kind", "algorithm", "class",
    "most_central", "who", "verb", "reason", "reader", "case",
})  # fmt: skip
"""Columns of names, which stay text even if every name is a number."""

_SHOWN = 10
"""Maximum number of rows of a table in a notebook."""

_WHOLE = re.compile(r"-?\d{1,15}", re.ASCII)


def make_frame(header: Sequence[str], columns: Iterable[Any]) -> Frame:
    """Make a table from columns: arrays, pairs of texts and indices, or cells as written to CSV.

    Empty cells of numbers are NaN.

    Examples
    --------
    >>> frame = make_frame(("item", "rank"), [["1", "2"], ["3", ""]])
    >>> frame["item"].tolist(), frame["rank"].tolist()
    (['1', '2'], [3.0, nan])
    """
    return {name: _column(name, column) for name, column in zip(header, columns, strict=True)}


def frame_of_rows(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Frame:
    """Make a table from rows, as written to CSV."""
    listed = list(rows)
    return make_frame(header, zip(*listed, strict=True) if listed else [[] for _ in header])


def read_frame(header: Sequence[str], rows: Iterable[Sequence[str]], texts: Collection[str] = ()) -> Frame:
    """Make a table from a CSV file; columns of whole numbers without a gap are integers.

    Parameters
    ----------
    texts : collection of str
        Further columns of text.
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

    The table of a single item is returned unchanged. Columns that a table lacks are NaN.
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
    """Return some sentences and the first rows of a table as HTML; every text is escaped."""
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
