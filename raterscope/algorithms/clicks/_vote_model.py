"""Mixture model of votes and its EM (OEM-DEM paper, section 5, with extensions).

The paper has two kinds of cluster, structures and others, and one rate of votes for each annotator and kind.
Its posteriors are overconfident for two reasons. First, structures differ in how easily they are seen. Here
every structure shifts the log odds of all annotators by an unknown amount, one of a few nodes. Second, other
clusters are of two kinds: artefacts, which attract any share of the annotators, and clicks that met by
chance. The rate of chance meetings is known: outliers of clustering give each annotator's number of stray
clicks, and the image has a known number of positions. These are far more than the clusters found, so that the
numbers of clusters of each kind are modelled as Poisson processes instead of shares. With one node, no
artefacts, and shares this is the paper's model.

No model describes a crowd exactly. If all votes of a large crowd counted in full, every model would be
rejected, and the least wrong model would decide the kind of a cluster. Votes therefore distinguish structures
from artefacts only as those of a few dozen annotators would: their likelihood is tempered, which means raised
to a power (the coarsened posterior of [miller2019]_), and so is the prior of the annotators' odds. The rest
of the likelihood is the same for both kinds, as if all annotators marked the cluster with the same, most
likely chance. Against chance meetings every vote counts in full.

An annotator of weight w counts as w annotators with the same votes and rates: the log likelihood of the votes
and the log prior of the rates are multiplied by w, as are the terms of sums over annotators. The annotator's
own rates have the same maximum as without a weight; parameters that the crowd shares do not.

References
----------
.. [miller2019] J. W. Miller and D. B. Dunson, "Robust Bayesian inference via coarsening", Journal of the
   American Statistical Association 114 (2019) 1113-1125, doi:10.1080/01621459.2018.1469995.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from raterscope.algorithms.clicks.data import BoolArray, FloatArray, IntArray
from raterscope.algorithms.clicks.result import Marks, Votes
from raterscope.algorithms.progress import Watch, silent

if TYPE_CHECKING:
    from raterscope.algorithms.clicks._vote_kernels import StackedPrior, StackedState, StackedVotes

EDGE = 1e-6
"""Minimum distance of rates from 0 and 1, from where votes could not change them any more."""

BELIEVED = 64.0
"""Number of annotators whose votes count in full between structures and artefacts.

