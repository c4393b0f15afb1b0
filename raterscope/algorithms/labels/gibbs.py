"""Gibbs-IBCC: IBCC by Gibbs sampling from the model's posterior.

References
----------
.. [simpson2013] E. Simpson, S. Roberts, I. Psorakis and A. Smith, "Dynamic Bayesian combination of multiple
   imperfect classifiers", Decision Making and Imperfection, Studies in Computational Intelligence 474,
   Springer (2013) 1-35, doi:10.1007/978-3-642-36406-8_1 (sections 2 to 4).
.. [geman1984] S. Geman and D. Geman, "Stochastic relaxation, Gibbs distributions, and the Bayesian
   restoration of images", IEEE Transactions on Pattern Analysis and Machine Intelligence 6 (1984) 721-741,
   doi:10.1109/TPAMI.1984.4767596.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.data import (
    OPEN,
    ClassArray,
    FloatArray,
    IndexArray,
    LabelFusion,
    Labels,
    LabelSettings,
    LabelTrace,
    PriorSettings,
    prior_of,
    split_at_sets,
)
from raterscope.algorithms.labels.result import count_confusion, make_fusion
from raterscope.algorithms.labels.task_votes import sort_by_task, task_spans
from raterscope.algorithms.labels.voting import shares_of_votes
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.algorithms.settings import integer, number

_TERMS = 1_000_000
"""Votes times classes between two reports."""

_SORTED = 0.02
"""Share of the time for sorting the votes."""

_CALM = 20
"""Consecutive samples with hardly any change of the mean at which sampling ends."""


@dataclass(frozen=True)
class GibbsSettings(PriorSettings, LabelSettings):
    """Settings of `gibbs`."""

    burn_in: int = integer(
        200, "Burn-in", "Sweeps over all tasks before the first that counts.", unit="sweeps", minimum=0,
        maximum=1_000_000,
    )  # fmt: skip
    samples: int = integer(
        2000, "Samples", "Sweeps that count, at most.", unit="sweeps", minimum=1, maximum=10_000_000
    )  # fmt: skip
    tolerance: float = number(
        0.01, "Tolerance", "Sampling ends when 20 samples in a row each change the mean probabilities, "
        "summed over all tasks, by no more; 0 for all samples.", minimum=0.0, maximum=1e6, advanced=True,
    )  # fmt: skip
    seed: int = integer(0, "Seed", "Of the random draws.", minimum=0, maximum=2**31 - 1, advanced=True)


@dataclass(frozen=True, eq=False)
class _Votes:
    """Votes task by task."""

    start: NDArray[np.int64]
    annotator: IndexArray
    label: ClassArray
    again: IndexArray
    output: IndexArray


@dataclass(eq=False)
class _Chain:
    """State of the sampler; see the kernels."""

    tasks: NDArray[np.int64]
    state: ClassArray
    cells: IndexArray
    rows: IndexArray
    shares: NDArray[np.int64]
    chance: FloatArray
    mean: FloatArray
    count: int = 0


def gibbs(labels: Labels, settings: GibbsSettings | None = None, watch: Watch = silent) -> LabelFusion:
    """Sample the tasks' classes from the model's posterior, and average.

    The confusion matrices and the classes' shares are integrated out (the sampler is collapsed): a task's
    class is drawn given all other tasks' classes, with probabilities that are ratios of counts. Consecutive
    draws are less correlated than with sampled matrices. The probabilities are averaged instead of the draws,
    with the same mean and a smaller variance. The chain starts from the majority vote, so that classes are
    not swapped; it may still stay near one of several modes.

    The trace includes the burn-in: ln p(t, c) of every sweep, and the change of the running mean, which
    restarts after the burn-in. `converged` follows the paper's rule (section 4): the total change of the mean
    stayed within the tolerance for 20 samples. It is a sum over tasks, so that many tasks may need more
    samples than there are; a notice then states the change. `confusion` has the expected counts.

    Examples
    --------
    >>> from raterscope.algorithms.simulation.label_crowds import simulate_labels
    >>> from raterscope.algorithms.simulation.label_crowds import staging_crowd
    >>> crowd = simulate_labels(staging_crowd(tasks=150, annotators=12), seed=1)
    >>> fusion = gibbs(crowd.labels)
    >>> float(round((fusion.posterior.argmax(axis=1) == crowd.truth).mean(), 2))
    0.89
    """
    settings = GibbsSettings() if settings is None else settings
    labels = labels.settled(settings.repeats)
    prior = prior_of(labels, settings)
    votes = _sort(labels, part(watch, 0.0, _SORTED / 2))
    chain = _begin(labels, votes, part(watch, _SORTED / 2, _SORTED))
    step = part(watch, _SORTED, 1.0)
    objective, change, total, converged = _sampled(chain, votes, prior, settings, labels, step)
    posterior = _posterior(chain, labels)
    expected = posterior.sum(axis=0) + settings.share_strength
    shares = expected / expected.sum()
    notices: tuple[str, ...] = ()
    if not converged and settings.tolerance > 0:
        notices = (
            f"After {chain.count:,} samples a sample still changed the mean by {total:.2g} in total,"
            f" {total / max(1, len(chain.tasks)):.1g} a task.",
        )
    trace = LabelTrace(np.array(objective), np.array(change), converged, "log joint probability")
    return make_fusion(
        labels, "gibbs", posterior, count_confusion(labels, posterior, prior), trace, notices, shares=shares
    )


def _sort(labels: Labels, watch: Watch) -> _Votes:
    """Sort the votes by task, and number repeated votes of an annotator."""
    from raterscope.algorithms.labels._ibcc_kernels import number_repeats

    votes = sort_by_task(labels, part(watch, 0.0, 0.5))
    annotator, label = votes.unpack()
    again, output = np.zeros(len(label), dtype=np.int32), np.zeros(len(label), dtype=np.int32)
    stamps = (np.full(votes.annotators, OPEN), np.full((votes.annotators, votes.outputs), OPEN))
    repeated = False
    for first, last in task_spans(votes.start, _TERMS):
        watch(0.5 + 0.5 * first / len(labels.tasks), "finding repeated votes")
        repeated |= number_repeats(first, last, votes.start, annotator, label, *stamps, again, output)
    if not repeated:
        again = output = np.empty(0, dtype=np.int32)
    return _Votes(votes.start, annotator, label, again, output)


def _begin(labels: Labels, votes: _Votes, watch: Watch) -> _Chain:
    """Start from the majority vote; the first of equal classes."""
    from raterscope.algorithms.labels._ibcc_kernels import place

    classes, outputs, annotators = len(labels.classes), len(labels.outputs), len(labels.annotators)
    known = labels.known_classes()
    present = np.diff(votes.start) > 0
    tasks = np.flatnonzero(present & (known <= OPEN))
    vote = shares_of_votes(labels, part(watch, 0.0, 0.5)).argmax(axis=1)
    state = np.where(known > OPEN, known, np.where(present, vote, OPEN)).astype(np.int16)
    cells = np.zeros((annotators, outputs, classes), dtype=np.int32)
    rows = np.zeros((annotators, classes), dtype=np.int32)
    for first, last in task_spans(votes.start, _TERMS):
        watch(0.5 + 0.5 * first / len(state), "counting votes")
        place(first, last, votes.start, votes.annotator, votes.label, state, cells, rows)
    shares = np.bincount(state[state != OPEN], minlength=classes).astype(np.int64)
    chance = np.zeros((len(tasks), classes))
    return _Chain(tasks, state, cells, rows, shares, chance, np.eye(classes)[state[tasks]])


def _sampled(
    chain: _Chain, votes: _Votes, prior: FloatArray, settings: GibbsSettings, labels: Labels, watch: Watch
) -> tuple[list[float], list[float], float, bool]:
    from raterscope.algorithms.labels._ibcc_kernels import log_joint, mean_of_samples, sweep

    rng = np.random.default_rng(settings.seed)
    turned = np.ascontiguousarray(prior.T)
    sums = turned.sum(axis=0)
    known = np.empty(0, dtype=np.int16) if labels.known is None else labels.known[chain.tasks]
    share = settings.share_strength
    votes_per_task = np.diff(votes.start)[chain.tasks]
    spans = task_spans(np.concatenate([[0], np.cumsum(votes_per_task)]), _TERMS // len(labels.classes))
    objective: list[float] = []
    change: list[float] = []
    sweeps = settings.burn_in + settings.samples if len(chain.tasks) else 0
    calm, total, value = 0, 0.0, None
    show = partial(_partial, chain, labels, prior)
    for s in range(sweeps):
        for first, last in spans:
            done = (s + first / len(chain.tasks)) / sweeps
            sample = f"sample {s - settings.burn_in + 1:,}" if s >= settings.burn_in else "burn-in"
            watch(done, sample, objective=value, partial=show)
            uniform = rng.random(last - first)
            for low, high, rows in split_at_sets(first, last, known, labels.sets, sums, np.inf):
                sweep(
                    low, high, chain.tasks, votes.start, votes.annotator, votes.label, votes.again,
                    votes.output, turned, rows, share, uniform[low - first :], chain.state, chain.cells,
                    chain.rows, chain.shares, chain.chance,
                )  # fmt: skip
        if s == settings.burn_in:
            chain.count = 0
        total, most = mean_of_samples(chain.mean, chain.chance, chain.count)
        chain.count += 1
        value = log_joint(turned, sums, share, chain.cells, chain.rows, chain.shares)
        objective.append(value)
        change.append(most)
        calm = calm + 1 if s > settings.burn_in and total <= settings.tolerance else 0
        if calm >= _CALM and settings.tolerance > 0:
            return objective, change, total, True
    return objective, change, total, sweeps == 0


def _posterior(chain: _Chain, labels: Labels) -> FloatArray:
    posterior = np.zeros((len(labels.tasks), len(labels.classes)))
    if labels.known is not None:
        fixed = np.flatnonzero(labels.known > OPEN)
        posterior[fixed, labels.known[fixed]] = 1.0
    posterior[chain.tasks] = chain.mean
    return posterior


def _partial(chain: _Chain, labels: Labels, prior: FloatArray) -> LabelFusion:
    posterior = _posterior(chain, labels)
    trace = LabelTrace(np.empty(0), np.empty(0), converged=False)
    return make_fusion(labels, "gibbs", posterior, count_confusion(labels, posterior, prior), trace)
