import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication

from raterscope.widgets.figures.cells import NAME_ROOM
from raterscope.widgets.figures.confusion_wall import ConfusionWall, Measure, WallView

LEFT = Qt.MouseButton.LeftButton
CONTROL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier


def wall_of(count=40, rows=2, columns=3, **more) -> WallView:
    """Annotators 100, 101, ...; accuracy rises with the number, votes fall."""
    mean = np.random.default_rng(0).dirichlet(np.ones(columns), (count, rows))
    accuracy = np.linspace(0.2, 0.95, count)
    votes = np.arange(count, 0, -1) * 10
    fields = {
        "numbers": np.arange(100, 100 + count),
        "names": tuple(f"user{number:03d}" for number in range(count)),
        "mean": mean,
        "votes": votes,
        "measures": (("accuracy", accuracy, ".2f"), Measure("votes", votes.astype(float), ",.0f")),
        "excluded": np.zeros(count, bool),
        "community": np.arange(count, dtype=np.int16) % 4 - 1,
        "classes": tuple(f"class {row}" for row in range(rows)),
        "outputs": tuple(f"says {column}" for column in range(columns)),
    }
    return WallView(**{**fields, **more})


@pytest.fixture
def wall(qtbot):
    widget = ConfusionWall()
    qtbot.addWidget(widget)
    widget.resize(900, 400)
    widget.show()
    widget.set_wall(wall_of())
    widget.heard = []
    widget.selection_changed.connect(widget.heard.append)
    return widget


def spot(wall, number) -> QPoint:
    return wall.tiles.box_of(number - 100).center().toPoint()


def click(qtbot, wall, number, modifier=Qt.KeyboardModifier.NoModifier):
    qtbot.mouseClick(wall.tiles.viewport(), LEFT, modifier, spot(wall, number))


def press(qtbot, wall, *keys, modifier=Qt.KeyboardModifier.NoModifier):
    for key in keys:
        qtbot.keyClick(wall.tiles, key, modifier)


def test_the_most_accurate_come_first_and_the_unknown_last_either_way(wall):
    assert wall.shown[:2] == (139, 138)
    accuracy = np.linspace(0, 1, 40)
    accuracy[5] = np.nan
    wall.set_wall(wall_of(measures=(("accuracy", accuracy, ".2f"),)))
    assert (wall.shown[0], wall.shown[-1]) == (139, 105)
    wall.direction.click()
    assert wall.direction.text() == "lowest first"
    assert (wall.shown[0], wall.shown[-1]) == (100, 105)


def test_the_measure_is_chosen_in_words_and_stays(wall, qtbot):
    wall.measure.setCurrentText("by votes")
    assert wall.shown[0] == 100
    wall.set_wall(wall_of(20))
    assert wall.measure.currentText() == "by votes"
    wall.measure.setCurrentText("by accuracy")
    wall.direction.click()
    assert wall.shown[:2] == (100, 101)


def test_a_click_selects_one_control_one_more_and_shift_all_between(wall, qtbot):
    click(qtbot, wall, 139)
    click(qtbot, wall, 136, CONTROL)
    click(qtbot, wall, 134, SHIFT)
    click(qtbot, wall, 135, CONTROL)
    assert wall.heard == [(139,), (139, 136), (136, 135, 134), (136, 134)]
    qtbot.mouseClick(wall.tiles.viewport(), LEFT, pos=QPoint(2, 2))
    assert wall.heard[-1] == ()


def test_the_wall_is_walked_by_keyboard(wall, qtbot):
    press(qtbot, wall, Qt.Key.Key_Home, Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Left)
    assert wall.heard == [(139,), (138,), (139 - 2,), (138,)]
    down = wall.shown.index(138)
    press(qtbot, wall, Qt.Key.Key_Down)
    columns = wall.shown.index(wall.heard[-1][0]) - down
    assert columns > 3
    above, below = spot(wall, 138), spot(wall, wall.heard[-1][0])
    assert above.x() == below.x()
    assert above.y() < below.y()
    press(qtbot, wall, Qt.Key.Key_Up, Qt.Key.Key_Up)
    assert wall.heard[-1] == (138,)
    press(qtbot, wall, Qt.Key.Key_End)
    assert wall.heard[-1] == (100,)
    press(qtbot, wall, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)
    assert wall.heard[-1] == (100,)
    press(qtbot, wall, Qt.Key.Key_Left, modifier=SHIFT)
    assert wall.heard[-1] == (101, 100)
    press(qtbot, wall, Qt.Key.Key_A, modifier=CONTROL)
    assert wall.heard[-1] == wall.shown
    press(qtbot, wall, Qt.Key.Key_Escape)
    assert wall.heard[-1] == ()


