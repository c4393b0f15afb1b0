"""How far to trust probabilities: those of the runs shown against known truths, else against decisions.

What a run was held to says nothing of it and is left out: truths that were held fixed, and decisions made
before the run. Probabilities count as contradicted where a chi-squared test over bins of equal width rejects
them (D. W. Hosmer, S. Lemeshow, "Goodness of fit tests for the multiple logistic regression model",
Communications in Statistics - Theory and Methods 9(10), 1980, 1043-1069, with expected counts that are given
and not fitted, so that no degree of freedom is lost) and the expected calibration error is relevant too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from raterscope.algorithms.clicks.data import BoolArray, FloatArray
from raterscope.algorithms.evaluation import Calibration, calibration
from raterscope.algorithms.labels import OPEN
from raterscope.algorithms.labels.result import LabelResult
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.clicks.accuracy import judged_spots
from raterscope.app.clicks.deciding import decided_on
from raterscope.app.errors import counted
from raterscope.app.labels.answers import truth_about
from raterscope.app.labels.running import measured
from raterscope.app.review import ReviewState, fold, match
from raterscope.app.study import Study

__all__ = ["FEW", "Trust", "trust_in_clicks", "trust_in_labels", "trust_of"]

FEW = 20
"""Cases below which nothing is concluded."""

LEVEL = 0.001
LEAST_ERROR = 0.05
"""Probabilities are contradicted below this p-value and above this expected calibration error."""


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
    """

    noun: str
    by_truth: bool
    calibration: Calibration

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
            return (
                f"Nothing contradicts or confirms these probabilities: no {self.noun} has a known truth, and "
                "you decided none after the run."
            )
        of = "with known truth" if self.by_truth else "that you decided after the run"
        true = "structures" if self.noun == "spot" else "right"
        words = (
            f"Of {counted(self.judged, self.noun)} {of}, {self.share:.0%} are {true}; the mean probability "
            f"is {self.expected:.0%}, the expected calibration error {self.calibration.error:.2f}."
        )
        if self.judged < FEW:
            return f"{words} That is too few to tell."
        if not self.contradicted:
            return f"{words} This does not contradict the probabilities."
        gap = self.expected - self.share
        how = f"{abs(gap):.2f} too {'high' if gap > 0 else 'low'} on average"
        if abs(gap) <= LEAST_ERROR:
            how = "too high in some ranges and too low in others"
        return f"{words} The probabilities are {how}: do not take them at their word."


def trust_of(kind: str, items: Sequence[int], study: Study, watch: Watch = silent) -> Trust | None:
    """Compare the probabilities shown of some items with what is known; None for other kinds.

    Parameters
    ----------
    kind : str
    items : sequence of int
        Images of clicks, or one question of labels.
    study : Study
    watch : Watch
    """
    if kind == "clicks":
        return trust_in_clicks(study, items, watch)
    if kind == "labels" and items:
        watch(0.0, "comparing with what is known")
        return trust_in_labels(study, items[0])
    return None


def trust_in_clicks(study: Study, images: Sequence[int], watch: Watch = silent) -> Trust:
    """Compare the posteriors of all spots of the images shown with known places, else with decisions."""
    now, radius = fold(study.decisions()), study.matching_radius()
    by_truth: list[tuple[FloatArray, BoolArray]] = []
    by_decision: list[tuple[FloatArray, BoolArray]] = []
    then: dict[int, ReviewState] = {}
    for done, image in enumerate(images):
        watch(done / len(images), "comparing with what is known")
        truth, decided = study.truth(image), now.spots(image)
        shown = study.shown_result(image) if truth.known or decided else None
        if shown is None:
            continue
        run, fusion = shown
        posterior = fusion.detection.posterior
        if run.known not in then:
            then[run.known] = fold([one for one in study.decisions() if one.id <= run.known])
        free = ~decided_on(fusion, then[run.known].spots(image)).decided[: len(posterior)]
        if truth.known and not run.log.get("truth_held"):
            _, right = judged_spots([(fusion, truth.places)], radius)
            by_truth.append((posterior[free], right[free]))
        later = [one for one in decided if one.decision > run.known and one.verdict != "skipped"]
        clusters = match(later, fusion.clustering.mean, fusion.clustering.covariance)
        pairs = [
            (posterior[cluster], spot.verdict != "rejected")
            for spot, cluster in zip(later, clusters, strict=True)
            if cluster is not None and free[cluster]
        ]
        by_decision.append((np.array([p for p, _ in pairs]), np.array([yes for _, yes in pairs], dtype=bool)))
    return _trust("spot", by_truth, by_decision)


def trust_in_labels(study: Study, question: int) -> Trust | None:
    """Compare the probability of each task's consensus with known truths, else with decisions."""
    shown, result = study.result_shown(question, "labels", None)
    if shown is None or not isinstance(result, LabelResult):
        return None
    fusion = result.fusion
    top, label = fusion.posterior.max(axis=1), fusion.label()
    truth = measured(result, truth_about(study, study.question(question), fusion))
    known = truth != OPEN
    names = study.crowd(question, shown.imported).tasks
    decided = fold(study.decisions()).tasks(question)
    pairs = [
        (top[task], fusion.classes[label[task]] == decided[name].label)
        for task, name in enumerate(names[: len(label)])
        if name in decided and decided[name].decision > shown.known and fusion.known[task] == OPEN
    ]
    by_decision = (np.array([p for p, _ in pairs]), np.array([yes for _, yes in pairs], dtype=bool))
    by_truth = [(top[known], label[known] == truth[known])] if known.any() else []
    return _trust("task", by_truth, [by_decision])


def _trust(
    noun: str,
    by_truth: Sequence[tuple[FloatArray, BoolArray]],
    by_decision: Sequence[tuple[FloatArray, BoolArray]],
) -> Trust:
    used = by_truth or by_decision
    posterior = np.concatenate([np.empty(0), *(p for p, _ in used)])
    right = np.concatenate([np.empty(0, dtype=bool), *(yes for _, yes in used)])
    return Trust(noun, bool(by_truth), calibration(posterior, right))
