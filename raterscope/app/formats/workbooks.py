"""Reader of spreadsheets (Excel, OpenDocument) as tables of text."""

from __future__ import annotations

import csv
import io
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from raterscope.app.errors import InputError, plain
from raterscope.app.formats.untrusted import max_unpacked

WORKBOOKS = (".xlsx", ".xlsm", ".xls", ".ods")
_LARGEST_FILE, _LARGEST_UNPACKED = 64 << 20, 512 << 20
_MAX_CELLS = 1 << 24
"""Maximum number of cells of a sheet, including empty cells in between; all are in memory."""

_PART, _LONGEST_REFERENCE = 1 << 20, 64
_LONGEST_FORMULA = 1 << 15
_FORMULA = re.compile(
    rb"""<c\b([^<>]{0,200}\br="([A-Z]{1,3}[0-9]{1,7})"[^<>]{0,200})>\s?"""
    rb"""<f\b[^<>]{0,500}(?:/>|>[^<]{0,20000}</f>)\s?(?:<v\s?/>|<v></v>)?\s?</c>"""
)
"""Pattern of a cell in an Excel sheet with a formula and no value."""

_REFERENCE = re.compile(rb"""\br\s*=\s*["']([A-Z]{0,3})([0-9]{1,7})["']""")
"""Pattern of a row or cell in an Excel sheet, such as r="12" or r="AB12"."""


def read_sheet(path: Path) -> io.BytesIO:
    """Read the table of a spreadsheet, as CSV in UTF-8 with a line for each row of its sheet.

    This is the first sheet with two rows and two columns, or else the first with cells. Raises `InputError`
    for a damaged, encrypted, empty or too large file.
    """
    with _errors(path):
        sheet = _choose(path, _sheets(path))
        _refuse_uncalculated(path, sheet.name)
        rows = sheet.to_python(skip_empty_area=False)
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows([_cell(value) for value in row] for row in rows)
        return io.BytesIO(text.getvalue().encode("utf-8"))


def explain_other_sheets(path: Path) -> str:
    """Return a notice on visible sheets that `read_sheet` does not read; empty if there are none."""
    with _errors(path):
        sheets = list(_sheets(path))
    read = _choose(path, sheets)
    others = [sheet for sheet in sheets if sheet is not read]
    if not others:
        return ""
    names = ", ".join(f'"{plain(sheet.name, 40)}"' for sheet in others[:5])
    more = f" and {len(others) - 5:,} more" if len(others) > 5 else ""
    return (
        f'{plain(path.name)}: only the sheet "{plain(read.name, 40)}" was read, not {names}{more}. To import '
        "another sheet, save it as a file."
    )


def _choose(path: Path, sheets: Iterable[Any]) -> Any:
    """Return the first sheet with two rows and columns, or else the first."""
    first = None
    for sheet in sheets:
        if min(sheet.height, sheet.width) > 1:
            return sheet
        first = first or sheet
    if first is None:
        raise InputError("is empty; expected a table", file=path)
    return first


def _sheets(path: Path) -> Iterator[Any]:
    """Yield the visible sheets with cells."""
    import python_calamine

    _refuse_large(path)
    workbook = python_calamine.load_workbook(path)
    visible = python_calamine.SheetVisibleEnum.Visible
    shown = [sheet.name for sheet in workbook.sheets_metadata if sheet.visible == visible]
    for name in shown or workbook.sheet_names:
        sheet = workbook.get_sheet_by_name(name)
        if sheet.end is not None:
            _refuse_extent(path, sheet.end[0] + 1, sheet.end[1] + 1)
            yield sheet


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    """Convert the exceptions of the reader to an InputError."""
    import python_calamine

    try:
        yield
    except python_calamine.PasswordError:
        raise InputError("is protected by a password; save it without one", file=path) from None
    except (python_calamine.CalamineError, OSError, ValueError, LookupError, SyntaxError) as error:
        raise InputError("is a damaged spreadsheet; save it again, or as CSV", file=path) from error


