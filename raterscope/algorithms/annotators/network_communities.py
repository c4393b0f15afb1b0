"""Communities of a network: Bayesian non-negative matrix factorisation, modularity and Louvain's method.

The factorisation uses the shrinkage priors of [tan2009]_.

References
----------
.. [psorakis2011] I. Psorakis, S. Roberts, M. Ebden and B. Sheldon, "Overlapping community detection using
   Bayesian non-negative matrix factorization", Physical Review E 83 (2011) 066114,
   doi:10.1103/PhysRevE.83.066114.
.. [tan2009] V. Y. F. Tan and C. Févotte, "Automatic relevance determination in nonnegative matrix
   factorization", SPARS'09: Signal Processing with Adaptive Sparse Structured Representations (2009).
.. [girvan2002] M. Girvan and M. E. J. Newman, "Community structure in social and biological networks",
   Proceedings of the National Academy of Sciences 99 (2002) 7821-7826, doi:10.1073/pnas.122653799.
.. [blondel2008] V. D. Blondel, J.-L. Guillaume, R. Lambiotte and E. Lefebvre, "Fast unfolding of
   communities in large networks", Journal of Statistical Mechanics 2008 (2008) P10008,
   doi:10.1088/1742-5468/2008/10/P10008.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import chain
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.similarity import Float32Array
from raterscope.algorithms.progress import Check, Watch, parts_of, run_parts, silent, watch_until

FloatArray = NDArray[np.float64]

Network = Any
"""Links between annotators: (M, M) float32, dense or a SciPy sparse array (CSR), symmetric and not negative.
"""

_SHAPE, _RATE = 5.0, 2.0
"""Shape and rate of the Gamma prior of every community's shrinkage (a and b), as in the paper."""

_TINY = np.float32(1e-9)
_NEGLIGIBLE = 1e-6
"""A community is removed if it explains at most this share of a typical similarity everywhere."""

_EVERY = 10
"""Number of iterations between two evaluations of the objective."""

_REFINED = 4
"""Maximum number of rounds that order annotators with equal links by their neighbours."""

_JOINING = 20
"""Number of iterations that assign another annotator to fixed communities."""

_MANY = 100
"""Minimum number of annotators, or cells of them, for running the starts in several threads."""

_GAIN = 1e-3
"""Minimum increase of the modularity for another round of Louvain's method."""


@dataclass(frozen=True)
class FactorisationSettings:
    """Settings of `factorise`."""

    most: int = 30  # communities at the start of a search, which removes those that explain nothing
    # number of observations that an annotator's links count as: a larger one splits communities, a smaller
    # one joins them
    evidence: float = 40.0
    restarts: int = 3  # searches from different starts; the best is kept
    max_iterations: int = 500  # maximum number of iterations of a search
    seed: int = 0
    # uncorrected published version: random starts, updates without the guarantee that the objective never
    # rises, and links that count as independent observations
    as_published: bool = False


@dataclass(frozen=True, eq=False)
class Factors:
    """Factors of a network of M annotators with C communities: about `unit * member @ link`."""

    member: Float32Array  # (M, C)
    link: Float32Array  # (C, M)
    # (C,): the inverse variance of a community's entries (beta); large if the community explains little
    shrinkage: FloatArray
    # (T,): the negative log joint probability, up to a constant, every ten iterations; it rises only by
    # rounding
    objective: FloatArray
    converged: bool
    unit: float  # the typical similarity, by which the network was divided
    tempering: float  # factor of the log likelihood

    @property
    def participation(self) -> Float32Array:
        """Participation of each annotator in each community, (M, C), rows adding up to 1."""
        return _shares(self.member)


