"""The error of tasks that stop, the gain of more votes, and accuracy for equal numbers of votes.

Real crowds are replayed. For the second table, of each task the votes that exist can be asked for; in
simulated crowds anybody can be asked about any task. Every task begins with two votes, and rounds of half a
vote per task follow: by the rule of `next_votes`, by the former one (a tenth for one annotator), at random.

Usage: RATERSCOPE_DATA=FOLDER python -m tests.benchmarks.label_budget [CROWD ...]
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from raterscope.algorithms.labels.active_learning import Terms, _assign, expected_information, usual_load
from raterscope.algorithms.labels.data import OPEN, LabelFusion, Labels
from raterscope.algorithms.labels.fusion import LabelPlan, run
from raterscope.algorithms.labels.vote_budget import extrapolate_gain, has_enough, replay_limits, vote_ranks
from raterscope.app.papers.experiments import read_labels_of

BEGIN, ROUNDS = 2, 5
CROWDS = ("dog", "rte", "sp_amt", "cf_amt", "bluebirds", "web", "duchenne")
PLAN = LabelPlan()

Choose = Callable[[Labels, LabelFusion, np.ndarray, int, np.random.Generator], np.ndarray]
"""Chooses some of the votes, given by number, that can be asked for."""


def at_random(_: Labels, _fusion: LabelFusion, free: np.ndarray, count: int, rng) -> np.ndarray:
    return rng.permutation(free)[:count]


def by_information(
    labels: Labels, fusion: LabelFusion, free: np.ndarray, count: int, _rng, *, former: bool
) -> np.ndarray:
    """Choose as `next_votes` does among the votes that exist; formerly, a tenth of one annotator."""
    task, annotator = labels.task[free], labels.annotator[free]
    rates = fusion.confusion.mean()
    gain = np.array(
        [
            expected_information(fusion.posterior[i][None], rates[k][None])[0, 0]
            for i, k in zip(task.tolist(), annotator.tolist(), strict=True)
        ]
    )
    if not former:
        gain[has_enough(fusion)[task]] = 0.0
    rows, row = np.unique(task, return_inverse=True)
    order = np.lexsort((-gain, row))
    rank = np.arange(len(order)) - np.searchsorted(row[order], row[order])
    ranked = np.zeros((len(rows), rank.max() + 1), dtype=np.int32)
    gains = np.full(ranked.shape, -np.inf)
    vote = np.zeros(ranked.shape, dtype=np.int64)
    ranked[row[order], rank], gains[row[order], rank] = annotator[order], gain[order]
    vote[row[order], rank] = free[order]
    annotators = len(np.unique(annotator))
    most = np.full(len(labels.annotators), max(-(-count // 10), -(-count // annotators)))
    if not former:
        most = usual_load(count, labels.votes_of_annotators(), annotators)
    entropy = -(fusion.posterior[rows] * np.log2(np.maximum(fusion.posterior[rows], 1e-300))).sum(axis=1)
    everybody = len(labels.annotators)
    at, chosen, _ = _assign(
        ranked, gains, np.zeros(len(rows)), entropy, count, most, np.ones(everybody),
        Terms(),
    )  # fmt: skip
    where = [
        int(np.flatnonzero(ranked[r] == k)[0]) for r, k in zip(at.tolist(), chosen.tolist(), strict=True)
    ]
    return vote[at, where]


RULES: dict[str, Choose] = {
    "random": at_random,
    "former": lambda *a: by_information(*a, former=True),
    "rule": lambda *a: by_information(*a, former=False),
}


def replay(
    labels: Labels, truth: np.ndarray, choose: Choose, seed: int
) -> list[tuple[float, float, int, int]]:
    """Return votes per task, accuracy, and the most votes and number of annotators asked, round by round."""
    rng = np.random.default_rng(seed)
    used = vote_ranks(labels, rng.permutation(len(labels))) < BEGIN
    step = len(labels.tasks) // 2
    known, asked = truth != OPEN, np.zeros(len(labels.annotators), dtype=int)
    results = []
    for _ in range(ROUNDS + 1):
        own = labels.subset(used)
        fusion = run(own, PLAN)
        accuracy = float((fusion.label()[known] == truth[known]).mean())
        results.append((len(own) / len(labels.tasks), accuracy, int(asked.max()), int((asked > 0).sum())))
        more = choose(labels, fusion, np.flatnonzero(~used), step, rng)
        used[more] = True
        asked += np.bincount(labels.annotator[more], minlength=len(asked))
    return results


def simulated(seed: int, tasks: int = 400, annotators: int = 60) -> tuple[Labels, np.ndarray]:
    """Draw annotators of all qualities, a quarter of which guess; all vote on all tasks."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, tasks).astype(np.int16)
    skill = np.where(np.arange(annotators) < annotators // 4, 1 / 3, rng.beta(6, 3, annotators))
    hard = rng.random(tasks) < 0.2
    right = rng.random((tasks, annotators)) < np.where(hard[:, None], (skill + 1 / 3) / 2, skill)
    wrong = (truth[:, None] + rng.integers(1, 3, (tasks, annotators))) % 3
    label = np.where(right, truth[:, None], wrong).ravel()
    task, annotator = (each.ravel() for each in np.indices((tasks, annotators)))
    names = tuple("abc")
    who = tuple(map(str, range(annotators)))
    return Labels(task, annotator, label, tuple(map(str, range(tasks))), who, names, names), truth


def table_of_stopping(root: Path, crowds: list[str]) -> None:
    print("crowd, limit: tasks stopped, votes used, measured error (95 %)")
    for name in crowds:
        labels, truth = read_labels_of(root, name)
        for row in replay_limits(labels, truth, lambda own, watch: run(own, PLAN, watch), limits=(0.9, 0.95)):
            print(
                f"{name:10s} {row.limit:.2f}: {row.stopped / row.tasks:.2f} {row.used / row.votes:.2f} "
                f"{row.error:.3f} ({row.low:.3f} to {row.high:.3f})",
                flush=True,
            )


def table_of_gains(root: Path, crowds: list[str]) -> None:
    """Cut crowds down to a few votes per task, predict the gain of more, and measure it with these."""
    held = []
    for name in crowds:
        labels, truth = read_labels_of(root, name)
        known, number = truth != OPEN, labels.votes_of_tasks()
        most = int(np.median(number[known]))
        for seed, votes in ((seed, votes) for seed in range(2) for votes in (3, 5, 10, 19)):
            ranks = vote_ranks(labels, np.random.default_rng(seed).permutation(len(labels)))
            fewer = labels.subset(ranks < votes)
            before = run(fewer, PLAN)
            for gain in extrapolate_gain(fewer, before, lambda own, watch: run(own, PLAN, watch), 3):
                after = votes + round(gain.more)
                if after > most:
                    continue
                label = run(labels.subset(ranks < after), PLAN).label()
                right = (label == truth)[known].astype(float) - (before.label() == truth)[known]
                # The interval is for all tasks; gold tasks are fewer.
                chance = 1.96 * right.std() * np.sqrt(max(1 / known.sum() - 1 / len(truth), 0.0))
                held.append(gain.low - chance <= right.mean() <= gain.high + chance)
                print(
                    f"{name:10s} {votes:2d} votes and {gain.more:4.1f}: predicted {gain.gain:.3f} "
                    f"({gain.low:.3f} to {gain.high:.3f}), measured {right.mean():.3f} {held[-1]}",
                    flush=True,
                )
    print(f"{len(held)} gains, {np.mean(held):.2f} of them in the interval")


def main() -> None:
    root = Path(os.environ["RATERSCOPE_DATA"])
    crowds = sys.argv[1:] or ["simulated", *CROWDS]
    table_of_gains(root, [name for name in crowds if name != "simulated"])
    table_of_stopping(root, [name for name in crowds if name != "simulated"])
    print(f"{'crowd':10s} {'rule':8s} votes per task: accuracy ... | most votes, annotators asked at the end")
    for name in crowds:
        for rule, choose in RULES.items():
            runs = []
            for seed in range(3):
                labels, truth = simulated(seed) if name == "simulated" else read_labels_of(root, name)
                runs.append(replay(replace(labels, time=None), truth, choose, seed))
            mean = np.mean(runs, axis=0)
            course = "  ".join(f"{votes:.1f}: {accuracy:.3f}" for votes, accuracy, *_ in mean)
            print(f"{name:10s} {rule:8s} {course} | {mean[-1][2]:.0f}, {mean[-1][3]:.0f}", flush=True)


if __name__ == "__main__":
    main()
