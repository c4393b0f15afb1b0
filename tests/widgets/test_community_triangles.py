"""Communities as symbols in triangles."""

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt

from raterscope.widgets.figures.community_plots import CommunityTriangles, TrianglesView
from raterscope.widgets.theme import text_size

FIRST = np.array([[[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]], [[0.1, 0.8, 0.1], [0.3, 0.4, 0.3]]])


def view() -> TrianglesView:
    return TrianglesView(
        ("at 20 %", "at 100 %"), ("no", "<b>yes</b>"), (("-1", "1", "3"), ("-1", "1", "3")),
        (FIRST, FIRST[:1]), (np.array([5, 2]), np.array([7])), (np.array([1, 0]), np.array([1])),
        ("fair", "reliable"),
    )  # fmt: skip


@pytest.fixture
def panel(qtbot):
    widget = CommunityTriangles()
    qtbot.addWidget(widget)
    widget.resize(700, 500)
    widget.show()
    widget.show_triangles(view())
    return widget


def test_a_symbol_says_its_community_and_a_click_chooses_it(panel, qtbot):
    figure = panel.figure
    for part, place in figure._symbols():
        assert figure.part_at(place) == part
    assert len(figure._symbols()) == 6
    words = figure.words((0, 1, 0))
    assert words == "at 20 %: community 2, reliable, 5 annotators; true <b>yes</b>: -1 0.10, 1 0.10, 3 0.80"
    place = dict(figure._symbols())[0, 0, 1] * text_size()
    with qtbot.waitSignal(panel.community_chosen) as chosen:
        qtbot.mouseClick(figure, Qt.MouseButton.LeftButton, pos=QPoint(round(place.x()), round(place.y())))
    assert chosen.args == [0]
    assert not panel.grab().isNull()


def test_near_a_corner_its_share_is_large(panel):
    places = dict(panel.figure._symbols())
    assert places[0, 0, 0].x() < places[0, 0, 1].x()
    assert places[0, 0, 1].y() < places[0, 0, 0].y()
    assert places[0, 1, 0].x() > places[0, 1, 1].x()


def test_arrow_keys_walk_and_the_table_has_every_share(panel):
    figure = panel.figure
    assert figure.step(None, 1, 0) == (0, 0, 0)
    assert figure.step((0, 0, 0), 1, 0) == (0, 0, 1)
    assert figure.step((0, 0, 1), 1, 0) == (1, 0, 0)
    assert figure.step((1, 0, 0), 0, 1) == (1, 1, 0)
    assert figure.step((1, 1, 0), 1, 1) == (1, 1, 0)
    rows = list(figure.table().source())
    assert len(rows) == 18
    panel.show_triangles(None)
    assert not panel.filled
    assert figure.step(None, 1, 0) is None
