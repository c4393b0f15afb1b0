"""Majority vote and share of votes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raterscope.algorithms.clicks.data import BoolArray, FloatArray
from raterscope.algorithms.clicks.result import Detection, Votes
from raterscope.algorithms.progress import Watch, silent
from raterscope.algorithms.settings import Settings, number, switch

__all__ = ["MajoritySettings", "ShareSettings", "majority", "share"]

EVEN = 1e-9
"""Votes by which sums of weights may miss a bound that they reach."""


@dataclass(frozen=True)
class MajoritySettings(Settings):
    """Settings of `majority`."""

    ties_count: bool = switch(
        True, "Ties count", "Half of the annotators are enough (eq. 33); otherwise more than half are needed."
    )


@dataclass(frozen=True)
class ShareSettings(Settings):
    """Settings of `share`."""

    share: float = number(
        0.2, "Share of votes", "Least share of the annotators who marked it.", minimum=0.0, maximum=1.0
    )


def majority(votes: Votes, settings: MajoritySettings | None = None, watch: Watch = silent) -> Detection:
    """Detect what half of the annotators marked, each by how much he counts (OEM-DEM paper, eq. 33).

    Parameters
    ----------
    votes : Votes
    settings : MajoritySettings, optional
    watch : Watch

    Returns
    -------
    Detection
        The posterior is the share of votes and its interval that of the share (Jeffreys prior). Sensitivities
        and specificities are agreement with the vote.

    Examples
    --------
    >>> from raterscope.algorithms.simulation.click_crowds import voting_crowd
    >>> crowd = voting_crowd(15, 40, seed=1)
    >>> detection = majority(crowd.votes)
    >>> int((detection.detected == crowd.present).sum())
    38
    """
    settings = MajoritySettings() if settings is None else settings
    beyond = 2 * votes.count - votes.crowd
    watch(1.0, "counted the votes")
    return _decided(votes, beyond >= -EVEN if settings.ties_count else beyond > EVEN)


def share(votes: Votes, settings: ShareSettings | None = None, watch: Watch = silent) -> Detection:
    """Detect what a share of the annotators marked, each by how much he counts.

    Parameters
    ----------
    votes : Votes
    settings : ShareSettings, optional
    watch : Watch

    Returns
    -------
    Detection
        As of `majority`.

    Examples
    --------
    >>> from raterscope.algorithms.simulation.click_crowds import voting_crowd
    >>> crowd = voting_crowd(15, 40, seed=1)
    >>> int(share(crowd.votes, ShareSettings(share=0.3)).detected.sum())
    27
    """
    settings = ShareSettings() if settings is None else settings
    watch(1.0, "counted the votes")
    return _decided(votes, votes.count >= settings.share * votes.crowd - EVEN)


def _decided(votes: Votes, enough: BoolArray) -> Detection:
    from scipy.special import betaincinv

    known = votes.verdict >= 0
    present = np.where(known, votes.verdict == 1, enough & (len(votes.marked) > 0))
    count = votes.count
    quiet = np.maximum(votes.crowd - count, 0)
    part = np.where(known, votes.verdict, votes.share).astype(np.float64)
    low, high = (betaincinv(count + 0.5, quiet + 0.5, level) for level in (0.025, 0.975))
    hits = (votes.marked & present).sum(axis=1).astype(np.float64)
    false = (votes.marked & ~present).sum(axis=1).astype(np.float64)
    there, absent = float(present.sum()), float((~present).sum())
    return Detection(
        posterior=part,
        posterior_low=np.where(known, part, np.minimum(low, part)),
        posterior_high=np.where(known, part, np.maximum(high, part)),
        detected=present,
        prevalence=float(present.mean()) if len(present) else np.nan,
        sensitivity=_ratio(hits, there),
        specificity=_ratio(absent - false, absent),
        true_positive=hits,
        false_negative=there - hits,
        true_negative=absent - false,
        false_positive=false,
        objective=np.empty(0),
        converged=True,
    )


def _ratio(part: FloatArray, whole: float) -> FloatArray:
    return part / whole if whole else np.full(len(part), np.nan)
