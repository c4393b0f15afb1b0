"""OEM: EM clustering of clicks with outliers and annotators' reliability (OEM-DEM paper, section 3)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np

from raterscope.algorithms.clicks._grid import sort_into_cells
from raterscope.algorithms.clicks._path import PARAMETERS, Criterion, Form, Path, walk
from raterscope.algorithms.clicks._seeding import k_means
from raterscope.algorithms.clicks.data import Clicks, FloatArray
from raterscope.algorithms.clicks.results import Clustering, Trace
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.algorithms.settings import Settings, choice, integer, number, switch

if TYPE_CHECKING:
    from raterscope.algorithms.clicks._crowd import Crowd, CrowdModel
    from raterscope.algorithms.clicks._scatter import Habits

__all__ = [
    "COVARIANCES",
    "MixtureSettings",
    "OEMSettings",
    "begin_reliability",
    "crowd_model",
    "empty_clustering",
    "fit_evidence",
    "make_path",
    "oem",
    "path_of",
    "walk_path",
    "weighs_evidence",
]

CRITERIA = {
    "evidence": "evidence of the crowd model",
    "observed": "observed likelihood, with the penalties of eq. 16",
    "expected": "eq. 16 of the paper",
    "thesis": "the thesis's cost",
}

REPEATS = {
    "learnt": "learnt",
    "once": "at most once",
    "often": "any number of times",
}

WITHIN = (0.01, 0.99)
"""Least and largest p0 of an annotator: at 0 and 1 it would stay."""

MAX_ROUNDS = 8
"""Rounds of removal with the evidence: after some the annotators' hands hardly move."""

COVARIANCES = {"held": "held at the click scatter", "free": "estimated"}

TRUNCATED = ("refreshed", "literal")
"""Forms of Algorithm 1 that end after 500 iterations, as the paper's simulations do."""

PRINTED_FORMS = {"literal": "literal", "refreshed": "with refreshed posteriors"}

LITERAL_FLOOR = "covariances have a floor"

REFRESHED = (
    "eq. 16 uses the posteriors of the new parameters, not of the E step before",
    "eq. 17 starts afresh after each forced removal",
    "weights are renormalised after a forced removal",
    "there is no minimum of ten iterations",
)

CORRECTED = (
    "the scatter is estimated from the distances between clicks of different annotators, not from the "
    "variance of all clicks",
    "the initial number of clusters is at most a quarter of the clicks",
    "eq. 15 annihilates one component after the other",
    "eq. 17 needs a small change in either direction and an unchanged number of clusters",
    "removal may go on to no cluster at all",
)

PENALTIES = {"quarter": "L/4, the paper's", "half": "L/2, the thesis's"}


@dataclass(frozen=True)
class MixtureSettings(Settings):
    """What OEM and CEM have in common. Left open, the click scatter is learnt."""

    click_scatter: float | None = number(
        None, "Click scatter", "Standard deviation of a click about its object along an axis. Left open, it "
        "is learnt from how far apart different annotators click.", unit="px", minimum=1e-6,
    )  # fmt: skip
    initial_clusters: int | None = integer(
        None, "Initial number", "Clusters to begin with. Left open: six times the mean clicks of an "
        "annotator. At most a quarter of the clicks unless as printed.", minimum=1, advanced=True,
    )  # fmt: skip
    lower_bound: int = integer(
        0, "Lower bound", "Fewest clusters that removal goes down to.", minimum=0, advanced=True
    )
    max_iterations: int = integer(
        5000, "Iterations", "Most iterations; the paper takes 500.", minimum=1, advanced=True
    )
    tolerance: float = number(
        1e-5, "Tolerance", "Relative gain beneath which the weakest cluster is removed (eq. 17).",
        minimum=1e-12, maximum=0.1, advanced=True,
    )  # fmt: skip
    covariance: str = choice(
        "held",
        "Covariance",
        "Of the clusters, along Algorithm 1. As printed it is estimated.",
        COVARIANCES,
        advanced=True,
    )
    covariance_floor: float = number(
        0.3, "Covariance floor", "Smallest variance of a cluster, as a share of the squared click scatter.",
        minimum=0.0, maximum=1.0, advanced=True,
    )  # fmt: skip
    seed: int = integer(0, "Seed", "Of the initial centres.", minimum=0, maximum=2**31 - 1, advanced=True)


