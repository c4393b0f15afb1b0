"""When a model of the annotators should not be trusted over the vote, and what to do about it."""

from __future__ import annotations

import numpy as np

from raterscope.algorithms.labels.assessment import Assessment, better_than
from raterscope.algorithms.labels.data import OPEN, LabelFusion, Labels
from raterscope.algorithms.labels.intervals import crowd
from raterscope.algorithms.labels.rates import Rates, rates_of
from raterscope.algorithms.labels.tempering import Tempering

__all__ = ["advice"]

_VOTES = ("majority", "weighted-majority", "weighted-sum", "mean-score")
"""These model nothing, so there is nothing to distrust."""

_FEW_VOTES = 3.0
"""Votes a task: two people who disagree cannot be told apart."""

_FEW_ANNOTATORS = 6
_FEW_VOTES_OF_CLASS = 5.0
"""Votes of an annotator for each class: a row of the confusion matrix from fewer is mostly chance."""

_FEW_JUDGED = 20
"""Judged tasks: of fewer, calibration says nothing."""

_TOO_SURE = (0.03, 2.0)
"""Mean probability above the accuracy, and standard errors of it, from which a model is too sure."""

_MODELS = {
    "ibcc": "IBCC",
    "dynibcc": "Dynamic IBCC",
    "gibbs": "Gibbs sampling",
    "ebcc": "EBCC",
    "dawid-skene": "Dawid-Skene",
}
"""Models that take the votes on a task as independent given its class, or its subtype."""

_MEASURED = (
    "on ten real crowds IBCC's probabilities were too high by 0.12 on average, the pooled consensus's by 0.01"
)

_CHANCE = 0.05
"""p-value from which chance may have made the difference between model and vote."""

_CHANGED = (3.0, 0.2)
"""Standard errors between the halves of an annotator's votes, and the share of rates that are beyond."""

_RATES = (5, 5)
"""Rates that are compared, at least, and votes in either half of each."""

_POOLED = "the pooled consensus, which estimates the prior from the crowd"


def advice(
    labels: Labels,
    fusion: LabelFusion,
    model: Assessment | None = None,
    vote: Assessment | None = None,
    tempering: Tempering | None = None,
    rates: Rates | None = None,
) -> tuple[str, ...]:
    """Say in plain sentences what speaks against trusting a fusion, and what would help.

    Looked at are: votes a task; annotators; votes of an annotator for each class; classes that seem to have
    changed places, or annotators who are mostly worse than chance, while no truth is known; rates of right
    votes that differ by more than three standard errors between the first and the second half of an
    annotator's votes on a class, where a fifth of all do (by chance one in 400 does); whether the votes on a
    task depend on each other; whether the iteration ended. Without assessments, a model of independent votes
    is said to be too sure on real crowds. With them: whether the vote has more tasks right (McNemar's exact
    test, 5 %), and whether the mean probability of the most probable classes is above the accuracy (for the
    pooled consensus, below it too).

    Parameters
    ----------
    labels : Labels
        What was fused, its repeated votes settled or not.
    fusion : LabelFusion
    model, vote : Assessment, optional
        Of the fusion and of the majority vote, on the same tasks with a known truth that was kept from both.
    tempering : Tempering, optional
        Of a fusion in which votes count in full.
    rates : Rates, optional
        The annotators', where they are at hand.

    Returns
    -------
    tuple of str
        Empty where nothing speaks against it, and for methods that are votes themselves.
    """
    if fusion.algorithm in _VOTES or not len(labels):
        return ()
    said = []
    if tempering is not None and tempering.dependent:
        said.append(
            "Annotators share mistakes: the votes on a task predict each other best if each is weighted"
            f" {tempering.power:g}. This model counts it in full, and is too sure. Take the pooled consensus,"
            " or let votes count in part."
        )
    elif model is None and fusion.algorithm in _MODELS and fusion.power == 1.0:
        said.append(
            f"{_MODELS[fusion.algorithm]} may be too sure: votes alone do not show whether annotators err"
            f" together, and {_MEASURED}. Take the pooled consensus, or give the truth of some tasks to"
            " measure it."
        )
    said += [*_of_the_truth(model, vote, fusion.algorithm == "pooled"), *_of_little(labels, fusion)]
    if fusion.known.max(initial=OPEN) == OPEN:
        said += _of_swaps(labels, fusion, rates)
    if fusion.drift is None:
        said += _of_change(labels, fusion)
    return tuple(said)


def _of_the_truth(model: Assessment | None, vote: Assessment | None, pooled: bool) -> list[str]:
    if model is None or vote is None:
        return []
    said = []
    ours, theirs, chance = better_than(model, vote)
    remedy = "take the vote" if pooled else f"take the vote, or try {_POOLED}"
    if theirs > ours and chance < _CHANCE:
        said.append(
            f"The vote is right more often than the model, in {vote.accuracy:.1%} against"
            f" {model.accuracy:.1%} of {model.judged:,} tasks, and hardly by chance (p = {chance:.2g}):"
            f" {remedy}."
        )
    mean = _mean_probability(model)
    least, errors = _TOO_SURE
    error = errors * np.sqrt(max(mean * (1 - mean), 1e-4) / model.judged)
    if model.judged >= _FEW_JUDGED and mean - model.accuracy > max(least, error):
        remedy = "hold truths fixed to calibrate it" if pooled else "take the pooled consensus"
        said.append(
            f"The model is too sure, {mean:.1%} on average where {model.accuracy:.1%} of {model.judged:,}"
            f" tasks are right: calibration error {model.calibration.error:.2f}, log loss"
            f" {model.log_loss:.2f} (the vote: {vote.calibration.error:.2f}, {vote.log_loss:.2f}). Trust its"
            f" order of tasks more than its probabilities, or {remedy}."
        )
    elif pooled and model.judged >= _FEW_JUDGED and model.accuracy - mean > max(least, error):
        said.append(
            f"The model is too cautious, {mean:.1%} on average where {model.accuracy:.1%} of"
            f" {model.judged:,} tasks are right: calibration error {model.calibration.error:.2f}. Hold the"
            " known truths fixed, and it becomes surer of tasks that look alike."
        )
    return said


