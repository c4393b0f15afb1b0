"""Whether probabilities, intervals and bands are right as often as they claim, kind by kind.

Usage: RATERSCOPE_DATA=FOLDER python -m tests.benchmarks.calibration [--kind KIND]

Each module of this package is a kind and has a function ``rows() -> list[Row]``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Row"]


@dataclass(frozen=True)
class Row:
    """One number of the program, what it claims, and how often it is right.

    Attributes
    ----------
    kind : str
    number : str
        "band, 95 %".
    data : str
    nominal : float
        What the program claims, or the goal.
    measured : float
    count : int
        Of what it was measured on.
    error : float
        Standard error of `measured`; NaN where there is none.
    """

    kind: str
    number: str
    data: str
    nominal: float
    measured: float
    count: int = 0
    error: float = math.nan