def test_control_walks_without_selecting_and_space_selects(wall, qtbot):
    press(qtbot, wall, Qt.Key.Key_Home)
    press(qtbot, wall, Qt.Key.Key_Right, Qt.Key.Key_Right, modifier=CONTROL)
    assert wall.heard == [(139,)]
    press(qtbot, wall, Qt.Key.Key_Space)
    assert wall.heard[-1] == (139, 137)


def test_return_and_a_double_click_ask_for_an_annotator(wall, qtbot):
    requests = []
    wall.activated.connect(requests.append)
    press(qtbot, wall, Qt.Key.Key_Home, Qt.Key.Key_Return)
    qtbot.mouseDClick(wall.tiles.viewport(), LEFT, pos=spot(wall, 138))
    assert requests == [139, 138]


def test_a_slash_finds_by_name_and_return_goes_back_to_the_wall(wall, qtbot):
    press(qtbot, wall, Qt.Key.Key_R)
    assert wall.filter.text() == ""
    press(qtbot, wall, Qt.Key.Key_Slash)
    assert wall.focusWidget() is wall.filter
    qtbot.keyClicks(wall.filter, "r03")
    assert wall.filter.text() == "r03"
    assert set(wall.shown) == set(range(130, 140))
    qtbot.keyClick(wall.filter, Qt.Key.Key_Return)
    press(qtbot, wall, Qt.Key.Key_Home)
    assert wall.heard == [(139,)]
    wall.filter.setText("USER007")
    assert wall.shown == (107,)
    wall.filter.setText("nobody")
    assert wall.shown == ()
    assert wall._nothing.isVisible()
    assert wall._nothing.text() == "No annotator matches."
    qtbot.keyClick(wall.filter, Qt.Key.Key_Escape)
    assert len(wall.shown) == 40


def test_an_annotator_is_described(wall, qtbot):
    excluded = np.zeros(40, bool)
    excluded[39] = True
    mean = np.tile([[0.9, 0.03, 0.07], [0.12, 0.05, 0.83]], (40, 1, 1))
    wall.set_wall(wall_of(excluded=excluded, mean=mean))
    press(qtbot, wall, Qt.Key.Key_Home)
    assert wall.tiles.accessibleDescription() == (
        "user039, accuracy 0.95, 10 votes, community 3, excluded; true class 0: says 0 0.90, says 1 0.03, "
        "says 2 0.07; true class 1: says 0 0.12, says 1 0.05, says 2 0.83, selected"
    )


def test_who_is_selected_stays_selected_when_the_wall_is_shown_again_or_sorted(wall, qtbot):
    wall.select([105, 106, 999])
    assert wall.heard == []
    wall.measure.setCurrentText("by votes")
    assert wall.selected == (105, 106)
    wall.set_wall(wall_of(30))
    assert wall.selected == (105, 106)
    wall.set_wall(wall_of(6))
    assert wall.selected == (105,)
    assert wall.heard == []


def test_the_selected_are_brought_into_view(wall):
    wall.set_wall(wall_of(3000))
    wall.select([100])
    box = wall.tiles.box_of(0)
    assert box.top() >= 0
    assert box.bottom() <= wall.tiles.viewport().height()