def _mean_probability(model: Assessment) -> float:
    """Give the mean probability of the most probable classes."""
    bins = model.calibration
    filled = bins.count > 0
    return float(bins.posterior[filled] @ bins.count[filled]) / model.judged


def _of_little(labels: Labels, fusion: LabelFusion) -> list[str]:
    votes, given = fusion.votes[fusion.votes > 0], labels.votes_of_annotators()
    given = given[given > 0]
    reasons = []
    each = float(np.median(votes)) if len(votes) else 0.0
    if each < _FEW_VOTES:
        reasons.append(f"most tasks have no more than {each:g} vote{'' if each == 1 else 's'}")
    if len(given) < _FEW_ANNOTATORS:
        reasons.append("there is one annotator" if len(given) == 1 else f"there are {len(given)} annotators")
    of_class = float(np.median(given)) / len(labels.classes) if len(given) else 0.0
    if of_class < _FEW_VOTES_OF_CLASS:
        most = "1 vote" if of_class == 1 else f"{of_class:.2g} votes"
        reasons.append(f"half of the annotators have at most {most} for each class")
    if not reasons:
        return []
    remedy = "" if fusion.algorithm == "pooled" else f" Try {_POOLED}."
    return [
        f"The model has little data: {', '.join(reasons)}. Where it differs from the vote, the vote"
        f" may be right.{remedy}"
    ]


def _of_swaps(labels: Labels, fusion: LabelFusion, rates: Rates | None) -> list[str]:
    assert labels.meaning is not None
    classes = len(labels.classes)
    if classes < 2:
        return []
    stands = labels.meaning[:, None] == np.arange(classes)
    said_of = crowd(fusion.confusion) @ stands
    most = np.where(stands.any(axis=0), said_of.argmax(axis=1), np.arange(classes))
    swapped = [(j, int(most[j])) for j in range(classes) if most[j] > j and most[most[j]] == j]
    if swapped:
        first, second = (labels.classes[j] for j in swapped[0])
        return [
            f"What the model calls {first} most annotators call {second}, and the other way round: these"
            " classes may have changed places. Give the truth of some tasks, or take the vote."
        ]
    votes = labels.votes_of_annotators()
    _, _, high = (rates_of(labels, fusion) if rates is None else rates).accuracies()
    worse = int(((high < 1 / classes) & (votes > 0)).sum())
    if 2 * worse > int((votes > 0).sum()):
        return [
            f"{worse:,} of {int((votes > 0).sum()):,} annotators would be worse than chance: that is more"
            " likely a mistake of the model. Give the truth of some tasks, or take the vote."
        ]
    return []


def _of_change(labels: Labels, fusion: LabelFusion) -> list[str]:
    """Compare the first half of each annotator's votes on each class with the second."""
    assert labels.meaning is not None
    order, classes = labels.in_time(), len(labels.classes)
    annotator = labels.annotator[order].astype(np.int64)
    found = fusion.label()[labels.task[order]]
    right = labels.meaning[labels.label[order]] == found
    cell = annotator * classes + found
    by_cell = np.argsort(cell, kind="stable")
    cells = len(labels.annotators) * classes
    many = np.bincount(cell, minlength=cells)
    start = np.cumsum(many) - many
    late = np.arange(len(cell)) - start[cell[by_cell]] >= many[cell[by_cell]] / 2
    both = cell[by_cell] * 2 + late
    count = np.bincount(both, minlength=2 * cells).reshape(cells, 2)
    hits = np.bincount(both, right[by_cell], minlength=2 * cells).reshape(cells, 2)
    least, votes = _RATES
    tried = count.min(axis=1) >= votes
    count, hits = count[tried], hits[tried]
    share = hits.sum(axis=1) / count.sum(axis=1)
    varying = (share > 0) & (share < 1)
    count, hits, share = count[varying], hits[varying], share[varying]
    error = np.sqrt(share * (1 - share) * (1 / count).sum(axis=1))
    beyond, often = _CHANGED
    changed = np.abs(hits[:, 1] / count[:, 1] - hits[:, 0] / count[:, 0]) > beyond * error
    if len(changed) < least or changed.mean() < often:
        return []
    remedy = "take the dynamic model"
    if len(labels.classes) == 2 and fusion.known.max(initial=OPEN) == OPEN:
        remedy += " and give the truth of some tasks, without which two classes can mislead it as well"
    return [
        f"Annotators change: {changed.mean():.0%} of their rates of right votes differ between the first and"
        f" the second half of their votes, far beyond chance, and the model takes them as fixed: {remedy}."
    ]
