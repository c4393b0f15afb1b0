"""Active learning: the image and the annotator whose clicks would correct most decisions.

A decision is wrong where a structure is not detected, or a detection is none. An annotator sets right what
the votes were in doubt about, and finds with others what nobody had found; his stray clicks make wrong
detections besides. All three are expected from his rates, as other images tell them, and from what is held
of the image, see `raterscope.algorithms.clicks.stopping`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from raterscope.algorithms.clicks._prospects import (
    Crowd,
    Newcomers,
    Outset,
    after_marks,
    ahead,
    outset_of,
    rates_at,
)
from raterscope.algorithms.clicks.data import Clicks, FloatArray, IntArray
from raterscope.algorithms.clicks.experience import Experience, advice_for
from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.clicks.stopping import DetectionPlan, crowd_on, newcomers_of, threshold_of
from raterscope.algorithms.progress import Watch, silent

__all__ = ["NextAnnotators", "NextImages", "next_images", "whom_to_ask"]

FAIR = 20.0
"""Marks with which an annotator's stray clicks are drawn to what is usual."""


DOUBT = 5.0
"""Votes with which an annotator is held for usual."""


@dataclass(frozen=True, eq=False)
class NextAnnotators:
    """C annotators who may be asked to look at an image, the most telling first.

    Attributes
    ----------
    annotators : tuple of C names
    gain : (C,) float64
        Wrong decisions that the clicks of each are expected to set right.
    sensitivity : (C,) float64
        Expected on this image.
    reliability : (C,) float64
        Expected share of marks that are part of a cluster.
    images : int
        That this is known from.
    gain_of_new : float
        What somebody new would set right, who is like the annotators of this image.
    """

    annotators: tuple[str, ...]
    gain: FloatArray
    sensitivity: FloatArray
    reliability: FloatArray
    images: int
    gain_of_new: float

    def __len__(self) -> int:
        return len(self.annotators)

    def why(self, row: int) -> str:
        """State in a sentence what an annotator is expected to do."""
        gain = self.gain[row]
        decisions = "decision" if f"{gain:.1f}" == "1.0" else "decisions"
        return (
            f"Marks {100 * self.sensitivity[row]:.0f} % of the structures, and "
            f"{100 * self.reliability[row]:.0f} % of the marks meet those of others; expected to set right "
            f"{gain:.1f} {decisions}, somebody new {self.gain_of_new:.1f}."
        )


@dataclass(frozen=True, eq=False)
class NextImages:
    """M images, the one that needs the next annotator most first.

    Attributes
    ----------
    image : (M,) int64
    gain : (M,) float64
        Wrong decisions that the next annotator, whoever it is, is expected to set right.
    """

    image: IntArray
    gain: FloatArray


def whom_to_ask(
    clicks: Clicks,
    fusion: Fusion,
    plan: DetectionPlan,
    experience: Experience,
    annotators: Collection[str] | None = None,
    watch: Watch = silent,
) -> NextAnnotators:
    """Rank the annotators who may look at an image next.

    How able an annotator is on other images is known relative to the others; those of them who have looked at
    this one say how easy it is. Of whom little is known, he is held for usual.

    Parameters
    ----------
    clicks : Clicks
        On the image so far; who has looked at it is not asked again.
    fusion : Fusion
    plan : DetectionPlan
    experience : Experience
        What other images say.
    annotators : collection of str, optional
        Who may be asked; by default all whom `experience` knows.
    watch : Watch

    Returns
    -------
    NextAnnotators
    """
    seen = frozenset(clicks.annotators)
    free = [
        name
        for name in experience.annotators
        if name not in seen and (annotators is None or name in annotators)
    ]
    crowd, threshold = crowd_on(clicks, fusion, plan.detection), threshold_of(plan.detection)
    outset = outset_of(crowd, fusion, 1)
    asked = _known(crowd, clicks.annotators, free, experience)
    gain = np.zeros(len(free))
    for row in range(len(free)):
        one = Newcomers(asked.rate[row : row + 1], asked.stray[row : row + 1])
        gain[row] = _gain(crowd, outset, one, threshold)
        watch((row + 1) / len(free), "weighing annotators")
    order = np.argsort(-gain, kind="stable")
    ranked = tuple(free[one] for one in order)
    return NextAnnotators(
        annotators=ranked,
        gain=gain[order],
        sensitivity=asked.rate[order] @ crowd.state.share,
        reliability=_reliability(ranked, experience),
        images=experience.images,
        gain_of_new=_gain(crowd, outset, newcomers_of(crowd, 1), threshold),
    )


