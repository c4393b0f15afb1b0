"""Results of clustering and detection, and rates of annotators with 95 % intervals."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.clicks.data import BoolArray, ClicksError, FloatArray, IntArray, within
from raterscope.algorithms.progress import Check, no_check, parts_of, run_parts

LEVELS = 2.5
"""Standard deviation of the level between runs, over that of its prior (see `_structure_share`): the levels
of seven crowds, by empirical Bayes, differ by 2 to 2.5. The prior is narrower, so that a few decisions change
the posteriors of a good crowd little. Without decisions, the rates of annotators have this additional
uncertainty.
"""

LEVEL_ERROR = 2.2
"""Value of `LEVELS` for intervals of counts and precisions. In 21 kinds of crowds, 96 % of the intervals of
counts hold the true number with 2.0, and all with 2.5; with 2.0 less than 85 % do where artefacts attract
many annotators.
"""

FEW = 50.0
"""Number of decisions of a run that halve the additional variance of its level."""

SURE = 1e-12
"""Minimum probability for logits."""

HALF_WIDTH = 1.959964
"""Half width of a 95 % interval, in standard deviations."""

ERRORS = HALF_WIDTH * np.linspace(-LEVELS, LEVELS, 9)
"""Nodes of the common error of a run's posteriors in the interval of a sensitivity, in standard deviations of
the posteriors' logits: they cover 95 % of the levels of runs.
"""

_AT_ONCE = 4096
"""Number of Beta distributions between two calls of a check, about 20 ms."""


def interval(
    right: FloatArray,
    wrong: FloatArray,
    prior: float | FloatArray,
    other: float | FloatArray,
    check: Check = no_check,
) -> FloatArray:
    """Return mean, 2.5 and 97.5 percent of a Beta posterior, (R, 3); NaN without counts.

    `right`, `wrong`: (R,), expected counts. `prior`, `other`: counts of the prior, common or (R,).
    """
    right, wrong = np.maximum(right, 0), np.maximum(wrong, 0)
    is_known = right + wrong > 1e-9
    first, second = right + prior, wrong + other
    three = np.column_stack([first / (first + second), *_beta_bounds(first, second, check)])
    return np.where(is_known[:, None], three, np.nan)


def sensitivity_of(
    hit: FloatArray,
    miss: FloatArray,
    hits: FloatArray,
    structures: FloatArray,
    prior: FloatArray,
    other: FloatArray,
    check: Check = no_check,
) -> FloatArray:
    """Estimate the share of the crowd's structures that have a vote of each annotator, with an interval.

    The estimate is the mean of a Beta posterior of the expected votes. The level of a run is common to all
    its clusters, and votes alone do not identify it: if all posteriors are too high, artefacts count as
    structures, most of them missed by the annotator, and the sensitivity is too low. A mean over levels would
    not be valid for any run. The interval therefore covers each of `ERRORS`, as for a partially identified
    parameter ([imbens2004]_): its ends are the lowest and the highest of the Beta posteriors' intervals.

    `hit`, `miss`: (R,), expected votes on structures, and structures not marked.
    `hits`, `structures`: (R, 9), expected votes on structures, and structures, at each error, see
        `counts_at_errors`.
    `prior`, `other`: (R,), counts of the prior.
    The columns of the result, (R, 3), are estimate, low and high; NaN without structures.

    References
    ----------
    .. [imbens2004] G. W. Imbens and C. F. Manski, "Confidence intervals for partially identified parameters",
       Econometrica 72 (2004) 1845-1857, doi:10.1111/j.1468-0262.2004.00555.x.
    """
    size = structures + (prior + other)[:, None]
    share = np.clip((hits + prior[:, None]) / size, SURE, 1 - SURE)
    spread, row = HALF_WIDTH * np.sqrt(share * (1 - share) / (size + 1)), np.arange(len(size))
    ends = []
    for at, tail in (((share - spread).argmin(axis=1), 0.025), ((share + spread).argmax(axis=1), 0.975)):
        chance, number = share[row, at], size[row, at]
        ends += list(_beta_bounds(chance * number, (1 - chance) * number, check, (tail,)))
    total = np.maximum(hit, 0) + np.maximum(miss, 0) + prior + other
    three = np.column_stack([(np.maximum(hit, 0) + prior) / total, *ends])
    return np.where((np.maximum(hit, 0) + np.maximum(miss, 0) > 1e-9)[:, None], three, np.nan)


def counts_at_errors(marked: BoolArray, detection: Detection) -> tuple[FloatArray, FloatArray]:
    """Return expected votes on structures, and structures, (R, 9): at each of `ERRORS` of all posteriors."""
    at_errors = shifted(detection.posterior, detection.posterior_low, detection.posterior_high, ERRORS)
    counts = np.asarray(marked @ at_errors)
    return counts, np.broadcast_to(at_errors.sum(axis=0), counts.shape)


def shifted(posterior: FloatArray, low: FloatArray, high: FloatArray, errors: FloatArray) -> FloatArray:
    """Move the logits of M posteriors by errors in standard deviations, as from their intervals: (M, E)."""
    middle = _logit(posterior)
    ends = [np.where(np.isfinite(end), end, posterior) for end in (low, high)]
    down, up = (np.abs(_logit(end) - middle)[:, None] / HALF_WIDTH for end in ends)
    return np.asarray(1 / (1 + np.exp(-(middle[:, None] + np.where(errors < 0, down, up) * errors))))


def level_error(decisions: int) -> float:
    """Return the standard deviation of the error common to a run's posteriors, relative to their intervals.

    Intervals of posteriors include the variance of the level's prior. Between runs, levels differ by
    `LEVEL_ERROR` times as much. Votes alone do not identify the level of a run; decisions of the expert do.

    `decisions`: number of decisions that the run used.

    Examples
    --------
    >>> [round(level_error(number), 2) for number in (0, 12, 40, 400)]
    [2.2, 2.02, 1.77, 1.19]
    """
    return float(np.sqrt(1 + (LEVEL_ERROR**2 - 1) / (1 + decisions / FEW)))


def _logit(share: FloatArray) -> FloatArray:
    inside = within(share, SURE, 1 - SURE)
    return np.asarray(np.log(inside) - np.log1p(-inside))


def _beta_bounds(
    first: FloatArray, second: FloatArray, check: Check, tails: tuple[float, ...] = (0.025, 0.975)
) -> FloatArray:
    """Return quantiles of Beta distributions, (2, R) or a row for each tail; equal ones are computed once."""
    from scipy.special import betaincinv

    shapes, row = np.unique(first + 1j * second, return_inverse=True)
    bounds = np.empty((len(tails), len(shapes)))

    def fill(begin: int, end: int) -> None:
        some = shapes[begin:end]
        bounds[:, begin:end] = betaincinv(some.real, some.imag, np.array(tails)[:, None])

    run_parts(fill, parts_of(len(shapes), _AT_ONCE), check)
    return bounds[:, row]


def precision_of(hit: FloatArray, marks: IntArray, error: FloatArray) -> FloatArray:
    """Estimate each annotator's precision: the share of marks that are on structures, with its 95 % interval.

    The estimate is the sum of the posteriors of the clusters that the annotator marked, over the number of
    the marks; a mark outside of all clusters counts as false. The marks are known, so that only the
    posteriors make the precision uncertain: by their common error, and because each cluster either is a
    structure or not. The two half widths are added in quadrature.

    `hit`: (R,), sum of the posteriors.
    `marks`: (R,), marks made; several clicks on one cluster are one mark.
    `error`: (R, 3), see `error_of_marks`.
    The columns of the result, (R, 3), are estimate, low and high; NaN without marks.
    """
    low, high, variance = error.T
    alone, right = HALF_WIDTH**2 * variance, np.clip(hit, 0, marks)
    down, up = (np.sqrt((end - hit) ** 2 + alone) for end in (low, high))
    rate = np.column_stack([right, np.maximum(right - down, 0), np.minimum(right + up, marks)])
    return np.where((marks > 0)[:, None], rate / np.maximum(marks, 1)[:, None], np.nan)


def error_of_marks(marked: BoolArray, detection: Detection) -> FloatArray:
    """Return the uncertainty of each annotator's expected number of marks on structures, (R, 3).

    The columns are that number at both ends of the 95 % interval of a common error of all posteriors, which
    is `level_error` times as large as their intervals, and the variance of the number given independent
    clusters.
    """
    posterior, bounds = detection.posterior, (detection.posterior_low, detection.posterior_high)
    ends = shifted(posterior, *bounds, detection.level_error * HALF_WIDTH * np.array([-1.0, 1.0]))
    return np.asarray(marked @ np.column_stack([ends, posterior * (1 - posterior)]))


Record = TypeVar("Record", "Clustering", "Detection", "AnnotatorRates", "SpotClasses")


@dataclass(frozen=True, eq=False)
class Trace:
    """Record of an iteration, for the plot of the objective.

    Attributes
    ----------
    objective : (T,) float64
        Value after each iteration, larger is better.
    components : (T,) int64
        Components alive after each iteration.
    removed : (T,) bool
        True where the weakest component was removed by force after that iteration.
    best : int
        The iteration whose parameters were kept; -1 without iterations.
    converged : bool
        False if the iterations ended before convergence.
    """

    objective: FloatArray
    components: IntArray
    removed: BoolArray
    best: int
    converged: bool

    @classmethod
    def none(cls) -> Trace:
        """Return the trace of a method without an objective."""
        return cls(np.empty(0), np.empty(0, dtype=np.int64), np.empty(0, dtype=bool), -1, True)


@dataclass(frozen=True, eq=False)
class Clustering:
    """Clusters of clicks: M components, for N clicks of R annotators.

    Attributes
    ----------
    mean : (M, 2) float64
        Centres, pixels.
    covariance : (M, 2, 2) float64
        Square pixels.
    weight : (M,) float64
        Probability of each component, sums to one (eq. 15).
    inlier : (N,) float64
        Posterior probability that a click is an inlier (eq. 8).
    nearest : (N,) int64
        Component with the largest responsibility for each click (eq. 9), whatever `inlier` is; -1 for none.
    reliability : (R,) float64
        Share of an annotator's clicks that are inliers (eq. 12); NaN for annotators without clicks.
    scatter : float
        Click scatter in pixels (standard deviation along an axis), set or estimated; NaN if there is none.
    trace : Trace
    """

    mean: FloatArray
    covariance: FloatArray
    weight: FloatArray
    inlier: FloatArray
    nearest: IntArray
    reliability: FloatArray
    scatter: float
    trace: Trace

    def __len__(self) -> int:
        return len(self.mean)


@dataclass(frozen=True, eq=False)
class Marks:
    """Marks of R annotators on M clusters, sparse, sorted by cluster."""

    first: NDArray[np.int32]  # (M + 1,): first mark of each cluster
    annotator: NDArray[np.int32]  # (marks,): who marked each cluster, rising within a cluster
    annotators: int  # R

    @classmethod
    def of(cls, marked: BoolArray) -> Marks:
        """Return the marks of `Votes.marked`."""
        cluster, annotator = np.nonzero(marked.T)
        first = np.zeros(marked.shape[1] + 1, dtype=np.int32)
        np.cumsum(np.bincount(cluster, minlength=marked.shape[1]), out=first[1:])
        return cls(first, annotator.astype(np.int32), len(marked))

    def sums(self, values: FloatArray) -> FloatArray:
        """Add up the values, (M,), of the clusters that each annotator marked: (R,)."""
        each = np.repeat(values, np.diff(self.first))
        return np.bincount(self.annotator, each, minlength=self.annotators).astype(np.float64, copy=False)


@dataclass(frozen=True, eq=False)
class Votes:
    """Votes of R annotators on M clusters: the input of detection.

    Attributes
    ----------
    marked : (R, M) bool
        True where the annotator has a click assigned to the cluster (eq. 20).
    weight : (M,) float64
        Probability of each component, for the third initialisation (eq. 34).
    verdict : (M,) int8
        1 or 0 where the truth is known and held fixed, -1 elsewhere.
    stray : (R,) float64, optional
        Chance that some outlier of the annotator falls on a given position; None for clustering without
        outliers.
    places : float
        Number of positions of a cluster's size on the image, where clicks may meet by chance; with `stray`.
    worth : (R,) float64, optional
        Weight of each annotator; None where all count fully.
    viewed : (M,) bool, optional
        True where the expert viewed the cluster and left it undecided; None without a record.
    control : bool, optional
        True for an image that is known to hold structures, False for one that is known to hold none.
    score : (M,) float64, optional
        Score of a program's detection on each cluster, NaN without a detection; None for an image that the
        program did not search.
    """

    marked: BoolArray
    weight: FloatArray
    verdict: NDArray[np.int8]
    stray: FloatArray | None = None
    places: float = 0.0
    worth: FloatArray | None = None
    viewed: BoolArray | None = None
    control: bool | None = None
    score: FloatArray | None = None

    def __post_init__(self) -> None:
        if self.marked.ndim != 2:
            raise ClicksError(f"votes have {self.marked.ndim} axes; expected annotators by clusters.")
        if not self.marked.shape[1] == len(self.weight) == len(self.verdict):
            raise ClicksError("votes, weights and verdicts differ in their number of clusters.")

    @property
    def count(self) -> FloatArray:
        """Sum of the weights of the annotators who marked each cluster, (M,)."""
        return np.asarray(
            self.marked.sum(axis=0) if self.worth is None else self.worth @ self.marked, dtype=np.float64
        )

    @property
    def crowd(self) -> float:
        """Sum of the annotators' weights."""
        return float(len(self.marked) if self.worth is None else self.worth.sum())

    @property
    def share(self) -> FloatArray:
        """Share of the annotators who marked each cluster (eq. 32), (M,)."""
        share: FloatArray = self.count / (self.crowd or 1.0)
        return share


