"""Communities of annotators with similar behaviour (the dynamic combination paper, section 5)."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raterscope.algorithms.annotators.network_communities import (
    FactorisationSettings,
    factorise,
    join_communities,
    louvain,
    modularity,
)
from raterscope.algorithms.annotators.similarity import (
    Float32Array,
    fitting_scale,
    roots_of,
    similarity_of_roots,
)
from raterscope.algorithms.progress import Watch, part, parts_of, run_parts, silent

_ROUNDS = 4
"""Number of rounds of k-means; more rounds change little."""

_ROWS_OF_CELLS = 2000
"""Number of rows that are compared with all cells between two progress reports."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Assignment of M rows to B cells."""

    cell: NDArray[np.int64]  # (M,)
    centre: Float32Array  # (B, D): the mean of a cell's rows
    weight: Float32Array  # (B,): number of its rows, at least one


def group_into_cells(rows: Float32Array, most: int, watch: Watch = silent) -> Cells:
    """Group rows (M, D) into at most `most` cells of similar rows.

    The cell with the largest spread is divided at its mean along its widest column until there are `most`
    cells; a few rounds of k-means follow. The result is deterministic. If there are no more rows than cells,
    each distinct row has its own cell.
    """
    if len(rows) <= most:
        centre, cell, count = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
        return Cells(cell.ravel(), centre, count.astype(np.float32))
    cell = _cut(rows, most, watch)
    for at in range(_ROUNDS):
        watch(0.2 + 0.8 * at / _ROUNDS, "grouping similar annotators")
        centre = _centres(rows, cell)[0]
        half = (centre * centre).sum(axis=1) / np.float32(2)
        for first in range(0, len(rows), _ROWS_OF_CELLS):
            watch(0.2 + 0.8 * at / _ROUNDS, "grouping similar annotators")
            block = slice(first, first + _ROWS_OF_CELLS)
            cell[block] = (half - rows[block] @ centre.T).argmin(axis=1)
        cell = np.unique(cell, return_inverse=True)[1].ravel()
    centre, weight = _centres(rows, cell)
    return Cells(cell, centre, weight)


def _cut(rows: Float32Array, most: int, watch: Watch) -> NDArray[np.int64]:
    heap: list[tuple[float, int, NDArray[np.int64], int]] = []
    number = 0

    def push(members: NDArray[np.int64]) -> None:
        nonlocal number
        spread = rows[members].var(axis=0, dtype=np.float64)
        heapq.heappush(heap, (-float(spread.sum()) * len(members), number, members, int(spread.argmax())))
        number += 1

    push(np.arange(len(rows)))
    while len(heap) < most and -heap[0][0] > 1e-9:
        if len(heap) % 50 == 0:
            watch(0.2 * len(heap) / most, "grouping similar annotators")
        _, _, members, widest = heapq.heappop(heap)
        values = rows[members, widest]
        low = values < values.mean(dtype=np.float64)
        push(members[low])
        push(members[~low])
    cell = np.empty(len(rows), dtype=np.int64)
    for at, (_, _, members, _) in enumerate(heap):
        cell[members] = at
    return cell


def _centres(rows: Float32Array, cell: NDArray[np.int64]) -> tuple[Float32Array, Float32Array]:
    count = np.bincount(cell)
    sums = np.stack([np.bincount(cell, column) for column in rows.T], axis=1)
    return (sums / count[:, None]).astype(np.float32), count.astype(np.float32)


_BLIND = 0.12
"""Rows whose distance from their mean (total variation) is smaller than this do not identify the class."""


_FREQUENT, _STANDS_OUT = 0.1, 1.5
"""Minimum rate of a mistake that names a behaviour, and minimum ratio to the mean of all mistakes."""

_LONG = 28
"""Maximum number of letters of a class name."""


