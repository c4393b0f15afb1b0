"""Disputed regions, where raters and consensus differ most.

Around every outline there is a rim where raters differ by a voxel or two; it needs no decision. A region is
disputed if the distance of some rater's outline from that of the consensus exceeds a tolerance in mm.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks._cores import cores_of, nearest_cores, sort_order
from raterscope.algorithms.masks.data import (
    OPEN,
    BoolArray,
    Box,
    Float32Array,
    FloatArray,
    MaskFusion,
    Masks,
    box_around,
    cut_positions,
    overlap,
    thicknesses,
)
from raterscope.algorithms.masks.metrics import distance_at, distance_to, place_in_frame
from raterscope.algorithms.masks.voting import box_of, labels_of
from raterscope.algorithms.progress import Check, Watch, no_check, silent
from raterscope.text import percent

IntArray = NDArray[np.int64]
Value = TypeVar("Value", bound=np.generic)

_AT_ONCE = 1_000_000
"""Voxels between two calls of the check."""

_TOLERANCE = 1.5
"""Tolerance of outlines in mm, for small voxels and structures."""

_VOXELS = 1.5
"""Tolerance in in-plane voxel sides, so that a difference of one voxel is never a dispute."""

_SHARE = 0.08
"""Tolerance as a share of the radius of a sphere (in an image: a circle) with the size of the consensus."""

_PROMINENCE = 0.5
"""Minimum prominence of a peak in depth, as a share of the tolerance."""

_LEAST = 0.02
"""Minimum volume of a region, as a share of the consensus's volume."""


@dataclass(frozen=True, eq=False)
class Dispute:
    """Disputed region."""

    structure: int
    # origin, shape: (slice, row, column): the smallest box around the region, in the whole image
    origin: Box
    shape: Box
    # (bytes,): voxels of the region in the box, eight to a byte; see `voxels`
    bits: NDArray[np.uint8] = field(repr=False)
    # volume_ml, doubt_ml: volume of the region, and volume times mean uncertainty, 1 - |2 x - 1|; x is the
    # share of raters who mark a voxel or, if more uncertain, the model's probability
    volume_ml: float
    doubt_ml: float
    # beyond, short: raters whose outline is beyond the consensus here, and short of it, by more than the
    # tolerance, the farthest first; a rater with both is listed by the larger
    beyond: tuple[int, ...]
    short: tuple[int, ...]
    leader: int  # the rater with the largest distance, beyond or short
    reach: float  # mm: distance of the leader's outline from the consensus's; NaN if the consensus is empty
    # the leader's mean share in the consensus where the leader differs, 0 to 1; NaN if the model has no local
    # weights
    weight: float
    # for each rater: maximum distance (mm) of the outline from that of the consensus here, above 0 beyond it,
    # below 0 short of it; NaN for a rater who marked nothing. Empty if the consensus is empty, and in runs of
    # earlier versions.
    away: tuple[float, ...] = ()

    def voxels(self) -> BoolArray:
        """Return the region within its box; (Z, Y, X)."""
        z, y, x = self.shape
        return np.unpackbits(self.bits, count=z * y * x).reshape(self.shape).astype(np.bool_)


