"""Comparisons for and against an annotator: descriptions, frames and signals."""

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QLabel

from raterscope.widgets import theme
from raterscope.widgets.panels.pair_browser import PairGrid, PairsView


def view(**more) -> PairsView:
    """Against nine of ten, with four of five, against one other, against the ranking, a tie, nobody knows."""
    fields = {
        "name": "<u>obs_13</u>",
        "comparison": np.array([40, 41, 42, 43, 44, 45]),
        "left": np.array([0, 1, 2, 3, 0, 1]),
        "right": np.array([1, 2, 3, 0, 2, 3]),
        "choice": np.array([-1.0, 1.0, 1.0, 2.5, 0.0, -1.0]),
        "others_left": np.array([9, 4, 0, 2, 3, 0]),
        "others": np.array([10, 5, 1, 4, 3, 0]),
        "ranking": np.array([1.0, 1.0, 1.0, -0.3, 1.0, np.nan]),
        "names": ("face 0", "<b>face 1</b>", "face 2", "face 3"),
    }
    return PairsView(**{**fields, **more})


@pytest.fixture
def grid(qtbot, qapp):
    theme.apply_theme(qapp, theme.DARK)
    widget = PairGrid()
    qtbot.addWidget(widget)
    widget.resize(360, 260)
    widget.show()
    widget.selections, widget.picture_requested = [], []
    widget.chosen.connect(widget.selections.append)
    widget.pictures.picture_requested.connect(widget.picture_requested.append)
    return widget


def lines(grid) -> list[str]:
    model = grid.view.model()
    role = Qt.ItemDataRole.AccessibleTextRole
    return [model.index(row, 0).data(role) for row in range(model.rowCount())]


def test_what_speaks_against_comes_first_and_what_speaks_for_on_demand(grid):
    grid.show_pairs(view())
    assert lines(grid) == [
        "face 0 or <b>face 1</b>: chose right, 9 of 10 others chose left",
        "face 2 or face 3: chose left, the other one chose right; ranking: left",
        "face 3 or face 0: chose left, 2 of 4 others chose left; ranking: right",
    ]
    grid.modes.set_mode("for")
    assert lines(grid) == [
        "<b>face 1</b> or face 2: chose left, 4 of 5 others chose left",
        "face 0 or face 2: chose neither, 3 of 3 others chose left",
        "<b>face 1</b> or face 3: chose right, no other comparison",
    ]


def test_going_to_a_line_names_its_comparison(grid, qtbot):
    grid.show_pairs(view())
    qtbot.mouseClick(grid.view.viewport(), Qt.MouseButton.LeftButton,
                     pos=grid.view.visualRect(grid.view.model().index(1, 0)).center())  # fmt: skip
    qtbot.keyClick(grid.view, Qt.Key.Key_Down)
    assert grid.selections == [42, 43]
    grid.modes.set_mode("for")
    assert grid.selections == [42, 43]
    qtbot.keyClick(grid.view, Qt.Key.Key_Down)
    assert grid.selections[-1] in (41, 44)


def test_annotators_are_named_where_their_answers_differ(grid):
    grid.show_pairs(view(annotators=("ann", "bob", "cy", "dee", "eve", "fay")))
    assert lines(grid)[0].endswith("ann chose right, 9 of 10 others chose left")


@pytest.mark.parametrize("pictures", [True, False])
def test_the_preferred_one_is_framed(grid, qtbot, pictures):
    grid.show_pairs(view(pictures=pictures))
    drawn = grid.view.viewport().grab().toImage()
    mark = QColor(theme.DARK.rejected)

    def framed(row) -> tuple[bool, bool]:
        """Return whether there is a frame about the left one, and about the right one."""
        box = grid.view.visualRect(grid.view.model().index(row, 0))
        middle = 51 if pictures else box.width() / 2 - 2
        at = {x for x in range(box.width()) for y in range(box.top(), box.bottom())
              if drawn.pixelColor(x, y) == mark}  # fmt: skip
        return any(x < middle for x in at), any(x > middle for x in at)

    assert framed(0) == (False, True)
    assert framed(1) == (True, False)


def test_pictures_of_what_is_in_sight_are_requested_once(grid, qtbot):
    count = 2000
    left = np.arange(count)
    ones = np.ones(count, int)
    grid.show_pairs(
        view(comparison=left, left=left, right=left + 1, choice=-1.0 * ones, others_left=ones, others=ones,
             ranking=1.0 * ones, names=[f"face {item}" for item in range(count + 1)], pictures=True)
    )  # fmt: skip
    qtbot.waitUntil(lambda: len(grid.picture_requested) > 3)
    assert max(grid.picture_requested) < 12
    red = QImage(30, 30, QImage.Format.Format_RGB32)
    red.fill(QColor("#ff0000"))
    for item in grid.picture_requested:
        grid.pictures.keep(item, red)
    drawn = grid.view.viewport().grab().toImage()
    assert drawn.pixelColor(26, 28).name() == "#ff0000"
    request_count = len(grid.picture_requested)
    grid.view.scrollToBottom()
    qtbot.waitUntil(lambda: len(grid.picture_requested) > request_count)
    assert min(grid.picture_requested[request_count:]) > count - 12


def test_an_empty_side_and_no_annotator_chosen_are_reported(grid):
    def visible_text() -> str:
        return "\n".join(label.text() for label in grid.findChildren(QLabel) if label.isVisible())

    assert "select an annotator" in visible_text()
    grid.show_pairs(view(choice=np.zeros(6)))
    assert "No comparison is evidence against" in visible_text()
    assert "0 of 6" in visible_text()
    assert "<u>obs_13</u>" in visible_text()
    grid.show_pairs(None)
    assert "select an annotator" in visible_text()
    with pytest.raises(ValueError, match="comparisons"):
        view(others=np.zeros(2, int))


def test_of_two_items_all_comparisons_are_shown_and_none_is_called_one_against_an_annotator(qtbot):
    grid = PairGrid(of_items=True)
    qtbot.addWidget(grid)
    grid.show()
    grid.show_pairs(view(annotators=("ann", "bob", "cy", "dee", "eve", "fay")))
    assert len(lines(grid)) == 6
    assert not grid.modes.isVisible()
    none = {name: np.empty(0, int) for name in ("comparison", "left", "right", "others_left", "others")}
    grid.show_pairs(view(**none, choice=np.empty(0), ranking=np.empty(0)))
    texts = [label.text() for label in grid.findChildren(QLabel) if label.isVisible()]
    assert "No annotator compared these two items." in texts
