"""Inner loops over voxels: patterns of labels, signed distances, distances of surfaces, sums over pairs.

The distance transform is that of [felzenszwalb2012]_: lower envelopes of parabolas, one axis after another.

References
----------
.. [felzenszwalb2012] P. F. Felzenszwalb and D. P. Huttenlocher, "Distance transforms of sampled functions",
   Theory of Computing 8 (2012) 415-428, doi:10.4086/toc.2012.v008a019.
"""

from __future__ import annotations

import numpy as np

from raterscope.algorithms.compiling import Array, compiled

COLUMNS = 32
"""Number of columns in a block for which signed distances are propagated together."""


@compiled()
def mark_rows(labels: Array, start: int, stop: int, row_any: Array, column_any: Array) -> None:
    """Mark the rows `start` to `stop` and the columns in which any rater's label is above 0.

    `labels`: (P, R, X) uint8, R rows of all slices, concatenated. `row_any`: (R,) uint8. `column_any`: (X,)
    uint8.
    """
    raters, width = labels.shape[0], labels.shape[2]
    for r in range(start, stop):
        marks = np.uint8(0)
        for p in range(raters):
            for x in range(width):
                marks |= labels[p, r, x]
        if marks:
            row_any[r] = 1
            for p in range(raters):
                for x in range(width):
                    column_any[x] |= labels[p, r, x]


@compiled()
def pack(labels: Array, base: int, code: Array) -> None:
    """Append each voxel's labels to its code as digits of a number to the given base.

    `labels`: (P, Z, Y, X) uint8, digits below `base`. `code`: (Z, Y, X) int64, codes so far, 0 at first.
    """
    raters, slices, rows, columns = labels.shape
    for z in range(slices):
        for y in range(rows):
            for p in range(raters):
                for x in range(columns):
                    code[z, y, x] = code[z, y, x] * base + labels[p, z, y, x]


@compiled()
def count_codes(code: Array, count: Array) -> None:
    """Count the codes.

    `code`: (Z, Y, X) int64. `count`: (codes,) int64, added to.
    """
    slices, rows, columns = code.shape
    for z in range(slices):
        for y in range(rows):
            for x in range(columns):
                count[code[z, y, x]] += 1


@compiled()
def mark_occupied(values: Array, slices: Array, rows: Array, columns: Array) -> None:
    """Mark the slices, rows and columns of (Z, Y, X) `values` with any value but 0."""
    for z in range(values.shape[0]):
        for y in range(values.shape[1]):
            row = values[z, y]
            occupied = np.uint8(0)
            for x in range(len(row)):
                occupied |= row[x]
            if occupied:
                slices[z] = 1
                rows[y] = 1
                for x in range(len(row)):
                    columns[x] |= row[x]


@compiled(error_model="numpy")
def along_columns(mask: Array, step: float, far: float, out: Array) -> None:
    """Write the squared distance (mm²) to the row's nearest voxel of the other kind, above 0 inside.

    `mask`: (Y, X) uint8. `out`: (Y, X) float32; `far` if the distance is larger or there is no such voxel.
    """
    height, width = mask.shape
    near = np.empty(width + 1, np.float32)
    for away in range(width + 1):
        near[away] = min(far, (away * step) ** 2)
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
        begin = 0
        while begin < width:  # voxels of one kind, from one change to the next
            end = begin + 1
            while end < width and row[end] == row[begin]:
                end += 1
            side = np.float32(1 if row[begin] else -1)
            rising = end - begin if end == width else (end - begin) // 2 if begin else 0
            for x in range(rising):
                squared[begin + x] = side * near[x + 1]
            for x in range(begin + rising, end):
                squared[x] = side * near[end - x]
            begin = end


