"""Likelihood of the expert's decisions, and of the spots that were left without one.

A cluster that looks like a structure with probability `look` is one with probability q = look x h. Experts
err: with a share e of wrong decisions, a cluster is judged a structure with probability t = q + e (1 - 2 q).
Most experts are careful, e ~ Beta(1, 9); the decisions of some are unreliable, e uniform up to `WORST`. So
decisions that contradict the votes often count less for other clusters. How the decided clusters were chosen
does not matter as long as the choice follows the votes ([rubin1976]_). It matters where it follows the truth:
some experts record rejections only, others acceptances only. Of the clusters that the expert looked at, one
that is judged a structure is recorded with probability r, one that is judged none with probability r', so it
is left without a decision with probability 1 - r t - r' (1 - t). Which of the two is how much smaller is
summed over (`HABITS`). With r = r', what was left says nothing.

Clusters that the expert selected are recorded as viewed, but experts also see clusters that they do not
select. They either went through the disputed clusters from the most disputed to the least, of the whole run
or image by image, and looked at all that come before the last decided one; or they chose clusters, disputed
ones or any, and only the record tells what they looked at. The lengths of the descriptions of the decided
clusters say how probable each is. Outcomes that are all the same, and surprising, are a sign that decisions
were recorded by their outcome in some order.

References
----------
.. [rubin1976] D. B. Rubin, "Inference and missing data", Biometrika 63 (1976) 581-592,
   doi:10.1093/biomet/63.3.581.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raterscope.algorithms.clicks._vote_model import Ascent, Problem, looks
from raterscope.algorithms.clicks.data import BoolArray, FloatArray, IntArray

__all__ = ["FEWEST", "Review", "habit_prior", "log_likelihood", "reviews_of", "selected_probability"]

UNRELIABLE = 0.1
"""Prior probability that decisions are unreliable."""

WORST = 0.6
"""Largest share of wrong decisions that is considered. Experts who err much more often than by chance would
explain every long series of decisions against the votes, and the crowd could never be wrong."""

CAREFUL = 1 - (1 - (np.arange(6) + 0.5) / 6) ** (1 / 9)
"""Nodes of the share e of wrong decisions: quantiles of Beta(1, 9)."""

WRONG = np.append(CAREFUL, WORST * (np.arange(4) + 0.5) / 4)
"""Nodes of e, those of unreliable decisions last."""

WRONG_PRIOR = np.append(np.full(6, (1 - UNRELIABLE) / 6), np.full(4, UNRELIABLE / 4))
"""Prior probabilities of the nodes of e."""

RECORDED = np.sqrt((np.arange(5) + 0.5) / 5)
"""Nodes of the larger of r and r': quantiles of Beta(2, 1)."""

HABITS = np.array([[1.0, 1.0], [0.25, 1.0], [1.0, 0.25], [0.02, 1.0], [1.0, 0.02]])
"""Shares of that with which acceptances and rejections are recorded."""

USUAL = np.array([0.5, 0.1, 0.1, 0.15, 0.15])
"""Prior probability of each habit."""

DISPUTED = 0.4
"""Distance of a probability from one half up to which a cluster is disputed."""

RARELY_CHOSEN = 2.0
"""Negative log prior probability that decisions with one outcome were chosen in no order: a queue leads."""

FEWEST_IN_ORDER = 2
"""Decisions from which on they may follow an order: one alone does not tell what was passed before."""

ONE_SIDED = float(np.log(4))
"""Negative log prior probability of the habits that record one outcome, see `USUAL`."""

NEGLIGIBLE = 0.02
"""Probability that the expert passed a cluster from which on it counts as left."""

FEWEST = 2
"""Marks of an accepted cluster from which on the acceptance says something of h. With fewer, the expert
added the cluster, and the votes had no part in it."""


