"""Fusion of the masks of one image by any of the algorithms, and a report on the result.

The report contains the agreement of the raters with the consensus and each other, and the disputed regions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from raterscope.algorithms.masks.calibration import Calibration, Distances, calibrate, measure_distances
from raterscope.algorithms.masks.catalogue import FUSERS
from raterscope.algorithms.masks.data import (
    OPEN,
    Box,
    FloatArray,
    MaskFusion,
    Masks,
    box_around,
    marked,
    overlap,
    slices_of,
)
from raterscope.algorithms.masks.disputes import Dispute, dispute_by_slice, disputes
from raterscope.algorithms.masks.distance import domain, occupied
from raterscope.algorithms.masks.metrics import Comparison, compare_all, place_in_frame
from raterscope.algorithms.masks.multiclass import multiclass
from raterscope.algorithms.masks.programs import ProgramWeights
from raterscope.algorithms.masks.robust import LaplaceSettings, Measured, RobustSettings
from raterscope.algorithms.masks.voting import MajoritySettings, majority
from raterscope.algorithms.progress import Background, Check, Watch, part, silent, steps_of
from raterscope.algorithms.settings import Plan, Settings

_TOGETHER = ("laplace", "student", "gdp", "gaussian")
"""Algorithms that fuse several structures as classes of one model, by `multiclass`."""

_BY_THEMSELVES = ("mixture", "pstaple", "continuous-staple")
"""Algorithms that fuse each structure separately."""


@dataclass(frozen=True)
class MaskPlan(Plan):
    """Algorithm of `FUSERS` that fuses masks, with its settings; see `Plan`."""

    catalogue = FUSERS
    noun = "algorithm for masks"

    algorithm: str = "laplace"
    settings: Settings = field(default_factory=LaplaceSettings)

    def in_words(self) -> str:
        """Describe the plan, for the methods section."""
        algorithm = FUSERS[self.algorithm]
        return f"Masks were fused by {algorithm.title} ({algorithm.source}): {self.settings.methods_text()}."


def fuse(masks: Masks, plan: MaskPlan | None = None, watch: Watch = silent) -> MaskFusion:
    """Fuse the masks of one image.

    Model-based algorithms use the box around all marked voxels with their clip as margin (`distance.domain`);
    STAPLE and its variants have settings for it. A single rater's masks are returned unchanged. No model is
    fitted if no voxel, or every voxel, is marked by all. Several structures (label maps, probabilities of
    several) are classes of one model if the algorithm has one; otherwise each is fused separately.

    Parameters
    ----------
    masks : Masks
        The masks; settled voxels are held fixed.
    plan : MaskPlan, optional
        By default Laplace.
    watch : Watch

    Returns
    -------
    MaskFusion

    Examples
    --------
    >>> from raterscope.algorithms.masks.data import Masks
    >>> from raterscope.algorithms.simulation.mask_crowds import simulate_case
    >>> case = simulate_case(1, shape=(8, 64, 64), raters=3)
    >>> masks = Masks(case.masks, case.annotators, case.spacing)
    >>> fusion = fuse(masks)
    >>> int(fusion.mask.sum()), int(case.truth.sum())  # voxels
    (141, 119)
    """
    plan = plan or MaskPlan()
    check = partial(watch, 0.0, "finding marked voxels")
    box = occupied(masks, check)
    trivial = _trivial(masks, box)
    if trivial is not None:
        return trivial
    several = len(masks.structures) > 1
    fully = _weight_notices(masks, plan, together=several)
    if fully:
        fusion = fuse(replace(masks, weights=None), plan, watch)
        return replace(fusion, notices=(*fusion.notices, *fully))
    if isinstance(plan.settings, RobustSettings):
        cut = domain(masks, plan.settings.clip, check, box=box)
        if several and plan.algorithm in _TOGETHER:
            return multiclass(cut, plan.settings, plan.algorithm, watch)
        return _run(plan, cut, watch)
    if several and plan.algorithm in _BY_THEMSELVES:
        structures = range(len(masks.structures))
        return stack([_run(plan, _single(masks, s), step) for s, step in steps_of(watch, structures)])
    return _run(plan, masks, watch)


def _weight_notices(masks: Masks, plan: MaskPlan, *, together: bool) -> tuple[str, ...]:
    """Return a notice if the raters' weights have no effect; () if they have, or without weights."""
    algorithm = FUSERS[plan.algorithm]
    weighs = algorithm.weighs and not (together and plan.algorithm in _TOGETHER)
    return replace(algorithm, weighs=weighs).weight_notices(masks.weights)


