"""Simulated crowds of clicks: on blood smears, and as in the OEM-DEM paper and the thesis.

Clicks follow the papers' model (OEM-DEM paper, eq. 1): with probability p_r a click of annotator r is drawn
from one of M Gaussian components, otherwise uniformly from the image. Votes follow the two-coin model of the
detection stage (OEM-DEM paper, section 5).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raterscope.algorithms.clicks.data import BoolArray, Clicks, FloatArray, IntArray
from raterscope.algorithms.clicks.result import Votes
from raterscope.algorithms.simulation.smears import Smear

_ODD_ONES = 3


@dataclass(frozen=True, slots=True)
class Annotator:
    """Habits of one annotator who clicks."""

    name: str
    # probability of marking a clear parasite; faint ones are missed more often, in particular by annotators
    # with a low sensitivity
    sensitivity: float
    specificity: float  # probability of not marking an artefact with an allure of one half
    scatter: float  # standard deviation of a click along an axis, pixels
    stray: float  # mean number of stray clicks on an image
    double: float = 0.03  # probability that a mark is clicked twice at the same position
    bias: tuple[float, float] = (0.0, 0.0)  # (dx, dy): constant displacement of the clicks, pixels


def gather_annotators(size: int, seed: int) -> tuple[Annotator, ...]:
    """Draw a crowd of three parts: six tenths careful, three tenths beginners, one tenth careless.

    With four annotators or more, three of them are outliers: one clicks everywhere, one marks nothing, and
    one clicks next to every parasite, always on the same side. Raises `ValueError` for fewer than one
    annotator.
    """
    if size < 1:
        raise ValueError(f"a crowd of {size} annotators; expected at least 1.")
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
        everywhere, idle, biased = rng.choice(size, _ODD_ONES, replace=False)
        crowd[everywhere] = Annotator(names[everywhere], 0.55, 0.30, 6.0, 45.0)
        crowd[idle] = Annotator(names[idle], 0.0, 1.0, 3.0, 0.0)
        crowd[biased] = Annotator(names[biased], 0.9, 0.9, 2.5, 0.4, bias=(7.5, -5.0))
    return tuple(crowd)


def simulate_clicks(smear: Smear, crowd: tuple[Annotator, ...], seed: int) -> Clicks:
    """Simulate the clicks of a crowd on a smear, with times in seconds since each annotator opened the image.

    Annotators without clicks are included.
    """
    points, annotators, when = [], [], []
    for index, annotator in enumerate(crowd):
        marks, times = _marks(smear, annotator, np.random.default_rng([seed, index, 1]))
        points.append(marks)
        annotators.append(np.full(len(marks), index, dtype=np.int64))
        when.append(times)
    positions = np.concatenate(points)
    return Clicks(
        x=positions[:, 0],
        y=positions[:, 1],
        annotator=np.concatenate(annotators),
        annotators=tuple(annotator.name for annotator in crowd),
        extent=smear.extent,
        time=np.concatenate(when),
    )


def _marks(smear: Smear, annotator: Annotator, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Return (n, 2) positions and (n,) times of one annotator's clicks."""
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


GRADES = ((0.6, 0.95), (0.3, 0.75), (0.1, 0.25))
"""Share of annotators and their probability of an inlier (OEM-DEM paper, section 3.1)."""

STREAMS = {"first": (15, 10, 0.8, 0.6), "second": (7, 15, 0.9, 0.5), "third": (11, 11, 0.7, 0.7)}
"""Annotators R, clusters M, mean sensitivity and specificity in scenarios where all annotators decide again
at every time step (thesis, section 3.4).
"""

JOINING = {"first": (15, 0.9, 0.7), "second": (10, 0.9, 0.7), "third": (15, 0.8, 0.6)}
"""Clusters M, mean sensitivity and specificity in scenarios where annotators join one by one, from 10 to 50
(thesis, section 5.2).
"""

_JAMMED = 0.547
_MISSES = 10_000
"""Number of consecutive failed positions after which a square counts as full."""