@dataclass(frozen=True, eq=False)
class Review:
    """Clusters of an image that the expert looked at, those alike to within a few percent counted together.

    Attributes
    ----------
    place, look : (K,) float64
        Log odds of the share of votes, and probability of looking like a structure.
    outcome : (K,) int64
        1 where accepted, 0 where rejected, -1 where left without a decision.
    times : (K,) float64
        Clusters of that kind; those left count by the probability that the expert passed them.
    """

    place: FloatArray
    look: FloatArray
    outcome: IntArray
    times: FloatArray


def reviews_of(
    judged: Sequence[tuple[Problem, Ascent]],
    places: Sequence[FloatArray],
    honest: Sequence[FloatArray],
    undecided: Sequence[FloatArray] | None,
) -> tuple[list[Review | None], list[Review | None]]:
    """Gather what the expert looked at on each image; None where nothing was.

    Returns them twice: with the looks that EM gave the clusters before and after the decisions.

    Parameters
    ----------
    judged : sequence of (Problem, Ascent)
    places : sequence of (M,) float64
        Log odds of the share of votes on the clusters of each image.
    honest : sequence of (M,) float64
        Expected h before any decision.
    undecided : sequence of (M,) float64, optional
        Probability that each cluster looks like a structure, had nothing been decided.
    """
    apart = [
        looks(problem, ascent.state, clamped=False)[0].present
        if problem.prior.places and problem.known.any()
        else ascent.looks.present
        for problem, ascent in judged
    ]
    problems = [problem for problem, _ in judged]
    known = [one.known & (one.control is not False) for one in problems]
    looking = apart if undecided is None else undecided
    chance = [look * h for look, h in zip(looking, honest, strict=True)]
    passed = _passed(known, [one.truth for one in problems], chance)
    left = [
        np.where(problem.viewed & ~problem.known, 1.0, one) if problem.viewed is not None else one
        for one, problem in zip(passed, problems, strict=True)
    ]
    before, after = (
        [
            _review(problem, decided, place, look, skipped) if problem.prior.places else None
            for problem, decided, place, look, skipped in zip(
                problems, known, places, looking, left, strict=True
            )
        ]
        for looking in (undecided or apart, apart)
    )
    return before, after


def _review(
    problem: Problem, known: BoolArray, place: FloatArray, look: FloatArray, left: FloatArray
) -> Review | None:
    marked = np.diff(problem.marks_by_cluster.indptr)
    decided = known & ((problem.truth == 0) | (marked >= FEWEST))
    rows = decided | (left > NEGLIGIBLE)
    if not rows.any():
        return None
    outcome = np.where(decided, problem.truth, -1)[rows]
    fine = np.where(outcome < 0, 4, 20)  # what was left weighs less, and there is more of it
    about = np.round(np.column_stack([place[rows] * fine, look[rows] * 5 * fine, outcome]))
    _, first, kind = np.unique(about, axis=0, return_index=True, return_inverse=True)
    times = np.bincount(kind.ravel(), np.where(decided, 1.0, left)[rows]).astype(np.float64)
    return Review(place[rows][first], look[rows][first], outcome[first].astype(np.int64), times)


def _passed(
    known: Sequence[BoolArray], truth: Sequence[FloatArray], chance: Sequence[FloatArray]
) -> list[FloatArray]:
    """Give the probability that the expert passed each cluster, going from the most disputed to the least.

    It is zero for decided clusters. The ways weigh by their description lengths.

    Parameters
    ----------
    known : sequence of (M,) bool
        Clusters of each image that are decided.
    truth : sequence of (M,) float64
        The decisions.
    chance : sequence of (M,) float64
        Probability of a structure before any decision.
    """
    every, distance = np.concatenate(known), [abs(one - 0.5) for one in chance]
    if np.count_nonzero(every) < FEWEST_IN_ORDER:
        return [np.zeros(len(one)) for one in known]
    far, steps = _in_order(every, np.concatenate(distance))
    by_image = [_in_order(*pair) for pair in zip(known, distance, strict=True)]
    through_images = sum(np.log(2) + own for _, own in by_image)
    accepted = np.concatenate(truth)[every] > 0
    chosen = _in_no_order(every, np.concatenate(distance))
    if accepted.all() or not accepted.any():
        likely = np.clip(np.concatenate(chance)[every], 0.02, 0.98)
        surprise = -float(np.log(likely if accepted.all() else 1 - likely).sum())
        chosen += RARELY_CHOSEN + max(surprise - ONE_SIDED, 0.0)
    lengths = np.array([chosen, steps, through_images])
    weight = np.exp(lengths.min() - lengths)
    _, in_run, in_images = weight / weight.sum()
    return [
        np.where(decided, 0.0, in_run * (places <= far) + in_images * (places <= own))
        for decided, places, (own, _) in zip(known, distance, by_image, strict=True)
    ]


