"""What simulated crowds that label tasks are like: their behaviours, and two of them to begin with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

__all__ = ["Behaviour", "CrowdPlan", "scoring_crowd", "staging_crowd"]

Rows = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Behaviour:
    """A way of labelling that a part of the crowd has in common.

    Attributes
    ----------
    name : str
    rows : J rows of L numbers
        The probability of every output for each class.
    share : float
        How many of the crowd have it, in proportion to the other behaviours' shares.
    """

    name: str
    rows: Rows
    share: float = 1.0


@dataclass(frozen=True)
class CrowdPlan:
    """What a simulated crowd is like.

    Attributes
    ----------
    classes, outputs : tuple of J and L names
    meaning : tuple of L numbers
        The class that each output stands for.
    shares : tuple of J numbers
        The probability of each class.
    behaviours : tuple of Behaviour
    tasks, annotators : int
    fewest, most : int
        Votes of an annotator; their numbers have a Pareto distribution between the two, cut at the number of
        tasks.
    tail : float
        Its exponent: the smaller, the more annotators have many votes.
    spread : float
        The annotators' confusion rows have a Dirichlet distribution about their behaviour's, of as many
        pseudo-counts.
    changing : float
        The share of the annotators with at least `settled` votes who change, see `label_crowds.CHANGES`.
    settled : int
    hard : float
        The share of the tasks that are hard: a vote on a task of difficulty d comes, with probability d, from
        the mean of the annotator's rows, by the classes' shares, instead of from the true class's row. The
        difficulties of hard tasks are uniform from 0.2 to 0.9.
    cohorts : int
        Groups of tasks that come one after the other. An annotator begins with one of them.
    loyalty : float
        The share of an annotator's votes that are on tasks of the own cohort, while there are any.
    prefix : str
        What the tasks' names begin with.
    """

    classes: tuple[str, ...]
    outputs: tuple[str, ...]
    meaning: tuple[int, ...]
    shares: tuple[float, ...]
    behaviours: tuple[Behaviour, ...]
    tasks: int = 3200
    annotators: int = 500
    fewest: int = 15
    most: int = 3000
    tail: float = 1.0
    spread: float = 100.0
    changing: float = 0.6
    settled: int = 150
    hard: float = 0.1
    cohorts: int = 6
    loyalty: float = 0.85
    prefix: str = "cell"

    def __post_init__(self) -> None:
        shape = (len(self.classes), len(self.outputs))
        if len(self.shares) != shape[0] or len(self.meaning) != shape[1]:
            raise ValueError("a share is needed for every class, and a meaning for every output.")
        for behaviour in self.behaviours:
            rows = np.array(behaviour.rows, dtype=np.float64)
            if rows.shape != shape or not (rows > 0).all() or not np.allclose(rows.sum(axis=1), 1.0):
                raise ValueError(f"{behaviour.name} has no {shape} probabilities above 0 that add up to 1.")
        if not self.behaviours or self.tasks < self.cohorts or self.cohorts < 1 or self.annotators < 1:
            raise ValueError("a crowd needs behaviours, annotators, and a task for every cohort.")
        if not 1 <= self.fewest <= self.most:
            raise ValueError(f"{self.fewest} to {self.most} votes an annotator; expected at least 1.")


def scoring_crowd(tasks: int = 3200, annotators: int = 500, **changes: Any) -> CrowdPlan:
    """Plan a crowd that says -1, 1 or 3 of two classes, with the five behaviours of the paper's figure 3.

    Parameters
    ----------
    tasks, annotators : int
    **changes
        Other fields of `CrowdPlan`.
    """
    behaviours = (
        Behaviour("reasonable", ((0.80, 0.15, 0.05), (0.20, 0.40, 0.40)), 0.24),
        Behaviour("extremists", ((0.90, 0.03, 0.07), (0.12, 0.05, 0.83)), 0.23),
        Behaviour("always no", ((0.97, 0.02, 0.01), (0.90, 0.06, 0.04)), 0.18),
        Behaviour("optimists", ((0.10, 0.60, 0.30), (0.05, 0.40, 0.55)), 0.16),
        Behaviour("non-committal", ((0.60, 0.35, 0.05), (0.25, 0.65, 0.10)), 0.19),
    )
    plan = CrowdPlan(
        classes=("no parasite", "parasite"),
        outputs=("-1", "1", "3"),
        meaning=(0, 1, 1),
        shares=(0.75, 0.25),
        behaviours=behaviours,
        tasks=tasks,
        annotators=annotators,
    )
    return replace(plan, **changes)


def staging_crowd(tasks: int = 3200, annotators: int = 500, **changes: Any) -> CrowdPlan:
    """Plan a crowd that names the stage of a malaria parasite in a red blood cell; see `scoring_crowd`."""
    stages = ("uninfected", "ring", "trophozoite", "schizont", "gametocyte")
    behaviours = (
        Behaviour("careful", _diagonal((0.95, 0.88, 0.86, 0.88, 0.92)), 0.34),
        Behaviour(
            "blind to rings",
            _diagonal((0.96, 0.25, 0.80, 0.84, 0.88), {(1, 0): 0.70, (2, 0): 0.14}),
            0.20,
        ),
        Behaviour(
            "mix the stages",
            _diagonal(
                (0.92, 0.62, 0.38, 0.42, 0.72), {(1, 2): 0.30, (2, 3): 0.42, (3, 2): 0.46, (4, 3): 0.2}
            ),
            0.20,
        ),
        Behaviour(
            "alarmed",
            _diagonal((0.42, 0.92, 0.66, 0.60, 0.60), {(0, 1): 0.50, (2, 1): 0.28, (3, 1): 0.3, (4, 1): 0.3}),
            0.14,
        ),
        Behaviour(
            "always uninfected",
            _diagonal((0.96, 0.08, 0.10, 0.10, 0.12), dict.fromkeys([(1, 0), (2, 0), (3, 0), (4, 0)], 0.8)),
            0.12,
        ),
    )
    plan = CrowdPlan(
        classes=stages,
        outputs=stages,
        meaning=tuple(range(len(stages))),
        shares=(0.52, 0.22, 0.14, 0.06, 0.06),
        behaviours=behaviours,
        tasks=tasks,
        annotators=annotators,
    )
    return replace(plan, **changes)


def _diagonal(right: tuple[float, ...], wrong: dict[tuple[int, int], float] | None = None) -> Rows:
    """Fill confusion rows: what is said of right and wrong answers, the rest shared equally."""
    rows = np.full((len(right), len(right)), np.nan)
    np.fill_diagonal(rows, right)
    for place, chance in (wrong or {}).items():
        rows[place] = chance
    for row in rows:
        left = np.isnan(row)
        row[left] = (1 - np.nansum(row)) / max(left.sum(), 1)
    return tuple(tuple(float(chance) for chance in row) for row in rows)
