"""Masks: left-out raters and gold outlines against the maps and bands of the others."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.calibration import LEVELS, Calibration, calibrate, pool_calibrations
from raterscope.algorithms.masks.data import BoolArray, Masks
from raterscope.algorithms.masks.gold_cases import calibrate_with_truth
from raterscope.algorithms.masks.leave_one_out import neighbours
from raterscope.algorithms.simulation.mask_crowds import simulate_case
from tests.benchmarks.calibration import Row
from tests.benchmarks.calibration._mask_decisions import decision_rows
from tests.benchmarks.calibration._mask_programs import calibration_error, log_loss, program_rows
from tests.benchmarks.masks_accuracy import bubil, nodules

_ROUND = 4
"""Raters that are left out of a case at most."""

Case = tuple[BoolArray, BoolArray | None]
Spacing = tuple[float, float, float]


def rows() -> list[Row]:
    """Measure the three products on development data and on simulated raters of a known outline."""
    results: list[Row] = []
    for name, cases, spacing in _sets():
        results += _another_rater(name, cases, spacing, None)
        results += _another_rater(f"{name}, two raters", cases, spacing, 2)
        if cases[0][1] is not None:
            results += _true_outline(name, cases, spacing)
            results += _with_gold(name, cases, spacing)
    results += decision_rows()
    results += program_rows()
    return results


def products(values: BoolArray, spacing: Spacing) -> Calibration | None:
    """Calibrate masks on the whole of their array."""
    masks = Masks(np.ascontiguousarray(values), tuple(f"rater {p}" for p in range(len(values))), spacing)
    return calibrate(masks)


def whole(
    calibration: Calibration, values: NDArray[np.float32], shape: tuple[int, ...], beyond: float = 0.0
) -> NDArray[np.float32]:
    """Lay a map on the whole image."""
    out = np.full(shape, beyond, dtype=np.float32)
    out[tuple(slice(at, at + n) for at, n in zip(calibration.origin, values.shape, strict=True))] = values
    return out


def beyond(calibration: Calibration, mask: BoolArray) -> NDArray[np.float64]:
    """Return |mean| over scale along the outline of a mask; beyond the maps it is far."""
    ratio = whole(calibration, calibration.ratio, mask.shape, -1e6)
    crossed = [np.abs(ratio[voxel] + ratio[other]) / 2 for voxel, other in neighbours(mask)]
    return np.concatenate(crossed).astype(np.float64) if crossed else np.empty(0)


def _sets() -> Iterator[tuple[str, list[Case], Spacing]]:
    root = os.environ.get("RATERSCOPE_DATA")
    if root:
        folder = Path(root)
        yield "LIDC, 4 radiologists", [(values, None) for values in nodules(folder)], (1.0, 1.0, 1.0)
        for name in ("ds1", "ds6"):
            yield f"BU-BIL {name}, 7 workers", list(bubil(folder, name, "crowd")), (1.0, 1.0, 1.0)
    else:
        print("RATERSCOPE_DATA is not set: simulated raters alone", file=sys.stderr)
    spacing = (1.5, 0.9, 0.9)
    results = [simulate_case(seed, (40, 110, 110), spacing, 6) for seed in range(10)]
    yield "simulated nodules, 6 raters", [(item.masks, item.truth) for item in results], spacing


def _another_rater(name: str, cases: Sequence[Case], spacing: Spacing, raters: int | None) -> Iterator[Row]:
    """Leave raters out; what even cases give is judged on the odd cases, and what odd give on the even."""
    left_out = [
        (number, result, values[remaining].sum(axis=0), values[p])
        for number, (values, _) in enumerate(cases)
        for p, remaining in _rests(number, len(values), raters)
        if (result := products(values[remaining], spacing)) is not None
    ]
    chances, shares, marks = [], [], []
    covered: dict[int, list[NDArray[np.floating]]] = {}
    for half in (0, 1):
        here = [item for item in left_out if item[0] % 2 == half]
        others = [item[1] for item in left_out if item[0] % 2 != half]
        if not here:
            continue
        learnt = pool_calibrations([without_ratios(here[0][1]), *others])[0]
        for number, result, votes, mask in here:
            disputed = (votes > 0) & (votes < result.raters)
            chance = replace(result, curve=learnt.curve).another_rater()
            chances.append(whole(result, chance, votes.shape)[disputed])
            shares.append(votes[disputed] / result.raters)
            marks.append(mask[disputed])
            away = beyond(result, mask)
            covered.setdefault(number, []).append((away[:, None] <= learnt.multipliers).mean(axis=0))
    chance, share, mark = (np.concatenate(item) for item in (chances, shares, marks))
    yield Row("masks", "another rater, log loss (vote share)", name, log_loss(share, mark),
              log_loss(chance, mark), len(mark))  # fmt: skip
    yield Row("masks", "another rater, calibration error (goal)", name, 0.05,
              calibration_error(chance, mark), len(mark))  # fmt: skip
    by_case = np.array([np.mean(item, axis=0) for item in covered.values()])
    for at, level in enumerate(LEVELS):
        error = float(by_case[:, at].std(ddof=1) / np.sqrt(len(by_case)))
        yield Row("masks", f"band of another rater, {100 * level:.0f} %", name, level,
                  float(by_case[:, at].mean()), len(by_case), error)  # fmt: skip


def _rests(number: int, raters: int, kept: int | None) -> Iterator[tuple[int, list[int]]]:
    """Return raters to be left out of a case, each with the others, or with as many of them as are kept."""
    for p in sorted((number + turn) % raters for turn in range(min(_ROUND, raters))):
        remaining = [q for q in range(raters) if q != p]
        yield (
            p,
            remaining
            if kept is None
            else [remaining[(number + p + j) % len(remaining)] for j in range(kept)],
        )


def without_ratios(calibration: Calibration) -> Calibration:
    """Take a case's own left-out raters away, so that it does not judge itself."""
    return replace(calibration, ratios=None, tried=None, marked=None)


