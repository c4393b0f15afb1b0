"""Box plots of methods side by side: one box each, every case a dot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from PySide6.QtWidgets import QWidget

from raterscope.algorithms.masks.method_comparison import quartiles
from raterscope.figures.table import PlotTable
from raterscope.widgets import theme
from raterscope.widgets.figures.axis import NameAxis
from raterscope.widgets.figures.plot import Plot, pen
from raterscope.widgets.text_size import pixels

__all__ = ["BoxView", "MethodBoxes"]

NOTHING = "Tick methods and press Compare to see how they differ on these masks."
HALF = 0.28
LEAST = 1e-4
"""Of what is drawn by powers of ten."""
MOST_LETTERS = 18
ROOM = 52
"""Below the boxes, for turned names."""


@dataclass(frozen=True, eq=False)
class BoxView:
    """One box.

    Attributes
    ----------
    name : str
    values : (V,) float64
        Finite, at least one.
    faint : bool
        Whether it is a rater, not a method.
    starred : bool
        Whether it differs significantly from the baseline.
    """

    name: str
    values: NDArray[np.float64]
    faint: bool = False
    starred: bool = False


class MethodBoxes(Plot):
    """A box from quartile to quartile with the median, whiskers, and all values as dots."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Methods", "", "Dice", NOTHING, parent)
        self._boxes: tuple[BoxView, ...] = ()
        self._title, self._logarithmic = "Dice", False
        self.item.setMouseEnabled(x=False, y=True)
        self.item.setAxisItems({"bottom": NameAxis("bottom")})
        self.item.getAxis("bottom").setHeight(pixels(ROOM))
        self.item.getAxis("left").enableAutoSIPrefix(False)
        self._on_theme()

    def set_boxes(
        self, boxes: Sequence[BoxView], title: str, unit: str, aside: str = "", *, logarithmic: bool = False
    ) -> None:
        """Show boxes.

        Parameters
        ----------
        boxes : sequence of BoxView
        title : str
            What they show: "Dice against the truth".
        unit : str
            Empty for none.
        aside : str
            "8 cases".
        logarithmic : bool
            Whether by powers of ten.
        """
        self._boxes, self._title, self._logarithmic = tuple(boxes), title, logarithmic
        self._axes = {"bottom": "", "left": unit or title.partition(" ")[0]}
        self.header.set_title(title if boxes else "Methods")
        self.header.set_aside(aside if boxes else "")
        self.set_filled(bool(boxes))
        self.item.setLogMode(y=logarithmic)
        self._on_theme()
        self.show_all()

    def table(self) -> PlotTable:
        """Give the values that are drawn."""
        names = [box.name for box in self._boxes for _ in box.values]
        values = [box.values for box in self._boxes]
        return PlotTable.of({"method": names, self._title: np.concatenate(values) if values else np.empty(0)})

    def show_all(self) -> None:
        """Show all boxes."""
        if not self._boxes:
            return
        every = self._shown(np.concatenate([box.values for box in self._boxes]))
        low, high = float(every.min()), float(every.max())
        room = 0.06 * (high - low) or 0.05
        self.item.setXRange(-0.6, len(self._boxes) - 0.4, padding=0)
        self.item.setYRange(low - room, high + room, padding=0)

    def draw(self) -> None:
        """Draw all boxes in the theme's colours."""
        if not hasattr(self, "_boxes"):
            return
        look = theme.current()
        self.item.clear()
        for place, box in enumerate(self._boxes):
            hue = look.second if box.faint else look.accent
            values = self._shown(box.values)
            if len(values) > 2:
                least, low, middle, high, most = quartiles(values)
                sides = ([-1, 1, 1, -1, -1], [low, low, high, high, low])
                lines = [sides, ([-1, 1], [middle, middle]), ([0, 0], [least, low]), ([0, 0], [high, most])]
                for across, up in lines:
                    x = place + HALF * np.array(across, dtype=float)
                    self._line(x, np.array(up, dtype=float), hue)
            colour = pg.mkColor(hue)
            colour.setAlpha(130)
            dots = pg.ScatterPlotItem(
                x=np.full(len(values), float(place)), y=values, size=5, brush=colour, pen=None
            )
            self.item.addItem(dots)
        axis = self.item.getAxis("bottom")
        axis.setTicks([[(place, _short(box)) for place, box in enumerate(self._boxes)]])

    def _line(self, x: NDArray[np.float64], y: NDArray[np.float64], hue: str) -> None:
        self.item.addItem(pg.PlotCurveItem(x=x, y=y, pen=pen(hue, 1.4)))

    def _shown(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.log10(np.maximum(values, LEAST)) if self._logarithmic else values


def _short(box: BoxView) -> str:
    """Cut a long name, and star it where it differs."""
    name = box.name if len(box.name) <= MOST_LETTERS else box.name[: MOST_LETTERS - 1] + "…"
    return name + ("*" if box.starred else "")
