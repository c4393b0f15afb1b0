"""Communities of annotators who worked on the same tasks, and changes of communities over time.

See sections 6, 9 and 10 of the dynamic combination paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raterscope.algorithms.annotators.communities import Communities, number_communities
from raterscope.algorithms.annotators.network_communities import (
    FactorisationSettings,
    by_links,
    factorise,
    louvain,
    modularity,
)
from raterscope.algorithms.annotators.similarity import SCALE, Float32Array, hellinger_similarity
from raterscope.algorithms.array_operations import distinct_values
from raterscope.algorithms.progress import Watch, part, parts_of, silent

FloatArray = NDArray[np.float64]

_WHOLE = 2000
"""Maximum number of annotators for which all links count; in larger crowds only the closest links do."""

_CLOSEST = 50
_CHUNK = 100

_LADDER = (5.0, 10.0, 20.0, 40.0, 80.0)
_BETTER = 0.002
"""Minimum increase of the modularity for accepting more evidence, and with it more communities."""


@dataclass(frozen=True)
class CommonTaskSettings(FactorisationSettings):
    """Settings of `common_task_communities`."""

    most: int = 40
    evidence: float | None = None  # type: ignore[assignment]  # None: the value with the highest modularity
    restarts: int = 1
    method: str = "nmf"  # how the network of annotators is divided, a key of `METHODS`
    min_tasks: int = 10  # annotators with fewer are excluded: their links are mostly chance
    max_tasks: float | None = None  # annotators with more are excluded


@dataclass(frozen=True, eq=False)
class CommonTasks:
    """Tasks that each annotator worked on."""

    did: Any  # (M, N) SciPy sparse array, float32: 1 if an annotator labelled a task, once or more
    tasks: Float32Array  # (M,): number of different tasks

    @cached_property
    def _did_by_task(self) -> Any:
        return self.did.T.tocsr()

    def links(self, annotators: slice) -> Float32Array:
        """Return the links of some annotators to all, (A, M), by equation 34; 0 on the diagonal.

        A link is the number of common tasks over the mean number of tasks of the two; repeated labels count
        once.
        """
        common = (self.did[annotators] @ self._did_by_task).toarray()
        mean = (self.tasks[annotators, None] + self.tasks) / np.float32(2)
        common /= np.maximum(mean, np.float32(0.5))
        rows = np.arange(len(common))
        common[rows, rows + (annotators.start or 0)] = 0.0
        return np.asarray(common)

    def of(self, annotators: NDArray[np.int64]) -> CommonTasks:
        """Return the tasks of some annotators, given as (m,) rows, in that order."""
        return CommonTasks(self.did[annotators], self.tasks[annotators])


def common_tasks(task: ArrayLike, annotator: ArrayLike, tasks: int, annotators: int) -> CommonTasks:
    """Collect the tasks of each annotator from V votes.

    `task`, `annotator`: (V,). `tasks`, `annotators`: N and K. Raises `ValueError` for votes of different
    lengths, or unknown tasks or annotators.
    """
    from scipy.sparse import csr_array

    task_of_vote, annotator_of_vote = np.asarray(task, dtype=np.int64), np.asarray(annotator, dtype=np.int64)
    if task_of_vote.shape != annotator_of_vote.shape or task_of_vote.ndim != 1:
        raise ValueError(
            f"tasks of {task_of_vote.shape} and annotators of {annotator_of_vote.shape}; expected one each."
        )
    for values, count in ((task_of_vote, tasks), (annotator_of_vote, annotators)):
        if len(values) and not 0 <= values.min() <= values.max() < count:
            raise ValueError(f"a vote is of number {values.max()}; expected 0 to {count - 1}.")
    pair = distinct_values(annotator_of_vote * max(tasks, 1) + task_of_vote)
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
    """Group annotators by common tasks.

    The factorisation also explains the diagonal of the network, where annotators have no link. With 0 on the
    diagonal it would not find isolated pairs. With the degree there, as is usual, each annotator would become
    a separate community once the scale of the network is fitted. The diagonal is therefore set to each
    annotator's closest link. By default the weight of the links is the one with the highest modularity, in a
    tie that with fewer communities.

    With more than 2,000 annotators, the fifty closest links of each are factorised; the modularity is that of
    all links. The order of the annotators does not matter. Raises `ValueError` for invalid votes.

    `task`, `annotator`: (V,).
    `tasks`, `annotators`: N and K.
    `mean`: (K, J, L), expected confusion matrices, for the communities' prototypes.
    Without `mean`, prototypes have shape (C, 0, 0). Annotators without common tasks are not grouped.
    """
    settings = CommonTaskSettings() if settings is None else settings
    every = common_tasks(task, annotator, tasks, annotators)
    matrices = np.empty((annotators, 0, 0)) if mean is None else np.asarray(mean, dtype=np.float64)
    if len(matrices) != annotators:
        raise ValueError(f"{len(matrices)} confusion matrices of {annotators} annotators; expected one each.")
    most = np.inf if settings.max_tasks is None else settings.max_tasks
    enough = np.flatnonzero((every.tasks >= settings.min_tasks) & (every.tasks <= most))
    network = _network(every.of(enough), part(watch, 0.0, 0.1))
    linked = np.diff(network.indptr) > 0
    order = enough[linked]
    network = network[linked][:, linked]
    watch(0.1, "ordering annotators by their links")
    turn = by_links(network)
    watch(0.1, "ordering annotators by their links")
    order, network = order[turn], network[turn][:, turn].tocsr()
    notices = _exclusion_notices(every.tasks, len(enough) - len(order), settings)
    if not len(order):
        return Communities(
            np.empty(0, np.int32), np.empty(0, np.int16), np.empty((0, 0), np.float32),
            np.empty((0, *matrices.shape[1:])), 0.0, settings.method, 0.0, notices, "tasks",
        )  # fmt: skip
    selected = every.of(order)
    if settings.method == "louvain":
        watch(0.1, "Louvain")
        result = louvain(network, settings.seed)
        share = np.zeros((len(order), int(result.max()) + 1), dtype=np.float32)
        share[np.arange(len(order)), result] = 1.0
        holds = modularity(_between(selected, result, share.shape[1], part(watch, 0.8, 1.0)))
    else:
        share, holds = _by_factors(selected, network, settings, part(watch, 0.1, 1.0))
    community, share, prototype = number_communities(share, matrices[order])
    back = np.argsort(order)
    watch(1.0, "communities of common tasks")
    return Communities(
        np.sort(order).astype(np.int32), community[back], share[back], prototype, holds,
        settings.method, 0.0, notices, "tasks",
    )  # fmt: skip


def _network(tasks: CommonTasks, watch: Watch) -> Any:
    """Return the links as a sparse array; for many annotators only the closest links of each."""
    from scipy.sparse import csr_array

    count = len(tasks.tasks)
    entries: list[tuple[Float32Array, NDArray[np.int64], NDArray[np.int64]]] = []
    for first, last in parts_of(count, _CHUNK):
        watch(first / count, "counting tasks in common")
        links = tasks.links(slice(first, last))
        if count > _WHOLE:
            least = np.partition(links, count - _CLOSEST, axis=1)[:, [count - _CLOSEST]]
            links[links < least] = 0.0
        row, column = np.nonzero(links)
        entries.append((links[row, column], row + first, column))
    if not entries:
        return csr_array((count, count), dtype=np.float32)
    watch(1.0, "counting tasks in common")
    values, rows, columns = (np.concatenate(column) for column in zip(*entries, strict=True))
    network = csr_array((values, (rows, columns)), shape=(count, count))
    return network.maximum(network.T).tocsr() if count > _WHOLE else network


def _between(tasks: CommonTasks, community: NDArray[Any], count: int, watch: Watch) -> FloatArray:
    """Sum all links between communities, without storing all of them."""
    member = np.zeros((len(community), count), dtype=np.float32)
    member[np.arange(len(community)), community] = 1.0
    links = np.zeros((count, count))
    for first, last in parts_of(len(community), _CHUNK):
        watch(first / len(community), "measuring the modularity")
        block = slice(first, last)
        links += member[block].T.astype(np.float64) @ (tasks.links(block) @ member).astype(np.float64)
    return links


def _by_factors(
    tasks: CommonTasks, network: Any, settings: CommonTaskSettings, watch: Watch
) -> tuple[Float32Array, float]:
    from scipy.sparse import diags_array

    closest = network.max(axis=1).toarray().ravel()
    full: Any = (network + diags_array(closest)).tocsr().astype(np.float32)
    if full.nnz > full.shape[0] ** 2 / 8 and full.shape[0] <= _WHOLE:
        full = full.toarray()
    ladder = _LADDER if settings.evidence is None else (settings.evidence,)
    ladder = ladder[:1] if settings.as_published else ladder  # the updates as published weigh no evidence
    best: tuple[Float32Array, float] | None = None
    for at, evidence in enumerate(ladder):
        step = part(watch, at / len(ladder), (at + 0.9) / len(ladder))
        options = {field.name: getattr(settings, field.name) for field in fields(FactorisationSettings)}
        factors = factorise(full, FactorisationSettings(**{**options, "evidence": evidence}), step)
        share = factors.participation
        step = part(watch, (at + 0.9) / len(ladder), (at + 1) / len(ladder))
        holds = modularity(_between(tasks, share.argmax(axis=1), share.shape[1], step))
        if best is None or holds > best[1] + _BETTER:
            best = share, holds
    assert best is not None
    return best


def _exclusion_notices(tasks: Float32Array, alone: int, settings: CommonTaskSettings) -> tuple[str, ...]:
    most = np.inf if settings.max_tasks is None else settings.max_tasks
    groups = (
        (
            np.count_nonzero((tasks > 0) & (tasks < settings.min_tasks)),
            f"labelled fewer than {settings.min_tasks:,} tasks",
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


IntArray = NDArray[np.int64]

EVENTS = ("begins", "ends", "splits off", "joins")
"""Kinds of events, by the second column of `CommunitiesOverTime.events`."""

_BEGINS, _ENDS, _SPLITS, _JOINS = range(4)

_SAME_MEMBERS = 0.2
_SAME_BEHAVIOUR = 0.5
"""Minimum share of common members, or similarity of behaviour, for a community to continue."""


@dataclass(frozen=True, eq=False)
class CommunitiesOverTime:
    """Communities at T moments, matched over time."""

    moments: tuple[Communities, ...]  # tuple of T Communities
    # T arrays, (C_t,): the persistent number of each community of a moment. A community that continues keeps
    # its number; numbers are not reused
    identity: tuple[NDArray[np.int16], ...]
    # T - 1 arrays, (C_t + 1, C_t+1 + 1): number of annotators who moved between communities, by their numbers
    # within the two moments; the last row and column count annotators in no community
    flows: tuple[IntArray, ...]
    # (E, 4): moment, kind (index into `EVENTS`), persistent number, and the persistent number of the
    # community that it splits off or joins, -1 for none. Splits and beginnings belong to the later moment;
    # ends and joinings to the first moment without the community.
    events: NDArray[np.int32]
    annotators: int  # K

    @property
    def count(self) -> int:
        """Number of communities over all moments."""
        return 1 + max((int(identity.max()) for identity in self.identity if len(identity)), default=-1)

    def of(self, moment: int) -> NDArray[np.int16]:
        """Return the persistent number of every annotator's community at a moment, (K,), -1 for none."""
        every = np.full(self.annotators, -1, dtype=np.int16)
        now = self.moments[moment]
        every[now.members] = self.identity[moment][now.community]
        return every

    def path(self, number: int) -> tuple[IntArray, FloatArray]:
        """Return the moments of a community, (n,), and its prototypes there, (n, J, L)."""
        at = [
            (t, int(np.flatnonzero(identity == number)[0]))
            for t, identity in enumerate(self.identity)
            if number in identity
        ]
        result = np.array([t for t, _ in at], dtype=np.int64)
        shape = self.moments[0].prototype.shape[1:] if self.moments else (0, 0)
        matrices = [self.moments[t].prototype[c] for t, c in at]
        return result, np.array(matrices).reshape(len(at), *shape)

    def latest(self) -> FloatArray:
        """Return the last prototype of each persistent number, (count, J, L), from which names are made."""
        last = [self.path(number)[1][-1] for number in range(self.count)]
        return np.array(last).reshape(len(last), *(self.moments[0].prototype.shape[1:] if last else (0, 0)))

    def describe_events(self, names: Sequence[str], moments: Sequence[str] = ()) -> tuple[str, ...]:
        """Describe each event in a sentence.

        `names`: names of communities by their persistent numbers. `moments`: names of the moments, by default
        "at moment 1" and so on.
        """
        messages = []
        for moment, kind, label, other in self.events.tolist():
            more_text = "" if other < 0 else f" {'from ' if kind == _SPLITS else ''}{names[other]}"
            when = moments[moment] if moments else f"at moment {moment + 1}"
            messages.append(f"{when[:1].upper()}{when[1:]} {names[label]} {EVENTS[kind]}{more_text}.")
        return tuple(messages)


