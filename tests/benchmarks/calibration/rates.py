"""Annotators' rates: coverage of intervals, error of accuracies, and detection of changes and copies."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels import OPEN, LabelFusion, Labels
from raterscope.algorithms.labels.constancy import FALSE_ALARMS, HALVES, constancy, half_change
from raterscope.algorithms.labels.copying import find_copies
from raterscope.algorithms.labels.data import ClassArray, FloatArray
from raterscope.algorithms.labels.dynamic import dynibcc
from raterscope.algorithms.labels.ibcc import ibcc
from raterscope.algorithms.labels.pooled import pooled
from raterscope.algorithms.labels.rates import Rates, rates_of
from tests.benchmarks.calibration import Row

_MIN_ROW, _MIN_CROWD_ROW, _MIN_VOTES = 10, 30, 25
"""Votes with known truth of a row, of a crowd's row, and of an annotator whose accuracy is compared."""

_CHANGED, _CONSTANT = 600, 1000
"""Annotators of simulated crowds who change, and who do not in crowds where none do."""

_HALF_CHANGES = (
    (1000, 5, 0.85, 0.65, 2, 0.5), (4000, 5, 0.85, 0.65, 2, 0.5), (4000, 3, 0.85, 0.65, 2, 0.5),
    (4000, 3, 0.75, 0.55, 2, 0.5), (1000, 5, 0.85, 0.65, 3, 0.5), (4000, 5, 0.75, 0.9, 2, 0.5),
    (4000, 5, 0.85, 0.65, 2, 0.1), (4000, 5, 0.85, 0.65, 2, 1.0), (4000, 5, 0.85, 0.85, 2, 0.0),
)  # fmt: skip
"""Crowds whose halves of votes are compared: tasks, votes on each, accuracy before and after, classes, and
the share of annotators who change."""

_CROWDS, _CROWD = 10, 40
"""Crowds of each such kind, and the annotators of one."""

_RINGS = 10
"""Simulated crowds with a ring of copiers."""

_UNCORRECTED = "accuracies, of known tasks alone"
"""Coverage of the shares on tasks with known truth, as if all tasks had one."""

Measured = dict[str, tuple[FloatArray, FloatArray]]
"""Coverage and widths of the intervals, by number."""


