"""Labels: probabilities of every consensus against the vote, classes without votes, and decided tasks.

Without `RATERSCOPE_DATA` only simulated crowds are measured.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.data import OPEN, ClassArray, FloatArray, LabelFusion, Labels
from raterscope.algorithms.labels.fusion import LabelPlan, run, unvoted_tasks
from raterscope.algorithms.labels.vote_budget import expected_errors, has_enough, vote_ranks
from tests.benchmarks.calibration import Row
from tests.benchmarks.calibration._label_crowds import KINDS, draw

SETS = ("bluebirds", "rte", "dog", "duchenne", "cf_amt", "product", "sp_amt", "adult2", "web", "trec")
GRADES = ("adult2", "web", "cf_amt", "dog")
"""Sets of grades, and of codes that could be taken for grades."""

METHODS = ("pooled", "ebcc", "ibcc")
_USUAL = "pooled: the same, of calibrated posteriors"
GOALS = {"accuracy": 0.82, "log loss": 0.55, "calibration error": 0.07, "worst against the vote": -0.015}
EBCC = {
    "cf_amt": 0.857, "sp_amt": 0.944, "product": 0.935, "bluebirds": 0.861, "dog": 0.840, "rte": 0.931,
    "trec": 0.704, "web": 0.769,
}  # fmt: skip
"""Accuracy of EBCC as published (Li, Rubinstein and Cohn 2019), ties sharing credit."""

DECIDED = (1, 3, 10, 30)
_RATIO = "log loss of the others, ratio"
_BINS = 10
_DRAWS = 100
_FEW = 20
"""Disputed tasks, below which their number is not compared."""


def measured(posterior: FloatArray, truth: ClassArray) -> tuple[float, float, float]:
    """Return accuracy and log loss, ties sharing credit, and expected calibration error in ten bins."""
    posterior, truth = posterior[truth != OPEN], truth[truth != OPEN]
    each = np.arange(len(truth))
    most = posterior.max(axis=1)
    top = posterior >= most[:, None] - 1e-9
    hit = top[each, truth] / top.sum(axis=1)
    loss = -np.log(np.maximum(posterior[each, truth], 1e-12)).mean()
    return float(hit.mean()), float(loss), _calibration_error(most, hit)


def _calibration_error(most: FloatArray, hit: NDArray[np.floating | np.bool_]) -> float:
    bin_index = np.minimum((most * _BINS).astype(int), _BINS - 1)
    return float(np.abs(np.bincount(bin_index, most - hit, minlength=_BINS)).sum() / len(most))


def _usual_error(posterior: FloatArray, truth: ClassArray) -> float:
    """Return the mean calibration error of these posteriors, were they calibrated."""
    most = posterior[truth != OPEN].max(axis=1)
    rng = np.random.default_rng(0)
    return float(np.mean([_calibration_error(most, rng.random(len(most)) < most) for _ in range(_DRAWS)]))


def rows() -> list[Row]:
    """Measure every consensus on all crowds at hand."""
    from raterscope.app.papers.experiments import read_labels_of  # the rest needs the algorithms alone

    root = os.environ.get("RATERSCOPE_DATA")
    crowds = {name: read_labels_of(Path(root), name) for name in SETS} if root else {}
    results = []
    for method in METHODS if root else ():
        results += _of_crowds(method, crowds)
    results += [_of_grades(name, *crowds[name]) for name in GRADES if name in crowds]
    for method in METHODS:
        for kind in KINDS:
            results += _of_simulation(method, kind)
    thinned = [(_thinned(labels, most), truth) for labels, truth in crowds.values() for most in (2, 3, 5)]
    drawn = {
        f"simulated, {kind}": [draw(crowd, 300 + at) for at, crowd in enumerate(some)]
        for kind, some in KINDS.items()
    }
    for data, some in {"real crowds": list(crowds.values()), "real, thinned": thinned, **drawn}.items():
        results += _of_errors(data, some)
    for name, (labels, truth) in crowds.items():
        results += _of_decisions(name, labels, truth)
    for kind, some in KINDS.items():
        for at, crowd in enumerate(some[:: max(1, len(some) // 2)]):
            name = f"simulated, {kind} {at + 1}"
            results += _of_decisions(name, *draw(crowd, 100 + at))
    return [*results, *_summed(results)]


def _summed(rows: list[Row]) -> list[Row]:
    """Return mean and worst of the ratios over real and over simulated crowds, by what was decided."""
    groups: dict[str, list[float]] = {}
    for row in rows:
        if row.number == _RATIO:
            crowd, decided = row.data.rsplit(", 1 in 5 wrong", 1)[0].rsplit(", ", 1)
            decided = "all decided" if decided.startswith("all") else decided
            decided += ", 1 in 5 wrong" if row.data.endswith("wrong") else ""
            where = "simulated" if crowd.startswith("simulated") else "real crowds"
            groups.setdefault(f"{where}, {decided}", []).append(row.measured)
    results = []
    for data, values in groups.items():
        mean = float(np.exp(np.log(values).mean()))
        results.append(Row("labels", f"{_RATIO}, mean", data, 1.0, mean, len(values)))
        results.append(Row("labels", f"{_RATIO}, worst", data, 1.03, max(values), len(values)))
    return results


def _fused(method: str, labels: Labels) -> LabelFusion:
    return run(labels, LabelPlan.make(method))


def _of_crowds(method: str, crowds: dict[str, tuple[Labels, ClassArray]]) -> list[Row]:
    results, figures, worst, unvoted = [], [], math.inf, []
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
            results.append(
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
        results.append(
            Row("labels", f"{method}: calibration error", name, GOALS["calibration error"], gap, count)
        )
        if method == "pooled":
            results.append(
                Row("labels", _USUAL, name, math.nan, _usual_error(fusion.posterior, truth), count)
            )
    data = f"{len(crowds)} crowds"
    values = [*np.mean(figures, axis=0).tolist(), worst]
    results += [
        Row("labels", f"{method}: {number}", data, goal, value, len(crowds))
        for (number, goal), value in zip(GOALS.items(), values, strict=True)
    ]
    if unvoted:
        share = float(np.mean(unvoted))
        error = math.sqrt(share * (1 - share) / len(unvoted))
        results.append(
            Row("labels", f"{method}: class without votes is right", data, 0.8, share, len(unvoted), error)
        )
    return results


def _of_grades(name: str, labels: Labels, truth: ClassArray) -> Row:
    """Compare the log loss of ordered classes with that of the same classes without an order."""
    plain, ordered = (
        measured(_fused("pooled", replace(labels, ordered=order)).posterior, truth)[1]
        for order in (False, True)
    )
    return Row("labels", "pooled: log loss as grades", name, plain, ordered, int((truth != OPEN).sum()))


def _of_simulation(method: str, kind: str) -> list[Row]:
    figures, usual = [], []
    for at, crowd in enumerate(KINDS[kind]):
        labels, truth = draw(crowd, 100 + at)
        vote = measured(_fused("majority", labels).posterior, truth)[0]
        posterior = _fused(method, labels).posterior
        accuracy, loss, gap = measured(posterior, truth)
        figures.append((accuracy - vote, loss, gap))
        usual.append(_usual_error(posterior, truth))
    values = np.mean(figures, axis=0)
    error = np.std(figures, axis=0, ddof=1) / math.sqrt(len(figures))
    numbers = (("accuracy above the vote", 0.0), ("log loss", math.nan), ("calibration error", 0.07))
    data = f"simulated, {kind}"
    results = [
        Row("labels", f"{method}: {name}", data, goal, value, len(figures), spread)
        for (name, goal), value, spread in zip(numbers, values.tolist(), error.tolist(), strict=True)
    ]
    if method == "pooled":
        results.append(Row("labels", _USUAL, data, math.nan, float(np.mean(usual)), len(usual)))
    return results


def _thinned(labels: Labels, most: int) -> Labels:
    order = np.random.default_rng(most).permutation(len(labels))
    return labels.subset(vote_ranks(labels, order) < most)


def _of_errors(data: str, crowds: list[tuple[Labels, ClassArray]]) -> list[Row]:
    """Compare expected with actual numbers of wrong labels, after the most disputed tasks were decided."""
    fused = [(_fused("pooled", labels), truth) for labels, truth in crowds]
    results = []
    for decided in (0, *DECIDED[2:], 100):
        held, width, gap, enough_held = [], [], [], []
        for fusion, truth in fused:
            judged = np.flatnonzero((truth != OPEN) & (fusion.votes > 0))
            if decided > len(judged) // 2:
                continue
            order = judged[np.argsort(fusion.posterior[judged].max(axis=1), kind="stable")]
            known, remaining = np.full(len(truth), OPEN, dtype=np.int16), order[decided:]
            known[order[:decided]] = truth[order[:decided]]
            unknown = np.setdiff1d(np.arange(len(truth)), remaining)
            errors = expected_errors(fusion, known, decided=unknown.tolist())
            wrong = int((fusion.label()[remaining] != truth[remaining]).sum())
            held.append(errors.low <= wrong <= errors.high)
            width.append((errors.high - errors.low) / errors.tasks)
            gap.append(abs(errors.expected - wrong) / errors.tasks)
            enough = remaining[has_enough(fusion)[remaining]]
            if len(enough) >= _FEW:
                unknown = np.setdiff1d(np.arange(len(truth)), enough)
                errors = expected_errors(fusion, known, decided=unknown.tolist())
                wrong = int((fusion.label()[enough] != truth[enough]).sum())
                enough_held.append(errors.low <= wrong <= errors.high)
        here = f"{data}, {decided} decided"
        for number, nominal, values in (
            ("interval of wrong labels holds", 0.95, held),
            ("its width, share of the tasks", math.nan, width),
            ("interval where votes are enough holds", 0.95, enough_held),
            ("expected share of wrong labels, error", 0.0, gap),
        ):
            if values:
                mean = float(np.mean(values))
                results.append(Row("labels", f"pooled: {number}", here, nominal, mean, len(values)))
    return results


def _of_decisions(name: str, labels: Labels, truth: ClassArray) -> list[Row]:
    """Decide the most disputed tasks, and compare the others with what they were before."""
    before = _fused("pooled", labels)
    order = np.argsort(-np.where(truth == OPEN, -1.0, before.entropy()), kind="stable")
    most = min(int((disputed(before.posterior) & (truth != OPEN)).sum()), int((truth != OPEN).sum()) // 2)
    results = []
    for count, wrong in [*((count, False) for count in (*DECIDED, most)), (DECIDED[-1], True), (most, True)]:
        known = np.full(len(truth), OPEN, dtype=np.int16)
        known[order[:count]] = truth[order[:count]]
        if wrong:
            fifth = order[:count:5]
            known[fifth] = (truth[fifth] + 1) % len(labels.classes)
        remaining = np.where(known == OPEN, truth, OPEN).astype(np.int16)
        after = _fused("pooled", replace(labels, known=known))
        ratio = measured(after.posterior, remaining)[1] / measured(before.posterior, remaining)[1]
        here = f"{name}, {'all ' if count == most else ''}{count} decided" + (
            ", 1 in 5 wrong" if wrong else ""
        )
        size = int((remaining != OPEN).sum())
        results.append(Row("labels", _RATIO, here, 1.0, ratio, size))
        if not wrong:
            doubt = [disputed(item.posterior)[known == OPEN].sum() for item in (before, after)]
            if doubt[0] >= _FEW:
                ratio = float(doubt[1] / doubt[0])
                results.append(Row("labels", "disputed others, ratio", here, 1.1, ratio, int(doubt[0])))
            crossed = _crossed(before.posterior, after.posterior, remaining)
            results.append(Row("labels", "others that cross .5 away from truth", here, 0.01, crossed, size))
    return results


def disputed(posterior: FloatArray) -> NDArray[np.bool_]:
    """Tell the tasks on which no class has a posterior of .9."""
    return np.asarray(posterior.max(axis=1) < 0.9)


def _crossed(before: FloatArray, after: FloatArray, truth: ClassArray) -> float:
    """Return the share of tasks whose true class had a posterior above .5, and has not."""
    judged = np.flatnonzero(truth != OPEN)
    was, now = (item[judged, truth[judged]] for item in (before, after))
    return float(((was > 0.5) & (now <= 0.5)).mean())