def factorise(
    network: Network,
    settings: FactorisationSettings | None = None,
    watch: Watch = silent,
    weight: NDArray[np.float32] | None = None,
) -> Factors:
    """Factorise a network into as many communities as it needs.

    Each link v_mn is modelled as a Poisson count with mean sum_c w_mc h_cn. The entries of a community share
    a half-normal prior whose inverse variance beta_c has a Gamma prior: if a community explains little, its
    variance shrinks until it vanishes. Each update minimises a majorising function of the objective by the
    root of a quadratic equation, so that the objective cannot rise. (The published division by W'1 + beta h
    is not that minimum, and may raise the objective.)

    The number of communities depends on the scale of the counts, since the prior does not grow with them. M
    annotators have M^2 similarities from only M confusion matrices: taken as independent counts, a thousand
    annotators of one behaviour would split into six communities by chance. The network is therefore divided
    by its typical similarity, and the log likelihood is scaled so that the links of an annotator add up to
    `evidence`. Neither the scale nor copies of all annotators change the result.

    With `as_published` the updates are those of [psorakis2011]_ as published: w is multiplied by the gain and
    divided by pull + beta w. The network is neither scaled nor tempered, and the starts are uniform random
    numbers.

    Otherwise the starts are links of annotators chosen at random, with a probability that grows with their
    distance from those chosen before. Annotators are first sorted by their links, so that the order of the
    input does not matter. Raises `ValueError` for a network that is not square, or has entries other than
    numbers from 0. The result has no communities if the network has no links.

    `network`: (M, M), dense or sparse by rows, symmetric and not negative; the diagonal counts.
    `watch`: called several times a second; with one thread, or few annotators, only before the first start.
    `weight`: (M,), number of equal annotators that each row stands for.
    """
    settings = FactorisationSettings() if settings is None else settings
    _check(network)
    size = network.shape[0]
    count = np.ones(size, dtype=np.float32) if weight is None else np.asarray(weight, dtype=np.float32)
    order = by_links(network)
    back = np.argsort(order)
    ordered, count = _reordered(network, order), count[order]
    total = float(count @ (ordered @ count)) if size else 0.0
    if total <= 0:
        empty = np.empty((size, 0), dtype=np.float32)
        return Factors(empty, empty.T, np.empty(0), np.empty(0), True, 1.0, 1.0)
    unit, tempering = 1.0, 1.0
    if not settings.as_published:
        unit = float(count @ ((ordered * ordered) @ count)) / total
        tempering = settings.evidence * float(count.sum(dtype=np.float64)) * unit / total
    scaled = ordered * np.float32(1 / unit)
    search, stopped = _Search(scaled, count, tempering, settings), Event()

    check = partial(watch_until(stopped), 0.0, "")

    def run(first: int, last: int) -> list[Factors]:
        generators = (np.random.default_rng((settings.seed, at)) for at in range(first, last))
        starts = map(search.random if settings.as_published else search.likely, generators)
        return [search.run(start, check, unit) for start in starts]

    report = partial(watch, 0.0, "searching communities")
    # Links of all annotators are the same start in whatever order.
    restarts = settings.restarts if settings.as_published or size > settings.most else 1
    parts = parts_of(restarts, 1 if size >= _MANY else restarts)
    found = chain.from_iterable(run_parts(run, parts, report, stopped.set))
    best = min(found, key=lambda result: result.objective[-1])
    watch(1.0, "searching communities")
    return Factors(
        best.member[back], np.ascontiguousarray(best.link[:, back]), best.shrinkage, best.objective,
        best.converged, unit, tempering,
    )  # fmt: skip


def join_communities(
    factors: Factors, links: Float32Array, weight: NDArray[np.float32], start: Float32Array
) -> Float32Array:
    """Assign other annotators to fixed communities; return their participation, (A, C).

    `links`: (A, M), similarity to the annotators of the factorisation. `weight`: (M,), as in `factorise`.
    `start`: (A, C), entries to start from, above 0.
    """
    reach = factors.link * weight
    step = _Step(reach.sum(axis=1), (factors.shrinkage / factors.tempering).astype(np.float32))
    member, links = start, links / np.float32(factors.unit)
    for _ in range(_JOINING):
        member = step(member, (links / (member @ factors.link + _TINY)) @ reach.T)
    return _shares(member)


