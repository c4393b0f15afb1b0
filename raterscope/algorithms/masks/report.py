"""Report on a fusion besides its maps: agreement of raters with it and each other, and disputed regions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from raterscope.algorithms.masks.calibration import Calibration, Distances, calibrate, measure
from raterscope.algorithms.masks.data import FloatArray, MaskFusion, Masks, marked
from raterscope.algorithms.masks.disputes import Dispute, dispute_by_slice, disputes
from raterscope.algorithms.masks.distance import half_side, signed_distance
from raterscope.algorithms.masks.metrics import Comparison, against_and_pairwise, distance_at, placed
from raterscope.algorithms.progress import Look, Watch, part, silent

__all__ = ["CaseResult", "Report", "report_on"]

_REACH, _REACH_VOXELS = 20.0, 10.0
"""mm, or voxels where those are larger: outlines further apart count as that far."""


@dataclass(frozen=True, eq=False)
class Report:
    """Report on the fusion of one structure of P raters.

    Attributes
    ----------
    compared : tuple of P Comparison
        Each rater against the consensus; specificity is over the box that was fused.
    pair_dice, pair_hausdorff_95 : (P, P) float64
        Each rater against every other.
    weight : (P,) float64
        Each rater's mean share of the consensus where raters differ; NaN without local weights.
    offset, spread : (P,) float64
        mm: mean and standard deviation, over the consensus's outline, of how far each rater's outline lies
        beyond it; below 0 for one who stays short of it; NaN where either is empty. (A model's bias is over
        all voxels, most of which lie where all raters agree: it says little of an outline.)
    disputes : tuple of Dispute
        The disputed regions, those with the most doubt first.
    by_slice : (Z,) float64
        ml of doubt in each slice of the whole image.
    volume_ml : float
        Of the consensus.
    calibration : Calibration, optional
        What the raters' spread says about outlines; None for a single rater, where nobody marked anything,
        and in results of older versions.
    tau : (P,) float64, optional
        Median of each rater's `MaskFusion.tau` over the voxels where raters differ; NaN where there is none,
        None in results of older versions.
    """

    compared: tuple[Comparison, ...]
    pair_dice: FloatArray
    pair_hausdorff_95: FloatArray
    weight: FloatArray
    offset: FloatArray
    spread: FloatArray
    disputes: tuple[Dispute, ...]
    by_slice: FloatArray
    volume_ml: float
    calibration: Calibration | None = None
    tau: FloatArray | None = None

    def chances_wrong(self, fusion: MaskFusion) -> list[float]:
        """Return the probability that the consensus is wrong in each disputed region, the mean of its voxels.

        It is that of the true outline; without a calibration there are none.
        """
        if self.calibration is None:
            return []
        return [_chance_wrong(region, fusion, self.calibration) for region in self.disputes]

    @property
    def doubt_ml(self) -> float:
        """Doubt in all disputed regions."""
        return sum(region.doubt_ml for region in self.disputes)


def _chance_wrong(region: Dispute, fusion: MaskFusion, calibration: Calibration) -> float:
    at = [
        slice(a - b, a - b + n)
        for a, b, n in zip(region.origin, calibration.origin, region.shape, strict=True)
    ]
    inside = placed(fusion, fusion.mask[0], region.origin, region.shape)
    chance = calibration.part(tuple(at)).true_outline()
    return float(np.where(inside, 1 - chance, chance)[region.voxels()].mean())


@dataclass(frozen=True, eq=False)
class CaseResult:
    """Result of a run on one image: for each structure, its fusion and the report on it."""

    fusions: tuple[MaskFusion, ...]
    reports: tuple[Report, ...]

    def structures(self) -> tuple[str, ...]:
        """Name the structures."""
        return tuple(fusion.structures[0] for fusion in self.fusions)


def report_on(fusion: MaskFusion, masks: Masks, watch: Watch = silent) -> Report:
    """Measure the fusion of one structure against what was fused.

    Parameters
    ----------
    fusion : MaskFusion
        Of one structure.
    masks : Masks
        What was fused.
    watch : Watch
    """
    compared, pairs = against_and_pairwise(masks, fusion, 0, part(watch, 0.0, 0.6))
    distances = measure(masks, part(watch, 0.6, 0.7))
    offset, spread = _offsets(fusion, distances, part(watch, 0.7, 0.75))
    calibration = calibrate(masks, part(watch, 0.75, 0.85), distances)
    del distances
    found = disputes(fusion, masks, watch=part(watch, 0.85, 1.0))
    look = partial(watch, 1.0, "adding up the report")
    weight, tau = _where_raters_differ(fusion, masks, look)
    return Report(
        compared=compared,
        pair_dice=pairs.dice,
        pair_hausdorff_95=pairs.hausdorff_95,
        weight=weight,
        offset=offset,
        spread=spread,
        disputes=found,
        by_slice=dispute_by_slice(fusion, look),
        volume_ml=float(fusion.volumes(fusion.mask[0])) / 1000.0,
        calibration=calibration,
        tau=tau,
    )


def _offsets(fusion: MaskFusion, distances: Distances, watch: Watch) -> tuple[FloatArray, FloatArray]:
    """Return the mean and standard deviation of each rater's distance along the consensus's outline, mm."""
    masks = distances.masks
    side = min(masks.spacing[masks.shape[0] == 1 :])
    reach = max(_REACH, _REACH_VOXELS * side)
    consensus = placed(fusion, fusion.mask[0], masks.origin, masks.shape)
    half = np.float32(half_side(masks.spacing, masks.shape[0], masks.positions))
    offset, spread = np.full((2, len(masks.annotators)), np.nan)
    if not consensus.any() or consensus.all():
        return offset, spread
    look = partial(watch, 0.0, "measuring the outline of the consensus")
    near = max(masks.spacing[1:])
    away = signed_distance(consensus, masks.spacing, near, look, masks.positions)
    outline = np.flatnonzero(np.abs(away) <= near / 2)
    reference = away.ravel()[outline]
    if not len(outline):
        return offset, spread
    for p, values in enumerate(masks.values):
        look()
        mask = marked(values)
        if mask.any():
            own = distances.away[p].ravel()[outline]
            for side, other in ((1, ~mask), (-1, mask)):  # beyond what was measured everywhere
                far = np.flatnonzero(own * side >= distances.clip)
                if len(far):
                    apart = distance_at(other, outline[far], masks.spacing, masks.positions, look)
                    own[far] = side * np.minimum(apart - half, reach)
            beyond = own - reference
            offset[p], spread[p] = beyond.mean(), beyond.std()
    return offset, spread


def _where_raters_differ(fusion: MaskFusion, masks: Masks, look: Look) -> tuple[FloatArray, FloatArray]:
    """Give each rater's mean weight and median tau over the voxels where raters differ; NaN without maps."""
    raters = len(fusion.annotators)
    weight, tau = np.full((2, raters), np.nan)
    if fusion.weight is None and fusion.tau is None:
        return weight, tau
    differ = placed(fusion, fusion.mask[0], masks.origin, masks.shape)
    agreed = np.ones(masks.shape, dtype=np.bool_)
    for values in masks.values:
        look()
        layer = marked(values)
        differ |= layer
        agreed &= layer
    differ &= ~agreed
    here = tuple(
        slice(a - b, a - b + n) for a, b, n in zip(fusion.origin, masks.origin, fusion.shape, strict=True)
    )
    places = np.flatnonzero(differ[here])
    if fusion.weight is not None:
        weight[:] = 1.0 / raters
    for p in range(raters if len(places) else 0):
        look()
        if fusion.weight is not None:
            weight[p] = fusion.weight[0, p].ravel()[places].mean() / 255.0
        if fusion.tau is not None:
            tau[p] = np.median(fusion.tau[0, p].ravel()[places].astype(np.float32))
    return weight, tau
