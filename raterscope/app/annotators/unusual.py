"""Annotators whose values differ from the crowd's, the most unusual first, each with the reason in words.

A value is compared with the crowd's median in robust standard deviations. It counts as unusual if its whole
interval is farther from the ideal than the median; without an interval it does not. The order also includes
the value's own uncertainty, so that three votes do not precede three hundred. It decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.app.annotator_evidence import Evidence, Measure
from raterscope.app.annotators.table import AnnotatorTable
from raterscope.text import figure

FAR = 3.0
"""Robust standard deviations from which a value is unusual."""
FEWEST = 4
"""Annotators with a value that make a crowd."""
LEVEL = 0.05
"""Probability of naming any annotator who did not change, over the whole crowd."""
FLAGGED = 4.0
"""Deviations that a flag of the tests for position bias and for copies counts as, at least."""
MAD = 1.4826
WIDTH = 3.92
"""Standard deviations in a 95 % interval."""


@dataclass(frozen=True, eq=False)
class Unusual:
    """What is unusual about each of N annotators."""

    # (N,): deviations z of the most unusual value as z / (1 + z), 0 where nothing is unusual
    score: NDArray[np.float64]
    words: tuple[str, ...]  # (N,): "accuracy 0.55, crowd 0.88"; empty where nothing is
    # (N,): column of the most unusual value, or of the group that may copy; empty where nothing is
    columns: tuple[str, ...]
    marked: Mapping[str, NDArray[np.bool_]]  # by column: values that are unusual


def find_unusual(table: AnnotatorTable) -> Unusual:
    """Compare every annotator with the crowd."""
    count = len(table)
    best, words, where = np.zeros(count), [""] * count, [""] * count
    marked = {}
    for evidence in table.evidence:
        for measure in evidence.measures:
            column = f"{evidence.kind}_{measure.name}"
            deviations, phrases = _deviations(table, evidence, measure)
            marked[column] = deviations > 0
            for row in np.flatnonzero(deviations > best).tolist():
                best[row], where[row] = deviations[row], column
                words[row] = phrases[row]
        column = f"{evidence.kind}_copy_group"
        if column in table.columns:
            groups = table.columns[column]
            marked[column] = groups != ""
            for row in np.flatnonzero(marked[column] & (best < FLAGGED)).tolist():
                best[row], where[row], words[row] = (
                    FLAGGED,
                    column,
                    f"may copy from others (group {groups[row]})",
                )
    return Unusual(best / (1 + best), tuple(words), tuple(where), marked)


def _deviations(
    table: AnnotatorTable, evidence: Evidence, measure: Measure
) -> tuple[NDArray[np.float64], list[str]]:
    """Return the deviations of a measure, (N,), 0 where it is usual, and a phrase for each."""
    column = f"{evidence.kind}_{measure.name}"
    value = table.columns[column]
    none = np.full(len(value), np.nan)
    low = table.columns.get(f"{column}_low", none)
    high = table.columns.get(f"{column}_high", none)
    known = np.isfinite(value)
    bounded = known & np.isfinite(low) & np.isfinite(high)
    deviations, phrases = np.zeros(len(value)), [""] * len(value)
    if measure.name == "change_p":
        changed = known & (np.nan_to_num(value, nan=1.0) < LEVEL / max(int(known.sum()), 1))
        deviations[changed] = FAR
        return deviations, ["changed over time"] * len(value)
    if measure.ideal is None or known.sum() < FEWEST:
        return deviations, phrases
    away = np.abs(value - measure.ideal)
    ends = np.abs(np.stack([low, high]) - measure.ideal)
    nearest = np.where((low <= measure.ideal) & (measure.ideal <= high), 0.0, ends.min(axis=0))
    # Where most have the ideal value, as with a few votes each, the median says nothing of the others.
    middle = float(np.median(away[known])) or float(away[known].mean())
    spread = max(MAD * float(np.median(np.abs(away[known] - middle))), 0.2 * middle, 1e-9)
    z = np.where(known, (away - middle) / spread, 0.0)
    unusual = bounded & (z > FAR) & (nearest > middle)
    own = np.where(bounded, (high - low) / WIDTH, 0.0)
    z *= spread / np.hypot(spread, own)
    if evidence.kind == "pairs" and measure.name == "bias":
        flagged = table.columns["pairs_flag"] != ""
        z, unusual = np.where(flagged, np.maximum(z, FLAGGED), z), unusual | flagged
    deviations[unusual] = z[unusual]
    crowd = float(np.median(value[known]))
    unit = f" {measure.unit}" if measure.unit else ""
    for row in np.flatnonzero(unusual).tolist():
        phrases[row] = f"{measure.title} {figure(float(value[row]))}{unit}, crowd {figure(crowd)}{unit}"
    return deviations, phrases
