"""Knockoffs of each annotator's own noise: Q whose columns stay within the annotator's comparisons."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raterscope.algorithms.pairs.data import FloatArray, IndexArray, Pairs
from raterscope.algorithms.pairs.grams import Biases, Scaled, factors, item_sums
from raterscope.algorithms.pairs.knockoffs import sphere
from raterscope.algorithms.progress import Watch, part, silent

__all__ = ["own_noise"]

_LOST = 1e-6


def own_noise(
    pairs: Pairs,
    component: IndexArray,
    problem: Scaled,
    found: Biases,
    seeds: Sequence[Sequence[int]],
    watch: Watch = silent,
) -> FloatArray:
    """Draw Q'y for Q whose column j is near a random vector on the comparisons of annotator j.

    With Z a normal vector for each annotator that is 0 on all others' comparisons, and P the projector off
    items and annotators, Q = PZ (Z'PZ)^-1/2 is orthonormal, of all such matrices the nearest to PZ, and knows
    nothing of the choices, as theorem 1 asks. Knockoffs then are as noisy as their annotators, where a Q of
    the whole gives all the mean noise. Where an annotator's comparisons leave too little of Z, the rest comes
    from the sphere.

    Parameters
    ----------
    pairs : Pairs
    component : (n,) int32
    problem : Scaled
    found : Biases
    seeds : (D, ...) sequence of int
    watch : Watch

    Returns
    -------
    (D, m) float64
    """
    from scipy.linalg import cho_solve, eigh, solve_triangular

    many, items = len(problem.tested), len(pairs.items)
    number = np.full(len(pairs.annotators), many)
    number[problem.tested] = np.arange(many)
    person = number[pairs.annotator]
    bias = np.append(found.scaled / problem.length, 0.0)
    score = item_sums(pairs, pairs.choice - bias[person])
    blocks = list(factors(pairs, component, part(watch, 0.0, 0.1)))
    theta = np.zeros(items)
    mixed = _sums(person, pairs, np.ones(len(pairs)), many)
    through = []
    for kept, lower in blocks:
        theta[kept] = cho_solve((lower, True), score[kept], check_finite=False)
        through.append(solve_triangular(lower, mixed[:, kept].T, lower=True, check_finite=False))
    rest = pairs.choice - theta[pairs.left] + theta[pairs.right] - bias[person]
    drawn = np.empty((len(seeds), many))
    for k, seed in enumerate(seeds):
        watch(0.1 + 0.9 * k / len(seeds), f"noise of each annotator, draw {k + 1} of {len(seeds)}")
        generator = np.random.default_rng(seed)
        z = generator.standard_normal(len(pairs))
        length = np.sqrt(np.bincount(person, weights=z * z, minlength=many)[:many])
        z /= np.append(length, 1.0)[person]
        table = _sums(person, pairs, z, many)
        square = np.eye(many)
        cross: FloatArray = np.diag(np.bincount(person, weights=z, minlength=many)[:many])
        for (kept, lower), own in zip(blocks, through, strict=True):
            mine = solve_triangular(lower, table[:, kept].T, lower=True, check_finite=False)
            square -= mine.T @ mine
            cross -= mine.T @ own
        cross /= problem.length
        square -= cross @ found.inverse @ cross.T
        value, vector = eigh(square, check_finite=False)
        good = value > _LOST
        seen = vector.T @ np.bincount(person, weights=z * rest, minlength=many)[:many]
        seen[good] = seen[good] / np.sqrt(value[good])
        if not good.all():
            left = max(found.residual - float(seen[good] @ seen[good]), 0.0)
            free = found.freedom - int(good.sum())
            seen[~good] = (
                sphere(int((~good).sum()), left, free, [[int(generator.integers(2**63))]])[0] if free > 0 else
                generator.standard_normal(int((~good).sum())) * np.sqrt(found.variance)
            )  # fmt: skip
        drawn[k] = vector @ seen
    return drawn


def _sums(person: IndexArray, pairs: Pairs, value: FloatArray, many: int) -> FloatArray:
    """Give the annotators' columns times delta0, (m, n), each comparison weighed."""
    items = len(pairs.items)
    found = np.zeros((many + 1) * items)
    found += np.bincount(person * items + pairs.left, weights=value, minlength=len(found))
    found -= np.bincount(person * items + pairs.right, weights=value, minlength=len(found))
    return found.reshape(-1, items)[:many]