@dataclass(frozen=True, eq=False)
class CrowdOfClicks:
    """Clicks, and the truth from which they were drawn."""

    clicks: Clicks
    mean: FloatArray  # (M, 2): centres of the components
    covariance: FloatArray  # (M, 2, 2)
    weight: FloatArray  # (M,): probability of each component
    reliability: FloatArray  # (R,): probability that a click of the annotator is an inlier
    component: IntArray  # (N,): component that each click came from, -1 for outliers


@dataclass(frozen=True, eq=False)
class CrowdOfVotes:
    """Votes, and the truth from which they were drawn."""

    votes: Votes
    present: BoolArray  # (M,): True where the cluster is a structure
    # sensitivity, specificity: (R,)
    sensitivity: FloatArray
    specificity: FloatArray
    prevalence: float  # probability that a cluster is a structure


def draw_clicks(
    mean: FloatArray,
    covariance: FloatArray,
    reliability: FloatArray,
    counts: IntArray,
    extent: tuple[float, float, float, float],
    generator: np.random.Generator,
) -> CrowdOfClicks:
    """Draw the clicks of a crowd from equally frequent components and outliers (OEM-DEM paper, eq. 1).

    `mean`: (M, 2).
    `covariance`: (M, 2, 2).
    `reliability`: (R,), probability that a click of the annotator is an inlier.
    `counts`: (R,), clicks of each annotator.
    `extent`: left, top, right, bottom. Outliers are uniform in the extent; component clicks outside it are
    redrawn.
    """
    components = len(mean)
    annotator = np.repeat(np.arange(len(reliability)), counts)
    weight = np.full(components, 1 / components)
    component = generator.choice(components, size=len(annotator), p=weight)
    component[generator.random(len(annotator)) >= reliability[annotator]] = -1

    left, top, right, bottom = extent
    points = generator.uniform((left, top), (right, bottom), size=(len(annotator), 2))
    root = np.linalg.cholesky(covariance)
    rows = np.flatnonzero(component >= 0)
    while len(rows):
        components_of_rows = component[rows]
        points[rows] = mean[components_of_rows] + np.einsum(
            "nij,nj->ni", root[components_of_rows], generator.standard_normal((len(rows), 2))
        )
        inside = (points[rows] >= (left, top)).all(axis=1) & (points[rows] <= (right, bottom)).all(axis=1)
        rows = rows[~inside]

    names = tuple(f"annotator {number:03d}" for number in range(1, len(reliability) + 1))
    clicks = Clicks(points[:, 0], points[:, 1], annotator, names, extent)
    return CrowdOfClicks(clicks, mean, covariance, weight, reliability, component.astype(np.int64))


def overlapping_crowd(annotators: int, seed: int, fewest: int = 16, most: int = 24) -> CrowdOfClicks:
    """Draw the crowd of ten close components of different sizes (OEM-DEM paper, section 3.1).

    The image is [1, 4] x [0, 5]; 60, 30 and 10 percent of annotators have an inlier probability of 0.95, 0.75
    and 0.25; each makes 16 to 24 clicks. The paper does not state the distribution of the centres: here they
    are uniform.

    `annotators`: R; the paper uses 11, 21, 25, 31, 41, 51. `fewest`, `most`: clicks of an annotator, uniform
    between the two.
    """
    generator = np.random.default_rng(seed)
    extent = (1.0, 0.0, 4.0, 5.0)
    mean = generator.uniform((1.0, 0.0), (4.0, 5.0), size=(10, 2))
    variances = [(0.04, 0.05)] * 5 + [(0.08, 0.1)] * 4 + [(0.12, 0.15)]
    covariance = np.array([np.diag(variance) for variance in variances])
    counts = generator.integers(fewest, most, size=annotators, endpoint=True)
    return draw_clicks(mean, covariance, _graded(annotators, generator), counts, extent, generator)