def describe_community(
    prototype: ArrayLike, classes: Sequence[str], outputs: Sequence[str], meaning: Sequence[int]
) -> str:
    """Name a behaviour: "reliable", "always cat", "mistakes cat for dog".

    Classes have equal weight, however frequent they are. The rules apply in this order: nearly the same
    answers to every class ("always", "mostly ..., whatever it is", "guessing"); swapped classes; no clear
    answer; reliable; one class missed. The rest are named by the range of the classes' accuracies and by one
    frequent mistake ("right 37 to 64 %, often cat as dog") if their accuracy beyond chance is at least a
    fifth of the possible. With many classes, three times the accuracy of a guess is "better than guessing".

    `prototype`: (J, L), probabilities, rows adding up to 1.
    `classes`, `outputs`: J and L names.
    `meaning`: the class that each of the L outputs represents, -1 for none.
    """
    classes, outputs = _shortened(classes), _shortened(outputs)
    matrix = np.asarray(prototype, dtype=np.float64)
    means_class = np.asarray(meaning)[None, :] == np.arange(len(classes))[:, None]
    right = (matrix * means_class).sum(axis=1)[means_class.any(axis=1)]
    use = matrix.mean(axis=0)
    differ = float(np.abs(matrix - use).sum(axis=1).mean()) / 2
    if len(classes) > 1 and differ < _BLIND:
        return _describe_constant_answers(use, matrix, outputs)
    if not len(right):
        return f"mostly {outputs[int(use.argmax())]}"
    if right.max() < 0.5 and len(classes) > 1 and _is_swapped(matrix, means_class):
        return "the wrong way round"
    if use[np.asarray(meaning) < 0].sum() > 0.4:
        return "non-committal"
    if right.min() >= 0.7 and right.mean() >= 0.85:
        return "very reliable" if right.min() >= 0.9 and right.mean() >= 0.95 else "reliable"
    missed = _describe_missed_class(matrix, means_class, classes)
    if missed:
        return missed
    beyond = (right.mean() - 1 / len(classes)) / max(1 - 1 / len(classes), 1e-9)
    if beyond >= 0.2:
        avoided = "" if beyond >= 0.5 else _avoided(matrix, outputs)
        return avoided or _describe_accuracy(matrix, means_class, classes)
    if right.mean() * len(classes) >= 3:
        return "better than guessing"
    return "little better than guessing" if beyond > -0.2 else "mostly wrong"


def describe_communities(
    prototypes: ArrayLike, classes: Sequence[str], outputs: Sequence[str], meaning: Sequence[int]
) -> tuple[str, ...]:
    """Name several behaviours, (C, J, L), each with a different name.

    Communities with the same name are distinguished by the output that each gives more often than the others:
    "reliable (favours cat)", or, if that is not enough, also by a number: "reliable (favours cat) 2".
    """
    matrices = np.asarray(prototypes, dtype=np.float64)
    plain = [describe_community(matrix, classes, outputs, meaning) for matrix in matrices]
    names = list(plain)
    for name, count in Counter(plain).items():
        if count == 1:
            continue
        alike = [at for at, other in enumerate(plain) if other == name]
        use = matrices[alike].mean(axis=1)
        more = (use - use.mean(axis=0)).argmax(axis=1)
        for at, output in zip(alike, more, strict=True):
            names[at] = f"{name} (favours {_shortened(outputs)[int(output)]})"
    visited: Counter[str] = Counter()
    again = Counter(names)
    for at, name in enumerate(names):
        if again[name] > 1:
            visited[name] += 1
            names[at] = f"{name} {visited[name]}"
    return tuple(names)


def _shortened(names: Sequence[str]) -> list[str]:
    """Shorten long names in the middle: names mostly differ at the ends."""
    return [
        name if len(name) <= _LONG else f"{name[: _LONG // 2]}…{name[-_LONG // 2 + 1 :]}" for name in names
    ]


def _describe_constant_answers(use: FloatArray, matrix: FloatArray, outputs: Sequence[str]) -> str:
    most = int(use.argmax())
    if use[most] >= 0.85:
        return f"always {outputs[most]}"
    if use[most] >= max(0.6, 1.5 / len(use)):
        return f"mostly {outputs[most]}, whatever it is"
    return _avoided(matrix, outputs) or "guessing"


def _avoided(matrix: FloatArray, outputs: Sequence[str]) -> str:
    """Return the output that is rarely given for any class, if there are more than two outputs."""
    most = matrix.max(axis=0)
    at = int(most.argmin())
    return f"seldom {outputs[at]}" if len(most) > 2 and most[at] < 0.45 / len(most) else ""


def _is_swapped(matrix: FloatArray, means_class: NDArray[np.bool_]) -> bool:
    """Return whether every class is mostly labelled as another class, each as a different one."""
    share = matrix @ means_class.T.astype(np.float64)
    likeliest = share.argmax(axis=1)
    return bool(
        (likeliest != np.arange(len(likeliest))).all()
        and len(set(likeliest)) == len(likeliest)
        and (share.max(axis=1) > 0.5).all()
    )


