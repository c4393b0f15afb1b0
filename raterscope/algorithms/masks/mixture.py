"""Mixture of consensuses: one outline for each group of raters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks._grouping import Grouping, RaterErrors, evidence, group_raters, rater_errors
from raterscope.algorithms.masks.data import (
    OPEN,
    Alternative,
    BoolArray,
    Float32Array,
    FloatArray,
    MaskFusion,
    Masks,
    MaskTrace,
    make_fusion,
)
from raterscope.algorithms.masks.distance import domain, logit_distance, signed_distance
from raterscope.algorithms.progress import Check, Watch, part, silent, steps_of
from raterscope.algorithms.settings import Settings, integer, number, switch

_EMPTY = 1e-10
"""Share of the raters below which a consensus is empty (Algorithm 1)."""

_SMALLEST = 1e-12
"""Minimum variance, as a share of the data's mean square; below it a variance has collapsed."""


@dataclass(frozen=True)
class MixtureSettings(Settings):
    """Settings of `mixture`."""

    max_consensuses: int = integer(
        3, "Maximum consensuses", "Maximum number to search for.", minimum=1, maximum=9
    )
    slope: float = number(
        5.0, "Slope", "Slope of the sigmoid between distances and probabilities.", unit="/mm", minimum=0.01,
        maximum=100.0,
    )  # fmt: skip
    clip: float = number(5.0, "Clip", "Largest distance that counts.", unit="mm", minimum=0.1, maximum=100.0)
    as_published: bool = switch(
        False,
        "As published",
        "Uncorrected published version: Algorithm 1, which in practice finds no second consensus.",
        advanced=True,
    )
    iterations: int = integer(
        200, "Iterations", "Limit for each consensus of Algorithm 1.", minimum=1, maximum=10000,
        advanced=True,
    )  # fmt: skip

    def departures(self) -> tuple[str, ...]:
        """List the differences from Algorithm 1 of the robust fusion paper, as clauses for a report."""
        if self.as_published:
            return ("distances are clipped",)
        return (
            "groupings of raters are compared by their evidence instead of Algorithm 1",
            "an image counts as its effective number of independent positions",
            "raters have biases, and variances with a common log-normal prior",
        )


@dataclass(frozen=True, eq=False)
class _Mixed:
    """Responsibilities (P, M), variances (P,) mm², and the trace of the objective."""

    responsibility: FloatArray
    variance: FloatArray
    trace: MaskTrace
    gain: float = 0.0


def mixture(masks: Masks, settings: MixtureSettings | None = None, watch: Watch = silent) -> MaskFusion:
    """Estimate one or several consensuses and their raters (robust fusion paper, section 3).

    This is a variant. The paper's Algorithm 1 adds a consensus with soft initial responsibilities, in the
    space of the raters' principal components; the first consensus, which is not updated any more, then keeps
    every rater. Here, groupings are compared instead. The model is the paper's (eq. 29, Gaussian, one
    variance for each rater) with integrated consensuses. The image counts as its effective number of
    independent positions instead of its number of voxels. Raters' variances have a common log-normal prior,
    and every rater has a bias. A consensus is added if it increases the evidence by more than the cost of an
    outline (Schwarz) and of the choice among splits. A rater's responsibilities compare the evidence of the
    groupings in which only that rater changes group. Each consensus follows eq. 32. With `as_published`,
    Algorithm 1 of the paper is used.

    The mean square difference of consensuses must be larger than that of two raters of one group. A constant
    shift of the contour is a bias and does not separate groups. A group of one is a rater whose outline
    differs by more than the raters' scatter. Two raters cannot be divided into groups.

    `masks`: the grouping is the same for all structures. The result is the heaviest consensus, on the box of
    the masks with `clip` as margin; `alternatives` holds all of them, the heaviest first, and is empty if
    there is only one.
    """
    settings = MixtureSettings() if settings is None else settings
    inner = domain(masks, settings.clip, partial(watch, 0.0, "finding marked voxels"))
    distances = _distances(inner, settings, part(watch, 0.0, 0.4))
    work = part(watch, 0.4, 0.8)
    if settings.as_published:
        mixed = _printed(distances, settings, work)
    else:
        mixed = _grouped(inner, distances, settings, work)
    weight = mixed.responsibility.mean(axis=0)
    order = np.argsort(-weight, kind="stable")
    outlines = []
    for index, m in enumerate(order):
        check = partial(watch, 0.8 + 0.2 * index / len(order), "computing the consensuses")
        drawn = _consensus(distances, mixed.responsibility[:, m], mixed.variance, check)
        outlines.append(_settle(inner, drawn, settings, check))
    mask, probability, distance = outlines[0]
    fusion = make_fusion(
        inner,
        "mixture",
        (0, 0, 0),
        mask,
        probability,
        (mixed.trace,),
        _words(inner, mixed, order, settings.as_published),
        distance=distance,
        variance=np.tile(mixed.variance, (len(masks.structures), 1)),
    )
    watch(1.0, "computed the consensuses")
    if len(order) == 1:
        return fusion
    alternatives = tuple(
        Alternative(float(weight[m]), mixed.responsibility[:, m], inside, share)
        for m, (inside, share, _) in zip(order, outlines, strict=True)
    )
    return replace(fusion, alternatives=alternatives)


