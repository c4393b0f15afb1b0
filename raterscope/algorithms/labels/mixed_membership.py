"""Mixed membership: every vote has an apparent class of its own, drawn from its task's mixture.

Rates and their priors are those of hierarchical Dawid-Skene, given the apparent classes.

References
----------
.. [airoldi2008] E. M. Airoldi, D. M. Blei, S. E. Fienberg and E. P. Xing, "Mixed membership stochastic
   blockmodels", Journal of Machine Learning Research 9 (2008) 1981-2014.
.. [newman2009] D. Newman, A. Asuncion, P. Smyth and M. Welling, "Distributed algorithms for topic models",
   Journal of Machine Learning Research 10 (2009) 1801-1828 (parts of the tasks with counts of their own).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.crowd_votes import Crowd, count_votes_of, run_by_part
from raterscope.algorithms.labels.data import OPEN, FloatArray, keep_to_sets
from raterscope.algorithms.labels.hierarchical import Fit, empty_fit, estimate_priors
from raterscope.algorithms.progress import Watch
from raterscope.algorithms.row_reductions import sum_rows

_ROUNDS = 30
_STRENGTH_ROUNDS = (5, 15)
_LEAST_OF_LARGE, _STRENGTH_ROUNDS_OF_LARGE = 6, (2, 5)
"""Rounds at least, and those that estimate the strength, if the model starts from another one."""

_SWEEPS = 20
"""Sweeps over each known task for its prediction from votes alone."""


def mixed_membership(
    crowd: Crowd,
    posterior: FloatArray,
    mixture: float,
    watch: Watch,
    judged: NDArray[np.int64] | None = None,
    unheld: FloatArray | None = None,
    like: Fit | None = None,
    tolerance: float = 0.0,
) -> tuple[FloatArray, Fit]:
    """Fit the model from an initial posterior; return the tasks' expected mixtures and the fit.

    `posterior`: (N, J).
    `mixture`: prior strength of a task's mixture.
    `judged`: (M,), known tasks with votes whose mixture is predicted without their class.
    `unheld`: (M, J), initial probabilities of these tasks.
    `like`: fit of the initial posterior. With it, the rounds end by the tolerance.
    `tolerance`: limit of the change of a task's expected mixture, summed over the classes and averaged over
        the tasks.
    The mixtures, (N, J), of judged tasks are those without their own class. The rates of the fit are those
        given the apparent class.
    """
    from raterscope.algorithms.labels._membership_kernels import membership_sweep, membership_without_truth

    words = "fitting mixed membership"
    votes = crowd.votes_of_tasks
    fit = empty_fit(crowd, like)
    single = posterior.astype(np.float32, copy=False)
    share = _shares(crowd, single, partial(watch, 0.0, words))
    total = single * votes[:, None].astype(crowd.dtype)
    del single
    counted = count_votes_of(crowd, posterior, partial(watch, 0.0, words))
    fit.counts = counted.sum(axis=0)
    fixed = crowd.known > OPEN
    if crowd.sets is not None:
        posterior = keep_to_sets(posterior.copy(), crowd.known, crowd.sets)
    prior = mixture * fit.shares
    # Each task's expected mixture, summed over the active tasks: a matrix of them is not needed.
    weight = np.where(crowd.active & ~fixed, 1.0 / (mixture + votes), 0.0).astype(crowd.dtype)
    of_known = posterior[fixed].sum(axis=0) + 1.0
    fit.shares = crowd.active.astype(crowd.dtype) @ posterior + 1.0
    parts = len(crowd.parts)
    active = max(1, int((crowd.active & ~fixed).sum()))

    def sweep(
        tables: Sequence[tuple[FloatArray, FloatArray]], prior: FloatArray, at: int, first: int, last: int
    ) -> float:
        return sum(
            membership_sweep(
                low, high, crowd.by_task, crowd.known, tables[at], own * (prior.sum() / own.sum()), share,
                total, crowd.each_class, crowd.weights,
            )
            for low, high, own in crowd.split(first, last, prior)
        )  # fmt: skip

    for turn in range(1, _ROUNDS + 1):
        done = (turn - 1) / _ROUNDS
        strengthen = turn in (_STRENGTH_ROUNDS if like is None else _STRENGTH_ROUNDS_OF_LARGE)
        estimate_priors(crowd, fit, fit.counts[None], True, turn, strengthen, watch, done)
        if turn > 1:
            fit.shares = (weight @ total).astype(np.float64) + weight.sum() * prior + of_known
        fit.shares /= fit.shares.sum()
        prior = mixture * fit.shares
        # Each part knows the changes of the others after the round ([newman2009]_).
        above, below = fit.tables(crowd, np.float64)
        tables = [(above, below), *((above.copy(), below.copy()) for _ in range(1, parts))]
        moved = sum(run_by_part(crowd.parts, partial(sweep, tables, prior), partial(watch, done, words)))
        for table in tables[1:]:
            for added, own in zip(table, (above, below), strict=True):
                own += added
        above -= np.multiply(fit.base, parts * fit.strength, dtype=np.float64)
        above -= (parts - 1) * fit.counts
        fit.counts = np.maximum(above, 0.0, out=above)
        fit.rows = below - parts * fit.strength - (parts - 1) * fit.rows
        if like is not None and turn >= _LEAST_OF_LARGE and moved / active < tolerance:
            break
    alone = None
    if judged is not None and unheld is not None and len(judged):
        watch(1.0, words)
        alone = np.empty_like(unheld)
        membership_without_truth(
            judged, crowd.by_task, unheld, _SWEEPS, fit.tables(crowd, np.float64), prior, share, total, alone,
            crowd.weights,
        )  # fmt: skip
    mean = total
    mean += prior.astype(crowd.dtype)
    mean /= (mixture + votes[:, None]).astype(crowd.dtype)
    mean[fixed] = posterior[fixed]
    if alone is not None:
        mean[judged] = (prior + alone) / (mixture + votes[judged, None])
    mean /= sum_rows(mean, keepdims=True)
    return keep_to_sets(mean, crowd.known, crowd.sets), fit


def _shares(crowd: Crowd, posterior: NDArray[np.float32], report: Callable[[], None]) -> NDArray[np.float32]:
    """Copy the posterior of each task to its votes, (V, J)."""
    if not crowd.large:
        return np.repeat(posterior, np.diff(crowd.start), axis=0)
    from raterscope.algorithms.labels._membership_kernels import spread

    share = np.empty((len(crowd.pair), posterior.shape[1]), dtype=np.float32)
    run_by_part(
        crowd.parts, lambda _, first, last: spread(first, last, crowd.start, posterior, share), report
    )
    return share
