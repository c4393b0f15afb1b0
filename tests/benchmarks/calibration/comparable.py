"""Table of comparable crowds, which the window cites: a few numbers of every kind, for many sizes.

``python -m tests.benchmarks.calibration --write`` writes them into the program's resources.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from raterscope.algorithms.evaluation import calibration
from raterscope.algorithms.labels.data import OPEN, ClassArray, Labels
from raterscope.algorithms.labels.fusion import LabelPlan, run
from raterscope.algorithms.masks.calibration import pool_calibrations
from raterscope.algorithms.pairs.catalogue import fuse
from tests.benchmarks.calibration import Row, clicks, masks, pairs
from tests.benchmarks.calibration.labels import SETS

PAIRS_RUNS = 60
BAND = 0.95


def rows() -> list[Row]:
    """Measure all kinds."""
    return [*_of_clicks(), *_of_masks(), *_of_labels(), *_of_pairs()]


def _probabilities(
    kind: str, data: str, per_item: float, classes: int, chance: np.ndarray, right: np.ndarray, sample: bool
) -> Iterator[Row]:
    claimed, share = float(chance.mean()), float(right.mean())
    error = float(np.sqrt(share * (1 - share) / len(right)))
    about = {"per_item": per_item, "classes": classes, "in_sample": sample}
    yield Row(kind, "probability", data, claimed, share, len(right), error, **about)
    gap = calibration(chance, right).error
    yield Row(kind, "calibration error", data, 0.0, gap, len(right), **about)


def _of_clicks() -> Iterator[Row]:
    groups = clicks.crowds()
    groups.pop("artefacts alone, crowd of 8")  # a crowd without any structure is no crowd to compare with
    groups |= {
        f"simulated smears, crowd of {count}": [clicks.smears(3000 + count, 10, count)] for count in (12, 100)
    }
    for name, runs in groups.items():
        fused = [clicks.fused(images) for images in runs]
        chance = np.concatenate([fusion.posteriors() for fusion in fused])
        right = np.concatenate([fusion for each in fused for fusion in each.true])
        per_item = float(
            np.mean([len(np.unique(fusion.clicks.annotator)) for each in runs for fusion in each])
        )
        yield from _probabilities("clicks", name, per_item, 0, chance, right, "simulated smears" not in name)


def _of_masks() -> Iterator[Row]:
    for name, cases, spacing in masks._sets():
        for raters in (None, 2):
            chances, marks, covered, judged = [], [], [], []
            for number, (values, _) in enumerate(cases):
                left_out = number % len(values)
                remaining = [q for q in range(len(values)) if q != left_out]
                remaining = remaining if raters is None else remaining[:raters]
                result = masks.products(values[remaining], spacing)
                if result is None:
                    continue
                judged.append((result, values[remaining].sum(axis=0), values[left_out]))
            for half in (0, 1):
                others = [item for item, _, _ in judged[1 - half :: 2]]
                learnt = pool_calibrations([masks.without_ratios(judged[half][0]), *others])[0]
                for result, votes, mask in judged[half::2]:
                    disputed = (votes > 0) & (votes < result.raters)
                    chance = replace(result, curve=learnt.curve).another_rater()
                    chances.append(masks.whole(result, chance, votes.shape)[disputed])
                    marks.append(mask[disputed])
                    reach = learnt.multiplier(BAND)
                    covered.append(float((masks.beyond(result, mask) <= reach).mean()))
            count = float(np.mean([len(values) - 1 for values, _ in cases])) if raters is None else 2.0
            data = name if raters is None else f"{name}, two of them"
            chance, mark = np.concatenate(chances), np.concatenate(marks)
            sample = "simulated" not in name
            yield from _probabilities("masks", data, count, 0, chance, mark, sample)
            error = float(np.std(covered, ddof=1) / np.sqrt(len(covered)))
            yield Row("masks", "band", data, BAND, float(np.mean(covered)), len(covered), error,
                      per_item=count, in_sample=sample)  # fmt: skip


def _of_labels() -> Iterator[Row]:
    from raterscope.app.papers.experiments import read_labels_of  # the rest needs the algorithms alone

    crowds: list[tuple[str, Labels, ClassArray, bool]] = []
    if root := os.environ.get("RATERSCOPE_DATA"):
        crowds += [(name, *read_labels_of(Path(root), name), True) for name in SETS]
    for each in (3, 5, 12):
        for classes in (2, 5, 12, 30):
            name = f"simulated, {each} votes, {classes} classes"
            crowds.append((name, *_simulated(each, classes), False))
    for kind, method in (("labels", "pooled"), ("labels, ibcc", "ibcc")):
        for name, labels, truth, sample in crowds:
            posterior = run(labels, LabelPlan.make(method)).posterior
            known = truth != OPEN
            top = posterior.max(axis=1)[known]
            right = posterior.argmax(axis=1)[known] == truth[known]
            per_item = len(labels.label) / len(np.unique(labels.task))
            chosen = sample and method == "pooled"
            yield from _probabilities(kind, name, per_item, len(labels.classes), top, right, chosen)


def _simulated(each: int, classes: int) -> tuple[Labels, ClassArray]:
    """Draw independent votes of 60 annotators on 1,000 tasks, some tasks harder than others."""
    generator = np.random.default_rng([17, each, classes])
    tasks, annotators = 1000, 60
    truth = generator.integers(0, classes, tasks).astype(np.int16)
    hard = np.where(generator.random(tasks) < 0.25, 0.6, 1.0)
    task = np.repeat(np.arange(tasks), each)
    annotator = generator.random((tasks, annotators)).argsort(axis=1)[:, :each].ravel()
    chance = generator.uniform(0.55, 0.95, annotators)[annotator] * hard[task]
    wrong = generator.random(len(task)) > chance
    label = np.where(wrong, (truth[task] + generator.integers(1, classes, len(task))) % classes, truth[task])
    people, names = (tuple(map(str, range(count))) for count in (annotators, classes))
    return Labels(task, annotator, label, tuple(map(str, range(tasks))), people, names, names), truth


def _of_pairs() -> Iterator[Row]:
    for votes, people, biased in ((10, 80, 8), (20, 80, 8), (60, 80, 8), (150, 60, 6), (300, 40, 4)):
        data = f"simulated, {votes} x {people}, {biased} biased"
        results = []
        for number in range(PAIRS_RUNS):
            crowd = pairs.Crowd(votes, people, biased, 9000 + number)
            results.append(pairs._rates(fuse(crowd.pairs).flagged, crowd.biased)[0])
        fair = [
            float(fuse(pairs.Crowd(votes, people, 0, 9000 + number).pairs).flagged.any())
            for number in range(PAIRS_RUNS)
        ]
        for number, nominal, values in (
            ("false discoveries", pairs.RATE, results),
            ("fair crowds", 0.05, fair),
        ):
            item = pairs._row(number, data, nominal, np.array(values))
            yield replace(item, per_item=float(votes))