def stack(fusions: Sequence[MaskFusion]) -> MaskFusion:
    """Stack fusions of single structures by the same raters, on their common box.

    Examples
    --------
    >>> from raterscope.algorithms.masks.data import Masks
    >>> from raterscope.algorithms.simulation.mask_crowds import simulate_case
    >>> case = simulate_case(1, shape=(8, 64, 64), raters=3)
    >>> plan = MaskPlan.make("majority")
    >>> fusions = [fuse(Masks(case.masks, case.annotators, case.spacing, structures=(name,)), plan)
    ...     for name in ("node", "gland")]
    >>> stack(fusions).structures
    ('node', 'gland')
    """
    first = fusions[0]
    origin, shape = box_around((fusion.origin, fusion.shape) for fusion in fusions)

    def laid(name: str) -> Any:
        maps = [getattr(fusion, name) for fusion in fusions]
        if any(layer_map is None for layer_map in maps):
            return None
        stacked = np.zeros((len(fusions), *maps[0].shape[1:-3], *shape), dtype=maps[0].dtype)
        for layer, fusion, values in zip(stacked, fusions, maps, strict=True):
            if name == "distance":
                layer[...] = values.min()  # beyond its part a structure is as far away as distances count
            layer[..., *slices_of(fusion.origin, fusion.shape, origin)] = values[0]
        return stacked

    maps: dict[str, Any] = {
        name: laid(name) for name in ("mask", "probability", "distance", "deviation", "weight", "tau")
    }
    figures: dict[str, Any] = {
        name: np.concatenate([getattr(fusion, name) for fusion in fusions])
        for name in ("bias", "variance", "dof", "sensitivity", "specificity", "sigma")
    }
    return replace(
        first,
        structures=tuple(name for fusion in fusions for name in fusion.structures),
        origin=origin,
        traces=tuple(trace for fusion in fusions for trace in fusion.traces),
        alternatives=(),
        notices=tuple(dict.fromkeys(word for fusion in fusions for word in fusion.notices)),
        **maps,
        **figures,
    )


def _run(plan: MaskPlan, masks: Masks, watch: Watch) -> MaskFusion:
    result: MaskFusion = FUSERS[plan.algorithm].run(masks, plan.settings, watch=watch)
    return result


def _single(masks: Masks, structure: int) -> Masks:
    """Return the masks of one of several structures."""
    values: Any = masks.values[:, structure] if masks.values.ndim == 5 else masks.values == structure + 1
    known = masks.known
    if known is not None:
        known = np.where(known == OPEN, OPEN, known == structure + 1).astype(np.int8)
    return replace(
        masks, values=np.ascontiguousarray(values), structures=(masks.structures[structure],), known=known
    )


def _trivial(masks: Masks, box: tuple[Box, Box] | None) -> MaskFusion | None:
    """Return the fusion of trivial masks; None if a model is needed.

    `box`: box of all marked voxels, see `occupied`.
    """
    if len(masks.annotators) == 1:
        settled = "" if masks.known is None else " except for settled voxels"
        return _as_it_is(masks, f"There is only one rater: the mask is returned unchanged{settled}.")
    if box is None:
        small = _cut_to_nothing(masks)
        return _as_it_is(small, "No rater marked anything: the consensus is empty.")
    if (
        masks.values.dtype != np.float32
        and len(masks.structures) == 1
        and all(layer.all() for layer in masks.values)
    ):
        return _as_it_is(masks, "Every rater marked every voxel: the consensus is all of them.")
    return None


