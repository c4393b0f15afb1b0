"""Masks: the undecided voxels after the expert decided the most disputed regions, and fused again."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from raterscope.algorithms.masks.data import OPEN, BoolArray, Masks
from raterscope.algorithms.masks.disputes import disputes
from raterscope.algorithms.masks.fusion import fuse
from raterscope.algorithms.masks.metrics import place_in_frame
from raterscope.algorithms.simulation.mask_crowds import simulate_case
from tests.benchmarks.calibration import Row
from tests.benchmarks.calibration._mask_programs import log_loss
from tests.benchmarks.masks_accuracy import bubil, nodules

__all__ = ["after_decisions", "decision_rows"]

COUNTS = (1, 3, 10, 30, 10_000)
_SPACING = (1.5, 0.9, 0.9)

Crowd = tuple[Masks, BoolArray]
"""Masks, and the true outline."""


@dataclass(frozen=True)
class AfterDecisions:
    """Undecided voxels that raters dispute, before and after some decisions."""

    loss: tuple[float, float]  # mean log loss
    doubt: tuple[float, float]  # sum of the doubt of all undecided voxels
    voxels: int


def after_decisions(
    masks: Masks, truth: BoolArray, count: int, wrong: float = 0.0, seed: int = 0
) -> AfterDecisions:
    """Settle the `count` most disputed regions as the truth has them, and fuse again.

    A share `wrong` of the regions is settled the other way round.
    """
    generator = np.random.default_rng(seed)
    before = fuse(masks)
    known = np.full(masks.shape, OPEN, dtype=np.int8)
    for region in disputes(before, masks)[:count]:
        box = tuple(slice(a, a + n) for a, n in zip(region.origin, region.shape, strict=True))
        inside = truth[box] ^ (generator.random() < wrong)
        known[box] = np.where(region.voxels(), inside, known[box])
    second = fuse(replace(masks, known=known))
    votes = masks.values.sum(axis=0)
    free = (votes > 0) & (votes < len(masks.values)) & (known == OPEN)
    losses, doubts = [], []
    for result in (before, second):
        chance = place_in_frame(result, result.probability[0], masks.origin, masks.shape)[free]
        losses.append(log_loss(chance, truth[free]) if free.any() else 0.0)
        doubt = place_in_frame(result, result.doubt()[0], masks.origin, masks.shape)
        doubts.append(float(doubt[known == OPEN].sum()))
    return AfterDecisions((losses[0], losses[1]), (doubts[0], doubts[1]), int(free.sum()))


def decision_rows(seeds: Sequence[int] = range(5)) -> Iterator[Row]:
    """Decide regions of simulated raters, all correctly and one in five wrongly, and of real raters."""
    made = [simulate_case(seed, (40, 110, 110), _SPACING, 6) for seed in seeds]
    simulated = [(_named(case.masks, _SPACING), case.truth) for case in made]
    for wrong, words in ((0.0, "correct"), (0.2, "1 in 5 wrong")):
        yield from _decided("simulated nodules, 6 raters", simulated, COUNTS, wrong, words)
    for name, cases in _real():
        yield from _decided(name, cases, COUNTS[:3], 0.0, "correct")


def _real() -> Iterator[tuple[str, list[Crowd]]]:
    root = os.environ.get("RATERSCOPE_DATA")
    if root:
        folder = Path(root)
        yield "LIDC, 3 raters, the fourth is true", [(_named(m[:3]), m[3]) for m in nodules(folder)]
        for name in ("ds1", "ds6"):
            crowd = bubil(folder, name, "crowd")
            yield f"BU-BIL {name}, 7 workers", [(_named(m), true) for m, true in crowd if m.any()]


def _named(values: BoolArray, spacing: tuple[float, float, float] = (1.0, 1.0, 1.0)) -> Masks:
    return Masks(np.ascontiguousarray(values), tuple(f"r{p}" for p in range(len(values))), spacing)


def _decided(
    name: str, cases: Sequence[Crowd], counts: Sequence[int], wrong: float, words: str
) -> Iterator[Row]:
    for count in counts:
        results = [
            after_decisions(masks, truth, count, wrong, seed) for seed, (masks, truth) in enumerate(cases)
        ]
        results = [item for item in results if item.voxels]
        if not results:
            continue
        total = sum(item.voxels for item in results)
        old, new = (sum(item.loss[at] * item.voxels for item in results) / total for at in (0, 1))
        number = "all" if count > 1000 else str(count)
        yield Row("masks", f"undecided, log loss, {number} decided {words} (before)", name, old, new, total)
        old, new = (sum(item.doubt[at] for item in results) / total for at in (0, 1))
        yield Row("masks", f"undecided, mean doubt, {number} decided {words} (before)", name, old, new, total)