def _describe_missed_class(matrix: FloatArray, means_class: NDArray[np.bool_], classes: Sequence[str]) -> str:
    """Name the only class that is mostly labelled wrong, if all others are mostly labelled right."""
    share = matrix @ means_class.T.astype(np.float64)
    right = np.where(means_class.any(axis=1), np.diag(share), np.nan)
    weak = np.flatnonzero(right < 0.5)
    if len(weak) != 1 or not (right[np.arange(len(right)) != weak[0]] >= 0.6).any():
        return ""
    at = int(weak[0])
    wrong = np.where(np.arange(len(classes)) == at, 0.0, share[at])
    for_what = int(wrong.argmax())
    if wrong[for_what] > 0.5:
        return f"mistakes {classes[at]} for {classes[for_what]}"
    return f"unsure of {classes[at]}"


def _describe_accuracy(matrix: FloatArray, means_class: NDArray[np.bool_], classes: Sequence[str]) -> str:
    share = matrix @ means_class.T.astype(np.float64)
    right = np.diag(share)[means_class.any(axis=1)]
    low, high = f"{100 * right.min():.0f}", f"{100 * right.max():.0f}"
    text = f"right {low} %" if low == high else f"right {low} to {high} %"
    wrong = share - np.diag(np.diag(share))
    at, given = divmod(int(wrong.argmax()), len(wrong))
    usual = wrong.sum() / max(wrong.size - len(wrong), 1)
    if wrong[at, given] > max(_FREQUENT, _STANDS_OUT * usual):
        text += f", often {classes[at]} as {classes[given]}"
    return text


FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

METHODS = {
    "nmf": "Bayesian factorisation: finds the number of communities; annotators may belong to several",
    "louvain": "Louvain: each annotator belongs to one community",
}

_CELLS, _CELLS_OF_MANY = 1000, 500
"""Maximum number of annotators for which all pairs are compared, and number of cells for larger crowds."""

_LINKED = 2000
"""Number of annotators in a larger crowd whose links give an estimate of the modularity."""

_CHUNK = 100
_LINKS = 500_000
"""Number of links that fit into a processor's cache."""


@dataclass(frozen=True)
class CommunitySettings(FactorisationSettings):
    """Settings of `communities`."""

    method: str = "nmf"  # how the network of annotators is divided, a key of `METHODS`
    min_votes: int = 10  # annotators with fewer are excluded: their rates are mostly prior
    max_votes: float | None = None  # annotators with more are excluded
    # how fast similarity falls with distance: a larger scale separates finer differences, but may split
    # communities by chance. None: 30, or less if even similar annotators differ; 1 with `as_published`
    scale: float | None = None


@dataclass(frozen=True, eq=False)
class Communities:
    """C communities of M annotators with similar behaviour."""

    # (M,): the grouped annotators, ascending; annotators with fewer votes than the minimum are excluded
    members: NDArray[np.int32]
    # (M,): the community with the largest participation; numbered by size, the largest 0
    community: NDArray[np.int16]
    # (M, C): participation of each annotator in each community, rows adding up to 1
    participation: Float32Array
    # (C, J, L): the mean of the members' confusion matrices weighted by participation; (C, 0, 0) if
    # communities do not describe behaviour
    prototype: FloatArray
    modularity: float  # similarity within communities beyond chance, -1 to 1
    method: str  # "nmf" or "louvain"
    scale: float = 0.0  # of the similarity, set or estimated; 0 if there is none
    notices: tuple[str, ...] = ()  # messages for the user, a sentence each
    basis: str = "behaviour"  # common property of the members: "behaviour" or "tasks"

    @property
    def count(self) -> int:
        """Number of communities, C."""
        return int(self.participation.shape[1])

    def reordered(self, order: IntArray) -> Communities:
        """Return the communities with all annotators in another order, first the annotator at `order[0]`."""
        new = np.argsort(order)[self.members]
        row = np.argsort(new)
        return replace(
            self,
            members=new[row].astype(self.members.dtype),
            community=self.community[row],
            participation=self.participation[row],
        )

    def sizes(self) -> IntArray:
        """Count the annotators of each community, (C,)."""
        return np.bincount(self.community, minlength=self.count)

    def central(self, votes: ArrayLike) -> NDArray[np.int32]:
        """Return the member with the largest participation in each community, (C,).

        The paper shows this annotator's confusion matrix as the community's prototype (section 5, Fig. 3);
        `prototype` is the members' mean, which is also valid for equal participation.

        `votes`: (K,), number of votes of each annotator; they break ties between members of equal
        participation.
        """
        votes_given = np.asarray(votes, dtype=np.float64)[self.members]
        own = self.community[:, None] == np.arange(self.count)
        share = np.where(own, np.round(self.participation.astype(np.float64), 4), -1.0)
        best = [np.lexsort((votes_given, share[:, at]))[-1] for at in range(self.count)]
        return self.members[np.array(best, dtype=np.int64)]

    def of(self, annotators: int) -> NDArray[np.int16]:
        """Return the community of every annotator; -1 for annotators who were not grouped."""
        every = np.full(annotators, -1, dtype=np.int16)
        every[self.members] = self.community
        return every


