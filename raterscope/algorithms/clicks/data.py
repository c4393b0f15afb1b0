"""Clicks: the input of clustering and detection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.names import checked_weights
from raterscope.algorithms.progress import RefusedError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


PROGRAM = "program (scores)"
"""Name that excludes the scores of a program, as if it were an annotator."""


class ClicksError(RefusedError):
    """Clicks that cannot be fused; the message says why."""


@dataclass(frozen=True, eq=False)
class KnownSpots:
    """Spots with known truth, decided by the expert or imported; fusion holds them fixed.

    Attributes
    ----------
    x, y : (K,) float64
        Position, in the units of the clicks.
    present : (K,) bool
        True where the structure is there, False where it is not.
    classes : tuple of K names
        Class of each structure, empty where it is not known; () without classes.
    """

    x: FloatArray
    y: FloatArray
    present: BoolArray
    classes: tuple[str, ...] = ()

    @classmethod
    @cache
    def none(cls) -> KnownSpots:
        """Return a record without known spots."""
        return cls(np.empty(0), np.empty(0), np.empty(0, dtype=bool))

    def __post_init__(self) -> None:
        x, y = _coordinates(self.x, "known x"), _coordinates(self.y, "known y")
        present = np.asarray(self.present, dtype=bool)
        if not len(x) == len(y) == len(present):
            raise ClicksError(f"known spots: {len(x)} x, {len(y)} y and {len(present)} verdicts differ.")
        if self.classes and len(self.classes) != len(x):
            raise ClicksError(f"{len(self.classes)} classes for {len(x)} known spots.")
        for name, value in (("x", x), ("y", y), ("present", present)):
            object.__setattr__(self, name, _frozen(value))

    def __len__(self) -> int:
        return len(self.x)


@dataclass(frozen=True, eq=False)
class Clicks:
    """N clicks of R annotators on one image.

    Attributes
    ----------
    x, y : (N,) float64
        Position in pixels, y down. The centre of a pixel has whole coordinates plus one half.
    annotator : (N,) int64
        Index into `annotators`.
    annotators : tuple of R names
        All annotators who viewed the image, including those who marked nothing.
    extent : (left, top, right, bottom)
        The rectangle that the image covers; the density of outliers is one over its area.
    time : (N,) float64, optional
        Seconds, from any origin.
    known : KnownSpots
        Spots whose truth is known.
    viewed : (V, 2) float64, optional
        Positions of spots that the expert viewed and left undecided; None without a record of viewed spots.
    control : bool, optional
        True for an image known to hold structures, False for one known to hold none: all its clusters are
        then artefacts.
    scores : (K, 3) float64, optional
        Detections of a program on the image: x, y and score, higher for more probable structures; empty if it
        found nothing, None if it did not search the image.
    weights : (R,) float64, optional
        Weight of each annotator, above 0 and at most 1; None where all count fully. The log likelihood of an
        annotator is multiplied by the weight, as that of historical data in [ibrahim2000]_.
    classes : tuple of names
        Classes that clicks may have, such as ring and trophozoite; () without classes.
    label : (N,) int64, optional
        Index into `classes` of each click, -1 for a click without class; None without classes.
    programs : tuple of names
        Annotators whose clicks became scores; see `with_programs`.

    References
    ----------
    .. [ibrahim2000] J. G. Ibrahim and M.-H. Chen, "Power prior distributions for regression models",
       Statistical Science 15 (2000) 46-60, doi:10.1214/ss/1009212673.
    """

    x: FloatArray
    y: FloatArray
    annotator: IntArray
    annotators: tuple[str, ...]
    extent: tuple[float, float, float, float]
    time: FloatArray | None = None
    known: KnownSpots = field(default_factory=KnownSpots.none)
    viewed: FloatArray | None = field(default=None, kw_only=True)
    control: bool | None = field(default=None, kw_only=True)
    scores: FloatArray | None = field(default=None, kw_only=True)
    weights: FloatArray | None = None
    classes: tuple[str, ...] = ()
    label: IntArray | None = None
    programs: tuple[str, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        x, y = _coordinates(self.x, "x"), _coordinates(self.y, "y")
        annotator = np.asarray(self.annotator, dtype=np.int64)
        if not len(x) == len(y) == len(annotator):
            raise ClicksError(f"{len(x)} x, {len(y)} y and {len(annotator)} annotators differ in number.")
        if len(annotator) and (annotator.min() < 0 or annotator.max() >= len(self.annotators)):
            raise ClicksError(f"an annotator's index is outside 0 to {len(self.annotators) - 1}.")
        if len(set(self.annotators)) != len(self.annotators):
            raise ClicksError("two annotators have the same name.")
        extent = tuple(float(edge) for edge in self.extent)
        if len(extent) != 4 or not all(map(isfinite, extent)):
            raise ClicksError(f"the image's extent is {self.extent}; expected left, top, right, bottom.")
        if extent[2] <= extent[0] or extent[3] <= extent[1]:
            raise ClicksError(f"the image's extent is {self.extent}; expected an area above 0.")
        time = None if self.time is None else np.asarray(self.time, dtype=np.float64)
        if time is not None and len(time) != len(x):
            raise ClicksError(f"{len(time)} times for {len(x)} clicks.")
        label = None if self.label is None else np.asarray(self.label, dtype=np.int64)
        if label is not None and (
            label.shape != x.shape or not ((label >= -1) & (label < len(self.classes))).all()
        ):
            raise ClicksError(f"classes of the clicks: expected {len(x)} indices below {len(self.classes)}.")
        viewed = None if self.viewed is None else np.asarray(self.viewed, dtype=np.float64)
        if viewed is not None and (viewed.ndim != 2 or viewed.shape[1] != 2 or not np.isfinite(viewed).all()):
            raise ClicksError("viewed spots: expected two finite coordinates each.")
        scores = None if self.scores is None else np.asarray(self.scores, dtype=np.float64)
        if scores is not None and (scores.ndim != 2 or scores.shape[1] != 3 or not np.isfinite(scores).all()):
            raise ClicksError("scores of a program: expected x, y and a score, all finite.")
        weights = checked_weights(self.weights, self.annotators, ClicksError)
        for name, value in (
            ("x", x), ("y", y), ("annotator", annotator), ("time", time), ("viewed", viewed),
            ("label", label), ("scores", scores), ("weights", weights),
        ):  # fmt: skip
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

    @cached_property
    def centre(self) -> tuple[float, float]:
        """Medians of the positions; at least one click is required."""
        return median(self.x), median(self.y)

    @property
    def points(self) -> FloatArray:
        """Positions, (N, 2)."""
        return np.column_stack([self.x, self.y])

    @property
    def outside(self) -> BoolArray:
        """True for clicks outside the image, (N,)."""
        left, top, right, bottom = self.extent
        return (self.x < left) | (self.x > right) | (self.y < top) | (self.y > bottom)

    @property
    def worth(self) -> FloatArray:
        """Weights of the annotators, (R,): `weights`, or ones."""
        return np.ones(len(self.annotators)) if self.weights is None else self.weights

    def counts(self) -> IntArray:
        """Count the clicks of each annotator, (R,)."""
        return np.bincount(self.annotator, minlength=len(self.annotators)).astype(np.int64)

    def without(self, names: set[str]) -> Clicks:
        """Exclude annotators, as if they had never viewed the image; `PROGRAM` excludes the scores."""
        if names.isdisjoint((*self.annotators, PROGRAM)):
            return self
        keep = [i for i, name in enumerate(self.annotators) if name not in names]
        index = np.full(len(self.annotators), -1, dtype=np.int64)
        index[keep] = np.arange(len(keep))
        rows = index[self.annotator] >= 0
        return replace(
            self,
            **self._columns(rows) | {"annotator": index[self.annotator[rows]]},
            annotators=tuple(self.annotators[i] for i in keep),
            weights=None if self.weights is None else self.weights[keep],
            scores=None if PROGRAM in names else self.scores,
            programs=() if PROGRAM in names else self.programs,
        )

    def with_programs(self, names: set[str], radius: float) -> Clicks:
        """Turn the clicks of programs into detections, scored by the number of programs that agree.

        All programs together contribute one set of detections, so that similar programs do not count as
        several voters. Imported scores take precedence: then the programs are excluded.

        Parameters
        ----------
        radius : float
            Distance within which two programs mark the same position.
        """
        programs = [index for index, name in enumerate(self.annotators) if name in names]
        if not programs:
            return self
        crowd = self.without({self.annotators[index] for index in programs})
        if self.scores is not None:
            return crowd
        from scipy.spatial import cKDTree

        detections = np.empty((0, 3))
        for index in programs:
            own = self.points[self.annotator == index]
            new = np.ones(len(own), dtype=bool)
            if len(own) and len(detections):
                distance, nearest = cKDTree(detections[:, :2]).query(own)
                new = distance > radius
                detections[np.unique(nearest[~new]), 2] += 1.0
            detections = np.concatenate([detections, np.column_stack([own, np.ones(len(own))])[new]])
        kept = tuple(self.annotators[index] for index in programs)
        return replace(crowd, scores=detections, programs=kept)

    def joined(self, names: Mapping[str, str]) -> Clicks:
        """Assign the clicks of some annotators to others, by name.

        Parameters
        ----------
        names : mapping of name to name
            Both annotators viewed the image.
        """
        if not names:
            return self
        rows = {name: row for row, name in enumerate(self.annotators)}
        stand = np.array([rows[names.get(name, name)] for name in self.annotators])
        joined = replace(self, annotator=stand[self.annotator])
        return joined.without(set(names))

    def with_weights(self, weights: Mapping[str, float]) -> Clicks:
        """Down-weight annotators by name; all others count fully."""
        if not weights and self.weights is None:
            return self
        return replace(self, weights=np.array([weights.get(name, 1.0) for name in self.annotators]))

    def merged(self) -> tuple[Clicks, IntArray]:
        """Merge an annotator's clicks at exactly the same position into one mark.

        Returns
        -------
        clicks : Clicks
            One mark for each annotator and position, in the order of first appearance.
        mark : (N,) int64
            For every click of this object, its row in `clicks`.
        """
        order = np.lexsort((self.y, self.x, self.annotator))
        key = self.annotator[order], self.x[order], self.y[order]
        begins = np.zeros(len(order), dtype=bool)
        begins[:1] = True
        for values in key:
            begins[1:] |= values[1:] != values[:-1]
        if begins.all():
            return self, np.arange(len(order))
        first = order[begins]  # of equal clicks the sort keeps the order
        rank = np.empty(len(first), dtype=np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        mark = np.empty(len(order), dtype=np.int64)
        mark[order] = rank[np.cumsum(begins) - 1]
        return self.select(np.sort(first)), mark

    def select(self, rows: IntArray) -> Clicks:
        """Select some of the clicks, in this order; the annotators stay."""
        return replace(self, **self._columns(rows))

    def _columns(self, rows: IntArray | BoolArray) -> dict[str, Any]:
        """Return the columns (arrays by click) for some of the clicks."""
        columns = {name: getattr(self, name) for name in ("x", "y", "annotator", "time", "label")}
        return {name: column[rows] for name, column in columns.items() if column is not None}


def median(values: FloatArray) -> float:
    """Return the median of one or more finite values; `numpy.median` takes five times as long for few."""
    middle = len(values) // 2
    if len(values) % 2:
        return float(np.partition(values, middle)[middle])
    low, high = np.partition(values, (middle - 1, middle))[middle - 1 : middle + 1].tolist()
    return float((low + high) / 2)


def within(values: FloatArray, low: float, high: float) -> FloatArray:
    """Limit values to a range; `numpy.clip` takes three times as long for few values."""
    return np.asarray(np.minimum(np.maximum(values, low), high), dtype=np.float64)


def quantiles(values: FloatArray, shares: Sequence[float]) -> list[FloatArray]:
    """Return quantiles of the columns of a table of finite values; `numpy.quantile` takes twice as long."""
    places = [(len(values) - 1) * share for share in shares]
    rows = [(int(place), min(int(place) + 1, len(values) - 1)) for place in places]
    ordered = np.partition(values, sorted({row for pair in rows for row in pair}), axis=0)
    found = []
    for place, (before, after) in zip(places, rows, strict=True):
        low, high, beyond = ordered[before], ordered[after], place - before
        found.append(low + (high - low) * beyond if beyond < 0.5 else high - (high - low) * (1 - beyond))
    return found


def _coordinates(values: object, name: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ClicksError(f"{name} has {array.ndim} axes; expected one.")
    finite = np.isfinite(array)
    if not finite.all():
        bad = np.flatnonzero(~finite)
        raise ClicksError(f"{name} of click {bad[0] + 1} is {array[bad[0]]}; expected a finite number.")
    return array


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    if array.flags.writeable:
        array = array.copy()
        array.setflags(write=False)
    return array


def ellipses(covariance: NDArray[np.floating[Any]], coverage: float = 0.95) -> FloatArray:
    """Return the ellipse around each centre that contains a share of a component's clicks.

    Parameters
    ----------
    covariance : (M, 2, 2) float64
    coverage : float
        Share of a Gaussian's probability within, above 0 and below 1.

    Returns
    -------
    (M, 3) float64
        Longer and shorter half axis in pixels, and the angle of the longer one in radians from the x axis
        towards the y axis, above -pi/2 and up to pi/2.

    Raises
    ------
    ValueError
        For a coverage outside 0 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> ellipses(np.array([[[4.0, 0.0], [0.0, 1.0]]])).round(2)
    array([[4.9 , 2.45, 0.  ]])
    """
    if not 0 < coverage < 1:
        raise ValueError(f"the coverage is {coverage:g}; expected a share between 0 and 1.")
    matrices = np.asarray(covariance, dtype=np.float64).reshape(-1, 2, 2)
    xx, xy, yy = matrices[:, 0, 0], matrices[:, 0, 1], matrices[:, 1, 1]
    middle, spread = (xx + yy) / 2, np.hypot((xx - yy) / 2, xy)
    factor = np.sqrt(-2 * np.log1p(-coverage))  # the distance squared is exponential in the plane
    long, short = np.sqrt(middle + spread), np.sqrt(np.maximum(middle - spread, 0))
    angle = 0.5 * np.arctan2(2 * xy, xx - yy)
    return np.column_stack([factor * long, factor * short, angle])