@compiled(error_model="numpy", fastmath={"nnan", "ninf", "nsz"})
def _lower(row: Array, before: Array, after: Array, added: float, best: Array) -> Array:
    """Reduce the squared distances of one row by those of two others, `added` away; return the largest."""
    add, zero, unit, most = np.float32(added), np.float32(0), np.float32(1), np.float32(0)
    for x in range(len(row)):
        side = unit if row[x] > zero else -unit
        value = min(best[x], add + max(zero, min(side * before[x], side * after[x])))
        best[x] = value
        most = max(most, value)
    return most


@compiled(error_model="numpy", fastmath={"nnan", "ninf", "nsz"})
def _largest(values: Array) -> Array:
    most = np.float32(0)
    for x in range(len(values)):
        most = max(most, values[x])
    return most


@compiled(error_model="numpy")
def _side_beyond(values: Array, far: np.float32) -> int:
    """Return 1 or -1 where all values are `far` inside or outside, else 0."""
    value = values[0]
    if abs(value) < far:
        return 0
    different = False
    for x in range(len(values)):
        different |= values[x] != value
    if different:
        return 0
    return 1 if value > 0 else -1


@compiled(error_model="numpy")
def across_rows(squared: Array, step: float, far: float, begin: int, end: int, out: Array) -> None:
    """Propagate signed squared distances along the first axis of (N, X) `squared`, for rows `begin` to `end`.

    Only rows closer than the root of `far` are visited, the nearest first. Blocks of columns where all these
    rows are far on the same side stay unchanged.
    """
    count, width = squared.shape
    reach = 0
    while reach + 1 < count and ((reach + 1) * step) ** 2 < far:
        reach += 1
    blocks = (width + COLUMNS - 1) // COLUMNS
    first, last = max(0, begin - reach), min(count, end + reach)
    # Filled by loops, because `np.zeros` and the assignment of a slice take longer to compile.
    side = np.empty((last - first, blocks), np.int32)
    total = np.empty((last - first + 1, blocks), np.int32)
    for block in range(blocks):
        total[0, block] = 0
    for y in range(first, last):
        for block in range(blocks):
            columns = slice(block * COLUMNS, min(width, (block + 1) * COLUMNS))
            side[y - first, block] = _side_beyond(squared[y, columns], np.float32(far))
            total[y - first + 1, block] = total[y - first, block] + side[y - first, block]
    best = np.empty(COLUMNS, np.float32)
    for y in range(begin, end):
        low, high = max(0, y - reach) - first, min(count - 1, y + reach) - first
        for block in range(blocks):
            columns = slice(block * COLUMNS, min(width, (block + 1) * COLUMNS))
            line, filled = squared[y, columns], out[y, columns]
            if abs(total[high + 1, block] - total[low, block]) == high + 1 - low:
                for x in range(len(line)):
                    filled[x] = line[x]
                continue
            lowered = best[: len(line)]
            for x in range(len(line)):
                lowered[x] = abs(line[x])
            own, largest = side[y - first, block], _largest(lowered)
            for away in range(1, reach + 1):
                added = (away * step) ** 2
                if added >= largest:
                    break
                # Rows that are far on the same side add no boundary nearer than `far`.
                before, after = y - away, y + away
                if before < 0 or (own != 0 and side[before - first, block] == own):
                    before = after
                if after >= count or (own != 0 and side[after - first, block] == own):
                    after = before
                if before >= 0 and after < count and (own == 0 or side[after - first, block] != own):
                    largest = _lower(line, squared[before, columns], squared[after, columns], added, lowered)
            for x in range(len(line)):
                filled[x] = lowered[x] if line[x] > 0 else -lowered[x]


