"""Inner loops of detection: the log probability of votes, annotators' odds, draws of all parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

__all__ = ["draw", "newton", "weigh"]

Array = Any
"""What numba compiles is not what a type checker sees; shapes and types stand in the docstrings."""


@njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def _softplus(value: float) -> float:
    return float(max(value, 0.0) + np.log1p(np.exp(-abs(value))))


@njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def weigh(
    first: Array, annotator: Array, count: Array, odds: Array, chance: Array, shift: Array, present: Array,
    by_chance: Array,
) -> None:  # fmt: skip
    """Find the log probability of each cluster's votes (eqs. 21, 22).

    Parameters
    ----------
    first : (M + 1,), annotator : (votes,) int32
        Who marked each cluster.
    count : (M,) float64
        How many did.
    odds, chance : (R,) float64
    shift : (K,) float64
    present : (M, K) float64
        Written: as a structure at each node.
    by_chance : (M,) float64
        Written: as clicks that met by chance.
    """
    quiet = np.zeros(len(shift))
    likely = np.empty(len(odds))
    missed = 0.0
    for r in range(len(odds)):
        omitted = np.log1p(-chance[r])
        missed += omitted
        likely[r] = np.log(chance[r]) - omitted
        for k in range(len(shift)):
            quiet[k] -= _softplus(odds[r] + shift[k])
    for m in range(len(count)):
        own, met = 0.0, missed
        for p in range(first[m], first[m + 1]):
            own += odds[annotator[p]]
            met += likely[annotator[p]]
        by_chance[m] = met
        for k in range(len(shift)):
            present[m, k] = own + count[m] * shift[k] + quiet[k]


@njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def newton(hit: Array, nodes: Array, shift: Array, whole: Array, odds: Array) -> None:
    """Maximise over each annotator's log odds of a mark, by Newton's method.

    Parameters
    ----------
    hit : (R,) float64
        Marks, those of the prior included.
    nodes : (R or 1, K) float64
        Clusters at each node, that each annotator saw or all did.
    shift : (K,) float64
    whole : (R,) float64
        Marks and omissions of the prior, at shift 0.
    odds : (R,) float64
        To begin with; overwritten.
    """
    for r in range(len(hit)):
        row = min(r, len(nodes) - 1)
        value = odds[r]
        for _ in range(50):
            chance = 1 / (1 + np.exp(-min(max(value, -40.0), 40.0)))
            slope = hit[r] - chance * whole[r]
            curve = chance * (1 - chance) * whole[r] + 1e-6
            for k in range(len(shift)):
                chance = 1 / (1 + np.exp(-min(max(value + shift[k], -40.0), 40.0)))
                slope -= chance * nodes[row, k]
                curve += chance * (1 - chance) * nodes[row, k]
            step = min(max(slope / curve, -2.0), 2.0)
            value = min(max(value + step, -13.8), 13.8)  # as far as EDGE
            if abs(step) < 1e-10:
                break
        odds[r] = value


@njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def draw(
    begin: int, end: int, first: Array, annotator: Array, artefact: Array, odds: Array, chance: Array,
    kinds: Array, honest: Array, shift: Array, share: Array, drawn: Array,
) -> None:  # fmt: skip
    """Find the clusters' posteriors for drawn parameters.

    What the nodes of a structure add up to depends on the count of its votes alone, beside the odds of those
    who gave them.

    Parameters
    ----------
    begin, end : int
        Draws that are looked at, of D.
    first, annotator
        As for `weigh`.
    artefact : (M,) float64
    odds, chance : (D, R) float64
    kinds : (D, 3) float64
        Logarithms.
    honest : (D,) float64
    shift, share : (K,) float64
        The share's logarithm.
    drawn : (D, M) float64
        Written.
    """
    annotators = odds.shape[1]
    nodes = np.empty(annotators + 1)
    for d in range(begin, end):
        nodes[:] = np.nan
        quiet = share.copy()
        missed = 0.0
        for r in range(annotators):
            missed += np.log1p(-chance[d, r])
            for k in range(len(shift)):
                quiet[k] -= _softplus(odds[d, r] + shift[k])
        for m in range(len(artefact)):
            own, met = kinds[d, 0], missed + kinds[d, 2]
            for p in range(first[m], first[m + 1]):
                r = annotator[p]
                own += odds[d, r]
                met += np.log(chance[d, r]) - np.log1p(-chance[d, r])
            votes = first[m + 1] - first[m]
            if np.isnan(nodes[votes]):
                largest = -np.inf
                for k in range(len(shift)):
                    largest = max(largest, votes * shift[k] + quiet[k])
                total = 0.0
                for k in range(len(shift)):
                    total += np.exp(votes * shift[k] + quiet[k] - largest)
                nodes[votes] = largest + np.log(total)
            own += nodes[votes]
            drawn_to = artefact[m] + kinds[d, 1]
            other = max(drawn_to, met)
            other += np.log(np.exp(drawn_to - other) + np.exp(met - other))
            drawn[d, m] = honest[d] / (1 + np.exp(min(other - own, 700.0)))
