"""Static models of annotators: IBCC by variational Bayes and by Gibbs sampling, and Dawid-Skene.

References
----------
.. [dawid1979] A. P. Dawid and A. M. Skene, "Maximum likelihood estimation of observer error-rates using the
   EM algorithm", Journal of the Royal Statistical Society C 28 (1979) 20-28, doi:10.2307/2346806.
.. [simpson2013] E. Simpson, S. Roberts, I. Psorakis and A. Smith, "Dynamic Bayesian combination of multiple
   imperfect classifiers", Decision Making and Imperfection, Studies in Computational Intelligence 474,
   Springer (2013) 1-35, doi:10.1007/978-3-642-36406-8_1 (sections 2 to 4).
.. [geman1984] S. Geman and D. Geman, "Stochastic relaxation, Gibbs distributions, and the Bayesian
   restoration of images", IEEE Transactions on Pattern Analysis and Machine Intelligence 6 (1984) 721-741,
   doi:10.1109/TPAMI.1984.4767596.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.alternation import Alternated, Rule, alternate
from raterscope.algorithms.labels.canonical_order import in_canonical_order
from raterscope.algorithms.labels.crowd_votes import class_shares, sort_by_task, task_spans
from raterscope.algorithms.labels.data import (
    OPEN,
    ClassArray,
    Confusion,
    FloatArray,
    IndexArray,
    LabelFusion,
    Labels,
    LabelSettings,
    LabelTrace,
    PriorSettings,
    default_prior,
    prior_of,
    split_at_sets,
)
from raterscope.algorithms.labels.result import convergence_notices, count_confusion, make_fusion
from raterscope.algorithms.labels.voting import shares_of_votes
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.algorithms.settings import integer, number


@dataclass(frozen=True)
class IBCCSettings(PriorSettings, LabelSettings):
    """Settings of `ibcc`."""

    iterations: int = integer(
        500, "Iterations", "Maximum number of iterations.", minimum=1, maximum=100_000, advanced=True
    )
    tolerance: float = number(
        1e-4, "Tolerance", "Convergence: maximum change of a task's probabilities.",
        minimum=0.0, maximum=0.1, advanced=True,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Expected:
    """Dirichlet distributions of the rates and the shares, given the tasks (eqs. 17, 22)."""

    prior: FloatArray
    share: FloatArray
    accelerated: ClassVar[bool] = True

    @cached_property
    def _at_rest(self) -> tuple[FloatArray, FloatArray]:
        """Log Gamma of the prior's parameters, for the rates and for the shares."""
        from raterscope.algorithms.labels._ibcc_kernels import log_gammas

        return log_gammas(self.prior), log_gammas(self.share[None])

    def rates(
        self, counts: FloatArray, present: NDArray[np.bool_], first: int, last: int, logs: FloatArray
    ) -> float:
        from raterscope.algorithms.labels._ibcc_kernels import expect

        return float(expect(self.prior, self._at_rest[0], counts, present, first, last, logs))

    def shares(self, total: FloatArray, logs: FloatArray) -> float:
        from raterscope.algorithms.labels._ibcc_kernels import expect

        present, counts = np.ones(len(total), dtype=np.bool_), total[:, None]
        return float(expect(self.share[None], self._at_rest[1], counts, present, 0, 1, logs[:, None]))


