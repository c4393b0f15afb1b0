"""Panel of a stream of clicks: controls of replay and live watching, state of the stop rule."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QElapsedTimer, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QFontMetrics, QHideEvent, QKeyEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSlider, QWidget

from raterscope.algorithms.clicks.stopping import StoppingSettings, StreamHistory
from raterscope.figures.courses import outlook_in_words, state_in_words
from raterscope.text import counted, duration
from raterscope.widgets import theme
from raterscope.widgets.figures.figure_panel import ModeSwitch
from raterscope.widgets.hints import KeyHelp
from raterscope.widgets.layouts import (
    STRETCH,
    Pair,
    WrappingRow,
    beside,
    horizontal,
    rule,
    scroll_area,
    vertical,
)
from raterscope.widgets.panels.settings_form import SettingsForm
from raterscope.widgets.parts import ChoiceBox, ElidedLabel, Header, plain_label
from raterscope.widgets.theme import pixels, set_lengths

TICK_MS = 1000
FIGURE_WIDTH = 80


@dataclass(frozen=True, slots=True)
class LiveLine:
    """State of a watched source."""

    name: str  # name of the source
    text: str  # activity: "reading", "waiting for new clicks"
    paused: bool
    since: float | None  # seconds since the last clicks; None before any
    # clicks, annotators, images: numbers so far
    clicks: int
    annotators: int
    images: int
    refused: int = 0  # number of invalid lines, which are skipped
    notice: str = ""  # last notice about reading the source


class LiveControls(QWidget):
    """Counts of a watched source, with Pause and Stop."""

    pause_toggled = Signal(bool)

    def __init__(self) -> None:
        super().__init__()
        self._line: LiveLine | None = None
        self._since_update = QElapsedTimer()
        self._timer = QTimer(self, interval=TICK_MS)
        self._timer.timeout.connect(self._show_since)
        names = ("last arrival", "clicks", "annotators", "images", "rejected lines")
        self._figures = {name: plain_label() for name in names}
        cells = [_cell(figure, name) for name, figure in self._figures.items()]
        self.pause, self.stop = QPushButton("Pause"), QPushButton("Stop")
        set_lengths(self.pause, minimumWidth=84)
        self.stop.setToolTip("Save the current result as a run. You can resume it later")
        self._notice = ElidedLabel("", "disputed")
        groups = WrappingRow((beside(self.pause, self.stop), *cells), 8, 6)
        vertical(groups, self._notice, inside=self, spacing=6)
        self.setFocusProxy(self.pause)
        self.pause.clicked.connect(self.toggle)

    def set_line(self, line: LiveLine) -> None:
        """Show the state of the source."""
        self._line = line
        self._since_update.start()
        for name in ("clicks", "annotators", "images"):
            self._figures[name].setText(counted(getattr(line, name)))
        refused = self._figures["rejected lines"]
        refused.setText(counted(line.refused))
        theme.set_role(refused, "rejected" if line.refused else "")
        self._notice.setText(line.notice)
        self.pause.setText("Resume" if line.paused else "Pause")
        self._show_since()
        self._settle()

    def toggle(self) -> None:
        """Request pause or resume."""
        if self._line is not None:
            self.pause_toggled.emit(not self._line.paused)

    def showEvent(self, event: QShowEvent) -> None:
        """Update the elapsed time while visible."""
        super().showEvent(event)
        self._settle()

    def hideEvent(self, event: QHideEvent) -> None:
        """Stop the timer while hidden."""
        super().hideEvent(event)
        self._timer.stop()

    def _settle(self) -> None:
        if self.isVisible() and self._line is not None and self._line.since is not None:
            self._show_since()
            self._timer.start()
        else:
            self._timer.stop()

    def _show_since(self) -> None:
        line = self._line
        since = (
            None if line is None or line.since is None else line.since + self._since_update.elapsed() / 1000
        )
        text = "none yet" if since is None else "just now" if since < 1 else f"{duration(since)} ago"
        self._figures["last arrival"].setText(text)


def _cell(figure: QWidget, name: str) -> QWidget:
    set_lengths(figure, minimumWidth=FIGURE_WIDTH)
    figure.setAccessibleDescription(name)
    block = QWidget()
    vertical(figure, plain_label(name, "hint"), inside=block)
    return block


ORDERS = {
    "time": ("by time", "Annotators in order of their first click"),
    "random": ("at random", "Annotators in random order"),
}
BATCHES = (1, 2, 3, 5, 10, 20, 50, 100)
SPEEDS = (1.0, 2.0, 5.0, 10.0, 20.0, 60.0)
NO_TIMES = "These clicks have no times"
CHOICE_WIDTH, CONTROLS_SIDE_BY_SIDE_FROM = 72, 400


@dataclass(frozen=True, slots=True)
class ReplayLine:
    """State of a replay."""

    annotators: int  # number of annotators of the image
    # steps, ready: total number of steps, and number of computed steps
    steps: int
    ready: int
    position: int  # the step on screen, from 1; 0 is before the first
    playing: bool
    order: str  # {"time", "random"}
    timed: bool  # whether the clicks carry times
    batch: int  # annotators per step
    speed: float  # steps per second


class ReplayControls(QWidget):
    """Play, step slider, order, batch and speed of a replay."""

    play_toggled = Signal(bool)
    position_chosen = Signal(int)  # the step selected, from 1; 0 is before the first
    batch_chosen = Signal(int)  # annotators per step
    speed_chosen = Signal(float)  # steps per second

    def __init__(self) -> None:
        super().__init__()
        self._line = ReplayLine(0, 0, 0, 0, False, "time", True, 1, 1.0)
        self.back, self.play, self.next = QPushButton("Back"), QPushButton("Play"), QPushButton("Next")
        self.back.setToolTip("Previous step (Left)")
        self.play.setToolTip("Play the steps (Space)")
        self.next.setToolTip("Next step (Right)")
        for button in (self.back, self.next):
            button.setAutoRepeat(True)
        for button in (self.back, self.play, self.next):
            theme.set_role(button, "narrow")
        set_lengths(self.play, minimumWidth=60)
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
        for batch in BATCHES:
            self.batch.addItem(f"{batch:,}", batch)
        for speed in SPEEDS:
            self.speed.addItem(f"{speed:g}", speed)
        sliding = beside(self.slider, self._place)
        controls = Pair(beside(self.back, self.play, self.next), sliding, CONTROLS_SIDE_BY_SIDE_FROM, 8, 6)
        choices = WrappingRow(
            (
                beside(plain_label("Order", "second"), self.order),
                self.shuffle,
                beside(plain_label("Annotators per step", "second"), self.batch),
                beside(plain_label("Steps per second", "second"), self.speed),
            ),
            20,
            6,
        )
        vertical(controls, choices, inside=self, spacing=6)
        self.setFocusProxy(self.slider)
        self._connect()

    def _connect(self) -> None:
        self.back.clicked.connect(self._on_back)
        self.next.clicked.connect(self._on_next)
        self.play.clicked.connect(self.toggle)
        self.slider.valueChanged.connect(self._on_slider)
        self.batch.activated.connect(self._on_batch)
        self.speed.activated.connect(self._on_speed)

    def set_line(self, line: ReplayLine) -> None:
        """Show the state of the replay, without a signal."""
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
        annotators, most = min(line.position * line.batch, line.annotators), f"{line.annotators:,}"
        self._place.setText(f"{annotators:,} of {most}")
        self._place.setToolTip(f"{annotators:,} of {counted(line.annotators, 'annotator')}")
        widest = QFontMetrics(theme.font()).horizontalAdvance(f"{most} of {most}")
        set_lengths(self._place, minimumWidth=widest + 4)

    def toggle(self) -> None:
        """Request play or pause."""
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

    def _on_batch(self) -> None:
        self.batch_chosen.emit(self.batch.key)

    def _on_speed(self) -> None:
        self.speed_chosen.emit(self.speed.key)


def _choice(name: str) -> ChoiceBox:
    box = ChoiceBox(name, letters=3)
    set_lengths(box, width=CHOICE_WIDTH)
    return box


def _choose(box: ChoiceBox, value: float) -> None:
    """Select a value in a choice, adding it if it is not offered."""
    if box.findData(value) < 0:
        box.addItem(f"{value:,g}", value)
    box.choose(value)


REPLAY = "Replay the clicks on this image, one annotator after another."
WATCH = "CSV, JSON lines or Zooniverse exports that are still growing."
WIDTH = 300


class Offers(WrappingRow):
    """Start page of a stream: replay clicks, watch a source, or resume a stopped one."""

    def __init__(self) -> None:
        self.replay, self.watch = QPushButton("Replay these clicks"), QPushButton("Watch a file or folder…")
        self.resume = QPushButton("Resume")
        theme.set_role(self.replay, "primary")
        self._replay_label = plain_label(REPLAY, "second", wrap=True)
        self._source = ElidedLabel("", elide=Qt.TextElideMode.ElideMiddle)
        self._resume_label = plain_label("", "second", wrap=True)
        self._resume = _Offer(self.resume, self._source, self._resume_label)
        watch = _Offer(self.watch, plain_label(WATCH, "second", wrap=True))
        replay = _Offer(self.replay, self._replay_label)
        super().__init__((self._resume, replay, watch), 24, 12)
        self._resume.hide()

    def set_replayable(self, why_not: str = "") -> None:
        """Show why a replay is not possible; an empty text enables it."""
        self.replay.setEnabled(not why_not)
        self._replay_label.setText(why_not or REPLAY)
        self._choose_first()

    def set_resumable(self, name: str = "", text: str = "") -> None:
        """Offer to resume a stopped source, with its progress; an empty name offers none."""
        self._source.setText(name)
        self._resume_label.setText(text)
        self.resume.setAccessibleName(f"Resume {name}")
        self._resume.setVisible(bool(name))
        self._choose_first()

    def _choose_first(self) -> None:
        """Highlight the most likely choice."""
        resume, replay = not self._resume.isHidden(), self.replay.isEnabled()
        theme.set_role(self.resume, "primary" if resume else "")
        theme.set_role(self.replay, "primary" if replay and not resume else "")
        theme.set_role(self.watch, "" if replay or resume else "primary")


class _Offer(QWidget):
    """Button with a description below it, no wider than a readable line."""

    def __init__(self, button: QPushButton, *words: QWidget) -> None:
        super().__init__()
        set_lengths(self, maximumWidth=WIDTH)
        vertical((button, 0, Qt.AlignmentFlag.AlignLeft), *words, inside=self, spacing=6)

    def sizeHint(self) -> QSize:
        return QSize(pixels(WIDTH), super().sizeHint().height())


FIRM, LOOSE = "Stop rule met: no more annotators needed", "Stop rule not met"
FORM_WIDTH, FIRST_WIDTH, SIDE_BY_SIDE_FROM = 460, 200, 500


class StreamPanel(QWidget):
    """Panel of replay and live watching. Space plays or pauses; Home and End jump to the ends."""

    stopping_changed = Signal(object)

    def __init__(self, stopping: StoppingSettings | None = None) -> None:
        super().__init__()
        theme.set_role(self, "panel")
        self.setAccessibleName("Stream")
        self._header = Header("Stream")
        self.leave = QPushButton("Exit replay")
        self.leave.setToolTip("Return to the last fusion (Esc)")
        theme.set_role(self.leave, "link")
        self._header.row.addWidget(self.leave)
        self.offers, self.replay, self.live = Offers(), ReplayControls(), LiveControls()
        self._pages = (self.offers, self.replay, self.live)
        self.form = SettingsForm(StoppingSettings, stopping)
        set_lengths(self.form, maximumWidth=FORM_WIDTH)
        inner = QWidget()
        self._area = area = scroll_area(inner)
        vertical(self._header, (area, 1), inside=self, margins=(12, 8, 4, 4), spacing=6)
        vertical(
            self._state_block(),
            *self._pages,
            self._stopping_block(),
            self.form,
            STRETCH,
            inside=inner,
            margins=(0, 0, 8, 4),
            spacing=8,
        )
        self._page: QWidget = self.offers
        self._connect()
        self.set_state(None)
        self.show_idle()
        self._show_stop_rule()

    def show_idle(self) -> None:
        """Show the start page."""
        self._show(self.offers)
        self._header.set_title("Stream")
        self._header.set_subtitle("")

    def show_replay(self, line: ReplayLine) -> None:
        """Show the state of a replay."""
        self.replay.set_line(line)
        self._show(self.replay)
        self._header.set_title("Replay")
        worked = (
            f"{line.ready:,} of {counted(line.steps, 'step')} computed" if line.ready < line.steps else ""
        )
        text = "playing" if line.playing else "paused"
        self._header.set_subtitle(", ".join(part for part in (worked, text) if part))

    def show_live(self, line: LiveLine) -> None:
        """Show the state of a watched source."""
        self.live.set_line(line)
        self._show(self.live)
        self._header.set_title("Watching", line.name)
        self._header.set_subtitle(line.text)

    def set_state(self, history: StreamHistory | None, step: int = 0) -> None:
        """Show how close the image on screen is to the stop rule.

        `history`: history of the image; None before the first clicks. `step`: the step on screen, from 1; 0
        is before the first step.
        """
        known = history is not None and 1 <= step <= len(history)
        self._state.setVisible(known)
        if history is None or not known:
            return
        firm = bool(history.firm[step - 1])
        self._firm.setText(FIRM if firm else LOOSE)
        theme.set_role(self._firm, "accent" if firm else "disputed")
        rule = "share" if self.stopping.rule == "share" else "chance"
        self._outlook.setText(outlook_in_words(history, step - 1, self.stopping.more, rule))
        counts, changed = state_in_words(history, step - 1, self.stopping)
        self._counts.setText(counts)
        self._changed.setText(changed)

    KEY_HELP = KeyHelp("In the stream", (("Space", "play, pause"), ("Home, End", "start, end of the replay")))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Play or pause with Space, jump to an end with Home and End, wherever the focus is in the panel."""
        key, slider = event.key(), self.replay.slider
        if self._page is self.replay and key == Qt.Key.Key_Space:
            self.replay.toggle()
        elif self._page is self.live and key == Qt.Key.Key_Space:
            self.live.toggle()
        elif self._page is self.replay and key in (Qt.Key.Key_Home, Qt.Key.Key_End):
            slider.setValue(slider.minimum() if key == Qt.Key.Key_Home else slider.maximum())
        else:
            super().keyPressEvent(event)

    def _state_block(self) -> QWidget:
        self._firm, self._outlook = plain_label(), ElidedLabel()
        self._counts, self._changed = plain_label("", "second"), ElidedLabel("", "second")
        for label in (self._firm, self._counts):
            set_lengths(label, minimumWidth=FIRST_WIDTH)
        self._state = QWidget()
        column = vertical(inside=self._state, spacing=2)
        for pair in ((self._firm, self._outlook), (self._counts, self._changed)):
            column.addWidget(Pair(*pair, SIDE_BY_SIDE_FROM, 16, 2))
        column.addSpacing(4)
        column.addWidget(rule())
        return self._state

    def _stopping_block(self) -> QHBoxLayout:
        self.fold = QPushButton("Stop rule")
        theme.set_role(self.fold, "link")
        self.fold.setCheckable(True)
        self.fold.setToolTip("Set when an image needs no more annotators")
        self._summary = ElidedLabel("", "hint")
        row = horizontal(self.fold, (self._summary, 1), spacing=12)
        self.form.hide()
        return row

    def _connect(self) -> None:
        self.fold.toggled.connect(self.form.setVisible)
        self.form.changed.connect(self._on_stopping)

    def _show(self, page: QWidget) -> None:
        focus = self.window().focusWidget()
        leaving: list[QWidget] = [widget for widget in self._pages if widget is not page]
        if page is not self.replay:
            leaving.append(self.leave)
        leaves = focus is not None and any(
            widget is focus or widget.isAncestorOf(focus) for widget in leaving
        )
        if page is not self._page:
            self._area.verticalScrollBar().setValue(0)
        self._page = page
        self.setFocusProxy(page)
        page.show()
        if leaves:
            page.setFocus()  # before the other page hides; otherwise Qt moves the focus to any other widget
        for widget in self._pages:
            widget.setVisible(widget is page)
        self.leave.setVisible(page is self.replay)

    def _show_stop_rule(self) -> None:
        settings = self.form.settings()
        assert isinstance(settings, StoppingSettings)
        self.stopping = settings
        """Last valid stop rule."""
        self._summary.setText(settings.in_words().removeprefix("stop rule "))

    def _on_stopping(self) -> None:
        if not self.form.error():
            self._show_stop_rule()
            self.stopping_changed.emit(self.stopping)
