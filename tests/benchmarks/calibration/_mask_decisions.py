"""Masks: the undecided voxels after the expert decided the most disputed regions, and fused again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from raterscope.algorithms.masks.data import OPEN, BoolArray, Masks
from raterscope.algorithms.masks.disputes import disputes
from raterscope.algorithms.masks.fusion import fuse
from raterscope.algorithms.masks.metrics import place_in_frame
from raterscope.algorithms.simulation.mask_crowds import simulate_case
from tests.benchmarks.calibration import Row

__all__ = ["after_decisions", "decision_rows"]

COUNTS = (1, 3, 10, 30, 10_000)
_SPACING = (1.5, 0.9, 0.9)


def after_decisions(
    masks: Masks, truth: BoolArray, count: int, wrong: float = 0.0, seed: int = 0
) -> tuple[float, float, int]:
    """Return the log loss of the undecided disputed voxels before and after some decisions, and their number.

    The `count` most disputed regions are settled as the truth has them, a share `wrong` of them the other
    way round.
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
    losses = []
    for result in (before, second):
        chance = place_in_frame(result, result.probability[0], masks.origin, masks.shape)[free].astype(float)
        chance = np.clip(chance, 1e-3, 1 - 1e-3)
        losses.append(float(-np.log(np.where(truth[free], chance, 1 - chance)).mean()))
    return losses[0], losses[1], int(free.sum())


def decision_rows(seeds: Sequence[int] = range(5)) -> Iterator[Row]:
    """Decide regions of simulated raters, all correctly and one in five wrongly."""
    cases = [simulate_case(seed, (40, 110, 110), _SPACING, 6) for seed in seeds]
    for wrong, words in ((0.0, "correct"), (0.2, "1 in 5 wrong")):
        for count in COUNTS:
            results = [
                after_decisions(Masks(item.masks, tuple("abcdef"), _SPACING), item.truth, count, wrong, seed)
                for seed, item in zip(seeds, cases, strict=True)
            ]
            results = [item for item in results if item[2]]
            if not results:
                continue
            total = sum(item[2] for item in results)
            old, new = (sum(item[at] * item[2] for item in results) / total for at in (0, 1))
            number = "all" if count > 1000 else str(count)
            name = f"undecided, log loss, {number} decided {words} (before)"
            yield Row("masks", name, "simulated nodules, 6 raters", old, new, total)
