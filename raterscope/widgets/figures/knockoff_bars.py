"""The false discovery rate that is asked for, by a slider, over the bars of what speaks for a bias."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
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
from raterscope.text.numbers import count
from raterscope.widgets import theme
from raterscope.widgets.figures.mode_switch import ModeSwitch
from raterscope.widgets.figures.statistic_bars import RateCut, StatisticBars, StatisticsView
from raterscope.widgets.parts import Header, leave_keys_to, plain_label
from raterscope.widgets.text_size import set_lengths

__all__ = ["KnockoffBars"]

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
