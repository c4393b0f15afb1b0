"""Agreement of two masks: overlap, volume, surface distances and outlines.

For masks A (judged) and B (the reference) the overlap measures are of volumes. A surface is the voxels of a
mask that share a face with a voxel outside it (6-connectivity; 4 where only one slice is marked), and
distances run between centres of voxels in mm. Everything beyond the image is outside: a mask that touches the
border has a surface there, as in Metrics Reloaded [maierhein2024]_, MedPy, MONAI and DeepMind's
surface-distance; the contours of SimpleITK are open there. The directed distances from A to B are those of
each surface voxel of A to the nearest surface voxel of B:

- Hausdorff: the largest of all directed distances in both directions;
- HD95: the larger of the 95th percentiles of the directed distances in each direction (linear interpolation);
- mean surface distance: the mean of all directed distances in both directions.

Bias and spread of A are mean and standard deviation of the directed distances in both directions, below 0
where the surface of B is not in A or that of A is in B. Each voxel is weighted by the area of its outer
faces. Distances are limited to 20 mm or 10 voxels, whichever is larger, so that a stray mark counts little. A
single direction would be too low or too high, because surface voxels lie inside.

References
----------
.. [maierhein2024] L. Maier-Hein, A. Reinke, P. Godau et al., "Metrics reloaded: recommendations for image
   analysis validation", Nature Methods 21 (2024) 195-212, doi:10.1038/s41592-023-02151-z.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.data import (
    BoolArray,
    Box,
    Float32Array,
    FloatArray,
    MaskFusion,
    Masks,
    box_around,
    cut_positions,
    extents_of,
    overlap,
    slices_of,
    thicknesses,
)
from raterscope.algorithms.masks.voting import box_of, labels_of
from raterscope.algorithms.progress import Check, Watch, no_check, part, parts_of, run_parts, silent

Spacing = tuple[float, float, float]

_AT_ONCE = 1_000_000
"""Voxels between two calls of the check."""

_SAMPLE = 1000
"""Number of sampled voxels for estimating the work of all listed voxels."""

_ROWS_A_VOXEL = 4
"""Number of rows that can be visited in the time that a voxel's distance in its slice takes."""

_ROWS_AROUND = 4096
"""Number of rows around a voxel that are listed by distance."""

_ROUNDING = 1e-6
"""Relative rounding error of a squared distance in float32."""

Value = TypeVar("Value", bound=np.generic)

_REACH, _REACH_VOXELS = 20.0, 10.0
"""Maximum distance that counts for a bias: mm, or voxels if larger."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison of a mask with a reference."""

    # dice, jaccard: 2 |A and B| / (|A| + |B|) and |A and B| / |A or B|, by volume; NaN if both are empty
    dice: float
    jaccard: float
    # hausdorff, hausdorff_95, mean_surface_distance: mm; 0 if both are empty, inf if one is
    hausdorff: float
    hausdorff_95: float
    mean_surface_distance: float
    volume_difference: float  # ml, above 0 where the mask is larger than the reference
    sensitivity: float  # share of the reference that the mask has; NaN where the reference is empty
    # share of the voxels outside the reference that the mask excludes, over all voxels of the arrays; NaN if
    # the reference contains all of them
    specificity: float


@dataclass(frozen=True, eq=False)
class RaterAgreement:
    """Agreement of every pair of raters on one structure."""

    annotators: tuple[str, ...]  # (P,)
    dice: FloatArray  # (P, P): 1 on the diagonal; NaN where both raters marked nothing
    # hausdorff, hausdorff_95, mean_surface_distance: (P, P): mm; inf if one of the two raters marked nothing
    hausdorff: FloatArray
    hausdorff_95: FloatArray
    mean_surface_distance: FloatArray


