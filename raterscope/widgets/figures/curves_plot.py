"""ROC and precision-recall of one or several runs, of one class or another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from raterscope.figures.table import PlotTable
from raterscope.widgets import theme
from raterscope.widgets.figures.communities import community_ink
from raterscope.widgets.figures.legend import LineSample
from raterscope.widgets.figures.plot import Plot, pen
from raterscope.widgets.parts import ChoiceBox

__all__ = ["DASHES", "NOTHING", "Curve", "CurvesPlot"]

DASHES: tuple[tuple[float, ...], ...] = ((), (5, 3), (1.5, 2), (6, 2, 1.5, 2))
MORE = (2, 4, 6)
"""Colours of communities for the fifth curve and on: unlike those of the first four."""
NAMES = {"roc": "ROC", "precision-recall": "Precision-recall"}
AXES = {
    "roc": ("false positive rate", "sensitivity"),
    "precision-recall": ("sensitivity", "precision"),
}


@dataclass(frozen=True, eq=False)
class Curve:
    """One run's curves.

    Attributes
    ----------
    title : str
    false_positive_rate, true_positive_rate : (K,) float
        The ROC.
    recall, precision : (L,) float
        Empty where only the ROC is known.
    area : float
        Under the ROC; NaN where not known.
    threshold : (K,) float
        Posterior from which on each point's detections are kept, falling; then `recall` has its points too.
        Empty where the points stand for nothing that can be chosen.
    of : str
        What it is the curve of, if there are several such: "frog, 12 tasks". Those of one are drawn together.
    """

    title: str
    false_positive_rate: NDArray[np.floating]
    true_positive_rate: NDArray[np.floating]
    recall: NDArray[np.floating]
    precision: NDArray[np.floating]
    area: float = float("nan")
    threshold: NDArray[np.floating] = field(default_factory=lambda: np.empty(0))
    of: str = ""


NOTHING = "Import ground truth to see ROC and precision-recall curves."


class CurvesPlot(Plot):
    """ROC or precision-recall, a line a run; they differ by colour and dashes.

    Where the first curve tells its thresholds, a click chooses that of the nearest point.

    Parameters
    ----------
    nothing : str
        What belongs here.

    Signals
    -------
    threshold_chosen : float
    """

    threshold_chosen = Signal(float)

    def __init__(self, nothing: str = NOTHING, parent: QWidget | None = None) -> None:
        super().__init__("Curves", *AXES["roc"], nothing, parent)
        self._all: tuple[Curve, ...] = ()
        self._curves: tuple[Curve, ...] = ()
        """Those that are drawn."""
        self._marked: float | None = None
        self._ring = pg.ScatterPlotItem(size=11)
        self.kind, self.of = ChoiceBox(), ChoiceBox()
        self.kind.setAccessibleName("Which curve")
        self.of.setAccessibleName("Whose curves")
        self.kind.setMinimumContentsLength(8)
        self.of.setMinimumContentsLength(14)
        for key, words in NAMES.items():
            self.kind.addItem(words, key)
        self.kind.currentIndexChanged.connect(self._on_kind)
        self.of.currentIndexChanged.connect(self._on_of)
        self.header.row.insertWidget(1, self.kind)
        self.header.row.insertWidget(2, self.of, 1)
        self.of.hide()
        self.show_all()

    def set_curves(self, curves: Sequence[Curve]) -> None:
        """Show the curves of runs."""
        if not curves and not self._all:
            return
        self._all = tuple(curves)
        self._list_of()
        both = not curves or any(len(curve.recall) for curve in curves)
        if not both:
            self.kind.setCurrentIndex(self.kind.findData("roc"))
        self.kind.setVisible(both)
        self.header.set_title("Curves" if both else NAMES["roc"])
        self.set_filled(bool(curves))
        self.draw()

    def mark(self, posterior: float | None) -> None:
        """Ring the point of the first curve from which on a detection of this posterior is kept."""
        if posterior != self._marked:
            self._marked = posterior
            self._draw_ring()

    def set_kind(self, kind: str) -> None:
        """Show "roc" or "precision-recall"."""
        self.kind.setCurrentIndex(self.kind.findData(kind))

    def heading(self) -> tuple[str, str]:
        """Give which curve is drawn and whose, and its area."""
        name = NAMES[str(self.kind.currentData())]
        return f"{name}, {self.of.currentText()}" if self.of.count() > 1 else name, self.header.words()[1]

    def show_all(self) -> None:
        """Show the unit square."""
        self.item.setXRange(0, 1, padding=0.02)
        self.item.setYRange(0, 1, padding=0.06)

    def table(self) -> PlotTable:
        """Give the points of the curves that are drawn."""
        kind = str(self.kind.currentData())
        ways = [_way(curve, kind) for curve in self._curves]
        titles = [curve.title for curve, way in zip(self._curves, ways, strict=True) for _ in way[0]]
        across, down = (np.concatenate(part) for part in zip(*ways, strict=True))
        return PlotTable.of({"curve": titles, AXES[kind][0]: across, AXES[kind][1]: down})

    def draw(self) -> None:
        """Draw the curves of the kind chosen."""
        if not hasattr(self, "kind"):
            return
        look = theme.current()
        kind = str(self.kind.currentData())
        self.item.clear()
        if kind == "roc":
            self.item.plot([0, 1], [0, 1], pen=pen(look.line, 1.0, (4, 4)))
        hues: tuple[str, ...] = (look.accent, look.rejected, look.disputed, look.second)
        if len(self._curves) > len(hues):
            hues = (*hues, *(community_ink(at).name() for at in MORE))
        samples = []
        for place, curve in enumerate(self._curves):
            across, down = _way(curve, kind)
            # The second of one colour each have other dashes than the first.
            dashes = DASHES[(place % len(hues) + place // len(hues)) % len(DASHES)]
            title = curve.title
            if kind == "roc" and len(self._curves) > 1 and np.isfinite(curve.area):
                title += f" {curve.area:.3f}"
            hue = hues[place % len(hues)]
            samples.append(LineSample(title, hue, dashes))
            drawn = self.item.plot(across, down, pen=pen(hue, 1.8, dashes), name=title)
            if not place and len(curve.threshold):
                drawn.setCurveClickable(True, width=12)
                drawn.sigClicked.connect(self._on_clicked)
        self.item.addItem(self._ring)
        self._draw_ring()
        self.legend.set_lines(samples)
        self.header.set_aside(_areas(self._curves) if kind == "roc" else "")

    def _list_of(self) -> None:
        """Let those be chosen whose curves there are; the choice stays while it is among them."""
        chosen = self.of.currentText()
        every = list(dict.fromkeys(curve.of for curve in self._all))
        self.of.blockSignals(True)
        self.of.clear()
        self.of.addItems(every)
        self.of.setCurrentIndex(max(self.of.findText(chosen), 0))
        self.of.blockSignals(False)
        self.of.setVisible(len(every) > 1)
        self._take()

    def _take(self) -> None:
        self._curves = tuple(curve for curve in self._all if curve.of == self.of.currentText())

    def _on_of(self) -> None:
        self._take()
        self.draw()

    def _points(self) -> tuple[Curve, NDArray[np.floating], NDArray[np.floating]] | None:
        """Give the first curve and its points, where they stand for thresholds."""
        if not self._curves or not len(self._curves[0].threshold):
            return None
        return self._curves[0], *_way(self._curves[0], str(self.kind.currentData()))

    def _draw_ring(self) -> None:
        points = self._points()
        at = []
        if points is not None and self._marked is not None:
            at = np.flatnonzero(points[0].threshold <= self._marked)[:1].tolist()
        across, down = ([], []) if points is None else (points[1][at], points[2][at])
        self._ring.setData(x=across, y=down, pen=pen(theme.current().text, 1.6), brush=None)

    def _on_clicked(self, _curve: object, event: object) -> None:
        points, place = self._points(), getattr(event, "pos", None)
        if points is None or place is None:
            return
        curve, across, down = points
        away = np.hypot(across - place().x(), down - place().y())
        away[~np.isfinite(curve.threshold)] = np.inf
        self.threshold_chosen.emit(float(curve.threshold[int(away.argmin())]))

    def _on_kind(self) -> None:
        across, down = AXES[str(self.kind.currentData())]
        self._axes = {"bottom": across, "left": down}
        self._on_theme()


def _way(curve: Curve, kind: str) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    if kind == "roc":
        return curve.false_positive_rate, curve.true_positive_rate
    return curve.recall, curve.precision


def _areas(curves: Sequence[Curve]) -> str:
    """Say the area under the ROC, or between which they lie: "area 0.951 to 0.984"."""
    known = [curve.area for curve in curves if np.isfinite(curve.area)]
    if not known:
        return ""
    ends = list(dict.fromkeys(f"{end:.3f}" for end in (min(known), max(known))))
    return f"area {' to '.join(ends)}"