@dataclass(frozen=True)
class OEMSettings(MixtureSettings):
    """Settings of `oem`."""

    def departures(self) -> tuple[str, ...]:
        """List in what the algorithm differs from Algorithm 1 of the OEM-DEM paper.

        Returns
        -------
        tuple of str
            Clauses for the methods text of a report.
        """
        if weighs_evidence(self):
            return ("a model of the crowd and its evidence replace Algorithm 1",)
        if self.as_printed:
            return (LITERAL_FLOOR, *(REFRESHED if self.printed_form == "refreshed" else ()))
        found = [LITERAL_FLOOR, *REFRESHED, *CORRECTED]
        if self.covariance == "held":
            found.append("covariances are held at the click scatter")
        if self.criterion == "observed":
            found.append("the observed likelihood takes the place of its expectation in eq. 16")
        if self.criterion == "thesis":
            found.append("the thesis's cost (section 2.1) takes the place of eq. 16")
        if self.penalty == "half":
            found.append("eq. 15 subtracts L/2")
        if self.max_iterations != 500:
            found.append(f"at most {self.max_iterations:,} iterations instead of 500")
        return tuple(found)

    criterion: str = choice(
        "evidence",
        "Criterion",
        "What the number of clusters is chosen by. The evidence comes with a model of the "
        "crowd and a removal of its own; the others follow Algorithm 1 of the paper.",
        CRITERIA,
    )
    penalty: str = choice(
        "half",
        "Penalty",
        "Clicks that eq. 15 takes from every cluster; not for the evidence.",
        PENALTIES,
        advanced=True,
    )
    as_printed: bool = switch(
        False, "As printed", "Algorithm 1 as the paper prints it: scatter from the variance of the clicks, "
        "no cap on the initial number, eq. 16 with the posteriors of the E step before, one-sided eq. 17 "
        "across removals, L/4, 10 to 500 iterations. Only the covariance floor is added.",
    )  # fmt: skip
    printed_form: str = choice(
        "literal", "Form as printed", "With the published version: the literal algorithm, or one that scores "
        "each iteration with new posteriors and restarts eq. 17 after each removal, which finds more "
        "clusters.", PRINTED_FORMS, advanced=True,
    )  # fmt: skip
    own_hands: bool = switch(
        True,
        "Own offset and scatter",
        "With the evidence, let every annotator have an offset and a scatter of his own.",
    )
    repeats: str = choice(
        "learnt", "Repeats", "With the evidence, how often an annotator clicks an object.", REPEATS
    )
    initial_reliability: float = number(
        0.9, "Initial reliability", "Annotators' reliability to begin with, p0.", minimum=0.01, maximum=0.99,
        advanced=True,
    )  # fmt: skip
    carry_reliability: bool = switch(
        False, "Carry reliability on", "Start each image with the reliabilities that annotators had on the "
        "image before (section 4), in the order of the images, instead of p0 for all; in a stream, with "
        "those on all other images.", advanced=True,
    )  # fmt: skip


