"""Active learning: the task and the annotator with the largest expected information gain.

In the paper's section 11 (V_object of eq. 94) an assignment of tasks to annotators maximises the expected
information gain about the tasks' classes. Here the gain is computed for one more vote.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from heapq import heapify, heappop, heappush, heappushpop
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.array_operations import max_rows, sum_rows
from raterscope.algorithms.labels.data import OPEN, FloatArray, IndexArray, LabelFusion, Labels, distinct
from raterscope.algorithms.progress import Watch, part, parts_of, run_parts, silent

_LEAST = 1e-6
"""Minimum information gain of a vote, in bits."""

_PROBES = 24
"""Number of test posteriors for choosing the annotators of the first selection."""

_SIFTED = (15, 1500)
"""Number of tasks evaluated with every annotator: a multiple of the requested votes, and a minimum."""

_PAIRS = 50_000_000
"""Maximum number of tasks times annotators times outputs, if at least twice the needed tasks remain."""

_ORDERED = 50
"""Number of tasks that are sorted first, as a multiple of those evaluated with every annotator."""

_CELLS = 1_000_000
"""Number of gains computed between two progress reports; above it, gains are first computed in single
precision.
"""

_SPREAD, _SHARES = 10, 2
"""Maximum votes to request from an annotator: this multiple of an equal share, or the annotator's share of
the votes so far, but at most a tenth of all (with fewer than ten annotators, an equal share).
"""


@dataclass(frozen=True, eq=False)
class NextVotes:
    """M votes to request, the most informative first."""

    task: IndexArray  # (M,)
    # (M,): annotator; `OPEN` for a new annotator, if all others voted on the task or have enough tasks
    annotator: IndexArray
    # (M,): expected information gain of the vote about the task's class, bits; for further votes on the same
    # task, the expected additional gain
    gain: FloatArray
    gain_of_new: FloatArray  # (M,): the same for a new annotator with the prior's rates

    def __len__(self) -> int:
        return len(self.task)


@dataclass(frozen=True, eq=False)
class Terms:
    """Limits for requesting votes."""

    # (K,): cost of a vote of each annotator, above 0; by default 1. A new annotator has the median cost.
    cost: FloatArray | None = None
    # (K,): maximum number of votes to request from each annotator; by default `usual_load`
    most: NDArray[np.int64] | None = None
    tasks: NDArray[np.bool_] | None = None  # (N,): tasks to ask for; by default all
    per_task: int = 1  # maximum number of votes to request on a task
    spend: float = math.inf  # maximum cost of all votes


def expected_information(posterior: FloatArray, rates: FloatArray) -> FloatArray:
    """Return the expected information gain, (M, K) bits, of annotators' votes on tasks.

    It is the entropy before a vote minus the expected entropy after it. With m = p . pi^(k), the distribution
    of the next output, it is H(m) - sum_j p_j H(pi_j^(k)).

    `posterior`: (M, J). `rates`: (K, J, L), probabilities of the next output: the means of the confusion
    matrices' Dirichlet distributions, which are exact for a single vote.
    """
    return _information(posterior, *_prepared(rates))


def _prepared(rates: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return rates of annotators by class, (J, K, L), and the entropies of their rows, (K, J)."""
    return np.ascontiguousarray(rates.transpose(1, 0, 2)), _entropy(rates)


def _information(posterior: FloatArray, by_class: FloatArray, entropies: FloatArray) -> FloatArray:
    """Return `expected_information` from the results of `_prepared`."""
    classes, annotators, outputs = by_class.shape
    following = posterior @ by_class.reshape(classes, annotators * outputs)
    gain = _entropy(following.reshape(len(posterior), annotators, outputs)) - posterior @ entropies.T
    return np.asarray(np.maximum(gain, 0.0, out=gain))


