import math
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from PySide6.QtCore import QCoreApplication, QLocale, QPoint, QPointF, Qt
from PySide6.QtGui import QFontMetrics, QGuiApplication, QWheelEvent
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QTabWidget, QWidget

from raterscope.widgets import theme
from raterscope.widgets.hints import EmptyState, cap_width
from raterscope.widgets.panels.activity_panels import HistoryEntry, HistoryPanel, JobLine, JobsPanel
from raterscope.widgets.panels.evaluation_panels import TrustPanel
from raterscope.widgets.panels.evidence_panel import Evidence, EvidencePanel, VoterLine
from raterscope.widgets.panels.measurement_panels import ParasitaemiaPanel
from raterscope.widgets.panels.queue_items import QueueFilter, QueueItem
from raterscope.widgets.panels.queue_panel import QueuePanel
from raterscope.widgets.parts import NumberBox, plain_tip

pytestmark = pytest.mark.usefixtures("dark")


def shown_words(widget) -> str:
    QCoreApplication.sendPostedEvents()  # what was added to a layout is shown by an event
    return "\n".join(label.text() for label in widget.findChildren(QLabel) if label.isVisibleTo(widget))


def test_a_number_stays_with_its_unit_where_a_text_takes_several_lines(qtbot):
    panel = TrustPanel(("claimed", "right"), "")
    qtbot.addWidget(panel)
    panel.resize(500, 300)
    panel.show_trust((), "Of 94 spots, 95 % are real (90.1 to 99.2), within 4 px.")
    assert panel.text == "Of 94 spots, 95 % are real (90.1 to 99.2), within 4 px."
    painted = QLabel.text(panel._label)
    for held in ("95 %", "(90.1 to 99.2)", "4 px"):
        assert held.replace(" ", "\N{NO-BREAK SPACE}") in painted


@pytest.mark.parametrize("language", ["en_US", "de_DE", "ar_EG", "C"])
@pytest.mark.parametrize(
    ("typed", "number"), [("0.65", 0.65), ("0,65", 0.65), ("-1,5", -1.5), ("12.5", 12.5)]
)
def test_a_number_has_a_decimal_point_or_comma_in_every_locale(language, typed, number, qtbot):
    before = QLocale()
    QLocale.setDefault(QLocale(language))
    try:
        box = NumberBox(minimum=-1e3, maximum=1e7, decimals=3)
        qtbot.addWidget(box)
        box.selectAll()
        qtbot.keyClicks(box, typed)
        box.interpretText()
        assert box.value() == number
        assert box.text() == f"{number:.3f}"
        box.setGroupSeparatorShown(True)
        box.setValue(5_000_000)
        assert box.text() == "5,000,000.000"
        box.selectAll()
        qtbot.keyClicks(box, "1,806")
        box.interpretText()
        assert box.value() == 1806
    finally:
        QLocale.setDefault(before)


def item(key, score=0.3, done=False) -> QueueItem:
    return QueueItem(key, f"smear_{key:03}.tif", "27 detections", score, done)


@pytest.fixture
def queue(qtbot):
    panel = QueuePanel()
    qtbot.addWidget(panel)
    panel.resize(236, 600)
    panel.show()
    return panel


def test_done_items_sink_and_the_rest_keep_their_order(queue):
    queue.set_items([item(3, 0.4, done=True), item(1, 0.3), item(2, None), item(4, 0.1)])
    assert [shown.key for shown in queue.shown()] == [1, 2, 4, 3]


def test_the_queue_is_walked_by_keyboard_and_emits_the_item(queue, qtbot):
    queue.set_items([item(key) for key in (1, 2, 3)])
    queue.set_current(1)
    chosen = []
    queue.item_chosen.connect(chosen.append)
    qtbot.keyClick(queue.view, Qt.Key.Key_Down)
    qtbot.keyClick(queue.view, Qt.Key.Key_Down)
    assert chosen == [2, 3]
    assert queue.current == 3


