"""Comparison of methods on the same masks: bounds, times, agreement with raters and truth.

The comparison is that of the robust fusion paper [audelan2022]_, section 4.2: lower bounds and times
(Fig. 11), overlap with a reference and distances to it (Figs. 13 and 14, Tables 4 and 5).

References
----------
.. [audelan2022] B. Audelan, D. Hamzaoui, S. Montagne, R. Renard-Penna and H. Delingette, "Robust Bayesian
   fusion of continuous segmentation maps", Medical Image Analysis 78 (2022) 102398,
   doi:10.1016/j.media.2022.102398.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from raterscope.algorithms.annotators.statistics import wilcoxon
from raterscope.algorithms.masks.data import BoolArray, Box, FloatArray, MaskFusion, Masks, MasksError, marked
from raterscope.algorithms.masks.fusion import MaskPlan, fuse
from raterscope.algorithms.masks.metrics import RaterAgreement, compare_pairwise, place_in_frame
from raterscope.algorithms.masks.robust import RobustSettings
from raterscope.algorithms.progress import Watch, part, silent, steps_of

MEASURES = {
    "dice": "Dice",
    "hausdorff_95": "HD95",
    "hausdorff": "Hausdorff distance",
    "mean_surface_distance": "mean surface distance",
}
"""Measures of agreement: attributes of `RaterAgreement`."""

MIN_CASES = 6
"""Minimum number of cases for a two-sided signed-rank test below 0.05."""

_TRUTH = "\n"
"""Name of the truth in agreement matrices; raters cannot have it."""


@dataclass(frozen=True, eq=False)
class MethodFit:
    """Result of one method on one structure of one case."""

    method: str  # a key of `FUSERS`
    seconds: float  # of the fusion alone
    # final lower bound of the robust models, whose bounds are comparable because they refer to the same
    # evidence; NaN for other methods
    bound: float
    iterations: int
    converged: bool
    volume_ml: float  # of the consensus
    mask: BoolArray | None = None  # (Z, Y, X): the consensus
    origin: Box = (0, 0, 0)  # (slice, row, column): the first voxel of `mask` in the whole image


@dataclass(frozen=True, eq=False)
class MethodComparison:
    """Comparison of M methods on one structure of one case with P raters."""

    structure: str
    annotators: tuple[str, ...]  # (P,)
    fits: tuple[MethodFit, ...]  # tuple of M MethodFit
    agreement: RaterAgreement  # of every pair among raters, methods, and the truth if known
    truth: bool  # whether it is known
    problems: tuple[tuple[str, str], ...] = ()  # tuple of (method, sentence): methods that failed

    def table(self, measure: str) -> FloatArray:
        """Return a measure for every pair of masks, in the order of `agreement`; NaN if both are empty."""
        values = np.asarray(getattr(self.agreement, measure))
        return np.where(np.isnan(self.agreement.dice), math.nan, values)

    def against_truth(self, measure: str) -> tuple[FloatArray, FloatArray]:
        """Compare raters, (P,), and methods, (M,), with the truth.

        `measure`: a key of `MEASURES`. Lengths are in mm. Results are NaN if no truth is known or both masks
        are empty, inf if one is empty.
        """
        raters = len(self.annotators)
        if not self.truth:
            return np.full(raters, math.nan), np.full(len(self.fits), math.nan)
        column = self.table(measure)[:-1, -1]
        return column[:raters], column[raters:]

    def among_raters(self, measure: str) -> tuple[FloatArray, FloatArray]:
        """Compare raters, (P, P - 1), and methods, (M, P), with each rater; see `against_truth`.

        Each rater is compared with the others, and each consensus with each rater; every rater contributed to
        every consensus.
        """
        raters = len(self.annotators)
        table = self.table(measure)
        others = ~np.eye(raters, dtype=bool)
        return (
            table[:raters, :raters][others].reshape(raters, max(raters - 1, 0)),
            table[raters : raters + len(self.fits), :raters],
        )


def compare_methods(
    masks: Masks, plans: Sequence[MaskPlan], truth: BoolArray | None = None, watch: Watch = silent
) -> MethodComparison:
    """Fuse the same masks by several methods, and measure the results.

    `masks`: masks of one structure.
    `plans`: each algorithm at most once.
    `truth`: (Z, Y, X), the true mask on the grid of the masks' values. Times are those of a second fusion in
    this process, with compiled code already loaded. Raises `MasksError` for masks of several structures, or
    if no method succeeds.
    """
    if len(masks.structures) != 1:
        raise MasksError(f"masks of {len(masks.structures)} structures; expected one at a time.")
    _load_code(masks, plans, partial(watch, 0.0, "loading the methods"))
    fits: list[MethodFit] = []
    problems, layers = [], [marked(values) for values in masks.values]
    for plan, step in steps_of(part(watch, 0.0, 0.8), plans):
        begun = time.perf_counter()
        try:
            fusion = fuse(masks, plan, part(step, 0.0, 1.0, f"{plan.algorithm}: "))
        except (MasksError, ArithmeticError, np.linalg.LinAlgError) as error:
            problems.append((plan.algorithm, str(error)))
            continue
        fits.append(_fit(plan, fusion, time.perf_counter() - begun))
        layers.append(place_in_frame(fusion, fusion.mask[0], masks.origin, masks.shape))
    if not fits:
        raise MasksError(problems[0][1] if problems else "no method was chosen.")
    names = [*masks.annotators, *(f"\n{fit.method}" for fit in fits)]
    if truth is not None:
        layers.append(np.asarray(truth, dtype=np.bool_))
        names.append(_TRUTH)
    every = replace(masks, values=np.array(layers), annotators=tuple(names), known=None)
    return MethodComparison(
        structure=masks.structures[0],
        annotators=masks.annotators,
        fits=tuple(fits),
        agreement=compare_pairwise(every, part(watch, 0.8, 1.0)),
        truth=truth is not None,
        problems=tuple(problems),
    )


def signed_ranks(values: FloatArray, baseline: FloatArray) -> float:
    """Return the two-sided p value of Wilcoxon's signed-rank test of a method against a baseline over cases.

    `values`, `baseline`: (C,), a value for each case. The result is NaN with fewer than `MIN_CASES` cases
    in which both are finite.
    """
    both = np.isfinite(values) & np.isfinite(baseline)
    if both.sum() < MIN_CASES:
        return math.nan
    return float(wilcoxon(values[both], baseline[both]).p_value)


def quartiles(values: FloatArray) -> tuple[float, float, float, float, float]:
    """Return lower whisker, lower quartile, median, upper quartile and upper whisker of a box plot.

    `values`: (V,), finite, at least one. The whiskers end at the last values within 1.5 interquartile ranges
    of the box.
    """
    low, middle, high = np.percentile(values, (25, 50, 75)).tolist()
    reach = 1.5 * (high - low)
    within = values[(values >= low - reach) & (values <= high + reach)]
    return float(min(within.min(), low)), low, middle, high, float(max(within.max(), high))


def _fit(plan: MaskPlan, fusion: MaskFusion, seconds: float) -> MethodFit:
    trace = fusion.traces[0]
    known = isinstance(plan.settings, RobustSettings) and len(trace.objective)
    return MethodFit(
        method=plan.algorithm,
        seconds=seconds,
        bound=float(trace.objective[-1]) if known else math.nan,
        iterations=len(trace.objective),
        converged=trace.converged,
        volume_ml=float(fusion.volumes(fusion.mask[0])) / 1000.0,
        mask=fusion.mask[0],
        origin=fusion.origin,
    )


def _load_code(masks: Masks, plans: Sequence[MaskPlan], check: partial[None]) -> None:
    """Fuse a few voxels by each method, so that timing excludes compilation."""
    slices = min(masks.shape[0], 4)
    values: Any = np.zeros((len(masks.annotators), slices, 12, 12), dtype=masks.values.dtype)
    values[:, :, 4:8, 4:8] = 1
    values[-1, :, 4:8, 8] = 1
    few = Masks(values, masks.annotators)
    for plan in plans:
        check()
        fuse(few, plan)
