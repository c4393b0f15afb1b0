"""Share of clusters that are structures among those that look like one, by share of votes and image.

The vote model explains clusters by structures, artefacts and chance meetings. It fits almost any votes, so a
cluster with the looks of a structure may still be none. The chance h that it is one grows with the share s of
the crowd that marked it, and differs by image i: logit h = a + u + b z, where z is logit s between -3 and 3,
a the level of the run, u that of the image. Priors: a ~ N(4.5, 1), u ~ N(0, 1), b ~ N(1.5, .5^2) above 0,
so that more votes never count against a structure. Wider priors follow a poor crowd faster, but let one or
two rejections of disputed clusters unsettle a good one.

A run may also hold no structure at all: a ~ N(-4, 1). Votes tell that from a run with structures only by how
its clusters' votes are distributed; where artefacts alone draw clicks, shares follow Beta(1, 3). The prior
probability `ABSENT` of such a run is multiplied by the likelihood ratio of the votes' histogram under that
distribution, to a power (see `_vote_model`). It stays small by itself, and rejections without acceptances
make it large.

Decisions of the expert teach a, u and b. A cluster that looks like a structure with probability `look` is one
with probability q = look x h. Experts err: with a share e of wrong decisions, e ~ Beta(1, 9), a cluster is
accepted with probability q + e (1 - 2 q). That is the likelihood of each decision; how the decided clusters
were chosen does not matter as long as the choice follows the votes (Rubin 1976, "Inference and missing data",
Biometrika 63). All sums run over a grid.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from raterscope.algorithms.clicks._vote_model import Ascent, Problem, looks
from raterscope.algorithms.clicks.data import FloatArray
from raterscope.algorithms.progress import Watch, silent

__all__ = ["BELIEVED_VOTES", "FEWEST", "Honesty", "honesty_of", "log_ratio"]

LEVEL = np.linspace(-7.5, 8.5, 41)
"""Nodes of the level a of the run."""

SLOPE = np.linspace(0.0, 3.5, 10)
"""Nodes of the slope b over the log odds of the share of votes."""

OFFSET = np.linspace(-3.0, 3.0, 9)
"""Nodes of the offset u of an image."""

WRONG = 1 - (1 - (np.arange(6) + 0.5) / 6) ** (1 / 9)
"""Nodes of the share e of wrong decisions: quantiles of Beta(1, 9)."""

ABSENT = 0.05
"""Prior probability that a run holds no structure, where votes fit artefacts alone."""

BELIEVED_VOTES = 0.25
"""Power of the likelihood ratio of the votes' histogram."""

ARTEFACT = (1.0, 3.0)
"""Beta distribution of the share of annotators that an artefact draws."""

CASES = 20.0
"""Clusters that the expected share of structures weighs."""

BINS = 10
"""Classes of the share of votes in that histogram."""

SHARE = np.linspace(-3.0, 3.0, 61)
"""Nodes of the log odds of the share of votes, between which the mean of h is interpolated."""

SPARSE = 0.2
"""Mean share of votes on structures below which shares are taken relative to it: in huge crowds of which
each annotator marks little, the absolute share says nothing."""

FEWEST = 2
"""Marks of an accepted cluster from which on the acceptance says something of h. With fewer, the expert
added the cluster, and the votes had no part in it."""

TINY = 1e-12


@dataclass(frozen=True, eq=False)
class Honesty:
    """Chance that clusters of one image that look like structures are structures.

    Attributes
    ----------
    weight : (A, B, U) float64
        Posterior at the nodes of level, slope and offset; empty where all that look like structures are.
    shift : float
        Log odds that are added to those of a share, see `SPARSE`.
    """

    weight: FloatArray
    shift: float = 0.0

    def mean(self, share: FloatArray) -> FloatArray:
        """Give the expected h at shares of votes, of any shape."""
        return self._moment(share, 1)

    def deviation(self, share: FloatArray) -> FloatArray:
        """Give the standard deviation of h at shares of votes."""
        variance = self._moment(share, 2) - self._moment(share, 1) ** 2
        return np.asarray(np.sqrt(np.maximum(variance, 0)))

    def draw(self, generator: np.random.Generator, draws: int) -> tuple[FloatArray, FloatArray]:
        """Draw so many levels (offset included) and slopes."""
        chosen = generator.choice(self.weight.size, draws, p=self.weight.ravel())
        level, slope, offset = np.unravel_index(chosen, self.weight.shape)
        return LEVEL[level] + OFFSET[offset], SLOPE[slope]

    def place(self, share: FloatArray) -> FloatArray:
        """Give z at shares of votes."""
        inside = np.clip(share, TINY, 1 - TINY)
        return np.asarray(np.clip(np.log(inside / (1 - inside)) + self.shift, SHARE[0], SHARE[-1]))

    def _moment(self, share: FloatArray, power: int) -> FloatArray:
        if not self.weight.size:
            return np.ones(np.shape(share))
        at_nodes = self.weight.ravel() @ _chances() ** power
        return np.asarray(np.interp(self.place(share), SHARE, at_nodes))