def test_home_and_end_lead_to_the_ends_of_the_queue(queue, qtbot):
    queue.set_items([item(key) for key in range(1, 60)])
    queue.set_current(30)
    chosen = []
    queue.item_chosen.connect(chosen.append)
    for key in (Qt.Key.Key_End, Qt.Key.Key_Home):
        qtbot.keyClick(queue.view, key)
    assert chosen == [59, 1]


def test_the_current_item_stays_when_lines_change_around_it(queue):
    queue.set_items([item(key) for key in range(400)])
    queue.set_current(300)
    chosen = []
    queue.item_chosen.connect(chosen.append)
    offset = queue.view.verticalScrollBar().value()
    queue.set_items([item(key, done=key == 7) for key in range(400)])
    assert queue.current == 300
    assert queue.view.currentIndex().row() == 299
    assert queue.view.verticalScrollBar().value() == offset
    assert chosen == []


def test_the_filter_takes_words_and_leaves_the_undecided(queue, qtbot):
    queue.set_items([item(1), item(12), item(2, done=True)])
    qtbot.keyClicks(queue.filter, "SMEAR_01")
    assert [shown.key for shown in queue.shown()] == [12]
    queue.filter.clear()
    queue.choice.setCurrentIndex(1)
    assert [shown.key for shown in queue.shown()] == [1, 12]


def test_an_empty_queue_shows_a_message(queue):
    queue.set_items([])
    assert "No items yet." in shown_words(queue)
    queue.set_items([item(1)])
    queue.filter.setText("other")
    assert "No name under “all” contains “other”" in shown_words(queue)
    queue.filter.clear()
    queue.choice.setCurrentIndex(1)
    queue.set_items([item(1, done=True)])
    assert "Everything is decided." in shown_words(queue)


def test_the_queue_is_narrowed_to_the_flagged_and_to_those_with_more_than_so_many(qtbot):
    filters = (
        QueueFilter("all", "all"),
        QueueFilter("flagged", "flagged", "No image is flagged."),
        QueueFilter("disputed", "disputed over", "No image has more."),
    )
    panel = QueuePanel("Images", filters)
    qtbot.addWidget(panel)
    panel.show()
    items = [replace(item(key), counts={"disputed": 10 * key}) for key in range(4)]
    items[2] = replace(items[2], flag="out of focus")
    panel.set_items(items)
    assert not panel.many.isVisible()
    panel.choice.setCurrentIndex(1)
    assert [shown.key for shown in panel.shown()] == [2]
    assert "out of focus" in panel.view.model().index(0, 0).data(Qt.ItemDataRole.ToolTipRole)
    panel.choice.setCurrentIndex(2)
    assert panel.many.isVisible()
    panel.many.setValue(10)
    assert [shown.key for shown in panel.shown()] == [2, 3]
    panel.many.setValue(30)
    assert "No image has more." in shown_words(panel)
    assert "0 of 4" in shown_words(panel)


def evidence(**changes) -> Evidence:
    values = {
        "title": "Spot 14", "state": "disputed", "probability": 0.46, "low": 0.31, "high": 0.62,
        "caption": "posterior structure", "votes": 22, "annotators": 51,
        "lines": (VoterLine(3, "w-0412", True, 0.94), VoterLine(9, "w-0077", False, math.nan)),
        "why": "The model doubts.", "crop": np.full((28, 28), 128, dtype=np.uint8), "crop_radius": 14.0,
        "covariance": np.eye(2) * 9,
    }  # fmt: skip
    return Evidence(**{**values, **changes})


@pytest.fixture
def panel(qtbot):
    widget = EvidencePanel()
    qtbot.addWidget(widget)
    widget.resize(360, 640)
    widget.show()
    return widget


def test_the_deciding_number_is_the_largest_text(panel):
    panel.show_spot(evidence())
    labels = [label for label in panel.findChildren(QLabel) if label.isVisible() and label.text()]
    largest = max(labels, key=lambda label: label.fontInfo().pixelSize())
    assert largest.text() == "0.46"
    assert largest.fontInfo().pixelSize() == 30
    words = shown_words(panel)
    for part in ("SPOT 14", "disputed", "0.31 to 0.62", "22 of 51 votes", "The model doubts."):
        assert part in words


