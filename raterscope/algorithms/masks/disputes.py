"""Where raters and consensus part, as the few regions that a person would want to look at.

Around every outline there is a rim in which raters differ by a voxel or two; nobody wants to settle that. A
region is disputed where some rater's outline is farther from the consensus's than a tolerance in mm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

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
    cut_positions,
)
from raterscope.algorithms.masks.grid import slab_bounds
from raterscope.algorithms.masks.metrics import distance_to, placed
from raterscope.algorithms.masks.patterns import box_of, labels_of
from raterscope.algorithms.progress import Watch, silent

__all__ = ["Dispute", "dispute_by_slice", "disputes", "in_words", "radius_of", "tolerance_of"]

_TOLERANCE = 1.5
"""mm that outlines may differ by, where voxels are small and so is the structure."""

_VOXELS = 1.5
"""Of a voxel's smaller side in the plane: one voxel's difference is never a dispute."""

_SHARE = 0.08
"""Of the radius of a sphere (an image: a circle) as large as the consensus, that outlines may differ by."""

_PROMINENCE = 0.5
"""Of the tolerance: how far a peak in depth stands out from the saddle to a deeper one."""

_LEAST = 0.02
"""Of the consensus's volume: what is smaller is not worth a stop."""


@dataclass(frozen=True, eq=False)
class Dispute:
    """One region that is disputed.

    Attributes
    ----------
    structure : int
    origin, shape : (slice, row, column)
        The smallest box around it in the whole image.
    bits : (bytes,) uint8
        Its voxels in the box, eight to a byte; see `voxels`.
    volume_ml, doubt_ml : float
        Its volume, and that times its mean doubt: 1 - |2 x - 1| for x the share of raters who mark a voxel
        or, where that gives more doubt, the model's probability.
    beyond, short : tuple of int
        Raters who mark here what the consensus leaves out, and who leave out what it has, by more than the
        tolerance; those who go farthest first, and who do both where they go farther.
    leader : int
        The rater who goes farthest, beyond or short.
    reach : float
        mm: how far the leader's outline is from the consensus's; NaN where the consensus is empty.
    weight : float
        The leader's mean share of the consensus where the leader differs, 0 to 1; NaN where the model has no
        local weights.
    away : tuple of float
        mm, for each rater: how far that outline is from the consensus's here where it is farthest, above 0
        beyond it, below 0 short of it; NaN for one who marked nothing. Empty where the consensus is, and in
        runs stored before this was.
    """

    structure: int
    origin: Box
    shape: Box
    bits: NDArray[np.uint8] = field(repr=False)
    volume_ml: float
    doubt_ml: float
    beyond: tuple[int, ...]
    short: tuple[int, ...]
    leader: int
    reach: float
    weight: float
    away: tuple[float, ...] = ()

    def voxels(self) -> BoolArray:
        """Give the region within its box; (Z, Y, X)."""
        z, y, x = self.shape
        return np.unpackbits(self.bits, count=z * y * x).reshape(self.shape).astype(np.bool_)


@dataclass(frozen=True, eq=False)
class _Scene:
    """One structure on the box of all that anybody marks."""

    masks: BoolArray
    consensus: BoolArray
    settled: BoolArray
    doubt: Float32Array
    weight: NDArray[np.uint8] | None
    spacing: tuple[float, float, float]
    positions: FloatArray | None
    thickness: FloatArray
    """mm, of each slice's slab."""

    def volume(self, values: NDArray[np.generic], first: int = 0) -> float:
        """Give the cubic millimetres of (Z, Y, X) marks or shares that begin at a slice of the box."""
        each = values.sum(axis=(1, 2), dtype=np.float64)
        area = self.spacing[1] * self.spacing[2]
        return float(each @ self.thickness[first : first + len(each)]) * area