def communities(
    mean: ArrayLike,
    votes: ArrayLike,
    settings: CommunitySettings | None = None,
    watch: Watch = silent,
    used: NDArray[np.bool_] | None = None,
) -> Communities:
    """Group annotators by their expected confusion matrices.

    The network is that of `hellinger_similarity`, divided by `factorise` or by `louvain`. More than a
    thousand annotators are first grouped into 500 cells of similar ones. The network of the cells, weighted
    by their members, is divided (exact if the members of a cell are equal). Then every annotator is assigned
    by similarity to all cells. For 2,000 planted annotators the result was identical to that without cells.
    The modularity is that of the whole network; of more than 2,000 annotators, it is estimated from the links
    of an even sample. The order of the annotators does not matter. Raises `ValueError` for matrices that are
    not probabilities, or a different number of votes.

    `mean`: (K, J, L), expected probabilities of the outputs, as in `Confusion.mean`. `votes`: (K,), number of
    votes of each annotator. `used`: (J,), classes to compare, by default all.
    """
    settings = CommunitySettings() if settings is None else settings
    matrices = np.asarray(mean, dtype=np.float64)
    roots = roots_of(matrices if used is None else matrices[:, used])
    counts = np.asarray(votes)
    if counts.shape != (len(matrices),):
        raise ValueError(f"votes of {counts.shape} for {len(matrices)} annotators; expected a number each.")
    most = np.inf if settings.max_votes is None else settings.max_votes
    members = np.flatnonzero((counts >= settings.min_votes) & (counts <= most))
    if not len(members):
        return _no_communities(matrices.shape, settings, _exclusion_notices(counts, settings))
    order = members[_sorted_rows(roots[members])]
    rows = roots[order]
    classes, scale = matrices.shape[1] if used is None else int(used.sum()), settings.scale
    if scale is None and settings.as_published:
        scale = 1.0
    elif scale is None:
        scale = fitting_scale(rows, classes, part(watch, 0.0, 0.05))
    max_cells = _CELLS if len(rows) <= _CELLS else _CELLS_OF_MANY
    cells = group_into_cells(rows, max_cells, part(watch, 0.05, 0.1))
    similarity = _Similarity(_unit(cells.centre, classes), classes, scale)
    if settings.method == "louvain":
        share, notices = _by_louvain(cells, similarity, settings.seed, part(watch, 0.1, 0.7))
    else:
        share, notices = _by_factors(rows, cells, similarity, settings, part(watch, 0.1, 0.7))
    community, share, prototype = number_communities(share, matrices[order])
    links = _links(rows, similarity, community, share.shape[1], part(watch, 0.7, 1.0))
    back = np.argsort(order)
    notices = (*_exclusion_notices(counts, settings), *notices)
    if settings.method == "nmf" and share.shape[1] == settings.most > 1:
        notices = (*notices, f"All {settings.most} communities allowed were needed: raise the limit.")
    return Communities(
        members.astype(np.int32), community[back], share[back], prototype, modularity(links),
        settings.method, scale, notices,
    )  # fmt: skip


def _sorted_rows(rows: Float32Array) -> NDArray[np.int64]:
    """Return the lexicographic order of rows of non-negative numbers, by their bytes."""
    big_endian = np.ascontiguousarray(rows, dtype=">f4")
    return np.argsort(big_endian.view(f"V{big_endian.strides[0]}").ravel(), kind="stable")


def number_communities(
    share: Float32Array, matrices: FloatArray
) -> tuple[NDArray[np.int16], Float32Array, FloatArray]:
    """Order communities by size, drop empty ones, and return community, participation and prototype.

    `share`: (M, C). `matrices`: (M, J, L). The results have shapes (M,), (M, C) and (C, J, L). Prototypes
    determine the order of communities of equal size.
    """
    used = np.unique(share.argmax(axis=1))
    share = share[:, used]
    share = share / share.sum(axis=1, keepdims=True)
    community = share.argmax(axis=1)
    prototype = np.tensordot(share.astype(np.float64), matrices, axes=(0, 0))
    prototype /= share.sum(axis=0, dtype=np.float64)[:, None, None]
    size = np.bincount(community, minlength=share.shape[1])
    order = np.lexsort((*prototype.reshape(len(size), -1).T[::-1], -size))
    number = np.argsort(order).astype(np.int16)
    return number[community], np.ascontiguousarray(share[:, order]), prototype[order]