def next_images(
    clicks: Sequence[Clicks], fusions: Sequence[Fusion], plan: DetectionPlan, watch: Watch = silent
) -> NextImages:
    """Rank images by what one more annotator would set right.

    Parameters
    ----------
    clicks : sequence of Clicks
    fusions : sequence of Fusion
        Of each.
    plan : DetectionPlan
    watch : Watch
    """
    gain = np.zeros(len(fusions))
    threshold = threshold_of(plan.detection)
    for row, (own, fusion) in enumerate(zip(clicks, fusions, strict=True)):
        crowd = crowd_on(own, fusion, plan.detection)
        gain[row] = _gain(crowd, outset_of(crowd, fusion, 1), newcomers_of(crowd, 1), threshold)
        watch((row + 1) / len(fusions), "weighing images")
    order = np.argsort(-gain, kind="stable").astype(np.int64)
    return NextImages(order, gain[order])


def _known(crowd: Crowd, here: Sequence[str], names: Sequence[str], experience: Experience) -> Newcomers:
    """Carry over to an image what is known of annotators from others."""
    prior = crowd.problem.prior
    own, there = advice_for(prior, here, experience), advice_for(prior, names, experience)
    worth = crowd.problem.worth
    trust = worth * own.votes * own.seen / (own.votes + own.seen)
    ease = float(trust @ (crowd.state.odds - own.odds)) / (float(trust.sum()) + 1)
    usual = float(np.average(crowd.state.odds, weights=worth)) if len(here) else ease
    trust = there.votes * there.seen / (there.votes + there.seen)
    odds = (trust * (there.odds + ease) + DOUBT * usual) / (trust + DOUBT)
    stray = newcomers_of(crowd, 1).stray * (1 - _reliability(names, experience)) / _usual_share(experience)
    return Newcomers(rates_at(odds, prior.shift), np.minimum(stray, 0.5))


def _reliability(names: Sequence[str], experience: Experience) -> FloatArray:
    """Return the expected share of an annotator's marks that are part of a cluster."""
    rows = experience.rows(names)
    inliers, outliers = experience.inliers[rows], experience.outliers[rows]
    return np.asarray(1 - (outliers + FAIR * _usual_share(experience)) / (inliers + outliers + FAIR))


def _usual_share(experience: Experience) -> float:
    """Return the share of all marks that are part of no cluster, half a mark added to both kinds."""
    return float(
        (experience.outliers.sum() + 0.5) / (experience.inliers.sum() + experience.outliers.sum() + 1)
    )


def _risk(crowd: Crowd, posterior: FloatArray) -> FloatArray:
    """Return the chance that each cluster's decision is wrong; none where the truth is known."""
    known = crowd.problem.known.reshape(-1, *[1] * (posterior.ndim - 1))
    return np.where(known, 0.0, np.minimum(posterior, 1 - posterior))


def _gain(crowd: Crowd, outset: Outset, newcomer: Newcomers, threshold: float) -> float:
    """Return the wrong decisions that a newcomer is expected to set right, less those that he makes."""
    come, posterior = after_marks(crowd, newcomer)
    before = _risk(crowd, crowd.posterior).sum()
    after = (come * _risk(crowd, posterior)).sum()
    found = ahead(crowd, outset, newcomer, threshold)
    return float(before - after + found.structures - found.meetings)
