"""Untrusted JSON and XML: size and nesting are limited before anything is decoded."""

from __future__ import annotations

import gc
import json
import math
import sys
from pathlib import Path
from typing import Any, TypeGuard

import msgspec

from raterscope.app.errors import InputError, plain
from raterscope.app.formats.records import refuse_special
from raterscope.app.formats.volumes.voxel_files import checked_shape, sentences

__all__ = [
    "LARGEST_TEXT",
    "answer_text",
    "decode_json",
    "entries",
    "is_number",
    "json_content",
    "read_bytes",
    "read_xml",
    "refuse_size",
    "text_of",
]  # fmt: skip

LARGEST_TEXT = 500_000_000
_MOST_ALONG = 100_000
_DEEPEST = 64
_LONGEST_NAME = 200
_MOST_DIGITS = 310
_LARGEST_WHOLE = int(sys.float_info.max)
"""A whole number beyond it has no float; JSON may write one."""


def read_bytes(path: Path) -> bytes:
    """Read a file of annotations whole.

    Raises
    ------
    InputError
        For a file that is missing, empty, too large, a pipe or a device.
    """
    _check_text(path)
    return path.read_bytes()


def json_content(path: Path, content: bytes) -> Any:
    """Decode the JSON of a file, which may hold NaN as other programs write it.

    Raises
    ------
    InputError
        For what is no JSON, or is nested without end.
    """
    collecting = gc.isenabled()
    gc.disable()  # which would look through millions of new objects again and again, and find nothing to free
    try:
        return decode_json(content)
    except ValueError as error:
        what = str(error).removeprefix("it ")
        raise InputError(f"{what}; expected a file of annotations", file=path) from None
    finally:
        if collecting:
            gc.enable()


def decode_json(content: bytes | str) -> Any:
    """Decode JSON, which may hold NaN as other programs write it.

    Raises
    ------
    ValueError
        For what is no JSON, or is nested without end.
    """
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        pass
    try:
        return json.loads(content, parse_int=_whole)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError:
        raise ValueError("it is no JSON") from None


def read_xml(path: Path) -> Any:
    """Parse an XML file, whose tags are given without their name space.

    Returns
    -------
    xml.etree.ElementTree.Element

    Raises
    ------
    InputError
        For what is no XML, declares entities, is nested too deeply, or is too large.
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
        raise InputError("declares entities, which no file of annotations needs", file=path) from error
    except (ParseError, ValueError, LookupError) as error:
        raise InputError("is no XML; expected a file of annotations", file=path) from error
    return root


def refuse_size(path: Path, *sizes: Any, field: str | None = None) -> None:
    """Refuse sizes that are none, or more voxels than are read.

    Raises
    ------
    InputError
    """
    if not all(type(size) is int and 0 < size <= _MOST_ALONG for size in sizes):
        shown = " x ".join(plain(size, 20) for size in sizes)
        raise InputError(f"claims a size of {shown}; expected whole numbers above 0", file=path, field=field)
    checked_shape(path, sizes)


def is_number(value: Any) -> TypeGuard[float]:
    """Tell whether a decoded value is a finite number that a float can hold."""
    if type(value) is int:
        return abs(value) <= _LARGEST_WHOLE
    return type(value) is float and math.isfinite(value)


def entries(value: Any) -> list[dict[str, Any]]:
    """Give the objects in a decoded list; none of what is no list, and none that are no objects."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def text_of(value: Any) -> str:
    """Give a stranger's name as one short line; empty for what is neither text nor a number."""
    if type(value) not in (str, int, float):
        return ""
    return plain(str(value).strip(), _LONGEST_NAME)


def answer_text(value: Any) -> str:
    """Give an answer as one line, its blanks and line breaks as single blanks."""
    return text_of(" ".join(value.split()) if isinstance(value, str) else value)


def _whole(digits: str) -> int | float:
    """Convert a whole number; one that no float can hold is infinite, as 1e999 is."""
    return int(digits) if len(digits) <= _MOST_DIGITS else math.copysign(math.inf, int(digits[:2]))


def _check_text(path: Path) -> None:
    refuse_special(path)
    with sentences(path):
        size = path.stat().st_size
    if size > LARGEST_TEXT:
        raise InputError(f"has {size / 1e6:.0f} MB; expected at most {LARGEST_TEXT // 1_000_000}", file=path)
    if not size:
        raise InputError("is empty; expected a file of annotations", file=path)