def test_the_keys_ask_for_decisions(panel, qtbot):
    panel.show_spot(evidence())
    requests = []
    for name in ("accept", "reject", "skip", "add", "move", "undo"):
        getattr(panel, f"{name}_requested").connect(lambda name=name: requests.append(name))
    for button in (panel.accept, panel.reject, panel.skip, panel.add, panel.move_key, panel.undo):
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert requests == ["accept", "reject", "skip", "add", "move", "undo"]
    assert panel.accept.accessibleName() == "accept (A)"


def test_without_a_spot_nothing_can_be_decided_but_added(panel):
    panel.show_spot(evidence())
    panel.show_spot(None)
    assert "Select a spot" in shown_words(panel)
    assert not panel.accept.isEnabled()
    assert not panel.move_key.isEnabled()
    assert panel.add.isEnabled()


def test_a_spot_without_a_posterior_is_marked_and_shows_no_interval(panel):
    panel.show_spot(evidence(state="added", probability=math.nan, low=math.nan, high=math.nan, crop=None))
    words = shown_words(panel)
    assert "added by you" in words
    assert "nan" not in words
    assert "95 % interval" not in words


def test_an_annotator_can_be_gone_to_by_keyboard(panel, qtbot):
    panel.show_spot(evidence())
    chosen = []
    voters = panel.about.voters
    voters.chosen.connect(chosen.append)
    qtbot.keyClick(voters, Qt.Key.Key_Down)
    qtbot.keyClick(voters, Qt.Key.Key_Down)
    assert chosen[-1] == 9


def test_five_thousand_voters_are_a_list_not_widgets(panel):
    lines = tuple(VoterLine(i, f"w-{i}", i % 2 == 0, 0.5) for i in range(5000))
    before = len(panel.findChildren(QLabel))
    panel.show_spot(evidence(lines=lines))
    assert len(panel.findChildren(QLabel)) == before


def test_the_history_marks_what_is_no_longer_in_effect(qtbot):
    history = HistoryPanel()
    qtbot.addWidget(history)
    now = datetime(2026, 1, 2, 12, 4, tzinfo=UTC)
    history.set_entries(
        [
            HistoryEntry(now, "accept spot 9", "accepted"),
            HistoryEntry(now, "reject spot 11", "rejected", "undone"),
            HistoryEntry(now, "take region 1", "accepted", "superseded"),
        ]
    )
    model = history.view.model()
    assert [model.index(row).data() for row in range(3)] == [
        "accept spot 9",
        "reject spot 11 (undone)",
        "take region 1 (superseded)",
    ]
    requests = []
    history.undo.clicked.connect(lambda: requests.append("undo"))
    history.undo.click()
    history.set_undoable("reject spot 12", "")
    history.undo.click()
    history.redo.click()
    assert requests == ["undo"]


@pytest.mark.parametrize("width", [400, 250, 240])
def test_the_keys_of_the_history_have_their_words_however_narrow_it_is(qtbot, width):
    window = QWidget()  # which, unlike a panel, is as wide as its layout asks
    qtbot.addWidget(window)
    window.resize(500, 300)
    history, tabs = HistoryPanel(), QTabWidget(window)
    tabs.addTab(history, "History")
    tabs.resize(width, 240)
    window.show()
    for key, name in ((history.undo, "undo (Ctrl+Z)"), (history.redo, "redo (Ctrl+Y)")):
        assert key.accessibleName() == name
        words = QFontMetrics(theme.font()).horizontalAdvance(key.text())
        least = cap_width(name.split("(")[1].rstrip(")")) + words
        qtbot.waitUntil(lambda key=key, least=least: key.width() >= least)
        corner = key.mapTo(history, key.rect().bottomRight())
        assert history.rect().contains(corner)
    assert history.undo.geometry().right() < history.redo.geometry().left()


@pytest.fixture
def jobs(qtbot):
    panel = JobsPanel()
    qtbot.addWidget(panel)
    panel.resize(300, 212)
    panel.show()
    return panel


