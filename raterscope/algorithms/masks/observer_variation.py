"""Interobserver variation: differences between all pairs of raters in overlap, surface, outline and centre.

For each pair of raters A and B, with the surfaces and distances of `metrics`:

- surface Dice at a tolerance ([nikolov2021]_): the share of both surfaces that lies within the tolerance of
  the other; here surfaces consist of voxels with equal weights;
- added path length ([vaassen2020]_): the length of B's outline that is not on A's, slice by slice, where a
  pixel of an outline is as long as the mean of the row and column spacing; the mean of both directions is
  used, because neither rater is the reference;
- centroid shift: the distance between the centres of mass.

The conformity index of all raters ([kouwenhoven2009]_) is the sum of the common volumes of all pairs over
that of their joint volumes; for two raters it is the Jaccard index.

References
----------
.. [nikolov2021] S. Nikolov, S. Blackwell, A. Zverovitch et al., "Clinically applicable segmentation of head
   and neck anatomy for radiotherapy: deep learning algorithm development and validation study", Journal of
   Medical Internet Research 23 (2021) e26151, doi:10.2196/26151.
.. [vaassen2020] F. Vaassen, C. Hazelaar, A. Vaniqui, M. Gooding, B. van der Heyden, R. Canters and W. van
   Elmpt, "Evaluation of measures for assessing time-saving of automatic organ-at-risk segmentation in
   radiotherapy", Physics and Imaging in Radiation Oncology 13 (2020) 1-6, doi:10.1016/j.phro.2019.12.001.
.. [kouwenhoven2009] E. Kouwenhoven, M. Giezen and H. Struikmans, "Measuring the similarity of target volume
   delineations independent of the number of observers", Physics in Medicine and Biology 54 (2009) 2863-2873,
   doi:10.1088/0031-9155/54/9/018.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raterscope.algorithms.masks.data import BoolArray, FloatArray, Masks
from raterscope.algorithms.masks.metrics import Scene, crop_scene, surface_distances
from raterscope.algorithms.progress import Watch, part, silent

TOLERANCE = 2.0
"""Default tolerance of the surface Dice, mm."""


@dataclass(frozen=True, eq=False)
class ObserverVariation:
    """Differences between the raters of one structure of a case."""

    annotators: tuple[str, ...]  # (P,): those who marked the structure
    volumes: FloatArray  # (P,): ml
    pairs: NDArray[np.int64]  # (K, 2): indices of the raters of each pair
    # dice, surface_dice: (K,)
    dice: FloatArray
    surface_dice: FloatArray
    # mean_surface_distance, hausdorff_95, added_path_length, centroid_shift: (K,): mm
    mean_surface_distance: FloatArray
    hausdorff_95: FloatArray
    added_path_length: FloatArray
    centroid_shift: FloatArray
    # common, joint: (K,): numbers of voxels that both marked, and that either marked, weighted by the
    # thickness of their slices
    common: FloatArray
    joint: FloatArray
    tolerance: float  # mm, of the surface Dice

    def conformity(self, among: ArrayLike | None = None) -> float:
        """Return the conformity index of all raters, or of some pairs, (K,) bool; NaN without pairs."""
        chosen = np.ones(len(self.pairs), dtype=bool) if among is None else np.asarray(among, dtype=bool)
        joint = float(self.joint[chosen].sum())
        return float(self.common[chosen].sum()) / joint if joint else math.nan


def observer_variation(
    masks: Masks,
    tolerance: float = TOLERANCE,
    pairs: Sequence[tuple[str, str]] | None = None,
    watch: Watch = silent,
) -> ObserverVariation:
    """Measure the differences between all pairs of raters who marked a structure.

    `masks`: probabilities count as marked above one half. Empty masks are omitted. `tolerance`: in mm.
    `pairs`: pairs of annotators to compare; by default all.
    """
    scene = crop_scene(masks, watch)
    marking = [p for p, mask in enumerate(scene.judged) if mask.any()]
    names = tuple(masks.annotators[p] for p in marking)
    at = {masks.annotators[p]: p for p in marking}
    all_pairs = [(at[a], at[b]) for a, b in pairs or combinations(names, 2) if a in at and b in at]
    shapes = scene.shapes(all_pairs, part(watch, 0.0, 0.9))
    outlines = {p: _outline(scene.judged[p]) for p in marking}
    centroids = {p: _centroid(scene, p) for p in marking}
    step = (masks.spacing[1] + masks.spacing[2]) / 2
    rows: list[tuple[float, ...]] = []
    counts: list[tuple[float, float]] = []
    for done, (p, q) in enumerate(all_pairs):
        watch(0.9 + 0.1 * done / len(all_pairs), "comparing outlines")
        common = scene.extent(scene.judged[p] & scene.judged[q])
        sizes = shapes[p].size + shapes[q].size
        counts.append((common, sizes - common))
        _, largest, average = surface_distances(shapes, p, q)
        paths = [np.count_nonzero(outlines[b] & ~outlines[a]) * step for a, b in ((p, q), (q, p))]
        directed = shapes[p].away[q], shapes[q].away[p]
        near = sum(int(np.count_nonzero(distances <= tolerance + 1e-6)) for distances in directed)
        within = near / sum(map(len, directed))
        moved = math.dist(centroids[p], centroids[q])
        rows.append((2 * common / sizes, within, average, largest, sum(paths) / 2, moved))
    row_of = {p: index for index, p in enumerate(marking)}
    volumes = np.array([shapes[p].size for p in marking]) * math.prod(masks.spacing) / 1000
    common_counts, joint_counts = np.array(counts, dtype=np.float64).reshape(-1, 2).T
    overlap, surface_dice, mean, far, added, shift = np.array(rows, dtype=np.float64).reshape(-1, 6).T
    return ObserverVariation(
        annotators=names,
        volumes=volumes,
        pairs=np.array([(row_of[p], row_of[q]) for p, q in all_pairs], dtype=np.int64).reshape(-1, 2),
        dice=overlap,
        surface_dice=surface_dice,
        mean_surface_distance=mean,
        hausdorff_95=far,
        added_path_length=added,
        centroid_shift=shift,
        common=common_counts,
        joint=joint_counts,
        tolerance=tolerance,
    )


def _outline(mask: BoolArray) -> BoolArray:
    """Mark the pixels of a mask that have a neighbour outside it (4-connectivity in the slice)."""
    inner = mask.copy()
    inner[:, 1:] &= mask[:, :-1]
    inner[:, :-1] &= mask[:, 1:]
    inner[:, :, 1:] &= mask[:, :, :-1]
    inner[:, :, :-1] &= mask[:, :, 1:]
    inner[:, [0, -1]] = False
    inner[:, :, [0, -1]] = False
    return mask & ~inner


def _centroid(scene: Scene, p: int) -> tuple[float, float, float]:
    """Return the centre of mass in mm, from the corner of the scene."""
    mask, spacing = scene.judged[p], scene.masks.spacing
    weights = scene.thicknesses()
    slices = mask.sum(axis=(1, 2), dtype=np.float64) * weights
    heights = np.arange(len(slices)) * spacing[0] if scene.positions is None else scene.positions
    row, column = (
        float(weights @ mask.sum(axis=axis, dtype=np.float64) @ np.arange(size)) / slices.sum()
        for axis, size in ((2, mask.shape[1]), (1, mask.shape[2]))
    )
    return float(slices @ heights / slices.sum()), row * spacing[1], column * spacing[2]
