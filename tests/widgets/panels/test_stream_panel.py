import dataclasses

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication, QPushButton, QScrollArea, QStyle, QStyleOptionComboBox

from raterscope.algorithms.clicks.stopping import StoppingSettings, StreamHistory
from raterscope.widgets.panels.stream_panel import LiveLine, ReplayLine, StreamPanel
from tests.reading import visible_words

pytestmark = pytest.mark.usefixtures("dark")

REPLAY = ReplayLine(60, 60, 60, 23, False, "time", True, 1, 5.0)
LIVE = LiveLine("clicks.csv", "waiting for new clicks", False, 12.0, 104_812, 51, 12)
CHANCE = StoppingSettings(rule="chance", limit=0.05, more=5, unchanged=4)


@pytest.fixture
def panel(qtbot):
    widget = StreamPanel(CHANCE)
    qtbot.addWidget(widget)
    widget.resize(1100, 220)
    widget.show()
    return widget


def history(steps=30) -> StreamHistory:
    count = np.arange(1, steps + 1)
    band = np.full((steps, 3), np.nan)
    return StreamHistory(
        count, 20 * count, np.full(steps, 41), (count % 2) * 3, 6.0 / count, np.exp(-count / 10), band, band,
        count > 28, np.zeros(steps, dtype=bool),
    )  # fmt: skip


def recorded(signal) -> list:
    messages = []
    signal.connect(lambda *values: messages.append(values[0] if values else True))
    return messages


def presses(button) -> list:
    messages = []
    button.clicked.connect(lambda: messages.append(True))
    return messages


def click(qtbot, button):
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


def test_idle_it_offers_and_explains_replay_and_live_watching(panel, qtbot):
    replays, watches = presses(panel.offers.replay), presses(panel.offers.watch)
    assert "Replay the clicks on this image" in visible_words(panel)
    assert "CSV, JSON lines or Zooniverse exports" in visible_words(panel)
    click(qtbot, panel.offers.replay)
    qtbot.keyClick(panel.offers.watch, Qt.Key.Key_Space)
    assert (replays, watches) == ([True], [True])
    panel.offers.set_replayable("Fuse the image first.")
    assert "Fuse the image first." in visible_words(panel)
    click(qtbot, panel.offers.replay)
    assert replays == [True]


def test_a_source_that_was_stopped_is_offered_again_as_it_is_called(panel, qtbot):
    assert not panel.offers.resume.isVisible()
    panel.offers.set_resumable("<b>clicks</b>.csv", "1,048 clicks so far.")
    assert "<b>clicks</b>.csv" in visible_words(panel)
    resumes = presses(panel.offers.resume)
    click(qtbot, panel.offers.resume)
    assert resumes == [True]
    panel.offers.set_resumable()
    assert not panel.offers.resume.isVisible()


def test_a_replay_is_steered_by_slider_buttons_and_keys(panel, qtbot):
    panel.show_replay(REPLAY)
    assert "23 of 60" in visible_words(panel)
    steps = recorded(panel.replay.position_chosen)
    qtbot.keyClick(panel.replay.slider, Qt.Key.Key_Right)
    panel.show_replay(dataclasses.replace(REPLAY, position=24))
    qtbot.keyClick(panel.replay.slider, Qt.Key.Key_Home)
    panel.show_replay(dataclasses.replace(REPLAY, position=0))
    assert not panel.replay.back.isEnabled()
    qtbot.keyClick(panel.replay.batch, Qt.Key.Key_End)  # a choice keeps its own keys
    qtbot.keyClick(panel.replay.play, Qt.Key.Key_End)
    panel.show_replay(dataclasses.replace(REPLAY, position=60))
    assert not panel.replay.next.isEnabled()
    click(qtbot, panel.replay.back)
    assert steps == [24, 0, 60, 59]


def test_showing_a_result_emits_no_signal_and_moves_nothing_under_the_pointer(panel):
    steps, orders = recorded(panel.replay.position_chosen), recorded(panel.replay.order.chosen)
    panel.show_replay(REPLAY)
    panel.show_replay(dataclasses.replace(REPLAY, position=30, order="random", batch=4, speed=7.0))
    assert panel.replay.slider.value() == 30
    assert panel.replay.batch.currentText() == "4"
    assert panel.replay.speed.currentText() == "7"
    panel.replay.slider.setSliderDown(True)
    panel.show_replay(dataclasses.replace(REPLAY, position=31))
    assert panel.replay.slider.value() == 30
    panel.replay.slider.setSliderDown(False)
    assert (steps, orders) == ([], [])