def next_votes(
    labels: Labels,
    fusion: LabelFusion,
    count: int = 100,
    watch: Watch = silent,
    terms: Terms | None = None,
) -> NextVotes:
    """Select the votes to request next.

    No annotator gets a second vote on a task, or more votes than `usual_load`: twice the equal share or their
    share of the votes so far, and at most a tenth. Votes are selected greedily, those with most information
    for their cost first. A further vote on a task counts by the share of the task's entropy that the votes
    before it are expected to leave. Not all pairs are evaluated. The gain of a vote is at most the task's
    entropy; tasks are therefore visited in order of decreasing entropy, until it is below the gains found. A
    first selection uses a few annotators: those with the largest gain if all classes, or the two classes most
    often confused, are equally probable. The selected tasks, fifteen times the number of requested votes and
    at least 1500, are evaluated with all annotators. With fewer tasks the result is exact.

    `labels`: the labels that were fused. `count`: maximum number of votes to request.
    `terms`: loads and costs of the annotators, and the tasks to label. The result is empty if all tasks are
    certain.

    Examples
    --------
    >>> from raterscope.algorithms.simulation.label_crowds import simulate_labels
    >>> from raterscope.algorithms.simulation.label_crowds import staging_crowd
    >>> crowd = simulate_labels(staging_crowd(tasks=150, annotators=12), seed=1)
    >>> from raterscope.algorithms.labels.ibcc import ibcc
    >>> votes = next_votes(crowd.labels, ibcc(crowd.labels), count=3)
    >>> votes.gain.shape, bool(votes.gain[0] >= votes.gain[-1])
    ((3,), True)
    """
    terms = terms or Terms()
    eligible = np.flatnonzero(labels.votes_of_annotators() > 0)
    cost = np.ones(len(labels.annotators)) if terms.cost is None else terms.cost
    most = usual_load(count, labels.votes_of_annotators(), len(eligible))
    if terms.most is not None:
        most = terms.most
        eligible = eligible[most[eligible] > 0]
    rates = fusion.confusion.mean()
    newcomer = (fusion.confusion.prior / fusion.confusion.prior.sum(axis=1, keepdims=True))[None]
    own = distinct(rates)
    all_rates = np.concatenate([own if len(own) == 1 else own[eligible], newcomer])
    posterior = fusion.posterior
    if terms.tasks is not None:
        certain = np.eye(1, posterior.shape[1])  # no votes are requested for the other tasks
        posterior = np.where(terms.tasks[:, None], posterior, certain)
    room = _PAIRS // (len(all_rates) * len(labels.outputs))
    many = max(2 * count, min(max(_SIFTED[0] * count, _SIFTED[1]), room))
    sifted = _sift(posterior, all_rates, many, part(watch, 0.0, 0.6))
    full = int((np.cumsum(np.sort(most[eligible])) <= count).sum())
    keep = min(len(eligible), full + terms.per_task)
    annotator, gain = _rank_annotators(
        labels, posterior, sifted, eligible, rates, cost, keep, part(watch, 0.6, 1.0)
    )
    new = expected_information(posterior[sifted], newcomer)[:, 0]
    rows, chosen, gains = _assign(annotator, gain, new, _entropy(posterior[sifted]), count, most, cost, terms)
    return NextVotes(sifted[rows].astype(np.int32), chosen, gains, new[rows])


def usual_load(count: int, votes: NDArray[np.integer], annotators: int) -> NDArray[np.int64]:
    """Return the default limit of requested votes for each annotator, (K,); see `next_votes`.

    `count`: number of votes to request. `votes`: (K,) integer, votes of each annotator so far. Annotators who
    gave many votes may give many again: with equal loads, a crowd whose few most active annotators are its
    best would lose accuracy. `annotators`: number of available annotators.
    """
    equal = 1 / max(1, annotators)
    so_far = votes / max(1, int(votes.sum()))
    share = np.minimum(np.maximum(so_far, _SHARES * equal), max(equal, 1 / _SPREAD))
    return np.asarray(np.ceil(np.round(count * share, 9)), dtype=np.int64)


def _entropy(chances: FloatArray) -> FloatArray:
    """Return the entropy along the last axis, in bits."""
    terms = np.maximum(chances, np.finfo(chances.dtype).tiny)
    np.log2(terms, out=terms)
    terms *= chances
    return np.asarray(-sum_rows(terms))


