"""Sensitivity or precision against the number of annotators, a line a method."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyqtgraph as pg
from PySide6.QtWidgets import QWidget

from raterscope.algorithms.clicks.crowd_size import DETECTORS_PUBLISHED, CrowdSizeCurve
from raterscope.figures.table import PlotTable
from raterscope.text.numbers import count
from raterscope.widgets import theme
from raterscope.widgets.figures.legend import LineSample
from raterscope.widgets.figures.plot import Plot, pen
from raterscope.widgets.parts import ChoiceBox

__all__ = ["NOTHING", "CrowdSizePlot"]

NOTHING = "Press Measure to see how methods do with more annotators; it needs ground truth."
DEM, MAJORITY = DETECTORS_PUBLISHED
STAGES = {"after clustering": "clustering", "after DEM": DEM, "after majority": MAJORITY}
"""Chosen methods are drawn with either detector: they have their own."""

MEASURES = ("sensitivity", "precision")
DASHES: tuple[tuple[float, ...], ...] = ((), (5, 3), (1.5, 2))


class CrowdSizePlot(Plot):
    """Means over crowds drawn at random, with a bar of a standard error to each side."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Crowd size", "annotators", MEASURES[0], NOTHING, parent)
        self._curves: tuple[CrowdSizeCurve, ...] = ()
        self.measure, self.stage = ChoiceBox(), ChoiceBox()
        self.measure.setAccessibleName("Measure")
        self.stage.setAccessibleName("Stage")
        for name in MEASURES:
            self.measure.addItem(name, name)
        for words, name in STAGES.items():
            self.stage.addItem(words, name)
        for choice in (self.measure, self.stage):
            choice.setMinimumContentsLength(10)
            choice.currentIndexChanged.connect(self._on_choice)
        self.header.row.insertWidget(1, self.measure)
        self.header.row.insertWidget(2, self.stage, 1)
        self.show_all()

    def set_curves(self, curves: Sequence[CrowdSizeCurve]) -> None:
        """Show methods, or none."""
        self._curves = tuple(curves)
        drawn = max((int(curve.draws.max(initial=0)) for curve in curves), default=0)
        self.header.set_aside(count(drawn, "crowd") if curves else "")
        self.set_filled(bool(curves))
        self.draw()
        self.show_all()

    def show_all(self) -> None:
        """Show every size of crowd, and the whole of the scale."""
        sizes = [curve.annotators for curve in self._curves]
        if sizes:
            self.item.setXRange(0, float(np.concatenate(sizes).max()), padding=0.03)
        self.item.setYRange(0, 1, padding=0.06)

    def heading(self) -> tuple[str, str]:
        """Give what is drawn after which stage."""
        return f"{self.measure.currentText()} {self.stage.currentText()}", self.header.words()[1]

    def table(self) -> PlotTable:
        """Give the points of the lines that are drawn."""
        shown, measure = self._shown(), str(self.measure.currentData())
        return PlotTable.of(
            {
                "method": [curve.method for curve in shown for _ in curve.annotators],
                "annotators": _together([curve.annotators for curve in shown]),
                measure: _together([getattr(curve, measure) for curve in shown]),
                "standard error": _together([getattr(curve, f"{measure}_error") for curve in shown]),
            }
        )

    def draw(self) -> None:
        """Draw the lines of the measure and the stage chosen."""
        if not hasattr(self, "stage"):
            return
        measure = str(self.measure.currentData())
        self.item.clear()
        samples = []
        for place, curve in enumerate(self._shown()):
            hue, dashes = theme.annotator_style(place)[0], DASHES[place % len(DASHES)]
            y, error = getattr(curve, measure), getattr(curve, f"{measure}_error")
            known = np.isfinite(y)
            x, y, error = curve.annotators[known], y[known], np.nan_to_num(error[known])
            self.item.addItem(pg.ErrorBarItem(x=x, y=y, height=2 * error, beam=0.0, pen=pen(hue, 1.0)))
            self.item.plot(
                x, y, pen=pen(hue, 1.8, dashes), symbol="o", symbolSize=5, symbolBrush=hue, symbolPen=None
            )
            samples.append(LineSample(_short(curve.method), hue, dashes, dotted=True))
        self.legend.set_lines(samples)

    def _shown(self) -> list[CrowdSizeCurve]:
        chosen = str(self.stage.currentData())
        if chosen == "clustering":
            return [curve for curve in self._curves if curve.stage == chosen]
        after = [curve for curve in self._curves if curve.stage == "detection"]
        (other,) = {DEM, MAJORITY} - {chosen}
        return [curve for curve in after if not curve.method.endswith(f", {other}")]

    def _on_choice(self) -> None:
        self._axes = {"bottom": "annotators", "left": str(self.measure.currentData())}
        self._on_theme()


def _short(method: str) -> str:
    """Leave out the detector, which the choice names."""
    return method.removesuffix(f", {DEM}").removesuffix(f", {MAJORITY}")


def _together(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts) if parts else np.empty(0)
