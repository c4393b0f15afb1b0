"""PSTAPLE: STAPLE of raters who gave probabilities, with a Markov random field.

As section 4.2 of [audelan2022]_ describes it.

References
----------
.. [akhondi2013] A. Akhondi-Asl and S. K. Warfield, "Simultaneous truth and performance level estimation
   through fusion of probabilistic segmentations", IEEE Transactions on Medical Imaging 32 (2013) 1840-1852.
.. [audelan2022] B. Audelan, D. Hamzaoui, S. Montagne, R. Renard-Penna and H. Delingette, "Robust Bayesian
   fusion of continuous segmentation maps", Medical Image Analysis 78 (2022) 102398,
   doi:10.1016/j.media.2022.102398.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from raterscope.algorithms.masks.data import OPEN, Float32Array, FloatArray, MaskFusion, Masks, MaskTrace
from raterscope.algorithms.masks.distance import domain, signed_distance
from raterscope.algorithms.masks.results import fused
from raterscope.algorithms.masks.staple import DOMAINS, MARGIN, START, background_in_words, rates, relax
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.algorithms.settings import Settings, choice, integer, number

__all__ = ["PSTAPLESettings", "pstaple"]

_AT_ONCE = 500_000
"""Voxels between two looks whether the work is still wanted."""


@dataclass(frozen=True)
class PSTAPLESettings(Settings):
    """Settings of `pstaple`."""

    mrf: float = number(
        2.0, "Spatial smoothing", "What a neighbour of the same class adds to a voxel's log odds; 2 in the "
        "robust fusion paper, 0 for none.", minimum=0.0, maximum=20.0,
    )  # fmt: skip
    slope: float = number(
        5.0, "Slope", "Of the sigmoid that makes probabilities of masks' signed distances.",
        unit="/mm", minimum=0.01, maximum=100.0,
    )  # fmt: skip
    domain: str = choice(
        "masks", "Voxels that count", "The background that all agree on enters the prior and the "
        "specificities; counted over the whole image, the consensus is larger.", DOMAINS,
    )  # fmt: skip
    margin: float = number(
        MARGIN, "Margin", "Around all masks, of the voxels that are looked at.", unit="mm", minimum=0.1,
        maximum=1000.0, advanced=True,
    )  # fmt: skip
    iterations: int = integer(300, "Iterations", "At most.", minimum=1, maximum=100_000, advanced=True)
    tolerance: float = number(
        1e-5, "Tolerance", "Change of every rate beneath which this ends.", minimum=0.0, maximum=0.1,
        advanced=True,
    )  # fmt: skip


def pstaple(masks: Masks, settings: PSTAPLESettings | None = None, watch: Watch = silent) -> MaskFusion:
    """Estimate the consensus of probabilities and each rater's rates together.

    The equations are derived here from the method's description, and not taken from its authors. A rater's
    probability u is u of a vote for the structure and 1 - u of one for the background, so that the log odds
    of a voxel are those of the prior, plus u log(p / (1 - q)) + (1 - u) log((1 - p) / q) for each rater of
    sensitivity p and specificity q, plus the field's: `mrf` times the sum of 2 w - 1 over the posteriors w of
    the neighbours by faces (6 in a volume, 4 in an image), by mean field. The rates are the raters' mean
    votes weighed by the posteriors. With masks alone and no field this is STAPLE but for the slope at the
    outline, which makes votes near it count less. Structures are fused one by one.

    Parameters
    ----------
    masks : Masks
        Masks and labels become probabilities by the sigmoid of `slope` times the signed distance (mm).
    settings : PSTAPLESettings, optional
    watch : Watch

    Returns
    -------
    MaskFusion
        The trace is the lower bound without the field's normalising constant; it never falls by more than
        rounding.

    Examples
    --------
    >>> from raterscope.algorithms.masks.data import Masks
    >>> from raterscope.algorithms.simulation.raters import simulate_case
    >>> case = simulate_case(1, shape=(8, 64, 64), raters=3)
    >>> masks = Masks(case.masks, case.annotators, case.spacing)
    >>> fusion = pstaple(masks)
    >>> int(fusion.mask.sum()), int(case.truth.sum())  # voxels
    (131, 119)
    """
    settings = PSTAPLESettings() if settings is None else settings
    cut = domain(masks, settings.margin, partial(watch, 0.0, "looking for what is marked"))
    frame = masks.frame or masks.shape
    voxels = math.prod(frame) if settings.domain == "frame" else math.prod(cut.shape)
    count = len(masks.structures)
    probability = np.empty((count, *cut.shape), dtype=np.float32)
    figures, traces = [], []
    for s in range(count):
        look = part(watch, s / count, (s + 1) / count)
        votes = _votes(cut, s, settings, part(look, 0.0, 0.2))
        beyond = voxels - votes[0].size
        probability[s], figure, trace = _run(cut, s, votes, beyond, settings, part(look, 0.2, 1.0))
        figures.append(figure)
        traces.append(trace)
    z, y, x = (at - start for at, start in zip(cut.origin, masks.origin, strict=True))
    notices = [background_in_words(masks, voxels, settings.domain)]
    if count > 1:
        notices.append("Structures were fused one by one and may overlap.")
    if not all(trace.converged for trace in traces):
        notices.append(f"The rates still changed after {settings.iterations:,} iterations.")
    sensitivity, specificity = (np.concatenate(each) for each in zip(*figures, strict=True))
    return fused(
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
    """Give each rater's probability of one structure; (P, Z, Y, X)."""
    out = np.empty((len(masks.values), *masks.shape), dtype=np.float32)
    for p, values in enumerate(masks.values):
        look = partial(watch, p / len(out), f"measuring distances of {masks.annotators[p]}")
        look()
        if masks.values.dtype == np.float32:
            out[p] = values if values.ndim == 3 else values[structure]
        else:
            mask = values == structure + 1
            distance = signed_distance(mask, masks.spacing, settings.margin, look, masks.positions)
            away, target = distance.ravel(), out[p].ravel()
            for begin in range(0, len(away), _AT_ONCE):
                look()
                here = slice(begin, begin + _AT_ONCE)
                target[here] = 1.0 / (1.0 + np.exp(-settings.slope * away[here]))
    return out


