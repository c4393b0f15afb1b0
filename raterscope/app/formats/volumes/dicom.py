"""DICOM series as volumes: images grouped, sorted along their normal, and whatever is odd about them said."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.grid import Grid, describe_slices
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.sources import Sources
from raterscope.app.formats.untrusted import checked_shape, sentences
from raterscope.app.formats.volumes.dicom_headers import (
    DicomFile,
    NoImageError,
    SliceHead,
    read_dataset,
    read_dicom,
)
from raterscope.app.formats.volumes.records import VolumeFile

__all__ = ["listed", "series_in", "series_of"]

_SAME_PLACE = 1e-3
"""mm: slices nearer than that along the normal lie at one place."""

_EXACT = 1e-4
"""mm: slices further than that from even positions keep their own."""

_UNEVEN = 0.01
"""Of the mean slice distance: where a slice is further from its even position, the median is nominal."""

_SHIFTED = 0.1
"""mm in the plane between a slice and the straight line through the first and the last."""

_NAMED = 3
_MOST_LISTED = 100_000


def series_of(file: DicomFile, sources: Sources, watch: Watch = silent) -> tuple[VolumeFile, ...]:
    """Give the volumes of the series that a DICOM file belongs to, of the files in its folder.

    Raises
    ------
    InputError
        For a file that holds no image, or cannot be read.
    """
    path, heads = file.path, file.images()
    if heads[0].frames > 1 or not heads[0].series:
        return _volumes(heads, path)
    others = sorted(other for other in path.parent.iterdir() if other.is_file() and other != path)
    rest, _ = _read_many(others, watch, sources)
    own = [*heads, *(head for head in rest if head.series == heads[0].series and head.frames == 1)]
    found = _volumes(own, path.parent)
    return tuple(volume for volume in found if path in volume.files) or found


def series_in(
    paths: Sequence[Path | DicomFile], folder: Path, watch: Watch = silent
) -> tuple[VolumeFile, ...]:
    """Give every volume in DICOM files, the largest first; heads that were read before are not read again.

    Files that hold no image are passed over; of those that cannot be read the first volume's notices tell.

    Raises
    ------
    InputError
        When none of them holds an image, with the reason of the first.
    """
    heads, refused = _read_many(paths, watch)
    if not heads:
        if refused:
            raise refused[0]
        raise InputError("holds DICOM files without an image; expected a series of images", file=folder)
    found = _volumes(heads, folder)
    unreadable = [error for error in refused if not isinstance(error, NoImageError)]
    if unreadable:
        more = f" and {len(unreadable) - 1} more" if len(unreadable) > 1 else ""
        words = f"Left out is {unreadable[0]}".rstrip(".")
        found = (replace(found[0], notices=(*found[0].notices, f"{words}{more}.")), *found[1:])
    return found


def listed(path: Path) -> tuple[Path, ...]:
    """Give the images that a DICOMDIR lists and that are there.

    Raises
    ------
    InputError
        For a DICOMDIR that names no image, or one outside its own folder.
    """
    with sentences(path):
        data = read_dataset(path, pixels=False)
        found: list[Path] = []
        folder = path.parent.resolve()
        for record in (data.get("DirectoryRecordSequence") or ())[:_MOST_LISTED]:
            name = record.get("ReferencedFileID")
            if not name:
                continue
            parts = [name] if isinstance(name, str) else [str(part) for part in name]
            whole = PurePosixPath(*parts)
            if whole.is_absolute() or ".." in whole.parts or any(set(part) & set("/\\:") for part in parts):
                raise InputError(f"names {plain(whole)}; expected files in its own folder", file=path)
            for spelled in (parts, [part.lower() for part in parts]):
                file = folder.joinpath(*spelled)
                if file.is_file():
                    if not file.resolve().is_relative_to(folder):
                        raise InputError(f"names {plain(whole)}; expected files in its own folder", file=path)
                    found.append(path.parent.joinpath(*spelled))
                    break
        if not found:
            raise InputError("lists no file that is there; expected images in its folder", file=path)
        return tuple(found)


def _read_many(
    files: Sequence[Path | DicomFile], watch: Watch, sources: Sources | None = None
) -> tuple[list[SliceHead], list[InputError]]:
    heads: list[SliceHead] = []
    refused: list[InputError] = []
    for done, one in enumerate(files):
        try:
            if isinstance(one, Path):
                watch(done / len(files), f"looking at {plain(one.name)}")
                file = read_dicom(one) if sources is None else sources.open(one).dicom()
            else:
                file = one
            heads += () if file is None else file.images()
        except InputError as error:
            refused.append(error)
    return heads, refused


def _volumes(heads: Iterable[SliceHead], place: Path) -> tuple[VolumeFile, ...]:
    by_series: dict[str, list[SliceHead]] = {}
    for head in heads:
        by_series.setdefault(head.series or str(head.path), []).append(head)
    found = [file for series in by_series.values() for file in _of_series(series, place)]
    return tuple(sorted(found, key=lambda file: -math.prod(file.grid.shape)))


def _of_series(heads: list[SliceHead], place: Path) -> list[VolumeFile]:
    """Split a series into its volumes: by shape, orientation and spacing, then by turns at the same place."""
    kinds: list[list[SliceHead]] = []
    for head in heads:
        home = next((kind for kind in kinds if _alike(head, kind[0])), None)
        if home is None:
            kinds.append([head])
        else:
            home.append(head)
    notices: list[str] = []
    if len(kinds) > 1:
        words = "mixes images of different shapes, orientations or spacings"
        notices.append(f"{words}: it is {len(kinds)} volumes")
    turns: list[tuple[list[SliceHead], list[str]]] = []
    for kind in kinds:
        turns += _turns(kind)
    return [
        _file(turn, (*notices, *said), place, f" ({number} of {len(turns)})" if len(turns) > 1 else "")
        for number, (turn, said) in enumerate(turns, 1)
    ]


def _alike(head: SliceHead, other: SliceHead) -> bool:
    if (head.shape, head.colour, head.position is None) != (
        other.shape,
        other.colour,
        other.position is None,
    ):
        return False
    pairs = ((head.orientation, other.orientation, 1e-3), (head.spacing, other.spacing, 1e-3))
    for ours, theirs, apart in pairs:
        if (ours is None) != (theirs is None):
            return False
        if ours and theirs and max(abs(a - b) for a, b in zip(ours, theirs, strict=True)) > apart:
            return False
    return True


def _turns(heads: list[SliceHead]) -> list[tuple[list[SliceHead], list[str]]]:
    """Sort slices by place; those that share one are copies, or turns of a scan that was repeated."""
    notices: list[str] = []
    named: dict[tuple[str, int], SliceHead] = {}
    for head in heads:
        named.setdefault((head.instance or str(head.path), head.frame), head)
    once = list(named.values())
    if len(once) < len(heads):
        copies = len(heads) - len(once)
        words = "1 file is a copy of another" if copies == 1 else f"{copies} files are copies of others"
        notices.append(f"{words} and left out")
    if once[0].position is None or once[0].orientation is None:
        return [(sorted(once, key=lambda head: (head.order, head.path.name)), notices)]
    along = _along(once)
    places: list[list[int]] = []
    for index in np.argsort(along, kind="stable"):
        if places and along[index] - along[places[-1][0]] <= _SAME_PLACE:
            places[-1].append(int(index))
        else:
            places.append([int(index)])
    stacks = [sorted((once[i] for i in place), key=lambda h: (h.order, h.path.name)) for place in places]
    most = max(map(len, stacks))
    if most == 1:
        return [([stack[0] for stack in stacks], notices)]
    if min(map(len, stacks)) == most:
        notices.append(f"{most} images lie at every place: it is {most} volumes")
        return [([stack[turn] for stack in stacks], notices) for turn in range(most)]
    doubled = [_along(stack)[0] for stack in stacks if len(stack) > 1]
    extra = len(once) - len(stacks)
    words = "1 slice lies" if extra == 1 else f"{extra} slices lie"
    notices.append(f"{words} at the place of another, {_at(doubled)}; the first in order is kept")
    return [([stack[0] for stack in stacks], notices)]


def _along(heads: Sequence[SliceHead]) -> NDArray[np.float64]:
    """Millimetres along the slices' common normal."""
    orientation = heads[0].orientation
    assert orientation is not None
    normal = np.cross(orientation[:3], orientation[3:])
    return np.asarray(np.array([head.position for head in heads], dtype=float) @ normal)


