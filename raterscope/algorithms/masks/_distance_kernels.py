"""Inner loops over masks: where they lie, and how far each voxel is from their boundary."""

from __future__ import annotations

import numpy as np

from raterscope.algorithms.compiling import Array, compiled

__all__ = [
    "across_rows",
    "across_slices",
    "across_uneven_slices",
    "along_columns",
    "finish",
    "mark_occupied",
]


@compiled()
def mark_occupied(values: Array, slices: Array, rows: Array, columns: Array) -> None:
    """Mark the slices, rows and columns of (Z, Y, X) `values` that hold anything but 0."""
    for z in range(values.shape[0]):
        for y in range(values.shape[1]):
            row = values[z, y]
            some = np.uint8(0)
            for x in range(len(row)):
                some |= row[x]
            if some:
                slices[z] = 1
                rows[y] = 1
                for x in range(len(row)):
                    columns[x] |= row[x]


@compiled(error_model="numpy")
def along_columns(mask: Array, step: float, far: float, out: Array) -> None:
    """Give the squared distance (mm) to the next voxel of the other kind in the row, above 0 inside.

    mask (Y, X) uint8, out (Y, X) float32; `far` where it is beyond its root or there is none.
    """
    height, width = mask.shape
    for y in range(height):
        row, squared = mask[y], out[y]
        changes = np.uint8(0)
        for x in range(1, width):
            changes |= row[x] ^ row[x - 1]
        if not changes:
            value = np.float32(far if row[0] else -far)
            for x in range(width):
                squared[x] = value
            continue
        away = width
        for x in range(width):
            away = 1 if x and row[x] != row[x - 1] else away + 1
            squared[x] = away
        away = width
        for x in range(width - 1, -1, -1):
            away = 1 if x + 1 < width and row[x] != row[x + 1] else away + 1
            near = np.float32(min(far, (min(away, squared[x]) * step) ** 2))
            squared[x] = near if row[x] else -near


@compiled(error_model="numpy", fastmath={"nnan", "ninf", "nsz"})
def _lower(here: Array, there: Array, added: float, best: Array) -> None:
    """Lower the squared distances of one row by way of another, `added` away."""
    add, nothing, one = np.float32(added), np.float32(0), np.float32(1)
    for x in range(len(here)):
        side = one if here[x] > nothing else -one
        best[x] = min(best[x], add + max(nothing, side * there[x]))


@compiled(error_model="numpy")
def _settled(row: Array, far: np.float32) -> int:
    """Give 1 or -1 where the whole row is that far inside or outside, else 0."""
    value = row[0]
    if abs(value) < far:
        return 0
    different = False
    for x in range(len(row)):
        different |= row[x] != value
    if different:
        return 0
    return 1 if value > 0 else -1


@compiled(error_model="numpy")
def across_rows(squared: Array, step: float, far: float, begin: int, end: int, out: Array) -> None:
    """Carry signed squared distances across the first axis of (N, X) `squared`, for rows `begin` to `end`.

    Only rows whose own distance is beneath the root of `far` are looked at; a row that lies between rows all
    of the same kind is left as it is.
    """
    count, width = squared.shape
    reach = 0
    while reach + 1 < count and ((reach + 1) * step) ** 2 < far:
        reach += 1
    kind = np.empty(count, np.int64)
    for y in range(max(0, begin - reach), min(count, end + reach)):
        kind[y] = _settled(squared[y], np.float32(far))
    best = np.empty(width, np.float32)
    for y in range(begin, end):
        low, high = max(0, y - reach), min(count - 1, y + reach)
        same = kind[y] != 0
        for other in range(low, high + 1):
            same = same and kind[other] == kind[y]
        if same:
            out[y] = squared[y]
            continue
        best[:] = np.abs(squared[y])
        for other in range(low, high + 1):
            if other != y:
                _lower(squared[y], squared[other], ((other - y) * step) ** 2, best)
        for x in range(width):
            out[y, x] = best[x] if squared[y, x] > 0 else -best[x]


@compiled(error_model="numpy")
def across_slices(squared: Array, step: float, far: float, begin: int, end: int, out: Array) -> None:
    """Carry signed squared distances across the first axis of (Z, Y, X), for the rows `begin` to `end`."""
    # Copied: loops over rows that may have a stride are several times slower.
    slices, _, width = squared.shape
    here, found = np.empty((slices, width), np.float32), np.empty((slices, width), np.float32)
    for y in range(begin, end):
        for z in range(slices):
            here[z] = squared[z, y]
        across_rows(here, step, far, 0, slices, found)
        for z in range(slices):
            out[z, y] = found[z]


@compiled(error_model="numpy")
def across_uneven_slices(squared: Array, places: Array, far: float, begin: int, end: int, out: Array) -> None:
    """Do what `across_slices` does, for slices at (Z,) `places` in mm."""
    slices, _, width = squared.shape
    best = np.empty(width, np.float32)
    for y in range(begin, end):
        for z in range(slices):
            here = squared[z, y]
            best[:] = np.abs(here)
            for other in range(slices):
                away = (places[other] - places[z]) ** 2
                if other != z and away < far:
                    _lower(here, squared[other, y], away, best)
            for x in range(width):
                out[z, y, x] = best[x] if here[x] > 0 else -best[x]


@compiled(error_model="numpy", fastmath={"nnan", "ninf", "nsz"})
def finish(squared: Array, half: float, clip: float) -> None:
    """Turn signed squared distances between voxels' centres into clipped ones to the boundary, in place."""
    take, most = np.float32(half), np.float32(clip)
    for i in range(len(squared)):
        value = squared[i]
        away = min(most, np.sqrt(abs(value)) - take)
        squared[i] = away if value > 0 else -away