@dataclass(frozen=True, eq=False)
class Detection:
    """Detection from votes: posteriors of M clusters and rates of R annotators.

    Attributes
    ----------
    posterior : (M,) float64
        Probability that the cluster is a structure (eq. 25).
    posterior_low, posterior_high : (M,) float64
        95 % interval of the posterior, from the uncertainty of the annotators' rates.
    detected : (M,) bool
    prevalence : float
        Share of clusters that are structures (eq. 27).
    sensitivity, specificity : (R,) float64
        Rates of each annotator (eqs. 28, 29); NaN if the method has none.
    true_positive, false_negative, true_negative, false_positive : (R,) float64
        Expected votes of each annotator, without the prior; sums over images pool annotators.
    objective : (K,) float64
        Log posterior by iteration.
    converged : bool
    undecided : (M,) float64
        Posterior without the decisions; empty if there are none.
    level_error : float
        Standard deviation of the common error of all posteriors of the run, relative to their intervals; see
        `level_error`.
    """

    posterior: FloatArray
    posterior_low: FloatArray
    posterior_high: FloatArray
    detected: BoolArray
    prevalence: float
    sensitivity: FloatArray
    specificity: FloatArray
    true_positive: FloatArray
    false_negative: FloatArray
    true_negative: FloatArray
    false_positive: FloatArray
    objective: FloatArray
    converged: bool
    undecided: FloatArray = field(default_factory=lambda: np.empty(0))
    level_error: float = LEVEL_ERROR


