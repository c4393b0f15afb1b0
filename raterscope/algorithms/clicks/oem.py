"""OEM: EM clustering of clicks with outliers and annotators' reliability (OEM-DEM paper, section 3).

References
----------
.. [kass1995] R. E. Kass and A. E. Raftery, "Bayes factors", Journal of the American Statistical Association
   90 (1995) 773-795, doi:10.1080/01621459.1995.10476572.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.clicks._crowd import sort_into_cells
from raterscope.algorithms.clicks._path import PARAMETERS, Criterion, Form, Path, walk
from raterscope.algorithms.clicks.data import Clicks, FloatArray, IntArray
from raterscope.algorithms.clicks.result import Clustering, Trace
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.algorithms.settings import Settings, choice, integer, number, switch

if TYPE_CHECKING:
    from raterscope.algorithms.clicks._crowd import Crowd, CrowdModel


MAX_DISTANCES = 2_000_000_000
"""Maximum distances computed by k-means, about one second, because it cannot be cancelled."""


def k_means(points: FloatArray, worth: FloatArray, count: int, seed: int) -> FloatArray:
    """Find initial centroids by k-means (OEM-DEM paper, section 3.1), at most one for each distinct point.

    Each of N points, (N, 2), has a weight, (N,).
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    count = min(count, len(np.unique(points, axis=0)))
    rounds = int(np.clip(MAX_DISTANCES // (len(points) * count), 3, 300))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = KMeans(count, n_init=1, max_iter=rounds, random_state=seed).fit(points, sample_weight=worth)
    return np.asarray(fitted.cluster_centers_, dtype=np.float64)


CRITERIA = {
    "evidence": "evidence of the crowd model",
    "observed": "observed likelihood, with the penalties of eq. 16",
    "expected": "eq. 16 of the paper",
    "thesis": "the thesis's cost",
}

REPEATS = {
    "learnt": "estimated from the data",
    "once": "at most once",
    "often": "any number of times",
}

WITHIN = (0.01, 0.99)
"""Limits of an annotator's p0: values of 0 and 1 would not change any more."""

COVARIANCES = {"held": "held at the click scatter", "free": "estimated"}

TRUNCATED = ("refreshed", "literal")
"""Forms of Algorithm 1 that end after 500 iterations, as the paper's simulations do."""

PRINTED_FORMS = {"literal": "literal", "refreshed": "with refreshed posteriors"}

LITERAL_FLOOR = "covariances have a floor"

REFRESHED = (
    "eq. 16 uses the posteriors of the new parameters, not of the E step before",
    "eq. 17 restarts after each forced removal",
    "weights are renormalised after a forced removal",
    "there is no minimum of ten iterations",
)

CORRECTED = (
    "the scatter is estimated from the distances between clicks of different annotators, not from the "
    "variance of all clicks",
    "the initial number of clusters is at most a quarter of the clicks",
    "eq. 15 annihilates one component after the other",
    "eq. 17 needs a small change in either direction and an unchanged number of clusters",
    "removal may end without any cluster",
)

PENALTIES = {"quarter": "L/4, the paper's", "half": "L/2, the thesis's"}


@dataclass(frozen=True)
class MixtureSettings(Settings):
    """Settings that OEM and CEM share. Without a value, the click scatter is estimated from the data."""

    click_scatter: float | None = number(
        None, "Click scatter", "Standard deviation of a click around its object along an axis. Empty: "
        "estimated from the distances between clicks of different annotators.", unit="px", minimum=1e-6,
    )  # fmt: skip
    initial_clusters: int | None = integer(
        None, "Initial number", "Initial number of clusters. Empty: six times the mean clicks of an "
        "annotator. At most a quarter of the clicks unless as published.", minimum=1, advanced=True,
        left_open="six times the mean clicks",
    )  # fmt: skip
    lower_bound: int = integer(
        0, "Lower bound", "Minimum number of clusters after removal.", minimum=0, advanced=True
    )
    max_iterations: int = integer(
        5000, "Iterations", "Maximum number of iterations; the paper uses 500.", minimum=1, advanced=True
    )
    tolerance: float = number(
        1e-5, "Tolerance", "Relative gain below which the weakest cluster is removed (eq. 17).",
        minimum=1e-12, maximum=0.1, advanced=True,
    )  # fmt: skip
    covariance: str = choice(
        "held",
        "Covariance",
        "Covariance of the clusters in Algorithm 1. As published it is estimated.",
        COVARIANCES,
        advanced=True,
    )
    covariance_floor: float = number(
        0.3, "Covariance floor", "Minimum variance of a cluster, as a share of the squared click scatter.",
        minimum=0.0, maximum=1.0, advanced=True,
    )  # fmt: skip
    seed: int = integer(0, "Seed", "Of the initial centres.", minimum=0, maximum=2**31 - 1, advanced=True)


@dataclass(frozen=True)
class OEMSettings(MixtureSettings):
    """Settings of `oem`."""

    def departures(self) -> tuple[str, ...]:
        """List the differences from Algorithm 1 of the OEM-DEM paper, as clauses for the methods text."""
        if uses_evidence(self):
            return ("a model of the crowd and its evidence replace Algorithm 1",)
        if self.as_published:
            return (LITERAL_FLOOR, *(REFRESHED if self.published_form == "refreshed" else ()))
        departures = [LITERAL_FLOOR, *REFRESHED, *CORRECTED]
        if self.covariance == "held":
            departures.append("covariances are held at the click scatter")
        if self.criterion == "observed":
            departures.append("the observed likelihood replaces its expectation in eq. 16")
        if self.criterion == "thesis":
            departures.append("the thesis's cost (section 2.1) replaces eq. 16")
        if self.penalty == "half":
            departures.append("eq. 15 subtracts L/2")
        if self.max_iterations != 500:
            departures.append(f"at most {self.max_iterations:,} iterations instead of 500")
        return tuple(departures)

    criterion: str = choice(
        "evidence",
        "Criterion",
        "Criterion for the number of clusters. The evidence uses a model of the crowd and its own removal; "
        "the others follow Algorithm 1 of the paper.",
        CRITERIA,
    )
    penalty: str = choice(
        "half",
        "Penalty",
        "Clicks that eq. 15 takes from every cluster; not for the evidence.",
        PENALTIES,
        advanced=True,
    )
    as_published: bool = switch(
        False, "As published", "Algorithm 1 as the paper prints it: scatter from the variance of the clicks, "
        "no cap on the initial number, eq. 16 with the posteriors of the E step before, one-sided eq. 17 "
        "across removals, L/4, 10 to 500 iterations. Only the covariance floor is added.",
    )  # fmt: skip
    published_form: str = choice(
        "literal", "Form as published", "With the published version: the literal algorithm, or one that "
        "scores each iteration with new posteriors and restarts eq. 17 after each removal, which finds more "
        "clusters.", PRINTED_FORMS, advanced=True,
    )  # fmt: skip
    per_annotator_scatter: bool = switch(
        True,
        "Own offset and scatter",
        "With the evidence, estimate the offset and scatter of every annotator.",
    )
    repeats: str = choice(
        "learnt", "Repeats", "With the evidence, how often an annotator clicks an object.", REPEATS
    )
    initial_reliability: float = number(
        0.9, "Initial reliability", "Initial reliability of the annotators, p0.", minimum=0.01, maximum=0.99,
        advanced=True,
    )  # fmt: skip
    carry_reliability: bool = switch(
        False, "Carry reliability on", "Start each image with the annotators' reliabilities on the previous "
        "image (section 4), in the order of the images, instead of p0 for all; in a stream, with those on "
        "all other images.", advanced=True,
    )  # fmt: skip


def oem(
    clicks: Clicks,
    settings: OEMSettings | None = None,
    watch: Watch = silent,
    *,
    reliability: FloatArray | None = None,
) -> Clustering:
    """Cluster the clicks of one image (OEM-DEM paper, Algorithm 1).

    `clicks`: N clicks of R annotators; one mark for each annotator and position (`Clicks.merged`).
    `watch`: called with every iteration.
    `reliability`: (R,), each annotator's p0, for example the reliability on another image (section 4); that
        of the settings where it is NaN. It is clipped to .01 and .99; estimates may leave this range.
    The clustering is empty without clicks or clusters.

    Notes
    -----
    With `as_published` and the literal form this is Algorithm 1 as the paper prints it, initialised as in
    section 3.1 (k-means, six times the mean clicks of an annotator, Sigma0 from the variance of the clicks)
    and with the 10 to 500 iterations of section 7.1. Three things are added: the covariance floor of the
    settings, without which two clicks make a singular component; reliabilities within 1e-6 of 0 and 1 stay
    there; and densities below exp(-36) of a component's height count as 0. The refreshed form differs from
    the literal one in four points: eq. 16 uses the posteriors of the new parameters (the literal one those of
    the previous E step); eq. 17 restarts after each forced removal (the literal one compares across it, so
    that removals follow each other closely); weights are renormalised after a forced removal; there is no
    minimum of ten iterations.

    All other settings follow a corrected path, which also differs in the initial scatter and number, the
    order of annihilation and the stop rule: `OEMSettings.departures` lists all differences of the settings.
    By default a model of the crowd is fitted instead.

    Examples
    --------
    >>> from raterscope.algorithms.simulation.click_crowds import separated_crowd
    >>> crowd = separated_crowd(20, seed=3)
    >>> len(oem(crowd.clicks))
    15
    >>> OEMSettings(as_published=True).departures()
    ('covariances have a floor',)
    """
    settings = OEMSettings() if settings is None else settings
    if not len(clicks):
        return empty_clustering(len(clicks.annotators))
    if uses_evidence(settings):
        return fit_evidence(clicks, settings, watch, reliability)[0]
    begin = initial_reliability(reliability, settings, len(clicks.annotators))
    return walk_path(clicks, settings, watch, partial(path_of, settings), settings.as_published, begin)


def initial_reliability(known: FloatArray | None, settings: OEMSettings, annotators: int) -> FloatArray:
    """Return every annotator's p0, (R,): known values, and that of the settings where they are NaN."""
    if known is None:
        return np.full(annotators, settings.initial_reliability)
    return np.clip(np.where(np.isnan(known), settings.initial_reliability, known), *WITHIN)


def uses_evidence(settings: OEMSettings) -> bool:
    """Return whether the crowd model is fitted instead of Algorithm 1."""
    return settings.criterion == "evidence" and not settings.as_published


def path_of(settings: OEMSettings, scatter: float) -> Path:
    """Return the rules of Algorithm 1 for a click scatter, pixels."""
    return make_path(
        settings,
        scatter,
        criterion="expected" if settings.as_published else cast(Criterion, settings.criterion),
        penalty=PARAMETERS / (4 if settings.penalty == "quarter" or settings.as_published else 2),
        initial_reliability=settings.initial_reliability,
        form=cast(Form, settings.published_form) if settings.as_published else "corrected",
    )


def fit_evidence(
    clicks: Clicks, settings: OEMSettings, watch: Watch, reliability: FloatArray | None = None
) -> tuple[Clustering, Crowd, Habits]:
    """Fit the crowd model; also return its initial parameters. `reliability` as in `oem`.

    Where few clicks agree, the distances between clicks may be those of strays, and the scatter then starts
    so large that all of them become one cluster. The fit is repeated from the usual scatter if that is
    smaller, and kept if the evidence for it is strong, see `STRONG`. If this second fit finds nothing, strong
    evidence is needed for the clusters of the first.
    """
    watch(0.0, "estimating the click scatter")
    habits = learn_habits(clicks)
    usual = _usual_scatter(clicks, habits.resolution)
    if settings.click_scatter is not None or habits.scatter <= usual:
        return *_fit_from(clicks, settings, habits, part(watch, 0.05, 1.0), reliability), habits
    wide, narrow = (
        (*_fit_from(clicks, settings, start, part(watch, *span), reliability), start)
        for start, span in ((habits, (0.05, 0.5)), (replace(habits, scatter=usual), (0.5, 1.0)))
    )
    gain = wide[0].trace.objective[-1] - narrow[0].trace.objective[-1]
    return wide if gain > (-STRONG if len(narrow[0]) else STRONG) else narrow


def _usual_scatter(clicks: Clicks, resolution: float) -> float:
    return max(math.sqrt(clicks.area) / 100, resolution)


def _fit_from(
    clicks: Clicks, settings: OEMSettings, habits: Habits, watch: Watch, reliability: FloatArray | None
) -> tuple[Clustering, Crowd]:
    """Fit the crowd model from initial parameters."""
    from raterscope.algorithms.clicks._crowd import fit_crowd

    model = crowd_model(settings, habits, len(clicks))

    def tick() -> None:
        watch(0.0, "sorting clicks by position")

    tick()
    cells = sort_into_cells(clicks, 2 * model.scatter, tick)
    annotators = len(clicks.annotators)
    if reliability is not None:
        begin = np.empty(annotators)
        begin[cells.rank] = initial_reliability(reliability, settings, annotators)
        model = replace(model, reliability=begin)
    return fit_crowd(cells, annotators, clicks.area, model, watch)


def crowd_model(settings: OEMSettings, habits: Habits, clicks: int) -> CrowdModel:
    """Convert settings and the crowd's habits to parameters of the crowd model."""
    from raterscope.algorithms.clicks._crowd import CrowdModel

    return CrowdModel(
        scatter=settings.click_scatter or habits.scatter,
        learn_scatter=settings.click_scatter is None,
        resolution=habits.resolution,
        once=habits.repeats <= 0.5 if settings.repeats == "learnt" else settings.repeats == "once",
        per_annotator_scatter=settings.per_annotator_scatter,
        floor=settings.covariance_floor,
        reliability=settings.initial_reliability,
        most=settings.initial_clusters or clicks,
        lower_bound=settings.lower_bound,
        max_rounds=settings.max_iterations,
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
    """Convert settings to the rules of Algorithm 1."""
    published = form != "corrected"
    fixed = settings.covariance == "held" and not published
    return Path(
        criterion=criterion,
        penalty=penalty,
        floor=(1.0 if fixed else max(settings.covariance_floor, 1e-6)) * scatter**2,
        ceiling=scatter**2 if fixed else math.inf,
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
    """Run Algorithm 1 from the centroids of k-means, with or without outliers."""
    if not len(clicks):
        return empty_clustering(len(clicks.annotators))
    watch(0.0, "estimating the click scatter")
    if printed:
        scatter = max(math.sqrt(_variance(clicks) / 200), 1e-9)
    else:
        scatter = settings.click_scatter or learn_habits(clicks).scatter
    worth = clicks.worth[clicks.annotator]
    number = float(worth.sum())
    target = settings.initial_clusters or max(
        1, round(6 * number / float(clicks.worth[clicks.counts() > 0].sum()))
    )
    if not printed:
        target = min(target, max(1, int(number // 4)))
    watch(0.02, "choosing initial clusters")
    cells = sort_into_cells(clicks, 3 * scatter)
    points = np.column_stack([cells.x, cells.y])
    mean = k_means(points, worth[cells.order], min(target, len(clicks)), settings.seed)
    start = np.array([scatter**2, 0.0, scatter**2])
    begin = np.ones(len(clicks.annotators))
    if reliability is not None:
        begin[cells.rank] = reliability
    return walk(cells, begin, 1 / clicks.area, mean, start, path(scatter), scatter, part(watch, 0.05, 1.0))


def _variance(clicks: Clicks) -> float:
    """Return the mean of the variances of x and y, each click weighted by annotator."""
    worth = clicks.worth[clicks.annotator, None]
    number = float(worth.sum())
    if number <= 1:
        return 0.0
    centred = clicks.points - np.median(clicks.points, axis=0)
    centred -= (worth * centred).sum(axis=0) / number
    return float(((worth * centred**2).sum(axis=0) / (number - 1)).mean())


def empty_clustering(annotators: int) -> Clustering:
    """Return the clustering of R annotators without clicks."""
    return Clustering(
        np.empty((0, 2)), np.empty((0, 2, 2)), np.empty(0), np.empty(0), np.empty(0, dtype=np.int64),
        np.full(annotators, np.nan), float("nan"), Trace.none(),
    )  # fmt: skip


WINDOW = 8000
"""Number of clicks sampled around the middle of the image; at most `MOST` of them are paired."""

MOST = 2000

ANNOTATORS = 250
"""Number of annotators sampled from a larger crowd; more if these have fewer than `MOST` clicks."""

BUSY = 3
"""Maximum clicks of an annotator, as a multiple of the median, so that no annotator dominates."""

BINS = 256

STRONG = math.log(20)
"""Log Bayes factor above which evidence is strong [kass1995]_."""

MEDIAN_OF_RAYLEIGH = math.sqrt(2 * math.log(2))


@dataclass(frozen=True)
class Habits:
    """Habits of a crowd: its scatter, and repeated clicks on one object."""

    scatter: float  # standard deviation of a click around its object along an axis, pixels
    # rate of an annotator's further clicks near an own click, relative to the rate of others' clicks: near 0
    # if objects are marked once, 1 if clicks are independent
    repeats: float
    resolution: float  # standard deviation from rounding, the lower bound of a scatter


def learn_habits(clicks: Clicks) -> Habits:
    """Estimate scatter and repeats from the distances between clicks.

    Clicks of different annotators are close because they mark one object, or because objects are close.
    Clicks of one annotator are close only for the second reason, unless objects are marked twice. The excess
    of the former over the latter are pairs on one object. Their distance has a Rayleigh distribution of scale
    sqrt(2) times the scatter, so that half of the excess lies within its median. It is measured where most
    pairs are in excess; farther out, annotators who skip parts of an image matter. Where annotators repeat
    clicks, the excess over random clicks is used instead. A pair counts as the product of its annotators'
    weights.
    """
    resolution = _resolution(clicks)
    rows = _sample(clicks)
    x, y = clicks.x[rows] - clicks.centre[0], clicks.y[rows] - clicks.centre[1]
    span = max(float(np.ptp(x)), float(np.ptp(y)), resolution)
    area = clicks.area if len(rows) == len(clicks) else span**2
    habits = _judge_habits(
        x, y, clicks.annotator[rows], clicks.weights, len(clicks.annotators), resolution, span, area
    )
    return habits or Habits(_usual_scatter(clicks, resolution), 0.0, resolution)


def _judge_habits(
    x: FloatArray,
    y: FloatArray,
    annotator: IntArray,
    weights: FloatArray | None,
    annotators: int,
    resolution: float,
    span: float,
    area: float,
) -> Habits | None:
    """Estimate habits from a sample of clicks, without a single annotator who causes most repeats."""
    from raterscope.algorithms.clicks._kernels import count_own

    worth = np.ones(annotators) if weights is None else weights
    counts = np.bincount(annotator, minlength=annotators).astype(np.float64)
    pairs = worth**2 * counts * (counts - 1) / 2
    pairs_same, clicks = float(pairs.sum()), float((worth * counts).sum())
    pairs_other = (clicks**2 - float((worth**2 * counts**2).sum())) / 2
    if pairs_other < 1:
        return None
    logs = np.linspace(2 * math.log(resolution / 2), 2 * math.log(2 * span), BINS + 1)
    same, other = count_by_distance(x, y, annotator, weights, np.exp(logs))
    radius = np.exp(logs[1:] / 2)
    near: FloatArray = np.cumsum(other).astype(np.float64) / pairs_other
    repeats, half = 0.0, 0.0
    if pairs_same >= 1:
        own = np.cumsum(same) / pairs_same
        neighbours = min(4.0, (float(worth[counts > 0].sum()) - 1) / 2)
        close = min(int(np.searchsorted(near * clicks, neighbours)), BINS - 1)
        repeats = float(own[close] / near[close])
        repeated = np.zeros(len(counts))
        count_own(x, y, annotator, radius[close], repeated)
        repeated *= worth**2
        complement = np.maximum(pairs_same - pairs, 1)
        without_one = (repeated.sum() - repeated) / complement / near[close]
        most = int(np.argmin(without_one))
        if without_one[most] <= 0.5 < repeats:
            keep = annotator != most
            return _judge_habits(
                x[keep], y[keep], annotator[keep], weights, annotators, resolution, span, area
            )
        half = _half_of_excess(radius, np.where(own <= near / 2, near - own, 0.0))
    if pairs_same < 1 or repeats > 0.5:
        half = _half_of_excess(radius, near - np.minimum(math.pi * radius**2 / area, 1.0))
    return Habits(max(half / (MEDIAN_OF_RAYLEIGH * math.sqrt(2)), resolution), repeats, resolution)


def count_by_distance(
    x: FloatArray, y: FloatArray, annotator: IntArray, weights: FloatArray | None, edges: FloatArray
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Count pairs of clicks of the same and of different annotators between `edges` of squared distances."""
    from raterscope.algorithms.clicks._kernels import IGNORED, count_pairs

    same, other = np.zeros((2, len(edges) - 1), dtype=np.int64 if weights is None else np.float64)
    # The upper bits of positive floats have the same order; looking them up is faster than a logarithm.
    cell = edges.view(np.int64) >> IGNORED
    begun = np.bincount(cell[1:-1] - cell[1], minlength=cell[-1] - cell[1] + 1)
    first = np.cumsum(begun) - begun
    squares = np.empty(len(x))
    bits, lowest = squares.view(np.int64), int(cell[1])
    count_pairs(x, y, annotator, weights, edges, first, lowest, squares, bits, same, other)
    return same, other


def _half_of_excess(radius: FloatArray, excess: FloatArray) -> float:
    """Find the radius within which half of the largest excess lies."""
    return float(radius[int(np.argmax(excess >= excess.max() / 2))])


def _resolution(clicks: Clicks) -> float:
    """Find the standard deviation of the rounding errors of the coordinates."""
    farthest = max(float(np.abs(clicks.x).max()), float(np.abs(clicks.y).max()))
    whole_pixels = bool((clicks.x == np.rint(clicks.x)).all() and (clicks.y == np.rint(clicks.y)).all())
    return max(1 / math.sqrt(12) if whole_pixels else 0.0, 1e-6 * math.sqrt(clicks.area), 1e-12 * farthest)


def _sample(clicks: Clicks) -> IntArray:
    """Sample clicks by position alone, independent of the order of clicks and annotators.

    Each annotator's clicks are sampled everywhere: sampling only at the edges would bias the distances
    between an annotator's own clicks. From a large crowd, few annotators with many clicks are sampled: with
    one click of each, no pair of own clicks would remain.
    """
    x, y, side = clicks.x - clicks.centre[0], clicks.y - clicks.centre[1], math.sqrt(clicks.area)
    small = len(clicks.annotators) <= ANNOTATORS
    rows = np.arange(len(clicks)) if small else _sample_clicks(clicks, _shuffled(x, y, side))
    if len(rows) > WINDOW:
        away = np.maximum(np.abs(x[rows]), np.abs(y[rows]))
        rows = rows[away <= np.partition(away, WINDOW)[WINDOW]]
    rows = rows[np.lexsort((y[rows], x[rows], _shuffled(x[rows], y[rows], side)))]
    counts, worth = np.bincount(clicks.annotator[rows], minlength=len(clicks.annotators)), clicks.worth
    most = int(BUSY * max(_median(counts[counts > 0], worth[counts > 0]), 1))
    share = min(1.0, MOST / float((worth * np.minimum(counts, most)).sum()))
    targets = np.maximum(np.rint(share * np.minimum(counts, most)), 1)
    order = np.argsort(clicks.annotator[rows], kind="stable")
    rank = np.arange(len(rows)) - (np.cumsum(counts) - counts)[clicks.annotator[rows[order]]]
    return rows[order[rank < targets[clicks.annotator[rows[order]]]]]


def _median(values: IntArray, worth: FloatArray) -> float:
    """Return the weighted median of values."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(worth[order]) - worth[order] / 2
    return float(np.interp(worth.sum() / 2, below, values[order]))


def _sample_clicks(clicks: Clicks, shuffled: FloatArray) -> IntArray:
    """Return the clicks of some annotators of a large crowd, selected by a hash of their positions."""
    counts = clicks.counts()
    draw = np.bincount(clicks.annotator, shuffled, minlength=len(counts)) % 1
    order = np.lexsort((counts, draw, counts == 0))
    enough = int(np.searchsorted(np.cumsum(counts[order]), MOST)) + 1
    chosen = np.zeros(len(counts), dtype=bool)
    chosen[order[: max(ANNOTATORS, enough)]] = True
    return np.flatnonzero(chosen[clicks.annotator])


def _shuffled(x: FloatArray, y: FloatArray, side: float) -> FloatArray:
    """Return a hash of every position relative to the image's centre; neighbours have different hashes.

    It does not depend on the unit of length, nor on mirroring the image or turning it by right angles.
    """
    away = np.abs([x, y]) * (1000 / side)
    turned = np.sin(away.max(axis=0) * 12.9898 + away.min(axis=0) * 78.233) * 43758.5453
    return np.asarray(turned - np.floor(turned), dtype=np.float64)
