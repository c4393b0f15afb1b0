"""Correction of predicted changes by a replay of the last annotators.

The prediction of changes assumes that the crowd's parameters are known. Mistakes that annotators share, and
information from further annotators on other images, change more decisions than it predicts. Their number is
measured on the crowd itself: all images are fused without their last annotators, and without those before
them; the predicted changes are compared with the changes found. The log odds of a change on an image are
corrected by a line with normal priors of intercept and slope ([cox1958]_), so that few images correct little.
The additional changes are a Poisson number. The correction never lowers a prediction.

References
----------
.. [cox1958] D. R. Cox, "Two further applications of a model for binary regression", Biometrika 45 (1958)
   562-565, doi:10.1093/biomet/45.3-4.562.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raterscope.algorithms.clicks.data import Clicks, FloatArray, IntArray
from raterscope.algorithms.clicks.fusion import FusionPlan, fuse, learn_from_each_other, learns_across_images
from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.clicks.stopping import StoppingSettings, count_changes, predict_outlook
from raterscope.algorithms.progress import Watch, part, silent, steps_of

TURNS = 2
"""Number of groups of last annotators that are excluded, one after the other."""

INTERCEPT, SLOPE = 1.0, 0.3
"""Standard deviations of the priors of the intercept, about 0, and of the slope, about 1."""

SURE = 0.002
"""Minimum probability of a change, and of no change, for log odds."""

MOST = 300
"""Maximum number of images of a turn whose changes are predicted, evenly spaced among all."""

ROUNDS = 30
"""Number of Newton steps of the fit."""


@dataclass(frozen=True, eq=False)
class Replay:
    """Predicted and found changes in K replays of images, and the last changes on each of I images."""

    predicted: FloatArray  # (K,): probability that any decision changes
    changed: IntArray  # (K,): decisions that changed
    late: IntArray  # (I,): decisions that the last annotators changed; -1 on images with too few annotators

    def line(self) -> FloatArray:
        """Return intercept and slope of the log odds of a change over the predicted log odds."""
        x = np.column_stack([np.ones(len(self.predicted)), _log_odds(self.predicted)])
        happened, precision = self.changed > 0, np.diag([INTERCEPT**-2.0, SLOPE**-2.0])
        line = np.array([0.0, 1.0])
        for _ in range(ROUNDS):
            chance = 1 / (1 + np.exp(-(x @ line)))
            slope = x.T @ (happened - chance) - precision @ (line - [0.0, 1.0])
            line = line + np.linalg.solve((x * (chance * (1 - chance))[:, None]).T @ x + precision, slope)
        return np.asarray(line)

    def additional(self, chance: float) -> float:
        """Return the expected number of changes beyond a prediction, from its probability of any change."""
        intercept, slope = self.line()
        log_odds = float(_log_odds(np.array([chance]))[0])
        corrected = float(np.logaddexp(0.0, intercept + slope * log_odds))
        return max(corrected - float(np.logaddexp(0.0, log_odds)), 0.0)

    def in_words(self) -> str:
        """Compare the changed images with the prediction; empty without any image."""
        if not len(self.changed):
            return ""
        found, images = np.count_nonzero(self.changed), len(self.changed)
        return (
            f"{TURNS} replays without last annotators: decisions changed on {found:,} of {images:,} images "
            f"({self.predicted.sum():,.0f} predicted). The list allows for that."
        )


def replay_last_annotators(
    clicks: Sequence[Clicks],
    fusions: Sequence[Fusion],
    plan: FusionPlan,
    settings: StoppingSettings,
    watch: Watch = silent,
) -> Replay:
    """Fuse the images of a run without their last annotators; compare predicted with found changes.

    `clicks`: of each image. `fusions`: of each image, from all its clicks together with the other images.
    """
    predicted: list[float] = []
    changed: list[IntArray] = []
    late = np.full(len(clicks), -1, dtype=np.int64)
    for turn, step in steps_of(watch, range(TURNS)):
        chosen = [i for i, own in enumerate(clicks) if len(own.annotators) > (turn + 1) * settings.more]
        if not chosen:
            continue
        shorter = list(clicks)
        for i in chosen:
            last = _last_annotators(clicks[i])[turn * settings.more : (turn + 1) * settings.more]
            shorter[i] = clicks[i].without(set(last))
        before = _fuse_together(shorter, plan, part(step, 0.0, 0.7))
        found = np.array([count_changes(before[i], fusions[i]) for i in chosen], dtype=np.int64)
        some = np.unique(np.linspace(0, len(chosen) - 1, MOST).astype(np.int64)).tolist()
        for row, looking in steps_of(part(step, 0.7, 1.0), some):
            own = chosen[row]
            predicted.append(predict_outlook(shorter[own], before[own], plan, settings, looking).any)
        changed.append(found[some])
        if not turn:
            late[chosen] = found
    return Replay(np.array(predicted), np.concatenate([np.empty(0, dtype=np.int64), *changed]), late)


def _fuse_together(clicks: Sequence[Clicks], plan: FusionPlan, watch: Watch) -> list[Fusion]:
    rated = not learns_across_images(plan)
    alone = [fuse(own, plan, step, rated=rated) for own, step in steps_of(part(watch, 0.0, 0.6), clicks)]
    return learn_from_each_other(clicks, alone, plan, part(watch, 0.6, 1.0))


def _last_annotators(clicks: Clicks) -> list[str]:
    """Return the annotators by time, or without times in the order of the file, the last one first."""
    order = np.arange(len(clicks.annotators), dtype=np.float64)
    if clicks.time is not None and np.isfinite(clicks.time).all():
        order[:] = -np.inf  # who marked nothing comes first
        np.maximum.at(order, clicks.annotator, clicks.time)
    return [clicks.annotators[row] for row in np.argsort(order, kind="stable")[::-1]]


def _log_odds(chance: FloatArray) -> FloatArray:
    inside = np.clip(chance, SURE, 1 - SURE)
    return np.asarray(np.log(inside) - np.log1p(-inside))
