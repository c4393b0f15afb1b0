import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor

from raterscope.algorithms.labels.class_tree import similar_order
from raterscope.figures.colours import community_colour
from raterscope.widgets import theme
from raterscope.widgets.figures.cells import community_text_colour, contrast, ink_on, short_rate
from raterscope.widgets.figures.confusion_matrix import MatrixView
from raterscope.widgets.panels.drift_panel import ConfusionPanel, worst_confusions
from tests.reading import accessible_texts, visible_words
from tests.widgets.pointing import centre


def view(rows=2, columns=3, width=0.06, **more) -> MatrixView:
    rng = np.random.default_rng(1)
    mean = rng.dirichlet(np.ones(columns), rows)
    fields = {
        "title": "Annotator 79142",
        "subtitle": "2,965 votes | accuracy 0.88 (0.85 to 0.91)",
        "classes": tuple(f"class {row}" for row in range(rows)),
        "outputs": tuple(f"says {column}" for column in range(columns)),
        "mean": mean,
        "low": np.maximum(mean - width / 2, 0),
        "high": np.minimum(mean + width / 2, 1),
        "counts": np.round(1000 * mean),
        "crowd": np.full((rows, columns), 1 / columns),
    }
    return MatrixView(**{**fields, **more})


@pytest.fixture
def matrix(qtbot):
    widget = ConfusionPanel()
    qtbot.addWidget(widget)
    widget.resize(360, 260)
    widget.show()
    return widget


SPOT = {
    "classes": ("not", "supernova"),
    "outputs": ("-1", "3"),
    "mean": np.array([[0.934, 0.066], [0.5, 0.5]]),
    "low": np.array([[0.906, 0.038], [0.1, 0.1]]),
    "high": np.array([[0.962, 0.094], [0.9, 0.9]]),
    "counts": np.array([[1204.3, 0.2], [1.0, 0.0]]),
    "crowd": np.array([[0.8, 0.2], [0.6, 0.4]]),
}


def test_a_cell_shows_rate_interval_votes_and_the_crowds_rate_with_fitting_digits(matrix):
    matrix.show_matrix(view(**SPOT))
    words = matrix.figure.text_of
    assert words((0, 0)) == (
        "true not, answer -1: 0.93 (0.91 to 0.96), 1,204 votes; the crowd 0.80, difference +0.13"
    )
    assert words((0, 1)).endswith("less than one vote; the crowd 0.20, difference −0.13")
    # A share has two decimals even here, and a difference within the interval says nothing.
    assert words((1, 0)) == (
        "true supernova, answer -1: 0.50 (0.10 to 0.90), 1 vote; the crowd 0.60, within the interval"
    )


def test_an_unknown_class_is_reported(matrix):
    unknown = np.array([[0.9, 0.1], [np.nan, np.nan]])
    matrix.show_matrix(view(**{**SPOT, "mean": unknown, "low": unknown, "high": unknown}))
    assert "not known" in matrix.figure.text_of((1, 0))
    for mode in ("rates", "counts", "difference"):
        matrix.set_mode(mode)
        assert not matrix.figure.grab().isNull()