def _distances(masks: Masks, settings: MixtureSettings, watch: Watch) -> Float32Array:
    """Return signed distances, (P, S, Z, Y, X), mm."""
    raters, structures = len(masks.annotators), len(masks.structures)
    distances = np.empty((raters, structures, *masks.shape), dtype=np.float32)
    for p in range(raters):
        for s in range(structures):
            check = partial(watch, (p + s / structures) / raters, "measuring distances")
            check()
            values = masks.values[p, s] if masks.values.ndim == 5 else masks.values[p]
            if values.dtype == np.float32:
                distances[p, s] = logit_distance(
                    values.astype(np.float32, copy=False), settings.clip, settings.slope, check
                )
            else:
                mask = values == s + 1
                distances[p, s] = signed_distance(mask, masks.spacing, settings.clip, check, masks.positions)
    return distances


def _grouped(masks: Masks, distances: Float32Array, settings: MixtureSettings, watch: Watch) -> _Mixed:
    errors = _errors(masks, distances, settings.clip, part(watch, 0.0, 0.6))
    path = group_raters(errors, settings.max_consensuses, part(watch, 0.6, 0.9))
    best = path[-1]
    responsibility = _responsibility(errors, best, part(watch, 0.9, 1.0))
    scores = np.array([grouping.score for grouping in path])
    return _Mixed(
        responsibility,
        np.maximum(best.variance, _SMALLEST),
        MaskTrace(scores, True, "evidence of the grouping"),
        float(scores[-1] - scores[0]),
    )


def _errors(masks: Masks, distances: Float32Array, clip: float, watch: Watch) -> RaterErrors:
    """Sum the products over structures; effective positions are weighted by share of the squares."""
    use = np.ones(masks.shape, dtype=np.bool_) if masks.known is None else masks.known == OPEN
    count, spacing = len(masks.structures), masks.spacing
    if masks.positions is not None and masks.shape[0] > 1:  # correlation of errors by the mean distance
        mean = float(masks.positions[-1] - masks.positions[0]) / (masks.shape[0] - 1)
        spacing = (mean, *spacing[1:])
    errors = [
        rater_errors(distances[:, s], spacing, clip, use, step) for s, step in steps_of(watch, range(count))
    ]
    squares = np.array([error.products.trace() for error in errors])
    effective = np.array([error.places for error in errors])
    total = float(squares.sum())
    together = total**2 / float(np.sum(squares**2 / effective)) if total > 0 else 1.0
    return RaterErrors(
        np.sum([error.products for error in errors], axis=0), together, errors[0].voxels * count
    )


def _responsibility(errors: RaterErrors, best: Grouping, watch: Watch) -> FloatArray:
    """Return the normalised evidence when only this rater changes to each group, (P, M)."""
    raters, groups = len(best.groups), int(best.groups.max()) + 1
    if groups == 1:
        return np.ones((raters, 1))
    score = np.full((raters, groups), best.score)
    for p in range(raters):
        watch(p / raters, "comparing groupings of the raters")
        for m in range(groups):
            if m != best.groups[p]:
                moved = best.groups.copy()
                moved[p] = m
                score[p, m] = evidence(errors, moved).score
    share = np.exp(score - score.max(axis=1, keepdims=True))
    return np.asarray(share / share.sum(axis=1, keepdims=True))


