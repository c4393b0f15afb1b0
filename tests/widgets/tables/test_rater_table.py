import math

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QLabel

from raterscope.figures.colours import ANNOTATOR_COLOURS
from raterscope.widgets import theme
from raterscope.widgets.painting import rater_colour
from raterscope.widgets.tables.rater_table import RaterRow, RaterTable, direction


@pytest.fixture
def table(qtbot):
    widget = RaterTable()
    qtbot.addWidget(widget)
    widget.resize(900, 300)
    widget.show()
    widget.set_rows(
        [
            RaterRow(0, "rater 1", 0.96, 0.1, 0.5, 12.0, 0.95, 1.0),
            RaterRow(1, "rater 2", math.nan, -0.02, 0.6, math.inf, 0.94, 1.2),
            RaterRow(
                3, "rater 4", 0.36, 1.9, 2.4, 1.6, 0.81, 6.4, excluded=True, excluded_reason="wrong organ"
            ),
        ]
    )
    return widget


def names(table) -> list[str]:
    return [table.model.at(row).name for row in range(table.model.rowCount())]


def cell(table, row, column, role=Qt.ItemDataRole.DisplayRole) -> str:
    return table.model.index(row, table.model.columns.index(column)).data(role)


def test_a_bias_is_signed_and_its_direction_is_reported(table):
    assert [cell(table, row, "bias mm") for row in range(3)] == ["+0.1", "0.0", "+1.9"]
    assert "draws 1.9 mm beyond the consensus: over" in cell(table, 2, "bias mm", Qt.ItemDataRole.ToolTipRole)
    assert direction(-0.4) == "draws 0.4 mm short of the consensus: under"
    assert "no bias" in cell(table, 1, "bias mm", Qt.ItemDataRole.AccessibleTextRole)
    assert cell(table, 1, "dof") == "∞"
    table.set_rows([RaterRow(0, "rater 1", bias_mm=-0.34)])
    assert cell(table, 0, "bias mm") == "−0.3"


def test_columns_that_know_nothing_are_hidden(table):
    assert table.columns_shown() == ["rater", "weight", "bias mm", "spread", "dof", "Dice", "HD95 mm"]
    table.set_rows([RaterRow(0, "a", sensitivity=0.9, specificity=0.99), RaterRow(1, "b", dice=0.8)])
    assert table.columns_shown() == ["rater", "Dice", "sens.", "spec."]


def test_in_a_narrow_place_what_is_worth_least_goes_into_the_tooltip(table):
    table.resize(360, 300)
    assert table.columns_shown() == ["rater", "weight", "bias mm", "Dice", "HD95 mm"]
    tip = cell(table, 2, "rater", Qt.ItemDataRole.ToolTipRole)
    assert "spread 2.4 mm" in tip
    assert "excluded: wrong organ" in tip


def test_the_mark_of_a_program_leaves_room_for_hd95(table):
    rows = [RaterRow(at, f"rater {at}", 0.9, 0.1, 0.5, math.nan, 0.95, 1.0) for at in range(3)]
    table.resize(360, 300)
    table.set_rows([*rows, RaterRow(3, "model", dice=0.9, hausdorff95=2.0, note="program")])
    assert "HD95 mm" in table.columns_shown()
    table.set_rows([*rows, RaterRow(3, "rater 7", note="drew nothing")])
    assert "HD95 mm" in table.columns_shown()
    view, last = table.view, table.model.row_of("rater 7")
    assert view.columnSpan(last, 1) >= 4  # the note takes the place of the figures
    view.sortByColumn(table.model.columns.index("rater"), Qt.SortOrder.DescendingOrder)
    assert view.columnSpan(table.model.row_of("rater 7"), 1) >= 4
    assert view.columnSpan(table.model.row_of("rater 1"), 1) == 1


def test_the_unknown_sort_last_either_way(table):
    weight = table.model.columns.index("weight")
    table.view.sortByColumn(weight, Qt.SortOrder.DescendingOrder)
    assert names(table) == ["rater 1", "rater 4", "rater 2"]
    table.view.sortByColumn(weight, Qt.SortOrder.AscendingOrder)
    assert names(table) == ["rater 4", "rater 1", "rater 2"]


def test_walking_selects_and_selecting_from_outside_is_silent(table, qtbot):
    chosen = []
    table.selected.connect(chosen.append)
    table.select("rater 1")
    qtbot.keyClick(table.view, Qt.Key.Key_Down)
    assert chosen == ["rater 2"]
    table.set_rows([RaterRow(1, "rater 2"), RaterRow(5, "rater 6")])
    assert table.current == "rater 2"
    table.select("nobody")
    assert table.current is None
    assert chosen == ["rater 2"]


def test_delete_excludes_and_takes_back_in(table, qtbot):
    out, back = [], []
    table.exclude_requested.connect(out.append)
    table.include_requested.connect(back.append)
    for name in ("rater 1", "rater 4"):
        table.select(name)
        qtbot.keyClick(table.view, Qt.Key.Key_Delete)
    assert (out, back) == (["rater 1"], ["rater 4"])


def test_without_raters_a_sentence_explains_the_empty_table(table):
    table.set_rows([])
    assert not table.view.isVisible()
    texts = [label.text() for label in table.findChildren(QLabel) if label.isVisible()]
    assert any("Import the masks of several raters" in words for words in texts)


def test_raters_beyond_the_palette_who_follow_each_other_differ_in_colour():
    assert rater_colour(7) == ANNOTATOR_COLOURS[7]
    for first in range(40):
        few = [rater_colour(first + number) for number in range(len(ANNOTATOR_COLOURS))]
        assert set(few) == set(ANNOTATOR_COLOURS)


def test_the_table_asks_for_the_room_of_its_raters_and_no_more(table):
    def height(raters):
        table.set_rows([RaterRow(number, f"rater {number}") for number in range(raters)])
        return table.sizeHint().height()

    row = table.view.verticalHeader().defaultSectionSize()
    assert height(7) - height(4) == 3 * row
    assert height(40) == height(30) < height(4) + 10 * row
    table.resize(360, height(4))
    height(4)
    assert table.view.verticalScrollBar().maximum() == 0


def test_names_that_differ_at_their_end_are_whole_before_other_columns(table):
    table.resize(370, 300)
    rows = [RaterRow(at, f"R0{at} (read 2)", 0.9, 0.1, 0.5, 12.0, 0.95, 1.0) for at in range(1, 7)]
    table.set_rows(rows)
    needed = QFontMetrics(theme.font()).horizontalAdvance("R01 (read 2)")
    assert table.view.columnWidth(0) >= needed + 42


def test_a_low_table_still_shows_three_raters(table):
    table.set_rows([RaterRow(at, f"rater {at}", dice=0.9) for at in range(9)])
    table.resize(340, table.minimumSizeHint().height())
    lines = table.view.viewport().height() // table.view.verticalHeader().defaultSectionSize()
    assert lines >= 3
