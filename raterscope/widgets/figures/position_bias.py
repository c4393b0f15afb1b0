"""Plots of annotators' position bias: choices by side, bias over time, statistics with the cut."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QSizePolicy, QSlider, QSpinBox, QWidget

from raterscope.algorithms.pairs.data import BEHAVIOUR_WORDS, HIGHEST_RATE
from raterscope.figures.colours import Symbol, colour_of
from raterscope.figures.description import (
    Axis,
    Chart,
    Key,
    Line,
    Mark,
    Note,
    PlotTable,
    Points,
    Rectangles,
    Scale,
    Segments,
    check_lengths,
)
from raterscope.figures.description import Column as TableColumn
from raterscope.text import counted, estimate, with_minus
from raterscope.widgets import theme
from raterscope.widgets.figures.chart_figure import ChartPanel, Column, ColumnFigure
from raterscope.widgets.figures.figure_panel import FigurePanel, ModeSwitch, row_of
from raterscope.widgets.layouts import horizontal, vertical
from raterscope.widgets.parts import ElidedLabel, leave_keys_to, plain_label
from raterscope.widgets.theme import set_lengths

GOOD, UGLY, BAD, UNDECIDABLE = range(len(BEHAVIOUR_WORDS))
BEHAVIOUR_INKS = ("third", "disputed", "rejected", "third")
BEHAVIOUR_DASHES: tuple[tuple[float, ...], ...] = ((), (3.0, 2.0), (), (1.0, 2.0))
"""Dashes by behaviour, in widths of the line."""
SHORT_WORDS = ("no bias", "leaning", "one-sided", "undecidable")
BEHAVIOUR_KEYS = tuple(
    Key(words, ink, dashes, "cross" if behaviour == BAD else None, short=short)
    for behaviour, (words, ink, dashes, short) in enumerate(
        zip(BEHAVIOUR_WORDS, BEHAVIOUR_INKS, BEHAVIOUR_DASHES, SHORT_WORDS, strict=True)
    )
)
"""Legend; a narrow plot uses the short texts."""


def behaviour_colour(behaviour: int) -> str:
    """Return the colour of a behaviour in the current theme."""
    return colour_of(BEHAVIOUR_INKS[behaviour], theme.current())


NO_SIDES = "Press Fuse (F5) to see how often each annotator chose left and right."
SCALES = {
    "log": ("log", "Logarithm of the counts: small counts are as distinct as large ones"),
    "linear": ("linear", "Counts as they are"),
}
SIZE, RING = 7.2, 15.0
DIAGONAL = np.array([[-np.inf, np.inf]])
EQUAL = Segments(x=DIAGONAL, y=DIAGONAL, ink="third", dashes=(4.0, 4.0), stretch=False)


@dataclass(frozen=True, eq=False)
class SidesView:
    """The choices of p annotators."""

    # left, right: (p,): number of choices of each side
    left: NDArray[np.integer]
    right: NDArray[np.integer]
    behaviour: NDArray[np.integer]  # (p,): numbers in `BEHAVIOURS`
    flagged: NDArray[np.bool_]  # (p,)
    names: tuple[str, ...]  # (p,)
    numbers: NDArray[np.integer]  # (p,): their numbers in the signal

    def __post_init__(self) -> None:
        columns = (self.left, self.right, self.behaviour, self.flagged, self.numbers)
        check_lengths(len(self.names), "annotators", *columns)


class SideCounts(ChartPanel):
    """Choices by side; annotators without bias lie around the diagonal. A click selects, arrows move."""

    chosen = Signal(int)  # number of an annotator

    def __init__(self) -> None:
        super().__init__("Left and right", NO_SIDES, brief="Sides")
        set_lengths(self.figure, minimumWidth=104, minimumHeight=120)
        self.figure.setToolTip("On the dashed line: left as often as right")
        self.scale = ModeSwitch(SCALES)
        self.header.row.addWidget(self.scale)
        self._view: SidesView | None = None
        self._flagged = np.empty(0, bool)
        self._behaviour = np.empty(0, np.int8)
        self._rows = np.empty(0, np.int64)
        self._selected: int | None = None
        self.scale.chosen.connect(lambda: self.draw())
        self.figure.point_chosen.connect(self._on_point)
        self.show_sides(None)

    def show_sides(self, view: SidesView | None) -> None:
        """Show annotators, or that there are none yet; the selection is kept."""
        self._view = view
        if view is not None:
            self._take(view.flagged, view.behaviour)
        self.scale.setVisible(view is not None)
        self.set_filled(view is not None)
        self.draw()

    def set_flagged(self, flagged: NDArray[np.bool_], behaviour: NDArray[np.integer]) -> None:
        """Mark annotators as flagged."""
        unchanged = np.array_equal(self._flagged, flagged) and np.array_equal(self._behaviour, behaviour)
        if self._view is not None and not unchanged:
            self._take(flagged, behaviour)
            self.draw(keep_view=True)

    def _take(self, flagged: NDArray[np.bool_], behaviour: NDArray[np.integer]) -> None:
        self._flagged, self._behaviour = np.asarray(flagged), np.asarray(behaviour)
        # Among overlapping symbols, the first flagged one has priority, because it is on top.
        self._rows = np.argsort(~self._flagged, kind="stable")

    def select(self, number: int | None) -> None:
        """Select an annotator, or none, without a signal."""
        self._selected = number
        self.draw_rings()

    def draw_rings(self) -> None:
        """Ring the symbol of the selected annotator."""
        numbers = np.empty(0) if self._view is None else self._view.numbers[self._rows]
        row = row_of(numbers, self._selected)
        self.figure.set_rings(() if row is None else ((1, row),), RING)
        self.figure.first = (1, row or 0) if len(numbers) else None

    def describe(self) -> Chart:
        """Describe the symbols; flagged annotators are drawn last."""
        view = self._view
        scale: Scale = "log1p" if self.scale.mode == "log" else "linear"
        if view is None:
            return Chart("Left and right", Axis("left"), Axis("right"))
        most = float(max(view.left.max(initial=1), view.right.max(initial=1), 1))
        x, y = (Axis(words, 0.0, 1.04 * most, scale, 0.02, integral=True) for words in ("left", "right"))
        rows = self._rows
        walked = Points(x=view.left[rows], y=view.right[rows], size=0.0, text_of=self._text)
        marks: list[Mark] = [EQUAL, walked]
        kinds = 2 * self._behaviour.astype(np.int64) + self._flagged
        for kind in sorted(np.unique(kinds).tolist(), key=lambda kind: kind % 2):
            ink, symbol = _look(kind // 2, flagged=bool(kind % 2))
            marks.append(
                Points(
                    x=view.left[kinds == kind], y=view.right[kinds == kind], ink=ink, symbol=symbol,
                    size=SIZE, width=1.2, filled=bool(kind % 2), pointable=False,
                )
            )  # fmt: skip
        behaviour = [BEHAVIOUR_WORDS[number] if number >= 0 else "" for number in self._behaviour.tolist()]
        table: dict[str, TableColumn] = {
            "annotator": view.names, "left": view.left, "right": view.right, "behaviour": behaviour,
            "flagged": self._flagged,
        }  # fmt: skip
        return Chart("Left and right", x, y, tuple(marks), table=PlotTable.of(table))

    def _text(self, index: int) -> str:
        view, row = self._view, int(self._rows[index])
        assert view is not None
        text = f"{view.names[row]}: {view.left[row]:,} left, {view.right[row]:,} right"
        if self._behaviour[row] >= 0:
            text += f", {BEHAVIOUR_WORDS[self._behaviour[row]]}"
        return text + (", flagged" if self._flagged[row] else "")

    def _on_point(self, _mark: int, index: int) -> None:
        assert self._view is not None
        self._selected = int(self._view.numbers[self._rows[index]])
        self.draw_rings()
        self.chosen.emit(self._selected)


def _look(behaviour: int, *, flagged: bool) -> tuple[str, Symbol]:
    if flagged:
        return ("disputed", "diamond") if behaviour == UGLY else ("rejected", "square")
    return ("third", "triangle") if behaviour == UNDECIDABLE else ("accent", "disc")


TOO_FEW = "Too few answers of this annotator to see whether the bias changes."
DOTS_UP_TO = 60
ZERO = Segments(
    x=np.array([[-np.inf, np.inf]]), y=np.zeros((1, 2)), ink="third", dashes=(4.0, 4.0), pointable=False
)


@dataclass(frozen=True, eq=False)
class OverTimeView:
    """An annotator's bias in K windows of answers."""

    at: NDArray[np.floating]  # (K,): position of each window, rising: its middle answer, or its time
    # bias, low, high: (K,): estimates with 95 % intervals; NaN for a window with too few answers
    bias: NDArray[np.floating]
    low: NDArray[np.floating]
    high: NDArray[np.floating]
    when: tuple[str, ...]  # (K,): "answers 1 to 40", "12 March, 10:00 to 11:20"
    answers: int
    behaviour: int = GOOD  # number in `BEHAVIOURS`: gives the colour

    def __post_init__(self) -> None:
        check_lengths(len(self.at), "windows", self.bias, self.low, self.high, self.when)

    def chart(self) -> Chart:
        """Describe the line with its interval."""
        positions = np.asarray(self.at, dtype=float)
        if positions[0] == positions[-1]:
            positions = np.linspace(0.0, 1.0, len(positions))
        ink = BEHAVIOUR_INKS[self.behaviour] if self.behaviour else "accent"
        line = Line(
            x=positions,
            y=self.bias,
            low=self.low,
            high=self.high,
            ink=ink,
            dot=4.0 * (len(positions) <= DOTS_UP_TO),
        )
        ends = ((float(positions[0]), self.when[0]), (float(positions[-1]), self.when[-1]))
        table: dict[str, TableColumn] = {
            "when": self.when,
            "at": self.at,
            "bias": self.bias,
            "low": self.low,
            "high": self.high,
        }
        x = Axis("", float(positions[0]), float(positions[-1]), padding=0.01, ticks=ends)
        return Chart("Bias over time", x, Axis("bias"), (ZERO, line), table=PlotTable.of(table))


