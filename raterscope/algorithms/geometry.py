"""Lengths and areas of lines and outlines drawn on an image."""

from __future__ import annotations

import numpy as np

from raterscope.algorithms.clicks.data import FloatArray


def length_of(points: FloatArray, *, closed: bool = False) -> float:
    """Return the length of a line through K points, or of the closed outline.

    `points`: (K, 2), in any unit; the length has the same unit.

    Examples
    --------
    >>> import numpy as np
    >>> length_of(np.array([[0.0, 0.0], [3.0, 4.0]]))
    5.0
    """
    points = np.asarray(points, dtype=np.float64)
    steps = np.diff(points, axis=0, append=points[:1]) if closed else np.diff(points, axis=0)
    return float(np.hypot(steps[:, 0], steps[:, 1]).sum())


def area_of(points: FloatArray) -> float:
    """Return the area within an outline of K corners that does not cross itself (Gauss's formula).

    `points`: (K, 2), in either direction, in any unit; the area has the square of this unit.

    Examples
    --------
    >>> import numpy as np
    >>> area_of(np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 3.0], [0.0, 3.0]]))
    6.0
    """
    points = np.asarray(points, dtype=np.float64)
    if len(points) < 3:
        return 0.0
    x, y = (points - points[0]).T  # near zero: far from it digits are lost
    return float(abs(x @ np.roll(y, -1) - np.roll(x, -1) @ y) / 2)


def crosses_itself(points: FloatArray) -> bool:
    """Return whether two sides of a closed outline of K corners cross.

    `points`: (K, 2).

    Examples
    --------
    >>> import numpy as np
    >>> crosses_itself(np.array([[0.0, 0.0], [2.0, 2.0], [2.0, 0.0], [0.0, 2.0]]))
    True
    """
    start = np.asarray(points, dtype=np.float64)
    count, stop = len(start), np.roll(start, -1, axis=0)
    first, second = np.triu_indices(count, 2)
    apart = (first > 0) | (second < count - 1)  # the last side meets the first
    first, second = first[apart], second[apart]
    from_first = _side(start[first], stop[first], start[second]) * _side(
        start[first], stop[first], stop[second]
    )
    from_second = _side(start[second], stop[second], start[first]) * _side(
        start[second], stop[second], stop[first]
    )
    return bool(np.any((from_first < 0) & (from_second < 0)))


def simplify(points: FloatArray, tolerance: float) -> FloatArray:
    """Simplify a line within a tolerance (Douglas and Peucker); the first and the last point stay.

    `points`: (K, 2). `tolerance`: in the points' unit. The result has shape (L, 2).

    Examples
    --------
    >>> import numpy as np
    >>> simplify(np.array([[0.0, 0.0], [1.0, 0.1], [2.0, 0.0]]), tolerance=0.5)
    array([[0., 0.],
           [2., 0.]])
    """
    points = np.asarray(points, dtype=np.float64)
    kept = np.zeros(len(points), dtype=bool)
    kept[[0, -1]] = True
    spans = [(0, len(points) - 1)]
    while spans:
        first, last = spans.pop()
        if last - first < 2:
            continue
        inner = points[first + 1 : last]
        along = points[last] - points[first]
        long = float(along @ along)
        share = np.clip((inner - points[first]) @ along / long, 0, 1) if long > 0 else np.zeros(len(inner))
        away = np.hypot(*(inner - points[first] - share[:, None] * along).T)
        farthest = int(away.argmax())
        if away[farthest] > tolerance:
            index = first + 1 + farthest
            kept[index] = True
            spans += [(first, index), (index, last)]
    return points[kept]


def _side(start: FloatArray, stop: FloatArray, point: FloatArray) -> FloatArray:
    """Return the side of the line from start to stop on which a point lies, by sign."""
    along, away = stop - start, point - start
    return np.asarray(np.sign(along[:, 0] * away[:, 1] - along[:, 1] * away[:, 0]))
