import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication, QLabel
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from raterscope.figures.description import Segments
from raterscope.widgets.figures.agreement_plots import (
    AgreementMatrix,
    AnnotatorCourse,
    CoursePlot,
    CourseView,
    Dendrogram,
)
from tests.widgets.pointing import centre

NAMES = ["rater 1", "rater 2", "<b>3</b>", "rater 4"]


def visible_words(widget) -> str:
    return "\n".join(label.text() for label in widget.findChildren(QLabel) if label.isVisible())


@pytest.fixture
def matrix(qtbot):
    widget = AgreementMatrix()
    qtbot.addWidget(widget)
    widget.resize(260, 260)
    widget.show()
    values = np.full((4, 4), 0.9)
    values[0, 3] = values[3, 0] = 0.6
    values[1, 2] = values[2, 1] = np.nan
    np.fill_diagonal(values, 1.0)
    widget.set_matrix(NAMES, [0, 1, 2, 9], values)
    return widget


def test_a_rater_selected_again_repaints_nothing(matrix, monkeypatch):
    drawn = []
    monkeypatch.setattr(type(matrix.figure), "draw", lambda self, painter: drawn.append(self._selected))
    for name in ("rater 1", "rater 1", "rater 2", "rater 2"):
        matrix.select(name)
        QApplication.processEvents()
    assert [name for name in drawn if name] == ["rater 1", "rater 2"]


def test_its_table_calls_them_as_the_kind_does(matrix, qtbot):
    assert matrix.figure.table().columns[:2] == ("rater", "other rater")
    of_clicks = AgreementMatrix(noun="annotator")
    qtbot.addWidget(of_clicks)
    of_clicks.set_matrix(NAMES, [0, 1, 2, 9], np.ones((4, 4)))
    assert of_clicks.figure.table().columns[:2] == ("annotator", "other annotator")


def test_a_cell_describes_and_selects_its_pair(matrix, qtbot):
    chosen = []
    matrix.figure.chosen.connect(lambda *pair: chosen.append(pair))
    assert matrix.figure.text_of((0, 3)) == "rater 1 and rater 4: Dice 0.60"
    assert matrix.figure.text_of((1, 2)) == "rater 2 and <b>3</b>: no case in common"
    qtbot.mouseClick(matrix.figure, Qt.MouseButton.LeftButton, pos=centre(matrix.figure, (3, 1)))
    assert chosen == [("rater 4", "rater 2")]
    assert matrix.figure.accessibleDescription() == "rater 4 and rater 2: Dice 0.90"


def test_the_matrix_is_walked_by_keyboard_and_not_over_its_edge(matrix, qtbot):
    chosen = []
    matrix.figure.chosen.connect(lambda *pair: chosen.append(pair))
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Up, *[Qt.Key.Key_Right] * 6, Qt.Key.Key_Return):
        qtbot.keyClick(matrix.figure, key)
    assert chosen == [("rater 1", "rater 4")]


def test_two_who_agree_less_are_darker(matrix):
    picture = matrix.figure.grab().toImage()

    def lightness(row, column):
        return picture.pixelColor(centre(matrix.figure, (row, column)) + QPoint(-12, -12)).lightnessF()

    assert lightness(0, 3) < lightness(0, 1)


def test_the_selected_rater_is_set_off(matrix):
    before = matrix.figure.grab().toImage()
    other, own = (centre(matrix.figure, (0, column)) + QPoint(-12, -12) for column in (1, 3))
    matrix.select("rater 4")
    after = matrix.figure.grab().toImage()
    assert after.pixelColor(own) == before.pixelColor(own)
    assert after.pixelColor(other) != before.pixelColor(other)
    matrix.select(None)
    assert matrix.figure.grab().toImage() == before


def test_one_rater_agrees_with_no_annotator(matrix):
    matrix.set_matrix(["alone"], [0], np.ones((1, 1)))
    assert not matrix.filled
    assert "it takes two" in visible_words(matrix)


@pytest.fixture
def tree(qtbot):
    widget = Dendrogram()
    qtbot.addWidget(widget)
    widget.resize(300, 200)
    widget.show()
    far = np.array([[0, 1, 4, 9], [1, 0, 3, 8], [4, 3, 0, 7], [9, 8, 7, 0]], dtype=float)
    widget.set_tree(linkage(squareform(far), "complete"), NAMES, range(4), "complete linkage", "mm")
    return widget


def test_a_branch_shows_its_members_and_its_height(tree):
    assert tree.figure.text_of(4) == "rater 1, rater 2: joined at 1 mm"
    assert set(tree.figure.text_of(5).split(": ")[0].split(", ")) == {"rater 1", "rater 2", "<b>3</b>"}
    assert tree.figure.text_of(6).endswith("joined at 9 mm")


def test_a_click_on_a_branch_chooses_those_under_it_and_on_a_leaf_the_one(tree, qtbot):
    chosen = []
    tree.figure.chosen.connect(chosen.append)
    figure = tree.figure
    positions = {}
    for x in range(1, figure.width(), 6):
        for y in range(0, figure.height(), 6):
            positions.setdefault(figure.part_at(QPoint(x, y)), QPoint(x, y))
    assert set(positions) == {None, *range(7)}
    for part in (4, 3, None):
        qtbot.mouseClick(figure, Qt.MouseButton.LeftButton, pos=positions[part])
    assert chosen == [("rater 1", "rater 2"), ("rater 4",)]


def test_the_tree_is_climbed_by_keyboard(tree, qtbot):
    chosen = []
    tree.figure.chosen.connect(chosen.append)
    qtbot.keyClick(tree.figure, Qt.Key.Key_Down)  # the whole tree
    qtbot.keyClick(tree.figure, Qt.Key.Key_Space)
    for _ in range(9):
        qtbot.keyClick(tree.figure, Qt.Key.Key_Down)
    qtbot.keyClick(tree.figure, Qt.Key.Key_Space)
    for _ in range(9):
        qtbot.keyClick(tree.figure, Qt.Key.Key_Up)
    qtbot.keyClick(tree.figure, Qt.Key.Key_Space)
    assert set(chosen[0]) == set(NAMES)
    assert len(chosen[1]) == 1
    assert chosen[2] == chosen[0]


def test_two_raters_make_no_tree(tree):
    tree.set_tree(np.empty((0, 4)), ["a", "b"], [0, 1])
    assert not tree.filled
    assert visible_words(tree).splitlines()[-1] == "Needs three raters who share cases."


def test_a_tree_that_does_not_fit_its_raters_is_refused(tree):
    with pytest.raises(ValueError, match="for 4 names"):
        tree.set_tree(np.ones((2, 4)), NAMES, range(4))


def test_a_title_that_does_not_fit_is_shown_in_full_on_hover(matrix):
    assert matrix.header._title.toolTip() == ""
    matrix.header.setFixedWidth(60)
    QApplication.processEvents()
    assert "PAIRWISE DICE" in matrix.header._title.toolTip()


@pytest.mark.parametrize("ideal", [None, 1.0])
def test_a_course_has_a_line_at_the_value_of_a_perfect_annotator(qtbot, ideal):
    plot = CoursePlot()
    qtbot.addWidget(plot)
    course = AnnotatorCourse("ann", 0, ("one", "two"), np.array([[0.5, 0.4, 0.6], [0.7, 0.6, 0.8]]))
    plot.show_courses([CourseView("right votes", "right votes", "image", ideal, True, (course,))])
    segments = [mark for mark in plot.figure.chart.marks if isinstance(mark, Segments)]
    assert [mark.y.tolist() for mark in segments] == ([] if ideal is None else [[[ideal, ideal]]])
