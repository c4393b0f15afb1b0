"""Contents read from files, before a study stores them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from raterscope.app.ambiguous_files import list_names
from raterscope.app.errors import InputError, plain
from raterscope.app.formats import ClickTable, ImageFile, PointTable
from raterscope.app.formats.pairs.table import RankingTable
from raterscope.app.formats.records import (
    LabelFile,
    LabelTable,
    MaskTable,
    PairTable,
    TaskContents,
    TrueLabels,
    VolumeFile,
)
from raterscope.app.formats.workbooks import WORKBOOKS
from raterscope.app.kinds.masks.attribution import AttributedMask
from raterscope.app.kinds.masks.imports import Placement

TABLE_SUFFIXES = (".csv", ".tsv", ".parquet", *WORKBOOKS, ".txt")

Table = ClickTable | PointTable | LabelTable | TrueLabels | TaskContents | PairTable


def is_table(path: Path) -> bool:
    """Return whether a file's name is that of a table."""
    return path.suffix.casefold() in TABLE_SUFFIXES


@dataclass(frozen=True)
class TableLayout:
    """Columns of a table, and their interpretation."""

    path: Path
    kind: str  # {"clicks", "truth", "scores", "labels", "true labels", "tasks", "pairs"}
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]  # tuple of tuples of str: the first rows
    fields: Mapping[str, str]  # by column; other columns were ignored


@dataclass(frozen=True)
class Readings:
    """Contents read from some files, each kind in the order of the files.

    `attributed` are the masks of all files with their annotators. `others` are the contents from the readers
    of other kinds, by kind. `left` are files of a folder that were not read. `programs` names the annotators
    that are programs.
    """

    images: tuple[ImageFile, ...] = ()
    clicks: tuple[ClickTable, ...] = ()
    truths: tuple[PointTable, ...] = ()
    left: tuple[Path, ...] = ()
    volumes: tuple[VolumeFile, ...] = ()
    masks: tuple[MaskTable, ...] = ()
    attributed: tuple[AttributedMask, ...] = ()
    labels: tuple[LabelFile, ...] = ()
    pairs: tuple[PairTable, ...] = ()
    rankings: tuple[RankingTable, ...] = ()
    others: Mapping[str, Any] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    skipped: tuple[InputError, ...] = ()  # errors of files that were skipped
    layouts: tuple[TableLayout, ...] = ()
    programs: frozenset[str] = frozenset()
    coco_images: Mapping[str, str] = field(default_factory=dict)  # by COCO id: names of images

    def tables(self) -> list[Table]:
        """List the tables that count twice if they are imported twice."""
        votes = [table for table in self.labels if isinstance(table, LabelTable)]
        return [*self.clicks, *self.truths, *votes, *self.pairs]

    def files(self) -> list[Path]:
        """List the files."""
        others = (*self.labels, *self.rankings, *self.masks, *self.volumes, *self.images)
        return [file.path for file in (*self.tables(), *others)]

    def left_in_words(self) -> list[str]:
        """Explain why files of a folder were not read."""
        sentences = []
        tables_left = [path for path in self.left if path.suffix.casefold() in TABLE_SUFFIXES[:-1]]
        if tables_left:
            sentences.append(
                f"Skipped, because their columns are not known for certain: {list_names(tables_left)}. "
                "To read one, import it alone."
            )
        others = [path for path in self.left if path not in tables_left]
        if others:
            sentences.append(f"Skipped, because they contain nothing to import: {list_names(others)}.")
        return sentences


def explain_skipped(readings: Readings, placement: Placement) -> list[str]:
    """Explain what is skipped or assumed, before anything is stored, one sentence each."""
    files: list[Table | MaskTable] = [
        *readings.clicks, *readings.truths, *readings.labels, *readings.pairs, *readings.masks
    ]  # fmt: skip
    of_files = [f"{plain(file.path.name)}: {text}" for file in files for text in file.notices]
    of_volumes = [text for volume in readings.volumes for text in volume.notices]
    return [*of_files, *of_volumes, *placement.notices, *readings.notices, *readings.left_in_words()]
