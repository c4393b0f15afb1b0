"""Manifest of a cohort: a table of cases, checked completely before any work begins."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from raterscope.algorithms.settings import SettingsError
from raterscope.app.errors import InputError, TableProblems, plain
from raterscope.app.formats.output_files import file_name_part
from raterscope.app.formats.remote import is_address, is_zarr
from raterscope.app.formats.tables import Table, read_table
from raterscope.app.kinds.registry import KINDS

COLUMNS = ("case", "kind", "files", "algorithm", "settings", "naming", "structure")
REQUIRED = ("case", "kind", "files")
_SEPARATOR = ";"
_SETTING = re.compile(r"([a-z_]+)=(.*)")


@dataclass(frozen=True)
class Case:
    """What is fused together: a volume with its masks, a study of clicks, a question of labels or pairs."""

    name: str  # unique in the cohort; also the name of the folder of its results
    kind: str
    files: tuple[Path, ...]  # files and folders to import
    algorithm: str
    settings: tuple[tuple[str, str], ...] = ()  # tuple of (name, text)
    naming: str | None = None  # pattern of the names of masks, see `naming.parse_name`
    structure: str | None = None  # structure of masks that name none
    # remote files and OME-Zarr images, downloaded before they are imported; see `formats.remote`
    addresses: tuple[str, ...] = ()


def read_manifest(path: Path) -> list[Case]:
    """Read the cases of a cohort.

    `path`: a table with the columns case, kind and files, and optionally algorithm, settings, naming and
        structure. Files are separated by semicolons, relative to the table's folder. They may be patterns
        such as ``case1/*.nii.gz``, or addresses such as ``https://host/mask.nii.gz``. Settings are
        ``name=value``, separated by semicolons too.
    Returns in the order of the table.
    Raises `TableProblems`: with every problem: unknown columns, missing files, names that occur twice.
    Raises `InputError`: if the table cannot be read.
    """
    table = read_table(path)
    header = [name.strip().casefold() for name in table.header]
    expected = f"expected {', '.join(COLUMNS)}"
    problems = [f"unknown column {plain(name)}; {expected}" for name in header if name not in COLUMNS]
    problems += [f"the column {name} is missing; {expected}" for name in REQUIRED if name not in header]
    problems += [f"two columns are named {name}" for name in COLUMNS if header.count(name) > 1]
    if problems:
        raise TableProblems(path, problems)
    reader = _Reader(table, header, path.absolute().parent)
    cases = [reader.case(row) for row in range(len(table))]
    if reader.problems:
        raise TableProblems(path, reader.problems)
    return [case for case in cases if case is not None]


@dataclass
class _Reader:
    table: Table
    header: Sequence[str]
    folder: Path
    problems: list[str] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=dict)

    def case(self, row: int) -> Case | None:
        """Read a row; note its problems."""
        cells = {name: self.table.columns[at][row].strip() for at, name in enumerate(self.header)}
        line, before = self.table.lines[row], len(self.problems)

        def problem(sentence: str) -> None:
            self.problems.append(f"line {line}: {sentence}")

        name, kind = cells["case"], cells["kind"]
        if not name:
            problem("the case has no name")
        first = self.lines.setdefault(file_name_part(name).casefold(), line)
        if name and first != line:
            problem(f"the case {plain(name)} is already on line {first}")
        if kind not in KINDS:
            problem(f'"{plain(kind)}" is not a kind; expected {", ".join(KINDS)}')
            return None
        files: list[Path] = []
        addresses: list[str] = []
        for word in filter(None, map(str.strip, cells["files"].split(_SEPARATOR))):
            if is_address(word):
                addresses.append(word)
                continue
            paths = _find(self.folder, word)
            if not paths:
                problem(f"there is no file {plain(word, 200)}")
            for path in paths:
                if is_zarr(path):
                    addresses.append(str(path))
                else:
                    files.append(path)
        if not cells["files"]:
            problem("the case has no files")
        algorithm = cells.get("algorithm") or next(iter(KINDS[kind].catalogues[0].algorithms))
        settings: list[tuple[str, str]] = []
        for word in filter(None, map(str.strip, cells.get("settings", "").split(_SEPARATOR))):
            match = _SETTING.fullmatch(word)
            if match is None:
                problem(f'"{plain(word)}" is not a setting; expected name=value')
            else:
                settings.append((match[1], match[2].strip()))
        try:
            KINDS[kind].functions.make_plan(algorithm, dict(settings))
        except (InputError, SettingsError) as error:
            problem(str(error).rstrip("."))
        if len(self.problems) > before:
            return None
        return Case(
            name, kind, tuple(dict.fromkeys(files)), algorithm, tuple(settings),
            cells.get("naming") or None, cells.get("structure") or None, tuple(dict.fromkeys(addresses)),
        )  # fmt: skip


def _find(folder: Path, word: str) -> list[Path]:
    """Find the files of a name or a pattern, sorted."""
    path = folder / word
    if path.exists():
        return [path]
    pattern = Path(word)
    root = Path(pattern.anchor) if pattern.is_absolute() else folder
    return sorted(root.glob(str(pattern.relative_to(pattern.anchor))))
