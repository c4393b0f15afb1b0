"""What an experiment is: cells that are measured in runs, and the rows of the page that are made of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

__all__ = [
    "Better",
    "Chart",
    "Estimate",
    "Experiment",
    "Measure",
    "Paper",
    "Row",
    "estimate",
    "paired_difference",
]

Measures = Mapping[str, float]
Measure = Callable[[str, int, Path], Measures]
"""Measures one run of a cell: ``measure(cell, run, data)`` with the folder of open data. The same arguments
give the same figures. NaN stands for what cannot be measured in this run."""

Better = Literal["higher", "lower", "nearer", ""]

Results = Mapping[str, Sequence[Measures]]
"""Of each cell what its runs measured, from run 0."""


@dataclass(frozen=True)
class Row:
    """One row of a table of the page: a figure of the paper beside ours.

    Attributes
    ----------
    label : str
    cell : str
    printed : str
        The measure of the method as the paper prints it.
    paper : float, optional
        The paper's figure.
    words : str
        What the paper says of it, where it gives no figure.
    default : str
        The measure of this program's default; empty where the same is measured with no other method.
    better : {"higher", "lower", "nearer", ""}
        Which default is better than the paper's method; "nearer" to `aim`.
    aim : float
    digits : int
        Decimals shown.
    """

    label: str
    cell: str
    printed: str
    paper: float | None = None
    words: str = ""
    default: str = ""
    better: Better = "higher"
    aim: float = 0.0
    digits: int = 3


@dataclass(frozen=True)
class Chart:
    """Curves of means over runs, with bands of a standard error.

    Attributes
    ----------
    title : str
    across, up : str
        What the axes measure; up from 0 to 1.
    curves : tuple of (name, points)
        A point is a place across, a cell and a measure.
    """

    title: str
    across: str
    up: str
    curves: tuple[tuple[str, tuple[tuple[float, str, str], ...]], ...]


@dataclass(frozen=True)
class Experiment:
    """Measurements that reproduce a table or a figure.

    Attributes
    ----------
    name : str
        Short, of letters, digits and hyphens: files are named so.
    title : str
        What of the paper it is: "Table 1: ...".
    cells : tuple of str
        Measured separately.
    measure : callable
        See `Measure`.
    rows : tuple of Row
    runs : int
        Of a cell, in full.
    quick : int
        Of a cell, in the quick form: the first of the same runs; 0 for what only the full form measures.
    method : str
        What was measured, in a sentence or two.
    command : str
        The command that produces one of the figures without the page.
    remark : str
        Where ours differ, and why.
    paper_runs : int, optional
        Realizations behind the paper's figures; their scatter is taken to be ours.
    instead : str
        What was used in place of unpublished data; empty where the paper's own set-up or data were used.
    needs : str
        A file or folder of the open data, below the data folder; empty for a simulation.
    charts : tuple of Chart
    """

    name: str
    title: str
    cells: tuple[str, ...]
    measure: Measure
    rows: tuple[Row, ...]
    runs: int
    quick: int
    method: str
    command: str
    remark: str = ""
    paper_runs: int | None = None
    instead: str = ""
    needs: str = ""
    charts: tuple[Chart, ...] = ()


@dataclass(frozen=True)
class Paper:
    """A paper and the experiments that reproduce it.

    Attributes
    ----------
    name : str
        As the command line has it.
    title : str
    reference : str
        Its key in the bibliography.
    experiments : tuple of Experiment
    unpublished : tuple of (str, str)
        What depends on unpublished data, and what is measured instead.
    """

    name: str
    title: str
    reference: str
    experiments: tuple[Experiment, ...]
    unpublished: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Estimate:
    """A mean over runs with its standard error, NaN with a single run, and the runs' standard deviation."""

    mean: float
    error: float
    deviation: float
    runs: int


def estimate(results: Results, cell: str, measure: str) -> Estimate | None:
    """Average a measure over the runs of a cell; None where nothing was measured."""
    values = _values(results, cell, measure)
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    deviation = float(values.std(ddof=1)) if len(values) > 1 else math.nan
    return Estimate(float(values.mean()), deviation / math.sqrt(len(values)), deviation, len(values))


def paired_difference(results: Results, cell: str, measure: str, other: str) -> Estimate | None:
    """Average the difference of two measures of the same runs; None where there is none."""
    pairs = [{"d": one.get(measure, math.nan) - one.get(other, math.nan)} for one in results.get(cell, ())]
    return estimate({cell: pairs}, cell, "d")


def _values(results: Results, cell: str, measure: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([one.get(measure, math.nan) for one in results.get(cell, ())], dtype=np.float64)
