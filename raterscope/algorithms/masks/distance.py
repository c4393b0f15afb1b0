"""Signed distances to the boundary of a mask, the domain of a fusion, interpolation, and edits of a mask.

Slices between drawn slices are interpolated by the distances; skipped slices are listed. Edits fill holes,
smooth the outline, add a margin, or combine two masks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.data import OPEN, BoolArray, Box, Float32Array, FloatArray, Masks, marked
from raterscope.algorithms.masks.metrics import dice, distance_to
from raterscope.algorithms.masks.voting import with_margin
from raterscope.algorithms.progress import Check, no_check, parts_of, run_parts

_AT_ONCE = 500_000
"""Voxels between two calls of the check."""

_NOTHING = 1e-6
"""Maximum probability of background: the logit at the default clip."""


def signed_distance(
    mask: BoolArray,
    spacing: tuple[float, float, float],
    clip: float,
    check: Check = no_check,
    positions: FloatArray | None = None,
    out: Float32Array | None = None,
) -> Float32Array:
    """Return each voxel's Euclidean distance (mm) to the boundary of a mask, above 0 inside.

    The distance is that to the nearest voxel of the other kind, centre to centre, minus half of the smallest
    side of a voxel, because the boundary lies midway between neighbours. There is no boundary at the edge of
    the array; one slice alone gives distances in the plane. Any part of the image that reaches `clip` beyond
    the mask gives the same values.

    `mask`: (Z, Y, X).
    `spacing`: (slice, row, column), mm.
    `clip`: maximum distance, mm. An empty mask is -`clip` everywhere, a full mask `clip`.
    `check`: called regularly; it may raise an exception to stop.
    `positions`: (Z,), mm across the slices, if they are uneven. `out`: (Z, Y, X), array for the result.
    """
    from raterscope.algorithms.masks import _voxel_kernels as kernels

    bits = np.ascontiguousarray(mask).view(np.uint8)
    slices, rows, columns = bits.shape
    lines = max(1, _AT_ONCE // columns)
    thickness, height, width = (float(length) for length in spacing)  # whole numbers: other kernels
    half = half_side(spacing, slices, positions)
    far = (clip + half) ** 2 * (1 + 1e-6)
    away = np.empty(bits.shape, dtype=np.float32) if out is None else out

    def fill_planes(begin: int, end: int) -> None:
        plane = np.empty((rows, columns), dtype=np.float32)
        for z in range(begin, end):
            kernels.along_columns(bits[z], width, far, plane)
            kernels.across_rows(plane, height, far, 0, rows, away[z])

    def fill_bands(begin: int, end: int) -> None:
        if positions is not None:
            kernels.across_uneven_slices(away, np.array(positions), far, begin, end, away)
            return
        # A copy: loops over rows that may have a stride are several times slower.
        here, lowest = np.empty((2, slices, columns), dtype=np.float32)
        for y in range(begin, end):
            here[:] = away[:, y]
            kernels.across_rows(here, thickness, far, 0, slices, lowest)
            away[:, y] = lowest

    if slices > 1:
        run_parts(fill_planes, parts_of(slices, lines // rows), check)
        run_parts(fill_bands, parts_of(rows, lines // slices), check)
    else:
        along = np.empty((rows, columns), dtype=np.float32)
        kernels.along_columns(bits[0], width, far, along)
        run_parts(
            lambda begin, end: kernels.across_rows(along, height, far, begin, end, away[0]),
            parts_of(rows, lines), check,
        )  # fmt: skip
    flat = away.ravel()
    run_parts(
        lambda begin, end: kernels.finish(flat[begin:end], half, clip), parts_of(len(flat), _AT_ONCE), check
    )
    return away


def logit_distance(
    probability: Float32Array, clip: float, slope: float, check: Check = no_check
) -> Float32Array:
    """Convert probabilities to signed distances, mm, of the same shape (Z, Y, X): eq. 1.

    The logit over the sigmoid's `slope`, 1/mm, clipped to `clip`, mm.
    """
    out = np.empty(probability.shape, dtype=np.float32)
    every, target = probability.ravel(), out.ravel()
    for begin in range(0, len(every), _AT_ONCE):
        check()
        block = slice(begin, begin + _AT_ONCE)
        value = every[block].astype(np.float64)
        with np.errstate(divide="ignore"):
            logit = np.log(value) - np.log1p(-value)
        target[block] = np.clip(logit / slope, -clip, clip)
    return out


def domain(
    masks: Masks, margin: float, check: Check = no_check, *, copy: bool = True,
    box: tuple[Box, Box] | None = None,
) -> Masks:  # fmt: skip
    """Crop masks to the box of all voxels that are marked or settled as marked, with a margin.

    Voxels far from every mask are background to all raters. Their number is arbitrary and would affect
    methods that count them.

    `margin`: mm on every side, within the image. Smaller `masks` are padded with background.
    `check`: called regularly; it may raise an exception to stop.
    `copy`: copy the values, which otherwise are a view if no padding is needed.
    `box`: as from `occupied`, if known.
    `masks` is returned unchanged if nothing is marked.
    """
    box = box or occupied(masks, check)
    if box is None:
        return masks
    assert masks.frame is not None
    low, high = box
    frame = masks.frame
    first, last = ([at + edge for at, edge in zip(masks.origin, edges, strict=True)] for edges in (low, high))
    begin, end = with_margin(first, last, masks.spacing, margin, frame, masks.slice_positions)
    if tuple(begin) == masks.origin and tuple(b - a for a, b in zip(begin, end, strict=True)) == masks.shape:
        return masks
    source, target = [], []
    for a, b, at, size in zip(begin, end, masks.origin, masks.shape, strict=True):
        low_end, high_end = max(a, at), min(b, at + size)
        source.append(slice(low_end - at, high_end - at))
        target.append(slice(low_end - a, high_end - a))
    shape = tuple(b - a for a, b in zip(begin, end, strict=True))
    old: Any = masks.values[..., source[0], source[1], source[2]]
    values = old
    if copy or old.shape[-3:] != shape:
        values = np.zeros((*masks.values.shape[:-3], *shape), dtype=masks.values.dtype)
        new = values[..., target[0], target[1], target[2]]

        def fill(begin: int, end: int) -> None:
            new[begin:end] = old[begin:end]

        run_parts(fill, parts_of(len(new), 1), check)
    known = None
    if masks.known is not None:
        known = np.full(shape, OPEN, dtype=np.int8)
        known[tuple(target)] = masks.known[tuple(source)]
    return replace(masks, values=values, known=known, origin=(begin[0], begin[1], begin[2]), frame=frame)


def occupied(masks: Masks, check: Check = no_check) -> tuple[Box, Box] | None:
    """Return the first voxel that is marked or settled as marked, and the voxel after the last.

    `check` is called regularly; it may raise an exception to stop.
    """
    from raterscope.algorithms.masks import _voxel_kernels as kernels

    marks = [np.zeros(size, dtype=np.uint8) for size in masks.shape]
    values = masks.values.reshape(-1, *masks.shape)
    for layer in values:
        check()
        kernels.mark_occupied(_as_bytes(layer), *marks)
    if masks.known is not None:
        kernels.mark_occupied((masks.known > 0).view(np.uint8), *marks)
    if not marks[0].any():
        return None
    ends = [np.flatnonzero(mark)[[0, -1]] for mark in marks]
    first = tuple(int(end[0]) for end in ends)
    last = tuple(int(end[1]) + 1 for end in ends)
    return (first[0], first[1], first[2]), (last[0], last[1], last[2])


def _as_bytes(layer: NDArray[Any]) -> NDArray[np.uint8]:
    if layer.dtype == np.float32:
        return np.asarray(layer > _NOTHING).view(np.uint8)
    return np.ascontiguousarray(layer).view(np.uint8)


def half_side(spacing: tuple[float, float, float], slices: int, positions: FloatArray | None) -> float:
    """Return the distance between the centre of a voxel and its boundary, mm: half of the smallest side."""
    if slices == 1:
        return min(spacing[1:]) / 2
    step = spacing[0] if positions is None else float(np.diff(positions).min())
    return min(step, *spacing[1:]) / 2


def interpolate(
    slices: Mapping[int, BoolArray], spacing: tuple[float, float, float], positions: FloatArray | None = None
) -> dict[int, BoolArray]:
    """Interpolate masks between drawn slices by shape; return only the interpolated slices.

    Each drawn mask is converted to signed distances in the plane; a mask between two drawn slices is where
    the distances, interpolated linearly, are above 0 ([raya1990]_). If two masks overlap more with aligned
    centres of mass, they are aligned first, and the results are moved back along the line between the
    centres. An oblique structure therefore does not vanish in between.

    `slices`: drawn masks by slice, all of the same shape. Nothing is interpolated next to an empty slice.
    `spacing`: (slice, row, column), mm.
    `positions`: (slices of the whole image,), mm, if the slices are uneven.

    References
    ----------
    .. [raya1990] S. P. Raya and J. K. Udupa, "Shape-based interpolation of multidimensional objects", IEEE
       Transactions on Medical Imaging 9 (1990) 32-42, doi:10.1109/42.52980.
    """
    drawn = sorted(slices)
    filled: dict[int, BoolArray] = {}
    for low, high in pairwise(drawn):
        first, second = slices[low], slices[high]
        if high - low > 1 and first.any() and second.any():
            filled.update(_between(low, first, high, second, spacing, positions))
    return filled


def _between(
    low: int, first: BoolArray, high: int, second: BoolArray, spacing: tuple[float, float, float],
    positions: FloatArray | None,
) -> dict[int, BoolArray]:  # fmt: skip
    rows, columns = np.nonzero(first | second)
    top, left = int(rows.min()), int(columns.min())
    height, width = int(rows.max()) - top + 1, int(columns.max()) - left + 1
    room = max(height, width)
    pair = np.zeros((2, height + 2 * room, width + 2 * room), dtype=np.bool_)
    for canvas, mask in zip(pair, (first, second), strict=True):
        canvas[room : room + height, room : room + width] = mask[top : top + height, left : left + width]
    centres = [np.argwhere(canvas).mean(axis=0) for canvas in pair]
    shift = np.round(centres[1] - centres[0]).astype(int)
    moved = _moved(pair[1], -shift)
    if dice(pair[0], moved) <= dice(pair[0], pair[1]):
        shift, moved = np.zeros(2, dtype=int), pair[1]
    distances = [_signed(canvas, spacing) for canvas in (pair[0], moved)]
    filled = {}
    for at in range(low + 1, high):
        share = (at - low) / (high - low)
        if positions is not None:
            share = float((positions[at] - positions[low]) / (positions[high] - positions[low]))
        inside = (1 - share) * distances[0] + share * distances[1] > 0
        inside = _moved(inside, np.round(share * shift).astype(int))
        mask = np.zeros_like(first)
        mask[top : top + height, left : left + width] = inside[room : room + height, room : room + width]
        filled[at] = mask
    return filled


def _moved(canvas: BoolArray, shift: FloatArray) -> BoolArray:
    """Shift a mask by rows and columns; it must not reach the edge."""
    return np.roll(canvas, (int(shift[0]), int(shift[1])), axis=(0, 1))


def _signed(canvas: BoolArray, spacing: tuple[float, float, float]) -> FloatArray:
    """Return the in-plane signed distance, above 0 inside; the outline lies midway between neighbours."""
    out, inside = (distance_to(mask[None], spacing)[0].astype(np.float64) for mask in (canvas, ~canvas))
    return np.asarray(inside - out)


def skipped_slices(masks: Masks) -> tuple[str, ...]:
    """List slices that a rater left empty, where most other raters marked.

    These are slices between marked slices, and large parts of the structure before or after them. Of a rater
    who drew only some slices, such as every second one, all slices between them are listed. Fusion treats an
    empty slice as background, and cannot distinguish a forgotten slice from it.

    `masks`: masks of one structure. There is a sentence for each rater, and one for all raters who drew only
    some slices; slices count from 1 in the whole image.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.ones((3, 5, 4, 4), dtype=bool)
    >>> values[2, 2:4] = False
    >>> skipped_slices(Masks(values, ("ann", "ben", "cem")))
    ('cem marked nothing on slices 3 and 4, between slices that cem marked; most other raters did.',)
    """
    layers = [marked(values) for values in masks.values]
    drawn = np.array([layer.any(axis=(1, 2)) for layer in layers])
    skipped = []
    sparse: list[str] = []
    left_out = np.zeros(drawn.shape[1], dtype=np.bool_)
    for p, name in enumerate(masks.annotators):
        own = np.flatnonzero(drawn[p])
        if not len(own):
            continue
        between = np.zeros_like(drawn[p])
        between[own[0] : own[-1]] = True
        if _draws_some(layers[p], own):
            sparse.append(name)
            left_out |= between & ~drawn[p]
            continue
        others = np.delete(drawn, p, axis=0)
        if not len(others):
            continue
        by_others = others.mean(axis=0) > _MOST
        empty = by_others & ~drawn[p]
        if (between & empty).any():
            skipped.append(
                f"{name} marked nothing on {_slices(masks, between & empty)}, between slices that {name} "
                "marked; most other raters did."
            )
        if (~between & empty).sum() >= max(_MANY, _LARGE * by_others.sum()):
            skipped.append(
                f"{name} marked nothing on {_slices(masks, ~between & empty)}, which most other raters "
                f"marked. If {name} did not read them, the differences there are no errors."
            )
    if sparse:
        skipped.append(
            f"{_listed(sparse)} may have drawn only some slices: {_slices(masks, left_out)} are empty "
            "between marks of the same place. If so, interpolate these slices in the program that drew them, "
            "and import again: fusion treats empty slices as background."
        )
    return tuple(skipped)


_MOST = 0.5
_GAPS = 2
"""Minimum number of gaps by which a rater draws only some slices; one gap may be between two parts."""

_MANY, _LARGE = 3, 1 / 3
"""Minimum number of empty slices before or after a rater's, and their share of the others' slices."""


def _draws_some(layer: BoolArray, own: NDArray[np.intp]) -> bool:
    """Return whether at least half of the steps from a drawn slice to the next skip slices of one part."""
    gaps = sum(
        bool((layer[low] & layer[high]).any()) for low, high in pairwise(own.tolist()) if high > low + 1
    )
    return gaps >= max(_GAPS, _MOST * (len(own) - 1))


def _slices(masks: Masks, chosen: BoolArray) -> str:
    numbers = [str(at + masks.origin[0] + 1) for at in np.flatnonzero(chosen)]
    return f"slice {numbers[0]}" if len(numbers) == 1 else f"slices {_listed(numbers)}"


_NAMED = 6


def _listed(names: list[str]) -> str:
    if len(names) > _NAMED:
        return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


Combination = Literal["add", "subtract", "intersect", "replace"]
COMBINATIONS: tuple[Combination, ...] = get_args(Combination)


def fill_holes(mask: BoolArray) -> BoolArray:
    """Fill enclosed holes on each slice of a mask, (Z, Y, X)."""
    from scipy import ndimage

    return np.array([ndimage.binary_fill_holes(part) for part in mask], dtype=np.bool_).reshape(mask.shape)


def smooth(mask: BoolArray, spacing: tuple[float, float, float]) -> BoolArray:
    """Smooth the outline of a mask by a Gaussian filter whose standard deviation is one pixel of a slice.

    The mask is continued beyond its first and last slice, so that these keep their size, and a mask on one
    slice is smoothed within this slice. Outside the array is background, so that a larger part of the image
    gives the same mask.
    """
    from scipy import ndimage

    width, result = max(spacing[1:]), np.zeros_like(mask)
    blocks, _ = ndimage.label(mask.any(axis=(1, 2)))
    for (block,) in ndimage.find_objects(blocks):
        blurred = ndimage.gaussian_filter(
            mask[block].astype(np.float32), [width / step for step in spacing],
            mode=["nearest", "constant", "constant"], truncate=3.0,
        )  # fmt: skip
        result[block] = blurred > 0.5
    return result


def add_margin(
    mask: BoolArray, spacing: tuple[float, float, float], margin: float, positions: FloatArray | None = None
) -> BoolArray:
    """Grow a mask by a margin in all directions, or shrink it by a negative margin.

    `mask`: (Z, Y, X), with enough room around it to grow. `margin`: mm, from the boundary midway between
    voxels. `positions`: (Z,), mm across the slices, if these are uneven.
    """
    inside = signed_distance(mask, spacing, abs(margin) + 2 * max(spacing), positions=positions)
    return np.asarray(inside >= -margin) if margin > 0 else np.asarray(inside > -margin)


def combine(mask: BoolArray, other: BoolArray, combination: Combination) -> BoolArray:
    """Combine two masks of the same shape."""
    if combination == "add":
        return mask | other
    if combination == "subtract":
        return mask & ~other
    return mask & other if combination == "intersect" else other.copy()