class BiasOverTime(FigurePanel):
    """Bias over time with its interval; a click selects a window of answers."""

    chosen = Signal(int)  # window

    def __init__(self) -> None:
        self.figure = _Windows("Bias over time")
        set_lengths(self.figure, minimumHeight=60)
        super().__init__("Bias over time", self.figure, TOO_FEW)
        self.figure.chosen.connect(self.chosen)

    def show_course(self, view: OverTimeView | None) -> None:
        """Show an annotator, or that there are too few answers."""
        filled = view is not None and len(view.at) > 1
        self.figure.show_view(view if filled else None)
        self.header.set_subtitle("" if view is None else counted(view.answers, "answer"))
        self.set_filled(filled)


class _Windows(ColumnFigure):
    chosen = Signal(int)
    _view: OverTimeView | None = None

    def show_view(self, view: OverTimeView | None) -> None:
        self._view = view
        self.select(None)
        charts = () if view is None else (view.chart(),)
        self.show_charts(charts, [np.asarray(chart.marks[1].across, dtype=float) for chart in charts])

    def text_of(self, part: Column) -> str:
        view, window = self._view, part[1]
        assert view is not None
        values = (float(part[window]) for part in (view.bias, view.low, view.high))
        return f"{view.when[window]}: bias {estimate(*values)}"

    def choose(self, part: Column) -> None:
        self.select(part[1])
        self.chosen.emit(part[1])


