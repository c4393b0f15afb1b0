"""ROC and precision-recall of one or several runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtWidgets import QComboBox, QWidget

from raterscope.widgets import theme
from raterscope.widgets.plot_table import PlotTable
from raterscope.widgets.plots.plot import Plot, pen

__all__ = ["DASHES", "Curve", "CurvesPlot", "legend_words"]

DASHES: tuple[tuple[float, ...], ...] = ((), (5, 3), (1.5, 2), (6, 2, 1.5, 2))
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
    """

    title: str
    false_positive_rate: NDArray[np.floating]
    true_positive_rate: NDArray[np.floating]
    recall: NDArray[np.floating]
    precision: NDArray[np.floating]
    area: float = float("nan")


NOTHING = "Import known places to measure the runs against: their curves are drawn here."


class CurvesPlot(Plot):
    """ROC or precision-recall, a line a run or class; they differ by colour and dashes.

    Parameters
    ----------
    nothing : str
        What belongs here.
    """

    def __init__(self, nothing: str = NOTHING, parent: QWidget | None = None) -> None:
        super().__init__("Curves", *AXES["roc"], nothing, parent)
        self._curves: tuple[Curve, ...] = ()
        self.kind = QComboBox()
        self.kind.setAccessibleName("Which curve")
        for key, words in NAMES.items():
            self.kind.addItem(words, key)
        self.kind.currentIndexChanged.connect(self._on_kind)
        self.header.row.insertWidget(1, self.kind)
        self._legend = self.item.addLegend(offset=(-8, -8), labelTextSize="8pt")
        self.show_all()

    def set_curves(self, curves: Sequence[Curve]) -> None:
        """Show the curves of runs."""
        self._curves = tuple(curves)
        both = not curves or any(len(curve.recall) for curve in curves)
        if not both:
            self.kind.setCurrentIndex(self.kind.findData("roc"))
        self.kind.setVisible(both)
        self.header.set_title("Curves" if both else NAMES["roc"])
        self.set_filled(bool(curves))
        self.draw()

    def show_all(self) -> None:
        """Show the unit square."""
        self.item.setXRange(0, 1, padding=0.02)
        self.item.setYRange(0, 1, padding=0.02)

    def table(self) -> PlotTable:
        """Give the points of the curves of the kind chosen."""
        kind = str(self.kind.currentData())
        ways = [_way(curve, kind) for curve in self._curves]
        titles = [curve.title for curve, way in zip(self._curves, ways, strict=True) for _ in way[0]]
        across, down = (np.concatenate(part) for part in zip(*ways, strict=True))
        return PlotTable.of({"curve": titles, AXES[kind][0]: across, AXES[kind][1]: down})

    def draw(self) -> None:
        """Draw the curves of the kind chosen."""
        if not hasattr(self, "_legend"):
            return
        look = theme.current()
        kind = str(self.kind.currentData())
        self.item.clear()
        self._legend.clear()
        self._legend.setLabelTextColor(look.text)
        if kind == "roc":
            self.item.plot([0, 1], [0, 1], pen=pen(look.line, 1.0, (4, 4)))
        hues = (look.accent, look.rejected, look.disputed, look.second)
        for place, curve in enumerate(self._curves):
            across, down = _way(curve, kind)
            # The second four of one colour each have other dashes than the first.
            dashes = DASHES[(place + place // len(hues)) % len(DASHES)]
            title = curve.title
            if kind == "roc" and len(self._curves) > 1 and np.isfinite(curve.area):
                title += f" {curve.area:.3f}"
            line = pen(hues[place % len(hues)], 1.8, dashes)
            self.item.plot(across, down, pen=line, name=legend_words(title))
        self._legend.setVisible(len(self._curves) > 1)
        self.header.set_aside(_areas(self._curves) if kind == "roc" else "")

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


def legend_words(text: str) -> str:
    """Make text safe for the legend, which reads markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;")
