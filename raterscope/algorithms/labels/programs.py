"""Class probabilities of programs, combined with the votes of a crowd.

A program is an annotator whose answers are probabilities. These are not calibrated and may be wrong on whole
classes, and programs may resemble each other. The prior of a task's class is therefore a logistic regression
on the logarithms of all programs' probabilities, with an offset for each class and a weight for each program;
in [raykar2010]_ a classifier is such a prior of the true class. The likelihood of the crowd's votes, given
the true class, is that of the consensus of the crowd alone. Offsets and weights maximise the likelihood of
the votes; known classes count as certain. Programs with the same answers share one weight, as correlated
regressors do.

CROWDLAB [goh2022]_ averages votes and probabilities instead, with weights from agreement. Here a program
without information has the weight 0: programs are used only if they predict the votes on held-out tasks
better than the shares of the classes do. Otherwise the consensus of the crowd does not change. Only tasks
with two votes or more, or of known class, count for this: a single vote does not reveal whether the crowd or
the program is wrong.

References
----------
.. [goh2022] H. W. Goh, U. Tkachenko and J. Mueller, "CROWDLAB: Supervised learning to infer consensus labels
   and quality scores for data with multiple annotators", arXiv:2210.06812 (2022),
   doi:10.48550/arXiv.2210.06812.
.. [raykar2010] V. C. Raykar, S. Yu, L. H. Zhao, G. H. Valadez, C. Florin, L. Bogoni and L. Moy, "Learning
   from crowds", Journal of Machine Learning Research 11 (2010) 1297-1322.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.data import OPEN, FloatArray, LabelFusion, LabelsError
from raterscope.algorithms.progress import Watch, silent

FLOOR = 1e-3
"""Minimum probability of a class by a program, which may be certain and wrong."""

_FOLDS = 5
_ROUNDS = 50
_PRIOR_VARIANCE = 1.0
"""Prior variance of the sum of the weights, around 0: copies of a program together have the weight of one."""

_OFFSET_VARIANCE = 4.0
_GAIN = 2.0
"""Minimum gain, in standard errors, of predicting held-out votes by programs instead of the shares of
classes.
"""


@dataclass(frozen=True, eq=False)
class Program:
    """Class probabilities of a program on N tasks."""

    name: str
    probability: FloatArray  # (N, J): rows add up to 1; NaN for a task that the program did not judge


@dataclass(frozen=True, eq=False)
class ProgramWeights:
    """Weights of programs in a consensus."""

    names: tuple[str, ...]  # (P,)
    weight: FloatArray  # (P,): power of each program's probabilities; 0 if they are not used
    offset: FloatArray  # (J,): correction of each class
    # gain in the mean log likelihood of the votes on held-out tasks over the classes' shares, nats per task
    gain: float
    error: float  # its standard error

    def log_odds(self, program: Program, task: int, leading: int, shares: FloatArray) -> float:
        """Return a program's contribution to a class of a task, as log odds; NaN without a judgement.

        The other classes are weighted by their shares.
        """
        probability = program.probability[task]
        if program.name not in self.names or not np.isfinite(probability).all():
            return float("nan")
        weight = self.weight[self.names.index(program.name)]
        powers = np.clip(probability, FLOOR, 1.0) ** weight
        others = np.delete(shares, leading)
        against = np.delete(powers, leading) @ (others / max(others.sum(), 1e-300))
        return float(np.log(powers[leading]) - np.log(max(against, 1e-300)))

    @property
    def used(self) -> bool:
        """Return whether the programs changed the consensus."""
        return bool((self.weight > 0).any())

    def in_words(self) -> str:
        """Describe in a sentence or two whether and with which weights the programs were used."""
        programs = "the program" if len(self.names) == 1 else "the programs"
        if self.used:
            weights = ", ".join(
                f"{name} {weight:.2f}" for name, weight in zip(self.names, self.weight, strict=True)
            )
            return (
                f"The consensus includes {programs}, with these powers of the probabilities: {weights}. "
                f"They predict the votes on held-out tasks by {self.gain:.2f} ± {self.error:.2f} nats per "
                f"task better than the shares of the classes."
            )
        names = ", ".join(self.names)
        if not np.isfinite(self.gain):
            return (
                f"The consensus does not include {programs} {names}: fewer than {2 * _FOLDS} tasks have two "
                "votes or a known class. Decide some tasks."
            )
        return (
            f"The consensus does not include {programs} {names}: they predict the votes on held-out tasks no "
            f"better than the shares of the classes ({self.gain:.3f} ± {self.error:.3f} nats a task)."
        )


def combine(
    fusion: LabelFusion, programs: Sequence[Program], watch: Watch = silent
) -> tuple[LabelFusion, ProgramWeights]:
    """Combine a crowd's consensus with the class probabilities of programs; return it and their weights.

    `fusion`: fusion of the votes alone.
    `programs`: programs with the tasks and classes of the fusion.
    The fusion has a notice. Its consensus is unchanged if the programs do not predict the votes of the crowd.
    Raises `LabelsError` for probabilities of another shape.
    """
    combined, weights = _combine(fusion, programs, watch)
    if programs:
        combined = replace(combined, notices=(*combined.notices, weights.in_words()))
    return combined, weights


def _combine(
    fusion: LabelFusion, programs: Sequence[Program], watch: Watch
) -> tuple[LabelFusion, ProgramWeights]:
    tasks, classes = fusion.posterior.shape
    for program in programs:
        if program.probability.shape != (tasks, classes):
            raise LabelsError(f"{program.name}: expected {tasks:,} tasks and {classes} classes.")
    names = tuple(program.name for program in programs)
    features = _features(programs, tasks, classes)
    judged = (features != 0).any(axis=(1, 2))
    shares = np.maximum(fusion.shares, 1e-6)
    likelihood = np.maximum(fusion.posterior, 1e-9) / shares
    likelihood /= likelihood.max(axis=1, keepdims=True)
    fixed = fusion.known != OPEN
    informed = judged & ((fusion.votes >= 2) | fixed)
    rows = np.flatnonzero(informed)
    nothing = ProgramWeights(names, np.zeros(len(names)), np.zeros(classes), np.nan, np.nan)
    if len(rows) < 2 * _FOLDS or not programs:
        return fusion, nothing
    base = np.log(shares)
    gain = np.zeros(len(rows))
    fold = np.random.default_rng(0).permutation(len(rows)) % _FOLDS
    for number in range(_FOLDS):
        watch(0.8 * number / _FOLDS, "comparing programs with the crowd")
        held = fold == number
        weight, offset = _fit(features[rows[~held]], likelihood[rows[~held]], base)
        prior = _prior(features[rows[held]], base, weight, offset)
        nothing_known = np.zeros_like(features[rows])
        _, plain_offset = _fit(nothing_known[~held], likelihood[rows[~held]], base)
        plain = _prior(nothing_known[held], base, weight, plain_offset)
        expected = (prior * likelihood[rows[held]]).sum(axis=1)
        without = (plain * likelihood[rows[held]]).sum(axis=1)
        gain[held] = np.log(np.maximum(expected, 1e-12)) - np.log(np.maximum(without, 1e-12))
    mean, error = float(gain.mean()), float(gain.std(ddof=1) / np.sqrt(len(gain)))
    if mean <= _GAIN * error:
        return fusion, replace(nothing, gain=mean, error=error)
    watch(0.9, "weighting programs")
    weight, offset = _fit(features[rows], likelihood[rows], base)
    if not weight.any():  # the gain is a rounding error
        return fusion, replace(nothing, gain=mean, error=error)
    posterior = fusion.posterior.copy()
    change = np.flatnonzero(judged & ~fixed)
    updated = _prior(features[change], base, weight, offset) * likelihood[change]
    posterior[change] = updated / updated.sum(axis=1, keepdims=True)
    return replace(fusion, posterior=posterior), ProgramWeights(names, weight, offset, mean, error)


def _features(programs: Sequence[Program], tasks: int, classes: int) -> FloatArray:
    """Return centred logarithms of the probabilities, (N, P, J); 0 where a program did not judge a task."""
    features = np.zeros((tasks, len(programs), classes))
    for row, program in enumerate(programs):
        known = np.isfinite(program.probability).all(axis=1)
        logs = np.log(np.clip(program.probability[known], FLOOR, 1.0))
        features[known, row] = logs - logs.mean(axis=1, keepdims=True)
    return features


def _prior(features: FloatArray, base: FloatArray, weight: FloatArray, offset: FloatArray) -> FloatArray:
    """Return the prior of each task's class, (N, J)."""
    logits = base + offset + np.einsum("npj,p->nj", features, weight)
    prior = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(prior / prior.sum(axis=1, keepdims=True))


def _fit(features: FloatArray, likelihood: FloatArray, base: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the weights (P,), at least 0, and offsets (J,) with the highest posterior density."""
    from scipy.optimize import minimize

    count, programs, classes = features.shape

    def loss(parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        weight, offset = parameters[:programs], parameters[programs:]
        prior = _prior(features, base, weight, offset)
        joint = prior * likelihood
        total = np.maximum(joint.sum(axis=1, keepdims=True), 1e-300)
        slope = joint / total - prior
        penalty = weight.sum() ** 2 / _PRIOR_VARIANCE + (offset**2).sum() / _OFFSET_VARIANCE
        value = -np.log(total).sum() + penalty / 2
        gradient = np.concatenate(
            [
                weight.sum() / _PRIOR_VARIANCE - np.einsum("npj,nj->p", features, slope),
                offset / _OFFSET_VARIANCE - slope.sum(axis=0),
            ]
        )
        return float(value / count), gradient / count

    start = np.concatenate([np.full(programs, 0.5 / programs), np.zeros(classes)])
    bounds = [(0.0, 3.0)] * programs + [(-6.0, 6.0)] * classes
    best = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": _ROUNDS})
    return best.x[:programs], best.x[programs:]