WIDEST = 16
"""Minimum number of bars across the width; fewer bars have the same width."""


@dataclass(frozen=True, eq=False)
class RateCut:
    """The result of a false discovery rate."""

    rate: float
    share: NDArray[np.floating]  # (p,): share of the draws that select each annotator; NaN if untested
    at: NDArray[np.floating]  # (D,): smallest selected W in each draw; infinite if none is
    flagged: NDArray[np.bool_]  # (p,)
    text: str = ""  # guarantee in a few words; empty if the number flagged is enough
    others: int = 0  # number of flagged annotators that are not shown
    by_test: int | None = None  # number flagged by the test alone; None if decisions change nothing

    def marks_like(self, other: RateCut) -> bool:
        """Return whether the bars look the same at another cut."""
        pairs = ((self.share, other.share), (self.at, other.at), (self.flagged, other.flagged))
        return all(np.array_equal(mine, others, equal_nan=True) for mine, others in pairs)


@dataclass(frozen=True, eq=False)
class StatisticsView:
    """The statistics of p annotators in D draws."""

    statistic: NDArray[np.floating]  # (D, p): W; NaN for untested annotators
    names: tuple[str, ...]  # (p,)
    numbers: NDArray[np.integer]  # (p,): numbers that the signal emits
    min_share: float  # minimum share of draws of a flagged annotator
    cut: RateCut
    p_values: bool = False  # whether the statistic is -log10 of p values of a test without draws

    def __post_init__(self) -> None:
        draws, number = self.statistic.shape
        check_lengths(number, "annotators", self.names, self.numbers, self.cut.share, self.cut.flagged)
        if not draws or len(self.cut.at) != draws:
            raise ValueError(f"{len(self.cut.at)} cuts for {draws} draws")

    def order(self) -> NDArray[np.int64]:
        """Sort the tested annotators, the largest mean W first; the order is the same at every rate."""
        mean = self.statistic.mean(axis=0)
        return np.argsort(-mean, kind="stable")[: int(np.isfinite(mean).sum())]


