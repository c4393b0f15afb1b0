"""Dawid and Skene's model: tasks' classes and annotators' rates by maximum likelihood.

References
----------
.. [dawid1979] A. P. Dawid and A. M. Skene, "Maximum likelihood estimation of observer error-rates using the
   EM algorithm", Journal of the Royal Statistical Society C 28 (1979) 20-28, doi:10.2307/2346806.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels._alternation import Alternated, alternate
from raterscope.algorithms.labels._start import standing
from raterscope.algorithms.labels._votes import by_task
from raterscope.algorithms.labels.data import Confusion, FloatArray, LabelFusion, Labels, default_prior
from raterscope.algorithms.labels.prior import LabelSettings
from raterscope.algorithms.labels.results import fused, unsettled
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.algorithms.settings import integer, number

__all__ = ["DawidSkeneSettings", "dawid_skene"]


@dataclass(frozen=True)
class DawidSkeneSettings(LabelSettings):
    """Settings of `dawid_skene`."""

    smoothing: float = number(
        1e-10, "Smoothing", "Added to every count of a confusion matrix, and to the tasks of each class. "
        "Next to nothing: the likeliest rates, however few votes they rest on.",
        unit="votes", minimum=1e-10, maximum=1e6, advanced=True,
    )  # fmt: skip
    iterations: int = integer(500, "Iterations", "At most.", minimum=1, maximum=100_000, advanced=True)
    tolerance: float = number(
        1e-3, "Tolerance", "Change of every task's probabilities beneath which this ends.",
        minimum=0.0, maximum=0.1, advanced=True,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Likeliest:
    """The rates and shares of greatest likelihood, given the tasks."""

    smoothing: float
    outputs: int

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

    It begins with each task's shares of votes, where an output counts for the class that it stands for (for
    `Labels.prior`, where it is given, see `ibcc`; beyond that the prior plays no part). Known tasks are held
    fixed. A task without votes that is not known takes no part.

    Parameters
    ----------
    labels : Labels
    settings : DawidSkeneSettings, optional
    watch : Watch

    Returns
    -------
    LabelFusion
        The trace is the log likelihood of the votes under the rates that each iteration begins with,
        smoothing counted as votes; it never falls by more than rounding.

    Raises
    ------
    LabelsError
        When the confusion matrices would not fit into memory.

    Examples
    --------
    >>> from raterscope.algorithms.simulation.label_crowds import simulate_labels
    >>> from raterscope.algorithms.simulation.label_plans import staging_crowd
    >>> crowd = simulate_labels(staging_crowd(tasks=150, annotators=12), seed=1)
    >>> fusion = dawid_skene(crowd.labels)
    >>> float(round((fusion.posterior.argmax(axis=1) == crowd.truth).mean(), 2))
    0.88
    """
    settings = DawidSkeneSettings() if settings is None else settings
    labels = labels.settled(settings.repeats)
    votes = by_task(labels, part(watch, 0.0, 0.1))
    prior = np.full((len(labels.classes), len(labels.outputs)), settings.smoothing)

    def fusion(done: Alternated, notices: Iterable[str] = ()) -> LabelFusion:
        shares = (done.total + settings.smoothing) / (done.total + settings.smoothing).sum()
        alpha = np.empty(done.counts.shape)
        np.add(done.counts, prior, out=alpha)
        confusion = Confusion(alpha, prior)
        return fused(labels, "dawid_skene", done.posterior, confusion, done.trace, notices, shares=shares)

    done = alternate(
        votes,
        standing(labels, default_prior(labels) if labels.prior is None else labels.prior),
        0.0,
        _Likeliest(settings.smoothing, len(labels.outputs)),
        settings.iterations,
        settings.tolerance,
        "log-likelihood",
        part(watch, 0.1, 1.0, "estimating classes and confusion matrices, "),
        fusion,
    )
    del votes
    return fusion(done, unsettled(done.trace))
