"""Several tables of clicks and the sizes of their images, joined into the clicks on each image."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from raterscope.algorithms.clicks.data import Clicks, FloatArray, IntArray
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.records import ClickTable, ImageFile, PointTable
from raterscope.app.study.records import ImageEntry
from raterscope.app.study.references import ImageNames

Size = tuple[float, float]


@dataclass
class _OnImage:
    """What the tables hold of one image: pieces of columns, and everybody who looked, numbered."""

    table: ClickTable
    line: int | None
    people: dict[str, int] = field(default_factory=dict)
    pieces: list[tuple[FloatArray, FloatArray, IntArray, FloatArray]] = field(default_factory=list)

    def number(self, name: str) -> int:
        return self.people.setdefault(name, len(self.people))


def clicks_by_image(
    tables: Sequence[ClickTable],
    sizes: Sequence[ClickTable | ImageFile],
    extent: Size | None = None,
) -> dict[str, Clicks]:
    """Join tables of clicks.

    Parameters
    ----------
    tables : sequence of ClickTable
        An annotator or image of the same name in two tables is the same.
    sizes : sequence of ClickTable or ImageFile
        Images, and tables that tell the size of images; who looked and marked nothing counts where these say
        so. Images are found by name, with or without folder and suffix.
    extent : (width, height), optional
        Size of every image, whatever else is said.

    Returns
    -------
    dict
        Clicks by image, in the order of first appearance; images on which nobody looked are not there.

    Raises
    ------
    InputError
        For an image whose size nothing tells.
    """
    images: dict[str, _OnImage] = {}
    for table in tables:
        _take_marks(table, images)
    names = names_of((name, (1.0, 1.0)) for name in images)
    for table in [*tables, *(one for one in sizes if isinstance(one, ClickTable))]:
        _take_looks(table, images, names)
    known = names_of(_sizes(sizes, tables))
    unsized = [name for name in images if extent is None and known.find(name) is None]
    if unsized:
        first = images[unsized[0]]
        more = f" (and {len(unsized) - 1:,} more)" if len(unsized) > 1 else ""
        raise InputError(
            f'the size of this image is not known: "{plain(unsized[0])}"{more}; give --extent W H, or '
            "--images with the images or a table of their sizes",
            file=first.table.path,
            line=first.line,
        )
    return {name: _clicks(one, extent or _size(known, name)) for name, one in images.items()}


def points_by_image(table: PointTable, images: Iterable[str]) -> dict[str, FloatArray]:
    """Give the true places, (K, 2), on those of the images of which the table tells them."""
    names = names_of((name, (1.0, 1.0)) for name in images)
    found: dict[str, list[FloatArray]] = {}
    for index, name in enumerate(table.images):
        entry, rows = names.find(name), table.image == index
        if entry is not None and (index in table.searched or rows.any()):
            found.setdefault(entry.name, []).append(np.column_stack([table.x[rows], table.y[rows]]))
    return {name: np.concatenate(pieces) for name, pieces in found.items()}


def scores_by_image(table: PointTable, images: Iterable[str]) -> dict[str, FloatArray]:
    """Give a program's detections, (K, 3) x, y and score, on those of the images that it searched."""
    assert table.score is not None
    names = names_of((name, (1.0, 1.0)) for name in images)
    found: dict[str, list[FloatArray]] = {}
    for index, name in enumerate(table.images):
        entry, rows = names.find(name), table.image == index
        if entry is not None:
            columns = (table.x[rows], table.y[rows], table.score[rows])
            found.setdefault(entry.name, []).append(np.column_stack(columns))
    return {name: np.concatenate(pieces) for name, pieces in found.items()}


def names_of(sizes: Iterable[tuple[str, Size]]) -> ImageNames:
    """Make images findable by name; the first of a name counts."""
    entries: dict[str, ImageEntry] = {}
    for name, (width, height) in sizes:
        entries.setdefault(name, ImageEntry(len(entries), name, None, width, height))
    return ImageNames(entries.values())


def _take_marks(table: ClickTable, images: dict[str, _OnImage]) -> None:
    order = np.argsort(table.image, kind="stable")
    indices, starts = np.unique(table.image[order], return_index=True)
    pieces = np.split(order, starts[1:]) if len(order) else []
    rows_of = dict(zip(indices.tolist(), pieces, strict=True))
    looked = {image for _, image in table.looked}
    for index, name in enumerate(table.images):
        if index not in rows_of and index not in looked:
            continue
        line = table.lines[index] if table.lines else None
        one = images.setdefault(name, _OnImage(table, line))
        rows = rows_of.get(index, np.empty(0, dtype=np.int64))
        who = np.array([one.number(table.annotators[a]) for a in table.annotator[rows]], dtype=np.int64)
        time = np.full(len(rows), np.nan) if table.time is None else table.time[rows]
        one.pieces.append((table.x[rows], table.y[rows], who, time))


def _take_looks(table: ClickTable, images: dict[str, _OnImage], names: ImageNames) -> None:
    """Count those who looked; an image that nobody clicked on, of a table of sizes, is none of ours."""
    for annotator, image in sorted(table.looked):
        entry = names.find(table.images[image])
        if entry is not None:
            images[entry.name].number(table.annotators[annotator])


def _sizes(
    sizes: Sequence[ClickTable | ImageFile], tables: Sequence[ClickTable]
) -> Iterable[tuple[str, Size]]:
    for one in [*sizes, *tables]:
        if isinstance(one, ImageFile):
            yield one.name, (float(one.width), float(one.height))
        else:
            for index, size in one.extents.items():
                yield one.images[index], size


def _size(known: ImageNames, name: str) -> Size:
    entry = known.find(name)
    assert entry is not None
    return entry.width, entry.height


def _clicks(one: _OnImage, size: Size) -> Clicks:
    x, y, who, time = (np.concatenate(column) for column in zip(*one.pieces, strict=True))
    return Clicks(
        x=x, y=y, annotator=who, annotators=tuple(one.people), extent=(0.0, 0.0, *size),
        time=None if np.isnan(time).all() else time,
    )  # fmt: skip
