"""JSON lines: one object a line, with annotator, image, x, y and perhaps time, or what they are called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from raterscope.app.errors import plain
from raterscope.app.formats.clicks import NEEDED, WANTED, scale_of
from raterscope.app.formats.growing_files.lines import LONGEST
from raterscope.app.formats.growing_files.records import Records
from raterscope.app.formats.tables import Table, UnknownColumns, assign
from raterscope.app.formats.untrusted import decode_json, is_number

__all__ = ["HEADER", "cut_objects", "is_json"]

HEADER = (*NEEDED, *WANTED)
_MOST_KEYS = 200


def is_json(lines: Iterable[str]) -> bool:
    """Tell whether lines are JSON lines, by the first that is not empty."""
    return next((line for line in lines if line.strip()), "").lstrip().startswith("{")


def cut_objects(lines: Sequence[str], path: Path, mapping: Mapping[str, str] | None) -> Records:
    """Read objects as rows of cells under `HEADER`.

    Who has neither x nor y, or null for both, marked nothing; but an object without them must not have keys
    that nobody knows, which might be the places.
    """
    found = Records(taken=len(lines))
    known: dict[tuple[str, ...], dict[str, str]] = {}
    for index, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            found.rows.append(_cells(line, path, mapping, known))
            found.at.append(index)
        except ValueError as error:
            found.refused.append((index, str(error)))
    return found


def _cells(
    line: str, path: Path, mapping: Mapping[str, str] | None, known: dict[tuple[str, ...], dict[str, str]]
) -> list[str]:
    if len(line) > LONGEST // 4:
        raise ValueError(f"is longer than {LONGEST >> 22} MB; expected an object that tells one click")
    try:
        told = decode_json(line)
    except ValueError as error:
        raise ValueError(
            f"{str(error).removeprefix('it ')}; expected an object that tells one click"
        ) from None
    if not isinstance(told, dict) or len(told) > _MOST_KEYS:
        raise ValueError("is no object that tells one click")
    keys = tuple(told)
    if keys not in known:
        if len(known) > _MOST_KEYS:
            known.clear()
        known[keys] = _assigned(keys, path, mapping)
    return [_cell(told, known[keys].get(field), field) for field in HEADER]


def _assigned(keys: tuple[str, ...], path: Path, mapping: Mapping[str, str] | None) -> dict[str, str]:
    """Tell which key holds which field."""
    table = Table(path, keys, tuple(() for _ in keys), ())
    by_hand = {key: field for key, field in (mapping or {}).items() if key in keys}
    try:
        key = assign(table, NEEDED[:2], HEADER[2:], by_hand)
    except UnknownColumns as unknown:
        raise ValueError(f"has no {' and no '.join(unknown.missing)}") from None
    if "x" not in key and "y" not in key:
        rest = [one for one in keys if one not in key.values() and by_hand.get(one) != "ignore"]
        if rest:
            raise ValueError(f"has no x and no y, but {plain(', '.join(rest))}, which is not known")
    return key


def _cell(told: Mapping[str, Any], key: str | None, field: str) -> str:
    value = None if key is None else told[key]
    if value is None:
        return ""
    if type(value) is str:
        return value
    if type(value) not in (int, float):
        raise ValueError(f"{plain(key)} is neither text nor a number")
    if type(value) is int and not is_number(value):
        raise ValueError(f"{plain(key)} is a number of too many digits")
    return repr(value * scale_of(key) if field == "time" and key is not None else value)
