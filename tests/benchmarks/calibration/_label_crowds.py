"""Simulated crowds of many kinds: independent, correlated, careless, few, with rare or many classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.data import ClassArray, FloatArray, Labels

__all__ = ["KINDS", "LabelCrowd", "draw"]


@dataclass(frozen=True)
class LabelCrowd:
    """Settings of a simulated crowd.

    Attributes
    ----------
    classes, each, tasks, annotators : int
        `each` is the number of votes a task.
    skills : tuple of float
        Between which the annotators' accuracies lie.
    cause : str
        What makes votes on a task alike: "none", "look-alikes" (tasks that look like another class),
        "difficulty" (tasks on which all guess more), or "mixtures" (each task is a mixture of classes).
    hard : float
        Share of look-alikes, or how much of it is guessed.
    careless : float
        Share of annotators whose votes do not depend on the task.
    rare : bool
        Whether the first class has nine tasks in ten.
    """

    classes: int = 3
    each: int = 5
    tasks: int = 600
    annotators: int = 40
    skills: tuple[float, float] = (0.55, 0.95)
    cause: str = "none"
    hard: float = 0.2
    careless: float = 0.0
    rare: bool = False


KINDS: dict[str, list[LabelCrowd]] = {
    "independent": [LabelCrowd(j, n) for j in (2, 3, 5, 10) for n in (3, 5, 15)],
    "look-alikes": [LabelCrowd(j, n, cause="look-alikes") for j in (2, 3, 5, 10) for n in (3, 7, 20)],
    "difficulty": [LabelCrowd(j, n, cause="difficulty", hard=0.4) for j in (2, 4, 8) for n in (3, 6, 15)],
    "mixtures": [LabelCrowd(j, n, cause="mixtures") for j in (2, 4, 8) for n in (3, 6, 15)],
    "careless annotators": [
        LabelCrowd(j, 6, careless=0.4, cause=cause, hard=0.15)
        for j in (2, 4)
        for cause in ("none", "look-alikes")
    ],
    "a common class": [
        LabelCrowd(j, 6, 1500, rare=True, cause=cause, hard=0.1)
        for j in (2, 4)
        for cause in ("none", "look-alikes")
    ],
    "few tasks": [LabelCrowd(j, 8, 40, 12) for j in (2, 4)],
    "four annotators": [LabelCrowd(j, 3, 500, 4) for j in (2, 4)],
    "30 classes": [LabelCrowd(30, 5, 2000, 80, cause=cause) for cause in ("none", "look-alikes")],
}


def draw(crowd: LabelCrowd, seed: int) -> tuple[Labels, ClassArray]:
    """Draw votes and true classes."""
    rng = np.random.default_rng(seed)
    size = crowd.classes
    shares = np.full(size, 1 / size)
    if crowd.rare:
        shares = np.append(0.9, np.full(size - 1, 0.1 / (size - 1)))
    truth = rng.choice(size, crowd.tasks, p=shares)
    annotator = rng.random((crowd.tasks, crowd.annotators)).argsort(axis=1)[:, : crowd.each].ravel()
    task = np.repeat(np.arange(crowd.tasks), crowd.each)
    usual = _without_diagonal(rng.dirichlet(np.ones(size), size))
    rates = _rates(crowd, usual, shares, rng)
    apparent = truth[task]
    if crowd.cause == "look-alikes":
        other = _draw(usual[truth], rng)
        looks = np.where(rng.random(crowd.tasks) < crowd.hard, other, truth)
        apparent = np.where(rng.random(len(task)) < 0.8, looks[task], apparent)
    elif crowd.cause == "mixtures":
        weight = rng.gamma(0.6 * (3 * np.eye(size)[truth] + usual[truth]) + 1e-6)
        apparent = _draw((weight / weight.sum(axis=1, keepdims=True))[task], rng)
    label = _draw(rates[annotator, apparent], rng)
    if crowd.cause == "difficulty":
        guessed = rng.random(len(task)) < 2 * crowd.hard * rng.beta(0.7, 1.5, crowd.tasks)[task]
        label = np.where(guessed, _draw((0.5 * np.eye(size) + 0.5 * usual)[truth[task]], rng), label)
    names = tuple(map(str, range(size)))
    tasks, annotators = (tuple(map(str, range(count))) for count in (crowd.tasks, crowd.annotators))
    return Labels(task, annotator, label, tasks, annotators, names, names), truth.astype(np.int16)


def _rates(crowd: LabelCrowd, usual: FloatArray, shares: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw the annotators' confusion matrices, (K, J, J)."""
    size, count = crowd.classes, crowd.annotators
    skill = rng.uniform(*crowd.skills, count)
    right = 1 / (1 + np.exp(-(np.log(skill / (1 - skill))[:, None] + rng.normal(0, 0.5, size))))
    wrong = _without_diagonal(rng.gamma(np.broadcast_to(3 * usual + 0.1, (count, size, size))))
    rates = (1 - right)[:, :, None] * wrong
    rates[:, np.arange(size), np.arange(size)] = right
    for item in range(int(crowd.careless * count)):
        always = np.full(size, 0.02 / size)
        always[rng.integers(size)] += 0.98
        rates[item] = (np.full(size, 1 / size), always, shares)[item % 3]
    return rates


def _without_diagonal(values: FloatArray) -> FloatArray:
    kept = values * (1 - np.eye(values.shape[-1]))
    return np.asarray(kept / kept.sum(axis=-1, keepdims=True))


def _draw(probability: FloatArray, rng: np.random.Generator) -> NDArray[np.int64]:
    above = rng.random(len(probability))[:, None] > probability.cumsum(axis=1)
    return np.asarray(np.minimum(above.sum(axis=1), probability.shape[1] - 1))
