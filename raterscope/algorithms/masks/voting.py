"""Patterns of the raters' labels, and fusion by voting.

Voxels with equal labels of all raters are merged into one pattern, exactly for voxelwise methods.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.data import (
    OPEN,
    BoolArray,
    Box,
    Float32Array,
    FloatArray,
    MaskFusion,
    Masks,
    MaskTrace,
    make_fusion,
    slices_of,
)
from raterscope.algorithms.progress import Check, Watch, part, parts_of, silent
from raterscope.algorithms.settings import Settings, choice
from raterscope.text import counted

IntArray = NDArray[np.int64]
LabelArray = NDArray[np.uint8]
Value = TypeVar("Value", bound=np.generic)

_DENSE = 1 << 16
"""Maximum number of codes for using a table instead of sorting."""

_AT_ONCE = 1_000_000
"""Voxels between two calls of the check."""

_CHUNK = 4_000_000
"""Number of voxels of all raters between two progress reports."""


@dataclass(frozen=True, eq=False)
class Patterns:
    """M distinct rows of labels by P raters, and their voxels."""

    origin: Box  # (slice, row, column): the first voxel of `row` within the masks' values
    # (Z, Y, X): each voxel's row of `labels`, on a box; outside the box all raters mark background
    row: IntArray
    labels: LabelArray  # (M, P): row 0 is background by all raters, and open
    settled: NDArray[np.int8]  # (M,): the class that the expert settled, or `OPEN`
    count: IntArray  # (M,): voxels of the box
    classes: int  # K, with the background
    # (origin, shape): the smallest box, within the masks' values, around all voxels marked or settled as a
    # structure
    marked: tuple[Box, Box] | None

    @property
    def shape(self) -> Box:
        """Slices, rows and columns of the box."""
        slices, rows, columns = self.row.shape
        return slices, rows, columns

    def counted_over(self, voxels: int) -> IntArray:
        """Return `count`, (M,), on a larger domain with background elsewhere."""
        count = self.count.copy()
        count[0] += voxels - int(count.sum())
        return count

    def votes(self, weights: FloatArray | None = None) -> IntArray | FloatArray:
        """Sum the weights, (P,), of the raters for each class; (M, K)."""
        chosen = [self.labels == k for k in range(self.classes)]
        return np.stack([own.sum(axis=1) if weights is None else own @ weights for own in chosen], axis=1)


def labels_of(masks: Masks) -> LabelArray:
    """Return each rater's label at each voxel, 0 the background; (P, Z, Y, X).

    A probability counts as marked above one half; with several structures, if it is above that of each other
    structure and of the background.
    """
    values = masks.values
    if values.dtype == np.bool_:
        return values.view(np.uint8)
    if values.dtype == np.uint8:
        return np.asarray(values, dtype=np.uint8)
    if values.ndim == 4:
        return (values > 0.5).view(np.uint8)
    labels = np.zeros((len(values), *masks.shape), dtype=np.uint8)
    for p, maps in enumerate(values):
        best = 1.0 - maps.sum(axis=0)
        for s, probability in enumerate(maps):
            above = probability > best
            labels[p][above] = s + 1
            best = np.maximum(best, probability)
    return labels


def box_of(
    labels: LabelArray, known: NDArray[np.int8] | None = None, watch: Watch = silent
) -> tuple[Box, Box] | None:
    """Find origin and shape of the smallest box around all voxels that are marked, or settled as marked.

    `labels`: (P, Z, Y, X). `known`: (Z, Y, X). The result is None if nothing is marked.
    """
    from raterscope.algorithms.masks._voxel_kernels import mark_rows

    raters, slices, rows, columns = labels.shape
    row_any = np.zeros(slices * rows, dtype=np.uint8)
    column_any = np.zeros(columns, dtype=np.uint8)
    flat = labels.reshape(raters, slices * rows, columns)
    for first, last in parts_of(slices * rows, _CHUNK // (raters * columns)):
        watch(first / (slices * rows), "finding marked voxels")
        mark_rows(flat, first, last, row_any, column_any)
    if known is not None:
        inside = known > 0
        row_any |= inside.any(axis=2).ravel()
        column_any |= inside.any(axis=(0, 1))
    marked = row_any.reshape(slices, rows)
    spans = [
        np.flatnonzero(marked_of_axis)
        for marked_of_axis in (marked.any(axis=1), marked.any(axis=0), column_any)
    ]
    if not all(len(span) for span in spans):
        return None
    z, y, x = ((int(span[0]), int(span[-1]) + 1) for span in spans)
    return (z[0], y[0], x[0]), (z[1] - z[0], y[1] - y[0], x[1] - x[0])


def with_margin(
    first: Sequence[int], past: Sequence[int], spacing: tuple[float, float, float], margin: float,
    within: Box, positions: FloatArray | None = None,
) -> tuple[list[int], list[int]]:  # fmt: skip
    """Widen a box on all sides by a margin, within a grid of shape `within`.

    A box is its first voxel, and the voxel after its last; `spacing` (slice, row, column), `margin` and the
    `positions` of uneven slices of that grid are in mm.
    """
    steps = [math.ceil(margin / step) for step in spacing]
    low = [max(at - more, 0) for at, more in zip(first, steps, strict=True)]
    high = [min(at + more, size) for at, more, size in zip(past, steps, within, strict=True)]
    if positions is not None:
        nearest, farthest = positions[first[0]] - margin, positions[past[0] - 1] + margin
        low[0] = max(0, int(np.searchsorted(positions, nearest, "right")) - 1)
        high[0] = min(within[0], int(np.searchsorted(positions, farthest, "left")) + 1)
    return low, high


def widened(
    box: tuple[Box, Box], spacing: tuple[float, float, float], margin: float, within: Box,
    positions: FloatArray | None = None,
) -> tuple[Box, Box]:  # fmt: skip
    """Widen a box of its first voxel and its shape; see `with_margin`."""
    past = [at + size for at, size in zip(*box, strict=True)]
    low, high = with_margin(box[0], past, spacing, margin, within, positions)
    z, y, x = (stop - start for start, stop in zip(low, high, strict=True))
    return (low[0], low[1], low[2]), (z, y, x)


def patterns_of(masks: Masks, margin: float = 0.0, watch: Watch = silent) -> Patterns:
    """Merge the voxels with equal labels of all raters and equal settled class.

    Up to 65,536 possible patterns are counted in a table; with more, voxels are sorted.

    `margin`: margin of the box of `Patterns.row` around all masks, mm, within the values.
    """
    labels, classes = labels_of(masks), len(masks.structures) + 1
    bounds = box_of(labels, masks.known, watch)
    origin, shape = widened(
        bounds or ((0, 0, 0), (1, 1, 1)), masks.spacing, margin, masks.shape, masks.positions
    )
    box = slices_of(origin, shape)
    check = partial(watch, 1.0, "comparing the raters voxel by voxel")
    row, table = _merged(labels[:, *box], None if masks.known is None else masks.known[box], classes, check)
    count = np.zeros(len(table), dtype=np.int64)
    outside = not len(table) or bool(table[0].any())  # row 0: all voxels outside the box
    for portion in _slabs(row.shape):
        check()
        count += np.bincount(row[portion].ravel(), minlength=len(table))
        if outside:
            row[portion] += 1
    if outside:
        table = np.vstack([np.zeros((1, table.shape[1]), np.uint8), table])
        count = np.append(0, count)
    settled = table[:, 0].astype(np.int8) + np.int8(OPEN)
    return Patterns(origin, row, table[:, 1:], settled, count, classes, bounds)


def _slabs(shape: tuple[int, ...]) -> list[tuple[slice, slice]]:
    """Divide a volume into slices, or a large slice into rows, for small parts."""
    slices, rows, columns = shape
    step = max(1, _AT_ONCE // (rows * columns))
    band = rows if step > 1 else max(1, _AT_ONCE // columns)
    return [
        (slice(first, first + step), slice(row, row + band))
        for first in range(0, slices, step)
        for row in range(0, rows, band)
    ]


def spread_rows(row: IntArray, values: NDArray[Value], check: Check) -> NDArray[Value]:
    """Expand (..., M) values of patterns to the (..., Z, Y, X) voxels with these rows."""
    slices, rows, columns = row.shape
    out = np.empty((*values.shape[:-1], slices, rows, columns), dtype=values.dtype)
    for portion in _slabs((slices, rows, columns)):
        for index in np.ndindex(values.shape[:-1]):
            check()
            np.take(values[index], row[portion], out=out[index][portion], mode="clip")
    return out


def _merged(
    labels: LabelArray, known: NDArray[np.int8] | None, classes: int, check: Check
) -> tuple[IntArray, LabelArray]:
    """Return each voxel's row in a table of distinct labels; the first column is the settled class."""
    from raterscope.algorithms.masks._voxel_kernels import count_codes, pack

    row = np.zeros(labels.shape[1:], dtype=np.int64)
    table = np.zeros((1, 1), dtype=np.uint8)
    if known is not None:
        row += known - np.int64(OPEN)
        table = np.arange(classes + 1, dtype=np.uint8)[:, None]
    done = 0
    while done < len(labels):
        digits = int(math.log(_DENSE / len(table), classes) + 1e-9) if len(table) < _DENSE else 0
        dense = digits > 0
        digits = min(digits or int(math.log(2**62 / len(table), classes)), len(labels) - done)
        for portion in _slabs(row.shape):
            check()
            pack(labels[done : done + digits, *portion], classes, row[portion])
        check()
        if dense:
            tally = np.zeros(len(table) * classes**digits, dtype=np.int64)
            for portion in _slabs(row.shape):
                check()
                count_codes(row[portion], tally)
            codes = np.flatnonzero(tally)
            tally[codes] = np.arange(len(codes))
            for portion in _slabs(row.shape):
                check()
                row[portion] = tally[row[portion]]
        else:
            codes, inverse = np.unique(row, return_inverse=True)
            row = inverse.reshape(row.shape)
        powers = classes ** np.arange(digits - 1, -1, -1, dtype=np.int64)
        tail = (codes[:, None] // powers % classes).astype(np.uint8)
        table = np.hstack([table[codes // classes**digits], tail])
        done += digits
    return row, table


@dataclass(frozen=True)
class MajoritySettings(Settings):
    """Settings of `majority`."""

    ties: str = choice(
        "out", "Ties", "Where equal numbers of raters mark a voxel and do not.",
        {"out": "background", "in": "structure"},
    )  # fmt: skip


def majority(masks: Masks, settings: MajoritySettings | None = None, watch: Watch = silent) -> MaskFusion:
    """Select the most frequent label (baseline of the robust fusion paper, section 1).

    With several structures the most frequent label wins. A tie between the background and a structure is
    resolved by `settings`; between structures, the one named first wins. Maps of probabilities are averaged,
    and a voxel belongs to the structure whose mean is above one half (of several structures, above each
    other's and the background's); ties are resolved as for votes.

    `probability` is the share of votes, or the mean; sensitivity and specificity are relative to the
    consensus on the box of the result, NaN for maps of probabilities. A notice counts the ties.
    """
    settings = MajoritySettings() if settings is None else settings
    ties_in = settings.ties == "in"
    if masks.values.dtype == np.float32:
        return _mean(masks, ties_in, watch)
    patterns = patterns_of(masks, watch=part(watch, 0.0, 0.9))
    share = patterns.votes(masks.weights) / masks.total_weight
    mask, tied = _decide(share, ties_in)
    settled = patterns.settled != OPEN
    share[settled] = np.eye(patterns.classes)[patterns.settled[settled]]
    mask[settled] = share[settled, 1:] > 0.5
    tied &= ~settled
    sensitivity, specificity = _agreement(patterns, mask)
    check = partial(watch, 1.0, "counting the votes")
    return _fusion(
        masks,
        patterns.origin,
        spread_rows(patterns.row, mask.T, check),
        spread_rows(patterns.row, share[:, 1:].astype(np.float32).T, check),
        (sensitivity, specificity),
        int(patterns.count[tied].sum()),
        ties_in,
    )


def _mean(masks: Masks, ties_in: bool, watch: Watch) -> MaskFusion:
    values = masks.values if masks.values.ndim == 5 else masks.values[:, None]
    probability = np.zeros(values.shape[1:], dtype=np.float32)
    for p, maps in enumerate(values):
        watch(p / len(values), "averaging the maps")
        probability += maps if masks.weights is None else np.float32(masks.weights[p]) * maps
    probability /= np.float32(masks.total_weight)
    consensus = np.empty(probability.shape, dtype=np.bool_)
    ties = 0
    for z in range(masks.shape[0]):
        watch(1.0, "averaging the maps")
        inside = np.moveaxis(probability[:, z], 0, -1)
        share = np.concatenate([1.0 - inside.sum(axis=-1, keepdims=True), inside], axis=-1)
        mask, tied = _decide(share, ties_in)
        if masks.known is not None:
            settled = masks.known[z] != OPEN
            share[settled] = np.eye(share.shape[-1])[masks.known[z][settled]]
            mask[settled] = share[settled][:, 1:] > 0.5
            tied &= ~settled
        ties += int(tied.sum())
        consensus[:, z] = np.moveaxis(mask, -1, 0)
        probability[:, z] = np.moveaxis(share[..., 1:], -1, 0)
    unknown = np.full((len(values[0]), len(values)), np.nan)
    return _fusion(masks, (0, 0, 0), consensus, probability, (unknown, unknown), ties, ties_in)


def _decide(share: FloatArray | Float32Array, ties_in: bool) -> tuple[BoolArray, BoolArray]:
    """Return the class with the most votes, and whether a structure ties with another class; (..., K)."""
    inside = share[..., 1:]
    best = inside.max(axis=-1, keepdims=True)
    background = share[..., :1]
    enough = (best > background) | (ties_in & (best == background))
    first = np.arange(inside.shape[-1]) == inside.argmax(axis=-1)[..., None]
    tied = (best[..., 0] >= background[..., 0]) & ((share == best).sum(axis=-1) > 1)
    return first & enough, tied


def _agreement(patterns: Patterns, mask: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return the raters' (S, P) sensitivity and specificity against the consensus."""
    rates = []
    for s in range(patterns.classes - 1):
        marked = patterns.labels == s + 1
        inside = patterns.count * mask[:, s]
        outside = patterns.count * ~mask[:, s]
        with np.errstate(invalid="ignore"):
            rates.append((inside @ marked / inside.sum(), outside @ ~marked / outside.sum()))
    sensitivity, specificity = zip(*rates, strict=True)
    return np.stack(sensitivity), np.stack(specificity)


def _fusion(
    masks: Masks,
    origin: Box,
    mask: BoolArray,
    probability: Float32Array,
    rates: tuple[FloatArray, FloatArray],
    tied: int,
    ties_in: bool,
) -> MaskFusion:
    notices = []
    if tied:
        winner = "the structure" if ties_in else "the background"
        if len(masks.structures) > 1:
            winner += ", or of two structures to the one listed first"
        notices.append(f"{counted(tied, 'tied voxel')} assigned to {winner}.")
    elif len(masks.annotators) % 2 == 0:
        notices.append("No voxel was tied.")
    return make_fusion(
        masks,
        "majority",
        origin,
        mask,
        probability,
        (MaskTrace(name="share of votes"),),
        notices,
        sensitivity=rates[0],
        specificity=rates[1],
    )