def oem(
    clicks: Clicks,
    settings: OEMSettings | None = None,
    watch: Watch = silent,
    *,
    reliability: FloatArray | None = None,
) -> Clustering:
    """Cluster the clicks of one image (OEM-DEM paper, Algorithm 1).

    Parameters
    ----------
    clicks : Clicks
        N clicks of R annotators; one mark an annotator and place (`Clicks.merged`).
    settings : OEMSettings, optional
    watch : Watch
        Called with every iteration.
    reliability : (R,) float64, optional
        Each annotator's p0, say their reliability on another image (section 4); that of the settings where it
        is NaN. It is kept within .01 and .99, which estimation can leave again.

    Returns
    -------
    Clustering
        Empty where there are no clicks or nothing was found.

    Notes
    -----
    With `as_printed` and the literal form this is Algorithm 1 as the paper prints it, initialised as in
    section 3.1 (k-means, six times the mean clicks of an annotator, Sigma0 from the variance of the clicks)
    and with the 10 to 500 iterations of section 7.1. Three things are added: the covariance floor of the
    settings, without which two clicks make a singular component; reliabilities within 1e-6 of 0 and 1, which
    absorb; and densities below exp(-36) of a component's height are taken as 0.

    The refreshed form differs from the literal one in four points: eq. 16 takes the posteriors of the new
    parameters (the literal one those of the E step before); eq. 17 starts afresh after each forced removal
    (the literal one compares across it, so that removals follow each other closely); weights are renormalised
    after a forced removal; there is no minimum of ten iterations.

    All other settings walk a corrected path, which differs besides in the initial scatter and number, the
    order of annihilation and the stop rule: `OEMSettings.departures` lists all differences of given settings.
    By default a model of the crowd is fitted instead.

    Examples
    --------
    >>> from raterscope.algorithms.simulation.click_crowds import separated_crowd
    >>> crowd = separated_crowd(20, seed=3)
    >>> len(oem(crowd.clicks))
    15
    >>> OEMSettings(as_printed=True).departures()
    ('covariances have a floor',)
    """
    settings = OEMSettings() if settings is None else settings
    if not len(clicks):
        return empty_clustering(len(clicks.annotators))
    if weighs_evidence(settings):
        return fit_evidence(clicks, settings, watch, reliability)[0]
    begin = begin_reliability(reliability, settings, len(clicks.annotators))
    return walk_path(clicks, settings, watch, partial(path_of, settings), settings.as_printed, begin)


def begin_reliability(known: FloatArray | None, settings: OEMSettings, annotators: int) -> FloatArray:
    """Give every annotator's p0, (R,): what is known, and that of the settings where it is NaN."""
    if known is None:
        return np.full(annotators, settings.initial_reliability)
    return np.clip(np.where(np.isnan(known), settings.initial_reliability, known), *WITHIN)


def weighs_evidence(settings: OEMSettings) -> bool:
    """Tell whether the crowd model is fitted, or Algorithm 1 walked."""
    return settings.criterion == "evidence" and not settings.as_printed


def path_of(settings: OEMSettings, scatter: float) -> Path:
    """Say how Algorithm 1 is walked when clicks scatter so far, pixels."""
    return make_path(
        settings,
        scatter,
        criterion="expected" if settings.as_printed else cast(Criterion, settings.criterion),
        penalty=PARAMETERS / (4 if settings.penalty == "quarter" or settings.as_printed else 2),
        initial_reliability=settings.initial_reliability,
        form=cast(Form, settings.printed_form) if settings.as_printed else "corrected",
    )


def fit_evidence(
    clicks: Clicks, settings: OEMSettings, watch: Watch, reliability: FloatArray | None = None
) -> tuple[Clustering, Crowd, Habits]:
    """Fit the crowd model; give it and what it began with besides. `reliability` as `oem` takes it."""
    from raterscope.algorithms.clicks._crowd_fit import fit_crowd
    from raterscope.algorithms.clicks._scatter import learn_habits

    watch(0.0, "learning how far clicks scatter")
    habits = learn_habits(clicks)
    model = crowd_model(settings, habits, len(clicks))

    def tick() -> None:
        watch(0.02, "sorting clicks by place")

    tick()
    cells = sort_into_cells(clicks, 2 * model.scatter, tick)
    annotators = len(clicks.annotators)
    if reliability is not None:
        begin = np.empty(annotators)
        begin[cells.rank] = begin_reliability(reliability, settings, annotators)
        model = replace(model, reliability=begin)
    return *fit_crowd(cells, annotators, clicks.area, model, part(watch, 0.05, 1.0)), habits


