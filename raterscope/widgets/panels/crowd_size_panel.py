"""Methods against the number of annotators: which crowds are drawn, and the plot."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from raterscope.algorithms.clicks.crowd_size import CrowdSizeCurve, CrowdSizeSettings
from raterscope.widgets.figures.evaluation_plots import CrowdSizePlot
from raterscope.widgets.figures.mode_switch import ModeSwitch
from raterscope.widgets.panels.form_beside_plot import FormBesidePlot

__all__ = ["CrowdSizePanel"]

SCOPES = {
    "one": ("this image", "Only the image on screen"),
    "all": ("all images", "All images with ground truth"),
}
TIP = "Measure each method on random subsets of annotators, against the ground truth"


class CrowdSizePanel(FormBesidePlot):
    """A form of the crowds with a button, and beside it what was measured.

    Signals
    -------
    requested : CrowdSizeSettings, str
        Settings, and "one" for the image on screen or "all".
    """

    requested = Signal(object, str)

    def __init__(self, parent: QWidget | None = None) -> None:
        self.scope, self.plot = ModeSwitch(SCOPES), CrowdSizePlot()
        super().__init__(CrowdSizeSettings, self.plot, TIP, self.scope, parent)
        self.measure_wanted.connect(self._on_wanted)

    def set_curves(self, curves: Sequence[CrowdSizeCurve], facts: str = "") -> None:
        """Show what was measured, and when and how in a sentence."""
        self.plot.set_curves(curves)
        self.set_facts(facts)

    def _on_wanted(self) -> None:
        self.requested.emit(self.form.settings(), self.scope.mode)