They determine the log odds of a mark to about 2 / sqrt(64), and the sum over nodes half a unit apart is an
integral to within 2 %."""

STEPS_AT_ONCE = 500_000
"""Number of values of an E step between two calls of the watch, about 20 ms."""

FIRST_STEPS = 32
"""Number of E steps of several images together; then images that have not converged continue separately."""


@dataclass(frozen=True, eq=False)
class Prior:
    """Prior of the vote model, as counts of votes or clusters."""

    # hit, miss: (R,): votes of each annotator on structures
    hit: FloatArray
    miss: FloatArray
    # quiet, false: (R,): votes of each annotator on chance meetings
    quiet: FloatArray
    false: FloatArray
    # (3,): clusters that are structures, artefacts, chance. Without artefacts the second is zero.
    kinds: FloatArray
    # number of positions where clicks may meet by chance, with the chances that `quiet` and `false` give;
    # zero when both shares and chances are estimated
    places: float
    artefact: tuple[float, float]  # Beta distribution of the share of annotators that an artefact attracts
    shift: FloatArray  # (K,): nodes of the log odds by which structures differ
    share: FloatArray  # (K,): expected share of structures at each node
    strength: float  # weight of `share`, in clusters
    trust: float  # power of the likelihood by which votes distinguish structures from artefacts
    # expected, expected_error: expected share of clusters that are structures, where it is known from
    # elsewhere, and half of its 95 % interval
    expected: float | None = None
    expected_error: float | None = None


@dataclass(frozen=True, eq=False)
class Problem:
    """Votes of R annotators on M clusters, sparse, and known truths of the clusters."""

    marks: Marks
    count: FloatArray  # (M,) annotators who marked each cluster, weighted
    crowd: float  # all annotators, weighted
    weights: FloatArray  # (R,) weight of each annotator; empty if all have full weight
    known: BoolArray
    truth: FloatArray
    artefact: FloatArray  # (M,) log probability of the votes on an artefact, to the power `trust`
    rest: FloatArray  # (M,) log probability of the votes to the remaining power
    prior: Prior
    viewed: BoolArray | None = None  # (M,) where the expert looked, if recorded
    control: bool | None = None  # whether the image is known to hold structures, or known to hold none
    score: FloatArray | None = None  # (M,) of a program, NaN without a detection

    @property
    def worth(self) -> FloatArray:
        """Weights of the annotators, (R,), or ones."""
        return self.weights if len(self.weights) else np.ones(self.marks.annotators)


@dataclass(frozen=True, eq=False)
class State:
    """Parameters."""

    odds: FloatArray  # (R,): log odds of a mark on a structure at shift 0
    chance: FloatArray  # (R,): chance of a mark where clicks met by chance
    kinds: FloatArray  # (3,): shares of structures, artefacts, chance; or their numbers
    share: FloatArray  # (K,): share of structures at each node


@dataclass(frozen=True, eq=False)
class ClusterPosteriors:
    """Posteriors of M clusters: structure at each of K nodes, artefact, chance; they sum to one."""

    structure: FloatArray
    artefact: FloatArray
    chance: FloatArray

    @property
    def present(self) -> FloatArray:
        """Probability of a structure (eq. 25), (M,)."""
        total: FloatArray = self.structure.sum(axis=1)
        return total


@dataclass(frozen=True, eq=False)
class EMResult:
    """Result of EM from one start."""

    looks: ClusterPosteriors
    state: State
    objective: FloatArray
    converged: bool
    # explanations of the votes for intervals: weight, problem and result of each; empty if this is the only
    # one
    explanations: tuple[tuple[float, Problem, EMResult], ...] = ()


def make_problem(votes: Votes, prior: Prior) -> Problem:
    """Prepare votes and known truths for EM."""
    from scipy.special import betaln, xlogy

    count, number = votes.count, votes.crowd or 1.0
    quiet = np.maximum(votes.crowd - count, 0)
    (first, second), trust = prior.artefact, prior.trust
    return Problem(
        marks=Marks.of(votes.marked),
        count=count,
        crowd=votes.crowd,
        weights=np.empty(0) if votes.worth is None else votes.worth,
        known=votes.verdict >= 0,
        truth=(votes.verdict == 1).astype(np.float64),
        artefact=betaln(trust * count + first, trust * quiet + second) - betaln(first, second),
        rest=(1 - trust) * (xlogy(count, count / number) + xlogy(quiet, quiet / number)),
        prior=prior,
        viewed=votes.viewed,
        control=votes.control,
        score=votes.score,
    )


def without_decisions(problem: Problem) -> Problem:
    """Return the same votes without known truths."""
    unknown = np.zeros(len(problem.known), dtype=np.bool_)
    return replace(problem, known=unknown, truth=np.zeros(len(unknown)), viewed=None)


def lost_log_probability(problem: Problem, ascent: EMResult, undecided: EMResult) -> float:
    """Return the log probability of the votes that EM lost by fitting the decisions on an image.

    `ascent`, `undecided`: results of EM with and without the decisions.
    """
    bare = without_decisions(problem)
    return looks(bare, undecided.state)[1] - looks(bare, ascent.state)[1]


def initial_posteriors(problem: Problem, start: FloatArray) -> ClusterPosteriors:
    """Make initial posteriors by node and kind, distributed as in the prior."""
    prior = problem.prior
    start = np.where(problem.known, problem.truth, start)
    others = prior.kinds[1:] if prior.kinds[1:].any() else np.array([0.0, 1.0])
    complement = (1 - start) / others.sum()
    return ClusterPosteriors(start[:, None] * prior.share, complement * others[0], complement * others[1])


def run_em(
    problem: Problem,
    start: FloatArray | ClusterPosteriors | State,
    iterations: int,
    tolerance: float,
    watch: Watch,
    *,
    expected: bool = False,
) -> EMResult:
    """Iterate M and E steps from initial posteriors (Algorithm 2), or from an earlier state.

    With `expected` the objective is Q_d (eq. 24) with the posteriors of its own parameters: the log posterior
    less the entropy of the latent variables.
    """
    if isinstance(start, ClusterPosteriors):
        start = _judge(problem, start)
    if len(problem.prior.shift) > 1 and not expected:
        return run_em_of_starts([problem], [start], iterations, tolerance, watch)[0]
    state = start if isinstance(start, State) else _judge(problem, start)
    objective: list[float] = []
    converged = False
    for iteration in range(iterations):
        now, value = looks(problem, state)
        value -= _entropy(now) if expected else 0.0
        objective.append(value)
        watch((iteration + 1) / iterations, "weighing the votes", objective=value)
        if iteration and value - objective[-2] <= tolerance * abs(value):
            converged = True
            break
        state = _maximise(problem, now, state)
    return EMResult(now, state, np.array(objective), converged)


def run_em_of_starts(
    problems: Sequence[Problem],
    starts: Sequence[FloatArray | State],
    iterations: int,
    tolerance: float,
    watch: Watch,
) -> list[EMResult]:
    """Run EM as `run_em` does from each of several starts of one kind, in compiled code.

    `problems`: the problem of each start; all have the same number of nodes.
    """
    stack = Stack.of(problems)
    states = [start for start in starts if isinstance(start, State)]
    posteriors = [start for start in starts if isinstance(start, np.ndarray)]
    begin = stack.state_of(states) if states else np.concatenate(posteriors)
    ascent = ascend(stack, begin, iterations, tolerance, watch)
    return [ascent.image(index) for index in range(len(starts))]


@dataclass(frozen=True, eq=False)
class Stack:
    """Concatenated votes of I images, and their priors, for compiled loops over the images."""

    problems: Sequence[Problem]  # of the images; of all of them the priors have the same nodes
    votes: StackedVotes
    prior: StackedPrior

    @classmethod
    def of(cls, problems: Sequence[Problem]) -> Stack:
        """Stack the votes of one or more images."""
        from raterscope.algorithms.clicks._vote_kernels import StackedPrior, StackedVotes

        priors = [problem.prior for problem in problems]
        votes = [problem.marks for problem in problems]
        first = [np.zeros(1, dtype=np.int32)]
        for own in votes:
            first.append(own.first[1:] + first[-1][-1])
        return cls(
            problems,
            StackedVotes(
                clusters=np.cumsum([0, *(len(problem.count) for problem in problems)]),
                annotators=np.cumsum([0, *(len(prior.hit) for prior in priors)]),
                first=np.concatenate(first),
                annotator=np.concatenate([own.annotator for own in votes]),
                count=np.concatenate([problem.count for problem in problems]),
                weighted=np.array([len(problem.weights) > 0 for problem in problems]),
                weights=np.concatenate([problem.worth for problem in problems]),
                drawn=np.concatenate([problem.artefact for problem in problems]),
                rest=np.concatenate([problem.rest for problem in problems]),
                known=np.concatenate([problem.known for problem in problems]),
                truth=np.concatenate([problem.truth for problem in problems]),
                trust=np.array([prior.trust for prior in priors]),
            ),
            StackedPrior(
                hit=np.concatenate([prior.hit for prior in priors]),
                miss=np.concatenate([prior.miss for prior in priors]),
                quiet=np.concatenate([prior.quiet for prior in priors]),
                false=np.concatenate([prior.false for prior in priors]),
                kinds=np.array([prior.kinds for prior in priors]),
                places=np.array([float(prior.places) for prior in priors]),
                share=np.array([prior.share for prior in priors]),
                strength=np.array([float(prior.strength) for prior in priors]),
            ),
        )

    def __len__(self) -> int:
        return len(self.problems)

    @property
    def shift(self) -> FloatArray:
        """Nodes of the log odds by which structures differ, (K,)."""
        return self.problems[0].prior.shift

    @property
    def image_of_cluster(self) -> IntArray:
        """Index of each cluster's image, (M,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.votes.clusters))

    @property
    def image_of_annotator(self) -> IntArray:
        """Index of each annotator's image, (R,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.votes.annotators))

    def clusters(self) -> Iterator[slice]:
        """Yield the slice of each image's clusters."""
        return map(slice, self.votes.clusters[:-1].tolist(), self.votes.clusters[1:].tolist())

    def annotators(self) -> Iterator[slice]:
        """Yield the slice of each image's annotators."""
        return map(slice, self.votes.annotators[:-1].tolist(), self.votes.annotators[1:].tolist())

    def state_of(self, states: Sequence[State]) -> StackedState:
        """Stack the parameters of each image."""
        from raterscope.algorithms.clicks._vote_kernels import StackedState

        return StackedState(
            np.concatenate([state.odds for state in states]),
            np.concatenate([state.chance for state in states]),
            np.array([state.kinds for state in states], dtype=np.float64),
            np.array([state.share for state in states], dtype=np.float64),
        )

    def updated(self) -> list[Problem]:
        """Return the problem of each image with the priors of the stack."""
        prior, drawn = self.prior, self.votes.drawn
        return [
            replace(
                problem,
                prior=replace(
                    problem.prior, hit=prior.hit[own], miss=prior.miss[own], share=share, strength=strength
                ),
                artefact=drawn[clusters],
            )
            for problem, own, clusters, share, strength in zip(
                self.problems, self.annotators(), self.clusters(), prior.share, prior.strength.tolist(),
                strict=True,
            )
        ]  # fmt: skip