def test_no_step_is_gone_to_that_is_not_worked_out(panel, qtbot):
    panel.show_replay(dataclasses.replace(REPLAY, ready=40))
    assert "40 of 60 steps computed, paused" in visible_words(panel)
    steps = recorded(panel.replay.position_chosen)
    qtbot.keyClick(panel.replay.slider, Qt.Key.Key_End)
    assert steps == [40]
    assert panel.replay.slider.value() == 40


def test_space_plays_and_pauses_wherever_the_focus_is(panel, qtbot):
    plays, pauses = recorded(panel.replay.play_toggled), recorded(panel.live.pause_toggled)
    panel.show_replay(REPLAY)
    qtbot.keyClick(panel.replay.slider, Qt.Key.Key_Space)
    panel.show_replay(dataclasses.replace(REPLAY, playing=True))
    assert panel.replay.play.text() == "Pause"
    qtbot.keyClick(panel, Qt.Key.Key_Space)
    click(qtbot, panel.replay.play)
    assert plays == [True, False, False]
    panel.show_live(LIVE)
    qtbot.keyClick(panel, Qt.Key.Key_Space)
    assert pauses == [True]


def test_order_batch_and_speed_of_a_replay_are_chosen(panel, qtbot):
    panel.show_replay(dataclasses.replace(REPLAY, annotators=11, steps=3, ready=3, batch=5, position=3))
    assert "11 of 11" in visible_words(panel)
    assert not panel.replay.shuffle.isEnabled()
    orders, shuffles = recorded(panel.replay.order.chosen), presses(panel.replay.shuffle)
    batches, speeds, leaves = (
        recorded(panel.replay.batch_chosen),
        recorded(panel.replay.speed_chosen),
        presses(panel.leave),
    )
    click(qtbot, panel.replay.order.buttons["random"])
    panel.show_replay(dataclasses.replace(REPLAY, order="random"))
    click(qtbot, panel.replay.shuffle)
    qtbot.keyClick(panel.replay.batch, Qt.Key.Key_Down)
    qtbot.keyClick(panel.replay.speed, Qt.Key.Key_Down)
    click(qtbot, panel.leave)
    assert (orders, shuffles, batches, speeds, leaves) == (["random"], [True], [2], [10.0], [True])


def test_every_batch_and_speed_is_read_whole(panel):
    panel.show_replay(REPLAY)
    for box in (panel.replay.batch, panel.replay.speed):
        option = QStyleOptionComboBox()
        box.initStyleOption(option)
        part = QStyle.SubControl.SC_ComboBoxEditField
        room = box.style().subControlRect(QStyle.ComplexControl.CC_ComboBox, option, part, box)
        widest = max(box.fontMetrics().horizontalAdvance(box.itemText(row)) for row in range(box.count()))
        assert widest <= room.width() - 4


