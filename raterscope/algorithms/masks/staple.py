"""STAPLE and PSTAPLE: estimation of the raters' rates and the truth by EM.

See section 4.2 of [audelan2022]_.

References
----------
.. [warfield2004] S. K. Warfield, K. H. Zou and W. M. Wells, "Simultaneous truth and performance level
   estimation (STAPLE): an algorithm for the validation of image segmentation", IEEE Transactions on Medical
   Imaging 23 (2004) 903-921, doi:10.1109/TMI.2004.828354.
.. [akhondi2013] A. Akhondi-Asl and S. K. Warfield, "Simultaneous truth and performance level estimation
   through fusion of probabilistic segmentations", IEEE Transactions on Medical Imaging 32 (2013) 1840-1852.
.. [audelan2022] B. Audelan, D. Hamzaoui, S. Montagne, R. Renard-Penna and H. Delingette, "Robust Bayesian
   fusion of continuous segmentation maps", Medical Image Analysis 78 (2022) 102398,
   doi:10.1016/j.media.2022.102398.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.data import (
    OPEN,
    BoolArray,
    Float32Array,
    FloatArray,
    MaskFusion,
    Masks,
    MaskTrace,
    make_fusion,
)
from raterscope.algorithms.masks.distance import domain, signed_distance
from raterscope.algorithms.masks.voting import Patterns, patterns_of, spread_rows, widened
from raterscope.algorithms.progress import Check, Watch, part, parts_of, silent, steps_of
from raterscope.algorithms.settings import Settings, choice, integer, number

DOMAINS = {"masks": "the box around all masks, with a margin", "frame": "the whole image"}
"""Domains in words; the common background determines the prevalence of the structure."""

MARGIN = 2.763
"""Margin around all masks, mm: the clip of signed distances in the robust fusion, logit(1 - 1e-6) / 5."""

START = 0.99999
"""Initial sensitivity and specificity of every rater."""

_WORK = 2_000_000
"""Number of terms between two progress reports."""

_SLAB = 200_000
"""Number of voxels between two progress reports."""


@dataclass(frozen=True)
class STAPLESettings(Settings):
    """Settings of `staple`."""

    domain: str = choice(
        "masks", "Voxels that count", "The agreed background affects the prior and the specificities; "
        "counted over the whole image, the consensus is larger.", DOMAINS,
    )  # fmt: skip
    margin: float = number(
        MARGIN, "Margin", "Margin of counted voxels around all masks.", unit="mm", minimum=0.0, maximum=1e4,
        advanced=True,
    )  # fmt: skip
    mrf: float = number(
        0.0, "Spatial smoothing", "Increase of a voxel's log odds by each neighbour of the same class "
        "(Markov random field by mean field); 0 for no smoothing.", minimum=0.0, maximum=20.0,
    )  # fmt: skip
    iterations: int = integer(
        2000, "Iterations", "Maximum number of iterations.", minimum=1, maximum=100_000, advanced=True
    )
    tolerance: float = number(
        1e-9, "Tolerance", "Convergence: maximum change of a rate; with smoothing, a thousand times this.",
        minimum=0.0, maximum=0.1, advanced=True,
    )  # fmt: skip


def staple(masks: Masks, settings: STAPLESettings | None = None, watch: Watch = silent) -> MaskFusion:
    """Estimate the consensus and each rater's sensitivity and specificity together.

    Voxels with equal labels of all raters are merged, which is exact; with smoothing, each voxel is a
    separate term. Label maps of several structures are fused together, with a confusion matrix for each
    rater; maps of probabilities count as marked above one half. The prior is the raters' mean share of each
    class over the voxels that count; rates start at 0.99999. Settled voxels enter the raters' rates.

    With smoothing the prior is multiplied by exp(mrf x neighbours of the same class), neighbours by faces
    (6 in a volume, 4 in an image), and the posterior is that of mean field: two half-sweeps an iteration.

    A voxel belongs to the most probable class; a single structure needs a probability above one half. The
    trace is the log likelihood, or with smoothing the lower bound without the field's normalising constant;
    neither falls by more than rounding errors. Rates of a class without votes are NaN.
    """
    settings = STAPLESettings() if settings is None else settings
    smooth = settings.mrf > 0
    patterns = patterns_of(masks, settings.margin if smooth else 0.0, part(watch, 0.0, 0.4))
    voxels = counted_voxels(masks, patterns, settings.domain, settings.margin)
    count = patterns.counted_over(voxels).astype(np.float64)
    prior = (count @ patterns.votes(masks.weights)) / (voxels * masks.total_weight)
    theta = _start(len(masks.annotators), patterns.classes)
    run = _smoothed if smooth else _merged
    posterior, weight, trace = run(
        patterns, count, prior, theta, settings, part(watch, 0.4, 1.0), masks.weights
    )
    check = partial(watch, 1.0, "computing the consensus")
    inside, mask = _decided(posterior, check)
    if not smooth:
        inside, mask = spread_rows(patterns.row, inside, check), spread_rows(patterns.row, mask, check)
    sensitivity, specificity = rates(theta, weight)
    notices = [background_in_words(masks, voxels, settings.domain)]
    if not trace.converged:
        notices.append(f"Did not converge in {settings.iterations:,} iterations: the rates still changed.")
    return make_fusion(
        masks,
        "staple",
        patterns.origin,
        mask,
        inside,
        (trace,),
        notices,
        sensitivity=sensitivity,
        specificity=specificity,
    )


def _decided(posterior: FloatArray | Float32Array, check: Check) -> tuple[Float32Array, BoolArray]:
    """Return the structures' probabilities, and the masks of the most probable class; (S, ...)."""
    shape = (posterior.shape[-1] - 1, *posterior.shape[:-1])
    every = posterior.reshape(-1, posterior.shape[-1])
    inside = np.empty((shape[0], len(every)), dtype=np.float32)
    mask = np.empty(inside.shape, dtype=np.bool_)
    for begin in range(0, len(every), _SLAB):
        check()
        block = slice(begin, begin + _SLAB)
        chosen = every[block].argmax(axis=1)
        for s in range(shape[0]):
            inside[s, block] = every[block, s + 1]
            mask[s, block] = chosen == s + 1
    return inside.reshape(shape), mask.reshape(shape)


