"""Masks, label maps and probability maps: NIfTI, NRRD, MetaImage, PNG and TIFF."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.progress import Watch, silent, steps_of
from raterscope.app.errors import InputError
from raterscope.app.formats.masks.collector import crop, make_mask, split_labels
from raterscope.app.formats.masks.mask_images import bands, read_pixels, split_black_white
from raterscope.app.formats.masks.naming import NO_NAMES, NameParts
from raterscope.app.formats.records import MaskTable, RaterMask
from raterscope.app.formats.volumes.voxel_files import VoxelHead, read_all

_MAX_LABELS = 1000
_FEW = 32
_MANY = 256
LARGEST_CHECKED = 64_000_000
"""Maximum number of voxels of a file that is checked for masks."""

_SHADES = 48
_MIN_LEVELS, _EQUAL_LEVELS, _NEXT_LEVEL = 5, 0.5, 0.8
"""Criteria of a grey image: minimum number of values, maximum share of equal neighbours, or else minimum
share of changes by one level.
"""

_FEW_GREYS = 8
_GREY_SAMPLE = 4_000_000
"""Number of pixels that are checked for greys, in rows spread over the image."""

_EQUAL_NEIGHBOURS = 0.8
"""Minimum share of equal neighbours of labels: 0.9 in patches of ten pixels; dark photographs have up to 0.7.
"""

_ROUNDED = 1e-5
"""Maximum distance of a label from its integer; resampling leaves 1.0000001."""

_SMOOTHED = 0.05
"""Maximum share of greys between black and white in patches; a smoothed edge has none, a label has."""

_BLOCK = (1, 8, 8)
_PLAIN_BLOCKS = 0.1
"""Maximum share of blocks with greys but without an edge in a mask that JPEG has compressed."""

_VOXEL_SUFFIXES = (".nii", ".nii.gz", ".hdr", ".nrrd", ".nhdr", ".mha", ".mhd")
_IMAGE_SUFFIXES = (".png", ".tif", ".tiff", ".bmp", ".gif")
_JPEG_SUFFIXES = (".jpg", ".jpeg")


def is_voxel_file(path: Path) -> bool:
    """Return whether a file is NIfTI, NRRD or MetaImage, by its name."""
    return path.name.casefold().endswith(_VOXEL_SUFFIXES)


def is_plain_image(path: Path) -> bool:
    """Return whether a file is an image, by its name."""
    return path.name.casefold().endswith(_IMAGE_SUFFIXES) or is_jpeg(path)


def is_jpeg(path: Path) -> bool:
    """Return whether a file is a JPEG, by its name; it is a mask only if its name says so."""
    return path.suffix.casefold() in _JPEG_SUFFIXES


@dataclass(frozen=True, eq=False)
class LabelMap:
    """Voxels of a file that may be a mask."""

    grid: Grid
    # (layers, slices, rows, columns): greys, indices of a palette, or numbers of colours; a volume is cropped
    # to its non-zero part
    values: NDArray[Any]
    origin: tuple[int, int, int] = (0, 0, 0)  # (slice, row, column): first voxel of `values` in the grid
    colours: NDArray[np.uint32] | None = None  # (C,): red, green and blue of each number
    notices: tuple[str, ...] = ()
    has_gaps: bool = False  # whether voxels have no value

    @property
    def memory(self) -> int:
        """Bytes of the values."""
        return self.values.nbytes

    def looks_marked(self) -> bool | None:
        """Return whether the values are masks; None if they could also be an image."""
        values = self.values
        size = len(values) * math.prod(self.grid.shape)
        empty = 1.0 - np.count_nonzero(values) / size
        if values.dtype.kind == "f":
            low, high = float(values.min(initial=0)), float(values.max(initial=0))
            if not (low >= -_ROUNDED and high <= 1.0 + _ROUNDED):
                return (
                    None if _are_integers(values) and low >= 0 and len(np.unique(values)) <= _FEW else False
                )
            certain = empty + float(np.count_nonzero(values == 1)) / size
            return True if certain > 0.5 and not self.has_gaps else None
        labels = _labels(values, _MANY)
        if labels is None or min(labels, default=0) < 0:
            return False
        if not labels:
            return True
        surely = len(labels) <= _FEW and empty > 0.5 and not self._has_levels(len(labels))
        return True if surely else None

    def _has_levels(self, labels: int) -> bool:
        """Return whether a few values are levels of grey: neighbours mostly differ, or differ by one level.

        Labels form patches, most of which border on the background.
        """
        if labels < _MIN_LEVELS:
            return False
        rows = self.values[..., :: -(-self.values.size // _GREY_SAMPLE), :]
        levels = np.searchsorted(np.unique(rows), rows)
        left, right = levels[..., :-1], levels[..., 1:]
        within, steps = (left > 0) & (right > 0), np.abs(left - right)
        if within.any() and (steps[within] == 0).mean() < _EQUAL_LEVELS:
            return True
        changes = steps[steps > 0]
        return bool(len(changes) and (changes == 1).mean() > _NEXT_LEVEL)

    def is_binary(self) -> bool:
        """Return whether there is only one value other than 0."""
        return bool(((self.values == 0) | (self.values == self.values.max(initial=0))).all())

    def describe_greys(self) -> str:
        """Describe values of a volume rather than of labels; empty if they may be labels.

        Thin labels, such as those of a cortex, have more unequal neighbours than those of a plain image.
        """
        if not self.has_greys(_EQUAL_LEVELS):
            return ""
        return f"its {len(np.unique(self.values))} values mostly differ between neighbouring voxels"

    def has_greys(self, most_equal: float = _EQUAL_NEIGHBOURS) -> bool:
        """Return whether an image has the greys of a photograph: many, and different between neighbours.

        Labels form patches: two neighbours outside the background (the most frequent value) are mostly equal.
        """
        values = self.values
        if values.dtype.kind not in "iu":
            return False
        rows = values[..., :: -(-values.size // _GREY_SAMPLE), :]
        greys, count = np.unique(rows, return_counts=True)
        if len(greys) <= _FEW_GREYS:
            return False
        background = greys[np.argmax(count)]
        left, right = rows[..., :-1], rows[..., 1:]
        marked = (left != background) & (right != background)
        return bool(marked.any() and (left == right)[marked].mean() < most_equal)


def read_values(path: Path, head: VoxelHead | None, watch: Watch = silent) -> LabelMap:
    """Read the voxels of a file; its header is None for an image.

    Raises `InputError` for a file that cannot be read, or has colours that are not labels.
    """
    if head is None:
        values, colours, of_pixels = read_pixels(path)
        grid = Grid.plain((values.shape[1], values.shape[2], values.shape[3]))
        return LabelMap(grid, values, colours=colours, notices=of_pixels)
    if head.colours:
        raise InputError("holds colours; expected masks, labels or probabilities", file=path)
    values = read_all(head, watch)
    notices = [f"The file {notice}." for notice in head.notices]
    gaps = np.isnan(values) if values.dtype.kind == "f" else np.False_
    has_gaps = bool(gaps.any() and not gaps.all())
    if has_gaps:
        values = np.where(gaps, values.dtype.type(0), values)
        count = np.count_nonzero(gaps)
        words = "voxel without a value (NaN) is" if count == 1 else "voxels without a value (NaN) are"
        notices.append(f"{count:,} {words} read as 0.")
    box = []
    for axis in range(1, 4):
        marked = np.flatnonzero(values.any(axis=tuple(other for other in range(4) if other != axis)))
        low, high = (int(marked[0]), int(marked[-1]) + 1) if len(marked) else (0, 0)
        values = values[(slice(None),) * axis + (slice(low, high),)]
        box.append(low)
    values = values.copy()
    if values.dtype.kind == "f" and _are_integers(values, _ROUNDED):
        np.rint(values, out=values)
    return LabelMap(head.grid, values, (box[0], box[1], box[2]), notices=tuple(notices), has_gaps=has_gaps)


def read_label_map(
    path: Path, label_map: LabelMap, names: NameParts = NO_NAMES, watch: Watch = silent
) -> MaskTable:
    """Read masks from the voxels of a file.

    - One value other than 0, which is 1 or the maximum of its type: a mask of one structure.
    - Other integers: each a structure, "label 3".
    - White with a few greys at its edge, as programs that smooth edges leave: a mask, where half white.
    - Fractions between 0 and 1: probabilities; also the greys of a PNG or TIFF with many, divided by 255,
      and integers of a volume up to 100 or 255 that differ between neighbours.
    - Colours: each a structure, "colour #ff0000", except the background, which is black or the most frequent.
    - Several volumes in one file: each a structure, "layer 2".

    Raises `InputError` for a file that cannot be read, or contains no masks.
    """
    notices = list(label_map.notices)
    grid, layers = label_map.grid, len(label_map.values)
    masks: list[RaterMask] = []
    for layer, (array, step) in enumerate(steps_of(watch, label_map.values)):
        name = f"layer {layer + 1}" if layers > 1 else names.structure or ""
        if label_map.colours is not None:
            if len(label_map.colours) == 1:
                text = "has one colour and no background"
                raise InputError(f"{text}; expected masks in other colours than the background", file=path)
            masks += _colour_masks(array, label_map.colours, names, grid)
        elif is_plain_image(path) and array.dtype == np.uint8 and _has_smooth_edges(path, array):
            masks += masks_of_values(path, array >> 7, names._replace(structure=name), grid, step)
            notices.append("Its edges are smoothed: pixels that are at least half white are the mask.")
        elif is_plain_image(path) and array.dtype == np.uint8 and _has_shades(array):
            shares = array.astype(np.float32) / np.float32(255)
            masks.append(_probability_mask(path, shares, names._replace(structure=name), grid))
            notices.append("Its greys are read as probabilities, white as 1.")
        elif (most := _scale_of_probabilities(array)) and not is_plain_image(path):
            shares = array.astype(np.float32) / np.float32(most)
            masks.append(_probability_mask(path, shares, names._replace(structure=name), grid))
            notices.append(f"Its values are read as probabilities, {most} as 1.")
        else:
            masks += masks_of_values(path, array, names._replace(structure=name), grid, step)
    if layers > 1:
        notices.append(f"Holds {layers} volumes; each is read as a structure.")
    return MaskTable(path, tuple(_shift(mask, label_map.origin) for mask in masks), tuple(notices))


def masks_of_values(
    path: Path, values: NDArray[Any], names: NameParts, grid: Grid, watch: Watch = silent
) -> list[RaterMask]:
    """Read masks from voxels, (Z, Y, X): fractions are probabilities, other values labels of structures.

    Raises `InputError`, with `path` as the file, for values that are neither.
    """
    if values.dtype.kind == "f" and not _are_integers(values):
        return [_probability_mask(path, values, names, grid)]
    return _label_masks(path, values, names, grid, watch)


def _shift(mask: RaterMask, offset: tuple[int, int, int]) -> RaterMask:
    if not mask.values.size or offset == (0, 0, 0):
        return mask
    slice_, row, column = (start + step for start, step in zip(mask.origin, offset, strict=True))
    return replace(mask, origin=(slice_, row, column))


def _are_integers(values: NDArray[Any], tolerance: float = 0.0) -> bool:
    return all(bool((np.abs(plane - np.rint(plane)) <= tolerance).all()) for plane in values)


def _has_shades(values: NDArray[Any]) -> bool:
    labels = _labels(values, _MANY)
    return labels is not None and len(labels) > _SHADES and max(labels) > 200


def _scale_of_probabilities(values: NDArray[Any]) -> int:
    """Return 100 or 255, which stands for certain, if many integers differ between neighbours; otherwise 0.

    Labels of an atlas form patches.
    """
    most = int(values.max(initial=0)) if values.dtype.kind in "iu" else 0
    labels = _labels(values, _MANY) if most == 100 or 200 < most <= 255 else None
    if labels is None or labels[0] < 0 or len(labels) <= _SHADES:
        return 0
    left, right = values[..., :-1], values[..., 1:]
    uncertain = (left > 0) & (left < most) & (right > 0) & (right < most)
    if not uncertain.any() or (left == right)[uncertain].mean() >= _EQUAL_LEVELS:
        return 0
    return 100 if most == 100 else 255


def _has_smooth_edges(path: Path, values: NDArray[Any]) -> bool:
    """Return whether an image is black and white except for greys at its edges, unless named as probability.

    The greys of smoothed edges form no patches. Those of a JPEG lie in blocks that contain an edge.
    """
    if "prob" in path.name.casefold():
        return False
    greys = (values > 0) & (values < 255)
    count = np.count_nonzero(greys)
    if not count or count > np.count_nonzero(values == 255):
        return False
    labels = _labels(values, _MANY)
    if labels is None or len(labels) <= _MIN_LEVELS:
        return False
    centre = values[:, 1:-1, 1:-1]
    sides = (values[:, :-2, 1:-1], values[:, 2:, 1:-1], values[:, 1:-1, :-2], values[:, 1:-1, 2:])
    patches = np.logical_and.reduce([greys[:, 1:-1, 1:-1], *(centre == side for side in sides)])
    if patches.sum() <= _SMOOTHED * count:
        return True
    if split_black_white(values) is None:
        return False
    pages, rows, columns = (length - length % size for length, size in zip(values.shape, _BLOCK, strict=True))
    blocks = values[:, :rows, :columns].reshape(pages, rows // 8, 8, columns // 8, 8)
    low, high = blocks.min(axis=(2, 4)), blocks.max(axis=(2, 4))
    grey = (low < high) | ((low > 0) & (low < 255))
    return bool((grey & (high - low < 128)).sum() <= _PLAIN_BLOCKS * grey.sum())


def _labels(values: NDArray[Any], most: int) -> list[int] | None:
    """Return the values other than 0, sorted; None if there are more than `most`."""
    visited: set[int] = set()
    for band in bands(values, 2):
        marked = band[band != 0]
        if marked.size and marked.min() == marked.max():
            visited.add(int(marked[0]))
        elif marked.size:
            visited.update(np.unique(marked).astype(np.int64).tolist())
        if len(visited) > most:
            return None
    return sorted(visited)


def _label_masks(
    path: Path, values: NDArray[Any], names: NameParts, grid: Grid, watch: Watch
) -> list[RaterMask]:
    start, values = crop(values)
    small = values.dtype.kind in "iu" and values.dtype.itemsize <= 4
    if not small and not (np.abs(values) < 2**53).all():  # NaN too
        raise InputError("has values that are not labels; expected integers", file=path)
    labels = _labels(values, _MAX_LABELS) if values.size else []
    if labels is None or min(labels, default=0) < 0:
        raise InputError(
            f"has {'negative values' if labels else f'more than {_MAX_LABELS} different values'}; "
            "expected a mask, a label map or probabilities from 0 to 1",
            file=path,
        )
    largest = int(np.iinfo(values.dtype).max) if values.dtype.kind in "iu" else 255
    if len(labels) <= 1 and set(labels) <= {1, 255, largest}:
        return [make_mask(names.annotator, names.item, names.structure or "", grid, values != 0, start)]
    integers = values if values.dtype.kind in "iu" else values.astype(np.int64)
    return [
        make_mask(
            names.annotator,
            names.item,
            f"{names.structure or ''} label {label}".strip(),
            grid,
            mask,
            (start[0] + origin[0], start[1] + origin[1], start[2] + origin[2]),
        )
        for label, origin, mask in split_labels(integers, labels, watch)
    ]


def _probability_mask(path: Path, values: NDArray[Any], names: NameParts, grid: Grid) -> RaterMask:
    low, high = float(values.min(initial=0)), float(values.max(initial=0))
    if not (low >= -_ROUNDED and high <= 1 + _ROUNDED):
        raise InputError(
            f"has values from {low:g} to {high:g}; expected a mask, a label map or probabilities from 0 to 1",
            file=path,
        )
    shares = np.clip(values, 0.0, 1.0).astype(np.float32)
    return make_mask(names.annotator, names.item, names.structure or "", grid, shares)


def _colour_masks(
    values: NDArray[Any], colours: NDArray[np.uint32], names: NameParts, grid: Grid
) -> list[RaterMask]:
    """Create a mask of each colour; `values` are indices into `colours`, 0 is the background."""
    return [
        make_mask(names.annotator, names.item, f"{names.structure or ''} colour #{colour:06x}".strip(), grid,
                values == number)
        for number, colour in enumerate(colours.tolist()) if number
    ]  # fmt: skip
