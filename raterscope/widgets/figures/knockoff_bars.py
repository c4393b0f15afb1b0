"""Knockoff statistics of annotators as bars, and the rate of false discoveries that flags them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPen
from PySide6.QtWidgets import (
    QHBoxLayout,
    QSizePolicy,
    QSlider,
    QSpinBox,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from raterscope.algorithms.pairs.data import HIGHEST_RATE
from raterscope.figures.table import PlotTable
from raterscope.text.numbers import count
from raterscope.widgets import theme
from raterscope.widgets.figures.figure_panel import Figure
from raterscope.widgets.figures.mode_switch import ModeSwitch
from raterscope.widgets.figures.scaled_figure import paint_value_scale, row_of
from raterscope.widgets.painting import paint_words
from raterscope.widgets.parts import Header, leave_keys_to, plain_label
from raterscope.widgets.text_size import set_lengths

__all__ = [
    "KnockoffBars",
    "RateCut",
    "StatisticBars",
    "StatisticsView",
]


LEFT, RIGHT, TOP, BOTTOM = 34.0, 4.0, 4.0, 22.0
STRIP = 3.0
WIDEST = 26.0


@dataclass(frozen=True, eq=False)
class RateCut:
    """What follows from a false discovery rate.

    Attributes
    ----------
    rate : float
    share : (p,) float
        Of the draws that select each annotator; NaN for the untested.
    at : (D,) float
        The least W that is selected in each draw; infinite where nobody is.
    flagged : (p,) bool
    words : str
        What is promised, in a few words; nothing where the number flagged says all.
    others : int
        How many are flagged beside them, of whom nothing is shown.
    """

    rate: float
    share: NDArray[np.floating]
    at: NDArray[np.floating]
    flagged: NDArray[np.bool_]
    words: str = ""
    others: int = 0


@dataclass(frozen=True, eq=False)
class StatisticsView:
    """The statistics of p annotators in D draws.

    Attributes
    ----------
    statistic : (D, p) float
        W; NaN for the untested.
    names : tuple of p str
    numbers : (p,) int
        What the signal names them by.
    least_share : float
        The share of draws from which on one is flagged.
    cut : RateCut
    p_values : bool
        Whether the statistic is -log10 of p values of a test without draws.
    """

    statistic: NDArray[np.floating]
    names: tuple[str, ...]
    numbers: NDArray[np.integer]
    least_share: float
    cut: RateCut
    p_values: bool = False

    def __post_init__(self) -> None:
        draws, many = self.statistic.shape
        if not draws or {
            len(self.names),
            len(self.numbers),
            *map(len, (self.cut.share, self.cut.flagged)),
        } != {many}:
            raise ValueError(f"not as much of everything as there are annotators: {many}")
        if len(self.cut.at) != draws:
            raise ValueError(f"{len(self.cut.at)} cuts for {draws} draws")

    def order(self) -> NDArray[np.int64]:
        """Put the tested annotators in order, the largest mean W first: it is the same at every rate."""
        mean = self.statistic.mean(axis=0)
        return np.argsort(-mean, kind="stable")[: int(np.isfinite(mean).sum())]


class StatisticBars(Figure[int]):
    """Bars of a draw, or of the share of draws, with the cut. A part is a place in the order of the bars.

    Signals
    -------
    chosen : int
        Number of the annotator of a bar.
    """

    chosen = Signal(int)

    def __init__(self) -> None:
        super().__init__("What speaks for a bias")
        set_lengths(self, minimumWidth=200, minimumHeight=70)
        self._view: StatisticsView | None = None
        self._cut: RateCut | None = None
        self._order = np.empty(0, np.int64)
        self._draw: int | None = None
        self._selected: int | None = None

    def show_statistics(self, view: StatisticsView | None) -> None:
        """Show annotators, or none; who is selected stays where it can."""
        self.point(None)
        kept = (
            None if self._view is None or self._selected is None else int(self._view.numbers[self._selected])
        )
        self._view = view
        self._draw = None
        if view is not None:
            self._order, self._cut = view.order(), view.cut
        self.select(kept)

    def set_cut(self, cut: RateCut) -> None:
        """Show another cut."""
        self._cut = cut
        self.update()

    def set_draw(self, draw: int | None) -> None:
        """Show one draw, counted from 0, or the share of all."""
        self._draw = draw
        self.update()

    def select(self, number: int | None) -> None:
        """Select an annotator without a signal, or nobody."""
        self._selected = None if self._view is None else row_of(self._view.numbers, number)
        self.update()

    def words(self, part: int) -> str:
        """Say of an annotator in how many draws it is selected, or its W."""
        view, cut = self._view, self._cut
        assert view is not None
        assert cut is not None
        who = self._order[part]
        said = f"{view.names[who]}: "
        if view.p_values:
            said += f"p {10.0 ** -float(view.statistic[0, who]):.2g}"
        elif self._draw is None:
            draws = len(view.statistic)
            said += f"selected in {round(float(cut.share[who]) * draws):,} of {count(draws, 'draw')}"
        else:
            value = float(view.statistic[self._draw, who])
            said += f"W {value:.2f} in draw {self._draw + 1:,}" + (", the knockoff won" if value < 0 else "")
        return said + (", flagged" if cut.flagged[who] else "")

    def part_at(self, place: QPointF) -> int | None:
        """Find the bar beneath a place."""
        box, many = self._box(), len(self._order)
        if self._view is None or not many:
            return None
        part = int((place.x() - box.left()) // self._pitch())
        return part if 0 <= part < many and 0 <= place.y() <= self.room.height() else None

    def step(self, part: int | None, across: int, down: int) -> int | None:
        """Walk along the bars."""
        if self._view is None or not len(self._order):
            return None
        if part is None:
            return row_of(self._order, self._selected) or 0
        return min(max(part + across + down, 0), len(self._order) - 1)

    def choose(self, part: int) -> None:
        """Select an annotator, and say so."""
        assert self._view is not None
        self._selected = int(self._order[part])
        self.update()
        self.chosen.emit(int(self._view.numbers[self._selected]))

    def table(self) -> PlotTable:
        """Give the bars as numbers."""
        view, cut, order = self._view, self._cut, self._order
        assert view is not None
        assert cut is not None
        mean = np.asarray(view.statistic).mean(axis=0)
        if view.p_values:
            return PlotTable.of(
                {
                    "annotator": [view.names[who] for who in order.tolist()],
                    "evidence": mean[order],
                    "q value": 1.0 - cut.share[order],
                    "flagged": cut.flagged[order],
                }
            )
        of_draw = (
            {} if self._draw is None else {f"W in draw {self._draw + 1}": view.statistic[self._draw, order]}
        )
        return PlotTable.of(
            {
                "annotator": [view.names[who] for who in order.tolist()],
                "share of draws that select": cut.share[order],
                "mean W": mean[order],
                **of_draw,
                "flagged": cut.flagged[order],
            }
        )

    def _box(self) -> QRectF:
        return QRectF(
            LEFT, TOP, max(self.room.width() - LEFT - RIGHT, 8.0), max(self.room.height() - TOP - BOTTOM, 8.0)
        )

    def _pitch(self) -> float:
        return min(self._box().width() / max(len(self._order), 1), WIDEST)

    def draw(self, painter: QPainter) -> None:
        """Draw the bars, the cut, who is pointed at and who is selected."""
        view, cut = self._view, self._cut
        if view is None or cut is None:
            return
        look, box, pitch = theme.current(), self._box(), self._pitch()
        known, at = self._values(view, cut)
        values, line = self._length(known), float(self._length(at))
        least, most = float(values.min(initial=0.0)), float(values.max(initial=1e-9 if len(values) else 1.0))
        if self._draw is None:
            least, most = 0.0, 1.0
        elif np.isfinite(line):
            most = max(most, line)
        scale = box.height() / (most - least)
        zero = box.top() + most * scale
        self._draw_bars(painter, values, cut.flagged[self._order], zero, scale)
        painter.setPen(QPen(QColor(look.line), 1))
        painter.drawLine(QPointF(box.left(), zero), QPointF(box.right(), zero))
        paint_value_scale(painter, box, self._value(least), self._value(most), zero)
        for part, ink in ((row_of(self._order, self._selected), look.accent), (self.pointed, look.text)):
            if part is not None:
                x = box.left() + (part + 0.5) * pitch
                room = QRectF(x - pitch / 2 - 1, box.top(), max(pitch, 1) + 2, box.height())
                painter.setPen(QPen(QColor(ink), 1))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawRect(room)
        if np.isfinite(line):
            y = zero - line * scale
            pen = QPen(QColor(look.accent), 1.6)
            pen.setDashPattern([3, 3])
            painter.setPen(pen)
            painter.drawLine(QPointF(box.left(), y), QPointF(box.right(), y))
            painter.setFont(theme.font(theme.CAPTION))
            word, side = f"threshold {self._value(line):.2g}", Qt.AlignmentFlag.AlignRight
            paint_words(painter, QRectF(box.right() - 80, y - 17, 78, 16), word, look.accent, side=side)
        painter.setFont(theme.font(theme.CAPTION))
        paint_words(
            painter,
            QRectF(box.left(), self.room.height() - 16, box.width(), 16),
            self._caption(line),
            look.second,
        )

    def _values(self, view: StatisticsView, cut: RateCut) -> tuple[NDArray[np.floating], float]:
        """Give what the bars stand for, and where the cut lies."""
        if self._draw is None:
            return np.asarray(cut.share)[self._order], view.least_share
        return np.asarray(view.statistic)[self._draw, self._order], float(cut.at[self._draw])

    def _length(self, value: NDArray[np.floating] | float) -> NDArray[np.floating]:
        """Give how long a bar is: W by its root, so that a few large ones do not hide where the cut lies."""
        found = np.asarray(value, dtype=float)
        return found if self._draw is None else np.copysign(np.sqrt(np.abs(found)), found)

    def _caption(self, line: float) -> str:
        if not len(self._order):
            return "no annotator to show"
        if self._view is not None and self._view.p_values:
            return "evidence of a bias: \N{MINUS SIGN}log10 p of the flip test (square-root scale)"
        if self._draw is None:
            return "share of draws that select each annotator; marked below: flagged"
        if not np.isfinite(line):
            return "statistic W by annotator; in this draw nobody can be selected at this rate"
        return "statistic W by annotator, by its root; below 0 the knockoff won; marked below: flagged"

    def _draw_bars(
        self,
        painter: QPainter,
        values: NDArray[np.floating],
        flagged: NDArray[np.bool_],
        zero: float,
        scale: float,
    ) -> None:
        look, box, pitch = theme.current(), self._box(), self._pitch()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        starts, lit = np.arange(len(values)), flagged
        low, high = np.minimum(values, 0.0), np.maximum(values, 0.0)
        width = max(round(pitch) - (1 if pitch >= 3 else 0), 1)
        if pitch < 1:
            # More annotators than pixels: of those in a column, the farthest up and down.
            column = (np.arange(len(values)) * pitch).astype(np.int64)
            starts = np.flatnonzero(np.diff(column, prepend=-1))
            low, high = np.minimum.reduceat(low, starts), np.maximum.reduceat(high, starts)
            lit = np.logical_or.reduceat(flagged, starts)
        left = np.round(box.left() + starts * pitch)
        bars = np.stack([left, zero - high * scale, np.full(len(left), width), (high - low) * scale], axis=1)
        painter.setPen(Qt.PenStyle.NoPen)
        for of, ink in ((~lit, look.third), (lit, look.rejected)):
            painter.setBrush(QColor(ink))
            painter.drawRects([QRectF(*bar) for bar in bars[of].tolist()])
        painter.drawRects([QRectF(x, box.bottom() + 2, width, STRIP) for x in left[lit].tolist()])
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)

    def _value(self, length: float) -> float:
        return length if self._draw is None else float(np.copysign(length * length, length))


NOTHING = "Press Fuse (F5) to see the evidence for each annotator's bias, and to move the cut."
MODES = {
    "share": ("share of draws", "In how many of the draws of knockoffs each annotator is selected"),
    "draw": ("W of a draw", "The statistic W in one draw; below the line the knockoff won"),
}
ASIDE = "move the cut, nothing is refitted"
LEAST, MOST = 1, round(100 * HIGHEST_RATE)
"""Of the rate, in hundredths; W is not followed beyond."""


class KnockoffBars(QWidget):
    """A slider moves the rate; whoever hears `rate_changed` answers with `set_cut`. Nothing is fitted anew.

    Signals
    -------
    rate_changed : float
    chosen : int
        Number of the annotator of a bar clicked.
    """

    rate_changed = Signal(float)
    chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.set_role(self, "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAccessibleName("False discovery rate")
        self.header = Header("False discovery rate", ASIDE)
        self.figure = StatisticBars()
        self.figure.header = self.header
        self._view: StatisticsView | None = None
        self._pages = QStackedWidget()
        nothing = plain_label(NOTHING, "second", wrap=True)
        nothing.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._pages.addWidget(nothing)
        self._pages.addWidget(self._filled())
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 12, 8)
        column.setSpacing(4)
        column.addWidget(self.header)
        column.addWidget(self._pages, 1)
        self.slider.valueChanged.connect(self._on_slider)
        self.modes.chosen.connect(self._on_mode)
        self.draw.valueChanged.connect(self._on_draw)
        self.figure.chosen.connect(self.chosen)
        self.show_statistics(None)

    def show_statistics(self, view: StatisticsView | None) -> None:
        """Show annotators, or that there are none yet; mode and draw stay where they can."""
        self._view = view
        leave_keys_to(self, self.figure if view is not None else None)
        self._pages.setCurrentIndex(int(view is not None))
        drawn = view is not None and not view.p_values
        self.modes.setVisible(drawn)
        self.draw.setVisible(drawn and self.modes.mode == "draw")
        self.figure.show_statistics(view)
        if view is None:
            return
        self.draw.blockSignals(True)
        self.draw.setRange(1, len(view.statistic))
        self.draw.setSuffix(f" of {len(view.statistic):,}")
        self.draw.blockSignals(False)
        self.slider.blockSignals(True)
        self.slider.setValue(round(100 * view.cut.rate))
        self.slider.blockSignals(False)
        one = view.p_values or self.modes.mode == "draw"
        self.figure.set_draw(self.draw.value() - 1 if one else None)
        self.set_cut(view.cut)

    def set_cut(self, cut: RateCut) -> None:
        """Show what follows from the rate; the slider is where it was put."""
        if self._view is None:
            return
        self.figure.set_cut(cut)
        many = int(cut.flagged.sum()) + cut.others
        self._flagged.setText(f"{count(many)} flagged")
        theme.set_role(self._flagged, "rejected" if many else "second")
        self.header.set_aside(cut.words or ASIDE)
        self._say_rate(cut.rate)

    def select(self, number: int | None) -> None:
        """Select an annotator without a signal, or nobody."""
        self.figure.select(number)

    @property
    def rate(self) -> float:
        """The rate the slider stands at."""
        return self.slider.value() / 100

    def _filled(self) -> QWidget:
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
        self.modes = ModeSwitch(MODES)
        self.draw = QSpinBox()
        self.draw.setAccessibleName("Draw")
        self.draw.setPrefix("draw ")
        self.draw.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.draw.hide()
        first = QHBoxLayout()
        first.setSpacing(16)
        first.addStrut(self.draw.sizeHint().height())
        first.addWidget(self.slider, 1)
        first.addWidget(self.draw)
        first.addWidget(self._rate)
        first.addWidget(self._flagged)
        self.draw.setButtonSymbols(QSpinBox.ButtonSymbols.NoButtons)
        self.draw.setToolTip("Which draw of knockoffs is shown (Up and Down)")
        self.header.row.addWidget(self.modes)
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addLayout(first)
        column.addWidget(self.figure, 1)
        return page

    def _say_rate(self, rate: float) -> None:
        self._rate.setText(f"q = {rate:.2f}")

    def _on_slider(self) -> None:
        self._say_rate(self.rate)
        self.rate_changed.emit(self.rate)

    def _on_mode(self, mode: str) -> None:
        self.draw.setVisible(mode == "draw")
        self.figure.set_draw(self.draw.value() - 1 if mode == "draw" else None)

    def _on_draw(self, draw: int) -> None:
        self.figure.set_draw(draw - 1)
