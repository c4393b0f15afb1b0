"""Rates of annotators: confusion matrix with its worst confusions, drift over time, list of changes."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QEvent, QModelIndex, QPointF, QRectF, QSignalBlocker, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QFontMetrics, QHideEvent, QKeyEvent, QPainter, QResizeEvent
from PySide6.QtWidgets import QPushButton, QSlider, QWidget

from raterscope.text import counted, decimals
from raterscope.widgets import theme
from raterscope.widgets.figures.confusion_matrix import MANY, NAMES_FROM, MatrixFigure, MatrixView
from raterscope.widgets.figures.drift_plots import DriftView, RowLines, TernaryPlot
from raterscope.widgets.figures.figure_panel import FigurePanel, ModeSwitch
from raterscope.widgets.hints import KeyHelp
from raterscope.widgets.layouts import Stretch, horizontal, stacked, vertical
from raterscope.widgets.painting import paint_annotator, paint_text
from raterscope.widgets.panels.lists import ChoiceList, LineKind, LineList
from raterscope.widgets.parts import (
    WIDEST,
    ElidedLabel,
    Header,
    Placeholder,
    leave_keys_to,
    plain_label,
    plain_tip,
)
from raterscope.widgets.theme import pixels, set_lengths, text_size


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """List entry for an annotator whose rates changed."""

    key: int  # identifies the line in signals
    annotator: int  # index that determines colour and symbol
    name: str
    when: str  # "vote 241 of 400, 2026-03-01"
    how: str  # "ring given as ring: 0.88 → 0.34, as blank: 0.07 → 0.61"
    brief: str = ""  # the same for the output that changed most, if `how` does not fit


class ChangeList(LineList[ChangeLine]):
    """List of annotators whose rates changed, in the given order."""

    chosen = Signal(int)  # key of the line that was clicked, or opened with Return

    def __init__(self) -> None:
        super().__init__(_ChangeKind(), "Annotators who changed")
        self.clicked.connect(self._on_chosen)
        self.activated.connect(self._on_chosen)

    def _on_chosen(self, index: QModelIndex) -> None:
        if index.isValid():
            self.chosen.emit(self.lines[index.row()].key)


class _ChangeKind(LineKind[ChangeLine]):
    height = 40

    def text_of(self, line: ChangeLine) -> str:
        return f"{line.name}, {line.when}: {line.how}"

    def paint_line(self, painter: QPainter, box: QRectF, line: ChangeLine) -> None:
        palette = theme.current()
        paint_annotator(painter, QPointF(box.left() + 8, box.top() + 12), line.annotator, 4)
        left, right = box.left() + 20, box.right() - 8
        painter.setFont(theme.font(theme.CAPTION))
        wide = min(QFontMetrics(painter.font()).horizontalAdvance(line.when) + 2.0, 0.65 * (right - left))
        when = QRectF(right - wide, box.top() + 3, wide, 18)
        paint_text(painter, when, line.when, palette.second, side=Qt.AlignmentFlag.AlignRight)
        room = QRectF(left, box.top() + 20, right - left, 16)
        middle = Qt.TextElideMode.ElideMiddle
        paint_text(painter, room, line.how, palette.second, elide=middle, brief=line.brief)
        painter.setFont(theme.font())
        name = QRectF(left, box.top() + 3, right - wide - left - 8, 18)
        paint_text(painter, name, line.name, palette.text, elide=middle)


FIGURES = {
    "triangle": ("triangle", "Each corner stands for one answer; needs three answers"),
    "lines": ("lines", "One line per answer, with its 95 % interval"),
}
CHOOSE = "Select an annotator to plot their rates over time."
SUMMARY_FROM = 210
"""Minimum height to describe the change above the figure; in a lower panel, the header's tooltip does."""
MARGINS, SPACING = (12, 8, 12, 8), 4
FRAME_MS = 40
FRAMES = 150
"""Number of frames of a complete playback: six seconds for any number of votes."""


