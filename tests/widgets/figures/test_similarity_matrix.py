import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt

from raterscope.widgets.figures.similarity_matrix import SimilarityMatrix
from tests.widgets.pointing import centre

LEFT = Qt.MouseButton.LeftButton
NAMES = ("ann", "<b>ben</b>", "cid", "dora")
VALUES = np.array([[1, 0.9, 0.2, 0.1], [0.9, 1, 0.3, np.nan], [0.2, 0.3, 1, 0.8], [0.1, np.nan, 0.8, 1]])
CORNERS = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 5.0], [10.0, 5.0]])
LINES = np.array([[0, 1], [2, 3], [0, 2]])


@pytest.fixture
def matrix(qtbot):
    widget = SimilarityMatrix()
    qtbot.addWidget(widget)
    widget.resize(320, 380)
    widget.show()
    widget.heard = []
    widget.figure.chosen.connect(lambda *pair: widget.heard.append(pair))
    return widget


def table(matrix, **more):
    fields = {"values": VALUES, "edges": np.array([0, 2, 4]), "names": NAMES}
    matrix.show_similarity(**{**fields, **more})


def graph(matrix, **more):
    fields = {
        "positions": CORNERS,
        "edges": LINES,
        "weights": np.array([0.9, 0.8, 0.2]),
        "names": NAMES,
        "communities": np.array([0, 0, 1, -1]),
    }
    matrix.show_graph(**{**fields, **more})


def test_a_cell_shows_the_similarity_and_selects_both_annotators(matrix, qtbot):
    table(matrix)
    assert matrix.figure.text_of((0, 1)) == "ann (community 1) and <b>ben</b> (community 1): similarity 0.90"
    assert matrix.figure.text_of((3, 1)) == "dora (community 2) and <b>ben</b> (community 1): not known"
    assert matrix.figure.text_of((2, 2)) == "cid (community 2) with itself"
    qtbot.mouseClick(matrix.figure, LEFT, pos=centre(matrix.figure, (3, 0)))
    assert matrix.heard == [(3, 0)]
    assert matrix.figure.accessibleDescription().endswith("similarity 0.10")


def test_the_cells_are_walked_by_keyboard_and_not_over_the_edge(matrix, qtbot):
    table(matrix)
    for key in (Qt.Key.Key_Down, *[Qt.Key.Key_Right] * 7, Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Return):
        qtbot.keyClick(matrix.figure, key)
    assert matrix.heard == [(1, 3)]


def test_similar_annotators_are_lighter_and_blocks_show_their_numbers(matrix):
    table(matrix)
    picture = matrix.figure.grab().toImage()
    alike = picture.pixelColor(centre(matrix.figure, (0, 1)))
    unlike = picture.pixelColor(centre(matrix.figure, (0, 3)))
    assert alike.lightnessF() > unlike.lightnessF()
    plain = matrix.figure.grab().toImage()
    matrix.select(1)
    assert matrix.figure.grab().toImage() != plain


def test_a_thousand_rows_are_pointed_at_one_by_one(matrix):
    count = 1000
    table(
        matrix,
        values=np.eye(count, dtype=np.float32),
        edges=np.array([0, 0, 400, count]),
        names=[f"12 annotators from {row}" for row in range(count)],
    )
    assert "12 annotators from 399 (community 2)" in matrix.figure.text_of((399, 400))
    assert "12 annotators from 400 (community 3)" in matrix.figure.text_of((399, 400))
    assert matrix.figure.part_at(QPoint(2, 2)) is None
    assert not matrix.figure.grab().isNull()


def test_matrix_and_graph_are_two_views_where_there_are_both(matrix, qtbot):
    table(matrix)
    assert not matrix.modes.isVisible()
    graph(matrix)
    assert matrix.modes.mode == "matrix"
    qtbot.mouseClick(matrix.modes.buttons["graph"], LEFT)
    assert matrix.figure.text_of((0, 0)) == "ann: community 1, similar to 2"
    matrix.modes.buttons["graph"].setFocus()
    qtbot.keyClick(matrix.modes.buttons["graph"], Qt.Key.Key_Left)
    assert matrix.modes.mode == "matrix"
    matrix.clear()
    assert not matrix.filled
    graph(matrix)
    assert matrix.modes.mode == "graph"
    assert not matrix.modes.isVisible()


def test_a_mark_of_the_graph_chooses_its_annotator(matrix, qtbot):
    graph(matrix)
    qtbot.mouseClick(matrix.figure, LEFT, pos=centre(matrix.figure, (2, 2)))
    assert matrix.heard == [(2, 2)]
    lower_right = centre(matrix.figure, (3, 3))
    assert lower_right.x() > matrix.figure.width() / 2
    assert lower_right.y() > matrix.figure.height() / 2


def test_the_graph_is_walked_by_keyboard_towards_the_next_mark(matrix, qtbot):
    graph(matrix)
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Down, Qt.Key.Key_Return):
        qtbot.keyClick(matrix.figure, key)
    assert matrix.heard == [(3, 3)]  # from the first, where there is nothing further left, round the corner
    assert matrix.figure.accessibleDescription() == "dora: no community, similar to 1"


def test_marks_in_one_place_and_without_lines_are_painted(matrix):
    graph(matrix, positions=np.ones((4, 2)), edges=np.empty((0, 2), int), weights=np.empty(0))
    assert not matrix.figure.grab().isNull()


def test_a_single_annotator_has_no_similar_annotator(matrix):
    table(matrix, values=np.ones((1, 1)), edges=np.array([0, 1]), names=("ann",))
    assert not matrix.filled
    table(matrix, values=np.ones((0, 0)), edges=np.array([0]), names=())
    assert not matrix.filled


@pytest.mark.parametrize(
    ("show", "wrong"),
    [
        (table, {"values": np.ones((3, 4))}),
        (table, {"edges": np.array([0, 3])}),
        (table, {"edges": np.array([0, 3, 2, 4])}),
        (graph, {"positions": np.ones((3, 2))}),
        (graph, {"edges": np.array([[0, 1], [2, 3], [0, 4]])}),
        (graph, {"weights": np.ones(2)}),
    ],
)
def test_what_does_not_fit_is_refused(matrix, show, wrong):
    with pytest.raises(ValueError, match=r" for |expected"):
        show(matrix, **wrong)
