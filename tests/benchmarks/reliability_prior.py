"""Reliability across kinds as a prior of the annotators' accuracies, with fits of real label crowds.

Half of the tasks stand for one kind, the other half for another, with a few votes a task. Printed are the
mean log-likelihood of the votes held out, and of the true classes by a fusion with these accuracies, without
and with the first kind, and by the fit of the second kind alone.
"""

import argparse
import csv
import os
from pathlib import Path

import numpy as np
from scipy.special import expit, log_softmax

from raterscope.algorithms.annotators.reliability import from_interval, person_reliability
from raterscope.algorithms.labels.data import LabelFusion, Labels
from raterscope.algorithms.labels.fusion import LabelPlan, run
from raterscope.algorithms.labels.rates import rates_of
from raterscope.algorithms.progress import silent

CROWDS = ("rte", "web", "bluebirds", "dog", "sp_amt")
Vote = tuple[str, str, str]


def read(folder: Path, crowd: str) -> tuple[list[Vote], dict[str, str]]:
    """Read votes as (task, annotator, label), and truths."""
    tables = []
    for name in (f"{crowd}.csv", f"{crowd}_truth.csv"):
        with (folder / name).open(encoding="utf-8", newline="") as file:
            tables.append(list(csv.reader(file))[1:])
    return [(row[0], row[1], row[2]) for row in tables[0]], {row[0]: row[1] for row in tables[1]}


def fit(votes: list[Vote], annotators: list[str], classes: list[str]) -> tuple[Labels, LabelFusion]:
    """Fuse votes by the pooled method."""
    tasks = sorted({task for task, _, _ in votes})
    index = [{name: at for at, name in enumerate(names)} for names in (tasks, annotators, classes)]
    columns = [np.array([of[vote[at]] for vote in votes]) for at, of in enumerate(index)]
    labels = Labels(*columns, tuple(tasks), tuple(annotators), tuple(classes), tuple(classes))
    return labels, run(labels, LabelPlan.make("pooled", {}), silent)


def log_odds(labels: Labels, fusion: LabelFusion) -> tuple[np.ndarray, np.ndarray]:
    """Return the log odds of each annotator's accuracy with standard errors; NaN without votes."""
    _, low, high = rates_of(labels, fusion).accuracies()
    voted = labels.votes_of_annotators() > 0
    return from_interval(np.where(voted, low, np.nan), np.where(voted, high, np.nan))


def measure(votes: list[Vote], truth: dict[str, str], few: int, seed: int) -> list[float]:
    """Return held-out votes and true classes without and with the first kind, and by the fit alone."""
    rng = np.random.default_rng(seed)
    classes = sorted({label for _, _, label in votes} | set(truth.values()))
    annotators = sorted({name for _, name, _ in votes})
    tasks = sorted({task for task, _, _ in votes})
    first = set(rng.permutation(tasks)[: len(tasks) // 2].tolist())
    by_task: dict[str, list[Vote]] = {}
    for at in rng.permutation(len(votes)).tolist():
        if votes[at][0] not in first:
            by_task.setdefault(votes[at][0], []).append(votes[at])
    used = [vote for of in by_task.values() for vote in of[:few]]
    held = [vote for of in by_task.values() for vote in of[few:] if vote[0] in truth]
    other = log_odds(*fit([vote for vote in votes if vote[0] in first], annotators, classes))
    labels, fusion = fit(used, annotators, classes)
    own = log_odds(labels, fusion)
    judged = [at for at, task in enumerate(labels.tasks) if task in truth]
    true = [classes.index(truth[labels.tasks[at]]) for at in judged]
    figures = []
    for level in (0.0, 0.05):
        result = person_reliability(np.stack([other[0], own[0]], 1), np.stack([other[1], own[1]], 1),
                                    ("first", "second"), level=level)  # fmt: skip
        right = np.clip(expit(result.value[:, 1]), 0.02, 0.995)
        of = dict(zip(annotators, right.tolist(), strict=True))
        figures.append(np.mean([np.log(of[who] if truth[task] == label else 1 - of[who])
                                for task, who, label in held]))  # fmt: skip
        weight = np.log(right) - np.log((1 - right) / (len(classes) - 1))
        score = np.zeros((len(labels.tasks), len(classes)))
        np.add.at(score, (labels.task, labels.label), weight[labels.annotator])
        figures.append(log_softmax(score, axis=1)[judged, true].mean())
    return [*figures, np.log(np.maximum(fusion.posterior[judged, true], 1e-6)).mean()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=4)
    options = parser.parse_args()
    folder = Path(os.environ["RATERSCOPE_DATA"]) / "labels"
    print("crowd      votes  held out: alone    both  true class: alone    both   fit")
    for crowd in CROWDS:
        votes, truth = read(folder, crowd)
        for few in (2, 4):
            rows = [measure(votes, truth, few, seed) for seed in range(options.repeats)]
            alone, true_alone, both, true_both, own = np.mean(rows, axis=0)
            words = f"{crowd:10s} {few:5d} {alone:16.4f} {both:7.4f} {true_alone:18.3f} {true_both:7.3f}"
            print(f"{words} {own:.3f}", flush=True)


if __name__ == "__main__":
    main()