def counted_voxels(masks: Masks, patterns: Patterns, domain: str, margin: float) -> int:
    """Count the voxels of the whole image, or of the box around all masks with a margin (mm)."""
    frame = masks.frame or masks.shape
    if domain == "frame":
        return math.prod(frame)
    if patterns.marked is None:
        return math.prod(patterns.shape)
    origin, shape = patterns.marked
    z, y, x = (at + start for at, start in zip(origin, masks.origin, strict=True))
    region = widened(((z, y, x), shape), masks.spacing, margin, frame, masks.slice_positions)
    return math.prod(region[1])


def background_in_words(masks: Masks, voxels: int, domain: str) -> str:
    """State the domain over which the background was counted, in voxels or, for 2D images, pixels."""
    noun = "pixels" if (masks.frame or masks.shape)[0] == 1 else "voxels"
    return f"The background was counted over {voxels:,} {noun} ({DOMAINS[domain]})."


def rates(theta: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (S, P) sensitivities and specificities of each structure from confusion matrices.

    `theta`: (P, K, K), the probability that a rater gives the last index if the middle one is true.
    `weight`: (K,), voxels of each class.
    """
    known = np.where(weight[:, None] > 0, theta, np.nan)
    sensitivity, specificity = [], []
    for s in range(1, len(weight)):
        others = (np.arange(len(weight)) != s) & (weight > 0)
        sensitivity.append(known[:, s, s])
        if others.any():
            quiet = 1.0 - theta[:, others, s]
            specificity.append(quiet @ weight[others] / weight[others].sum())
        else:
            specificity.append(np.full(len(theta), np.nan))
    return np.stack(sensitivity), np.stack(specificity)


def relax(
    row: NDArray[np.int64],
    evidence: FloatArray,
    settled: NDArray[np.int8],
    strength: float,
    field: Float32Array,
    report: Callable[[], None],
) -> tuple[FloatArray, float]:
    """Update a field by mean field once, in two half-sweeps; return its sums and the lower bound.

    `row`: (Z, Y, X), each voxel's row of `evidence` and `settled`.
    `evidence`: (M, K), the logarithm of prior times likelihood.
    `settled`: (M,), settled class, below 0 if not settled. `strength`: increase of the logarithm by a
    neighbour of the same class.
    `field`: (Z, Y, X, K), the voxels' distributions; overwritten.
    `report`: called regularly. The sums, (M, K), are over the distributions by row. The bound lacks the
    field's normalising constant.
    """
    from raterscope.algorithms.masks._staple_kernels import field_totals, sweep

    slabs = parts_of(math.prod(row.shape[:2]), _SLAB // row.shape[2])
    for parity in (0, 1):
        for start, stop in slabs:
            report()
            sweep(row, evidence, settled, strength, parity, start, stop, field)
    total, bound = np.zeros(evidence.shape), 0.0  # `zeros_like` would write all of it before the next report
    for start, stop in slabs:
        report()
        bound += field_totals(row, evidence, strength, start, stop, field, total)
    return total, bound


def _start(raters: int, classes: int) -> FloatArray:
    rates = np.full((classes, classes), (1 - START) / (classes - 1))
    np.fill_diagonal(rates, START)
    return np.repeat(rates[None], raters, axis=0)


def _merged(
    patterns: Patterns,
    count: FloatArray,
    prior: FloatArray,
    theta: FloatArray,
    settings: STAPLESettings,
    watch: Watch,
    weights: FloatArray | None,
) -> tuple[FloatArray, FloatArray, MaskTrace]:
    """Run on patterns; return posterior (M, K), voxels of each class (K,), and trace."""
    from raterscope.algorithms.masks._staple_kernels import run_patterns

    posterior = np.empty((len(count), patterns.classes))
    objective = np.empty(settings.iterations)
    batch = max(1, _WORK // (patterns.labels.size * patterns.classes))
    done, converged = 0, False
    while done < settings.iterations and not converged:
        turns, converged = run_patterns(
            patterns.labels, patterns.settled, count, prior, settings.tolerance, theta, posterior,
            objective[done : done + batch], weights,
        )  # fmt: skip
        done += turns
        watch(
            done / settings.iterations,
            f"estimating the raters' rates, iteration {done}",
            objective=float(objective[done - 1]),
        )
    return posterior, count @ posterior, MaskTrace(objective[:done].copy(), converged, "log likelihood")


def _smoothed(
    patterns: Patterns,
    count: FloatArray,
    prior: FloatArray,
    theta: FloatArray,
    settings: STAPLESettings,
    watch: Watch,
    weights: FloatArray | None,
) -> tuple[Float32Array, FloatArray, MaskTrace]:
    """Run on voxels; return posterior (Z, Y, X, K), voxels of each class (K,), and trace."""
    from raterscope.algorithms.masks._staple_kernels import maximise, pattern_evidence

    evidence = np.empty((len(count), patterns.classes))
    pattern_evidence(patterns.labels, theta, prior, evidence, weights)
    beyond = count[0] - patterns.count[0]
    share = patterns.votes(weights) / (patterns.labels.shape[1] if weights is None else weights.sum())
    fixed = patterns.settled >= 0
    share[fixed] = np.eye(patterns.classes)[patterns.settled[fixed]]
    start = share.astype(np.float32)
    field = np.empty((*patterns.row.shape, patterns.classes), dtype=np.float32)
    rows, field_rows = patterns.row.ravel(), field.reshape(-1, patterns.classes)
    for begin in range(0, len(rows), _SLAB):
        watch(0.0, "counting the votes")
        field_rows[begin : begin + _SLAB] = start[rows[begin : begin + _SLAB]]
    objective: list[float] = []
    converged = False
    for turn in range(settings.iterations):
        text = f"estimating the raters' rates, iteration {turn + 1}"
        fraction = turn / settings.iterations
        total, bound = relax(
            patterns.row, evidence, patterns.settled, settings.mrf, field, partial(watch, fraction, text)
        )
        objective.append(bound + (beyond * float(evidence[0, 0]) if beyond else 0.0))
        total[0, 0] += beyond
        change = maximise(patterns.labels, total, theta)
        watch((turn + 1) / settings.iterations, text, objective=objective[-1])
        if change < 1e3 * settings.tolerance:
            converged = True
            break
        pattern_evidence(patterns.labels, theta, prior, evidence, weights)
    return field, total.sum(axis=0), MaskTrace(np.array(objective), converged, "lower bound")


_AT_ONCE = 500_000
"""Voxels between two calls of the check."""


@dataclass(frozen=True)
class PSTAPLESettings(Settings):
    """Settings of `pstaple`."""

    mrf: float = number(
        2.0, "Spatial smoothing", "Increase of a voxel's log odds by each neighbour of the same class; 2 "
        "in the robust fusion paper, 0 for none.", minimum=0.0, maximum=20.0,
    )  # fmt: skip
    slope: float = number(
        5.0, "Slope", "Slope of the sigmoid that maps masks' signed distances to probabilities.",
        unit="/mm", minimum=0.01, maximum=100.0,
    )  # fmt: skip
    domain: str = choice(
        "masks", "Voxels that count", "The agreed background affects the prior and the specificities; "
        "counted over the whole image, the consensus is larger.", DOMAINS,
    )  # fmt: skip
    margin: float = number(
        MARGIN, "Margin", "Margin of counted voxels around all masks.", unit="mm", minimum=0.1,
        maximum=1000.0, advanced=True,
    )  # fmt: skip
    iterations: int = integer(
        300, "Iterations", "Maximum number of iterations.", minimum=1, maximum=100_000, advanced=True
    )
    tolerance: float = number(
        1e-5, "Tolerance", "Convergence: maximum change of a rate.", minimum=0.0, maximum=0.1,
        advanced=True,
    )  # fmt: skip


def pstaple(masks: Masks, settings: PSTAPLESettings | None = None, watch: Watch = silent) -> MaskFusion:
    """Estimate the consensus of probabilities and each rater's rates together.

    The equations are derived here from the description of the method. A rater's probability u counts as u
    votes for the structure and 1 - u for the background, so that the log odds of a voxel are those of the
    prior, plus u log(p / (1 - q)) + (1 - u) log((1 - p) / q) for each rater of sensitivity p and specificity
    q, plus the field's: `mrf` times the sum of 2 w - 1 over the posteriors w of the neighbours by faces (6 in
    a volume, 4 in an image), by mean field. The rates are the raters' mean votes weighted by the posteriors.
    With masks and without a field this is STAPLE except near the outline, where the sigmoid lets votes count
    less. Structures are fused separately.

    `masks`: masks and labels become probabilities by the sigmoid of `slope` times the signed distance (mm).
    The trace is the lower bound without the field's normalising constant; it never falls by more than
    rounding errors.
    """
    settings = PSTAPLESettings() if settings is None else settings
    cut = domain(masks, settings.margin, partial(watch, 0.0, "finding marked voxels"))
    frame = masks.frame or masks.shape
    voxels = math.prod(frame) if settings.domain == "frame" else math.prod(cut.shape)
    count = len(masks.structures)
    probability = np.empty((count, *cut.shape), dtype=np.float32)
    figures, traces = [], []
    for s, check in steps_of(watch, range(count)):
        votes = _votes(cut, s, settings, part(check, 0.0, 0.2))
        beyond = voxels - votes[0].size
        probability[s], figure, trace = _run(cut, s, votes, beyond, settings, part(check, 0.2, 1.0))
        figures.append(figure)
        traces.append(trace)
    z, y, x = (at - start for at, start in zip(cut.origin, masks.origin, strict=True))
    notices = [background_in_words(masks, voxels, settings.domain)]
    if count > 1:
        notices.append("Structures were fused separately and may overlap.")
    if not all(trace.converged for trace in traces):
        notices.append(f"Did not converge in {settings.iterations:,} iterations: the rates still changed.")
    sensitivity, specificity = (np.concatenate(figure) for figure in zip(*figures, strict=True))
    return make_fusion(
        masks,
        "pstaple",
        (z, y, x),
        probability > 0.5,
        probability,
        tuple(traces),
        notices,
        sensitivity=sensitivity,
        specificity=specificity,
    )


def _votes(masks: Masks, structure: int, settings: PSTAPLESettings, watch: Watch) -> Float32Array:
    """Return each rater's probability of one structure; (P, Z, Y, X)."""
    out = np.empty((len(masks.values), *masks.shape), dtype=np.float32)
    for p, values in enumerate(masks.values):
        check = partial(watch, p / len(out), f"measuring distances of {masks.annotators[p]}")
        check()
        if masks.values.dtype == np.float32:
            out[p] = values if values.ndim == 3 else values[structure]
        else:
            mask = values == structure + 1
            distance = signed_distance(mask, masks.spacing, settings.margin, check, masks.positions)
            away, target = distance.ravel(), out[p].ravel()
            for begin in range(0, len(away), _AT_ONCE):
                check()
                block = slice(begin, begin + _AT_ONCE)
                target[block] = 1.0 / (1.0 + np.exp(-settings.slope * away[block]))
    return out