@compiled(error_model="numpy")
def across_uneven_slices(
    squared: Array, positions: Array, far: float, begin: int, end: int, out: Array
) -> None:
    """Propagate signed squared distances along the first axis of (Z, Y, X), for the rows `begin` to `end`.

    The slices are at (Z,) `positions` in mm. `out` may be `squared`.
    """
    slices, _, width = squared.shape
    columns_here, best = np.empty((slices, width), np.float32), np.empty(width, np.float32)
    for y in range(begin, end):
        for z in range(slices):
            columns_here[z] = squared[z, y]
        for z in range(slices):
            line = columns_here[z]
            best[:] = np.abs(line)
            for other in range(slices):
                away = (positions[other] - positions[z]) ** 2
                if other != z and away < far:
                    _lower(line, columns_here[other], columns_here[other], away, best)
            for x in range(width):
                out[z, y, x] = best[x] if line[x] > 0 else -best[x]


@compiled(error_model="numpy", fastmath={"nnan", "ninf", "nsz"})
def finish(squared: Array, half: float, clip: float) -> None:
    """Convert signed squared distances between centres to clipped distances to the boundary, in place."""
    take, most = np.float32(half), np.float32(clip)
    for i in range(len(squared)):
        value = squared[i]
        away = min(most, np.sqrt(abs(value)) - take)
        squared[i] = away if value > 0 else -away


@compiled()
def boundary(mask: Array, begin: int, end: int, surface: Array) -> int:
    """Mark and count the voxels of a mask that share a face with a voxel outside, or with the array's edge.

    `mask`: (Z, Y, X) uint8, 0 or 1. With one slice, faces between slices do not count.
    `begin`, `end`: slices to fill in.
    `surface`: (Z, Y, X) uint8, filled.
    """
    slices, rows, columns = mask.shape
    count = 0
    for z in range(begin, end):
        edge = slices > 1 and (z == 0 or z == slices - 1)
        before, after = (z, z) if slices == 1 or edge else (z - 1, z + 1)
        for y in range(rows):
            line, filled = mask[z, y], surface[z, y]
            if edge or y in (0, rows - 1):
                filled[:] = line
            else:
                up, down, front, back = mask[z, y - 1], mask[z, y + 1], mask[before, y], mask[after, y]
                filled[0], filled[columns - 1] = line[0], line[columns - 1]
                for x in range(1, columns - 1):
                    inner = line[x - 1] & line[x + 1] & up[x] & down[x] & front[x] & back[x]
                    filled[x] = line[x] & ~inner
            for x in range(columns):
                count += filled[x]
    return count


@compiled()
def _envelope(value: Array, step: float, vertex: Array, border: Array) -> None:
    """Replace a line of squared distances by their lower envelope of parabolas; (n,) float64, in place.

    `vertex`, `border`: (n,) int64 and (n + 1,) float64, workspace. `value` is inf where there is no distance.
    """
    count, last = len(value), -1
    for q in range(count):
        if value[q] == np.inf:
            continue
        while last >= 0:
            before = vertex[last]
            meet = ((value[q] - value[before]) / (step * step) + q * q - before * before) / (2 * (q - before))
            if meet > border[last]:
                break
            last -= 1
        last += 1
        vertex[last] = q
        border[last] = -np.inf if last == 0 else meet
    if last < 0:
        return
    border[last + 1] = np.inf
    height = np.empty(last + 1)
    for k in range(last + 1):
        height[k] = value[vertex[k]]
    k = 0
    for q in range(count):
        while border[k + 1] < q:
            k += 1
        away = (q - vertex[k]) * step
        value[q] = away * away + height[k]


@compiled()
def squared_across_uneven_slices(squared: Array, position: Array, first: int, last: int) -> None:
    """Propagate squared distances in the plane, (Z, Y, X), across slices at (Z,) `position` in mm, in place.

    Only rows from `first` to before `last` are filled in.
    """
    slices, _, columns = squared.shape
    line = np.empty(slices)
    for y in range(first, last):
        for x in range(columns):
            reached = False
            for z in range(slices):
                line[z] = squared[z, y, x]
                reached |= line[z] < np.inf
            if not reached:
                continue
            for z in range(slices):
                best = line[z]
                for other in range(slices):
                    best = min(best, line[other] + (position[other] - position[z]) ** 2)
                squared[z, y, x] = best


