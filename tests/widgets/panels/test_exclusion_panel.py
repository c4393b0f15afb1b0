import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton

from raterscope.widgets.panels.exclusion_panel import ExclusionPanel, ExclusionPreview
from tests.reading import visible_words

pytestmark = pytest.mark.usefixtures("dark")


@pytest.fixture
def panel(qtbot):
    widget = ExclusionPanel("annotator 79142")
    qtbot.addWidget(widget)
    widget.resize(360, 480)
    widget.show()
    return widget


@pytest.fixture
def heard(panel):
    messages = []
    panel.decided.connect(lambda reason: messages.append(("excluded", reason)))
    panel.cancelled.connect(lambda: messages.append("cancelled"))
    panel.task_chosen.connect(lambda task: messages.append(("task", task)))
    return messages


def preview(tasks=(417, 93, 5, 6)) -> ExclusionPreview:
    count = len(tasks)
    return ExclusionPreview(
        np.array(tasks, dtype=int), np.zeros(count, dtype=int), np.ones(count, dtype=int),
        [f"task {index:04}" for index in range(963)], ("not", "supernova"),
    )  # fmt: skip


@pytest.fixture
def weighing(qtbot):
    """A panel that offers to let an annotator count less, and what it says."""
    panel = ExclusionPanel("kim", weights=(0.75, 0.5, 0.25))
    qtbot.addWidget(panel)
    panel.resize(400, 480)
    panel.show()
    messages = []
    panel.decided.connect(lambda reason: messages.append((panel.weight, reason)))
    panel.choice_changed.connect(lambda: messages.append(panel.weight))
    return panel, messages


def test_an_annotator_can_be_made_to_count_less(weighing, qtbot):
    panel, messages = weighing
    assert panel.weight is None
    panel.show_preview(preview())
    panel.choice.buttons["0.5"].click()
    assert messages == [0.5]
    panel.show_preview(preview((5,)))
    assert "kim at weight ½." in visible_words(panel)
    qtbot.keyClicks(panel.reason.edit, "hasty")
    assert panel.exclude.text() == "Set weight ½"
    qtbot.mouseClick(panel.exclude, Qt.MouseButton.LeftButton)
    assert messages == [0.5, (0.5, "hasty")]


def test_choosing_again_keeps_the_reason_and_waits_for_what_would_change(weighing, qtbot):
    panel, messages = weighing
    panel.set_weight(0.25)
    panel.show_preview(preview())
    qtbot.keyClicks(panel.reason.edit, "hasty")
    qtbot.keyClick(panel.reason.edit, Qt.Key.Key_Up, Qt.KeyboardModifier.AltModifier)
    panel.set_working(0.1, "fusing")
    assert panel.weight == 0.5
    assert "Fusing with kim at weight ½" in visible_words(panel)
    assert panel.reason.isVisible()
    qtbot.keyClick(panel.reason.edit, Qt.Key.Key_Return)
    assert messages == [0.25, 0.5]
    qtbot.keyClick(panel.reason.edit, Qt.Key.Key_Up, Qt.KeyboardModifier.AltModifier)
    assert "Fusing with kim at weight ¾" in visible_words(panel)
    panel.show_preview(preview())
    assert panel.reason.reason == "hasty"
    qtbot.keyClick(panel.reason.edit, Qt.Key.Key_Return)
    assert messages == [0.25, 0.5, 0.75, (0.75, "hasty")]


def test_the_choices_have_two_ends(weighing, qtbot):
    panel, messages = weighing
    panel.show_preview(preview())
    for _ in range(9):
        qtbot.keyClick(panel.reason.edit, Qt.Key.Key_Down, Qt.KeyboardModifier.AltModifier)
    assert messages == [0.75, 0.5, 0.25]
    panel.set_weight(0.3)  # none of those offered
    assert panel.weight is None


def test_only_leaving_out_is_offered_where_weights_mean_nothing(panel):
    assert not panel.choice.isVisible()
    assert "COUNTS" not in visible_words(panel)


def test_the_preview_is_shown_before_anything_is_done(panel, heard, qtbot):
    panel.set_working(0.4, "iteration 12")
    assert "Fusing without annotator 79142" in visible_words(panel)
    assert "iteration 12" in visible_words(panel)
    panel.show_preview(preview())
    assert "Would change 4 of 963 labels" in visible_words(panel)
    assert panel.changes.model().index(0, 0).data() == "task 0417: not becomes supernova"
    qtbot.keyClick(panel.changes, Qt.Key.Key_Down)
    qtbot.keyClick(panel.changes, Qt.Key.Key_Down)
    assert heard == [("task", 417), ("task", 93)]


def test_excluding_takes_a_reason(panel, heard, qtbot):
    panel.show_preview(preview())
    qtbot.mouseClick(panel.exclude, Qt.MouseButton.LeftButton)
    qtbot.keyClick(panel.reason.edit, Qt.Key.Key_Return)
    qtbot.keyClicks(panel.reason.edit, "  ")
    qtbot.keyClick(panel.reason.edit, Qt.Key.Key_Return)
    assert heard == []
    panel.reason.buttons[1].click()
    qtbot.mouseClick(panel.exclude, Qt.MouseButton.LeftButton)
    assert heard == [("excluded", "always the same answer")]
    panel.show_preview(preview())
    assert panel.reason.reason == ""  # the next one has a reason of its own


@pytest.mark.parametrize("way", ["keep", "escape"])
def test_the_exclusion_can_be_cancelled(panel, heard, qtbot, way):
    panel.show_preview(preview())
    if way == "keep":
        panel.cancel.click()
    else:
        qtbot.keyClick(panel.reason.edit, Qt.Key.Key_Escape)
    assert heard == ["cancelled"]


def test_cancel_is_acknowledged_at_once_and_progress_on_its_way_does_not_take_it_back(panel, heard):
    panel.set_working(0.2, "iteration 3")
    (cancel,) = (b for b in panel.findChildren(QPushButton) if b.text() == "Cancel" and b.isVisible())
    cancel.click()
    panel.set_working(0.3, "iteration 4")
    assert cancel.text() == "Cancelling"
    cancel.click()
    assert heard == ["cancelled"]
    panel.show_unknown("The preview was cancelled.")
    panel.set_working(0.0, "again")
    assert cancel.text() == "Cancel"


def test_a_failure_is_a_sentence_and_the_exclusion_can_be_decided_all_the_same(panel, heard):
    panel.show_unknown("Nobody else voted on <b>12</b> tasks.")
    assert "Nobody else voted on <b>12</b> tasks." in visible_words(panel)
    panel.reason.buttons[0].click()
    panel.exclude.click()
    assert heard == [("excluded", "answers at random")]


def test_no_change_is_stated_too(panel):
    panel.show_preview(preview(()))
    assert "Would change none of 963 labels" in visible_words(panel)
    assert not panel.changes.isVisible()
    assert panel.reason.isVisible()
