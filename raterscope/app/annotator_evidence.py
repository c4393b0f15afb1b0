"""Evidence on annotators from one kind of annotation: values with intervals, courses, effect of an exclusion.

Each kind fills in these records from its runs shown, with the functions of its exports and reports. The table
of the annotators of all kinds is `raterscope.app.annotators`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from raterscope.text import estimate, figure, p_text

if TYPE_CHECKING:
    from raterscope.algorithms.annotators.agreement_statistics import Coefficient
    from raterscope.algorithms.progress import Watch
    from raterscope.app.page.contents import Section
    from raterscope.app.study import Study

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Measure:
    """One value of an annotator."""

    name: str  # name of the column within the kind: "sensitivity"
    title: str  # on screen: "sensitivity"
    help: str  # definition, a sentence without its full stop
    unit: str = ""  # "mm", "p" for a p value; empty for a number without one
    ideal: float | None = None  # the value of a perfect annotator; None if no value is better
    is_share: bool = False  # whether it lies between 0 and 1
    is_signed: bool = False  # whether it lies on both sides of 0 and is written with its sign
    is_count: bool = False  # whether it is a whole number
    is_reliability: bool = False  # whether it is the probability that measures reliability across kinds
    flag: str = ""  # name among `Evidence.words` of the column that marks unusual annotators

    def in_words(
        self, value: float, low: float = math.nan, high: float = math.nan, *, brief: bool = False
    ) -> str:
        """Write a value with its unit, and with its interval unless it is brief; empty if it is unknown."""
        if not math.isfinite(value):
            return ""
        if self.unit == "p":
            text = p_text(value)
            return f"p {text}" if text.startswith("<") else f"p = {text}"
        if self.is_count:
            return f"{value:,.0f}"
        if not self.is_share and not math.isfinite(high - low):
            low = high = value  # without an interval, three digits are significant
            brief = True
        text = figure(value, low, high) if brief else estimate(value, low, high)
        if self.is_signed and value > 0:
            text = f"+{text}"
        return f"{text} {self.unit}" if self.unit else text


@dataclass(frozen=True, eq=False)
class Evidence:
    """Values of K annotators from one kind of annotation, over all items with a result."""

    kind: str
    marks_are: str  # noun of the counted marks: "clicks", "votes"
    names: tuple[str, ...]  # (K,): the main name of each
    marks: IntArray  # (K,): marks that count
    items: IntArray  # (K,): images, cases or questions with such marks
    measures: tuple[Measure, ...]  # tuple of M Measure
    values: FloatArray  # (K, M, 3): value, low and high end of the 95 % interval; NaN where unknown
    # by column: values that are texts: the community, the worst class
    words: Mapping[str, Sequence[str]] = field(default_factory=dict)
    # accepted, rejected: (K,): number of marks that agree with the expert's decisions, and that contradict
    # them
    accepted: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    rejected: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Course:
    """A value of one annotator over P items or parts of an item, in order."""

    kind: str
    measure: Measure
    points: tuple[str, ...]  # (P,): "smear_2.png", "votes 41 to 80"
    across: str  # noun of the points: "image", "block of votes"
    values: FloatArray  # (P, 3): value and interval


class Measurements(NamedTuple):
    """Measurements of the same cases by several annotators."""

    # quantity, unit: "liver volume" in "ml"
    quantity: str
    unit: str
    # main name to case to value; a case is the number of an item in the study
    values: Mapping[str, Mapping[int, float]]


class Agreement(NamedTuple):
    """Krippendorff's alpha of some annotators on one question, with the number of its units in words."""

    name: str
    alpha: Coefficient
    units: str


class ChangedAnswer(NamedTuple):
    """A changed answer: the name of its item, and the answers before and after in words."""

    name: str
    before: str
    after: str


@dataclass(frozen=True)
class Consequences:
    """Effect of an exclusion or a weight on the results shown of one kind."""

    kind: str
    noun: str  # one answer: "detection", "voxel", "label", "rank"
    changed: int
    total: int
    changes: tuple[ChangedAnswer, ...] = ()  # the first ones, the most certain first
    notes: tuple[str, ...] = ()  # sentences on missing results