@dataclass(frozen=True, eq=False)
class _Step:
    """Update of every entry w of a factor by its gain.

    The new w is the minimum of the majorising function, with old w in beta w^2 + pull w = (old w) gain; as
    published, w gain / (pull + beta w).
    """

    pull: Float32Array
    beta: Float32Array
    as_published: bool = False

    def __call__(self, entry: Float32Array, gain: Float32Array) -> Float32Array:
        gain = entry * gain
        if self.as_published:
            return np.asarray(np.maximum(gain / (self.pull + self.beta * entry), np.float32(1e-12)))
        root = np.sqrt(self.pull * self.pull + 4 * self.beta * gain)
        return np.asarray(np.maximum(2 * gain / (self.pull + root), np.float32(1e-12)))


class _Search:
    """One run of the factorisation from one start."""

    def __init__(
        self, network: Network, many: NDArray[np.float32], tempering: float, settings: FactorisationSettings
    ) -> None:
        self.network, self.many, self.tempering, self.settings = network, many, tempering, settings
        self.annotators = float(many.sum(dtype=np.float64))
        self.constant = _self_information(network, many)

    def run(self, start: tuple[Float32Array, Float32Array], check: Check, unit: float) -> Factors:
        member, link = start
        beta = self._shrinkage(member, link)
        trace: list[float] = []
        converged = False
        for at in range(self.settings.max_iterations):
            check()
            ratio = self._ratio(member, link)
            heavy = member * self.many[:, None]
            link = self._step(heavy.sum(axis=0), beta)(link.T, ratio.T @ heavy).T
            check()
            ratio = self._ratio(member, link)
            reach = (link * self.many).T
            member = self._step(reach.sum(axis=0), beta)(member, ratio @ reach)
            beta = self._shrinkage(member, link)
            remaining = member.max(axis=0) * link.max(axis=1) > _NEGLIGIBLE
            if not remaining.all() and remaining.any():
                member, link, beta = member[:, remaining], link[remaining], beta[remaining]
            if (at + 1) % _EVERY == 0:
                trace.append(self._objective(member, link, beta))
                converged = len(trace) > 1 and trace[-2] - trace[-1] < 1e-4 * self.annotators
            if converged:
                break
        trace = trace or [self._objective(member, link, beta)]
        return Factors(member, link, beta, np.array(trace), converged, unit, self.tempering)

    def random(self, rng: np.random.Generator) -> tuple[Float32Array, Float32Array]:
        """Draw a start of uniform random numbers, as the authors do."""
        size = len(self.many)
        draw = rng.random((2, size, min(self.settings.most, size)), dtype=np.float32) + _TINY
        return draw[0], np.ascontiguousarray(draw[1].T)

    def likely(self, rng: np.random.Generator) -> tuple[Float32Array, Float32Array]:
        """Start from the links of dissimilar annotators."""
        rows = self.network[_starts(self.network, self.many, self.settings.most, rng)]
        link = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float32) + 1e-3
        member = link.T.copy()
        target = float(self.many @ (self.network @ self.many))
        fit = target / float((self.many @ member) @ (link @ self.many))
        return member * np.float32(np.sqrt(fit)), link * np.float32(np.sqrt(fit))

    def _step(self, pull: Float32Array, beta: FloatArray) -> _Step:
        shrunk = (beta / self.tempering).astype(np.float32)
        return _Step(pull, shrunk, self.settings.as_published)

    def _energy(self, member: Float32Array, link: Float32Array) -> FloatArray:
        squares = self.many @ (member * member) + (link * link) @ self.many
        return np.asarray(squares, dtype=np.float64) / 2

    def _shrinkage(self, member: Float32Array, link: Float32Array) -> FloatArray:
        return np.asarray((self.annotators + _SHAPE - 1) / (self._energy(member, link) + _RATE))

    def _ratio(self, member: Float32Array, link: Float32Array) -> Network:
        if isinstance(self.network, np.ndarray):
            return self.network / (member @ link + _TINY)
        ratio = self.network.copy()
        ratio.data /= _modelled(self.network, member, link) + _TINY
        return ratio

    def _objective(self, member: Float32Array, link: Float32Array, beta: FloatArray) -> float:
        """Compute the objective; vanished communities count with their limit, to avoid jumps."""
        if isinstance(self.network, np.ndarray):
            logs = np.log(member @ link + _TINY)
            logs *= self.network
            explained = float(self.many.astype(np.float64) @ (logs @ self.many))
        else:
            logs = np.log(_modelled(self.network, member, link) + _TINY)
            explained = _summed(self.network, logs * self.network.data, self.many)
        expected = float((self.many @ member).astype(np.float64) @ (link @ self.many))
        strength = self.annotators + _SHAPE - 1
        removed = min(self.settings.most, len(self.many)) - len(beta)
        ends = removed * strength * (1 - np.log(strength / _RATE))
        kept = float((beta * (self._energy(member, link) + _RATE) - strength * np.log(beta)).sum())
        return self.tempering * (self.constant + expected - explained) + kept + float(ends)


