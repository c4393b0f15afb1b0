"""Records of arrays as bytes and as rows of a study's file, and digest of a run's input.

A record is a frozen dataclass of arrays, numbers, texts, tuples and further such dataclasses, or tuples of
them. The bytes are the length of a header (8 bytes, little endian), the header (JSON: values by field, arrays
as dtype, shape and offset) and the bytes of the arrays in C order, eight bool values per byte. They are
divided into chunks that zlib compresses separately. Reading makes only objects of the requested type, and no
array whose declared size is missing. A field that an older version did not write has its default.

The digest is the same on any machine.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import sqlite3
import types
import typing
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.clicks.data import Clicks
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import StudyError

CHUNK = 1 << 20
LARGEST = 1 << 30
_LARGEST_HEADER = 16 << 20
_KINDS = {"f": "fiu", "i": "iu", "b": "b"}
"""Kinds of numbers (dtype.kind) that an array may have, by its declared kind."""
_DTYPES = frozenset(("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8"))

Record = TypeVar("Record")


class DamagedError(Exception):
    """Error: bytes that cannot be unpacked."""


def pack(record: Any) -> tuple[int, Iterator[bytes]]:
    """Pack a dataclass; return its size before compression, and the compressed chunks."""
    arrays: list[np.ndarray] = []
    offset = [0]
    header = msgspec.json.encode(_describe(record, arrays, offset))
    start = len(header).to_bytes(8, "little") + header
    size = len(start) + offset[0]
    if size > LARGEST:
        raise ValueError(f"a record of {size} bytes is larger than a study can store")
    if size <= CHUNK:
        return size, _compress(memoryview(b"".join([start, *(array.tobytes() for array in arrays)])))
    return size, _compress(np.concatenate([np.frombuffer(start, np.uint8), *map(_bytes_of, arrays)]).data)


def _bytes_of(array: np.ndarray) -> NDArray[np.uint8]:
    """View an array as bytes; `tobytes` would copy a large one while no other thread runs."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def unpack(kind: type[Record], size: int, chunks: Iterable[bytes]) -> Record:
    """Unpack a dataclass.

    Raises `DamagedError` if the bytes are not a `kind`, or declare wrong sizes.

    `kind`: type of the packed value. `size`, `chunks`: as from `pack`.
    """
    if not 8 <= size <= LARGEST:
        raise DamagedError(f"a record declares {size} bytes")
    raw = _decompress(size, chunks)
    length = int.from_bytes(raw[:8], "little")
    if length > min(size - 8, _LARGEST_HEADER):
        raise DamagedError("a record's header is longer than the record")
    try:
        values = msgspec.json.decode(raw[8 : 8 + length])
        return _make(kind, values, raw, 8 + length)
    except (msgspec.DecodeError, RecursionError, TypeError, ValueError, KeyError, OverflowError) as error:
        raise DamagedError(f"a record is not a {kind.__name__}: {error}") from error


