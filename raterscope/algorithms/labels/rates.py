"""Annotators' confusion matrices and accuracies with calibrated intervals, from any consensus.

Votes are counted by the consensus, and each row is shrunk towards a prior estimated from the crowd: a skill
for every annotator, an accuracy for every class, and the usual confusions (a hierarchical model as in
[carpenter2008]_). This allows estimating a 30 by 30 matrix from 100 votes.

References
----------
.. [carpenter2008] B. Carpenter, "Multilevel Bayesian models of categorical data annotation", Technical
   report, Alias-i (2008).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.statistics import beta_interval, beta_quantile
from raterscope.algorithms.array_operations import ROWS_AT_ONCE, sum_rows
from raterscope.algorithms.labels.crowd_votes import LastAnswers, class_votes, weighted_counts
from raterscope.algorithms.labels.data import (
    OPEN,
    Confusion,
    FloatArray,
    LabelFusion,
    Labels,
    distinct,
    has_own_matrices,
    repeated,
)
from raterscope.algorithms.labels.sharpening import information_on_power
from raterscope.algorithms.progress import Watch, parts_of, run_parts, silent


def credible(confusion: Confusion, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
    """Return the credible interval of every entry of every confusion matrix.

    One entry of a Dirichlet distributed row has a Beta distribution with parameters alpha_jl and sum_m
    alpha_jm - alpha_jl; the interval has equal tails.

    `level`: probability of the interval, between 0 and 1. Both ends have shape (K, J, L); with a single
    output they are 1.
    """
    alpha = confusion.alpha
    rest = alpha.sum(axis=2, keepdims=True) - alpha
    return beta_interval(alpha, rest, level)


def crowd_confusion(confusion: Confusion) -> FloatArray:
    """Return the confusion matrix of the crowd, (J, L): all annotators' expected counts and one prior."""
    pooled = confusion.counts().sum(axis=0) + confusion.prior
    return np.asarray(pooled / pooled.sum(axis=1, keepdims=True))


_LEVEL = 0.95

_VOTES = 1_000_000
"""Number of votes whose weights are in memory at a time."""

_STRENGTHS: tuple[float, ...] = tuple(2.0 ** (step / 2) for step in range(-2, 5))
"""Grid of the weight of a row's prior, in votes. More than 4 made intervals too narrow."""

_SKILLS: tuple[float, ...] = tuple(2.0 ** (step / 2) for step in range(23))
"""Grid of the weight of the crowd's accuracy, in votes, with a log-normal prior around 8 (deviation 1.5)."""

_USUAL_SKILL, _SKILL_SPREAD = 8.0, 1.5

_ACCURACY_VOTES = 1.0
"""Weight of the crowd's accuracy in a reported accuracy, in votes. The posterior already shrinks the expected
correct votes to the crowd. With more shrinkage, good annotators seemed worse and bad annotators better.
"""

_OVERLAP = 20
"""Minimum number of tasks with several votes or a known class for identifying rates."""

_LOOKED_AT = 5_000
"""Maximum number of annotators, and of rows of matrices, for estimating the prior."""

_CLASS_WEIGHT, _WRONG_WEIGHT, _OWN_WEIGHT = 10.0, 5.0, 10.0
"""Shrinkage, in votes: of a class's accuracy to the crowd's, of mistakes in a class to the use of labels, and
of an annotator's mistakes to the crowd's.
"""

_MOST = 0.995

SPREAD = 0.75
"""Standard deviation of the logarithm of the power that would calibrate a crowd's consensus, and of a class's
log odds. Over ten public crowds both are 0.4 with mean 0, over simulated crowds 0.9 (mean 0.4) and 0.45. The
value for the power lies between the two; with it, intervals by IBCC, whose consensus is more certain, also
have their nominal coverage.
"""

_MIN_SPREAD = 0.25
"""Standard deviation of the logarithm of the power if no task is uncertain.

It grows with the mean entropy of the tasks: on ten public crowds the error of accuracies, relative to their
derivative by the power, was 0.2 to 0.5 in the four crowds with the lowest entropy (up to 0.3 of the maximum),
and 0.3 to 1.0 in the others (0.4 to 0.7)."""

