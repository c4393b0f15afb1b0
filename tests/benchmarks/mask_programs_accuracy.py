"""Gain of a program over the raters alone, on real crowds with simulated programs of several qualities.

Usage: RATERSCOPE_DATA=FOLDER python -m tests.benchmarks.mask_programs_accuracy [CROWD ...]

The truth is a left-out radiologist (nodules of LIDC-IDRI) or the gold standard (cells of BU-BIL, outlined by
workers or by experts). Programs are outlines of the truth with smooth errors. Log loss is that of voxels
within 4 mm (pixels) of the true outline, with probabilities clipped to 0.01 and 0.99. Gold cases are
evaluated too, without their truth being used for their own consensus but for the program's weight.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from raterscope.algorithms.masks.data import BoolArray, MaskFusion, Masks
from raterscope.algorithms.masks.distance import signed_distance
from raterscope.algorithms.masks.fusion import fuse
from raterscope.algorithms.masks.metrics import dice, place_in_frame
from raterscope.algorithms.masks.programs import Program, ProgramWeights, combine, gather_evidence, weigh
from tests.benchmarks.masks_accuracy import UNIT, bubil, consensus, nodules

QUALITIES = ("good", "biased", "weak", "useless", "copy", "near copy")
RATERS = (1, 2, 3, 5)
GOLD = (0, 12)
_MARGIN, _NEAR, _CLIP = 12, 4.0, 30.0

Case = tuple[BoolArray, BoolArray | None]
"""(P, Z, Y, X) masks, and the (Z, Y, X) truth, or None to leave a rater out."""


def cases_of(root: Path, crowd: str) -> Iterator[Case]:
    """Read a crowd, cropped to what is marked."""
    if crowd == "nodules":
        yield from ((masks, None) for masks in nodules(root))
        return
    for masks, gold in bubil(root, "ds6", "crowd" if crowd == "workers" else "expert"):
        marked = masks.any(axis=0) | gold
        box = tuple(slice(max(0, at.min() - _MARGIN), at.max() + _MARGIN + 1) for at in np.nonzero(marked))
        yield masks[(slice(None), *box)], gold[box]


def program(
    quality: str, truth: BoolArray, rater: BoolArray, other: BoolArray, rng: np.random.Generator
) -> BoolArray:
    """Simulate a program; `rater` is one of the crowd, `other` the truth of another case."""
    noise = gaussian_filter(
        rng.normal(size=truth.shape), [min(4, side / 4) * (side > 1) for side in truth.shape]
    )
    noise /= noise.std()
    if quality == "copy":
        return rater
    if quality == "near copy":
        return np.asarray(signed_distance(rater, UNIT, _CLIP) + 0.5 * noise > 0)
    if quality == "weak":  # outlines another case at the same position
        return _moved(other, np.argwhere(truth).mean(axis=0), truth.shape)
    if quality == "useless":  # a ball nearby
        flat = truth.shape[0] == 1
        radius = max(2.0, 0.5 * float(truth.sum()) ** (1 / (2 if flat else 3)))
        centre = np.argwhere(truth).mean(axis=0) + 0.7 * radius * rng.normal(size=3) * (not flat or (0, 1, 1))
        steps = np.indices(truth.shape) - centre[:, None, None, None]
        return np.asarray((steps**2).sum(axis=0) < radius**2)
    bias = 1.5 if quality == "biased" else 0.0
    return np.asarray(signed_distance(truth, UNIT, _CLIP) + 0.5 * noise + bias > 0)


def _moved(mask: BoolArray, centre: NDArray[Any], shape: tuple[int, ...]) -> BoolArray:
    out = np.zeros(shape, dtype=np.bool_)
    voxels = np.argwhere(mask)
    voxels = np.rint(voxels - voxels.mean(axis=0) + centre).astype(int)
    voxels = voxels[((voxels >= 0) & (voxels < shape)).all(axis=1)]
    out[tuple(voxels.T)] = True
    return out


def figures(fusion: MaskFusion, truth: BoolArray) -> tuple[float, float]:
    """Return log loss near the true outline, and Dice."""
    near = np.abs(signed_distance(truth, UNIT, 2 * _NEAR)) < _NEAR
    chance = place_in_frame(fusion, fusion.probability[0], (0, 0, 0), truth.shape).astype(float)
    chance = np.clip(chance, 0.01, 0.99)
    loss = -np.log(np.where(truth, chance, 1 - chance))[near].mean()
    return float(loss), dice(consensus(fusion), truth)


def crowd_with_program(
    cases: Sequence[Case], raters: int, quality: str, independent: bool = False
) -> list[tuple[Masks, Program, BoolArray]]:
    """Draw raters of each case, and simulate the program.

    A program of an `independent` source outlines as another rater does than the one who is the truth.
    """
    rng = np.random.default_rng(0)
    drawn = []
    for number, (masks, gold) in enumerate(cases):
        order = rng.permutation(len(masks))
        truth = masks[order[0]] if gold is None else gold
        source = masks[order[1]] if independent else truth
        chosen = order[1 + independent :] if gold is None else order
        if len(chosen) < raters or not masks[chosen[:raters]].any():
            continue
        people = np.ascontiguousarray(masks[chosen[:raters]])
        other, other_truth = cases[(number + 1) % len(cases)]
        values = program(quality, source, people[0], other[0] if other_truth is None else other_truth, rng)
        names = tuple(f"rater {p}" for p in chosen[:raters])
        drawn.append((Masks(people, names, UNIT), Program("program", values), truth))
    return drawn


def row(name: str, weights: ProgramWeights, alone: NDArray[Any], both: NDArray[Any]) -> str:
    """Write log loss and Dice alone and with the program, and the changes with standard errors."""
    change = both - alone
    error = change.std(axis=0, ddof=1) / np.sqrt(len(change))
    pairs = zip(alone.mean(axis=0), both.mean(axis=0), change.mean(axis=0), error, strict=True)
    text = " | ".join(f"{a:.3f} {b:.3f} ({d:+.4f} ± {e:.4f})" for a, b, d, e in pairs)
    return f"{name} | {weights.near[0]:.2f} {weights.elsewhere[0]:.2f} | {text}"


def main(root: Path, crowds: list[str], tell: Callable[[str], object] = print) -> None:
    """Print a table for each crowd."""
    for crowd in crowds:
        cases = list(cases_of(root, crowd))
        tell(f"\n{crowd}: raters, gold cases, program | counts as | log loss | Dice")
        for raters in RATERS:
            for quality in QUALITIES:
                drawn = crowd_with_program(cases, raters, quality)
                if not drawn:
                    continue
                before = [fuse(masks) for masks, _, _ in drawn]
                alone = np.array([figures(f, truth) for f, (_, _, truth) in zip(before, drawn, strict=True)])
                for gold in GOLD:
                    evidence = [
                        gather_evidence(masks, [made], truth if number < gold else None)
                        for number, (masks, made, truth) in enumerate(drawn)
                    ]
                    weights = weigh(("program",), [case for case in evidence if case is not None])
                    after = [
                        combine(fusion, masks, [made], weights)
                        for fusion, (masks, made, _) in zip(before, drawn, strict=True)
                    ]
                    both = np.array([figures(f, t) for f, (_, _, t) in zip(after, drawn, strict=True)])
                    tell(row(f"{raters}, {gold:2d}, {quality:9}", weights, alone, both))


if __name__ == "__main__":
    folder = os.environ.get("RATERSCOPE_DATA")
    if folder is None:
        sys.exit("RATERSCOPE_DATA names no folder")
    main(Path(folder), sys.argv[1:] or ["nodules", "workers", "experts"])
