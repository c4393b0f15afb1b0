"""Help for drawing: outlines on the slices between those that somebody drew, and slices that were skipped."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from raterscope.algorithms.masks.data import BoolArray, FloatArray, Masks, marked
from raterscope.algorithms.masks.metrics import dice, distance_to

__all__ = ["interpolate", "skipped_slices"]


def interpolate(
    slices: Mapping[int, BoolArray], spacing: tuple[float, float, float], positions: FloatArray | None = None
) -> dict[int, BoolArray]:
    """Fill in the masks between drawn slices by shape-based interpolation.

    Each drawn mask becomes its signed distance in the plane, and the slices between two drawn ones are where
    the distances, weighed by nearness, are above 0 ([raya1990]_). Where two drawn masks
    overlap more with their centres of mass laid over each other, they are moved there first and the result
    back along the line between the centres, so that a structure that runs aslant does not vanish in between.

    Parameters
    ----------
    slices : mapping of int to (Y, X) bool
        What is drawn, by slice, all of one shape. From or to a slice that is drawn empty nothing is filled.
    spacing : (slice, row, column)
        mm.
    positions : (slices of the whole image,), optional
        mm, where the slices are uneven.

    Returns
    -------
    dict of int to (Y, X) bool
        The slices between, without those drawn.

    References
    ----------
    .. [raya1990] S. P. Raya and J. K. Udupa, "Shape-based interpolation of multidimensional objects", IEEE
       Transactions on Medical Imaging 9 (1990) 32-42, doi:10.1109/42.52980.
    """
    drawn = sorted(slices)
    found: dict[int, BoolArray] = {}
    for low, high in pairwise(drawn):
        first, second = slices[low], slices[high]
        if high - low > 1 and first.any() and second.any():
            found.update(_between(low, first, high, second, spacing, positions))
    return found


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
    found = {}
    for at in range(low + 1, high):
        share = (at - low) / (high - low)
        if positions is not None:
            share = float((positions[at] - positions[low]) / (positions[high] - positions[low]))
        inside = (1 - share) * distances[0] + share * distances[1] > 0
        inside = _moved(inside, np.round(share * shift).astype(int))
        mask = np.zeros_like(first)
        mask[top : top + height, left : left + width] = inside[room : room + height, room : room + width]
        found[at] = mask
    return found


def _moved(canvas: BoolArray, shift: FloatArray) -> BoolArray:
    """Move a mask that keeps clear of the edge by rows and columns."""
    return np.roll(canvas, (int(shift[0]), int(shift[1])), axis=(0, 1))


def _signed(canvas: BoolArray, spacing: tuple[float, float, float]) -> FloatArray:
    """Return the signed distance, above 0 inside; of two neighbours across the outline, it lies midway."""
    out, inside = (distance_to(each[None], spacing)[0].astype(np.float64) for each in (canvas, ~canvas))
    return np.asarray(inside - out)


def skipped_slices(masks: Masks) -> tuple[str, ...]:
    """Return which slices a rater left empty between slices that the rater marked, where most others marked.

    Fusion takes an empty slice for background; a slice that was forgotten looks the same.

    Parameters
    ----------
    masks : Masks
        Of one structure.

    Returns
    -------
    tuple of str
        A sentence for each rater; slices count from 1 in the whole image.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.ones((3, 5, 4, 4), dtype=bool)
    >>> values[2, 2:4] = False
    >>> skipped_slices(Masks(values, ("ann", "ben", "cem")))
    ('cem marked nothing on slices 3 and 4, between slices that cem marked; most other raters did.',)
    """
    there = np.array([[marked(one).any() for one in values] for values in masks.values])
    found = []
    for p, name in enumerate(masks.annotators):
        own = np.flatnonzero(there[p])
        others = np.delete(there, p, axis=0)
        if not len(own) or not len(others):
            continue
        inside = np.arange(own[0], own[-1] + 1)
        empty = inside[~there[p, inside] & (others[:, inside].mean(axis=0) > _MOST)]
        if len(empty):
            numbers = [str(at + masks.origin[0] + 1) for at in empty]
            slices = f"slice {numbers[0]}" if len(numbers) == 1 else f"slices {_listed(numbers)}"
            found.append(
                f"{name} marked nothing on {slices}, between slices that {name} marked; "
                "most other raters did."
            )
    return tuple(found)


_MOST = 0.5
_NAMED = 6


def _listed(numbers: list[str]) -> str:
    if len(numbers) > _NAMED:
        return f"{', '.join(numbers[:_NAMED])} and {len(numbers) - _NAMED} more"
    return f"{', '.join(numbers[:-1])} and {numbers[-1]}"