@dataclass(frozen=True, eq=False)
class Evidence:
    """Decided clusters of an image: log odds of their shares, looks, and what was decided."""

    place: FloatArray
    look: FloatArray
    accepted: FloatArray


def honesty_of(judged: Sequence[tuple[Problem, Ascent]], watch: Watch = silent) -> list[Honesty]:
    """Estimate h on each image of a run from the decisions on all of them.

    Parameters
    ----------
    judged : sequence of (Problem, Ascent)
        Of each image, and where EM came to.
    watch : Watch

    Returns
    -------
    list of Honesty
        An image without artefacts in its prior has the h of one throughout.
    """
    shifts = [_shift(problem, ascent) for problem, ascent in judged]
    evidence = [_evidence(*pair, shift) for pair, shift in zip(judged, shifts, strict=True)]
    offset = _normal(OFFSET, 0.0, 1.0)
    absent = _absent(problem for problem, _ in judged)
    level = (1 - absent) * _normal(LEVEL, 4.5, 1.0) + absent * _normal(LEVEL, -4.0, 1.0)
    run = np.log(level)[:, None, None] + np.log(_normal(SLOPE, 1.5, 0.5))[:, None]
    run = np.broadcast_to(run, (len(LEVEL), len(SLOPE), len(WRONG)))
    run = run + _expected(judged, shifts)[:, :, None]
    likely: dict[int, FloatArray] = {}
    for image, one in enumerate(evidence):
        if len(one.look):
            likely[image] = _log_likelihood(one) + np.log(offset)
            run = run + np.logaddexp.reduce(likely[image], axis=-1)
        watch((image + 1) / len(judged), "weighing the decisions")
    common = np.exp(run - run.max())
    common /= common.sum()
    rest = common.sum(axis=2)[:, :, None] * offset
    found = []
    for image, ((problem, _), shift) in enumerate(zip(judged, shifts, strict=True)):
        weight = rest
        if image in likely:
            own = np.exp(likely[image] - np.logaddexp.reduce(likely[image], axis=-1)[..., None])
            weight = np.einsum("abe,abeu->abu", common, own)
        found.append(Honesty(weight / weight.sum() if problem.prior.places else np.empty(0), shift))
    return found


def _absent(problems: Iterable[Problem]) -> float:
    """Give the prior probability that a run holds no structure, from how its votes are distributed."""
    ratio = sum(log_ratio(problem.count, problem.crowd) for problem in problems if problem.prior.places)
    odds = ABSENT / (1 - ABSENT) * np.exp(min(BELIEVED_VOTES * ratio, 0.0))
    return float(odds / (1 + odds))