def _sift(posterior: FloatArray, rates: FloatArray, many: int, watch: Watch) -> NDArray[np.int64]:
    """Find the tasks with the largest gain from the best of a few annotators."""
    doubt = np.empty(len(posterior))
    for span in _spans(len(posterior), posterior.shape[1], part(watch, 0.0, 0.3), "finding uncertain tasks"):
        doubt[span] = _entropy(posterior[span])
    doubtful = np.flatnonzero(doubt > _LEAST)
    if len(doubtful) <= many:
        return doubtful
    doubtful, ordered = _order(doubt, doubtful, _ORDERED * many)
    tried = expected_information(_probes(posterior[doubtful[: 20 * many]]), rates)
    few = rates[np.unique(tried.argmax(axis=1))]
    prepared = _prepared(few)
    gain = np.zeros(len(doubtful))
    visited, bar = 0, 0.0
    cells = few.shape[0] * few.shape[2]
    for span in _spans(len(doubtful), cells, part(watch, 0.3, 1.0), "sifting tasks"):
        while span.stop > ordered:
            doubtful[ordered:], more = _order(doubt, doubtful[ordered:], ordered)
            ordered += more
        rows = doubtful[span]
        if doubt[rows[0]] <= bar:
            break
        gain[span] = max_rows(_information(posterior[rows], *prepared))
        visited = span.stop
        if span.stop >= many:
            bar = float(np.partition(gain[: span.stop], -many)[-many:].min())
    best, _ = _order(gain, np.arange(visited), many)  # selecting among many zeros takes long
    return np.asarray(doubtful[best[:many]])


def _order(doubt: FloatArray, tasks: NDArray[np.int64], count: int) -> tuple[NDArray[np.int64], int]:
    """Put the `count` tasks of largest entropy or gain first, in decreasing order; return their number.

    Sorting many tasks takes long, and usually only the first are visited.
    """
    uncertain = doubt[tasks]
    first = np.ones(len(tasks), dtype=np.bool_)
    if count < len(tasks):
        first = uncertain >= np.partition(uncertain, -count)[-count]
    order = np.argsort(-uncertain[first], kind="stable")
    return np.concatenate([tasks[first][order], tasks[~first]]), len(order)


