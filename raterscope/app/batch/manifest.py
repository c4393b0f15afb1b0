"""Manifest of a cohort (a table of cases, checked completely before any work begins), and search for cases.

The search finds them in a folder or by a pattern, by the names of files. Masks are one case per image: names
are matched as at import, names of the Brain Imaging Data Structure by their entities. Tables of clicks,
labels and pairs are one case per folder and kind, because annotators are estimated from all annotations of a
study.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from raterscope.algorithms.progress import Watch, silent
from raterscope.algorithms.settings import SettingsError
from raterscope.app.ambiguous_files import names_by, words_of
from raterscope.app.errors import InputError, TableProblems, plain
from raterscope.app.formats.labels import find_labels
from raterscope.app.formats.masks.label_maps import is_plain_image, is_voxel_file
from raterscope.app.formats.masks.naming import parse_bids, strip_suffixes
from raterscope.app.formats.output_files import file_name_part
from raterscope.app.formats.pairs import has_pairs
from raterscope.app.formats.pairs.table import holds_ranking
from raterscope.app.formats.points import has_points, holds_scores
from raterscope.app.formats.remote import is_address, is_zarr
from raterscope.app.formats.sources import Source, Sources
from raterscope.app.formats.table_files import read_table
from raterscope.app.formats.tables import Table, assign_columns
from raterscope.app.formats.workbooks import WORKBOOKS
from raterscope.app.kinds.registry import KINDS
from raterscope.app.program_files import STUDY_SUFFIX
from raterscope.text import counted

COLUMNS = ("case", "kind", "files", "algorithm", "settings", "naming", "structure", "programs")
REQUIRED = ("case", "kind", "files")
_SEPARATOR = ";"
_SETTING = re.compile(r"([a-z_]+)=(.*)")


@dataclass(frozen=True)
class Case:
    """Files to fuse together: a volume with its masks, a study of clicks, a question of labels or pairs."""

    name: str  # unique in the cohort; also the name of the folder of its results
    kind: str
    files: tuple[Path, ...]  # files and folders to import
    algorithm: str
    settings: tuple[tuple[str, str], ...] = ()  # tuple of (name, text)
    naming: str | None = None  # pattern of the names of masks, see `naming.parse_name`
    structure: str | None = None  # structure of masks without a name
    # remote files and OME-Zarr images, downloaded before they are imported; see `formats.remote`
    addresses: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()  # annotators that are programs


def read_manifest(path: Path) -> list[Case]:
    """Read the cases of a cohort, in the order of the table.

    `path`: a table with the columns case, kind and files, and optionally algorithm, settings, naming,
        structure and programs. Files are separated by semicolons, relative to the table's folder. They may be
        patterns such as ``case1/*.nii.gz``, or addresses such as ``https://host/mask.nii.gz``. Settings are
        ``name=value``, and they and the names of programs are separated by semicolons too.
    Raises `TableProblems` with every problem: unknown columns, missing files, names that occur twice.
    Raises `InputError` if the table cannot be read.
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
        for word in _words(cells["files"]):
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
        for word in _words(cells.get("settings", "")):
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
            tuple(dict.fromkeys(_words(cells.get("programs", "")))),
        )  # fmt: skip


def _words(cell: str) -> list[str]:
    """Split a cell with several values."""
    return [word for word in map(str.strip, cell.split(_SEPARATOR)) if word]


def _find(folder: Path, word: str) -> list[Path]:
    """Find the files of a name or a pattern, sorted."""
    path = folder / word
    if path.exists():
        return [path]
    pattern = Path(word)
    root = Path(pattern.anchor) if pattern.is_absolute() else folder
    return sorted(root.glob(str(pattern.relative_to(pattern.anchor))))


_TABLES = (".csv", ".tsv", ".parquet", *WORKBOOKS)
_WILDCARDS = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class FoundCase:
    """A case that was found."""

    name: str
    kind: str
    files: tuple[str, ...]  # paths, and patterns of images


@dataclass(frozen=True)
class FoundCases:
    """The cases that were found, with notices about skipped files."""

    cases: tuple[FoundCase, ...]
    notices: tuple[str, ...] = ()

    def rows(self, naming: str | None = None, programs: Sequence[str] = ()) -> list[tuple[str, ...]]:
        """Return the rows of a manifest, in the order of `manifest.COLUMNS`."""
        values = [
            {
                "case": case.name,
                "kind": case.kind,
                "files": ";".join(case.files),
                "naming": (naming or "") if case.kind == "masks" else "",
                "programs": _SEPARATOR.join(programs),
            }
            for case in self.cases
        ]
        return [tuple(value.get(column, "") for column in COLUMNS) for value in values]


def is_pattern(text: str) -> bool:
    """Return whether a text is a pattern of names such as ``sub-*/*_mask.nii.gz``."""
    return _WILDCARDS.search(text) is not None


def find_cases(location: str, naming: str | None = None, watch: Watch = silent) -> FoundCases:
    """Find the cases in a folder, or among the files and folders of a pattern.

    `location`: a folder, or a pattern with ``*``, ``?``, ``[...]`` and ``**``. `naming`: pattern of the names
    of masks, see `naming.parse_name`. Raises `InputError` if nothing is found.
    """
    root, files = _files_of(location)
    sources = Sources()
    voxels = [path for path in files if is_voxel_file(path)]
    photographs = [path for path in files if is_plain_image(path)]
    tables: dict[tuple[Path, str], list[Path]] = {}
    others = [path for path in files if path.suffix.casefold() in (*_TABLES, ".json", ".xml")]
    for done, path in enumerate(others):
        watch(done / len(others), f"looking at {plain(path.name)}")
        kind = _kind_of(sources.open(path))
        if kind is not None:
            tables.setdefault((path.parent, kind), []).append(path)
    cases, notices = _mask_cases(voxels, root, naming)
    cases += _table_cases(tables, photographs, root)
    if not cases:
        raise InputError("contains no masks and no tables of clicks, labels or pairs", file=Path(location))
    return FoundCases(tuple(_distinguished(cases)), tuple(notices))


def _files_of(location: str) -> tuple[Path, list[Path]]:
    """List the files at a location, and the folder below which they lie."""
    if not is_pattern(location):
        root = Path(location)
        return root, sorted(_walk(root))
    parts = Path(location).parts
    first = next(at for at, part in enumerate(parts) if is_pattern(part))
    root = Path(*parts[:first])
    paths = sorted(root.glob(str(Path(*parts[first:]))))
    files = {file for path in paths for file in (_walk(path) if path.is_dir() else [path])}
    return root, sorted(files)


def _walk(folder: Path) -> Iterable[Path]:
    for directory, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if not name.startswith(".") and not name.casefold().endswith(STUDY_SUFFIX):
                yield Path(directory) / name


def _kind_of(source: Source) -> str | None:
    """Return the kind of annotation in a table or file of annotations; None for other files."""
    try:
        if has_pairs(source) or holds_ranking(source):
            return "pairs"
        if holds_scores(source) or has_points(source) is not None:
            return "clicks"
        if find_labels(source) is not None:
            return "labels"
        if source.path.suffix.casefold() in _TABLES:
            assign_columns(source.head().table, ("x", "y"), (), None)
            return "clicks"
    except InputError:  # of a table of something else too
        pass
    return None


def _mask_cases(voxels: Sequence[Path], root: Path, naming: str | None) -> tuple[list[FoundCase], list[str]]:
    """Group masks by image; names of the Brain Imaging Data Structure assign images to masks."""
    is_bids = {path: parse_bids(path) is not None for path in voxels}
    marked = [
        path for path in voxels if is_bids[path] or not (any(is_bids.values()) and _is_bids_image(path))
    ]
    names = names_by(marked, (), naming)
    groups: dict[str, list[Path]] = {}
    for path in marked:
        item = names[path].item if path in names else None
        groups.setdefault(item or _folder_name(path.parent, root), []).append(path)
    images: dict[tuple[str, ...], list[Path]] = {}
    for path in sorted(set(voxels) - set(marked)):
        words = tuple(words_of(path.name))
        for count in range(1, len(words) + 1):
            images.setdefault(words[:count], []).append(path)
    cases, several = [], []
    for name, paths in groups.items():
        own = images.get(tuple(words_of(name)), [])
        several += [name] if len(own) > 1 else []
        cases.append(FoundCase(name, "masks", tuple(map(str, [*(own if len(own) == 1 else []), *paths]))))
    notices = []
    if several:
        notices.append(
            f"{counted(len(several), 'case')} with several images, such as {plain(several[0])}: none of them "
            "is used. Name one in the column files."
        )
    return cases, notices


def _is_bids_image(path: Path) -> bool:
    return strip_suffixes(path).casefold().startswith("sub-")


def _table_cases(
    tables: dict[tuple[Path, str], list[Path]], photographs: Sequence[Path], root: Path
) -> list[FoundCase]:
    """Make a case of the tables of each folder and kind, with the images in the folder and below it."""
    endings: dict[Path, set[str]] = {}
    for path in photographs:
        endings.setdefault(path.parent, set()).add(path.suffix)
    folders = {folder for folder, _ in tables}
    cases = []
    for (folder, kind), paths in tables.items():
        images = [
            f"{subfolder}/*{suffix}"
            for subfolder in sorted(endings)
            if next((above for above in (subfolder, *subfolder.parents) if above in folders), None) == folder
            for suffix in sorted(endings[subfolder])
        ]
        cases.append(FoundCase(_folder_name(folder, root), kind, (*images, *map(str, paths))))
    return cases


def _folder_name(folder: Path, root: Path) -> str:
    """Name a folder relative to the searched one."""
    parts = folder.parts[len(root.parts) :] if folder.is_relative_to(root) else folder.parts
    return "_".join(parts) or folder.resolve().name or "case"


def _distinguished(cases: Sequence[FoundCase]) -> list[FoundCase]:
    """Add the kind to the names of cases of several kinds in one folder."""
    names = [case.name.casefold() for case in cases]
    return [
        FoundCase(f"{case.name}_{case.kind}", case.kind, case.files)
        if names.count(case.name.casefold()) > 1
        else case
        for case in cases
    ]