@compiled()
def squared_distance(surface: Array, spacing: Array, out: Array) -> None:
    """Write the squared distance (mm²) of each voxel's centre to the nearest marked voxel in its slice.

    `surface`: (Z, Y, X) bool. `spacing`: (3,) float64. `out`: (Z, Y, X) float32, inf where nothing is marked.
    """
    slices, rows, columns = surface.shape
    longest = max(rows, columns)
    vertex, border, line = np.empty(longest, np.int64), np.empty(longest + 1), np.empty(longest)
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
            _envelope(line[:rows], spacing[1], vertex, border)
            for y in range(rows):
                out[z, y, x] = line[y]


@compiled()
def squared_across_slices(squared: Array, step: float, first: int, last: int) -> None:
    """Propagate squared distances in the plane, (Z, Y, X), across slices `step` mm apart, in place.

    Only rows from `first` to before `last` are filled in.
    """
    slices, _, columns = squared.shape
    vertex, border, line = np.empty(slices, np.int64), np.empty(slices + 1), np.empty(slices)
    for y in range(first, last):
        for x in range(columns):
            for z in range(slices):
                line[z] = squared[z, y, x]
            _envelope(line, step, vertex, border)
            for z in range(slices):
                squared[z, y, x] = line[z]


@compiled()
def row_gaps(marked: Array, begin: int, end: int, gap: Array) -> None:
    """Count the columns from each voxel to the nearest marked voxel in its row.

    `marked`: (Z, Y, X) bool. `begin`, `end`: slices to fill in. `gap`: (Z, Y, X) uint16 or uint32, filled;
    the maximum of its type, which exceeds the length of a row, where nothing is marked.
    """
    _, rows, columns = marked.shape
    none = ~gap.dtype.type(0)
    for z in range(begin, end):
        for y in range(rows):
            row, out = marked[z, y], gap[z, y]
            last = -1
            for x in range(columns):
                if row[x]:
                    middle = (last + x + 1) // 2 if last >= 0 else 0
                    for between in range(last + 1, middle):
                        out[between] = between - last
                    for between in range(middle, x + 1):
                        out[between] = x - between
                    last = x
            if last < 0:
                out[:] = none
            for beyond in range(last + 1, columns if last >= 0 else 0):
                out[beyond] = beyond - last


@compiled(error_model="numpy")
def squared_distance_at(
    gap: Array, steps: Array, heights: Array, around: Array, squares: Array, voxels: Array, begin: int,
    end: int, out: Array,
) -> int:  # fmt: skip
    """Write the squared distance (mm²) of listed voxels to the nearest marked voxel; return the rows visited.

    The rows around a voxel are visited in order of distance, up to that of the nearest marked voxel so far.

    `gap`: (Z, Y, X), as in `row_gaps`.
    `steps`: (3,) float64, mm of a unit of `heights`, and from row to row and column to column.
    `heights`: (Z,) float64, heights of the slices, in order.
    `around`: (K, 2) int32, slices and rows from a voxel to the rows around it, the nearest first; empty where
        slices are uneven.
    `squares`: (K, 3) float64, squared distance (mm²) to these rows: across slices, across rows, and the sum
    minus its rounding error.
    `voxels`: (N,) int64, flat indices.
    `begin`, `end`: voxels of the list to fill in.
    `out`: (N,) float32, filled; inf where nothing is marked.
    """
    slices, rows, columns = gap.shape
    none = ~gap.dtype.type(0)
    tried = 0
    for i in range(begin, end):
        z, rest = divmod(voxels[i], rows * columns)
        y, x = divmod(rest, columns)
        best = np.inf
        found = False
        for k in range(len(around)):
            if squares[k, 2] >= best:
                found = True
                break
            tried += 1
            other, row = z + around[k, 0], y + around[k, 1]
            if 0 <= other < slices and 0 <= row < rows and gap[other, row, x] != none:
                # Rounded as in the passes of `squared_distance` and `squared_across_slices`.
                lateral = np.float32((gap[other, row, x] * steps[2]) ** 2)
                best = min(best, squares[k, 0] + np.float32(squares[k, 1] + lateral))
        for down in range(0 if found else 2):
            other = z if down else z + 1
            while 0 <= other < slices:
                across = ((heights[other] - heights[z]) * steps[0]) ** 2
                if across >= best:
                    break
                away = 0
                while y - away >= 0 or y + away < rows:
                    along = (away * steps[1]) ** 2
                    if across + along >= best:
                        break
                    for row in range(y - away, y + away + 1, max(1, 2 * away)):
                        if 0 <= row < rows and gap[other, row, x] != none:
                            lateral = np.float32((gap[other, row, x] * steps[2]) ** 2)
                            best = min(best, across + np.float32(along + lateral))
                    tried += 2
                    away += 1
                other += -1 if down else 1
        out[i] = best
    return tried