class DriftPanel(QWidget):
    """Rates of one annotator over time. Space plays and pauses."""

    step_changed = Signal(int)  # new step, from the slider, the playback or a figure

    def __init__(self) -> None:
        super().__init__()
        theme.set_role(self, "panel")
        self.setAccessibleName("Drift")
        self._header = Header("Drift")
        self.figures = ModeSwitch(FIGURES)
        self._header.row.insertWidget(1, self.figures)
        self.ternary = TernaryPlot()
        self.lines = RowLines()
        self.ternary.header = self.lines.figure.header = self._header
        self._view: DriftView | None = None
        self._timer = QTimer(self, interval=FRAME_MS)
        self._timer.timeout.connect(self._on_frame)
        self._pages = stacked(self._make_empty_page(), self._make_plots())
        vertical(self._header, (self._pages, 1), inside=self, margins=MARGINS, spacing=SPACING)
        self.figures.chosen.connect(self._on_figure)
        self.slider.valueChanged.connect(self._on_slider)
        self.play.clicked.connect(self.toggle_play)
        for figure in (self.ternary, self.lines):
            figure.step_chosen.connect(self.slider.setValue)
        self.show_drift(None)

    def show_drift(self, view: DriftView | None) -> None:
        """Show an annotator; None shows the empty state."""
        if view is None:
            self._show_nothing(CHOOSE, offer=False)
            return
        self._stop()
        self._view = view
        self._header.set_subtitle(counted(len(view.mean), "vote"))
        three = len(view.outputs) == 3
        self.figures.setVisible(three)
        self.ternary.show_drift(view if three else None)
        self.lines.show_drift(view)
        self._on_figure()
        with QSignalBlocker(self.slider):
            self.slider.setRange(0, len(view.mean) - 1)
            self.slider.setPageStep(max(1, len(view.mean) // 20))
            self.slider.setValue(view.step)
        self._last.setText(f"vote {len(view.mean):,}")
        self._update_text(view.step)
        self._summary.setText(view.summary)
        self._header.setToolTip(plain_tip(view.summary))
        self._arrange()
        self._pages.setCurrentIndex(1)

    def show_changed(self, lines: Sequence[ChangeLine], text: str) -> None:
        """List annotators whose rates changed while none is selected, with a sentence about the list."""
        self._show_nothing(text, offer=False)
        self.changed.set_lines(lines)
        self.changed.setVisible(bool(lines))
        self._arrange()
        self._header.set_subtitle(f"{counted(len(lines), 'annotator')} changed" if lines else "")

    def show_without_votes(self, text: str) -> None:
        """Show why there is nothing to plot for the selected annotator."""
        self._show_nothing(text, offer=False)

    def show_static(self) -> None:
        """Explain that the model in use assumes constant rates."""
        self._show_nothing("Fuse with the dynamic model to see how annotators change.", offer=True)

    @property
    def playing(self) -> bool:
        """True during playback."""
        return self._timer.isActive()

    def toggle_play(self) -> None:
        """Play from the current step, or from the first if the current one is the last; or pause."""
        if self.playing:
            self._stop()
        elif self._view is not None:
            if self.slider.value() == self.slider.maximum():
                self.slider.setValue(0)
            self._timer.start()
            self.play.setText("Pause")

    KEY_HELP = KeyHelp("In the drift plot", (("Space", "play through the votes"),))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Play or pause with Space, wherever the focus is in the panel."""
        if event.key() == Qt.Key.Key_Space and self._view is not None:
            self.toggle_play()
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Give the figure priority where space is limited."""
        super().resizeEvent(event)
        self._arrange()

    def event(self, event: QEvent) -> bool:
        """Follow the height of a sentence whose text or size changes."""
        handled = super().event(event)
        if event.type() == QEvent.Type.LayoutRequest:
            self._arrange()
        return handled

    def _arrange(self) -> None:
        """Give the space to neighbouring panels while only a sentence is shown."""
        highest = WIDEST
        if self._view is None and self.changed.isHidden():
            left, top, right, bottom = MARGINS
            highest = self._empty.totalHeightForWidth(self.width() - left - right)
            highest += self._header.sizeHint().height() + top + bottom + SPACING
        self.setMaximumHeight(highest)
        self._summary.setVisible(bool(self._summary.text()) and self.height() >= pixels(SUMMARY_FROM))

    def hideEvent(self, event: QHideEvent) -> None:
        """Stop playback when the panel is hidden."""
        self._stop()
        super().hideEvent(event)

    def _make_empty_page(self) -> QWidget:
        self._nothing = Placeholder()
        self.fuse = QPushButton("Fuse with the dynamic model")
        self.changed = ChangeList()
        page = QWidget()
        self._empty = vertical(
            self._nothing,
            (self.fuse, 0, Qt.AlignmentFlag.AlignLeft),
            (self.changed, 1),
            Stretch(0),
            inside=page,
            spacing=8,
        )
        return page

    def _make_plots(self) -> QWidget:
        self._figures = stacked(self.ternary, self.lines)
        self._summary = plain_label("", "small", wrap=True, selectable=True)
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setAccessibleName("Vote")
        self.play = QPushButton("Play")
        self.play.setToolTip("Play through the votes (Space)")
        set_lengths(self.play, minimumWidth=70)
        self._first = plain_label("vote 1", "hint")
        self._present = ElidedLabel("", "small")
        self._present.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self._last = plain_label("", "hint")
        row = horizontal((self.slider, 1), self.play, spacing=8)
        ends = horizontal(self._first, (self._present, 1), self._last, spacing=None)
        page = QWidget()
        vertical(self._summary, (self._figures, 1), row, ends, inside=page, spacing=4)
        return page

    def _show_nothing(self, text: str, *, offer: bool) -> None:
        """Show a sentence instead of plots; `offer`: whether with the button that fuses."""
        self._stop()
        self._view = None
        self._nothing.setText(text)
        self.fuse.setVisible(offer)
        self.changed.hide()
        self.figures.hide()
        self._header.set_subtitle("")
        self._header.setToolTip(plain_tip(text))
        self._pages.setCurrentIndex(0)
        self._arrange()

    def _on_figure(self) -> None:
        three = self._view is not None and len(self._view.outputs) == 3
        self._figures.setCurrentIndex(0 if three and self.figures.mode == "triangle" else 1)

    def _on_slider(self, step: int) -> None:
        if self._view is not None:
            if len(self._view.outputs) == 3:
                self.ternary.set_step(step)
            self.lines.figure.select(step)
            self._update_text(step)
        self.step_changed.emit(step)

    def _on_frame(self) -> None:
        last = self.slider.maximum()
        self.slider.setValue(min(self.slider.value() + max(1, (last + 1) // FRAMES), last))
        if self.slider.value() == last:
            self._stop()

    def _update_text(self, step: int) -> None:
        assert self._view is not None
        changed = [f"{self._view.classes[position]}: {text}" for when, position, text in self._view.changes
                   if when == step]  # fmt: skip
        self._present.setText(f"vote {step + 1:,}" + "".join(f", {text}" for text in changed))

    def _stop(self) -> None:
        self._timer.stop()
        self.play.setText("Play")


ONE_LINE_FROM = 480.0
"""Minimum width for names and numbers on one line."""
LOW, HIGH = 24, 38
FIGURES_WIDTH = 190.0
ARROW = " → "
LISTED = 200  # confusions, at most
LONGEST_TITLE = 30
CELLS = {
    "rates": ("rates", "How often each answer is given where the true class is the row's"),
    "counts": ("counts", "The expected numbers of votes"),
    "difference": ("difference", "The rates less those of the crowd"),
}
OF_MANY = {
    "worst": ("worst", "The worst confusions as a list: those that are surely frequent first"),
    "parents": ("parents", "The rates of the parents of the classes: bird for bird/owl and bird/crow"),
}
"""Modes for many classes, and for classes with parents."""
RIGHT_SIDE = Qt.AlignmentFlag.AlignRight


@dataclass(frozen=True, slots=True)
class Confusion:
    """An answer that names another class than the true one."""

    cell: tuple[int, int]  # indices of class and answer
    # true, given: names of the classes
    true: str
    given: str
    # rate, low, high: rate of the answer on tasks of the true class, with its 95 % interval
    rate: float
    low: float
    high: float
    votes: float  # expected number of its votes

    def figures(self) -> str:
        """Return rate, interval and number of votes."""
        is_bounded = math.isfinite(self.low + self.high)
        digits = min(2, decimals(self.low, self.high)) if is_bounded else 2
        ends = f" ({self.low:.{digits}f} to {self.high:.{digits}f})" if is_bounded else ""
        return f"{self.rate:.{digits}f}{ends}, {counted(round(self.votes), 'vote')}"


class WorstConfusions(ChoiceList[Confusion]):
    """List of confusions, the highest lower bounds first; selecting one acts like a click on a cell."""

    def __init__(self) -> None:
        self._kind = _ConfusionKind()
        super().__init__(self._kind, "Worst confusions")

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Place numbers below the names in a narrow list."""
        super().resizeEvent(event)
        height = LOW if self.viewport().width() / text_size() >= ONE_LINE_FROM else HIGH
        if height != self._kind.height:
            self.set_height(height)


class _ConfusionKind(LineKind[Confusion]):
    height = HIGH

    def key(self, line: Confusion) -> Hashable:
        return line.cell

    def text_of(self, line: Confusion) -> str:
        return f"true {line.true}, answer {line.given}: {line.figures()}"

    def paint_line(self, painter: QPainter, box: QRectF, line: Confusion) -> None:
        palette = theme.current()
        box = box.adjusted(4, 0, -8, 0)
        if self.height == LOW:
            painter.setFont(theme.font())
            room = QRectF(box.right() - FIGURES_WIDTH, box.top(), FIGURES_WIDTH, box.height())
            paint_text(painter, room, line.figures(), palette.text, side=RIGHT_SIDE)
            names = box.adjusted(0, 0, -FIGURES_WIDTH - 8, 0)
        else:
            names = QRectF(box.left(), box.top() + 2, box.width(), 17)
            painter.setFont(theme.font(theme.CAPTION))
            room = QRectF(box.left(), box.top() + 19, box.width(), 16)
            paint_text(painter, room, line.figures(), palette.second)
        painter.setFont(theme.font())
        metrics = QFontMetrics(painter.font())
        arrow = metrics.horizontalAdvance(ARROW) + 2.0
        true, given = (metrics.horizontalAdvance(name) + 2.0 for name in (line.true, line.given))
        free = names.width() - arrow
        first = min(true, max(free / 2, free - given))
        middle = Qt.TextElideMode.ElideMiddle
        room = QRectF(names.left(), names.top(), first, names.height())
        paint_text(painter, room, line.true, palette.text, elide=middle)
        room = QRectF(room.right(), names.top(), arrow, names.height())
        paint_text(painter, room, ARROW, palette.third)
        room = QRectF(room.right(), names.top(), free - first, names.height())
        paint_text(painter, room, line.given, palette.rejected, elide=middle)


def worst_confusions(view: MatrixView) -> list[Confusion]:
    """Return the confusions with at least half a vote, the highest lower bounds of the rates first."""
    if view.meaning is None:
        return []
    wrong = (view.meaning >= 0) & (view.meaning != np.arange(len(view.classes))[:, None])
    cells = np.argwhere(wrong & (view.counts >= 0.5) & np.isfinite(view.mean))
    at = tuple(cells.T)
    order = np.lexsort((-view.mean[at], -np.nan_to_num(view.low[at])))
    return [
        Confusion((true, output), view.classes[true], view.outputs[output], float(view.mean[true, output]),
                  float(view.low[true, output]), float(view.high[true, output]),
                  float(view.counts[true, output]))
        for true, output in cells[order[:LISTED]].tolist()
    ]  # fmt: skip


MIN_MATRIX, AROUND_ROWS = 176, 80
"""Minimum height of the panel, and height of everything besides the rows, with the subtitle."""


class ConfusionPanel(FigurePanel):
    """Confusion matrix, or a list of the worst confusions, the default with many classes.

    A click on a cell or a line selects its votes.
    """

    cell_chosen = Signal(int, int)  # true class and output

    def __init__(self) -> None:
        self.figure, self.worst = MatrixFigure("Confusion matrix"), WorstConfusions()
        none = Placeholder("No other class was answered in half a vote or more.")
        self.parts = stacked(self.figure, self.worst, none)
        nothing = "Select an annotator to see their confusion matrix."
        super().__init__("Confusion matrix", self.figure, nothing, page=self.parts)
        self.modes = ModeSwitch(CELLS | OF_MANY)
        self.header.row.addWidget(self.modes)
        self._subtitle = ElidedLabel()
        self.layout().insertWidget(1, self._subtitle)  # type: ignore[union-attr]
        self._view: MatrixView | None = None
        self._classes: tuple[str, ...] = ()
        for mode in OF_MANY:
            self.modes.buttons[mode].hide()  # until a matrix needs them, because a splitter keeps its widths
        self.modes.chosen.connect(self._on_mode)
        self.figure.chosen.connect(self._on_cell)
        self.worst.chosen.connect(self._on_confusion)
        self.clear()

    def minimumSizeHint(self) -> QSize:
        """Return a height at which the rates of four classes are readable.

        It is not enforced: in a small window the matrix becomes lower, instead of covering the widgets below.
        """
        return super().minimumSizeHint().expandedTo(QSize(0, pixels(MIN_MATRIX)))

    def show_matrix(self, view: MatrixView) -> None:
        """Show a matrix; for the same classes, the mode is kept if possible."""
        half = LONGEST_TITLE // 2
        long = len(view.title) > LONGEST_TITLE
        title = f"{view.title[:half]}…{view.title[-half:]}" if long else view.title
        self.header.set_title(title, view.name)
        self.header.setToolTip(plain_tip(f"{view.title}, {view.subtitle}"))
        self.figure.setAccessibleName(
            f"Confusion matrix: {' '.join((view.title, view.name)).strip()}, {view.subtitle}"
        )
        self._subtitle.setText(view.subtitle)
        self._view = view
        self._arrange()
        self.modes.set_available(
            "difference", view.crowd is not None, "There is no crowd to compare with here."
        )
        many = view.meaning is not None and len(view.classes) > MANY
        self.modes.buttons["worst"].setVisible(many)  # with fewer classes, the cells are readable
        self.modes.buttons["parents"].setVisible(view.folded is not None)
        self.modes.show()
        self.set_filled(True)
        if view.classes != self._classes:
            self._classes = view.classes
            if many or self.modes.mode in OF_MANY:
                self.modes.set_mode("rates" if not many else "worst" if view.folded is None else "parents")
        self._on_mode(self.modes.mode)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Give the rows of the matrix priority where space is limited."""
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        """Show the subtitle only beside rows with names; the header's tooltip has it too."""
        rows = 0 if self._view is None else len(self._view.classes)
        room = rows > MANY or self.height() >= pixels(AROUND_ROWS + rows * NAMES_FROM)
        self._subtitle.setVisible(bool(self._subtitle.text()) and room)

    def clear(self) -> None:
        """Show no annotator."""
        self._view = None
        self._subtitle.setText("")
        self.header.set_title("Confusion matrix")
        self.header.setToolTip("")
        self._arrange()
        self.modes.hide()
        self.set_filled(False)

    def set_mode(self, mode: str) -> None:
        """Show "rates", "counts", the "difference" from the crowd, the "worst" confusions or "parents"."""
        self.modes.set_mode(mode)

    def _on_mode(self, mode: str) -> None:
        """Show the matrix, or the list instead."""
        if mode in CELLS:
            self.figure.set_mode(mode)
        view, part = self._view, 0
        if view is not None:
            self.figure.show_view((view.folded if mode == "parents" else None) or view)
            if mode == "worst":
                self.worst.set_lines(worst_confusions(view))
                part = 1 if self.worst.lines else 2
        self.parts.setCurrentIndex(part)
        leave_keys_to(self, (self.figure, self.worst, None)[part])

    def _on_cell(self, true: int, output: int) -> None:
        """Select a cell; a cell of parent classes stands for several, and has no list of votes."""
        if self.modes.mode != "parents":
            self.cell_chosen.emit(true, output)

    def _on_confusion(self, cell: tuple[int, int]) -> None:
        self.cell_chosen.emit(*cell)
