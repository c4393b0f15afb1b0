"""Recursive EM as a detector: one EM iteration an annotator (thesis, Algorithm 5), with the model of DEM."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from raterscope.algorithms.clicks._vote_model import Ascent, Looks, Problem, climb, guess
from raterscope.algorithms.clicks.data import ClicksError, IntArray
from raterscope.algorithms.clicks.dem import DEMSettings, judge_alone, problem_of
from raterscope.algorithms.clicks.result import Detection, Votes
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.algorithms.settings import Settings, choice, integer, number

__all__ = ["RecursiveSettings", "carried", "detect_online", "recursive"]


@dataclass(frozen=True)
class RecursiveSettings(Settings):
    """Settings of `recursive` and `detect_online`."""

    recursion: str = choice(
        "renewed", "Recursion", "At each annotator EM goes on from the last posteriors, or from the share of "
        "votes where that explains the votes better, with DEM's priors; as printed from the last posteriors "
        "alone and without priors.",
        {"renewed": "with priors, likelier start", "printed": "as printed"},
    )  # fmt: skip
    first_annotators: int = integer(
        10, "First annotators", "How many are judged together before the others come one by one.",
        minimum=1, advanced=True,
    )  # fmt: skip
    detection_threshold: float = number(
        0.5, "Detection threshold", "A cluster is detected when its posterior reaches this.",
        minimum=0.0, maximum=1.0,
    )  # fmt: skip


def recursive(votes: Votes, settings: RecursiveSettings | None = None, watch: Watch = silent) -> Detection:
    """Decide which clusters are structures in one pass over the annotators, in their order.

    Parameters
    ----------
    votes : Votes
        Of R annotators on M clusters.
    settings : RecursiveSettings, optional
    watch : Watch

    Returns
    -------
    Detection
        `objective` is the log posterior at each annotator's turn.

    Examples
    --------
    >>> from raterscope.algorithms.simulation.click_crowds import voting_crowd
    >>> crowd = voting_crowd(15, 40, seed=1)
    >>> detection = recursive(crowd.votes)
    >>> int((detection.detected == crowd.present).sum())
    39
    """
    settings = RecursiveSettings() if settings is None else settings
    annotators = len(votes.marked)
    first = min(settings.first_annotators, annotators)
    looks, objective = None, []
    for turn in range(first, annotators + 1):
        problem, ascent = _step(_until(votes, turn), looks, settings)
        looks = ascent.looks
        objective.append(ascent.objective[-1])
        done = (turn - first + 1) / (annotators - first + 1)
        watch(0.8 * done, "weighing the votes", objective=ascent.objective[-1])
    ascent = replace(ascent, objective=np.array(objective))
    return _judged(problem, ascent, settings, part(watch, 0.8, 1.0))


def detect_online(
    votes: Votes,
    previous: Looks | None = None,
    settings: RecursiveSettings | None = None,
    watch: Watch = silent,
) -> tuple[Detection, Looks]:
    """Decide anew when votes have come, by one EM iteration from where the last decision stood.

    Parameters
    ----------
    votes : Votes
        All votes so far, of R annotators on M clusters: new annotators, further votes and new clusters cost
        the same.
    previous : Looks, optional
        What the last call gave, brought by `carried` to the clusters of now; None at first.
    settings : RecursiveSettings, optional
    watch : Watch

    Returns
    -------
    detection : Detection
    looks : Looks
        For the next call.

    Raises
    ------
    ClicksError
        When `previous` is of another number of clusters.
    """
    settings = RecursiveSettings() if settings is None else settings
    if previous is not None and len(previous.chance) != votes.marked.shape[1]:
        raise ClicksError(
            f"the last decision was on {len(previous.chance)} clusters; expected {votes.marked.shape[1]}."
        )
    problem, ascent = _step(votes, previous, settings)
    return _judged(problem, ascent, settings, watch), ascent.looks


def carried(previous: Looks, origin: IntArray) -> Looks:
    """Bring looks to other clusters.

    Parameters
    ----------
    previous : Looks
        Of the clusters of before.
    origin : (M,) int64
        For each cluster of now, which one it was; -1 for a new one.

    Returns
    -------
    Looks
        NaN for new clusters.
    """
    parts = (previous.structure, previous.artefact, previous.chance)
    # -1 takes the row that is put last
    return Looks(*(np.concatenate([part, np.full((1, *part.shape[1:]), np.nan)])[origin] for part in parts))


def _until(votes: Votes, turn: int) -> Votes:
    """Return the votes of the first annotators."""
    stray, worth = (None if one is None else one[:turn] for one in (votes.stray, votes.worth))
    return replace(votes, marked=votes.marked[:turn], stray=stray, worth=worth)


def _step(votes: Votes, previous: Looks | None, settings: RecursiveSettings) -> tuple[Problem, Ascent]:
    """Make one EM iteration; but as printed, go on from what explains the votes better."""
    problem = problem_of(votes, _as_dem(settings))
    share = votes.share
    if previous is None:
        return problem, climb(problem, share, 1, 0.0, silent)
    ascent = climb(problem, _renewed(problem, previous, guess(problem, share)), 1, 0.0, silent)
    if settings.recursion == "renewed":
        afresh = climb(problem, share, 2, 0.0, silent)
        ascent = max(ascent, afresh, key=lambda one: one.objective[-1])
    return problem, ascent


def _renewed(problem: Problem, previous: Looks, share: Looks) -> Looks:
    """Put the share of votes where there is no look, and the truth where it is known."""
    same = previous.structure.shape == share.structure.shape
    kept = previous if same else guess(problem, previous.present)  # another prior then
    other = problem.known | np.isnan(previous.chance)
    return Looks(
        np.where(other[:, None], share.structure, kept.structure),
        np.where(other, share.artefact, kept.artefact),
        np.where(other, share.chance, kept.chance),
    )


def _judged(problem: Problem, ascent: Ascent, settings: RecursiveSettings, watch: Watch) -> Detection:
    detection = judge_alone(problem, ascent, {"kept": ascent.state}, _as_dem(settings), watch)
    return replace(detection, converged=True)  # one iteration is all there is


def _as_dem(settings: RecursiveSettings) -> DEMSettings:
    return DEMSettings(
        prior="none" if settings.recursion == "printed" else "crowd",
        detection_threshold=settings.detection_threshold,
    )