@dataclass(frozen=True, eq=False)
class _Scene:
    """Masks and consensus of one structure, on the box of all marked voxels."""

    fusion: MaskFusion
    structure: int
    origin: Box  # (slice, row, column): the first voxel of the box in the whole image
    masks: BoolArray  # (P, Z, Y, X)
    consensus: BoolArray  # (Z, Y, X)
    settled: BoolArray | None  # (Z, Y, X)
    positions: FloatArray | None  # (Z,): mm, where the slices are uneven
    thickness: FloatArray  # (Z,): mm, of each slice's slab

    @property
    def shape(self) -> Box:
        """Slices, rows and columns of the box."""
        slices, rows, columns = self.consensus.shape
        return slices, rows, columns

    @property
    def slices_at(self) -> FloatArray:
        """Positions of the slices, mm."""
        if self.positions is not None:
            return self.positions
        return np.asarray(np.arange(len(self.consensus)) * self.fusion.spacing[0], dtype=np.float64)

    def volume(self, slices: IntArray, shares: Float32Array | None = None) -> float:
        """Return the volume (mm³) of voxels, given their slices, or of shares of voxels."""
        areas = np.bincount(slices, shares, minlength=len(self.thickness))
        return float(areas @ self.thickness) * self.fusion.spacing[1] * self.fusion.spacing[2]

    def volume_of(self, mask: BoolArray) -> float:
        """Return the volume (mm³) of a mask on the box."""
        areas = np.count_nonzero(mask, axis=(1, 2)).astype(np.float64)
        return float(areas @ self.thickness) * self.fusion.spacing[1] * self.fusion.spacing[2]

    def at(self, voxels: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Convert flat indices of the box to slices, rows and columns."""
        z, y, x = np.unravel_index(voxels, self.shape)
        return z, y, x

    def points(self, voxels: IntArray) -> FloatArray:
        """Return the positions of voxels, (N, 3) mm."""
        z, y, x = self.at(voxels)
        _, row, column = self.fusion.spacing
        return np.asarray(np.stack([self.slices_at[z], y * row, x * column], axis=1), dtype=np.float64)

    def sampled(self, values: NDArray[Value], voxels: IntArray) -> NDArray[Value]:
        """Return the values of a map of the fusion, (Z, Y, X), at voxels of the box; 0 outside the map."""
        at = [
            axis_index + (own_origin - other_origin)
            for axis_index, own_origin, other_origin in zip(
                self.at(voxels), self.origin, self.fusion.origin, strict=True
            )
        ]
        inside = np.ones(len(voxels), dtype=np.bool_)
        for axis_index, size in zip(at, values.shape, strict=True):
            inside &= (axis_index >= 0) & (axis_index < size)
        sampled = np.zeros(len(voxels), dtype=values.dtype)
        sampled[inside] = values[at[0][inside], at[1][inside], at[2][inside]]
        return sampled


def disputes(fusion: MaskFusion, masks: Masks, watch: Watch = silent) -> tuple[Dispute, ...]:
    """Find the disputed regions, the most uncertain first.

    The depth of a voxel on which a rater and the consensus differ is its distance to the mask that excludes
    it. Voxels deeper than the tolerance for any rater form the cores. Voxels that touch by face, edge or
    corner (8 neighbours in an image, 26 in a volume) form one core, but a watershed divides large cores: each
    peak in depth that is higher by half the tolerance, and the deepest within `radius_of`, becomes a core
    with its slopes. A region is a core and the voxels nearest to it, within twice the tolerance, on which any
    rater differs. Regions below 2 % of the consensus's volume, or smaller than a ball (in an image: a disc)
    with the tolerance as radius, are dropped. If the consensus is empty although some raters marked the
    structure, their marks are disputed, with the local thickness as depth. Settled voxels are not disputed. A
    rater who marked nothing of a structure is not compared.

    The tolerance of each structure is `tolerance_of`.

    `masks`: the masks that were fused; probabilities count as marked above one half.
    """
    labels = labels_of(masks)
    box = box_of(labels, watch=watch)
    boxes = [(fusion.origin, fusion.shape)]
    if box is not None:
        z, y, x = (at + start for at, start in zip(box[0], masks.origin, strict=True))
        boxes.append(((z, y, x), box[1]))
    origin, shape = box_around(boxes)
    regions: list[Dispute] = []
    for s, name in enumerate(fusion.structures):
        check = partial(watch, s / len(fusion.structures), f"finding disputes about {name}")
        check()
        scene = _scene(fusion, masks, labels, s, origin, shape, check)
        regions += _regions(scene, check)
    watch(1.0, f"{len(regions)} disputed regions")
    return tuple(sorted(regions, key=lambda region: -region.doubt_ml))


def tolerance_of(
    consensus: BoolArray, spacing: tuple[float, float, float], volume: float | None = None
) -> float:
    """Return the maximum negligible difference of outlines, in mm, given the consensus, (Z, Y, X).

    It is the largest of 1.5 mm, 1.5 times the in-plane side of a voxel, and 8 % of `radius_of`.
    """
    return max(_TOLERANCE, _VOXELS * min(spacing[1:]), _SHARE * radius_of(consensus, spacing, volume))


def min_volume(tolerance: float, spacing: tuple[float, float, float], volume: float, *, flat: bool) -> float:
    """Return the volume below which a region is negligible.

    It is the larger of 2 % of the consensus's volume and a ball (in an image: a disc) with the tolerance as
    radius.
    """
    ball = np.pi * tolerance**2 * spacing[0] if flat else 4 / 3 * np.pi * tolerance**3
    return float(max(ball, _LEAST * volume))


def radius_of(
    consensus: BoolArray, spacing: tuple[float, float, float], volume: float | None = None
) -> float:
    """Return the radius (mm) of a ball with a mask's volume; in an image, of a disc.

    `volume`: the mask's volume, mm³, if its slices are uneven.
    """
    size = float(np.count_nonzero(consensus))
    if consensus.shape[0] == 1:
        return float(np.sqrt(size * spacing[1] * spacing[2] / np.pi))
    return float(np.cbrt((size * np.prod(spacing) if volume is None else volume) * 0.75 / np.pi))


def in_words(dispute: Dispute, names: Sequence[str], unit: str = "mm") -> str:
    """Describe a dispute: "Rater 4 draws 6 mm beyond the others here; its weight in the model is 3 %.".

    `unit` is the unit of length: "px" for an image without a known size.
    """
    if np.isnan(dispute.reach):
        raters = dispute.beyond
        text = f"{len(raters)} of {len(names)} raters " if len(raters) > 3 else f"{_listed(raters, names)} "
        text += f"{'marks' if len(raters) == 1 else 'mark'} this, the consensus does not"
        return _with_weight(text, dispute, names)
    out = dispute.leader in dispute.beyond
    first, second = (dispute.beyond, dispute.short) if out else (dispute.short, dispute.beyond)
    reach = f"{dispute.reach:.{0 if dispute.reach >= 9.95 else 1}f}".removesuffix(".0") + f" {unit}"
    direction = "beyond" if out else "short of"
    if len(first) == 1:
        others = "the consensus" if second else "the others"
        text = f"{names[first[0]]} {'draws' if out else 'stays'} {reach} {direction} {others} here"
    else:
        verb = "draw" if out else "stay"
        text = f"{_listed(first, names)} {verb} up to {reach} {direction} the consensus here"
    if second:
        verb = ("stays" if len(second) == 1 else "stay") if out else ("goes" if len(second) == 1 else "go")
        text += f"; {_listed(second, names)} {verb} {'short of' if out else 'beyond'} it"
    return _with_weight(text, dispute, names, owner="that stretch" if len(first) == 1 else "")


def _with_weight(text: str, dispute: Dispute, names: Sequence[str], owner: str = "") -> str:
    if np.isnan(dispute.weight):
        return text + "."
    if owner:
        return f"{text}; the weight of {owner} in the model is {percent(dispute.weight)}."
    return f"{text}. The weight of {names[dispute.leader]} here is {percent(dispute.weight)}."


def dispute_by_slice(fusion: MaskFusion, check: Check = no_check) -> FloatArray:
    """Return the model's uncertain volume in each slice of the image, of all structures; (Z,) ml."""
    ml = np.zeros(fusion.frame[0])
    values = np.zeros(fusion.shape[0])
    for z in range(fusion.shape[0]):
        check()
        values[z] = (1.0 - np.abs(2.0 * fusion.probability[:, z] - 1.0)).sum(dtype=np.float64)
    thick = thicknesses(fusion.spacing, fusion.slice_positions, fusion.origin[0], len(values))
    values *= thick * (fusion.spacing[1] * fusion.spacing[2] / 1000.0)
    ml[fusion.origin[0] : fusion.origin[0] + len(values)] = values
    return ml


def _listed(raters: Sequence[int], names: Sequence[str]) -> str:
    words = [names[p] for p in raters]
    if len(words) > 3:
        return f"{len(words)} of {len(names)} raters (most: {words[0]})"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _scene(
    fusion: MaskFusion, masks: Masks, labels: NDArray[np.uint8], structure: int, origin: Box, shape: Box,
    check: Check,
) -> _Scene:  # fmt: skip
    to, take = overlap(origin, shape, masks.origin, masks.shape)
    judged = np.zeros((len(labels), *shape), dtype=np.bool_)
    for mask, label in zip(judged, labels, strict=True):
        check()
        np.equal(label[take], structure + 1, out=mask[to])
    settled = None
    if masks.known is not None:
        settled = np.zeros(shape, dtype=np.bool_)
        settled[to] = masks.known[take] != OPEN
    return _Scene(
        fusion=fusion,
        structure=structure,
        origin=origin,
        masks=judged,
        consensus=place_in_frame(fusion, fusion.mask[structure], origin, shape),
        settled=settled,
        positions=cut_positions(fusion.slice_positions, origin[0], shape[0]),
        thickness=thicknesses(fusion.spacing, fusion.slice_positions, origin[0], shape[0]),
    )


@dataclass(frozen=True, eq=False)
class _Disputed:
    """N voxels on which some rater and the consensus differ."""

    indices: IntArray  # (N,): flat indices of the box
    # (P, N): depth (mm) in the part that only the rater or only the consensus marks; 0 where they agree
    depth: Float32Array
    held: BoolArray  # (N,): voxels of the consensus
    doubt: Float32Array  # (N,)


def _regions(scene: _Scene, check: Check) -> list[Dispute]:
    consensus, spacing = scene.consensus, scene.fusion.spacing
    flat = scene.fusion.frame[0] == 1
    marked = consensus if consensus.any() else np.asarray(scene.masks.any(axis=0))
    if not marked.any():
        return []
    size = None if scene.positions is None else scene.volume_of(marked)
    tolerance = tolerance_of(marked, spacing, size)
    disputed = _disputed(
        scene, None if marked is consensus else _thickness(marked, scene, flat, check), check
    )
    voxels, deepest = disputed.indices, disputed.depth.max(axis=0, initial=0.0)
    cores, count = cores_of(
        voxels, deepest, scene.shape, tolerance, _PROMINENCE * tolerance, radius_of(marked, spacing, size),
        scene.points, check,
    )  # fmt: skip
    if not count:
        return []
    number = nearest_cores(voxels, cores, scene.shape, spacing[1:], scene.slices_at, 2 * tolerance, check)
    number[deepest == 0] = 0
    order = sort_order(number.view(np.uint32), check)
    ends = np.cumsum(np.bincount(number, minlength=count + 1))
    least = min_volume(tolerance, spacing, scene.volume_of(marked), flat=flat)
    drew = np.array([mask.any() for mask in scene.masks])
    regions = []
    for begin, end in itertools.pairwise(ends.tolist()):
        check()
        members = order[begin:end]
        if scene.volume(voxels[members] // (scene.shape[1] * scene.shape[2])) >= least:
            regions.append(_described(scene, disputed, members, tolerance, drew))
    return (
        regions
        if marked is consensus
        else [replace(region, reach=float("nan"), away=()) for region in regions]
    )


def _disputed(scene: _Scene, thickness: Float32Array | None, check: Check) -> _Disputed:
    """Measure the depth of voxels between each rater's mask and the consensus.

    `thickness`, (Z, Y, X), replaces distances to an empty consensus.
    """
    spacing, positions = scene.fusion.spacing, scene.positions
    differ = np.zeros(scene.shape, dtype=np.bool_)
    drew = [bool(mask.any()) for mask in scene.masks]
    for p, mask in enumerate(scene.masks):
        check()
        if drew[p]:
            differ |= mask ^ scene.consensus
    if scene.settled is not None:
        differ &= ~scene.settled
    voxels = np.flatnonzero(differ)
    check()
    inside_consensus = scene.consensus.ravel()[voxels]
    beyond = np.zeros(len(voxels), dtype=np.float32)
    if thickness is None:
        beyond[~inside_consensus] = distance_at(
            scene.consensus, voxels[~inside_consensus], spacing, positions, check
        )
    else:
        beyond = thickness.ravel()[voxels]
    depth = np.zeros((len(scene.masks), len(voxels)), dtype=np.float32)
    share = np.zeros(len(voxels), dtype=np.float32)
    for p, mask in enumerate(scene.masks):
        check()
        inside = mask.ravel()[voxels]
        share += inside
        if drew[p]:
            depth[p] = beyond * (inside & ~inside_consensus)
            short = np.flatnonzero(inside_consensus & ~inside)
            depth[p, short] = distance_at(mask, voxels[short], spacing, positions, check)
    doubt = np.empty(len(voxels), dtype=np.float32)
    for begin in range(0, len(voxels), _AT_ONCE):
        check()
        block = slice(begin, begin + _AT_ONCE)
        votes = 1 - abs(2 * (share[block] / np.float32(len(depth))) - 1)
        chance = scene.sampled(scene.fusion.probability[scene.structure], voxels[block])
        doubt[block] = np.maximum(votes, 1 - abs(2 * chance - 1))
    check()
    return _Disputed(voxels, depth, inside_consensus, doubt)


def _thickness(marked: BoolArray, scene: _Scene, flat: bool, check: Check) -> Float32Array:
    """Return each voxel's distance (mm) to the nearest unmarked voxel, or out of the box."""
    edge = ((0, 0) if flat else (1, 1), (1, 1), (1, 1))
    positions, spacing = scene.positions, scene.fusion.spacing
    if positions is not None and not flat:
        positions = np.concatenate([[positions[0] - spacing[0]], positions, [positions[-1] + spacing[0]]])
    away = distance_to(~np.pad(marked, edge), spacing, positions, check)
    return np.ascontiguousarray(away[:, 1:-1, 1:-1] if flat else away[1:-1, 1:-1, 1:-1])


def _described(
    scene: _Scene, disputed: _Disputed, members: IntArray, tolerance: float, drew: BoolArray
) -> Dispute:
    """Make the dispute of some disputed voxels, given in ascending order."""
    local, outside = disputed.depth[:, members], ~disputed.held[members]
    far = [(local * outside).max(axis=1), (local * ~outside).max(axis=1)]
    reach = np.maximum(*far)
    order = [int(p) for p in np.argsort(-reach, kind="stable") if reach[p] > tolerance]
    beyond = tuple(p for p in order if far[0][p] >= far[1][p])
    short = tuple(p for p in order if far[0][p] < far[1][p])
    leader = order[0]
    voxels = disputed.indices[members]
    weight = float("nan")
    if scene.fusion.weight is not None:
        layer = scene.fusion.weight[scene.structure, leader]
        weight = float(scene.sampled(layer, voxels[local[leader] > 0]).mean()) / 255.0
    at = scene.at(voxels)
    first = [int(axis_index.min()) for axis_index in at]
    deep, high, wide = (int(axis_index.max()) + 1 - low for axis_index, low in zip(at, first, strict=True))
    region = np.zeros((deep, high, wide), dtype=np.bool_)
    region[tuple(axis_index - low for axis_index, low in zip(at, first, strict=True))] = True
    z, y, x = (low + start for low, start in zip(first, scene.origin, strict=True))
    return Dispute(
        structure=scene.structure,
        origin=(z, y, x),
        shape=(deep, high, wide),
        bits=np.packbits(region),
        volume_ml=scene.volume(at[0]) / 1000.0,
        doubt_ml=scene.volume(at[0], disputed.doubt[members]) / 1000.0,
        beyond=beyond,
        short=short,
        leader=leader,
        reach=float(reach[leader]),
        weight=weight,
        away=tuple(np.where(drew, np.where(far[0] >= far[1], far[0], -far[1]), np.nan).tolist()),
    )
