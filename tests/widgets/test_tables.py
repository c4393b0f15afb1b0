import math
from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QRect, Qt
from PySide6.QtWidgets import QLabel

from raterscope.widgets import theme
from raterscope.widgets.tables.annotator_table import COLUMNS, AnnotatorRow, AnnotatorTable
from raterscope.widgets.tables.comparison_tables import (
    ComparisonRow,
    ComparisonTable,
    Measure,
    RankingRows,
    RankingTable,
)
from raterscope.widgets.tables.rater_table import RaterRow, RaterTable

UNKNOWN = (math.nan, math.nan, math.nan)


def row(index, clicks=10, reliability=0.5, excluded=None) -> AnnotatorRow:
    known = UNKNOWN if math.isnan(reliability) else (reliability, reliability - 0.1, reliability + 0.1)
    weight = 1.0 if excluded is None else 0.0
    rates = known, (0.46, 0.31, 0.62), UNKNOWN
    return AnnotatorRow(index, f"w-{index:04}", clicks, *rates, weight, excluded or "")


@pytest.fixture
def table(qtbot):
    widget = AnnotatorTable()
    qtbot.addWidget(widget)
    widget.resize(960, 360)
    widget.show()
    widget.set_rows(
        [row(0, 30, 0.9), row(1, 50, 0.2, "clicks everywhere"), row(2, 10, math.nan), row(3, 40, 0.7)]
    )
    return widget


def order(table) -> list[int]:
    return [table.model.at(r).index for r in range(table.model.rowCount())]


def cell(table, row_number, column) -> str:
    return table.model.index(row_number, column).data()


def test_cells_show_estimates_with_their_intervals(table):
    assert cell(table, 0, 0) == "w-0001"
    assert cell(table, 0, 2) == "0.20 (0.10 to 0.30)"
    assert cell(table, 0, 3) == "0.46 (0.31 to 0.62)"
    assert cell(table, 0, 4) == "–"
    assert cell(table, 0, 5) == "excluded: clicks everywhere"


def test_who_counts_as_a_part_is_marked_with_weight_and_reason(table):
    column = COLUMNS.index("weight")
    before = [row(0, 30), row(1, 50, excluded="clicks everywhere"), row(2, 10)]
    table.set_rows([*before[:2], replace(before[2], weight=0.25, why="hasty")])
    table.view.sortByColumn(column, Qt.SortOrder.AscendingOrder)
    assert order(table) == [1, 2, 0]
    assert [cell(table, position, column) for position in range(3)] == [
        "excluded: clicks everywhere", "counts as ¼: hasty", ""
    ]  # fmt: skip
    index = table.model.index(1, column)
    assert "w-0002: counts as ¼: hasty" in index.data(Qt.ItemDataRole.ToolTipRole)
    assert index.data(Qt.ItemDataRole.AccessibleTextRole) == "weight counts as ¼: hasty"
    texts = " ".join(label.toolTip() or label.text() for label in table.findChildren(QLabel))
    assert "3 annotators, 1 excluded, 1 down-weighted" in texts
    table.filter.setText("hasty")
    assert order(table) == [2]
    table.filter.clear()
    table.set_rows([before[0]])
    assert table.view.isColumnHidden(column)


def test_every_column_sorts_and_the_unknown_come_last(table):
    assert order(table) == [1, 3, 0, 2]  # most clicks first
    table.view.sortByColumn(2, Qt.SortOrder.AscendingOrder)
    assert order(table) == [1, 3, 0, 2]
    table.view.sortByColumn(2, Qt.SortOrder.DescendingOrder)
    assert order(table) == [0, 3, 1, 2]
    table.view.sortByColumn(0, Qt.SortOrder.AscendingOrder)
    assert order(table) == [0, 1, 2, 3]
    table.view.sortByColumn(5, Qt.SortOrder.AscendingOrder)
    assert order(table)[0] == 1


def test_the_selected_annotator_stays_selected_when_rows_change_order(table):
    selections = []
    table.select(3)
    table.selected.connect(selections.append)
    table.view.sortByColumn(2, Qt.SortOrder.DescendingOrder)
    table.set_rows([row(3), row(7), row(8)])
    table.filter.setText("w-")
    assert table.current == 3
    assert selections == []