@dataclass(frozen=True, eq=False)
class Shape:
    """Extent and surface of a mask, and distances to other surfaces."""

    size: float  # voxels, each by the thickness of its slice
    surface: NDArray[np.int64]  # (N,): flat indices
    # distance (mm) of each voxel of the surface to the surface of another shape, by the index of that shape
    away: dict[int, Float32Array] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Scene:
    """Masks of one structure, on the box of all marked voxels."""

    masks: Masks
    judged: list[BoolArray]  # list of P (Z, Y, X)
    target: BoolArray | None  # (Z, Y, X): the reference
    positions: FloatArray | None  # (Z,): mm, where the slices are uneven
    first: int  # the first slice in the whole image

    def shapes(self, pairs: Sequence[tuple[int, int]], watch: Watch) -> list[Shape]:
        """Measure the raters' masks, followed by the reference if there is one."""
        masks = self.judged if self.target is None else [*self.judged, self.target]
        sizes = [self.extent(mask) for mask in masks]
        return _shapes(masks, sizes, self.masks.spacing, self.positions, pairs, watch)

    def extent(self, mask: BoolArray) -> float:
        """Count the voxels of a mask, weighted by the thickness of their slices."""
        return float(extents_of(mask, self.masks.spacing, self.masks.slice_positions, self.first))

    def thicknesses(self) -> FloatArray:
        """Return the thickness of each slice, (Z,) mm."""
        masks = self.masks
        return thicknesses(masks.spacing, masks.slice_positions, self.first, len(self.judged[0]))

    def exposed_areas(self, mask: BoolArray, surface: NDArray[np.int64]) -> FloatArray:
        """Return the area of the outer faces of a mask's voxels at (N,) flat indices; (N,) mm²."""
        padded = np.pad(mask, 1)
        voxels = np.stack(np.unravel_index(surface, mask.shape)) + 1
        _, row, column = self.masks.spacing
        thick = self.thicknesses()[voxels[0] - 1]
        area = np.zeros(len(surface))
        sides = (row * column, thick * column, thick * row)
        for axis in range(1 if len(mask) == 1 else 0, 3):
            for step in (-1, 1):
                beside = voxels.copy()
                beside[axis] += step
                area += np.where(padded[tuple(beside)], 0.0, sides[axis])
        return area


def dice(a: BoolArray, b: BoolArray) -> float:
    """Return 2 |A and B| / (|A| + |B|) of two masks, (Z, Y, X); NaN if both are empty."""
    total = np.count_nonzero(a) + np.count_nonzero(b)
    return 2.0 * np.count_nonzero(a & b) / total if total else float("nan")


