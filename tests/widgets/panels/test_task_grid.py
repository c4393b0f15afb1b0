import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QImage

from raterscope.widgets import theme
from raterscope.widgets.panels.card_panels import GridView, TaskGrid
from tests.reading import visible_words

pytestmark = pytest.mark.usefixtures("dark")


@pytest.fixture
def grid(qtbot):
    widget = TaskGrid()
    qtbot.addWidget(widget)
    widget.resize(360, 300)
    widget.show()
    return widget


def view(count=41, **changes) -> GridView:
    values = {
        "title": "said 3 where true is 'not'",
        "tasks": np.arange(count) * 2,
        "names": [f"task {index:04}" for index in range(2 * count)],
        "classes": ("not", "supernova"),
        "posterior": np.tile([0.93, 0.07], (2 * count, 1)),
        "outputs": ("-1", "1", "3"),
        "answers": np.full(count, 2),
    }
    return GridView(**{**values, **changes})


def picture() -> QImage:
    instance = QImage(200, 100, QImage.Format.Format_RGB32)
    instance.fill(QColor("#ff0000"))
    return instance


def test_the_header_shows_the_shared_property_and_the_count(grid):
    grid.show_tasks(view())
    assert "said 3 where true is 'not'" in visible_words(grid)
    assert "41 tasks" in visible_words(grid)
    model = grid.view.model()
    assert model.index(0, 1).data() == "task 0002, answered 3, not 0.93"
    grid.show_tasks(view(0))
    assert "No tasks in this cell." in visible_words(grid)
    grid.show_tasks(None)
    assert "Select a cell" in visible_words(grid)


def test_only_pictures_in_sight_are_requested_and_each_once(grid, qtbot):
    picture_requested = []
    grid.pictures.picture_requested.connect(picture_requested.append)
    grid.show_tasks(view(100_000))
    qtbot.waitUntil(lambda: bool(picture_requested))
    first = list(picture_requested)
    assert first == [2 * index for index in range(len(first))]
    assert 6 <= len(first) <= 12
    for task in first[:-1]:
        grid.pictures.keep(task, picture())
    grid.view.scrollToBottom()
    qtbot.waitUntil(lambda: len(picture_requested) > len(first))
    assert picture_requested[-1] == 199_998
    assert len(picture_requested) == len(set(picture_requested)) < 30
    grid.view.scrollToTop()
    qtbot.wait(80)
    assert sorted(picture_requested) == sorted(set(picture_requested))


def test_a_picture_that_was_given_is_seen_and_one_that_is_not_there_is_reported(grid):
    grid.show_tasks(view())
    grid.pictures.keep(0, picture())
    grid.pictures.keep(2, None)
    shown = grid.view.viewport().grab().toImage()
    centre = grid.view.visualRect(grid.view.model().index(0, 0)).center()
    # A wide picture lies in the middle of its square, whole.
    assert shown.pixelColor(centre.x(), centre.y() - 24) == QColor("#ff0000")
    assert shown.pixelColor(centre.x(), centre.y() - 60) == QColor(theme.DARK.canvas)
    other = grid.view.visualRect(grid.view.model().index(0, 1)).center()
    assert shown.pixelColor(other.x(), other.y() - 60) == QColor(theme.DARK.canvas)


def test_a_click_and_the_arrows_choose_a_task_never_an_empty_place(grid, qtbot):
    grid.show_tasks(view(5))
    chosen = []
    grid.chosen.connect(chosen.append)
    box = grid.view.visualRect(grid.view.model().index(0, 1))
    qtbot.mouseClick(grid.view.viewport(), Qt.MouseButton.LeftButton, pos=box.center())
    qtbot.keyClick(grid.view, Qt.Key.Key_Down)
    for _ in range(4):
        qtbot.keyClick(grid.view, Qt.Key.Key_Right)
    assert chosen[0] == 2
    assert set(chosen) <= {0, 2, 4, 6, 8}
    columns = grid.view.model().columnCount()
    assert chosen[1] == 2 + 2 * columns


def test_what_is_current_stays_the_same_task_when_the_width_changes(grid):
    grid.show_tasks(view())
    model = grid.view.model()
    before = model.columnCount()
    grid.view.setCurrentIndex(model.index(2, 1))
    chosen = []
    grid.chosen.connect(chosen.append)
    text = grid.view.currentIndex().data()
    grid.resize(800, 300)
    assert model.columnCount() > before
    assert grid.view.currentIndex().data() == text
    assert chosen == []


def test_without_pictures_it_is_a_list_of_names_and_asks_for_none(grid, qtbot):
    picture_requested = []
    grid.pictures.picture_requested.connect(picture_requested.append)
    grid.show_tasks(view(pictures=False, posterior=None, answers=None))
    assert grid.view.model().columnCount() == 1
    assert grid.view.model().index(3, 0).data() == "task 0006"
    assert grid.view.rowHeight(0) < 30
    qtbot.wait(80)
    assert picture_requested == []
