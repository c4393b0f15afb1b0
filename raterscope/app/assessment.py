"""Assessment of a run: disputed items, changes from another run, and trust in its claims.

Window, reports and the comparison of runs use the same bounds of dispute. Each kind fills in the differences;
`raterscope.app.annotators.table` compares the runs of a study. Trust compares the claims of a run with ground
truth or with comparable data.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.statistics import wilson
from raterscope.algorithms.evaluation import Calibration, calibration
from raterscope.algorithms.labels.data import OPEN, LabelFusion
from raterscope.app.review import ReviewState
from raterscope.app.study import RunEntry, Study
from raterscope.text import counted, percent

Box = tuple[int, int, int]


@dataclass(frozen=True)
class Change:
    """Change of one item between two runs."""

    item: int  # the image or question
    text: str  # "0.44 -> 0.93, a detection now: spot at (140, 30), smear_2"
    size: float  # sort key, the largest first
    point: tuple[float, float] | None = None  # (x, y): of a spot, pixels
    name: str = ""  # the structure, task or annotator; empty for a spot
    box: tuple[Box, Box] | None = None  # (origin, shape): of a region, voxels
    count: int = 1  # number of details; small regions are listed together


@dataclass
class Differences:
    """Differences found so far between two runs."""

    # disputed_before, disputed_after: number of disputed details by each run; of pairs, of flagged annotators
    disputed_before: int = 0
    disputed_after: int = 0
    ranks: int = 0  # of pairs: items that changed their rank
    newly_disputed: int = 0  # number of changes that are only new disputes
    decided: int = 0  # number of details that were disputed, and are decided since
    changes: list[Change] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class ComparedItem:
    """One item with the results of two runs."""

    study: Study
    state: ReviewState
    item: int
    where: str
    earlier: RunEntry
    later: RunEntry
    then: Any
    now: Any

    def change(self, text: str, size: float, **about: Any) -> Change:
        """Return a change of this item; `about`: further fields of `Change`."""
        return Change(self.item, f"{text}{self.where}", float(size), **about)


def step_in_words(old: float, new: float) -> str:
    """Write a change from one share to another, with digits that show it: "0.44 → 0.93", "0.902 → 0.898"."""
    digits = next((digits for digits in (2, 3) if round(old, digits) != round(new, digits)), 4)
    return f"{old:.{digits}f} \N{RIGHTWARDS ARROW} {new:.{digits}f}"


def share_in_words(value: float) -> str:
    """Write a share with two decimals."""
    return f"{value:.2f}"


DISPUTED = (0.1, 0.9)
"""Posteriors between which an undecided spot is disputed."""

MATTERS = 0.25
"""Minimum probability that an answer is wrong for a decision on it to matter.

