"""Import of clicks: reads files of points, assigns annotators and images, and joins tables by image."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from raterscope.algorithms.clicks.data import Clicks, FloatArray, IntArray
from raterscope.algorithms.progress import Watch, silent, steps_of
from raterscope.app.ambiguous_files import TRUTH_WORD, UnknownAnnotators, is_truth, names_by, words_of
from raterscope.app.errors import InputError, SkippedFiles, plain
from raterscope.app.formats.masks.naming import NameParts, strip_suffixes
from raterscope.app.formats.points import UNKNOWN, PointFile, read_points
from raterscope.app.formats.points.positions import ImageScale, ImageScales
from raterscope.app.formats.records import ClickTable, ImageFile, PointTable, first_seen
from raterscope.app.formats.signatures import IMAGE_SUFFIXES
from raterscope.app.formats.sources import Sources
from raterscope.app.study.records import ImageEntry
from raterscope.app.study.references import ImageNames
from raterscope.text import counted

_UPLOADED = re.compile(r"[0-9a-f]{4,8}-")
"""Prefix that Label Studio adds to the names of uploaded files."""


class AttributedPoints(NamedTuple):
    """Points whose annotators are known."""

    clicks: list[ClickTable]
    truths: list[PointTable]
    assumed: list[Path]  # files of detections that were assumed to be ground truth


def read_point_files(
    paths: Sequence[Path], skipped: SkippedFiles, sources: Sources | None = None, watch: Watch = silent
) -> list[PointFile]:
    """Read files of points.

    `sources`: sources of files that may be open already.
    """
    sources = Sources() if sources is None else sources
    files: list[PointFile] = []
    for path, step in steps_of(watch, paths):
        step(0.0, f"reading {plain(path.name)}")
        with skipped.reading(path):
            files.append(read_points(sources.open(path), step))
    return files


def assign_annotators(
    files: Sequence[PointFile],
    images: Sequence[str] = (),
    *,
    annotator: str | None = None,
    by_hand: Mapping[Path, str] | None = None,
    naming: str | None = None,
    truth: bool = False,
    detections: Literal["clicks", "truth", "ask"] = "clicks",
) -> AttributedPoints:
    """Determine the annotator and the image of every point.

    Names given by hand come first, then those in a file, then those guessed from all file names as for masks,
    then folders with one annotator each. A file without an image name belongs to the only known image. Raises
    `UnknownAnnotators` for a file without annotator, or with "ask". Raises `InputError` for a file that may
    belong to several images.

    `images`: names of the known images.
    `annotator`: annotator of all files.
    `by_hand`: annotators by file, `TRUTH_WORD` for the truth.
    `naming`: pattern of the files' names, see `naming.parse_name`.
    `truth`: whether all files are the truth.
    `detections`: meaning of detections exported by this program without a given annotator: an annotator's
        clicks, ground truth, or an error that asks.
    """
    guessed = names_by([file.clicks.path for file in files], images, naming)
    folders = _by_folder([file for file in files if UNKNOWN in file.clicks.annotators])
    known_images = index_names((name, (1.0, 1.0)) for name in images)
    clicks: list[ClickTable] = []
    truths: list[PointTable] = []
    unknown: dict[Path, str] = {}
    assumed: list[Path] = []
    for file in files:
        path = file.clicks.path
        name = guessed.get(path, NameParts())
        by = TRUTH_WORD if truth else (by_hand or {}).get(path) or annotator
        left_open = by is None and naming is None and not is_truth(name.annotator or "")
        if left_open and detections != "clicks" and _is_own_export(file):
            assumed.append(path)
            if detections == "ask":
                unknown[path] = _annotator_from_name(name) or strip_suffixes(path)
                continue
            by = TRUTH_WORD
        annotators = [
            by or stated or _annotator_from_name(name) or folders.get(path)
            for stated in file.clicks.annotators
        ]
        pictures = [
            _image_name(stated, name.item, path, known_images, images) for stated in file.clicks.images
        ]
        if None in annotators:
            unknown[path] = strip_suffixes(path)
            continue
        own, true = _split_truth(file, [person or "" for person in annotators], pictures)
        if own.looked:
            clicks.append(own)
        if true.searched or not own.looked:
            truths.append(true)
    if unknown:
        raise UnknownAnnotators(tuple(unknown), unknown, assumed)
    return AttributedPoints(clicks, truths, assumed)


def _is_own_export(file: PointFile) -> bool:
    """Return whether a file holds detections exported by this program, and no annotator's points."""
    return file.detections and set(file.clicks.annotators) == {UNKNOWN}