def disputes(
    fusion: MaskFusion, masks: Masks, tolerance: float | None = None, watch: Watch = silent
) -> tuple[Dispute, ...]:
    """Find the disputed regions, those with the most doubt first.

    A voxel on which a rater and the consensus differ lies as deep as its distance to the mask of the two that
    leaves it out. Voxels deeper than the tolerance for any rater make up the cores; cores that touch by
    face, edge or corner (8 neighbours in an image, 26 in a volume) are one, but one that reaches round the
    structure is parted: each of its peaks in depth that stands out by half the tolerance, and is the deepest
    within `radius_of`, has the slopes that lead down from it (a watershed). A region is its core and the
    voxels within twice the tolerance of it on which anybody differs, each with the core nearest to it.
    Regions of less than 2 % of the consensus's volume are left out, and those smaller than a ball (an image:
    a disc) whose radius is the tolerance. Where the consensus is empty though some marked the structure, what
    they marked is disputed, as deep as it is thick. Settled voxels are not disputed; a rater who marked
    nothing of a structure is left out of it.

    Parameters
    ----------
    fusion : MaskFusion
    masks : Masks
        What was fused; probabilities count as marked above one half.
    tolerance : float, optional
        mm; by default what `tolerance_of` gives for each structure.
    watch : Watch
    """
    labels = labels_of(masks)
    found = box_of(labels, watch=watch)
    boxes = [(fusion.origin, fusion.shape)]
    if found is not None:
        z, y, x = (at + start for at, start in zip(found[0], masks.origin, strict=True))
        boxes.append(((z, y, x), found[1]))
    low = [min(origin[axis] for origin, _ in boxes) for axis in range(3)]
    high = [max(origin[axis] + shape[axis] for origin, shape in boxes) for axis in range(3)]
    origin = (low[0], low[1], low[2])
    shape = (high[0] - low[0], high[1] - low[1], high[2] - low[2])
    regions: list[Dispute] = []
    for s, name in enumerate(fusion.structures):
        look = partial(watch, s / len(fusion.structures), f"looking for disputes about {name}")
        look()
        scene = _scene(fusion, masks, labels, s, origin, shape)
        regions += _regions(scene, s, origin, tolerance, fusion.frame[0] == 1, look)
    watch(1.0, f"{len(regions)} disputed regions")
    return tuple(sorted(regions, key=lambda region: -region.doubt_ml))


def tolerance_of(
    consensus: BoolArray, spacing: tuple[float, float, float], volume: float | None = None
) -> float:
    """Give the difference of outlines, in mm, that is not worth a look, by the consensus, (Z, Y, X).

    It is 1.5 mm, or 1.5 times the side of a voxel in the plane, or 8 % of `radius_of`, whichever is most.
    """
    return max(_TOLERANCE, _VOXELS * min(spacing[1:]), _SHARE * radius_of(consensus, spacing, volume))


def radius_of(
    consensus: BoolArray, spacing: tuple[float, float, float], volume: float | None = None
) -> float:
    """Give the radius (mm) of a ball as large as a mask, in an image of a disc.

    `volume` is the mask's in mm³, where its slices are uneven.
    """
    size = float(np.count_nonzero(consensus))
    if consensus.shape[0] == 1:
        return float(np.sqrt(size * spacing[1] * spacing[2] / np.pi))
    return float(np.cbrt((size * np.prod(spacing) if volume is None else volume) * 0.75 / np.pi))


def in_words(dispute: Dispute, names: Sequence[str], unit: str = "mm") -> str:
    """Say who differs: "Rater 4 draws 6 mm beyond the others here; the model gives that stretch 3 % weight.".

    `unit` is what one is called: "px" for an image of which no size is known.
    """
    if np.isnan(dispute.reach):
        who = dispute.beyond
        words = f"{len(who)} of {len(names)} raters " if len(who) > 3 else f"{_listed(who, names)} "
        words += f"{'marks' if len(who) == 1 else 'mark'} this, the consensus nothing"
        return _with_weight(words, dispute, names)
    out = dispute.leader in dispute.beyond
    first, second = (dispute.beyond, dispute.short) if out else (dispute.short, dispute.beyond)
    reach = f"{dispute.reach:.{0 if dispute.reach >= 9.95 else 1}f}".removesuffix(".0") + f" {unit}"
    way = "beyond" if out else "short of"
    if len(first) == 1:
        others = "the consensus" if second else "the others"
        words = f"{names[first[0]]} {'draws' if out else 'stays'} {reach} {way} {others} here"
    else:
        verb = "draw" if out else "stay"
        words = f"{_listed(first, names)} {verb} up to {reach} {way} the consensus here"
    if second:
        words += f", {_listed(second, names)} {'short of it' if out else 'beyond it'}"
    return _with_weight(words, dispute, names, whose="that stretch" if len(first) == 1 else "")


def _with_weight(words: str, dispute: Dispute, names: Sequence[str], whose: str = "") -> str:
    if np.isnan(dispute.weight):
        return words + "."
    whose = whose or f"{names[dispute.leader]} there"
    return f"{words}; the model gives {whose} {100 * dispute.weight:.0f} % weight."