A decision also changes the other posteriors. A ranking by the expected value of sample information includes
that, but corrected no more answers on any measured crowd.
"""


def disputed_tasks(fusion: LabelFusion) -> NDArray[np.bool_]:
    """Mark the tasks, (N,), of unknown truth whose classes all stay below the upper bound."""
    disputed = (fusion.posterior.max(axis=1, initial=0.0) < DISPUTED[1]) & (fusion.known == OPEN)
    return np.asarray(disputed)


def matters_in_words(wrong: NDArray[np.float64], noun: str) -> str:
    """Describe how many items a decision matters for.

    `wrong`: (n,), probability that the answer to each is wrong. `noun`: singular noun: "disputed spot".
    """
    matter = int((wrong >= MATTERS).sum())
    several = "" if len(wrong) == 1 else "s"
    return (
        f"A decision matters on {matter:,} of {len(wrong):,} {noun}{several}: the answer is wrong with a "
        f"probability of {MATTERS:g} or more."
    )


FEW = 20
"""Minimum number of cases for a conclusion."""

LEVEL = 0.001
MIN_ERROR = 0.05
"""Probabilities are contradicted below this p-value and above this expected calibration error."""


FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Trust:
    """Comparison of probabilities with known answers."""

    noun: str  # "spot", "task"
    by_truth: bool  # whether known truths are the reference; otherwise the expert's decisions
    calibration: Calibration
    # a sentence on the measurements on comparable crowds, for a run without known answers
    comparable: str = ""
    errors: str = ""  # number of errors expected among the other items, a sentence
    axes: tuple[str, str] = ("probability", "share that is right")  # names of the calibration's axes

    independent: ClassVar[bool] = True
    """Whether cases are independent of each other, so that shares have intervals."""

    @property
    def judged(self) -> int:
        """Number of cases compared."""
        return int(self.calibration.count.sum())

    @property
    def expected(self) -> float:
        """Mean probability; NaN without cases."""
        return self._mean(self.calibration.posterior)

    @property
    def share(self) -> float:
        """Share that is right; NaN without cases."""
        return self._mean(self.calibration.share)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of `share` (Wilson); two NaN without cases."""
        return wilson(self.share * self.judged, self.judged)

    @property
    def p_value(self) -> float:
        """P value of the test that probabilities are right; NaN without cases."""
        from scipy.special import chdtrc  # `scipy.stats` takes a second to import

        filled = self.calibration.count > 0
        mean, count = self.calibration.posterior[filled], self.calibration.count[filled]
        variance = np.maximum(count * mean * (1 - mean), 1e-9)
        statistic = np.sum((count * (self.calibration.share[filled] - mean)) ** 2 / variance)
        return float(chdtrc(len(count), statistic)) if len(count) else np.nan

    def _mean(self, values: FloatArray) -> float:
        count = self.calibration.count
        return float(np.nansum(values * count) / self.judged) if self.judged else np.nan

    @property
    def contradicted(self) -> bool:
        """True if known answers contradict the probabilities."""
        error = self.calibration.error
        return self.judged >= FEW and self.p_value < LEVEL and error > MIN_ERROR

    def in_words(self) -> str:
        """Describe the trust in a few sentences."""
        return f"{self.errors} {self._compared_in_words()}".lstrip()

    def _compared_in_words(self) -> str:
        if not self.judged:
            text = (
                f"Nothing contradicts or confirms these probabilities: no {self.noun} has a known truth, and "
                "you decided none of them."
            )
            return f"{text} {self.comparable}".rstrip()
        of = "with known truth" if self.by_truth else "that you decided"
        true = "structures" if self.noun == "spot" else "right"
        low, high = self.interval
        text = (
            f"Of {counted(self.judged, self.noun)} {of}, {percent(self.share)} are {true} (95 % interval "
            f"{percent(low)} to {percent(high)}); the mean probability is {percent(self.expected)}, the "
            f"expected calibration error {self.calibration.error:.2f}."
        )
        if self.judged < FEW:
            return f"{text} That is too few to judge. {self.comparable}".rstrip()
        if not self.contradicted:
            if low <= self.expected <= high or abs(self.expected - self.share) <= MIN_ERROR:
                return f"{text} This does not contradict the probabilities."
            return f"{text} The probabilities may be {self._gap_in_words()}."
        return f"{text} The probabilities are {self._gap_in_words()}: do not rely on them."

    def doubt_in_words(self) -> str:
        """Describe a contradiction in a short sentence; empty if there is none."""
        if not self.contradicted:
            return ""
        by = "Known truths" if self.by_truth else "Your decisions"
        return f"{by} contradict the probabilities: {self._gap_in_words()}."

    def _gap_in_words(self) -> str:
        gap = self.expected - self.share
        if abs(gap) <= MIN_ERROR:
            return "too high in some ranges and too low in others"
        return f"{abs(gap):.2f} too {'high' if gap > 0 else 'low'} on average"


def trust_from(
    noun: str,
    by_truth: Sequence[tuple[FloatArray, BoolArray]],
    by_decision: Sequence[tuple[FloatArray, BoolArray]],
) -> Trust:
    """Compare probabilities with known answers: the ground truth if there is any, otherwise decisions.

    `noun`: see `Trust`. `by_truth`, `by_decision`: pairs of probabilities, (n,), and whether each case is
    right, (n,).
    """
    used = by_truth or by_decision
    posterior = np.concatenate([np.empty(0), *(p for p, _ in used)])
    right = np.concatenate([np.empty(0, dtype=bool), *(yes for _, yes in used)])
    return Trust(noun, bool(by_truth), calibration(posterior, right))


def run_before(runs: Sequence[RunEntry], shown: RunEntry, item: int, decision: int) -> RunEntry | None:
    """Return the latest run of an item that did not use a decision; None without one.

    `runs`: all runs of the study.
    `shown`: run that is shown; only runs with its algorithm and settings count.
    `item`, `decision`: the image or question, and the number of the decision.
    The result may be the run shown.
    """
    if shown.known < decision:
        return shown
    like = [
        run
        for run in runs
        if (run.kind, run.algorithm, run.settings) == (shown.kind, shown.algorithm, shown.settings)
        and item in run.items
        and run.known < decision
    ]
    return max(like, key=lambda run: run.id, default=None)