@pytest.mark.parametrize("shape", [(2, 2), (3, 7)])
def test_every_cell_can_be_clicked(matrix, qtbot, shape):
    chosen = []
    matrix.cell_chosen.connect(lambda *cell: chosen.append(cell))
    matrix.show_matrix(view(*shape))
    cells = [(0, 0), (shape[0] - 1, 0), (shape[0] // 2, shape[1] - 1)]
    for cell in cells:
        qtbot.mouseClick(matrix.figure, Qt.MouseButton.LeftButton, pos=centre(matrix.figure, cell))
    assert chosen == cells
    assert all(
        matrix.figure.part_at(QPoint(x, 0)) is None for x in range(0, matrix.figure.width(), 25)
    )  # the names


def test_the_cells_are_walked_by_keyboard_from_the_first_one_and_not_over_the_edge(matrix, qtbot):
    chosen = []
    matrix.cell_chosen.connect(lambda *cell: chosen.append(cell))
    matrix.show_matrix(view())
    around = (Qt.Key.Key_Down, Qt.Key.Key_Down, *[Qt.Key.Key_Right] * 5, Qt.Key.Key_Space)
    for key in (*around, Qt.Key.Key_Up, *[Qt.Key.Key_Left] * 5, Qt.Key.Key_Return):
        qtbot.keyClick(matrix.figure, key)
    assert chosen == [(1, 2), (0, 0)]
    assert matrix.figure.accessibleDescription().startswith("true class 0, answer says 0: ")


def test_without_a_crowd_there_is_no_difference_from_it(matrix, qtbot):
    matrix.show_matrix(view())
    qtbot.mouseClick(matrix.modes.buttons["difference"], Qt.MouseButton.LeftButton)
    assert matrix.modes.mode == "difference"
    matrix.show_matrix(view(crowd=None))
    assert matrix.modes.mode == "rates"
    assert not matrix.modes.buttons["difference"].isEnabled()
    assert "no crowd" in matrix.modes.buttons["difference"].toolTip()
    assert "crowd" not in matrix.figure.text_of((0, 0))


def test_the_mode_stays_from_annotator_to_annotator(matrix):
    matrix.show_matrix(view())
    matrix.set_mode("counts")
    before = matrix.figure.grab().toImage()
    matrix.show_matrix(view(counts=np.ones((2, 3))))
    assert matrix.modes.mode == "counts"
    assert matrix.figure.grab().toImage() != before


def test_in_the_difference_what_is_more_is_orange_and_what_is_less_purple(matrix):
    matrix.show_matrix(view(**SPOT))
    matrix.set_mode("difference")
    picture = matrix.figure.grab().toImage()

    def ground(part):
        return picture.pixelColor(centre(matrix.figure, part) + QPoint(-34, -24))

    more, less = ground((0, 0)), ground((0, 1))
    assert more.red() > more.blue()
    assert less.blue() > less.green()


def test_names_of_strangers_are_cut_and_shown_as_they_are(matrix):
    matrix.show_matrix(view(title="<b>annotator</b> " * 20, classes=("x" * 400, "<i>")))
    assert matrix.minimumSizeHint().width() < 700
    assert "&lt;b&gt;" in matrix.header.toolTip()
    assert matrix.figure.text_of((1, 0)).startswith("true <i>, answer")


def test_without_a_selected_annotator_it_names_the_next_step(matrix):
    matrix.show_matrix(view())
    matrix.clear()
    assert not matrix.filled
    assert not matrix.modes.isVisible()


def test_what_does_not_fit_its_classes_is_refused():
    with pytest.raises(ValueError, match=r"low of shape \(2, 2\) for \(2, 3\)"):
        view(low=np.zeros((2, 2)))


def test_rates_are_written_short():
    assert [short_rate(value) for value in (0.834, 0.0, 1.0, 0.999, np.nan)] == [
        ".83",
        ".00",
        "1.0",
        "1.0",
        "",
    ]


@pytest.mark.parametrize("look", [theme.DARK, theme.LIGHT])
def test_what_is_written_in_or_on_a_communitys_colour_can_be_read(look, monkeypatch):
    monkeypatch.setattr(theme._State, "theme", look)
    for number in (*range(12), -1):
        assert contrast(community_text_colour(number), QColor(look.raised)) >= 4.5
        assert contrast(ink_on(community_text_colour(number)), community_text_colour(number)) >= 4.5
    assert len({community_colour(number) for number in range(8)}) == 8
    assert community_colour(8) == community_colour(29) == community_colour(-1)


def test_contrast_is_that_of_the_guidelines():
    assert contrast(QColor("#000000"), QColor("#ffffff")) == pytest.approx(21.0)
    assert contrast(QColor("#777777"), QColor("#ffffff")) == pytest.approx(4.48, abs=0.01)


def many(matrix, size=30):
    """Show a matrix of many classes, each of which is taken for the one `size` / 2 further on."""
    rates = 0.7 * np.eye(size) + 0.3 * np.roll(np.eye(size), size // 2, axis=1)
    shown = view(
        size, size, mean=rates, low=np.maximum(rates - 0.1, 0), high=np.minimum(rates + 0.1, 1),
        counts=100 * rates, meaning=np.arange(size), order=similar_order(rates, np.arange(size)),
    )  # fmt: skip
    matrix.show_matrix(shown)
    return shown


def test_of_many_classes_the_worst_confusions_are_listed_first(matrix, qtbot):
    chosen = []
    matrix.cell_chosen.connect(lambda *cell: chosen.append(cell))
    many(matrix)
    assert matrix.modes.mode == "worst"
    assert accessible_texts(matrix.worst)[0] == (
        "true class 0, answer says 15: 0.30 (0.20 to 0.40), 30 votes"
    )
    assert len(accessible_texts(matrix.worst)) == 30
    qtbot.mouseClick(
        matrix.worst.viewport(), Qt.MouseButton.LeftButton,
        pos=matrix.worst.visualRect(matrix.worst.index_of_row(1)).center(),
    )  # fmt: skip
    assert chosen == [(1, 16)]
    matrix.set_mode("rates")
    matrix.show_matrix(view(30, 30, meaning=np.arange(30)))
    assert matrix.modes.mode == "rates"  # what was chosen stays for the same classes


def test_a_frequent_confusion_is_worse_than_one_that_a_single_vote_shows(matrix):
    rates = np.array([[0.5, 0.5, 0.0], [0.0, 0.4, 0.6], [0.1, 0.0, 0.9]])
    low = np.array([[0.4, 0.4, 0.0], [0.0, 0.1, 0.1], [0.05, 0.0, 0.8]])
    counts = np.array([[50, 50, 0.2], [0, 1, 1], [10, 0.1, 90]])
    shown = view(3, 3, mean=rates, low=low, high=rates, counts=counts, meaning=np.array([0, 1, 2]))
    assert [confusion.cell for confusion in worst_confusions(shown)] == [(0, 1), (1, 2), (2, 0)]
    nothing = view(2, 3, meaning=np.array([0, 1, -1]), counts=np.array([[9, 0, 9], [0, 9, 9]]))
    assert worst_confusions(nothing) == []  # an answer that stands for no class is no confusion


def test_classes_that_are_confused_are_drawn_as_neighbours_and_named(matrix):
    shown = many(matrix)
    matrix.set_mode("rates")
    rows = shown.order[0].tolist()
    assert all(abs(rows.index(one) - rows.index(one + 15)) == 1 for one in range(15))
    assert np.array_equal(*shown.order)
    matrix.resize(700, 600)
    top, left = centre(matrix.figure, (rows[0], rows[0])), centre(matrix.figure, (rows[-1], rows[0]))
    assert matrix.figure.tip_at(QPoint(top.x(), 2)) == f"answer says {rows[0]}"
    assert matrix.figure.tip_at(QPoint(2, left.y())) == f"true class {rows[-1]}"


def test_the_wheel_zooms_into_a_block_that_arrow_keys_move(matrix, qtbot):
    shown = many(matrix)
    matrix.set_mode("rates")
    matrix.resize(700, 600)
    rows = shown.order[0].tolist()
    cell = rows[10], rows[11]
    before = centre(matrix.figure, cell)
    matrix.figure.zoom(4, cell)
    visible = {matrix.figure.part_at(QPoint(x, y)) for x in range(0, 700, 16) for y in range(0, 560, 16)}
    assert cell in visible
    assert (rows[0], rows[0]) not in visible
    assert (centre(matrix.figure, cell) - before).manhattanLength() < 150
    matrix.figure.point(cell)
    for _ in range(30):
        qtbot.keyClick(matrix.figure, Qt.Key.Key_Up)
    assert matrix.figure.pointed == (rows[0], rows[11])
    assert centre(matrix.figure, (rows[0], rows[11]))
    for _ in range(9):
        qtbot.keyClick(matrix.figure, Qt.Key.Key_Minus)
    assert centre(matrix.figure, (rows[29], rows[29]))


def test_five_hundred_classes_are_drawn_whole(matrix):
    rates = np.zeros((500, 500))
    rates[:, 17] = 1.0
    matrix.show_matrix(view(500, 500, mean=rates, low=rates, high=rates, counts=rates))
    box = matrix.figure._grid()[0]
    assert box.bottom() < matrix.figure.height()
    picture = matrix.figure.grab().toImage()
    row = [picture.pixelColor(x, int(box.center().y())) for x in range(int(box.left()), int(box.right()))]
    assert max(colour.blue() for colour in row) > 240  # a column thinner than a pixel keeps its colour


def test_each_of_twelve_rows_is_named_in_the_room_that_drift_leaves_on_a_small_screen(matrix):
    matrix.resize(360, 169)
    blank = [" " * row for row in range(12)]
    pictures = []
    for named in range(13):  # the last picture has no names
        classes = tuple("basophil" if row == named else name for row, name in enumerate(blank))
        matrix.show_matrix(view(12, 12, classes=classes))
        pictures.append(matrix.figure.grab().toImage())
    left = int(matrix.figure._grid()[0].left())
    for named, picture in enumerate(pictures[:12]):
        cell = centre(matrix.figure, (named, 0))
        region = (0, cell.y() - 4, left - 4, 8)
        assert picture.copy(*region) != pictures[12].copy(*region), named
    assert "accuracy 0.88" in matrix.header.toolTip()
    assert "accuracy 0.88" not in visible_words(matrix)
    matrix.resize(360, 300)
    assert "accuracy 0.88" in visible_words(matrix)
