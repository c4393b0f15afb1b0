"""What is said of a fusion besides its maps: how raters stand to it and to each other, and where to look."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raterscope.algorithms.masks.data import FloatArray, MaskFusion, Masks
from raterscope.algorithms.masks.disputes import Dispute, dispute_by_slice, disputes
from raterscope.algorithms.masks.metrics import Comparison, against, pairwise, placed
from raterscope.algorithms.progress import Watch, part, silent

__all__ = ["CaseResult", "Report", "report_on"]


@dataclass(frozen=True, eq=False)
class Report:
    """What is said of the fusion of one structure of P raters.

    Attributes
    ----------
    compared : tuple of P Comparison
        Each rater against the consensus; specificity is over the box that was fused.
    pair_dice, pair_hausdorff_95 : (P, P) float64
        Each rater against every other.
    weight : (P,) float64
        Each rater's mean share of the consensus where raters differ; NaN without local weights.
    disputes : tuple of Dispute
        The disputed regions, those with the most doubt first.
    by_slice : (Z,) float64
        ml of doubt in each slice of the whole image.
    volume_ml : float
        Of the consensus.
    """

    compared: tuple[Comparison, ...]
    pair_dice: FloatArray
    pair_hausdorff_95: FloatArray
    weight: FloatArray
    disputes: tuple[Dispute, ...]
    by_slice: FloatArray
    volume_ml: float

    @property
    def doubt_ml(self) -> float:
        """Doubt in all disputed regions."""
        return sum(region.doubt_ml for region in self.disputes)


@dataclass(frozen=True, eq=False)
class CaseResult:
    """What a run says of one image: for each structure by itself, its fusion and what is said of it."""

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
    pairs = pairwise(masks, 0, part(watch, 0.2, 0.7))
    found = disputes(fusion, masks, watch=part(watch, 0.7, 1.0))
    return Report(
        compared=against(masks, fusion, 0, part(watch, 0.0, 0.2)),
        pair_dice=pairs.dice,
        pair_hausdorff_95=pairs.hausdorff_95,
        weight=_weight(fusion, masks),
        disputes=found,
        by_slice=dispute_by_slice(fusion),
        volume_ml=float(fusion.mask[0].sum()) * fusion.voxel_volume / 1000.0,
    )


def _weight(fusion: MaskFusion, masks: Masks) -> FloatArray:
    if fusion.weight is None:
        return np.full(len(fusion.annotators), np.nan)
    marked = masks.values > 0.5
    differ = placed(fusion, fusion.mask[0], masks.origin, masks.shape) | marked.any(axis=0)
    differ &= ~marked.all(axis=0)
    here = tuple(
        slice(a - b, a - b + n) for a, b, n in zip(fusion.origin, masks.origin, fusion.shape, strict=True)
    )
    where = differ[here]
    if not where.any():
        return np.full(len(fusion.annotators), 1.0 / len(fusion.annotators))
    return np.array([layer[where].mean() / 255.0 for layer in fusion.weight[0]])
