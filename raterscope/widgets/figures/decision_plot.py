"""Rates and decisions over time, a line a method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from PySide6.QtCore import Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QWidget

from raterscope.figures.table import Column, PlotTable
from raterscope.widgets import theme
from raterscope.widgets.figures.legend import LineSample
from raterscope.widgets.figures.plot import Plot, pen
from raterscope.widgets.parts import ChoiceBox

__all__ = ["CourseLine", "DecisionKind", "DecisionPlot", "DecisionView"]

NOTHING = "Open this page to see how the annotators' rates are estimated as their labels come."
EVERYBODY = "all annotators"
_DASHES: tuple[tuple[float, ...], ...] = ((), (6, 3), (2, 3), (8, 3, 2, 3), (1, 2))


@dataclass(frozen=True, eq=False)
class CourseLine:
    """One method's line.

    Attributes
    ----------
    title : str
    method : int
        Gives colour and dashes.
    across, down : (T,) float
    low, high : (T,) float, optional
        Of a band about it.
    """

    title: str
    method: int
    across: NDArray[np.floating]
    down: NDArray[np.floating]
    low: NDArray[np.floating] | None = None
    high: NDArray[np.floating] | None = None


@dataclass(frozen=True)
class DecisionKind:
    """Something that can be drawn.

    Attributes
    ----------
    key, title : str
    across, down : str
        Names of the axes.
    each : bool
        Whether it can be drawn of one annotator.
    unit : bool
        Whether it lies between 0 and 1.
    """

    key: str
    title: str
    across: str
    down: str
    each: bool = False
    unit: bool = True


@dataclass(frozen=True, eq=False)
class DecisionView:
    """What is drawn of one question and class.

    Attributes
    ----------
    classes : tuple of str
        Of which one is the structure.
    chosen : int
        Its place.
    kinds : tuple of DecisionKind
    annotators : tuple of str
    lines : callable
        ``lines(key, annotator)`` gives the lines of a kind; of all annotators for -1.
    words : str
        What a step is.
    """

    classes: tuple[str, ...]
    chosen: int
    kinds: tuple[DecisionKind, ...]
    annotators: tuple[str, ...]
    lines: Callable[[str, int], Sequence[CourseLine]]
    words: str


class DecisionPlot(Plot):
    """Lines over time; boxes choose what is drawn, the class that counts as a structure, and of whom.

    Signals
    -------
    came_in_sight
    class_chosen(int)
        Another class is to count as the structure.
    """

    came_in_sight = Signal()
    class_chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Decisions", "step", "sensitivity", NOTHING, parent)
        self.item.getAxis("left").enableAutoSIPrefix(False)
        self._view: DecisionView | None = None
        self._lines: tuple[CourseLine, ...] = ()
        self.kind, self.who, self.of = ChoiceBox(), ChoiceBox(), ChoiceBox()
        for box, words, letters in (
            (self.kind, "What is drawn", 14), (self.who, "Whose rates", 10), (self.of, "Class", 8),
        ):  # fmt: skip
            box.setAccessibleName(words)
            box.setToolTip(words)
            box.setMinimumContentsLength(letters)
            box.hide()
        for place, box in enumerate((self.kind, self.of, self.who), start=1):
            self.header.row.insertWidget(place, box)
        self.kind.currentIndexChanged.connect(self._on_choice)
        self.who.currentIndexChanged.connect(self._on_choice)
        self.of.currentIndexChanged.connect(self._on_class)

    def showEvent(self, event: QShowEvent) -> None:
        """Tell that it is in sight."""
        super().showEvent(event)
        self.came_in_sight.emit()

    def set_view(self, view: DecisionView | None, nothing: str = NOTHING) -> None:
        """Show another course; None for none, and why."""
        self._view = view
        self.set_nothing(nothing)
        kind, who = self.kind.currentData(), self.who.currentText()
        for box in (self.kind, self.who, self.of):
            box.blockSignals(True)
            box.clear()
            box.setVisible(view is not None)
        if view is not None:
            for one in view.kinds:
                self.kind.addItem(one.title, one.key)
            self.who.addItems([EVERYBODY, *view.annotators])
            self.of.addItems([f"of {name}" for name in view.classes])
            self.kind.setCurrentIndex(max(self.kind.findData(kind), 0))
            self.who.setCurrentIndex(max(self.who.findText(who), 0))
            self.of.setCurrentIndex(view.chosen)
        for box in (self.kind, self.who, self.of):
            box.blockSignals(False)
        self.plot.setToolTip("" if view is None else view.words)
        self.set_filled(view is not None)
        self._on_choice()

    def show_all(self) -> None:
        """Show all steps."""
        kind = self._kind()
        if kind is None or not self._lines:
            return
        across = np.concatenate([line.across for line in self._lines])
        self.item.setXRange(
            float(across.min()), max(float(across.max()), float(across.min()) + 1e-3), padding=0.02
        )
        if kind.unit:
            self.item.setYRange(0, 1, padding=0.06)
        else:
            self.item.enableAutoRange("y")

    def table(self) -> PlotTable:
        """Give the points of the lines that are drawn."""
        kind, lines = self._kind(), self._lines
        columns: dict[str, Column] = {
            "method": [line.title for line in lines for _ in line.across],
            "step" if kind is None else kind.across: np.concatenate([line.across for line in lines]),
            "value" if kind is None else kind.down: np.concatenate([line.down for line in lines]),
        }
        for name in ("low", "high"):
            unknown = [np.full(len(line.across), np.nan) for line in lines]
            both = zip([getattr(line, name) for line in lines], unknown, strict=True)
            columns[name] = np.concatenate([none if end is None else end for end, none in both])
        return PlotTable.of(columns)

    def draw(self) -> None:
        """Draw the lines, the bands below them."""
        if not hasattr(self, "_lines"):
            return
        look = theme.current()
        self.item.clear()
        hues = (look.accent, look.rejected, look.disputed, look.second, look.text)
        samples = []
        for line in self._lines:
            hue, dashes = hues[line.method % len(hues)], _DASHES[line.method % len(_DASHES)]
            if line.low is not None and line.high is not None:
                ends = [pg.PlotCurveItem(line.across, end, pen=None) for end in (line.low, line.high)]
                band = pg.FillBetweenItem(*ends, brush=theme.colour(hue, 40))
                for part in (*ends, band):
                    self.item.addItem(part)
        for line in self._lines:
            hue, dashes = hues[line.method % len(hues)], _DASHES[line.method % len(_DASHES)]
            samples.append(LineSample(line.title, hue, dashes))
            self.item.plot(line.across, line.down, pen=pen(hue, 1.8, dashes), name=line.title)
        self.legend.set_lines(samples)
        self.show_all()

    def _kind(self) -> DecisionKind | None:
        key = self.kind.currentData()
        return None if self._view is None else next((one for one in self._view.kinds if one.key == key), None)

    def _on_choice(self) -> None:
        kind = self._kind()
        if kind is None or self._view is None:
            self._lines = ()
            return
        self.who.setVisible(kind.each)
        annotator = self.who.currentIndex() - 1 if kind.each else -1
        self._lines = tuple(self._view.lines(kind.key, annotator))
        self._axes = {"bottom": kind.across, "left": kind.down}
        self._on_theme()

    def _on_class(self, place: int) -> None:
        if self._view is not None and place >= 0:
            self.class_chosen.emit(place)