def _describe(record: Any, arrays: list[np.ndarray], offset: list[int]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name in _names(cast(Any, type(record))):
        value = getattr(record, name)
        if isinstance(value, np.ndarray):
            repeats = len(value) if value.size >= CHUNK and len(value) > 1 and value.strides[0] == 0 else 0
            value = value[:1] if repeats else value  # the same for all, see `distinct`
            code = value.dtype.str
            if code not in _DTYPES or not value.flags.c_contiguous:
                value = np.asarray(value, dtype=value.dtype.newbyteorder("<"), order="C")
                code = value.dtype.str
            if code not in _DTYPES:
                raise TypeError(f"{type(record).__name__}.{name} has the type {value.dtype}")
            location = [code, value.shape, offset[0]]
            values[name] = {"repeated": [repeats, location]} if repeats else {"array": location}
            arrays.append(np.packbits(value) if code == "|b1" else value)
            offset[0] += arrays[-1].nbytes
        elif value is None:
            values[name] = None
        elif hasattr(value, "__dataclass_fields__"):
            values[name] = {"record": _describe(value, arrays, offset)}
        elif isinstance(value, tuple) and any(map(dataclasses.is_dataclass, value)):
            values[name] = {"records": [_describe(element, arrays, offset) for element in value]}
        elif isinstance(value, float) and not math.isfinite(value):
            values[name] = {"float": str(float(value))}
        elif isinstance(value, float):
            values[name] = float(value)  # NumPy's are no JSON
        elif isinstance(value, (bool, int, float, str, tuple)):
            values[name] = value
        else:
            raise TypeError(f"{type(record).__name__}.{name} is a {type(value).__name__}")
    return values


@cache
def _names(kind: type[Any]) -> tuple[str, ...]:
    """Return the names of a record's fields."""
    return tuple(field.name for field in dataclasses.fields(kind))


def _make(kind: type[Record], values: Any, raw: memoryview, start: int) -> Record:
    """Make a record from its description by `_describe`. Raises `DamagedError` if it does not fit."""
    expected_fields = _fields(cast(Any, kind))
    if (
        not isinstance(values, dict)
        or not _needed(cast(Any, kind)) <= values.keys() <= expected_fields.keys()
    ):
        raise DamagedError(f"a record does not have the fields of a {kind.__name__}")
    field_values: dict[str, Any] = {}
    for name, value in values.items():
        field = expected_fields[name]
        inner, entry = field.record, value
        content: Any
        if isinstance(value, dict):
            form, content = next(iter(value.items())) if len(value) == 1 else ("", None)
            if form == "array":
                entry = _array(content, raw, start)
            elif form == "repeated" and _is_repeated(content):
                rows = _array(content[1], raw, start)
                entry = np.broadcast_to(rows[:1], (content[0], *rows.shape[1:]))
            elif form == "record" and inner is not None:
                entry = _make(inner, content, raw, start)
            elif form == "records" and inner is not None and isinstance(content, list):
                entry = tuple(_make(inner, element, raw, start) for element in content)
            elif form == "float" and content in ("nan", "inf", "-inf"):
                entry = float(content)
            else:
                raise DamagedError(f"{kind.__name__}.{name} is of an unknown form")
        elif isinstance(value, list):
            entry = tuple(_tupled(value))
            if typing.get_args(field.hint)[:1] == (float,):
                # JSON has no NaN
                entry = tuple(math.nan if element is None else element for element in entry)
        field_values[name] = entry
        if isinstance(entry, np.ndarray):
            fits = entry.dtype.kind in field.arrays
        else:
            fits = type(entry) is field.hint or (entry is None and field.optional)
        if not fits and not _fits(field.hint, entry):
            expected, actual = _expected(field.hint), _text(entry)
            raise DamagedError(f"{kind.__name__}.{name}: expected {expected}, found {actual}")
    return kind(**field_values)


def _is_repeated(content: Any) -> bool:
    """Return whether a header describes an array whose first row is repeated, up to a billion times."""
    return (
        isinstance(content, list)
        and len(content) == 2
        and isinstance(content[0], int)
        and 1 <= content[0] <= LARGEST  # 1 was written too
        and isinstance(content[1], list)
        and len(content[1]) == 3
        and isinstance(content[1][1], list)
        and content[1][1][:1] == [1]
    )


def _tupled(values: list[Any]) -> Iterator[Any]:
    return (tuple(_tupled(value)) if isinstance(value, list) else value for value in values)


def _fits(hint: Any, value: object) -> bool:
    """Return whether a value is of the type that a field is declared to have."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind in _array_kinds(hint)
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(choice, value) for choice in typing.get_args(hint))
    if origin is np.ndarray:
        return False
    if origin is tuple:
        return isinstance(value, tuple) and _fits_tuple(typing.get_args(hint), value)
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return not isinstance(hint, type) or isinstance(value, hint)


def _fits_tuple(hints: tuple[Any, ...], value: tuple[object, ...]) -> bool:
    if len(hints) == 2 and hints[1] is Ellipsis:
        return all(_fits(hints[0], element) for element in value)
    return len(hints) == len(value) and all(map(_fits, hints, value))


@cache
def _array_kinds(hint: Any) -> str:
    """Return the kinds of numbers that an array in a field may have; none if the field is not an array."""
    choices = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    if any(choice in (Any, np.ndarray) for choice in choices):
        return "fiub"
    arrays = [choice for choice in choices if typing.get_origin(choice) is np.ndarray]
    return "".join(_KINDS[_kind(choice)] for choice in arrays)


def _kind(hint: Any) -> str:
    """Return the kind of number in an array of a declared type: f, i or b."""
    (dtype,) = typing.get_args(typing.get_args(hint)[1])
    kind: str = np.dtype(dtype).kind
    return "i" if kind == "u" else kind


def _expected(hint: Any) -> str:
    """Describe the declared type of a field."""
    choices = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    (first, *_) = [choice for choice in choices if choice is not types.NoneType]
    if typing.get_origin(first) is np.ndarray:
        return {"f": "an array of numbers", "i": "an array of whole numbers"}.get(
            _kind(first), "an array of truth values"
        )
    if typing.get_origin(first) is tuple:
        return "a list of the expected values"
    return {float: "a number", int: "a whole number", str: "text", bool: "true or false"}.get(
        first, "a record"
    )


def _text(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype.name}"
    names = {type(None): "nothing", bool: "true or false", int: "a number", float: "a number", str: "text"}
    return names.get(type(value), "a list" if isinstance(value, tuple) else "a record")


def _array(content: Any, raw: memoryview, start: int) -> np.ndarray:
    code, shape, offset = content
    lengths = [*shape, offset]
    if code not in _DTYPES or {*map(type, lengths)} != {int} or min(lengths) < 0:
        raise DamagedError("an array's type or shape is not one that is written")
    count = math.prod(shape)
    bits = code == "|b1"
    dtype, length = (np.dtype("|u1"), -(-count // 8)) if bits else (np.dtype(code), count)
    if len(shape) > 8 or count > LARGEST or start + offset + length * dtype.itemsize > len(raw):
        raise DamagedError(f"an array declares the shape {shape}, more than is there")
    array = np.frombuffer(raw, dtype=dtype, count=length, offset=start + offset)
    if bits:
        array = np.unpackbits(array, count=count).astype(bool)
    array = array.reshape(shape)
    array.setflags(write=False)
    return array


class _Field(NamedTuple):
    hint: Any  # declared type
    arrays: str  # kinds of numbers in an array, see `_array_kinds`
    optional: bool  # whether it may be None
    record: type[Any] | None  # dataclass that it or its tuple contains, if any


@cache
def _fields(kind: type[Any]) -> dict[str, _Field]:
    """Return the fields by name."""
    hints = typing.get_type_hints(kind)
    fields: dict[str, _Field] = {}
    for field in dataclasses.fields(kind):
        hint = hints[field.name]
        union = typing.get_origin(hint) in (typing.Union, types.UnionType)
        several = typing.get_origin(hint) is tuple
        choices = typing.get_args(hint) if union or several else (hint,)
        records = [
            choice for choice in choices if isinstance(choice, type) and dataclasses.is_dataclass(choice)
        ]
        optional = union and types.NoneType in choices
        fields[field.name] = _Field(hint, _array_kinds(hint), optional, records[0] if records else None)
    return fields


@cache
def _needed(kind: type[Any]) -> frozenset[str]:
    """Return the names of fields without default."""
    none = dataclasses.MISSING
    return frozenset(
        field.name
        for field in dataclasses.fields(kind)
        if field.default is none and field.default_factory is none
    )


def _compress(view: memoryview) -> Iterator[bytes]:
    from isal import isal_zlib

    for start in range(0, len(view), CHUNK):
        yield isal_zlib.compress(view[start : start + CHUNK], 1)


def _decompress(size: int, chunks: Iterable[bytes]) -> memoryview:
    pieces, have = [], 0
    for data in chunks:
        machine = zlib.decompressobj()
        try:
            piece = machine.decompress(data, CHUNK + 1)
        except zlib.error as error:
            raise DamagedError("a chunk does not decompress") from error
        if len(piece) > CHUNK or not machine.eof:
            raise DamagedError("a chunk is cut short or too large")
        pieces.append(piece)
        have += len(piece)
        if have > size:
            break
    if have != size:
        raise DamagedError(f"a record declares {size} bytes and has {have}")
    return memoryview(b"".join(pieces))


def write_object(connection: sqlite3.Connection, record: Any, watch: Watch = silent) -> int:
    """Store a record within the current transaction, and return its number."""
    size, chunks = pack(record)
    number = connection.execute("INSERT INTO objects(size) VALUES (?)", (size,)).lastrowid
    for chunk, data in enumerate(chunks):
        connection.execute("INSERT INTO chunks VALUES (?, ?, ?)", (number, chunk, data))
        watch(min((chunk + 1) * CHUNK / size, 1.0), "storing")
    assert number is not None
    return number


def read_object(connection: sqlite3.Connection, number: int, kind: type[Record], path: Path) -> Record:
    """Read a record. Raises `StudyError` if it is damaged."""
    rows = connection.execute(
        "SELECT size, data FROM objects LEFT JOIN chunks ON object = id WHERE id = ? ORDER BY part", (number,)
    )
    try:
        first = rows.fetchone()
        if first is None:
            raise DamagedError("a record is missing")
        size, data = first
        pieces = chain([data] if data is not None else [], (data for _, data in rows))
        return unpack(kind, size, pieces)
    except DamagedError as error:
        raise StudyError(
            f"is damaged (objects, row {number}: {error}); open a backup of it", file=path
        ) from error


def copy_object(old: sqlite3.Connection, new: sqlite3.Connection, number: int) -> int:
    """Copy a record unchanged to another study within its current transaction, and return its number."""
    (size,) = old.execute("SELECT size FROM objects WHERE id = ?", (number,)).fetchone()
    copied = new.execute("INSERT INTO objects(size) VALUES (?)", (size,)).lastrowid
    chunks = old.execute("SELECT part, data FROM chunks WHERE object = ? ORDER BY part", (number,))
    new.executemany("INSERT INTO chunks VALUES (?, ?, ?)", ((copied, chunk, data) for chunk, data in chunks))
    assert copied is not None
    return copied


def remove_object(connection: sqlite3.Connection, number: int) -> None:
    """Remove a record within the current transaction."""
    connection.execute("DELETE FROM objects WHERE id = ?", (number,))


_BATCH = 100_000
"""Number of texts that are joined before they are digested."""


@cache
def _length(count: int) -> bytes:
    return count.to_bytes(8, "little")


def _joined(texts: Sequence[str]) -> memoryview:
    """Join texts, each after its length, without the interpreter's lock."""
    import pyarrow
    from pyarrow import compute

    encoded = pyarrow.array(texts, pyarrow.binary())
    lengths = np.diff(np.frombuffer(encoded.buffers()[1], dtype="<i4")[: len(texts) + 1]).astype("<i8")
    prefixes = pyarrow.FixedSizeBinaryArray.from_buffers(
        pyarrow.binary(8), len(texts), [None, pyarrow.py_buffer(lengths)]
    )
    joined = compute.binary_join_element_wise(prefixes.cast(pyarrow.binary()), encoded, b"")
    _, ends, content = joined.buffers()
    return memoryview(content)[: np.frombuffer(ends, dtype="<i4")[len(texts)]]


class Fingerprint:
    """SHA-256 of texts, arrays and bytes in order; as text "sha256:" and hexadecimal digits."""

    def __init__(self) -> None:
        self._machine = hashlib.sha256()

    def texts(self, *texts: str) -> None:
        """Add texts, each with its length."""
        if len(texts) <= _BATCH:  # loading Arrow would take longer
            encoded = list(map(str.encode, texts))
            lengths = map(_length, map(len, encoded))
            self.content(b"".join(chain.from_iterable(zip(lengths, encoded, strict=True))))
            return
        for first in range(0, len(texts), _BATCH):
            self.content(_joined(texts[first : first + _BATCH]))
        import pyarrow

        pyarrow.default_memory_pool().release_unused()

    def arrays(self, *arrays: NDArray[Any] | None) -> None:
        """Add arrays; None is distinguished from an empty array."""
        for array in arrays:
            self.content(b"-" if array is None else _bytes_of(array).data)

    def content(self, content: bytes | memoryview) -> None:
        """Add bytes."""
        self._machine.update(content)

    def __str__(self) -> str:
        return f"sha256:{self._machine.hexdigest()}"


def digest_of(clicks: Mapping[str, Clicks]) -> str:
    """Compute the SHA-256 of the clicks on some images, with known and viewed spots, weights and scores.

    Returns
    -------
    str
        "sha256:" and hexadecimal digits.

    Examples
    --------
    >>> from raterscope.algorithms.simulation.click_crowds import separated_crowd
    >>> digest_of({"smear.png": separated_crowd(20, seed=3).clicks})[:15]
    'sha256:a58e7592'
    """
    fingerprint = Fingerprint()
    for name, image_clicks in sorted(clicks.items()):
        columns = [
            image_clicks.x,
            image_clicks.y,
            image_clicks.annotator,
            np.array(image_clicks.extent),
            image_clicks.known.x,
            image_clicks.known.y,
            image_clicks.known.present,
            *([] if image_clicks.weights is None else [image_clicks.weights]),
        ]
        fingerprint.texts(name, *image_clicks.annotators)
        if image_clicks.control is not None:
            fingerprint.texts("positive" if image_clicks.control else "negative")
        if image_clicks.viewed is not None and len(image_clicks.viewed):
            fingerprint.texts("viewed")
            columns.append(image_clicks.viewed)
        if image_clicks.scores is not None:
            fingerprint.texts("scores")
            columns.append(image_clicks.scores)
        if image_clicks.label is not None:
            fingerprint.texts("classes", *image_clicks.classes)
            columns.append(image_clicks.label)
        if any(image_clicks.known.classes):
            fingerprint.texts("known classes", *image_clicks.known.classes)
        for column in columns:
            little = np.ascontiguousarray(column, dtype=column.dtype.newbyteorder("<"))
            fingerprint.content(len(little).to_bytes(8, "little"))
            fingerprint.arrays(little)
    return str(fingerprint)
