"""A crowd with one annotator who always gives the same label."""

from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from raterscope.app.formats.records import LabelTable

CLASSES = ("healthy", "infected")
TASKS, PEOPLE = 60, 12
LIAR = 11


def votes() -> tuple[np.ndarray, np.ndarray]:
    """Twelve annotators on sixty cells: eleven mostly right, the last always says healthy."""
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 2, TASKS)
    answers = np.where(rng.random((TASKS, PEOPLE)) < 0.8, truth[:, None], 1 - truth[:, None])
    answers[:, LIAR] = 0
    return truth, answers


def table(path: Path, answers: np.ndarray) -> LabelTable:
    task, annotator = np.divmod(np.arange(TASKS * PEOPLE), PEOPLE)
    start = datetime(2026, 3, 1, tzinfo=UTC).timestamp()
    return LabelTable(
        path / "votes.csv", "Infected?", tuple(f"ann {n:02}" for n in range(PEOPLE)),
        tuple(f"cell-{n:03}" for n in range(TASKS)), CLASSES, annotator.astype(np.int32),
        task.astype(np.int32), answers.ravel().astype(np.int16), start + 60.0 * np.arange(TASKS * PEOPLE),
    )  # fmt: skip
