"""How far to trust the posteriors of spots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.kinds.clicks.accuracy import judged_spots
from raterscope.app.kinds.clicks.deciding import decided_on
from raterscope.app.review import ReviewState, Spot, fold, match
from raterscope.app.study import RunEntry, Study
from raterscope.app.trust import (
    FEW,
    BoolArray,
    FloatArray,
    Trust,
    comparable_in_words,
    run_before,
    trust_from,
)

_LOOKED_AT = 8
"""Images whose annotators are counted."""


def trust_in_clicks(study: Study, images: Sequence[int], watch: Watch = silent) -> Trust:
    """Compare the posteriors of all spots of the images shown with ground truth, else with decisions."""
    past = _Past(study)
    now, radius = fold(study.decisions()), study.settings.matching_radius()
    by_truth: list[tuple[FloatArray, BoolArray]] = []
    by_decision: list[tuple[FloatArray, BoolArray]] = []
    for done, image in enumerate(images):
        watch(done / len(images), "comparing with what is known")
        truth = study.truth(image)
        decided = [one for one in now.spots(image) if one.verdict != "skipped"]
        shown = study.shown.result(image) if truth.known or decided else None
        if shown is None:
            continue
        run, fusion = shown
        if truth.known and not run.log.get("truth_held"):
            _, right = judged_spots([(fusion, truth.places)], radius)
            free = past.free(run, image, fusion)
            by_truth.append((fusion.detection.posterior[free], right[free]))
        if not by_truth:
            by_decision.append(past.decided(run, image, decided))
    trust = trust_from("spot", by_truth, by_decision)
    return trust if trust.judged >= FEW else replace(trust, comparable=_comparable(study, images))


class _Past:
    """What runs were held to, and what they said of spots before these were decided."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._runs = study.runs.all()
        self._decisions = study.decisions()
        self._states: dict[int, ReviewState] = {}

    def free(self, run: RunEntry, image: int, fusion: Fusion) -> BoolArray:
        """Tell of each cluster of a run whether it was held to no decision."""
        if run.known not in self._states:
            self._states[run.known] = fold([one for one in self._decisions if one.id <= run.known])
        held = decided_on(fusion, self._states[run.known].spots(image)).decided
        return np.asarray(~held[: len(fusion.detection.posterior)])

    def decided(self, shown: RunEntry, image: int, spots: Sequence[Spot]) -> tuple[FloatArray, BoolArray]:
        """Give the posterior of each decided spot before the decision, and whether it is a structure."""
        by_run: dict[int, list[Spot]] = {}
        for spot in spots:
            run = run_before(self._runs, shown, image, spot.decision)
            if run is not None:
                by_run.setdefault(run.id, []).append(spot)
        found: list[tuple[float, bool]] = []
        for number, some in by_run.items():
            fusion = self._study.runs.result(number, image)
            if fusion is None:
                continue
            free = self.free(self._study.runs.get(number), image, fusion)
            clusters = match(some, fusion.clustering.mean, fusion.clustering.covariance)
            found += [
                (float(fusion.detection.posterior[cluster]), spot.verdict != "rejected")
                for spot, cluster in zip(some, clusters, strict=True)
                if cluster is not None and free[cluster]
            ]
        return np.array([p for p, _ in found]), np.array([yes for _, yes in found], dtype=bool)


def _comparable(study: Study, images: Sequence[int]) -> str:
    """Say what was measured on crowds with as many annotators an image."""
    shown = [study.shown.result(image) for image in images[:_LOOKED_AT]]
    many = [len(one[1].marked) for one in shown if one is not None]
    return comparable_in_words("clicks", float(np.mean(many)), ("annotator", "image")) if many else ""
