"""Figures of results as SVG, which a notebook shows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from raterscope.algorithms.annotators.vote_agreement import Coefficient
from raterscope.app.formats.output_files import write_bytes
from raterscope.app.library.frames import Frame
from raterscope.app.library.inputs import plain_errors
from raterscope.figures.observers import forest_chart
from raterscope.figures.paper import PaperChart, sheet

_MOST = 40
"""Annotators in a figure; those that stand out most."""

_ROW = 20
_AXES = 90
_WIDTH = 560


@dataclass(frozen=True)
class Figure:
    """A figure as SVG.

    Attributes
    ----------
    svg : str
        The file's contents.
    """

    svg: str

    def _repr_svg_(self) -> str:
        """Return the drawing, for a notebook."""
        return self.svg

    def save(self, path: str | Path) -> Path:
        """Save the figure as an SVG file. Raises `DataError` if it cannot be written."""
        with plain_errors():
            return write_bytes(Path(path), self.svg.encode())


@dataclass(frozen=True)
class Quantity:
    """A quantity of annotators that a figure shows.

    Attributes
    ----------
    column : str
        In the table of annotators. The ends of its interval are in columns of this name with "_low" and
        "_high", if there are any.
    label : str
        With the unit.
    reference : float, optional
        Value of an annotator without errors: the farthest from it stand out most.
    """

    column: str
    label: str
    reference: float | None = None


def plot_annotators(frame: Frame, quantity: Quantity) -> Figure:
    """Draw a quantity of each annotator with its 95 % interval, from the largest to the smallest."""
    values = frame[quantity.column].astype(np.float64)
    none = np.full(len(values), np.nan)
    low, high = (frame.get(f"{quantity.column}_{end}", none) for end in ("low", "high"))
    known = np.flatnonzero(np.isfinite(values))
    distance = np.abs(values[known]) if quantity.reference == 0 else -values[known]
    chosen = known[np.argsort(-distance, kind="stable")[:_MOST]]
    chosen = chosen[np.argsort(-values[chosen], kind="stable")]
    names = [str(frame["annotator"][at]) for at in chosen.tolist()]
    coefficients = [Coefficient(float(values[at]), float(low[at]), float(high[at])) for at in chosen.tolist()]
    chart = forest_chart(names, coefficients, quantity.label, quantity.reference)
    count = f"{len(names)} of {len(values):,} annotators" if len(names) < len(values) else "Annotators"
    drawing = PaperChart(chart, width=_WIDTH, height=_AXES + _ROW * max(len(names), 1))
    return Figure(sheet([(count, drawing)], columns=1).decode())