def crowd_model(settings: OEMSettings, habits: Habits, clicks: int) -> CrowdModel:
    """Put settings and the crowd's habits into the form that the crowd model takes."""
    from raterscope.algorithms.clicks._crowd import CrowdModel

    return CrowdModel(
        scatter=settings.click_scatter or habits.scatter,
        learn_scatter=settings.click_scatter is None,
        resolution=habits.resolution,
        once=habits.repeats <= 0.5 if settings.repeats == "learnt" else settings.repeats == "once",
        own_hands=settings.own_hands,
        floor=settings.covariance_floor,
        reliability=settings.initial_reliability,
        most=settings.initial_clusters or clicks,
        lower_bound=settings.lower_bound,
        max_rounds=min(settings.max_iterations, MAX_ROUNDS),
    )


def make_path(
    settings: MixtureSettings,
    scatter: float,
    *,
    criterion: Criterion,
    penalty: float,
    initial_reliability: float = 1.0,
    form: Form = "corrected",
    outliers: bool = True,
) -> Path:
    """Put settings into the form that Algorithm 1 takes."""
    published = form != "corrected"
    held = settings.covariance == "held" and not published
    return Path(
        criterion=criterion,
        penalty=penalty,
        floor=(1.0 if held else max(settings.covariance_floor, 1e-6)) * scatter**2,
        ceiling=scatter**2 if held else math.inf,
        lower_bound=max(settings.lower_bound, 1) if published else settings.lower_bound,
        max_iterations=min(settings.max_iterations, 500) if form in TRUNCATED else settings.max_iterations,
        tolerance=settings.tolerance,
        initial_reliability=initial_reliability,
        form=form,
        outliers=outliers,
    )


def walk_path(
    clicks: Clicks,
    settings: MixtureSettings,
    watch: Watch,
    path: Callable[[float], Path],
    printed: bool = False,
    reliability: FloatArray | None = None,
) -> Clustering:
    """Walk Algorithm 1 from the centroids of k-means, with or without outliers."""
    if not len(clicks):
        return empty_clustering(len(clicks.annotators))
    watch(0.0, "learning how far clicks scatter")
    if printed:
        scatter = max(math.sqrt(_variance(clicks) / 200), 1e-9)
    else:
        from raterscope.algorithms.clicks._scatter import learn_habits

        scatter = settings.click_scatter or learn_habits(clicks).scatter
    worth = clicks.worth[clicks.annotator]
    number = float(worth.sum())
    wanted = settings.initial_clusters or max(
        1, round(6 * number / float(clicks.worth[clicks.counts() > 0].sum()))
    )
    if not printed:
        wanted = min(wanted, max(1, int(number // 4)))
    watch(0.02, "choosing where clusters begin")
    cells = sort_into_cells(clicks, 3 * scatter)
    points = np.column_stack([cells.x, cells.y])
    mean = k_means(points, worth[cells.order], min(wanted, len(clicks)), settings.seed)
    start = np.array([scatter**2, 0.0, scatter**2])
    begin = np.ones(len(clicks.annotators))
    if reliability is not None:
        begin[cells.rank] = reliability
    return walk(cells, begin, 1 / clicks.area, mean, start, path(scatter), scatter, part(watch, 0.05, 1.0))


def _variance(clicks: Clicks) -> float:
    """Give the mean of the variances of x and y, each click by how much its annotator counts."""
    worth = clicks.worth[clicks.annotator, None]
    number = float(worth.sum())
    if number <= 1:
        return 0.0
    centred = clicks.points - np.median(clicks.points, axis=0)
    centred -= (worth * centred).sum(axis=0) / number
    return float(((worth * centred**2).sum(axis=0) / (number - 1)).mean())


def empty_clustering(annotators: int) -> Clustering:
    """Give the clustering of no clicks by R annotators."""
    return Clustering(
        np.empty((0, 2)), np.empty((0, 2, 2)), np.empty(0), np.empty(0), np.empty(0, dtype=np.int64),
        np.full(annotators, np.nan), float("nan"), Trace.none(),
    )  # fmt: skip
