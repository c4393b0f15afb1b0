"""How far to trust the posteriors of spots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.clicks.accuracy import judged_spots
from raterscope.app.clicks.deciding import decided_on
from raterscope.app.review import ReviewState, fold, match
from raterscope.app.study import Study
from raterscope.app.trust.comparable import comparable_in_words
from raterscope.app.trust.shape import FEW, BoolArray, FloatArray, Trust, trust_from

__all__ = ["trust_in_clicks"]

_LOOKED_AT = 8
"""Images whose annotators are counted."""


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
    trust = trust_from("spot", by_truth, by_decision)
    return trust if trust.judged >= FEW else replace(trust, comparable=_comparable(study, images))


def _comparable(study: Study, images: Sequence[int]) -> str:
    """Say what was measured on crowds with as many annotators an image."""
    shown = [study.shown_result(image) for image in images[:_LOOKED_AT]]
    many = [len(one[1].marked) for one in shown if one is not None]
    return comparable_in_words("clicks", float(np.mean(many))) if many else ""