_ENTROPIES = 100_000
"""Maximum number of tasks for the mean entropy; of more, a sample is used."""

_WIDENED = 2.5
"""Total number of votes by which the intervals of a row are widened, each by half a vote at most."""


@dataclass(frozen=True, eq=False)
class Rates:
    """Confusion matrices and accuracies of K annotators, with their uncertainty.

    With very many classes all annotators have the counts of the crowd; see `has_own_matrices`.
    """

    counts: FloatArray  # (K, J, L): votes weighted by the probability Q of the class
    # doubt, shift: (K, J, L): variance of the counts due to independent errors of the labels, and derivative
    # of the counts by the logarithm of the power of the posterior; see `estimate_rates`
    doubt: FloatArray
    shift: FloatArray
    prior: FloatArray  # (K, J, L): expected probabilities without the annotator's own row
    strength: float  # weight of `prior`, in votes
    # (K,): number of votes that count: for annotators who change, those for the moment in question
    votes: FloatArray
    given: FloatArray  # (K,): number of all votes of the annotator
    # right, right_doubt, right_shift: (K,): expected number of correct votes, its variance (due to errors
    # that annotators do not share) and its derivative, as for the counts
    right: FloatArray
    right_doubt: FloatArray
    right_shift: FloatArray
    # tuple of two floats: the crowd's accuracy, and its weight in votes
    skill: tuple[float, float]
    # standard deviation of the logarithm of the power for accuracies, the part common to annotators
    spread: float = SPREAD
    time: str = "all votes"  # the time that the rates refer to: "all votes" or "the last vote"
    # (K,): number of correct votes expected by D, the centre of the interval of an accuracy; None if equal to
    # `right`; see `estimate_rates`
    likely_right: FloatArray | None = None
    identified: bool = True  # whether the votes show how often they are right; see `is_identified`

    @cached_property
    def mean(self) -> FloatArray:
        """Expected probabilities of the outputs, (K, J, L)."""
        counts, prior = distinct(self.counts), distinct(self.prior)
        total = counts.sum(axis=2, keepdims=True) + self.strength
        return repeated((counts + self.strength * prior) / total, len(self.counts))

    def interval(self, level: float = _LEVEL, *, interpolated: bool = False) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the interval of every entry, two (K, J, L); see `beta_quantile`.

        The variance has three parts: sampling, independent errors of the labels, and common errors: a
        consensus that is too certain or uncertain, or that prefers or neglects the class. The interval is
        that of a Beta distribution with this mean and variance, widened by half a vote ([clopper1934]_), or
        by less if there are more than five outputs.

        References
        ----------
        .. [clopper1934] C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits
           illustrated in the case of the binomial", Biometrika 26 (1934) 404-413,
           doi:10.1093/biomet/26.4.404.
        """
        mean, doubt, shift = (distinct(values) for values in (self.mean, self.doubt, self.shift))
        if not self.identified:
            low, high = np.zeros(mean.shape), np.ones(mean.shape)
            return repeated(low, len(self.counts)), repeated(high, len(self.counts))
        total = distinct(self.counts).sum(axis=2, keepdims=True) + self.strength
        variance = mean * (1 - mean) / (total + 1) + label_doubt(mean, doubt, shift) / np.square(total)
        half = min(0.5, _WIDENED / mean.shape[2])
        low, high = _widened_interval(mean, variance, total, level, half, interpolated=interpolated)
        return repeated(low, len(self.counts)), repeated(high, len(self.counts))

    @property
    def shared(self) -> bool:
        """Whether all annotators have the crowd's matrix, as with very many classes."""
        return len(distinct(self.counts)) < len(self.counts)

    @cached_property
    def accuracy(self) -> FloatArray:
        """Expected share of correct votes of each annotator, (K,)."""
        centre, strength = self.skill
        return np.asarray((self.right + centre * strength) / (self.votes + strength))

    def accuracy_interval(self) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the 95 % interval of every accuracy, two (K,).

        It is that of the accuracy by D, extended to contain the accuracy by the posterior.
        """
        total = self.votes + self.skill[1]
        mean = self._likely_accuracy
        spread = self.right_doubt + np.square(self.spread * self.right_shift)
        variance = mean * (1 - mean) / (total + 1) + spread / np.square(total)
        low, high = _widened_interval(mean, variance, total, _LEVEL, 0.5)
        return np.minimum(low, self.accuracy), np.maximum(high, self.accuracy)

    @property
    def _likely_accuracy(self) -> FloatArray:
        centre, strength = self.skill
        right = self.right if self.likely_right is None else self.likely_right
        return np.asarray((right + centre * strength) / (self.votes + strength))

    def accuracies(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return every annotator's accuracy with its interval, three (K,)."""
        return self._accuracies

    @cached_property
    def _accuracies(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        return (self.accuracy, *self.accuracy_interval())

    def chosen(self, annotators: NDArray[np.integer]) -> Rates:
        """Return the rates of some annotators separately."""
        return Rates(
            _of(self.counts, annotators), _of(self.doubt, annotators), _of(self.shift, annotators),
            _of(self.prior, annotators), self.strength,
            self.votes[annotators], self.given[annotators], self.right[annotators],
            self.right_doubt[annotators], self.right_shift[annotators], self.skill, self.spread, self.time,
            None if self.likely_right is None else self.likely_right[annotators], self.identified,
        )  # fmt: skip

    def together(self, annotators: NDArray[np.integer]) -> Rates:
        """Combine several annotators into one: K is 1.

        The accuracy is their mean, weighted by votes, so that the accuracies of groups average to the
        crowd's.
        """
        if len(annotators) == 1:
            return self.chosen(annotators)
        used = np.zeros(len(self.votes))
        used[annotators] = 1.0
        votes = np.array([used @ self.votes])
        # Summed by matrix products, because a copy of the chosen matrices could be large.
        weight = used * self.given if used @ self.given > 0 else used
        mean, likely = (
            float(np.average(values, weights=weight)) if weight.any() else self.skill[0]
            for values in (self.accuracy, self._likely_accuracy)
        )
        prior = np.full((1, *self.prior.shape[1:]), 1 / self.prior.shape[2])
        if self.shared:
            prior = self.prior[:1]
        elif weight.any():
            prior = np.tensordot(weight / weight.sum(), self.prior, axes=(0, 0))[None]
        centre, strength = self.skill
        counts, doubt, shift = (
            values[:1] if self.shared else np.tensordot(used, values, axes=(0, 0))[None]
            for values in (self.counts, self.doubt, self.shift)
        )
        return Rates(
            counts, doubt, shift, prior, self.strength, votes,
            np.array([used @ self.given]), mean * (votes + strength) - centre * strength,
            np.array([used @ self.right_doubt]), np.array([used @ self.right_shift]), self.skill, self.spread,
            self.time, None if self.likely_right is None else likely * (votes + strength) - centre * strength,
            self.identified,
        )  # fmt: skip


def is_identified(labels: Labels) -> bool:
    """Return whether enough tasks have several votes or a known class for estimating accuracies."""
    votes = labels.votes_of_tasks()
    shown = (votes > 1) | ((votes > 0) & (labels.known_classes() > OPEN))
    return int(shown.sum()) >= min(_OVERLAP, int(np.count_nonzero(votes)))


def label_doubt(mean: FloatArray, doubt: FloatArray, shift: FloatArray) -> FloatArray:
    """Return the variance of counts around a row's mean due to errors of the labels; see `Rates`.

    All have shape (..., J, L).
    """
    other = sum_rows(doubt, keepdims=True) - doubt
    spread = doubt * np.square(1 - mean) + other * np.square(mean)
    for change in (shift, doubt):  # `doubt` is the derivative by the log-odds of the class
        spread += np.square(SPREAD * (change - mean * sum_rows(change, keepdims=True)))
    return np.asarray(spread)


def fold_rates(rates: Rates, parent: NDArray[np.integer]) -> Rates:
    """Sum the classes of each parent, and their outputs.

    `rates`: rates of one annotator, or of several together: K is 1. `parent`: (J,), parent of each class.
    """
    children = (parent[:, None] == np.arange(int(parent.max()) + 1)).astype(np.float64)
    counts, doubt, shift = (
        children.T @ values[0] @ children for values in (rates.counts, rates.doubt, rates.shift)
    )
    weight = children * (rates.counts[0].sum(axis=1) + 1e-3)[:, None]
    prior = (weight / weight.sum(axis=0)).T @ rates.prior[0] @ children
    return replace(rates, counts=counts[None], doubt=doubt[None], shift=shift[None], prior=prior[None])


def _of(values: FloatArray, annotators: NDArray[np.integer]) -> FloatArray:
    own = distinct(values)
    if len(own) == len(values):
        return np.asarray(values[annotators])
    return repeated(own, len(annotators))


def rates_of(
    labels: Labels, fusion: LabelFusion, excluded: Labels | None = None, watch: Watch = silent
) -> Rates:
    """Estimate every annotator's rates from a result; see `estimate_rates`.

    For a dynamic model they apply to each annotator's last vote: the last matrix gives the number of votes of
    each class that still count.

    `labels`: input of the fusion; repeated votes all count. `excluded`: the excluded votes, with the same
    tasks and annotators. Excluded annotators are compared with the consensus of the others.
    """
    last = None if fusion.drift is None else fusion.confusion.counts()

    def estimate() -> Rates:
        known = replace(labels, known=fusion.known)
        return estimate_rates(
            known, fusion.posterior, excluded=excluded, last=last, calibrated=fusion.algorithm == "pooled",
            watch=watch,
        )  # fmt: skip

    if excluded is not None:
        return estimate()
    return _ESTIMATED.find(labels, fusion.posterior, estimate)


_ESTIMATED: LastAnswers[Rates] = LastAnswers()
"""Cache for communities, files and advice, which need the same rates."""


def estimate_rates(
    labels: Labels,
    posterior: FloatArray,
    *,
    excluded: Labels | None = None,
    last: FloatArray | None = None,
    calibrated: bool = False,
    watch: Watch = silent,
) -> Rates:
    """Estimate annotators' confusion matrices and accuracies, given the probabilities of the classes.

    With N_kjl the votes l of annotator k weighted by class j, skill_k the share of correct votes shrunk to
    the crowd's by a beta-binomial model, and A_j a class's share of correct votes, the prior of row j has
    logit d_kj = logit A_j + logit skill_k - logit mean A on its diagonal. The rest is distributed like the
    crowd's and the annotator's own mistakes. The prior has a weight of c votes, a maximum likelihood estimate
    (Dirichlet multinomial) from the crowd.

    Labels are wrong independently of each other by their probabilities D. They are also wrong together: D
    would be calibrated if raised to a power whose logarithm differs between crowds, with a standard deviation
    of `SPREAD`. The derivative of D by it is D (ln D - mean ln D). D is the posterior of the pooled
    consensus. Other models of crowds are overconfident; D is then the mean of the posterior and the smoothed
    vote. The interval of an accuracy is then centred on the correct votes expected by D; an interval around
    those of the posterior would count the overconfidence twice. For accuracies the deviation follows from the
    tasks' mean entropy: if few tasks are uncertain, powers differ less. Half of its variance is independent
    between annotators, and averages out in groups. Known classes reduce the other half by the information of
    their votes on the power.

    `posterior`: (N, J), 0 and 1 where the class is known.
    `excluded`: votes of excluded annotators; the prior is not estimated from them.
    `last`: (K, J, L), counts that replace the votes', for annotators who change; excluded annotators keep all
        their votes.
    `calibrated`: whether the posterior is that of the pooled consensus.
    Annotators without votes have the crowd's rates.
    """
    assert labels.meaning is not None
    means_class = labels.meaning[None, :] == np.arange(len(labels.classes))[:, None]
    every = labels if excluded is None else _joined(labels, excluded)
    own = last is not None or has_own_matrices(every)
    counted = every if own else every.together()
    votes = votes_given = every.votes_of_annotators().astype(np.float64)
    chance = posterior if calibrated else smoothed_posterior(labels, posterior)

    def sums(at: int, _: int) -> tuple[FloatArray, FloatArray]:
        weight = (lambda: posterior, lambda: chance * (1 - chance), lambda: power_derivative(chance))[at]()
        counts = weighted_counts(counted, weight)
        return counts, diagonal_sums(labels, counts) if own else sum_of_meant(every, weight)

    (counts, right), (doubt, right_doubt), (shift, right_shift) = run_parts(
        sums, parts_of(3, 1), partial(watch, 0.0, "counting votes")
    )
    likely_right = None if calibrated else sum_of_meant(every, chance)
    own_spread, spread = _power_spreads(labels, chance)
    given = counts.sum(axis=2, keepdims=True)
    expected = given if calibrated else weighted_counts(counted, chance).sum(axis=2, keepdims=True)
    if last is not None:
        # Past votes count by the number of votes in the model's last matrix.
        kept = last.sum(axis=2, keepdims=True) / np.maximum(counts.sum(axis=2, keepdims=True), 1e-9)
        kept = np.minimum(kept, 1.0)
        mixture = counts.sum(axis=2) / np.maximum(votes[:, None], 1e-9)
        row = np.maximum(last.sum(axis=2), 1e-9)
        share = (mixture * (last * means_class).sum(axis=2) / row).sum(axis=1)
        now = last.sum(axis=(1, 2))
        part_of = np.minimum(now / np.maximum(votes, 1e-9), 1.0)
        # A dynamic model has no drift of excluded annotators: all of their votes count.
        took_part = labels.votes_of_annotators() > 0
        rows = took_part[:, None, None]
        counts = np.where(rows, last, counts)
        doubt, shift = (np.where(rows, values * kept, values) for values in (doubt, shift))
        right_doubt, right_shift = (
            np.where(took_part, values * part_of, values) for values in (right_doubt, right_shift)
        )
        if likely_right is not None:  # overconfident at the last vote as over all votes
            likely = np.minimum(share * likely_right / np.maximum(right, 1e-9), 1.0)
            likely_right = np.where(took_part, likely * now, likely_right)
        votes, right = np.where(took_part, now, votes), np.where(took_part, share * now, right)
    voted = labels.votes_of_annotators() > 0
    watch(0.6, "estimating the crowd's prior")
    skill = _skill(right[voted], votes[voted])
    if own:
        prior = _prior(counts, means_class, voted, (right + skill[0] * skill[1]) / (votes + skill[1]))
        watch(0.8, "estimating the crowd's prior")
        strength = _strength(counts[voted], prior[voted])
    else:
        prior = _prior(counts, means_class, np.array([True]), np.array([skill[0]]))
        strength = _STRENGTHS[-1]
        counts, doubt, shift, prior, given, expected = (
            repeated(values, len(votes)) for values in (counts, doubt, shift, prior, given, expected)
        )
    if not calibrated:  # the errors are those of the counts by D, with more tasks of rare classes
        doubt, shift = (values * ((given + strength) / (expected + strength)) for values in (doubt, shift))
    right_doubt = right_doubt + np.square(own_spread * right_shift)
    return Rates(
        counts, doubt, shift, prior, strength, votes, votes_given, right, right_doubt, right_shift,
        (skill[0], _ACCURACY_VOTES), spread,
        "all votes" if last is None else "the last vote", likely_right, is_identified(labels),
    )  # fmt: skip


def _joined(labels: Labels, excluded: Labels) -> Labels:
    return Labels(
        task=np.concatenate([labels.task, excluded.task]),
        annotator=np.concatenate([labels.annotator, excluded.annotator]),
        label=np.concatenate([labels.label, excluded.label]),
        tasks=labels.tasks,
        annotators=labels.annotators,
        outputs=labels.outputs,
        classes=labels.classes,
        meaning=labels.meaning,
    )


def sum_of_meant(labels: Labels, weight: FloatArray) -> FloatArray:
    """Sum the weight, (N, J) of tasks, of the class that each vote represents, by annotator, (K,)."""
    assert labels.meaning is not None
    total = np.zeros(len(labels.annotators))
    for first in range(0, len(labels), _VOTES):
        votes = slice(first, first + _VOTES)
        meant = labels.meaning[labels.label[votes]]
        values = np.where(meant >= 0, weight[labels.task[votes], meant], 0.0)
        total += np.bincount(labels.annotator[votes], values, minlength=len(total))
    return total


def diagonal_sums(labels: Labels, counts: FloatArray) -> FloatArray:
    """Sum the counts, (K, J, L), of the outputs that represent the class, by annotator, (K,)."""
    assert labels.meaning is not None
    used = np.flatnonzero(labels.meaning >= 0)
    return np.asarray(counts[:, labels.meaning[used], used].sum(axis=1))


def power_derivative(chance: FloatArray) -> FloatArray:
    """Return the derivative of normalised powers of probabilities by the power's logarithm, at power 1."""
    derivative = np.empty(chance.shape)
    for begin, end in parts_of(len(chance), ROWS_AT_ONCE):
        share, logs = chance[begin:end], derivative[begin:end]
        np.log(np.maximum(share, 1e-12), out=logs)
        logs -= sum_rows(share * logs, keepdims=True)
        logs *= share
    return derivative


def _power_spreads(labels: Labels, chance: FloatArray) -> tuple[float, float]:
    """Return the deviations of the power's logarithm for accuracies: of each annotator, and common to all."""
    voted, known = labels.votes_of_tasks() > 0, labels.known_classes() > OPEN
    judged, others = np.flatnonzero(voted & known), np.flatnonzero(voted & ~known)
    others = others[:: -(-len(others) // _ENTROPIES) or 1]
    entropy = information = 0.0
    if len(others) and chance.shape[1] > 1:
        share = np.maximum(chance[others], 1e-12)
        entropy = -float(sum_rows(share * np.log(share)).mean()) / np.log(labels.used_classes().sum())
    if len(judged) and len(others):
        vote = class_votes(labels) + 1 / chance.shape[1]
        vote /= sum_rows(vote, keepdims=True)
        information = information_on_power(vote[judged], vote[others])
    variance = (_MIN_SPREAD**2 + entropy**2) / 2
    return float(np.sqrt(variance)), float(np.sqrt(variance / (1 + information * variance)))


def smoothed_posterior(labels: Labels, posterior: FloatArray) -> FloatArray:
    """Return the mean of the posterior and the vote, smoothed by the classes' shares; known tasks fixed."""
    assert labels.meaning is not None
    mean = class_votes(labels).astype(np.float64)
    votes = sum_rows(mean, keepdims=True)
    mean += posterior.sum(axis=0) / max(len(posterior), 1)
    mean /= votes + 1
    mean += posterior
    mean /= 2
    if labels.known is not None:
        fixed = np.flatnonzero(labels.known > OPEN)
        mean[fixed] = posterior[fixed]
    return labels.keep_to_sets(mean)


def _skill(right: FloatArray, votes: FloatArray) -> tuple[float, float]:
    """Fit a beta-binomial distribution to the annotators' correct votes: its mean and pseudo-counts."""
    from scipy.special import betaln, expit, logit

    if not len(votes):
        return 0.5, _USUAL_SKILL
    step = slice(None, None, -(-len(votes) // _LOOKED_AT))
    right, wrong = right[step], np.maximum(votes[step] - right[step], 0.0)
    middle = logit(np.clip(right.sum() / max(float(votes[step].sum()), 1e-9), 0.02, 0.98))
    best, best_skill = -np.inf, (0.5, _USUAL_SKILL)
    for centre in expit(middle + np.linspace(-0.9, 0.9, 7)).tolist():
        for strength in _SKILLS:
            first, second = strength * centre, strength * (1 - centre)
            value = float((betaln(first + right, second + wrong) - betaln(first, second)).sum())
            value -= 0.5 * (np.log(strength / _USUAL_SKILL) / _SKILL_SPREAD) ** 2
            if value > best:
                best, best_skill = value, (centre, strength)
    return best_skill


def _prior(
    counts: FloatArray, means_class: NDArray[np.bool_], voted: NDArray[np.bool_], skill: FloatArray
) -> FloatArray:
    """Return the prior mean of every row, (K, J, L)."""
    from scipy.special import expit, logit

    classes, outputs = means_class.shape
    crowd = counts[voted].sum(axis=0)
    total = crowd.sum(axis=1)
    mean = float((crowd * means_class).sum() + 1) / float(total.sum() + 2)
    of_class = ((crowd * means_class).sum(axis=1) + _CLASS_WEIGHT * mean) / (total + _CLASS_WEIGHT)
    lowest = 0.05 if classes == 2 else 0.2 / classes
    ends = (lowest, _MOST)
    shift = logit(np.clip(skill, *ends))[:, None] - logit(np.clip(mean, *ends))
    diagonal = np.clip(expit(logit(np.clip(of_class, *ends)) + shift), *ends)
    diagonal = np.where(means_class.all(axis=1), 1.0, np.where(means_class.any(axis=1), diagonal, 0.0))
    use = (crowd.sum(axis=0) + 1) / (crowd.sum() + outputs)
    usual = np.where(means_class, 0.0, crowd + _WRONG_WEIGHT * classes * use)
    usual /= np.maximum(usual.sum(axis=1, keepdims=True), 1e-300)
    own = np.where(means_class, 0.0, counts).sum(axis=1)
    wrong = np.where(means_class, 0.0, _OWN_WEIGHT * usual + own[:, None, :])
    wrong /= np.maximum(wrong.sum(axis=2, keepdims=True), 1e-300)
    right = np.where(means_class, crowd + use, 0.0)
    right /= np.maximum(right.sum(axis=1, keepdims=True), 1e-300)
    return np.asarray((1 - diagonal)[:, :, None] * wrong + diagonal[:, :, None] * right)


def _strength(counts: FloatArray, prior: FloatArray) -> float:
    """Return the maximum likelihood strength of the rows' prior."""
    from scipy.special import gammaln

    outputs = counts.shape[2]
    rows, centre = counts.reshape(-1, outputs), prior.reshape(-1, outputs)
    many = rows.sum(axis=1)
    seen = np.flatnonzero(many >= 1.0)
    seen = seen[:: max(1, -(-len(seen) // _LOOKED_AT))]
    if not len(seen):
        return _STRENGTHS[-1]
    rows, centre, many = rows[seen], np.maximum(centre[seen], 1e-12), many[seen]
    strengths = [
        float((gammaln(c * centre + rows) - gammaln(c * centre)).sum())
        + float((gammaln(c) - gammaln(c + many)).sum())
        for c in _STRENGTHS
    ]
    return _STRENGTHS[int(np.argmax(strengths))]


def _widened_interval(
    mean: FloatArray,
    variance: FloatArray,
    total: FloatArray,
    level: float,
    half: float,
    *,
    interpolated: bool = False,
) -> tuple[FloatArray, FloatArray]:
    """Return the interval of a Beta distribution with a mean and variance, widened by `half` votes."""
    possible = mean * (1 - mean)
    variance = np.minimum(variance, 0.99 * possible)
    certain = possible <= 1e-12
    with np.errstate(divide="ignore", invalid="ignore"):
        strength = np.where(certain, 1.0, possible / variance - 1.0)
    first, second = mean * strength, (1 - mean) * strength
    tail = (1 - level) / 2
    low, high = np.where(certain, mean, 0.0), np.where(certain, mean, 1.0)
    # Most entries of large matrices have few votes, and a lower end of 0.
    above = ~certain & (first > half) & (mean * total >= 1.0)
    ends = first[above] - half, second[above] + half
    low[above] = np.minimum(
        beta_quantile(np.maximum(ends[0], 1e-3), ends[1], tail, interpolated=interpolated), mean[above]
    )
    below = ~certain & (second > half)
    ends = first[below] + half, second[below] - half
    high[below] = np.maximum(
        beta_quantile(ends[0], np.maximum(ends[1], 1e-3), 1 - tail, interpolated=interpolated), mean[below]
    )
    return low, high