def _probes(posterior: FloatArray) -> FloatArray:
    """Return test posteriors: all classes equal, and the two most probable classes of many tasks equal."""
    classes = posterior.shape[1]
    two = np.sort(np.argsort(-posterior, axis=1, kind="stable")[:, :2], axis=1)
    pairs, often = np.unique(two[:, 0] * classes + two[:, 1], return_counts=True)
    pairs = pairs[np.argsort(-often, kind="stable")[: _PROBES - 1]]
    probes = np.zeros((len(pairs) + 1, classes))
    probes[0] = 1.0 / classes
    rows = np.arange(1, len(probes))
    probes[rows, pairs // classes] = probes[rows, pairs % classes] = 0.5
    return probes


def _rank_annotators(
    labels: Labels,
    posterior: FloatArray,
    tasks: NDArray[np.int64],
    eligible: NDArray[np.int64],
    rates: FloatArray,
    cost: FloatArray,
    keep: int,
    watch: Watch,
) -> tuple[IndexArray, FloatArray]:
    """Rank annotators for every task by gain per cost, the best first, (M, keep); return their gains.

    With fewer candidates, the remaining gains are -inf. Enough annotators are kept that some remain when
    others have enough tasks.
    """
    annotator = np.zeros((len(tasks), keep), dtype=np.int32)
    gain = np.full((len(tasks), keep), -np.inf)
    if not keep or not len(tasks):
        return annotator, gain
    column = np.full(len(labels.annotators), OPEN, dtype=np.int64)
    column[eligible] = np.arange(len(eligible))
    row = np.full(len(labels.tasks), OPEN, dtype=np.int64)
    row[tasks] = np.arange(len(tasks))
    votes = np.flatnonzero((row != OPEN)[labels.task] & (column != OPEN)[labels.annotator])
    voted_row, voted_column = row[labels.task[votes]], column[labels.annotator[votes]]
    # Single precision is twice as fast, and selects the same annotators; their gains are then computed again.
    single = len(tasks) * len(eligible) * rates.shape[2] >= _CELLS
    dtype: Any = np.float32 if single else np.float64
    own = distinct(rates)
    alike = len(own) == 1
    prepared, entropies = _prepared((own if alike else own[eligible]).astype(dtype)), _entropy(own)
    cells = len(eligible) * rates.shape[2]
    price = cost[eligible].astype(dtype)

    def rank(first: int, last: int) -> None:
        span = slice(first, last)
        gains = _information(posterior[tasks[span]].astype(dtype), *prepared)
        if alike:
            gains = np.repeat(gains, len(eligible), axis=1)
        in_span = (voted_row >= first) & (voted_row < last)
        gains[voted_row[in_span] - first, voted_column[in_span]] = -np.inf
        top = np.argpartition(-gains / price, keep - 1, axis=1)[:, :keep]
        value = np.take_along_axis(gains, top, axis=1).astype(np.float64)
        if single:
            for at, task in enumerate(tasks[span]):
                some = slice(None) if alike else eligible[top[at]]
                exact = _information(posterior[task][None], own[some].transpose(1, 0, 2), entropies[some])[0]
                value[at] = np.where(np.isfinite(value[at]), exact, value[at])
        order = np.lexsort((top, -value / price[top]), axis=1)
        annotator[span] = eligible[np.take_along_axis(top, order, axis=1)]
        gain[span] = np.take_along_axis(value, order, axis=1)

    run_parts(rank, parts_of(len(tasks), _CELLS // max(1, cells)), partial(watch, 0.0, "trying annotators"))
    return annotator, gain


def _spans(tasks: int, cells: int, watch: Watch, text: str) -> Iterator[slice]:
    for first, last in parts_of(tasks, _CELLS // max(1, cells)):
        watch(first / tasks, text)
        yield slice(first, last)


def _assign(
    ranked: IndexArray,
    gain: FloatArray,
    new: FloatArray,
    entropy: FloatArray,
    count: int,
    most: NDArray[np.integer],
    cost: FloatArray,
    terms: Terms,
) -> tuple[NDArray[np.int64], IndexArray, FloatArray]:
    """Repeatedly select the vote with most information for its cost, within all limits."""
    choices = ranked.shape[1]
    remains, votes = entropy.copy(), np.zeros(len(ranked), dtype=np.int64)
    usual = float(np.median(cost)) if len(cost) else 1.0
    assigned = np.zeros(len(cost), dtype=np.int64)
    spent = 0.0

    def price(row: int, at: int) -> float:
        return float(cost[ranked[row, at]]) if at < choices else usual

    def value(row: int, at: int) -> float:
        of_vote = gain[row, at] if at < choices else new[row]
        return float(of_vote * remains[row] / max(entropy[row], _LEAST))

    def offer(row: int, at: int) -> tuple[float, int, int]:
        if at < choices and gain[row, at] < 0.0:
            at = choices
        return -value(row, at) / price(row, at), row, at

    def refused(row: int, at: int) -> bool:
        full = at < choices and assigned[ranked[row, at]] >= most[ranked[row, at]]
        return full or spent + price(row, at) > terms.spend

    offers = [offer(row, 0) for row in range(len(ranked))]
    heapify(offers)
    rows: list[int] = []
    chosen: list[int] = []
    gains: list[float] = []
    while offers and len(rows) < count:
        _, row, at = heappop(offers)
        while at < choices and refused(row, at):
            _, row, at = heappushpop(offers, offer(row, at + 1))
        gained = value(row, at)
        if gained < _LEAST or refused(row, at):
            continue
        if at < choices:
            assigned[ranked[row, at]] += 1
        spent += price(row, at)
        rows.append(row)
        chosen.append(int(ranked[row, at]) if at < choices else OPEN)
        gains.append(gained)
        votes[row] += 1
        remains[row] -= gained
        if votes[row] < terms.per_task:
            heappush(offers, offer(row, min(at + 1, choices)))
    return (
        np.array(rows, dtype=np.int64),
        np.array(chosen, dtype=np.int32),
        np.array(gains, dtype=np.float64),
    )
