"""How far to trust probabilities: those of the runs shown against known truths, else against decisions.

What a run was held to says nothing of it and is left out: truths that were held fixed, and decisions made
before the run. Probabilities count as contradicted where a chi-squared test over bins of equal width rejects
them ([hosmer1980]_, with expected counts that are given
and not fitted, so that no degree of freedom is lost) and the expected calibration error is relevant too.

References
----------
.. [hosmer1980] D. W. Hosmer and S. Lemeshow, "Goodness of fit tests for the multiple logistic regression
   model", Communications in Statistics - Theory and Methods 9 (1980) 1043-1069,
   doi:10.1080/03610928008827941.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from raterscope.algorithms.evaluation import Calibration, calibration
from raterscope.app.errors import counted

__all__ = ["FEW", "LEAST_ERROR", "LEVEL", "Trust", "trust_from"]

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
        Known truths are the measure; else the expert's decisions made after the run.
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
                "you decided none after the run."
            )
            return f"{words} {self.comparable}".rstrip()
        of = "with known truth" if self.by_truth else "that you decided after the run"
        true = "structures" if self.noun == "spot" else "right"
        words = (
            f"Of {counted(self.judged, self.noun)} {of}, {self.share:.0%} are {true}; the mean probability "
            f"is {self.expected:.0%}, the expected calibration error {self.calibration.error:.2f}."
        )
        if self.judged < FEW:
            return f"{words} That is too few to tell. {self.comparable}".rstrip()
        if not self.contradicted:
            return f"{words} This does not contradict the probabilities."
        gap = self.expected - self.share
        how = f"{abs(gap):.2f} too {'high' if gap > 0 else 'low'} on average"
        if abs(gap) <= LEAST_ERROR:
            how = "too high in some ranges and too low in others"
        return f"{words} The probabilities are {how}: do not take them at their word."


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
