"""A crowd in which some annotators always choose left."""

import numpy as np

from raterscope.algorithms.pairs import Pairs

ITEMS, PEOPLE, BIASED = 10, 40, 12


def crowd() -> Pairs:
    """Forty annotators on all pairs of ten items; the first twelve click left whatever lies there."""
    rng = np.random.default_rng(28)
    first, second = np.triu_indices(ITEMS, 1)
    turned = rng.random((PEOPLE, len(first))) < 0.5
    left, right = np.where(turned, second, first), np.where(turned, first, second)
    better = left < right  # item 0 is the best
    right_answer = np.where(rng.random(better.shape) < 0.85, better, ~better)
    answers = np.where(np.arange(PEOPLE)[:, None] < BIASED, rng.random(better.shape) < 0.93, right_answer)
    annotator = np.repeat(np.arange(PEOPLE), len(first))
    return Pairs(
        annotator, left.ravel(), right.ravel(), np.where(answers.ravel(), 1.0, -1.0),
        tuple(f"ann {n:02}" for n in range(PEOPLE)), tuple(f"cell {n}" for n in range(ITEMS)),
        60.0 * np.arange(annotator.size),
    )  # fmt: skip