def follow(moments: Sequence[Communities], annotators: int) -> CommunitiesOverTime:
    """Match the communities of consecutive moments, one to one.

    The best matching maximises, over its pairs, the share of common members and the similarity of prototypes
    (`hellinger_similarity`): members move between constant communities, and communities change with their
    members. A pair that shares neither a fifth of its members nor half of its behaviour is not matched.

    `moments`: communities of the same annotators. `annotators`: K.
    """
    identity: list[NDArray[np.int16]] = []
    flows: list[IntArray] = []
    events: list[tuple[int, int, int, int]] = []
    number = 0
    for at, now in enumerate(moments):
        if at == 0:
            identity.append(np.arange(now.count, dtype=np.int16))
            number = now.count
            continue
        before = moments[at - 1]
        flow = _flow(before, now, annotators)
        match = _matched(before, now, flow[:-1, :-1])
        numbers = np.full(now.count, -1, dtype=np.int16)
        for old, new in match:
            numbers[new] = identity[-1][old]
        for new in np.flatnonzero(numbers < 0).tolist():
            numbers[new] = number
            number += 1
        events += _events(at, match, flow, identity[-1], numbers)
        identity.append(numbers)
        flows.append(flow)
    table = np.array(events, dtype=np.int32).reshape(-1, 4)
    return CommunitiesOverTime(tuple(moments), tuple(identity), tuple(flows), table, annotators)