def _as_it_is(masks: Masks, notice: str) -> MaskFusion:
    fusion = majority(domain(masks, 0.0), MajoritySettings())
    return replace(fusion, notices=(notice,))


def _cut_to_nothing(masks: Masks) -> Masks:
    middle = [n // 2 for n in masks.shape]
    centre = tuple(slice(at, at + 1) for at in middle)
    origin = tuple(at + n for at, n in zip(masks.origin, middle, strict=True))
    values: Any = np.ascontiguousarray(masks.values[..., centre[0], centre[1], centre[2]])
    return replace(
        masks,
        values=values,
        known=None if masks.known is None else masks.known[centre],
        origin=(origin[0], origin[1], origin[2]),
    )


@dataclass(frozen=True, eq=False)
class Report:
    """Report on the fusion of one structure of P raters."""

    # tuple of P Comparison: each rater against the consensus; specificity is over the fused box
    compared: tuple[Comparison, ...]
    # pair_dice, pair_hausdorff_95: (P, P): each rater against every other
    pair_dice: FloatArray
    pair_hausdorff_95: FloatArray
    # (P,): each rater's mean share in the consensus where raters differ; NaN without local weights
    weight: FloatArray
    # offset, spread: (P,): mean and standard deviation, over both outlines, of each rater's distance (mm)
    # beyond the consensus; below 0 for a rater short of it; NaN if either is empty. (The bias of a model is
    # over all voxels, which are mostly where all raters agree: it describes outlines poorly.)
    offset: FloatArray
    spread: FloatArray
    disputes: tuple[Dispute, ...]  # the disputed regions, the most uncertain first
    by_slice: FloatArray  # (Z,): uncertain ml in each slice of the image
    volume_ml: float  # of the consensus
    # calibrated outlines; None for a single rater, without marks, and in results of older versions
    calibration: Calibration | None = None
    # (P,): median of each rater's `MaskFusion.tau` over the voxels where raters differ; NaN if undefined,
    # None in results of older versions
    tau: FloatArray | None = None
    # programs that outlined the structure, and comparison of each with the consensus; None without programs
    programs: ProgramWeights | None = None
    programs_compared: tuple[Comparison, ...] = ()

    def chances_wrong(self, fusion: MaskFusion) -> list[float]:
        """Return the mean probability that the consensus is wrong in each disputed region.

        It is based on the probability of the true outline; empty without a calibration.
        """
        if self.calibration is None:
            return []
        return [_chance_wrong(region, fusion, self.calibration) for region in self.disputes]

    @property
    def doubt_ml(self) -> float:
        """Uncertain volume of all disputed regions."""
        return sum(region.doubt_ml for region in self.disputes)


def _chance_wrong(region: Dispute, fusion: MaskFusion, calibration: Calibration) -> float:
    at = slices_of(region.origin, region.shape, calibration.origin)
    inside = place_in_frame(fusion, fusion.mask[0], region.origin, region.shape)
    chance = calibration.part(at).true_outline()
    return float(np.where(inside, 1 - chance, chance)[region.voxels()].mean())


@dataclass(frozen=True, eq=False)
class CaseResult:
    """Result of a run on one image: for each structure, its fusion and the report on it."""

    fusions: tuple[MaskFusion, ...]
    reports: tuple[Report, ...]

    def structures(self) -> tuple[str, ...]:
        """Return the names of the structures."""
        return tuple(fusion.structures[0] for fusion in self.fusions)


def fuse_measured(
    masks: Masks, plan: MaskPlan | None = None, watch: Watch = silent
) -> tuple[MaskFusion, Calibration | None]:
    """Fuse masks of one structure as `fuse` does, and calibrate the outlines for `report_on`.

    The raters' distances are measured once, and released before the maps are made. The calibration runs in
    another thread while a model is fitted to the distances.
    """
    plan = plan or MaskPlan()
    distances = measure_distances(masks, part(watch, 0.0, 0.3))
    fused = part(watch, 0.3, 0.9)
    check = partial(fused, 0.0, "finding marked voxels")
    with Background() as beside:
        calibrated = beside.start(partial(calibrate, masks, beside.watch, distances))
        wait = partial(calibrated, partial(watch, 0.9, "leaving each rater out in turn"))
        cut, box = masks, None
        if isinstance(plan.settings, RobustSettings) and _can_share(masks, plan.settings, distances, check):
            cut = domain(distances.masks, plan.settings.clip, check, copy=False)
            box = distances.part_of(cut)
        if box is None:
            return fuse(masks, plan, fused), wait()
        measured = Measured(distances.away[:, *box], wait)
        del distances
        fusion = FUSERS[plan.algorithm].run(cut, plan.settings, watch=fused, measured=measured)
        return fusion, wait()


def _can_share(masks: Masks, settings: RobustSettings, distances: Distances, check: Check) -> bool:
    """Return whether a robust fusion can use the distances that were measured for the calibration."""
    binary = masks.values.dtype != np.float32 and len(masks.structures) == 1
    return binary and settings.clip <= distances.clip and _trivial(masks, occupied(masks, check)) is None


def report_on(
    fusion: MaskFusion, masks: Masks, watch: Watch = silent, calibration: Calibration | None = None
) -> Report:
    """Compare the fusion of one structure with the masks of the raters.

    `fusion`: fusion of one structure. `masks`: the masks that were fused. `calibration`: calibration of these
    masks, if available.
    """
    with Background() as beside:
        check = partial(beside.watch, 1.0, "adding up the report")
        differing = beside.start(partial(_where_raters_differ, fusion, masks, check))
        compared, pairs, offset, spread = compare_all(masks, fusion, part(watch, 0.0, 0.6))
        weight, tau = differing(partial(watch, 0.6, "adding up the report"))
    if calibration is None:
        calibration = calibrate(masks, part(watch, 0.6, 0.85))
    regions = disputes(fusion, masks, watch=part(watch, 0.85, 1.0))
    check = partial(watch, 1.0, "adding up the report")
    return Report(
        compared=compared,
        pair_dice=pairs.dice,
        pair_hausdorff_95=pairs.hausdorff_95,
        weight=weight,
        offset=offset,
        spread=spread,
        disputes=regions,
        by_slice=dispute_by_slice(fusion, check),
        volume_ml=float(fusion.volumes(fusion.mask[0])) / 1000.0,
        calibration=calibration,
        tau=tau,
    )


def _where_raters_differ(fusion: MaskFusion, masks: Masks, check: Check) -> tuple[FloatArray, FloatArray]:
    """Return each rater's mean weight and median tau where raters differ; NaN without maps."""
    raters = len(fusion.annotators)
    weight, tau = np.full((2, raters), np.nan)
    if fusion.weight is None and fusion.tau is None:
        return weight, tau
    differ = place_in_frame(fusion, fusion.mask[0], masks.origin, masks.shape)
    agreed = np.ones(masks.shape, dtype=np.bool_)
    for values in masks.values:
        check()
        layer = marked(values)
        differ |= layer
        agreed &= layer
    differ &= ~agreed
    part_of_fusion = np.zeros(fusion.shape, dtype=np.bool_)  # either may extend beyond the other
    to, take = overlap(fusion.origin, fusion.shape, masks.origin, masks.shape)
    part_of_fusion[to] = differ[take]
    voxels = np.flatnonzero(part_of_fusion)
    if fusion.weight is not None:
        weight[:] = 1.0 / raters
    for p in range(raters if len(voxels) else 0):
        check()
        if fusion.weight is not None:
            weight[p] = fusion.weight[0, p].ravel()[voxels].mean() / 255.0
        if fusion.tau is not None:
            tau[p] = np.median(fusion.tau[0, p].ravel()[voxels].astype(np.float32))
    return weight, tau
