"""How a replay of clicks is steered."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QPushButton, QSlider, QVBoxLayout, QWidget

from raterscope.text.numbers import count
from raterscope.widgets import theme
from raterscope.widgets.figures.mode_switch import ModeSwitch
from raterscope.widgets.parts import ChoiceBox, plain_label
from raterscope.widgets.text_size import set_lengths
from raterscope.widgets.wrapping import Pair, WrappingRow, beside

__all__ = ["ReplayControls", "ReplayLine"]

ORDERS = {
    "time": ("by time", "Annotators in order of their first click"),
    "random": ("at random", "Annotators in random order"),
}
BATCHES = (1, 2, 3, 5, 10, 20, 50, 100)
SPEEDS = (1.0, 2.0, 5.0, 10.0, 20.0, 60.0)
NO_TIMES = "These clicks have no times"
CHOICE_WIDTH, SIDE_BY_SIDE_FROM = 88, 400


@dataclass(frozen=True, slots=True)
class ReplayLine:
    """Where a replay stands.

    Attributes
    ----------
    annotators : int
        Of the image.
    steps, ready : int
        That there will be, and that are worked out.
    position : int
        The step on screen, from 1; 0 is before the first.
    playing : bool
    order : {"time", "random"}
    timed : bool
        Whether the clicks carry times.
    batch : int
        Annotators per step.
    speed : float
        Steps per second.
    """

    annotators: int
    steps: int
    ready: int
    position: int
    playing: bool
    order: str
    timed: bool
    batch: int
    speed: float


class ReplayControls(QWidget):
    """Play, a slider through the steps, order, batch and speed.

    Signals
    -------
    shuffle_requested
    play_toggled : bool
    position_chosen, batch_chosen : int
    order_chosen : str
    speed_chosen : float
    """

    shuffle_requested = Signal()
    play_toggled = Signal(bool)
    position_chosen = Signal(int)
    batch_chosen = Signal(int)
    order_chosen = Signal(str)
    speed_chosen = Signal(float)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._line = ReplayLine(0, 0, 0, 0, False, "time", True, 1, 1.0)
        self.back, self.play, self.next = QPushButton("Back"), QPushButton("Play"), QPushButton("Next")
        self.back.setToolTip("Previous step (Left)")
        self.play.setToolTip("Play the steps (Space)")
        self.next.setToolTip("Next step (Right)")
        for button in (self.back, self.next):
            button.setAutoRepeat(True)
        set_lengths(self.play, minimumWidth=72)
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setAccessibleName("Step of the replay")
        set_lengths(self.slider, minimumWidth=60)
        self._place = plain_label()
        self._place.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.order = ModeSwitch(ORDERS)
        self.shuffle = QPushButton("Shuffle again")
        theme.set_role(self.shuffle, "link")
        self.shuffle.setToolTip("Draw another random order")
        self.batch, self.speed = _choice("Annotators per step"), _choice("Steps per second")
        for many in BATCHES:
            self.batch.addItem(f"{many:,}", many)
        for speed in SPEEDS:
            self.speed.addItem(f"{speed:g}", speed)
        sliding = beside(self.slider, self._place)
        way = Pair(beside(self.back, self.play, self.next), sliding, SIDE_BY_SIDE_FROM, 8, 6)
        choices = WrappingRow(
            (
                beside(plain_label("Order", "second"), self.order, self.shuffle),
                beside(plain_label("Annotators per step", "second"), self.batch),
                beside(plain_label("Steps per second", "second"), self.speed),
            ),
            20,
            6,
        )
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addWidget(way)
        column.addWidget(choices)
        self.setFocusProxy(self.slider)
        self._connect()

    def _connect(self) -> None:
        self.back.clicked.connect(self._on_back)
        self.next.clicked.connect(self._on_next)
        self.play.clicked.connect(self.toggle)
        self.slider.valueChanged.connect(self._on_slider)
        self.order.chosen.connect(self._on_order)
        self.shuffle.clicked.connect(self.shuffle_requested)
        self.batch.activated.connect(self._on_batch)
        self.speed.activated.connect(self._on_speed)

    def set_line(self, line: ReplayLine) -> None:
        """Show where the replay stands; nothing is told of it."""
        self._line = line
        for widget in (self.slider, self.order):
            widget.blockSignals(True)
        self.slider.setRange(0, line.steps)
        self.slider.setPageStep(max(1, line.steps // 20))
        if not self.slider.isSliderDown():
            self.slider.setValue(line.position)
        self.order.set_mode(line.order)
        self.order.set_available("time", line.timed, NO_TIMES)
        for widget in (self.slider, self.order):
            widget.blockSignals(False)
        self.shuffle.setEnabled(line.order == "random")
        _choose(self.batch, line.batch)
        _choose(self.speed, line.speed)
        self.play.setText("Pause" if line.playing else "Play")
        self.back.setEnabled(line.position > 0)
        self.next.setEnabled(line.position < line.ready)
        shown, most = min(line.position * line.batch, line.annotators), f"{line.annotators:,}"
        self._place.setText(f"{shown:,} of {most}")
        self._place.setToolTip(f"{shown:,} of {count(line.annotators, 'annotator')}")
        widest = QFontMetrics(theme.font()).horizontalAdvance(f"{most} of {most}")
        set_lengths(self._place, minimumWidth=widest + 4)

    def toggle(self) -> None:
        """Ask to play, or to pause."""
        self.play_toggled.emit(not self._line.playing)

    def _on_back(self) -> None:
        self.slider.setValue(self.slider.value() - 1)

    def _on_next(self) -> None:
        self.slider.setValue(self.slider.value() + 1)

    def _on_slider(self, step: int) -> None:
        if step > self._line.ready:
            self.slider.setValue(self._line.ready)
        else:
            self.position_chosen.emit(step)

    def _on_order(self, name: str) -> None:
        self.order_chosen.emit(name)

    def _on_batch(self) -> None:
        self.batch_chosen.emit(self.batch.currentData())

    def _on_speed(self) -> None:
        self.speed_chosen.emit(self.speed.currentData())


def _choice(name: str) -> ChoiceBox:
    box = ChoiceBox()
    box.setMinimumContentsLength(3)
    set_lengths(box, width=CHOICE_WIDTH)
    box.setAccessibleName(name)
    return box


def _choose(box: ChoiceBox, value: float) -> None:
    """Show a value in a choice, which is offered where it was not."""
    if box.findData(value) < 0:
        box.addItem(f"{value:,g}", value)
    box.setCurrentIndex(box.findData(value))
