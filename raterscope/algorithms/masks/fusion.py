"""From the masks of one image to a consensus, by any of the algorithms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from raterscope.algorithms.catalogue import Plan
from raterscope.algorithms.masks.catalogue import FUSERS
from raterscope.algorithms.masks.data import OPEN, MaskFusion, Masks
from raterscope.algorithms.masks.distance import domain, occupied
from raterscope.algorithms.masks.mixture import MixtureSettings
from raterscope.algorithms.masks.multiclass import multiclass
from raterscope.algorithms.masks.robust import LaplaceSettings, RobustSettings
from raterscope.algorithms.masks.voting import MajoritySettings, majority
from raterscope.algorithms.progress import Look, Watch, part, silent
from raterscope.algorithms.settings import Settings

__all__ = ["MaskPlan", "fuse", "stack"]

_TOGETHER = ("laplace", "student", "gdp", "gaussian")
"""Those that fuse several structures as classes of one model by `multiclass`."""

_BY_THEMSELVES = ("mixture", "pstaple", "continuous-staple")
"""Those that know one structure alone."""


@dataclass(frozen=True)
class MaskPlan(Plan):
    """Algorithm of `FUSERS` that fuses masks, with its settings; see `Plan`."""

    catalogue = FUSERS
    noun = "algorithm for masks"

    algorithm: str = "laplace"
    settings: Settings = field(default_factory=LaplaceSettings)

    def in_words(self) -> str:
        """Describe the plan, for the methods section."""
        algorithm, words = FUSERS[self.algorithm], self.settings.in_words()
        if isinstance(self.settings, (RobustSettings, MixtureSettings)):
            words += f"; differences from the paper: {', '.join(self.settings.departures())}"
        return f"Masks were fused by {algorithm.title} ({algorithm.source}): {words}."


def fuse(masks: Masks, plan: MaskPlan | None = None, watch: Watch = silent) -> MaskFusion:
    """Fuse the masks of one image.

    The model's algorithms look at the box about all that is marked, and their clip about that
    (`distance.domain`); what counts for STAPLE and its kin is in their settings. A single rater's masks are
    returned as they are; where nobody marked anything, or everybody everything, no model is fitted. Several
    structures (label maps, probabilities of several) are classes of one model where the algorithm has one;
    else each is fused by itself.

    Parameters
    ----------
    masks : Masks
        What is settled in them is held fixed.
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
    look = partial(watch, 0.0, "looking for what is marked")
    trivial = _trivial(masks, look)
    if trivial is not None:
        return trivial
    several = len(masks.structures) > 1
    if isinstance(plan.settings, RobustSettings):
        here = domain(masks, plan.settings.clip, look)
        if several and plan.algorithm in _TOGETHER:
            return multiclass(here, plan.settings, plan.algorithm, watch)
        return _run(plan, here, watch)
    if several and plan.algorithm in _BY_THEMSELVES:
        count = len(masks.structures)
        return stack(
            [_run(plan, _single(masks, s), part(watch, s / count, (s + 1) / count)) for s in range(count)]
        )
    return _run(plan, masks, watch)


def stack(fusions: Sequence[MaskFusion]) -> MaskFusion:
    """Put fusions of single structures by the same raters together, on the box about them all.

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
    low = np.min([one.origin for one in fusions], axis=0)
    high = np.max([np.add(one.origin, one.shape) for one in fusions], axis=0)
    shape = tuple(int(n) for n in high - low)

    def laid(name: str) -> Any:
        maps = [getattr(one, name) for one in fusions]
        if any(one is None for one in maps):
            return None
        whole = np.zeros((len(fusions), *maps[0].shape[1:-3], *shape), dtype=maps[0].dtype)
        for layer, one, values in zip(whole, fusions, maps, strict=True):
            if name == "distance":
                layer[...] = values.min()  # beyond its part a structure is as far away as distances count
            corner = np.subtract(one.origin, low)
            there = tuple(slice(at, at + n) for at, n in zip(corner, one.shape, strict=True))
            layer[..., there[0], there[1], there[2]] = values[0]
        return whole

    maps: dict[str, Any] = {
        name: laid(name) for name in ("mask", "probability", "distance", "deviation", "weight", "tau")
    }
    figures: dict[str, Any] = {
        name: np.concatenate([getattr(one, name) for one in fusions])
        for name in ("bias", "variance", "dof", "sensitivity", "specificity", "sigma")
    }
    return replace(
        first,
        structures=tuple(name for one in fusions for name in one.structures),
        origin=(int(low[0]), int(low[1]), int(low[2])),
        traces=tuple(trace for one in fusions for trace in one.traces),
        alternatives=(),
        notices=tuple(dict.fromkeys(word for one in fusions for word in one.notices)),
        **maps,
        **figures,
    )


def _run(plan: MaskPlan, masks: Masks, watch: Watch) -> MaskFusion:
    result: MaskFusion = FUSERS[plan.algorithm].run(masks, plan.settings, watch=watch)
    return result


def _single(masks: Masks, structure: int) -> Masks:
    """Take one structure out of several."""
    values: Any = masks.values[:, structure] if masks.values.ndim == 5 else masks.values == structure + 1
    known = masks.known
    if known is not None:
        known = np.where(known == OPEN, OPEN, known == structure + 1).astype(np.int8)
    return replace(
        masks, values=np.ascontiguousarray(values), structures=(masks.structures[structure],), known=known
    )


def _trivial(masks: Masks, look: Look) -> MaskFusion | None:
    """Answer where there is nothing to estimate; None where there is."""
    if len(masks.annotators) == 1:
        settled = "" if masks.known is None else " but for what is settled"
        return _as_it_is(masks, f"There is only one rater: the mask is returned unchanged{settled}.")
    if occupied(masks, look) is None:
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
    found = majority(domain(masks, 0.0), MajoritySettings())
    return replace(found, notices=(notice,))


def _cut_to_nothing(masks: Masks) -> Masks:
    middle = [n // 2 for n in masks.shape]
    here = tuple(slice(at, at + 1) for at in middle)
    origin = tuple(at + n for at, n in zip(masks.origin, middle, strict=True))
    values: Any = np.ascontiguousarray(masks.values[..., here[0], here[1], here[2]])
    return replace(
        masks,
        values=values,
        known=None if masks.known is None else masks.known[here],
        origin=(origin[0], origin[1], origin[2]),
    )
