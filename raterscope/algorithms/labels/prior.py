"""What is taken for granted of annotators before any vote: settings, and the pseudo-counts that they mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from raterscope.algorithms.labels.data import FloatArray, Labels, default_prior
from raterscope.algorithms.settings import Settings, choice, number

__all__ = ["LabelSettings", "PriorSettings", "prior_of"]

REPEATS = {
    "all": "each of them counts",
    "first": "the first of them counts",
    "last": "the last of them counts",
}


@dataclass(frozen=True)
class LabelSettings(Settings):
    """What every method without time needs to know."""

    repeats: Literal["all", "first", "last"] = choice(
        "all", "Repeated votes", "What an annotator's several votes on one task count for.", REPEATS
    )


@dataclass(frozen=True)
class PriorSettings(Settings):
    """What is taken for granted of every annotator, and of the classes (alpha_0 and nu_0 of the paper)."""

    prior_strength: float | None = number(
        None, "Prior strength",
        "How many votes of each class the prior counts for. Left open: one for every label, and one more for "
        "the right one. The pooled consensus estimates it from the crowd.",
        unit="votes", minimum=1e-6, maximum=1e8, left_open="usual",
    )  # fmt: skip
    prior_accuracy: float | None = number(
        None, "Prior accuracy",
        "How often an annotator of whom nothing is known is right. Left open: a little more often than by "
        "chance.",
        minimum=1e-6, maximum=1 - 1e-6, left_open="usual",
    )  # fmt: skip
    share_strength: float = number(
        1.0, "Prior of the classes' shares", "Pseudo-counts of tasks of each class.",
        unit="tasks", minimum=1e-6, maximum=1e8, advanced=True,
    )  # fmt: skip


def prior_of(labels: Labels, settings: PriorSettings) -> FloatArray:
    """Give the pseudo-counts of a confusion matrix that the settings mean, (J, L).

    The prior accuracy is shared equally among the outputs that stand for a class, the rest among the others.
    A class that no output stands for has equal pseudo-counts, as has one that all outputs stand for.
    `Labels.prior`, where it is given, takes the place of all that.
    """
    if labels.prior is not None:
        return labels.prior
    default = default_prior(labels)
    if settings.prior_strength is None and settings.prior_accuracy is None:
        return default
    assert labels.meaning is not None
    right = labels.meaning[None, :] == np.arange(len(labels.classes))[:, None]
    many = right.sum(axis=1, keepdims=True)
    chance = default / default.sum(axis=1, keepdims=True)
    if settings.prior_accuracy is not None:
        wrong = right.shape[1] - many
        accuracy = settings.prior_accuracy
        aimed = np.where(right, accuracy / np.maximum(many, 1), (1 - accuracy) / np.maximum(wrong, 1))
        chance = np.where((many == 0) | (wrong == 0), chance, aimed)
    strength = settings.prior_strength
    weight = default.sum(axis=1, keepdims=True) if strength is None else strength
    return np.asarray(chance * weight)