def _run(
    masks: Masks, structure: int, votes: Float32Array, beyond: int, settings: PSTAPLESettings, watch: Watch
) -> tuple[Float32Array, tuple[FloatArray, FloatArray], MaskTrace]:
    """Iterate on one structure; `beyond` voxels outside are background to everybody."""
    raters, shape = len(votes), votes.shape[1:]
    flat = votes.reshape(raters, -1)
    inside = np.empty(raters)
    for p, each in enumerate(flat):
        watch(0.0, "counting the votes")
        inside[p] = each.sum(dtype=np.float64)
    whole = flat.shape[1] + beyond
    share = float(inside.sum()) / (raters * whole)
    prior = np.array([1 - share, share])
    settled = np.full(flat.shape[1], OPEN, dtype=np.int8)
    field = np.empty((*shape, 2), dtype=np.float32)
    for begin in range(0, flat.shape[1], _AT_ONCE):
        watch(0.0, "counting the votes")
        here = slice(begin, begin + _AT_ONCE)
        field.reshape(-1, 2)[here, 1] = flat[:, here].mean(axis=0)
    if masks.known is not None:
        known = masks.known.ravel()
        settled = np.where(known == OPEN, OPEN, known == structure + 1).astype(np.int8)
        held = settled.reshape(shape)
        field[..., 1][held >= 0] = held[held >= 0]
    field[..., 0] = 1 - field[..., 1]
    row = np.arange(flat.shape[1], dtype=np.int64).reshape(shape)
    theta = np.repeat(np.array([[[START, 1 - START], [1 - START, START]]]), raters, axis=0)
    evidence = np.empty((flat.shape[1], 2))
    objective: list[float] = []
    converged = False
    for turn in range(settings.iterations):
        words = f"estimating the raters' rates, iteration {turn + 1}"
        log_theta = np.log(np.clip(theta, 1e-300, 1.0))
        report = partial(watch, turn / settings.iterations, words)
        slope = (log_theta[:, :, 1] - log_theta[:, :, 0]).T.astype(np.float32)
        constant = np.log(np.maximum(prior, 1e-300)) + log_theta[:, :, 0].sum(axis=0)
        for begin in range(0, flat.shape[1], _AT_ONCE):
            report()
            here = slice(begin, begin + _AT_ONCE)
            evidence[here] = (slope @ flat[:, here]).T
            evidence[here] += constant
        total, bound = relax(row, evidence, settled, settings.mrf, field, report)
        outside = math.log(max(prior[0], 1e-300)) + float(log_theta[:, 0, 0].sum())
        objective.append(bound + beyond * outside)
        weight, marked = np.zeros(2), np.zeros((raters, 2))
        for begin in range(0, flat.shape[1], _AT_ONCE):
            report()
            here = slice(begin, begin + _AT_ONCE)
            weight += total[here].sum(axis=0)
            marked += flat[:, here] @ field.reshape(-1, 2)[here]
        weight[0] += beyond
        before = theta.copy()
        for k in (0, 1):
            if weight[k] > 0:
                theta[:, k, 1] = np.clip(marked[:, k] / weight[k], 0.0, 1.0)
                theta[:, k, 0] = 1 - theta[:, k, 1]
        watch((turn + 1) / settings.iterations, words, objective=objective[-1])
        if np.abs(theta - before).max() < settings.tolerance:
            converged = True
            break
    return field[..., 1], rates(theta, weight), MaskTrace(np.array(objective), converged, "lower bound")
