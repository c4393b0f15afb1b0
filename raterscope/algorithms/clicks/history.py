"""What a stream of clicks came to on one image, step by step."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
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
    coming : (S,) float64
        Of the expected changes, detections that appear. 0 in histories of earlier versions.
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
    coming: FloatArray = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        """Put 0 where an earlier version wrote no `coming`."""
        older = len(self.annotators) - len(self.coming)
        if older > 0:
            object.__setattr__(self, "coming", np.append(np.zeros(older), self.coming))

    @classmethod
    def none(cls) -> Self:
        """Give the history before the first step."""
        whole, real = np.empty(0, dtype=np.int64), np.empty(0)
        three, truth = np.empty((0, 3)), np.empty(0, dtype=bool)
        return cls(whole, whole, whole, whole, real, real, three, three, truth, truth)

    @property
    def share(self) -> FloatArray:
        """(S,) expected changes as a share of the detections and those expected to appear, see `Outlook`."""
        share: FloatArray = self.expected / np.maximum(self.detections + self.coming, 1.0)
        return share

    def __len__(self) -> int:
        return len(self.annotators)

    def until(self, end: int) -> Self:
        """Give the steps before one."""
        return type(self)(**{one.name: getattr(self, one.name)[:end] for one in fields(self)})

    def then(self, **step: Any) -> Self:
        """Add a step with a value for every attribute; `coming` is 0 by default."""
        joined = {}
        for one in fields(self):
            before = getattr(self, one.name)
            new = np.asarray({"coming": 0.0, **step}[one.name], dtype=before.dtype)[None]
            joined[one.name] = np.concatenate([before, new])
        return type(self)(**joined)
