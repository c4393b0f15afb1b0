"""Majority vote of masks, voxel by voxel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from raterscope.algorithms.masks.data import (
    OPEN,
    BoolArray,
    Box,
    Float32Array,
    FloatArray,
    MaskFusion,
    Masks,
    MaskTrace,
    make_fusion,
)
from raterscope.algorithms.masks.patterns import Patterns, patterns_of, spread_rows
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.algorithms.settings import Settings, choice


@dataclass(frozen=True)
class MajoritySettings(Settings):
    """Settings of `majority`."""

    ties: str = choice(
        "out", "Ties", "Where as many raters mark a voxel as do not.",
        {"out": "background", "in": "structure"},
    )  # fmt: skip


def majority(masks: Masks, settings: MajoritySettings | None = None, watch: Watch = silent) -> MaskFusion:
    """Select the most frequent label (baseline of the robust fusion paper, section 1).

    Among several structures the most frequent label wins. A tie between the background and a structure is
    resolved by `settings`; between structures, the one named first wins. Maps of probabilities are averaged,
    and a voxel belongs to the structure whose mean is above one half (of several structures, above each
    other's and the background's); they tie as votes do.

    `probability` is the share of votes, or the mean; sensitivity and specificity are agreement with the
    consensus on the box of the result, NaN for maps of probabilities. A notice counts the ties.

    Examples
    --------
    >>> from raterscope.algorithms.masks.data import Masks
    >>> from raterscope.algorithms.simulation.mask_crowds import simulate_case
    >>> case = simulate_case(1, shape=(8, 64, 64), raters=3)
    >>> masks = Masks(case.masks, case.annotators, case.spacing)
    >>> fusion = majority(masks)
    >>> int(fusion.mask.sum()), int(case.truth.sum())  # voxels
    (141, 119)
    """
    settings = MajoritySettings() if settings is None else settings
    ties_in = settings.ties == "in"
    if masks.values.dtype == np.float32:
        return _mean(masks, ties_in, watch)
    patterns = patterns_of(masks, watch=part(watch, 0.0, 0.9))
    share = patterns.votes(masks.weights) / masks.total_weight
    mask, tied = _decide(share, ties_in)
    settled = patterns.settled != OPEN
    share[settled] = np.eye(patterns.classes)[patterns.settled[settled]]
    mask[settled] = share[settled, 1:] > 0.5
    tied &= ~settled
    sensitivity, specificity = _agreement(patterns, mask)
    check = partial(watch, 1.0, "counting the votes")
    return _fusion(
        masks,
        patterns.origin,
        spread_rows(patterns.row, mask.T, check),
        spread_rows(patterns.row, share[:, 1:].astype(np.float32).T, check),
        (sensitivity, specificity),
        int(patterns.count[tied].sum()),
        ties_in,
    )


def _mean(masks: Masks, ties_in: bool, watch: Watch) -> MaskFusion:
    values = masks.values if masks.values.ndim == 5 else masks.values[:, None]
    probability = np.zeros(values.shape[1:], dtype=np.float32)
    for p, maps in enumerate(values):
        watch(p / len(values), "averaging the maps")
        probability += maps if masks.weights is None else np.float32(masks.weights[p]) * maps
    probability /= np.float32(masks.total_weight)
    consensus = np.empty(probability.shape, dtype=np.bool_)
    ties = 0
    for z in range(masks.shape[0]):
        watch(1.0, "averaging the maps")
        inside = np.moveaxis(probability[:, z], 0, -1)
        share = np.concatenate([1.0 - inside.sum(axis=-1, keepdims=True), inside], axis=-1)
        mask, tied = _decide(share, ties_in)
        if masks.known is not None:
            settled = masks.known[z] != OPEN
            share[settled] = np.eye(share.shape[-1])[masks.known[z][settled]]
            mask[settled] = share[settled][:, 1:] > 0.5
            tied &= ~settled
        ties += int(tied.sum())
        consensus[:, z] = np.moveaxis(mask, -1, 0)
        probability[:, z] = np.moveaxis(share[..., 1:], -1, 0)
    unknown = np.full((len(values[0]), len(values)), np.nan)
    return _fusion(masks, (0, 0, 0), consensus, probability, (unknown, unknown), ties, ties_in)


def _decide(share: FloatArray | Float32Array, ties_in: bool) -> tuple[BoolArray, BoolArray]:
    """Return the class with the most votes, and where a structure ties with another class; (..., K)."""
    inside = share[..., 1:]
    best = inside.max(axis=-1, keepdims=True)
    background = share[..., :1]
    enough = (best > background) | (ties_in & (best == background))
    first = np.arange(inside.shape[-1]) == inside.argmax(axis=-1)[..., None]
    tied = (best[..., 0] >= background[..., 0]) & ((share == best).sum(axis=-1) > 1)
    return first & enough, tied


def _agreement(patterns: Patterns, mask: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return the raters' (S, P) sensitivity and specificity against the consensus."""
    rates = []
    for s in range(patterns.classes - 1):
        marked = patterns.labels == s + 1
        inside = patterns.count * mask[:, s]
        outside = patterns.count * ~mask[:, s]
        with np.errstate(invalid="ignore"):
            rates.append((inside @ marked / inside.sum(), outside @ ~marked / outside.sum()))
    sensitivity, specificity = zip(*rates, strict=True)
    return np.stack(sensitivity), np.stack(specificity)


def _fusion(
    masks: Masks,
    origin: Box,
    mask: BoolArray,
    probability: Float32Array,
    rates: tuple[FloatArray, FloatArray],
    tied: int,
    ties_in: bool,
) -> MaskFusion:
    notices = []
    if tied:
        winner = "the structure" if ties_in else "the background"
        if len(masks.structures) > 1:
            winner += ", or of two structures to the one named first"
        notices.append(f"{tied:,} voxels were tied and went to {winner}.")
    elif len(masks.annotators) % 2 == 0:
        notices.append("No voxel was tied.")
    return make_fusion(
        masks,
        "majority",
        origin,
        mask,
        probability,
        (MaskTrace(name="share of votes"),),
        notices,
        sensitivity=rates[0],
        specificity=rates[1],
    )