def _refuse_large(path: Path) -> None:
    size = path.stat().st_size
    if size > _LARGEST_FILE:
        raise InputError(f"has {size >> 20} MB; expected a spreadsheet of at most 64 MB, or CSV", file=path)
    if not zipfile.is_zipfile(path):
        return
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, ValueError) as error:
        raise InputError("is a damaged spreadsheet; save it again, or as CSV", file=path) from error
    if unpacked > min(_LARGEST_UNPACKED, max_unpacked(size)):
        raise InputError(f"unpacks to {unpacked >> 20} MB; save the table as CSV", file=path)
    _refuse_scattered(path)


def _refuse_scattered(path: Path) -> None:
    """Refuse a sheet with cells so far apart that the reader could not allocate it."""
    try:
        with zipfile.ZipFile(path) as archive:
            sheets = [name for name in archive.namelist() if "sharedstrings" not in name.casefold()]
            for name in sheets:
                with archive.open(name) as stream:
                    _refuse_extent(path, *_extent(stream))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise InputError("is a damaged spreadsheet; save it again, or as CSV", file=path) from error


def _extent(stream: IO[bytes]) -> tuple[int, int]:
    """Return the last row and column that an Excel sheet names; 0 if it names none."""
    rows = columns = 0
    rest = b""
    while part := stream.read(_PART):
        text = rest + part
        for letters, row in set(_REFERENCE.findall(text)):
            rows = max(rows, int(row))
            columns = max(columns, _column_number(letters))
        rest = text[-_LONGEST_REFERENCE:]
    return rows, columns


def _refuse_uncalculated(path: Path, name: str) -> None:
    """Refuse a sheet of Excel with a formula whose value was never stored, and which would read as empty."""
    if not zipfile.is_zipfile(path):
        return
    with zipfile.ZipFile(path) as archive:
        part = _part_of(archive, name)
        if part is None:
            return
        with archive.open(part) as stream:
            rest = b""
            while text := stream.read(_PART):
                text = rest + text
                for cell in _FORMULA.finditer(text) if b"<f" in text else ():
                    if b't="str"' not in cell[1]:  # whose value is an empty text
                        raise InputError(
                            f'cell {cell[2].decode()} of the sheet "{plain(name, 40)}" holds a formula '
                            "without a stored value; open the file in Excel or LibreOffice and save it",
                            file=path,
                        )
                rest = text[-_LONGEST_FORMULA:]


def _part_of(archive: zipfile.ZipFile, name: str) -> str | None:
    """Find the file of a sheet in an Excel workbook; None in other spreadsheets."""
    from defusedxml.ElementTree import fromstring

    if "xl/workbook.xml" not in archive.namelist():
        return None
    sheets = fromstring(archive.read("xl/workbook.xml")).iterfind(".//{*}sheet")
    numbers = [
        value
        for sheet in sheets
        if sheet.get("name") == name
        for key, value in sheet.items()
        if key.endswith("}id")
    ]
    links = fromstring(archive.read("xl/_rels/workbook.xml.rels"))
    targets = [link.get("Target", "") for link in links if link.get("Id") in numbers]
    parts = [target.lstrip("/") if target[:1] == "/" else f"xl/{target}" for target in targets]
    return parts[0] if parts and parts[0] in archive.namelist() else None


def _column_number(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + letter - ord("A") + 1
    return number


def _refuse_extent(path: Path, rows: int, columns: int) -> None:
    if rows * columns > _MAX_CELLS:
        raise InputError(
            f"has {rows:,} rows and {columns:,} columns with the empty ones between cells; delete the cells "
            "far from the table, or save it as CSV",
            file=path,
        )


def _cell(value: Any) -> str:
    """Return a value as text without line breaks, which would change the numbers of later lines."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    return " ".join(str(value).splitlines())
