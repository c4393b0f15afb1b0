import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt

from raterscope.widgets.figures.count_plots import CountsPlot, CountsView

NAN = float("nan")


def view(many=3, **more) -> CountsView:
    given = {
        "numbers": np.arange(7, 7 + many),
        "names": [f"smear <b>{at}</b>" for at in range(many)],
        "expected": np.array([12.4, 3.0, NAN] * many)[:many],
        "low": np.array([9.0, 3.0, NAN] * many)[:many],
        "high": np.array([15.0, 3.0, NAN] * many)[:many],
        "known": np.array([13.0, NAN, NAN] * many)[:many],
    }
    return CountsView(**{**given, **more})


@pytest.fixture
def counts(qtbot):
    plot = CountsPlot()
    qtbot.addWidget(plot)
    plot.resize(420, 200)
    plot.show()
    plot.heard = []
    plot.chosen.connect(plot.heard.append)
    return plot


def row_at(plot, row) -> QPoint:
    place = next(y for y in range(plot.figure.height()) if plot.figure.part_at(QPoint(50, y)) == row)
    return QPoint(50, place + 5)


def test_a_click_on_a_row_chooses_its_image_and_the_words_say_its_numbers(counts, qtbot):
    counts.show_counts(view())
    qtbot.mouseClick(counts.figure, Qt.MouseButton.LeftButton, pos=row_at(counts, 1))
    assert counts.heard == [8]
    said = "12.4 of its spots expected to be structures, 9 to 15; 13 known"
    assert counts.figure.words(0) == f"smear <b>0</b>: {said}"
    assert counts.figure.words(2) == "smear <b>2</b>: not fused yet"


def test_arrows_walk_from_the_image_on_screen_and_return_chooses(counts, qtbot):
    counts.show_counts(view())
    counts.select(8)
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Return):
        qtbot.keyClick(counts.figure, key)
    assert counts.heard == [9]


def test_the_image_on_screen_is_brought_in_sight_among_many(counts, qtbot):
    counts.show_counts(view(300))
    qtbot.waitUntil(lambda: counts.figure.height() > 3000)
    assert counts.figure.visibleRegion().boundingRect().height() < 250
    counts.select(7 + 250)
    assert counts.figure.visibleRegion().contains(row_at(counts, 250))


def test_without_any_fusion_there_is_a_sentence(counts):
    counts.show_counts(view(expected=np.full(3, NAN), low=np.full(3, NAN), high=np.full(3, NAN)))
    assert not counts.filled
    counts.show_counts(view())
    assert counts.filled
    counts.show_counts(None)
    assert not counts.filled


def test_the_dot_stands_between_the_ends_of_its_line_and_the_tick_at_what_is_known(counts):
    counts.show_counts(view(1, expected=np.array([10.0]), low=np.array([5.0]), high=np.array([15.0]),
                            known=np.array([20.0])))  # fmt: skip
    room = counts.figure._room()
    image = counts.figure.grab().toImage()
    middle = row_at(counts, 0).y() - 5 + 10

    def differs(number):
        x = round(room.left() + number / 20 * room.width())
        ground = image.pixelColor(round(room.left() + 2 / 20 * room.width()), middle)
        return any(image.pixelColor(x + dx, middle) != ground for dx in (-1, 0, 1) if x + dx < image.width())

    assert [number for number in (3, 6, 10, 14, 17, 20) if differs(number)] == [6, 10, 14, 20]