def button(widget, text) -> QPushButton:
    (result,) = (b for b in widget.findChildren(QPushButton) if b.text() == text and b.isVisible())
    return result


def test_a_job_shows_its_progress_and_acknowledges_cancel_at_once(jobs, qtbot):
    line = JobLine("k", "Fusing smear_077", "removing the weakest component", 0.68, 2.1)
    jobs.set_job(line)
    words = shown_words(jobs)
    assert "removing the weakest component, 2 s left" in words
    requests = []
    jobs.cancel_requested.connect(requests.append)
    qtbot.mouseClick(button(jobs, "Cancel"), Qt.MouseButton.LeftButton)
    assert requests == ["k"]
    assert "cancelling" in shown_words(jobs)
    assert not button(jobs, "Cancel").isEnabled()
    jobs.set_job(line)  # progress that was on its way
    assert "cancelling" in shown_words(jobs)
    jobs.set_job(JobLine("k", "Fusing smear_077", state="cancelled"))
    assert "cancelled" in shown_words(jobs)
    assert "1 running" not in shown_words(jobs)


def test_a_failure_is_one_sentence_with_details_on_demand(jobs, qtbot):
    jobs.set_job(
        JobLine(1, "Importing", state="failed", error="Line 12 is <b>bad</b>.", details="where\nwhy")
    )
    assert "Line 12 is <b>bad</b>." in shown_words(jobs)
    job = jobs._lines[1]
    assert not job._details.isVisible()
    qtbot.mouseClick(button(jobs, "Details"), Qt.MouseButton.LeftButton)
    assert job._details.isVisible()
    qtbot.mouseClick(button(jobs, "Copy"), Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == "Line 12 is <b>bad</b>.\n\nwhere\nwhy"
    qtbot.mouseClick(button(jobs, "Clear"), Qt.MouseButton.LeftButton)
    assert "No jobs running" in shown_words(jobs)


def test_strangers_words_are_never_read_as_markup(panel, queue):
    panel.show_spot(evidence(why="<img src=x>"))
    queue.set_items([QueueItem(1, "<b>x</b>", "&amp;", 0.1, False)])
    for widget in (panel, queue):
        for label in widget.findChildren(QLabel):
            assert label.textFormat() == Qt.TextFormat.PlainText, label.text()
    assert plain_tip("<b>") == "<qt>&lt;b&gt;</qt>"


def test_an_empty_place_offers_what_fills_it(qtbot):
    done = []
    state = EmptyState("Nothing", "Drop files here.", (("Import", lambda: done.append(1)),))
    qtbot.addWidget(state)
    state.resize(500, 300)
    state.show()
    qtbot.mouseClick(state.buttons[0], Qt.MouseButton.LeftButton, pos=QPoint(5, 5))
    assert done == [1]
    words = next(label for label in state.findChildren(QLabel) if label.text() == "Drop files here.")
    assert words.height() >= words.heightForWidth(words.width())


def test_a_number_that_is_scrolled_past_stays_and_one_that_has_the_keys_does_not(qtbot):
    panel = ParasitaemiaPanel()
    qtbot.addWidget(panel)
    panel.show()
    panel.activateWindow()
    field = panel.fields["leukocytes"]
    field.setValue(200)
    here = QPointF(field.rect().center())

    def scroll():
        turn = QWheelEvent(
            here, field.mapToGlobal(here), QPoint(), QPoint(0, 120), Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
        )  # fmt: skip
        QApplication.sendEvent(field, turn)

    panel.scope.setFocus()
    scroll()
    assert field.value() == 200
    field.setFocus()
    qtbot.waitUntil(field.hasFocus)
    scroll()
    assert field.value() == 201


def test_the_state_of_a_spot_stands_beside_its_title(panel):
    panel.show_spot(evidence(state="accepted"))
    QApplication.processEvents()
    header = panel._header
    assert header._subtitle.text() == "accepted by you"
    assert header._subtitle.x() < header._title.geometry().right() + 30
    panel.show_spot(evidence(state="accepted", where="one.png"))
    QApplication.processEvents()
    assert header._name.text() == "one.png"
    assert header._name.width() > 0