def test_keys_solo_hide_and_exclude(table, qtbot):
    soloed, hidden, out, back = [], [], [], []
    table.soloed.connect(soloed.append)
    table.hidden_changed.connect(hidden.append)
    table.exclude_requested.connect(out.append)
    table.include_requested.connect(back.append)
    table.select(3)
    for key in (Qt.Key.Key_Return, Qt.Key.Key_Return, Qt.Key.Key_Space, Qt.Key.Key_Space, Qt.Key.Key_Delete):
        qtbot.keyClick(table.view, key)
    assert soloed == [3, None]
    assert hidden == [{3}, set()]
    assert out == [3]
    table.select(1)
    qtbot.keyClick(table.view, Qt.Key.Key_Delete)
    assert back == [1]


def test_walking_the_table_selects(table, qtbot):
    selections = []
    table.selected.connect(selections.append)
    table.view.setFocus()
    qtbot.keyClick(table.view, Qt.Key.Key_Down)
    qtbot.keyClick(table.view, Qt.Key.Key_Down)
    assert selections[-1] in order(table)
    assert table.current == selections[-1]


def test_the_filter_looks_at_names_and_reasons(table):
    table.filter.setText("everywhere")
    assert order(table) == [1]
    table.filter.setText("w-0003")
    assert order(table) == [3]


def test_thousands_of_annotators_sort(table):
    table.set_rows([row(i, clicks=(i * 7919) % 5000) for i in range(5000)])
    assert [table.model.at(r).clicks for r in (0, 1, 4999)] == [4999, 4998, 0]


def cells(table, role=Qt.ItemDataRole.DisplayRole) -> list[list[object]]:
    model = table.view.model()
    return [
        [model.index(r, c).data(role) for c in range(model.columnCount())] for r in range(model.rowCount())
    ]


def bold(table) -> list[list[bool]]:
    return [[font.bold() for font in line] for line in cells(table, Qt.ItemDataRole.FontRole)]


def whole(value, _low, _high) -> str:
    return f"{value:,.0f}"


def test_the_best_run_of_each_measure_is_marked_and_the_unknown_is_not(qtbot):
    measures = (
        Measure("detections", "Spots", "none", whole),
        Measure("sensitivity", "Found"),
        Measure("precision", "True"),
        Measure("ROC area", "Ranked"),
    )
    table = ComparisonTable(measures, "Nothing yet.")
    qtbot.addWidget(table)
    table.set_rows(
        [
            ComparisonRow(
                1, "OEM", "12:01", ((84, *UNKNOWN[:2]), (0.9, 0.8, 0.95), (0.8, 0.7, 0.9), UNKNOWN)
            ),
            ComparisonRow(
                2, "k-means", "11:40", ((1070, *UNKNOWN[:2]), (0.7, 0.6, 0.8), (0.97, 0.9, 0.99), UNKNOWN)
            ),
        ],
        "84 true positions",
    )
    assert bold(table) == [[False, False, True, False, False], [False, False, False, True, False]]
    assert cells(table)[1] == ["k-means  11:40", "1,070", "0.70 (0.60 to 0.80)", "0.97 (0.90 to 0.99)", "–"]
    chosen = []
    table.run_chosen.connect(chosen.append)
    table.view.selectRow(1)
    assert chosen == [2]


def test_the_best_is_the_least_distance_and_the_volume_nearest_to_none(qtbot):
    measures = (Measure("HD95", "Away", "lowest"), Measure("volume", "Too much", "nearest 0"))
    table = ComparisonTable(measures, "Nothing yet.")
    qtbot.addWidget(table)
    rows = [
        ComparisonRow(key, str(key), "", ((away, *UNKNOWN[:2]), (volume, *UNKNOWN[:2])))
        for key, away, volume in ((1, 2.5, -3.0), (2, 1.5, 0.5), (3, math.nan, -0.25))
    ]
    table.set_rows(rows)
    assert [line[1:] for line in bold(table)] == [[False, False], [True, False], [False, True]]
    table.set_rows(rows[:1])
    assert bold(table) == [[False, False, False]]  # alone it is the best of nothing


def test_measures_can_change_and_high_lines_have_room(qtbot):
    table = ComparisonTable((Measure("one", "The first"),), "Nothing yet.")
    qtbot.addWidget(table)
    table.show()
    table.set_rows([ComparisonRow(1, "OEM", "12:01", ((0.5, 0.4, 0.6),))])
    low = table.view.rowHeight(0)
    two = Measure("two", "In two lines", write=lambda *values: "{}\n{} to {}".format(*values))
    table.set_rows([ComparisonRow(1, "OEM", "12:01", ((0.5, 0.4, 0.6),))], measures=(two,))
    assert cells(table) == [["OEM  12:01", "0.5\n0.4 to 0.6"]]
    assert table.view.rowHeight(0) > low
    assert cells(table, Qt.ItemDataRole.AccessibleTextRole)[0][1] == "two 0.5, 0.4 to 0.6"


