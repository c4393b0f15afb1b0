"""Weight of the ordinal model against models of unordered classes, by held-out votes.

Classes named by numbers may be codes without an order, and annotators of grades may confuse classes that are
no neighbours. Each vote is therefore predicted from the others on its task by either model. Where the models
of unordered classes predict significantly better, the order is not used. Elsewhere the models are stacked
([yao2018]_): the weights maximise the likelihood of the mixture of their predictions of each task's votes.

References
----------
.. [yao2018] Y. Yao, A. Vehtari, D. Simpson and A. Gelman, "Using stacking to average Bayesian predictive
   distributions", Bayesian Analysis 13 (2018) 917-1007, doi:10.1214/17-BA1091.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from raterscope.algorithms.labels.crowd_votes import smoothed_vote, sort_votes
from raterscope.algorithms.labels.data import FloatArray, Labels
from raterscope.algorithms.labels.hierarchical import dawid_skene, task_scores
from raterscope.algorithms.labels.independence import thin_tasks
from raterscope.algorithms.progress import Watch, part, silent

_TERMS = 1_000_000
"""Votes times classes above which tasks are thinned. With fewer votes the simpler model would win."""

_PRIOR_TASKS = 20.0
"""Tasks that the order counts as: a few votes cannot contradict it."""

_SIGNIFICANT = 2.33
"""Standard errors by which unordered classes must predict better (1 %, one-sided)."""

_ROUNDS = 500
_CHANGE = 1e-5
_NEGLIGIBLE = 0.01


def ordinal_weight(
    labels: Labels, correlation: float, iterations: int, tolerance: float, watch: Watch = silent
) -> float:
    """Estimate the weight of the ordinal model, 0 to 1; 1 if the votes carry no information.

    Known classes are not used, so that the result does not depend on decisions.

    `labels`: labels of ordered classes; repeated votes settled. `correlation`: correlation of the votes on a
    task, for the predictions. `tolerance`: as in `dawid_skene`.
    """
    labels = thin_tasks(replace(labels, known=None), _TERMS)
    if not len(labels):
        return 1.0
    scores = []
    for ordered, step in ((True, part(watch, 0.0, 0.5)), (False, part(watch, 0.5, 1.0))):
        votes = replace(labels, ordered=ordered)
        crowd = sort_votes(votes, silent)
        posterior = smoothed_vote(votes, crowd, silent)
        fit, _ = dawid_skene(crowd, posterior, True, iterations, tolerance, step)
        scores.append(task_scores(crowd, fit, posterior, correlation))
    return _stacked(scores[0] - scores[1])


def _stacked(gain: FloatArray) -> float:
    """Return the weight of a model whose predictions have these gains of log-likelihood, by EM."""
    if gain.sum() < -_SIGNIFICANT * np.sqrt(np.square(gain).sum()):
        return 0.0
    ratio, weight = np.exp(np.clip(-gain, -50.0, 50.0)), 0.5
    for _ in range(_ROUNDS):
        before = weight
        share = weight / (weight + (1.0 - weight) * ratio)
        weight = float(share.sum() + _PRIOR_TASKS) / (len(gain) + _PRIOR_TASKS)
        if abs(weight - before) < _CHANGE:
            break
    return 0.0 if weight < _NEGLIGIBLE else 1.0 if weight > 1 - _NEGLIGIBLE else weight