def ibcc(labels: Labels, settings: IBCCSettings | None = None, watch: Watch = silent) -> LabelFusion:
    """Estimate the tasks' classes and every annotator's confusion matrix together.

    Any numbers of classes and outputs are possible. The tasks' distributions (eqs. 7, 8) and those of the
    annotators' rates and the classes' shares (eqs. 17 to 23) are updated in turn. The paper states that this
    finds the global maximum of the lower bound; it finds a local maximum that depends on the start. The start
    therefore uses the votes: each task's probabilities are (nu_0 + votes) / sum, where an output counts for
    the class with its highest prior rate, in a tie for the class that it represents.

    Known tasks are held fixed, and count for the annotators' rates and the classes' shares. A task without
    votes and without a known class is not used.

    The trace is the lower bound (eq. 24) after each iteration; it never falls by more than rounding errors.
    With the annotators' distributions updated from the tasks, eqs. 25 to 31 are the sum of ln B(alpha) - ln
    B(alpha_0), of ln B(nu) - ln B(nu_0), and of the tasks' entropies. Raises `LabelsError` if the confusion
    matrices would not fit into memory.

    Examples
    --------
    >>> from raterscope.algorithms.simulation.label_crowds import simulate_labels
    >>> from raterscope.algorithms.simulation.label_crowds import staging_crowd
    >>> crowd = simulate_labels(staging_crowd(tasks=150, annotators=12), seed=1)
    >>> fusion = ibcc(crowd.labels)
    >>> float(round((fusion.posterior.argmax(axis=1) == crowd.truth).mean(), 2))
    0.89
    """
    settings = IBCCSettings() if settings is None else settings
    labels = labels.settled(settings.repeats)
    prior, strength = prior_of(labels, settings), settings.share_strength
    rule = _Expected(prior, np.full(len(labels.classes), strength))
    start = class_shares(labels, prior), strength
    return _estimate(labels, "ibcc", settings, prior, strength, rule, start, "lower bound", watch)


def _estimate(
    labels: Labels,
    algorithm: str,
    settings: IBCCSettings | DawidSkeneSettings,
    prior: FloatArray,
    strength: float,
    rule: Rule,
    start: tuple[FloatArray, float],
    objective: str,
    watch: Watch,
) -> LabelFusion:
    """Update tasks and annotators in turn, and make the fusion.

    `prior`, `strength`: pseudo-counts of every confusion matrix, (J, L), and of each class's share. `start`:
    share of a vote that each output gives to each class, (L, J), and the pseudo-votes added to them.
    """
    votes = sort_by_task(labels, part(watch, 0.0, 0.1))

    def fusion(done: Alternated, notices: Iterable[str] = ()) -> LabelFusion:
        shares = (done.total + strength) / (done.total + strength).sum()
        alpha = np.empty(done.counts.shape)
        np.add(done.counts, prior, out=alpha)
        confusion = Confusion(alpha, prior)
        return make_fusion(labels, algorithm, done.posterior, confusion, done.trace, notices, shares=shares)

    done = alternate(
        votes, *start, rule, settings.iterations, settings.tolerance, objective,
        part(watch, 0.1, 1.0, "estimating classes and confusion matrices, "), fusion, labels.weights,
    )  # fmt: skip
    del votes
    return fusion(done, convergence_notices(done.trace))