def _check(network: Network) -> None:
    values = network if isinstance(network, np.ndarray) else network.data
    if network.ndim != 2 or network.shape[0] != network.shape[1]:
        raise ValueError(f"a network of {network.shape}; expected a row and a column for each annotator.")
    if values.size and not (np.isfinite(values).all() and values.min() >= 0):
        raise ValueError("the network has links that are negative or not a number.")


def _shares(member: Float32Array) -> Float32Array:
    return np.asarray(member / np.maximum(member.sum(axis=1, keepdims=True), np.float32(1e-30)))


def _modelled(network: Network, member: Float32Array, link: Float32Array) -> Float32Array:
    from raterscope.algorithms.annotators._kernels import modelled

    out = np.empty(len(network.data), dtype=np.float32)
    left, right = np.ascontiguousarray(member), np.ascontiguousarray(link.T)
    modelled(network.indptr, network.indices, left, right, out)
    return out


def _summed(network: Network, values: NDArray[Any], many: NDArray[np.float32]) -> float:
    rows = np.repeat(many, np.diff(network.indptr))
    return float((values * rows * many[network.indices]).sum(dtype=np.float64))


def _self_information(network: Network, many: NDArray[np.float32]) -> float:
    values = network if isinstance(network, np.ndarray) else network.data
    terms = values * np.log(np.maximum(values, np.float32(1e-30))) - values
    if isinstance(network, np.ndarray):
        return float(many.astype(np.float64) @ (terms @ many))
    return _summed(network, terms, many)


def by_links(network: Network) -> NDArray[np.int64]:
    """Order annotators by their links, (M,), whatever the order of the input.

    The keys are sums of powers of their links, added in order of size. Ties are resolved by sums of links
    weighted by the current positions of the others.
    """
    position = np.zeros(network.shape[0], dtype=np.int64)
    order = position
    for _ in range(_REFINED):
        keys = _powers(network, 1.0 + position)
        order = np.lexsort((*keys, position))
        rows = np.stack([position, *keys])[:, order]
        position = np.empty_like(position)
        position[order] = np.concatenate([[0], np.cumsum((np.diff(rows) != 0).any(axis=0))])[: len(order)]
        if len(position) == 0 or position.max() == len(position) - 1:
            break
    return order


def _powers(network: Network, weight: FloatArray) -> list[FloatArray]:
    if isinstance(network, np.ndarray):
        links = np.sort(network * weight, axis=1)
        return [(links**power).sum(axis=1) for power in (3, 2, 1)]
    row = np.repeat(np.arange(network.shape[0]), np.diff(network.indptr))
    values = network.data * weight[network.indices]
    values = values[np.lexsort((values, row))]
    count = network.shape[0]
    return [np.bincount(row, values**power, minlength=count).astype(np.float64) for power in (3, 2, 1)]


