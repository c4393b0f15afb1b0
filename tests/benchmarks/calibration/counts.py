"""Clicks: whether intervals of the number of structures, and of annotators' precisions, hold in many crowds.

The number is that among the spots. How many of all structures are among them is a row of its own.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from raterscope.algorithms.clicks.counting import expected_count
from raterscope.algorithms.clicks.data import Clicks, FloatArray
from raterscope.algorithms.clicks.fusion import learn_from_each_other
from raterscope.algorithms.clicks.result import Detection
from tests.algorithms.clicks.crowds import quantius
from tests.benchmarks.calibration import Row
from tests.benchmarks.calibration.clicks import (
    PLAN,
    Image,
    Run,
    _disputed,
    _rates_held,
    fused,
    malaria,
    smears,
)

STUDIES = 5
"""Studies of each kind."""

DECIDED = (0, 12, 40)
"""Decisions on the most disputed spots of a study."""

SIZE = 1000.0


@dataclass(frozen=True)
class Crowd:
    """A kind of crowd, as it is drawn."""

    images: int = 8
    annotators: int = 16
    looks: float = 0.7  # share of annotators who look at each image
    ability: tuple[float, float] = (6.0, 2.0)  # Beta distribution of annotators' sensitivities
    ease: float = 0.6  # standard deviation of the log odds of structures
    structures: float = 15.0  # mean number on an image
    artefacts: float = 6.0  # mean number on an image
    varied: float = 0.4  # standard deviation of the log of both numbers, from image to image
    lure: tuple[float, float] = (1.0, 3.0)  # Beta distribution of the share that artefacts attract
    gullible: float = 0.0  # standard deviation of annotators' log odds of marking artefacts
    scatter: float = 4.0
    stray: float = 0.5  # mean number of stray clicks of an annotator on an image
    double: float = 0.05  # probability that a mark is clicked twice


FRESH = {
    "fresh: faint structures, lures": Crowd(ability=(4.0, 4.0), ease=1.2, artefacts=12, lure=(2.0, 3.0)),
    "fresh: some mark everything": Crowd(gullible=2.5, artefacts=15, lure=(1.5, 3.0), annotators=12),
    "fresh: three annotators": Crowd(annotators=3, looks=1.0, artefacts=8),
    "fresh: hardly an artefact": Crowd(artefacts=0.5, ability=(8.0, 2.0)),
    "fresh: crowded, images differ": Crowd(images=5, structures=40, artefacts=20, varied=1.0),
    "fresh: two images, large crowd": Crowd(images=2, annotators=80, lure=(1.0, 6.0), artefacts=20),
}
"""Kinds that played no part when the intervals were designed."""

KINDS = {
    "usual": Crowd(),
    "one image": Crowd(images=1, structures=40, artefacts=15),
    "small crowd": Crowd(annotators=5, looks=1.0),
    "large crowd": Crowd(annotators=60, looks=0.6, images=5),
    "weak annotators": Crowd(ability=(3.0, 4.0), annotators=24),
    "hard structures": Crowd(ease=1.8, annotators=20),
    "many artefacts": Crowd(artefacts=25, annotators=20),
    "lures": Crowd(artefacts=10, lure=(3.0, 3.0), annotators=20),
    "images differ": Crowd(varied=1.2, artefacts=10, images=10),
    "artefacts for some": Crowd(artefacts=12, gullible=1.5),
    "doubles and strays": Crowd(double=0.5, stray=4.0),
    "few structures": Crowd(structures=2, artefacts=8),
}
KINDS |= FRESH


def draw(crowd: Crowd, seed: int) -> list[Image]:
    """Draw the images of a study."""
    rng = np.random.default_rng([seed, crowd.images, crowd.annotators])
    ability = rng.beta(*crowd.ability, crowd.annotators)
    gullible = crowd.gullible * rng.standard_normal(crowd.annotators)
    images = []
    for _ in range(crowd.images):
        counts = [
            rng.poisson(mean * np.exp(crowd.varied * rng.standard_normal() - crowd.varied**2 / 2))
            for mean in (crowd.structures, crowd.artefacts)
        ]
        points = _apart(rng, sum(counts), 7 * crowd.scatter)
        structures, artefacts = points[: counts[0]], points[counts[0] :]
        seeing = np.flatnonzero(rng.random(crowd.annotators) < crowd.looks)
        seeing = seeing if len(seeing) > 1 else np.arange(crowd.annotators)
        ease = crowd.ease * rng.standard_normal(len(structures))
        lure = rng.beta(*crowd.lure, len(artefacts))
        chance = np.vstack([_moved(ability[seeing], ease[:, None]), _moved(lure[:, None], gullible[seeing])])
        marked = rng.random(chance.shape) < chance
        times = marked * (1 + (rng.random(chance.shape) < crowd.double))
        spot, annotator = (np.repeat(values, times[marked]) for values in np.nonzero(marked))
        clicks = points[spot] + rng.normal(0, crowd.scatter, (len(spot), 2))
        strays = int(rng.poisson(crowd.stray * len(seeing)))
        clicks = np.clip(np.vstack([clicks, rng.uniform(0, SIZE, (strays, 2))]), 0, SIZE)
        annotator = np.append(annotator, rng.integers(0, len(seeing), strays))
        names = tuple(f"w{number}" for number in seeing)
        own = Clicks(clicks[:, 0], clicks[:, 1], annotator, names, (0.0, 0.0, SIZE, SIZE))
        images.append(Image(own, structures, 3 * crowd.scatter))
    return images


def _moved(chance: FloatArray, log_odds: FloatArray) -> FloatArray:
    chance = np.clip(chance, 1e-6, 1 - 1e-6)
    return np.asarray(1 / (1 + (1 - chance) / chance * np.exp(-log_odds)))


def _apart(rng: np.random.Generator, count: int, distance: float) -> FloatArray:
    """Draw places that lie apart; a full image takes no more."""
    places = np.empty((0, 2))
    for _ in range(50 * count):
        place = rng.uniform(distance, SIZE - distance, 2)
        if len(places) == count:
            break
        if not len(places) or np.hypot(*(places - place).T).min() > distance:
            places = np.vstack([places, place])
    return places


def studies() -> Iterator[tuple[str, list[Image]]]:
    """Yield the images of each study, with the name of its kind."""
    for name, crowd in KINDS.items():
        for seed in range(STUDIES):
            yield name, draw(crowd, seed)
    for seed in range(STUDIES):
        yield "smears", smears(50_000 + 100 * seed, 8, (12, 24, 48)[seed % 3])
    if folder := os.environ.get("RATERSCOPE_DATA"):
        for seed in range(STUDIES):
            yield "iml_malaria, simulated crowds", malaria(Path(folder), 100 + seed)
        subsets: dict[str, list[Image]] = defaultdict(list)
        for image in quantius(Path(folder)):
            subsets[image.subset].append(Image(image.clicks, image.truth, 4.0, biased=True))
        for images in subsets.values():
            yield "quantius", images


def rows() -> list[Row]:
    """Measure on simulated crowds, and on real ones where RATERSCOPE_DATA names their folder."""
    runs: dict[str, list[Run]] = defaultdict(list)
    for name, images in studies():
        run = fused(images)
        if run.alone:
            runs[name].append(run)
    return [row for name, group in runs.items() for row in _rows_of(name, group)]


def _rows_of(name: str, runs: Sequence[Run]) -> Iterator[Row]:
    def row(number: str, nominal: float, measured: float, count: int = len(runs)) -> Row:
        return Row("counts", number, name, nominal, measured, count)

    found = sum(int(true.sum()) for run in runs for true in run.true)
    yield row("share of all structures that are spots", 1.0, found / _all_of(runs), _all_of(runs))
    together = [learn_from_each_other([each.clicks for each in run.images], run.alone, PLAN) for run in runs]
    yield row("precision of annotators in 95 %", 0.95, *_rates_held(runs, together, "precision"))
    for most in DECIDED:
        whole, single, widths, of_images = [], [], [], []
        for run in runs:
            detections = _decided(run, most)
            ends = [_count(detections[at : at + 1]) for at in range(len(detections))]
            numbers = [int(true.sum()) for true in run.true]
            single += [low <= number <= high for (low, high), number in zip(ends, numbers, strict=True)]
            low, high = _count(detections)
            whole.append(low <= sum(numbers) <= high)
            widths.append((high - low) / max(sum(numbers), 1))
            of_images += [
                (high - low) / max(number, 1) for (low, high), number in zip(ends, numbers, strict=True)
            ]
        way = f", k = {most}"
        yield row(f"number on all images in 95 %{way}", 0.95, float(np.mean(whole)))
        yield row(f"number on an image in 95 %{way}", 0.95, float(np.mean(single)), len(single))
        yield row(f"median width over the number, all images{way}", np.nan, float(np.median(widths)))
        yield row(f"median width over the number, an image{way}", np.nan, float(np.median(of_images)))


def _all_of(runs: Sequence[Run]) -> int:
    return sum(len(image.truth) for run in runs for image in run.images)


def _decided(run: Run, most: int) -> list[Detection]:
    """Fuse together; decide the most disputed spots rightly, and fuse again."""
    true = np.concatenate(run.true)
    verdict = np.full(len(true), -1, dtype=np.int8)
    if most:
        posterior = run.posteriors()
        order = np.argsort(abs(posterior - 0.5), kind="stable")
        order = order[_disputed(posterior[order])][:most]
        verdict[order] = true[order]
    return run.detections(verdict)


def _count(detections: Sequence[Detection]) -> tuple[float, float]:
    names = ("posterior", "posterior_low", "posterior_high")
    columns = (np.concatenate([getattr(item, name) for item in detections]) for name in names)
    _, low, high = expected_count(*columns, detections[0].level_error)
    return low, high
