"""The queue of annotators: what a line says, who is gone to, what the filter asks for."""

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QApplication

from raterscope.widgets import theme
from raterscope.widgets.panels.pair_browser import (
    ANNOTATOR_FILTERS,
    CLEARED,
    EMPTY,
    FLAGGED,
    OPEN,
    AnnotatorList,
    AnnotatorsView,
)
from raterscope.widgets.panels.queue_items import QueueKind
from raterscope.widgets.tables.annotator_grid import AnnotatorGrid, AnnotatorGridView, GridColumn
from tests.reading import accessible_text, visible_words


def view(count=4, order=None, **changes) -> AnnotatorsView:
    values = {
        "names": [f"annotator {index}" for index in range(count)],
        "total": count,
        "order": np.arange(count) if order is None else np.asarray(order),
        "left": np.full(count, 191),
        "right": np.full(count, 9),
        "behaviour": np.full(count, 2),
        "decided": np.full(count, OPEN),
        "doubt": np.full(count, 0.98),
    }
    return AnnotatorsView(**{**values, **changes})


@pytest.fixture
def queue(qtbot, qapp):
    theme.apply_theme(qapp, theme.DARK)
    panel = AnnotatorList()
    qtbot.addWidget(panel)
    panel.resize(236, 600)
    panel.show()
    panel.selections = []
    panel.chosen.connect(panel.selections.append)
    return panel


def test_the_number_of_a_line_is_the_q_value_or_a_share_of_draws():
    doubt = np.array([1.0, 0.953, 0.4, np.nan])
    flips, draws = view(doubt=doubt, by_flips=True), view(doubt=doubt)
    assert [flips.item(row).amount for row in range(4)] == ["q < 0.01", "q 0.05", "q 0.60", ""]
    assert [draws.item(row).amount for row in range(4)] == ["share 1.00", "share 0.95", "share 0.40", ""]


def test_a_line_shows_behaviour_counts_and_the_decision(queue):
    queue.set_view(
        view(behaviour=np.array([2, 1, 0, -1]), decided=np.array([OPEN, FLAGGED, CLEARED, OPEN]),
             doubt=np.array([1.0, 0.9, 0.1, np.nan]))
    )  # fmt: skip
    assert [accessible_text(queue.view, row) for row in range(4)] == [
        "annotator 0, one-sided: 191 left, 9 right",
        "annotator 1, flagged by you: 191 left, 9 right, done",
        "annotator 2, cleared by you: 191 left, 9 right, done",
        "annotator 3, not tested: 191 left, 9 right",
    ]
    assert not queue.grab().isNull()


def test_before_a_fusion_the_counts_are_reported(queue):
    queue.set_view(view(1, behaviour=np.array([-1]), doubt=None))
    assert accessible_text(queue.view, 0) == "annotator 0, 191 left, 9 right"


def test_next_skips_decided_annotators_and_selecting_emits_nothing(queue, qtbot):
    queue.set_view(view(5, order=[4, 2, 0, 1, 3], decided=np.array([OPEN, OPEN, FLAGGED, OPEN, OPEN])))
    queue.select(4)
    assert queue.selections == []
    queue.go(1)
    assert queue.selections == [0]  # 2 is decided
    qtbot.keyClick(queue.view, Qt.Key.Key_Up)
    assert queue.selections == [0, 2]
    queue.go(-1)
    assert queue.selections == [0, 2, 4]


def test_who_is_current_stays_when_the_order_changes_and_leaves_with_the_filter(queue):
    queue.set_view(view(300))
    queue.select(200)
    queue.set_view(view(300, np.arange(300)[::-1]))
    assert queue.current == 200
    assert queue.view.currentIndex().row() == 99
    queue.set_view(view(300, [7, 8]))
    assert queue.selections == []
    queue.go(1)
    assert queue.selections == [7]


def test_a_hundred_thousand_annotators_need_no_line_each(queue, qtbot):
    count = 100_000
    queue.set_view(view(count, np.arange(count)[::-1], names=np.char.mod("a%06d", np.arange(count))))
    queue.select(77_777)
    qtbot.keyClick(queue.view, Qt.Key.Key_Down)
    assert queue.selections == [77_776]