def _by_folder(files: Sequence[PointFile]) -> dict[Path, str]:
    """Return the annotator of each file if each has a folder of their own with the same images."""
    once = Counter(image for file in files for image in file.clicks.images)
    within = Counter((file.clicks.path.parent, image) for file in files for image in file.clicks.images)
    if UNKNOWN in once or max(once.values(), default=0) < 2 or max(within.values()) > 1:
        return {}
    return {file.clicks.path: file.clicks.path.resolve().parent.name for file in files}


def _annotator_from_name(name: NameParts) -> str | None:
    """Return the annotator in a file's name, unless it is another word for the image."""
    person = name.annotator
    if person is not None and name.item is not None and set(words_of(person)) <= set(words_of(name.item)):
        return None
    return person


def _image_name(
    stated_name: str, hint: str | None, path: Path, known_images: ImageNames, images: Sequence[str]
) -> str:
    """Return the name of a known image, otherwise the name that the file or its name states."""
    if stated_name != UNKNOWN:
        uploaded = _UPLOADED.match(stated_name)
        known_image = known_images.find(stated_name) or (
            known_images.find(stated_name[uploaded.end() :]) if uploaded else None
        )
        return stated_name if known_image is None else known_image.name
    if hint is not None:
        known_image = known_images.find(hint)
        return hint if known_image is None else known_image.name
    within = [image for image in images if _is_within(image, path)]
    if len(within) == 1:
        return within[0]
    if len(images) > 1:
        raise InputError(
            f"does not name its image, and there are {len(images):,}; name the file after its image",
            file=path,
        )
    return images[0] if images else path.resolve().parent.name or "image"


def _is_within(image: str, path: Path) -> bool:
    """Return whether an image's name is part of a file's: smear 01 in napari_smear_01_anna."""
    own, words = words_of(image), words_of(path.name)
    return bool(own) and any(
        words[start : start + len(own)] == own for start in range(len(words) - len(own) + 1)
    )


def _split_truth(
    file: PointFile, annotators: Sequence[str], pictures: Sequence[str]
) -> tuple[ClickTable, PointTable]:
    """Assign annotators and images, and separate the true points from the clicks."""
    table = file.clicks
    names, number = first_seen([name for name in annotators if not is_truth(name)])
    number_of = np.full(len(annotators), -1, dtype=np.int64)
    number_of[[at for at, name in enumerate(annotators) if not is_truth(name)]] = number
    images, where = first_seen(list(pictures))
    extents = {int(where[at]): size for at, size in table.extents.items()}
    true = number_of[table.annotator] < 0
    looked = {(int(number_of[row]), int(where[at])) for row, at in table.looked if number_of[row] >= 0}
    clicks = replace(
        table, annotators=names, images=images, annotator=number_of[table.annotator][~true],
        image=where[table.image][~true], x=table.x[~true], y=table.y[~true], looked=frozenset(looked),
        extents=extents, label=None if table.label is None else table.label[~true],
    )  # fmt: skip
    truth_points = file.truth
    searched = {int(where[at]) for row, at in table.looked if number_of[row] < 0}
    searched |= {int(where[at]) for at in (truth_points.searched if truth_points else ())}
    truth = PointTable(
        path=table.path, images=images, searched=frozenset(searched),
        image=np.concatenate(
            [where[table.image][true], where[truth_points.image] if truth_points else clicks.image[:0]]
        ),
        x=np.concatenate([table.x[true], truth_points.x if truth_points else clicks.x[:0]]),
        y=np.concatenate([table.y[true], truth_points.y if truth_points else clicks.y[:0]]),
        extents=extents, notices=table.notices if true.any() else (),
    )  # fmt: skip
    return clicks, truth


Size = tuple[float, float]


@dataclass
class _ImagePieces:
    """Columns of one image from all tables, and its numbered annotators."""

    table: ClickTable
    line: int | None
    annotators: dict[str, int] = field(default_factory=dict)
    pieces: list[tuple[FloatArray, FloatArray, IntArray, FloatArray, IntArray]] = field(default_factory=list)
    classes: dict[str, int] = field(default_factory=dict)

    def number(self, name: str) -> int:
        return self.annotators.setdefault(name, len(self.annotators))


