"""Reliability of annotators across kinds, from the table of annotators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.reliability import PersonReliability, from_interval, person_reliability
from raterscope.algorithms.progress import Watch, silent

MEASURES = {"clicks": "reliability", "masks": "dice", "labels": "accuracy", "pairs": "match"}
"""The probability that each kind's reliability is read from; it needs an interval."""


def relate_kinds(columns: Mapping[str, NDArray[Any]], watch: Watch = silent) -> PersonReliability | None:
    """Relate the reliability of annotators across kinds; None with fewer than two kinds.

    Parameters
    ----------
    columns : mapping of str to (N,) array
        Those of `AnnotatorTable`. A kind takes part if its measure of `MEASURES` has intervals.
    """
    kinds, values, errors = [], [], []
    for kind, measure in MEASURES.items():
        ends = [columns.get(f"{kind}_{measure}{end}") for end in ("_low", "_high")]
        if ends[0] is None or ends[1] is None:
            continue
        value, error = from_interval(np.asarray(ends[0], dtype=float), np.asarray(ends[1], dtype=float))
        if np.isfinite(value).any():
            kinds.append(kind)
            values.append(value)
            errors.append(error)
    if len(kinds) < 2:
        return None
    return person_reliability(np.array(values).T, np.array(errors).T, kinds, watch)