@dataclass(frozen=True, eq=False)
class _Similarity:
    """Similarity of annotators to the centres of cells."""

    centre: Float32Array
    classes: int
    scale: float

    def __call__(self, rows: Float32Array) -> Float32Array:
        return similarity_of_roots(rows, self.centre, self.classes, self.scale)

    def network(self) -> Float32Array:
        """Return the network of the cells."""
        network = self(self.centre)
        return (network + network.T) / np.float32(2)


def _unit(centre: Float32Array, classes: int) -> Float32Array:
    """Normalise means of square roots of matrices to the length that a single matrix has."""
    length = np.sqrt((centre * centre).sum(axis=1, keepdims=True) / np.float32(classes))
    return np.asarray(centre / length)


def _no_communities(
    shape: tuple[int, ...], settings: CommunitySettings, notices: tuple[str, ...]
) -> Communities:
    return Communities(
        np.empty(0, np.int32), np.empty(0, np.int16), np.empty((0, 0), np.float32),
        np.empty((0, *shape[1:])), 0.0, settings.method, 0.0, notices,
    )  # fmt: skip


def _exclusion_notices(votes: NDArray[Any], settings: CommunitySettings) -> tuple[str, ...]:
    most = np.inf if settings.max_votes is None else settings.max_votes
    few = np.count_nonzero((votes > 0) & (votes < settings.min_votes))
    return tuple(
        f"{'1 annotator has' if count == 1 else f'{count:,} annotators have'} {bound} votes and "
        f"{'belongs' if count == 1 else 'belong'} to no community."
        for count, bound in (
            (few, f"fewer than {settings.min_votes:,}"),
            (np.count_nonzero(votes > most), f"more than {most:,.0f}"),
        )
        if count
    )


def _by_factors(
    rows: Float32Array, cells: Cells, similarity: _Similarity, settings: CommunitySettings, watch: Watch
) -> tuple[Float32Array, tuple[str, ...]]:
    factors = factorise(similarity.network(), settings, part(watch, 0.0, 0.8), cells.weight)
    notices: tuple[str, ...] = ()
    if not factors.converged:
        notices = ("The search for communities did not converge: memberships are approximate.",)
    if len(cells.weight) == len(rows):
        return factors.participation[cells.cell], notices
    share = np.empty((len(rows), factors.member.shape[1]), dtype=np.float32)

    def assign(begin: int, end: int) -> None:
        start = factors.member[cells.cell[begin:end]]
        share[begin:end] = join_communities(factors, similarity(rows[begin:end]), cells.weight, start)

    run_parts(assign, parts_of(len(rows), _CHUNK), partial(watch, 0.8, "assigning annotators"))
    return share, notices


def _by_louvain(
    cells: Cells, similarity: _Similarity, seed: int, watch: Watch
) -> tuple[Float32Array, tuple[str, ...]]:
    watch(0.0, "Louvain")
    links = similarity.network() * cells.weight[:, None] * cells.weight
    links[np.diag_indices_from(links)] = cells.weight * (cells.weight - 1)
    result = louvain(links, seed)
    share = np.zeros((len(result), int(result.max()) + 1), dtype=np.float32)
    share[np.arange(len(result)), result] = 1.0
    return share[cells.cell], ()


def _links(
    rows: Float32Array, similarity: _Similarity, community: NDArray[np.int16], count: int, watch: Watch
) -> FloatArray:
    """Sum the links of all annotators between communities, without storing all of them.

    In crowds above `_LINKED`, evenly chosen annotators represent all.
    """
    to = np.zeros((len(rows), count), dtype=np.float32)
    to[np.arange(len(rows)), community] = 1.0
    chosen = np.arange(0, len(rows), -(-len(rows) // _LINKED))
    size = max(1, min(_CHUNK, _LINKS // len(rows)))
    parts = parts_of(len(chosen), size)
    summed = np.zeros((len(parts), count, count))

    def link(begin: int, end: int) -> None:
        block = chosen[begin:end]
        near = similarity_of_roots(rows[block], rows, similarity.classes, similarity.scale)
        near[np.arange(len(near)), block] = 0.0
        summed[begin // size] = to[block].T.astype(np.float64) @ (near @ to).astype(np.float64)

    run_parts(link, parts, partial(watch, 0.0, "measuring the modularity"))
    links: FloatArray = summed.sum(axis=0)
    links = (links + links.T) / 2 if len(chosen) < len(rows) else links
    watch(1.0, "measuring the modularity")
    return links
