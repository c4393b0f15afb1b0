"""Mixed-membership model: every vote has an apparent class of its own, drawn from its task's mixture.

References
----------
.. [airoldi2008] E. M. Airoldi, D. M. Blei, S. E. Fienberg and E. P. Xing, "Mixed membership stochastic
   blockmodels", Journal of Machine Learning Research 9 (2008) 1981-2014.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels._hierarchical import Crowd, Fit, begun, count_votes_of, estimate_priors
from raterscope.algorithms.labels.data import OPEN, FloatArray
from raterscope.algorithms.progress import Watch

__all__ = ["mixed_membership"]

_ROUNDS = 30
_STRENGTH_ROUNDS = (5, 15)
_SWEEPS = 20
"""Over each known task, to see what its votes alone would give."""


def mixed_membership(
    crowd: Crowd,
    posterior: FloatArray,
    mixture: float,
    watch: Watch,
    judged: NDArray[np.int64] | None = None,
    unheld: FloatArray | None = None,
) -> tuple[FloatArray, Fit]:
    """Fit the model, beginning with a posterior.

    Parameters
    ----------
    crowd : Crowd
    posterior : (N, J) float64
    mixture : float
        Prior strength of a task's mixture.
    watch : Watch
    judged : (M,) int64, optional
        Known tasks with votes whose mixture is wanted as if their class were not known.
    unheld : (M, J) float64, optional
        Their probabilities to begin with.

    Returns
    -------
    mean : (N, J) float64
        Each task's expected mixture. Of a judged task, it is what its votes would give if its class alone
        were not known.
    fit : Fit
        Rates given the apparent class.
    """
    from raterscope.algorithms.labels._pooled_kernels import membership_sweep, membership_without_truth

    votes = np.diff(crowd.start)
    fit = begun(crowd, posterior)
    share = np.repeat(posterior, votes, axis=0).astype(np.float32)
    total = posterior.astype(np.float32) * votes[:, None].astype(np.float64)
    words = "fitting mixed membership"
    count_votes_of(crowd, posterior, fit, watch, 0.0, words)
    mean, held = posterior.copy(), crowd.known != OPEN
    prior = mixture * fit.shares
    for turn in range(1, _ROUNDS + 1):
        done = (turn - 1) / _ROUNDS
        estimate_priors(crowd, fit, True, turn, turn in _STRENGTH_ROUNDS, watch, done)
        fit.shares = mean[crowd.active].sum(axis=0) + 1.0
        fit.shares /= fit.shares.sum()
        prior = mixture * fit.shares
        for first, last in crowd.spans:
            watch(done, words)
            membership_sweep(
                first, last, crowd.start, crowd.annotator, crowd.label, crowd.known, fit.base, fit.strength,
                fit.counts, fit.rows, prior, share, total,
            )  # fmt: skip
        mean = (prior + total) / (mixture + votes[:, None])
        mean[held] = posterior[held]
    if judged is not None and unheld is not None and len(judged):
        watch(1.0, words)
        answer = np.empty_like(unheld)
        membership_without_truth(
            judged, crowd.start, crowd.annotator, crowd.label, unheld, _SWEEPS, fit.base, fit.strength,
            fit.counts, fit.rows, prior, share, total, answer,
        )  # fmt: skip
        mean[judged] = (prior + answer) / (mixture + votes[judged, None])
    mean /= mean.sum(axis=1, keepdims=True)
    return mean, fit
