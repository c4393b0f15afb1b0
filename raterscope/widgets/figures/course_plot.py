"""Plot of a value of one annotator, or of two, over items or blocks of marks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from raterscope.figures.description import Axis, Chart, Key, Line, Segments
from raterscope.text import estimate
from raterscope.widgets import theme
from raterscope.widgets.figures.chart_figure import NO_CHART, ChartPanel
from raterscope.widgets.parts import ChoiceBox

NAMED, LETTERS = 8, 100
"""Places whose names are written below the axis, at most, and their letters."""
NOTHING = "Select an annotator to plot their values over images, cases or votes."
ALONE = "Only one image, case or block of votes: no plot over time."


@dataclass(frozen=True, eq=False)
class AnnotatorCourse:
    """Values of one annotator: P places with value, low and high, (P, 3)."""

    name: str
    number: int
    places: tuple[str, ...]
    values: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CourseView:
    """One value over places."""

    title: str  # "labels: right votes"
    label: str  # of the vertical axis, with the unit
    across: str  # "image", "block of votes"
    ideal: float | None  # value of a perfect annotator, drawn as a line
    is_share: bool  # whether the axis goes from 0 to 1
    lines: tuple[AnnotatorCourse, ...]


class CoursePlot(ChartPanel):
    """Plot of the course that is chosen in its header."""

    def __init__(self) -> None:
        super().__init__("Over time", NOTHING)
        self.choice = ChoiceBox()
        self.choice.setAccessibleName("Value to plot")
        self.choice.hide()
        self.header.row.addWidget(self.choice)
        self._views: Sequence[CourseView] = ()
        self.choice.currentIndexChanged.connect(self._show)

    def show_courses(self, views: Sequence[CourseView], reason: str = "") -> None:
        """Show courses; the value that was chosen stays chosen where it is there."""
        self._views = [view for view in views if any(len(line.places) > 1 for line in view.lines)]
        titles, before = [view.title for view in self._views], self.choice.currentText()
        self.choice.blockSignals(True)
        self.choice.clear()
        self.choice.addItems(titles)
        self.choice.setCurrentIndex(titles.index(before) if before in titles else 0 if titles else -1)
        self.choice.blockSignals(False)
        self.choice.setVisible(len(titles) > 1)
        self.set_nothing(reason or (ALONE if views else ""))
        self._show()

    def _show(self) -> None:
        self.set_filled(bool(self._views))
        self.draw()

    def describe(self) -> Chart:
        """Describe the chosen course."""
        at = self.choice.currentIndex()
        if not 0 <= at < len(self._views):
            return NO_CHART
        view = self._views[at]
        longest = max((line.places for line in view.lines), key=len)
        short = len(longest) <= NAMED and sum(map(len, longest)) <= LETTERS
        names = longest if short and not view.across.startswith("block") else ()
        ends = (0.0, 1.0) if view.is_share else (None, None)
        x = Axis(view.across, names=names) if names else Axis(view.across, integral=True)
        marks: list[Segments | Line] = []
        if view.ideal is not None:
            at_ideal = np.array([[view.ideal, view.ideal]])
            marks.append(
                Segments(x=np.array([[-math.inf, math.inf]]), y=at_ideal, dashes=(4, 3), stretch=False)
            )
        keys = []
        for line in view.lines:
            ink, symbol = theme.annotator_style(line.number)
            ink = ink if len(view.lines) > 1 else "accent"
            known = np.isfinite(line.values[:, 1:]).all(axis=1)
            low, high = (np.where(known, line.values[:, end], line.values[:, 0]) for end in (1, 2))
            places = np.arange(len(line.places), dtype=np.float64) + (0 if names else 1)
            marks.append(
                Line(
                    x=places, y=line.values[:, 0], low=low, high=high, interval="bars", ink=ink, dot=7.0,
                    symbol=symbol, title=line.name, words=partial(_words, view, line),
                )
            )  # fmt: skip
            keys.append(Key(line.name, ink, symbol=symbol, line=True))
        y = Axis(view.label, *ends)
        return Chart(view.title, x, y, tuple(marks), tuple(keys), aside="", legend_at="above")


def _words(view: CourseView, line: AnnotatorCourse, index: int) -> str:
    value, low, high = line.values[index].tolist()
    who = f"{line.name}, " if len(view.lines) > 1 else ""
    return f"{who}{line.places[index]}: {view.title} {estimate(value, low, high)}"