def separated_crowd(
    annotators: int,
    seed: int,
    components: int = 15,
    side: float = 1000.0,
    spread: float = 15.0,
    separation: float = 100.0,
    fewest: int = 13,
    most: int = 17,
) -> CrowdOfClicks:
    """Draw the crowd of fifteen separated components (thesis, section 2.3).

    Each annotator makes 13 to 17 clicks. The thesis does not state the annotators' inlier probabilities, nor
    the components' spread and separation: the probabilities are those of the paper, and spread and separation
    are chosen so that the components do not overlap.

    `annotators`: R; the thesis uses 20 and 50.
    `components`: M.
    `side`: width and height of the image.
    `spread`: standard deviation of a component along an axis.
    `separation`: minimum distance between two centres.
    `fewest`, `most`: clicks of an annotator, uniform between the two.
    Raises `ValueError` if the centres do not fit at that distance.
    """
    generator = np.random.default_rng(seed)
    mean = _apart(components, side, separation, generator)
    covariance = np.tile(np.eye(2) * spread**2, (components, 1, 1))
    counts = generator.integers(fewest, most, size=annotators, endpoint=True)
    extent = (0.0, 0.0, side, side)
    return draw_clicks(mean, covariance, _graded(annotators, generator), counts, extent, generator)


def voting_crowd(
    annotators: int,
    clusters: int,
    seed: int,
    sensitivity: float = 0.75,
    specificity: float = 0.75,
    prevalence: float = 0.5,
    concentration: float = 8.0,
) -> CrowdOfVotes:
    """Draw the votes of a crowd on clusters (thesis, section 3.1).

    The thesis draws sensitivities and specificities from Beta distributions with a given mean and does not
    state their width; here they are Beta(mean * concentration, (1 - mean) * concentration).

    `annotators`, `clusters`: R and M; the thesis uses 11 and 20.
    `sensitivity`, `specificity`: means over annotators.
    `prevalence`: probability that a cluster is a structure.
    `concentration`: sum of the Beta distributions' two parameters.
    """
    generator = np.random.default_rng(seed)
    sensitivities = _rates(sensitivity, concentration, annotators, generator)
    specificities = _rates(specificity, concentration, annotators, generator)
    present = generator.random(clusters) < prevalence
    chance = np.where(present, sensitivities[:, None], 1 - specificities[:, None])
    marked = generator.random((annotators, clusters)) < chance
    total = max(int(marked.sum()), 1)
    votes = Votes(marked, marked.sum(axis=0) / total, np.full(clusters, -1, dtype=np.int8))
    return CrowdOfVotes(votes, present, sensitivities, specificities, prevalence)


def decide_again(crowd: CrowdOfVotes, times: int, seed: int) -> BoolArray:
    """Draw further decisions, (T, R, M), of a crowd's annotators on its clusters (thesis, section 3.2).

    `crowd`: its truth and rates are used, its votes are not. `times`: T, decisions of each annotator on each
    cluster.
    """
    generator = np.random.default_rng([seed, times])
    chance = np.where(crowd.present, crowd.sensitivity[:, None], 1 - crowd.specificity[:, None])
    marked: BoolArray = generator.random((times, *chance.shape)) < chance
    return marked


def _graded(annotators: int, generator: np.random.Generator) -> FloatArray:
    """Return one of the grades' probabilities for each annotator, by shares, in random order."""
    edges = np.rint(np.cumsum([share for share, _ in GRADES]) * annotators).astype(int)
    sizes = np.diff(edges, prepend=0)
    return generator.permutation(np.repeat([probability for _, probability in GRADES], sizes))


def _apart(components: int, side: float, separation: float, generator: np.random.Generator) -> FloatArray:
    positions = np.empty((components, 2))
    # Random discs no longer fit when they cover more than this share of the square and its margin.
    room = _JAMMED * (side + separation) ** 2
    done = missed = 0
    while done < components and missed < _MISSES and components * np.pi * separation**2 / 4 <= room:
        position = generator.uniform(0, side, size=2)
        missed += 1
        if not done or np.hypot(*(positions[:done] - position).T).min() >= separation:
            positions[done] = position
            done, missed = done + 1, 0
    if done < components:
        raise ValueError(f"{components} centres do not fit into {side:g} x {side:g} at {separation:g} apart")
    return positions


def _rates(mean: float, concentration: float, count: int, generator: np.random.Generator) -> FloatArray:
    return generator.beta(mean * concentration, (1 - mean) * concentration, size=count)