def _file(heads: list[SliceHead], notices: Sequence[str], place: Path, suffix: str) -> VolumeFile:
    first, middle = heads[0], heads[len(heads) // 2]
    with sentences(first.path):
        checked_shape(first.path, (len(heads), *first.shape))
        grid, said = _geometry(heads)
    if first.mosaic:
        said.append("holds many slices as the tiles of one image, and is shown as that image")
    paths = tuple(head.path for head in heads)
    single = len(set(paths)) == 1
    if not single:
        place = Path(os.path.commonpath([path.parent for path in paths]))
    name = first.title + suffix
    return VolumeFile(
        name=name,
        path=paths[0] if single else place,
        grid=grid,
        modality=first.modality,
        files=paths[:1] if single else paths,
        frames=tuple(head.frame for head in heads) if first.frames > 1 else (),
        identifier=first.series,
        instances=tuple(head.instance for head in heads),
        window=_shown_window(middle),
        notices=tuple(f"{name}: {notice}." for notice in (*notices, *said)),
    )


def _shown_window(head: SliceHead) -> tuple[float, float] | None:
    """Give the window; values that are turned dark for bright turn its centre with them."""
    if head.window is None or head.photometric != "MONOCHROME1":
        return head.window
    stored = head.bits[1]
    ends = -1.0 if head.signed else 2.0**stored - 1.0
    return head.slope * ends + 2.0 * head.intercept - head.window[0], head.window[1]


def _geometry(heads: list[SliceHead]) -> tuple[Grid, list[str]]:
    first = heads[0]
    shape = (len(heads), *first.shape)
    step = first.thickness or 1.0
    if first.position is None or first.orientation is None:
        words = "does not say where its images lie in the patient"
        order = ": they are taken in the order of their numbers" if len(heads) > 1 else ""
        rows, columns = first.spacing or (1.0, 1.0)
        steps = (step, rows, columns) if first.spacing else (1.0, 1.0, 1.0)
        return Grid.plain(shape, (steps[0], steps[1], steps[2])), [words + order]
    notices: list[str] = []
    if first.spacing is None:
        notices.append("does not tell the size of a pixel: one counts as one millimetre")
    rows, columns = first.spacing or (1.0, 1.0)
    row, column = np.array(first.orientation[:3]), np.array(first.orientation[3:])
    down = np.cross(row, column)
    offsets = None
    places = np.array([head.position for head in heads], dtype=float)
    if len(heads) == 1:
        if first.thickness is None:
            notices.append("does not tell how thick its slice is: it counts as one millimetre")
        down = down * step
    else:
        down, offsets, said = _steps(places, _along(heads))
        notices += said
    matrix = np.column_stack([row * columns, column * rows, down, places[0]])
    grid = Grid.from_matrix(shape, matrix, calibrated=first.spacing is not None, slice_offsets=offsets)
    return grid, [*(sentence.rstrip(".") for sentence in describe_slices(grid)), *notices]


def _steps(
    places: NDArray[np.float64], along: NDArray[np.float64]
) -> tuple[NDArray[np.float64], tuple[float, ...] | None, list[str]]:
    """Give the nominal way from slice to slice (mm), and the slices' offsets where they are not even."""
    notices: list[str] = []
    way = (places[-1] - places[0]) / (along[-1] - along[0])  # of length 1 along the normal
    step = float((along[-1] - along[0]) / (len(along) - 1))
    away = float(np.abs(along - np.linspace(along[0], along[-1], len(along))).max())
    offsets = None
    if away > _EXACT:
        offsets = tuple((along - along[0]).tolist())
    if away > _UNEVEN * step:
        step = float(np.median(np.diff(along)))
    aside = float(np.abs(places - places[0] - np.outer(along - along[0], way)).max())
    if aside > _SHIFTED:
        notices.append(f"its slices are shifted against each other by up to {aside:.2g} mm")
    return step * way, offsets, notices


def _at(places: Sequence[float]) -> str:
    named = ", ".join(f"{place:.2f}" for place in places[:_NAMED])
    more = f" and {len(places) - _NAMED} more places" if len(places) > _NAMED else ""
    return f"at {named} mm{more}"