@compiled(error_model="numpy")
def squared_across_slices_at(
    squared: Array, step: float, heights: Array, voxels: Array, begin: int, end: int, out: Array
) -> None:
    """Propagate squared distances in the plane, (Z, Y, X), across slices to listed voxels.

    Arguments as in `squared_distance_at`, `step` in mm of a unit of `heights`.
    """
    slices, rows, columns = squared.shape
    for i in range(begin, end):
        z, rest = divmod(voxels[i], rows * columns)
        y, x = divmod(rest, columns)
        best = np.float64(squared[z, y, x])
        for side in range(-1, 2, 2):
            other = z + side
            while 0 <= other < slices:
                across = ((heights[other] - heights[z]) * step) ** 2
                if across >= best:
                    break
                best = min(best, across + squared[other, y, x])
                other += side
        out[i] = best


@compiled(error_model="numpy")
def halve(layer: Array, mean: Array, begin: int, end: int, squares: Array, sums: Array) -> None:
    """Sum (layer - mean)², and the layer, over pairs of voxels along each axis, for lines `begin` to `end`.

    `layer`, `mean`: (Z, Y, X) float32. `begin`, `end`: lines along the columns of the sums, counted from
    slice to slice. `squares`, `sums`: (ceil(Z / 2), ceil(Y / 2), ceil(X / 2)) float32, overwritten.
    """
    slices, rows, columns = layer.shape
    for line in range(begin, end):
        z, y = line // sums.shape[1], line % sums.shape[1]
        square, total = squares[z, y], sums[z, y]
        square[:] = np.float32(0)
        total[:] = np.float32(0)
        for a in range(2 * z, min(2 * z + 2, slices)):
            for b in range(2 * y, min(2 * y + 2, rows)):
                value, middle = layer[a, b], mean[a, b]
                for x in range(columns):
                    apart = value[x] - middle[x]
                    square[x // 2] += apart * apart
                    total[x // 2] += value[x]


@compiled(error_model="numpy")
def look_up(
    values: Array, steps: Array, results: Array, slopes: Array, begin: int, end: int, out: Array
) -> None:
    """Interpolate a table at values, as `numpy.interp` does, to the last bit.

    `values`, `out`: (N,).
    `steps`, `results`: (n,) float64, the table; the steps are even except for rounding errors.
    `slopes`: (n - 1,) float64, slope between neighbouring steps.
    `begin`, `end`: range of values.
    """
    last = len(steps) - 1
    first, per_step = steps[0], last / (steps[last] - steps[0])
    for i in range(begin, end):
        value = np.float64(values[i])
        if np.isnan(value):
            out[i] = value
        elif value <= first:
            out[i] = results[0]
        elif value >= steps[last]:
            out[i] = results[last]
        else:
            at = min(int((value - first) * per_step), last - 1)
            while steps[at] > value:
                at -= 1
            while steps[at + 1] <= value:
                at += 1
            out[i] = slopes[at] * (value - steps[at]) + results[at]