def _flow(before: Communities, now: Communities, annotators: int) -> IntArray:
    old, new = before.of(annotators).astype(np.int64), now.of(annotators).astype(np.int64)
    old[old < 0], new[new < 0] = before.count, now.count
    counts = np.bincount(old * (now.count + 1) + new, minlength=(before.count + 1) * (now.count + 1))
    return counts.reshape(before.count + 1, now.count + 1)


def _matched(before: Communities, now: Communities, common: IntArray) -> list[tuple[int, int]]:
    from scipy.optimize import linear_sum_assignment

    union = before.sizes()[:, None] + now.sizes() - common
    members = common / np.maximum(union, 1)
    behaviour = np.zeros(common.shape)
    if common.size and before.prototype.size:
        every = np.concatenate([before.prototype, now.prototype])
        scale = now.scale or SCALE
        behaviour = hellinger_similarity(every, scale)[: before.count, before.count :].astype(np.float64)
    same = (members >= _SAME_MEMBERS) | (behaviour >= _SAME_BEHAVIOUR)
    rows, columns = linear_sum_assignment(np.where(same, members + behaviour, 0.0), maximize=True)
    return [(int(old), int(new)) for old, new in zip(rows, columns, strict=True) if same[old, new]]


def _events(
    at: int,
    match: list[tuple[int, int]],
    flow: IntArray,
    old_number: NDArray[np.int16],
    new_number: NDArray[np.int16],
) -> list[tuple[int, int, int, int]]:
    """Find the communities that most members of unmatched communities came from or went to, if any."""
    stayed, known = {old for old, _ in match}, {new for _, new in match}
    events = []
    for old in range(len(old_number)):
        if old not in stayed:
            destination = _majority_column(flow[old])
            other = int(new_number[destination]) if 0 <= destination < len(new_number) else -1
            events.append((at, _ENDS if other < 0 else _JOINS, int(old_number[old]), other))
    for new in range(len(new_number)):
        if new not in known:
            origin = _majority_column(flow[:, new])
            other = int(old_number[origin]) if 0 <= origin < len(old_number) else -1
            events.append((at, _BEGINS if other < 0 else _SPLITS, int(new_number[new]), other))
    return events


def _majority_column(counts: IntArray) -> int:
    """Return the column that holds more than half of each row's sum, -1 for none."""
    return int(counts.argmax()) if counts.size and 2 * counts.max() > counts.sum() > 0 else -1