def _run(
    masks: Masks, structure: int, votes: Float32Array, beyond: int, settings: PSTAPLESettings, watch: Watch
) -> tuple[Float32Array, tuple[FloatArray, FloatArray], MaskTrace]:
    """Iterate on one structure; `beyond`: number of voxels outside, which are background to all raters."""
    raters, shape = len(votes), votes.shape[1:]
    flat = votes.reshape(raters, -1)
    inside = np.empty(raters)
    for p, rater in enumerate(flat):
        watch(0.0, "counting the votes")
        inside[p] = rater.sum(dtype=np.float64)
    voxels = flat.shape[1] + beyond
    share = float(inside.sum()) / (raters * voxels)
    prior = np.array([1 - share, share])
    settled = np.full(flat.shape[1], OPEN, dtype=np.int8)
    field = np.empty((*shape, 2), dtype=np.float32)
    for begin in range(0, flat.shape[1], _AT_ONCE):
        watch(0.0, "counting the votes")
        block = slice(begin, begin + _AT_ONCE)
        field.reshape(-1, 2)[block, 1] = flat[:, block].mean(axis=0)
    if masks.known is not None:
        known = masks.known.ravel()
        settled = np.where(known == OPEN, OPEN, known == structure + 1).astype(np.int8)
        fixed = settled.reshape(shape)
        field[..., 1][fixed >= 0] = fixed[fixed >= 0]
    field[..., 0] = 1 - field[..., 1]
    row = np.arange(flat.shape[1], dtype=np.int64).reshape(shape)
    theta = np.repeat(np.array([[[START, 1 - START], [1 - START, START]]]), raters, axis=0)
    evidence = np.empty((flat.shape[1], 2))
    objective: list[float] = []
    converged = False
    for turn in range(settings.iterations):
        text = f"estimating the raters' rates, iteration {turn + 1}"
        log_theta = np.log(np.clip(theta, 1e-300, 1.0))
        report = partial(watch, turn / settings.iterations, text)
        slope = (log_theta[:, :, 1] - log_theta[:, :, 0]).T.astype(np.float32)
        constant = np.log(np.maximum(prior, 1e-300)) + log_theta[:, :, 0].sum(axis=0)
        for begin in range(0, flat.shape[1], _AT_ONCE):
            report()
            block = slice(begin, begin + _AT_ONCE)
            evidence[block] = (slope @ flat[:, block]).T
            evidence[block] += constant
        total, bound = relax(row, evidence, settled, settings.mrf, field, report)
        outside = math.log(max(prior[0], 1e-300)) + float(log_theta[:, 0, 0].sum())
        objective.append(bound + beyond * outside)
        weight, marked = np.zeros(2), np.zeros((raters, 2))
        for begin in range(0, flat.shape[1], _AT_ONCE):
            report()
            block = slice(begin, begin + _AT_ONCE)
            weight += total[block].sum(axis=0)
            marked += flat[:, block] @ field.reshape(-1, 2)[block]
        weight[0] += beyond
        before = theta.copy()
        for k in (0, 1):
            if weight[k] > 0:
                theta[:, k, 1] = np.clip(marked[:, k] / weight[k], 0.0, 1.0)
                theta[:, k, 0] = 1 - theta[:, k, 1]
        watch((turn + 1) / settings.iterations, text, objective=objective[-1])
        if np.abs(theta - before).max() < settings.tolerance:
            converged = True
            break
    return field[..., 1], rates(theta, weight), MaskTrace(np.array(objective), converged, "lower bound")
