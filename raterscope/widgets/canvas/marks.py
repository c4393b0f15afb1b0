"""What the canvas is given to draw."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["LAYERS", "SPOT_STATES", "ClickMarks", "DetectionMarks"]

LAYERS = ("clicks", "ellipses", "detections", "truth", "density")

SPOT_STATES = ("detected", "rejected", "disputed", "accepted", "turned down", "added", "undecided")
"""What the fusion says (the first three), what the expert decided, or that neither is to be seen."""


@dataclass(frozen=True, eq=False)
class ClickMarks:
    """N clicks of some annotators.

    Attributes
    ----------
    x, y : (N,) float
        Place in the image's units.
    annotator : (N,) int
        Index that gives colour and symbol.
    inlier : (N,) float, optional
        Probability that the click is no outlier. Outliers are drawn as thin strokes.
    """

    x: NDArray[np.floating]
    y: NDArray[np.floating]
    annotator: NDArray[np.integer]
    inlier: NDArray[np.floating] | None = None

    @classmethod
    def none(cls) -> ClickMarks:
        """No click."""
        return cls(np.empty(0), np.empty(0), np.empty(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.x)


@dataclass(frozen=True, eq=False)
class DetectionMarks:
    """M spots.

    Attributes
    ----------
    x, y : (M,) float
    covariance : (M, 2, 2) float
        Square units of the image.
    posterior : (M,) float
        Probability of a structure; NaN where there is none.
    state : tuple of M of `SPOT_STATES`
    number : (M,) int
        The number by which people call the spot.
    votes : (M,) int, optional
        Annotators who clicked.
    annotators : int
        Annotators who looked.
    """

    x: NDArray[np.floating]
    y: NDArray[np.floating]
    covariance: NDArray[np.floating]
    posterior: NDArray[np.floating]
    state: tuple[str, ...]
    number: NDArray[np.integer]
    votes: NDArray[np.integer] | None = None
    annotators: int = 0
    _known: frozenset[str] = field(default=frozenset(SPOT_STATES), init=False, repr=False)

    def __post_init__(self) -> None:
        unknown = set(self.state) - self._known
        if unknown:
            raise ValueError(f"spot state {sorted(unknown)[0]!r}; expected one of {', '.join(SPOT_STATES)}")
        if not len(self.x) == len(self.y) == len(self.covariance) == len(self.state) == len(self.number):
            raise ValueError("positions, covariances, states and numbers of spots differ in length")

    @classmethod
    def none(cls) -> DetectionMarks:
        """No spot."""
        empty = np.empty(0)
        return cls(empty, empty, np.empty((0, 2, 2)), empty, (), np.empty(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.x)

    def words(self, index: int) -> tuple[str, str]:
        """Say a spot in a title and a line: "spot 14  0.46", "22 of 51 clicked"."""
        title = f"spot {self.number[index]}"
        if self.state[index] != "added" and np.isfinite(self.posterior[index]):
            title += f"  {self.posterior[index]:.2f}"
        decided = {"accepted": "accepted", "turned down": "rejected by you", "added": "added by you"}
        word = decided.get(self.state[index], self.state[index])
        if self.votes is None or not self.annotators:
            return title, word
        return title, f"{self.votes[index]} of {self.annotators} clicked, {word}"
