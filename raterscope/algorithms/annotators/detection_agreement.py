"""Agreement of two annotators' marks on images, matched one to one within a radius."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from raterscope.algorithms.annotators.measurements import LEVEL
from raterscope.algorithms.annotators.vote_agreement import Coefficient
from raterscope.algorithms.evaluation import match

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class DetectionAgreement:
    """Agreement of the marks of two annotators.

    Attributes
    ----------
    share : Coefficient
        Twice the matched marks over the marks of both, which is the F1 score of one against the other; NaN
        without marks.
    images, matched : int
    """

    share: Coefficient
    images: int
    matched: int


def detection_agreement(
    first: Sequence[FloatArray], second: Sequence[FloatArray], radius: float
) -> DetectionAgreement:
    """Match the marks of two annotators, image by image.

    Parameters
    ----------
    first, second : sequence of (N, 2) float64
        Marks on each image that both viewed.
    radius : float

    Notes
    -----
    The interval is that of a ratio of sums over images, by the delta method with Student's t; NaN below three
    images.

    Examples
    --------
    >>> import numpy as np
    >>> a, b = np.array([[0.0, 0.0], [9.0, 9.0]]), np.array([[1.0, 0.0]])
    >>> detection_agreement([a], [b], radius=2).share.value
    0.6666666666666666
    """
    matched = np.array(
        [len(match(a, b, radius).found) for a, b in zip(first, second, strict=True)], dtype=np.float64
    )
    total = np.array([len(a) + len(b) for a, b in zip(first, second, strict=True)], dtype=np.float64)
    images, marks = len(total), float(total.sum())
    if not marks:
        return DetectionAgreement(Coefficient(math.nan, math.nan, math.nan), images, 0)
    value = 2 * float(matched.sum()) / marks
    low = high = math.nan
    if images > 2:
        rest = 2 * matched - value * total
        error = math.sqrt(images / (images - 1) * float((rest**2).sum())) / marks
        half = float(special.stdtrit(images - 1, (1 + LEVEL) / 2)) * error
        low, high = max(0.0, value - half), min(1.0, value + half)
    return DetectionAgreement(Coefficient(value, low, high), images, int(matched.sum()))