def dispute_by_slice(fusion: MaskFusion) -> FloatArray:
    """Give the model's volume of doubt in each slice of the whole image, all structures together; (Z,) ml."""
    ml = np.zeros(fusion.frame[0])
    each = fusion.doubt().sum(axis=(0, 2, 3), dtype=np.float64) * fusion.voxel_volume / 1000.0
    if fusion.slice_positions is not None:
        each *= _thicknesses(fusion)[fusion.origin[0] :][: len(each)] / fusion.spacing[0]
    ml[fusion.origin[0] : fusion.origin[0] + len(each)] = each
    return ml


def _listed(raters: Sequence[int], names: Sequence[str]) -> str:
    words = [names[p] for p in raters]
    if len(words) > 3:
        return f"{len(words)} of {len(names)} raters, {words[0]} the farthest,"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _scene(
    fusion: MaskFusion, masks: Masks, labels: NDArray[np.uint8], structure: int, origin: Box, shape: Box
) -> _Scene:
    low = [max(a, b) for a, b in zip(origin, masks.origin, strict=True)]
    high = [min(a + n, b + m) for a, n, b, m in zip(origin, shape, masks.origin, masks.shape, strict=True)]
    to, take = (
        tuple(slice(a - at, b - at) for a, b, at in zip(low, high, base, strict=True))
        for base in (origin, masks.origin)
    )
    judged = np.zeros((len(labels), *shape), dtype=np.bool_)
    judged[:, *to] = labels[:, *take] == structure + 1
    settled = np.zeros(shape, dtype=np.bool_)
    if masks.known is not None:
        settled[to] = masks.known[take] != OPEN
    share = judged.mean(axis=0, dtype=np.float32)
    votes = 1 - abs(2 * share - 1)
    return _Scene(
        masks=judged,
        consensus=placed(fusion, fusion.mask[structure], origin, shape),
        settled=settled,
        doubt=np.maximum(votes, placed(fusion, fusion.doubt()[structure], origin, shape)),
        weight=None
        if fusion.weight is None
        else np.stack([placed(fusion, one, origin, shape) for one in fusion.weight[structure]]),
        spacing=fusion.spacing,
        positions=cut_positions(fusion.slice_positions, origin[0], shape[0]),
        thickness=_thicknesses(fusion)[origin[0] : origin[0] + shape[0]],
    )


def _thicknesses(fusion: MaskFusion) -> FloatArray:
    """Give the slabs of all slices of the image, mm."""
    if fusion.slice_positions is None:
        return np.full(fusion.frame[0], fusion.spacing[0])
    bounds = slab_bounds(fusion.slice_positions, fusion.spacing[0])
    return np.asarray(bounds[:, 1] - bounds[:, 0])


def _regions(
    scene: _Scene,
    structure: int,
    origin: Box,
    tolerance: float | None,
    flat: bool,
    look: Callable[[], object],
) -> list[Dispute]:
    from scipy import ndimage

    consensus, spacing, positions = scene.consensus, scene.spacing, scene.positions
    marked = consensus if consensus.any() else np.asarray(scene.masks.any(axis=0))
    if not marked.any():
        return []
    size = None if positions is None else scene.volume(marked)
    tolerance = tolerance_of(marked, spacing, size) if tolerance is None else tolerance
    beyond_depth = (
        distance_to(consensus, spacing, positions, look)
        if marked is consensus
        else _thickness(marked, scene, flat)
    )
    depth = np.zeros(scene.masks.shape, dtype=np.float32)
    for p, mask in enumerate(scene.masks):
        look()
        if mask.any():
            differ = (mask ^ consensus) & ~scene.settled
            depth[p] = np.where(mask, beyond_depth, distance_to(mask, spacing, positions, look)) * differ
    deepest = depth.max(axis=0)
    look()
    cores, count = _cores(deepest, tolerance, radius_of(marked, spacing, size), scene, look)
    if not count:
        return []
    look()
    away, nearest = _nearest(cores, count, scene)
    look()
    part = np.where((deepest > 0) & (away <= 2 * tolerance), nearest, 0)
    ball = np.pi * tolerance**2 * spacing[0] if flat else 4 / 3 * np.pi * tolerance**3
    least = max(ball, _LEAST * scene.volume(marked))
    found = []
    for number, crop in enumerate(ndimage.find_objects(part, count), 1):
        look()
        region = part[crop] == number
        if scene.volume(region, crop[0].start) >= least:
            found.append(_described(scene, depth, region, crop, tolerance, structure, origin))
    return found if marked is consensus else [replace(one, reach=float("nan"), away=()) for one in found]


