"""Calibration of probabilities, intervals and bands, kind by kind.

Usage: [RATERSCOPE_DATA=FOLDER] python -m tests.benchmarks.calibration [--kind KIND] [--full] [--write]

Each row has the claim or goal ("nominal"), what was measured, its standard error where there is one, and the
number of cases. Seeds are fixed: a version of the program prints the same table again. Without
RATERSCOPE_DATA only simulated crowds are measured. Standard error has the processor time of each kind.

"--write" replaces the table of comparable crowds in the program's resources, from which the window and the
report state what was measured where nothing is known of the user's own data.

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
        What the program claims, or the goal; NaN where there is none.
    measured : float
    count : int
        Of what it was measured on.
    error : float
        Standard error of `measured`; NaN where there is none.
    per_item : float
        Annotators per image or case, votes per task, comparisons per annotator; NaN where it is not asked.
    classes : int
    in_sample : bool
        Whether defaults were chosen on the data.
    """

    kind: str
    number: str
    data: str
    nominal: float
    measured: float
    count: int = 0
    error: float = math.nan
    per_item: float = math.nan
    classes: int = 0
    in_sample: bool = False
