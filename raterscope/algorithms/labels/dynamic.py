"""Dynamic IBCC: classes of the tasks, and drifting confusion matrices, by variational Bayes.

See section 7 of the dynamic combination paper. The confusion matrix of an annotator changes with every vote:
a random walk of log odds, estimated by a filter and a smoother, replaces the counts of the static model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.alternation import nearness
from raterscope.algorithms.labels.crowd_votes import class_shares
from raterscope.algorithms.labels.data import (
    IMPOSSIBLE,
    OPEN,
    ClassArray,
    Confusion,
    Drift,
    FloatArray,
    IndexArray,
    LabelFusion,
    Labels,
    LabelsError,
    LabelTrace,
    PriorSettings,
    prior_of,
    split_at_sets,
)
from raterscope.algorithms.labels.drift import row_movement
from raterscope.algorithms.labels.result import count_confusion, make_fusion
from raterscope.algorithms.progress import Watch, parts_of, run_parts, silent, wait_watching
from raterscope.algorithms.settings import choice, integer, number
from raterscope.text import percent

FORMS = {
    "scalar": "each class separately, uncertain votes by probability; without drift it is the static model",
    "paper": "all classes together, as in the paper with its misprints corrected; the rates of more than two "
    "outputs are biased",
}

_WORK = 400_000
"""Number of entries of smoothed matrices between two progress reports."""

_TASKS = 200_000

_MAX_STEPS = 1_500_000_000
"""Maximum number of entries of all smoothed matrices together: 6 GB."""

_FAR, _MUCH = 0.2, 0.25
"""Minimum movement of an annotator, and minimum share of votes of such annotators, for a warning that results
without truths are uncertain.
"""

_COUNTS = (1e-12, 1e12)
"""Limits of pseudo-counts."""

_MAX_ENTRIES = 300_000_000
"""Maximum number of entries of all annotators' last matrices together: 2.4 GB."""