class StatisticBars(ColumnFigure):
    """Bars of one draw, or of the share of draws, with the cut. A column is a bar."""

    chosen = Signal(int)  # number of the annotator of a bar

    def __init__(self) -> None:
        super().__init__("Evidence for a bias")
        set_lengths(self, minimumWidth=180, minimumHeight=70)
        self._view: StatisticsView | None = None
        self._cut: RateCut | None = None
        self._order = np.empty(0, np.int64)
        self._draw: int | None = None
        self._number: int | None = None

    @property
    def cursor_colour(self) -> str:
        """Colour of the frame of the selected bar."""
        return theme.current().accent

    def show_statistics(self, view: StatisticsView | None) -> None:
        """Show annotators, or none; the selection is kept if possible."""
        self.point(None)
        self._view, self._draw = view, None
        if view is not None:
            self._order, self._cut = view.order(), view.cut
        self.select_annotator(self._number)
        self._show()

    def set_cut(self, cut: RateCut) -> None:
        """Show another cut."""
        before, self._cut = self._cut, cut
        if before is None or not before.marks_like(cut):
            self._show()

    def set_draw(self, draw: int | None) -> None:
        """Show one draw, counted from 0, or the share of all."""
        self._draw = draw
        self._show()

    def select_annotator(self, number: int | None) -> None:
        """Select an annotator, or none, without a signal."""
        self._number = number
        numbers = np.empty(0) if self._view is None else self._view.numbers[self._order]
        self.select(row_of(numbers, number))

    def text_of(self, part: Column) -> str:
        """Describe an annotator: the number of draws that select them, or W."""
        view, cut = self._view, self._cut
        assert view is not None
        assert cut is not None
        row = self._order[part[1]]
        text = f"{view.names[row]}: "
        if view.p_values:
            text += f"p {10.0 ** -float(view.statistic[0, row]):.2g}"
        elif self._draw is None:
            draws = len(view.statistic)
            text += f"selected in {round(float(cut.share[row]) * draws):,} of {counted(draws, 'draw')}"
        else:
            value = float(view.statistic[self._draw, row])
            text += f"W {with_minus(f'{value:.2f}')} in draw {self._draw + 1:,}"
            text += ", the knockoff won" if value < 0 else ""
        return text + (", flagged" if cut.flagged[row] else "")

    def choose(self, part: Column) -> None:
        """Select the annotator of a bar, and emit their number."""
        assert self._view is not None
        self.select_annotator(int(self._view.numbers[self._order[part[1]]]))
        self.chosen.emit(self._number)

    def _show(self) -> None:
        if self._view is None or self._cut is None:
            self.show_charts((), ())
        else:
            self.show_charts((self._chart(self._view, self._cut),), (np.arange(float(len(self._order))),))

    def _chart(self, view: StatisticsView, cut: RateCut) -> Chart:
        """Describe the bars: W on a square-root scale, so that a few large values do not hide the cut."""
        order, draw = self._order, self._draw
        flagged = cut.flagged[order]
        if draw is None:
            values, limit = np.asarray(cut.share)[order], view.min_share
        else:
            values, limit = np.asarray(view.statistic)[draw, order], float(cut.at[draw])
        low = float(values.min(initial=0.0))
        high = max(float(values.max(initial=0.0)), limit if np.isfinite(limit) else 0.0, 1e-9)
        bar = np.arange(len(order))
        below = np.full(int(flagged.sum()), -np.inf)
        marks: list[Mark] = [
            Rectangles(
                left=bar - 0.5, right=bar + 0.5, bottom=np.minimum(values, 0.0), top=np.maximum(values, 0.0),
                inks=np.where(flagged, "rejected", "third").tolist(), gap=1.0,
            ),
            Points(x=bar[flagged], y=below, symbol="square", size=5.0, ink="rejected", pointable=False),
            Segments(x=np.array([[-np.inf, np.inf]]), y=np.zeros((1, 2))),
        ]  # fmt: skip
        notes: tuple[Note, ...] = ()
        if np.isfinite(limit):
            y = np.full((1, 2), limit)
            marks.append(
                Segments(x=np.array([[-np.inf, np.inf]]), y=y, ink="accent", width=1.6, dashes=(3.0, 3.0))
            )
            offset = 9.0 if limit > high / 2 else -9.0  # the highest bars stand at the left
            notes = (Note(np.inf, limit, f"threshold {limit:.2g}", "accent", "end", (-2.0, offset)),)
        x = Axis(self._caption(view, limit), -0.5, max(len(order), WIDEST) - 0.5, padding=0.0, ticks=())
        share = draw is None
        y_axis = Axis("", 0.0 if share else low, 1.0 if share else high, "linear" if share else "root", 0.0)
        return Chart("", x, y_axis, tuple(marks), notes=notes, table=self._table(view, cut))

    def _table(self, view: StatisticsView, cut: RateCut) -> PlotTable:
        order, mean = self._order, np.asarray(view.statistic).mean(axis=0)
        columns: dict[str, TableColumn] = {"annotator": [view.names[row] for row in order.tolist()]}
        if view.p_values:
            columns |= {"evidence": mean[order], "q value": 1.0 - cut.share[order]}
        else:
            columns |= {"share of draws that select": cut.share[order], "mean W": mean[order]}
            if self._draw is not None:
                columns[f"W in draw {self._draw + 1}"] = view.statistic[self._draw, order]
        return PlotTable.of({**columns, "flagged": cut.flagged[order]})

    def _caption(self, view: StatisticsView, limit: float) -> str:
        if not len(self._order):
            return "no annotator to show"
        if view.p_values:
            return "evidence of a bias: \N{MINUS SIGN}log10 p of the flip test (square-root scale)"
        if self._draw is None:
            return "share of draws that select each annotator; marked below: flagged"
        if not np.isfinite(limit):
            return "statistic W by annotator; in this draw no annotator can be flagged at this rate"
        return "statistic W by annotator, by its root; below 0 the knockoff won; marked below: flagged"


