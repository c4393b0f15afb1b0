"""Accuracy of every fusion of masks, beside published figures and with raters who leak.

Usage: RATERSCOPE_DATA=FOLDER python -m tests.benchmarks.masks_accuracy [FUSER ...]

Leaks: a rater is added who copies an honest one, drawn at random, and adds a ball that is centred on a voxel
of the surface of the honest raters' strict vote, drawn at random, with 0.6 times the radius of a ball of the
same volume. Two who share a leak copy two different raters and add the same ball. The seed is the nodule's
number.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from raterscope.algorithms.annotators.statistics import wilcoxon
from raterscope.algorithms.masks.catalogue import FUSERS
from raterscope.algorithms.masks.data import BoolArray, MaskFusion, Masks
from raterscope.algorithms.masks.fusion import MaskPlan, fuse
from raterscope.algorithms.masks.metrics import compare, dice, place_in_frame
from raterscope.algorithms.settings import Algorithm
from raterscope.algorithms.simulation.mask_crowds import leaking, strict

UNIT = (1.0, 1.0, 1.0)
PUBLISHED = {"staple": 9098, "continuous_staple": 6700, "majority": 6555, "laplace": 6781}
"""Voxels of nodule 03 by an independent implementation, over the whole frame."""

Case = tuple[BoolArray, BoolArray]
"""(P, Z, Y, X) masks, and the (Z, Y, X) reference."""


def named(values: BoolArray, spacing: tuple[float, float, float] = UNIT) -> Masks:
    return Masks(values, tuple(f"r{p + 1}" for p in range(len(values))), spacing)


def run(fuser: Algorithm, masks: Masks) -> MaskFusion:
    """Fuse with the defaults, but count the whole frame where a method counts the background."""
    known = {spec.name: spec.choices for spec in fuser.settings.specs()}
    frame = "frame" in dict(known.get("domain", ()))
    return fuser.run(masks, fuser.settings(**({"domain": "frame"} if frame else {})))


def consensus(fusion: MaskFusion) -> BoolArray:
    return place_in_frame(fusion, fusion.mask[0], (0, 0, 0), fusion.frame)


def nodules(root: Path) -> Iterator[BoolArray]:
    for number in range(20):
        with np.load(root / f"masks/lidc/nodulebin/nodulebin_{number:02d}.npz") as file:
            yield file["masks"].astype(bool)


def bubil(root: Path, folder: str, raters: str) -> Iterator[Case]:
    for path in sorted((root / "masks/bubil" / folder).glob("*.npz")):
        with np.load(path) as file:
            shape = tuple(int(size) for size in file[f"{raters}_shape"])
            bits = np.unpackbits(file[raters], count=int(np.prod(shape)))
            yield bits.reshape(shape).astype(bool)[:, None], file["gold"].astype(bool)[None]


def table(title: str, fusers: dict[str, Algorithm], cases: Callable[[], Iterator[Case]]) -> None:
    print(f"\n{title}: Dice mean (least); Hausdorff, HD95, mean distance, mm; Wilcoxon against the vote")
    vote = [dice(strict(masks), reference) for masks, reference in cases()]
    for name, fuser in fusers.items():
        rows, seconds = [], 0.0
        for masks, reference in cases():
            data = named(masks)
            start = time.perf_counter()
            fusion = run(fuser, data)
            seconds += time.perf_counter() - start
            comparison = compare(consensus(fusion), reference, UNIT)
            rows.append(
                (
                    comparison.dice,
                    comparison.hausdorff,
                    comparison.hausdorff_95,
                    comparison.mean_surface_distance,
                )
            )
        values = np.array(rows)
        mean = values.mean(axis=0)
        test = wilcoxon(values[:, 0], vote)
        print(
            f"{name:20s}{mean[0]:7.3f} ({values[:, 0].min():.3f}){mean[1]:8.2f}{mean[2]:7.2f}{mean[3]:7.2f}"
            f"   p = {test.p_value:.3g} ({test.median_difference:+.4f}){seconds / len(rows):9.3f} s"
        )


def table_of_one(root: Path, fusers: dict[str, Algorithm]) -> None:
    masks = named(list(nodules(root))[3])
    print("\nnodule 03, whole frame: voxels (independent implementation), sensitivity or variance")
    for name, fuser in fusers.items():
        fusion = run(fuser, masks)
        figures = fusion.variance if np.isnan(fusion.sensitivity).all() else fusion.sensitivity
        expected = PUBLISHED.get(name, "-")
        print(f"{name:20s}{int(fusion.mask.sum()):7d} ({expected})  {np.round(figures[0], 4)}")


def table_of_prostate(root: Path, fusers: dict[str, Algorithm]) -> None:
    with np.load(root / "masks/synth_prostate.npz") as file:
        shape = tuple(int(size) for size in file["shape"])
        values = np.unpackbits(file["masks"], count=int(np.prod(shape))).reshape(shape).astype(bool)
        truth = np.unpackbits(file["truth"], count=int(np.prod(shape[1:]))).reshape(shape[1:]).astype(bool)
        masks = named(values, tuple(float(step) for step in file["spacing"]))
    print(f"\nsynthetic prostate, {' x '.join(map(str, shape[1:]))}, {shape[0]} raters: Dice to the truth")
    for name in fusers:
        start = time.perf_counter()
        fusion = fuse(masks, MaskPlan.make(name))
        seconds = time.perf_counter() - start
        print(f"{name:20s}{dice(consensus(fusion), truth):7.4f}{fusion.mask.sum():9d} voxels{seconds:8.2f} s")


def main() -> None:
    root = os.environ.get("RATERSCOPE_DATA")
    if not root:
        sys.exit("set RATERSCOPE_DATA to the folder of masks/lidc, masks/bubil and masks/synth_prostate.npz")
    folder = Path(root)
    fusers = {name: fuser for name, fuser in FUSERS.items() if name in sys.argv[1:] or len(sys.argv) == 1}
    table_of_one(folder, fusers)
    for leakers, title in enumerate(("four raters", "one more who leaks", "two more who share a leak")):
        table(
            f"20 nodules, {title}", fusers,
            lambda leakers=leakers: (
                (leaking(masks, leakers, seed) if leakers else masks, strict(masks))
                for seed, masks in enumerate(nodules(folder))
            ),
        )  # fmt: skip
    for data, raters in (("ds1", "crowd"), ("ds1", "expert"), ("ds6", "crowd")):
        table(f"BU-BIL {data}, {raters}s, against gold", fusers, lambda d=data, r=raters: bubil(folder, d, r))
    table_of_prostate(folder, fusers)


if __name__ == "__main__":
    main()