def test_what_is_scrolled_past_keeps_its_choice(panel):
    panel.show_replay(REPLAY)
    speeds, speed = recorded(panel.replay.speed_chosen), panel.replay.speed
    speed.clearFocus()
    here = QPointF(speed.rect().center())
    turn = QWheelEvent(
        here, speed.mapToGlobal(here), QPoint(), QPoint(0, -120), Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(speed, turn)
    assert speed.currentData() == REPLAY.speed
    assert speeds == []


def test_what_comes_next_is_shown_from_its_top(panel, qapp):
    panel.resize(300, 160)
    panel.show_replay(REPLAY)
    qapp.processEvents()
    bar = panel.findChild(QScrollArea).verticalScrollBar()
    bar.setValue(bar.maximum())
    assert panel.leave.isVisible()
    panel.show_replay(dataclasses.replace(REPLAY, position=24))
    assert bar.value() == bar.maximum() > 0
    panel.show_idle()
    assert bar.value() == 0
    assert not panel.leave.isVisible()


def test_clicks_without_times_are_replayed_at_random_only(panel, qtbot):
    panel.show_replay(dataclasses.replace(REPLAY, order="random", timed=False))
    orders = recorded(panel.replay.order.chosen)
    by_time = panel.replay.order.buttons["time"]
    click(qtbot, by_time)
    assert orders == []
    assert "no times" in by_time.toolTip()


def test_a_watched_source_shows_what_arrived_and_when(panel, qtbot):
    panel.show_live(LIVE)
    for text in ("clicks.csv", "waiting for new clicks", "104,812", "51", "12 s ago"):
        assert text in visible_words(panel)
    qtbot.waitUntil(lambda: "13 s ago" in visible_words(panel))
    panel.show_live(dataclasses.replace(LIVE, since=None, refused=2, notice="<i>Line 3</i> is no click."))
    assert "none yet" in visible_words(panel)
    assert "<i>Line 3</i> is no click." in visible_words(panel)
    pauses, stops = recorded(panel.live.pause_toggled), presses(panel.live.stop)
    click(qtbot, panel.live.pause)
    panel.show_live(dataclasses.replace(LIVE, paused=True))
    assert panel.live.pause.text() == "Resume"
    click(qtbot, panel.live.pause)
    click(qtbot, panel.live.stop)
    assert (pauses, stops) == ([True, False], [True])


def test_the_stop_rule_of_the_image_on_screen_is_shown_with_its_reason(panel):
    panel.set_state(history(), 22)
    assert "Stop rule not met" in visible_words(panel)
    assert "11 % chance of a change with 5 more" in visible_words(panel)
    assert "22 annotators, 41 detections" in visible_words(panel)
    assert "6 decisions changed in 4 steps" in visible_words(panel)
    panel.set_state(history(), 30)
    assert "Stop rule met: no more annotators needed" in visible_words(panel)
    panel.set_state(history(), 1)
    assert "1 annotator, 41 detections" in visible_words(panel)
    assert "3 decisions changed with the last step" in visible_words(panel)
    panel.set_state(history(), 0)
    assert "Stop rule not met" not in visible_words(panel)


def test_where_shares_decide_the_changes_to_come_are_stated_as_such(qtbot):
    panel = StreamPanel(StoppingSettings(rule="share", more=2))
    qtbot.addWidget(panel)
    panel.show()
    panel.set_state(history(), 20)
    assert "2 more: 0.3 changes expected (under 1 %)" in visible_words(panel)


def test_the_stop_rule_is_set_in_the_unfolded_section(panel, qtbot):
    assert not panel.form.isVisible()
    assert "limit 0.05" in visible_words(panel)
    settings = recorded(panel.stopping_changed)
    click(qtbot, panel.fold)
    assert panel.form.isVisible()
    limit = panel.form.editors()["limit"]
    limit.setFocus()
    limit.selectAll()
    qtbot.keyClicks(limit, "2")
    assert settings == []
    assert panel.stopping == CHANCE  # what will not do is not taken
    limit.selectAll()
    qtbot.keyClicks(limit, "0.1")
    assert settings[-1] == dataclasses.replace(CHANCE, limit=0.1)
    assert panel.stopping.limit == 0.1
    assert "limit 0.1" in visible_words(panel)


def test_who_begins_a_replay_by_key_has_the_keys_in_it(panel, qtbot):
    panel.activateWindow()
    panel.offers.replay.setFocus()
    panel.show_replay(REPLAY)
    assert panel.replay.isAncestorOf(panel.focusWidget())
    panel.show_live(LIVE)
    assert panel.live.isAncestorOf(panel.focusWidget())


@pytest.mark.parametrize("width", [300, 480, 660, 1200])
def test_nothing_is_cut_off_at_the_side(panel, width, qapp):
    panel.resize(width, 200)
    panel.offers.set_resumable("clicks.csv", "1,048 clicks so far.")
    viewport = panel.findChild(QScrollArea).viewport()
    replay = dataclasses.replace(REPLAY, annotators=1060, steps=212, ready=40, batch=5)
    for show in (panel.show_idle, lambda: panel.show_replay(replay), lambda: panel.show_live(LIVE)):
        show()
        qapp.processEvents()
        buttons = [widget for widget in viewport.findChildren(QPushButton) if widget.isVisible()]
        assert len(buttons) > 2
        for button in buttons:
            assert button.mapTo(viewport, QPoint(button.width(), 0)).x() <= viewport.width()
            assert button.width() >= button.sizeHint().width()
