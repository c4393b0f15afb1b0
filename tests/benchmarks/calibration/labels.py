"""Labels: probabilities of every consensus against the vote, classes without votes, and decided tasks.

Without `RATERSCOPE_DATA` only simulated crowds are measured.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from raterscope.algorithms.labels.data import OPEN, ClassArray, FloatArray, LabelFusion, Labels
from raterscope.algorithms.labels.fusion import LabelPlan, run
from raterscope.algorithms.labels.unvoted import unvoted_tasks
from tests.benchmarks.calibration import Row
from tests.benchmarks.labels_accuracy import read

SETS = ("bluebirds", "rte", "dog", "duchenne", "cf_amt", "product", "sp_amt", "adult2", "web", "trec")
METHODS = ("pooled", "ebcc", "ibcc")
GOALS = {"accuracy": 0.82, "log loss": 0.55, "calibration error": 0.07, "worst against the vote": -0.015}
EBCC = {
    "cf_amt": 0.857, "sp_amt": 0.944, "product": 0.935, "bluebirds": 0.861, "dog": 0.840, "rte": 0.931,
    "trec": 0.704, "web": 0.769,
}  # fmt: skip
"""Accuracy of EBCC as published (Li, Rubinstein and Cohn 2019), ties sharing credit."""

DECIDED = (1, 3, 10, 30)
_BINS = 10


def measured(posterior: FloatArray, truth: ClassArray) -> tuple[float, float, float]:
    """Give accuracy and log loss, ties sharing credit, and expected calibration error in ten bins."""
    posterior, truth = posterior[truth != OPEN], truth[truth != OPEN]
    each = np.arange(len(truth))
    most = posterior.max(axis=1)
    top = posterior >= most[:, None] - 1e-9
    hit = top[each, truth] / top.sum(axis=1)
    loss = -np.log(np.maximum(posterior[each, truth], 1e-12)).mean()
    place = np.minimum((most * _BINS).astype(int), _BINS - 1)
    gap = np.abs(np.bincount(place, most - hit, minlength=_BINS)).sum() / len(truth)
    return float(hit.mean()), float(loss), float(gap)


def simulated(seed: int, classes: int, lookalike: float) -> tuple[Labels, ClassArray]:
    """Draw five votes on each of 1,000 tasks; some tasks look like another class to four in five."""
    generator = np.random.default_rng(seed)
    tasks, each, annotators = 1_000, 5, 60
    truth = generator.integers(0, classes, tasks).astype(np.int16)
    apparent = truth.copy()
    hard = generator.random(tasks) < lookalike
    apparent[hard] = generator.integers(0, classes, int(hard.sum()))
    task = np.repeat(np.arange(tasks), each)
    annotator = generator.random((tasks, annotators)).argsort(axis=1)[:, :each].ravel()
    seen = np.where(generator.random(len(task)) < 0.8, apparent[task], truth[task])
    wrong = generator.random(len(task)) > generator.uniform(0.55, 0.95, annotators)[annotator]
    label = np.where(wrong, (seen + generator.integers(1, classes, len(task))) % classes, seen)
    names = tuple(map(str, range(classes)))
    people, images = tuple(map(str, range(annotators))), tuple(map(str, range(tasks)))
    return Labels(task, annotator, label, images, people, names, names), truth


def rows() -> list[Row]:
    """Measure every consensus on all crowds at hand."""
    root = os.environ.get("RATERSCOPE_DATA")
    crowds = {name: read(Path(root), name) for name in SETS} if root else {}
    found = []
    for method in METHODS if root else ():
        found += _of_crowds(method, crowds)
    for method in METHODS:
        for share in (0.0, 0.3):
            found += _of_simulation(method, share)
    for name, (labels, truth) in crowds.items():
        found += _of_decisions(name, labels, truth)
    return found


def _fused(method: str, labels: Labels) -> LabelFusion:
    return run(labels, LabelPlan.make(method))


def _of_crowds(method: str, crowds: dict[str, tuple[Labels, ClassArray]]) -> list[Row]:
    found, figures, worst, unvoted = [], [], math.inf, []
    for name, (labels, truth) in crowds.items():
        fusion = _fused(method, labels)
        accuracy, loss, gap = measured(fusion.posterior, truth)
        vote = measured(_fused("majority", labels).posterior, truth)[0]
        count = int((truth != OPEN).sum())
        figures.append((accuracy, loss, gap))
        worst = min(worst, accuracy - vote)
        tasks = unvoted_tasks(labels, fusion)
        tasks = tasks[truth[tasks] != OPEN]
        unvoted += (fusion.label()[tasks] == truth[tasks]).tolist()
        error = math.sqrt(accuracy * (1 - accuracy) / count)
        if method != "ibcc":
            nominal = EBCC.get(name, vote)
            found.append(
                Row(
                    "labels",
                    f"{method}: accuracy (EBCC published, or vote)",
                    name,
                    nominal,
                    accuracy,
                    count,
                    error,
                )
            )
        found.append(
            Row("labels", f"{method}: calibration error", name, GOALS["calibration error"], gap, count)
        )
    data = f"{len(crowds)} crowds"
    values = [*np.mean(figures, axis=0).tolist(), worst]
    found += [
        Row("labels", f"{method}: {number}", data, goal, value, len(crowds))
        for (number, goal), value in zip(GOALS.items(), values, strict=True)
    ]
    if unvoted:
        share = float(np.mean(unvoted))
        found.append(Row("labels", f"{method}: class without votes is right", data, 0.8, share, len(unvoted)))
    return found


def _of_simulation(method: str, share: float) -> list[Row]:
    figures = []
    for classes in (2, 3, 5):
        for seed in range(2):
            labels, truth = simulated(seed, classes, share)
            figures.append(measured(_fused(method, labels).posterior, truth))
    data = "simulated" + (f", {share:.0%} look-alikes" if share else ", independent")
    values = np.mean(figures, axis=0)
    error = np.std(figures, axis=0, ddof=1) / math.sqrt(len(figures))
    return [
        Row(
            "labels",
            f"{method}: {number}",
            data,
            GOALS[number],
            float(values[at]),
            len(figures),
            float(error[at]),
        )
        for at, number in ((1, "log loss"), (2, "calibration error"))
    ]


def _of_decisions(name: str, labels: Labels, truth: ClassArray) -> list[Row]:
    """Decide the most disputed tasks, and divide the log loss of the others by that before."""
    before = _fused("pooled", labels)
    order = np.argsort(-np.where(truth == OPEN, -1.0, before.entropy()), kind="stable")
    found = []
    for count, wrong in [*((count, False) for count in DECIDED), (DECIDED[-1], True)]:
        known = np.full(len(truth), OPEN, dtype=np.int16)
        known[order[:count]] = truth[order[:count]]
        if wrong:
            fifth = order[:count:5]
            known[fifth] = (truth[fifth] + 1) % len(labels.classes)
        rest = np.where(known == OPEN, truth, OPEN).astype(np.int16)
        after = _fused("pooled", replace(labels, known=known))
        ratio = measured(after.posterior, rest)[1] / measured(before.posterior, rest)[1]
        words = f"log loss, {count} others decided" + (", 1 in 5 wrong" if wrong else "")
        found.append(Row("labels", words, name, 1.0, ratio, int((rest != OPEN).sum())))
    return found
