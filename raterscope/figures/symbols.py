"""Outlines of the symbols of annotators, communities and points."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["OUTLINES", "Symbol"]

Symbol = Literal["disc", "square", "triangle", "diamond", "star", "cross", "tick"]


def _ring(*radii: float) -> NDArray[np.float64]:
    """Return corners at equal angles from the top, at these distances from the origin, (C, 2)."""
    turn = 2 * np.pi * np.arange(len(radii)) / len(radii)
    distance = np.array(radii)
    return np.column_stack([distance * np.sin(turn), -distance * np.cos(turn)])


OUTLINES: dict[str, NDArray[np.float64]] = {
    "square": 0.88 * np.array([(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)]),
    "triangle": _ring(*[1.3] * 3),
    "diamond": _ring(*[1.2] * 4),
    "star": _ring(*[1.4, 0.6] * 5),
}
"""Corners about the origin, (C, 2): each symbol has the visual weight of a disc of radius 1."""
