"""A crowd that clicks on a simulated smear: careful people, beginners, and those who spoil it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raterscope.algorithms.clicks.data import Clicks, FloatArray
from raterscope.algorithms.simulation.smears import Smear

__all__ = ["Annotator", "click_on", "gather"]

_ODD_ONES = 3


@dataclass(frozen=True, slots=True)
class Annotator:
    """How one annotator clicks.

    Attributes
    ----------
    name : str
    sensitivity : float
        Probability of marking a parasite that is plain to see; faint ones are missed more often, and the more
        so the less sensitive the annotator is.
    specificity : float
        Probability of leaving alone an artefact that is half like a parasite.
    scatter : float
        Standard deviation of a click along an axis, pixels.
    stray : float
        Mean number of clicks on nothing, an image.
    double : float
        Probability that a mark is clicked twice at the very same place.
    bias : (dx, dy)
        Constant displacement of the clicks, pixels.
    """

    name: str
    sensitivity: float
    specificity: float
    scatter: float
    stray: float
    double: float = 0.03
    bias: tuple[float, float] = (0.0, 0.0)


def gather(size: int, seed: int) -> tuple[Annotator, ...]:
    """Gather a crowd of three parts: six tenths careful, three tenths beginners, one tenth careless.

    From four annotators on, three of them are odd in a way of their own: one clicks everywhere, one marks
    nothing, and one clicks beside every parasite, always to the same side.

    Raises
    ------
    ValueError
        For fewer than one annotator.
    """
    if size < 1:
        raise ValueError(f"a crowd of {size} annotators cannot click; expected at least 1.")
    rng = np.random.default_rng([seed, 0])
    names = [f"w-{number:04d}" for number in rng.choice(9000, size, replace=False) + 1000]
    crowd = []
    for name in names:
        kind = rng.random()
        if kind < 0.6:
            rates, scatter, stray = (rng.beta(16, 2), rng.beta(14, 2.2)), rng.uniform(2.0, 3.2), 0.4
        elif kind < 0.9:
            rates, scatter, stray = (rng.beta(7, 3), rng.beta(5, 3)), rng.uniform(2.5, 4.5), 1.5
        else:
            rates, scatter, stray = (rng.beta(4, 4), rng.beta(2.5, 3)), rng.uniform(4.0, 6.0), 4.0
        crowd.append(Annotator(name, float(rates[0]), float(rates[1]), float(scatter), stray))
    if size > _ODD_ONES:
        everywhere, nothing, biased = rng.choice(size, _ODD_ONES, replace=False)
        crowd[everywhere] = Annotator(names[everywhere], 0.55, 0.30, 6.0, 45.0)
        crowd[nothing] = Annotator(names[nothing], 0.0, 1.0, 3.0, 0.0)
        crowd[biased] = Annotator(names[biased], 0.9, 0.9, 2.5, 0.4, bias=(7.5, -5.0))
    return tuple(crowd)


def click_on(smear: Smear, crowd: tuple[Annotator, ...], seed: int) -> Clicks:
    """Let everybody of the crowd look at a smear and click.

    Returns
    -------
    Clicks
        With times, in seconds since each annotator opened the image. Whoever marked nothing is among the
        annotators all the same.
    """
    points, who, when = [], [], []
    for index, annotator in enumerate(crowd):
        marks, times = _marks(smear, annotator, np.random.default_rng([seed, index, 1]))
        points.append(marks)
        who.append(np.full(len(marks), index, dtype=np.int64))
        when.append(times)
    places = np.concatenate(points)
    return Clicks(
        x=places[:, 0],
        y=places[:, 1],
        annotator=np.concatenate(who),
        annotators=tuple(annotator.name for annotator in crowd),
        extent=smear.extent,
        time=np.concatenate(when),
    )


def _marks(smear: Smear, annotator: Annotator, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """(n, 2) places and (n,) times of one annotator's clicks."""
    width, height = smear.extent[2:]
    seen = rng.random(len(smear.parasites)) < annotator.sensitivity ** (1.0 + 4.0 * (1.0 - smear.clarity))
    fooled = rng.random(len(smear.artefacts)) < 1.0 - annotator.specificity ** (2.0 * smear.allure)
    aimed = np.concatenate([smear.parasites[seen], smear.artefacts[fooled]])
    aimed = aimed + np.array(annotator.bias) + annotator.scatter * rng.standard_normal(aimed.shape)
    stray = rng.random((rng.poisson(annotator.stray), 2)) * [width, height]
    marks = np.concatenate([aimed, stray])
    marks = np.round(np.clip(marks, 0.0, [width, height]), 1)
    marks = marks[rng.permutation(len(marks))]
    marks = np.repeat(marks, 1 + (rng.random(len(marks)) < annotator.double), axis=0)
    times = np.cumsum(rng.gamma(2.0, 0.9, len(marks))) + 2.0
    return marks, np.round(times, 2)