NOTHING = "Press Fuse (F5) to see the evidence for each annotator's bias, and to move the cut."
MODES = {
    "share": ("share of draws", "In how many of the draws of knockoffs each annotator is selected"),
    "draw": ("W of a draw", "The statistic W in one draw; below the line the knockoff won"),
}
ASIDE = "the slider moves the cut without a new fusion"
LEAST, MOST = 1, round(100 * HIGHEST_RATE)
"""Range of the rate, in hundredths; statistics are not available beyond it."""


class KnockoffBars(FigurePanel):
    """Bars with a slider for the rate; a listener to `rate_changed` calls `set_cut`, without a new fit."""

    rate_changed = Signal(float)
    chosen = Signal(int)  # number of the annotator of the clicked bar

    def __init__(self) -> None:
        self.figure = StatisticBars()
        self._view: StatisticsView | None = None
        super().__init__("False discovery rate", self.figure, NOTHING, page=self._make_page())
        self.header.row.addWidget(self.modes)
        self.slider.valueChanged.connect(self._on_slider)
        self.modes.chosen.connect(self._on_mode)
        self.draw.valueChanged.connect(self._on_draw)
        self.figure.chosen.connect(self.chosen)
        self.show_statistics(None)

    def show_statistics(self, view: StatisticsView | None) -> None:
        """Show annotators, or that there are none yet; mode and draw are kept if possible."""
        self._view = view
        leave_keys_to(self, self.figure if view is not None else None)
        self.set_filled(view is not None)
        has_draws = view is not None and not view.p_values
        self.modes.setVisible(has_draws)
        self.draw.setVisible(has_draws and self.modes.mode == "draw")
        self.figure.show_statistics(view)
        if view is None:
            self.header.set_subtitle("")
            return
        with QSignalBlocker(self.draw):
            self.draw.setRange(1, len(view.statistic))
            self.draw.setSuffix(f" of {len(view.statistic):,}")
        with QSignalBlocker(self.slider):
            self.slider.setValue(round(100 * view.cut.rate))
        single = view.p_values or self.modes.mode == "draw"
        self.figure.set_draw(self.draw.value() - 1 if single else None)
        self.set_cut(view.cut)

    def set_cut(self, cut: RateCut) -> None:
        """Show the cut of a rate; the slider stays unchanged."""
        if self._view is None:
            return
        self.figure.set_cut(cut)
        flagged = int(cut.flagged.sum()) + cut.others
        self._flagged.setText(f"{counted(flagged)} flagged")
        theme.set_role(self._flagged, "rejected" if flagged else "second")
        self._by_test.setText("" if cut.by_test is None else f"{cut.by_test:,} before your decisions")
        self._by_test.setVisible(cut.by_test is not None)
        self.header.set_subtitle(cut.text or ASIDE)
        self._show_rate(cut.rate)

    def select(self, number: int | None) -> None:
        """Select an annotator, or none, without a signal."""
        self.figure.select_annotator(number)

    @property
    def rate(self) -> float:
        """Current rate of the slider."""
        return self.slider.value() / 100

    def _make_page(self) -> QWidget:
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(LEAST, MOST)
        self.slider.setPageStep(5)
        set_lengths(self.slider, minimumWidth=60)
        self.slider.setAccessibleName("False discovery rate, in hundredths")
        self.slider.setToolTip("At most this share of those flagged is flagged wrongly, on average")
        self._rate = plain_label("", "title")
        set_lengths(self._rate, minimumWidth=76)
        self._flagged = plain_label()
        set_lengths(self._flagged, minimumWidth=92)
        self._flagged.setFont(theme.font(theme.BODY, bold=True))
        self._by_test = ElidedLabel("", "small")
        self._by_test.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self._by_test.hide()
        self.modes = ModeSwitch(MODES)
        self.draw = QSpinBox()
        self.draw.setAccessibleName("Draw")
        self.draw.setPrefix("draw ")
        self.draw.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.draw.hide()
        first = horizontal(spacing=16)
        first.addStrut(self.draw.sizeHint().height())
        first.addWidget(self.slider, 1)
        first.addWidget(self.draw)
        first.addWidget(self._rate)
        first.addWidget(self._flagged)
        first.addWidget(self._by_test)
        self.draw.setToolTip("Which draw of knockoffs is shown (Up and Down)")
        page = QWidget()
        vertical(first, (self.figure, 1), inside=page, spacing=4)
        return page

    def _show_rate(self, rate: float) -> None:
        self._rate.setText(f"q = {rate:.2f}")

    def _on_slider(self) -> None:
        self._show_rate(self.rate)
        self.rate_changed.emit(self.rate)

    def _on_mode(self, mode: str) -> None:
        self.draw.setVisible(mode == "draw")
        self.figure.set_draw(self.draw.value() - 1 if mode == "draw" else None)

    def _on_draw(self, draw: int) -> None:
        self.figure.set_draw(draw - 1)
