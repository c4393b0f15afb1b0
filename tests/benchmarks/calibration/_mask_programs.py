"""Masks: the probability of the true outline with a program among the raters, beside that of raters alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.calibration import Calibration, calibrate, pool_calibrations
from raterscope.algorithms.masks.data import BoolArray, FloatArray, Masks
from raterscope.algorithms.masks.fusion import fuse
from raterscope.algorithms.masks.gold_cases import calibrate_with_truth
from raterscope.algorithms.masks.programs import Program, combine_calibrated, gather_evidence, weigh
from raterscope.algorithms.simulation.mask_crowds import simulate_case
from tests.benchmarks.calibration import Row
from tests.benchmarks.mask_programs_accuracy import Case, cases_of, crowd_with_program

__all__ = ["WithProgram", "calibration_error", "log_loss", "program_rows", "with_program"]

_BINS = 15

_GOLD = 12
"""Cases whose true outline is known, in the rows that have some."""


def log_loss(chance: NDArray[np.floating], right: BoolArray) -> float:
    chance = np.clip(chance.astype(float), 1e-3, 1 - 1e-3)
    return float(-np.mean(np.where(right, np.log(chance), np.log1p(-chance))))


def calibration_error(chance: NDArray[np.floating], right: BoolArray) -> float:
    bins = np.minimum((chance * _BINS).astype(int), _BINS - 1)
    count = np.bincount(bins, minlength=_BINS)
    apart = np.abs(np.bincount(bins, chance, _BINS) - np.bincount(bins, right, _BINS))
    return float(apart.sum() / count.sum())


@dataclass(frozen=True, eq=False)
class WithProgram:
    """Disputed voxels of one case: probabilities of the true outline, and the truth."""

    alone: FloatArray  # (N,): by the raters
    combined: FloatArray  # (N,): by raters and program
    inside: BoolArray  # (N,)


def with_program(drawn: Sequence[tuple[Masks, Program, BoolArray]], gold: int = 0) -> list[WithProgram]:
    """Return the disputed voxels of all cases but the first `gold` ones, whose true outline is known."""
    evidence = [
        gather_evidence(masks, [program], truth if number < gold else None)
        for number, (masks, program, truth) in enumerate(drawn)
    ]
    weights = weigh(("program",), [case for case in evidence if case is not None])
    alone = pool_calibrations([_calibrated(masks) for masks, _, _ in drawn])
    both = [
        combine_calibrated(fuse(masks), calibration, masks, [program], weights)[1]
        for calibration, (masks, program, _) in zip(alone, drawn, strict=True)
    ]
    truths = [_part(c, truth) for c, (_, _, truth) in zip(alone, drawn, strict=True)]
    known = [truth if number < gold else None for number, truth in enumerate(truths)]
    results = []
    pairs = zip(
        calibrate_with_truth(alone, known),
        calibrate_with_truth([c for c in both if c is not None], known),
        strict=True,
    )
    for (before, after), truth, (masks, _, _) in list(zip(pairs, truths, drawn, strict=True))[gold:]:
        votes = _part(before, masks.values.sum(axis=0))
        disputed = (votes > 0) & (votes < len(masks.values))
        chances = (c.true_outline()[disputed].astype(float) for c in (before, after))
        results.append(WithProgram(*chances, truth[disputed]))
    return results


def _calibrated(masks: Masks) -> Calibration:
    calibration = calibrate(masks)
    assert calibration is not None
    return calibration


def _part(calibration: Calibration, values: BoolArray) -> BoolArray:
    """Return the part of values on the whole image that a calibration covers; it holds all marked voxels."""
    shape = calibration.ratio.shape
    box = tuple(slice(at, at + size) for at, size in zip(calibration.origin, shape, strict=True))
    return values[box]


def program_rows() -> Iterator[Row]:
    """Measure programs of four qualities beside two, three and four raters, with and without gold cases."""
    for name, cases, independent in _crowds():
        for raters in (2, 3, 4):
            for quality in ("good", "biased", "near copy", "useless"):
                drawn = crowd_with_program(cases, raters, quality, independent)
                for gold in (0, _GOLD) if quality in ("good", "biased") else (0,):
                    if len(drawn) > gold:
                        data = f"{name}, {raters} raters"
                        yield from _rows(f"{quality} program, {gold} gold", data, with_program(drawn, gold))


def _crowds() -> Iterator[tuple[str, list[Case], bool]]:
    root = os.environ.get("RATERSCOPE_DATA")
    if root:
        nodules = list(cases_of(Path(root), "nodules"))
        yield "LIDC", nodules, False
        yield "LIDC, program of another source", nodules, True
        yield "BU-BIL ds6 workers", list(cases_of(Path(root), "workers")), False
    spacing = (1.5, 0.9, 0.9)
    made = [simulate_case(seed, (40, 110, 110), spacing, 4) for seed in range(20)]
    yield "simulated nodules", [(case.masks, case.truth) for case in made], False


def _rows(words: str, data: str, cases: list[WithProgram]) -> Iterator[Row]:
    count = sum(len(case.inside) for case in cases)
    measures: tuple[tuple[str, Callable[[FloatArray, BoolArray], float]], ...] = (
        ("log loss", log_loss), ("calibration error", calibration_error),
    )  # fmt: skip
    for measure, of in measures:

        def figure(some: Sequence[WithProgram], name: str, of: Callable[..., float] = of) -> float:
            return of(
                np.concatenate([getattr(case, name) for case in some]),
                np.concatenate([case.inside for case in some]),
            )

        folds = [figure(cases[:at] + cases[at + 1 :], "combined") for at in range(len(cases))]
        error = float(np.std(folds) * np.sqrt(len(folds) - 1))  # jackknife over cases
        yield Row("masks", f"{words}: {measure} (alone)", data, figure(cases, "alone"),
                  figure(cases, "combined"), count, error)  # fmt: skip