@dataclass(frozen=True, eq=False)
class SpotClasses:
    """Classes of M clusters: C classes, from the votes of R annotators."""

    names: tuple[str, ...]  # (C,)
    # (M, C): probability of each class, given that the cluster is a structure; rows add up to 1
    posterior: FloatArray
    votes: IntArray  # (M, C): annotators who gave each class
    known: IntArray  # (M,): class that was held fixed, -1 elsewhere
    accuracy: FloatArray  # (R,): expected share of an annotator's classes that are right; NaN without votes

    def label(self) -> IntArray:
        """Return the most probable class of each cluster, (M,)."""
        return np.asarray(self.posterior.argmax(axis=1), dtype=np.int64)


def _no_rates() -> FloatArray:
    return np.empty((0, 3))


@dataclass(frozen=True, eq=False)
class AnnotatorRates:
    """Rates of R annotators, with 95 % intervals; NaN where they cannot be estimated.

    Attributes
    ----------
    clicks : (R,) int64
        Clicks made, duplicates merged.
    reliability, sensitivity, precision : (R, 3) float64
        Estimate, low, high. The sensitivity is the share of the structures found by the crowd on which the
        annotator has a vote. The precision is the sum of the posteriors of an annotator's marks over their
        number.
    specificity : (R, 3) float64
        Only in stored results of earlier versions: it carries no information where nearly all clusters are
        structures.
    marks : (R,) int64
        Clicks, several on one cluster counted once; empty in results of earlier versions.
    """

    clicks: IntArray
    reliability: FloatArray
    sensitivity: FloatArray
    precision: FloatArray = field(default_factory=_no_rates)
    specificity: FloatArray = field(default_factory=_no_rates)
    marks: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Fusion:
    """Result for one image: M clusters from N clicks of R annotators.

    Attributes
    ----------
    clustering : Clustering
        Clustering of the merged marks; spots that the expert added come last, with the fixed scatter.
    marked : (R, M) bool
        True where the annotator marked the cluster (eq. 20).
    detection : Detection
    verdict : (M,) int8
        1 or 0 where the truth is known and held fixed, -1 elsewhere.
    rates : AnnotatorRates
    mark : (N,) int64
        For every click of the input, its row among the merged marks.
    halves : (G, M) bool
        Detections for each of G ways to divide the images into halves that are fused separately, see
        `add_half_detections`. G is 0 if the image was not fused with others.
    score : (M,) float64, optional
        Score of a program's detection on each cluster, NaN without one; None where no program searched the
        image.
    classes : SpotClasses, optional
        Classes of the clusters; None where the clicks have none.
    """

    clustering: Clustering
    marked: BoolArray
    detection: Detection
    verdict: NDArray[np.int8]
    rates: AnnotatorRates
    mark: IntArray
    halves: BoolArray = field(default_factory=lambda: np.empty((0, 0), dtype=np.bool_))
    score: FloatArray | None = None
    classes: SpotClasses | None = None

    def __post_init__(self) -> None:
        """Estimate a missing precision, as in results of earlier versions."""
        rates, shape = self.rates, (*self.rates.clicks.shape, len(self.detection.posterior))
        if not rates.precision.size and self.marked.shape == shape and self._bounded():
            error = error_of_marks(self.marked, self.detection)
            precision = precision_of(self.detection.true_positive, rates.clicks, error)
            object.__setattr__(self, "rates", replace(rates, precision=precision, specificity=_no_rates()))

    def _bounded(self) -> bool:
        """Return whether the votes are valid; results from untrusted files may not be."""
        detection = self.detection
        bounds = (detection.posterior_low, detection.posterior_high)
        fitting = all(bound.shape == detection.posterior.shape for bound in bounds)
        return fitting and detection.true_positive.shape == self.rates.clicks.shape

    @property
    def is_rated(self) -> bool:
        """Whether the annotators are rated, with intervals."""
        return len(self.rates.reliability) == len(self.rates.clicks)

    @cached_property
    def votes(self) -> IntArray:
        """Number of annotators who marked each cluster, (M,)."""
        return np.asarray(np.count_nonzero(self.marked, axis=0), dtype=np.int64)

    def reordered(self, order: IntArray) -> Fusion:
        """Return the fusion with the annotators in another order, first the annotator at `order[0]`.

        Parameters
        ----------
        order : (R,) int64
            Index of every annotator, once each.

        Raises
        ------
        ValueError
            For any other order.
        """
        order = np.asarray(order, dtype=np.int64)
        if not np.array_equal(np.sort(order), np.arange(len(self.marked))):
            raise ValueError(f"an order of {len(self.marked)} annotators names each of them once.")
        of_votes = ("sensitivity", "specificity")
        counts = ("true_positive", "false_negative", "true_negative", "false_positive")
        return replace(
            self,
            clustering=_taken(self.clustering, order, "reliability"),
            marked=self.marked[order],
            detection=_taken(self.detection, order, *of_votes, *counts),
            rates=_taken(
                self.rates,
                order,
                *("clicks", "reliability", "sensitivity", "precision"),
                *(("marks",) if len(self.rates.marks) else ()),
            ),
            classes=None if self.classes is None else _taken(self.classes, order, "accuracy"),
        )


def _taken(record: Record, order: IntArray, *names: str) -> Record:
    """Select rows of all arrays of a record."""
    return replace(record, **{name: getattr(record, name)[order] for name in names})