def unify_images(tables: Sequence[ClickTable]) -> list[ClickTable]:
    """Give an image that tables name with and without suffix one name, with the suffix.

    A name that fits several files, such as x for x.bmp and x.png, stays unchanged.
    """
    names = dict.fromkeys(name for table in tables for name in table.images)
    files: dict[str, list[str]] = {}
    for name in names:
        if name.casefold().endswith(IMAGE_SUFFIXES):
            files.setdefault(name.rpartition(".")[0].casefold(), []).append(name)
    file_of = {name: files[name.casefold()][0] for name in names if len(files.get(name.casefold(), ())) == 1}
    if not file_of:
        return list(tables)
    first, *more = file_of.items()
    others = f" (and {counted(len(more), 'other image')})" if more else ""
    notice = f"{plain(first[0], 40)} and {plain(first[1], 40)}{others} are taken as one image"
    unified = [
        replace(table, images=tuple(file_of.get(name, name) for name in table.images)) for table in tables
    ]
    unified[0] = replace(unified[0], notices=(*unified[0].notices, notice))
    return unified


def clicks_by_image(
    tables: Sequence[ClickTable], sizes: Sequence[ClickTable | ImageFile], extent: Size | None = None
) -> dict[str, Clicks]:
    """Join tables of clicks, by image in the order of first appearance.

    Raises `InputError` for an image of unknown size. Images without annotators are skipped.

    `tables`: an annotator or image of the same name in two tables is the same.
    `sizes`: images, and tables with image sizes and annotators without clicks. Images are found by name, with
        or without folder and suffix.
    `extent`: (width, height), size of every image, which overrides `sizes`.
    """
    images: dict[str, _ImagePieces] = {}
    for table in tables:
        _add_marks(table, images)
    names = index_names((name, (1.0, 1.0)) for name in images)
    for table in [*tables, *(table for table in sizes if isinstance(table, ClickTable))]:
        _add_looks(table, images, names)
    known_sizes = index_names(_sizes(sizes, tables))
    unsized = [name for name in images if extent is None and known_sizes.find(name) is None]
    if unsized:
        first = images[unsized[0]]
        more = f" (and {len(unsized) - 1:,} more)" if len(unsized) > 1 else ""
        raise InputError(
            f'the size of this image is unknown: "{plain(unsized[0])}"{more}; give --extent W H, or '
            "--images with the images or a table of their sizes",
            file=first.table.path,
            line=first.line,
        )
    return {name: _clicks(image, extent or _size(known_sizes, name)) for name, image in images.items()}


def points_by_image(table: PointTable, images: Iterable[str]) -> dict[str, FloatArray]:
    """Return the true positions, (K, 2), of the images that the table covers."""
    covered = table.searched | set(table.image.tolist())
    return _rows_by_image(table, np.column_stack([table.x, table.y]), covered, images)


def scores_by_image(table: PointTable, images: Iterable[str]) -> dict[str, FloatArray]:
    """Return a program's detections, (K, 3) x, y and score, on the images that it searched."""
    assert table.score is not None
    rows = np.column_stack([table.x, table.y, table.score])
    return _rows_by_image(table, rows, range(len(table.images)), images)


def _rows_by_image(
    table: PointTable, rows: FloatArray, covered: Collection[int], images: Iterable[str]
) -> dict[str, FloatArray]:
    """Group the rows of a table by image; rows on images that are not covered are dropped."""
    names = index_names((name, (1.0, 1.0)) for name in images)
    pieces_of: dict[str, list[FloatArray]] = {}
    for index in sorted(covered):
        entry = names.find(table.images[index])
        if entry is not None:
            pieces_of.setdefault(entry.name, []).append(rows[table.image == index])
    return {name: np.concatenate(pieces) for name, pieces in pieces_of.items()}


def index_names(sizes: Iterable[tuple[str, Size]]) -> ImageNames:
    """Index images by name; the first of a name counts."""
    entries: dict[str, ImageEntry] = {}
    for name, (width, height) in sizes:
        entries.setdefault(name, ImageEntry(len(entries), name, None, width, height))
    return ImageNames(entries.values())


