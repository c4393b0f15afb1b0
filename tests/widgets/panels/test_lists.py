import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QLabel

from raterscope.widgets.panels.lists import LinesOnDemand, LongList, Suggestion, SuggestionList
from raterscope.widgets.panels.queue_items import QueueItem, QueueKind

LINES = (
    Suggestion("w-0412", "w-0412", "finds 0.94 of what is there", 0.31),
    Suggestion("smear_012", "smear_012.tif", "3 of 27 decisions may change", 0.4, "Nobody of it was asked."),
)


@pytest.fixture
def asking(qtbot):
    widget = SuggestionList(
        "annotator", "decisions expected to change", "decisions", "Fuse the clicks first."
    )
    qtbot.addWidget(widget)
    widget.resize(420, 160)
    widget.show()
    return widget


def words(widget) -> list[str]:
    return [label.text() for label in widget.findChildren(QLabel) if label.isVisible()]


def test_an_empty_list_names_the_next_step_or_the_reason(asking):
    assert "Fuse the clicks first." in words(asking)
    asking.show_lines((), "Every answer is settled.")
    assert "Every answer is settled." in words(asking)
    asking.show_lines(LINES)
    assert "2 annotators, decisions expected to change" in words(asking)


def test_a_line_gone_to_by_key_gives_its_key(asking, qtbot):
    asking.show_lines(LINES)
    gone = []
    asking.chosen.connect(gone.append)
    qtbot.keyClick(asking.list, Qt.Key.Key_Down)
    qtbot.keyClick(asking.list, Qt.Key.Key_Down)
    assert gone[-1] == "smear_012"


def test_a_letter_without_a_shortcut_leaves_a_long_list_as_it_is(qtbot):
    made = []

    def make(number: int) -> QueueItem:
        made.append(number)
        return QueueItem(number, f"zebra {number}", "undecided", None, done=False)

    view = LongList(QueueKind(), "Tasks")
    qtbot.addWidget(view)
    view.set_lines(LinesOnDemand(np.arange(100_000), make))
    view.show()
    view.go_to(3)
    made.clear()
    qtbot.keyClick(view, Qt.Key.Key_Z)
    assert view.currentIndex().row() == 3
    assert len(made) < 100


def test_a_line_is_reported_with_its_unit_and_more_in_the_tip(asking):
    asking.show_lines(LINES)
    texts = [asking.list.model().index(row, 0).data(Qt.ItemDataRole.AccessibleTextRole) for row in (0, 1)]
    assert texts[0] == "w-0412: finds 0.94 of what is there, 0.31 decisions"
    tip = asking.list.model().index(1, 0).data(Qt.ItemDataRole.ToolTipRole)
    assert "0.40 decisions expected. Nobody of it was asked." in tip


def test_who_finds_how_much_is_read_whole_in_a_narrow_panel(qtbot, monkeypatch):
    written = []

    def note(painter, box, text, *_, **__):
        written.append((text, QFontMetrics(painter.font()).horizontalAdvance(text) <= box.width()))

    monkeypatch.setattr("raterscope.widgets.panels.lists.paint_text", note)
    widget = SuggestionList("annotator", "corrected decisions", "", "Fuse the clicks first.")
    qtbot.addWidget(widget)
    widget.resize(295, 160)
    widget.show_lines([Suggestion("vol23", "vol23", "finds 73 %", 0.06)])
    widget.grab()
    assert set(written) == {("vol23", True), ("finds 73 %", True), ("0.06", True)}