@dataclass(frozen=True, eq=False)
class StackedEMResult:
    """Result of EM on each image of a stack."""

    stack: Stack
    looks: ClusterPosteriors  # of all clusters, one image behind the other
    state: StackedState
    objective: list[FloatArray]  # list of (steps,)
    converged: BoolArray  # (I,)

    def image(self, index: int) -> EMResult:
        """Return the result of one image."""
        votes, looks, state = self.stack.votes, self.looks, self.state
        clusters, own = (slice(*first[index : index + 2]) for first in (votes.clusters, votes.annotators))
        return EMResult(
            ClusterPosteriors(looks.structure[clusters], looks.artefact[clusters], looks.chance[clusters]),
            State(state.odds[own], state.chance[own], state.kinds[index], state.share[index]),
            self.objective[index],
            bool(self.converged[index]),
        )


def ascend(
    stack: Stack, start: FloatArray | StackedState, iterations: int, tolerance: float, watch: Watch
) -> StackedEMResult:
    """Iterate as `run_em` does on each image of a stack, in compiled code.

    `start`: (M,), initial posteriors of a structure, or the parameters. `iterations`, `tolerance`: as
    for `run_em`.
    """
    from raterscope.algorithms.clicks import _vote_kernels as kernels

    votes, nodes, images = stack.votes, len(stack.shift), len(stack)
    starts = isinstance(start, np.ndarray)
    if isinstance(start, np.ndarray):
        looks = kernels.StackedPosteriors(*_distribute(stack, start))
        state = kernels.StackedState(
            np.empty(len(votes.weights)), np.empty(len(votes.weights)), np.empty((images, 3)),
            np.empty((images, nodes)),
        )  # fmt: skip
    else:
        looks = kernels.StackedPosteriors(
            np.empty((len(votes.count), nodes)), np.empty(len(votes.count)), np.empty(len(votes.count))
        )
        state = kernels.StackedState(*(values.copy() for values in start))
    lifts = np.exp((votes.trust[stack.image_of_cluster] * votes.count)[:, None] * stack.shift)
    size = np.diff(votes.first[votes.clusters]) + nodes * (
        np.diff(votes.clusters) + 4 * np.diff(votes.annotators)
    )
    block = np.maximum(STEPS_AT_ONCE // (size + 1), 1)
    former, converged = np.full(images, np.nan), np.zeros(images, dtype=np.bool_)
    done, parts = np.zeros(images, dtype=np.int64), []
    limit = iterations if images == 1 else FIRST_STEPS
    one_image = all(problem is stack.problems[0] for problem in stack.problems)
    while True:
        most = np.where(converged, 0, np.minimum(iterations - done, np.minimum(block, limit)))
        if not most.any():
            break
        objective, steps = np.empty((images, int(most.max()))), np.zeros(images, dtype=np.int64)
        for begin, end in _batches(size * most):
            kernels.ascend(
                begin, end, most, tolerance, starts, votes, stack.prior, stack.shift, lifts, state, looks,
                former, objective, steps, converged,
            )  # fmt: skip
            last = float(objective[steps > 0, steps[steps > 0] - 1].max()) if one_image else None
            fraction = float(np.where(converged, 1.0, (done + steps) / iterations).mean())
            watch(fraction, "weighing the votes", objective=last)
        done += steps
        parts.append([row[:count] for row, count in zip(objective, steps.tolist(), strict=True)])
        starts = False
    objectives = parts[0] if len(parts) == 1 else [np.concatenate(rows) for rows in zip(*parts, strict=True)]
    return StackedEMResult(stack, ClusterPosteriors(*looks), state, objectives, converged)


def _distribute(stack: Stack, start: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Distribute initial posteriors of a structure, (M,), over nodes and kinds as in the prior."""
    votes, image = stack.votes, stack.image_of_cluster
    present = np.where(votes.known, votes.truth, start)
    others = stack.prior.kinds[:, 1:].copy()
    others[~others.any(axis=1), 1] = 1.0
    absent = ((1 - present) / others.sum(axis=1)[image])[:, None] * others[image]
    return present[:, None] * stack.prior.share[image], absent[:, 0].copy(), absent[:, 1].copy()


def _batches(work: IntArray) -> Iterator[tuple[int, int]]:
    """Divide images into ranges of about `STEPS_AT_ONCE` values."""
    total = np.cumsum(work)
    begin = 0
    while begin < len(work):
        before = total[begin - 1] if begin else 0
        end = max(int(np.searchsorted(total, before + STEPS_AT_ONCE, side="right")), begin + 1)
        yield begin, end
        begin = end


def _entropy(now: ClusterPosteriors) -> float:
    """Return the entropy of the latent variables, in nats, summed over clusters."""
    from scipy.special import entr

    return float(entr(now.structure).sum() + entr(now.artefact).sum() + entr(now.chance).sum())


def _judge(problem: Problem, start: FloatArray | ClusterPosteriors) -> State:
    """Estimate the parameters of annotators from posteriors."""
    prior = problem.prior
    now = start if isinstance(start, ClusterPosteriors) else initial_posteriors(problem, start)
    state = State(
        np.full(problem.marks.annotators, 0.0), np.zeros(problem.marks.annotators), prior.kinds, prior.share
    )
    state = _maximise(problem, now, state)
    return state if now is start else replace(state, share=prior.share)


def carry_posteriors(problem: Problem, state: State) -> State | None:
    """Adapt a state of EM to more votes; new annotators start as the average of the others.

    Return None if the prior is now of another kind.
    """
    prior, new = problem.prior, problem.marks.annotators - len(state.odds)
    if len(state.share) != len(prior.share) or not len(state.odds):
        return None
    return State(
        odds=np.append(state.odds, np.full(new, state.odds.mean())),
        chance=_rate(prior.false, prior.quiet)
        if prior.places
        else np.append(state.chance, np.full(new, state.chance.mean())),
        kinds=np.array([*state.kinds[:2], prior.places]) if prior.places else state.kinds,
        share=state.share,
    )


def looks(problem: Problem, state: State, clamped: bool = True) -> tuple[ClusterPosteriors, float]:
    """Run an E step (eq. 25); also return the log posterior of the parameters.

    With `clamped`, known truths are held fixed.
    """
    if not clamped:
        problem = replace(problem, known=np.zeros(len(problem.known), dtype=np.bool_))
    stack = Stack.of([problem])
    ascent = ascend(stack, stack.state_of([state]), 1, 0.0, silent).image(0)
    return ascent.looks, float(ascent.objective[0])


def log_votes(stack: Stack, odds: FloatArray, shift: FloatArray) -> FloatArray:
    """Return the log probability of each cluster's votes as a structure at each node (eq. 22), (M, K)."""
    votes, image = stack.votes, stack.image_of_cluster
    cluster = np.repeat(np.arange(len(image)), np.diff(votes.first))
    annotator = votes.annotator + votes.annotators[image[cluster]]
    present = np.bincount(cluster, (votes.weights * odds)[annotator], minlength=len(image))
    quiet = np.stack([
        np.bincount(stack.image_of_annotator, votes.weights * np.log1p(np.exp(odds + ease)), len(stack))
        for ease in shift
    ], axis=1)  # fmt: skip
    return np.asarray(present[:, None] + votes.count[:, None] * shift - quiet[image])


def _maximise(problem: Problem, now: ClusterPosteriors, state: State) -> State:
    """Run an M step (eqs. 27-29) with the prior's votes."""
    from raterscope.algorithms.clicks._vote_kernels import tally

    prior, votes, nodes = problem.prior, problem.marks, now.structure.shape[1]
    hits, false, total = np.zeros(len(state.odds)), np.zeros(len(state.odds)), np.zeros((1, nodes + 2))
    tally(
        0, len(now.artefact), votes.first, votes.annotator, now.structure, now.artefact, now.chance, hits,
        false, total,
    )  # fmt: skip
    sums = total[0]
    quiet = sums[-1] - false
    counts = np.array([sums[:-2].sum(), sums[-2], sums[-1]]) + prior.kinds
    share = sums[:-2] + prior.strength * prior.share
    return State(
        odds=_odds(problem, hits, sums[:-2], state.odds),
        chance=_rate(prior.false, prior.quiet)
        if prior.places
        else _rate(false + prior.false, quiet + prior.quiet),
        kinds=np.array([*counts[:2], prior.places]) if prior.places else _shares(counts),
        share=share / share.sum() if share.sum() > 0 else prior.share,
    )


def _shares(counts: FloatArray) -> FloatArray:
    """Return the shares of structures and chance, kept above zero (eq. 27)."""
    total = float(counts.sum())
    present = min(max(float(counts[0]) / total, EDGE), 1 - EDGE) if total > 0 else 0.5
    return np.array([present, 0.0, 1 - present])


def _rate(right: FloatArray, wrong: FloatArray) -> FloatArray:
    """Return right / (right + wrong), limited to `EDGE` from 0 and 1; one half for 0/0."""
    total = right + wrong
    rate: FloatArray = np.full(len(total), 0.5)
    np.divide(right, total, out=rate, where=total > 0)
    return np.minimum(np.maximum(rate, EDGE), 1 - EDGE)


def _odds(problem: Problem, hits: FloatArray, nodes: FloatArray, odds: FloatArray) -> FloatArray:
    """Maximise over the log odds of a mark: at one node the share of hits, otherwise by Newton's method."""
    prior = problem.prior
    structures = float(nodes.sum())
    if len(nodes) == 1:
        rate = _rate(hits + prior.hit, np.maximum(structures - hits, 0) + prior.miss)
        return np.log(rate) - np.log1p(-rate)
    return log_odds(hits, nodes, prior.shift, (prior.hit, prior.miss), odds)


def log_odds(
    hits: FloatArray,
    nodes: FloatArray,
    shift: FloatArray,
    prior: tuple[FloatArray, FloatArray],
    odds: FloatArray,
) -> FloatArray:
    """Maximise over annotators' log odds of a mark by Newton's method.

    `hits`: (R,), marks of each annotator.
    `nodes`: (K,) or (R, K), clusters by node, seen by all or by each annotator.
    `shift`: (K,).
    `prior`: two of (R,), marks and omissions at shift 0 that are added.
    `odds`: (R,), initial values.
    """
    from raterscope.algorithms.clicks._vote_kernels import newton

    odds = odds.copy()
    newton(0, hits + prior[0], np.array(nodes, order="C", ndmin=2), shift, prior[0] + prior[1], odds)
    return odds
