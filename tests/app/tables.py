"""Tables of text as a spreadsheet writes and reads them, for tests."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

__all__ = ["header_of", "rows_of", "write"]


def write(path: Path, header: Sequence[object], rows: Iterable[Sequence[object]]) -> Path:
    """Write a table; gives its file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def rows_of(path: Path) -> list[dict[str, str]]:
    """Read a table, each row by its columns."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def header_of(path: Path) -> list[str]:
    """Read the names of a table's columns."""
    with path.open(newline="", encoding="utf-8") as file:
        return next(csv.reader(file))