def _no_measurements(_study: Study, _watch: Watch) -> Sequence[Measurements]:
    return ()


def _no_agreement(_study: Study, _names: Collection[str], _watch: Watch) -> Sequence[Agreement]:
    return ()


@dataclass(frozen=True)
class AnnotatorFunctions:
    """Functions of a kind that return values of its annotators."""

    # ``evidence(study, watch)`` gives the values of all annotators; None without results
    evidence: Callable[[Study, Watch], Evidence | None]
    # ``courses(study, names, watch)`` gives the courses of the annotator with these names
    courses: Callable[[Study, Collection[str], Watch], Sequence[Course]]
    # ``preview(study, names, weight, watch)`` repeats the runs shown without the annotators with these names,
    # or with a weight; None where nothing of this kind is affected
    preview: Callable[[Study, Collection[str], float | None, Watch], Consequences | None]
    # ``measurements(study, watch)`` gives the values of each case for observer variability
    measurements: Callable[[Study, Watch], Sequence[Measurements]] = _no_measurements
    # ``agreement(study, names, watch)`` compares the annotators with these names, or all without names
    agreement: Callable[[Study, Collection[str], Watch], Sequence[Agreement]] = _no_agreement
    # ``mistakes(study, names, watch)`` gives sections with the clearest mistakes of the annotator with these
    # names, without names of other annotators
    mistakes: Callable[[Study, Collection[str], Watch], list[Section]] | None = None


class Pool:
    """Values of annotators, collected item by item and pooled by annotator."""

    def __init__(self, aliases: Mapping[str, str], measures: int) -> None:
        self._aliases, self._measures = aliases, measures
        self._index: dict[str, int] = {}
        self._rows: list[IntArray] = []
        self._values: list[FloatArray] = []
        self._weights: list[FloatArray] = []

    @property
    def names(self) -> tuple[str, ...]:
        """The main names, in order of first appearance."""
        return tuple(self._index)

    def rows_of(self, names: Iterable[str]) -> IntArray:
        """Return the numbers of annotators; new annotators get the next number."""
        mains = (self._aliases.get(name, name) for name in names)
        return np.array([self._index.setdefault(main, len(self._index)) for main in mains], dtype=np.int64)

    def add(self, names: Sequence[str], values: FloatArray, weights: NDArray[Any]) -> None:
        """Add the values, (K, M, 3), of the annotators of an item, with their numbers of marks, (K,)."""
        self._rows.append(self.rows_of(names))
        self._values.append(values)
        self._weights.append(np.asarray(weights, dtype=np.float64))

    def total(self, amounts: Sequence[NDArray[np.integer]]) -> IntArray:
        """Sum amounts, in the order of the calls of `add`."""
        total = np.zeros(len(self._index), dtype=np.int64)
        for rows, amount in zip(self._rows, amounts, strict=True):
            np.add.at(total, rows, amount)
        return total

    def sums(self, amounts: Sequence[FloatArray]) -> FloatArray:
        """Sum rows of amounts, (A, K) of each item, in the order of the calls of `add`."""
        total = np.zeros((len(amounts[0]) if amounts else 0, len(self._index)))
        for rows, amount in zip(self._rows, amounts, strict=True):
            np.add.at(total.T, rows, amount.T)
        return total

    def counted(self) -> tuple[IntArray, IntArray]:
        """Return each annotator's number of marks, and of items with marks, over all joined names."""
        marks = self.total([weight.astype(np.int64) for weight in self._weights])
        items = np.zeros_like(marks)
        for rows, weight in zip(self._rows, self._weights, strict=True):
            items[np.unique(rows[weight > 0])] += 1
        return marks, items

    def weighted(self) -> FloatArray:
        """Pool values of independent items: the mean weighted by marks, (K, M, 3).

        A single item keeps its value and interval. Of several, the half-widths add up in quadrature.
        """
        rows, values, weights = self._joined()
        return self._by_measure(rows, values, weights, _weighted_mean)

    def mean(self) -> FloatArray:
        """Pool values without intervals: the mean of items, with the interval of Student's t, (K, M, 3)."""
        rows, values, weights = self._joined()
        return self._by_measure(rows, values, weights, _mean_of_items)

    def _joined(self) -> tuple[IntArray, FloatArray, FloatArray]:
        if not self._rows:
            return np.empty(0, np.int64), np.empty((0, self._measures, 3)), np.empty(0)
        return np.concatenate(self._rows), np.concatenate(self._values), np.concatenate(self._weights)

    def _by_measure(
        self,
        rows: IntArray,
        values: FloatArray,
        weights: FloatArray,
        pool: Callable[[IntArray, FloatArray, FloatArray, int], FloatArray],
    ) -> FloatArray:
        pooled = np.full((len(self._index), self._measures, 3), np.nan)
        for measure in range(self._measures):
            known = np.isfinite(values[:, measure, 0]) & (weights > 0)
            pooled[:, measure] = pool(rows[known], values[known, measure], weights[known], len(self._index))
        return pooled


