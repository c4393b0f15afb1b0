"""Crowds of volunteers, as many as one likes, who mark objects and what looks like them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raterscope.algorithms.clicks.data import BoolArray, Clicks, FloatArray
from raterscope.algorithms.clicks.result import Votes

WIDTH = 1000.0
APART = 25.0
SCATTER = 3.0
PLACES = 10_000.0


@dataclass(frozen=True, eq=False)
class LargeCrowd:
    """Clicks of a crowd, where the objects are, the votes if clustering errs nowhere, and which are true."""

    clicks: Clicks
    truth: FloatArray
    votes: Votes
    true: BoolArray


@dataclass(frozen=True)
class Scene:
    """Objects to mark, and their annotators.

    Attributes
    ----------
    objects : int
    sensitivity : (float, float)
        Of objects, drawn evenly between the two.
    artefacts : int
    drawn : (float, float)
        Share of the crowd that each artefact draws.
    careless : float
        Share of annotators who mark a tenth of the objects, and as many places besides.
    ability : float
        Standard deviation, in log odds, among annotators.
    marks : float, optional
        Marks of an annotator on average, where that is not what follows from the shares.
    """

    objects: int = 100
    sensitivity: tuple[float, float] = (0.2, 0.2)
    artefacts: int = 0
    drawn: tuple[float, float] = (0.05, 0.4)
    careless: float = 0.0
    ability: float = 0.0
    marks: float | None = None


def large_crowd(scene: Scene, annotators: int, seed: int) -> LargeCrowd:
    """Draw a crowd's clicks; the objects lie apart."""
    generator = np.random.default_rng([seed, annotators])
    full = scene.objects + scene.artefacts
    positions = np.empty((0, 2))
    while len(positions) < full:
        position = generator.uniform(20, WIDTH - 20, 2)
        if (np.hypot(*(positions - position).T) > APART).all():
            positions = np.vstack([positions, position])
    share = np.concatenate(
        [
            generator.uniform(*scene.sensitivity, scene.objects),
            generator.uniform(*scene.drawn, scene.artefacts),
        ]
    )
    odds = np.log(share / (1 - share)) + generator.normal(0, 1, (annotators, 1)) * scene.ability
    careless = generator.random(annotators) < scene.careless
    chance = np.where(careless[:, None], 0.1, 1.0) / (1 + np.exp(-odds))
    if scene.marks is not None:
        chance *= scene.marks / chance.sum(axis=1).mean()
    marked = generator.random(chance.shape) < chance
    stray = np.where(careless, scene.objects // 10, generator.integers(0, 3, annotators))
    annotator, objects = np.nonzero(marked)
    points = np.vstack(
        [
            positions[objects] + generator.normal(0, SCATTER, (len(objects), 2)),
            generator.uniform(0, WIDTH, (stray.sum(), 2)),
        ]
    )
    points = np.clip(points, 0, WIDTH - 1e-6)
    owner = np.concatenate([annotator, np.repeat(np.arange(annotators), stray)])
    names = tuple(f"v{row:05d}" for row in range(annotators))
    order = np.argsort(owner, kind="stable")
    visible = marked.any(axis=0)
    return LargeCrowd(
        Clicks(*points[order].T, owner[order], names, (0.0, 0.0, WIDTH, WIDTH)),
        positions[: scene.objects],
        Votes(
            marked[:, visible],
            marked.sum(axis=0)[visible].astype(np.float64),
            np.full(visible.sum(), -1, dtype=np.int8),
            1 - np.exp(-(stray + 0.5) / PLACES),
            PLACES,
        ),
        (np.arange(full) < scene.objects)[visible],
    )