@dataclass(frozen=True)
class DawidSkeneSettings(LabelSettings):
    """Settings of `dawid_skene`."""

    smoothing: float = number(
        1e-10, "Smoothing", "Added to every count of a confusion matrix, and to the tasks of each class. "
        "Near 0: maximum likelihood, even for rates based on few votes.",
        unit="votes", minimum=1e-10, maximum=1e6, advanced=True,
    )  # fmt: skip
    iterations: int = integer(
        500, "Iterations", "Maximum number of iterations.", minimum=1, maximum=100_000, advanced=True
    )
    tolerance: float = number(
        1e-3, "Tolerance", "Convergence: maximum change of a task's probabilities.",
        minimum=0.0, maximum=0.1, advanced=True,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Likeliest:
    """Maximum likelihood rates and shares, given the tasks."""

    smoothing: float
    outputs: int
    accelerated: ClassVar[bool] = False

    def rates(
        self, counts: FloatArray, present: NDArray[np.bool_], first: int, last: int, logs: FloatArray
    ) -> float:
        from raterscope.algorithms.labels._ibcc_kernels import maximise

        return float(maximise(self.smoothing, counts, present, first, last, self.outputs, logs))

    def shares(self, total: FloatArray, logs: FloatArray) -> float:
        from raterscope.algorithms.labels._ibcc_kernels import maximise_row

        return float(maximise_row(self.smoothing, total, logs))


def dawid_skene(
    labels: Labels, settings: DawidSkeneSettings | None = None, watch: Watch = silent
) -> LabelFusion:
    """Estimate the tasks' classes and every annotator's confusion matrix by expectation-maximisation.

    It starts from each task's shares of votes, where an output counts for the class that it represents;
    `Labels.prior`, if set, counts only in this start, as in `ibcc`. Known tasks are held fixed. A task
    without votes and without a known class is not used.

    The trace is the log likelihood of the votes under the rates at the start of each iteration, with
    smoothing counted as votes; it never falls by more than rounding errors. Raises `LabelsError` if the
    confusion matrices would not fit into memory.

    Examples
    --------
    >>> from raterscope.algorithms.simulation.label_crowds import simulate_labels
    >>> from raterscope.algorithms.simulation.label_crowds import staging_crowd
    >>> crowd = simulate_labels(staging_crowd(tasks=150, annotators=12), seed=1)
    >>> fusion = dawid_skene(crowd.labels)
    >>> float(round((fusion.posterior.argmax(axis=1) == crowd.truth).mean(), 2))
    0.88
    """
    settings = DawidSkeneSettings() if settings is None else settings
    labels = labels.settled(settings.repeats)
    smoothing = settings.smoothing
    prior = np.full((len(labels.classes), len(labels.outputs)), smoothing)
    rule = _Likeliest(smoothing, len(labels.outputs))
    start = class_shares(labels, default_prior(labels) if labels.prior is None else labels.prior), 0.0
    return _estimate(labels, "dawid_skene", settings, prior, smoothing, rule, start, "log-likelihood", watch)


_TERMS = 1_000_000
"""Number of votes times classes between two progress reports."""

_SORTED = 0.02
"""Share of the total time that sorting the votes takes."""

_CALM = 20
"""Number of consecutive samples with hardly any change of the mean after which sampling ends."""


@dataclass(frozen=True)
class GibbsSettings(PriorSettings, LabelSettings):
    """Settings of `gibbs`."""

    burn_in: int = integer(
        200, "Burn-in", "Sweeps over all tasks before sampling (burn-in).", unit="sweeps", minimum=0,
        maximum=1_000_000,
    )  # fmt: skip
    samples: int = integer(
        2000, "Samples", "Maximum number of samples.", unit="sweeps", minimum=1, maximum=10_000_000
    )  # fmt: skip
    tolerance: float = number(
        0.01, "Tolerance", "Sampling ends when 20 consecutive samples each change the mean probabilities,"
        "summed over all tasks, by no more than this. 0: never earlier.", minimum=0.0, maximum=1e6,
        advanced=True,
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


@in_canonical_order
def gibbs(labels: Labels, settings: GibbsSettings | None = None, watch: Watch = silent) -> LabelFusion:
    """Sample the tasks' classes from the model's posterior, and average the samples.

    The confusion matrices and the classes' shares are integrated out (the sampler is collapsed): a task's
    class is drawn given all other tasks' classes, with probabilities that are ratios of counts. Consecutive
    draws are less correlated than with sampled matrices. The probabilities are averaged instead of the draws,
    with the same mean and a smaller variance. The chain starts from the majority vote, so that classes are
    not swapped; it may still stay near one of several modes.

    The trace includes the burn-in: ln p(t, c) of every sweep, and the change of the running mean, which
    restarts after the burn-in. `converged` follows the paper's rule (section 4): the total change of the mean
    stayed within the tolerance for 20 samples. The change is a sum over tasks, so that many tasks may need
    more samples than the maximum; a notice then states the change. `confusion` has the expected counts.

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
            f"After {chain.count:,} samples, a sample still changed the mean by {total:.2g} in total,"
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
    """Start from the majority vote; in a tie, from the first class."""
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
