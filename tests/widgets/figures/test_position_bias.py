"""Left against right counts: positions of dots, their description, clicks and keys."""

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt

from raterscope.widgets import theme
from raterscope.widgets.figures.position_bias import SideCounts, SidesView

LEFT = Qt.MouseButton.LeftButton


def view(**more) -> SidesView:
    fields = {
        "left": np.array([191, 100, 40, 88]),
        "right": np.array([9, 100, 0, 270]),
        "behaviour": np.array([2, 0, 2, 1]),
        "flagged": np.array([True, False, True, True]),
        "names": ("ann", "bob", "cy", "<i>dee</i>"),
        "numbers": np.array([70, 21, 40, 12]),
    }
    return SidesView(**{**fields, **more})


@pytest.fixture
def sides(qtbot, qapp):
    theme.apply_theme(qapp, theme.DARK)
    widget = SideCounts()
    qtbot.addWidget(widget)
    widget.resize(310, 390)
    widget.show()
    widget.selections = []
    widget.chosen.connect(widget.selections.append)
    widget.show_sides(view())
    return widget


def part(sides, row: int) -> tuple[int, int]:
    """The part that stands for an annotator's row: the flagged come first."""
    return 1, sides._rows.tolist().index(row)


@pytest.mark.parametrize("mode", ["log", "linear"])
def test_dots_lie_by_their_counts_and_equal_ones_on_the_diagonal(sides, mode):
    sides.scale.set_mode(mode)
    dots = [sides.figure.position_of(part(sides, row)) for row in range(4)]
    assert dots[2].x() < dots[3].x() < dots[1].x() < dots[0].x()  # left: 40, 88, 100, 191
    assert dots[3].y() < dots[1].y() < dots[0].y() < dots[2].y()  # right, upwards: 270, 100, 9, 0
    box = sides.figure.plan.box
    along = (dots[1].x() - box.left) / box.width, (box.bottom - dots[1].y()) / box.height
    assert along[0] == pytest.approx(along[1])


@pytest.mark.parametrize("mode", ["log", "linear"])
def test_a_click_on_a_dot_selects_its_annotator(sides, qtbot, mode):
    sides.scale.set_mode(mode)
    for row, number in enumerate((70, 21, 40, 12)):
        qtbot.mouseClick(sides.figure, LEFT, pos=sides.figure.position_of(part(sides, row)).toPoint())
        assert sides.selections[-1] == number
    box = sides.figure.plan.box
    qtbot.mouseClick(sides.figure, LEFT, pos=QPoint(round(box.right) - 1, round(box.bottom) - 40))
    assert len(sides.selections) == 4


def test_a_dot_shows_annotator_counts_and_flag(sides):
    assert sides.figure.text_of(part(sides, 3)) == "<i>dee</i>: 88 left, 270 right, leaning, flagged"
    assert sides.figure.text_of(part(sides, 1)) == "bob: 100 left, 100 right, no bias found"
    sides.set_flagged(np.zeros(4, bool), np.zeros(4, int))
    assert sides.figure.text_of(part(sides, 3)) == "<i>dee</i>: 88 left, 270 right, no bias found"


def test_where_dots_lie_above_each_other_the_flagged_one_is_chosen(sides):
    sides.show_sides(view(left=np.full(4, 50), right=np.full(4, 60), flagged=np.arange(4) == 2))
    assert sides.figure.part_at(sides.figure.position_of(part(sides, 0))) == part(sides, 2)


def test_a_flagged_dot_has_another_shape(sides, qtbot):
    far = view(left=np.array([10, 50, 100, 190]), right=np.array([150, 100, 50, 10]))
    pictures = []
    for flagged in (False, True):
        sides.show_sides(replace(far, flagged=np.full(4, flagged)))
        picture = sides.figure.grab().toImage()
        point = sides.figure.position_of(part(sides, 1)).toPoint()
        pictures.append(picture.pixelColor(point))
    ring, square = pictures
    ground = picture.pixelColor(point + QPoint(12, 12))
    assert ring == ground  # hollow
    assert square != ground


def test_the_keys_walk_by_left_and_by_right_counts(sides, qtbot):
    sides.select(40)
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Return):
        qtbot.keyClick(sides.figure, key)
    assert sides.selections == [12]  # from cy, who chose left 40 times, to dee with 88
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Down, Qt.Key.Key_Return):
        qtbot.keyClick(sides.figure, key)
    assert sides.selections == [12, 70]  # 270 right, then 100, then 9


def test_zero_counts_are_shown(sides, qtbot):
    none = np.zeros(4, int)
    for mode in ("linear", "log"):
        sides.scale.set_mode(mode)
        sides.show_sides(view(left=none, right=none))
        assert not sides.figure.grab().isNull()
    sides.show_sides(view(left=none[:0], right=none[:0], behaviour=none[:0], flagged=none[:0] > 0, names=(),
                          numbers=none[:0]))  # fmt: skip
    assert not sides.figure.grab().isNull()
    qtbot.keyClick(sides.figure, Qt.Key.Key_Right)
    sides.show_sides(None)
    assert not sides.filled
    with pytest.raises(ValueError, match="annotators"):
        view(left=none[:3])
