"""Clicks: the input of clustering and detection, and the shapes of their results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.errors import RefusedError

__all__ = [
    "AnnotatorRates",
    "Clicks",
    "ClicksError",
    "Clustering",
    "Detection",
    "FloatArray",
    "Fusion",
    "IntArray",
    "KnownSpots",
    "Trace",
    "Votes",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

Record = TypeVar("Record", "Clustering", "Detection", "AnnotatorRates")


class ClicksError(RefusedError):
    """Clicks that cannot be fused, in a sentence for people."""


@dataclass(frozen=True, eq=False)
class KnownSpots:
    """Spots whose truth is known, decided by the expert or imported; fusion holds them fixed.

    Attributes
    ----------
    x, y : (K,) float64
        Place, in the units of the clicks.
    present : (K,) bool
        True where the structure is there, False where it is not.
    """

    x: FloatArray
    y: FloatArray
    present: BoolArray

    @classmethod
    def none(cls) -> KnownSpots:
        """No spot is known."""
        return cls(np.empty(0), np.empty(0), np.empty(0, dtype=bool))

    def __post_init__(self) -> None:
        x, y = _coordinates(self.x, "known x"), _coordinates(self.y, "known y")
        present = np.asarray(self.present, dtype=bool)
        if not len(x) == len(y) == len(present):
            raise ClicksError(f"known spots: {len(x)} x, {len(y)} y and {len(present)} verdicts differ.")
        for name, value in (("x", x), ("y", y), ("present", present)):
            object.__setattr__(self, name, _frozen(value))

    def __len__(self) -> int:
        return len(self.x)


@dataclass(frozen=True, eq=False)
class Clicks:
    """The marks of R annotators on one image, N clicks in all.

    Attributes
    ----------
    x, y : (N,) float64
        Place in pixels, y down. A pixel's centre has whole coordinates plus one half.
    annotator : (N,) int64
        Index into `annotators`.
    annotators : tuple of R names
        All who looked at the image, those who marked nothing included.
    extent : (left, top, right, bottom)
        The rectangle that the image covers; the density of outliers is one over its area.
    time : (N,) float64, optional
        Seconds, from any origin.
    known : KnownSpots
        Spots whose truth is known.
    weights : (R,) float64, optional
        How much of an annotator each counts as, above 0 and at most 1; None where all count fully, which
        weights of one throughout become. An annotator's log likelihood is multiplied by his weight, as that
        of historical data is by Ibrahim and Chen (2000, "Power prior distributions for regression models").
    """

    x: FloatArray
    y: FloatArray
    annotator: IntArray
    annotators: tuple[str, ...]
    extent: tuple[float, float, float, float]
    time: FloatArray | None = None
    known: KnownSpots = field(default_factory=KnownSpots.none)
    weights: FloatArray | None = None

    def __post_init__(self) -> None:
        x, y = _coordinates(self.x, "x"), _coordinates(self.y, "y")
        annotator = np.asarray(self.annotator, dtype=np.int64)
        if not len(x) == len(y) == len(annotator):
            raise ClicksError(f"{len(x)} x, {len(y)} y and {len(annotator)} annotators differ in number.")
        if len(annotator) and (annotator.min() < 0 or annotator.max() >= len(self.annotators)):
            raise ClicksError(f"an annotator's index lies outside 0 to {len(self.annotators) - 1}.")
        if len(set(self.annotators)) != len(self.annotators):
            raise ClicksError("two annotators have the same name.")
        extent = tuple(float(edge) for edge in self.extent)
        if len(extent) != 4 or not np.isfinite(extent).all():
            raise ClicksError(f"the image's extent is {self.extent}; expected left, top, right, bottom.")
        if extent[2] <= extent[0] or extent[3] <= extent[1]:
            raise ClicksError(f"the image's extent is {self.extent}; expected an area above nothing.")
        time = None if self.time is None else np.asarray(self.time, dtype=np.float64)
        if time is not None and len(time) != len(x):
            raise ClicksError(f"{len(time)} times for {len(x)} clicks.")
        columns = ("x", x), ("y", y), ("annotator", annotator), ("time", time)
        for name, value in (*columns, ("weights", _weights(self.weights, self.annotators))):
            object.__setattr__(self, name, None if value is None else _frozen(value))
        object.__setattr__(self, "annotators", tuple(self.annotators))
        object.__setattr__(self, "extent", extent)

    def __len__(self) -> int:
        return len(self.x)

    @property
    def area(self) -> float:
        """Area of the image in square pixels."""
        left, top, right, bottom = self.extent
        return (right - left) * (bottom - top)

    @property
    def points(self) -> FloatArray:
        """(N, 2) places."""
        return np.column_stack([self.x, self.y])

    @property
    def outside(self) -> BoolArray:
        """(N,) True for clicks outside the image."""
        left, top, right, bottom = self.extent
        return (self.x < left) | (self.x > right) | (self.y < top) | (self.y > bottom)

    @property
    def worth(self) -> FloatArray:
        """(R,) how much of an annotator each counts as: `weights`, or ones."""
        return np.ones(len(self.annotators)) if self.weights is None else self.weights

    def counts(self) -> IntArray:
        """(R,) clicks of each annotator."""
        return np.bincount(self.annotator, minlength=len(self.annotators)).astype(np.int64)

    def without(self, names: set[str]) -> Clicks:
        """Leave out annotators, as if they had never looked."""
        keep = [i for i, name in enumerate(self.annotators) if name not in names]
        index = np.full(len(self.annotators), -1, dtype=np.int64)
        index[keep] = np.arange(len(keep))
        rows = index[self.annotator] >= 0
        return replace(
            self,
            x=self.x[rows],
            y=self.y[rows],
            annotator=index[self.annotator[rows]],
            annotators=tuple(self.annotators[i] for i in keep),
            time=None if self.time is None else self.time[rows],
            weights=None if self.weights is None else self.weights[keep],
        )

    def weighed(self, weights: Mapping[str, float]) -> Clicks:
        """Let annotators count as a part of one, by name; all others count fully."""
        return replace(self, weights=np.array([weights.get(name, 1.0) for name in self.annotators]))

    def merged(self) -> tuple[Clicks, IntArray]:
        """Merge an annotator's clicks at the very same place into one mark.

        Returns
        -------
        clicks : Clicks
            One mark an annotator and place, in the order of first appearance.
        mark : (N,) int64
            For every click of this object, its row in `clicks`.
        """
        order = np.lexsort((self.y, self.x, self.annotator))
        place = self.annotator[order], self.x[order], self.y[order]
        begins = np.ones(len(order), dtype=bool)
        begins[1:] = np.any([values[1:] != values[:-1] for values in place], axis=0)
        first = order[begins]  # of equal clicks the sort keeps the order
        rank = np.empty(len(first), dtype=np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        mark = np.empty(len(order), dtype=np.int64)
        mark[order] = rank[np.cumsum(begins) - 1]
        rows = np.sort(first)
        clicks = replace(
            self,
            x=self.x[rows],
            y=self.y[rows],
            annotator=self.annotator[rows],
            time=None if self.time is None else self.time[rows],
        )
        return clicks, mark


@dataclass(frozen=True, eq=False)
class Trace:
    """What an iteration did, for the plot of the objective.

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
        False when the iterations ran out.
    """

    objective: FloatArray
    components: IntArray
    removed: BoolArray
    best: int
    converged: bool

    @classmethod
    def none(cls) -> Trace:
        """Trace of a method that has no objective."""
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
        Posterior probability that a click is no outlier (eq. 8).
    nearest : (N,) int64
        Component with the largest responsibility for each click (eq. 9), whatever `inlier` is; -1 for none.
    reliability : (R,) float64
        Share of an annotator's clicks that are no outliers (eq. 12); NaN for who has no click.
    scatter : float
        Click scatter in pixels (standard deviation along an axis) used or learnt; NaN where there is none.
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
class Votes:
    """The input of detection: who marked which of M clusters.

    Attributes
    ----------
    marked : (R, M) bool
        True where the annotator has a click assigned to the cluster (eq. 20).
    weight : (M,) float64
        Probability of each component, for the third initialisation (eq. 34).
    verdict : (M,) int8
        1 or 0 where the truth is known and held fixed, -1 elsewhere.
    stray : (R,) float64, optional
        Chance that some outlier of the annotator falls on a given place; None where clustering knows no
        outliers.
    places : float
        Places of a cluster's size that the image has, where clicks may meet by chance; with `stray`.
    worth : (R,) float64, optional
        How much of an annotator each counts as; None where all count fully.
    """

    marked: BoolArray
    weight: FloatArray
    verdict: NDArray[np.int8]
    stray: FloatArray | None = None
    places: float = 0.0
    worth: FloatArray | None = None

    def __post_init__(self) -> None:
        if self.marked.ndim != 2:
            raise ClicksError(f"votes have {self.marked.ndim} axes; expected annotators by clusters.")
        if not self.marked.shape[1] == len(self.weight) == len(self.verdict):
            raise ClicksError("votes, weights and verdicts differ in their number of clusters.")

    @property
    def count(self) -> FloatArray:
        """(M,) annotators who marked each cluster, each by how much he counts."""
        return np.asarray(
            self.marked.sum(axis=0) if self.worth is None else self.worth @ self.marked, dtype=np.float64
        )

    @property
    def crowd(self) -> float:
        """All annotators, each by how much he counts."""
        return float(len(self.marked) if self.worth is None else self.worth.sum())

    @property
    def share(self) -> FloatArray:
        """(M,) share of the annotators who marked each cluster (eq. 32)."""
        share: FloatArray = self.count / (self.crowd or 1.0)
        return share


@dataclass(frozen=True, eq=False)
class Detection:
    """What the votes say of M clusters and R annotators.

    Attributes
    ----------
    posterior : (M,) float64
        Probability that the cluster is a structure (eq. 25).
    posterior_low, posterior_high : (M,) float64
        95 % interval of the posterior, from what is not known of the annotators.
    detected : (M,) bool
    prevalence : float
        Share of clusters that are structures (eq. 27).
    sensitivity, specificity : (R,) float64
        Of each annotator (eqs. 28, 29); NaN where the method has none.
    true_positive, false_negative, true_negative, false_positive : (R,) float64
        Expected votes of each annotator, without the prior; sums over images pool annotators.
    objective : (K,) float64
        Log posterior by iteration.
    converged : bool
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


