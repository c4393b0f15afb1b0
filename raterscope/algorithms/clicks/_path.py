"""Algorithm 1 of the OEM-DEM paper: EM that repeatedly removes the weakest component.

The best parameters of the path are kept. Without outliers it is CEM (thesis, section 2.2). Four forms are
implemented:

- Corrected: every iteration is scored with responsibilities of its own parameters. Eq. 15 annihilates one
  component after the other. A component is removed by force only when the score changes by less than the
  tolerance in both directions (eq. 17); then the weights are renormalised and the last score is discarded.
- Literal: Algorithm 1 as published. Eq. 16 uses the posteriors of the previous E step, all components that
  eq. 15 annihilates are removed at once, eq. 17 is one-sided and compares scores across a forced removal, the
  weights are not renormalised after it, and at least ten iterations are made.
- Refreshed: literal in eqs. 15 and 17, otherwise corrected.
- Thesis: corrected, except that all components that eq. 2.17 annihilates are removed at once.

A click of an annotator of weight w counts as w clicks at its position. Its log likelihood, its share of the
components' sums, and its part of every number of clicks or annotators are multiplied by w.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from raterscope.algorithms.clicks._crowd import Cells
from raterscope.algorithms.clicks.data import BoolArray, FloatArray, IntArray
from raterscope.algorithms.clicks.result import Clustering, Trace
from raterscope.algorithms.progress import Watch

PARAMETERS = 5
"""Number of free parameters of a component in the plane (L): mean, covariance and weight."""

GATE = 72.0
"""Squared Mahalanobis distance beyond which a component is negligible: exp(-36) of its height."""

GATE_WITHOUT_OUTLIERS = 1400.0
"""Value of `GATE` without outliers, where every click needs a component: exp(-700)."""

MIN_ITERATIONS = 10
"""Minimum iterations before the literal form removes a component by force (OEM-DEM paper, section 7.1)."""

Criterion = Literal["observed", "expected", "thesis", "length"]

Form = Literal["corrected", "thesis", "refreshed", "literal"]


@dataclass(frozen=True)
class Path:
    """Rules of a path of EM."""

    # score of an iteration: the observed likelihood with the penalties of eq. 16, eq. 16 itself, the thesis's
    # cost, or the message length (thesis, section 2.2)
    criterion: Criterion
    penalty: float  # clicks that eq. 15 takes from each component: L/4 or L/2
    # floor, ceiling: smallest and largest eigenvalue of a covariance, square pixels
    floor: float
    ceiling: float
    # lower_bound, max_iterations, tolerance, initial_reliability: Mmin, Tmax, epsilon and p0 of Algorithm 1
    lower_bound: int
    max_iterations: int
    tolerance: float
    initial_reliability: float
    form: Form = "corrected"  # form of Algorithm 1, see the module
    outliers: bool = True  # whether there are any


@dataclass(frozen=True, eq=False)
class State:
    """Parameters of the mixture."""

    mean: FloatArray  # (M, 2): about the cells' centre
    covariance: FloatArray  # (M, 3): xx, xy, yy
    weight: FloatArray  # (M,)
    reliability: FloatArray  # (R,): as the cells number the annotators
    origin: IntArray  # (M,): initial index of each component


@dataclass(frozen=True, eq=False)
class _Best:
    """The best parameters so far."""

    state: State
    # (State, (M,)): only in the literal form: the parameters of the last E step (eq. 18), and whether each of
    # these M components still exists
    former: tuple[State, BoolArray] | None = None


class _Mixture:
    """The mixture of eq. 4 on one image: one E step and one M step."""

    def __init__(self, cells: Cells, annotators: int, uniform: float, path: Path) -> None:
        self.cells, self.uniform, self.path = cells, uniform, path
        clicks = len(cells)
        self.of_annotator = np.bincount(cells.annotator, minlength=annotators).astype(np.float64)
        self.worth = cells.worth
        self.clicks, self.crowd = float((self.worth * self.of_annotator).sum()), float(self.worth.sum())
        self.total, self.inlier = np.empty(clicks), np.empty(clicks)
        self.count = np.empty(annotators)
        self.click, self.value = np.empty(8 * clicks, dtype=np.int32), np.empty(8 * clicks)
        self.start = np.zeros(1, dtype=np.int64)

    def expect(self, state: State) -> float:
        """Compute eqs. 8 and 9; return the log likelihood."""
        from raterscope.algorithms.clicks._kernels import density_pairs, mix

        cells = self.cells
        self.start = np.empty(len(state.weight) + 1, dtype=np.int64)
        while True:
            pairs = density_pairs(
                cells.x, cells.y, cells.start, cells.grid, state.mean, state.covariance, state.weight,
                GATE if self.path.outliers else GATE_WITHOUT_OUTLIERS,
                self.start, self.click, self.value, self.total,
            )  # fmt: skip
            if pairs <= len(self.click):
                break
            self.click, self.value = (
                np.empty(pairs + pairs // 4, dtype=np.int32),
                np.empty(pairs + pairs // 4),
            )
        return float(
            mix(
                self.total, cells.annotator, cells.weights, state.reliability, self.uniform, self.inlier,
                self.count,
            )
        )  # fmt: skip

    def maximise(self, state: State, *, annihilate: bool = True) -> tuple[State, FloatArray, FloatArray]:
        """Compute eqs. 12 to 15; return the new state, supports and sums of squares."""
        from raterscope.algorithms.clicks._kernels import maximise

        mean, covariance = state.mean.copy(), state.covariance.copy()
        support, spread = np.empty(len(mean)), np.empty((len(mean), 3))
        maximise(
            self.cells.x, self.cells.y, self.start, self.click, self.value, self.total,
            self.cells.annotator, self.cells.weights, state.reliability, self.uniform,
            self.path.penalty if annihilate and self.path.form == "corrected" else -1.0,
            self.path.floor, self.path.ceiling, mean, covariance, support, spread,
        )  # fmt: skip
        remaining = np.maximum(support - self.path.penalty, 0.0)
        weight = remaining / remaining.sum() if remaining.any() else remaining
        reliability = state.reliability
        if self.path.outliers:
            with np.errstate(invalid="ignore"):
                reliability = np.clip(self.count / self.of_annotator, 1e-6, 1 - 1e-6)
            reliability[self.of_annotator == 0] = self.path.initial_reliability
        return State(mean, covariance, weight, reliability, state.origin), support, spread

    def expected(self, state: State, support: FloatArray, spread: FloatArray) -> float:
        """Compute Q of eq. 7 from sufficient statistics, for the components that are alive."""
        alive = state.weight > 0
        xx, xy, yy = state.covariance[alive].T
        determinant = xx * yy - xy * xy
        sxx, sxy, syy = spread[alive].T
        score = float(
            support[alive] @ (np.log(state.weight[alive]) - math.log(2 * math.pi) - 0.5 * np.log(determinant))
            - 0.5 * ((yy * sxx - 2 * xy * sxy + xx * syy) / determinant).sum()
        )
        if self.path.outliers:
            inliers, outliers = self.worth * self.count, self.worth * (self.of_annotator - self.count)
            score += float(inliers @ np.log(state.reliability) + outliers @ np.log1p(-state.reliability))
            score += float(outliers.sum()) * math.log(self.uniform)
        return score

    def score(self, state: State, likelihood: float, support: FloatArray, spread: FloatArray) -> float:
        """Compute the criterion that the path maximises."""
        weight = state.weight[state.weight > 0]
        inside = max(float((self.worth * self.count).sum()) if self.path.outliers else self.clicks, 1.0)
        free = len(weight) * (PARAMETERS + 1) + (self.crowd if self.path.outliers else 0)
        if self.path.criterion == "length":
            return likelihood - (
                PARAMETERS / 2 * float(np.log(self.clicks * weight / 12).sum())
                + len(weight) / 2 * (math.log(self.clicks / 12) + PARAMETERS + 1)
            )
        if self.path.criterion == "thesis":
            return self.expected(state, support, spread) - PARAMETERS * len(weight) / 2 * math.log(inside)
        fit = likelihood if self.path.criterion == "observed" else self.expected(state, support, spread)
        return fit - self.path.penalty * float(np.log(weight).sum()) - free / 2 * math.log(inside)


def walk(
    cells: Cells,
    reliability: FloatArray,
    uniform: float,
    mean: FloatArray,
    covariance: FloatArray,
    path: Path,
    scatter: float,
    watch: Watch,
) -> Clustering:
    """Follow the path from initial means, relative to the cells' centre; return the best clustering on it.

    `reliability`: (R,) float64, p0 of each annotator, as the cells number them.
    `uniform`: f_U, one over the image's area.
    `mean`: (M0, 2) float64.
    `covariance`: (3,) float64, initial covariance of every component: xx, xy, yy.
    `scatter`: stored in the result.
    """
    initial = len(mean)
    state = State(
        mean,
        np.tile(covariance, (initial, 1)),
        np.full(initial, 1 / max(initial, 1)),
        reliability,
        np.arange(initial),
    )
    return walk_from(cells, uniform, state, path, scatter, watch)[0]


def walk_from(
    cells: Cells, uniform: float, state: State, path: Path, scatter: float, watch: Watch
) -> tuple[Clustering, State]:
    """Follow the path as `walk`, from any parameters; also return the best ones."""
    mixture = _Mixture(cells, len(state.reliability), uniform, path)
    initial = len(state.weight)
    literal = path.form == "literal"
    best, best_score, best_at = _Best(_select_components(state, np.zeros(initial, dtype=bool))), -math.inf, -1
    objective: list[float] = []
    components: list[int] = []
    removed: list[bool] = []
    previous = -math.inf
    mixture.expect(state)
    while len(state.weight) > path.lower_bound and len(objective) < path.max_iterations:
        before = len(state.weight)
        former = state
        state, support, spread = mixture.maximise(state)
        alive = state.weight > 0
        state = _select_components(state, alive)
        if not len(state.weight):
            break
        of_posteriors = path.criterion in {"expected", "thesis"}
        if literal and of_posteriors:
            score = mixture.score(state, -math.inf, support[alive], spread[alive])
            mixture.expect(state)
        else:
            likelihood = mixture.expect(state)
            if of_posteriors:
                moved, support, spread = mixture.maximise(state, annihilate=False)
                spread = _about(spread, support, moved, state)
            score = mixture.score(state, likelihood, support, spread)
        objective.append(score)
        components.append(len(state.weight))
        if score > best_score:
            best, best_score, best_at = (
                _Best(state, (former, alive) if literal else None),
                score,
                len(objective) - 1,
            )
        settled = score - previous < path.tolerance * abs(score)
        if path.form in {"corrected", "thesis"}:
            settled = abs(score - previous) < path.tolerance * abs(score) and len(state.weight) == before
        elif literal:
            settled = settled and len(objective) >= MIN_ITERATIONS
        removed.append(settled)
        previous = score
        if settled:
            state = _without_weakest(state, renormalise=not literal)
            mixture.expect(state)
            previous = previous if literal else -math.inf
        watch(
            max(1 - len(state.weight) / max(initial, 1), len(objective) / path.max_iterations),
            f"removing the weakest of {len(state.weight)} components",
            objective=score,
            partial=partial(_finish, mixture, best, scatter, Trace.none()),
        )
    trace = Trace(
        np.array(objective), np.array(components, dtype=np.int64), np.array(removed, dtype=bool), best_at,
        len(state.weight) <= path.lower_bound,
    )  # fmt: skip
    return _finish(mixture, best, scatter, trace), best.state


def _select_components(state: State, keep: BoolArray) -> State:
    return State(
        state.mean[keep], state.covariance[keep], state.weight[keep], state.reliability, state.origin[keep]
    )


def _about(spread: FloatArray, support: FloatArray, moved: State, state: State) -> FloatArray:
    """Convert sums of squares about the updated means to sums about the state's own means."""
    shift = moved.mean - state.mean
    products = np.column_stack([shift[:, 0] ** 2, shift[:, 0] * shift[:, 1], shift[:, 1] ** 2])
    return np.asarray(spread + support[:, None] * products)