def _nearest(
    cores: NDArray[np.int32], count: int, scene: _Scene
) -> tuple[NDArray[np.floating], NDArray[np.int32]]:
    """Give each voxel's distance (mm) to the nearest core, and that core's number."""
    from scipy import ndimage

    if scene.positions is None:
        away, at = ndimage.distance_transform_edt(cores == 0, sampling=scene.spacing, return_indices=True)
        return away, cores[tuple(at)]
    away = np.full(cores.shape, np.inf, dtype=np.float32)
    nearest = np.zeros_like(cores)
    for number in range(1, count + 1):
        there = distance_to(cores == number, scene.spacing, scene.positions)
        nearest[there < away] = number
        away = np.minimum(away, there)
    return away, nearest


def _thickness(marked: BoolArray, scene: _Scene, flat: bool) -> Float32Array:
    """Give each voxel's distance (mm) to where nobody marks, which is all beyond the box."""
    edge = ((0, 0) if flat else (1, 1), (1, 1), (1, 1))
    positions = scene.positions
    if positions is not None and not flat:
        step = scene.spacing[0]
        positions = np.concatenate([[positions[0] - step], positions, [positions[-1] + step]])
    away = distance_to(~np.pad(marked, edge), scene.spacing, positions)
    return np.ascontiguousarray(away[:, 1:-1, 1:-1] if flat else away[1:-1, 1:-1, 1:-1])


def _cores(
    depth: Float32Array, tolerance: float, radius: float, scene: _Scene, look: Callable[[], object]
) -> tuple[NDArray[np.int32], int]:
    """Give each voxel deeper than the tolerance the number of its core; one core a peak within the radius.

    A peak stands out by at least a part of the tolerance from the saddles to deeper ones.
    """
    from scipy import ndimage
    from skimage.morphology import reconstruction
    from skimage.segmentation import watershed

    touching = np.ones((3, 3, 3))
    whole, count = ndimage.label(depth > tolerance, structure=touching)
    if not count:
        return whole, 0
    height = _PROMINENCE * tolerance
    look()
    beneath = reconstruction(np.maximum(depth - height, 0), depth, footprint=touching)
    look()
    peaks = np.argwhere((whole > 0) & (depth - beneath >= height * (1 - 1e-6)))
    peaks = peaks[np.argsort(-depth[tuple(peaks.T)], kind="stable")]
    owner, place = whole[tuple(peaks.T)], peaks * np.array(scene.spacing)
    if scene.positions is not None:
        place[:, 0] = scene.positions[peaks[:, 0]]
    left = np.ones(len(peaks), dtype=np.bool_)
    markers = np.zeros(depth.shape, dtype=np.int32)
    number = 0
    while left.any():
        first = int(left.argmax())
        number += 1
        markers[tuple(peaks[first])] = number
        left &= (owner != owner[first]) | (((place - place[first]) ** 2).sum(axis=1) > radius**2)
        left[first] = False
    look()
    return watershed(-depth, markers, connectivity=touching, mask=whole > 0), number


def _described(
    scene: _Scene,
    depth: Float32Array,
    region: BoolArray,
    crop: tuple[slice, ...],
    tolerance: float,
    structure: int,
    origin: Box,
) -> Dispute:
    local = depth[:, *crop] * region
    outside = ~scene.consensus[crop]
    far = [(local * outside).max(axis=(1, 2, 3)), (local * ~outside).max(axis=(1, 2, 3))]
    reach = np.maximum(*far)
    order = [int(p) for p in np.argsort(-reach, kind="stable") if reach[p] > tolerance]
    beyond = tuple(p for p in order if far[0][p] >= far[1][p])
    short = tuple(p for p in order if far[0][p] < far[1][p])
    leader, drew = order[0], scene.masks.any(axis=(1, 2, 3))
    weight = float("nan")
    if scene.weight is not None:
        weight = float(scene.weight[leader][crop][local[leader] > 0].mean()) / 255.0
    z, y, x = (at + cut.start for at, cut in zip(origin, crop, strict=True))
    deep, high, wide = region.shape
    return Dispute(
        structure=structure,
        origin=(z, y, x),
        shape=(deep, high, wide),
        bits=np.packbits(region),
        volume_ml=scene.volume(region, crop[0].start) / 1000.0,
        doubt_ml=scene.volume(scene.doubt[crop] * region, crop[0].start) / 1000.0,
        beyond=beyond,
        short=short,
        leader=leader,
        reach=float(reach[leader]),
        weight=weight,
        away=tuple(np.where(drew, np.where(far[0] >= far[1], far[0], -far[1]), np.nan).tolist()),
    )
