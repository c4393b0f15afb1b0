"""How an annotator's confusion matrix moved, as the figures of drift take it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF
from PySide6.QtGui import QColor, QPainter, QPen

from raterscope.figures.colours import ANNOTATOR_SYMBOLS
from raterscope.figures.table import Column, PlotTable
from raterscope.text.numbers import estimate
from raterscope.widgets import theme
from raterscope.widgets.glyphs import rater_colour, readable, symbol_path

__all__ = ["DriftView", "label_colour", "line_width", "marker_radius", "paint_label"]

ROUND = np.array([one * 10**power for power in range(7) for one in (1, 2, 5)])
"""Numbers of votes at which a line carries a marker."""


@dataclass(frozen=True, eq=False)
class DriftView:
    """One annotator's confusion matrix after each of S votes.

    Attributes
    ----------
    classes, outputs : tuple of J and L str
        The true classes, a row each, and what may be said, a column each.
    mean : (S, J, L) float
        Rows add up to 1.
    low, high : (S, J, L) float or None
        Ends of the 95 % interval.
    informed : (S, J) float
        Votes so far on tasks of each class: whole numbers where the classes are known, expected ones where
        they are not. Never falling.
    changes : tuple of (step, class, words)
        Where a row changed, counted from 0, and how: "says 3 less often".
    step : int
        The step that is looked at, from 0.
    summary : str
        What changed and when, in a sentence.
    together : tuple of (step, words)
        Steps at which the rows of all classes are joined, and the votes of all annotators until then.
    """

    classes: tuple[str, ...]
    outputs: tuple[str, ...]
    mean: NDArray[np.floating]
    low: NDArray[np.floating] | None
    high: NDArray[np.floating] | None
    informed: NDArray[np.floating]
    changes: tuple[tuple[int, int, str], ...] = ()
    step: int = 0
    summary: str = ""
    together: tuple[tuple[int, str], ...] = ()

    def __post_init__(self) -> None:
        shape = (len(self.informed), len(self.classes), len(self.outputs))
        for name in ("mean", "low", "high"):
            values = getattr(self, name)
            if values is not None and values.shape != shape:
                raise ValueError(f"{name} of shape {values.shape}; expected {shape}")
        if self.informed.shape != shape[:2] or not shape[0]:
            raise ValueError(f"informed of shape {self.informed.shape}; expected a row a vote, at least one")
        if any(not (0 <= step < shape[0] and 0 <= at < shape[1]) for step, at, _ in self.changes):
            raise ValueError("a change at a step or of a class that there is not")

    def milestones(self, at: int) -> NDArray[np.int64]:
        """Give the steps at which the votes on tasks of a class reach round numbers: 1, 2, 5, 10, 20 ..."""
        votes = self.informed[:, at]
        reached = ROUND[: np.searchsorted(ROUND, votes[-1] + 1e-9, side="right")]
        return np.unique(np.searchsorted(votes, reached - 1e-9))

    def table(self, classes: Sequence[int]) -> PlotTable:
        """Give the rows of some classes, one for each vote and output."""
        of = list(classes)
        axes: dict[str, Column] = {
            "vote": np.arange(1, len(self.mean) + 1),
            "true": [self.classes[at] for at in of],
            "said": self.outputs,
        }
        parts = (self.mean, self.low, self.high)
        values = {
            name: None if part is None else part[:, of]
            for name, part in zip(("rate", "low", "high"), parts, strict=True)
        }
        return PlotTable.of_cells(axes, {"votes of the class": self.informed[:, of, None], **values})

    def words(self, at: int, step: int) -> str:
        """Say a row after a vote, and what changed there."""
        said = ", ".join(f"{name} {self._figure(at, step, place)}" for place, name in enumerate(self.outputs))
        votes = f"{self.informed[step, at]:,.0f}"
        changes = [words for when, of, words in self.changes if (when, of) == (step, at)]
        row = f"true {self.classes[at]}, vote {step + 1:,} ({votes} of that class): {said}"
        return row + "".join(f"; after vote {step + 1:,}: {words}" for words in changes)

    def _figure(self, at: int, step: int, place: int) -> str:
        if self.low is None or self.high is None:
            return f"{self.mean[step, at, place]:.2f}"
        values = (float(part[step, at, place]) for part in (self.mean, self.low, self.high))
        return estimate(*values)


def label_colour(number: int) -> QColor:
    """Give the colour of a class or an output, as it is seen on the theme's ground."""
    return readable(rater_colour(number))


def line_width(*, smooth: bool) -> float:
    """Give how wide a line is drawn: one that goes to and fro is seen better, and drawn faster, when thin."""
    return 1.8 if smooth else 1.0


def marker_radius(votes: float) -> float:
    """Give the size that tells a number of votes, in pixels: every ten times as many, a little larger."""
    return 2.0 + 1.1 * float(np.log10(max(votes, 1.0)))


def paint_label(
    painter: QPainter, centre: QPointF, number: int, radius: float, *, filled: bool = True, edge: str = ""
) -> None:
    """Paint the mark of a class or an output: colour and shape; hollow for what has not come yet."""
    colour = label_colour(number)
    painter.save()
    painter.translate(centre)
    painter.setPen(QPen(QColor(edge) if edge else colour, 1.4 if edge else 1))
    painter.setBrush(colour if filled else QColor(theme.current().surface))
    painter.drawPath(symbol_path(ANNOTATOR_SYMBOLS[number % len(ANNOTATOR_SYMBOLS)], radius))
    painter.restore()