def rows() -> list[Row]:
    """Measure on simulated crowds, and on public ones where RATERSCOPE_DATA names their folder."""
    from raterscope.app.papers.experiments import read_labels_of  # the rest needs the algorithms alone

    results: list[Row] = []
    crowds = []
    if folder := os.environ.get("RATERSCOPE_DATA"):
        root = Path(folder)
        names = sorted(path.stem.removesuffix("_truth") for path in (root / "labels").glob("*_truth.csv"))
        crowds = [(name, *read_labels_of(root, name)) for name in names]
    for title, method in (("pooled", pooled), ("ibcc", ibcc)) if crowds else ():
        measured = [_against_truth(labels, truth, method(labels)) for _, labels, truth in crowds]
        results += _covered(f"{len(crowds)} crowds, {title}", measured)
    for classes in (2, 5, 10, 30):
        shape = (198, 5000) if classes == 30 else (60, 600)
        measured = [_simulated(seed, classes, *shape) for seed in range(1 if classes == 30 else 3)]
        results += _covered(f"simulated, {classes} classes, pooled", measured)
    for before, after in ((0.87, 0.65), (0.87, 0.72), (0.9, 0.75), (0.95, 0.8), (0.75, 0.9)):
        results += _changes(before, after)
    for each, classes, good in ((3, 3, 0.8), (5, 3, 0.65), (5, 2, 0.75)):
        results += _changes(good, good, 300 * 40 // each, 40, each, classes)
    results += _changes(0.85, 0.65, 300 * 40 // 5, 40, 5)
    for tasks, each, before, after, classes, share in _HALF_CHANGES:
        results += _half_changes(tasks, each, before, after, classes, share)
    return [*results, *_copying()]


def _covered(data: str, measured: list[Measured]) -> list[Row]:
    results = []
    for name in ("entries", "accuracies", _UNCORRECTED, "crowd's entries"):
        all_of = [one[name] for one in measured if len(one[name][0])]
        shares, widths = (np.array([values[at].mean() for values in all_of]) for at in (0, 1))
        error = float(shares.std(ddof=1) / np.sqrt(len(shares))) if len(shares) > 1 else float("nan")
        count = sum(len(inside) for inside, _ in all_of)
        results.append(
            Row("rates", f"95 % intervals of {name}", data, 0.95, float(shares.mean()), count, error)
        )
        if len(shares) > 1:
            results.append(
                Row("rates", f"the same, worst crowd, {name}", data, 0.85, float(shares.min()), len(shares))
            )
        results.append(Row("rates", f"mean width, {name}", data, float("nan"), float(widths.mean()), count))
    errors = [one["errors"][0] for one in measured if len(one["errors"][0])]
    mean = float(np.mean([one.mean() for one in errors]))
    return [*results, Row("rates", "mean error of accuracy", data, 0.05, mean, sum(map(len, errors)))]


def _against_truth(labels: Labels, truth: ClassArray, fusion: LabelFusion) -> Measured:
    rates = rates_of(labels, fusion)
    known = truth[labels.task] != OPEN
    annotator, true, answers = labels.annotator[known], truth[labels.task][known], labels.label[known]
    counts = np.zeros(rates.mean.shape)
    np.add.at(counts, (annotator, true, answers), 1.0)
    votes = counts.sum(axis=2)
    share = counts / np.maximum(votes, 1)[:, :, None]
    clusters = np.zeros((len(labels.tasks), counts.shape[2]))
    np.add.at(clusters, (labels.task[known], answers), 1.0)
    return _compared(rates, share, votes >= _MIN_ROW, counts, (clusters, truth))


def _compared(
    rates: Rates,
    true: FloatArray,
    is_known: NDArray[np.bool_],
    counts: FloatArray,
    sample: tuple[FloatArray, ClassArray] | None = None,
) -> Measured:
    """Return what is inside its interval, and widths: entries, accuracies, the crowd's entries; errors.

    Parameters
    ----------
    rates : Rates
    true : (K, J, L) float64
        True rates, or shares of the votes with known truth.
    is_known : (K, J) bool
    counts : (K, J, L) float64
        Votes with known truth.
    sample : (N, L) float64 and (N,) int, optional
        Votes of each known task, and its class, where the true rates are shares of votes. Where few of an
        annotator's votes have a known truth, these shares vary as those of samples; see `_sampled`.
    """
    votes = counts.sum(axis=(1, 2))
    right = np.trace(counts, axis1=1, axis2=2) / np.maximum(votes, 1)
    mean, low, high = rates.accuracies()
    some, many = votes >= _MIN_ROW, votes >= _MIN_VOTES
    total = counts.sum(axis=0)
    rows = total.sum(axis=1)
    share = total / np.maximum(rows, 1)[:, None]
    together = rates.together(np.flatnonzero(rates.given))
    crowd = together.interval()
    row, crowd_row = rates.counts.sum(axis=2), together.counts[0].sum(axis=1)
    of_entries = of_crowd = None
    if sample is not None:
        of_entries = _sampled(rates.mean, counts.sum(axis=2)[:, :, None], row[:, :, None])
        of_crowd = _between_tasks(*sample, share) * _missing(rows, crowd_row)[:, None]
    return {
        "entries": _inside(rates.interval(), true, is_known, rates.mean, of_entries),
        "accuracies": _inside((low, high), right, some, mean, _sampled(mean, votes, rates.votes)),
        _UNCORRECTED: _inside((low, high), right, some, mean, None),
        "crowd's entries": _inside(
            (crowd[0][0], crowd[1][0]), share, rows >= _MIN_CROWD_ROW, together.mean[0], of_crowd
        ),
        "errors": (np.abs(mean - right)[many], np.empty(0)),
    }


def _inside(
    ends: tuple[FloatArray, FloatArray],
    true: FloatArray,
    some: NDArray[np.bool_],
    mean: FloatArray,
    sampled: FloatArray | None,
) -> tuple[FloatArray, FloatArray]:
    low, high = (item[some].ravel() for item in ends)
    values, middle = true[some].ravel(), mean[some].ravel()
    added = np.zeros(len(values)) if sampled is None else 1.96 * np.sqrt(sampled[some].ravel())
    below, above = np.hypot(middle - low, added), np.hypot(high - middle, added)
    inside = (middle - below - 1e-9 <= values) & (values <= middle + above + 1e-9)
    return inside.astype(np.float64), high - low


def _sampled(mean: FloatArray, known: FloatArray, votes: FloatArray) -> FloatArray:
    """Return the variance of a share among `known` of all votes (a sample without replacement)."""
    return np.asarray(mean * (1 - mean) / np.maximum(known, 1) * _missing(known, votes))


def _missing(known: FloatArray, votes: FloatArray) -> FloatArray:
    return np.clip(1 - known / np.maximum(votes, 1e-9), 0.0, 1.0)


def _between_tasks(votes: FloatArray, truth: ClassArray, share: FloatArray) -> FloatArray:
    """Return the variance of the crowd's shares, (J, L), in a sample of tasks, whose votes are alike."""
    variance = np.zeros(share.shape)
    for true, row in enumerate(share):
        own = votes[truth == true]
        count = own.sum(axis=1, keepdims=True)
        variance[true] = np.square((own - count * row) / max(float(count.sum()), 1.0)).sum(axis=0)
    return variance


def _simulated(seed: int, classes: int, annotators: int, tasks: int) -> Measured:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, tasks)
    good = np.full(annotators, 0.9) if classes == 30 else rng.beta(6, 2, annotators)
    true = rng.dirichlet(np.ones(classes), (annotators, classes)) * (1 - np.eye(classes))
    true *= ((1 - good)[:, None] / true.sum(axis=2))[:, :, None]
    true[:, np.arange(classes), np.arange(classes)] = good[:, None]
    task = np.repeat(np.arange(tasks), 5)
    annotator = np.argsort(rng.random((tasks, annotators)), axis=1)[:, :5].ravel()
    above = rng.random(len(task))[:, None] > true[annotator, truth[task]].cumsum(axis=1)
    labels = _labels(task, annotator, np.minimum(above.sum(axis=1), classes - 1), classes)
    counts = np.zeros(true.shape)
    np.add.at(counts, (annotator, truth[task], labels.label), 1.0)
    return _compared(rates_of(labels, pooled(labels)), true, counts.sum(axis=2) >= _MIN_ROW // 2, counts)


def _changes(
    before: float, after: float, tasks: int = 300, annotators: int = 20, each: int = 20, classes: int = 3
) -> list[Row]:
    """Let half of the annotators change after half of the tasks, or none, and test them.

    A change is also tested with all classes known, which is the most that votes can reveal.
    """
    changing = annotators // 2 if before != after else 0
    many = -(-_CHANGED // changing) if changing else _CONSTANT // annotators
    by_votes, by_truth = [], []
    for seed in range(many):
        rng = np.random.default_rng([seed, each, classes, round(100 * before), round(100 * after)])
        truth = rng.integers(0, classes, tasks)
        task = np.repeat(np.arange(tasks), each)
        annotator = np.argsort(rng.random((tasks, annotators)), axis=1)[:, :each].ravel()
        changed = (annotator < changing) & (task >= tasks // 2)
        right = rng.random(len(task)) < np.where(changed, after, before)
        wrong = (truth[task] + rng.integers(1, classes, len(task))) % classes
        labels = _labels(task, annotator, np.where(right, truth[task], wrong), classes)
        fusion = dynibcc(labels)
        by_votes.append(constancy(labels, fusion).p < FALSE_ALARMS)
        known = replace(fusion, drift=None, posterior=np.eye(classes)[truth], known=truth.astype(np.int16))
        by_truth.append(constancy(labels, known).p < FALSE_ALARMS)
    data = f"simulated, {before:g} to {after:g}, {each} votes a task, {classes} classes"
    results = []
    for number, nominal, some in (
        ("changes found", 0.9, slice(changing)),
        ("false changes", FALSE_ALARMS, slice(changing, None)),
    ):
        for words, tested in (("", by_votes), (", classes known", by_truth)):
            named = np.array(tested)[:, some]
            if named.size:
                share = float(named.mean())
                error = float(np.sqrt(share * (1 - share) / named.size))
                results.append(Row("rates", number + words, data, nominal, share, named.size, error))
    return results


def _half_changes(
    tasks: int, each: int, before: float, after: float, classes: int, share: float
) -> list[Row]:
    """Let annotators change after half of their votes; count the intervals that hold the true change."""
    changes = np.arange(_CROWD) < share * _CROWD
    inside, widths = [], []
    for seed in range(_CROWDS):
        rng = np.random.default_rng([seed, tasks, each, classes, round(100 * before), round(100 * share)])
        truth = rng.integers(0, classes, tasks)
        task = np.repeat(np.arange(tasks), each)
        annotator = np.argsort(rng.random((tasks, _CROWD)), axis=1)[:, :each].ravel()
        order = np.argsort(annotator, kind="stable")
        votes = np.bincount(annotator, minlength=_CROWD)
        rank = np.empty(len(task), dtype=np.int64)
        rank[order] = np.arange(len(task)) - np.repeat(np.cumsum(votes) - votes, votes)
        good = np.clip(rng.normal(before, 0.05, _CROWD), 0.5, 0.99)
        late = changes[annotator] & (rank >= votes[annotator] // 2)
        right = rng.random(len(task)) < good[annotator] + np.where(late, after - before, 0.0)
        wrong = (truth[task] + rng.integers(1, classes, len(task))) % classes
        labels = _labels(task, annotator, np.where(right, truth[task], wrong), classes)
        _, low, high = half_change(labels, pooled(labels)).T
        true = np.where(changes, after - before, 0.0)
        inside.append(((low <= true) & (true <= high))[votes >= HALVES])
        widths.append((high - low)[votes >= HALVES])
    data = f"simulated, {before:g} to {after:g}, {share:g} of them, {each}x{tasks}, {classes} classes"
    results = []
    for words, some in (("who change", changes), ("who do not", ~changes)):
        shares = [one[some].mean() for one in inside if some.any()]
        if shares:
            error = float(np.std(shares, ddof=1) / np.sqrt(len(shares)))
            number = f"95 % intervals of changes, annotators {words}"
            results.append(
                Row("rates", number, data, 0.95, float(np.mean(shares)), len(shares) * int(some.sum()), error)
            )
    width = float(np.mean(np.concatenate(widths)))
    return [*results, Row("rates", "mean width, changes", data, float("nan"), width, 0)]


def _copying() -> list[Row]:
    """Find rings of copiers, and none if two annotators share a misunderstanding."""
    results = []
    for ring, annotators in ((6, 40), (15, 40), (15, 20), (20, 25)):
        full, others = [], []
        for seed in range(_RINGS):
            labels = _ring(seed, ring, annotators)
            groups = find_copies(labels, pooled(labels)).groups()
            full.append(groups == (tuple(range(ring)),))
            others.append(any(member >= ring for group in groups for member in group))
        data = f"simulated, {ring} of {annotators}"
        results += [
            Row("rates", "a ring is one group", data, 1.0, float(np.mean(full)), _RINGS),
            Row("rates", "others are accused", data, 0.0, float(np.mean(others)), _RINGS),
        ]
    accused = []
    for seed in range(_RINGS):
        labels = _ring(seed, 0, 40)
        accused.append(len(find_copies(labels, pooled(labels)).groups()) > 0)
    misread = []
    for seed in range(2 * _RINGS):
        labels = _misread(seed)
        misread.append(len(find_copies(labels, pooled(labels)).groups()) > 0)
    number = "same misunderstanding is accused"
    return [
        *results,
        Row("rates", number, "simulated, 2 of 40", 0.0, float(np.mean(accused)), _RINGS),
        Row("rates", number, "simulated, 15 of 30", 0.0, float(np.mean(misread)), 2 * _RINGS),
    ]


def _ring(seed: int, ring: int, annotators: int) -> Labels:
    """Draw a crowd of which the first copy the first one's labels; without a ring two swap two classes."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 5, 300)
    good = rng.uniform(0.6, 0.9, annotators)
    wrong = (truth[:, None] + rng.integers(1, 5, (300, annotators))) % 5
    answers = np.where(rng.random((300, annotators)) < good, truth[:, None], wrong)
    task, annotator = np.nonzero(rng.random((300, annotators)) < 0.5)
    if ring:
        answers[:, 1:ring] = np.where(rng.random((300, ring - 1)) < 0.99, answers[:, :1], answers[:, 1:ring])
    else:
        swapped = np.array([0, 1, 3, 2, 4])[truth]
        answers[:, :2] = np.where(rng.random((300, 2)) < 0.95, swapped[:, None], answers[:, :2])
    return _labels(task, annotator, answers[task, annotator], 5)


def _misread(seed: int) -> Labels:
    """Draw a crowd of which half reads class 2 as class 1, with unequal numbers of votes."""
    rng = np.random.default_rng([seed, 15, 30])
    truth, good = rng.integers(0, 4, 400), rng.beta(10, 2, 30)
    answers = np.where(rng.random((400, 30)) < good, truth[:, None], rng.integers(0, 4, (400, 30)))
    misread = (truth == 2)[:, None] & (np.arange(30) < 15) & (rng.random((400, 30)) < 0.9)
    answers[misread] = 1
    chance = np.log(rng.pareto(1.5, 30) + 0.3) + rng.gumbel(size=(400, 30))
    task, annotator = np.nonzero(chance >= np.sort(chance, axis=1)[:, -6:-5])
    return _labels(task, annotator, answers[task, annotator], 4)


def _labels(
    task: NDArray[np.integer], annotator: NDArray[np.integer], label: NDArray[np.integer], classes: int
) -> Labels:
    names = [tuple(map(str, range(int(count)))) for count in (task.max() + 1, annotator.max() + 1, classes)]
    return Labels(
        task.astype(np.int32), annotator.astype(np.int32), label.astype(np.int16), names[0], names[1],
        names[2], names[2],
    )  # fmt: skip