def _with_gold(name: str, cases: Sequence[Case], spacing: Spacing) -> Iterator[Row]:
    """Estimate offset and correlation from some cases, and judge them on the rest beside the assumption."""
    results = [products(values, spacing) for values, _ in cases]
    usable = [(item, *case) for item, case in zip(results, cases, strict=True) if item is not None]
    for count in (3, 10):
        assumed, estimated, truths = [], [], []
        gold = {round(at * len(usable) / count) for at in range(count)}
        parts = [
            truth[tuple(slice(at, at + n) for at, n in zip(item.origin, item.ratio.shape, strict=True))]
            if number in gold and truth is not None
            else None
            for number, (item, _, truth) in enumerate(usable)
        ]
        for number, item in enumerate(calibrate_with_truth([item for item, _, _ in usable], parts)):
            before, values, truth = usable[number]
            if number in gold or truth is None:
                continue
            votes = values.sum(axis=0)
            disputed = (votes > 0) & (votes < len(values))
            assumed.append(whole(before, before.true_outline(), votes.shape)[disputed])
            estimated.append(whole(item, item.true_outline(), votes.shape)[disputed])
            truths.append(truth[disputed])
        if truths:
            right = np.concatenate(truths)
            yield Row("masks", f"true outline, {count} gold, log loss (0 gold)", name,
                      log_loss(np.concatenate(assumed), right), log_loss(np.concatenate(estimated), right),
                      len(right))  # fmt: skip
            yield Row("masks", f"true outline, {count} gold, error (0 gold)", name,
                      calibration_error(np.concatenate(assumed), right),
                      calibration_error(np.concatenate(estimated), right), len(right))  # fmt: skip


def _true_outline(name: str, cases: Sequence[Case], spacing: Spacing) -> Iterator[Row]:
    chances, shares, truths, covered = [], [], [], []
    for values, truth in cases:
        result = products(values, spacing)
        if result is None or truth is None:
            continue
        votes = values.sum(axis=0)
        disputed = (votes > 0) & (votes < len(values))
        chances.append(whole(result, result.true_outline(), votes.shape)[disputed])
        shares.append(votes[disputed] / len(values))
        truths.append(truth[disputed])
        covered.append((beyond(result, truth)[:, None] <= np.array(result.multipliers)).mean(axis=0))
    chance, share, right = (np.concatenate(item) for item in (chances, shares, truths))
    yield Row("masks", "true outline, log loss (vote share)", name, log_loss(share, right),
              log_loss(chance, right), len(right))  # fmt: skip
    yield Row("masks", "true outline, calibration error (goal)", name, 0.05,
              calibration_error(chance, right), len(right))  # fmt: skip
    for at, level in enumerate(LEVELS):
        each = np.array([item[at] for item in covered])
        yield Row("masks", f"band holds the true outline, {100 * level:.0f} %", name, level,
                  float(each.mean()), len(each), float(each.std(ddof=1) / np.sqrt(len(each))))  # fmt: skip