def _printed(distances: Float32Array, settings: MixtureSettings, watch: Watch) -> _Mixed:
    """Run Algorithm 1 on the raters' scores on all principal components."""
    scores, voxels = _principal(distances, part(watch, 0.0, 0.5))
    raters, size = scores.shape
    variance = np.full(raters, max(float(np.mean(scores**2)), _SMALLEST))
    smallest = _SMALLEST * float(variance[0])
    centres, spreads = np.empty((0, size)), np.empty(0)
    responsibility = np.ones((raters, 1))
    objective: list[float] = []
    for m in range(settings.max_consensuses):
        if m:
            residual = np.abs(scores[:, None] - centres).sum(axis=(1, 2))
            fresh = residual / max(float(residual.sum()), _SMALLEST)
            responsibility = np.column_stack([np.tile((1 - fresh)[:, None] / m, (1, m)), fresh])
        centre, spread = _centre(scores, responsibility[:, m], variance)
        before = -np.inf
        for _ in range(settings.iterations):
            watch(0.5 + 0.5 * m / settings.max_consensuses, f"fitting consensus {m + 1}")
            all_centres, all_spreads = np.vstack([centres, centre]), np.append(spreads, spread)
            squares = ((scores[:, None] - all_centres) ** 2).sum(axis=2) + size * all_spreads
            share = np.maximum(responsibility.mean(axis=0), 1e-300)
            fit = -size / 2 * np.log(2 * np.pi * variance)[:, None] - squares / (2 * variance[:, None])
            log = np.log(share) + fit
            responsibility = np.exp(log - log.max(axis=1, keepdims=True))
            responsibility /= responsibility.sum(axis=1, keepdims=True)
            variance = np.maximum((responsibility * squares).sum(axis=1) / max(size, 1), smallest)
            centre, spread = _centre(scores, responsibility[:, m], variance)
            bound = float(
                np.sum(np.log(np.exp(log - log.max(axis=1, keepdims=True)).sum(axis=1)) + log.max(axis=1))
            )
            bound += size / 2 * float(np.log(all_spreads).sum())
            objective.append(bound)
            if abs(bound - before) <= 1e-9 * abs(bound):
                break
            before = bound
        if m and responsibility[:, m].mean() < _EMPTY:
            responsibility = responsibility[:, :m]
            responsibility /= responsibility.sum(axis=1, keepdims=True)
            break
        centres, spreads = np.vstack([centres, centre]), np.append(spreads, spread)
    kept = responsibility.mean(axis=0) > _EMPTY
    return _Mixed(responsibility[:, kept], variance * max(size, 1) / voxels, MaskTrace(np.array(objective)))


def _principal(distances: Float32Array, watch: Watch) -> tuple[FloatArray, int]:
    """Return scores on the principal components of the raters' maps, (P, P - 1), and the voxels of a map."""
    raters = len(distances)
    products = np.zeros((raters, raters))
    voxels = distances[0].size
    for s in range(distances.shape[1]):
        for z in range(distances.shape[2]):
            watch((s + z / distances.shape[2]) / distances.shape[1], "finding the principal components")
            flat = distances[:, s, z].reshape(raters, -1).astype(np.float64)
            flat -= flat.mean(axis=0)
            products += flat @ flat.T
    values, vectors = np.linalg.eigh(products)
    return vectors[:, 1:] * np.sqrt(np.maximum(values[1:], 0.0)), voxels


def _centre(scores: FloatArray, responsibility: FloatArray, variance: FloatArray) -> tuple[FloatArray, float]:
    """Apply eqs. 31 and 32."""
    precision = responsibility / variance
    spread = 1.0 / max(float(precision.sum()), 1e-300)
    return spread * (precision @ scores), spread


def _consensus(
    distances: Float32Array, responsibility: FloatArray, variance: FloatArray, check: Check
) -> Float32Array:
    """Apply eq. 32 to the voxels: (S, Z, Y, X), mm."""
    precision = responsibility / variance
    share = (precision / precision.sum()).astype(np.float32)
    total = np.zeros(distances.shape[1:], dtype=np.float32)
    for weight, values in zip(share, distances, strict=True):
        check()
        if weight > 0:
            total += weight * values
    return total


def _settle(
    masks: Masks, distance: Float32Array, settings: MixtureSettings, check: Check
) -> tuple[BoolArray, Float32Array, Float32Array]:
    """Assign each voxel to the structure with the largest distance above 0, or as settled."""
    if masks.known is not None:
        for s in range(len(distance)):
            distance[s][masks.known != OPEN] = -settings.clip
            distance[s][masks.known == s + 1] = settings.clip
    mask = distance > 0
    if len(distance) > 1:
        first = np.argmax(distance, axis=0)
        mask &= np.arange(len(distance))[:, None, None, None] == first
    probability = np.empty(distance.shape, dtype=np.float32)
    for s, z in np.ndindex(distance.shape[:2]):
        check()
        lost = np.logaddexp(np.float32(0), np.float32(-settings.slope) * distance[s, z])
        probability[s, z] = np.exp(-lost)
    return mask, probability, distance


def _words(masks: Masks, mixed: _Mixed, order: NDArray[np.intp], as_published: bool) -> Iterator[str]:
    if as_published:
        yield "This is the paper's Algorithm 1 as published, which seldom finds a second consensus."
    else:
        yield (
            "This is a variant of the paper's mixture of consensuses: groupings of the raters are compared "
            "by their evidence, with an image's effective number of independent positions."
        )
    raters = len(masks.annotators)
    if len(order) == 1:
        if raters == 2:
            yield "Two raters cannot be divided into groups: there is one consensus."
        elif raters > 2:
            yield "One consensus explains all raters: there is no alternative."
        return
    follows = mixed.responsibility.argmax(axis=1)
    sides = "; ".join(
        ", ".join(masks.annotators[p] for p in range(raters) if follows[p] == m) or "none" for m in order
    )
    yield f"The raters follow {len(order)} consensuses: {sides}."
    if mixed.gain:
        yield f"The log evidence for more than one consensus is {mixed.gain:.1f}."
