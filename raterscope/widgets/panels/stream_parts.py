"""The parts of a stream's panel: what is offered, how a replay is steered, what has come of a source."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QElapsedTimer, Qt, QTimer, Signal
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSlider, QVBoxLayout, QWidget

from raterscope.widgets import theme
from raterscope.widgets.figures import count, duration
from raterscope.widgets.parts import ChoiceBox, ElidedLabel, plain_label
from raterscope.widgets.plots.mode_switch import ModeSwitch
from raterscope.widgets.wrapping import WrappingRow

__all__ = ["LiveControls", "LiveLine", "Offers", "ReplayControls", "ReplayLine"]

ORDERS = {
    "time": ("by time", "Annotators in the order of their first clicks"),
    "random": ("at random", "Annotators in an order that is drawn"),
}
BATCHES = (1, 2, 3, 5, 10, 20, 50, 100)
SPEEDS = (1.0, 2.0, 5.0, 10.0, 20.0, 60.0)
REPLAY = "The clicks of this image come once more, annotator by annotator: see when its answer was firm."
WATCH = "Clicks are taken in as they arrive: CSV, JSON lines or Zooniverse exports that grow or are replaced."
NO_TIMES = "These clicks carry no times"
TICK_MS = 1000
FIGURE_WIDTH, CHOICE_WIDTH, OFFER_WIDTH = 84, 76, 300


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
        Annotators a step.
    speed : float
        Steps a second.
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


@dataclass(frozen=True, slots=True)
class LiveLine:
    """What has come of a source that is watched.

    Attributes
    ----------
    name : str
        The source's.
    words : str
        What is being done: "reading", "waiting for new clicks".
    paused : bool
    since : float or None
        Seconds since something came; None where nothing has.
    clicks, annotators, images : int
        So far.
    refused : int
        Lines that were left out because something is wrong in them.
    notice : str
        What is to be known of how the source was read, last.
    """

    name: str
    words: str
    paused: bool
    since: float | None
    clicks: int
    annotators: int
    images: int
    refused: int = 0
    notice: str = ""


class Offers(WrappingRow):
    """What can be done with a stream: replay what is there, watch what comes, go on with what was stopped.

    Signals
    -------
    replay_requested, watch_requested, resume_requested
    """

    replay_requested = Signal()
    watch_requested = Signal()
    resume_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        self.replay, self.watch = QPushButton("Replay these clicks"), QPushButton("Watch a file or folder…")
        self.resume = QPushButton("Resume")
        theme.set_role(self.replay, "primary")
        self._replay_words = plain_label(REPLAY, "second", wrap=True)
        self._source = ElidedLabel("", elide=Qt.TextElideMode.ElideMiddle)
        self._resume_words = plain_label("", "second", wrap=True)
        self._resume = _offer(self.resume, self._resume_words, self._source)
        watch = _offer(self.watch, plain_label(WATCH, "second", wrap=True))
        replay = _offer(self.replay, self._replay_words)
        super().__init__((replay, watch, self._resume), 24, 12, parent=parent)
        self._resume.hide()
        self.replay.clicked.connect(self.replay_requested)
        self.watch.clicked.connect(self.watch_requested)
        self.resume.clicked.connect(self.resume_requested)

    def set_replayable(self, why_not: str) -> None:
        """Say why nothing can be replayed; no words where it can."""
        self.replay.setEnabled(not why_not)
        self._replay_words.setText(why_not or REPLAY)

    def set_resumable(self, name: str, words: str) -> None:
        """Offer to go on with a source that was stopped; no name for none."""
        self._source.setText(name)
        self._resume_words.setText(words)
        self.resume.setAccessibleName(f"Resume {name}")
        self._resume.setVisible(bool(name))


class ReplayControls(QWidget):
    """Play, a slider through the steps, order, batch and speed.

    Signals
    -------
    leave_requested, shuffle_requested
    play_toggled : bool
    position_chosen, batch_chosen : int
    order_chosen : str
    speed_chosen : float
    """

    leave_requested = Signal()
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
        self.back.setToolTip("One step back (Left)")
        self.play.setToolTip("Go through the steps (Space)")
        self.next.setToolTip("One step on (Right)")
        for button in (self.back, self.next):
            button.setAutoRepeat(True)
        self.play.setMinimumWidth(72)
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setAccessibleName("Step of the replay")
        self.slider.setMinimumWidth(60)
        self._place = plain_label()
        self._place.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.order = ModeSwitch(ORDERS)
        self.shuffle = QPushButton("New shuffle")
        theme.set_role(self.shuffle, "link")
        self.shuffle.setToolTip("Draw another order")
        self.batch, self.speed = _choice("Annotators a step"), _choice("Steps a second")
        for many in BATCHES:
            self.batch.addItem(f"{many:,}", many)
        for speed in SPEEDS:
            self.speed.addItem(f"{speed:g}", speed)
        self.leave = QPushButton("Leave replay")
        way = QHBoxLayout()
        way.setSpacing(8)
        for button in (self.back, self.play, self.next):
            way.addWidget(button)
        way.addWidget(self.slider, 1)
        way.addWidget(self._place)
        choices = WrappingRow(
            (
                _row(plain_label("Order", "second"), self.order, self.shuffle),
                _row(plain_label("Annotators a step", "second"), self.batch),
                _row(plain_label("Steps a second", "second"), self.speed),
                self.leave,
            ),
            20,
            6,
            last_right=True,
        )
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addLayout(way)
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
        self.leave.clicked.connect(self.leave_requested)

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
        shown, most = min(line.position * line.batch, line.annotators), count(line.annotators, "annotator")
        self._place.setText(f"{shown:,} of {most}")
        widest = self._place.fontMetrics().horizontalAdvance(f"{line.annotators:,} of {most}")
        self._place.setMinimumWidth(widest + 4)

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


class LiveControls(QWidget):
    """What has come, when last, Pause and Stop.

    Signals
    -------
    pause_toggled : bool
    stop_requested
    """

    pause_toggled = Signal(bool)
    stop_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._line: LiveLine | None = None
        self._heard = QElapsedTimer()
        self._timer = QTimer(self)
        self._timer.setInterval(TICK_MS)
        self._timer.timeout.connect(self._tell_since)
        names = ("last arrival", "clicks", "annotators", "images", "lines refused")
        self._figures = {name: plain_label() for name in names}
        cells = [_cell(figure, name) for name, figure in self._figures.items()]
        self.pause, self.stop = QPushButton("Pause"), QPushButton("Stop")
        self.pause.setMinimumWidth(84)
        self.stop.setToolTip("Keep what it has come to as a run; it can be resumed")
        self._notice = ElidedLabel("", "disputed")
        parts = (*cells, _row(self.pause, self.stop))
        groups = WrappingRow(parts, 8, 6, last_right=True)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addWidget(groups)
        column.addWidget(self._notice)
        self.setFocusProxy(self.pause)
        self.pause.clicked.connect(self.toggle)
        self.stop.clicked.connect(self.stop_requested)

    def set_line(self, line: LiveLine) -> None:
        """Show what has come."""
        self._line = line
        self._heard.start()
        for name in ("clicks", "annotators", "images"):
            self._figures[name].setText(count(getattr(line, name)))
        refused = self._figures["lines refused"]
        refused.setText(count(line.refused))
        theme.set_role(refused, "rejected" if line.refused else "")
        self._notice.setText(line.notice)
        self.pause.setText("Resume" if line.paused else "Pause")
        self._tell_since()
        self._settle()

    def toggle(self) -> None:
        """Ask to pause, or to go on."""
        if self._line is not None:
            self.pause_toggled.emit(not self._line.paused)

    def showEvent(self, event: QShowEvent) -> None:
        """Tell how long ago something came, as long as it is seen."""
        super().showEvent(event)
        self._settle()

    def hideEvent(self, event: QHideEvent) -> None:
        """Nothing ticks unseen."""
        super().hideEvent(event)
        self._timer.stop()

    def _settle(self) -> None:
        if self.isVisible() and self._line is not None and self._line.since is not None:
            self._tell_since()
            self._timer.start()
        else:
            self._timer.stop()

    def _tell_since(self) -> None:
        line = self._line
        since = None if line is None or line.since is None else line.since + self._heard.elapsed() / 1000
        words = "none yet" if since is None else "just now" if since < 1 else f"{duration(since)} ago"
        self._figures["last arrival"].setText(words)


def _offer(button: QPushButton, words: QWidget, name: QWidget | None = None) -> QWidget:
    block = QWidget()
    block.setFixedWidth(OFFER_WIDTH)
    column = QVBoxLayout(block)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(6)
    column.addWidget(button, 0, Qt.AlignmentFlag.AlignLeft)
    for widget in (name, words):
        if widget is not None:
            column.addWidget(widget)
    return block


def _row(*widgets: QWidget) -> QWidget:
    block = QWidget()
    row = QHBoxLayout(block)
    row.setContentsMargins(0, 0, 0, 0)
    row.setSpacing(8)
    for widget in widgets:
        row.addWidget(widget)
    return block


def _cell(figure: QWidget, name: str) -> QWidget:
    figure.setMinimumWidth(FIGURE_WIDTH)
    figure.setAccessibleDescription(name)
    block = QWidget()
    column = QVBoxLayout(block)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(0)
    column.addWidget(figure)
    column.addWidget(plain_label(name, "hint"))
    return block


def _choice(name: str) -> ChoiceBox:
    box = ChoiceBox()
    box.setMinimumContentsLength(3)
    box.setFixedWidth(CHOICE_WIDTH)
    box.setAccessibleName(name)
    return box


def _choose(box: ChoiceBox, value: float) -> None:
    """Show a value in a choice, which is offered where it was not."""
    if box.findData(value) < 0:
        box.addItem(f"{value:,g}", value)
    box.setCurrentIndex(box.findData(value))