def surface_of(mask: BoolArray, check: Check = no_check) -> BoolArray:
    """Mark the voxels of a mask that share a face with a voxel outside it; (Z, Y, X)."""
    from raterscope.algorithms.masks._voxel_kernels import boundary

    surface, bits = np.empty(mask.shape, dtype=np.uint8), mask.view(np.uint8)
    parts = parts_of(len(mask), _AT_ONCE // (mask.shape[1] * mask.shape[2]))
    run_parts(lambda begin, end: boundary(bits, begin, end, surface), parts, check)
    return surface.view(np.bool_)


def distance_to(
    marked: BoolArray, spacing: Spacing, positions: FloatArray | None = None, check: Check = no_check
) -> Float32Array:
    """Return each voxel's exact distance (mm) to the nearest marked voxel, inf if there is none; (Z, Y, X).

    `positions`, (Z,) mm, are those of unevenly spaced slices. `check` is called at least once for each
    million voxels of each axis; it may raise an exception to stop.
    """
    from raterscope.algorithms.masks._voxel_kernels import (
        squared_across_slices,
        squared_across_uneven_slices,
        squared_distance,
    )

    slices, rows, columns = marked.shape
    away = np.empty(marked.shape, dtype=np.float32)
    steps = np.array(spacing, dtype=np.float64)
    run_parts(
        lambda begin, end: squared_distance(marked[begin:end], steps, away[begin:end]),
        parts_of(slices, _AT_ONCE // (rows * columns)), check,
    )  # fmt: skip

    def carry(begin: int, end: int) -> None:
        if positions is None:
            squared_across_slices(away, steps[0], begin, end)
        else:
            squared_across_uneven_slices(away, np.array(positions, dtype=np.float64), begin, end)

    if slices > 1:
        run_parts(carry, parts_of(rows, _AT_ONCE // (slices * columns)), check)
    return np.sqrt(away, out=away)


def distance_at(
    marked: BoolArray,
    voxels: NDArray[np.int64],
    spacing: Spacing,
    positions: FloatArray | None = None,
    check: Check = no_check,
) -> Float32Array:
    """Return the distances of `distance_to` only at (N,) flat indices; (N,) float32, mm.

    The work grows with the number of voxels and the squares of their distances. If a sample shows that
    measuring all voxels in their slices is faster, these are measured.
    """
    from raterscope.algorithms.masks import _voxel_kernels as kernels

    slices, rows, columns = marked.shape
    out = np.empty(len(voxels), dtype=np.float32)
    if not len(voxels):
        return out
    gap = np.empty(marked.shape, dtype=np.uint16 if columns < np.iinfo(np.uint16).max else np.uint32)
    parts = parts_of(slices, _AT_ONCE // (rows * columns))
    run_parts(lambda begin, end: kernels.row_gaps(marked, begin, end, gap), parts, check)
    steps = np.array((spacing[0] if positions is None else 1.0, *spacing[1:]), dtype=np.float64)
    heights = np.asarray(np.arange(slices) if positions is None else positions, dtype=np.float64)
    around, squares = _rows_around(spacing) if positions is None else _rows_around(spacing, 0)
    sample = np.ascontiguousarray(voxels[:: -(-len(voxels) // _SAMPLE)])
    tried = kernels.squared_distance_at(
        gap, steps, heights, around, squares, sample, 0, len(sample), out
    ) / len(sample)  # fmt: skip
    if tried * len(voxels) <= _ROWS_A_VOXEL * marked.size:
        run_parts(
            lambda begin, end: kernels.squared_distance_at(
                gap, steps, heights, around, squares, voxels, begin, end, out
            ),
            parts_of(len(voxels), int(_ROWS_A_VOXEL * _AT_ONCE / max(tried, 1.0))), check,
        )  # fmt: skip
        return np.sqrt(out, out=out)
    plane = np.empty(marked.shape, dtype=np.float32)
    run_parts(
        lambda begin, end: kernels.squared_distance(marked[begin:end], steps, plane[begin:end]), parts, check
    )
    run_parts(
        lambda begin, end: kernels.squared_across_slices_at(
            plane, steps[0], heights, voxels, begin, end, out
        ),
        parts_of(len(voxels), _AT_ONCE // slices), check,
    )  # fmt: skip
    return np.sqrt(out, out=out)


@lru_cache(maxsize=4)
def _rows_around(spacing: Spacing, count: int = _ROWS_AROUND) -> tuple[NDArray[np.int32], FloatArray]:
    """List about `count` rows around a voxel, the nearest first; see `squared_distance_at`."""
    across, along = spacing[:2]
    reach = math.sqrt(count * across * along / math.pi)
    slices, rows = (np.arange(-int(reach / step), int(reach / step) + 1) for step in (across, along))
    places = np.stack(np.meshgrid(slices, rows, indexing="ij"), axis=-1).reshape(-1, 2)
    squares = (places * np.array([across, along])) ** 2
    total = squares.sum(axis=1)
    order = np.argsort(total, kind="stable")
    order = order[total[order] <= reach**2][: None if count else 0]
    lowered = total[order, None] * (1 - _ROUNDING)
    return places[order].astype(np.int32), np.hstack([squares[order], lowered])


def compare(a: BoolArray, b: BoolArray, spacing: Spacing, positions: FloatArray | None = None) -> Comparison:
    """Compare a mask with a reference.

    `a`, `b`: (Z, Y, X), the mask, and the reference.
    `spacing`: (slice, row, column), mm.
    `positions`: (Z,), mm across the slices, if these are uneven.
    Raises `ValueError` for masks of different shapes.
    """
    if a.shape != b.shape:
        raise ValueError(f"masks of {a.shape} and {b.shape} voxels; expected the same shape.")
    box = box_of(np.stack([a, b]).view(np.uint8))
    if box is None:
        empty = Shape(0.0, np.empty(0, dtype=np.int64))
        return _comparison([empty, empty], 0, 1, 0.0, float(a.size), 0.0)
    crop = slices_of(*box)
    cut = None if positions is None else positions[crop[0]]

    def extent(mask: BoolArray) -> float:
        return float(extents_of(mask, spacing, positions))

    sizes = [extent(a), extent(b)]
    masks = [np.ascontiguousarray(mask[crop]) for mask in (a, b)]
    shapes = _shapes(masks, sizes, spacing, cut, [(0, 1)], silent)
    difference = (sizes[0] - sizes[1]) * math.prod(spacing)
    return _comparison(shapes, 0, 1, extent(a & b), extent(np.ones_like(a)), difference)


def compare_with_reference(
    masks: Masks, reference: BoolArray | MaskFusion, watch: Watch = silent
) -> tuple[Comparison, ...]:
    """Compare each rater with a reference.

    `masks`: probabilities count as marked above one half. `reference`: (Z, Y, X), on the grid of the masks'
    values, or a consensus of the masks. Specificities are over the voxels of the masks' values.
    """
    scene = crop_scene(masks, watch, _reference(masks, reference))
    raters = len(masks.annotators)
    shapes = scene.shapes([(p, raters) for p in range(raters)], part(watch, 0.0, 1.0))
    return _compared(scene, shapes, partial(watch, 1.0, "comparing to the reference"))


def compare_pairwise(masks: Masks, watch: Watch = silent) -> RaterAgreement:
    """Compare every pair of raters on one structure; probabilities count as marked above one half."""
    scene = crop_scene(masks, watch)
    pairs = itertools.combinations(range(len(masks.annotators)), 2)
    return _paired(scene, scene.shapes(list(pairs), part(watch, 0.0, 0.8)), part(watch, 0.8, 1.0))


def compare_all(
    masks: Masks, reference: BoolArray | MaskFusion, watch: Watch = silent
) -> tuple[tuple[Comparison, ...], RaterAgreement, FloatArray, FloatArray]:
    """Return the results of `compare_with_reference` and `compare_pairwise`, measuring each surface once.

    Also return bias and spread of each rater, (P,) mm.
    """
    scene = crop_scene(masks, watch, _reference(masks, reference))
    pairs = itertools.combinations(range(len(masks.annotators) + 1), 2)
    shapes = scene.shapes(list(pairs), part(watch, 0.0, 0.8))
    compared = _compared(scene, shapes, partial(watch, 0.8, "comparing to the reference"))
    offset, spread = _beyond(scene, shapes, partial(watch, 0.8, "comparing to the reference"))
    return compared, _paired(scene, shapes, part(watch, 0.8, 1.0)), offset, spread


def _reference(masks: Masks, reference: BoolArray | MaskFusion) -> BoolArray:
    if isinstance(reference, MaskFusion):
        return place_in_frame(reference, reference.mask[0], masks.origin, masks.shape)
    return reference


def _shapes(
    masks: Sequence[BoolArray], sizes: Sequence[float], spacing: Spacing, positions: FloatArray | None,
    pairs: Sequence[tuple[int, int]], watch: Watch,
) -> list[Shape]:  # fmt: skip
    """Find the surfaces of masks, and the distances between each pair."""
    shapes = []
    for number, (mask, size) in enumerate(zip(masks, sizes, strict=True)):
        check = partial(watch, 0.3 * number / len(masks), "measuring surfaces")
        check()
        surface = np.flatnonzero(surface_of(mask, check))
        shapes.append(Shape(size, surface))
    marked = np.zeros(masks[0].shape, dtype=np.bool_)
    needed = np.zeros(marked.size, dtype=np.bool_)
    measured = np.empty(marked.size, dtype=np.float32)
    for number, shape in enumerate(shapes):
        check = partial(watch, 0.3 + 0.7 * number / len(masks), "measuring the distances of surfaces")
        check()
        others = [p + q - number for p, q in pairs if number in (p, q)]
        for other in others:
            needed[shapes[other].surface] = True
        voxels = np.flatnonzero(needed)  # surfaces share voxels, and each is measured once
        marked.ravel()[shape.surface] = True
        measured[voxels] = distance_at(marked, voxels, spacing, positions, check)
        for other in others:
            shapes[other].away[number] = measured[shapes[other].surface]
        marked.ravel()[shape.surface] = False
        needed[voxels] = False
    return shapes


def _compared(scene: Scene, shapes: list[Shape], check: Check) -> tuple[Comparison, ...]:
    masks, target = scene.masks, scene.target
    assert target is not None

    rows, size, voxel = [], shapes[-1].size, math.prod(masks.spacing)
    plane = np.ones((masks.shape[0], 1, 1), dtype=np.bool_)
    slices = float(extents_of(plane, masks.spacing, masks.slice_positions, masks.origin[0]))
    every = slices * masks.shape[1] * masks.shape[2]
    for p, mask in enumerate(scene.judged):
        check()
        difference = (shapes[p].size - size) * voxel
        rows.append(_comparison(shapes, p, len(scene.judged), scene.extent(mask & target), every, difference))
    return tuple(rows)


def _beyond(scene: Scene, shapes: list[Shape], check: Check) -> tuple[FloatArray, FloatArray]:
    """Return the mean and standard deviation of each rater's distance beyond the reference, mm."""
    raters, (*judged, reference), target = len(scene.judged), shapes, scene.target
    assert target is not None
    offset, spread = np.full((2, raters), np.nan)
    if not reference.size:
        return offset, spread
    area = scene.exposed_areas(target, reference.surface)
    reach = max(_REACH, _REACH_VOXELS * min(scene.masks.spacing[scene.masks.shape[0] == 1 :]))
    for p, (mask, shape) in enumerate(zip(scene.judged, judged, strict=True)):
        check()
        if shape.size:
            signed = np.concatenate([
                np.where(mask.ravel()[reference.surface], reference.away[p], -reference.away[p]),
                np.where(target.ravel()[shape.surface], -shape.away[raters], shape.away[raters]),
            ])  # fmt: skip
            beyond = np.clip(signed.astype(np.float64), -reach, reach)
            weights = np.concatenate([area, scene.exposed_areas(mask, shape.surface)])
            offset[p] = np.average(beyond, weights=weights)
            spread[p] = np.sqrt(np.average((beyond - offset[p]) ** 2, weights=weights))
    return offset, spread


def _paired(scene: Scene, shapes: list[Shape], watch: Watch) -> RaterAgreement:
    inside, names = scene.judged, scene.masks.annotators
    raters = len(inside)
    tables = {name: np.zeros((raters, raters)) for name in ("hausdorff", "hausdorff_95", "mean")}
    overlap = np.diag([1.0 if shape.size else float("nan") for shape in shapes[:raters]])
    for p in range(raters):
        for q in range(p):
            watch((p + q / p) / raters, f"comparing {names[p]} to the others")
            size = shapes[p].size + shapes[q].size
            common = scene.extent(inside[p] & inside[q])
            overlap[p, q] = overlap[q, p] = 2.0 * common / size if size else float("nan")
            for table, value in zip(tables.values(), surface_distances(shapes, p, q), strict=True):
                table[p, q] = table[q, p] = value
    return RaterAgreement(names, overlap, *tables.values())


def place_in_frame(fusion: MaskFusion, values: NDArray[Value], origin: Box, shape: Box) -> NDArray[Value]:
    """Place one map of a fusion, (Z, Y, X), on another part of its image, padded with 0.

    The part begins at `origin` and has `shape`, voxels.
    """
    out = np.zeros(shape, dtype=values.dtype)
    to, take = overlap(origin, shape, fusion.origin, fusion.shape)
    out[to] = values[take]
    return out


def in_common_frame(first: MaskFusion, second: MaskFusion) -> tuple[Box, BoolArray, BoolArray]:
    """Return the smallest part of an image that contains two consensuses: its origin, and both on it."""
    low, shape = box_around((fusion.origin, fusion.shape) for fusion in (first, second))
    inside = [place_in_frame(fusion, fusion.mask[0], low, shape) > 0 for fusion in (first, second)]
    return low, inside[0], inside[1]


def _comparison(
    shapes: Sequence[Shape], p: int, q: int, common: float, voxels: float, difference: float
) -> Comparison:
    """Compare shape p with shape q; `difference` of their volumes is in mm³."""
    a, b = shapes[p], shapes[q]
    either = a.size + b.size - common
    outside = voxels - b.size
    nan = float("nan")
    hausdorff, hausdorff_95, mean = surface_distances(shapes, p, q)
    return Comparison(
        dice=2.0 * common / (a.size + b.size) if either else nan,
        jaccard=common / either if either else nan,
        hausdorff=hausdorff,
        hausdorff_95=hausdorff_95,
        mean_surface_distance=mean,
        volume_difference=difference / 1000.0,
        sensitivity=common / b.size if b.size else nan,
        specificity=1.0 - (a.size - common) / outside if outside else nan,
    )


def crop_scene(masks: Masks, watch: Watch, reference: BoolArray | None = None) -> Scene:
    """Crop the raters' masks of one structure, and a reference, to the box around all marked voxels."""
    labels = labels_of(masks)
    check = partial(watch, 0.0, "finding marked voxels")
    box = box_of(labels, None if reference is None else reference.view(np.int8), part(watch, 0.0, 0.0))
    crop = slices_of(*(box or ((0, 0, 0), (1, 1, 1))))
    judged = []
    for label in labels:
        check()
        judged.append(np.ascontiguousarray(label[crop] == 1))
    first = masks.origin[0] + crop[0].start
    return Scene(
        masks,
        judged,
        None if reference is None else np.ascontiguousarray(reference[crop]),
        cut_positions(masks.slice_positions, first, len(judged[0])),
        first,
    )


def surface_distances(shapes: Sequence[Shape], p: int, q: int) -> tuple[float, float, float]:
    """Return Hausdorff, HD95 and mean surface distance."""
    a, b = shapes[p], shapes[q]
    if not a.size or not b.size:
        away = 0.0 if a.size == b.size else float("inf")
        return away, away, away
    directed = (a.away[q], b.away[p])
    return (
        float(max(distances.max() for distances in directed)),
        float(max(np.percentile(distances, 95) for distances in directed)),
        float(np.concatenate(directed).mean(dtype=np.float64)),
    )