def _reordered(network: Network, order: NDArray[np.int64]) -> Network:
    if isinstance(network, np.ndarray):
        return np.ascontiguousarray(network[np.ix_(order, order)], dtype=np.float32)
    permuted = network[order][:, order].tocsr().astype(np.float32)
    permuted.sort_indices()
    return permuted


def _starts(
    network: Network, many: NDArray[np.float32], most: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Choose annotators at random, preferring those dissimilar to the ones already chosen."""
    like = _likeness(network)
    chosen = [int(rng.choice(len(many), p=many / many.sum(dtype=np.float64)))]
    far = np.maximum(1.0 - like(chosen[0]), 0.0)
    while len(chosen) < min(most, len(many)):
        far[chosen[-1]] = 0.0
        chance = far * many
        if chance.sum() <= 1e-9:
            break
        chosen.append(int(rng.choice(len(many), p=chance / chance.sum())))
        far = np.minimum(far, np.maximum(1.0 - like(chosen[-1]), 0.0))
    return np.array(chosen, dtype=np.int64)


def _likeness(network: Network) -> Callable[[int], FloatArray]:
    length = np.sqrt(np.asarray((network * network).sum(axis=1), dtype=np.float64)).ravel()
    length = np.maximum(length, 1e-30)

    def like(annotator: int) -> FloatArray:
        row = network[[annotator]]
        links = np.asarray(row.toarray() if hasattr(row, "toarray") else row, dtype=np.float32)[0]
        return np.asarray((network @ links) / (length * length[annotator]), dtype=np.float64)

    return like


def modularity(links: NDArray[np.float64]) -> float:
    """Return the modularity: the share of links within communities, minus that expected by chance.

    `links`: (C, C), the sum of the links from each community to each, both directions counted, without
    annotators' links to themselves. The result lies from -1 to 1; it is 0 for a single community and for a
    network without links.
    """
    total = float(links.sum())
    if total <= 0:
        return 0.0
    ends = links.sum(axis=1) / total
    return float(np.trace(links) / total - ends @ ends)


def louvain(network: Any, seed: int = 0) -> NDArray[np.int64]:
    """Return the community of every annotator, (M,), numbered from 0 by decreasing size ([blondel2008]_).

    `network`: (M, M), dense or a SciPy sparse array, symmetric and not negative; an entry of the diagonal is
    a link of an annotator to itself. `seed`: seed of the order of moves; the same network and seed give the
    same communities.
    """
    from scipy.sparse import csr_matrix

    count = network.shape[0]
    links = csr_matrix(network, dtype=np.float64)
    if links.nnz == 0:
        return np.arange(count)
    from raterscope.algorithms.annotators._kernels import move_nodes

    order = np.random.RandomState(seed).permutation(count)
    links = links[order][:, order]
    ends = [side @ np.ones(count) for side in (links, links.T)]
    weights = [weight / weight.sum() for weight in ends]
    links = links + links.T
    links.sort_indices()
    links = links / links.data.sum()
    community = np.arange(count)
    gain = np.inf
    while gain > _GAIN and links.shape[0] > 1:
        label = np.arange(links.shape[0])
        starts, columns = links.indptr.astype(np.int64), links.indices.astype(np.int64)
        values, loops, leaving, arriving = (
            array.astype(np.float32) for array in (links.data, links.diagonal(), *weights)
        )
        gain = move_nodes(label, starts, columns, values, loops, leaving, arriving, np.float32(_GAIN))
        label = np.unique(label, return_inverse=True)[1]
        member = csr_matrix((np.ones(len(label), dtype=bool), (np.arange(len(label)), label)))
        links = member.T.tocsr() @ (links @ member)
        weights = [member.T @ weight for weight in weights]
        community = label[community]
    rank = np.argsort(np.argsort(-np.bincount(community)))
    result = np.empty(count, dtype=np.int64)
    result[order] = rank[community]
    return result
