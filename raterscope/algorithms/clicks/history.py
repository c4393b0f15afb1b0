"""What a stream of clicks came to on one image, step by step."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from raterscope.algorithms.clicks.data import BoolArray, FloatArray, IntArray

__all__ = ["StreamHistory"]


@dataclass(frozen=True, eq=False)
class StreamHistory:
    """The S steps of a stream on one image.

    Attributes
    ----------
    annotators, clicks : (S,) int64
        That have come after each step.
    detections : (S,) int64
        After each step.
    changed : (S,) int64
        Decisions that were other ones after the step than before it.
    expected : (S,) float64
        Decisions that are expected to change with the annotators that the stopping rule looks ahead to.
    chance : (S,) float64
        Probability that any of them would.
    sensitivity, precision : (S, 3) float64
        Of the detections: estimate, low, high.
    firm : (S,) bool
        Whether the stopping rule asks for no more annotators.
    refreshed : (S,) bool
        Whether the step clustered all clicks anew.
    """

    annotators: IntArray
    clicks: IntArray
    detections: IntArray
    changed: IntArray
    expected: FloatArray
    chance: FloatArray
    sensitivity: FloatArray
    precision: FloatArray
    firm: BoolArray
    refreshed: BoolArray

    @classmethod
    def none(cls) -> Self:
        """Give the history before the first step."""
        whole, real = np.empty(0, dtype=np.int64), np.empty(0)
        three, truth = np.empty((0, 3)), np.empty(0, dtype=bool)
        return cls(whole, whole, whole, whole, real, real, three, three, truth, truth)

    def __len__(self) -> int:
        return len(self.annotators)

    def then(self, **step: Any) -> Self:
        """Add a step, a value for every attribute."""
        joined = {}
        for one in fields(self):
            before = getattr(self, one.name)
            new = np.asarray(step[one.name], dtype=before.dtype)[None]
            joined[one.name] = np.concatenate([before, new])
        return type(self)(**joined)