def _weighted_mean(rows: IntArray, values: FloatArray, weights: FloatArray, count: int) -> FloatArray:
    number = np.bincount(rows, minlength=count)
    weight = np.bincount(rows, weights, count)
    pooled = np.full((count, 3), np.nan)
    some = number > 0
    mean = np.bincount(rows, weights * values[:, 0], count)
    pooled[some, 0] = mean[some] / weight[some]
    for end, side in ((1, -1.0), (2, 1.0)):
        half = np.bincount(rows, np.square(weights * (values[:, end] - values[:, 0])), count)
        pooled[some, end] = pooled[some, 0] + side * np.sqrt(half[some]) / weight[some]
    alone = number[rows] == 1
    pooled[rows[alone]] = values[alone]
    return pooled


def _mean_of_items(rows: IntArray, values: FloatArray, _weights: FloatArray, count: int) -> FloatArray:
    number = np.bincount(rows, minlength=count)
    pooled = np.full((count, 3), np.nan)
    some, several = number > 0, number > 1
    pooled[some, 0] = np.bincount(rows, values[:, 0], count)[some] / number[some]
    squares = np.bincount(rows, np.square(values[:, 0] - pooled[rows, 0]), count)
    error = np.sqrt(squares[several] / (number[several] - 1) / number[several])
    half = student_t(number[several] - 1) * error
    pooled[several, 1], pooled[several, 2] = pooled[several, 0] - half, pooled[several, 0] + half
    alone = number[rows] == 1
    pooled[rows[alone], 0] = values[alone, 0]
    return pooled


def student_t(freedom: NDArray[np.integer]) -> FloatArray:
    """Return the 0.975 quantile of Student's t for degrees of freedom."""
    from scipy.special import stdtrit

    return np.asarray(stdtrit(freedom.astype(np.float64), 0.975))


def blocks(number: int) -> list[slice]:
    """Divide marks in their order into blocks: at most twelve, of ten marks or more."""
    count = max(1, min(12, number // 10))
    edges = np.linspace(0, number, count + 1).round().astype(int).tolist()
    return [slice(begin, end) for begin, end in pairwise(edges) if end > begin]


class Named(Protocol):
    """Item of a study: an image or a question."""

    @property
    def name(self) -> str:
        """Name on screen."""
        ...


Item = TypeVar("Item", bound=Named)
Answer = TypeVar("Answer")


def read_shown(
    items: Sequence[Item], read: Callable[[Item], Answer | None], watch: Watch
) -> Iterator[tuple[Item, Answer]]:
    """Yield each item that has an answer, with the answer that `read` returns."""
    for done, item in enumerate(items):
        watch(done / len(items), f"reading the annotators of {item.name}")
        answer = read(item)
        if answer is not None:
            yield item, answer
