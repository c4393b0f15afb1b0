"""Accuracy of predicted changes by more annotators, and the gain of active learning and of experience.

Real crowds are replayed as streams, their annotators in random order.

Usage: RATERSCOPE_DATA=FOLDER python -m tests.benchmarks.stopping_accuracy [ORDERS]
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from raterscope.algorithms.clicks import FusionPlan, fuse
from raterscope.algorithms.clicks.data import Clicks
from raterscope.algorithms.clicks.image_priors import Experience, experience_of
from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.clicks.stopping import (
    ExpectedChanges,
    StoppingSettings,
    count_changes,
    predict_outlook,
    rank_annotators,
)
from raterscope.algorithms.clicks.stream import advance_stream, begin_stream
from raterscope.algorithms.evaluation import calibration, evaluate, true_detections
from tests.algorithms.clicks.crowds import RealImage, iguanas, in_order, quantius, until

RADIUS = 4.0
AHEAD = (1, 3, 8)
FIRST = 2
PLAN = FusionPlan()


@dataclass(frozen=True)
class Replay:
    """An image after each annotator from the second on, and what was predicted, by annotators ahead."""

    image: RealImage
    fusions: list[Fusion]
    outlooks: dict[int, list[ExpectedChanges]]

    def other(self, step: int, more: int) -> int:
        """Count what more annotators changed; those that there are, near the end."""
        return count_changes(self.fusions[step], self.fusions[min(step + more, len(self.fusions) - 1)])


def shuffled(image: RealImage, seed: int) -> np.ndarray:
    return np.random.default_rng([seed, len(image.clicks)]).permutation(len(image.clicks.annotators))


def replayed(image: RealImage, seed: int, ahead: Sequence[int], online: bool) -> Replay:
    order = shuffled(image, seed)
    clicks = in_order(image.clicks, order)
    state, fusions = None, []
    outlooks: dict[int, list[ExpectedChanges]] = {more: [] for more in ahead}
    for number in range(FIRST, len(order) + 1):
        own = until(clicks, number)
        if online:
            state = begin_stream(own) if state is None else advance_stream(state, own)
            fusions.append(state.fusion)
        else:
            fusions.append(fuse(own, PLAN))
        for more in ahead:
            outlooks[more].append(predict_outlook(own, fusions[-1], PLAN, StoppingSettings(more=more)))
    return Replay(image, fusions, outlooks)


def table_of_changes(name: str, replays: Sequence[Replay]) -> None:
    print(f"\n{name}: decisions that k more annotators change, predicted / happened, by annotators so far")
    bounds = (2, 4, 6, 9, 13, 18, 40)
    print("  k " + "".join(f"{f'{low}-{high - 1}':>16s}" for low, high in pairwise(bounds)))
    for more in AHEAD:
        line = f"{more:3d} "
        for low, high in pairwise(bounds):
            pairs = [
                (replay.outlooks[more][step].expected, replay.other(step, more))
                for replay in replays
                for step in range(len(replay.fusions) - more)
                if low <= step + FIRST < high
            ]
            line += "{:8.2f}/{:6.2f} ".format(*np.mean(pairs, axis=0)) if pairs else " " * 16
        print(line)


def table_of_reliability(name: str, replays: Sequence[Replay], more: int = 3) -> None:
    chance, arrived = [], []
    for replay in replays:
        for step in range(len(replay.fusions) - more):
            chance.append(replay.outlooks[more][step].any)
            arrived.append(replay.other(step, more) > 0)
    table = calibration(np.array(chance), np.array(arrived))
    print(f"\n{name}: chance that any decision changes with {more} more, error {table.error:.3f}")
    for title, values in (("predicted", table.posterior), ("happened", table.share), ("times", table.count)):
        print(
            f"{title:10s}"
            + "".join(f"{value:8.2f}" if title != "times" else f"{value:8d}" for value in values)
        )


def table_of_stopping(name: str, replays: Sequence[Replay]) -> None:
    rules: dict[str, Callable[[Replay, int], bool]] = {
        f"share <= {limit:g}": lambda item, step, limit=limit: item.outlooks[3][step].share <= limit
        for limit in (0.01, 0.02, 0.05)
    }
    rules |= {
        f"chance <= {limit:g}": lambda item, step, limit=limit: item.outlooks[3][step].any <= limit
        for limit in (0.05, 0.2)
    }
    rules |= {
        f"unchanged {last}": lambda item, step, last=last: (
            step >= last
            and not any(
                count_changes(item.fusions[i - 1], item.fusions[i]) for i in range(step - last + 1, step + 1)
            )
        )
        for last in (2, 3, 5)
    }
    print(
        f"\n{name}: stopped images, annotators saved; of the stopped, changed decisions by detection with 3"
        "\nmore and to the end, images with any to the end; then S / P / F2, or the error of the count"
    )
    for title, rule in rules.items():
        stops = [next((s for s in range(len(item.fusions)) if rule(item, s)), None) for item in replays]
        ends = [
            len(item.fusions) - 1 if stop is None else stop for item, stop in zip(replays, stops, strict=True)
        ]
        saved = 1 - sum(end + FIRST for end in ends) / sum(len(item.fusions) + 1 for item in replays)
        later = [
            (item.other(stop, 3) / number, item.other(stop, 1000) / number, item.other(stop, 1000) > 0)
            for item, stop in zip(replays, stops, strict=True)
            if stop is not None
            for number in [max(1, int(item.fusions[stop].detection.detected.sum()))]
        ]
        line = f"{title:16s}{np.mean([stop is not None for stop in stops]):6.2f}{saved:7.0%}   "
        line += "{:7.3f}{:7.3f}{:7.2f}".format(*np.mean(later, axis=0)) if later else " " * 21
        print(
            line
            + "   "
            + scored([(item.image, item.fusions[end]) for item, end in zip(replays, ends, strict=True)])
        )
    print(f"{'never':16s}" + " " * 37 + scored([(item.image, item.fusions[-1]) for item in replays]))


def scored(pairs: Sequence[tuple[RealImage, Fusion]]) -> str:
    if not len(pairs[0][0].truth):
        error = [abs(int(fusion.detection.detected.sum()) - image.count) for image, fusion in pairs]
        return f"{np.mean(error):.3f}"
    return " / ".join(f"{value:.3f}" for value in scores(pairs).mean(axis=0))


def scores(pairs: Sequence[tuple[RealImage, Fusion]]) -> np.ndarray:
    results = [
        evaluate(fusion.clustering.mean[fusion.detection.detected], image.truth, RADIUS)
        for image, fusion in pairs
    ]
    return np.nan_to_num(
        [(evaluation.sensitivity, evaluation.precision, evaluation.f_two) for evaluation in results]
    )


def table_of_accuracy(name: str, replays: Sequence[Replay]) -> None:
    print(
        f"\n{name}: sensitivity estimated / of what all annotators find / of the truth; precision estimated /"
        "\ntrue; share of images where the interval holds the second, the third, the true precision"
    )
    for number in (3, 5, 8, 12, 20):
        rows, experiences = [], []
        for replay in replays:
            if number - FIRST >= len(replay.fusions):
                continue
            ahead, fusion = replay.outlooks[3][number - FIRST], replay.fusions[number - FIRST]
            sensitivity, precision, _ = scores([(replay.image, fusion)])[0]
            full = sensitivity / max(scores([(replay.image, replay.fusions[-1])])[0][0], 1e-9)
            rows.append((ahead.sensitivity[0], full, sensitivity, ahead.precision[0], precision))
            experiences.append(
                [
                    low <= min(value, 1.0) <= high
                    for (_, low, high), value in (
                        (ahead.sensitivity, full),
                        (ahead.sensitivity, sensitivity),
                        (ahead.precision, precision),
                    )
                ]
            )
        print(
            "R = {:2d}   {:.3f} / {:.3f} / {:.3f}   {:.3f} / {:.3f}".format(number, *np.nanmean(rows, axis=0))
            + "   {:.2f}  {:.2f}  {:.2f}".format(*np.mean(experiences, axis=0))
        )


def named(images: Sequence[RealImage]) -> list[RealImage]:
    """Use other annotators on every image for those who marked nothing, whose names are not known."""
    results = []
    for number, image in enumerate(images):
        names = [
            f"{name} of {number}" if name.startswith("marked nothing") else name
            for name in image.clicks.annotators
        ]
        results.append(replace(image, clicks=replace(image.clicks, annotators=tuple(names))))
    return results


def others(images: Sequence[RealImage]) -> list[Experience]:
    """Return the experience from all images but one."""
    fusions, names = [fuse(image.clicks) for image in images], [image.clicks.annotators for image in images]
    kept = [[j for j in range(len(images)) if j != i] for i in range(len(images))]
    return [
        experience_of([fusions[j] for j in remaining], [names[j] for j in remaining]) for remaining in kept
    ]


def table_of_experience(images: Sequence[RealImage], held: Sequence[Experience], orders: int) -> None:
    print("\nquantius: without / with experience of the other images: S / P / F2, calibration error")
    for number in (3, 5, 8, 11):
        line = f"R = {number:2d}"
        for helped in (False, True):
            pairs, posterior, true = [], [], []
            for seed in range(orders):
                for image, one in zip(images, held, strict=True):
                    order = shuffled(image, seed)
                    clicks: Clicks = until(in_order(image.clicks, order), number)
                    fusion = fuse(clicks, experience=one if helped else None)
                    pairs.append((image, fusion))
                    posterior.append(fusion.detection.posterior)
                    true.append(true_detections(fusion.clustering.mean, posterior[-1], image.truth, RADIUS))
            error = calibration(np.concatenate(posterior), np.concatenate(true)).error
            line += f"   {scored(pairs)}  {error:.3f}"
        print(line)


def table_of_asking(images: Sequence[RealImage], held: Sequence[Experience]) -> None:
    """Compare annotators in order of arrival with chosen ones, after the first three."""
    steps = range(3, 16)
    pairs: dict[tuple[bool, int], list[tuple[RealImage, Fusion]]] = {
        (way, n): [] for way in (False, True) for n in steps
    }
    for number, (image, experience) in enumerate(zip(images, held, strict=True)):
        names = image.clicks.annotators
        start = np.random.default_rng(number).permutation(len(names)).tolist()
        for way in (False, True):
            order = list(start)
            for now in steps:
                clicks = until(in_order(image.clicks, order), now)
                fusion = fuse(clicks)
                pairs[way, now].append((image, fusion))
                if way:
                    ranked = rank_annotators(clicks, fusion, PLAN, experience, set(names))
                    remaining = order[now:]
                    strangers = [
                        annotator for annotator in remaining if names[annotator] not in experience.annotators
                    ]
                    best = names.index(ranked.annotators[0]) if len(ranked) else strangers[0]
                    if strangers and len(ranked) and ranked.gain[0] < ranked.gain_of_new:
                        best = strangers[0]
                    remaining.remove(best)
                    order[now:] = [best, *remaining]
    print("\nquantius: S / P / F2 by annotators, in random order and as proposed")
    for now in steps:
        print(f"R = {now:2d}   {scored(pairs[False, now])}   {scored(pairs[True, now])}")


def main() -> None:
    orders = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    root = os.environ.get("RATERSCOPE_DATA")
    if not root:
        print("skipped: set RATERSCOPE_DATA to the folder of clicks/quantius and clicks/iguanas")
        return
    spots = named(quantius(Path(root)))
    for name, images in (("quantius", spots), ("iguanas", iguanas(Path(root)))):
        for online in (False, True):
            title, start = f"{name}, {'stream' if online else 'batch'}", time.perf_counter()
            replays = [replayed(image, seed, AHEAD, online) for seed in range(orders) for image in images]
            steps = sum(len(replay.fusions) for replay in replays)
            print(f"\n{title}: {len(images)} images, {steps} steps in {time.perf_counter() - start:.0f} s")
            for subset in sorted({replay.image.subset for replay in replays}):
                own = [replay for replay in replays if replay.image.subset == subset]
                table_of_changes(f"{title}{subset and ', '}{subset}: {len(own)} images", own)
            table_of_reliability(title, replays)
            table_of_stopping(title, replays)
            if name == "quantius":
                table_of_accuracy(title, replays)
    experiences = others(spots)
    table_of_experience(spots, experiences, orders)
    table_of_asking(spots, experiences)


if __name__ == "__main__":
    main()
