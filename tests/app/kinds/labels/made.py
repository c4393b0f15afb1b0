"""A crowd whose every error is planted, as files and as a study."""

from pathlib import Path

import numpy as np

from raterscope.app.formats.labels import read_labels
from raterscope.app.formats.records import LabelTable
from raterscope.app.study import Study
from raterscope.app.study.labels import add_true_labels, add_votes
from tests.app.tables import write

TASKS = 120
CLASSES = ("cat", "dog")
GOOD = tuple(f"good {n}" for n in range(9))
LIAR, LAZY = "liar", "<b>lazy</b>"
"""The annotator who gives the other class, and the one who always answers cat."""

PEOPLE = (*GOOD, LIAR, LAZY)


def truth() -> np.ndarray:
    """Two dogs for every cat."""
    return np.where(np.arange(TASKS) % 3 == 0, 0, 1)


def all_answers() -> np.ndarray:
    """Return all answers, (tasks, people): the good are wrong on every tenth task, each on others."""
    true = truth()
    votes = np.repeat(true[:, None], len(PEOPLE), axis=1)
    for k in range(len(GOOD)):
        wrong = np.arange(k, TASKS, 10)
        votes[wrong, k] = 1 - true[wrong]
    votes[:, len(GOOD)] = 1 - true
    votes[:, len(GOOD) + 1] = 0
    return votes


def write_votes(path: Path, *, times: bool = False, question: str = "") -> Path:
    """Write all votes, task by task."""
    rows = [
        [
            PEOPLE[k], f"t{t}", CLASSES[label], *([str(60 * t + k)] if times else []),
            *([question] if question else []),
        ]
        for t, votes in enumerate(all_answers())
        for k, label in enumerate(votes)
    ]  # fmt: skip
    header = ["annotator", "task", "label", *(["time"] if times else []), *(["question"] if question else [])]
    return write(path, header, rows)


def write_truth(path: Path, step: int = 1) -> Path:
    """Write the truth of every so-manieth task."""
    rows = [[f"t{t}", CLASSES[true]] for t, true in enumerate(truth()) if t % step == 0]
    return write(path, ["task", "label"], rows)


def make_study(path: Path, *files: Path) -> Path:
    """Make a study of files of labels and truths."""
    with Study.create(path) as study:
        for file in files:
            for table in read_labels(file):
                (add_votes if isinstance(table, LabelTable) else add_true_labels)(study, table)
    return path
