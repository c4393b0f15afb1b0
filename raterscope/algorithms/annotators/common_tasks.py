"""Communities of annotators who worked on the same tasks (the dynamic combination paper, section 6)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raterscope.algorithms.annotators.communities import METHODS, Communities, numbered
from raterscope.algorithms.annotators.network_communities import (
    FactorisationSettings,
    by_links,
    factorise,
    louvain,
    modularity,
)
from raterscope.algorithms.annotators.similarity import Float32Array
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.algorithms.settings import choice, integer, number

__all__ = ["CommonTaskSettings", "CommonTasks", "common_task_communities", "common_tasks"]

FloatArray = NDArray[np.float64]

_WHOLE = 2000
"""Up to so many annotators all links count, of more each one's closest."""

_CLOSEST = 50
_CHUNK = 100

_LADDER = (5.0, 10.0, 20.0, 40.0, 80.0)
_BETTER = 0.002
"""More evidence, and with it more communities, must raise the modularity by this much."""


@dataclass(frozen=True)
class CommonTaskSettings(FactorisationSettings):
    """Settings of `common_task_communities`."""

    most: int = integer(
        40, "Communities at most", "How many a search starts with; it takes out those that explain nothing.",
        minimum=1, maximum=1000, advanced=True,
    )  # fmt: skip
    evidence: float | None = number(  # type: ignore[assignment]  # it may be left open
        None, "Evidence", "How many observations the links of an annotator count for together: more splits "
        "communities, less joins them. Left open: what gives the highest modularity.",
        minimum=1, maximum=1e5, optional=True, advanced=True,
    )  # fmt: skip
    restarts: int = integer(
        1, "Restarts", "Searches from other starts; the best is kept.", minimum=1, maximum=100, advanced=True
    )  # fmt: skip
    method: str = choice("nmf", "Method", "How the network of annotators is taken apart.", METHODS)
    least_tasks: int = integer(
        10, "Tasks at least", "Annotators with fewer are left out: their links are mostly chance.",
        unit="tasks", minimum=1,
    )  # fmt: skip
    most_tasks: float | None = number(
        None, "Tasks at most", "Annotators with more are left out. Empty: no limit.",
        unit="tasks", minimum=1, optional=True, advanced=True,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class CommonTasks:
    """Tasks that each annotator worked on.

    Attributes
    ----------
    did : (M, N) SciPy sparse array, float32
        1 where an annotator labelled a task, however often.
    tasks : (M,) float32
        How many different ones.
    """

    did: Any
    tasks: Float32Array

    @cached_property
    def _doers(self) -> Any:
        return self.did.T.tocsr()

    def links(self, annotators: slice) -> Float32Array:
        """Return the links of some annotators to all, (A, M): equation 34, and 0 to oneself.

        The tasks in common over the mean number of tasks of the two; a task counts once, however often it
        was labelled.
        """
        common = (self.did[annotators] @ self._doers).toarray()
        mean = (self.tasks[annotators, None] + self.tasks) / np.float32(2)
        common /= np.maximum(mean, np.float32(0.5))
        rows = np.arange(len(common))
        common[rows, rows + (annotators.start or 0)] = 0.0
        return np.asarray(common)

    def of(self, annotators: NDArray[np.int64]) -> CommonTasks:
        """Return those annotators alone, (m,) rows of the M, in that order."""
        return CommonTasks(self.did[annotators], self.tasks[annotators])


def common_tasks(task: ArrayLike, annotator: ArrayLike, tasks: int, annotators: int) -> CommonTasks:
    """Note who worked on task_of_vote, from V votes.

    Parameters
    ----------
    task, annotator : (V,) int
    tasks, annotators : int
        N and K.

    Raises
    ------
    ValueError
        For votes that are not of one length, or of a task or an annotator that there is not.

    Examples
    --------
    >>> shared = common_tasks([0, 0, 1, 1, 1], [0, 1, 0, 1, 2], tasks=2, annotators=3)
    >>> shared.tasks
    array([2., 2., 1.], dtype=float32)
    """
    from scipy.sparse import csr_array

    task_of_vote, annotator_of_vote = np.asarray(task, dtype=np.int64), np.asarray(annotator, dtype=np.int64)
    if task_of_vote.shape != annotator_of_vote.shape or task_of_vote.ndim != 1:
        raise ValueError(
            f"tasks of {task_of_vote.shape} and annotators of {annotator_of_vote.shape}; expected one a vote."
        )
    for values, count in ((task_of_vote, tasks), (annotator_of_vote, annotators)):
        if len(values) and not 0 <= values.min() <= values.max() < count:
            raise ValueError(f"a vote is of number {values.max()}; expected 0 to {count - 1}.")
    pair = np.unique(annotator_of_vote * max(tasks, 1) + task_of_vote)
    annotator_of_vote, task_of_vote = np.divmod(pair, max(tasks, 1))
    did = csr_array(
        (np.ones(len(pair), dtype=np.float32), (annotator_of_vote, task_of_vote)), shape=(annotators, tasks)
    )
    return CommonTasks(did, np.bincount(annotator_of_vote, minlength=annotators).astype(np.float32))


def common_task_communities(
    task: ArrayLike,
    annotator: ArrayLike,
    tasks: int,
    annotators: int,
    settings: CommonTaskSettings | None = None,
    watch: Watch = silent,
    mean: FloatArray | None = None,
) -> Communities:
    """Group annotators by the tasks that they have in common.

    An annotator has no link to itself, but the factorisation explains every entry of the network: with 0 on
    the diagonal it would not find those who are linked to each other only, and with the degree there, as is
    usual, each annotator would become a community of its own once the scale of the network is fitted. So
    the diagonal is the closest link. How much the links count for, unless it is set, is what gives the
    highest modularity, the fewer communities where several are as good.

    Of more than 2,000 annotators each one's fifty closest links are taken apart; the modularity is that of
    all links. The order of the annotators does not matter.

    Parameters
    ----------
    task, annotator : (V,) int
    tasks, annotators : int
        N and K.
    settings : CommonTaskSettings, optional
    watch : Watch
    mean : (K, J, L) float64, optional
        Expected confusion matrices, for the communities' prototypes.

    Returns
    -------
    Communities
        Prototypes of shape (C, 0, 0) without `mean`. Those who have no task in common with anybody are not
        grouped.

    Raises
    ------
    ValueError
        For votes that do not fit.
    """
    settings = CommonTaskSettings() if settings is None else settings
    every = common_tasks(task, annotator, tasks, annotators)
    matrices = np.empty((annotators, 0, 0)) if mean is None else np.asarray(mean, dtype=np.float64)
    if len(matrices) != annotators:
        raise ValueError(f"{len(matrices)} confusion matrices of {annotators} annotators; expected one each.")
    most = np.inf if settings.most_tasks is None else settings.most_tasks
    enough = np.flatnonzero((every.tasks >= settings.least_tasks) & (every.tasks <= most))
    network = _network(every.of(enough), part(watch, 0.0, 0.1))
    linked = np.diff(network.indptr) > 0
    order = enough[linked]
    network = network[linked][:, linked]
    watch(0.1, "ordering annotators by their links")
    turn = by_links(network)
    watch(0.1, "ordering annotators by their links")
    order, network = order[turn], network[turn][:, turn].tocsr()
    notices = _left_out(every.tasks, len(enough) - len(order), settings)
    if not len(order):
        return Communities(
            np.empty(0, np.int32), np.empty(0, np.int16), np.empty((0, 0), np.float32),
            np.empty((0, *matrices.shape[1:])), 0.0, settings.method, 0.0, notices, "tasks",
        )  # fmt: skip
    those = every.of(order)
    if settings.method == "louvain":
        watch(0.1, "Louvain")
        result = louvain(network, settings.seed)
        share = np.zeros((len(order), int(result.max()) + 1), dtype=np.float32)
        share[np.arange(len(order)), result] = 1.0
        holds = modularity(_between(those, result, share.shape[1], part(watch, 0.8, 1.0)))
    else:
        share, holds = _by_factors(those, network, settings, part(watch, 0.1, 1.0))
    community, share, prototype = numbered(share, matrices[order])
    back = np.argsort(order)
    watch(1.0, "communities of common tasks")
    return Communities(
        np.sort(order).astype(np.int32), community[back], share[back], prototype, holds,
        settings.method, 0.0, notices, "tasks",
    )  # fmt: skip


def _network(those: CommonTasks, watch: Watch) -> Any:
    """Return the links as a sparse array; of many annotators the closest of each, from either end."""
    from scipy.sparse import csr_array

    count = len(those.tasks)
    entries: list[tuple[Float32Array, NDArray[np.int64], NDArray[np.int64]]] = []
    for first in range(0, count, _CHUNK):
        watch(first / count, "counting tasks in common")
        links = those.links(slice(first, min(first + _CHUNK, count)))
        if count > _WHOLE:
            least = np.partition(links, count - _CLOSEST, axis=1)[:, [count - _CLOSEST]]
            links[links < least] = 0.0
        row, column = np.nonzero(links)
        entries.append((links[row, column], row + first, column))
    if not entries:
        return csr_array((count, count), dtype=np.float32)
    watch(1.0, "counting tasks in common")
    values, rows, columns = (np.concatenate(each) for each in zip(*entries, strict=True))
    network = csr_array((values, (rows, columns)), shape=(count, count))
    return network.maximum(network.T).tocsr() if count > _WHOLE else network


def _between(those: CommonTasks, community: NDArray[Any], count: int, watch: Watch) -> FloatArray:
    """Add up all links between communities, without ever holding all of them."""
    member = np.zeros((len(community), count), dtype=np.float32)
    member[np.arange(len(community)), community] = 1.0
    links = np.zeros((count, count))
    for first in range(0, len(community), _CHUNK):
        watch(first / len(community), "measuring how communities hold together")
        some = slice(first, min(first + _CHUNK, len(community)))
        links += member[some].T.astype(np.float64) @ (those.links(some) @ member).astype(np.float64)
    return links


def _by_factors(
    those: CommonTasks, network: Any, settings: CommonTaskSettings, watch: Watch
) -> tuple[Float32Array, float]:
    from scipy.sparse import diags_array

    closest = network.max(axis=1).toarray().ravel()
    full: Any = (network + diags_array(closest)).tocsr().astype(np.float32)
    if full.nnz > full.shape[0] ** 2 / 8 and full.shape[0] <= _WHOLE:
        full = full.toarray()
    ladder = _LADDER if settings.evidence is None else (settings.evidence,)
    ladder = ladder[:1] if settings.as_printed else ladder  # the updates as printed weigh no evidence
    best: tuple[Float32Array, float] | None = None
    for at, evidence in enumerate(ladder):
        step = part(watch, at / len(ladder), (at + 0.9) / len(ladder))
        options = {spec.name: getattr(settings, spec.name) for spec in FactorisationSettings.specs()}
        factors = factorise(full, FactorisationSettings(**{**options, "evidence": evidence}), step)
        share = factors.participation
        step = part(watch, (at + 0.9) / len(ladder), (at + 1) / len(ladder))
        holds = modularity(_between(those, share.argmax(axis=1), share.shape[1], step))
        if best is None or holds > best[1] + _BETTER:
            best = share, holds
    assert best is not None
    return best


def _left_out(tasks: Float32Array, alone: int, settings: CommonTaskSettings) -> tuple[str, ...]:
    most = np.inf if settings.most_tasks is None else settings.most_tasks
    groups = (
        (
            np.count_nonzero(tasks < settings.least_tasks),
            f"labelled fewer than {settings.least_tasks:,} tasks",
        ),
        (np.count_nonzero(tasks > most), f"labelled more than {most:,.0f} tasks"),
        (alone, "labelled no task of another annotator"),
    )
    return tuple(
        f"{'1 annotator' if count == 1 else f'{count:,} annotators'} {reason} and "
        f"{'belongs' if count == 1 else 'belong'} to no community."
        for count, reason in groups
        if count
    )
