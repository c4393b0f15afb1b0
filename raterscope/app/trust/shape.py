"""How far to trust probabilities: those of the runs shown against known truths, else against decisions.

What a run was held to says nothing of it and is left out. A decision that the run shown was held to is
compared with what the latest run of the same settings said before it. Probabilities count as contradicted
where a chi-squared test over bins of equal width rejects them ([hosmer1980]_, with expected counts that are
given and not fitted, so that no degree of freedom is lost) and the expected calibration error is relevant
too.

References
----------
.. [hosmer1980] D. W. Hosmer and S. Lemeshow, "Goodness of fit tests for the multiple logistic regression
   model", Communications in Statistics - Theory and Methods 9 (1980) 1043-1069,
   doi:10.1080/03610928008827941.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from raterscope.algorithms.evaluation import Calibration, calibration
from raterscope.algorithms.labels.assessment import wilson
from raterscope.app.errors import counted
from raterscope.app.study import RunEntry

__all__ = ["FEW", "LEAST_ERROR", "LEVEL", "Trust", "bin_intervals", "run_before", "trust_from"]

FEW = 20
"""Cases below which nothing is concluded."""

LEVEL = 0.001
LEAST_ERROR = 0.05
"""Probabilities are contradicted below this p-value and above this expected calibration error."""


FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Trust:
    """Probabilities against what is known.

    Attributes
    ----------
    noun : str
        "spot", "task".
    by_truth : bool
        Known truths are the measure; else the expert's decisions.
    calibration : Calibration
    comparable : str
        What was measured on comparable crowds, a sentence; said where nothing is known of this run.
    axes : tuple of str
        What the calibration has across and up.
    """

    noun: str
    by_truth: bool
    calibration: Calibration
    comparable: str = ""
    axes: tuple[str, str] = ("probability", "share that is right")

    independent: ClassVar[bool] = True
    """Whether cases are independent of each other, so that shares have intervals."""

    @property
    def judged(self) -> int:
        """How many cases were compared."""
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
        """Of the test that probabilities are right; NaN without cases."""
        filled = self.calibration.count > 0
        mean, count = self.calibration.posterior[filled], self.calibration.count[filled]
        variance = np.maximum(count * mean * (1 - mean), 1e-9)
        statistic = np.sum((count * (self.calibration.share[filled] - mean)) ** 2 / variance)
        return float(chi2.sf(statistic, len(count))) if len(count) else np.nan

    def _mean(self, values: FloatArray) -> float:
        count = self.calibration.count
        return float(np.nansum(values * count) / self.judged) if self.judged else np.nan

    @property
    def contradicted(self) -> bool:
        """Whether what is known contradicts the probabilities."""
        error = self.calibration.error
        return self.judged >= FEW and self.p_value < LEVEL and error > LEAST_ERROR

    def in_words(self) -> str:
        """Say it in a sentence or two."""
        if not self.judged:
            words = (
                f"Nothing contradicts or confirms these probabilities: no {self.noun} has a known truth, and "
                "you decided none of them."
            )
            return f"{words} {self.comparable}".rstrip()
        of = "with known truth" if self.by_truth else "that you decided"
        true = "structures" if self.noun == "spot" else "right"
        low, high = self.interval
        words = (
            f"Of {counted(self.judged, self.noun)} {of}, {self.share:.0%} are {true} (95 % interval "
            f"{low:.0%} to {high:.0%}); the mean probability is {self.expected:.0%}, the expected "
            f"calibration error {self.calibration.error:.2f}."
        )
        if self.judged < FEW:
            return f"{words} That is too few to tell. {self.comparable}".rstrip()
        if not self.contradicted:
            return f"{words} This does not contradict the probabilities."
        return f"{words} The probabilities are {self._gap_in_words()}: do not take them at their word."

    def doubt_in_words(self) -> str:
        """Say in a short sentence what is contradicted; empty where nothing is."""
        if not self.contradicted:
            return ""
        by = "Known truths" if self.by_truth else "Your decisions"
        return f"{by} contradict the probabilities: {self._gap_in_words()}."

    def _gap_in_words(self) -> str:
        gap = self.expected - self.share
        if abs(gap) <= LEAST_ERROR:
            return "too high in some ranges and too low in others"
        return f"{abs(gap):.2f} too {'high' if gap > 0 else 'low'} on average"


def trust_from(
    noun: str,
    by_truth: Sequence[tuple[FloatArray, BoolArray]],
    by_decision: Sequence[tuple[FloatArray, BoolArray]],
) -> Trust:
    """Compare probabilities with what is right: by truths where there are any, else by decisions.

    Parameters
    ----------
    noun : str
        See `Trust`.
    by_truth, by_decision : sequence of pairs of (n,) float64 and (n,) bool
        Probabilities, and whether each case is right.
    """
    used = by_truth or by_decision
    posterior = np.concatenate([np.empty(0), *(p for p, _ in used)])
    right = np.concatenate([np.empty(0, dtype=bool), *(yes for _, yes in used)])
    return Trust(noun, bool(by_truth), calibration(posterior, right))


def run_before(runs: Sequence[RunEntry], shown: RunEntry, item: int, decision: int) -> RunEntry | None:
    """Give the run that says what was claimed before a decision; None without one.

    Parameters
    ----------
    runs : sequence of RunEntry
        All of the study.
    shown : RunEntry
        Runs count that have its algorithm and settings.
    item, decision : int
        The image or question, and the number of the decision.

    Returns
    -------
    RunEntry or None
        The latest run of the item that was not held to the decision, the run shown where it was not.
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


def bin_intervals(found: Calibration) -> FloatArray:
    """Give the 95 % interval of the share of each bin (Wilson), (2, B); NaN where a bin is empty."""
    ends = [wilson(share * count, int(count)) for share, count in zip(found.share, found.count, strict=True)]
    return np.array(ends, dtype=np.float64).reshape(-1, 2).T