def test_the_tiles_grow_and_shrink_and_what_is_current_stays_in_view(wall, qtbot):
    wall.set_wall(wall_of(3000))
    wall.select([1500])
    usual = wall.tiles.side
    press(qtbot, wall, Qt.Key.Key_Plus, Qt.Key.Key_Plus)
    assert wall.tiles.side > usual
    assert wall.tiles.viewport().rect().contains(spot(wall, 1500))
    where = QPointF(50, 50)
    for turn in (-120, -120, -120, -120):
        wheel = QWheelEvent(
            where, wall.tiles.viewport().mapToGlobal(where), QPoint(), QPoint(0, turn),
            Qt.MouseButton.NoButton, CONTROL, Qt.ScrollPhase.NoScrollPhase, False,
        )  # fmt: skip
        QApplication.sendEvent(wall.tiles.viewport(), wheel)
    assert wall.tiles.side < usual
    assert wall.tiles.viewport().rect().contains(spot(wall, 1500))
    press(qtbot, wall, *[Qt.Key.Key_Minus] * 40)
    assert 8 < wall.tiles.side < usual
    press(qtbot, wall, Qt.Key.Key_0, modifier=CONTROL)
    assert wall.tiles.side == usual


def test_a_few_are_shown_large_and_many_small(wall):
    wall.set_wall(wall_of(6))
    few = wall.tiles.side
    wall.set_wall(wall_of(3000))
    assert few > 1.5 * wall.tiles.side


def test_a_low_wall_has_room_for_names(wall):
    wall.set_wall(wall_of(5, 5, 5))
    wall.resize(420, wall.height() - wall.tiles.room().height() + 80)
    tiles = wall.tiles
    assert tiles.room().height() == 80
    assert tiles._grid().caption == NAME_ROOM
    assert tiles.box_of(tiles.order[0]).bottom() <= 80


def test_a_highlighted_community_keeps_its_colours_and_the_others_are_dimmed(wall):
    def tile(number):
        return wall.tiles.viewport().grab(wall.tiles.box_of(number - 100).toRect()).toImage()

    before = tile(139), tile(138)
    wall.highlight([139, 135])
    assert tile(139) == before[0]
    assert tile(138) != before[1]
    assert "2 of 40" in wall.header._subtitle.text()
    wall.highlight(None)
    assert tile(138) == before[1]


def test_excluded_annotators_are_crossed_out(wall):
    before = wall.tiles.viewport().grab().toImage()
    wall.set_wall(wall_of(excluded=np.ones(40, bool)))
    assert wall.tiles.viewport().grab().toImage() != before


@pytest.mark.parametrize("shape", [(1, 1), (18, 18), (3, 9)])
def test_matrices_of_any_shape_and_what_is_not_known_are_painted(wall, shape):
    view = wall_of(500, *shape)
    view.mean[::3] = np.nan
    wall.set_wall(view)
    for _ in range(12):
        wall.tiles.zoom(-1)
        assert not wall.tiles.viewport().grab().isNull()
    assert wall.tiles.text_of(0) == "user000, accuracy 0.20, 5,000 votes"


def test_an_empty_wall_explains_what_it_shows(wall):
    for nobody in (None, wall_of(0)):
        wall.set_wall(nobody)
        assert wall.shown == wall.selected == ()
        assert "Press Fuse (F5)" in wall._nothing.text()
        assert not wall.filter.isVisible()


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="40"):
        wall_of(votes=np.ones(3))
    with pytest.raises(ValueError, match="shape"):
        wall_of(classes=("a",))
    with pytest.raises(ValueError, match="sort"):
        wall_of(measures=())


def test_a_highlight_stays_when_the_wall_is_shown_or_sorted_again(wall):
    wall.highlight([139, 135])
    wall.measure.setCurrentText("by votes")
    wall.set_wall(wall_of(38))
    assert "1 of 38" in wall.header._subtitle.text()
    wall.highlight(())
    assert wall.header._subtitle.text() == "size = votes"


def test_in_a_narrow_window_the_header_keeps_what_can_be_done(wall):
    wall.resize(420, 300)
    assert wall.width() == 420
    assert wall.filter.isVisible()
    assert wall.measure.isVisible()
    assert wall.direction.accessibleDescription() == "highest first"
    assert wall.direction.geometry().right() <= wall.header.width()
    wall.direction.click()
    assert wall.direction.accessibleDescription() == "lowest first"
    assert wall.shown[0] == 100


def test_who_is_selected_is_not_dimmed(wall):
    wall.select([138])
    box = wall.tiles.box_of(38).toRect()
    before = wall.tiles.viewport().grab(box).toImage()
    wall.highlight([139])
    assert wall.tiles.viewport().grab(box).toImage() == before