@dataclass(frozen=True)
class DynamicSettings(PriorSettings):
    """Settings of `dynibcc`."""

    form: str = choice(
        "scalar", "Form", "Update of an annotator's rates if a task's class is uncertain.", FORMS
    )
    iterations: int = integer(
        200, "Iterations", "Maximum number of iterations.", minimum=1, maximum=100_000, advanced=True
    )
    tolerance: float = number(
        1e-6, "Tolerance", "Convergence: maximum change of a task's probability; the model has no lower "
        "bound.", minimum=0.0, maximum=0.1, advanced=True,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Steps:
    """Votes in the order of the steps, and the steps of each task."""

    start: NDArray[np.int64]  # (K + 1,): the steps of each annotator
    order: NDArray[np.int64]  # (K,): annotators with votes, those with the most first
    # vote, task: (V,)
    vote: IndexArray
    task: IndexArray
    label: ClassArray  # (V,)
    task_start: NDArray[np.int64]  # (N + 1,)
    positions: (
        IndexArray  # (V,): steps of task i: `positions[task_start[i]]` to `positions[task_start[i + 1]]`
    )
    known: ClassArray  # (N,)
    sets: NDArray[np.bool_] | None  # (S, J): as `Labels.sets`


def dynibcc(labels: Labels, settings: DynamicSettings | None = None, watch: Watch = silent) -> LabelFusion:
    """Estimate the tasks' classes together with confusion matrices that drift.

    All votes count, including repeated ones, as a time series. An annotator's steps are in the order of
    `Labels.in_time`. Iterations start with the shares of the votes; known tasks are held fixed.

    The paper's lower bound (eqs. 88-93) is infinite at steps without noise, which most steps are. It is not
    computed; convergence depends on the change of the tasks' probabilities.

    The form "scalar" differs from the paper for uncertain classes. The paper counts one vote on the mean of
    the classes' log odds, which is not the mean-field result even without drift. Here each class has its own
    filter, where the vote counts by the class's probability; without noise that is exactly the static model.
    The noise is common to all classes as in the paper: the expected increase of the variance of the output by
    a vote (eqs. 43-45). Every step of an annotator is a vote, so that z in eq. 43 is zero: its second case, a
    step without an observed output (z = u), does not occur.

    With more than two outputs the rates also differ from the paper. Every output has its own filter, a Beta
    distribution with alpha for the output and beta for all others. Noise reduces alpha + beta of each output
    by a different amount. The shares of the alphas (eqs. 76-78) are then biased rates: the rates of outputs
    with a more certain filter are too high. For constant annotators with rates of 0.82, 0.06, 0.12 or 0.50,
    0.30, 0.20 they are 0.64, 0.21, 0.15 or 0.92, 0.05, 0.04, after any number of votes. The rates are
    therefore the means alpha / (alpha + beta), scaled to add up to one, and the total of a row is such that
    the variances of its rates add up to those of the filters.

    Coverage in simulated crowds, for annotators with a hundred votes or more: 95 % intervals hold the true
    rates of constant annotators in 96 to 99 % of cases. For changing annotators, over their history, the
    coverage is 95 % with slow drift, 87 to 89 % in a mixture, and 70 % with jumps, which are followed slowly;
    for their last matrices it is 69 to 76 %. With fewer votes it is 86 to 91 %, because the prior dominates.

    Both forms update tasks by eq. 78. With the Dirichlet distributions of the rates instead, the accuracy
    rises by one percent in some simulated crowds, but falls by half to one percent in crowds in which most
    annotators drift or jump.

    The result has a `drift`; its confusion matrices are those of each annotator's last vote. In the form
    "paper" the rates of more than two outputs are the paper's shares of alphas, with their bias. Raises
    `LabelsError` if the matrices of all steps would not fit into memory.

    Examples
    --------
    >>> from raterscope.algorithms.simulation.label_crowds import simulate_labels
    >>> from raterscope.algorithms.simulation.label_crowds import staging_crowd
    >>> crowd = simulate_labels(staging_crowd(tasks=150, annotators=12), seed=1)
    >>> fusion = dynibcc(crowd.labels)
    >>> float(round((fusion.posterior.argmax(axis=1) == crowd.truth).mean(), 2))
    0.89
    """
    settings = DynamicSettings() if settings is None else settings
    _check_size(labels)
    prior = np.clip(prior_of(labels, settings), *_COUNTS)
    steps = wait_watching(partial(_steps_of, labels), watch, 0.0, "sorting votes by time")
    begin = partial(_begin, labels, prior, settings.share_strength)
    posterior = wait_watching(begin, watch, 0.0, "counting votes")
    nu = np.full(len(labels.classes), settings.share_strength)
    run = _Run(steps, prior, posterior, settings.form, watch)
    trace = run.iterate(nu, settings.iterations, settings.tolerance)
    confusion, drift = run.drift(labels)

    def finished() -> LabelFusion:
        shares, notices = run.shares(nu), _unsettled(trace)
        fusion = make_fusion(
            labels, "dynibcc", posterior, confusion, trace, notices, shares=shares, drift=drift
        )
        return replace(fusion, notices=(*_warning(labels, fusion), *fusion.notices))

    fusion = wait_watching(finished, watch, 0.98, "checking for changes")
    watch(1.0, f"{len(trace.change)} iterations")
    return fusion


def _unsettled(trace: LabelTrace) -> list[str]:
    if trace.converged:
        return []
    return [
        f"Did not converge in {len(trace.change):,} iterations: a task's probabilities still changed by"
        f" up to {trace.change[-1]:.2g}."
    ]


def _warning(labels: Labels, fusion: LabelFusion) -> list[str]:
    """Warn if many annotators changed between two classes, as the model cannot decide who is right."""
    if len(labels.classes) != 2 or labels.known is not None or fusion.drift is None or not len(labels):
        return []
    changed = row_movement(fusion.drift, labels, fusion) > _FAR
    share = float(labels.votes_of_annotators()[changed].sum() / len(labels))
    if share < _MUCH:
        return []
    return [
        f"Annotators with {percent(share)} of the votes changed. With two classes and no ground truth held"
        " fixed, votes cannot show whether these annotators or the others are right afterwards. Decide "
        "some tasks yourself."
    ]


def _check_size(labels: Labels) -> None:
    entries = len(labels.classes) * len(labels.outputs)
    for many, most, unit in (
        (len(labels), _MAX_STEPS, "votes"),
        (len(labels.annotators), _MAX_ENTRIES, "annotators"),
    ):
        if many * entries > most:
            raise LabelsError(
                f"a confusion matrix of {len(labels.classes):,} by {len(labels.outputs):,} for each of"
                f" {many:,} {unit} does not fit into memory; expected at most {most // entries:,}."
            )


def _steps_of(labels: Labels) -> _Steps:
    vote = labels.in_time()
    task, label = labels.task[vote], labels.label[vote]
    many = labels.votes_of_annotators()
    order = np.argsort(-many, kind="stable")
    known = labels.known_classes()
    return _Steps(
        np.concatenate([[0], np.cumsum(many)]),
        order[: int((many > 0).sum())],
        vote.astype(np.int32),
        task,
        label,
        np.concatenate([[0], np.cumsum(labels.votes_of_tasks())]),
        np.argsort(task, kind="stable").astype(np.int32),
        known,
        labels.sets,
    )


def _begin(labels: Labels, prior: FloatArray, share: float) -> FloatArray:
    """Initialise the tasks' probabilities, (N, J), with the shares of the votes.

    0 and 1 for known classes.
    """
    tasks, classes = len(labels.tasks), len(labels.classes)
    weight = class_shares(labels, prior)
    posterior = np.empty((tasks, classes))
    for j in range(classes):
        posterior[:, j] = np.bincount(labels.task, weight[labels.label, j], minlength=tasks) + share
    posterior /= posterior.sum(axis=1, keepdims=True)
    if labels.known is not None:
        fixed = np.flatnonzero(labels.known > OPEN)
        posterior[fixed] = 0.0
        posterior[fixed, labels.known[fixed]] = 1.0
    return labels.keep_to_sets(posterior)


class _Run:
    """Alternating updates: annotators given tasks, tasks given annotators."""

    def __init__(
        self, steps: _Steps, prior: FloatArray, posterior: FloatArray, form: str, watch: Watch
    ) -> None:
        from raterscope.algorithms.labels import _dynamic_kernels

        self._steps, self._prior, self._posterior, self._watch = steps, prior, posterior, watch
        self._follow = _dynamic_kernels.follow_jointly if form == "paper" else _dynamic_kernels.follow
        self._settle = _dynamic_kernels.settle
        self._logs = np.zeros((len(steps.task), len(prior)))
        annotators = len(steps.start) - 1
        self._final = np.broadcast_to(prior, (annotators, *prior.shape)).copy()
        self._has_evidence = (np.diff(steps.task_start) > 0) | (steps.known > OPEN)
        self._done = 0.0
        self._halt = np.zeros(1, dtype=bool)
        work = steps.start[0] + np.cumsum(np.diff(steps.start)[steps.order]) * prior.size
        self._pieces = _pieces(work, _WORK)

    def iterate(self, nu: FloatArray, iterations: int, tolerance: float) -> LabelTrace:
        """Update annotators and tasks in turn; `nu` (J,) are the classes' prior pseudo-counts."""
        from scipy.special import psi

        changes: list[float] = []
        converged = len(self._logs) == 0
        tasks = parts_of(len(self._posterior), _TASKS)
        while not converged and len(changes) < iterations:
            text = f"following annotators, iteration {len(changes) + 1}"
            self._pass(text, np.empty((0, *self._prior.shape), dtype=np.float32))
            total = nu + self._total()
            shares = psi(total) - psi(total.sum())
            parts = run_parts(partial(self._settled, shares), tasks, self._report(text))
            changes.append(max(parts))
            converged = changes[-1] < tolerance
            self._done = max(self._done, 0.9 * len(changes) / iterations, 0.9 * nearness(changes, tolerance))
        return LabelTrace(np.empty(0), np.array(changes), converged)

    def drift(self, labels: Labels) -> tuple[Confusion, Drift]:
        """Filter and smooth the annotators again, and store every step."""
        alpha = np.empty((len(self._steps.task), *self._prior.shape), dtype=np.float32)
        self._pass("storing every step", alpha)
        confusion = Confusion(self._final, self._prior)
        if self._prior.shape[1] == 1:
            confusion = count_confusion(labels, self._posterior, self._prior)
            alpha[:] = confusion.alpha[labels.annotator[self._steps.vote]]
        return confusion, Drift(self._steps.start, self._steps.vote, alpha)

    def shares(self, nu: FloatArray) -> FloatArray:
        """Return the expected shares of the classes, (J,)."""
        total = nu + self._total()
        return np.asarray(total / total.sum())

    def _total(self) -> FloatArray:
        return np.asarray(self._posterior.sum(axis=0, where=self._has_evidence[:, None]))

    def _settled(self, shares: FloatArray, first: int, last: int) -> float:
        steps = self._steps
        spans = split_at_sets(first, last, steps.known, steps.sets, shares, IMPOSSIBLE)
        changes = (
            self._settle(
                steps.task_start, steps.positions, steps.known, prior, self._logs, low, high, self._posterior
            )
            for low, high, prior in spans
        )
        return max(changes, default=0.0)

    def _pass(self, text: str, alpha: NDArray[np.float32]) -> None:
        if self._prior.shape[1] == 1:  # a single output is uninformative
            return
        steps = self._steps

        def followed(first: int, last: int) -> None:
            self._follow(
                self._prior, steps.start, steps.order, first, last, steps.task, steps.label, self._posterior,
                self._logs, alpha, self._final, self._halt,
            )  # fmt: skip

        run_parts(followed, self._pieces, self._report(text), partial(self._halt.fill, True))

    def _report(self, text: str) -> Callable[[], None]:
        return partial(self._watch, self._done, text)


def _pieces(work: NDArray[np.int64], step: int) -> list[tuple[int, int]]:
    """Divide annotators, the longest first, into pieces of about equal work, given its running sum."""
    pieces, first, done = [], 0, 0
    for at in range(len(work)):
        if work[at] - done >= step or at == len(work) - 1:
            pieces.append((first, at + 1))
            first, done = at + 1, int(work[at])
    return pieces
