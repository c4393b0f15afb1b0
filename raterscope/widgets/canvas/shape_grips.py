"""Where a shape on the screen can be taken hold of, and what becomes of it when it is pulled there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from raterscope.widgets.canvas.viewport import Rect

__all__ = ["away_from", "grips_of", "held_in", "pulled", "shifted"]

Points = NDArray[np.float64]

GAP = 24.0
"""Pixels of the screen along a shape between two grips: nearer ones could not be told apart."""


def grips_of(points: Points, *, closed: bool) -> list[int]:
    """Choose the points of a shape that show a grip: all of them, or of dense ones some.

    Parameters
    ----------
    points : (K, 2) float64
        On the screen.
    closed : bool

    Returns
    -------
    list of int
        Indices, in order; of a line both ends are among them.
    """
    if len(points) < 2:
        return list(range(len(points)))
    along = _along(points)
    chosen = [0]
    while (following := int(np.searchsorted(along, along[chosen[-1]] + GAP))) < len(points):
        chosen.append(following)
    last = len(points) - 1
    if closed:
        if len(chosen) > 2 and np.hypot(*(points[chosen[-1]] - points[0])) < GAP:
            chosen.pop()
    elif chosen[-1] != last:
        if len(chosen) > 1:
            chosen.pop()
        chosen.append(last)
    return chosen


def pulled(points: Points, grips: list[int], which: int, way: Points, *, closed: bool) -> Points:
    """Move one point of a shape; those that have no grip of their own follow by their nearness along it.

    Parameters
    ----------
    points : (K, 2) float64
    grips : list of int
        As of `grips_of`.
    which : int
        The point that is pulled, one of the grips.
    way : (2,) float64
    closed : bool
    """
    count, place = len(points), grips.index(which)
    along = _along(points)
    around = float(along[-1] + np.hypot(*(points[0] - points[-1])))
    share = np.zeros(count)
    share[which] = 1.0
    for step in (-1, 1):
        if not closed and not 0 <= place + step < len(grips):
            continue
        stop = grips[(place + step) % len(grips)]
        between = np.arange(1, (stop - which) * step % count)
        indices = (which + step * between) % count
        whole = (along[stop] - along[which]) * step % around
        if len(indices) and whole > 0:
            share[indices] = 1 - (along[indices] - along[which]) * step % around / whole
    return np.asarray(points + share[:, None] * way)


def shifted(points: Points, way: Points, extent: Rect) -> Points:
    """Move the whole of a shape, no farther than the image goes."""
    lowest = np.minimum(np.array(extent[:2]) - points.min(axis=0), 0)
    highest = np.maximum(np.array(extent[2:]) - points.max(axis=0), 0)
    return np.asarray(points + np.clip(way, lowest, highest))


def held_in(points: Points, extent: Rect) -> Points:
    """Bring points beside the image to its edge."""
    return np.clip(points, extent[:2], extent[2:])


def away_from(points: Points, place: tuple[float, float], *, closed: bool) -> float:
    """Tell how far a place lies from a line or an outline."""
    start = points if closed else points[:-1]
    along = (np.roll(points, -1, axis=0) if closed else points[1:]) - start
    to_place = np.array(place) - start
    long = np.maximum((along**2).sum(axis=1), 1e-12)
    share = np.clip((to_place * along).sum(axis=1) / long, 0, 1)
    return float(np.hypot(*(to_place - share[:, None] * along).T).min())


def _along(points: Points) -> Points:
    """Give how far along the line each point lies."""
    return np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))])