def log_ratio(count: FloatArray, crowd: float) -> float:
    """Compare artefacts alone with the histogram itself as an explanation of an image's numbers of votes.

    The histogram has a parameter for each class; half of one is taken off its log likelihood for each.

    Parameters
    ----------
    count : (M,) float64
        Annotators who marked each cluster.
    crowd : float
        All annotators.
    """
    from scipy.special import betaln, gammaln

    if not len(count):
        return 0.0
    whole = max(round(crowd), 1)
    votes = np.clip(np.rint(count), 0, whole).astype(np.int64)
    number = np.arange(min(int(votes.min()), FEWEST), whole + 1.0)
    first, second = ARTEFACT
    log = betaln(first + number, second + whole - number)
    log += gammaln(whole + 1) - gammaln(number + 1) - gammaln(whole - number + 1)
    chance = np.exp(log - log.max())
    classes = np.minimum(number * BINS // whole, BINS - 1).astype(np.int64)
    expected = np.bincount(classes, chance / chance.sum(), minlength=BINS)
    seen = np.bincount(np.minimum(votes * BINS // whole, BINS - 1), minlength=BINS)
    filled = seen > 0
    fit = seen[filled] @ (np.log(np.maximum(expected[filled], TINY)) - np.log(seen[filled] / seen.sum()))
    return float(fit) + (np.count_nonzero(filled) - 1) / 2


def _expected(judged: Sequence[tuple[Problem, Ascent]], shifts: Sequence[float]) -> FloatArray:
    """Give the log probability (A, B) of the expected share of structures, where one is set."""
    share = next((one.prior.expected for one, _ in judged if one.prior.expected is not None), None)
    total = sum(len(problem.count) for problem, _ in judged)
    if share is None or not total:
        return np.zeros((len(LEVEL), len(SLOPE)))
    looking = np.zeros(len(SHARE))
    for (problem, ascent), shift in zip(judged, shifts, strict=True):
        place = Honesty(np.empty(0), shift).place(problem.count / (problem.crowd or 1.0))
        nearest = np.rint((place - SHARE[0]) / (SHARE[1] - SHARE[0])).astype(np.int64)
        looking += np.bincount(nearest, ascent.looks.present, minlength=len(SHARE))
    chance = 1 / (1 + np.exp(-(LEVEL[:, None, None] + SLOPE[:, None] * SHARE)))
    mean = np.clip(chance @ looking / total, TINY, 1 - TINY)
    return np.asarray(CASES * (share * np.log(mean) + (1 - share) * np.log1p(-mean)))


def _shift(problem: Problem, ascent: Ascent) -> float:
    look, crowd = ascent.looks.present, problem.crowd or 1.0
    total = float(look.sum())
    mean = float(look @ problem.count) / (crowd * total) if total > 0 else SPARSE
    mean = max(mean, TINY)
    return float(np.log(SPARSE / (1 - SPARSE)) - np.log(mean / (1 - mean))) if mean < SPARSE else 0.0


def _evidence(problem: Problem, ascent: Ascent, shift: float) -> Evidence:
    if not problem.prior.places or not problem.known.any():
        return Evidence(np.empty(0), np.empty(0), np.empty(0))
    marked = np.diff(problem.marks_by_cluster.indptr)
    rows = problem.known & ((problem.truth == 0) | (marked >= FEWEST))
    look = looks(problem, ascent.state, clamped=False)[0].present
    share = problem.count / (problem.crowd or 1.0)
    return Evidence(Honesty(np.empty(0), shift).place(share)[rows], look[rows], problem.truth[rows])


def _log_likelihood(one: Evidence) -> FloatArray:
    """Give the log probability of an image's decisions: (A, B, E, U).

    Decisions on clusters that are alike to within a percent are counted together.
    """
    about = np.round(np.column_stack([one.place * 20, one.look * 100, one.accepted]))
    _, first, count = np.unique(about, axis=0, return_index=True, return_counts=True)
    value = np.zeros((len(LEVEL), len(SLOPE), len(WRONG), len(OFFSET)))
    level = LEVEL[:, None, None] + OFFSET
    for row, times in zip(first, count, strict=True):
        place, look, accepted = one.place[row], one.look[row], one.accepted[row]
        chance = look / (1 + np.exp(-(level + SLOPE[:, None] * place)))
        chance = chance[:, :, None, :] * (1 - 2 * WRONG[:, None]) + WRONG[:, None]
        value += times * np.log(chance if accepted else 1 - chance)
    return value


@lru_cache(maxsize=1)
def _chances() -> FloatArray:
    """Give h at all nodes: (A x B x U, nodes of the share)."""
    level = (LEVEL[:, None, None] + OFFSET)[..., None]
    chance = 1 / (1 + np.exp(-(level + SLOPE[:, None, None] * SHARE)))
    return np.asarray(chance.reshape(-1, len(SHARE)))


def _normal(nodes: FloatArray, mean: float, deviation: float) -> FloatArray:
    weight = np.exp(-0.5 * ((nodes - mean) / deviation) ** 2)
    return np.asarray(weight / weight.sum())