@dataclass(frozen=True, eq=False)
class AnnotatorRates:
    """What is said of R annotators, with 95 % intervals; NaN where nothing can be said.

    Attributes
    ----------
    clicks : (R,) int64
        Marks made, duplicates merged.
    reliability, sensitivity, specificity : (R, 3) float64
        Estimate, low, high.
    """

    clicks: IntArray
    reliability: FloatArray
    sensitivity: FloatArray
    specificity: FloatArray


@dataclass(frozen=True, eq=False)
class Fusion:
    """The answer for one image: M detections from N clicks of R annotators.

    Attributes
    ----------
    clustering : Clustering
        Of the merged marks; spots that the expert added stand last, with the fixed scatter.
    marked : (R, M) bool
        True where the annotator marked the cluster (eq. 20).
    detection : Detection
    verdict : (M,) int8
        1 or 0 where the truth is known and held fixed, -1 elsewhere.
    rates : AnnotatorRates
    mark : (N,) int64
        For every click of the input, its row among the merged marks.
    """

    clustering: Clustering
    marked: BoolArray
    detection: Detection
    verdict: NDArray[np.int8]
    rates: AnnotatorRates
    mark: IntArray

    @property
    def votes(self) -> IntArray:
        """(M,) annotators who marked each cluster."""
        return np.asarray(self.marked.sum(axis=0), dtype=np.int64)

    def reordered(self, order: IntArray) -> Fusion:
        """Put the annotators into another order: first who now stands at `order[0]`, and so on.

        Parameters
        ----------
        order : (R,) int64
            Every annotator once.
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
            rates=_taken(self.rates, order, "clicks", "reliability", *of_votes),
        )


def _taken(record: Record, order: IntArray, *names: str) -> Record:
    """Take rows of a record's arrays."""
    return replace(record, **{name: getattr(record, name)[order] for name in names})


def _coordinates(values: object, name: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ClicksError(f"{name} has {array.ndim} axes; expected one.")
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        raise ClicksError(f"{name} of click {bad[0] + 1} is {array[bad[0]]}; expected a finite number.")
    return array


def _weights(values: object, annotators: tuple[str, ...]) -> FloatArray | None:
    """Check how much of an annotator each counts as; None where all count fully."""
    if values is None:
        return None
    weights = np.asarray(values, dtype=np.float64)
    if weights.shape != (len(annotators),):
        raise ClicksError(f"{weights.size} weights for {len(annotators)} annotators.")
    bad = np.flatnonzero(~((weights > 0) & (weights <= 1)))
    if len(bad):
        raise ClicksError(
            f"the weight of {annotators[bad[0]]} is {weights[bad[0]]}; expected more than 0, at most 1."
        )
    return None if (weights == 1).all() else weights


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    if array.flags.writeable:
        array = array.copy()
        array.setflags(write=False)
    return array