def test_the_keys_may_come_to_the_runs_without_choosing_one(qtbot):
    table = ComparisonTable((Measure("one", "The first"),), "Nothing yet.")
    qtbot.addWidget(table)
    table.set_rows([ComparisonRow(key, key, "", ((0.5, 0.4, 0.6),)) for key in ("first", "second")])
    chosen = []
    table.run_chosen.connect(chosen.append)
    table.show()
    table.activateWindow()
    table.view.setFocus()
    qtbot.waitUntil(table.view.hasFocus)
    assert chosen == []
    qtbot.keyClick(table.view, Qt.Key.Key_Down)
    qtbot.keyClick(table.view, Qt.Key.Key_Down)
    assert chosen == ["first", "second"]


def _ends(view, position, height, column):
    """Return from where to where there is something in a column, of the pixels of a height below a place."""
    left, width = view.columnViewportPosition(column), view.columnWidth(column)
    picture = view.grab(QRect(0, position, view.width(), height)).toImage()
    ground = picture.pixelColor(left + 1, 1)
    there = [
        x
        for x in range(left, left + width)
        if any(abs(picture.pixelColor(x, y).lightness() - ground.lightness()) > 60 for y in range(height))
    ]
    return there[0] - left, there[-1] - left


@pytest.mark.parametrize(
    ("kind", "left", "right"),
    [("annotators", (2, 3), (1,)), ("runs", (0, 1, 2), ()), ("raters", (), (2, 5, 6))],
)
def test_figures_stand_where_the_heads_of_their_columns_do(table, qtbot, qapp, kind, left, right):
    theme.apply_theme(qapp, theme.DARK)
    if kind == "annotators":
        view = table.view
        view.sortByColumn(0, Qt.SortOrder.DescendingOrder)  # the arrow is elsewhere
    elif kind == "runs":
        runs = ComparisonTable([Measure("accuracy", ""), Measure("log loss", "")], "nothing")
        runs.set_rows([ComparisonRow(1, "IBCC", "12:01", ((0.9, 0.8, 0.95), (0.3, math.nan, math.nan)))])
        view = runs.view
        widget = runs
    else:
        raters = RaterTable()
        raters.set_rows([RaterRow(0, "rater 1", 0.96, 0.1, 0.5, 12.0, 0.95, 1.2)])
        view, widget = raters.view, raters
    if kind != "annotators":
        qtbot.addWidget(widget)
        widget.resize(720, 200)
        widget.show()
    qapp.processEvents()
    head = view.horizontalHeader().height()
    for columns, end in ((left, 0), (right, 1)):
        for column in columns:
            of_head = _ends(view, 3, head - 8, column)
            of_row = _ends(view, head + 3, view.rowHeight(0) - 12, column)
            assert of_head[end] == pytest.approx(of_row[end], abs=2), column


def test_the_header_of_the_sorted_column_is_marked_and_aligned_with_its_figures(table, qapp):
    theme.apply_theme(qapp, theme.DARK)
    heads = [table.model.headerData(at, Qt.Orientation.Horizontal) for at in range(3)]
    assert heads == ["annotator", "clicks ▾", "reliability"]
    qapp.processEvents()
    head = _ends(table.view, 3, table.view.horizontalHeader().height() - 8, 1)
    row = _ends(table.view, table.view.horizontalHeader().height() + 3, 16, 1)
    assert head[1] == pytest.approx(row[1], abs=3)
    table.view.sortByColumn(2, Qt.SortOrder.AscendingOrder)
    heads = [table.model.headerData(at, Qt.Orientation.Horizontal) for at in range(3)]
    assert heads == ["annotator", "clicks", "reliability ▴"]


def test_columns_of_a_ranking_fit_the_widest_item_however_far_down_it_is(qtbot):
    table = RankingTable()
    qtbot.addWidget(table)
    number = 3000
    names = [f"item {at}" for at in range(number)]
    names[2000] = "the item with by far the longest name"
    cells = [(f"{at + 1:,}", f"{at:.2f}", "1", "0", "0", "50 % (9 to 91)") for at in range(number)]
    table.show_ranking(RankingRows(np.arange(number), names, cells, None, lambda row, column: ""))
    for row, column in ((2000, 1), (number - 1, 0), (number - 1, 2)):
        needed = table.view.sizeHintForIndex(table.model.index(row, column)).width()
        assert table.view.columnWidth(column) >= needed
