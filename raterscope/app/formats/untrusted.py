"""Untrusted input: limits of size and nesting that are checked before decoding, and uniform errors."""

from __future__ import annotations

import gc
import json
import math
import os
import stat
import sys
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, BinaryIO, TypeGuard

import msgspec

from raterscope.algorithms.masks.grid import GridError
from raterscope.algorithms.progress import Cancelled
from raterscope.app.errors import InputError, missing_package, plain
from raterscope.app.program_files import READING_SUFFIX, STUDY_SUFFIX

MAX_VOXELS = 2**30
"""Maximum number of voxels of a volume; a whole-body scan at half a millimetre has half as many."""

_ALWAYS_UNPACKED, _UNPACKED_A_BYTE = 768 << 20, 20
"""Maximum decompressed size of voxels, bytes: in any case, and for each compressed byte; labels compress up
to 1000 to 1.
"""

LARGEST_TEXT = 500_000_000
_MAX_SIZE = 100_000
_DEEPEST = 64
_LONGEST_NAME = 200
_MAX_DIGITS = 310
_LARGEST_INTEGER = int(sys.float_info.max)
"""Largest integer that a float can represent; JSON may contain larger integers."""


def open_file(path: Path, file: BinaryIO | None = None) -> AbstractContextManager[BinaryIO]:
    """Open a file for reading, unless it is already open as `file`, which stays open."""
    return path.open("rb") if file is None else nullcontext(file)


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """Convert any exception of a reader of a file to an InputError."""
    with input_errors(path, "a file"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        except GridError as error:
            raise InputError(f"has no usable geometry: {error}", file=path) from error


@contextmanager
def input_errors(path: Path, expected: str) -> Iterator[None]:
    """Convert any exception of a reader to an InputError; `expected` is "an image" or "a file"."""
    try:
        yield
    except (InputError, Cancelled):
        raise
    except FileNotFoundError as error:
        raise InputError("does not exist", file=path) from error
    except IsADirectoryError as error:
        raise InputError(f"is a folder; expected {expected}", file=path) from error
    except PermissionError as error:
        raise InputError("cannot be read: permission denied", file=path) from error
    except MemoryError as error:
        raise InputError("does not fit into this computer's memory", file=path) from error
    except Exception as error:  # readers of damaged files raise anything
        if (missing := missing_package(error)) is not None:
            raise InputError(f"cannot be read: {missing}", file=path) from error
        noun = expected.split()[-1]
        raise InputError(f"cannot be read: the {noun} is damaged or cut short", file=path) from error


def max_unpacked(packed: int) -> int:
    """Return the maximum decompressed size of `packed` bytes."""
    return _ALWAYS_UNPACKED + _UNPACKED_A_BYTE * packed


def check_shape(path: Path, shape: tuple[int, ...]) -> None:
    """Refuse a volume without voxels, or with more than 2^30."""
    if not shape or min(shape) < 1:
        raise InputError("has no voxels", file=path)
    if math.prod(shape) > MAX_VOXELS:
        text = " x ".join(f"{size:,}" for size in shape)
        raise InputError(f"claims {text} voxels; expected {MAX_VOXELS:,} at most", file=path)


def refuse_packed(path: Path, unpacked: int) -> None:
    """Refuse an image that claims more bytes of pixels than its file size allows."""
    most = max_unpacked(path.stat().st_size)
    if unpacked > most:
        text = f"claims {unpacked / 1e6:,.0f} MB of pixels; expected {most / 1e6:,.0f} MB at most"
        raise InputError(f"{text}, cut it up", file=path)


def read_bytes(path: Path) -> bytes:
    """Read all bytes of a file of annotations.

    Raises `InputError` for a file that is missing, empty, too large, a pipe or a device.
    """
    _check_text(path)
    return path.read_bytes()


def json_content(path: Path, content: bytes) -> Any:
    """Decode the JSON of a file; NaN is accepted, because other programs write it.

    Raises `InputError` for invalid JSON, or JSON that is nested too deeply.
    """
    collecting = gc.isenabled()
    gc.disable()  # it would search millions of new objects repeatedly, without anything to free
    try:
        return decode_json(content)
    except ValueError as error:
        problem = f"{str(error).removeprefix('it ')}; expected a file of annotations"
        with suppress(ValueError):
            first, _, rest = content.partition(b"\n")
            if rest.strip() and isinstance(decode_json(first), dict):
                problem = f"holds a JSON object on each line; rename it to {plain(path.stem)}.jsonl"
        raise InputError(problem, file=path) from None
    finally:
        if collecting:
            gc.enable()


def decode_json(content: bytes | str) -> Any:
    """Decode JSON; NaN is accepted, because other programs write it.

    Raises `ValueError` for invalid JSON, or JSON that is nested too deeply.
    """
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        pass
    try:
        return json.loads(content, parse_int=_parse_integer)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError:
        raise ValueError("it is not JSON") from None


def read_xml(path: Path) -> Any:
    """Parse an XML file; tags have no name space.

    Raises `InputError` for a file that is not XML, declares entities, is nested too deeply, or is too large.
    """
    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import ParseError, iterparse

    _check_text(path)
    depth, root = 0, None
    try:
        for event, element in iterparse(str(path), events=("start", "end")):
            if event == "end":
                depth -= 1
                continue
            depth += 1
            root = element if root is None else root
            element.tag = element.tag.rpartition("}")[2]
            if depth > _DEEPEST:
                raise InputError("is nested too deeply; expected a file of annotations", file=path)
    except DefusedXmlException as error:
        raise InputError(
            "declares entities, which are not allowed in a file of annotations", file=path
        ) from error
    except (ParseError, ValueError, LookupError) as error:
        raise InputError("is not XML; expected a file of annotations", file=path) from error
    return root


def refuse_size(path: Path, *sizes: Any, field: str | None = None) -> None:
    """Refuse sizes that are not positive integers, or too many voxels."""
    if all(size is None for size in sizes):
        raise InputError("does not state the size of its image", file=path, field=field)
    if not all(type(size) is int and 0 < size <= _MAX_SIZE for size in sizes):
        shown = " x ".join(plain(size, 20) for size in sizes)
        raise InputError(f"claims a size of {shown}; expected integers above 0", file=path, field=field)
    check_shape(path, sizes)


def is_number(value: Any) -> TypeGuard[float]:
    """Return whether a decoded value is a finite number that a float can represent."""
    if type(value) is int:
        return abs(value) <= _LARGEST_INTEGER
    return type(value) is float and math.isfinite(value)


def entries(value: Any) -> list[dict[str, Any]]:
    """Return the objects in a decoded list, without other entries; empty for any other value."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def text_of(value: Any) -> str:
    """Convert an untrusted name to one short line; empty for a value that is neither text nor a number."""
    if type(value) not in (str, int, float):
        return ""
    return plain(str(value).strip(), _LONGEST_NAME)


def answer_text(value: Any) -> str:
    """Convert an answer to one line, with single blanks."""
    return text_of(" ".join(value.split()) if isinstance(value, str) else value)


def _parse_integer(digits: str) -> int | float:
    """Convert an integer; infinite if no float can represent it, as for 1e999."""
    return int(digits) if len(digits) <= _MAX_DIGITS else math.copysign(math.inf, int(digits[:2]))


def _check_text(path: Path) -> None:
    refuse_special(path)
    with file_errors(path):
        size = path.stat().st_size
    if size > LARGEST_TEXT:
        raise InputError(f"has {size / 1e6:.0f} MB; expected at most {LARGEST_TEXT // 1_000_000}", file=path)
    if not size:
        raise InputError("is empty; expected a file of annotations", file=path)


def refuse_special(path: Path) -> None:
    """Refuse a study, a pipe, a device, or a name that is not UTF-8, before any reader opens a file.

    On POSIX systems a process that closes any handle of a file loses its locks on the file. Reading the first
    bytes of an open study would therefore end its lock. A pipe or a device may block, or never end. A name
    that is not UTF-8 cannot be stored in a study or an export.

    Raises `InputError` for a file NAME.rscope or NAME.rsread, a pipe, socket or device, a link to one of
    them, and a name that is not UTF-8. A missing file and a folder are not refused.
    """
    target = path
    mode: int | None = None
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode) or path.name in ("", ".."):  # links among the folders do not change the name
            target, mode = Path(os.path.realpath(path)), None
            mode = path.stat().st_mode
    except (OSError, ValueError):
        pass
    if STUDY_SUFFIX in (path.suffix.casefold(), target.suffix.casefold()):
        raise InputError("is a study; open it instead of importing it", file=path)
    if READING_SUFFIX in (path.suffix.casefold(), target.suffix.casefold()):
        raise InputError(
            "is a reader's file; open it to read, or collect it with `raterscope reader-study collect`",
            file=path,
        )
    refuse_name(path, path.name)
    if mode is None:
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise InputError("is a pipe or a device; expected a file", file=path)


def refuse_name(path: Path, name: str) -> None:
    """Refuse a file or folder whose name on disk is not UTF-8."""
    if not name.isascii() and any("\ud800" <= letter <= "\udfff" for letter in name):
        raise InputError("has a name or folder that is not UTF-8; rename it", file=path)
