"""Unusual annotators: share of them who do not answer at random, and share found of those who do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels import Labels
from raterscope.algorithms.labels.pooled import pooled
from raterscope.algorithms.labels.rates import rates_of
from raterscope.app.annotator_evidence import Evidence
from raterscope.app.annotators.table import FALSE_SHARE, AnnotatorTable, find_unusual
from raterscope.app.kinds.labels.annotators import ACCURACY
from tests.benchmarks.calibration import Row

_SIZES = ((30, 6), (300, 3), (3000, 2), (20_000, 1))
"""Annotators of a crowd, and the crowds."""

_MOST = 250_000
"""Votes of a crowd."""

_EACH = 5
"""Votes on a task."""


def rows() -> list[Row]:
    """Measure crowds of many sizes; annotators differ a little, and some answer at random."""
    results = []
    for annotators, crowds in _SIZES:
        for votes in (3, 10, 50):
            for classes in (2, 5, 30):
                if annotators * votes <= _MOST and annotators * classes**2 <= 5_000_000:
                    for share in (0.0, 0.02, 0.1):
                        results += _measure(annotators, votes, classes, share, crowds)
    return results


def _measure(annotators: int, votes: int, classes: int, share: float, crowds: int) -> list[Row]:
    false, found = [], []
    for seed in range(crowds):
        labels, is_random = _crowd(seed, annotators, votes, classes, share)
        named = find_unusual(_table(labels)).score > 0
        false.append((named & ~is_random).sum() / max(named.sum(), 1))
        found.append((named & is_random).sum() / max(is_random.sum(), 1))
    data = f"simulated, {annotators:,} with {votes} votes, {classes} classes, {share:g} random"
    error = float(np.std(false, ddof=1) / np.sqrt(crowds)) if crowds > 1 else float("nan")
    measured = float(np.mean(false)), crowds, error
    results = [Row("unusual", "share of unusual annotators who are not", data, FALSE_SHARE, *measured)]
    if share:
        power = float(np.mean(found))
        results.append(Row("unusual", "share of random annotators found", data, float("nan"), power, crowds))
    return results


def _crowd(
    seed: int, annotators: int, votes: int, classes: int, share: float
) -> tuple[Labels, NDArray[np.bool_]]:
    rng = np.random.default_rng([7, seed, annotators, votes, classes, round(100 * share)])
    voter = np.repeat(np.arange(annotators), votes)
    rng.shuffle(voter)
    tasks = annotators * votes // _EACH
    task = np.arange(len(voter)) % tasks
    truth = rng.integers(0, classes, tasks)
    good = np.clip(rng.normal(0.85, 0.05, annotators), 0.5, 0.99)
    is_random = rng.random(annotators) < share
    right = rng.random(len(voter)) < np.where(is_random, 1 / classes, good)[voter]
    wrong = (truth[task] + rng.integers(1, classes, len(voter))) % classes
    names = [tuple(map(str, range(count))) for count in (tasks, annotators, classes)]
    labels = Labels(
        task.astype(np.int32), voter.astype(np.int32), np.where(right, truth[task], wrong).astype(np.int16),
        names[0], names[1], names[2], names[2],
    )  # fmt: skip
    return labels, is_random


def _table(labels: Labels) -> AnnotatorTable:
    values = np.stack(rates_of(labels, pooled(labels)).accuracies(), axis=1)[:, None]
    votes = labels.votes_of_annotators()
    evidence = Evidence(
        "labels", "votes", labels.annotators, votes, votes, (ACCURACY,), values, {}, votes, votes
    )
    return AnnotatorTable(labels.annotators, {}, {}, {}, (evidence,), np.arange(len(votes)))