def bin_intervals(curve: Calibration) -> FloatArray:
    """Compute the 95 % interval of each bin's share (Wilson), (2, B); NaN for an empty bin."""
    ends = [wilson(share * count, int(count)) for share, count in zip(curve.share, curve.count, strict=True)]
    return np.array(ends, dtype=np.float64).reshape(-1, 2).T


FILE = "calibration.csv"

NUMBERS = {
    "probability": "probabilities of {claimed} on average were right in {measured}",
    "calibration error": "the expected calibration error was {measured}",
    "band": "the {claimed} band contained {measured} of the outline of a left-out rater",
    "false discoveries": "{measured} of the flagged were flagged wrongly (rate {claimed})",
    "fair crowds": "an annotator was flagged in {measured} of crowds without bias",
}
"""Wording of each measure in the table."""

_FAR = math.log(2.5)
"""Maximum distance of a comparable crowd; see `ComparableCrowd.distance`."""


@dataclass(frozen=True)
class ComparableCrowd:
    """Measurements on one comparable data set."""

    kind: str
    data: str
    per_item: float  # annotators per image or case, votes per task, or comparisons per annotator
    classes: int  # 0 where there are none
    in_sample: bool  # whether defaults were chosen on these data
    figures: tuple[tuple[str, float, float], ...]  # tuple of (number, claimed, measured): keys of `NUMBERS`

    def distance(self, per_item: float, classes: int) -> float:
        """Compute the distance of a crowd: the larger of two differences of logarithms."""
        far = abs(math.log(max(per_item, 0.5) / self.per_item))
        return max(far, abs(math.log(classes / self.classes))) if classes and self.classes else far


@cache
def comparable_crowds() -> tuple[ComparableCrowd, ...]:
    """Read the bundled table of comparable crowds."""
    text = (resources.files("raterscope.resources") / FILE).read_text(encoding="utf-8")
    by_source: dict[tuple[str, str], ComparableCrowd] = {}
    for row in csv.DictReader(text.splitlines()):
        key = row["kind"], row["data"]
        figure = row["number"], float(row["claimed"]), float(row["measured"])
        before = by_source[key].figures if key in by_source else ()
        by_source[key] = ComparableCrowd(
            *key, float(row["per_item"]), int(row["classes"]), row["in_sample"] == "1", (*before, figure)
        )
    return tuple(by_source.values())


def nearest(
    crowds: Iterable[ComparableCrowd], kind: str, per_item: float, classes: int = 0
) -> ComparableCrowd | None:
    """Find the nearest crowd of a kind; None if none is near."""
    near = [
        (crowd.distance(per_item, classes), rank, crowd)
        for rank, crowd in enumerate(crowds)
        if crowd.kind == kind and crowd.distance(per_item, classes) <= _FAR
    ]
    return min(near)[2] if near else None


def comparable_in_words(kind: str, per_item: float, nouns: tuple[str, str], classes: int = 0) -> str:
    """Describe the measurements on the most similar crowd.

    `kind`: "clicks", "masks", "labels" (by the pooled consensus), "labels, ibcc" or "pairs".
    `per_item`: annotators per image or case, votes per task, or comparisons per annotator.
    `nouns`: nouns of what is counted, and of its item: "vote", "task".
    `classes`: number of classes of labels.
    """
    crowd = nearest(comparable_crowds(), kind, per_item, classes)
    if crowd is None:
        return "No crowd of this size was measured."
    noun, item = nouns
    size = f"{counted(round(crowd.per_item), noun)} per {item}"
    size += f", {crowd.classes} classes" if crowd.classes else ""
    claims = "; ".join(
        NUMBERS[number].format(
            claimed=percent(claimed),
            measured=f"{measured:.2f}" if number == "calibration error" else percent(measured),
        )
        for number, claimed, measured in crowd.figures
    )
    chosen = " Defaults were chosen on these data." if crowd.in_sample else ""
    text = f"On the nearest crowd measured ({crowd.data}: {size}), {claims}.{chosen}"
    return f"{text} {_worst_in_words(kind, crowd)}".rstrip()


def _worst_in_words(kind: str, compared: ComparableCrowd) -> str:
    """Name the crowd with the same number of classes and the worst probabilities; empty if it is this one."""
    errors = {
        crowd: measured
        for crowd in comparable_crowds()
        if (crowd.kind, crowd.classes) == (kind, compared.classes)
        for number, _, measured in crowd.figures
        if number == "calibration error"
    }
    worst = max(errors, key=lambda crowd: errors[crowd], default=compared)
    if worst == compared or errors[worst] <= MIN_ERROR:
        return ""
    return f"The error was largest, {errors[worst]:.2f}, on {worst.data}."
