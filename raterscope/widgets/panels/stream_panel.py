"""Panel of a stream of clicks: replay, live watching, and the state of the stop rule."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from raterscope.algorithms.clicks.stopping import StoppingSettings, StreamHistory
from raterscope.figures.courses import outlook_in_words, state_in_words
from raterscope.text import count
from raterscope.widgets import theme
from raterscope.widgets.hints import KeyHelp
from raterscope.widgets.layouts import STRETCH, horizontal, vertical
from raterscope.widgets.panels.settings_form import SettingsForm
from raterscope.widgets.panels.stream_controls import (
    LiveControls,
    LiveLine,
    Offers,
    ReplayControls,
    ReplayLine,
)
from raterscope.widgets.parts import ElidedLabel, Header, Pair, plain_label, rule, scroll_area
from raterscope.widgets.theme import set_lengths

FIRM, LOOSE = "Stop rule met: no more annotators needed", "Stop rule not met"
FORM_WIDTH, FIRST_WIDTH, SIDE_BY_SIDE_FROM = 460, 230, 500


class StreamPanel(QWidget):
    """Panel of replay and live watching. Space plays or pauses; Home and End jump to the ends."""

    # replay_requested, watch_requested, resume_requested: an offer was accepted
    replay_requested = Signal()
    watch_requested = Signal()
    resume_requested = Signal()
    # leave_requested, shuffle_requested: of a replay
    leave_requested = Signal()
    shuffle_requested = Signal()
    play_toggled = Signal(bool)
    position_chosen = Signal(int)  # the step selected, from 1; 0 is before the first
    order_chosen = Signal(str)  # "time" or "random"
    batch_chosen = Signal(int)  # annotators a step
    speed_chosen = Signal(float)  # steps a second
    pause_toggled = Signal(bool)
    stop_requested = Signal()  # of a source that is watched
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
        """Show what can be started."""
        self._show(self.offers)
        self._header.set_title("Stream")
        self._header.set_aside("")

    def show_replay(self, line: ReplayLine) -> None:
        """Show the state of a replay."""
        self.replay.set_line(line)
        self._show(self.replay)
        self._header.set_title("Replay")
        worked = f"{line.ready:,} of {count(line.steps, 'step')} computed" if line.ready < line.steps else ""
        text = "playing" if line.playing else "paused"
        self._header.set_aside(", ".join(part for part in (worked, text) if part))

    def show_live(self, line: LiveLine) -> None:
        """Show the state of a watched source."""
        self.live.set_line(line)
        self._show(self.live)
        self._header.set_title("Watching", line.name)
        self._header.set_aside(line.words)

    def set_replayable(self, why_not: str = "") -> None:
        """Show why the clicks cannot be replayed; an empty text enables the replay."""
        self.offers.set_replayable(why_not)

    def set_resumable(self, name: str = "", words: str = "") -> None:
        """Offer to resume a stopped source, with its progress; an empty name offers none."""
        self.offers.set_resumable(name, words)

    def set_state(self, history: StreamHistory | None, step: int = 0) -> None:
        """Show how close the image on screen is to the stop rule.

        `history`: its own; None where nothing has come to it. `step`: the one on screen, from 1; 0 is before
        the first.
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

    @property
    def stopping(self) -> StoppingSettings:
        """The stop rule as last set without an error."""
        return self._stopping

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
        self.offers.replay_requested.connect(self.replay_requested)
        self.offers.watch_requested.connect(self.watch_requested)
        self.offers.resume_requested.connect(self.resume_requested)
        self.leave.clicked.connect(self.leave_requested)
        self.replay.shuffle_requested.connect(self.shuffle_requested)
        self.replay.play_toggled.connect(self.play_toggled)
        self.replay.position_chosen.connect(self.position_chosen)
        self.replay.order_chosen.connect(self.order_chosen)
        self.replay.batch_chosen.connect(self.batch_chosen)
        self.replay.speed_chosen.connect(self.speed_chosen)
        self.live.pause_toggled.connect(self.pause_toggled)
        self.live.stop_requested.connect(self.stop_requested)
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
            page.setFocus()  # before the other hides: else Qt hands the keys to whatever comes next
        for widget in self._pages:
            widget.setVisible(widget is page)
        self.leave.setVisible(page is self.replay)

    def _show_stop_rule(self) -> None:
        settings = self.form.settings()
        assert isinstance(settings, StoppingSettings)
        self._stopping = settings
        self._summary.setText(settings.in_words())

    def _on_stopping(self) -> None:
        if not self.form.error():
            self._show_stop_rule()
            self.stopping_changed.emit(self._stopping)
