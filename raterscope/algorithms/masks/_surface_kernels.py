"""Inner loops of distances between surfaces: boundary voxels, and the exact Euclidean distance to them.

The distance transform is that of [felzenszwalb2012]_: lower envelopes of parabolas, one axis after another.

References
----------
.. [felzenszwalb2012] P. F. Felzenszwalb and D. P. Huttenlocher, "Distance transforms of sampled functions",
   Theory of Computing 8 (2012) 415-428, doi:10.4086/toc.2012.v008a019.
"""

from __future__ import annotations

import numpy as np

from raterscope.algorithms.compiling import Array, compiled

__all__ = ["across_slices", "across_uneven_slices", "boundary", "squared_distance"]


@compiled()
def boundary(mask: Array, begin: int, end: int, surface: Array) -> int:
    """Mark the voxels of a mask that share a face with one outside it; beyond the array all is outside.

    Parameters
    ----------
    mask : (Z, Y, X) bool
        With one slice, faces between slices do not count.
    begin, end : int
        Slices to fill in.
    surface : (Z, Y, X) bool
        Filled.

    Returns
    -------
    int
        How many there are.
    """
    slices, rows, columns = mask.shape
    count = 0
    for z in range(begin, end):
        for y in range(rows):
            for x in range(columns):
                if not mask[z, y, x]:
                    surface[z, y, x] = False
                    continue
                inner = (
                    0 < y < rows - 1
                    and 0 < x < columns - 1
                    and mask[z, y - 1, x]
                    and mask[z, y + 1, x]
                    and mask[z, y, x - 1]
                    and mask[z, y, x + 1]
                )
                if inner and slices > 1:
                    inner = 0 < z < slices - 1 and mask[z - 1, y, x] and mask[z + 1, y, x]
                surface[z, y, x] = not inner
                count += not inner
    return count


@compiled()
def _envelope(value: Array, step: float, place: Array, border: Array) -> None:
    """Replace a line of squared distances by their lower envelope of parabolas; (n,) float64, in place.

    place : (n,) int64 and border : (n + 1,) float64 are room to work in; `value` is inf where there is none.
    """
    count, last = len(value), -1
    for q in range(count):
        if value[q] == np.inf:
            continue
        while last >= 0:
            before = place[last]
            meet = ((value[q] - value[before]) / (step * step) + q * q - before * before) / (2 * (q - before))
            if meet > border[last]:
                break
            last -= 1
        last += 1
        place[last] = q
        border[last] = -np.inf if last == 0 else meet
    if last < 0:
        return
    border[last + 1] = np.inf
    height = np.empty(last + 1)
    for k in range(last + 1):
        height[k] = value[place[k]]
    k = 0
    for q in range(count):
        while border[k + 1] < q:
            k += 1
        away = (q - place[k]) * step
        value[q] = away * away + height[k]


@compiled()
def across_uneven_slices(squared: Array, place: Array, first: int, last: int) -> None:
    """Carry squared distances (Z, Y, X) in the plane across slices at (Z,) `place` in mm, in place.

    Only rows from `first` to before `last` are filled in.
    """
    slices, _, columns = squared.shape
    line = np.empty(slices)
    for y in range(first, last):
        for x in range(columns):
            some = False
            for z in range(slices):
                line[z] = squared[z, y, x]
                some |= line[z] < np.inf
            if not some:
                continue
            for z in range(slices):
                best = line[z]
                for other in range(slices):
                    best = min(best, line[other] + (place[other] - place[z]) ** 2)
                squared[z, y, x] = best


@compiled()
def squared_distance(surface: Array, spacing: Array, out: Array) -> None:
    """Fill in the squared distance (mm) of each voxel's centre to the nearest marked one of its slice.

    Parameters
    ----------
    surface : (Z, Y, X) bool
    spacing : (3,) float64
    out : (Z, Y, X) float32
        inf where nothing is marked.
    """
    slices, rows, columns = surface.shape
    longest = max(rows, columns)
    place, border, line = np.empty(longest, np.int64), np.empty(longest + 1), np.empty(longest)
    for z in range(slices):
        for y in range(rows):
            away = np.inf
            for x in range(columns):
                away = 0.0 if surface[z, y, x] else away + spacing[2]
                out[z, y, x] = away * away
            away = np.inf
            for x in range(columns - 1, -1, -1):
                away = 0.0 if surface[z, y, x] else away + spacing[2]
                out[z, y, x] = min(out[z, y, x], away * away)
        for x in range(columns):
            for y in range(rows):
                line[y] = out[z, y, x]
            _envelope(line[:rows], spacing[1], place, border)
            for y in range(rows):
                out[z, y, x] = line[y]


@compiled()
def across_slices(squared: Array, step: float, first: int, last: int) -> None:
    """Carry squared distances (Z, Y, X) in the plane across slices `step` mm apart, in place.

    Only rows from `first` to before `last` are filled in.
    """
    slices, _, columns = squared.shape
    place, border, line = np.empty(slices, np.int64), np.empty(slices + 1), np.empty(slices)
    for y in range(first, last):
        for x in range(columns):
            for z in range(slices):
                line[z] = squared[z, y, x]
            _envelope(line, step, place, border)
            for z in range(slices):
                squared[z, y, x] = line[z]
