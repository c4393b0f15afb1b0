"""Changes of an item of clicks from one run to the next."""

from __future__ import annotations

import numpy as np

from raterscope.algorithms.evaluation import match
from raterscope.app.comparison import ComparedItem, Differences, step_in_words
from raterscope.app.disputes import DISPUTED
from raterscope.app.kinds.clicks.deciding import decided_on


def compare_runs(at: ComparedItem, found: Differences) -> None:
    """Compare the item by two runs and fill in the differences."""
    spots = at.state.spots(at.item)
    then, now = at.then, at.now
    old, new = then.detection.posterior, now.detection.posterior
    low, high = DISPUTED
    old_disputed, new_disputed = ((one > low) & (one < high) for one in (old, new))
    found.disputed_before += int(old_disputed.sum())
    found.disputed_after += int(new_disputed.sum())
    pairs = match(then.clustering.mean, now.clustering.mean, at.study.settings.matching_radius())
    settled_then = decided_on(then, spots).decided[: len(old)]
    settled_now = decided_on(now, spots).decided[: len(new)]
    found.decided += int((old_disputed & settled_then).sum())
    for i, j in zip(pairs.found.tolist(), pairs.truth.tolist(), strict=True):
        if settled_now[j] or settled_then[i]:
            continue
        flipped = then.detection.detected[i] != now.detection.detected[j]
        if flipped:
            state = "a detection now" if now.detection.detected[j] else "no detection any more"
        elif new_disputed[j] and not old_disputed[i]:
            state = "disputed now"
            found.newly_disputed += 1
        else:
            continue
        x, y = map(float, now.clustering.mean[j])
        words = f"{step_in_words(old[i], new[j])}, {state}: spot at ({x:.0f}, {y:.0f})"
        found.changes.append(at.change(words, flipped + abs(new[j] - old[i]), point=(x, y)))
    for fusion, settled, matched, state in (
        (then, settled_then, pairs.found, "gone"),
        (now, settled_now, pairs.truth, "new detection"),
    ):
        alone = fusion.detection.detected & ~settled
        alone[matched] = False
        for m in np.flatnonzero(alone).tolist():
            x, y = map(float, fusion.clustering.mean[m])
            found.changes.append(at.change(f"{state}: spot at ({x:.0f}, {y:.0f})", 2.0, point=(x, y)))