def _without_weakest(state: State, *, renormalise: bool) -> State:
    kept = _select_components(state, np.arange(len(state.weight)) != int(np.argmin(state.weight)))
    if not renormalise or not len(kept.weight):
        return kept
    return replace(kept, weight=kept.weight / kept.weight.sum())


def _finish(mixture: _Mixture, best: _Best, scatter: float, trace: Trace) -> Clustering:
    """Return a state as the clustering of the clicks in their own order; the walk may continue afterwards."""
    mixture = _Mixture(mixture.cells, len(mixture.of_annotator), mixture.uniform, mixture.path)
    state = best.state
    former, alive = best.former or (state, np.ones(len(state.weight), dtype=bool))
    mixture.expect(former)
    cells, clicks = mixture.cells, len(mixture.cells)
    owner = np.repeat(np.where(alive, np.cumsum(alive) - 1, -1), np.diff(mixture.start))
    pairs = np.flatnonzero(owner >= 0)
    nearest, inlier = np.full(clicks, -1, dtype=np.int64), np.empty(clicks)
    rows = pairs[np.lexsort((mixture.value[pairs], mixture.click[pairs]))]
    nearest[cells.order[mixture.click[rows]]] = owner[rows]
    inlier[cells.order] = mixture.inlier
    with np.errstate(invalid="ignore"):
        reliability = (mixture.count / mixture.of_annotator)[cells.rank]
    xx, xy, yy = state.covariance.T
    covariance = np.stack([np.stack([xx, xy], axis=-1), np.stack([xy, yy], axis=-1)], axis=-2)
    return Clustering(
        state.mean + cells.centre, covariance, state.weight, inlier, nearest, reliability, scatter, trace
    )
