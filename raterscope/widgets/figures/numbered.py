"""Rows of a view by the numbers that signals name them by."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["row_of"]


def row_of(numbers: NDArray[np.integer], number: int | None) -> int | None:
    """Give the row of a number; None where it is not among them, or is none."""
    found = np.empty(0, np.int64) if number is None else np.flatnonzero(numbers == number)
    return int(found[0]) if len(found) else None
