"""Files into a study, in an order that works: images, then sizes and clicks, then truth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import InputError
from raterscope.app.formats import ClickTable, ImageFile, PointTable, read
from raterscope.app.formats.images import is_image
from raterscope.app.study import Study

__all__ = ["Readings", "read_files", "store"]


TABLES = (".csv", ".tsv")


@dataclass(frozen=True)
class Readings:
    """What was read from some files, each kind in the order of the files.

    `left` are tables that lie in a folder with images: which of them are meant, only their own names tell.
    """

    images: tuple[ImageFile, ...]
    clicks: tuple[ClickTable, ...]
    truths: tuple[PointTable, ...]
    left: tuple[Path, ...] = ()


def read_files(
    paths: Sequence[Path],
    *,
    kind: str | None = None,
    mappings: Mapping[Path, Mapping[str, str]] | None = None,
    watch: Watch = silent,
) -> Readings:
    """Read files; of a folder, its images.

    Parameters
    ----------
    paths : sequence of Path
    kind : str, optional
        clicks, truth or image, where the files do not show it.
    mappings : mapping of file to {column: field}, optional
    watch : Watch

    Raises
    ------
    UnknownColumns
        When a table's columns must be named by hand.
    InputError
        For the first file that cannot be read; nothing of the others is lost, for nothing is stored yet.
    """
    files = [file for path in paths for file in _files(path)]
    found: list[ImageFile | ClickTable | PointTable] = []
    for done, file in enumerate(files):
        step = part(watch, done / len(files), (done + 1) / len(files))
        step(0.0, f"reading {file.name}")
        found.append(read(file, kind, (mappings or {}).get(file), step))
    tables = [table for table in found if isinstance(table, ClickTable)]
    return Readings(
        images=tuple(image for image in found if isinstance(image, ImageFile)),
        # A table without clicks tells the sizes of images, which tables of clicks may need.
        clicks=tuple(sorted(tables, key=_has_clicks)),
        truths=tuple(table for table in found if isinstance(table, PointTable)),
        left=tuple(table for path in paths for table in _tables_in(path) if table not in files),
    )


def store(
    readings: Readings, study: Study, watch: Watch = silent, *, extent: tuple[float, float] | None = None
) -> list[str]:
    """Take up what was read.

    Parameters
    ----------
    readings : Readings
    study : Study
    watch : Watch
    extent : (width, height), optional
        Size of images that nothing else tells the size of.

    Returns
    -------
    list of str
        What came in, a sentence or more each.
    """
    sentences = []
    tables: tuple[ClickTable | PointTable, ...] = (*readings.clicks, *readings.truths)
    share = 0.5 if tables else 1.0
    if readings.images:
        before = {entry.id for entry in study.images()}
        entries = study.add_images(readings.images, part(watch, 0.0, share))
        new = len({entry.id for entry in entries} - before)
        sentences.append(_images_in_words(new, len(entries)))
    for done, table in enumerate(tables):
        begin, width = share + (1 - share) * done / len(tables), (1 - share) / len(tables)
        step = part(watch, begin, begin + width)
        if isinstance(table, ClickTable):
            summary = study.add_clicks(table, step, extent=extent)
        else:
            summary = study.add_truth(table, step, extent=extent)
        sentences.append(f"{table.path.name}: {summary.in_words()}")
    if readings.left:
        names = ", ".join(path.name for path in readings.left[:3])
        more = f" and {len(readings.left) - 3} more" if len(readings.left) > 3 else ""
        sentences.append(f"Of a folder the images alone are read; import {names}{more} by name.")
    return sentences


def _files(path: Path) -> Iterable[Path]:
    if not path.is_dir():
        return [path]
    images = sorted(file for file in path.iterdir() if file.is_file() and is_image(file))
    if not images:
        raise InputError("is a folder without images; expected PNG, JPEG or TIFF files in it", file=path)
    return images


def _tables_in(path: Path) -> Iterable[Path]:
    if not path.is_dir():
        return []
    return sorted(file for file in path.iterdir() if file.suffix.lower() in TABLES)


def _has_clicks(table: ClickTable) -> bool:
    return len(table) > 0


def _images_in_words(new: int, named: int) -> str:
    words = f"{new} image{'' if new == 1 else 's'}"
    known = named - new
    return f"{words}, {known} known already." if known else f"{words}."
