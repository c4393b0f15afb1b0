"""Streams of clicks: whether they agree with a fusion, and whether what is expected to change does.

Images come annotator by annotator, in random order. A stream is settled at the end, as the program does
before it keeps a run. For the stop rule all images are fused together after every annotator.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from raterscope.algorithms.clicks.data import Clicks
from raterscope.algorithms.clicks.fusion import fuse, learn_from_each_other
from raterscope.algorithms.clicks.image_priors import experiences_of
from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.clicks.robustness import add_half_detections, grouping_notice
from raterscope.algorithms.clicks.stopping import (
    ExpectedChanges,
    StoppingSettings,
    StreamHistory,
    count_changes,
    is_settled,
    predict_outlook,
)
from raterscope.algorithms.clicks.stream import (
    StreamPlan,
    advance_stream,
    begin_stream,
    restart_stream,
    share_streams,
)
from tests.algorithms.clicks.crowds import in_order, quantius, until
from tests.algorithms.clicks.test_settling import smears as sparse
from tests.benchmarks.calibration import Row
from tests.benchmarks.calibration.clicks import PLAN, malaria, smears

STREAM = StreamPlan.make({"interval_draws": "20"})
STOPPING = StoppingSettings()
FIRST = 3
SOME = 5
"""Annotators from which on the interval of the number of changes is measured."""

LATER = 8
"""Annotators from which on few images change much."""

DRAWN = 6
"""Ways to draw halves that are compared with what a run announces."""

BOUNDS = ((0.0, 0.2), (0.2, 0.8), (0.8, 1.01))


@dataclass(frozen=True, eq=False)
class Step:
    """An image after so many annotators, how many decisions the next ones changed, and whether it is firm."""

    image: int
    annotators: int
    outlook: ExpectedChanges
    changed: int
    firm: bool


def rows() -> list[Row]:
    """Measure on simulated smears, and on a real crowd where RATERSCOPE_DATA says where it is."""
    results: list[Row] = []
    for name, runs in crowds().items():
        results += [*_agreement(name, runs), *_stopping(name, runs)]
    return results


def crowds() -> dict[str, list[list[Clicks]]]:
    """Gather the clicks of all crowds: for each name its runs of images."""
    groups = {
        "smears, crowd of 36": [[item.clicks for item in smears(5, 8, 36)]],
        "few structures, many artefacts": [sparse(seed) for seed in (6, 12)],
    }
    if folder := os.environ.get("RATERSCOPE_DATA"):
        chosen = [item.clicks for item in quantius(Path(folder)) if item.subset][:6]
        groups["quantius, 6 images"] = [chosen]
        groups["iml_malaria, simulated crowd"] = [[item.clicks for item in malaria(Path(folder))]]
    return {
        name: [[replace(item, time=None) for item in images] for images in runs]
        for name, runs in groups.items()
    }


def _agreement(name: str, runs: Sequence[Sequence[Clicks]]) -> Iterator[Row]:
    """Share of a fusion's detections that differ: each image alone, on its way, settled, in two orders.

    An image alone is fused without the others, with the rates of annotators on them, as a stream is that was
    settled before, and with what an earlier fusion made of them; half of the images are fused together.
    """
    ways = (
        "each image alone", "each with rates of the others", "each beside earlier ones", "half of the images",
        "stream on its way", "stream settled",
    )  # fmt: skip
    total, differ = 0, dict.fromkeys(ways, 0)
    announced: dict[bool, list[bool]] = {True: [], False: []}
    for images in runs:
        alone = [fuse(image, PLAN) for image in images]
        fused = learn_from_each_other(images, alone, PLAN)
        experiences = experiences_of(fused, [image.annotators for image in images])
        experienced = [
            fuse(image, PLAN, experience=others) for image, others in zip(images, experiences, strict=True)
        ]
        beside, halves = [], list(alone)
        for number, clicks in enumerate(images):
            remaining = [other for other in range(len(images)) if other != number]
            others = [(images[other], fused[other]) for other in remaining]
            (state,) = share_streams([clicks], [restart_stream(clicks, STREAM)], STREAM, others=others)
            beside.append(state.fusion)
        for half in (0, 1):
            halves[half::2] = learn_from_each_other(images[half::2], alone[half::2], PLAN)
        notice = grouping_notice(add_half_detections(images, alone, fused, PLAN))
        announced[_differ_by_halves(images, alone, fused)].append(notice is not None)
        for seed in range(2):
            total += sum(int(image.detection.detected.sum()) for image in fused)
            ordered = [shuffled(image, seed, number) for number, image in enumerate(images)]
            states = []
            for clicks in ordered:
                state = begin_stream(until(clicks, FIRST), STREAM)
                for number in range(FIRST + 1, len(clicks.annotators) + 1, 4):
                    state = advance_stream(state, until(clicks, number), STREAM)
                states.append(advance_stream(state, clicks, STREAM))
            settled = share_streams(ordered, [restart_stream(image, STREAM) for image in ordered], STREAM)
            result = (
                alone, experienced, beside, halves, [image.fusion for image in states],
                [image.fusion for image in settled],
            )  # fmt: skip
            for way, other in zip(differ, result, strict=True):
                differ[way] += sum(
                    count_changes(image, second) for image, second in zip(fused, other, strict=True)
                )
    for depends, text in announced.items():
        if text:
            words = f"runs whose halves {'differ' if depends else 'agree'}: announced"
            yield Row("clicks", words, name, float(depends), float(np.mean(text)), len(text))
    for way, number in differ.items():
        yield Row("clicks", f"detections unlike Fuse's, {way}", name, 0.02, number / max(total, 1), total)


def _differ_by_halves(images: Sequence[Clicks], alone: Sequence[Fusion], fused: Sequence[Fusion]) -> bool:
    """Tell whether halves drawn at random, fused by themselves, differ in over 2 % of the detections."""
    differ, detected = [], sum(int(fusion.detection.detected.sum()) for fusion in fused)
    for seed in range(DRAWN):
        order = np.random.default_rng([17, seed]).permutation(len(images))
        for half in (order[::2], order[1::2]):
            learnt = learn_from_each_other([images[i] for i in half], [alone[i] for i in half], PLAN)
            differ += [count_changes(fused[i], fusion) for i, fusion in zip(half, learnt, strict=True)]
    return sum(differ) / DRAWN > 0.02 * detected


def _stopping(name: str, runs: Sequence[Sequence[Clicks]]) -> Iterator[Row]:
    steps = [step for number, images in enumerate(runs) for step in _steps(images, number)]
    if not steps:
        return
    expected = np.array([stage.outlook.expected for stage in steps])
    arrived = np.array([stage.changed for stage in steps])
    late = np.array([stage.annotators >= LATER for stage in steps])
    for words, rows_ in (("", np.ones(len(steps), dtype=bool)), (f" from {LATER} annotators", late)):
        if rows_.any():
            happened, number = arrived[rows_], int(rows_.sum())
            yield Row(
                "clicks", f"expected changes{words}", name, float(expected[rows_].mean()),
                float(happened.mean()), number, float(happened.std() / math.sqrt(number)),
            )  # fmt: skip
    ends = np.array([stage.outlook.interval for stage in steps])
    some = np.array([stage.annotators >= SOME for stage in steps])
    inside = ((ends[:, 0] <= arrived) & (arrived <= ends[:, 1]))[some]
    if len(inside):
        yield Row(
            "clicks", f"95 % interval of changes from {SOME} annotators", name, 0.95, float(inside.mean()),
            len(inside), float(inside.std() / math.sqrt(len(inside))),
        )  # fmt: skip
    chance = np.array([stage.outlook.any for stage in steps])
    for low, high in BOUNDS:
        here = (chance >= low) & (chance < high)
        if here.any():
            share = float((arrived[here] > 0).mean())
            yield Row(
                "clicks", f"chance of a change, {low:.1f} to {min(high, 1):.1f}", name,
                float(chance[here].mean()), share, int(here.sum()),
                math.sqrt(share * (1 - share) / here.sum()),
            )  # fmt: skip
    stops = _first_stops(steps)
    if stops:
        shares = [stage.changed / max(stage.outlook.detections, 1) for stage in stops]
        yield Row(
            "clicks", "firm: share of decisions that changed", name, STOPPING.limit, float(np.mean(shares)),
            len(stops), float(np.std(shares) / math.sqrt(len(stops))),
        )  # fmt: skip
        yield Row(
            "clicks", "images called firm", name, math.nan, len(stops) / len({stage.image for stage in steps})
        )


def _first_stops(steps: Sequence[Step]) -> list[Step]:
    """Return the step at which each image is first called firm; images that never are have none."""
    firm: dict[int, Step] = {}
    for step in sorted(steps, key=lambda step: step.annotators):
        if step.firm:
            firm.setdefault(step.image, step)
    return list(firm.values())


def _steps(images: Sequence[Clicks], run: int) -> Iterator[Step]:
    """Fuse all images together after every annotator."""
    ordered = [shuffled(one, run, number) for number, one in enumerate(images)]
    fusions: list[list[Fusion]] = []
    outlooks: list[list[ExpectedChanges]] = []
    for annotators in range(FIRST, min(len(one.annotators) for one in ordered) + 1):
        now = [until(one, annotators) for one in ordered]
        fusions.append(learn_from_each_other(now, [fuse(one, PLAN) for one in now], PLAN))
        outlooks.append(
            [
                predict_outlook(clicks, fusion, PLAN, STOPPING)
                for clicks, fusion in zip(now, fusions[-1], strict=True)
            ]
        )
    for image in range(len(ordered)):
        history = StreamHistory.none()
        for step in range(len(fusions) - STOPPING.more):
            fusion, ahead = fusions[step][image], outlooks[step][image]
            history = history.then(
                annotators=FIRST + step, clicks=0, detections=ahead.detections,
                changed=count_changes(fusions[max(step - 1, 0)][image], fusion), expected=ahead.expected,
                chance=ahead.any, sensitivity=ahead.sensitivity, precision=ahead.precision, firm=False,
                refreshed=True,
            )  # fmt: skip
            other = count_changes(fusion, fusions[step + STOPPING.more][image])
            firm = is_settled(ahead, history, STOPPING)
            yield Step(1000 * run + image, FIRST + step, ahead, other, firm)


def shuffled(clicks: Clicks, *seed: int) -> Clicks:
    """Let the annotators come in a random order."""
    return in_order(clicks, np.random.default_rng(seed).permutation(len(clicks.annotators)))
