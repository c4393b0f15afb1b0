"""ROC curves of all methods by cross-validation: settings, the curves, and the areas beneath them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QSplitter, QWidget

from raterscope.algorithms.labels.roc_curves import FoldedSettings
from raterscope.figures.evaluation import Curve
from raterscope.widgets.figures.evaluation_plots import CurvesPlot
from raterscope.widgets.panels.form_beside_plot import FormBesidePlot
from raterscope.widgets.tables.comparison_table import ComparisonRow, ComparisonTable, Measure

__all__ = ["FoldsPanel"]

NOTHING = (
    "Press Measure to compare all methods on the tasks with known truth: the truths of four fifths are given "
    "to a method, which predicts the others."
)
TIP = "Fuse with every method, once per fold. Takes seconds to minutes"


def _area(value: float, low: float, high: float) -> str:
    interval = f" ({low:.3f} to {high:.3f})" if math.isfinite(low) else ""
    return f"{value:.3f}{interval}"


def _ends(_value: float, low: float, high: float) -> str:
    return f"{low:.3f} to {high:.3f}"


MEASURES = (
    Measure("AUC, all folds", "Predictions of all folds pooled, with DeLong's 95 % interval",
            write=_area),
    Measure("mean of folds", "Mean of the folds' AUC, with Student's 95 % interval", write=_area),
    Measure("folds", "Folds with the lowest and the highest AUC", "none", _ends),
)  # fmt: skip


class FoldsPanel(FormBesidePlot):
    """A form, the curves, and a table of methods."""

    def __init__(self, parent: QWidget | None = None) -> None:
        self.curves = CurvesPlot(NOTHING)
        self.table = ComparisonTable(MEASURES, "")
        self.table.header.set_title("Areas under the ROC curves")
        self.table.hide()
        both = QSplitter(Qt.Orientation.Vertical)
        both.setHandleWidth(1)
        both.addWidget(self.curves)
        both.addWidget(self.table)
        both.setSizes([360, 240])
        super().__init__(FoldedSettings, both, TIP, parent=parent)
        self.setAccessibleName("Cross-validation")

    def show_curves(self, curves: Sequence[Curve], rows: Sequence[ComparisonRow], words: str = "") -> None:
        """Show what was measured; nothing takes it away."""
        self.curves.set_curves(curves)
        self.table.set_rows(tuple(rows), words)
        self.table.setVisible(bool(rows))