_FEWEST_PERCENT = 5
_LARGER_THAN_PERCENT = 200.0


def explain_possible_percent(
    tables: Iterable[ClickTable | PointTable], sizes: Iterable[tuple[str, Size]]
) -> list[str]:
    """Name the tables whose positions may be percent: all between 0 and 100, on much larger images."""
    names = index_names(sizes)
    notices = []
    for table in tables:
        if len(table.x) < _FEWEST_PERCENT or min(table.x.min(), table.y.min()) < 0:
            continue
        entries = [names.find(table.images[at]) for at in np.unique(table.image).tolist()]
        smallest = min((min(entry.width, entry.height) if entry else 0.0 for entry in entries), default=0.0)
        if max(table.x.max(), table.y.max()) <= 100 and smallest > _LARGER_THAN_PERCENT:
            notices.append(
                f"{plain(table.path.name)}: all positions lie between 0 and 100 and are read as pixels, "
                "though the images are larger. If they are percent, read the table as clicks in percent "
                "(--map x=x_percent y=y_percent)."
            )
    return notices


def index_scales(sizes: Iterable[tuple[str, ImageScale]]) -> ImageScales:
    """Return a function for the sizes of images by their names as annotations give them."""
    known: dict[str, ImageScale] = {}
    for name, scale in sizes:
        earlier = known.get(name, ImageScale())
        known[name] = ImageScale(scale.pixel_size or earlier.pixel_size, scale.size or earlier.size)
    names = index_names((name, (1.0, 1.0)) for name in known)

    def find(name: str) -> ImageScale:
        entry = names.find(name)
        return ImageScale() if entry is None else known[entry.name]

    return find


def _add_marks(table: ClickTable, images: dict[str, _ImagePieces]) -> None:
    order = np.argsort(table.image, kind="stable")
    indices, starts = np.unique(table.image[order], return_index=True)
    pieces = np.split(order, starts[1:]) if len(order) else []
    rows_of = dict(zip(indices.tolist(), pieces, strict=True))
    looked = {image for _, image in table.looked}
    for index, name in enumerate(table.images):
        if index not in rows_of and index not in looked:
            continue
        line = table.lines[index] if table.lines else None
        image_pieces = images.setdefault(name, _ImagePieces(table, line))
        rows = rows_of.get(index, np.empty(0, dtype=np.int64))
        annotators = np.array(
            [image_pieces.number(table.annotators[a]) for a in table.annotator[rows]], dtype=np.int64
        )
        time = np.full(len(rows), np.nan) if table.time is None else table.time[rows]
        label = np.full(len(rows), -1)
        if table.label is not None:
            classes = image_pieces.classes
            numbers = [classes.setdefault(name, len(classes)) for name in table.classes]
            label = np.array([*numbers, -1], dtype=np.int64)[table.label[rows]]
        image_pieces.pieces.append((table.x[rows], table.y[rows], annotators, time, label))


def _add_looks(table: ClickTable, images: dict[str, _ImagePieces], names: ImageNames) -> None:
    """Add annotators who viewed an image. Images without clicks in a table of sizes are ignored."""
    for annotator, image in sorted(table.looked):
        entry = names.find(table.images[image])
        if entry is not None:
            images[entry.name].number(table.annotators[annotator])


def _sizes(
    sizes: Sequence[ClickTable | ImageFile], tables: Sequence[ClickTable]
) -> Iterable[tuple[str, Size]]:
    for source in [*sizes, *tables]:
        if isinstance(source, ImageFile):
            yield source.name, (float(source.width), float(source.height))
        else:
            for index, size in source.extents.items():
                yield source.images[index], size


def _size(known_sizes: ImageNames, name: str) -> Size:
    entry = known_sizes.find(name)
    assert entry is not None
    return entry.width, entry.height


def _clicks(pieces: _ImagePieces, size: Size) -> Clicks:
    x, y, annotator, time, label = (np.concatenate(column) for column in zip(*pieces.pieces, strict=True))
    return Clicks(
        x=x, y=y, annotator=annotator, annotators=tuple(pieces.annotators), extent=(0.0, 0.0, *size),
        time=None if np.isnan(time).all() else time,
        classes=tuple(pieces.classes), label=label if pieces.classes else None,
    )  # fmt: skip