def test_the_filter_is_requested_with_its_words_and_its_choice(queue, qtbot):
    queue.set_view(view())
    requests = []
    queue.filter_changed.connect(lambda *arguments: requests.append(arguments))
    qtbot.keyClicks(queue.filter, "7")
    queue.choice.setCurrentIndex(queue.choice.findData("bad"))
    assert requests == [("7", "undecided"), ("7", "bad")]
    queue.set_view(view(order=[]))
    assert "No name under “one-sided” contains “7”" in visible_words(queue)
    assert "0 of 4" in visible_words(queue)
    queue.set_view(None)
    assert "No items yet." in visible_words(queue)


@pytest.mark.parametrize("name", [key for key in ANNOTATOR_FILTERS if key != "all"])
def test_an_empty_list_names_its_filter_and_before_a_fusion_the_next_step(queue, name):
    queue.choice.setCurrentIndex(queue.choice.findData(name))
    queue.set_view(view(order=[]))
    assert EMPTY[name] in visible_words(queue)
    queue.set_view(view(order=[], doubt=None))
    assert ("Press Fuse" in visible_words(queue)) is (
        name in {"flagged", "bad", "ugly", "good", "not decidable"}
    )


def test_who_was_set_aside_is_not_counted(queue):
    queue.set_view(view(9, order=[0, 1, 2], total=6))
    assert "3 of 6" in visible_words(queue)
    queue.set_view(view(9, order=[0, 1, 2], total=3))
    assert "3" in visible_words(queue).split()
    assert "of" not in visible_words(queue)


def test_values_of_a_column_have_the_same_decimals():
    offsets = np.array([0.7, 0.788, np.nan])
    column = GridColumn(
        "offset_px", "clicks", "offset", "", "value", offsets,
        np.array([0.1, 0.78, np.nan]), np.array([1.9, 0.80, np.nan]), unit="px",
    )  # fmt: skip
    texts = [column.text_of(row, brief=True) for row in range(3)]
    assert texts[2] == ""
    assert len({len(text) for text in texts[:2]}) == 1


def test_columns_that_nearly_fit_need_no_scrolling(qtbot):
    texts = np.array(["1 right, 1 wrong"], dtype=object)
    columns = [GridColumn("name", "", "annotator", "", "annotator", np.array(["w0"], object))]
    columns += [GridColumn(f"s{n}", "", "sensitivity", "", "share", np.array([0.5])) for n in range(5)]
    columns.append(GridColumn("verdicts", "", "verdicts", "", "words", texts))
    view = AnnotatorGridView()
    qtbot.addWidget(view)
    view.set_grid(AnnotatorGrid(("w0",), np.zeros(1, np.int64), np.zeros(1, bool), tuple(columns)))
    view.show()
    view.resize(820, 300)
    header = view.view.horizontalHeader()
    needed = QFontMetrics(theme.font()).horizontalAdvance(texts[0])
    qtbot.waitUntil(lambda: view.view.horizontalScrollBar().maximum() == 0)
    assert header.sectionSize(len(columns) - 1) > needed
    view.resize(600, 300)  # then all columns are as wide as usual, and scroll
    qtbot.waitUntil(lambda: view.view.horizontalScrollBar().maximum() > 0)


def test_only_lines_that_changed_are_painted_again(queue, qtbot, monkeypatch):
    painted = []
    paint = QueueKind.paint_line
    monkeypatch.setattr(
        QueueKind,
        "paint_line",
        lambda self, painter, box, line: (painted.append(line), paint(self, painter, box, line)),
    )
    many = view(400)
    queue.set_view(many)
    queue.select(3)
    qtbot.waitUntil(lambda: bool(painted))
    visible_items = queue.view.rowAt(queue.view.viewport().height() - 1) + 1
    decided = many.decided.copy()
    decided[[1, 4, 300]] = FLAGGED
    QApplication.processEvents()
    painted.clear()
    queue.set_view(replace(many, decided=decided))
    QApplication.processEvents()
    assert {1, 4} <= {line.key for line in painted} <= {1, 3, 4}  # 3 is the current one
    assert all(("flagged by you" in line.detail) == (line.key != 3) for line in painted)
    assert queue.current == queue.view.currentIndex().row() == 3
    painted.clear()
    queue.view.go_to(300)
    qtbot.waitUntil(lambda: any(line.key == 300 for line in painted))
    assert all(("flagged by you" in line.detail) == (line.key in (1, 4, 300)) for line in painted)
    painted.clear()
    queue.set_view(replace(many, decided=decided, order=many.order[::-1]))
    QApplication.processEvents()
    assert len({line.key for line in painted}) >= visible_items
