"""Decisions of a run that depend on which of its images are fused together.

Images that are fused together teach each other what the annotators mark (see `learning`). Where few
structures stand among many artefacts, and annotators differ from image to image, that decides which clusters
are structures: half of the images may come to other decisions than all of them. So the images are fused again
in halves, in two ways, and the decisions that differ are counted and named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from raterscope.algorithms.clicks.data import BoolArray, Clicks
from raterscope.algorithms.clicks.dem import DEMSettings
from raterscope.algorithms.clicks.fusion import FusionPlan, learn_from_each_other, learns_across_images
from raterscope.algorithms.clicks.negatives import absence_notice, decision_notice, score_notice
from raterscope.algorithms.clicks.results import Fusion
from raterscope.algorithms.progress import Watch, part, silent

__all__ = ["depends_on_grouping", "grouping_notice", "run_notices", "with_halves"]

WAYS = 2
"""Ways in which the images are divided into halves."""

LIMIT = 0.02
"""Share of the detections above which decisions that differ, on the mean of the ways, are announced."""

FEWEST_DRAWS = 20
"""Draws for the intervals of posteriors, which are not used here."""


def with_halves(
    clicks: Sequence[Clicks],
    alone: Sequence[Fusion],
    learnt: Sequence[Fusion],
    plan: FusionPlan,
    watch: Watch = silent,
) -> list[Fusion]:
    """Add to fusions what would be detected, were half of the images fused at a time.

    Parameters
    ----------
    clicks : sequence of Clicks
        Of each image.
    alone : sequence of Fusion
        Of each image by itself.
    learnt : sequence of Fusion
        Of all images together, see `learn_from_each_other`.
    plan : FusionPlan
        By which both were made.
    watch : Watch

    Returns
    -------
    list of Fusion
        `learnt` with `Fusion.halves`; the same for any order of the images and of the clicks. Unchanged with
        a plan that does not learn across images.
    """
    settings = plan.detection
    if len(clicks) < 2 or not isinstance(settings, DEMSettings) or not learns_across_images(plan):
        return list(learnt)
    quick = replace(plan, detection=replace(settings, interval_draws=FEWEST_DRAWS))
    order = sorted(range(len(clicks)), key=lambda image: _content(clicks[image]))
    ways = [way for way in range(WAYS) if len(order) > 1 << way]
    detected: list[list[BoolArray]] = [[] for _ in order]
    for way in ways:
        for half in (0, 1):
            chosen = [image for rank, image in enumerate(order) if (rank >> way) % 2 == half]
            begin = (way + half / 2) / len(ways)
            fused = learn_from_each_other(
                [clicks[image] for image in chosen],
                [alone[image] for image in chosen],
                quick,
                part(watch, begin, begin + 0.5 / len(ways)),
            )
            for image, fusion in zip(chosen, fused, strict=True):
                detected[image].append(fusion.detection.detected)
    return [replace(fusion, halves=np.array(found)) for fusion, found in zip(learnt, detected, strict=True)]


def depends_on_grouping(fusion: Fusion) -> BoolArray:
    """Tell of each cluster, (M,), whether another half of the images would decide otherwise on it."""
    detected = fusion.detection.detected
    halves = fusion.halves if len(fusion.halves) else detected[None]
    return np.asarray((halves != detected).any(axis=0))


def grouping_notice(fusions: Sequence[Fusion]) -> str | None:
    """Say how many decisions of a run depend on which images are fused together; None where few do.

    Parameters
    ----------
    fusions : sequence of Fusion
        Of all images of the run, as `with_halves` gives them.
    """
    known = [fusion for fusion in fusions if len(fusion.halves)]
    if not known:
        return None
    detected = sum(int(fusion.detection.detected.sum()) for fusion in known)
    by_halves = np.sum([fusion.halves.sum(axis=1) for fusion in known], axis=0)
    differ = sum(int((fusion.halves != fusion.detection.detected).sum()) for fusion in known) / len(by_halves)
    if differ <= LIMIT * max(detected, 1):
        return None
    low, high = int(by_halves.min()), int(by_halves.max())
    spots = sum(int(depends_on_grouping(fusion).sum()) for fusion in known)
    found = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    are = "decision depends" if spots == 1 else "decisions depend"
    return (
        f"{spots:,} {are} on which images are fused together: {detected:,} structures were detected, but "
        f"{found} where half of the images are fused at a time. Votes alone do not settle these spots; each "
        "says so under its votes. Fuse all images together, add images of the same annotators, and review "
        "these spots."
    )


def run_notices(fusions: Sequence[Fusion]) -> list[str]:
    """Give all notices on a run: see `absence_notice`, `decision_notice`, `score_notice`, `grouping_notice`.

    Parameters
    ----------
    fusions : sequence of Fusion
        Of all images of the run.
    """
    givers = (absence_notice, decision_notice, score_notice, grouping_notice)
    notices = [give(fusions) for give in givers]
    return [notice for notice in notices if notice is not None]


def _content(clicks: Clicks) -> tuple[tuple[str, ...], bytes, bytes]:
    return tuple(sorted(clicks.annotators)), np.sort(clicks.x).tobytes(), np.sort(clicks.y).tobytes()