def _in_order(known: BoolArray, distance: FloatArray) -> tuple[float, float]:
    """Find how far from one half the expert went, and the description length of what was decided.

    Up to the bound, among the disputed clusters, it says which are decided; decided clusters beyond it are
    named one by one.
    """
    from scipy.special import betaln

    disputed = distance <= DISPUTED
    order = np.argsort(distance[disputed], kind="stable")
    ends = np.flatnonzero(known[disputed][order])
    number = np.arange(len(ends)) + 1.0
    every, named = int(np.count_nonzero(known)), 2 * np.log(len(known) or 1)
    if not len(ends):
        return -np.inf, float(every * named)
    length = (every - number) * named - betaln(number + 1, ends + 1 - number + 1)
    best = int(np.argmin(length))
    bound = np.log(np.count_nonzero(disputed) + 1)
    return float(distance[disputed][order][ends[best]]), float(length[best] + bound)


def _in_no_order(known: BoolArray, distance: FloatArray) -> float:
    """Give the description length of decided clusters that were chosen among all, or among the disputed."""
    from scipy.special import betaln

    disputed = distance <= DISPUTED
    number, total = np.count_nonzero(known), len(known)
    inside, most = np.count_nonzero(known & disputed), np.count_nonzero(disputed)
    among_all = -float(betaln(number + 1, total - number + 1))
    among_disputed = 2 * (number - inside) * np.log(total) - float(betaln(inside + 1, most - inside + 1))
    return float(min(among_all, among_disputed))


def habit_prior(reviews: Sequence[Review | None]) -> FloatArray:
    """Give the log prior probability (H,) of the habits; one for all where nothing was left."""
    if not any((one.outcome < 0).any() for one in reviews if one is not None):
        return np.zeros(1)
    return np.asarray(np.repeat(np.log(USUAL / len(RECORDED)), len(RECORDED)))


def selected_probability(habits: FloatArray) -> float:
    """Give the probability that decisions were recorded by their outcome, from the weights (H,) of habits."""
    if len(habits) == 1:
        return 0.0
    by_habit = habits.reshape(len(HABITS), -1).sum(axis=1)
    return float(1 - by_habit[0] / by_habit.sum())


def log_likelihood(review: Review, level: FloatArray, slope: FloatArray, habits: int) -> FloatArray:
    """Give the log probability of an image's review: (C, B, E, H), with C levels and B slopes.

    Of what was left, wrong decisions are taken at their mean share: they hardly bear on it.
    """
    every = (HABITS[:, None, :] * RECORDED[:, None]).reshape(-1, 2)
    record = every if habits > 1 else np.ones((1, 2))
    decided = np.zeros((len(level), len(slope), len(WRONG), 1))
    left = np.zeros((len(level), len(slope), 1, habits))
    for place, look, outcome, times in zip(
        review.place, review.look, review.outcome, review.times, strict=True
    ):
        chance = (look / (1 + np.exp(-(level[:, None] + slope * place))))[:, :, None, None]
        if outcome < 0:
            judged = chance * (1 - 2 * CAREFUL.mean()) + CAREFUL.mean()
            left += times * np.log1p(-(record[:, 0] * judged + record[:, 1] * (1 - judged)))
        else:
            judged = chance * (1 - 2 * WRONG[:, None]) + WRONG[:, None]
            decided += times * np.log(judged if outcome else 1 - judged)
            left += times * np.log(record[:, 1 - outcome])
    return np.asarray(decided + left)
