"""Spots that the expert looked at and left without a decision.

Silence about a spot says something only where the expert saw the spot. A spot counts as viewed when it was
selected on its image for at least `LONG_ENOUGH` seconds, or when its crop was that long in sight in the grid
of spots while others in sight were decided. A spot that was merely somewhere on the screen does not count:
nobody knows whether it was looked at. A skipped spot does not count either: to skip says "I do not know".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

import numpy as np

from raterscope.algorithms.clicks.data import FloatArray
from raterscope.app.review.spots import SHORTEST_REACH, Spot

ViewedHow = Literal["selected", "listed"]
"""selected: on its image; listed: in the grid of spots."""

LONG_ENOUGH = 0.5
"""Seconds in sight from which on a spot counts as viewed."""

_HOW = get_args(ViewedHow)


@dataclass(frozen=True, kw_only=True)
class View:
    """A spot that was looked at and left without a decision.

    Attributes
    ----------
    image : int
        The image's number in the study.
    x, y : float
        Where the spot was, pixels.
    number : int or None
        The number that it had on screen.
    run : int or None
        The run whose result was on screen.
    how : str
        selected or listed.
    seconds : float
        How long it was in sight.
    id : int
        Counts from 1; 0 until the study has recorded it.
    at : datetime or None
        When it was left; None until the study has recorded it.
    who : str
        Filled with the user's name by the study when it is empty.
    """

    image: int
    x: float
    y: float
    number: int | None = None
    run: int | None = None
    how: ViewedHow = "selected"
    seconds: float
    id: int = 0
    at: datetime | None = None
    who: str = ""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.x) and math.isfinite(self.y)):
            raise ValueError(f"a view of a spot at {self.x}, {self.y}; expected finite numbers.")
        if not 0 <= self.seconds < math.inf:
            raise ValueError(f"a view of {self.seconds} seconds; expected a finite number from 0 on.")
        if self.how not in _HOW:
            raise ValueError(f"a view is {self.how!r}; expected one of {', '.join(_HOW)}.")


def viewed_places(views: Sequence[View], spots: Sequence[Spot]) -> FloatArray:
    """Return the positions of an image's viewed spots without a decision.

    Views of the same spot, also in different runs, count once, at the place of the last.

    Parameters
    ----------
    views : sequence of View
        Those of the image, the oldest first.
    spots : sequence of Spot
        The spots of the image on which the expert decided something, or which were skipped.

    Returns
    -------
    (V, 2) float64
        Pixels.
    """
    judged = np.array([(spot.anchor_x, spot.anchor_y) for spot in spots]).reshape(-1, 2)
    points: list[tuple[float, float]] = []
    for view in reversed(views):
        known = np.concatenate([judged, np.array(points).reshape(-1, 2)])
        away = np.hypot(known[:, 0] - view.x, known[:, 1] - view.y)
        if view.seconds >= LONG_ENOUGH and not (away <= SHORTEST_REACH).any():
            points.append((view.x, view.y))
    return np.array(points[::-1], dtype=np.float64).reshape(-1, 2)
